//! Index maps that are one to one, and sums of which one index alone counts: before and after, and what both mean.

#[path = "support/each.rs"]
mod each;
mod support;

use aerogel_base::{Scalar, ScalarType};
use aerogel_tensor::interp::run;
use aerogel_tensor::ir::Array;
use aerogel_tensor::passes::{self, Options};
use aerogel_tensor::{Program, parse};
use each::Follower;
use support::{after, body};

/// What a program gives for numbers, and that it gives the same after all passes, in so many temporaries.
fn means(text: &str, inputs: &[Array], n_kept: usize) -> Vec<Vec<f64>> {
    let (passed, found) = means_with(Options::default(), text, inputs);
    assert_eq!(passes::n_materialised(&passed), n_kept, "{passed}");
    found
}

/// The same with these options, and the program after all passes.
fn means_with(options: Options, text: &str, inputs: &[Array]) -> (Program, Vec<Vec<f64>>) {
    let program = parse(text).unwrap();
    let meaning = |program: &Program| -> Vec<Vec<f64>> {
        let mut inputs = inputs.to_vec();
        let all = run(program, &mut inputs).unwrap();
        let numbers = all.iter().map(|a| a.data.iter().map(number));
        numbers.map(Iterator::collect).collect()
    };
    let text_of = |program: &Program| format!("{:?}", meaning(program));
    let mut passed = program.clone();
    let mut follower = Follower {
        label: text.to_owned(),
        meaning: &text_of,
        expected: &text_of(&program),
        changed: Vec::new(),
    };
    follower.run(&mut passed, options);
    follower.run_each(&program, options);
    let found = meaning(&program);
    (passed, found)
}

fn number(s: &Scalar) -> f64 {
    match s.ty().is_float() {
        true => s.as_f64(),
        false => s.as_i128() as f64,
    }
}

fn ints(ty: ScalarType, shape: &[usize], data: &[i64]) -> Array {
    let number = |&n: &i64| match ty.is_float() {
        true => Scalar::float(ty, n as f64),
        false => Scalar::int(ty, n.into()),
    };
    Array {
        ty,
        shape: shape.to_vec(),
        data: data.iter().map(number).collect(),
    }
}

fn floats(data: &[f64]) -> Array {
    Array {
        ty: ScalarType::F64,
        shape: vec![data.len()],
        data: data
            .iter()
            .map(|&x| Scalar::float(ScalarType::F64, x))
            .collect(),
    }
}

#[test]
fn a_diagonal_is_a_function_of_its_indices() {
    let text = r#"
        in b0 "x": f64[?]
        tmp b1 "t": f64[b0:0, b0:0]
        tmp b2 "y": f64[b0:0, b0:0]
        for [b0:0] { b1[i0, i0] add init = b0[i0] }
        for [b0:0, b0:0] { b2[i0, i1] = add(b1[i1, i0], f64(1)) }
        result b2
    "#;
    insta::assert_snapshot!(body(&after("inverse", text)), @"
    for [b0:0] {
      b3[i0] = add(f64(0.0), b0[i0])
    }
    for [b0:0, b0:0] {
      b1[i0, i1] = select(eq(i1, i0), b3[i0], f64(0.0))
    }
    for [b0:0, b0:0] {
      b2[i0, i1] = add(b1[i1, i0], f64(1.0))
    }
    result b2
    ");
    let found = means(text, &[floats(&[2.0, 3.0])], 1);
    assert_eq!(found[0], [3.0, 1.0, 1.0, 4.0]);
}

#[test]
fn indices_that_are_sums_of_axes_say_where_they_are_from() {
    // A whole number of rows; every third of some; backwards; a sum, then placed; of products nothing is zero.
    let text = r#"
        in b0 "x": i32[4, 3]
        tmp b1 "flat": i32[12]
        tmp b2 "spread": i32[11]
        tmp b3 "turned": i32[4, 3]
        tmp b4 "rows": i32[4, 9]
        tmp b5 "ones": i32[5]
        for [4, 3] { b1[add(mul(i0, i32(3)), i1)] add init = b0[i0, i1] }
        for [4] { b2[add(mul(i0, i32(3)), i32(1))] add init = b0[i0, i32(0)] }
        for [4, 3] { b3[sub(i32(3), i0), i1] max init = b0[i0, i1] }
        for [4, 3] { b4[i0, i32(2)] add init = b0[i0, i1] }
        for [3] { b5[add(i0, i32(1))] mul init = b0[i32(1), i0] }
        result b1
        result b2
        result b3
        result b4
        result b5
    "#;
    insta::assert_snapshot!(body(&after("inverse", text)), @"
    for [4, 3] {
      b6[i0, i1] = b0[i0, i1]
    }
    for [12] {
      b1[i0] = b6[div(i0, i32(3)), rem(i0, i32(3))]
    }
    for [4] {
      b7[i0] = b0[i0, i32(0)]
    }
    for [11] {
      %0 = add(i0, i32(-1))
      b2[i0] = select(eq(mod(%0, i32(3)), i32(0)), b7[floordiv(%0, i32(3))] zero, i32(0))
    }
    for [4, 3] {
      b8[i0, i1] = max(i32(-2147483648), b0[i0, i1])
    }
    for [4, 3] {
      b3[i0, i1] = b8[sub(i32(0), add(i0, i32(-3))), i1]
    }
    for [4, 3] {
      b9[i0] add init = b0[i0, i1]
    }
    for [4, 9] {
      b4[i0, i1] = select(eq(i1, i32(2)), b9[i0], i32(0))
    }
    for [3] {
      b10[i0] = b0[i32(1), i0]
    }
    for [5] {
      %1 = add(i0, i32(-1))
      b5[i0] = select(and(ge(%1, i32(0)), lt(%1, i32(3))), b10[%1] zero, i32(1))
    }
    result b1
    result b2
    result b3
    result b4
    result b5
    ");
    let x = ints(
        ScalarType::I32,
        &[4, 3],
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    );
    // The sums of rows, and what is asked for.
    let found = means(text, &[x], 6);
    assert_eq!(
        found[0],
        [1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.]
    );
    assert_eq!(found[1], [0., 1., 0., 0., 4., 0., 0., 7., 0., 0., 10.]);
    assert_eq!(
        found[2],
        [10., 11., 12., 7., 8., 9., 4., 5., 6., 1., 2., 3.]
    );
    assert_eq!(found[3][..11], [0., 0., 6., 0., 0., 0., 0., 0., 0., 0., 0.]);
    assert_eq!(found[4], [1., 4., 5., 6., 1.]);
}

#[test]
fn where_points_meet_nothing_is_rewritten() {
    for store in [
        // Windows some way apart, of elements that lie apart too.
        "for [4, 3] { b1[add(mul(i0, i32(3)), mul(i1, i32(2)))] add init = b0[i0, i1] }",
        "for [4, 3] { b1[mul(i0, i1)] add init = b0[i0, i1] }",
        "for [3, 3] { b1[add(i0, mul(i1, i0))] add init = b0[i0, i1] }",
        // Not all of it is made here.
        "for [4] { b1[mul(i0, i32(2))] add = b0[i0, i32(0)] }",
    ] {
        let text = format!(
            "in b0 \"x\": i32[4, 3]
             tmp b1 \"t\": i32[20]
             {store}
             result b1"
        );
        let before = parse(&text).unwrap().to_string();
        assert_eq!(after("inverse", &text).to_string(), before);
    }
}

#[test]
fn what_is_added_where_windows_overlap_is_gathered() {
    let text = r#"
        in b0 "x": f64[4, 3]
        tmp b1 "near": f64[6]
        tmp b2 "dilated": f64[9]
        tmp b3 "apart": f64[3, 9]
        tmp b4 "clamped": f64[4]
        for [4, 3] { b1[add(i0, i1)] add init = b0[i0, i1] }
        for [4, 3] { b2[add(add(i0, mul(i1, i32(2))), i32(1))] add init = b0[i0, i1] }
        for [3, 4, 3] { b3[i0, add(mul(i1, i32(2)), i2)] max init = mul(b0[i1, i2], cast.f64(i0)) }
        for [6] {
          b4[max(min(add(i0, i32(-1)), i32(3)), i32(0))] add init = select(and(ge(add(i0, i32(-1)), i32(0)), lt(add(i0, i32(-1)), i32(4))), b1[i0], f64(0))
        }
        result b1
        result b2
        result b3
        result b4
    "#;
    insta::assert_snapshot!(body(&after("inverse", text)), @"
    for [6, 3] {
      %0 = sub(i0, i1)
      b1[i0] add init = select(and(ge(%0, i32(0)), lt(%0, i32(4))), b0[%0, i1], f64(0.0))
    }
    for [9, 3] {
      %1 = add(sub(i0, mul(i1, i32(2))), i32(-1))
      b2[i0] add init = select(and(ge(%1, i32(0)), lt(%1, i32(4))), b0[%1, i1], f64(0.0))
    }
    for [3, 5, 2, 2] {
      %2 = add(mul(i2, i32(2)), i3)
      %3 = sub(i1, i2)
      b5[i3, i0, i1] max init = select(and(and(lt(%2, i32(3)), ge(%3, i32(0))), lt(%3, i32(4))), mul(b0[%3, %2], cast.f64(i0)), f64(-inf))
    }
    for [3, 9] {
      b3[i0, i1] = b5[rem(i1, i32(2)), i0, div(i1, i32(2))]
    }
    for [6] {
      b6[i0] = add(f64(0.0), b1[i0])
    }
    for [4] {
      b4[i0] = b6[add(i0, i32(1))]
    }
    result b1
    result b2
    result b3
    result b4
    ");
    let x: Vec<i64> = (1..=12).collect();
    let found = means(text, &[ints(ScalarType::F64, &[4, 3], &x)], 5);
    assert_eq!(found[0], [1., 6., 15., 24., 20., 12.]);
    assert_eq!(found[3], [6., 15., 24., 20.]);
}

/// Values of inputs that are whole numbers, so that sums in any order are equal.
fn some(shape: &[usize]) -> Array {
    let data: Vec<i64> = (0..shape.iter().product::<usize>() as i64)
        .map(|k| k * 7 % 11 - 5)
        .collect();
    ints(ScalarType::F64, shape, &data)
}

#[test]
fn products_are_read_where_they_lie() {
    let all = Options {
        many: 1,
        ..Options::default()
    };
    // The image, the kernel and the sum; where the image is read; and whether a copy of it is.
    let programs = [
        (
            [2, 3, 4, 20],
            [8, 3, 2, 3],
            [2, 8, 3, 18],
            "b0[i0, i4, add(i2, i5), add(i3, i6)]",
            false,
        ),
        (
            [2, 3, 4, 9],
            [4, 3, 2, 3],
            [2, 4, 3, 7],
            "b0[i0, i4, add(i2, i5), add(i3, i6)]",
            true,
        ),
        (
            [2, 3, 8, 41],
            [9, 3, 3, 5],
            [2, 9, 3, 19],
            "b0[i0, i4, add(mul(i2, i32(2)), i5), add(mul(i3, i32(2)), i6)]",
            true,
        ),
        (
            [1, 2, 9, 30],
            [8, 2, 3, 3],
            [1, 8, 5, 26],
            "b0[i0, i4, add(i2, mul(i5, i32(2))), add(i3, mul(i6, i32(2)))]",
            false,
        ),
    ];
    for (x, w, y, image, copies) in programs {
        let shape = |s: &[usize]| format!("f64{s:?}");
        let [n, o, h, v] = y;
        let [_, c, k, l] = w;
        let text = format!(
            "in b0 \"x\": {}
             in b1 \"w\": {}
             tmp b2 \"y\": {}
             for [{n}, {o}, {h}, {v}, {c}, {k}, {l}] {{
               b2[i0, i1, i2, i3] add init = mul({image}, b1[i1, i4, i5, i6])
             }}
             result b2",
            shape(&x),
            shape(&w),
            shape(&y)
        );
        let (program, _) = means_with(all, &text, &[some(&x), some(&w)]);
        // The sum and the kernel in tiles, and the image where lanes read it otherwise.
        assert_eq!(passes::n_materialised(&program), 2 + usize::from(copies));
    }
}

#[test]
fn windows_are_added_up_as_products() {
    let all = Options {
        many: 1,
        ..Options::default()
    };
    for (y, x, stride) in [([2, 4, 3, 18], [5, 20], 1), ([2, 4, 3, 9], [7, 20], 2)] {
        let [n, o, h, v] = y;
        let text = format!(
            r#"
            in b0 "y": f64{y:?}
            in b1 "w": f64[{o}, 3, 3, 3]
            tmp b2 "x": f64[{n}, 3, {}, {}]
            tmp b3 "part": f64[{n}, 3, {}, 16]
            for [{n}, {o}, {h}, {v}, 3, 3, 3] {{
              b2[i0, i4, add(mul(i2, i32({stride})), i5), add(mul(i3, i32({stride})), i6)] add init = mul(b0[i0, i1, i2, i3], b1[i1, i4, i5, i6])
            }}
            for [{n}, 3, {}, 16] {{ b3[i0, i1, i2, i3] = b2[i0, i1, add(i2, i32(1)), add(i3, i32(1))] }}
            result b3
        "#,
            x[0],
            x[1],
            x[0] - 2,
            x[0] - 2
        );
        let mut w = some(&[o, 3, 3, 3]);
        let (_, plain) = means_with(all, &text, &[some(&y), w.clone()]);
        // Beside what is not finite, nothing becomes zero times that.
        w.data[4] = Scalar::float(ScalarType::F64, f64::INFINITY);
        let (program, found) = means_with(all, &text, &[some(&y), w]);
        assert!(program.to_string().contains("if "), "{program}");
        assert!(found[0].iter().any(|x| x.is_finite()) && found != plain);
    }
}

#[test]
fn a_sum_in_which_one_index_counts_is_a_gather() {
    let text = r#"
        in b0 "x": f64[?, ?]
        in b1 "at": i32[?]
        tmp b2 "same": u1[b1:0, b0:0]
        tmp b3 "chosen": f64[b1:0, b0:0, b0:1]
        tmp b4 "y": f64[b1:0, b0:1]
        tmp b5 "z": f64[b1:0, b0:1]
        for [b1:0, b0:0] { b2[i0, i1] = eq(b1[i0], i1) }
        for [b1:0, b0:0, b0:1] { b3[i0, i1, i2] = select(b2[i0, i1], b0[i1, i2], f64(0)) }
        for [b1:0, b0:1, b0:0] { b4[i0, i1] add init = b3[i0, i2, i1] }
        for [b1:0, b0:1] { b5[i0, i1] = mul(b4[i0, i1], f64(2)) }
        result b5
    "#;
    let mut program = parse(text).unwrap();
    for name in ["inline", "dead", "gathers", "dead"] {
        program = after(name, &program.to_string());
    }
    insta::assert_snapshot!(body(&program), @"
    for [b1:0, b0:1] {
      %0 = b1[i0]
      b5[i0, i1] = mul(add(f64(0.0), select(and(ge(%0, i32(0)), lt(%0, extent(b0:0))), b0[max(min(%0, add(extent(b0:0), i32(-1))), i32(0)), i1], f64(0.0))), f64(2.0))
    }
    result b5
    ");
    // Rows outside are zero, and what is in rows that are not asked for does not show.
    let mut x = floats(&[1.0, f64::NAN, 3.0, f64::INFINITY, 5.0, 6.0]);
    x.shape = vec![3, 2];
    let at = ints(ScalarType::I32, &[4], &[2, -1, 3, 0]);
    let found = means(text, &[x.clone(), at], 1);
    assert_eq!(
        format!("{:?}", found[0]),
        "[10.0, 12.0, 0.0, 0.0, 0.0, 0.0, 2.0, NaN]"
    );
    // Nothing to choose from.
    x.shape = vec![0, 2];
    x.data.clear();
    let found = means(text, &[x, ints(ScalarType::I32, &[1], &[0])], 1);
    assert_eq!(found[0], [0.0, 0.0]);
}

#[test]
fn indices_of_any_type_are_asked_for_as_they_are() {
    let types = [
        (ScalarType::I64, "i64"),
        (ScalarType::U64, "u64"),
        (ScalarType::U8, "u8"),
        (ScalarType::F32, "f32"),
        (ScalarType::F64, "f64"),
    ];
    for (ty, name) in types {
        let text = format!(
            "in b0 \"x\": i32[5]
             in b1 \"at\": {name}[?]
             tmp b2 \"y\": i32[b1:0]
             for [b1:0, 5] {{ b2[i0] add init = select(eq(cast.{name}(i1), b1[i0]), b0[i1], i32(0)) }}
             result b2"
        );
        let gathered = after("gathers", &text).to_string();
        assert!(!gathered.contains("add init"), "{gathered}");
        let x = ints(ScalarType::I32, &[5], &[10, 11, 12, 13, 14]);
        let mut at = ints(ty, &[4], &[4, 0, 5, 200]);
        if ty.is_float() {
            at.data
                .extend([0.5, -1.0, f64::NAN, f64::INFINITY, 1e30].map(|x| Scalar::float(ty, x)));
        } else if ty.is_signed() {
            at.data.extend([-1, 1 << 32].map(|n| Scalar::int(ty, n)));
        }
        at.shape = vec![at.data.len()];
        let found = means(&text, &[x, at], 1);
        assert_eq!(found[0][..4], [14.0, 10.0, 0.0, 0.0]);
        assert!(found[0][4..].iter().all(|&n| n == 0.0), "{found:?}");
    }
}

/// A reduction of `b0` at each point of `b1`.
fn sum(value: &str) -> String {
    format!(
        "in b0 \"x\": f64[?]
         in b1 \"at\": i32[?]
         in b2 \"n\": i32[?]
         tmp b3 \"y\": f64[b1:0]
         for [b1:0, b0:0] {{ b3[i0] {value} }}
         result b3"
    )
}

#[test]
fn what_may_not_be_gathered_is_not() {
    // NaN times nothing is NaN; another index is another sum; a condition that asks for the axis twice.
    let kept = [
        "add init = mul(cast.f64(eq(b1[i0], i1)), b0[i1])",
        "add init = select(eq(b1[i1], i0), b0[i1], f64(0))",
        "add init = select(eq(b1[i1], i1), b0[i1], f64(0))",
        "add init = select(eq(b1[i0], mul(i1, i32(2))), b0[i1], f64(0))",
        "add init = select(lt(b1[i0], i1), b0[i1], f64(0))",
        "add init = select(eq(b1[i0], i1), b0[i1], f64(1))",
        "max init = select(eq(b1[i0], i1), b0[i1], f64(0))",
        "add init = select(or(eq(b1[i0], i1), lt(i1, i32(2))), b0[i1], f64(0))",
        // What is asked for at every index is an error somewhere.
        "add init = select(and(eq(b1[i0], i1), lt(b2[i1] error, i32(3))), b0[i1], f64(0))",
        "add init = select(lt(b2[i1] error, i32(3)), select(eq(b1[i0], i1), b0[i1], f64(0)), f64(0))",
        // Neighbours are one number.
        "add init = select(eq(cast.f32(b1[i0]), cast.f32(i1)), b0[i1], f64(0))",
    ];
    for value in kept {
        let text = sum(value);
        let before = parse(&text).unwrap().to_string();
        assert_eq!(after("gathers", &text).to_string(), before);
    }
    let gathered = [
        "add init = mul(cast.f64(eq(b1[i0], i1)), cast.f64(b2[i1]))",
        "add init = mul(f64(2.5), select(ne(b1[i0], i1), f64(0), f64(1)))",
        "add init = cast.f64(mul(b2[i1], cast.i32(eq(add(i1, b2[i0]), b1[i0]))))",
        "add init = select(and(lt(b2[i1], i32(3)), eq(sub(b1[i0], i1), i32(1))), b0[i1], f64(-0.0))",
        "max init = select(eq(b1[i0], i1), b0[i1], f64(-inf))",
        "mul init = select(eq(b1[i0], i1), b0[i1], f64(1))",
    ];
    for value in gathered {
        let text = sum(value);
        let found = after("gathers", &text).to_string();
        assert!(!found.contains("init"), "{found}");
        let x = floats(&[1.5, -2.0, 4.0]);
        let at = ints(ScalarType::I32, &[5], &[2, 0, 7, -3, 1]);
        let n = ints(ScalarType::I32, &[5], &[1, 7, 2, -4, 0]);
        means(&text, &[x, at, n], 1);
    }
}

#[test]
fn nothing_is_asked_for_where_a_sum_has_nothing() {
    for value in [
        "add init = select(and(eq(b1[i0], i1), lt(b0[i1], f64(3))), b0[i1], f64(0))",
        "add init = select(eq(b1[i32(7)], i1), b0[i1], f64(0))",
        "add init = select(eq(add(i1, b1[i32(7)]), i32(9)), b0[i1], f64(0))",
    ] {
        let text = sum(value);
        let gathered = after("gathers", &text).to_string();
        assert!(!gathered.contains("add init"), "{gathered}");
        let at = ints(ScalarType::I32, &[3], &[2, 0, -1]);
        let n = ints(ScalarType::I32, &[0], &[]);
        assert_eq!(means(&text, &[floats(&[]), at, n], 1)[0], [0.0; 3]);
    }
}

#[test]
fn the_trace_and_rows_of_a_unit_matrix_are_gathers() {
    let text = r#"
        in b0 "x": i32[4, 4]
        tmp b1 "eye": i32[4, 4]
        tmp b2 "trace": i32[]
        tmp b3 "same": i32[4, 4]
        for [4, 4] { b1[i0, i1] = cast.i32(eq(i0, i1)) }
        for [4, 4] { b2[] add init = mul(b1[i0, i1], b0[i1, i0]) }
        for [4, 4, 4] { b3[i0, i1] add init = mul(b1[i0, i2], b0[i2, i1]) }
        result b2
        result b3
    "#;
    let x: Vec<i64> = (0..16).collect();
    let found = means(text, &[ints(ScalarType::I32, &[4, 4], &x)], 2);
    assert_eq!(found[0], [30.0]);
    assert_eq!(found[1], (0..16).map(f64::from).collect::<Vec<_>>());
    let mut program = parse(text).unwrap();
    passes::run(&mut program, Options::default(), &mut |_, _, _| {});
    insta::assert_snapshot!(body(&program), @"
    for [] {
      x1 = i32(0)
      loop x0 in i32(0), i32(4), 1 {
        x1 = add(x1, b0[x0, x0])
      }
      b2[] = x1
    }
    for [4, 4] {
      b3[i0, i1] = b0[i0, i1]
    }
    result b2
    result b3
    ");
}
