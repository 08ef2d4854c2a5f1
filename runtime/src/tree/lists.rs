//! Lists of active cells, as kernels make them.

use std::sync::atomic::Ordering;

use aerogel_snode::{NodeId, control};

use super::TreeMemory;
use crate::buffer::MemoryError;

impl TreeMemory {
    fn first(&self, node: NodeId) -> u32 {
        self.tree[node].first_control
    }

    /// Whether the list of a node's active cells is out of date; if so, the caller rebuilds it.
    /// Runs alone.
    pub fn list_stale(&self, node: NodeId) -> bool {
        let stamp = self.count_changes(node);
        let listed = self
            .word(self.first(node), control::STAMP)
            .swap(stamp, Ordering::Relaxed);
        listed != stamp
    }

    fn part(&self, node: NodeId, part: u64) -> u64 {
        self.arenas[self.first(node) as usize].parts_at(part)
    }

    /// Notes how many entries a part of a new list has.
    pub fn list_count(&self, node: NodeId, part: u64, count: u32) {
        let word = self.bytes.word(self.part(node, part));
        word.store(count, Ordering::Relaxed);
    }

    /// Makes the counts of `n_parts` parts into the number of each part's first entry; that of the
    /// part after the last is the length. Runs alone.
    pub fn list_scan(&self, node: NodeId, n_parts: u64) {
        let mut total = 0_u32;
        for part in 0..n_parts {
            let word = self.bytes.word(self.part(node, part));
            total += word.swap(total, Ordering::Relaxed);
        }
        self.list_count(node, n_parts, total);
        self.set(self.first(node), control::LIST_LEN, total);
    }

    /// The number of a part's first entry.
    pub fn list_offset(&self, node: NodeId, part: u64) -> u32 {
        self.bytes
            .word(self.part(node, part))
            .load(Ordering::Relaxed)
    }

    fn entry(&self, node: NodeId, at: u64) -> (usize, usize) {
        let n_axes = self.tree.shape_axes(node).len();
        let list = self.arenas[self.first(node) as usize].list();
        ((list + at * control::entry_size(n_axes)) as usize, n_axes)
    }

    /// Writes an entry: a cell, and its index along each axis of the node.
    pub fn list_put(
        &self,
        node: NodeId,
        at: u64,
        cell: u64,
        indices: &[i32],
    ) -> Result<(), MemoryError> {
        let (entry, _) = self.entry(node, at);
        self.bytes.write(entry, &cell.to_ne_bytes())?;
        for (k, index) in indices.iter().enumerate() {
            self.bytes.write(entry + 8 + 4 * k, &index.to_ne_bytes())?;
        }
        Ok(())
    }

    /// Entries of the list.
    pub fn list_len(&self, node: NodeId) -> u32 {
        self.get(self.first(node), control::LIST_LEN)
    }

    /// An entry: the cell, and its index along each axis.
    pub fn list_entry(&self, node: NodeId, at: u64) -> Result<(u64, Vec<i32>), MemoryError> {
        let (entry, n_axes) = self.entry(node, at);
        let mut cell = [0; 8];
        self.bytes.read(entry, &mut cell)?;
        let indices = (0..n_axes).map(|k| {
            let mut index = [0; 4];
            self.bytes.read(entry + 8 + 4 * k, &mut index)?;
            Ok(i32::from_ne_bytes(index))
        });
        let indices: Result<Vec<i32>, MemoryError> = indices.collect();
        Ok((u64::from_ne_bytes(cell), indices?))
    }
}
