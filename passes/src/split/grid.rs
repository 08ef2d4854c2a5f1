//! What a process has of grids, and what processes send each other.

use std::sync::Arc;

use aerogel_base::{Diagnostic, ErrorKind, Span};
use aerogel_ir::{AtomicOp, Env, FieldId, NodeRef, TreeId};
use aerogel_snode::Tree;

/// One axis of a grid that processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitAxis {
    /// Cells of the whole grid.
    pub size: i64,
    /// The first of the process' own cells.
    pub lo: i64,
    /// The cell after the last one.
    pub hi: i64,
    /// How many cells of neighbours memory has on each side.
    pub width: i64,
    /// Whether the last cell's neighbour is the first one.
    pub is_periodic: bool,
}

impl SplitAxis {
    /// Whether other processes have cells along the axis.
    pub fn is_divided(&self) -> bool {
        (self.lo, self.hi) != (0, self.size)
    }

    /// The first index in memory: that of a halo, which ends at the grid's edge unless the axis is periodic.
    pub fn first(&self) -> i64 {
        match self.is_periodic {
            true => self.lo - self.width,
            false => (self.lo - self.width).max(0),
        }
    }

    pub(super) fn is_same_box(&self, other: &Self) -> bool {
        (self.size, self.lo, self.hi) == (other.size, other.lo, other.hi)
    }
}

/// The part of a grid that a process has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitGrid {
    /// The axes.
    pub axes: Vec<SplitAxis>,
    /// Whether the user gave the width of the halo: indices without known bounds are then trusted to stay inside.
    pub is_trusted: bool,
    /// Whether the cells are those of a sparse tree. The tree has the shape of the whole grid on each process, and its active cells
    /// are the process' own ones and copies of its neighbours'.
    pub is_sparse: bool,
}

impl SplitGrid {
    /// The first index in memory along an axis.
    pub(super) fn first(&self, axis: usize) -> i64 {
        match self.is_sparse {
            true => 0,
            false => self.axes[axis].first(),
        }
    }

    /// The grid of the cells of a node of a sparse tree, into which each cell of the grid is divided.
    pub(super) fn divided_into(&self, shape: &[u64]) -> Self {
        let axes = self.axes.iter().zip(shape).map(|(axis, &size)| {
            let per_cell = size as i64 / axis.size;
            SplitAxis {
                size: axis.size * per_cell,
                lo: axis.lo * per_cell,
                hi: axis.hi * per_cell,
                width: axis.width * per_cell,
                is_periodic: axis.is_periodic,
            }
        });
        Self {
            axes: axes.collect(),
            ..*self
        }
    }
}

/// What processes send each other around a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The fields of which it reads neighbours' cells: how many on the lower and on the upper side of each axis.
    pub reads: Vec<(FieldId, Vec<[i64; 2]>)>,
    /// The fields to whose cells of neighbours it adds: how far, as for `reads`.
    pub adds: Vec<(FieldId, Vec<[i64; 2]>)>,
    /// The split fields that it writes.
    pub writes: Vec<FieldId>,
    /// The fields that are not split to which it adds.
    pub sums: Vec<Sum<FieldId>>,
    /// The sparse trees that it accesses.
    pub trees: Vec<SparseTree>,
}

/// What a loop needs to know about the active cells of a sparse tree, and whether it changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparseTree {
    /// The tree.
    pub tree: TreeId,
    /// Whether it depends on which cells of neighbours are active.
    pub reads: bool,
    /// Whether cells may become active or inactive.
    pub changes: bool,
}

/// Something to which all processes add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum<T> {
    /// A field, or a variable.
    pub target: T,
    /// Which component of its elements, if it is not all of them.
    pub component: Option<usize>,
    /// The operation that combines shares.
    pub op: AtomicOp,
}

pub(super) type Outcome<T> = Result<T, Box<Diagnostic>>;

pub(super) fn mistake(span: Span, message: impl Into<String>, note: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(ErrorKind::Compilation, "E0701", span, message).note(note))
}

/// The state of the pass over one kernel.
pub(super) struct Split<'a> {
    pub(super) env: &'a mut Env,
    pub(super) grids: &'a [Option<Arc<SplitGrid>>],
    pub(super) exchanges: Vec<Exchange>,
    pub(super) hidden: Vec<Arc<Tree>>,
    pub(super) is_derivative: bool,
}

impl Split<'_> {
    pub(super) fn grid(&self, tree: TreeId) -> Option<&Arc<SplitGrid>> {
        self.grids.get(tree.as_u32() as usize)?.as_ref()
    }

    pub(super) fn grid_of(&self, field: FieldId) -> Option<&Arc<SplitGrid>> {
        self.grid(self.env.fields[field].tree)
    }

    /// The grid of the cells of a node.
    pub(super) fn grid_of_node(&self, NodeRef { tree, node }: NodeRef) -> Option<Arc<SplitGrid>> {
        let grid = self.grid(tree)?;
        Some(match grid.is_sparse {
            true => Arc::new(grid.divided_into(&self.env.trees[tree].shape(node))),
            false => grid.clone(),
        })
    }

    pub(super) fn name(&self, field: FieldId) -> &str {
        &self.env.fields[field].name
    }
}
