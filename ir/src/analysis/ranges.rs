//! Value ranges of integers.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};

use super::affine::scaled;
use super::interval::Interval;
use crate::{BinaryOp, Function, Op, Region, Value, walk};

/// The least and the greatest value of the counters of loops with constant bounds, and of what is
/// computed from them.
#[derive(Default)]
pub struct Ranges {
    counters: SecondaryMap<Value, Option<Interval>>,
}

/// How far back operands are followed: each step may double the work.
const DEEPEST: u32 = 10;

impl Ranges {
    /// Of the loops in a region.
    pub fn within(func: &Function, region: Region) -> Self {
        let mut ranges = Self::default();
        walk(func, region, &mut |func, inst| {
            ranges.note(func, &func[inst]);
        });
        ranges
    }

    /// Remembers the bounds of the counters that a loop's or a task's region has as parameters.
    pub fn note(&mut self, func: &Function, op: &Op) {
        let known = |v| func.as_const(v).map(Scalar::as_i128);
        match *op {
            Op::For {
                lo, hi, step, body, ..
            } => {
                let counter = func.regions[body].params[0];
                if let (Some(lo), Some(1..)) = (known(lo), known(step)) {
                    let hi = known(hi).or_else(|| greatest(func, counter));
                    self.counters[counter] = hi.map(|hi| Interval { lo, hi: hi - 1 });
                }
            }
            Op::Parallel {
                ref lo,
                ref hi,
                body,
                ..
            } => {
                let params = func.regions[body].params.iter();
                for (&counter, (&lo, &hi)) in params.zip(lo.iter().zip(hi)) {
                    if let (Some(lo), Some(hi)) = (known(lo), known(hi)) {
                        self.counters[counter] = Some(Interval { lo, hi: hi - 1 });
                    }
                }
            }
            Op::Task { bounds, body, .. } => {
                let insts = func.regions[body].insts.iter();
                let each = insts.copied().find_map(|i| match func[i] {
                    Op::Each { body } => Some(body),
                    _ => None,
                });
                let (Some(each), Some(bounds)) = (each, func.yielded(bounds)) else {
                    return;
                };
                for (&counter, pair) in func.regions[each].params.iter().zip(bounds.chunks(2)) {
                    if let Some(lo) = known(pair[0]) {
                        let hi = known(pair[1]).or_else(|| greatest(func, counter));
                        self.counters[counter] = hi.map(|hi| Interval { lo, hi: hi - 1 });
                    }
                }
            }
            _ => {}
        }
    }

    /// The least and the greatest value of an integer, if no intermediate result wraps.
    pub fn of(&self, func: &Function, value: Value) -> Option<Interval> {
        self.bound(func, value, DEEPEST)
    }

    fn bound(&self, func: &Function, value: Value, depth: u32) -> Option<Interval> {
        let depth = depth.checked_sub(1)?;
        let ty = func.ty(value).scalar().filter(|ty| ty.is_int())?;
        let of = |v| self.bound(func, v, depth);
        let found = match *func.def_op(value).unwrap_or(&Op::Undef {}) {
            Op::Const { value } => Interval::point(value.as_i128()),
            Op::Cast { x } if func.elem(x).is_int() => of(x).or_else(|| all(func.elem(x)))?,
            Op::ArrayShape { .. } => Interval {
                lo: 0,
                hi: i32::MAX.into(),
            },
            Op::Binary { op, lhs, rhs } => match op {
                BinaryOp::Add | BinaryOp::Sub => Interval::binary(op, &of(lhs)?, &of(rhs)?)?,
                // What is left by a mask or a division lies in a range whatever it is made of.
                BinaryOp::And | BinaryOp::Mod => {
                    let end = func.as_const(rhs)?.as_i128() + i128::from(op == BinaryOp::And);
                    Interval::below(end).filter(|_| end > 0)?
                }
                _ => {
                    let (x, factor) = scaled(func, value)?;
                    Interval::binary(BinaryOp::Mul, &of(x)?, &Interval::point(factor))?
                }
            },
            _ => self.counters[value]?,
        };
        found.is_within(&Interval::of_type(ty)).then_some(found)
    }
}

/// All numbers of a narrow type.
fn all(ty: ScalarType) -> Option<Interval> {
    (ty.bits() <= 16).then(|| Interval::of_type(ty))
}

/// An upper bound of the end of a counter's loop.
fn greatest(func: &Function, counter: Value) -> Option<i128> {
    match func.elem(counter) {
        ScalarType::I32 => Some(i32::MAX.into()),
        ScalarType::I64 => Some(i64::MAX.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_module;

    #[test]
    fn counters_and_what_is_made_of_them() {
        let text = "kernel @k(n: i32) {
            v0: i32 = const 2
            v1: i32 = const 100
            v2: i32 = const 1
            v3: i32 = arg a0
            for v0, v1, v2, [] (v4: i32) {
                v5: i32 = add v4, v1
                v6: i32 = shl v4, v0
                v7: i32 = sub v2, v6
                v8: i32 = const 1000000000
                v9: i32 = mul v4, v8
                v10: i32 = and v3, v1
                v11: i32 = add v3, v4
                v12: i64 = cast v9
                v13: u8 = cast v5
                v14: u8 = cast v9
                yield []
            }
            for v0, v3, v2, [] (v15: i32) {
                v16: i32 = add v15, v0
                yield []
            }
            return []
        }";
        let module = parse_module(text).unwrap();
        let func = module.kernel().unwrap();
        let ranges = Ranges::within(func, func.body);
        let mut found = Vec::new();
        walk(func, func.body, &mut |func, inst| {
            if let (Op::Binary { .. } | Op::Cast { .. }, &[result]) =
                (&func[inst], &func.insts[inst].results[..])
            {
                found.push(ranges.of(func, result).map(|range| (range.lo, range.hi)));
            }
        });
        let expected = [
            Some((102, 199)),
            Some((8, 396)),
            Some((-395, -7)),
            None,
            Some((0, 100)),
            None,
            None,
            Some((102, 199)),
            None,
            None,
        ];
        assert_eq!(found, expected);
    }
}
