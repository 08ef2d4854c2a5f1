//! Meshes as the frontend sees them; `aerogel/mesh.py` has the objects.

use std::rc::Rc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::host::{PyHost, mark};
use crate::host::{ElementsRef, FieldRef, Known, Offsets, RelationRef};

/// The elements of a mesh, or a relation between them; nothing if the object is neither.
pub(super) fn known<'py>(
    host: &mut PyHost<'py>,
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Known>> {
    if let Some(parts) = mark(object, "_aerogel_elements")? {
        return Ok(Some(Known::Elements(elements(host, object, &parts)?)));
    }
    let Some(parts) = mark(object, "_aerogel_relation")? else {
        return Ok(None);
    };
    let (width, offsets, targets, to): (
        i32,
        Bound<'py, PyAny>,
        Bound<'py, PyAny>,
        Bound<'py, PyAny>,
    ) = parts.extract()?;
    let offsets = if offsets.is_none() {
        Offsets::Every(width)
    } else {
        Offsets::Field(field(host, &offsets)?)
    };
    let parts = to.getattr("_aerogel_elements")?;
    Ok(Some(Known::Relation(Rc::new(RelationRef {
        handle: host.handle(object),
        to: elements(host, &to, &parts)?,
        targets: field(host, &targets)?,
        offsets,
    }))))
}

fn elements<'py>(
    host: &mut PyHost<'py>,
    object: &Bound<'py, PyAny>,
    parts: &Bound<'py, PyAny>,
) -> PyResult<Rc<ElementsRef>> {
    let (name, n) = parts.extract()?;
    let handle = host.handle(object);
    Ok(Rc::new(ElementsRef { handle, name, n }))
}

fn field<'py>(host: &mut PyHost<'py>, object: &Bound<'py, PyAny>) -> PyResult<Rc<FieldRef>> {
    match host.known(object)? {
        Known::Field(field) => Ok(field),
        _ => Err(PyTypeError::new_err("a relation is stored in fields")),
    }
}
