//! NumPy's arrays: where their elements lie, and of what type they are.
//!
//! They are read through `__array_struct__`, which is part of no ABI but NumPy's array interface and so works for
//! every version of Python and NumPy.
#![expect(unsafe_code, reason = "memory that NumPy owns")]

use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::ptr::NonNull;

use aerogel_base::ScalarType;
use aerogel_runtime::Buffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// NumPy's `PyArrayInterface`.
#[repr(C)]
struct ArrayInterface {
    two: c_int,
    nd: c_int,
    typekind: c_char,
    itemsize: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *mut c_void,
    descr: *mut c_void,
}

const C_CONTIGUOUS: c_int = 0x1;
const ALIGNED: c_int = 0x100;
const NOT_SWAPPED: c_int = 0x200;
const WRITEABLE: c_int = 0x400;

/// A NumPy array of Python's, with its memory as a buffer. It holds the array alive.
pub(crate) struct ForeignArray {
    /// The type of an element, if it is one of ours.
    pub(crate) ty: Option<ScalarType>,
    pub(crate) shape: Vec<usize>,
    /// The bytes from one element to the next along each axis.
    strides: Vec<isize>,
    itemsize: usize,
    /// Whether elements lie in row-major order without gaps, each where its type may lie.
    pub(crate) plain: bool,
    pub(crate) writeable: bool,
    buffer: Buffer,
    owner: Py<PyAny>,
}

impl ForeignArray {
    /// Reads a NumPy array.
    pub(crate) fn new(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = array.py();
        let capsule = array
            .getattr(pyo3::intern!(py, "__array_struct__"))
            .map_err(|_| PyTypeError::new_err("not a NumPy array"))?
            .cast_into::<PyCapsule>()?;
        let raw = capsule.pointer_checked(None)?;
        // SAFETY: by NumPy's array interface the capsule's pointer is to this struct, alive while the capsule is.
        let interface = unsafe { raw.cast::<ArrayInterface>().as_ref() };
        let nd = usize::try_from(interface.nd).unwrap_or(0);
        let of_axes = |start: *const isize| -> &[isize] {
            if nd == 0 || start.is_null() {
                return &[];
            }
            // SAFETY: `shape` points to `nd` extents, `strides` to as many steps if there are any.
            unsafe { std::slice::from_raw_parts(start, nd) }
        };
        let shape: Vec<usize> = of_axes(interface.shape)
            .iter()
            .map(|&e| e as usize)
            .collect();
        let strides = of_axes(interface.strides).to_vec();
        let itemsize = usize::try_from(interface.itemsize).unwrap_or(0);
        let bytes = shape.iter().product::<usize>() * itemsize;
        let start = NonNull::new(interface.data.cast::<u8>()).unwrap_or(NonNull::dangling());
        // SAFETY: the array owns these bytes (all of them if it is contiguous, which is checked before they are
        // used), and `owner` keeps it alive as long as the buffer.
        let buffer = unsafe { Buffer::borrowed(start, bytes) };
        let flag = |f: c_int| interface.flags & f != 0;
        Ok(Self {
            ty: scalar_of(interface.typekind as u8, itemsize)
                .filter(|&ty| ty != ScalarType::BF16 || is_bfloat(array))
                .filter(|_| flag(NOT_SWAPPED) || itemsize == 1),
            plain: flag(C_CONTIGUOUS) && flag(ALIGNED),
            writeable: flag(WRITEABLE),
            shape,
            strides,
            itemsize,
            buffer,
            owner: array.clone().unbind(),
        })
    }

    /// The same array, held once more.
    pub(crate) fn held(&self, py: Python<'_>) -> Self {
        let start = NonNull::new(self.buffer.addresses().start as *mut u8);
        let start = start.unwrap_or(NonNull::dangling());
        // SAFETY: the memory is that of `owner`, which this one holds too.
        let buffer = unsafe { Buffer::borrowed(start, self.buffer.len()) };
        Self {
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            buffer,
            owner: self.owner.clone_ref(py),
            ..*self
        }
    }

    /// The array itself.
    pub(crate) fn object(&self) -> &Py<PyAny> {
        &self.owner
    }

    /// The memory and what keeps it alive.
    pub(crate) fn into_parts(self) -> (Buffer, Py<PyAny>) {
        (self.buffer, self.owner)
    }

    /// The addresses from the first of the elements' bytes to the last.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let start = self.buffer.addresses().start;
        if self.plain || self.shape.contains(&0) {
            return start..start + self.buffer.len();
        }
        let (mut first, mut last) = (start, start + self.itemsize);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = stride.unsigned_abs() * (extent - 1);
            match stride {
                0.. => last += reach,
                _ => first -= reach,
            }
        }
        first..last
    }

    /// Whether it is the same view of the same memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let place = |array: &Self| (array.buffer.addresses(), array.ty);
        place(self) == place(other) && self.shape == other.shape && self.strides == other.strides
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
            reach += stride * (extent - 1);
            repeats
        })
    }

    /// The memory, if elements lie in row-major order without gaps.
    pub(crate) fn buffer(&self) -> PyResult<&Buffer> {
        if self.plain {
            Ok(&self.buffer)
        } else {
            Err(PyValueError::new_err(
                "the array is not C-contiguous and aligned; pass numpy.ascontiguousarray(array)",
            ))
        }
    }
}

/// The addresses of a buffer's bytes.
pub(crate) fn addresses(buffer: &Buffer) -> Range<usize> {
    buffer.addresses()
}

/// Whether the elements of an array are those of the package `ml_dtypes`, and not two bytes of something else.
fn is_bfloat(array: &Bound<'_, PyAny>) -> bool {
    let name = array
        .getattr("dtype")
        .and_then(|dtype| dtype.getattr("name"));
    name.is_ok_and(|name| name.eq("bfloat16").unwrap_or(false))
}

pub(super) fn scalar_of(kind: u8, itemsize: usize) -> Option<ScalarType> {
    use ScalarType::*;
    Some(match (kind, itemsize) {
        (b'b', 1) => U1,
        (b'i', 1) => I8,
        (b'i', 2) => I16,
        (b'i', 4) => I32,
        (b'i', 8) => I64,
        (b'u', 1) => U8,
        (b'u', 2) => U16,
        (b'u', 4) => U32,
        (b'u', 8) => U64,
        (b'f', 2) => F16,
        // Bytes that others call numbers.
        (b'V', 2) => BF16,
        (b'f', 4) => F32,
        (b'f', 8) => F64,
        _ => return None,
    })
}
