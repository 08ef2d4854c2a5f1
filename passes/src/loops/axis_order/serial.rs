//! Nests of serial loops, whose iterations may depend on each other.
//!
//! ```text
//! for j in 0..m { for i in 0..n { b[i, j] = b[i - 1, j] + a[i, j] } }
//!     ==>    for i in 0..n { for j in 0..m { b[i, j] = b[i - 1, j] + a[i, j] } }
//! ```
//! Two iterations that access one element, of which one writes it, must keep their order. How far they are apart along
//! each axis is known where the indices are the counters plus constants; along an axis that is no index they may be apart in
//! both directions. A permutation is legal if it keeps the sign of every such distance: the sign of its first number other
//! than zero (direction vectors: Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, chapter 5).
//!
//! Values that all loops of a nest carry must be sums, or minima or maxima, whose terms may be regrouped.

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::access::{classes, defined_in};
use aerogel_ir::analysis::affine::counted_from;
use aerogel_ir::{
    BinaryOp, Effect, FastMath, Function, Inst, Op, Region, Type, Value, replace_values, walk,
};

use super::{above, accesses, indices, is_long, order};
use crate::PassCx;
use crate::simplify::counted_whiles::may_break;

/// Nests of more loops are not looked at as a whole.
const MOST_AXES: usize = 4;

pub(super) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    // Neighbouring threads of a GPU, not iterations, should access neighbouring elements.
    if cx.options.shared_memory {
        return false;
    }
    visit(func, cx, func.body, cx.env.fast_math)
}

fn visit(func: &mut Function, cx: &PassCx<'_>, region: Region, level: FastMath) -> bool {
    let mut changed = false;
    for inst in func.regions[region].insts.clone() {
        let level = match &func[inst] {
            Op::Parallel { attrs, .. } => attrs.fast_math.unwrap_or(level),
            _ => level,
        };
        changed |= permute(func, cx, region, inst, level);
        for owned in func.owned(inst) {
            changed |= visit(func, cx, owned, level);
        }
    }
    changed
}

/// The place of an axis in a nest.
#[derive(Clone, Copy)]
enum Slot {
    /// One of those of a serial loop over several axes.
    Serial(Inst, usize),
    For(Inst),
}

/// Loops that are each all of the body of the one outside, but for arithmetic and loads before it.
struct Nest {
    slots: Vec<Slot>,
    counters: Vec<Value>,
    ends: Vec<[Value; 2]>,
    /// The bodies, from outside to inside; the last one has the same axes as the nest.
    bodies: Vec<Region>,
}

/// Permutes the loops of the nest that begins with an instruction.
fn permute(
    func: &mut Function,
    cx: &PassCx<'_>,
    region: Region,
    inst: Inst,
    level: FastMath,
) -> bool {
    let Some(nest) = Nest::of(func, inst) else {
        return false;
    };
    let n = nest.counters.len();
    let is_i32 = |&counter: &Value| func.ty(counter) == Type::I32;
    if !(2..=MOST_AXES).contains(&n) || !nest.counters.iter().all(is_i32) {
        return false;
    }
    let (outermost, innermost) = (nest.bodies[0], nest.innermost());
    let mut inside = SecondaryMap::new();
    defined_in(func, outermost, &mut inside);
    let is_fixed = |end: &Value| !inside[*end] || func.as_const(*end).is_some();
    if !nest.ends.iter().flatten().all(is_fixed) || !sums_are_free(func, &nest, level) {
        return false;
    }
    let Some(found) = accesses(func, cx, outermost, &nest.counters, false) else {
        return false;
    };
    // A loop that walks over nothing, such as one over time, would only keep the innermost one from vectors.
    let walks = |k: usize| {
        let mut bits = found.all.iter().flat_map(|access| &access.indices);
        bits.any(|bits| bits & 1 << k != 0)
    };
    let suits = |k: usize| walks(k) && is_long(func, nest.ends[k]);
    let Some(better) = order(&found.all, n, suits) else {
        return false;
    };
    let Some(distances) = distances(func, cx, &nest, &found.elements, &inside) else {
        return false;
    };
    // The order that suits memory; or else the best axis innermost, and the others as they are.
    let best = better[n - 1];
    let last: Vec<usize> = (0..n).filter(|&k| k != best).chain([best]).collect();
    let is_legal = |order: &&Vec<usize>| distances.iter().all(|d| keeps_sign(d, order));
    let Some(order) = [&better, &last].into_iter().find(is_legal).cloned() else {
        return false;
    };
    nest.write(func, region, &order);
    debug_assert_eq!(nest.innermost(), innermost);
    true
}

impl Nest {
    fn of(func: &Function, inst: Inst) -> Option<Self> {
        let mut nest = Self {
            slots: Vec::new(),
            counters: Vec::new(),
            ends: Vec::new(),
            bodies: Vec::new(),
        };
        let mut next = Some(inst);
        while let Some(inst) = next {
            let body = match func[inst] {
                Op::Parallel {
                    ref lo,
                    ref hi,
                    attrs,
                    body,
                } if attrs.serial => {
                    let params = &func.regions[body].params;
                    for (k, ((&lo, &hi), &counter)) in lo.iter().zip(hi).zip(params).enumerate() {
                        nest.slots.push(Slot::Serial(inst, k));
                        nest.ends.push([lo, hi]);
                        nest.counters.push(counter);
                    }
                    body
                }
                Op::For {
                    lo, hi, step, body, ..
                } if func.as_const(step).is_some_and(|step| step.is_one())
                    && !may_break(func, body) =>
                {
                    nest.slots.push(Slot::For(inst));
                    nest.ends.push([lo, hi]);
                    nest.counters.push(func.regions[body].params[0]);
                    body
                }
                _ => break,
            };
            nest.bodies.push(body);
            next = inner(func, inst, body);
        }
        (!nest.bodies.is_empty()).then_some(nest)
    }

    fn innermost(&self) -> Region {
        *self.bodies.last().expect("a nest has loops")
    }

    /// What a loop of the nest carries.
    fn carried<'f>(&self, func: &'f Function, body: Region) -> &'f [Value] {
        let params = &func.regions[body].params;
        match (self.slots[0], self.bodies[0] == body) {
            (Slot::Serial(..), true) => &[],
            _ => &params[1..],
        }
    }

    /// Gives the axes new places: `order` says which axis each place gets.
    fn write(&self, func: &mut Function, region: Region, order: &[usize]) {
        let innermost = self.innermost();
        // What stands between the loops is computed inside of all.
        let (_, outer) = self.bodies.split_last().expect("a nest has loops");
        let mut sunk = Vec::new();
        for &body in outer {
            let insts = std::mem::take(&mut func.regions[body].insts);
            let at = insts.len() - 2;
            sunk.extend_from_slice(&insts[..at]);
            func.regions[body].insts = insts[at..].to_vec();
        }
        sunk.append(&mut func.regions[innermost].insts);
        func.regions[innermost].insts = sunk;
        let new = |(&place, &axis): (&Value, &usize)| (self.counters[axis], place);
        let pairs: Vec<_> = self.counters.iter().zip(order).map(new).collect();
        replace_values(func, innermost, &pairs);
        // Bounds are known before the nest: those that are not made there are constants.
        let (Slot::Serial(first, _) | Slot::For(first)) = self.slots[0];
        for (place, &axis) in order.iter().enumerate() {
            let [new_lo, new_hi] = self.ends[axis].map(|end| above(func, region, first, end));
            match self.slots[place] {
                Slot::Serial(inst, k) => {
                    if let Op::Parallel { lo, hi, .. } = &mut func.insts[inst].op {
                        (lo[k], hi[k]) = (new_lo, new_hi);
                    }
                }
                Slot::For(inst) => {
                    let Op::For { step, .. } = func[inst] else {
                        continue;
                    };
                    let one = above(func, region, first, step);
                    if let Op::For { lo, hi, step, .. } = &mut func.insts[inst].op {
                        (*lo, *hi, *step) = (new_lo, new_hi, one);
                    }
                }
            }
        }
    }
}

/// The loop that is all of the body of another one, and carries what that carries.
fn inner(func: &Function, outer: Inst, body: Region) -> Option<Inst> {
    let &[ref before @ .., last, _] = &func.regions[body].insts[..] else {
        return None;
    };
    let Op::For { ref init, .. } = func[last] else {
        return None;
    };
    let carried = match func[outer] {
        Op::For { .. } => &func.regions[body].params[1..],
        _ => &[],
    };
    let only_reads = |&inst: &Inst| matches!(func[inst].effect(), Effect::Pure | Effect::Reads);
    let hands_on = func.yielded(body)? == &func.insts[last].results[..] && init == carried;
    (hands_on && before.iter().all(only_reads)).then_some(last)
}

/// Whether the terms of what a nest carries may be added in any order.
fn sums_are_free(func: &Function, nest: &Nest, level: FastMath) -> bool {
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::new();
    let mut user: SecondaryMap<Value, Option<Inst>> = SecondaryMap::new();
    walk(func, nest.bodies[0], &mut |func, inst| {
        func[inst].operands(|v| {
            uses[v] += 1;
            user[v] = Some(inst);
        });
    });
    let is_free = |param: Value| {
        let mut value = param;
        let mut kind = None;
        loop {
            let Some(inst) = user[value].filter(|_| uses[value] == 1) else {
                return false;
            };
            match func[inst] {
                Op::Binary { op, lhs, .. } => {
                    let is_float = func.ty(value).scalar().is_some_and(ScalarType::is_float);
                    let op = match op {
                        BinaryOp::Sub if lhs == value => BinaryOp::Add,
                        BinaryOp::Add | BinaryOp::Min | BinaryOp::Max => op,
                        BinaryOp::Mul | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor
                            if !is_float =>
                        {
                            op
                        }
                        _ => return false,
                    };
                    let is_other = kind.replace(op).is_some_and(|before| before != op);
                    if is_other || is_float && level == FastMath::Off {
                        return false;
                    }
                    value = func.insts[inst].results[0];
                }
                Op::Yield { .. } => break,
                _ => return false,
            }
        }
        let at = nest.carried(func, nest.innermost());
        let at = at.iter().position(|&p| p == param);
        let yielded = func.yielded(nest.innermost());
        at.zip(yielded)
            .is_some_and(|(at, values)| values[at] == value)
    };
    // Other loops only hand them on.
    let handed_on = |&body: &Region| nest.carried(func, body).iter().all(|&v| uses[v] == 1);
    let innermost = nest.carried(func, nest.innermost());
    nest.bodies.iter().all(handed_on) && innermost.iter().all(|&param| is_free(param))
}

/// How far apart iterations are that access one element, for each pair of accesses of which one writes; nothing if that
/// cannot be said. Along an axis without a number they may be apart in any way.
fn distances(
    func: &Function,
    cx: &PassCx<'_>,
    nest: &Nest,
    elements: &[(Value, bool)],
    inside: &SecondaryMap<Value, bool>,
) -> Option<Vec<Vec<Option<i64>>>> {
    let n = nest.counters.len();
    let mut all: Vec<Vec<Option<i64>>> = Vec::new();
    let mut innermost = SecondaryMap::new();
    defined_in(func, nest.innermost(), &mut innermost);
    for (k, &(a, a_written)) in elements.iter().enumerate() {
        for &(b, b_written) in &elements[k..] {
            let other = classes(func, cx.env, b);
            let meet = classes(func, cx.env, a)
                .iter()
                .any(|class| other.contains(class));
            if !meet || !(a_written || b_written) {
                continue;
            }
            // What is read before the innermost loop would be read in another order than it says.
            if !(innermost[a] && innermost[b]) {
                return None;
            }
            let mut distance = vec![None; n];
            let mut is_possible = true;
            if same_base(func, a, b) {
                for (&a, &b) in indices(func, a).iter().zip(indices(func, b)) {
                    let ((from, x), (to, y)) = (counted_from(func, a), counted_from(func, b));
                    if from != to {
                        continue;
                    }
                    match nest.counters.iter().position(|&counter| counter == from) {
                        Some(axis) => {
                            let by = x - y;
                            is_possible &= distance[axis].is_none_or(|known| known == by);
                            distance[axis] = Some(by);
                        }
                        None => is_possible &= inside[from] || x == y,
                    }
                }
            }
            if is_possible && !all.contains(&distance) {
                all.push(distance);
            }
        }
    }
    Some(all)
}

/// Whether two elements are of one field or array: then they are the same only if their indices are.
fn same_base(func: &Function, a: Value, b: Value) -> bool {
    match (func.def_op(a), func.def_op(b)) {
        (Some(Op::FieldAt { field: a, .. }), Some(Op::FieldAt { field: b, .. })) => a == b,
        (Some(Op::ArrayAt { array: a, .. }), Some(Op::ArrayAt { array: b, .. })) => a == b,
        _ => false,
    }
}

/// Whether an order of the axes keeps which of two iterations is the first.
fn keeps_sign(distance: &[Option<i64>], order: &[usize]) -> bool {
    let any = distance.iter().filter(|by| by.is_none()).count();
    (0..3_usize.pow(any as u32)).all(|mut number| {
        let signs: Vec<i64> = distance
            .iter()
            .map(|by| match by {
                Some(by) => by.signum(),
                None => {
                    let sign = (number % 3) as i64 - 1;
                    number /= 3;
                    sign
                }
            })
            .collect();
        let first = |sign: &i64| *sign != 0;
        let before = signs.iter().copied().find(first);
        let after = order.iter().map(|&k| signs[k]).find(first);
        before == after
    })
}

#[cfg(test)]
mod tests;
