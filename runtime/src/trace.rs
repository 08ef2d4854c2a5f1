//! When the tasks of a launch ran, and on which threads: for a profiler.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// The part of a task that one thread ran, from its first chunk to its last.
#[derive(Clone, Copy, Debug)]
pub struct TaskRun {
    /// The number of the task in the kernel.
    pub task: usize,
    /// The thread that ran it.
    pub thread: ThreadId,
    /// When the first chunk began.
    pub begin: Instant,
    /// When the last chunk ended.
    pub end: Instant,
}

/// Receives what a launch did.
#[derive(Debug, Default)]
pub struct TaskTrace(Mutex<Vec<TaskRun>>, OnceLock<Duration>);

impl TaskTrace {
    /// The recorded events, in order of their beginning.
    pub fn runs(&self) -> Vec<TaskRun> {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut runs = runs.clone();
        runs.sort_by_key(|run| run.begin);
        runs
    }

    /// Notes when a device ran a task that this thread has launched.
    pub fn note(&self, task: usize, begin: Instant, end: Instant) {
        let thread = thread::current().id();
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.push(TaskRun {
            task,
            thread,
            begin,
            end,
        });
    }

    /// Notes how long all tasks together took on a device.
    pub fn took(&self, time: Duration) {
        let _ = self.1.set(time);
    }

    /// How long all tasks together took on a device, if one has run them.
    pub fn time(&self) -> Option<Duration> {
        self.1.get().copied()
    }

    /// Notes that this thread ran a chunk of a task, until now.
    pub fn ran(&self, task: usize, begin: Instant) {
        let (thread, end) = (thread::current().id(), Instant::now());
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Tasks run one after the other: those of this one are the last.
        let mut of_task = runs.iter_mut().rev().take_while(|run| run.task == task);
        match of_task.find(|run| run.thread == thread) {
            Some(run) => run.end = end,
            None => runs.push(TaskRun {
                task,
                thread,
                begin,
                end,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_run_of_a_task() {
        let trace = TaskTrace::default();
        let begin = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| trace.ran(0, Instant::now()));
            trace.ran(0, begin);
            trace.ran(0, Instant::now());
        });
        trace.ran(1, Instant::now());
        let runs = trace.runs();
        let mine: Vec<_> = runs
            .iter()
            .filter(|run| run.thread == thread::current().id())
            .collect();
        assert_eq!((runs.len(), mine.len()), (3, 2));
        assert!(mine[0].begin == begin && mine[0].end <= mine[1].begin);
    }
}
