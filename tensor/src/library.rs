//! What libraries do with whole buffers.
//!
//! Products of float matrices are `faer`'s, on copies: a copy of `n * k` numbers is little beside `n * k * m` products.
//! What is sorted, and products of other numbers, are as the interpreter does them.

use aerogel_base::ScalarType;
use aerogel_linalg::multiply;
use aerogel_runtime::buffer::MemoryError;

use crate::algebra::{self, LibraryError, Stored};
use crate::interp::{self, Array, Failure};
use crate::plan::Operand;
use crate::program::Library;

/// Calls a library: `outputs` have their shapes.
pub(crate) fn call(
    library: Library,
    inputs: &[Operand],
    outputs: &[Operand],
    n_threads: usize,
) -> Result<(), LibraryError> {
    match (library, inputs, outputs) {
        (Library::MatMul, [a, b], [out]) if out.ty == ScalarType::F32 => {
            Ok(products::<f32>(a, b, out, n_threads)?)
        }
        (Library::MatMul, [a, b], [out]) if out.ty == ScalarType::F64 => {
            Ok(products::<f64>(a, b, out, n_threads)?)
        }
        (Library::Algebra(op), ..) => algebra::algebra(op, inputs, outputs, n_threads),
        (Library::Transform(op), ..) => algebra::transform(op, inputs, outputs),
        _ => by_interpreter(library, inputs, outputs),
    }
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
    match interp::library(library, &inputs, &mut made) {
        Err(Failure::Library(e)) => return Err(e),
        done => done.expect("only libraries fail"),
    }
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
    call(library, &inputs, &made, 1)?;
    for (array, operand) in outputs.iter_mut().zip(&made) {
        *array = operand.to_array()?;
    }
    Ok(())
}

/// One product for each place along the leading axes.
fn products<T: Stored>(
    a: &Operand,
    b: &Operand,
    out: &Operand,
    n_threads: usize,
) -> Result<(), MemoryError> {
    let &[.., n, m] = &out.shape[..] else {
        unreachable!("the verifier counts axes");
    };
    let k = a.shape[a.shape.len() - 1];
    let (left, right) = (T::read(a)?, T::read(b)?);
    let mut result = bytemuck::zeroed_vec::<T>(out.shape.iter().product());
    let batch: usize = out.shape[..out.shape.len() - 2].iter().product();
    for at in 0..batch {
        let (left, right) = (&left[at * n * k..][..n * k], &right[at * k * m..][..k * m]);
        let result = &mut result[at * n * m..][..n * m];
        multiply(left, right, result, [n, k, m], n_threads);
    }
    T::write(out, &result)
}
