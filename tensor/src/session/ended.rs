//! Information about failed evaluations: the program that was run, and its source locations.

use super::Session;
use crate::ir::{Program, RunError, Slice};
use crate::record::Lines;

/// A run that ended early.
#[derive(Debug)]
pub struct Ended {
    /// Why.
    pub error: RunError,
    /// The program that was run.
    pub program: Program,
    /// Where that was written.
    pub lines: Lines,
}

impl Session {
    /// Where the buffers of a slice were made.
    pub(super) fn lines_of(&self, sliced: &Slice) -> Lines {
        let mut lines = Lines::default();
        let inputs = sliced.inputs.iter().copied().zip(sliced.program.inputs());
        for (old, new) in sliced.made.iter().copied().chain(inputs) {
            lines.set(new, self.place(old));
        }
        lines
    }
}
