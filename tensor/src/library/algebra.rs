//! Linear algebra and Fourier transforms of whole buffers: operands, results, and the calls of a library.
//!
//! Leading axes are a batch: each matrix, or each row, is done by itself. Complex numbers are two buffers, each with its parts.

use aerogel_base::ScalarType;
use aerogel_linalg::decompose::{self, Complex, Element, Planes};
use aerogel_linalg::fourier::{self, Transformed};
use aerogel_linalg::{Number, adjugate};
use aerogel_runtime::buffer::MemoryError;
use bytemuck::Pod;

use crate::ir::{Algebra, LibraryError, Operand, Transform};

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

pub(crate) fn algebra(
    op: Algebra,
    inputs: &[Operand],
    outputs: &[Operand],
    n_threads: usize,
) -> Result<(), LibraryError> {
    let is_complex = inputs.len() > op.takes();
    match (inputs[0].ty, is_complex) {
        (ScalarType::F32, false) => matrices::<f32>(op, inputs, outputs, n_threads),
        (ScalarType::F32, true) => matrices::<Complex<f32>>(op, inputs, outputs, n_threads),
        (_, false) => matrices::<f64>(op, inputs, outputs, n_threads),
        (_, true) => matrices::<Complex<f64>>(op, inputs, outputs, n_threads),
    }
}

pub(crate) fn transform(
    op: Transform,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<(), LibraryError> {
    match inputs[0].ty {
        ScalarType::F32 => rows::<f32>(op, inputs, outputs),
        _ => rows::<f64>(op, inputs, outputs),
    }
}

fn matrices<E: Element<Real: Stored>>(
    op: Algebra,
    inputs: &[Operand],
    outputs: &[Operand],
    n_threads: usize,
) -> Result<(), LibraryError> {
    let n_planes = inputs.len() / op.takes();
    let is_complex = n_planes == 2;
    let size = |operand: &Operand, axes: usize| -> usize {
        let from = operand.shape.len() - axes;
        operand.shape[from..].iter().product()
    };
    let matrices = inputs.chunks(n_planes);
    let in_sizes: Vec<usize> = matrices.clone().map(|planes| size(&planes[0], 2)).collect();
    let read = |planes: &[Operand]| {
        let planes: Result<_, _> = planes.iter().map(E::Real::read).collect();
        Ok::<_, MemoryError>(E::of_planes(planes?))
    };
    let all: Vec<Vec<E>> = matrices.map(read).collect::<Result<_, _>>()?;
    let shape = &inputs[0].shape;
    let (batch, own) = shape.split_at(shape.len() - 2);
    let (n, m, n_batch) = (own[0], own[1], batch.iter().product::<usize>());
    // The columns of the first result.
    let columns = outputs[0].shape.last().copied().unwrap_or(1);
    let out_axes = op.axes(is_complex);
    let out_sizes: Vec<usize> = outputs
        .iter()
        .zip(out_axes)
        .map(|(o, axes)| size(o, axes))
        .collect();
    let zero = E::Real::of(0.0);
    let mut made: Vec<Vec<E::Real>> = out_sizes.iter().map(|&n| vec![zero; n * n_batch]).collect();
    let mut perm = vec![0; n];
    for at in 0..n_batch {
        let given = |k: usize| &all[k][at * in_sizes[k]..][..in_sizes[k]];
        let mut parts = made.iter_mut().zip(&out_sizes);
        let mut plane = || {
            let (all, &size) = parts.next().expect("the verifier counts operands");
            &mut all[at * size..][..size]
        };
        let mut results = op.gives(is_complex);
        let mut next = || {
            let (_, n_planes) = results.next().expect("one for each result");
            let re = plane();
            let im = (n_planes == 2).then(&mut plane);
            Planes { re, im }
        };
        let a = given(0);
        let done = match op {
            Algebra::Qr | Algebra::QrComplete => {
                decompose::qr(a, [n, m, columns], next(), next(), n_threads);
                Ok(())
            }
            Algebra::Svd | Algebra::SvdFull => {
                let (u, s, vh) = (next(), next().re, next());
                let q = vh.re.len().checked_div(m).unwrap_or(0);
                decompose::svd(a, [n, m, columns, q], u, s, vh, n_threads)
            }
            Algebra::SvdVals => decompose::singular_values(a, [n, m], next().re, n_threads),
            Algebra::Cholesky => decompose::cholesky(a, n, next(), n_threads),
            Algebra::Lu => {
                decompose::lu(a, [n, m], next(), next(), &mut perm, n_threads);
                let both = next().re.iter_mut().zip(&perm);
                both.for_each(|(to, &from)| *to = E::Real::of(from as f64));
                Ok(())
            }
            Algebra::Solve => decompose::solve(a, given(1), [n, columns], next(), n_threads),
            Algebra::Inv => decompose::inverse(a, n, next(), n_threads),
            Algebra::Adjugate => {
                adjugate::adjugate(a, n, next(), n_threads);
                Ok(())
            }
            Algebra::Det => {
                next().set(0, decompose::determinant(a, n, n_threads).0);
                Ok(())
            }
            Algebra::SlogDet => {
                let (_, sign, log) = decompose::determinant(a, n, n_threads);
                next().set(0, sign);
                next().re[0] = log;
                Ok(())
            }
            Algebra::Eigh => decompose::symmetric_eigen(a, n, next().re, Some(next()), n_threads),
            Algebra::EigValsh => decompose::symmetric_eigen(a, n, next().re, None, n_threads),
            Algebra::Eig => decompose::eigen(a, n, next(), Some(next()), n_threads),
            Algebra::EigVals => decompose::eigen(a, n, next(), None, n_threads),
        };
        done.map_err(|e| LibraryError::Dense(op, at, n_batch, e))?;
    }
    for (output, all) in outputs.iter().zip(&made) {
        E::Real::write(output, all)?;
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
