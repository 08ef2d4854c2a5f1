//! Elements of fields that are proved to exist, so that they may be read speculatively.

use aerogel_ir::analysis::Ranges;
use aerogel_ir::analysis::access::constant_element;
use aerogel_ir::{FieldId, Function, Op, Value};
use aerogel_snode::NodeKind;

use crate::PassCx;

/// Whether a place is an element of a dense field at indices that are known to be inside.
pub(crate) fn is_inside(func: &Function, cx: &PassCx<'_>, ranges: &Ranges, place: Value) -> bool {
    let Some((field, indices)) = field_at(func, place) else {
        return false;
    };
    let data = &cx.env.fields[field];
    let tree = &cx.env.trees[data.tree];
    let dense = data.places.iter().all(|&place| {
        tree.chain(place).iter().all(|&node| {
            matches!(
                tree[node].kind,
                NodeKind::Root | NodeKind::Dense | NodeKind::Place(_)
            )
        })
    });
    let shape = cx.env.shape(field);
    let mut axes = indices.iter().zip(&shape).enumerate();
    dense
        && axes.all(|(k, (&index, &n))| {
            let offset = i128::from(data.offset.get(k).copied().unwrap_or(0));
            ranges
                .of(func, index)
                .is_some_and(|range| offset <= range.lo && range.hi < offset + i128::from(n))
        })
}

/// The field and the indices of a scalar or of a component that is known.
pub(super) fn field_at(func: &Function, place: Value) -> Option<(FieldId, &[Value])> {
    match func.def_op(place)? {
        Op::FieldAt { field, indices } => Some((*field, indices)),
        Op::ElemRef { base, index } => {
            constant_element(func, *base, index)?;
            field_at(func, *base)
        }
        _ => None,
    }
}
