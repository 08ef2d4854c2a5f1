//! The driver: runs the table of passes on every function, verifies and reports.

use std::time::{Duration, Instant};

use aerogel_ir::{Env, FuncId, Function, Module, Stage, VerifyError, print_function, verify};

use crate::PassCx;
use crate::clamp_indices::Exchanged;
use crate::lengths::Lengths;
use crate::options::Options;
use crate::pass::{Pass, Step, When};
use crate::pipeline::PIPELINE;

/// How a pass went.
#[derive(Clone, Copy, Debug)]
pub struct PassRecord {
    /// The pass.
    pub name: &'static str,
    /// Whether it changed anything.
    pub changed: bool,
    /// The time it took.
    pub time: Duration,
}

/// Watches the passes, and may stop them.
pub trait Observer {
    /// Called after every pass with the function as it is then; false stops the pipeline.
    fn after(&mut self, record: PassRecord, func: &Function, env: &Env) -> bool;
}

/// A trace that records nothing.
impl Observer for () {
    fn after(&mut self, _: PassRecord, _: &Function, _: &Env) -> bool {
        true
    }
}

/// A pass that broke the rules of the IR: a bug of ours, with what is needed to repeat it.
#[derive(Debug)]
pub struct BrokenPass {
    /// The pass.
    pub pass: &'static str,
    /// The broken rule.
    pub error: VerifyError,
    /// The function before the pass, as a text that is a test.
    pub before: String,
}

impl std::fmt::Display for BrokenPass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the pass `{}` broke the IR: {}\n; test: {}\n{}",
            self.pass, self.error, self.pass, self.before
        )
    }
}

impl std::error::Error for BrokenPass {}

/// Runs the whole pipeline on every function of `module`. They reach stage `Lowered` unless the
/// observer stopped them.
pub fn run(
    module: &mut Module,
    options: Options,
    observer: &mut dyn Observer,
) -> Result<(), BrokenPass> {
    let mut stage = Stage::Structured;
    for steps in PIPELINE.split(|step| matches!(step, Step::Meet)) {
        let lengths = Lengths::new(&module.funcs);
        let exchanged = Exchanged::default();
        for id in module.funcs.keys() {
            // The function leaves the table while it changes, so that passes can read the others.
            let mut func = std::mem::replace(&mut module.funcs[id], Function::new("", false));
            let cx = PassCx {
                env: &module.env,
                funcs: &module.funcs,
                lengths: &lengths,
                exchanged: &exchanged,
                options,
            };
            let done = run_steps(steps, stage, &mut func, &cx, observer);
            module.funcs[id] = func;
            if !done? {
                return Ok(());
            }
        }
        stage = steps.iter().fold(stage, |stage, step| {
            step.passes().last().map_or(stage, |pass| pass.to)
        });
    }
    Ok(())
}

/// Runs some passes on one function of a module, in order.
pub(crate) fn run_list(
    passes: &[Pass],
    module: &mut Module,
    id: FuncId,
    options: Options,
) -> Result<(), BrokenPass> {
    let lengths = Lengths::new(&module.funcs);
    let mut func = std::mem::replace(&mut module.funcs[id], Function::new("", false));
    let cx = PassCx {
        env: &module.env,
        funcs: &module.funcs,
        lengths: &lengths,
        exchanged: &Exchanged::default(),
        options,
    };
    let mut outcome = Ok(());
    for pass in passes {
        if let Err(broken) = run_pass(pass, &mut func, &cx, &mut ()) {
            outcome = Err(broken);
            break;
        }
    }
    module.funcs[id] = func;
    outcome
}

fn run_steps(
    steps: &[Step],
    mut stage: Stage,
    func: &mut Function,
    cx: &PassCx<'_>,
    observer: &mut dyn Observer,
) -> Result<bool, BrokenPass> {
    for step in steps {
        for _ in 0..step.rounds() {
            let mut changed = false;
            for pass in step.passes() {
                debug_assert_eq!(stage, pass.from, "`{}` stands at another stage", pass.name);
                match run_pass(pass, func, cx, observer)? {
                    None => return Ok(false),
                    Some(c) => changed |= c,
                }
                stage = pass.to;
            }
            if !changed {
                break;
            }
        }
    }
    Ok(true)
}

/// Runs one pass if it is wanted: whether it changed the function, or nothing if the observer says
/// stop.
fn run_pass(
    pass: &Pass,
    func: &mut Function,
    cx: &PassCx<'_>,
    observer: &mut dyn Observer,
) -> Result<Option<bool>, BrokenPass> {
    let wanted = match pass.when {
        When::Always => true,
        When::Debug => cx.options.debug,
        When::Races => cx.env.debug_races,
        When::Deterministic => cx.env.deterministic,
        When::Optimize => cx.options.optimize,
        When::ThreadLocal => cx.options.optimize && cx.options.thread_local,
        When::PrivateCells => {
            let options = cx.options;
            let copies = options.private_cells || options.shared_memory;
            options.optimize && options.thread_local && copies
        }
    };
    debug_assert!(
        wanted || pass.from == pass.to,
        "`{}` may be left out, but changes the stage",
        pass.name
    );
    if !wanted || !func.is_kernel && pass.kernels_only {
        return Ok(Some(false));
    }
    let _span = tracing::info_span!("pass", name = pass.name, func = func.name).entered();
    let before = cx.options.verify.then(|| print_function(func, cx.env));
    let start = Instant::now();
    let changed = (pass.run)(func, cx);
    let time = start.elapsed();
    if let Some(before) = before {
        // Functions that are not kernels know no tasks; they jump from Structured to Lowered.
        let broken = |error| BrokenPass {
            pass: pass.name,
            error,
            before: before.clone(),
        };
        verify(func, cx.env, pass.to).map_err(broken)?;
        let after = print_function(func, cx.env);
        assert!(
            changed || before == after,
            "the pass `{}` reports no change:\n{before}\n{after}",
            pass.name
        );
    }
    let go_on = observer.after(
        PassRecord {
            name: pass.name,
            changed,
            time,
        },
        func,
        cx.env,
    );
    Ok(go_on.then_some(changed))
}
