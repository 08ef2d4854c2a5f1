//! A program ready to run.

use std::fmt;
use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::{CompileError, Compiler};
use aerogel_runtime::Buffer;
use aerogel_runtime::buffer::MemoryError;

use crate::interp;
use crate::program::Program;

/// A row-major array in memory.
#[derive(Clone)]
pub struct Operand {
    /// Its bytes.
    pub buffer: Arc<Buffer>,
    /// The type of its elements.
    pub ty: ScalarType,
    /// Its extents.
    pub shape: Vec<usize>,
}

/// Why a program ended early. Inputs that it changes are then as far as it got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// What the statements say.
    Failure(interp::Failure),
    /// There is no memory.
    Memory(MemoryError),
}

impl From<interp::Failure> for RunError {
    fn from(e: interp::Failure) -> Self {
        Self::Failure(e)
    }
}

impl From<MemoryError> for RunError {
    fn from(e: MemoryError) -> Self {
        Self::Memory(e)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(e) => e.fmt(f),
            Self::Memory(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl Operand {
    /// An array of zeros.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn zeros(ty: ScalarType, shape: &[usize]) -> Result<Self, MemoryError> {
        let failure = MemoryError::OutOfMemory { bytes: usize::MAX };
        let n = shape.iter().try_fold(1_usize, |n, &e| n.checked_mul(e));
        let bytes = n.and_then(|n| n.checked_mul(ty.bytes() as usize));
        Ok(Self {
            buffer: Arc::new(Buffer::zeroed(bytes.ok_or(failure)?)?),
            ty,
            shape: shape.to_vec(),
        })
    }

    fn to_array(&self) -> Result<interp::Array, MemoryError> {
        let size = self.ty.bytes() as usize;
        let n: usize = self.shape.iter().product();
        let elements = (0..n).map(|k| self.buffer.read_scalar(self.ty, k * size));
        Ok(interp::Array {
            ty: self.ty,
            shape: self.shape.clone(),
            data: elements.collect::<Result<Vec<Scalar>, _>>()?,
        })
    }

    fn take(&self, array: &interp::Array) -> Result<(), MemoryError> {
        let size = self.ty.bytes() as usize;
        let mut all = array.data.iter().enumerate();
        all.try_for_each(|(k, &value)| self.buffer.write_scalar(k * size, value))
    }
}

/// A program ready to run.
pub struct Plan {
    program: Program,
}

impl Plan {
    /// Makes a program ready.
    ///
    /// # Errors
    /// As `Compiler::compile`.
    pub fn new(program: Program, _compiler: &Compiler) -> Result<Self, CompileError> {
        Ok(Self { program })
    }

    /// Runs the program: its results. `inputs` are in the program's order, and changed by what it stores to them.
    ///
    /// # Errors
    /// Why it ended early.
    pub fn run(&self, inputs: &[Operand]) -> Result<Vec<Operand>, RunError> {
        let arrays = inputs.iter().map(Operand::to_array);
        let mut arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let results = interp::run(&self.program, &mut arrays);
        for (operand, array) in inputs.iter().zip(&arrays) {
            operand.take(array)?;
        }
        let make = |array: interp::Array| {
            let operand = Operand::zeros(array.ty, &array.shape)?;
            operand.take(&array)?;
            Ok(operand)
        };
        results?.into_iter().map(make).collect()
    }
}
