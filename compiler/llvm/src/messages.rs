//! Prints and assertions as code, and calls of the host.

use aerogel_ir::{Inst, Value};
use aerogel_runtime::abi::{MAX_ERROR_ARGS, offset};
use inkwell::IntPredicate;
use inkwell::types::{BasicType, BasicTypeEnum};

use crate::builder::{Opcode, Val, basic};
use crate::context::FuncCx;

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Hands an instruction's values to a function of the host, at an offset of `HostCalls`.
    pub(crate) fn tell(&mut self, host: u64, inst: Inst, args: &[Value]) {
        let site = self.site(inst);
        let slots = self.slots(args);
        if self.cx.target.grid {
            return self.log(site, &slots);
        }
        let space = basic(self.b.i64_type().array_type(args.len().max(1) as u32));
        let place: Val<'ctx> = self.in_entry(|s| s.b.alloca(space)).into();
        for (k, &slot) in slots.iter().enumerate() {
            let at = self.b.offset(place, self.b.i64(k as i64 * 8));
            self.b.store(at, slot);
        }
        let i32_ty = basic(self.b.ctx.i32_type());
        let site = self.b.int(i32_ty, i64::from(site));
        self.call_host(host, None, &[site, place]);
    }

    /// Keeps a record of what is told the host in the launch's log, if it has room.
    fn log(&mut self, site: u32, slots: &[Val<'ctx>]) {
        let services = self.context_field(offset::HOST);
        let i64_ty = basic(self.b.i64_type());
        let at = |s: &Self, field: u64| s.b.offset(services, s.b.i64(field as i64));
        let words = self.b.i64(slots.len() as i64 + 1);
        let first = self.b.add_shared(at(self, offset::LOG_TAKEN), words);
        let end = self.b.op(Opcode::Add, first, words);
        let (room, _) = self.b.load(i64_ty, at(self, offset::LOG_WORDS));
        let fits = self.b.icmp(IntPredicate::ULE, end, room);
        let [keep, lose, done] =
            ["keep", "lose", "logged"].map(|name| self.b.block(self.llvm, name));
        self.b.likely_br(fits, keep, lose);

        self.b.at(keep);
        let (log, _) = self.b.load(basic(self.b.ptr_type()), at(self, offset::LOG));
        let place = self.b.op(Opcode::Mul, first, self.b.i64(8));
        let place = self.b.offset(log, place);
        self.b.store(place, self.b.i64(i64::from(site) + 1));
        for (k, &slot) in slots.iter().enumerate() {
            let at = self.b.offset(place, self.b.i64(8 * (k as i64 + 1)));
            self.b.store(at, slot);
        }
        self.b.br(done);

        self.b.at(lose);
        self.b.add_shared(at(self, offset::LOG_LOST), self.b.i64(1));
        self.b.br(done);
        self.b.at(done);
    }

    /// Requests memory from the host: whether it was granted.
    pub(crate) fn grow(&mut self, numbers: [Value; 3]) -> Val<'ctx> {
        if self.cx.target.grid {
            return self.b.bool(false);
        }
        let i32_ty = basic(self.b.ctx.i32_type());
        let answer = self.call_host(offset::HOST_GROW, Some(i32_ty), &self.values(&numbers));
        let answer = answer.expect("the function has a result");
        self.b.not(self.b.is_zero(answer))
    }

    /// Lets the host zero bytes of a tree, or zeroes them directly if the host cannot be called.
    pub(crate) fn clear(&mut self, tree: Val<'ctx>, address: Val<'ctx>, bytes: Val<'ctx>) {
        if self.cx.target.grid {
            let ty = basic(self.b.ptr_type());
            let place = self.b.cast(Opcode::IntToPtr, address, ty);
            self.b.memset_zero(place, bytes, 4);
        } else {
            self.call_host(offset::HOST_CLEAR, None, &[tree, address, bytes]);
        }
    }

    /// Calls the function of the host at an offset of `HostCalls`.
    pub(crate) fn call_host(
        &mut self,
        at: u64,
        result: Option<BasicTypeEnum<'ctx>>,
        args: &[Val<'ctx>],
    ) -> Option<Val<'ctx>> {
        let host = self.context_field(offset::HOST);
        let at = self.b.offset(host, self.b.i64(at as i64));
        let (func, _) = self.b.load(basic(self.b.ptr_type()), at);
        let mut all = vec![self.context()];
        all.extend(args);
        let types: Vec<_> = all.iter().map(|arg| arg.get_type().into()).collect();
        let ty = match result {
            Some(ty) => ty.fn_type(&types, false),
            None => self.b.ctx.void_type().fn_type(&types, false),
        };
        self.b.call_pointer(ty, func, &all)
    }

    pub(crate) fn assert(&mut self, inst: Inst, cond: Value, args: &[Value]) {
        self.check(inst, self.value(cond), args);
    }

    /// Records an instruction's message and leaves the task if `cond` does not hold.
    pub(crate) fn check(&mut self, inst: Inst, cond: Val<'ctx>, args: &[Value]) {
        self.check_with(inst, cond, |s| s.slots(args));
    }

    /// Does so with what `slots` gives where it does not hold.
    pub(crate) fn check_with(
        &mut self,
        inst: Inst,
        cond: Val<'ctx>,
        slots: impl FnOnce(&mut Self) -> Vec<Val<'ctx>>,
    ) {
        let site = self.site(inst);
        let [failed, record, leave, fine] =
            ["failed", "record", "leave", "fine"].map(|name| self.b.block(self.llvm, name));
        self.b.likely_br(cond, fine, failed);

        self.b.at(failed);
        let slots = slots(self);
        let errors = self.context_field(offset::ERRORS);
        let i32_ty = basic(self.b.ctx.i32_type());
        let field = |s: &Self, at: u64| s.b.offset(errors, s.b.i64(at as i64));
        let number = |s: &Self, n: u32| s.b.int(i32_ty, i64::from(n));
        let state = field(self, offset::ERROR_STATE);
        let (free, writing) = (number(self, 0), number(self, 1));
        let (_, claimed) = self.b.cmpxchg(state, free, writing, true);
        self.b.cond_br(claimed, record, leave);

        self.b.at(record);
        let n_args = slots.len().min(MAX_ERROR_ARGS);
        self.b
            .store(field(self, offset::ERROR_SITE), number(self, site));
        self.b.store(
            field(self, offset::ERROR_N_ARGS),
            number(self, n_args as u32),
        );
        for (k, &slot) in slots.iter().take(MAX_ERROR_ARGS).enumerate() {
            self.b
                .store(field(self, offset::ERROR_ARGS + k as u64 * 8), slot);
        }
        let ready = number(self, 2);
        // Publishes what was written above.
        self.b.cmpxchg(state, writing, ready, true);
        if self.cx.target.grid {
            // Queued launches have been submitted already: they must not begin.
            let stop = self.context_field(offset::STOP);
            self.b.cmpxchg(stop, free, writing, false);
        }
        self.b.br(leave);

        self.b.at(leave);
        self.leave_failed();
        self.b.at(fine);
    }

    fn slots(&self, args: &[Value]) -> Vec<Val<'ctx>> {
        args.iter()
            .map(|&arg| self.b.to_slot(self.func.elem(arg), self.value(arg)))
            .collect()
    }

    fn site(&self, inst: Inst) -> u32 {
        self.cx.sites.numbers[self.id][inst]
    }
}
