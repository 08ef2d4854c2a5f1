//! Generated kernels: the interpreter on the IR as it was generated and as it was lowered, LLVM
//! without and with optimisation.
//!
//! `AEROGEL_N_PROGRAMS` says how many, `AEROGEL_FIRST_SEED` which come first.

use std::io::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use aerogel_compiler::{Arch, CompileError, Compiler, Config, Cpu, Level};
use aerogel_interp::InterpKernel;
use aerogel_ir::{Effect, FastMath, Module, Op, Stage, parse_module, print_module, verify};
use aerogel_passes::{Options, Thresholds};
use aerogel_tests::generate;
use aerogel_tests::reduce::reduce;
use aerogel_tests::run::{Inputs, Outcome, first_wrong_pass, launch};

/// Loops over a handful of cells are divided.
const SMALL: Thresholds = Thresholds {
    cells_per_iteration: 2,
    list_part: 4,
    piece: 2,
    most_gathered: 8,
};

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(default)
}

/// How many programs are checked between two lines about how far it is.
const PER_REPORT: u64 = 1000;

/// Checks all seeds, on as many threads as there are processors, and panics with those that failed.
fn for_seeds(seeds: Range<u64>, check: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(seeds.start);
    let n_checked = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if catch_unwind(AssertUnwindSafe(|| check(seed))).is_err() {
                        let _ = writeln!(std::io::stderr(), "seed {seed} failed");
                        failed.lock().expect("no panic while it is held").push(seed);
                    }
                    let n = n_checked.fetch_add(1, Ordering::Relaxed) + 1;
                    if n.is_multiple_of(PER_REPORT) {
                        let n_failed = failed.lock().expect("no panic while it is held").len();
                        // Past the harness, which keeps what a test prints until it ends.
                        let _ = writeln!(
                            std::io::stderr(),
                            "{n} of {} programs checked, {n_failed} failed",
                            seeds.end - seeds.start
                        );
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic while it is held");
    assert!(failed.is_empty(), "seeds {failed:?} failed, see above");
}

#[test]
fn interpreter_and_llvm_agree() {
    let targets = [
        ("the interpreter of lowered IR", Arch::Interp, 0, true),
        ("LLVM -O0", Arch::Cpu, 0, true),
        ("LLVM -O3", Arch::Cpu, 3, true),
        // Sums stay scattered, so that tasks have functions that gather them.
        ("LLVM -O1 without thread-local sums", Arch::Cpu, 1, false),
    ];
    let compilers = [Thresholds::default(), SMALL].map(|thresholds| {
        targets.map(|(name, arch, opt_level, thread_local)| {
            let config = Config {
                arch,
                opt_level,
                max_threads: Some(2),
                thread_local,
                thresholds,
                ..Config::default()
            };
            (name, Compiler::new(config))
        })
    });
    let first = from_env("AEROGEL_FIRST_SEED", 0);
    let seeds = first..first + from_env("AEROGEL_N_PROGRAMS", 300);
    for_seeds(seeds, |seed| {
        let small_parts = seed % 2 == 1;
        agree(seed, &compilers[usize::from(small_parts)], small_parts);
    });
}

/// Every level of x86-64 that this processor executes gives what the oracle gives, and so all give the
/// same. For the others the code is made. In none is an instruction whose result is an estimate.
#[test]
fn levels_agree() {
    let at = |cpu| {
        let config = Config {
            cpu,
            max_threads: Some(2),
            ..Config::default()
        };
        (cpu.name(), Compiler::new(config))
    };
    let (here, elsewhere): (Vec<_>, Vec<_>) = Level::ALL
        .map(Cpu::X86_64)
        .into_iter()
        .partition(|cpu| cpu.runs_here());
    let [here, elsewhere] =
        [here, elsewhere].map(|all| all.into_iter().map(at).collect::<Vec<_>>());
    let first = from_env("AEROGEL_FIRST_SEED", 0);
    let seeds = first..first + from_env("AEROGEL_N_PROGRAMS", 100).min(500);
    for_seeds(seeds, |seed| {
        agree(seed, &here, false);
        // The search through the text takes longer than all else.
        if !seed.is_multiple_of(5) {
            return;
        }
        let mut module = generate::module(seed);
        module.env.fast_math = FastMath::Full;
        for (name, compiler) in here.iter().chain(&elsewhere) {
            let assembly = compiler
                .assembly(module.clone())
                .unwrap_or_else(|e| panic!("seed {seed} {name}: {e}"));
            let estimate = assembly.lines().find(|line| {
                let op = line.trim_start().trim_start_matches('v');
                op.starts_with("rcp") || op.starts_with("rsqrt")
            });
            assert_eq!(estimate, None, "seed {seed}, {name}");
        }
    });
}

/// One program, by the oracle and by each of `compilers`.
fn agree(seed: u64, compilers: &[(&str, Compiler)], small_parts: bool) {
    let module = generate::module(seed);
    let text = print_module(&module);
    let func = module.kernel().expect("a kernel");
    verify(func, &module.env, Stage::Structured).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let again = parse_module(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    assert_eq!(
        print_module(&again),
        text,
        "seed {seed}: printing and parsing"
    );

    let expected = by_oracle(&module, seed);
    for (name, compiler) in compilers {
        let found = compiled(compiler, &module, seed)
            .unwrap_or_else(|e| panic!("seed {seed} {name}: {e}\n{text}"));
        if expected == found {
            continue;
        }
        let fails =
            |m: &Module| compiled(compiler, m, seed).is_ok_and(|found| found != by_oracle(m, seed));
        let small = reduce(module, fails);
        let same = |a: &Outcome, b: &Outcome| a.clone().canonical() == b.clone().canonical();
        let options = Options {
            thresholds: if small_parts {
                SMALL
            } else {
                Thresholds::default()
            },
            // As the compiler does for the interpreter.
            optimize: !name.starts_with("the interpreter"),
            ..Options::default()
        };
        if let Some((pass, before, after)) = first_wrong_pass(&small, seed, options, same) {
            panic!("seed {seed}: the pass `{pass}` made\n{before}\ninto\n{after}");
        }
        panic!(
            "seed {seed}: the interpreter and {name} differ\n{}\n{:?}\n{:?}",
            print_module(&small),
            by_oracle(&small, seed),
            compiled(compiler, &small, seed).map_err(|e| e.to_string()),
        );
    }
}

fn by_oracle(module: &Module, seed: u64) -> Outcome {
    let oracle = InterpKernel::new(module.clone()).expect("a kernel");
    launch(&Inputs::new(module, seed), module, &oracle, seed).canonical()
}

fn compiled(compiler: &Compiler, module: &Module, seed: u64) -> Result<Outcome, CompileError> {
    let kernel = compiler.compile(module.clone())?;
    let inputs = Inputs::new(module, seed);
    let outcome = inputs.launch_by(module, seed, |launch| kernel.launch(launch));
    Ok(outcome.canonical())
}

/// What a pass could mistake is in some program: each instruction that only computes.
#[test]
fn every_pure_row_is_generated() {
    let mut missing: Vec<&str> = Op::ROWS
        .iter()
        .filter(|row| row.effect == Effect::Pure && row.stages.0 == Stage::Structured)
        // Only gradients have these, and they are compared elsewhere.
        .filter(|row| !["RoomAt", "StopGradient"].contains(&row.name))
        .map(|row| row.name)
        .collect();
    for seed in 0..300 {
        let module = generate::module(seed);
        let funcs = module.funcs.values();
        for inst in funcs.flat_map(|func| func.insts.values()) {
            missing.retain(|&name| name != inst.op.row().name);
        }
    }
    assert_eq!(missing, [""; 0]);
}

/// A kernel computes the same on a sparse layout whose cells are all active as on a dense one.
#[test]
fn layouts_do_not_change_values() {
    let first = from_env("AEROGEL_FIRST_SEED", 0);
    let seeds = first..first + 4 * from_env("AEROGEL_N_PROGRAMS", 300);
    let n_compared = AtomicU64::new(0);
    for_seeds(seeds, |seed| {
        let module = generate::module(seed);
        let Some(dense) = generate::on_dense(&module) else {
            return;
        };
        n_compared.fetch_add(1, Ordering::Relaxed);
        let values = |module: &Module| {
            let oracle = InterpKernel::new(module.clone()).expect("a kernel");
            let inputs = Inputs::filled(module, seed);
            let outcome = launch(&inputs, module, &oracle, seed).canonical();
            let memory: Vec<String> = outcome
                .memory
                .iter()
                .map(|s| s.expect("all cells are active").to_string())
                .collect();
            (format!("{memory:?}"), outcome.results, outcome.printed)
        };
        assert_eq!(
            values(&module),
            values(&dense),
            "seed {seed}\n{}",
            print_module(&module)
        );
    });
    assert!(n_compared.into_inner() > 0, "no sparse layouts");
}
