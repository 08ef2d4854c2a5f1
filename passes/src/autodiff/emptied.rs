//! Derivatives of values in cells that are deactivated: the old values have no influence afterwards, and reads return
//! zero.
//!
//! Going back, adjoints become zero; going forward, the tangents that do not vanish with the cells.
//!
//! ```text
//! deactivate tree0.S1 [i]           ==>      for 0, 8 (k) { store x.grad[i * 8 + k], 0 }     ; where it is active
//! ```

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, Builder, Derivative, Env, FieldId, NodeRef, Op, Type, Value};
use aerogel_snode::NodeKind;

use super::there::component_there;

/// What a node's cells hold of a field that has derivatives.
struct Held {
    field: FieldId,
    derivatives: FieldId,
    /// The numbers of the components.
    components: Vec<usize>,
}

/// Whether derivatives are to be zeroed if a node's cells become inactive.
pub(super) fn matters(env: &Env, node: NodeRef, kind: Derivative) -> bool {
    !held(env, node, kind).is_empty()
}

fn held(env: &Env, node: NodeRef, kind: Derivative) -> Vec<Held> {
    let tree = &env.trees[node.tree];
    if !tree[node.node].kind.is_sparse() {
        return Vec::new();
    }
    let below = tree.subtree(node.node);
    let is_below = |field: FieldId, component: usize| {
        let data = &env.fields[field];
        data.tree == node.tree && below.contains(&data.places[component])
    };
    let of_field = |(field, data): (FieldId, &aerogel_ir::FieldData)| {
        let derivatives = data.derivative(kind)?;
        // A cell that adjoints vanish with may be active again during the backward pass.
        let stays = |k: usize| kind == Derivative::Grad || !is_below(derivatives, k);
        let all = 0..data.places.len();
        let components: Vec<usize> = all.filter(|&k| is_below(field, k) && stays(k)).collect();
        (!components.is_empty()).then_some(Held {
            field,
            derivatives,
            components,
        })
    };
    env.fields.iter().filter_map(of_field).collect()
}

/// Zeroes the derivatives of what a cell holds.
pub(super) fn clear(
    b: &mut Builder<'_>,
    env: &Env,
    kind: Derivative,
    node: NodeRef,
    indices: &[Value],
) {
    let tree = &env.trees[node.tree];
    // A list becomes empty as a whole: the indices are those of the cell that it lies in.
    let named = match tree[node.node].kind {
        NodeKind::Dynamic { .. } => tree[node.node].parent.unwrap_or(node.node),
        _ => node.node,
    };
    for held in held(env, node, kind) {
        let (holder, offset) = env.cells_of(held.field);
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
        zero_box(
            b,
            env,
            held.derivatives,
            &held.components,
            &axes,
            Vec::new(),
        );
    }
}

/// Zeroes elements: along each axis so many, from a multiple of that.
fn zero_box(
    b: &mut Builder<'_>,
    env: &Env,
    field: FieldId,
    components: &[usize],
    axes: &[(Option<Value>, u64, i32)],
    named: Vec<Value>,
) {
    let Some(&(cell, extent, first)) = axes.get(named.len()) else {
        return zero_element(b, env, field, components, &named);
    };
    let constant = |b: &mut Builder<'_>, n: i64| b.constant(Scalar::i32(n as i32));
    let index_of = |b: &mut Builder<'_>, inner: Option<Value>| {
        let first = constant(b, i64::from(first));
        let mut index = inner.map_or(first, |v| b.binary(BinaryOp::Add, v, first));
        if let Some(cell) = cell {
            let cell = b.cast(cell, Type::I32);
            let size = constant(b, extent as i64);
            let begin = b.binary(BinaryOp::Mul, cell, size);
            index = b.binary(BinaryOp::Add, begin, index);
        }
        [&named[..], &[index]].concat()
    };
    if extent == 1 {
        let named = index_of(b, None);
        return zero_box(b, env, field, components, axes, named);
    }
    let [lo, hi, step] = [0, extent as i64, 1].map(|n| constant(b, n));
    let body = b.region(&[Type::I32], |b, params| {
        let named = index_of(b, Some(params[0]));
        zero_box(b, env, field, components, axes, named);
    });
    b.effect(Op::For {
        lo,
        hi,
        step,
        init: Vec::new(),
        body,
    });
}

fn zero_element(
    b: &mut Builder<'_>,
    env: &Env,
    field: FieldId,
    components: &[usize],
    named: &[Value],
) {
    for &component in components {
        match component_there(b, env, field, component, named) {
            None => zero_component(b, env, field, component, named),
            Some(cond) => {
                let then = b.region(&[], |b, _| zero_component(b, env, field, component, named));
                let otherwise = b.region(&[], |_, _| ());
                b.effect(Op::If {
                    cond,
                    then,
                    otherwise,
                });
            }
        }
    }
}

fn zero_component(
    b: &mut Builder<'_>,
    env: &Env,
    field: FieldId,
    component: usize,
    named: &[Value],
) {
    let elem = env.fields[field].elem;
    let to = |ty: Type| ty.to_ref().expect("a field holds numbers");
    let number = elem.elem().expect("derivatives are floats");
    let op = Op::FieldAt {
        field,
        indices: named.to_vec(),
    };
    let mut place = b.value(op, to(elem));
    let shape = elem.shape();
    if !shape.is_empty() {
        let index = digits(component, &shape);
        let index = index.map(|k| b.constant(Scalar::i32(k))).collect();
        let op = Op::ElemRef { base: place, index };
        place = b.value(op, to(Type::Scalar(number)));
    }
    let zero = b.constant(Scalar::zero(number));
    b.store(place, zero);
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
