//! Visits of active cells.

use std::convert::Infallible;
use std::ops::Range;

use aerogel_base::{Scalar, ScalarType};
use aerogel_snode::{Level, LevelAxis, MASK_BITS, MAX_AXES, NodeId, NodeKind, TABLE_SIZE, Tree};

use super::TreeMemory;
use crate::buffer::MemoryError;

/// Statistics of a sparse node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStats {
    /// The node.
    pub node: NodeId,
    /// Active cells.
    pub cells: u64,
    /// Elements of its arenas that are in use: cells of a pointer or hash node, chunks of a dynamic one.
    pub elements: u64,
    /// Bytes of the active cells; of a dynamic node, of the chunks they lie in; of a hash node, with
    /// those of the tables of their paths.
    pub used_bytes: u64,
    /// Bytes that its arenas have; 0 for a bitmasked node, whose cells lie in those of its parent.
    pub held_bytes: u64,
}

/// Takes a cell, and its index along each axis of its node.
pub type Visit<'a, E> = dyn FnMut(u64, &[i64]) -> Result<(), E> + 'a;

/// The levels that are left to walk, and the box of indices that is visited, without axes if all is.
pub(super) type Walk<'a> = (&'a [Level], &'a [(u64, u64)]);

/// The cells of a container that may hold indices of a box: a range along the slowest axis.
fn cells_in(level: &Level, n_cells: u64, indices: &[i64], ranges: &[(u64, u64)]) -> Range<u64> {
    let Some(axis) = level.axes.first() else {
        return 0..n_cells;
    };
    let Some(&(lo, hi)) = ranges.get(axis.index) else {
        return 0..n_cells;
    };
    let at = indices[axis.index] as u64;
    let first = lo.saturating_sub(at) / axis.divisor;
    let end = hi.saturating_sub(at).div_ceil(axis.divisor);
    let each = n_cells / axis.extent.max(1);
    first.min(axis.extent) * each..end.min(axis.extent) * each
}

impl TreeMemory {
    /// Calls `visit` for each active cell of a node, in the order of the layout: outer levels first,
    /// row-major in each container.
    pub fn visit_active<E>(&self, node: NodeId, visit: &mut Visit<'_, E>) -> Result<(), E> {
        self.visit_active_in(node, &[], visit)
    }

    /// The same for the cells in a box of indices: along each axis the first, and the one after the last.
    pub fn visit_active_in<E>(
        &self,
        node: NodeId,
        ranges: &[(u64, u64)],
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        let mut indices = vec![0; self.tree.shape_axes(node).len()];
        if self.tree.is_merged(node) {
            let axes = self.tree.loop_axes(node, true);
            return self.visit_blocks((node, &axes, ranges), &mut indices, visit);
        }
        let levels = &self.path(node).levels;
        self.visit_level((levels, ranges), 0, &mut indices, visit)
    }

    /// Visits the cells of a dense node in the order of its blocks; `axes` are the loops that are left.
    fn visit_blocks<E>(
        &self,
        (node, axes, ranges): (NodeId, &[LevelAxis], &[(u64, u64)]),
        indices: &mut [i64],
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        let Some((axis, below)) = axes.split_first() else {
            return visit(self.find_cell(node, indices), indices);
        };
        let begin = indices[axis.index];
        for k in 0..axis.extent {
            indices[axis.index] = begin + (k * axis.divisor) as i64;
            let at = indices[axis.index] as u64;
            let range = ranges.get(axis.index);
            if range.is_none_or(|&(lo, hi)| at < hi && lo < at + axis.divisor) {
                self.visit_blocks((node, below, ranges), indices, visit)?;
            }
        }
        indices[axis.index] = begin;
        Ok(())
    }

    fn visit_level<E>(
        &self,
        (levels, ranges): Walk<'_>,
        cell: u64,
        indices: &mut [i64],
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        match levels.first() {
            Some(level) => {
                let cells = cells_in(level, self.tree[level.node].n_cells, indices, ranges);
                self.visit_range((levels, ranges), cell, cells, indices, visit)
            }
            None => visit(cell, indices),
        }
    }

    /// Visits what is active below some cells of one container, that of the first of `levels` in
    /// `cell`; `indices` are those of `cell`.
    pub(super) fn visit_range<E>(
        &self,
        (levels, ranges): Walk<'_>,
        cell: u64,
        range: Range<u64>,
        indices: &mut [i64],
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        let (level, below) = (&levels[0], (&levels[1..], ranges));
        let node = level.node;
        let data = &self.tree[node];
        let container = cell + data.offset_in_cell;
        if data.kind == NodeKind::Bitmasked {
            for word in range.start / MASK_BITS..range.end.div_ceil(MASK_BITS) {
                let mut bits = self.mask_word(node, container, word);
                while bits != 0 {
                    let index = word * MASK_BITS + u64::from(bits.trailing_zeros());
                    bits &= bits - 1;
                    if range.contains(&index) {
                        self.visit_cell(level, below, (container, index), indices, visit)?;
                    }
                }
            }
            return Ok(());
        }
        if data.kind == NodeKind::Hash {
            let mut index = self.next_active(node, container, range.start as i64) as u64;
            while index < range.end {
                self.visit_cell(level, below, (container, index), indices, visit)?;
                index = self.next_active(node, container, index as i64 + 1) as u64;
            }
            return Ok(());
        }
        let end = match data.kind {
            NodeKind::Dynamic { .. } => {
                range.end.min(self.container_length(node, container) as u64)
            }
            _ => range.end,
        };
        for index in range.start..end {
            if self.cell_is_active(node, container, index) {
                self.visit_cell(level, below, (container, index), indices, visit)?;
            }
        }
        Ok(())
    }

    /// Visits what is active in one cell of a container.
    fn visit_cell<E>(
        &self,
        level: &Level,
        below: Walk<'_>,
        (container, index): (u64, u64),
        indices: &mut [i64],
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        let mut outer = [0; MAX_AXES];
        let outer = &mut outer[..indices.len()];
        outer.copy_from_slice(indices);
        let mut rest = index;
        for axis in level.axes.iter().rev() {
            indices[axis.index] += (rest % axis.extent * axis.divisor) as i64;
            rest /= axis.extent;
        }
        let mut axes = level.axes.iter();
        let is_inside = axes.all(|axis| {
            let at = indices[axis.index] as u64;
            let range = below.1.get(axis.index);
            range.is_none_or(|&(lo, hi)| at < hi && lo < at + axis.divisor)
        });
        let outcome = match is_inside {
            true => {
                let cell = self.find(level.node, container, index);
                self.visit_level(below, cell, indices, visit)
            }
            false => Ok(()),
        };
        indices.copy_from_slice(outer);
        outcome
    }

    /// Calls `visit` with the indices of each element of a place, row-major, and what is there:
    /// nothing where the element is inactive.
    pub fn visit_elements(
        &self,
        place: NodeId,
        visit: &mut dyn FnMut(&[i64], Option<Scalar>),
    ) -> Result<(), MemoryError> {
        self.come_home()?;
        let shape = self.tree.shape(place);
        let mut indices = vec![0; shape.len()];
        for linear in 0..shape.iter().product() {
            let mut rest: u64 = linear;
            for (index, extent) in indices.iter_mut().zip(&shape).rev() {
                *index = (rest % extent) as i64;
                rest /= extent;
            }
            let value = self.read_component(place, &indices)?;
            visit(&indices, value);
        }
        Ok(())
    }

    /// All elements of all places; nothing where one is inactive. For comparisons.
    pub fn snapshot(&self) -> Result<Vec<Option<Scalar>>, MemoryError> {
        let mut all = Vec::new();
        for (place, _) in self.tree.places() {
            self.visit_elements(place, &mut |_, value| all.push(value))?;
        }
        Ok(all)
    }

    /// Writes what `value` says to each element of each place, row-major, and makes those active;
    /// the others stay as they are.
    pub fn write_elements(
        &self,
        value: &mut dyn FnMut(NodeId, ScalarType) -> Option<Scalar>,
    ) -> Result<(), MemoryError> {
        for (place, ty) in self.tree.places() {
            let mut outcome = Ok(());
            let mut write = |indices: &[i64], _: Option<Scalar>| {
                if let (Some(value), Ok(())) = (value(place, ty), &outcome) {
                    outcome = self.write_component(place, indices, value);
                }
            };
            self.visit_elements(place, &mut write)?;
            outcome?;
        }
        Ok(())
    }

    /// Statistics of each sparse node. Launches wait until it is done.
    pub fn stats(&self) -> Vec<NodeStats> {
        let _turn = self.alone();
        self.settle();
        let sparse = self.tree.nodes().filter(|(_, data)| data.kind.is_sparse());
        sparse
            .map(|(node, data)| {
                let arenas = self.controls(node).enumerate();
                let (mut elements, mut used_bytes, mut held_bytes) = (0, 0, 0);
                for (k, control) in arenas {
                    let active = self.active_elements(control);
                    elements += active;
                    used_bytes += active * data.element_size(k as u64);
                    held_bytes += self.held(control);
                }
                if let Some(tables) = self.tables(node) {
                    used_bytes += self.active_elements(tables) * TABLE_SIZE;
                    held_bytes += self.held(tables);
                }
                let cells = match data.kind {
                    NodeKind::Pointer | NodeKind::Hash => elements,
                    _ => self.count_inside(node),
                };
                if data.kind == NodeKind::Bitmasked {
                    used_bytes = cells * data.cell_size;
                }
                NodeStats {
                    node,
                    cells,
                    elements,
                    used_bytes,
                    held_bytes,
                }
            })
            .collect()
    }

    /// Active cells of a bitmasked or dynamic node, counted in its containers.
    fn count_inside(&self, node: NodeId) -> u64 {
        let data = &self.tree[node];
        let mut cells = 0;
        let mut count = |cell: u64, _: &[i64]| -> Result<(), Infallible> {
            let container = cell + data.offset_in_cell;
            cells += match data.kind {
                NodeKind::Bitmasked => (0..data.mask_words())
                    .map(|w| u64::from(self.mask_word(node, container, w).count_ones()))
                    .sum(),
                _ => self.container_length(node, container) as u64,
            };
            Ok(())
        };
        let parent = data.parent.unwrap_or(Tree::ROOT);
        let Ok(()) = self.visit_active(parent, &mut count);
        cells
    }

    fn held(&self, control: u32) -> u64 {
        let limit = self.get(control, aerogel_snode::control::LIMIT);
        u64::from(limit - 1) * self.arenas[control as usize].element_size
    }
}
