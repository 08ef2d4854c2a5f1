//! Slices of axes whose sizes are known when a program runs.
//!
//! ```text
//! x[1:-1] of n elements    from 1 on, max(n - 2, 0) of them
//! ```

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;
use aerogel_ir::BinaryOp;
use indexmap::IndexMap;

use crate::ir::{Buffer, Dim, DimDef, Expr, ExprDef, Program};

use super::{Bound, Part, RecordError, Recorded, Recording};

impl Recording {
    /// The slice of an axis that Python's `start:stop:step` selects, clipped to the axis.
    ///
    /// # Errors
    /// If a bound is not computed from sizes, or the step is zero or too large.
    pub fn range_part(
        &mut self,
        dim: Dim,
        start: Option<Bound>,
        stop: Option<Bound>,
        step: i64,
    ) -> Recorded<Part> {
        let wide = || RecordError::Value(format!("a slice of an axis has a step of {step}"));
        let step = i32::try_from(step).map_err(|_| wide())?;
        if step == 0 || step == i32::MIN {
            return Err(wide());
        }
        let n = self.program.extent(dim);
        let [start, stop] = [self.bound(start)?, self.bound(stop)?];
        if ![start, stop]
            .into_iter()
            .flatten()
            .all(|e| self.is_fixed(e))
        {
            return self.moving_part(start, stop, step);
        }
        let zero = self.program.exprs.i32(0);
        let one = self.program.exprs.i32(1);
        let (first, span) = if step > 0 {
            let stop = match stop {
                None => n,
                Some(stop) => self.clipped(stop, n, zero, n),
            };
            match start {
                None => (zero, stop),
                // Beyond the end, nothing is read at it.
                Some(start) if self.is_natural(start) => (start, self.sub(stop, start)),
                Some(start) => {
                    let first = self.clipped(start, n, zero, n);
                    (first, self.sub(stop, first))
                }
            }
        } else {
            let (last, before) = (self.sub(n, one), self.program.exprs.i32(-1));
            let first = match start {
                None => last,
                Some(start) => self.clipped(start, n, before, last),
            };
            let stop = match stop {
                None => before,
                Some(stop) => self.clipped(stop, n, before, last),
            };
            (first, self.sub(first, stop))
        };
        let len = self.steps(span, step.abs());
        Ok(Part {
            start: self.counted(first),
            step: step.into(),
            len: self.program.dim(DimDef::Value(len)),
            drops: false,
            is_checked: false,
        })
    }

    /// A part whose bounds are computed while the program runs, and whose length follows from the sizes of inputs all the
    /// same, as in `x[k * n : k * n + n]`.
    fn moving_part(
        &mut self,
        start: Option<Expr>,
        stop: Option<Expr>,
        step: i32,
    ) -> Recorded<Part> {
        let unknown = || {
            RecordError::Value(
                "the bounds of a slice are computed while the program runs, and its length has to be known before: write \
                 `x[k : k + 4]`, or use `gather`"
                    .to_owned(),
            )
        };
        let (Some(start), Some(stop), 1) = (start, stop, step) else {
            return Err(unknown());
        };
        let mut terms = IndexMap::new();
        self.add_terms(stop, 1, &mut terms);
        self.add_terms(start, -1, &mut terms);
        let mut len = self.program.exprs.i32(0);
        for (term, factor) in terms {
            if factor == 0 {
                continue;
            }
            if !self.is_fixed(term) {
                return Err(unknown());
            }
            let factor = i32::try_from(factor).map_err(|_| unknown())?;
            let factor = self.program.exprs.i32(factor);
            let product = self.mul(term, factor);
            len = self.add(len, product);
        }
        let len = self.steps(len, 1);
        Ok(Part {
            start,
            step: 1,
            len: self.program.dim(DimDef::Value(len)),
            drops: false,
            is_checked: true,
        })
    }

    /// The terms of a sum, each with its factor; the constant is a term of its own.
    fn add_terms(&mut self, e: Expr, factor: i64, terms: &mut IndexMap<Expr, i64>) {
        let e = self.computed_of(e);
        let exprs = &mut self.program.exprs;
        match exprs[e] {
            ExprDef::Binary(BinaryOp::Add, a, b) => {
                self.add_terms(a, factor, terms);
                self.add_terms(b, factor, terms);
            }
            ExprDef::Binary(BinaryOp::Sub, a, b) => {
                self.add_terms(a, factor, terms);
                self.add_terms(b, factor.saturating_neg(), terms);
            }
            ExprDef::Binary(BinaryOp::Mul, a, b) => self.add_product(a, b, factor, terms),
            // Modulo 2^32, as indices are.
            ExprDef::Cast(x, ty) if [ty, exprs.ty(x)].iter().all(|ty| is_wide(*ty)) => {
                self.add_terms(x, factor, terms);
            }
            ExprDef::Const(_) => {
                let (n, one) = (self.whole(e), self.program.exprs.i32(1));
                add_term(terms, one, factor.saturating_mul(n.unwrap_or(i64::MAX)));
            }
            _ => add_term(terms, e, factor),
        }
    }

    fn add_product(&mut self, a: Expr, b: Expr, factor: i64, terms: &mut IndexMap<Expr, i64>) {
        let [a, b] = [self.computed_of(a), self.computed_of(b)];
        for (sum, other) in [(a, b), (b, a)] {
            if let Some(n) = self.whole(other) {
                return self.add_terms(sum, factor.saturating_mul(n), terms);
            }
            if let ExprDef::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), x, y) =
                self.program.exprs[sum]
            {
                self.add_product(x, other, factor, terms);
                let sign = if op == BinaryOp::Add { 1 } else { -1 };
                return self.add_product(y, other, factor.saturating_mul(sign), terms);
            }
        }
        let product = self.mul(a.min(b), a.max(b));
        add_term(terms, product, factor);
    }

    /// A constant integer.
    fn whole(&mut self, e: Expr) -> Option<i64> {
        let e = self.computed_of(e);
        let constant = self.program.exprs.as_const(e)?;
        i64::try_from(constant.as_i128()).ok()
    }

    /// What a single value was computed of, if it is one.
    fn computed_of(&mut self, mut e: Expr) -> Expr {
        loop {
            e = self.followed(e);
            let ExprDef::Load { buffer, .. } = self.program.exprs[e] else {
                return e;
            };
            let known = self.singles.get(&buffer).or(self.of_inputs.get(&buffer));
            match known {
                Some(&value) => e = value,
                None => return e,
            }
        }
    }

    /// One index along an axis, which has to have it; below zero it counts from the end.
    ///
    /// # Errors
    /// If the axis is known to be too short.
    pub fn index_part(&mut self, x: Buffer, axis: usize, index: i64) -> Recorded<Part> {
        let dim = self.shape(x)[axis];
        let outside = |n: &str| format!("index {index} is outside axis {axis} with {n} elements");
        let least = if index < 0 {
            index.unsigned_abs()
        } else {
            index as u64 + 1
        };
        let (Ok(at), Ok(needed)) = (i32::try_from(index), u32::try_from(least)) else {
            return Err(RecordError::Index(outside(&self.dim_text(dim))));
        };
        if !self.ask_at_least(dim, needed, &outside("{}")) {
            return Err(RecordError::Index(outside(&self.dim_text(dim))));
        }
        let n = self.program.extent(dim);
        let mut start = self.program.exprs.i32(at);
        if at < 0 {
            start = self.add(n, start);
        }
        Ok(Part {
            start: self.counted(start),
            step: 1,
            len: self.program.size(1),
            drops: true,
            is_checked: false,
        })
    }

    /// Requires a size of at least `count`: false if it is known to be smaller. `{}` in the message stands for the size.
    pub fn ask_at_least(&mut self, dim: Dim, needed: u32, message: &str) -> bool {
        let n = self.program.extent(dim);
        let needed = self.program.exprs.int(ScalarType::I32, needed.into());
        let enough = self.program.exprs.binary(BinaryOp::Max, n, needed);
        let enough = self.program.dim(DimDef::Value(enough));
        self.agree(dim, enough, message)
    }

    /// The same size in another program with the same inputs; nothing if an input is missing there.
    pub fn dim_like(&mut self, other: &Program, dim: Dim) -> Option<Dim> {
        match *other.dim_def(dim) {
            DimDef::Const(n) => Some(self.program.size(n)),
            DimDef::Input(buffer, axis) => {
                let number = other.inputs().position(|b| b == buffer)?;
                let own = self.program.inputs().nth(number)?;
                Some(self.program.dim(DimDef::Input(own, axis)))
            }
            DimDef::Value(e) => {
                let e = self.number_like(other, e)?;
                Some(self.program.dim(DimDef::Value(e)))
            }
            DimDef::Number(e) => {
                let e = self.number_like(other, e)?;
                Some(self.program.dim(DimDef::Number(e)))
            }
        }
    }

    fn number_like(&mut self, other: &Program, e: Expr) -> Option<Expr> {
        let mut done: LookupMap<Expr, Expr> = LookupMap::default();
        let mut all = Vec::new();
        other.exprs.visit([e], &mut |e| all.push(e));
        for e in all {
            let def = match other.exprs[e] {
                ExprDef::Extent(dim) => ExprDef::Extent(self.dim_like(other, dim)?),
                ref def => def.map_operands(|x| *done.get(&x).expect("operands are older")),
            };
            done.insert(e, self.program.exprs.add_as_is(def));
        }
        done.get(&e).copied()
    }

    /// The indices along an axis that a part names.
    pub fn part_index(&mut self, part: Part) -> Buffer {
        if part.drops {
            return self.map(&[], part.start);
        }
        let at = self.program.exprs.axis(0);
        let step = self.program.exprs.i32(part.step as i32);
        let steps = self.mul(at, step);
        let at = self.add(steps, part.start);
        self.map(&[part.len], at)
    }

    fn bound(&mut self, bound: Option<Bound>) -> Recorded<Option<Expr>> {
        Ok(match bound {
            None => None,
            // Further than any axis is the same as far.
            Some(Bound::Known(n)) => {
                let most = i64::from(i32::MAX);
                Some(self.program.exprs.i32(n.clamp(-most, most) as i32))
            }
            Some(Bound::Of(x)) => {
                if self.rank(x) != 0 || self.ty(x).is_float() {
                    return self.types_error("slice", &[x], "bounds that are integers");
                }
                let value = self.element(x, Vec::new());
                let value = self.followed(value);
                Some(self.program.exprs.cast(value, ScalarType::I32))
            }
        })
    }

    /// Whether a number is known not to be below zero.
    fn is_natural(&self, e: Expr) -> bool {
        match self.program.exprs[e] {
            ExprDef::Const(c) => c.as_i128() >= 0,
            ExprDef::Extent(dim) => !matches!(self.program.dim_def(dim), DimDef::Number(_)),
            ExprDef::Binary(BinaryOp::Min, a, b) => self.is_natural(a) && self.is_natural(b),
            ExprDef::Binary(BinaryOp::Max, a, b) => self.is_natural(a) || self.is_natural(b),
            _ => false,
        }
    }

    /// A bound that counts from the end below zero, no less than `low` and no more than `high`.
    fn clipped(&mut self, bound: Expr, n: Expr, low: Expr, high: Expr) -> Expr {
        let binary = |r: &mut Self, op, a, b| r.program.exprs.binary(op, a, b);
        if self.is_natural(bound) {
            return binary(self, BinaryOp::Min, bound, high);
        }
        let from_end = self.add(n, bound);
        let from_end = binary(self, BinaryOp::Max, from_end, low);
        if self.program.exprs.as_const(bound).is_some() {
            return from_end;
        }
        let zero = self.program.exprs.i32(0);
        let is_below = self.lt(bound, zero);
        let inside = binary(self, BinaryOp::Min, bound, high);
        self.program.exprs.select(is_below, from_end, inside)
    }

    /// How many steps there are in a span, none in one below zero.
    fn steps(&mut self, span: Expr, step: i32) -> Expr {
        let exprs = &mut self.program.exprs;
        let mut n = span;
        if step > 1 {
            let (more, step) = (exprs.i32(step - 1), exprs.i32(step));
            n = exprs.binary(BinaryOp::Add, n, more);
            n = exprs.binary(BinaryOp::FloorDiv, n, step);
        }
        if self.is_natural(n) {
            return n;
        }
        let zero = self.program.exprs.i32(0);
        self.program.exprs.binary(BinaryOp::Max, n, zero)
    }
}

fn add_term(terms: &mut IndexMap<Expr, i64>, term: Expr, factor: i64) {
    let sum = terms.entry(term).or_default();
    *sum = sum.saturating_add(factor);
}

fn is_wide(ty: ScalarType) -> bool {
    ty.is_int() && ty.bytes() >= 4
}
