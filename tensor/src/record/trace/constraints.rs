//! Constraints that a replay infers for the next: which values are memory from the start, and with which shape.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::ir::{Dim, Program};

use super::super::{RecordError, Recorded};
use super::blocks::BlockId;
use super::{FieldDef, State, Value};

/// The subject of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// A value that a block changes.
    Changed(Value),
    /// The mask of points that have left a loop.
    Left(BlockId),
    /// The mask of points that have left an iteration of a loop.
    Skipped(BlockId),
}

/// Where memory has elements: at all indices or at the active cells of a field.
#[derive(Clone, Debug)]
pub(super) enum Placement {
    /// At all indices, as far as is known.
    All,
    /// Placement the active cells of a field.
    Cells(Arc<FieldDef>),
    /// At all indices, since some access is not at an active cell.
    Everywhere,
}

impl Placement {
    pub(super) fn field(&self) -> Option<&Arc<FieldDef>> {
        match self {
            Self::Cells(field) => Some(field),
            Self::All | Self::Everywhere => None,
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Cells(a), Self::Cells(b)) => a.is_same(b),
            (Self::All, Self::All) | (Self::Everywhere, Self::Everywhere) => true,
            _ => false,
        }
    }
}

/// The inferred constraint of a subject.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    /// Its shape, in terms of the program of the replay that has inferred it; the program is set when that replay is complete.
    dims: Vec<Dim>,
    program: Option<Arc<Program>>,
    /// The sizes as text that is the same in each replay.
    keys: Vec<String>,
    pub(super) at: Placement,
    /// The step that has inferred it.
    step: usize,
}

impl Constraint {
    fn is(&self, other: &Self) -> bool {
        self.keys == other.keys && self.at.is(&other.at)
    }
}

/// The constraints from earlier replays, and those that the current one infers.
#[derive(Clone, Debug, Default)]
pub(super) struct Constraints {
    known: IndexMap<Subject, Constraint>,
    inferred: IndexMap<Subject, Constraint>,
    /// The activation counters when values were made that are memory at active cells.
    made_at: IndexMap<Value, Vec<u32>>,
}

impl Constraints {
    /// The constraints for the next replay, after a replay that has built a program.
    pub(super) fn after(mut self, program: Program) -> Self {
        let program = Arc::new(program);
        for (subject, mut constraint) in self.inferred {
            constraint.program = Some(program.clone());
            self.known.insert(subject, constraint);
        }
        Self {
            known: self.known,
            ..Self::default()
        }
    }

    fn has_new(&self) -> bool {
        let mut inferred = self.inferred.iter();
        inferred.any(|(subject, constraint)| {
            !self
                .known
                .get(subject)
                .is_some_and(|known| known.is(constraint))
        })
    }
}

impl State {
    /// The shape and the placement that earlier replays have inferred for a subject.
    ///
    /// # Errors
    /// If the shape depends on an input that the function creates later.
    pub(super) fn known(&mut self, subject: Subject) -> Recorded<Option<(Vec<Dim>, Placement)>> {
        let Some(constraint) = self.constraints.known.get(&subject).cloned() else {
            return Ok(None);
        };
        let program = constraint
            .program
            .expect("what is known was inferred in a program");
        let dims = constraint.dims.iter().map(|&dim| {
            self.r.dim_like(&program, dim).ok_or_else(|| {
                RecordError::Value(
                    "a block sets a tensor to a shape that depends on an input which is created after it: create the inputs first, \
                     at the start of the function, before `const`, `buffer` and blocks"
                        .to_owned(),
                )
            })
        });
        Ok(Some((dims.collect::<Recorded<_>>()?, constraint.at)))
    }

    /// Whether exactly this constraint is known.
    pub(super) fn knows(&self, subject: Subject, shape: &[Dim], at: &Placement) -> bool {
        let constraint = self.constraint(shape, at.clone());
        let known = self.constraints.known.get(&subject);
        known.is_some_and(|known| known.is(&constraint))
    }

    /// Whether a subject is known to have another placement.
    pub(super) fn is_known_elsewhere(&self, subject: Subject, at: &Placement) -> bool {
        let known = self.constraints.known.get(&subject);
        known.is_some_and(|known| !matches!(known.at, Placement::All) && !known.at.is(at))
    }

    fn constraint(&self, shape: &[Dim], at: Placement) -> Constraint {
        let keys = shape.iter().map(|&dim| self.r.program.dim_key(dim));
        Constraint {
            dims: shape.to_vec(),
            program: None,
            keys: keys.collect(),
            at,
            step: self.at,
        }
    }

    /// Infers a constraint for the next replay.
    pub(super) fn infer(&mut self, subject: Subject, shape: &[Dim], at: Placement) {
        let constraint = self.constraint(shape, at);
        self.constraints.inferred.insert(subject, constraint);
    }

    /// The same for a value that is memory; at active cells only as long as no store activates others.
    pub(super) fn infer_value(&mut self, value: Value, shape: &[Dim], at: Placement) {
        let made = self.values[value.0 as usize].activations.clone();
        self.constraints.made_at.insert(value, made);
        self.infer(Subject::Changed(value), shape, at);
    }

    /// Keeps the constraint of a value for the next replay, and notes the step that enlarges the value.
    pub(super) fn keep_inferred(&mut self, value: Value, shape: &[Dim], at: Placement) {
        let subject = Subject::Changed(value);
        let step = self
            .constraints
            .known
            .get(&subject)
            .map_or(0, |constraint| constraint.step);
        self.infer_value(value, shape, at);
        if let Some(constraint) = self.constraints.inferred.get_mut(&subject) {
            constraint.step = step;
        }
        let held = &mut self.values[value.0 as usize];
        held.resized_by = held.resized_by.max(step);
    }

    /// The same for a value that needs elements at all indices.
    pub(super) fn infer_everywhere(&mut self, value: Value, shape: &[Dim]) {
        self.constraints.made_at.swap_remove(&value);
        self.infer(Subject::Changed(value), shape, Placement::Everywhere);
    }

    /// Whether the replay has inferred new constraints.
    pub(super) fn has_inferred(&mut self) -> bool {
        for (&value, before) in &self.constraints.made_at {
            let Some(constraint) = self.constraints.inferred.get_mut(&Subject::Changed(value))
            else {
                continue;
            };
            let Some(field) = constraint.at.field() else {
                continue;
            };
            let known = self.fields.iter().find(|(_, own)| own.is_same(field));
            let stays = known.is_some_and(|&(field, _)| {
                !self.r.program.sparse_nodes(field).is_empty()
                    && !self.r.has_activated(field, before)
            });
            // A store that activates cells changes the set of cells.
            if !stays {
                constraint.at = Placement::Everywhere;
            }
        }
        self.r.cells.has_excused || self.constraints.has_new()
    }
}
