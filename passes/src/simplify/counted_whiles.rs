//! `while` loops that count become `for` loops.
//!
//! ```text
//! while [v0, v1] (v2: i32, v3: f32) {        for v0, v9, 1, [v0, v1] (v2: i32, v7: i32, v3: f32) {
//!     v4 = lt v2, v9                             v5 = add v2, 1
//!     yield [v4]                                 ..
//! } (v2: i32, v3: f32) {              ==>        yield [v5, v6]
//!     v5 = add v2, 1                         }
//!     ..
//!     yield [v5, v6]
//! }
//! ```
//! A `while` loop looks at the request to stop in each iteration, and is never vectorised; an innermost `for` loop does not
//! look. One that is not known to be short becomes a `while` loop over chunks of it, so that it can be stopped:
//!
//! ```text
//! while [v0, v1] (v2: i32, v3: f32) { .. } (v2: i32, v3: f32) {
//!     v8 = (v9 - v2 is at most 65536) ? v9 : v2 + 65536
//!     v10, v11 = for v2, v8, 1, [v2, v3] ..
//!     yield [v10, v11]
//! }
//! ```
//! The variable that counts is still carried, so that it has its value after the loop. The comparison may be the first thing
//! that an iteration does, `while True: if i >= n: break`, the last one, or the first part of `while i < n and ..`. Other
//! ways out of the loop become a `break` of the `for` loop; where that is a chunk, it carries whether it was left so.
//!
//! A loop whose counter could wrap around before it reaches the bound stays.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::{Interval, Ranges};
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Effect, Function, Inst, Op, Region, Type, Value, replace_value,
    replace_values, walk,
};

use crate::PassCx;
use crate::insert::insert_before;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    let ranges = Ranges::within(func, func.body);
    insert_before(func, func.body, &mut |func, inst, out| {
        let found = Count::of(func, inst, &ranges);
        let changed = found.is_some();
        if let Some(found) = found {
            found.write(func, inst, out);
        }
        changed
    })
}

/// Where a loop compares its counter.
#[derive(Clone, Copy)]
enum Test {
    /// In its condition.
    Condition,
    /// In its condition, whose other part is a branch that yields it.
    Both(Inst),
    /// In a branch of its body, before anything happens.
    First(Inst),
    /// In a branch of its body, after everything.
    Last(Inst),
}

/// A comparison of the counter that keeps the loop running.
struct Comparison {
    test: Test,
    op: CompareOp,
    /// The number of the variable that counts.
    at: usize,
    bound: Value,
}

/// How a `while` loop counts.
struct Count {
    test: Test,
    at: usize,
    /// The end, if this is added to it.
    end: (Value, i128),
    step: Scalar,
    /// Whether the loop may run for long.
    is_long: bool,
}

/// So many iterations, as a power of two, run without a look at the request to stop.
const CHUNK: u32 = 16;

impl Comparison {
    fn of(func: &Function, cond: Region, body: Region) -> Option<Self> {
        let &[tested] = func.yielded(cond)? else {
            return None;
        };
        let insts = &func.regions[cond].insts;
        if func.as_const(tested).is_some_and(|c| !c.is_zero()) {
            return Self::first(func, body).or_else(|| Self::last(func, body));
        }
        let params = &func.regions[cond].params;
        let is_pure =
            |inst: &Inst| matches!(func[*inst].effect(), Effect::Pure | Effect::Terminator);
        if insts.iter().all(is_pure) {
            return Self::compared(func, Test::Condition, tested, params, false);
        }
        // `if counts { .. } { yield [counts] }`, or false there.
        let &[ref before @ .., branch, _] = &insts[..] else {
            return None;
        };
        let Op::If {
            cond: counts,
            otherwise,
            ..
        } = func[branch]
        else {
            return None;
        };
        let &[other] = func.yielded(otherwise)? else {
            return None;
        };
        let is_false = other == counts || func.as_const(other).is_some_and(Scalar::is_zero);
        let is_simple = func.regions[otherwise].insts.len() == 1 && before.iter().all(is_pure);
        (is_false && is_simple && func.insts[branch].results[..] == [tested])
            .then(|| Self::compared(func, Test::Both(branch), counts, params, false))?
    }

    /// The branch that leaves the loop before anything happens, with what it carries.
    fn first(func: &Function, body: Region) -> Option<Self> {
        let insts = &func.regions[body].insts;
        let at = insts
            .iter()
            .position(|&inst| func[inst].effect() != Effect::Pure)?;
        let params = &func.regions[body].params;
        let (tested, is_negated) = leaves(func, insts[at], params)?;
        Self::compared(func, Test::First(insts[at]), tested, params, is_negated)
    }

    /// The branch that leaves the loop at the end of an iteration, with what that yields.
    fn last(func: &Function, body: Region) -> Option<Self> {
        let yielded = func.yielded(body)?;
        let insts = &func.regions[body].insts[..];
        let at = insts
            .iter()
            .rposition(|&inst| func[inst].effect() != Effect::Pure);
        let at = match at {
            Some(at) if at + 1 == insts.len() => insts[..at]
                .iter()
                .rposition(|&inst| func[inst].effect() != Effect::Pure)?,
            _ => return None,
        };
        let (tested, is_negated) = leaves(func, insts[at], yielded)?;
        Self::compared(func, Test::Last(insts[at]), tested, yielded, is_negated)
    }

    /// The comparison of one of `variables` with what the loop does not change.
    fn compared(
        func: &Function,
        test: Test,
        tested: Value,
        variables: &[Value],
        is_negated: bool,
    ) -> Option<Self> {
        let &Op::Compare { op, lhs, rhs } = func.def_op(tested)? else {
            return None;
        };
        let op = if is_negated { op.negated() } else { op };
        let position = |v| variables.iter().position(|&variable| variable == v);
        let (at, op, bound) = match (position(lhs), position(rhs)) {
            (Some(at), None) => (at, op, rhs),
            (None, Some(at)) => (at, op.swapped(), lhs),
            _ => return None,
        };
        Some(Self {
            test,
            op,
            at,
            bound,
        })
    }
}

/// The condition of a branch, if one side of it leaves the loop with `values` and the other is empty; and whether it
/// leaves if the condition is true.
fn leaves(func: &Function, branch: Inst, values: &[Value]) -> Option<(Value, bool)> {
    let Op::If {
        cond,
        then,
        otherwise,
    } = func[branch]
    else {
        return None;
    };
    let only = |region: Region| match func.regions[region].insts[..] {
        [only] => Some(&func[only]),
        _ => None,
    };
    let is_break =
        |region| matches!(only(region), Some(Op::Break { values: with }) if with == values);
    let is_empty = |region| matches!(only(region), Some(Op::Yield { .. }));
    if is_break(then) && is_empty(otherwise) {
        Some((cond, true))
    } else {
        (is_break(otherwise) && is_empty(then)).then_some((cond, false))
    }
}

impl Count {
    fn of(func: &Function, inst: Inst, ranges: &Ranges) -> Option<Self> {
        let Op::While {
            ref init,
            cond,
            body,
        } = func[inst]
        else {
            return None;
        };
        let Comparison {
            test,
            op,
            at,
            bound,
        } = Comparison::of(func, cond, body)?;
        if is_inside(func, cond, bound) || is_inside(func, body, bound) {
            return None;
        }
        let ty = func.elem(bound);
        let counter = func.regions[body].params[at];
        let step = ty.is_int().then(|| step_of(func, body, at, counter))??;
        let by = step.as_i128();
        let range = |v: Value| match func.as_const(v) {
            Some(c) => Some(Interval::point(c.as_i128())),
            None => ranges.of(func, v),
        };
        let first = range(init[at]);
        let last = range(bound);
        // Nothing leads past the bound.
        let reaches = || {
            first.zip(last).is_some_and(|(first, last)| match by {
                1 => first.hi <= last.lo,
                -1 => first.lo >= last.hi,
                _ => false,
            })
        };
        let end = match (op, by > 0) {
            (CompareOp::Lt, true) | (CompareOp::Gt, false) => 0,
            (CompareOp::Le, true) => 1,
            (CompareOp::Ge, false) => -1,
            (CompareOp::Ne, _) if !matches!(test, Test::Last(_)) && reaches() => 0,
            _ => return None,
        };
        // The furthest from the bound that the counter comes.
        let furthest = end + by - by.signum();
        let mut is_safe = furthest == 0 || {
            let Interval { lo, hi } = last?;
            fits(ty, lo + furthest) && fits(ty, hi + furthest)
        };
        if matches!(test, Test::Last(_)) {
            // A `continue` would pass it by.
            let mut continues = Vec::new();
            continues_of(func, body, at, &mut continues);
            is_safe &= continues.is_empty();
            // The first iteration runs in any case.
            let Interval { lo, hi } = first?;
            is_safe &= fits(ty, lo + by) && fits(ty, hi + by);
        }
        let length = first.zip(last).map(|(first, last)| {
            let (up, down) = (last.hi - first.lo, first.hi - last.lo);
            if by > 0 { up / by } else { down / -by }
        });
        let is_long = ty.bits() > 16 && length.is_none_or(|n| n >= 1 << CHUNK);
        let breaks = match test {
            Test::Condition => may_break(func, body),
            Test::Both(_) => true,
            Test::First(branch) | Test::Last(branch) => {
                let others = func.regions[body]
                    .insts
                    .iter()
                    .filter(|&&inst| inst != branch);
                others.copied().any(|inst| leaves_loop(func, inst))
            }
        };
        // Code for several iterations of an outer loop at once takes loops that only compute, by 1 if they are `for` loops.
        let gains = (by == 1 && !is_long && !breaks)
            || touches_memory(func, body)
            || touches_memory(func, cond);
        let chunk = by.checked_mul(1 << CHUNK)?;
        let fits_in_chunks = !is_long || fits(ty, chunk) && fits(ty, -chunk);
        let returns = breaks && may_return(func, body);
        (is_safe && gains && fits_in_chunks && !returns).then_some(Self {
            test,
            at,
            end: (bound, end),
            step,
            is_long,
        })
    }

    /// Makes the loop, with what stands before it added to `out`.
    fn write(self, func: &mut Function, inst: Inst, out: &mut Vec<Inst>) {
        let Op::While {
            ref init,
            cond,
            body,
        } = func[inst]
        else {
            unreachable!("only `while` loops count")
        };
        let (mut init, span) = (init.clone(), func.insts[inst].span);
        let ty = func.ty(self.end.0);
        let before = func.new_region(&[]);
        let mut b = Builder::new(func, before);
        b.span = span;
        let step = b.constant(self.step);
        let mut hi = self.end.0;
        if self.end.1 != 0 {
            let by = b.constant(Scalar::int(self.step.ty(), self.end.1));
            hi = b.binary(BinaryOp::Add, hi, by);
        }
        let is_up = self.step.as_i128() > 0;
        if let Test::Last(_) = self.test {
            let second = b.binary(BinaryOp::Add, init[self.at], step);
            let op = if is_up { BinaryOp::Max } else { BinaryOp::Min };
            hi = b.binary(op, hi, second);
        }
        let always = match self.is_long {
            true => Some(b.constant(Scalar::bool(true))),
            false => None,
        };
        out.append(&mut func.regions[before].insts);
        self.take_test(func, cond, body);
        let carried = func.regions[body].params[self.at];
        let types: Vec<Type> = init.iter().map(|&v| func.ty(v)).collect();
        let counter = first_param(func, body, ty);
        replace_value(func, body, carried, counter);
        let Some(always) = always else {
            let lo = init[self.at];
            func.insts[inst].op = Op::For {
                lo,
                hi,
                step,
                init,
                body,
            };
            return;
        };
        // A chunk that `break` leaves is the last one.
        let breaks = may_break(func, body);
        let mut types = types;
        if breaks {
            note_breaks(func, body, always);
            types.push(Type::Scalar(ScalarType::U1));
            init.push(always);
            func.add_result(inst, Type::Scalar(ScalarType::U1));
        }
        let at = self.at;
        let is_new_test = breaks || !matches!(self.test, Test::Condition);
        let cond = match is_new_test {
            false => cond,
            true => Builder::new(func, before).region(&types, |b, params| {
                b.span = span;
                let op = if is_up { CompareOp::Lt } else { CompareOp::Gt };
                let mut more = b.compare(op, params[at], hi);
                if breaks {
                    more = b.binary(BinaryOp::And, more, params[params.len() - 1]);
                }
                b.yields(vec![more]);
            }),
        };
        let chunks = func.new_region(&types);
        let carried = func.regions[chunks].params.clone();
        let mut b = Builder::new(func, chunks);
        b.span = span;
        let lo = carried[at];
        let hi = self.chunk(&mut b, lo, hi);
        let op = Op::For {
            lo,
            hi,
            step,
            init: carried,
            body,
        };
        let chunk = b.inst(op, &types);
        let results = b.func.insts[chunk].results.clone();
        b.yields(results);
        func.insts[inst].op = Op::While {
            init,
            cond,
            body: chunks,
        };
    }

    /// Takes the comparison out of the loop's body; brings there what else keeps the loop running.
    fn take_test(&self, func: &mut Function, cond: Region, body: Region) {
        match self.test {
            Test::Condition => {}
            Test::First(branch) | Test::Last(branch) => {
                func.regions[body].insts.retain(|&inst| inst != branch);
            }
            Test::Both(branch) => {
                let Op::If { then, .. } = func[branch] else {
                    unreachable!("it was found as a branch")
                };
                let params = func.regions[body].params.clone();
                let old = func.regions[cond].params.clone();
                let pairs: Vec<_> = old.into_iter().zip(params.iter().copied()).collect();
                replace_values(func, cond, &pairs);
                let end = func.terminator(then);
                let more = func.yielded(then).expect("a condition yields")[0];
                let insts = std::mem::take(&mut func.regions[cond].insts);
                let mut insts: Vec<Inst> = insts
                    .into_iter()
                    .take_while(|&inst| inst != branch)
                    .collect();
                insts.extend(func.regions[then].insts.iter().filter(|&&inst| inst != end));
                let rest = std::mem::replace(&mut func.regions[body].insts, insts);
                let mut b = Builder::new(func, body);
                b.span = b.func.insts[branch].span;
                b.if_(
                    more,
                    &[],
                    |_| (),
                    |b| {
                        b.effect(Op::Break { values: params });
                    },
                );
                func.regions[body].insts.extend(rest);
            }
        }
    }

    /// The end of the chunk that begins at `lo`.
    fn chunk(&self, b: &mut Builder<'_>, lo: Value, hi: Value) -> Value {
        let (ty, by) = (self.step.ty(), self.step.as_i128());
        let [zero, size, distance] =
            [0, by.abs() << CHUNK, by << CHUNK].map(|n| b.constant(Scalar::int(ty, n)));
        let rest = match by > 0 {
            true => b.binary(BinaryOp::Sub, hi, lo),
            false => b.binary(BinaryOp::Sub, lo, hi),
        };
        // What is too far for the type is negative.
        let [some, few] = [(CompareOp::Ge, zero), (CompareOp::Le, size)]
            .map(|(op, than)| b.compare(op, rest, than));
        let is_last = b.binary(BinaryOp::And, some, few);
        let next = b.binary(BinaryOp::Add, lo, distance);
        b.select(is_last, hi, next)
    }
}

/// Lets a loop carry whether it has not been left by `break`.
fn note_breaks(func: &mut Function, body: Region, always: Value) {
    func.add_param(body, Type::Scalar(ScalarType::U1));
    let never = func.new_region(&[]);
    let never = {
        let mut b = Builder::new(func, never);
        let value = b.constant(Scalar::bool(false));
        let inst = b.func.def(value).expect("it was made");
        func.regions[body].insts.insert(0, inst);
        value
    };
    if let Some(end) = func.regions[body].insts.last().copied()
        && let Op::Yield { values } = &mut func.insts[end].op
    {
        values.push(always);
    }
    note_ends(func, body, always, never);
}

fn note_ends(func: &mut Function, region: Region, always: Value, never: Value) {
    for inst in func.regions[region].insts.clone() {
        match &mut func.insts[inst].op {
            Op::Break { values } => values.push(never),
            Op::Continue { values } => values.push(always),
            &mut Op::If {
                then, otherwise, ..
            } => {
                note_ends(func, then, always, never);
                note_ends(func, otherwise, always, never);
            }
            // `continue` in an inner loop belongs to that loop.
            _ => {}
        }
    }
}

/// Whether a value is made in a region, not in those inside.
fn is_inside(func: &Function, region: Region, value: Value) -> bool {
    let region = &func.regions[region];
    let made = func
        .def(value)
        .is_some_and(|def| region.insts.contains(&def));
    made || region.params.contains(&value)
}

/// Whether `break` or `return` may leave a loop.
pub(crate) fn may_break(func: &Function, region: Region) -> bool {
    let mut insts = func.regions[region].insts.iter();
    insts.any(|&inst| leaves_loop(func, inst))
}

fn leaves_loop(func: &Function, inst: Inst) -> bool {
    match func[inst] {
        Op::Break { .. } | Op::Return { .. } => true,
        Op::If {
            then, otherwise, ..
        } => may_break(func, then) || may_break(func, otherwise),
        _ => false,
    }
}

fn may_return(func: &Function, region: Region) -> bool {
    let mut found = false;
    walk(func, region, &mut |func, inst| {
        found |= matches!(func[inst], Op::Return { .. });
    });
    found
}

fn touches_memory(func: &Function, region: Region) -> bool {
    let mut found = false;
    walk(func, region, &mut |func, inst| {
        found |= matches!(func[inst], Op::Load { .. } | Op::Store { .. });
    });
    found
}

fn fits(ty: ScalarType, value: i128) -> bool {
    Scalar::int(ty, value).as_i128() == value
}

/// The constant that every iteration adds to a variable, wherever it ends.
fn step_of(func: &Function, body: Region, at: usize, param: Value) -> Option<Scalar> {
    let mut ends = Vec::new();
    ends_of(func, body, at, &mut ends);
    let mut steps = ends.into_iter().map(|end| step(func, end, param));
    let first = steps.next()??;
    steps.all(|step| step == Some(first)).then_some(first)
}

/// What the iterations of a loop end with as a variable.
fn ends_of(func: &Function, region: Region, at: usize, ends: &mut Vec<Value>) {
    if let Op::Yield { values } = &func[func.terminator(region)] {
        ends.push(values[at]);
    }
    continues_of(func, region, at, ends);
}

fn continues_of(func: &Function, region: Region, at: usize, ends: &mut Vec<Value>) {
    for &inst in &func.regions[region].insts {
        match &func[inst] {
            Op::Continue { values } => ends.push(values[at]),
            Op::If {
                then, otherwise, ..
            } => {
                continues_of(func, *then, at, ends);
                continues_of(func, *otherwise, at, ends);
            }
            // `continue` in an inner loop belongs to that loop.
            _ => {}
        }
    }
}

fn step(func: &Function, end: Value, param: Value) -> Option<Scalar> {
    let &Op::Binary { op, lhs, rhs } = func.def_op(end)? else {
        return None;
    };
    let constant = |v| func.as_const(v);
    match op {
        BinaryOp::Add if lhs == param => constant(rhs),
        BinaryOp::Add if rhs == param => constant(lhs),
        BinaryOp::Sub if lhs == param => {
            let by = constant(rhs)?;
            let negated = -by.as_i128();
            (by.ty().is_signed() && fits(by.ty(), negated)).then(|| Scalar::int(by.ty(), negated))
        }
        _ => None,
    }
}

/// Adds a parameter before those that a region has.
fn first_param(func: &mut Function, region: Region, ty: Type) -> Value {
    let param = func.add_param(region, ty);
    func.regions[region].params.rotate_right(1);
    let all = vec![true; func.regions[region].params.len()];
    func.retain_params(region, &all);
    param
}

#[cfg(test)]
mod tests;
