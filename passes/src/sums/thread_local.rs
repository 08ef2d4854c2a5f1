//! Reductions get thread-local accumulators.
//!
//! ```text
//! each (i: i32) {                       v1 = local      store v1, 0
//!     v2 = atomic_add (temp_at 0), x    each (i: i32) { v3 = load v1  v4 = add v3, x  store v1, v4 }
//! }                              ==>    v5 = load v1    atomic_add (temp_at 0), v5
//! ```
//! That holds if the loop touches the target in no other way, does not use the old value, and the
//! target does not depend on the iteration. Each part of a task then ends in one atomic; the
//! accumulator of a part is a register, and a loop over it vectorises. Where the target need not be
//! there unless the loop changes it, the final atomic is skipped if the accumulator is as it began.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::access::{Class, calls, classes, defined_in, is_quantised, touched};
use aerogel_ir::{
    AtomicOp, Builder, CompareOp, Function, Inst, Op, Region, Rewrite, Value, eval, rewrite, walk,
};

use super::fixed_places::{copy_place, is_fixed, is_in_bounds, runs_always, same_place};
use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut accumulators: SecondaryMap<Inst, Option<Accumulator>> = SecondaryMap::new();
    let mut changed = false;
    for task in func.regions[func.body].insts.clone() {
        let Op::Task { body, attrs, .. } = func[task] else {
            continue;
        };
        let each = func.regions[body]
            .insts
            .iter()
            .position(|&i| matches!(func[i], Op::Each { .. }));
        if let (Some(at), false) = (each, attrs.serial) {
            changed |= reduce(func, cx, body, at, &mut accumulators);
        }
    }
    if changed {
        rewrite(func, |before, inst| match accumulators[inst] {
            Some(accumulator) => accumulator.take_up(before, inst),
            None => Rewrite::Keep,
        });
    }
    changed
}

/// Where atomics with an operation gather.
#[derive(Clone, Copy)]
struct Accumulator {
    op: AtomicOp,
    place: Value,
}

impl Accumulator {
    /// Does to the accumulator what an atomic did to its target.
    fn take_up(self, b: &mut Builder<'_>, atomic: Inst) -> Rewrite {
        let Op::Atomic { op, value, .. } = b.func[atomic] else {
            unreachable!("only atomics are collected")
        };
        let op = if op == AtomicOp::Sub { op } else { self.op };
        let op = op.binary().expect("a reduction computes");
        let old = b.load(self.place);
        let sum = b.binary(op, old, value);
        b.store(self.place, sum);
        // Nobody uses the old value; the result still needs a name.
        Rewrite::Replace(vec![sum])
    }
}

/// A target of atomics, with everything the loop does to its class of memory.
struct Target {
    class: Class,
    /// The operation, sums and differences counting as sums; none if the class is not only reduced.
    op: Option<AtomicOp>,
    /// A place of the target that is computed the same way for all atomics.
    place: Value,
    atomics: Vec<Inst>,
}

fn reduce(
    func: &mut Function,
    cx: &PassCx<'_>,
    body: Region,
    at: usize,
    accumulators: &mut SecondaryMap<Inst, Option<Accumulator>>,
) -> bool {
    let each = func.regions[body].insts[at];
    let Op::Each { body: inner } = func[each] else {
        unreachable!("the caller looked")
    };
    if calls(func, inner) {
        return false;
    }
    let mut inside = SecondaryMap::new();
    defined_in(func, inner, &mut inside);
    let uses = func.use_counts();

    let mut targets: Vec<Target> = Vec::new();
    walk(func, inner, &mut |func, inst| {
        let op = match func[inst] {
            Op::Atomic { op, place, .. } => {
                let unused = func.insts[inst].results.iter().all(|&r| uses[r] == 0);
                let op = if op == AtomicOp::Sub {
                    AtomicOp::Add
                } else {
                    op
                };
                Some(op).filter(|&op| {
                    unused
                        // Each sum is rounded there.
                        && !is_quantised(func, cx.env, place)
                        && op.identity(func.elem(func.insts[inst].results[0])).is_some()
                        && is_fixed(func, &inside, place)
                })
            }
            _ => None,
        };
        for &place in touched(&func[inst]) {
            let classes = classes(func, cx.env, place);
            // A place that may lie in several classes stands for none of them.
            let op = op.filter(|_| classes.len() == 1);
            for class in classes {
                match targets.iter_mut().find(|t| t.class == class) {
                    None => targets.push(Target {
                        class,
                        op,
                        place,
                        atomics: vec![inst],
                    }),
                    Some(t) => {
                        if t.op != op || !same_place(func, t.place, place) {
                            t.op = None;
                        }
                        t.atomics.push(inst);
                    }
                }
            }
        }
    });
    targets.retain(|t| {
        // The first update activates a sparse cell, even an update by the identity element.
        let sparse = match t.class {
            Class::Place(p) => cx.env.trees[p.tree].is_below_sparse(p.node),
            _ => false,
        };
        t.op.is_some() && (!sparse || runs_always(func, inner, &t.atomics))
    });
    if targets.is_empty() {
        return false;
    }
    let there: Vec<bool> = targets
        .iter()
        .map(|t| is_in_bounds(func, cx.env, t.place) || runs_always(func, inner, &t.atomics))
        .collect();
    let tail = func.regions[body].insts.split_off(at);
    let mut b = Builder::new(func, body);
    let made: Vec<Accumulator> = targets.iter().map(|t| begin(&mut b, t)).collect();
    for (target, &accumulator) in targets.iter().zip(&made) {
        for &atomic in &target.atomics {
            accumulators[atomic] = Some(accumulator);
        }
    }
    let (&each, after) = tail.split_first().expect("the loop is there");
    b.append(each);
    for ((target, accumulator), is_there) in targets.iter().zip(made).zip(there).rev() {
        flush(&mut b, target, accumulator, is_there);
    }
    func.regions[body].insts.extend(after);
    true
}

/// Makes an accumulator that holds the neutral number.
fn begin(b: &mut Builder<'_>, target: &Target) -> Accumulator {
    let atomic = target.atomics[0];
    b.span = b.func.insts[atomic].span;
    let (op, elem) = (target.op.expect("kept"), elem(b.func, target));
    let place = b.local(elem.into());
    let neutral = b.constant(op.identity(elem).expect("kept"));
    b.store(place, neutral);
    Accumulator { op, place }
}

fn elem(func: &Function, target: &Target) -> ScalarType {
    func.elem(func.insts[target.atomics[0]].results[0])
}

/// Ends a part: what was gathered goes to the target.
fn flush(b: &mut Builder<'_>, target: &Target, accumulator: Accumulator, is_there: bool) {
    b.span = b.func.insts[target.atomics[0]].span;
    let (op, elem) = (accumulator.op, elem(b.func, target));
    let value = b.load(accumulator.place);
    let write = |b: &mut Builder<'_>| {
        let place = copy_place(b, target.place);
        b.value(Op::Atomic { op, place, value }, elem.into());
    };
    // A smallest or largest number that has not been met must not replace a NaN either.
    let number = elem.is_float() && matches!(op, AtomicOp::Min | AtomicOp::Max);
    if is_there && !number {
        write(b);
    } else {
        let cond = differs(b, value, op.identity(elem).expect("kept"));
        b.if_(cond, &[], write, |_| ());
    }
}

/// Whether a scalar has other bits than a constant.
fn differs(b: &mut Builder<'_>, value: Value, constant: Scalar) -> Value {
    let (mut value, mut constant) = (value, constant);
    let word = match b.func.elem(value) {
        ScalarType::F16 | ScalarType::BF16 => Some(ScalarType::U16),
        ScalarType::F32 => Some(ScalarType::U32),
        ScalarType::F64 => Some(ScalarType::U64),
        _ => None,
    };
    if let Some(word) = word {
        value = b.value(Op::Bitcast { x: value }, word.into());
        constant = eval::bitcast(constant, word);
    }
    let constant = b.constant(constant);
    b.compare(CompareOp::Ne, value, constant)
}

#[cfg(test)]
mod tests;
