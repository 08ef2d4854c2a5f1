//! What libraries do with whole buffers.
//!
//! Products of float matrices are `faer`'s, on copies: a copy of `n * k` numbers is little beside `n * k * m` products. All
//! else is as the interpreter does it.

use aerogel_base::ScalarType;
use aerogel_linalg::{Number, multiply};
use aerogel_runtime::buffer::MemoryError;

use crate::interp;
use crate::plan::Operand;
use crate::program::Library;

/// Calls a library: `outputs` have their shapes.
pub(crate) fn call(
    library: Library,
    inputs: &[Operand],
    outputs: &[Operand],
    n_threads: usize,
) -> Result<(), MemoryError> {
    match (library, inputs, outputs) {
        (Library::MatMul, [a, b], [out]) if out.ty == ScalarType::F32 => {
            products(a, b, out, n_threads, f32::from_le_bytes, f32::to_le_bytes)
        }
        (Library::MatMul, [a, b], [out]) if out.ty == ScalarType::F64 => {
            products(a, b, out, n_threads, f64::from_le_bytes, f64::to_le_bytes)
        }
        _ => by_interpreter(library, inputs, outputs),
    }
}

fn by_interpreter(
    library: Library,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<(), MemoryError> {
    let arrays = |all: &[Operand]| {
        all.iter()
            .map(Operand::to_array)
            .collect::<Result<Vec<_>, _>>()
    };
    let (inputs, mut made) = (arrays(inputs)?, arrays(outputs)?);
    interp::library(library, &inputs, &mut made);
    let mut both = outputs.iter().zip(&made);
    both.try_for_each(|(output, array)| output.take(array))
}

/// One product for each place along the leading axes.
fn products<T: Number, const N: usize>(
    a: &Operand,
    b: &Operand,
    out: &Operand,
    n_threads: usize,
    read: fn([u8; N]) -> T,
    write: fn(T) -> [u8; N],
) -> Result<(), MemoryError> {
    let numbers = |operand: &Operand| {
        let mut bytes = vec![0; operand.shape.iter().product::<usize>() * N];
        operand.buffer.read(0, &mut bytes)?;
        let (all, _) = bytes.as_chunks::<N>();
        Ok::<Vec<T>, MemoryError>(all.iter().map(|&b| read(b)).collect())
    };
    let &[.., n, m] = &out.shape[..] else {
        unreachable!("the verifier counts axes");
    };
    let k = a.shape[a.shape.len() - 1];
    let (left, right) = (numbers(a)?, numbers(b)?);
    let mut result = vec![T::of(0.0); n * m];
    let mut bytes = Vec::with_capacity(n * m * N);
    let batch: usize = out.shape[..out.shape.len() - 2].iter().product();
    for at in 0..batch {
        let (left, right) = (&left[at * n * k..][..n * k], &right[at * k * m..][..k * m]);
        multiply(left, right, &mut result, [n, k, m], n_threads);
        bytes.clear();
        bytes.extend(result.iter().flat_map(|&x| write(x)));
        out.buffer.write(at * n * m * N, &bytes)?;
    }
    Ok(())
}
