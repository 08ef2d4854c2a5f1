//! Whether the operands of a library call have shapes that fit together: libraries rely on it.

use crate::ir::{Algebra, Library, LibraryError, Transform};

/// Checks the shapes of the operands. Their numbers and their numbers of axes are right already.
///
/// # Errors
/// If they do not fit together.
pub(super) fn fit(
    library: Library,
    inputs: &[&[usize]],
    outputs: &[&[usize]],
) -> Result<(), LibraryError> {
    let fits = match library {
        Library::MatMul | Library::MatMulRows => product(library, inputs, outputs[0]),
        Library::Sort { .. } => rows_of(inputs[0], outputs),
        Library::Algebra(op) => matrices(op, inputs, outputs),
        Library::Transform(op) => transforms(op, inputs, outputs),
        // These look at each value that they take.
        Library::Push | Library::Pop => true,
    };
    match fits {
        true => Ok(()),
        false => Err(LibraryError::Shapes(library)),
    }
}

/// The last `n` axes, and those before.
fn split(shape: &[usize], n: usize) -> (&[usize], &[usize]) {
    shape.split_at(shape.len() - n)
}

fn product(library: Library, inputs: &[&[usize]], out: &[usize]) -> bool {
    let [(batch, a), (batch_b, b), (batch_out, out)] =
        [inputs[0], inputs[1], out].map(|shape| split(shape, 2));
    let rows = library == Library::MatMulRows || a[0] == out[0];
    batch == batch_b && batch == batch_out && rows && a[1] == b[0] && b[1] == out[1]
}

/// Values, and the order, of as many first elements of each row.
fn rows_of(x: &[usize], outputs: &[&[usize]]) -> bool {
    let (batch, row) = split(x, 1);
    let mut all = outputs.iter();
    all.all(|out| out == &outputs[0] && split(out, 1).0 == batch && split(out, 1).1 <= row)
}

fn transforms(op: Transform, inputs: &[&[usize]], outputs: &[&[usize]]) -> bool {
    let (input, output) = (inputs[0], outputs[0]);
    let ((batch, n), (batch_out, m)) = (split(input, 1), split(output, 1));
    let lengths = match op {
        Transform::Forwards | Transform::Backwards => n == m,
        Transform::OfReal => m[0] == n[0] / 2 + 1,
        Transform::ToReal => n[0] == m[0] / 2 + 1,
    };
    let same = |all: &[&[usize]]| all.iter().all(|shape| *shape == all[0]);
    batch == batch_out && lengths && same(inputs) && same(outputs)
}

fn matrices(op: Algebra, inputs: &[&[usize]], outputs: &[&[usize]]) -> bool {
    let is_complex = inputs.len() > op.takes();
    let (batch, own) = split(inputs[0], 2);
    let (n, m) = (own[0], own[1]);
    let n_planes = inputs.len() / op.takes();
    let mut given = inputs.chunks(n_planes);
    let right = inputs[inputs.len() - 1];
    let same = given.all(|planes| planes.iter().all(|shape| *shape == planes[0]));
    let solves = op != Algebra::Solve || (split(right, 2).0 == batch && split(right, 2).1[0] == n);
    let square = !op.is_of_squares() || n == m;
    let wanted = results(op, n, m, split(right, 2).1[1]);
    let planes = op.gives(is_complex).zip(wanted);
    let planes = planes.flat_map(|((_, n), shape)| std::iter::repeat_n(shape, n));
    let fits = |(out, own): (&&[usize], Vec<usize>)| {
        let (batch_out, last) = split(out, own.len());
        batch_out == batch && last == own
    };
    same && solves && square && outputs.iter().zip(planes).all(fits)
}

/// The shape of each result of an `n x m` matrix; `columns` are those of a right side.
fn results(op: Algebra, n: usize, m: usize, columns: usize) -> Vec<Vec<usize>> {
    let k = n.min(m);
    match op {
        Algebra::Qr => vec![vec![n, k], vec![k, m]],
        Algebra::QrComplete => vec![vec![n, n], vec![n, m]],
        Algebra::Svd => vec![vec![n, k], vec![k], vec![k, m]],
        Algebra::SvdFull => vec![vec![n, n], vec![k], vec![m, m]],
        Algebra::SvdVals => vec![vec![k]],
        Algebra::Cholesky | Algebra::Inv | Algebra::Adjugate => vec![vec![n, n]],
        Algebra::Lu => vec![vec![n, k], vec![k, m], vec![n]],
        Algebra::Solve => vec![vec![n, columns]],
        Algebra::Det => vec![vec![]],
        Algebra::SlogDet => vec![vec![], vec![]],
        Algebra::Eigh | Algebra::Eig => vec![vec![n], vec![n, n]],
        Algebra::EigValsh | Algebra::EigVals => vec![vec![n]],
    }
}
