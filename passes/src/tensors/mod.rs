//! Tensors and structs become scalars: large ones in loops over memory, all others one by one.

pub(crate) mod loop_tensors;
pub(crate) mod scalarize;
pub(crate) mod unroll;
