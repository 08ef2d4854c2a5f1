//! Locals become values.
//!
//! ```text
//! v1 = local                              v2 = for lo, hi, step, [v0] (i: i32, acc: f32) {
//! store v1, v0                                v3 = add acc, x
//! for lo, hi, step, [] (i: i32) {   ==>       yield [v3]
//!     v2 = load v1                        }
//!     v3 = add v2, x
//!     store v1, v3 ...
//! ```
//! A local is promoted if it is a scalar that is only loaded and stored, is not written inside a
//! parallel loop that it outlives, nor in the condition of a `while`. One walk carries the current
//! value of each; branches that differ yield it, loops carry it, `break` and `continue` pass it on.

use aerogel_base::Scalar;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::access::defined_in;
use aerogel_ir::{Function, Inst, Op, Region, Type, Value, walk};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    let promotable = promotable(func);
    if !promotable.values().any(|&p| p) {
        return false;
    }
    let mut pass = Promote {
        promotable,
        current: SecondaryMap::new(),
        subst: SecondaryMap::new(),
        written: Vec::new(),
        loops: Vec::new(),
    };
    let body = func.body;
    pass.region(func, body);
    true
}

fn promotable(func: &Function) -> SecondaryMap<Value, bool> {
    let mut ok: SecondaryMap<Value, bool> = SecondaryMap::new();
    walk(func, func.body, &mut |func, inst| {
        if let Op::Local {} = func[inst] {
            let place = func.insts[inst].results[0];
            ok[place] = matches!(func.ty(place), Type::RefScalar(_));
        }
    });
    walk(func, func.body, &mut |func, inst| match &func[inst] {
        Op::Load { .. } => {}
        Op::Store { value, .. } => ok[*value] = false,
        Op::Parallel { body, .. } | Op::ParallelCells { body, .. } | Op::Each { body } => {
            forbid_outer_writes(func, *body, &mut ok);
            func[inst].operands(|v| ok[v] = false);
        }
        Op::While { cond, .. } => forbid_outer_writes(func, *cond, &mut ok),
        op => op.operands(|v| ok[v] = false),
    });
    ok
}

/// Forbids locals made outside `region` that are written inside.
fn forbid_outer_writes(func: &Function, region: Region, ok: &mut SecondaryMap<Value, bool>) {
    let mut inside = SecondaryMap::new();
    defined_in(func, region, &mut inside);
    walk(func, region, &mut |func, inst| {
        if let Op::Store { place, .. } = func[inst]
            && !inside[place]
        {
            ok[place] = false;
        }
    });
}

struct Promote {
    promotable: SecondaryMap<Value, bool>,
    current: SecondaryMap<Value, Option<Value>>,
    subst: SecondaryMap<Value, Option<Value>>,
    /// What was written, in order, with the values before: to find and undo what a branch changed.
    written: Vec<Written>,
    /// The locals that each loop around carries, innermost last.
    loops: Vec<Vec<Value>>,
}

struct Written {
    local: Value,
    old: Option<Value>,
}

impl Promote {
    fn region(&mut self, func: &mut Function, region: Region) {
        let mut out = Vec::new();
        for inst in std::mem::take(&mut func.regions[region].insts) {
            let subst = &self.subst;
            func.insts[inst].op.map_operands(|v| subst[v].unwrap_or(v));
            match func[inst].clone() {
                Op::Local {} if self.promotable[func.insts[inst].results[0]] => {
                    let place = func.insts[inst].results[0];
                    let ty = func.ty(place).pointee().expect("a storage");
                    let value = Scalar::zero(ty.scalar().expect("a scalar's storage"));
                    let zero = func.new_inst(Op::Const { value }, &[ty], func.insts[inst].span);
                    out.push(zero);
                    self.set(place, func.insts[zero].results[0]);
                }
                Op::Load { place } if self.promotable[place] => {
                    self.subst[func.insts[inst].results[0]] = self.current[place];
                }
                Op::Store { place, value } if self.promotable[place] => {
                    self.set(place, value);
                }
                Op::If {
                    then, otherwise, ..
                } => {
                    self.branch(func, inst, then, otherwise);
                    out.push(inst);
                }
                Op::For { body, .. } => {
                    self.looped(func, inst, &[body]);
                    out.push(inst);
                }
                Op::While { cond, body, .. } => {
                    self.looped(func, inst, &[cond, body]);
                    out.push(inst);
                }
                Op::Parallel { body, .. } | Op::ParallelCells { body, .. } | Op::Each { body } => {
                    self.loops.push(Vec::new());
                    self.region(func, body);
                    self.loops.pop();
                    out.push(inst);
                }
                Op::Break { .. } | Op::Continue { .. } => {
                    let carried = self.loops.last().cloned().unwrap_or_default();
                    self.append_current(func, inst, &carried);
                    out.push(inst);
                }
                _ => {
                    for owned in func.owned(inst) {
                        self.region(func, owned);
                    }
                    out.push(inst);
                }
            }
        }
        func.regions[region].insts = out;
    }

    /// Appends the current values of `locals` to a terminator.
    fn append_current(&self, func: &mut Function, end: Inst, locals: &[Value]) {
        let current: Vec<Value> = locals
            .iter()
            .map(|&l| self.current[l].expect("a carried local has a value"))
            .collect();
        match &mut func.insts[end].op {
            Op::Yield { values } | Op::Break { values } | Op::Continue { values } => {
                values.extend(current)
            }
            op => unreachable!("{op:?} passes nothing on"),
        }
    }

    fn branch(&mut self, func: &mut Function, inst: Inst, then: Region, otherwise: Region) {
        let before = self.written.len();
        let mut ends = Vec::new();
        for region in [then, otherwise] {
            self.region(func, region);
            let changed = self.written.split_off(before);
            // Undone backwards, every local has its value from before the branch again.
            ends.push(
                changed
                    .iter()
                    .map(|w| (w.local, self.current[w.local]))
                    .collect::<Vec<_>>(),
            );
            for w in changed.into_iter().rev() {
                self.current[w.local] = w.old;
            }
        }
        // Locals made inside a branch have no value outside.
        let mut written: Vec<Value> = ends
            .iter()
            .flatten()
            .map(|&(l, _)| l)
            .filter(|&l| self.current[l].is_some())
            .collect();
        written.sort_unstable();
        written.dedup();
        for (region, end) in [then, otherwise].into_iter().zip(ends) {
            if func.yielded(region).is_none() {
                continue;
            }
            let outer: Vec<Option<Value>> = end.iter().map(|&(l, _)| self.current[l]).collect();
            end.iter().for_each(|&(l, v)| self.current[l] = v);
            let last = func.terminator(region);
            self.append_current(func, last, &written);
            end.iter()
                .zip(outer)
                .for_each(|(&(l, _), v)| self.current[l] = v);
        }
        for local in written {
            let ty = func.ty(local).pointee().expect("a storage");
            let result = func.add_result(inst, ty);
            self.set(local, result);
        }
    }

    fn set(&mut self, local: Value, value: Value) {
        self.written.push(Written {
            local,
            old: self.current[local],
        });
        self.current[local] = Some(value);
    }

    fn looped(&mut self, func: &mut Function, inst: Inst, regions: &[Region]) {
        let mut carried = Vec::new();
        for &region in regions {
            walk(func, region, &mut |func, i| {
                if let Op::Store { place, .. } = func[i]
                    && self.promotable[place]
                    && self.current[place].is_some()
                {
                    carried.push(place);
                }
            });
        }
        carried.sort_unstable();
        carried.dedup();
        let init: Vec<Value> = carried
            .iter()
            .map(|&l| self.current[l].expect("a carried local has a value"))
            .collect();
        match &mut func.insts[inst].op {
            Op::For { init: all, .. } | Op::While { init: all, .. } => all.extend(init),
            op => unreachable!("{op:?} is no loop"),
        }
        self.loops.push(carried.clone());
        for &region in regions {
            for &local in &carried {
                let ty = func.ty(local).pointee().expect("a storage");
                let param = func.add_param(region, ty);
                self.set(local, param);
            }
            self.region(func, region);
        }
        self.loops.pop();
        let body = *regions.last().expect("a loop has a body");
        if func.yielded(body).is_some() {
            let end = func.terminator(body);
            self.append_current(func, end, &carried);
        }
        for local in carried {
            let ty = func.ty(local).pointee().expect("a storage");
            let result = func.add_result(inst, ty);
            self.set(local, result);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn branches_and_loops() {
        check_pass!("promote_locals", "
            func @f(v0: i32) -> i32 {
                v1: ref<i32> = local
                v2: i32 = const 0
                v3: i32 = const 1
                for v2, v0, v3, [] (v4: i32) {
                    v5: i32 = load v1
                    v6: u1 = gt v4, v5
                    if v6 {
                        v7: i32 = add v5, v4
                        store v1, v7
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v8: i32 = load v1
                yield [v8]
            }", @"
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 0
                v3: i32 = const 1
                v4: i32 = for v2, v0, v3, [v1] (v5: i32, v6: i32) {
                    v7: u1 = gt v5, v6
                    v8: i32 = if v7 {
                        v9: i32 = add v6, v5
                        yield [v9]
                    } {
                        yield [v6]
                    }
                    yield [v8]
                }
                yield [v4]
            }
            ");
    }

    #[test]
    fn break_passes_values_on() {
        check_pass!("promote_locals", "
            func @f(v0: i32) -> i32 {
                v1: ref<i32> = local
                store v1, v0
                v3: i32 = const 3
                while [] {
                    v4: u1 = const 1
                    yield [v4]
                } {
                    v5: i32 = load v1
                    v6: i32 = sub v5, v3
                    store v1, v6
                    v7: u1 = lt v6, v3
                    if v7 {
                        break []
                    } {
                        yield []
                    }
                    v8: i32 = load v1
                    v9: i32 = sub v8, v3
                    store v1, v9
                    yield []
                }
                v10: i32 = load v1
                yield [v10]
            }", @"
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 3
                v3: i32 = while [v0] (v4: i32) {
                    v5: u1 = const 1
                    yield [v5]
                } (v6: i32) {
                    v7: i32 = sub v6, v2
                    v8: u1 = lt v7, v2
                    if v8 {
                        break [v7]
                    } {
                        yield []
                    }
                    v9: i32 = sub v7, v2
                    yield [v9]
                }
                yield [v3]
            }
            ");
    }

    #[test]
    fn shared_with_a_parallel_loop_stays() {
        check_pass!("promote_locals", "
            kernel @k() {
                v0: i32 = const 1
                v1: ref<i32> = local
                v2: ref<i32> = local
                store v2, v0
                parallel [v0], [v0] (v3: i32) {
                    v4: i32 = load v2
                    v5: i32 = atomic_add v1, v4
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 1
                v1: ref<i32> = local
                v2: i32 = const 0
                parallel [v0], [v0] (v3: i32) {
                    v4: i32 = atomic_add v1, v0
                    yield []
                }
                yield []
            }
            ");
    }
}
