//! A kernel becomes a list of tasks, each isolated from the others.

pub(crate) mod offload;
pub(crate) mod order;
