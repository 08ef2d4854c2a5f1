//! Adjoints of elements that several iterations read, gathered by the iteration with the number of the element.

use aerogel_ir::Derivative;

use super::whole;

#[test]
fn what_is_gathered_has_the_fast_maths_of_its_loop() {
    let found = whole(
        Derivative::Grad,
        "v1: i32 = const 1
        v7: i32 = const 7
        parallel [v1], [v7] fast_math=off (v0: i32) {
            v2: i32 = sub v0, v1
            v3: ref<f64> = field_at @x, [v2]
            v4: f64 = load v3
            v5: ref<f64> = field_at @x, [v0]
            v6: f64 = load v5
            v8: f64 = add v4, v6
            v9: ref<f64> = field_at @y, [v0]
            store v9, v8
            yield []
        }
        return []",
    );
    let loops = found.lines().filter(|l| l.contains("parallel "));
    let levels: Vec<bool> = loops.map(|l| l.contains("fast_math=off")).collect();
    assert!(!levels.is_empty() && levels.iter().all(|&l| l), "{found}");
}

#[test]
fn stencils_are_gathered() {
    ::insta::assert_snapshot!(whole(
        Derivative::Grad,
        "v1: i32 = const 1
        v7: i32 = const 7
        parallel [v1], [v7] (v0: i32) {
            v2: i32 = sub v0, v1
            v3: ref<f64> = field_at @x, [v2]
            v4: f64 = load v3
            v5: i32 = add v0, v1
            v6: ref<f64> = field_at @x, [v5]
            v8: f64 = load v6
            v9: f64 = sin v8
            v10: f64 = add v4, v9
            v11: ref<f64> = field_at @y, [v0]
            store v11, v10
            yield []
        }
        return []"
    ), @"
    kernel @k_grad() {
        v0: i32 = const 1
        v1: i32 = const 7
        v2: i32 = const -1
        v3: i32 = const 0
        v4: i32 = const 8
        parallel [v3], [v4] (v5: i32) {
            v6: i32 = add v0, v5
            v7: u1 = ge v6, v0
            v8: u1 = lt v6, v1
            v9: u1 = and v7, v8
            v10: f64 = const 0.0
            v11: f64 = if v9 {
                v12: ref<f64> = field_at @gy, [v6]
                v13: f64 = load v12
                v14: f64 = add v13, v10
                yield [v14]
            } {
                yield [v10]
            }
            v15: i32 = add v2, v5
            v16: u1 = ge v15, v0
            v17: u1 = lt v15, v1
            v18: u1 = and v16, v17
            v19: f64 = if v18 {
                v20: i32 = add v0, v15
                v21: ref<f64> = field_at @x, [v20]
                v22: f64 = load v21
                v23: ref<f64> = field_at @gy, [v15]
                v24: f64 = load v23
                v25: f64 = cos v22
                v26: f64 = mul v24, v25
                v27: f64 = add v26, v11
                yield [v27]
            } {
                yield [v11]
            }
            v28: ref<f64> = field_at @gx, [v5]
            v29: f64 = atomic_add v28, v19
            yield []
        }
        parallel [v0], [v1] (v30: i32) {
            v31: f64 = const 0.0
            v32: ref<f64> = field_at @gy, [v30]
            store v32, v31
            yield []
        }
        return []
    }
    ");
}
