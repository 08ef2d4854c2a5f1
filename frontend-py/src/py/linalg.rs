//! Sparse matrices and their factorisations for `linalg.py`.
//!
//! Arrays come and go as bytes in the machine's order, which NumPy reads without looking at them.

use aerogel_linalg::{Matrix, MatrixError, Method, Number, SolveError, Solver, conjugate_gradient};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::error;

/// A number of an array.
trait Item: Sized + Copy {
    const BYTES: usize;
    fn of(bytes: &[u8]) -> Self;
    fn put(self, out: &mut [u8]);
}

macro_rules! item {
    ($($ty:ty),*) => {
        $(impl Item for $ty {
            const BYTES: usize = size_of::<$ty>();

            fn of(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("chunks of this size"))
            }

            fn put(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_ne_bytes());
            }
        })*
    };
}

item!(i64, f32, f64);

fn read<T: Item>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::BYTES).map(T::of).collect()
}

fn written<T: Item>(numbers: impl ExactSizeIterator<Item = T>) -> Vec<u8> {
    let mut bytes = vec![0; numbers.len() * T::BYTES];
    for (number, out) in numbers.zip(bytes.chunks_exact_mut(T::BYTES)) {
        number.put(out);
    }
    bytes
}

fn array<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyByteArray> {
    PyByteArray::new(py, bytes)
}

fn failed(e: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(e.to_string())
}

fn not_made(e: MatrixError) -> PyErr {
    match e {
        MatrixError::OutOfMemory => PyMemoryError::new_err(e.to_string()),
        _ => failed(e),
    }
}

fn unsolved(py: Python<'_>, e: &SolveError) -> PyErr {
    match e {
        SolveError::OutOfMemory => PyMemoryError::new_err(e.to_string()),
        _ => error::runtime(py, e.to_string()),
    }
}

fn from_triplets<T: Number + Item>(
    extents: (usize, usize),
    [rows, cols, values]: [&[u8]; 3],
) -> PyResult<Matrix<T>> {
    let (rows, cols, values) = (read::<i64>(rows), read::<i64>(cols), read::<T>(values));
    let entries = (0..values.len()).map(|k| (rows[k], cols[k], values[k]));
    Matrix::from_triplets(extents, entries).map_err(not_made)
}

fn from_columns<T: Number + Item>(
    extents: (usize, usize),
    [col_ptr, row_idx, values]: [&[u8]; 3],
) -> PyResult<Matrix<T>> {
    let (col_ptr, row_idx) = (read::<i64>(col_ptr), read::<i64>(row_idx));
    Matrix::from_columns(extents, &col_ptr, &row_idx, &read::<T>(values)).map_err(not_made)
}

enum Any {
    F32(Matrix<f32>),
    F64(Matrix<f64>),
}

/// Does the same for both element types.
macro_rules! each {
    ($any:expr, $m:ident => $body:expr) => {
        match $any {
            Any::F32($m) => $body,
            Any::F64($m) => $body,
        }
    };
}

/// Makes an [`Any`] of either element type.
macro_rules! map {
    ($any:expr, $m:ident => $body:expr) => {
        match $any {
            Any::F32($m) => Any::F32($body),
            Any::F64($m) => Any::F64($body),
        }
    };
}

/// Does something with two matrices, which must be of one element type.
macro_rules! both {
    ($x:expr, $y:expr, $a:ident, $b:ident => $body:expr) => {
        match ($x, $y) {
            (Any::F32($a), Any::F32($b)) => Any::F32($body.map_err(not_made)?),
            (Any::F64($a), Any::F64($b)) => Any::F64($body.map_err(not_made)?),
            _ => return Err(failed("the matrices have different element types")),
        }
    };
}

/// A sparse matrix of `f32` or `f64`.
#[pyclass]
pub(crate) struct NativeSparseMatrix {
    any: Any,
}

impl NativeSparseMatrix {
    fn new(any: Any) -> Self {
        Self { any }
    }
}

#[pymethods]
impl NativeSparseMatrix {
    /// From rows, columns (`i64`) and values of entries; those of one place add up.
    #[staticmethod]
    fn of_triplets(
        py: Python<'_>,
        extents: (usize, usize),
        double: bool,
        rows: &[u8],
        cols: &[u8],
        values: &[u8],
    ) -> PyResult<Self> {
        let parts = [rows, cols, values];
        let any = py.detach(|| {
            PyResult::Ok(if double {
                Any::F64(from_triplets(extents, parts)?)
            } else {
                Any::F32(from_triplets(extents, parts)?)
            })
        });
        any.map(Self::new)
    }

    /// From the compressed form: where columns begin, and rows (`i64`), and values.
    #[staticmethod]
    fn of_columns(
        py: Python<'_>,
        extents: (usize, usize),
        double: bool,
        col_ptr: &[u8],
        row_idx: &[u8],
        values: &[u8],
    ) -> PyResult<Self> {
        let parts = [col_ptr, row_idx, values];
        let any = py.detach(|| {
            PyResult::Ok(if double {
                Any::F64(from_columns(extents, parts)?)
            } else {
                Any::F32(from_columns(extents, parts)?)
            })
        });
        any.map(Self::new)
    }

    /// The compressed form: where columns begin, and rows (`i64`), and values.
    fn columns<'py>(
        &self,
        py: Python<'py>,
    ) -> (
        Bound<'py, PyByteArray>,
        Bound<'py, PyByteArray>,
        Bound<'py, PyByteArray>,
    ) {
        each!(&self.any, m => {
            let (col_ptr, row_idx, values) = m.parts();
            let numbers = |of: &[usize]| array(py, &written(of.iter().map(|&n| n as i64)));
            (numbers(col_ptr), numbers(row_idx), array(py, &written(values.iter().copied())))
        })
    }

    fn n_entries(&self) -> usize {
        each!(&self.any, m => m.parts().2.len())
    }

    fn get(&self, row: usize, col: usize) -> f64 {
        match &self.any {
            Any::F32(m) => f64::from(m.get(row, col)),
            Any::F64(m) => m.get(row, col),
        }
    }

    fn set(&mut self, row: usize, col: usize, value: f64) {
        each!(&mut self.any, m => m.set(row, col, Number::of(value)));
    }

    fn scaled(&self, py: Python<'_>, factor: f64) -> Self {
        Self::new(py.detach(|| map!(&self.any, m => m.scaled(Number::of(factor)))))
    }

    fn transposed(&self, py: Python<'_>) -> PyResult<Self> {
        let any =
            py.detach(|| PyResult::Ok(map!(&self.any, m => m.transposed().map_err(not_made)?)));
        any.map(Self::new)
    }

    fn add(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let made = py.detach(|| Ok(both!(&self.any, &other.any, a, b => a.add(b))));
        made.map(Self::new)
    }

    fn sub(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let made = py.detach(|| Ok(both!(&self.any, &other.any, a, b => a.sub(b))));
        made.map(Self::new)
    }

    fn hadamard(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let made = py.detach(|| Ok(both!(&self.any, &other.any, a, b => a.hadamard(b))));
        made.map(Self::new)
    }

    fn matmul(&self, py: Python<'_>, other: &Self, n_threads: usize) -> PyResult<Self> {
        let made = py.detach(|| Ok(both!(&self.any, &other.any, a, b => a.matmul(b, n_threads))));
        made.map(Self::new)
    }

    /// The product with a vector, whose length has been checked.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        x: &[u8],
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        fn product<T: Number + Item>(
            matrix: &Matrix<T>,
            x: &[u8],
            n_threads: usize,
        ) -> Result<Vec<u8>, MatrixError> {
            let n_rows = matrix.extents().0;
            // A matrix may have more rows than there is memory for: only its entries take room.
            let mut out = Vec::new();
            let reserved = out.try_reserve_exact(n_rows);
            reserved.map_err(|_| MatrixError::OutOfMemory)?;
            out.resize(n_rows, <T as Number>::of(0.0));
            matrix.apply(&read(x), &mut out, n_threads);
            Ok(written(out.into_iter()))
        }
        let bytes = py.detach(|| each!(&self.any, m => product(m, x, n_threads)));
        Ok(array(py, &bytes.map_err(not_made)?))
    }

    /// An entry that differs from the one across the diagonal, unless all above it is zero.
    fn asymmetry(&self, py: Python<'_>, tolerance: f64) -> Option<(usize, usize)> {
        py.detach(|| each!(&self.any, m => m.asymmetry(tolerance)))
    }

    /// The solution of `self @ x = b` by conjugate gradients from `x`, how many steps were done, and
    /// the length of the residual divided by that of `b`.
    fn conjugate_gradient<'py>(
        &self,
        py: Python<'py>,
        b: &[u8],
        x: &[u8],
        tolerance: f64,
        most: usize,
        n_threads: usize,
    ) -> (Bound<'py, PyByteArray>, usize, f64) {
        let (bytes, steps, error) = py.detach(|| {
            each!(&self.any, m => {
                let (b, mut x) = (read(b), read(x));
                let (steps, error) =
                    conjugate_gradient(m, &b, &mut x, tolerance, most, n_threads);
                (written(x.into_iter()), steps, error)
            })
        });
        (array(py, &bytes), steps, error)
    }
}

enum AnySolver {
    F32(Solver<f32>),
    F64(Solver<f64>),
}

/// A factorisation.
#[pyclass]
pub(crate) struct NativeSparseSolver {
    any: AnySolver,
}

#[pymethods]
impl NativeSparseSolver {
    /// Finds the pattern of the factors; `method` is `LLT`, `LDLT` or `LU`.
    #[staticmethod]
    fn analyze(py: Python<'_>, matrix: &NativeSparseMatrix, method: &str) -> PyResult<Self> {
        let method = match method {
            "LLT" => Method::Llt,
            "LDLT" => Method::Ldlt,
            "LU" => Method::Lu,
            _ => return Err(failed(format!("no factorisation is called {method}"))),
        };
        let any = py.detach(|| {
            Ok(match &matrix.any {
                Any::F32(m) => AnySolver::F32(Solver::analyze(m, method)?),
                Any::F64(m) => AnySolver::F64(Solver::analyze(m, method)?),
            })
        });
        let any = any.map_err(|e| unsolved(py, &e))?;
        Ok(Self { any })
    }

    /// Computes the factors; gives a lower bound of the condition number for LU, else 1.
    fn factorize(
        &mut self,
        py: Python<'_>,
        matrix: &NativeSparseMatrix,
        n_threads: usize,
    ) -> PyResult<f64> {
        let done = py.detach(|| match (&mut self.any, &matrix.any) {
            (AnySolver::F32(solver), Any::F32(m)) => {
                Some(solver.factorize(m, n_threads).map(|()| solver.condition()))
            }
            (AnySolver::F64(solver), Any::F64(m)) => {
                Some(solver.factorize(m, n_threads).map(|()| solver.condition()))
            }
            _ => None,
        });
        match done {
            Some(done) => done.map_err(|e| unsolved(py, &e)),
            None => Err(failed(
                "the matrix has another element type than the solver",
            )),
        }
    }

    /// The solution for a right-hand side whose length has been checked, after `factorize`.
    fn solve<'py>(
        &self,
        py: Python<'py>,
        b: &[u8],
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        fn solved<T: Number + Item>(
            solver: &Solver<T>,
            b: &[u8],
            n_threads: usize,
        ) -> Result<Vec<u8>, SolveError> {
            let mut x = read(b);
            solver.solve_in_place(&mut x, n_threads)?;
            Ok(written(x.into_iter()))
        }
        let bytes = py.detach(|| match &self.any {
            AnySolver::F32(solver) => solved(solver, b, n_threads),
            AnySolver::F64(solver) => solved(solver, b, n_threads),
        });
        let bytes = bytes.map_err(|e| unsolved(py, &e))?;
        Ok(array(py, &bytes))
    }
}
