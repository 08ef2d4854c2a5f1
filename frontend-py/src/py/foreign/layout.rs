//! The description of an array of another package, independent of its memory.

use aerogel_base::ScalarType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Why a kernel must not write to an array: the end of a sentence about it.
pub(crate) type ReadOnly = Option<&'static str>;

pub(crate) const READ_ONLY: &str = "is read-only";

/// The description of an array, independent of its memory.
pub(crate) struct Layout {
    /// The type of an element, if it is one of ours.
    pub(crate) ty: Option<ScalarType>,
    pub(crate) itemsize: usize,
    pub(crate) shape: Vec<usize>,
    /// The bytes from one element to the next along each axis; nothing if there are no gaps.
    pub(crate) strides: Option<Vec<isize>>,
    pub(crate) address: usize,
    pub(crate) read_only: ReadOnly,
}

impl Layout {
    /// Whether elements lie in row-major order without gaps.
    pub(super) fn has_no_gaps(&self, packed: &[isize]) -> bool {
        let Some(strides) = self.strides.as_ref().filter(|_| !self.shape.contains(&0)) else {
            return true;
        };
        let mut axes = self.shape.iter().zip(strides).zip(packed);
        axes.all(|((&extent, stride), packed)| extent == 1 || stride == packed)
    }

    /// Checks that elements lie in row-major order without gaps.
    pub(crate) fn expect_plain(&self) -> PyResult<()> {
        match self.has_no_gaps(&row_major(&self.shape, self.itemsize)) {
            true => Ok(()),
            false => Err(PyValueError::new_err(
                "the array is not C-contiguous: pass a contiguous copy of it",
            )),
        }
    }
}

/// The strides of row-major order without gaps.
pub(super) fn row_major(shape: &[usize], itemsize: usize) -> Vec<isize> {
    let mut next = itemsize as isize;
    let mut strides = vec![0; shape.len()];
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next = next.saturating_mul(extent as isize);
    }
    strides
}

/// The dtype that NumPy describes by a letter and a number of bytes.
pub(crate) fn scalar_of(kind: u8, itemsize: usize) -> Option<ScalarType> {
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
