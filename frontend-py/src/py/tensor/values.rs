//! Numbers: where they come from, and where they go.

use aerogel_compiler::CompileError;
use aerogel_tensor::lazy::{LazyError, realise};
use aerogel_tensor::{Operand, RunError, Settings};
use pyo3::exceptions::{PyIndexError, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use super::{Home, NativeTensor, SESSION, lock};
use crate::py::{error, program};

fn failed(py: Python<'_>, e: LazyError) -> PyErr {
    match e {
        LazyError::Compile(e) => not_compiled(py, &e),
        LazyError::Run(e) => stopped(&e),
    }
}

pub(super) fn not_compiled(py: Python<'_>, e: &CompileError) -> PyErr {
    error::runtime(py, format!("the tensor program was not compiled: {e}"))
}

/// Why a program ended early.
pub(super) fn stopped(e: &RunError) -> PyErr {
    use aerogel_tensor::interp::Failure;
    match e {
        RunError::Memory(e) => error::memory(*e),
        RunError::Interrupted => PyKeyboardInterrupt::new_err("interrupted"),
        RunError::Check(what) => PyIndexError::new_err(what.clone()),
        RunError::Failure(Failure::Index(..)) => PyIndexError::new_err(e.to_string()),
        RunError::Failure(_) => PyValueError::new_err(e.to_string()),
    }
}

impl NativeTensor {
    pub(super) fn computed(&self, py: Python<'_>) -> PyResult<Operand> {
        let Home::Lazy(slot) = self.home else {
            return Err(error::runtime(
                py,
                "a tensor of a program has no numbers while the program is traced",
            ));
        };
        if let Some(value) = lock(&SESSION).value(slot) {
            return Ok(value);
        }
        realise_all(py, &[slot])?;
        let value = lock(&SESSION).value(slot);
        value.ok_or_else(|| error::runtime(py, "the tensor was not computed"))
    }
}

fn realise_all(py: Python<'_>, slots: &[u32]) -> PyResult<()> {
    let settings = program::settings(py)?;
    let compiler = program::compiler(py, &settings)?;
    let made_for = Settings {
        compiler: &compiler,
        fast_math: settings.fast_math,
    };
    py.detach(|| realise(&SESSION, slots, made_for, program::generation()))
        .map_err(|e| failed(py, e))
}

pub(super) fn leaf(operand: Operand) -> NativeTensor {
    NativeTensor {
        home: Home::Lazy(lock(&SESSION).leaf(operand)),
    }
}

impl NativeTensor {
    /// The memory of its numbers.
    pub(crate) fn operand(&self, py: Python<'_>) -> PyResult<Operand> {
        self.computed(py)
    }
}

/// Computes several tensors in one program.
#[pyfunction]
pub(crate) fn realise_tensors(
    py: Python<'_>,
    tensors: Vec<Bound<'_, NativeTensor>>,
) -> PyResult<()> {
    let mut slots = Vec::new();
    for tensor in &tensors {
        if let Home::Lazy(slot) = tensor.get().home {
            slots.push(slot);
        }
    }
    realise_all(py, &slots)
}

/// How many buffers and statements are recorded, tensors are held, and plans have been made.
#[pyfunction]
pub(crate) fn tensor_counts() -> [usize; 4] {
    lock(&SESSION).counts()
}
