//! Values while interpreting.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::NodeRef;
use aerogel_snode::MAX_AXES;

/// Where one scalar is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A scalar of a local, by its number among all locals made so far.
    Local(usize),
    /// A scalar of a buffer, by the buffer's number among all made so far.
    Room(usize, usize),
    /// Bytes of a tree.
    Root(usize, u64),
    /// An element of a place below a sparse node, by its indices: where it lies is looked up at each
    /// access, and a write makes it active.
    Element(NodeRef, [u32; MAX_AXES]),
    /// Bytes of an array.
    Array(usize, usize),
    /// Bytes of the global temporaries.
    Temp(usize),
    /// Outside of what is there: reads as zero, swallows writes.
    Nowhere,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    /// A scalar, or the scalars of a tensor or struct.
    Scalars(Vec<Scalar>),
    /// A storage: where each of its scalars lies.
    Place(Vec<(Slot, ScalarType)>),
    /// A cell or a container: the byte of its tree at which it begins; none outside.
    Node(Option<u64>),
}

impl Val {
    /// The scalars of a number, tensor or struct.
    ///
    /// # Panics
    /// If the value is a handle; the verifier excludes that.
    pub fn scalars(&self) -> Vec<Scalar> {
        match self {
            Val::Scalars(s) => s.clone(),
            other => unreachable!("{other:?} is no number"),
        }
    }

    pub(crate) fn scalar(&self) -> Scalar {
        match self {
            Val::Scalars(s) => s[0],
            other => unreachable!("{other:?} is no scalar"),
        }
    }

    pub(crate) fn place(&self) -> &[(Slot, ScalarType)] {
        match self {
            Val::Place(p) => p,
            other => unreachable!("{other:?} is no storage"),
        }
    }

    pub(crate) fn node(&self) -> Option<u64> {
        match self {
            Val::Node(n) => *n,
            other => unreachable!("{other:?} is no cell or container"),
        }
    }
}

impl From<Scalar> for Val {
    fn from(s: Scalar) -> Self {
        Val::Scalars(vec![s])
    }
}
