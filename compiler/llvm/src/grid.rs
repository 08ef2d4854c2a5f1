//! Tasks on a GPU: kernels whose threads share the index space among themselves.
//!
//! ```text
//! for position = lo + thread; position < hi; position += threads { body }
//! ```
//! Neighbouring threads take neighbouring indices, so their accesses fall together. What stands before
//! and after the loop runs once in each thread, which is a part of the space. A serial task, or a loop
//! that runs in order, is the first thread's.

use aerogel_ir::Region;
use aerogel_runtime::abi::offset;
use inkwell::IntPredicate;
use inkwell::values::FastMathFlags;

use crate::builder::{Opcode, Val, basic, incoming};
use crate::context::{FuncCx, Loop};

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

    /// Ends threads of a task that comes after one which has failed, or that shall not begin. Those of a block that share
    /// memory end together, since each reads what others have written there.
    pub(crate) fn leave_if_failed(&mut self, together: bool) {
        let errors = self.context_field(offset::ERRORS);
        let state = self
            .b
            .offset(errors, self.b.i64(offset::ERROR_STATE as i64));
        let state = self.b.load_shared(basic(self.b.ctx.i32_type()), state);
        let fine = self.b.is_zero(state);
        if !together {
            self.leave_unless(fine);
            let goes_on = self.goes_on();
            return self.leave_unless(goes_on);
        }
        let goes_on = self.goes_on();
        let fine = self.b.and(fine, goes_on);
        let name = "llvm.nvvm.barrier.cta.red.and.aligned.all";
        let barrier = self.b.int(basic(self.b.ctx.i32_type()), 0);
        let none = FastMathFlags::empty();
        let all_fine = self.b.intrinsic(name, &[], &[barrier, fine], none);
        self.leave_unless(all_fine);
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
