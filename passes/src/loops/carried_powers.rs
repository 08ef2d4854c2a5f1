//! Powers whose exponent a loop counts become products that the loop carries.
//!
//! ```text
//! for 0, n, 1 (k) {                     p = 1
//!     e = cast<f32> k                   for 0, min(n, last + 1), 1 (k) { y = cast<f32> p  p *= cast<f64> x  .. }
//!     y = pow x, e            ==>       for min(n, last + 1), n, 1 (k) { y = pow x, e  .. }
//!     ..
//! }
//! ```
//! Where exponents are at most 16, powers are products as those with constant exponents are. Greater powers of `f32` are carried in
//! `f64`, and are as exact as `pow` up to the exponent `last`; those of `f64` are not carried. Those of integers are exact. The second loop is left out where the bounds say that it is
//! empty. Without fast maths only integers are carried.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::access::defined_in;
use aerogel_ir::analysis::{Ranges, affine};
use aerogel_ir::{
    BinaryOp, Builder, FastMath, Function, Inst, Op, Region, Type, Value, copy_region, walk,
};

use crate::PassCx;
use crate::insert::insert_before;
use crate::simplify::counted_whiles::may_break;
use crate::simplify::powers::power;
use crate::simplify::promote_locals;

/// The greatest factor of the counter in an exponent.
const MOST_FACTOR: i128 = 16;
/// The greatest exponent for which rounded products are taken, as for constant exponents.
const MOST_PRODUCTS: i128 = 16;
/// The greatest exponent of the first iteration.
const MOST_FIRST: i128 = 16;
/// A loop of more instructions is not copied.
const MOST_COPIED: usize = 100;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let ranges = Ranges::within(func, func.body);
    // What tasks say about the loops inside.
    let mut levels: SecondaryMap<Inst, Option<FastMath>> = SecondaryMap::new();
    for &task in &func.regions[func.body].insts {
        if let Op::Task { attrs, body, .. } = func[task] {
            walk(func, body, &mut |_, inst| levels[inst] = attrs.fast_math);
        }
    }
    let changed = insert_before(func, func.body, &mut |func, inst, out| {
        let level = levels[inst].unwrap_or(cx.env.fast_math);
        let found = Counted::of(func, inst, level, &ranges);
        let changed = found.is_some();
        if let Some(found) = found {
            found.carry(func, out);
        }
        changed
    });
    if changed {
        promote_locals::run(func, cx);
    }
    changed
}

/// A loop that counts the exponents of powers.
struct Counted {
    inst: Inst,
    powers: Vec<Power>,
    first: i128,
    /// The counter from which on powers are computed by themselves, if the loop may come so far.
    end: Option<i128>,
}

/// `base ** (factor * counter + offset)`.
#[derive(Clone, Copy)]
struct Power {
    inst: Inst,
    base: Value,
    factor: i128,
    offset: i128,
    /// Whether it is carried in `f64`.
    in_f64: bool,
}

impl Power {
    fn is_same(&self, other: &Self) -> bool {
        (self.base, self.factor, self.offset) == (other.base, other.factor, other.offset)
    }
}

impl Counted {
    fn of(func: &Function, inst: Inst, level: FastMath, ranges: &Ranges) -> Option<Self> {
        let &Op::For {
            lo, hi, step, body, ..
        } = &func[inst]
        else {
            return None;
        };
        let first = func.as_const(lo)?.as_i128();
        if func.as_const(step)?.as_i128() != 1 || first < 0 {
            return None;
        }
        let mut inside = SecondaryMap::new();
        defined_in(func, body, &mut inside);
        let counter = func.regions[body].params[0];
        let mut powers: Vec<Power> = Vec::new();
        let mut size = 0;
        walk(func, body, &mut |func, inst| {
            size += 1;
            let Op::Binary {
                op: BinaryOp::Pow,
                lhs: base,
                rhs,
            } = func[inst]
            else {
                return;
            };
            let Some(elem) = func.ty(base).scalar() else {
                return;
            };
            let exponent = match func.def_op(rhs) {
                Some(&Op::Cast { x }) if !elem.is_int() => x,
                _ if elem.is_int() => rhs,
                _ => return,
            };
            let is_counted = func.ty(exponent).scalar().is_some_and(ScalarType::is_int)
                && !inside[base]
                && last(elem, level).is_some();
            if !is_counted {
                return;
            }
            let sum = affine::linear(func, exponent, &mut |v| v);
            let (&[(value, factor)], offset) = (&sum.terms[..], sum.constant) else {
                return;
            };
            let at_first = factor.saturating_mul(first).saturating_add(offset);
            let in_range =
                (1..=MOST_FACTOR).contains(&factor) && (0..=MOST_FIRST).contains(&at_first);
            if value == counter && in_range {
                powers.push(Power {
                    inst,
                    base,
                    factor,
                    offset,
                    in_f64: false,
                });
            }
        });
        let ends = powers.iter().map(|power| {
            let last = last(func.elem(power.base), level).expect("only such powers are taken");
            (last - power.offset).div_euclid(power.factor) + 1
        });
        let end = ends.min()?;
        let highest = match func.as_const(hi) {
            Some(hi) => Some(hi.as_i128()),
            None => ranges.of(func, hi).map(|range| range.hi),
        };
        for power in &mut powers {
            let greatest = highest.map(|hi| power.factor * (hi - 1) + power.offset);
            power.in_f64 = func.elem(power.base) == ScalarType::F32
                && greatest.is_none_or(|greatest| greatest > MOST_PRODUCTS);
        }
        let end = highest.is_none_or(|hi| hi > end).then_some(end);
        let can_split = size <= MOST_COPIED && !may_break(func, body);
        (end.is_none() || can_split).then_some(Self {
            inst,
            powers,
            first,
            end,
        })
    }

    /// Carries the powers; what stands before the loop goes to `out`.
    fn carry(self, func: &mut Function, out: &mut Vec<Inst>) {
        let Op::For {
            lo,
            hi,
            step,
            ref init,
            body,
        } = func[self.inst]
        else {
            unreachable!("only such loops are taken")
        };
        let (init, span) = (init.clone(), func.insts[self.inst].span);
        let rest = self.end.map(|end| (end, copy_region(func, body)));
        let before = func.new_region(&[]);
        let mut done: Vec<(Power, Value)> = Vec::new();
        for power in self.powers {
            let known = done.iter().find(|(other, _)| other.is_same(&power));
            let value = match known {
                Some(&(_, value)) => value,
                None => {
                    let value = carried(func, before, body, power, self.first);
                    done.push((power, value));
                    value
                }
            };
            func.insts[power.inst].op = Op::Cast { x: value };
        }
        if let Some((end, rest)) = rest {
            let types: Vec<Type> = init.iter().map(|&v| func.ty(v)).collect();
            let mut b = Builder::new(func, before);
            b.span = span;
            let end = b.constant(Scalar::int(b.func.elem(hi), end));
            let mid = b.binary(BinaryOp::Min, hi, end);
            let op = Op::For {
                lo,
                hi: mid,
                step,
                init,
                body,
            };
            let first = b.inst(op, &types);
            let init = b.func.insts[first].results.clone();
            func.insts[self.inst].op = Op::For {
                lo: mid,
                hi,
                step,
                init,
                body: rest,
            };
        }
        out.append(&mut func.regions[before].insts);
    }
}

/// The power of an iteration, as a variable that is set before the loop and multiplied at the beginning of its body.
fn carried(func: &mut Function, before: Region, body: Region, of: Power, first: i128) -> Value {
    let elem = func.elem(of.base);
    let elem = if of.in_f64 { ScalarType::F64 } else { elem };
    let ty = Type::Scalar(elem);
    let span = func.insts[of.inst].span;
    let mut b = Builder::new(func, before);
    b.span = span;
    let base = b.cast(of.base, ty);
    let factor = power(&mut b, base, of.factor as u128, ty);
    let start = match of.factor * first + of.offset {
        0 => b.constant(Scalar::one(elem)),
        n => power(&mut b, base, n as u128, ty),
    };
    let place = b.local(ty);
    b.store(place, start);
    let at = func.new_region(&[]);
    let mut b = Builder::new(func, at);
    b.span = span;
    let value = b.load(place);
    let next = b.binary(BinaryOp::Mul, value, factor);
    b.store(place, next);
    let mut insts = std::mem::take(&mut func.regions[at].insts);
    insts.append(&mut func.regions[body].insts);
    func.regions[body].insts = insts;
    value
}

/// The greatest exponent for which a product is as good as a power of its own.
fn last(elem: ScalarType, level: FastMath) -> Option<i128> {
    match elem {
        // The error of 2^20 products in `f64` is 2^-33.
        ScalarType::F32 if level != FastMath::Off => Some(1 << 20),
        ScalarType::F64 if level != FastMath::Off => Some(MOST_PRODUCTS),
        _ => (elem.is_int() && elem.bits() >= 32).then_some(1 << 20),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass_fast;

    #[test]
    fn a_counted_exponent() {
        check_pass_fast!("carried_powers", "
            func @f(x: f32, c: f32) -> f32 {
                zero: i32 = const 0
                one: i32 = const 1
                n: i32 = const 9
                start: f32 = const 0.0
                a: f32 = for zero, n, one, [start] (k: i32, s: f32) {
                    e: f32 = cast k
                    p: f32 = pow x, e
                    t: f32 = mul p, c
                    u: f32 = add s, t
                    yield [u]
                }
                yield [a]
            }", @"
        func @f(v0: f32, v1: f32) -> f32 {
            v2: i32 = const 0
            v3: i32 = const 1
            v4: i32 = const 9
            v5: f32 = const 0.0
            v6: f32 = const 1.0
            v7: f32 = const 0.0
            v8: f32, v9: f32 = for v2, v4, v3, [v5, v6] (v10: i32, v11: f32, v12: f32) {
                v13: f32 = mul v12, v0
                v14: f32 = cast v10
                v15: f32 = cast v12
                v16: f32 = mul v15, v1
                v17: f32 = add v11, v16
                yield [v17, v13]
            }
            yield [v8]
        }
        ");
    }

    #[test]
    fn large_exponents() {
        check_pass_fast!("carried_powers", "
            func @f(x: f32) -> f32 {
                zero: i32 = const 0
                one: i32 = const 1
                n: i32 = const 1000
                start: f32 = const 0.0
                a: f32 = for zero, n, one, [start] (k: i32, s: f32) {
                    e: f32 = cast k
                    p: f32 = pow x, e
                    u: f32 = add s, p
                    yield [u]
                }
                yield [a]
            }", @"
        func @f(v0: f32) -> f32 {
            v1: i32 = const 0
            v2: i32 = const 1
            v3: i32 = const 1000
            v4: f32 = const 0.0
            v5: f64 = cast v0
            v6: f64 = const 1.0
            v7: f64 = const 0.0
            v8: f32, v9: f64 = for v1, v3, v2, [v4, v6] (v10: i32, v11: f32, v12: f64) {
                v13: f64 = mul v12, v5
                v14: f32 = cast v10
                v15: f32 = cast v12
                v16: f32 = add v11, v15
                yield [v16, v13]
            }
            yield [v8]
        }
        ");
    }

    #[test]
    fn an_end_that_is_not_known() {
        check_pass_fast!("carried_powers", "
            func @f(x: f64, n: i32) -> f64 {
                zero: i32 = const 0
                one: i32 = const 1
                two: i32 = const 2
                start: f64 = const 0.0
                a: f64 = for zero, n, one, [start] (k: i32, s: f64) {
                    d: i32 = mul k, two
                    o: i32 = add d, one
                    e: f64 = cast o
                    p: f64 = pow x, e
                    u: f64 = add s, p
                    yield [u]
                }
                yield [a]
            }", @"
        func @f(v0: f64, v1: i32) -> f64 {
            v2: i32 = const 0
            v3: i32 = const 1
            v4: i32 = const 2
            v5: f64 = const 0.0
            v6: f64 = mul v0, v0
            v7: f64 = const 0.0
            v8: i32 = const 8
            v9: i32 = min v1, v8
            v10: f64, v11: f64 = for v2, v9, v3, [v5, v0] (v12: i32, v13: f64, v14: f64) {
                v15: f64 = mul v14, v6
                v16: i32 = mul v12, v4
                v17: i32 = add v16, v3
                v18: f64 = cast v17
                v19: f64 = cast v14
                v20: f64 = add v13, v19
                yield [v20, v15]
            }
            v21: f64 = for v9, v1, v3, [v10] (v22: i32, v23: f64) {
                v24: i32 = mul v22, v4
                v25: i32 = add v24, v3
                v26: f64 = cast v25
                v27: f64 = pow v0, v26
                v28: f64 = add v23, v27
                yield [v28]
            }
            yield [v21]
        }
        ");
    }

    #[test]
    fn integers() {
        check_pass_fast!("carried_powers", "
            func @f(x: i32) -> i32 {
                one: i32 = const 1
                n: i32 = const 9
                a: i32 = for one, n, one, [one] (k: i32, s: i32) {
                    p: i32 = pow x, k
                    u: i32 = add s, p
                    yield [u]
                }
                yield [a]
            }", @"
        func @f(v0: i32) -> i32 {
            v1: i32 = const 1
            v2: i32 = const 9
            v3: i32 = const 0
            v4: i32, v5: i32 = for v1, v2, v1, [v1, v0] (v6: i32, v7: i32, v8: i32) {
                v9: i32 = mul v8, v0
                v10: i32 = cast v8
                v11: i32 = add v7, v10
                yield [v11, v9]
            }
            yield [v4]
        }
        ");
    }

    #[test]
    fn a_base_that_changes_stays() {
        check_pass_fast!("carried_powers", "
            func @f(x: f32, n: i32) -> f32 {
                one: i32 = const 1
                a: f32 = for one, n, one, [x] (k: i32, s: f32) {
                    e: f32 = cast k
                    p: f32 = pow s, e
                    yield [p]
                }
                yield [a]
            }", @"
        func @f(v0: f32, v1: i32) -> f32 {
            v2: i32 = const 1
            v3: f32 = for v2, v1, v2, [v0] (v4: i32, v5: f32) {
                v6: f32 = cast v4
                v7: f32 = pow v5, v6
                yield [v7]
            }
            yield [v3]
        }
        ");
    }
}
