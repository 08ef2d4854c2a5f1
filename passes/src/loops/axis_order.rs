//! The axes of parallel loops come into the order of memory.
//!
//! ```text
//! parallel [0, 0], [m, n] (j, i) { b[i, j] = a[i, j] }
//!     ==>    parallel [0, 0], [n, m] (i, j) { b[i, j] = a[i, j] }
//! ```
//! Neighbouring iterations then touch neighbouring elements, instead of one element in each row. This is loop permutation
//! (Kennedy and McKinley, Optimizing for Parallelism and Data Locality, ICS 1992), with their cost: cache lines that the
//! innermost loop touches. A serial loop that is all of a parallel loop's body counts as one more axis:
//!
//! ```text
//! parallel [0], [m] (j) { for i in 0..n { b[i, j] = a[i, j] } }    ==>    the same
//! ```
//! The loop also becomes an axis if its iterations have loops inside: those of a parallel loop run through them many at once.
//! So it does if one access goes along memory and another across: those of a parallel loop are walked in tiles.
//!
//! Iterations must not affect each other: they store only to elements of their own, which no other iteration accesses, and
//! otherwise only add to memory (or keep minima, maxima or bits). So results stay the same to the bit, even those that depend on
//! the order of a loop on one thread, but for sums that parallel iterations make, whose order is not fixed.
//!
//! Nests of serial loops are permuted as well (`serial`), if that keeps the order of iterations that depend on each other.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::{LookupMap, LookupSet};
use aerogel_ir::analysis::access::{
    Class, classes, defined_in, has_classes, is_quantised, touched,
};
use aerogel_ir::analysis::affine::counted_from;
use aerogel_ir::analysis::trips::iterations_within;
use aerogel_ir::{AtomicOp, Effect, Function, Inst, Op, Region, Type, Value, replace_values, walk};

use super::elements;
use crate::PassCx;

/// Elements of a cache line: what an access costs more if the innermost loop takes it from line to line.
const LINE: u32 = 16;
/// The same for what is written: a line that is written in parts is read before and written back.
const WRITTEN_LINE: u32 = 3 * LINE;
/// A row of fewer iterations is no place for the innermost loop.
const SHORTEST: i128 = 16;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut changed = false;
    for inst in func.regions[func.body].insts.clone() {
        if let Op::Parallel { attrs, .. } = func[inst]
            && !attrs.serial
        {
            // A loop inside of what was an inner loop may become an axis, too.
            while reorder(func, cx, inst) {
                changed = true;
            }
        }
    }
    serial::run(func, cx) | changed
}

/// Reorders the axes of one loop.
fn reorder(func: &mut Function, cx: &PassCx<'_>, inst: Inst) -> bool {
    let Op::Parallel {
        lo,
        hi,
        attrs,
        body,
    } = func[inst].clone()
    else {
        unreachable!("the caller looked")
    };
    let inner = inner_loop(func, inst, body);
    let mut axes = func.regions[body].params.clone();
    let mut ends: Vec<[Value; 2]> = lo.into_iter().zip(hi).map(|(lo, hi)| [lo, hi]).collect();
    if let Some(inner) = &inner {
        axes.push(inner.counter);
        ends.push(inner.ends);
    }
    if axes.len() < 2 || axes.iter().any(|&axis| func.ty(axis) != Type::I32) {
        return false;
    }
    let Some(accesses) = accesses(func, cx, body, &axes, true) else {
        return false;
    };
    let long = |ends: &[Value; 2]| is_long(func, *ends);
    // Neighbouring threads of a GPU that add to one element would wait for each other.
    if accesses.adds && cx.options.shared_memory {
        return false;
    }
    let better = order(&accesses.all, axes.len(), |k| long(&ends[k]));
    // Iterations with loops inside run many at once where they are those of the parallel loop, whose iterations are also
    // walked in tiles.
    let gains = inner.as_ref().is_some_and(|inner| {
        let is_nest = iterations_within(func, inner.body) != Some(0);
        long(&inner.ends) && (is_nest || !accesses.adds && goes_across(&accesses.all, axes.len()))
    });
    let as_it_is = || gains.then(|| (0..axes.len()).collect());
    let Some(order) = better.or_else(as_it_is) else {
        return false;
    };
    let mut region = body;
    if let Some(inner) = inner {
        region = inner.body;
        if let Some(last) = ends.last_mut() {
            *last = last.map(|end| above(func, func.body, inst, end));
        }
        unite(func, body, &inner, &mut axes);
    }
    func.set_params(region, order.iter().map(|&k| axes[k]).collect());
    func.insts[inst].op = Op::Parallel {
        lo: order.iter().map(|&k| ends[k][0]).collect(),
        hi: order.iter().map(|&k| ends[k][1]).collect(),
        attrs,
        body: region,
    };
    true
}

/// Whether a loop has enough iterations to be the innermost one.
pub(super) fn is_long(func: &Function, [lo, hi]: [Value; 2]) -> bool {
    match (func.as_const(lo), func.as_const(hi)) {
        (Some(lo), Some(hi)) => hi.as_i128() - lo.as_i128() >= SHORTEST,
        _ => true,
    }
}

/// A value that is known before a loop of a region: constants that are made inside are made there.
fn above(func: &mut Function, region: Region, looped: Inst, value: Value) -> Value {
    let mut inside = SecondaryMap::new();
    for owned in func.owned(looped) {
        defined_in(func, owned, &mut inside);
    }
    let Some(number) = func.as_const(value).filter(|_| inside[value]) else {
        return value;
    };
    let op = Op::Const { value: number };
    let span = func.insts[looped].span;
    let made = func.new_inst(op, &[func.ty(value)], span);
    let insts = &mut func.regions[region].insts;
    let at = insts.iter().position(|&inst| inst == looped);
    insts.insert(at.expect("the loop stands there"), made);
    func.insts[made].results[0]
}

/// A serial loop that is all of a parallel loop's body.
struct InnerLoop {
    counter: Value,
    ends: [Value; 2],
    body: Region,
}

/// The loop that is all of the body of `parallel`, but for arithmetic and loads before it.
fn inner_loop(func: &Function, parallel: Inst, body: Region) -> Option<InnerLoop> {
    let (&end, insts) = func.regions[body].insts.split_last()?;
    let (&last, before) = insts.split_last()?;
    let Op::For {
        lo,
        hi,
        step,
        ref init,
        body: inner,
    } = func[last]
    else {
        return None;
    };
    // What is read there, no iteration writes: `accesses` sees to that.
    let only_reads = |&inst: &Inst| matches!(func[inst].effect(), Effect::Pure | Effect::Reads);
    let is_whole = matches!(func[end], Op::Yield { .. }) && before.iter().all(only_reads);
    let is_one = func.as_const(step).is_some_and(|step| step.as_i128() == 1);
    if !is_whole || !is_one || !init.is_empty() || breaks(func, inner) {
        return None;
    }
    // The ends must be known where the parallel loop begins.
    let insts = &func.regions[func.body].insts;
    let above = insts.iter().take_while(|&&inst| inst != parallel);
    let above: Vec<Inst> = above.copied().collect();
    let known = |value| {
        func.as_const(value).is_some() || func.def(value).is_some_and(|inst| above.contains(&inst))
    };
    (known(lo) && known(hi)).then(|| InnerLoop {
        counter: func.regions[inner].params[0],
        ends: [lo, hi],
        body: inner,
    })
}

/// Whether anything leaves the loop of a body.
fn breaks(func: &Function, body: Region) -> bool {
    func.regions[body]
        .insts
        .iter()
        .any(|&inst| match func[inst] {
            Op::Break { .. } => true,
            Op::If {
                then, otherwise, ..
            } => breaks(func, then) || breaks(func, otherwise),
            _ => false,
        })
}

/// Makes the inner loop's body that of the parallel loop; what stood before the loop stands in it.
fn unite(func: &mut Function, body: Region, inner: &InnerLoop, axes: &mut [Value]) {
    let old = std::mem::take(&mut func.regions[body].params);
    let mut insts = std::mem::take(&mut func.regions[body].insts);
    insts.truncate(insts.len() - 2);
    insts.append(&mut func.regions[inner.body].insts);
    func.regions[inner.body].insts = insts;
    let new: Vec<Value> = old
        .iter()
        .map(|&axis| func.add_param(inner.body, func.ty(axis)))
        .collect();
    axes[..new.len()].copy_from_slice(&new);
    let pairs: Vec<(Value, Value)> = old.into_iter().zip(new).collect();
    replace_values(func, inner.body, &pairs);
}

/// How one access uses the axes.
struct Access {
    /// Bits of the axes that each index depends on, in the order of memory, the fastest last.
    indices: Vec<u32>,
    is_written: bool,
}

/// What a body accesses.
struct Accesses {
    all: Vec<Access>,
    /// Whether iterations add to memory that they share.
    adds: bool,
    /// The elements that are loaded and stored, and whether each is stored; those that are added to are left out.
    elements: Vec<(Value, bool)>,
}

/// How an instruction adds to memory that iterations share, if nobody uses what was there before and the order of such
/// instructions does not matter, but for how sums are rounded.
fn sum(
    func: &Function,
    cx: &PassCx<'_>,
    inst: Inst,
    uses: &SecondaryMap<Value, u32>,
) -> Option<AtomicOp> {
    let Op::Atomic { op, place, .. } = func[inst] else {
        return None;
    };
    let used = func.insts[inst].results.iter().any(|&old| uses[old] > 0);
    let op = match op {
        AtomicOp::Sub => AtomicOp::Add,
        AtomicOp::Mul | AtomicOp::Exchange => return None,
        op => op,
    };
    // Each sum is rounded where a field is quantised.
    (!used && has_classes(func, place) && !is_quantised(func, cx.env, place)).then_some(op)
}

/// The accesses of a body; nothing if its iterations affect anything besides memory, or if `apart`, and they affect each
/// other.
fn accesses(
    func: &Function,
    cx: &PassCx<'_>,
    body: Region,
    axes: &[Value],
    apart: bool,
) -> Option<Accesses> {
    let mut bits: SecondaryMap<Value, u32> = SecondaryMap::new();
    for (k, &axis) in axes.iter().enumerate() {
        bits[axis] = 1 << k;
    }
    let (mut is_plain, mut is_known) = (true, true);
    let mut places = Vec::new();
    let mut elements = Vec::new();
    let mut made: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut all_accesses: Vec<(Value, Access)> = Vec::new();
    let mut written: LookupMap<Class, Vec<Value>> = LookupMap::default();
    // What is added to, and how; what is accessed otherwise.
    let mut added: Vec<(Class, AtomicOp)> = Vec::new();
    let mut others: LookupSet<Class> = LookupSet::default();
    let uses = func.use_counts();
    walk(func, body, &mut |func, inst| {
        let op = &func[inst];
        let mut of = 0;
        op.operands(|x| of |= bits[x]);
        // What loops and branches carry, and locals hold, may depend on anything.
        let all = u32::MAX >> (32 - axes.len());
        match *op {
            Op::Load { place } if matches!(part_of(func, place), Some(Element::Local(_))) => {
                of = all
            }
            Op::For { lo, hi, body, .. } => {
                let (&counter, carried) =
                    func.regions[body].params.split_first().expect("it counts");
                carried.iter().for_each(|&param| bits[param] = all);
                bits[counter] |= bits[lo] | bits[hi];
                of = all;
            }
            _ if op.effect() == Effect::Control => {
                op.regions(|r| func.regions[r].params.iter().for_each(|&p| bits[p] = all));
                of = all;
            }
            _ => {}
        }
        for &result in &func.insts[inst].results {
            bits[result] = of;
        }
        let sum = sum(func, cx, inst, &uses);
        for &place in touched(op) {
            if !has_classes(func, place) {
                is_known = false;
                continue;
            }
            if !matches!(op, Op::Load { .. })
                && let Some(Element::Shared(at)) = part_of(func, place)
            {
                let of_place = all_accesses.iter_mut().filter(|(place, _)| *place == at);
                of_place.for_each(|(_, access)| access.is_written = true);
            }
            for class in classes(func, cx.env, place) {
                let Some(sum) = sum else {
                    others.insert(class);
                    continue;
                };
                match added.iter().find(|(known, _)| *known == class) {
                    Some(&(_, way)) => is_plain &= way == sum,
                    None => added.push((class, sum)),
                }
            }
        }
        match op {
            Op::Atomic { .. } if sum.is_some() => {}
            Op::Store { place, .. } => match part_of(func, *place) {
                Some(Element::Shared(at))
                    if (!apart || is_own(func, at, axes)) && has_classes(func, *place) =>
                {
                    elements.push((at, true));
                    for class in classes(func, cx.env, *place) {
                        written.insert(class, indices(func, at).to_vec());
                    }
                }
                Some(Element::Local(local)) => is_plain &= made[local],
                _ => is_plain = false,
            },
            &Op::Load { place } => {
                if let Some(Element::Shared(at)) = part_of(func, place) {
                    elements.push((at, false));
                }
            }
            Op::FieldAt { .. } | Op::ArrayAt { .. } => {
                let place = func.insts[inst].results[0];
                places.push(place);
                let access = in_memory_order(func, cx, op).map(|order| {
                    let at = indices(func, place);
                    let access = Access {
                        indices: order.iter().map(|&k| bits[at[k]]).collect(),
                        is_written: false,
                    };
                    (place, access)
                });
                all_accesses.extend(access);
            }
            Op::Local {} => made[func.insts[inst].results[0]] = true,
            // Which cells are active may depend on other iterations.
            Op::Cell(_) => is_plain = false,
            op => {
                is_plain &= matches!(
                    op.effect(),
                    Effect::Pure | Effect::Reads | Effect::Allocates | Effect::Control
                ) || matches!(
                    op,
                    Op::Yield { .. } | Op::Continue { .. } | Op::Break { .. }
                );
            }
        }
    });
    // Another element of what is written may be that of another iteration.
    let is_apart = |&place: &Value| {
        let at = indices(func, place);
        let all = classes(func, cx.env, place);
        all.iter()
            .all(|class| written.get(class).is_none_or(|own| own == at))
    };
    let only_added = added.iter().all(|(class, _)| !others.contains(class));
    let only_added = added.is_empty() || is_known && only_added;
    let is_known = is_known || apart;
    let are_apart = !apart || places.iter().all(is_apart);
    (is_plain && is_known && only_added && are_apart).then(|| Accesses {
        all: all_accesses.into_iter().map(|(_, access)| access).collect(),
        adds: !added.is_empty(),
        elements,
    })
}

/// What a storage is part of.
enum Element {
    /// An element of a field or an array, by its place.
    Shared(Value),
    Local(Value),
}

fn part_of(func: &Function, place: Value) -> Option<Element> {
    let whole = elements::whole(func, place);
    match func.def_op(whole)? {
        Op::FieldAt { .. } | Op::ArrayAt { .. } => Some(Element::Shared(whole)),
        Op::Local {} => Some(Element::Local(whole)),
        _ => None,
    }
}

/// The indices of an element.
fn indices(func: &Function, place: Value) -> &[Value] {
    elements::indices(func, place).expect("an element of a field or an array")
}

/// Whether an element is that of one iteration only: each axis is one of its indices.
fn is_own(func: &Function, place: Value, axes: &[Value]) -> bool {
    let counted: Vec<Value> = indices(func, place)
        .iter()
        .map(|&index| counted_from(func, index).0)
        .collect();
    axes.iter().all(|axis| counted.contains(axis))
}

/// The numbers of an access' indices, as their axes lie in memory, the fastest last.
fn in_memory_order(func: &Function, cx: &PassCx<'_>, op: &Op) -> Option<Vec<usize>> {
    match op {
        Op::ArrayAt { indices, .. } => Some((0..indices.len()).collect()),
        Op::FieldAt { field, .. } => {
            let field = &cx.env.fields[*field];
            let path = cx.env.trees[field.tree].path(*field.places.first()?);
            let mut order: Vec<usize> = Vec::new();
            let axes = path.levels.iter().flat_map(|level| &level.axes);
            for axis in axes.filter(|axis| axis.extent > 1) {
                // Of an axis that several levels divide, the innermost one counts.
                order.retain(|&index| index != axis.index);
                order.push(axis.index);
            }
            Some(order)
        }
        _ => {
            debug_assert!(false, "{op:?} in {} is no element", func.name);
            None
        }
    }
}

/// Whether an access goes across memory along the last axis, and along memory on another one.
fn goes_across(accesses: &[Access], n_axes: usize) -> bool {
    let last = 1 << (n_axes - 1);
    accesses.iter().any(|access| {
        access
            .indices
            .split_last()
            .is_some_and(|(&fastest, others)| {
                let is_alone = fastest.count_ones() == 1 && fastest != last;
                is_alone && others.contains(&last)
            })
    })
}

/// The order of the axes, if there is a better one than theirs.
fn order(accesses: &[Access], n_axes: usize, long: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
    // What each access costs if an axis is the innermost one.
    let cost = |k: usize| -> u32 {
        let each = accesses.iter().map(|access| {
            let fastest = access.indices.len().saturating_sub(1);
            match access.indices.iter().rposition(|bits| bits & 1 << k != 0) {
                None => 0,
                Some(at) if at == fastest => 1,
                Some(_) if access.is_written => WRITTEN_LINE,
                Some(_) => LINE,
            }
        });
        each.sum()
    };
    let last = n_axes - 1;
    let best = (0..n_axes).filter(|&k| long(k)).min_by_key(|&k| cost(k))?;
    if 2 * cost(best) >= cost(last) {
        return None;
    }
    // How far from the fastest index axes stand.
    let distance = |k: usize| -> usize {
        let each = accesses.iter().filter_map(|Access { indices, .. }| {
            let at = indices.iter().rposition(|bits| bits & 1 << k != 0)?;
            Some(indices.len() - 1 - at)
        });
        each.sum()
    };
    let mut order: Vec<usize> = (0..n_axes).filter(|&k| k != best).collect();
    order.sort_by_key(|&k| std::cmp::Reverse(distance(k)));
    order.push(best);
    Some(order)
}

mod serial;
#[cfg(test)]
mod tests;
