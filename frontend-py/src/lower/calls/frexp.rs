//! `ti.frexp`: a number as `m * 2**e` with `0.5 <= |m| < 1`, from its bits.

use aerogel_base::{ErrorKind, Scalar, ScalarType};
use aerogel_ir::{BinaryOp, Builder, CompareOp, Op, Type, Value};

use crate::lower::calls::Args;
use crate::lower::values::{SeqKind, Val};
use crate::lower::{Lower, Res};

/// By how many powers of two a subnormal number is scaled, to become a normal one.
const SCALE: i32 = 64;

impl Lower<'_, '_> {
    /// The mantissa, and the exponent as `i32`; zero, infinity and NaN are their own mantissas.
    pub(crate) fn frexp(&mut self, args: &Args) -> Res<Val> {
        let x = self.arg("frexp", args, 0, "x")?.clone();
        let ty = self.expect_numeric(&x)?;
        let Some(elem) = ty.elem().filter(|elem| elem.is_float()) else {
            let message = format!("`frexp` needs a float, not `{ty}`");
            return self.fail(ErrorKind::Type, "E0206", message);
        };
        // Half floats have too few exponents for the scale.
        let wide = if elem == ScalarType::F64 {
            ScalarType::F64
        } else {
            ScalarType::F32
        };
        let x = self.load(&x)?;
        let mut b = self.builder();
        let x = b.cast(x, ty.with_elem(wide));
        let (mantissa, exponent) = split(&mut b, x, ty.with_elem(wide), wide);
        let mantissa = b.cast(mantissa, ty);
        let parts = vec![Val::Value(mantissa), Val::Value(exponent)];
        Ok(Val::seq(parts, SeqKind::Tuple))
    }
}

fn split(b: &mut Builder<'_>, x: Value, ty: Type, elem: ScalarType) -> (Value, Value) {
    let (whole, n_bits, n_exponents, bias) = match elem {
        ScalarType::F64 => (ScalarType::I64, 52, 0x7ff, 1022),
        _ => (ScalarType::I32, 23, 0xff, 126),
    };
    let bits = ty.with_elem(whole);
    let number = |b: &mut Builder<'_>, value: i128| {
        let value = b.constant(Scalar::int(whole, value));
        b.splat(value, bits)
    };
    let exponent_of = |b: &mut Builder<'_>, x: Value| {
        let all = b.value(Op::Bitcast { x }, bits);
        let shift = number(b, n_bits);
        let high = b.binary(BinaryOp::Shr, all, shift);
        let mask = number(b, n_exponents);
        (all, b.binary(BinaryOp::And, high, mask))
    };
    let zero = number(b, 0);
    let (_, exponent) = exponent_of(b, x);
    let is_small = b.compare(CompareOp::Eq, exponent, zero);
    let factor = b.constant(Scalar::float(elem, f64::from(SCALE).exp2()));
    let factor = b.splat(factor, ty);
    let scaled = b.binary(BinaryOp::Mul, x, factor);
    let normal = select(b, is_small, scaled, x);
    let (all, exponent) = exponent_of(b, normal);

    // Where there is nothing but zeros, or ones, in the exponent still.
    let is_zero = b.compare(CompareOp::Eq, exponent, zero);
    let ones = number(b, n_exponents);
    let is_infinite = b.compare(CompareOp::Eq, exponent, ones);
    let has_none = b.binary(BinaryOp::Or, is_zero, is_infinite);
    let hidden = number(b, !(n_exponents << n_bits));
    let kept = b.binary(BinaryOp::And, all, hidden);
    let half = number(b, bias << n_bits);
    let mantissa = b.binary(BinaryOp::Or, kept, half);
    let mantissa = b.value(Op::Bitcast { x: mantissa }, ty);
    let mantissa = select(b, has_none, x, mantissa);

    let offset = number(b, bias);
    let power = b.binary(BinaryOp::Sub, exponent, offset);
    let scale = number(b, i128::from(SCALE));
    let lower = b.binary(BinaryOp::Sub, power, scale);
    let power = select(b, is_small, lower, power);
    let power = select(b, has_none, zero, power);
    (mantissa, b.cast(power, ty.with_elem(ScalarType::I32)))
}

fn select(b: &mut Builder<'_>, cond: Value, on_true: Value, on_false: Value) -> Value {
    let ty = b.func.ty(on_true);
    let op = Op::Select {
        cond,
        on_true,
        on_false,
    };
    b.value(op, ty)
}
