//! Where bytes are while several ask for them, and where a device has little memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use aerogel_gpu::DriverError;
use aerogel_runtime::launch::KernelFailure;
use aerogel_runtime::{
    Access, Bounds, Buffer, Device, KernelCode, MemoryError, Order, TaskCode, TreeMemory,
};
use aerogel_snode::parse_nodes;

use super::faulty::{COUNT, code, first, launch, launch_on, open, with_memory};

/// Ways in which a thread of the host writes to the second number of an array.
const WRITES: [fn(&Buffer); 4] = [
    |array| array.write(8, &7_u64.to_le_bytes()).unwrap(),
    |array| array.fill(8, 1, &[7]).unwrap(),
    |array| {
        let all = array.at_home(Access::Change).unwrap();
        thread::sleep(Duration::from_millis(20));
        array.write(8, &7_u64.to_le_bytes()).unwrap();
        drop(all);
    },
    |array| {
        for _ in 0..100 {
            array.write(8, &7_u64.to_le_bytes()).unwrap();
        }
    },
];

#[test]
fn what_a_thread_writes_while_a_kernel_runs_is_kept() {
    for (k, write) in WRITES.into_iter().enumerate() {
        let (device, faults) = open();
        let kernel = device.load(&code("count", COUNT)).unwrap();
        let array = Arc::new(Buffer::zeroed(16 << 10).unwrap());
        array.write(0, &40_u64.to_le_bytes()).unwrap();
        let (other, written) = (array.clone(), Arc::new(AtomicBool::new(false)));
        let is_written = written.clone();
        faults.at_launch(move || {
            thread::spawn(move || {
                write(&other);
                is_written.store(true, Ordering::Release);
            });
            // Long enough for who does not wait.
            thread::sleep(Duration::from_millis(50));
        });
        assert_eq!(launch(&*kernel, &array), Ok(41));
        while !written.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let mut second = [0; 8];
        array.read(8, &mut second).unwrap();
        assert_eq!((first(&array), second[0]), (Ok(41), 7), "way {k}");
    }
}

/// A sparse tree with one active cell.
fn tree() -> TreeMemory {
    let text = "pointer i:65536 { dense i:64 { place x: i32 } }";
    let tree = TreeMemory::new(Arc::new(parse_nodes(text).unwrap()), 0).unwrap();
    let (place, _) = tree.tree().places().next().unwrap();
    tree.obtain_element(place, &[3]).unwrap();
    tree
}

/// As `code`, of a kernel that may make cells of a tree active.
fn activating(tree: &TreeMemory) -> KernelCode {
    KernelCode {
        root_bytes: vec![tree.tree().byte_size() as usize],
        activates: vec![true],
        changes: vec![true],
        ..code("count", COUNT)
    }
}

#[test]
fn a_launch_that_finds_no_room_for_more_cells_goes_on() {
    let mut went_on = 0;
    for mebibytes in 8..24 {
        let (device, _) = with_memory(mebibytes << 20);
        let (tree, array) = (tree(), Buffer::zeroed(64).unwrap());
        let mut code = activating(&tree);
        code.activates = vec![false];
        let kernel = device.load(&code).unwrap();
        let Ok(first) = launch_on(&*kernel, &array, &[&tree]) else {
            continue;
        };
        let kernel = device.load(&activating(&tree)).unwrap();
        assert_eq!((first, launch_on(&*kernel, &array, &[&tree])), (1, Ok(2)));
        let (place, _) = tree.tree().places().next().unwrap();
        assert!(tree.find_element(place, &[3]).unwrap().is_some());
        assert_eq!(tree.find_element(place, &[64]), Ok(None));
        went_on += 1;
    }
    assert!((1..16).contains(&went_on), "{went_on}");
}

#[test]
fn a_tree_that_found_no_memory_finds_it_later() {
    let (device, _) = with_memory(24 << 20);
    let full = Buffer::zeroed(22 << 20).unwrap();
    let count = device.load(&code("count", COUNT)).unwrap();
    assert_eq!(launch(&*count, &full), Ok(1));
    let (tree, small) = (tree(), Buffer::zeroed(64).unwrap());
    let kernel = device.load(&activating(&tree)).unwrap();
    for _ in 0..3 {
        let failure = launch_on(&*kernel, &small, &[&tree]).unwrap_err();
        let is_full = matches!(
            failure,
            KernelFailure::Tree {
                root: 0,
                error: MemoryError::DeviceFull { .. }
            }
        );
        assert!(is_full, "{failure:?}");
    }
    drop(full);
    assert_eq!(launch_on(&*kernel, &small, &[&tree]), Ok(1));
    assert!(device.is_usable());
}

#[test]
fn what_only_reads_leaves_the_host_the_newest() {
    let (device, faults) = open();
    let reads = KernelCode {
        written: vec![false],
        ..code("count", COUNT)
    };
    let kernel = device.load(&reads).unwrap();
    let array = Buffer::zeroed(16 << 10).unwrap();
    launch(&*kernel, &array).unwrap();
    faults.plan(Some((
        1,
        false,
        DriverError::Lost("it was asked".to_owned()),
    )));
    assert_eq!(first(&array), Ok(0));
    assert!(faults.is_pending());
}

#[test]
fn tasks_before_one_that_is_refused_are_waited_for() {
    let (device, faults) = open();
    let task = |symbol: &str| TaskCode {
        symbol: symbol.to_owned(),
        bounds: Bounds::Serial,
        batch: 1,
        cost: 1.0,
        max_threads: None,
        block: None,
        in_blocks: false,
        sums: None,
        exchange: None,
        order: Order::Any,
    };
    let twice = KernelCode {
        tasks: vec![task("count"), task("count")],
        ..code("count", COUNT)
    };
    let kernel = device.load(&twice).unwrap();
    let array = Buffer::zeroed(64).unwrap();
    let again = device.load(&code("count", COUNT)).unwrap();
    assert_eq!(launch(&*again, &array), Ok(1));
    let refused = || DriverError::Refused("too many registers".to_owned());
    for k in 1..20 {
        let before = first(&array).unwrap();
        faults.plan(Some((k, false, refused())));
        let outcome = launch(&*kernel, &array);
        let is_pending = faults.is_pending();
        faults.plan(None);
        let after = first(&array).unwrap();
        match outcome {
            Ok(sum) => {
                assert!(is_pending && sum == after && after == before + 2);
                return;
            }
            Err(KernelFailure::Device(what)) => {
                assert!(what.contains("too many registers"), "{what}");
                assert!((before..=before + 2).contains(&after), "call {k}");
                assert!(device.is_usable());
            }
            Err(KernelFailure::Memory(e)) => assert_eq!(e, MemoryError::DeviceFailed),
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("a launch has no twenty calls");
}

#[test]
fn what_is_filled_is_filled_on_the_card() {
    let (device, faults) = with_memory(24 << 20);
    let kernel = device.load(&code("count", COUNT)).unwrap();
    let array = Buffer::zeroed(1 << 20).unwrap();
    assert_eq!(launch(&*kernel, &array), Ok(1));
    faults.asked();
    array.fill(0, 1 << 20, &5_u64.to_le_bytes()).unwrap();
    assert_eq!(
        faults.asked(),
        ["write", "copy", "copy", "copy", "copy"],
        "sixteen times as much as comes from the host"
    );
    assert_eq!(launch(&*kernel, &array), Ok(6));
    assert!(!faults.asked().contains(&"copy"));
    array.fill(16, 32, &[1, 2, 3, 4]).unwrap();
    let mut all = vec![0; 1 << 20];
    array.read(0, &mut all).unwrap();
    let word = |k: usize| u64::from_le_bytes(all[8 * k..][..8].try_into().unwrap());
    let four = u64::from_le_bytes([1, 2, 3, 4, 1, 2, 3, 4]);
    assert_eq!([0, 1, 2, 5, 6].map(word), [6, 5, four, four, 5]);
    assert!((6..all.len() / 8).all(|k| word(k) == 5));
}
