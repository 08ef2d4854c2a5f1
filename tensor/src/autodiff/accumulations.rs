//! Adjoints through what accumulates: sums, products, minima and maxima over the points of a statement.

use aerogel_ir::{BinaryOp, CompareOp};

use super::Reverse;
use super::points::Point;
use crate::ir::{Accum, Buffer, Dim, Expr, Outside, Store};
use crate::record::{Recorded, Recurrence};

impl Reverse<'_> {
    /// The adjoint of the value that a statement accumulates, where that of its target's element is `d`.
    pub(super) fn through_accumulation(
        &mut self,
        point: &Point,
        accum: Accum,
        d: Expr,
    ) -> Recorded<Option<Expr>> {
        match accum {
            Accum::Add => Ok(Some(d)),
            Accum::Mul => self.through_product(point, d).map(Some),
            Accum::Min | Accum::Max => self.through_extremum(point, d).map(Some),
            Accum::And | Accum::Or | Accum::Xor => Ok(None),
        }
    }

    /// An element of a buffer that has the target's shape, at the index of the store.
    fn beside(&mut self, store: &Store, buffer: Buffer) -> Expr {
        let (index, outside) = (store.index.clone(), store.outside);
        self.recording.program.load(buffer, index, outside)
    }

    /// Indices of the target inside its shape, and which points of the store mean an element at all.
    fn meant(&mut self, point: &Point) -> (Vec<Expr>, Option<Expr>) {
        let store = &point.store;
        let (index, inside) = self.brought_inside(store.target, &store.index, store.outside);
        let exprs = &mut self.recording.program.exprs;
        let both = point.cond.into_iter().chain(inside);
        (index, both.reduce(|a, b| exprs.binary(BinaryOp::And, a, b)))
    }

    /// A product changes by the product of all other factors: of those before and of those behind.
    fn through_product(&mut self, point: &Point, d: Expr) -> Recorded<Expr> {
        let (all, store) = (&point.domain[..], &point.store);
        let shape = self.recording.shape(store.target);
        let own = self.own_axes(all, &shape, &store.index);
        let own = own.filter(|_| store.init && point.cond.is_none());
        let is_behind = own
            .as_ref()
            .is_some_and(|own| own.iter().enumerate().all(|(at, &k)| at as u32 == k));
        let kept = own.map_or(0, |own| own.len());
        if is_behind && kept == all.len() {
            return Ok(d);
        }
        let others = match is_behind {
            true => self.other_factors_behind(all, kept, store.value)?,
            false => self.other_factors(point)?,
        };
        let mut d = self.recording.mul(d, others);
        if !store.init {
            let old = self.before(store.target);
            let old = self.beside(store, old);
            d = self.recording.mul(d, old);
            self.scale_adjoint(point)?;
        }
        Ok(d)
    }

    /// The product of the other factors along the axes from `kept` on.
    fn other_factors_behind(&mut self, all: &[Dim], kept: usize, value: Expr) -> Recorded<Expr> {
        let r = &mut *self.recording;
        let factors = r.map(all, value);
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
        Ok(r.at_point(others, all.len()))
    }

    /// The product of the other factors of the same element, wherever their points are: sorted by element, these stand side by
    /// side.
    fn other_factors(&mut self, point: &Point) -> Recorded<Expr> {
        let (all, store) = (&point.domain[..], &point.store);
        let ty = self.recording.program.exprs.ty(store.value);
        let one = self.recording.number(ty, 1.0);
        if !store.init && self.is_injective(all, store) {
            return Ok(one);
        }
        let (index, meant) = self.meant(point);
        let shape = self.recording.shape(store.target);
        let r = &mut *self.recording;
        let mut element = r.linear(&shape, &index);
        let mut factor = store.value;
        if let Some(meant) = meant {
            let nowhere = r.program.exprs.i32(-1);
            element = r.program.exprs.select(meant, element, nowhere);
            factor = r.program.exprs.select(meant, factor, one);
        }
        let row = [r.product(all)];
        let [elements, factors] = [element, factor].map(|e| r.map(all, e));
        let elements = r.reshape(elements, &row)?;
        let factors = r.reshape(factors, &row)?;
        let [elements, order] = r.sort(elements, 0, false, None)?;
        let place = r.at_point(order, 1);
        let sorted = r.program.load(factors, vec![place], Outside::Never);
        let sorted = r.map(&row, sorted);
        let [before, after] = [true, false].map(|from_front| {
            // Multiplied from the first factor of each element on.
            let beside = r.shifted(elements, 0, from_front);
            let is_other = r.binary("ne", elements, beside)?;
            let is_end = r.is_end(elements, 0, from_front)?;
            let is_first = r.binary("or", is_other, is_end)?;
            let [zero, one] = [0.0, 1.0].map(|n| r.number(ty, n));
            let [zero, one] = [zero, one].map(|n| r.map(&[], n));
            let next = r.shifted(sorted, 0, from_front);
            let a = r.select(is_first, zero, next)?;
            let b = r.select(is_first, one, zero)?;
            let b = r.broadcast_to(b, &row)?;
            Ok(r.recurrence(Recurrence {
                a: Some(a),
                b,
                axis: 0,
                is_backwards: !from_front,
            }))
        });
        let others = r.binary("mul", before?, after?)?;
        let value = r.at_point(others, 1);
        let back = r.gather_into(&row, row.to_vec(), vec![place], Accum::Add, value);
        let back = r.reshape(back, all)?;
        Ok(r.at_point(back, all.len()))
    }

    /// The adjoint of what is multiplied: times all factors.
    fn scale_adjoint(&mut self, point: &Point) -> Recorded<()> {
        let store = &point.store;
        let (index, meant) = self.meant(point);
        let shape = self.recording.shape(store.target);
        let r = &mut *self.recording;
        let mut factor = store.value;
        if let Some(meant) = meant {
            let one = r.number(r.program.exprs.ty(factor), 1.0);
            factor = r.program.exprs.select(meant, factor, one);
        }
        let factors = r.gather_into(&point.domain, shape, index, Accum::Mul, factor);
        let adjoint = self.adjoint(store.target)?.expect("it is needed");
        let left = self.recording.binary("mul", adjoint, factors)?;
        self.adjoints.insert(store.target, vec![left]);
        Ok(())
    }

    /// Equal extrema share the adjoint equally. What was there before is one more candidate.
    fn through_extremum(&mut self, point: &Point, d: Expr) -> Recorded<Expr> {
        let (all, store) = (&point.domain[..], &point.store);
        let ty = self.recording.program.exprs.ty(store.value);
        let whole = self.after(store.target);
        let found = self.beside(store, whole);
        let (index, meant) = self.meant(point);
        let [zero, one] = [0.0, 1.0].map(|n| self.recording.number(ty, n));
        let mut wins = self.is_extreme(store.value, found);
        if let Some(meant) = meant {
            let exprs = &mut self.recording.program.exprs;
            wins = exprs.binary(BinaryOp::And, wins, meant);
        }
        let exprs = &mut self.recording.program.exprs;
        let counted = exprs.select(wins, one, zero);
        let shape = self.recording.shape(store.target);
        let mut n = self
            .recording
            .gather_into(all, shape.clone(), index, Accum::Add, counted);
        if !store.init {
            let old = self.before(store.target);
            let rank = shape.len();
            let [old, new] = [old, whole].map(|b| self.recording.at_point(b, rank));
            let stays = self.is_extreme(old, new);
            let own = self.recording.program.exprs.select(stays, one, zero);
            let own = self.recording.map(&shape, own);
            n = self.recording.binary("add", n, own)?;
            let adjoint = self.adjoint(store.target)?.expect("it is needed");
            let share = self.recording.binary("div", adjoint, n)?;
            let left = self.recording.binary("mul", share, own)?;
            self.adjoints.insert(store.target, vec![left]);
        }
        let n = self.beside(store, n);
        let exprs = &mut self.recording.program.exprs;
        let share = exprs.binary(BinaryOp::Div, d, n);
        // If a reduction found NaN, its adjoint passes to the elements that are NaN.
        let [is_nan, is_unknown] = [store.value, d].map(|e| exprs.compare(CompareOp::Ne, e, e));
        let is_unknown = exprs.binary(BinaryOp::And, is_nan, is_unknown);
        let rest = exprs.select(is_unknown, d, zero);
        Ok(exprs.select(wins, share, rest))
    }

    /// Whether a value is the extreme that was found; NaN is found where there is nothing else.
    fn is_extreme(&mut self, value: Expr, found: Expr) -> Expr {
        let exprs = &mut self.recording.program.exprs;
        let is_found = exprs.compare(CompareOp::Eq, value, found);
        let is_nan = exprs.compare(CompareOp::Ne, found, found);
        exprs.binary(BinaryOp::Or, is_found, is_nan)
    }
}
