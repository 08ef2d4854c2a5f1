//! What a gradient that is written by hand changes of the memory of a tape, so that it can be put back.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aerogel_ir::analysis::boxes::AccessKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::kernel::NativeKernel;
use super::recording::{Memory, NativeRecording, Prepared, memories_of};
use super::snapshot::NativeSnapshot;
use super::steps::keep;

/// The fields and arrays that have been written, as they were before.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeUndo {
    recording: Py<NativeRecording>,
    apart: BTreeSet<Memory>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    memories: BTreeSet<Memory>,
    kept: Vec<NativeSnapshot>,
}

#[pymethods]
impl NativeUndo {
    /// For what a tape has used; but for `apart`, gradients, which are written to stay so.
    #[new]
    fn new(
        py: Python<'_>,
        recording: Py<NativeRecording>,
        apart: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut memories = BTreeSet::new();
        for target in &apart {
            memories.extend(memories_of(py, target)?);
        }
        Ok(Self {
            recording,
            apart: memories,
            seen: Mutex::default(),
        })
    }

    /// Keeps what a launch to come is the first to write.
    fn before_launch(
        &self,
        py: Python<'_>,
        kernel: &Bound<'_, NativeKernel>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let launch = Prepared::new(py, kernel.get(), args, kwargs, None)?;
        for placed in launch.placed(AccessKind::Write)? {
            if self.is_first(&placed.memories)
                && let Some(boxed) = launch.boxed(py, placed.at, placed.whole.clone())?
            {
                let kept = NativeSnapshot::new(py, boxed)?;
                self.seen().kept.push(kept);
            }
        }
        Ok(())
    }

    /// Keeps what Python is the first to write.
    fn before_write(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.is_first(&memories_of(py, target)?) {
            let kept = keep(py, target)?;
            self.seen().kept.push(kept);
        }
        Ok(())
    }

    /// Puts all of it back.
    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        let seen = std::mem::take(&mut *self.seen());
        seen.kept.iter().rev().try_for_each(|kept| kept.restore(py))
    }
}

impl NativeUndo {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether some memory is the tape's and has not been written so far.
    fn is_first(&self, memories: &[Memory]) -> bool {
        let used = self.recording.get();
        let counts = |m: &&Memory| used.has_used(**m) && !self.apart.contains(m);
        let mut seen = self.seen();
        let mut fresh = false;
        for &memory in memories.iter().filter(counts) {
            fresh |= seen.memories.insert(memory);
        }
        fresh
    }
}
