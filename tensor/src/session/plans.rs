//! Plans: the program of what is evaluated, whether there is a plan for it already, and its run.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use aerogel_base::Scalar;
use aerogel_base::hash::LookupMap;
use aerogel_compiler::CompileError;

use super::general::{Places, generalised};
use super::policy::{MAX_ALIKE, MAX_KNOWN, MAX_PLANNED, MAX_PLANS};
use super::{Backend, Ended, LazyError, Session, Slot, lock};
use crate::ir::{Buffer, BufferDef, Operand, Program, Slice};
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

/// A plan, and the numbers that it takes.
type Ready = (Arc<Plan>, Vec<Scalar>);

/// The plans that a session keeps.
#[derive(Default)]
pub(super) struct Plans {
    of: LookupMap<Structure, Arc<Plan>>,
    /// The plans of programs with these constants: their general form need not be derived again.
    known: LookupMap<Structure, Ready>,
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

    fn note_known(&mut self, structure: Structure, ready: Ready) {
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(structure, ready);
    }
}

/// A program to run, what it takes, and whose its results are.
pub(super) struct Job {
    pub(super) program: Arc<Program>,
    pub(super) lines: Lines,
    pub(super) inputs: Vec<Buffer>,
    pub(super) results: Vec<Slot>,
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
    let first = session.slice(&roots, backend);
    if first.made.iter().any(|&(old, _)| session.ones[old]) {
        return Err(LazyError::Mapped);
    }
    session.pending_stores = 0;
    let kept = session.kept(&first, &roots);
    let sliced = match kept.is_empty() {
        true => first,
        false => {
            roots.extend(kept);
            session.slice(&roots, backend)
        }
    };
    Ok(Some(Job {
        lines: session.lines_of(&sliced),
        inputs: sliced.inputs,
        program: Arc::new(sliced.program),
        // Held while the program runs, whatever others give back meanwhile.
        results: roots.iter().map(|&b| session.hold(b)).collect(),
    }))
}

/// The plan of a program whose like, number for number, has not come before.
fn made(
    session: &Mutex<Session>,
    known: Structure,
    settings: Settings<'_>,
) -> Result<Ready, CompileError> {
    let mut chosen = None;
    for places in [Places::Known, Places::Given] {
        let (program, given) = generalised(&known.program, places);
        let structure = Structure::new(Arc::new(program), &settings);
        let plans = &mut lock(session).plans;
        if let Some(plan) = plans.of.get(&structure) {
            let ready = (plan.clone(), given);
            plans.note_known(known, ready.clone());
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
    let ready = (plan, given);
    plans.note_known(known, ready.clone());
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
    let (job, inputs) = {
        let mut session = lock(session);
        let Some(mut job) = job(&mut session, wanted, Backend(settings.backend))? else {
            return Ok(());
        };
        let values = std::mem::take(&mut job.inputs).into_iter();
        let values = values.map(|b| session.values[b].clone().expect("it is there"));
        let inputs: Vec<Operand> = values.collect();
        (job, inputs)
    };
    let structure = Structure::new(job.program.clone(), &settings);
    // Two statements that agree make equal programs, whoever makes the plan first.
    let known = {
        let plans = &mut lock(session).plans;
        plans.forget_others(settings.stamp);
        plans.known.get(&structure).cloned()
    };
    let made = match known {
        Some(ready) => Ok(ready),
        None => made(session, structure, settings),
    };
    let (plan, given) = match made {
        Ok(made) => made,
        Err(e) => {
            let mut session = lock(session);
            job.results.iter().for_each(|&slot| session.release(slot));
            return Err(LazyError::Compile(e));
        }
    };
    let given = Given {
        vars: &given,
        place_of: Some(&|buffer| job.lines.of_buffer(buffer)),
        ..Given::default()
    };
    let results = plan.run_with(&inputs, given);
    let n_statements = job.program.body.len();
    let results = results.map_err(|error| {
        LazyError::Run(Box::new(Ended {
            error,
            program: Arc::unwrap_or_clone(job.program),
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

impl Session {
    /// Where the buffers of a slice were made.
    fn lines_of(&self, sliced: &Slice) -> Lines {
        let mut lines = Lines::default();
        let inputs = sliced.inputs.iter().copied().zip(sliced.program.inputs());
        for (old, new) in sliced.made.iter().copied().chain(inputs) {
            lines.set(new, self.place(old));
        }
        lines
    }
}
