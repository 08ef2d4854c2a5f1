//! Merged nodes: dense blocks that exist in indices but not in memory.
//!
//! No program can tell where the elements of a dense tree lie (`ti.get_addr` counts in the tree as it is written), but every
//! access pays for blocks: an index is
//! split into the number of the block and the index inside it. On devices that gain nothing from blocks, a dense node is
//! therefore merged with its dense children. Its elements lie row-major:
//!
//! ```text
//! dense i:2 j:2 merged { dense i:4 j:4 { place x } }     x[i, j] has the address that it has in
//!                                                        dense i:8 j:8 { place x }
//! ```
//! A merged node stays in the tree, so that shapes, parents and loops over its cells are what they were. Serial loops
//! visit block after block ([`Tree::loop_axes`](crate::Tree::loop_axes)).

use aerogel_base::entity::{PrimaryMap, SecondaryMap};

use crate::build::{BuildError, TreeBuilder};
use crate::tree::{MAX_AXES, Node, NodeAxis, NodeId, NodeKind, Tree};

impl TreeBuilder {
    /// Merges dense nodes with their dense children where both divide the same axis and no node above or below
    /// is sparse.
    pub fn merge_blocks(&mut self) {
        let nodes = &mut self.nodes;
        let mut boxes: SecondaryMap<NodeId, Vec<NodeAxis>> = SecondaryMap::new();
        for id in nodes.keys() {
            boxes[id] = merged_box(nodes, &boxes, id);
            nodes[id].merged = may_merge(nodes, id) && divides_again(nodes, id, &boxes[id]);
        }
    }

    /// Merges one node with its children, all of which have been added.
    pub(crate) fn merge(&mut self, id: NodeId) -> Result<(), BuildError> {
        if !may_merge(&self.nodes, id) {
            return Err(BuildError::NotMergeable);
        }
        self.nodes[id].merged = true;
        Ok(())
    }
}

impl Tree {
    /// The tree with all its blocks in memory, as it was written: what addresses are about.
    pub fn as_written(&self) -> Self {
        let mut builder = TreeBuilder {
            nodes: self.nodes.clone(),
        };
        for id in builder.nodes.keys() {
            builder.nodes[id].merged = false;
        }
        builder
            .finish()
            .expect("a tree that has been laid out can be laid out with its blocks")
    }
}

/// Computes the axes of every node in memory: none for a merged node, whose sizes pass to its children.
pub(crate) fn set_memory_axes(nodes: &mut PrimaryMap<NodeId, Node>) {
    let mut boxes: SecondaryMap<NodeId, Vec<NodeAxis>> = SecondaryMap::new();
    for id in nodes.keys() {
        boxes[id] = merged_box(nodes, &boxes, id);
        nodes[id].axes = match nodes[id].merged {
            true => Vec::new(),
            false => boxes[id].clone(),
        };
    }
}

/// The axes of a node, multiplied with those of the merged nodes directly above it.
fn merged_box(
    nodes: &PrimaryMap<NodeId, Node>,
    boxes: &SecondaryMap<NodeId, Vec<NodeAxis>>,
    id: NodeId,
) -> Vec<NodeAxis> {
    let above = nodes[id].parent.filter(|&p| nodes[p].merged);
    multiplied(above.map_or(&[], |p| &boxes[p]), &nodes[id].divides)
}

/// The axes of two levels as one level.
pub(crate) fn multiplied(outer: &[NodeAxis], inner: &[NodeAxis]) -> Vec<NodeAxis> {
    let mut both = outer.to_vec();
    for a in inner {
        match both.iter_mut().find(|b| b.axis == a.axis) {
            Some(b) => b.extent *= a.extent,
            None => both.push(*a),
        }
    }
    both.sort_by_key(|a| a.axis);
    both
}

/// Whether a node and all its children are dense, and no node above or below is sparse.
fn may_merge(nodes: &PrimaryMap<NodeId, Node>, id: NodeId) -> bool {
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

/// Whether the size of every axis, over all levels down to a node, fits 32 bits.
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

/// Whether a node below divides one of `axes`, and all nodes between the two can be merged.
fn divides_again(nodes: &PrimaryMap<NodeId, Node>, id: NodeId, axes: &[NodeAxis]) -> bool {
    nodes[id].children.iter().any(|&child| {
        let mut own = nodes[child].divides.iter();
        own.any(|a| axes.iter().any(|b| a.axis == b.axis))
            || may_merge(nodes, child) && divides_again(nodes, child, axes)
    })
}

#[cfg(test)]
mod tests {
    use crate::{Tree, TreeBuilder, parse_nodes};

    /// A tree's text after its blocks have been merged.
    fn merged(text: &str) -> String {
        let tree = parse_nodes(text).unwrap();
        let mut builder = TreeBuilder {
            nodes: tree.nodes.clone(),
        };
        builder.merge_blocks();
        builder.finish().unwrap().to_string()
    }

    #[test]
    fn a_tree_as_it_is_written() {
        let text = "dense i:2 j:2 { dense i:4 { place x: f32 }, dense j:4 { place y: f64 } }";
        let builder = TreeBuilder {
            nodes: parse_nodes(&merged(text)).unwrap().nodes.clone(),
        };
        let tree = builder.finish().unwrap();
        assert!(tree.to_string().contains("merged"));
        let written = parse_nodes(text).unwrap();
        assert_eq!(tree.as_written().to_string(), written.to_string());
        for (id, node) in written.nodes() {
            let own = &tree.as_written()[id];
            assert_eq!(
                (own.offset_in_cell, own.cell_size),
                (node.offset_in_cell, node.cell_size)
            );
        }
    }

    #[test]
    fn nodes_that_divide_the_same_axis() {
        for (text, marks) in [
            (
                "dense i:2 { dense i:4 { place x: f32 } }",
                "dense i:2 merged { dense i:4 { place x: f32 } }",
            ),
            (
                "dense i:2 j:2 { dense i:4 { dense i:2 j:8 { place x: f32, place y: f32 } } }",
                "dense i:2 j:2 merged { dense i:4 merged { dense i:2 j:8 { place x: f32, place y: f32 } } }",
            ),
            (
                "dense k:2 { dense j:3 { dense i:5 { dense j:2 { place x: f32 } } } }",
                "dense k:2 { dense j:3 merged { dense i:5 merged { dense j:2 { place x: f32 } } } }",
            ),
            (
                "dense i:2 { dense i:4 { place x: f32 }, dense j:4 { place y: f32 } }",
                "dense i:2 merged { dense i:4 { place x: f32 }, dense j:4 { place y: f32 } }",
            ),
            (
                "dense i:2 { dense i:4 { quant_array i:8 bits=32 { place x: qu4/i32 } } }",
                "dense i:2 merged { dense i:4 { quant_array i:8 bits=32 { place x: qu4/i32 } } }",
            ),
        ] {
            assert_eq!(merged(text), marks);
            assert_eq!(parse_nodes(marks).unwrap().to_string(), marks);
        }
    }

    #[test]
    fn nodes_that_keep_their_blocks() {
        for text in [
            "dense j:2 { dense i:4 { place x: f32 } }",
            "dense i:2 { place x: f32, dense i:4 { place y: f32 } }",
            "dense i:2 j:2 { dense k:2 { place x: f32, dense i:4 { place y: f32 } } }",
            "pointer i:2 { dense i:4 { dense i:4 { place x: f32 } } }",
            "dense i:2 { dense i:4 { bitmasked i:4 { place x: f32 } } }",
            "dense i:2 { quant_array i:8 bits=32 { place x: qu4/i32 } }",
            "dense i:65536 { dense i:65536 { place x: u1 } }",
        ] {
            assert_eq!(merged(text), text);
        }
    }

    #[test]
    fn mistakes() {
        for text in [
            "dense i:2 merged { place x: f32 }",
            "dense i:2 merged { }",
            "pointer i:2 merged { dense i:4 { place x: f32 } }",
            "pointer j:2 { dense i:2 merged { dense i:4 { place x: f32 } } }",
            "dense i:2 merged { pointer i:4 { place x: f32 } }",
        ] {
            assert_eq!(
                parse_nodes(text).unwrap_err().0,
                "only dense nodes with dense children are merged, and no node above or below may be sparse"
            );
        }
    }

    fn tree(text: &str) -> Tree {
        parse_nodes(text).unwrap()
    }

    #[test]
    fn addresses_are_those_of_one_node() {
        let blocks = tree(
            "dense k:2 { dense i:2 j:3 merged { dense i:4 merged { dense i:2 j:5 { place x: f32, place y: i16 } } } }",
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
    fn serial_loops_follow_blocks() {
        let t = tree(
            "dense k:2 { dense i:2 j:3 merged { dense i:4 merged { dense i:2 j:5 { place x: f32 } } } }",
        );
        let ids: Vec<_> = t.nodes().map(|(id, _)| id).collect();
        let axes_of = |node: usize, in_order: bool| {
            let axes = t.loop_axes(ids[node], in_order).into_iter();
            axes.map(|a| (a.index, a.divisor, a.extent))
                .collect::<Vec<_>>()
        };
        assert_eq!(axes_of(4, false), [(2, 1, 2), (0, 1, 16), (1, 1, 15)]);
        let blocks = [
            (2, 1, 2),
            (0, 8, 2),
            (1, 5, 3),
            (0, 2, 4),
            (0, 1, 2),
            (1, 1, 5),
        ];
        assert_eq!(axes_of(4, true), blocks);
        assert_eq!(t.shape(ids[3]), [8, 3, 2]);
        assert_eq!(axes_of(3, false), [(2, 1, 2), (0, 1, 8), (1, 1, 3)]);
        assert_eq!(
            axes_of(3, true),
            [(2, 1, 2), (0, 4, 2), (1, 1, 3), (0, 1, 4)]
        );
    }
}
