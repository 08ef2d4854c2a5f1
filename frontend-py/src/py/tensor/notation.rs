//! Statements over named axes, as their notation says.

use aerogel_tensor::record::notation::{self, AtLeast, Notation, Shape};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::arguments::{accum, handles};
use super::native::{Extent, NativeDim, NativeTensor};
use super::raised::raised;

/// The arguments of a call besides the text and the tensors.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct CallArgs {
    op: String,
    how: String,
    padding: String,
    /// The sizes of labels.
    extents: Vec<(String, Extent)>,
    /// The shape that the result has.
    into: Option<Vec<Extent>>,
}

fn extent(of: &Extent) -> notation::Extent {
    match *of {
        // No axis is longer.
        Extent::Number(n) => notation::Extent::Number(n.min(1 << 62) as i64),
        Extent::Of(NativeDim { size, dim }) => notation::Extent::Of(size, dim),
    }
}

fn shape(of: &[Extent]) -> Shape {
    of.iter().map(extent).collect()
}

/// Checks, when the program runs, that a size has a lower bound.
fn ask(py: Python<'_>, asked: &AtLeast) -> PyResult<()> {
    let AtLeast {
        size,
        dim,
        count,
        message,
    } = asked;
    let dim = NativeDim {
        size: *size,
        dim: *dim,
    };
    let module = py.import("aerogel.tensor._unknown")?;
    module.call_method1("extent_at_least", (dim, *count, message))?;
    Ok(())
}

impl NativeTensor {
    /// What a text makes of this and other tensors.
    pub(super) fn of_notation(
        &self,
        py: Python<'_>,
        spec: &str,
        others: &[Bound<'_, Self>],
        call: CallArgs,
    ) -> PyResult<Self> {
        let others = handles(others);
        let is_counted = matches!(&call.how[..], "add" | "mul");
        if is_counted && others.iter().chain([&self]).any(|t| t.dtype() == "u1") {
            // A sum of booleans could mean "any" or "how many".
            return Err(PyTypeError::new_err(
                "`accum` takes numbers, not booleans: write `x.astype(ti.i32)`",
            ));
        }
        let all = std::iter::once(self).chain(others.iter().copied());
        let shapes = all.map(|t| Ok(shape(&t.sizes()?)));
        let shapes: Vec<Shape> = shapes.collect::<PyResult<_>>()?;
        let given = call
            .extents
            .iter()
            .map(|(label, n)| (label.clone(), extent(n)));
        let given: Vec<_> = given.collect();
        let into = call.into.as_deref().map(shape);
        let made = Notation::of(spec, &call.padding, &shapes, &given, into.as_ref());
        let notation = made.map_err(raised)?;
        let how = accum(&call.how)?;
        let how = how.ok_or_else(|| PyValueError::new_err("`accum` accumulates"))?;
        for asked in &notation.asked {
            ask(py, asked)?;
        }
        let op = call.op;
        self.op(&others, move |r, x, o| {
            let all = [&[x], o].concat();
            r.notation(&notation, &all, &op, how)
        })
    }
}
