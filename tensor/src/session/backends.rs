//! Back ends: the back end of each tensor, and values that exist only as storages of their back end.
//!
//! Plans are one back end of several. A session tracks nothing here until another one is selected.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;

use super::plans::job;
use super::{LazyError, Session, Slot, lock};
use crate::ir::{Buffer, Operand, Program, Role, Stmt, reads, targets};
use crate::record::Lines;

/// What evaluates statements, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Backend(pub u16);

impl Backend {
    /// Compiled plans over memory of the host.
    pub const NATIVE: Self = Self(0);
    /// No back end in particular: constants, and single numbers, which any back end may use.
    pub const ANY: Self = Self(u16::MAX);

    /// Another back end, with a name.
    ///
    /// # Panics
    /// If there are 65,534 already.
    pub fn register(name: &str) -> Self {
        let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        names.push(name.to_owned());
        let number = u16::try_from(names.len()).ok();
        Self(number.filter(|&n| n < u16::MAX).expect("few back ends"))
    }

    /// What it is called.
    pub fn name(self) -> String {
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        let own = usize::from(self.0)
            .checked_sub(1)
            .and_then(|k| names.get(k));
        own.cloned().unwrap_or_else(|| "native".to_owned())
    }
}

/// The names of the back ends other than `native`, by number, from 1 on.
static NAMES: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Values in the form of a back end, which alone reads them.
#[derive(Clone)]
pub struct Storage {
    /// Whose they are.
    pub of: Backend,
    /// The values.
    pub object: Arc<dyn Any + Send + Sync>,
}

/// Statements that would mix tensors of two back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mixed(pub Backend, pub Backend);

/// A value that a program is given, or that it makes.
#[derive(Clone)]
pub enum Held {
    /// In memory of the host.
    Host(Operand),
    /// With its back end.
    Stored(Storage),
}

impl fmt::Display for Mixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = (self.0.name(), self.1.name());
        write!(
            f,
            "a tensor of back end `{a}` and one of back end `{b}` are in one expression: move one, as by `x.to({a:?})`"
        )
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host(_) => "Host",
            Self::Stored(_) => "Stored",
        })
    }
}

thread_local! {
    /// The back end that this thread has chosen, if it is not the session's.
    static CHOSEN: Cell<Option<Backend>> = const { Cell::new(None) };
}

/// Chooses the back end of what this thread makes, or leaves it to the session; returns the choice before.
pub fn choose(backend: Option<Backend>) -> Option<Backend> {
    CHOSEN.replace(backend)
}

/// The state of a session concerning back ends.
#[derive(Clone, Default)]
pub(super) struct Backends {
    /// Whether there are tensors of others than plans.
    pub(super) is_watched: bool,
    /// Whether each statement is evaluated when it has been recorded.
    pub(super) is_eager: bool,
    default: Backend,
    n_watched: usize,
    /// Whether a statement that is checked for mutation has stored to a buffer.
    is_made: SecondaryMap<Buffer, bool>,
    pub(super) of: SecondaryMap<Buffer, Backend>,
    pub(super) storages: SecondaryMap<Buffer, Option<Storage>>,
    /// Buffers computed from tensors of two back ends, which is reported again if the statement is recorded again.
    mixed: SecondaryMap<Buffer, Option<Mixed>>,
}

impl Backends {
    /// The same settings for a session with other buffers, whose first `n_watched` statements have been visited.
    pub(super) fn next(&self, n_watched: usize) -> Self {
        Self {
            is_watched: self.is_watched,
            is_eager: self.is_eager,
            default: self.default,
            n_watched,
            ..Self::default()
        }
    }

    /// Copies the state of a buffer.
    pub(super) fn follow(&mut self, new: Buffer, from: &Self, old: Buffer) {
        if self.is_watched {
            self.of[new] = from.of[old];
            self.is_made[new] = from.is_made[old];
            self.storages[new] = from.storages[old].clone();
            self.mixed[new] = from.mixed[old];
        }
    }

    /// The back end of what this thread makes.
    fn current(&self) -> Backend {
        CHOSEN.get().unwrap_or(self.default)
    }

    pub(super) fn made_leaf(&mut self, buffer: Buffer) {
        if self.is_watched {
            self.of[buffer] = self.current();
        }
    }
}

impl Session {
    /// Whether tensors of other back ends than plans may exist.
    pub fn is_watched(&self) -> bool {
        self.backends.is_watched
    }

    /// Sets the back end of what threads make that have chosen none, and whether statements are evaluated at once.
    pub fn set_backend(&mut self, default: Backend, is_eager: bool) {
        self.backends.default = default;
        self.backends.is_eager = is_eager;
        self.watch_from(default);
    }

    /// Begins to track back ends, if this is another one than plans.
    pub fn watch_from(&mut self, backend: Backend) {
        if backend != Backend::NATIVE && !self.backends.is_watched {
            self.backends.is_watched = true;
            // Constants that have been evaluated belong to plans, where an equal one from now on belongs to no back end.
            self.forget_shared();
        }
    }

    /// Whether a buffer has values, at this back end or on the host.
    pub(super) fn is_there(&self, b: Buffer) -> bool {
        self.values[b].is_some() || self.backends.is_watched && self.backends.storages[b].is_some()
    }

    /// Whether a back end finds the values of a buffer.
    pub(super) fn is_there_for(&self, b: Buffer, backend: Backend) -> bool {
        self.values[b].is_some()
            || self.backends.is_watched
                && self.backends.storages[b]
                    .as_ref()
                    .is_some_and(|storage| storage.of == backend)
    }

    /// The back end of a buffer as an operand: a number that the host has is at home everywhere.
    fn backend_of(&self, b: Buffer) -> Backend {
        let def = &self.recording.program.buffers[b];
        let is_number = def.shape.is_empty() && matches!(def.role, Role::Input(_));
        match is_number && self.values[b].is_some() {
            true => Backend::ANY,
            false => self.backends.of[b],
        }
    }

    /// Gives a buffer the back end of another one.
    pub(super) fn follow_backend(&mut self, new: Buffer, other: Buffer) {
        if self.backends.is_watched {
            // What mixes two is reported where it is evaluated.
            let _ = self.watch();
            self.backends.of[new] = self.backends.of[other];
        }
    }

    /// Finds the back ends of what has been recorded since the last time.
    ///
    /// # Errors
    /// If a statement would mix two.
    pub(super) fn watch(&mut self) -> Result<(), Mixed> {
        if !self.backends.is_watched {
            return Ok(());
        }
        let n = self.recording.program.body.len();
        let mut error = None;
        for at in self.backends.n_watched..n {
            let stmt = &self.recording.program.body[at];
            let (found, other) = self.common(stmt);
            error = error.or(other);
            let Backends {
                of, is_made, mixed, ..
            } = &mut self.backends;
            targets(&self.recording.program.body[at], &mut |b| {
                (of[b], is_made[b], mixed[b]) = (found, true, other);
            });
        }
        self.backends.n_watched = n;
        error.map_or(Ok(()), Err)
    }

    /// The back end of all that a statement reads or adds to.
    fn common(&self, stmt: &Stmt) -> (Backend, Option<Mixed>) {
        let (mut found, mut mixed) = (Backend::ANY, None);
        let mut meet = |other: Backend| match (found, other) {
            (_, Backend::ANY) => {}
            (Backend::ANY, _) => found = other,
            _ if found == other => {}
            _ => mixed = Some(Mixed(found, other)),
        };
        let mut inherited = None;
        reads(&self.recording.program, stmt, &mut |b| {
            meet(self.backend_of(b));
            inherited = inherited.or(self.backends.mixed[b]);
        });
        // What has been stored to before belongs somewhere already.
        targets(stmt, &mut |b| {
            if self.backends.is_made[b] {
                meet(self.backends.of[b]);
                inherited = inherited.or(self.backends.mixed[b]);
            }
        });
        (found, inherited.or(mixed))
    }

    /// The back end of a tensor; of one that belongs to none, that of this thread.
    ///
    /// # Errors
    /// If it is made of tensors of two.
    pub fn backend(&mut self, slot: Slot) -> Result<Backend, Mixed> {
        if !self.backends.is_watched {
            return Ok(Backend::NATIVE);
        }
        self.backend_for(&[slot])
    }

    /// The back end for a program over these tensors.
    ///
    /// # Errors
    /// If they belong to two.
    pub fn backend_for(&mut self, slots: &[Slot]) -> Result<Backend, Mixed> {
        // An error of statements recorded by others is reported to them.
        let _ = self.watch();
        let mut found = Backend::ANY;
        for &slot in slots {
            let buffer = self.buffer(slot);
            if let Some(mixed) = self.backends.mixed[buffer] {
                return Err(mixed);
            }
            match (found, self.backend_of(buffer)) {
                (_, Backend::ANY) => {}
                (Backend::ANY, other) => found = other,
                (a, b) if a != b => return Err(Mixed(a, b)),
                _ => {}
            }
        }
        Ok(match found {
            Backend::ANY => self.backends.current(),
            other => other,
        })
    }

    /// What is to be evaluated of some tensors, by back ends.
    ///
    /// # Errors
    /// If one is made of tensors of two.
    pub fn by_backend(&mut self, slots: &[Slot]) -> Result<Vec<(Backend, Vec<Slot>)>, Mixed> {
        let mut out: Vec<(Backend, Vec<Slot>)> = Vec::new();
        for &slot in slots {
            if self.is_there(self.buffer(slot)) {
                continue;
            }
            let backend = self.backend(slot)?;
            match out.iter_mut().find(|(own, _)| *own == backend) {
                Some((_, all)) => all.push(slot),
                None => out.push((backend, vec![slot])),
            }
        }
        Ok(out)
    }

    /// The values of a tensor as a back end holds them, if one does.
    pub fn storage(&self, slot: Slot) -> Option<Storage> {
        self.backends.storages[self.buffer(slot)].clone()
    }

    /// Notes the values that a back end holds of a tensor, on the host; others may have been faster.
    pub fn fetched(&mut self, slot: Slot, value: Operand) {
        let buffer = self.buffer(slot);
        self.values[buffer].get_or_insert(value);
    }

    /// Notes a tensor's values in the form of its back end, unless somebody outside may change those on the host.
    pub fn sent(&mut self, slot: Slot, storage: Storage) {
        let buffer = self.buffer(slot);
        if !self.handed_out[buffer] && self.backends.of[buffer] == storage.of {
            self.backends.storages[buffer] = Some(storage);
        }
    }

    /// A tensor whose values another back end stores.
    pub fn leaf_at(&mut self, held: Held, ty: ScalarType, shape: &[usize], at: Backend) -> Slot {
        self.watch_from(at);
        let buffer = self.input_of(ty, shape);
        self.backends.of[buffer] = at;
        self.keep(buffer, held);
        self.hold(buffer)
    }

    fn keep(&mut self, buffer: Buffer, held: Held) {
        match held {
            Held::Host(value) => {
                self.values[buffer].get_or_insert(value);
            }
            Held::Stored(storage) => {
                self.backends.storages[buffer].get_or_insert(storage);
            }
        }
    }

    /// Forgets what a back end holds of a buffer, whose values on the host are about to change.
    pub(super) fn changes_on_host(&mut self, buffer: Buffer) {
        if self.backends.is_watched {
            self.backends.storages[buffer] = None;
        }
    }

    /// The values of a buffer for a back end.
    pub(super) fn held(&self, b: Buffer, backend: Backend) -> Option<Held> {
        let storage = self.backends.storages[b].as_ref();
        match storage.filter(|storage| storage.of == backend) {
            Some(storage) => Some(Held::Stored(storage.clone())),
            None => self.values[b].clone().map(Held::Host),
        }
    }
}

/// Statements for a back end other than plans, and what they are to make.
pub struct Order {
    /// The statements; the sizes of axes are numbers.
    pub program: Arc<Program>,
    /// Where they were written.
    pub lines: Lines,
    /// What they are given, with the tensors that it belongs to.
    pub inputs: Vec<(Slot, Held)>,
    results: Vec<Slot>,
    n_statements: usize,
}

/// The statements that tensors of one back end wait for; nothing if they wait for none.
///
/// # Errors
/// If they have no values of their own.
pub fn order(
    session: &Mutex<Session>,
    wanted: &[Slot],
    backend: Backend,
) -> Result<Option<Order>, LazyError> {
    let mut session = lock(session);
    let Some(job) = job(&mut session, wanted, backend)? else {
        return Ok(None);
    };
    let inputs = job.inputs().iter().map(|&b| {
        let held = session.held(b, backend).expect("it is there");
        (b, held)
    });
    let inputs: Vec<(Buffer, Held)> = inputs.collect();
    Ok(Some(Order {
        program: job.program(&mut session),
        n_statements: job.n_statements,
        lines: job.lines,
        results: job.results,
        inputs: inputs
            .into_iter()
            .map(|(b, held)| (session.hold(b), held))
            .collect(),
    }))
}

/// Stores the results of a back end, if it has not failed.
pub fn deliver(session: &Mutex<Session>, order: Order, made: Option<Vec<Held>>) {
    let mut session = lock(session);
    if let Some(made) = made {
        session.waiting.done(order.n_statements);
        for (&slot, held) in order.results.iter().zip(made) {
            let buffer = session.buffer(slot);
            session.keep(buffer, held);
        }
        // Equal statements that are recorded later, for another back end, have values of their own.
        session.recording.forget();
    }
    let inputs = order.inputs.iter().map(|(slot, _)| *slot);
    for slot in inputs
        .chain(order.results.iter().copied())
        .collect::<Vec<_>>()
    {
        session.release(slot);
    }
}
