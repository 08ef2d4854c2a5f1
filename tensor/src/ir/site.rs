//! Accesses whose indices are checked while a program runs, and what the error says of a failed check.
//!
//! ```text
//! site s0 = load b1 from_end(0)
//! for [8] { b3[i0] = b1[select(lt(b2[i0], i32(0)), add(b2[i0], i32(5)), b2[i0])] error s0 }
//! ```
//! An out-of-bounds index is an error that names the site. Equal programs on other lines share one plan, so the plan knows
//! sites by number only; the table of the program that was called maps numbers to source locations.

use aerogel_ir::{BinaryOp, CompareOp};

use super::expr::{Expr, ExprDef, Outside};
use super::ids::{Buffer, Site};
use super::program::Program;

/// A line of the user's program, and more of it: what the number stands for, whoever records knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Place(u32);

impl Place {
    /// Nobody knows.
    pub const NONE: Self = Self(0);

    /// The place with a number.
    pub fn new(number: u32) -> Self {
        Self(number + 1)
    }

    /// Its number, if it is known.
    pub fn number(self) -> Option<u32> {
        self.0.checked_sub(1)
    }

    pub(crate) fn known(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// An access whose indices are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteDef {
    /// The buffer that is accessed.
    pub buffer: Buffer,
    /// Whether the access is a store.
    pub is_store: bool,
    /// The axes along which the program adds the size of the axis to a negative index.
    pub from_end: Vec<u32>,
    /// Where the access was written.
    pub place: Place,
}

/// An index outside an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The access.
    pub site: Site,
    /// The axis of the buffer.
    pub axis: usize,
    /// The index.
    pub index: i64,
    /// The size of the axis.
    pub size: u64,
}

impl SiteDef {
    /// The index as the user wrote it, of one that a check has refused.
    pub fn written(&self, found: &OutOfBounds) -> i64 {
        match found.index < 0 && self.from_end.contains(&(found.axis as u32)) {
            true => found.index - found.size as i64,
            false => found.index,
        }
    }
}

impl Program {
    /// A site for an access to a buffer at an index.
    pub fn site(&mut self, buffer: Buffer, index: &[Expr], is_store: bool) -> Site {
        let axes = index.iter().enumerate();
        let from_end = axes.filter(|(_, e)| self.counts_from_end(**e));
        let from_end = from_end.map(|(axis, _)| axis as u32).collect();
        self.sites.push(SiteDef {
            buffer,
            is_store,
            from_end,
            place: Place::NONE,
        })
    }

    /// An element of a buffer at an index that is checked.
    pub fn checked_load(&mut self, buffer: Buffer, index: Vec<Expr>) -> Expr {
        let site = self.site(buffer, &index, false);
        self.load(buffer, index, Outside::Error(site))
    }

    /// Whether this is `i < 0 ? i + extent : i`.
    fn counts_from_end(&self, e: Expr) -> bool {
        let exprs = &self.exprs;
        let ExprDef::Select(cond, wrapped, i) = exprs[e] else {
            return false;
        };
        let zero = |e: Expr| exprs.as_const(e).is_some_and(|c| c.as_i128() == 0);
        let adds = matches!(exprs[wrapped], ExprDef::Binary(BinaryOp::Add, a, _) if a == i);
        let is_negative =
            matches!(exprs[cond], ExprDef::Compare(CompareOp::Lt, a, b) if a == i && zero(b));
        adds && is_negative
    }
}
