//! Arrays whose elements do not lie in row-major order without gaps, of which kernels get copies that do.
//!
//! What a kernel writes into a copy is in the user's array only afterwards. So where two arrays that a kernel gets share
//! memory and one of them is a copy, the kernel would see old values, and copying back would undo what it
//! wrote through the other: the same array given twice is copied once, and all else is refused.

use std::sync::Arc;

use aerogel_runtime::Buffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::array::{ForeignArray, addresses};
use super::overlap::Footprint;
use crate::py::argument::Packed;
use crate::py::error;

/// An array of the user's and its copy.
pub(crate) struct Copied {
    pub(crate) array: ForeignArray,
    copy: Arc<Buffer>,
}

impl Copied {
    /// Copies an array.
    pub(crate) fn new(array: ForeignArray) -> PyResult<(Arc<Buffer>, Self)> {
        let copy = Arc::new(array.copied()?);
        Ok((copy.clone(), Self { array, copy }))
    }

    /// Whether several of the array's elements may lie at one place, which a copy has apart.
    pub(crate) fn may_repeat(&self) -> bool {
        self.array.may_repeat()
    }

    pub(crate) fn copy_back(&self) -> PyResult<()> {
        self.array.copy_back(&self.copy).map_err(error::memory)
    }
}

/// An array among the others.
struct Seen<'p> {
    footprint: Footprint,
    copied: Option<&'p Copied>,
}

/// For each of the arrays that a kernel gets which one's memory that is: an earlier one's if
/// that is a copy of the same array. Nothing if none is a copy: each gets its own.
///
/// # Errors
/// The numbers of two that a kernel must not get together.
pub(crate) fn sources<'p>(
    packed: impl Iterator<Item = &'p Packed> + Clone,
    is_written: impl Fn(usize) -> bool,
) -> PyResult<Result<Vec<usize>, [usize; 2]>> {
    let mut arrays = packed.filter_map(|packed| match packed {
        Packed::Array { array, copied, .. } => Some((array, copied.as_deref())),
        Packed::Slots(_) => None,
    });
    if !arrays.clone().any(|(_, copied)| copied.is_some()) {
        return Ok(Ok(Vec::new()));
    }
    let mut seen: Vec<Seen<'_>> = Vec::new();
    let mut sources = Vec::new();
    for (array, copied) in arrays.by_ref() {
        let this = Seen {
            footprint: match copied {
                Some(copied) => copied.array.footprint(),
                None => Footprint::whole(addresses(array.buffer()?)),
            },
            copied,
        };
        let at = seen.len();
        let mut source = at;
        for (k, other) in seen.iter().enumerate() {
            if this.copied.is_none() && other.copied.is_none() {
                continue;
            }
            match (this.copied, other.copied) {
                (Some(x), Some(y)) if x.array.is_same(&y.array) => source = source.min(k),
                _ if !is_written(at) && !is_written(k) => {}
                _ if this.footprint.meets(&other.footprint) => return Ok(Err([k, at])),
                _ => {}
            }
        }
        sources.push(source);
        seen.push(this);
    }
    Ok(Ok(sources))
}

/// The exception for two arrays of a launch that share memory, one of which is copied.
pub(crate) fn share_memory<'p>(
    kernel: &str,
    all: impl Iterator<Item = &'p Packed>,
    n_args: usize,
    pair: [usize; 2],
) -> PyErr {
    let arrays = all.enumerate().filter_map(|(at, packed)| match packed {
        Packed::Array { name, .. } => Some((at, name)),
        Packed::Slots(_) => None,
    });
    let arrays: Vec<(usize, &Arc<str>)> = arrays.collect();
    let [(_, x), (at, y)] = pair.map(|k| arrays[k]);
    let what = "share memory, and one is not C-contiguous and aligned, so that the kernel gets a copy of it; pass a copy of \
                your own";
    // Those of derivatives are named after what they belong to.
    PyValueError::new_err(match at >= n_args && !y.contains('.') {
        false => {
            format!("the arrays for arguments `{x}` and `{y}` of kernel `{kernel}` {what}")
        }
        true => format!(
            "the array for argument `{x}` of kernel `{kernel}` and one that it uses by another name {what}"
        ),
    })
}
