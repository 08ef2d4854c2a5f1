//! Made-up programs: what they mean, what they mean after each pass, and what their kernels do is the same.
//!
//! `AEROGEL_N_PROGRAMS` says how many, `AEROGEL_FIRST_SEED` which come first. Floats are whole numbers below 2^53, so that the
//! order of sums does not show.

mod affine;
#[path = "../support/each.rs"]
mod each;
mod maker;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::{Compiler, Config};
use aerogel_ir::eval;
use aerogel_tensor::interp::run;
use aerogel_tensor::ir::{Array, RunError};
use aerogel_tensor::passes::{Caps, Options, PASSES, Products};
use aerogel_tensor::{Codes, Operand, Plan, Program, Settings, parse, verify};
use each::Follower;
use maker::program;

fn inputs(seed: u64) -> Vec<Array> {
    let mut state = seed ^ 0x5eed;
    let mut array = |ty: ScalarType, shape: &[usize]| Array {
        ty,
        shape: shape.to_vec(),
        data: (0..shape.iter().product())
            .map(|_| {
                let (next, bits) = eval::random_step(state);
                state = next;
                let n = (bits >> 20) as i64 % 19;
                if ty.is_float() {
                    Scalar::float(ty, n as f64)
                } else {
                    Scalar::int(ty, n.into())
                }
            })
            .collect(),
    };
    let [n, m, l] = [seed % 5, seed / 5 % 7, 1 + seed / 3 % 4].map(|n| n as usize);
    vec![
        array(ScalarType::I32, &[n, m]),
        array(ScalarType::F64, &[l, 3]),
        array(ScalarType::U8, &[5]),
    ]
}

/// What a program gives, or where it ends.
fn meaning(program: &Program, seed: u64) -> Result<Vec<Array>, RunError> {
    let mut inputs = inputs(seed);
    let mut all = run(program, &mut inputs)?;
    all.extend(inputs);
    Ok(canonical(all))
}

/// One NaN for all: arithmetic may give any. And one zero: libraries begin sums with their first term.
fn canonical(mut all: Vec<Array>) -> Vec<Array> {
    for s in all.iter_mut().flat_map(|a| &mut a.data) {
        if s.ty().is_float() && s.as_f64().is_nan() {
            *s = Scalar::float(s.ty(), f64::NAN);
        }
        if s.ty().is_float() && s.is_zero() {
            *s = Scalar::zero(s.ty());
        }
    }
    all
}

/// Checks a program: the passes that changed it.
fn check(seed: u64, compiler: &Compiler, codes: &Codes) -> Vec<&'static str> {
    let program = program(seed);
    let text = program.to_string();
    verify(&program).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let again = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    assert_eq!(again.to_string(), text, "seed {seed}");
    let expected = meaning(&program, seed);
    assert_eq!(
        meaning(&again, seed),
        expected,
        "seed {seed}, read again\n{text}"
    );
    let options = Options {
        many: if seed.is_multiple_of(2) { 1 } else { 1 << 18 },
        products: match seed % 4 {
            0 => Products::Tiles,
            _ => Products::Library,
        },
        caps: {
            let caps = Caps::default();
            let mut others = caps.others(seed as usize / 4 % Caps::N);
            others.nth(seed as usize % 4).unwrap_or(caps)
        },
        ..Options::default()
    };
    let mut follower = Follower {
        label: format!("seed {seed}"),
        meaning: &|program: &Program| meaning(program, seed),
        expected: &expected,
        changed: Vec::new(),
    };
    if seed.is_multiple_of(4) {
        follower.run_each(&program, options);
    }
    let mut passed = program.clone();
    follower.run(&mut passed, options);
    let changed = follower.changed;
    let settings = Settings {
        compiler,
        fast_math: aerogel_ir::FastMath::Off,
        options,
        codes,
        most_kept: u64::MAX,
        stamp: 0,
        backend: 0,
        gemm: None,
        profiler: None,
    };
    let plan = Plan::new(program, settings).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let operands: Vec<Operand> = inputs(seed)
        .iter()
        .map(|a| Operand::of(a).unwrap())
        .collect();
    let found = plan
        .run(&operands)
        .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let found: Vec<Array> = found
        .iter()
        .chain(&operands)
        .map(|o| o.to_array().unwrap())
        .collect();
    let (found, expected) = (canonical(found), expected.expect("nothing fails"));
    for (k, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(
            found, expected,
            "seed {seed}, compiled, array {k}\n{text}\n{passed}"
        );
    }
    changed
}

#[test]
fn all_say_the_same() {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let n: u64 = number("AEROGEL_N_PROGRAMS").unwrap_or(500);
    let first: u64 = number("AEROGEL_FIRST_SEED").unwrap_or(0);
    let next = AtomicU64::new(first);
    let changing = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let compiler = Compiler::new(Config {
                    max_threads: Some(2),
                    opt_level: 1,
                    ..Config::default()
                });
                let codes = Codes::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + n {
                        return;
                    }
                    let changed = check(seed, &compiler, &codes);
                    changing.lock().unwrap().extend(changed);
                }
            });
        }
    });
    let changing = changing.into_inner().unwrap();
    let idle = PASSES.iter().map(|pass| pass.name);
    let idle: Vec<&str> = idle.filter(|name| !changing.contains(name)).collect();
    // Those are for cells of fields, and for blocks around them: `fields.rs` makes such programs.
    if n >= 500 && first == 0 {
        assert_eq!(
            idle,
            ["zeros", "scratch"],
            "the passes that change no program"
        );
    }
}
