//! Rows of iterations with inner loops that run faster for a batch of iterations at once.
//!
//! If the inner loop has its own number of iterations in each outer one, running these in sequence is
//! limited by the latency of the arithmetic. If they run through a loop together,
//! what they read there is the same for all, or lies side by side (see `strides`). So the
//! body is cut at such loops, whose iterations run at once in the lanes of vectors (see `lanes`),
//! while what stands between them runs for one lane after the other:
//!
//! ```text
//! each (i) { a; w = while ..; b }
//! ```
//! becomes
//! ```text
//! for 16 neighbouring i at a time {
//!     for i in them { a; store what the loop and b need }
//!     w = while .. for all of them
//!     for i in them { load what b needs; b }
//! }
//! ```
//! Behind the end of a row, lanes do what the last one does, up to where there is something to write;
//! but if loops read memory, the last iterations, too few for all lanes, run one after the other. If loops save something,
//! and what comes between them may write, lanes behind the end are left out instead.
//! The iterations of a parallel loop know nothing of each other, so they may be run like this;
//! and up to the last of the loops they only read, so that what one thread does stays in order.

use aerogel_base::ScalarType;
use aerogel_ir::{Inst, Region, Value};
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;

use super::emit::Lanes;
use super::plan::{Piece, Plan};
use crate::builder::{Opcode, Val, basic, incoming};
use crate::context::{Flat, FuncCx};
use crate::task::Row;
use crate::types::stored;

/// Neighbouring iterations that run at once.
struct Batch<'r, 'ctx> {
    row: &'r Row<'ctx>,
    /// The index of the first.
    first: Val<'ctx>,
    /// How many there are, at most `width`; in the type of the index.
    len: Val<'ctx>,
    width: u32,
    waiting: Vec<Waiting<'ctx>>,
    /// Where the random states of all are.
    states: Option<Val<'ctx>>,
}

/// A value that waits, in memory, for all iterations of a batch.
struct Waiting<'ctx> {
    value: Value,
    /// The piece it is made in.
    piece: usize,
    /// The type of a number; nothing for an address.
    number: Option<ScalarType>,
    place: Val<'ctx>,
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Runs the body for each index of a row, many at a time. Gives the block behind it.
    pub(crate) fn row_in_lanes(
        &mut self,
        row: &Row<'ctx>,
        plan: &Plan,
        width: u32,
    ) -> BasicBlock<'ctx> {
        let width = plan.lanes(width);
        if !plan.is_whole {
            return self.batches(row, plan, width);
        }
        let all = self.b.int(row.lo.get_type(), i64::from(width));
        // Without regard to signs: the difference may not fit the type.
        let length = self.b.op(Opcode::Sub, row.hi, row.lo);
        let rest = self.b.op(Opcode::URem, length, all);
        let middle = self.b.op(Opcode::Sub, row.hi, rest);
        let [wide, narrow, one_by_one, done] =
            ["batches", "batches_done", "rest", "row_done"].map(|n| self.b.block(self.llvm, n));
        let any = self.b.icmp(IntPredicate::NE, row.lo, middle);
        self.b.cond_br(any, wide, narrow);
        self.b.at(wide);
        let behind = self.batches(&row.part(row.lo, middle), plan, width);
        self.b.at(behind);
        self.b.br(narrow);
        self.b.at(narrow);
        let any = self.b.icmp(IntPredicate::NE, middle, row.hi);
        self.b.cond_br(any, one_by_one, done);
        self.b.at(one_by_one);
        let behind = self.row(&row.part(middle, row.hi), false);
        self.b.at(behind);
        self.b.br(done);
        done
    }

    /// Runs the body for a row as `row_in_lanes` does, with a last batch that may not be full.
    pub(crate) fn batches(&mut self, row: &Row<'ctx>, plan: &Plan, width: u32) -> BasicBlock<'ctx> {
        let waiting = plan.crossing.iter();
        let waiting = waiting
            .map(|&(piece, value)| self.waiting(piece, value, width, plan.alike.is_some()))
            .collect();
        let one_state = self.random;
        let states = one_state.map(|_| {
            let ty = self.b.vector_type(basic(self.b.i64_type()), width);
            self.in_entry(|s| s.b.alloca(ty)).into()
        });
        let [again, done] = ["batch", "row_done"].map(|name| self.b.block(self.llvm, name));
        let before = self.b.current();
        self.b.br(again);
        self.b.at(again);
        let ty = row.lo.get_type();
        let counter = self.b.phi(ty);
        incoming(counter, row.lo, before);
        let first = counter.as_basic_value();
        self.poll();
        // Without regard to signs: the difference may not fit the type.
        let left = self.b.op(Opcode::Sub, row.hi, first);
        let all = self.b.int(ty, i64::from(width));
        let few = self.b.icmp(IntPredicate::ULT, left, all);
        let batch = Batch {
            row,
            first,
            len: match plan.is_whole {
                true => all,
                false => self.b.select(few, left, all),
            },
            width,
            waiting,
            states,
        };
        for (k, piece) in plan.pieces.iter().enumerate() {
            match piece {
                Piece::OneByOne(insts) => self.one_by_one(&batch, plan, k, insts),
                Piece::AtOnce(inst) => self.at_once(&batch, plan, k, *inst),
            }
        }
        self.random = one_state;

        let next = self.b.op(Opcode::Add, first, batch.len);
        incoming(counter, next, self.b.current());
        let more = self.b.icmp(IntPredicate::NE, next, row.hi);
        self.b.cond_br(more, again, done);
        done
    }

    fn waiting(
        &mut self,
        piece: usize,
        value: Value,
        width: u32,
        is_filled_partly: bool,
    ) -> Waiting<'ctx> {
        let number = self.func.ty(value).scalar();
        let ty = match number {
            Some(ty) => self.b.vector_type(stored(self.b.ctx, ty), width),
            None => basic(self.b.ptr_type().array_type(width)),
        };
        Waiting {
            value,
            piece,
            number,
            // Lanes that are left out compute with zeros, or with what was there before.
            place: self.in_entry(|s| {
                let place = s.b.alloca(ty);
                if is_filled_partly {
                    s.b.store(place.into(), ty.const_zero());
                }
                place.into()
            }),
        }
    }

    /// Lowers a piece of the body as a loop over the iterations of a batch.
    fn one_by_one(&mut self, batch: &Batch<'_, 'ctx>, plan: &Plan, piece: usize, insts: &[Inst]) {
        if insts.is_empty() && piece > 0 {
            return;
        }
        let row = batch.row;
        let is_last = insts.last().is_some_and(|&i| self.func[i].is_terminator());
        let [again, next, done] = ["one", "next", "done"].map(|n| self.b.block(self.llvm, n));
        let before = self.b.current();
        self.b.br(again);
        self.b.at(again);
        let ty = batch.first.get_type();
        let counter = self.b.phi(ty);
        incoming(counter, self.b.int(ty, 0), before);
        let lane = counter.as_basic_value();
        // Up to the last piece all lanes are filled, unless it writes.
        let one = self.b.int(ty, 1);
        let (n_lanes, distance) = if is_last || plan.is_whole || plan.alike.is_some() {
            (batch.len, lane)
        } else {
            let n_lanes = self.b.int(ty, i64::from(batch.width));
            let most = self.b.op(Opcode::Sub, batch.len, one);
            let behind = self.b.icmp(IntPredicate::ULT, most, lane);
            (n_lanes, self.b.select(behind, most, lane))
        };
        // Where batches are full, no index is behind the row's end.
        let index = match (plan.is_whole, self.func.elem(row.counter).is_signed()) {
            (true, true) => self.b.nsw(Opcode::Add, batch.first, distance),
            (true, false) => self.b.nuw_add(batch.first, distance),
            (false, _) => self.b.op(Opcode::Add, batch.first, distance),
        };
        self.values[row.counter] = Some(index);
        let lane_64 = self.b.extend(ScalarType::U32, lane, 64);
        if let Some(states) = batch.states {
            let place = self
                .b
                .offset(states, self.b.op(Opcode::Shl, lane_64, self.b.i64(3)));
            self.random = Some(place.into_pointer_value());
        }
        if piece == 0 {
            self.seed_iteration(row, index);
        }
        let lane_of = |s: &Self, waiting: &Waiting<'ctx>| {
            let bytes = waiting.number.map_or(8, |ty| i64::from(ty.bytes()));
            let at = s.b.op(Opcode::Mul, lane_64, s.b.i64(bytes));
            s.b.offset(waiting.place, at)
        };
        for waiting in batch.waiting.iter().filter(|w| w.piece < piece) {
            let place = lane_of(self, waiting);
            let value = match waiting.number {
                Some(ty) => {
                    let (value, _) = self.b.load(stored(self.b.ctx, ty), place);
                    self.b.of_stored(ty, value)
                }
                None => self.b.load(basic(self.b.ptr_type()), place).0,
            };
            self.values[waiting.value] = Some(value);
        }
        self.group = Some(self.cx.groups[row.number]);
        self.shared_of(plan, row.body);
        let own = |&inst: &Inst| !plan.shared.as_ref().is_some_and(|s| s.once[inst]);
        let insts: Vec<Inst> = insts.iter().copied().filter(own).collect();
        if plan.is_flat && !is_last {
            self.flat = Some(Flat {
                here: None,
                anything: self.zero_word(),
            });
        }
        let goes_on = if is_last {
            self.loops.push(row.loop_to(next));
            let goes_on = self.insts(&insts).is_some();
            self.loops.pop();
            goes_on
        } else {
            insts.iter().for_each(|&inst| self.inst(inst));
            true
        };
        self.flat = None;
        for waiting in batch.waiting.iter().filter(|w| w.piece == piece) {
            let place = lane_of(self, waiting);
            let value = self.value(waiting.value);
            let value = match waiting.number {
                Some(ty) => self.b.to_stored(ty, value),
                None => value,
            };
            // Each iteration has a place of its own there.
            let inst = self.b.store(place, value);
            let group = self.cx.groups[row.number];
            self.b.mark(inst, "llvm.access.group", group);
        }
        self.group = None;
        if goes_on {
            self.b.br(next);
        }
        self.b.at(next);
        let counted = self.b.nuw_add(lane, one);
        incoming(counter, counted, next);
        let more = self.b.icmp(IntPredicate::ULT, counted, n_lanes);
        let back = self.b.cond_br(more, again, done);
        let marks = match plan.is_flat && !is_last {
            true if self.is_narrow(row.body) => &self.cx.narrow,
            true => &self.cx.vectors,
            false => &self.cx.loops,
        };
        self.b.mark(back, "llvm.loop", marks[row.number]);
        self.b.at(done);
    }

    /// Eight bytes of the frame that are zero, which LLVM does not know: of a read that it knows it would make a branch. (And of
    /// what is no number in the arithmetic of lanes that are not there, processors make slow work.)
    pub(super) fn zero_word(&mut self) -> Val<'ctx> {
        let word = basic(self.b.i64_type());
        self.in_entry(|s| {
            let place = s.b.alloca(word).into();
            let store = s.b.store(place, s.b.i64(0));
            store.set_volatile(true).expect("a store may be volatile");
            place
        })
    }

    /// Computes what iterations share, for the one whose index is the counter's value now.
    fn shared_of(&mut self, plan: &Plan, body: Region) {
        let Some(shared) = &plan.shared else { return };
        let func = self.func;
        let insts = func.regions[body].insts.iter();
        for &inst in insts.filter(|&&inst| shared.once[inst]) {
            self.inst(inst);
        }
    }

    /// Lowers a loop of the body for all iterations of a batch.
    fn at_once(&mut self, batch: &Batch<'_, 'ctx>, plan: &Plan, piece: usize, inst: Inst) {
        let width = batch.width;
        let counter = batch.row.counter;
        let mut defined = Vec::new();
        if plan.shared.is_some() {
            self.values[counter] = Some(batch.first);
            self.shared_of(plan, batch.row.body);
        } else {
            let bits = self.func.elem(counter).bits();
            let numbers = self.b.lane_numbers(width);
            let numbers = self.b.extend(ScalarType::U32, numbers, bits);
            let one = self.b.int(batch.len.get_type(), 1);
            let most = self.b.op(Opcode::Sub, batch.len, one);
            let most = self.b.splat(most, width);
            let behind = self.b.icmp(IntPredicate::ULT, most, numbers);
            let distance = self.b.select(behind, most, numbers);
            let first = self.b.splat(batch.first, width);
            defined.push((counter, self.b.op(Opcode::Add, first, distance)));
        }
        for waiting in batch.waiting.iter().filter(|w| w.piece < piece) {
            let Some(ty) = waiting.number else { continue };
            let stored = self.b.vector_type(stored(self.b.ctx, ty), width);
            let (value, _) = self.b.load(stored, waiting.place);
            defined.push((waiting.value, self.b.of_stored(ty, value)));
        }
        let there = plan.alike.as_ref().map(|_| {
            let bits = self.func.elem(counter).bits();
            let numbers = self.b.lane_numbers(width);
            let numbers = self.b.extend(ScalarType::U32, numbers, bits);
            let len = self.b.splat(batch.len, width);
            self.b.icmp(IntPredicate::ULT, numbers, len)
        });
        let mut lanes = Lanes::new(self, width, batch.states, plan);
        for (value, all) in defined {
            lanes.define(value, all);
        }
        let mask = there.map(|there| lanes.narrow(None, there));
        lanes.inst(inst, mask);
        let made = batch.waiting.iter().filter(|w| w.piece == piece);
        let made: Vec<_> = made.map(|w| (w, lanes.value(w.value))).collect();
        for (waiting, value) in made {
            let ty = waiting.number.expect("loops in lanes make numbers");
            let value = self.b.to_stored(ty, value);
            self.b.store(waiting.place, value);
        }
    }
}
