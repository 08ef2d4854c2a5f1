//! Each pass, before and after.

mod support;

use aerogel_tensor::passes::{self, Options, PASSES, Product, Products, n_materialised};
use aerogel_tensor::{Program, parse, verify};
use support::{after, body};

/// A program after the passes up to that of products, which makes them of all that may be.
fn with_products(products: Products, text: &str) -> Program {
    let mut program = parse(text).unwrap();
    verify(&program).unwrap();
    let options = Options {
        products,
        many: 1,
        ..Options::default()
    };
    for pass in PASSES {
        (pass.run)(&mut program, options);
        verify(&program).unwrap();
        if pass.name == "products" {
            return program;
        }
    }
    unreachable!("there is such a pass");
}

#[test]
fn values_are_computed_where_they_are_read() {
    let program = after(
        "inline",
        r#"
        in b0 "x": f32[?, 4]
        tmp b1 "square": f32[b0:0, 4]
        tmp b2 "y": f32[4, b0:0]
        for [b0:0, 4] { b1[i0, i1] = mul(b0[i0, i1], b0[i0, i1]) }
        for [4, b0:0] { b2[i0, i1] = add(b1[i1, i0], b1[i1, add(i0, i32(1))] zero) }
        result b2
    "#,
    );
    insta::assert_snapshot!(body(&program), @r#"
    for [b0:0, 4] {
      %0 = b0[i0, i1]
      b1[i0, i1] = mul(%0, %0)
    }
    for [4, b0:0] {
      %1 = b0[i1, i0]
      %2 = add(i0, i32(1))
      %3 = b0[i1, max(min(%2, i32(3)), i32(0))]
      b2[i0, i1] = add(mul(%1, %1), select(and(ge(%2, i32(0)), lt(%2, i32(4))), mul(%3, %3), f32(0.0)))
    }
    result b2
    "#);
}

#[test]
fn what_has_changed_is_not_computed_again() {
    let program = after(
        "inline",
        r#"
        in b0 "x": f32[?]
        tmp b1 "old": f32[b0:0]
        tmp b2 "y": f32[b0:0]
        for [b0:0] { b1[i0] = neg(b0[i0]) }
        for [b0:0] { b0[i0] = f32(0) }
        for [b0:0] { b2[i0] = add(b1[i0], b0[i0]) }
        result b2
    "#,
    );
    insta::assert_snapshot!(body(&program), @r#"
    for [b0:0] {
      b1[i0] = neg(b0[i0])
    }
    for [b0:0] {
      b0[i0] = f32(0.0)
    }
    for [b0:0] {
      b2[i0] = add(b1[i0], b0[i0])
    }
    result b2
    "#);
    let why: Vec<String> = program
        .kept
        .iter()
        .map(|(b, why)| format!("{b}: {why}"))
        .collect();
    assert_eq!(
        why,
        [
            "b2: it is asked for",
            "b1: what it is made of changes before it is read"
        ]
    );
}

#[test]
fn an_index_that_may_be_an_error_is_asked_for_as_often_as_it_was() {
    let is_inlined = |extent: &str, value: &str| {
        let text = format!(
            r#"
        in b0 "x": f32[?]
        in b1 "at": i32[4]
        tmp b2 "t": f32[4]
        tmp b3 "y": f32[{extent}]
        for [4] {{ b2[i0] = b0[b1[i0] error] }}
        for [{extent}] {{ b3[i0] = {value} }}
        result b3
    "#
        );
        let program = after("inline", &text);
        !body(&program).replace("b2[i0] =", "").contains("b2[")
    };
    assert!(is_inlined("4", "neg(b2[i0])"));
    assert!(is_inlined(
        "4",
        "select(lt(b2[i0], f32(0)), f32(0), b2[i0])"
    ));
    // Only some of the elements are read, or those that a choice asks for.
    assert!(!is_inlined("4", "select(eq(i0, i32(2)), b2[i0], f32(0))"));
    assert!(!is_inlined("2", "neg(b2[add(i0, i32(1))])"));
}

#[test]
fn what_a_block_makes_is_zero_where_it_has_not_run() {
    let program = after(
        "zeros",
        r#"
        in b0 "x": f32[?]
        tmp b1 "sum": f32[]
        tmp b2 "inside": f32[b0:0]
        tmp b3 "both": f32[b0:0]
        tmp b4 "own": f32[]
        tmp b5 "y": f32[b0:0]
        for [b0:0] { b1[] add init = b0[i0] }
        if gt(b1[], f32(0.0)) {
          for [b0:0] { b4[] mul init = b0[i0] }
          for [b0:0] { b2[i0] = sin(b4[]) }
          for [b0:0] { b3[i0] = f32(1.0) }
        } else {
          for [b0:0] { b3[i0] = f32(2.0) }
        }
        for [b0:0] { b5[i0] = add(b2[i0], b3[i0]) }
        result b5
    "#,
    );
    insta::assert_snapshot!(body(&program), @"
    for [b0:0] {
      b1[] add init = b0[i0]
    }
    for [b0:0] {
      b2[i0] = f32(0.0)
    }
    if gt(b1[], f32(0.0)) {
      for [b0:0] {
        b4[] mul init = b0[i0]
      }
      for [b0:0] {
        b2[i0] = sin(b4[])
      }
      for [b0:0] {
        b3[i0] = f32(1.0)
      }
    } else {
      for [b0:0] {
        b3[i0] = f32(2.0)
      }
    }
    for [b0:0] {
      b5[i0] = add(b2[i0], b3[i0])
    }
    result b5
    ");
}

#[test]
fn dear_values_that_are_read_often_are_kept() {
    let program = after(
        "inline",
        r#"
        in b0 "x": f32[?]
        tmp b1 "sine": f32[b0:0]
        tmp b2 "twice": f32[b0:0]
        tmp b3 "y": f32[b0:0]
        for [b0:0] { b1[i0] = sin(b0[i0]) }
        for [b0:0] { b2[i0] = add(b0[i0], b0[i0]) }
        for [b0:0] { b3[i0] = add(add(b1[i0], b1[add(i0, i32(1))] clamp), add(b2[i0], b2[add(i0, i32(1))] wrap)) }
        result b3
    "#,
    );
    insta::assert_snapshot!(body(&program), @r#"
    for [b0:0] {
      b1[i0] = sin(b0[i0])
    }
    for [b0:0] {
      %0 = b0[i0]
      b2[i0] = add(%0, %0)
    }
    for [b0:0] {
      %1 = add(i0, i32(1))
      %2 = b0[i0]
      %3 = b0[mod(%1, extent(b0:0))]
      b3[i0] = add(add(b1[i0], b1[%1] clamp), add(add(%2, %2), select(gt(extent(b0:0), i32(0)), add(%3, %3), f32(0.0))))
    }
    result b3
    "#);
    let why: Vec<String> = program
        .kept
        .iter()
        .map(|(b, why)| format!("{b}: {why}"))
        .collect();
    insta::assert_snapshot!(why.join("\n"), @r#"
    b3: it is asked for
    b1: computing it again costs more (14 operations, 2 times)
    "#);
}

#[test]
fn sums_become_loops() {
    let program = after(
        "reductions",
        r#"
        in b0 "x": f32[?, ?, ?]
        in b1 "bins": i32[7]
        tmp b2 "sums": f32[b0:0, b0:1]
        tmp b3 "count": i32[7]
        for [b0:0, b0:1, b0:2] { b2[i0, i1] add init = b0[i0, i1, i2] }
        for [b0:0] { b3[rem(i0, i32(7))] max init = i0 }
        for [7] { b1[i0] mul = b3[i0] }
        result b2
    "#,
    );
    insta::assert_snapshot!(body(&program), @"
    for [b0:0, b0:1] {
      x2 = f32(0.0)
      loop x1 in i32(0), add(div(extent(b0:2), i32(512)), i32(1)), 1 {
        x3 = f32(0.0)
        %0 = mul(x1, i32(512))
        loop x0 in %0, add(%0, min(sub(extent(b0:2), %0), i32(512))), 1 {
          x3 = add(x3, b0[i0, i1, x0])
        }
        x2 = add(x2, x3)
      }
      b2[i0, i1] = x2
    }
    for [7] {
      b3[i0] = i32(-2147483648)
    }
    for [b0:0] {
      b3[rem(i0, i32(7))] max = i0
    }
    for [7] {
      x4 = b1[i0]
      x4 = mul(x4, b3[i0])
      b1[i0] = x4
    }
    result b2
    ");
}

#[test]
fn few_elements_of_many_values_are_summed_in_parts() {
    let program = after(
        "reductions",
        r#"
        in b0 "x": f32[?, 3]
        tmp b1 "sums": f32[3]
        for [3, b0:0] { b1[i0] add init = b0[i1, i0] }
        result b1
    "#,
    );
    insta::assert_snapshot!(body(&program), @"
    for [64, 3] {
      x2 = f32(0.0)
      %0 = add(div(extent(b0:0), i32(64)), i32(1))
      loop x1 in i32(0), add(div(min(%0, sub(extent(b0:0), min(mul(i0, %0), extent(b0:0)))), i32(512)), i32(1)), 1 {
        x3 = f32(0.0)
        %1 = add(div(extent(b0:0), i32(64)), i32(1))
        %2 = min(mul(i0, %1), extent(b0:0))
        %3 = mul(x1, i32(512))
        %4 = add(%2, %3)
        loop x0 in %4, add(%4, min(sub(min(%1, sub(extent(b0:0), %2)), %3), i32(512))), 1 {
          x3 = add(x3, b0[x0, i1])
        }
        x2 = add(x2, x3)
      }
      b2[i0, i1] = x2
    }
    for [3] {
      x5 = f32(0.0)
      loop x4 in i32(0), i32(64), 1 {
        x5 = add(x5, b2[x4, i0])
      }
      b1[i0] = x5
    }
    result b1
    ");
}

#[test]
fn sums_over_one_space_share_their_loops() {
    let text = r#"
        in b0 "x": f32[?, ?]
        tmp b1 "sum": f32[b0:0]
        tmp b2 "squares": f32[b0:0]
        for [b0:0, b0:1] { b1[i0] add init = b0[i0, i1] }
        for [b0:0, b0:1] { b2[i0] add init = mul(b0[i0, i1], b0[i0, i1]) }
        result b1
        result b2
    "#;
    insta::assert_snapshot!(body(&after("fuse_sums", text)), @r#"
    for [b0:0, b0:1] {
      b1[i0] add init = b0[i0, i1]
      %0 = b0[i0, i1]
      b2[i0] add init = mul(%0, %0)
    }
    result b1
    result b2
    "#);
}

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
fn what_nobody_asks_for_is_left_out() {
    let text = r#"
        in b0 "x": f32[4]
        tmp b1 "t": f32[4]
        tmp b2 "u": f32[4]
        tmp b3 "v": f32[4]
        for [4] { b1[i0] = b0[i0] }
        for [4] { b2[i0] = b1[i0] b3[i0] = b0[i0] }
        for [4] { b0[i0] = f32(0) }
        result b3
    "#;
    insta::assert_snapshot!(body(&after("dead", text)), @r#"
    for [4] {
      b1[i0] = b0[i0]
    }
    for [4] {
      b3[i0] = b0[i0]
    }
    for [4] {
      b0[i0] = f32(0.0)
    }
    result b3
    "#);
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
    passes::run(&mut program, Options::default(), &mut |_, _| {});
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
    passes::run(&mut program, Options::default(), &mut |_, _| {});
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

const PRODUCT: &str = r#"
    in b0 "a": f32[24, 7]
    in b1 "b": f32[16, 7]
    in b2 "c": f32[16]
    tmp b3 "t": f32[24, 16]
    tmp b4 "y": f32[24, 16]
    for [24, 16, 7] { b3[i0, i1] add init = mul(b0[i0, i2], b1[i1, i2]) }
    for [24, 16] { b4[i0, i1] = max(add(b3[i0, i1], b2[i1]), f32(0)) }
    result b4
"#;

#[test]
fn products_are_made_in_tiles() {
    let program = with_products(Products::Tiles, PRODUCT);
    insta::assert_snapshot!(body(&program), @r#"
    for [2, 7] {
      loop x0 in i32(0), i32(12), 1 {
        b5[i0, i1, x0] = b0[add(mul(i0, i32(12)), x0), i1]
      }
    }
    for [1, 7] {
      loop x1 in i32(0), i32(16), 1 {
        b6[i0, i1, x1] = b1[add(mul(i0, i32(16)), x1), i1]
      }
    }
    for [1, 1, 2, 16] {
      x2 = f32(0.0)
      x3 = f32(0.0)
      x4 = f32(0.0)
      x5 = f32(0.0)
      x6 = f32(0.0)
      x7 = f32(0.0)
      x8 = f32(0.0)
      x9 = f32(0.0)
      x10 = f32(0.0)
      x11 = f32(0.0)
      x12 = f32(0.0)
      x13 = f32(0.0)
      loop x14 in i32(0), i32(7), 1 {
        x2 = add(x2, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(0)], b6[i1, x14, i3]))
        x3 = add(x3, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(1)], b6[i1, x14, i3]))
        x4 = add(x4, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(2)], b6[i1, x14, i3]))
        x5 = add(x5, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(3)], b6[i1, x14, i3]))
        x6 = add(x6, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(4)], b6[i1, x14, i3]))
        x7 = add(x7, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(5)], b6[i1, x14, i3]))
        x8 = add(x8, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(6)], b6[i1, x14, i3]))
        x9 = add(x9, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(7)], b6[i1, x14, i3]))
        x10 = add(x10, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(8)], b6[i1, x14, i3]))
        x11 = add(x11, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(9)], b6[i1, x14, i3]))
        x12 = add(x12, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(10)], b6[i1, x14, i3]))
        x13 = add(x13, mul(b5[add(mul(i0, i32(2)), i2), x14, i32(11)], b6[i1, x14, i3]))
      }
      %0 = add(mul(i1, i32(16)), i3)
      b4[mul(add(mul(i0, i32(2)), i2), i32(12)), %0] = max(add(x2, b2[%0]), f32(0.0))
      %1 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(1)), %1] = max(add(x3, b2[%1]), f32(0.0))
      %2 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(2)), %2] = max(add(x4, b2[%2]), f32(0.0))
      %3 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(3)), %3] = max(add(x5, b2[%3]), f32(0.0))
      %4 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(4)), %4] = max(add(x6, b2[%4]), f32(0.0))
      %5 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(5)), %5] = max(add(x7, b2[%5]), f32(0.0))
      %6 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(6)), %6] = max(add(x8, b2[%6]), f32(0.0))
      %7 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(7)), %7] = max(add(x9, b2[%7]), f32(0.0))
      %8 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(8)), %8] = max(add(x10, b2[%8]), f32(0.0))
      %9 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(9)), %9] = max(add(x11, b2[%9]), f32(0.0))
      %10 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(10)), %10] = max(add(x12, b2[%10]), f32(0.0))
      %11 = add(mul(i1, i32(16)), i3)
      b4[add(mul(add(mul(i0, i32(2)), i2), i32(12)), i32(11)), %11] = max(add(x13, b2[%11]), f32(0.0))
    }
    result b4
    "#);
    assert_eq!(program.products.len(), 1);
}

#[test]
fn products_are_made_by_a_library() {
    let program = with_products(Products::Library, PRODUCT);
    insta::assert_snapshot!(body(&program), @r#"
    for [7, 16] {
      b5[i0, i1] = b1[i1, i0]
    }
    call matmul(b3) = (b0, b5)
    for [24, 16] {
      b4[i0, i1] = max(add(b3[i0, i1], b2[i1]), f32(0.0))
    }
    result b4
    "#);
}

#[test]
fn what_is_made_of_a_library_s_product_is_made_some_rows_at_a_time() {
    let text = PRODUCT
        .replace("24", "?")
        .replacen("f32[16, ?]", "f32[16, b0:0]", 1);
    let text = text.replace("tmp b3 \"t\": f32[?", "tmp b3 \"t\": f32[b0:0");
    let text = text.replace("tmp b4 \"y\": f32[?", "tmp b4 \"y\": f32[b0:0");
    let program = with_products(Products::Library, &text.replace("for [?", "for [b0:0"));
    insta::assert_snapshot!(body(&program), @r#"
    for [7, 16] {
      b5[i0, i1] = b1[i1, i0]
    }
    loop x0 in i32(0), extent(b0:0), 512 {
      for [] {
        b6[] = x0
      }
      call matmul_rows(b7) = (b0, b5, b6)
      for [512, 16] {
        if lt(add(x0, i0), extent(b0:0)) {
          b4[add(x0, i0), i1] = max(add(b7[i0, i1], b2[i1]), f32(0.0))
        }
      }
    }
    result b4
    "#);
    assert_eq!(program.products[0], Product::Library(true));
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
    passes::run(&mut program, Options::default(), &mut |_, _| {});
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

#[test]
fn what_all_ways_from_a_value_lead_to_computes_it_once() {
    // `r` is read by two statements, of which one is computed where the other is.
    let program = after(
        "inline",
        r#"
        in b0 "x": f32[?]
        tmp b1 "r": f32[b0:0]
        tmp b2 "square": f32[b0:0]
        tmp b3 "cube": f32[b0:0]
        for [b0:0] { b1[i0] = sin(b0[i0]) }
        for [b0:0] { b2[i0] = mul(b1[i0], b1[i0]) }
        for [b0:0] { b3[i0] = mul(b2[i0], b1[i0]) }
        result b3
    "#,
    );
    assert!(!program.kept.keys().any(|&b| program.buffers[b].name == "r"));
}

#[test]
fn sums_over_rows_read_some_rows_at_a_time() {
    let program = after(
        "reductions",
        r#"
        in b0 "x": f32[8192, 2048]
        tmp b1 "s": f32[2048]
        for [2048, 8192] { b1[i0] add init = b0[i1, i0] }
        result b1
    "#,
    );
    insta::assert_snapshot!(body(&program), @r#"
    for [512, 2048] {
      x1 = f32(0.0)
      loop x0 in i32(0), i32(16), 1 {
        x1 = add(x1, b0[add(mul(i0, i32(16)), x0), i1])
      }
      b2[i0, i1] = x1
    }
    for [2048] {
      x3 = f32(0.0)
      loop x2 in i32(0), i32(512), 1 {
        x3 = add(x3, b2[x2, i0])
      }
      b1[i0] = x3
    }
    result b1
    "#);
}

/// Whether a value that takes much to compute is computed where it is read, at these indices.
fn is_inlined(first: &str, second: &str) -> bool {
    let program = after(
        "inline",
        &format!(
            r#"
            in b0 "x": f32[?, b0:0]
            tmp b1 "f": f32[b0:0, b0:0]
            tmp b2 "g": f32[b0:0, b0:0]
            tmp b3 "y": f32[b0:0, b0:0]
            for [b0:0, b0:0] {{ b1[i0, i1] = exp(sin(b0[i0, i1])) }}
            for [b0:0, b0:0] {{ b2[i0, i1] = {first} }}
            for [b0:0, b0:0] {{ b3[i0, i1] = {second} }}
            result b3
        "#
        ),
    );
    !program.kept.keys().any(|&b| program.buffers[b].name == "f")
}

#[test]
fn what_is_read_in_another_order_of_axes_is_another_value() {
    assert!(is_inlined("neg(b1[i0, i1])", "add(b1[i0, i1], b2[i0, i1])"));
    assert!(!is_inlined(
        "neg(b1[i1, i0])",
        "add(b1[i0, i1], b2[i0, i1])"
    ));
    assert!(!is_inlined(
        "neg(b1[i0, i1])",
        "add(b1[i0, i1], b2[i1, i0])"
    ));
    // Turned twice it is the same again.
    assert!(is_inlined("neg(b1[i1, i0])", "add(b1[i0, i1], b2[i1, i0])"));
    assert!(!is_inlined("b0[i0, i1]", "add(b1[i0, i1], b1[i1, i0])"));
}
