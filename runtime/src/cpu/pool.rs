//! Threads that share the chunks of one job with the thread that brings it.
//!
//! The caller opens a job, works on it itself, closes it when no chunk is left, and waits only for
//! the workers that had joined by then. A worker that wakes too late finds the job closed, so a
//! small job never waits for a thread to be scheduled.
//!
//! `state` is one word: `[epoch: 32 | open: 1 | joined: 31]`. Joining is a compare-and-swap that
//! succeeds only while the word says open, and closing clears the bit; that is the whole proof that
//! nobody touches a job after its `run` has returned.
#![expect(
    unsafe_code,
    reason = "workers use a job that lives on the caller's stack"
)]

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// How long an idle worker looks for the next job before it sleeps.
const SPIN: Duration = Duration::from_micros(30);

const OPEN: u64 = 1 << 31;
const JOINED: u64 = OPEN - 1;

/// A pool of threads.
pub struct Pool {
    n_threads: usize,
    /// Held for a moment only, and never waited for: a child process may inherit it locked.
    team: Mutex<Option<Arc<Team>>>,
}

/// The threads of one process; a forked child starts its own.
struct Team {
    process: u32,
    shared: Arc<Shared>,
    /// One job at a time; who finds it taken works alone.
    turn: Mutex<()>,
}

struct Shared {
    state: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
    caller_waits: AtomicBool,
    caller_sleep: Mutex<()>,
    caller_wake: Condvar,
    stop: AtomicBool,
}

// SAFETY: `job` is written by the caller while the state is closed and no worker has joined, and read
// by workers only after they joined an open one; the state word orders both.
unsafe impl Sync for Shared {}

#[derive(Clone, Copy)]
struct Job {
    work: *const Work<'static>,
}

// SAFETY: the pointee is `Sync`, and outlives every worker's use of it (see the module's text).
unsafe impl Send for Job {}

struct Work<'a> {
    body: &'a (dyn Fn(usize, usize) + Sync),
    next: AtomicUsize,
    n_chunks: usize,
    /// Workers that may still join, so that a job for few threads wakes but does not occupy more.
    places: AtomicUsize,
    panicked: AtomicBool,
}

impl Work<'_> {
    /// Works on chunks as the worker of a number.
    fn run(&self, worker: usize) {
        loop {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk >= self.n_chunks {
                return;
            }
            (self.body)(chunk, worker);
        }
    }
}

impl Pool {
    /// A pool in which at most `n_threads` work at a job, the caller included. Threads start with
    /// the first job that needs them.
    pub fn new(n_threads: usize) -> Self {
        Self {
            n_threads: n_threads.max(1),
            team: Mutex::new(None),
        }
    }

    /// How many threads work at a job at most, the caller included.
    pub fn n_threads(&self) -> usize {
        self.n_threads
    }

    /// Calls `body` once for each chunk of `0..n_chunks`, on up to `n_threads` threads, and returns
    /// when all calls have. Chunks start in order. A panic in `body` comes back to the caller.
    pub fn run(&self, n_chunks: usize, n_threads: usize, body: &(dyn Fn(usize) + Sync)) {
        self.run_numbered(n_chunks, n_threads, &|chunk, _| body(chunk));
    }

    /// As `run`. Besides the chunk `body` is told a number less than `n_threads`, which no other thread is
    /// told; the caller's is 0.
    pub fn run_numbered(
        &self,
        n_chunks: usize,
        n_threads: usize,
        body: &(dyn Fn(usize, usize) + Sync),
    ) {
        let n_threads = n_threads.min(self.n_threads).min(n_chunks);
        let work = Work {
            body,
            next: AtomicUsize::new(0),
            n_chunks,
            places: AtomicUsize::new(n_threads.saturating_sub(1)),
            panicked: AtomicBool::new(false),
        };
        let team = if n_threads > 1 { self.team() } else { None };
        let Some(team) = team else { return work.run(0) };
        let _turn = match team.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => return work.run(0),
        };
        {
            let _close = team.shared.open(&work);
            work.run(0);
        }
        if work.panicked.load(Ordering::Relaxed) {
            panic!("a chunk of a parallel job panicked on another thread");
        }
    }

    /// This process's threads, started if need be; nothing where they cannot be had.
    fn team(&self) -> Option<Arc<Team>> {
        let mut slot = match self.team.try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let process = std::process::id();
        if slot.as_ref().is_none_or(|team| team.process != process) {
            let team = Team::start(process, self.n_threads - 1)?;
            if let Some(lost) = slot.replace(Arc::new(team)) {
                // A parent's threads do not exist here: there is nobody to stop, and its locks may
                // be held for ever.
                std::mem::forget(lost);
            }
        }
        slot.clone()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let slot = self.team.get_mut().unwrap_or_else(|e| e.into_inner());
        if let Some(team) = slot.take() {
            if team.process == std::process::id() {
                team.shared.stop.store(true, Ordering::SeqCst);
                team.shared.wake_all();
            } else {
                std::mem::forget(team);
            }
        }
    }
}

impl Team {
    fn start(process: u32, n_workers: usize) -> Option<Self> {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
            caller_waits: AtomicBool::new(false),
            caller_sleep: Mutex::new(()),
            caller_wake: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let mut started = 0;
        for i in 0..n_workers {
            let shared = shared.clone();
            let thread = thread::Builder::new()
                .name(format!("aerogel-{i}"))
                .stack_size(STACK);
            // Fewer threads than requested are enough; none at all is a pool of one.
            if thread.spawn(move || shared.serve()).is_ok() {
                started += 1;
            }
        }
        (started > 0).then_some(Self {
            process,
            shared,
            turn: Mutex::new(()),
        })
    }
}

/// Stack of a thread that runs tasks: twice what functions that call themselves allow themselves. What is not used takes
/// no memory.
pub(crate) const STACK: usize = 8 << 20;

/// Closes the job and waits for those who joined, also when the caller's own chunk panics.
struct Close<'a>(&'a Shared);

impl Shared {
    /// Publishes a job until the returned guard is dropped.
    fn open<'a>(&'a self, work: &'a Work<'_>) -> Close<'a> {
        let epoch = (self.state.load(Ordering::Relaxed) >> 32).wrapping_add(1);
        let job = Job {
            work: std::ptr::from_ref(work).cast(),
        };
        // SAFETY: the last job is closed with nobody joined, so no worker reads the cell.
        unsafe { *self.job.get() = Some(job) };
        self.state.store((epoch << 32) | OPEN, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.wake_all();
        }
        Close(self)
    }

    fn wake_all(&self) {
        drop(self.sleep.lock());
        self.wake.notify_all();
    }

    /// A worker's life.
    fn serve(&self) {
        let mut last = 0;
        while let Some(state) = self.next_job(last) {
            let joined =
                self.state
                    .compare_exchange(state, state + 1, Ordering::AcqRel, Ordering::Relaxed);
            if joined.is_err() {
                continue;
            }
            last = state >> 32;
            // SAFETY: joined while open: the cell is not written until this worker leaves.
            let job = unsafe { *self.job.get() };
            let work = job.expect("an open state has a job").work;
            // SAFETY: the caller does not return before this worker leaves.
            let work = unsafe { &*work };
            let place = work
                .places
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            // As many places as are left, the last worker being number 1.
            let run = |place| catch_unwind(AssertUnwindSafe(|| work.run(place)));
            if place.is_ok_and(|place| run(place).is_err()) {
                work.next.store(work.n_chunks, Ordering::Relaxed);
                work.panicked.store(true, Ordering::Relaxed);
            }
            let left = self.state.fetch_sub(1, Ordering::SeqCst) - 1;
            if left & (OPEN | JOINED) == 0 && self.caller_waits.load(Ordering::SeqCst) {
                drop(self.caller_sleep.lock());
                self.caller_wake.notify_one();
            }
        }
    }

    /// The state of the next job after epoch `last`; nothing when the pool ends.
    fn next_job(&self, last: u64) -> Option<u64> {
        let ready = |state: u64| state & OPEN != 0 && state >> 32 != last;
        let begin = Instant::now();
        loop {
            for _ in 0..64 {
                let state = self.state.load(Ordering::Acquire);
                if ready(state) {
                    return Some(state);
                }
                std::hint::spin_loop();
            }
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            if begin.elapsed() > SPIN {
                break;
            }
        }
        let mut guard = self.sleep.lock().unwrap_or_else(|e| e.into_inner());
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let state = loop {
            let state = self.state.load(Ordering::SeqCst);
            if self.stop.load(Ordering::SeqCst) {
                break None;
            }
            if ready(state) {
                break Some(state);
            }
            guard = self.wake.wait(guard).unwrap_or_else(|e| e.into_inner());
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        state
    }
}

impl Drop for Close<'_> {
    fn drop(&mut self) {
        let shared = self.0;
        let mut state = shared.state.fetch_and(!OPEN, Ordering::SeqCst) & !OPEN;
        let begin = Instant::now();
        while state & JOINED != 0 {
            std::hint::spin_loop();
            state = shared.state.load(Ordering::SeqCst);
            if state & JOINED != 0 && begin.elapsed() > SPIN {
                shared.caller_waits.store(true, Ordering::SeqCst);
                let mut guard = shared
                    .caller_sleep
                    .lock()
                    .unwrap_or_else(|e| e.into_inner());
                while shared.state.load(Ordering::SeqCst) & JOINED != 0 {
                    guard = shared
                        .caller_wake
                        .wait(guard)
                        .unwrap_or_else(|e| e.into_inner());
                }
                shared.caller_waits.store(false, Ordering::SeqCst);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_runs_once() {
        let pool = Pool::new(4);
        for n_chunks in [0, 1, 2, 7, 1000] {
            for _ in 0..50 {
                let counts: Vec<_> = (0..n_chunks).map(|_| AtomicUsize::new(0)).collect();
                pool.run(n_chunks, 4, &|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn threads_have_numbers_of_their_own() {
        let pool = Pool::new(4);
        for _ in 0..100 {
            let threads: Vec<_> = (0..3).map(|_| Mutex::new(None)).collect();
            pool.run_numbered(64, 3, &|_, worker| {
                let me = thread::current().id();
                assert_eq!(*threads[worker].lock().unwrap().get_or_insert(me), me);
            });
            let me = Some(thread::current().id());
            assert!(threads[1..].iter().all(|t| *t.lock().unwrap() != me));
        }
    }

    #[test]
    fn many_callers_share_a_pool() {
        let pool = Pool::new(3);
        let total = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        pool.run(10, 3, &|i| {
                            total.fetch_add(i, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 4 * 500 * 45);
    }

    #[test]
    fn wakes_after_sleep() {
        let pool = Pool::new(2);
        for _ in 0..3 {
            pool.run(2, 2, &|_| {});
            thread::sleep(SPIN * 100);
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let pool = Pool::new(2);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(100, 2, &|i| assert!(i != 50, "chunk 50"));
        }));
        assert!(result.is_err());
        let count = AtomicUsize::new(0);
        pool.run(10, 2, &|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(count.into_inner(), 10);
    }
}
