//! Operations of kernels on nodes: `ti.activate(node, indices)` and related functions, and the lists of
//! dynamic nodes, `x[i].append(v)`.

use std::rc::Rc;

use aerogel_base::ErrorKind;
use aerogel_ir::{BinaryOp, CellOp, NodeRef, Op, Type};
use aerogel_snode::{NodeId, NodeKind};

use crate::host::{FieldRef, Known, SNodeRef, TensorShape};
use crate::intrinsics::{Maker, NodeFunction};
use crate::lower::calls::Args;
use crate::lower::values::number::elem;
use crate::lower::values::{List, Origin, Place, SeqKind, Val};
use crate::lower::{Lower, Res};

impl Lower<'_, '_> {
    pub(crate) fn node(&mut self, node: &SNodeRef) -> Res<NodeRef> {
        let tree = self.tree(node.tree)?;
        let id = NodeId::from_u32(node.node);
        let data = &self.module.env.trees[tree][id];
        // A field's own node stands for the one whose cells hold it.
        let node = match (data.kind, data.parent) {
            (NodeKind::BitStruct(_), Some(parent)) => parent,
            (kind, _) if kind.scalar().is_some() => self.module.env.trees[tree].holder(id),
            _ => id,
        };
        Ok(NodeRef { tree, node })
    }

    /// How many indices a cell of a node has.
    pub(crate) fn n_axes(&self, node: NodeRef) -> usize {
        self.module.env.trees[node.tree].shape_axes(node.node).len()
    }

    fn kind(&self, node: NodeRef) -> NodeKind {
        self.module.env.trees[node.tree][node.node].kind
    }

    pub(crate) fn node_function(
        &mut self,
        name: &str,
        function: NodeFunction,
        args: &Args,
    ) -> Res<Val> {
        let (node, offset) = match self.arg(name, args, 0, "node")?.clone() {
            Val::Known(Known::SNode(node)) => (self.node(&node)?, Vec::new()),
            Val::Known(Known::Field(field)) => {
                let id = self.field(&field)?;
                let env = &self.module.env;
                (env.cells_of(id).0, env.fields[id].offset.clone())
            }
            other => {
                let what = self.describe(&other);
                return self.fail_noted(
                    ErrorKind::Type,
                    "E0232",
                    format!("`{name}` takes a node of a layout, not {what}"),
                    "a field's node is `x.parent()`, the one above it `x.parent(2)`",
                );
            }
        };
        let kind = self.kind(node);
        let dynamic = matches!(kind, NodeKind::Dynamic { .. });
        let takes = match function {
            NodeFunction::Append | NodeFunction::Length => dynamic,
            NodeFunction::IsActive | NodeFunction::Activate => kind.is_sparse() && !dynamic,
            NodeFunction::Deactivate => kind.is_sparse(),
        };
        let changes = matches!(function, NodeFunction::Activate | NodeFunction::Deactivate);
        // Programs do this for layouts that are dense for a while, and Taichi says nothing of it.
        let in_vain = changes && matches!(kind, NodeKind::Dense);
        if in_vain {
            self.warn(format!(
                "`{name}` does nothing: cells of a dense node are active where the cell around them is"
            ));
        } else if !takes {
            let kinds = match function {
                NodeFunction::Append | NodeFunction::Length => "dynamic nodes",
                NodeFunction::IsActive | NodeFunction::Activate => {
                    "pointer, hash and bitmasked nodes"
                }
                NodeFunction::Deactivate => "pointer, hash, bitmasked and dynamic nodes",
            };
            return self.fail(
                ErrorKind::Type,
                "E0232",
                format!(
                    "`{name}` works on {kinds}, and this node is {}",
                    kind.name().unwrap_or("the root")
                ),
            );
        }
        let indices = self.arg(name, args, 1, "indices")?.clone();
        let cell = self.holder_if(dynamic, node);
        let ndim = self.n_axes(cell) as u32;
        let mut indices = self.cell_indices(&[indices], ndim, "the node")?;
        // A field's indices begin at its offset, a node's cells at 0.
        for (index, first) in indices.iter_mut().zip(offset) {
            let mut b = self.builder();
            let first = b.i32(first);
            *index = b.binary(aerogel_ir::BinaryOp::Sub, *index, first);
        }
        match function {
            _ if in_vain => Ok(Val::none()),
            NodeFunction::Activate => {
                self.effect(CellOp::Activate { node, indices });
                Ok(Val::none())
            }
            NodeFunction::Deactivate => {
                self.note_emptied(node)?;
                self.effect(CellOp::Deactivate { node, indices });
                Ok(Val::none())
            }
            NodeFunction::IsActive => {
                let active = self.value(CellOp::IsActive { node, indices }, Type::BOOL);
                Ok(Val::Value(self.builder().cast(active, Type::I32)))
            }
            NodeFunction::Length => Ok(Val::Value(
                self.value(CellOp::Length { node, indices }, Type::I32),
            )),
            NodeFunction::Append => {
                let val = self.arg(name, args, 2, "val")?.clone();
                let field = self.field_of_node(name, node, args)?;
                let list = List {
                    fields: Rc::new([field]),
                    node,
                    indices,
                };
                self.append(&list, &val)
            }
        }
    }

    fn holder_if(&self, dynamic: bool, node: NodeRef) -> NodeRef {
        let parent = self.module.env.trees[node.tree][node.node].parent;
        match parent {
            Some(parent) if dynamic => NodeRef {
                tree: node.tree,
                node: parent,
            },
            _ => node,
        }
    }

    /// The places in a dynamic node's cells, as one field.
    fn field_of_node(&mut self, name: &str, node: NodeRef, args: &Args) -> Res<Rc<FieldRef>> {
        let tree = self.module.env.trees[node.tree].clone();
        let mut places = Vec::new();
        for &child in &tree[node.node].children {
            if let Some(elem) = tree[child].kind.scalar() {
                places.push((child, elem));
            }
        }
        let (Some(&(first, elem)), Some(Val::Known(Known::SNode(of)))) =
            (places.first(), args.get(0, "node"))
        else {
            return self.fail(
                ErrorKind::Type,
                "E0232",
                format!("`{name}` needs a field placed in the node's cells"),
            );
        };
        if places.iter().any(|p| p.1 != elem) {
            return self.fail_noted(
                ErrorKind::Type,
                "E0232",
                format!("the fields in the node's cells are of different types, so `{name}` cannot take one value for them"),
                "append to one field, `i = x[..].append(v)`, and store the others at that index",
            );
        }
        let n = places.len() as u32;
        Ok(Rc::new(FieldRef {
            handle: of.handle,
            name: tree[first].name.clone(),
            tree: of.tree,
            places: places.iter().map(|p| p.0).collect(),
            elem,
            shape: if n == 1 {
                TensorShape::Scalar
            } else {
                TensorShape::Vector(n)
            },
            ndim: tree.shape_axes(first).len() as u32,
            offset: Vec::new(),
        }))
    }

    /// `x[i]` where only the index along a dynamic node's axis is missing; `x` is a field or what
    /// makes up a field of structs.
    pub(crate) fn list_at(
        &mut self,
        fields: &[Rc<FieldRef>],
        indices: &[Val],
    ) -> Res<Option<List>> {
        let Some(field) = fields.first() else {
            return Ok(None);
        };
        let id = self.field(field)?;
        let (node, offset) = self.module.env.cells_of(id);
        let given = self.spread(indices)?;
        if !matches!(self.kind(node), NodeKind::Dynamic { .. })
            || given.len() + 1 != field.ndim as usize
        {
            return Ok(None);
        }
        let at = self.dynamic_axis(node);
        let values = self.cell_indices(indices, field.ndim - 1, "the list")?;
        let mut rest = offset;
        if at < rest.len() {
            rest.remove(at);
        }
        let indices = values
            .into_iter()
            .enumerate()
            .map(|(k, index)| match rest.get(k) {
                None | Some(0) => index,
                Some(&first) => {
                    let elem = self
                        .ty(index)
                        .elem()
                        .unwrap_or(aerogel_base::ScalarType::I32);
                    let first = aerogel_base::Scalar::int(elem, first.into());
                    let first = self.builder().constant(first);
                    self.builder().binary(BinaryOp::Sub, index, first)
                }
            })
            .collect();
        Ok(Some(List {
            fields: fields.into(),
            node,
            indices,
        }))
    }

    /// Which of the indices is along a dynamic node's axis.
    fn dynamic_axis(&self, node: NodeRef) -> usize {
        let tree = &self.module.env.trees[node.tree];
        let own = tree[node.node].axes[0].axis;
        let axes = tree.shape_axes(node.node);
        axes.iter()
            .position(|a| a.0 == own)
            .expect("a node's axes are among its shape's")
    }

    pub(crate) fn list_method(&mut self, list: &List, name: &str, args: &Args) -> Res<Val> {
        let (node, indices) = (list.node, list.indices.clone());
        match name {
            "append" => {
                let val = self.arg("append", args, 0, "val")?.clone();
                self.append(list, &val)
            }
            "length" => Ok(Val::Value(
                self.value(CellOp::Length { node, indices }, Type::I32),
            )),
            "deactivate" => {
                self.note_emptied(node)?;
                self.effect(CellOp::Deactivate { node, indices });
                Ok(Val::none())
            }
            _ => self.fail_noted(
                ErrorKind::Compilation,
                "E0302",
                format!("a list of a dynamic node has no attribute `{name}`"),
                "it has `append`, `length` and `deactivate`; give all indices for an element",
            ),
        }
    }

    /// Appends a value; the result is its index.
    fn append(&mut self, list: &List, val: &Val) -> Res<Val> {
        // The value first: it may itself read the list.
        let val = match &list.fields[..] {
            [field] => {
                let id = self.field(field)?;
                let ty = self.module.env.fields[id].elem;
                Val::Value(self.convert(val, ty)?)
            }
            _ => val.clone(),
        };
        let (node, indices) = (list.node, list.indices.clone());
        let number = self.value(
            CellOp::Append {
                node,
                indices: indices.clone(),
            },
            Type::I32,
        );
        let at = self.dynamic_axis(node);
        let mut own = indices;
        own.insert(at, number);
        let mut places = Vec::new();
        for field in list.fields.iter() {
            let id = self.field(field)?;
            let offset = self.module.env.fields[id].offset.clone();
            let mut all = own.clone();
            for (index, &first) in all.iter_mut().zip(&offset) {
                if first != 0 {
                    let first = self.builder().i32(first);
                    *index = self.builder().binary(BinaryOp::Add, *index, first);
                }
            }
            let ty = self.module.env.fields[id]
                .elem
                .to_ref()
                .expect("a number or tensor can be stored");
            let element = Op::FieldAt {
                field: id,
                indices: all,
            };
            let place = self.value(element, ty);
            places.push(Val::Place(Place::Ref {
                place,
                origin: Origin::Field,
            }));
        }
        match &places[..] {
            [one] => self.store_val(one, &val)?,
            all => self.store_leaves(all, &val)?,
        }
        Ok(Val::Value(number))
    }

    /// `ti.rescale_index(a, b, I)`: the index in `b` of the cell that the index `I` in `a` lies in.
    pub(crate) fn rescale_index(&mut self, name: &str, args: &Args) -> Res<Val> {
        let mut shapes = Vec::new();
        for (k, what) in ["a", "b"].into_iter().enumerate() {
            let node = match self.arg(name, args, k, what)?.clone() {
                Val::Known(Known::SNode(node)) => self.node(&node)?,
                Val::Known(Known::Field(field)) => {
                    let id = self.field(&field)?;
                    self.module.env.cells_of(id).0
                }
                other => {
                    let what = self.describe(&other);
                    return self.fail(
                        ErrorKind::Type,
                        "E0232",
                        format!("`{name}` takes fields or nodes, not {what}"),
                    );
                }
            };
            shapes.push(self.module.env.trees[node.tree].shape(node.node));
        }
        let index = self.arg(name, args, 2, "I")?.clone();
        let items = self.spread(&[index])?;
        let mut rescaled = Vec::new();
        for (k, item) in items.into_iter().enumerate() {
            let (Some(&a), Some(&b)) = (shapes[0].get(k), shapes[1].get(k)) else {
                rescaled.push(item);
                continue;
            };
            let ty = self.expect_numeric(&item)?;
            let value = self.convert(&item, ty)?;
            let (op, by) = if a > b {
                (BinaryOp::FloorDiv, a / b)
            } else {
                (BinaryOp::Mul, b / a)
            };
            let elem = elem(ty);
            let by = aerogel_base::Scalar::int(elem, i128::from(by));
            let by = self.builder().constant(by);
            rescaled.push(Val::Value(self.builder().binary(op, value, by)));
        }
        let all = Val::seq(rescaled, SeqKind::List);
        self.maker(
            "Vector",
            Maker::List,
            &Args {
                positional: vec![all],
                keywords: Vec::new(),
            },
        )
    }
}
