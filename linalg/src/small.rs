//! Small matrices of real numbers: `faer` takes longer to begin than these take.

use faer::traits::ext::ComplexFieldExt;

use crate::Number;
use crate::decompose::{Dense, DenseError, Element};

/// The most rows of a small matrix.
pub(crate) const MOST_ROWS: usize = 8;

/// The triangles of a matrix with its rows in another order: below the diagonal those of the lower one, whose diagonal is ones.
pub(crate) struct Small<T> {
    n: usize,
    rows: [[T; MOST_ROWS]; MOST_ROWS],
    /// Which row of the matrix each row is.
    order: [usize; MOST_ROWS],
    is_odd: bool,
}

impl<T: Number> Small<T> {
    /// Of a real matrix of shape `[n, n]`, if it is small.
    pub(crate) fn matrix<E: Element<Real = T>>(a: &[E], n: usize) -> Option<Self> {
        let is_small = E::IS_REAL && (1..=MOST_ROWS).contains(&n);
        is_small.then(|| Self::of(n, a.iter().map(|x| x.real())))
    }

    /// Of the square matrix with so many rows and these elements, row by row; in each column the largest element that is left
    /// comes to the diagonal.
    fn of(n: usize, elements: impl Iterator<Item = T>) -> Self {
        let mut rows = [[T::of(0.0); MOST_ROWS]; MOST_ROWS];
        for (k, x) in elements.enumerate() {
            rows[k / n][k % n] = x;
        }
        let mut small = Self {
            n,
            rows,
            order: std::array::from_fn(|i| i),
            is_odd: false,
        };
        (0..n).for_each(|k| small.eliminate(k));
        small
    }

    fn eliminate(&mut self, k: usize) {
        let mut pivot = k;
        for i in k + 1..self.n {
            // NaN is never smaller.
            let [x, best] = [i, pivot].map(|i| size(self.rows[i][k]));
            if x > best || x.partial_cmp(&x).is_none() {
                pivot = i;
            }
        }
        if pivot != k {
            self.rows.swap(pivot, k);
            self.order.swap(pivot, k);
            self.is_odd = !self.is_odd;
        }
        let first = self.rows[k];
        if first[k] == T::of(0.0) {
            // All below are zero, too.
            return;
        }
        for row in &mut self.rows[k + 1..self.n] {
            let factor = row[k] / first[k];
            row[k] = factor;
            for (x, &y) in row[k + 1..self.n].iter_mut().zip(&first[k + 1..self.n]) {
                *x -= factor * y;
            }
        }
    }

    /// The elements whose product is the determinant, but for its sign.
    pub(crate) fn diagonal(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.n).map(|k| self.rows[k][k])
    }

    /// Whether the order of the rows is an odd permutation, which turns the sign of the determinant.
    pub(crate) fn is_odd(&self) -> bool {
        self.is_odd
    }

    /// Whether an element of the diagonal is zero.
    fn is_singular(&self) -> bool {
        self.diagonal().any(|x| x == T::of(0.0))
    }

    /// The solutions for the `m` columns of a right side, row by row.
    ///
    /// # Errors
    /// If the matrix is singular.
    pub(crate) fn solve_all(
        &self,
        m: usize,
        right: impl Fn(usize, usize) -> T,
        x: &mut [T],
    ) -> Dense {
        if self.is_singular() {
            return Err(DenseError::Singular);
        }
        for j in 0..m {
            let column = self.solve(|i| right(i, j));
            for i in 0..self.n {
                x[i * m + j] = column[i];
            }
        }
        Ok(())
    }

    /// The solution for a right side whose elements are these.
    fn solve(&self, right: impl Fn(usize) -> T) -> [T; MOST_ROWS] {
        let mut x = [T::of(0.0); MOST_ROWS];
        for i in 0..self.n {
            let row = &self.rows[i];
            let known = row[..i].iter().zip(&x);
            x[i] = known.fold(right(self.order[i]), |rest, (&l, &x)| rest - l * x);
        }
        for i in (0..self.n).rev() {
            let row = &self.rows[i];
            let known = row[i + 1..self.n].iter().zip(&x[i + 1..self.n]);
            x[i] = known.fold(x[i], |rest, (&u, &x)| rest - u * x) / row[i];
        }
        x
    }
}

fn size<T: Number>(x: T) -> T {
    if x < T::of(0.0) { -x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_change_places() {
        let small = Small::of(3, [0.0, 2.0, 1.0, 4.0, 0.0, 0.0, 0.0, 1.0, 3.0].into_iter());
        assert!(small.is_odd() && !small.is_singular());
        assert_eq!(small.diagonal().product::<f64>(), 20.0);
        let b = [5.0, 4.0, 5.0];
        assert_eq!(small.solve(|i| b[i])[..3], [1.0, 2.0, 1.0]);
    }

    #[test]
    fn what_is_no_number_is_the_pivot() {
        let small = Small::of(2, [0.0, 1.0, f64::NAN, 1.0].into_iter());
        assert!(small.diagonal().product::<f64>().is_nan() && !small.is_singular());
        assert!(Small::of(2, [1.0_f32, 2.0, 2.0, 4.0].into_iter()).is_singular());
    }
}
