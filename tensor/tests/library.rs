//! What libraries do for plans is what the interpreter does.

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::{Compiler, Config};
use aerogel_tensor::interp::run;
use aerogel_tensor::ir::Array;
use aerogel_tensor::passes::Options;
use aerogel_tensor::{Codes, Operand, Plan, Settings, parse};

fn array(ty: ScalarType, shape: &[usize], step: usize) -> Array {
    let n = shape.iter().product();
    let number = |k: usize| {
        let n = (k * step % 17) as i32 - 8;
        if ty.is_float() {
            Scalar::float(ty, n.into())
        } else {
            Scalar::int(ty, n.into())
        }
    };
    Array {
        ty,
        shape: shape.to_vec(),
        data: (0..n).map(number).collect(),
    }
}

/// Runs a program twice, since the second run takes memory that the first has left.
fn check(text: &str, inputs: &[Array]) {
    let program = parse(text).unwrap();
    let expected = run(&program, &mut inputs.to_vec()).unwrap();
    let compiler = Compiler::new(Config::default());
    let settings = Settings {
        compiler: &compiler,
        fast_math: aerogel_ir::FastMath::Off,
        options: Options::default(),
        codes: &Codes::default(),
        most_kept: u64::MAX,
        stamp: 0,
        backend: 0,
        gemm: None,
        profiler: None,
    };
    let plan = Plan::new(program, settings).unwrap();
    for _ in 0..2 {
        let operands: Vec<Operand> = inputs.iter().map(|a| Operand::of(a).unwrap()).collect();
        let found = plan.run(&operands).unwrap();
        let found: Vec<Array> = found.iter().map(|o| o.to_array().unwrap()).collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn products_of_matrices() {
    for ty in ["f32", "f64", "f16", "i32"] {
        let text = format!(
            r#"
            in b0 "a": {ty}[2, ?, 5]
            in b1 "b": {ty}[2, 5, 7]
            tmp b2 "product": {ty}[2, b0:1, 7]
            tmp b3 "y": {ty}[2, b0:1, 7]
            call matmul(b2) = (b0, b1)
            for [2, b0:1, 7] {{ b3[i0, i1, i2] = add(b2[i0, i1, i2], {ty}(1)) }}
            result b3
        "#
        );
        let ty = ScalarType::from_name(ty).unwrap();
        for n in [0, 1, 3] {
            check(&text, &[array(ty, &[2, n, 5], 3), array(ty, &[2, 5, 7], 7)]);
        }
    }
}

/// `x` of floats that are hard to order: both zeros, NaN of both signs, infinities, numbers below all others.
fn hard(ty: ScalarType, n: usize) -> Array {
    let numbers = [
        0.0,
        -0.0,
        f64::NAN,
        1.0,
        f64::INFINITY,
        -1.0,
        -f64::NAN,
        f64::NEG_INFINITY,
        1e-7,
    ];
    Array {
        ty,
        shape: vec![3, n],
        data: (0..3 * n)
            .map(|k| Scalar::float(ty, numbers[k * 7 % numbers.len()]))
            .collect(),
    }
}

#[test]
fn numbers_in_order() {
    for ty in [
        "f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64",
    ] {
        for (name, place) in [("sort", "i32"), ("sort_down", "i64")] {
            let text = format!(
                r#"
                in b0 "x": {ty}[3, ?]
                tmp b1 "values": {ty}[3, b0:1]
                tmp b2 "order": {place}[3, b0:1]
                call {name}(b1, b2) = (b0)
                result b1
                result b2
            "#
            );
            let ty = ScalarType::from_name(ty).unwrap();
            for n in [0, 1, 12, 100] {
                check(&text, &[array(ty, &[3, n], 5)]);
                if ty.is_float() {
                    check(&text, &[hard(ty, n)]);
                } else {
                    let last = 1 << (ty.bits() - 1);
                    let ends = [-1, last, last - 1, 0];
                    let data = (0..3 * n).map(|k| Scalar::int(ty, ends[k * 3 % 4]));
                    let data = data.collect();
                    check(
                        &text,
                        &[Array {
                            ty,
                            shape: vec![3, n],
                            data,
                        }],
                    );
                }
            }
        }
    }
}

#[test]
fn some_rows_of_a_product() {
    let text = r#"
        in b0 "a": f32[2, ?, 5]
        in b1 "b": f32[2, 5, 7]
        in b2 "first": i32[]
        tmp b3 "some": f32[2, 4, 7]
        for [2, 4, 7] { b3[i0, i1, i2] = f32(-1) }
        call matmul_rows(b3) = (b0, b1, b2)
        result b3
    "#;
    let ty = ScalarType::F32;
    for (n, first) in [(9, 0), (9, 4), (9, 8), (3, 0)] {
        let mut at = array(ScalarType::I32, &[], 1);
        at.data[0] = Scalar::i32(first);
        check(
            text,
            &[array(ty, &[2, n, 5], 3), array(ty, &[2, 5, 7], 7), at],
        );
    }
}
