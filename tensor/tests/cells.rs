//! Statements over the active cells of fields: what the verifier asks of them, and each pass that knows of them.

use aerogel_tensor::ir::{Stage, verify_at};
use aerogel_tensor::passes::{Options, PASSES};
use aerogel_tensor::run::explain;
use aerogel_tensor::{Program, parse, verify};

/// Two fields in the same cells, and one in others.
const FIELDS: &str = r#"
tree0 { pointer i:4 { dense i:8 { place x: f32, place y: f32 } }, bitmasked i:32 { place z: f32 } }
field b0 "x": f32[32] = tree0.S3
field b1 "y": f32[32] = tree0.S4
field b2 "z": f32[32] = tree0.S6
tmp b3 "t": f32[32]
tmp b4 "u": f32[32]
tmp b5 "s": f32[]
tmp b6 "n": f32[]
"#;

/// Two fields of a gigabyte, if all of their cells were active.
const LARGE: &str = r#"
tree0 { pointer i:4096 j:4096 { dense i:4 j:4 { place x: f32, place y: f32 } } }
field b0 "x": f32[16384, 16384] = tree0.S3
field b1 "y": f32[16384, 16384] = tree0.S4
tmp b2 "t": f32[16384, 16384]
tmp b3 "m": u1[16384, 16384]
tmp b4 "n": f32[]
tmp b5 "o": i32[16384, 16384]
region r0 "mine" (in)
var x0: i32
"#;

fn program(body: &str) -> Program {
    parse(&format!("{FIELDS}{body}")).unwrap()
}

/// The statements of a program after one pass.
fn after(pass: &str, body: &str) -> String {
    let mut program = program(body);
    verify(&program).unwrap();
    let pass = PASSES.iter().find(|p| p.name == pass).unwrap();
    (pass.run)(&mut program, Options::default());
    verify(&program).unwrap();
    let text = program.to_string();
    text[text.find("for ").unwrap()..].to_owned()
}

fn wrong(body: &str) -> String {
    verify(&program(body)).unwrap_err()
}

#[test]
fn stages_forbid_what_passes_have_removed_or_not_made() {
    let at = |body: &str, stage| verify_at(&program(body), stage).unwrap_err();
    insta::assert_snapshot!(at("for [32] { b5[] add init = b3[i0] }", Stage::Reduced), @"`init` of b5 at Reduced");
    let in_branch = "for [32] { if gt(b3[i0], f32(0)) { b5[] add init = b3[i0] } }";
    insta::assert_snapshot!(at(in_branch, Stage::Placed), @"`init` of b5 at Placed");
    let tree = "tree1 { pointer i:4 { dense i:8 { place t: f32 } } }\nfield b0";
    let text = FIELDS.replacen("field b0", tree, 1);
    let text = text.replace("f32[32]\ntmp b4", "f32[32] = tree1.S3\ntmp b4");
    let placed = parse(&format!("{text}clear b3\n")).unwrap();
    verify_at(&placed, Stage::Placed).unwrap();
    insta::assert_snapshot!(verify_at(&placed, Stage::Reduced).unwrap_err(), @"b3 lies in a tree of its own at Reduced");
}

#[test]
fn a_space_of_cells_is_printed_and_read() {
    let program = program("for cells b0 [32] {\n  b3[i0] = b1[i0]\n}\nresult b3\n");
    verify(&program).unwrap();
    let text = program.to_string();
    assert!(
        text.contains("field b2 \"z\": f32[32] = tree0.S6\n"),
        "{text}"
    );
    assert!(
        text.contains("for cells b0 [32] {\n  b3[i0] = b1[i0]\n}\n"),
        "{text}"
    );
    assert_eq!(parse(&text).unwrap().to_string(), text);
}

#[test]
fn the_verifier_knows_of_cells() {
    let all = |body: &str| verify(&program(body));
    all("for cells b0 [32] { b1[i0] = f32(1) }").unwrap();
    all("for [32] { b0[add(i0, i32(1))] zero = f32(1) }").unwrap();
    insta::assert_snapshot!(
        wrong("for cells b0 [32] { b1[add(i0, i32(1))] zero = f32(1) }"),
        @"a store to b1 among the cells of b0 may make others active"
    );
    all("for cells b0 [32] { b2[i0] = f32(1) }").unwrap();
    insta::assert_snapshot!(wrong("for cells b3 [32] { b3[i0] = f32(1) }"), @"b3 has no cells over this space");
    insta::assert_snapshot!(wrong("for cells b0 [8] { b3[i0] = f32(1) }"), @"b0 has no cells over this space");
    insta::assert_snapshot!(wrong("for [32] { b0[i0] add init = f32(1) }"), @"`init` of a field");
    insta::assert_snapshot!(wrong("result b0"), @"b0 is a result, and lies in a tree");
    insta::assert_snapshot!(wrong("call sort(b3, b4) = (b0)"), @"a library with a field");
}

#[test]
fn values_at_cells_are_computed_at_the_same_cells() {
    insta::assert_snapshot!(after("inline", "
        for cells b0 [32] { b3[i0] = mul(b0[i0], b1[i0]) }
        for cells b1 [32] { b4[i0] = add(b3[i0], f32(1)) }
        result b4
    "), @r"
    for cells b0 [32] {
      b3[i0] = mul(b0[i0], b1[i0])
    }
    for cells b1 [32] {
      b4[i0] = add(mul(b0[i0], b1[i0]), f32(1.0))
    }
    result b4
    ");
}

#[test]
fn elsewhere_they_are_read_from_memory() {
    insta::assert_snapshot!(after("inline", "
        for cells b0 [32] { b3[i0] = mul(b0[i0], b1[i0]) }
        for cells b2 [32] { b4[i0] = add(b3[i0], f32(1)) }
        result b4
    "), @r"
    for cells b0 [32] {
      b3[i0] = mul(b0[i0], b1[i0])
    }
    for cells b2 [32] {
      b4[i0] = add(b3[i0], f32(1.0))
    }
    result b4
    ");
    let program = program(
        "
        for cells b0 [32] { b3[i0] = mul(b0[i0], b1[i0]) }
        for [32] { b4[i0] = add(b3[i0], f32(1)) }
        result b4
    ",
    );
    insta::assert_snapshot!(explain::explain(&program, Options::default()), @r"
    2 statements became 2 kernels; 2 of 2 temporaries are materialised
    kernel 0 over the cells of x, [32]: t
        t: f32[32], materialised: it is computed at the active cells of a field, and read at other points too
    kernel 1 over [32]: u
        u: f32[32], materialised: it is a result
    ");
}

#[test]
fn what_makes_cells_active_stands_between() {
    insta::assert_snapshot!(after("inline", "
        for cells b0 [32] { b3[i0] = b1[i0] }
        for [32] { b0[sub(i0, i32(1))] zero = f32(2) }
        for cells b0 [32] { b4[i0] = b3[i0] }
        result b4
    "), @r"
    for cells b0 [32] {
      b3[i0] = b1[i0]
    }
    for [32] {
      b0[sub(i0, i32(1))] zero = f32(2.0)
    }
    for cells b0 [32] {
      b4[i0] = b3[i0]
    }
    result b4
    ");
    insta::assert_snapshot!(after("fuse", "
        for cells b0 [32] { b3[i0] = b1[i0] }
        for [32] { b0[sub(i0, i32(1))] zero = f32(2) }
        for cells b0 [32] { b4[i0] = b1[i0] }
        result b4
    "), @r"
    for cells b0 [32] {
      b3[i0] = b1[i0]
    }
    for [32] {
      b0[sub(i0, i32(1))] zero = f32(2.0)
    }
    for cells b0 [32] {
      b4[i0] = b1[i0]
    }
    result b4
    ");
}

#[test]
fn only_equal_cells_are_gone_over_together() {
    insta::assert_snapshot!(after("fuse", "
        for cells b0 [32] { b3[i0] = b1[i0] }
        for [32] { b2[i0] = f32(2) }
        for cells b2 [32] { b4[i0] = b1[i0] }
        for cells b1 [32] { b0[i0] = f32(3) }
        result b3
        result b4
    "), @r"
    for cells b0 [32] {
      b3[i0] = b1[i0]
      b0[i0] = f32(3.0)
    }
    for [32] {
      b2[i0] = f32(2.0)
    }
    for cells b2 [32] {
      b4[i0] = b1[i0]
    }
    result b3
    result b4
    ");
}

#[test]
fn sums_over_cells_begin_before_them() {
    insta::assert_snapshot!(after("reductions", "
        for cells b0 [32] { b5[] add init = b0[i0] }
        result b5
    "), @r"
    for [] {
      b5[] = f32(0.0)
    }
    for cells b0 [32] {
      b5[] add = b0[i0]
    }
    result b5
    ");
}

#[test]
fn kernels_stand_between_what_they_touch() {
    let region = "region r0 \"mine\" (out, in) tree0\n";
    let head = FIELDS.replace("field b0", &format!("{region}field b0"));
    let with = |body: &str| parse(&format!("{head}{body}")).unwrap();
    let mut program = with(
        "
        for cells b0 [32] { b3[i0] = b1[i0] }
        run r0(b5) = (b4, b3)
        for cells b0 [32] { b1[i0] = add(b3[i0], b5[]) }
        result b4
    ",
    );
    verify(&program).unwrap();
    let before = program.to_string();
    assert_eq!(parse(&before).unwrap().to_string(), before);
    for pass in PASSES {
        (pass.run)(&mut program, Options::default());
        verify(&program).unwrap();
    }
    insta::assert_snapshot!(explain::explain(&parse(&before).unwrap(), Options::default()), @r"
    2 statements became 2 kernels; 3 of 3 temporaries are materialised
    kernel 0 over the cells of x, [32]: t
        t: f32[32], materialised: a kernel of yours reads or writes it
    kernel `mine`
        u: f32[32], materialised: it is a result
        s: f32[], materialised: a kernel of yours reads or writes it
    kernel 1 over the cells of x, [32]: y
    ");
    insta::assert_snapshot!(verify(&with("run r0() = (b3)")).unwrap_err(), @r"
    r0 takes 2 arrays
    ");
    insta::assert_snapshot!(verify(&with("run r0() = (b0, b1)")).unwrap_err(), @r"
    a field as an array
    ");
    insta::assert_snapshot!(verify(&with("run r0(b3) = (b4, b3)")).unwrap_err(), @r"
    what is returned is a number
    ");
}

#[test]
fn stores_to_fields_stay_where_they_are() {
    // In a variable, the place would be stored to at each point, which makes all cells active.
    insta::assert_snapshot!(after("registers", "
        for [32] {
          if gt(b1[i0], f32(0)) { b0[i0] = f32(1) }
          if gt(b1[i0], f32(5)) { b0[i0] = f32(2) }
        }
    "), @r"
    for [32] {
      if gt(b1[i0], f32(0.0)) {
        b0[i0] = f32(1.0)
      }
      if gt(b1[i0], f32(5.0)) {
        b0[i0] = f32(2.0)
      }
    }
    ");
    insta::assert_snapshot!(after("dead", "
        for cells b0 [32] { b3[i0] = b1[i0] }
        for cells b0 [32] { b1[i0] = f32(2) }
    "), @r"
    for cells b0 [32] {
      b1[i0] = f32(2.0)
    }
    ");
}

/// What becomes of temporaries as large as fields, and of the statements.
fn scratch(body: &str) -> String {
    let mut program = parse(&format!("{LARGE}{body}")).unwrap();
    verify(&program).unwrap();
    let pass = PASSES.iter().find(|p| p.name == "scratch").unwrap();
    (pass.run)(&mut program, Options::default());
    verify(&program).unwrap();
    let text = program.to_string();
    let again = parse(&text).unwrap();
    verify(&again).unwrap();
    assert_eq!(again.to_string(), text);
    let is_new = |line: &&str| LARGE.lines().all(|l| l != *line);
    text.lines().filter(is_new).collect::<Vec<_>>().join("\n")
}

#[test]
fn large_temporaries_at_cells_lie_in_trees() {
    insta::assert_snapshot!(scratch("
        for cells b0 [16384, 16384] { b2[i0, i1] = b0[add(i0, i32(1)), i1] zero }
        for cells b1 [16384, 16384] { b0[i0, i1] = b2[i0, i1] }
    "), @r#"
    tree1 { pointer i:4096 j:4096 { dense i:4 j:4 { place t: f32 } } }
    tmp b2 "t": f32[16384, 16384] = tree1.S3
    for cells b0 [16384, 16384] {
      b2[i0, i1] = b0[add(i0, i32(1)), i1] zero
    }
    for cells b1 [16384, 16384] {
      b0[i0, i1] = b2[i0, i1]
    }
    "#);
    // What is made or read as a whole is an array.
    for array in [
        "for [16384, 16384] { b2[i0, i1] = f32(1) }",
        "for cells b0 [16384, 16384] { b2[i1, i0] = f32(1) }",
        "for cells b0 [16384, 16384] { b2[sub(i0, i32(1)), i1] zero = f32(1) }",
        "for [16384, 16384] { b2[i0, i1] = f32(0) b0[i0, i1] = b2[i0, i1] }",
        "call sort(b2, b5) = (b2)",
        "if lt(b2[i32(0), i32(0)], f32(1)) { for [] { b4[] = f32(1) } }",
        "run r0() = (b2)",
        "result b2",
    ] {
        let begin = "for cells b0 [16384, 16384] { b2[i0, i1] = f32(2) }";
        assert!(
            !scratch(&format!("{begin}\n{array}")).contains("tree1"),
            "{array}"
        );
    }
}

#[test]
fn what_is_zero_beside_cells_lies_in_trees() {
    insta::assert_snapshot!(scratch("
        for [16384, 16384] { b2[i0, i1] = f32(0) }
        for cells b0 [16384, 16384] { b2[i0, i1] = b0[i0, i1] }
        for cells b0 [16384, 16384] { b1[i0, i1] = b2[i0, add(i1, i32(1))] zero }
    "), @r#"
    tree1 { pointer i:4096 j:4096 { dense i:4 j:4 { place t: f32 } } }
    tmp b2 "t": f32[16384, 16384] = tree1.S3
    clear b2
    for cells b0 [16384, 16384] {
      b2[i0, i1] = b0[i0, i1]
    }
    for cells b0 [16384, 16384] {
      b1[i0, i1] = b2[i0, add(i1, i32(1))] zero
    }
    "#);
}

#[test]
fn stores_under_a_mask_go_over_its_cells() {
    insta::assert_snapshot!(scratch("
        for [16384, 16384] { b3[i0, i1] = u1(0) b2[i0, i1] = f32(1) }
        for cells b0 [16384, 16384] { b3[i0, i1] = u1(1) }
        for [16384, 16384] { if and(lt(i0, i1), b3[i0, i1]) { b0[add(i0, i32(1)), i1] zero = f32(3) } }
        for [16384, 16384] { if or(lt(i0, i1), b3[i0, i1]) { b0[add(i0, i32(1)), i1] zero = f32(4) } }
        for [16384, 16384] { if b3[i1, i0] { b0[add(i0, i32(1)), i1] zero = f32(5) } }
        for [16384, 16384] { if b3[i0, i1] { b0[i0, i1] = f32(6) } else { b0[i0, i1] = f32(7) } }
    "), @r#"
    tree1 { pointer i:4096 j:4096 { dense i:4 j:4 { place m: u1 } } }
    tmp b3 "m": u1[16384, 16384] = tree1.S3
    clear b3
    for [16384, 16384] {
      b2[i0, i1] = f32(1.0)
    }
    for cells b0 [16384, 16384] {
      b3[i0, i1] = u1(1)
    }
    for cells b3 [16384, 16384] {
      if and(lt(i0, i1), b3[i0, i1]) {
        b0[add(i0, i32(1)), i1] zero = f32(3.0)
      }
    }
    for [16384, 16384] {
      if or(lt(i0, i1), b3[i0, i1]) {
        b0[add(i0, i32(1)), i1] zero = f32(4.0)
      }
    }
    for [16384, 16384] {
      if b3[i1, i0] {
        b0[add(i0, i32(1)), i1] zero = f32(5.0)
      }
    }
    for [16384, 16384] {
      if b3[i0, i1] {
        b0[i0, i1] = f32(6.0)
      } else {
        b0[i0, i1] = f32(7.0)
      }
    }
    "#);
}

#[test]
fn turns_of_loops_begin_without_the_cells_of_others() {
    // Not where the cells stay, or more than one statement makes it.
    insta::assert_snapshot!(scratch("
        loop x0 in i32(0), i32(9), 1 {
          for cells b0 [16384, 16384] { b2[i0, i1] = b0[add(i0, i32(1)), i1] zero }
          for cells b0 [16384, 16384] { b0[i0, i1] = b2[i0, i1] }
        }
    "), @r#"
    tree1 { pointer i:4096 j:4096 { dense i:4 j:4 { place t: f32 } } }
    tmp b2 "t": f32[16384, 16384] = tree1.S3
    loop x0 in i32(0), i32(9), 1 {
      for cells b0 [16384, 16384] {
        b2[i0, i1] = b0[add(i0, i32(1)), i1] zero
      }
      for cells b0 [16384, 16384] {
        b0[i0, i1] = b2[i0, i1]
      }
    }
    "#);
    let moving = "
        loop x0 in i32(0), i32(9), 1 {
          for cells b0 [16384, 16384] { b2[i0, i1] = b0[add(i0, i32(1)), i1] zero }
          for [16384, 16384] { if lt(i0, x0) { b0[i0, i1] = f32(1) } }
        }
    ";
    insta::assert_snapshot!(scratch(moving), @r#"
    tree1 { pointer i:4096 j:4096 { dense i:4 j:4 { place t: f32 } } }
    tmp b2 "t": f32[16384, 16384] = tree1.S3
    loop x0 in i32(0), i32(9), 1 {
      clear b2
      for cells b0 [16384, 16384] {
        b2[i0, i1] = b0[add(i0, i32(1)), i1] zero
      }
      for [16384, 16384] {
        if lt(i0, x0) {
          b0[i0, i1] = f32(1.0)
        }
      }
    }
    "#);
    let first = "for cells b0 [16384, 16384] { b2[i0, i1] = f32(0) }";
    assert!(!scratch(&format!("{first}\n{moving}")).contains("clear"));
    assert!(!scratch(&moving.replace("= b0[", "add = b0[")).contains("clear"));
    let reads = moving.replace("zero }", "zero b1[i0, i1] = b2[i0, i1] }");
    assert!(!scratch(&reads).contains("clear"));
}

#[test]
fn the_verifier_knows_of_temporaries_in_trees() {
    let own = "tree1 { pointer i:4096 j:4096 { dense i:4 j:4 { place t: f32 } } }";
    let t = "tmp b2 \"t\": f32[16384, 16384]";
    let head = LARGE.replace(t, &format!("{own}\n{t} = tree1.S3"));
    let all = |text: &str| verify(&parse(text).unwrap());
    all(&format!(
        "{head}for cells b2 [16384, 16384] {{ b0[i0, i1] = b2[i0, i1] }}"
    ))
    .unwrap();
    all(&format!(
        "{head}loop x0 in i32(0), i32(9), 1 {{ clear b2 }}"
    ))
    .unwrap();
    let wrong = |body: &str| all(&format!("{head}{body}")).unwrap_err();
    insta::assert_snapshot!(wrong("for cells b2 [16384, 16384] { b2[i1, i0] = f32(1) }"), @"a store to b2 among the cells of b2 may make others active");
    insta::assert_snapshot!(wrong("for [16384, 16384] { clear b2 }"), @"b2 is no temporary in a tree that the host clears");
    insta::assert_snapshot!(wrong("clear b3"), @"b3 is no temporary in a tree that the host clears");
    insta::assert_snapshot!(wrong("clear b0"), @"b0 is no temporary in a tree that the host clears");
    insta::assert_snapshot!(wrong("call sort(b2, b5) = (b2)"), @"a library with a field");
    insta::assert_snapshot!(wrong("result b2"), @"b2 is a result, and lies in a tree");
    let two = head.replace("place t: f32", "place t: f32, place u: f32");
    insta::assert_snapshot!(all(&two).unwrap_err(), @"b2 is not alone in its tree");
    let twice = head.replace(
        "\"m\": u1[16384, 16384]",
        "\"m\": f32[16384, 16384] = tree1.S3",
    );
    insta::assert_snapshot!(all(&twice).unwrap_err(), @"b3 is named twice");
    insta::assert_snapshot!(all(&LARGE.replace("field b1", "tmp b1")).unwrap_err(), @"b0 is in a tree of the other kind: those of fields come first");
}

#[test]
fn what_lies_in_trees_is_said() {
    let program = parse(&format!(
        "{LARGE}
        for cells b0 [16384, 16384] {{ b2[i0, i1] = b0[add(i0, i32(1)), i1] zero }}
        for cells b0 [16384, 16384] {{ b0[i0, i1] = b2[i0, i1] }}
    "
    ))
    .unwrap();
    insta::assert_snapshot!(explain::explain(&program, Options::default()), @r"
    2 statements became 2 kernels; 1 of 1 temporaries is materialised
    kernel 0 over the cells of x, [16384, 16384]: t
        t: f32[16384, 16384] at active cells, materialised: its operands change before it is read
    kernel 1 over the cells of x, [16384, 16384]: x
    ");
}
