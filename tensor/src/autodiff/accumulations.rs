//! Adjoints through what accumulates: sums, products, minima and maxima over the points of a statement.

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
            Accum::Mul if !store.init => {
                refused("a product with what is there, as by `scatter(how=\"mul\")`")
            }
            Accum::Mul => self.through_product(all, store, d).map(Some),
            Accum::Min | Accum::Max => self.through_extremum(all, store, d).map(Some),
            Accum::And | Accum::Or | Accum::Xor => Ok(None),
        }
    }

    /// An element of a buffer that has the target's shape, at the index of the store.
    fn beside(&mut self, store: &Store, buffer: Buffer) -> Expr {
        let (index, outside) = (store.index.clone(), store.outside);
        self.recording.program.load(buffer, index, outside)
    }

    /// A product changes by the product of all other factors: of those before and of those behind.
    fn through_product(&mut self, all: &[Dim], store: &Store, d: Expr) -> Recorded<Expr> {
        let shape = self.recording.shape(store.target);
        let Some(own) = self.own_axes(all, &shape, &store.index) else {
            return refused("a product at computed indices");
        };
        let is_behind = own.iter().enumerate().all(|(at, &k)| at as u32 == k);
        let kept = own.len();
        if kept == all.len() {
            return Ok(d);
        }
        if !is_behind {
            return refused("a product at computed indices");
        }
        let r = &mut *self.recording;
        let factors = r.map(all, store.value);
        let behind = r.product(&all[kept..]);
        let rows = [&all[..kept], &[behind]].concat();
        let factors = r.reshape(factors, &rows)?;
        let axis = kept as i64;
        let before = r.scan(Accum::Mul, factors, axis, true)?;
        let turned = r.flip(factors, &[axis])?;
        let turned = r.scan(Accum::Mul, turned, axis, true)?;
        let after = r.flip(turned, &[axis])?;
        let others = r.binary("mul", before, after)?;
        let others = r.reshape(others, all)?;
        let others = r.at_point(others, all.len());
        Ok(r.mul(d, others))
    }

    /// Equal extrema share the adjoint equally. What was there before is one more candidate.
    fn through_extremum(&mut self, all: &[Dim], store: &Store, d: Expr) -> Recorded<Expr> {
        let ty = self.recording.program.exprs.ty(store.value);
        let whole = self.after(store.target);
        let found = self.beside(store, whole);
        let [zero, one] = [0.0, 1.0].map(|n| self.recording.number(ty, n));
        let exprs = &mut self.recording.program.exprs;
        let is_one = exprs.compare(CompareOp::Eq, store.value, found);
        let counted = exprs.select(is_one, one, zero);
        let shape = self.recording.shape(store.target);
        let index = store.index.clone();
        let mut n = self
            .recording
            .gather_into(all, shape.clone(), index, Accum::Add, counted);
        if !store.init {
            let old = self.before(store.target);
            let rank = shape.len();
            let [old, new] = [old, whole].map(|b| self.recording.at_point(b, rank));
            let exprs = &mut self.recording.program.exprs;
            let stays = exprs.compare(CompareOp::Eq, old, new);
            let own = exprs.select(stays, one, zero);
            let own = self.recording.map(&shape, own);
            n = self.recording.binary("add", n, own)?;
            let adjoint = self.adjoint(store.target)?.expect("it has been asked for");
            let share = self.recording.binary("div", adjoint, n)?;
            let left = self.recording.binary("mul", share, own)?;
            self.adjoints.insert(store.target, vec![left]);
        }
        let n = self.beside(store, n);
        let exprs = &mut self.recording.program.exprs;
        let share = exprs.binary(BinaryOp::Div, d, n);
        Ok(exprs.select(is_one, share, zero))
    }
}
