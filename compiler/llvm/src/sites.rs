//! Messages of a kernel: templates as the runtime's sites, prints and assertions as code.

use aerogel_base::{ScalarType, Span};
use aerogel_ir::{AssertKind, Value};
use aerogel_runtime::abi::{MAX_ERROR_ARGS, offset};
use aerogel_runtime::{Site, SiteKind};

use inkwell::types::{BasicType, BasicTypeEnum};

use crate::builder::{Val, basic};
use crate::lower::FuncCx;

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    pub(crate) fn print(&mut self, template: &str, args: &[Value], span: Span) {
        if self.cx.target.grid {
            let message = "this target does not print";
            let cond = self.b.bool(false);
            return self.check(cond, SiteKind::Assert, message, &[], span);
        }
        let site = self.site(SiteKind::Print, template, args, span);
        let slots = self.slots(args);
        let space = basic(self.b.i64_type().array_type(args.len().max(1) as u32));
        let place: Val<'ctx> = self.in_entry(|s| s.b.alloca(space)).into();
        for (k, &slot) in slots.iter().enumerate() {
            let at = self.b.offset(place, self.b.i64(k as i64 * 8));
            self.b.store(at, slot);
        }
        let i32_ty = basic(self.b.ctx.i32_type());
        let site = self.b.int(i32_ty, i64::from(site));
        self.call_host(offset::HOST_PRINT, None, &[site, place]);
    }

    /// Asks the host for memory: whether it gave any.
    pub(crate) fn grow(&mut self, numbers: [Value; 3]) -> Val<'ctx> {
        if self.cx.target.grid {
            return self.b.bool(false);
        }
        let i32_ty = basic(self.b.ctx.i32_type());
        let answer = self.call_host(offset::HOST_GROW, Some(i32_ty), &self.values(&numbers));
        let answer = answer.expect("the function has a result");
        self.b.not(self.b.is_zero(answer))
    }

    /// Calls the function of the host at an offset of `HostCalls`.
    fn call_host(
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

    pub(crate) fn assert(
        &mut self,
        cond: Value,
        kind: AssertKind,
        template: &str,
        args: &[Value],
        span: Span,
    ) {
        let kind = match kind {
            AssertKind::Assertion => SiteKind::Assert,
            AssertKind::Bounds => SiteKind::Bounds,
            AssertKind::DivisionByZero => SiteKind::DivByZero,
            AssertKind::NegativePower => SiteKind::Arithmetic,
            AssertKind::Memory => SiteKind::Memory,
        };
        let cond = self.value(cond);
        self.check(cond, kind, template, args, span);
    }

    /// Records an error and leaves the task if `cond` does not hold.
    pub(crate) fn check(
        &mut self,
        cond: Val<'ctx>,
        kind: SiteKind,
        template: &str,
        args: &[Value],
        span: Span,
    ) {
        let site = self.site(kind, template, args, span);
        let [failed, record, leave, fine] =
            ["failed", "record", "leave", "fine"].map(|name| self.b.block(self.llvm, name));
        self.b.likely_br(cond, fine, failed);

        self.b.at(failed);
        let slots = self.slots(args);
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

    fn site(&mut self, kind: SiteKind, template: &str, args: &[Value], span: Span) -> u32 {
        let types: Vec<ScalarType> = args.iter().map(|&arg| self.func.elem(arg)).collect();
        let site = Site::from_template(kind, template, &types, span);
        self.cx.sites.push(site);
        self.cx.sites.len() as u32 - 1
    }
}
