//! A loop that treats one iteration differently is split there.
//!
//! ```text
//! for lo, hi, 1 (j) {                       for lo, at, 1 (j) { body of j != i }
//!     if j != i { .. }           ==>        for at, end, 1 (j) { body of j == i }      at most one iteration
//! }                                         for end, hi, 1 (j) { body of j != i }
//! ```
//! LLVM vectorises the loops on both sides, which have no branch, but not a loop with reads in a branch. The loop-carried
//! values pass from one part to the next, so the order of iterations stays the same. The pass handles innermost loops of
//! some length without `break`, whose test guards more than a few instructions.

use aerogel_base::Scalar;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::access::defined_in;
use aerogel_ir::analysis::trips;
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Function, Inst, Op, Region, Type, Value, copy_region, walk,
};

use crate::PassCx;
use crate::insert::insert_before;
use crate::simplify::counted_whiles::may_break;

/// A loop of fewer iterations is not split.
const SHORTEST: u64 = 16;
/// A loop of more instructions is not copied.
const LARGEST: usize = 120;
/// A branch without reads, of fewer instructions, is no hindrance.
const SHORT_BRANCH: usize = 8;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    insert_before(func, func.body, &mut |func, inst, out| {
        let found = Skipped::of(func, inst);
        let changed = found.is_some();
        if let Some(found) = found {
            found.split(func, out);
        }
        changed
    })
}

/// A loop that compares its counter with a number.
struct Skipped {
    inst: Inst,
    number: Value,
    /// The comparison, and its result in all other iterations.
    questions: Vec<(Inst, bool)>,
}

impl Skipped {
    fn of(func: &Function, inst: Inst) -> Option<Self> {
        let Op::For { step, body, .. } = func[inst] else {
            return None;
        };
        let is_short = trips::length(func, &func[inst]).is_some_and(|n| n < SHORTEST);
        if !func.as_const(step)?.is_one() || is_short || may_break(func, body) {
            return None;
        }
        let mut inside = SecondaryMap::new();
        defined_in(func, body, &mut inside);
        let counter = func.regions[body].params[0];
        let (mut size, mut has_loops) = (0, false);
        let mut questions: Vec<(Inst, bool)> = Vec::new();
        let mut number = None;
        walk(func, body, &mut |func, inst| {
            size += 1;
            has_loops |= matches!(func[inst], Op::For { .. } | Op::While { .. });
            let Op::Compare { op, lhs, rhs } = func[inst] else {
                return;
            };
            let other = match (lhs == counter, rhs == counter) {
                (true, false) => rhs,
                (false, true) => lhs,
                _ => return,
            };
            let is_asked = matches!(op, CompareOp::Eq | CompareOp::Ne) && !inside[other];
            if is_asked && *number.get_or_insert(other) == other {
                questions.push((inst, op == CompareOp::Ne));
            }
        });
        let number = number?;
        let asks_much = questions.iter().any(|&(question, _)| {
            let answer = func.insts[question].results[0];
            decides_much(func, body, answer)
        });
        (!has_loops && size <= LARGEST && asks_much).then_some(Self {
            inst,
            number,
            questions,
        })
    }

    /// Splits the loop, with what stands before its last part added to `out`.
    fn split(self, func: &mut Function, out: &mut Vec<Inst>) {
        let Op::For {
            lo,
            hi,
            step,
            ref init,
            body,
        } = func[self.inst]
        else {
            unreachable!("only such loops are taken")
        };
        let (init, span) = (init.clone(), func.insts[self.inst].span);
        let answer = |func: &mut Function, is_there: bool| {
            for &(question, elsewhere) in &self.questions {
                let value = Scalar::bool(elsewhere != is_there);
                func.insts[question].op = Op::Const { value };
            }
        };
        answer(func, false);
        let [first, last] = [(); 2].map(|()| copy_region(func, body));
        answer(func, true);
        let types: Vec<Type> = init.iter().map(|&v| func.ty(v)).collect();
        let before = func.new_region(&[]);
        let mut b = Builder::new(func, before);
        b.span = span;
        let number = self.number;
        let after_first = b.binary(BinaryOp::Max, number, lo);
        let at = b.binary(BinaryOp::Min, after_first, hi);
        let [from_lo, below_hi] = [(lo, number), (number, hi)].map(|(x, y)| {
            let op = if x == lo {
                CompareOp::Le
            } else {
                CompareOp::Lt
            };
            b.compare(op, x, y)
        });
        let is_there = b.binary(BinaryOp::And, from_lo, below_hi);
        let following = b.binary(BinaryOp::Add, number, step);
        let end = b.select(is_there, following, at);
        let mut carried = init;
        for (lo, hi, body) in [(lo, at, first), (at, end, body)] {
            let op = Op::For {
                lo,
                hi,
                step,
                init: carried,
                body,
            };
            let part = b.inst(op, &types);
            carried = b.func.insts[part].results.clone();
        }
        func.insts[self.inst].op = Op::For {
            lo: end,
            hi,
            step,
            init: carried,
            body: last,
        };
        out.append(&mut func.regions[before].insts);
    }
}

/// Whether a branch on a value reads memory, or is long.
fn decides_much(func: &Function, body: Region, value: Value) -> bool {
    let mut found = false;
    walk(func, body, &mut |func, inst| {
        let Op::If { cond, .. } = func[inst] else {
            return;
        };
        if cond != value {
            return;
        }
        let (mut size, mut reads) = (0, false);
        for side in func.owned(inst) {
            walk(func, side, &mut |func, inst| {
                size += 1;
                // After a `continue` the rest of the iteration is left out.
                reads |= matches!(func[inst], Op::Load { .. } | Op::Continue { .. });
            });
        }
        found |= reads || size >= SHORT_BRANCH;
    });
    found
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn pairs_of_different_elements() {
        check_pass!("skipped_iteration", "
            tree0 { dense i:64 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            func @f(i: i32, n: i32) -> f32 {
                zero: i32 = const 0
                one: i32 = const 1
                start: f32 = const 0.0
                a: f32 = for zero, n, one, [start] (j: i32, s: f32) {
                    c: u1 = ne i, j
                    t: f32 = if c {
                        r: ref<f32> = field_at @x, [j]
                        v: f32 = load r
                        u: f32 = add s, v
                        yield [u]
                    } { yield [s] }
                    yield [t]
                }
                yield [a]
            }", @"
        func @f(v0: i32, v1: i32) -> f32 {
            v2: i32 = const 0
            v3: i32 = const 1
            v4: f32 = const 0.0
            v5: i32 = max v0, v2
            v6: i32 = min v5, v1
            v7: u1 = le v2, v0
            v8: u1 = lt v0, v1
            v9: u1 = and v7, v8
            v10: i32 = add v0, v3
            v11: i32 = select v9, v10, v6
            v12: f32 = for v2, v6, v3, [v4] (v13: i32, v14: f32) {
                v15: u1 = const 1
                v16: f32 = if v15 {
                    v17: ref<f32> = field_at @x, [v13]
                    v18: f32 = load v17
                    v19: f32 = add v14, v18
                    yield [v19]
                } {
                    yield [v14]
                }
                yield [v16]
            }
            v20: f32 = for v6, v11, v3, [v12] (v21: i32, v22: f32) {
                v23: u1 = const 0
                v24: f32 = if v23 {
                    v25: ref<f32> = field_at @x, [v21]
                    v26: f32 = load v25
                    v27: f32 = add v22, v26
                    yield [v27]
                } {
                    yield [v22]
                }
                yield [v24]
            }
            v28: f32 = for v11, v1, v3, [v20] (v29: i32, v30: f32) {
                v31: u1 = const 1
                v32: f32 = if v31 {
                    v33: ref<f32> = field_at @x, [v29]
                    v34: f32 = load v33
                    v35: f32 = add v30, v34
                    yield [v35]
                } {
                    yield [v30]
                }
                yield [v32]
            }
            yield [v28]
        }
        ");
    }

    #[test]
    fn few_iterations_and_cheap_questions_stay() {
        check_pass!("skipped_iteration", "
            tree0 { dense i:64 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            func @f(i: i32, n: i32) -> f32 {
                zero: i32 = const 0
                one: i32 = const 1
                three: i32 = const 3
                start: f32 = const 0.0
                a: f32 = for zero, three, one, [start] (j: i32, s: f32) {
                    c: u1 = eq i, j
                    t: f32 = if c { yield [s] } {
                        r: ref<f32> = field_at @x, [j]
                        v: f32 = load r
                        u: f32 = add s, v
                        yield [u]
                    }
                    yield [t]
                }
                b: f32 = for zero, n, one, [a] (j: i32, s: f32) {
                    c: u1 = ne i, j
                    t: f32 = select c, s, start
                    yield [t]
                }
                yield [b]
            }", @"
        func @f(v0: i32, v1: i32) -> f32 {
            v2: i32 = const 0
            v3: i32 = const 1
            v4: i32 = const 3
            v5: f32 = const 0.0
            v6: f32 = for v2, v4, v3, [v5] (v7: i32, v8: f32) {
                v9: u1 = eq v0, v7
                v10: f32 = if v9 {
                    yield [v8]
                } {
                    v11: ref<f32> = field_at @x, [v7]
                    v12: f32 = load v11
                    v13: f32 = add v8, v12
                    yield [v13]
                }
                yield [v10]
            }
            v14: f32 = for v2, v1, v3, [v6] (v15: i32, v16: f32) {
                v17: u1 = ne v0, v15
                v18: f32 = select v17, v16, v5
                yield [v18]
            }
            yield [v14]
        }
        ");
    }
}
