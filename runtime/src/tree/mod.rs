//! The memory of an SNode tree, and what the host does with the cells of its sparse nodes.
//!
//! `snode/src/control.rs` has the format. Generated code follows it too, so everything here works
//! while kernels and other threads make and find cells, but for what says that it runs alone.

mod active;
mod cells;
mod collect;
mod component;
mod exchange;
mod extents;
mod halo;
mod hash;
mod lists;
mod ranges;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use aerogel_base::{Scalar, ScalarType};
use aerogel_snode::{NodeId, Path, Tree, control};

use self::ranges::{Arena, Ranges};
use crate::buffer::{Buffer, MemoryError, injected_failure};
use crate::code::Atomics;
use crate::residence::Access;

pub use self::component::Component;
pub use self::exchange::{ActiveCells, Elements};
pub use self::walk::{NodeStats, Visit};

/// The most that a tree's arenas grow by at once, beyond what is needed: it may stay unused.
const MAX_STEP: u64 = 64 << 20;
/// The least that they grow by.
const MIN_STEP: u64 = 256 << 10;
/// Steps from this size on lie on huge pages.
const HUGE_STEP: u64 = 2 << 20;

/// A tree that has been laid out, and its memory.
#[derive(Debug)]
pub struct TreeMemory {
    tree: Arc<Tree>,
    bytes: Buffer,
    /// The arena that each control block speaks of; a bitmasked node's has no elements.
    arenas: Vec<Arena>,
    /// The way to each node, by its number.
    paths: Vec<Path>,
    /// Held to write by launches on a sparse tree, and to read by single accesses from outside.
    turn: RwLock<()>,
    /// Held by launches that change places of a tree without sparse nodes atomically.
    sums: Mutex<()>,
    /// Elements that were taken when there was no memory for them: control block and number.
    abandoned: Mutex<Vec<(u32, u32)>>,
    unsettled: AtomicBool,
}

/// The sole use of some trees, as a kernel needs it: it collects cells and makes lists.
pub struct Turn<'a> {
    sparse: Vec<(&'a TreeMemory, RwLockWriteGuard<'a, ()>)>,
    /// Targets of sums: trees without sparse nodes, and arrays.
    _summed: Vec<MutexGuard<'a, ()>>,
}

/// Held by launches that change elements of arrays atomically: two arrays may be one memory.
static ARRAYS: Mutex<()> = Mutex::new(());

impl<'a> Turn<'a> {
    /// Waits for other launches on the sparse ones among `trees`. Trees without sparse nodes take no
    /// turns.
    pub fn take(trees: &[&'a TreeMemory]) -> Self {
        let mut sparse: Vec<&TreeMemory> = Vec::new();
        sparse.extend(trees.iter().filter(|t| t.is_sparse()));
        // The same order everywhere, so that no two launches wait for each other.
        sparse.sort_by_key(|tree| std::ptr::from_ref(*tree));
        sparse.dedup_by_key(|tree| std::ptr::from_ref(*tree));
        let turn = Self {
            sparse: sparse.into_iter().map(|t| (t, t.alone())).collect(),
            _summed: Vec::new(),
        };
        for (tree, _) in &turn.sparse {
            if tree.unsettled.load(Ordering::Relaxed) {
                tree.settle();
            }
        }
        turn
    }

    /// As `take`. Waits besides for other launches that change atomically what this one does: the threads of a launch
    /// share out sums among themselves.
    pub fn with_sums(trees: &[&'a TreeMemory], atomics: &Atomics) -> Self {
        let turn = Self::take(trees);
        let changed = trees.iter().zip(&atomics.trees);
        let changed = changed.filter(|&(tree, &changed)| changed && !tree.is_sparse());
        let mut summed: Vec<&'a TreeMemory> = changed.map(|(&tree, _)| tree).collect();
        summed.sort_by_key(|tree| std::ptr::from_ref(*tree));
        summed.dedup_by_key(|tree| std::ptr::from_ref(*tree));
        let locks = summed.into_iter().map(|tree| &tree.sums);
        let locks = locks.chain(atomics.arrays.then_some(&ARRAYS));
        let locked = locks.map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner));
        Self {
            _summed: locked.collect(),
            ..turn
        }
    }

    /// Brings the trees in order after a launch that ended early.
    pub fn settle(&self) {
        self.sparse.iter().for_each(|(tree, _)| tree.settle());
    }
}

impl TreeMemory {
    /// Notes that a launch which has released the tree ended early: the next one repairs the tree.
    pub fn ended_early(&self) {
        self.unsettled.store(true, Ordering::Relaxed);
    }

    /// The zeroed memory of a tree, with at least `margin` more bytes before and after that nobody
    /// should touch. A sparse tree's is a range of addresses with room for all cells it may have.
    pub fn new(tree: Arc<Tree>, margin: usize) -> Result<Self, MemoryError> {
        Self::with_room(tree, margin, u32::MAX - 1)
    }

    /// As `new`, with at most `n_elements` elements in each arena.
    pub fn with_room(tree: Arc<Tree>, margin: usize, n_elements: u32) -> Result<Self, MemoryError> {
        let failure = MemoryError::OutOfMemory { bytes: usize::MAX };
        let fixed = usize::try_from(tree.byte_size()).map_err(|_| failure)?;
        let paths = tree.nodes().map(|(id, _)| tree.path(id)).collect();
        let (bytes, arenas) = if tree.is_sparse() {
            let (bytes, ranges) = Ranges::reserve(&tree, fixed, margin, n_elements)?;
            ranges.write_controls(&tree, &bytes)?;
            (bytes, ranges.arenas)
        } else {
            (Buffer::with_margin(fixed, margin)?, Vec::new())
        };
        let memory = Self {
            tree,
            bytes,
            arenas,
            paths,
            turn: RwLock::new(()),
            sums: Mutex::new(()),
            abandoned: Mutex::new(Vec::new()),
            unsettled: AtomicBool::new(false),
        };
        if memory.is_sparse() {
            let extents = extents::TreeExtents::new(&memory.tree, &memory.arenas);
            memory.bytes.set_extents(Box::new(extents));
        }
        memory.expect_dense_parts();
        Ok(memory)
    }

    /// A tree without sparse nodes is accessed as a whole, like a buffer.
    fn expect_dense_parts(&self) {
        if !self.is_sparse() {
            return;
        }
        for &child in &self.tree[Tree::ROOT].children {
            let mut below = self.tree.subtree(child).into_iter();
            if !below.any(|n| self.tree[n].kind.is_sparse()) {
                let node = &self.tree[child];
                let (at, size) = (node.offset_in_cell, node.container_size());
                self.bytes.expect_use(at as usize, size as usize);
            }
        }
    }

    /// The layout.
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Whether any node is sparse.
    pub fn is_sparse(&self) -> bool {
        !self.arenas.is_empty()
    }

    /// All bytes of the tree, from the root's cell on.
    pub fn bytes(&self) -> &Buffer {
        &self.bytes
    }

    /// The address for generated code; valid as long as the memory lives.
    pub fn address(&self) -> Result<*mut u8, MemoryError> {
        self.bytes.address()
    }

    /// Sees to it that the host has the newest of all cells, as who goes through many of them wants.
    pub fn come_home(&self) -> Result<(), MemoryError> {
        self.bytes.come_home(Access::Change)
    }

    /// Bytes that the root's cell, the control blocks and the cells of sparse nodes hold.
    pub fn live_bytes(&self) -> usize {
        self.bytes.counted()
    }

    /// Reads the scalar at an offset, which is aligned as its type requires.
    pub fn read_scalar(&self, ty: ScalarType, offset: u64) -> Result<Scalar, MemoryError> {
        self.bytes.read_scalar(ty, offset as usize)
    }

    /// Writes the scalar at an offset, which is aligned as its type requires.
    pub fn write_scalar(&self, offset: u64, value: Scalar) -> Result<(), MemoryError> {
        self.bytes.write_scalar(offset as usize, value)
    }

    /// Keeps launches on a sparse tree away while single cells are made from outside; nothing if one
    /// is running.
    pub fn try_share(&self) -> Option<RwLockReadGuard<'_, ()>> {
        match self.turn.try_read() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// As `try_share`, but waits for the launch to end.
    pub fn share(&self) -> RwLockReadGuard<'_, ()> {
        self.turn.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.turn.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn abandoned(&self) -> MutexGuard<'_, Vec<(u32, u32)>> {
        self.abandoned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A word of a control block.
    fn word(&self, control: u32, field: u64) -> &AtomicU32 {
        self.bytes
            .word(self.tree.control_offset(u64::from(control)) + field)
    }

    fn get(&self, control: u32, field: u64) -> u32 {
        self.load(self.tree.control_offset(u64::from(control)) + field)
    }

    fn set(&self, control: u32, field: u64, value: u32) {
        self.word(control, field).store(value, Ordering::Relaxed);
    }

    /// The control blocks of a node's arenas.
    fn controls(&self, node: NodeId) -> std::ops::Range<u32> {
        let data = &self.tree[node];
        data.first_control..data.first_control + data.n_arenas() as u32
    }

    fn path(&self, node: NodeId) -> &Path {
        &self.paths[node.as_u32() as usize]
    }

    /// Makes `element` of a control block's arena usable, if there is memory for it: `HostCalls::grow`.
    pub fn grow(&self, control: u32, element: u32) -> bool {
        let Some(arena) = self.arenas.get(control as usize) else {
            return false;
        };
        let mut abandoned = self.abandoned();
        let limit = self.get(control, control::LIMIT);
        if element < limit {
            return true;
        }
        let needed = u64::from(element) + 1;
        let step = (u64::from(limit) * arena.element_size).clamp(MIN_STEP, MAX_STEP);
        let roomy = (u64::from(limit) + step / arena.held_per_element())
            .max(needed)
            .min(u64::from(arena.n_elements));
        let fits = needed <= u64::from(arena.n_elements) && !injected_failure();
        let bytes = |to: u64| ((to - u64::from(limit)) * arena.held_per_element()) as usize;
        let to = [roomy, needed]
            .into_iter()
            .find(|&to| fits && self.bytes.commit(bytes(to)).is_ok());
        let Some(to) = to else {
            abandoned.push((control, element));
            self.unsettled.store(true, Ordering::Relaxed);
            return false;
        };
        let new = (to - u64::from(limit)) * arena.element_size;
        if new >= HUGE_STEP {
            let at = arena.elements + u64::from(limit) * arena.element_size;
            // The next step begins on the page on which this one ends.
            let end = arena.elements + u64::from(arena.n_elements) * arena.element_size;
            let new = (new + HUGE_STEP).min(end - at);
            self.bytes.expect_use(at as usize, new as usize);
        }
        self.set(control, control::LIMIT, to as u32);
        true
    }
}
