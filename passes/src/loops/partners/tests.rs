use aerogel_ir::FastMath;

use crate::testing::after;

const PARTNER: &str = "xor v0, v3";
const ORDER: &str = "
                        if v10 {
                            store v6, v9
                            store v7, v8
                            yield []
                        } {
                            yield []
                        }";

/// What the pass makes of a step of a sorting network.
fn made(partner: &str, order: &str) -> String {
    let text = format!(
        "
        tree0 {{ dense i:64 {{ place x: i32 place y: i32 }} }}
        field @x: i32 = tree0 [S2]
        field @y: i32 = tree0 [S3]
        kernel @k(j: i32) {{
            v0: i32 = arg a0
            v1: i32 = const 0
            v2: i32 = const 64
            parallel [v1], [v2] (v3: i32) {{
                v4: i32 = {partner}
                v5: u1 = gt v4, v3
                if v5 {{
                    v6: ref<i32> = field_at @x, [v3]
                    v7: ref<i32> = field_at @x, [v4]
                    v8: i32 = load v6
                    v9: i32 = load v7
                    v10: u1 = gt v8, v9
                    {order}
                    yield []
                }} {{
                    yield []
                }}
                yield []
            }}
            return []
        }}"
    );
    after(&["partners"], &text, FastMath::Off)
}

/// Whether the loop stays one.
fn stays(partner: &str, order: &str) -> bool {
    let text = made(partner, order);
    text.matches("parallel").count() == 1
}

#[test]
fn partners_become_rows() {
    insta::assert_snapshot!(made(PARTNER, ORDER), @"
    kernel @k(j: i32) {
        v0: i32 = arg a0
        v1: i32 = const 0
        v2: i32 = const 64
        v3: i32 = const 0
        v4: i32 = const 1
        v5: i32 = const 16
        v6: i32 = const 536870912
        v7: i32 = add v0, v0
        v8: i32 = sub v0, v4
        v9: i32 = and v0, v8
        v10: i32 = rem v2, v7
        v11: u1 = eq v9, v3
        v12: u1 = gt v0, v3
        v13: u1 = and v11, v12
        v14: u1 = lt v0, v6
        v15: u1 = and v13, v14
        v16: u1 = eq v10, v3
        v17: u1 = and v15, v16
        v18: u1 = ge v0, v5
        v19: i32 = div v2, v7
        v20: i32 = select v18, v19, v3
        v21: i32 = select v17, v20, v3
        v22: i32 = select v18, v3, v2
        v23: i32 = select v17, v22, v3
        v24: i32 = select v17, v3, v2
        parallel [v3, v3], [v21, v0] (v25: i32, v26: i32) {
            v27: i32 = mul v25, v7
            v28: i32 = add v27, v26
            v29: i32 = add v28, v0
            v30: ref<i32> = field_at @x, [v28]
            v31: ref<i32> = field_at @x, [v29]
            v32: i32 = load v30
            v33: i32 = load v31
            v34: u1 = gt v32, v33
            v35: i32 = select v34, v33, v32
            store v30, v35
            v36: i32 = select v34, v32, v33
            store v31, v36
            yield []
        }
        parallel [v3], [v23] (v37: i32) {
            v38: i32 = and v37, v0
            v39: u1 = eq v38, v3
            if v39 {
                v40: i32 = add v37, v0
                v41: ref<i32> = field_at @x, [v37]
                v42: ref<i32> = field_at @x, [v40]
                v43: i32 = load v41
                v44: i32 = load v42
                v45: u1 = gt v43, v44
                v46: i32 = select v45, v44, v43
                store v41, v46
                v47: i32 = select v45, v43, v44
                store v42, v47
                yield []
            } {
                yield []
            }
            yield []
        }
        parallel [v3], [v24] (v48: i32) {
            v49: i32 = xor v0, v48
            v50: u1 = gt v49, v48
            if v50 {
                v51: ref<i32> = field_at @x, [v48]
                v52: ref<i32> = field_at @x, [v49]
                v53: i32 = load v51
                v54: i32 = load v52
                v55: u1 = gt v53, v54
                if v55 {
                    store v51, v54
                    store v52, v53
                    yield []
                } {
                    yield []
                }
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
fn other_partners_stay() {
    assert!(stays("add v0, v3", ORDER));
    assert!(stays("xor v0, v0", ORDER));
    // The distance is another one in each iteration.
    assert!(stays("xor v3, v3", ORDER));
}

#[test]
fn elements_of_others_stay() {
    // An element that is only stored, one of another pair, and one of another field.
    for (from, to) in [
        (
            "store v6, v9",
            "v11: ref<i32> = field_at @y, [v3]\nstore v11, v9",
        ),
        (
            "store v6, v9",
            "v11: ref<i32> = field_at @x, [v0]\nstore v11, v9",
        ),
        (
            "store v6, v9",
            "v11: ref<i32> = field_at @x, [v0]\nv12: i32 = load v11\nstore v6, v12",
        ),
    ] {
        assert!(stays(PARTNER, &ORDER.replace(from, to)), "{to}");
    }
    // What changes memory in another way.
    assert!(stays(
        PARTNER,
        &ORDER.replace("store v6, v9", "v11: i32 = atomic_add v6, v9")
    ));
}

#[test]
fn pairs_without_a_branch_stay() {
    let order = "store v6, v9\nstore v7, v8";
    insta::assert_snapshot!(made(PARTNER, order), @"
    kernel @k(j: i32) {
        v0: i32 = arg a0
        v1: i32 = const 0
        v2: i32 = const 64
        parallel [v1], [v2] (v3: i32) {
            v4: i32 = xor v0, v3
            v5: u1 = gt v4, v3
            if v5 {
                v6: ref<i32> = field_at @x, [v3]
                v7: ref<i32> = field_at @x, [v4]
                v8: i32 = load v6
                v9: i32 = load v7
                v10: u1 = gt v8, v9
                store v6, v9
                store v7, v8
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
