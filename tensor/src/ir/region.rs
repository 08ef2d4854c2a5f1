//! Kernels of the user's as statements of programs: what a program knows of them, and how they are run.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use aerogel_base::{Scalar, Span};
use aerogel_ir::TreeId;

use super::array::Operand;
use super::error::RunError;
use super::ids::{Buffer, Region};

/// Runs a kernel of the user's. Whoever records it says how.
pub trait Runner: Send + Sync {
    /// Runs it on arrays, which come back in the same order: those that it writes may be other memory. Also what it returns.
    ///
    /// # Errors
    /// Why it ended early.
    fn run(&self, arrays: Vec<Operand>) -> Result<(Vec<Operand>, Vec<Scalar>), RunError>;

    /// What runs its gradient: on the arrays as they were before the kernel ran, an adjoint for each array of floats, which
    /// it writes, and one for each float that the kernel returns.
    ///
    /// # Errors
    /// Why it has none.
    fn gradient(&self) -> Result<Arc<dyn Runner>, String> {
        Err("it is no kernel".to_owned())
    }

    /// The smallest number that it accepts, and the message for others, if it only checks the one number that it is given.
    fn least(&self) -> Option<(i32, &str)> {
        None
    }

    /// Whether it may be run once more and does the same.
    fn is_repeatable(&self) -> bool {
        false
    }
}

/// The exception that a user's kernel raised in one run.
#[derive(Clone, Debug)]
pub struct Raised(pub Arc<dyn Error + Send + Sync>);

impl PartialEq for Raised {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.to_string() == other.0.to_string()
    }
}

impl Eq for Raised {}

/// A kernel of the user's: what statements around it have to know.
#[derive(Clone)]
pub struct RegionDef {
    /// Its name.
    pub name: String,
    /// Whether it writes each of its arrays. It may read all of them.
    pub writes: Vec<bool>,
    /// The trees that it reads and writes, and in which it may make cells active or inactive.
    pub trees: Vec<TreeId>,
    /// How it is run; nothing in a program that was read from text.
    pub runner: Option<Arc<dyn Runner>>,
}

impl fmt::Debug for RegionDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.name, self.writes)
    }
}

impl RegionDef {
    /// The smallest number that it accepts, and its message, if it only checks one (`Runner::least`).
    pub(crate) fn least(&self) -> Option<(i32, &str)> {
        self.runner.as_ref()?.least()
    }

    pub(crate) fn run(
        &self,
        arrays: Vec<Operand>,
    ) -> Result<(Vec<Operand>, Vec<Scalar>), RunError> {
        match &self.runner {
            Some(runner) => runner.run(arrays),
            None => {
                let what = format!("kernel `{}` is not there", self.name);
                Err(RunError::Region(Raised(Arc::from(Box::<
                    dyn Error + Send + Sync,
                >::from(
                    what
                )))))
            }
        }
    }
}

/// `results = region(arrays)`: a kernel of the user's, launched by the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The kernel to run.
    pub region: Region,
    /// The buffers that are its arrays.
    pub arrays: Vec<Buffer>,
    /// Temporaries with one number each for what it returns.
    pub results: Vec<Buffer>,
    /// Where it was written.
    pub span: Span,
}
