//! Divisions of vectors by a constant, by products.
//!
//! ```text
//! fdiv <8 x float> %x, splat (float 6.0)   ==>   fma(x, high, x * low), with high + low = 1 / 6
//! ```
//! The result is rounded as the division rounds it; see `reciprocal`. A vector with a number so small that it would not be is
//! divided, behind a branch that is rarely taken. Scalars are left alone: processors divide one as fast.

mod reciprocal;

use aerogel_base::ScalarType;
use inkwell::FloatPredicate;
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicType, VectorType};
use inkwell::values::{
    BasicValue, BasicValueEnum, FastMathFlags, FunctionValue, InstructionOpcode, InstructionValue,
};

use crate::builder::{Builder, Opcode, Val, basic};
use crate::target::Target;
use reciprocal::{Reciprocal, reciprocal};

/// Bits of a vector from which products are faster than a division.
const WIDE: u32 = 256;

/// Divides vectors by products; whether there are functions now that must be inlined.
pub(crate) fn run<'ctx>(ctx: &'ctx Context, module: &Module<'ctx>, target: &Target) -> bool {
    if !target.fused || target.grid {
        return false;
    }
    let b = Builder::new(ctx, module, target);
    let mut changed = false;
    let blocks = module.get_functions().flat_map(|f| f.get_basic_blocks());
    let insts = blocks.flat_map(|block| block.get_instructions());
    for inst in insts.collect::<Vec<_>>() {
        let Some((x, divisor)) = by_constant(inst) else {
            continue;
        };
        let vector = x.get_type().into_vector_type();
        let Some(ty) = scalar_type(&b, vector) else {
            continue;
        };
        if vector.get_size() * 8 * ty.bytes() < WIDE {
            continue;
        }
        let Some(found) = reciprocal(ty, divisor) else {
            continue;
        };
        let func = quotient(&b, vector, ty, divisor, found);
        b.before(inst);
        let result = b.call(func, &[x]).expect("a quotient has a value");
        let result = result.as_instruction_value();
        inst.replace_all_uses_with(&result.expect("a call is an instruction"));
        inst.erase_from_basic_block();
        changed = true;
    }
    changed
}

/// The dividend and the divisor of a division of vectors by one constant.
fn by_constant<'ctx>(inst: InstructionValue<'ctx>) -> Option<(Val<'ctx>, f64)> {
    if inst.get_opcode() != InstructionOpcode::FDiv {
        return None;
    }
    let operand = |n| inst.get_operand(n).and_then(|operand| operand.value());
    let (BasicValueEnum::VectorValue(x), BasicValueEnum::VectorValue(divisor)) =
        (operand(0)?, operand(1)?)
    else {
        return None;
    };
    if !divisor.is_constant_data_vector() {
        return None;
    }
    let at = |lane| {
        let value = divisor.get_element_as_constant(lane).into_float_value();
        value.get_constant().map(|(value, _)| value)
    };
    let first = at(0)?;
    let all_alike = (1..divisor.get_type().get_size()).all(|lane| at(lane) == Some(first));
    all_alike.then_some((x.into(), first))
}

fn scalar_type(b: &Builder<'_, '_>, vector: VectorType<'_>) -> Option<ScalarType> {
    let elem = vector.get_element_type();
    if elem == b.ctx.f32_type().as_basic_type_enum() {
        Some(ScalarType::F32)
    } else if elem == b.ctx.f64_type().as_basic_type_enum() {
        Some(ScalarType::F64)
    } else {
        None
    }
}

/// The function that divides vectors of a type by a constant.
fn quotient<'ctx>(
    b: &Builder<'_, 'ctx>,
    vector: VectorType<'ctx>,
    ty: ScalarType,
    divisor: f64,
    reciprocal: Reciprocal,
) -> FunctionValue<'ctx> {
    let lanes = vector.get_size();
    let name = format!("quotient.{ty}.x{lanes}.{:x}", divisor.to_bits());
    if let Some(made) = b.module.get_function(&name) {
        return made;
    }
    let vector = basic(vector);
    let func_ty = vector.fn_type(&[vector.into()], false);
    let func = b
        .module
        .add_function(&name, func_ty, Some(Linkage::Internal));
    b.attribute(func, "alwaysinline");
    let x = func.get_params()[0];
    let blocks = ["entry", "small", "done"].map(|name| b.block(func, name));
    let [entry, small, done] = blocks;
    let none = FastMathFlags::empty();
    let constant = |value: f64| b.float(vector, value);
    b.at(entry);
    let size = b.intrinsic("llvm.fabs", &[vector], &[x], none);
    let is_small = b.fcmp(FloatPredicate::OLT, size, constant(reciprocal.least));
    let is_any = b.fcmp(FloatPredicate::UNE, x, constant(0.0));
    let is_inexact = b.and(is_small, is_any);
    let truth = is_inexact.get_type();
    let any = b.intrinsic("llvm.vector.reduce.or", &[truth], &[is_inexact], none);
    b.likely_br(b.not(any), done, small);
    b.at(small);
    let quotient = b.fop(Opcode::FDiv, x, constant(divisor), none);
    b.ret(Some(&quotient));
    b.at(done);
    let low = b.fop(Opcode::FMul, x, constant(reciprocal.low), none);
    let quotient = b.intrinsic(
        "llvm.fma",
        &[vector],
        &[x, constant(reciprocal.high), low],
        none,
    );
    b.ret(Some(&quotient));
    func
}
