//! Saved values, as bytes, that the gradient of one launch needs and that may change until it is computed.
//!
//! A tape keeps what is overwritten, since it sees all that happens. A kernel that is a function of another package is
//! launched by that, now forwards and some time later backwards. So what the gradient reads of fields and arrays is copied
//! at the launch: what it must find as it was before the kernel ran, before that, the rest after it.

use aerogel_ir::analysis::box_set::{BoxSet, holds};
use aerogel_ir::analysis::boxes::AccessKind;
use aerogel_runtime::Buffer;
use indexmap::IndexMap;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::activity::{Activity, NativeAsked};
use super::error;
use super::kernel::{NativeKernel, derivative_named};
use super::prepared::Prepared;
use super::snapshot::{Boxed, Memory, NativeSnapshot};
use super::summary::At;

/// The boxes that the gradient of a launch needs.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeSaved {
    kernel: String,
    /// Those that are needed as they were before the launch, and as they are after it.
    before: Vec<Boxed>,
    after: Vec<Boxed>,
    activity: Activity,
    asked: Option<NativeAsked>,
}

/// A number that stands for which cells were active.
const DIGEST: usize = size_of::<u64>();

#[pymethods]
impl NativeSaved {
    /// For a launch with some arguments; but for the arrays of the parameters `apart`, which the caller keeps. Whole fields
    /// and arrays if `is_whole`, whatever numbers are passed. `derivative` is the gradient, or that with its tangents.
    #[new]
    fn new(
        py: Python<'_>,
        kernel: &Bound<'_, NativeKernel>,
        args: &Bound<'_, PyTuple>,
        apart: Vec<String>,
        is_whole: bool,
        derivative: &str,
    ) -> PyResult<Self> {
        let derived = derivative_named(Some(derivative))?;
        let launch = Prepared::new(py, kernel.get(), args, None, derived)?;
        let activity = Activity::default();
        let asked = launch.asked(py, kernel, &activity)?;
        let apart = launch.memories_for(&apart)?;
        // In the order of the kernel: the arrays of the gradient may lie elsewhere, in another order.
        let mut before: IndexMap<Vec<Memory>, (At, BoxSet)> = IndexMap::new();
        let mut after = before.clone();
        let all = match is_whole {
            true => launch.placed_whole(AccessKind::Read)?,
            false => launch.placed(AccessKind::Read)?,
        };
        for placed in all {
            if placed.memories.iter().any(|memory| apart.contains(memory)) {
                continue;
            }
            let of = match placed.is_early {
                true => &mut before,
                false => &mut after,
            };
            let new = || (placed.at, BoxSet::default());
            let (_, read) = of.entry(placed.memories.clone()).or_insert_with(new);
            read.add(&placed.ranges);
        }
        for (memories, (_, read)) in &mut after {
            if let Some((_, earlier)) = before.get(memories) {
                read.retain(|ranges| !earlier.iter().any(|other| holds(other, ranges)));
            }
        }
        let boxed = |all: IndexMap<_, (At, BoxSet)>| {
            let all = all.into_values();
            all.flat_map(|(at, read)| read.into_iter().map(move |ranges| (at, ranges)))
                .filter_map(|(at, ranges)| launch.boxed_as_passed(py, at, ranges))
                .collect()
        };
        Ok(Self {
            kernel: kernel.get().signature.name.clone(),
            before: boxed(before),
            after: boxed(after),
            activity,
            asked,
        })
    }

    /// How many bytes `before_launch` and `after_launch` return together.
    #[getter]
    fn nbytes(&self) -> usize {
        let boxes = self.before.iter().chain(&self.after);
        boxes.map(Boxed::nbytes).sum::<usize>() + DIGEST
    }

    /// The values that are needed as they are before the launch.
    fn before_launch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &bytes_of(py, &self.before)?))
    }

    /// The values that are needed as they are after the launch, and the activity that the kernel has queried.
    fn after_launch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = bytes_of(py, &self.after)?;
        bytes.extend(self.digest(py)?.to_ne_bytes());
        Ok(PyBytes::new(py, &bytes))
    }

    /// The bytes of both as snapshots, in the order in which they are written.
    fn snapshots(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<Vec<NativeSnapshot>> {
        if bytes.len() != self.nbytes() {
            let what = format!(
                "the gradient of kernel `{}` reads other parts of fields and arrays than at the call: do not change attributes, \
                 shapes and other values that select them in between",
                self.kernel
            );
            return Err(error::runtime(py, what));
        }
        let split = bytes.len() - DIGEST;
        if bytes[split..] != self.digest(py)?.to_ne_bytes() {
            let what = format!(
                "kernel `{}` has queried which cells are active, and that has changed since: compute its \
                 gradient under ti.ad.Tape, or activate cells before it runs",
                self.kernel
            );
            return Err(error::runtime(py, what));
        }
        let mut rest = &bytes[..split];
        let mut taken = |boxed: &Boxed| {
            let (own, others) = rest.split_at(boxed.nbytes());
            rest = others;
            let numbers = Buffer::zeroed(own.len()).map_err(error::memory)?;
            numbers.write(0, own).map_err(error::memory)?;
            NativeSnapshot::of(boxed.held(py), numbers)
        };
        let before: Vec<_> = self
            .before
            .iter()
            .map(&mut taken)
            .collect::<PyResult<_>>()?;
        let after: PyResult<Vec<_>> = self.after.iter().map(taken).collect();
        Ok(after?.into_iter().chain(before).collect())
    }
}

impl NativeSaved {
    fn digest(&self, py: Python<'_>) -> PyResult<u64> {
        let Some(asked) = &self.asked else {
            return Ok(0);
        };
        self.activity.after_launch(py, asked)?;
        Ok(asked.digest())
    }
}

fn bytes_of(py: Python<'_>, boxes: &[Boxed]) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    for boxed in boxes {
        let kept = NativeSnapshot::new(py, boxed.held(py))?;
        let start = bytes.len();
        bytes.resize(start + kept.numbers().len(), 0);
        let read = kept.numbers().read(0, &mut bytes[start..]);
        read.map_err(error::memory)?;
    }
    Ok(bytes)
}
