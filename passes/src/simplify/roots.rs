//! Comparisons of roots with constants, without the root.
//!
//! ```text
//! sqrt(x) < c    ==>   x < t     (x a sum of squares, t the least float whose root is at least c)
//! sqrt(x) <= c   ==>   x < t     (t the least float whose root is greater than c)
//! ```
//! Roots are correctly rounded, and so never decrease: the comparison has the result that it has as written, at every level of fast
//! maths. `c * c` rounded would be a neighbour of `t`.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{CompareOp, Function, Op, UnaryOp, Value, at_least};

/// What `sqrt(x) op c` is of `x`: a comparison with a constant. `x` must not be negative, whose root is no number.
pub(super) fn without_root(
    func: &Function,
    op: CompareOp,
    root: Value,
    c: Value,
) -> Option<(CompareOp, Value, Scalar)> {
    let Some(&Op::Unary {
        op: UnaryOp::Sqrt,
        x,
    }) = func.def_op(root)
    else {
        return None;
    };
    let (op, or_equal) = match op {
        CompareOp::Lt => (CompareOp::Lt, true),
        CompareOp::Ge => (CompareOp::Ge, true),
        CompareOp::Le => (CompareOp::Lt, false),
        CompareOp::Gt => (CompareOp::Ge, false),
        _ => return None,
    };
    let least = least_with_root(func.as_const(c)?, or_equal)?;
    (at_least(func, x) >= 0.0).then_some((op, x, least))
}

/// The least float whose root is greater than a number, or at least equal if `or_equal`. Nothing for halves, whose roots
/// are computed in other types, and near the limits of the exponents.
fn least_with_root(c: Scalar, or_equal: bool) -> Option<Scalar> {
    let (ty, c) = (c.ty(), c.as_f64());
    let (square, root): (f64, fn(f64) -> f64) = match ty {
        ScalarType::F32 => (f64::from((c * c) as f32), |x| f64::from((x as f32).sqrt())),
        ScalarType::F64 => (c * c, f64::sqrt),
        _ => return None,
    };
    let square = Scalar::float(ty, square);
    if c <= 0.0 || !square.as_f64().is_normal() || is_near_end(square) {
        return None;
    }
    let reaches = |x: Scalar| match or_equal {
        true => root(x.as_f64()) >= c,
        false => root(x.as_f64()) > c,
    };
    // A few floats beside the square have the root `c`.
    let mut least = square;
    while reaches(stepped(least, -1)) {
        least = stepped(least, -1);
    }
    while !reaches(least) {
        least = stepped(least, 1);
    }
    Some(least)
}

/// Whether a positive float has a neighbour that is no normal number.
fn is_near_end(x: Scalar) -> bool {
    [-8, 8].map(|n| stepped(x, n).as_f64().is_normal()) != [true; 2]
}

/// The float that lies so many floats behind a positive one.
fn stepped(x: Scalar, n: i64) -> Scalar {
    match x.ty() {
        ScalarType::F32 => {
            let bits = (x.as_f64() as f32).to_bits();
            let next = f32::from_bits(bits.wrapping_add_signed(n as i32));
            Scalar::float(ScalarType::F32, f64::from(next))
        }
        _ => {
            let next = f64::from_bits(x.as_f64().to_bits().wrapping_add_signed(n));
            Scalar::float(ScalarType::F64, next)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_float_beside_the_bound_is_decided_otherwise() {
        let mut seed = 1u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            let exponent = i32::try_from(seed >> 59).unwrap() - 16;
            let c = (1.0 + (seed >> 33) as f64 / 2f64.powi(31)) * 2f64.powi(exponent);
            let c32 = c as f32;
            for or_equal in [false, true] {
                let least = least_with_root(Scalar::float(ScalarType::F64, c), or_equal).unwrap();
                for n in -12..12 {
                    let x = stepped(least, n).as_f64();
                    let reaches = if or_equal {
                        x.sqrt() >= c
                    } else {
                        x.sqrt() > c
                    };
                    assert_eq!(reaches, n >= 0, "{c} {n}");
                }
                let c = Scalar::float(ScalarType::F32, f64::from(c32));
                let least = least_with_root(c, or_equal).unwrap();
                for n in -12..12 {
                    let x = stepped(least, n).as_f64() as f32;
                    let reaches = if or_equal {
                        x.sqrt() >= c32
                    } else {
                        x.sqrt() > c32
                    };
                    assert_eq!(reaches, n >= 0, "{c32} {n}");
                }
            }
        }
    }

    #[test]
    fn ends_of_the_exponents_are_left_alone() {
        for c in [0.0, -1.0, 1e-200, 1e200, f64::INFINITY, f64::NAN] {
            assert!(
                least_with_root(Scalar::float(ScalarType::F64, c), true).is_none(),
                "{c}"
            );
            assert!(
                least_with_root(Scalar::float(ScalarType::F32, c), true).is_none(),
                "{c}"
            );
        }
    }
}
