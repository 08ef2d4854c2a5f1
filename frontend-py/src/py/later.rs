//! Launches that have returned before they ended, on a GPU.
//!
//! The thread that waits for the GPU collects their output and errors, possibly without the GIL. These are stored here
//! until a thread that has the GIL takes them: `ti.sync`, a read of a field or an array, and the next launch print the
//! output and raise the errors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use aerogel_compiler::{Arch, DriverError};
use aerogel_runtime::TreeMemory;
use aerogel_runtime::launch::{End, KernelFailure, Later};
use pyo3::prelude::*;

use super::program::{self, Settings};
use super::{error, profile, signals};

/// Whether launches may have returned before they ended, since somebody waited last.
static RETURNED: AtomicBool = AtomicBool::new(false);
static ENDED: Mutex<Vec<Ended>> = Mutex::new(Vec::new());
/// Whether there is anything in `ENDED`: all that a call looks at otherwise.
static ANY_ENDED: AtomicBool = AtomicBool::new(false);

/// The compiled kernel of a launch: it knows the lines that its failures name.
pub(crate) trait Explain: Send + Sync {
    /// The exception for a launch that failed.
    fn failure(&self, py: Python<'_>, failure: KernelFailure, kernel: &str) -> PyErr;
}

/// A launch that is over, of which nobody in Python knows.
struct Ended {
    instance: Arc<dyn Explain>,
    kernel: String,
    begin: Option<Instant>,
    end: End,
}

/// A launch that may return before it has ended.
struct Waiting {
    instance: Arc<dyn Explain>,
    kernel: String,
    begin: Option<Instant>,
    /// The sparse trees that it works on.
    trees: Vec<Weak<TreeMemory>>,
}

fn ended() -> MutexGuard<'static, Vec<Ended>> {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Later for Waiting {
    fn over(&self, end: End) {
        if end.outcome.is_err() {
            let trees = self.trees.iter().filter_map(Weak::upgrade);
            trees.for_each(|tree| tree.ended_early());
        }
        ended().push(Ended {
            instance: self.instance.clone(),
            kernel: self.kernel.clone(),
            begin: self.begin,
            end,
        });
        ANY_ENDED.store(true, Ordering::Release);
    }
}

/// Who is told how a launch ended, if it may return before. With `debug=True` none does, so that a traceback has the call
/// that failed.
pub(crate) fn waiting<E: Explain + 'static>(
    settings: &Settings,
    instance: &Arc<E>,
    kernel: &str,
    begin: Option<Instant>,
    trees: &[Arc<TreeMemory>],
) -> Option<Arc<dyn Later>> {
    if settings.debug || settings.debug_races || !matches!(settings.arch, Arch::Cuda(_)) {
        return None;
    }
    RETURNED.store(true, Ordering::Release);
    let sparse = trees.iter().filter(|tree| tree.is_sparse());
    Some(Arc::new(Waiting {
        instance: instance.clone(),
        kernel: kernel.to_owned(),
        begin,
        trees: sparse.map(Arc::downgrade).collect(),
    }))
}

/// Waits for all launches, prints their output, and raises the error of the first that failed. Errors of the device
/// itself are left to the caller's next use of it.
pub(crate) fn settle(py: Python<'_>) -> PyResult<()> {
    signals::heed(py)?;
    let _ = wait(py);
    tell(py)
}

/// As `settle`, and also raises errors of the device.
#[pyfunction]
pub(crate) fn sync(py: Python<'_>) -> PyResult<()> {
    signals::heed(py)?;
    let waited = wait(py);
    tell(py)?;
    match waited {
        Ok(()) | Err(DriverError::Earlier) => Ok(()),
        Err(e) => Err(error::runtime(py, e.to_string())),
    }
}

fn wait(py: Python<'_>) -> Result<(), DriverError> {
    if !RETURNED.swap(false, Ordering::AcqRel) {
        return Ok(());
    }
    let Ok(Arch::Cuda(number)) = program::settings(py).map(|settings| settings.arch) else {
        return Ok(());
    };
    py.detach(|| aerogel_compiler::cuda(number)?.wait())
}

/// Prints and raises what launches have left that are over.
pub(crate) fn tell(py: Python<'_>) -> PyResult<()> {
    if !ANY_ENDED.load(Ordering::Acquire) || !ANY_ENDED.swap(false, Ordering::AcqRel) {
        return Ok(());
    }
    let all = std::mem::take(&mut *ended());
    let mut printed = String::new();
    for launch in &all {
        printed.push_str(&launch.end.printed);
        if let Some(begin) = launch.begin {
            let time = launch.end.trace.time();
            profile::launched(&launch.kernel, begin, time, &launch.end.trace.runs());
        }
    }
    print(py, &printed)?;
    let mut failed = all.iter().filter_map(|launch| {
        let failure = launch.end.outcome.as_ref().err()?;
        Some((launch, failure))
    });
    let Some((first, failure)) = failed.next() else {
        return Ok(());
    };
    let mut failure = failure.clone();
    if let KernelFailure::Device(what) = &mut failure {
        // The device does not report which of them it was.
        let mut others: Vec<&str> = failed.map(|(launch, _)| &*launch.kernel).collect();
        others.dedup();
        if !others.is_empty() {
            let others = others.join("`, `");
            what.push_str(&format!(
                "; it was this launch or a later one, of `{others}`: ti.init(debug=True) waits for each launch"
            ));
        }
    }
    Err(first.instance.failure(py, failure, &first.kernel))
}

/// Prints what a kernel has printed.
pub(crate) fn print(py: Python<'_>, text: &str) -> PyResult<()> {
    if !text.is_empty() {
        let stdout = py.import("sys")?.getattr("stdout")?;
        stdout.call_method1("write", (text,))?;
    }
    Ok(())
}
