use crate::testing::{after, check_passes};
use aerogel_ir::FastMath;

/// A loop over eight numbers that carries `s`, in a task.
fn summing(ty: &str, init: &str, body: &str) -> String {
    format!(
        "tree0 {{ dense i:8 {{ place x: {ty} }} }}
        tree1 {{ dense i:8 {{ place y: {ty} }} }}
        field @x: {ty} = tree0 [S2]
        field @y: {ty} = tree1 [S2]
        kernel @k() {{
            task range {{
                lo: i32 = const 0
                hi: i32 = const 8
                yield [lo, hi]
            }} {{
                each (i: i32) {{
                    k0: i32 = const 0
                    k8: i32 = const 8
                    k1: i32 = const 1
                    zero: {ty} = const {init}
                    p: ref<{ty}> = field_at @y, [i]
                    sum: {ty} = for k0, k8, k1, [zero] (j: i32, s: {ty}) {{
                        q: ref<{ty}> = field_at @x, [j]
                        v: {ty} = load q
                        {body}
                    }}
                    store p, sum
                    yield []
                }}
                yield []
            }}
            yield []
        }}"
    )
}

/// The body of the loop over `j` after the pass.
fn looped(ty: &str, init: &str, body: &str) -> String {
    let text = after(
        &["guarded_steps", "dce"],
        &summing(ty, init, body),
        FastMath::Off,
    );
    let from = text.find("load ").expect("the element");
    let text = &text[from..];
    let from = text.find('\n').expect("lines") + 1;
    let to = text.find("store ").expect("the sum");
    let lines = text[from..to].lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_sum_in_a_branch() {
    let body = "c: u1 = gt v, zero
        t: f32 = if c { w: f32 = mul v, v  u: f32 = add s, w  yield [u] } { yield [s] }
        yield [t]";
    insta::assert_snapshot!(looped("f32", "-0.0", body), @"
    v13: u1 = gt v12, v6
    v14: f32 = if v13 {
    v15: f32 = mul v12, v12
    yield [v15]
    } {
    v16: f32 = const -0.0
    yield [v16]
    }
    v17: f32 = add v10, v14
    yield [v17]
    }
    ");
}

#[test]
fn differences_and_both_sides() {
    let body = "c: u1 = gt v, zero
        t: f64 = if c {
            a: f64 = sub s, v  b: f64 = sub a, v  yield [b]
        } {
            a: f64 = add v, s  yield [a]
        }
        yield [t]";
    insta::assert_snapshot!(looped("f64", "0.0", body), @"
    v13: u1 = gt v12, v6
    v14: f64, v15: f64 = if v13 {
    v16: f64 = neg v12
    v17: f64 = neg v12
    yield [v16, v17]
    } {
    v18: f64 = const -0.0
    yield [v12, v18]
    }
    v19: f64 = add v10, v14
    v20: f64 = add v19, v15
    yield [v20]
    }
    ");
}

#[test]
fn branches_in_branches() {
    let body = "c: u1 = gt v, zero
        d: u1 = lt v, zero
        t: i32 = if c { yield [s] } {
            u: i32 = if d { w: i32 = xor s, v  yield [w] } { yield [s] }
            yield [u]
        }
        yield [t]";
    insta::assert_snapshot!(looped("i32", "1", body), @"
    v13: u1 = gt v12, v6
    v14: u1 = lt v12, v6
    v15: i32 = if v13 {
    v16: i32 = const 0
    yield [v16]
    } {
    v17: i32 = if v14 {
    yield [v12]
    } {
    v18: i32 = const 0
    yield [v18]
    }
    yield [v17]
    }
    v19: i32 = xor v10, v15
    yield [v19]
    }
    ");
}

#[test]
fn continues_and_choices() {
    let body = "c: u1 = le v, zero
        if c { continue [s] } { yield [] }
        t: f32 = sub s, v
        d: u1 = gt v, j1
        u: f32 = select d, t, s
        yield [u]";
    let body = body.replace("d: u1", "j1: f32 = const 1.0  d: u1");
    insta::assert_snapshot!(looped("f32", "0.0", &body), @"
    v13: u1 = le v12, v6
    v14: f32 = if v13 {
    v15: f32 = const -0.0
    yield [v15]
    } {
    v16: f32 = const 1.0
    v17: u1 = gt v12, v16
    v18: f32 = const -0.0
    v19: f32 = neg v12
    v20: f32 = select v17, v19, v18
    yield [v20]
    }
    v21: f32 = add v10, v14
    yield [v21]
    }
    ");
}

#[test]
fn extrema_keep_their_order() {
    let body = "c: u1 = gt v, one
        t: f32 = if c { w: f32 = max v, s  yield [w] } { yield [s] }
        yield [t]";
    let body = format!("one: f32 = const 1.0 {body}");
    insta::assert_snapshot!(looped("f32", "-0.0", &body), @"
        v13: f32 = const 1.0
        v14: u1 = gt v12, v13
        v15: f32 = if v14 {
        yield [v12]
        } {
        v16: f32 = const -inf
        yield [v16]
        }
        v17: f32 = max v15, v10
        yield [v17]
        }
        ");
}

#[test]
fn what_stays() {
    let bodies = [
        // The sum is used in the branch; of products; two kinds; the counter.
        "t: f32 = if c { a: f32 = add s, v  b: f32 = mul a, a  d: f32 = add a, b  yield [d] } { yield [s] }",
        "t: f32 = if c { a: f32 = mul s, v  yield [a] } { yield [s] }",
        "t: f32 = if c { a: f32 = add s, v  yield [a] } { a: f32 = max s, v  yield [a] }",
        "t: f32 = if c { a: f32 = add v, v  yield [a] } { yield [v] }",
        // Something in the loop keeps it from being vectorised.
        "t: f32 = if c { w: f32 = random  a: f32 = add s, w  yield [a] } { yield [s] }",
    ];
    for body in bodies {
        let text = summing(
            "f32",
            "0.0",
            &format!("c: u1 = gt v, zero {body} yield [t]"),
        );
        let [before, after] = [&[][..], &["guarded_steps"]].map(|passes: &[&str]| match passes {
            [] => after(&["dce"], &text, FastMath::Off),
            passes => after(&[passes, &["dce"]].concat(), &text, FastMath::Off),
        });
        assert_eq!(before, after);
    }
}

#[test]
fn what_is_not_taken_does_not_reach_the_sum() {
    // 1 / v is infinite where v is 0, and no final sum is NaN.
    let body = "c: u1 = ne v, zero
        t: f32 = if c { w: f32 = div v, v  u: f32 = add s, w  yield [u] } { yield [s] }
        yield [t]";
    after(
        &["guarded_steps", "dce", "if_convert", "identities"],
        &summing("f32", "0.0", body),
        FastMath::Off,
    );
}

#[test]
fn accumulators_of_threads() {
    check_passes!(&["thread_local", "guarded_steps", "dce"], "
        tree0 { dense i:8 { place x: f32 }, place t: f32 }
        field @x: f32 = tree0 [S2]
        field @t: f32 = tree0 [S3]
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 8
                yield [v0, v1]
            } {
                v2: ref<f32> = field_at @t, []
                v3: f32 = const 0.0
                each (v4: i32) {
                    v5: ref<f32> = field_at @x, [v4]
                    v6: f32 = load v5
                    v7: u1 = le v6, v3
                    if v7 { continue [] } { yield [] }
                    v8: f32 = atomic_add v2, v6
                    v9: u1 = gt v6, v3
                    if v9 {
                        v10: f32 = atomic_sub v2, v3
                        yield []
                    } {
                        v11: f32 = atomic_add v2, v6
                        v12: f32 = atomic_add v2, v6
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
            v2: f32 = const 0.0
            v3: ref<f32> = local
            v4: f32 = const -0.0
            store v3, v4
            each (v5: i32) {
                v6: ref<f32> = field_at @x, [v5]
                v7: f32 = load v6
                v8: u1 = le v7, v2
                v9: f32, v10: f32, v11: f32 = if v8 {
                    v12: f32 = const -0.0
                    v13: f32 = const -0.0
                    v14: f32 = const -0.0
                    yield [v12, v13, v14]
                } {
                    v15: u1 = gt v7, v2
                    v16: f32, v17: f32 = if v15 {
                        v18: f32 = neg v2
                        v19: f32 = const -0.0
                        yield [v18, v19]
                    } {
                        yield [v7, v7]
                    }
                    yield [v7, v16, v17]
                }
                v20: f32 = load v3
                v21: f32 = add v20, v9
                store v3, v21
                v22: f32 = load v3
                v23: f32 = add v22, v10
                store v3, v23
                v24: f32 = load v3
                v25: f32 = add v24, v11
                store v3, v25
                yield []
            }
            v26: f32 = load v3
            v27: ref<f32> = field_at @t, []
            v28: f32 = atomic_add v27, v26
            yield []
        }
        yield []
    }
    ");
}

#[test]
fn a_division_in_a_branch_of_a_branch_stays_there() {
    let body = |op: &str| {
        format!(
            "c: u1 = gt v, zero
            t: f32 = if c {{
                m: f32 = mul v, v
                d: u1 = gt m, v
                r: f32 = if d {{ w: f32 = {op} m, v  u: f32 = add s, w  yield [u] }} {{ yield [s] }}
                yield [r]
            }} {{ yield [s] }}
            yield [t]"
        )
    };
    let run = |op| looped("f32", "0.0", &body(op));
    let behind = |text: &str| {
        let body = text.trim_end_matches('}');
        body[body.rfind('}').expect("a branch")..].contains("add")
    };
    assert!(behind(&run("mul")));
    assert!(!behind(&run("div")) && run("div").contains("add"));
}
