//! Who handles Ctrl-C: Python, which raises `KeyboardInterrupt`, or the program itself.

use aerogel_runtime::interrupt;
use pyo3::intern;
use pyo3::prelude::*;

/// Lets Ctrl-C interrupt the next run, even if another handler has been installed since the last time.
pub(crate) fn heed(py: Python<'_>) -> PyResult<()> {
    match interrupt::is_due() {
        true => watch(py),
        false => Ok(()),
    }
}

/// The same at once.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    let signal = py.import("signal")?;
    let number = signal.getattr(intern!(py, "SIGINT"))?;
    let handler = signal.call_method1(intern!(py, "getsignal"), (number,))?;
    let pythons = signal.getattr(intern!(py, "default_int_handler"))?;
    // One that a library in C has set is none of Python's, and is called by its own means.
    let is_own = handler.is_callable() && !handler.is(&pythons);
    if handler.is_callable() || handler.is_none() {
        interrupt::watch(is_own);
    }
    Ok(())
}
