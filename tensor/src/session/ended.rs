//! What is known of tensors whose numbers could not be computed: which statement it was, and where that was written.

use std::sync::Mutex;

use super::{Session, Slot, lock};
use crate::ir::{Buffer, Program, RunError};
use crate::lower::bounds::OutOfBounds;
use crate::record::{Access, Lines};
use crate::run::{Plan, Settings};

/// So many statements that may be what ended a run are tried one by one.
const MAX_TRIED: usize = 16;

/// A run that ended early.
#[derive(Debug)]
pub struct Ended {
    /// Why.
    pub error: RunError,
    /// What was asked for.
    pub program: Program,
    /// Where that was written.
    pub lines: Lines,
    /// What the statement makes that it was, where several may be meant.
    pub target: Option<Buffer>,
}

impl Ended {
    /// Of what was to be computed for these tensors.
    pub(super) fn new(
        session: &Mutex<Session>,
        error: RunError,
        wanted: &[Slot],
        settings: Settings<'_>,
    ) -> Self {
        let mut session = lock(session);
        let roots: Vec<Buffer> = wanted.iter().map(|&slot| session.buffer(slot)).collect();
        let sliced = session.slice(&roots);
        let inputs = sliced.inputs.iter().copied().zip(sliced.program.inputs());
        let mut lines = Lines::default();
        for (old, new) in sliced.made.iter().copied().chain(inputs) {
            lines.set(new, session.place(old));
        }
        let values = sliced.inputs.iter().map(|&b| session.values[b].clone());
        let values: Option<Vec<_>> = values.collect();
        drop(session);
        let (program, mut target) = (sliced.program, None);
        let accesses = accesses(&program, &lines, &error);
        if let Some(values) = values
            && (2..=MAX_TRIED).contains(&accesses.len())
        {
            let fails = |access: &&Access| {
                let mut alone = program.clone();
                alone.results = vec![access.target];
                let plan = Plan::new(alone, settings);
                plan.is_ok_and(
                    |plan| matches!(plan.run(&values), Err(e) if of_one_buffer(&e, &error)),
                )
            };
            target = accesses.iter().find(fails).map(|access| access.target);
        }
        Self {
            error,
            program,
            lines,
            target,
        }
    }
}

/// The statements that may have ended a run by an index outside.
fn accesses(program: &Program, lines: &Lines, error: &RunError) -> Vec<Access> {
    let RunError::Check(text) = error else {
        return Vec::new();
    };
    let Some(found) = OutOfBounds::from_text(text) else {
        return Vec::new();
    };
    let Some(buffer) = program.named(&found.buffer) else {
        return Vec::new();
    };
    lines.of_accesses(program, buffer, found.axis, found.stored)
}

/// Whether both are of an index of the same tensor.
fn of_one_buffer(a: &RunError, b: &RunError) -> bool {
    let of = |e: &RunError| match e {
        RunError::Check(text) => {
            OutOfBounds::from_text(text).map(|found| (found.buffer, found.axis))
        }
        _ => None,
    };
    of(a).is_some() && of(a) == of(b)
}
