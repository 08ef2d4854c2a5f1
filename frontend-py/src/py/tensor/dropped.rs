//! Objects of Python's that back ends use, which are dropped when no lock is taken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// An object that a back end references. It may go while the session is locked, and may be made of tensors itself: it is
/// dropped later, when the session is free.
pub(super) struct Dropped(Option<Py<PyAny>>);

static DROPPED: Mutex<Vec<Py<PyAny>>> = Mutex::new(Vec::new());
static ARE_DROPPED: AtomicBool = AtomicBool::new(false);

impl Dropped {
    pub(super) fn of(object: Py<PyAny>) -> Self {
        Self(Some(object))
    }

    pub(super) fn object(&self) -> Option<&Py<PyAny>> {
        self.0.as_ref()
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        let mut all = DROPPED.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(self.0.take());
        ARE_DROPPED.store(true, Ordering::Release);
    }
}

/// Drops the objects that back ends no longer reference. The session must be free.
pub(super) fn drop_objects() {
    if ARE_DROPPED.swap(false, Ordering::AcqRel) {
        let mut all = DROPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = std::mem::take(&mut *all);
        drop(all);
        Python::attach(|_| drop(gone));
    }
}
