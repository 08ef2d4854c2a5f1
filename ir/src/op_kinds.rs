//! The sub-operations of the instruction families, and instruction attributes.

use std::fmt;

use aerogel_base::{Scalar, ScalarType, kinds};
use aerogel_snode::NodeId;

use crate::types::TreeId;

kinds! {
    /// Arithmetic on one operand; the result has the operand's type.
    UnaryOp {
        /// `-x`
        Neg = "neg",
        /// `~x` on integers; on `u1` logical not.
        Not = "not",
        /// `|x|`
        Abs = "abs",
        /// -1, 0 or 1.
        Sign = "sign",
        /// Square root.
        Sqrt = "sqrt",
        /// `1 / sqrt(x)`
        Rsqrt = "rsqrt",
        /// Towards negative infinity.
        Floor = "floor",
        /// Towards positive infinity.
        Ceil = "ceil",
        /// To the nearest, half away from zero.
        Round = "round",
        /// Towards zero.
        Trunc = "trunc",
        /// Sine.
        Sin = "sin",
        /// Cosine.
        Cos = "cos",
        /// Tangent.
        Tan = "tan",
        /// Arc sine.
        Asin = "asin",
        /// Arc cosine.
        Acos = "acos",
        /// Arc tangent.
        Atan = "atan",
        /// Hyperbolic sine.
        Sinh = "sinh",
        /// Hyperbolic cosine.
        Cosh = "cosh",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// `e` to the power of x.
        Exp = "exp",
        /// 2 to the power of x.
        Exp2 = "exp2",
        /// Natural logarithm.
        Log = "log",
        /// Logarithm to base 2.
        Log2 = "log2",
        /// Number of set bits.
        Popcnt = "popcnt",
        /// Number of leading zero bits.
        Clz = "clz",
    }
}

kinds! {
    /// Arithmetic on two operands of one type; the result has that type.
    BinaryOp {
        /// Sum; integers wrap.
        Add = "add",
        /// Difference; integers wrap.
        Sub = "sub",
        /// Product; integers wrap.
        Mul = "mul",
        /// Quotient: of floats exact, of integers truncated towards zero (0 for a zero divisor).
        Div = "div",
        /// Remainder with the dividend's sign (0 for a zero divisor of integers).
        Rem = "rem",
        /// Quotient rounded towards negative infinity (0 for a zero divisor of integers).
        FloorDiv = "floordiv",
        /// Remainder with the divisor's sign (0 for a zero divisor of integers).
        Mod = "mod",
        /// Power.
        Pow = "pow",
        /// Angle of the point (rhs, lhs); floats only.
        Atan2 = "atan2",
        /// Smaller one; of a NaN and a number the number.
        Min = "min",
        /// Larger one; of a NaN and a number the number.
        Max = "max",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
        /// Shift left; the count is taken modulo the width.
        Shl = "shl",
        /// Shift right, by the type's sign; the count is taken modulo the width.
        Shr = "shr",
        /// Shift right, filling with zeros; the count is taken modulo the width.
        UShr = "ushr",
    }
}

impl UnaryOp {
    /// Whether it takes operands of this type.
    pub fn takes(self, ty: ScalarType) -> bool {
        use UnaryOp::*;
        match self {
            Neg | Abs | Sign => true,
            Not | Popcnt | Clz => ty.is_int(),
            Sqrt | Rsqrt | Floor | Ceil | Round | Trunc | Sin | Cos | Tan | Asin | Acos | Atan
            | Sinh | Cosh | Tanh | Exp | Exp2 | Log | Log2 => ty.is_float(),
        }
    }

    /// Whether every target computes exactly what `eval` does.
    pub fn is_exact(self) -> bool {
        use UnaryOp::*;
        match self {
            Neg | Not | Abs | Sign | Sqrt | Floor | Ceil | Round | Trunc | Popcnt | Clz => true,
            Rsqrt | Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Tanh | Exp | Exp2
            | Log | Log2 => false,
        }
    }
}

impl BinaryOp {
    /// Whether it takes operands of this type.
    pub fn takes(self, ty: ScalarType) -> bool {
        use BinaryOp::*;
        match self {
            Add | Sub | Mul | Div | Rem | FloorDiv | Mod | Pow | Min | Max => true,
            Atan2 => ty.is_float(),
            And | Or | Xor | Shl | Shr | UShr => ty.is_int(),
        }
    }

    /// Whether every target computes exactly what `eval` does for operands of this type.
    pub fn is_exact(self, ty: ScalarType) -> bool {
        use BinaryOp::*;
        match self {
            Add | Sub | Mul | Div | Rem | FloorDiv | Mod | Min | Max | And | Or | Xor | Shl
            | Shr | UShr => true,
            Pow | Atan2 => ty.is_int(),
        }
    }

    /// Whether operands of this type may change places. Of two zeros of different sign the
    /// minimum and maximum is the second.
    pub fn is_commutative(self, ty: ScalarType) -> bool {
        use BinaryOp::*;
        matches!(self, Add | Mul | And | Or | Xor) || matches!(self, Min | Max) && ty.is_int()
    }
}

kinds! {
    /// Comparison of two operands of one type; the result is `u1`, for tensors elementwise.
    /// With a NaN all are false but `ne`.
    CompareOp {
        /// `==`
        Eq = "eq",
        /// `!=`
        Ne = "ne",
        /// `<`
        Lt = "lt",
        /// `<=`
        Le = "le",
        /// `>`
        Gt = "gt",
        /// `>=`
        Ge = "ge",
    }
}

impl CompareOp {
    /// The comparison with the operands exchanged.
    #[must_use]
    pub fn swapped(self) -> Self {
        match self {
            Self::Eq => Self::Eq,
            Self::Ne => Self::Ne,
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
        }
    }

    /// The comparison that is true where this one is false, if nothing is NaN.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
            Self::Gt => Self::Le,
            Self::Ge => Self::Lt,
        }
    }
}

kinds! {
    /// The operation of an atomic read-modify-write; the result is the old value.
    AtomicOp {
        /// `+=`
        Add = "atomic_add",
        /// `-=`
        Sub = "atomic_sub",
        /// `*=`
        Mul = "atomic_mul",
        /// Keeps the smaller one.
        Min = "atomic_min",
        /// Keeps the larger one.
        Max = "atomic_max",
        /// `&=`
        And = "atomic_and",
        /// `|=`
        Or = "atomic_or",
        /// `^=`
        Xor = "atomic_xor",
        /// Stores the new value.
        Exchange = "atomic_exchange",
    }
}

impl AtomicOp {
    /// The arithmetic that makes the new value of the old one and the operand; none for `exchange`.
    pub fn binary(self) -> Option<BinaryOp> {
        Some(match self {
            Self::Add => BinaryOp::Add,
            Self::Sub => BinaryOp::Sub,
            Self::Mul => BinaryOp::Mul,
            Self::Min => BinaryOp::Min,
            Self::Max => BinaryOp::Max,
            Self::And => BinaryOp::And,
            Self::Or => BinaryOp::Or,
            Self::Xor => BinaryOp::Xor,
            Self::Exchange => return None,
        })
    }

    /// The identity element, if there is one.
    pub fn identity(self, ty: ScalarType) -> Option<Scalar> {
        let least = -(1 << (ty.bits() - 1));
        let extreme = |lowest: bool| match (ty, lowest) {
            _ if ty.is_float() && lowest => Scalar::float(ty, f64::NEG_INFINITY),
            _ if ty.is_float() => Scalar::float(ty, f64::INFINITY),
            _ if ty.is_signed() => Scalar::int(ty, if lowest { least } else { -1 - least }),
            _ => Scalar::int(ty, if lowest { 0 } else { -1 }),
        };
        match self {
            // -0.0 + x is x for every x.
            Self::Add if ty.is_float() => Some(Scalar::float(ty, -0.0)),
            Self::Add | Self::Or | Self::Xor => Some(Scalar::zero(ty)),
            Self::Mul => Some(Scalar::one(ty)),
            Self::Min => Some(extreme(false)),
            Self::Max => Some(extreme(true)),
            Self::And => Some(Scalar::int(ty, -1)),
            Self::Sub | Self::Exchange => None,
        }
    }
}

kinds! {
    /// Metadata of one memory about another.
    Derivative {
        /// Adjoints: the derivative of the result by each element.
        Grad = "grad",
        /// Tangents: the derivative of each element along a direction.
        Dual = "dual",
    }
}

kinds! {
    /// How a task runs.
    TaskKind {
        /// Once, on one thread.
        Serial = "serial",
        /// Over an index space, in parallel.
        Range = "range",
    }
}

kinds! {
    /// The look-ups that a loop over sparse cells makes around each of their blocks.
    Around {
        /// Elements of fields.
        Elements = "elements",
        /// Which cells are active.
        Activity = "activity",
    }
}

kinds! {
    /// How far float arithmetic may differ from the program as it is written, with every operation rounded. No level
    /// assumes that NaN and infinity do not occur.
    #[derive(Default)]
    FastMath {
        /// Not at all: accumulations keep their order as well.
        #[default]
        Off = "off",
        /// Accumulations may be regrouped, and products fused into them (`analysis::accumulations`).
        Accumulations = "accumulations",
        /// Reassociation, contraction, reciprocals and approximate functions everywhere.
        Full = "full",
    }
}

/// Attributes of a parallel loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LoopAttrs {
    /// Run in order on one thread.
    pub serial: bool,
    /// At most this many threads.
    pub max_threads: Option<u32>,
    /// Threads of a block, on a GPU.
    pub block: Option<u32>,
    /// Bookkeeping of the compiler's own: it draws no random numbers, and does not count among the
    /// loops that do.
    pub aside: bool,
    /// No word of bits that an iteration changes is changed by another one.
    pub own_words: bool,
    /// Which look-ups a loop over sparse cells makes around each block, and not around each cell.
    pub around: Option<Around>,
    /// Neighbouring blocks that it writes are looked up once for each block, too.
    pub writes_around: bool,
    /// The loop's own level of fast maths, in place of the module's.
    pub fast_math: Option<FastMath>,
    /// The exchange between processes around it, by its number.
    pub exchange: Option<u32>,
    /// Results depend on the order of the iterations, of which each thread runs a range in order; ranges depend on the
    /// number of iterations alone.
    pub ordered: bool,
}

kinds! {
    /// Cooperation of the threads that run a block of iterations on a GPU, and the number of a thread among them. A mask has a bit
    /// for each lane of the 32 of a warp that takes part.
    ThreadOp {
        /// Waits for all threads of the block; their writes to memory are visible to all of them then.
        BlockSync = "block_sync",
        /// As `block_sync`; whether a condition is true in all threads.
        BlockAll = "block_all",
        /// As `block_sync`; whether a condition is true in any thread.
        BlockAny = "block_any",
        /// As `block_sync`; in how many threads a condition is true, as `i32`.
        BlockCount = "block_count",
        /// Orders the writes of this thread for others of the block: earlier ones are visible before later ones.
        BlockFence = "block_fence",
        /// As `block_fence`, all others.
        GridFence = "grid_fence",
        /// The number of this thread in its block, as `i32`.
        ThreadInBlock = "thread_in_block",
        /// The number of this thread among all of the loop, as `i32`.
        ThreadInGrid = "thread_in_grid",
        /// How many threads a block has, as `i32`.
        BlockSize = "block_size",
        /// Waits for the lanes of a mask; as `block_sync` for these.
        WarpSync = "warp_sync",
        /// The lanes that are here, as a mask.
        ActiveMask = "active_mask",
        /// Of the lanes of a mask those in which a condition is true, as a mask.
        Ballot = "ballot",
        /// Whether a condition is true in all lanes of a mask.
        VoteAll = "vote_all",
        /// Whether a condition is true in any lane of a mask.
        VoteAny = "vote_any",
        /// Whether a condition is the same in all lanes of a mask.
        VoteUniform = "vote_uniform",
        /// Of the lanes of a mask those that have this one's number, as a mask.
        MatchAny = "match_any",
        /// The mask if all of its lanes have one number, else 0.
        MatchAll = "match_all",
        /// The number that the lane of a number has, among the lanes of a mask.
        Shuffle = "shuffle",
        /// The number of the lane that is so many before this one; its own if there is none.
        ShuffleUp = "shuffle_up",
        /// The number of the lane that is so many behind this one; its own if there is none.
        ShuffleDown = "shuffle_down",
        /// The number of the lane whose number is this one's, exclusive or another.
        ShuffleXor = "shuffle_xor",
    }
}

/// A node of one of the module's trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeRef {
    /// The tree.
    pub tree: TreeId,
    /// The node.
    pub node: NodeId,
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.tree, self.node)
    }
}
