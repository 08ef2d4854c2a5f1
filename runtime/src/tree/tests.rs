//! Trees against a model of tables, and many threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};
use aerogel_snode::{NodeId, NodeKind, Tree, parse_nodes};

use super::{ActiveCells, Elements, TreeMemory, Turn};
use crate::buffer::{Buffer, MemoryError, live_bytes};
use crate::cpu::Pool;

fn memory(text: &str) -> TreeMemory {
    TreeMemory::new(Arc::new(parse_nodes(text).unwrap()), 0).unwrap()
}

fn node(memory: &TreeMemory, kind: &str, nth: usize) -> NodeId {
    let mut named = memory
        .tree()
        .nodes()
        .filter(|(_, n)| n.kind.name() == Some(kind));
    named.nth(nth).unwrap().0
}

fn place(memory: &TreeMemory) -> NodeId {
    memory.tree().places().next().unwrap().0
}

fn write(memory: &TreeMemory, place: NodeId, indices: &[i64], value: i32) {
    let at = memory.obtain_element(place, indices).unwrap();
    memory.write_scalar(at, Scalar::i32(value)).unwrap();
}

fn read(memory: &TreeMemory, place: NodeId, indices: &[i64]) -> i32 {
    memory.element(place, indices).map_or(0, |at| {
        let value = memory.read_scalar(ScalarType::I32, at).unwrap();
        value.as_i128() as i32
    })
}

fn cells(memory: &TreeMemory) -> Vec<u64> {
    memory.stats().iter().map(|s| s.cells).collect()
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    /// A chain of nodes that ends in a place, and sometimes has one in between.
    fn tree(&mut self) -> String {
        let (mut text, mut close) = (String::new(), String::new());
        let mut dynamic = false;
        let depth = 1 + self.below(4);
        for level in 0..depth {
            let last = level + 1 == depth;
            let kind = match self.below(5) {
                1 if !dynamic => "bitmasked",
                2 if !dynamic => "pointer",
                3 if !dynamic && last => "dynamic",
                4 if !dynamic => "hash",
                _ => "dense",
            };
            let extents = match kind {
                "dynamic" => {
                    dynamic = true;
                    format!("k:{} chunk={}", 1 + self.below(40), 1 + self.below(5))
                }
                _ => match self.below(3) {
                    0 => format!("i:{}", 1 + self.below(5)),
                    // More cells than a word of a mask has bits.
                    1 if last => format!("j:{}", 1 + self.below(40)),
                    1 => format!("j:{}", 1 + self.below(3)),
                    _ => format!("i:{} j:{}", 1 + self.below(3), 1 + self.below(3)),
                },
            };
            text.push_str(&format!("{kind} {extents} {{ "));
            close.push_str(" }");
            if self.below(3) == 0 {
                text.push_str(&format!("place p{level}: i32, "));
            }
        }
        format!("{text}place x: i32, place y: i32{close}, dense i:3 {{ place z: i32 }}")
    }
}

/// The contents of a tree, as tables.
#[derive(Default)]
struct Model {
    /// Active cells of pointer and bitmasked nodes, by their indices.
    active: BTreeSet<(NodeId, Vec<i64>)>,
    /// Lengths of dynamic nodes, by the indices of the cell above.
    lengths: BTreeMap<(NodeId, Vec<i64>), i64>,
    values: BTreeMap<(NodeId, Vec<i64>), i32>,
}

/// The indices of the cell of `above` in which the cell of `node` at `indices` lies.
fn project(tree: &Tree, node: NodeId, indices: &[i64], above: NodeId) -> Vec<i64> {
    let own = tree.shape_axes(node);
    let of_axis = |&(axis, extent): &(u8, u64)| {
        let k = own.iter().position(|a| a.0 == axis).unwrap();
        indices[k] / (own[k].1 / extent) as i64
    };
    tree.shape_axes(above).iter().map(of_axis).collect()
}

/// The index of a dynamic node's cell in its container.
fn along(tree: &Tree, node: NodeId, indices: &[i64], dynamic: NodeId) -> (Vec<i64>, i64) {
    let cell = project(tree, node, indices, dynamic);
    let axis = tree[dynamic].axes[0].axis;
    let shape = tree.shape_axes(dynamic);
    let k = shape.iter().position(|a| a.0 == axis).unwrap();
    (
        project(tree, dynamic, &cell, tree[dynamic].parent.unwrap()),
        cell[k],
    )
}

impl Model {
    fn is_active(&self, tree: &Tree, node: NodeId, indices: &[i64]) -> bool {
        tree.sparse_chain(node).into_iter().all(|n| {
            if let NodeKind::Dynamic { .. } = tree[n].kind {
                let (above, index) = along(tree, node, indices, n);
                self.lengths.get(&(n, above)).copied().unwrap_or(0) > index
            } else {
                self.active.contains(&(n, project(tree, node, indices, n)))
            }
        })
    }

    fn activate(&mut self, tree: &Tree, node: NodeId, indices: &[i64]) {
        for n in tree.sparse_chain(node) {
            if let NodeKind::Dynamic { .. } = tree[n].kind {
                let (above, index) = along(tree, node, indices, n);
                let length = self.lengths.entry((n, above)).or_default();
                *length = (*length).max(index + 1);
            } else {
                self.active.insert((n, project(tree, node, indices, n)));
            }
        }
    }

    /// Forgets what lies in the cell of `node` at `indices`.
    fn deactivate(&mut self, tree: &Tree, node: NodeId, indices: &[i64]) {
        let holder = match tree[node].kind {
            NodeKind::Dynamic { .. } => tree[node].parent.unwrap(),
            _ => node,
        };
        let below = tree.subtree(node);
        let inside =
            |n: NodeId, at: &[i64]| below.contains(&n) && project(tree, n, at, holder) == indices;
        self.active.retain(|(n, at)| !inside(*n, at));
        self.values.retain(|(n, at), _| !inside(*n, at));
        self.lengths.retain(|(n, above), _| {
            let parent = tree[*n].parent.unwrap();
            !(below.contains(n) && project(tree, parent, above, holder) == indices)
        });
    }

    fn cells(&self, tree: &Tree) -> Vec<u64> {
        let sparse = tree.nodes().filter(|(_, n)| n.kind.is_sparse());
        sparse
            .map(|(id, data)| match data.kind {
                NodeKind::Dynamic { .. } => {
                    let mine = self.lengths.iter().filter(|((n, _), _)| *n == id);
                    mine.map(|(_, &length)| length as u64).sum()
                }
                _ => self.active.iter().filter(|(n, _)| *n == id).count() as u64,
            })
            .collect()
    }
}

fn all_indices(shape: &[u64]) -> Vec<Vec<i64>> {
    shape.iter().fold(vec![Vec::new()], |all, &n| {
        let longer = |head: Vec<i64>| (0..n as i64).map(move |i| [&head[..], &[i]].concat());
        all.into_iter().flat_map(longer).collect()
    })
}

fn compare(memory: &TreeMemory, model: &Model, text: &str) {
    let tree = memory.tree();
    for (place, _) in tree.places() {
        for indices in all_indices(&tree.shape(place)) {
            let expected = model.values.get(&(place, indices.clone()));
            let found = read(memory, place, &indices);
            assert_eq!(
                found,
                expected.copied().unwrap_or(0),
                "{place} {indices:?} of {text}"
            );
        }
    }
    for (node, data) in tree.nodes().filter(|(_, n)| n.kind.name().is_some()) {
        let mut visited = BTreeSet::new();
        let mut visit = |cell: u64, origin: &[i64]| -> Result<(), ()> {
            assert_eq!(memory.element(node, origin), Some(cell));
            assert!(visited.insert(origin.to_vec()), "twice at {origin:?}");
            Ok(())
        };
        memory.visit_active(node, &mut visit).unwrap();
        for indices in all_indices(&tree.shape(node)) {
            let expected = model.is_active(tree, node, &indices);
            let found = memory.element(node, &indices).is_some();
            assert_eq!(found, expected, "{node} {indices:?} of {text}");
            assert_eq!(visited.contains(&indices), expected);
        }
        if let NodeKind::Dynamic { .. } = data.kind {
            for above in all_indices(&tree.shape(data.parent.unwrap())) {
                let length = memory.container(node, &above);
                let length = length.map_or(0, |c| memory.container_length(node, c));
                let expected = model.lengths.get(&(node, above));
                assert_eq!(length, expected.copied().unwrap_or(0));
            }
        }
    }
    assert_eq!(cells(memory), model.cells(tree), "{text}");
}

#[test]
fn as_the_model() {
    let pool = Pool::new(2);
    for seed in 1..120 {
        let mut rng = Rng(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let text = rng.tree();
        let memory = memory(&text);
        let tree = memory.tree().clone();
        let nodes: Vec<NodeId> = tree.nodes().skip(1).map(|(id, _)| id).collect();
        let mut model = Model::default();
        for step in 0..60 {
            let id = nodes[rng.below(nodes.len() as u64) as usize];
            let dynamic = matches!(tree[id].kind, NodeKind::Dynamic { .. });
            let shape = tree.shape(id);
            let indices: Vec<i64> = shape.iter().map(|&n| rng.below(n) as i64).collect();
            let above = project(&tree, id, &indices, tree[id].parent.unwrap());
            match (tree[id].kind, rng.below(6)) {
                (NodeKind::Place(_), _) => {
                    write(&memory, id, &indices, step + 1);
                    model.activate(&tree, id, &indices);
                    model.values.insert((id, indices), step + 1);
                }
                (_, 0) => {
                    let turn = Turn::take(&[&memory]);
                    let at = if dynamic { above } else { indices };
                    memory.deactivate(id, &at).unwrap();
                    memory.collect_all().unwrap();
                    drop(turn);
                    if tree[id].kind.is_sparse() {
                        model.deactivate(&tree, id, &at);
                    }
                }
                (_, 1) if step % 7 == 0 => {
                    memory.deactivate_all(id, &pool).unwrap();
                    for sparse in tree.subtree(id) {
                        let data = &tree[sparse];
                        if data.kind.is_sparse() {
                            let holder = match data.kind {
                                NodeKind::Dynamic { .. } => data.parent.unwrap(),
                                _ => sparse,
                            };
                            for at in all_indices(&tree.shape(holder)) {
                                model.deactivate(&tree, sparse, &at);
                            }
                        }
                    }
                }
                (NodeKind::Dynamic { .. }, 2 | 3) => {
                    let parent = tree[id].parent.unwrap();
                    let container = memory.obtain_container(id, &above).unwrap();
                    let added = memory.extend(id, container).unwrap();
                    model.activate(&tree, parent, &above);
                    let length = model.lengths.entry((id, above)).or_default();
                    if *length == tree[id].n_cells as i64 {
                        assert_eq!(added, -1);
                    } else {
                        assert_eq!(added, *length);
                        *length += 1;
                    }
                }
                _ => {
                    memory.obtain_element(id, &indices).unwrap();
                    model.activate(&tree, id, &indices);
                }
            }
            if step % 20 == 19 {
                compare(&memory, &model, &text);
            }
        }
        memory.deactivate_all(Tree::ROOT, &pool).unwrap();
        assert!(cells(&memory).iter().all(|&n| n == 0), "{text}");
    }
}

const DEEP: &str = "pointer i:64 { bitmasked j:8 { pointer i:4 j:4 { place x: i32 } } }, \
     dense i:16 { dynamic k:1000 chunk=4 { place y: i32 } }";

#[test]
fn many_threads_obtain_the_same_cells() {
    let pool = Pool::new(8);
    let memory = memory(DEEP);
    let x = place(&memory);
    let dynamic = node(&memory, "dynamic", 0);
    for round in 0..3 {
        // Every cell is wanted by four pieces of work.
        pool.run(4096, 8, &|k| {
            let k = (k % 1024) as i64;
            let at = memory.obtain_element(x, &[k / 4, k % 32]).unwrap();
            memory.write_scalar(at, Scalar::i32(k as i32)).unwrap();
            let container = memory.obtain_container(dynamic, &[k % 16]).unwrap();
            assert!(memory.extend(dynamic, container).unwrap() >= 0);
        });
        for k in 0..1024 {
            assert_eq!(
                read(&memory, x, &[k / 4, k % 32]),
                k as i32,
                "round {round}"
            );
        }
        // 4 of the 8 blocks in each of 64 hold 4 of their cells; 256 were appended to each of 16 lists.
        assert_eq!(cells(&memory), [64, 256, 1024, 4096]);
        let turn = Turn::take(&[&memory]);
        pool.run(4 * 64, 8, &|k| {
            memory
                .deactivate(node(&memory, "pointer", 0), &[k as i64 % 64])
                .unwrap();
            memory.deactivate(dynamic, &[k as i64 % 16]).unwrap();
        });
        memory.collect_all().unwrap();
        drop(turn);
        assert_eq!(cells(&memory), [0; 4]);
        // What is used again is zero.
        for k in 0..1024 {
            let at = memory.obtain_element(x, &[k / 4, k % 32]).unwrap();
            let value = memory.read_scalar(ScalarType::I32, at).unwrap();
            assert_eq!(value, Scalar::i32(0));
        }
        memory.deactivate_all(Tree::ROOT, &pool).unwrap();
        assert_eq!(cells(&memory), [0; 4]);
    }
}

#[test]
fn dropping_gives_everything_back() {
    let held = |memory: &TreeMemory| memory.stats().iter().map(|s| s.held_bytes).sum::<u64>();
    // More addresses than there are, were they not given back.
    for _ in 0..2000 {
        let memory = memory("pointer i:1048576 { dense i:1024 { place x: i32 } }");
        assert_eq!(held(&memory), 0);
        write(&memory, place(&memory), &[1 << 29], 1);
        assert!(held(&memory) >= 4096 && memory.live_bytes() < 8 << 20);
    }
    // Other tests of this process have buffers of their own, but none so large.
    let large = memory("dense i:1073741824 { place x: u8 }, pointer i:4 { place y: u8 }");
    assert!(live_bytes() >= 1 << 30);
    drop(large);
    assert!(live_bytes() < 1 << 30);
}

#[test]
fn lists_of_cells() {
    let memory = memory(DEEP);
    let (x, outer) = (place(&memory), node(&memory, "pointer", 0));
    assert!(memory.list_stale(outer), "there is no list at first");
    assert!(!memory.list_stale(outer));
    write(&memory, x, &[9, 9], 1);
    assert!(memory.list_stale(outer));
    let inner = node(&memory, "pointer", 1);
    assert!(memory.list_stale(inner) && !memory.list_stale(inner));
    // An inner change does not concern the outer list, an outer one does the inner.
    write(&memory, x, &[8, 8], 1);
    assert!(!memory.list_stale(outer) && memory.list_stale(inner));
    write(&memory, x, &[100, 8], 1);
    assert!(memory.list_stale(inner) && memory.list_stale(outer));
    for (part, count) in [3, 0, 4].into_iter().enumerate() {
        memory.list_count(outer, part as u64, count);
    }
    memory.list_scan(outer, 3);
    let offsets = [0, 1, 2].map(|part| memory.list_offset(outer, part));
    assert_eq!((offsets, memory.list_len(outer)), ([0, 3, 3], 7));
    memory.list_put(outer, 3, 77, &[-5]).unwrap();
    assert_eq!(memory.list_entry(outer, 3).unwrap(), (77, vec![-5]));
}

#[test]
fn cells_in_bulk() {
    let pool = Pool::new(3);
    let mut rng = Rng(5);
    for round in 0..60 {
        let text = match round {
            // Enough for several parts, which begin within words of masks.
            0 => "bitmasked i:70001 { place x: i32 }".to_owned(),
            1 => "pointer i:7 { dense j:9001 { place x: i32, place y: i32 } }".to_owned(),
            2 => "dense i:5000 { dynamic j:9 chunk=2 { place x: i32 } }".to_owned(),
            _ => rng.tree(),
        };
        let one = memory(&text);
        let other = memory(&text);
        let places: Vec<NodeId> = one.tree().places().map(|(place, _)| place).collect();
        // Two components, in the same cells or apart.
        let shape = one.tree().shape(places[0]);
        let alike = places.iter().rev().find(|&&p| one.tree().shape(p) == shape);
        let places = [places[0], *alike.unwrap()];
        let elements = Elements {
            places: &places,
            item: 4,
            offset: &[],
        };
        let n = 1500;
        let coordinates: Vec<i32> = (0..n)
            .flat_map(|_| {
                shape
                    .iter()
                    .map(|&e| rng.below(e) as i32)
                    .collect::<Vec<_>>()
            })
            .collect();
        let values = Buffer::zeroed(8 * n).unwrap();
        for row in 0..n {
            let indices = &coordinates[row * shape.len()..][..shape.len()];
            let indices: Vec<i64> = indices.iter().map(|&i| i64::from(i)).collect();
            for (k, &place) in places.iter().enumerate() {
                let value = (2 * row + k) as i32;
                values
                    .write_scalar(8 * row + 4 * k, Scalar::i32(value))
                    .unwrap();
                write(&other, place, &indices, value);
            }
        }
        assert_eq!(one.first_outside(places[0], &coordinates), None);
        one.set_cells(elements, n, &coordinates, Some(&values), &pool)
            .unwrap();
        assert_eq!(one.snapshot(), other.snapshot(), "{text}");
        assert_eq!(cells(&one), cells(&other), "{text}");

        let mut expected = ActiveCells::default();
        other
            .visit_active(places[0], &mut |_, indices| {
                for &index in indices {
                    expected.coordinates.extend((index as i32).to_ne_bytes());
                }
                for &place in &places {
                    expected
                        .values
                        .extend(read(&other, place, indices).to_ne_bytes());
                }
                Ok::<_, MemoryError>(())
            })
            .unwrap();
        let pieces = one.active_cells(elements, &pool).unwrap();
        let joined = |part: fn(&ActiveCells) -> &Vec<u8>| {
            pieces.iter().flat_map(part).copied().collect::<Vec<u8>>()
        };
        assert_eq!(joined(|p| &p.coordinates), expected.coordinates, "{text}");
        assert_eq!(joined(|p| &p.values), expected.values, "{text}");
    }
}

/// Programs sort the memory of a tree so.
#[test]
fn cells_set_after_deactivation_lie_in_order() {
    let memory = memory("pointer i:8 { pointer i:8 { dense i:4 { place x: i32 } } }");
    let (pool, place) = (Pool::new(1), place(&memory));
    for k in 0..64 {
        let index = 4 * (37 * k % 64);
        write(&memory, place, &[index], index as i32);
    }
    let in_order = || {
        let mut addresses = Vec::new();
        let visit = &mut |cell: u64, _: &[i64]| {
            addresses.push(cell);
            Ok::<_, MemoryError>(())
        };
        memory.visit_active(place, visit).unwrap();
        addresses.is_sorted()
    };
    assert!(!in_order());
    let elements = Elements {
        places: &[place],
        item: 4,
        offset: &[],
    };
    let pieces = memory.active_cells(elements, &pool).unwrap();
    let joined = |part: fn(&ActiveCells) -> &Vec<u8>| {
        pieces.iter().flat_map(part).copied().collect::<Vec<u8>>()
    };
    let coordinates = joined(|p| &p.coordinates);
    let coordinates: Vec<i32> = coordinates
        .chunks_exact(4)
        .map(|c| i32::from_ne_bytes(c.try_into().unwrap()))
        .collect();
    let values = Buffer::zeroed(4 * coordinates.len()).unwrap();
    values.write(0, &joined(|p| &p.values)).unwrap();
    memory
        .deactivate_all(node(&memory, "pointer", 0), &pool)
        .unwrap();
    memory
        .set_cells(
            elements,
            coordinates.len(),
            &coordinates,
            Some(&values),
            &pool,
        )
        .unwrap();
    assert!(in_order());
    assert_eq!(read(&memory, place, &[4 * 37]), 4 * 37);
}

#[test]
fn cells_outside_are_found() {
    let memory = memory("pointer i:4 { dense i:2 j:3 { place x: i32 } }");
    let outside = |rows: &[i32]| memory.first_outside(place(&memory), rows);
    assert_eq!(outside(&[]), None);
    assert_eq!(outside(&[0, 0, 7, 2]), None);
    assert_eq!(outside(&[0, 0, 8, 2, 0, 3]), Some(1));
    assert_eq!(outside(&[0, -1]), Some(0));
}

/// A launch may end between the question whether a list is stale and its entries.
#[test]
fn a_half_made_list_is_made_again() {
    let memory = memory("pointer i:8 { place x: i32 }");
    let (node, place) = (node(&memory, "pointer", 0), place(&memory));
    memory.obtain_element(place, &[3]).unwrap();
    assert!(memory.list_stale(node));
    assert!(!memory.list_stale(node));
    memory.settle();
    assert!(memory.list_stale(node));
}
