//! Sums at the end of a branch move into a branch of their own.
//!
//! ```text
//! v1 = if c {                                        v1, v9 = if c {
//!     v2 = ..  v3 = ..                                   v2 = ..  v3 = ..
//!     v4 = field_at @w, [v0]                             yield [v2, v3]
//!     v5 = atomic_add v4, v3                 ==>     } {
//!     yield [v2]                                         yield [v0, 0]
//! } {                                                }
//!     yield [v0]                                     if c {
//! }                                                      v4 = field_at @w, [v0]
//!                                                        v5 = atomic_add v4, v9
//!                                                        yield []
//!                                                    } { yield [] }
//! ```
//! What remains of the first branch only computes: of that, code for several iterations at once can be made, where sums are made
//! one after the other. In the body of a parallel loop only, and where there is something to gain.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::access::{Class, classes};
use aerogel_ir::analysis::cost;
use aerogel_ir::{Effect, Env, Function, Inst, Op, Region, Value, walk};

use crate::PassCx;
use crate::yields::result_of_branch;

/// In nanoseconds, roughly, what the branches must compute.
const PAYS: f32 = 4.0;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut bodies = Vec::new();
    walk(func, func.body, &mut |func, inst| {
        if let Op::Each { body } = func[inst] {
            bodies.push(body);
        }
    });
    let uses = func.use_counts();
    let mut changed = false;
    for body in bodies {
        let mut out = Vec::new();
        for inst in std::mem::take(&mut func.regions[body].insts) {
            out.push(inst);
            if let Some(sums) = split(func, cx.env, inst, &uses) {
                out.push(sums);
                changed = true;
            }
        }
        func.regions[body].insts = out;
    }
    changed
}

/// Takes the sums out of an `if`; gives the one that makes them.
fn split(
    func: &mut Function,
    env: &Env,
    branch: Inst,
    uses: &SecondaryMap<Value, u32>,
) -> Option<Inst> {
    let Op::If {
        cond,
        then,
        otherwise,
    } = func[branch]
    else {
        return None;
    };
    let sides = [then, otherwise];
    let pays = sides.iter().any(|&side| cost::region(func, side) >= PAYS);
    if !pays || sides.iter().any(|&side| func.yielded(side).is_none()) {
        return None;
    }
    let sums = sides.map(|side| sums_at_end(func, env, side, uses));
    if sums.iter().all(Vec::is_empty) {
        return None;
    }
    let span = func.insts[branch].span;
    let alone = [(); 2].map(|()| func.new_region(&[]));
    for (k, sums) in sums.iter().enumerate() {
        let from = [sides[k], sides[1 - k]];
        let mut moved = Moved {
            func,
            branch,
            from,
            inside: SecondaryMap::new(),
            copies: LookupMap::default(),
            out: Vec::new(),
        };
        moved.sums(sums);
        let mut out = moved.out;
        let end = Op::Yield { values: Vec::new() };
        out.push(func.new_inst(end, &[], span));
        func.regions[alone[k]].insts = out;
    }
    let op = Op::If {
        cond,
        then: alone[0],
        otherwise: alone[1],
    };
    Some(func.new_inst(op, &[], span))
}

/// The sums of a branch, of which nobody wants the old value, that nothing behind them in the branch minds.
fn sums_at_end(
    func: &Function,
    env: &Env,
    side: Region,
    uses: &SecondaryMap<Value, u32>,
) -> Vec<Inst> {
    let mut sums = Vec::new();
    // What the instructions behind touch; nothing once that cannot be said.
    let mut behind: Option<Vec<Class>> = Some(Vec::new());
    for &inst in func.regions[side].insts.iter().rev() {
        let Some(touched) = &mut behind else { break };
        if let Op::Atomic { place, .. } = func[inst]
            && uses[func.insts[inst].results[0]] == 0
            && is_rebuilt(func, place)
            && !classes(func, env, place)
                .iter()
                .any(|class| touched.contains(class))
        {
            sums.push(inst);
            continue;
        }
        let mut known = touches(func, env, inst, touched);
        for region in func.owned(inst) {
            walk(func, region, &mut |func, inst| {
                known &= touches(func, env, inst, touched);
            });
        }
        if !known {
            behind = None;
        }
    }
    sums.reverse();
    sums
}

/// Notes the reads and writes of an instruction; returns whether they are known, and control continues after it.
fn touches(func: &Function, env: &Env, inst: Inst, touched: &mut Vec<Class>) -> bool {
    match func[inst] {
        Op::Load { place } | Op::Store { place, .. } | Op::Atomic { place, .. } => {
            // Which of the arrays these are is known only when the kernel runs.
            let of_place = classes(func, env, place);
            let known = !of_place.contains(&Class::Arrays);
            touched.extend(of_place);
            known
        }
        Op::Yield { .. } | Op::If { .. } => true,
        ref op => matches!(op.effect(), Effect::Pure | Effect::Allocates),
    }
}

/// Whether a place can be named again elsewhere.
fn is_rebuilt(func: &Function, place: Value) -> bool {
    match func.def_op(place) {
        Some(Op::FieldAt { .. }) => true,
        Some(&Op::ArrayAt { .. }) => true,
        Some(&(Op::ElemRef { base, .. } | Op::MemberRef { base, .. })) => is_rebuilt(func, base),
        _ => false,
    }
}

/// Sums on their way out of a branch.
struct Moved<'a> {
    func: &'a mut Function,
    branch: Inst,
    /// The branch, and the other one.
    from: [Region; 2],
    /// The results of the branch.
    inside: SecondaryMap<Value, bool>,
    /// Places and constants that were made again.
    copies: LookupMap<Value, Value>,
    out: Vec<Inst>,
}

impl Moved<'_> {
    fn sums(&mut self, sums: &[Inst]) {
        for &inst in &self.func.regions[self.from[0]].insts {
            for &result in &self.func.insts[inst].results {
                self.inside[result] = true;
            }
        }
        let kept = |inst: &Inst| !sums.contains(inst);
        let insts = &mut self.func.regions[self.from[0]].insts;
        insts.retain(kept);
        for &sum in sums {
            let Op::Atomic { op, place, value } = self.func[sum] else {
                unreachable!("sums are atomic");
            };
            let place = self.outside(place);
            let value = self.outside(value);
            self.func.insts[sum].op = Op::Atomic { op, place, value };
            self.out.push(sum);
        }
    }

    /// A value of the branch as it is known behind it.
    fn outside(&mut self, value: Value) -> Value {
        if !self.inside[value] {
            return value;
        }
        if let Some(&copy) = self.copies.get(&value) {
            return copy;
        }
        let again = matches!(
            self.func.def_op(value),
            Some(
                Op::Const { .. }
                    | Op::FieldAt { .. }
                    | Op::ArrayAt { .. }
                    | Op::ElemRef { .. }
                    | Op::MemberRef { .. }
            )
        );
        let copy = if again {
            let inst = self.func.def(value).expect("it is made by an instruction");
            let mut op = self.func[inst].clone();
            op.map_operands(|v| self.outside(v));
            let (ty, span) = (self.func.ty(value), self.func.insts[inst].span);
            let inst = self.func.new_inst(op, &[ty], span);
            self.out.push(inst);
            self.func.insts[inst].results[0]
        } else {
            result_of_branch(self.func, self.branch, self.from, value)
        };
        self.copies.insert(value, copy);
        copy
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn what_is_computed_stays() {
        check_pass!("split_branches", "
            tree0 { dense i:8 { place x: f32, place w: f32 } }
            field @x: f32 = tree0 [S2]
            field @w: f32 = tree0 [S3]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: ref<f32> = field_at @x, [v2]
                        v4: f32 = load v3
                        v5: f32 = const 0.5
                        c: u1 = gt v4, v5
                        r: f32 = if c {
                            v6: f32 = sin v4
                            v7: f32 = exp v6
                            two: i32 = const 2
                            at: i32 = and v2, two
                            v8: ref<f32> = field_at @w, [at]
                            v9: f32 = atomic_add v8, v7
                            v10: ref<f32> = field_at @w, [two]
                            v11: f32 = atomic_add v10, v5
                            yield [v6]
                        } {
                            v12: f32 = log v4
                            yield [v12]
                        }
                        store v3, r
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 8
                yield [v0, v1]
            } {
                each (v2: i32) {
                    v3: ref<f32> = field_at @x, [v2]
                    v4: f32 = load v3
                    v5: f32 = const 0.5
                    v6: u1 = gt v4, v5
                    v7: f32, v8: i32, v9: f32 = if v6 {
                        v10: f32 = sin v4
                        v11: f32 = exp v10
                        v12: i32 = const 2
                        v13: i32 = and v2, v12
                        v14: ref<f32> = field_at @w, [v13]
                        v15: ref<f32> = field_at @w, [v12]
                        yield [v10, v13, v11]
                    } {
                        v16: f32 = log v4
                        v17: i32 = const 0
                        v18: f32 = const 0.0
                        yield [v16, v17, v18]
                    }
                    if v6 {
                        v19: ref<f32> = field_at @w, [v8]
                        v20: f32 = atomic_add v19, v9
                        v21: i32 = const 2
                        v22: ref<f32> = field_at @w, [v21]
                        v23: f32 = atomic_add v22, v5
                        yield []
                    } {
                        yield []
                    }
                    store v3, v7
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
    }

    #[test]
    fn what_is_asked_for_stays() {
        check_pass!("split_branches", "
            tree0 { dense i:8 { place x: f32, place w: f32 } }
            field @x: f32 = tree0 [S2]
            field @w: f32 = tree0 [S3]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: ref<f32> = field_at @x, [v2]
                        v4: f32 = load v3
                        v5: f32 = const 0.5
                        c: u1 = gt v4, v5
                        r: f32 = if c {
                            v6: f32 = sin v4
                            v7: f32 = exp v6
                            v8: ref<f32> = field_at @w, [v2]
                            v9: f32 = atomic_exchange v8, v7
                            yield [v9]
                        } {
                            yield [v4]
                        }
                        store v3, r
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 8
                yield [v0, v1]
            } {
                each (v2: i32) {
                    v3: ref<f32> = field_at @x, [v2]
                    v4: f32 = load v3
                    v5: f32 = const 0.5
                    v6: u1 = gt v4, v5
                    v7: f32 = if v6 {
                        v8: f32 = sin v4
                        v9: f32 = exp v8
                        v10: ref<f32> = field_at @w, [v2]
                        v11: f32 = atomic_exchange v10, v9
                        yield [v11]
                    } {
                        yield [v4]
                    }
                    store v3, v7
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
    }

    #[test]
    fn what_is_read_behind_keeps_its_sum() {
        check_pass!("split_branches", "
            tree0 { dense i:8 { place x: f32, place w: f32 } }
            field @x: f32 = tree0 [S2]
            field @w: f32 = tree0 [S3]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: ref<f32> = field_at @x, [v2]
                        v4: f32 = load v3
                        v5: f32 = const 0.5
                        c: u1 = gt v4, v5
                        if c {
                            v6: f32 = sin v4
                            v7: f32 = exp v6
                            v8: ref<f32> = field_at @w, [v2]
                            v9: f32 = atomic_add v8, v7
                            v10: f32 = load v8
                            v11: f32 = atomic_add v3, v10
                            yield []
                        } {
                            yield []
                        }
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 8
                yield [v0, v1]
            } {
                each (v2: i32) {
                    v3: ref<f32> = field_at @x, [v2]
                    v4: f32 = load v3
                    v5: f32 = const 0.5
                    v6: u1 = gt v4, v5
                    v7: f32 = if v6 {
                        v8: f32 = sin v4
                        v9: f32 = exp v8
                        v10: ref<f32> = field_at @w, [v2]
                        v11: f32 = atomic_add v10, v9
                        v12: f32 = load v10
                        yield [v12]
                    } {
                        v13: f32 = const 0.0
                        yield [v13]
                    }
                    if v6 {
                        v14: f32 = atomic_add v3, v7
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
    }
}
