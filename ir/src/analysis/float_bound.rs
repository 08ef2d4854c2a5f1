//! Static bounds of floats.

use crate::{BinaryOp, Function, Op, UnaryOp, Value};

/// How far back sums and products are followed.
const DEPTH: u32 = 8;

/// A number that a float is not less than, if it is a number at all; minus infinity if nothing is
/// known.
pub fn at_least(func: &Function, x: Value) -> f64 {
    bound(func, x, DEPTH)
}

fn bound(func: &Function, x: Value, depth: u32) -> f64 {
    const UNKNOWN: f64 = f64::NEG_INFINITY;
    if depth == 0 {
        return UNKNOWN;
    }
    let of = |v| bound(func, v, depth - 1);
    match func.def_op(x) {
        Some(Op::Const { value }) => value.to_f64(),
        Some(&Op::Binary { op, lhs, rhs }) => match op {
            BinaryOp::Mul if lhs == rhs => 0.0,
            BinaryOp::Mul | BinaryOp::Div if of(lhs) >= 0.0 && of(rhs) >= 0.0 => 0.0,
            BinaryOp::Add => of(lhs) + of(rhs),
            BinaryOp::Max => of(lhs).max(of(rhs)),
            _ => UNKNOWN,
        },
        Some(&Op::MulAdd { a, b, c }) if a == b => of(c),
        Some(Op::Unary {
            op: UnaryOp::Abs | UnaryOp::Sqrt | UnaryOp::Exp,
            ..
        }) => 0.0,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_module;

    #[test]
    fn squares_and_sums() {
        let text = "kernel @k(a: f32, b: f32) {
            v0: f32 = arg a0
            v1: f32 = arg a1
            v2: f32 = mul v0, v0
            v3: f32 = const 0.5
            v4: f32 = add v2, v3
            v5: f32 = sub v4, v3
            v6: f32 = max v1, v3
            v7: f32 = mul v6, v4
            v8: f32 = mul v0, v1
            v9: f32 = abs v8
            return []
        }";
        let module = parse_module(text).unwrap();
        let func = module.kernel().unwrap();
        let insts = &func.regions[func.body].insts;
        let found: Vec<f64> = insts
            .iter()
            .filter_map(|&inst| func.insts[inst].results.first())
            .map(|&v| at_least(func, v))
            .collect();
        let unknown = f64::NEG_INFINITY;
        let expected = [
            unknown, unknown, 0.0, 0.5, 0.5, unknown, 0.5, 0.0, unknown, 0.0,
        ];
        assert_eq!(found, expected);
    }
}
