//! Which accesses are noted, and as what.

use crate::testing::check_pass;

#[test]
fn what_is_written_and_read() {
    check_pass!("note_accesses", "
        tree0 { dense i:8 { place x: f32 place y: f32 } }
        field @x: f32 = tree0 [S2]
        field @y: f32 = tree0 [S3]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f32> = field_at @x, [v0]
                v4: ref<f32> = field_at @y, [v0]
                v5: f32 = load v4
                store v3, v5
                yield []
            }
            v6: ref<f32> = field_at @x, [v0]
            v7: f32 = load v6
            store v6, v7
            yield []
        }", @r#"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 8
            v2: i64 = cast v0
            v3: i64 = cast v1
            v4: i64 = sub v3, v2
            note loop, "{} {}", [v2, v4]
            parallel [v0], [v1] (v5: i32) {
                v6: i64 = cast v5
                v7: i64 = sub v6, v2
                v8: ref<f32> = field_at @x, [v0]
                v9: ref<f32> = field_at @y, [v0]
                v10: f32 = load v9
                v11: i64 = cast v0
                v12: i64 = const 0
                v13: i64 = sub v11, v12
                v14: i64 = const 8
                v15: i64 = const 2
                v16: i64 = const 0
                v17: u1 = ge v13, v16
                v18: u1 = lt v13, v14
                v19: u1 = and v17, v18
                v20: i64 = const -1
                v21: i64 = select v19, v7, v20
                note write, "x[0]", [v15, v13, v21, v10]
                store v8, v10
                yield []
            }
            v22: ref<f32> = field_at @x, [v0]
            v23: f32 = load v22
            store v22, v23
            yield []
        }
        "#);
}

#[test]
fn cells_and_components() {
    check_pass!("note_accesses", "
        tree0 { pointer i:4 { dense i:2 { place x0: f32 place x1: f32 } } }
        field @x: vec<2, f32> = tree0 [S3, S4] offset [1]
        kernel @k() {
            parallel_cells tree0.S2 (v0: i32) {
                v1: i32 = const 3
                v2: ref<vec<2, f32>> = field_at @x, [v1]
                v3: ref<f32> = elem_ref v2, [v0]
                v4: f32 = const 1.0
                store v3, v4
                yield []
            }
            yield []
        }", @r#"
        kernel @k() {
            v0: i64 = const 0
            v1: i64 = const 8
            note loop, "{} {}", [v0, v1]
            parallel_cells tree0.S2 (v2: i32) {
                v3: i64 = cast v2
                v4: i64 = sub v3, v0
                v5: i32 = const 3
                v6: ref<vec<2, f32>> = field_at @x, [v5]
                v7: ref<f32> = elem_ref v6, [v2]
                v8: f32 = const 1.0
                v9: i64 = cast v5
                v10: i64 = const 1
                v11: i64 = sub v9, v10
                v12: i64 = const 8
                v13: i64 = const 3
                v14: i64 = cast v2
                v15: i64 = const 2
                v16: i64 = const 1
                v17: i64 = const 4
                v18: u1 = eq v14, v16
                v19: i64 = select v18, v17, v13
                v20: i64 = const 0
                v21: u1 = ge v11, v20
                v22: u1 = lt v11, v12
                v23: u1 = and v21, v22
                v24: i64 = const -1
                v25: i64 = select v23, v4, v24
                note write, "x[3][{}]", [v19, v11, v25, v8, v2]
                store v7, v8
                yield []
            }
            yield []
        }
        "#);
}

#[test]
fn arrays_and_calls() {
    check_pass!("note_accesses", "
        kernel @k(a: array<vec<2, f32>, 1>) {
            v0: i32 = const 0
            v1: i32 = array_shape a0, 0
            parallel [v0], [v1] (v2: i32) {
                v3: ref<vec<2, f32>> = array_at a0, [v2]
                v4: i32 = const 1
                v5: ref<f32> = elem_ref v3, [v4]
                v6: f32 = call @f, [v2]
                store v5, v6
                yield []
            }
            v7: f32 = call @f, [v0]
            yield []
        }
        func @f(v0: i32, v1: i64) -> f32 {
            v2: f32 = cast v0
            yield [v2]
        }", @r#"
        kernel @k(a: array<vec<2, f32>, 1>) {
            v0: i32 = const 0
            v1: i32 = array_shape a0, 0
            v2: i64 = cast v0
            v3: i64 = cast v1
            v4: i64 = sub v3, v2
            note loop, "{} {}", [v2, v4]
            parallel [v0], [v1] (v5: i32) {
                v6: i64 = cast v5
                v7: i64 = sub v6, v2
                v8: ref<vec<2, f32>> = array_at a0, [v5]
                v9: i32 = const 1
                v10: ref<f32> = elem_ref v8, [v9]
                v11: f32 = call @f, [v5, v7]
                v12: i32 = array_shape a0, 0
                v13: i64 = cast v5
                v14: i64 = cast v12
                v15: i64 = const 0
                v16: u1 = ge v13, v15
                v17: u1 = lt v13, v14
                v18: u1 = and v16, v17
                v19: i64 = cast v9
                v20: i64 = const 2
                v21: i64 = const 2
                v22: i64 = mul v13, v21
                v23: i64 = add v22, v19
                v24: i64 = const 4
                v25: i64 = const -1
                v26: i64 = mul v23, v24
                v27: i64 = const -1
                v28: i64 = select v18, v7, v27
                note write, "a[{}][1]", [v25, v26, v28, v11, v5]
                store v10, v11
                yield []
            }
            v29: i64 = const -1
            v30: f32 = call @f, [v0, v29]
            yield []
        }
        "#);
}

#[test]
fn loops_in_order_and_those_that_lock_cells() {
    check_pass!("note_accesses", "
        tree0 { dense i:8 { place x: i32 } }
        field @x: i32 = tree0 [S2]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] serial (v2: i32) {
                v3: ref<i32> = field_at @x, [v0]
                store v3, v2
                yield []
            }
            parallel [v0], [v1] (v4: i32) {
                v5: ref<i32> = field_at @x, [v0]
                v6: i32 = atomic_cas v5, v0, v1
                store v5, v4
                yield []
            }
            yield []
        }", @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] serial (v2: i32) {
                v3: ref<i32> = field_at @x, [v0]
                store v3, v2
                yield []
            }
            parallel [v0], [v1] (v4: i32) {
                v5: ref<i32> = field_at @x, [v0]
                v6: i32 = atomic_cas v5, v0, v1
                store v5, v4
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn cells_of_each_iteration() {
    check_pass!("note_accesses", "
        tree0 { dense i:8 j:8 { place x: f32 } }
        field @x: f32 = tree0 [S2]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f32> = field_at @x, [v2, v0]
                v4: f32 = load v3
                v5: ref<f32> = field_at @x, [v2, v2]
                store v5, v4
                yield []
            }
            yield []
        }", @r#"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 8
            v2: i64 = cast v0
            v3: i64 = cast v1
            v4: i64 = sub v3, v2
            note loop, "{} {}", [v2, v4]
            parallel [v0], [v1] (v5: i32) {
                v6: i64 = cast v5
                v7: i64 = sub v6, v2
                v8: ref<f32> = field_at @x, [v5, v0]
                v9: f32 = load v8
                v10: ref<f32> = field_at @x, [v5, v5]
                store v10, v9
                yield []
            }
            yield []
        }
        "#);
}
