//! The memory that an access belongs to, and the indices of its element.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::boxes::Storage;
use aerogel_ir::{Arg, Derivative, Env, FieldId, Function, Op, Value};

/// The places that hold values when the kernel is over (`still_stored.rs`).
pub(crate) type StillStored = SecondaryMap<Value, Option<Value>>;

/// The memory that a place belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Memory {
    /// A field, and that of its derivatives.
    Field(FieldId, Option<FieldId>),
    /// An array, and that of its derivatives.
    Array(Arg, Option<Arg>),
    /// A local.
    Local(Value),
    /// A buffer.
    Buffer(Value),
}

impl Memory {
    /// Whether there is memory for derivatives beside it.
    pub(crate) fn has_derivatives(self) -> bool {
        matches!(self, Self::Field(_, Some(_)) | Self::Array(_, Some(_)))
    }

    /// The field or the array.
    pub(super) fn storage(self) -> Option<Storage> {
        match self {
            Self::Field(field, _) => Some(Storage::Field(field)),
            Self::Array(array, _) => Some(Storage::Array(array)),
            Self::Local(_) | Self::Buffer(_) => None,
        }
    }
}

/// The memory of a place.
pub(crate) fn memory_of(func: &Function, env: &Env, kind: Derivative, place: Value) -> Memory {
    match func.def_op(place) {
        Some(Op::Local {}) => Memory::Local(place),
        Some(&Op::RoomAt { room, .. }) => match func.def_op(room) {
            Some(&Op::Reserve { buffer, .. }) => Memory::Buffer(buffer),
            op => unreachable!("{op:?} makes no room"),
        },
        Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => {
            memory_of(func, env, kind, base)
        }
        Some(&Op::FieldAt { field, .. }) => {
            Memory::Field(field, env.fields[field].derivative(kind))
        }
        Some(&Op::ArrayAt { array, .. }) => {
            let mut params = func.params.iter();
            let at = params.position(|p| p.of == Some((kind, array)));
            Memory::Array(array, at.map(|k| Arg::from_u32(k as u32)))
        }
        op => unreachable!("{op:?} makes no storage of a scalar program"),
    }
}

/// The place of a whole element of a field or array, and what names a component of it.
pub(super) fn element_of(func: &Function, place: Value) -> Option<(Value, Vec<Value>)> {
    match func.def_op(place) {
        Some(Op::FieldAt { .. } | Op::ArrayAt { .. }) => Some((place, Vec::new())),
        Some(Op::ElemRef { base, index }) => {
            let (whole, outer) = element_of(func, *base).filter(|(_, outer)| outer.is_empty())?;
            Some((whole, [&outer[..], index].concat()))
        }
        _ => None,
    }
}

/// The indices of an element.
pub(super) fn indices(func: &Function, place: Value) -> &[Value] {
    match func.def_op(place) {
        Some(Op::ElemRef { base, .. }) => indices(func, *base),
        Some(&Op::MemberRef { base, .. }) => indices(func, base),
        Some(Op::FieldAt { indices, .. } | Op::ArrayAt { indices, .. }) => indices,
        _ => &[],
    }
}
