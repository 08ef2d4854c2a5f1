//! Arrays in column-major order, of which kernels get copies in row-major order.
//!
//! What a kernel writes into a copy is in the user's array only afterwards. So where two arguments share
//! memory and one of them is a copy, the kernel would see old values, and copying back would undo what it
//! wrote through the other: the same array given twice is copied once, and all else is refused.

use std::ops::Range;

use pyo3::prelude::*;

use super::argument::Packed;
use super::buffer::{ForeignArray, addresses};

/// An array of the user's and its copy.
pub(crate) struct Copied {
    array: ForeignArray,
    original: Py<PyAny>,
    copy: Py<PyAny>,
}

impl Copied {
    pub(crate) fn new(array: ForeignArray, original: Py<PyAny>, copy: Py<PyAny>) -> Self {
        Self {
            array,
            original,
            copy,
        }
    }

    pub(crate) fn writeable(&self) -> bool {
        self.array.writeable
    }

    pub(crate) fn copy_back(&self, py: Python<'_>) -> PyResult<()> {
        let numpy = py.import("numpy")?;
        numpy.call_method1("copyto", (&self.original, &self.copy))?;
        Ok(())
    }

    fn is_same(&self, other: &Self) -> bool {
        let (x, y) = (&self.array, &other.array);
        x.addresses() == y.addresses() && x.ty == y.ty && x.shape == y.shape
    }
}

/// For each of the arrays among the arguments which one's memory the kernel gets: an earlier one's if
/// that is a copy of the same array.
///
/// # Errors
/// The names of two that a kernel must not get together.
pub(crate) fn sources(
    packed: &[Packed],
    is_written: impl Fn(usize) -> bool,
) -> PyResult<Result<Vec<usize>, [&str; 2]>> {
    let mut seen: Vec<(&str, Range<usize>, Option<&Copied>)> = Vec::new();
    let mut sources = Vec::new();
    for packed in packed {
        let Packed::Array {
            name,
            array,
            copied,
            ..
        } = packed
        else {
            continue;
        };
        let range = match copied {
            Some(copied) => copied.array.addresses(),
            None => addresses(array.buffer()?),
        };
        let at = seen.len();
        let mut source = at;
        for (k, (other_name, other_range, other)) in seen.iter().enumerate() {
            let shares = range.start.max(other_range.start) < range.end.min(other_range.end);
            if !shares || copied.is_none() && other.is_none() {
                continue;
            }
            match (copied.as_deref(), other) {
                (Some(x), Some(y)) if x.is_same(y) => source = source.min(k),
                _ if is_written(at) || is_written(k) => return Ok(Err([other_name, name])),
                _ => {}
            }
        }
        sources.push(source);
        seen.push((name, range, copied.as_deref()));
    }
    Ok(Ok(sources))
}
