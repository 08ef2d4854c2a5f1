//! Generated kernels as PTX: what the machine computes is what the interpreter does, bit by bit.
//!
//! `AEROGEL_N_PROGRAMS` says how many, `AEROGEL_FIRST_SEED` which come first.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use aerogel_gpu::{GpuDevice, MachineDriver};
use aerogel_ir::{Module, print_module};
use aerogel_llvm::{OptLevel, compile, target};
use aerogel_passes::Options;
use aerogel_ptx::Options as MachineOptions;
use aerogel_runtime::code::KernelCode;
use aerogel_runtime::device::Device;
use aerogel_runtime::launch::KernelFailure;
use aerogel_tests::generate;
use aerogel_tests::reduce::reduce;
use aerogel_tests::run::{Inputs, Outcome, launch};

/// The code of a kernel for a card.
fn code(module: &Module, level: u8) -> KernelCode {
    let mut module = module.clone();
    // A card's threads have registers, and no memory that would be near.
    let options = Options {
        private_cells: false,
        ..Options::default()
    };
    aerogel_passes::run(&mut module, options, &mut ()).unwrap_or_else(|e| panic!("{e}"));
    compile(&module, &target::nvptx(80), OptLevel(level), false).code
}

fn on_card(module: &Module, seed: u64, level: u8) -> Result<Outcome, String> {
    let options = MachineOptions {
        workers: 1,
        memory: 1 << 30,
        ..MachineOptions::default()
    };
    let device = GpuDevice::new(Box::new(MachineDriver::new(options)));
    let kernel = device
        .load(&code(module, level))
        .map_err(|e| e.to_string())?;
    let fault = Mutex::new(None);
    let outcome = Inputs::new(module, seed).launch_by(module, seed, |launch| {
        kernel.launch(launch).or_else(|failure| match failure {
            KernelFailure::Device(what) => {
                *fault.lock().expect("nothing panics here") = Some(what);
                Ok(())
            }
            failure => Err(failure),
        })
    });
    match fault.into_inner().expect("nothing panics here") {
        Some(what) => Err(what),
        None => Ok(unordered(outcome.canonical())),
    }
}

/// The same, whichever thread printed first.
fn unordered(mut outcome: Outcome) -> Outcome {
    let mut lines: Vec<&str> = outcome.printed.lines().collect();
    lines.sort_unstable();
    outcome.printed = lines.join("\n");
    outcome
}

/// Whether the machine can be compared with the interpreter, and has done what that does; else how they differ.
fn difference(module: &Module, seed: u64) -> Result<bool, String> {
    let oracle = aerogel_interp::InterpKernel::new(module.clone()).expect("a kernel");
    let expected = launch(&Inputs::new(module, seed), module, &oracle, seed);
    let expected = unordered(expected.canonical());
    let level = if seed.is_multiple_of(4) { 0 } else { 3 };
    let found = on_card(module, seed, level)?;
    // Where a check fails, who else had run by then is not known.
    if expected.results.is_none() && found.results.is_none() {
        return Ok(false);
    }
    match expected == found {
        true => Ok(true),
        false => Err(format!("{expected:?}\n{found:?}")),
    }
}

#[test]
fn cards_compute_what_the_interpreter_does() {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let n: u64 = number("AEROGEL_N_PROGRAMS").unwrap_or(150);
    let first: u64 = number("AEROGEL_FIRST_SEED").unwrap_or(0);
    let (next, compared) = (AtomicU64::new(first), AtomicU64::new(0));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + n {
                        return;
                    }
                    let module = generate::module(seed);
                    match difference(&module, seed) {
                        Ok(true) => drop(compared.fetch_add(1, Ordering::Relaxed)),
                        Ok(false) => {}
                        Err(_) => failed.lock().expect("nothing panics here").push(seed),
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().expect("nothing panics here");
    failed.sort_unstable();
    if let Some(&seed) = failed.first() {
        let small = reduce(generate::module(seed), |m| difference(m, seed).is_err());
        panic!(
            "seeds {failed:?}; {seed}:\n{}\n{}",
            print_module(&small),
            difference(&small, seed).unwrap_err()
        );
    }
    let compared = compared.into_inner();
    assert!(
        compared > n / 4,
        "only {compared} of {n} programs say something"
    );
}

/// That the machine does what the interpreter does, of a text.
fn same(text: &str) {
    let module = aerogel_ir::parse_module(text).unwrap_or_else(|e| panic!("{e}"));
    for seed in [1, 4] {
        assert_eq!(difference(&module, seed), Ok(true));
    }
}

#[test]
fn loops_behind_an_exit_change_nothing() {
    // Threads that have no iteration have sums too, and would make the cell active.
    same(
        "tree0 { hash i:12 { place a: i32 }, place n: i32 }
        field @a: i32 = tree0 [S2]
        field @n: i32 = tree0 [S3]
        kernel @k() -> i32, f32 {
            v0: i32 = const -8
            v1: f32 = const 0.0
            v2: ref<i32> = field_at @n, []
            v3: i32 = load v2
            v4: u1 = gt v3, v0
            if v4 {
                return [v3, v1]
            } {
                yield []
            }
            v5: i32 = const 0
            v6: i32 = const 10
            parallel [v5], [v6] (v7: i32) {
                v8: i32 = const 2
                v9: ref<i32> = field_at @a, [v8]
                v10: i32 = atomic_and v9, v5
                yield []
            }
            return [v0, v1]
        }",
    );
}

/// The text of the only object of a kernel.
fn ptx(text: &str) -> String {
    let module = aerogel_ir::parse_module(text).unwrap_or_else(|e| panic!("{e}"));
    let mut objects = code(&module, 3).objects;
    assert_eq!(objects.len(), 1);
    String::from_utf8(objects.remove(0)).expect("PTX is text")
}

#[test]
fn a_sum_is_one_atomic_of_a_warp() {
    for (ty, shuffles) in [("i32", 5), ("f32", 5), ("f64", 10), ("i64", 10)] {
        let text = ptx(&format!(
            "tree0 {{ place n: {ty}, dense i:4096 {{ place x: {ty} }} }}
            field @n: {ty} = tree0 [S1]
            field @x: {ty} = tree0 [S3]
            kernel @k() {{
                v0: i32 = const 0
                v1: i32 = const 4096
                v2: ref<{ty}> = field_at @n, []
                parallel [v0], [v1] (v3: i32) {{
                    v4: ref<{ty}> = field_at @x, [v3]
                    v5: {ty} = load v4
                    v6: {ty} = atomic_add v2, v5
                    yield []
                }}
                yield []
            }}"
        ));
        let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert_eq!(count("shfl.sync.bfly.b32"), shuffles, "{ty}\n{text}");
        assert_eq!(count("atom.") + count("red."), 1, "{ty}\n{text}");
    }
}
