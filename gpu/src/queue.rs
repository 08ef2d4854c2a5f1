//! Launches that have returned before they ended.
//!
//! A device runs its work in order, so a launch whose results are not needed at once need not be waited for. Its output, its
//! time and its errors are read at the next wait for the device (`Opened::settle`). A failed check sets the word that stops
//! launches, so later launches do nothing, as if the host had stopped them at once; if the word is not set, no error record
//! need be read.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aerogel_runtime::TaskTrace;
use aerogel_runtime::interrupt;
use aerogel_runtime::launch::{End, KernelFailure};

use crate::block::{Back, ERRORS, recorded, words};
use crate::driver::{Driver, DriverError};
use crate::opened::Opened;
use crate::waiting::{Block, Queued};

/// From so many launches on they are waited for: each has a block of memory.
const MOST: usize = 256;

impl Opened {
    /// The launches that have not been waited for.
    pub(crate) fn queue(&self) -> MutexGuard<'_, Vec<Queued>> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a launch that returns now.
    ///
    /// # Errors
    /// If there were too many, and one has failed.
    pub(crate) fn enqueue(&self, launch: Queued) -> Result<(), DriverError> {
        self.queue().push(launch);
        self.bound_queue()
    }

    /// Waits if too many launches have not been waited for.
    ///
    /// # Errors
    /// If there were, and one has failed.
    pub(crate) fn bound_queue(&self) -> Result<(), DriverError> {
        let n = self.queue().len();
        match n < MOST {
            true => Ok(()),
            false => self.settle(),
        }
    }

    /// Waits until all work of the device is done, or Ctrl-C ends it, and reports how launches ended.
    ///
    /// # Errors
    /// `Earlier` if one that has returned did not succeed; else what the driver says.
    pub(crate) fn settle(&self) -> Result<(), DriverError> {
        let driver = match self.driver() {
            // They are the other process's.
            Err(DriverError::Forked) => return Err(DriverError::Forked),
            driver => driver,
        };
        let mut queue = self.queue();
        let _active = interrupt::Active::begin();
        let waited = driver.and_then(|driver| {
            driver.wait(&interrupt::requested)?;
            let is_asked = !queue.is_empty() || interrupt::requested();
            let stopped = is_asked && self.was_stopped(driver)?;
            Ok((driver, stopped))
        });
        if let Err(e) = &waited {
            self.note(e);
        }
        let interrupted = interrupt::requested();
        let mut failed = false;
        for launch in queue.iter_mut() {
            // What stands behind one that has failed has done nothing.
            let is_skipped = failed && waited.is_ok() && !interrupted;
            if !is_skipped {
                let end = match &waited {
                    Err(e) => End::failed(KernelFailure::Device(e.to_string())),
                    Ok((driver, stopped)) => {
                        let end = launch.end(*driver, *stopped);
                        end.unwrap_or_else(|e| End::failed(KernelFailure::Device(e.to_string())))
                    }
                };
                let end = match interrupted && end.outcome.is_ok() {
                    true => End {
                        outcome: Err(KernelFailure::Interrupted),
                        ..end
                    },
                    false => end,
                };
                failed |= end.outcome.is_err();
                launch.later.over(end);
            }
        }
        let over = std::mem::take(&mut *queue);
        // Who gives back what belongs to a launch speaks to the driver, and may find more to queue.
        drop(queue);
        for launch in over {
            if let Block::Own(block) = launch.block {
                launch.kernel.keep(block);
            }
        }
        match failed {
            true => Err(DriverError::Earlier),
            false => waited.map(drop),
        }
    }

    /// Whether launches were stopped since the last call.
    fn was_stopped(&self, driver: &dyn Driver) -> Result<bool, DriverError> {
        let mut word = [0; 8];
        driver.read(driver.stop_word(), &mut word)?;
        if word != [0; 8] {
            driver.fill(driver.stop_word(), 8, 0)?;
        }
        Ok(word != [0; 8])
    }
}

impl Queued {
    /// How it ended. Nothing stands in its block if it prints nothing and no launch was stopped.
    fn end(&mut self, driver: &dyn Driver, stopped: bool) -> Result<End, DriverError> {
        let (printed, trace) = (Mutex::new(String::new()), TaskTrace::default());
        let mut outcome = Ok(());
        match &self.block {
            Block::Own(block) if self.log.is_some() || stopped => {
                let back = Back::fetch(driver, block.address, &self.kernel.parts)?;
                if let Some(log) = self.log {
                    outcome = back.print(driver, log, (&self.kernel.sites, &[]), &printed)?;
                }
                outcome = back.failure(&self.kernel.parts).and(outcome);
            }
            Block::Graph { errors, .. } if stopped => {
                let mut record = [0; ERRORS as usize];
                driver.read(*errors, &mut record)?;
                outcome = recorded(&words(&record).collect::<Vec<_>>());
                if outcome.is_err() {
                    // The next run finds it as if nothing had been.
                    driver.fill(*errors, ERRORS, 0)?;
                }
            }
            _ => {}
        }
        if let Some(times) = self.times.take() {
            times.note(driver, &trace)?;
        }
        Ok(End {
            outcome,
            printed: printed.into_inner().unwrap_or_else(PoisonError::into_inner),
            trace,
        })
    }
}
