//! The inside of a row: the indices at which each comparison with a number that is the same all along has one outcome.
//!
//! A stencil tests at each point whether a neighbour lies beyond an edge, as in `x[select(i < 1, i + last, i - 1)]`,
//! `x[min(i + 1, last)]` and `x[(i + 1) % n]`. LLVM sees indices that may jump anywhere, and reads each element by itself; but they jump only at
//! the ends of the row. So a row is run in three parts, of which the edges share their code:
//!
//! ```text
//! for i in lo .. first { body }
//! for i in first .. last { body, where `i < 1` is false and `min(i + 1, last)` is `i + 1` }
//! for i in last .. hi { body }
//! ```
//!
//! Along the outer axes the rows next to an edge are run as edges, too. So no condition is left in the inside of a field, if its
//! edges are known to be narrow:
//!
//! ```text
//! for i in rows { if first_row <= i < last_row { edge, inside, edge of the row } else { the row as an edge } }
//! ```
//!
//! This is index set splitting (Griebl, Feautrier, Lengauer, International Journal of Parallel Programming 28, 2000) for the
//! one part that matters. Where it lies is computed as the row begins, so that the numbers need not be known any earlier:
//! which side of a number is taken for the inside is a guess, and costs time at most.
//!
//! An index that an inner loop moves, as in `x[(i + k) % n]` for `k` from `-r` to `r`, is inside where all that the loop adds
//! leaves it there.

mod emit;

pub(crate) use emit::InParts;

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::trips::iterations_within;
use aerogel_ir::{Arg, BinaryOp, CompareOp, Function, Inst, Op, Region, Value, walk};

/// A row that is shorter is all edge.
const SHORTEST: i64 = 32;
/// An edge of so many indices is run one after the other.
const NARROW: i64 = 64;
/// A body of more instructions takes too long to compile twice.
const LARGEST: usize = 2000;
/// So does one whose loops LLVM may unroll to more iterations.
const MOST_TURNS: u64 = 64;

/// A number that is the same all along a row: a constant, and values that are added or (`true`) taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) constant: i64,
    pub(crate) terms: Vec<(Value, bool)>,
}

impl Sum {
    fn plus(mut self, other: &Self, is_less: bool) -> Self {
        self.constant += if is_less {
            -other.constant
        } else {
            other.constant
        };
        let terms = other.terms.iter();
        self.terms
            .extend(terms.map(|&(value, less)| (value, less != is_less)));
        self
    }

    fn and(mut self, constant: i64) -> Self {
        self.constant += constant;
        self
    }
}

/// The least and the greatest number of several that are the same all along a row, such as the counters of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Span {
    least: Sum,
    most: Sum,
}

impl Span {
    fn of(sum: Sum) -> Self {
        Self {
            least: sum.clone(),
            most: sum,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            least: self.least.clone().plus(&other.least, false),
            most: self.most.clone().plus(&other.most, false),
        }
    }

    fn minus(&self, other: &Self) -> Self {
        Self {
            least: self.least.clone().plus(&other.most, true),
            most: self.most.clone().plus(&other.least, true),
        }
    }

    /// The number from which on, or below which, an index is so for all of them.
    fn end(self, side: Side) -> Sum {
        match side {
            Side::From => self.most,
            Side::Below => self.least,
        }
    }
}

/// What a value is in the inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Truth(bool),
    Is(Value),
    /// A value less another one, or a constant.
    Less(Value, Result<Value, i64>),
}

/// Where the inside of a row lies, and what is known there.
pub(crate) struct Interior {
    pub(crate) outcomes: LookupMap<Value, Outcome>,
    /// No index along an axis is below any of these.
    pub(crate) from: Vec<(usize, Sum)>,
    /// All indices along an axis are below these.
    pub(crate) below: Vec<(usize, Sum)>,
    /// Whether the edges are so narrow that nothing is lost if their indices come one after the other.
    pub(crate) has_narrow_edges: bool,
}

/// The side of a number on which the inside lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// From the number on.
    From,
    Below,
}

/// An index along an axis, and how far it is moved.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Moved {
    axis: usize,
    by: Span,
}

/// What may be known in the inside.
struct Fact {
    value: Value,
    outcome: Outcome,
    side: Side,
    at: Sum,
    /// The index that is compared.
    moved: Moved,
    is_narrow: bool,
    /// Whether it decides where memory is, or what is done.
    decides: bool,
}

/// Something that has the same value wherever it is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Arg(Arg),
    Shape(Arg, u32),
    Value(Value),
}

struct Search<'a> {
    func: &'a Function,
    /// Whether only the last axis counts: what is the same all along a row costs lanes little.
    in_lanes: bool,
    /// What is defined in the body.
    inside: SecondaryMap<Value, bool>,
    /// The counters of loops inside.
    counters: LookupMap<Value, Span>,
    /// What decides where memory is, or what is done.
    decides: SecondaryMap<Value, bool>,
    moved: LookupMap<Value, Moved>,
    truths: LookupMap<Value, bool>,
    /// Where each axis begins and ends; that of the row is the last one.
    ends: Vec<[(Option<Base>, i64); 2]>,
    facts: Vec<Fact>,
    /// Sums that have to be numbers of 32 bits for the indices to be what they seem.
    exact: Vec<Moved>,
}

impl Interior {
    /// The inside of the rows of a body, whose axes have these bounds; nothing if it would be no faster there. If it runs in
    /// lanes, its loops may be of any length, and what the other axes decide does not matter.
    pub(crate) fn of(
        func: &Function,
        body: Region,
        bounds: &[Value],
        in_lanes: bool,
    ) -> Option<Self> {
        let counters = &func.regions[body].params;
        let &counter = counters.last()?;
        if func.elem(counter) != ScalarType::I32
            || !in_lanes && iterations_within(func, body).is_none_or(|n| n > MOST_TURNS)
        {
            return None;
        }
        let (inside, n_insts) = defined(func, body);
        let ends: Vec<_> = bounds
            .chunks_exact(2)
            .map(|axis| [axis[0], axis[1]].map(|end| base(func, end)))
            .collect();
        let is_short = matches!(ends.last()?, [(None, lo), (None, hi)] if hi - lo < SHORTEST);
        if n_insts > LARGEST || is_short {
            return None;
        }
        let mut search = Search {
            func,
            in_lanes,
            decides: deciding(func, body, &inside),
            inside,
            counters: LookupMap::default(),
            moved: LookupMap::default(),
            truths: LookupMap::default(),
            ends,
            facts: Vec::new(),
            exact: Vec::new(),
        };
        for (axis, &counter) in counters.iter().enumerate() {
            if func.elem(counter) == ScalarType::I32 {
                let by = Span::default();
                search.moved.insert(counter, Moved { axis, by });
            }
        }
        search.region(body);
        search.finish()
    }
}

impl Search<'_> {
    fn region(&mut self, region: Region) {
        let func = self.func;
        for &inst in &func.regions[region].insts {
            match func[inst] {
                Op::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    // The conditions of a side that does not run in the inside do not matter.
                    match self.truths.get(&cond) {
                        Some(&truth) => self.branch(inst, if truth { then } else { otherwise }),
                        None => [then, otherwise].iter().for_each(|&r| self.region(r)),
                    }
                }
                Op::For {
                    lo, hi, step, body, ..
                } => {
                    self.counter(func.regions[body].params[0], [lo, hi], step);
                    self.region(body);
                }
                Op::While { cond, body, .. } => [cond, body].iter().for_each(|&r| self.region(r)),
                _ => self.inst(inst),
            }
        }
    }

    /// Between which numbers the counter of a loop lies.
    fn counter(&mut self, counter: Value, [lo, hi]: [Value; 2], step: Value) {
        if !self.func.as_const(step).is_some_and(|step| step.is_one()) {
            return;
        }
        let (Some(lo), Some(hi)) = (self.same(lo), self.same(hi)) else {
            return;
        };
        let (least, most) = (lo.least, hi.most.and(-1));
        let is_constant = least.terms.is_empty() && most.terms.is_empty();
        if !is_constant || most.constant - least.constant <= NARROW {
            self.counters.insert(counter, Span { least, most });
        }
    }

    /// The side of a branch that is taken in the inside: what it gives is known as it is there.
    fn branch(&mut self, inst: Inst, taken: Region) {
        self.region(taken);
        let func = self.func;
        let given = func.yielded(taken).unwrap_or_default();
        for (&result, value) in func.insts[inst].results.iter().zip(given) {
            if let Some(&truth) = self.truths.get(value) {
                self.truths.insert(result, truth);
            }
            if let Some(moved) = self.moved.get(value).cloned() {
                self.moved.insert(result, moved);
            }
        }
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        let &[result] = &func.insts[inst].results[..] else {
            return;
        };
        match func[inst] {
            Op::Binary { op, lhs, rhs } => self.binary(result, op, [lhs, rhs]),
            Op::Compare { op, lhs, rhs } => self.compare(result, op, [lhs, rhs]),
            Op::Select {
                cond,
                on_true,
                on_false,
            } => {
                let Some(&truth) = self.truths.get(&cond) else {
                    return;
                };
                let chosen = if truth { on_true } else { on_false };
                if let Some(moved) = self.moved.get(&chosen).cloned() {
                    self.moved.insert(result, moved);
                }
            }
            _ => {}
        }
    }

    /// A number that is the same all along the row, or one of several.
    fn same(&self, value: Value) -> Option<Span> {
        if self.func.ty(value).scalar() != Some(ScalarType::I32) {
            return None;
        }
        if let Some(constant) = self.func.as_const(value) {
            let constant = constant.as_i128() as i64;
            return Some(Span::of(Sum::default().and(constant)));
        }
        if let Some(span) = self.counters.get(&value) {
            return Some(span.clone());
        }
        let terms = vec![(value, false)];
        (!self.inside[value]).then_some(Span::of(Sum { constant: 0, terms }))
    }

    fn binary(&mut self, result: Value, op: BinaryOp, [lhs, rhs]: [Value; 2]) {
        if op == BinaryOp::And {
            let truths = [lhs, rhs].map(|x| self.truths.get(&x).copied());
            match truths {
                [Some(true), Some(true)] => drop(self.truths.insert(result, true)),
                [Some(false), _] | [_, Some(false)] => drop(self.truths.insert(result, false)),
                _ => {}
            }
        }
        let Some((moved, other, same, is_swapped)) = self.index_and_same(lhs, rhs) else {
            self.counted(result, op, [lhs, rhs]);
            return;
        };
        let index = if is_swapped { rhs } else { lhs };
        let axis = moved.axis;
        if self.in_lanes && !self.is_last(axis) {
            return;
        }
        match op {
            BinaryOp::Add => self.moves(result, axis, moved.by.plus(&same)),
            BinaryOp::Sub if !is_swapped => self.moves(result, axis, moved.by.minus(&same)),
            BinaryOp::Min | BinaryOp::Max if self.decides[result] => {
                let turn = same.minus(&moved.by);
                let likely = match op {
                    BinaryOp::Min => Side::Below,
                    _ => Side::From,
                };
                let (side, is_narrow) = self.side(axis, &turn, likely);
                if !is_narrow && !self.is_last(axis) {
                    return;
                }
                // The index is the smaller one up to where both are equal.
                let is_index = (op == BinaryOp::Min) == (side == Side::Below);
                let at = turn.end(side).and(i64::from(side == Side::Below));
                if is_index {
                    self.moved.insert(result, moved.clone());
                }
                self.facts.push(Fact {
                    value: result,
                    outcome: Outcome::Is(if is_index { index } else { other }),
                    side,
                    at,
                    moved,
                    is_narrow,
                    decides: true,
                });
            }
            BinaryOp::Mod if !is_swapped && self.decides[result] && same.least == same.most => {
                self.remainder(result, index, &moved, (other, same.least));
            }
            // A remainder, where the other number is one less than a power of two.
            BinaryOp::And
                if self.decides[result]
                    && same.least == same.most
                    && same.least.terms.is_empty()
                    && (same.least.constant + 1).count_ones() == 1 =>
            {
                self.remainder(result, index, &moved, (other, same.least.and(1)));
            }
            _ => {}
        }
    }

    /// A counter of a loop plus or less a constant.
    fn counted(&mut self, result: Value, op: BinaryOp, operands: [Value; 2]) {
        let is_counted = operands.iter().any(|x| self.counters.contains_key(x));
        let [Some(lhs), Some(rhs)] = operands.map(|x| self.same(x)) else {
            return;
        };
        let span = match op {
            BinaryOp::Add => lhs.plus(&rhs),
            BinaryOp::Sub => lhs.minus(&rhs),
            _ => return,
        };
        let bounds = [&span.least, &span.most];
        let is_exact = |at: &Sum| at.terms.is_empty() && i32::try_from(at.constant).is_ok();
        if is_counted && bounds.into_iter().all(is_exact) {
            self.counters.insert(result, span);
        }
    }

    /// The one of two numbers that is an index, and the other one, which is the same all along the row, as it is and as a sum;
    /// and whether the index is the second.
    fn index_and_same(&self, lhs: Value, rhs: Value) -> Option<(Moved, Value, Span, bool)> {
        let found = |index: Value, other: Value, is_swapped: bool| {
            let moved = self.moved.get(&index)?.clone();
            Some((moved, other, self.same(other)?, is_swapped))
        };
        let both = [found(lhs, rhs, false), found(rhs, lhs, true)];
        // An index of an outer axis is itself the same all along the row.
        let mut both = both.into_iter().flatten();
        let first = both.next()?;
        match both.next() {
            Some(second) if !self.is_last(first.0.axis) => Some(second),
            _ => Some(first),
        }
    }

    fn is_last(&self, axis: usize) -> bool {
        axis + 1 == self.ends.len()
    }

    /// A remainder of an index: the index itself where it is from 0 on and below the divisor `by`, or the index without the
    /// divisor if the index was moved by as much.
    fn remainder(&mut self, result: Value, index: Value, moved: &Moved, (other, by): (Value, Sum)) {
        let axis = moved.axis;
        let without = moved.by.minus(&Span::of(by.clone()));
        let is_moved_around = match (&by.terms[..], self.resolved(&without.least)) {
            ([], _) => 2 * moved.by.least.constant >= by.constant,
            (_, Some((None, _))) => true,
            _ => false,
        };
        let divisor = match by.terms[..] {
            [] if by.constant <= 0 => return,
            [] => Err(by.constant),
            _ => Ok(other),
        };
        let (moved, outcome) = match is_moved_around {
            true => (without, Outcome::Less(index, divisor)),
            false => (moved.by.clone(), Outcome::Is(index)),
        };
        if divisor.is_err() && !self.is_most_of_axis(axis, &moved.least, by.constant) {
            return;
        }
        let sides = [(Side::From, Sum::default()), (Side::Below, by)].map(|(side, end)| {
            let at = Span::of(end).minus(&moved);
            let is_narrow = self.side(axis, &at, side) == (side, true);
            (side, at.end(side), is_narrow)
        });
        if !self.is_last(axis) && !sides.iter().all(|&(.., is_narrow)| is_narrow) {
            return;
        }
        let moved = Moved { axis, by: moved };
        self.moved.insert(result, moved.clone());
        for (side, at, is_narrow) in sides {
            self.facts.push(Fact {
                value: result,
                outcome,
                side,
                at,
                moved: moved.clone(),
                is_narrow,
                decides: true,
            });
        }
    }

    /// Whether a moved index is from 0 on and below a constant along most of an axis, as far as its ends are known.
    fn is_most_of_axis(&self, axis: usize, moved: &Sum, below: i64) -> bool {
        match (self.ends[axis], self.resolved(moved)) {
            ([(None, lo), (None, hi)], Some((None, by))) => {
                let inside = hi.min(below - by) - lo.max(-by);
                2 * inside >= hi - lo
            }
            _ => below >= SHORTEST,
        }
    }

    /// An index that is moved, without running over the ends of its type.
    fn moves(&mut self, result: Value, axis: usize, by: Span) {
        let moved = Moved { axis, by };
        self.exact.push(moved.clone());
        self.moved.insert(result, moved);
    }

    fn compare(&mut self, result: Value, op: CompareOp, [lhs, rhs]: [Value; 2]) {
        let Some((moved, _, same, is_swapped)) = self.index_and_same(lhs, rhs) else {
            return;
        };
        if self.in_lanes && !self.is_last(moved.axis) {
            return;
        }
        let op = if is_swapped { swapped(op) } else { op };
        // Where the index is what it is compared with.
        let turn = same.minus(&moved.by);
        let likely = match op {
            CompareOp::Ge | CompareOp::Gt => Side::From,
            _ => Side::Below,
        };
        let (side, is_narrow) = self.side(moved.axis, &turn, likely);
        if !is_narrow && !self.is_last(moved.axis) {
            return;
        }
        let (truth, behind) = match op {
            CompareOp::Lt => (side == Side::Below, false),
            CompareOp::Ge => (side == Side::From, false),
            CompareOp::Le => (side == Side::Below, true),
            CompareOp::Gt => (side == Side::From, true),
            CompareOp::Eq => (false, side == Side::From),
            CompareOp::Ne => (true, side == Side::From),
        };
        let decides = self.decides[result];
        if decides {
            self.truths.insert(result, truth);
        }
        self.facts.push(Fact {
            value: result,
            outcome: Outcome::Truth(truth),
            side,
            at: turn.end(side).and(i64::from(behind)),
            moved,
            is_narrow,
            decides,
        });
    }

    /// On which side of some numbers the inside lies, and whether little is left on the other side for certain. If that cannot
    /// be told of several, it is the `likely` one.
    fn side(&self, axis: usize, at: &Span, likely: Side) -> (Side, bool) {
        let [least, most] = [&at.least, &at.most].map(|at| self.side_of(axis, at));
        let is_known = |at: &Sum| matches!(self.resolved(at), Some((None, _)));
        match at.least == at.most || least == most && is_known(&at.least) && is_known(&at.most) {
            true => least,
            false => (likely, least == (likely, true) && most == (likely, true)),
        }
    }

    fn side_of(&self, axis: usize, at: &Sum) -> (Side, bool) {
        let Some((base_of, at)) = self.resolved(at) else {
            return (Side::Below, false);
        };
        let [(no_base, lo), hi] = self.ends[axis];
        let lo = no_base.is_none().then_some(lo);
        match (base_of, lo, hi) {
            (None, Some(lo), (None, hi)) => {
                let before = (at - lo).clamp(0, hi - lo);
                let behind = hi - lo - before;
                let side = if before <= behind {
                    Side::From
                } else {
                    Side::Below
                };
                (side, before.min(behind) <= NARROW)
            }
            // A number that is far from where the row begins is likely to be near to where it ends.
            (None, Some(lo), _) if at - lo > NARROW => (Side::Below, false),
            (None, lo, _) => (Side::From, lo.is_some_and(|lo| at - lo <= NARROW)),
            (Some(base), _, (Some(end), hi)) if base == end => (Side::Below, hi - at <= NARROW),
            _ => (Side::Below, false),
        }
    }

    /// A sum as something and a constant.
    fn resolved(&self, sum: &Sum) -> Option<(Option<Base>, i64)> {
        let mut constant = sum.constant;
        let mut bases: Vec<(Base, bool)> = Vec::new();
        for &(value, less) in &sum.terms {
            let (base, by) = base(self.func, value);
            constant += if less { -by } else { by };
            let Some(base) = base else {
                continue;
            };
            match bases.iter().position(|&(b, l)| b == base && l != less) {
                Some(at) => drop(bases.remove(at)),
                None => bases.push((base, less)),
            }
        }
        match bases[..] {
            [] => Some((None, constant)),
            [(base, false)] => Some((Some(base), constant)),
            _ => None,
        }
    }

    fn finish(self) -> Option<Interior> {
        let (chosen, others): (Vec<Fact>, Vec<Fact>) =
            self.facts.into_iter().partition(|fact| fact.decides);
        let last = self.ends.len() - 1;
        if !chosen.iter().any(|fact| fact.moved.axis == last) {
            return None;
        }
        // An equal comparison of the same index does not shrink the interior.
        let others = others.into_iter().filter(|other| {
            let mut chosen = chosen.iter();
            chosen.any(|fact| fact.side == other.side && fact.moved == other.moved)
        });
        let mut out = Interior {
            outcomes: LookupMap::default(),
            from: Vec::new(),
            below: Vec::new(),
            has_narrow_edges: true,
        };
        let others: Vec<Fact> = others.collect();
        for fact in chosen.into_iter().chain(others) {
            out.outcomes.insert(fact.value, fact.outcome);
            let axis = fact.moved.axis;
            out.has_narrow_edges &= fact.is_narrow;
            match fact.side {
                Side::From => insert(&mut out.from, axis, fact.at),
                Side::Below => insert(&mut out.below, axis, fact.at),
            }
        }
        // No index runs over an end of its type when it is moved.
        for Moved { axis, by } in self.exact {
            let counts_from_zero = matches!(self.ends[axis][0], (None, 0..));
            let is_constant = by.least.terms.is_empty() && by.most.terms.is_empty();
            if !is_constant || by.least.constant < 0 && !counts_from_zero {
                let least = Sum::default().and(i64::from(i32::MIN));
                insert(&mut out.from, axis, least.plus(&by.least, true));
            }
            if !is_constant || by.most.constant > 0 {
                let most = Sum::default().and(i64::from(i32::MAX) + 1);
                insert(&mut out.below, axis, most.plus(&by.most, true));
            }
        }
        Some(out)
    }
}

fn insert(bounds: &mut Vec<(usize, Sum)>, axis: usize, bound: Sum) {
    if !bounds.iter().any(|(a, b)| *a == axis && *b == bound) {
        bounds.push((axis, bound));
    }
}

fn swapped(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        CompareOp::Eq | CompareOp::Ne => op,
    }
}

/// What is defined in a region, and of how many instructions it is.
fn defined(func: &Function, region: Region) -> (SecondaryMap<Value, bool>, usize) {
    let mut inside = SecondaryMap::new();
    let mut n_insts = 0;
    walk(func, region, &mut |func, inst| {
        n_insts += 1;
        for &result in &func.insts[inst].results {
            inside[result] = true;
        }
        for owned in func.owned(inst) {
            for &param in &func.regions[owned].params {
                inside[param] = true;
            }
        }
    });
    if let Some(&counter) = func.regions[region].params.last() {
        inside[counter] = true;
    }
    (inside, n_insts)
}

/// What decides where memory is, which side of a branch is taken, and whether something is an error.
fn deciding(
    func: &Function,
    region: Region,
    inside: &SecondaryMap<Value, bool>,
) -> SecondaryMap<Value, bool> {
    let mut found: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut stack: Vec<Value> = Vec::new();
    walk(func, region, &mut |func, inst| match &func[inst] {
        Op::ArrayAt { indices, .. } => stack.extend(indices),
        Op::ElemRef { index, .. } => stack.extend(index),
        Op::Node(op) => op.operands(&mut |x| stack.push(x)),
        Op::If { cond, .. } | Op::Assert { cond, .. } => stack.push(*cond),
        _ => {}
    });
    while let Some(value) = stack.pop() {
        if !inside[value] || std::mem::replace(&mut found[value], true) {
            continue;
        }
        let Some(inst) = func.def(value) else {
            continue;
        };
        match &func[inst] {
            Op::Load { .. } => {}
            Op::If {
                cond,
                then,
                otherwise,
            } => {
                stack.push(*cond);
                let at = func.insts[inst].results.iter().position(|&r| r == value);
                let sides = [then, otherwise].into_iter();
                let given = sides.filter_map(|&side| func.yielded(side)?.get(at?).copied());
                stack.extend(given);
            }
            op => op.operands(|x| stack.push(x)),
        }
    }
    found
}

/// A number as something that has the same value wherever it is computed, and a constant: exactly but for remainders, which
/// count as the number that they are of.
fn base(func: &Function, value: Value) -> (Option<Base>, i64) {
    base_within(func, value, DEEPEST)
}

/// How far back a number is followed.
const DEEPEST: u32 = 4;

fn base_within(func: &Function, value: Value, depth: u32) -> (Option<Base>, i64) {
    let whole = (Some(Base::Value(value)), 0);
    match func.def_op(value) {
        Some(Op::Const { value }) if value.ty().is_int() => (None, value.as_i128() as i64),
        Some(&Op::Arg { arg }) => (Some(Base::Arg(arg)), 0),
        Some(&Op::ArrayShape { array, axis }) => (Some(Base::Shape(array, axis)), 0),
        Some(&Op::Binary { op, lhs, rhs }) if depth > 0 => {
            let [x, y] = [lhs, rhs].map(|x| base_within(func, x, depth - 1));
            match (op, x, y) {
                (BinaryOp::Add, (base, at), (None, by))
                | (BinaryOp::Add, (None, by), (base, at)) => (base, at + by),
                (BinaryOp::Sub, (base, at), (None, by)) => (base, at - by),
                (BinaryOp::Mod, (None, by @ 0..), _) => (None, by),
                _ => whole,
            }
        }
        _ => whole,
    }
}
