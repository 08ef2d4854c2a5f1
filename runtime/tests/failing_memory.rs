//! Arenas whose growth fails, in a process of its own: the injected failure strikes whoever comes.

use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};
use aerogel_runtime::buffer::fail_allocation;
use aerogel_runtime::{MemoryError, TreeMemory};
use aerogel_snode::{NodeKind, parse_nodes};

fn cells(memory: &TreeMemory) -> Vec<u64> {
    memory.stats().iter().map(|s| s.cells).collect()
}

#[test]
fn failing_growth_leaves_everything_intact() {
    // Elements of 64 KiB, so that the arenas grow many times.
    let text = "pointer i:64 { pointer i:4 { dense i:16384 { place x: i32 } } }, \
                dynamic k:100000 chunk=512 { place y: i32 }";
    let tree = Arc::new(parse_nodes(text).unwrap());
    let x = tree.places().next().unwrap().0;
    let is_dynamic = |kind| matches!(kind, NodeKind::Dynamic { .. });
    let dynamic = tree.nodes().find(|(_, n)| is_dynamic(n.kind)).unwrap().0;
    for k in 1..30 {
        let memory = TreeMemory::new(tree.clone(), 0).unwrap();
        fail_allocation(k);
        let mut failed = Vec::new();
        for cell in 0..256 {
            let at = [cell * 16384 + 5];
            match memory.obtain_element(x, &at) {
                Ok(at) => memory
                    .write_scalar(at, Scalar::i32(cell as i32 + 1))
                    .unwrap(),
                Err(MemoryError::NoCell { .. }) => failed.push(cell),
                Err(other) => panic!("{other}"),
            }
        }
        let container = memory.container(dynamic, &[]).unwrap();
        let mut added = 0;
        for _ in 0..20_000 {
            if memory.extend(dynamic, container).is_ok() {
                added += 1;
            }
        }
        fail_allocation(0);
        let all_made = failed.is_empty() && added == 20_000;
        assert!(k > 10 || !all_made, "failure {k} did not strike");
        assert_eq!(memory.container_length(dynamic, container), added);
        for cell in 0..256 {
            let expected = if failed.contains(&cell) { 0 } else { cell + 1 };
            let at = memory.element(x, &[cell * 16384 + 5]);
            let found = at.map_or(0, |at| {
                let value = memory.read_scalar(ScalarType::I32, at).unwrap();
                value.as_i128() as i64
            });
            assert_eq!(found, expected);
        }
        let n = 256 - failed.len() as u64;
        let stats = cells(&memory);
        assert_eq!((stats[1], stats[2]), (n, added as u64), "failure {k}");
        // Those that could not be made can be made now. An element that got lost would be counted.
        for cell in 0..256 {
            memory.obtain_element(x, &[cell * 16384]).unwrap();
        }
        assert_eq!(cells(&memory)[..2], [64, 256]);
    }
}
