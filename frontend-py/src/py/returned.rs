//! Conversion of a kernel's results to Python objects.

use aerogel_base::Scalar;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::program::Settings;
use super::signature::{Signature, ValueSpec};
use super::{buffer, element};
use crate::host::TensorShape;

impl Signature {
    /// The values of the results' types that the slots hold.
    pub(super) fn returned<'py>(
        &self,
        py: Python<'py>,
        settings: &Settings,
        types: &[ValueSpec],
        mut slots: &[u64],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut values = Vec::with_capacity(types.len());
        for ty in types {
            values.push(value_of(py, settings, ty, &mut slots)?);
        }
        if self.many {
            return Ok(PyList::new(py, values)?.into_any());
        }
        Ok(values.pop().unwrap_or_else(|| py.None().into_bound(py)))
    }
}

/// The value of a type that the next slots hold.
fn value_of<'py>(
    py: Python<'py>,
    settings: &Settings,
    ty: &ValueSpec,
    slots: &mut &[u64],
) -> PyResult<Bound<'py, PyAny>> {
    let ty = match ty {
        ValueSpec::Tensor(ty) => ty,
        ValueSpec::Struct(spec) => {
            let members = PyDict::new(py);
            for (name, ty) in &spec.members {
                members.set_item(name, value_of(py, settings, ty, slots)?)?;
            }
            return spec.ty.bind(py).call((), Some(&members));
        }
    };
    let elem = ty.elem.resolve(settings);
    let (mine, rest) = slots.split_at(ty.n_components());
    *slots = rest;
    let mut components = Vec::with_capacity(mine.len());
    for &slot in mine {
        components.push(buffer::to_python(py, Scalar::from_slot(elem, slot))?);
    }
    match ty.shape {
        TensorShape::Scalar => Ok(components.swap_remove(0)),
        _ => element::make_element(py, PyList::new(py, components)?, ty.shape, None),
    }
}
