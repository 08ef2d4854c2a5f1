//! Where adjoints exist: whether their cell is active.

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, Builder, CellOp, Env, FieldId, NodeRef, Op, Type, Value};

/// Components of a field that are there if a cell of a node is; always if there is no node.
pub(super) type Group = (Option<NodeRef>, Vec<usize>);

/// Whether a component of an element of a field is there; nothing if it always is.
pub(super) fn component_there(
    b: &mut Builder<'_>,
    env: &Env,
    field: FieldId,
    component: usize,
    named: &[Value],
) -> Option<Value> {
    let groups = groups(env, field);
    let mut all = groups.iter();
    let (node, _) = all.find(|(_, components)| components.contains(&component))?;
    node.map(|node| is_there(b, env, field, node, named))
}

/// The components of a field by what must be active for them to be there.
pub(super) fn groups(env: &Env, field: FieldId) -> Vec<Group> {
    let data = &env.fields[field];
    let tree = &env.trees[data.tree];
    let mut groups: Vec<Group> = Vec::new();
    for (k, &place) in data.places.iter().enumerate() {
        let node = NodeRef {
            tree: data.tree,
            node: tree.holder(place),
        };
        let node = tree.is_below_sparse(place).then_some(node);
        match groups.iter_mut().find(|(other, _)| *other == node) {
            Some((_, components)) => components.push(k),
            None => groups.push((node, vec![k])),
        }
    }
    groups
}

/// Whether the cell of a node is active in which an element of a field lies.
pub(super) fn is_there(
    b: &mut Builder<'_>,
    env: &Env,
    field: FieldId,
    node: NodeRef,
    named: &[Value],
) -> Value {
    let offset = &env.fields[field].offset;
    let mut indices = Vec::new();
    for (k, &index) in named.iter().enumerate() {
        let by = offset.get(k).copied().unwrap_or(0);
        indices.push(if by == 0 {
            index
        } else {
            let ty = b.func.elem(index);
            let by = b.constant(Scalar::int(ty, i128::from(by)));
            b.binary(BinaryOp::Sub, index, by)
        });
    }
    let op = Op::Cell(CellOp::IsActive { node, indices });
    b.value(op, Type::BOOL)
}
