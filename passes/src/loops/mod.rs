//! The shape of parallel loops: which axes they have, and in which order.

pub(crate) mod axis_order;
pub(crate) mod flat_index;
