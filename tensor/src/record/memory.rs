//! Stores to memory of a program, and their conditions.

use aerogel_base::Scalar;

use crate::ir::{Accum, Buffer, Dim, Expr, ExprDef, Outside, Stmt, Store};

use super::{Mode, RecordError, Recorded, Recording};

/// The operation's name in messages.
fn stored_by(accum: Option<Accum>) -> String {
    accum.map_or("x[key] = value".to_owned(), |accum| {
        format!("scatter_{accum}")
    })
}

impl Recording {
    /// Requires two sizes to be equal: false if they are known to differ.
    pub fn ask_equal(&mut self, left: Dim, right: Dim, message: &str) -> bool {
        self.agree(left, right, message)
    }

    /// Replaces the contents of a whole buffer by values, broadcast to it, where `mask` is true.
    ///
    /// # Errors
    /// If they do not broadcast to it, or are of another type.
    pub fn set_all(&mut self, target: Buffer, value: Buffer, mask: Option<Buffer>) -> Recorded<()> {
        let shape = self.shape(target);
        if self.ty(value) != self.ty(target) {
            return self.types_error(
                "x.val = value",
                &[target, value],
                "values of the memory's type",
            );
        }
        let shapes = [
            shape.clone(),
            self.shape(value),
            mask.map_or(Vec::new(), |m| self.shape(m)),
        ];
        let to = self.broadcast("x.val = value", &shapes);
        let to = to.map_err(RecordError::of_setting)?;
        if to.len() != shape.len() {
            let (from, to) = (self.shape_text(&to), self.shape_text(&shape));
            return Err(RecordError::Value(format!(
                "`x.val = value`: a value of shape {from} does not fit one of shape {to}"
            )));
        }
        let mut operands = vec![value];
        operands.extend(mask);
        operands.extend(Some(target).filter(|&x| self.is_at_cells(x)));
        self.stays_at_cells("x.val = value", &operands, &shape)?;
        let cells = self.cells_of("x.val = value", &operands)?;
        let mut new = self.at_point(value, shape.len());
        if let Some(mask) = mask {
            let wanted = self.at_point(mask, shape.len());
            let old = self.at_point(target, shape.len());
            new = self.program.exprs.select(wanted, new, old);
        }
        let index = self.program.axes(shape.len());
        let store = Store {
            target,
            index,
            value: new,
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        self.store_over(&shape, cells, store);
        Ok(())
    }

    /// Stores values to computed indices of a buffer, or accumulates them, where `mask` is true. Indices, values and the mask
    /// are broadcast to one domain, at whose points the stores are.
    ///
    /// # Errors
    /// If there is not an index for each axis, shapes do not agree, or types differ.
    pub fn store_at(
        &mut self,
        target: Buffer,
        index: &[Buffer],
        value: Buffer,
        accum: Option<Accum>,
        mode: Mode,
        mask: Option<Buffer>,
    ) -> Recorded<()> {
        let rank = self.rank(target);
        if index.len() != rank {
            let n = index.len();
            return Err(RecordError::Index(format!(
                "{n} indices for memory with {rank} axes"
            )));
        }
        let op = stored_by(accum);
        let accum = accum.map(|accum| accum.of(self.ty(target)));
        if self.ty(value) != self.ty(target) {
            return self.types_error(&op, &[target, value], "values of the memory's type");
        }
        if self.program.holder(target).is_some() {
            return self.store_fields(&[target], index, &[value], accum, mask);
        }
        let mut operands = index.to_vec();
        operands.push(value);
        operands.extend(mask);
        let cells = self.cells_of(&op, &operands)?;
        let (domain, store, wanted) = self.store_of(target, &operands, accum, mode)?;
        match wanted {
            None => self.store_over(&domain, cells, store),
            Some(wanted) => {
                self.numbers.remove(&target);
                self.forget();
                let body = vec![Stmt::If(wanted, vec![Stmt::Store(store)], Vec::new())];
                self.for_cells(domain, cells, body);
            }
        }
        Ok(())
    }

    /// Puts values to what is there, one point after the other, row by row: what was there before each.
    ///
    /// # Errors
    /// As `store_at`.
    pub fn store_with_previous(
        &mut self,
        target: Buffer,
        index: &[Buffer],
        value: Buffer,
        accum: Accum,
        mode: Mode,
        mask: Option<Buffer>,
    ) -> Recorded {
        let mut operands = index.to_vec();
        operands.push(value);
        operands.extend(mask);
        self.expect_everywhere(&operands)?;
        if index.len() != self.rank(target) || self.ty(value) != self.ty(target) {
            // Said as for any store.
            self.store_at(target, index, value, Some(accum), mode, mask)?;
        }
        let accum = accum.of(self.ty(target));
        let (domain, store, wanted) = self.store_of(target, &operands, Some(accum), mode)?;
        let before = self.program.temporary(self.ty(target), &domain);
        if wanted.is_some() {
            // Where nothing is put.
            let zero = Scalar::zero(self.ty(target));
            let nothing = Store {
                target: before,
                index: self.program.axes(domain.len()),
                value: self.program.exprs.constant(zero),
                accum: None,
                init: false,
                outside: Outside::Never,
            };
            self.store_over(&domain, None, nothing);
        }
        let old = self
            .program
            .load(target, store.index.clone(), store.outside);
        let taken = Store {
            target: before,
            index: self.program.axes(domain.len()),
            value: old,
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        self.numbers.remove(&target);
        self.forget();
        self.store_in_order(&domain, &[], vec![taken, store], wanted);
        self.forget();
        Ok(before)
    }

    /// A store at the points to which indices, a value and perhaps a mask are broadcast, and the condition under which it
    /// runs, if its indices do not imply it.
    fn store_of(
        &mut self,
        target: Buffer,
        operands: &[Buffer],
        accum: Option<Accum>,
        mode: Mode,
    ) -> Recorded<(Vec<Dim>, Store, Option<Expr>)> {
        let rank = self.rank(target);
        let stretched = self.stretched(&stored_by(accum), operands);
        let (domain, elements) = stretched.map_err(|e| e.of_store(rank))?;
        let mut at: Vec<Expr> = Vec::new();
        let extents = self.shape(target);
        for (&e, dim) in elements[..rank].iter().zip(extents) {
            let i = self.as_index_along(e, dim, mode);
            at.push(i);
        }
        let mut only_at = None;
        let outside;
        if mode == Mode::Error && !self.is_inside(&domain, target, &at) {
            // An index that is outside where nothing is stored is none, and an error elsewhere.
            only_at = elements.get(rank + 1).copied();
            outside = self.outside_of_store(target, &at, mode);
        } else if let Some(&wanted) = elements.get(rank + 1) {
            // What is masked out goes outside, where a store does nothing; the other indices are brought inside first.
            let nowhere = self.program.exprs.i32(-1);
            for (axis, e) in at.iter_mut().enumerate() {
                let inside = self.brought_inside(*e, target, axis, mode);
                *e = self.program.exprs.select(wanted, inside, nowhere);
            }
            outside = Outside::Zero;
        } else {
            outside = self.outside_of_store(target, &at, mode);
        }
        let store = Store {
            target,
            index: at,
            value: elements[rank],
            accum,
            init: false,
            outside,
        };
        Ok((domain, store, only_at))
    }

    /// The meaning of an out-of-bounds index of a store.
    pub(super) fn outside_of_store(
        &mut self,
        target: Buffer,
        index: &[Expr],
        mode: Mode,
    ) -> Outside {
        let unchecked = mode.unchecked();
        unchecked.unwrap_or_else(|| Outside::Error(self.program.site(target, index, true)))
    }

    /// Whether indices are axes of a domain as long as the buffer's.
    fn is_inside(&self, domain: &[Dim], target: Buffer, index: &[Expr]) -> bool {
        let mut all = index.iter().zip(self.shape(target));
        all.all(|(&e, dim)| {
            matches!(self.program.exprs[e], ExprDef::Axis(k) if domain[k as usize] == dim)
        })
    }

    fn brought_inside(&mut self, index: Expr, target: Buffer, axis: usize, mode: Mode) -> Expr {
        use aerogel_ir::BinaryOp::{Max, Min, Mod};
        let dim = self.shape(target)[axis];
        let binary = |r: &mut Self, op, a, b| r.program.exprs.binary(op, a, b);
        match mode {
            Mode::Clamp => {
                let last = self.last(dim);
                let zero = self.program.exprs.i32(0);
                let above = binary(self, Max, index, zero);
                binary(self, Min, above, last)
            }
            Mode::Wrap => {
                let extent = self.program.extent(dim);
                binary(self, Mod, index, extent)
            }
            _ => index,
        }
    }
}
