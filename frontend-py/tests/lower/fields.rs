//! Elements of fields and their components, read and updated.

use crate::lower;

#[test]
fn a_component_is_a_field_of_its_own() {
    insta::assert_snapshot!(
        lower(
            "
            def k():
                v[1] = v[0]
                a[3] = b[2]
            "
        ),
        @"
        kernel @k() {
            v0: i32 = const 0
            v1: ref<vec<2, f32>> = field_at @v, [v0]
            v2: vec<2, f32> = load v1
            v3: i32 = const 1
            v4: ref<vec<2, f32>> = field_at @v, [v3]
            store v4, v2
            v5: i32 = const 2
            v6: ref<f32> = field_at @b, [v5]
            v7: f32 = load v6
            v8: i32 = const 3
            v9: ref<f32> = field_at @a, [v8]
            store v9, v7
            return []
        }
        "
    );
}

#[test]
fn fields_are_changed_atomically() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        s = 0.0
        for i in range(8):
            t = 0
            t += 1
            s += x[i, 0]
            x[i, 1] -= s
            v[i].x += 1
"
        ),
        @"
        kernel @k() {
            v0: f32 = const 0.0
            v1: ref<f32> = local
            store v1, v0
            v2: i32 = const 0
            v3: i32 = const 8
            parallel [v2], [v3] (v4: i32) {
                v5: i32 = const 0
                v6: ref<i32> = local
                store v6, v5
                v7: i32 = load v6
                v8: i32 = const 1
                v9: i32 = add v7, v8
                store v6, v9
                v10: i32 = const 0
                v11: ref<f32> = field_at @x, [v4, v10]
                v12: f32 = load v11
                v13: f32 = atomic_add v1, v12
                v14: i32 = const 1
                v15: ref<f32> = field_at @x, [v4, v14]
                v16: f32 = load v1
                v17: f32 = atomic_sub v15, v16
                v18: ref<vec<2, f32>> = field_at @v, [v4]
                v19: i32 = const 0
                v20: ref<f32> = elem_ref v18, [v19]
                v21: f32 = const 1.0
                v22: f32 = atomic_add v20, v21
                yield []
            }
            return []
        }
        "
    );
}
