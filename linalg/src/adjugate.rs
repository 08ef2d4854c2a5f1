//! The adjugate of a matrix: the determinant times the inverse, which is there for singular matrices as well.

use faer::traits::ext::ComplexFieldExt;
use faer::{Mat, linalg::solvers::Solve};

use crate::decompose::{Element, Planes, determinant, put, regular, threads};
use crate::small::MOST_ROWS;

/// The adjugate of `a` of shape `[n, n]`.
pub fn adjugate<E: Element>(a: &[E], n: usize, mut out: Planes<'_, E::Real>, n_threads: usize) {
    if n == 0 {
        return;
    }
    threads(n, n_threads);
    // A small determinant and a large inverse are of the same factors, so that their product is exact to rounding.
    if n > MOST_ROWS
        && let Ok(found) = regular(a, n)
    {
        let (det, ..) = determinant(a, n, n_threads);
        let one: Mat<E> = Mat::identity(n, n);
        let inverse = found.solve(one);
        out.fill(n, |i, j| det * inverse[(i, j)]);
        return;
    }
    let factors = Factors::of(a, n);
    let columns: Vec<Vec<E>> = (0..n).map(|j| factors.column(j)).collect();
    let all = Mat::from_fn(n, n, |i, j| columns[j][i]);
    put(all.as_ref(), out);
}

/// The triangles of a matrix with its rows and columns in another order. Zeros on the diagonal are the last ones.
struct Factors<E> {
    n: usize,
    /// Below the diagonal the lower one, whose diagonal is ones.
    all: Vec<E>,
    /// Which row, and which column, of the matrix each is.
    orders: [Vec<usize>; 2],
    is_odd: bool,
}

impl<E: Element> Factors<E> {
    fn of(a: &[E], n: usize) -> Self {
        let order: Vec<usize> = (0..n).collect();
        let mut factors = Self {
            n,
            all: a.to_vec(),
            orders: [order.clone(), order],
            is_odd: false,
        };
        (0..n).for_each(|k| factors.eliminate(k));
        factors
    }

    fn eliminate(&mut self, k: usize) {
        let n = self.n;
        let places = (k..n).flat_map(|i| (k..n).map(move |j| (i, j)));
        let size = |&(i, j): &(usize, usize)| -> f64 {
            let size = self.all[i * n + j].abs().into();
            // What is no number stays one.
            if f64::is_nan(size) {
                f64::INFINITY
            } else {
                size
            }
        };
        let (i, j) = places
            .max_by(|a, b| size(a).total_cmp(&size(b)))
            .expect("the corner is there");
        (0..n).for_each(|c| self.all.swap(i * n + c, k * n + c));
        (0..n).for_each(|r| self.all.swap(r * n + j, r * n + k));
        self.orders[0].swap(i, k);
        self.orders[1].swap(j, k);
        self.is_odd ^= (i != k) != (j != k);
        let pivot = self.all[k * n + k];
        if pivot == E::zero() {
            return;
        }
        for i in k + 1..n {
            let factor = self.all[i * n + k] * pivot.recip();
            self.all[i * n + k] = factor;
            for j in k + 1..n {
                let less = factor * self.all[k * n + j];
                self.all[i * n + j] -= less;
            }
        }
    }

    /// A column of the adjugate: all but its last element of the upper triangle's solution are multiplied by the last
    /// element of the diagonal, by which nothing is divided.
    fn column(&self, j: usize) -> Vec<E> {
        let (n, last) = (self.n, self.n - 1);
        let at = |i: usize, j: usize| self.all[i * n + j];
        let mut scale = if self.is_odd { -E::one() } else { E::one() };
        for k in 0..last {
            scale *= at(k, k);
        }
        let mut out = vec![E::zero(); n];
        if (0..last).any(|k| at(k, k) == E::zero()) {
            return out;
        }
        let mut x = vec![E::zero(); n];
        for i in 0..n {
            let own = self.orders[0][i] == j;
            let right = if own { E::one() } else { E::zero() };
            x[i] = (0..i).fold(right, |rest, k| rest - at(i, k) * x[k]);
        }
        for i in (0..last).rev() {
            let right = x[i] * at(last, last);
            let rest = (i + 1..n).fold(right, |rest, k| rest - at(i, k) * x[k]);
            x[i] = rest * at(i, i).recip();
        }
        for (&to, x) in self.orders[1].iter().zip(x) {
            out[to] = scale * x;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The determinant of each minor.
    fn by_minors(a: &[f64], n: usize) -> Vec<f64> {
        let mut out = vec![0.0; n * n];
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let inner = (0..n)
                .filter(|&r| r != j)
                .flat_map(|r| (0..n).filter(move |&c| c != i).map(move |c| a[r * n + c]));
            let minor: Vec<f64> = inner.collect();
            let sign = if (i + j) % 2 == 0 { 1.0 } else { -1.0 };
            out[i * n + j] = sign * determinant(&minor, n - 1, 1).0;
        }
        out
    }

    fn of(a: &[f64], n: usize) -> Vec<f64> {
        let mut re = vec![0.0; n * n];
        adjugate(
            a,
            n,
            Planes {
                re: &mut re,
                im: None,
            },
            1,
        );
        re
    }

    #[test]
    fn of_all_ranks_it_has_the_minors() {
        for n in 1..=10 {
            for rank in 0..=n {
                // A product of this many columns and rows, of small integers.
                let whole = |i: usize, j: usize| ((i * 7 + j * 5 + i * j * j) % 5) as f64 - 2.0;
                let a: Vec<f64> = (0..n * n)
                    .map(|k| {
                        (0..rank)
                            .map(|r| whole(k / n, r) * whole(r + 3, k % n))
                            .sum()
                    })
                    .collect();
                for (got, want) in of(&a, n).iter().zip(by_minors(&a, n)) {
                    assert!((got - want).abs() < 1e-9 * (1.0 + want.abs()), "{n} {rank}");
                }
            }
        }
        assert!(of(&[1.0, f64::NAN, 2.0, 3.0], 2).iter().any(|x| x.is_nan()));
    }
}
