//! Each pass, before and after.

mod points;
mod products;
mod reductions;
#[path = "../support/mod.rs"]
mod support;
mod values;
