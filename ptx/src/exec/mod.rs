//! A launch: blocks on workers, warps of 32 lanes in them.

mod access;
mod block;
mod lanes;
mod print;
mod undefined;
mod warp;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::code::Code;
use crate::error::Fault;
use crate::machine::{Counts, Launched, Options, Stop};
use crate::memory::Memory;
use block::Block;

/// What all threads of a launch have in common.
pub(crate) struct Grid<'m> {
    pub(crate) code: &'m Code,
    pub(crate) func: usize,
    pub(crate) memory: &'m Memory,
    pub(crate) options: &'m Options,
    pub(crate) blocks: [u32; 3],
    pub(crate) threads: [u32; 3],
    /// Bytes of shared memory, and those that the launch asked for.
    pub(crate) shared: u64,
    pub(crate) dynamic_shared: u64,
    pub(crate) params: Vec<u8>,
    pub(crate) epoch: u64,
    pub(crate) stop: Option<Stop<'m>>,
}

impl Grid<'_> {
    fn n_threads(&self) -> u64 {
        self.threads.iter().map(|&n| u64::from(n)).product()
    }

    /// Lets threads see that the host wants the launch to end, if it does.
    fn watch(&self) {
        if let Some(stop) = self.stop.filter(|stop| (stop.asked)()) {
            // A word that is not there stops nothing.
            let _ = self.memory.write(stop.word, &1_u32.to_le_bytes());
        }
    }

    fn n_blocks(&self) -> u64 {
        self.blocks.iter().map(|&n| u64::from(n)).product()
    }
}

/// A number as one for each axis, the first running fastest.
fn along(extents: [u32; 3], number: u64) -> [u32; 3] {
    let [x, y, _] = extents.map(u64::from);
    [number % x, number / x % y, number / x / y].map(|n| n as u32)
}

/// What workers share.
pub(crate) struct Progress {
    next: AtomicU64,
    /// Instructions that may still be run.
    left: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Takes so many instructions from those that are left; false if there are none.
    fn take(&self, n: u64) -> bool {
        self.left
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(n))
            .is_ok()
    }

    fn is_over(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// What has come of the blocks so far.
#[derive(Default)]
struct Found {
    fault: Option<(u64, Box<Fault>)>,
    printed: Vec<(u64, String)>,
    counts: Counts,
}

/// Runs all blocks. Of several faults that of the first block is reported.
pub(crate) fn run(grid: &Grid<'_>) -> Result<Launched, Box<Fault>> {
    let progress = Progress {
        next: AtomicU64::new(0),
        left: AtomicU64::new(grid.options.instructions),
        stop: AtomicBool::new(false),
    };
    let found = Mutex::new(Found::default());
    let workers = grid.options.workers.clamp(1, 256) as u64;
    match workers.min(grid.n_blocks()) {
        1 => work(grid, &progress, &found),
        workers => std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| work(grid, &progress, &found));
            }
        }),
    }
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, fault)) = found.fault {
        return Err(fault);
    }
    found.printed.sort_by_key(|(block, _)| *block);
    Ok(Launched {
        printed: found.printed.into_iter().map(|(_, text)| text).collect(),
        counts: found.counts,
    })
}

fn work(grid: &Grid<'_>, progress: &Progress, found: &Mutex<Found>) {
    loop {
        let number = progress.next.fetch_add(1, Relaxed);
        if number >= grid.n_blocks() || progress.is_over() {
            return;
        }
        let mut block = Block::new(grid, number);
        let outcome = block.run(progress);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.counts.add(&block.own.counts);
        if !block.own.printed.is_empty() {
            let printed = std::mem::take(&mut block.own.printed);
            found.printed.push((number, printed));
        }
        if let Err(fault) = outcome {
            progress.stop.store(true, Relaxed);
            let is_first = found
                .fault
                .as_ref()
                .is_none_or(|(first, _)| number < *first);
            if is_first {
                found.fault = Some((number, fault));
            }
        }
    }
}

impl Counts {
    /// Counts what another launch took too.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.lanes += other.lanes;
        self.divergent += other.divergent;
        self.read += other.read;
        self.written += other.written;
        self.sectors += other.sectors;
        self.conflicts += other.conflicts;
        self.atomics += other.atomics;
    }
}
