//! Integer powers by squaring, as a function of the module.

use aerogel_base::ScalarType;
use inkwell::IntPredicate;
use inkwell::module::Linkage;
use inkwell::types::BasicType;
use inkwell::values::FunctionValue;

use crate::builder::{Builder, Opcode, Val, incoming};
use crate::context::ModuleCx;
use crate::types::scalar;

/// Makes `name(base, exponent)`. A negative exponent gives what the exact power truncates to: 0, or
/// a power of 1 or -1.
pub(crate) fn lower<'ctx>(
    cx: &mut ModuleCx<'_, 'ctx>,
    name: &str,
    ty: ScalarType,
) -> FunctionValue<'ctx> {
    let b = Builder::new(cx.ctx, cx.llvm, cx.target);
    let int = scalar(cx.ctx, ty);
    let func_ty = int.fn_type(&[int.into(), int.into()], false);
    let func = cx.llvm.add_function(name, func_ty, Some(Linkage::Internal));
    b.attribute(func, "nounwind");
    b.attribute(func, "alwaysinline");
    let params = func.get_params();
    let (base, exponent) = (params[0], params[1]);
    let value = |v: i64| {
        if ty == ScalarType::U1 {
            b.bool(v & 1 == 1)
        } else {
            b.int(int, v)
        }
    };

    let entry = b.block(func, "entry");
    let head = b.block(func, "head");
    let body = b.block(func, "body");
    let done = b.block(func, "done");
    b.at(entry);
    let negative = if ty.is_signed() {
        b.icmp(IntPredicate::SLT, exponent, value(0))
    } else {
        b.bool(false)
    };
    b.cond_br(negative, done, head);

    b.at(head);
    let (result, square, rest) = (b.phi(int), b.phi(int), b.phi(int));
    let at: fn(inkwell::values::PhiValue<'_>) -> Val<'_> = |phi| phi.as_basic_value();
    let more = b.icmp(IntPredicate::NE, at(rest), value(0));
    let finished = b.block(func, "finished");
    b.cond_br(more, body, finished);

    b.at(body);
    let odd = b.icmp(IntPredicate::NE, b.and(at(rest), value(1)), value(0));
    let product = b.op(Opcode::Mul, at(result), at(square));
    let next_result = b.select(odd, product, at(result));
    let next_square = b.op(Opcode::Mul, at(square), at(square));
    // The only shift in range for a boolean is by zero.
    let next_rest = if ty == ScalarType::U1 {
        value(0)
    } else {
        b.op(Opcode::LShr, at(rest), value(1))
    };
    b.br(head);
    for (phi, first, next) in [
        (result, value(1), next_result),
        (square, base, next_square),
        (rest, exponent, next_rest),
    ] {
        incoming(phi, first, entry);
        incoming(phi, next, body);
    }

    b.at(finished);
    b.ret(Some(&at(result)));

    b.at(done);
    let is = |v: i64| b.icmp(IntPredicate::EQ, base, value(v));
    let odd = b.icmp(IntPredicate::NE, b.and(exponent, value(1)), value(0));
    let of_minus_one = b.select(odd, value(-1), value(1));
    let truncated = b.select(is(-1), of_minus_one, value(0));
    b.ret(Some(&b.select(is(1), value(1), truncated)));
    func
}
