//! Integers as sums and products with constants.
//!
//! `i + 1`, `1 + i`, `i - 1` and `(i + 2) - 3` count from `i`; `i * 4`, `4 * i` and `i << 2` are
//! multiples of it. All holds modulo the size of the integer's type.

use crate::{BinaryOp, Function, Op, Value};

/// How far back operands are followed in [`linear`].
const DEEPEST: u32 = 8;

/// Sums of constants below this do not overflow.
const FAR: i128 = 1 << 40;

/// The base value of an integer, and its constant distance from it.
pub fn counted_from(func: &Function, value: Value) -> (Value, i64) {
    match term(func, value) {
        Some((inner, by)) => {
            let (base, offset) = counted_from(func, inner);
            (base, offset + by)
        }
        None => (value, 0),
    }
}

/// The same where sums of narrower integers were widened: as if those had not wrapped.
pub fn counted_from_narrow(func: &Function, value: Value) -> (Value, i64) {
    let value = before_widening(func, value);
    match term(func, value) {
        Some((inner, by)) => {
            let (base, offset) = counted_from_narrow(func, inner);
            (base, offset + by)
        }
        None => (value, 0),
    }
}

/// How far `to` is from `from`, if both count from the same.
pub fn distance(func: &Function, from: Value, to: Value) -> Option<i64> {
    let ((a, x), (b, y)) = (counted_from(func, from), counted_from(func, to));
    (a == b).then_some(y - x)
}

/// Whether two indices differ, in whatever iterations they are computed: they are different constants, or are at
/// different distances from a value that `is_fixed` says is the same in all.
pub fn differ(func: &Function, a: Value, b: Value, is_fixed: impl Fn(Value) -> bool) -> bool {
    let ((a, x), (b, y)) = (counted_from_narrow(func, a), counted_from_narrow(func, b));
    match (func.as_const(a), func.as_const(b)) {
        (Some(a), Some(b)) => a.as_i128() + i128::from(x) != b.as_i128() + i128::from(y),
        _ => a == b && x != y && is_fixed(a),
    }
}

/// The operand of a widening conversion; other values themselves.
pub fn before_widening(func: &Function, value: Value) -> Value {
    match func.def_op(value) {
        Some(&Op::Cast { x }) if func.elem(x).is_int() && func.elem(value).is_int() => {
            match func.elem(x).bits() < func.elem(value).bits() {
                true => before_widening(func, x),
                false => value,
            }
        }
        _ => value,
    }
}

/// The factors of a product with a constant, whether it is written as a product or as a shift.
pub fn scaled(func: &Function, value: Value) -> Option<(Value, i128)> {
    let &Op::Binary { op, lhs, rhs } = func.def_op(value)? else {
        return None;
    };
    let ty = func.ty(value).scalar().filter(|ty| ty.is_int())?;
    let constant = |v| func.as_const(v).map(|c| c.as_i128());
    match (op, constant(lhs), constant(rhs)) {
        (BinaryOp::Mul, None, Some(factor)) => Some((lhs, factor)),
        (BinaryOp::Mul, Some(factor), None) => Some((rhs, factor)),
        (BinaryOp::Shl, None, Some(count)) => {
            let count = count & i128::from(ty.bits() - 1);
            Some((lhs, 1 << count))
        }
        _ => None,
    }
}

/// A value and what is added to it.
fn term(func: &Function, sum: Value) -> Option<(Value, i64)> {
    let &Op::Binary { op, lhs, rhs } = func.def_op(sum)? else {
        return None;
    };
    let constant = |v| {
        let value = func.as_const(v).filter(|c| c.ty().is_int())?.as_i128();
        (value.abs() < FAR).then_some(value as i64)
    };
    match (op, constant(lhs), constant(rhs)) {
        (BinaryOp::Add, Some(c), None) => Some((rhs, c)),
        (BinaryOp::Add, None, Some(c)) => Some((lhs, c)),
        (BinaryOp::Sub, None, Some(c)) => Some((lhs, -c)),
        _ => None,
    }
}

/// An integer as a constant plus values times constants, modulo the size of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Values, each once, with factors other than zero, in the order of their numbers.
    pub terms: Vec<(Value, i128)>,
    /// The constant.
    pub constant: i128,
}

impl Linear {
    /// The factor of a value; zero if it does not occur.
    pub fn factor(&self, value: Value) -> i128 {
        let found = self.terms.iter().find(|(v, _)| *v == value);
        found.map_or(0, |&(_, factor)| factor)
    }
}

/// An integer as a linear function of what it is computed from. `leaf` names the value that stands for all that are
/// equal to one, such as those of one argument. Widening from 32 bits is ignored, as if sums of 32 bits had not wrapped:
/// an index that has wrapped there is outside of every axis. Narrower integers are left as they are.
pub fn linear(func: &Function, value: Value, leaf: &mut dyn FnMut(Value) -> Value) -> Linear {
    let mut sum = Linear {
        terms: Vec::new(),
        constant: 0,
    };
    add_linear(func, value, 1, DEEPEST, leaf, &mut sum);
    sum.terms.retain(|&(_, factor)| factor != 0);
    sum.terms.sort_unstable_by_key(|&(value, _)| value);
    sum
}

fn add_linear(
    func: &Function,
    value: Value,
    factor: i128,
    depth: u32,
    leaf: &mut dyn FnMut(Value) -> Value,
    sum: &mut Linear,
) {
    let is_wide = |v| func.elem(v).is_int() && func.elem(v).bits() >= 32;
    let value = match func.def_op(value) {
        Some(&Op::Cast { x }) if is_wide(x) => before_widening(func, value),
        _ => value,
    };
    if let Some(c) = func.as_const(value).filter(|c| c.ty().is_int()) {
        sum.constant = sum.constant.wrapping_add(factor.wrapping_mul(c.as_i128()));
        return;
    }
    if depth > 0 && is_wide(value) {
        let mut add = |v, by| add_linear(func, v, by, depth - 1, leaf, sum);
        match func.def_op(value) {
            Some(&Op::Binary {
                op: BinaryOp::Add,
                lhs,
                rhs,
            }) => {
                add(lhs, factor);
                return add(rhs, factor);
            }
            Some(&Op::Binary {
                op: BinaryOp::Sub,
                lhs,
                rhs,
            }) => {
                add(lhs, factor);
                return add(rhs, factor.wrapping_neg());
            }
            _ => {
                if let Some((x, by)) = scaled(func, value)
                    && let Some(by) = factor.checked_mul(by)
                {
                    return add(x, by);
                }
            }
        }
    }
    let value = leaf(value);
    match sum.terms.iter_mut().find(|(v, _)| *v == value) {
        Some((_, all)) => *all = all.wrapping_add(factor),
        None => sum.terms.push((value, factor)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_module;

    const TEXT: &str = "kernel @k(n: i32) {
        v0: i32 = arg a0
        v1: i32 = const 3
        v2: i32 = add v1, v0
        v3: i32 = sub v2, v1
        v4: i64 = cast v2
        v5: i64 = const 5
        v6: i64 = sub v4, v5
        v7: i32 = shl v0, v1
        v8: i32 = mul v1, v0
        v9: i32 = const 35
        v10: i32 = shl v0, v9
        v11: i32 = sub v1, v0
        nine: i32 = const 9
        v13: i32 = add v2, v7
        v14: i32 = mul v0, nine
        v15: i32 = sub v13, v14
        return []
    }";

    #[test]
    fn sums_and_products() {
        let module = parse_module(TEXT).unwrap();
        let func = module.kernel().unwrap();
        let insts = func.regions[func.body].insts.iter();
        let v: Vec<Value> = insts
            .filter_map(|&inst| func.insts[inst].results.first().copied())
            .collect();
        assert_eq!(counted_from(func, v[3]), (v[0], 0));
        assert_eq!(counted_from(func, v[6]), (v[4], -5));
        assert_eq!(counted_from_narrow(func, v[6]), (v[0], -2));
        assert_eq!(distance(func, v[0], v[2]), Some(3));
        assert_eq!(distance(func, v[2], v[3]), Some(-3));
        assert_eq!(distance(func, v[0], v[1]), None);
        // What is subtracted counts downwards.
        assert_eq!(counted_from(func, v[11]), (v[11], 0));
        assert_eq!(scaled(func, v[7]), Some((v[0], 8)));
        assert_eq!(scaled(func, v[8]), Some((v[0], 3)));
        // Counts of shifts are taken modulo the width.
        assert_eq!(scaled(func, v[10]), Some((v[0], 8)));
        assert_eq!(scaled(func, v[2]), None);
        let linear = |value| linear(func, value, &mut |leaf| leaf);
        assert_eq!((linear(v[6]).constant, linear(v[6]).factor(v[0])), (-2, 1));
        assert_eq!(linear(v[11]).factor(v[0]), -1);
        // 3 + n + 8 n, less 9 n, is 3.
        assert_eq!(linear(v[15]).terms, []);
        assert_eq!(linear(v[15]).constant, 3);
    }
}
