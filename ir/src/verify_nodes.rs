//! The types of instructions over the nodes of a tree.

use aerogel_base::ScalarType;
use aerogel_snode::{Node, NodeKind};

use crate::op::{CellOp, NodeOp};
use crate::op_kinds::NodeRef;
use crate::types::{Type, Value};
use crate::verify_types::{Check, ensure};

fn is_dynamic(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::Dynamic { .. })
}

fn has_arena(kind: NodeKind) -> bool {
    kind.has_list() || is_dynamic(kind)
}

impl Check<'_> {
    fn node(&self, node: NodeRef) -> &Node {
        &self.env.trees[node.tree][node.node]
    }

    fn kind(&self, node: NodeRef, wanted: impl Fn(NodeKind) -> bool) -> Result<(), String> {
        let kind = self.node(node).kind;
        ensure(wanted(kind), || {
            format!("{node} is {kind:?}, which the instruction does not take")
        })
    }

    fn container(&self, node: NodeRef, container: Value) -> Result<(), String> {
        let found = self.ty(container);
        ensure(found == Type::Container(node.tree, node.node), || {
            format!("{found} is not a container of {node}")
        })
    }

    fn cell(&self, node: NodeRef, cell: Value) -> Result<(), String> {
        let found = self.ty(cell);
        ensure(found == Type::Cell(node.tree, node.node), || {
            format!("{found} is not a cell of {node}")
        })
    }

    pub(crate) fn is_i64(&self, v: Value) -> Result<(), String> {
        let found = self.ty(v);
        ensure(found == Type::I64, || format!("{found} is not an i64"))
    }

    pub(crate) fn is_u32(&self, v: Value) -> Result<(), String> {
        let found = self.ty(v);
        ensure(found == Type::Scalar(ScalarType::U32), || {
            format!("{found} is not a u32")
        })
    }

    /// Indices along the axes of `node`'s cells, or of the cells that its containers lie in.
    fn node_indices(
        &self,
        node: NodeRef,
        indices: &[Value],
        of_parent: bool,
    ) -> Result<(), String> {
        self.indices(indices)?;
        let parent = self.node(node).parent.filter(|_| of_parent);
        let n = self.env.trees[node.tree]
            .shape(parent.unwrap_or(node.node))
            .len();
        ensure(indices.len() == n, || {
            format!("{node} takes {n} indices, not {}", indices.len())
        })
    }

    fn result_of_list(&self, node: NodeRef, ty: Type) -> Result<(), String> {
        self.kind(node, NodeKind::is_sparse)?;
        self.result(ty)
    }

    pub(crate) fn cell_op(&self, op: &CellOp) -> Result<(), String> {
        match op {
            CellOp::Activate { node, indices } => {
                self.node_indices(*node, indices, false)?;
                self.no_result()
            }
            CellOp::Deactivate { node, indices } => {
                let dynamic = is_dynamic(self.node(*node).kind);
                self.node_indices(*node, indices, dynamic)?;
                self.no_result()
            }
            CellOp::IsActive { node, indices } => {
                self.node_indices(*node, indices, false)?;
                self.result(Type::BOOL)
            }
            CellOp::Append { node, indices } | CellOp::Length { node, indices } => {
                self.kind(*node, is_dynamic)?;
                self.node_indices(*node, indices, true)?;
                self.result(Type::I32)
            }
            CellOp::FindCell { node, indices } => {
                self.node_indices(*node, indices, false)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            CellOp::CellAt {
                node,
                indices,
                cell,
            } => {
                self.node_indices(*node, indices, false)?;
                let data = self.node(*node);
                // The elements of a word are where the word is.
                let of = match (data.kind.word(), data.parent) {
                    (Some(_), Some(parent)) => parent,
                    _ => node.node,
                };
                let of = NodeRef { node: of, ..*node };
                self.cell(of, *cell)?;
                self.no_result()
            }
        }
    }

    pub(crate) fn node_op(&self, op: &NodeOp) -> Result<(), String> {
        match op {
            NodeOp::Root { tree } => self.result(Type::Cell(*tree, aerogel_snode::Tree::ROOT)),
            NodeOp::Linearize { node, coords } => {
                self.indices(coords)?;
                let n = self.node(*node).axes.len();
                ensure(coords.len() == n, || {
                    format!("{node} takes {n} coordinates, not {}", coords.len())
                })?;
                self.result(Type::I64)
            }
            NodeOp::Lookup {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, |k| {
                    matches!(k, NodeKind::Dense | NodeKind::Bitmasked)
                })?;
                self.integer(*index)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            NodeOp::Find {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, has_arena)?;
                self.integer(*index)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            NodeOp::Obtain {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, NodeKind::is_sparse)?;
                self.integer(*index)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            NodeOp::CellIsActive {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, NodeKind::is_sparse)?;
                self.integer(*index)?;
                self.result(Type::BOOL)
            }
            NodeOp::MaskWord {
                node,
                container,
                word,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, |k| k == NodeKind::Bitmasked)?;
                self.integer(*word)?;
                self.result(Type::Scalar(ScalarType::U32))
            }
            NodeOp::NextActive {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, |k| k == NodeKind::Hash)?;
                self.is_i64(*index)?;
                self.result(Type::I64)
            }
            NodeOp::ActiveEnd { node, container } => {
                self.container(*node, *container)?;
                self.kind(*node, |k| k == NodeKind::Hash)?;
                self.result(Type::I64)
            }
            NodeOp::Release {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, |k| k.has_list() || k == NodeKind::Bitmasked)?;
                self.integer(*index)?;
                self.no_result()
            }
            NodeOp::ReleaseAll { node, container } => {
                self.container(*node, *container)?;
                self.kind(*node, is_dynamic)?;
                self.no_result()
            }
            NodeOp::Extend { node, container } | NodeOp::ContainerLength { node, container } => {
                self.container(*node, *container)?;
                self.kind(*node, is_dynamic)?;
                self.result(Type::I64)
            }
            NodeOp::ListStale { node } => self.result_of_list(*node, Type::BOOL),
            NodeOp::ListLen { node } => self.result_of_list(*node, Type::I64),
            NodeOp::ListOffset { node, part } => {
                self.is_i64(*part)?;
                self.result_of_list(*node, Type::I64)
            }
            NodeOp::ListCount { node, part, count } => {
                self.kind(*node, NodeKind::is_sparse)?;
                self.is_i64(*part)?;
                self.is_i64(*count)?;
                self.no_result()
            }
            NodeOp::ListScan { node, n_parts } => {
                self.kind(*node, NodeKind::is_sparse)?;
                self.is_i64(*n_parts)?;
                self.no_result()
            }
            NodeOp::ListPut {
                node,
                at,
                cell,
                indices,
            } => {
                self.kind(*node, NodeKind::is_sparse)?;
                self.is_i64(*at)?;
                self.cell(*node, *cell)?;
                self.node_indices(*node, indices, false)?;
                self.no_result()
            }
            NodeOp::ListEntry { node, at } => {
                self.kind(*node, NodeKind::is_sparse)?;
                self.is_i64(*at)?;
                let n = self.env.trees[node.tree].shape(node.node).len();
                let mut types = vec![Type::Cell(node.tree, node.node)];
                types.resize(1 + n, Type::I32);
                ensure(self.results == types, || {
                    "the results are a cell and its indices".into()
                })
            }
            NodeOp::NRecycled { node } => {
                self.kind(*node, has_arena)?;
                self.result(Type::I64)
            }
            NodeOp::Ambient { node } => {
                self.kind(*node, NodeKind::has_list)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            NodeOp::Recycled { node, at } => {
                self.kind(*node, NodeKind::has_list)?;
                self.is_i64(*at)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            NodeOp::Wipe { node, at } => {
                self.kind(*node, has_arena)?;
                self.is_i64(*at)?;
                self.no_result()
            }
            NodeOp::Collect { node } => {
                self.kind(*node, has_arena)?;
                self.no_result()
            }
            NodeOp::Child { node, cell } => {
                let data = self.node(*node);
                let parent = data.parent.ok_or("the root is no child")?;
                let found = self.ty(*cell);
                ensure(found == Type::Cell(node.tree, parent), || {
                    format!("{found} does not hold {node}")
                })?;
                self.result(match data.kind {
                    NodeKind::Place(s) | NodeKind::BitStruct(s) | NodeKind::QuantArray(s) => {
                        Type::RefScalar(s)
                    }
                    NodeKind::Bits(_) => return Err(format!("{node} is part of a word")),
                    _ => Type::Container(node.tree, node.node),
                })
            }
        }
    }
}
