//! Debug mode: parallel loops are duplicated, and checks that are decided at launch are removed from one of the two.
//!
//! ```text
//! parallel [0], [n] (v1) {                v9 = n - 1 < size of `a`
//!     assert 0 <= v1 < size of `a`  ==>   parallel [0], [v9 ? n : 0] (v1) { v2 = array_at a0, [v1] .. }
//!     v2 = array_at a0, [v1] ..           parallel [v9 ? n : 0], [n] (v1) { assert ..; v2 = array_at a0, [v1] .. }
//! }
//! ```
//! One of the two has no iterations. An index that is a sum or a multiple of counters takes its least and its greatest value at
//! the ends of their loops. These are compared with the bounds before the loop, and so is every sum that the index consists
//! of: it must not wrap. Checks of indices that depend on memory stay in both.

use std::rc::Rc;

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::Interval;
use aerogel_ir::analysis::access::defined_in;
use aerogel_ir::analysis::affine::scaled;
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Env, Function, Inst, LoopAttrs, Op, Type, Value, copy_region,
    walk,
};

use super::known::{Known, Part, widens};
use super::{remove, visit};
use crate::PassCx;
use crate::insert::insert_before;
use crate::simplify::dce;

/// A loop of more instructions is not duplicated.
const LARGEST: usize = 3000;
/// With more comparisons than these, a short loop would take longer than with its checks.
const MOST: usize = 64;
/// How far back operands are followed.
const DEEPEST: u32 = 8;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    if !cx.options.debug {
        return false;
    }
    let changed = insert_before(func, func.body, &mut |func, inst, out| {
        let Some(conditions) = Hoisted::of(func, cx.env, inst) else {
            return false;
        };
        conditions.split(func, inst, out);
        true
    });
    if changed {
        dce::run(func, cx);
    }
    changed
}

/// A number that is known before a loop.
#[derive(Clone, Debug, PartialEq)]
enum Number {
    Const(i128),
    /// A value from outside of the loop.
    Outside(Value),
    /// An argument or the size of an array, which is read again before the loop.
    OfLaunch(Value),
    Binary(BinaryOp, Rc<Number>, Rc<Number>),
}

impl Number {
    fn binary(op: BinaryOp, a: &Self, b: &Self) -> Self {
        if let (Self::Const(a), Self::Const(b)) = (a, b)
            && let Some(value) = Interval::binary(op, &Interval::point(*a), &Interval::point(*b))
        {
            return Self::Const(value.lo);
        }
        Self::Binary(op, Rc::new(a.clone()), Rc::new(b.clone()))
    }

    /// Computes it as an `i64`, where every number of 32 bits and every product of two of them fits.
    fn write(&self, b: &mut Builder<'_>) -> Value {
        match self {
            Self::Const(value) => b.constant(Scalar::int(ScalarType::I64, *value)),
            Self::Outside(value) => b.cast(*value, Type::I64),
            Self::OfLaunch(value) => {
                let (op, ty) = (b.func.def_op(*value).cloned(), b.func.ty(*value));
                let value = b.value(op.expect("a launch's number is made by an instruction"), ty);
                b.cast(value, Type::I64)
            }
            Self::Binary(op, lhs, rhs) => {
                let (lhs, rhs) = (lhs.write(b), rhs.write(b));
                b.binary(*op, lhs, rhs)
            }
        }
    }
}

/// The least and the greatest number.
type Ends = (Number, Number);

/// A comparison that is made before the loop.
#[derive(Clone, Debug, PartialEq)]
struct Condition {
    op: CompareOp,
    lhs: Number,
    rhs: Number,
}

/// The checks of a loop that are decided before it.
struct Hoisted {
    checks: SecondaryMap<Inst, bool>,
    conditions: Vec<Condition>,
}

impl Hoisted {
    fn of(func: &Function, env: &Env, inst: Inst) -> Option<Self> {
        let op @ &Op::Parallel { body, .. } = &func[inst] else {
            return None;
        };
        let mut inside = SecondaryMap::new();
        defined_in(func, body, &mut inside);
        let (mut size, mut draws) = (0, false);
        walk(func, body, &mut |func, inst| {
            size += 1;
            draws |= matches!(
                func[inst],
                Op::Random {} | Op::RandomState { .. } | Op::Call { .. }
            );
        });
        // Random numbers are those of the loop's number, whichever of the two runs.
        if size > LARGEST || draws {
            return None;
        }
        let mut known = Known::default();
        known.enter(func, env, op);
        let (mut checks, mut conditions) = (SecondaryMap::new(), Vec::new());
        visit(
            func,
            env,
            body,
            &mut known,
            &mut |func, known, inst, parts| {
                let mut ends = EndsOf {
                    func,
                    known,
                    inside: &inside,
                    conditions: Vec::new(),
                };
                if !parts.is_empty() && parts.iter().all(|&part| ends.decides(part)) {
                    let mut more = ends.conditions;
                    more.retain(|condition| !conditions.contains(condition));
                    if conditions.len() + more.len() <= MOST {
                        checks[inst] = true;
                        conditions.append(&mut more);
                    }
                }
            },
        );
        (!conditions.is_empty()).then_some(Self { checks, conditions })
    }

    /// Makes two of the loop; what comes before the second is added to `out`.
    fn split(self, func: &mut Function, inst: Inst, out: &mut Vec<Inst>) {
        let Op::Parallel {
            ref lo,
            ref hi,
            ref attrs,
            body,
        } = func[inst]
        else {
            unreachable!("only such loops are split")
        };
        let (lo, hi, attrs) = (lo.clone(), hi.clone(), *attrs);
        let span = func.insts[inst].span;
        let checked = copy_region(func, body);
        remove(func, body, &self.checks);
        let before = func.new_region(&[]);
        let mut b = Builder::new(func, before);
        b.span = span;
        let mut holds = b.constant(Scalar::bool(true));
        for Condition { op, lhs, rhs } in &self.conditions {
            let (lhs, rhs) = (lhs.write(&mut b), rhs.write(&mut b));
            let found = b.compare(*op, lhs, rhs);
            holds = b.binary(BinaryOp::And, holds, found);
        }
        let middle = b.select(holds, hi[0], lo[0]);
        let ends = |first: Value, values: &[Value]| {
            let mut ends = values.to_vec();
            ends[0] = first;
            ends
        };
        // The loops behind keep their numbers, by which they draw random numbers.
        b.effect(Op::Parallel {
            lo: lo.clone(),
            hi: ends(middle, &hi),
            attrs: LoopAttrs {
                aside: true,
                ..attrs
            },
            body,
        });
        func.insts[inst].op = Op::Parallel {
            lo: ends(middle, &lo),
            hi,
            attrs,
            body: checked,
        };
        out.append(&mut func.regions[before].insts);
    }
}

/// The ends of integers over all iterations of a loop.
struct EndsOf<'a> {
    func: &'a Function,
    known: &'a Known,
    inside: &'a SecondaryMap<Value, bool>,
    conditions: Vec<Condition>,
}

impl EndsOf<'_> {
    /// Whether conditions before the loop decide that a comparison holds in all iterations; they are added to the others.
    fn decides(&mut self, Part { op, lhs, rhs }: Part) -> bool {
        let ends = self.of(lhs, DEEPEST).zip(self.of(rhs, DEEPEST));
        let Some((a, b)) = ends else {
            return false;
        };
        let (lhs, rhs) = match op {
            CompareOp::Lt | CompareOp::Le => (a.1, b.0),
            CompareOp::Gt | CompareOp::Ge => (a.0, b.1),
            CompareOp::Eq | CompareOp::Ne => return false,
        };
        self.conditions.push(Condition { op, lhs, rhs });
        true
    }

    fn of(&mut self, value: Value, depth: u32) -> Option<Ends> {
        let depth = depth.checked_sub(1)?;
        let ty = self.func.ty(value).scalar().filter(|ty| ty.is_int())?;
        if let Some(constant) = self.func.as_const(value) {
            let number = Number::Const(constant.as_i128());
            return Some((number.clone(), number));
        }
        if let Some(&Op::Cast { x }) = self.func.def_op(value)
            && widens(self.func, x, value)
        {
            return self.of(x, depth);
        }
        if ty.bits() > 32 {
            return None;
        }
        let found = if !self.inside[value] {
            let number = Number::Outside(value);
            Some((number.clone(), number))
        } else {
            self.computed(value, ty, depth)
        };
        found.or_else(|| {
            // What is read, but lies between constants.
            let found = self.known.of(self.func, value);
            let all = Interval::of_type(ty);
            (found.lo > all.lo && found.hi < all.hi)
                .then_some((Number::Const(found.lo), Number::Const(found.hi)))
        })
    }

    fn computed(&mut self, value: Value, ty: ScalarType, depth: u32) -> Option<Ends> {
        let func = self.func;
        let Some(op) = func.def_op(value) else {
            let counter = self.known.counter(value)?;
            let (lo, hi) = (self.of(counter.lo, depth)?, self.of(counter.hi, depth)?);
            let one = Number::Const(1);
            return Some(match counter.counts_up {
                true => (lo.0, Number::binary(BinaryOp::Sub, &hi.1, &one)),
                false => (Number::binary(BinaryOp::Add, &hi.0, &one), lo.1),
            });
        };
        match *op {
            Op::Arg { .. } | Op::ArrayShape { .. } => {
                let number = Number::OfLaunch(value);
                Some((number.clone(), number))
            }
            Op::Binary {
                op: BinaryOp::Xor | BinaryOp::Or,
                lhs,
                rhs,
            } => {
                let (a, b) = (self.of(lhs, depth)?, self.of(rhs, depth)?);
                self.of_bits(&a, &b).or_else(|| self.of_bits(&b, &a))
            }
            Op::Binary { op, lhs, rhs } => {
                let made = match op {
                    BinaryOp::Add | BinaryOp::Min | BinaryOp::Max => {
                        let (a, b) = (self.of(lhs, depth)?, self.of(rhs, depth)?);
                        (
                            Number::binary(op, &a.0, &b.0),
                            Number::binary(op, &a.1, &b.1),
                        )
                    }
                    BinaryOp::Sub => {
                        let (a, b) = (self.of(lhs, depth)?, self.of(rhs, depth)?);
                        (
                            Number::binary(op, &a.0, &b.1),
                            Number::binary(op, &a.1, &b.0),
                        )
                    }
                    BinaryOp::Mul | BinaryOp::Shl => {
                        let (x, factor) = scaled(func, value)?;
                        i32::try_from(factor).ok()?;
                        let x = self.of(x, depth)?;
                        let by = Number::Const(factor);
                        let [a, b] = [x.0, x.1].map(|x| Number::binary(BinaryOp::Mul, &x, &by));
                        if factor < 0 { (b, a) } else { (a, b) }
                    }
                    _ => return None,
                };
                if !matches!(op, BinaryOp::Min | BinaryOp::Max) {
                    self.require_fit(ty, &made);
                }
                Some(made)
            }
            _ => None,
        }
    }

    /// The ends of bits of two numbers, one of which lies between constants, if the other has no bits beyond its: a condition.
    fn of_bits(&mut self, a: &Ends, b: &Ends) -> Option<Ends> {
        let (Number::Const(0..), Number::Const(hi @ 0..)) = a else {
            return None;
        };
        let bits = i128::BITS - hi.leading_zeros();
        let most = Number::Const((1 << bits) - 1);
        let zero = Number::Const(0);
        for (op, lhs, rhs) in [(CompareOp::Ge, &b.0, &zero), (CompareOp::Le, &b.1, &most)] {
            let (lhs, rhs) = (lhs.clone(), rhs.clone());
            self.conditions.push(Condition { op, lhs, rhs });
        }
        Some((zero, most))
    }

    /// Adds the conditions that numbers of a type have not wrapped.
    fn require_fit(&mut self, ty: ScalarType, (lo, hi): &Ends) {
        let all = Interval::of_type(ty);
        for (op, lhs, end) in [(CompareOp::Ge, lo, all.lo), (CompareOp::Le, hi, all.hi)] {
            let condition = Condition {
                op,
                lhs: lhs.clone(),
                rhs: Number::Const(end),
            };
            if !matches!(lhs, Number::Const(_)) {
                self.conditions.push(condition);
            } else if let Number::Const(value) = lhs
                && !(all.lo..=all.hi).contains(value)
            {
                self.conditions.push(condition);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass_in_debug;

    #[test]
    fn sizes_of_arrays() {
        check_pass_in_debug!("hoisted_checks", "
            kernel @k(n: i32, a: array<f32, 1>) {
                v0: i32 = arg a0
                v1: i32 = const 0
                v2: i32 = const 1
                v3: i64 = const 0
                parallel [v1], [v0] (v4: i32) {
                    v5: i32 = add v4, v2
                    v6: i32 = array_shape a1, 0
                    v7: i64 = cast v5
                    v8: i64 = cast v6
                    v9: u1 = ge v7, v3
                    v10: u1 = lt v7, v8
                    v11: u1 = and v9, v10
                    assert v11, bounds, \"{} of {}\", [v5, v6]
                    v12: ref<f32> = array_at a1, [v7]
                    v13: f32 = cast v4
                    store v12, v13
                    yield []
                }
                yield []
            }", @r#"
        kernel @k(n: i32, a: array<f32, 1>) {
            v0: i32 = arg a0
            v1: i32 = const 0
            v2: i32 = const 1
            v3: i64 = const 0
            v4: u1 = const 1
            v5: i64 = cast v0
            v6: i64 = const 1
            v7: i64 = sub v5, v6
            v8: i64 = const 1
            v9: i64 = add v7, v8
            v10: i64 = const 2147483647
            v11: u1 = le v9, v10
            v12: u1 = and v4, v11
            v13: i64 = cast v0
            v14: i64 = const 1
            v15: i64 = sub v13, v14
            v16: i64 = const 1
            v17: i64 = add v15, v16
            v18: i32 = array_shape a1, 0
            v19: i64 = cast v18
            v20: u1 = lt v17, v19
            v21: u1 = and v12, v20
            v22: i32 = select v21, v0, v1
            parallel [v1], [v22] aside (v23: i32) {
                v24: i32 = add v23, v2
                v25: i64 = cast v24
                v26: ref<f32> = array_at a1, [v25]
                v27: f32 = cast v23
                store v26, v27
                yield []
            }
            parallel [v22], [v0] (v28: i32) {
                v29: i32 = add v28, v2
                v30: i32 = array_shape a1, 0
                v31: i64 = cast v29
                v32: i64 = cast v30
                v33: u1 = ge v31, v3
                v34: u1 = lt v31, v32
                v35: u1 = and v33, v34
                assert v35, bounds, "{} of {}", [v29, v30]
                v36: ref<f32> = array_at a1, [v31]
                v37: f32 = cast v28
                store v36, v37
                yield []
            }
            yield []
        }
        "#);
    }

    #[test]
    fn partners() {
        check_pass_in_debug!("hoisted_checks", "
            tree0 { dense i:8 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k(n: i32) {
                v0: i32 = arg a0
                v1: i32 = const 0
                v2: i32 = const 8
                v3: i64 = const 0
                v4: i64 = const 8
                parallel [v1], [v2] (v5: i32) {
                    v6: i32 = xor v5, v0
                    v7: i64 = cast v6
                    v8: u1 = ge v7, v3
                    v9: u1 = lt v7, v4
                    v10: u1 = and v8, v9
                    assert v10, bounds, \"{}\", [v6]
                    v11: ref<i32> = field_at @x, [v7]
                    store v11, v5
                    yield []
                }
                yield []
            }", @r#"
        kernel @k(n: i32) {
            v0: i32 = arg a0
            v1: i32 = const 0
            v2: i32 = const 8
            v3: i64 = const 0
            v4: i64 = const 8
            v5: u1 = const 1
            v6: i64 = cast v0
            v7: i64 = const 0
            v8: u1 = ge v6, v7
            v9: u1 = and v5, v8
            v10: i64 = cast v0
            v11: i64 = const 7
            v12: u1 = le v10, v11
            v13: u1 = and v9, v12
            v14: i64 = const 0
            v15: i64 = const 0
            v16: u1 = ge v14, v15
            v17: u1 = and v13, v16
            v18: i64 = cast v0
            v19: i64 = const 0
            v20: u1 = ge v18, v19
            v21: u1 = and v17, v20
            v22: i64 = cast v0
            v23: i64 = const 7
            v24: u1 = le v22, v23
            v25: u1 = and v21, v24
            v26: i64 = const 7
            v27: i64 = const 8
            v28: u1 = lt v26, v27
            v29: u1 = and v25, v28
            v30: i32 = select v29, v2, v1
            parallel [v1], [v30] aside (v31: i32) {
                v32: i32 = xor v31, v0
                v33: i64 = cast v32
                v34: ref<i32> = field_at @x, [v33]
                store v34, v31
                yield []
            }
            parallel [v30], [v2] (v35: i32) {
                v36: i32 = xor v35, v0
                v37: i64 = cast v36
                v38: u1 = ge v37, v3
                v39: u1 = lt v37, v4
                v40: u1 = and v38, v39
                assert v40, bounds, "{}", [v36]
                v41: ref<i32> = field_at @x, [v37]
                store v41, v35
                yield []
            }
            yield []
        }
        "#);
    }

    #[test]
    fn loops_inside_and_what_is_read() {
        check_pass_in_debug!("hoisted_checks", "
            tree0 { dense i:32 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k(n: i32, m: i32) {
                v0: i32 = arg a0
                v1: i32 = arg a1
                v2: i32 = const 0
                v3: i32 = const 1
                v4: i64 = const 0
                v5: i64 = const 32
                v30: i32 = const 4
                parallel [v2], [v0] (v6: i32) {
                    for v2, v1, v3, [] (v7: i32) {
                        v8: i32 = mul v6, v30
                        v9: i32 = add v8, v7
                        v10: i64 = cast v9
                        v11: u1 = ge v10, v4
                        v12: u1 = lt v10, v5
                        v13: u1 = and v11, v12
                        assert v13, bounds, \"hoisted: {}\", [v9]
                        v14: ref<i32> = field_at @x, [v10]
                        v15: i32 = load v14
                        v16: i64 = cast v15
                        v17: u1 = ge v16, v4
                        v18: u1 = lt v16, v5
                        v19: u1 = and v17, v18
                        assert v19, bounds, \"stays: {}\", [v15]
                        v20: ref<i32> = field_at @x, [v16]
                        store v20, v7
                        yield []
                    }
                    yield []
                }
                yield []
            }", @r#"
        kernel @k(n: i32, m: i32) {
            v0: i32 = arg a0
            v1: i32 = arg a1
            v2: i32 = const 0
            v3: i32 = const 1
            v4: i64 = const 0
            v5: i64 = const 32
            v6: i32 = const 4
            v7: u1 = const 1
            v8: i64 = cast v0
            v9: i64 = const 1
            v10: i64 = sub v8, v9
            v11: i64 = const 4
            v12: i64 = mul v10, v11
            v13: i64 = const 2147483647
            v14: u1 = le v12, v13
            v15: u1 = and v7, v14
            v16: i64 = cast v0
            v17: i64 = const 1
            v18: i64 = sub v16, v17
            v19: i64 = const 4
            v20: i64 = mul v18, v19
            v21: i64 = cast v1
            v22: i64 = const 1
            v23: i64 = sub v21, v22
            v24: i64 = add v20, v23
            v25: i64 = const 2147483647
            v26: u1 = le v24, v25
            v27: u1 = and v15, v26
            v28: i64 = const 0
            v29: i64 = const 0
            v30: u1 = ge v28, v29
            v31: u1 = and v27, v30
            v32: i64 = cast v0
            v33: i64 = const 1
            v34: i64 = sub v32, v33
            v35: i64 = const 4
            v36: i64 = mul v34, v35
            v37: i64 = const 2147483647
            v38: u1 = le v36, v37
            v39: u1 = and v31, v38
            v40: i64 = cast v0
            v41: i64 = const 1
            v42: i64 = sub v40, v41
            v43: i64 = const 4
            v44: i64 = mul v42, v43
            v45: i64 = cast v1
            v46: i64 = const 1
            v47: i64 = sub v45, v46
            v48: i64 = add v44, v47
            v49: i64 = const 2147483647
            v50: u1 = le v48, v49
            v51: u1 = and v39, v50
            v52: i64 = cast v0
            v53: i64 = const 1
            v54: i64 = sub v52, v53
            v55: i64 = const 4
            v56: i64 = mul v54, v55
            v57: i64 = cast v1
            v58: i64 = const 1
            v59: i64 = sub v57, v58
            v60: i64 = add v56, v59
            v61: i64 = const 32
            v62: u1 = lt v60, v61
            v63: u1 = and v51, v62
            v64: i32 = select v63, v0, v2
            parallel [v2], [v64] aside (v65: i32) {
                for v2, v1, v3, [] (v66: i32) {
                    v67: i32 = mul v65, v6
                    v68: i32 = add v67, v66
                    v69: i64 = cast v68
                    v70: ref<i32> = field_at @x, [v69]
                    v71: i32 = load v70
                    v72: i64 = cast v71
                    v73: u1 = ge v72, v4
                    v74: u1 = lt v72, v5
                    v75: u1 = and v73, v74
                    assert v75, bounds, "stays: {}", [v71]
                    v76: ref<i32> = field_at @x, [v72]
                    store v76, v66
                    yield []
                }
                yield []
            }
            parallel [v64], [v0] (v77: i32) {
                for v2, v1, v3, [] (v78: i32) {
                    v79: i32 = mul v77, v6
                    v80: i32 = add v79, v78
                    v81: i64 = cast v80
                    v82: u1 = ge v81, v4
                    v83: u1 = lt v81, v5
                    v84: u1 = and v82, v83
                    assert v84, bounds, "hoisted: {}", [v80]
                    v85: ref<i32> = field_at @x, [v81]
                    v86: i32 = load v85
                    v87: i64 = cast v86
                    v88: u1 = ge v87, v4
                    v89: u1 = lt v87, v5
                    v90: u1 = and v88, v89
                    assert v90, bounds, "stays: {}", [v86]
                    v91: ref<i32> = field_at @x, [v87]
                    store v91, v78
                    yield []
                }
                yield []
            }
            yield []
        }
        "#);
    }
}
