//! Decompositions of dense matrices, and what is computed by them: one matrix at a time, row by row.
//!
//! Elements are numbers, or complex ones. Results lie in planes: real parts, and imaginary ones where there are such.
//! Where a matrix has no rows or no columns, results are what products of nothing are: ones, identities, zeros.

use faer::linalg::solvers::{Llt, PartialPivLu, Qr, SelfAdjointEigen, Solve, Svd};
use faer::traits::ComplexField;
use faer::traits::ext::ComplexFieldExt;
use faer::{Mat, MatRef, Side};
pub use rustfft::num_complex::Complex;

use crate::Number;
use crate::parallel;
use crate::scale::in_range;
use crate::small::Small;

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
pub(crate) fn threads(n: usize, n_threads: usize) {
    // Smaller matrices are done before a second thread has begun.
    let n_threads = if n < 256 { 1 } else { n_threads };
    faer::set_global_parallelism(parallel(n_threads));
}

/// What elements of matrices may be: `f32`, `f64`, and complex ones of two of them.
pub trait Element: ComplexField<Real: Number> + Copy {
    /// The elements whose parts lie in these planes: one, or two.
    fn of_planes(planes: Vec<Vec<Self::Real>>) -> Vec<Self>;
}

macro_rules! elements {
    ($($ty:ty),*) => {$(
        impl Element for $ty {
            fn of_planes(mut planes: Vec<Vec<$ty>>) -> Vec<$ty> {
                planes.swap_remove(0)
            }
        }

        impl Element for Complex<$ty> {
            fn of_planes(planes: Vec<Vec<$ty>>) -> Vec<Self> {
                let both = planes[0].iter().zip(&planes[1]);
                both.map(|(&re, &im)| Self { re, im }).collect()
            }
        }
    )*};
}
elements!(f32, f64);

/// Where elements go: real parts, and imaginary ones if there are such.
pub struct Planes<'a, T> {
    /// Real parts.
    pub re: &'a mut [T],
    /// Imaginary parts.
    pub im: Option<&'a mut [T]>,
}

impl<T: Number> Planes<'_, T> {
    /// Gives an element a value.
    pub fn set<E: ComplexField<Real = T>>(&mut self, at: usize, value: E) {
        self.re[at] = value.real();
        if let Some(im) = &mut self.im {
            im[at] = value.imag();
        }
    }

    pub(crate) fn fill<E: ComplexField<Real = T>>(
        &mut self,
        m: usize,
        value: impl Fn(usize, usize) -> E,
    ) {
        for i in 0..self.re.len().checked_div(m).unwrap_or(0) {
            for j in 0..m {
                self.set(i * m + j, value(i, j));
            }
        }
    }
}

fn rows<T>(all: &[T], n: usize, m: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(all, n, m)
}

pub(crate) fn put<E: Element>(from: MatRef<'_, E>, mut out: Planes<'_, E::Real>) {
    out.fill(from.ncols(), |i, j| from[(i, j)]);
}

fn one_or_zero<E: Element>(one: bool) -> E {
    if one { E::one() } else { E::zero() }
}

fn identity<E: Element>(m: usize, mut out: Planes<'_, E::Real>) {
    out.fill(m, |i, j| one_or_zero::<E>(i == j));
}

fn finite<E: Element>(a: &[E]) -> Dense {
    let is_finite = |x: E::Real| Into::<f64>::into(x).is_finite();
    let all = a.iter().all(|x| is_finite(x.real()) && is_finite(x.imag()));
    if all {
        Ok(())
    } else {
        Err(DenseError::NotFinite)
    }
}

/// `a = q r` with `a` of shape `[n, m]`: `q` has orthonormal columns, `k` of them (the smaller of `n` and `m`, or `n`), and
/// `r`, of shape `[k, m]`, is zero below its diagonal.
pub fn qr<E: Element>(
    a: &[E],
    [n, m, k]: [usize; 3],
    q: Planes<'_, E::Real>,
    mut r: Planes<'_, E::Real>,
    n_threads: usize,
) {
    if n == 0 || m == 0 {
        return identity::<E>(k, q);
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
    r.fill(m, |i, j| match i <= j && i < upper.nrows() {
        true => upper[(i, j)],
        false => E::zero(),
    });
}

/// `a = u diag(s) vh` with `a` of shape `[n, m]`: singular values from the largest; `u` has `p` columns and `vh` `q` rows.
///
/// # Errors
/// If elements are not finite.
pub fn svd<E: Element>(
    a: &[E],
    [n, m, p, q]: [usize; 4],
    u: Planes<'_, E::Real>,
    s: &mut [E::Real],
    mut vh: Planes<'_, E::Real>,
    n_threads: usize,
) -> Dense {
    finite(a)?;
    if n == 0 || m == 0 {
        identity::<E>(p, u);
        identity::<E>(m, vh);
        return Ok(());
    }
    threads(n.min(m), n_threads);
    let (a, by) = in_range(a);
    let a = rows(&a, n, m);
    let found = if p.max(q) > n.min(m) {
        Svd::new(a)
    } else {
        Svd::new_thin(a)
    };
    let found = found.map_err(|_| DenseError::NotFinite)?;
    put(found.U(), u);
    vh.fill(m, |i, j| found.V()[(j, i)].conj());
    let values = found.S().column_vector();
    let all = s.iter_mut().enumerate();
    all.for_each(|(k, s)| *s = values[k].real() * by);
    Ok(())
}

/// The singular values of `a` of shape `[n, m]`, from the largest.
///
/// # Errors
/// If elements are not finite.
pub fn singular_values<E: Element>(
    a: &[E],
    [n, m]: [usize; 2],
    s: &mut [E::Real],
    n_threads: usize,
) -> Dense {
    finite(a)?;
    if n == 0 || m == 0 {
        return Ok(());
    }
    threads(n.min(m), n_threads);
    let (a, by) = in_range(a);
    let found = rows(&a, n, m).singular_values();
    let found = found.map_err(|_| DenseError::NotFinite)?;
    s.iter_mut()
        .zip(found)
        .for_each(|(s, value)| *s = value * by);
    Ok(())
}

/// A Hermitian matrix as the library takes it: it does not leave imaginary parts of the diagonal out.
fn real_diagonal<E: Element>(a: &[E], n: usize) -> Vec<E> {
    let mut out = a.to_vec();
    (0..n).for_each(|i| out[i * n + i] = out[i * n + i].as_real());
    out
}

/// `a = l adjoint(l)` with `l` zero above its diagonal; of `a` the lower triangle counts, and of its diagonal the real parts.
///
/// # Errors
/// If `a` is not positive definite.
pub fn cholesky<E: Element>(
    a: &[E],
    n: usize,
    mut l: Planes<'_, E::Real>,
    n_threads: usize,
) -> Dense {
    threads(n, n_threads);
    if n == 0 {
        return Ok(());
    }
    let a = real_diagonal(a, n);
    let found = Llt::new(rows(&a, n, n), Side::Lower).map_err(|_| DenseError::NotPositive)?;
    let lower = found.L();
    l.fill(n, |i, j| match i >= j {
        true => lower[(i, j)],
        false => E::zero(),
    });
    // A NaN passes for positive.
    let fine = (0..n).all(|i| Into::<f64>::into(l.re[i * n + i]) > 0.0);
    if fine {
        Ok(())
    } else {
        Err(DenseError::NotPositive)
    }
}

/// `a[perm[i]] = (l u)[i]` with `a` of shape `[n, m]` and `k` the smaller of both: `l` of shape `[n, k]` has ones on its
/// diagonal.
pub fn lu<E: Element>(
    a: &[E],
    [n, m]: [usize; 2],
    mut l: Planes<'_, E::Real>,
    mut u: Planes<'_, E::Real>,
    perm: &mut [usize],
    n_threads: usize,
) {
    let k = n.min(m);
    (0..n).for_each(|i| perm[i] = i);
    if k == 0 {
        return;
    }
    threads(k, n_threads);
    let found = PartialPivLu::new(rows(a, n, m));
    let (lower, upper) = (found.L(), found.U());
    l.fill(k, |i, j| match i > j {
        true => lower[(i, j)],
        false => one_or_zero(i == j),
    });
    u.fill(m, |i, j| match i <= j {
        true => upper[(i, j)],
        false => E::zero(),
    });
    perm.copy_from_slice(found.P().arrays().0);
}

/// The decomposition of a regular matrix.
pub(crate) fn regular<E: Element>(a: &[E], n: usize) -> Result<PartialPivLu<E>, DenseError> {
    let found = PartialPivLu::new(rows(a, n, n));
    let upper = found.U();
    let singular = (0..n).any(|i| upper[(i, i)] == E::zero());
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
pub fn solve<E: Element>(
    a: &[E],
    b: &[E],
    [n, m]: [usize; 2],
    x: Planes<'_, E::Real>,
    n_threads: usize,
) -> Dense {
    if let Some(a) = Small::matrix(a, n) {
        return a.solve_all(m, |i, j| b[i * m + j].real(), x.re);
    }
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
pub fn inverse<E: Element>(a: &[E], n: usize, out: Planes<'_, E::Real>, n_threads: usize) -> Dense {
    if let Some(a) = Small::matrix(a, n) {
        let one = |i, j| E::Real::of(f64::from(u8::from(i == j)));
        return a.solve_all(n, one, out.re);
    }
    threads(n, n_threads);
    if n > 0 {
        let found = regular(a, n)?;
        let one: Mat<E> = Mat::identity(n, n);
        put(found.solve(one).as_ref(), out);
    }
    Ok(())
}

/// The elements whose product is the determinant, and whether its sign is to be turned.
fn diagonal<E: Element>(a: &[E], n: usize, n_threads: usize) -> (Vec<E>, bool) {
    threads(n, n_threads);
    let found = PartialPivLu::new(rows(a, n, n));
    let upper = found.U();
    let mut all: Vec<E> = (0..n).map(|i| upper[(i, i)]).collect();
    // What comes behind a zero was divided by it.
    if let Some(zero) = all.iter().position(|&x| x == E::zero())
        && finite(a).is_ok()
    {
        all[zero..].fill(E::zero());
    }
    (all, is_odd(found.P().arrays().0))
}

/// The determinant of `a` of shape `[n, n]`: its sign (a number of size 1, or 0), and the logarithm of its size.
pub fn determinant<E: Element>(
    a: &[E],
    n: usize,
    n_threads: usize,
) -> (E, Complex<E::Real>, E::Real) {
    let (mut product, mut sign, mut log) = (E::one(), Complex::new(1.0, 0.0), 0.0);
    if n > 0 {
        let (diagonal, odd) = match Small::matrix(a, n) {
            Some(a) => (
                a.diagonal().map(|x| E::from_real_impl(&x)).collect(),
                a.is_odd(),
            ),
            None => diagonal(a, n, n_threads),
        };
        if odd {
            (product, sign) = (-product, -sign);
        }
        for x in diagonal {
            let parts = Complex::new(x.real().into(), x.imag().into());
            product *= x;
            let size = parts.norm();
            sign *= match (size == 0.0, parts.im == 0.0) {
                (true, _) => Complex::ZERO,
                (_, true) => Complex::new(parts.re.signum(), 0.0),
                _ => parts / size,
            };
            log += size.ln();
        }
    }
    let parts = [sign.re, sign.im, log].map(E::Real::of);
    (product, Complex::new(parts[0], parts[1]), parts[2])
}

fn is_odd(perm: &[usize]) -> bool {
    let mut seen = vec![false; perm.len()];
    let mut odd = false;
    for start in 0..perm.len() {
        let mut at = start;
        // Each cycle of even length is an odd permutation.
        while !seen[at] {
            seen[at] = true;
            at = perm[at];
            odd ^= at != start;
        }
    }
    odd
}

/// The eigenvalues of a symmetric or Hermitian matrix of shape `[n, n]` in rising order, and eigenvectors as columns; of `a`
/// the lower triangle counts, and of its diagonal the real parts.
///
/// # Errors
/// If elements are not finite.
pub fn symmetric_eigen<E: Element>(
    a: &[E],
    n: usize,
    values: &mut [E::Real],
    vectors: Option<Planes<'_, E::Real>>,
    n_threads: usize,
) -> Dense {
    finite(a)?;
    if n == 0 {
        return Ok(());
    }
    threads(n, n_threads);
    let (a, by) = in_range(a);
    let a = real_diagonal(&a, n);
    let a = rows(&a, n, n);
    let Some(vectors) = vectors else {
        let found = a.self_adjoint_eigenvalues(Side::Lower);
        let found = found.map_err(|_| DenseError::NotFinite)?;
        values
            .iter_mut()
            .zip(found)
            .for_each(|(v, value)| *v = value * by);
        return Ok(());
    };
    let found = SelfAdjointEigen::new(a, Side::Lower).map_err(|_| DenseError::NotFinite)?;
    let diagonal = found.S().column_vector();
    let all = values.iter_mut().enumerate();
    all.for_each(|(k, v)| *v = diagonal[k].real() * by);
    put(found.U(), vectors);
    Ok(())
}

/// The eigenvalues of a matrix of shape `[n, n]`, and eigenvectors of length 1 as columns.
///
/// # Errors
/// If elements are not finite.
pub fn eigen<E: Element>(
    a: &[E],
    n: usize,
    mut values: Planes<'_, E::Real>,
    vectors: Option<Planes<'_, E::Real>>,
    n_threads: usize,
) -> Dense {
    finite(a)?;
    if n == 0 {
        return Ok(());
    }
    threads(n, n_threads);
    let (a, by) = in_range(a);
    let a = rows(&a, n, n);
    let Some(mut vectors) = vectors else {
        let found = a.eigenvalues().map_err(|_| DenseError::NotFinite)?;
        values.fill(n, |_, k| found[k].mul_real(by));
        return Ok(());
    };
    let found = a.eigen().map_err(|_| DenseError::NotFinite)?;
    let diagonal = found.S().column_vector();
    values.fill(n, |_, k| diagonal[k].mul_real(by));
    let basis = found.U();
    for j in 0..n {
        let square = |x: E::Real| Into::<f64>::into(x).powi(2);
        let squares = (0..n).map(|i| square(basis[(i, j)].re) + square(basis[(i, j)].im));
        let scale = E::Real::of(1.0 / squares.sum::<f64>().sqrt());
        for i in 0..n {
            let x = basis[(i, j)];
            vectors.set(i * n + j, Complex::new(x.re * scale, x.im * scale));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::iter::Sum;

    use super::*;

    const A: [f64; 9] = [4.0, 1.0, 2.0, 1.0, 5.0, 3.0, 2.0, 3.0, 6.0];

    fn real(re: &mut [f64]) -> Planes<'_, f64> {
        Planes { re, im: None }
    }

    fn both<'a>(re: &'a mut [f64], im: &'a mut [f64]) -> Planes<'a, f64> {
        Planes { re, im: Some(im) }
    }

    fn product<E: Element + Sum>(a: &[E], b: &[E], [n, k, m]: [usize; 3]) -> Vec<E> {
        let element = |at: usize| (0..k).map(|l| a[at / m * k + l] * b[l * m + at % m]).sum();
        (0..n * m).map(element).collect()
    }

    /// The complex numbers that a function writes to real and imaginary parts of length `n`.
    fn complex(n: usize, f: impl FnOnce(Planes<'_, f64>)) -> Vec<Complex<f64>> {
        let (mut re, mut im) = (vec![0.0; n], vec![0.0; n]);
        f(both(&mut re, &mut im));
        Complex::of_planes(vec![re, im])
    }

    fn adjoint(a: &[Complex<f64>], n: usize) -> Vec<Complex<f64>> {
        let m = a.len() / n;
        (0..a.len()).map(|k| a[k % n * m + k / n].conj()).collect()
    }

    fn near_complex(a: &[Complex<f64>], b: &[Complex<f64>]) {
        let parts =
            |all: &[Complex<f64>]| all.iter().flat_map(|z| [z.re, z.im]).collect::<Vec<_>>();
        near(&parts(a), &parts(b));
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
        qr(&A, [3, 3, 3], real(&mut q), real(&mut r), 1);
        near(&product(&q, &r, [3, 3, 3]), &A);
        let mut l = [0.0; 9];
        assert_eq!(cholesky(&A, 3, real(&mut l), 1), Ok(()));
        let lt: Vec<f64> = (0..9).map(|k| l[k % 3 * 3 + k / 3]).collect();
        near(&product(&l, &lt, [3, 3, 3]), &A);
        let (mut l, mut u, mut perm) = ([0.0; 9], [0.0; 9], [0; 3]);
        lu(&A, [3, 3], real(&mut l), real(&mut u), &mut perm, 1);
        let rows: Vec<f64> = perm
            .iter()
            .flat_map(|&i| A[i * 3..i * 3 + 3].to_vec())
            .collect();
        near(&product(&l, &u, [3, 3, 3]), &rows);
        let mut inv = [0.0; 9];
        assert_eq!(inverse(&A, 3, real(&mut inv), 1), Ok(()));
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
                qr(&a, [n, m, k], real(&mut q), real(&mut r), 1);
                near(&product(&q, &r, [n, k, m]), &a);
            }
            let (mut u, mut s, mut vh) = (vec![0.0; n * n], vec![0.0; 2], vec![0.0; m * m]);
            assert_eq!(
                svd(&a, [n, m, n, m], real(&mut u), &mut s, real(&mut vh), 1),
                Ok(())
            );
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
        assert_eq!(determinant(&turned, 3, 1), (1.0, Complex::ONE, 0.0));
        let swapped = [0.0, 2.0, 1.0, 0.0];
        let (det, sign, log) = determinant(&swapped, 2, 1);
        assert_eq!((det, sign), (-2.0, -Complex::ONE));
        near(&[log], &[2.0_f64.ln()]);
        assert_eq!(
            inverse(&[1.0, 2.0, 2.0, 4.0], 2, real(&mut [0.0; 4]), 1),
            Err(DenseError::Singular)
        );
        assert_eq!(
            cholesky(&[1.0, 2.0, 2.0, 1.0], 2, real(&mut [0.0; 4]), 1),
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
        assert_eq!(eigen(&a, 2, both(&mut re, &mut im), None, 1), Ok(()));
        near(&re, &[0.0, 0.0]);
        near(&[im[0].abs(), im[0] + im[1]], &[1.0, 0.0]);
    }

    #[test]
    fn complex_factors_have_the_matrix_as_their_product() {
        let z = |re: f64, im: f64| Complex::new(re, im);
        let a = [
            z(1.0, 2.0),
            z(0.0, -1.0),
            z(3.0, 0.5),
            z(-2.0, 1.0),
            z(4.0, 0.0),
            z(1.0, -3.0),
        ];
        for [n, m] in [[2, 3], [3, 2]] {
            let mut r = Vec::new();
            let q = complex(n * n, |q| {
                r = complex(n * m, |r| qr(&a, [n, m, n], q, r, 1))
            });
            near_complex(&product(&q, &r, [n, n, m]), &a);
            let (mut s, mut vh) = (vec![0.0; 2], Vec::new());
            let u = complex(n * n, |u| {
                vh = complex(m * m, |vh| {
                    assert_eq!(svd(&a, [n, m, n, m], u, &mut s, vh, 1), Ok(()));
                });
            });
            let mut sigma = vec![Complex::ZERO; n * m];
            (0..2).for_each(|k| sigma[k * m + k] = z(s[k], 0.0));
            near_complex(
                &product(&product(&u, &sigma, [n, n, m]), &vh, [n, m, m]),
                &a,
            );
            let mut alone = [0.0; 2];
            assert_eq!(singular_values(&a, [n, m], &mut alone, 1), Ok(()));
            near(&alone, &s);
        }
        let (x, y) = (z(0.0, 2.0), z(3.0, 4.0));
        let (det, sign, log) = determinant(&[Complex::ZERO, x, y, Complex::ONE], 2, 1);
        near_complex(&[det, sign], &[-x * y, -x * y / 10.0]);
        near(&[log], &[10.0_f64.ln()]);
    }

    #[test]
    fn of_a_hermitian_matrix_the_lower_triangle_counts() {
        let z = |re: f64, im: f64| Complex::new(re, im);
        let full = [z(4.0, 0.0), z(1.0, -2.0), z(1.0, 2.0), z(5.0, 0.0)];
        let given = [z(4.0, 7.0), z(9.0, 9.0), z(1.0, 2.0), z(5.0, -7.0)];
        let l = complex(4, |l| assert_eq!(cholesky(&given, 2, l, 1), Ok(())));
        assert_eq!((l[0].im, l[1], l[3].im), (0.0, Complex::ZERO, 0.0));
        near_complex(&product(&l, &adjoint(&l, 2), [2, 2, 2]), &full);
        let (mut values, mut alone) = ([0.0; 2], [0.0; 2]);
        let u = complex(4, |u| {
            assert_eq!(symmetric_eigen(&given, 2, &mut values, Some(u), 1), Ok(()));
        });
        assert_eq!(symmetric_eigen(&given, 2, &mut alone, None, 1), Ok(()));
        let root = 21.0_f64.sqrt();
        near(&values, &[(9.0 - root) / 2.0, (9.0 + root) / 2.0]);
        near(&alone, &values);
        let scaled: Vec<_> = (0..4).map(|k| u[k] * values[k % 2]).collect();
        near_complex(&product(&scaled, &adjoint(&u, 2), [2, 2, 2]), &full);
    }
}
