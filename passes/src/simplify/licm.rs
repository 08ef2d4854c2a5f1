//! Loop-invariant code motion.
//!
//! ```text
//! for ... { v1 = mul v0, v0 ... }    ==>    v1 = mul v0, v0   for ... { ... }
//! ```
//! What stands in a branch stays there, but for arithmetic in the branches of `each`: it runs once for a part of a task and its
//! many iterations. (On a GPU a thread has a part to itself, and perhaps a single iteration.) Loads move if nothing in the loop
//! writes what they read and the loop certainly runs or the place is there even if it does not; loads of elements that
//! certainly exist leave branches as well, for a loop with such a load in a branch is not vectorised. Nothing leaves a
//! parallel loop before offloading, where it would have to travel between tasks; from `each` it moves to the task's begin.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::Ranges;
use aerogel_ir::analysis::access::{Writes, classes, has_classes, writes};
use aerogel_ir::analysis::cost::is_cheap;
use aerogel_ir::{Effect, Function, Inst, Op, Region, Value};

use super::existing::is_inside;
use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut pass = Licm {
        cx,
        ranges: Ranges::within(func, func.body),
        level: SecondaryMap::new(),
        serial: false,
        changed: false,
    };
    let body = func.body;
    pass.region(func, body, 1);
    pass.changed
}

struct Licm<'a> {
    cx: &'a PassCx<'a>,
    ranges: Ranges,
    /// How many loops are around a value's definition, plus one.
    level: SecondaryMap<Value, u32>,
    /// Whether the task that is walked runs in order, as one part that may be empty.
    serial: bool,
    changed: bool,
}

impl Licm<'_> {
    fn region(&mut self, func: &mut Function, region: Region, level: u32) {
        func.regions[region]
            .params
            .iter()
            .for_each(|&p| self.level[p] = level);
        let mut out = Vec::new();
        for inst in std::mem::take(&mut func.regions[region].insts) {
            let is_loop = matches!(
                func[inst],
                Op::For { .. } | Op::While { .. } | Op::Each { .. }
            );
            let inner = level + u32::from(is_loop);
            if let Op::Task { attrs, .. } = func[inst] {
                self.serial = attrs.serial;
            }
            for owned in func.owned(inst) {
                self.region(func, owned, inner);
            }
            if is_loop {
                // Bodies first: what left inner loops may leave this one too.
                let written = loop_writes(func, self.cx, inst);
                for owned in func.owned(inst) {
                    self.hoist(func, inst, owned, inner, &written, &mut out);
                    self.hoist_loads(func, owned, inner, &written, &mut out);
                    if matches!(func[inst], Op::Each { .. }) && self.cx.options.private_cells {
                        self.hoist_from_branches(func, owned, inner, &mut out);
                    }
                }
            }
            func.insts[inst]
                .results
                .iter()
                .for_each(|&r| self.level[r] = level);
            out.push(inst);
        }
        func.regions[region].insts = out;
    }

    /// Moves what is invariant from a region of the loop at `level` to `out`.
    fn hoist(
        &mut self,
        func: &mut Function,
        looped: Inst,
        region: Region,
        level: u32,
        written: &Writes,
        out: &mut Vec<Inst>,
    ) {
        let insts = std::mem::take(&mut func.regions[region].insts);
        let mut exits = false;
        let mut kept = Vec::with_capacity(insts.len());
        for inst in insts {
            let op = &func[inst];
            let mut invariant = true;
            op.operands(|v| invariant &= self.level[v] < level);
            let moves = invariant
                && match op.effect() {
                    Effect::Pure => true,
                    Effect::Reads => {
                        // Queries of a tree's topology stay: hoisting them would need a proof that no
                        // other instruction activates cells.
                        let Op::Load { place } = *op else {
                            kept.push(inst);
                            continue;
                        };
                        // A part of a parallel task is never empty, so `each` runs its body; a condition is
                        // computed before the first iteration.
                        let runs = !exits
                            && match func[looped] {
                                Op::Each { .. } => !self.serial,
                                Op::While { cond, .. } => cond == region,
                                Op::For { lo, hi, step, .. } => {
                                    let ends = [lo, hi, step].map(|v| func.as_const(v));
                                    matches!(ends, [Some(lo), Some(hi), Some(step)]
                                        if step.as_i128() > 0 && lo.as_i128() < hi.as_i128())
                                }
                                _ => false,
                            };
                        (runs
                            || is_always_there(func, place)
                            || is_inside(func, self.cx, &self.ranges, place))
                            && is_unchanged(func, self.cx, place, written)
                    }
                    Effect::Allocates | Effect::Writes | Effect::Control | Effect::Terminator => {
                        false
                    }
                };
            // After an instruction that may leave the iteration, what follows need not run.
            exits |= op.may_exit() || op.effect() == Effect::Control;
            if moves {
                func.insts[inst]
                    .results
                    .iter()
                    .for_each(|&r| self.level[r] = level - 1);
                out.push(inst);
                self.changed = true;
            } else {
                kept.push(inst);
            }
        }
        func.regions[region].insts = kept;
    }

    /// Moves the loads that are the same for all iterations of the loop at `level`, of places that are there, with their
    /// addresses from the branches of a region of it to `out`.
    fn hoist_loads(
        &mut self,
        func: &mut Function,
        region: Region,
        level: u32,
        written: &Writes,
        out: &mut Vec<Inst>,
    ) {
        let mut branches = Vec::new();
        branches_of(func, region, &mut branches);
        let mut moved = Vec::new();
        for &branch in &branches {
            for &inst in &func.regions[branch].insts {
                let Op::Load { place } = func[inst] else {
                    continue;
                };
                let before = moved.len();
                let exists =
                    is_always_there(func, place) || is_inside(func, self.cx, &self.ranges, place);
                let moves = exists
                    && self.is_address(func, place, level, MAX_ADDRESS, &mut moved)
                    && is_unchanged(func, self.cx, place, written);
                match moves {
                    true => moved.push(inst),
                    false => moved.truncate(before),
                }
            }
        }
        if moved.is_empty() {
            return;
        }
        let mut is_moved: SecondaryMap<Inst, bool> = SecondaryMap::new();
        for &inst in &moved {
            is_moved[inst] = true;
            for &result in &func.insts[inst].results {
                self.level[result] = level - 1;
            }
        }
        for branch in branches {
            func.regions[branch].insts.retain(|&inst| !is_moved[inst]);
        }
        out.extend(moved);
        self.changed = true;
    }

    /// Whether a value is the same for all iterations of the loop at `level`, if a few cheap instructions in its branches
    /// are moved before it, which are added to `moved`.
    fn is_address(
        &self,
        func: &Function,
        value: Value,
        level: u32,
        budget: usize,
        moved: &mut Vec<Inst>,
    ) -> bool {
        let Some(inst) = func.def(value).filter(|_| self.level[value] >= level) else {
            return self.level[value] < level;
        };
        if moved.contains(&inst) {
            return true;
        }
        let op = &func[inst];
        let mut is_address = budget > 0 && op.effect() == Effect::Pure && is_cheap(op);
        op.operands(|v| {
            is_address = is_address && self.is_address(func, v, level, budget - 1, moved);
        });
        if is_address {
            moved.push(inst);
        }
        is_address
    }

    /// Moves the arithmetic that is the same for all iterations, those of the `each` at `level`, from the branches and loops
    /// of a region of it to `out`.
    fn hoist_from_branches(
        &mut self,
        func: &mut Function,
        region: Region,
        level: u32,
        out: &mut Vec<Inst>,
    ) {
        let insts = std::mem::take(&mut func.regions[region].insts);
        let mut kept = Vec::with_capacity(insts.len());
        for inst in insts {
            let mut invariant = func[inst].effect() == Effect::Pure;
            func[inst].operands(|v| invariant &= self.level[v] < level);
            if invariant {
                for &result in &func.insts[inst].results {
                    self.level[result] = level - 1;
                }
                out.push(inst);
                self.changed = true;
                continue;
            }
            for owned in func.owned(inst) {
                self.hoist_from_branches(func, owned, level, out);
            }
            kept.push(inst);
        }
        func.regions[region].insts = kept;
    }
}

/// So long a chain of instructions makes an address at most.
const MAX_ADDRESS: usize = 8;

/// The sides of the branches in a region, but not those of loops inside.
fn branches_of(func: &Function, region: Region, branches: &mut Vec<Region>) {
    for &inst in &func.regions[region].insts {
        if let Op::If {
            then, otherwise, ..
        } = func[inst]
        {
            for side in [then, otherwise] {
                branches.push(side);
                branches_of(func, side, branches);
            }
        }
    }
}

/// Whether none of what is written may lie in a place.
fn is_unchanged(func: &Function, cx: &PassCx<'_>, place: Value, written: &Writes) -> bool {
    !written.anything
        && has_classes(func, place)
        && classes(func, cx.env, place)
            .iter()
            .all(|class| !written.classes.contains(class))
}

fn loop_writes(func: &Function, cx: &PassCx<'_>, looped: Inst) -> Writes {
    let mut all = Writes::default();
    for region in func.owned(looped) {
        let w = writes(func, cx.env, region);
        all.classes.extend(w.classes);
        all.anything |= w.anything;
    }
    all
}

/// Whether a place may be read at any time: its address does not depend on anything that the
/// program checks beforehand.
fn is_always_there(func: &Function, place: Value) -> bool {
    match func.def_op(place) {
        Some(Op::Local {} | Op::TempAt { .. }) => true,
        Some(Op::FieldAt { indices, .. } | Op::ArrayAt { indices, .. }) => indices.is_empty(),
        Some(Op::ElemRef { base, index }) => {
            is_always_there(func, *base) && index.iter().all(|&i| func.as_const(i).is_some())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn arithmetic_and_loads() {
        check_pass!("licm", "
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 1
                v3: ref<i32> = local
                store v3, v0
                v4: i32 = for v1, v0, v2, [v1] (v5: i32, v6: i32) {
                    v7: i32 = for v1, v0, v2, [v6] (v8: i32, v9: i32) {
                        v10: i32 = mul v0, v0
                        v11: i32 = load v3
                        v12: i32 = add v10, v11
                        v13: i32 = add v12, v5
                        v14: i32 = add v9, v13
                        yield [v14]
                    }
                    yield [v7]
                }
                yield [v4]
            }", @"
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 1
                v3: ref<i32> = local
                store v3, v0
                v4: i32 = mul v0, v0
                v5: i32 = load v3
                v6: i32 = add v4, v5
                v7: i32 = for v1, v0, v2, [v1] (v8: i32, v9: i32) {
                    v10: i32 = add v6, v8
                    v11: i32 = for v1, v0, v2, [v9] (v12: i32, v13: i32) {
                        v14: i32 = add v13, v10
                        yield [v14]
                    }
                    yield [v11]
                }
                yield [v7]
            }
            ");
    }

    #[test]
    fn what_the_loop_writes_stays() {
        check_pass!("licm", "
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 1
                v3: ref<i32> = local
                for v1, v0, v2, [] (v5: i32) {
                    v6: i32 = load v3
                    v7: i32 = add v6, v5
                    store v3, v7
                    yield []
                }
                v8: i32 = load v3
                yield [v8]
            }", @"
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 1
                v3: ref<i32> = local
                for v1, v0, v2, [] (v4: i32) {
                    v5: i32 = load v3
                    v6: i32 = add v5, v4
                    store v3, v6
                    yield []
                }
                v7: i32 = load v3
                yield [v7]
            }
            ");
    }

    #[test]
    fn a_loop_in_order_may_be_empty() {
        check_pass!("licm", "
            tree0 { dense i:4 { place x: i32 }, place y: i32 }
            field @x: i32 = tree0 [S2]
            field @y: i32 = tree0 [S3]
            kernel @k(n: i32) {
                task range serial {
                    v0: i32 = const 0
                    v1: i32 = arg a0
                    yield [v0, v1]
                } {
                    v2: i32 = arg a0
                    v3: ref<i32> = field_at @x, [v2]
                    v4: ref<i32> = field_at @y, []
                    each (v5: i32) {
                        v6: i32 = load v3
                        store v4, v6
                        yield []
                    }
                    yield []
                }
                task range {
                    v0: i32 = const 0
                    v1: i32 = arg a0
                    yield [v0, v1]
                } {
                    v2: i32 = arg a0
                    v3: ref<i32> = field_at @x, [v2]
                    v4: ref<i32> = field_at @y, []
                    each (v5: i32) {
                        v6: i32 = load v3
                        store v4, v6
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k(n: i32) {
                task range serial {
                    v0: i32 = const 0
                    v1: i32 = arg a0
                    yield [v0, v1]
                } {
                    v2: i32 = arg a0
                    v3: ref<i32> = field_at @x, [v2]
                    v4: ref<i32> = field_at @y, []
                    each (v5: i32) {
                        v6: i32 = load v3
                        store v4, v6
                        yield []
                    }
                    yield []
                }
                task range {
                    v7: i32 = const 0
                    v8: i32 = arg a0
                    yield [v7, v8]
                } {
                    v9: i32 = arg a0
                    v10: ref<i32> = field_at @x, [v9]
                    v11: ref<i32> = field_at @y, []
                    v12: i32 = load v10
                    each (v13: i32) {
                        store v11, v12
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn arithmetic_leaves_the_branches_of_each() {
        check_pass!("licm", "
            tree0 { dense i:4 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            kernel @k(a: f32) {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 4
                    yield [v0, v1]
                } {
                    v2: f32 = arg a0
                    each (v5: i32) {
                        v6: i32 = const 1
                        v7: u1 = lt v5, v6
                        v8: ref<f32> = field_at @x, [v5]
                        if v7 {
                            v9: f32 = const 2.0
                            v10: f32 = mul v9, v2
                            v11: f32 = sin v10
                            v12: f32 = load v8
                            v13: f32 = mul v12, v11
                            store v8, v13
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
        kernel @k(a: f32) {
            task range {
                v0: i32 = const 0
                v1: i32 = const 4
                yield [v0, v1]
            } {
                v2: f32 = arg a0
                v3: i32 = const 1
                v4: f32 = const 2.0
                v5: f32 = mul v4, v2
                v6: f32 = sin v5
                each (v7: i32) {
                    v8: u1 = lt v7, v3
                    v9: ref<f32> = field_at @x, [v7]
                    if v8 {
                        v10: f32 = load v9
                        v11: f32 = mul v10, v6
                        store v9, v11
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

    /// A loop over `j` in an iteration over `i`, with a branch.
    fn branching(branch: &str) -> String {
        let text = format!(
            "tree0 {{ dense i:8 {{ place x: i32 }}, place t: i32, pointer i:8 {{ place p: i32 }} }}
            field @x: i32 = tree0 [S2]
            field @t: i32 = tree0 [S3]
            field @p: i32 = tree0 [S5]
            kernel @k(n: i32) {{
                task range {{
                    lo: i32 = const 0
                    hi: i32 = const 8
                    yield [lo, hi]
                }} {{
                    each (i: i32) {{
                        n: i32 = arg a0
                        k0: i32 = const 0
                        k1: i32 = const 1
                        s: i32 = for k0, n, k1, [k0] (j: i32, s: i32) {{
                            c: u1 = ne i, j
                            t: i32 = if c {{
                                {branch}
                                yield [v]
                            }} {{
                                yield [s]
                            }}
                            yield [t]
                        }}
                        q: ref<i32> = field_at @p, [i]
                        store q, s
                        yield []
                    }}
                    yield []
                }}
                yield []
            }}"
        );
        crate::testing::after(&["licm"], &text, aerogel_ir::FastMath::Off)
    }

    #[test]
    fn loads_leave_branches() {
        let moving = [
            "a: ref<i32> = field_at @t, []  v: i32 = load a",
            "a: ref<i32> = field_at @x, [i]  v: i32 = load a",
            "k: i32 = const 7  b: i32 = sub k, i  a: ref<i32> = field_at @x, [b]  v: i32 = load a",
            "v: i32 = if c { a: ref<i32> = field_at @x, [i]  w: i32 = load a  yield [w] } { yield [s] }",
        ];
        for branch in moving {
            let text = branching(branch);
            let (before, _) = text.split_once(" for ").expect("a loop");
            assert!(before.contains("load"), "{text}");
        }
        let staying = [
            // Outside, perhaps; not the same for all iterations; of a cell that need not be there; written.
            "k: i32 = const 1  b: i32 = add k, i  a: ref<i32> = field_at @x, [b]  v: i32 = load a",
            "a: ref<i32> = field_at @x, [n]  v: i32 = load a",
            "a: ref<i32> = field_at @x, [j]  v: i32 = load a",
            "a: ref<i32> = field_at @p, [i]  v: i32 = load a",
            "a: ref<i32> = field_at @t, []  v: i32 = load a  w: i32 = add v, k1  store a, w",
        ];
        for branch in staying {
            let text = branching(branch);
            let (before, _) = text.split_once(" for ").expect("a loop");
            assert!(!before.contains("load"), "{text}");
        }
    }

    #[test]
    fn conditions_are_computed_in_any_case() {
        check_pass!("licm", "
            tree0 { dense i:4 { place x: i32 } }
            tree1 { place y: i32 }
            field @x: i32 = tree0 [S2]
            field @y: i32 = tree1 [S1]
            kernel @k(n: i32) {
                v0: i32 = arg a0
                v1: i32 = const 1
                v2: ref<i32> = field_at @x, [v1]
                v3: ref<i32> = field_at @x, [v0]
                v4: ref<i32> = field_at @y, []
                v5: i32 = while [v0] (v6: i32) {
                    v7: i32 = load v2
                    v8: u1 = lt v6, v7
                    yield [v8]
                } (v9: i32) {
                    v10: i32 = load v3
                    store v4, v10
                    v11: i32 = add v9, v1
                    yield [v11]
                }
                return []
            }", @"
        kernel @k(n: i32) {
            v0: i32 = arg a0
            v1: i32 = const 1
            v2: ref<i32> = field_at @x, [v1]
            v3: ref<i32> = field_at @x, [v0]
            v4: ref<i32> = field_at @y, []
            v5: i32 = load v2
            v6: i32 = while [v0] (v7: i32) {
                v8: u1 = lt v7, v5
                yield [v8]
            } (v9: i32) {
                v10: i32 = load v3
                store v4, v10
                v11: i32 = add v9, v1
                yield [v11]
            }
            return []
        }
        ");
    }
}
