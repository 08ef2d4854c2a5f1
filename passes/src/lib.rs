//! The passes: each a file with what it does, before and after, and its tests; the pipeline is a
//! table, and [`run`] the only driver.
#![warn(missing_docs)]

pub mod autodiff;
mod blocks;
mod bounds_check;
mod cells;
mod clamp_indices;
mod driver;
mod inline;
mod insert;
mod lengths;
mod loops;
mod lower_access;
mod note_accesses;
mod options;
mod pass;
mod pipeline;
mod proved_checks;
mod simplify;
mod single_exit;
pub mod split;
mod sums;
mod tasks;
mod tensors;
#[cfg(test)]
mod testing;
mod yields;

pub use driver::{BrokenPass, Observer, PassRecord, run};
pub use options::{Options, Thresholds};
pub use pass::{Pass, PassCx, Step, When};
pub use pipeline::{PIPELINE, find, names};
