//! Variables, vectors, conditions, and what is printed.

use crate::lower;

#[test]
fn a_variable_keeps_its_first_type() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        a = 1
        a = 2.7
        a += 2.7
        a *= 2.7
"
        ),
        @"
        kernel @k() {
            v0: i32 = const 1
            v1: ref<i32> = local
            store v1, v0
            v2: i32 = const 2
            store v1, v2
            v3: i32 = load v1
            v4: i32 = const 2
            v5: i32 = add v3, v4
            store v1, v5
            v6: i32 = load v1
            v7: f32 = cast v6
            v8: f32 = const 2.7
            v9: f32 = mul v7, v8
            v10: i32 = cast v9
            store v1, v10
            return []
        }
        "
    );
}

#[test]
fn swap_and_unpack() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        a, b = 1, 2.5
        a, b = b, a
        p, q = v[0]
        x[0, 0] = p
"
        ),
        @"
        kernel @k() {
            v0: i32 = const 1
            v1: ref<i32> = local
            store v1, v0
            v2: f32 = const 2.5
            v3: ref<f32> = local
            store v3, v2
            v4: f32 = load v3
            v5: i32 = load v1
            v6: i32 = cast v4
            store v1, v6
            v7: f32 = cast v5
            store v3, v7
            v8: i32 = const 0
            v9: ref<vec<2, f32>> = field_at @v, [v8]
            v10: vec<2, f32> = load v9
            v11: i32 = const 0
            v12: f32 = tensor_get v10, [v11]
            v13: i32 = const 1
            v14: f32 = tensor_get v10, [v13]
            v15: ref<f32> = local
            store v15, v12
            v16: ref<f32> = local
            store v16, v14
            v17: f32 = load v15
            v18: i32 = const 0
            v19: i32 = const 0
            v20: ref<f32> = field_at @x, [v18, v19]
            store v20, v17
            return []
        }
        "
    );
}

#[test]
fn vectors() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        for i in v:
            a = ti.Vector([1, 2.0])
            b = v[i] * 2 + a
            b.x = b.norm()
            v[i] = b.yx
            w = [a, b]
            v[i] += w[1] - [1, 2]
"
        ),
        @"
            kernel @k() {
                parallel_cells tree0.S1 (v0: i32) {
                    v1: f32 = const 1.0
                    v2: f32 = const 2.0
                    v3: vec<2, f32> = tensor [v1, v2]
                    v4: ref<vec<2, f32>> = local
                    store v4, v3
                    v5: ref<vec<2, f32>> = field_at @v, [v0]
                    v6: vec<2, f32> = load v5
                    v7: f32 = const 2.0
                    v8: vec<2, f32> = tensor [v7, v7]
                    v9: vec<2, f32> = mul v6, v8
                    v10: vec<2, f32> = load v4
                    v11: vec<2, f32> = add v9, v10
                    v12: ref<vec<2, f32>> = local
                    store v12, v11
                    v13: vec<2, f32> = load v12
                    v14: vec<2, f32> = mul v13, v13
                    v15: i32 = const 0
                    v16: f32 = tensor_get v14, [v15]
                    v17: i32 = const 1
                    v18: f32 = tensor_get v14, [v17]
                    v19: f32 = add v16, v18
                    v20: f32 = sqrt v19
                    v21: i32 = const 0
                    v22: ref<f32> = elem_ref v12, [v21]
                    store v22, v20
                    v23: i32 = const 1
                    v24: ref<f32> = elem_ref v12, [v23]
                    v25: i32 = const 0
                    v26: ref<f32> = elem_ref v12, [v25]
                    v27: f32 = load v24
                    v28: f32 = load v26
                    v29: vec<2, f32> = tensor [v27, v28]
                    v30: ref<vec<2, f32>> = field_at @v, [v0]
                    store v30, v29
                    v31: vec<2, f32> = load v4
                    v32: vec<2, f32> = load v12
                    v33: ref<vec<2, f32>> = local
                    store v33, v31
                    v34: ref<vec<2, f32>> = local
                    store v34, v32
                    v35: ref<vec<2, f32>> = field_at @v, [v0]
                    v36: vec<2, f32> = load v34
                    v37: f32 = const 1.0
                    v38: f32 = const 2.0
                    v39: vec<2, f32> = tensor [v37, v38]
                    v40: vec<2, f32> = sub v36, v39
                    v41: vec<2, f32> = atomic_add v35, v40
                    yield []
                }
                return []
            }
            "
    );
}

#[test]
fn short_circuit() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        for i in range(8):
            if i > 0 and x[i - 1, 0] > 0.0 or not i:
                x[i, 0] = 1 if i < 3 else 2.5
"
        ),
        @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: i32 = const 0
                v4: u1 = gt v2, v3
                v5: u1 = if v4 {
                    v6: i32 = const 1
                    v7: i32 = sub v2, v6
                    v8: i32 = const 0
                    v9: ref<f32> = field_at @x, [v7, v8]
                    v10: f32 = load v9
                    v11: f32 = const 0.0
                    v12: u1 = gt v10, v11
                    yield [v12]
                } {
                    yield [v4]
                }
                v13: u1 = if v5 {
                    yield [v5]
                } {
                    v14: u1 = cast v2
                    v15: u1 = not v14
                    yield [v15]
                }
                if v13 {
                    v16: i32 = const 3
                    v17: u1 = lt v2, v16
                    v18: f32 = if v17 {
                        v19: f32 = const 1.0
                        yield [v19]
                    } {
                        v20: f32 = const 2.5
                        yield [v20]
                    }
                    v21: i32 = const 0
                    v22: ref<f32> = field_at @x, [v2, v21]
                    store v22, v18
                    yield []
                } {
                    yield []
                }
                yield []
            }
            return []
        }
        "
    );
}

#[test]
fn printing() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        print('p =', v[0], f'{x[0, 0]:.3f}', 3, end='')
        assert n[None] > 0, f'n is {n[None]}'
"
        ),
        @r#"
        kernel @k() {
            v0: i32 = const 0
            v1: ref<vec<2, f32>> = field_at @v, [v0]
            v2: vec<2, f32> = load v1
            v3: i32 = const 0
            v4: f32 = tensor_get v2, [v3]
            v5: i32 = const 1
            v6: f32 = tensor_get v2, [v5]
            v7: i32 = const 0
            v8: i32 = const 0
            v9: ref<f32> = field_at @x, [v7, v8]
            v10: f32 = load v9
            print "p = [{}, {}] {:.3f} 3", [v4, v6, v10]
            v11: ref<i32> = field_at @n, []
            v12: i32 = load v11
            v13: i32 = const 0
            v14: u1 = gt v12, v13
            v15: ref<i32> = field_at @n, []
            v16: i32 = load v15
            assert v14, assertion, "n is {}", [v16]
            return []
        }
        "#
    );
}
