//! Tensors for `aerogel.tensor`: what is recorded of each operation, and numbers where they are asked for.

mod arguments;
mod ended;
mod gradients;
mod kernels;
mod keys;
mod mapped;
mod notation;
mod operations;
mod places;
mod recorded;
mod trace;
mod values;
pub(crate) mod written;

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::Compiler;
use aerogel_tensor::ir::Place;
use aerogel_tensor::record::trace::{StepError, Trace, Value};
use aerogel_tensor::record::{Mode, RecordError, Recording, Size};
use aerogel_tensor::session::{Session, Slot};
use aerogel_tensor::{Buffer, Codes, Dim, Plan, Settings};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::program;
use super::snode::TreeStore;

pub(crate) use gradients::{
    are_gradients_off, depends_beyond, detached_tensor, end_leaves, end_variables, has_history,
    has_history_in, leaf_gradients, leaves_in_use, n_tidied, roots_behind, set_gradients_off,
    tensor_gradients, tensor_made_of, tidy_tensors, variable_of_tensor,
};
pub(crate) use mapped::{one_of_tensor, vmap_tensors};
pub(crate) use values::{NativeMemory, realise_tensors, tensor_counts};

/// The settings for a call of a kernel. Kernels need `ti.init`, unless an argument is a tensor.
pub(crate) fn settings_for(
    py: Python<'_>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<program::Settings> {
    program::settings(py).or_else(|missing| {
        let named = kwargs.map(|kwargs| kwargs.values());
        for value in args.iter().chain(named.iter().flatten()) {
            if native_of(&value)?.is_some() {
                return program::settings_or_begin(py);
            }
        }
        Err(missing)
    })
}

/// The class of tensors.
static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

#[pyfunction]
pub(crate) fn set_tensor_class(class: Bound<'_, PyType>) {
    let _ = CLASS.set(class.py(), class.unbind());
}

/// What a `ti.tensor` is made by; nothing if this is none.
pub(crate) fn native_of<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, NativeTensor>>> {
    let py = value.py();
    let class = CLASS.get(py);
    if !class.is_some_and(|class| value.get_type().is(class)) {
        return Ok(None);
    }
    let native = value.getattr(pyo3::intern!(py, "_native"))?;
    Ok(Some(native.cast_into()?))
}

/// What tensors outside of programs are recorded in.
static SESSION: LazyLock<Mutex<Session>> = LazyLock::new(Mutex::default);
static CODES: LazyLock<Codes> = LazyLock::new(Codes::default);

/// What programs of tensors are compiled for.
fn made_for<'c>(settings: &program::Settings, compiler: &'c Compiler) -> Settings<'c> {
    Settings {
        compiler,
        fast_math: settings.fast_math,
        options: settings.tensor_options(),
        codes: &CODES,
        most_kept: settings.ad_memory,
        stamp: program::generation(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a tensor is recorded.
enum Home {
    /// Outside of programs.
    Lazy(Slot),
    /// In a program that is traced.
    Program(Arc<Mutex<Trace>>, Value),
}

/// A tensor: what it is made by, and its numbers once they have been asked for.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeTensor {
    home: Home,
}

impl Drop for NativeTensor {
    fn drop(&mut self) {
        if let Home::Lazy(slot) = self.home {
            lock(&SESSION).release(slot);
        }
    }
}

/// A program while it is traced.
#[pyclass(module = "aerogel._native", frozen)]
#[derive(Default)]
pub(crate) struct NativeTrace {
    trace: Arc<Mutex<Trace>>,
    /// The trees of the fields that are used.
    trees: Mutex<Vec<Arc<TreeStore>>>,
    /// The kernels of the user's that are called.
    runners: Mutex<Vec<Arc<dyn kernels::Held>>>,
}

/// A traced program, ready to run.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeProgram {
    plan: Plan,
    /// The trees of its fields.
    trees: Vec<Arc<TreeStore>>,
    stores_to_fields: bool,
    /// The kernels of the user's that it calls.
    runners: Vec<Arc<dyn kernels::Held>>,
    /// By which `ti.init` it was made.
    generation: u64,
    text: String,
    /// What became of its statements.
    explained: String,
    /// What was traced, for messages.
    traced: ended::Traced,
}

/// An extent: a number, or one of a program.
#[derive(Clone, Copy, FromPyObject, IntoPyObject)]
enum Extent {
    Number(u64),
    Of(NativeDim),
}

/// An extent that is known when a program runs.
#[pyclass(module = "aerogel._native", frozen, eq, hash, from_py_object)]
#[derive(Clone, Copy)]
pub(crate) struct NativeDim {
    size: Size,
    /// What it is as the program is traced: equal extents are one.
    dim: Dim,
}

impl PartialEq for NativeDim {
    fn eq(&self, other: &Self) -> bool {
        self.dim == other.dim
    }
}

impl Eq for NativeDim {}

impl Hash for NativeDim {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dim.hash(state);
    }
}

/// Notes where the user's program is, if something has been recorded outside of programs since the last time.
fn note() {
    if lock(&SESSION).is_noted() {
        return;
    }
    let place = Python::attach(places::here);
    lock(&SESSION).note(place);
}

fn raised(e: RecordError) -> PyErr {
    let message = e.to_string();
    match e {
        RecordError::Types { .. } => PyTypeError::new_err(message),
        RecordError::Axis { .. } | RecordError::Index(_) => PyIndexError::new_err(message),
        RecordError::Extents { .. } | RecordError::Value(_) => PyValueError::new_err(message),
        RecordError::AtPoints(_) => Python::attach(|py| crate::py::error::runtime(py, message)),
        RecordError::Ended(block) => Python::attach(|py| {
            let place = places::named(py, block).map_or_else(String::new, |p| format!(" ({p})"));
            let message = message.replacen("has ended", &format!("has ended{place}"), 1);
            PyValueError::new_err(message)
        }),
    }
}

/// Refuses what was made of one of many, once it is over.
fn expect_there(r: &Recording, buffer: Buffer) -> PyResult<()> {
    if !r.is_gone(buffer) {
        return Ok(());
    }
    let place = r.lines.get(buffer);
    let made = Python::attach(|py| places::named(py, place));
    let made = made.map_or_else(String::new, |made| format!(", made in {made},"));
    Err(PyValueError::new_err(format!(
        "a tensor{made} stands for one of many in the function that `vmap` has called, and is used outside of it: let the \
         function return it"
    )))
}

/// The same with the lines where the operands were made that do not agree.
fn raised_at(e: RecordError, places: &[Place]) -> PyErr {
    let RecordError::Extents { shapes, sides, .. } = &e else {
        return raised(e);
    };
    let mut text = e.to_string();
    if shapes.len() == places.len() {
        for (_, operand, _) in &**sides {
            let place = Python::attach(|py| places::named(py, places[*operand]));
            if let Some(place) = place {
                text += &format!("; {} is made in {place}", e.role(*operand));
            }
        }
    }
    PyValueError::new_err(text)
}

/// The exception for a step that could not be done again with what later ones have taught.
fn raised_in(py: Python<'_>, e: StepError) -> PyErr {
    let StepError { error, place } = e;
    let raised = raised(error);
    let mut text = raised.value(py).to_string();
    places::show(py, &mut text, place);
    match raised.get_type(py).call1((text,)) {
        Ok(value) => PyErr::from_value(value),
        Err(e) => e,
    }
}

fn scalar_type(name: &str) -> PyResult<ScalarType> {
    ScalarType::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no scalar type {name:?}")))
}

fn outside(name: &str) -> PyResult<Mode> {
    Mode::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "outside is clamp, wrap, zero or error, not {name:?}"
        ))
    })
}

fn dims(r: &mut Recording, shape: &[Extent]) -> Vec<Dim> {
    let extents = shape.iter();
    extents
        .map(|extent| match extent {
            Extent::Number(n) => r.program.size(*n),
            Extent::Of(dim) => r.dim(dim.size),
        })
        .collect()
}

/// A number of Python's as a scalar.
fn number(value: &Bound<'_, PyAny>, ty: ScalarType) -> PyResult<Scalar> {
    super::buffer::to_scalar(value, ty)
}
