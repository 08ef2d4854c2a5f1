//! Programs of tensors: what they are made of, their text, what is legal, what their expressions are, why they end early.

mod array;
mod error;
mod eval;
mod expr;
mod extents;
mod foreign;
mod function;
mod history;
mod ids;
mod kept;
mod library;
mod live_in;
mod parse;
mod print;
mod program;
mod promises;
mod region;
mod rewrite;
mod scope;
mod site;
mod size;
mod slice;
mod spots;
mod stage;
mod touched;
mod verify;

pub use array::{Array, Operand};
pub use error::{Failure, RunError};
pub(crate) use eval::{agreements, check_inputs, counted, eval_in, place, point};
pub(crate) use expr::deep;
pub use expr::{Expr, ExprDef, Exprs, Outside};
pub use extents::resolved;
pub(crate) use extents::{extent, follows, number};
pub use foreign::read;
pub use function::Function;
pub(crate) use history::History;
pub use ids::{Buffer, Dim, Region, Site, Var};
pub use kept::{Kept, Product};
pub use library::{Algebra, Call, Library, LibraryError, Transform};
pub(crate) use live_in::{live_in, makes};
pub use parse::parse;
pub use program::{Accum, Agreement, BufferDef, DimDef, For, Program, Role, Stmt, Store};
pub use promises::{Promises, checked};
pub use region::{Raised, RegionDef, Run, Runner};
pub(crate) use rewrite::{
    exprs_of, map_exprs, rewrite, rewrite_blocks, rewrite_fors, visit, visit_host, visit_mut,
};
pub(crate) use scope::Scope;
pub use site::{OutOfBounds, Place, SiteDef};
pub(crate) use size::LONGEST_SHORT;
pub use size::Size;
pub(crate) use slice::{Makers, Slice, order, reads, slice, targets};
pub use stage::Stage;
pub(crate) use touched::{Touched, is_at_own_place, is_whole, only_store};
pub use verify::{verify, verify_at};
