//! The tree: nodes, their axes and, once laid out, their sizes and offsets.

use aerogel_base::ScalarType;
use aerogel_base::entity::PrimaryMap;

aerogel_base::entity! {
    /// A node of a tree.
    pub struct NodeId, "S"
}

/// How many index axes there are: `ti.i` is 0, `ti.j` is 1, and so on.
pub const MAX_AXES: usize = 12;

/// What a node's containers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// The single cell everything hangs from.
    Root,
    /// An array of cells, all of them always there.
    Dense,
    /// One component of a field: a scalar.
    Place(ScalarType),
}

/// One axis that a node divides into cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAxis {
    /// Which index axis, from 0.
    pub axis: u8,
    /// Cells along it.
    pub extent: u32,
}

/// A structural node. A *container* of a node holds its *cells*; each cell holds one container of
/// every child.
#[derive(Clone, Debug)]
pub struct Node {
    /// What its containers are.
    pub kind: NodeKind,
    /// The node whose cells hold this node's containers; none for the root.
    pub parent: Option<NodeId>,
    /// Its children, in the order in which they lie in a cell.
    pub children: Vec<NodeId>,
    /// The axes it divides, in ascending order; the last one varies fastest in memory.
    pub axes: Vec<NodeAxis>,
    /// A place's name, for people.
    pub name: String,
    /// Bytes from one cell to the next.
    pub cell_size: u64,
    /// Cells in a container.
    pub n_cells: u64,
    /// Where a container begins in its parent's cell, in bytes.
    pub offset_in_cell: u64,
    /// Alignment of a container, in bytes.
    pub align: u64,
}

impl Node {
    /// Bytes of a container.
    pub fn container_size(&self) -> u64 {
        self.cell_size * self.n_cells
    }
}

/// A tree that has been laid out.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(crate) nodes: PrimaryMap<NodeId, Node>,
}

impl Tree {
    /// The root node.
    pub const ROOT: NodeId = NodeId::ROOT;

    /// All nodes, parents before children.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter()
    }

    /// All places, in the order in which they were made.
    pub fn places(&self) -> impl Iterator<Item = (NodeId, ScalarType)> {
        self.nodes.iter().filter_map(|(id, n)| match n.kind {
            NodeKind::Place(ty) => Some((id, ty)),
            _ => None,
        })
    }

    /// Bytes that the root's cell takes.
    pub fn byte_size(&self) -> u64 {
        self[Self::ROOT].cell_size
    }

    /// The nodes from the root down to `node`, `node` included.
    pub fn chain(&self, node: NodeId) -> Vec<NodeId> {
        let mut chain = vec![node];
        while let Some(parent) = self[chain[chain.len() - 1]].parent {
            chain.push(parent);
        }
        chain.reverse();
        chain
    }

    /// The index axes of a node's cells, ascending, with the extent over all its levels.
    pub fn shape_axes(&self, node: NodeId) -> Vec<(u8, u64)> {
        let mut extents = [0u64; MAX_AXES];
        for id in self.chain(node) {
            for a in &self[id].axes {
                let e = &mut extents[a.axis as usize];
                *e = (*e).max(1) * u64::from(a.extent);
            }
        }
        (0..MAX_AXES as u8)
            .map(|a| (a, extents[a as usize]))
            .filter(|&(_, e)| e > 0)
            .collect()
    }

    /// The extents of a node's cells along its axes, ascending.
    pub fn shape(&self, node: NodeId) -> Vec<u64> {
        self.shape_axes(node).into_iter().map(|(_, e)| e).collect()
    }
}

impl NodeId {
    const ROOT: NodeId = NodeId(0);
}

impl std::ops::Index<NodeId> for Tree {
    type Output = Node;
    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }
}
