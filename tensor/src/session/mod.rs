//! Lazy evaluation: tensors behave as if computed at once, and are evaluated when their values are needed.
//!
//! A session records the statements of all operations. Each tensor holds a slot. Evaluating a tensor collects the
//! statements that it needs into a program, whose plan is cached for the next time that the same statements occur, and
//! stores the values with the tensor. Statements without a handle are dropped while the session continues.

mod backends;
mod ended;
mod general;
mod gradients;
mod mapped;
mod parts;
mod plans;
mod policy;
mod slots;
mod tidy;
mod waiting;

pub use backends::{Backend, Held, Mixed, Order, Storage, choose, deliver, order};
pub use ended::Ended;
pub use gradients::{ByLeaves, Leaf, are_gradients_off, set_gradients_off};
pub use plans::{Structure, realise};

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aerogel_base::entity::SecondaryMap;
use aerogel_compiler::CompileError;

use crate::ir::{Buffer, Makers, Operand, Place, Slice, slice};
use crate::passes::Options;
use crate::record::{RecordError, Recorded, Recording};
use backends::Backends;
use plans::Plans;
use policy::Waiting;

/// A tensor's handle to the session.
pub type Slot = u32;

/// Why a tensor could not be evaluated.
#[derive(Debug)]
pub enum LazyError {
    /// The program could not be made ready.
    Compile(CompileError),
    /// It ended early.
    Run(Box<Ended>),
    /// It is a symbolic tensor of `vmap`.
    Mapped,
    /// It is made of tensors of two back ends.
    Mixed(Mixed),
}

impl fmt::Display for LazyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compile(e) => write!(f, "{e:?}"),
            Self::Run(ended) => ended.error.fmt(f),
            Self::Mixed(e) => e.fmt(f),
            Self::Mapped => f.write_str(
                "a tensor inside `vmap` is symbolic and has no values: use `where` instead of `if`, and call kernels outside",
            ),
        }
    }
}

/// The recorded statements, their handles, and the cached values.
#[derive(Default)]
pub struct Session {
    recording: Recording,
    makers: Makers,
    slots: Vec<Option<Buffer>>,
    free: Vec<Slot>,
    /// How many slots hold each buffer.
    holds: SecondaryMap<Buffer, u32>,
    values: SecondaryMap<Buffer, Option<Operand>>,
    /// How many stores to parts each buffer is the last of.
    stores: SecondaryMap<Buffer, u32>,
    /// How many stores have been recorded since something was computed.
    pending_stores: u32,
    waiting: Waiting,
    /// Buffers whose memory somebody outside looks at.
    exposed: SecondaryMap<Buffer, bool>,
    /// Buffers whose memory is one tensor's alone, and that of somebody outside.
    handed_out: SecondaryMap<Buffer, bool>,
    /// Symbolic buffers of `vmap`.
    ones: SecondaryMap<Buffer, bool>,
    /// How many of these have handles.
    n_ones: usize,
    /// The variables of gradients.
    roots: SecondaryMap<Buffer, bool>,
    n_roots: usize,
    /// Which of these are leaves, and what was detached from what it is made of: nothing before it matters for a gradient.
    leaves: SecondaryMap<Buffer, Option<Leaf>>,
    n_leaves: Leaf,
    n_tidied: u64,
    /// Whether gradients are not to depend on what has been made last.
    is_off: bool,
    /// The buffers computed from variables, as far as the statements have been visited.
    tracked: SecondaryMap<Buffer, bool>,
    n_tracked: usize,
    /// The copies on which no gradient depends.
    detached: SecondaryMap<Buffer, Option<Buffer>>,
    /// Bytes of values without a handle.
    dropped: usize,
    limit: usize,
    plans: Plans,
    backends: Backends,
}

impl Session {
    /// Whether it is known where all was made.
    pub fn is_noted(&self) -> bool {
        self.recording.is_noted()
    }

    /// Notes where all was made that has come since the last note.
    pub fn note(&mut self, place: Place) {
        self.recording.note(place);
    }

    /// Where a tensor was made.
    pub fn place(&self, buffer: Buffer) -> Place {
        self.recording.lines.get(buffer)
    }

    /// Records an operation.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn record<R>(&mut self, f: impl FnOnce(&mut Recording) -> Recorded<R>) -> Recorded<R> {
        self.follow_thread();
        let before = self.recording.program.body.len();
        let out = f(&mut self.recording);
        let after = self.recording.program.body.len();
        self.waiting.recorded += after.saturating_sub(before);
        if self.backends.is_watched {
            let mixed = |e: Mixed| RecordError::Value(e.to_string());
            self.watch().map_err(mixed)?;
        }
        out
    }

    /// What is recorded from now on is computed, even if equal statements have been: by other settings, say.
    pub fn forget_shared(&mut self) {
        self.recording.forget();
    }

    fn slice(&mut self, roots: &[Buffer], backend: Backend) -> Slice {
        self.makers.update(&self.recording.program);
        slice(
            &self.recording.program,
            &self.makers,
            |b| self.is_there_for(b, backend),
            roots,
            false,
        )
    }

    /// Explains, as text, how the statements of tensors are compiled.
    pub fn explain(&mut self, slots: &[Slot], options: Options) -> String {
        let mut roots: Vec<Buffer> = Vec::new();
        for &slot in slots {
            let buffer = self.buffer(slot);
            if !self.is_there(buffer) && !roots.contains(&buffer) {
                roots.push(buffer);
            }
        }
        let sliced = self.slice(&roots, Backend::NATIVE);
        crate::run::explain::explain(&sliced.program, options)
    }
}

fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}
