use std::collections::BTreeMap;
use std::sync::Arc;

use aerogel_base::Scalar;
use aerogel_snode::{NodeId, Tree, parse_nodes};

use crate::cpu::Pool;
use crate::tree::{Elements, TreeMemory, Turn};

const WIDE: &str = "hash i:1073741824 j:2147483648 { place x: i32 }";

fn memory(text: &str) -> TreeMemory {
    TreeMemory::new(Arc::new(parse_nodes(text).unwrap()), 0).unwrap()
}

fn hash(memory: &TreeMemory) -> NodeId {
    let mut nodes = memory.tree().nodes();
    nodes
        .find(|(_, n)| n.kind.name() == Some("hash"))
        .unwrap()
        .0
}

fn place(memory: &TreeMemory) -> NodeId {
    memory.tree().places().next().unwrap().0
}

/// Indices that are scattered over the whole of `WIDE`, the same for the same number.
fn scattered(k: usize) -> [i64; 2] {
    let bits = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [(bits >> 34) as i64, (bits >> 3 & 0x7fff_ffff) as i64]
}

fn tables(memory: &TreeMemory) -> u64 {
    memory.active_elements(memory.tables(hash(memory)).unwrap())
}

#[test]
fn cells_far_apart() {
    let memory = memory(WIDE);
    let x = place(&memory);
    let mut model = BTreeMap::new();
    for k in 0..1000 {
        let mut at = scattered(k);
        if k % 3 == 0 {
            // The corners, and their neighbours.
            at = [
                (k as i64 & 1) * ((1 << 30) - 1),
                (k as i64 >> 1 & 1) * ((1 << 31) - 1),
            ];
        }
        assert_eq!(memory.element(x, &at).is_some(), model.contains_key(&at));
        let cell = memory.obtain_element(x, &at).unwrap();
        memory.write_scalar(cell, Scalar::i32(k as i32)).unwrap();
        model.insert(at, k as i32);
    }
    // Loops visit them in the order of their indices.
    let mut visited = Vec::new();
    let mut visit = |cell: u64, at: &[i64]| -> Result<(), ()> {
        let value = memory.read_scalar(aerogel_base::ScalarType::I32, cell);
        visited.push(([at[0], at[1]], value.unwrap().as_i128() as i32));
        Ok(())
    };
    memory.visit_active(hash(&memory), &mut visit).unwrap();
    assert_eq!(visited, model.clone().into_iter().collect::<Vec<_>>());
    let [stats] = memory.stats()[..] else {
        panic!("one sparse node")
    };
    assert_eq!(
        (stats.cells, stats.elements),
        (model.len() as u64, model.len() as u64)
    );
    // Each has a few tables of its own, however large the space is.
    assert!(stats.used_bytes < 1200 * stats.cells, "{stats:?}");
    let pieces = memory.active_cells(
        Elements {
            places: &[x],
            item: 4,
            offset: &[],
        },
        &Pool::new(3),
    );
    let n: usize = pieces.unwrap().iter().map(|p| p.values.len() / 4).sum();
    assert_eq!(n, model.len());
}

#[test]
fn threads_make_the_same_cells() {
    let memory = memory(WIDE);
    let (pool, x) = (Pool::new(8), place(&memory));
    for _ in 0..3 {
        pool.run(4000, 8, &|k| {
            let at = memory.obtain_element(x, &scattered(k % 1000)).unwrap();
            memory
                .write_scalar(at, Scalar::i32(k as i32 % 1000))
                .unwrap();
        });
        assert_eq!(memory.stats()[0].cells, 1000);
        for k in 0..1000 {
            let at = memory.element(x, &scattered(k)).unwrap();
            let value = memory.read_scalar(aerogel_base::ScalarType::I32, at);
            assert_eq!(value.unwrap(), Scalar::i32(k as i32));
        }
        let turn = Turn::take(&[&memory]);
        pool.run(2000, 8, &|k| {
            memory
                .deactivate(hash(&memory), &scattered(k % 1000))
                .unwrap();
        });
        memory.collect_all().unwrap();
        drop(turn);
        assert_eq!((memory.stats()[0].cells, tables(&memory)), (0, 0));
    }
}

#[test]
fn tables_do_not_pile_up() {
    for text in [
        WIDE.to_owned(),
        format!("pointer i:1 {{ {} }}", WIDE.replace("i:", "k:")),
        format!("dense i:1 {{ {} }}", WIDE.replace("i:", "k:")),
    ] {
        let memory = memory(&text);
        let (x, pool) = (place(&memory), Pool::new(2));
        let nested = memory.tree().shape(x).len() == 3;
        let at = |k: usize| match scattered(k) {
            [i, j] if nested => vec![0, j, i],
            at => at.to_vec(),
        };
        let outer = memory.tree()[Tree::ROOT].children[0];
        let mut most = 0;
        // A front that moves: what was active before is given back.
        for round in 0..200 {
            for k in 0..50 {
                memory.obtain_element(x, &at(50 * round + k)).unwrap();
            }
            assert_eq!(memory.stats().last().unwrap().cells, 50);
            let turn = Turn::take(&[&memory]);
            if nested && round % 3 == 0 && memory.tree()[outer].kind.is_sparse() {
                memory.deactivate(outer, &[0]).unwrap();
            } else {
                for k in 0..50 {
                    memory
                        .deactivate(hash(&memory), &at(50 * round + k))
                        .unwrap();
                }
            }
            memory.collect_all().unwrap();
            drop(turn);
            assert_eq!(tables(&memory), 0, "{text}");
            most = most.max(memory.live_bytes());
        }
        assert!(most < 2 << 20, "{most} bytes for {text}");
        for k in 0..50 {
            memory.obtain_element(x, &at(k)).unwrap();
        }
        memory.deactivate_all(Tree::ROOT, &pool).unwrap();
        assert_eq!(
            (memory.stats().last().unwrap().cells, tables(&memory)),
            (0, 0)
        );
        assert_eq!(memory.element(x, &at(1)), None);
    }
}

#[test]
fn from_one_active_cell_to_the_next() {
    let memory = memory("hash i:100000 { place x: i32 }");
    let (x, node) = (place(&memory), hash(&memory));
    assert_eq!(
        (memory.next_active(node, 0, 0), memory.active_end(node, 0)),
        (i64::MAX, 0)
    );
    for at in [0, 15, 16, 4095, 99999] {
        memory.obtain_element(x, &[at]).unwrap();
    }
    let next = |from| memory.next_active(node, 0, from);
    assert_eq!(
        [-5, 0, 1, 16, 17, 4096].map(next),
        [0, 0, 15, 16, 4095, 99999]
    );
    assert_eq!([100_000, i64::MAX].map(next), [i64::MAX; 2]);
    assert_eq!(memory.active_end(node, 0), 100_000);
    // An empty table counts as full until it is collected.
    memory.deactivate(node, &[99999]).unwrap();
    assert_eq!(
        (next(4096), memory.active_end(node, 0)),
        (i64::MAX, 100_000)
    );
    let turn = Turn::take(&[&memory]);
    memory.collect_all().unwrap();
    drop(turn);
    assert_eq!((next(4096), memory.active_end(node, 0)), (i64::MAX, 4096));
}

/// An element that lost a race was never in a slot, whatever it was in before.
#[test]
fn losers_give_back_no_tables() {
    let memory = memory(WIDE);
    let (x, pool) = (place(&memory), Pool::new(1));
    let cells = memory.tree()[hash(&memory)].first_control;
    let fill = |from: usize| {
        for k in from..from + 100 {
            let at = memory.obtain_element(x, &scattered(k)).unwrap();
            memory.write_scalar(at, Scalar::i32(k as i32)).unwrap();
        }
    };
    for by_hand in [false, true] {
        // Many, so that what is taken next has been in a slot.
        (0..8).for_each(|k| fill(100 * k));
        if by_hand {
            let turn = Turn::take(&[&memory]);
            for k in 0..800 {
                memory.deactivate(hash(&memory), &scattered(k)).unwrap();
            }
            memory.collect_all().unwrap();
            drop(turn);
        } else {
            memory.deactivate_all(Tree::ROOT, &pool).unwrap();
        }
        fill(100);
        for _ in 0..50 {
            let loser = memory.take(cells).unwrap();
            memory.recycle(cells, loser);
        }
        let turn = Turn::take(&[&memory]);
        memory.collect_all().unwrap();
        drop(turn);
        fill(0);
        for k in 0..200 {
            let at = memory.element(x, &scattered(k)).unwrap();
            let value = memory.read_scalar(aerogel_base::ScalarType::I32, at);
            assert_eq!(value.unwrap(), Scalar::i32(k as i32));
        }
        assert_eq!(memory.stats()[0].cells, 200);
    }
}
