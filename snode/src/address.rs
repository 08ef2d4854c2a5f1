//! From indices to bytes.
//!
//! An index along an axis that several levels divide is split from the outside in: with
//! sizes 2 and 4 along `i`, `i = 6` is cell 1 of the outer level (`6 / 4`) and cell 2 of the
//! inner (`6 % 4`). Each level's divisor is the product of the sizes of the levels below.

use crate::merge::multiplied;
use crate::tree::{MAX_AXES, NodeAxis, NodeId, Tree};

/// How one level takes its coordinate from an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelAxis {
    /// Position among the field's indices, from 0.
    pub index: usize,
    /// The index is divided by this; 1 at the innermost level of the axis.
    pub divisor: u64,
    /// Cells along the axis at this level.
    pub extent: u64,
    /// Whether levels above divide the same axis, so that the quotient must be reduced modulo `extent`.
    pub wraps: bool,
}

/// One level of a path: a look-up in a node's container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The node.
    pub node: NodeId,
    /// Its axes, slowest first.
    pub axes: Vec<LevelAxis>,
}

/// The way from the root to a node: the root, each level below it, and the node itself last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Levels, outermost first.
    pub levels: Vec<Level>,
}

impl LevelAxis {
    /// The coordinate along the axis at this level of an index that is inside the shape.
    pub fn coordinate(&self, index: u64) -> u64 {
        let quotient = index / self.divisor;
        if self.wraps {
            quotient % self.extent
        } else {
            quotient
        }
    }
}

impl Level {
    /// The number of the cell in its container that indices inside the shape lead to.
    #[inline]
    pub fn linear(&self, indices: &[i64]) -> u64 {
        self.axes.iter().fold(0, |linear, a| {
            linear * a.extent + a.coordinate(indices[a.index] as u64)
        })
    }
}

impl Tree {
    /// The levels that an access to `node` goes through, the root first and `node` last. Levels of merged nodes have no
    /// axes.
    pub fn path(&self, node: NodeId) -> Path {
        let chain = self.chain(node);
        let levels: Vec<Vec<NodeAxis>> = chain.iter().map(|&id| self[id].axes.clone()).collect();
        let axes = self.axes_of(node, &levels);
        let levels = chain.into_iter().zip(axes);
        Path {
            levels: levels.map(|(node, axes)| Level { node, axes }).collect(),
        }
    }

    /// The nest of loops over the cells of a node that lies below no sparse node, outermost loop first. Loops that go
    /// `in_order` visit block after block; the others follow memory.
    pub fn loop_axes(&self, node: NodeId, in_order: bool) -> Vec<LevelAxis> {
        let mut levels: Vec<Vec<NodeAxis>> = Vec::new();
        let mut merged = false;
        for id in self.chain(node) {
            let own = &self[id].divides;
            match levels.last_mut().filter(|_| merged && !in_order) {
                Some(above) => *above = multiplied(above, own),
                None => levels.push(own.clone()),
            }
            merged = self[id].merged;
        }
        self.axes_of(node, &levels).into_iter().flatten().collect()
    }

    /// How each of `levels`, which together divide all axes of `node`, computes its coordinates from indices.
    fn axes_of(&self, node: NodeId, levels: &[Vec<NodeAxis>]) -> Vec<Vec<LevelAxis>> {
        let mut position = [usize::MAX; MAX_AXES];
        let mut rest = [1u64; MAX_AXES];
        for (k, &(axis, extent)) in self.shape_axes(node).iter().enumerate() {
            position[axis as usize] = k;
            rest[axis as usize] = extent;
        }
        let whole = rest;
        let mut level_axis = |a: &NodeAxis| {
            let axis = a.axis as usize;
            let wraps = rest[axis] != whole[axis];
            rest[axis] /= u64::from(a.extent);
            LevelAxis {
                index: position[axis],
                divisor: rest[axis],
                extent: u64::from(a.extent),
                wraps,
            }
        };
        let levels = levels.iter();
        levels
            .map(|axes| axes.iter().map(&mut level_axis).collect())
            .collect()
    }

    /// Where in the root's cell the element of `place` at `indices` begins. The indices are those
    /// of the layout (without the field's offset) and must lie inside the shape.
    ///
    /// # Panics
    /// If a node of the path is sparse: then the element may not exist.
    pub fn byte_offset(&self, place: NodeId, indices: &[i64]) -> u64 {
        assert!(
            !self.is_below_sparse(place),
            "{place} lies below a sparse node"
        );
        let mut at = 0;
        for level in self.path(place).levels {
            let node = &self[level.node];
            at += node.offset_in_cell + level.linear(indices) * node.cell_size;
        }
        at
    }

    /// If the element's address is affine in the indices (no axis divided twice, no sparse node in
    /// the path): the constant part and the bytes from one index to the next for each axis.
    pub fn strides(&self, place: NodeId) -> Option<(u64, Vec<u64>)> {
        if self.is_below_sparse(place) {
            return None;
        }
        let mut base = 0;
        let mut strides = vec![0; self.shape(place).len()];
        for level in self.path(place).levels {
            let node = &self[level.node];
            base += node.offset_in_cell;
            let mut stride = node.cell_size;
            for a in level.axes.iter().rev() {
                if a.wraps || a.divisor != 1 {
                    return None;
                }
                strides[a.index] = stride;
                stride *= a.extent;
            }
        }
        Some((base, strides))
    }
}
