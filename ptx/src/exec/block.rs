//! A block: its warps in turn, and the barriers at which they wait for each other.

use super::grid::{Grid, Progress, Shared, along};
use super::warp::{Wait, Warp};
use crate::code::Join;
use crate::error::{Fault, FaultKind};
use crate::launch::Counts;
use crate::memory::Own;

/// How many instructions a warp runs before the next warp runs.
const TURN: u64 = 4096;

/// A block of a launch.
pub(super) struct Block<'m> {
    grid: &'m Grid<'m>,
    pub(super) own: Shared,
    warps: Vec<Warp<'m>>,
}

impl<'m> Block<'m> {
    pub(super) fn new(grid: &'m Grid<'m>, number: u64) -> Self {
        let index = along(grid.blocks, number);
        let n_warps = grid.n_threads().div_ceil(32);
        Self {
            grid,
            own: Shared {
                memory: Own::new(grid.shared, grid.options.races || grid.options.shared_races),
                phase: 0,
                counts: Counts::default(),
                printed: String::new(),
            },
            warps: (0..n_warps)
                .map(|warp| Warp::new(grid, index, number, warp as u32))
                .collect(),
        }
    }

    /// Runs all warps to their end.
    pub(super) fn run(&mut self, progress: &Progress) -> Result<(), Box<Fault>> {
        loop {
            let mut any = false;
            for warp in &mut self.warps {
                while !warp.is_done() {
                    if progress.is_over() {
                        return Ok(());
                    }
                    let ran = warp.run(&mut self.own, TURN)?;
                    any |= ran > 0;
                    self.grid.watch();
                    if !progress.take(ran.max(1)) {
                        let message =
                            "the launch has run as many instructions as it may, and has no end";
                        return Err(warp.fault(FaultKind::Endless, message));
                    }
                    if ran < TURN || self.grid.n_threads() > 32 {
                        break;
                    }
                }
            }
            if self.warps.iter().all(Warp::is_done) {
                return Ok(());
            }
            if !any {
                self.pass()?;
            }
        }
    }

    /// Resumes the threads that wait at a barrier which all have reached.
    fn pass(&mut self) -> Result<(), Box<Fault>> {
        let waiting = self.warps.iter().find_map(|warp| {
            let wait = warp.first_wait()?;
            Some((warp, wait))
        });
        let Some((first, (pc, wait))) = waiting else {
            let stuck = self.warps.iter().find(|warp| !warp.is_done());
            let stuck = stuck.expect("some warp is not done");
            return Err(stuck.stuck());
        };
        let Wait::Barrier {
            number, threads, ..
        } = wait
        else {
            return Err(first.stuck());
        };
        // One barrier is one place of the code.
        let all = self.warps.iter();
        if let Some((other, at)) = all
            .clone()
            .find_map(|warp| Some((warp, warp.other_place(number, pc)?)))
        {
            let message = format!(
                "some threads wait at barrier {number} here, others of the block elsewhere"
            );
            return Err(other.fault_at(at, FaultKind::Barrier, &message));
        }
        let here: u32 = self.warps.iter().map(|warp| warp.waiting_at(number)).sum();
        // Threads that have ended are not waited for.
        let alive = self
            .warps
            .iter()
            .map(|warp| warp.alive().count_ones())
            .sum();
        let wanted = threads.unwrap_or(alive);
        if here < wanted {
            let message = format!(
                "{here} of {wanted} threads wait at barrier {number}, which the others do not reach"
            );
            return Err(first.fault_at(pc, FaultKind::Barrier, &message));
        }
        self.own.phase += 1;
        let votes: Vec<bool> = self
            .warps
            .iter()
            .flat_map(|warp| warp.votes_at(number))
            .collect();
        for warp in &mut self.warps {
            warp.release(number, &|op| outcome(op, &votes));
        }
        Ok(())
    }
}

/// What threads have found out at a barrier: whether all or any said so, or how many.
fn outcome(op: Option<Join>, votes: &[bool]) -> u64 {
    match op {
        Some(Join::And) => u64::from(votes.iter().all(|&v| v)),
        Some(_) => u64::from(votes.iter().any(|&v| v)),
        None => votes.iter().filter(|&&v| v).count() as u64,
    }
}
