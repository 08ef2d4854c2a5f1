//! Why programs end early.

use std::fmt;

use aerogel_base::AssertKind;
use aerogel_ir::TreeId;
use aerogel_runtime::buffer::MemoryError;
use aerogel_snode::NodeId;

use super::ids::{Buffer, Dim};
use super::library::LibraryError;
use super::region::Raised;
use super::site::OutOfBounds;

/// Why a program ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Sizes that must be equal differ: which agreement, and the sizes.
    Disagreement(usize, [u64; 2]),
    /// An index outside its axis, of an access that checks it.
    Index(OutOfBounds),
    /// An index outside its axis where the writer has promised that none is: a bug of the writer. The buffer, the axis, the
    /// index and the size of the axis.
    Unproved(Buffer, usize, i64, u64),
    /// A size below zero, or too large for indices: which, if it is the program's, and its value.
    Extent(Option<Dim>, i128),
    /// A number computed from shapes does not fit its type.
    Number(Dim, i128),
    /// An input is not as the program says: its number, and what is wrong.
    Input(usize, String),
    /// Histories would take more bytes than they may: the buffer that was put on one, and how many they may take.
    Kept(Buffer, u64),
    /// A library has no result: the first buffer that it was to make, and why.
    Library(Buffer, LibraryError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disagreement(_, [a, b]) => write!(f, "sizes {a} and {b} have to be equal"),
            Self::Index(OutOfBounds {
                axis, index, size, ..
            })
            | Self::Unproved(_, axis, index, size) => {
                write!(
                    f,
                    "index {index} is outside axis {axis} with {size} elements"
                )
            }
            Self::Extent(_, n) if *n < 0 => write!(f, "the size of an axis is {n}, below zero"),
            Self::Extent(_, n) => write!(
                f,
                "the size of an axis is {n}: indices are at most {}",
                i32::MAX
            ),
            Self::Number(_, n) => write!(
                f,
                "a number computed from shapes is {n}, which does not fit `i32`"
            ),
            Self::Input(number, what) => write!(f, "input {number}: {what}"),
            Self::Kept(_, most) => write!(
                f,
                "the values that loops save for their gradients take more than {most} bytes"
            ),
            Self::Library(_, e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// Why a program ended early. Inputs that it changes are then as far as it got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// A failure of the program's statements.
    Failure(Failure),
    /// Another check of a kernel does not hold.
    Check {
        /// The kind of the check.
        kind: AssertKind,
        /// Its message.
        text: String,
    },
    /// A kernel of the user's ended early, for this reason.
    Region(Raised),
    /// There is no memory.
    Memory(MemoryError),
    /// There is no memory for a cell of a field.
    NoCell {
        /// The field's tree.
        tree: TreeId,
        /// The node.
        node: NodeId,
        /// The message, which names the node.
        text: String,
    },
    /// There is no memory for a buffer of this shape, or for its cells.
    NoRoom {
        /// Which.
        buffer: Buffer,
        /// Its shape.
        shape: Vec<usize>,
        /// Why.
        error: MemoryError,
    },
    /// Ctrl-C.
    Interrupted,
    /// Arrays that a kernel takes share memory.
    Overlap,
    /// A kernel was given other arguments than it takes.
    Mismatch(&'static str),
    /// A device cannot run a kernel, or is gone.
    Device(String),
}

impl From<Failure> for RunError {
    fn from(e: Failure) -> Self {
        Self::Failure(e)
    }
}

impl From<MemoryError> for RunError {
    fn from(e: MemoryError) -> Self {
        Self::Memory(e)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(e) => e.fmt(f),
            Self::Memory(e) => e.fmt(f),
            Self::NoRoom { error, .. } => error.fmt(f),
            Self::Check { text, .. } | Self::NoCell { text, .. } => f.write_str(text),
            Self::Region(raised) => raised.0.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Overlap => f.write_str("arrays share memory"),
            Self::Mismatch(what) => f.write_str(what),
            Self::Device(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RunError {}
