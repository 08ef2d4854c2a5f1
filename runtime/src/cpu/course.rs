//! The choices of a launch for a task: which function runs, on how many threads, and with which memory.
//!
//! How a task is divided follows from the time of one iteration: the code generator's estimate at first, then what the
//! last launch took.

use std::sync::atomic::{AtomicU32, Ordering};

use super::split::{Extents, Split};
use super::sums::Copies;
use super::task::Means;
use crate::abi::TaskFn;
use crate::buffer::MemoryError;
use crate::code::{Order, SumsCode};

/// The functions of a task.
pub(super) struct Functions {
    pub(super) run: TaskFn,
    pub(super) times: Times,
    pub(super) batch: i64,
    pub(super) max_threads: usize,
    pub(super) own: Option<Own>,
    /// Whether chunks depend on the number of iterations alone.
    pub(super) fixed: bool,
    pub(super) order: Order,
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
    pub(super) order: Order,
    /// How many groups of chunks have copies, where groups have them and not threads.
    pub(super) n_groups: usize,
}

impl Functions {
    /// The code of a task, which a launch runs for ranges of iterations.
    ///
    /// # Errors
    /// There is no memory for copies that results depend on.
    pub(super) fn course<'a>(
        &'a self,
        means: &'a Means<'_>,
        extents: Extents,
    ) -> Result<Course<'a>, MemoryError> {
        let course = Course {
            run: self.run,
            times: &self.times,
            parts: self.split(means, &self.times, extents, self.max_threads),
            copies: None,
            order: self.order,
            n_groups: 1,
        };
        match &self.own {
            Some(own) if self.order == Order::Groups => self.in_groups(own, means, extents),
            None if self.order == Order::Groups => Ok(Course {
                parts: self.split(means, &self.times, extents, 1),
                ..course
            }),
            // Whether copies pay depends on threads and memory, and another function would have other chunks.
            Some(own) if !self.fixed || own.sums.always => {
                Ok(self.with_copies(own, means, extents, course))
            }
            Some(_) => Ok(course),
            None => Ok(course),
        }
    }

    fn split(
        &self,
        means: &Means<'_>,
        times: &Times,
        extents: Extents,
        max_threads: usize,
    ) -> Split {
        let split = if self.fixed { Split::fixed } else { Split::new };
        let n_threads = means.pool.n_threads().min(max_threads);
        split(extents, self.batch, times.cost(), times.estimate, n_threads)
    }

    /// The function that adds to copies, if these pay; each thread has its own.
    fn with_copies<'a>(
        &'a self,
        own: &'a Own,
        means: &'a Means<'_>,
        extents: Extents,
        shared: Course<'a>,
    ) -> Course<'a> {
        let Own { run, times, sums } = own;
        let n_threads = means.pool.n_threads().min(self.max_threads);
        let most = sums.most_threads(extents.total, means.args.slots());
        let most = most.min(n_threads);
        let worth = sums.always || most == n_threads;
        let mut parts = match worth {
            true => self.split(means, times, extents, most),
            false => shared.parts,
        };
        let mut copies = None;
        if worth && parts.n_threads > 1 {
            let made = sums.copies(means.spare, means.roots, means.args, parts.n_threads);
            copies = made.ok();
            if sums.always && copies.is_none() {
                parts = self.split(means, times, extents, 1);
            }
        }
        // Alone, a thread adds to the places themselves.
        if parts.n_threads > 1 && copies.is_none() {
            return shared;
        }
        Course {
            run: *run,
            times,
            parts,
            copies,
            ..shared
        }
    }

    /// The function that adds to copies, of which each group of chunks has its own; on any number of threads.
    fn in_groups<'a>(
        &'a self,
        own: &'a Own,
        means: &'a Means<'_>,
        extents: Extents,
    ) -> Result<Course<'a>, MemoryError> {
        let Own { run, times, sums } = own;
        let bytes = sums.bytes(means.args.slots());
        let mut parts = self.split(means, times, extents, self.max_threads);
        let n_groups = match self.max_threads {
            1 => 1,
            _ => sums.groups(extents.total, bytes).min(parts.n_chunks),
        };
        let mut copies = None;
        if n_groups > 1 {
            let made = sums.copies(means.spare, means.roots, means.args, n_groups);
            copies = Some(made?);
        } else {
            parts = self.split(means, times, extents, 1);
        }
        Ok(Course {
            run: *run,
            times,
            parts,
            copies,
            order: self.order,
            n_groups,
        })
    }
}
