//! Profiling of a run: which of the user's lines each kernel and library call computes, and its time.

use std::sync::Arc;
use std::time::Instant;

use aerogel_base::Scalar;
use aerogel_runtime::{TaskRun, TaskTrace, TreeMemory};

use crate::ir::{Buffer, For, Place, targets};

/// Receives each kernel and library call that has ended.
pub trait Profiler: Sync {
    /// Records a kernel or library call that began at `begin`, and the tasks that its threads ran. `place` is where the user wrote
    /// it, if that is known.
    fn ran(&self, place: Option<Place>, begin: Instant, tasks: &[TaskRun]);
}

/// What a run is given besides its inputs.
#[derive(Clone, Copy, Default)]
pub struct Given<'g> {
    /// The values of the variables that the caller sets.
    pub vars: &'g [Scalar],
    /// The memory of the trees of fields, in the program's order.
    pub trees: &'g [Arc<TreeMemory>],
    /// Where the user wrote what a buffer of the recorded program holds: for a profiler.
    pub place_of: Option<PlaceOf<'g>>,
    /// The numbers of the inputs that the caller gives away, in ascending order: results may take their memory after the last
    /// statement that reads them.
    pub donated: &'g [usize],
    /// Called when the inputs have been checked, before anything runs.
    pub begin: Option<&'g (dyn Fn() + Sync)>,
}

/// Where a buffer was written.
pub type PlaceOf<'g> = &'g (dyn Fn(Buffer) -> Option<Place> + Sync);

/// The measurement of one kernel or library call, until it is dropped.
pub(super) struct Watch<'g> {
    profiler: &'g dyn Profiler,
    place: Option<Place>,
    begin: Instant,
    pub(super) trace: TaskTrace,
}

impl<'g> Watch<'g> {
    /// Begins to measure what computes a buffer, if there is a profiler.
    pub(super) fn begin(
        profiler: Option<&'g dyn Profiler>,
        place_of: Option<PlaceOf<'_>>,
        buffer: Option<Buffer>,
    ) -> Option<Self> {
        Some(Self {
            profiler: profiler?,
            place: place_of.zip(buffer).and_then(|(of, b)| of(b)),
            begin: Instant::now(),
            trace: TaskTrace::default(),
        })
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.profiler
            .ran(self.place, self.begin, &self.trace.runs());
    }
}

/// A buffer of the recorded program that each kernel helps to compute: passes add buffers behind the `n_recorded` first ones,
/// which belong to the next kernel that stores to another.
pub(super) fn computed_by<'f>(
    kernels: impl Iterator<Item = &'f For>,
    n_recorded: usize,
) -> Vec<Option<Buffer>> {
    let mut found: Vec<_> = kernels
        .map(|all| {
            let mut own = None;
            let mut note = |b| own = own.or(recorded([b], n_recorded));
            all.body.iter().for_each(|stmt| targets(stmt, &mut note));
            own
        })
        .collect();
    let mut next = None;
    for own in found.iter_mut().rev() {
        next = own.or(next);
        *own = next;
    }
    found
}

/// The first of some buffers that the recorded program has.
pub(super) fn recorded(
    buffers: impl IntoIterator<Item = Buffer>,
    n_recorded: usize,
) -> Option<Buffer> {
    let mut all = buffers.into_iter();
    all.find(|b| (b.as_u32() as usize) < n_recorded)
}
