//! PTX in the simulator's form: names are numbers, positions in the text are stored for messages.

use std::collections::BTreeSet;

mod ty;

pub(crate) use ty::{Kind, Mode, Rounding, Ty};

/// Where memory is; what an address names it says itself where it is generic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Const,
    Param,
}

/// A register of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reg(pub(crate) u32);

/// What an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operand {
    Reg(Reg),
    Number(u64),
    Special(Special),
    /// The address of a module's variable, in its space.
    Variable(usize),
    /// An offset in the local memory of the function.
    Local(u64),
}

/// Registers that the machine fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// Thread in its block, along an axis.
    Thread(usize),
    /// Threads of a block.
    Threads(usize),
    /// Block in the grid.
    Block(usize),
    /// Blocks of the grid.
    Blocks(usize),
    Lane,
    Warp,
    Warps,
    /// Lanes that are this one, before it, behind it, and these with it.
    LaneMask(Lanes),
    Clock,
    /// Bytes of shared memory that the launch requested.
    DynamicShared,
    Grid,
}

/// Lanes beside a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lanes {
    Equal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// An address: a register or number, and a distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Address {
    pub(crate) base: Operand,
    pub(crate) offset: i64,
}

/// Operations on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Move,
    Not,
    Negate,
    Absolute,
    CountZeros,
    CountOnes,
    /// Position of the highest bit that is not the sign, or with `true` how far it is to be shifted.
    FindHighest(bool),
    Reverse,
    Sqrt,
    Reciprocal,
    ReciprocalSqrt,
    Sin,
    Cos,
    Exp2,
    Log2,
    Tanh,
    IsFinite,
    IsInfinite,
    IsNumber,
    IsNan,
    IsNormal,
    IsSubnormal,
}

/// Operations on two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    MulHigh,
    /// The product has twice the bits.
    MulWide,
    Div,
    Rem,
    Min,
    Max,
    /// NaN if one of both is.
    MinNan,
    MaxNan,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    CopySign,
    /// A mask of bits from a position on.
    FieldMask,
}

/// Operations on three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ternary {
    /// The lower bits of the product, and a sum.
    MulAdd,
    MulHighAdd,
    MulWideAdd,
    Fused,
    FieldExtract,
    /// Three bits make an index into a table.
    Lookup(u8),
    /// Two words as one are shifted; with `true` the distance is clamped, else it wraps.
    FunnelLeft(bool),
    FunnelRight(bool),
    Permute,
    AbsoluteDifference,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// The same, true if one of both is NaN.
    Unordered(Ordered),
    /// None of both is NaN.
    Number,
    Nan,
}

/// The comparisons of [`Compare::Unordered`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordered {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// What an atomic operation does with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    /// Stored where what is there is equal.
    Swap,
    /// One more, from a limit to zero.
    Increment,
    /// One less, from zero to a limit.
    Decrement,
}

/// How lanes find another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// What lanes find out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// Which operation a predicate joins the result of a comparison by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    And,
    Or,
    Xor,
}

/// A call's argument or result: an offset in the caller's parameter memory, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Unary {
        op: Unary,
        ty: Ty,
        mode: Mode,
        to: Reg,
        x: Operand,
    },
    Binary {
        op: Binary,
        ty: Ty,
        mode: Mode,
        to: Reg,
        x: Operand,
        y: Operand,
    },
    Ternary {
        op: Ternary,
        ty: Ty,
        mode: Mode,
        to: Reg,
        x: Operand,
        y: Operand,
        z: Operand,
    },
    /// `bfi`: bits of `x` are put into `y` at a position.
    FieldInsert {
        ty: Ty,
        to: Reg,
        x: Operand,
        y: Operand,
        at: Operand,
        length: Operand,
    },
    Compare {
        op: Compare,
        ty: Ty,
        flush: bool,
        to: Reg,
        /// The opposite, or the outcome of the high halves of pairs.
        not: Option<Reg>,
        x: Operand,
        y: Operand,
        joined: Option<(Join, Operand, bool)>,
        /// What the result is if it is no predicate.
        as_number: Option<Ty>,
    },
    Select {
        ty: Ty,
        to: Reg,
        x: Operand,
        y: Operand,
        by: Operand,
    },
    Convert {
        to_ty: Ty,
        from: Ty,
        mode: Mode,
        to: Reg,
        x: Operand,
    },
    /// Two numbers become a pair.
    ConvertPair {
        to_ty: Ty,
        mode: Mode,
        to: Reg,
        high: Operand,
        low: Operand,
    },
    /// Several registers become one.
    Pack {
        bits: u32,
        to: Reg,
        parts: Vec<Operand>,
    },
    /// One becomes several.
    Unpack {
        bits: u32,
        to: Vec<Option<Reg>>,
        x: Operand,
    },
    Load {
        space: Space,
        /// Whether it is atomic: relaxed, acquired, volatile.
        ordered: bool,
        /// Whether nobody may write there as long as the launch runs.
        constant: bool,
        ty: Ty,
        to: Vec<Option<Reg>>,
        at: Address,
    },
    Store {
        space: Space,
        ordered: bool,
        ty: Ty,
        at: Address,
        values: Vec<Operand>,
    },
    Atomic {
        space: Space,
        op: Atomic,
        ty: Ty,
        to: Option<Reg>,
        at: Address,
        x: Operand,
        /// What is stored by a swap.
        y: Option<Operand>,
    },
    /// An address of a space becomes a generic one, or the other way round.
    Generic {
        space: Space,
        from_generic: bool,
        to: Reg,
        x: Operand,
    },
    /// Whether a generic address is of a space.
    IsSpace {
        space: Space,
        to: Reg,
        x: Operand,
    },
    /// Whether and where to: an index of an instruction.
    Branch {
        to: usize,
    },
    /// `brx.idx`
    BranchTo {
        index: Operand,
        table: Vec<usize>,
    },
    Call {
        func: usize,
        results: Vec<Slot>,
        args: Vec<Slot>,
    },
    /// `vprintf`: a format and what it prints, and where what it returns goes.
    Print {
        format: Slot,
        args: Slot,
        result: Option<Slot>,
    },
    Return,
    Exit,
    /// Of a block, or with a mask of a warp.
    Barrier {
        number: Operand,
        threads: Option<Operand>,
    },
    BarrierReduce {
        number: Operand,
        op: Option<Join>,
        to: Reg,
        x: Operand,
        not: bool,
    },
    WarpBarrier {
        lanes: Operand,
    },
    Fence,
    Shuffle {
        op: Shuffle,
        to: Reg,
        /// Whether there was such a lane.
        found: Option<Reg>,
        x: Operand,
        by: Operand,
        clamp: Operand,
        lanes: Operand,
    },
    Vote {
        op: Vote,
        to: Reg,
        x: Operand,
        not: bool,
        lanes: Operand,
    },
    /// The lanes that have the same number.
    Match {
        all: bool,
        to: Reg,
        same: Option<Reg>,
        x: Operand,
        ty: Ty,
        lanes: Operand,
    },
    /// A number of all lanes.
    Reduce {
        op: Atomic,
        ty: Ty,
        to: Reg,
        x: Operand,
        lanes: Operand,
    },
    ActiveLanes {
        to: Reg,
    },
    Trap,
    /// What has no result and changes nothing.
    Nothing,
}

impl Op {
    /// What it reads, and the registers that it writes.
    pub(crate) fn operands(&self) -> (Vec<Operand>, Vec<Reg>) {
        match self {
            Self::Unary { to, x, .. }
            | Self::Convert { to, x, .. }
            | Self::Generic { to, x, .. }
            | Self::IsSpace { to, x, .. } => (vec![*x], vec![*to]),
            Self::Binary { to, x, y, .. } => (vec![*x, *y], vec![*to]),
            Self::Ternary { to, x, y, z, .. } => (vec![*x, *y, *z], vec![*to]),
            Self::FieldInsert {
                to,
                x,
                y,
                at,
                length,
                ..
            } => (vec![*x, *y, *at, *length], vec![*to]),
            Self::Compare {
                to,
                not,
                x,
                y,
                joined,
                ..
            } => {
                let joined = joined.iter().map(|(_, by, _)| *by);
                let reads = [*x, *y].into_iter().chain(joined);
                (reads.collect(), std::iter::once(*to).chain(*not).collect())
            }
            Self::Select { to, x, y, by, .. } => (vec![*x, *y, *by], vec![*to]),
            Self::ConvertPair { to, high, low, .. } => (vec![*high, *low], vec![*to]),
            Self::Pack { to, parts, .. } => (parts.clone(), vec![*to]),
            Self::Unpack { to, x, .. } => (vec![*x], to.iter().flatten().copied().collect()),
            Self::Load { to, at, .. } => (vec![at.base], to.iter().flatten().copied().collect()),
            Self::Store { at, values, .. } => {
                let reads = std::iter::once(at.base).chain(values.iter().copied());
                (reads.collect(), Vec::new())
            }
            Self::Atomic { to, at, x, y, .. } => {
                let reads = [at.base, *x].into_iter().chain(*y);
                (reads.collect(), to.iter().copied().collect())
            }
            Self::BranchTo { index, .. } => (vec![*index], Vec::new()),
            Self::Barrier { number, threads } => (
                std::iter::once(*number).chain(*threads).collect(),
                Vec::new(),
            ),
            Self::BarrierReduce { number, to, x, .. } => (vec![*number, *x], vec![*to]),
            Self::WarpBarrier { lanes } => (vec![*lanes], Vec::new()),
            Self::Shuffle {
                to,
                found,
                x,
                by,
                clamp,
                lanes,
                ..
            } => (
                vec![*x, *by, *clamp, *lanes],
                std::iter::once(*to).chain(*found).collect(),
            ),
            Self::Vote { to, x, lanes, .. } | Self::Reduce { to, x, lanes, .. } => {
                (vec![*x, *lanes], vec![*to])
            }
            Self::Match {
                to, same, x, lanes, ..
            } => (
                vec![*x, *lanes],
                std::iter::once(*to).chain(*same).collect(),
            ),
            Self::ActiveLanes { to } => (Vec::new(), vec![*to]),
            Self::Branch { .. }
            | Self::Call { .. }
            | Self::Print { .. }
            | Self::Return
            | Self::Exit
            | Self::Fence
            | Self::Trap
            | Self::Nothing => (Vec::new(), Vec::new()),
        }
    }
}

/// An instruction, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) op: Op,
    /// It runs in lanes where this predicate is true, or with `true` where it is false.
    pub(crate) guard: Option<(Reg, bool)>,
    pub(crate) line: u32,
}

/// A function or kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    /// Results first.
    pub(crate) results: Vec<Slot>,
    pub(crate) params: Vec<Slot>,
    /// Bytes of parameters, its own and those of its calls.
    pub(crate) param_bytes: u64,
    /// Bytes of local memory.
    pub(crate) local_bytes: u64,
    pub(crate) n_registers: u32,
    pub(crate) code: Vec<Instruction>,
    /// `.maxntid`
    pub(crate) most_threads: Option<u64>,
    pub(crate) is_defined: bool,
    /// Bytes of shared memory that it and what it calls use, of a kernel.
    pub(crate) shared_bytes: u64,
}

impl Function {
    /// Takes numbers of vectors that nobody looks at for numbers that are not read: LLVM reads three numbers of four as
    /// four, whoever may change the last one.
    pub(crate) fn leave_unread(&mut self) {
        let is_vector = |op: &Op| matches!(op, Op::Load { to, .. } if to.len() > 1);
        if !self.code.iter().any(|inst| is_vector(&inst.op)) {
            return;
        }
        let mut read = vec![false; self.n_registers as usize];
        for inst in &self.code {
            let operands = inst.op.operands().0.into_iter();
            let regs = operands.filter_map(|operand| match operand {
                Operand::Reg(reg) => Some(reg),
                _ => None,
            });
            let guard = inst.guard.map(|(reg, _)| reg);
            regs.chain(guard)
                .for_each(|reg| read[reg.0 as usize] = true);
        }
        for inst in &mut self.code {
            if let Op::Load { to, .. } = &mut inst.op
                && to.len() > 1
            {
                for to in to {
                    *to = to.filter(|&reg| read[reg.0 as usize]);
                }
            }
        }
    }
}

/// Memory that belongs to a module.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) bytes: Vec<u8>,
    /// How long it is; more than `bytes` where the rest is zero.
    pub(crate) length: u64,
    /// The offset in shared memory, or the address in memory, once it has one.
    pub(crate) at: u64,
}

/// The code of a module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) functions: Vec<Function>,
    pub(crate) variables: Vec<Variable>,
    /// Bytes of shared memory of each block, without those that a launch requests.
    pub(crate) shared_bytes: u64,
    /// The text, for messages.
    pub(crate) text: String,
}

impl Code {
    /// Notes how much shared memory kernels use.
    pub(crate) fn note_shared(&mut self) {
        for k in 0..self.functions.len() {
            if self.functions[k].is_kernel {
                self.functions[k].shared_bytes = self.shared_of(k);
            }
        }
    }

    /// Bytes of shared memory that a kernel and the functions that it calls use.
    fn shared_of(&self, kernel: usize) -> u64 {
        let (mut used, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![kernel]);
        while let Some(func) = open.pop() {
            if !seen.insert(func) {
                continue;
            }
            for inst in &self.functions[func].code {
                if let Op::Call { func, .. } = inst.op {
                    open.push(func);
                }
                used.extend(inst.op.operands().0.into_iter().filter_map(|v| match v {
                    Operand::Variable(number) => Some(number),
                    _ => None,
                }));
            }
        }
        let shared = used.into_iter().map(|number| &self.variables[number]);
        let shared = shared.filter(|v| v.space == Space::Shared);
        shared.map(|v| v.length.next_multiple_of(16)).sum()
    }

    /// A line of the text, counted from 1.
    pub(crate) fn line(&self, line: u32) -> &str {
        let at = line.saturating_sub(1) as usize;
        self.text.lines().nth(at).unwrap_or_default().trim()
    }
}
