//! Texts of the IR with mistakes: each is refused by the parser or the verifier, or goes through all passes, verified after each
//! of them. Nothing panics.
//!
//! `AEROGEL_N_MUTATIONS` says how many, `AEROGEL_FIRST_SEED` which come first.

#[path = "../../tests/src/mutation.rs"]
mod mutation;

use aerogel_ir::{Stage, parse_module, print_module, verify, verify_calls};
use aerogel_passes::{Options, run};
use mutation::{Random, mutated, number, said, try_all};

const SAMPLES: [&str; 6] = [
    "
tree0 { dense i:8 j:8 { place x: f32 place y: f32 } place n: i32 }
field @x: f32 = tree0 [S2]
field @y: f32 = tree0 [S3]
field @n: i32 = tree0 [S4]
kernel @k(n: i32, s: f32) {
    v0: i32 = arg a0
    v1: f32 = arg a1
    v2: i32 = const 0
    v3: i32 = const 8
    v4: i32 = const 1
    parallel [v2, v2], [v3, v0] (v5: i32, v6: i32) {
        v7: i32 = add v6, v4
        v8: i64 = cast v7
        v9: i64 = const 0
        v10: i64 = const 8
        v11: u1 = ge v8, v9
        v12: u1 = lt v8, v10
        v13: u1 = and v11, v12
        assert v13, bounds, \"index {} of {}\", [v5, v7]
        v14: ref<f32> = field_at @x, [v5, v8]
        v15: f32 = load v14
        v16: f32 = mul v15, v1
        v17: ref<f32> = field_at @y, [v6, v5]
        store v17, v16
        v18: ref<i32> = field_at @n, []
        v19: i32 = atomic_add v18, v4
        yield []
    }
    return []
}",
    "
kernel @k(n: i32, a: array<f32, 1>, b: array<i32, 2>) -> f32 {
    v0: i32 = arg a0
    v1: i32 = const 0
    v2: i32 = const 1
    v3: f32 = const 0.0
    v4: ref<f32> = local
    store v4, v3
    parallel [v1], [v0] (v5: i32) {
        v6: i32 = array_shape a2, 1
        v7: f32 = for v1, v6, v2, [v3] (v8: i32, v9: f32) {
            v10: ref<i32> = array_at a2, [v5, v8]
            v11: i32 = load v10
            v12: ref<f32> = array_at a1, [v11]
            v13: f32 = load v12
            v14: f32 = add v9, v13
            v15: u1 = gt v14, v3
            v16: f32 = if v15 { yield [v14] } { yield [v9] }
            yield [v16]
        }
        v17: f32 = atomic_add v4, v7
        yield []
    }
    v18: f32 = load v4
    return [v18]
}",
    "
tree0 { pointer i:8 { dense i:4 { place z: i32 } } }
field @z: i32 = tree0 [S3]
kernel @k(n: i32) -> i32 {
    v0: i32 = arg a0
    v1: i32 = const 0
    v2: ref<i32> = local
    store v2, v1
    parallel [v1], [v0] (v3: i32) {
        v4: ref<i32> = field_at @z, [v3]
        store v4, v3
        yield []
    }
    parallel_cells tree0.S2 (v5: i32) {
        v6: ref<i32> = field_at @z, [v5]
        v7: i32 = load v6
        v8: i32 = atomic_add v2, v7
        yield []
    }
    v9: i32 = load v2
    return [v9]
}",
    "
func @f(v0: i32, v1: f32) -> i32, f32 {
    v2: i32 = const 3
    v3: i32 = floordiv v0, v2
    v4: i32 = mod v0, v3
    v5: f32 = sqrt v1
    v6: f32 = cast v4
    v7: u1 = lt v5, v6
    v8: f32 = select v7, v5, v6
    v9: i32 = shl v0, v2
    v10: i32, v11: f32 = while [v0, v8] (v12: i32, v13: f32) {
        v14: u1 = gt v12, v2
        yield [v14]
    } (v15: i32, v16: f32) {
        v17: i32 = sub v15, v2
        v18: f32 = mul v16, v1
        yield [v17, v18]
    }
    yield [v10, v11]
}",
    "
func @f(v0: i32) -> f32 {
    v1: f32 = const 1.0
    v2: f32 = const 2.0
    v3: vec<3, f32> = tensor [v1, v2, v1]
    v4: vec<3, f32> = mul v3, v3
    v5: f32 = tensor_get v4, [v0]
    v6: vec<3, f32> = tensor_set v4, [v0], v5
    v7: i32 = const 2
    v8: f32 = tensor_get v6, [v7]
    yield [v8]
}",
    "
tree0 { dense i:16 { place x: f32 } }
field @x: f32 = tree0 [S2]
func @helper(v0: f32) -> f32 {
    v1: f32 = mul v0, v0
    yield [v1]
}
kernel @k() {
    parallel_cells tree0.S1 (v0: i32) {
        v1: ref<f32> = field_at @x, [v0]
        v2: f32 = load v1
        v3: f32 = call @helper, [v2]
        v4: i32 = const 1
        v5: i32 = sub v0, v4
        v6: i32 = const 0
        v7: i32 = max v5, v6
        v8: ref<f32> = field_at @x, [v7]
        v9: f32 = atomic_min v8, v3
        yield []
    }
    return []
}",
];

const OTHERS: [&str; 30] = [
    "i32", "f32", "f64", "u8", "i64", "u1", "f16", "add", "mul", "mod", "shl", "select", "v0",
    "v1", "v5", "v9", "a0", "a1", "@x", "tree0.S1", "S2", "const", "load", "store", "if", "for",
    "yield", "return", "parallel", "break",
];

/// How far a text with mistakes came.
fn tried(seed: u64) -> String {
    let mut random = Random::new(seed);
    let text = mutated(&SAMPLES, &OTHERS, &mut random);
    let caught = std::panic::catch_unwind(|| outcome(&text, seed.is_multiple_of(2)));
    let found = caught.unwrap_or_else(|panic| panic!("{}\nof\n{text}", said(&*panic)));
    found.to_owned()
}

fn outcome(text: &str, debug: bool) -> &'static str {
    let Ok(mut module) = parse_module(text) else {
        return "not parsed";
    };
    let refused = |func| verify(func, &module.env, Stage::Structured).is_err();
    if module.funcs.values().any(refused) || verify_calls(&module).is_err() {
        return "refused";
    }
    let printed = print_module(&module);
    let again = parse_module(&printed).unwrap_or_else(|e| panic!("{e}\nof\n{printed}"));
    assert_eq!(print_module(&again), printed);
    let options = Options {
        debug,
        verify: true,
        ..Options::default()
    };
    match run(&mut module, options, &mut ()) {
        Ok(()) => "passed",
        Err(broken) => panic!("{broken}"),
    }
}

#[test]
fn samples_pass() {
    for sample in SAMPLES {
        for debug in [false, true] {
            assert_eq!(outcome(sample, debug), "passed", "{sample}");
        }
    }
}

#[test]
fn nothing_panics() {
    let first = number("AEROGEL_FIRST_SEED", 0);
    try_all(first..first + number("AEROGEL_N_MUTATIONS", 2000), tried);
}

/// What mutations found: fields of places that are not there, and loops over the cells of a place.
#[test]
fn what_was_found() {
    let loops = "tree0 { dense i:4 { place x: f32 } }\nfield @x: f32 = tree0 [S2]\nkernel @k() {
        parallel_cells tree0.S2 (v0: i32) { yield [] }
        return []
    }";
    assert_eq!(outcome(loops, false), "refused");
    for field in [
        "f32 = tree1 [S2]",
        "f32 = tree0 [S3]",
        "f32 = tree0 [S1]",
        "f32 = tree0 []",
        "vec<2, f32> = tree0 [S2]",
    ] {
        let text = format!(
            "tree0 {{ dense i:4 {{ place x: f32 }} }}\nfield @x: {field}\nkernel @k() {{\n    return []\n}}"
        );
        assert_eq!(outcome(&text, false), "not parsed", "{text}");
    }
}

#[test]
fn many_mutations_are_valid() {
    let mut outcomes: Vec<String> = (0..300)
        .filter_map(|seed| std::panic::catch_unwind(|| tried(seed)).ok())
        .collect();
    outcomes.retain(|outcome| outcome == "passed");
    assert!(outcomes.len() > 10, "{}", outcomes.len());
}
