//! Derivatives: from a module to a module.
//!
//! A kernel becomes the one that computes derivatives of what it does: in reverse (`Derivative::Grad`) the adjoints
//! of what it reads from those of what it writes, forward (`Derivative::Dual`) the tangents of what it writes from
//! those of what it reads. What comes out is ordinary IR at stage `Structured` and goes through every pass.

mod activity;
mod asked;
mod calls;
mod demand;
mod draws;
mod emptied;
mod exits;
mod forward;
mod gather;
mod hits;
mod memory;
mod nesting;
mod overwritten;
mod past;
mod prepare;
mod races;
mod refused;
mod reverse;
mod rules;
mod saved;
mod serial;
#[cfg(test)]
mod tests;
mod there;
mod turns;
mod undo;
mod winners;

use aerogel_base::{Diagnostic, ErrorKind, Span};
use aerogel_ir::analysis::access::Class;
use aerogel_ir::{Derivative, Env, FuncId, Function, Inst, Module, Op, TreeId, Value, walk};

use self::activity::Activity;
pub use self::asked::{Asked, asked_by};
use self::calls::Calls;
use self::demand::{Cx, Demand};
use self::nesting::Nesting;
use self::overwritten::Of;
use self::overwritten::{Lost, Reads, Why};
pub use self::overwritten::{Moment, Needed, Overwritten, ToldApart, Untracked};

use crate::{BrokenPass, Options};

/// Why there is no derivative.
#[derive(Debug)]
pub enum DerivativeError {
    /// The program has none, or asks for what cannot be computed: the user's mistake.
    Mistake(Box<Diagnostic>),
    /// A bug of ours.
    Broken(BrokenPass),
}

impl From<BrokenPass> for DerivativeError {
    fn from(broken: BrokenPass) -> Self {
        Self::Broken(broken)
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Adjoints, or tangents.
    pub kind: Derivative,
    /// Of the adjoints, those of arguments as well, which the derivative returns, float by float, and those of results,
    /// which it takes as further arguments, number by number.
    pub ends: bool,
    /// Whether the derivative will itself be differentiated: what is constant for this one is for the next.
    pub again: bool,
    /// Whether other trees say which cells were active when the kernel asked.
    pub past: bool,
    /// Whether the adjoints' kernel returns how often each of `Differentiated::kinks` was met. Not together with `ends`.
    pub counts_kinks: bool,
}

impl From<Derivative> for Wanted {
    fn from(kind: Derivative) -> Self {
        Self {
            kind,
            ends: false,
            again: false,
            past: false,
            counts_kinks: false,
        }
    }
}

/// A kernel's derivative.
#[derive(Clone, Debug)]
pub struct Differentiated {
    /// The module whose kernel computes it.
    pub module: Module,
    /// The kernel as it was differentiated: `needed` names places of it.
    pub primal: Function,
    /// What the derivative reads of fields and arrays besides derivatives.
    pub needed: Vec<Needed>,
    /// The functions that the kernel calls, as they were differentiated. All that they read the derivative may read, as the
    /// kernel leaves it.
    pub called: Vec<Function>,
    /// The nodes whose cells the derivative asks for.
    pub asked: Vec<Asked>,
    /// The trees of which others, behind all that there were, say which cells were active.
    pub past: Vec<TreeId>,
    /// Why the derivative must find memory as it was when the kernel began, if it must.
    pub of_start: Option<Overwritten>,
    /// What a launch must tell apart.
    pub told_apart: Vec<ToldApart>,
    /// Where a value that has a derivative goes through memory that has none, so that the derivative ends there: the
    /// user must hear of it.
    pub ends: Option<Box<Diagnostic>>,
    /// Fields and arrays in which derivatives end between this kernel and others.
    pub untracked: Untracked,
    /// The square roots whose slope at zero counts as zero, in the order of the counts that are returned.
    pub kinks: Vec<Span>,
}

impl Differentiated {
    /// What to say of each kink that is counted.
    pub fn warnings_of_kinks(&self) -> impl Iterator<Item = Diagnostic> {
        let message = "the square root of 0 has an infinite slope, which counts as 0";
        let all = self.kinks.iter();
        all.map(move |&at| Diagnostic::new(ErrorKind::Compilation, "E0606", at, message))
    }
}

pub(crate) use self::prepare::find as find_pass;

/// The derivative of a module's kernel; the module is at stage `Structured`, as the frontend makes it.
///
/// # Errors
/// If the kernel does what has no derivative, or what cannot be computed backwards.
pub fn differentiate(
    mut module: Module,
    wanted: impl Into<Wanted>,
    options: Options,
) -> Result<Differentiated, DerivativeError> {
    if let Some(mistake) = refused::shared(&module) {
        return Err(DerivativeError::Mistake(mistake));
    }
    prepare::run(&mut module, options)?;
    let kernel = module.funcs.iter().find(|(_, f)| f.is_kernel);
    let id = kernel.expect("a module has a kernel").0;
    let wanted = wanted.into();
    let past = match wanted.past {
        true => past::run(&mut module),
        false => Vec::new(),
    };
    let mut calls = Calls::declare(&mut module, id, wanted.kind);
    called(&mut module, &mut calls, wanted)?;
    let (derivative, reads) = match wanted.kind {
        Derivative::Grad => in_reverse(&mut module, id, options, wanted, &calls)?,
        Derivative::Dual => {
            prepare::all_plainly(&mut module, id, options)?;
            (
                forward(&module.funcs[id], &module, &calls)?,
                Reads::default(),
            )
        }
    };
    let mut untracked = std::mem::take(&mut calls.untracked);
    untracked.add(reads.untracked);
    let primal = std::mem::replace(&mut module.funcs[id], derivative);
    let called = calls.iter().map(|callee| {
        let func = &mut module.funcs[callee.primal];
        let stub = calls::empty(&func.name);
        std::mem::replace(func, stub)
    });
    let called = called.collect();
    module.env.exact_decisions = true;
    Ok(Differentiated {
        primal,
        needed: reads.needed,
        called,
        asked: reads.asked,
        past,
        of_start: reads.of_start,
        told_apart: reads.told_apart,
        ends: reads.ends,
        kinks: reads.kinks,
        untracked,
        module,
    })
}

/// Writes the derivatives of the functions that a kernel calls.
fn called(module: &mut Module, calls: &mut Calls, wanted: Wanted) -> Result<(), DerivativeError> {
    for callee in calls.iter().collect::<Vec<_>>() {
        let (func, env) = (&module.funcs[callee.primal], &module.env);
        let name = |id: FuncId| module.funcs[id].name.clone();
        let mut target = Function::new(name(callee.derivative), false);
        target.params.clone_from(&func.params);
        let nesting = Nesting::new(func);
        let activity = Activity::new(func, env, wanted.kind, true, calls);
        let cx = Cx {
            kind: wanted.kind,
            again: wanted.again,
            func,
            env,
            nesting: &nesting,
            activity: &activity,
            calls,
            replayed: &[],
        };
        if let Some(mistake) = refused::find(&cx) {
            return Err(DerivativeError::Mistake(mistake));
        }
        let untracked = overwritten::untracked(&cx).of_fields();
        let ends = (overwritten::ends(&cx), untracked);
        let mut rerun = Function::new(name(callee.rerun), false);
        rerun.params.clone_from(&func.params);
        let mistake = match wanted.kind {
            Derivative::Grad => {
                let [demand, of_results] = [Demand::new(&cx), Demand::of_results(&cx)];
                if let Some(lost) = demand.lost.or(of_results.lost) {
                    return Err(lost_value(func, lost));
                }
                reverse::write_rerun(Cx { ..cx }, &of_results, &mut rerun);
                reverse::write_called(cx, &demand, &mut target)
            }
            Derivative::Dual => forward::write(func, env, &activity, calls, &mut target),
        };
        if let Some(mistake) = mistake {
            return Err(DerivativeError::Mistake(mistake));
        }
        calls::limit(&mut target, env);
        calls::limit(&mut rerun, env);
        calls.add_ends(ends.0, ends.1);
        if wanted.kind == Derivative::Grad {
            module.funcs[callee.rerun] = rerun;
        }
        module.funcs[callee.derivative] = target;
    }
    Ok(())
}

/// The kernel that computes the adjoints, and what it reads: tried with ever more memory replayed, until nothing that it
/// needs is lost.
fn in_reverse(
    module: &mut Module,
    id: FuncId,
    options: Options,
    wanted: Wanted,
    calls: &Calls,
) -> Result<(Function, Reads), DerivativeError> {
    let mut replayed = Vec::new();
    loop {
        match reverse(&module.funcs[id], module, wanted, &replayed, calls)? {
            Attempt::Done(derivative, reads) => return Ok((*derivative, *reads)),
            Attempt::Replay(classes) => {
                replayed.extend(classes);
                prepare::plainly(module, id, options, &replayed)?;
            }
            Attempt::InOrder(lost) => {
                if !prepare::in_order(module, id, options, &replayed)? {
                    return Err(lost);
                }
            }
        }
    }
}

/// What came of an attempt.
enum Attempt {
    Done(Box<Function>, Box<Reads>),
    /// More memory must be replayed.
    Replay(Vec<Class>),
    /// Its loops must run in order, or there is no gradient.
    InOrder(DerivativeError),
}

/// The kernel that computes the adjoints of what `func` reads.
fn reverse(
    func: &Function,
    module: &Module,
    wanted: Wanted,
    replayed: &[Class],
    calls: &Calls,
) -> Result<Attempt, DerivativeError> {
    let env = &module.env;
    let nesting = Nesting::new(func);
    let activity = Activity::new(func, env, Derivative::Grad, wanted.ends, calls);
    let cx = Cx {
        kind: Derivative::Grad,
        again: wanted.again,
        func,
        env,
        nesting: &nesting,
        activity: &activity,
        calls,
        replayed,
    };
    if let Some(mistake) = refused::find(&cx) {
        return Err(DerivativeError::Mistake(mistake));
    }
    if let Some(race) = races::find(&cx) {
        return Err(DerivativeError::Mistake(Box::new(
            race.mistake_of_race(env),
        )));
    }
    let demand = Demand::new(&cx);
    if let Some(lost) = demand.lost {
        return Err(lost_value(func, lost));
    }
    let mut reads = overwritten::reads(&cx, &demand);
    if let Some(lost) = reads.lost {
        return Err(DerivativeError::Mistake(Box::new(lost.mistake(env))));
    }
    if !reads.replays.is_empty() {
        return Ok(Attempt::Replay(reads.replays));
    }
    if let Some(lost) = reads.in_order.or_else(|| demand.whole(func)) {
        return Ok(Attempt::InOrder(lost.in_steps(env)));
    }
    reads.untracked = overwritten::untracked(&cx);
    reads.ends = overwritten::leak(&cx).map(|leak| Box::new(leak.untracked(env)));
    let mut target = Function::new(format!("{}_grad", func.name), true);
    target.params.clone_from(&func.params);
    reads.kinks =
        reverse::write(cx, &demand, &mut target, wanted).map_err(DerivativeError::Mistake)?;
    Ok(match travels(&target) {
        Some(span) => Attempt::InOrder(kept_too_long(span)),
        None => Attempt::Done(Box::new(target), Box::new(reads)),
    })
}

/// Something saved in a buffer that a parallel loop stands between: buffers belong to one task.
fn travels(func: &Function) -> Option<Span> {
    let all = &func.regions[func.body].insts;
    let is_parallel =
        |inst: &Inst| matches!(func[*inst], Op::Parallel { .. } | Op::ParallelCells { .. });
    for (k, &inst) in all.iter().enumerate() {
        let Op::Buffer {} = func[inst] else { continue };
        let buffer = func.insts[inst].results[0];
        let Some(next) = all[k..].iter().position(is_parallel) else {
            break;
        };
        let mut later = all[k + next..].iter();
        if later.any(|&inst| uses_buffer(func, inst, buffer)) {
            return Some(func.insts[inst].span);
        }
    }
    None
}

/// Whether something makes room in a buffer, or names an element of its room.
fn uses_buffer(func: &Function, inst: Inst, buffer: Value) -> bool {
    let is_use = |func: &Function, inst: Inst| match func[inst] {
        Op::Reserve { buffer: of, .. } => of == buffer,
        Op::RoomAt { room, .. } => {
            matches!(func.def_op(room), Some(&Op::Reserve { buffer: of, .. }) if of == buffer)
        }
        _ => false,
    };
    let mut found = is_use(func, inst);
    for owned in func.owned(inst) {
        walk(func, owned, &mut |func, inst| found |= is_use(func, inst));
    }
    found
}

/// The kernel with the tangents of what it does.
fn forward(func: &Function, module: &Module, calls: &Calls) -> Result<Function, DerivativeError> {
    let env = &module.env;
    let activity = Activity::new(func, env, Derivative::Dual, false, calls);
    let nesting = Nesting::new(func);
    let cx = Cx {
        kind: Derivative::Dual,
        again: false,
        func,
        env,
        nesting: &nesting,
        activity: &activity,
        calls,
        replayed: &[],
    };
    if let Some(mistake) = refused::find(&cx) {
        return Err(DerivativeError::Mistake(mistake));
    }
    let mut target = Function::new(format!("{}_dual", func.name), true);
    target.params.clone_from(&func.params);
    target.results.clone_from(&func.results);
    match forward::write(func, env, &activity, calls, &mut target) {
        Some(mistake) => Err(DerivativeError::Mistake(mistake)),
        None => Ok(target),
    }
}

impl Lost {
    /// What to say where nothing brings it back.
    fn mistake(&self, env: &Env) -> Diagnostic {
        let why = match self.why {
            Why::Order => "which of both comes first is not known",
            Why::Undone => {
                "it cannot be put back: it is rounded where it is kept, vanishes with its cell, or goes by two names"
            }
            Why::Called => {
                "a function that calls itself reads or writes it, and when, beside the rest of the kernel, is not known"
            }
            Why::Both => "what was there at first is needed, and what is there in the end",
        };
        let remedy = match self.what.of {
            Of::Values => ", or write it to elements of its own, y[t + 1, i] from y[t, i]",
            Of::Cells => "",
        };
        let note = format!("{why}: make each step a kernel of its own, under ti.ad.Tape(){remedy}");
        self.what.gone(env).note(note)
    }
}

impl Overwritten {
    /// What to say where the value that was read cannot be put back.
    pub fn mistake(&self, env: &Env) -> Diagnostic {
        self.gone(env).note(match self.of {
            Of::Values => {
                "write to another field, or run the kernel under ti.ad.Tape(), which saves it"
            }
            Of::Cells => "run the kernel under ti.ad.Tape(), which remembers them",
        })
    }

    /// What to say of a launch whose arguments do not tell apart what is read and what is written.
    pub fn mistake_of_launch(&self, env: &Env) -> Diagnostic {
        self.gone(env).note(
            "in this launch both are the same elements: the arguments that name them are equal; write to elements of their \
             own, or to another field",
        )
    }

    /// What to say where the loops cannot run in order.
    fn in_steps(self, env: &Env) -> DerivativeError {
        let lost = Lost {
            what: self,
            why: Why::Order,
        };
        DerivativeError::Mistake(Box::new(lost.mistake(env)))
    }

    /// What to say of a value that another iteration of a parallel loop writes.
    fn mistake_of_race(&self, env: &Env) -> Diagnostic {
        let message = "what is read here other iterations of the same parallel loop write: which is first is not known, so \
                       there is no gradient";
        let written = place(env, self.written);
        Diagnostic::new(ErrorKind::Compilation, "E0605", self.read, message)
            .note(format!("it is written {written}"))
            .note("write to another field, or let the loop run in order: `ti.loop_config(serialize=True)`")
    }

    fn gone(&self, env: &Env) -> Diagnostic {
        let (message, what) = match self.of {
            Of::Values => (
                "the gradient needs the value that is read here, and the kernel overwrites it",
                "it is overwritten",
            ),
            Of::Cells => (
                "the gradient needs to know which cells are active here, and the kernel changes that",
                "it may change",
            ),
        };
        let written = place(env, self.written);
        Diagnostic::new(ErrorKind::Compilation, "E0603", self.read, message)
            .note(format!("{what} {written}"))
    }

    /// What to say of a value that has a derivative and goes through memory that has none.
    fn untracked(&self, env: &Env) -> Diagnostic {
        let message = "what is read here depends on something that has a gradient, but is kept where there is none: \
             it counts as a constant";
        let written = place(env, self.written);
        Diagnostic::new(ErrorKind::Compilation, "E0604", self.read, message)
            .note(format!("it is written {written}"))
            .note(
                "make the field with needs_grad=True, or read it as ti.stop_grad(x[i]) if no gradient is meant \
                 to pass",
            )
    }
}

/// Where something happens, as text.
fn place(env: &Env, span: Span) -> String {
    let Some(range) = env.spans.get(span) else {
        return "in the same kernel".to_owned();
    };
    let file = &env.sources[range.source];
    let (line, text) = (file.position(range.start).0, file.line_at(range.start).0);
    format!("in line {line}: `{}`", text.trim())
}

/// The mistake of a kernel whose loops cannot run in order though one saves something for behind another.
fn kept_too_long(span: Span) -> DerivativeError {
    let message = "the gradient saves what is made here beyond a loop over the cells of a sparse field, which has storage of \
                   its own";
    let mistake = Diagnostic::new(ErrorKind::Compilation, "E0602", span, message);
    DerivativeError::Mistake(Box::new(mistake.note("make each loop a kernel of its own")))
}

/// The mistake of a gradient that needs a value which cannot be made again.
fn lost_value(func: &Function, inst: Inst) -> DerivativeError {
    let what = match &func[inst] {
        Op::Cell(_) => "the index of an appended element",
        _ => "the old value of an atomic operation",
    };
    let mistake = Diagnostic::new(
        ErrorKind::Compilation,
        "E0602",
        func.insts[inst].span,
        format!("the gradient needs {what}, which it cannot compute again"),
    );
    let remedy = "write it to a field in a kernel of its own, and read it from there";
    DerivativeError::Mistake(Box::new(mistake.note(remedy)))
}
