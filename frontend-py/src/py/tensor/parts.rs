//! Parts of axes in programs, whose extents may be known when these run.

use aerogel_tensor::record::{Bound as PartBound, Part};
use pyo3::prelude::*;

use super::{NativeTensor, NativeTrace, lock, raised};

/// A part of an axis.
#[pyclass(module = "aerogel._native", frozen, from_py_object)]
#[derive(Clone, Copy)]
pub(crate) struct NativePart {
    part: Part,
}

/// Where a part begins or ends.
#[derive(FromPyObject)]
enum Bound<'py> {
    Known(i64),
    Of(pyo3::Bound<'py, NativeTensor>),
}

#[pymethods]
impl NativePart {
    /// The part of an axis that Python's `start:stop:step` names.
    #[staticmethod]
    fn of_range(
        trace: &NativeTrace,
        x: &NativeTensor,
        axis: usize,
        bounds: (Option<Bound<'_>>, Option<Bound<'_>>, i64),
    ) -> PyResult<Self> {
        let bound = |bound: Option<Bound<'_>>| {
            bound
                .map(|bound| match bound {
                    Bound::Known(n) => Ok(PartBound::Known(n)),
                    Bound::Of(x) => trace.buffer(x.get()).map(PartBound::Of),
                })
                .transpose()
        };
        let (start, stop, step) = bounds;
        let (x, start, stop) = (trace.buffer(x)?, bound(start)?, bound(stop)?);
        let mut r = lock(trace.recording());
        let dim = r.shape(x)[axis];
        let part = r.range_part(dim, start, stop, step).map_err(raised)?;
        Ok(Self { part })
    }

    /// One index along an axis.
    #[staticmethod]
    fn of_index(trace: &NativeTrace, x: &NativeTensor, axis: usize, index: i64) -> PyResult<Self> {
        let x = trace.buffer(x)?;
        let part = lock(trace.recording()).index_part(x, axis, index);
        Ok(Self {
            part: part.map_err(raised)?,
        })
    }

    /// Whether the axis goes: one index was asked for.
    #[getter]
    fn drops(&self) -> bool {
        self.part.drops
    }

    /// The indices that it names.
    fn index(&self, trace: &NativeTrace) -> NativeTensor {
        let made = lock(trace.recording()).part_index(self.part);
        trace.tensor(made)
    }

    /// Parts of the first axes of a tensor.
    #[staticmethod]
    fn slice(trace: &NativeTrace, x: &NativeTensor, parts: Vec<Self>) -> PyResult<NativeTensor> {
        let x = trace.buffer(x)?;
        let parts: Vec<Part> = parts.iter().map(|p| p.part).collect();
        let mut r = lock(trace.recording());
        r.expect_everywhere(&[x]).map_err(raised)?;
        let made = r.slice(x, &parts).map_err(raised)?;
        drop(r);
        Ok(trace.tensor(made))
    }
}
