//! The intermediate representation: hierarchical SSA, one row per instruction.
//!
//! A [`Module`] owns functions and what they name: SNode trees, fields, structs, source spans. A
//! function's instructions lie in tables indexed by small ids; regions are straight lines that end
//! in a terminator, and control flow is instructions that own regions.
#![warn(missing_docs)]

pub mod analysis;
mod build;
pub mod derivatives;
pub mod eval;
mod func;
mod lex;
mod module;
pub mod op;
mod op_field;
mod op_kinds;
mod parse;
mod print;
mod rewrite;
mod scoped_map;
mod stage;
mod types;
mod verify;
mod verify_memory;
mod verify_nodes;
mod verify_types;

pub use aerogel_base::{AssertKind, NoteKind};
pub use analysis::at_least;
pub use build::Builder;
pub use func::{Function, InstData, ParamData, ParamType, RegionData, ValueData, ValueDef, walk};
pub use lex::{Lexer, ParseError};
pub use module::{Env, FieldData, Module};
pub use op::{CellOp, NodeOp, Op};
pub use op_kinds::{
    Around, AtomicOp, BinaryOp, CompareOp, Derivative, FastMath, LoopAttrs, NodeRef, TaskKind,
    ThreadOp, UnaryOp,
};
pub use parse::parse_module;
pub use print::{print_function, print_module};
pub use rewrite::{
    Rewrite, Rewriter, copy_region, import_inst, import_region, replace_value, replace_values,
    rewrite, rewrite_with,
};
pub use scoped_map::ScopedMap;
pub use stage::{Effect, Stage};
pub use types::{Arg, FieldId, FuncId, Inst, Region, StructId, TreeId, Type, Value};
pub use verify::{VerifyError, verify, verify_calls};
