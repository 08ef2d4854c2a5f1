//! The shape of loops: which axes they have, in which order, and what they carry from one iteration to the next.

pub(crate) mod axis_order;
pub(crate) mod carried_elements;
pub(crate) mod carried_powers;
pub(crate) mod chosen_elements;
mod copies;
mod elements;
pub(crate) mod flat_index;
pub(crate) mod matrix_products;
pub(crate) mod partners;
pub(crate) mod short_axis;
pub(crate) mod skipped_iteration;
