//! The functions of the language, one row each.
//!
//! A row is a name and a rule. `sin` is `Unary(Sin, FloatOnly, f64::sin)`: of a constant it is computed now, in double
//! as Python would; of a value it becomes the instruction. What needs more than a row says is a function in
//! `lower/builtins.rs`.

use aerogel_base::ScalarType;
use aerogel_ir::{AtomicOp, BinaryOp, ThreadOp, UnaryOp};

use crate::ast;
use crate::infer::UnaryRule::{self, *};

/// What a call of a builtin does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// A function of one number, elementwise.
    Unary(UnaryOp, UnaryRule, Option<fn(f64) -> f64>),
    /// A function of two or more numbers of the promoted type, elementwise.
    Fold(BinaryOp),
    /// A function of two numbers of the promoted type, elementwise.
    Binary(BinaryOp),
    /// A change of storage that gives the old value.
    Atomic(AtomicOp),
    /// A hint that the compiler does not need: its first argument.
    Same,
    /// A constructor of tensors.
    Make(Maker),
    Special(Special),
}

/// Builtins that need more than a row says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Special {
    /// `floor` and related functions, with an optional result type.
    Rounding(UnaryOp),
    Abs,
    Atan2,
    /// The function form of an operator.
    Operator(ast::BinaryOp),
    BitShr,
    Select,
    LogicalNot,
    Cast,
    BitCast,
    DefaultInt,
    DefaultFloat,
    Bool,
    /// A constant in the type and shape of the argument.
    Filled(i128),
    GetAddr,
    Prefetch,
    CompareAndSwap,
    /// `ti.Struct`.
    Struct,
    Static,
    StaticPrint,
    StaticAssert,
    Range,
    NdRange,
    Grouped,
    Zip,
    Enumerate,
    Reversed,
    Len,
    IsInstance,
    Reduce(ast::BinaryOp),
    /// Whether any, or all, elements are true.
    Any,
    All,
    List,
    Tuple,
    Frexp,
    LoopConfig,
    MeshPatch,
    Print,
    Random,
    RandomNormal,
    Node(NodeFunction),
    RescaleIndex,
    StopGradient,
    /// What threads of a GPU do together.
    Threads(ThreadOp, Option<ScalarType>),
    SharedArray,
}

/// A function of a node and the indices of one of its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeFunction {
    Activate,
    Deactivate,
    IsActive,
    Append,
    Length,
}

/// The constructors of tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Maker {
    /// `ti.Vector` and `ti.Matrix`.
    List,
    /// `ti.Matrix.zero` and `one`.
    Constant(i128),
    Unit,
    Identity,
    Diagonal,
    Rows,
    Columns,
}

use Rule::{Atomic, Binary, Fold, Make, Same, Unary};

/// The rule of a builtin.
pub(crate) fn find(name: &str) -> Option<Rule> {
    TABLE
        .iter()
        .find(|row| row.0 == name)
        .map(|row| row.1)
        .or_else(|| {
            // `ti.Vector.zero` and `ti.Matrix.zero` are one.
            let member = name.strip_prefix("Vector.")?;
            TABLE
                .iter()
                .find(|row| row.0.strip_prefix("Matrix.") == Some(member))
                .map(|row| row.1)
        })
}

/// Whether a name is that of a mathematical function, which Python may have too.
pub(crate) fn is_function(name: &str) -> bool {
    match find(name) {
        Some(Unary(..) | Fold(_) | Binary(_)) => true,
        Some(Rule::Special(special)) => matches!(
            special,
            Special::Rounding(_) | Special::Abs | Special::Atan2 | Special::Operator(_)
        ),
        Some(Atomic(_) | Same | Make(_)) | None => false,
    }
}

/// Every builtin's name, in the order of the table.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.0)
}

const fn special(special: Special) -> Rule {
    Rule::Special(special)
}

const fn threads(op: ThreadOp) -> Rule {
    Rule::Special(Special::Threads(op, None))
}

/// The same of numbers of one type.
const fn threads_of(op: ThreadOp, ty: ScalarType) -> Rule {
    Rule::Special(Special::Threads(op, Some(ty)))
}

#[rustfmt::skip]
const TABLE: &[(&str, Rule)] = &[
    // Functions of one number.
    ("sin",        Unary(UnaryOp::Sin,    FloatOnly, Some(f64::sin))),
    ("cos",        Unary(UnaryOp::Cos,    FloatOnly, Some(f64::cos))),
    ("tan",        Unary(UnaryOp::Tan,    FloatOnly, Some(f64::tan))),
    ("asin",       Unary(UnaryOp::Asin,   FloatOnly, Some(f64::asin))),
    ("acos",       Unary(UnaryOp::Acos,   FloatOnly, Some(f64::acos))),
    ("atan",       Unary(UnaryOp::Atan,   FloatOnly, Some(f64::atan))),
    ("sinh",       Unary(UnaryOp::Sinh,   FloatOnly, Some(f64::sinh))),
    ("cosh",       Unary(UnaryOp::Cosh,   FloatOnly, Some(f64::cosh))),
    ("tanh",       Unary(UnaryOp::Tanh,   FloatOnly, Some(f64::tanh))),
    ("sqrt",       Unary(UnaryOp::Sqrt,   ToFloat,   Some(f64::sqrt))),
    ("rsqrt",      Unary(UnaryOp::Rsqrt,  ToFloat,   None)),
    ("exp",        Unary(UnaryOp::Exp,    ToFloat,   Some(f64::exp))),
    ("exp2",       Unary(UnaryOp::Exp2,   ToFloat,   Some(f64::exp2))),
    ("log",        Unary(UnaryOp::Log,    ToFloat,   Some(f64::ln))),
    ("log2",       Unary(UnaryOp::Log2,   ToFloat,   Some(f64::log2))),
    ("math.sign",  Unary(UnaryOp::Sign,   Keep,      None)),
    ("sign",       Unary(UnaryOp::Sign,   Keep,      None)),
    ("popcnt",     Unary(UnaryOp::Popcnt, IntOnly,   None)),
    ("clz",        Unary(UnaryOp::Clz,    IntOnly,   None)),
    ("floor",      special(Special::Rounding(UnaryOp::Floor))),
    ("ceil",       special(Special::Rounding(UnaryOp::Ceil))),
    ("round",      special(Special::Rounding(UnaryOp::Round))),
    ("builtins.round", special(Special::Rounding(UnaryOp::Round))),
    ("trunc",      special(Special::Rounding(UnaryOp::Trunc))),
    ("abs",        special(Special::Abs)),
    ("frexp",      special(Special::Frexp)),
    // Functions of several numbers.
    ("min",        Fold(BinaryOp::Min)),
    ("max",        Fold(BinaryOp::Max)),
    ("atan2",      special(Special::Atan2)),
    ("pow",        special(Special::Operator(ast::BinaryOp::Pow))),
    ("raw_div",    Binary(BinaryOp::Div)),
    ("raw_mod",    Binary(BinaryOp::Rem)),
    ("bit_shr",    special(Special::BitShr)),
    ("select",     special(Special::Select)),
    ("logical_not", special(Special::LogicalNot)),
    // Types.
    ("cast",       special(Special::Cast)),
    ("bit_cast",   special(Special::BitCast)),
    ("int",        special(Special::DefaultInt)),
    ("float",      special(Special::DefaultFloat)),
    ("bool",       special(Special::Bool)),
    ("zero",       special(Special::Filled(0))),
    ("one",        special(Special::Filled(1))),
    // Storage.
    ("atomic_add", Atomic(AtomicOp::Add)),
    ("atomic_sub", Atomic(AtomicOp::Sub)),
    ("atomic_mul", Atomic(AtomicOp::Mul)),
    ("atomic_min", Atomic(AtomicOp::Min)),
    ("atomic_max", Atomic(AtomicOp::Max)),
    ("atomic_and", Atomic(AtomicOp::And)),
    ("atomic_or",  Atomic(AtomicOp::Or)),
    ("atomic_xor", Atomic(AtomicOp::Xor)),
    ("atomic_exchange", Atomic(AtomicOp::Exchange)),
    ("atomic_cas", special(Special::CompareAndSwap)),
    ("get_addr",   special(Special::GetAddr)),
    ("prefetch",   special(Special::Prefetch)),
    // Nodes of layouts.
    ("activate",      special(Special::Node(NodeFunction::Activate))),
    ("deactivate",    special(Special::Node(NodeFunction::Deactivate))),
    ("is_active",     special(Special::Node(NodeFunction::IsActive))),
    ("append",        special(Special::Node(NodeFunction::Append))),
    ("length",        special(Special::Node(NodeFunction::Length))),
    ("rescale_index", special(Special::RescaleIndex)),
    ("mesh_patch_idx", special(Special::MeshPatch)),
    ("Struct",     special(Special::Struct)),
    // Hints that change no result.
    ("stop_grad",    special(Special::StopGradient)),
    ("no_activate",  Same),
    ("block_local",  Same),
    ("cache_read_only", Same),
    ("mesh_local",   Same),
    ("assume_in_range", Same),
    ("loop_unique",  Same),
    // Compile time.
    ("static",        special(Special::Static)),
    ("static_print",  special(Special::StaticPrint)),
    ("static_assert", special(Special::StaticAssert)),
    ("range",         special(Special::Range)),
    ("ndrange",       special(Special::NdRange)),
    ("grouped",       special(Special::Grouped)),
    ("zip",           special(Special::Zip)),
    ("enumerate",     special(Special::Enumerate)),
    ("reversed",      special(Special::Reversed)),
    ("len",           special(Special::Len)),
    ("isinstance",    special(Special::IsInstance)),
    ("sum",           special(Special::Reduce(ast::BinaryOp::Add))),
    ("any",           special(Special::Any)),
    ("all",           special(Special::All)),
    ("list",          special(Special::List)),
    ("tuple",         special(Special::Tuple)),
    ("loop_config",   special(Special::LoopConfig)),
    // Threads of a GPU.
    ("simt.block.sync",              threads(ThreadOp::BlockSync)),
    ("simt.block.sync_all_nonzero",  threads(ThreadOp::BlockAll)),
    ("simt.block.sync_any_nonzero",  threads(ThreadOp::BlockAny)),
    ("simt.block.sync_count_nonzero", threads(ThreadOp::BlockCount)),
    ("simt.block.mem_sync",          threads(ThreadOp::BlockFence)),
    ("simt.block.thread_idx",        threads(ThreadOp::ThreadInBlock)),
    ("simt.block.global_thread_idx", threads(ThreadOp::ThreadInGrid)),
    ("simt.block.SharedArray",       special(Special::SharedArray)),
    ("simt.grid.memfence",           threads(ThreadOp::GridFence)),
    ("simt.warp.sync",               threads(ThreadOp::WarpSync)),
    ("simt.warp.active_mask",        threads(ThreadOp::ActiveMask)),
    ("simt.warp.ballot",             threads(ThreadOp::Ballot)),
    ("simt.warp.all_nonzero",        threads(ThreadOp::VoteAll)),
    ("simt.warp.any_nonzero",        threads(ThreadOp::VoteAny)),
    ("simt.warp.unique",             threads(ThreadOp::VoteUniform)),
    ("simt.warp.match_any",          threads(ThreadOp::MatchAny)),
    ("simt.warp.match_all",          threads(ThreadOp::MatchAll)),
    ("simt.warp.shfl_sync_i32",      threads_of(ThreadOp::Shuffle, ScalarType::I32)),
    ("simt.warp.shfl_sync_f32",      threads_of(ThreadOp::Shuffle, ScalarType::F32)),
    ("simt.warp.shfl_up_i32",        threads_of(ThreadOp::ShuffleUp, ScalarType::I32)),
    ("simt.warp.shfl_up_f32",        threads_of(ThreadOp::ShuffleUp, ScalarType::F32)),
    ("simt.warp.shfl_down_i32",      threads_of(ThreadOp::ShuffleDown, ScalarType::I32)),
    ("simt.warp.shfl_down_f32",      threads_of(ThreadOp::ShuffleDown, ScalarType::F32)),
    ("simt.warp.shfl_xor_i32",       threads_of(ThreadOp::ShuffleXor, ScalarType::I32)),
    ("simt.warp.shuffle",            threads(ThreadOp::Shuffle)),
    ("simt.warp.shuffle_up",         threads(ThreadOp::ShuffleUp)),
    ("simt.warp.shuffle_down",       threads(ThreadOp::ShuffleDown)),
    ("simt.warp.shuffle_xor",        threads(ThreadOp::ShuffleXor)),
    // Effects.
    ("print",      special(Special::Print)),
    ("random",     special(Special::Random)),
    ("randn",      special(Special::RandomNormal)),
    // Tensors.
    ("Vector",          Make(Maker::List)),
    ("Matrix",          Make(Maker::List)),
    ("Matrix.zero",     Make(Maker::Constant(0))),
    ("Matrix.one",      Make(Maker::Constant(1))),
    ("Matrix.unit",     Make(Maker::Unit)),
    ("Matrix.identity", Make(Maker::Identity)),
    ("Matrix.diag",     Make(Maker::Diagonal)),
    ("Matrix.rows",     Make(Maker::Rows)),
    ("Matrix.cols",     Make(Maker::Columns)),
];

/// Builtins of Python that mean something in kernels.
#[rustfmt::skip]
pub(crate) const PYTHON: &[&str] = &[
    "range", "int", "float", "bool", "abs", "min", "max", "pow", "round", "len", "print", "sum", "any", "all", "zip",
    "enumerate", "reversed", "list", "tuple", "isinstance",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut all: Vec<_> = names().collect();
        all.sort_unstable();
        let n = all.len();
        all.dedup();
        assert_eq!(all.len(), n);
    }
}
