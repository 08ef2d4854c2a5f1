//! The functions of `runtime/device/{sparse,tables}.air`, interpreted and compiled, one call after the other.

use std::sync::{Arc, Mutex};

use aerogel_base::{Scalar, ScalarType};
use aerogel_interp::InterpKernel;
use aerogel_ir::{Stage, parse_module, verify};
use aerogel_llvm::{Jit, OptLevel, Texts, compile, target};
use aerogel_runtime::cpu::{CpuDevice, Pool};
use aerogel_runtime::{Args, Device, Launch, LoadedKernel, TreeMemory};
use aerogel_snode::{NodeId, control};

use crate::memory::{active, container, control as block, element, offset, word};

const DEVICE: &str = concat!(
    include_str!("../../../../runtime/device/sparse.air"),
    include_str!("../../../../runtime/device/tables.air"),
);
const TREE: &str = "pointer i:8 { place x: i32 }, bitmasked i:40 { place m: i32 }, dynamic j:40 chunk=4 { place d: i32 }, hash i:4000 { place h: i32 }";

/// An argument of a call.
#[derive(Clone, Copy)]
enum Arg {
    /// The address of a place in the tree, by its offset.
    At(u64),
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

/// Makes the calls with every way to run a kernel, which leave the same root's cell and control blocks;
/// the memory afterwards.
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
        let code = compile(&module, &target::host(), OptLevel(level), Texts::Nothing).code;
        kernels.push((device.load(&code).unwrap(), true));
    }
    let expected: Vec<u64> = calls.iter().filter_map(|c| c.2.map(|r| r.1)).collect();
    let mut after: Option<TreeMemory> = None;
    for (kernel, is_compiled) in kernels {
        let memory = TreeMemory::new(tree.clone(), 0).unwrap();
        prepare(&memory);
        // Addresses are offsets to the interpreter.
        let base = if is_compiled {
            memory.address().unwrap() as u64
        } else {
            0
        };
        let mut args = Args::new();
        args.scalar(base);
        let mut results = vec![0; expected.len()];
        kernel
            .launch(Launch {
                args: &args,
                roots: &[&memory],
                results: &mut results,
                sink: &Mutex::new(String::new()),
                seed: 0,
                most_reserved: u64::MAX,
                trace: None,
                later: None,
            })
            .unwrap();
        assert_eq!(results, expected, "compiled: {is_compiled}");
        let fixed = |memory: &TreeMemory| {
            let mut bytes = vec![0; tree.byte_size() as usize];
            memory.bytes().read(0, &mut bytes).unwrap();
            bytes
        };
        if let Some(first) = &after {
            assert_eq!(fixed(first), fixed(&memory));
        }
        after = Some(memory);
    }
    after.unwrap()
}

/// The offsets of a node's container and control blocks, from a memory like that of the runs.
fn offsets(node: u32) -> (u64, u64) {
    let module = parse_module(&format!("tree0 {{ {TREE} }}")).unwrap();
    let tree = module.env.trees.values().next().unwrap().clone();
    let memory = TreeMemory::new(tree, 0).unwrap();
    let node = NodeId::from_u32(node);
    (container(&memory, node), block(&memory, node, 0))
}

#[test]
fn pointer_slots() {
    let (cells, control) = offsets(1);
    let slot = |k: u64| At(cells + 4 * k);
    let obtain_of = |tree: u32, k: u64, result: u64| -> Call<'_> {
        let args = vec![At(0), At(control), slot(k), U32(tree), U32(0)];
        ("obtain_pointer", args, Some(("u32", result)))
    };
    let obtain = |k: u64, result: u64| obtain_of(0, k, result);
    let release = |k: u64| ("release_pointer", vec![At(0), At(control), slot(k)], None);
    let wipe = |at: i64| {
        let args = vec![At(0), At(control), I64(1), I64(at), I64(4), U32(0)];
        ("wipe", args, None)
    };
    let stale = |stamp: u32, result: u64| {
        let args = vec![At(control), U32(stamp)];
        ("list_stale", args, Some(("u1", result)))
    };
    let epoch = |result: u64| ("epoch", vec![At(control)], Some(("u32", result)));
    let no_memory = |memory: &TreeMemory| {
        let limit = Scalar::int(ScalarType::U32, 6);
        memory
            .write_scalar(control + control::LIMIT, limit)
            .unwrap();
    };
    let calls = [
        obtain(0, 1),
        obtain(1, 2),
        obtain(2, 3),
        // The slot is taken already: the new element goes into the queue.
        obtain(1, 2),
        release(0),
        release(0),
        epoch(1),
        epoch(1),
        stale(2, 1),
        stale(2, 0),
        wipe(0),
        wipe(1),
        ("collect", vec![At(control)], None),
        // The free list from its end, then fresh ones, of which a tree that the host does not know
        // gets no more than its limit says.
        obtain(4, 1),
        obtain(5, 4),
        obtain_of(9, 6, 5),
        obtain_of(9, 7, 0),
        obtain(0, 7),
        epoch(2),
    ];
    let memory = run_after(&no_memory, &calls);
    let slots: Vec<u32> = (0..8).map(|k| word(&memory, cells + 4 * k)).collect();
    assert_eq!(slots, [7, 2, 3, 0, 1, 4, 5, 0]);
    let at = element(&memory, NodeId::from_u32(1), 0, 4);
    assert_eq!(word(&memory, at), 0);
}

#[test]
fn masks() {
    let (cells, control) = offsets(3);
    let mask = At(cells + 40 * 4);
    let memory = run(&[
        ("obtain_bit", vec![At(control), mask, U32(4)], None),
        ("obtain_bit", vec![At(control), mask, U32(1 << 31)], None),
        ("epoch", vec![At(control)], Some(("u32", 1))),
        ("release_bit", vec![At(control), mask, U32(4)], None),
    ]);
    assert_eq!(word(&memory, cells + 160), 1 << 31);
    assert_eq!(word(&memory, control + control::CHANGED), 1);
}

#[test]
fn dynamic_containers() {
    let (cells, control) = offsets(5);
    let chunk = |k: u64| At(control + 128 * k);
    let slot = |k: u64| At(cells + 4 + 4 * k);
    // A cell whose number has been taken, in chunk `k`.
    let extend = |k: u64, granted: u64| -> Call<'_> {
        let number = U32(2 + k as u32);
        let args = vec![
            At(0),
            At(control),
            At(cells),
            U32(0),
            chunk(k),
            slot(k),
            U32(0),
            number,
        ];
        ("extend_dynamic", args, Some(("u1", granted)))
    };
    let obtain = |length: u32, k: u64, result: u64| -> Call<'_> {
        let number = U32(2 + k as u32);
        let args = vec![
            At(0),
            At(control),
            At(cells),
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
        vec![At(0), At(control), At(cells), I64(4)],
        None,
    );
    // Queue places 0 and 1: those of chunks 0 and 1, 16 and 32 bytes long.
    let wipe = |at: i64| {
        (
            "wipe",
            vec![At(0), At(control), I64(4), I64(at), I64(16), U32(0)],
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
    assert_eq!(word(&memory, cells), 20);
    let slots: Vec<u32> = (1..=4).map(|k| word(&memory, cells + 4 * k)).collect();
    // The chunks before the last one have memory too, since their cells are active.
    assert_eq!(slots, [1, 1, 1, 0]);
    for k in 0..3 {
        assert_eq!(active(&memory, control + 128 * k), 1);
    }
    // Where memory is refused, the cell that was counted beforehand is counted no more; others may have
    // emptied the container since.
    for (before, after) in [(3, 2), (5, 2), (0, 0)] {
        let no_memory = |memory: &TreeMemory| {
            let number = |n| Scalar::int(ScalarType::U32, n);
            memory
                .write_scalar(control + control::LIMIT, number(1))
                .unwrap();
            memory.write_scalar(cells, number(before)).unwrap();
        };
        let args = vec![
            At(0),
            At(control),
            At(cells),
            U32(2),
            chunk(0),
            slot(0),
            U32(9),
            U32(2),
        ];
        let memory = run_after(&no_memory, &[("extend_dynamic", args, Some(("u1", 0)))]);
        assert_eq!(word(&memory, cells), after);
    }
}

#[test]
fn filled_slots() {
    let (cells, control) = offsets(1);
    let args = vec![At(0), At(control), At(cells), U32(0), U32(0)];
    let fill = |result| ("fill_slot", args.clone(), Some(("u32", result)));
    // Who finds the slot full takes no element.
    let memory = run(&[fill(1), fill(1)]);
    assert_eq!(word(&memory, control + control::TAKEN), 1);
    // Nothing is written to a slot that is empty.
    let release = (
        "release_slot",
        vec![At(0), At(control), At(cells)],
        Some(("u1", 0)),
    );
    let memory = run(&[release]);
    assert_eq!(word(&memory, control + control::N_RECYCLED), 0);
}

#[test]
fn tables() {
    let (container, control) = offsets(7);
    let tables = control + control::SIZE;
    let obtain = |key: i64, number: u64| -> Call<'_> {
        let args = vec![
            At(0),
            At(control),
            At(container),
            I64(key),
            I64(3),
            U32(0),
            U32(6),
        ];
        ("obtain_hash", args, Some(("u32", number)))
    };
    let next = |from: i64, found: i64| -> Call<'_> {
        let args = vec![
            At(0),
            At(control),
            At(container),
            I64(from),
            I64(3),
            I64(4000),
        ];
        ("next_active", args, Some(("i64", found as u64)))
    };
    let end = |found: u64| -> Call<'_> {
        let args = vec![At(0), At(control), At(container), I64(3), I64(4000)];
        ("active_end", args, Some(("i64", found)))
    };
    let made = [
        next(0, i64::MAX),
        end(0),
        obtain(0x123, 1),
        obtain(0x12f, 2),
        obtain(0x123, 1),
        obtain(0xf00, 3),
        next(-7, 0x123),
        next(0x124, 0x12f),
        next(0x130, 0xf00),
        next(0xf01, i64::MAX),
        next(4000, i64::MAX),
        end(0xf01),
    ];
    let memory = run(&made);
    // 0x123 and 0x12f share all three tables, 0xf00 the first.
    assert_eq!((active(&memory, control), active(&memory, tables)), (3, 5));
    // The slots of 0x123 in table 3, and of 0xf00 in table 5.
    let slot = |table: u64, digit: u64| {
        let first = offset(&memory, tables + control::ELEMENTS);
        At(first + 64 * table + 4 * digit)
    };
    let release =
        |slot: Arg| -> Call<'_> { ("release_pointer", vec![At(0), At(control), slot], None) };
    let prune = |at: i64| -> Call<'_> {
        let args = vec![At(0), At(control), I64(at), I64(3)];
        ("prune", args, None)
    };
    let mut calls = made.to_vec();
    calls.extend([release(slot(3, 3)), release(slot(5, 0)), end(0xf10)]);
    calls.extend([prune(0), prune(1), prune(1), end(0x130)]);
    let memory = run(&calls);
    assert_eq!((active(&memory, control), active(&memory, tables)), (1, 3));
    let wipe = |at: i64| -> Call<'_> {
        let args = vec![At(0), At(control), I64(1), I64(at), I64(4), U32(0)];
        ("wipe", args, None)
    };
    calls.extend([
        wipe(0),
        wipe(1),
        ("collect", vec![At(control)], None),
        ("collect_tables", vec![At(0), At(tables)], None),
        // Pruned tables come first.
        obtain(0x200, 3),
        next(0x130, 0x200),
    ]);
    let memory = run(&calls);
    assert_eq!(active(&memory, tables), 5);
    assert_eq!(word(&memory, tables + control::BUMP), 6);
}

#[test]
fn scans() {
    let (_, control) = offsets(1);
    let parts = |memory: &TreeMemory| offset(memory, control + control::PARTS);
    let count = |memory: &TreeMemory| {
        for (k, n) in (0..).zip([3, 0, 4]) {
            let n = Scalar::int(ScalarType::U32, n);
            memory.write_scalar(parts(memory) + 4 * k, n).unwrap();
        }
    };
    let scan = ("list_scan", vec![At(0), At(control), I64(3)], None);
    let memory = run_after(&count, &[scan]);
    let firsts = (0..4).map(|k| word(&memory, parts(&memory) + 4 * k));
    assert_eq!(firsts.collect::<Vec<_>>(), [0, 3, 3, 7]);
    assert_eq!(word(&memory, control + control::LIST_LEN), 7);
}
