//! The types of instructions over the nodes of a tree.

use aerogel_base::ScalarType;
use aerogel_snode::{Node, NodeKind};

use crate::op::Op;
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

    fn is_i64(&self, v: Value) -> Result<(), String> {
        let found = self.ty(v);
        ensure(found == Type::I64, || format!("{found} is not an i64"))
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

    pub(crate) fn node_op(&self, op: &Op) -> Result<(), String> {
        match op {
            Op::Root { tree } => self.result(Type::Cell(*tree, aerogel_snode::Tree::ROOT)),
            Op::Linearize { node, coords } => {
                self.indices(coords)?;
                let n = self.node(*node).axes.len();
                ensure(coords.len() == n, || {
                    format!("{node} takes {n} coordinates, not {}", coords.len())
                })?;
                self.result(Type::I64)
            }
            Op::Lookup {
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
            Op::Find {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, has_arena)?;
                self.integer(*index)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            Op::Obtain {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, NodeKind::is_sparse)?;
                self.integer(*index)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            Op::CellIsActive {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, NodeKind::is_sparse)?;
                self.integer(*index)?;
                self.result(Type::BOOL)
            }
            Op::MaskWord {
                node,
                container,
                word,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, |k| k == NodeKind::Bitmasked)?;
                self.integer(*word)?;
                self.result(Type::Scalar(ScalarType::U32))
            }
            Op::NextActive {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, |k| k == NodeKind::Hash)?;
                self.is_i64(*index)?;
                self.result(Type::I64)
            }
            Op::ActiveEnd { node, container } => {
                self.container(*node, *container)?;
                self.kind(*node, |k| k == NodeKind::Hash)?;
                self.result(Type::I64)
            }
            Op::Release {
                node,
                container,
                index,
            } => {
                self.container(*node, *container)?;
                self.kind(*node, |k| k.has_list() || k == NodeKind::Bitmasked)?;
                self.integer(*index)?;
                self.no_result()
            }
            Op::ReleaseAll { node, container } => {
                self.container(*node, *container)?;
                self.kind(*node, is_dynamic)?;
                self.no_result()
            }
            Op::Extend { node, container } | Op::ContainerLength { node, container } => {
                self.container(*node, *container)?;
                self.kind(*node, is_dynamic)?;
                self.result(Type::I64)
            }
            Op::Activate { node, indices } => {
                self.node_indices(*node, indices, false)?;
                self.no_result()
            }
            Op::Deactivate { node, indices } => {
                let dynamic = is_dynamic(self.node(*node).kind);
                self.node_indices(*node, indices, dynamic)?;
                self.no_result()
            }
            Op::IsActive { node, indices } => {
                self.node_indices(*node, indices, false)?;
                self.result(Type::BOOL)
            }
            Op::Append { node, indices } | Op::Length { node, indices } => {
                self.kind(*node, is_dynamic)?;
                self.node_indices(*node, indices, true)?;
                self.result(Type::I32)
            }
            Op::FindCell { node, indices } => {
                self.node_indices(*node, indices, false)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            Op::CellAt {
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
            Op::ListStale { node } => self.result_of_list(*node, Type::BOOL),
            Op::ListLen { node } => self.result_of_list(*node, Type::I64),
            Op::ListOffset { node, part } => {
                self.is_i64(*part)?;
                self.result_of_list(*node, Type::I64)
            }
            Op::ListCount { node, part, count } => {
                self.kind(*node, NodeKind::is_sparse)?;
                self.is_i64(*part)?;
                self.is_i64(*count)?;
                self.no_result()
            }
            Op::ListScan { node, n_parts } => {
                self.kind(*node, NodeKind::is_sparse)?;
                self.is_i64(*n_parts)?;
                self.no_result()
            }
            Op::ListPut {
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
            Op::ListEntry { node, at } => {
                self.kind(*node, NodeKind::is_sparse)?;
                self.is_i64(*at)?;
                let n = self.env.trees[node.tree].shape(node.node).len();
                let mut types = vec![Type::Cell(node.tree, node.node)];
                types.resize(1 + n, Type::I32);
                ensure(self.results == types, || {
                    "the results are a cell and its indices".into()
                })
            }
            Op::NRecycled { node } => {
                self.kind(*node, has_arena)?;
                self.result(Type::I64)
            }
            Op::Ambient { node } => {
                self.kind(*node, NodeKind::has_list)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            Op::Recycled { node, at } => {
                self.kind(*node, NodeKind::has_list)?;
                self.is_i64(*at)?;
                self.result(Type::Cell(node.tree, node.node))
            }
            Op::Wipe { node, at } => {
                self.kind(*node, has_arena)?;
                self.is_i64(*at)?;
                self.no_result()
            }
            Op::Collect { node } => {
                self.kind(*node, has_arena)?;
                self.no_result()
            }
            Op::PlaceAt { address } => {
                self.is_i64(*address)?;
                ensure(matches!(self.results[..], [Type::RefScalar(_)]), || {
                    "the result is the storage of a scalar".into()
                })
            }
            Op::Grow {
                tree,
                control,
                element,
            } => {
                for &number in [tree, control, element] {
                    let found = self.ty(number);
                    ensure(found == Type::Scalar(ScalarType::U32), || {
                        format!("{found} is not a u32")
                    })?;
                }
                self.result(Type::BOOL)
            }
            Op::Clear {
                tree,
                address,
                bytes,
            } => {
                let found = self.ty(*tree);
                ensure(found == Type::Scalar(ScalarType::U32), || {
                    format!("{found} is not a u32")
                })?;
                self.is_i64(*address)?;
                self.is_i64(*bytes)?;
                self.no_result()
            }
            Op::Child { node, cell } => {
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
            _ => unreachable!("the caller picks instructions over nodes"),
        }
    }
}
