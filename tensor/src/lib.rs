//! Tensor programs: statements over index spaces, from what a person wrote down to kernels.
//!
//! A [`Program`] is a list of statements, `for i < n, j < m: target[map] accum= value`, with loops and branches around and
//! inside them. Recording writes one statement for each operation; passes inline and fuse them; lowering makes one kernel of
//! each that is left. The interpreter says what any of these states means.
#![warn(missing_docs)]

pub mod algebra;
mod bounds;
mod cells;
pub mod explain;
mod expr;
mod extents;
mod free;
pub mod interp;
pub mod lazy;
mod library;
mod lower;
mod operand;
mod parse;
pub mod passes;
mod plan;
mod print;
mod program;
pub mod record;
mod region;
mod slice;
mod sort;
mod verify;

pub use aerogel_ir::ParseError;
pub use bounds::OutOfBounds;
pub use cells::Fields;
pub use expr::{Expr, ExprDef, Exprs, Outside};
pub use lower::{Kernel, Parameter, lower};
pub use operand::Operand;
pub use parse::parse;
pub use plan::{Codes, Plan, RunError, Settings};
pub use program::{
    Accum, Buffer, BufferDef, Call, Dim, DimDef, For, Library, Program, Role, Stmt, Store, Var,
};
pub use region::{Raised, Region, RegionDef, Run, Runner};
pub use verify::verify;
