//! Dead code.
//!
//! ```text
//! v1: i32 = add v0, v0        ; unused: goes
//! v2: i32 = if c { yield [a] } { yield [b] }   ; v2 unused: results, yields, then the whole `if` go
//! ```
//! Uses follow definitions, so one backward walk finds every dead chain. A local that is only
//! written goes with its stores, and a value that a loop carries without using it goes from the loop.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{Effect, Function, Inst, Op, Region, TaskKind, Value, walk};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    let body = func.body;
    let mut pass = Dce {
        read: places_read(func),
        draws: draws(func),
        live: SecondaryMap::new(),
        changed: false,
    };
    pass.region(func, body);
    pass.changed
}

/// Locals whose storage is used for anything but being written.
fn places_read(func: &Function) -> SecondaryMap<Value, bool> {
    let mut read = SecondaryMap::new();
    walk(func, func.body, &mut |func, inst| match &func[inst] {
        Op::Store { value, .. } => read[*value] = true,
        Op::ElemRef { index, .. } => index.iter().for_each(|&v| read[v] = true),
        op => op.operands(|v| read[v] = true),
    });
    // An element's storage that is read makes its base's storage read; bases come first.
    let mut elems = Vec::new();
    walk(func, func.body, &mut |func, inst| {
        if let Op::ElemRef { base, .. } = func[inst] {
            elems.push((base, func.insts[inst].results[0]));
        }
    });
    for (base, elem) in elems.into_iter().rev() {
        if read[elem] {
            read[base] = true;
        }
    }
    read
}

/// Whether anything may draw random numbers, which depend on how many parallel loops came before.
fn draws(func: &Function) -> bool {
    let mut found = false;
    walk(func, func.body, &mut |func, inst| {
        found |= matches!(
            func[inst],
            Op::Random {} | Op::RandomState { .. } | Op::Call { .. }
        );
    });
    found
}

struct Dce {
    read: SecondaryMap<Value, bool>,
    draws: bool,
    live: SecondaryMap<Value, bool>,
    changed: bool,
}

impl Dce {
    fn region(&mut self, func: &mut Function, region: Region) {
        let mut kept = Vec::new();
        for inst in std::mem::take(&mut func.regions[region].insts)
            .into_iter()
            .rev()
        {
            if self.keeps(func, inst) {
                func.insts[inst].op.operands(|v| self.live[v] = true);
                kept.push(inst);
            } else {
                self.changed = true;
            }
        }
        kept.reverse();
        func.regions[region].insts = kept;
    }

    /// Whether `inst` stays; its regions have been cleaned then.
    fn keeps(&mut self, func: &mut Function, inst: Inst) -> bool {
        let used = func.insts[inst].results.iter().any(|&r| self.live[r]);
        match func[inst].effect() {
            Effect::Pure | Effect::Allocates | Effect::Reads => return used,
            Effect::Terminator => return true,
            Effect::Writes => {
                return match func[inst] {
                    Op::Store { place, .. } => !self.only_written(func, place),
                    _ => true,
                };
            }
            Effect::Control => {}
        }
        match func[inst].clone() {
            Op::If {
                then, otherwise, ..
            } => {
                self.drop_unused_results(func, inst, then, otherwise);
                self.region(func, then);
                self.region(func, otherwise);
                !(func.insts[inst].results.is_empty()
                    && self.is_empty(func, then)
                    && self.is_empty(func, otherwise))
            }
            Op::For { body, .. } => {
                self.drop_unused_carried(func, inst, body);
                // A carried value may be used by the next iteration before its definition is seen.
                self.keep_yielded(func, body);
                self.region(func, body);
                used || !self.is_empty(func, body)
            }
            Op::While { cond, body, .. } => {
                self.keep_yielded(func, body);
                self.region(func, body);
                self.region(func, cond);
                true
            }
            Op::Parallel { body, .. } | Op::ParallelCells { body, .. } => {
                self.region(func, body);
                self.draws || !self.is_empty(func, body)
            }
            Op::Each { body } | Op::Update { body, .. } => {
                self.region(func, body);
                true
            }
            Op::Task {
                kind, bounds, body, ..
            } => {
                self.region(func, body);
                self.region(func, bounds);
                self.draws && kind == TaskKind::Range || !self.is_dead_task(func, body)
            }
            op => unreachable!("{op:?} owns no regions"),
        }
    }

    fn only_written(&self, func: &Function, place: Value) -> bool {
        match func.def_op(place) {
            Some(Op::Local {}) => !self.read[place],
            Some(&Op::ElemRef { base, .. }) => self.only_written(func, base),
            _ => false,
        }
    }

    fn is_empty(&self, func: &Function, region: Region) -> bool {
        func.regions[region].insts.len() == 1 && func.yielded(region).is_some()
    }

    fn is_dead_task(&self, func: &Function, body: Region) -> bool {
        func.regions[body].insts.iter().all(|&i| match func[i] {
            Op::Each { body } => self.is_empty(func, body),
            Op::Yield { .. } => true,
            _ => false,
        })
    }

    fn keep_yielded(&mut self, func: &Function, body: Region) {
        func[func.terminator(body)].operands(|v| self.live[v] = true);
    }

    fn drop_unused_results(
        &mut self,
        func: &mut Function,
        inst: Inst,
        then: Region,
        otherwise: Region,
    ) {
        let keep: Vec<bool> = func.insts[inst]
            .results
            .iter()
            .map(|&r| self.live[r])
            .collect();
        if keep.iter().all(|&k| k) {
            return;
        }
        self.changed = true;
        func.retain_results(inst, &keep);
        for region in [then, otherwise] {
            let end = func.terminator(region);
            if let Op::Yield { values } = &mut func.insts[end].op {
                retain(values, &keep);
            }
        }
    }

    /// Removes the values that a loop carries, but that neither its iterations nor what follows the loop uses.
    fn drop_unused_carried(&mut self, func: &mut Function, inst: Inst, body: Region) {
        let results = &func.insts[inst].results;
        if results.iter().all(|&r| self.live[r]) {
            return;
        }
        let mut keep: Vec<bool> = results.iter().map(|&r| self.live[r]).collect();
        let params = func.regions[body].params[1..].to_vec();
        let mut ends = Vec::new();
        ends_of(func, body, &mut ends);
        walk(func, body, &mut |func, user| {
            let is_end = ends.contains(&user);
            let mut at = 0;
            func[user].operands(|v| {
                // An iteration that only passes a value to the next one does not use it.
                let passes_on = is_end && params.get(at) == Some(&v);
                if let Some(k) = params.iter().position(|&p| p == v && !passes_on) {
                    keep[k] = true;
                }
                at += 1;
            });
        });
        if keep.iter().all(|&k| k) {
            return;
        }
        self.changed = true;
        func.retain_results(inst, &keep);
        func.retain_params(body, &[&[true], &keep[..]].concat());
        if let Op::For { init, .. } = &mut func.insts[inst].op {
            retain(init, &keep);
        }
        for end in ends {
            match &mut func.insts[end].op {
                Op::Yield { values } | Op::Continue { values } | Op::Break { values } => {
                    retain(values, &keep);
                }
                _ => unreachable!("these end iterations"),
            }
        }
    }
}

fn retain(values: &mut Vec<Value>, keep: &[bool]) {
    let mut keep = keep.iter();
    values.retain(|_| *keep.next().expect("one for each value"));
}

/// The instructions that end an iteration of a loop with this body.
fn ends_of(func: &Function, body: Region, ends: &mut Vec<Inst>) {
    if matches!(func[func.terminator(body)], Op::Yield { .. }) {
        ends.push(func.terminator(body));
    }
    leaving(func, body, ends);
}

/// `break` and `continue` in a region, but not those of its inner loops.
fn leaving(func: &Function, region: Region, ends: &mut Vec<Inst>) {
    for &inst in &func.regions[region].insts {
        match func[inst] {
            Op::Break { .. } | Op::Continue { .. } => ends.push(inst),
            Op::If {
                then, otherwise, ..
            } => {
                leaving(func, then, ends);
                leaving(func, otherwise, ends);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn chains_and_unused_results() {
        check_pass!("dce", "
            func @f(v0: i32, c: u1) -> i32 {
                v1: i32 = add v0, v0
                v2: i32 = mul v1, v1
                v3: i32, v4: i32 = if c {
                    v5: i32 = neg v0
                    yield [v0, v5]
                } {
                    yield [v0, v0]
                }
                yield [v3]
            }", @"
        func @f(v0: i32, v1: u1) -> i32 {
            v2: i32 = if v1 {
                yield [v0]
            } {
                yield [v0]
            }
            yield [v2]
        }
        ");
    }

    #[test]
    fn a_branch_that_leaves_is_not_empty() {
        check_pass!("dce", "
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 1
                v3: ref<i32> = local
                for v1, v0, v2, [] (v4: i32) {
                    v5: u1 = gt v4, v2
                    if v5 {
                        continue []
                    } {
                        yield []
                    }
                    store v3, v4
                    yield []
                }
                v6: i32 = load v3
                yield [v6]
            }", @"
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 1
                v3: ref<i32> = local
                for v1, v0, v2, [] (v4: i32) {
                    v5: u1 = gt v4, v2
                    if v5 {
                        continue []
                    } {
                        yield []
                    }
                    store v3, v4
                    yield []
                }
                v6: i32 = load v3
                yield [v6]
            }
            ");
    }

    #[test]
    fn values_that_a_loop_carries_without_use() {
        check_pass!("dce", "
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 1
                v3: i32, v4: i32, v5: i32 = for v1, v0, v2, [v1, v1, v0] (v6: i32, v7: i32, v8: i32, v9: i32) {
                    v10: u1 = gt v6, v9
                    if v10 {
                        continue [v6, v7, v9]
                    } {
                        yield []
                    }
                    yield [v7, v6, v9]
                }
                v11: i32 = for v1, v0, v2, [v1] (v12: i32, v13: i32) {
                    print \"{}\", [v12]
                    yield [v12]
                }
                yield [v3]
            }", @r#"
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 1
                v3: i32, v4: i32 = for v1, v0, v2, [v1, v0] (v5: i32, v6: i32, v7: i32) {
                    v8: u1 = gt v5, v7
                    if v8 {
                        continue [v5, v7]
                    } {
                        yield []
                    }
                    yield [v6, v7]
                }
                for v1, v0, v2, [] (v9: i32) {
                    print "{}", [v9]
                    yield []
                }
                yield [v3]
            }
            "#);
    }

    #[test]
    fn locals_that_are_only_written() {
        check_pass!("dce", "
            func @f(v0: i32) -> i32 {
                v1: ref<i32> = local
                v2: ref<vec<3, i32>> = local
                v3: ref<i32> = elem_ref v2, [v0]
                store v1, v0
                store v3, v0
                v4: ref<i32> = local
                store v4, v0
                v5: i32 = load v4
                yield [v5]
            }", @"
        func @f(v0: i32) -> i32 {
            v1: ref<i32> = local
            store v1, v0
            v2: i32 = load v1
            yield [v2]
        }
        ");
    }

    #[test]
    fn empty_loops_count_for_random_numbers() {
        let text = |last: &str| {
            format!(
                "kernel @k() {{
                    v0: i32 = const 4
                    parallel [v0], [v0] (v1: i32) {{ yield [] }}
                    {last}
                    yield []
                }}"
            )
        };
        let random = "v2: i32 = random print \"{}\", [v2]";
        assert!(
            crate::testing::after(&["dce"], &text(random), aerogel_ir::FastMath::Off)
                .contains("parallel")
        );
        assert!(
            !crate::testing::after(&["dce"], &text(""), aerogel_ir::FastMath::Off)
                .contains("parallel")
        );
    }
}
