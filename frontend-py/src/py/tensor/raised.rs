//! Exceptions for what cannot be recorded, with the lines where things were made.

use aerogel_tensor::Buffer;
use aerogel_tensor::ir::Place;
use aerogel_tensor::record::trace::StepError;
use aerogel_tensor::record::{RecordError, Recording};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::native::{SESSION, lock};
use super::places;

/// Notes where the user's program is, if something has been recorded outside of programs since the last time.
pub(super) fn note() {
    if lock(&SESSION).is_noted() {
        return;
    }
    let place = Python::attach(places::here);
    lock(&SESSION).note(place);
}

pub(super) fn raised(e: RecordError) -> PyErr {
    let message = e.to_string();
    match e {
        RecordError::Types { .. } => PyTypeError::new_err(message),
        RecordError::Axis { .. } | RecordError::Index(_) => PyIndexError::new_err(message),
        RecordError::Extents { .. } | RecordError::Value(_) => PyValueError::new_err(message),
        RecordError::NoGradient(_, place) => Python::attach(|py| {
            let mut message = message;
            places::show(py, &mut message, place);
            PyValueError::new_err(message)
        }),
        RecordError::AtPoints(_) => Python::attach(|py| crate::py::error::runtime(py, message)),
        RecordError::Ended(block) => Python::attach(|py| {
            let place = places::named(py, block).map_or_else(String::new, |p| format!(" ({p})"));
            let message = message.replacen("has ended", &format!("has ended{place}"), 1);
            PyValueError::new_err(message)
        }),
    }
}

/// Refuses a symbolic tensor after its `vmap` has ended.
pub(super) fn expect_there(r: &Recording, buffer: Buffer) -> PyResult<()> {
    if !r.is_gone(buffer) {
        return Ok(());
    }
    let place = r.lines.get(buffer);
    let made = Python::attach(|py| places::named(py, place));
    let made = made.map_or_else(String::new, |made| format!(", made in {made},"));
    Err(PyValueError::new_err(format!(
        "a tensor{made} belongs to a function that `vmap` has called, and is used outside of it: let the \
         function return it"
    )))
}

/// The same with the lines where the operands were made that do not agree.
pub(super) fn raised_at(e: RecordError, places: &[Place]) -> PyErr {
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
pub(super) fn raised_in(py: Python<'_>, e: StepError) -> PyErr {
    let StepError { error, place } = e;
    let raised = raised(error);
    let mut text = raised.value(py).to_string();
    places::show(py, &mut text, place);
    match raised.get_type(py).call1((text,)) {
        Ok(value) => PyErr::from_value(value),
        Err(e) => e,
    }
}
