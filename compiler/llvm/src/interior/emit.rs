//! A row as LLVM IR: its edges, which share their code, and its inside.

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;

use super::{Interior, Outcome, Sum};
use crate::builder::{Opcode, Val, basic, incoming};
use crate::context::FuncCx;
use crate::lanes::Plan;
use crate::task::Row;

/// How many iterations of the inside and the edges of a row run at once, if they do: the plan, and the lanes of a vector.
#[derive(Default)]
pub(crate) struct InParts<'p> {
    pub(crate) inside: Option<(&'p Plan, u32)>,
    pub(crate) edges: Option<(&'p Plan, u32)>,
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Runs the edges of a row and its inside, each in a loop of its own. Gives the block behind them.
    pub(crate) fn row_in_parts(
        &mut self,
        row: &Row<'ctx>,
        interior: Interior,
        lanes: &InParts<'_>,
    ) -> BasicBlock<'ctx> {
        let (lo, hi) = (row.lo, row.hi);
        let wide = |f: &Self, x: Val<'ctx>| f.b.extend(ScalarType::I32, x, 64);
        let [low, high] = [wide(self, lo), wide(self, hi)];
        let (mut first, mut last) = (low, high);
        // Whether the whole row lies beyond an edge.
        let mut beyond = self.b.bool(false);
        let params = &self.func.regions[row.body].params;
        for (axis, sum) in &interior.from {
            let at = self.sum(sum);
            if params[*axis] == row.counter {
                let above = self.b.icmp(IntPredicate::SGT, at, first);
                first = self.b.select(above, at, first);
            } else {
                let index = wide(self, self.value(params[*axis]));
                let before = self.b.icmp(IntPredicate::SLT, index, at);
                beyond = self.b.op(Opcode::Or, beyond, before);
            }
        }
        for (axis, sum) in &interior.below {
            let at = self.sum(sum);
            if params[*axis] == row.counter {
                let under = self.b.icmp(IntPredicate::SLT, at, last);
                last = self.b.select(under, at, last);
            } else {
                let index = wide(self, self.value(params[*axis]));
                let behind = self.b.icmp(IntPredicate::SGE, index, at);
                beyond = self.b.op(Opcode::Or, beyond, behind);
            }
        }
        if let Some((plan, width)) = lanes.inside {
            // Batches are full, and which indices they take does not depend on how threads share the row: they may add in
            // another order than the edges.
            let task = self.task.as_ref().expect("rows stand in a task");
            let begin = task.bounds.last().expect("a task has an axis")[0];
            let width = i64::from(plan.lanes(width));
            let whole = |f: &Self, at: Val<'ctx>, up: i64| {
                let distance = f.b.op(Opcode::Sub, at, begin);
                let distance = f.b.op(Opcode::Add, distance, f.b.i64(up));
                let distance = f.b.op(Opcode::And, distance, f.b.i64(-width));
                f.b.op(Opcode::Add, begin, distance)
            };
            (first, last) = (whole(self, first, width - 1), whole(self, last, 0));
        }
        // Where there is no inside, one edge is all.
        let none = self.b.icmp(IntPredicate::SLE, last, first);
        let none = self.b.op(Opcode::Or, none, beyond);
        let first = self.b.select(none, high, first);
        let [first, last] = [first, last].map(|x| self.narrow(row.counter, x));

        let names = ["edge", "edge_row", "edge_done", "inside", "row_done"];
        let [edge, edge_row, edge_done, inside, done] =
            names.map(|name| self.b.block(self.llvm, name));
        let start = self.b.current();
        self.b.br(edge);
        self.b.at(edge);
        let ty = lo.get_type();
        let [from, to] = [self.b.phi(ty), self.b.phi(ty)];
        let is_last = self.b.phi(basic(self.b.ctx.bool_type()));
        incoming(from, lo, start);
        incoming(to, first, start);
        incoming(is_last, none, start);
        let [from_here, to_here] = [from, to].map(|phi| phi.as_basic_value());
        let any = self.b.icmp(IntPredicate::NE, from_here, to_here);
        self.b.cond_br(any, edge_row, edge_done);
        self.b.at(edge_row);
        let part = row.part(from_here, to_here);
        let behind = match lanes.edges {
            Some((plan, width)) => self.row_in_lanes(&part, plan, width),
            None => self.stretch(&part, false, interior.has_narrow_edges),
        };
        self.b.at(behind);
        self.b.br(edge_done);
        self.b.at(edge_done);
        self.b.cond_br(is_last.as_basic_value(), done, inside);

        self.b.at(inside);
        self.outcomes = interior.outcomes;
        let part = row.part(first, last);
        let behind = match lanes.inside {
            Some((plan, width)) => self.batches(&part, plan, plan.lanes(width)),
            None => self.stretch(&part, false, false),
        };
        self.outcomes = LookupMap::default();
        self.b.at(behind);
        self.b.br(edge);
        incoming(from, last, behind);
        incoming(to, hi, behind);
        incoming(is_last, self.b.bool(true), behind);
        self.b.at(done);
        done
    }

    /// A sum as `i64`.
    fn sum(&mut self, sum: &Sum) -> Val<'ctx> {
        let mut out = self.b.i64(sum.constant);
        for &(value, is_less) in &sum.terms {
            let op = if is_less { Opcode::Sub } else { Opcode::Add };
            let term = self.b.extend(ScalarType::I32, self.value(value), 64);
            out = self.b.nsw(op, out, term);
        }
        out
    }

    /// What is known of a value beforehand.
    pub(crate) fn outcome(&self, outcome: Outcome) -> Val<'ctx> {
        match outcome {
            Outcome::Truth(truth) => self.b.bool(truth),
            Outcome::Is(other) => self.value(other),
            Outcome::Less(index, by) => {
                let index = self.value(index);
                let by = match by {
                    Ok(by) => self.value(by),
                    Err(by) => self.b.int(index.get_type(), by),
                };
                self.b.nsw(Opcode::Sub, index, by)
            }
        }
    }
}
