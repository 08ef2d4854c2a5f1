//! Functions: inlined ones, `return` inside loops, and real ones.

use _native::host::{Known, Passing, ResultType, Signature};
use _native::lower::{FrontendConfig, ParamBinding, ReturnType, lower_kernel};
use _native::map_host::MapHost;
use aerogel_base::ScalarType::{F32, I32};
use aerogel_ir::{Type, print_module};

use crate::{host, lower_with};

/// The module of a kernel with a parameter `a` that returns an `i32`.
fn module(mut host: MapHost, body: &str) -> String {
    let source = host.source_of(&format!("def k(a):\n    return {body}"));
    let params = [("a".to_owned(), ParamBinding::Scalar(I32))];
    let result = ReturnType::One(Type::I32);
    let config = FrontendConfig::default();
    match lower_kernel(&source, &params, Some(&result), &mut host, &config) {
        Ok(lowered) => print_module(&lowered.module),
        Err(error) => error.render(),
    }
}

fn signature(params: Vec<Passing>) -> Signature {
    let result = Some(ResultType::One(Known::DType(I32)));
    Signature { params, result }
}

fn int() -> Passing {
    Passing::Value(Known::DType(I32))
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
        &[("t", ParamBinding::Scalar(F32))],
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
fn a_return_inside_a_loop_breaks() {
    let mut host = MapHost::new();
    host.func(
        "def first(n):\n    for i in range(8):\n        if i * i > n:\n            return i\n    return -1",
    );
    insta::assert_snapshot!(module(host, "first(a)"), @"
    fast_accumulations

    kernel @k(a: i32) -> i32 {
        v0: i32 = arg a0
        v1: ref<i32> = local
        store v1, v0
        v2: ref<u1> = local
        v3: ref<i32> = local
        v4: i32 = const 0
        v5: i32 = const 8
        v6: i32 = const 1
        for v4, v5, v6, [] (v7: i32) {
            v8: i32 = mul v7, v7
            v9: i32 = load v1
            v10: u1 = gt v8, v9
            if v10 {
                store v3, v7
                v11: u1 = const 1
                store v2, v11
                break []
            } {
                yield []
            }
            yield []
        }
        v12: u1 = load v2
        if v12 {
            yield []
        } {
            v13: i32 = const -1
            store v3, v13
            v14: u1 = const 1
            store v2, v14
            yield []
        }
        v15: i32 = load v3
        return [v15]
    }
    ");
}

#[test]
fn recursion_asks_for_stack() {
    let mut host = MapHost::new();
    host.real_func(
        "def down(n):\n    if n < 1:\n        return 0\n    return down(n - 1)",
        signature(vec![int()]),
    );
    insta::assert_snapshot!(module(host, "down(a)"), @r#"
    fast_accumulations

    func @down(v0: i32, v1: i32) -> i32 {
        v2: i32 = const 496
        v3: i32 = sub v0, v2
        v4: i32 = const 0
        v5: u1 = ge v3, v4
        assert v5, recursion, "`down` calls itself too deeply: the stack is full", []
        v6: ref<i32> = local
        store v6, v1
        v7: i32 = load v6
        v8: i32 = const 1
        v9: u1 = lt v7, v8
        if v9 {
            v10: i32 = const 0
            return [v10]
        } {
            yield []
        }
        v11: i32 = load v6
        v12: i32 = const 1
        v13: i32 = sub v11, v12
        v14: i32 = call @down, [v3, v13]
        yield [v14]
    }

    kernel @k(a: i32) -> i32 {
        v0: i32 = arg a0
        v1: i32 = const 4194304
        v2: i32 = call @down, [v1, v0]
        return [v2]
    }
    "#);
}

#[test]
fn references_travel_as_indices_and_values() {
    let mut host = MapHost::new();
    host.layout("dense i:8 { place x: i32 }");
    host.real_func(
        "def bump(to, by):\n    to += by\n    return by",
        signature(vec![Passing::Reference(I32), int()]),
    );
    host.func("def both(a):\n    b = a\n    return bump(b, 2) + bump(x[a], b)");
    insta::assert_snapshot!(module(host, "both(a)"), @"
    fast_accumulations
    tree0 { dense i:8 { place x: i32 } }
    field @x: i32 = tree0 [S2]

    func @bump(v0: i32, v1: i32, v2: i32) -> i32, i32 {
        v3: i32 = const 480
        v4: i32 = sub v0, v3
        v5: i32 = const 0
        v6: u1 = ge v4, v5
        v7: ref<i32> = local
        store v7, v1
        v8: ref<i32> = local
        store v8, v2
        v9: i32 = load v7
        v10: i32 = load v8
        v11: i32 = add v9, v10
        store v7, v11
        v12: i32 = load v8
        v13: i32 = load v7
        yield [v12, v13]
    }

    func @bump_2(v0: i32, v1: i32, v2: i32) -> i32 {
        v3: i32 = const 448
        v4: i32 = sub v0, v3
        v5: i32 = const 0
        v6: u1 = ge v4, v5
        v7: ref<i32> = field_at @x, [v1]
        v8: ref<i32> = local
        store v8, v2
        v9: i32 = load v8
        v10: i32 = atomic_add v7, v9
        v11: i32 = load v8
        yield [v11]
    }

    kernel @k(a: i32) -> i32 {
        v0: i32 = arg a0
        v1: ref<i32> = local
        store v1, v0
        v2: i32 = load v1
        v3: ref<i32> = local
        store v3, v2
        v4: i32 = load v3
        v5: i32 = const 2
        v6: i32 = const 4194304
        v7: i32, v8: i32 = call @bump, [v6, v4, v5]
        store v3, v8
        v9: i32 = load v1
        v10: ref<i32> = field_at @x, [v9]
        v11: i32 = load v3
        v12: i32 = const 4194304
        v13: i32 = call @bump_2, [v12, v9, v11]
        v14: i32 = add v7, v13
        return [v14]
    }
    ");
}
