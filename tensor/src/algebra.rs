//! Linear algebra and Fourier transforms of whole buffers: what each takes and gives, and how a library is asked for it.
//!
//! Leading axes are a batch: each matrix, or each row, is done by itself. Complex numbers are two buffers.

use std::fmt;

use aerogel_base::ScalarType;
use aerogel_linalg::Number;
use aerogel_linalg::decompose::{self, DenseError};
use aerogel_linalg::fourier::{self, Transformed};
use aerogel_runtime::buffer::MemoryError;
use bytemuck::Pod;

use crate::operand::Operand;

aerogel_base::kinds! {
    /// What is computed of matrices.
    Algebra {
        /// Orthonormal columns, as many as the smaller extent, and an upper triangle: `q, r = a`.
        Qr = "qr",
        /// The same with as many columns as rows.
        QrComplete = "qr_complete",
        /// `u, s, vh = a`, as many singular values as the smaller extent, from the largest.
        Svd = "svd",
        /// The same with square `u` and `vh`.
        SvdFull = "svd_full",
        /// Singular values alone.
        SvdVals = "svdvals",
        /// A lower triangle, of a symmetric matrix.
        Cholesky = "cholesky",
        /// `l, u, perm = a`: a lower and an upper triangle, and which row of `a` each row of their product is, as a float.
        Lu = "lu",
        /// `x = (a, b)` with `a x = b`.
        Solve = "solve",
        /// The inverse.
        Inv = "inv",
        /// The determinant.
        Det = "det",
        /// Its sign, and the logarithm of its size.
        SlogDet = "slogdet",
        /// Eigenvalues in rising order and eigenvectors of a symmetric matrix.
        Eigh = "eigh",
        /// These eigenvalues alone.
        EigValsh = "eigvalsh",
        /// Eigenvalues and eigenvectors, real and imaginary parts of both.
        Eig = "eig",
        /// Eigenvalues alone.
        EigVals = "eigvals",
    }
}

aerogel_base::kinds! {
    /// What is computed of rows, along the last axis; nothing is scaled.
    Transform {
        /// `sum over j of x[j] * exp(-2 pi i j k / n)`.
        Forwards = "fft",
        /// The same with the other sign.
        Backwards = "fft_back",
        /// Of real numbers; as many as there are different ones.
        OfReal = "fft_of_real",
        /// Backwards, of as many as there are different ones, to real numbers.
        ToReal = "fft_to_real",
    }
}

impl Algebra {
    /// How many axes of each input and of each output are not the batch's.
    pub fn axes(self) -> (&'static [usize], &'static [usize]) {
        match self {
            Self::Qr | Self::QrComplete => (&[2], &[2, 2]),
            Self::Svd | Self::SvdFull => (&[2], &[2, 1, 2]),
            Self::SvdVals | Self::EigValsh => (&[2], &[1]),
            Self::Cholesky | Self::Inv => (&[2], &[2]),
            Self::Lu => (&[2], &[2, 2, 1]),
            Self::Solve => (&[2, 2], &[2]),
            Self::Det => (&[2], &[0]),
            Self::SlogDet => (&[2], &[0, 0]),
            Self::Eigh => (&[2], &[1, 2]),
            Self::Eig => (&[2], &[1, 1, 2, 2]),
            Self::EigVals => (&[2], &[1, 1]),
        }
    }

    /// Whether it takes square matrices only.
    pub fn is_of_squares(self) -> bool {
        !matches!(
            self,
            Self::Qr | Self::QrComplete | Self::Svd | Self::SvdFull | Self::SvdVals | Self::Lu
        )
    }
}

impl Transform {
    /// How many buffers it takes and gives.
    pub fn operands(self) -> (usize, usize) {
        match self {
            Self::Forwards | Self::Backwards => (2, 2),
            Self::OfReal => (1, 2),
            Self::ToReal => (2, 1),
        }
    }
}

/// Why a library has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryError {
    /// There is no memory.
    Memory(MemoryError),
    /// Of which operation, for which matrix of how many, and why.
    Dense(Algebra, usize, usize, DenseError),
}

impl From<MemoryError> for LibraryError {
    fn from(e: MemoryError) -> Self {
        Self::Memory(e)
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(e) => e.fmt(f),
            Self::Dense(op, _, 1, e) => write!(f, "`{op}`: {e}"),
            Self::Dense(op, at, n, e) => write!(f, "`{op}`: {e} (number {at} of {n})"),
        }
    }
}

/// Numbers as buffers have them.
pub(crate) trait Stored: Number + Transformed + Pod {
    /// The numbers of an operand.
    fn read(operand: &Operand) -> Result<Vec<Self>, MemoryError> {
        let mut all = bytemuck::zeroed_vec(operand.shape.iter().product());
        Self::read_from(operand, 0, &mut all)?;
        Ok(all)
    }

    /// Some numbers of an operand, from one on.
    fn read_from(operand: &Operand, first: usize, some: &mut [Self]) -> Result<(), MemoryError> {
        let offset = first * size_of::<Self>();
        operand.buffer.read(offset, bytemuck::cast_slice_mut(some))
    }

    /// Gives an operand these numbers.
    fn write(operand: &Operand, all: &[Self]) -> Result<(), MemoryError> {
        Self::write_to(operand, 0, all)
    }

    /// Gives some of its numbers, from one on.
    fn write_to(operand: &Operand, first: usize, some: &[Self]) -> Result<(), MemoryError> {
        let offset = first * size_of::<Self>();
        operand.buffer.write(offset, bytemuck::cast_slice(some))
    }
}

impl Stored for f32 {}
impl Stored for f64 {}

/// Numbers of a type that a library takes.
macro_rules! typed {
    ($ty:expr, $f:ident($($arg:expr),*)) => {
        match $ty {
            ScalarType::F32 => $f::<f32>($($arg),*),
            _ => $f::<f64>($($arg),*),
        }
    };
}

pub(crate) fn algebra(
    op: Algebra,
    inputs: &[Operand],
    outputs: &[Operand],
    n_threads: usize,
) -> Result<(), LibraryError> {
    typed!(inputs[0].ty, matrices(op, inputs, outputs, n_threads))
}

pub(crate) fn transform(
    op: Transform,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<(), LibraryError> {
    typed!(inputs[0].ty, rows(op, inputs, outputs))
}

fn matrices<T: Stored>(
    op: Algebra,
    inputs: &[Operand],
    outputs: &[Operand],
    n_threads: usize,
) -> Result<(), LibraryError> {
    let all: Vec<Vec<T>> = inputs.iter().map(T::read).collect::<Result<_, _>>()?;
    let shape = &inputs[0].shape;
    let (batch, own) = shape.split_at(shape.len() - 2);
    let (n, m, n_batch) = (own[0], own[1], batch.iter().product::<usize>());
    let size = |operand: &Operand, axes: usize| -> usize {
        let from = operand.shape.len() - axes;
        operand.shape[from..].iter().product()
    };
    let columns = |operand: &Operand| operand.shape.last().copied().unwrap_or(1);
    let sizes = |operands: &[Operand], axes: &[usize]| -> Vec<usize> {
        operands
            .iter()
            .zip(axes)
            .map(|(o, &k)| size(o, k))
            .collect()
    };
    let (in_axes, out_axes) = op.axes();
    let (in_sizes, out_sizes) = (sizes(inputs, in_axes), sizes(outputs, out_axes));
    let zero = T::of(0.0);
    let mut made: Vec<Vec<T>> = out_sizes.iter().map(|&n| vec![zero; n * n_batch]).collect();
    let mut perm = vec![0; n];
    for at in 0..n_batch {
        let given = |k: usize| &all[k][at * in_sizes[k]..][..in_sizes[k]];
        let mut parts = made.iter_mut().zip(&out_sizes);
        let mut next = || {
            let (all, &size) = parts.next().expect("the verifier counts operands");
            &mut all[at * size..][..size]
        };
        let a = given(0);
        let done = match op {
            Algebra::Qr | Algebra::QrComplete => {
                decompose::qr(a, [n, m, columns(&outputs[0])], next(), next(), n_threads);
                Ok(())
            }
            Algebra::Svd | Algebra::SvdFull => {
                let (p, q) = (
                    columns(&outputs[0]),
                    out_sizes[2].checked_div(m).unwrap_or(0),
                );
                let (u, s, vh) = (next(), next(), next());
                decompose::svd(a, [n, m, p, q], u, s, vh, n_threads)
            }
            Algebra::SvdVals => decompose::singular_values(a, [n, m], next(), n_threads),
            Algebra::Cholesky => decompose::cholesky(a, n, next(), n_threads),
            Algebra::Lu => {
                decompose::lu(a, [n, m], next(), next(), &mut perm, n_threads);
                let places = next();
                let both = places.iter_mut().zip(&perm);
                both.for_each(|(to, &from)| *to = T::of(from as f64));
                Ok(())
            }
            Algebra::Solve => {
                let columns = columns(&outputs[0]);
                decompose::solve(a, given(1), [n, columns], next(), n_threads)
            }
            Algebra::Inv => decompose::inverse(a, n, next(), n_threads),
            Algebra::Det => {
                next()[0] = decompose::determinant(a, n, n_threads).0;
                Ok(())
            }
            Algebra::SlogDet => {
                let (_, sign, log) = decompose::determinant(a, n, n_threads);
                (next()[0], next()[0]) = (sign, log);
                Ok(())
            }
            Algebra::Eigh => decompose::symmetric_eigen(a, n, next(), Some(next()), n_threads),
            Algebra::EigValsh => decompose::symmetric_eigen(a, n, next(), None, n_threads),
            Algebra::Eig => {
                let (values, vectors) = ([next(), next()], [next(), next()]);
                decompose::eigen(a, n, values, Some(vectors), n_threads)
            }
            Algebra::EigVals => decompose::eigen(a, n, [next(), next()], None, n_threads),
        };
        done.map_err(|e| LibraryError::Dense(op, at, n_batch, e))?;
    }
    for (output, all) in outputs.iter().zip(&made) {
        T::write(output, all)?;
    }
    Ok(())
}

fn rows<T: Stored>(
    op: Transform,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<(), LibraryError> {
    let all: Vec<Vec<T>> = inputs.iter().map(T::read).collect::<Result<_, _>>()?;
    let length = |operand: &Operand| operand.shape.last().copied().unwrap_or(1);
    let empty = |operand: &Operand| vec![T::default(); operand.shape.iter().product()];
    let mut made: Vec<Vec<T>> = outputs.iter().map(empty).collect();
    match (op, &all[..], &mut made[..]) {
        (Transform::Forwards | Transform::Backwards, [re, im], [out_re, out_im]) => {
            let backwards = op == Transform::Backwards;
            fourier::transform([re, im], length(&inputs[0]), backwards, [out_re, out_im]);
        }
        (Transform::OfReal, [x], [re, im]) => {
            fourier::transform_real(x, length(&inputs[0]), [re, im]);
        }
        (Transform::ToReal, [re, im], [x]) => {
            fourier::transform_to_real([re, im], length(&outputs[0]), x);
        }
        _ => unreachable!("the verifier counts operands"),
    }
    for (output, all) in outputs.iter().zip(&made) {
        T::write(output, all)?;
    }
    Ok(())
}
