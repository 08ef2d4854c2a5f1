use aerogel_ir::FastMath;

use crate::testing::{after, check_pass};

#[test]
fn a_short_loop() {
    check_pass!("counted_whiles", "
        func @f(x: i32) -> i32, i32 {
            zero: i32 = const 0
            one: i32 = const 1
            n: i32 = const 9
            a: i32, b: i32 = while [zero, x] (i: i32, s: i32) {
                c: u1 = lt i, n
                yield [c]
            } (j: i32, t: i32) {
                u: i32 = mul t, j
                k: i32 = add j, one
                d: u1 = eq u, one
                if d { continue [k, one] } { yield [] }
                w: i32 = add u, k
                yield [k, w]
            }
            yield [a, b]
        }", @"
    func @f(v0: i32) -> i32, i32 {
        v1: i32 = const 0
        v2: i32 = const 1
        v3: i32 = const 9
        v4: i32 = const 1
        v5: i32, v6: i32 = for v1, v3, v4, [v1, v0] (v7: i32, v8: i32, v9: i32) {
            v10: i32 = mul v9, v7
            v11: i32 = add v7, v2
            v12: u1 = eq v10, v2
            if v12 {
                continue [v11, v2]
            } {
                yield []
            }
            v13: i32 = add v10, v11
            yield [v11, v13]
        }
        yield [v5, v6]
    }
    ");
}

#[test]
fn a_loop_of_unknown_length() {
    check_pass!("counted_whiles", "
        func @f(n: i32, x: i32) -> i32, i32 {
            two: i32 = const -1
            p: ref<i32> = local
            a: i32, b: i32 = while [x, n] (i: i32, s: i32) {
                c: u1 = gt i, n
                yield [c]
            } (j: i32, t: i32) {
                store p, j
                l: i32 = load p
                u: i32 = add t, l
                k: i32 = add j, two
                yield [k, u]
            }
            yield [a, b]
        }", @"
    func @f(v0: i32, v1: i32) -> i32, i32 {
        v2: i32 = const -1
        v3: ref<i32> = local
        v4: i32 = const -1
        v5: u1 = const 1
        v6: i32, v7: i32 = while [v1, v0] (v8: i32, v9: i32) {
            v10: u1 = gt v8, v0
            yield [v10]
        } (v11: i32, v12: i32) {
            v13: i32 = const 0
            v14: i32 = const 65536
            v15: i32 = const -65536
            v16: i32 = sub v11, v0
            v17: u1 = ge v16, v13
            v18: u1 = le v16, v14
            v19: u1 = and v17, v18
            v20: i32 = add v11, v15
            v21: i32 = select v19, v0, v20
            v22: i32, v23: i32 = for v11, v21, v4, [v11, v12] (v24: i32, v25: i32, v26: i32) {
                store v3, v24
                v27: i32 = load v3
                v28: i32 = add v26, v27
                v29: i32 = add v24, v2
                yield [v29, v28]
            }
            yield [v22, v23]
        }
        yield [v6, v7]
    }
    ");
}

/// A loop that counts from `x` while a comparison holds.
fn counting(compare: &str, bound: &str, step: &str) -> String {
    let text = format!(
        "func @f(x: i32, m: i32, n: i32) -> i32, i32 {{
            zero: i32 = const 0
            one: i32 = const 1
            bound: i32 = {bound}
            a: i32, b: i32 = while [x, zero] (i: i32, s: i32) {{
                c: u1 = {compare}
                yield [c]
            }} (j: i32, t: i32) {{
                d: i32 = const {step}
                k: i32 = add j, d
                p: ref<i32> = local
                store p, j
                l: i32 = load p
                w: i32 = add t, l
                yield [k, w]
            }}
            yield [a, b]
        }}"
    );
    after(&["counted_whiles"], &text, FastMath::Off)
}

#[test]
fn comparisons() {
    let counted = [
        ("lt i, bound", "add n, m", "1"),
        ("gt bound, i", "add n, m", "1"),
        ("gt i, bound", "add n, m", "-1"),
        ("le i, bound", "const 5", "1"),
        ("ge i, bound", "const -7", "-2"),
        ("lt i, bound", "const 9", "4"),
    ];
    for (compare, bound, step) in counted {
        let text = counting(compare, bound, step);
        assert!(text.contains(" for "), "{compare} {bound} {step}\n{text}");
    }
}

#[test]
fn other_loops_stay() {
    // They count away from the bound, or may wrap around; they end unpredictably, or the bound changes.
    for (compare, bound, step) in [
        ("ne i, bound", "add n, m", "1"),
        ("lt s, i", "const 5", "1"),
        ("gt i, bound", "const 1", "1"),
        ("le i, bound", "add n, m", "1"),
        ("lt i, bound", "add n, m", "2"),
        ("le i, bound", "const 2147483647", "1"),
        ("ge i, bound", "const -2147483648", "-1"),
    ] {
        assert!(
            !is_counted(compare, bound, step),
            "{compare} {bound} {step}"
        );
    }
    assert!(is_counted("le i, bound", "const 2147483646", "1"));
}

/// Whether such a loop becomes one that counts. (It is not run: some would not end.)
fn is_counted(compare: &str, bound: &str, step: &str) -> bool {
    let text = format!(
        "func @f(x: i32, m: i32, n: i32) -> i32 {{
            zero: i32 = const 0
            bound: i32 = {bound}
            a: i32, b: i32 = while [x, zero] (i: i32, s: i32) {{
                c: u1 = {compare}
                yield [c]
            }} (j: i32, t: i32) {{
                d: i32 = const {step}
                p: ref<i32> = local
                store p, j
                k: i32 = add j, d
                yield [k, j]
            }}
            yield [a]
        }}"
    );
    let mut module = aerogel_ir::parse_module(&text).expect("it parses");
    let id = module.funcs.keys().next().expect("a function");
    let env = module.env.clone();
    let cx = crate::PassCx {
        env: &env,
        funcs: &Default::default(),
        lengths: &Default::default(),
        exchanged: &Default::default(),
        options: Default::default(),
    };
    super::run(&mut module.funcs[id], &cx)
}

/// A loop over the elements of a row.
fn row(condition: &str, before: &str, after: &str) -> String {
    format!(
        "tree0 {{ dense i:64 {{ place x: f32 }} }}
        field @x: f32 = tree0 [S2]
        func @f(n: i32) -> f32, i32 {{
            zero: i32 = const 0
            one: i32 = const 1
            nine: i32 = const 9
            start: f32 = const 0.0
            yes: u1 = const 1
            a: f32, b: i32 = while [start, zero] (s: f32, i: i32) {{
                {condition}
            }} (t: f32, j: i32) {{
                {before}
                p: ref<f32> = field_at @x, [j]
                v: f32 = load p
                u: f32 = add t, v
                k: i32 = add j, one
                {after}
                yield [u, k]
            }}
            yield [a, b]
        }}"
    )
}

#[test]
fn a_test_at_the_beginning() {
    let before = "c: u1 = ge j, n
                if c { break [t, j] } { yield [] }";
    let text = row("yield [yes]", before, "");
    insta::assert_snapshot!(after(&["counted_whiles"], &text, FastMath::Off), @"
    func @f(v0: i32) -> f32, i32 {
        v1: i32 = const 0
        v2: i32 = const 1
        v3: i32 = const 9
        v4: f32 = const 0.0
        v5: u1 = const 1
        v6: i32 = const 1
        v7: u1 = const 1
        v8: f32, v9: i32 = while [v4, v1] (v10: f32, v11: i32) {
            v12: u1 = lt v11, v0
            yield [v12]
        } (v13: f32, v14: i32) {
            v15: i32 = const 0
            v16: i32 = const 65536
            v17: i32 = const 65536
            v18: i32 = sub v0, v14
            v19: u1 = ge v18, v15
            v20: u1 = le v18, v16
            v21: u1 = and v19, v20
            v22: i32 = add v14, v17
            v23: i32 = select v21, v0, v22
            v24: f32, v25: i32 = for v14, v23, v6, [v13, v14] (v26: i32, v27: f32, v28: i32) {
                v29: u1 = ge v26, v0
                v30: ref<f32> = field_at @x, [v26]
                v31: f32 = load v30
                v32: f32 = add v27, v31
                v33: i32 = add v26, v2
                yield [v32, v33]
            }
            yield [v24, v25]
        }
        yield [v8, v9]
    }
    ");
}

#[test]
fn a_test_at_the_end() {
    let last = "c: u1 = lt k, n
                if c { yield [] } { break [u, k] }";
    let text = row("yield [yes]", "", last);
    insta::assert_snapshot!(after(&["counted_whiles"], &text, FastMath::Off), @"
    func @f(v0: i32) -> f32, i32 {
        v1: i32 = const 0
        v2: i32 = const 1
        v3: i32 = const 9
        v4: f32 = const 0.0
        v5: u1 = const 1
        v6: i32 = const 1
        v7: i32 = add v1, v6
        v8: i32 = max v0, v7
        v9: u1 = const 1
        v10: f32, v11: i32 = while [v4, v1] (v12: f32, v13: i32) {
            v14: u1 = lt v13, v8
            yield [v14]
        } (v15: f32, v16: i32) {
            v17: i32 = const 0
            v18: i32 = const 65536
            v19: i32 = const 65536
            v20: i32 = sub v8, v16
            v21: u1 = ge v20, v17
            v22: u1 = le v20, v18
            v23: u1 = and v21, v22
            v24: i32 = add v16, v19
            v25: i32 = select v23, v8, v24
            v26: f32, v27: i32 = for v16, v25, v6, [v15, v16] (v28: i32, v29: f32, v30: i32) {
                v31: ref<f32> = field_at @x, [v28]
                v32: f32 = load v31
                v33: f32 = add v29, v32
                v34: i32 = add v28, v2
                v35: u1 = lt v34, v0
                yield [v33, v34]
            }
            yield [v26, v27]
        }
        yield [v10, v11]
    }
    ");
}

#[test]
fn a_condition_of_two_parts() {
    let condition = "c: u1 = lt i, n
                d: u1 = if c {
                    q: ref<f32> = field_at @x, [i]
                    w: f32 = load q
                    e: u1 = gt w, start
                    yield [e]
                } { yield [c] }
                yield [d]";
    let text = row(condition, "", "");
    insta::assert_snapshot!(after(&["counted_whiles"], &text, FastMath::Off), @"
    func @f(v0: i32) -> f32, i32 {
        v1: i32 = const 0
        v2: i32 = const 1
        v3: i32 = const 9
        v4: f32 = const 0.0
        v5: u1 = const 1
        v6: i32 = const 1
        v7: u1 = const 1
        v8: f32, v9: i32, v10: u1 = while [v4, v1, v7] (v11: f32, v12: i32, v13: u1) {
            v14: u1 = lt v12, v0
            v15: u1 = and v14, v13
            yield [v15]
        } (v16: f32, v17: i32, v18: u1) {
            v19: i32 = const 0
            v20: i32 = const 65536
            v21: i32 = const 65536
            v22: i32 = sub v0, v17
            v23: u1 = ge v22, v19
            v24: u1 = le v22, v20
            v25: u1 = and v23, v24
            v26: i32 = add v17, v21
            v27: i32 = select v25, v0, v26
            v28: f32, v29: i32, v30: u1 = for v17, v27, v6, [v16, v17, v18] (v31: i32, v32: f32, v33: i32, v34: u1) {
                v35: u1 = const 0
                v36: u1 = lt v31, v0
                v37: ref<f32> = field_at @x, [v31]
                v38: f32 = load v37
                v39: u1 = gt v38, v4
                if v39 {
                    yield []
                } {
                    break [v32, v31, v35]
                }
                v40: ref<f32> = field_at @x, [v31]
                v41: f32 = load v40
                v42: f32 = add v32, v41
                v43: i32 = add v31, v2
                yield [v42, v43, v7]
            }
            yield [v28, v29, v30]
        }
        yield [v8, v9]
    }
    ");
}

#[test]
fn a_short_loop_that_breaks() {
    let condition = "c: u1 = ne i, nine
                yield [c]";
    let before = "c: u1 = lt t, start
                if c { break [start, j] } { yield [] }";
    let text = row(condition, before, "");
    insta::assert_snapshot!(after(&["counted_whiles"], &text, FastMath::Off), @"
    func @f(v0: i32) -> f32, i32 {
        v1: i32 = const 0
        v2: i32 = const 1
        v3: i32 = const 9
        v4: f32 = const 0.0
        v5: u1 = const 1
        v6: i32 = const 1
        v7: f32, v8: i32 = for v1, v3, v6, [v4, v1] (v9: i32, v10: f32, v11: i32) {
            v12: u1 = lt v10, v4
            if v12 {
                break [v4, v9]
            } {
                yield []
            }
            v13: ref<f32> = field_at @x, [v9]
            v14: f32 = load v13
            v15: f32 = add v10, v14
            v16: i32 = add v9, v2
            yield [v15, v16]
        }
        yield [v7, v8]
    }
    ");
}

#[test]
fn tests_that_stay() {
    let first = |cond: &str, values: &str| {
        format!("c: u1 = {cond}\nif c {{ break [{values}] }} {{ yield [] }}")
    };
    let continues = "e: u1 = eq t, start\nif e { continue [t, m] } { yield [] }";
    let cases = [
        // It leaves with other values; it counts past the bound; a `continue` skips the test.
        row("yield [yes]", &first("ge j, n", "start, j"), ""),
        row("yield [yes]", &first("eq j, n", "t, j"), ""),
        row(
            "yield [yes]",
            &format!("m: i32 = add j, one\n{continues}"),
            &first("ge k, n", "u, k"),
        ),
        row("yield [yes]", "", &first("ge j, n", "u, k")),
    ];
    for text in cases {
        let made = after(&["counted_whiles"], &text, FastMath::Off);
        assert!(!made.contains(" for "), "{made}");
    }
}
