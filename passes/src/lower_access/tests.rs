use crate::testing::{check_pass, check_passes};

#[test]
fn levels() {
    check_pass!("lower_access", "
        tree0 { dense i:2 { dense i:4 { place x: f32 } } }
        field @x: f32 = tree0 [S3] offset [-3]
        func @f(v0: i32) -> f32 {
            v1: ref<f32> = field_at @x, [v0]
            v2: f32 = load v1
            yield [v2]
        }", @"
        func @f(v0: i32) -> f32 {
            v1: i32 = const -3
            v2: i32 = sub v0, v1
            v3: cell<tree0.S0> = root tree0
            v4: container<tree0.S1> = child tree0.S1, v3
            v5: i32 = const 2
            v6: i32 = shr v2, v5
            v7: i64 = linearize tree0.S1, [v6]
            v8: cell<tree0.S1> = lookup tree0.S1, v4, v7
            v9: container<tree0.S2> = child tree0.S2, v8
            v10: i32 = const 3
            v11: i32 = and v2, v10
            v12: i64 = linearize tree0.S2, [v11]
            v13: cell<tree0.S2> = lookup tree0.S2, v9, v12
            v14: ref<f32> = child tree0.S3, v13
            v15: f32 = load v14
            yield [v15]
        }
        ");
}

#[test]
fn neighbours_share_lookups() {
    check_passes!(&["lower_access", "cse", "dce"], "
        tree0 { dense i:2 { dense j:4 { place x: f32, place y: f32 } } }
        field @v: vec<2, f32> = tree0 [S3, S4]
        func @f(v0: i32, v1: i32, v2: i32) -> f32 {
            v3: ref<vec<2, f32>> = field_at @v, [v0, v1]
            v4: i32 = const 0
            v5: ref<f32> = elem_ref v3, [v4]
            v6: f32 = load v5
            v7: ref<vec<2, f32>> = field_at @v, [v0, v2]
            v8: i32 = const 1
            v9: ref<f32> = elem_ref v7, [v8]
            v10: f32 = load v9
            v11: f32 = add v6, v10
            yield [v11]
        }", @"
        func @f(v0: i32, v1: i32, v2: i32) -> f32 {
            v3: cell<tree0.S0> = root tree0
            v4: container<tree0.S1> = child tree0.S1, v3
            v5: i64 = linearize tree0.S1, [v0]
            v6: cell<tree0.S1> = lookup tree0.S1, v4, v5
            v7: container<tree0.S2> = child tree0.S2, v6
            v8: i64 = linearize tree0.S2, [v1]
            v9: cell<tree0.S2> = lookup tree0.S2, v7, v8
            v10: ref<f32> = child tree0.S3, v9
            v11: f32 = load v10
            v12: i64 = linearize tree0.S2, [v2]
            v13: cell<tree0.S2> = lookup tree0.S2, v7, v12
            v14: ref<f32> = child tree0.S4, v13
            v15: f32 = load v14
            v16: f32 = add v11, v15
            yield [v16]
        }
        ");
}

#[test]
fn unknown_components() {
    check_pass!("lower_access", "
        tree0 { place a: f32, place b: f32, place c: f32, place d: f32 }
        field @m: mat<2, 2, f32> = tree0 [S1, S2, S3, S4]
        func @f(v0: i32, v1: i64) -> f32 {
            v2: ref<mat<2, 2, f32>> = field_at @m, []
            v3: ref<f32> = elem_ref v2, [v0, v1]
            v4: f32 = load v3
            yield [v4]
        }", @"
        func @f(v0: i32, v1: i64) -> f32 {
            v2: cell<tree0.S0> = root tree0
            v3: i64 = cast v0
            v4: i64 = const 2
            v5: i64 = mul v3, v4
            v6: i64 = add v5, v1
            v7: ref<f32> = child tree0.S1, v2
            v8: i64 = const 1
            v9: u1 = eq v6, v8
            v10: ref<f32> = child tree0.S2, v2
            v11: ref<f32> = select v9, v10, v7
            v12: i64 = const 2
            v13: u1 = eq v6, v12
            v14: ref<f32> = child tree0.S3, v2
            v15: ref<f32> = select v13, v14, v11
            v16: i64 = const 3
            v17: u1 = eq v6, v16
            v18: ref<f32> = child tree0.S4, v2
            v19: ref<f32> = select v17, v18, v15
            v20: f32 = load v19
            yield [v20]
        }
        ");
}
