//! Textures as arguments: the array of their texels, and the format that the instance is specialised for.

use std::sync::Arc;

use pyo3::prelude::*;

use super::argument::{KeyPart, Packed};
use super::array_argument::Wanted;
use super::error;
use super::signature::Signature;

/// A texture as it is passed.
pub(crate) struct Texels {
    pub(crate) packed: Packed,
    pub(crate) key: [KeyPart; 2],
}

impl Signature {
    pub(crate) fn texels(
        &self,
        py: Python<'_>,
        name: &Arc<str>,
        value: &Bound<'_, PyAny>,
        ndim: u32,
        format: Option<i64>,
    ) -> PyResult<Texels> {
        let wrong = |what: String| {
            let what = format!("argument `{name}` of kernel `{}` {what}", self.name);
            error::exception(py, "AerogelRuntimeTypeError", what)
        };
        if !value.hasattr(pyo3::intern!(py, "_aerogel_texture"))? {
            let provided = value.get_type().name()?;
            return Err(wrong(format!("takes a ti.Texture, not a {provided}")));
        }
        let n_axes: u32 = value.getattr("num_dims")?.extract()?;
        if n_axes != ndim {
            let what = format!("is annotated for textures with {ndim} axes, this one has {n_axes}");
            return Err(wrong(what));
        }
        let own = value.getattr("fmt")?;
        let number: i64 = own.getattr("value")?.extract()?;
        if format.is_some_and(|wanted| wanted != number) {
            let wanted = own.get_type().call1((format,))?;
            let what = format!("is annotated for textures of {wanted}, this one is of {own}");
            return Err(wrong(what));
        }
        let (packed, part) = self.array(py, name, &value.getattr("_texels")?, Wanted::default())?;
        let key = [KeyPart::Int(i128::from(number)), part];
        Ok(Texels { packed, key })
    }
}
