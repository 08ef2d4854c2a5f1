//! Derivatives as text, behind the passes that tidy them up.

mod called;
mod cells;
mod gathered;
mod left;
mod refused;
mod replayed;

use aerogel_ir::{Derivative, parse_module, print_function, verify};

use super::{DerivativeError, Wanted, differentiate};
use crate::{Options, driver, find};

const HEAD: &str = "
    tree0 { dense i:8 { place x: f64, place y: f64, place gx: f64, place gy: f64 } place n: i32 }
    tree1 { pointer i:8 { place a: f64, place ga: f64 } place t: f64, place h: f64 }
    field @x: f64 = tree0 [S2] grad @gx dual @gx
    field @y: f64 = tree0 [S3] grad @gy dual @gy
    field @gx: f64 = tree0 [S4]
    field @gy: f64 = tree0 [S5]
    field @n: i32 = tree0 [S6]
    field @a: f64 = tree1 [S2] grad @ga
    field @ga: f64 = tree1 [S3]
    field @t: f64 = tree1 [S4]
    field @h: f64 = tree1 [S5]
";

/// The derivative of a kernel over eight elements, in which `v0` is the counter.
fn derivative(kind: Derivative, body: &str) -> String {
    whole(
        kind,
        &format!(
            "vlo: i32 = const 0 vhi: i32 = const 8 parallel [vlo], [vhi] (v0: i32) {{ {body} yield [] }} return []"
        ),
    )
}

fn whole(kind: Derivative, body: &str) -> String {
    printed(
        kind.into(),
        &format!("{HEAD} kernel @k() {{ {body} }}"),
        &|name| name.starts_with('k'),
    )
}

/// Functions of the derivative of a module, tidied up; or why there is none.
fn printed(wanted: Wanted, text: &str, which: &dyn Fn(&str) -> bool) -> String {
    let module = parse_module(text).unwrap_or_else(|e| panic!("{e}"));
    let options = Options::default();
    let mut module = match differentiate(module, wanted, options) {
        Ok(done) => done.module,
        Err(DerivativeError::Mistake(mistake)) => {
            return format!("{}: {}", mistake.code, mistake.message);
        }
        Err(DerivativeError::Broken(broken)) => panic!("{broken}"),
    };
    let names = [
        "promote_locals",
        "fold",
        "identities",
        "cse",
        "forward_loads",
        "dce",
    ];
    let passes: Vec<_> = names.iter().filter_map(|name| find(name)).collect();
    let mut text = String::new();
    for id in module.funcs.keys().collect::<Vec<_>>() {
        if !which(&module.funcs[id].name) {
            continue;
        }
        for _ in 0..2 {
            driver::run_list(&passes, &mut module, id, options).unwrap_or_else(|e| panic!("{e}"));
        }
        let func = &module.funcs[id];
        verify(func, &module.env, aerogel_ir::Stage::Structured).unwrap_or_else(|e| panic!("{e}"));
        text += &print_function(func, &module.env);
    }
    text
}

macro_rules! check_reverse {
    ($body:expr, @$snapshot:literal) => {
        ::insta::assert_snapshot!(derivative(Derivative::Grad, $body), @$snapshot)
    };
}

macro_rules! check_forward {
    ($body:expr, @$snapshot:literal) => {
        ::insta::assert_snapshot!(derivative(Derivative::Dual, $body), @$snapshot)
    };
}

#[test]
fn straight_line() {
    check_reverse!(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: f64 = sin v2
        v4: ref<f64> = field_at @y, [v0]
        store v4, v3",
        @"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f64> = field_at @x, [v2]
                v4: f64 = load v3
                v5: f64 = const 0.0
                v6: ref<f64> = field_at @gy, [v2]
                v7: f64 = load v6
                store v6, v5
                v8: f64 = cos v4
                v9: f64 = mul v7, v8
                v10: ref<f64> = field_at @gx, [v2]
                v11: f64 = atomic_add v10, v9
                yield []
            }
            return []
        }
        "
    );
}

#[test]
fn straight_line_forward() {
    check_forward!(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: f64 = sin v2
        v4: ref<f64> = field_at @y, [v0]
        store v4, v3",
        @"
        kernel @k_dual() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f64> = field_at @x, [v2]
                v4: f64 = load v3
                v5: ref<f64> = field_at @gx, [v2]
                v6: f64 = load v5
                v7: f64 = sin v4
                v8: f64 = cos v4
                v9: f64 = mul v6, v8
                v10: ref<f64> = field_at @y, [v2]
                store v10, v7
                v11: ref<f64> = field_at @gy, [v2]
                store v11, v9
                yield []
            }
            return []
        }
        "
    );
}

#[test]
fn sums() {
    check_reverse!(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: f64 = mul v2, v2
        v4: ref<f64> = field_at @y, [vlo]
        v5: f64 = atomic_sub v4, v3",
        @"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f64> = field_at @x, [v2]
                v4: f64 = load v3
                v5: ref<f64> = field_at @gy, [v0]
                v6: f64 = load v5
                v7: f64 = neg v6
                v8: f64 = mul v4, v7
                v9: f64 = add v8, v8
                v10: ref<f64> = field_at @gx, [v2]
                v11: f64 = atomic_add v10, v9
                yield []
            }
            return []
        }
        "
    );
}

#[test]
fn a_loop_that_carries() {
    check_reverse!(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: ref<i32> = field_at @n, []
        v4: i32 = load v3
        v5: i32 = const 1
        v6: f64 = for vlo, v4, v5, [v2] (v7: i32, v8: f64) {
            v9: f64 = sin v8
            yield [v9]
        }
        v10: ref<f64> = field_at @y, [v0]
        store v10, v6",
        @r#"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f64> = field_at @x, [v2]
                v4: f64 = load v3
                v5: ref<i32> = field_at @n, []
                v6: i32 = load v5
                v7: i32 = const 1
                v8: i64 = const 0
                v9: i64 = cast v6
                v10: i64 = const 1
                v11: i64 = max v9, v8
                v12: buffer<f64> = buffer
                v13: room<f64>, v14: u1 = reserve v12, v11
                assert v14, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v11]
                v15: f64, v16: i64 = for v0, v6, v7, [v4, v8] (v17: i32, v18: f64, v19: i64) {
                    v20: ref<f64> = room_at v13, v19
                    store v20, v18
                    v21: f64 = sin v18
                    v22: i64 = add v19, v10
                    yield [v21, v22]
                }
                v23: f64 = const 0.0
                v24: ref<f64> = field_at @gy, [v2]
                v25: f64 = load v24
                store v24, v23
                v26: i64 = const -1
                v27: i64 = add v11, v26
                v28: f64 = for v27, v26, v26, [v25] (v29: i64, v30: f64) {
                    v31: ref<f64> = room_at v13, v29
                    v32: f64 = load v31
                    v33: f64 = cos v32
                    v34: f64 = mul v33, v30
                    yield [v34]
                }
                v35: ref<f64> = field_at @gx, [v2]
                v36: f64 = atomic_add v35, v28
                yield []
            }
            return []
        }
        "#
    );
}

#[test]
fn a_loop_that_only_adds_saves_nothing() {
    check_reverse!(
        "v5: i32 = const 1
        v1: f64 = const 0.0
        v6: f64 = for vlo, vhi, v5, [v1] (v7: i32, v8: f64) {
            v2: ref<f64> = field_at @x, [v7]
            v3: f64 = load v2
            v4: f64 = cos v3
            v9: f64 = add v8, v4
            yield [v9]
        }
        v10: ref<f64> = field_at @y, [v0]
        store v10, v6",
        @"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: f64 = const 0.0
                v4: ref<f64> = field_at @gy, [v2]
                v5: f64 = load v4
                store v4, v3
                v6: i64 = const -1
                v7: i64 = const 7
                v8: f64 = for v7, v6, v6, [v5] (v9: i64, v10: f64) {
                    v11: i32 = cast v9
                    v12: ref<f64> = field_at @x, [v11]
                    v13: f64 = load v12
                    v14: f64 = sin v13
                    v15: f64 = mul v14, v10
                    v16: f64 = neg v15
                    v17: ref<f64> = field_at @gx, [v11]
                    v18: f64 = atomic_add v17, v16
                    yield [v10]
                }
                yield []
            }
            return []
        }
        "
    );
}

#[test]
fn a_loop_of_unknown_length() {
    check_reverse!(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: f64 = const 1.0
        v4: f64 = while [v2] (v5: f64) {
            v6: u1 = gt v5, v3
            yield [v6]
        } (v7: f64) {
            v8: f64 = sqrt v7
            yield [v8]
        }
        v10: ref<f64> = field_at @y, [v0]
        store v10, v4",
        @r#"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f64> = field_at @x, [v2]
                v4: f64 = load v3
                v5: f64 = const 1.0
                v6: buffer<f64> = buffer
                v7: i64 = const 0
                v8: f64, v9: i64 = while [v4, v7] (v10: f64, v11: i64) {
                    v12: u1 = gt v10, v5
                    yield [v12]
                } (v13: f64, v14: i64) {
                    v15: i64 = const 1
                    v16: i64 = add v14, v15
                    v17: room<f64>, v18: u1 = reserve v6, v16
                    assert v18, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v16]
                    v19: ref<f64> = room_at v17, v14
                    store v19, v13
                    v20: f64 = sqrt v13
                    yield [v20, v16]
                }
                v21: room<f64>, v22: u1 = reserve v6, v9
                assert v22, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v9]
                v23: f64 = const 0.0
                v24: ref<f64> = field_at @gy, [v2]
                v25: f64 = load v24
                store v24, v23
                v26: i64 = const -1
                v27: i64 = add v9, v26
                v28: f64 = for v27, v26, v26, [v25] (v29: i64, v30: f64) {
                    v31: ref<f64> = room_at v21, v29
                    v32: f64 = load v31
                    v33: f64 = sqrt v32
                    v34: f64 = const 0.5
                    v35: f64 = mul v34, v30
                    v36: f64 = div v35, v33
                    v37: u1 = gt v33, v23
                    v38: f64 = select v37, v36, v23
                    yield [v38]
                }
                v39: ref<f64> = field_at @gx, [v2]
                v40: f64 = atomic_add v39, v28
                yield []
            }
            return []
        }
        "#
    );
}

#[test]
fn exits() {
    ::insta::assert_snapshot!(crate::testing::after(&["exits", "promote_locals"], "
        func @f(v0: i32, v1: f64) -> f64 {
            v2: i32 = const 0
            v3: i32 = const 1
            v4: ref<f64> = local
            for v2, v0, v3, [] (v5: i32) {
                v6: f64 = load v4
                v7: u1 = gt v6, v1
                if v7 {
                    break []
                } {
                    yield []
                }
                v8: f64 = add v6, v1
                store v4, v8
                yield []
            }
            v9: f64 = load v4
            yield [v9]
        }", aerogel_ir::FastMath::Off), @"
        func @f(v0: i32, v1: f64) -> f64 {
            v2: i32 = const 0
            v3: i32 = const 1
            v4: f64 = const 0.0
            v5: u1 = const 0
            v6: i64 = cast v2
            v7: i64 = cast v0
            v8: i64 = cast v3
            v9: i64 = const 0
            v10: i64 = const 0
            v11: u1 = gt v8, v10
            v12: f64, v13: u1, v14: i64 = while [v4, v5, v6] (v15: f64, v16: u1, v17: i64) {
                v18: u1 = lt v17, v7
                v19: u1 = gt v17, v7
                v20: u1 = select v11, v18, v19
                v21: u1 = not v16
                v22: u1 = and v20, v21
                yield [v22]
            } (v23: f64, v24: u1, v25: i64) {
                v26: i32 = cast v25
                v27: i64 = add v25, v8
                v28: u1 = const 0
                v29: u1 = gt v23, v1
                v30: u1, v31: u1 = if v29 {
                    v32: u1 = const 1
                    yield [v32, v32]
                } {
                    yield [v24, v28]
                }
                v33: f64 = if v31 {
                    yield [v23]
                } {
                    v34: f64 = add v23, v1
                    yield [v34]
                }
                yield [v33, v30, v27]
            }
            yield [v12]
        }
        ");
}

/// What turns save are the numbers alone: whether one has left is decided again.
#[test]
fn a_loop_that_is_left() {
    check_reverse!(
        "v1: i32 = const 0
        v2: i32 = const 9
        v13: i32 = const 1
        v3: ref<f64> = field_at @x, [v0]
        v4: f64 = load v3
        v5: ref<f64> = local
        store v5, v4
        v6: f64 = const 3.0
        for v1, v2, v13, [] (v7: i32) {
            v8: f64 = load v5
            v9: u1 = gt v8, v6
            if v9 {
                break []
            } {
                yield []
            }
            v10: f64 = mul v8, v8
            store v5, v10
            yield []
        }
        v11: f64 = load v5
        v12: ref<f64> = field_at @y, [v0]
        store v12, v11",
        @r#"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f64> = field_at @x, [v2]
                v4: f64 = load v3
                v5: f64 = const 3.0
                v6: u1 = const 0
                v7: i64 = const 0
                v8: i64 = const 9
                v9: i64 = const 1
                v10: u1 = const 1
                v11: buffer<f64> = buffer
                v12: f64, v13: u1, v14: i64, v15: i64 = while [v4, v6, v7, v7] (v16: f64, v17: u1, v18: i64, v19: i64) {
                    v20: u1 = lt v18, v8
                    v21: u1 = not v17
                    v22: u1 = and v20, v21
                    yield [v22]
                } (v23: f64, v24: u1, v25: i64, v26: i64) {
                    v27: i64 = add v9, v26
                    v28: room<f64>, v29: u1 = reserve v11, v27
                    assert v29, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v27]
                    v30: ref<f64> = room_at v28, v26
                    store v30, v23
                    v31: i64 = add v9, v25
                    v32: u1 = gt v23, v5
                    v33: u1, v34: u1 = if v32 {
                        yield [v10, v10]
                    } {
                        yield [v24, v6]
                    }
                    v35: f64 = if v34 {
                        yield [v23]
                    } {
                        v36: f64 = mul v23, v23
                        yield [v36]
                    }
                    yield [v35, v33, v31, v27]
                }
                v37: room<f64>, v38: u1 = reserve v11, v15
                assert v38, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v15]
                v39: f64 = const 0.0
                v40: ref<f64> = field_at @gy, [v2]
                v41: f64 = load v40
                store v40, v39
                v42: i64 = const -1
                v43: i64 = add v15, v42
                v44: f64 = for v43, v42, v42, [v41] (v45: i64, v46: f64) {
                    v47: ref<f64> = room_at v37, v45
                    v48: f64 = load v47
                    v49: u1 = gt v48, v5
                    v50: u1 = if v49 {
                        yield [v10]
                    } {
                        yield [v6]
                    }
                    v51: f64 = if v50 {
                        v52: f64 = add v39, v46
                        yield [v52]
                    } {
                        v53: f64 = mul v48, v46
                        v54: f64 = add v53, v39
                        v55: f64 = add v53, v54
                        yield [v55]
                    }
                    yield [v51]
                }
                v56: ref<f64> = field_at @gx, [v2]
                v57: f64 = atomic_add v56, v44
                yield []
            }
            return []
        }
    "#
    );
}

#[test]
fn branches() {
    check_reverse!(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: i32 = const 3
        v4: u1 = lt v0, v3
        v5: f64 = if v4 {
            v6: f64 = mul v2, v2
            yield [v6]
        } {
            yield [v2]
        }
        v10: ref<f64> = field_at @y, [v0]
        store v10, v5",
        @"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: f64 = const 0.0
                v4: ref<f64> = field_at @x, [v2]
                v5: f64 = load v4
                v6: i32 = const 3
                v7: u1 = lt v2, v6
                v8: ref<f64> = field_at @gy, [v2]
                v9: f64 = load v8
                store v8, v3
                v10: f64 = if v7 {
                    v11: f64 = mul v5, v9
                    v12: f64 = add v11, v3
                    v13: f64 = add v11, v12
                    yield [v13]
                } {
                    v14: f64 = add v9, v3
                    yield [v14]
                }
                v15: ref<f64> = field_at @gx, [v2]
                v16: f64 = atomic_add v15, v10
                yield []
            }
            return []
        }
        "
    );
}

#[test]
fn roots_of_zero_that_matter_are_counted() {
    let wanted = Wanted {
        counts_kinks: true,
        ..Derivative::Grad.into()
    };
    let text = format!(
        "{HEAD} kernel @k() {{
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {{
                v3: ref<f64> = field_at @x, [v2]
                v4: f64 = load v3
                v5: f64 = sqrt v4
                v6: ref<f64> = field_at @y, [v2]
                store v6, v5
                yield []
            }}
            return []
        }}"
    );
    insta::assert_snapshot!(printed(wanted, &text, &|name| name == "k_grad"), @"
    kernel @k_grad() -> i64 {
        v0: ref<i64> = local
        v1: i32 = const 0
        v2: i32 = const 8
        parallel [v1], [v2] (v3: i32) {
            v4: ref<f64> = field_at @x, [v3]
            v5: f64 = load v4
            v6: f64 = sqrt v5
            v7: f64 = const 0.0
            v8: ref<f64> = field_at @gy, [v3]
            v9: f64 = load v8
            store v8, v7
            v10: u1 = eq v6, v7
            v11: u1 = ne v9, v7
            v12: u1 = and v10, v11
            v13: i64 = cast v12
            v14: i64 = atomic_add v0, v13
            v15: f64 = const 0.5
            v16: f64 = mul v9, v15
            v17: f64 = div v16, v6
            v18: u1 = gt v6, v7
            v19: f64 = select v18, v17, v7
            v20: ref<f64> = field_at @gx, [v3]
            v21: f64 = atomic_add v20, v19
            yield []
        }
        v22: i64 = load v0
        return [v22]
    }
    ");
}
