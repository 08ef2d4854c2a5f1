//! Information about failed evaluations: the program that was run, and its source locations.

use crate::ir::{Program, RunError};
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
