//! Decisions of passes and their reasons: which temporaries are materialised, how matrix products are computed.

use std::fmt;

/// Why a temporary is materialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is a result.
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
    /// Its operands change before it is read.
    OperandsChange,
    /// It is made at the active cells of a field, and read elsewhere too.
    OtherCells,
    /// An index in it may be out of bounds, and its readers may not need all elements.
    MayFail,
    /// It is read by the host.
    HostReads,
    /// Computing it again costs more: what that costs, and how often it would be done.
    Costly(u32, u32),
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Result => "it is a result",
            Self::StoredAgain => "several statements store to it",
            Self::Accumulates => "it accumulates",
            Self::OtherIndices => "elements are not stored at the points with their indices",
            Self::InKernel => "it is stored in a kernel with other statements",
            Self::Library => "a library call reads or writes it",
            Self::Kernel => "a kernel of yours reads or writes it",
            Self::Checked => "indices outside it are errors",
            Self::OperandsChange => "its operands change before it is read",
            Self::OtherCells => {
                "it is computed at the active cells of a field, and read at other points too"
            }
            Self::MayFail => {
                "an index in it may be out of bounds, and its readers may not need all elements"
            }
            Self::HostReads => "the host reads it",
            Self::Costly(cost, visits) => {
                return write!(
                    f,
                    "recomputing it costs more ({cost} operations, {visits} times)"
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
            Self::Tiles(true) => "a matrix product in tiles, with the statements that read it",
            Self::Tiles(false) => "a matrix product in tiles",
            Self::Library(true) => {
                "a matrix product by a library, in blocks of rows, with the statements that read them"
            }
            Self::Library(false) => "a matrix product by a library",
            Self::Small => "a matrix product so small that plain loops are as fast",
        })
    }
}
