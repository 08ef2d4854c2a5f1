//! Tasks on a GPU: kernels whose threads share the index space among themselves.
//!
//! ```text
//! for position = lo + thread; position < hi; position += threads { body }
//! ```
//! Neighbouring threads take neighbouring indices, so their accesses fall together. What stands before
//! and after the loop runs once in each thread, which is a part of the space. A serial task, or a loop
//! that runs in order, is the first thread's.

use aerogel_base::ScalarType;
use aerogel_ir::{AtomicOp, Region, Value};
use aerogel_runtime::abi::offset;
use inkwell::IntPredicate;
use inkwell::llvm_sys::LLVMAtomicRMWBinOp;
use inkwell::values::FastMathFlags;

use crate::builder::{Opcode, Val, basic, incoming};
use crate::context::FuncCx;
use crate::control::Loop;

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Ends all threads but the first.
    pub(crate) fn first_thread_only(&mut self) {
        let [thread, _] = self.thread();
        let [gone, on] = ["others", "first"].map(|name| self.b.block(self.llvm, name));
        let first = self.b.is_zero(thread);
        self.b.cond_br(first, on, gone);
        self.b.at(gone);
        self.b.ret(None);
        self.b.at(on);
    }

    /// Ends threads of a task that comes after one which has failed, or that shall not begin.
    pub(crate) fn leave_if_failed(&mut self) {
        let errors = self.context_field(offset::ERRORS);
        let state = self
            .b
            .offset(errors, self.b.i64(offset::ERROR_STATE as i64));
        let state = self.b.load_shared(basic(self.b.ctx.i32_type()), state);
        let fine = self.b.is_zero(state);
        self.leave_unless(fine);
        let goes_on = self.goes_on();
        self.leave_unless(goes_on);
    }

    /// The bounds of an index space that another kernel has found out; the number is the address where they are.
    pub(crate) fn bounds_at(&mut self, address: Val<'ctx>, n: usize) -> Vec<Val<'ctx>> {
        let place = self
            .b
            .cast(Opcode::IntToPtr, address, basic(self.b.ptr_type()));
        let ty = basic(self.b.i64_type());
        let all = (0..n as i64).map(|k| {
            let at = self.b.offset(place, self.b.i64(8 * k));
            self.b.load(ty, at).0
        });
        all.collect()
    }

    /// All of an index space, whose bounds only the device knows.
    pub(crate) fn whole_space(&mut self, bounds: &[Val<'ctx>]) -> [Val<'ctx>; 2] {
        let none = self.b.i64(0);
        let mut total = self.b.i64(1);
        for axis in bounds.chunks_exact(2) {
            let extent = self.b.op(Opcode::Sub, axis[1], axis[0]);
            let some = self.b.icmp(IntPredicate::SGT, extent, none);
            let extent = self.b.select(some, extent, none);
            total = self.b.op(Opcode::Mul, total, extent);
        }
        [none, total]
    }

    /// The loop over the indices of one thread.
    pub(crate) fn each_on_grid(&mut self, body: Region) {
        let task = self.task.as_ref().expect("`each` stands in a task");
        let (bounds, random) = (task.bounds.clone(), task.random);
        let [lo, hi] = task.part;
        let [thread, n_threads] = self.thread();
        let first = self.b.nsw(Opcode::Add, lo, thread);
        let before = self.b.current();
        let [head, inside, next, exit] =
            ["each", "body", "next", "each_done"].map(|name| self.b.block(self.llvm, name));
        self.b.br(head);

        self.b.at(head);
        let phi = self.b.phi(first.get_type());
        incoming(phi, first, before);
        let position = phi.as_basic_value();
        let more = self.b.icmp(IntPredicate::SLT, position, hi);
        self.b.cond_br(more, inside, exit);

        self.b.at(inside);
        self.poll();
        let func = self.func;
        let params = &func.regions[body].params;
        let mut rest = position;
        for (axis, (&param, [lo, hi])) in params.iter().zip(bounds).enumerate().rev() {
            let mut index = rest;
            if axis > 0 {
                let extent = self.b.nsw(Opcode::Sub, hi, lo);
                index = self.b.op(Opcode::URem, rest, extent);
                rest = self.b.op(Opcode::UDiv, rest, extent);
            }
            let index = self.b.nsw(Opcode::Add, index, lo);
            self.values[param] = Some(self.narrow(param, index));
        }
        if random {
            self.seed(position);
        }
        self.loops.push(Loop {
            next,
            next_phis: Vec::new(),
            exit,
            exit_phis: Vec::new(),
        });
        if self.region(body).is_some() {
            self.b.br(next);
        }
        self.loops.pop();

        self.b.at(next);
        let stepped = self.b.nsw(Opcode::Add, position, n_threads);
        incoming(phi, stepped, next);
        self.b.br(head);
        self.b.at(exit);
        let task = self.task.as_mut().expect("`each` stands in a task");
        task.is_looped = true;
    }

    /// Whether what comes now stands behind the loop of a task, where each thread has only its accumulators left to add
    /// (`thread_local`): to the same places, and nobody wants to know what was there.
    pub(crate) fn is_behind_grid_loop(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.is_looped)
    }

    /// Adds a number of each thread to a place that is the same for all. Where all lanes of a warp come here together,
    /// they add up among themselves, and one of them adds to the place.
    pub(crate) fn add_up_warp(
        &mut self,
        op: AtomicOp,
        rmw: LLVMAtomicRMWBinOp,
        ty: ScalarType,
        place: Value,
        own: Val<'ctx>,
    ) {
        let none = FastMathFlags::empty();
        let i32_ty = basic(self.b.ctx.i32_type());
        let lanes = self.b.intrinsic("llvm.nvvm.activemask", &[], &[], none);
        let all = self.b.int(i32_ty, -1);
        let together = self.b.icmp(IntPredicate::EQ, lanes, all);
        let before = self.b.current();
        let [warp, add, done] =
            ["warp", "add_up", "added_up"].map(|name| self.b.block(self.llvm, name));
        self.b.cond_br(together, warp, add);

        self.b.at(warp);
        let mut sum = own;
        // What is taken away is added up first.
        let step = match op {
            AtomicOp::Sub => AtomicOp::Add,
            op => op,
        };
        let step = step.binary().expect("nothing is exchanged behind a loop");
        for distance in [16, 8, 4, 2, 1] {
            let other = self.of_lane(ty, sum, distance);
            sum = self.arith(ty).binary(step, sum, other);
        }
        let tid = self
            .b
            .intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", &[], &[], none);
        let lane = self.b.and(tid, self.b.int(i32_ty, 31));
        let first = self.b.is_zero(lane);
        let summed = self.b.current();
        self.b.cond_br(first, add, done);

        self.b.at(add);
        let phi = self.b.phi(own.get_type());
        incoming(phi, own, before);
        incoming(phi, sum, summed);
        let operand = self.b.to_stored(ty, phi.as_basic_value());
        self.b.rmw(rmw, self.value(place), operand);
        self.b.br(done);
        self.b.at(done);
    }

    /// The number of another lane, whose number differs in one bit; all lanes are here.
    fn of_lane(&mut self, ty: ScalarType, own: Val<'ctx>, distance: i64) -> Val<'ctx> {
        let i32_ty = basic(self.b.ctx.i32_type());
        let [all, distance, last] = [-1, distance, 31].map(|n| self.b.int(i32_ty, n));
        self.of_other_lane("bfly", ty, all, own, [distance, last])
    }

    /// The number of this thread in the grid, and how many there are.
    fn thread(&mut self) -> [Val<'ctx>; 2] {
        let read = |s: &Self, name: &str| {
            let name = format!("llvm.nvvm.read.ptx.sreg.{name}.x");
            let value = s.b.intrinsic(&name, &[], &[], FastMathFlags::empty());
            s.b.cast(Opcode::ZExt, value, basic(s.b.i64_type()))
        };
        self.in_entry(|s| {
            let size = read(s, "ntid");
            let before = s.b.nsw(Opcode::Mul, read(s, "ctaid"), size);
            let thread = s.b.nsw(Opcode::Add, before, read(s, "tid"));
            [thread, s.b.nsw(Opcode::Mul, read(s, "nctaid"), size)]
        })
    }
}
