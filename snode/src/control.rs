//! The memory format of sparse nodes besides their containers: control blocks, arenas, lists.
//!
//! A tree's memory is one range of addresses, and everything in it is named by its offset from the
//! start:
//!
//! ```text
//! root's cell | control blocks | arenas, free lists, lists of cells: each a range of its own
//! ```
//! The ranges are reserved for the most that could ever be needed and take physical memory when
//! touched, so an arena grows without moving, and an element is found by a multiplication.
//!
//! Elements of an arena are numbered. 0 is the ambient one, which is never written. Since the last
//! collection, `TAKEN` elements have been taken: first those on the free list, from its end, then
//! fresh ones from `BUMP` on:
//!
//! ```text
//! k = fetch_add(TAKEN, 1)
//! element = if k < N_FREE { free[N_FREE - 1 - k] } else { BUMP + (k - N_FREE) }
//! ```
//! Freed elements are gathered in the list of recycled ones; a collection, which runs alone,
//! zeroes them, moves them to the free list and restarts the count.

/// Bytes of a control block: two cache lines, the first of which never changes.
pub const SIZE: u64 = 128;

/// From this size on what was given back takes no physical memory: zeroing it would touch it all.
pub const LARGE_ELEMENT: u64 = 2 << 20;

/// `u64`: offset of element 0 of the arena from the tree's start.
pub const ELEMENTS: u64 = 0;
/// `u64`: offset of the free list, an array of `u32` element numbers.
pub const FREE: u64 = 8;
/// `u64`: offset of the list of recycled elements, an array of `u32`.
pub const RECYCLED: u64 = 16;
/// `u64`: offset of the list of active cells: entries of [`entry_size`] bytes.
pub const LIST: u64 = 24;
/// `u64`: offset of the array of `u32` in which parts of the list are counted.
pub const PARTS: u64 = 32;

/// `u64`: offset of the list of owners, for hash nodes: for each element the offset (`u64`) of the slot
/// that holds its number, plus 1; 0 if none does.
pub const OWNERS: u64 = 40;

/// `u32`: elements taken since the last collection.
pub const TAKEN: u64 = 64;
/// `u32`: length of the free list at the last collection.
pub const N_FREE: u64 = 68;
/// `u32`: the first element that had never been used at the last collection.
pub const BUMP: u64 = 72;
/// `u32`: elements below this may be used; beyond it, memory must be requested from the host.
pub const LIMIT: u64 = 76;
/// `u32`: length of the list of recycled elements.
pub const N_RECYCLED: u64 = 80;
/// `u32`: not zero if a cell became active or inactive since `EPOCH` was last counted up.
pub const CHANGED: u64 = 84;
/// `u32`: how often the node's topology has been seen to have changed.
pub const EPOCH: u64 = 88;
/// `u32`: length of the list of active cells.
pub const LIST_LEN: u64 = 92;
/// `u32`: the sum of the epochs of the sparse nodes from the root to here when the list was made.
pub const STAMP: u64 = 96;

/// Cells of a pointer container that one part of a list spans at least: there is room for so many
/// parts.
pub const LEAST_LIST_PART: u64 = 4;

/// Bytes of an entry of a list: the cell's offset from the tree's start (`u64`), and for each axis of
/// the node the index at which the cell begins, as `i32`.
pub fn entry_size(n_axes: usize) -> u64 {
    (8 + 4 * n_axes as u64).next_multiple_of(8)
}
