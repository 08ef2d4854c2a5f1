//! Loops that are left early.

use aerogel_ir::Derivative;

use super::derivative;

/// A loop that is left with values in its first turn, as its body ends so.
#[test]
fn a_loop_that_ends_at_once() {
    let text = derivative(
        Derivative::Grad,
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: i32 = const 0
        v4: i32 = const 5
        v5: i32 = const 1
        v6: f64 = for v3, v4, v5, [v2] (v7: i32, v8: f64) {
            v9: f64 = mul v8, v8
            break [v9]
        }
        v10: f64 = mul v6, v6
        v11: ref<f64> = field_at @y, [v0]
        store v11, v10",
    );
    insta::assert_snapshot!(text,
        @r#"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f64> = field_at @x, [v2]
                v4: f64 = load v3
                v5: u1 = const 0
                v6: i64 = const 0
                v7: i64 = const 5
                v8: i64 = const 1
                v9: u1 = const 1
                v10: buffer<f64> = buffer
                v11: f64, v12: u1, v13: i64, v14: i64 = while [v4, v5, v6, v6] (v15: f64, v16: u1, v17: i64, v18: i64) {
                    v19: u1 = lt v17, v7
                    v20: u1 = not v16
                    v21: u1 = and v19, v20
                    yield [v21]
                } (v22: f64, v23: u1, v24: i64, v25: i64) {
                    v26: i64 = add v8, v25
                    v27: room<f64>, v28: u1 = reserve v10, v26
                    assert v28, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v26]
                    v29: ref<f64> = room_at v27, v25
                    store v29, v22
                    v30: i64 = add v8, v24
                    v31: f64 = mul v22, v22
                    yield [v31, v9, v30, v26]
                }
                v32: room<f64>, v33: u1 = reserve v10, v14
                assert v33, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v14]
                v34: f64 = const 0.0
                v35: ref<f64> = field_at @gy, [v2]
                v36: f64 = load v35
                store v35, v34
                v37: f64 = mul v11, v36
                v38: f64 = add v37, v37
                v39: i64 = const -1
                v40: i64 = add v14, v39
                v41: f64 = for v40, v39, v39, [v38] (v42: i64, v43: f64) {
                    v44: ref<f64> = room_at v32, v42
                    v45: f64 = load v44
                    v46: f64 = mul v45, v43
                    v47: f64 = add v46, v46
                    yield [v47]
                }
                v48: ref<f64> = field_at @gx, [v2]
                v49: f64 = atomic_add v48, v41
                yield []
            }
            return []
        }
        "#
    );
}
