//! Which function of a task a launch runs, on how many threads, and with what memory.
//!
//! How a task is divided follows from the time of one iteration: the code generator's estimate at first, then what the
//! last launch took.

use std::sync::atomic::{AtomicU32, Ordering};

use super::plan::Means;
use super::split::{Extents, Split};
use super::sums::Copies;
use crate::abi::TaskFn;
use crate::code::SumsCode;

/// The functions of a task.
pub(super) struct Functions {
    pub(super) run: TaskFn,
    pub(super) times: Times,
    pub(super) batch: i64,
    pub(super) max_threads: usize,
    pub(super) own: Option<Own>,
}

/// A task's other function, which adds to memory of the thread's own.
pub(super) struct Own {
    pub(super) run: TaskFn,
    pub(super) times: Times,
    pub(super) sums: SumsCode,
}

/// How long an iteration takes.
pub(super) struct Times {
    /// Nanoseconds, an `f32`'s bits.
    cost: AtomicU32,
    /// The compiler's estimate of it.
    estimate: f32,
}

impl Times {
    pub(super) fn new(estimate: f32) -> Self {
        Self {
            cost: AtomicU32::new(estimate.to_bits()),
            estimate,
        }
    }

    pub(super) fn cost(&self) -> f32 {
        f32::from_bits(self.cost.load(Ordering::Relaxed))
    }

    /// Notes what was measured. A launch on a busy machine may take long for no reason of its own,
    /// so only half of a change is believed.
    pub(super) fn note(&self, measured: f32) {
        let cost = (self.cost() + measured) * 0.5;
        self.cost.store(cost.to_bits(), Ordering::Relaxed);
    }
}

/// The function of a task that a launch runs, and how.
pub(super) struct Course<'a> {
    pub(super) run: TaskFn,
    pub(super) times: &'a Times,
    pub(super) parts: Split,
    pub(super) copies: Option<Copies<'a>>,
}

impl Functions {
    /// The code of a task, which a launch runs for ranges of iterations.
    pub(super) fn course<'a>(&'a self, means: &'a Means<'_>, extents: Extents) -> Course<'a> {
        let n_threads = means.pool.n_threads().min(self.max_threads);
        let split = |times: &Times, n_threads| {
            let (cost, estimate) = (times.cost(), times.estimate);
            Split::new(extents, self.batch, cost, estimate, n_threads)
        };
        let shared = split(&self.times, n_threads);
        if let Some(Own { run, times, sums }) = &self.own {
            let most = sums.most_threads(extents.total, means.args.slots());
            let most = most.min(n_threads);
            let worth = sums.always || most == n_threads;
            let mut parts = if worth { split(times, most) } else { shared };
            let mut copies = None;
            if worth && parts.n_threads > 1 {
                copies = sums.copies(means.spare, means.roots, means.args, parts.n_threads);
                if sums.always && copies.is_none() {
                    parts = split(times, 1);
                }
            }
            // Alone, a thread adds to the places themselves.
            if parts.n_threads == 1 || copies.is_some() {
                return Course {
                    run: *run,
                    times,
                    parts,
                    copies,
                };
            }
        }
        Course {
            run: self.run,
            times: &self.times,
            parts: shared,
            copies: None,
        }
    }
}
