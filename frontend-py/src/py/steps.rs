//! What the steps of a checkpointed sequence read and write, so that what is both can be kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aerogel_ir::analysis::boxes::AccessKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::argument::ArrayArg;
use super::field::NativeField;
use super::kernel::NativeKernel;
use super::ndarray::NativeNdarray;
use super::recording::{Memory, Prepared};
use super::snapshot::{Boxed, IndexBox, NativeSnapshot};

/// What the launches of a step, or several, have read and written.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeSteps(Mutex<Steps>);

#[derive(Default)]
struct Steps {
    read: BTreeMap<Memory, IndexBox>,
    /// Each with the number of what can be kept of it.
    written: BTreeMap<Memory, usize>,
    /// Whole fields and arrays that are written.
    whole: Vec<NativeWhole>,
}

/// A whole field or array.
#[pyclass(module = "aerogel._native", frozen)]
#[derive(Clone)]
pub(crate) struct NativeWhole(Arc<Boxed>);

#[pymethods]
impl NativeWhole {
    /// What it holds now.
    fn keep(&self, py: Python<'_>) -> PyResult<NativeSnapshot> {
        NativeSnapshot::new(py, self.0.held(py))
    }
}

#[pymethods]
impl NativeSteps {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    /// Adds a launch to come. The results are the numbers of what it is the first to write, and of what was only
    /// written so far and is read.
    fn note(
        &self,
        py: Python<'_>,
        kernel: &Bound<'_, NativeKernel>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Vec<usize>, Vec<usize>)> {
        let launch = Prepared::new(py, kernel.get(), args, kwargs, None)?;
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut first_written, mut first_read) = (Vec::new(), Vec::new());
        for placed in launch.placed(AccessKind::Read)? {
            for &memory in &placed.memories {
                if steps.read.insert(memory, placed.whole.clone()).is_none() {
                    first_read.extend(steps.written.get(&memory).copied());
                }
            }
        }
        for placed in launch.placed(AccessKind::Write)? {
            if placed
                .memories
                .iter()
                .all(|m| steps.written.contains_key(m))
            {
                continue;
            }
            let Some(boxed) = launch.boxed(py, placed.at, placed.whole.clone()) else {
                continue;
            };
            let number = steps.whole.len();
            steps.whole.push(NativeWhole(Arc::new(boxed)));
            first_written.push(number);
            for memory in placed.memories {
                steps.written.insert(memory, number);
            }
        }
        Ok((first_written, first_read))
    }

    /// All that is written; and the numbers of what is read as well.
    fn written(&self) -> (Vec<NativeWhole>, Vec<usize>) {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let both = steps
            .written
            .iter()
            .filter(|(m, _)| steps.read.contains_key(m));
        let mut numbers: Vec<usize> = both.map(|(_, &number)| number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        (steps.whole.clone(), numbers)
    }
}

/// What a whole field or array holds.
#[pyfunction]
pub(crate) fn keep(py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<NativeSnapshot> {
    let boxed = if let Ok(field) = target.cast::<NativeField>() {
        let field = field.get();
        let placement = field.placement(py)?;
        let ranges = placement.shape.iter().map(|&n| (0, n)).collect();
        let places = placement.places.clone();
        Boxed::Field(placement.store.clone(), places, field.elem(), ranges)
    } else {
        let array = target.cast::<NativeNdarray>()?.get();
        let item = array.ty.bytes() as usize;
        let ranges = array.shape.iter().map(|&n| (0, n as u64)).collect();
        let own = ArrayArg::Own(array.buffer.clone());
        let cell = item * array.n_components();
        Boxed::Array(own, array.shape.clone(), cell, item, ranges)
    };
    NativeSnapshot::new(py, boxed)
}

impl NativeSteps {
    /// What is read and not written.
    pub(super) fn only_read(&self) -> Vec<(Memory, IndexBox)> {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let read = steps.read.iter();
        read.filter(|(memory, _)| !steps.written.contains_key(memory))
            .map(|(memory, ranges)| (*memory, ranges.clone()))
            .collect()
    }
}
