//! Adjoints through what accumulates: sums, products, minima and maxima over the points of a statement.

use aerogel_base::ScalarType;
use aerogel_ir::{BinaryOp, CompareOp};

use super::points::Point;
use super::{Reverse, refused};
use crate::ir::{Accum, Buffer, Dim, Expr, Store};
use crate::record::Recorded;

impl Reverse<'_> {
    /// The adjoint of the value that a statement accumulates, where that of its target's element is `d`.
    pub(super) fn through_accumulation(
        &mut self,
        point: &Point,
        accum: Accum,
        d: Expr,
    ) -> Recorded<Option<Expr>> {
        let (all, store) = (&point.domain[..], &point.store);
        match accum {
            Accum::Add => Ok(Some(d)),
            Accum::Mul | Accum::Min | Accum::Max if !store.init => {
                refused("a product, minimum or maximum with what is there")
            }
            Accum::Mul => Ok(Some(self.through_product(all, store, d))),
            Accum::Min | Accum::Max => Ok(Some(self.through_extremum(all, store, d))),
            Accum::And | Accum::Or | Accum::Xor => Ok(None),
        }
    }

    /// An element of a buffer that has the target's shape, at the index of the store.
    fn beside(&mut self, store: &Store, buffer: Buffer) -> Expr {
        let (index, outside) = (store.index.clone(), store.outside);
        self.recording.program.load(buffer, index, outside)
    }

    /// What is accumulated beside the target, by the same points.
    fn accumulated(&mut self, all: &[Dim], store: &Store, accum: Accum, value: Expr) -> Expr {
        let shape = self.recording.shape(store.target);
        let index = store.index.clone();
        let made = self.recording.gather_into(all, shape, index, accum, value);
        self.beside(store, made)
    }

    /// A product changes by the product of all other factors: by the quotient, or where one factor is zero, by the product
    /// of those that are not.
    fn through_product(&mut self, all: &[Dim], store: &Store, d: Expr) -> Expr {
        let factor = store.value;
        let ty = self.recording.program.exprs.ty(factor);
        let zero = self.recording.number(ty, 0.0);
        let one = self.recording.number(ty, 1.0);
        let [none, single] = [0.0, 1.0].map(|n| self.recording.number(ScalarType::I32, n));
        let exprs = &mut self.recording.program.exprs;
        let is_zero = exprs.compare(CompareOp::Eq, factor, zero);
        let other = exprs.select(is_zero, one, factor);
        let counted = exprs.select(is_zero, single, none);
        let others = self.accumulated(all, store, Accum::Mul, other);
        let zeros = self.accumulated(all, store, Accum::Add, counted);
        let exprs = &mut self.recording.program.exprs;
        let quotient = exprs.binary(BinaryOp::Div, others, other);
        let without_zeros = exprs.compare(CompareOp::Eq, zeros, none);
        let slope = exprs.select(without_zeros, quotient, zero);
        let with_one = exprs.compare(CompareOp::Eq, zeros, single);
        let at_zero = exprs.select(with_one, others, zero);
        let slope = exprs.select(is_zero, at_zero, slope);
        exprs.binary(BinaryOp::Mul, d, slope)
    }

    /// Equal extrema share the adjoint equally.
    fn through_extremum(&mut self, all: &[Dim], store: &Store, d: Expr) -> Expr {
        let ty = self.recording.program.exprs.ty(store.value);
        let whole = self.after(store.target);
        let found = self.beside(store, whole);
        let [zero, one] = [0.0, 1.0].map(|n| self.recording.number(ty, n));
        let exprs = &mut self.recording.program.exprs;
        let is_one = exprs.compare(CompareOp::Eq, store.value, found);
        let counted = exprs.select(is_one, one, zero);
        let n = self.accumulated(all, store, Accum::Add, counted);
        let exprs = &mut self.recording.program.exprs;
        let share = exprs.binary(BinaryOp::Div, d, n);
        exprs.select(is_one, share, zero)
    }
}
