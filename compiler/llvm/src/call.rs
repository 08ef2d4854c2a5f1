//! Calls: real functions, and the functions of `runtime/device/`.
//!
//! An LLVM function takes the launch context, the address of the random state and the arguments; it
//! returns whether it failed, and its results. A caller leaves at once if its callee failed.

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::{Calls, Ranges};
use aerogel_ir::{AssertKind, FuncId, Function, Inst, Module, Op, Value};
use aerogel_runtime::abi::offset;
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::FunctionValue;

use crate::builder::{Builder, Val, basic, undef};
use crate::context::{FuncCx, Leave, ModuleCx, Origin, Scope};
use crate::{device_code, far};

/// Functions with at most this many instructions, those inlined into them included, are always inlined; larger ones
/// where LLVM likes.
const ALWAYS_INLINED: usize = 200;

/// How long the functions of a module are, with those that are always inlined into them.
pub(crate) fn lengths(module: &Module) -> SecondaryMap<FuncId, Option<usize>> {
    let funcs = &module.funcs;
    Calls::of(funcs).lengths(ALWAYS_INLINED, |id| Some(funcs[id].insts.len()))
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// The function of `runtime/device/` for this operation, if there is one, and the type that it takes.
    pub(crate) fn device_function(
        &self,
        name: &str,
        ty: ScalarType,
    ) -> Option<(FuncId, ScalarType)> {
        if self.origin == Origin::Device || !ty.is_float() {
            return None;
        }
        let wide = ty.accumulator();
        let id = device_code::module().find(&format!("{name}_{wide}"))?;
        Some((id, wide))
    }

    /// A call of the function of `runtime/device/` for this operation, if there is one.
    pub(crate) fn device_math(
        &mut self,
        name: &str,
        ty: ScalarType,
        args: &[Val<'ctx>],
    ) -> Option<Val<'ctx>> {
        let (id, wide) = self.device_function(name, ty)?;
        let args: Vec<Val<'ctx>> = args
            .iter()
            .map(|&arg| self.arith(ty).cast(arg, wide))
            .collect();
        let near = self.call_values(Origin::Device, id, &args)[0];
        let result = self.guarded(id, wide, None, args[0], near);
        Some(self.arith(wide).cast(result, ty))
    }

    pub(crate) fn call(&mut self, inst: Inst, callee: FuncId, args: &[Value]) {
        let args = self.values(args);
        let results = self.call_values(self.origin, callee, &args);
        let func = self.func;
        self.define(&func.insts[inst].results, &results);
    }

    /// Calls a function and leaves this one if it failed.
    pub(crate) fn call_values(
        &mut self,
        origin: Origin,
        callee: FuncId,
        args: &[Val<'ctx>],
    ) -> Vec<Val<'ctx>> {
        let func = self.cx.function(origin, callee);
        let random = self
            .random
            .unwrap_or_else(|| self.b.ptr_type().const_null());
        let mut all = vec![self.context(), random.into()];
        all.extend(args);
        let pair = self.b.call(func, &all).expect("functions return a struct");
        let n_results = pair.get_type().into_struct_type().count_fields() - 1;
        if origin == Origin::User {
            let failed = self.b.member(pair, 0);
            let (gone, fine) = (
                self.b.block(self.llvm, "failed"),
                self.b.block(self.llvm, "fine"),
            );
            self.b.cond_br(failed, gone, fine);
            self.b.at(gone);
            self.leave_failed();
            self.b.at(fine);
        }
        (0..n_results).map(|k| self.b.member(pair, k + 1)).collect()
    }

    /// Leaves the function after a failure.
    pub(crate) fn leave_failed(&mut self) {
        self.release_buffers();
        match self.leave {
            Leave::Task => self.b.ret(None),
            Leave::Function => {
                let ty = self.llvm.get_type().get_return_type();
                let ty = ty.expect("functions return a struct");
                let failed = self.b.with_member(undef(ty), 0, self.b.bool(true));
                self.b.ret(Some(&failed));
            }
        }
    }

    /// Leaves the function with its results.
    pub(crate) fn leave_with(&mut self, results: &[Value]) {
        self.release_buffers();
        match self.leave {
            Leave::Task => {
                let place = (!results.is_empty()).then(|| self.context_field(offset::RESULTS));
                for (k, &result) in results.iter().enumerate() {
                    let slot = self.b.to_slot(self.func.elem(result), self.value(result));
                    let place = place.expect("there are results");
                    let at = self.b.offset(place, self.b.i64(k as i64 * 8));
                    self.b.store(at, slot);
                }
                self.b.ret(None);
            }
            Leave::Function => {
                let ty = self.llvm.get_type().get_return_type();
                let ty = ty.expect("functions return a struct");
                let mut value = self.b.with_member(undef(ty), 0, self.b.bool(false));
                for (k, &result) in results.iter().enumerate() {
                    value = self.b.with_member(value, k as u32 + 1, self.value(result));
                }
                self.b.ret(Some(&value));
            }
        }
    }
}

impl<'ctx> ModuleCx<'_, 'ctx> {
    /// The LLVM function of a function, created when first needed. It takes the context, the
    /// random state's address and the arguments, and returns whether it failed and the results.
    pub(crate) fn function(&mut self, origin: Origin, id: FuncId) -> FunctionValue<'ctx> {
        let module = match origin {
            Origin::User => self.user,
            Origin::Device => device_code::module(),
        };
        let func = &module.funcs[id];
        if let Some(&made) = self.funcs.get(&(origin, id)) {
            return made;
        }
        let b = Builder::new(self.ctx, self.llvm, self.target);
        let pointer = basic(b.ptr_type());
        let params = &func.regions[func.body].params;
        let mut param_types: Vec<BasicMetadataTypeEnum<'ctx>> =
            vec![pointer.into(), pointer.into()];
        for &param in params {
            param_types.push(b.ty(func.ty(param)).into());
        }
        let mut result_types = vec![basic(self.ctx.bool_type())];
        result_types.extend(func.results.iter().map(|&ty| b.ty(ty)));
        let ty = self.ctx.struct_type(&result_types, false);
        let ty = inkwell::types::BasicType::fn_type(&ty, &param_types, false);
        let llvm = self.llvm.add_function(
            &format!("{origin:?}.{}", func.name),
            ty,
            Some(inkwell::module::Linkage::Internal),
        );
        self.funcs.insert((origin, id), llvm);
        let is_short = self.lengths[id].is_some_and(|length| length <= ALWAYS_INLINED);
        if origin == Origin::Device && far::is_far(&func.name) {
            far::rare(&b, llvm);
        } else if origin == Origin::Device && touches_memory(func) {
            // What is called is what seldom happens; callers keep the rest to themselves.
            b.attribute(llvm, "noinline");
            b.attribute(llvm, "cold");
        } else if origin == Origin::Device || is_short {
            b.attribute(llvm, "alwaysinline");
        }
        let recursive = |op: &Op| {
            let kind = AssertKind::Recursion;
            matches!(op, Op::Assert { kind: found, .. } if *found == kind)
        };
        let polls = func.insts.values().any(|inst| recursive(&inst.op));
        let scope = Scope {
            origin,
            id,
            region: func.body,
            leave: Leave::Function,
            fast_math: None,
        };
        let mut body = FuncCx::new(self, llvm, scope);
        body.ranges = Ranges::within(body.func, body.func.body);
        body.declare_buffers(func.body);
        let args: Vec<Val<'ctx>> = llvm.get_params();
        body.random = Some(args[1].into_pointer_value());
        for (&param, &arg) in params.iter().zip(&args[2..]) {
            body.values[param] = Some(arg);
        }
        if polls {
            // What calls itself may run for as long as a loop.
            body.poll();
        }
        if body.region(func.body).is_some() {
            body.leave_with(func.yielded(func.body).unwrap_or_default());
        }
        body.finish();
        llvm
    }
}

/// Whether a function does, or lets others do, more than arithmetic.
fn touches_memory(func: &Function) -> bool {
    let does = |op: &Op| matches!(op, Op::PlaceAt { .. } | Op::Call { .. });
    func.insts.values().any(|inst| does(&inst.op))
}
