//! What is computed where it is read, what is kept, and what is left out.

use aerogel_base::ScalarType;
use aerogel_tensor::Buffer;

use crate::support::{after, body};

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
            "b2: it is a result",
            "b1: its operands change before it is read"
        ]
    );
}

#[test]
fn what_fits_into_no_cache_is_computed_again_sooner() {
    // Read at two places: thirteen operations twice are more than one store and two loads, but less than those in memory.
    let is_inlined = |n: &str, shape: &str| {
        let text = format!(
            r#"
        in b0 "x": f32[?]
        in b1 "n": f32[{n}]
        tmp b2 "pairs": f32[{shape}]
        tmp b3 "y": f32[{shape}]
        for [{shape}] {{ b2[i0, i1] = exp(sub(b0[i0], b1[i1])) }}
        for [{shape}] {{ b3[i0, i1] = add(b2[i0, i1], b2[i1, i0] zero) }}
        result b3
    "#
        );
        let program = after("inline", &text);
        !body(&program).replace("b2[i0, i1] =", "").contains("b2[")
    };
    assert!(!is_inlined("512", "512, 512"));
    assert!(is_inlined("4096", "4096, 4096"));
    // As large as the result.
    assert!(!is_inlined("?", "b0:0, b0:0"));
}

#[test]
fn pairs_of_elements_are_taken_to_be_many() {
    let program = after(
        "inline",
        r#"
        in b0 "x": f32[?]
        tmp b1 "pairs": f32[b0:0, b0:0]
        tmp b2 "rows": f32[b0:0]
        tmp b3 "columns": f32[b0:0]
        for [b0:0, b0:0] { b1[i0, i1] = exp(sub(b0[i0], b0[i1])) }
        for [b0:0, b0:0] { b2[i0] add init = b1[i0, i1] }
        for [b0:0, b0:0] { b3[i0] add init = b1[i1, i0] }
        result b2
        result b3
    "#,
    );
    insta::assert_snapshot!(body(&program), @"
    for [b0:0, b0:0] {
      b1[i0, i1] = exp(sub(b0[i0], b0[i1]))
    }
    for [b0:0, b0:0] {
      b2[i0] add init = exp(sub(b0[i0], b0[i1]))
    }
    for [b0:0, b0:0] {
      b3[i0] add init = exp(sub(b0[i1], b0[i0]))
    }
    result b2
    result b3
    ");
}

#[test]
fn round_sizes_of_large_inputs_are_constants() {
    use aerogel_tensor::ir::{Sizes, for_sizes};
    let text = r#"
        in b0 "x": f32[?, ?]
        in b1 "y": f32[?, b0:1]
        tmp b2 "pairs": f32[b0:0, b1:0, b0:1]
        tmp b3 "all": i32[(mul(extent(b0:1), i32(2)))]
        tmp b4 "twice": i32[(mul(extent(b0:0), i32(2)))]
        agree b0:1 = b1:1 "{} and {}"
        for [b0:0, b1:0, b0:1] { b2[i0, i1, i2] = sub(b0[i0, i2], b1[i1, sub(sub(extent(b0:1), i2), i32(1))]) }
        for [(mul(extent(b0:1), i32(2)))] { b3[i0] = i0 }
        for [(mul(extent(b0:0), i32(2)))] { b4[i0] = i0 }
        result b2
        result b3
        result b4
    "#;
    let program = aerogel_tensor::ir::parse(text).expect("it parses");
    let sizes = |x: &[usize], y: &[usize]| {
        Sizes::of(&program, &[(ScalarType::F32, x), (ScalarType::F32, y)])
    };
    // Small inputs, and such that do not fit, run the program for all sizes.
    assert_eq!(sizes(&[5, 3], &[2, 3]), Sizes::default());
    assert_eq!(sizes(&[600, 3], &[2, 4]), Sizes::default());
    // Sizes that are not round share a program with others of their class.
    assert_eq!(sizes(&[613, 3], &[2, 3]), sizes(&[999, 3], &[2, 3]));
    assert_ne!(sizes(&[613, 3], &[2, 3]), sizes(&[613, 3], &[1, 3]));
    assert_ne!(sizes(&[613, 3], &[0, 3]), sizes(&[613, 3], &[1, 3]));
    assert_ne!(sizes(&[613, 3], &[2, 3]), sizes(&[640, 3], &[2, 3]));
    assert_ne!(sizes(&[613, 3], &[2, 3]), sizes(&[2613, 3], &[2, 3]));

    let sized = for_sizes(program.clone(), &sizes(&[613, 3], &[2, 3]));
    aerogel_tensor::verify(&sized).expect("it is a program");
    // One axis, and twice as many.
    assert_eq!(
        sized
            .sizes
            .values()
            .map(|size| size.most)
            .collect::<Vec<_>>(),
        [2048, 2048]
    );
    insta::assert_snapshot!(sized.to_string(), @r#"
    in b0 "x": f32[?, 3]
    in b1 "y": f32[2, 3]
    tmp b2 "pairs": f32[b0:0, 2, 3]
    tmp b3 "all": i32[6]
    tmp b4 "twice": i32[(mul(extent(b0:0), i32(2)))]
    agree 3 = 3 "{} and {}"
    for [b0:0, 2, 3] {
      b2[i0, i1, i2] = sub(b0[i0, i2], b1[i1, add(sub(i32(3), i2), i32(-1))])
    }
    for [6] {
      b3[i0] = i0
    }
    for [(mul(extent(b0:0), i32(2)))] {
      b4[i0] = i0
    }
    result b2
    result b3
    result b4
    "#);
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
fn an_index_that_may_be_an_error_is_asked_for_whether_a_block_runs_or_not() {
    let inlined_in = |begin: &str| {
        let text = format!(
            r#"
        in b0 "x": f32[?]
        in b1 "at": i32[4]
        tmp b2 "t": f32[4]
        tmp b3 "y": f32[4]
        tmp b4 "n": i32[]
        var x0: i32
        for [4] {{ b2[i0] = b0[b1[i0] error] }}
        for [] {{ b4[] = i32(3) }}
        {begin} {{
          for [4] {{ b3[i0] = neg(b2[i0]) }}
        }}
        result b3
    "#
        );
        let program = after("inline", &text);
        !body(&program).replace("b2[i0] =", "").contains("b2[")
    };
    assert!(!inlined_in("if gt(b4[], i32(2))"));
    assert!(!inlined_in("loop x0 in i32(0), b4[], 1"));
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
    b3: it is a result
    b1: recomputing it costs more (14 operations, 2 times)
    "#);
}

#[test]
fn sums_that_share_a_loop_compute_what_they_read_once() {
    let program = after(
        "inline",
        r#"
        in b0 "x": f32[?, 9]
        tmp b1 "t": f32[b0:0, 9]
        tmp b2 "least": f32[b0:0]
        tmp b3 "has": u1[b0:0]
        for [b0:0, 9] { b1[i0, i1] = sin(b0[i0, i1]) }
        for [b0:0, 9] { b2[i0] min init = b1[i0, i1] }
        for [b0:0, 9] { b3[i0] or init = ne(b1[i0, i1], b1[i0, i1]) }
        result b2
        result b3
    "#,
    );
    insta::assert_snapshot!(body(&program), @r#"
    for [b0:0, 9] {
      b1[i0, i1] = sin(b0[i0, i1])
    }
    for [b0:0, 9] {
      b2[i0] min init = sin(b0[i0, i1])
    }
    for [b0:0, 9] {
      %0 = sin(b0[i0, i1])
      b3[i0] or init = ne(%0, %0)
    }
    result b2
    result b3
    "#);
    // The second one needs the first one's result, and cannot share its loop.
    let program = after(
        "inline",
        r#"
        in b0 "x": f32[?, 9]
        tmp b1 "t": f32[b0:0, 9]
        tmp b2 "most": f32[b0:0]
        tmp b3 "sum": f32[b0:0]
        for [b0:0, 9] { b1[i0, i1] = sin(b0[i0, i1]) }
        for [b0:0, 9] { b2[i0] max init = b1[i0, i1] }
        for [b0:0, 9] { b3[i0] add init = sub(b1[i0, i1], b2[i0]) }
        result b3
    "#,
    );
    assert_eq!(
        program.kept[&Buffer::from_u32(1)].to_string(),
        "recomputing it costs more (14 operations, 2 times)"
    );
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

#[test]
fn known_values_are_read() {
    let program = after(
        "known_values",
        r#"
        in b0 "x": f32[?]
        in b1 "g": f32[b0:0, 4]
        tmp b2 "y": f32[b0:0]
        tmp b3 "d": f32[b0:0, 4]
        tmp b4 "shifted": f32[b0:0]
        tmp b5 "other": f32[4]
        for [b0:0] { b2[i0] = tanh(b0[i0]) }
        for [b0:0, 4] { b3[i0, i1] = mul(b1[i0, i1], tanh(b0[i0])) }
        for [b0:0] { b4[i0] = tanh(b0[add(i0, i32(1))] clamp) }
        for [4] { b5[i0] = exp(tanh(b0[i0] clamp)) }
        for [b0:0] { b2[i0] = b2[i0] }
        for [b0:0] { b4[i0] = tanh(b0[i0]) }
        for [b0:0] { b2[i0] = tanh(b0[i0]) }
        result b2
        result b3
        result b4
        result b5
    "#,
    );
    insta::assert_snapshot!(body(&program), @"
    for [b0:0] {
      b2[i0] = tanh(b0[i0])
    }
    for [b0:0, 4] {
      b3[i0, i1] = mul(b1[i0, i1], b2[i0])
    }
    for [b0:0] {
      b4[i0] = tanh(b0[add(i0, i32(1))] clamp)
    }
    for [4] {
      b5[i0] = exp(tanh(b0[i0] clamp))
    }
    for [b0:0] {
      b2[i0] = b2[i0]
    }
    for [b0:0] {
      b4[i0] = tanh(b0[i0])
    }
    for [b0:0] {
      b2[i0] = b4[i0]
    }
    result b2
    result b3
    result b4
    result b5
    ");
}

#[test]
fn values_that_a_for_changes_itself_are_not_known() {
    let program = after(
        "known_values",
        r#"
        in b0 "x": f32[8]
        tmp b1 "y": f32[8]
        tmp b2 "z": f32[8]
        for [8] { b1[i0] = tanh(b0[i0]) }
        for [8] { b1[sub(i32(7), i0)] = tanh(b0[i0]) }
        for [8] { b1[i0] = tanh(b0[i0]) }
        for [8, 4] { b1[i0] add = tanh(b0[i0]) }
        for [8] { b1[i0] = tanh(b0[i0]) }
        for [8] {
          b0[sub(i32(7), i0)] = f32(0.0)
          b2[i0] = sqrt(tanh(b0[i0]))
        }
        result b1
        result b2
    "#,
    );
    let text = body(&program);
    assert_eq!(text.matches("tanh(b0[i0])").count(), 6, "{text}");
}
