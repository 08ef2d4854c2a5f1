//! Arrays of a launch that share memory, where kernels get copies of some.
//!
//! Writes of a kernel to a copy reach the user's array only after the launch. If two array arguments share memory and one
//! of them is a copy, the kernel would see old values, and copying back would undo its writes through the other. So the
//! same array passed twice is copied once, and other overlaps are refused.

use std::sync::Arc;

use aerogel_runtime::TreeMemory;
use aerogel_snode::NodeId;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::argument::Packed;
use super::foreign::array::addresses;
use super::foreign::copies::Copied;
use super::foreign::overlap::Footprint;
use super::summary::FieldSummary;

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
pub(crate) fn refused<'p>(
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
            "the array for argument `{x}` of kernel `{kernel}` and another one that the kernel uses {what}"
        ),
    })
}

/// Refuses an array over the memory of a field that the kernel accesses by name as well: code is generated for arrays and
/// fields that share no memory. `matters` tells whether the launch writes to the array of a number, or to any field.
pub(crate) fn expect_no_fields<'p>(
    packed: impl Iterator<Item = &'p Packed>,
    (fields, trees): (&[FieldSummary], &[Arc<TreeMemory>]),
    kernel: &str,
    matters: impl Fn(usize) -> bool,
) -> PyResult<()> {
    if trees.is_empty() {
        return Ok(());
    }
    let arrays = packed.filter_map(|packed| match packed {
        Packed::Array {
            array,
            copied,
            name,
            ..
        } => Some((array, copied.as_deref(), name)),
        Packed::Slots(_) => None,
    });
    for (k, (array, copied, name)) in arrays.enumerate() {
        let range = match copied {
            Some(copied) => copied.array.footprint().range(),
            None => addresses(array.buffer()?),
        };
        let is_near = |tree: &Arc<TreeMemory>| {
            let whole = addresses(tree.bytes());
            range.start < whole.end && whole.start < range.end
        };
        if !trees.iter().any(is_near) || !matters(k) {
            continue;
        }
        let footprint = match copied {
            Some(copied) => copied.array.footprint(),
            None => Footprint::whole(range.clone()),
        };
        let same = fields.iter().find(|field| {
            let memory = &trees[field.tree];
            let mut places = field.places.iter();
            is_near(memory)
                && places.any(|&place| of_place(memory, place).is_some_and(|f| f.meets(&footprint)))
        });
        if let Some(field) = same {
            return Err(PyValueError::new_err(format!(
                "the array for argument `{name}` of kernel `{kernel}` is over the memory of the field `{}`, which the kernel \
                 accesses too; pass a copy, or the field as a ti.template() argument",
                field.name
            )));
        }
    }
    Ok(())
}

/// The bytes of a component of a field; nothing if it is no strided array.
fn of_place(memory: &TreeMemory, place: NodeId) -> Option<Footprint> {
    let tree = memory.tree();
    let (base, strides) = tree.strides(place)?;
    let bytes = tree[place].kind.scalar()?.bytes() as usize;
    let shape: Vec<usize> = tree.shape(place).iter().map(|&n| n as usize).collect();
    let strides: Vec<isize> = strides.iter().map(|&stride| stride as isize).collect();
    let start = addresses(memory.bytes()).start + base as usize;
    Some(Footprint::new(start, bytes, &shape, &strides))
}
