//! Instructions over nodes: explicit queries and changes of activity by kernels.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{AssertKind, Builder, CellOp, CompareOp, NodeOp, NodeRef, Op, Type, Value};
use aerogel_snode::{LevelAxis, NodeId, NodeKind, Tree};

use super::inside::{and, assert_inside, or_zero};
use super::{Access, Cells, Known, Target, slot};
use crate::PassCx;
use crate::cells::nest;
use crate::lower_access::coordinate;

impl Cells {
    /// Lowers an instruction over a node; its result, if it has one.
    pub(in crate::lower_access) fn cell_op(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        op: CellOp,
    ) -> Vec<Value> {
        match op {
            CellOp::Activate { node, indices } => {
                self.cell(
                    cursor,
                    cx,
                    node,
                    &indices,
                    Access::Write,
                    false,
                    (&cx.env.describe(node), &[]),
                );
                Vec::new()
            }
            CellOp::Deactivate { node, indices } => {
                self.deactivate(cursor, cx, node, &indices);
                Vec::new()
            }
            CellOp::FindCell { node, indices } => {
                vec![
                    self.cell(cursor, cx, node, &indices, Access::Read, true, ("", &[]))
                        .0,
                ]
            }
            CellOp::IsActive { node, indices } => vec![self.is_active(cursor, cx, node, &indices)],
            CellOp::Append { node, indices } => vec![self.append(cursor, cx, node, &indices)],
            CellOp::Length { node, indices } => {
                let (container, inside) = self.container(cursor, cx, node, &indices, Access::Read);
                let length = NodeOp::ContainerLength { node, container };
                let x = cursor.value(length, Type::I64);
                let length = cursor.value(Op::Cast { x }, Type::I32);
                vec![or_zero(cursor, inside, length)]
            }
            CellOp::CellAt {
                node,
                indices,
                cell,
            } => {
                self.cell_at(cursor.func, cx, node, indices, cell);
                Vec::new()
            }
        }
    }

    /// The container of `node` in the cell of its parent at indices.
    fn container(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
        access: Access,
    ) -> (Value, Option<Value>) {
        let parent = cx.env.trees[node.tree][node.node].parent;
        let holder = NodeRef {
            tree: node.tree,
            node: parent.expect("the root has no container"),
        };
        let (cell, inside) = self.cell(
            cursor,
            cx,
            holder,
            indices,
            access,
            false,
            (&cx.env.describe(node), &[]),
        );
        let ty = Type::Container(node.tree, node.node);
        (cursor.value(NodeOp::Child { node, cell }, ty), inside)
    }

    /// The container and number of a cell of a sparse node, at indices that are inside.
    fn slot_of(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
    ) -> (Value, Value) {
        let tree = &cx.env.trees[node.tree];
        let parent = tree[node.node].parent.expect("the root is not sparse");
        let coarse = coarser(cursor, tree, node.node, parent, indices);
        let holder = NodeRef {
            tree: node.tree,
            node: parent,
        };
        let (cell, _) = self.cell(cursor, cx, holder, &coarse, Access::Read, true, ("", &[]));
        let path = tree.path(node.node);
        let level = path.levels.last().expect("a path ends in its node");
        slot(cursor, node, level, indices, cell)
    }

    fn is_active(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
    ) -> Value {
        let tree = &cx.env.trees[node.tree];
        let target = Target::new(cx, node, indices.to_vec());
        let axes = self.are_inside(cursor, &target, 0);
        let inside = axes.all(cursor);
        // A dense cell is as active as what it lies in.
        let chain = tree.sparse_chain(node.node);
        let Some(&last) = chain.last() else {
            return inside.unwrap_or_else(|| cursor.constant(Scalar::bool(true)));
        };
        let asked = NodeRef {
            tree: node.tree,
            node: last,
        };
        let clamped = axes.clamp(cursor, indices);
        let coarse = coarser(cursor, tree, node.node, last, &clamped);
        let (container, index) = self.slot_of(cursor, cx, asked, &coarse);
        let op = NodeOp::CellIsActive {
            node: asked,
            container,
            index,
        };
        let active = cursor.value(op, Type::BOOL);
        match inside {
            None => active,
            Some(rhs) => and(cursor, active, rhs),
        }
    }

    fn deactivate(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
    ) {
        let tree = &cx.env.trees[node.tree];
        if let NodeKind::Dynamic { .. } = tree[node.node].kind {
            let (container, inside) = self.container(cursor, cx, node, indices, Access::Read);
            if let Some(cond) = inside {
                let parent = tree[node.node].parent.expect("a dynamic node has one");
                let holder = NodeRef {
                    tree: node.tree,
                    node: parent,
                };
                let target = Target::new(cx, holder, indices.to_vec());
                assert_inside(cursor, &target, cond, (&cx.env.describe(node), &[]));
            }
            cursor.inst(NodeOp::ReleaseAll { node, container }, &[]);
        } else {
            let target = Target::new(cx, node, indices.to_vec());
            if let Some(cond) = self.are_inside(cursor, &target, 0).all(cursor) {
                assert_inside(cursor, &target, cond, (&cx.env.describe(node), &[]));
            }
            let (container, index) = self.slot_of(cursor, cx, node, indices);
            if tree[node.node].kind == NodeKind::Bitmasked {
                let lookup = NodeOp::Lookup {
                    node,
                    container,
                    index,
                };
                let cell = cursor.value(lookup, Type::Cell(node.tree, node.node));
                nest::release_below(cursor, tree, node.tree, node.node, cell);
            }
            let release = NodeOp::Release {
                node,
                container,
                index,
            };
            cursor.inst(release, &[]);
        }
        self.releases(node, cx);
    }

    fn append(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
    ) -> Value {
        let (container, _) = self.container(cursor, cx, node, indices, Access::Write);
        let number = cursor.value(NodeOp::Extend { node, container }, Type::I64);
        self.makes(node, cx);
        let zero = cursor.constant(Scalar::int(ScalarType::I64, 0));
        let cond = cursor.value(
            Op::Compare {
                op: CompareOp::Ge,
                lhs: number,
                rhs: zero,
            },
            Type::BOOL,
        );
        let n = cx.env.trees[node.tree][node.node].n_cells;
        let holes = vec!["{}"; indices.len()].join(", ");
        let assert = Op::Assert {
            cond,
            kind: AssertKind::Bounds,
            template: format!(
                "{} is full: the list at ({holes}) has {n} elements already",
                cx.env.describe(node)
            ),
            args: indices.to_vec(),
        };
        cursor.inst(assert, &[]);
        // What is appended is stored next: there is its cell.
        let find = NodeOp::Find {
            node,
            container,
            index: number,
        };
        let cell = cursor.value(find, Type::Cell(node.tree, node.node));
        let number = cursor.value(Op::Cast { x: number }, Type::I32);
        let tree = &cx.env.trees[node.tree];
        let own = tree[node.node].axes[0].axis;
        let axes = tree.shape_axes(node.node);
        let at = axes.iter().position(|a| a.0 == own);
        let mut all = indices.to_vec();
        all.insert(at.expect("a node's axis is among its shape's"), number);
        self.below[number] = Some(n.into());
        let target = Target::new(cx, node, all);
        let known = Known {
            cell,
            since: self.now,
            active: true,
            inside: None,
        };
        let depth = target.path.levels.len() - 1;
        let key = target.key(cursor.func, node.tree, depth);
        self.known.insert(key, known);
        number
    }
}

/// The indices of the cell of `above` that the cell of `node` at `indices` lies in.
fn coarser(
    cursor: &mut Builder<'_>,
    tree: &Tree,
    node: NodeId,
    above: NodeId,
    indices: &[Value],
) -> Vec<Value> {
    let axes = tree.shape_axes(node);
    tree.shape_axes(above)
        .iter()
        .map(|&(axis, extent)| {
            let index = axes.iter().position(|a| a.0 == axis);
            let index = index.expect("a node has the axes of those above");
            let axis = LevelAxis {
                index,
                divisor: axes[index].1 / extent,
                extent,
                wraps: false,
            };
            coordinate(cursor, indices[index], &axis)
        })
        .collect()
}
