//! An array of another package on the host: its type, shape, strides and memory, and the package that is notified of
//! writes.
#![expect(unsafe_code, reason = "memory that other packages own")]

use std::any::Any;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use aerogel_base::ScalarType;
use aerogel_runtime::{Buffer, MemoryError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::layout::{Layout, ReadOnly, row_major};
use super::overlap::Footprint;
use crate::py::buffer::{Dim, copy_strided};
use crate::py::error;

/// By which rule an array is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Numpy,
    Torch,
    /// What an object returns by a protocol, which may be a copy.
    Protocol,
}

/// An array of another package's, with its memory as a buffer. It holds the array alive.
pub(crate) struct ForeignArray {
    /// The type of an element, if it is one of ours.
    pub(crate) ty: Option<ScalarType>,
    pub(crate) shape: Vec<usize>,
    /// The bytes from one element to the next along each axis.
    strides: Vec<isize>,
    itemsize: usize,
    /// Where the first element lies.
    start: usize,
    /// Whether elements lie in row-major order without gaps, each where its type may lie.
    pub(crate) plain: bool,
    pub(crate) read_only: ReadOnly,
    pub(crate) kind: Kind,
    /// The memory, if it is plain.
    buffer: Buffer,
    owner: Py<PyAny>,
    held: Option<Arc<dyn Any + Send + Sync>>,
}

impl ForeignArray {
    /// An array whose memory lives as long as `owner` and `held`.
    pub(super) fn new(
        layout: Layout,
        kind: Kind,
        owner: Py<PyAny>,
        held: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        let packed = row_major(&layout.shape, layout.itemsize);
        let has_no_gaps = layout.has_no_gaps(&packed);
        let Layout {
            ty,
            itemsize,
            shape,
            strides,
            address,
            read_only,
        } = layout;
        let is_empty = shape.contains(&0);
        let plain = has_no_gaps && (is_empty || address.is_multiple_of(itemsize.max(1)));
        let bytes = if is_empty { 0 } else { itemsize };
        let bytes = shape.iter().fold(bytes, |n, &e| n.saturating_mul(e));
        let place = NonNull::new(address as *mut u8).filter(|_| plain);
        let len = if plain { bytes } else { 0 };
        // SAFETY: a plain array has all these bytes, and `owner` and `held` keep them alive as long as the buffer.
        let buffer = unsafe { Buffer::borrowed(place.unwrap_or(NonNull::dangling()), len) };
        Self {
            ty,
            strides: strides.unwrap_or(packed),
            shape,
            itemsize,
            start: address,
            plain,
            read_only,
            kind,
            buffer,
            owner,
            held,
        }
    }

    /// The same array, held once more.
    pub(crate) fn held(&self, py: Python<'_>) -> Self {
        let layout = Layout {
            ty: self.ty,
            itemsize: self.itemsize,
            shape: self.shape.clone(),
            strides: Some(self.strides.clone()),
            address: self.start,
            read_only: self.read_only,
        };
        Self::new(layout, self.kind, self.owner.clone_ref(py), self.keeper(py))
    }

    /// What keeps the memory alive beside the owner. A tensor of PyTorch's may be given other memory by `tensor.data = other`
    /// and does not keep what it had: a launch ends before that, all that holds an array for longer needs its storage.
    fn keeper(&self, py: Python<'_>) -> Option<Arc<dyn Any + Send + Sync>> {
        let of_torch = || match self.kind {
            Kind::Torch => super::torch::storage(self.owner.bind(py)),
            _ => None,
        };
        let storage = || Some(Arc::new(of_torch()?) as _);
        self.held.clone().or_else(storage)
    }

    /// Where the first element lies.
    pub(crate) fn address(&self) -> usize {
        self.start
    }

    /// The same array, which belongs to an object that has returned it.
    pub(super) fn of_object(self, object: &Bound<'_, PyAny>) -> Self {
        Self {
            owner: object.clone().unbind(),
            held: Some(Arc::new((self.owner, self.held))),
            ..self
        }
    }

    /// The object that it was made of.
    pub(crate) fn object(&self) -> &Py<PyAny> {
        &self.owner
    }

    /// The memory and what keeps it alive.
    pub(crate) fn into_parts(self, py: Python<'_>) -> (Buffer, Owner) {
        let held = self.keeper(py);
        let owner = Owner {
            _object: self.owner,
            _held: held,
        };
        (self.buffer, owner)
    }

    /// Whether it is the same view of the same memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.start, self.ty) == (other.start, other.ty)
            && self.shape == other.shape
            && self.strides == other.strides
    }

    /// The bytes that its elements take.
    pub(crate) fn footprint(&self) -> Footprint {
        Footprint::new(self.start, self.itemsize, &self.shape, &self.strides)
    }

    /// Whether one element may lie where another lies, as in what `numpy.broadcast_to` makes. It is not so if
    /// along each axis a step leads past all that the axes with smaller steps reach.
    pub(crate) fn may_repeat(&self) -> bool {
        let mut axes: Vec<(usize, usize)> = self
            .strides
            .iter()
            .map(|stride| stride.unsigned_abs())
            .zip(self.shape.iter().copied())
            .filter(|&(_, extent)| extent > 1)
            .collect();
        axes.sort_unstable();
        let mut reach = self.itemsize;
        axes.into_iter().any(|(stride, extent)| {
            let repeats = stride < reach;
            reach = reach.saturating_add(stride.saturating_mul(extent - 1));
            repeats
        })
    }

    /// Checks that Python may write to it.
    pub(crate) fn expect_writeable(&self) -> PyResult<()> {
        match self.read_only {
            None => Ok(()),
            Some(why) => Err(PyValueError::new_err(format!("the array {why}"))),
        }
    }

    /// The memory, if elements lie in row-major order without gaps.
    pub(crate) fn buffer(&self) -> PyResult<&Buffer> {
        if self.plain {
            Ok(&self.buffer)
        } else {
            Err(PyValueError::new_err(
                "the array is not C-contiguous and aligned; pass a copy, such as numpy.array(array, order=\"C\")",
            ))
        }
    }

    /// The elements in row-major order: the memory itself, or a copy.
    pub(crate) fn contents(&self) -> PyResult<Contents<'_>> {
        match self.plain {
            true => Ok(Contents::Own(&self.buffer)),
            false => self.copied().map(Contents::Copy),
        }
    }

    /// A copy of the elements in row-major order.
    pub(crate) fn copied(&self) -> PyResult<Buffer> {
        if self.ty.is_none() {
            return Err(PyTypeError::new_err(
                "kernels do not support the array's dtype",
            ));
        }
        let n = self.shape.iter().try_fold(self.itemsize, |n, &e| {
            let n = n.checked_mul(e);
            n.ok_or(MemoryError::OutOfMemory { bytes: usize::MAX })
        });
        let copy = n.and_then(Buffer::zeroed).map_err(error::memory)?;
        self.exchange(&copy, false).map_err(error::memory)?;
        Ok(copy)
    }

    /// Copies all elements from a copy that `copied` has made.
    pub(crate) fn copy_back(&self, copy: &Buffer) -> Result<(), MemoryError> {
        self.exchange(copy, true)
    }

    fn exchange(&self, copy: &Buffer, back: bool) -> Result<(), MemoryError> {
        let packed = row_major(&self.shape, self.itemsize);
        let axes = self.shape.iter().zip(&self.strides).zip(&packed);
        // Steps back are large numbers here, and addresses wrap around.
        let dims = axes.map(|((&extent, &here), &there)| {
            let (dst, src) = if back { (here, there) } else { (there, here) };
            Dim {
                extent,
                dst: dst as usize,
                src: src as usize,
            }
        });
        let (dims, here) = (dims.collect(), self.start as *mut u8);
        let (to, from) = match back {
            true => (here, copy.address_to_read()?),
            false => (copy.address()?, here.cast_const()),
        };
        // SAFETY: the array has an element at each of these places, `owner` and `held` keep them alive, and the copy is
        // as large. What is written to has no two elements at one place: callers look at `may_repeat`.
        unsafe { copy_strided(to, from, dims, self.itemsize) };
        Ok(())
    }
}

/// Keeps the memory of another package alive.
pub(crate) struct Owner {
    _object: Py<PyAny>,
    _held: Option<Arc<dyn Any + Send + Sync>>,
}

impl Owner {
    /// An object by itself.
    pub(crate) fn of(object: Py<PyAny>) -> Self {
        Self {
            _object: object,
            _held: None,
        }
    }
}

/// The elements of an array in row-major order.
pub(crate) enum Contents<'a> {
    Own(&'a Buffer),
    Copy(Buffer),
}

impl std::ops::Deref for Contents<'_> {
    type Target = Buffer;

    fn deref(&self) -> &Buffer {
        match self {
            Self::Own(buffer) => buffer,
            Self::Copy(buffer) => buffer,
        }
    }
}

/// The addresses of a buffer's bytes.
pub(crate) fn addresses(buffer: &Buffer) -> Range<usize> {
    buffer.addresses()
}
