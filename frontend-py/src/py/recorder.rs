//! Recorders, which receive launches instead of the device: a tape of gradients, or forward mode.
//!
//! A recorder is an object of Python's, and belongs to a thread. Its `launch(kernel, args, kwargs)` is called in place
//! of each kernel, and its `write(target, key, component)` before Python writes to a field or an array,
//! `deactivate(node)` before it makes cells inactive. A program of tensors that is traced is one too, and has
//! `load_field(field, key)` and `store_field(field, key, value)`, which are called in place of reading and writing an element.

use std::cell::{Cell, RefCell};

use pyo3::PyTypeInfo;
use pyo3::prelude::*;

thread_local! {
    /// Whether there is one: all that a call looks at while nothing is recorded.
    static IS_SET: Cell<bool> = const { Cell::new(false) };
    static RECORDER: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// Makes an object the recorder of this thread, or lets it have none; gives the one before.
#[pyfunction]
#[pyo3(signature = (recorder))]
pub(crate) fn set_recorder(recorder: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    IS_SET.set(recorder.is_some());
    RECORDER.replace(recorder)
}

/// The recorder of this thread.
pub(crate) fn current(py: Python<'_>) -> Option<Py<PyAny>> {
    if !IS_SET.get() {
        return None;
    }
    RECORDER.with_borrow(|recorder| recorder.as_ref().map(|recorder| recorder.clone_ref(py)))
}

/// The program of tensors that is traced in this thread, which reads and stores to fields in place of Python.
pub(crate) fn traced<'py>(py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(recorder) = current(py) else {
        return Ok(None);
    };
    let recorder = recorder.into_bound(py);
    let is_trace = recorder.hasattr(pyo3::intern!(py, "load_field"))?;
    Ok(is_trace.then_some(recorder))
}

/// The recorder of this thread, for Python.
#[pyfunction]
pub(crate) fn recorder(py: Python<'_>) -> Option<Py<PyAny>> {
    current(py)
}

/// Tells the recorder, if there is one, that Python is about to write to a whole array.
#[pyfunction(name = "before_write")]
pub(crate) fn before_write_of_all(target: &Bound<'_, PyAny>) -> PyResult<()> {
    before_write(target, None, None)
}

/// Tells the recorder, if there is one, that Python is about to make cells of a node inactive.
pub(crate) fn before_deactivate<T: PyTypeInfo>(node: &Bound<'_, T>) -> PyResult<()> {
    if let Some(recorder) = current(node.py()) {
        recorder.call_method1(node.py(), "deactivate", (node,))?;
    }
    Ok(())
}

/// Tells the recorder, if there is one, that Python is about to write to a field or an array: to all of it, to an
/// element, or to a component of one.
pub(crate) fn before_write<T: PyTypeInfo>(
    target: &Bound<'_, T>,
    key: Option<&Bound<'_, PyAny>>,
    component: Option<usize>,
) -> PyResult<()> {
    let py = target.py();
    if let Some(recorder) = current(py) {
        recorder.call_method1(py, "write", (target, key, component))?;
    }
    Ok(())
}
