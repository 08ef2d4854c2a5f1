//! The instructions that save values in each iteration of loops in lanes (`saves.rs`).

use aerogel_ir::{Inst, Op, Region, Type, Value};
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicType;
use inkwell::values::{FastMathFlags, PhiValue};

use super::emit::{Lanes, Mask};
use super::saves::reserved;
use crate::builder::{Opcode, Val, basic, incoming};
use crate::types::stored;

impl<'ctx> Lanes<'_, '_, '_, 'ctx> {
    /// The uniform counters of a loop at its head: one number for all lanes.
    pub(super) fn begin_counts(
        &mut self,
        inst: Inst,
        before: BasicBlock<'ctx>,
    ) -> Vec<PhiValue<'ctx>> {
        let counts = self.alike.map_or(&[][..], |alike| alike.counts(inst));
        let begun = counts.iter().map(|count| {
            let first = self.f.value(count.first);
            let phi = self.f.b.phi(first.get_type());
            incoming(phi, first, before);
            for &param in &count.params {
                self.f.values[param] = Some(phi.as_basic_value());
            }
            phi
        });
        begun.collect()
    }

    /// Counts on at the end of a turn.
    pub(super) fn count_on(
        &mut self,
        inst: Inst,
        begun: &[PhiValue<'ctx>],
        last: BasicBlock<'ctx>,
    ) {
        let counts = self.alike.map_or(&[][..], |alike| alike.counts(inst));
        for (count, &phi) in counts.iter().zip(begun) {
            let so_far = phi.as_basic_value();
            let step = self.b().int(so_far.get_type(), count.step);
            let next = self.b().op(Opcode::Add, so_far, step);
            incoming(phi, next, last);
        }
    }

    /// A loop down to the same end in all lanes, each of which comes in when the count is at its beginning.
    pub(super) fn falling_loop(
        &mut self,
        inst: Inst,
        [lo, hi]: [Value; 2],
        init: &[Value],
        body: Region,
        mask: Mask<'ctx>,
    ) {
        let func = self.func;
        let (begins, end) = (self.value(lo), self.f.value(hi));
        let first = {
            let none = self.b().splat(end, self.width);
            self.most(begins, none, mask)
        };
        let init = self.all(init);
        let before = self.b().current();
        let [head, inside, exit] =
            ["lanes", "body", "done"].map(|name| self.b().block(self.f.llvm, name));
        self.b().br(head);
        self.b().at(head);
        let counter = self.b().phi(end.get_type());
        incoming(counter, first, before);
        let begin = |&value: &Val<'ctx>| {
            let phi = self.b().phi(value.get_type());
            incoming(phi, value, before);
            phi
        };
        let phis: Vec<PhiValue<'ctx>> = init.iter().map(begin).collect();
        let carried: Vec<Val<'ctx>> = phis.iter().map(|phi| phi.as_basic_value()).collect();
        let count = counter.as_basic_value();
        let more = self.b().less(true, end, count);
        self.b().cond_br(more, inside, exit);

        self.b().at(inside);
        self.f.poll();
        let (&param, params) = func.regions[body].params.split_first().expect("it counts");
        self.f.values[param] = Some(count);
        self.define_all(params, &carried);
        let counts = self.b().splat(count, self.width);
        let begun = self.b().icmp(IntPredicate::SGE, begins, counts);
        let run = self.narrow(mask, begun);
        let (values, _) = self.region(body, Some(run)).expect("no lane leaves it");
        let next: Vec<Val<'ctx>> = values
            .iter()
            .zip(&carried)
            .map(|(&value, &old)| self.merge(Some(run), value, old))
            .collect();
        let last = self.b().current();
        let minus_one = self.b().int(end.get_type(), -1);
        incoming(counter, self.b().op(Opcode::Add, count, minus_one), last);
        for (&phi, &value) in phis.iter().zip(&next) {
            incoming(phi, value, last);
        }
        self.b().br(head);
        self.b().at(exit);
        self.define_all(&func.insts[inst].results, &carried);
    }

    /// The greatest of the lanes of `mask`, at least `none`.
    fn most(&self, values: Val<'ctx>, none: Val<'ctx>, mask: Mask<'ctx>) -> Val<'ctx> {
        let values = self.merge(mask, values, none);
        let ty = values.get_type();
        let exact = FastMathFlags::empty();
        self.b()
            .intrinsic("llvm.vector.reduce.smax", &[ty], &[values], exact)
    }

    /// For how many numbers all lanes want room.
    fn wanted(&self, count: Value, mask: Mask<'ctx>) -> Val<'ctx> {
        let alike = self.alike.is_some_and(|alike| alike.has(self.func, count));
        let turns = match (alike, mask) {
            (true, None) => self.f.value(count),
            (true, Some(mask)) => {
                let any = self.any(mask);
                self.b().select(any, self.f.value(count), self.b().i64(0))
            }
            (false, _) => {
                let none = self.b().splat(self.b().i64(0), self.width);
                self.most(self.value(count), none, mask)
            }
        };
        let width = self.b().i64(i64::from(self.width));
        self.b().op(Opcode::Mul, turns, width)
    }

    pub(super) fn reserve(&mut self, inst: Inst, buffer: Value, mask: Mask<'ctx>) {
        let results = &self.func.insts[inst].results;
        let count = reserved(self.func, results[0]).expect("it is what makes room");
        let wanted = self.wanted(count, mask);
        let made = self.f.reserve_scalars(buffer, wanted);
        for (&result, made) in results.iter().zip(made) {
            self.f.values[result] = Some(made);
        }
    }

    pub(super) fn assert_room(&mut self, inst: Inst, mask: Mask<'ctx>) {
        let Op::Assert { cond, ref args, .. } = self.func[inst] else {
            unreachable!("the caller looked")
        };
        let granted = self.f.value(cond);
        let slots = args.iter().map(|&count| self.wanted(count, mask)).collect();
        self.f.check_with(inst, granted, |_| slots);
    }

    /// Where a turn's numbers of all lanes lie.
    pub(super) fn room_at(&mut self, inst: Inst, room: Value, turn: Value) {
        let first = self.first_of(turn);
        let place = self.f.room_scalar(room, first);
        self.f.values[self.func.insts[inst].results[0]] = Some(place);
    }

    fn first_of(&mut self, turn: Value) -> Val<'ctx> {
        let turn = self.f.index(turn);
        let width = self.b().i64(i64::from(self.width));
        self.b().op(Opcode::Mul, turn, width)
    }

    /// A local of as many numbers for each lane.
    pub(super) fn local(&mut self, inst: Inst) {
        let result = self.func.insts[inst].results[0];
        let ty = self
            .func
            .ty(result)
            .pointee()
            .expect("a local is a storage");
        let elem = ty.elem().expect("locals hold numbers");
        let n = ty.n_elems() * self.width;
        let place: Val<'ctx> = self
            .f
            .in_entry(|s| s.b.alloca(basic(stored(s.b.ctx, elem).array_type(n))))
            .into();
        let bytes = self.b().i64(i64::from(n) * i64::from(elem.bytes()));
        self.b().memset_zero(place, bytes, elem.bytes());
        self.f.values[result] = Some(place);
    }

    pub(super) fn elem_ref(&mut self, inst: Inst, base: Value, turn: Value) {
        let first = self.first_of(turn);
        let result = self.func.insts[inst].results[0];
        let elem = self.func.ty(result).pointee().and_then(Type::elem);
        let bytes = elem.expect("it names a number").bytes();
        let place = self.f.element(self.f.value(base), first, u64::from(bytes));
        self.f.values[result] = Some(place);
    }

    /// Stores the numbers of the lanes of `mask`; those of others stay.
    pub(super) fn store(&mut self, place: Value, value: Value, mask: Mask<'ctx>) {
        let mut values = self.value(value);
        if mask.is_some() {
            let old = self.f.load_lanes(place, self.width);
            values = self.merge(mask, values, old);
        }
        self.f.store_lanes(place, values);
    }
}
