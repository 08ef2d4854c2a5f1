//! Prefix sums, sorting, searching and related operations.

use aerogel_base::ScalarType;
use aerogel_ir::{BinaryOp, CompareOp};

use crate::ir::{Accum, Buffer, Outside, Stmt, Store};

use super::recurrence::Along;
use super::{RecordError, Recorded, Recording, Running};

impl Recording {
    /// At each index along an axis what `accum` makes of the numbers up to it; before it, if `exclusive`.
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn scan(&mut self, accum: Accum, x: Buffer, axis: i64, exclusive: bool) -> Recorded {
        let shape = self.shape(x);
        let axis = self.axis_of("scan", axis, shape.len())?;
        let accum = accum.of(self.ty(x));
        let wide = self.ty(x).accumulator();
        let start = match accum {
            // A running sum of zeros of one sign has it.
            Accum::Add => aerogel_base::Scalar::zero(wide),
            _ => accum.neutral(wide),
        };
        let start = self.program.exprs.constant(start);
        let along = Along {
            axis,
            is_backwards: false,
            exclusive,
        };
        let target = self.run_along(x, along, start, |r, so_far, index| {
            let element = r.program.load(x, index.to_vec(), Outside::Never);
            let element = r.program.exprs.cast(element, wide);
            match accum {
                Accum::Min => r.extreme(CompareOp::Lt, so_far, element),
                Accum::Max => r.extreme(CompareOp::Gt, so_far, element),
                _ => r.program.exprs.binary(accum.binary(), so_far, element),
            }
        });
        let running = Running::Scan {
            accum,
            x,
            axis,
            exclusive,
        };
        self.note_running(target, running);
        Ok(target)
    }

    /// The numbers along an axis in order, and where each was; downwards if `descending`. Of all the first `n`, if that is
    /// said.
    ///
    /// # Errors
    /// If there is no such axis, or it has fewer elements.
    pub fn sort(
        &mut self,
        x: Buffer,
        axis: i64,
        descending: bool,
        n: Option<u64>,
    ) -> Recorded<[Buffer; 2]> {
        let rank = self.rank(x);
        let axis = self.axis_of("sort", axis, rank)?;
        // The library sorts along the last axis.
        let mut order: Vec<i64> = (0..rank as i64).collect();
        order.remove(axis);
        order.push(axis as i64);
        let rows = self.permute(x, &order)?;
        let mut shape = self.shape(rows);
        if let Some(n) = n {
            let of = shape[rank - 1];
            if self.program.const_dim(of).is_some_and(|of| n > of) {
                let of = self.dim_text(of);
                return Err(RecordError::Value(format!(
                    "the first {n} of {of} sorted elements: there are fewer"
                )));
            }
            shape[rank - 1] = self.program.size(n);
        }
        let values = self.program.temporary(self.ty(x), &shape);
        let places = self.program.temporary(ScalarType::I32, &shape);
        self.call(
            crate::ir::Library::Sort { descending },
            vec![rows],
            vec![values, places],
        );
        let mut back: Vec<i64> = (0..rank as i64 - 1).collect();
        back.insert(axis, rank as i64 - 1);
        Ok([self.permute(values, &back)?, self.permute(places, &back)?])
    }

    /// Where each number of `x` belongs among the sorted ones of `sorted`, on its one axis: before equal ones, or behind them
    /// if `right`; NaN is behind all. By halves, as many steps as the count has bits.
    ///
    /// # Errors
    /// If `sorted` has another number of axes, or types differ.
    pub fn search_sorted(&mut self, sorted: Buffer, x: Buffer, right: bool) -> Recorded {
        if self.ty(sorted) != self.ty(x) {
            return self.types_error("searchsorted", &[sorted, x], "numbers of one type");
        }
        let &[extent] = &self.shape(sorted)[..] else {
            let shape = self.shape_text(&self.shape(sorted));
            return Err(RecordError::Value(format!(
                "`searchsorted` takes one axis of sorted numbers, the shape is {shape}"
            )));
        };
        self.expect_everywhere(&[sorted])?;
        let field = self.cells_of("searchsorted", &[x])?;
        let domain = self.shape(x);
        let steps = match self.program.const_dim(extent) {
            Some(n) => u64::BITS - n.leading_zeros(),
            None => i32::BITS,
        };
        let wanted = self.at_point(x, domain.len());
        let n = self.program.extent(extent);
        let p = &mut self.program;
        let target = p.temporary(ScalarType::I32, &domain);
        let [first, count, middle, step] = std::array::from_fn(|_| p.var(ScalarType::I32));
        let [low, left, at] = [first, count, middle].map(|var| p.get(var));
        let [zero, one, two] = [0, 1, 2].map(|k| p.exprs.i32(k));
        let number = p.load(sorted, vec![at], Outside::Clamp);
        let index = p.axes(domain.len());
        let half = self.add(left, one);
        let e = &mut self.program.exprs;
        let half = e.binary(BinaryOp::Div, half, two);
        let to_middle = e.binary(BinaryOp::Sub, half, one);
        let to_middle = e.binary(BinaryOp::Add, low, to_middle);
        let order = if right { CompareOp::Le } else { CompareOp::Lt };
        let mut is_before = e.compare(order, number, wanted);
        if self.ty(x).is_float() {
            let e = &mut self.program.exprs;
            let is_nan = e.compare(CompareOp::Ne, wanted, wanted);
            let mut behind = is_nan;
            if !right {
                let is_number = e.compare(CompareOp::Eq, number, number);
                behind = e.binary(BinaryOp::And, is_nan, is_number);
            }
            is_before = e.binary(BinaryOp::Or, is_before, behind);
        }
        let is_inside = self.lt(at, n);
        let e = &mut self.program.exprs;
        let moves = e.binary(BinaryOp::And, is_before, is_inside);
        let next = e.binary(BinaryOp::Add, at, one);
        let next = e.select(moves, next, low);
        let rest = e.binary(BinaryOp::Sub, left, half);
        let hi = e.i32(steps as i32);
        let body = vec![
            Stmt::Set(first, zero),
            Stmt::Set(count, n),
            Stmt::Loop {
                var: step,
                lo: zero,
                hi,
                step: 1,
                body: vec![
                    Stmt::Set(middle, to_middle),
                    Stmt::Set(first, next),
                    Stmt::Set(count, rest),
                ],
            },
            Stmt::Store(Store {
                target,
                index,
                value: low,
                accum: None,
                init: false,
                outside: Outside::Never,
            }),
        ];
        self.for_cells(domain, field, body);
        if let Some(field) = field {
            self.note_at_cells(target, field);
        }
        Ok(target)
    }

    pub(crate) fn call(
        &mut self,
        library: crate::ir::Library,
        inputs: Vec<Buffer>,
        outputs: Vec<Buffer>,
    ) {
        let span = self.span;
        self.program.body.push(Stmt::Call(crate::ir::Call {
            library,
            inputs,
            outputs,
            span,
        }));
    }

    /// The indices of the numbers that are not zero, axis by axis, in order, and how many there are; the rest of each is
    /// zeros. The count is known when it has run.
    ///
    /// # Errors
    /// If the tensor is a single number.
    pub fn nonzero(&mut self, x: Buffer) -> Recorded<(Buffer, Vec<Buffer>)> {
        let shape = self.shape(x);
        if shape.is_empty() {
            return Err(RecordError::Value(
                "`nonzero` takes at least one axis".to_owned(),
            ));
        }
        let n = self.product(&shape);
        let flat = self.reshape(x, &[n])?;
        let truth = self.cast(flat, ScalarType::U1);
        let ones = self.cast(truth, ScalarType::I32);
        let places = self.scan(Accum::Add, ones, 0, true)?;
        let count = self.reduce("sum", ones, None, false)?;
        let linear = self.program.exprs.axis(0);
        let at = self.at_point(places, 1);
        // What is not there goes behind the end, where stores do nothing.
        let taken = self.at_point(truth, 1);
        let nowhere = self.program.exprs.i32(-1);
        let at = self.program.exprs.select(taken, at, nowhere);
        let indices = self.unravel(linear, &shape);
        let mut out = Vec::new();
        for value in indices {
            let target = self.program.temporary(ScalarType::I32, &[n]);
            let zero = self.program.exprs.i32(0);
            let index = self.program.axes(1);
            let clear = Store {
                target,
                index,
                value: zero,
                accum: None,
                init: false,
                outside: Outside::Never,
            };
            self.program.assign(&[n], clear, self.span);
            let store = Store {
                target,
                index: vec![at],
                value,
                accum: None,
                init: false,
                outside: Outside::Zero,
            };
            self.program.assign(&[n], store, self.span);
            out.push(target);
        }
        Ok((count, out))
    }
}
