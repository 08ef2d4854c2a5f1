//! The order of parts that run at the same time: what each does at its end waits until that of all earlier parts is done.
//!
//! Threads take parts in order, so the earliest unfinished part is always running, and waiting cannot deadlock.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// How long a waiting thread reads the counter before it lets others run, which on a busy machine takes it as long as
/// many chunks last.
const SPIN: Duration = Duration::from_micros(200);

/// Which part of a task is the first that has not ended.
#[derive(Default)]
pub(super) struct Turns(AtomicU64);

impl Turns {
    /// No part of a task has ended.
    pub(super) fn begin(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Waits until all parts before this one have ended.
    pub(super) fn wait(&self, part: u64) {
        let is_over = || self.0.load(Ordering::Acquire) == part;
        if is_over() {
            return;
        }
        let begin = Instant::now();
        while !is_over() {
            match begin.elapsed() < SPIN {
                true => (0..32).for_each(|_| spin_loop()),
                false => yield_now(),
            }
        }
    }

    /// Ends a part, after all before it.
    pub(super) fn end(&self, part: u64) {
        self.wait(part);
        self.0.store(part + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::cpu::Pool;

    #[test]
    fn parts_end_in_order() {
        let (turns, ended) = (Turns::default(), Mutex::new(Vec::new()));
        Pool::new(4).run(500, 4, &|part| {
            let part = part as u64;
            if !part.is_multiple_of(3) {
                turns.wait(part);
                ended.lock().unwrap().push(part);
            }
            turns.end(part);
        });
        let ended = ended.into_inner().unwrap();
        assert_eq!(
            ended,
            (0..500).filter(|part| part % 3 > 0).collect::<Vec<_>>()
        );
    }
}
