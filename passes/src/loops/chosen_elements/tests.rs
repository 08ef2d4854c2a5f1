use aerogel_ir::FastMath;

use crate::testing::after;

/// A loop over rows in which another one finds an index.
fn rows(row: &str) -> String {
    let text = format!(
        "tree0 {{ dense i:8 j:8 {{ place a: f32 }} }}
        tree1 {{ dense i:8 {{ place w: i32 }} }}
        field @a: f32 = tree0 [S2]
        field @w: i32 = tree1 [S2]
        kernel @k(n: i32) {{
            k0: i32 = const 0
            k1: i32 = const 1
            k8: i32 = const 8
            n: i32 = arg a0
            parallel [k0], [k8] (i: i32) {{
                p: ref<i32> = field_at @w, [i]
                {row}
                store p, best
                yield []
            }}
            return []
        }}"
    );
    let text = after(&["chosen_elements"], &text, FastMath::Off);
    let begin = text.find("parallel").expect("a loop");
    text[begin..].to_owned()
}

/// The index of the greatest element, with what comes of it and the comparison.
fn greatest(end: &str, choice: &str) -> String {
    format!(
        "best: i32 = for k1, {end}, k1, [k0] (j: i32, b: i32) {{
            q: ref<f32> = field_at @a, [i, j]
            x: f32 = load q
            r: ref<f32> = field_at @a, [i, b]
            y: f32 = load r
            c: u1 = gt x, y
            {choice}
            yield [z]
        }}"
    )
}

#[test]
fn selects() {
    let row = greatest("k8", "z: i32 = select c, j, b");
    insta::assert_snapshot!(rows(&row), @"
    parallel [v0], [v2] (v4: i32) {
            v5: ref<i32> = field_at @w, [v4]
            v6: ref<f32> = field_at @a, [v4, v0]
            v7: f32 = load v6
            v8: i32, v9: f32 = for v1, v2, v1, [v0, v7] (v10: i32, v11: i32, v12: f32) {
                v13: ref<f32> = field_at @a, [v4, v10]
                v14: f32 = load v13
                v15: ref<f32> = field_at @a, [v4, v11]
                v16: f32 = load v15
                v17: u1 = gt v14, v12
                v18: i32 = select v17, v10, v11
                v19: f32 = select v17, v14, v12
                yield [v18, v19]
            }
            store v5, v8
            yield []
        }
        return []
    }
    ");
}

#[test]
fn branches() {
    let row = greatest("n", "z: i32 = if c { yield [j] } { yield [b] }");
    insta::assert_snapshot!(rows(&row), @"
    parallel [v0], [v2] (v4: i32) {
            v5: ref<i32> = field_at @w, [v4]
            v6: u1 = lt v1, v3
            v7: f32 = if v6 {
                v8: ref<f32> = field_at @a, [v4, v0]
                v9: f32 = load v8
                yield [v9]
            } {
                v10: f32 = const 0.0
                yield [v10]
            }
            v11: i32, v12: f32 = for v1, v3, v1, [v0, v7] (v13: i32, v14: i32, v15: f32) {
                v16: ref<f32> = field_at @a, [v4, v13]
                v17: f32 = load v16
                v18: ref<f32> = field_at @a, [v4, v14]
                v19: f32 = load v18
                v20: u1 = gt v17, v15
                v21: i32, v22: f32 = if v20 {
                    yield [v13, v17]
                } {
                    yield [v14, v15]
                }
                yield [v21, v22]
            }
            store v5, v11
            yield []
        }
        return []
    }
    ");
}

#[test]
fn two_indices() {
    let rows = rows(
        "bi: i32, best: i32 = for k0, k8, k1, [k0, k0] (k: i32, bk: i32, bj: i32) {
            ck: i32, cj: i32 = for k0, k8, k1, [bk, bj] (j: i32, dk: i32, dj: i32) {
                q: ref<f32> = field_at @a, [k, j]
                x: f32 = load q
                r: ref<f32> = field_at @a, [dk, dj]
                y: f32 = load r
                c: u1 = lt x, y
                zk: i32, zj: i32 = if c { yield [k, j] } { yield [dk, dj] }
                yield [zk, zj]
            }
            yield [ck, cj]
        }",
    );
    insta::assert_snapshot!(rows, @"
    parallel [v0], [v2] (v4: i32) {
            v5: ref<i32> = field_at @w, [v4]
            v6: ref<f32> = field_at @a, [v0, v0]
            v7: f32 = load v6
            v8: i32, v9: i32, v10: f32 = for v0, v2, v1, [v0, v0, v7] (v11: i32, v12: i32, v13: i32, v14: f32) {
                v15: ref<f32> = field_at @a, [v12, v13]
                v16: f32 = load v15
                v17: i32, v18: i32, v19: f32 = for v0, v2, v1, [v12, v13, v14] (v20: i32, v21: i32, v22: i32, v23: f32) {
                    v24: ref<f32> = field_at @a, [v11, v20]
                    v25: f32 = load v24
                    v26: ref<f32> = field_at @a, [v21, v22]
                    v27: f32 = load v26
                    v28: u1 = lt v25, v23
                    v29: i32, v30: i32, v31: f32 = if v28 {
                        yield [v11, v20, v25]
                    } {
                        yield [v21, v22, v23]
                    }
                    yield [v29, v30, v31]
                }
                yield [v17, v18, v19]
            }
            store v5, v9
            yield []
        }
        return []
    }
    ");
}

#[test]
fn what_is_not_loaded_yet() {
    // It exists, so that it may be loaded where it is chosen.
    let row = greatest(
        "k8",
        "z: i32 = if c { m: i32 = sub j, k1 yield [m] } { yield [b] }",
    );
    insta::assert_snapshot!(rows(&row), @"
    parallel [v0], [v2] (v4: i32) {
            v5: ref<i32> = field_at @w, [v4]
            v6: ref<f32> = field_at @a, [v4, v0]
            v7: f32 = load v6
            v8: i32, v9: f32 = for v1, v2, v1, [v0, v7] (v10: i32, v11: i32, v12: f32) {
                v13: ref<f32> = field_at @a, [v4, v10]
                v14: f32 = load v13
                v15: ref<f32> = field_at @a, [v4, v11]
                v16: f32 = load v15
                v17: u1 = gt v14, v12
                v18: i32, v19: f32 = if v17 {
                    v20: i32 = sub v10, v1
                    v21: ref<f32> = field_at @a, [v4, v20]
                    v22: f32 = load v21
                    yield [v20, v22]
                } {
                    yield [v11, v12]
                }
                yield [v18, v19]
            }
            store v5, v8
            yield []
        }
        return []
    }
    ");
}

#[test]
fn others_stay() {
    for row in [
        // What is loaded next is unknown; the field is written; the loop may be left; the index counts.
        greatest(
            "n",
            "t: i32 = add j, k1 z: i32 = if c { yield [t] } { yield [b] }",
        ),
        greatest("k8", "store q, y z: i32 = select c, j, b"),
        greatest(
            "k8",
            "z: i32 = select c, j, b if c { break [z] } { yield [] }",
        ),
        greatest("k8", "z: i32 = add b, k1"),
    ] {
        let text = rows(&row);
        // The loop carries nothing but the index.
        assert!(text.contains(": i32, v8: i32) {"), "{text}");
    }
}
