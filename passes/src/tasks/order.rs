//! Results that do not depend on threads, for `deterministic` modules.
//!
//! ```text
//! task range { .. each { .. }                      task range { .. each { .. }
//!     v1 = load v0                                     await_turn
//!     v2 = atomic_add (temp_at 0), v1      ==>         v1 = load v0
//! }                                                    v2 = atomic_add (temp_at 0), v1 }
//! task range { .. each { atomic_add x, y } }       task range ordered { .. each { atomic_add x, y } }
//! ```
//! Parts of a task depend on the number of iterations alone. Instructions after an `each` wait until those of earlier parts
//! have run. An `ordered` task either adds only to memory of which ranges of its iterations can have copies (`analysis::sums`),
//! which are added up in their order, or runs on one thread.

use aerogel_base::hash::LookupSet;
use aerogel_ir::analysis::sums::{class_of, sums};
use aerogel_ir::{
    AtomicOp, BinaryOp, CellOp, FuncId, Function, Inst, NodeOp, Op, Region, Value, walk,
};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut changed = false;
    for task in func.regions[func.body].insts.clone() {
        let Op::Task { body, attrs, .. } = func[task] else {
            continue;
        };
        let insts = &func.regions[body].insts;
        let at = insts
            .iter()
            .position(|&i| matches!(func[i], Op::Each { .. }));
        let (Some(at), false) = (at, attrs.serial) else {
            continue;
        };
        let in_each = dependent(func, cx, &insts[..=at]);
        let in_turn = !dependent(func, cx, &insts[at + 1..]).is_empty();
        if in_turn {
            let inst = func.new_inst(Op::AwaitTurn {}, &[], func.insts[task].span);
            func.regions[body].insts.insert(at + 1, inst);
        }
        let ordered = !in_each.is_empty();
        let alone = ordered && (in_turn || !are_sums(func, cx, task, &in_each));
        if let Op::Task { attrs, .. } = &mut func.insts[task].op {
            attrs.ordered = ordered;
            if alone {
                attrs.max_threads = Some(1);
            }
        }
        changed |= in_turn || ordered;
    }
    changed
}

/// Whether copies of memory can take all that these instructions do.
fn are_sums(func: &Function, cx: &PassCx<'_>, task: Inst, insts: &[Inst]) -> bool {
    let found = sums(func, cx.env, task).classes;
    insts.iter().all(|&inst| {
        let place = match &func[inst] {
            Op::Atomic { place, .. } => *place,
            Op::AtomicAdds { places, .. } => places[0],
            _ => return false,
        };
        let class = class_of(func, cx.env, place);
        found.iter().any(|&(of, _)| Some(of) == class)
    })
}

/// The instructions among these and inside of them that do something else in another order of the iterations.
fn dependent(func: &Function, cx: &PassCx<'_>, insts: &[Inst]) -> Vec<Inst> {
    let uses = func.use_counts();
    let is_used = |inst: Inst| func.insts[inst].results.iter().any(|&r| uses[r] > 0);
    let mut found = Vec::new();
    let mut visit = |func: &Function, inst: Inst| {
        if depends(func, cx, inst, is_used(inst)) {
            found.push(inst);
        }
    };
    for &inst in insts {
        visit(func, inst);
        func[inst].regions(|region| walk(func, region, &mut visit));
    }
    found
}

/// Whether an instruction does something else in another order of the iterations. Plain reads and writes do not: iterations
/// that exchange anything by them race.
fn depends(func: &Function, cx: &PassCx<'_>, inst: Inst, is_used: bool) -> bool {
    match &func[inst] {
        Op::Atomic { place, .. } | Op::Cas { place, .. } if is_local(func, *place) => false,
        Op::Atomic { op, value, .. } => {
            is_used || *op == AtomicOp::Exchange || func.elem(*value).is_float()
        }
        Op::Update { body, .. } => is_used || !is_replacement(func, *body),
        Op::Call { func, .. } => call_depends(cx, *func, &mut LookupSet::default()),
        Op::AtomicAdds { .. }
        | Op::Cas { .. }
        | Op::Print { .. }
        | Op::Cell(CellOp::Append { .. })
        | Op::Node(NodeOp::Extend { .. }) => true,
        _ => false,
    }
}

/// Whether a call of a function does; what it calls in turn is looked at once.
fn call_depends(cx: &PassCx<'_>, id: FuncId, seen: &mut LookupSet<FuncId>) -> bool {
    if !seen.insert(id) {
        return false;
    }
    let (func, mut found) = (&cx.funcs[id], false);
    let uses = func.use_counts();
    walk(func, func.body, &mut |func, inst| {
        let is_used = func.insts[inst].results.iter().any(|&r| uses[r] > 0);
        found |= match func[inst] {
            Op::Call { func, .. } => call_depends(cx, func, seen),
            _ => depends(func, cx, inst, is_used),
        };
    });
    found
}

/// Whether a storage is a local, which no other iteration changes.
fn is_local(func: &Function, place: Value) -> bool {
    match func.def_op(place) {
        Some(Op::Local {}) => true,
        Some(&(Op::ElemRef { base, .. } | Op::MemberRef { base, .. })) => is_local(func, base),
        _ => false,
    }
}

/// Whether all that an update does with the old value is to keep some of its bits.
fn is_replacement(func: &Function, body: Region) -> bool {
    let mut of_old = func.regions[body].params.clone();
    func.regions[body].insts.iter().all(|&inst| {
        let mut takes_old = false;
        func[inst].operands(|v| takes_old |= of_old.contains(&v));
        let (mut has_regions, op) = (false, &func[inst]);
        op.regions(|_| has_regions = true);
        if takes_old {
            of_old.extend(func.insts[inst].results.iter().copied());
        }
        let keeps_bits = matches!(
            op,
            Op::Cast { .. }
                | Op::Binary {
                    op: BinaryOp::And | BinaryOp::Or,
                    ..
                }
                | Op::Yield { .. }
        );
        !has_regions && (keeps_bits || !takes_old)
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn sums_of_parts_are_added_in_their_order() {
        check_pass!("order", "
            tree0 { dense i:8 { place a: f32 } place s: f32 }
            kernel @f(v0: f32) {
                task range { lo: i32 = const 0  hi: i32 = const 8  yield [lo, hi] } {
                    l: ref<f32> = local
                    each (i: i32) {
                        x: f32 = arg a0
                        y: f32 = load l
                        z: f32 = add x, y
                        store l, z
                        yield []
                    }
                    r: cell<tree0.S0> = root tree0
                    p: ref<f32> = child tree0.S3, r
                    v: f32 = load l
                    o: f32 = atomic_add p, v
                    yield []
                }
                yield []
            }", @"
            kernel @f(v0: f32) {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    v2: ref<f32> = local
                    each (v3: i32) {
                        v4: f32 = arg a0
                        v5: f32 = load v2
                        v6: f32 = add v4, v5
                        store v2, v6
                        yield []
                    }
                    await_turn
                    v7: cell<tree0.S0> = root tree0
                    v8: ref<f32> = child tree0.S3, v7
                    v9: f32 = load v2
                    v10: f32 = atomic_add v8, v9
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn scattered_sums_are_ordered() {
        check_pass!("order", "
            tree0 { dense i:8 { place a: f32, place b: i32 } }
            kernel @f(v0: f32) {
                task range { lo: i32 = const 0  hi: i32 = const 8  yield [lo, hi] } {
                    each (i: i32) {
                        x: f32 = arg a0
                        k: i64 = cast i
                        r: cell<tree0.S0> = root tree0
                        d: container<tree0.S1> = child tree0.S1, r
                        c: cell<tree0.S1> = lookup tree0.S1, d, k
                        p: ref<f32> = child tree0.S2, c
                        o: f32 = atomic_add p, x
                        yield []
                    }
                    yield []
                }
                task range { lo: i32 = const 0  hi: i32 = const 8  yield [lo, hi] } {
                    each (i: i32) {
                        x: i32 = const 1
                        k: i64 = cast i
                        r: cell<tree0.S0> = root tree0
                        d: container<tree0.S1> = child tree0.S1, r
                        c: cell<tree0.S1> = lookup tree0.S1, d, k
                        q: ref<i32> = child tree0.S3, c
                        o: i32 = atomic_add q, x
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @f(v0: f32) {
                task range ordered {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: f32 = arg a0
                        v4: i64 = cast v2
                        v5: cell<tree0.S0> = root tree0
                        v6: container<tree0.S1> = child tree0.S1, v5
                        v7: cell<tree0.S1> = lookup tree0.S1, v6, v4
                        v8: ref<f32> = child tree0.S2, v7
                        v9: f32 = atomic_add v8, v3
                        yield []
                    }
                    yield []
                }
                task range {
                    v10: i32 = const 0
                    v11: i32 = const 8
                    yield [v10, v11]
                } {
                    each (v12: i32) {
                        v13: i32 = const 1
                        v14: i64 = cast v12
                        v15: cell<tree0.S0> = root tree0
                        v16: container<tree0.S1> = child tree0.S1, v15
                        v17: cell<tree0.S1> = lookup tree0.S1, v16, v14
                        v18: ref<i32> = child tree0.S3, v17
                        v19: i32 = atomic_add v18, v13
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn old_values_that_are_used_and_products_are_made_on_one_thread() {
        check_pass!("order", "
            tree0 { place n: i32, place p: f32 }
            kernel @f(a: array<i32, 1>) {
                task range { lo: i32 = const 0  hi: i32 = const 4  yield [lo, hi] } {
                    each (i: i32) {
                        one: i32 = const 1
                        r: cell<tree0.S0> = root tree0
                        q: ref<i32> = child tree0.S1, r
                        o: i32 = atomic_add q, one
                        t: ref<i32> = array_at a0, [o]
                        store t, i
                        yield []
                    }
                    yield []
                }
                task range { lo: i32 = const 0  hi: i32 = const 4  yield [lo, hi] } {
                    each (i: i32) {
                        x: f32 = const 1.5
                        r: cell<tree0.S0> = root tree0
                        q: ref<f32> = child tree0.S2, r
                        o: f32 = atomic_mul q, x
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @f(a: array<i32, 1>) {
                task range ordered threads=1 {
                    v0: i32 = const 0
                    v1: i32 = const 4
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: i32 = const 1
                        v4: cell<tree0.S0> = root tree0
                        v5: ref<i32> = child tree0.S1, v4
                        v6: i32 = atomic_add v5, v3
                        v7: ref<i32> = array_at a0, [v6]
                        store v7, v2
                        yield []
                    }
                    yield []
                }
                task range ordered threads=1 {
                    v8: i32 = const 0
                    v9: i32 = const 4
                    yield [v8, v9]
                } {
                    each (v10: i32) {
                        v11: f32 = const 1.5
                        v12: cell<tree0.S0> = root tree0
                        v13: ref<f32> = child tree0.S2, v12
                        v14: f32 = atomic_mul v13, v11
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn bits_that_an_update_replaces_have_no_order() {
        check_pass!("order", "
            tree0 { dense i:8 { place a: u32, place b: u32 } }
            kernel @f() {
                task range { lo: i32 = const 0  hi: i32 = const 8  yield [lo, hi] } {
                    each (i: i32) {
                        k: i64 = cast i
                        r: cell<tree0.S0> = root tree0
                        d: container<tree0.S1> = child tree0.S1, r
                        c: cell<tree0.S1> = lookup tree0.S1, d, k
                        p: ref<u32> = child tree0.S2, c
                        o: u32 = update p (old: u32) {
                            m: u32 = const 15
                            n: u32 = const 16
                            low: u32 = and old, m
                            new: u32 = or low, n
                            yield [new]
                        }
                        yield []
                    }
                    yield []
                }
                task range { lo: i32 = const 0  hi: i32 = const 8  yield [lo, hi] } {
                    each (i: i32) {
                        k: i64 = cast i
                        r: cell<tree0.S0> = root tree0
                        d: container<tree0.S1> = child tree0.S1, r
                        c: cell<tree0.S1> = lookup tree0.S1, d, k
                        p: ref<u32> = child tree0.S2, c
                        o: u32 = update p (old: u32) {
                            m: u32 = const 15
                            new: u32 = mul old, m
                            yield [new]
                        }
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @f() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: i64 = cast v2
                        v4: cell<tree0.S0> = root tree0
                        v5: container<tree0.S1> = child tree0.S1, v4
                        v6: cell<tree0.S1> = lookup tree0.S1, v5, v3
                        v7: ref<u32> = child tree0.S2, v6
                        v8: u32 = update v7 (v9: u32) {
                            v10: u32 = const 15
                            v11: u32 = const 16
                            v12: u32 = and v9, v10
                            v13: u32 = or v12, v11
                            yield [v13]
                        }
                        yield []
                    }
                    yield []
                }
                task range ordered threads=1 {
                    v14: i32 = const 0
                    v15: i32 = const 8
                    yield [v14, v15]
                } {
                    each (v16: i32) {
                        v17: i64 = cast v16
                        v18: cell<tree0.S0> = root tree0
                        v19: container<tree0.S1> = child tree0.S1, v18
                        v20: cell<tree0.S1> = lookup tree0.S1, v19, v17
                        v21: ref<u32> = child tree0.S2, v20
                        v22: u32 = update v21 (v23: u32) {
                            v24: u32 = const 15
                            v25: u32 = mul v23, v24
                            yield [v25]
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
