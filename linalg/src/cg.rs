//! The method of conjugate gradients.

use crate::matrix::{Matrix, Number};

fn dot<T: Number>(x: &[T], y: &[T]) -> f64 {
    let products = x.iter().zip(y).map(|(&x, &y)| x.into() * y.into());
    products.sum()
}

/// Improves `x` as a solution of `a x = b` for a symmetric positive definite matrix by conjugate
/// gradients, preconditioned by the diagonal (Saad, Iterative Methods for Sparse Linear Systems,
/// algorithm 9.1), until the residual is `tolerance` times as long as `b` or `most` steps are done.
///
/// Returns how many steps were done, and the length of the residual divided by that of `b`.
///
/// # Panics
/// If the shapes do not fit.
pub fn conjugate_gradient<T: Number>(
    a: &Matrix<T>,
    b: &[T],
    x: &mut [T],
    tolerance: f64,
    most: usize,
    n_threads: usize,
) -> (usize, f64) {
    let n = b.len();
    assert!(a.extents() == (n, n) && x.len() == n);
    let size = dot(b, b).sqrt();
    if size == 0.0 {
        x.fill(T::of(0.0));
        return (0, 0.0);
    }
    let inverse: Vec<f64> = (0..n)
        .map(|i| a.get(i, i).into())
        .map(|d: f64| if d == 0.0 { 1.0 } else { 1.0 / d })
        .collect();
    let precondition = |r: &[T]| -> Vec<T> {
        let scaled = r.iter().zip(&inverse);
        scaled.map(|(&r, &d)| T::of(r.into() * d)).collect()
    };
    let mut along = vec![T::of(0.0); n];
    a.apply(x, &mut along, n_threads);
    let mut r: Vec<T> = b.iter().zip(&along).map(|(&b, &ax)| b - ax).collect();
    let mut z = precondition(&r);
    let mut p = z.clone();
    let mut rz = dot(&r, &z);
    for step in 0..most {
        let error = dot(&r, &r).sqrt() / size;
        if error <= tolerance {
            return (step, error);
        }
        a.apply(&p, &mut along, n_threads);
        let alpha = rz / dot(&p, &along);
        for i in 0..n {
            x[i] = T::of(x[i].into() + alpha * p[i].into());
            r[i] = T::of(r[i].into() - alpha * along[i].into());
        }
        z = precondition(&r);
        let next = dot(&r, &z);
        let beta = next / rz;
        rz = next;
        for (p, &z) in p.iter_mut().zip(&z) {
            *p = T::of(z.into() + beta * (*p).into());
        }
    }
    (most, dot(&r, &r).sqrt() / size)
}
