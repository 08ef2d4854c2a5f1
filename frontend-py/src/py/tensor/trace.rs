//! Programs as they are traced.

use aerogel_tensor::record::Recording;
use aerogel_tensor::{Buffer, Dim, DimDef};
use pyo3::prelude::*;

use super::NativeDim;

/// An extent in Python: a number, or what is known when the program runs.
pub(super) fn extent<'py>(py: Python<'py>, r: &Recording, dim: Dim) -> PyResult<Bound<'py, PyAny>> {
    match *r.program.dim_def(dim) {
        DimDef::Const(n) => Ok(n.into_pyobject(py)?.into_any()),
        _ => Ok(NativeDim { dim }.into_pyobject(py)?.into_any()),
    }
}

/// The extents of a tensor in Python.
pub(super) fn extents<'py>(
    py: Python<'py>,
    r: &mut Recording,
    buffer: Buffer,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let shape = r.shape(buffer);
    shape.into_iter().map(|dim| extent(py, r, dim)).collect()
}
