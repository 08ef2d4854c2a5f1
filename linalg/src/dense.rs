//! Dense matrices, row by row.

use faer::linalg::matmul;
use faer::{Accum, MatMut, MatRef};

use crate::Number;
use crate::parallel;

/// Fewer products than this are not worth a second thread.
const WORTH_THREADS: usize = 1 << 18;

/// `out = a * b` with `a` of shape `[n, k]`, `b` of `[k, m]` and `out` of `[n, m]`.
///
/// # Panics
/// If a slice has another length.
pub fn multiply<T: Number>(
    a: &[T],
    b: &[T],
    out: &mut [T],
    [n, k, m]: [usize; 3],
    n_threads: usize,
) {
    let n_threads = if n * k * m < WORTH_THREADS {
        1
    } else {
        n_threads
    };
    matmul::matmul(
        MatMut::from_row_major_slice_mut(out, n, m),
        Accum::Replace,
        MatRef::from_row_major_slice(a, n, k),
        MatRef::from_row_major_slice(b, k, m),
        T::of(1.0),
        parallel(n_threads),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products() {
        let a = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let b = [1.0_f32, 0.0, 0.0, 1.0, 1.0, 1.0];
        let mut out = [0.0_f32; 4];
        multiply(&a, &b, &mut out, [2, 3, 2], 2);
        assert_eq!(out, [4.0, 5.0, 10.0, 11.0]);
        // With an inner size of zero all sums are empty.
        multiply::<f32>(&[], &[], &mut out, [2, 0, 2], 1);
        assert_eq!(out, [0.0; 4]);
    }
}
