use aerogel_ir::FastMath;

use crate::testing::{after, check_pass};

#[test]
fn two_axes() {
    check_pass!("flat_index", "
        kernel @k(x: array<i32, 2>) {
            v0: i32 = const 0
            v1: i32 = array_shape a0, 0
            v2: i32 = array_shape a0, 1
            v3: i32 = mul v1, v2
            parallel [v0], [v3] (v4: i32) {
                v5: i32 = array_shape a0, 1
                v6: i32 = floordiv v4, v5
                v7: i32 = mod v4, v5
                v8: ref<i32> = array_at a0, [v6, v7]
                store v8, v4
                yield []
            }
            return []
        }", @"
    kernel @k(x: array<i32, 2>) {
        v0: i32 = const 0
        v1: i32 = array_shape a0, 0
        v2: i32 = array_shape a0, 1
        v3: i32 = mul v1, v2
        v4: i32 = array_shape a0, 1
        v5: i32 = const 0
        v6: i32 = const 1
        v7: i32 = const 8
        v8: u1 = ge v4, v7
        v9: i32 = select v8, v4, v6
        v10: i32 = max v3, v5
        v11: i32 = floordiv v10, v9
        v12: i32 = select v8, v11, v5
        v13: i32 = mul v12, v9
        parallel [v0, v0], [v12, v9] (v14: i32, v15: i32) {
            v16: i32 = mul v14, v9
            v17: i32 = add v16, v15
            v18: i32 = array_shape a0, 1
            v19: ref<i32> = array_at a0, [v14, v15]
            store v19, v17
            yield []
        }
        parallel [v13], [v3] (v20: i32) {
            v21: i32 = array_shape a0, 1
            v22: i32 = floordiv v20, v21
            v23: i32 = mod v20, v21
            v24: ref<i32> = array_at a0, [v22, v23]
            store v24, v20
            yield []
        }
        return []
    }
    ");
}

#[test]
fn three_axes() {
    check_pass!("flat_index", "
        kernel @k(x: array<i32, 3>, n: i32, m: i32, l: i32) {
            v0: i32 = const 0
            v1: i32 = arg a1
            v2: i32 = arg a2
            v3: i32 = arg a3
            v4: i32 = mul v2, v3
            v5: i32 = mul v1, v4
            parallel [v0], [v5] (v6: i32) {
                v7: i32 = mul v3, v2
                v8: i32 = floordiv v6, v7
                v9: i32 = floordiv v6, v3
                v10: i32 = mod v9, v2
                v11: i32 = mod v6, v3
                v12: ref<i32> = array_at a0, [v8, v10, v11]
                store v12, v6
                yield []
            }
            return []
        }", @"
    kernel @k(x: array<i32, 3>, n: i32, m: i32, l: i32) {
        v0: i32 = const 0
        v1: i32 = arg a1
        v2: i32 = arg a2
        v3: i32 = arg a3
        v4: i32 = mul v2, v3
        v5: i32 = mul v1, v4
        v6: i32 = arg a3
        v7: i32 = const 0
        v8: i32 = const 1
        v9: i32 = const 8
        v10: u1 = ge v6, v9
        v11: i32 = select v10, v6, v8
        v12: i32 = arg a3
        v13: i32 = arg a2
        v14: i32 = mul v12, v13
        v15: i32 = arg a2
        v16: i32 = floordiv v14, v11
        v17: u1 = eq v16, v15
        v18: u1 = gt v15, v7
        v19: u1 = and v17, v18
        v20: u1 = and v10, v19
        v21: i32 = max v5, v7
        v22: i32 = floordiv v21, v11
        v23: i32 = select v20, v22, v7
        v24: i32 = mul v23, v11
        parallel [v0, v0], [v23, v11] (v25: i32, v26: i32) {
            v27: i32 = mul v25, v11
            v28: i32 = add v27, v26
            v29: i32 = mul v3, v2
            v30: i32 = floordiv v25, v2
            v31: i32 = mod v25, v2
            v32: ref<i32> = array_at a0, [v30, v31, v26]
            store v32, v28
            yield []
        }
        parallel [v24], [v5] (v33: i32) {
            v34: i32 = mul v3, v2
            v35: i32 = floordiv v33, v34
            v36: i32 = floordiv v33, v3
            v37: i32 = mod v36, v2
            v38: i32 = mod v33, v3
            v39: ref<i32> = array_at a0, [v35, v37, v38]
            store v39, v33
            yield []
        }
        return []
    }
    ");
}

#[test]
fn others_stay() {
    // The quotient is by another number; the number is loaded; the body draws.
    for body in [
        "q: i32 = floordiv t, m r: i32 = mod t, n",
        "x: ref<i32> = array_at a0, [z] y: i32 = load x q: i32 = floordiv t, y r: i32 = mod t, y",
        "q: i32 = floordiv t, n r: i32 = mod t, n u: u32 = random",
    ] {
        let text = format!(
            "kernel @k(x: array<i32, 1>, n: i32, m: i32) {{
                z: i32 = const 0
                n: i32 = arg a1
                m: i32 = arg a2
                e: i32 = mul n, m
                parallel [z], [e] (t: i32) {{
                    {body}
                    w: i32 = add q, r
                    p: ref<i32> = array_at a0, [t]
                    store p, w
                    yield []
                }}
                return []
            }}"
        );
        let text = after(&["flat_index"], &text, FastMath::Off);
        assert_eq!(text.matches("parallel").count(), 1, "{text}");
    }
}
