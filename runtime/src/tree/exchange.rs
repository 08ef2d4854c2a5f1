//! Cells in bulk: all active ones of a node, and many made active at once, on all threads.

use std::ops::Range;
use std::sync::OnceLock;

use aerogel_snode::{Level, NodeId, NodeKind};

use super::TreeMemory;
use crate::buffer::{Buffer, MemoryError};
use crate::cpu::Pool;

/// From so many cells on a level is divided; above, each cell of the level makes a part of its own.
const MANY: u64 = 4096;
/// The least that is worth a part: cells of a container.
const PART: u64 = 512;
/// Parts for each thread, so that all have work although some parts are empty.
const PARTS_PER_THREAD: u64 = 16;
/// Neighbouring cells along an axis whose elements one thread makes, since they lie side by side.
const NEIGHBOURS: u32 = 3;

/// The components of a field's elements, and how large each is.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    /// A place for each component; the cells of a single node can be requested too.
    pub places: &'a [NodeId],
    /// Bytes of a component; 0 if only the indices matter.
    pub item: usize,
    /// The first index of each axis; empty for zeros.
    pub offset: &'a [i32],
}

/// Some active cells, in the order of the layout.
#[derive(Clone, Debug, Default)]
pub struct ActiveCells {
    /// An `i32` along each axis of the node, cell after cell.
    pub coordinates: Vec<u8>,
    /// The components, element after element.
    pub values: Vec<u8>,
}

/// Some cells of a container: that in `cell` of the level above.
struct Part {
    depth: usize,
    cell: u64,
    indices: Vec<i64>,
    range: Range<u64>,
}

impl TreeMemory {
    /// Indices and values of all active elements in the order in which loops visit them, in pieces.
    /// Which are active is up to the first component. No launch may run meanwhile; it waits.
    pub fn active_cells(
        &self,
        elements: Elements<'_>,
        pool: &Pool,
    ) -> Result<Vec<ActiveCells>, MemoryError> {
        let _share = self.share();
        self.come_home()?;
        let first = elements.places[0];
        let beside = self.beside(elements.places);
        if self.tree().is_merged(first) {
            let mut cells = ActiveCells::default();
            self.visit_active(first, &mut |cell, index| {
                self.note_cell(elements, &beside, (cell, index), &mut cells)
            })?;
            return Ok(vec![cells]);
        }
        let levels = &self.path(first).levels;
        let parts = self.parts(levels, pool.n_threads() as u64 * PARTS_PER_THREAD);
        let done: Vec<OnceLock<ActiveCells>> = parts.iter().map(|_| OnceLock::new()).collect();
        self.parallel(pool, parts.len() as u64, |k| {
            let part = &parts[k as usize];
            let mut cells = ActiveCells::default();
            let mut indices = part.indices.clone();
            let below = &levels[part.depth..];
            let mut visit = |cell: u64, index: &[i64]| {
                self.note_cell(elements, &beside, (cell, index), &mut cells)
            };
            self.visit_range(
                (below, &[]),
                part.cell,
                part.range.clone(),
                &mut indices,
                &mut visit,
            )?;
            let _ = done[k as usize].set(cells);
            Ok(())
        })?;
        Ok(done.into_iter().filter_map(OnceLock::into_inner).collect())
    }

    /// Adds the indices and values of an active element, whose first component is that at `cell`.
    fn note_cell(
        &self,
        elements: Elements<'_>,
        beside: &[Option<u64>],
        (cell, index): (u64, &[i64]),
        cells: &mut ActiveCells,
    ) -> Result<(), MemoryError> {
        for (axis, &index) in index.iter().enumerate() {
            let shift = elements.offset.get(axis).copied().unwrap_or(0);
            let index = (index as i32).wrapping_add(shift);
            cells.coordinates.extend(index.to_ne_bytes());
        }
        for (&place, beside) in elements.places.iter().zip(beside) {
            let at = match beside {
                Some(distance) => Some(cell.wrapping_add(*distance)),
                None => self.find_element(place, index)?,
            };
            let begin = cells.values.len();
            cells.values.resize(begin + elements.item, 0);
            if let Some(at) = at {
                self.read_bytes(place, at, index, &mut cells.values[begin..])?;
            }
        }
        Ok(())
    }

    /// How far each component lies from the first, if they lie in the same cells.
    fn beside(&self, places: &[NodeId]) -> Vec<Option<u64>> {
        let first = &self.tree()[places[0]];
        let distance = |&place: &NodeId| {
            let data = &self.tree()[place];
            let same = data.parent == first.parent;
            same.then(|| data.offset_in_cell.wrapping_sub(first.offset_in_cell))
        };
        places.iter().map(distance).collect()
    }

    /// Divides the cells at the end of `levels` into about `n` parts, in the order of the layout.
    fn parts(&self, levels: &[Level], n: u64) -> Vec<Part> {
        let n_cells = |depth: usize| self.tree()[levels[depth].node].n_cells;
        let n_axes = levels.iter().flat_map(|l| &l.axes).map(|a| a.index + 1);
        let mut parts = vec![Part {
            depth: 0,
            cell: 0,
            indices: vec![0; n_axes.max().unwrap_or(0)],
            range: self.active_range(levels[0].node, 0),
        }];
        for depth in 0..levels.len() - 1 {
            if (parts.len() as u64).saturating_mul(n_cells(depth)) >= MANY {
                break;
            }
            let mut below = Vec::new();
            for mut part in parts {
                let mut visit = |cell: u64, indices: &[i64]| {
                    below.push(Part {
                        depth: depth + 1,
                        cell,
                        indices: indices.to_vec(),
                        range: self.active_range(levels[depth + 1].node, cell),
                    });
                    Ok::<_, std::convert::Infallible>(())
                };
                let Ok(()) = self.visit_range(
                    (&levels[depth..=depth], &[]),
                    part.cell,
                    part.range,
                    &mut part.indices,
                    &mut visit,
                );
            }
            parts = below;
        }
        let lengths = parts.iter().map(|p| p.range.end - p.range.start);
        let total = lengths.fold(0, u64::saturating_add);
        let size = (total / n).max(PART);
        let divide = |part: Part| {
            let Range { start, end } = part.range;
            (0..(end - start).div_ceil(size)).map(move |k| Part {
                range: start + k * size..end.min(start + (k + 1) * size),
                indices: part.indices.clone(),
                ..part
            })
        };
        parts.into_iter().flat_map(divide).collect()
    }

    /// Cells of a container, that in `cell`, between which all active ones lie.
    fn active_range(&self, node: NodeId, cell: u64) -> Range<u64> {
        let data = &self.tree()[node];
        if data.kind != NodeKind::Hash {
            return 0..data.n_cells;
        }
        let container = cell + data.offset_in_cell;
        let end = self.active_end(node, container) as u64;
        end.min(self.next_active(node, container, 0) as u64)..end
    }

    /// The first row of `coordinates` (an index along each axis, without any field's offset) that is
    /// no cell of a node.
    pub fn first_outside(&self, node: NodeId, coordinates: &[i32]) -> Option<usize> {
        let shape = self.tree().shape(node);
        let inside = |row: &[i32]| {
            let mut axes = row.iter().zip(&shape);
            axes.all(|(&index, &extent)| index >= 0 && (index as u64) < extent)
        };
        let rows = coordinates.chunks_exact(shape.len().max(1));
        rows.into_iter().position(|row| !inside(row))
    }

    /// Makes the cells at `n` rows of `coordinates` active, which are inside the shape and without
    /// offset, and writes `values` to them, if given. Of rows with the same indices the last counts.
    /// No launch may run meanwhile; it waits.
    pub fn set_cells(
        &self,
        elements: Elements<'_>,
        n: usize,
        coordinates: &[i32],
        values: Option<&Buffer>,
        pool: &Pool,
    ) -> Result<(), MemoryError> {
        let _share = self.share();
        self.come_home()?;
        let n_axes = self.tree().shape(elements.places[0]).len();
        let (n_places, item) = (elements.places.len(), elements.item);
        let beside = self.beside(elements.places);
        // All rows with the same indices fall to one thread, which keeps their order.
        let n_owners = if (n as u64) < PART {
            1
        } else {
            pool.n_threads() as u64
        };
        self.parallel(pool, n_owners, |owner| {
            let mut indices = vec![0_i64; n_axes];
            let mut component = vec![0; item];
            for row in 0..n {
                let at = &coordinates[row * n_axes..][..n_axes];
                if owner_of(at, n_owners) != owner {
                    continue;
                }
                for (index, &coordinate) in indices.iter_mut().zip(at) {
                    *index = i64::from(coordinate);
                }
                let first = self.obtain_element(elements.places[0], &indices)?;
                for (k, (&place, beside)) in elements.places.iter().zip(&beside).enumerate() {
                    let to = match beside {
                        Some(distance) => first.wrapping_add(*distance),
                        None => self.obtain_element(place, &indices)?,
                    };
                    if let Some(values) = values {
                        values.read((row * n_places + k) * item, &mut component)?;
                        self.write_bytes(place, to, &indices, &component)?;
                    }
                }
            }
            Ok(())
        })
    }
}

/// Which of `n` threads sees to a cell; the same for a cell's close neighbours.
fn owner_of(coordinates: &[i32], n: u64) -> u64 {
    // FNV-1a, on words.
    let hash = coordinates.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &c| {
        (hash ^ u64::from((c as u32) >> NEIGHBOURS)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 20) % n
}
