//! Arithmetic, compiled, means what `ir/src/eval.rs` says.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::eval::{self, binary, unary};
use aerogel_ir::{BinaryOp, UnaryOp};
use aerogel_runtime::{Args, Buffer};

use crate::{Kernel, buffer_of, expression, f32_at};

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
fn arithmetic_agrees_with_eval() {
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

#[test]
fn casts_agree_with_eval() {
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
fn fast_maths_keeps_infinities() {
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

/// Equal, or for floats both NaN, both zero, or within a few units in the last place.
fn same(found: Scalar, expected: Scalar) -> bool {
    if !expected.ty().is_float() {
        return found == expected;
    }
    let (a, b) = (found.as_f64(), expected.as_f64());
    let tolerance = match expected.ty() {
        ScalarType::BF16 => 8e-3,
        ScalarType::F16 => 2e-3,
        ScalarType::F32 => 5e-7,
        _ => 1e-15,
    };
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs()
}
