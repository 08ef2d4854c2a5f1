//! Derivatives: from a module to a module.
//!
//! A kernel becomes the one that computes derivatives of what it does: in reverse (`Derivative::Grad`) the adjoints
//! of what it reads from those of what it writes, forward (`Derivative::Dual`) the tangents of what it writes from
//! those of what it reads. What comes out is ordinary IR at stage `Structured` and goes through every pass.

mod activity;
mod asked;
mod asks;
mod calls;
mod demand;
mod draws;
mod emptied;
mod exits;
mod forward;
mod gather;
mod hits;
mod memory;
mod needs;
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
mod still_stored;
mod storage;
#[cfg(test)]
mod tests;
mod there;
mod turns;
mod undo;
mod wanted;
mod where_active;
mod winners;

use aerogel_base::{Diagnostic, ErrorKind, Span};
use aerogel_ir::analysis::access::Class;
use aerogel_ir::{Derivative, FuncId, Function, Inst, Module, Op, TreeId, Value, walk};

use self::activity::Activity;
pub use self::asked::{Asked, asked_by};
use self::calls::Calls;
use self::demand::{Cx, Demand};
pub use self::needs::{Moment, Needed, Overwritten, ToldApart, Untracked};
use self::nesting::Nesting;
use self::overwritten::Reads;
use self::storage::StillStored;
pub use self::wanted::Wanted;

use crate::{BrokenPass, Options};

/// Why there is no derivative.
#[derive(Debug)]
pub enum DerivativeError {
    /// The program has no derivative, or needs one that cannot be computed: the user's mistake.
    Mistake(Box<Diagnostic>),
    /// A bug of ours.
    Broken(BrokenPass),
}

impl From<BrokenPass> for DerivativeError {
    fn from(broken: BrokenPass) -> Self {
        Self::Broken(broken)
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
    /// The nodes whose activity the derivative queries.
    pub asked: Vec<Asked>,
    /// The trees of which others, behind all that there were, say which cells were active.
    pub past: Vec<TreeId>,
    /// Why the derivative must find memory as it was when the kernel began, if it must.
    pub of_start: Option<Overwritten>,
    /// The arguments that must be disjoint in a launch.
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
            still_stored: &StillStored::new(),
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
    // Where values are read back, memory as it was at the start may not be needed.
    let read_back = || reverse(&module.funcs[id], module, wanted, &[], calls, true);
    let plain = reverse(&module.funcs[id], module, wanted, &[], calls, false);
    let needs_more = !matches!(&plain, Ok(Attempt::Done(_, reads)) if reads.of_start.is_none());
    if needs_more
        && !wanted.again
        && let Ok(Attempt::Done(derivative, reads)) = read_back()
        && reads.of_start.is_none()
    {
        return Ok((*derivative, *reads));
    }
    let mut attempt = plain;
    loop {
        match attempt? {
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
        attempt = reverse(&module.funcs[id], module, wanted, &replayed, calls, false);
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

/// The kernel that computes the adjoints of what `func` reads. Values that memory still holds may be read back.
fn reverse(
    func: &Function,
    module: &Module,
    wanted: Wanted,
    replayed: &[Class],
    calls: &Calls,
    reads_back: bool,
) -> Result<Attempt, DerivativeError> {
    let env = &module.env;
    let nesting = Nesting::new(func);
    let activity = Activity::new(func, env, Derivative::Grad, wanted.ends, calls);
    let none = StillStored::new();
    let cx = Cx {
        kind: Derivative::Grad,
        again: wanted.again,
        func,
        env,
        nesting: &nesting,
        activity: &activity,
        calls,
        replayed,
        still_stored: &none,
    };
    let still_stored = match reads_back {
        true => overwritten::still_stored(&cx),
        false => StillStored::new(),
    };
    let cx = Cx {
        still_stored: &still_stored,
        ..cx
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
        return Ok(Attempt::InOrder(DerivativeError::Mistake(Box::new(
            lost.in_steps(env),
        ))));
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
        still_stored: &StillStored::new(),
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
