//! Instructions over sparse nodes.
//!
//! Those over indices make and give back cells at once. What is given back is collected when the
//! parallel loop or the kernel is over, unless a pass has written the collection out. Those over containers follow the format in memory, as
//! generated code does. What is outside a node is nowhere: it is zero, and cannot be made.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{CellOp, Inst, NodeOp, NodeRef, Value};
use aerogel_runtime::{MemoryError, TreeMemory};
use aerogel_snode::{Node, NodeId, NodeKind, Tree};

use super::control::int;
use super::{Flow, Machine};
use crate::memory::lacking;
use crate::value::{Slot, Val};

impl Machine<'_> {
    pub(super) fn cell_op(&mut self, inst: Inst, op: &CellOp) -> Result<Vec<Val>, Flow> {
        let one = match op {
            CellOp::Activate { node, indices } => {
                if let Some(at) = self.inside(*node, node.node, indices) {
                    let cell = self.tree(*node).obtain_element(node.node, &at);
                    self.made(inst, *node, cell)?;
                }
                return Ok(Vec::new());
            }
            CellOp::Deactivate { node, indices } => {
                if let Some(at) = self.inside(*node, self.holder(*node), indices) {
                    self.deactivated = !self.collects_itself;
                    in_format(self.tree(*node).deactivate(node.node, &at));
                }
                return Ok(Vec::new());
            }
            CellOp::IsActive { node, indices } => {
                let at = self.inside(*node, node.node, indices);
                let cell = at.and_then(|at| self.tree(*node).element(node.node, &at));
                Val::from(Scalar::bool(cell.is_some()))
            }
            CellOp::Append { node, indices } => {
                let mut index = -1;
                if let Some(at) = self.inside(*node, self.holder(*node), indices) {
                    let tree = self.tree(*node);
                    let container = tree.obtain_container(node.node, &at);
                    let container = self.made(inst, *node, container)?;
                    index = self.made(inst, *node, tree.extend(node.node, container))?;
                }
                int(ScalarType::I32, index)
            }
            CellOp::Length { node, indices } => {
                let tree = self.tree(*node);
                let at = self.inside(*node, self.holder(*node), indices);
                let container = at.and_then(|at| tree.container(node.node, &at));
                let length = container.map(|c| tree.container_length(node.node, c));
                int(ScalarType::I32, length.unwrap_or(0))
            }
            CellOp::FindCell { node, indices } => {
                let at = self.inside(*node, node.node, indices);
                Val::Node(at.map(|at| self.tree(*node).find_cell(node.node, &at)))
            }
            // It tells the passes what the iteration knows.
            CellOp::CellAt { .. } => return Ok(Vec::new()),
        };
        Ok(vec![one])
    }

    pub(super) fn node_op(&mut self, inst: Inst, op: &NodeOp) -> Result<Vec<Val>, Flow> {
        let one = match op {
            NodeOp::Root { .. } => Val::Node(Some(0)),
            NodeOp::Linearize { node, coords } => Val::from(Scalar::int(
                ScalarType::I64,
                self.linearize(*node, &self.ints(coords)),
            )),
            NodeOp::Lookup {
                node,
                container,
                index,
            } => {
                let data = &self.module.env.trees[node.tree][node.node];
                let k = u64::try_from(self.int(*index))
                    .ok()
                    .filter(|&k| k < data.n_cells);
                Val::Node(
                    self.val(*container)
                        .node()
                        .zip(k)
                        .map(|(at, k)| at + k * data.cell_size),
                )
            }
            NodeOp::Child { node, cell } => {
                let data = &self.module.env.trees[node.tree][node.node];
                let at = self.val(*cell).node().map(|at| at + data.offset_in_cell);
                match data.kind {
                    NodeKind::Place(ty) | NodeKind::BitStruct(ty) | NodeKind::QuantArray(ty) => {
                        let tree = node.tree.as_u32() as usize;
                        Val::Place(vec![(
                            at.map_or(Slot::Nowhere, |at| Slot::Root(tree, at)),
                            ty,
                        )])
                    }
                    _ => Val::Node(at),
                }
            }
            NodeOp::Find {
                node,
                container,
                index,
            } => {
                let at = self.cell(*node, *container, *index);
                Val::Node(at.map(|(c, k)| self.tree(*node).find(node.node, c, k)))
            }
            NodeOp::Ambient { node } => Val::Node(Some(self.tree(*node).ambient(node.node))),
            NodeOp::Obtain {
                node,
                container,
                index,
            } => match self.cell(*node, *container, *index) {
                Some((container, index)) => {
                    let cell = self.tree(*node).obtain(node.node, container, index);
                    Val::Node(Some(self.made(inst, *node, cell)?))
                }
                None => Val::Node(None),
            },
            NodeOp::CellIsActive {
                node,
                container,
                index,
            } => {
                let at = self.cell(*node, *container, *index);
                let is_active = |(c, k)| self.tree(*node).cell_is_active(node.node, c, k);
                Val::from(Scalar::bool(at.is_some_and(is_active)))
            }
            NodeOp::MaskWord {
                node,
                container,
                word,
            } => {
                let n = self.data(*node).mask_words();
                let word = u64::try_from(self.int(*word)).ok().filter(|&w| w < n);
                let at = self.val(*container).node().zip(word);
                let word = at.map_or(0, |(c, w)| self.tree(*node).mask_word(node.node, c, w));
                int(ScalarType::U32, i64::from(word))
            }
            NodeOp::NextActive {
                node,
                container,
                index,
            } => {
                let (at, index) = (self.val(*container).node(), self.int(*index));
                let next = at.map(|c| self.tree(*node).next_active(node.node, c, index));
                int(ScalarType::I64, next.unwrap_or(i64::MAX))
            }
            NodeOp::ActiveEnd { node, container } => {
                let at = self.val(*container).node();
                let end = at.map(|c| self.tree(*node).active_end(node.node, c));
                int(ScalarType::I64, end.unwrap_or(0))
            }
            NodeOp::Release {
                node,
                container,
                index,
            } => {
                if let Some((container, index)) = self.cell(*node, *container, *index) {
                    in_format(self.tree(*node).release(node.node, container, index));
                }
                return Ok(Vec::new());
            }
            NodeOp::ReleaseAll { node, container } => {
                if let Some(container) = self.val(*container).node() {
                    self.tree(*node).release_all(node.node, container);
                }
                return Ok(Vec::new());
            }
            NodeOp::Extend { node, container } => {
                let index = match self.val(*container).node() {
                    Some(at) => self.made(inst, *node, self.tree(*node).extend(node.node, at))?,
                    None => -1,
                };
                int(ScalarType::I64, index)
            }
            NodeOp::ContainerLength { node, container } => {
                let container = self.val(*container).node();
                let length = container.map(|c| self.tree(*node).container_length(node.node, c));
                int(ScalarType::I64, length.unwrap_or(0))
            }

            NodeOp::ListStale { node } => {
                Val::from(Scalar::bool(self.tree(*node).list_stale(node.node)))
            }
            NodeOp::ListLen { node } => {
                let length = self.tree(*node).list_len(node.node);
                int(ScalarType::I64, i64::from(length))
            }
            NodeOp::ListOffset { node, part } => {
                let part = self.int(*part) as u64;
                let offset = self.tree(*node).list_offset(node.node, part);
                int(ScalarType::I64, i64::from(offset))
            }
            NodeOp::ListCount { node, part, count } => {
                let (part, count) = (self.int(*part) as u64, self.int(*count) as u32);
                self.tree(*node).list_count(node.node, part, count);
                return Ok(Vec::new());
            }
            NodeOp::ListScan { node, n_parts } => {
                let n_parts = self.int(*n_parts) as u64;
                self.tree(*node).list_scan(node.node, n_parts);
                return Ok(Vec::new());
            }
            NodeOp::ListPut {
                node,
                at,
                cell,
                indices,
            } => {
                let at = self.int(*at) as u64;
                let cell = self.val(*cell).node().expect("listed cells are somewhere");
                let indices: Vec<i32> = self.ints(indices).iter().map(|&i| i as i32).collect();
                in_format(self.tree(*node).list_put(node.node, at, cell, &indices));
                return Ok(Vec::new());
            }
            NodeOp::ListEntry { node, at } => {
                let at = self.int(*at) as u64;
                let (cell, indices) = in_format(self.tree(*node).list_entry(node.node, at));
                let indices = indices.into_iter().map(i64::from);
                let mut results = vec![Val::Node(Some(cell))];
                results.extend(indices.map(|i| int(ScalarType::I32, i)));
                return Ok(results);
            }

            NodeOp::NRecycled { node } => {
                let n = self.tree(*node).n_recycled(node.node);
                int(ScalarType::I64, n as i64)
            }
            NodeOp::Recycled { node, at } => {
                let at = self.int(*at) as u64;
                Val::Node(self.tree(*node).recycled(node.node, at))
            }
            NodeOp::Wipe { node, at } => {
                let at = self.int(*at) as u64;
                in_format(self.tree(*node).wipe(node.node, at));
                return Ok(Vec::new());
            }
            NodeOp::Collect { node } => {
                self.tree(*node).collect(node.node);
                return Ok(Vec::new());
            }
        };
        Ok(vec![one])
    }

    fn tree(&self, node: NodeRef) -> &TreeMemory {
        self.memory.tree(node.tree)
    }

    fn data(&self, node: NodeRef) -> &Node {
        &self.module.env.trees[node.tree][node.node]
    }

    /// The node whose indices name a whole container of a dynamic node, or a cell of another.
    fn holder(&self, node: NodeRef) -> NodeId {
        let data = self.data(node);
        match data.kind {
            NodeKind::Dynamic { .. } => data.parent.unwrap_or(Tree::ROOT),
            _ => node.node,
        }
    }

    /// Indices along the axes of `of`, if they are inside its shape.
    fn inside(&self, node: NodeRef, of: NodeId, indices: &[Value]) -> Option<Vec<i64>> {
        let indices = self.ints(indices);
        let shape = self.module.env.trees[node.tree].shape(of);
        let inside = |(&i, n): (&i64, u64)| u64::try_from(i).is_ok_and(|i| i < n);
        indices.iter().zip(shape).all(inside).then_some(indices)
    }

    /// A container and the number of a cell of it; none outside.
    fn cell(&self, node: NodeRef, container: Value, index: Value) -> Option<(u64, u64)> {
        let n = self.data(node).n_cells;
        let index = u64::try_from(self.int(index)).ok().filter(|&k| k < n);
        self.val(container).node().zip(index)
    }

    /// A cell that was made, or how the kernel ends because there is no memory for it.
    fn made<T>(&self, inst: Inst, node: NodeRef, cell: Result<T, MemoryError>) -> Result<T, Flow> {
        cell.map_err(|failure| self.no_cell(inst, lacking(node.tree, failure)))
    }

    /// Collects what was deactivated, between loops.
    pub(super) fn collect(&mut self) {
        if std::mem::take(&mut self.deactivated) {
            for tree in self.memory.trees() {
                in_format(tree.collect_all());
            }
        }
    }
}

/// What follows the format of a tree lies inside it.
fn in_format<T>(outcome: Result<T, MemoryError>) -> T {
    outcome.unwrap_or_else(|failure| unreachable!("{failure}"))
}
