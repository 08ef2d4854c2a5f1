//! Adjoints of the values that a loop saves of its iterations: second derivatives through loops.
//!
//! ```text
//! push(history, s)         S = S + pop(adjoints)
//! s = pop(history)         push(adjoints, S)
//! ```
//! The adjoint of a history is a history: the loop that pops the values is visited first, from its last iteration to its
//! first, and pushes the adjoints in the order in which the adjoint of the pushing loop needs them.

use indexmap::IndexSet;

use super::Reverse;
use crate::ir::{Buffer, Call, Library, Stmt, visit_host};
use crate::record::Recorded;

/// The histories that statements keep values in, and take them from.
#[derive(Default)]
pub(super) struct Histories {
    pushed: IndexSet<Buffer>,
    popped: IndexSet<Buffer>,
}

impl Histories {
    pub(super) fn of(body: &[Stmt]) -> Self {
        let mut found = Self::default();
        visit_host(body, &mut |stmt| match kept(stmt) {
            Some((Library::Push, _, history)) => _ = found.pushed.insert(history),
            Some((_, _, history)) => _ = found.popped.insert(history),
            None => {}
        });
        found
    }

    pub(super) fn contains(&self, buffer: Buffer) -> bool {
        self.pushed.contains(&buffer) || self.popped.contains(&buffer)
    }

    /// Whether a history is filled by these statements and emptied by others, or the other way.
    pub(super) fn is_shared(&self, buffer: Buffer) -> bool {
        self.pushed.contains(&buffer) != self.popped.contains(&buffer)
    }

    /// Those that others empty.
    pub(super) fn filled(&self) -> impl Iterator<Item = Buffer> {
        self.pushed.difference(&self.popped).copied()
    }
}

/// Whether a statement keeps or takes a value; which, and in what history.
pub(super) fn kept(stmt: &Stmt) -> Option<(Library, Buffer, Buffer)> {
    match stmt {
        Stmt::Call(call) => call.kept().map(|[value, h]| (call.library, value, h)),
        _ => None,
    }
}

impl Reverse<'_> {
    /// A history of values like one.
    pub(super) fn history(&mut self, of: Buffer) -> Buffer {
        let r = &mut *self.recording;
        let history = r.program.temporary(r.ty(of), &[]);
        r.note_memory(history);
        history
    }

    /// The adjoint of a pushed value: the adjoint of the pop has saved it.
    pub(super) fn through_push(&mut self, call: &Call) -> Recorded<()> {
        let Some([value, history]) = call.kept() else {
            return Ok(());
        };
        if let Some(adjoints) = self.adjoint(history)? {
            let mask = call.mask().map(|mask| self.before(mask));
            let r = &mut *self.recording;
            let part = r.program.temporary(r.ty(value), &r.shape(value));
            let taken = Call::pop(adjoints, mask, part, r.span);
            r.program.body.push(Stmt::Call(taken));
            self.contribute(value, part);
        }
        Ok(())
    }

    /// Saves the adjoint of a popped value, for the adjoint of the push.
    pub(super) fn through_pop(&mut self, call: &Call, adjoint: Buffer) -> Recorded<()> {
        let history = call.outputs[1];
        let mask = call.mask().map(|mask| self.before(mask));
        let adjoints = match self.adjoint(history)? {
            Some(adjoints) => adjoints,
            None => {
                let adjoints = self.history(adjoint);
                self.contribute(history, adjoints);
                adjoints
            }
        };
        let kept = Call::push(adjoint, mask, adjoints, self.recording.span);
        self.recording.program.body.push(Stmt::Call(kept));
        Ok(())
    }
}
