//! Sums: as loops, in parts, and several over one space.

use crate::support::{after, body};

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
      %0 = add(div(add(extent(b0:0), i32(-1)), i32(64)), i32(1))
      loop x1 in i32(0), add(div(min(%0, sub(extent(b0:0), min(mul(i0, %0), extent(b0:0)))), i32(512)), i32(1)), 1 {
        x3 = f32(0.0)
        %1 = add(div(add(extent(b0:0), i32(-1)), i32(64)), i32(1))
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

#[test]
fn rows_that_are_left_over_are_a_part_of_their_own() {
    let program = after(
        "reductions",
        r#"
        in b0 "x": f32[8195, 2048]
        tmp b1 "s": f32[2048]
        for [2048, 8195] { b1[i0] add init = b0[i1, i0] }
        result b1
    "#,
    );
    insta::assert_snapshot!(body(&program), @"
    for [512, 2048] {
      x1 = f32(0.0)
      loop x0 in i32(0), i32(16), 1 {
        x1 = add(x1, b0[add(mul(i0, i32(16)), x0), i1])
      }
      b2[i0, i1] = x1
    }
    for [1, 2048] {
      x3 = f32(0.0)
      loop x2 in i32(8192), i32(8195), 1 {
        x3 = add(x3, b0[x2, i1])
      }
      b2[i32(512), i1] = x3
    }
    for [2048] {
      x6 = f32(0.0)
      loop x5 in i32(0), i32(2), 1 {
        x7 = f32(0.0)
        %0 = mul(x5, i32(512))
        loop x4 in %0, add(%0, min(sub(i32(513), %0), i32(512))), 1 {
          x7 = add(x7, b2[x4, i0])
        }
        x6 = add(x6, x7)
      }
      b1[i0] = x6
    }
    result b1
    ");
}

#[test]
fn sums_that_are_the_same_along_an_axis_are_made_once() {
    let program = after(
        "invariant_axes",
        r#"
        in b0 "x": f32[?, ?]
        tmp b1 "alike": f32[5, b0:0]
        tmp b2 "none_alike": f32[b0:0, b0:1]
        tmp b3 "no_sum": f32[5, b0:0]
        tmp b4 "part": f32[7]
        for [5, b0:0, b0:1] { b1[i0, i1] add init = b0[i1, i2] }
        for [b0:0, b0:1, b0:1] { b2[i0, i1] max init = mul(b0[i0, i2], b0[i0, i1]) }
        for [5, b0:0] { b3[i0, i1] add init = b0[i1, i32(0)] }
        for [5, b0:1] { b4[i0] add init = b0[i32(0), i1] }
        result b1
        result b2
        result b3
        result b4
    "#,
    );
    insta::assert_snapshot!(body(&program), @"
    for [b0:0, b0:1] {
      b5[i0] add init = b0[i0, i1]
    }
    for [5, b0:0] {
      b1[i0, i1] = b5[i1]
    }
    for [b0:0, b0:1, b0:1] {
      b2[i0, i1] max init = mul(b0[i0, i2], b0[i0, i1])
    }
    for [5, b0:0] {
      b3[i0, i1] add init = b0[i1, i32(0)]
    }
    for [5, b0:1] {
      b4[i0] add init = b0[i32(0), i1]
    }
    result b1
    result b2
    result b3
    result b4
    ");
}
