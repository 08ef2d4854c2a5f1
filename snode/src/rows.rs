//! Blocks without memory of their own.
//!
//! What lies where in a dense tree no program can see, but every access pays for it: in
//! `dense i:2 j:2 { dense i:4 j:4 { place x } }` an index is taken apart into that of the block and that inside
//! of it. Where a device gains nothing from blocks, the outer node's cells are put in rows of its children:
//!
//! ```text
//! dense i:2 j:2 in_rows { dense i:4 j:4 { place x } }        x[i, j] lies where it does in dense i:8 j:8 { place x }
//! ```
//! Both nodes stay: loops go over the cells of either, in the order of the blocks if order counts
//! ([`Tree::visits`](crate::Tree::visits)).

use aerogel_base::entity::PrimaryMap;

use crate::build::{BuildError, TreeBuilder};
use crate::layout::multiplied;
use crate::tree::{MAX_AXES, Node, NodeAxis, NodeId, NodeKind};

impl TreeBuilder {
    /// Puts the cells of dense nodes in rows of their children where an axis is divided by both, and nothing
    /// above or below is sparse.
    pub fn blocks_in_rows(&mut self) {
        let nodes = &mut self.nodes;
        let mut divided: aerogel_base::entity::SecondaryMap<NodeId, Vec<NodeAxis>> =
            aerogel_base::entity::SecondaryMap::new();
        for id in nodes.keys() {
            let above = nodes[id].parent.filter(|&p| nodes[p].in_rows);
            let own = &nodes[id].divides;
            divided[id] = multiplied(above.map_or(&[], |p| &divided[p]), own);
            nodes[id].in_rows =
                may_lie_in_rows(nodes, id) && divides_again(nodes, id, &divided[id]);
        }
    }

    /// Puts the cells of one node in rows of its children, which are all there.
    pub(crate) fn put_in_rows(&mut self, id: NodeId) -> Result<(), BuildError> {
        if !may_lie_in_rows(&self.nodes, id) {
            return Err(BuildError::NotInRows);
        }
        self.nodes[id].in_rows = true;
        Ok(())
    }
}

/// Whether all children of a dense node are dense nodes, and no cell above or below can be inactive.
fn may_lie_in_rows(nodes: &PrimaryMap<NodeId, Node>, id: NodeId) -> bool {
    let mut above = std::iter::successors(Some(id), |&id| nodes[id].parent);
    let children = &nodes[id].children;
    let dense = |&id: &NodeId| nodes[id].kind == NodeKind::Dense;
    dense(&id)
        && !children.is_empty()
        && children.iter().all(dense)
        && !above.any(|id| nodes[id].kind.is_sparse())
        && holds_no_sparse(nodes, id)
        && children.iter().all(|&child| extents_fit(nodes, child))
}

fn holds_no_sparse(nodes: &PrimaryMap<NodeId, Node>, id: NodeId) -> bool {
    let mut children = nodes[id].children.iter();
    !nodes[id].kind.is_sparse() && children.all(|&child| holds_no_sparse(nodes, child))
}

/// Whether the cells along each axis, over all levels, are numbers of 32 bits.
fn extents_fit(nodes: &PrimaryMap<NodeId, Node>, id: NodeId) -> bool {
    let mut extents = [1_u32; MAX_AXES];
    let above = std::iter::successors(Some(id), |&id| nodes[id].parent);
    let mut axes = above.flat_map(|id| &nodes[id].divides);
    axes.all(|a| {
        let extent = extents[a.axis as usize].checked_mul(a.extent);
        extents[a.axis as usize] = extent.unwrap_or(0);
        extent.is_some()
    })
}

/// Whether a node below, with nothing between that must keep its own memory, divides one of some axes.
fn divides_again(nodes: &PrimaryMap<NodeId, Node>, id: NodeId, axes: &[NodeAxis]) -> bool {
    nodes[id].children.iter().any(|&child| {
        let mut own = nodes[child].divides.iter();
        own.any(|a| axes.iter().any(|b| a.axis == b.axis))
            || may_lie_in_rows(nodes, child) && divides_again(nodes, child, axes)
    })
}
