//! Products of matrices: in tiles and by a library.

use crate::support::body;
use aerogel_tensor::ir::Product;
use aerogel_tensor::passes::{Options, PASSES, Products};
use aerogel_tensor::{Program, parse, verify};

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
fn lanes_store_side_by_side() {
    let program = with_products(
        Products::Tiles,
        r#"
        in b0 "a": f32[24, 7]
        in b1 "b": f32[32, 7]
        tmp b2 "t": f32[24, 32]
        for [24, 32, 7] { b2[i0, i1] add init = mul(b1[i1, i2], b0[i0, i2]) }
        result b2
    "#,
    );
    let text = body(&program);
    let stores = text.lines().map(str::trim_start);
    let mut stores = stores.filter(|line| line.starts_with("b2[")).peekable();
    assert!(stores.peek().is_some(), "{text}");
    assert!(
        stores.all(|s| s.contains(", add(mul(i1, i32(16)), i3)] =")),
        "{text}"
    );
}
