//! Arrays that programs are run on.

use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};
use aerogel_runtime::buffer::{Buffer as Bytes, MemoryError};

/// A row-major array in memory.
#[derive(Clone)]
pub struct Operand {
    /// Its bytes.
    pub buffer: Arc<Bytes>,
    /// The type of its elements.
    pub ty: ScalarType,
    /// Its shape.
    pub shape: Vec<usize>,
}

impl Operand {
    /// An array of zeros.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn zeros(ty: ScalarType, shape: &[usize]) -> Result<Self, MemoryError> {
        let bytes = Self::bytes(ty, shape)?;
        Ok(Self {
            buffer: Arc::new(Bytes::zeroed(bytes)?),
            ty,
            shape: shape.to_vec(),
        })
    }

    /// How many bytes an array takes.
    pub(crate) fn bytes(ty: ScalarType, shape: &[usize]) -> Result<usize, MemoryError> {
        let size = ty.bytes() as usize;
        let bytes = shape.iter().try_fold(size, |n, &e| n.checked_mul(e));
        bytes.ok_or(MemoryError::OutOfMemory { bytes: usize::MAX })
    }

    /// A copy as the interpreter's array.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn of(array: &Array) -> Result<Self, MemoryError> {
        let operand = Self::zeros(array.ty, &array.shape)?;
        operand.take(array)?;
        Ok(operand)
    }

    /// The same for the interpreter.
    ///
    /// # Errors
    /// If the bytes are not there.
    pub fn to_array(&self) -> Result<Array, MemoryError> {
        let size = self.ty.bytes() as usize;
        let n: usize = self.shape.iter().product();
        let elements = (0..n).map(|k| self.buffer.read_scalar(self.ty, k * size));
        Ok(Array {
            ty: self.ty,
            shape: self.shape.clone(),
            data: elements.collect::<Result<Vec<Scalar>, _>>()?,
        })
    }

    /// The same numbers in memory of their own.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn copied(&self) -> Result<Self, MemoryError> {
        Self::of_bytes(&self.buffer, self.ty, &self.shape)
    }

    /// A copy of numbers that lie row by row in a buffer.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn of_bytes(from: &Bytes, ty: ScalarType, shape: &[usize]) -> Result<Self, MemoryError> {
        /// As much as stays in the cache between reading and writing.
        const PIECE: usize = 64 << 10;
        let (out, n) = (Self::zeros(ty, shape)?, Self::bytes(ty, shape)?);
        let mut piece = vec![0; PIECE.min(n)];
        for at in (0..n).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(n - at)];
            from.read(at, piece)?;
            out.buffer.write(at, piece)?;
        }
        Ok(out)
    }

    /// The bytes of all elements.
    pub(crate) fn read(&self) -> Result<Vec<u8>, MemoryError> {
        let mut bytes = vec![0; Self::bytes(self.ty, &self.shape)?];
        self.buffer.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// The bytes of some elements, one after the other.
    pub(crate) fn read_at(&self, elements: &[usize]) -> Result<Vec<u8>, MemoryError> {
        let (bytes, size) = (self.read()?, self.ty.bytes() as usize);
        let own = elements.iter().flat_map(|&k| &bytes[k * size..][..size]);
        Ok(own.copied().collect())
    }

    pub(crate) fn take(&self, array: &Array) -> Result<(), MemoryError> {
        let size = self.ty.bytes() as usize;
        let mut all = array.data.iter().enumerate();
        all.try_for_each(|(k, &value)| self.buffer.write_scalar(k * size, value))
    }
}

/// An array, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The dtype.
    pub ty: ScalarType,
    /// The shape.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Vec<Scalar>,
}

impl Array {
    /// An array of zeros.
    pub fn zeros(ty: ScalarType, shape: &[usize]) -> Self {
        Self {
            ty,
            shape: shape.to_vec(),
            data: vec![Scalar::zero(ty); shape.iter().product()],
        }
    }

    /// The same of a shape of which nothing is known.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn try_zeros(ty: ScalarType, shape: &[usize]) -> Result<Self, MemoryError> {
        let bytes = Operand::bytes(ty, shape)?;
        let n = bytes / ty.bytes() as usize;
        let mut data = Vec::new();
        let reserved = data.try_reserve_exact(n);
        reserved.map_err(|_| MemoryError::OutOfMemory { bytes })?;
        data.resize(n, Scalar::zero(ty));
        Ok(Self {
            ty,
            shape: shape.to_vec(),
            data,
        })
    }
}
