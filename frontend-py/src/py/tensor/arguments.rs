//! Arguments of operations, as Python passes them.

use aerogel_tensor::Accum;
use aerogel_tensor::record::{Recorded, Recording};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::native::NativeTensor;

/// An accumulation by name; `None` for `set`.
pub(super) fn accum(name: &str) -> PyResult<Option<Accum>> {
    match (name, Accum::from_name(name)) {
        ("set", _) => Ok(None),
        (_, Some(accum)) => Ok(Some(accum)),
        _ => Err(PyValueError::new_err(format!(
            "there is no accumulation {name:?}; there are {}",
            Accum::ALL
                .iter()
                .map(|a| a.name())
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

/// How a store is written, for messages.
pub(super) const STORED: &str = "x[key] = value";

/// Records an operation under another name, for messages.
pub(super) fn called<R>(
    r: &mut Recording,
    name: Option<&'static str>,
    f: impl FnOnce(&mut Recording) -> Recorded<R>,
) -> Recorded<R> {
    r.called = name;
    let out = f(r);
    r.called = None;
    out
}

pub(super) fn handles<'a, 'py>(tensors: &'a [Bound<'py, NativeTensor>]) -> Vec<&'a NativeTensor> {
    tensors.iter().map(|t| t.get()).collect()
}

/// A number of Python's, or a tensor.
#[derive(FromPyObject)]
pub(super) enum NumberOr<'py> {
    Number(f64),
    Tensor(Bound<'py, NativeTensor>),
}

impl NumberOr<'_> {
    /// As an operand beside a tensor: a number comes to it from outside, so that another number is not another program.
    pub(super) fn like(self, x: &NativeTensor) -> PyResult<NativeTensor> {
        match self {
            Self::Number(n) => x.number_like(n),
            Self::Tensor(t) => Ok(t.get().again()),
        }
    }
}
