//! The profiler's records: launches, with the times of their calls, and the steps of compiling.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use aerogel_runtime::TaskRun;
use indexmap::{IndexMap, IndexSet};
use pyo3::prelude::*;

use super::later;

/// Calls, and total, shortest and longest time in seconds.
type Timing = (u64, f64, f64, f64);
/// An event: a name, its kind, the thread, the begin and the duration in seconds.
type Event = (String, &'static str, u64, f64, f64);

/// By kernel and step: how often, and seconds.
type Steps = IndexMap<(String, String), (u64, f64)>;

/// The number of stored events: the most recent ones.
const MAX_EVENTS: usize = 1 << 18;

/// The last events, and how many were dropped for them.
#[derive(Default)]
struct Events {
    last: VecDeque<Event>,
    dropped: u64,
}

#[derive(Default)]
struct Profile {
    launches: IndexMap<String, Timing>,
    /// Launches and compilations.
    events: Events,
    /// The parts of tasks that threads ran, of which a launch has many.
    tasks: Events,
}

static LAUNCHES_ARE_TIMED: AtomicBool = AtomicBool::new(false);
static PROFILE: LazyLock<Mutex<Profile>> = LazyLock::new(Mutex::default);
/// How often each step of compiling a kernel was made, and how long it took.
static STEPS: LazyLock<Mutex<Steps>> = LazyLock::new(Mutex::default);
/// When events begin to be counted.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number for a thread, from 0 on in the order of the first requests.
fn number_of(thread: ThreadId) -> u64 {
    static THREADS: LazyLock<Mutex<IndexSet<ThreadId>>> = LazyLock::new(Mutex::default);
    lock(&THREADS).insert_full(thread).0 as u64
}

/// Sets whether launches are timed.
pub(crate) fn enable(launches: bool) {
    LazyLock::force(&START);
    LAUNCHES_ARE_TIMED.store(launches, Ordering::Relaxed);
}

/// Whether launches are timed.
pub(crate) fn is_on() -> bool {
    LAUNCHES_ARE_TIMED.load(Ordering::Relaxed)
}

/// The time, if launches are timed.
pub(crate) fn begin() -> Option<Instant> {
    is_on().then(Instant::now)
}

impl Events {
    fn push(
        &mut self,
        name: String,
        kind: &'static str,
        thread: ThreadId,
        begin: Instant,
        seconds: f64,
    ) {
        if self.last.len() == MAX_EVENTS {
            self.last.pop_front();
            self.dropped += 1;
        }
        let at = begin.saturating_duration_since(*START).as_secs_f64();
        self.last
            .push_back((name, kind, number_of(thread), at, seconds));
    }
}

/// Notes a launch that ends now, how long a device says it took, and what threads did of its tasks.
pub(crate) fn launched(name: &str, begin: Instant, time: Option<Duration>, runs: &[TaskRun]) {
    let whole = begin.elapsed().as_secs_f64();
    let seconds = time.map_or(whole, |time| time.as_secs_f64());
    let mut profile = lock(&PROFILE);
    let timing = profile
        .launches
        .entry(name.to_owned())
        .or_insert((0, 0.0, f64::INFINITY, 0.0));
    *timing = (
        timing.0 + 1,
        timing.1 + seconds,
        timing.2.min(seconds),
        timing.3.max(seconds),
    );
    let thread = thread::current().id();
    profile
        .events
        .push(name.to_owned(), "launch", thread, begin, whole);
    for run in runs {
        let seconds = (run.end - run.begin).as_secs_f64();
        let task = format!("{name}.{}", run.task);
        profile
            .tasks
            .push(task, "task", run.thread, run.begin, seconds);
    }
}

/// Notes that a kernel was compiled: the steps in order, and since when.
pub(crate) fn compiled<'a>(
    name: &str,
    begin: Instant,
    steps: impl IntoIterator<Item = (&'a str, Duration)>,
) {
    let mut known = lock(&STEPS);
    for (step, time) in steps {
        let entry = known.entry((name.to_owned(), step.to_owned())).or_default();
        *entry = (entry.0 + 1, entry.1 + time.as_secs_f64());
    }
    drop(known);
    if is_on() {
        let (thread, seconds) = (thread::current().id(), begin.elapsed().as_secs_f64());
        lock(&PROFILE)
            .events
            .push(name.to_owned(), "compile", thread, begin, seconds);
    }
}

/// The launches of each kernel.
#[pyfunction]
pub(crate) fn profile(py: Python<'_>) -> PyResult<Vec<(String, Timing)>> {
    later::settle(py)?;
    let profile = lock(&PROFILE);
    let launches = profile
        .launches
        .iter()
        .map(|(name, timing)| (name.clone(), *timing));
    Ok(launches.collect())
}

/// The last events (launches and compilations, or what threads did of tasks), in the order in which they ended,
/// and how many were dropped before them.
#[pyfunction]
pub(crate) fn profile_events(py: Python<'_>, tasks: bool) -> PyResult<(Vec<Event>, u64)> {
    later::settle(py)?;
    let profile = lock(&PROFILE);
    let events = if tasks {
        &profile.tasks
    } else {
        &profile.events
    };
    Ok((events.last.iter().cloned().collect(), events.dropped))
}

/// The steps of compiling: kernel, step, how often, seconds.
#[pyfunction]
pub(crate) fn profile_steps() -> Vec<(String, String, u64, f64)> {
    lock(&STEPS)
        .iter()
        .map(|((kernel, step), (times, seconds))| (kernel.clone(), step.clone(), *times, *seconds))
        .collect()
}

/// Forgets all launches and events.
#[pyfunction]
pub(crate) fn clear_profile() {
    *lock(&PROFILE) = Profile::default();
}

/// Forgets the steps of compiling.
#[pyfunction]
pub(crate) fn clear_profile_steps() {
    lock(&STEPS).clear();
}
