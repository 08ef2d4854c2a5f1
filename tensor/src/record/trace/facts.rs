//! What the steps of a function teach: which values are memory from the first on, and of which shape.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::program::{Dim, Program};

use super::super::{RecordError, Recorded};
use super::blocks::BlockId;
use super::{FieldDef, State, Value};

/// What something is learned about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// A value that a block changes.
    Changed(Value),
    /// Which points have left a loop.
    Left(BlockId),
    /// Which points have left the iteration of a loop.
    Skipped(BlockId),
}

/// Where memory has elements.
#[derive(Clone, Debug)]
pub(super) enum At {
    /// Everywhere, as far as is known.
    All,
    /// At the active cells of a field.
    Cells(Arc<FieldDef>),
    /// Everywhere, since it is used elsewhere than at cells.
    Everywhere,
}

impl At {
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

/// What is known of a subject.
#[derive(Clone, Debug)]
pub(super) struct Fact {
    /// Its extents in the program in which it was learned, which is there once that is whole.
    dims: Vec<Dim>,
    program: Option<Arc<Program>>,
    /// The extents as text that is the same in each replay.
    keys: Vec<String>,
    pub(super) at: At,
    /// The step that has taught it.
    step: usize,
}

impl Fact {
    fn is(&self, other: &Self) -> bool {
        self.keys == other.keys && self.at.is(&other.at)
    }
}

/// What is known, and what is learned this time.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    known: IndexMap<Subject, Fact>,
    learned: IndexMap<Subject, Fact>,
    /// How often cells had become active where values were made that are memory at cells.
    made_at: IndexMap<Value, Vec<u32>>,
}

impl Facts {
    /// What is known the next time, after a program.
    pub(super) fn after(mut self, program: Program) -> Self {
        let program = Arc::new(program);
        for (subject, mut fact) in self.learned {
            fact.program = Some(program.clone());
            self.known.insert(subject, fact);
        }
        Self {
            known: self.known,
            ..Self::default()
        }
    }

    fn has_new(&self) -> bool {
        let mut learned = self.learned.iter();
        learned.any(|(subject, fact)| !self.known.get(subject).is_some_and(|known| known.is(fact)))
    }
}

impl State {
    /// What is known of a subject: its extents, and where it has elements.
    ///
    /// # Errors
    /// If they are those of an input that the function makes later.
    pub(super) fn known(&mut self, subject: Subject) -> Recorded<Option<(Vec<Dim>, At)>> {
        let Some(fact) = self.facts.known.get(&subject).cloned() else {
            return Ok(None);
        };
        let program = fact
            .program
            .expect("what is known was learned in a program");
        let dims = fact.dims.iter().map(|&dim| {
            self.r.dim_like(&program, dim).ok_or_else(|| {
                RecordError::Value(
                    "what a block sets or leaves has the extents of an input that is made after it: make the inputs first, \
                     at the start of the function, before `const`, `buffer` and blocks"
                        .to_owned(),
                )
            })
        });
        Ok(Some((dims.collect::<Recorded<_>>()?, fact.at)))
    }

    /// Whether exactly this is known already.
    pub(super) fn knows(&self, subject: Subject, shape: &[Dim], at: &At) -> bool {
        let fact = self.fact(shape, at.clone());
        let known = self.facts.known.get(&subject);
        known.is_some_and(|known| known.is(&fact))
    }

    /// Whether a subject is known to have elements elsewhere than there.
    pub(super) fn is_known_elsewhere(&self, subject: Subject, at: &At) -> bool {
        let known = self.facts.known.get(&subject);
        known.is_some_and(|known| !matches!(known.at, At::All) && !known.at.is(at))
    }

    fn fact(&self, shape: &[Dim], at: At) -> Fact {
        let keys = shape.iter().map(|&dim| self.r.program.dim_key(dim));
        Fact {
            dims: shape.to_vec(),
            program: None,
            keys: keys.collect(),
            at,
            step: self.at,
        }
    }

    /// Notes what is known of a subject from the next time on.
    pub(super) fn learn(&mut self, subject: Subject, shape: &[Dim], at: At) {
        let fact = self.fact(shape, at);
        self.facts.learned.insert(subject, fact);
    }

    /// The same of a value that is memory, at cells as long as stores make no other cells active.
    pub(super) fn learn_value(&mut self, value: Value, shape: &[Dim], at: At) {
        let made = self.values[value.0 as usize].activations.clone();
        self.facts.made_at.insert(value, made);
        self.learn(Subject::Changed(value), shape, at);
    }

    /// What was known of a value is known the next time, too; it has grown by the step that taught it.
    pub(super) fn keep_known(&mut self, value: Value, shape: &[Dim], at: At) {
        let subject = Subject::Changed(value);
        let step = self.facts.known.get(&subject).map_or(0, |fact| fact.step);
        self.learn_value(value, shape, at);
        if let Some(fact) = self.facts.learned.get_mut(&subject) {
            fact.step = step;
        }
        let held = &mut self.values[value.0 as usize];
        held.grown_by = held.grown_by.max(step);
    }

    /// The same of one that has elements everywhere, whatever comes.
    pub(super) fn learn_everywhere(&mut self, value: Value, shape: &[Dim]) {
        self.facts.made_at.swap_remove(&value);
        self.learn(Subject::Changed(value), shape, At::Everywhere);
    }

    /// Whether something new has been learned.
    pub(super) fn has_learned(&mut self) -> bool {
        for (&value, before) in &self.facts.made_at {
            let Some(fact) = self.facts.learned.get_mut(&Subject::Changed(value)) else {
                continue;
            };
            let Some(field) = fact.at.field() else {
                continue;
            };
            let known = self.fields.iter().find(|(_, own)| own.is_same(field));
            let stays = known.is_some_and(|&(field, _)| {
                !self.r.program.sparse_nodes(field).is_empty()
                    && !self.r.has_activated(field, before)
            });
            // Once a store makes cells active, they are not those that there were at first.
            if !stays {
                fact.at = At::Everywhere;
            }
        }
        self.r.cells.has_excused || self.facts.has_new()
    }
}
