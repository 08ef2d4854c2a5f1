//! Regions, branches and loops as blocks.

use aerogel_ir::analysis::trips::{iterations_within, length};
use aerogel_ir::{Function, Inst, NodeOp, Op, Region, Value, walk};
use aerogel_runtime::abi::offset;
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::PhiValue;

use crate::builder::{Opcode, Val, basic, incoming};
use crate::context::{Flat, FuncCx, Loop, Origin};

/// After this many loop iterations a GPU thread polls whether the launch was stopped.
const TURNS: i64 = 64;

/// This many iterations of a loop that does not poll, as a power of two, count as one iteration of the enclosing loop.
const QUICK_TURNS: i64 = 10;

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Lowers a region at the builder's place. Gives what it yields, or nothing if control leaves
    /// by another way; the builder then stands in a block without predecessors.
    pub(crate) fn region(&mut self, region: Region) -> Option<Vec<Val<'ctx>>> {
        let func = self.func;
        self.insts(&func.regions[region].insts)
    }

    /// Lowers the last instructions of a region, as `region` does.
    pub(crate) fn insts(&mut self, insts: &[Inst]) -> Option<Vec<Val<'ctx>>> {
        let (&last, rest) = insts.split_last().expect("a region ends in a terminator");
        for &inst in rest {
            self.inst(inst);
        }
        match &self.func[last] {
            Op::Yield { values } => return Some(self.values(values)),
            Op::Break { values } => {
                let values = self.values(values);
                let target = self.loops.last().expect("`break` stands in a loop");
                leave(&self.b, target.exit, &target.exit_phis, &values);
            }
            Op::Continue { values } => {
                let values = self.values(values);
                let target = self.loops.last().expect("`continue` stands in a loop");
                leave(&self.b, target.next, &target.next_phis, &values);
            }
            Op::Return { values } => self.leave_with(values),
            _ => unreachable!("a region ends in a terminator"),
        }
        None
    }

    pub(crate) fn branch(&mut self, inst: Inst, cond: Value, then: Region, otherwise: Region) {
        let cond = self.value(cond);
        if let Some(flat) = self.flat {
            return self.both_sides(flat, inst, cond, [then, otherwise]);
        }
        let then_block = self.b.block(self.llvm, "then");
        let else_block = self.b.block(self.llvm, "else");
        let merge = self.b.block(self.llvm, "merge");
        self.b.cond_br(cond, then_block, else_block);
        let func = self.func;
        let results = &func.insts[inst].results;
        self.b.at(merge);
        let phis = self.phis(results);
        for (block, region) in [(then_block, then), (else_block, otherwise)] {
            self.b.at(block);
            if let Some(values) = self.region(region) {
                leave(&self.b, merge, &phis, &values);
            }
        }
        self.b.at(merge);
        self.define(results, &values_of(&phis));
    }

    /// Computes both sides of a branch that only reads, and chooses.
    fn both_sides(
        &mut self,
        flat: Flat<'ctx>,
        inst: Inst,
        cond: Val<'ctx>,
        [then, otherwise]: [Region; 2],
    ) {
        let not = self.b.not(cond);
        let mut side = |truth: Val<'ctx>, region: Region| {
            // Not `and`: what a side that is not taken computes decides nothing.
            let no = self.b.bool(false);
            let here = flat
                .here
                .map_or(truth, |here| self.b.select(here, truth, no));
            self.flat = Some(Flat {
                here: Some(here),
                ..flat
            });
            self.region(region).expect("the side yields")
        };
        let x = side(cond, then);
        let y = side(not, otherwise);
        self.flat = Some(flat);
        let chosen: Vec<Val<'ctx>> = x
            .into_iter()
            .zip(y)
            .map(|(x, y)| self.b.select(cond, x, y))
            .collect();
        let func = self.func;
        self.define(&func.insts[inst].results, &chosen);
    }

    /// `for` from `lo` towards `hi` by `step`.
    pub(crate) fn counted_loop(
        &mut self,
        inst: Inst,
        [lo, hi, step]: [Value; 3],
        init: &[Value],
        body: Region,
    ) {
        let func = self.func;
        let ty = func.elem(lo);
        let by_one = func.as_const(step).is_some_and(|s| s.is_one());
        let (first, end) = (self.value(lo), self.value(hi));
        // Other steps could jump over the end and around, so their loops count iterations.
        let (counter_lo, counter_hi) = if by_one {
            (first, end)
        } else {
            let n = self.iterations(ty.is_signed(), first, end, self.value(step));
            (self.b.int(first.get_type(), 0), n)
        };
        let signed = ty.is_signed() && by_one;
        let init = self.values(init);
        let inner = iterations_within(func, body);
        let length = length(func, &func[inst]);
        if inner == Some(0) && length.is_none_or(|n| n >> QUICK_TURNS > 0) {
            self.count_turns([counter_lo, counter_hi], signed);
        }
        let results = &func.insts[inst].results;
        let piece = self.piece_of(body, length, ty.bits());
        let piece = piece.filter(|_| inner == Some(0));
        let pieces =
            piece.map(|n| self.begin_pieces(n, ([counter_lo, counter_hi], signed), &init, results));
        let (counter_lo, counter_hi, init) = match &pieces {
            Some(pieces) => {
                let (start, carried) = pieces.first();
                (start, pieces.end, carried)
            }
            None => (counter_lo, counter_hi, init),
        };
        let before = self.b.current();
        let [head, inside, next, exit] =
            ["for", "body", "next", "done"].map(|name| self.b.block(self.llvm, name));
        self.b.br(head);

        self.b.at(exit);
        let exit_phis = self.phis(results);
        self.b.at(next);
        let next_phis = self.phis(results);

        self.b.at(head);
        let counter = self.b.phi(first.get_type());
        let carried = self.phis(results);
        incoming(counter, counter_lo, before);
        for (&phi, &value) in carried.iter().zip(&init) {
            incoming(phi, value, before);
        }
        let more = self.b.less(signed, counter.as_basic_value(), counter_hi);
        let over = pieces.as_ref().map_or(exit, |pieces| pieces.done());
        self.b.cond_br(more, inside, over);
        let last = if over == exit { head } else { over };
        for (&phi, &value) in exit_phis.iter().zip(&carried) {
            incoming(phi, value.as_basic_value(), last);
        }
        if let Some(pieces) = &pieces {
            self.end_piece(pieces, &values_of(&carried), exit);
        }

        self.b.at(inside);
        let all = length.zip(inner);
        let is_short = all.is_some_and(|(n, inner)| n.saturating_mul(inner) <= SHORT_NEST);
        let in_short_nest = std::mem::replace(&mut self.in_short_nest, is_short);
        // A block of tiles takes little time, so only the loop over all of them polls.
        let in_block = self.is_tiled && self.loops.len() > 1;
        if inner != Some(0) && !is_short && !in_block {
            self.poll();
        }
        let index = if by_one {
            counter.as_basic_value()
        } else {
            let distance = self
                .b
                .op(Opcode::Mul, counter.as_basic_value(), self.value(step));
            self.b.op(Opcode::Add, first, distance)
        };
        let params = &func.regions[body].params;
        self.values[params[0]] = Some(index);
        self.define(&params[1..], &values_of(&carried));
        self.loops.push(Loop {
            next,
            next_phis,
            exit,
            exit_phis,
        });
        let yielded = self.region(body);
        let done = self.loops.pop().expect("pushed above");
        self.in_short_nest = in_short_nest;
        if let Some(values) = yielded {
            leave(&self.b, done.next, &done.next_phis, &values);
        }

        self.b.at(next);
        let counted = self.b.count_on(signed, counter.as_basic_value());
        incoming(counter, counted, next);
        for (&phi, &value) in carried.iter().zip(&done.next_phis) {
            incoming(phi, value.as_basic_value(), next);
        }
        let back = self.b.br(head);
        let is_row = length.is_some_and(|n| n >= SHORTEST_ROW) && inner == Some(0);
        let marks = match self.is_tiled {
            // Only what stands in for tiles carries sums.
            true if !results.is_empty() => Some(&mut self.cx.plain),
            true => Some(&mut self.cx.rolled),
            false if in_short_nest && is_row && runs_along_rows(func, body) => {
                Some(&mut self.cx.rolled)
            }
            false => None,
        };
        if let Some(mark) = marks.and_then(Vec::pop) {
            self.b.mark(back, "llvm.loop", mark);
        }

        self.b.at(exit);
        self.define(results, &values_of(&done.exit_phis));
    }

    /// How often a loop by a step other than one runs.
    fn iterations(&self, signed: bool, lo: Val<'ctx>, hi: Val<'ctx>, step: Val<'ctx>) -> Val<'ctx> {
        let b = &self.b;
        let (zero, one) = (b.int(lo.get_type(), 0), b.int(lo.get_type(), 1));
        let (less, up) = if signed {
            (IntPredicate::SLT, b.icmp(IntPredicate::SGT, step, zero))
        } else {
            (IntPredicate::ULT, b.bool(true))
        };
        let size = b.select(up, step, b.op(Opcode::Sub, zero, step));
        // A step of zero is the user's mistake; the loop then does not run.
        let still = b.icmp(IntPredicate::EQ, size, zero);
        let size = b.select(still, one, size);
        let (from, to) = (b.select(up, lo, hi), b.select(up, hi, lo));
        let some = b.and(b.icmp(less, from, to), b.not(still));
        let distance = b.op(Opcode::Sub, to, from);
        let last = b.op(Opcode::UDiv, b.op(Opcode::Sub, distance, one), size);
        b.select(some, b.op(Opcode::Add, last, one), zero)
    }

    pub(crate) fn while_loop(&mut self, inst: Inst, init: &[Value], cond: Region, body: Region) {
        let func = self.func;
        let results = &func.insts[inst].results;
        let init = self.values(init);
        let before = self.b.current();
        let [head, inside, next, exit] =
            ["while", "body", "next", "done"].map(|name| self.b.block(self.llvm, name));
        self.b.br(head);
        self.b.at(exit);
        let exit_phis = self.phis(results);
        self.b.at(next);
        let next_phis = self.phis(results);

        self.b.at(head);
        let carried = self.phis(results);
        for (&phi, &value) in carried.iter().zip(&init) {
            incoming(phi, value, before);
        }
        let values = values_of(&carried);
        self.define(&func.regions[cond].params, &values);
        let more = self.region(cond).expect("a condition yields")[0];
        let head_end = self.b.current();
        self.b.cond_br(more, inside, exit);
        for (&phi, &value) in exit_phis.iter().zip(&values) {
            incoming(phi, value, head_end);
        }

        self.b.at(inside);
        self.poll();
        self.define(&func.regions[body].params, &values);
        self.loops.push(Loop {
            next,
            next_phis,
            exit,
            exit_phis,
        });
        let yielded = self.region(body);
        let done = self.loops.pop().expect("pushed above");
        if let Some(values) = yielded {
            leave(&self.b, done.next, &done.next_phis, &values);
        }
        self.b.at(next);
        for (&phi, &value) in carried.iter().zip(&done.next_phis) {
            incoming(phi, value.as_basic_value(), next);
        }
        self.b.br(head);
        self.b.at(exit);
        self.define(results, &values_of(&done.exit_phis));
    }

    /// Leaves the task if the launch was stopped. Innermost `for` loops do not poll: it would prevent
    /// vectorisation.
    pub(crate) fn poll(&mut self) {
        if self.origin == Origin::Device {
            return;
        }
        if self.cx.target.grid {
            return self.poll_now_and_then();
        }
        let goes_on = self.goes_on();
        self.leave_unless(goes_on);
    }

    /// As `poll`, in some iterations only: a GPU thread cannot hide the latency of polling.
    fn poll_now_and_then(&mut self) {
        let ty = basic(self.b.ctx.i32_type());
        let one = self.b.int(ty, 1);
        let (place, next) = self.turns_and(one);
        let [asks, on] = ["asks", "turn"].map(|name| self.b.block(self.llvm, name));
        let is_early = self.b.icmp(IntPredicate::ULT, next, self.b.int(ty, TURNS));
        self.b.likely_br(is_early, on, asks);
        self.b.at(asks);
        self.b.store(place, self.b.int(ty, 0));
        let goes_on = self.goes_on();
        self.leave_unless(goes_on);
        self.b.br(on);
        self.b.at(on);
    }

    /// Counts the iterations of a loop that does not poll, so that enclosing loops poll earlier.
    fn count_turns(&mut self, [lo, hi]: [Val<'ctx>; 2], signed: bool) {
        if !self.cx.target.grid || self.origin == Origin::Device {
            return;
        }
        let b = &self.b;
        let (ty, counted_in) = (lo.get_type(), basic(b.ctx.i32_type()));
        let bits = ty.into_int_type().get_bit_width();
        if bits < 32 {
            // Such a loop is over soon.
            return;
        }
        let some = b.less(signed, lo, hi);
        let turns = b.op(Opcode::Sub, hi, lo);
        let quick = b.op(Opcode::LShr, turns, b.int(ty, QUICK_TURNS));
        let most = b.int(ty, TURNS);
        let few = b.icmp(IntPredicate::ULT, quick, most);
        let counted = b.select(few, quick, most);
        let counted = b.select(some, counted, b.int(ty, 0));
        let counted = match bits == 32 {
            true => counted,
            false => b.cast(Opcode::Trunc, counted, counted_in),
        };
        self.turns_and(counted);
    }

    /// The storage of the number of iterations since the last poll, and that number plus `n`.
    fn turns_and(&mut self, more: Val<'ctx>) -> (Val<'ctx>, Val<'ctx>) {
        let ty = more.get_type();
        let place = match self.turns {
            Some(place) => place,
            None => self.in_entry(|s| {
                let place: Val<'ctx> = s.b.alloca(ty).into();
                s.b.store(place, s.b.int(ty, 0));
                place
            }),
        };
        self.turns = Some(place);
        let (turn, _) = self.b.load(ty, place);
        let next = self.b.op(Opcode::Add, turn, more);
        self.b.store(place, next);
        (place, next)
    }

    /// Whether the launch continues.
    pub(crate) fn goes_on(&mut self) -> Val<'ctx> {
        let flag = self.context_field(offset::STOP);
        let stop = self.b.load_shared(basic(self.b.ctx.i32_type()), flag);
        self.b.is_zero(stop)
    }

    /// Leaves the task unless the launch continues.
    pub(crate) fn leave_unless(&mut self, goes_on: Val<'ctx>) {
        let [gone, on] = ["stopped", "on"].map(|name| self.b.block(self.llvm, name));
        self.b.likely_br(goes_on, on, gone);
        self.b.at(gone);
        self.leave_failed();
        self.b.at(on);
    }

    pub(crate) fn phis(&self, values: &[Value]) -> Vec<PhiValue<'ctx>> {
        values
            .iter()
            .map(|&v| self.b.phi(self.llvm_ty(v)))
            .collect()
    }
}

/// From this length on the innermost loop of a nest is a row of its own.
const SHORTEST_ROW: u64 = 8;

/// Whether the counter of a loop is the fastest index wherever it is an index at all. In a nest, such a
/// loop is protected from unrolling: LLVM would first unroll all its iterations and then vectorise
/// across rows.
fn runs_along_rows(func: &Function, body: Region) -> bool {
    let counter = func.regions[body].params[0];
    let mut found = false;
    let mut only = true;
    walk(func, body, &mut |func, inst| {
        if let Op::Node(NodeOp::Linearize { coords: index, .. })
        | Op::ArrayAt { indices: index, .. }
        | Op::ElemRef { index, .. } = &func[inst]
        {
            // Merged nodes have no axes.
            let Some((last, outer)) = index.split_last() else {
                return;
            };
            found |= depends(func, *last, counter, 0);
            only &= !outer.iter().any(|&v| depends(func, v, counter, 0));
        }
    });
    found && only
}

/// Whether an index is computed from a counter, as far as sums and the like go.
fn depends(func: &Function, index: Value, counter: Value, depth: u32) -> bool {
    let mut found = index == counter;
    if let Some(op) = func.def_op(index)
        && depth < 6
    {
        op.operands(|operand| found = found || depends(func, operand, counter, depth + 1));
    }
    found
}

/// A nest of loops with no more iterations than this in all runs without a look at the request to
/// stop: LLVM can take it as a whole.
const SHORT_NEST: u64 = 4096;

pub(crate) fn values_of<'ctx>(phis: &[PhiValue<'ctx>]) -> Vec<Val<'ctx>> {
    phis.iter().map(|phi| phi.as_basic_value()).collect()
}

/// Goes to a block with values for its phis.
pub(crate) fn leave<'ctx>(
    b: &crate::builder::Builder<'_, 'ctx>,
    to: BasicBlock<'ctx>,
    phis: &[PhiValue<'ctx>],
    values: &[Val<'ctx>],
) {
    for (&phi, &value) in phis.iter().zip(values) {
        incoming(phi, value, b.current());
    }
    b.br(to);
}
