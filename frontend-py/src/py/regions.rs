//! Named, nested regions of a program. Profilers show the region of each kernel.

use std::cell::Cell;
use std::sync::{LazyLock, Mutex, PoisonError};

use indexmap::IndexSet;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A region, by its number in the table of the process; zero is outside of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Region(u32);

impl Region {
    /// Outside of all regions.
    pub(crate) const NONE: Self = Self(0);
}

/// A region: the one around it, and its own name.
type Named = (Region, String);

static REGIONS: LazyLock<Mutex<IndexSet<Named>>> = LazyLock::new(Mutex::default);

thread_local! {
    static CURRENT: Cell<Region> = const { Cell::new(Region::NONE) };
}

/// The region in which this thread is.
pub(crate) fn current() -> Region {
    CURRENT.get()
}

fn definition(region: Region) -> Option<Named> {
    let number = region.0.checked_sub(1)? as usize;
    let regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    regions.get_index(number).cloned()
}

/// The names from the outermost one on, such as `step/forward`; nothing outside of all.
pub(crate) fn path(region: Region) -> Option<String> {
    let (around, name) = definition(region)?;
    Some(match path(around) {
        Some(path) => format!("{path}/{name}"),
        None => name,
    })
}

/// What a profiler calls something in a region: `step/forward: fill`.
pub(crate) fn labelled(region: Region, name: &str) -> String {
    match path(region) {
        Some(path) => format!("{path}: {name}"),
        None => name.to_owned(),
    }
}

/// Begins a region in the current one. Returns the number of the one around.
#[pyfunction]
pub(crate) fn enter_region(name: String) -> u32 {
    let mut regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let around = current();
    let number = regions.insert_full((around, name)).0;
    CURRENT.set(Region(number as u32 + 1));
    around.0
}

/// Makes a region, which `enter_region` has returned, the current one again.
#[pyfunction]
pub(crate) fn return_to_region(number: u32) {
    CURRENT.set(Region(number));
}

/// The name of the current region; nothing outside of all.
#[pyfunction]
pub(crate) fn current_region() -> Option<String> {
    definition(current()).map(|(_, name)| name)
}

/// Ends the current region.
#[pyfunction]
pub(crate) fn leave_region() -> PyResult<()> {
    let (around, _) = definition(current())
        .ok_or_else(|| PyRuntimeError::new_err("no region is open: begin one first"))?;
    CURRENT.set(around);
    Ok(())
}
