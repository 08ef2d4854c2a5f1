//! Tensors that look as if they were computed at once, and are computed when their numbers are asked for.
//!
//! A session records the statements of all operations. Each tensor holds a slot. Asking for a tensor's numbers takes the
//! statements that it needs as a program of their own, whose plan is kept for the next time that the same statements come,
//! and keeps the numbers with the tensor. What nobody holds is dropped as the session goes on.

mod ended;
mod general;
mod mapped;
mod parts;

pub use ended::Ended;
pub use parts::Range;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::CompileError;

use crate::ir::{
    Buffer, DimDef, ExprDef, Makers, Operand, Program, Role, Slice, Stmt, order, slice,
};
use crate::passes::Options;
use crate::record::{Place, Recorded, Recording};
use crate::run::{Plan, Settings};

/// What a tensor holds of the session.
pub type Slot = u32;

/// So many buffers more than are held, and the session is tidied.
const SLACK: usize = 4096;
/// So many bytes that nobody holds, and the session is tidied.
const SLACK_BYTES: usize = 32 << 20;
/// Plans are kept up to this number.
const MAX_PLANS: usize = 2048;
/// And up to so many statements in all, those in loops and branches aside: one takes about a kilobyte.
const MAX_PLANNED: usize = 1 << 17;
/// So many programs that differ only in where they read are compiled for their numbers.
const MAX_ALIKE: u32 = 2;
/// A program with more statements keeps the numbers of every tensor that is held, so that none grows without end.
const MAX_PENDING: usize = 64;

/// What waits for so many statements is computed: a number of the chain's own, so that the same loop ends its programs at the
/// same turns.
const MAX_CHAIN: usize = 288;
/// After so many looks that find fewer, none is taken for a while.
const MAX_LOOKS: u32 = 16;

/// Why a tensor has no numbers.
#[derive(Debug)]
pub enum LazyError {
    /// The program could not be made ready.
    Compile(CompileError),
    /// It ended early.
    Run(Box<Ended>),
    /// It stands for one of many, and has no numbers of its own.
    Mapped,
}

impl fmt::Display for LazyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compile(e) => write!(f, "{e:?}"),
            Self::Run(ended) => ended.error.fmt(f),
            Self::Mapped => f.write_str(
                "a tensor inside `vmap` stands for one of many and has no numbers: choose by `where`, not by `if`, and call kernels outside",
            ),
        }
    }
}

/// All that a program's plan depends on.
#[derive(PartialEq, Eq, Hash)]
struct Structure {
    dims: Vec<DimDef>,
    buffers: Vec<(ScalarType, Vec<crate::ir::Dim>, Role)>,
    exprs: Vec<ExprDef>,
    body: Vec<Stmt>,
    results: Vec<Buffer>,
    /// Of the settings.
    stamp: u64,
}

impl Structure {
    fn of(program: &Program) -> Self {
        let buffers = program.buffers.iter();
        let exprs = 0..program.exprs.len() as u32;
        Self {
            dims: program.dims.iter().cloned().collect(),
            buffers: buffers
                .map(|(_, b)| (b.ty, b.shape.clone(), b.role))
                .collect(),
            exprs: exprs
                .map(|e| program.exprs[crate::ir::Expr::from_u32(e)].clone())
                .collect(),
            body: program.body.clone(),
            results: program.results.clone(),
            stamp: 0,
        }
    }
}

/// For how long nothing has been computed.
struct Waiting {
    /// How many statements have been recorded.
    recorded: usize,
    /// With how many it is looked for how many of them what was made last waits.
    next: usize,
    /// How many looks have found too few.
    looks: u32,
    /// How many may wait.
    patience: usize,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            recorded: 0,
            next: MAX_CHAIN,
            looks: 0,
            patience: MAX_CHAIN,
        }
    }
}

impl Waiting {
    /// So many statements have been computed: if they are most of what has come, it begins anew, and so the same loop is looked
    /// at at the same turns each time.
    fn done(&mut self, n: usize) {
        if 2 * n >= self.recorded {
            *self = Self::default();
        }
    }
}

/// What is recorded, who holds what of it, and the numbers that are there.
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
    /// Buffers that stand for one of many.
    ones: SecondaryMap<Buffer, bool>,
    /// How many of these are held.
    n_ones: usize,
    /// Bytes of numbers that nobody holds.
    dropped: usize,
    limit: usize,
    plans: LookupMap<Structure, Arc<Plan>>,
    /// How many plans there are of programs that differ only in where they read.
    alike: LookupMap<Structure, u32>,
    /// What the plans were made for.
    stamp: u64,
    n_made: usize,
    /// How many statements the plans are of.
    n_planned: usize,
}

fn bytes_of(ty: ScalarType, shape: &[usize]) -> usize {
    shape.iter().product::<usize>() * ty.bytes() as usize
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
        let before = self.recording.program.body.len();
        let out = f(&mut self.recording);
        let after = self.recording.program.body.len();
        self.waiting.recorded += after.saturating_sub(before);
        out
    }

    /// Whether a tensor, the last one that was made, waits for so many statements that it is better computed now: a loop
    /// of Python's that asks for nothing would make a program as long as it runs.
    pub fn waits_long(&mut self, slot: Slot) -> bool {
        if self.waiting.recorded < self.waiting.next || self.n_ones > 0 {
            return false;
        }
        let buffer = self.buffer(slot);
        self.makers.update(&self.recording.program);
        let is_there = |b: Buffer| self.values[b].is_some();
        let n = order(&self.recording.program, &self.makers, &is_there, &[buffer]).len();
        let waiting = &mut self.waiting;
        if n >= MAX_CHAIN {
            // Should it not be done, the next time comes later by as much again.
            *waiting = Waiting {
                next: waiting.patience,
                patience: 2 * waiting.patience,
                ..Waiting::default()
            };
            return true;
        }
        // It waits for one more with each statement at most.
        waiting.looks += 1;
        waiting.next = waiting.recorded + MAX_CHAIN - n;
        if waiting.looks == MAX_LOOKS {
            (waiting.looks, waiting.next) = (0, waiting.recorded + MAX_CHAIN);
        }
        false
    }

    /// A tensor with these numbers.
    pub fn leaf(&mut self, operand: Operand) -> Slot {
        let buffer = self.input(&operand);
        self.values[buffer] = Some(operand);
        self.hold(buffer)
    }

    fn input(&mut self, operand: &Operand) -> Buffer {
        let shape: Vec<Option<u64>> = operand.shape.iter().map(|&n| Some(n as u64)).collect();
        // The number of an input counts in programs of their own only.
        self.recording.program.input("", operand.ty, &shape)
    }

    /// A slot for a buffer, to be released.
    pub fn hold(&mut self, buffer: Buffer) -> Slot {
        self.holds[buffer] += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as Slot - 1
        });
        self.slots[slot as usize] = Some(buffer);
        slot
    }

    /// The buffer that a slot holds.
    pub fn buffer(&self, slot: Slot) -> Buffer {
        self.slots[slot as usize].expect("a held slot")
    }

    /// Gives a slot back.
    pub fn release(&mut self, slot: Slot) {
        let Some(buffer) = self.slots[slot as usize].take() else {
            return;
        };
        self.free.push(slot);
        self.let_go(buffer);
        if self.recording.program.buffers.len() > self.limit.max(SLACK)
            || self.dropped > SLACK_BYTES
        {
            self.tidy();
        }
    }

    /// Notes that one slot fewer holds a buffer.
    fn let_go(&mut self, buffer: Buffer) {
        self.holds[buffer] -= 1;
        if self.ones[buffer] && self.holds[buffer] == 0 {
            self.n_ones -= 1;
        }
        if self.holds[buffer] == 0
            && let Some(value) = &self.values[buffer]
        {
            self.dropped += bytes_of(value.ty, &value.shape);
        }
    }

    /// The type and the extents of a tensor.
    pub fn description(&self, slot: Slot) -> (ScalarType, Vec<usize>) {
        let program = &self.recording.program;
        let def = &program.buffers[self.buffer(slot)];
        let extents = def
            .shape
            .iter()
            .map(|&d| program.const_dim(d).unwrap_or(0) as usize);
        (def.ty, extents.collect())
    }

    /// A tensor's numbers, if they are there.
    pub fn value(&self, slot: Slot) -> Option<Operand> {
        self.values[self.buffer(slot)].clone()
    }

    /// How many buffers and statements are recorded, tensors are held, and plans have been made: what tests look at.
    pub fn counts(&self) -> [usize; 4] {
        let program = &self.recording.program;
        let held = self.slots.iter().flatten().count();
        [program.buffers.len(), program.body.len(), held, self.n_made]
    }

    fn slice(&mut self, roots: &[Buffer]) -> Slice {
        self.makers.update(&self.recording.program);
        let values = &self.values;
        slice(
            &self.recording.program,
            &self.makers,
            |b| values[b].is_some(),
            roots,
        )
    }

    /// Drops plans that were made for something else, which is gone.
    fn forget_others(&mut self, stamp: u64) {
        if self.stamp != stamp {
            self.stamp = stamp;
            self.forget_plans();
            self.alike.clear();
        }
    }

    fn forget_plans(&mut self) {
        self.plans.clear();
        self.n_planned = 0;
    }

    /// What becomes of the statements that tensors are made by.
    pub fn explain(&mut self, slots: &[Slot], options: Options) -> String {
        let mut roots: Vec<Buffer> = Vec::new();
        for &slot in slots {
            let buffer = self.buffer(slot);
            if self.values[buffer].is_none() && !roots.contains(&buffer) {
                roots.push(buffer);
            }
        }
        let sliced = self.slice(&roots);
        crate::run::explain::explain(&sliced.program, options)
    }

    /// Drops what nobody holds.
    fn tidy(&mut self) {
        let held: Vec<(Slot, Buffer)> = self.held().collect();
        let pending: Vec<Buffer> = held
            .iter()
            .map(|h| h.1)
            .filter(|&b| self.values[b].is_none())
            .collect();
        let sliced = self.slice(&pending);
        let mut next = Self {
            plans: std::mem::take(&mut self.plans),
            alike: std::mem::take(&mut self.alike),
            n_made: self.n_made,
            n_planned: self.n_planned,
            stamp: self.stamp,
            waiting: std::mem::take(&mut self.waiting),
            n_ones: self.n_ones,
            free: std::mem::take(&mut self.free),
            slots: vec![None; self.slots.len()],
            ..Self::default()
        };
        let mut moved: LookupMap<Buffer, Buffer> = LookupMap::default();
        let mut inputs = sliced.inputs.iter();
        next.recording.program = sliced.program;
        next.recording.program.results.clear();
        for new in next.recording.program.inputs().collect::<Vec<_>>() {
            let &old = inputs.next().expect("an input for each");
            next.values[new] = self.values[old].take();
            next.recording.lines.set(new, self.place(old));
            moved.insert(old, new);
        }
        for &(old, new) in &sliced.made {
            next.recording.lines.set(new, self.place(old));
            next.ones[new] = self.ones[old];
            moved.insert(old, new);
        }
        // Before what is held and nothing reads comes in: that may be changed in place.
        next.recording
            .take_known(&mut self.recording, &sliced.exprs, &moved);
        for (slot, old) in held {
            let new = match moved.get(&old) {
                Some(&new) => new,
                None => {
                    let value = self.values[old].take().expect("it is there or it is made");
                    let new = next.input(&value);
                    next.values[new] = Some(value);
                    next.recording.lines.set(new, self.place(old));
                    moved.insert(old, new);
                    new
                }
            };
            next.stores[new] = self.stores[old];
            next.exposed[new] = self.exposed[old];
            next.handed_out[new] = self.handed_out[old];
            next.slots[slot as usize] = Some(new);
            next.holds[new] += 1;
        }
        next.note(Place::NONE);
        next.limit = 2 * next.recording.program.buffers.len() + SLACK;
        *self = next;
    }

    fn held(&self) -> impl Iterator<Item = (Slot, Buffer)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, &b)| b.map(|b| (slot as Slot, b)))
    }

    /// Of the tensors that are held and made on the way, those whose numbers are kept: together with what is asked for, what
    /// takes no more memory than that and what it is made of.
    fn kept(&self, sliced: &Slice, roots: &[Buffer]) -> Vec<Buffer> {
        let program = &self.recording.program;
        let bytes = |b: Buffer| {
            let def = &program.buffers[b];
            let extents = def
                .shape
                .iter()
                .map(|&d| program.const_dim(d).unwrap_or(0) as usize);
            bytes_of(def.ty, &extents.collect::<Vec<_>>())
        };
        let most: usize = sliced.inputs.iter().chain(roots).map(|&b| bytes(b)).sum();
        let all = sliced.program.body.len() > MAX_PENDING;
        // In the order of the program, so that it is the same for the same statements.
        let made = sliced.made.iter().map(|m| m.0);
        made.filter(|&b| self.holds[b] > 0 && !roots.contains(&b) && (all || bytes(b) <= most))
            .collect()
    }
}

fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program to run, what it takes, and whose its results are.
struct Job {
    program: Program,
    n_statements: usize,
    structure: Structure,
    inputs: Vec<Operand>,
    results: Vec<Slot>,
}

fn job(session: &mut Session, wanted: &[Slot]) -> Result<Option<Job>, LazyError> {
    let mut roots = Vec::new();
    for &slot in wanted {
        let buffer = session.buffer(slot);
        if session.values[buffer].is_none() && !roots.contains(&buffer) {
            roots.push(buffer);
        }
    }
    if roots.is_empty() {
        return Ok(None);
    }
    let first = session.slice(&roots);
    if first.made.iter().any(|&(old, _)| session.ones[old]) {
        return Err(LazyError::Mapped);
    }
    session.pending_stores = 0;
    let kept = session.kept(&first, &roots);
    let sliced = match kept.is_empty() {
        true => first,
        false => {
            roots.extend(kept);
            session.slice(&roots)
        }
    };
    let inputs = sliced
        .inputs
        .iter()
        .map(|&b| session.values[b].clone().expect("it is there"));
    Ok(Some(Job {
        inputs: inputs.collect(),
        structure: Structure::of(&sliced.program),
        n_statements: sliced.program.body.len(),
        program: sliced.program,
        // Held while the program runs, whatever others give back meanwhile.
        results: roots.iter().map(|&b| session.hold(b)).collect(),
    }))
}

/// A plan that is not there yet, and the numbers that it takes.
fn made(
    session: &Mutex<Session>,
    program: Program,
    structure: Structure,
    settings: Settings<'_>,
) -> Result<(Arc<Plan>, Vec<Scalar>), CompileError> {
    let mut made = (program, structure, Vec::new());
    if let Some((program, given)) = general::generalised(&made.0) {
        let mut structure = Structure::of(&program);
        structure.stamp = settings.stamp;
        let mut session = lock(session);
        if let Some(plan) = session.plans.get(&structure) {
            return Ok((plan.clone(), given));
        }
        if session.alike.len() >= MAX_PLANS {
            session.alike.clear();
        }
        match session.alike.get_mut(&structure) {
            Some(n) if *n >= MAX_ALIKE => made = (program, structure, given),
            Some(n) => *n += 1,
            None => {
                session.alike.insert(structure, 1);
            }
        }
    }
    let (program, structure, given) = made;
    let plan = Arc::new(Plan::new(program, settings)?);
    let mut session = lock(session);
    let n = structure.body.len();
    if session.plans.len() >= MAX_PLANS || session.n_planned + n > MAX_PLANNED {
        session.forget_plans();
    }
    session.n_made += 1;
    // Another thread may have made the same.
    if session.plans.insert(structure, plan.clone()).is_none() {
        session.n_planned += n;
    }
    Ok((plan, given))
}

/// Computes tensors whose numbers are not there yet. The session is free for others meanwhile.
///
/// # Errors
/// If the program cannot be compiled, or ends early: nothing has changed then.
pub fn realise(
    session: &Mutex<Session>,
    wanted: &[Slot],
    settings: Settings<'_>,
) -> Result<(), LazyError> {
    let Some(mut job) = job(&mut lock(session), wanted)? else {
        return Ok(());
    };
    job.structure.stamp = settings.stamp;
    lock(session).forget_others(settings.stamp);
    // Two statements that agree make equal programs, whoever makes the plan first.
    let plan = lock(session).plans.get(&job.structure).cloned();
    let made = match plan {
        Some(plan) => Ok((plan, Vec::new())),
        None => made(session, job.program, job.structure, settings),
    };
    let (plan, given) = match made {
        Ok(made) => made,
        Err(e) => {
            let mut session = lock(session);
            job.results.iter().for_each(|&slot| session.release(slot));
            return Err(LazyError::Compile(e));
        }
    };
    let results = plan.run_with(&job.inputs, &given);
    let ended = |error| Ended::new(session, error, &job.results, settings);
    let results = results.map_err(|error| LazyError::Run(Box::new(ended(error))));
    let mut session = lock(session);
    if let Ok(results) = &results {
        session.waiting.done(job.n_statements);
        for (&slot, operand) in job.results.iter().zip(results) {
            let buffer = session.buffer(slot);
            // Another thread may have been faster, and somebody look at what it has made.
            session.values[buffer].get_or_insert_with(|| operand.clone());
        }
    }
    job.results.iter().for_each(|&slot| session.release(slot));
    results.map(|_| ())
}
