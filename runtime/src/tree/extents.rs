//! Which parts of a sparse tree's addresses are used: a device has memory only there, and only they are copied.

use std::ops::Range;

use aerogel_snode::{NodeId, Tree, WORD, control};

use super::ranges::{Arena, OWNER};
use crate::buffer::MemoryError;
use crate::residence::{Extents, Limit, Words};

/// The arenas of a tree, and how large their lists are.
pub(super) struct TreeExtents {
    fixed: usize,
    controls: Vec<Control>,
}

/// A control block, its arena, and the list that belongs to it.
struct Control {
    offset: u64,
    arena: Arena,
    /// Bytes of an entry of the list; 0 if there is none.
    entry: u64,
    /// The control block of the list above, if there is one, and how many parts an entry there has at most: one for four of
    /// the entry's slots, so that their counts take a quarter of what the entry does.
    above: Option<usize>,
    parts: u64,
}

impl TreeExtents {
    pub(super) fn new(tree: &Tree, arenas: &[Arena]) -> Self {
        let controls = arenas.iter().enumerate().map(|(k, arena)| {
            let node = &tree[arena.node];
            let has_list = node.first_control as usize == k && node.kind.has_list();
            let (above, parts) = match has_list {
                true => parts(tree, arena.node),
                false => (None, 0),
            };
            Control {
                offset: tree.control_offset(k as u64),
                arena: arena.clone(),
                entry: match has_list {
                    true => control::entry_size(tree.shape_axes(arena.node).len()),
                    false => 0,
                },
                above,
                parts,
            }
        });
        Self {
            fixed: tree.byte_size() as usize,
            controls: controls.collect(),
        }
    }
}

/// The list from which that of a node is made, and in how many parts an entry there is counted.
fn parts(tree: &Tree, node: NodeId) -> (Option<usize>, u64) {
    let chain = tree.chain(node);
    let has_list = |&&a: &&NodeId| a != node && tree[a].kind.has_list();
    let above = chain.iter().rev().find(has_list).copied();
    let per_entry = tree.containers_below(above.unwrap_or(Tree::ROOT), node);
    let parts = per_entry * tree.list_parts(node, control::LEAST_LIST_PART);
    (above.map(|a| tree[a].first_control as usize), parts)
}

fn range(start: u64, bytes: u64) -> Range<usize> {
    start as usize..(start + bytes) as usize
}

impl Control {
    fn word(&self, words: Words<'_>, field: u64) -> Result<u64, MemoryError> {
        Ok(words(self.offset + field)?.into())
    }

    /// Elements that have been in use.
    fn high_water(&self, words: Words<'_>) -> Result<u64, MemoryError> {
        let [taken, n_free] = [
            self.word(words, control::TAKEN)?,
            self.word(words, control::N_FREE)?,
        ];
        let bump = self.word(words, control::BUMP)? + taken.saturating_sub(n_free);
        Ok(bump.min(self.word(words, control::LIMIT)?))
    }

    fn owners(&self, elements: u64) -> Range<usize> {
        self.arena
            .owner_at(0)
            .map_or(0..0, |first| range(first, elements * OWNER))
    }
}

impl Extents for TreeExtents {
    fn used(&self, words: Words<'_>) -> Result<Vec<Range<usize>>, MemoryError> {
        let mut all = Vec::from([range(0, self.fixed as u64)]);
        for control in &self.controls {
            let arena = &control.arena;
            let high = control.high_water(words)?;
            let n_recycled = control.word(words, control::N_RECYCLED)?;
            let n_free = control.word(words, control::N_FREE)? + n_recycled;
            let listed = control.word(words, control::LIST_LEN)?;
            all.push(range(arena.elements, high * arena.element_size));
            all.push(range(arena.free_at(0), n_free * WORD));
            all.push(range(arena.recycled_at(0), n_recycled * WORD));
            all.push(control.owners(high));
            all.push(range(arena.list(), listed * control.entry));
        }
        Ok(all)
    }

    fn usable(&self, words: Words<'_>) -> Result<Vec<Range<usize>>, MemoryError> {
        let mut all = Vec::from([range(0, self.fixed as u64)]);
        for control in &self.controls {
            let arena = &control.arena;
            let limit = control.word(words, control::LIMIT)?;
            all.push(range(arena.elements, limit * arena.element_size));
            all.push(range(arena.free_at(0), limit * WORD));
            all.push(range(arena.recycled_at(0), limit * WORD));
            all.push(control.owners(limit));
            let list = limit.saturating_mul(control.entry).min(arena.list_bytes);
            all.push(range(arena.list(), list));
            let above = match control.above {
                Some(above) => self.controls[above].word(words, control::LIMIT)?,
                None => 1,
            };
            if control.parts > 0 {
                let parts = above.saturating_mul(control.parts).saturating_add(1);
                let bytes = parts.saturating_mul(WORD).min(arena.parts_bytes);
                all.push(range(arena.parts_at(0), bytes));
            }
        }
        Ok(all)
    }

    fn words(&self) -> Range<u64> {
        let mut starts = self.controls.iter().map(|control| control.offset);
        let first = starts.next().unwrap_or_default();
        let last = starts.next_back().unwrap_or(first);
        match self.controls.is_empty() {
            true => 0..0,
            false => first..last + control::SIZE,
        }
    }

    fn limits(&self, words: Words<'_>) -> Result<Vec<Limit>, MemoryError> {
        let all = self.controls.iter().map(|control| {
            Ok(Limit {
                offset: control.offset + control::LIMIT,
                limit: control.word(words, control::LIMIT)? as u32,
                used: control.high_water(words)? as u32,
                most: control.arena.n_elements,
                held: control.arena.held_per_element(),
            })
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use aerogel_snode::parse_nodes;

    use super::*;
    use crate::tree::TreeMemory;

    #[test]
    fn all_counts_of_a_list_have_memory() {
        // 2^27 parts, and lists that are made of the entries of one above.
        for text in [
            "pointer i:536870912 { place x: i32 }",
            "pointer i:64 { dense i:64 { pointer i:64 { place x: i32 } } }",
            "dense i:4 { hash i:1024 { place x: i32 } }",
        ] {
            let tree = Arc::new(parse_nodes(text).unwrap());
            let memory = TreeMemory::with_room(tree.clone(), 0, 100).unwrap();
            let extents = TreeExtents::new(&tree, &memory.arenas);
            let usable = extents.usable(&|_| Ok(u32::MAX)).unwrap();
            let listed = memory.arenas.iter().filter(|arena| arena.parts_bytes > 0);
            for arena in listed {
                let all = range(arena.parts_at(0), arena.parts_bytes);
                assert!(usable.contains(&all), "{text}: {all:?} of {usable:?}");
            }
        }
    }

    #[test]
    fn what_has_no_list_has_no_counts() {
        let tree = Arc::new(parse_nodes("dynamic i:16777216 chunk=64 { place x: i32 }").unwrap());
        let memory = TreeMemory::with_room(tree.clone(), 0, 100).unwrap();
        let extents = TreeExtents::new(&tree, &memory.arenas);
        let usable = extents.usable(&|_| Ok(1)).unwrap();
        let counts = memory.arenas[0].parts_at(0) as usize;
        assert!(usable.iter().all(|range| !range.contains(&counts)));
    }
}
