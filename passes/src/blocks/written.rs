//! Blocks around the loop's own, and of other trees, that it writes are looked up once for each block.
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
//! it was, which raises what it raised where a block would be outside of the tree.
//!
//! For sums to neighbouring elements see `scattered.rs`.

use aerogel_ir::{
    BinaryOp, Builder, CellOp, Function, NodeOp, NodeRef, Op, Region, Type, Value, walk,
};
use aerogel_snode::{NodeId, NodeKind};

use super::neighbours::{Block, block_extents, blocks_alike, moved, neighbour, own_index};
use super::scattered::Scattered;
use crate::PassCx;

/// The largest body, in instructions, that is written twice for look-ups alone. The work of a longer one
/// outweighs them.
const LARGEST: usize = 400;
/// The largest that is written twice for sums.
const LARGEST_SCATTERED: usize = 1600;

/// The writes of a loop over a block outside of its own block.
pub(crate) struct Written {
    /// The blocks that must be active.
    blocks: Vec<Block>,
    /// Their cells, once they are looked up.
    cells: Vec<Value>,
    /// The nodes of cells in other blocks that are written at the loop's own indices, and the nodes of the blocks.
    beside: Vec<(NodeRef, NodeRef)>,
    /// The containers of those cells, once they are looked up.
    containers: Vec<Value>,
    scattered: Option<Scattered>,
}

impl Written {
    /// What a loop over the cells of `node`, in blocks that are cells of `block`, writes in blocks that divide the
    /// indices alike.
    pub(crate) fn find(
        func: &Function,
        cx: &PassCx<'_>,
        node: NodeRef,
        block: NodeId,
        body: Region,
        params: &[Value],
    ) -> Option<Self> {
        let extents = block_extents(&cx.env.trees[node.tree], block, node.node, NodeKind::Dense)?;
        let own = NodeRef {
            tree: node.tree,
            node: block,
        };
        let mut beside: Vec<(NodeRef, NodeRef)> = Vec::new();
        let mut stay = true;
        let mut n_insts = 0;
        walk(func, body, &mut |func, inst| {
            n_insts += 1;
            match func[inst] {
                // What is active at the beginning must be so to the end, and have memory.
                Op::Call { .. } | Op::Cell(CellOp::Deactivate { .. } | CellOp::Append { .. }) => {
                    stay = false
                }
                Op::Store { place, .. } | Op::Atomic { place, .. } | Op::Cas { place, .. } => {
                    let Some((place, off)) = neighbour(func, cx, params, place) else {
                        return;
                    };
                    let Some((other, leaf)) = blocks_alike(cx, place, node, block) else {
                        return;
                    };
                    if other == own || off.iter().any(|&d| d != 0) {
                        return;
                    }
                    let leaf = NodeRef {
                        tree: other.tree,
                        node: leaf,
                    };
                    if !beside.contains(&(other, leaf)) {
                        beside.push((other, leaf));
                    }
                }
                _ => {}
            }
        });
        if n_insts > LARGEST {
            beside.clear();
        }
        let scattered = (stay && n_insts <= LARGEST_SCATTERED)
            .then(|| Scattered::find(func, cx, node, block, body, params))
            .flatten();
        let here = vec![0; extents.len()];
        let mut blocks: Vec<Block> = scattered.as_ref().map_or(Vec::new(), Scattered::blocks);
        blocks.extend(beside.iter().map(|&(other, _)| (other, here.clone())));
        let mut seen = Vec::new();
        blocks.retain(|block| {
            let new = *block != (own, here.clone()) && !seen.contains(block);
            seen.push(block.clone());
            new
        });
        (stay && !blocks.is_empty()).then_some(Self {
            blocks,
            cells: Vec::new(),
            beside,
            containers: Vec::new(),
            scattered,
        })
    }

    /// Whether all blocks around that at `indices` are active.
    pub(crate) fn condition(&self, b: &mut Builder<'_>, indices: &[Value]) -> Value {
        let mut all: Option<Value> = None;
        for (node, part) in &self.blocks {
            let (node, indices) = (*node, moved(b, indices, part));
            let active = b.value(CellOp::IsActive { node, indices }, Type::BOOL);
            all = Some(all.map_or(active, |all| b.binary(BinaryOp::And, all, active)));
        }
        all.expect("there is a block")
    }

    /// Looks them up, where they are active.
    pub(crate) fn prologue(&mut self, b: &mut Builder<'_>, indices: &[Value]) {
        for (node, part) in &self.blocks {
            let (node, indices) = (*node, moved(b, indices, part));
            let ty = Type::Cell(node.tree, node.node);
            self.cells
                .push(b.value(CellOp::FindCell { node, indices }, ty));
        }
        for &(other, node) in &self.beside {
            let here = |block: &Block| block.0 == other && block.1.iter().all(|&p| p == 0);
            let k = self.blocks.iter().position(here);
            let cell = self.cells[k.expect("they are among the blocks")];
            let ty = Type::Container(node.tree, node.node);
            let container = b.value(NodeOp::Child { node, cell }, ty);
            self.containers.push(container);
        }
        if let Some(scattered) = &mut self.scattered {
            scattered.prologue(b);
        }
    }

    /// Makes `body` write there; the iteration's own cell is `cell` at `indices`.
    pub(crate) fn redirect(
        &self,
        b: &mut Builder<'_>,
        body: Region,
        cell: Value,
        indices: &[Value],
    ) {
        if let Some(scattered) = &self.scattered {
            scattered.redirect(b, body, cell);
        }
        if self.beside.is_empty() {
            return;
        }
        let index = own_index(b.func, cell);
        for (&(_, node), &container) in self.beside.iter().zip(&self.containers) {
            let op = NodeOp::Lookup {
                node,
                container,
                index,
            };
            let cell = b.value(op, Type::Cell(node.tree, node.node));
            b.effect(CellOp::CellAt {
                node,
                indices: indices.to_vec(),
                cell,
            });
        }
    }

    /// Writes what is left to do behind the loops over the block `own`.
    pub(crate) fn epilogue(&self, b: &mut Builder<'_>, own: Value) {
        if let Some(scattered) = &self.scattered {
            scattered.epilogue(b, &|block| {
                let k = self.blocks.iter().position(|other| other == block);
                k.map_or(own, |k| self.cells[k])
            });
        }
    }
}
