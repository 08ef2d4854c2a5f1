//! Powers with constant exponents, by products and roots.

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, Builder, CompareOp, FastMath, Op, Type, UnaryOp, Value, at_least};

/// `x` to a power that is half an odd number, by its root.
///
/// The root of -0 is -0, its power 0: adding 0 makes one of the other. The root of -inf is NaN, its power 0 or inf, which
/// is chosen. Products are rounded at each step, so that only roots are taken where fast maths are off.
pub(super) fn half_power(
    cursor: &mut Builder<'_>,
    x: Value,
    exponent: Scalar,
    level: FastMath,
) -> Option<Value> {
    let (elem, exponent) = (exponent.ty(), exponent.as_f64());
    let whole = exponent.abs().trunc();
    let least = at_least(cursor.func, x);
    let is_root = exponent == 0.5 && least > 0.0;
    // Of halves a power is computed in `f32` and rounded once: a root by itself is, too.
    let in_range = whole <= 16.0 && (whole == 0.0 || !elem.is_half());
    if !(is_root || level != FastMath::Off && in_range) {
        return None;
    }
    let ty = Type::Scalar(elem);
    let binary =
        |cursor: &mut Builder<'_>, op, lhs, rhs| cursor.value(Op::Binary { op, lhs, rhs }, ty);
    let mut base = x;
    if least.is_nan() || least <= 0.0 {
        let zero = cursor.constant(Scalar::zero(elem));
        base = binary(cursor, BinaryOp::Add, x, zero);
    }
    let mut value = cursor.value(
        Op::Unary {
            op: UnaryOp::Sqrt,
            x: base,
        },
        ty,
    );
    if whole > 0.0 {
        let lhs = power(cursor, base, whole as u128, ty);
        value = binary(cursor, BinaryOp::Mul, lhs, value);
    }
    if exponent < 0.0 {
        let one = cursor.constant(Scalar::one(elem));
        value = binary(cursor, BinaryOp::Div, one, value);
    }
    if least.is_nan() || least < 0.0 {
        let lowest = cursor.constant(Scalar::float(elem, f64::NEG_INFINITY));
        let of_lowest = if exponent < 0.0 { 0.0 } else { f64::INFINITY };
        let of_lowest = cursor.constant(Scalar::float(elem, of_lowest));
        let op = CompareOp::Eq;
        let is_lowest = cursor.value(
            Op::Compare {
                op,
                lhs: x,
                rhs: lowest,
            },
            Type::BOOL,
        );
        value = cursor.value(
            Op::Select {
                cond: is_lowest,
                on_true: of_lowest,
                on_false: value,
            },
            ty,
        );
    }
    Some(value)
}

/// x multiplied with itself `n` times, by squaring.
pub(crate) fn power(cursor: &mut Builder<'_>, x: Value, n: u128, ty: Type) -> Value {
    let (mut result, mut square, mut rest) = (None, x, n);
    loop {
        if rest & 1 == 1 {
            result = Some(result.map_or(square, |r| {
                cursor.value(
                    Op::Binary {
                        op: BinaryOp::Mul,
                        lhs: r,
                        rhs: square,
                    },
                    ty,
                )
            }));
        }
        rest >>= 1;
        if rest == 0 {
            return result.expect("the exponent is not zero");
        }
        square = cursor.value(
            Op::Binary {
                op: BinaryOp::Mul,
                lhs: square,
                rhs: square,
            },
            ty,
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass_fast;

    #[test]
    fn powers_of_halves() {
        check_pass_fast!("identities", "
            func @f(v0: f32, v1: f16) -> f32, f32, f32, f16 {
                v2: f32 = const -1.5
                v3: f32 = pow v0, v2
                v4: f32 = const 0.5
                v5: f32 = pow v0, v4
                v6: f32 = const 2.5
                v7: f32 = pow v0, v6
                v8: f16 = const -1.5
                v9: f16 = pow v1, v8
                yield [v3, v5, v7, v9]
            }", @"
        func @f(v0: f32, v1: f16) -> f32, f32, f32, f16 {
            v2: f32 = const -1.5
            v3: f32 = const 0.0
            v4: f32 = add v0, v3
            v5: f32 = sqrt v4
            v6: f32 = mul v4, v5
            v7: f32 = const 1.0
            v8: f32 = div v7, v6
            v9: f32 = const -inf
            v10: f32 = const 0.0
            v11: u1 = eq v0, v9
            v12: f32 = select v11, v10, v8
            v13: f32 = const 0.5
            v14: f32 = const 0.0
            v15: f32 = add v0, v14
            v16: f32 = sqrt v15
            v17: f32 = const -inf
            v18: f32 = const inf
            v19: u1 = eq v0, v17
            v20: f32 = select v19, v18, v16
            v21: f32 = const 2.5
            v22: f32 = const 0.0
            v23: f32 = add v0, v22
            v24: f32 = sqrt v23
            v25: f32 = mul v23, v23
            v26: f32 = mul v25, v24
            v27: f32 = const -inf
            v28: f32 = const inf
            v29: u1 = eq v0, v27
            v30: f32 = select v29, v28, v26
            v31: f16 = const -1.5
            v32: f16 = pow v1, v31
            yield [v12, v20, v30, v32]
        }
        ");
    }
}
