//! The Python objects of tensors and traced programs, and the session in which everything outside of programs is
//! recorded.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::Compiler;
use aerogel_tensor::record::trace::{Trace, Value};
use aerogel_tensor::record::{Mode, Recording, Size};
use aerogel_tensor::session::{Session, Slot};
use aerogel_tensor::{Codes, Dim, Settings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

use super::measured::Measured;
use crate::py::snode::TreeStore;
use crate::py::{profile, program};

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
pub(super) static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

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

/// The session that records tensors outside of programs.
pub(super) static SESSION: LazyLock<Mutex<Session>> = LazyLock::new(Mutex::default);

pub(super) static CODES: LazyLock<Codes> = LazyLock::new(Codes::default);

/// What is recorded from now on does not take over values that are there.
pub(crate) fn forget_shared() {
    lock(&SESSION).forget_shared();
}

/// The compilation settings of tensor programs.
pub(super) fn made_for<'c>(settings: &program::Settings, compiler: &'c Compiler) -> Settings<'c> {
    Settings {
        compiler,
        fast_math: settings.fast_math,
        options: settings.tensor_options(),
        codes: &CODES,
        most_kept: settings.ad_memory,
        stamp: program::generation(),
        backend: 0,
        gemm: None,
        profiler: profile::is_on().then_some(&Measured),
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a tensor is recorded.
pub(super) enum Home {
    /// Outside of programs.
    Lazy(Slot),
    /// In a program that is traced.
    Program(Arc<Mutex<Trace>>, Value),
}

/// A tensor: its recorded operation, and its values once it has been evaluated.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeTensor {
    pub(super) home: Home,
}

impl Drop for NativeTensor {
    fn drop(&mut self) {
        if let Home::Lazy(slot) = self.home {
            let is_watched = {
                let mut session = lock(&SESSION);
                session.release(slot);
                session.is_watched()
            };
            if is_watched {
                super::dropped::drop_objects();
            }
        }
    }
}

/// A program while it is traced.
#[pyclass(module = "aerogel._native", frozen)]
#[derive(Default)]
pub(crate) struct NativeTrace {
    pub(super) trace: Arc<Mutex<Trace>>,
    /// The trees of the fields that are used.
    pub(super) trees: Mutex<Vec<Arc<TreeStore>>>,
    /// The kernels of the user's that are called.
    pub(super) runners: Mutex<Vec<Arc<dyn Held>>>,
}

/// The size of an axis: a number, or a size of a program.
#[derive(Clone, Copy, FromPyObject, IntoPyObject)]
pub(super) enum Extent {
    Number(u64),
    Of(NativeDim),
}

/// A size that is known when a program runs.
#[pyclass(module = "aerogel._native", frozen, eq, hash, from_py_object)]
#[derive(Clone, Copy)]
pub(crate) struct NativeDim {
    pub(super) size: Size,
    /// Its id while the program is traced: equal sizes have one id.
    pub(super) dim: Dim,
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

pub(super) fn scalar_type(name: &str) -> PyResult<ScalarType> {
    ScalarType::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no scalar type {name:?}")))
}

pub(super) fn outside(name: &str) -> PyResult<Mode> {
    Mode::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "outside is clamp, wrap, zero or error, not {name:?}"
        ))
    })
}

pub(super) fn dims(r: &mut Recording, shape: &[Extent]) -> Vec<Dim> {
    let extents = shape.iter();
    extents
        .map(|extent| match extent {
            Extent::Number(n) => r.program.size(*n),
            Extent::Of(dim) => r.dim(dim.size),
        })
        .collect()
}

/// A number of Python's as a scalar.
pub(super) fn number(value: &Bound<'_, PyAny>, ty: ScalarType) -> PyResult<Scalar> {
    crate::py::buffer::to_scalar(value, ty)
}

/// An owner of Python objects that may refer to the program, for the garbage collector.
pub(super) trait Held: Send + Sync {
    /// Reports owned references to the garbage collector.
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError>;
    /// Lets it go.
    fn clear(&self);
}
