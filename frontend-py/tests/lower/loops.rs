//! Loops: which are parallel, which serial, which unrolled.

use crate::lower;

#[test]
fn stencil() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        for i, j in x:
            if 1 <= i < 7:
                y[i, j] = 4.0 * x[i, j] - x[i - 1, j]
            else:
                y[i, j] = 0
"
        ),
        @"
            kernel @k() {
                parallel_cells tree0.S1 (v0: i32, v1: i32) {
                    v2: i32 = const 1
                    v3: u1 = le v2, v0
                    v4: i32 = const 7
                    v5: u1 = lt v0, v4
                    v6: u1 = and v3, v5
                    if v6 {
                        v7: ref<f32> = field_at @x, [v0, v1]
                        v8: f32 = const 4.0
                        v9: f32 = load v7
                        v10: f32 = mul v8, v9
                        v11: i32 = const 1
                        v12: i32 = sub v0, v11
                        v13: ref<f32> = field_at @x, [v12, v1]
                        v14: f32 = load v13
                        v15: f32 = sub v10, v14
                        v16: ref<f32> = field_at @y, [v0, v1]
                        store v16, v15
                        yield []
                    } {
                        v17: ref<f32> = field_at @y, [v0, v1]
                        v18: f32 = const 0.0
                        store v17, v18
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
fn nested_loops_are_serial() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        for i in range(4):
            for j in range(i, 8, 2):
                if j == 3:
                    continue
                x[i, j] = j
            while True:
                break
"
        ),
        @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 4
            parallel [v0], [v1] (v2: i32) {
                v3: i32 = const 8
                v4: i32 = const 2
                for v2, v3, v4, [] (v5: i32) {
                    v6: i32 = const 3
                    v7: u1 = eq v5, v6
                    if v7 {
                        continue []
                    } {
                        yield []
                    }
                    v8: ref<f32> = field_at @x, [v2, v5]
                    v9: f32 = cast v5
                    store v8, v9
                    yield []
                }
                while [] {
                    v10: u1 = const 1
                    yield [v10]
                } {
                    break []
                }
                yield []
            }
            return []
        }
        "
    );
}

#[test]
fn ndrange_and_grouped() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        for i, j in ti.ndrange(4, (1, 3)):
            x[i, j] = 1
        for I in ti.grouped(x):
            x[I] = I[0] + I.y
"
        ),
        @"
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 4
                v2: i32 = const 1
                v3: i32 = const 3
                parallel [v0, v2], [v1, v3] (v4: i32, v5: i32) {
                    v6: ref<f32> = field_at @x, [v4, v5]
                    v7: f32 = const 1.0
                    store v6, v7
                    yield []
                }
                parallel_cells tree0.S1 (v8: i32, v9: i32) {
                    v10: vec<2, i32> = tensor [v8, v9]
                    v11: i32 = add v8, v9
                    v12: ref<f32> = field_at @x, [v8, v9]
                    v13: f32 = cast v11
                    store v12, v13
                    yield []
                }
                return []
            }
            "
    );
}

#[test]
fn static_loops_unroll() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        for d in ti.static(range(3)):
            if ti.static(d == 1):
                continue
            n[None] = d
"
        ),
        @"
        kernel @k() {
            v0: ref<i32> = field_at @n, []
            v1: i32 = const 0
            store v0, v1
            v2: ref<i32> = field_at @n, []
            v3: i32 = const 2
            store v2, v3
            return []
        }
        "
    );
}
