//! Reverse mode of cells that become inactive: what they held no longer matters, so its adjoints are zero.
//!
//! ```text
//! deactivate tree0.S1 [i]           ==>      for 0, 8 (k) { store x.grad[i * 8 + k], 0 }     ; where it is active
//! ```

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, Env, FieldId, NodeRef, Op, Type, Value};
use aerogel_snode::NodeKind;

use super::reverse::Reverse;

/// The fields with adjoints of which a node's cells hold components, and the numbers of these.
pub(super) fn held(env: &Env, node: NodeRef) -> Vec<(FieldId, Vec<usize>)> {
    let tree = &env.trees[node.tree];
    if !tree[node.node].kind.is_sparse() {
        return Vec::new();
    }
    let below = tree.subtree(node.node);
    let of_field = |(id, data): (FieldId, &aerogel_ir::FieldData)| {
        let places = data.places.iter().enumerate();
        let own: Vec<usize> = places
            .filter(|(_, place)| data.tree == node.tree && below.contains(place))
            .map(|(k, _)| k)
            .collect();
        (data.grad.is_some() && !own.is_empty()).then_some((id, own))
    };
    env.fields.iter().filter_map(of_field).collect()
}

impl Reverse<'_, '_> {
    /// Zeroes the adjoints of what a cell holds.
    pub(super) fn emptied(&mut self, node: NodeRef, indices: &[Value]) {
        if self.fetching.is_some() {
            return;
        }
        let env = self.cx.env;
        let tree = &env.trees[node.tree];
        // A list becomes empty as a whole: the indices are those of the cell that it lies in.
        let named = match tree[node.node].kind {
            NodeKind::Dynamic { .. } => tree[node.node].parent.unwrap_or(node.node),
            _ => node.node,
        };
        let indices: Vec<Value> = indices.iter().map(|&v| self.now(v)).collect();
        for (field, components) in held(env, node) {
            let (holder, offset) = env.cells_of(field);
            let of_cell = tree.shape_axes(named);
            let mut axes = Vec::new();
            for (k, (axis, extent)) in tree.shape_axes(holder.node).into_iter().enumerate() {
                let first = offset.get(k).copied().unwrap_or(0);
                let at = of_cell.iter().position(|(other, _)| *other == axis);
                axes.push(match at {
                    Some(at) => (Some(indices[at]), extent / of_cell[at].1, first),
                    None => (None, extent, first),
                });
            }
            self.zero_box(field, &components, &axes, Vec::new());
        }
    }

    /// Zeroes the adjoints of elements: along each axis so many, from a multiple of that.
    fn zero_box(
        &mut self,
        field: FieldId,
        components: &[usize],
        axes: &[(Option<Value>, u64, i32)],
        named: Vec<Value>,
    ) {
        let Some(&(cell, extent, first)) = axes.get(named.len()) else {
            return self.zero_element(field, components, named);
        };
        let constant = |pass: &mut Self, n: i64| pass.b.constant(Scalar::i32(n as i32));
        let index_of = |pass: &mut Self, inner: Option<Value>| {
            let first = constant(pass, i64::from(first));
            let mut index = inner.map_or(first, |v| pass.b.binary(BinaryOp::Add, v, first));
            if let Some(cell) = cell {
                let cell = pass.b.cast(cell, Type::I32);
                let size = constant(pass, extent as i64);
                let begin = pass.b.binary(BinaryOp::Mul, cell, size);
                index = pass.b.binary(BinaryOp::Add, begin, index);
            }
            [&named[..], &[index]].concat()
        };
        if extent == 1 {
            let named = index_of(self, None);
            return self.zero_box(field, components, axes, named);
        }
        let [lo, hi, step] = [0, extent as i64, 1].map(|n| constant(self, n));
        let body = self.inside(&[Type::I32], |pass, params| {
            let named = index_of(pass, Some(params[0]));
            pass.zero_box(field, components, axes, named);
        });
        self.b.effect(Op::For {
            lo,
            hi,
            step,
            init: Vec::new(),
            body,
        });
    }

    fn zero_element(&mut self, field: FieldId, components: &[usize], indices: Vec<Value>) {
        let env = self.cx.env;
        let adjoints = env.fields[field].grad.expect("the caller asked");
        let elem = env.fields[field].elem;
        let to = |ty: Type| ty.to_ref().expect("a field holds numbers");
        let number = Type::Scalar(elem.elem().expect("adjoints are floats"));
        for &component in components {
            let indices = indices.clone();
            self.where_component_active(adjoints, &indices.clone(), component, |pass| {
                let op = Op::FieldAt {
                    field: adjoints,
                    indices,
                };
                let mut place = pass.b.value(op, to(elem));
                let shape = elem.shape();
                if !shape.is_empty() {
                    let index = digits(component, &shape);
                    let index = index.map(|k| pass.b.constant(Scalar::i32(k)));
                    let op = Op::ElemRef {
                        base: place,
                        index: index.collect(),
                    };
                    place = pass.b.value(op, to(number));
                }
                let zero = pass.zero(number);
                pass.b.store(place, zero);
            });
        }
    }
}

/// The indices of a component of a tensor.
fn digits(component: usize, shape: &[u32]) -> impl Iterator<Item = i32> {
    let mut rest = component as u32;
    let mut index = Vec::new();
    for &extent in shape.iter().rev() {
        index.push((rest % extent) as i32);
        rest /= extent;
    }
    index.into_iter().rev()
}
