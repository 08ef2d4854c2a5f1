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
use aerogel_ir::analysis::access::{
    Class, calls, classes, constant_element, defined_in, is_quantised, touched,
};
use aerogel_ir::{
    AtomicOp, Builder, CompareOp, Effect, Env, Function, Inst, Op, Region, Rewrite, Value, eval,
    rewrite, walk,
};

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
            unreachable!("only atomics are kept")
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
        // A sparse cell is activated by the first change, be it one that changes nothing.
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

/// Whether a place is the same in every iteration.
fn is_fixed(func: &Function, inside: &SecondaryMap<Value, bool>, place: Value) -> bool {
    let fixed = |v: &Value| !inside[*v] || func.as_const(*v).is_some();
    match func.def_op(place) {
        Some(Op::TempAt { .. }) => true,
        Some(Op::FieldAt { indices, .. } | Op::ArrayAt { indices, .. }) => {
            indices.iter().all(fixed)
        }
        Some(Op::ElemRef { base, index }) => {
            is_fixed(func, inside, *base) && index.iter().all(fixed)
        }
        _ => false,
    }
}

/// Whether two fixed places are computed alike.
fn same_place(func: &Function, a: Value, b: Value) -> bool {
    let same = |x: Value, y: Value| {
        x == y || func.as_const(x).is_some() && func.as_const(x) == func.as_const(y)
    };
    let all = |x: &[Value], y: &[Value]| x.iter().zip(y).all(|(&x, &y)| same(x, y));
    match (func.def_op(a), func.def_op(b)) {
        _ if a == b => true,
        (Some(Op::TempAt { offset: x }), Some(Op::TempAt { offset: y })) => x == y,
        (
            Some(Op::FieldAt {
                field: f,
                indices: x,
            }),
            Some(Op::FieldAt {
                field: g,
                indices: y,
            }),
        ) => f == g && all(x, y),
        (
            Some(Op::ArrayAt {
                array: f,
                indices: x,
            }),
            Some(Op::ArrayAt {
                array: g,
                indices: y,
            }),
        ) => f == g && all(x, y),
        (Some(Op::ElemRef { base: f, index: x }), Some(Op::ElemRef { base: g, index: y })) => {
            same_place(func, *f, *g) && all(x, y)
        }
        _ => false,
    }
}

/// Whether a fixed place exists whatever the program checked beforehand.
fn is_in_bounds(func: &Function, env: &Env, place: Value) -> bool {
    match func.def_op(place) {
        Some(Op::TempAt { .. }) => true,
        Some(Op::FieldAt { field, indices }) => {
            let offset = |k: usize| env.fields[*field].offset.get(k).copied().unwrap_or(0);
            let shape = env.shape(*field).into_iter().enumerate();
            indices.iter().zip(shape).all(|(&i, (k, extent))| {
                let lo = i128::from(offset(k));
                func.as_const(i)
                    .is_some_and(|i| (lo..lo + i128::from(extent)).contains(&i.as_i128()))
            })
        }
        Some(Op::ElemRef { base, index }) => {
            is_in_bounds(func, env, *base) && constant_element(func, *base, index).is_some()
        }
        _ => false,
    }
}

/// Whether each iteration runs one of the instructions: nothing before it may leave or be skipped.
fn runs_always(func: &Function, body: Region, insts: &[Inst]) -> bool {
    func.regions[body]
        .insts
        .iter()
        .take_while(|&&i| !func[i].may_exit() && func[i].effect() != Effect::Control)
        .any(|i| insts.contains(i))
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

/// A copy of the instructions that compute a fixed place.
fn copy_place(b: &mut Builder<'_>, place: Value) -> Value {
    let made = b.func.def_op(place);
    let mut op = made.expect("a place is made by an instruction").clone();
    op.map_operands(|v| {
        if b.func.as_const(v).is_some() || b.func.ty(v).pointee().is_some() {
            copy_place(b, v)
        } else {
            v
        }
    });
    let ty = b.func.ty(place);
    b.value(op, ty)
}

#[cfg(test)]
mod tests;
