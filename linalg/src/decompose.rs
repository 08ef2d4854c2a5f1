//! Decompositions of dense matrices, and what is computed by them: one matrix at a time, row by row.
//!
//! Where a matrix has no rows or no columns, results are what products of nothing are: ones, identities, zeros.

use faer::linalg::solvers::{Eigen, Llt, PartialPivLu, Qr, SelfAdjointEigen, Solve, Svd};
use faer::{Mat, MatRef, Side};

use crate::Number;
use crate::parallel;

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseError {
    /// The matrix is not positive definite.
    NotPositive,
    /// The matrix is singular.
    Singular,
    /// The iteration does not end: there are numbers that are not finite.
    NotFinite,
}

impl std::fmt::Display for DenseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotPositive => "the matrix is not positive definite",
            Self::Singular => "the matrix is singular",
            Self::NotFinite => "the matrix has elements that are not finite",
        })
    }
}

impl std::error::Error for DenseError {}

/// A result, or why there is none.
pub type Dense = Result<(), DenseError>;

/// Says how many threads `faer` may use for matrices of this size.
fn threads(n: usize, n_threads: usize) {
    // Smaller matrices are done before a second thread has begun.
    let n_threads = if n < 256 { 1 } else { n_threads };
    faer::set_global_parallelism(parallel(n_threads));
}

fn rows<T>(all: &[T], n: usize, m: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(all, n, m)
}

fn put<T: Number>(from: MatRef<'_, T>, out: &mut [T]) {
    let m = from.ncols();
    for i in 0..from.nrows() {
        for j in 0..m {
            out[i * m + j] = from[(i, j)];
        }
    }
}

fn finite<T: Number>(a: &[T]) -> Dense {
    let all = a.iter().all(|&x| Into::<f64>::into(x).is_finite());
    if all {
        Ok(())
    } else {
        Err(DenseError::NotFinite)
    }
}

/// `a = q r` with `a` of shape `[n, m]`: `q` has orthonormal columns, `k` of them (the smaller of `n` and `m`, or `n`), and
/// `r`, of shape `[k, m]`, is zero below its diagonal.
pub fn qr<T: Number>(a: &[T], [n, m, k]: [usize; 3], q: &mut [T], r: &mut [T], n_threads: usize) {
    if n == 0 || m == 0 {
        return identity_of(n, k, q);
    }
    threads(n.min(m), n_threads);
    let found = Qr::new(rows(a, n, m));
    let basis = if k == n && m < n {
        found.compute_Q()
    } else {
        found.compute_thin_Q()
    };
    put(basis.as_ref(), q);
    let upper = found.thin_R();
    r.fill(T::of(0.0));
    for i in 0..upper.nrows() {
        for j in i..m {
            r[i * m + j] = upper[(i, j)];
        }
    }
}

fn identity_of<T: Number>(n: usize, k: usize, q: &mut [T]) {
    q.fill(T::of(0.0));
    (0..n.min(k)).for_each(|i| q[i * k + i] = T::of(1.0));
}

/// `a = u diag(s) vh` with `a` of shape `[n, m]`: singular values from the largest; `u` has `p` columns and `vh` `q` rows.
///
/// # Errors
/// If elements are not finite.
pub fn svd<T: Number>(
    a: &[T],
    [n, m, p, q]: [usize; 4],
    u: &mut [T],
    s: &mut [T],
    vh: &mut [T],
    n_threads: usize,
) -> Dense {
    finite(a)?;
    if n == 0 || m == 0 {
        identity_of(n, p, u);
        identity_of(q, m, vh);
        return Ok(());
    }
    threads(n.min(m), n_threads);
    let a = rows(a, n, m);
    let found = if p.max(q) > n.min(m) {
        Svd::new(a)
    } else {
        Svd::new_thin(a)
    };
    let found = found.map_err(|_| DenseError::NotFinite)?;
    put(found.U(), u);
    put(found.V().transpose(), vh);
    let values = found.S().column_vector();
    s.iter_mut().enumerate().for_each(|(k, s)| *s = values[k]);
    Ok(())
}

/// The singular values of `a` of shape `[n, m]`, from the largest.
///
/// # Errors
/// If elements are not finite.
pub fn singular_values<T: Number>(
    a: &[T],
    [n, m]: [usize; 2],
    s: &mut [T],
    n_threads: usize,
) -> Dense {
    finite(a)?;
    if n == 0 || m == 0 {
        return Ok(());
    }
    threads(n.min(m), n_threads);
    let found = rows(a, n, m).singular_values();
    s.copy_from_slice(&found.map_err(|_| DenseError::NotFinite)?);
    Ok(())
}

/// `a = l transpose(l)` with `l` zero above its diagonal; of `a` the lower triangle counts.
///
/// # Errors
/// If `a` is not positive definite.
pub fn cholesky<T: Number>(a: &[T], n: usize, l: &mut [T], n_threads: usize) -> Dense {
    threads(n, n_threads);
    l.fill(T::of(0.0));
    if n == 0 {
        return Ok(());
    }
    let found = Llt::new(rows(a, n, n), Side::Lower).map_err(|_| DenseError::NotPositive)?;
    let lower = found.L();
    for i in 0..n {
        for j in 0..=i {
            l[i * n + j] = lower[(i, j)];
        }
    }
    // A NaN passes for positive.
    let fine = (0..n).all(|i| Into::<f64>::into(l[i * n + i]) > 0.0);
    if fine {
        Ok(())
    } else {
        Err(DenseError::NotPositive)
    }
}

/// `a[perm[i]] = (l u)[i]` with `a` of shape `[n, m]` and `k` the smaller of both: `l` of shape `[n, k]` has ones on its
/// diagonal.
pub fn lu<T: Number>(
    a: &[T],
    [n, m]: [usize; 2],
    l: &mut [T],
    u: &mut [T],
    perm: &mut [usize],
    n_threads: usize,
) {
    let k = n.min(m);
    (0..n).for_each(|i| perm[i] = i);
    identity_of(n, k, l);
    u.fill(T::of(0.0));
    if k == 0 {
        return;
    }
    threads(k, n_threads);
    let found = PartialPivLu::new(rows(a, n, m));
    let (lower, upper) = (found.L(), found.U());
    for i in 0..n {
        for j in 0..k.min(i) {
            l[i * k + j] = lower[(i, j)];
        }
    }
    for i in 0..k {
        for j in i..m {
            u[i * m + j] = upper[(i, j)];
        }
    }
    perm.copy_from_slice(found.P().arrays().0);
}

/// The decomposition of a regular matrix.
fn regular<T: Number>(a: &[T], n: usize) -> Result<PartialPivLu<T>, DenseError> {
    let found = PartialPivLu::new(rows(a, n, n));
    let upper = found.U();
    let singular = (0..n).any(|i| upper[(i, i)] == T::of(0.0));
    if singular {
        Err(DenseError::Singular)
    } else {
        Ok(found)
    }
}

/// `a x = b` with `a` of shape `[n, n]`, `b` and `x` of shape `[n, m]`.
///
/// # Errors
/// If `a` is singular.
pub fn solve<T: Number>(
    a: &[T],
    b: &[T],
    [n, m]: [usize; 2],
    x: &mut [T],
    n_threads: usize,
) -> Dense {
    threads(n, n_threads);
    if n > 0 {
        let found = regular(a, n)?;
        put(found.solve(rows(b, n, m)).as_ref(), x);
    }
    Ok(())
}

/// The inverse of `a` of shape `[n, n]`.
///
/// # Errors
/// If `a` is singular.
pub fn inverse<T: Number>(a: &[T], n: usize, out: &mut [T], n_threads: usize) -> Dense {
    threads(n, n_threads);
    if n > 0 {
        let found = regular(a, n)?;
        let one: Mat<T> = Mat::identity(n, n);
        put(found.solve(one).as_ref(), out);
    }
    Ok(())
}

/// The determinant of `a` of shape `[n, n]`: its sign (-1, 0 or 1), and the logarithm of its size.
pub fn determinant<T: Number>(a: &[T], n: usize, n_threads: usize) -> (T, T, T) {
    if n == 0 {
        return (T::of(1.0), T::of(1.0), T::of(0.0));
    }
    threads(n, n_threads);
    let found = PartialPivLu::new(rows(a, n, n));
    let perm = found.P().arrays().0;
    let mut seen = vec![false; n];
    let mut odd = false;
    for start in 0..n {
        let mut at = start;
        // Each cycle of even length is an odd permutation.
        while !seen[at] {
            seen[at] = true;
            at = perm[at];
            odd ^= at != start;
        }
    }
    let mut sign = if odd { -1.0 } else { 1.0 };
    let (mut product, mut log) = (T::of(sign), 0.0);
    let upper = found.U();
    for i in 0..n {
        let x: f64 = upper[(i, i)].into();
        product *= upper[(i, i)];
        sign *= if x == 0.0 { 0.0 } else { x.signum() };
        log += x.abs().ln();
    }
    (product, T::of(sign), T::of(log))
}

/// The eigenvalues of a symmetric matrix of shape `[n, n]` in rising order, and eigenvectors as columns; of `a` the lower
/// triangle counts.
///
/// # Errors
/// If elements are not finite.
pub fn symmetric_eigen<T: Number>(
    a: &[T],
    n: usize,
    values: &mut [T],
    vectors: Option<&mut [T]>,
    n_threads: usize,
) -> Dense {
    finite(a)?;
    if n == 0 {
        return Ok(());
    }
    threads(n, n_threads);
    let a = rows(a, n, n);
    let Some(vectors) = vectors else {
        let found = a.self_adjoint_eigenvalues(Side::Lower);
        values.copy_from_slice(&found.map_err(|_| DenseError::NotFinite)?);
        return Ok(());
    };
    let found = SelfAdjointEigen::new(a, Side::Lower).map_err(|_| DenseError::NotFinite)?;
    let diagonal = found.S().column_vector();
    values
        .iter_mut()
        .enumerate()
        .for_each(|(k, v)| *v = diagonal[k]);
    put(found.U(), vectors);
    Ok(())
}

/// The eigenvalues of a matrix of shape `[n, n]`, real and imaginary parts, and eigenvectors of length 1 as columns.
///
/// # Errors
/// If elements are not finite.
pub fn eigen<T: Number>(
    a: &[T],
    n: usize,
    values: [&mut [T]; 2],
    vectors: Option<[&mut [T]; 2]>,
    n_threads: usize,
) -> Dense {
    finite(a)?;
    if n == 0 {
        return Ok(());
    }
    threads(n, n_threads);
    let found = Eigen::new_from_real(rows(a, n, n)).map_err(|_| DenseError::NotFinite)?;
    let diagonal = found.S().column_vector();
    let [re, im] = values;
    for k in 0..n {
        (re[k], im[k]) = (diagonal[k].re, diagonal[k].im);
    }
    let Some([re, im]) = vectors else {
        return Ok(());
    };
    let basis = found.U();
    for j in 0..n {
        let square = |x: T| Into::<f64>::into(x).powi(2);
        let size: f64 = (0..n)
            .map(|i| square(basis[(i, j)].re) + square(basis[(i, j)].im))
            .sum();
        let scale = T::of(1.0 / size.sqrt());
        for i in 0..n {
            let x = &basis[(i, j)];
            (re[i * n + j], im[i * n + j]) = (x.re * scale, x.im * scale);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 9] = [4.0, 1.0, 2.0, 1.0, 5.0, 3.0, 2.0, 3.0, 6.0];

    fn product(a: &[f64], b: &[f64], [n, k, m]: [usize; 3]) -> Vec<f64> {
        let mut out = vec![0.0; n * m];
        for (at, x) in out.iter_mut().enumerate() {
            *x = (0..k).map(|l| a[at / m * k + l] * b[l * m + at % m]).sum();
        }
        out
    }

    fn near(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        assert!(
            a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-12),
            "{a:?} {b:?}"
        );
    }

    #[test]
    fn products_of_factors_are_the_matrix() {
        let (mut q, mut r) = ([0.0; 9], [0.0; 9]);
        qr(&A, [3, 3, 3], &mut q, &mut r, 1);
        near(&product(&q, &r, [3, 3, 3]), &A);
        let mut l = [0.0; 9];
        assert_eq!(cholesky(&A, 3, &mut l, 1), Ok(()));
        let lt: Vec<f64> = (0..9).map(|k| l[k % 3 * 3 + k / 3]).collect();
        near(&product(&l, &lt, [3, 3, 3]), &A);
        let (mut l, mut u, mut perm) = ([0.0; 9], [0.0; 9], [0; 3]);
        lu(&A, [3, 3], &mut l, &mut u, &mut perm, 1);
        let rows: Vec<f64> = perm
            .iter()
            .flat_map(|&i| A[i * 3..i * 3 + 3].to_vec())
            .collect();
        near(&product(&l, &u, [3, 3, 3]), &rows);
        let mut inv = [0.0; 9];
        assert_eq!(inverse(&A, 3, &mut inv, 1), Ok(()));
        near(
            &product(&A, &inv, [3, 3, 3]),
            &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        );
    }

    #[test]
    fn wide_and_tall() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0];
        for [n, m] in [[2, 3], [3, 2]] {
            for k in [2, n] {
                let (mut q, mut r) = (vec![0.0; n * k], vec![0.0; k * m]);
                qr(&a, [n, m, k], &mut q, &mut r, 1);
                near(&product(&q, &r, [n, k, m]), &a);
            }
            let (mut u, mut s, mut vh) = (vec![0.0; n * n], vec![0.0; 2], vec![0.0; m * m]);
            assert_eq!(svd(&a, [n, m, n, m], &mut u, &mut s, &mut vh, 1), Ok(()));
            let mut sigma = vec![0.0; n * m];
            (0..2).for_each(|k| sigma[k * m + k] = s[k]);
            near(
                &product(&product(&u, &sigma, [n, n, m]), &vh, [n, m, m]),
                &a,
            );
        }
    }

    #[test]
    fn determinants_and_what_has_none() {
        let turned = [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0];
        assert_eq!(determinant(&turned, 3, 1), (1.0, 1.0, 0.0));
        let swapped = [0.0, 2.0, 1.0, 0.0];
        let (det, sign, log): (f64, f64, f64) = determinant(&swapped, 2, 1);
        assert_eq!((det, sign), (-2.0, -1.0));
        near(&[log], &[2.0_f64.ln()]);
        assert_eq!(
            inverse(&[1.0, 2.0, 2.0, 4.0], 2, &mut [0.0; 4], 1),
            Err(DenseError::Singular)
        );
        assert_eq!(
            cholesky(&[1.0, 2.0, 2.0, 1.0], 2, &mut [0.0; 4], 1),
            Err(DenseError::NotPositive)
        );
        assert_eq!(
            singular_values(&[f64::NAN], [1, 1], &mut [0.0], 1),
            Err(DenseError::NotFinite)
        );
    }

    #[test]
    fn a_rotation_has_complex_eigenvalues() {
        let a = [0.0, -1.0, 1.0, 0.0];
        let (mut re, mut im) = ([0.0; 2], [0.0; 2]);
        assert_eq!(eigen(&a, 2, [&mut re, &mut im], None, 1), Ok(()));
        near(&re, &[0.0, 0.0]);
        near(&[im[0].abs(), im[0] + im[1]], &[1.0, 0.0]);
    }
}
