//! Debug mode: checks that always hold are removed.
//!
//! ```text
//! parallel [0], [64] (v1) {               parallel [0], [64] (v1) {
//!     v2 = cast v1
//!     assert 0 <= v2 < 64, bounds   ==>
//!     v3 = field_at @x, [v2]                  v3 = field_at @x, [v1]
//! }                                       }
//! ```
//! [`run`] removes what follows from constants, the ends of loops, and the conditions around: a check that has passed is one
//! of these, for those behind it. Indices that were widened to be checked are 32 bits again, since other passes recognise
//! accesses by their indices. [`hoisted_checks`] duplicates loops whose checks can be decided at launch.

pub(crate) mod hoisted_checks;
mod known;

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{AssertKind, Env, Function, Inst, Op, Region, Type, Value};

use crate::PassCx;
use crate::simplify::dce;
use known::{Known, Part, does_not_fall_through, parts};

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    if !cx.options.debug {
        return false;
    }
    let mut gone = SecondaryMap::new();
    let mut known = Known::default();
    let body = func.body;
    let mut any = false;
    visit(func, cx.env, body, &mut known, &mut |_, _, inst, parts| {
        if parts.is_empty() {
            gone[inst] = true;
            any = true;
        }
    });
    if any {
        remove(func, body, &gone);
    }
    let narrowed = narrow_indices(func, cx.env, body);
    if any || narrowed {
        dce::run(func, cx);
    }
    any || narrowed
}

/// What a visit does with a check: what is known there, and which of its comparisons are not known to hold.
type Check<'a> = dyn FnMut(&Function, &Known, Inst, &[Part]) + 'a;

/// Calls `check` for every check in a region, with what is known there and those of its comparisons that are not known
/// to hold.
fn visit(func: &Function, env: &Env, region: Region, known: &mut Known, check: &mut Check<'_>) {
    let mark = known.mark();
    for &inst in &func.regions[region].insts {
        match func[inst] {
            Op::Assert { cond, kind, .. } => {
                if is_check(kind)
                    && let Some(mut parts) = parts(func, cond)
                {
                    parts.retain(|&part| !known.holds(func, part));
                    check(func, known, inst, &parts);
                }
                known.learn(func, cond);
            }
            Op::If {
                cond,
                then,
                otherwise,
            } => {
                for (side, holds) in [(then, true), (otherwise, false)] {
                    let mark = known.mark();
                    match holds {
                        true => known.learn(func, cond),
                        false => known.learn_not(func, cond),
                    }
                    visit(func, env, side, known, check);
                    known.forget(mark);
                }
                // What is behind `if c: continue` runs where `c` does not hold.
                if does_not_fall_through(func, then) {
                    known.learn_not(func, cond);
                } else if does_not_fall_through(func, otherwise) {
                    known.learn(func, cond);
                }
            }
            ref op => {
                known.enter(func, env, op);
                for owned in func.owned(inst) {
                    visit(func, env, owned, known, check);
                }
            }
        }
    }
    known.forget(mark);
}

/// Whether an assertion is one of the compiler's that compares integers of the program.
fn is_check(kind: AssertKind) -> bool {
    use AssertKind::{Bounds, DivisionByZero, ModuloByZero, NegativePower};
    matches!(kind, Bounds | DivisionByZero | ModuloByZero | NegativePower)
}

/// Removes instructions from a region and those inside.
fn remove(func: &mut Function, region: Region, gone: &SecondaryMap<Inst, bool>) {
    let mut insts = std::mem::take(&mut func.regions[region].insts);
    insts.retain(|&inst| !gone[inst]);
    for &inst in &insts {
        for owned in func.owned(inst) {
            remove(func, owned, gone);
        }
    }
    func.regions[region].insts = insts;
}

/// Makes indices 32 bits wide that were widened from them. They are inside of their axis, or a check has ended the iteration.
fn narrow_indices(func: &mut Function, env: &Env, region: Region) -> bool {
    let mut changed = false;
    for inst in func.regions[region].insts.clone() {
        let mut op = func[inst].clone();
        let indices = match &mut op {
            Op::FieldAt { field, indices } => {
                let is_small = |&size: &u64| i32::try_from(size).is_ok();
                env.shape(*field).iter().all(is_small).then_some(indices)
            }
            Op::ArrayAt { indices, .. } => Some(indices),
            _ => None,
        };
        let mut narrowed = false;
        for index in indices.into_iter().flatten() {
            let narrow = before_widening(func, *index);
            narrowed |= narrow != *index;
            *index = narrow;
        }
        if narrowed {
            func.insts[inst].op = op;
            changed = true;
        }
        for owned in func.owned(inst) {
            changed |= narrow_indices(func, env, owned);
        }
    }
    changed
}

/// The `i32` that a value was widened from; other values themselves.
fn before_widening(func: &Function, value: Value) -> Value {
    match func.def_op(value) {
        Some(&Op::Cast { x })
            if func.ty(value) == Type::I64 && func.ty(x) == Type::Scalar(ScalarType::I32) =>
        {
            x
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass_in_debug;

    #[test]
    fn counters_of_loops() {
        check_pass_in_debug!("proved_checks", "
            tree0 { dense i:64 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 63
                v2: i32 = const 1
                v3: i64 = const 0
                v4: i64 = const 64
                parallel [v0], [v1] (v5: i32) {
                    v6: i32 = add v5, v2
                    v7: i64 = cast v6
                    v8: u1 = ge v7, v3
                    v9: u1 = lt v7, v4
                    v10: u1 = and v8, v9
                    assert v10, bounds, \"inside: {}\", [v6]
                    v11: ref<f32> = field_at @x, [v7]
                    v12: i64 = cast v5
                    v13: u1 = gt v12, v3
                    assert v13, bounds, \"not for 0: {}\", [v5]
                    v14: ref<f32> = field_at @x, [v12]
                    v15: f32 = load v14
                    store v11, v15
                    yield []
                }
                yield []
            }", @r#"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 63
            v2: i32 = const 1
            v3: i64 = const 0
            parallel [v0], [v1] (v4: i32) {
                v5: i32 = add v4, v2
                v6: ref<f32> = field_at @x, [v5]
                v7: i64 = cast v4
                v8: u1 = gt v7, v3
                assert v8, bounds, "not for 0: {}", [v4]
                v9: ref<f32> = field_at @x, [v4]
                v10: f32 = load v9
                store v6, v10
                yield []
            }
            yield []
        }
        "#);
    }

    #[test]
    fn the_last_index_and_the_one_behind() {
        check_pass_in_debug!("proved_checks", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 8
                v2: i32 = const 9
                v3: i32 = const 1
                v4: f32 = const 1.0
                parallel [v0], [v1] (v5: i32) {
                    v6: u1 = lt v5, v1
                    assert v6, bounds, \"goes: {}\", [v5]
                    v7: ref<f32> = field_at @x, [v5]
                    store v7, v4
                    yield []
                }
                parallel [v0], [v2] (v8: i32) {
                    v9: u1 = lt v8, v1
                    assert v9, bounds, \"stays: {}\", [v8]
                    v10: i32 = sub v8, v3
                    v11: u1 = ge v10, v0
                    assert v11, bounds, \"stays: {}\", [v10]
                    v12: u1 = lt v10, v1
                    assert v12, bounds, \"goes: {}\", [v10]
                    v13: ref<f32> = field_at @x, [v10]
                    store v13, v4
                    yield []
                }
                yield []
            }", @r#"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 8
            v2: i32 = const 9
            v3: i32 = const 1
            v4: f32 = const 1.0
            parallel [v0], [v1] (v5: i32) {
                v6: ref<f32> = field_at @x, [v5]
                store v6, v4
                yield []
            }
            parallel [v0], [v2] (v7: i32) {
                v8: u1 = lt v7, v1
                assert v8, bounds, "stays: {}", [v7]
                v9: i32 = sub v7, v3
                v10: u1 = ge v9, v0
                assert v10, bounds, "stays: {}", [v9]
                v11: ref<f32> = field_at @x, [v9]
                store v11, v4
                yield []
            }
            yield []
        }
        "#);
    }

    #[test]
    fn conditions_and_checks_before() {
        check_pass_in_debug!("proved_checks", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            kernel @k(i: i32, n: i32) {
                v0: i32 = arg a0
                v1: i32 = arg a1
                v2: i32 = const 0
                v3: i32 = const 8
                v4: i64 = const 0
                v5: i64 = const 8
                v6: u1 = ge v0, v2
                v7: u1 = lt v0, v3
                v8: u1 = and v6, v7
                v9: i64 = cast v0
                v10: u1 = ge v9, v4
                v11: u1 = lt v9, v5
                v12: u1 = and v10, v11
                if v8 {
                    assert v12, bounds, \"goes: {}\", [v0]
                    v13: ref<f32> = field_at @x, [v9]
                    v14: f32 = const 1.0
                    store v13, v14
                    yield []
                } {
                    assert v12, bounds, \"stays: {}\", [v0]
                    assert v12, bounds, \"follows from the one before: {}\", [v0]
                    v15: ref<f32> = field_at @x, [v9]
                    v16: f32 = const 2.0
                    store v15, v16
                    yield []
                }
                v17: i32 = mod v1, v3
                v18: i64 = cast v17
                v19: u1 = ge v18, v4
                v20: u1 = lt v18, v5
                v21: u1 = and v19, v20
                assert v21, bounds, \"a remainder: {}\", [v17]
                v22: ref<f32> = field_at @x, [v18]
                v23: f32 = const 3.0
                store v22, v23
                yield []
            }", @r#"
        kernel @k(i: i32, n: i32) {
            v0: i32 = arg a0
            v1: i32 = arg a1
            v2: i32 = const 0
            v3: i32 = const 8
            v4: i64 = const 0
            v5: i64 = const 8
            v6: u1 = ge v0, v2
            v7: u1 = lt v0, v3
            v8: u1 = and v6, v7
            v9: i64 = cast v0
            v10: u1 = ge v9, v4
            v11: u1 = lt v9, v5
            v12: u1 = and v10, v11
            if v8 {
                v13: ref<f32> = field_at @x, [v0]
                v14: f32 = const 1.0
                store v13, v14
                yield []
            } {
                assert v12, bounds, "stays: {}", [v0]
                v15: ref<f32> = field_at @x, [v0]
                v16: f32 = const 2.0
                store v15, v16
                yield []
            }
            v17: i32 = mod v1, v3
            v18: ref<f32> = field_at @x, [v17]
            v19: f32 = const 3.0
            store v18, v19
            yield []
        }
        "#);
    }

    #[test]
    fn sums_that_may_wrap_stay_checked() {
        check_pass_in_debug!("proved_checks", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            kernel @k(i: i32) {
                v0: i32 = arg a0
                v1: i32 = const 2147483647
                v2: i32 = const 0
                v3: u1 = gt v0, v2
                v4: i32 = add v0, v1
                v5: u1 = gt v4, v2
                if v3 {
                    assert v5, bounds, \"a sum: {}\", [v4]
                    v6: f32 = const 1.0
                    v7: ref<f32> = field_at @x, [v2]
                    store v7, v6
                    yield []
                } { yield [] }
                yield []
            }", @r#"
        kernel @k(i: i32) {
            v0: i32 = arg a0
            v1: i32 = const 2147483647
            v2: i32 = const 0
            v3: u1 = gt v0, v2
            v4: i32 = add v0, v1
            v5: u1 = gt v4, v2
            if v3 {
                assert v5, bounds, "a sum: {}", [v4]
                v6: f32 = const 1.0
                v7: ref<f32> = field_at @x, [v2]
                store v7, v6
                yield []
            } {
                yield []
            }
            yield []
        }
        "#);
    }
}
