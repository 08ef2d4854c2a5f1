//! What a pass is: a row of the pipeline, and what it may look at besides its function.

use aerogel_base::entity::PrimaryMap;
use aerogel_ir::{Env, FuncId, Function, Stage};

use crate::clamp_indices::Exchanged;
use crate::lengths::Lengths;
use crate::options::Options;

/// What a pass may look at besides its function.
pub struct PassCx<'a> {
    /// What the function names.
    pub env: &'a Env,
    /// The module's functions; the one being changed is empty here.
    pub funcs: &'a PrimaryMap<FuncId, Function>,
    /// How long those are that can be inlined.
    pub lengths: &'a Lengths,
    /// What the functions exchange, for `clamp_indices`.
    pub exchanged: &'a Exchanged,
    /// The options.
    pub options: Options,
}

/// When a pass runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always: later passes need what it does.
    Always,
    /// In debug mode.
    Debug,
    /// Where data races are looked for.
    Races,
    /// Where results must not depend on threads.
    Deterministic,
    /// Unless optimisation is off.
    Optimize,
    /// With optimisation and thread-local storage.
    ThreadLocal,
    /// As `ThreadLocal`, where threads have memory of their own.
    PrivateCells,
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name, that of its file.
    pub name: &'static str,
    /// What it does; whether it changed anything.
    pub run: fn(&mut Function, &PassCx<'_>) -> bool,
    /// The stage before it.
    pub from: Stage,
    /// The stage after it.
    pub to: Stage,
    /// When it runs.
    pub when: When,
    /// Whether it is about what only kernels have.
    pub kernels_only: bool,
}

impl Pass {
    /// A pass of structured functions that a step from module to module always needs.
    pub(crate) const fn structured(
        name: &'static str,
        run: fn(&mut Function, &PassCx<'_>) -> bool,
    ) -> Self {
        Self {
            name,
            run,
            from: Stage::Structured,
            to: Stage::Structured,
            when: When::Always,
            kernels_only: false,
        }
    }
}

/// A pass, or a group that runs until nothing changes.
pub enum Step {
    /// One pass.
    Pass(Pass),
    /// Passes that make work for each other.
    Group {
        /// The group's name.
        name: &'static str,
        /// The passes, in order.
        passes: &'static [Pass],
        /// At most this many rounds.
        rounds: u32,
    },
    /// All functions run this pass before the next pass begins.
    Meet,
}

impl Step {
    /// Its passes, in order.
    pub fn passes(&self) -> &[Pass] {
        match self {
            Self::Pass(pass) => std::slice::from_ref(pass),
            Self::Group { passes, .. } => passes,
            Self::Meet => &[],
        }
    }

    /// How often they run at most.
    pub fn rounds(&self) -> u32 {
        match self {
            Self::Pass(_) => 1,
            Self::Group { rounds, .. } => *rounds,
            Self::Meet => 0,
        }
    }
}
