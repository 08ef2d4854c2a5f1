//! The state of a task function during code generation, and the bounds of its parts.

use crate::builder::{Builder, Val};
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::cost;
use aerogel_ir::analysis::trips::iterations_within;
use aerogel_ir::{AtomicOp, BinaryOp, Function, Inst, Op, Region, Value};
use aerogel_runtime::Order;

/// The targets of sums of a version of a task function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Places that other threads add to as well.
    Shared,
    /// Memory of the thread's own.
    Own,
}

/// The state of a task function during code generation.
pub(crate) struct TaskState<'ctx> {
    pub(crate) number: usize,
    /// The region around the `each`: what it defines outlives an iteration.
    pub(crate) body: Region,
    /// Whether one thread runs all of it.
    pub(crate) serial: bool,
    /// Whether anything draws random numbers.
    pub(crate) random: bool,
    /// The number that tells this task's random numbers from those of others.
    pub(crate) stream: u64,
    /// `lo` and `hi` of each axis, one after the other.
    pub(crate) axes: Vec<Value>,
    /// `[lo, hi)` of each axis, as `i64`.
    pub(crate) bounds: Vec<[Val<'ctx>; 2]>,
    /// The part of the linearised space to walk.
    pub(crate) part: [Val<'ctx>; 2],
    /// Whether the loop is over, of a task on a grid.
    pub(crate) is_looped: bool,
    /// The reductions over the threads of a block after it.
    pub(crate) sums: Vec<BlockSum<'ctx>>,
    /// `[lo, hi)` of each axis if they are constants and other threads walk other parts.
    pub(crate) constants: Option<Vec<[i64; 2]>>,
    /// How many neighbours of a row run at once: parts of a row begin at multiples of it.
    pub(crate) batch: i64,
    /// The targets of this function's sums.
    pub(crate) version: Version,
}

impl TaskState<'_> {
    /// The known facts about the bounds of parts.
    pub(crate) fn ends(&self) -> Ends {
        self.constants
            .as_ref()
            .map_or_else(Ends::default, |bounds| Ends::new(self.batch, bounds))
    }
}

/// `[lo, hi)` of each axis of a task, if they are constants.
pub(crate) fn constant_bounds(kernel: &Function, task: Inst) -> Option<Vec<[i64; 2]>> {
    let Op::Task { bounds, .. } = kernel[task] else {
        return None;
    };
    let ends = kernel.yielded(bounds).unwrap_or_default().iter();
    let ends = ends.map(|&v| Some(kernel.as_const(v)?.as_i128() as i64));
    let ends: Option<Vec<i64>> = ends.collect();
    Some(ends?.chunks_exact(2).map(|b| [b[0], b[1]]).collect())
}

/// How the parts of a task follow each other.
pub(crate) fn order(kernel: &Function, task: Inst) -> Order {
    let Op::Task { attrs, body, .. } = &kernel[task] else {
        unreachable!("the caller picks tasks")
    };
    let mut insts = kernel.regions[*body].insts.iter();
    match attrs.ordered {
        true => Order::Groups,
        false if insts.any(|&inst| matches!(kernel[inst], Op::AwaitTurn {})) => Order::Turns,
        false => Order::Any,
    }
}

/// What the parts of rows of straight code are multiples of: the lanes of some vectors for a body that is so short that
/// LLVM takes several together; and those of one vector.
const LANES: [i64; 2] = [64, 16];

/// In nanoseconds, as long as some lanes of a short body take.
const SHORT: f32 = 400.0;

/// Known facts about the bounds of the parts of an index space with constant bounds.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    /// They are multiples of this power of two. If the body becomes vector code then nothing is left over for which
    /// the same body would have to be compiled in scalars.
    step: i64,
    /// None is greater. It is a power of two, less one.
    most: i64,
}

impl Default for Ends {
    fn default() -> Self {
        Self {
            step: 1,
            most: i64::MAX,
        }
    }
}

/// How many iterations of a task LLVM takes at once. Those that it takes together, and those that are left over, may add
/// their numbers in another order.
pub(crate) fn batch(kernel: &Function, task: Region) -> i64 {
    let insts = kernel.regions[task].insts.iter();
    let mut bodies = insts.filter_map(|&inst| match kernel[inst] {
        Op::Each { body, .. } => Some(body),
        _ => None,
    });
    let is_straight = bodies.all(|body| iterations_within(kernel, body) == Some(0));
    let [many, few] = LANES;
    match is_straight {
        true if cost::region(kernel, task) * many as f32 <= SHORT => many,
        true => few,
        false => 1,
    }
}

impl Ends {
    fn new(batch: i64, bounds: &[[i64; 2]]) -> Self {
        let mut lengths = bounds.iter().map(|[lo, hi]| (hi - lo).max(0) as u64);
        let total = lengths.clone().fold(1, u64::saturating_mul);
        let row = lengths.next_back().expect("a range task has an axis");
        let step = 1 << row.trailing_zeros().min(batch.trailing_zeros());
        let most = total
            .checked_add(1)
            .and_then(u64::checked_next_power_of_two);
        let most = most.and_then(|n| i64::try_from(n - 1).ok());
        Self {
            step,
            most: most.unwrap_or(i64::MAX),
        }
    }

    /// Where rows are walked in tiles.
    pub(crate) fn of_tiles(self, width: i64) -> Self {
        Self {
            step: self.step.min(width),
            ..self
        }
    }

    /// Writes that an end is no greater than any.
    pub(crate) fn bound<'ctx>(self, b: &Builder<'_, 'ctx>, end: Val<'ctx>) -> Val<'ctx> {
        match self.most {
            i64::MAX => end,
            most => b.and(end, b.i64(most)),
        }
    }

    /// Writes that a length is a multiple of the step, and no greater than any end. That the ends are multiples too is
    /// better not said: LLVM would make `i | 1` of the next index `i + 1`, and finds no common part in `12 * (i | 1)`
    /// and `12 * i`.
    pub(crate) fn whole<'ctx>(self, b: &Builder<'_, 'ctx>, length: Val<'ctx>) -> Val<'ctx> {
        match self.step {
            1 => length,
            step => b.and(length, b.i64(self.most & -step)),
        }
    }
}

/// A number of each thread that the threads of a block add up.
pub(crate) struct BlockSum<'ctx> {
    /// The accumulator, and what it held behind the loop.
    pub(crate) place: Value,
    pub(crate) value: Value,
    pub(crate) op: AtomicOp,
    pub(crate) ty: ScalarType,
    pub(crate) neutral: Scalar,
    /// A number for each warp, in shared memory.
    pub(crate) slots: Val<'ctx>,
    /// The result of the reduction.
    pub(crate) met: Option<Met<'ctx>>,
}

/// The result of a reduction over the threads of a block.
#[derive(Clone, Copy)]
pub(crate) struct Met<'ctx> {
    /// The value that this thread adds to the place, if it does.
    pub(crate) total: Val<'ctx>,
    pub(crate) adds: Val<'ctx>,
}

impl BlockSum<'_> {
    /// How two numbers become one.
    pub(crate) fn step(&self) -> BinaryOp {
        let op = match self.op {
            // What is taken away is added up first.
            AtomicOp::Sub => AtomicOp::Add,
            op => op,
        };
        op.binary().expect("nothing is exchanged behind a loop")
    }
}
