use aerogel_ir::FastMath;

use crate::testing::{after, check_pass};

#[test]
fn columns_become_rows() {
    check_pass!("axis_order", "
        tree0 { dense i:32 j:64 { place x: i32 place y: i32 } }
        field @x: i32 = tree0 [S2]
        field @y: i32 = tree0 [S3]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 64
            v2: i32 = const 32
            parallel [v0, v0], [v1, v2] (v3: i32, v4: i32) {
                v5: ref<i32> = field_at @x, [v4, v3]
                v6: i32 = load v5
                v7: ref<i32> = field_at @y, [v4, v3]
                store v7, v6
                yield []
            }
            return []
        }", @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 64
            v2: i32 = const 32
            parallel [v0, v0], [v2, v1] (v3: i32, v4: i32) {
                v5: ref<i32> = field_at @x, [v3, v4]
                v6: i32 = load v5
                v7: ref<i32> = field_at @y, [v3, v4]
                store v7, v6
                yield []
            }
            return []
        }
        ");
}

#[test]
fn loops_inside() {
    check_pass!("axis_order", "
        tree0 { dense i:32 j:64 { place x: i32 place y: i32 } }
        field @x: i32 = tree0 [S2]
        field @y: i32 = tree0 [S3]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 64
            v2: i32 = const 32
            v3: i32 = const 1
            parallel [v0], [v1] (v4: i32) {
                v5: i32 = add v4, v3
                for v0, v2, v3, [] (v6: i32) {
                    v7: ref<i32> = field_at @x, [v6, v5]
                    v8: i32 = load v7
                    v9: ref<i32> = field_at @y, [v6, v4]
                    store v9, v8
                    yield []
                }
                yield []
            }
            return []
        }", @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 64
            v2: i32 = const 32
            v3: i32 = const 1
            parallel [v0, v0], [v2, v1] (v4: i32, v5: i32) {
                v6: i32 = add v5, v3
                v7: ref<i32> = field_at @x, [v4, v6]
                v8: i32 = load v7
                v9: ref<i32> = field_at @y, [v4, v5]
                store v9, v8
                yield []
            }
            return []
        }
        ");
}

#[test]
fn loops_with_loops_inside() {
    check_pass!("axis_order", "
        tree0 { dense i:32 j:64 { place x: i32 } }
        field @x: i32 = tree0 [S2]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 32
            v2: i32 = const 64
            v3: i32 = const 1
            parallel [v0], [v1] (v4: i32) {
                for v0, v2, v3, [] (v5: i32) {
                    v6: i32 = for v0, v5, v3, [v4] (v7: i32, v8: i32) {
                        v9: i32 = add v7, v8
                        yield [v9]
                    }
                    v10: ref<i32> = field_at @x, [v4, v5]
                    store v10, v6
                    yield []
                }
                yield []
            }
            return []
        }", @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 32
            v2: i32 = const 64
            v3: i32 = const 1
            parallel [v0, v0], [v1, v2] (v4: i32, v5: i32) {
                v6: i32 = for v0, v5, v3, [v4] (v7: i32, v8: i32) {
                    v9: i32 = add v7, v8
                    yield [v9]
                }
                v10: ref<i32> = field_at @x, [v4, v5]
                store v10, v6
                yield []
            }
            return []
        }
        ");
}

#[test]
fn iterations_that_affect_others_stay() {
    // Each column is swept in order.
    check_pass!("axis_order", "
        tree0 { dense i:32 j:64 { place x: i32 } }
        field @x: i32 = tree0 [S2]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 64
            v2: i32 = const 32
            v3: i32 = const 1
            parallel [v0], [v1] (v4: i32) {
                for v3, v2, v3, [] (v6: i32) {
                    v7: i32 = sub v6, v3
                    v8: ref<i32> = field_at @x, [v7, v4]
                    v9: i32 = load v8
                    v10: ref<i32> = field_at @x, [v6, v4]
                    store v10, v9
                    yield []
                }
                yield []
            }
            return []
        }", @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 64
            v2: i32 = const 32
            v3: i32 = const 1
            parallel [v0], [v1] (v4: i32) {
                for v3, v2, v3, [] (v5: i32) {
                    v6: i32 = sub v5, v3
                    v7: ref<i32> = field_at @x, [v6, v4]
                    v8: i32 = load v7
                    v9: ref<i32> = field_at @x, [v5, v4]
                    store v9, v8
                    yield []
                }
                yield []
            }
            return []
        }
        ");
}

#[test]
fn elements_of_several_iterations_stay() {
    // The last iteration along `i` decides.
    check_pass!("axis_order", "
        tree0 { dense i:32 j:64 { place x: i32 } dense j:64 { place y: i32 } }
        field @x: i32 = tree0 [S2]
        field @y: i32 = tree0 [S4]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 64
            v2: i32 = const 32
            parallel [v0, v0], [v1, v2] (v3: i32, v4: i32) {
                v5: ref<i32> = field_at @x, [v4, v3]
                v6: i32 = load v5
                v7: ref<i32> = field_at @y, [v3]
                store v7, v6
                yield []
            }
            return []
        }", @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 64
            v2: i32 = const 32
            parallel [v0, v0], [v1, v2] (v3: i32, v4: i32) {
                v5: ref<i32> = field_at @x, [v4, v3]
                v6: i32 = load v5
                v7: ref<i32> = field_at @y, [v3]
                store v7, v6
                yield []
            }
            return []
        }
        ");
}

/// A field of 32 rows of 64, one for each axis, and one of as many columns.
const FIELDS: &str = "
    tree0 { dense i:32 j:64 { place a: f32 } }
    tree1 { dense i:32 { place r: f32 } }
    tree2 { dense j:64 { place c: f32 } }
    tree3 { dense i:64 j:32 { place t: f32 } }
    field @a: f32 = tree0 [S2]
    field @r: f32 = tree1 [S2]
    field @c: f32 = tree2 [S2]
    field @t: f32 = tree3 [S2]
";

/// The loops that are left of a kernel with numbers for the constants 0, 1, 32 and 64.
fn loops(body: &str) -> String {
    let text = format!(
        "{FIELDS} kernel @k() {{
            k0: i32 = const 0
            k1: i32 = const 1
            k32: i32 = const 32
            k64: i32 = const 64
            {body}
            return []
        }}"
    );
    let text = after(&["axis_order"], &text, FastMath::Off);
    let constants = text.find("const 64").expect("a constant") + "const 64".len();
    text[constants..].trim_start().to_owned()
}

#[test]
fn sums_of_rows() {
    let body = "parallel [k0, k0], [k64, k32] (j: i32, i: i32) {
        p: ref<f32> = field_at @a, [i, j]
        x: f32 = load p
        q: ref<f32> = field_at @r, [i]
        o: f32 = atomic_add q, x
        yield []
    }";
    insta::assert_snapshot!(loops(body), @"
    parallel [v0, v0], [v2, v3] (v4: i32, v5: i32) {
            v6: ref<f32> = field_at @a, [v4, v5]
            v7: f32 = load v6
            v8: ref<f32> = field_at @r, [v4]
            v9: f32 = atomic_add v8, v7
            yield []
        }
        return []
    }
    ");
}

#[test]
fn sums_in_nests() {
    let body = "parallel [k0], [k64] (j: i32) {
        for k0, k32, k1, [] (i: i32) {
            p: ref<f32> = field_at @a, [i, j]
            x: f32 = load p
            q: ref<f32> = field_at @r, [i]
            o: f32 = atomic_sub q, x
            yield []
        }
        yield []
    }";
    insta::assert_snapshot!(loops(body), @"
    parallel [v0, v0], [v2, v3] (v4: i32, v5: i32) {
            v6: ref<f32> = field_at @a, [v4, v5]
            v7: f32 = load v6
            v8: ref<f32> = field_at @r, [v4]
            v9: f32 = atomic_sub v8, v7
            yield []
        }
        return []
    }
    ");
}

#[test]
fn three_loops() {
    let body = "parallel [k0], [k64] (j: i32) {
        for k0, k32, k1, [] (k: i32) {
            for k0, k32, k1, [] (i: i32) {
                p: ref<f32> = field_at @a, [i, j]
                x: f32 = load p
                q: ref<f32> = field_at @r, [i]
                o: f32 = atomic_add q, x
                yield []
            }
            yield []
        }
        yield []
    }";
    insta::assert_snapshot!(loops(body), @"
    parallel [v0, v0, v0], [v2, v3, v2] (v4: i32, v5: i32, v6: i32) {
            v7: ref<f32> = field_at @a, [v4, v5]
            v8: f32 = load v7
            v9: ref<f32> = field_at @r, [v4]
            v10: f32 = atomic_add v9, v8
            yield []
        }
        return []
    }
    ");
}

#[test]
fn sums_that_are_read_stay() {
    for body in [
        // The old value is used; another iteration reads; two operations do not commute.
        "q: ref<f32> = field_at @r, [i]  o: f32 = atomic_add q, x  s: ref<f32> = field_at @a, [i, j]  store s, o",
        "q: ref<f32> = field_at @r, [i]  o: f32 = atomic_add q, x  s: ref<f32> = field_at @r, [k0]  y: f32 = load s",
        "q: ref<f32> = field_at @r, [i]  o: f32 = atomic_add q, x  y: f32 = atomic_max q, x",
        "q: ref<f32> = field_at @r, [i]  o: f32 = atomic_mul q, x",
    ] {
        let body = format!(
            "parallel [k0, k0], [k64, k32] (j: i32, i: i32) {{
                p: ref<f32> = field_at @a, [i, j]
                x: f32 = load p
                {body}
                yield []
            }}"
        );
        let text = loops(&body);
        assert!(text.starts_with("parallel [v0, v0], [v3, v2]"), "{text}");
    }
}

#[test]
fn transposed_copies() {
    let copy = |loops: &str| {
        format!(
            "{loops} {{
                p: ref<f32> = field_at @t, [j, i]
                x: f32 = load p
                q: ref<f32> = field_at @a, [i, j]
                store q, x
                yield []
            }}
            yield []
        }}"
        )
    };
    let rows = copy("parallel [k0], [k32] (i: i32) { for k0, k64, k1, [] (j: i32)");
    insta::assert_snapshot!(loops(&rows), @"
    parallel [v0, v0], [v2, v3] (v4: i32, v5: i32) {
            v6: ref<f32> = field_at @t, [v5, v4]
            v7: f32 = load v6
            v8: ref<f32> = field_at @a, [v4, v5]
            store v8, v7
            yield []
        }
        return []
    }
    ");
    // What is written lies side by side.
    let columns = copy("parallel [k0], [k64] (j: i32) { for k0, k32, k1, [] (i: i32)");
    assert_eq!(loops(&columns), loops(&rows));
}
