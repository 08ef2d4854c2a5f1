//! Library calls on whole buffers.
//!
//! Products of float matrices are `faer`'s, on copies: a copy of `n * k` numbers is little beside `n * k * m` products.
//! Products of other numbers are as the interpreter does them.

mod algebra;
pub(crate) mod reference;
mod shapes;
mod sort;

use std::cell::Cell;

use aerogel_base::ScalarType;
use aerogel_linalg::multiply;
use aerogel_runtime::buffer::MemoryError;

use self::algebra::Stored;
use crate::ir::{Array, Library, LibraryError, Operand};

/// A library that multiplies matrices, in place of the own one.
pub trait Gemm: Send + Sync {
    /// `out = a b`, all row by row: `n` rows of `k` numbers, and `k` rows of `m`.
    fn f32(&self, a: &[f32], b: &[f32], out: &mut [f32], size: [usize; 3]);

    /// The same in double precision.
    fn f64(&self, a: &[f64], b: &[f64], out: &mut [f64], size: [usize; 3]);
}

/// Who computes, and by how many threads.
#[derive(Clone, Copy)]
pub(crate) struct Workers {
    pub(crate) n_threads: usize,
    pub(crate) gemm: Option<&'static dyn Gemm>,
}

impl Workers {
    const ALONE: Self = Self {
        n_threads: 1,
        gemm: None,
    };

    fn multiply<T: Stored>(self, a: &[T], b: &[T], out: &mut [T], size: [usize; 3]) {
        use bytemuck::{cast_slice, cast_slice_mut};
        match (self.gemm, size_of::<T>()) {
            (Some(gemm), 4) => {
                gemm.f32(cast_slice(a), cast_slice(b), cast_slice_mut(out), size);
            }
            (Some(gemm), 8) => {
                gemm.f64(cast_slice(a), cast_slice(b), cast_slice_mut(out), size);
            }
            _ => multiply(a, b, out, size, self.n_threads),
        }
    }
}

/// Calls a library: `outputs` have their shapes.
pub(crate) fn call(
    library: Library,
    inputs: &[Operand],
    outputs: &[Operand],
    workers: Workers,
) -> Result<(), LibraryError> {
    let [given, made] = [inputs, outputs].map(|all| {
        let shapes = all.iter().map(|operand| &operand.shape[..]);
        shapes.collect::<Vec<_>>()
    });
    shapes::fit(library, &given, &made)?;
    match (library, inputs, outputs) {
        (Library::MatMul | Library::MatMulRows, [a, b, first @ ..], [out])
            if matches!(out.ty, ScalarType::F32 | ScalarType::F64) =>
        {
            let first = match first {
                [first] => reference::row(first.buffer.read_scalar(first.ty, 0)?),
                _ => 0,
            };
            let done = match out.ty {
                ScalarType::F32 => products::<f32>(a, b, first, out, workers),
                _ => products::<f64>(a, b, first, out, workers),
            };
            Ok(done?)
        }
        (Library::Sort { descending }, [x], [values, order @ ..]) => {
            Ok(sort::rows(x, descending, values, order.first())?)
        }
        (Library::Algebra(op), ..) => algebra::algebra(op, inputs, outputs, workers.n_threads),
        (Library::Transform(op), ..) => algebra::transform(op, inputs, outputs),
        _ => by_interpreter(library, inputs, outputs),
    }
}

/// Calls the library of a name: `outputs` have their shapes.
///
/// # Errors
/// If there is none, or it has no result.
pub fn call_library(name: &str, inputs: &[Operand], outputs: &[Operand]) -> Result<(), String> {
    let library = Library::from_name(name).ok_or_else(|| format!("no library has `{name}`"))?;
    call(library, inputs, outputs, Workers::ALONE).map_err(|e| e.to_string())
}

fn by_interpreter(
    library: Library,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<(), LibraryError> {
    let arrays = |all: &[Operand]| {
        all.iter()
            .map(Operand::to_array)
            .collect::<Result<Vec<_>, _>>()
    };
    let (inputs, mut made) = (arrays(inputs)?, arrays(outputs)?);
    reference::library(library, &inputs, &mut made)?;
    let mut both = outputs.iter().zip(&made);
    Ok(both.try_for_each(|(output, array)| output.take(array))?)
}

/// The same with the interpreter's arrays.
pub(crate) fn of_arrays(
    library: Library,
    inputs: &[Array],
    outputs: &mut [Array],
) -> Result<(), LibraryError> {
    let operand = |array: &Array| {
        let out = Operand::zeros(array.ty, &array.shape)?;
        out.take(array)?;
        Ok::<_, MemoryError>(out)
    };
    let operands = |all: &[Array]| all.iter().map(operand).collect::<Result<Vec<_>, _>>();
    let (inputs, made) = (operands(inputs)?, operands(outputs)?);
    call(library, &inputs, &made, Workers::ALONE)?;
    for (array, operand) in outputs.iter_mut().zip(&made) {
        *array = operand.to_array()?;
    }
    Ok(())
}

/// The rows of a product from `first` on, as many as are there and `out` has, for each place along the leading axes.
fn products<T: Stored>(
    a: &Operand,
    b: &Operand,
    first: usize,
    out: &Operand,
    workers: Workers,
) -> Result<(), MemoryError> {
    let (&[.., rows, m], &[ref batch @ .., n, k]) = (&out.shape[..], &a.shape[..]) else {
        unreachable!("the verifier counts axes");
    };
    let there = rows.min(n.saturating_sub(first));
    let mut spare = SPARE.take();
    let [left, right, result] = &mut spare;
    let left = numbers::<T>(left, there * k);
    let right = numbers::<T>(right, k * m);
    let result = numbers::<T>(result, there * m);
    for at in 0..batch.iter().product() {
        T::read_from(a, (at * n + first) * k, left)?;
        T::read_from(b, at * k * m, right)?;
        workers.multiply(left, right, result, [there, k, m]);
        T::write_to(out, at * rows * m, result)?;
    }
    if spare.iter().all(|words| words.len() <= MOST_SPARE) {
        SPARE.set(spare);
    }
    Ok(())
}

thread_local! {
    /// Memory of copies between calls: the system takes longer to give it than copying does.
    static SPARE: Cell<[Vec<u64>; 3]> = const { Cell::new([const { Vec::new() }; 3]) };
}

/// The number of words that are stored for each copy.
const MOST_SPARE: usize = 4 << 20;

/// So many numbers in words, of which more are made where they do not suffice.
fn numbers<T: Stored>(words: &mut Vec<u64>, n: usize) -> &mut [T] {
    let needed = (n * size_of::<T>()).div_ceil(size_of::<u64>());
    if words.len() < needed {
        words.resize(needed, 0);
    }
    &mut bytemuck::cast_slice_mut(words)[..n]
}
