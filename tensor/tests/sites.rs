//! An index outside an axis is an error that names the access: the interpreter and plans name the same one.

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::{Compiler, Config};
use aerogel_tensor::interp::run;
use aerogel_tensor::ir::{Array, Failure};
use aerogel_tensor::passes::Options;
use aerogel_tensor::{Codes, Operand, OutOfBounds, Plan, RunError, Settings, parse, verify};

fn ints(shape: &[usize], data: &[i32]) -> Array {
    Array {
        ty: ScalarType::I32,
        shape: shape.to_vec(),
        data: data.iter().map(|&x| Scalar::i32(x)).collect(),
    }
}

/// What the interpreter and a plan end with, which is the same.
fn refused(text: &str, inputs: &[Array]) -> OutOfBounds {
    let program = parse(text).unwrap();
    verify(&program).unwrap();
    let expected = run(&program, &mut inputs.to_vec()).unwrap_err();
    let compiler = Compiler::new(Config {
        max_threads: Some(1),
        ..Config::default()
    });
    let settings = Settings {
        compiler: &compiler,
        fast_math: aerogel_ir::FastMath::Off,
        options: Options::default(),
        codes: &Codes::default(),
        most_kept: u64::MAX,
        stamp: 0,
        backend: 0,
        gemm: None,
        profiler: None,
    };
    let plan = Plan::new(program, settings).unwrap();
    let operands: Vec<Operand> = inputs.iter().map(|a| Operand::of(a).unwrap()).collect();
    let found = plan.run(&operands).err().unwrap();
    assert_eq!(found, expected, "{text}\nbecame\n{}", plan.program());
    let RunError::Failure(Failure::Index(found)) = found else {
        panic!("{found}")
    };
    found
}

const CHAIN: &str = r#"
    in b0 "x": i32[4]
    in b1 "at": i32[3]
    in b2 "n": i32[2, 3]
    tmp b3 "first": i32[3]
    tmp b4 "second": i32[3]
    tmp b5 "sum": i32[3]
    tmp b6 "placed": i32[4]
    for [3] { b3[i0] = b0[b1[i0]] error }
    for [3] { b4[i0] = b0[add(b1[i0], i32(1))] error }
    for [3] { b5[i0] = add(add(b3[i0], b4[i0]), b2[i32(0), add(b1[i0], i32(-1))] error) }
    for [4] { b6[i0] = i32(0) }
    for [3] { b6[b5[i0]] error add = i32(1) }
    result b6
"#;

#[test]
fn plans_name_the_access_that_the_interpreter_names() {
    let n = ints(&[2, 3], &[0, 0, 1, 9, 9, 9]);
    let named = |x: &[i32], at: &[i32]| {
        let found = refused(CHAIN, &[ints(&[4], x), ints(&[3], at), n.clone()]);
        let site = found.site.to_string();
        (site, found.axis, found.index, found.size)
    };
    let says = |site: &str, axis, index, extent| (site.to_owned(), axis, index, extent);
    assert_eq!(named(&[0; 4], &[1, -2, 2]), says("s0", 0, -2, 4));
    assert_eq!(named(&[0; 4], &[1, 3, 2]), says("s1", 0, 4, 4));
    assert_eq!(named(&[0; 4], &[1, 2, 0]), says("s2", 1, -1, 3));
    assert_eq!(named(&[0, 0, 7, 0], &[1, 1, 2]), says("s3", 0, 7, 4));
}

#[test]
fn an_access_keeps_its_name_in_loops_and_branches() {
    let text = r#"
        in b0 "x": i32[5]
        tmp b1 "y": i32[5]
        var x0: i32
        for [5] { b1[i0] = i32(0) }
        for [5] {
          loop x0 in i32(0), i32(3), 1 {
            if lt(b0[i0], i32(3)) { b1[add(i0, x0)] error = i32(0) } else { b1[sub(i0, x0)] error = i32(1) }
          }
        }
        result b1
    "#;
    for (x, site, index) in [([0; 5], "s0", 5), ([9; 5], "s1", -1)] {
        let found = refused(text, &[ints(&[5], &x)]);
        assert_eq!((&*found.site.to_string(), found.index), (site, index));
    }
}

#[test]
fn sites_are_in_the_text() {
    let program = parse(CHAIN).unwrap();
    let text = program.to_string();
    let sites: Vec<&str> = text.lines().filter(|l| l.starts_with("site")).collect();
    insta::assert_snapshot!(sites.join("\n"), @r"
    site s0 = load b0
    site s1 = load b0
    site s2 = load b2
    site s3 = store b6
    ");
    assert!(text.contains("b0[b1[i0]] error s0"), "{text}");
    let again = parse(&text).unwrap();
    assert_eq!(again.to_string(), text);
    assert_eq!(again.sites, program.sites);
    // One access may stand in several places, and count from the end.
    let text = r#"in b0 "x": i32[4]
in b1 "at": i32[3]
tmp b2 "y": i32[3]
site s0 = load b0 from_end(0)
for [3] {
  %0 = b1[i0]
  %1 = add(%0, i32(4))
  %2 = select(lt(%0, i32(0)), %1, %0)
  b2[i0] = add(b0[%2] error s0, b0[%1] error s0)
}
result b2
"#;
    let program = parse(text).unwrap();
    verify(&program).unwrap();
    assert_eq!(program.sites.len(), 1);
    assert_eq!(
        parse(&program.to_string()).unwrap().to_string(),
        program.to_string()
    );
    assert!(parse(&text.replace("error s0", "error s7")).is_err());
}
