//! Sums on a GPU: the threads of a block add up among themselves, and one of them adds the result to its target.
//!
//! ```text
//! slots[warp] = neutral                      ; in shared memory, before anybody may leave
//! each { own = own + .. }
//! barrier                                    ; so that lanes come here together
//! if all lanes of the warp are here          ; else each of them adds what it has to the place
//!     own = sum of the warp, by shuffles; the first lane stores it in slots[warp]
//! barrier
//! the first thread: for all warps { own = own + slots[warp] }
//! atomic place, own                          ; in the first thread
//! ```
//! The pass `thread_local` has put code after the loop of a task: a load of each accumulator and an atomic with its
//! value, possibly in a branch that tests whether there is anything to add. The reduction is emitted at the load, since
//! all threads reach it; threads that have left are not waited for, and contribute the neutral element.

use aerogel_base::ScalarType;
use aerogel_ir::{AtomicOp, Function, Inst, Op, Region, Value, walk};
use inkwell::IntPredicate;
use inkwell::module::Linkage;
use inkwell::values::{FastMathFlags, GlobalValue};

use crate::builder::{Opcode, Val, basic, incoming};
use crate::context::FuncCx;
use crate::task_state::{BlockSum, Met};
use crate::threads::SHARED;
use crate::types::stored;

/// Bytes of a sum's slots: eight for each warp of the largest block.
const SLOTS: u64 = 32 * 8;
/// Bytes of shared memory that a block has on every GPU, for slots and for the program's shared arrays.
const ROOM: u64 = 48 << 10;

/// Bytes that the program lets the threads of a block share in a task.
fn shared_bytes(func: &Function, body: Region) -> u64 {
    let mut bytes = 0;
    walk(func, body, &mut |func, inst| {
        if let Op::Shared {} = func[inst] {
            let ty = func.ty(func.insts[inst].results[0]).pointee();
            let ty = ty.expect("it is a storage");
            let elem = ty.elem().expect("it holds numbers");
            bytes += (u64::from(ty.n_elems()) * u64::from(elem.bytes())).next_multiple_of(16);
        }
    });
    bytes
}

/// Loads after the loop of a task that are only passed to an atomic.
fn accumulated(func: &Function, body: Region) -> Vec<(Value, Value, AtomicOp)> {
    let behind = func.regions[body].insts.iter();
    let mut behind = behind.skip_while(|&&inst| !matches!(func[inst], Op::Each { .. }));
    behind.next();
    let loaded: Vec<Inst> = behind.copied().collect();
    let mut found: Vec<(Value, AtomicOp)> = Vec::new();
    let mut twice = Vec::new();
    walk(func, body, &mut |func, inst| {
        let all: Vec<(Value, AtomicOp)> = match &func[inst] {
            Op::Atomic { op, value, .. } => vec![(*value, *op)],
            Op::AtomicAdds { values, .. } => values.iter().map(|&v| (v, AtomicOp::Add)).collect(),
            _ => return,
        };
        for sum in all {
            match found.iter().any(|(value, _)| *value == sum.0) {
                true => twice.push(sum.0),
                false => found.push(sum),
            }
        }
    });
    let of = |(value, op)| {
        let results = |i: Inst| &func.insts[i].results;
        let by = loaded.iter().find(|&&i| results(i).contains(&value));
        match func[*by?] {
            Op::Load { place } if matches!(func.def_op(place), Some(Op::Local {})) => {
                (!twice.contains(&value)).then_some((place, value, op))
            }
            _ => None,
        }
    };
    found.into_iter().filter_map(of).collect()
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Whether what comes now stands behind the loop of a task, where each thread has only its accumulators left to add
    /// (`thread_local`): to the same places, and nobody wants to know what was there.
    fn is_behind_grid_loop(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.is_looped)
    }

    /// The slots for the sums of a task, which hold what is neutral.
    pub(crate) fn begin_sums(&mut self, body: Region) -> Vec<BlockSum<'ctx>> {
        let room = ROOM.saturating_sub(shared_bytes(self.func, body)) / SLOTS;
        let all = accumulated(self.func, body).into_iter().take(room as usize);
        let all = all.enumerate();
        let all = all.filter_map(|(k, (place, value, op))| {
            let ty = self.func.elem(value);
            let neutral = op.identity(ty)?;
            let slots = self.shared_slots(k).as_pointer_value().into();
            let generic = basic(self.b.ptr_type());
            Some(BlockSum {
                place,
                value,
                op,
                ty,
                neutral,
                slots: self.b.cast(Opcode::AddrSpaceCast, slots, generic),
                met: None,
            })
        });
        let all: Vec<BlockSum<'ctx>> = all.collect();
        if all.is_empty() {
            return all;
        }
        let [warp, lane] = self.warp_and_lane();
        let first = self.b.is_zero(lane);
        let [begin, on] = ["neutral", "begun"].map(|name| self.b.block(self.llvm, name));
        self.b.cond_br(first, begin, on);
        self.b.at(begin);
        for sum in &all {
            let neutral = self.b.constant(sum.neutral);
            self.put(sum.ty, sum.slots, warp, neutral);
        }
        self.b.br(on);
        self.b.at(on);
        all
    }

    /// Slots for the sum of a number, which all tasks use.
    fn shared_slots(&self, number: usize) -> GlobalValue<'ctx> {
        let name = format!("sums{number}");
        self.cx.llvm.get_global(&name).unwrap_or_else(|| {
            let array = self.b.ctx.i64_type().array_type(SLOTS as u32 / 8);
            let space = inkwell::AddressSpace::from(SHARED);
            let global = self.cx.llvm.add_global(array, Some(space), &name);
            global.set_linkage(Linkage::Internal);
            global.set_initializer(&array.get_undef());
            global.set_alignment(16);
            global
        })
    }

    /// The value of an accumulator after the loop, or the sum over the block in the thread that adds for all.
    pub(crate) fn add_up(&mut self, value: Value, own: Val<'ctx>) -> Val<'ctx> {
        if !self.is_behind_grid_loop() {
            return own;
        }
        let of = |s: &Self| {
            let sums = s.task.as_ref().map(|task| task.sums.as_slice());
            let mut sums = sums.unwrap_or_default().iter();
            sums.find(|sum| sum.value == value).map(|sum| sum.met)
        };
        match of(self) {
            None => return own,
            Some(Some(met)) => return met.total,
            Some(None) => self.meet(),
        }
        of(self).flatten().map_or(own, |met| met.total)
    }

    /// Adds up all sums of a task at once.
    fn meet(&mut self) {
        let task = self.task.as_mut().expect("a loop is in a task");
        let mut sums = std::mem::take(&mut task.sums);
        let owns: Vec<Val<'ctx>> = sums.iter().map(|sum| self.load(sum.place)).collect();
        let neutrals: Vec<Val<'ctx>> = sums.iter().map(|s| self.b.constant(s.neutral)).collect();
        let none = FastMathFlags::empty();
        let i32_ty = basic(self.b.ctx.i32_type());
        let barrier = |s: &Self| {
            let name = "llvm.nvvm.barrier.cta.sync.aligned.all";
            s.b.effect_intrinsic(name, &[s.b.int(i32_ty, 0)]);
        };
        // Lanes come from the loop at different times.
        barrier(self);
        let [warp, lane] = self.warp_and_lane();
        let lanes = self.b.intrinsic("llvm.nvvm.activemask", &[], &[], none);
        let all = self.b.int(i32_ty, -1);
        let together = self.b.icmp(IntPredicate::EQ, lanes, all);
        let before = self.b.current();
        let names = ["warp", "of_warp", "met", "for_all", "slots", "added_up"];
        let [shuffle, of_warp, met, for_all, slots, done] =
            names.map(|name| self.b.block(self.llvm, name));
        self.b.cond_br(together, shuffle, met);

        self.b.at(shuffle);
        let mut of_warps = owns.clone();
        for (sum, number) in sums.iter().zip(&mut of_warps) {
            for distance in [16, 8, 4, 2, 1] {
                let other = self.of_lane(sum.ty, *number, distance);
                *number = self.arith(sum.ty).binary(sum.step(), *number, other);
            }
        }
        let first = self.b.is_zero(lane);
        let shuffled = self.b.current();
        self.b.cond_br(first, of_warp, met);

        self.b.at(of_warp);
        for (sum, &number) in sums.iter().zip(&of_warps) {
            self.put(sum.ty, sum.slots, warp, number);
        }
        let put = self.b.current();
        self.b.br(met);

        // What this thread has left to add.
        self.b.at(met);
        let left: Vec<Val<'ctx>> = owns
            .iter()
            .zip(neutrals)
            .map(|(&own, neutral)| {
                let phi = self.b.phi(own.get_type());
                incoming(phi, own, before);
                incoming(phi, neutral, shuffled);
                incoming(phi, neutral, put);
                phi.as_basic_value()
            })
            .collect();
        barrier(self);
        let is_first = self.b.and(self.b.is_zero(warp), self.b.is_zero(lane));
        let alone = self.b.not(together);
        let here = self.b.current();
        self.b.cond_br(is_first, for_all, done);

        self.b.at(for_all);
        let threads = "llvm.nvvm.read.ptx.sreg.ntid.x";
        let threads = self.b.intrinsic(threads, &[], &[], none);
        let threads = self.b.op(Opcode::Add, threads, self.b.int(i32_ty, 31));
        let n_warps = self.b.op(Opcode::LShr, threads, self.b.int(i32_ty, 5));
        self.b.br(slots);

        self.b.at(slots);
        let number = self.b.phi(i32_ty);
        incoming(number, self.b.int(i32_ty, 0), for_all);
        let so_far: Vec<_> = left
            .iter()
            .map(|&left| {
                let phi = self.b.phi(left.get_type());
                incoming(phi, left, for_all);
                phi
            })
            .collect();
        let mut totals = Vec::new();
        for (sum, so_far) in sums.iter().zip(&so_far) {
            let place = self.warp_slot(sum.slots, number.as_basic_value());
            let (found, _) = self.b.load(stored(self.b.ctx, sum.ty), place);
            let found = self.b.of_stored(sum.ty, found);
            let so_far = so_far.as_basic_value();
            totals.push(self.arith(sum.ty).binary(sum.step(), so_far, found));
        }
        let one = self.b.int(i32_ty, 1);
        let counted = self.b.op(Opcode::Add, number.as_basic_value(), one);
        let end = self.b.current();
        incoming(number, counted, end);
        for (&phi, &total) in so_far.iter().zip(&totals) {
            incoming(phi, total, end);
        }
        let more = self.b.icmp(IntPredicate::ULT, counted, n_warps);
        self.b.cond_br(more, slots, done);

        self.b.at(done);
        let adds = self.b.phi(alone.get_type());
        incoming(adds, alone, here);
        incoming(adds, self.b.bool(true), end);
        for ((sum, left), total) in sums.iter_mut().zip(left).zip(totals) {
            let phi = self.b.phi(left.get_type());
            incoming(phi, left, here);
            incoming(phi, total, end);
            sum.met = Some(Met {
                total: phi.as_basic_value(),
                adds: adds.as_basic_value(),
            });
        }
        let task = self.task.as_mut().expect("a loop is in a task");
        task.sums = sums;
    }

    /// Whether this thread changes a place by a number, if not all do.
    pub(crate) fn adds(&self, value: Value) -> Option<Val<'ctx>> {
        let sums = &self.task.as_ref()?.sums;
        let met = sums.iter().find(|sum| sum.value == value)?.met;
        met.map(|met| met.adds)
    }

    fn warp_slot(&self, slots: Val<'ctx>, number: Val<'ctx>) -> Val<'ctx> {
        let wide = self.b.cast(Opcode::ZExt, number, basic(self.b.i64_type()));
        self.b
            .offset(slots, self.b.nsw(Opcode::Mul, wide, self.b.i64(8)))
    }

    fn put(&self, ty: ScalarType, slots: Val<'ctx>, number: Val<'ctx>, value: Val<'ctx>) {
        let place = self.warp_slot(slots, number);
        self.b.store(place, self.b.to_stored(ty, value));
    }

    /// The number of the warp in its block, and of the lane in its warp.
    pub(crate) fn warp_and_lane(&self) -> [Val<'ctx>; 2] {
        let i32_ty = basic(self.b.ctx.i32_type());
        let name = "llvm.nvvm.read.ptx.sreg.tid.x";
        let thread = self.b.intrinsic(name, &[], &[], FastMathFlags::empty());
        let warp = self.b.op(Opcode::LShr, thread, self.b.int(i32_ty, 5));
        [warp, self.b.and(thread, self.b.int(i32_ty, 31))]
    }

    /// The number of another lane, whose number differs in one bit; all lanes are here.
    fn of_lane(&mut self, ty: ScalarType, own: Val<'ctx>, distance: i64) -> Val<'ctx> {
        let i32_ty = basic(self.b.ctx.i32_type());
        let [all, distance, last] = [-1, distance, 31].map(|n| self.b.int(i32_ty, n));
        self.of_other_lane("bfly", ty, all, own, [distance, last])
    }
}
