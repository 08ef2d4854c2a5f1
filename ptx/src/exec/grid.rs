//! State that threads share: of a launch, and of a block.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::code::Code;
use crate::launch::{Counts, Options, Stop};
use crate::memory::{Memory, Own};

/// What all threads of a launch have in common.
pub(crate) struct Grid<'m> {
    pub(crate) code: &'m Code,
    pub(crate) func: usize,
    pub(crate) memory: &'m Memory,
    pub(crate) options: &'m Options,
    pub(crate) blocks: [u32; 3],
    pub(crate) threads: [u32; 3],
    /// Bytes of shared memory, including those that the launch requested.
    pub(crate) shared: u64,
    pub(crate) dynamic_shared: u64,
    pub(crate) params: Vec<u8>,
    pub(crate) epoch: u64,
    pub(crate) stop: Option<Stop<'m>>,
}

impl Grid<'_> {
    pub(super) fn n_threads(&self) -> u64 {
        self.threads.iter().map(|&n| u64::from(n)).product()
    }

    /// Lets threads see that the host wants the launch to end, if it does.
    pub(super) fn watch(&self) {
        if let Some(stop) = self.stop.filter(|stop| (stop.asked)()) {
            // A word that is not there stops nothing.
            let _ = self.memory.write(stop.word, &1_u32.to_le_bytes());
        }
    }

    pub(super) fn n_blocks(&self) -> u64 {
        self.blocks.iter().map(|&n| u64::from(n)).product()
    }
}

/// A number as one for each axis, the first running fastest.
pub(super) fn along(extents: [u32; 3], number: u64) -> [u32; 3] {
    let [x, y, _] = extents.map(u64::from);
    [number % x, number / x % y, number / x / y].map(|n| n as u32)
}

/// What workers share.
pub(crate) struct Progress {
    pub(super) next: AtomicU64,
    /// Instructions that may still be run.
    pub(super) left: AtomicU64,
    pub(super) stop: AtomicBool,
}

impl Progress {
    /// Takes so many instructions from those that are left; false if there are none.
    pub(super) fn take(&self, n: u64) -> bool {
        self.left
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(n))
            .is_ok()
    }

    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// What the warps of a block share.
pub(super) struct Shared {
    pub(super) memory: Own,
    /// How many barriers have been passed.
    pub(super) phase: u64,
    pub(super) counts: Counts,
    pub(super) printed: String,
}
