//! Elements of fields and arrays, and what loops do to them.

use aerogel_base::Scalar;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{Builder, CompareOp, Effect, Function, Inst, Op, Type, Value};

/// The storage that a storage is part of; most often itself.
pub(super) fn whole(func: &Function, place: Value) -> Value {
    match func.def_op(place) {
        Some(&(Op::ElemRef { base, .. } | Op::MemberRef { base, .. })) => whole(func, base),
        _ => place,
    }
}

/// The element of a field or an array that a storage is, or is part of.
pub(super) fn element(func: &Function, place: Value) -> Option<Value> {
    let whole = whole(func, place);
    indices(func, whole).map(|_| whole)
}

/// The indices of an element of a field or an array.
pub(super) fn indices(func: &Function, place: Value) -> Option<&[Value]> {
    indices_of(func.def_op(place)?)
}

/// The same for the instruction that names the element.
pub(super) fn indices_of(element: &Op) -> Option<&[Value]> {
    match element {
        Op::FieldAt { indices, .. } | Op::ArrayAt { indices, .. } => Some(indices),
        _ => None,
    }
}

/// Whether a value is the same in all iterations of a loop, and can be computed before it. `inside` marks what is made in
/// the loop.
pub(super) fn is_fixed(func: &Function, inside: &SecondaryMap<Value, bool>, value: Value) -> bool {
    if !inside[value] {
        return true;
    }
    let Some(op) = func.def_op(value) else {
        return false;
    };
    let mut fixed = op.effect() == Effect::Pure;
    op.operands(|v| fixed = fixed && is_fixed(func, inside, v));
    fixed
}

/// Whether a `for` loop whose step is a constant runs at all.
pub(super) fn runs(b: &mut Builder<'_>, looped: Inst) -> Value {
    let Op::For { lo, hi, step, .. } = b.func[looped] else {
        unreachable!("only `for` loops count")
    };
    let up = b.func.as_const(step).is_some_and(|step| step.as_i128() > 0);
    let op = if up { CompareOp::Lt } else { CompareOp::Gt };
    b.compare(op, lo, hi)
}

/// What `read` reads, if a condition holds, and zero otherwise.
pub(super) fn read_if(
    b: &mut Builder<'_>,
    cond: Value,
    ty: Type,
    read: impl FnOnce(&mut Builder<'_>) -> Value,
) -> Value {
    let zero = Scalar::zero(ty.scalar().expect("an element that is a number"));
    let read = |b: &mut Builder<'_>| {
        let value = read(b);
        b.yields(vec![value]);
    };
    let results = b.if_(cond, &[ty], read, |b| {
        let zero = b.constant(zero);
        b.yields(vec![zero]);
    });
    results[0]
}
