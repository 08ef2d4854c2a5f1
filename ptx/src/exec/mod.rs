//! A launch: blocks on workers, warps of 32 lanes in them.

mod access;
mod block;
mod grid;
mod lanes;
mod print;
mod undefined;
mod warp;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::error::Fault;
use crate::launch::{Counts, Launched};
use block::Block;
pub(crate) use grid::Grid;
use grid::Progress;

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
