//! Store-to-load and load-to-load forwarding, and stores that the next one hides.
//!
//! ```text
//! store v0, v1
//! v2: f32 = load v0       ==>   uses of v2 become v1
//! store v0, v3            ==>   the first store goes, if nothing could read it in between
//! ```
//! Equal places are equal values once `cse` has run, so one walk with a table keyed by place
//! suffices. A write ends what is known about its class of memory only: accesses to different
//! places of a tree never alias.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::access::{Class, Clock, below, classes, is_quantised, writes};
use aerogel_ir::{CellOp, Effect, Function, Inst, Op, Region, ScopedMap, Value};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut pass = Forward {
        cx,
        known: ScopedMap::default(),
        written: Clock::default(),
        subst: SecondaryMap::new(),
        changed: false,
    };
    let body = func.body;
    pass.region(func, body);
    pass.changed
}

struct Forward<'a> {
    cx: &'a PassCx<'a>,
    /// What a place holds, and since when.
    known: ScopedMap<Value, (Value, u32)>,
    written: Clock,
    subst: SecondaryMap<Value, Option<Value>>,
    changed: bool,
}

/// Stores of one straight line that may still prove dead.
#[derive(Default)]
struct Pending {
    stores: LookupMap<Value, (Inst, u32)>,
    /// When each class was last read, or written through another place.
    touched: Clock,
}

impl Forward<'_> {
    fn region(&mut self, func: &mut Function, region: Region) {
        self.known.enter();
        let mut pending = Pending::default();
        let mut dead: Vec<Inst> = Vec::new();
        let mut kept = Vec::new();
        for inst in std::mem::take(&mut func.regions[region].insts) {
            func.insts[inst]
                .op
                .map_operands(|v| self.subst[v].unwrap_or(v));
            let keep = match func[inst].clone() {
                Op::Load { place } => self.load(func, inst, place, &mut pending),
                Op::Store { place, value } => {
                    let classes = classes(func, self.cx.env, place);
                    let quantised = is_quantised(func, self.cx.env, place);
                    if let Some(&(earlier, since)) = pending.stores.get(&place)
                        && pending.touched.untouched_since(&classes, since)
                    {
                        dead.push(earlier);
                    }
                    self.write(place, &classes, &mut pending);
                    // What is read is not what was stored, and a store may change others beside it.
                    if !quantised {
                        self.known.insert(place, (value, self.written.now()));
                        pending.stores.insert(place, (inst, pending.touched.now()));
                    }
                    true
                }
                Op::Atomic { place, .. } | Op::Cas { place, .. } | Op::Update { place, .. } => {
                    let classes = classes(func, self.cx.env, place);
                    self.write(place, &classes, &mut pending);
                    true
                }
                Op::Cell(CellOp::Deactivate { node, .. }) => {
                    for class in below(self.cx.env, node) {
                        self.written.touch(class);
                        pending.touched.touch(class);
                    }
                    true
                }
                // A store that is hidden by another one activates all the same, but later.
                Op::Cell(CellOp::IsActive { node, .. }) | Op::Cell(CellOp::Length { node, .. }) => {
                    below(self.cx.env, node).for_each(|c| pending.touched.touch(c));
                    true
                }
                Op::Call { .. } | Op::Threads { .. } => {
                    self.written.touch_all();
                    pending.touched.touch_all();
                    true
                }
                op => {
                    if op.may_exit() || op.effect() == Effect::Control {
                        pending.touched.touch_all();
                    }
                    self.owned(func, inst, &op);
                    true
                }
            };
            if keep {
                kept.push(inst);
            }
        }
        if !dead.is_empty() {
            self.changed = true;
            let mut is_dead: SecondaryMap<Inst, bool> = SecondaryMap::new();
            dead.into_iter().for_each(|i| is_dead[i] = true);
            kept.retain(|&i| !is_dead[i]);
        }
        func.regions[region].insts = kept;
        self.known.leave();
    }

    /// Whether the load stays.
    fn load(&mut self, func: &Function, inst: Inst, place: Value, pending: &mut Pending) -> bool {
        let classes = classes(func, self.cx.env, place);
        let result = func.insts[inst].results[0];
        if let Some(&(value, since)) = self.known.get(&place)
            && self.written.untouched_since(&classes, since)
        {
            self.subst[result] = Some(value);
            self.changed = true;
            return false;
        }
        classes.into_iter().for_each(|c| pending.touched.touch(c));
        self.known.insert(place, (result, self.written.now()));
        true
    }

    fn write(&mut self, _: Value, classes: &[Class], pending: &mut Pending) {
        for &c in classes {
            self.written.touch(c);
            pending.touched.touch(c);
        }
    }

    fn owned(&mut self, func: &mut Function, inst: Inst, op: &Op) {
        let regions = func.owned(inst);
        match op {
            // What a loop writes is unknown when an iteration begins, the first excepted.
            Op::For { .. }
            | Op::While { .. }
            | Op::Each { .. }
            | Op::Parallel { .. }
            | Op::ParallelCells { .. } => {
                self.forget_writes(func, &regions);
                regions.iter().for_each(|&r| self.region(func, r));
                self.forget_writes(func, &regions);
            }
            _ => regions.iter().for_each(|&r| self.region(func, r)),
        }
    }

    fn forget_writes(&mut self, func: &Function, regions: &[Region]) {
        for &region in regions {
            let w = writes(func, self.cx.env, region);
            w.classes.into_iter().for_each(|c| self.written.touch(c));
            if w.anything {
                self.written.touch_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    const HEAD: &str = "tree0 { dense i:4 { place x: f32, place y: f32 } }\nfield @x: f32 = tree0 [S2]\nfield @y: f32 = tree0 [S3]\n";

    #[test]
    fn fields_do_not_alias() {
        check_pass!("forward_loads", &format!("{HEAD}
            kernel @k(i: i32) {{
                v0: i32 = arg a0
                v1: ref<f32> = field_at @x, [v0]
                v2: ref<f32> = field_at @y, [v0]
                v3: f32 = const 1.0
                store v1, v3
                v4: f32 = load v2
                v5: f32 = load v1
                v6: f32 = add v4, v5
                store v2, v6
                v7: f32 = load v1
                store v1, v6
                v8: f32 = load v2
                store v2, v7
                yield []
            }}"), @"
            kernel @k(i: i32) {
                v0: i32 = arg a0
                v1: ref<f32> = field_at @x, [v0]
                v2: ref<f32> = field_at @y, [v0]
                v3: f32 = const 1.0
                v4: f32 = load v2
                v5: f32 = add v4, v3
                store v1, v5
                store v2, v3
                yield []
            }
            ");
    }

    #[test]
    fn other_indices_of_one_field_may_alias() {
        check_pass!("forward_loads", &format!("{HEAD}
            kernel @k(i: i32, j: i32) {{
                v0: i32 = arg a0
                v1: i32 = arg a1
                v2: ref<f32> = field_at @x, [v0]
                v3: ref<f32> = field_at @x, [v1]
                v4: f32 = load v2
                store v3, v4
                v5: f32 = load v2
                store v2, v5
                yield []
            }}"), @"
            kernel @k(i: i32, j: i32) {
                v0: i32 = arg a0
                v1: i32 = arg a1
                v2: ref<f32> = field_at @x, [v0]
                v3: ref<f32> = field_at @x, [v1]
                v4: f32 = load v2
                store v3, v4
                v5: f32 = load v2
                store v2, v5
                yield []
            }
            ");
    }

    #[test]
    fn loops_forget() {
        check_pass!("forward_loads", "
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 1
                v3: ref<i32> = local
                store v3, v2
                for v1, v0, v2, [] (v4: i32) {
                    v5: i32 = load v3
                    v6: i32 = load v3
                    v7: i32 = add v5, v6
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
                store v3, v2
                for v1, v0, v2, [] (v4: i32) {
                    v5: i32 = load v3
                    v6: i32 = add v5, v5
                    store v3, v6
                    yield []
                }
                v7: i32 = load v3
                yield [v7]
            }
            ");
    }
}
