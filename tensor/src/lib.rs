//! Tensor programs: statements over index spaces, from recorded operations to kernels.
//!
//! A [`Program`] is a list of statements, `for i < n, j < m: target[map] accum= value`, with loops and branches around and
//! inside them. Recording writes one statement for each operation; passes inline and fuse them; lowering makes one kernel of
//! each that is left. The interpreter says what any of these states means.
//!
//! `ir <- { interp, record, passes, lower } <- run <- session`, `record <- autodiff <- session`, `{ ir, lower } <- export`; `tests/tests/architecture.rs` holds it.
#![warn(missing_docs)]

pub mod autodiff;
pub mod export;
pub mod interp;
pub mod ir;
mod library;
mod lower;
pub mod passes;
pub mod record;
pub mod run;
pub mod session;

pub use aerogel_ir::ParseError;
pub use interp::Fields;
pub use ir::{
    Accum, Buffer, BufferDef, Call, Dim, DimDef, Expr, ExprDef, Exprs, For, Library, Operand,
    OutOfBounds, Outside, Program, Raised, Region, RegionDef, Role, Run, RunError, Runner, Stmt,
    Store, Var, parse, verify,
};
pub use library::{Gemm, call_library};
pub use lower::{Kernel, Parameter, lower};
pub use run::{Codes, Given, Plan, Profiler, Settings};
