//! Counters whose old values are used take one atomic addition for a block of iterations.
//!
//! ```text
//! parallel [v0], [v1] (v2: i32) {          parallel [0], [n_blocks] (v5: i32) {
//!     v3 = load x[v2]                          for i in block { v3 = load x[i]  sum += v3 }
//!     v4 = atomic_add n, v3         ==>        run = atomic_add n, sum
//!     store y[v2], v4                          for i in block { v3 = load x[i]  v4 = run  run += v3  store y[i], v4 }
//! }                                        }
//! ```
//! In which order parallel iterations count is not said, so those of a block may do so one after the other. It holds for
//! integers in loops that touch the counter in no other way, where what is added, and whether it is, can be computed twice:
//! of values, and of memory that the loop does not write. The loop's other work is small, or the atomics would not matter.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::access::{
    Class, classes, defined_in, has_classes, is_quantised, touched, writes,
};
use aerogel_ir::analysis::cost;
use aerogel_ir::{
    AtomicOp, BinaryOp, Builder, CompareOp, Effect, Env, Function, Inst, Op, Region, Rewrite, Type,
    Value, copy_region, replace_values, rewrite, walk,
};

use super::fixed_places::{are_apart, copy_place, is_fixed, is_in_bounds, runs_always, same_place};
use crate::PassCx;
use crate::simplify::promote_locals;

/// Nanoseconds that an iteration takes at most besides its atomics, roughly.
const MOST: f32 = 10.0;
/// The iterations of a block at most; shorter loops have this many blocks.
const BLOCK: i64 = 1024;
const BLOCKS: i64 = 256;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut actions: SecondaryMap<Inst, Option<Action>> = SecondaryMap::new();
    let found: Vec<Vec<Counter>> = func.regions[func.body]
        .insts
        .iter()
        .map(|&inst| match func[inst] {
            Op::Parallel { attrs, body, .. } if !attrs.serial => counters(func, cx.env, body),
            _ => Vec::new(),
        })
        .collect();
    let changed = found.iter().any(|counters| !counters.is_empty());
    let body = func.body;
    let insts = std::mem::take(&mut func.regions[body].insts);
    for (inst, counters) in insts.into_iter().zip(found) {
        if !counters.is_empty() {
            in_blocks(func, cx.env, inst, &counters, &mut actions);
        }
        func.regions[body].insts.push(inst);
    }
    if changed {
        rewrite(func, |before, inst| match actions[inst] {
            Some(action) => action.take(before, inst),
            None => Rewrite::Keep,
        });
        // What a branch adds becomes a choice between two values, which takes no branch.
        promote_locals::run(func, cx);
    }
    changed
}

/// The replacement of an instruction in the loops over the iterations of a block.
#[derive(Clone, Copy)]
enum Action {
    /// An atomic changes a local instead of its counter, and notes in another one that it has run.
    Count { sum: Value, ran: Option<Value> },
    /// It goes, where only counting matters.
    Drop,
}

impl Action {
    fn take(self, b: &mut Builder<'_>, inst: Inst) -> Rewrite {
        match (self, b.func[inst].clone()) {
            (Self::Count { sum, ran }, Op::Atomic { op, value, .. }) => {
                let op = op.binary().expect("a counter is added to");
                let old = b.load(sum);
                let new = b.binary(op, old, value);
                b.store(sum, new);
                if let Some(ran) = ran {
                    let yes = b.i32(1);
                    b.store(ran, yes);
                }
                Rewrite::Replace(vec![old])
            }
            (_, Op::Atomic { value, .. }) => {
                // Nothing that is counted depends on it.
                let zero = Scalar::zero(b.func.elem(value));
                Rewrite::Replace(vec![b.constant(zero)])
            }
            _ => Rewrite::Replace(Vec::new()),
        }
    }
}

/// A place that a loop only adds to, with the atomics that do.
struct Counter {
    class: Class,
    place: Value,
    atomics: Vec<Inst>,
}

/// The counters of a loop whose old values are used, if it can be run in blocks.
fn counters(func: &Function, env: &Env, body: Region) -> Vec<Counter> {
    let mut found: Vec<Counter> = Vec::new();
    let mut touched_otherwise: Vec<Class> = Vec::new();
    let mut is_simple = true;
    let mut inside = SecondaryMap::new();
    defined_in(func, body, &mut inside);
    walk(func, body, &mut |func, inst| {
        let op = &func[inst];
        is_simple &= match op {
            Op::Store { .. } | Op::Atomic { .. } | Op::If { .. } => true,
            Op::Yield { .. } | Op::Continue { .. } => true,
            _ => matches!(
                op.effect(),
                Effect::Pure | Effect::Reads | Effect::Allocates
            ),
        };
        for &place in touched(op) {
            if !has_classes(func, place) {
                is_simple = false;
                continue;
            }
            let all = classes(func, env, place);
            let (&[class], true) = (&all[..], counts(func, env, &inside, inst)) else {
                touched_otherwise.extend(all);
                continue;
            };
            let known = found.iter_mut().find(|c| same_place(func, c.place, place));
            match known {
                Some(counter) => counter.atomics.push(inst),
                None => found.push(Counter {
                    class,
                    place,
                    atomics: vec![inst],
                }),
            }
        }
    });
    if !is_simple || cost::expected(func, body, &weight) > MOST {
        return Vec::new();
    }
    let is_alone = |counter: &Counter| {
        let same = |other: &&Counter| other.class == counter.class && other.place != counter.place;
        !touched_otherwise.contains(&counter.class)
            && found
                .iter()
                .filter(same)
                .all(|other| are_apart(func, other.place, counter.place))
    };
    let alone: Vec<bool> = found.iter().map(is_alone).collect();
    let mut alone = alone.into_iter();
    found.retain(|_| alone.next() == Some(true));
    let uses = func.use_counts();
    let is_used = |&inst: &Inst| uses[func.insts[inst].results[0]] > 0;
    found.retain(|counter| {
        counter.atomics.iter().any(is_used) && can_count_twice(func, env, body, &inside, counter)
    });
    found
}

/// Nanoseconds of an instruction that may run twice.
fn weight(op: &Op) -> f32 {
    match op {
        Op::Atomic { .. } => 0.0,
        Op::Unary { .. } if !cost::is_cheap(op) => 4.0,
        Op::Binary { .. } if !cost::is_cheap(op) => 2.0,
        _ => cost::one(op),
    }
}

/// Whether an instruction adds to an integer at a place that is the same in every iteration.
fn counts(func: &Function, env: &Env, inside: &SecondaryMap<Value, bool>, inst: Inst) -> bool {
    let Op::Atomic { op, place, value } = func[inst] else {
        return false;
    };
    let elem = func.elem(value);
    // The first update activates a sparse cell, even an update by the identity element.
    let sparse = classes(func, env, place).iter().any(|class| match class {
        Class::Place(p) => env.trees[p.tree].is_below_sparse(p.node),
        _ => false,
    });
    matches!(op, AtomicOp::Add | AtomicOp::Sub)
        && func.ty(value) == Type::Scalar(elem)
        && elem.is_int()
        && elem != ScalarType::U1
        && !is_quantised(func, env, place)
        && !sparse
        && is_fixed(func, inside, place)
}

/// Whether all that decides what is added to a counter is the same when it is computed once more.
fn can_count_twice(
    func: &Function,
    env: &Env,
    body: Region,
    inside: &SecondaryMap<Value, bool>,
    counter: &Counter,
) -> bool {
    let written = writes(func, env, body);
    let mut needed: Vec<Value> = Vec::new();
    walk(func, body, &mut |func, inst| match func[inst] {
        Op::Atomic { value, .. } if counter.atomics.contains(&inst) => needed.push(value),
        Op::If { cond, .. } if decides(func, inst, counter) => needed.push(cond),
        _ => {}
    });
    let mut seen: SecondaryMap<Value, bool> = SecondaryMap::new();
    while let Some(value) = needed.pop() {
        if !inside[value] || std::mem::replace(&mut seen[value], true) {
            continue;
        }
        // An index of the loop.
        let Some(def) = func.def(value) else {
            continue;
        };
        match &func[def] {
            Op::If {
                cond,
                then,
                otherwise,
            } => {
                let results = func.insts[def].results.iter();
                let at = results.clone().position(|&r| r == value);
                needed.push(*cond);
                let yielded = [then, otherwise].map(|&side| func.yielded(side));
                let values = yielded.into_iter().flatten();
                needed.extend(values.filter_map(|all| all.get(at?).copied()));
            }
            Op::Load { place } => {
                let all = classes(func, env, *place);
                if all.iter().any(|class| written.classes.contains(class)) {
                    return false;
                }
                needed.push(*place);
            }
            op if op.effect() == Effect::Pure => op.operands(|v| needed.push(v)),
            _ => return false,
        }
    }
    true
}

/// Whether an `if` decides about a counter: it holds one of the atomics, or leaves the iteration before others.
fn decides(func: &Function, branch: Inst, counter: &Counter) -> bool {
    let mut found = false;
    for side in func.owned(branch) {
        walk(func, side, &mut |func, inst| {
            found |= counter.atomics.contains(&inst) || func[inst].may_exit();
        });
    }
    found
}

/// Makes a loop one over blocks of its iterations; what computes how many stands before it.
fn in_blocks(
    func: &mut Function,
    env: &Env,
    inst: Inst,
    counters: &[Counter],
    actions: &mut SecondaryMap<Inst, Option<Action>>,
) {
    let Op::Parallel {
        lo,
        hi,
        attrs,
        body,
    } = func[inst].clone()
    else {
        unreachable!("the caller looked")
    };
    let span = func.insts[inst].span;
    let is_there: Vec<bool> = counters
        .iter()
        .map(|c| is_in_bounds(func, env, c.place) || runs_always(func, body, &c.atomics))
        .collect();
    let wide = Type::Scalar(ScalarType::I64);
    let outer = func.body;
    let mut b = Builder::new(func, outer);
    b.span = span;
    let first = b.cast(lo[0], wide);
    let (rows, blocks, n) = division(&mut b, &lo, &hi);
    let narrow = b.func.ty(lo[0]);
    let blocks = b.cast(blocks, narrow);
    let none = b.constant(Scalar::int(b.func.elem(lo[0]), 0));
    let copy = copy_region(b.func, body);
    let of_block = b.region(&[narrow], |b, params| {
        let at = b.cast(params[0], wide);
        let done = b.binary(BinaryOp::Mul, at, rows);
        let left = b.binary(BinaryOp::Sub, n, done);
        let count = b.binary(BinaryOp::Min, rows, left);
        let begin = b.binary(BinaryOp::Add, first, done);
        let end = b.binary(BinaryOp::Add, begin, count);
        let (begin, end) = (b.cast(begin, narrow), b.cast(end, narrow));
        let mut bounds: Vec<(Value, Value)> = lo.iter().copied().zip(hi.iter().copied()).collect();
        bounds[0] = (begin, end);
        let locals: Vec<(Value, Option<Value>)> = counters
            .iter()
            .zip(&is_there)
            .map(|(counter, &is_there)| {
                let elem = elem_of(b.func, counter);
                let zero = b.constant(Scalar::zero(elem));
                let sum = b.local(elem.into());
                b.store(sum, zero);
                (sum, (!is_there).then(|| b.local(Type::I32)))
            })
            .collect();
        count_only(b.func, copy, counters, &locals, actions);
        nest(b, &bounds, copy);
        for (counter, &(sum, ran)) in counters.iter().zip(&locals) {
            let count = |b: &mut Builder<'_>| {
                let place = copy_place(b, counter.place);
                let value = b.load(sum);
                let op = AtomicOp::Add;
                let old = b.value(Op::Atomic { op, place, value }, b.func.ty(value));
                b.store(sum, old);
            };
            match ran {
                Some(ran) => {
                    let (ran, no) = (b.load(ran), b.i32(0));
                    let has_run = b.compare(CompareOp::Ne, ran, no);
                    b.if_(has_run, &[], count, |_| ());
                }
                None => count(b),
            }
            for &atomic in &counter.atomics {
                actions[atomic] = Some(Action::Count { sum, ran: None });
            }
        }
        nest(b, &bounds, body);
    });
    func.insts[inst].op = Op::Parallel {
        lo: vec![none],
        hi: vec![blocks],
        attrs,
        body: of_block,
    };
}

/// How many indices of the first axis a block has, how many blocks there are, and how many indices in all.
fn division(b: &mut Builder<'_>, lo: &[Value], hi: &[Value]) -> (Value, Value, Value) {
    let wide = Type::Scalar(ScalarType::I64);
    let number = |b: &mut Builder<'_>, n: i64| b.constant(Scalar::int(ScalarType::I64, n.into()));
    let one = number(b, 1);
    let mut lengths = Vec::new();
    for (&lo, &hi) in lo.iter().zip(hi) {
        let (lo, hi) = (b.cast(lo, wide), b.cast(hi, wide));
        lengths.push(b.binary(BinaryOp::Sub, hi, lo));
    }
    // Iterations of one index of the first axis.
    let mut each = one;
    for &length in &lengths[1..] {
        let length = b.binary(BinaryOp::Max, length, one);
        each = b.binary(BinaryOp::Mul, each, length);
    }
    let n = lengths[0];
    let [blocks, most] = [BLOCKS, BLOCK].map(|n| number(b, n));
    let all = b.binary(BinaryOp::Mul, n, each);
    let share = b.binary(BinaryOp::FloorDiv, all, blocks);
    let share = b.binary(BinaryOp::Min, share, most);
    let rows = b.binary(BinaryOp::FloorDiv, share, each);
    let rows = b.binary(BinaryOp::Max, rows, one);
    let up = b.binary(BinaryOp::Sub, rows, one);
    let up = b.binary(BinaryOp::Add, n, up);
    (rows, b.binary(BinaryOp::FloorDiv, up, rows), n)
}

/// Appends loops over bounds, whose innermost body is that of a parallel loop.
fn nest(b: &mut Builder<'_>, bounds: &[(Value, Value)], body: Region) {
    let indices = std::mem::take(&mut b.func.regions[body].params);
    let mut counters = Vec::new();
    level(b, bounds, body, &mut counters);
    let pairs: Vec<(Value, Value)> = indices.into_iter().zip(counters).collect();
    replace_values(b.func, body, &pairs);
}

fn level(b: &mut Builder<'_>, bounds: &[(Value, Value)], body: Region, counters: &mut Vec<Value>) {
    let (&(lo, hi), inner) = bounds.split_first().expect("a loop has an axis");
    if !inner.is_empty() {
        return b.for_(lo, hi, |b, counter| {
            counters.push(counter);
            level(b, inner, body, counters);
        });
    }
    let counter = b.func.add_param(body, b.func.ty(lo));
    counters.push(counter);
    let step = b.constant(Scalar::int(b.func.elem(lo), 1));
    let init = Vec::new();
    b.effect(Op::For {
        lo,
        hi,
        step,
        init,
        body,
    });
}

/// Lets a copy of a loop's body only count, in locals.
fn count_only(
    func: &Function,
    copy: Region,
    counters: &[Counter],
    locals: &[(Value, Option<Value>)],
    actions: &mut SecondaryMap<Inst, Option<Action>>,
) {
    walk(func, copy, &mut |func, inst| {
        actions[inst] = match func[inst] {
            Op::Store { .. } => Some(Action::Drop),
            Op::Atomic { place, .. } => {
                let at = counters
                    .iter()
                    .position(|c| same_place(func, c.place, place));
                Some(at.map_or(Action::Drop, |at| {
                    let (sum, ran) = locals[at];
                    Action::Count { sum, ran }
                }))
            }
            _ => None,
        };
    });
}

fn elem_of(func: &Function, counter: &Counter) -> ScalarType {
    func.elem(func.insts[counter.atomics[0]].results[0])
}

#[cfg(test)]
mod tests;
