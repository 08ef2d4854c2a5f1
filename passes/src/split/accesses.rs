//! The split fields that a loop accesses, and what it must not do.

use aerogel_ir::{AtomicOp, FieldId, Function, Inst, Op, Region, Type, Value, walk};

use super::{Outcome, Split, mistake};

/// An access to a split field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The `field_at`.
    pub(super) at: Inst,
    pub(super) field: FieldId,
    pub(super) does: Does,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Read,
    Write,
    /// It adds a number, and nobody looks at the one before.
    Add,
}

/// The accesses of a loop to split fields, in order.
#[derive(Default)]
pub(super) struct Accesses(pub(super) Vec<Access>);

impl Accesses {
    /// Those of a loop.
    ///
    /// # Errors
    /// If the loop has an effect that would differ between processes.
    pub(super) fn of(split: &Split<'_>, func: &Function, inst: Inst) -> Outcome<Self> {
        let mut all = Self::default();
        let mut wrong = None;
        let body = body_of(func, inst);
        let used = func.use_counts();
        walk(func, body, &mut |func, inner| {
            let span = func.insts[inner].span;
            let what = match func[inner] {
                Op::Load { place } => return all.note(split, func, (place, Does::Read)),
                Op::Atomic { op, place, .. } => {
                    let adds = matches!(op, AtomicOp::Add | AtomicOp::Sub);
                    let is_used = used[func.insts[inner].results[0]] > 0;
                    let does = if adds && !is_used {
                        Does::Add
                    } else {
                        Does::Write
                    };
                    return all.note(split, func, (place, does));
                }
                Op::Store { place, .. } => return all.note(split, func, (place, Does::Write)),
                Op::Cas { place, .. } if all.is_split(split, func, place) => {
                    return all.note(split, func, (place, Does::Write));
                }
                Op::Random {} => "draws random numbers, which each process would repeat",
                Op::Cas { .. } => "changes data by `atomic_cas` that all processes have",
                Op::Call { .. } => "calls a real function, whose accesses are not known",
                Op::Cell(_) => "changes or queries which cells are active",
                Op::Return { .. } => "leaves the kernel",
                _ => return,
            };
            let message = format!("a loop over split fields {what}");
            let note = "move that to a loop of its own over data that is not split";
            wrong.get_or_insert_with(|| mistake(span, message, note));
        });
        match wrong {
            Some(wrong) => Err(wrong),
            None => Ok(all),
        }
    }

    fn is_split(&self, split: &Split<'_>, func: &Function, place: Value) -> bool {
        matches!(root(func, place), Root::Field(_, field) if split.grid_of(field).is_some())
    }

    fn note(&mut self, split: &Split<'_>, func: &Function, (place, does): (Value, Does)) {
        if let Root::Field(at, field) = root(func, place)
            && split.grid_of(field).is_some()
        {
            self.0.push(Access { at, field, does });
        }
    }
}

/// The region of a parallel loop.
pub(super) fn body_of(func: &Function, inst: Inst) -> Region {
    match func[inst] {
        Op::Parallel { body, .. } | Op::ParallelCells { body, .. } => body,
        _ => unreachable!("the caller looked"),
    }
}

/// Where a storage lies.
pub(super) enum Root {
    /// In an element of a field, which this instruction names.
    Field(Inst, FieldId),
    /// In a variable.
    Local(Value),
    /// In an array argument, or somewhere else.
    Other,
}

/// Where a storage lies.
pub(super) fn root(func: &Function, place: Value) -> Root {
    let Some(def) = func.def(place) else {
        return Root::Other;
    };
    match func[def] {
        Op::FieldAt { field, .. } => Root::Field(def, field),
        // Room in a buffer belongs to the iteration that makes it.
        Op::Local {} | Op::RoomAt { .. } => Root::Local(place),
        Op::ElemRef { base, .. } | Op::MemberRef { base, .. } => root(func, base),
        _ => Root::Other,
    }
}

/// The scalar type of a storage.
pub(super) fn scalar(func: &Function, place: Value) -> Option<aerogel_base::ScalarType> {
    func.ty(place).pointee().and_then(Type::elem)
}
