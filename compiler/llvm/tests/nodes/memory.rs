//! A sparse tree's memory, laid out by hand: control blocks, arenas and lists one behind the other.

use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};
use aerogel_runtime::Buffer;
use aerogel_snode::{NodeId, NodeKind, Tree, WORD, control};

/// How many parts of a list can be counted.
const PARTS: u64 = 64;

pub(crate) struct TreeMemory {
    pub(crate) tree: Arc<Tree>,
    pub(crate) buffer: Buffer,
}

impl TreeMemory {
    /// With room for `capacity` elements, besides the ambient one, in each arena.
    pub(crate) fn new(tree: Arc<Tree>, capacity: u32) -> Self {
        let mut end = tree.byte_size().next_multiple_of(64);
        let mut ranges = Vec::new();
        for (id, node) in tree.nodes() {
            for k in 0..node.n_controls() {
                let entry = control::entry_size(tree.shape(id).len());
                let mut range = |at: u64, bytes: u64| {
                    ranges.push((id, k, at, end));
                    end = (end + bytes).next_multiple_of(64);
                };
                if node.n_arenas() > 0 {
                    let elements = u64::from(capacity) + 1;
                    range(control::ELEMENTS, elements * node.element_size(k));
                    range(control::FREE, elements * WORD);
                    range(control::RECYCLED, elements * WORD);
                }
                range(control::LIST, tree.total_cells(id) * entry);
                range(control::PARTS, PARTS * WORD);
            }
        }
        let memory = Self {
            tree,
            buffer: Buffer::zeroed(end as usize).unwrap(),
        };
        for (id, k, at, begin) in ranges {
            let block = memory.control(id, k);
            let write = |at: u64, value| {
                memory
                    .buffer
                    .write_scalar(block + at as usize, value)
                    .unwrap()
            };
            write(at, Scalar::int(ScalarType::U64, i128::from(begin)));
            write(control::BUMP, Scalar::int(ScalarType::U32, 1));
            write(
                control::LIMIT,
                Scalar::int(ScalarType::U32, i128::from(capacity) + 1),
            );
        }
        memory
    }

    /// The offset of a control block.
    pub(crate) fn control(&self, node: NodeId, k: u64) -> usize {
        let number = u64::from(self.tree[node].first_control) + k;
        self.tree.control_offset(number) as usize
    }

    pub(crate) fn word(&self, at: usize) -> u32 {
        self.buffer
            .read_scalar(ScalarType::U32, at)
            .unwrap()
            .as_i128() as u32
    }

    /// The offset of the container of a child of the root.
    pub(crate) fn container(&self, node: NodeId) -> usize {
        self.tree[node].offset_in_cell as usize
    }

    /// The offset of an element.
    pub(crate) fn element(&self, node: NodeId, k: u64, number: u32) -> usize {
        let block = self.control(node, k);
        let elements = self.buffer.read_scalar(ScalarType::U64, block);
        let size = self.tree[node].element_size(k);
        elements.unwrap().as_i128() as usize + (u64::from(number) * size) as usize
    }

    /// How many elements of an arena cells use.
    pub(crate) fn active(&self, block: usize) -> u32 {
        let word = |at: u64| self.word(block + at as usize);
        let (taken, n_free) = (word(control::TAKEN), word(control::N_FREE));
        let used = taken.min(n_free);
        let end = (word(control::BUMP) + taken - used).min(word(control::LIMIT));
        end - 1 - (n_free - used) - word(control::N_RECYCLED)
    }

    /// The `i32` in each cell of a dynamic container that lies in a dense node below the root.
    pub(crate) fn dynamic_values(&self, node: NodeId, which: usize) -> Vec<u32> {
        let data = &self.tree[node];
        let NodeKind::Dynamic { chunk } = data.kind else {
            panic!("the node is dynamic")
        };
        let dense = data.parent.unwrap();
        let at = self.container(dense) + which * self.tree[dense].cell_size as usize;
        (0..self.word(at))
            .map(|i| {
                let k = (i / chunk + 1).ilog2();
                let first = chunk * ((1 << k) - 1);
                let number = self.word(at + 4 * (1 + k as usize));
                let element = self.element(node, u64::from(k), number);
                self.word(element + ((i - first) as usize) * data.cell_size as usize)
            })
            .collect()
    }
}
