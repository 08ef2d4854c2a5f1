//! What passes have decided, and why: what is kept in memory, how products of matrices are made.

use std::fmt;

/// Why a temporary is kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is asked for.
    Result,
    /// Several statements store to it.
    StoredAgain,
    /// It accumulates: its elements are no function of their indices alone.
    Accumulates,
    /// Not every element is stored at the point with its indices.
    OtherIndices,
    /// It is stored by statements at points, beside others.
    InKernel,
    /// A library makes it or takes it.
    Library,
    /// A kernel of the user's makes it or takes it.
    Kernel,
    /// Indices outside it are errors.
    Checked,
    /// What it is made of changes before it is read.
    OperandsChange,
    /// It is made at the active cells of a field, and read elsewhere too.
    OtherCells,
    /// An index in it may be an error, and what reads it may not ask for all of it.
    MayFail,
    /// It is read by the host.
    HostReads,
    /// Computing it again costs more: what that costs, and how often it would be done.
    Costly(u32, u32),
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Result => "it is asked for",
            Self::StoredAgain => "several statements store to it",
            Self::Accumulates => "it accumulates",
            Self::OtherIndices => "elements are not stored at the points with their indices",
            Self::InKernel => "it is stored in a kernel with other statements",
            Self::Library => "a library makes it or takes it",
            Self::Kernel => "a kernel of yours makes it or takes it",
            Self::Checked => "indices outside it are errors",
            Self::OperandsChange => "what it is made of changes before it is read",
            Self::OtherCells => {
                "it is made at the active cells of a field, and read at other points too"
            }
            Self::MayFail => {
                "an index in it may be an error, and what reads it may not ask for all of it"
            }
            Self::HostReads => "the host reads it",
            Self::Costly(cost, visits) => {
                return write!(
                    f,
                    "computing it again costs more ({cost} operations, {visits} times)"
                );
            }
        })
    }
}

/// How a product of matrices is made, or why it is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// By statements over tiles; whether what is computed of it is computed there.
    Tiles(bool),
    /// By a library; whether some rows at a time, of which is computed what is made of them.
    Library(bool),
    /// By loops: it is small.
    Small,
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tiles(true) => "a product of matrices in tiles, and what is made of it",
            Self::Tiles(false) => "a product of matrices in tiles",
            Self::Library(true) => {
                "a product of matrices by a library, some rows at a time, and what is made of them"
            }
            Self::Library(false) => "a product of matrices by a library",
            Self::Small => "a product of matrices so small that loops are as good",
        })
    }
}
