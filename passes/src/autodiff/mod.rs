//! Derivatives: from a module to a module.
//!
//! A kernel becomes the one that computes derivatives of what it does: in reverse (`Derivative::Grad`) the adjoints
//! of what it reads from those of what it writes, forward (`Derivative::Dual`) the tangents of what it writes from
//! those of what it reads. What comes out is ordinary IR at stage `Structured` and goes through every pass.

mod activity;
mod demand;
mod exits;
mod nesting;
mod prepare;
mod reverse;
mod rules;
mod saved;

use aerogel_base::{Diagnostic, ErrorKind};
use aerogel_ir::{Derivative, Env, Function, Inst, Module, Op};

use self::activity::Activity;
use self::demand::{Cx, Demand};
use self::nesting::Nesting;

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

/// A kernel's derivative.
#[derive(Clone, Debug)]
pub struct Differentiated {
    /// The module whose kernel computes it.
    pub module: Module,
}

pub(crate) use self::prepare::find as find_pass;

/// The derivative of a module's kernel; the module is at stage `Structured`, as the frontend makes it.
///
/// # Errors
/// If the kernel does what has no derivative, or what cannot be computed backwards.
pub fn differentiate(
    mut module: Module,
    kind: Derivative,
    options: Options,
) -> Result<Differentiated, DerivativeError> {
    prepare::run(&mut module, options)?;
    let kernel = module.funcs.iter().find(|(_, f)| f.is_kernel);
    let id = kernel.expect("a module has a kernel").0;
    let func = &module.funcs[id];
    let derivative = match kind {
        Derivative::Grad => reverse(func, &module.env)?,
        Derivative::Dual => todo!(),
    };
    module.funcs[id] = derivative;
    Ok(Differentiated { module })
}

/// The kernel that computes the adjoints of what `func` reads.
fn reverse(func: &Function, env: &Env) -> Result<Function, DerivativeError> {
    let nesting = Nesting::new(func);
    let activity = Activity::new(func, env, Derivative::Grad);
    let cx = Cx {
        func,
        env,
        nesting: &nesting,
        activity: &activity,
    };
    let demand = Demand::new(&cx);
    if let Some(lost) = demand.lost {
        return Err(lost_value(func, lost));
    }
    let mut target = Function::new(format!("{}_grad", func.name), true);
    target.params.clone_from(&func.params);
    match reverse::write(cx, &demand, &mut target) {
        Some(mistake) => Err(DerivativeError::Mistake(mistake)),
        None => Ok(target),
    }
}

/// The mistake of a gradient that needs a value which cannot be made again.
fn lost_value(func: &Function, inst: Inst) -> DerivativeError {
    let what = match &func[inst] {
        Op::Random {} => "a random number",
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
