//! Compiling on a thread of its own, so that Ctrl-C works meanwhile, and deep nesting has a large stack.
//!
//! Neither passes nor LLVM can be left in the middle. An interrupted caller continues without them: the thread that is
//! left behind ends at its next look at `given_up`.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aerogel_runtime::interrupt;

/// How often whoever waits looks whether it was interrupted.
const INTERVAL: Duration = Duration::from_millis(20);
/// Only what is used of it is memory.
pub(crate) const STACK: usize = 256 << 20;

thread_local! {
    /// Of the work on this thread: whether nobody waits for it any more.
    static GIVEN_UP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Threads that nobody waits for, each with the process that has it: in a fork of that there is no such thread.
static LEFT_BEHIND: Mutex<Vec<(u32, JoinHandle<()>)>> = Mutex::new(Vec::new());

/// Ctrl-C came first.
pub(crate) struct Interrupted;

/// Whether nobody waits any more for what this thread does.
pub(crate) fn given_up() -> bool {
    GIVEN_UP.with_borrow(|flag| flag.as_ref().is_some_and(|f| f.load(Ordering::Relaxed)))
}

/// Does `work` on another thread and waits for it, unless it is interrupted.
pub(crate) fn interruptible<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Interrupted> {
    let _active = interrupt::Active::begin();
    let flag = Arc::new(AtomicBool::new(false));
    let (done, outcome) = mpsc::sync_channel(1);
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.expect("the work is done once")
    };
    let spawned = thread::Builder::new()
        .name("aerogel-compile".to_owned())
        .stack_size(STACK)
        .spawn({
            let (flag, work) = (flag.clone(), work.clone());
            move || {
                GIVEN_UP.set(Some(flag));
                // Nobody listens if it was given up.
                let _ = done.send(take(&work)());
            }
        });
    let Ok(thread) = spawned else {
        // No memory for a thread: without one, Ctrl-C waits.
        return Ok(take(&work)());
    };
    loop {
        match outcome.recv_timeout(INTERVAL) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) if interrupt::requested() => {
                flag.store(true, Ordering::Relaxed);
                let mut left = LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
                let here = std::process::id();
                left.retain(|(process, thread)| *process != here || !thread.is_finished());
                left.push((here, thread));
                return Err(Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Ok(()) => unreachable!("a thread sends before it ends"),
                Err(panic) => resume_unwind(panic),
            },
        }
    }
}

/// Waits for the threads that were left behind: a process must not end while one of them is in LLVM.
pub fn finish() {
    let left = std::mem::take(&mut *LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner));
    for (process, thread) in left {
        if process == std::process::id() {
            let _ = thread.join();
        } else {
            std::mem::forget(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_interrupted_does_not_wait_and_others_do() {
        assert!(matches!(interruptible(|| 3), Ok(3)));
        let (begun, has_begun) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        let stopper = thread::spawn(move || {
            has_begun.recv().expect("the work begins");
            interrupt::stop();
        });
        let outcome = interruptible(move || {
            begun.send(()).expect("somebody listens");
            while !given_up() {
                thread::yield_now();
            }
            ended.send(()).expect("somebody listens");
        });
        assert!(outcome.is_err());
        stopper.join().expect("it stopped us");
        finish();
        assert!(has_ended.try_recv().is_ok(), "`finish` waits for the work");
        // Nobody else is interrupted, and has a deep stack: 80 MiB of it are used here.
        fn depth(n: usize) -> usize {
            let here = std::hint::black_box([n; 1024]);
            if n == 0 { here[0] } else { 1 + depth(n - 1) }
        }
        assert!(matches!(interruptible(|| depth(10_000)), Ok(10_000)));
    }
}
