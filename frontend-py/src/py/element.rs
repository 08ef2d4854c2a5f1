//! `ti.Matrix` and `ti.Vector`: the native part, and what reads of fields and arrays make.
//!
//! The classes are written in Python (`data/matrix.py`). Their base class is here, so that reading `x[i]` makes one
//! object without running any code of Python's.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

use super::buffer::{self, Maker};
use super::error;
use crate::host::TensorShape;

/// The classes whose instances reads make.
struct Classes {
    matrix: Py<PyType>,
    vector: Py<PyType>,
    no_arguments: Py<PyTuple>,
    /// `NativeElement.__new__`.
    new: Maker<NativeElement>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

#[pyfunction]
pub(crate) fn set_element_classes(py: Python<'_>, matrix: Py<PyType>, vector: Py<PyType>) {
    let new = buffer::maker_of::<NativeElement>(py);
    if let Some(new) = new {
        let no_arguments = PyTuple::empty(py).unbind();
        let _ = CLASSES.set(
            py,
            Classes {
                matrix,
                vector,
                no_arguments,
                new,
            },
        );
    }
}

/// The numbers of a vector or matrix, and the field or array and the index that writes to them go through to.
#[pyclass(module = "aerogel._native", subclass, weakref)]
#[derive(Default)]
pub(crate) struct NativeElement {
    /// Row by row; nothing before `_init`.
    data: Option<Py<PyList>>,
    #[pyo3(get)]
    n: usize,
    #[pyo3(get)]
    m: usize,
    #[pyo3(get)]
    ndim: usize,
    dtype: Option<Py<PyAny>>,
    owner: Option<(Py<PyAny>, Py<PyAny>)>,
}

impl NativeElement {
    /// The numbers, row by row.
    pub(crate) fn numbers<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        match &self.data {
            Some(data) => data.bind(py).clone(),
            None => PyList::empty(py),
        }
    }

    /// Rows and columns, for a matrix.
    pub(crate) fn rows_and_columns(&self) -> Option<(usize, usize)> {
        (self.ndim == 2).then_some((self.n, self.m))
    }

    /// The position of the component that a letter means, if the name is one.
    fn letter(&self, name: &Bound<'_, PyString>) -> Option<usize> {
        if self.ndim != 1 {
            return None;
        }
        let [letter] = *name.to_str().ok()?.as_bytes() else {
            return None;
        };
        let mut groups = [*b"xyzw", *b"rgba", *b"stpq"].into_iter();
        let at = groups.find_map(|group| group.iter().position(|&c| c == letter))?;
        (at < self.n).then_some(at)
    }

    /// Sets a number of Python's, first where the element was read from, which may refuse it.
    fn store(slf: &Bound<'_, Self>, at: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let this = slf.borrow();
        let data = this.numbers(py);
        let mut value = value.clone();
        if let Some(dtype) = &this.dtype {
            let is_float = dtype
                .bind(py)
                .cast::<PyString>()?
                .to_str()?
                .starts_with('f');
            let class = match is_float {
                true => py.get_type::<PyFloat>(),
                false => py.get_type::<PyInt>(),
            };
            value = class.call1((value,))?;
        } else if this.owner.is_none() && value.is_instance_of::<PyFloat>() {
            // A vector keeps the type of its numbers, as in kernels; a field checks what it takes itself.
            if data.iter().all(|number| number.is_instance_of::<PyInt>()) {
                value = py.get_type::<PyInt>().call1((value,))?;
            }
        }
        let owner = this.owner.as_ref();
        let owner = owner.map(|(owner, index)| (owner.bind(py).clone(), index.bind(py).clone()));
        drop(this);
        if let Some((owner, index)) = owner {
            owner.call_method1(pyo3::intern!(py, "_set_component"), (index, at, &value))?;
        }
        data.set_item(at, value)
    }

    /// The position of the number that indices choose; nothing if Python has to look at them.
    fn position(&self, key: &Bound<'_, PyAny>) -> Option<PyResult<usize>> {
        let within = |k: &Bound<'_, PyAny>, size: usize| -> Option<PyResult<usize>> {
            let k: i64 = k.cast_exact::<PyInt>().ok()?.extract().ok()?;
            let at = if k < 0 { k + size as i64 } else { k };
            Some(match usize::try_from(at) {
                Ok(at) if at < size => Ok(at),
                _ => Err(PyIndexError::new_err(format!(
                    "index {k} is out of range for a size of {size}"
                ))),
            })
        };
        if self.ndim == 1 {
            return within(key, self.n);
        }
        let keys = key.cast_exact::<PyTuple>().ok()?;
        if keys.len() != 2 {
            return None;
        }
        let row = within(&keys.get_item(0).ok()?, self.n)?;
        let column = within(&keys.get_item(1).ok()?, self.m)?;
        Some(row.and_then(|row| Ok(row * self.m + column?)))
    }
}

/// Whether a value is a number of Python's, and none of a class derived from those.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>()
}

#[pymethods]
impl NativeElement {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.data)?;
        visit.call(&self.dtype)?;
        if let Some((owner, index)) = &self.owner {
            visit.call(owner)?;
            visit.call(index)?;
        }
        Ok(())
    }

    fn __clear__(&mut self) {
        *self = Self::default();
    }

    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Sets everything; `owner` is the field or array and the index that writes go through to.
    #[pyo3(signature = (data, n, m, ndim, dtype = None))]
    fn _init(
        &mut self,
        data: Py<PyList>,
        n: usize,
        m: usize,
        ndim: usize,
        dtype: Option<Py<PyAny>>,
    ) {
        *self = Self {
            data: Some(data),
            n,
            m,
            ndim,
            dtype,
            owner: None,
        };
    }

    #[getter]
    fn _data<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.numbers(py)
    }

    /// The name of the scalar type, if one was given.
    #[getter]
    fn _aerogel_matrix_dtype(&self) -> Option<&Py<PyAny>> {
        self.dtype.as_ref()
    }

    /// The field or array that the element was read from, and the index; writes go through to it.
    #[getter]
    fn _sink<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (owner, index) = self.owner.as_ref()?;
        Some((owner.bind(py).clone(), index.bind(py).clone()))
    }

    fn __setitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let py = slf.py();
        let at = match is_plain(value) {
            true => slf.borrow().position(key),
            false => None,
        };
        match at {
            Some(at) => Self::store(slf, at?, value),
            None => {
                slf.call_method1(pyo3::intern!(py, "_set_item"), (key, value))?;
                Ok(())
            }
        }
    }

    /// What is no attribute: a component of a vector by its letter; all others Python looks at.
    fn __getattr__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.borrow();
        match this.letter(name) {
            Some(at) => this.numbers(py).get_item(at),
            None => {
                drop(this);
                slf.call_method1(pyo3::intern!(py, "_attribute"), (name,))
            }
        }
    }

    fn __setattr__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let py = slf.py();
        let at = match is_plain(value) {
            true => slf.borrow().letter(name),
            false => None,
        };
        match at {
            Some(at) => Self::store(slf, at, value),
            None => {
                slf.call_method1(pyo3::intern!(py, "_set_attribute"), (name, value))?;
                Ok(())
            }
        }
    }

    /// Sets a number, here and where the element was read from.
    fn _store(slf: &Bound<'_, Self>, at: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::store(slf, at, value)
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.borrow();
        match this.position(key) {
            Some(at) => this.numbers(py).get_item(at?),
            None => {
                drop(this);
                slf.call_method1(pyo3::intern!(py, "_item"), (key,))
            }
        }
    }
}

/// A `ti.Vector` or `ti.Matrix`; writes to its components go through to `owner[index]`.
pub(crate) fn make_element<'py>(
    py: Python<'py>,
    data: Bound<'py, PyList>,
    shape: TensorShape,
    owner: Option<(&Bound<'py, PyAny>, &Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyAny>> {
    let classes = CLASSES
        .get(py)
        .ok_or_else(|| error::runtime(py, "the package is not loaded"))?;
    let ((n, m), ndim) = (shape.rows_and_columns(), shape.n_axes());
    let class = match ndim {
        1 => &classes.vector,
        _ => &classes.matrix,
    };
    let made = classes
        .new
        .make(class.bind(py), classes.no_arguments.bind(py))?;
    *made.cast::<NativeElement>()?.borrow_mut() = NativeElement {
        data: Some(data.unbind()),
        n: n as usize,
        m: m as usize,
        ndim: ndim as usize,
        dtype: None,
        owner: owner.map(|(owner, index)| (owner.clone().unbind(), index.clone().unbind())),
    };
    Ok(made)
}
