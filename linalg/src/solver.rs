//! Factorisations, and solutions by them.

use std::fmt::{self, Display};

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::{ldlt, llt};
use faer::sparse::linalg::LuError;
use faer::sparse::linalg::cholesky::{
    LdltRef, LltRef, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering,
    factorize_symbolic_cholesky,
};
use faer::sparse::linalg::lu::{LuRef, NumericLu, SymbolicLu, factorize_symbolic_lu};
use faer::sparse::{FaerError, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par, Side};

use crate::matrix::{Matrix, Number};
use crate::parallel;

/// A factorisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `L L^T`, of symmetric positive definite matrices; only the lower triangle is read.
    Llt,
    /// `L D L^T`, of symmetric matrices without pivoting; only the lower triangle is read.
    Ldlt,
    /// `L U` with partial pivoting.
    Lu,
}

/// Why there is no factorisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SolveError {
    /// There are not as many rows as columns.
    NotSquare {
        /// Rows.
        n_rows: usize,
        /// Columns.
        n_cols: usize,
    },
    /// The matrix is not positive definite; seen when this row was eliminated.
    NotPositiveDefinite {
        /// The row.
        row: usize,
    },
    /// A pivot is zero.
    Singular {
        /// The row that was eliminated, if known.
        row: Option<usize>,
    },
    /// The entries are not those that were analysed.
    OtherPattern,
    /// The numbers are not finite.
    NotFinite,
    /// There is not enough memory.
    OutOfMemory,
}

impl Display for SolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSquare { n_rows, n_cols } => {
                write!(
                    f,
                    "the matrix is not square: {n_rows} rows, {n_cols} columns"
                )
            }
            Self::NotPositiveDefinite { row } => write!(
                f,
                "the matrix is not positive definite: the pivot of row {row} is not positive"
            ),
            Self::Singular { row: Some(row) } => {
                write!(f, "the matrix is singular: the pivot of row {row} is zero")
            }
            Self::Singular { row: None } => f.write_str("the matrix is singular"),
            Self::OtherPattern => {
                f.write_str("the matrix has other entries than the one that was analysed")
            }
            Self::NotFinite => f.write_str("the matrix has elements that are not finite"),
            Self::OutOfMemory => f.write_str("not enough memory for the factorisation"),
        }
    }
}

impl std::error::Error for SolveError {}

impl From<FaerError> for SolveError {
    fn from(_: FaerError) -> Self {
        Self::OutOfMemory
    }
}

enum Symbolic {
    Cholesky(SymbolicCholesky<usize>),
    Lu(SymbolicLu<usize>),
}

enum Numeric<T> {
    Cholesky(Vec<T>),
    Lu(Box<NumericLu<usize, T>>),
}

/// A factorisation of matrices with one pattern of entries, in two steps.
pub struct Solver<T> {
    method: Method,
    symbolic: Symbolic,
    numeric: Option<Numeric<T>>,
    condition: f64,
    /// The pattern: where columns begin, and rows.
    col_ptr: Vec<usize>,
    row_idx: Vec<usize>,
}

impl<T: Number> Solver<T> {
    /// Finds the order of elimination and the pattern of the factors, by approximate minimum degree
    /// for Cholesky factorisations and COLAMD for `L U`.
    ///
    /// # Errors
    /// If the matrix is not square, or there is not enough memory.
    pub fn analyze(matrix: &Matrix<T>, method: Method) -> Result<Self, SolveError> {
        let (n_rows, n_cols) = matrix.extents();
        if n_rows != n_cols {
            return Err(SolveError::NotSquare { n_rows, n_cols });
        }
        let pattern: SymbolicSparseColMatRef<'_, usize> = matrix.view().symbolic();
        let symbolic = match method {
            Method::Llt | Method::Ldlt => Symbolic::Cholesky(factorize_symbolic_cholesky(
                pattern,
                Side::Lower,
                SymmetricOrdering::Amd,
                Default::default(),
            )?),
            Method::Lu => Symbolic::Lu(factorize_symbolic_lu(pattern, Default::default())?),
        };
        let (col_ptr, row_idx, _) = matrix.parts();
        Ok(Self {
            method,
            symbolic,
            numeric: None,
            condition: 1.0,
            col_ptr: col_ptr.to_vec(),
            row_idx: row_idx.to_vec(),
        })
    }

    /// Whether [`Solver::factorize`] has succeeded.
    pub fn is_factorized(&self) -> bool {
        self.numeric.is_some()
    }

    /// Rows of the matrix.
    pub fn n_rows(&self) -> usize {
        self.col_ptr.len() - 1
    }

    /// Computes the factors.
    ///
    /// # Errors
    /// If the matrix has another pattern than the one analysed, or cannot be factorised so.
    pub fn factorize(&mut self, matrix: &Matrix<T>, n_threads: usize) -> Result<(), SolveError> {
        self.numeric = None;
        let (col_ptr, row_idx, values) = matrix.parts();
        if col_ptr != self.col_ptr || row_idx != self.row_idx {
            return Err(SolveError::OtherPattern);
        }
        if !values.iter().all(|&v| Into::<f64>::into(v).is_finite()) {
            return Err(SolveError::NotFinite);
        }
        let par = parallel(n_threads);
        self.numeric = Some(match &self.symbolic {
            Symbolic::Cholesky(symbolic) => {
                Numeric::Cholesky(cholesky(symbolic, matrix, self.method, par)?)
            }
            Symbolic::Lu(symbolic) => {
                let mut numeric = NumericLu::new();
                let needed = symbolic.factorize_numeric_lu_scratch::<T>(par, Default::default());
                symbolic
                    .factorize_numeric_lu(
                        &mut numeric,
                        matrix.view(),
                        par,
                        MemStack::new(&mut memory(needed)?),
                        Default::default(),
                    )
                    .map_err(|e| match e {
                        LuError::SymbolicSingular { .. } => SolveError::Singular { row: None },
                        LuError::Generic(e) => e.into(),
                    })?;
                Numeric::Lu(Box::new(numeric))
            }
        });
        // Of `L U` a pivot that is zero shows in what it is divided by.
        if self.method == Method::Lu {
            let mut x = probe(self.n_rows());
            self.solve_in_place(&mut x, n_threads)?;
            if !x.iter().all(|&v| Into::<f64>::into(v).is_finite()) {
                self.numeric = None;
                return Err(SolveError::Singular { row: None });
            }
            let largest = x.iter().fold(0.0, |a: f64, &v| a.max(f64::abs(v.into())));
            self.condition = largest * norm(matrix);
        }
        Ok(())
    }

    /// A lower bound of the condition number of the matrix that [`Solver::factorize`] took for
    /// `L U`, and near to it if it is large. Where it passes the precision of the numbers, the
    /// matrix cannot be told from a singular one.
    pub fn condition(&self) -> f64 {
        self.condition
    }

    /// Replaces the right-hand side by the solution.
    ///
    /// # Errors
    /// If there is not enough memory.
    ///
    /// # Panics
    /// If there is no factorisation, or `b` has not as many elements as the matrix has rows.
    pub fn solve_in_place(&self, b: &mut [T], n_threads: usize) -> Result<(), SolveError> {
        let par = parallel(n_threads);
        assert_eq!(b.len(), self.n_rows());
        let n = b.len();
        let b = MatMut::from_column_major_slice_mut(b, n, 1);
        match (&self.symbolic, self.numeric.as_ref().expect("factorised")) {
            (Symbolic::Cholesky(symbolic), Numeric::Cholesky(values)) => {
                let mut memory = memory(symbolic.solve_in_place_scratch::<T>(1, par))?;
                let stack = MemStack::new(&mut memory);
                if self.method == Method::Llt {
                    let factors = LltRef::new(symbolic, values);
                    factors.solve_in_place_with_conj(Conj::No, b, par, stack);
                } else {
                    let factors = LdltRef::new(symbolic, values);
                    factors.solve_in_place_with_conj(Conj::No, b, par, stack);
                }
            }
            (Symbolic::Lu(symbolic), Numeric::Lu(numeric)) => {
                let mut memory = memory(symbolic.solve_in_place_scratch::<T>(1, par))?;
                let stack = MemStack::new(&mut memory);
                let factors = LuRef::new_unchecked(symbolic, numeric);
                factors.solve_in_place_with_conj(Conj::No, b, par, stack);
            }
            _ => unreachable!("both are of the same method"),
        }
        Ok(())
    }
}

/// A vector of elements from -1 to 1 without a pattern, so that it has a part in every direction.
fn probe<T: Number>(n: usize) -> Vec<T> {
    // Knuth's multiplicative hash.
    let hash = |i: usize| (i as u32).wrapping_add(1).wrapping_mul(2_654_435_761) as i32;
    (0..n)
        .map(|i| T::of(f64::from(hash(i)) / 2_147_483_648.0))
        .collect()
}

/// The largest sum of the absolute values of a row.
fn norm<T: Number>(matrix: &Matrix<T>) -> f64 {
    let (_, row_idx, values) = matrix.parts();
    let mut sums = vec![0.0; matrix.extents().0];
    for (&row, &value) in row_idx.iter().zip(values) {
        sums[row] += f64::abs(value.into());
    }
    sums.into_iter().fold(0.0, f64::max)
}

fn memory(needed: faer::dyn_stack::StackReq) -> Result<MemBuffer, SolveError> {
    MemBuffer::try_new(needed).map_err(|_| SolveError::OutOfMemory)
}

fn cholesky<T: Number>(
    symbolic: &SymbolicCholesky<usize>,
    matrix: &Matrix<T>,
    method: Method,
    par: Par,
) -> Result<Vec<T>, SolveError> {
    let mut values = Vec::new();
    let reserved = values.try_reserve_exact(symbolic.len_val());
    reserved.map_err(|_| SolveError::OutOfMemory)?;
    values.resize(symbolic.len_val(), T::of(0.0));
    // Rows are eliminated in another order than they stand in; `faer` counts those of a simplicial
    // factorisation from 1.
    let row = |index: usize| {
        let first = usize::from(matches!(symbolic.raw(), SymbolicCholeskyRaw::Simplicial(_)));
        let index = index - first;
        symbolic.perm().map_or(index, |perm| perm.arrays().0[index])
    };
    let side = Side::Lower;
    if method == Method::Llt {
        let needed = symbolic.factorize_numeric_llt_scratch::<T>(par, Default::default());
        let mut memory = memory(needed)?;
        let stack = MemStack::new(&mut memory);
        let made = symbolic.factorize_numeric_llt(
            &mut values,
            matrix.view(),
            side,
            Default::default(),
            par,
            stack,
            Default::default(),
        );
        made.map_err(|llt::factor::LltError::NonPositivePivot { index }| {
            SolveError::NotPositiveDefinite { row: row(index) }
        })?;
    } else {
        let needed = symbolic.factorize_numeric_ldlt_scratch::<T>(par, Default::default());
        let mut memory = memory(needed)?;
        let stack = MemStack::new(&mut memory);
        let made = symbolic.factorize_numeric_ldlt(
            &mut values,
            matrix.view(),
            side,
            Default::default(),
            par,
            stack,
            Default::default(),
        );
        made.map_err(
            |ldlt::factor::LdltError::ZeroPivot { index }| SolveError::Singular {
                row: Some(row(index)),
            },
        )?;
    }
    Ok(values)
}
