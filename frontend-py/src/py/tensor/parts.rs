//! Parts of axes in programs, whose extents may be known when these run.

use aerogel_tensor::record::{Bound as PartBound, Part, Piece};
use pyo3::prelude::*;

use super::{NativeTensor, NativeTrace};

/// A part of an axis.
#[pyclass(module = "aerogel._native", frozen, from_py_object)]
#[derive(Clone, Copy)]
pub(crate) struct NativePart {
    piece: Piece,
    drops: bool,
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
        let bound = |bound: Option<Bound<'_>>| match bound {
            None => Ok((None, None)),
            Some(Bound::Known(n)) => Ok((Some(n), None)),
            Some(Bound::Of(x)) => trace.value(x.get()).map(|x| (None, Some(x))),
        };
        let (start, stop, step) = bounds;
        let (x, start, stop) = (trace.value(x)?, bound(start)?, bound(stop)?);
        let piece = trace.step(move |s| {
            let x = s.buffer(x)?;
            let mut ends = Vec::new();
            for (known, of) in [start, stop] {
                let of = of.map(|of| s.buffer(of).map(PartBound::Of)).transpose()?;
                ends.push(known.map(PartBound::Known).or(of));
            }
            let dim = s.r.shape(x)[axis];
            let part = s.r.range_part(dim, ends[0], ends[1], step)?;
            Ok(s.r.piece_handle(part))
        })?;
        Ok(Self {
            piece,
            drops: false,
        })
    }

    /// One index along an axis.
    #[staticmethod]
    fn of_index(trace: &NativeTrace, x: &NativeTensor, axis: usize, index: i64) -> PyResult<Self> {
        let x = trace.value(x)?;
        let piece = trace.step(move |s| {
            let x = s.buffer(x)?;
            let part = s.r.index_part(x, axis, index)?;
            Ok(s.r.piece_handle(part))
        })?;
        Ok(Self { piece, drops: true })
    }

    /// Whether the axis goes: one index was asked for.
    #[getter]
    fn drops(&self) -> bool {
        self.drops
    }

    /// The indices that it names.
    fn index(&self, trace: &NativeTrace) -> PyResult<NativeTensor> {
        let piece = self.piece;
        trace.made_by(move |s| {
            let part = s.r.piece(piece);
            Ok(s.r.part_index(part))
        })
    }

    /// Parts of the first axes of a tensor.
    #[staticmethod]
    fn slice(trace: &NativeTrace, x: &NativeTensor, parts: Vec<Self>) -> PyResult<NativeTensor> {
        let x = trace.value(x)?;
        trace.made_by(move |s| {
            let x = s.buffer(x)?;
            s.r.expect_everywhere(&[x])?;
            let parts: Vec<Part> = parts.iter().map(|p| s.r.piece(p.piece)).collect();
            s.r.slice(x, &parts)
        })
    }
}
