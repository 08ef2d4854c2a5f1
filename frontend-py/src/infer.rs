//! Types of arithmetic: the converted operands and the result.
//!
//! `i32 / i32` divides two `f32`; `i32 // f32` floors an `f32`; `u8 << i64` stays `u8`.

use aerogel_base::ScalarType::{self, *};

use crate::ast::BinaryOp;

/// The defaults that a literal or an integer under a square root takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Defaults {
    pub(crate) int: ScalarType,
    pub(crate) float: ScalarType,
}

/// How the elements of a binary operation are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BinaryTyping {
    pub(crate) lhs: ScalarType,
    pub(crate) rhs: ScalarType,
    /// The type both are computed in, and the result's.
    pub(crate) result: ScalarType,
}

/// The typing of `lhs op rhs`, or what is wrong with it.
pub(crate) fn binary(
    op: BinaryOp,
    lhs: ScalarType,
    rhs: ScalarType,
    defaults: Defaults,
) -> Result<BinaryTyping, String> {
    let both = |ty| {
        Ok(BinaryTyping {
            lhs: ty,
            rhs: ty,
            result: ty,
        })
    };
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::MatMul => both(lhs.promote(rhs)),
        BinaryOp::FloorDiv | BinaryOp::Mod => both(lhs.promote(rhs)),
        BinaryOp::Div => {
            let real = |ty: ScalarType| if ty.is_float() { ty } else { defaults.float };
            both(real(lhs).promote(real(rhs)))
        }
        // An integer power keeps its base's type, whatever the exponent's.
        BinaryOp::Pow if rhs.is_int() && lhs.is_int() => both(lhs),
        BinaryOp::Pow => both(if rhs.is_int() { lhs } else { lhs.promote(rhs) }),
        BinaryOp::Shl | BinaryOp::Shr if lhs.is_int() && rhs.is_int() => both(lhs),
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor if lhs.is_int() && rhs.is_int() => {
            both(lhs.promote(rhs))
        }
        BinaryOp::Shl | BinaryOp::Shr | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
            Err(format!(
                "`{}` needs integers, not `{lhs}` and `{rhs}`",
                op.symbol()
            ))
        }
    }
}

/// How the argument of a function of one number is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryRule {
    /// Any number; the type stays.
    Keep,
    /// Integers become the default float (`sqrt`, `exp`, `log`).
    ToFloat,
    /// Integers are refused (`sin`, `floor`).
    FloatOnly,
    /// Floats are refused (`popcnt`).
    IntOnly,
}

/// The type that an argument of type `ty` is computed in.
pub(crate) fn unary(
    name: &str,
    rule: UnaryRule,
    ty: ScalarType,
    defaults: Defaults,
) -> Result<ScalarType, String> {
    match rule {
        UnaryRule::Keep => Ok(ty),
        UnaryRule::ToFloat | UnaryRule::FloatOnly if ty.is_float() => Ok(ty),
        UnaryRule::ToFloat => Ok(defaults.float),
        UnaryRule::FloatOnly => Err(format!("`{name}` needs a float, not `{ty}`")),
        UnaryRule::IntOnly if ty.is_int() => Ok(ty),
        UnaryRule::IntOnly => Err(format!("`{name}` needs an integer, not `{ty}`")),
    }
}

/// `atan2` is `f32` unless one side is `f64`.
pub(crate) fn atan2(lhs: ScalarType, rhs: ScalarType) -> ScalarType {
    if lhs == F64 || rhs == F64 { F64 } else { F32 }
}

/// The smallest and the largest value of an integer type.
pub(crate) fn int_range(ty: ScalarType) -> (i128, i128) {
    match ty {
        U1 => (0, 1),
        _ if ty.is_signed() => (-(1i128 << (ty.bits() - 1)), (1i128 << (ty.bits() - 1)) - 1),
        _ => (0, (1i128 << ty.bits()) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Defaults = Defaults {
        int: I32,
        float: F32,
    };

    #[test]
    fn the_table_of_results() {
        for (op, lhs, rhs, result) in [
            (BinaryOp::Div, I8, I8, F32),
            (BinaryOp::Div, I64, I64, F32),
            (BinaryOp::Div, F16, I32, F32),
            (BinaryOp::Div, F64, I32, F64),
            (BinaryOp::Div, F16, F16, F16),
            (BinaryOp::FloorDiv, I32, F32, F32),
            (BinaryOp::Shl, U8, I64, U8),
            (BinaryOp::Pow, I8, I64, I8),
            (BinaryOp::Pow, I32, F32, F32),
            (BinaryOp::Pow, F16, I64, F16),
            (BinaryOp::Add, I32, U32, U32),
        ] {
            let typing = binary(op, lhs, rhs, DEFAULTS).expect("well typed");
            assert_eq!(typing.result, result, "{lhs} {} {rhs}", op.symbol());
        }
        assert!(binary(BinaryOp::BitAnd, F32, I32, DEFAULTS).is_err());
        assert_eq!(unary("sqrt", UnaryRule::ToFloat, I32, DEFAULTS), Ok(F32));
        assert!(unary("sin", UnaryRule::FloatOnly, I32, DEFAULTS).is_err());
    }
}
