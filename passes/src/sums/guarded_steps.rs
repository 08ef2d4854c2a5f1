//! Steps of accumulations leave branches.
//!
//! ```text
//! for .. [v0] (v1: i32, v2: f32) {          for .. [v0] (v1: i32, v2: f32) {
//!     v3 = if c {                               v3 = if c {
//!         v4 = mul v9, v9                           v4 = mul v9, v9
//!         v5 = add v2, v4                           yield [v4]
//!         yield [v5]                   ==>      } {
//!     } {                                           yield [-0.0]
//!         yield [v2]                            }
//!     }                                         v5 = add v2, v3
//!     yield [v3]                                yield [v5]
//! }                                         }
//! ```
//! LLVM makes vectors of a sum that every iteration adds to, but not of one that iterations choose to add to. The value
//! that a branch adds where it is not taken changes nothing (`x + -0.0` is `x` for every `x`; of NaN and a number the
//! maximum is the number), so that results stay the same bit by bit, and what a branch computes does not reach the
//! accumulator if the branch is not taken. (NaN as a term keeps LLVM from making vectors: infinity stands for it where the
//! accumulator is known to be a number.) The same is done for `select(c, x + v, x)`, and for accumulators in memory that
//! `thread_local` has made. A `continue` becomes a branch first. All this is for innermost loops that could be vectorised.

mod accumulators;

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType, Span};
use aerogel_ir::analysis::cost::is_cheap;
use aerogel_ir::{
    AtomicOp, BinaryOp, Effect, FastMath, Function, Inst, Op, Region, UnaryOp, Value, walk,
};

use super::extrema;
use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    if !has_loops(func) {
        return false;
    }
    let mut changed = extrema_of_tasks(func, cx.env.fast_math);
    let mut loops = Vec::new();
    walk(func, func.body, &mut |func, inst| match func[inst] {
        Op::For { body, ref init, .. } if is_wanted(func, body) => {
            loops.push((body, init.clone()));
        }
        Op::Each { body } if is_wanted(func, body) => loops.push((body, Vec::new())),
        _ => {}
    });
    if loops.is_empty() {
        return changed;
    }
    let mut steps = GuardedSteps {
        uses: func.use_counts(),
        accumulates: SecondaryMap::new(),
        numbers: SecondaryMap::new(),
        cells: SecondaryMap::new(),
        inside: SecondaryMap::new(),
        by: SecondaryMap::new(),
        changed: false,
    };
    for (body, init) in loops {
        changed |= super::continues::run(func, body);
        for (k, init) in init.into_iter().enumerate() {
            // The first parameter is the counter.
            let param = func.regions[body].params[k + 1];
            steps.accumulates[param] = true;
            let end = func.yielded(body).map(|values| values[k]);
            steps.numbers[param] =
                is_number(func, init, param) && end.is_some_and(|end| is_number(func, end, param));
        }
        steps.find_cells(func, body);
        steps.region(func, body);
    }
    changed | steps.changed
}

/// Makes maxima and minima of the comparisons of innermost loops.
fn extrema_of_tasks(func: &mut Function, level: FastMath) -> bool {
    let uses = func.use_counts();
    if !func.is_kernel {
        return extrema::run(func, func.body, level, &uses, &is_wanted);
    }
    let mut changed = false;
    for task in func.regions[func.body].insts.clone() {
        if let Op::Task { attrs, body, .. } = func[task] {
            let level = attrs.fast_math.unwrap_or(level);
            changed |= extrema::run(func, body, level, &uses, &is_wanted);
        }
    }
    changed
}

fn is_nan(constant: Scalar) -> bool {
    constant.ty().is_float() && constant.as_f64().is_nan()
}

/// Whether a value is no NaN if another one, `known`, is none.
fn is_number(func: &Function, value: Value, known: Value) -> bool {
    if let Some(constant) = func.as_const(value) {
        return !is_nan(constant);
    }
    let both = |x, y| is_number(func, x, known) && is_number(func, y, known);
    value == known
        || match func.def_op(value) {
            Some(&Op::Binary {
                op: BinaryOp::Min | BinaryOp::Max,
                lhs,
                rhs,
            }) => is_number(func, lhs, known) || is_number(func, rhs, known),
            Some(&Op::Select {
                on_true, on_false, ..
            }) => both(on_true, on_false),
            Some(&Op::If {
                then, otherwise, ..
            }) => {
                let inst = func.def(value).expect("it is a result");
                let mut results = func.insts[inst].results.iter();
                let k = results.position(|&r| r == value).expect("it is a result");
                let ends = [then, otherwise].map(|side| func.yielded(side).map(|v| v[k]));
                ends[0].zip(ends[1]).is_some_and(|(x, y)| both(x, y))
            }
            _ => false,
        }
}

/// Whether there is a loop that the pass is for.
fn has_loops(func: &Function) -> bool {
    let mut found = false;
    walk(func, func.body, &mut |func, inst| {
        if let Op::For { body, .. } | Op::Each { body } = func[inst] {
            found = found || is_wanted(func, body);
        }
    });
    found
}

fn is_wanted(func: &Function, body: Region) -> bool {
    has_branches(func, body) && is_innermost(func, body) && !is_costly_inside(func, body, 0)
}

/// Whether a branch of a branch holds something costly, such as a division. Vectors compute it for every lane; a branch of a
/// branch is seldom taken, so that less is lost as long as both stay branches.
fn is_costly_inside(func: &Function, region: Region, depth: u32) -> bool {
    func.regions[region].insts.iter().any(|&inst| {
        let op = &func[inst];
        let computes = matches!(op, Op::Unary { .. } | Op::Binary { .. });
        let is_costly = depth > 1 && computes && !is_cheap(op);
        let inner = |&side: &Region| is_costly_inside(func, side, depth + 1);
        is_costly || func.owned(inst).iter().any(inner)
    })
}

fn has_branches(func: &Function, body: Region) -> bool {
    let mut insts = func.regions[body].insts.iter();
    insts.any(|&inst| matches!(func[inst], Op::If { .. } | Op::Select { .. }))
}

/// Whether a loop has no loops inside, and nothing else that keeps it from being vectorised.
fn is_innermost(func: &Function, body: Region) -> bool {
    let mut is_innermost = true;
    walk(func, body, &mut |func, inst| {
        is_innermost &= match func[inst] {
            Op::If { .. } | Op::Store { .. } | Op::Yield { .. } | Op::Continue { .. } => true,
            ref op => matches!(op.effect(), Effect::Pure | Effect::Reads),
        };
    });
    is_innermost
}

/// The kind of an accumulation.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    /// Differences count as sums of negated terms.
    op: AtomicOp,
    /// Whether the term comes first, where that matters: the maximum of two zeros is the second.
    swapped: bool,
    /// Whether the accumulator may be NaN.
    may_be_nan: bool,
}

impl Kind {
    fn of(func: &Function, op: BinaryOp, value: Value, swapped: bool) -> Option<Self> {
        let ty = func.ty(value).scalar()?;
        if ty.is_half() || ty == ScalarType::U1 {
            return None;
        }
        let op = match op {
            BinaryOp::Add | BinaryOp::Sub => AtomicOp::Add,
            BinaryOp::Min => AtomicOp::Min,
            BinaryOp::Max => AtomicOp::Max,
            // Products of floats keep their order, and so gain nothing.
            BinaryOp::Mul if ty.is_int() => AtomicOp::Mul,
            BinaryOp::And => AtomicOp::And,
            BinaryOp::Or => AtomicOp::Or,
            BinaryOp::Xor => AtomicOp::Xor,
            _ => return None,
        };
        let swapped = swapped && matches!(op, AtomicOp::Min | AtomicOp::Max);
        Some(Self {
            op,
            swapped,
            may_be_nan: true,
        })
    }

    /// The identity element of the accumulation.
    fn neutral(self, ty: ScalarType) -> Scalar {
        match self.op {
            AtomicOp::Min | AtomicOp::Max if ty.is_float() && self.may_be_nan => {
                Scalar::float(ty, f64::NAN)
            }
            op => op.identity(ty).expect("a kind of accumulation has one"),
        }
    }

    fn step(self, value: Value, term: Value) -> Op {
        let op = self.op.binary().expect("it computes");
        let [lhs, rhs] = match self.swapped {
            true => [term, value],
            false => [value, term],
        };
        Op::Binary { op, lhs, rhs }
    }
}

/// One step: the instruction, and the term that it takes into the accumulator.
#[derive(Clone, Copy)]
struct Step {
    inst: Inst,
    term: Value,
    negated: bool,
}

/// Steps of one accumulator in both sides of a branch.
struct Steps {
    kind: Kind,
    sides: [Vec<Step>; 2],
}

struct GuardedSteps {
    uses: SecondaryMap<Value, u32>,
    /// Variables that the loop carries, and what steps have made of them.
    accumulates: SecondaryMap<Value, bool>,
    /// Accumulators that are not NaN, and places of such.
    numbers: SecondaryMap<Value, bool>,
    /// Accumulators in memory, which are touched by steps only.
    cells: SecondaryMap<Value, Option<Kind>>,
    /// In which region an instruction stands.
    inside: SecondaryMap<Inst, Option<Region>>,
    /// The replacements of values.
    by: SecondaryMap<Value, Option<Value>>,
    changed: bool,
}

impl GuardedSteps {
    fn region(&mut self, func: &mut Function, region: Region) {
        let mut out = Vec::new();
        for inst in std::mem::take(&mut func.regions[region].insts) {
            func.insts[inst]
                .op
                .map_operands(|v| self.by[v].unwrap_or(v));
            self.inside[inst] = Some(region);
            match func[inst] {
                Op::If {
                    then, otherwise, ..
                } => {
                    let sides = [then, otherwise];
                    sides.iter().for_each(|&side| self.region(func, side));
                    out.push(inst);
                    if sides.iter().all(|&side| func.yielded(side).is_some()) {
                        self.values(func, inst, sides, region, &mut out);
                        self.memory(func, inst, sides, region, &mut out);
                    }
                }
                Op::Select { .. } => self.select(func, inst, region, &mut out),
                Op::Binary { op, lhs, rhs } => {
                    out.push(inst);
                    let result = func.insts[inst].results[0];
                    self.accumulates[result] = (self.accumulates[lhs] || self.accumulates[rhs])
                        && Kind::of(func, op, result, false).is_some();
                    self.numbers[result] = matches!(op, BinaryOp::Min | BinaryOp::Max)
                        && (self.numbers[lhs] || self.numbers[rhs]);
                }
                _ => out.push(inst),
            }
        }
        func.regions[region].insts = out;
    }

    /// Takes the steps of variables out of a branch.
    fn values(
        &mut self,
        func: &mut Function,
        branch: Inst,
        sides: [Region; 2],
        region: Region,
        out: &mut Vec<Inst>,
    ) {
        for k in 0..func.insts[branch].results.len() {
            let result = func.insts[branch].results[k];
            let ends = sides.map(|side| func.yielded(side).expect("it yields")[k]);
            let Some((start, mut steps)) = self.steps_between(func, ends, sides) else {
                continue;
            };
            steps.kind.may_be_nan = !self.numbers[start];
            for (side, end) in sides.into_iter().zip(ends) {
                if end != start {
                    remove(func, side, |inst| {
                        steps.sides.iter().flatten().any(|step| step.inst == inst)
                    });
                }
                let last = func.terminator(side);
                if let Op::Yield { values } = &mut func.insts[last].op {
                    values[k] = start;
                }
            }
            let mut sum = start;
            for term in terms(func, branch, sides, &steps) {
                sum = self.append(func, steps.kind.step(sum, term), branch, region, out);
            }
            self.replace(result, sum, self.numbers[start]);
        }
    }

    /// Uses the value of an accumulator for another one.
    fn replace(&mut self, value: Value, by: Value, is_number: bool) {
        self.accumulates[by] = true;
        self.numbers[by] = is_number;
        self.uses[by] = self.uses[value];
        self.by[value] = Some(by);
        self.changed = true;
    }

    /// The variable that both sides of a branch make steps from to the values at their ends, and the steps.
    fn steps_between(
        &self,
        func: &Function,
        ends: [Value; 2],
        sides: [Region; 2],
    ) -> Option<(Value, Steps)> {
        if ends[0] == ends[1] {
            return None;
        }
        let [x, y] = [0, 1].map(|k| self.follow(func, ends[k], sides[k]));
        let ((start, x, x_kind), (other, y, y_kind)) = (x?, y?);
        let kind = x_kind.or(y_kind)?;
        let same = start == other && [x_kind, y_kind].iter().flatten().all(|&k| k == kind);
        let sides = [x, y];
        same.then_some((start, Steps { kind, sides }))
    }

    /// The variable that steps in a region lead from to a value, in order, and their kind.
    fn follow(
        &self,
        func: &Function,
        end: Value,
        region: Region,
    ) -> Option<(Value, Vec<Step>, Option<Kind>)> {
        let def = func.def(end);
        let is_here = def.is_some_and(|def| self.inside[def] == Some(region));
        if self.accumulates[end] && !is_here {
            return Some((end, Vec::new(), None));
        }
        let inst = def.filter(|_| is_here && self.uses[end] == 1)?;
        let Op::Binary { op, lhs, rhs } = func[inst] else {
            return None;
        };
        let before = |value, term, swapped| {
            let kind = Kind::of(func, op, end, swapped)?;
            let (start, mut steps, all) = self.follow(func, value, region)?;
            steps.push(Step {
                inst,
                term,
                negated: op == BinaryOp::Sub,
            });
            all.is_none_or(|of| of == kind)
                .then_some((start, steps, Some(kind)))
        };
        before(lhs, rhs, false).or_else(|| match op {
            BinaryOp::Sub => None,
            _ => before(rhs, lhs, true),
        })
    }

    /// `select(c, x + v, x)` becomes `x + select(c, v, -0.0)`.
    fn select(&mut self, func: &mut Function, inst: Inst, region: Region, out: &mut Vec<Inst>) {
        let Op::Select {
            cond,
            on_true,
            on_false,
        } = func[inst]
        else {
            unreachable!("only choices come here")
        };
        let Some((x, step, kind)) = self.chosen_step(func, [on_true, on_false], region) else {
            out.push(inst);
            return;
        };
        let is_on_true = func.insts[step.inst].results[0] == on_true;
        out.retain(|&other| other != step.inst);
        let (ty, span) = (func.ty(x), func.insts[inst].span);
        let kind = Kind {
            may_be_nan: !self.numbers[x],
            ..kind
        };
        let value = kind.neutral(func.elem(x));
        let neutral = self.append(func, Op::Const { value }, inst, region, out);
        let term = match step.negated {
            true => negate(func, step.term, span, out),
            false => step.term,
        };
        let [on_true, on_false] = match is_on_true {
            true => [term, neutral],
            false => [neutral, term],
        };
        let choice = Op::Select {
            cond,
            on_true,
            on_false,
        };
        let choice = func.new_inst(choice, &[ty], span);
        out.push(choice);
        let term = func.insts[choice].results[0];
        let sum = self.append(func, kind.step(x, term), inst, region, out);
        self.replace(func.insts[inst].results[0], sum, self.numbers[x]);
    }

    /// A value of an accumulator and the one step from it that is one of two choices, the other being the value itself.
    fn chosen_step(
        &self,
        func: &Function,
        choices: [Value; 2],
        region: Region,
    ) -> Option<(Value, Step, Kind)> {
        [[0, 1], [1, 0]].into_iter().find_map(|[k, other]| {
            let (end, x) = (choices[k], choices[other]);
            let inst = func.def(end)?;
            let Op::Binary { op, lhs, rhs } = func[inst] else {
                return None;
            };
            let is_lhs = lhs == x;
            let is_step = is_lhs || rhs == x && op != BinaryOp::Sub;
            let alone = self.inside[inst] == Some(region) && self.uses[end] == 1;
            let kind = Kind::of(func, op, end, !is_lhs)?;
            let step = Step {
                inst,
                term: if is_lhs { rhs } else { lhs },
                negated: op == BinaryOp::Sub,
            };
            (is_step && alone && self.accumulates[x]).then_some((x, step, kind))
        })
    }

    /// Appends an instruction with one result, of the type of that of `like` or of a constant.
    fn append(
        &mut self,
        func: &mut Function,
        op: Op,
        like: Inst,
        region: Region,
        out: &mut Vec<Inst>,
    ) -> Value {
        let ty = match op {
            Op::Const { value } => value.ty().into(),
            Op::Binary { lhs, .. } => func.ty(lhs),
            ref op => unreachable!("{op:?} is no step"),
        };
        let inst = func.new_inst(op, &[ty], func.insts[like].span);
        self.inside[inst] = Some(region);
        out.push(inst);
        let result = func.insts[inst].results[0];
        self.uses[result] = 1;
        result
    }
}

fn remove(func: &mut Function, region: Region, is_gone: impl Fn(Inst) -> bool) {
    func.regions[region].insts.retain(|&inst| !is_gone(inst));
}

/// Lets a branch yield the terms of its steps: a result for each pair of steps of the two sides.
fn terms(func: &mut Function, branch: Inst, sides: [Region; 2], steps: &Steps) -> Vec<Value> {
    let n = steps.sides[0].len().max(steps.sides[1].len());
    let mut results = Vec::new();
    for at in 0..n {
        let some = steps.sides.iter().find_map(|side| side.get(at));
        let ty = func.ty(some.expect("a side has so many steps").term);
        let elem = ty.scalar().expect("accumulators are scalars");
        for (side, steps_of) in sides.into_iter().zip(&steps.sides) {
            let last = func.regions[side].insts.pop().expect("a terminator");
            let span = func.insts[last].span;
            let mut insts = std::mem::take(&mut func.regions[side].insts);
            let term = match steps_of.get(at) {
                Some(step) if step.negated => negate(func, step.term, span, &mut insts),
                Some(step) => step.term,
                None => {
                    let value = steps.kind.neutral(elem);
                    let inst = func.new_inst(Op::Const { value }, &[ty], span);
                    insts.push(inst);
                    func.insts[inst].results[0]
                }
            };
            insts.push(last);
            func.regions[side].insts = insts;
            if let Op::Yield { values } = &mut func.insts[last].op {
                values.push(term);
            }
        }
        results.push(func.add_result(branch, ty));
    }
    results
}

fn negate(func: &mut Function, x: Value, span: Span, out: &mut Vec<Inst>) -> Value {
    let op = Op::Unary {
        op: UnaryOp::Neg,
        x,
    };
    let inst = func.new_inst(op, &[func.ty(x)], span);
    out.push(inst);
    func.insts[inst].results[0]
}

#[cfg(test)]
mod tests;
