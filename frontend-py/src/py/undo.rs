//! Undoing the changes that a custom gradient makes to the memory of a tape.
//!
//! Each launch saves the boxes that it writes, unless they lie in boxes that are saved already:
//!
//! ```text
//! step(t)          x[t + 1, 0..n]     saved
//! step.grad(t)     gradients          not saved
//! step(t)          x[t + 1, 0..n]     kept already
//! ```

use std::collections::BTreeSet;

use aerogel_ir::analysis::boxes::AccessKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::kernel::NativeKernel;
use super::prepared::Prepared;
use super::recording::NativeRecording;
use super::snapshot::{Boxed, Memory, NativePresent, memories_of};

/// The elements of fields and arrays that have been written, as they were before.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeUndo {
    recording: Py<NativeRecording>,
    apart: BTreeSet<Memory>,
    before: NativePresent,
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
            before: NativePresent::default(),
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
            if self.is_restored(&placed.memories)
                && let Some(boxed) = launch.boxed(py, placed.at, placed.ranges.clone())?
            {
                self.before.note_box(py, boxed)?;
            }
        }
        Ok(())
    }

    /// Keeps what Python is the first to write.
    #[pyo3(signature = (target, key = None))]
    fn before_write(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        match Boxed::of(py, target, key)? {
            Some(boxed) if self.is_restored(&boxed.memories()?) => self.before.note_box(py, boxed),
            _ => Ok(()),
        }
    }

    /// Puts all of it back.
    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        self.before.restore(py)
    }
}

impl NativeUndo {
    /// Whether some of what has these components is the tape's.
    fn is_restored(&self, memories: &[Memory]) -> bool {
        let used = self.recording.get();
        let mut memories = memories.iter();
        memories.any(|&m| used.has_used(m) && !self.apart.contains(&m))
    }
}
