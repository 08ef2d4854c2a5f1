//! Value ranges of integers where they are used: from constants, counters of loops, and conditions.

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::Interval;
use aerogel_ir::analysis::affine::scaled;
use aerogel_ir::{BinaryOp, CompareOp, Env, Function, Op, Region, Value};

/// How far back operands are followed: each step may double the work.
const DEEPEST: u32 = 10;

/// The ends and the direction of a counter.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    pub(super) lo: Value,
    pub(super) hi: Value,
    pub(super) counts_up: bool,
}

/// What is known where a walk stands. What a region's conditions say is forgotten behind it.
#[derive(Default)]
pub(super) struct Known {
    counters: SecondaryMap<Value, Option<Counter>>,
    intervals: SecondaryMap<Value, Option<Interval>>,
    undone: Vec<(Value, Option<Interval>)>,
}

/// A comparison that a condition consists of.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) op: CompareOp,
    pub(super) lhs: Value,
    pub(super) rhs: Value,
}

/// The comparisons of integers that hold together exactly if a condition does; none if it is anything else besides.
pub(super) fn parts(func: &Function, cond: Value) -> Option<Vec<Part>> {
    let mut found = Vec::new();
    collect(func, cond, &mut found).then_some(found)
}

/// Adds the comparisons that hold if a condition does. Returns whether the condition says nothing else.
fn collect(func: &Function, cond: Value, out: &mut Vec<Part>) -> bool {
    match func.def_op(cond) {
        Some(&Op::Binary {
            op: BinaryOp::And,
            lhs,
            rhs,
        }) => {
            let whole = collect(func, lhs, out);
            collect(func, rhs, out) && whole
        }
        Some(&Op::Compare { op, lhs, rhs }) => {
            let is_int = func.ty(lhs).scalar().is_some_and(ScalarType::is_int);
            if is_int {
                out.push(Part { op, lhs, rhs });
            }
            is_int
        }
        // `a and b` as a branch: the other side yields the condition, or false.
        Some(&Op::If {
            cond: first,
            then,
            otherwise,
        }) => {
            let at = func.def(cond).and_then(|inst| {
                let results = &func.insts[inst].results;
                results.iter().position(|&r| r == cond)
            });
            let yielded = |region| func.yielded(region).zip(at).map(|(values, at)| values[at]);
            if let (Some(second), Some(other)) = (yielded(then), yielded(otherwise))
                && (other == first || func.as_const(other).is_some_and(|c| c.is_zero()))
            {
                collect(func, first, out);
                collect(func, second, out);
            }
            false
        }
        Some(Op::Const { value }) => !value.is_zero(),
        _ => false,
    }
}

impl Known {
    /// Remembers the parameters of the regions that an instruction owns.
    pub(super) fn enter(&mut self, func: &Function, env: &Env, op: &Op) {
        match *op {
            Op::For {
                lo, hi, step, body, ..
            } => {
                let counter = func.regions[body].params[0];
                self.counters[counter] = func.as_const(step).map(|step| Counter {
                    lo,
                    hi,
                    counts_up: step.as_i128() > 0,
                });
            }
            Op::Parallel {
                ref lo,
                ref hi,
                body,
                ..
            } => {
                let params = func.regions[body].params.iter();
                for (&counter, (&lo, &hi)) in params.zip(lo.iter().zip(hi)) {
                    self.counters[counter] = Some(Counter {
                        lo,
                        hi,
                        counts_up: true,
                    });
                }
            }
            Op::ParallelCells { node, body, .. } => {
                let shape = env.trees[node.tree].shape(node.node);
                for (&param, size) in func.regions[body].params.iter().zip(shape) {
                    self.intervals[param] = Interval::below(size.into());
                }
            }
            _ => {}
        }
    }

    /// The ends of a counter.
    pub(super) fn counter(&self, value: Value) -> Option<Counter> {
        self.counters[value]
    }

    /// Where to return to by [`Self::forget`].
    pub(super) fn mark(&self) -> usize {
        self.undone.len()
    }

    /// Forgets what was learned since.
    pub(super) fn forget(&mut self, mark: usize) {
        for (value, before) in self.undone.drain(mark..).rev() {
            self.intervals[value] = before;
        }
    }

    /// Learns that a condition holds.
    pub(super) fn learn(&mut self, func: &Function, cond: Value) {
        let mut found = Vec::new();
        collect(func, cond, &mut found);
        for part in found {
            self.learn_part(func, part);
        }
    }

    /// Learns that a condition does not hold, if it is a single comparison.
    pub(super) fn learn_not(&mut self, func: &Function, cond: Value) {
        let Some(&Op::Compare { op, lhs, rhs }) = func.def_op(cond) else {
            return;
        };
        if func.ty(lhs).scalar().is_some_and(ScalarType::is_int) {
            let op = match op {
                CompareOp::Lt => CompareOp::Ge,
                CompareOp::Le => CompareOp::Gt,
                CompareOp::Gt => CompareOp::Le,
                CompareOp::Ge => CompareOp::Lt,
                CompareOp::Eq => CompareOp::Ne,
                CompareOp::Ne => CompareOp::Eq,
            };
            self.learn_part(func, Part { op, lhs, rhs });
        }
    }

    fn learn_part(&mut self, func: &Function, Part { op, lhs, rhs }: Part) {
        let (a, b) = (self.of(func, lhs), self.of(func, rhs));
        let below = |end: i128| Interval {
            lo: i128::MIN,
            hi: end,
        };
        let above = |end: i128| Interval {
            lo: end,
            hi: i128::MAX,
        };
        let (of_lhs, of_rhs) = match op {
            CompareOp::Lt => (below(b.hi - 1), above(a.lo + 1)),
            CompareOp::Le => (below(b.hi), above(a.lo)),
            CompareOp::Gt => (above(b.lo + 1), below(a.hi - 1)),
            CompareOp::Ge => (above(b.lo), below(a.hi)),
            CompareOp::Eq => (b, a),
            CompareOp::Ne => return,
        };
        self.narrow(func, lhs, of_lhs, DEEPEST);
        self.narrow(func, rhs, of_rhs, DEEPEST);
    }

    /// Learns that a value lies in an interval, and what that says about the value that it is computed from.
    fn narrow(&mut self, func: &Function, value: Value, to: Interval, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        let before = self.of(func, value);
        let now = Interval {
            lo: before.lo.max(to.lo),
            hi: before.hi.min(to.hi),
        };
        if now == before || func.as_const(value).is_some() {
            return;
        }
        self.undone.push((value, self.intervals[value]));
        self.intervals[value] = Some(now);
        match *func.def_op(value).unwrap_or(&Op::Undef {}) {
            Op::Cast { x } if widens(func, x, value) => self.narrow(func, x, now, depth),
            Op::Binary {
                op: op @ (BinaryOp::Add | BinaryOp::Sub),
                lhs,
                rhs,
            } => {
                let constant = |v| func.as_const(v).map(|c| c.as_i128());
                let (x, by) = match (op, constant(lhs), constant(rhs)) {
                    (BinaryOp::Add, None, Some(by)) => (lhs, by),
                    (BinaryOp::Add, Some(by), None) => (rhs, by),
                    (BinaryOp::Sub, None, Some(by)) => (lhs, -by),
                    _ => return,
                };
                // Modulo the size of the type one number of the operand leads to each result.
                let inner = Interval {
                    lo: now.lo - by,
                    hi: now.hi - by,
                };
                if inner.is_within(&Interval::of_type(func.elem(x))) {
                    self.narrow(func, x, inner, depth);
                }
            }
            _ => {}
        }
    }

    /// The numbers that an integer can be.
    pub(super) fn of(&self, func: &Function, value: Value) -> Interval {
        self.bound(func, value, DEEPEST)
    }

    fn bound(&self, func: &Function, value: Value, depth: u32) -> Interval {
        let Some(ty) = func.ty(value).scalar().filter(|ty| ty.is_int()) else {
            return Interval::ALL;
        };
        let all = Interval::of_type(ty);
        let computed = depth
            .checked_sub(1)
            .and_then(|depth| self.computed(func, value, ty, depth))
            // What does not fit has wrapped.
            .filter(|found| found.is_within(&all))
            .unwrap_or(all);
        match self.intervals[value] {
            Some(learned) => Interval {
                lo: computed.lo.max(learned.lo),
                hi: computed.hi.min(learned.hi),
            },
            None => computed,
        }
    }

    fn computed(
        &self,
        func: &Function,
        value: Value,
        ty: ScalarType,
        depth: u32,
    ) -> Option<Interval> {
        let of = |v| self.bound(func, v, depth);
        let Some(op) = func.def_op(value) else {
            let counter = self.counters[value]?;
            let (lo, hi) = (of(counter.lo), of(counter.hi));
            return Some(match counter.counts_up {
                true => Interval {
                    lo: lo.lo,
                    hi: hi.hi - 1,
                },
                false => Interval {
                    lo: hi.lo + 1,
                    hi: lo.hi,
                },
            });
        };
        match *op {
            Op::Const { value } => Some(Interval::point(value.as_i128())),
            Op::Cast { x } if func.elem(x).is_int() => Some(of(x)),
            Op::ArrayShape { .. } => Some(Interval {
                lo: 0,
                hi: i32::MAX.into(),
            }),
            Op::Select {
                on_true, on_false, ..
            } => of(on_true).joined(&of(on_false)),
            Op::Binary { op, lhs, rhs } => match op {
                BinaryOp::And | BinaryOp::Mod => {
                    let end = func.as_const(rhs)?.as_i128() + i128::from(op == BinaryOp::And);
                    Interval::below(end).filter(|_| end > 0)
                }
                BinaryOp::Shl => {
                    let (x, factor) = scaled(func, value)?;
                    Interval::binary(BinaryOp::Mul, &of(x), &Interval::point(factor))
                }
                BinaryOp::Shr if ty.is_signed() => {
                    let count = u32::try_from(func.as_const(rhs)?.as_i128()).ok()?;
                    let divisor = 1_i128 << (count & (ty.bits() - 1));
                    Interval::binary(BinaryOp::FloorDiv, &of(lhs), &Interval::point(divisor))
                }
                _ => Interval::binary(op, &of(lhs), &of(rhs)),
            },
            _ => None,
        }
    }

    /// Whether a comparison is known to hold.
    pub(super) fn holds(&self, func: &Function, Part { op, lhs, rhs }: Part) -> bool {
        let (a, b) = (self.of(func, lhs), self.of(func, rhs));
        match op {
            CompareOp::Lt => a.hi < b.lo,
            CompareOp::Le => a.hi <= b.lo,
            CompareOp::Gt => a.lo > b.hi,
            CompareOp::Ge => a.lo >= b.hi,
            CompareOp::Eq => a.is_point() && a == b,
            CompareOp::Ne => a.hi < b.lo || b.hi < a.lo,
        }
    }
}

/// Whether a conversion of integers keeps every number.
pub(super) fn widens(func: &Function, x: Value, value: Value) -> bool {
    let ty = |v| func.ty(v).scalar().filter(|ty: &ScalarType| ty.is_int());
    match (ty(x), ty(value)) {
        (Some(from), Some(to)) => Interval::of_type(from).is_within(&Interval::of_type(to)),
        _ => false,
    }
}

/// Whether control never leaves a region by its end.
pub(super) fn does_not_fall_through(func: &Function, region: Region) -> bool {
    func.yielded(region).is_none()
}
