//! Reference implementations of library calls, without attention to speed.

use aerogel_base::Scalar;
use aerogel_ir::eval;

use super::{of_arrays, shapes};
use crate::ir::{Array, Library, LibraryError};

/// Runs a library call: `outputs` have their shapes.
pub(crate) fn library(
    library: Library,
    inputs: &[Array],
    outputs: &mut [Array],
) -> Result<(), LibraryError> {
    let shapes = |all: &[Array]| all.iter().map(|a| a.shape.clone()).collect::<Vec<_>>();
    let (given, made) = (shapes(inputs), shapes(outputs));
    let [given, made] =
        [&given, &made].map(|all| all.iter().map(Vec::as_slice).collect::<Vec<_>>());
    shapes::fit(library, &given, &made)?;
    match (library, inputs, outputs) {
        (Library::MatMul, [a, b], [out]) => matmul(a, b, 0, out),
        (Library::MatMulRows, [a, b, first], [out]) => {
            matmul(a, b, row(first.data[0]), out);
        }
        (Library::Sort { descending }, [x], [values, order @ ..]) => {
            sort(x, descending, values, order.first_mut());
        }
        (Library::Algebra(_) | Library::Transform(_), inputs, outputs) => {
            of_arrays(library, inputs, outputs)?;
        }
        _ => unreachable!("the verifier counts operands"),
    }
    Ok(())
}

/// The number of a row; one below zero is none.
pub(super) fn row(number: Scalar) -> usize {
    u32::try_from(number.as_i128()).map_or(usize::MAX / 2, |n| n as usize)
}

/// The rows of a product from `first` on.
fn matmul(a: &Array, b: &Array, first: usize, out: &mut Array) {
    let (&[.., rows, m], &[.., n, inner]) = (&out.shape[..], &a.shape[..]) else {
        unreachable!("the verifier counts axes");
    };
    let (add, mul) = (aerogel_ir::BinaryOp::Add, aerogel_ir::BinaryOp::Mul);
    for (at, cell) in out.data.iter_mut().enumerate() {
        let (batch, i, j) = (at / (rows * m), first + at / m % rows, at % m);
        if i >= n {
            continue;
        }
        *cell = (0..inner).fold(Scalar::zero(out.ty), |sum, k| {
            let left = a.data[(batch * n + i) * inner + k];
            let right = b.data[(batch * inner + k) * m + j];
            eval::binary(add, sum, eval::binary(mul, left, right))
        });
    }
}

/// The order of two numbers: NaN behind all.
fn compare(a: Scalar, b: Scalar, descending: bool) -> std::cmp::Ordering {
    if a.ty().is_float() {
        let (a, b) = (a.as_f64(), b.as_f64());
        let order = if descending {
            b.partial_cmp(&a)
        } else {
            a.partial_cmp(&b)
        };
        order.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    } else if descending {
        b.as_i128().cmp(&a.as_i128())
    } else {
        a.as_i128().cmp(&b.as_i128())
    }
}

fn sort(x: &Array, descending: bool, values: &mut Array, mut order: Option<&mut Array>) {
    let n = x.shape.last().copied().unwrap_or(1);
    let n_wanted = values.shape.last().copied().unwrap_or(1);
    for row in 0..x.data.len().checked_div(n).unwrap_or(0) {
        let numbers = &x.data[row * n..(row + 1) * n];
        let mut places: Vec<usize> = (0..n).collect();
        places.sort_by(|&a, &b| compare(numbers[a], numbers[b], descending));
        for (k, &place) in places.iter().take(n_wanted).enumerate() {
            values.data[row * n_wanted + k] = numbers[place];
            if let Some(order) = &mut order {
                order.data[row * n_wanted + k] = Scalar::int(order.ty, place as i128);
            }
        }
    }
}
