//! What operations record, and what it means.

use aerogel_base::{Scalar, ScalarType};
use aerogel_tensor::interp::{Array, run};
use aerogel_tensor::record::{Margin, RecordError, Recording};
use aerogel_tensor::{Accum, Buffer, Outside, verify};

fn floats(shape: &[usize], data: &[f64]) -> Array {
    let data = data.iter().map(|&x| Scalar::float(ScalarType::F64, x));
    Array {
        ty: ScalarType::F64,
        shape: shape.to_vec(),
        data: data.collect(),
    }
}

fn ints(shape: &[usize], data: &[i32]) -> Array {
    Array {
        ty: ScalarType::I32,
        shape: shape.to_vec(),
        data: data.iter().map(|&x| Scalar::i32(x)).collect(),
    }
}

/// A recording with inputs of unknown extents.
fn with(arrays: &[&Array]) -> (Recording, Vec<Buffer>) {
    let mut r = Recording::default();
    let inputs = arrays.iter().map(|a| {
        let shape = vec![None; a.shape.len()];
        r.program.input("x", a.ty, &shape)
    });
    let inputs = inputs.collect();
    (r, inputs)
}

fn result(mut r: Recording, out: Buffer, arrays: &[&Array]) -> Array {
    r.program.results.push(out);
    verify(&r.program).unwrap();
    let mut inputs: Vec<Array> = arrays.iter().map(|&a| a.clone()).collect();
    run(&r.program, &mut inputs).unwrap().remove(0)
}

#[test]
fn an_operation_is_a_statement() {
    let (mut r, x) = with(&[&floats(&[2, 3], &[0.0; 6]), &floats(&[3], &[0.0; 3])]);
    let sum = r.binary("add", x[0], x[1]).unwrap();
    let turned = r.permute(sum, &[1, 0]).unwrap();
    r.reduce("sum", turned, Some(&[1]), true).unwrap();
    insta::assert_snapshot!(r.program, @r#"
    in b0 "x": f64[?, ?]
    in b1 "x": f64[?]
    tmp b2 "t2": f64[b0:0, b0:1]
    tmp b3 "t3": f64[b0:1, b0:0]
    tmp b4 "t4": f64[b0:1, 1]
    agree b0:1 = b1:0 "`add`: extents {} and {} along one axis"
    for [b0:0, b0:1] {
      b2[i0, i1] = add(b0[i0, i1], b1[i1])
    }
    for [b0:1, b0:0] {
      b3[i0, i1] = b2[i1, i0]
    }
    for [b0:1, b0:0] {
      b4[i0, i32(0)] add init = b3[i0, i1]
    }
    "#);
}

#[test]
fn equal_operations_are_one() {
    let (mut r, x) = with(&[&floats(&[2], &[0.0; 2])]);
    let a = r.binary("mul", x[0], x[0]).unwrap();
    assert_eq!(r.binary("mul", x[0], x[0]).unwrap(), a);
    r.forget();
    assert_ne!(r.binary("mul", x[0], x[0]).unwrap(), a);
}

#[test]
fn views_of_unknown_extents() {
    let x = ints(&[2, 3], &[1, 2, 3, 4, 5, 6]);
    let (mut r, b) = with(&[&x]);
    let n = r.shape(b[0]);
    let turned = r.permute(b[0], &[1, 0]).unwrap();
    let back = r.flip(turned, &[0]).unwrap();
    let one = r.program.size(1);
    let wide = r.reshape(back, &[n[1], one, n[0]]).unwrap();
    let moved = r.roll(wide, &[1], &[2]).unwrap();
    let out = r
        .pad(moved, &[(0, 0), (0, 0), (1, 0)], Margin::Edge)
        .unwrap();
    assert_eq!(
        result(r, out, &[&x]),
        ints(&[3, 1, 3], &[6, 6, 3, 5, 5, 2, 4, 4, 1])
    );
}

#[test]
fn reductions_scans_and_places() {
    let x = floats(&[2, 3], &[3.0, f64::NAN, 1.0, -2.0, 7.0, 7.0]);
    let (mut r, b) = with(&[&x]);
    let place = r.arg_reduce("argmax", b[0], Some(1), false).unwrap();
    assert_eq!(result(r.clone(), place, &[&x]), ints(&[2], &[1, 1]));
    let least = r.reduce("min", b[0], Some(&[0]), false).unwrap();
    let least = result(r.clone(), least, &[&x]);
    assert!(least.data[1].as_f64().is_nan());
    assert_eq!(
        (least.data[0].as_f64(), least.data[2].as_f64()),
        (-2.0, 1.0)
    );
    let y = ints(&[4], &[1, 2, 3, 4]);
    let (mut r, b) = with(&[&y]);
    let sums = r.scan(Accum::Add, b[0], 0, true).unwrap();
    assert_eq!(result(r, sums, &[&y]), ints(&[4], &[0, 1, 3, 6]));
}

#[test]
fn gathers_and_scatters() {
    let (x, at) = (ints(&[3], &[10, 20, 30]), ints(&[4], &[2, -1, 0, 5]));
    let (mut r, b) = with(&[&x, &at]);
    let near = r.gather(b[0], 0, &[b[1]], Outside::Clamp, false).unwrap();
    assert_eq!(
        result(r.clone(), near, &[&x, &at]),
        ints(&[4], &[30, 10, 10, 30])
    );
    let one = r.full(&[], Scalar::i32(1));
    let sums = r
        .scatter(b[0], &[b[1]], one, Some(Accum::Add), Outside::Zero)
        .unwrap();
    assert_eq!(result(r, sums, &[&x, &at]), ints(&[3], &[11, 20, 32]));
}

#[test]
fn sums_over_shared_indices() {
    let (x, y) = (ints(&[2, 2], &[1, 2, 3, 4]), ints(&[2, 2], &[5, 6, 7, 8]));
    let (mut r, b) = with(&[&x, &y]);
    let out = r
        .einsum(&[(b[0], vec![0, 1]), (b[1], vec![1, 2])], &[2, 0])
        .unwrap();
    assert_eq!(
        result(r.clone(), out, &[&x, &y]),
        ints(&[2, 2], &[19, 43, 22, 50])
    );
    let trace = r.einsum(&[(b[0], vec![0, 0])], &[]).unwrap();
    assert_eq!(result(r, trace, &[&x, &y]), ints(&[], &[5]));
}

#[test]
fn what_does_not_fit_says_where() {
    let mut r = Recording::default();
    let a = r.program.input("a", ScalarType::F32, &[Some(2), Some(3)]);
    let b = r.program.input("b", ScalarType::F32, &[Some(4)]);
    let error = r.binary("add", a, b).unwrap_err();
    insta::assert_snapshot!(error, @"`add`: axis 1 of operand 0 has 3 elements, axis 0 of operand 1 has 4; the shapes are (2, 3) and (4,)");
    let error = r.reduce("sum", a, Some(&[5]), false).unwrap_err();
    assert!(matches!(
        error,
        RecordError::Axis {
            axis: 5,
            rank: 2,
            ..
        }
    ));
    let error = r.unary("not", a).unwrap_err();
    insta::assert_snapshot!(error, @"`not` takes integers, not `f32`");
    assert!(r.program.body.is_empty());
}
