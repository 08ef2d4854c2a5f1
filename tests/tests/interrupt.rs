//! A launch that ends between any two of its tasks leaves sparse trees in order. The request is the process's,
//! so this is a program of its own.

use aerogel_base::Scalar;
use aerogel_compiler::Args;
use aerogel_compiler::{Arch, Compiler, Config, KernelFailure, Launch};
use aerogel_ir::parse_module;
use aerogel_runtime::{TreeMemory, interrupt};
use std::sync::{Arc, Mutex};

/// Makes cells, gives back some of them, and visits the others.
const KERNEL: &str = "
    tree0 {
        pointer i:16 { hash j:64 { place x: i32 }, dynamic k:64 chunk=2 { place l: i32 } },
        hash i:4096 { pointer j:8 { bitmasked j:8 { place y: i32 } } },
        place n: i32
    }
    field @x: i32 = tree0 [S3]
    field @l: i32 = tree0 [S5]
    field @y: i32 = tree0 [S9]
    field @n: i32 = tree0 [S10]
    kernel @k() {
        zero: i32 = const 0
        end: i32 = const 256
        parallel [zero], [end] (i: i32) {
            m: i32 = const 15
            a: i32 = and i, m
            four: i32 = const 4
            b: i32 = shr i, four
            px: ref<i32> = field_at @x, [a, b]
            store px, i
            at: i32 = append tree0.S4, [a]
            pl: ref<i32> = field_at @l, [a, at]
            store pl, i
            big: i32 = mul i, m
            py: ref<i32> = field_at @y, [big, b]
            store py, i
            yield []
        }
        parallel_cells tree0.S2 (i: i32, j: i32) {
            one: i32 = const 1
            odd: i32 = and j, one
            is_odd: u1 = eq odd, one
            if is_odd {
                deactivate tree0.S2, [i, j]
                yield []
            } {
                yield []
            }
            yield []
        }
        parallel_cells tree0.S1 (i: i32) {
            deactivate tree0.S4, [i]
            three: i32 = const 3
            low: i32 = and i, three
            all: u1 = eq low, three
            if all {
                deactivate tree0.S1, [i]
                yield []
            } {
                yield []
            }
            yield []
        }
        parallel_cells tree0.S6 (i: i32) {
            limit: i32 = const 2000
            far: u1 = lt limit, i
            if far {
                deactivate tree0.S6, [i]
                yield []
            } {
                yield []
            }
            yield []
        }
        pn: ref<i32> = field_at @n, []
        store pn, zero
        parallel_cells tree0.S8 (i: i32, j: i32) {
            q: ref<i32> = field_at @n, []
            one: i32 = const 1
            old: i32 = atomic_add q, one
            yield []
        }
        yield []
    }";

/// What can be asked of a tree does not contradict itself.
fn check(memory: &TreeMemory) {
    let tree = memory.tree();
    let stats = memory.stats();
    for node in &stats {
        let mut cells = 0;
        let mut visit = |cell: u64, at: &[i64]| -> Result<(), ()> {
            cells += 1;
            assert_eq!(memory.element(node.node, at), Some(cell));
            Ok(())
        };
        memory.visit_active(node.node, &mut visit).unwrap();
        assert_eq!(node.cells, cells, "{} of {tree}", node.node);
    }
}

/// Everything: what is active, and values.
fn contents(memory: &TreeMemory) -> Vec<(usize, Vec<i64>, Scalar)> {
    let mut all = Vec::new();
    for (k, (place, ty)) in memory.tree().places().enumerate() {
        let mut visit = |cell: u64, at: &[i64]| {
            all.push((k, at.to_vec(), memory.read_scalar(ty, cell)?));
            Ok::<_, aerogel_runtime::MemoryError>(())
        };
        memory.visit_active(place, &mut visit).unwrap();
    }
    all
}

#[test]
fn between_any_two_tasks() {
    let module = parse_module(KERNEL).unwrap_or_else(|e| panic!("{e}"));
    let tree = module.env.trees.values().next().unwrap().clone();
    let compiler = Compiler::new(Config {
        arch: Arch::Cpu,
        opt_level: 1,
        max_threads: Some(2),
        ..Config::default()
    });
    let kernel = compiler.compile(module).unwrap_or_else(|e| panic!("{e}"));
    let launch = |memory: &TreeMemory| {
        kernel.launch(Launch {
            args: &Args::new(),
            roots: &[memory],
            results: &mut [],
            sink: &Mutex::new(String::new()),
            seed: 0,
            most_reserved: u64::MAX,
            trace: None,
            later: None,
        })
    };
    let new = || TreeMemory::new(Arc::clone(&tree), 0).unwrap();
    let whole = new();
    launch(&whole).unwrap();
    check(&whole);
    let expected = contents(&whole);
    // Three quarters of the even cells of `x`, those of `y` up to 2000, and `n`.
    assert_eq!(expected.len(), 96 + 134 + 1);
    let mut n_tasks = 0;
    loop {
        let memory = new();
        // The second time there are lists and free elements already.
        for _ in 0..2 {
            interrupt::stop_after(n_tasks + 1);
            let outcome = launch(&memory);
            interrupt::stop_after(0);
            if outcome.is_ok() {
                assert!(n_tasks > 30, "{n_tasks}");
                return;
            }
            assert_eq!(outcome, Err(KernelFailure::Interrupted));
            check(&memory);
            launch(&memory).unwrap();
            check(&memory);
            assert_eq!(contents(&memory), expected, "after {n_tasks} tasks");
        }
        n_tasks += 1;
    }
}
