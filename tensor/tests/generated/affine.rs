//! Stores whose indices are sums of axes, and sums in which one index counts.

use aerogel_base::{Scalar, ScalarType, Span};
use aerogel_ir::{BinaryOp, CompareOp};
use aerogel_tensor::{Accum, Dim, Expr, Outside, Stmt, Store};

use crate::maker::Maker;

impl Maker {
    /// What is put to a new tensor at sums of axes: on diagonals, with steps, backwards, and where points meet.
    pub(crate) fn placed(&mut self, at_host: &mut Vec<Stmt>) {
        let n_axes = 1 + self.number(3);
        let extents: Vec<u64> = (0..n_axes).map(|_| self.one_of(&[0, 1, 2, 3, 5])).collect();
        let domain: Vec<Dim> = extents.iter().map(|&n| self.program.size(n)).collect();
        let n_index = 1 + self.number(3);
        let (mut index, mut shape) = (Vec::new(), Vec::new());
        for _ in 0..n_index {
            let (mut sum, mut reach) = (self.program.exprs.i32(0), 0);
            let mut step = 1 + self.number(2) as u64;
            for _ in 0..self.one_of(&[0, 1, 1, 1, 2]) {
                let k = self.number(n_axes);
                let last = extents[k].saturating_sub(1);
                let mut axis = self.program.exprs.axis(k as u32);
                if self.chance(4) {
                    let end = self.program.exprs.i32(last as i32);
                    axis = self.program.exprs.binary(BinaryOp::Sub, end, axis);
                }
                let factor = self.program.exprs.i32(step as i32);
                let term = self.program.exprs.binary(BinaryOp::Mul, axis, factor);
                sum = self.program.exprs.binary(BinaryOp::Add, sum, term);
                reach += step * last;
                step = match self.chance(4) {
                    true => step,
                    false => step * extents[k].max(1),
                };
            }
            let (before, behind) = (self.one_of(&[0, 0, 2]), self.one_of(&[0, 0, 1, 4]));
            let offset = self.program.exprs.i32(before as i32);
            index.push(self.program.exprs.binary(BinaryOp::Add, sum, offset));
            shape.push(self.program.size(before + reach + 1 + behind));
        }
        let ty = self.one_of(&[ScalarType::I32, ScalarType::F64]);
        let value = self.value(&domain, ty, 2);
        let value = self.small(value);
        let accum = self.one_of(&[Accum::Add, Accum::Add, Accum::Min, Accum::Max, Accum::Mul]);
        let target = self.program.temporary(ty, &shape);
        self.sum(at_host, &domain, target, index, accum, value);
    }

    /// A sum of what is zero but for one index.
    pub(crate) fn one_hot(&mut self, at_host: &mut Vec<Stmt>) {
        let dims = self.dims.clone();
        let n_kept = self.number(3);
        let mut domain: Vec<Dim> = (0..=n_kept).map(|_| self.one_of(&dims)).collect();
        domain.retain(|&d| self.program.const_dim(d).is_none_or(|n| n < 100));
        let Some(n_kept) = domain.len().checked_sub(1) else {
            return;
        };
        let ty = self.one_of(&[ScalarType::I32, ScalarType::F64, ScalarType::I64]);
        let asked = self.one_of(&[
            ScalarType::I32,
            ScalarType::I32,
            ScalarType::F64,
            ScalarType::I64,
            ScalarType::U8,
        ]);
        let wanted = self.value(&domain[..n_kept], asked, 2);
        let mut place = self.program.exprs.axis(n_kept as u32);
        if self.chance(3) {
            let by = self.one_of(&[-1, 1, 2]);
            let by = self.program.exprs.i32(by);
            place = self.program.exprs.binary(BinaryOp::Add, place, by);
        }
        let place = self.program.exprs.cast(place, asked);
        let mut cond = self.program.exprs.compare(CompareOp::Eq, place, wanted);
        if self.chance(3) {
            let [a, b] = [0, 1].map(|_| self.value(&domain, ScalarType::I32, 1));
            let other = self.program.exprs.compare(CompareOp::Lt, a, b);
            cond = self.program.exprs.binary(BinaryOp::And, cond, other);
        }
        let value = self.value(&domain, ty, 2);
        let value = self.small(value);
        let zero = self.program.exprs.constant(Scalar::zero(ty));
        let value = match self.number(3) {
            0 => {
                let factor = self.program.exprs.cast(cond, ty);
                self.program.exprs.binary(BinaryOp::Mul, factor, value)
            }
            _ => self.program.exprs.select(cond, value, zero),
        };
        let target = self.program.temporary(ty, &domain[..n_kept]);
        let index = self.program.axes(n_kept);
        self.sum(at_host, &domain, target, index, Accum::Add, value);
    }

    fn sum(
        &mut self,
        at_host: &mut Vec<Stmt>,
        domain: &[Dim],
        target: aerogel_tensor::Buffer,
        index: Vec<Expr>,
        accum: Accum,
        value: Expr,
    ) {
        let before = self.program.body.len();
        let store = Store {
            target,
            index,
            value,
            accum: Some(accum),
            init: true,
            outside: Outside::Never,
        };
        self.program.assign(domain, store, Span::NONE);
        at_host.extend(self.program.body.drain(before..));
        self.readable.push(target);
    }
}
