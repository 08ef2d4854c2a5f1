use aerogel_ir::FastMath;

use crate::testing::after;

/// What the pass makes of a kernel over matrices of 12 x 240, 240 x 40 and 12 x 40 numbers.
fn made(body: &str, level: FastMath) -> String {
    let text = format!(
        "
        tree0 {{ dense i:12 j:240 {{ place a: f32 }} }}
        tree1 {{ dense i:240 j:40 {{ place b: f32 }} }}
        tree2 {{ dense i:12 j:40 {{ place c: f32 }} }}
        field @a: f32 = tree0 [S2]
        field @b: f32 = tree1 [S2]
        field @c: f32 = tree2 [S2]
        kernel @k() {{
            v0: i32 = const 0
            v1: i32 = const 1
            v2: i32 = const 12
            v3: i32 = const 40
            v4: i32 = const 240
            v5: f32 = const 0.0
            {body}
            return []
        }}"
    );
    after(&["matrix_products"], &text, level)
}

const ADDED: &str = "
    parallel [v0], [v2] (v6: i32) {
        for v0, v4, v1, [] (v7: i32) {
            v8: ref<f32> = field_at @a, [v6, v7]
            v9: f32 = load v8
            for v0, v3, v1, [] (v10: i32) {
                v11: ref<f32> = field_at @b, [v7, v10]
                v12: f32 = load v11
                v13: f32 = mul v9, v12
                v14: ref<f32> = field_at @c, [v6, v10]
                v15: f32 = load v14
                v16: f32 = add v13, v15
                store v14, v16
                yield []
            }
            yield []
        }
        yield []
    }";

const CLEARED: &str = "
    parallel_cells tree2.S1 (v30: i32, v31: i32) {
        v32: ref<f32> = field_at @c, [v30, v31]
        store v32, v5
        yield []
    }";

#[test]
fn sums_in_memory() {
    let text = made(ADDED, FastMath::Accumulations);
    assert!(text.contains("tile_product"), "{text}");
    // They begin with what is there.
    assert!(text.contains("false\n"), "{text}");
}

#[test]
fn cleared_by_the_loop_before() {
    let text = made(&format!("{CLEARED}{ADDED}"), FastMath::Accumulations);
    assert!(text.contains("tile_product"), "{text}");
    assert!(text.contains("true\n"), "{text}");
    assert_eq!(text.matches("parallel").count(), 1, "{text}");
    let text = made(&format!("{CLEARED}{ADDED}"), FastMath::Off);
    assert!(text.contains("false\n"), "{text}");
}

#[test]
fn any_order() {
    let text = made(
        "
        parallel [v0, v0, v0], [v4, v3, v2] (v6: i32, v7: i32, v8: i32) {
            v9: ref<f32> = field_at @c, [v8, v7]
            v10: ref<f32> = field_at @a, [v8, v6]
            v11: f32 = load v10
            v12: ref<f32> = field_at @b, [v6, v7]
            v13: f32 = load v12
            v14: f32 = mul v11, v13
            v15: f32 = atomic_add v9, v14
            yield []
        }",
        FastMath::Accumulations,
    );
    assert!(text.contains("tile_product"), "{text}");
}

#[test]
fn results_that_are_factors_stay() {
    let text = made(
        &ADDED.replace("@a, [v6, v7]", "@c, [v6, v7]"),
        FastMath::Accumulations,
    );
    assert!(!text.contains("tile_product"), "{text}");
}

#[test]
fn sums_that_share_elements_stay() {
    let text = made(
        &ADDED.replace("field_at @c, [v6, v10]", "field_at @c, [v0, v10]"),
        FastMath::Accumulations,
    );
    assert!(!text.contains("tile_product"), "{text}");
}
