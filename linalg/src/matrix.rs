//! Sparse matrices.

use std::fmt::{self, Display};

use faer::sparse::linalg::matmul::{sparse_dense_matmul, sparse_sparse_matmul};
use faer::sparse::{
    CreationError, FaerError, SparseColMat, SparseColMatRef, SymbolicSparseColMat, Triplet, ops,
};
use faer::{Accum, MatMut, MatRef};

use crate::parallel;

/// What elements may be: `f32` and `f64`.
pub trait Number:
    faer::traits::RealField + Copy + PartialOrd + Display + Into<f64> + std::ops::Div<Output = Self>
{
    /// The number nearest to `value`.
    fn of(value: f64) -> Self;
}

impl Number for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }
}

impl Number for f64 {
    fn of(value: f64) -> Self {
        value
    }
}

/// Why a matrix could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatrixError {
    /// An entry lies outside the matrix.
    Outside {
        /// Its row.
        row: i64,
        /// Its column.
        col: i64,
    },
    /// The arrays of a compressed matrix do not belong together.
    Malformed(&'static str),
    /// The shape does not fit that of the other matrix.
    Extents([(usize, usize); 2]),
    /// There is not enough memory.
    OutOfMemory,
}

impl Display for MatrixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside { row, col } => write!(f, "the entry [{row}, {col}] is outside"),
            Self::Malformed(what) => f.write_str(what),
            Self::Extents([(n, m), (k, l)]) => {
                write!(f, "a matrix of {n}x{m} and one of {k}x{l} do not fit")
            }
            Self::OutOfMemory => f.write_str("not enough memory for the matrix"),
        }
    }
}

impl std::error::Error for MatrixError {}

impl From<FaerError> for MatrixError {
    fn from(_: FaerError) -> Self {
        Self::OutOfMemory
    }
}

impl From<CreationError> for MatrixError {
    fn from(e: CreationError) -> Self {
        match e {
            CreationError::Generic(e) => e.into(),
            CreationError::OutOfBounds { row, col } => Self::Outside {
                row: row as i64,
                col: col as i64,
            },
        }
    }
}

/// A sparse matrix, compressed by columns, the rows of each column in ascending order.
#[derive(Clone, Debug)]
pub struct Matrix<T> {
    inner: SparseColMat<usize, T>,
}

impl<T: Number> Matrix<T> {
    /// A matrix from entries in any order; entries of one place add up.
    ///
    /// # Errors
    /// If an entry is outside.
    pub fn from_triplets(
        (n_rows, n_cols): (usize, usize),
        entries: impl ExactSizeIterator<Item = (i64, i64, T)>,
    ) -> Result<Self, MatrixError> {
        let mut triplets = Vec::new();
        let reserved = triplets.try_reserve_exact(entries.len());
        reserved.map_err(|_| MatrixError::OutOfMemory)?;
        for (row, col, value) in entries {
            let inside = |at: i64, n: usize| usize::try_from(at).ok().filter(|&at| at < n);
            match (inside(row, n_rows), inside(col, n_cols)) {
                (Some(r), Some(c)) => triplets.push(Triplet::new(r, c, value)),
                _ => return Err(MatrixError::Outside { row, col }),
            }
        }
        let inner = SparseColMat::try_new_from_triplets(n_rows, n_cols, &triplets)?;
        Ok(Self { inner })
    }

    /// A matrix from the three arrays of the compressed form, rows of a column in any order.
    ///
    /// # Errors
    /// If the arrays are of the wrong lengths, `col_ptr` descends, or a row is outside.
    pub fn from_columns(
        extents: (usize, usize),
        col_ptr: &[i64],
        row_idx: &[i64],
        values: &[T],
    ) -> Result<Self, MatrixError> {
        let n_entries = i64::try_from(values.len()).unwrap_or(i64::MAX);
        if col_ptr.len() != extents.1 + 1 {
            return Err(MatrixError::Malformed(
                "there must be one pointer more than columns",
            ));
        }
        if row_idx.len() != values.len()
            || col_ptr[0] != 0
            || col_ptr[extents.1] != n_entries
            || col_ptr.windows(2).any(|w| w[0] > w[1])
        {
            return Err(MatrixError::Malformed(
                "pointers, indices and values do not belong together",
            ));
        }
        let mut col = 0;
        let entries = (0..values.len()).map(|k| {
            while col_ptr[col + 1] <= k as i64 {
                col += 1;
            }
            (row_idx[k], col as i64, values[k])
        });
        Self::from_triplets(extents, entries)
    }

    /// Rows and columns.
    pub fn extents(&self) -> (usize, usize) {
        (self.inner.nrows(), self.inner.ncols())
    }

    /// Where each column begins among the entries, their rows, and their values.
    pub fn parts(&self) -> (&[usize], &[usize], &[T]) {
        let (symbolic, values) = self.inner.parts();
        (symbolic.col_ptr(), symbolic.row_idx(), values)
    }

    pub(crate) fn view(&self) -> SparseColMatRef<'_, usize, T> {
        self.inner.as_ref()
    }

    /// Where an entry is, or where it would be.
    fn find(&self, row: usize, col: usize) -> Result<usize, usize> {
        let (col_ptr, row_idx, _) = self.parts();
        let begin = col_ptr[col];
        let found = row_idx[begin..col_ptr[col + 1]].binary_search(&row);
        found.map(|at| begin + at).map_err(|at| begin + at)
    }

    /// An element; zero where there is no entry.
    ///
    /// # Panics
    /// If it is outside.
    pub fn get(&self, row: usize, col: usize) -> T {
        assert!(row < self.inner.nrows() && col < self.inner.ncols());
        self.find(row, col)
            .map_or(T::of(0.0), |at| self.parts().2[at])
    }

    /// Sets an element. Where there was no entry, all behind it move, which takes a time in
    /// proportion to the matrix.
    ///
    /// # Panics
    /// If it is outside.
    pub fn set(&mut self, row: usize, col: usize, value: T) {
        assert!(row < self.inner.nrows() && col < self.inner.ncols());
        match self.find(row, col) {
            Ok(at) => self.inner.val_mut()[at] = value,
            Err(at) => {
                let (n_rows, n_cols) = self.extents();
                let (col_ptr, row_idx, values) = self.parts();
                let mut col_ptr = col_ptr.to_vec();
                let mut row_idx = row_idx.to_vec();
                let mut values = values.to_vec();
                col_ptr[col + 1..].iter_mut().for_each(|p| *p += 1);
                row_idx.insert(at, row);
                values.insert(at, value);
                let symbolic =
                    SymbolicSparseColMat::new_checked(n_rows, n_cols, col_ptr, None, row_idx);
                self.inner = SparseColMat::new(symbolic, values);
            }
        }
    }

    fn same_extents(&self, other: &Self) -> Result<(), MatrixError> {
        if self.extents() == other.extents() {
            return Ok(());
        }
        Err(MatrixError::Extents([self.extents(), other.extents()]))
    }

    /// The sum.
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn add(&self, other: &Self) -> Result<Self, MatrixError> {
        self.same_extents(other)?;
        let inner = ops::add(self.view(), other.view())?;
        Ok(Self { inner })
    }

    /// The difference.
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn sub(&self, other: &Self) -> Result<Self, MatrixError> {
        self.same_extents(other)?;
        let inner = ops::sub(self.view(), other.view())?;
        Ok(Self { inner })
    }

    /// The product of elements.
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn hadamard(&self, other: &Self) -> Result<Self, MatrixError> {
        self.same_extents(other)?;
        let (n_rows, n_cols) = self.extents();
        let [(p, rows, x), (q, others, y)] = [self.parts(), other.parts()];
        let (mut col_ptr, mut row_idx, mut values) = (vec![0], Vec::new(), Vec::new());
        for col in 0..n_cols {
            let (mut i, mut j) = (p[col], q[col]);
            while i < p[col + 1] && j < q[col + 1] {
                if rows[i] == others[j] {
                    row_idx.push(rows[i]);
                    values.push(x[i] * y[j]);
                }
                let (row, beside) = (rows[i], others[j]);
                i += usize::from(row <= beside);
                j += usize::from(beside <= row);
            }
            col_ptr.push(row_idx.len());
        }
        let symbolic = SymbolicSparseColMat::new_checked(n_rows, n_cols, col_ptr, None, row_idx);
        let inner = SparseColMat::new(symbolic, values);
        Ok(Self { inner })
    }

    /// All elements times a number.
    #[must_use]
    pub fn scaled(&self, factor: T) -> Self {
        let mut scaled = self.clone();
        for value in scaled.inner.val_mut() {
            *value *= factor;
        }
        scaled
    }

    /// Rows and columns exchanged.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn transposed(&self) -> Result<Self, MatrixError> {
        let inner = self.view().transpose().to_col_major()?;
        Ok(Self { inner })
    }

    /// The matrix product.
    ///
    /// # Errors
    /// If the first has not as many columns as the second has rows.
    pub fn matmul(&self, other: &Self, n_threads: usize) -> Result<Self, MatrixError> {
        if self.extents().1 != other.extents().0 {
            return Err(MatrixError::Extents([self.extents(), other.extents()]));
        }
        let (par, one) = (parallel(n_threads), T::of(1.0));
        let inner = sparse_sparse_matmul(self.view(), other.view(), one, par)?;
        Ok(Self { inner })
    }

    /// The product with a vector.
    ///
    /// # Panics
    /// If `x` has not as many elements as there are columns, or `out` as there are rows.
    pub fn apply(&self, x: &[T], out: &mut [T], n_threads: usize) {
        assert_eq!((out.len(), x.len()), self.extents());
        let (n_rows, n_cols) = self.extents();
        sparse_dense_matmul(
            MatMut::from_column_major_slice_mut(out, n_rows, 1),
            Accum::Replace,
            self.view(),
            MatRef::from_column_major_slice(x, n_cols, 1),
            T::of(1.0),
            parallel(n_threads),
        );
    }

    /// Where the matrix differs from its transpose by more than `tolerance` times its largest
    /// element; nothing if it is symmetric or all above its diagonal is zero.
    pub fn asymmetry(&self, tolerance: f64) -> Option<(usize, usize)> {
        let size = |v: T| Into::<f64>::into(v).abs();
        let (col_ptr, row_idx, values) = self.parts();
        let largest = values.iter().map(|&v| size(v)).fold(0.0, f64::max);
        let mut only_lower = true;
        let mut worst = None;
        for col in 0..self.extents().1 {
            for at in col_ptr[col]..col_ptr[col + 1] {
                let (row, value) = (row_idx[at], values[at]);
                only_lower &= row >= col || value == T::of(0.0);
                if size(value - self.get(col, row)) > tolerance * largest {
                    worst = worst.or(Some((row, col)));
                }
            }
        }
        worst.filter(|_| !only_lower)
    }
}
