//! Other packages: whether one has been imported, and why an array of one is refused.

use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A module that has been imported.
pub(super) fn loaded<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import("sys")?.getattr(pyo3::intern!(py, "modules"))?;
    let found = modules.cast::<PyDict>()?.get_item(name)?;
    Ok(found.filter(|module| !module.is_none()))
}

/// Why a value that is some kind of array is none that can be used.
pub(crate) enum Refused {
    /// It is of a kind that kernels do not have.
    Kind(String, Option<PyErr>),
    Value(String, Option<PyErr>),
    /// The exception that Python raised.
    Raised(PyErr),
}

impl Refused {
    pub(super) fn kind(what: impl Into<String>) -> Self {
        Self::Kind(what.into(), None)
    }

    pub(super) fn value(what: impl Into<String>) -> Self {
        Self::Value(what.into(), None)
    }

    /// What another package raised, with words before it. What is no error, such as Ctrl-C, stays as it is.
    pub(super) fn raised(py: Python<'_>, what: &str, e: &PyErr) -> Self {
        let e = e.clone_ref(py);
        if !e.is_instance_of::<PyException>(py) {
            return Self::Raised(e);
        }
        let what = format!("{what} raised {e}");
        match what.starts_with("the tensor") {
            true => Self::Kind(what, Some(e)),
            false => Self::Value(what, Some(e)),
        }
    }

    /// The exception, with what it is said of.
    pub(crate) fn of(self, py: Python<'_>, whom: &str) -> PyErr {
        let (e, cause) = match self {
            Self::Kind(what, cause) => (PyTypeError::new_err(format!("{whom}{what}")), cause),
            Self::Value(what, cause) => (PyValueError::new_err(format!("{whom}{what}")), cause),
            Self::Raised(e) => return e,
        };
        e.set_cause(py, cause);
        e
    }
}

impl From<PyErr> for Refused {
    fn from(e: PyErr) -> Self {
        Self::Raised(e)
    }
}

impl From<Refused> for PyErr {
    fn from(refused: Refused) -> Self {
        Python::attach(|py| refused.of(py, ""))
    }
}
