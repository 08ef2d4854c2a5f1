//! What a loop does to each class of memory, and which accesses can be a race because of it.

use aerogel_base::NoteKind;
use aerogel_ir::analysis::access::{Class, classes, has_classes};
use aerogel_ir::{Env, Function, Op, Region, Value, walk};

/// The accesses of a loop that calls no functions.
pub(super) struct Accesses(Vec<(Class, Of)>);

/// The accesses to a class.
struct Of {
    kinds: Vec<NoteKind>,
    cells: Option<Cells>,
}

/// Each iteration has cells of its own: the index of the loop along an axis is that of the cell along the axis with this number.
/// The offset of the field is added to it.
#[derive(PartialEq, Eq)]
struct Cells {
    offset: Vec<i32>,
    axes: Vec<usize>,
}

impl Accesses {
    /// Those of a loop with this body; nothing if it calls functions.
    pub(super) fn of(func: &Function, env: &Env, body: Region) -> Option<Self> {
        let (mut accesses, mut calls) = (Self(Vec::new()), false);
        let indices = &func.regions[body].params;
        walk(func, body, &mut |func, inst| match func[inst] {
            Op::Load { place } => accesses.add(func, env, indices, (NoteKind::Read, place)),
            Op::Store { place, .. } => accesses.add(func, env, indices, (NoteKind::Write, place)),
            Op::Atomic { place, .. } => accesses.add(func, env, indices, (NoteKind::Atomic, place)),
            Op::Call { .. } => calls = true,
            _ => {}
        });
        (!calls).then_some(accesses)
    }

    fn add(
        &mut self,
        func: &Function,
        env: &Env,
        indices: &[Value],
        (kind, place): (NoteKind, Value),
    ) {
        if !has_classes(func, place) {
            return;
        }
        let all: Vec<Class> = known_classes(func, env, place).collect();
        for class in all {
            let cells = cells(func, env, indices, place);
            match self.0.iter_mut().find(|(other, _)| *other == class) {
                Some((_, of)) => {
                    of.kinds.push(kind);
                    if of.cells != cells {
                        of.cells = None;
                    }
                }
                None => {
                    let kinds = vec![kind];
                    self.0.push((class, Of { kinds, cells }));
                }
            }
        }
    }

    /// Whether accesses to a storage can be a race: it is written, or changed atomically and read, and not each iteration has
    /// cells of its own.
    pub(super) fn can_race(&self, func: &Function, env: &Env, place: Value) -> bool {
        known_classes(func, env, place).any(|class| {
            self.0.iter().any(|(other, of)| {
                let has = |kind| of.kinds.contains(&kind);
                *other == class
                    && of.cells.is_none()
                    && (has(NoteKind::Write) || has(NoteKind::Read) && has(NoteKind::Atomic))
            })
        })
    }
}

/// The classes of a storage. All arrays are one, since the launcher may find that they overlap.
fn known_classes(func: &Function, env: &Env, place: Value) -> impl Iterator<Item = Class> {
    classes(func, env, place)
        .into_iter()
        .map(|class| match class {
            Class::Array(_) => Class::Arrays,
            class => class,
        })
}

/// How a storage of a field follows from the indices of the loop, if it is another one in each iteration.
fn cells(func: &Function, env: &Env, of_loop: &[Value], place: Value) -> Option<Cells> {
    match func.def_op(place)? {
        Op::ElemRef { base, .. } => cells(func, env, of_loop, *base),
        Op::FieldAt { field, indices } => {
            let axis = |index: &Value| indices.iter().position(|other| other == index);
            Some(Cells {
                offset: env.fields[*field].offset.clone(),
                axes: of_loop.iter().map(axis).collect::<Option<_>>()?,
            })
        }
        _ => None,
    }
}
