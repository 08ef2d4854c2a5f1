//! What programs print parses again, and means the same.

use aerogel_base::{Scalar, ScalarType, Span};
use aerogel_ir::{BinaryOp, UnaryOp};
use aerogel_tensor::interp::run;
use aerogel_tensor::ir::Array;
use aerogel_tensor::{Accum, DimDef, Outside, Program, parse, verify};

fn floats(shape: &[usize], data: &[f64]) -> Array {
    Array {
        ty: ScalarType::F32,
        shape: shape.to_vec(),
        data: data
            .iter()
            .map(|&x| Scalar::float(ScalarType::F32, x))
            .collect(),
    }
}

/// The sum of each row's squares, then their square roots.
fn norms() -> Program {
    let mut p = Program::default();
    let x = p.input("x", ScalarType::F32, &[None, None]);
    let domain = p.buffers[x].shape.clone();
    let index = p.axes(2);
    let element = p.load(x, index, Outside::Never);
    let square = p.exprs.binary(BinaryOp::Mul, element, element);
    let sums = p.reduce(&domain, 1, Accum::Add, square, Span::NONE);
    let index = p.axes(1);
    let sum = p.load(sums, index, Outside::Never);
    let root = p.exprs.unary(UnaryOp::Sqrt, sum);
    let roots = p.map(&domain[..1], root, Span::NONE);
    p.results.push(roots);
    p
}

#[test]
fn what_is_printed_parses() {
    let program = norms();
    verify(&program).unwrap();
    insta::assert_snapshot!(program, @r#"
    in b0 "x": f32[?, ?]
    tmp b1 "t1": f32[b0:0]
    tmp b2 "t2": f32[b0:0]
    for [b0:0, b0:1] {
      %0 = b0[i0, i1]
      b1[i0] add init = mul(%0, %0)
    }
    for [b0:0] {
      b2[i0] = sqrt(b1[i0])
    }
    result b2
    "#);
    let again = parse(&program.to_string()).unwrap();
    assert_eq!(again.to_string(), program.to_string());
    let x = floats(&[2, 3], &[1.0, 2.0, 2.0, 2.0, 3.0, 6.0]);
    for program in [program, again] {
        let results = run(&program, &mut [x.clone()]).unwrap();
        assert_eq!(results, [floats(&[2], &[3.0, 7.0])]);
    }
}

#[test]
fn loops_branches_and_outsides() {
    let text = r#"
        in b0 "x": i32[5]
        in b1 "n": i32[]
        tmp b2 "bins": i32[3]
        tmp b3 "turns": i32[5]
        var x0: i32
        var x1: i32
        for [5] { b2[rem(b0[i0], i32(4))] zero add init = i32(1) }
        for [5] {
          x1 = i32(0)
          loop x0 in i32(0), b1[], 1 {
            if ge(x0, b0[add(i0, i32(1))] wrap) { break }
            x1 = add(x1, x0)
          }
          b3[i0] = x1
        }
        result b2
        result b3
    "#;
    let program = parse(text).unwrap();
    verify(&program).unwrap();
    let ints = |shape: &[usize], data: &[i32]| Array {
        ty: ScalarType::I32,
        shape: shape.to_vec(),
        data: data.iter().map(|&x| Scalar::i32(x)).collect(),
    };
    let mut inputs = [ints(&[5], &[0, 3, 2, 5, 1]), ints(&[], &[4])];
    let results = run(&program, &mut inputs).unwrap();
    assert_eq!(results[0], ints(&[3], &[1, 2, 1]));
    assert_eq!(results[1], ints(&[5], &[3, 1, 6, 0, 0]));
    assert_eq!(
        parse(&program.to_string()).unwrap().to_string(),
        program.to_string()
    );
}

#[test]
fn what_extents_share_is_written_once() {
    let mut program = Program::default();
    let x = program.input("x", ScalarType::I32, &[None]);
    let mut dim = program.buffers[x].shape[0];
    for _ in 0..200 {
        // By halves, rounded up: each is named twice by the next.
        let n = program.extent(dim);
        let (one, two) = (program.exprs.i32(1), program.exprs.i32(2));
        let more = program.exprs.binary(BinaryOp::Add, n, one);
        let half = program.exprs.binary(BinaryOp::FloorDiv, more, two);
        let rest = program.exprs.binary(BinaryOp::Sub, n, half);
        dim = program.dim(DimDef::Value(rest));
    }
    let ones = program.exprs.i32(1);
    let ones = program.map(&[dim], ones, Span::NONE);
    program.results.push(ones);
    verify(&program).unwrap();
    let text = program.to_string();
    assert!(text.len() < 20_000, "{} bytes", text.len());
    let again = parse(&text).unwrap();
    assert_eq!(again.to_string(), text);
    for program in [&program, &again] {
        let input = Array {
            ty: ScalarType::I32,
            shape: vec![1 << 20],
            data: vec![Scalar::i32(0); 1 << 20],
        };
        let results = run(program, &mut [input]).unwrap();
        assert_eq!(results[0].shape, [0]);
    }
}
