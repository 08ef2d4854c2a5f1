//! Programs in which passes or kernels may not do what is easy: all mean the same before and after.

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::{Compiler, Config};
use aerogel_tensor::interp::run;
use aerogel_tensor::ir::{Array, Failure};
use aerogel_tensor::passes::Options;
use aerogel_tensor::{Codes, Operand, Plan, RunError, Settings, parse, verify};

fn ints(shape: &[usize]) -> Array {
    let n = shape.iter().product::<usize>() as i32;
    Array {
        ty: ScalarType::I32,
        shape: shape.to_vec(),
        data: (0..n).map(|k| Scalar::i32(k * 7 % 11)).collect(),
    }
}

fn plan(text: &str) -> Plan {
    plan_with(text, &Codes::default())
}

fn plan_with(text: &str, codes: &Codes) -> Plan {
    let program = parse(text).unwrap();
    verify(&program).unwrap();
    let compiler = Compiler::new(Config {
        max_threads: Some(1),
        ..Config::default()
    });
    let settings = Settings {
        compiler: &compiler,
        fast_math: aerogel_ir::FastMath::Off,
        options: Options::default(),
        codes,
        most_kept: u64::MAX,
        stamp: 0,
        backend: 0,
        gemm: None,
        profiler: None,
    };
    Plan::new(program, settings).unwrap()
}

/// The plan gives what the interpreter gives, twice.
fn check(text: &str, inputs: &[Array]) {
    let program = parse(text).unwrap();
    let expected = run(&program, &mut inputs.to_vec()).unwrap();
    let plan = plan(text);
    for _ in 0..2 {
        let operands: Vec<Operand> = inputs.iter().map(|a| Operand::of(a).unwrap()).collect();
        let found = plan.run(&operands).unwrap();
        let found: Vec<Array> = found.iter().map(|o| o.to_array().unwrap()).collect();
        assert_eq!(found, expected, "{text}\nbecame\n{}", plan.program());
    }
}

#[test]
fn a_temporary_that_one_statement_stores_to_twice() {
    for second in [
        "b1[i0] add = i32(1)",
        "b1[i0] = add(b1[i0], i32(1))",
        "b1[i32(0)] clamp = i32(9)",
    ] {
        let text = format!(
            r#"
            in b0 "x": i32[?]
            tmp b1 "t": i32[b0:0]
            tmp b2 "y": i32[b0:0]
            for [b0:0] {{ b1[i0] = b0[i0] {second} }}
            for [b0:0] {{ b2[i0] = b1[i0] }}
            result b2
        "#
        );
        check(&text, &[ints(&[1])]);
    }
}

#[test]
fn loads_that_a_choice_protects() {
    for value in [
        "select(lt(i0, extent(b0:0)), b0[i0], i32(0))",
        "select(gt(extent(b0:0), i32(50)), b0[i32(50)], i32(-1))",
        "select(lt(i0, extent(b0:0)), b0[i0] error, i32(0))",
    ] {
        let text = format!(
            r#"
            in b0 "x": i32[?]
            tmp b1 "y": i32[1000000]
            for [1000000] {{ b1[i0] = {value} }}
            result b1
        "#
        );
        check(&text, &[ints(&[3])]);
    }
}

#[test]
fn nothing_crosses_what_leaves_a_loop() {
    for leave in ["break", "continue"] {
        let text = format!(
            r#"
            var x0: i32
            in b0 "x": i32[4]
            in b1 "y": i32[4]
            loop x0 in i32(0), i32(10), 1 {{
              for [4] {{ b0[i0] = add(b0[i0], i32(1)) }}
              if gt(b0[i32(0)], i32(2)) {{ {leave} }}
              for [4] {{ b1[i0] = add(b1[i0], i32(1)) }}
            }}
            result b1
        "#
        );
        check(&text, &[ints(&[4]), ints(&[4])]);
    }
}

#[test]
fn elements_whose_indices_change() {
    for body in [
        "x0 = i32(0) b0[x0] = i32(7) x0 = i32(1) b1[x0] = b0[x0]",
        "x0 = i32(0) b0[x0] = i32(7) loop x0 in i32(0), i32(9), 1 { x1 = add(x1, b0[x0]) } b1[i0] = x1",
        "b2[i32(0)] = i32(2) b0[b2[i32(0)]] = i32(7) b2[i32(0)] = i32(3) b1[i0] = b0[b2[i32(0)]]",
    ] {
        let text = format!(
            r#"
            var x0: i32
            var x1: i32
            in b0 "x": i32[10]
            tmp b1 "y": i32[10]
            in b2 "at": i32[1]
            for [10] {{ b1[i0] = i32(0) }}
            for [1] {{ {body} }}
            result b1
        "#
        );
        check(&text, &[ints(&[10]), ints(&[1])]);
    }
}

#[test]
fn filled_components_that_nothing_stores_to() {
    for (store, read) in [
        ("b1[i0, i32(0)] max init = b0[i0]", "b1[i0, i32(1)]"),
        (
            "b1[i0, i32(0)] add init = b0[i0]",
            "add(b1[i0, i32(1)], b1[i0, i32(0)])",
        ),
    ] {
        let text = format!(
            r#"
            in b0 "x": i32[?]
            tmp b1 "t": i32[b0:0, 2]
            tmp b2 "y": i32[b0:0]
            for [b0:0] {{ {store} }}
            for [b0:0] {{ b2[i0] = {read} }}
            result b2
        "#
        );
        check(&text, &[ints(&[5])]);
    }
    let diagonal = r#"
        in b0 "x": i32[?]
        tmp b1 "t": i32[b0:0, 3, 3]
        tmp b2 "y": i32[b0:0, 3, 3]
        for [b0:0, 3] { b1[i0, i1, i1] add init = b0[i0] }
        for [b0:0, 3, 3] { b2[i0, i1, i2] = neg(b1[i0, i1, i2]) }
        result b2
    "#;
    check(diagonal, &[ints(&[5])]);
}

#[test]
fn sums_that_miss_the_only_element() {
    for index in ["i32(3)", "add(i0, i32(-1))"] {
        let text = format!(
            r#"
            in b0 "x": i32[?]
            tmp b1 "s": i32[1]
            for [b0:0] {{ b1[{index}] zero max init = b0[i0] }}
            result b1
        "#
        );
        check(&text, &[ints(&[1])]);
    }
}

#[test]
fn sums_of_nothing_touch_nothing() {
    for outside in ["", "error"] {
        let text = format!(
            r#"
            in b0 "x": i32[?, ?]
            in b1 "s": i32[4]
            for [b0:0, b0:1] {{ b1[add(i0, i32(1))] {outside} add = b0[i0, i1] }}
            result b1
        "#
        );
        check(&text, &[ints(&[4, 0]), ints(&[4])]);
    }
}

#[test]
fn an_input_that_is_another_and_changes_is_refused() {
    let plan = plan(
        r#"
        in b0 "a": i32[4]
        in b1 "b": i32[4]
        tmp b2 "t": i32[4]
        tmp b3 "y": i32[4]
        for [4] { b2[i0] = mul(b0[i0], i32(2)) }
        for [4] { b1[i0] = i32(0) }
        for [4] { b3[i0] = b2[i0] }
        result b3
    "#,
    );
    let x = Operand::of(&ints(&[4])).unwrap();
    let refused = plan.run(&[x.clone(), x.clone()]).err().unwrap();
    assert!(
        matches!(refused, RunError::Failure(Failure::Input(1, _))),
        "{refused}"
    );
    assert!(
        plan.run(&[x.clone(), Operand::of(&ints(&[4])).unwrap()])
            .is_ok()
    );
}

#[test]
fn extents_beyond_what_indices_reach() {
    let plan = plan(
        r#"
        in b0 "x": i32[?]
        tmp b1 "y": u8[(mul(extent(b0:0), i32(2147483647)))]
        tmp b2 "z": u8[3000000000]
        for [3000000000] { b2[i0] = u8(1) }
        result b2
    "#,
    );
    let refused = plan
        .run(&[Operand::of(&ints(&[4])).unwrap()])
        .err()
        .unwrap();
    let RunError::Failure(Failure::Extent(Some(_), 3_000_000_000)) = refused else {
        panic!("{refused}")
    };
}

#[test]
fn choices_of_choices_grow_in_a_line() {
    let mut text = r#"
        in b0 "x": i32[?]
        tmp b1 "s": i32[b0:0]
        tmp b2 "t": i32[b0:0]
    "#
    .to_owned();
    let mut body = r#"
        for [b0:0] { b1[i0] = mul(b0[i0], i32(2)) }
        for [b0:0] { b2[i0] = b1[add(i0, i32(1))] zero }
    "#
    .to_owned();
    for k in 3..43 {
        let before = k - 1;
        text += &format!("tmp b{k} \"t{k}\": i32[b0:0]\n");
        body += &format!(
            "for [b0:0] {{ b{k}[i0] = select(gt(b0[i0], i32({k})), mul(b{before}[i0], i32(2)), add(b{before}[i0], i32(1))) }}\n"
        );
    }
    check(&(text + &body + "result b42"), &[ints(&[9])]);
}

#[test]
fn dear_values_are_not_computed_at_each_turn() {
    let text = r#"
        var x0: i32
        in b0 "x": f32[?]
        in b1 "y": f32[?]
        tmp b2 "t": f32[b0:0]
        for [b0:0] { b2[i0] = sin(exp(b0[i0])) }
        loop x0 in i32(0), i32(1000), 1 { for [b0:0] { b1[i0] clamp = add(b1[i0] clamp, b2[i0]) } }
    "#;
    let plan = plan(text);
    let why: Vec<String> = plan
        .program()
        .kept
        .values()
        .map(ToString::to_string)
        .collect();
    assert_eq!(why, ["recomputing it costs more (26 operations, 8 times)"]);
}

#[test]
fn kernels_that_differ_in_buffers_alone_are_compiled_once() {
    let mut text = String::from("in b0 \"x\": i32[?]\n");
    for k in 1..=20 {
        text += &format!("tmp b{k} \"t{k}\": i32[b0:0]\n");
    }
    for k in 1..=20 {
        let from = k - 1;
        text += &format!(
            "for [b0:0] {{ b{k}[i0] = add(b{from}[add(i0, i32(1))] wrap, mul(b{from}[add(i0, i32(-1))] wrap, b{from}[i0])) }}\n"
        );
    }
    text += "result b20\n";
    let codes = Codes::default();
    let plan = plan_with(&text, &codes);
    assert!(plan.program().body.len() > 4, "{}", plan.program());
    // The first reads what the caller has named, the last stores what is asked for.
    let n = codes.len();
    assert!(n <= 3, "{n} codes");
    // Another plan with the same kernels takes them.
    plan_with(
        &text.replace("result b20", "result b20\nresult b19"),
        &codes,
    );
    assert!(codes.len() <= n + 1, "{} codes", codes.len());
    check(&text, &[ints(&[7])]);
}
