//! The tuner: measures a program with other sizes of tiles and limits of fusion, and chooses the fastest.
//!
//! Choices are tried one after the other, each with the best of those before. One whose results differ from those of the
//! defaults in a bit is not chosen. A choice must be at least 5 % faster, since times vary by that much.

use std::time::{Duration, Instant};

use aerogel_compiler::CompileError;

use super::{Plan, Settings};
use crate::ir::{Operand, Program, RunError};
use crate::passes::Caps;

/// Another choice takes at most this part of the time of the best one.
const FASTER: f64 = 0.95;
/// How long a plan is measured, and how often at most.
const LONG: Duration = Duration::from_millis(100);
const OFTEN: usize = 50;

/// What the tuner has found.
pub struct Tuned {
    /// The choices.
    pub caps: Caps,
    /// The plan with them.
    pub plan: Plan,
    /// How many plans were measured.
    pub n_measured: usize,
}

/// Why there is nothing.
#[derive(Debug)]
pub enum TuneError {
    /// A plan cannot be made.
    Compile(CompileError),
    /// The program fails with these inputs.
    Run(RunError),
}

/// Chooses for a program without other effects than its results, with these inputs.
///
/// # Errors
/// If the program fails with the defaults.
pub fn tune(
    program: &Program,
    inputs: &[Operand],
    settings: Settings<'_>,
) -> Result<Tuned, TuneError> {
    let caps = settings.options.caps;
    let plan = plan(program, caps, settings).map_err(TuneError::Compile)?;
    let expected = bytes(&plan.run(inputs).map_err(TuneError::Run)?).map_err(TuneError::Run)?;
    let mut seen = vec![plan.program().to_string()];
    let mut best = Tuned {
        caps,
        plan,
        n_measured: 1,
    };
    for choice in 0..Caps::N {
        for caps in best.caps.others(choice) {
            // What cannot be compiled with other choices is no choice.
            let Ok(plan) = self::plan(program, caps, settings) else {
                continue;
            };
            let text = plan.program().to_string();
            let same = || bytes(&plan.run(inputs)?);
            if seen.contains(&text) || !same().is_ok_and(|made| made == expected) {
                continue;
            }
            seen.push(text);
            best.n_measured += 1;
            // One after the other, since a machine becomes slower and faster.
            let [own, other] = [&best.plan, &plan].map(|plan| measured(plan, inputs));
            let own = own.map_err(TuneError::Run)?;
            let Ok(other) = other else { continue };
            if other.as_secs_f64() < FASTER * own.as_secs_f64() {
                (best.caps, best.plan) = (caps, plan);
            }
        }
    }
    Ok(best)
}

/// A plan with other choices.
///
/// # Errors
/// As `Plan::new`.
pub fn plan(program: &Program, caps: Caps, settings: Settings<'_>) -> Result<Plan, CompileError> {
    let mut settings = settings;
    settings.options.caps = caps;
    Plan::new(program.clone(), settings)
}

/// The bytes of results.
fn bytes(results: &[Operand]) -> Result<Vec<Vec<u8>>, RunError> {
    let read = |result: &Operand| {
        let n = result.shape.iter().product::<usize>() * result.ty.bytes() as usize;
        let mut bytes = vec![0; n];
        result.buffer.read(0, &mut bytes)?;
        Ok(bytes)
    };
    results.iter().map(read).collect()
}

/// The least time of some runs.
fn measured(plan: &Plan, inputs: &[Operand]) -> Result<Duration, RunError> {
    let begin = Instant::now();
    let mut least = Duration::MAX;
    for _ in 0..OFTEN {
        let start = Instant::now();
        plan.run(inputs)?;
        least = least.min(start.elapsed());
        if begin.elapsed() > LONG {
            break;
        }
    }
    Ok(least)
}
