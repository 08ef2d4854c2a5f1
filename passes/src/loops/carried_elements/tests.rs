use aerogel_ir::FastMath;

use crate::testing::after;

const HEAD: &str = "
    tree0 { dense i:8 j:8 { place a: f32 } }
    tree1 { dense i:8 { place b: f32 } }
    field @a: f32 = tree0 [S2]
    field @b: f32 = tree1 [S2]
";

/// A kernel that loops over the rows of `a`, with `p` the element of `b` of the row.
fn rows(row: &str) -> String {
    let text = format!(
        "{HEAD} kernel @k(n: i32) {{
            k0: i32 = const 0
            k1: i32 = const 1
            k8: i32 = const 8
            zero: f32 = const 0.0
            n: i32 = arg a0
            parallel [k0], [k8] (i: i32) {{
                p: ref<f32> = field_at @b, [i]
                {row}
                yield []
            }}
            return []
        }}"
    );
    let text = after(&["carried_elements"], &text, FastMath::Off);
    let begin = text.find("parallel").expect("a loop");
    text[begin..].to_owned()
}

/// A sum over a row.
fn sum(end: &str, guard: &str) -> String {
    format!(
        "for k0, {end}, k1, [] (j: i32) {{
            q: ref<f32> = field_at @a, [i, j]
            x: f32 = load q
            {guard}
            y: f32 = load p
            z: f32 = add y, x
            store p, z
            yield []
        }}"
    )
}

#[test]
fn sums_in_memory() {
    insta::assert_snapshot!(rows(&sum("k8", "")), @"
    parallel [v0], [v2] (v5: i32) {
            v6: ref<f32> = field_at @b, [v5]
            v7: f32 = const 0.0
            v8: f32 = load v6
            v9: f32 = for v0, v2, v1, [v8] (v10: i32, v11: f32) {
                v12: ref<f32> = field_at @a, [v5, v10]
                v13: f32 = load v12
                v14: f32 = add v11, v13
                yield [v14]
            }
            store v6, v9
            yield []
        }
        return []
    }
    ");
}

#[test]
fn cleared_sums() {
    insta::assert_snapshot!(rows(&format!("store p, zero {}", sum("n", ""))), @"
    parallel [v0], [v2] (v5: i32) {
            v6: ref<f32> = field_at @b, [v5]
            v7: f32 = const 0.0
            v8: f32 = for v0, v4, v1, [v3] (v9: i32, v10: f32) {
                v11: ref<f32> = field_at @a, [v5, v9]
                v12: f32 = load v11
                v13: f32 = add v10, v12
                yield [v13]
            }
            store v6, v8
            yield []
        }
        return []
    }
    ");
}

#[test]
fn loops_that_may_not_run() {
    insta::assert_snapshot!(rows(&sum("n", "")), @"
    parallel [v0], [v2] (v5: i32) {
            v6: ref<f32> = field_at @b, [v5]
            v7: u1 = lt v0, v4
            v8: f32 = const 0.0
            v9: f32 = if v7 {
                v10: f32 = load v6
                yield [v10]
            } {
                v11: f32 = const 0.0
                yield [v11]
            }
            v12: f32 = for v0, v4, v1, [v9] (v13: i32, v14: f32) {
                v15: ref<f32> = field_at @a, [v5, v13]
                v16: f32 = load v15
                v17: f32 = add v14, v16
                yield [v17]
            }
            if v7 {
                store v6, v12
                yield []
            } {
                yield []
            }
            yield []
        }
        return []
    }
    ");
}

#[test]
fn nests() {
    let nest = format!(
        "store p, zero for k0, n, k1, [] (k: i32) {{ {} yield [] }}",
        sum("n", "")
    );
    insta::assert_snapshot!(rows(&nest), @"
    parallel [v0], [v2] (v5: i32) {
            v6: ref<f32> = field_at @b, [v5]
            v7: f32 = const 0.0
            v8: f32 = for v0, v4, v1, [v3] (v9: i32, v10: f32) {
                v11: u1 = lt v0, v4
                v12: f32 = const 0.0
                v13: f32 = if v11 {
                    yield [v10]
                } {
                    v14: f32 = const 0.0
                    yield [v14]
                }
                v15: f32 = for v0, v4, v1, [v13] (v16: i32, v17: f32) {
                    v18: ref<f32> = field_at @a, [v5, v16]
                    v19: f32 = load v18
                    v20: f32 = add v17, v19
                    yield [v20]
                }
                v21: f32 = if v11 {
                    yield [v15]
                } {
                    yield [v10]
                }
                yield [v21]
            }
            store v6, v8
            yield []
        }
        return []
    }
    ");
}

#[test]
fn conditions() {
    let guarded = "for k0, n, k1, [] (j: i32) {
        q: ref<f32> = field_at @a, [i, j]
        x: f32 = load q
        c: u1 = gt x, zero
        if c {
            y: f32 = load p
            z: f32 = add y, x
            store p, z
            yield []
        } {
            yield []
        }
        yield []
    }";
    // It is written in any case; it may not be written at all, when another iteration may write it.
    let cleared = rows(&format!("store p, zero {guarded}"));
    assert!(!after_loop(&cleared).is_empty(), "{cleared}");
    let other = rows(guarded);
    assert!(after_loop(&other).is_empty(), "{other}");
}

/// The store of what a loop has left.
fn after_loop(text: &str) -> String {
    let lines = text.lines().rev();
    let mut lines = lines.skip_while(|line| !line.starts_with("        yield"));
    lines.next();
    let line = lines.next().expect("a line").trim();
    line.strip_prefix("store").unwrap_or_default().to_owned()
}

#[test]
fn what_stays_in_memory() {
    for row in [
        // Another element of the field is read; the loop may be left before the store.
        sum("k8", "o: ref<f32> = field_at @b, [j] w: f32 = load o"),
        sum("k8", "c: u1 = gt x, zero if c { break [] } { yield [] }"),
        // It is an atomic; another element is written in each iteration.
        sum("k8", "o: f32 = atomic_add p, x"),
        "for k0, k8, k1, [] (j: i32) {
            o: ref<f32> = field_at @b, [j]
            y: f32 = load o
            z: f32 = add y, y
            store o, z
            yield []
        }"
        .to_owned(),
    ] {
        let text = rows(&row);
        assert!(after_loop(&text).is_empty(), "{text}");
    }
}
