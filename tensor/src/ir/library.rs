//! Library calls: operations on whole buffers that are not statements over points.

use std::fmt;

use aerogel_base::Span;
use aerogel_linalg::decompose::DenseError;
use aerogel_runtime::buffer::MemoryError;

use super::ids::Buffer;

/// A library function on whole buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// `out[.., i, j] = sum over k of a[.., i, k] * b[.., k, j]`, floats; the leading axes of all three are the same.
    MatMul,
    /// So many rows as `out` has of such a product, from the row on that the one number of a third buffer (`i32`) names. Rows
    /// behind the last one stay as they are.
    MatMulRows,
    /// The numbers along the last axis in order (`values, order = sort(x)`), equal ones in the order in which they come,
    /// NaN behind all; downwards if `descending`. As many of the first ones as there are in `values`
    /// and `order`, which need not be there.
    Sort {
        /// From the largest.
        descending: bool,
    },
    /// Puts a copy of a buffer on top of a history: `history = push(x, history)`. The buffer that names a history has no
    /// elements that anybody reads. With a mask along the first axes, `history = push(x, mask, history)`, each lane has a
    /// history of its own, and those at which it is true put theirs.
    Push,
    /// Takes what is on top of a history: `x, history = pop(history)`; with a mask, `x, history = pop(mask, history)`, `x`
    /// is zero for the other lanes.
    Pop,
    /// Linear algebra of matrices.
    Algebra(Algebra),
    /// Fourier transforms of rows.
    Transform(Transform),
}

impl Library {
    /// What it is called in the text of programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::MatMul => "matmul",
            Self::MatMulRows => "matmul_rows",
            Self::Sort { descending: false } => "sort",
            Self::Sort { descending: true } => "sort_down",
            Self::Push => "push",
            Self::Pop => "pop",
            Self::Algebra(op) => op.name(),
            Self::Transform(op) => op.name(),
        }
    }

    /// What is called so.
    pub fn from_name(name: &str) -> Option<Self> {
        let own = [
            Self::MatMul,
            Self::MatMulRows,
            Self::Sort { descending: false },
            Self::Sort { descending: true },
            Self::Push,
            Self::Pop,
        ];
        let own = own.into_iter().find(|own| own.name() == name);
        let algebra = || Algebra::from_name(name).map(Self::Algebra);
        let transform = || Transform::from_name(name).map(Self::Transform);
        own.or_else(algebra).or_else(transform)
    }
}

/// A call of a library on the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The library function.
    pub library: Library,
    /// The buffers that it reads.
    pub inputs: Vec<Buffer>,
    /// The buffers that it writes as a whole.
    pub outputs: Vec<Buffer>,
    /// Where it was written.
    pub span: Span,
}

impl Call {
    /// Puts a copy of a value on top of a history; with a mask, of the lanes at which it is true.
    pub fn push(value: Buffer, mask: Option<Buffer>, history: Buffer, span: Span) -> Self {
        let inputs = [Some(value), mask, Some(history)];
        Self {
            library: Library::Push,
            inputs: inputs.into_iter().flatten().collect(),
            outputs: vec![history],
            span,
        }
    }

    /// Takes what is on top of a history as a value; with a mask, for the lanes at which it is true.
    pub fn pop(history: Buffer, mask: Option<Buffer>, value: Buffer, span: Span) -> Self {
        let inputs = [mask, Some(history)];
        Self {
            library: Library::Pop,
            inputs: inputs.into_iter().flatten().collect(),
            outputs: vec![value, history],
            span,
        }
    }

    /// The mask by which a value is put on a history, or taken from it.
    pub fn mask(&self) -> Option<Buffer> {
        match (self.library, &self.inputs[..]) {
            (Library::Push, &[_, mask, _]) | (Library::Pop, &[mask, _]) => Some(mask),
            _ => None,
        }
    }

    /// The value that is put on a history, or taken from it, and the history.
    pub fn kept(&self) -> Option<[Buffer; 2]> {
        match self.library {
            Library::Push => Some([self.inputs[0], self.outputs[0]]),
            Library::Pop => Some([self.outputs[0], self.outputs[1]]),
            _ => None,
        }
    }
}

aerogel_base::kinds! {
    /// Functions of matrices.
    Algebra {
        /// Orthonormal columns, as many as the smaller size, and an upper triangle: `q, r = a`.
        Qr = "qr",
        /// The same with as many columns as rows.
        QrComplete = "qr_complete",
        /// `u, s, vh = a`, as many singular values as the smaller size, in descending order.
        Svd = "svd",
        /// The same with square `u` and `vh`.
        SvdFull = "svd_full",
        /// Singular values alone.
        SvdVals = "svdvals",
        /// A lower triangle, of a symmetric or Hermitian matrix.
        Cholesky = "cholesky",
        /// `l, u, perm = a`: a lower and an upper triangle, and which row of `a` each row of their product is, as a float.
        Lu = "lu",
        /// `x = (a, b)` with `a x = b`.
        Solve = "solve",
        /// The inverse.
        Inv = "inv",
        /// The determinant.
        Det = "det",
        /// The adjugate: the determinant times the inverse, of singular matrices as well.
        Adjugate = "adjugate",
        /// Its sign, a number of size 1, and the logarithm of its size.
        SlogDet = "slogdet",
        /// Eigenvalues in rising order and eigenvectors of a symmetric or Hermitian matrix.
        Eigh = "eigh",
        /// These eigenvalues alone.
        EigValsh = "eigvalsh",
        /// Complex eigenvalues and eigenvectors.
        Eig = "eig",
        /// Eigenvalues alone.
        EigVals = "eigvals",
    }
}

aerogel_base::kinds! {
    /// Fourier transforms of rows, along the last axis; nothing is scaled.
    Transform {
        /// `sum over j of x[j] * exp(-2 pi i j k / n)`.
        Forwards = "fft",
        /// The same with the other sign.
        Backwards = "fft_back",
        /// Of real numbers; as many as there are different ones.
        OfReal = "fft_of_real",
        /// Backwards, of as many as there are different ones, to real numbers.
        ToReal = "fft_to_real",
    }
}

/// How many planes a result of matrices has: elements are real ones, or complex ones of two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    /// As many as what it is of.
    Given,
    /// One, whatever it is of.
    Real,
    /// Two, whatever it is of.
    Complex,
}

impl Algebra {
    /// Its name in messages.
    pub fn common_name(self) -> &'static str {
        match self {
            Self::QrComplete => Self::Qr.name(),
            Self::SvdFull => Self::Svd.name(),
            other => other.name(),
        }
    }

    /// How many matrices it takes.
    pub fn takes(self) -> usize {
        if self == Self::Solve { 2 } else { 1 }
    }

    /// Whether so many buffers are complex matrices; if they are neither these nor real ones, nothing.
    pub fn is_complex(self, n_inputs: usize) -> Option<bool> {
        let is_complex = n_inputs == 2 * self.takes();
        (is_complex || n_inputs == self.takes()).then_some(is_complex)
    }

    /// How many axes of each result are not the batch's, and how many planes it has.
    pub fn gives(self, is_complex: bool) -> impl Iterator<Item = (usize, usize)> {
        use Parts::{Complex, Given, Real};
        let all: &[(usize, Parts)] = match self {
            Self::Qr | Self::QrComplete => &[(2, Given), (2, Given)],
            Self::Svd | Self::SvdFull => &[(2, Given), (1, Real), (2, Given)],
            Self::SvdVals | Self::EigValsh => &[(1, Real)],
            Self::Cholesky | Self::Inv | Self::Adjugate | Self::Solve => &[(2, Given)],
            Self::Lu => &[(2, Given), (2, Given), (1, Real)],
            Self::Det => &[(0, Given)],
            Self::SlogDet => &[(0, Given), (0, Real)],
            Self::Eigh => &[(1, Real), (2, Given)],
            Self::Eig => &[(1, Complex), (2, Complex)],
            Self::EigVals => &[(1, Complex)],
        };
        all.iter().map(move |&(axes, parts)| {
            let two = parts == Complex || (parts == Given && is_complex);
            (axes, 1 + usize::from(two))
        })
    }

    /// How many axes of each buffer that it gives are not the batch's.
    pub fn axes(self, is_complex: bool) -> Vec<usize> {
        let all = self.gives(is_complex);
        all.flat_map(|(axes, n)| std::iter::repeat_n(axes, n))
            .collect()
    }

    /// Whether it takes square matrices only.
    pub fn is_of_squares(self) -> bool {
        !matches!(
            self,
            Self::Qr | Self::QrComplete | Self::Svd | Self::SvdFull | Self::SvdVals | Self::Lu
        )
    }
}

impl Transform {
    /// How many buffers it takes and gives.
    pub fn operands(self) -> (usize, usize) {
        match self {
            Self::Forwards | Self::Backwards => (2, 2),
            Self::OfReal => (1, 2),
            Self::ToReal => (2, 1),
        }
    }
}

/// Why a library has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryError {
    /// There is no memory.
    Memory(MemoryError),
    /// The shapes of its operands do not fit together.
    Shapes(Library),
    /// More values are taken from a history than were put on it, or others.
    History,
    /// The operation, the index of the matrix, the number of matrices, and the reason.
    Dense(Algebra, usize, usize, DenseError),
}

impl From<MemoryError> for LibraryError {
    fn from(e: MemoryError) -> Self {
        Self::Memory(e)
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(e) => e.fmt(f),
            Self::Shapes(library) => {
                write!(
                    f,
                    "the shapes of the operands of `{}` do not fit together",
                    library.name()
                )
            }
            Self::History => f.write_str("`pop` takes a value that no `push` has put there"),
            Self::Dense(op, _, 1, e) => write!(f, "`{}`: {e}", op.common_name()),
            Self::Dense(op, at, n, e) => {
                write!(f, "`{}`: {e} (number {at} of {n})", op.common_name())
            }
        }
    }
}
