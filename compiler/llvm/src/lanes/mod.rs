//! Several iterations at once, one in each lane of vectors.
//!
//! `analysis` says what can be computed so, `plan` where a body is cut, `adds` where one without loops is, `rows` runs the
//! pieces, `emit` makes their instructions (`loops` those of loops), `saves` keeps what their turns save, and `strides` knows what lanes read side by side.

mod adds;
mod analysis;
mod emit;
mod loops;
mod plan;
mod reads;
mod rows;
mod saves;
mod strides;

pub(crate) use plan::plan;
pub(crate) use strides::far_reads;
