//! Source text in, IR text out, without Python.

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

macro_rules! show {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(lower($text));
        }
    };
}

show!(
    stencil,
    "
    def k():
        for i, j in x:
            if 1 <= i < 7:
                y[i, j] = 4.0 * x[i, j] - x[i - 1, j]
            else:
                y[i, j] = 0
"
);

show!(
    a_variable_keeps_its_first_type,
    "
    def k():
        a = 1
        a = 2.7
        a += 2.7
        a *= 2.7
"
);

show!(
    fields_are_changed_atomically,
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
);

show!(
    nested_loops_are_serial,
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
);

show!(
    ndrange_and_grouped,
    "
    def k():
        for i, j in ti.ndrange(4, (1, 3)):
            x[i, j] = 1
        for I in ti.grouped(x):
            x[I] = I[0] + I.y
"
);

show!(
    static_loops_unroll,
    "
    def k():
        for d in ti.static(range(3)):
            if ti.static(d == 1):
                continue
            n[None] = d
"
);

show!(
    swap_and_unpack,
    "
    def k():
        a, b = 1, 2.5
        a, b = b, a
        p, q = v[0]
        x[0, 0] = p
"
);

show!(
    vectors,
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
);

show!(
    short_circuit,
    "
    def k():
        for i in range(8):
            if i > 0 and x[i - 1, 0] > 0.0 or not i:
                x[i, 0] = 1 if i < 3 else 2.5
"
);

show!(
    printing,
    "
    def k():
        print('p =', v[0], f'{x[0, 0]:.3f}', 3, end='')
        assert n[None] > 0, f'n is {n[None]}'
"
);

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
    ));
}

#[test]
fn arrays_are_read_only_until_written() {
    let array = ParamBinding::Array {
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
    ));
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
    ));
}

fn aerogel_host_lookup(host: &mut MapHost, name: &str) -> Known {
    use _native::host::{Handle, Host};
    host.lookup(Handle(1), name)
        .expect("no error")
        .expect("it is there")
}

show!(
    all_errors_are_reported_together,
    "
    def k():
        a = undefined + 1
        b = a * 2
        x[0] = 1
        for i in range(4):
            break
            c = v[i] + ti.Vector([1, 2, 3])
        print(c)
"
);

show!(
    assignment_errors,
    "
    def k():
        for i in range(4):
            i += 1
            if x[i, 0]:
                pass
        s = 0
        for s in range(3):
            pass
        for i, j in ti.ndrange(2, 2, 2):
            pass
        lambda: 1
        with x:
            pass
        y[0, 0] = ti.sin(n[None])
        z = 1.5 & 2
        q = n[None] & 1.5
"
);
