//! Lowered IR text, compiled, loaded and run.

use std::sync::{Arc, Mutex};

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{Stage, parse_module, verify};
use aerogel_llvm::{Compiled, Jit, OptLevel, compile, target};
use aerogel_runtime::cpu::Pool;
use aerogel_runtime::device::CpuDevice;
use aerogel_runtime::{Args, Buffer, Device, KernelFailure, Launch, LoadedKernel, TreeMemory};

struct Kernel {
    compiled: Compiled,
    loaded: Box<dyn LoadedKernel>,
    roots: Vec<TreeMemory>,
    printed: Mutex<String>,
}

impl Kernel {
    fn new(text: &str) -> Self {
        Self::at(text, 3)
    }

    fn at(text: &str, level: u8) -> Self {
        let module = parse_module(text).unwrap_or_else(|e| panic!("{e:?}"));
        let kernel = module.kernel().unwrap();
        verify(kernel, &module.env, Stage::Lowered).unwrap_or_else(|e| panic!("{e}"));
        let compiled = compile(&module, &target::host(), OptLevel(level), true);
        let device = CpuDevice::new(Arc::new(Pool::new(2)), Box::new(Jit));
        let loaded = device.load(&compiled.code).unwrap();
        let trees = module.env.trees.values();
        let roots = trees
            .map(|tree| TreeMemory::new(tree.clone(), 0).unwrap())
            .collect();
        Self {
            compiled,
            loaded,
            roots,
            printed: Mutex::new(String::new()),
        }
    }

    fn launch(&self, args: &Args<'_>) -> Result<Vec<u64>, KernelFailure> {
        let mut results = vec![0; self.compiled.code.n_results];
        let roots: Vec<&TreeMemory> = self.roots.iter().collect();
        self.loaded.launch(Launch {
            args,
            roots: &roots,
            results: &mut results,
            sink: &self.printed,
            seed: 7,
            trace: None,
        })?;
        Ok(results)
    }

    fn call(&self, args: &[Scalar]) -> Vec<u64> {
        let mut slots = Args::new();
        args.iter().for_each(|a| slots.scalar(a.slot()));
        self.launch(&slots).unwrap()
    }

    fn assembly(&self) -> &str {
        self.compiled.assembly.as_deref().unwrap()
    }

    fn llvm_ir(&self) -> &str {
        self.compiled.llvm_ir.as_deref().unwrap()
    }
}

/// Whether the code works on vectors of the widest kind that the host has.
fn is_wide(assembly: &str) -> bool {
    assembly.contains("zmm") || assembly.contains("ymm") || !cfg!(target_arch = "x86_64")
}

/// A kernel that returns `expr`, the instructions that make `r`.
fn expression(params: &str, result: &str, insts: &str) -> String {
    format!(
        "kernel @f({params}) -> {result} {{
            task serial {{ yield [] }} {{ {insts} return [r] }}
            yield []
        }}"
    )
}

fn buffer_of(values: &[f32]) -> Buffer {
    let buffer = Buffer::zeroed(values.len() * 4).unwrap();
    for (i, &v) in values.iter().enumerate() {
        buffer.write_scalar(i * 4, Scalar::f32(v)).unwrap();
    }
    buffer
}

fn f32_at(buffer: &Buffer, i: usize) -> f32 {
    buffer.read_scalar(ScalarType::F32, i * 4).unwrap().as_f64() as f32
}

const SAXPY: &str = "
    fast_math
    tree0 { dense i:10000 { place x: f32 } dense i:10000 { place y: f32 } }
    kernel @saxpy(a: f32) {
        task range { lo: i32 = const 0  hi: i32 = const 10000  yield [lo, hi] } {
            each (i: i32) {
                a: f32 = arg a0
                r: cell<tree0.S0> = root tree0
                cx: container<tree0.S1> = child tree0.S1, r
                l: i64 = linearize tree0.S1, [i]
                c: cell<tree0.S1> = lookup tree0.S1, cx, l
                px: ref<f32> = child tree0.S2, c
                cy: container<tree0.S3> = child tree0.S3, r
                m: i64 = linearize tree0.S3, [i]
                d: cell<tree0.S3> = lookup tree0.S3, cy, m
                py: ref<f32> = child tree0.S4, d
                x: f32 = load px
                y: f32 = load py
                p: f32 = mul a, x
                s: f32 = add p, y
                one: f32 = const 1.0
                t: f32 = add s, one
                store py, t
                store px, s
                yield []
            }
            yield []
        }
        yield []
    }";

#[test]
fn fields_in_a_parallel_loop() {
    for level in [0, 3] {
        let k = Kernel::at(SAXPY, level);
        k.call(&[Scalar::f32(2.0)]);
        k.call(&[Scalar::f32(2.0)]);
        // After one launch x = 0, y = 1; after two x = 1, y = 2.
        assert_eq!(f32_at(k.roots[0].bytes(), 9999), 1.0);
    }
    let k = Kernel::new(SAXPY);
    assert!(is_wide(k.assembly()), "{}", k.assembly());
}

#[test]
fn arrays_over_rows() {
    let k = Kernel::new(
        "kernel @k(a: array<f32, 2>, b: array<f32, 2, read>) {
            task range {
                lo: i32 = const 1
                n: i32 = array_shape a0, 0
                m: i32 = array_shape a0, 1
                zero: i32 = const 0
                hi: i32 = sub n, lo
                yield [lo, hi, zero, m]
            } {
                each (i: i32, j: i32) {
                    one: i32 = const 1
                    up: i32 = sub i, one
                    down: i32 = add i, one
                    pu: ref<f32> = array_at a1, [up, j]
                    pd: ref<f32> = array_at a1, [down, j]
                    u: f32 = load pu
                    d: f32 = load pd
                    s: f32 = add u, d
                    p: ref<f32> = array_at a0, [i, j]
                    store p, s
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    let (n, m) = (101, 37);
    let input: Vec<f32> = (0..n * m).map(|i| i as f32).collect();
    let (a, b) = (buffer_of(&vec![-1.0; n * m]), buffer_of(&input));
    let mut args = Args::new();
    args.array(&a, &[n, m], 4).unwrap();
    args.array(&b, &[n, m], 4).unwrap();
    k.launch(&args).unwrap();
    for i in 0..n {
        for j in 0..m {
            let expected = if i == 0 || i == n - 1 {
                -1.0
            } else {
                input[(i - 1) * m + j] + input[(i + 1) * m + j]
            };
            assert_eq!(f32_at(&a, i * m + j), expected, "{i} {j}");
        }
    }
    assert!(is_wide(k.assembly()));
    // Nothing is divided but once at the start of a part.
    assert!(k.assembly().matches("div").count() <= 4, "{}", k.assembly());
}

#[test]
fn three_axes_cover_everything_once() {
    let k = Kernel::new(
        "tree0 { dense i:7 j:5 k:11 { place x: i32 } }
        kernel @k() {
            task range {
                z: i32 = const 0
                a: i32 = const 7
                b: i32 = const 5
                c: i32 = const 11
                yield [z, a, z, b, z, c]
            } {
                each (i: i32, j: i32, k: i32) {
                    r: cell<tree0.S0> = root tree0
                    cs: container<tree0.S1> = child tree0.S1, r
                    l: i64 = linearize tree0.S1, [i, j, k]
                    c: cell<tree0.S1> = lookup tree0.S1, cs, l
                    p: ref<i32> = child tree0.S2, c
                    one: i32 = const 1
                    old: i32 = atomic_add p, one
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    for n in 1..4 {
        k.call(&[]);
        for i in 0..7 * 5 * 11 {
            let v = k.roots[0].read_scalar(ScalarType::I32, i * 4).unwrap();
            assert_eq!(v.as_i128(), n);
        }
    }
}

const SUM: &str = "
    kernel @k(a: array<f32, 1, read>) -> f32 {
        task serial { yield [] } {
            z: f32 = const 0.0
            t: ref<f32> = temp_at 0
            store t, z
            yield []
        }
        task range { lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] } {
            acc: ref<f32> = local
            each (i: i32) {
                p: ref<f32> = array_at a0, [i]
                v: f32 = load p
                old: f32 = atomic_add acc, v
                yield []
            }
            s: f32 = load acc
            t: ref<f32> = temp_at 0
            old: f32 = atomic_add t, s
            yield []
        }
        task serial { yield [] } {
            t: ref<f32> = temp_at 0
            r: f32 = load t
            return [r]
        }
        yield []
    }";

#[test]
fn sums_are_vectors() {
    sums(&Kernel::new(SUM));
    let spelled_out = "w: f32 = load acc  u: f32 = add w, v  store acc, u";
    sums(&Kernel::new(
        &SUM.replace("old: f32 = atomic_add acc, v", spelled_out),
    ));
}

fn sums(k: &Kernel) {
    let n = 100_000;
    let a = buffer_of(&vec![1.0; n]);
    let mut args = Args::new();
    args.array(&a, &[n], 4).unwrap();
    for _ in 0..3 {
        let results = k.launch(&args).unwrap();
        assert_eq!(f32::from_bits(results[0] as u32), n as f32);
    }
    assert!(is_wide(k.assembly()), "{}", k.assembly());
}

#[test]
fn smaller_of_a_number_and_nan() {
    // LLVM 22 gives the NaN if it knows that the other operand is none.
    let k = Kernel::new(&expression(
        "x: f32",
        "f32",
        "x: f32 = arg a0
        root: f32 = sqrt x
        half: f32 = const 0.5
        q: f32 = div x, x
        m: f32 = min half, q
        r: f32 = min root, m",
    ));
    let result = k.call(&[Scalar::f32(f32::NAN)])[0];
    assert_eq!(f32::from_bits(result as u32), 0.5);
}

#[test]
fn maxima_are_vectors_and_skip_nan() {
    let k = Kernel::new(
        &SUM.replace("atomic_add", "atomic_max")
            .replace("const 0.0", "const -inf"),
    );
    let mut values: Vec<f32> = (0..10_000).map(|i| (i % 777) as f32 + 0.5).collect();
    values[123] = f32::NAN;
    let a = buffer_of(&values);
    let mut args = Args::new();
    args.array(&a, &[values.len()], 4).unwrap();
    let results = k.launch(&args).unwrap();
    assert_eq!(f32::from_bits(results[0] as u32), 776.5);
    assert!(is_wide(k.assembly()), "{}", k.assembly());
}

#[test]
fn loops_carry_values_and_leave_early() {
    let k = Kernel::new(&expression(
        "n: i32",
        "i32",
        "n: i32 = arg a0
        zero: i32 = const 0
        one: i32 = const 1
        seven: i32 = const 7
        r: i32 = for zero, n, one, [zero] (i: i32, s: i32) {
            skip: u1 = eq i, one
            if skip { continue [s] } { yield [] }
            stop: u1 = gt i, seven
            if stop { break [s] } { yield [] }
            t: i32 = add s, i
            yield [t]
        }",
    ));
    let run = |n| k.call(&[Scalar::i32(n)])[0] as i64;
    assert_eq!(
        [run(0), run(1), run(4), run(8), run(100)],
        [0, 0, 5, 27, 27]
    );
}

#[test]
fn loops_by_other_steps() {
    let k = Kernel::new(&expression(
        "lo: i32, hi: i32, step: i32",
        "i32",
        "lo: i32 = arg a0
        hi: i32 = arg a1
        step: i32 = arg a2
        zero: i32 = const 0
        r: i32 = for lo, hi, step, [zero] (i: i32, s: i32) {
            ten: i32 = const 10
            m: i32 = mul s, ten
            t: i32 = add m, i
            yield [t]
        }",
    ));
    let run = |lo, hi, step| k.call(&[lo, hi, step].map(Scalar::i32))[0] as i64;
    assert_eq!(run(1, 8, 3), 147);
    assert_eq!(run(3, 0, -1), 321);
    assert_eq!(run(9, 0, -4), 951);
    assert_eq!(run(5, 5, 2), 0);
    assert_eq!(run(5, 1, 2), 0);
    assert_eq!(run(i32::MAX - 1, i32::MAX, 2), i64::from(i32::MAX - 1));
}

#[test]
fn while_loops() {
    let k = Kernel::new(&expression(
        "n: i32",
        "i32",
        "n: i32 = arg a0
        zero: i32 = const 0
        one: i32 = const 1
        x: i32, r: i32 = while [n, zero] (x: i32, c: i32) {
            more: u1 = ne x, one
            yield [more]
        } (x: i32, c: i32) {
            two: i32 = const 2
            three: i32 = const 3
            odd: i32 = and x, one
            is: u1 = ne odd, zero
            y: i32 = if is {
                t: i32 = mul x, three
                u: i32 = add t, one
                yield [u]
            } {
                h: i32 = floordiv x, two
                yield [h]
            }
            d: i32 = add c, one
            yield [y, d]
        }",
    ));
    assert_eq!(k.call(&[Scalar::i32(27)])[0], 111);
}

#[test]
fn arithmetic_agrees_with_eval() {
    use aerogel_ir::{BinaryOp, eval};
    let ints = [
        0,
        1,
        -1,
        2,
        -2,
        3,
        7,
        -8,
        31,
        33,
        127,
        -128,
        100,
        i64::MIN,
        i64::MAX,
    ];
    for ty in ScalarType::ALL {
        for &op in BinaryOp::ALL {
            let floats_only = matches!(op, BinaryOp::Atan2);
            let ints_only = matches!(
                op,
                BinaryOp::And
                    | BinaryOp::Or
                    | BinaryOp::Xor
                    | BinaryOp::Shl
                    | BinaryOp::Shr
                    | BinaryOp::UShr
            );
            if ty.is_float() && ints_only || ty.is_int() && floats_only {
                continue;
            }
            let k = Kernel::at(
                &expression(
                    &format!("x: {ty}, y: {ty}"),
                    ty.name(),
                    &format!("x: {ty} = arg a0  y: {ty} = arg a1  r: {ty} = {op} x, y"),
                ),
                1,
            );
            let values: Vec<Scalar> = if ty.is_int() {
                ints.iter().map(|&v| Scalar::int(ty, v.into())).collect()
            } else {
                [
                    0.0,
                    1.0,
                    -1.5,
                    2.0,
                    3.25,
                    -7.0,
                    1000.0,
                    f64::NAN,
                    f64::INFINITY,
                ]
                .map(|v| Scalar::float(ty, v))
                .to_vec()
            };
            for &x in &values {
                for &y in &values {
                    let expected = eval::binary(op, x, y);
                    let found = Scalar::from_slot(ty, k.call(&[x, y])[0]);
                    assert!(
                        same(found, expected),
                        "{x:?} {op} {y:?}: {found:?}, not {expected:?}"
                    );
                }
            }
        }
    }
}

/// Equal, or for floats both NaN, both zero, or within a few units in the last place.
fn same(found: Scalar, expected: Scalar) -> bool {
    if !expected.ty().is_float() {
        return found == expected;
    }
    let (a, b) = (found.as_f64(), expected.as_f64());
    let tolerance = match expected.ty() {
        ScalarType::F16 => 2e-3,
        ScalarType::F32 => 5e-7,
        _ => 1e-15,
    };
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs()
}

#[test]
fn casts_agree_with_eval() {
    use aerogel_ir::eval;
    let numbers = [
        0.0,
        0.5,
        -0.5,
        1.0,
        -1.0,
        3.7,
        -3.7,
        255.0,
        300.7,
        -129.0,
        65504.0,
        3e9,
        -3e9,
        2147483647.0,
        -2147483648.0,
        2147483648.0,
        4294967296.5,
        1e19,
        1.5e19,
        -1e19,
        1e30,
        9.223372036854775e18,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.1,
        1e-5,
        2049.0,
        1.0009765625,
        1.000488281250001,
    ];
    let ints = [
        0,
        1,
        -1,
        127,
        -128,
        255,
        65535,
        16777217,
        i64::MIN,
        i64::MAX,
        1 << 40,
    ];
    for from in ScalarType::ALL {
        for to in ScalarType::ALL {
            let k = Kernel::at(
                &expression(
                    &format!("x: {from}"),
                    to.name(),
                    &format!("x: {from} = arg a0  r: {to} = cast x"),
                ),
                1,
            );
            let values: Vec<Scalar> = if from.is_int() {
                ints.iter().map(|&v| Scalar::int(from, v.into())).collect()
            } else {
                numbers.iter().map(|&v| Scalar::float(from, v)).collect()
            };
            for x in values {
                let expected = eval::cast(x, to);
                let found = Scalar::from_slot(to, k.call(&[x])[0]);
                let nan = to.is_float() && found.as_f64().is_nan() && expected.as_f64().is_nan();
                assert!(
                    nan || found == expected,
                    "{x:?} as {to}: {found:?}, not {expected:?}"
                );
            }
        }
    }
}

#[test]
fn unary_agrees_with_eval() {
    use aerogel_ir::{UnaryOp, eval};
    for ty in ScalarType::ALL {
        for &op in UnaryOp::ALL {
            let ints = matches!(op, UnaryOp::Not | UnaryOp::Popcnt | UnaryOp::Clz);
            let both = matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign);
            if !both && ints != ty.is_int() {
                continue;
            }
            let k = Kernel::at(
                &expression(
                    &format!("x: {ty}"),
                    ty.name(),
                    &format!("x: {ty} = arg a0  r: {ty} = {op} x"),
                ),
                1,
            );
            let values: Vec<Scalar> = if ty.is_int() {
                [0, 1, -1, 5, -8, 127, -128, i64::MAX]
                    .map(|v| Scalar::int(ty, v.into()))
                    .to_vec()
            } else {
                [
                    0.0,
                    0.25,
                    -0.25,
                    0.5,
                    -0.5,
                    1.0,
                    -1.0,
                    1.5,
                    -2.5,
                    10.0,
                    f64::NAN,
                ]
                .map(|v| Scalar::float(ty, v))
                .to_vec()
            };
            for x in values {
                let expected = eval::unary(op, x);
                let found = Scalar::from_slot(ty, k.call(&[x])[0]);
                assert!(
                    same(found, expected),
                    "{op} {x:?}: {found:?}, not {expected:?}"
                );
            }
        }
    }
}

#[test]
fn asserts_end_the_launch() {
    let k = Kernel::new(
        "kernel @k(a: array<i32, 1>) {
            task range { lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] } {
                each (i: i32) {
                    p: ref<i32> = array_at a0, [i]
                    v: i32 = load p
                    five: i32 = const 5
                    ok: u1 = ne v, five
                    assert ok, assertion, \"bad {} at {:03d}\", [v, i]
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    let a = Buffer::zeroed(4000).unwrap();
    let mut args = Args::new();
    args.array(&a, &[1000], 4).unwrap();
    k.launch(&args).unwrap();
    a.write_scalar(4 * 42, Scalar::i32(5)).unwrap();
    let Err(KernelFailure::Check { site, args: values }) = k.launch(&args) else {
        panic!("the assertion holds")
    };
    assert_eq!(k.loaded.sites()[site].render(&values), "bad 5 at 042");
    a.write_scalar(4 * 42, Scalar::i32(0)).unwrap();
    k.launch(&args).unwrap();
}

#[test]
fn prints_and_functions() {
    let k = Kernel::new(
        "func @twice(x: f32) -> f32 {
            zero: f32 = const 0.0
            neg: u1 = lt x, zero
            if neg { return [zero] } { yield [] }
            y: f32 = add x, x
            return [y]
        }
        kernel @k(x: f32) {
            task serial { yield [] } {
                x: f32 = arg a0
                y: f32 = call @twice, [x]
                t: u1 = const 1
                print \"twice {} is {} {}\\n\", [x, y, t]
                yield []
            }
            yield []
        }",
    );
    k.call(&[Scalar::f32(1.25)]);
    k.call(&[Scalar::f32(-1.0)]);
    assert_eq!(
        *k.printed.lock().unwrap(),
        "twice 1.250000 is 2.500000 1\ntwice -1.000000 is 0.000000 1\n"
    );
}

#[test]
fn random_numbers_do_not_depend_on_threads() {
    use aerogel_ir::eval;
    let k = Kernel::new(
        "kernel @k(a: array<f32, 2>) {
            task range {
                z: i32 = const 0
                n: i32 = array_shape a0, 0
                m: i32 = array_shape a0, 1
                yield [z, n, z, m]
            } {
                each (i: i32, j: i32) {
                    u: f32 = random
                    v: f32 = random
                    p: ref<f32> = array_at a0, [i, j]
                    store p, v
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    let (n, m) = (200, 300);
    let a = Buffer::zeroed(n * m * 4).unwrap();
    let mut args = Args::new();
    args.array(&a, &[n, m], 4).unwrap();
    k.launch(&args).unwrap();
    for linear in [0, 1, 299, 300, 59_999] {
        let state = eval::random_state(7, 1, linear);
        let (state, _) = eval::random_step(state);
        let (_, bits) = eval::random_step(state);
        let expected = eval::random_value(bits, ScalarType::F32);
        let found = a.read_scalar(ScalarType::F32, linear as usize * 4).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn atomics_of_every_kind() {
    for (op, ty, expected) in [
        ("atomic_add", "i32", 1000.0),
        ("atomic_add", "f32", 1000.0),
        ("atomic_add", "f64", 1000.0),
        ("atomic_sub", "u64", (u64::MAX - 999) as f64),
        ("atomic_max", "f32", 1.0),
        ("atomic_min", "i8", 0.0),
        ("atomic_mul", "f32", 0.0),
        ("atomic_or", "u8", 1.0),
        ("atomic_exchange", "f32", 1.0),
        ("atomic_or", "u1", 1.0),
        ("atomic_add", "f16", 1000.0),
    ] {
        let k = Kernel::new(&format!(
            "kernel @k(a: array<{ty}, 1>) {{
                task range {{ lo: i32 = const 0  hi: i32 = const 1000  yield [lo, hi] }} {{
                    each (i: i32) {{
                        zero: i32 = const 0
                        p: ref<{ty}> = array_at a0, [zero]
                        one: i32 = const 1
                        v: {ty} = cast one
                        old: {ty} = {op} p, v
                        yield []
                    }}
                    yield []
                }}
                yield []
            }}"
        ));
        let ty = ScalarType::from_name(ty).unwrap();
        let a = Buffer::zeroed(8).unwrap();
        let mut args = Args::new();
        args.array(&a, &[1], ty.bytes() as usize).unwrap();
        k.launch(&args).unwrap();
        assert_eq!(
            a.read_scalar(ty, 0).unwrap().to_f64(),
            expected,
            "{op} {ty}"
        );
    }
}

#[test]
fn updates_are_made_in_one_step() {
    for ty in ["u8", "u16", "u32", "u64", "f32"] {
        let k = Kernel::new(&format!(
            "kernel @k(a: array<{ty}, 1>) {{
                task range {{ lo: i32 = const 0  hi: i32 = const 100  yield [lo, hi] }} {{
                    each (i: i32) {{
                        zero: i32 = const 0
                        p: ref<{ty}> = array_at a0, [zero]
                        one: i32 = const 1
                        v: {ty} = cast one
                        old: {ty} = update p (was: {ty}) {{
                            sum: {ty} = add was, v
                            yield [sum]
                        }}
                        yield []
                    }}
                    yield []
                }}
                yield []
            }}"
        ));
        let ty = ScalarType::from_name(ty).unwrap();
        let a = Buffer::zeroed(8).unwrap();
        let mut args = Args::new();
        args.array(&a, &[1], ty.bytes() as usize).unwrap();
        k.launch(&args).unwrap();
        assert_eq!(a.read_scalar(ty, 0).unwrap().to_f64(), 100.0, "{ty}");
    }
}

#[test]
fn fields_do_not_alias() {
    let k = Kernel::new(
        "tree0 { dense i:64 { place x: f32 } place s: f32 }
        kernel @k() {
            task serial { yield [] } {
                zero: i32 = const 0
                one: i32 = const 1
                n: i32 = const 64
                for zero, n, one, [] (i: i32) {
                    r: cell<tree0.S0> = root tree0
                    cs: container<tree0.S1> = child tree0.S1, r
                    l: i64 = linearize tree0.S1, [i]
                    c: cell<tree0.S1> = lookup tree0.S1, cs, l
                    p: ref<f32> = child tree0.S2, c
                    s: ref<f32> = child tree0.S3, r
                    v: f32 = load s
                    store p, v
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    k.call(&[]);
    let loads = k.llvm_ir().matches("load float").count();
    assert_eq!(loads, 1, "{}", k.llvm_ir());
}

#[test]
fn fast_maths_keeps_infinities() {
    use aerogel_ir::eval::{binary, unary};
    use aerogel_ir::{BinaryOp, UnaryOp};
    let k = Kernel::new(
        "fast_math
        kernel @k(a: array<f32, 1>, b: array<f32, 1>, c: array<f32, 1>, d: array<f32, 1>) {
            task range { lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] } {
                each (i: i32) {
                    p: ref<f32> = array_at a0, [i]
                    x: f32 = load p
                    one: f32 = const 1.0
                    q: f32 = div one, x
                    r: f32 = rsqrt x
                    s: f32 = sqrt x
                    pq: ref<f32> = array_at a1, [i]
                    pr: ref<f32> = array_at a2, [i]
                    ps: ref<f32> = array_at a3, [i]
                    store pq, q
                    store pr, r
                    store ps, s
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    let numbers = [
        0.0,
        f32::INFINITY,
        -1.0,
        f32::NAN,
        1.0,
        4.0,
        3.0,
        1e30,
        1e-30,
        f32::NEG_INFINITY,
        2e38,
    ];
    let input: Vec<f32> = numbers.iter().copied().cycle().take(640).collect();
    let a = buffer_of(&input);
    let outs: Vec<Buffer> = (0..3).map(|_| buffer_of(&vec![0.0; 640])).collect();
    let mut args = Args::new();
    for buffer in std::iter::once(&a).chain(&outs) {
        args.array(buffer, &[640], 4).unwrap();
    }
    k.launch(&args).unwrap();
    for (i, &x) in input.iter().enumerate() {
        let x = Scalar::f32(x);
        for (out, expected) in outs.iter().zip([
            binary(BinaryOp::Div, Scalar::f32(1.0), x),
            unary(UnaryOp::Rsqrt, x),
            unary(UnaryOp::Sqrt, x),
        ]) {
            let found = Scalar::f32(f32_at(out, i));
            assert!(
                same(found, expected),
                "{i}: {x:?}: {found:?}, not {expected:?}"
            );
        }
    }
}

#[test]
fn long_loops_in_order() {
    // More than one piece, and a `break` in the third.
    let k = Kernel::new(
        "kernel @k(n: i32) -> i64 {
            task range serial { lo: i32 = const 5  hi: i32 = arg a0  yield [lo, hi] } {
                sum: ref<i64> = temp_at 0
                zero: i64 = const 0
                store sum, zero
                each (i: i32) {
                    w: i64 = cast i
                    old: i64 = atomic_add sum, w
                    limit: i32 = const 10000000
                    stop: u1 = eq i, limit
                    if stop { break [] } { yield [] }
                    yield []
                }
                yield []
            }
            task serial { yield [] } {
                sum: ref<i64> = temp_at 0
                r: i64 = load sum
                return [r]
            }
            yield []
        }",
    );
    let sum = |n: u64| n * (n + 1) / 2 - 10;
    assert_eq!(k.call(&[Scalar::i32(9_000_001)])[0], sum(9_000_000));
    assert_eq!(k.call(&[Scalar::i32(i32::MAX)])[0], sum(10_000_000));
    assert_eq!(k.call(&[Scalar::i32(3)])[0], 0);
}

#[test]
fn sums_into_an_array_stay_in_registers() {
    // The inner loop adds to one element: with arrays apart there is nothing to read it again for.
    let k = Kernel::new(
        "fast_math arrays_apart
        kernel @k(c: array<f32, 1>, a: array<f32, 2, read>) {
            task range { lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] } {
                each (i: i32) {
                    zero: i32 = const 0
                    one: i32 = const 1
                    n: i32 = array_shape a1, 1
                    pc: ref<f32> = array_at a0, [i]
                    for zero, n, one, [] (j: i32) {
                        pa: ref<f32> = array_at a1, [i, j]
                        v: f32 = load pa
                        s: f32 = load pc
                        t: f32 = add s, v
                        store pc, t
                        yield []
                    }
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    let a = buffer_of(&[1.0; 1000]);
    let c = buffer_of(&[0.5; 10]);
    let mut args = Args::new();
    args.array(&c, &[10], 4).unwrap();
    args.array(&a, &[10, 100], 4).unwrap();
    k.launch(&args).unwrap();
    assert_eq!(f32_at(&c, 9), 100.5);
    assert!(is_wide(k.assembly()), "{}", k.assembly());
    let mut same = Args::new();
    same.array(&a, &[10], 4).unwrap();
    same.array(&a, &[10, 100], 4).unwrap();
    assert_eq!(k.launch(&same), Err(KernelFailure::Overlap));
}
