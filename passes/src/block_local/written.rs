//! Blocks of other trees that a loop over sparse cells writes are looked up once for each block.
//!
//! ```text
//! for i in 0..8 {                     if is_active tree1.S1, [i0] {
//!     cell_at tree0.S2 ..      ==>        block = find_cell tree1.S1, [i0]
//!     store y[8 i0 + i] ..                for i in 0..8 {
//! }                                           cell_at tree0.S2 ..
//!                                             cell_at tree1.S2, [8 i0 + i], (lookup block, i)
//!                                             store y[8 i0 + i] ..
//!                                         }
//!                                     } { for i in 0..8 { cell_at tree0.S2 ..  store y[8 i0 + i] .. } }
//! ```
//! A block that is not there is made where the program writes to it, and only if it does: then all is left as
//! it was.

use aerogel_ir::{Builder, Function, NodeRef, Op, Region, Type, Value, walk};
use aerogel_snode::{NodeId, NodeKind};

use super::{block_extents, blocks_alike, neighbour, own_index};
use crate::PassCx;
use crate::cells;

/// The largest body, in instructions, that is written twice. The work of a longer one outweighs its look-ups.
const LARGEST: usize = 400;

/// Containers of nodes in other blocks than the loop's own.
pub(crate) type Beside = [(NodeRef, Value)];

/// Blocks besides the loop's own, and the nodes of the cells in them that are written.
pub(crate) struct Written {
    blocks: Vec<(NodeRef, Vec<NodeRef>)>,
}

impl Written {
    /// What a loop over the cells of `node`, in blocks that are cells of `block`, writes at its own indices
    /// in other blocks that divide the indices alike.
    pub(crate) fn find(
        func: &Function,
        cx: &PassCx<'_>,
        node: NodeRef,
        block: NodeId,
        body: Region,
        params: &[Value],
    ) -> Option<Self> {
        block_extents(&cx.env.trees[node.tree], block, node.node, NodeKind::Dense)?;
        let mut blocks: Vec<(NodeRef, Vec<NodeRef>)> = Vec::new();
        let mut stay = true;
        let mut n_insts = 0;
        walk(func, body, &mut |func, inst| {
            n_insts += 1;
            match func[inst] {
                // What is active at the beginning must be so to the end, and have memory.
                Op::Call { .. } | Op::Deactivate { .. } | Op::Append { .. } => stay = false,
                Op::Store { place, .. } | Op::Atomic { place, .. } | Op::Cas { place, .. } => {
                    let Some((place, off)) = neighbour(func, cx, params, place) else {
                        return;
                    };
                    let Some((other, leaf)) = blocks_alike(cx, place, node, block) else {
                        return;
                    };
                    let own = other.tree == node.tree && other.node == block;
                    if own || off.iter().any(|&d| d != 0) {
                        return;
                    }
                    let leaf = NodeRef {
                        tree: other.tree,
                        node: leaf,
                    };
                    match blocks.iter_mut().find(|b| b.0 == other) {
                        Some((_, leaves)) if leaves.contains(&leaf) => {}
                        Some((_, leaves)) => leaves.push(leaf),
                        None => blocks.push((other, vec![leaf])),
                    }
                }
                _ => {}
            }
        });
        (stay && n_insts <= LARGEST && !blocks.is_empty()).then_some(Self { blocks })
    }

    /// Writes `fast` where all the blocks at `indices` are active, with their containers, and else `slow`.
    pub(crate) fn choose(
        &self,
        b: &mut Builder<'_>,
        indices: &[Value],
        fast: &mut dyn FnMut(&mut Builder<'_>, &Beside),
        slow: &mut dyn FnMut(&mut Builder<'_>),
    ) {
        let mut all: Option<Value> = None;
        for &(node, _) in &self.blocks {
            let indices = indices.to_vec();
            let active = b.value(Op::IsActive { node, indices }, Type::BOOL);
            all = Some(all.map_or(active, |all| {
                b.binary(aerogel_ir::BinaryOp::And, all, active)
            }));
        }
        let cond = all.expect("there is a block");
        let then = cells::region(b, &[], |b, _| {
            let mut containers = Vec::new();
            for (node, leaves) in &self.blocks {
                let (node, indices) = (*node, indices.to_vec());
                let ty = Type::Cell(node.tree, node.node);
                let cell = b.value(Op::FindCell { node, indices }, ty);
                for &node in leaves {
                    let ty = Type::Container(node.tree, node.node);
                    containers.push((node, b.value(Op::Child { node, cell }, ty)));
                }
            }
            fast(b, &containers);
        });
        let otherwise = cells::region(b, &[], |b, _| slow(b));
        b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }
}

/// Says where the cells beside the iteration's own, which is `cell` at `indices`, are in other blocks.
pub(crate) fn note_cells(b: &mut Builder<'_>, containers: &Beside, cell: Value, indices: &[Value]) {
    if containers.is_empty() {
        return;
    }
    let index = own_index(b.func, cell);
    for &(node, container) in containers {
        let op = Op::Lookup {
            node,
            container,
            index,
        };
        let cell = b.value(op, Type::Cell(node.tree, node.node));
        b.effect(Op::CellAt {
            node,
            indices: indices.to_vec(),
            cell,
        });
    }
}
