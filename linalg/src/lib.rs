//! Dense products and decompositions, sparse matrices, their factorisations and an iterative solver: `faer`, behind the
//! few operations that `ti.linalg` and tensors have; Fourier transforms: `rustfft`.
//!
//! Matrices are compressed by columns. All functions take the number of threads they may use.

pub mod adjugate;
mod cg;
pub mod decompose;
mod dense;
pub mod fourier;
mod matrix;
mod scale;
mod small;
mod solver;

pub use cg::conjugate_gradient;
pub use dense::multiply;
pub use matrix::{Matrix, MatrixError, Number};
pub use solver::{Method, SolveError, Solver};

/// How `faer` is told the number of threads.
fn parallel(n_threads: usize) -> faer::Par {
    if n_threads <= 1 {
        faer::Par::Seq
    } else {
        faer::Par::rayon(n_threads)
    }
}
