//! Several iterations at once, one in each lane of vectors.
//!
//! `analysis` says what can be computed so, `plan` where a body is cut, `adds` where one without loops is, `rows` runs the
//! pieces, `emit` makes their instructions (`loops` those of loops), `saves` says what their turns save and `reads` what they read, `emit_saves` and `emit_reads` do it, and `strides` knows what lanes read side by side.

mod adds;
mod analysis;
mod emit;
mod emit_reads;
mod emit_saves;
mod loops;
mod plan;
mod reads;
mod rows;
mod saves;
mod strides;

pub(crate) use plan::{Plan, plan, plan_inside};
pub(crate) use strides::far_reads;
