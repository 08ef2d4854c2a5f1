//! The functions of `runtime/device/sparse.air`, interpreted and compiled, one call after the other.

use std::sync::{Arc, Mutex};

use aerogel_base::{Scalar, ScalarType};
use aerogel_interp::InterpKernel;
use aerogel_ir::{Stage, parse_module, verify};
use aerogel_llvm::{Jit, OptLevel, compile, target};
use aerogel_runtime::cpu::Pool;
use aerogel_runtime::device::CpuDevice;
use aerogel_runtime::{Args, Device, Launch, LoadedKernel};
use aerogel_snode::{NodeId, control};

use crate::memory::TreeMemory;

const DEVICE: &str = include_str!("../../../../runtime/device/sparse.air");
const TREE: &str = "pointer i:8 { place x: i32 }, bitmasked i:40 { place m: i32 }, dynamic j:40 chunk=4 { place d: i32 }";

/// An argument of a call.
#[derive(Clone, Copy)]
enum Arg {
    /// The address of a place in the tree, by its offset.
    At(usize),
    I64(i64),
    U32(u32),
}
use Arg::{At, I64, U32};

/// A call with the type of its result and the result that is expected.
type Call<'a> = (&'a str, Vec<Arg>, Option<(&'a str, u64)>);

/// A kernel that makes calls in order and returns their results.
fn kernel(calls: &[Call<'_>]) -> String {
    let (mut insts, mut types, mut results) = (String::new(), Vec::new(), Vec::new());
    for (n, (name, args, result)) in calls.iter().enumerate() {
        let mut names = Vec::new();
        for (k, arg) in args.iter().enumerate() {
            let name = format!("a{n}_{k}");
            insts.push_str(&match arg {
                At(at) => format!("o{name}: i64 = const {at}  {name}: i64 = add base, o{name}\n"),
                I64(value) => format!("{name}: i64 = const {value}\n"),
                U32(value) => format!("{name}: u32 = const {value}\n"),
            });
            names.push(name);
        }
        if let Some((ty, _)) = result {
            insts.push_str(&format!("r{n}: {ty} = "));
            types.push(*ty);
            results.push(format!("r{n}"));
        }
        insts.push_str(&format!("call @{name}, [{}]\n", names.join(", ")));
    }
    format!(
        "kernel @k(base: i64) {} {{
            task serial {{ yield [] }} {{
                base: i64 = arg a0
                {insts}
                return [{}]
            }}
            yield []
        }}",
        if types.is_empty() {
            String::new()
        } else {
            format!("-> {}", types.join(", "))
        },
        results.join(", ")
    )
}

/// Makes the calls with every way to run a kernel; the memory afterwards, which is always the same.
fn run(calls: &[Call<'_>]) -> TreeMemory {
    run_after(&|_| {}, calls)
}

fn run_after(prepare: &dyn Fn(&TreeMemory), calls: &[Call<'_>]) -> TreeMemory {
    let text = format!("tree0 {{ {TREE} }} {DEVICE} {}", kernel(calls));
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e:?}"));
    verify(module.kernel().unwrap(), &module.env, Stage::Lowered).unwrap_or_else(|e| panic!("{e}"));
    let tree = module.env.trees.values().next().unwrap().clone();
    let device = CpuDevice::new(Arc::new(Pool::new(1)), Box::new(Jit));
    let mut kernels: Vec<(Box<dyn LoadedKernel>, bool)> =
        vec![(Box::new(InterpKernel::new(module.clone()).unwrap()), false)];
    for level in [0, 3] {
        let code = compile(&module, &target::host(), OptLevel(level), false).code;
        kernels.push((device.load(&code).unwrap(), true));
    }
    let expected: Vec<u64> = calls.iter().filter_map(|c| c.2.map(|r| r.1)).collect();
    let mut after: Option<(TreeMemory, Vec<u8>)> = None;
    for (kernel, is_compiled) in kernels {
        let memory = TreeMemory::new(tree.clone(), 6);
        prepare(&memory);
        // Addresses are offsets to the interpreter.
        let base = if is_compiled {
            memory.buffer.address() as u64
        } else {
            0
        };
        let mut args = Args::new();
        args.scalar(base);
        let mut results = vec![0; expected.len()];
        kernel
            .launch(Launch {
                args: &args,
                roots: &[&memory.buffer],
                results: &mut results,
                sink: &Mutex::new(String::new()),
                seed: 0,
            })
            .unwrap();
        assert_eq!(results, expected, "compiled: {is_compiled}");
        let mut bytes = vec![0; memory.buffer.len()];
        memory.buffer.read(0, &mut bytes).unwrap();
        if let Some((_, first)) = &after {
            assert!(*first == bytes);
        } else {
            after = Some((memory, bytes));
        }
    }
    after.unwrap().0
}

/// The offsets of a node's container and control blocks, from a memory like that of the runs.
fn offsets(node: u32) -> (usize, usize) {
    let module = parse_module(&format!("tree0 {{ {TREE} }}")).unwrap();
    let tree = module.env.trees.values().next().unwrap().clone();
    let memory = TreeMemory::new(tree, 0);
    let node = NodeId::from_u32(node);
    (memory.container(node), memory.control(node, 0))
}

fn word(memory: &TreeMemory, block: usize, at: u64) -> u32 {
    memory.word(block + at as usize)
}

#[test]
fn pointer_slots() {
    let (container, block) = offsets(1);
    let slot = |k: usize| At(container + 4 * k);
    let obtain = |k: usize, result: u64| -> Call<'_> {
        let args = vec![At(0), At(block), slot(k), U32(0), U32(0)];
        ("obtain_pointer", args, Some(("u32", result)))
    };
    let release = |k: usize| ("release_pointer", vec![At(0), At(block), slot(k)], None);
    let wipe = |at: i64| {
        let args = vec![At(0), At(block), I64(1), I64(at), I64(4)];
        ("wipe", args, None)
    };
    let memory = run(&[
        obtain(0, 1),
        obtain(1, 2),
        obtain(2, 3),
        // The slot is taken already: the new element goes into the queue.
        obtain(1, 2),
        release(0),
        release(0),
        ("epoch", vec![At(block)], Some(("u32", 1))),
        ("epoch", vec![At(block)], Some(("u32", 1))),
        ("list_stale", vec![At(block), U32(2)], Some(("u1", 1))),
        ("list_stale", vec![At(block), U32(2)], Some(("u1", 0))),
        wipe(0),
        wipe(1),
        ("collect", vec![At(block)], None),
        // The free list from its end, then fresh ones, then there is no memory.
        obtain(4, 1),
        obtain(5, 4),
        obtain(6, 5),
        obtain(7, 6),
        obtain(0, 0),
        ("epoch", vec![At(block)], Some(("u32", 2))),
    ]);
    let slots: Vec<u32> = (0..8).map(|k| memory.word(container + 4 * k)).collect();
    assert_eq!(slots, [0, 2, 3, 0, 1, 4, 5, 6]);
    assert_eq!(memory.active(block), 6);
}

#[test]
fn masks() {
    let (container, block) = offsets(3);
    let mask = At(container + 40 * 4);
    let memory = run(&[
        ("obtain_bit", vec![At(block), mask, U32(4)], None),
        ("obtain_bit", vec![At(block), mask, U32(1 << 31)], None),
        ("epoch", vec![At(block)], Some(("u32", 1))),
        ("release_bit", vec![At(block), mask, U32(4)], None),
    ]);
    assert_eq!(memory.word(container + 160), 1 << 31);
    assert_eq!(word(&memory, block, control::CHANGED), 1);
}

#[test]
fn dynamic_containers() {
    let (container, block) = offsets(5);
    let chunk = |k: usize| At(block + 128 * k);
    let slot = |k: usize| At(container + 4 + 4 * k);
    // A cell whose number has been taken, in chunk `k`.
    let extend = |k: usize, granted: u64| -> Call<'_> {
        let number = U32(2 + k as u32);
        let args = vec![
            At(0),
            At(block),
            At(container),
            chunk(k),
            slot(k),
            U32(0),
            number,
        ];
        ("extend_dynamic", args, Some(("u1", granted)))
    };
    let obtain = |length: u32, k: usize, result: u64| -> Call<'_> {
        let number = U32(2 + k as u32);
        let args = vec![
            At(0),
            At(block),
            At(container),
            U32(length),
            chunk(k),
            slot(k),
            U32(0),
            number,
        ];
        ("obtain_dynamic", args, Some(("u32", result)))
    };
    let release: Call<'_> = (
        "release_dynamic",
        vec![At(0), At(block), At(container), I64(4)],
        None,
    );
    // Queue places 0 and 1: those of chunks 0 and 1, 16 and 32 bytes long.
    let wipe = |at: i64| {
        (
            "wipe",
            vec![At(0), At(block), I64(4), I64(at), I64(16)],
            None,
        )
    };
    let memory = run(&[
        extend(0, 1),
        obtain(7, 1, 1),
        obtain(3, 0, 1),
        release.clone(),
        wipe(0),
        wipe(1),
        ("collect", vec![chunk(0)], None),
        ("collect", vec![chunk(1)], None),
        obtain(20, 2, 1),
    ]);
    assert_eq!(memory.word(container), 20);
    let slots: Vec<u32> = (1..=4).map(|k| memory.word(container + 4 * k)).collect();
    assert_eq!(slots, [0, 0, 1, 0]);
    for k in 0..2 {
        assert_eq!(word(&memory, block + 128 * k, control::N_FREE), 1);
        assert_eq!(memory.active(block + 128 * k), 0);
    }
    // Where memory is refused, the cell that was counted beforehand (not here) is counted no more.
    let mut calls: Vec<Call<'_>> = Vec::new();
    for _ in 0..6 {
        calls.push(extend(3, 1));
        calls.push(release.clone());
    }
    calls.push(extend(3, 0));
    let memory = run(&calls);
    assert_eq!(memory.word(container) as i32, -1);
}

#[test]
fn scans() {
    let (_, block) = offsets(1);
    let parts = |memory: &TreeMemory| {
        let at = memory
            .buffer
            .read_scalar(ScalarType::U64, block + control::PARTS as usize);
        at.unwrap().as_i128() as usize
    };
    let count = |memory: &TreeMemory| {
        for (k, n) in [3, 0, 4, 9].into_iter().enumerate() {
            let n = Scalar::int(ScalarType::U32, n);
            memory
                .buffer
                .write_scalar(parts(memory) + 4 * k, n)
                .unwrap();
        }
    };
    let memory = run_after(
        &count,
        &[("list_scan", vec![At(0), At(block), I64(3)], None)],
    );
    let firsts: Vec<u32> = (0..4)
        .map(|k| memory.word(parts(&memory) + 4 * k))
        .collect();
    assert_eq!(firsts, [0, 3, 3, 9]);
    assert_eq!(word(&memory, block, control::LIST_LEN), 7);
}
