//! Conversions between the values of tensors and Python's and NumPy's.

use aerogel_base::AssertKind;
use aerogel_compiler::CompileError;
use aerogel_tensor::record::KnownPart;
use aerogel_tensor::session::{Ended, LazyError, Slot, realise};
use aerogel_tensor::{Operand, RunError, Settings};
use pyo3::exceptions::{PyException, PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::backends;
use super::ended::Traced;
use super::native::{Home, NativeTensor, SESSION, lock, made_for};
use super::raised::note;
use crate::py::ndarray::interface;
use crate::py::{error, program, recorder, signals};

pub(super) fn failed(py: Python<'_>, e: LazyError) -> PyErr {
    match e {
        LazyError::Compile(e) => not_compiled(py, &e),
        LazyError::Run(ended) => {
            let Ended {
                error,
                program,
                lines,
            } = *ended;
            Traced { program, lines }.ended(py, &error)
        }
        LazyError::Mapped | LazyError::Mixed(_) => PyValueError::new_err(e.to_string()),
    }
}

pub(super) fn not_compiled(py: Python<'_>, e: &CompileError) -> PyErr {
    error::runtime(py, format!("the tensor program was not compiled: {e}"))
}

/// Why a program ended early.
pub(super) fn stopped(e: &RunError) -> PyErr {
    use aerogel_tensor::ir::Failure;
    match e {
        RunError::Memory(e) => error::memory(*e),
        RunError::Interrupted => {
            Python::attach(|py| error::interrupted(py, "a program of tensors"))
        }
        RunError::NoRoom { error, .. } => error::memory(*error),
        RunError::NoCell { text, .. } => Python::attach(|py| {
            let class = error::of_check(AssertKind::Memory);
            error::exception(py, class, text.clone())
        }),
        RunError::Region(raised) => PyValueError::new_err(raised.0.to_string()),
        RunError::Check { kind, text } => {
            Python::attach(|py| error::exception(py, error::of_check(*kind), text.clone()))
        }
        RunError::Overlap | RunError::Mismatch(_) | RunError::Device(_) => {
            Python::attach(|py| error::runtime(py, e.to_string()))
        }
        RunError::Failure(Failure::Index(_) | Failure::Unproved(..)) => {
            PyIndexError::new_err(e.to_string())
        }
        RunError::Failure(_) => PyValueError::new_err(e.to_string()),
    }
}

const RETURN_IT: &str = "a tensor of a program has values only while the program runs: return it from the program, and use the result";

impl NativeTensor {
    pub(crate) fn computed(&self, py: Python<'_>) -> PyResult<Operand> {
        let Home::Lazy(slot) = self.home else {
            return Err(error::runtime(
                py,
                if recorder::traced(py)?.is_none() {
                    RETURN_IT
                } else {
                    "a tensor of a program has no values while the program is traced, so `if`, `while`, `range` and `float` \
                 cannot use it: choose by `if_cond` or `where`, repeat by `loop`, show it by `print_value`, or return it. \
                     An argument that is known when the program is traced is annotated `int` or `bool`, or named in `static`"
                },
            ));
        };
        if let Some(value) = lock(&SESSION).value(slot) {
            return Ok(value);
        }
        realise_all(py, &[slot])?;
        let value = lock(&SESSION).value(slot);
        let value = match value {
            None => backends::fetched(py, slot)?,
            there => there,
        };
        value.ok_or_else(|| error::runtime(py, "the tensor was not computed"))
    }
}

fn realise_all(py: Python<'_>, slots: &[u32]) -> PyResult<()> {
    signals::heed(py)?;
    if lock(&SESSION).is_watched() {
        return backends::realise_by_backends(py, slots);
    }
    settings_now(py, |settings| {
        py.detach(|| realise(&SESSION, slots, settings))
            .map_err(|e| failed(py, e))
    })
}

/// Calls `f` with the settings for plans that are made now.
pub(super) fn settings_now<R>(
    py: Python<'_>,
    f: impl FnOnce(Settings<'_>) -> PyResult<R>,
) -> PyResult<R> {
    let settings = program::settings_or_begin(py)?;
    let compiler = program::compiler(py, &settings)?;
    f(made_for(&settings, &compiler))
}

pub(super) fn leaf(operand: Operand) -> NativeTensor {
    // One number is an operand of something, where it stands.
    let is_one = operand.shape.is_empty();
    let slot = lock(&SESSION).leaf(operand);
    if !is_one {
        note();
    }
    NativeTensor {
        home: Home::Lazy(slot),
    }
}

impl NativeTensor {
    /// Its numbers, if they are there.
    pub(super) fn value_there(&self) -> Option<Operand> {
        match self.home {
            Home::Lazy(slot) => lock(&SESSION).value(slot),
            Home::Program(..) => None,
        }
    }

    /// The memory of its numbers, which stays as it is from now on.
    pub(crate) fn operand(&self, py: Python<'_>) -> PyResult<Operand> {
        let value = self.computed(py)?;
        if let Home::Lazy(slot) = self.home {
            lock(&SESSION).expose(slot);
        }
        Ok(value)
    }

    /// Its slot, if it belongs to no program.
    pub(super) fn slot(&self) -> Option<Slot> {
        match self.home {
            Home::Lazy(slot) => Some(slot),
            Home::Program(..) => None,
        }
    }

    /// The memory of its values for another package: no other tensor has it.
    pub(crate) fn handed_out(&self, py: Python<'_>) -> PyResult<Operand> {
        let value = self.computed(py)?;
        let Home::Lazy(slot) = self.home else {
            return Ok(value);
        };
        drop(value);
        let value = lock(&SESSION).hand_out(slot).map_err(error::memory)?;
        value.ok_or_else(|| error::runtime(py, "the tensor was not computed"))
    }

    /// Memory that a kernel writes to, the tensor with what it writes, and whether that is a copy: if not, the numbers of
    /// this one are gone. The caller holds so many references to them.
    pub(super) fn written_outside(&self, n_held: usize) -> PyResult<(Operand, Self, bool)> {
        let Home::Lazy(slot) = self.home else {
            unreachable!("a kernel is given tensors with numbers")
        };
        let made = lock(&SESSION).written_outside(slot, n_held + 1);
        let (operand, slot, is_copy) = made.map_err(error::memory)?;
        Ok((operand, Self::of_slot(slot), is_copy))
    }

    /// A small part of numbers that are there.
    pub(super) fn read_at_once(&self, parts: &[KnownPart]) -> PyResult<Option<Self>> {
        let Home::Lazy(slot) = self.home else {
            return Ok(None);
        };
        let slot = lock(&SESSION)
            .read_part(slot, parts)
            .map_err(error::memory)?;
        Ok(slot.map(Self::of_slot))
    }

    /// The tensor with a part replaced, if that need not be recorded: its numbers and the values' are there, or a loop
    /// seems to fill it part by part.
    pub(super) fn stored_at_once(
        &self,
        py: Python<'_>,
        parts: &[KnownPart],
        values: &Self,
    ) -> PyResult<Option<Self>> {
        let (Home::Lazy(target), Home::Lazy(from)) = (&self.home, &values.home) else {
            return Ok(None);
        };
        let is_filled = lock(&SESSION).is_filled(*target);
        if is_filled {
            let is_constant = lock(&SESSION).is_constant(*from);
            let wanted = [*target, *from];
            realise_all(py, &wanted[..if is_constant { 1 } else { 2 }])?;
        }
        let slot = lock(&SESSION).write_part(*target, parts, *from);
        Ok(slot.map_err(error::memory)?.map(Self::of_slot))
    }

    /// Runs stores to computed indices, of which many are deferred.
    pub(super) fn run_if_full(&self, py: Python<'_>) -> PyResult<()> {
        if let Home::Lazy(slot) = self.home {
            let is_full = lock(&SESSION).is_full();
            if is_full {
                realise_all(py, &[slot])?;
            }
        }
        Ok(())
    }

    /// Evaluates tensors that depend on a long chain of deferred statements.
    ///
    /// # Errors
    /// If it is interrupted; other errors are raised when the values are read.
    pub(super) fn run_if_long(&self) -> PyResult<()> {
        let Home::Lazy(slot) = self.home else {
            return Ok(());
        };
        let waits = lock(&SESSION).waits_long(slot);
        if !waits {
            return Ok(());
        }
        Python::attach(|py| match realise_all(py, &[slot]) {
            Err(e) if !e.is_instance_of::<PyException>(py) => Err(e),
            _ => Ok(()),
        })
    }

    /// Notes that another tensor is this one with something stored to it.
    pub(super) fn note_store(&self, other: &Self) {
        if let (Home::Lazy(old), Home::Lazy(new)) = (&self.home, &other.home) {
            lock(&SESSION).stored(*old, *new);
        }
    }

    fn of_slot(slot: u32) -> Self {
        Self {
            home: Home::Lazy(slot),
        }
    }
}

/// The memory of a tensor's values, for NumPy: it lives as long as this.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeMemory {
    operand: Operand,
}

impl NativeMemory {
    pub(super) fn of(operand: Operand) -> Self {
        Self { operand }
    }
}

#[pymethods]
impl NativeMemory {
    /// A view that may not be written.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let value = &self.operand;
        // Nobody changes it, so that a device may have it too.
        let address = value.buffer.address_to_read().map_err(error::memory)? as usize;
        interface(py, value.ty, &value.shape, address, false)
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

/// The numbers of recorded buffers and statements, of live tensors, and of plans made.
#[pyfunction]
pub(crate) fn tensor_counts() -> [usize; 4] {
    lock(&SESSION).counts()
}
