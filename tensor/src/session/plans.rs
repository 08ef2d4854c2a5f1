//! Plans: the program of what is evaluated, whether there is a plan for it already, and its run.

use std::sync::{Arc, Mutex};

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::CompileError;

use super::policy::{MAX_ALIKE, MAX_PLANNED, MAX_PLANS};
use super::{Ended, LazyError, Session, Slot, general, lock};
use crate::ir::{Buffer, Dim, DimDef, Expr, ExprDef, Operand, Program, Role, Stmt};
use crate::record::Lines;
use crate::run::{Plan, Settings};

/// All that a program's plan depends on.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Structure {
    dims: Vec<DimDef>,
    buffers: Vec<(ScalarType, Vec<Dim>, Role)>,
    exprs: Vec<ExprDef>,
    body: Vec<Stmt>,
    results: Vec<Buffer>,
    /// Of the settings.
    stamp: u64,
}

impl Structure {
    pub(super) fn of(program: &Program) -> Self {
        let buffers = program.buffers.iter();
        let exprs = 0..program.exprs.len() as u32;
        Self {
            dims: program.dims.iter().cloned().collect(),
            buffers: buffers
                .map(|(_, b)| (b.ty, b.shape.clone(), b.role))
                .collect(),
            exprs: exprs
                .map(|e| program.exprs[Expr::from_u32(e)].clone())
                .collect(),
            body: program.body.clone(),
            results: program.results.clone(),
            stamp: 0,
        }
    }
}

impl Session {
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
}

/// A program to run, what it takes, and whose its results are.
struct Job {
    program: Program,
    lines: Lines,
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
        lines: session.lines_of(&sliced),
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
    program: &Program,
    structure: Structure,
    settings: Settings<'_>,
) -> Result<(Arc<Plan>, Vec<Scalar>), CompileError> {
    let mut made = (None, structure, Vec::new());
    if let Some((program, given)) = general::generalised(program) {
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
            Some(n) if *n >= MAX_ALIKE => made = (Some(program), structure, given),
            Some(n) => *n += 1,
            None => {
                session.alike.insert(structure, 1);
            }
        }
    }
    let (general, structure, given) = made;
    let program = general.unwrap_or_else(|| program.clone());
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
        None => made(session, &job.program, job.structure, settings),
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
    let (program, lines) = (job.program, job.lines);
    let results = results.map_err(|error| {
        LazyError::Run(Box::new(Ended {
            error,
            program,
            lines,
        }))
    });
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
