//! Gradients of functions that call themselves, and of components that are named at run time: against finite differences and
//! forward mode, interpreted and compiled.

use aerogel_tests::gradients::check;

const HEAD: &str = "
    tree0 { dense i:6 { place x: f64, place y: f64 } place s: f64 }
    tree1 { dense i:6 { place gx: f64, place gy: f64 } place gs: f64 }
    field @x: f64 = tree0 [S2] grad @gx dual @gx
    field @y: f64 = tree0 [S3] grad @gy dual @gy
    field @s: f64 = tree0 [S4] grad @gs dual @gs
    field @gx: f64 = tree1 [S2]
    field @gy: f64 = tree1 [S3]
    field @gs: f64 = tree1 [S4]
";

/// A kernel that adds `sum` of each element and its number to `s`, and the functions.
fn summed(functions: &str) {
    check(&format!(
        "{HEAD}
        kernel @k() {{
            v0: i32 = const 0
            v1: i32 = const 6
            v2: i32 = const 4000000
            parallel [v0], [v1] (v3: i32) {{
                v4: ref<f64> = field_at @x, [v3]
                v5: f64 = load v4
                v6: f64 = call @f, [v2, v5, v3]
                v7: ref<f64> = field_at @s, []
                v8: f64 = atomic_add v7, v6
                yield []
            }}
            return []
        }}
        {functions}"
    ));
}

/// `f(room, x, n)`, with what it returns for `n > 0` as `vr`.
fn recursive(name: &str, body: &str) -> String {
    format!(
        "func @{name}(v0: i32, v1: f64, v2: i32) -> f64 {{
            v3: i32 = const 500
            v4: i32 = sub v0, v3
            v5: i32 = const 0
            v6: i32 = const 1
            v7: u1 = ge v4, v5
            assert v7, recursion, \"too deep\", []
            v8: u1 = gt v2, v5
            v9: i32 = sub v2, v6
            v10: f64 = if v8 {{
                {body}
                yield [vr]
            }} {{
                yield [v1]
            }}
            yield [v10]
        }}"
    )
}

#[test]
fn a_power() {
    summed(&recursive(
        "f",
        "v20: f64 = sin v1
        v21: f64 = call @f, [v4, v20, v9]
        vr: f64 = mul v21, v1",
    ));
}

#[test]
fn a_tree_of_calls() {
    summed(&recursive(
        "f",
        "v20: ref<f64> = field_at @x, [v2]
        v21: f64 = load v20
        v22: f64 = mul v1, v21
        v23: i32 = sub v9, v6
        v24: f64 = call @f, [v4, v22, v9]
        v25: f64 = call @f, [v4, v21, v23]
        v26: f64 = mul v24, v25
        vr: f64 = add v26, v1",
    ));
}

#[test]
fn by_turns() {
    let one = recursive(
        "f",
        "v20: f64 = exp v1
        vr: f64 = call @g, [v4, v20, v9]",
    );
    let other = recursive(
        "g",
        "v20: f64 = sin v1
        v21: f64 = call @f, [v4, v20, v9]
        vr: f64 = mul v21, v1",
    );
    summed(&format!("{one}\n{other}"));
}

#[test]
fn loops_inside() {
    summed(&recursive(
        "f",
        "v20: i32 = const 100
        v21: f64 = const 0.01
        v22: f64 = for v5, v20, v6, [v1] (v23: i32, v24: f64) {
            v25: f64 = sin v24
            v26: f64 = mul v25, v21
            v27: f64 = add v24, v26
            yield [v27]
        }
        v28: f64 = call @f, [v4, v22, v9]
        vr: f64 = sin v28",
    ));
}

#[test]
fn what_they_write() {
    summed(&recursive(
        "f",
        "v20: f64 = mul v1, v1
        v21: f64 = call @f, [v4, v20, v9]
        v22: ref<f64> = field_at @y, [v2]
        v23: f64 = mul v21, v1
        v24: f64 = atomic_add v22, v23
        vr: f64 = sin v21",
    ));
}

#[test]
fn components_named_at_run_time() {
    check(
        "
    tree0 { dense i:6 { place x: f64, place va: f64, place vb: f64 } }
    tree1 { dense i:6 { place gx: f64, place ga: f64, place gb: f64 } }
    field @x: f64 = tree0 [S2] grad @gx dual @gx
    field @v: vec<2, f64> = tree0 [S3, S4] grad @gv dual @gv
    field @gx: f64 = tree1 [S2]
    field @gv: vec<2, f64> = tree1 [S3, S4]
    kernel @k() {
        v0: i32 = const 0
        v1: i32 = const 1
        v6: i32 = const 6
        parallel [v0], [v6] (v7: i32) {
            v8: ref<f64> = field_at @x, [v7]
            v9: f64 = load v8
            v10: ref<vec<2, f64>> = field_at @v, [v7]
            for v0, v6, v1, [] (v11: i32) {
                v12: i32 = and v11, v1
                v13: i32 = sub v1, v12
                v14: ref<f64> = elem_ref v10, [v12]
                v15: ref<f64> = elem_ref v10, [v13]
                v16: f64 = load v14
                v17: f64 = load v15
                v18: f64 = sin v17
                v19: f64 = mul v18, v9
                v20: f64 = mul v19, v16
                store v14, v20
                yield []
            }
            yield []
        }
        return []
    }",
    );
}
