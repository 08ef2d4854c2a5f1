//! Source text in, IR text out, without Python.

mod errors;
mod functions;
mod structs;

use _native::host::{Known, TensorShape};
use _native::lower::{FrontendConfig, ParamBinding, ReturnType, lower_kernel};
use _native::map_host::MapHost;
use aerogel_base::ScalarType;
use aerogel_ir::{Stage, Type, print_function, verify};

fn host() -> MapHost {
    let mut host = MapHost::new();
    host.layout("dense i:8 j:8 { place x: f32 place y: f32 } place n: i32");
    host.tensor_field(
        "v",
        TensorShape::Vector(2),
        "dense i:16 { place a: f32 place b: f32 }",
    );
    host
}

/// The IR of a kernel, or its errors.
fn lower_with(
    mut host: MapHost,
    text: &str,
    params: &[(&str, ParamBinding)],
    result: Option<Type>,
) -> String {
    let text: String = unindent(text);
    let source = host.source_of(&text);
    let params: Vec<(String, ParamBinding)> = params
        .iter()
        .map(|(name, binding)| (name.to_string(), binding.clone()))
        .collect();
    let result = result.map(ReturnType::One);
    let config = FrontendConfig {
        debug: true,
        ..FrontendConfig::default()
    };
    match lower_kernel(&source, &params, result.as_ref(), &mut host, &config) {
        Ok(lowered) => {
            let (kernel, env) = (
                lowered.module.kernel().expect("a kernel"),
                &lowered.module.env,
            );
            let text = print_function(kernel, env);
            if let Err(error) = verify(kernel, env, Stage::Structured) {
                panic!("{error:?}\n{text}");
            }
            text
        }
        Err(error) => error.render(),
    }
}

fn lower(text: &str) -> String {
    lower_with(host(), text, &[], None)
}

fn unindent(text: &str) -> String {
    let text = text.trim_start_matches('\n');
    let indent = text.len() - text.trim_start().len();
    text.lines()
        .map(|line| line.get(indent..).unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

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

#[test]
fn functions_are_inlined_with_their_own_scope() {
    let mut host = host();
    host.func("def f(a, b):\n    a += b\n    if a > 1.0:\n        return a, 1\n    return a, b\n");
    host.func("def g(p: ti.template()):\n    p += 1\n");
    insta::assert_snapshot!(lower_with(
        host,
        "
        def k(t) -> ti.f32:
            a = t
            g(a)
            r, s = f(a, 2)
            return r + s
        ",
        &[("t", ParamBinding::Scalar(ScalarType::F32))],
        Some(Type::F32)
    ), @"
    kernel @k(t: f32) -> f32 {
        v0: f32 = arg a0
        v1: ref<f32> = local
        store v1, v0
        v2: f32 = load v1
        v3: f32 = const 1.0
        v4: f32 = add v2, v3
        store v1, v4
        v5: f32 = load v1
        v6: ref<f32> = local
        store v6, v5
        v7: i32 = const 2
        v8: ref<i32> = local
        store v8, v7
        v9: f32 = load v6
        v10: i32 = load v8
        v11: f32 = cast v10
        v12: f32 = add v9, v11
        store v6, v12
        v13: f32 = load v6
        v14: f32 = const 1.0
        v15: u1 = gt v13, v14
        v16: f32, v17: i32 = if v15 {
            v18: f32 = load v6
            v19: i32 = const 1
            yield [v18, v19]
        } {
            v20: f32 = load v6
            v21: i32 = load v8
            yield [v20, v21]
        }
        v22: ref<f32> = local
        store v22, v16
        v23: ref<i32> = local
        store v23, v17
        v24: f32 = load v22
        v25: i32 = load v23
        v26: f32 = cast v25
        v27: f32 = add v24, v26
        return [v27]
    }
    ");
}

#[test]
fn arrays_are_read_only_until_written() {
    let array = ParamBinding::Array {
        clamp: false,
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
    let field = {
        let mut host = host();
        aerogel_host_lookup(&mut host, "x")
    };
    insta::assert_snapshot!(lower_with(
        host(),
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

fn aerogel_host_lookup(host: &mut MapHost, name: &str) -> Known {
    use _native::host::{Handle, Host};
    host.lookup(Handle(1), name)
        .expect("no error")
        .expect("it is there")
}
