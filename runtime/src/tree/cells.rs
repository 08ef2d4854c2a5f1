//! Finding, creating and freeing cells.

use std::convert::Infallible;
use std::sync::atomic::Ordering;

use aerogel_snode::{MASK_BITS, NodeId, NodeKind, Tree, WORD, control};

use super::TreeMemory;
use crate::buffer::MemoryError;

/// Element number of the ambient cell.
pub(super) const AMBIENT: u32 = 0;

/// Which chunk of a dynamic container holds a cell, and the first cell of that chunk.
fn chunk_of(chunk: u32, index: u64) -> (u64, u64) {
    let chunk = u64::from(chunk);
    let k = u64::from((index / chunk + 1).ilog2());
    (k, chunk * ((1 << k) - 1))
}

impl TreeMemory {
    /// Where a cell of a pointer or dynamic container names its element: the word's offset, the
    /// arena's control block, and the cell's offset in the element.
    fn slot(&self, node: NodeId, container: u64, index: u64) -> (u64, u32, u64) {
        let data = &self.tree[node];
        debug_assert!(index < data.n_cells, "the caller checks indices");
        match data.kind {
            NodeKind::Dynamic { chunk } => {
                let (k, first) = chunk_of(chunk, index);
                let inside = (index - first) * data.cell_size;
                (
                    container + WORD * (1 + k),
                    data.first_control + k as u32,
                    inside,
                )
            }
            NodeKind::Hash => {
                let slot = self.find_slot(node, container, index);
                (slot, data.first_control, 0)
            }
            _ => (container + WORD * index, data.first_control, 0),
        }
    }

    pub(super) fn load(&self, word: u64) -> u32 {
        self.bytes.read_word(word)
    }

    fn element_at(&self, control: u32, element: u32) -> u64 {
        self.arenas[control as usize].element_at(element)
    }

    /// A cell of any container: the ambient one, which is zero, if it is inactive.
    pub fn find(&self, node: NodeId, container: u64, index: u64) -> u64 {
        if self.tree[node].n_arenas() == 0 {
            return self.lookup(node, container, index);
        }
        let (slot, control, inside) = self.slot(node, container, index);
        self.element_at(control, self.load(slot)) + inside
    }

    /// The cell of a pointer or hash node that stands for all that are inactive.
    pub fn ambient(&self, node: NodeId) -> u64 {
        self.element_at(self.tree[node].first_control, 0)
    }

    /// A cell of a container that holds its cells itself; an inactive one is zero.
    pub fn lookup(&self, node: NodeId, container: u64, index: u64) -> u64 {
        container + index * self.tree[node].cell_size
    }

    /// The word of the mask that has the bit of a cell, and the bit.
    fn mask(&self, node: NodeId, container: u64, index: u64) -> (u64, u32) {
        let word = container + self.tree[node].mask_offset() + WORD * (index / MASK_BITS);
        (word, 1 << (index % MASK_BITS))
    }

    pub(super) fn note_change(&self, node: NodeId) {
        let changed = self.word(self.tree[node].first_control, control::CHANGED);
        if changed.load(Ordering::Relaxed) == 0 {
            changed.store(1, Ordering::Relaxed);
        }
    }

    pub(super) fn take(&self, control: u32) -> Result<u32, MemoryError> {
        let n = self
            .word(control, control::TAKEN)
            .fetch_add(1, Ordering::Relaxed);
        let n_free = self.get(control, control::N_FREE);
        let arena = &self.arenas[control as usize];
        if n < n_free {
            return Ok(self.load(arena.free_at(n_free - 1 - n)));
        }
        let element = self.get(control, control::BUMP).wrapping_add(n - n_free);
        if element < self.get(control, control::LIMIT) || self.grow(control, element) {
            return Ok(element);
        }
        Err(MemoryError::NoCell { node: arena.node })
    }

    pub(super) fn recycle(&self, control: u32, element: u32) {
        let at = self
            .word(control, control::N_RECYCLED)
            .fetch_add(1, Ordering::Relaxed);
        let place = self.arenas[control as usize].recycled_at(at);
        self.bytes.word(place).store(element, Ordering::Relaxed);
    }

    /// The element that a slot names, made if there is none, and whether it was.
    pub(super) fn fill_slot(&self, slot: u64, control: u32) -> Result<(u32, bool), MemoryError> {
        let there = self.load(slot);
        if there != AMBIENT {
            return Ok((there, false));
        }
        let element = self.take(control)?;
        let word = self.bytes.word(slot);
        match word.compare_exchange(AMBIENT, element, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                self.note_owner(control, element, slot);
                Ok((element, true))
            }
            Err(winner) => {
                self.recycle(control, element);
                Ok((winner, false))
            }
        }
    }

    /// A cell of any container, made active if it was not.
    pub fn obtain(&self, node: NodeId, container: u64, index: u64) -> Result<u64, MemoryError> {
        let kind = self.tree[node].kind;
        match kind {
            NodeKind::Bitmasked => {
                let (word, bit) = self.mask(node, container, index);
                let mask = self.bytes.word(word);
                if mask.load(Ordering::Relaxed) & bit == 0
                    && mask.fetch_or(bit, Ordering::Relaxed) & bit == 0
                {
                    self.note_change(node);
                }
                Ok(self.lookup(node, container, index))
            }
            NodeKind::Pointer | NodeKind::Hash | NodeKind::Dynamic { .. } => {
                let (mut slot, control, inside) = self.slot(node, container, index);
                if kind == NodeKind::Hash && self.load(slot) == AMBIENT {
                    slot = self.make_slot(node, container, index)?;
                }
                let (element, mut changed) = self.fill_slot(slot, control)?;
                if matches!(kind, NodeKind::Dynamic { .. }) {
                    let length = self.bytes.word(container);
                    let wanted = index as u32 + 1;
                    changed = length.load(Ordering::Relaxed) < wanted && {
                        // What is active has memory.
                        for before in self.tree[node].first_control..control {
                            let k = u64::from(before - self.tree[node].first_control);
                            self.fill_slot(container + WORD * (1 + k), before)?;
                        }
                        length.fetch_max(wanted, Ordering::Relaxed) < wanted
                    };
                }
                if changed {
                    self.note_change(node);
                }
                Ok(self.element_at(control, element) + inside)
            }
            _ => Ok(self.lookup(node, container, index)),
        }
    }

    /// Whether a cell of a container is active; those of nodes that are not sparse always are.
    pub fn cell_is_active(&self, node: NodeId, container: u64, index: u64) -> bool {
        match self.tree[node].kind {
            NodeKind::Bitmasked => {
                let (word, bit) = self.mask(node, container, index);
                self.load(word) & bit != 0
            }
            NodeKind::Pointer | NodeKind::Hash => {
                self.load(self.slot(node, container, index).0) != AMBIENT
            }
            NodeKind::Dynamic { .. } => (index as i64) < self.container_length(node, container),
            _ => true,
        }
    }

    /// A word of a bitmasked container's mask: bit `k` of word `w` is cell `32 w + k`.
    pub fn mask_word(&self, node: NodeId, container: u64, word: u64) -> u32 {
        self.load(self.mask(node, container, word * MASK_BITS).0)
    }

    /// Makes a cell of a pointer, hash or bitmasked container inactive. A bitmasked one becomes zero, and
    /// must hold nothing that is sparse and active; others wait for collection.
    pub fn release(&self, node: NodeId, container: u64, index: u64) -> Result<(), MemoryError> {
        let data = &self.tree[node];
        if data.kind == NodeKind::Bitmasked {
            let (word, bit) = self.mask(node, container, index);
            if self.load(word) & bit == 0 {
                return Ok(());
            }
            let cell = self.lookup(node, container, index);
            self.bytes.zero(cell as usize, data.cell_size as usize)?;
            let mask = self.bytes.word(word);
            if mask.fetch_and(!bit, Ordering::Relaxed) & bit != 0 {
                self.note_change(node);
            }
        } else if data.kind.has_list() {
            let (slot, control, _) = self.slot(node, container, index);
            self.empty_slot(node, slot, control);
        }
        Ok(())
    }

    fn empty_slot(&self, node: NodeId, slot: u64, control: u32) {
        if self.load(slot) == AMBIENT {
            return;
        }
        let element = self.bytes.word(slot).swap(AMBIENT, Ordering::Relaxed);
        if element != AMBIENT {
            self.recycle(control, element);
            self.note_change(node);
        }
    }

    /// Makes a dynamic container empty; its chunks wait for collection.
    pub fn release_all(&self, node: NodeId, container: u64) {
        let length = self.bytes.word(container);
        if length.load(Ordering::Relaxed) != 0 && length.swap(0, Ordering::Relaxed) != 0 {
            self.note_change(node);
        }
        for (k, control) in self.controls(node).enumerate() {
            self.empty_slot(node, container + WORD * (1 + k as u64), control);
        }
    }

    /// Makes one more cell of a dynamic container active: its number, or -1 if the container is full.
    pub fn extend(&self, node: NodeId, container: u64) -> Result<i64, MemoryError> {
        let length = self.bytes.word(container);
        let index = u64::from(length.fetch_add(1, Ordering::Relaxed));
        let n_cells = self.tree[node].n_cells;
        if index >= n_cells {
            // Not one less: others may have emptied it meanwhile.
            length.fetch_min(n_cells as u32, Ordering::Relaxed);
            return Ok(-1);
        }
        let (slot, control, _) = self.slot(node, container, index);
        if let Err(failure) = self.fill_slot(slot, control) {
            length.fetch_min(index as u32, Ordering::Relaxed);
            return Err(failure);
        }
        self.note_change(node);
        Ok(index as i64)
    }

    /// How many cells of a dynamic container are active.
    pub fn container_length(&self, node: NodeId, container: u64) -> i64 {
        // Threads that find it full count it too far for a moment.
        u64::from(self.load(container)).min(self.tree[node].n_cells) as i64
    }

    /// The container and the number of the cell of `node` that indices lead to, step by step from the
    /// root. The indices are along the node's axes, without any field's offset, and inside its shape.
    fn descend<E>(
        &self,
        node: NodeId,
        indices: &[i64],
        mut step: impl FnMut(NodeId, u64, u64) -> Result<u64, E>,
    ) -> Result<(u64, u64), E> {
        let mut cell = 0;
        let mut last = (0, 0);
        for level in &self.path(node).levels {
            if level.node != Tree::ROOT {
                let above = self.tree[level.node].parent.unwrap_or(Tree::ROOT);
                cell = step(above, last.0, last.1)?;
            }
            let container = cell + self.tree[level.node].offset_in_cell;
            last = (container, level.linear(indices));
        }
        Ok(last)
    }

    /// As `descend`; nothing if a cell of the path is inactive.
    pub(super) fn container_of(&self, node: NodeId, indices: &[i64]) -> Option<(u64, u64)> {
        let step = |node, container, index| self.active_cell(node, container, index).ok_or(());
        self.descend(node, indices, step).ok()
    }

    fn active_cell(&self, node: NodeId, container: u64, index: u64) -> Option<u64> {
        let active = self.cell_is_active(node, container, index);
        active.then(|| self.find(node, container, index))
    }

    /// The cell of a node that indices lead to; the ambient one, which is zero, if it is inactive.
    pub fn find_cell(&self, node: NodeId, indices: &[i64]) -> u64 {
        let step = |node, container, index| Ok::<_, Infallible>(self.find(node, container, index));
        let Ok((container, index)) = self.descend(node, indices, step);
        self.find(node, container, index)
    }

    /// Where an element of a place (or a cell of any node) lies, for a quantised place its word; nowhere if it is inactive.
    pub fn element(&self, node: NodeId, indices: &[i64]) -> Option<u64> {
        let (container, index) = self.container_of(node, indices)?;
        self.active_cell(node, container, index)
    }

    /// As `element`, where a device may have the tree.
    pub fn find_element(&self, node: NodeId, indices: &[i64]) -> Result<Option<u64>, MemoryError> {
        let found = self.element(node, indices);
        self.bytes.expect_home().map(|()| found)
    }

    /// Where an element of a place (or a cell of any node) lies, made active if it was not.
    pub fn obtain_element(&self, node: NodeId, indices: &[i64]) -> Result<u64, MemoryError> {
        let step = |node, container, index| self.obtain(node, container, index);
        let (container, index) = self.descend(node, indices, step)?;
        let found = self.obtain(node, container, index)?;
        self.bytes.expect_home().map(|()| found)
    }

    /// The container of `node` in the cell that indices along its parent's axes lead to; none if
    /// that cell is inactive.
    pub fn container(&self, node: NodeId, indices: &[i64]) -> Option<u64> {
        let parent = self.tree[node].parent.unwrap_or(Tree::ROOT);
        Some(self.element(parent, indices)? + self.tree[node].offset_in_cell)
    }

    /// As `container`, with the cell made active if it was not.
    pub fn obtain_container(&self, node: NodeId, indices: &[i64]) -> Result<u64, MemoryError> {
        let parent = self.tree[node].parent.unwrap_or(Tree::ROOT);
        Ok(self.obtain_element(parent, indices)? + self.tree[node].offset_in_cell)
    }
}

#[cfg(test)]
mod tests {
    use super::chunk_of;

    #[test]
    fn chunks_double() {
        let of = |i| chunk_of(4, i);
        assert_eq!((of(0), of(3), of(4)), ((0, 0), (0, 0), (1, 4)));
        assert_eq!((of(11), of(12), of(27)), ((1, 4), (2, 12), (2, 12)));
    }
}
