//! What operations record, and what it means.

use aerogel_base::{Scalar, ScalarType};
use aerogel_tensor::interp::run;
use aerogel_tensor::ir::Array;
use aerogel_tensor::record::{Mapped, Margin, Mode, RecordError, Recording};
use aerogel_tensor::{Accum, Buffer, verify};

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
    agree b0:1 = b1:0 "`add`: sizes {} and {} along one axis"
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
    let zero = r.program.size(0);
    let out = r
        .pad(
            moved,
            &[(zero, zero), (zero, zero), (one, zero)],
            Margin::Edge,
        )
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
    let near = r
        .gather(b[0], 0, &[b[1]], Mode::Clamp, false, None)
        .unwrap();
    assert_eq!(
        result(r.clone(), near, &[&x, &at]),
        ints(&[4], &[30, 10, 10, 30])
    );
    let one = r.full(&[], Scalar::i32(1));
    let sums = r
        .scatter(b[0], &[b[1]], one, Some(Accum::Add), Mode::Zero)
        .unwrap();
    assert_eq!(result(r, sums, &[&x, &at]), ints(&[3], &[11, 20, 31]));
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

/// What is said of the numbers along the first axis of an input, done for all.
fn mapped(text: &str, axis: usize) -> String {
    let mut program = aerogel_tensor::parse(text).unwrap();
    verify(&program).unwrap();
    let body = std::mem::take(&mut program.body);
    let results = std::mem::take(&mut program.results);
    let mut r = Recording::default();
    r.program = program;
    let find = |name: &str| {
        let mut all = r.program.buffers.iter();
        all.find(|(_, def)| def.name == name).unwrap().0
    };
    let pair = Mapped {
        one: find("one"),
        all: find("all"),
        axis,
    };
    let n = r.how_many(&[pair], &["all".to_owned()]).unwrap();
    let is_own = |b: Buffer| b != pair.all;
    let made = r.vmap(&body, &[pair], n, &results, &is_own).unwrap();
    let made = results.iter().zip(made);
    r.program.results = made
        .map(|(&one, place)| place.map_or(one, |p| p.0))
        .collect();
    verify(&r.program).unwrap();
    let text = r.program.to_string();
    let at = text.find("for ").unwrap();
    text[at..].to_owned()
}

#[test]
fn what_is_said_of_one_is_done_for_all() {
    let text = mapped(
        r#"
        in b0 "all": f32[4, ?]
        in b1 "w": f32[4, 3]
        tmp b2 "one": f32[4]
        tmp b3 "twice": f32[4, 3]
        tmp b4 "scaled": f32[4, 3]
        tmp b5 "sum": f32[3]
        tmp b6 "matrix": f32[4, 3]
        for [4, 3] { b3[i0, i1] = mul(b1[i0, i1], f32(2)) }
        for [4, 3] { b4[i0, i1] = mul(b2[i0], b3[i0, i1]) }
        for [3, 4] { b5[i0] add init = b4[i1, i0] }
        result b5
        result b3
    "#,
        1,
    );
    insta::assert_snapshot!(text, @r#"
    for [4, 3] {
      b3[i0, i1] = mul(b1[i0, i1], f32(2.0))
    }
    for [b0:1, 4, 3] {
      b7[i0, i1, i2] = mul(b0[i1, i0], b3[i1, i2])
    }
    for [b0:1, 3, 4] {
      b8[i0, i1] add init = b7[i0, i2, i1]
    }
    result b8
    result b3
    "#);
}

#[test]
fn branches_and_loops_become_masks() {
    let text = mapped(
        r#"
        in b0 "all": i32[?]
        tmp b1 "one": i32[]
        tmp b2 "n": i32[]
        tmp b3 "is_done": u1[]
        tmp b4 "x": i32[]
        var x0: i32
        for [] { b2[] = i32(0) }
        for [] { b4[] = b1[] }
        loop x0 in i32(0), i32(100), 1 {
          for [] { b3[] = eq(b4[], i32(1)) }
          if b3[] {
            break
          }
          for [] { b4[] = div(b4[], i32(2)) }
          for [] { b2[] add= i32(1) }
        }
        result b2
    "#,
        0,
    );
    insta::assert_snapshot!(text, @r#"
    for [b0:0] {
      b7[i0] = i32(0)
    }
    for [b0:0] {
      b5[i0] = b0[i0]
    }
    for [b0:0] {
      b8[i0] = u1(1)
    }
    loop x0 in i32(0), i32(100), 1 {
      for [b0:0] {
        b9[i0] = b8[i0]
      }
      for [b0:0] {
        b6[i0] = eq(b5[i0], i32(1))
      }
      for [b0:0] {
        b10[i0] = b6[i0]
      }
      for [b0:0] {
        b11[i0] = and(b9[i0], b10[i0])
      }
      for [b0:0] {
        b9[i0] = and(b9[i0], not(b11[i0]))
      }
      for [b0:0] {
        b8[i0] = and(b8[i0], not(b11[i0]))
      }
      for [b0:0] {
        if b9[i0] {
          b5[i0] = div(b5[i0], i32(2))
        }
      }
      for [b0:0] {
        if b9[i0] {
          b7[i0] add = i32(1)
        }
      }
      for [b0:0] {
        b12[] or init = b8[i0]
      }
      if not(b12[]) {
        break
      }
    }
    result b7
    "#);
}
