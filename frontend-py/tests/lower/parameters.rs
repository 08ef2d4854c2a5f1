//! Arrays and templates as parameters.

use _native::host::{Handle, Host, Known};
use _native::lower::ParamBinding;
use aerogel_ir::Type;

use crate::{host, lower_with};

#[test]
fn arrays_are_read_only_until_written() {
    let array = ParamBinding::Array {
        clamp: false,
        derivative: false,
        elem: Type::F32,
        ndim: 1,
    };
    insta::assert_snapshot!(lower_with(
        host(),
        "
        def k(a, b):
            for i in a:
                b[i] = a[i] * b.shape[0]
        ",
        &[("a", array.clone()), ("b", array)],
        None
    ), @"
    kernel @k(a: array<f32, 1, read>, b: array<f32, 1>) {
        v0: i32 = const 0
        v1: i32 = array_shape a0, 0
        parallel [v0], [v1] (v2: i32) {
            v3: ref<f32> = array_at a0, [v2]
            v4: f32 = load v3
            v5: i32 = array_shape a1, 0
            v6: f32 = cast v5
            v7: f32 = mul v4, v6
            v8: ref<f32> = array_at a1, [v2]
            store v8, v7
            yield []
        }
        return []
    }
    ");
}

#[test]
fn templates_are_known() {
    let mut host = host();
    let field = host
        .lookup(Handle(1), "x")
        .expect("no error")
        .expect("a field");
    insta::assert_snapshot!(lower_with(
        host,
        "
        def k(f, scale):
            for i, j in f:
                f[i, j] *= scale / 3
        ",
        &[
            ("f", ParamBinding::Template(field)),
            ("scale", ParamBinding::Template(Known::Int(2)))
        ],
        None
    ), @"
            kernel @k() {
                parallel_cells tree0.S1 (v0: i32, v1: i32) {
                    v2: ref<f32> = field_at @x, [v0, v1]
                    v3: f32 = load v2
                    v4: f32 = const 0.6666667
                    v5: f32 = mul v3, v4
                    store v2, v5
                    yield []
                }
                return []
            }
            ");
}
