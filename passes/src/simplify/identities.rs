//! Algebra that holds for the type, or that the level of fast maths allows.
//!
//! ```text
//! x + 0, x * 1, x / 1, x - 0, select(c, x, x)   ==>   x     (x + 0.0 with full fast maths: x may be -0.0)
//! select(c, c, x), select(c, x, c)   ==>   or c, x and and c, x
//! pow(x, 2)       ==>   mul x, x
//! pow(x, -3)      ==>   div 1, (mul x, (mul x, x))     (unless fast maths are off)
//! pow(x, 1.5)     ==>   mul z, sqrt z with z = add x, 0.0      (likewise; see `powers`)
//! x / 4.0         ==>   mul x, 0.25      (exact for powers of two; for others with full fast maths)
//! sqrt(x) < 3  ==>    x < 9           (x a sum of squares; see `roots`)
//! x // 8, x % 8   ==>   shr x, 3 and and x, 7    (both round towards negative infinity)
//! (a * 8 + b) >> 3, (a * 8 + b) & 7   ==>   a and b, where both count from 0, b to at most 8
//! ```

use aerogel_base::Scalar;
use aerogel_ir::analysis::Ranges;
use aerogel_ir::analysis::affine::scaled;
use aerogel_ir::{
    BinaryOp, Builder, FastMath, Function, Inst, Op, Rewrite, Rewriter, Type, UnaryOp, Value,
    rewrite_with,
};

use super::powers::{half_power, power};
use super::roots::without_root;
use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let ranges = Ranges::within(func, func.body);
    let mut identities = Identities {
        levels: vec![cx.env.fast_math],
        ranges,
    };
    rewrite_with(func, &mut identities)
}

struct Identities {
    /// The level of fast maths in each region around; that of the module first.
    levels: Vec<FastMath>,
    ranges: Ranges,
}

impl Rewriter for Identities {
    fn enter(&mut self, func: &Function, inst: Inst) {
        let own = match &func[inst] {
            Op::Parallel { attrs, .. }
            | Op::ParallelCells { attrs, .. }
            | Op::Task { attrs, .. } => attrs.fast_math,
            _ => None,
        };
        self.levels.push(own.unwrap_or(self.level()));
    }

    fn leave(&mut self) {
        self.levels.pop();
    }

    fn visit(&mut self, cursor: &mut Builder<'_>, inst: Inst) -> Rewrite {
        let level = self.level();
        match cursor.func[inst].clone() {
            Op::Binary { op, lhs, rhs } => binary(cursor, op, lhs, rhs, level, &self.ranges)
                .map_or(Rewrite::Keep, |v| Rewrite::Replace(vec![v])),
            Op::Unary {
                op: op @ (UnaryOp::Neg | UnaryOp::Not),
                x,
            } => same_twice(cursor, x, op),
            Op::Compare { op, lhs, rhs } => {
                let found = without_root(cursor.func, op, lhs, rhs)
                    .or_else(|| without_root(cursor.func, op.swapped(), rhs, lhs));
                match found {
                    Some((op, lhs, square)) => {
                        let rhs = cursor.constant(square);
                        Rewrite::Replace(vec![
                            cursor.value(Op::Compare { op, lhs, rhs }, Type::BOOL),
                        ])
                    }
                    None => Rewrite::Keep,
                }
            }
            Op::Select {
                on_true, on_false, ..
            } if on_true == on_false => Rewrite::Replace(vec![on_true]),
            // What `if` makes of `or` and `and`.
            Op::Select {
                cond,
                on_true,
                on_false,
            } if cursor.func.ty(on_true) == Type::BOOL && (cond == on_true || cond == on_false) => {
                let (op, rhs) = if cond == on_true {
                    (BinaryOp::Or, on_false)
                } else {
                    (BinaryOp::And, on_true)
                };
                let lhs = cond;
                Rewrite::Replace(vec![cursor.value(Op::Binary { op, lhs, rhs }, Type::BOOL)])
            }
            Op::Cast { x }
                if cursor.func.ty(x) == cursor.func.ty(cursor.func.insts[inst].results[0]) =>
            {
                Rewrite::Replace(vec![x])
            }
            _ => Rewrite::Keep,
        }
    }
}

impl Identities {
    fn level(&self) -> FastMath {
        *self.levels.last().expect("the module has a level")
    }
}

fn same_twice(cursor: &Builder<'_>, x: Value, outer: UnaryOp) -> Rewrite {
    match cursor.func.def_op(x) {
        Some(&Op::Unary { op, x: inner }) if op == outer => Rewrite::Replace(vec![inner]),
        _ => Rewrite::Keep,
    }
}

/// The exponent of two, if the constant is a power of it.
fn log2(c: Scalar) -> Option<i128> {
    let v = c.as_i128();
    (v > 0 && v & (v - 1) == 0).then(|| i128::from(v.trailing_zeros()))
}

/// Whether a float is a power of two, of either sign; false for subnormal numbers, whose
/// reciprocals are no normal numbers.
fn is_power_of_two(v: f64) -> bool {
    v.is_normal() && v.to_bits() << 12 == 0
}

fn binary(
    cursor: &mut Builder<'_>,
    op: BinaryOp,
    lhs: Value,
    rhs: Value,
    level: FastMath,
    ranges: &Ranges,
) -> Option<Value> {
    use BinaryOp::*;
    let elem = cursor.func.ty(lhs).scalar()?;
    let ty = Type::Scalar(elem);
    let int = elem.is_int();
    let full = level == FastMath::Full;
    // Commutative arithmetic has its constant on either side.
    let (x, c) = match (cursor.func.as_const(lhs), cursor.func.as_const(rhs)) {
        (Some(c), None) if op.is_commutative(elem) => (rhs, Some(c)),
        (_, c) => (lhs, c),
    };
    let Some(c) = c else {
        return match op {
            Sub | Xor if int && lhs == rhs => Some(cursor.constant(Scalar::zero(elem))),
            And | Or | Min | Max if int && lhs == rhs => Some(lhs),
            _ => None,
        };
    };
    let emit =
        |cursor: &mut Builder<'_>, op, lhs, rhs| cursor.value(Op::Binary { op, lhs, rhs }, ty);
    match op {
        // x + -0.0 is x; x + 0.0 is not for x = -0.0.
        Add if c.is_zero() && (int || full || c.slot() != 0) => Some(x),
        Sub if c.is_zero() && (int || full || c.slot() == 0) => Some(x),
        Mul | Div if c.is_one() => Some(x),
        Or | Xor | Shl | Shr | UShr if c.is_zero() => Some(x),
        Mul | And if int && c.is_zero() => Some(cursor.constant(c)),
        FloorDiv if int && c.is_one() => Some(x),
        Pow if c.is_one() => Some(x),
        Pow if c.is_zero() => Some(cursor.constant(Scalar::one(elem))),
        Pow if !int && c.as_f64().abs().fract() == 0.5 => half_power(cursor, x, c, level),
        Pow if int => {
            let exponent = c.as_i128();
            let in_range = (2..=16).contains(&exponent);
            in_range.then(|| power(cursor, x, exponent.unsigned_abs(), ty))
        }
        Pow => {
            let exponent = Some(c.as_f64()).filter(|e| e.fract() == 0.0 && e.abs() <= 16.0)?;
            // Of halves a power is computed in `f32` and rounded once.
            let as_written = level == FastMath::Off || !full && elem.is_half();
            if as_written && exponent != 2.0 {
                return None;
            }
            let power = power(cursor, x, exponent.abs() as u128, ty);
            if exponent > 0.0 {
                return Some(power);
            }
            let one = cursor.constant(Scalar::one(elem));
            Some(emit(cursor, Div, one, power))
        }
        Div if !int => {
            let reciprocal = Scalar::float(elem, 1.0 / c.as_f64());
            if !(full || is_power_of_two(c.as_f64())) || !reciprocal.as_f64().is_normal() {
                return None;
            }
            let rhs = cursor.constant(reciprocal);
            Some(emit(cursor, Mul, x, rhs))
        }
        FloorDiv if int => {
            let k = log2(c)?;
            let rhs = cursor.constant(Scalar::int(elem, k));
            Some(emit(cursor, Shr, x, rhs))
        }
        Mod if int => {
            log2(c)?;
            let rhs = cursor.constant(Scalar::int(elem, c.as_i128() - 1));
            Some(emit(cursor, And, x, rhs))
        }
        Shr => {
            let size = 1 << (c.as_i128() & i128::from(elem.bits() - 1));
            let (block, _) = split_sum(cursor.func, x, size, ranges)?;
            // The product must not have wrapped.
            ranges.of(cursor.func, x).map(|_| block)
        }
        And => {
            let size = c.as_i128().checked_add(1).filter(|s| s & (s - 1) == 0)?;
            split_sum(cursor.func, x, size, ranges).map(|(_, rest)| rest)
        }
        _ => None,
    }
}

/// `block` and `rest` of `block * size + rest` with `rest` known to lie in `[0, size)`.
fn split_sum(func: &Function, sum: Value, size: i128, ranges: &Ranges) -> Option<(Value, Value)> {
    let Some(&Op::Binary {
        op: BinaryOp::Add,
        lhs,
        rhs,
    }) = func.def_op(sum)
    else {
        return None;
    };
    [(lhs, rhs), (rhs, lhs)]
        .into_iter()
        .find_map(|(product, rest)| {
            let (block, factor) = scaled(func, product)?;
            let rest_is = ranges.of(func, rest)?;
            (factor == size && rest_is.lo >= 0 && rest_is.hi < size).then_some((block, rest))
        })
}

#[cfg(test)]
mod tests {
    use aerogel_ir::FastMath;

    use crate::testing::{check_pass, check_pass_fast};

    #[test]
    fn neutral_elements() {
        check_pass!("identities", "
            func @f(v0: i32, v1: f32) -> i32, f32, f32 {
                v2: i32 = const 0
                v3: i32 = add v2, v0
                v4: f32 = const 0.0
                v5: f32 = sub v1, v4
                v6: f32 = add v1, v4
                yield [v3, v5, v6]
            }", @"
            func @f(v0: i32, v1: f32) -> i32, f32, f32 {
                v2: i32 = const 0
                v3: f32 = const 0.0
                v4: f32 = add v1, v3
                yield [v0, v1, v4]
            }
            ");
    }

    #[test]
    fn powers_and_divisions() {
        check_pass_fast!("identities", "
            func @f(v0: f32, v1: i32) -> f32, f32, i32, i32 {
                v2: f32 = const 3.0
                v3: f32 = pow v0, v2
                v4: f32 = div v0, v2
                v5: i32 = const 8
                v6: i32 = floordiv v1, v5
                v7: i32 = mod v1, v5
                yield [v3, v4, v6, v7]
            }", @"
            func @f(v0: f32, v1: i32) -> f32, f32, i32, i32 {
                v2: f32 = const 3.0
                v3: f32 = mul v0, v0
                v4: f32 = mul v0, v3
                v5: f32 = const 0.33333334
                v6: f32 = mul v0, v5
                v7: i32 = const 8
                v8: i32 = const 3
                v9: i32 = shr v1, v8
                v10: i32 = const 7
                v11: i32 = and v1, v10
                yield [v4, v6, v9, v11]
            }
            ");
    }

    #[test]
    fn powers_and_quotients_as_written() {
        ::insta::assert_snapshot!(crate::testing::after(&["identities"], "
            func @f(v0: f32, v1: f16) -> f32, f32, f32, f16 {
                v2: f32 = const -3.0
                v3: f32 = pow v0, v2
                v4: f32 = const 3.0
                v5: f32 = div v0, v4
                v6: f32 = const 0.0
                v7: f32 = add v0, v6
                v8: f16 = const 3.0
                v9: f16 = pow v1, v8
                yield [v3, v5, v7, v9]
            }", FastMath::Accumulations), @"
        func @f(v0: f32, v1: f16) -> f32, f32, f32, f16 {
            v2: f32 = const -3.0
            v3: f32 = mul v0, v0
            v4: f32 = mul v0, v3
            v5: f32 = const 1.0
            v6: f32 = div v5, v4
            v7: f32 = const 3.0
            v8: f32 = div v0, v7
            v9: f32 = const 0.0
            v10: f32 = add v0, v9
            v11: f16 = const 3.0
            v12: f16 = pow v1, v11
            yield [v6, v8, v10, v12]
        }
        ");
    }

    #[test]
    fn loops_with_a_level_of_their_own() {
        ::insta::assert_snapshot!(crate::testing::after(&["identities"], "
            kernel @k(a: array<f32, 1>) {
                v0: i32 = const 0
                v1: i32 = const 9
                v2: f32 = const 3.0
                parallel [v0], [v1] fast_math=full (v3: i32) {
                    v4: ref<f32> = array_at a0, [v3]
                    v5: f32 = load v4
                    v6: f32 = div v5, v2
                    store v4, v6
                    yield []
                }
                parallel [v0], [v1] (v7: i32) {
                    v8: ref<f32> = array_at a0, [v7]
                    v9: f32 = load v8
                    v10: f32 = div v9, v2
                    store v8, v10
                    yield []
                }
                yield []
            }", FastMath::Accumulations), @"
        kernel @k(a: array<f32, 1>) {
            v0: i32 = const 0
            v1: i32 = const 9
            v2: f32 = const 3.0
            parallel [v0], [v1] fast_math=full (v3: i32) {
                v4: ref<f32> = array_at a0, [v3]
                v5: f32 = load v4
                v6: f32 = const 0.33333334
                v7: f32 = mul v5, v6
                store v4, v7
                yield []
            }
            parallel [v0], [v1] (v8: i32) {
                v9: ref<f32> = array_at a0, [v8]
                v10: f32 = load v9
                v11: f32 = div v10, v2
                store v9, v11
                yield []
            }
            yield []
        }
        ");
    }

    #[test]
    fn roots_in_strict_maths() {
        check_pass!("identities", "
            func @f(v0: f32) -> f32, f32, f32 {
                v1: f32 = mul v0, v0
                v2: f32 = const 0.5
                v3: f32 = add v1, v2
                v4: f32 = pow v3, v2
                v5: f32 = pow v1, v2
                v6: f32 = const 1.5
                v7: f32 = pow v3, v6
                yield [v4, v5, v7]
            }", @"
            func @f(v0: f32) -> f32, f32, f32 {
                v1: f32 = mul v0, v0
                v2: f32 = const 0.5
                v3: f32 = add v1, v2
                v4: f32 = sqrt v3
                v5: f32 = pow v1, v2
                v6: f32 = const 1.5
                v7: f32 = pow v3, v6
                yield [v4, v5, v7]
            }
            ");
    }

    #[test]
    fn roots_of_sums_of_squares() {
        check_pass!("identities", "
            func @f(v0: f32, v1: f32) -> u1, u1 {
                v2: f32 = mul v0, v0
                v3: f32 = mul v1, v1
                v4: f32 = add v2, v3
                v5: f32 = sqrt v4
                v6: f32 = const 3.0
                v7: u1 = gt v6, v5
                v8: f32 = sqrt v0
                v9: u1 = lt v8, v6
                yield [v7, v9]
            }", @"
            func @f(v0: f32, v1: f32) -> u1, u1 {
                v2: f32 = mul v0, v0
                v3: f32 = mul v1, v1
                v4: f32 = add v2, v3
                v5: f32 = sqrt v4
                v6: f32 = const 3.0
                v7: f32 = const 9.0
                v8: u1 = lt v4, v7
                v9: f32 = sqrt v0
                v10: u1 = lt v9, v6
                yield [v8, v10]
            }
            ");
    }

    #[test]
    fn strict_maths_keeps_rounding() {
        check_pass!("identities", "
            func @f(v0: f32) -> f32, f32 {
                v1: f32 = const 3.0
                v2: f32 = div v0, v1
                v3: f32 = const 4.0
                v4: f32 = div v0, v3
                yield [v2, v4]
            }", @"
            func @f(v0: f32) -> f32, f32 {
                v1: f32 = const 3.0
                v2: f32 = div v0, v1
                v3: f32 = const 4.0
                v4: f32 = const 0.25
                v5: f32 = mul v0, v4
                yield [v2, v5]
            }
            ");
    }

    #[test]
    fn nearly_a_power_of_two() {
        check_pass!("identities", "
            func @f(v0: f64) -> f64 {
                v1: f64 = const 1024.0000000000002
                v2: f64 = div v0, v1
                yield [v2]
            }", @"
            func @f(v0: f64) -> f64 {
                v1: f64 = const 1024.0000000000002
                v2: f64 = div v0, v1
                yield [v2]
            }
            ");
    }

    #[test]
    fn blocks_that_may_wrap() {
        check_pass!("identities", "
            kernel @k(n: i32, a: array<i32, 1>) {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 3
                    v2: i32 = const 4
                    yield [v0, v1, v0, v2]
                } {
                    v3: i32 = arg a0
                    v4: i32 = const 268435457
                    v5: i32 = mul v3, v4
                    v6: i32 = const 8
                    v7: i32 = const 3
                    each (v8: i32, v9: i32) {
                        v10: i32 = mul v5, v6
                        v11: i32 = add v10, v9
                        v12: i32 = shr v11, v7
                        v13: i32 = and v11, v7
                        v14: ref<i32> = array_at a1, [v9]
                        store v14, v12
                        v15: i32 = mul v8, v6
                        v16: i32 = add v15, v9
                        v17: i32 = shr v16, v7
                        v18: ref<i32> = array_at a1, [v17]
                        store v18, v13
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k(n: i32, a: array<i32, 1>) {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 3
                    v2: i32 = const 4
                    yield [v0, v1, v0, v2]
                } {
                    v3: i32 = arg a0
                    v4: i32 = const 268435457
                    v5: i32 = mul v3, v4
                    v6: i32 = const 8
                    v7: i32 = const 3
                    each (v8: i32, v9: i32) {
                        v10: i32 = mul v5, v6
                        v11: i32 = add v10, v9
                        v12: i32 = shr v11, v7
                        v13: i32 = and v11, v7
                        v14: ref<i32> = array_at a1, [v9]
                        store v14, v12
                        v15: i32 = mul v8, v6
                        v16: i32 = add v15, v9
                        v17: ref<i32> = array_at a1, [v8]
                        store v17, v13
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }
}
