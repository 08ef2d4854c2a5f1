//! Generated kernels as PTX: what the machine computes is what the interpreter does, bit by bit.
//!
//! `AEROGEL_N_PROGRAMS` says how many, `AEROGEL_FIRST_SEED` which come first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aerogel_base::{Scalar, ScalarType};
use aerogel_gpu::{GpuDevice, MachineDriver};
use aerogel_ir::{Module, print_module};
use aerogel_llvm::{OptLevel, Texts, compile, target};
use aerogel_passes::{Options, Thresholds};
use aerogel_ptx::{Counts, Options as MachineOptions};
use aerogel_runtime::code::KernelCode;
use aerogel_runtime::device::Device;
use aerogel_runtime::launch::KernelFailure;
use aerogel_tests::generate;
use aerogel_tests::reduce::reduce;
use aerogel_tests::run::{Inputs, Outcome, launch};

/// The code of a kernel for a card.
fn code(module: &Module, level: u8) -> KernelCode {
    code_with(module, level, true)
}

/// The same, where threads share what they read around their block, or do not.
fn code_with(module: &Module, level: u8, shared_memory: bool) -> KernelCode {
    let mut module = module.clone();
    // A card's threads have registers, and no memory that would be near.
    let options = Options {
        private_cells: false,
        shared_memory,
        thresholds: Thresholds::of_threads(),
        ..Options::default()
    };
    aerogel_passes::run(&mut module, options, &mut ()).unwrap_or_else(|e| panic!("{e}"));
    compile(&module, &target::nvptx(80), OptLevel(level), Texts::Nothing).code
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

/// What a launch on the machine counts, and a number that it leaves.
fn counted(text: &str, result: Scalar) -> Counts {
    let module = aerogel_ir::parse_module(text).unwrap_or_else(|e| panic!("{e}"));
    let (counts, outcome) = launched(&module, &code(&module, 3));
    assert_eq!(outcome.memory[0], Some(result), "{text}");
    counts
}

/// What a launch on the machine counts, and leaves behind.
fn launched(module: &Module, code: &KernelCode) -> (Counts, Outcome) {
    let driver = Arc::new(MachineDriver::new(MachineOptions {
        // Of blocks that run at once some repeat a compare-and-swap.
        workers: 1,
        ..MachineOptions::default()
    }));
    let device = GpuDevice::new(Box::new(driver.clone()));
    let kernel = device.load(code).expect("it loads");
    let outcome = Inputs::new(module, 0).launch_by(module, 0, |launch| kernel.launch(launch));
    assert!(outcome.results.is_some(), "{}", print_module(module));
    (driver.counts(), outcome)
}

#[test]
fn threads_share_what_they_read_around_a_block() {
    for (tree, sites, shares) in [
        // Blocks in one tree, with neighbours that are not there, and a field in a tree of its own.
        (
            "pointer i:4 j:4 { dense i:8 j:8 { place x: f32, place y: f32 } }",
            "S3 S4",
            true,
        ),
        (
            "hash i:4 j:4 { dense i:8 j:8 { place x: f32, place y: f32 } }",
            "S3 S4",
            true,
        ),
        (
            "pointer i:3 j:2 { dense i:4 j:16 { place x: f32 } dense i:4 j:16 { place y: f32 } }",
            "S3 S5",
            true,
        ),
        // Fewer threads than a warp has, or no power of two: as before.
        (
            "pointer i:4 j:4 { dense i:4 j:4 { place x: f32, place y: f32 } }",
            "S3 S4",
            false,
        ),
        (
            "pointer i:4 j:4 { dense i:6 j:6 { place x: f32, place y: f32 } }",
            "S3 S4",
            false,
        ),
    ] {
        let (x, y) = sites.split_once(' ').expect("two places");
        let leaf = if y == "S5" { "S4" } else { "S2" };
        let text = format!(
            "tree0 {{ {tree} }}
            field @x: f32 = tree0 [{x}]
            field @y: f32 = tree0 [{y}]
            kernel @k() -> i32, f32 {{
                v0: i32 = const 1
                parallel_cells tree0.{leaf} (v1: i32, v2: i32) {{
                    v3: i32 = add v1, v0
                    v4: i32 = sub v1, v0
                    v5: i32 = add v2, v0
                    v6: i32 = sub v2, v0
                    v7: ref<f32> = field_at @x, [v3, v2]
                    v8: ref<f32> = field_at @x, [v4, v2]
                    v9: ref<f32> = field_at @x, [v1, v5]
                    v10: ref<f32> = field_at @x, [v1, v6]
                    v11: ref<f32> = field_at @x, [v1, v2]
                    v12: f32 = load v7
                    v13: f32 = load v8
                    v14: f32 = load v9
                    v15: f32 = load v10
                    v16: f32 = load v11
                    v17: f32 = add v12, v13
                    v18: f32 = add v14, v15
                    v19: f32 = add v17, v18
                    v20: f32 = sub v19, v16
                    v21: ref<f32> = field_at @y, [v1, v2]
                    store v21, v20
                    yield []
                }}
                v22: f32 = const 0.0
                return [v0, v22]
            }}"
        );
        let module = aerogel_ir::parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
        let [with, without] = [true, false].map(|shared| code_with(&module, 3, shared));
        let shared = |code: &KernelCode| {
            let object = std::str::from_utf8(&code.objects[0]).expect("PTX is text");
            object.contains("ld.shared") && object.contains("bar")
        };
        assert_eq!((shared(&with), shared(&without)), (shares, false), "{tree}");
        let (few, found) = launched(&module, &with);
        let (many, expected) = launched(&module, &without);
        assert_eq!(found, expected, "{tree}");
        assert_eq!(difference(&module, 1), Ok(true));
        if shares {
            // With the lists of blocks, which both make.
            let (few, many) = (few.sectors, many.sectors);
            assert!(few * 6 < many * 5, "{tree}: {few} {many}");
        }
    }
}

#[test]
fn memory_of_a_thread_needs_no_atomics() {
    // Cards have none for it, and the assembler takes none.
    for ty in ["i32", "f32", "u8", "i64"] {
        let text = format!(
            "tree0 {{ dense i:40 {{ place x: {ty} }} }}
            field @x: {ty} = tree0 [S2]
            kernel @k() -> i32, f32 {{
                v0: i32 = const 0
                v1: i32 = const 40
                parallel [v0], [v1] (v2: i32) {{
                    v3: ref<{ty}> = local
                    v4: {ty} = cast v2
                    store v3, v4
                    v5: ref<{ty}> = field_at @x, [v2]
                    v6: {ty} = load v5
                    v7: {ty} = cast v1
                    v8: {ty} = atomic_cas v3, v6, v7
                    v9: {ty} = load v3
                    v10: {ty} = add v8, v9
                    store v5, v10
                    yield []
                }}
                v11: f32 = const 0.0
                return [v0, v11]
            }}"
        );
        let module = aerogel_ir::parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
        let object = code(&module, 0).objects.remove(0);
        let object = String::from_utf8(object).expect("PTX is text");
        assert!(!object.contains("atom"), "{object}");
        for seed in [1, 4] {
            assert_eq!(difference(&module, seed), Ok(true), "{ty}");
        }
    }
}

#[test]
fn a_sum_is_one_atomic_of_a_block() {
    let kinds = ["add", "min", "max", "and", "or", "xor", "mul"];
    let types = ["i8", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"];
    for (op, name) in kinds.into_iter().flat_map(|op| types.map(|ty| (op, ty))) {
        let ty = ScalarType::from_name(name).expect("a type");
        if ty.is_float() && ["and", "or", "xor"].contains(&op) {
            continue;
        }
        // Not a multiple of the threads: some have one iteration more. All numbers are exact, whatever comes first.
        let n = 1111_i64;
        let element = |i: i64| match op {
            "mul" => 1 + i64::from(i % 500 == 3),
            "add" => i64::from(i % 16 == 3),
            _ => (i * 7 + 3) % 113,
        };
        let oracle = |op: &str, x: i64, y: i64| match op {
            "add" => x + y,
            "mul" => x * y,
            "min" => x.min(y),
            "max" => x.max(y),
            "and" => x & y,
            "or" => x | y,
            _ => x ^ y,
        };
        let expected = (0..n).fold(
            i64::from(op == "and") * 127 + i64::from(op == "mul"),
            |sum, i| oracle(op, sum, element(i)),
        );
        let first = i64::from(op == "and") * 127 + i64::from(op == "mul");
        let number = |n: i64| match ty.is_float() {
            true => format!("{n}.0"),
            false => n.to_string(),
        };
        let text = format!(
            "tree0 {{ place n: {ty} }}
            field @n: {ty} = tree0 [S1]
            kernel @k() -> i32, f32 {{
                v0: i32 = const 0
                v1: i32 = const {n}
                v2: ref<{ty}> = field_at @n, []
                v3: {ty} = const {start}
                store v2, v3
                parallel [v0], [v1] (v4: i32) {{
                    v5: i32 = const 7
                    v6: i32 = const 3
                    v7: i32 = const {modulus}
                    v8: i32 = mul v4, v5
                    v9: i32 = add v8, v6
                    v10: i32 = mod v9, v7
                    v11: i32 = mod v4, v7
                    v12: u1 = eq v11, v6
                    v13: i32 = cast v12
                    v14: i32 = {element}
                    v15: {ty} = cast v14
                    v16: {ty} = atomic_{op} v2, v15
                    yield []
                }}
                v17: f32 = const 0.0
                return [v0, v17]
            }}",
            start = number(first),
            modulus = match op {
                "mul" => 500,
                "add" => 16,
                _ => 113,
            },
            element = match op {
                "mul" => "add v13, v13_one",
                "add" => "add v13, v0",
                _ => "add v10, v0",
            }
        )
        .replace("add v13, v13_one", "shl v18, v13")
        .replace(
            "v14: i32 = shl",
            "v18: i32 = const 1\n                    v14: i32 = shl",
        );
        let expected = match ty.is_float() {
            true => Scalar::float(ty, expected as f64),
            false => Scalar::int(ty, i128::from(expected)),
        };
        // The machine runs four blocks.
        assert_eq!(counted(&text, expected).atomics, 4, "{op} {ty}");
    }
}

#[test]
fn several_sums_of_a_loop_meet_in_blocks_of_every_size() {
    for block in [32, 64, 1024] {
        let text = format!(
            "tree0 {{ place n: i32, place x: f32, place y: f32, place z: f32 }}
            field @n: i32 = tree0 [S1]
            field @v: vec<3, f32> = tree0 [S2, S3, S4]
            kernel @k() -> i32, f32 {{
                v0: i32 = const 0
                v1: i32 = const 5000
                v2: ref<i32> = field_at @n, []
                store v2, v0
                v3: ref<vec<3, f32>> = field_at @v, []
                parallel [v0], [v1] block={block} (v4: i32) {{
                    v5: i32 = atomic_add v2, v4
                    v6: f32 = const 1.0
                    v7: vec<3, f32> = tensor [v6, v6, v6]
                    v8: vec<3, f32> = atomic_add v3, v7
                    yield []
                }}
                v9: f32 = const 0.0
                return [v0, v9]
            }}"
        );
        let blocks = (4 * 128 / block).max(1);
        let counts = counted(&text, Scalar::int(ScalarType::I32, 5000 * 4999 / 2));
        assert_eq!(counts.atomics, 4 * blocks, "{block}");
    }
}
