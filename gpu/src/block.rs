//! The block of device memory with the inputs of a launch's tasks and its results for the host.
//!
//! It goes there and comes back in one copy each:
//!
//! ```text
//! LaunchContext | Services | ErrorRecord | results | arguments | addresses of trees | bounds | temporaries
//!                 comes back: ---------------------
//! ```
//! The launches of a graph have blocks one behind the other, so that one copy brings what all of them are given. What they
//! leave stands behind all blocks: a run that follows at once must not overwrite it.
//!
//! ```text
//! LaunchContext | Services | arguments | addresses of trees | LaunchContext ..   ErrorRecord | bounds | temporaries | ErrorRecord ..
//! ```

use std::ops::Range;

use aerogel_runtime::Buffer;
use aerogel_runtime::abi::{ErrorRecord, LaunchContext, MAX_ERROR_ARGS, Services, offset};
use aerogel_runtime::code::Site;
use aerogel_runtime::launch::{KernelFailure, PrintSink};

use crate::driver::{Driver, DriverError};
use crate::printed;

/// Where services are.
pub(crate) const SERVICES: u64 = size_of::<LaunchContext>() as u64;
const N_SERVICES: u64 = size_of::<Services>() as u64;
/// Bytes of a record of errors.
pub(crate) const ERRORS: u64 = size_of::<ErrorRecord>() as u64;
/// Where temporaries begin is a multiple of this.
const ALIGNMENT: u64 = 64;

/// How many words the parts of a block have.
pub(crate) struct Words {
    pub(crate) results: usize,
    pub(crate) args: usize,
    pub(crate) roots: usize,
    pub(crate) bounds: usize,
    pub(crate) temp_bytes: u64,
}

/// Where the parts of a block are, from its beginning on.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) errors: u64,
    pub(crate) results: u64,
    pub(crate) args: u64,
    pub(crate) roots: u64,
    /// How much of it a launch is given.
    pub(crate) given: u64,
    pub(crate) bounds: u64,
    pub(crate) temps: u64,
    /// How much memory it needs.
    pub(crate) bytes: u64,
}

/// Takes so many words of what is left.
fn take(next: &mut u64, words: usize) -> u64 {
    let first = *next;
    *next += 8 * words as u64;
    first
}

impl Words {
    /// A block of its own.
    pub(crate) fn alone(&self) -> Parts {
        let errors = SERVICES + N_SERVICES;
        let mut next = errors + ERRORS;
        let results = take(&mut next, self.results);
        let args = take(&mut next, self.args);
        let roots = take(&mut next, self.roots);
        let bounds = take(&mut next, self.bounds);
        let temps = next.next_multiple_of(ALIGNMENT);
        Parts {
            errors,
            results,
            args,
            roots,
            given: bounds,
            bounds,
            temps,
            bytes: temps + self.temp_bytes,
        }
    }

    /// How much a launch in a graph is given.
    pub(crate) fn given(&self) -> u64 {
        SERVICES + N_SERVICES + 8 * (self.args + self.roots) as u64
    }

    /// A block of a graph that begins at `at`; what it leaves begins at `behind`. Both count from the graph's memory on.
    pub(crate) fn in_graph(&self, at: u64, behind: u64) -> Parts {
        let mut next = SERVICES + N_SERVICES;
        let args = take(&mut next, self.args);
        let roots = take(&mut next, self.roots);
        let given = next;
        let mut next = behind + ERRORS;
        let results = take(&mut next, self.results);
        let bounds = take(&mut next, self.bounds);
        let temps = next.next_multiple_of(ALIGNMENT);
        Parts {
            errors: behind - at,
            results: results - at,
            args,
            roots,
            given,
            bounds: bounds - at,
            temps: temps - at,
            bytes: temps + self.temp_bytes - at,
        }
    }
}

/// What comes back of a block of its own: what stands between its context and its arguments.
pub(crate) struct Back(Vec<u8>);

impl Back {
    /// Reserves it.
    pub(crate) fn fetch(
        driver: &dyn Driver,
        block: u64,
        parts: &Parts,
    ) -> Result<Self, DriverError> {
        let mut bytes = vec![0; (parts.args - SERVICES) as usize];
        driver.read(block + SERVICES, &mut bytes)?;
        Ok(Self(bytes))
    }

    /// The word at an offset of the block.
    fn word(&self, at: u64) -> u64 {
        self.words(at..at + 8).next().unwrap_or_default()
    }

    /// The words of a part of the block.
    pub(crate) fn words(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        words(&self.0[(range.start - SERVICES) as usize..(range.end - SERVICES) as usize])
    }

    /// Prints what threads have noted in a log, and clears it. The inner error is a data race.
    pub(crate) fn print(
        &self,
        driver: &dyn Driver,
        (log, bytes): (u64, u64),
        of: (&[Site], &[&Buffer]),
        sink: &dyn PrintSink,
    ) -> Result<Result<(), KernelFailure>, DriverError> {
        let taken = self.word(SERVICES + offset::LOG_TAKEN).min(bytes / 8);
        let mut records = vec![0; 8 * taken as usize];
        if taken > 0 {
            driver.read(log, &mut records)?;
            driver.fill(log, 8 * taken, 0)?;
        }
        let records: Vec<u64> = words(&records).collect();
        let lost = self.word(SERVICES + offset::LOG_LOST);
        Ok(printed::print(&records, lost, of, sink))
    }

    /// What a check has recorded.
    pub(crate) fn failure(&self, parts: &Parts) -> Result<(), KernelFailure> {
        let record = self.words(parts.errors..parts.errors + ERRORS);
        recorded(&record.collect::<Vec<_>>())
    }
}

/// What a record of errors says.
pub(crate) fn recorded(record: &[u64]) -> Result<(), KernelFailure> {
    let at = |offset: u64| record[offset as usize / 8];
    let [state, n_args] = [at(offset::ERROR_STATE), at(offset::ERROR_N_ARGS)];
    if state as u32 == 0 {
        return Ok(());
    }
    let n_args = (n_args as u32 as usize).min(MAX_ERROR_ARGS);
    let args = record.iter().skip(offset::ERROR_ARGS as usize / 8);
    Err(KernelFailure::Check {
        site: (state >> 32) as usize,
        args: args.take(n_args).copied().collect(),
    })
}

/// Bytes as words.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.chunks_exact(8);
    words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
}
