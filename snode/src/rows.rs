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

use aerogel_base::entity::{PrimaryMap, SecondaryMap};

use crate::build::{BuildError, TreeBuilder};
use crate::layout::multiplied;
use crate::tree::{MAX_AXES, Node, NodeAxis, NodeId, NodeKind};

impl TreeBuilder {
    /// Puts the cells of dense nodes in rows of their children where an axis is divided by both, and nothing
    /// above or below is sparse.
    pub fn blocks_in_rows(&mut self) {
        let nodes = &mut self.nodes;
        let mut divided: SecondaryMap<NodeId, Vec<NodeAxis>> = SecondaryMap::new();
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

#[cfg(test)]
mod tests {
    use crate::{Tree, TreeBuilder, parse_nodes};

    /// The text of a tree of dense nodes once blocks lie in rows.
    fn in_rows(text: &str) -> String {
        let tree = parse_nodes(text).unwrap();
        let mut builder = TreeBuilder {
            nodes: tree.nodes.clone(),
        };
        builder.blocks_in_rows();
        builder.finish().unwrap().to_string()
    }

    #[test]
    fn where_an_axis_is_divided_again() {
        for (text, marks) in [
            (
                "dense i:2 { dense i:4 { place x: f32 } }",
                "dense i:2 in_rows { dense i:4 { place x: f32 } }",
            ),
            (
                "dense i:2 j:2 { dense i:4 { dense i:2 j:8 { place x: f32, place y: f32 } } }",
                "dense i:2 j:2 in_rows { dense i:4 in_rows { dense i:2 j:8 { place x: f32, place y: f32 } } }",
            ),
            (
                "dense k:2 { dense j:3 { dense i:5 { dense j:2 { place x: f32 } } } }",
                "dense k:2 { dense j:3 in_rows { dense i:5 in_rows { dense j:2 { place x: f32 } } } }",
            ),
            (
                "dense i:2 { dense i:4 { place x: f32 }, dense j:4 { place y: f32 } }",
                "dense i:2 in_rows { dense i:4 { place x: f32 }, dense j:4 { place y: f32 } }",
            ),
            (
                "dense i:2 { dense i:4 { quant_array i:8 bits=32 { place x: qu4/i32 } } }",
                "dense i:2 in_rows { dense i:4 { quant_array i:8 bits=32 { place x: qu4/i32 } } }",
            ),
        ] {
            assert_eq!(in_rows(text), marks);
            assert_eq!(parse_nodes(marks).unwrap().to_string(), marks);
        }
    }

    #[test]
    fn what_stays_in_blocks() {
        for text in [
            "dense j:2 { dense i:4 { place x: f32 } }",
            "dense i:2 { place x: f32, dense i:4 { place y: f32 } }",
            "dense i:2 j:2 { dense k:2 { place x: f32, dense i:4 { place y: f32 } } }",
            "pointer i:2 { dense i:4 { dense i:4 { place x: f32 } } }",
            "dense i:2 { dense i:4 { bitmasked i:4 { place x: f32 } } }",
            "dense i:2 { quant_array i:8 bits=32 { place x: qu4/i32 } }",
            "dense i:65536 { dense i:65536 { place x: u1 } }",
        ] {
            assert_eq!(in_rows(text), text);
        }
    }

    #[test]
    fn mistakes() {
        for text in [
            "dense i:2 in_rows { place x: f32 }",
            "dense i:2 in_rows { }",
            "pointer i:2 in_rows { dense i:4 { place x: f32 } }",
            "pointer j:2 { dense i:2 in_rows { dense i:4 { place x: f32 } } }",
            "dense i:2 in_rows { pointer i:4 { place x: f32 } }",
        ] {
            assert_eq!(
                parse_nodes(text).unwrap_err().0,
                "cells lie in rows of dense nodes only, and where no node above or below is sparse"
            );
        }
    }

    fn tree(text: &str) -> Tree {
        parse_nodes(text).unwrap()
    }

    #[test]
    fn elements_lie_where_they_do_without_blocks() {
        let blocks = tree(
            "dense k:2 { dense i:2 j:3 in_rows { dense i:4 in_rows { dense i:2 j:5 { place x: f32, place y: i16 } } } }",
        );
        let plain = tree("dense k:2 { dense i:16 j:15 { place x: f32, place y: i16 } }");
        let ends = |t: &Tree| t.places().map(|(id, _)| id).collect::<Vec<_>>();
        for (a, b) in ends(&blocks).into_iter().zip(ends(&plain)) {
            assert_eq!(blocks.shape(a), plain.shape(b));
            assert_eq!(blocks.strides(a), plain.strides(b));
            assert_eq!(
                blocks.byte_offset(a, &[13, 11, 1]),
                plain.byte_offset(b, &[13, 11, 1])
            );
        }
        assert_eq!(blocks.byte_size(), plain.byte_size());
    }

    #[test]
    fn loops_follow_blocks_in_order_only() {
        let t = tree(
            "dense k:2 { dense i:2 j:3 in_rows { dense i:4 in_rows { dense i:2 j:5 { place x: f32 } } } }",
        );
        let ids: Vec<_> = t.nodes().map(|(id, _)| id).collect();
        let visits = |node: usize, in_order: bool| {
            let axes = t.visits(ids[node], in_order).into_iter();
            axes.map(|a| (a.index, a.divisor, a.extent))
                .collect::<Vec<_>>()
        };
        assert_eq!(visits(4, false), [(2, 1, 2), (0, 1, 16), (1, 1, 15)]);
        let blocks = [
            (2, 1, 2),
            (0, 8, 2),
            (1, 5, 3),
            (0, 2, 4),
            (0, 1, 2),
            (1, 1, 5),
        ];
        assert_eq!(visits(4, true), blocks);
        assert_eq!(t.shape(ids[3]), [8, 3, 2]);
        assert_eq!(visits(3, false), [(2, 1, 2), (0, 1, 8), (1, 1, 3)]);
        assert_eq!(
            visits(3, true),
            [(2, 1, 2), (0, 4, 2), (1, 1, 3), (0, 1, 4)]
        );
    }
}
