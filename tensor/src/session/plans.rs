//! Plans: extracting the program of the evaluated tensors, finding or making its plan, and running it.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use aerogel_base::Scalar;
use aerogel_base::hash::LookupMap;
use aerogel_compiler::CompileError;

use super::general::{Places, generalised};
use super::policy::{MAX_ALIKE, MAX_KNOWN, MAX_PLANNED, MAX_PLANS};
use super::{Backend, Ended, LazyError, Session, Slot, lock};
use crate::ir::{Buffer, BufferDef, Operand, Program, Signature, order, signature};
use crate::record::Lines;
use crate::run::{Given, Plan, Settings};

/// A program as far as its plan depends on it, and on the settings.
#[derive(Clone)]
pub struct Structure {
    program: Arc<Program>,
    stamp: u64,
    backend: u16,
}

impl Structure {
    pub(super) fn new(program: Arc<Program>, settings: &Settings<'_>) -> Self {
        Self {
            program,
            stamp: settings.stamp,
            backend: settings.backend,
        }
    }

    /// The same of programs that no settings change.
    pub fn of(program: Arc<Program>) -> Self {
        Self {
            program,
            stamp: 0,
            backend: 0,
        }
    }
}

impl PartialEq for Structure {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.program, &*other.program);
        let buffer = |def: &BufferDef| (def.ty, def.role);
        let mut both = a.buffers.values().zip(b.buffers.values());
        (self.stamp, self.backend) == (other.stamp, other.backend)
            && a.exprs.all().eq(b.exprs.all())
            && a.body == b.body
            && a.results == b.results
            && a.dims.iter().eq(&b.dims)
            && a.sizes.iter().eq(&b.sizes)
            && a.buffers.len() == b.buffers.len()
            && both.all(|(a, b)| buffer(a) == buffer(b) && a.shape == b.shape)
    }
}

impl Eq for Structure {}

impl Hash for Structure {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.stamp.hash(state);
        self.program.exprs.all().for_each(|def| def.hash(state));
        self.program.dims.iter().for_each(|def| def.hash(state));
        self.program.body.hash(state);
    }
}

/// A plan for statements with these constants.
struct Ready {
    plan: Arc<Plan>,
    /// The numbers that it takes.
    given: Vec<Scalar>,
    /// The statements. Its sites are those of the first recording; errors use the caller's.
    program: Arc<Program>,
}

/// The plans that a session keeps.
#[derive(Default)]
pub(super) struct Plans {
    of: LookupMap<Structure, Arc<Plan>>,
    /// The plans of statements by their signatures: no program is made of such statements again.
    known: LookupMap<Box<[u64]>, Arc<Ready>>,
    /// How many plans there are of programs that differ only in where they read.
    alike: LookupMap<Structure, u32>,
    /// The settings that they were made for.
    stamp: u64,
    /// How many have been made.
    pub(super) n_made: usize,
    /// How many statements they are of.
    n_statements: usize,
}

impl Plans {
    /// Drops what was made for something else, which is gone.
    fn forget_others(&mut self, stamp: u64) {
        if self.stamp != stamp {
            *self = Self {
                stamp,
                n_made: self.n_made,
                ..Self::default()
            };
        }
    }

    /// Whether so many programs of this structure have come that there is one for all of them.
    fn is_often(&mut self, structure: &Structure) -> bool {
        if let Some(n) = self.alike.get_mut(structure) {
            *n += 1;
            return *n > MAX_ALIKE;
        }
        if self.alike.len() >= MAX_PLANS {
            self.alike.clear();
        }
        self.alike.insert(structure.clone(), 1);
        false
    }

    fn note(&mut self, structure: Structure, plan: Arc<Plan>) {
        let n = structure.program.body.len();
        if self.of.len() >= MAX_PLANS || self.n_statements + n > MAX_PLANNED {
            self.of.clear();
            self.known.clear();
            self.n_statements = 0;
        }
        self.n_made += 1;
        // Another thread may have made the same.
        if self.of.insert(structure, plan).is_none() {
            self.n_statements += n;
        }
    }

    fn note_known(&mut self, key: Vec<u64>, ready: &Arc<Ready>) {
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(key.into(), ready.clone());
    }
}

/// Statements to run, and whose their results are.
pub(super) struct Job {
    signature: Signature,
    roots: Vec<Buffer>,
    backend: Backend,
    pub(super) n_statements: usize,
    pub(super) lines: Lines,
    pub(super) results: Vec<Slot>,
}

impl Job {
    /// The buffers that the statements are given.
    pub(super) fn inputs(&self) -> &[Buffer] {
        &self.signature.inputs
    }

    /// The statements as a program of their own.
    pub(super) fn program(&self, session: &mut Session) -> Arc<Program> {
        let sliced = session.slice(&self.roots, self.backend);
        assert_eq!(sliced.inputs, self.signature.inputs);
        Arc::new(sliced.program)
    }
}

pub(super) fn job(
    session: &mut Session,
    wanted: &[Slot],
    backend: Backend,
) -> Result<Option<Job>, LazyError> {
    let mut roots = Vec::new();
    for &slot in wanted {
        let buffer = session.buffer(slot);
        if !session.is_there_for(buffer, backend) && !roots.contains(&buffer) {
            roots.push(buffer);
        }
    }
    if roots.is_empty() {
        return Ok(None);
    }
    session.makers.update(&session.recording.program);
    let needed = Needed::of(session, &roots, backend);
    if needed.signature.made.iter().any(|&b| session.ones[b]) {
        return Err(LazyError::Mapped);
    }
    session.pending_stores = 0;
    let kept = session.kept(&needed, &roots);
    let needed = match kept.is_empty() {
        true => needed,
        false => {
            roots.extend(kept);
            Needed::of(session, &roots, backend)
        }
    };
    let mut lines = Lines::default();
    for (new, &old) in needed.signature.buffers.iter().enumerate() {
        lines.set(Buffer::from_u32(new as u32), session.place(old));
    }
    Ok(Some(Job {
        // Held while the statements run, whatever others give back meanwhile.
        results: roots.iter().map(|&b| session.hold(b)).collect(),
        signature: needed.signature,
        n_statements: needed.statements.len(),
        roots,
        backend,
        lines,
    }))
}

/// The statements that some buffers need.
pub(super) struct Needed {
    pub(super) statements: Vec<u32>,
    pub(super) signature: Signature,
}

impl Needed {
    fn of(session: &Session, roots: &[Buffer], backend: Backend) -> Self {
        let program = &session.recording.program;
        let is_there = |b: Buffer| session.is_there_for(b, backend);
        let statements = order(program, &session.makers, &is_there, roots);
        let signature = signature(program, &statements, is_there, roots);
        Self {
            statements,
            signature,
        }
    }
}

/// A plan for statements that have not come before with these constants.
fn made(
    session: &Mutex<Session>,
    key: Vec<u64>,
    program: Arc<Program>,
    settings: Settings<'_>,
) -> Result<Arc<Ready>, CompileError> {
    let mut chosen = None;
    let ready = |plan, given| {
        Arc::new(Ready {
            plan,
            given,
            program: program.clone(),
        })
    };
    for places in [Places::Known, Places::Given] {
        let (general, given) = generalised(&program, places);
        let structure = Structure::new(Arc::new(general), &settings);
        let plans = &mut lock(session).plans;
        if let Some(plan) = plans.of.get(&structure) {
            let ready = ready(plan.clone(), given);
            plans.note_known(key, &ready);
            return Ok(ready);
        }
        if places == Places::Known || plans.is_often(&structure) {
            chosen = Some((structure, given));
        }
    }
    let (structure, given) = chosen.expect("one for known places");
    let plan = Plan::new(Program::clone(&structure.program), settings)?;
    let plan = Arc::new(plan);
    let plans = &mut lock(session).plans;
    plans.note(structure, plan.clone());
    let ready = ready(plan, given);
    plans.note_known(key, &ready);
    Ok(ready)
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
    let (mut job, inputs, known) = {
        let mut session = lock(session);
        let Some(mut job) = job(&mut session, wanted, Backend(settings.backend))? else {
            return Ok(());
        };
        let values = job.inputs().iter();
        let values = values.map(|&b| session.values[b].clone().expect("it is there"));
        let inputs: Vec<Operand> = values.collect();
        session.plans.forget_others(settings.stamp);
        let setting = [settings.stamp, settings.backend.into()];
        job.signature.words.extend(setting);
        let known = session.plans.known.get(&job.signature.words[..]).cloned();
        let known = known.ok_or_else(|| job.program(&mut session));
        (job, inputs, known)
    };
    // Two threads that evaluate equal statements make equal plans, whichever is first.
    let key = std::mem::take(&mut job.signature.words);
    let made = known.or_else(|program| made(session, key, program, settings));
    let ready = match made {
        Ok(made) => made,
        Err(e) => {
            let mut session = lock(session);
            job.results.iter().for_each(|&slot| session.release(slot));
            return Err(LazyError::Compile(e));
        }
    };
    let given = Given {
        vars: &ready.given,
        place_of: Some(&|buffer| job.lines.of_buffer(buffer)),
        ..Given::default()
    };
    let results = ready.plan.run_with(inputs, given);
    let n_statements = job.n_statements;
    let results = results.map_err(|error| {
        LazyError::Run(Box::new(Ended {
            error,
            program: Program {
                sites: job.signature.sites,
                ..Program::clone(&ready.program)
            },
            lines: job.lines,
        }))
    });
    let mut session = lock(session);
    if let Ok(results) = &results {
        session.waiting.done(n_statements);
        for (&slot, operand) in job.results.iter().zip(results) {
            let buffer = session.buffer(slot);
            // Another thread may have been faster, and somebody look at what it has made.
            session.values[buffer].get_or_insert_with(|| operand.clone());
        }
    }
    job.results.iter().for_each(|&slot| session.release(slot));
    results.map(|_| ())
}
