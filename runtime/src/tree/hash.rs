//! The tables of hash nodes: a radix tree over the bits of a cell's number.
//!
//! ```text
//! container: number of a table    table: 16 numbers of tables    ...    table: 16 numbers of cells
//! ```
//! Table 0 is the ambient one, which is zero and never written, so that looking needs no branch. The
//! numbers of a node's tables and cells are made and given back like those of a pointer node's cells.

use std::sync::atomic::{AtomicU64, Ordering};

use aerogel_snode::{NodeId, NodeKind, TABLE_BITS, TABLE_SLOTS, WORD, control};

use super::TreeMemory;
use super::cells::AMBIENT;
use crate::buffer::MemoryError;

impl TreeMemory {
    /// The control block of a hash node's tables.
    pub(super) fn tables(&self, node: NodeId) -> Option<u32> {
        let data = &self.tree[node];
        (data.kind == NodeKind::Hash).then_some(data.first_control + 1)
    }

    fn table_slot(&self, node: NodeId, table: u32, digit: u64) -> u64 {
        let tables = self.tree[node].first_control + 1;
        self.arenas[tables as usize].element_at(table) + digit * WORD
    }

    /// The slot of a cell, in an ambient table if there is none.
    pub(super) fn find_slot(&self, node: NodeId, container: u64, index: u64) -> u64 {
        let digits = self.tree[node].digits(index);
        digits.fold(container, |slot, digit| {
            self.table_slot(node, self.load(slot), digit)
        })
    }

    /// The slot of a cell; creates missing tables of its path.
    pub(super) fn make_slot(
        &self,
        node: NodeId,
        container: u64,
        index: u64,
    ) -> Result<u64, MemoryError> {
        let tables = self.tree[node].first_control + 1;
        let mut slot = container;
        for digit in self.tree[node].digits(index) {
            let (table, _) = self.fill_slot(slot, tables)?;
            slot = self.table_slot(node, table, digit);
        }
        Ok(slot)
    }

    /// Notes which slot holds the number of an element, if the arena is a hash node's. Owners are counted
    /// from 1.
    pub(super) fn note_owner(&self, control: u32, element: u32, slot: u64) {
        if let Some(owner) = self.arenas[control as usize].owner_at(element) {
            self.bytes
                .long_word(owner)
                .store(slot + 1, Ordering::Relaxed);
        }
    }

    /// The first active cell of a hash container at or after an index; `i64::MAX` if there is none.
    pub fn next_active(&self, node: NodeId, container: u64, index: i64) -> i64 {
        let data = &self.tree[node];
        let top = TABLE_BITS * data.n_digits();
        let mut key = index.max(0) as u64;
        // A slot at `shift` stands for the cells whose numbers differ in so many bits only.
        let (mut slot, mut shift) = (container, top);
        while key < data.n_cells {
            let number = self.load(slot);
            if number == AMBIENT {
                if shift == top {
                    break;
                }
                key = ((key >> shift) + 1) << shift;
                if key >> shift & (TABLE_SLOTS - 1) == 0 {
                    (slot, shift) = (container, top);
                } else {
                    slot += WORD;
                }
            } else if shift == 0 {
                return key as i64;
            } else {
                shift -= TABLE_BITS;
                let digit = key >> shift & (TABLE_SLOTS - 1);
                slot = self.table_slot(node, number, digit);
            }
        }
        i64::MAX
    }

    /// A number of a cell behind which no cell of a hash container is active; 0 if none is.
    pub fn active_end(&self, node: NodeId, container: u64) -> i64 {
        let data = &self.tree[node];
        let mut number = self.load(container);
        if number == AMBIENT {
            return 0;
        }
        let mut last = 0;
        for _ in 0..data.n_digits() {
            let slots = (0..TABLE_SLOTS).rev();
            let mut used = slots.map(|d| (d, self.load(self.table_slot(node, number, d))));
            // Below an empty table, and what is not known lies at the end.
            let found = used.find(|&(_, number)| number != AMBIENT);
            let (digit, below) = found.unwrap_or((TABLE_SLOTS - 1, AMBIENT));
            last = last << TABLE_BITS | digit;
            number = below;
        }
        last.saturating_add(1).min(data.n_cells) as i64
    }

    /// Gives back the tables that nothing is in any more since the cell with a number was given back.
    /// Runs between loops.
    pub(super) fn prune(&self, node: NodeId, element: u32) {
        let Some(tables) = self.tables(node) else {
            return;
        };
        let cells = &self.arenas[self.tree[node].first_control as usize];
        let arena = &self.arenas[tables as usize];
        let owner = |place: Option<u64>| place.map(|at| self.bytes.long_word(at));
        let leave = |o: &AtomicU64| o.swap(0, Ordering::Relaxed);
        // It may be taken again by who loses the race for a slot, and then has no owner.
        let mut above = owner(cells.owner_at(element)).map_or(0, leave);
        for _ in 0..self.tree[node].n_digits() {
            // A cell that was never put into a slot has no owner.
            let Some(inside) = above.checked_sub(arena.element_at(0) + 1) else {
                return;
            };
            let table = (inside / arena.element_size) as u32;
            let used = |digit| self.load(self.table_slot(node, table, digit)) != AMBIENT;
            if (0..TABLE_SLOTS).any(used) {
                return;
            }
            // Of those that find it empty one gives it back.
            above = owner(arena.owner_at(table)).map_or(0, leave);
            let Some(slot) = above.checked_sub(1) else {
                return;
            };
            let word = self.bytes.word(slot);
            let _ = word.compare_exchange(table, AMBIENT, Ordering::Relaxed, Ordering::Relaxed);
            self.recycle(tables, table);
        }
    }

    /// Makes the tables that were given back free: they are zero already.
    pub(super) fn collect_tables(&self, node: NodeId) {
        let Some(tables) = self.tables(node) else {
            return;
        };
        let arena = &self.arenas[tables as usize];
        let (n_free, _) = self.left_free(tables);
        for at in 0..self.get(tables, control::N_RECYCLED) {
            let table = self.load(arena.recycled_at(at));
            let place = self.bytes.word(arena.free_at(n_free + at));
            place.store(table, Ordering::Relaxed);
        }
        self.collect_arena(tables);
    }
}

#[cfg(test)]
mod tests;
