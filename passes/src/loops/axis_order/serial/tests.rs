use aerogel_ir::FastMath;

use crate::testing::{after, check_pass};

/// A nest whose inner loop goes down the columns of two fields.
fn nest(level: FastMath, from: &str, to: &str) -> String {
    let text = format!(
        "tree0 {{ dense i:32 j:64 {{ place x: f32 place y: f32 }} }}
        field @x: f32 = tree0 [S2]
        field @y: f32 = tree0 [S3]
        func @f(n: i32, w: i32) {{
            zero: i32 = const 0
            one: i32 = const 1
            m: i32 = const 32
            l: i32 = const 63
            for one, l, one, [] (j: i32) {{
                jp: i32 = add j, one
                jm: i32 = sub j, one
                for one, m, one, [] (i: i32) {{
                    im: i32 = sub i, one
                    p: ref<f32> = field_at {from}
                    a: f32 = load p
                    q: ref<f32> = field_at {to}
                    store q, a
                    yield []
                }}
                yield []
            }}
            yield []
        }}"
    );
    after(&["axis_order"], &text, level)
}

#[test]
fn a_copy() {
    insta::assert_snapshot!(nest(FastMath::Off, "@x, [i, jp]", "@y, [i, j]"), @"
    func @f(v0: i32, v1: i32) {
        v2: i32 = const 0
        v3: i32 = const 1
        v4: i32 = const 32
        v5: i32 = const 63
        for v3, v4, v3, [] (v6: i32) {
            for v3, v5, v3, [] (v7: i32) {
                v8: i32 = add v7, v3
                v9: i32 = sub v7, v3
                v10: i32 = sub v6, v3
                v11: ref<f32> = field_at @x, [v6, v8]
                v12: f32 = load v11
                v13: ref<f32> = field_at @y, [v6, v7]
                store v13, v12
                yield []
            }
            yield []
        }
        yield []
    }
    ");
}

#[test]
fn dependences() {
    let is_permuted = |from: &str, to: &str| {
        let text = nest(FastMath::Off, from, to);
        let first = text.lines().position(|line| line.contains("for "));
        let outer = text.lines().nth(first.expect("a loop")).expect("a line");
        !outer.contains("for v3, v5")
    };
    for (from, to) in [
        ("@x, [im, j]", "@x, [i, j]"),
        ("@x, [i, jm]", "@x, [i, j]"),
        ("@x, [im, jm]", "@x, [i, j]"),
        ("@x, [i, j]", "@x, [im, jm]"),
        ("@x, [i, zero]", "@y, [i, j]"),
        ("@x, [i, w]", "@y, [i, j]"),
    ] {
        assert!(is_permuted(from, to), "{from} {to}");
    }
    // What one of these writes, the other one reads in an iteration that would come before it; `w` may be any column.
    for (from, to) in [
        ("@x, [im, jp]", "@x, [i, j]"),
        ("@x, [i, j]", "@x, [im, jp]"),
        ("@x, [i, w]", "@x, [im, j]"),
        ("@x, [j, i]", "@x, [i, j]"),
    ] {
        assert!(!is_permuted(from, to), "{from} {to}");
    }
}

#[test]
fn a_nest_in_a_loop() {
    check_pass!("axis_order", "
        tree0 { dense i:32 j:64 { place x: f32 place y: f32 } }
        field @x: f32 = tree0 [S2]
        field @y: f32 = tree0 [S3]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 4
            parallel [v0], [v1] serial (t: i32) {
                v2: i32 = const 64
                v3: i32 = const 1
                for v0, v2, v3, [] (j: i32) {
                    v4: i32 = const 32
                    for v0, v4, v3, [] (i: i32) {
                        p: ref<f32> = field_at @x, [i, j]
                        a: f32 = load p
                        q: ref<f32> = field_at @y, [i, j]
                        b: f32 = load q
                        c: f32 = add a, b
                        store q, c
                        yield []
                    }
                    yield []
                }
                yield []
            }
            return []
        }", @"
    kernel @k() {
        v0: i32 = const 0
        v1: i32 = const 4
        v2: i32 = const 32
        v3: i32 = const 1
        v4: i32 = const 64
        v5: i32 = const 1
        parallel [v0], [v2] serial (v6: i32) {
            for v0, v1, v3, [] (v7: i32) {
                for v0, v4, v5, [] (v8: i32) {
                    v9: i32 = const 64
                    v10: i32 = const 1
                    v11: i32 = const 32
                    v12: ref<f32> = field_at @x, [v6, v8]
                    v13: f32 = load v12
                    v14: ref<f32> = field_at @y, [v6, v8]
                    v15: f32 = load v14
                    v16: f32 = add v13, v15
                    store v14, v16
                    yield []
                }
                yield []
            }
            yield []
        }
        return []
    }
    ");
}

#[test]
fn a_loop_over_time_stays_outside() {
    check_pass!("axis_order", "
        tree0 { dense i:32 j:64 { place x: f32 } }
        field @x: f32 = tree0 [S2]
        func @f() {
            zero: i32 = const 0
            one: i32 = const 1
            n: i32 = const 32
            m: i32 = const 64
            for zero, m, one, [] (t: i32) {
                for zero, n, one, [] (i: i32) {
                    for zero, m, one, [] (j: i32) {
                        p: ref<f32> = field_at @x, [i, j]
                        a: f32 = load p
                        b: f32 = add a, a
                        store p, b
                        yield []
                    }
                    yield []
                }
                yield []
            }
            yield []
        }", @"
    func @f() {
        v0: i32 = const 0
        v1: i32 = const 1
        v2: i32 = const 32
        v3: i32 = const 64
        for v0, v3, v1, [] (v4: i32) {
            for v0, v2, v1, [] (v5: i32) {
                for v0, v3, v1, [] (v6: i32) {
                    v7: ref<f32> = field_at @x, [v5, v6]
                    v8: f32 = load v7
                    v9: f32 = add v8, v8
                    store v7, v9
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

/// A sum over all elements, column by column.
fn sum(level: FastMath, step: &str) -> String {
    let text = format!(
        "tree0 {{ dense i:32 j:64 {{ place x: f32 }} }}
        field @x: f32 = tree0 [S2]
        func @f() -> f32 {{
            zero: i32 = const 0
            one: i32 = const 1
            m: i32 = const 32
            l: i32 = const 64
            start: f32 = const 0.0
            a: f32 = for zero, l, one, [start] (j: i32, s: f32) {{
                b: f32 = for zero, m, one, [s] (i: i32, t: f32) {{
                    p: ref<f32> = field_at @x, [i, j]
                    v: f32 = load p
                    {step}
                    yield [u]
                }}
                yield [b]
            }}
            yield [a]
        }}"
    );
    after(&["axis_order"], &text, level)
}

#[test]
fn sums() {
    let step = "u: f32 = sub t, v";
    insta::assert_snapshot!(sum(FastMath::Accumulations, step), @"
    func @f() -> f32 {
        v0: i32 = const 0
        v1: i32 = const 1
        v2: i32 = const 32
        v3: i32 = const 64
        v4: f32 = const 0.0
        v5: f32 = for v0, v2, v1, [v4] (v6: i32, v7: f32) {
            v8: f32 = for v0, v3, v1, [v7] (v9: i32, v10: f32) {
                v11: ref<f32> = field_at @x, [v6, v9]
                v12: f32 = load v11
                v13: f32 = sub v10, v12
                yield [v13]
            }
            yield [v8]
        }
        yield [v5]
    }
    ");
    let is_permuted = |level, step: &str| {
        let text = sum(level, step);
        let outer = text.lines().find(|line| line.contains("for "));
        outer.expect("a loop").contains("for v0, v2")
    };
    assert!(is_permuted(FastMath::Accumulations, "u: f32 = max t, v"));
    assert!(!is_permuted(FastMath::Off, step));
    for step in [
        "u: f32 = sub v, t",
        "u: f32 = mul t, v",
        "w: f32 = add t, v\nu: f32 = add t, w",
        "w: f32 = add t, v\nu: f32 = min w, v",
    ] {
        assert!(!is_permuted(FastMath::Full, step), "{step}");
    }
}
