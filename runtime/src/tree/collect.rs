//! Freed elements become available again. The collection has exclusive access to the tree.

use std::sync::atomic::Ordering;

use aerogel_snode::{NodeId, NodeKind, control};

use super::TreeMemory;
use crate::buffer::MemoryError;
use crate::cpu::Pool;

/// Bytes that a thread zeroes at a time.
const PIECE: u64 = 1 << 20;

impl TreeMemory {
    /// How many of a node's arena elements wait for collection.
    pub fn n_recycled(&self, node: NodeId) -> u64 {
        self.controls(node)
            .map(|c| u64::from(self.get(c, control::N_RECYCLED)))
            .sum()
    }

    /// The control block and the place in its queue of what waits for collection as number `at`.
    fn queue_place(&self, node: NodeId, mut at: u64) -> Option<(u32, u32)> {
        for control in self.controls(node) {
            let n = u64::from(self.get(control, control::N_RECYCLED));
            if at < n {
                return Some((control, at as u32));
            }
            at -= n;
        }
        None
    }

    fn recycled_element(&self, control: u32, at: u32) -> u32 {
        let place = self.arenas[control as usize].recycled_at(at);
        self.bytes.word(place).load(Ordering::Relaxed)
    }

    /// The cell of a pointer node that waits for collection at a place in the queue; none beyond it.
    pub fn recycled(&self, node: NodeId, at: u64) -> Option<u64> {
        let (control, at) = self.queue_place(node, at)?;
        Some(self.arenas[control as usize].element_at(self.recycled_element(control, at)))
    }

    /// Zeroes the arena element that waits for collection at a place in the queue. Of a hash node,
    /// tables in which nothing is left wait for collection then.
    pub fn wipe(&self, node: NodeId, at: u64) -> Result<(), MemoryError> {
        let Some((control, at)) = self.queue_place(node, at) else {
            return Ok(());
        };
        let element = self.recycled_element(control, at);
        self.prune(node, element);
        let arena = &self.arenas[control as usize];
        let (start, size) = (arena.element_at(element), arena.element_size);
        self.bytes.zero(start as usize, size as usize)?;
        let (n_free, _) = self.left_free(control);
        let place = arena.free_at(n_free + at);
        self.bytes.word(place).store(element, Ordering::Relaxed);
        Ok(())
    }

    /// How many elements of the free list are left, and how many were taken beyond it.
    pub(super) fn left_free(&self, control: u32) -> (u32, u32) {
        let taken = self.get(control, control::TAKEN);
        let n_free = self.get(control, control::N_FREE);
        let used = taken.min(n_free);
        (n_free - used, taken - used)
    }

    /// Elements that have been in use, the ambient one included.
    pub(super) fn high_water(&self, control: u32) -> u32 {
        let (_, fresh) = self.left_free(control);
        let bump = self.get(control, control::BUMP).saturating_add(fresh);
        bump.min(self.get(control, control::LIMIT))
    }

    /// Elements of an arena that are in use.
    pub(super) fn active_elements(&self, control: u32) -> u64 {
        let (n_free, _) = self.left_free(control);
        let idle = 1 + n_free + self.get(control, control::N_RECYCLED);
        u64::from(self.high_water(control).saturating_sub(idle))
    }

    /// Makes the elements that waited for collection free.
    pub fn collect(&self, node: NodeId) {
        for control in self.controls(node) {
            self.collect_arena(control);
        }
        self.collect_tables(node);
    }

    pub(super) fn collect_arena(&self, control: u32) {
        let (n_free, _) = self.left_free(control);
        let n_recycled = self.get(control, control::N_RECYCLED);
        self.set(control, control::BUMP, self.high_water(control));
        self.set(control, control::N_FREE, n_free + n_recycled);
        self.set(control, control::TAKEN, 0);
        self.set(control, control::N_RECYCLED, 0);
    }

    /// Gives back all that lies below a cell that was made inactive.
    pub fn release_below(&self, node: NodeId, cell: u64) -> Result<(), MemoryError> {
        for &child in &self.tree[node].children {
            if !self.holds_sparse(child) {
                continue;
            }
            let data = &self.tree[child];
            let container = cell + data.offset_in_cell;
            match data.kind {
                NodeKind::Pointer => {
                    for index in 0..data.n_cells {
                        self.release(child, container, index)?;
                    }
                }
                NodeKind::Hash => {
                    let mut index = self.next_active(child, container, 0);
                    while index != i64::MAX {
                        self.release(child, container, index as u64)?;
                        index = self.next_active(child, container, index + 1);
                    }
                }
                NodeKind::Dynamic { .. } => self.release_all(child, container),
                NodeKind::Bitmasked => {
                    for index in 0..data.n_cells {
                        if self.cell_is_active(child, container, index) {
                            self.release_below(child, self.lookup(child, container, index))?;
                            self.release(child, container, index)?;
                        }
                    }
                }
                _ => {
                    for index in 0..data.n_cells {
                        self.release_below(child, self.lookup(child, container, index))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes the cell of a node at indices inactive, with all below it; what lay in arenas waits for
    /// collection. A dynamic node loses all cells of a container; the indices are those of the cell
    /// that holds it. Nothing happens to nodes that are not sparse.
    pub fn deactivate(&self, node: NodeId, indices: &[i64]) -> Result<(), MemoryError> {
        match self.tree[node].kind {
            NodeKind::Dynamic { .. } => {
                if let Some(container) = self.container(node, indices) {
                    self.release_all(node, container);
                }
            }
            NodeKind::Pointer | NodeKind::Hash | NodeKind::Bitmasked => {
                if let Some((container, index)) = self.container_of(node, indices) {
                    if self.tree[node].n_arenas() == 0 {
                        self.release_below(node, self.lookup(node, container, index))?;
                    }
                    self.release(node, container, index)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn holds_sparse(&self, node: NodeId) -> bool {
        let mut below = self.tree.subtree(node).into_iter();
        below.any(|n| self.tree[n].kind.is_sparse())
    }

    /// Collects all that waits, with what lies below it.
    pub fn collect_all(&self) -> Result<(), MemoryError> {
        // Parents come before children, whose queues they fill.
        for (node, data) in self.tree.nodes() {
            let n = self.n_recycled(node);
            let deep = data.children.iter().any(|&c| self.holds_sparse(c));
            for at in 0..n {
                // Nothing sparse lies below a dynamic node.
                if let Some(cell) = self.recycled(node, at).filter(|_| deep) {
                    self.release_below(node, cell)?;
                }
                self.wipe(node, at)?;
            }
            // Losers of races have given back tables too.
            self.collect(node);
        }
        Ok(())
    }

    /// Brings the counters in order after a launch that ended early: elements that were taken when
    /// there was no memory for them are forgotten, and what was given back is collected.
    pub(super) fn settle(&self) {
        let mut abandoned = self.abandoned();
        for control in 0..self.arenas.len() as u32 {
            let (n_free, _) = self.left_free(control);
            self.set(control, control::BUMP, self.high_water(control));
            self.set(control, control::N_FREE, n_free);
            self.set(control, control::TAKEN, 0);
            // What ended the launch may have ended the making of a list.
            self.set(control, control::STAMP, 0);
        }
        for (control, element) in abandoned.drain(..) {
            // The arena has grown since: the element exists, but is unused.
            if element < self.get(control, control::BUMP) {
                self.recycle(control, element);
            }
        }
        self.unsettled.store(false, Ordering::Relaxed);
        drop(abandoned);
        self.collect_all()
            .expect("all that is in use lies inside the tree");
    }

    /// Makes all cells of a node inactive, with all below them, which becomes zero. Of a node that
    /// is not sparse: those of the sparse nodes below it. No launch may run meanwhile; it waits.
    pub fn deactivate_all(&self, node: NodeId, pool: &Pool) -> Result<(), MemoryError> {
        let _turn = self.alone();
        self.come_home()?;
        self.settle();
        let below = self.tree.subtree(node);
        for &sparse in below.iter().filter(|&&n| self.tree[n].kind.is_sparse()) {
            // Those further down lie in what is zeroed anyway.
            let chain = self.tree.sparse_chain(sparse);
            let covered = |above: &NodeId| *above != sparse && below.contains(above);
            if !chain.iter().any(covered) {
                self.zero_containers(sparse, pool)?;
            }
        }
        for &sparse in below.iter().filter(|&&n| self.tree[n].kind.is_sparse()) {
            for control in self.controls(sparse).chain(self.tables(sparse)) {
                let arena = &self.arenas[control as usize];
                let end = arena.element_at(self.high_water(control));
                let start = arena.element_at(1);
                if arena.element_size >= control::LARGE_ELEMENT {
                    let bytes = end.saturating_sub(start);
                    self.bytes.zero(start as usize, bytes as usize)?;
                } else {
                    self.in_pieces(pool, end.saturating_sub(start), |at, n| {
                        self.bytes.fill((start + at) as usize, n as usize, &[0])
                    })?;
                }
                if let Some(first) = arena.owner_at(0) {
                    let behind = arena.owner_at(self.high_water(control));
                    let bytes = behind.map_or(0, |behind| behind - first);
                    self.bytes.zero(first as usize, bytes as usize)?;
                }
                self.set(control, control::TAKEN, 0);
                self.set(control, control::N_FREE, 0);
                self.set(control, control::BUMP, 1);
                self.set(control, control::N_RECYCLED, 0);
            }
            self.note_change(sparse);
        }
        Ok(())
    }

    /// Zeroes all containers of a node, wherever they lie.
    fn zero_containers(&self, node: NodeId, pool: &Pool) -> Result<(), MemoryError> {
        for spread in self.containers(node) {
            let n: u64 = spread.loops.iter().map(|l| l.0).product();
            if spread.bytes >= PIECE {
                // One range after the other, each divided.
                for k in 0..n {
                    let start = spread.place(k);
                    self.in_pieces(pool, spread.bytes, |at, n| {
                        self.bytes.clear((start + at) as usize, n as usize)
                    })?;
                }
                continue;
            }
            let group = (PIECE / spread.bytes.max(1)).max(1);
            self.parallel(pool, n.div_ceil(group), |k| {
                let from = k * group;
                (from..n.min(from + group)).try_for_each(|at| {
                    let start = spread.place(at) as usize;
                    self.bytes.clear(start, spread.bytes as usize)
                })
            })?;
        }
        Ok(())
    }

    /// Where the containers of a node lie.
    fn containers(&self, node: NodeId) -> Vec<Spread> {
        let mut spread = Spread {
            base: self.tree[node].offset_in_cell,
            loops: Vec::new(),
            bytes: self.tree[node].container_size(),
        };
        let mut at = node;
        while let Some(parent) = self.tree[at].parent {
            let data = &self.tree[parent];
            let whole = spread.bytes == self.tree[at].container_size();
            if data.children.len() == 1 && spread.loops.is_empty() && whole {
                // The cell is nothing but this container and padding.
                spread.bytes = data.cell_size;
            }
            if data.n_arenas() > 0 {
                let of_arena = |(k, control): (usize, u32)| {
                    let used = u64::from(self.high_water(control).saturating_sub(1));
                    let mut spread = spread.clone();
                    spread.base += self.arenas[control as usize].element_at(1);
                    spread.repeat(used * data.chunk_cells(k as u64), data.cell_size);
                    spread
                };
                return self.controls(parent).enumerate().map(of_arena).collect();
            }
            spread.repeat(data.n_cells, data.cell_size);
            spread.base += data.offset_in_cell;
            at = parent;
        }
        vec![spread]
    }

    /// Calls `work(start, bytes)` for pieces of `bytes` bytes.
    fn in_pieces(
        &self,
        pool: &Pool,
        bytes: u64,
        work: impl Fn(u64, u64) -> Result<(), MemoryError> + Sync,
    ) -> Result<(), MemoryError> {
        self.parallel(pool, bytes.div_ceil(PIECE), |k| {
            let at = k * PIECE;
            work(at, PIECE.min(bytes - at))
        })
    }

    pub(super) fn parallel(
        &self,
        pool: &Pool,
        n: u64,
        work: impl Fn(u64) -> Result<(), MemoryError> + Sync,
    ) -> Result<(), MemoryError> {
        let outcome = std::sync::Mutex::new(Ok(()));
        pool.run(n as usize, pool.n_threads(), &|k| {
            if let Err(failure) = work(k as u64) {
                *outcome.lock().unwrap_or_else(|e| e.into_inner()) = Err(failure);
            }
        });
        outcome.into_inner().unwrap_or_else(|e| e.into_inner())
    }
}

/// Ranges of some bytes: those that nested loops (how many, bytes apart) lead to from a base.
#[derive(Clone, Debug)]
struct Spread {
    base: u64,
    loops: Vec<(u64, u64)>,
    bytes: u64,
}

impl Spread {
    /// Puts a loop around it; ranges side by side become one.
    fn repeat(&mut self, n: u64, stride: u64) {
        if self.bytes == stride && self.loops.is_empty() {
            self.bytes *= n;
        } else if n != 1 {
            self.loops.insert(0, (n, stride));
        }
    }

    /// Where the `k`-th range begins, the last loop innermost.
    fn place(&self, mut k: u64) -> u64 {
        let mut at = self.base;
        for &(n, stride) in self.loops.iter().rev() {
            at += k % n * stride;
            k /= n;
        }
        at
    }
}
