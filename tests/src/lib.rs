//! Tests that span crates live in `tests/tests/`; this library holds what they share.

pub mod decisions;
pub mod differentiable;
pub mod generate;
#[cfg(feature = "compiled")]
pub mod gradients;
pub mod reduce;
pub mod run;
pub mod sources;
