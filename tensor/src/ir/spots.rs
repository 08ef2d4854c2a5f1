//! Where in a text the parts of a program stand, for messages of the verifier.

use super::ids::{Buffer, Dim, Var};

/// A part of a program that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// A size.
    Dim(Dim),
    /// The declaration of a buffer.
    Buffer(Buffer),
    /// The declaration of a variable.
    Var(Var),
    /// A statement, by its number in the order of the text.
    Stmt(usize),
}

/// Where the parts of a program begin, in bytes.
#[derive(Default)]
pub(crate) struct Spots {
    /// Sizes, where they are first.
    pub(super) dims: Vec<usize>,
    pub(super) buffers: Vec<usize>,
    pub(super) vars: Vec<usize>,
    /// Statements, each before those inside it.
    pub(super) stmts: Vec<usize>,
}

impl Spots {
    /// Notes sizes that are new.
    pub(super) fn note_dims(&mut self, n: usize, at: usize) {
        self.dims.resize(n.max(self.dims.len()), at);
    }

    /// Where a part begins.
    pub(crate) fn at(&self, spot: Spot) -> usize {
        let at = match spot {
            Spot::Dim(dim) => self.dims.get(dim.as_u32() as usize),
            Spot::Buffer(buffer) => self.buffers.get(buffer.as_u32() as usize),
            Spot::Var(var) => self.vars.get(var.as_u32() as usize),
            Spot::Stmt(number) => self.stmts.get(number),
        };
        at.copied().unwrap_or(0)
    }
}
