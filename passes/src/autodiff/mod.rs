//! Derivatives: from a module to a module.
//!
//! A kernel becomes the one that computes derivatives of what it does: in reverse (`Derivative::Grad`) the adjoints
//! of what it reads from those of what it writes, forward (`Derivative::Dual`) the tangents of what it writes from
//! those of what it reads. What comes out is ordinary IR at stage `Structured` and goes through every pass.

mod activity;
mod demand;
mod draws;
mod exits;
mod forward;
mod gather;
mod nesting;
mod overwritten;
mod places;
mod prepare;
mod races;
mod refused;
mod reverse;
mod rules;
mod saved;
mod serial;
#[cfg(test)]
mod tests;
mod turns;

use aerogel_base::{Diagnostic, ErrorKind, Span};
use aerogel_ir::{Derivative, Env, Function, Inst, Module, Op};

use self::activity::Activity;
use self::demand::{Cx, Demand};
use self::nesting::Nesting;
use self::overwritten::Reads;
pub use self::overwritten::{Moment, Needed, Overwritten, Untracked};

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
}

impl From<Derivative> for Wanted {
    fn from(kind: Derivative) -> Self {
        Self {
            kind,
            ends: false,
            again: false,
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
    /// Why the derivative must find memory as it was when the kernel began, if it must.
    pub of_start: Option<Overwritten>,
    /// Where a value that has a derivative goes through memory that has none, so that the derivative ends there: the
    /// user must hear of it.
    pub ends: Option<Box<Diagnostic>>,
    /// Fields in which derivatives end between this kernel and others.
    pub untracked: Untracked,
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
    prepare::run(&mut module, options)?;
    let kernel = module.funcs.iter().find(|(_, f)| f.is_kernel);
    let id = kernel.expect("a module has a kernel").0;
    let primal = module.funcs[id].clone();
    let wanted = wanted.into();
    let (derivative, reads) = match wanted.kind {
        Derivative::Grad => reverse(&primal, &module, wanted)?,
        Derivative::Dual => (forward(&primal, &module)?, Reads::default()),
    };
    module.funcs[id] = derivative;
    module.env.exact_decisions = true;
    Ok(Differentiated {
        module,
        primal,
        needed: reads.needed,
        of_start: reads.of_start,
        ends: reads.ends,
        untracked: reads.untracked,
    })
}

/// The kernel that computes the adjoints of what `func` reads.
fn reverse(
    func: &Function,
    module: &Module,
    wanted: Wanted,
) -> Result<(Function, Reads), DerivativeError> {
    let (env, ends) = (&module.env, wanted.ends);
    let nesting = Nesting::new(func);
    let activity = Activity::new(func, env, Derivative::Grad, ends);
    let cx = Cx {
        kind: Derivative::Grad,
        again: wanted.again,
        func,
        env,
        nesting: &nesting,
        activity: &activity,
    };
    if let Some(mistake) = refused::find(&cx, &module.funcs) {
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
    reads.untracked = overwritten::untracked(&cx);
    reads.ends = overwritten::leak(&cx).map(|leak| Box::new(leak.untracked(env)));
    if let Some(lost) = reads.lost {
        return Err(DerivativeError::Mistake(Box::new(
            lost.mistake_of_steps(env),
        )));
    }
    let mut target = Function::new(format!("{}_grad", func.name), true);
    target.params.clone_from(&func.params);
    match reverse::write(cx, &demand, &mut target, ends) {
        Some(mistake) => Err(DerivativeError::Mistake(mistake)),
        None => Ok((target, reads)),
    }
}

/// The kernel with the tangents of what it does.
fn forward(func: &Function, module: &Module) -> Result<Function, DerivativeError> {
    let env = &module.env;
    let activity = Activity::new(func, env, Derivative::Dual, false);
    let nesting = Nesting::new(func);
    let cx = Cx {
        kind: Derivative::Dual,
        again: false,
        func,
        env,
        nesting: &nesting,
        activity: &activity,
    };
    if let Some(mistake) = refused::find(&cx, &module.funcs) {
        return Err(DerivativeError::Mistake(mistake));
    }
    let mut target = Function::new(format!("{}_dual", func.name), true);
    target.params.clone_from(&func.params);
    target.results.clone_from(&func.results);
    match forward::write(func, env, &activity, &mut target) {
        Some(mistake) => Err(DerivativeError::Mistake(mistake)),
        None => Ok(target),
    }
}

impl Overwritten {
    /// What to say where the value that was read cannot be put back.
    pub fn mistake(&self, env: &Env) -> Diagnostic {
        self.gone(env)
            .note("write to another field, or run the kernel under ti.ad.Tape(), which saves it")
    }

    /// What to say where it is at no moment in memory.
    fn mistake_of_steps(&self, env: &Env) -> Diagnostic {
        self.gone(env).note(
            "it is written both before and after it is read: make each step a kernel of its own, under ti.ad.Tape(), or \
             write it to elements of its own, y[t + 1, i] from y[t, i]",
        )
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
        let message =
            "the gradient needs the value that is read here, and the kernel overwrites it";
        let written = place(env, self.written);
        Diagnostic::new(ErrorKind::Compilation, "E0603", self.read, message)
            .note(format!("it is overwritten {written}"))
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

/// The mistake of a gradient that needs a value which cannot be made again.
fn lost_value(func: &Function, inst: Inst) -> DerivativeError {
    let what = match &func[inst] {
        Op::Call { .. } => "the result of a function that calls itself",
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
