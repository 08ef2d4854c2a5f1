//! What a point keeps to itself: variables, components and loops of its own.

use crate::support::{after, body};
use aerogel_tensor::parse;
use aerogel_tensor::passes::{self, Options, n_materialised};

#[test]
fn what_a_point_has_stored_it_reads_from_a_variable() {
    let text = r#"
        in b0 "x": f32[?]
        in b1 "y": f32[?]
        tmp b2 "t": f32[b0:0]
        tmp b3 "u": f32[b0:0]
        tmp b4 "v": f32[b0:0]
        for [b0:0] { b2[i0] = sin(b0[i0]) }
        for [b1:0] { b1[i0] = f32(1) }
        for [b0:0] { b3[i0] = add(b2[i0], b2[i0]) }
        for [b0:0] { b4[i0] = b2[add(i0, i32(1))] zero }
        result b3
        result b4
    "#;
    let program = parse(&after("fuse", text).to_string()).unwrap();
    insta::assert_snapshot!(body(&after("registers", &program.to_string())), @r#"
    for [b0:0] {
      x0 = sin(b0[i0])
      b3[i0] = add(x0, x0)
      b2[i0] = x0
    }
    for [b1:0] {
      b1[i0] = f32(1.0)
    }
    for [b0:0] {
      b4[i0] = b2[add(i0, i32(1))] zero
    }
    result b3
    result b4
    "#);
}

#[test]
fn what_a_branch_keeps_inside_stays_in_it() {
    let text = r#"
        in b0 "x": f32[8]
        in b1 "y": f32[4]
        var x0: i32
        for [8] {
          if lt(i0, i32(4)) {
            loop x0 in i32(0), i32(9), 1 { b1[i0] = add(b1[i0], b0[i0]) }
          }
          b0[i0] = f32(0)
        }
    "#;
    insta::assert_snapshot!(body(&after("registers", text)), @"
    for [8] {
      x1 = b0[i0]
      if lt(i0, i32(4)) {
        loop x0 in i32(0), i32(9), 1 {
          b1[i0] = add(b1[i0], x1)
        }
      }
      x1 = f32(0.0)
      b0[i0] = x1
    }
    ");
}

#[test]
fn short_axes_become_components() {
    let text = r#"
        in b0 "x": f32[?, 2]
        tmp b1 "d": f32[b0:0, b0:0, 2]
        tmp b2 "r": f32[b0:0, b0:0]
        tmp b3 "f": f32[b0:0, 2]
        for [b0:0, b0:0, 2] { b1[i0, i1, i2] = sub(b0[i1, i2], b0[i0, i2]) }
        for [b0:0, b0:0, 2] { b2[i0, i1] add init = mul(b1[i0, i1, i2], b1[i0, i1, i2]) }
        for [b0:0, 2, b0:0] { b3[i0, i1] add init = mul(b1[i0, i2, i1], b2[i0, i2]) }
        result b3
    "#;
    insta::assert_snapshot!(body(&after("components", text)), @r#"
    for [b0:0, b0:0] {
      b4[i0, i1] = sub(b0[i1, i32(0)], b0[i0, i32(0)])
      b5[i0, i1] = sub(b0[i1, i32(1)], b0[i0, i32(1)])
    }
    for [b0:0, b0:0] {
      %0 = b4[i0, i1]
      %1 = b5[i0, i1]
      b2[i0, i1] = add(f32(0.0), add(mul(%0, %0), mul(%1, %1)))
    }
    for [b0:0, 2] {
      b3[i0, i1] = f32(0.0)
    }
    for [b0:0, b0:0] {
      b3[i0, i32(0)] add = mul(b4[i0, i1], b2[i0, i1])
      b3[i0, i32(1)] add = mul(b5[i0, i1], b2[i0, i1])
    }
    result b3
    "#);
    // The whole of it is one loop over pairs, and nothing is kept but the planes of what it reads.
    let mut program = parse(text).unwrap();
    passes::run(&mut program, Options::default(), &mut |_, _, _| {});
    assert_eq!(n_materialised(&program), 3, "{program}");
    insta::assert_snapshot!(body(&program), @"
    for [b0:0] {
      b6[i0] = b0[i0, i32(0)]
      b7[i0] = b0[i0, i32(1)]
    }
    for [b0:0, 2] {
      b3[i0, i1] = f32(0.0)
    }
    for [b0:0] {
      x2 = b3[i0, i32(0)]
      x4 = b3[i0, i32(1)]
      loop x1 in i32(0), add(div(extent(b0:0), i32(512)), i32(1)), 1 {
        x3 = f32(0.0)
        x5 = f32(0.0)
        %0 = mul(x1, i32(512))
        loop x0 in %0, add(%0, min(sub(extent(b0:0), %0), i32(512))), 1 {
          %1 = sub(b6[x0], b6[i0])
          %2 = sub(b7[x0], b7[i0])
          x3 = add(x3, mul(%1, add(f32(0.0), add(mul(%1, %1), mul(%2, %2)))))
          %3 = sub(b7[x0], b7[i0])
          %4 = sub(b6[x0], b6[i0])
          x5 = add(x5, mul(%3, add(f32(0.0), add(mul(%4, %4), mul(%3, %3)))))
        }
        x2 = add(x2, x3)
        x4 = add(x4, x5)
      }
      b3[i0, i32(0)] = x2
      b3[i0, i32(1)] = x4
    }
    result b3
    ");
}

#[test]
fn loops_that_no_neighbour_sees_are_each_points_own() {
    let text = r#"
        var x0: i32
        in b0 "x": f32[?]
        in b1 "n": i32[]
        tmp b2 "t": f32[b0:0]
        tmp b3 "u": f32[b0:0]
        for [b0:0] { b2[i0] = f32(0) }
        loop x0 in i32(0), b1[], 1 {
          for [b0:0] { b3[i0] = mul(b0[i0], cast.f32(x0)) }
          if gt(x0, i32(7)) { break }
          for [b0:0] { b2[i0] = add(b2[i0], b3[i0]) }
        }
        result b2
    "#;
    insta::assert_snapshot!(body(&after("interchange", text)), @r#"
    for [b0:0] {
      b2[i0] = f32(0.0)
    }
    for [b0:0] {
      loop x1 in i32(0), b1[], 1 {
        b3[i0] = mul(b0[i0], cast.f32(x1))
        if gt(x1, i32(7)) {
          break
        }
        b2[i0] = add(b2[i0], b3[i0])
      }
    }
    result b2
    "#);
    let mut program = parse(text).unwrap();
    passes::run(&mut program, Options::default(), &mut |_, _, _| {});
    insta::assert_snapshot!(body(&program), @r#"
    for [b0:0] {
      x2 = f32(0.0)
      loop x1 in i32(0), b1[], 1 {
        if gt(x1, i32(7)) {
          break
        }
        x2 = add(x2, mul(b0[i0], cast.f32(x1)))
      }
      b2[i0] = x2
    }
    result b2
    "#);
    // What neighbours see stays the host's.
    let text = text.replace("b3[i0])", "b3[add(i0, i32(1))] wrap)");
    let kept = after("interchange", &text).to_string();
    assert_eq!(kept, parse(&text).unwrap().to_string());
}

#[test]
fn what_a_point_stores_before_it_reads_it_is_not_kept() {
    let mut program = parse(
        r#"
        in b0 "a": f32[?, 7]
        tmp b1 "t": f32[b0:0]
        tmp b2 "y": f32[b0:0]
        for [b0:0, 7] { b1[i0] add init = b0[i0, i1] }
        for [b0:0] { b2[i0] = sub(b1[i0], f32(1)) }
        result b2
    "#,
    )
    .unwrap();
    passes::run(&mut program, Options::default(), &mut |_, _, _| {});
    assert_eq!(n_materialised(&program), 1);
    insta::assert_snapshot!(body(&program), @r#"
    for [b0:0] {
      x1 = f32(0.0)
      loop x0 in i32(0), i32(7), 1 {
        x1 = add(x1, b0[i0, x0])
      }
      x2 = x1
      b2[i0] = sub(x2, f32(1.0))
    }
    result b2
    "#);
}
