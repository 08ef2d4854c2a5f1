//! A task of a plan: its functions, and how a launch runs them for parts of its iterations.
#![expect(unsafe_code, reason = "calls generated code")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::Pool;
use super::course::{Course, Functions, Own, Times};
use super::split::{Extents, WORTH_MEASURING};
use super::sums::Spare;
use super::turns::Turns;
use crate::abi::{BoundsFn, ErrorRecord, LaunchContext, TaskFn};
use crate::buffer::MemoryError;
use crate::code::{Bounds, Order, TaskCode};
use crate::device::LoadError;
use crate::interrupt;
use crate::launch::Args;
use crate::trace::TaskTrace;
use crate::tree::TreeMemory;

/// A task, ready to run.
pub(super) struct PlannedTask {
    space: Space,
    functions: Functions,
    /// The exchange between processes that it begins, and the one that it ends.
    pub(super) begins: Option<u32>,
    pub(super) ends: Option<u32>,
}

enum Space {
    Serial,
    Constant(Extents),
    Computed { bounds: BoundsFn, n_axes: usize },
}

/// State that the tasks of a plan share.
pub(super) struct Shared {
    /// 1 if no two threads may run a task.
    pub(super) one_thread: Option<usize>,
    /// Whether parts depend on the number of iterations alone.
    pub(super) fixed: bool,
}

/// Where to note what ran, and as which task.
type Trace<'a> = Option<(&'a TaskTrace, usize)>;

/// The state that the tasks of a launch share.
pub(super) struct Means<'a> {
    pub(super) pool: &'a Pool,
    pub(super) spare: &'a Spare,
    pub(super) roots: &'a [&'a TreeMemory],
    pub(super) args: &'a Args<'a>,
    pub(super) ctx: SharedContext,
    pub(super) errors: &'a ErrorRecord,
    pub(super) turns: &'a Turns,
}

impl Means<'_> {
    /// Whether the launch shall end early.
    fn ends(&self) -> bool {
        self.errors.state.load(Ordering::Relaxed) != 0 || interrupt::requested()
    }
}

pub(super) struct SharedContext(pub(super) LaunchContext);

// SAFETY: the pointers are to memory that lives as long as the launch and is meant to be shared by
// the tasks' threads.
unsafe impl Sync for SharedContext {}

impl PlannedTask {
    /// Looks up the functions of a task.
    pub(super) fn new(
        task: &TaskCode,
        shared: &Shared,
        address: &dyn Fn(&str) -> Result<usize, LoadError>,
    ) -> Result<Self, LoadError> {
        // SAFETY: the code generator gives functions of this name this type.
        let function = |at: usize| unsafe { std::mem::transmute::<usize, TaskFn>(at) };
        let space = match &task.bounds {
            Bounds::Serial => Space::Serial,
            Bounds::Constant(bounds) => Space::Constant(Extents::new(bounds.iter().copied())),
            Bounds::Computed { symbol, n_axes } => {
                let bounds = address(symbol)?;
                Space::Computed {
                    // SAFETY: the code generator gives functions of this name this type.
                    bounds: unsafe { std::mem::transmute::<usize, BoundsFn>(bounds) },
                    n_axes: *n_axes,
                }
            }
        };
        let own = match &task.sums {
            None => None,
            Some(code) => Some(Own {
                run: function(address(&code.symbol)?),
                times: Times::new((task.cost - code.gain()).max(0.1)),
                sums: code.clone(),
            }),
        };
        let functions = Functions {
            run: function(address(&task.symbol)?),
            times: Times::new(task.cost),
            batch: task.batch,
            max_threads: shared.one_thread.or(task.max_threads).unwrap_or(usize::MAX),
            own,
            fixed: shared.fixed,
            order: task.order,
        };
        Ok(Self {
            space,
            functions,
            begins: None,
            ends: None,
        })
    }

    /// Runs all iterations and waits for them.
    ///
    /// # Errors
    /// There is no memory for copies that results depend on.
    pub(super) fn launch(&self, means: &Means<'_>, trace: Trace<'_>) -> Result<(), MemoryError> {
        let ctx = &means.ctx.0;
        let extents = match self.space {
            Space::Serial => {
                call(self.functions.run, ctx, [0, 1], trace);
                return Ok(());
            }
            Space::Constant(extents) => extents,
            Space::Computed { bounds, n_axes } => computed(bounds, n_axes, ctx),
        };
        if extents.total == 0 || means.errors.state.load(Ordering::Relaxed) != 0 {
            return Ok(());
        }
        let course = self.functions.course(means, extents)?;
        means.turns.begin();
        let (times, parts) = (course.times, course.parts);
        let at_once = parts.n_threads == 1 && (!self.functions.fixed || parts.n_chunks == 1);
        if at_once && (extents.total as f32) * times.cost() < WORTH_MEASURING {
            call(course.run, ctx, [0, extents.total], trace);
            return Ok(());
        }
        // The time of the chunks alone. If it included that of waking threads, a small task would stay on several threads.
        let spent = AtomicU64::new(0);
        let chunk = |chunk: usize, ctx: &LaunchContext| {
            if !means.ends() {
                let begin = Instant::now();
                call(course.run, ctx, parts.part(chunk, extents.total), trace);
                spent.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
        };
        run_chunks(means, &course, &chunk);
        // If chunks were skipped, the time of one iteration is unknown.
        if !means.ends() {
            times.note(spent.into_inner() as f32 / extents.total as f32);
        }
        if let Some(copies) = course.copies {
            copies.add(means.pool);
        }
        Ok(())
    }
}

/// Ends a part when it is dropped: also by a panic, for whose end other threads would wait.
struct EndOfPart<'a>(&'a Turns, u64);

impl Drop for EndOfPart<'_> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}

/// Runs the chunks of a task, each with the context of the memory that it adds to.
fn run_chunks(
    means: &Means<'_>,
    course: &Course<'_>,
    chunk: &(dyn Fn(usize, &LaunchContext) + Sync),
) {
    let (n_chunks, n_threads) = (course.parts.n_chunks, course.parts.n_threads);
    let of = |k: usize| match &course.copies {
        Some(copies) => copies.context(&means.ctx.0, k),
        None => means.ctx.0,
    };
    match course.order {
        Order::Any => means
            .pool
            .run_numbered(n_chunks, n_threads, &|k, worker| chunk(k, &of(worker))),
        Order::Groups if course.copies.is_some() => {
            let n_groups = course.n_groups;
            means.pool.run(n_groups, n_threads, &|group| {
                let chunks = group * n_chunks / n_groups..(group + 1) * n_chunks / n_groups;
                chunks.for_each(|k| chunk(k, &of(group)));
            });
        }
        Order::Turns | Order::Groups => {
            means.pool.run_numbered(n_chunks, n_threads, &|k, worker| {
                let part = k as u64;
                let _end = EndOfPart(means.turns, part);
                chunk(k, &LaunchContext { part, ..of(worker) });
            });
        }
    }
}

/// The sizes of an index space whose bounds a function computes.
fn computed(bounds: BoundsFn, n_axes: usize, ctx: &LaunchContext) -> Extents {
    let (mut few, mut many) = ([0_i64; 32], Vec::new());
    let out = match few.get_mut(..n_axes * 2) {
        Some(out) => out,
        // Arrays have as many axes as somebody gives them.
        None => {
            many.resize(n_axes * 2, 0);
            &mut many[..]
        }
    };
    // SAFETY: the function writes `2 * n_axes` values.
    unsafe { bounds(ctx, out.as_mut_ptr()) };
    Extents::new(out.chunks_exact(2).map(|b| [b[0], b[1]]))
}

/// Runs a part of a task.
fn call(run: TaskFn, ctx: &LaunchContext, [lo, hi]: [i64; 2], trace: Trace<'_>) {
    let begin = trace.map(|_| Instant::now());
    // SAFETY: the code generator made the function for this context; `check` compared the
    // context's parts with what the generated code expects.
    unsafe { run(ctx, lo, hi) };
    if let (Some((trace, task)), Some(begin)) = (trace, begin) {
        trace.ran(task, begin);
    }
}
