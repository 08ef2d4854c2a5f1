//! Atomic operations become cheaper: plain operations where nothing is shared, and few atomics for reductions.

mod continues;
pub(crate) mod demote_atomics;
mod extrema;
mod fixed_places;
pub(crate) mod guarded_steps;
pub(crate) mod merge_atomics;
pub(crate) mod privatize;
pub(crate) mod scan_counters;
pub(crate) mod share;
pub(crate) mod split_branches;
pub(crate) mod thread_local;
