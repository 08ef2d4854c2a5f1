//! Where in a sparse tree's addresses its arenas and lists lie.

use aerogel_snode::{NodeId, NodeKind, TABLE_SIZE, Tree, WORD, control};

use crate::buffer::{Buffer, MemoryError};
use crate::cpu::memory;

/// Elements that an arena has besides those that all cells need: what is given back waits for the
/// end of the loop, so a loop may take more of them than there are cells.
const SLACK: u64 = 1 << 20;
/// Assumed where the system does not say how much memory it has.
const UNKNOWN: u64 = 1 << 40;
/// A tree is not squeezed into less.
const LEAST: u64 = 64 << 20;
const PAGE: u64 = 4096;
const CACHE_LINE: u64 = 64;
/// Bytes of an element's owner.
pub(super) const OWNER: u64 = 8;

/// The arena of a control block.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    pub(super) node: NodeId,
    /// Where element 0 begins.
    pub(super) elements: u64,
    /// Bytes of an element; 0 for a bitmasked node, which has none.
    pub(super) element_size: u64,
    /// How many elements there is room for, the ambient one included.
    pub(super) n_elements: u32,
    free: u64,
    recycled: u64,
    /// Where the owners of a hash node's elements are.
    owners: Option<u64>,
    list: u64,
    parts: u64,
    /// How many bytes there are for the list and the counts of its parts.
    pub(super) list_bytes: u64,
    pub(super) parts_bytes: u64,
}

impl Arena {
    /// Bytes that an element takes: its own, and its places in the lists beside the arena.
    pub(super) fn held_per_element(&self) -> u64 {
        self.element_size + 2 * WORD + self.owners.map_or(0, |_| OWNER)
    }
}

/// All ranges of a tree.
pub(super) struct Ranges {
    pub(super) arenas: Vec<Arena>,
    end: u64,
}

impl Ranges {
    /// Reserves the addresses of a sparse tree: room for as many cells as there may be, or as the
    /// machine's memory holds; less where there are not enough addresses.
    pub(super) fn reserve(
        tree: &Tree,
        fixed: usize,
        margin: usize,
        n_elements: u32,
    ) -> Result<(Buffer, Self), MemoryError> {
        let mut most = memory::physical().unwrap_or(UNKNOWN);
        loop {
            let ranges = Self::new(tree, most, n_elements);
            let reserved = ranges
                .as_ref()
                .and_then(|ranges| usize::try_from(ranges.end).ok())
                .map(|end| Buffer::reserved(end, margin));
            match (reserved, ranges) {
                (Some(Ok(bytes)), Some(ranges)) => {
                    // The root's cell is there from the beginning, as a buffer is.
                    if crate::buffer::injected_failure() || !memory::can_allocate(fixed) {
                        return Err(MemoryError::OutOfMemory { bytes: fixed });
                    }
                    bytes.commit(fixed)?;
                    return Ok((bytes, ranges));
                }
                _ if most > LEAST => most /= 2,
                _ => return Err(MemoryError::OutOfMemory { bytes: usize::MAX }),
            }
        }
    }

    /// None where the ranges would not fit into 64 bits.
    fn new(tree: &Tree, most: u64, n_elements: u32) -> Option<Self> {
        let mut ranges = Self {
            arenas: Vec::new(),
            end: tree.byte_size(),
        };
        // How many cells of each node can be active at once.
        let mut cells = Vec::new();
        for (id, node) in tree.nodes() {
            let parent = node.parent.map_or(1, |p| cells[p.as_u32() as usize]);
            let mut inside = u64::checked_mul(parent, node.n_cells)?;
            if node.n_arenas() > 0 {
                let mut room = 0_u64;
                for k in 0..node.n_arenas() {
                    // A container has one chunk of a size, but all cells of a pointer node.
                    let wanted = match node.kind {
                        NodeKind::Pointer | NodeKind::Hash => inside,
                        _ => parent,
                    };
                    let size = node.element_size(k);
                    let n = wanted
                        .saturating_mul(2)
                        .saturating_add(SLACK)
                        .min(most / size)
                        .min(u64::from(n_elements));
                    ranges.add_arena(id, size, n as u32 + 1)?;
                    if node.kind == NodeKind::Hash {
                        let tables = n.saturating_mul(node.n_digits()).saturating_add(SLACK);
                        let most = (most / TABLE_SIZE).min(u64::from(n_elements));
                        ranges.add_arena(id, TABLE_SIZE, tables.min(most) as u32 + 1)?;
                        ranges.add_owners()?;
                    }
                    room = room.saturating_add(n.saturating_mul(node.chunk_cells(k)));
                }
                inside = inside.min(room);
            }
            if node.kind.is_sparse() {
                if node.n_arenas() == 0 {
                    ranges.add_arena(id, 0, 0)?;
                }
                ranges.add_lists(tree, id, &cells, inside)?;
            }
            cells.push(inside);
        }
        Some(ranges)
    }

    fn add_arena(&mut self, node: NodeId, element_size: u64, n_elements: u32) -> Option<()> {
        let n = u64::from(n_elements);
        let elements = self.take(n.checked_mul(element_size)?)?;
        let free = self.take(n * WORD)?;
        let recycled = self.take(n * WORD)?;
        let owners = None;
        self.arenas.push(Arena {
            node,
            elements,
            element_size,
            n_elements,
            free,
            recycled,
            owners,
            list: 0,
            parts: 0,
            list_bytes: 0,
            parts_bytes: 0,
        });
        Some(())
    }

    /// Those of a hash node's cells and tables, the last two arenas.
    fn add_owners(&mut self) -> Option<()> {
        let first = self.arenas.len() - 2;
        for k in first..self.arenas.len() {
            let n = u64::from(self.arenas[k].n_elements);
            self.arenas[k].owners = Some(self.take(n * OWNER)?);
        }
        Some(())
    }

    /// The node's list belongs to its first control block.
    fn add_lists(&mut self, tree: &Tree, node: NodeId, cells: &[u64], own: u64) -> Option<()> {
        let entry = control::entry_size(tree.shape_axes(node).len());
        let list_bytes = own.checked_mul(entry)?;
        let list = self.take(list_bytes)?;
        // A list is made from that above: every container below an entry is counted in parts of its
        // own.
        let chain = tree.chain(node);
        let has_list = |&&a: &&NodeId| a != node && tree[a].kind.has_list();
        let above = chain.iter().rev().find(|a| has_list(a)).copied();
        let entries = above.map_or(1, |a| cells[a.as_u32() as usize]);
        let per_entry = tree.containers_below(above.unwrap_or(Tree::ROOT), node);
        let n_parts = entries
            .checked_mul(per_entry)?
            .checked_mul(tree.list_parts(node, control::LEAST_LIST_PART))?;
        let parts_bytes = n_parts.checked_add(1)?.checked_mul(WORD)?;
        let parts = self.take(parts_bytes)?;
        let arena = &mut self.arenas[tree[node].first_control as usize];
        (arena.list, arena.list_bytes) = (list, list_bytes);
        (arena.parts, arena.parts_bytes) = (parts, parts_bytes);
        Some(())
    }

    fn take(&mut self, bytes: u64) -> Option<u64> {
        let align = if bytes < PAGE { CACHE_LINE } else { PAGE };
        let start = self.end.checked_next_multiple_of(align)?;
        self.end = start.checked_add(bytes)?;
        Some(start)
    }

    /// Writes the control blocks of an empty tree.
    pub(super) fn write_controls(&self, tree: &Tree, bytes: &Buffer) -> Result<(), MemoryError> {
        for (k, arena) in self.arenas.iter().enumerate() {
            let block = tree.control_offset(k as u64);
            for (field, value) in [
                (control::ELEMENTS, arena.elements),
                (control::FREE, arena.free),
                (control::RECYCLED, arena.recycled),
                (control::LIST, arena.list),
                (control::PARTS, arena.parts),
                (control::OWNERS, arena.owners.unwrap_or(0)),
            ] {
                bytes.write((block + field) as usize, &value.to_ne_bytes())?;
            }
            // Element 0 is there, and never written.
            for field in [control::BUMP, control::LIMIT] {
                bytes.write((block + field) as usize, &1_u32.to_ne_bytes())?;
            }
        }
        Ok(())
    }
}

impl Arena {
    pub(super) fn free_at(&self, k: u32) -> u64 {
        self.free + u64::from(k) * WORD
    }

    pub(super) fn recycled_at(&self, k: u32) -> u64 {
        self.recycled + u64::from(k) * WORD
    }

    pub(super) fn element_at(&self, element: u32) -> u64 {
        self.elements + u64::from(element) * self.element_size
    }

    pub(super) fn owner_at(&self, element: u32) -> Option<u64> {
        Some(self.owners? + u64::from(element) * OWNER)
    }

    pub(super) fn list(&self) -> u64 {
        self.list
    }

    pub(super) fn parts_at(&self, part: u64) -> u64 {
        self.parts + part * WORD
    }
}
