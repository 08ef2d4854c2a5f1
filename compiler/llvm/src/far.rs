//! Arguments outside the range of a device function's ordinary code: a branch that is rarely taken handles them.
//!
//! `sin_f32` of `runtime/device/math.air` holds up to the magnitude that `far_f32` returns; `far_sin_f32` is for larger
//! ones. After a call of the first comes a call of a guard, a function of LLVM:
//! ```text
//! near = call sin_f32(x)
//! y    = call guard.sin_f32(x, near)      |x| > bound ? far_sin_f32(x) : near
//! ```
//! A branch would keep LLVM's loop vectoriser away, so the guard stays a call until that has run. The vectoriser calls
//! `guard.sin_f32.x8` for eight iterations, which branches once for all of them. Then all guards are inlined.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{FuncId, Op};
use inkwell::FloatPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::types::BasicType;
use inkwell::values::{BasicValue, FastMathFlags, FunctionValue};

use crate::builder::{Builder, Opcode, Val, basic, incoming};
use crate::context::{FuncCx, ModuleCx, Origin};
use crate::device_code;
use crate::target::Target;
use crate::types::scalar;

const PREFIX: &str = "guard.";

/// The vector widths that the vectoriser may request.
const WIDTHS: [u32; 6] = [2, 4, 8, 16, 32, 64];

/// The function for arguments that `id` is not made for, if there is one.
fn far_of(id: FuncId) -> Option<FuncId> {
    let device = device_code::module();
    device.find(&format!("far_{}", device.funcs[id].name))
}

/// Whether a function is called for few arguments only.
pub(crate) fn is_far(name: &str) -> bool {
    name.starts_with("far_")
}

/// The largest magnitude that functions of a type hold for without their far ones.
fn bound(ty: ScalarType) -> f64 {
    let device = device_code::module();
    let id = device.find(&format!("far_{ty}"));
    let func = &device.funcs[id.expect("types with far functions have a bound")];
    let constant = func.insts.values().find_map(|inst| match inst.op {
        Op::Const { value } => Some(value),
        _ => None,
    });
    constant.map(Scalar::as_f64).expect("a bound is a constant")
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// The result of the device function `id` of `x`, which is `near` for ordinary arguments; in so many lanes.
    pub(crate) fn guarded(
        &mut self,
        id: FuncId,
        ty: ScalarType,
        lanes: Option<u32>,
        x: Val<'ctx>,
        near: Val<'ctx>,
    ) -> Val<'ctx> {
        let Some(far) = far_of(id) else { return near };
        let scalar = self.cx.guard(id, far, ty);
        let guard = match lanes {
            None => scalar,
            Some(lanes) => {
                let guard = declare(self.cx.llvm, scalar, lanes);
                if guard.count_basic_blocks() == 0 {
                    define(
                        &Builder::new(self.cx.ctx, self.cx.llvm, self.cx.target),
                        scalar,
                        guard,
                    );
                }
                guard
            }
        };
        self.b
            .call(guard, &[x, near])
            .expect("a guard has a result")
    }
}

impl<'ctx> ModuleCx<'_, 'ctx> {
    /// The guard of a device function.
    fn guard(&mut self, id: FuncId, far: FuncId, ty: ScalarType) -> FunctionValue<'ctx> {
        let name = format!("{PREFIX}{}", device_code::module().funcs[id].name);
        if let Some(made) = self.llvm.get_function(&name) {
            return made;
        }
        let far = self.function(Origin::Device, far);
        let b = Builder::new(self.ctx, self.llvm, self.target);
        let float = scalar(self.ctx, ty);
        let func_ty = float.fn_type(&[float.into(), float.into()], false);
        let func = self
            .llvm
            .add_function(&name, func_ty, Some(Linkage::Internal));
        // It may be computed where the program would not be: it is arithmetic.
        for name in [
            "memory",
            "nounwind",
            "willreturn",
            "nosync",
            "nofree",
            "speculatable",
        ] {
            b.attribute(func, name);
        }
        if self.target.grid {
            b.attribute(func, "alwaysinline");
        } else {
            b.attribute(func, "noinline");
            let variants =
                WIDTHS.map(|lanes| format!("_ZGV_LLVM_N{lanes}vv_{name}({name}.x{lanes})"));
            b.text_attribute(func, "vector-function-abi-variant", &variants.join(","));
        }
        branch(&b, func, bound(ty), |x, _, _| {
            let null = Val::from(b.ptr_type().const_null());
            let pair = b.call(far, &[null, null, x]);
            b.member(pair.expect("functions return a struct"), 1)
        });
        func
    }
}

/// The body of a guard: its second parameter, or what `far` makes of both if the first is larger than the bound
/// in any lane. (NaN is not.)
fn branch<'ctx>(
    b: &Builder<'_, 'ctx>,
    func: FunctionValue<'ctx>,
    bound: f64,
    far: impl FnOnce(Val<'ctx>, Val<'ctx>, BasicBlock<'ctx>) -> Val<'ctx>,
) {
    let params = func.get_params();
    let (x, near) = (params[0], params[1]);
    let none = FastMathFlags::empty();
    let (entry, rare, done) = (
        b.block(func, "entry"),
        b.block(func, "far"),
        b.block(func, "done"),
    );
    b.at(entry);
    let size = b.intrinsic("llvm.fabs", &[x.get_type()], &[x], none);
    let mut is_far = b.fcmp(FloatPredicate::OGT, size, b.float(x.get_type(), bound));
    if is_far.is_vector_value() {
        let ty = is_far.get_type();
        is_far = b.intrinsic("llvm.vector.reduce.or", &[ty], &[is_far], none);
    }
    b.likely_br(b.not(is_far), done, rare);
    b.at(rare);
    let result = far(x, near, entry);
    b.ret(Some(&result));
    b.at(done);
    b.ret(Some(&near));
}

/// The guard for vectors beside one for scalars.
fn declare<'ctx>(
    module: &Module<'ctx>,
    scalar: FunctionValue<'ctx>,
    lanes: u32,
) -> FunctionValue<'ctx> {
    let name = format!("{}.x{lanes}", name_of(scalar));
    module.get_function(&name).unwrap_or_else(|| {
        let ty = scalar.get_params()[0].get_type().into_float_type();
        let vector = basic(ty.vec_type(lanes));
        let func_ty = vector.fn_type(&[vector.into(), vector.into()], false);
        module.add_function(&name, func_ty, None)
    })
}

/// Gives the guard for vectors its body.
fn define<'ctx>(b: &Builder<'_, 'ctx>, scalar: FunctionValue<'ctx>, guard: FunctionValue<'ctx>) {
    let each = one_by_one(b, scalar);
    guard.set_linkage(Linkage::Internal);
    b.attribute(guard, "alwaysinline");
    let vector = guard.get_params()[0].get_type();
    let lanes = vector.into_vector_type().get_size();
    let ty = scalar.get_params()[0].get_type();
    let ty = match ty == basic(b.ctx.f32_type()) {
        true => ScalarType::F32,
        false => ScalarType::F64,
    };
    branch(b, guard, bound(ty), |x, near, entry| {
        // In the entry block, as storage of the whole function.
        let here = b.current();
        b.at_begin(entry);
        let places = [b.alloca(vector), b.alloca(vector)].map(Val::from);
        b.at(here);
        b.store(places[0], x);
        b.store(places[1], near);
        let count = b.int(basic(b.ctx.i32_type()), i64::from(lanes));
        b.call(each, &[places[0], places[1], count]);
        b.load(vector, places[1]).0
    });
}

/// A function that calls the guard for scalars for so many arguments and results in memory, one after the other.
fn one_by_one<'ctx>(b: &Builder<'_, 'ctx>, scalar: FunctionValue<'ctx>) -> FunctionValue<'ctx> {
    let name = format!("each.{}", name_of(scalar));
    if let Some(made) = b.module.get_function(&name) {
        return made;
    }
    let ty = scalar.get_params()[0].get_type();
    let (number, pointer) = (basic(b.ctx.i32_type()), basic(b.ptr_type()));
    let params = [pointer.into(), pointer.into(), number.into()];
    let func_ty = b.ctx.void_type().fn_type(&params, false);
    let func = b
        .module
        .add_function(&name, func_ty, Some(Linkage::Internal));
    rare(b, func);
    let params = func.get_params();
    let (entry, head, done) = (
        b.block(func, "entry"),
        b.block(func, "lane"),
        b.block(func, "done"),
    );
    b.at(entry);
    b.br(head);
    b.at(head);
    let lane = b.phi(number);
    let at = lane.as_basic_value();
    let wide = b.cast(Opcode::ZExt, at, basic(b.i64_type()));
    let size = match ty == basic(b.ctx.f32_type()) {
        true => 4,
        false => 8,
    };
    let distance = b.op(Opcode::Mul, wide, b.i64(size));
    let [x, y] = [params[0], params[1]].map(|base| b.offset(base, distance));
    let result = b.call(scalar, &[b.load(ty, x).0, b.load(ty, y).0]);
    b.store(y, result.expect("a guard has a result"));
    let next = b.op(Opcode::Add, at, b.int(number, 1));
    incoming(lane, b.int(number, 0), entry);
    incoming(lane, next, head);
    b.cond_br(b.less(false, next, params[2]), head, done);
    b.at(done);
    b.ret(None);
    func
}

/// Marks what seldom runs. It is not optimised, which would take more time than all else of a small kernel.
pub(crate) fn rare<'ctx>(b: &Builder<'_, 'ctx>, func: FunctionValue<'ctx>) {
    for name in ["noinline", "cold"] {
        b.attribute(func, name);
    }
    if !b.target.grid {
        b.attribute(func, "optnone");
    }
}

fn name_of(func: FunctionValue<'_>) -> String {
    func.get_name().to_string_lossy().into_owned()
}

/// The guards for scalars that a module has.
fn guards<'ctx>(module: &Module<'ctx>) -> Vec<FunctionValue<'ctx>> {
    let is_guard = |func: &FunctionValue<'ctx>| {
        let name = name_of(*func);
        name.starts_with(PREFIX) && !name.contains(".x")
    };
    module.get_functions().filter(is_guard).collect()
}

/// Offers the vectoriser guards for vectors.
pub(crate) fn offer(module: &Module<'_>) {
    for guard in guards(module) {
        for lanes in WIDTHS {
            declare(module, guard, lanes);
        }
    }
}

/// Lets all guards be inlined, and gives those for vectors that are used their bodies; whether there are any.
pub(crate) fn open<'ctx>(ctx: &'ctx Context, module: &Module<'ctx>, target: &Target) -> bool {
    let b = Builder::new(ctx, module, target);
    let guards = guards(module);
    for &guard in &guards {
        let kind = Attribute::get_named_enum_kind_id("noinline");
        guard.remove_enum_attribute(AttributeLoc::Function, kind);
        b.attribute(guard, "alwaysinline");
        let used = WIDTHS.into_iter().filter_map(|lanes| {
            let wide = module.get_function(&format!("{}.x{lanes}", name_of(guard)))?;
            let place = wide.as_global_value().as_pointer_value();
            (wide.count_basic_blocks() == 0 && place.get_first_use().is_some()).then_some(wide)
        });
        used.for_each(|wide| define(&b, guard, wide));
    }
    !guards.is_empty()
}
