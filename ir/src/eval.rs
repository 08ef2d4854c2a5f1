//! The meaning of scalar arithmetic, once: constant folding and the interpreter call these, and
//! generated code agrees with them.
//!
//! Quotients of floats rounded down, and their remainders, are Python's. Integers wrap. A zero divisor of integers gives 0, the smallest integer divided by -1 itself.
//! Shift counts are taken modulo the width. Conversions of floats to integers follow x86: see
//! [`cast`].

use aerogel_base::ScalarType::{self, *};
use aerogel_base::{Scalar, scalar};
use half::{bf16, f16};

use crate::op::Op;
use crate::op_kinds::{BinaryOp, CompareOp, UnaryOp};

/// The result of an elementwise instruction for one element of each of its operands, in order, where
/// its result's elements have type `to`; nothing if it is not elementwise.
pub fn pure(op: &Op, operands: &[Scalar], to: ScalarType) -> Option<Scalar> {
    Some(match (op, operands) {
        (Op::Unary { op, .. }, &[x]) => unary(*op, x),
        (Op::Binary { op, .. }, &[lhs, rhs]) => binary(*op, lhs, rhs),
        (Op::Compare { op, .. }, &[lhs, rhs]) => Scalar::bool(compare(*op, lhs, rhs)),
        (Op::Select { .. }, &[cond, on_true, on_false]) => match cond.as_bool() {
            true => on_true,
            false => on_false,
        },
        (Op::Fma { .. }, &[a, b, c]) => fma(a, b, c),
        (Op::MulAdd { .. }, &[a, b, c]) => binary(BinaryOp::Add, binary(BinaryOp::Mul, a, b), c),
        (Op::Cast { .. }, &[x]) => cast(x, to),
        (Op::Bitcast { .. }, &[x]) => bitcast(x, to),
        (Op::StopGradient { .. }, &[x]) => x,
        _ => {
            assert!(
                !op.is_elementwise(),
                "{op:?} has a meaning for each element"
            );
            return None;
        }
    })
}

/// `op x`.
pub fn unary(op: UnaryOp, x: Scalar) -> Scalar {
    let ty = x.ty();
    if ty.is_int() {
        unary_int(op, ty, x.as_i128())
    } else {
        unary_float(op, x)
    }
}

fn unary_int(op: UnaryOp, ty: ScalarType, x: i128) -> Scalar {
    use UnaryOp::*;
    let bits = (x as u128) & (u128::MAX >> (128 - ty.bits()));
    let value = match op {
        // A boolean is its own negation.
        Neg => -x,
        Not => !x,
        Abs => x.abs(),
        Sign => x.signum(),
        Popcnt => i128::from(bits.count_ones()),
        Clz => i128::from(bits.leading_zeros()) - i128::from(128 - ty.bits()),
        Floor | Ceil | Round | Trunc | Sqrt | Rsqrt | Sin | Cos | Tan | Asin | Acos | Atan
        | Sinh | Cosh | Tanh | Exp | Exp2 | Log | Log2 => unreachable!("`{op}` takes floats"),
    };
    Scalar::int(ty, value)
}

fn unary_float(op: UnaryOp, x: Scalar) -> Scalar {
    use UnaryOp::*;
    let ty = x.ty();
    let v = x.as_f64();
    // A correctly rounded f64 result of these rounds correctly to the narrower types too.
    let exact = match op {
        Neg => -v,
        Abs => v.abs(),
        Sign => {
            if v > 0.0 {
                1.0
            } else if v < 0.0 {
                -1.0
            } else {
                v
            }
        }
        Sqrt => v.sqrt(),
        Floor => v.floor(),
        Ceil => v.ceil(),
        Round => v.round(),
        Trunc => v.trunc(),
        Rsqrt => return float_div(Scalar::one(ty), unary_float(Sqrt, x)),
        Sin => v.sin(),
        Cos => v.cos(),
        Tan => v.tan(),
        Asin => v.asin(),
        Acos => v.acos(),
        Atan => v.atan(),
        Sinh => v.sinh(),
        Cosh => v.cosh(),
        Tanh => v.tanh(),
        Exp => v.exp(),
        Exp2 => v.exp2(),
        Log => v.ln(),
        Log2 => v.log2(),
        Not | Popcnt | Clz => unreachable!("`{op}` takes integers"),
    };
    Scalar::float(ty, exact)
}

/// `lhs op rhs`; both have the same type.
pub fn binary(op: BinaryOp, lhs: Scalar, rhs: Scalar) -> Scalar {
    debug_assert_eq!(lhs.ty(), rhs.ty());
    if lhs.ty().is_int() {
        binary_int(op, lhs.ty(), lhs.as_i128(), rhs.as_i128())
    } else {
        binary_float(op, lhs, rhs)
    }
}

fn binary_int(op: BinaryOp, ty: ScalarType, a: i128, b: i128) -> Scalar {
    use BinaryOp::*;
    let count = (b as u32) & (ty.bits() - 1);
    let mask = u128::MAX >> (128 - ty.bits());
    let value = match op {
        Add => a + b,
        Sub => a - b,
        Mul => a.wrapping_mul(b),
        Div => {
            if b == 0 {
                0
            } else {
                a / b
            }
        }
        Rem => {
            if b == 0 {
                0
            } else {
                a % b
            }
        }
        FloorDiv => {
            if b == 0 {
                0
            } else {
                a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0)
            }
        }
        Mod => {
            if b == 0 {
                0
            } else {
                ((a % b) + b) % b
            }
        }
        Pow => return pow_int(ty, a, b),
        Min => a.min(b),
        Max => a.max(b),
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        Shl => a << count,
        Shr => a >> count,
        UShr => (((a as u128) & mask) >> count) as i128,
        Atan2 => unreachable!("`{op}` takes floats"),
    };
    Scalar::int(ty, value)
}

/// A negative exponent gives what the exact power truncates to: 0, or a power of 1 or -1.
fn pow_int(ty: ScalarType, base: i128, exponent: i128) -> Scalar {
    if exponent < 0 {
        let value = match base {
            1 => 1,
            -1 => {
                if exponent % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        };
        return Scalar::int(ty, value);
    }
    let (mut result, mut square, mut rest) = (Scalar::one(ty), Scalar::int(ty, base), exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result = binary_int(BinaryOp::Mul, ty, result.as_i128(), square.as_i128());
        }
        square = binary_int(BinaryOp::Mul, ty, square.as_i128(), square.as_i128());
        rest >>= 1;
    }
    result
}

fn float_div(a: Scalar, b: Scalar) -> Scalar {
    binary_float(BinaryOp::Div, a, b)
}

fn binary_float(op: BinaryOp, lhs: Scalar, rhs: Scalar) -> Scalar {
    use BinaryOp::*;
    let ty = lhs.ty();
    let (a, b) = (lhs.as_f64(), rhs.as_f64());
    // f64 has more than twice the bits of f32 and of halves, so rounding + - * / twice is rounding once.
    let value = match op {
        Add => a + b,
        Sub => a - b,
        Mul => a * b,
        Div => a / b,
        Rem => a % b,
        FloorDiv if ty == F64 => floor_div(a, b),
        // As for the other halves' functions, in `f32`.
        FloorDiv => f64::from(floor_div_f32(a as f32, b as f32)),
        Mod => modulo(a, b),
        Pow => a.powf(b),
        Atan2 => a.atan2(b),
        Min => {
            if b.is_nan() || a < b {
                a
            } else {
                b
            }
        }
        Max => {
            if b.is_nan() || a > b {
                a
            } else {
                b
            }
        }
        And | Or | Xor | Shl | Shr | UShr => unreachable!("`{op}` takes integers"),
    };
    Scalar::float(ty, value)
}

/// Python's `a % b`: the exact remainder, with `b` added once if the signs differ. The sum of two `f32` in `f64`, rounded
/// again, is their sum in `f32`.
fn modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    match rest {
        0.0 => 0.0_f64.copysign(b),
        _ if (rest < 0.0) != (b < 0.0) => rest + b,
        _ => rest,
    }
}

macro_rules! floor_division {
    ($name:ident, $ty:ty) => {
        /// Python's `a // b`, each step rounded; by zero the quotient.
        fn $name(a: $ty, b: $ty) -> $ty {
            if b == 0.0 {
                return a / b;
            }
            let rest = a % b;
            let mut ratio = (a - rest) / b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
                ratio -= 1.0;
            }
            if ratio == 0.0 {
                return (0.0 as $ty).copysign(a / b);
            }
            let down = ratio.floor();
            if ratio - down > 0.5 { down + 1.0 } else { down }
        }
    };
}

floor_division!(floor_div, f64);
floor_division!(floor_div_f32, f32);

/// `a * b + c`, rounded once.
pub fn fma(a: Scalar, b: Scalar, c: Scalar) -> Scalar {
    match a.ty() {
        F64 => Scalar::float(F64, a.as_f64().mul_add(b.as_f64(), c.as_f64())),
        F32 => Scalar::f32((a.as_f64() as f32).mul_add(b.as_f64() as f32, c.as_f64() as f32)),
        // The product of two halves is exact in f64; so is its sum with a third f16. That with a bf16 may lie further
        // apart than f64 has bits, and is rounded twice: so it is defined.
        ty => Scalar::float(ty, a.as_f64() * b.as_f64() + c.as_f64()),
    }
}

/// `lhs op rhs`; both have the same type.
pub fn compare(op: CompareOp, lhs: Scalar, rhs: Scalar) -> bool {
    let order = if lhs.ty().is_int() {
        Some(lhs.as_i128().cmp(&rhs.as_i128()))
    } else {
        lhs.as_f64().partial_cmp(&rhs.as_f64())
    };
    match op {
        CompareOp::Eq => order.is_some_and(|o| o.is_eq()),
        CompareOp::Ne => !order.is_some_and(|o| o.is_eq()),
        CompareOp::Lt => order.is_some_and(|o| o.is_lt()),
        CompareOp::Le => order.is_some_and(|o| o.is_le()),
        CompareOp::Gt => order.is_some_and(|o| o.is_gt()),
        CompareOp::Ge => order.is_some_and(|o| o.is_ge()),
    }
}

/// The value of `x` as `to`. Floats are truncated towards zero; to `i32` a NaN or a number out of
/// range gives the smallest `i32`; to 8 and 16 bits they go through that `i32`; to `u32` and the
/// 64-bit types through `i64` in the same manner (a `u64` from 2^63 on is exact). To `u1` anything
/// but zero is true.
pub fn cast(x: Scalar, to: ScalarType) -> Scalar {
    let from = x.ty();
    match (from.is_int(), to.is_int()) {
        (true, _) if to == U1 => Scalar::bool(x.as_bool()),
        (true, true) => Scalar::int(to, x.as_i128()),
        // Through f64 an i64 would round twice.
        (true, false) if to == F32 => Scalar::f32(x.as_i128() as f32),
        (true, false) if to == F16 => {
            Scalar::float(F16, f64::from(f16::from_f32(x.as_i128() as f32)))
        }
        (true, false) if to == BF16 => {
            Scalar::float(BF16, f64::from(bf16::from_f32(x.as_i128() as f32)))
        }
        (true, false) => Scalar::float(to, x.as_i128() as f64),
        (false, false) => Scalar::float(to, x.as_f64()),
        (false, true) => {
            let v = x.as_f64();
            match to {
                U1 => Scalar::bool(v != 0.0),
                I8 | I16 | U8 | U16 | I32 => Scalar::int(to, i128::from(to_i32(v))),
                U64 if v >= 9_223_372_036_854_775_808.0 => {
                    let high = to_i64(v - 9_223_372_036_854_775_808.0);
                    Scalar::int(to, i128::from(high ^ i64::MIN))
                }
                _ => Scalar::int(to, i128::from(to_i64(v))),
            }
        }
    }
}

fn to_i32(v: f64) -> i32 {
    if v > -2_147_483_649.0 && v < 2_147_483_648.0 {
        v as i32
    } else {
        i32::MIN
    }
}

fn to_i64(v: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&v) {
        v as i64
    } else {
        i64::MIN
    }
}

/// The same bits as another type of the same width.
pub fn bitcast(x: Scalar, to: ScalarType) -> Scalar {
    Scalar::from_slot(to, x.slot())
}

/// One step of the random state (splitmix64, Steele, Lea and Flood 2014).
pub fn random_step(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, z ^ (z >> 31))
}

/// The random state with which an iteration begins: a function of the launch's seed, the task's
/// number and the iteration's linear index, so that results do not depend on threads.
pub fn random_state(seed: u64, task: u32, linear: i64) -> u64 {
    let key = seed ^ (u64::from(task) + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
    random_step(key ^ (linear as u64).wrapping_mul(0x8cb9_2ba7_2f3d_8dd7)).1
}

/// The value of a type that 64 random bits make: an integer's low bits, a float in [0, 1) of the
/// high ones.
pub fn random_value(bits: u64, ty: ScalarType) -> Scalar {
    match ty {
        F16 => Scalar::float(F16, (bits >> 53) as f64 / 2048.0),
        BF16 => Scalar::float(BF16, (bits >> 56) as f64 / 256.0),
        F32 => Scalar::f32((bits >> 40) as f32 / 16_777_216.0),
        F64 => Scalar::float(F64, (bits >> 11) as f64 / 9_007_199_254_740_992.0),
        scalar::ScalarType::U1 => Scalar::bool(bits >> 63 == 1),
        _ => Scalar::from_slot(ty, bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(op: BinaryOp, ty: ScalarType, a: i128, b: i128) -> i128 {
        binary(op, Scalar::int(ty, a), Scalar::int(ty, b)).as_i128()
    }

    #[test]
    fn division_follows_python() {
        use BinaryOp::*;
        for (a, b) in [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5)] {
            let floor = (a as f64 / b as f64).floor() as i128;
            assert_eq!(int(FloorDiv, I32, a, b), floor, "{a} // {b}");
            assert_eq!(int(Mod, I32, a, b), a - floor * b, "{a} % {b}");
        }
        assert_eq!((int(Div, I32, -7, 2), int(Rem, I32, -7, 2)), (-3, -1));
        assert_eq!(
            (
                int(FloorDiv, I32, 5, 0),
                int(Mod, U8, 5, 0),
                int(Div, I64, 5, 0),
                int(Rem, I8, 5, 0)
            ),
            (0, 0, 0, 0)
        );
        assert_eq!(
            int(FloorDiv, I32, i128::from(i32::MIN), -1),
            i128::from(i32::MIN)
        );
        assert_eq!(int(Mod, I64, i128::from(i64::MIN), -1), 0);
    }

    #[test]
    fn shifts_are_masked() {
        use BinaryOp::*;
        assert_eq!(int(Shl, I32, 1, 33), 2);
        assert_eq!(int(Shr, I32, -8, 1), -4);
        assert_eq!(int(UShr, I32, -8, 1), 0x7fff_fffc);
        assert_eq!(int(Shl, I8, 1, -1), -128);
    }

    #[test]
    fn powers() {
        use BinaryOp::*;
        assert_eq!(
            (
                int(Pow, I32, 3, 4),
                int(Pow, I32, 2, -1),
                int(Pow, I32, -1, -3),
                int(Pow, I32, 0, 0)
            ),
            (81, 0, -1, 1)
        );
        assert_eq!(
            int(Pow, U8, 3, 200),
            (0..200).fold(1i128, |p, _| p * 3 % 256)
        );
    }

    #[test]
    fn casts_follow_x86() {
        let f = |v: f64, to| cast(Scalar::float(F64, v), to).as_i128();
        assert_eq!(
            (
                f(300.7, U8),
                f(-1.2, U8),
                f(3e9, I32),
                f(f64::NAN, I32),
                f(f64::NAN, U8)
            ),
            (44, 255, -2_147_483_648, -2_147_483_648, 0)
        );
        assert_eq!(
            (
                f(3e9, U32),
                f(-1.0, U32),
                f(1.5e19, U64),
                f(-2_147_483_648.9, I32)
            ),
            (
                3_000_000_000,
                4_294_967_295,
                15_000_000_000_000_000_000,
                -2_147_483_648
            )
        );
        assert_eq!((f(0.5, U1), cast(Scalar::i32(2), U1).as_i128()), (1, 1));
    }

    #[test]
    fn nan_compares_false_but_ne() {
        let nan = Scalar::f32(f32::NAN);
        assert!(compare(CompareOp::Ne, nan, nan));
        assert!(!compare(CompareOp::Eq, nan, nan) && !compare(CompareOp::Ge, nan, nan));
        assert_eq!(
            binary(BinaryOp::Min, nan, Scalar::f32(2.0)),
            Scalar::f32(2.0)
        );
        assert_eq!(
            binary(BinaryOp::Max, Scalar::f32(2.0), nan),
            Scalar::f32(2.0)
        );
    }
}
