//! Loops over pairs of elements whose numbers differ in one bit become loops over rows.
//!
//! ```text
//! parallel [0], [n] (i) {
//!     l = i ^ j
//!     if l > i { u = a[i]  v = a[l]  if c { a[i] = v  a[l] = u } }
//! }
//! ```
//! becomes, for a power of two `j`,
//! ```text
//! parallel [0, 0], [n / 2j, j] (r, t) {
//!     i = r * 2j + t  l = i + j
//!     u = a[i]  v = a[l]  a[i] = select c, v, u  a[l] = select c, u, v
//! }
//! ```
//! so that neighbours touch neighbours, and nothing is left to be guessed by the processor. Sorting networks, transforms and
//! scans are written like this. Each element belongs to one pair, and so to one iteration, so that an element may also be stored
//! where the program would leave it as it is. The condition may be `i & j == 0`, too, and the partner `i | j` or `i + j`.
//!
//! What `j` is shows at run time: rows that are too short stay one loop, but without the inner branch, and for other numbers the
//! loop stays as it is.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::access::{Class, classes, defined_in, has_classes, is_quantised};
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Effect, Function, Inst, LoopAttrs, Op, Region, Type, Value, walk,
};

use super::copies::Copies;
use super::elements::{indices, is_fixed};
use crate::PassCx;

/// Rows of fewer pairs are too short for vectors.
const SHORTEST: i32 = 16;
/// The index of the bit that distinguishes partners is less than this.
const FARTHEST: i32 = 1 << 29;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    if !cx.options.private_cells {
        return false;
    }
    let mut changed = false;
    for inst in func.regions[func.body].insts.clone() {
        if let Some(pairs) = find(func, cx, inst) {
            write(func, inst, &pairs);
            changed = true;
        }
    }
    changed
}

/// A loop over pairs.
struct Pairs {
    attrs: LoopAttrs,
    end: Value,
    body: Region,
    counter: Value,
    /// The number whose bits distinguish partners.
    distance: Value,
    /// What the partner is called.
    partners: Vec<Value>,
    /// What is done with each pair.
    then: Region,
    inside: SecondaryMap<Value, bool>,
}

fn find(func: &Function, cx: &PassCx<'_>, inst: Inst) -> Option<Pairs> {
    let Op::Parallel {
        lo,
        hi,
        attrs,
        body,
    } = &func[inst]
    else {
        return None;
    };
    let (&[lo], &[end], &[counter]) = (&lo[..], &hi[..], &func.regions[*body].params[..]) else {
        return None;
    };
    let starts = func.as_const(lo).is_some_and(|lo| lo.is_zero());
    if attrs.serial || !starts || func.ty(counter) != Type::I32 {
        return None;
    }
    let &[ref before @ .., branch, last] = &func.regions[*body].insts[..] else {
        return None;
    };
    let Op::If {
        cond,
        then,
        otherwise,
    } = func[branch]
    else {
        return None;
    };
    let is_pure = |inst: &Inst| func[*inst].effect() == Effect::Pure;
    let ends = matches!(func[last], Op::Yield { .. }) && func.regions[otherwise].insts.len() == 1;
    if !ends || !before.iter().all(is_pure) {
        return None;
    }
    let mut pairs = Pairs {
        attrs: *attrs,
        end,
        body: *body,
        counter,
        distance: lo,
        partners: Vec::new(),
        then,
        inside: SecondaryMap::new(),
    };
    defined_in(func, *body, &mut pairs.inside);
    pairs.distance = pairs.distance(func, cond)?;
    walk(func, *body, &mut |func, inst| {
        if let Op::Binary { op, .. } = func[inst]
            && matches!(op, BinaryOp::Xor | BinaryOp::Or | BinaryOp::Add)
        {
            let value = func.insts[inst].results[0];
            if pairs.other(func, value, op) == Some(pairs.distance) {
                pairs.partners.push(value);
            }
        }
    });
    pairs.are_own(func, cx).then_some(pairs)
}

impl Pairs {
    /// What is combined with the counter by an operation.
    fn other(&self, func: &Function, value: Value, wanted: BinaryOp) -> Option<Value> {
        let &Op::Binary { op, lhs, rhs } = func.def_op(value)? else {
            return None;
        };
        match (lhs == self.counter, rhs == self.counter) {
            (true, false) if op == wanted => Some(rhs),
            (false, true) if op == wanted => Some(lhs),
            _ => None,
        }
    }

    /// The number that distinguishes partners, if a condition is true for the first of each pair.
    fn distance(&self, func: &Function, cond: Value) -> Option<Value> {
        let &Op::Compare { op, lhs, rhs } = func.def_op(cond)? else {
            return None;
        };
        let is_zero = |v: Value| func.as_const(v).is_some_and(|c| c.is_zero());
        let distance = match op {
            CompareOp::Gt if rhs == self.counter => self.other(func, lhs, BinaryOp::Xor),
            CompareOp::Lt if lhs == self.counter => self.other(func, rhs, BinaryOp::Xor),
            CompareOp::Eq if is_zero(rhs) => self.other(func, lhs, BinaryOp::And),
            CompareOp::Eq if is_zero(lhs) => self.other(func, rhs, BinaryOp::And),
            _ => None,
        };
        distance.filter(|&distance| is_fixed(func, &self.inside, distance))
    }

    /// Whether what is written are the elements of the pair, which no other iteration touches.
    fn are_own(&self, func: &Function, cx: &PassCx<'_>) -> bool {
        let mut written: Vec<Class> = Vec::new();
        let mut places = Vec::new();
        let mut is_plain = true;
        let mut branches = false;
        walk(func, self.then, &mut |func, inst| match func[inst] {
            Op::Load { place } => places.push(place),
            Op::Store { place, .. } => {
                is_plain &= has_classes(func, place) && !is_quantised(func, cx.env, place);
                if is_plain {
                    written.extend(classes(func, cx.env, place));
                }
                places.push(place);
            }
            Op::If {
                then, otherwise, ..
            } => {
                branches = true;
                is_plain &= func.insts[inst].results.is_empty();
                for branch in [then, otherwise] {
                    let all = func.regions[branch].insts.iter();
                    is_plain &= all.copied().all(|inst| {
                        func[inst].effect() == Effect::Pure
                            || matches!(func[inst], Op::Store { .. } | Op::Yield { .. })
                    });
                }
            }
            Op::Yield { .. } => {}
            ref op => is_plain &= op.effect() == Effect::Pure,
        });
        let is_own = |place: Value| {
            let index = match func.def_op(place) {
                Some(Op::FieldAt { field, indices }) => {
                    let field = &cx.env.fields[*field];
                    let tree = &cx.env.trees[field.tree];
                    if field
                        .places
                        .iter()
                        .any(|&place| tree.is_below_sparse(place))
                    {
                        return false;
                    }
                    &indices[..]
                }
                Some(Op::ArrayAt { indices, .. }) => &indices[..],
                _ => return false,
            };
            matches!(index, &[index] if index == self.counter || self.partners.contains(&index))
        };
        let apart = |&place: &Value| {
            let known = has_classes(func, place);
            let touches = |place| {
                classes(func, cx.env, place)
                    .iter()
                    .any(|c| written.contains(c))
            };
            is_own(place) || known && !touches(place)
        };
        // What may be stored in any case is read in any case.
        let loaded = |place: Value| {
            let insts = &func.regions[self.then].insts;
            insts
                .iter()
                .any(|&inst| matches!(func[inst], Op::Load { place: from } if from == place))
        };
        let mut stored = true;
        walk(func, self.then, &mut |func, inst| {
            if let Op::Store { place, .. } = func[inst] {
                stored &= is_own(place) && loaded(place);
            }
        });
        // Of two arrays that share memory, elements of one number may be different ones.
        let arrays = places.iter().filter_map(|&place| match func.def_op(place) {
            Some(&Op::ArrayAt { array, .. }) => Some(array),
            _ => None,
        });
        let mut arrays = arrays.collect::<Vec<_>>();
        arrays.dedup();
        let overlap = written.contains(&Class::Arrays) && arrays.len() > 1;
        is_plain && branches && stored && !overlap && places.iter().all(apart)
    }

    /// What is done with a pair, without branches.
    fn straight(&self, b: &mut Builder<'_>, copies: &mut Copies<'_>) {
        let mut held: Vec<(Value, Value)> = Vec::new();
        for inst in b.func.regions[self.then].insts.clone() {
            match b.func[inst] {
                Op::Yield { .. } => {}
                Op::Load { place } => {
                    let result = b.func.insts[inst].results[0];
                    let value = copies.value(b, result);
                    held.push((place, value));
                }
                Op::Store { place, value } => self.store(b, copies, &mut held, place, value, None),
                Op::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let cond = copies.value(b, cond);
                    for (branch, truth) in [(then, true), (otherwise, false)] {
                        for inst in b.func.regions[branch].insts.clone() {
                            if let Op::Store { place, value } = b.func[inst] {
                                let when = Some((cond, truth));
                                self.store(b, copies, &mut held, place, value, when);
                            }
                        }
                    }
                }
                _ => {
                    let result = b.func.insts[inst].results[0];
                    copies.value(b, result);
                }
            }
        }
    }

    /// Stores a value, or what is there if a condition does not hold. `held` is what elements are known to hold.
    fn store(
        &self,
        b: &mut Builder<'_>,
        copies: &mut Copies<'_>,
        held: &mut Vec<(Value, Value)>,
        place: Value,
        value: Value,
        when: Option<(Value, bool)>,
    ) {
        let to = copies.value(b, place);
        let mut value = copies.value(b, value);
        if let Some((cond, truth)) = when {
            let known = held.iter().rev().find(|(p, _)| *p == place);
            let old = match known.map(|&(_, old)| old) {
                Some(old) => old,
                None => b.load(to),
            };
            value = match truth {
                true => b.select(cond, value, old),
                false => b.select(cond, old, value),
            };
        }
        b.store(to, value);
        // The partner's elements are others.
        let index = index(b.func, place);
        held.retain(|(p, _)| {
            index.is_some() && self.is_first(b.func, *p) != self.is_first(b.func, place)
        });
        held.push((place, value));
    }

    fn is_first(&self, func: &Function, place: Value) -> bool {
        index(func, place) == Some(self.counter)
    }
}

/// The only index of an element.
fn index(func: &Function, place: Value) -> Option<Value> {
    match *indices(func, place)? {
        [index] => Some(index),
        _ => None,
    }
}

/// Puts three loops in the place of one, of which one runs.
fn write(func: &mut Function, inst: Inst, pairs: &Pairs) {
    let before = func.new_region(&[]);
    let mut b = Builder::new(func, before);
    b.span = b.func.insts[inst].span;
    let mut fixed = Copies::new(&pairs.inside);
    let j = fixed.value(&mut b, pairs.distance);
    let [zero, one, shortest, farthest] = [0, 1, SHORTEST, FARTHEST].map(|n| b.i32(n));
    let twice = b.binary(BinaryOp::Add, j, j);
    let below = b.binary(BinaryOp::Sub, j, one);
    let shared = b.binary(BinaryOp::And, j, below);
    let rest = b.binary(BinaryOp::Rem, pairs.end, twice);
    let mut fits = b.compare(CompareOp::Eq, shared, zero);
    for (op, lhs, rhs) in [
        (CompareOp::Gt, j, zero),
        (CompareOp::Lt, j, farthest),
        (CompareOp::Eq, rest, zero),
    ] {
        let holds = b.compare(op, lhs, rhs);
        fits = b.binary(BinaryOp::And, fits, holds);
    }
    let is_long = b.compare(CompareOp::Ge, j, shortest);
    let rows = b.binary(BinaryOp::Div, pairs.end, twice);
    let rows = b.select(is_long, rows, zero);
    let rows = b.select(fits, rows, zero);
    let in_order = b.select(is_long, zero, pairs.end);
    let in_order = b.select(fits, in_order, zero);
    let otherwise = b.select(fits, zero, pairs.end);

    let in_rows = b.region(&[Type::I32; 2], |b, params| {
        let (row, at) = (params[0], params[1]);
        let start = b.binary(BinaryOp::Mul, row, twice);
        let first = b.binary(BinaryOp::Add, start, at);
        let second = b.binary(BinaryOp::Add, first, j);
        let mut copies = Copies::new(&pairs.inside);
        copies.made.insert(pairs.counter, first);
        for &partner in &pairs.partners {
            copies.made.insert(partner, second);
        }
        pairs.straight(b, &mut copies);
    });
    b.effect(Op::Parallel {
        lo: vec![zero; 2],
        hi: vec![rows, j],
        attrs: pairs.attrs,
        body: in_rows,
    });
    let one_by_one = b.region(&[Type::I32], |b, params| {
        let mut copies = Copies::new(&pairs.inside);
        copies.made.insert(pairs.counter, params[0]);
        let shared = b.binary(BinaryOp::And, params[0], j);
        let is_first = b.compare(CompareOp::Eq, shared, zero);
        let then = b.region(&[], |b, _| {
            let second = b.binary(BinaryOp::Add, params[0], j);
            for &partner in &pairs.partners {
                copies.made.insert(partner, second);
            }
            pairs.straight(b, &mut copies);
        });
        let nothing = b.region(&[], |_, _| {});
        b.effect(Op::If {
            cond: is_first,
            then,
            otherwise: nothing,
        });
    });
    b.effect(Op::Parallel {
        lo: vec![zero],
        hi: vec![in_order],
        attrs: pairs.attrs,
        body: one_by_one,
    });
    b.func.insts[inst].op = Op::Parallel {
        lo: vec![zero],
        hi: vec![otherwise],
        attrs: pairs.attrs,
        body: pairs.body,
    };
    let added = std::mem::take(&mut func.regions[before].insts);
    let top = func.body;
    let insts = &mut func.regions[top].insts;
    let at = insts.iter().position(|&i| i == inst);
    let at = at.expect("the loop stands there");
    insts.splice(at..at, added);
}

#[cfg(test)]
mod tests;
