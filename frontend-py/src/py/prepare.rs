//! One instance of a kernel: lowered, compiled, and tied to the trees whose fields it uses.

use std::sync::{Arc, Weak};

use aerogel_runtime::{Buffer, KernelFailure, launch};
use pyo3::prelude::*;

use super::error;
use super::kernel::{KeyPart, NativeKernel};
use super::module::Settings;
use super::snode::TreeStore;

/// A tree of an instance. One that came as an argument is not kept alive.
pub(crate) enum TreeRef {
    Strong(Arc<TreeStore>),
    Weak(Weak<TreeStore>),
}

impl TreeRef {
    /// The tree's memory.
    pub(crate) fn memory(&self, py: Python<'_>) -> PyResult<Arc<Buffer>> {
        match self {
            Self::Strong(store) => store.memory(py),
            Self::Weak(store) => store
                .upgrade()
                .ok_or_else(|| error::runtime(py, "a field of the kernel is gone"))?
                .memory(py),
        }
    }
}

/// A compiled kernel.
pub(crate) struct Instance {
    pub(crate) trees: Vec<TreeRef>,
    /// Whether the kernel writes to each of its array arguments.
    pub(crate) writes: Vec<bool>,
    guards: Vec<Guard>,
}

/// An object that the key names by identity.
enum Guard {
    /// Kept alive, so that its address stays its own.
    Strong(#[expect(dead_code, reason = "held, not read")] Py<PyAny>),
    /// A weak reference, and the address it had.
    Weak(Py<PyAny>),
}

impl Instance {
    /// Whether all objects that the key names are still the same.
    pub(crate) fn is_current(&self, py: Python<'_>) -> bool {
        self.guards.iter().all(|guard| match guard {
            Guard::Strong(_) => true,
            Guard::Weak(reference) => reference.call0(py).is_ok_and(|object| !object.is_none(py)),
        })
    }

    pub(crate) fn launch(&self, _launch: launch::Launch<'_>) -> Result<(), KernelFailure> {
        Err(KernelFailure::Mismatch("there is no compiler"))
    }

    /// The exception for a launch that failed.
    pub(crate) fn failure(&self, py: Python<'_>, _failure: KernelFailure, kernel: &str) -> PyErr {
        error::runtime(py, format!("kernel `{kernel}` failed"))
    }
}

/// Weak references to what the key names by identity, strong ones where there are no weak ones.
fn guards(py: Python<'_>, key: &[KeyPart], values: &[Bound<'_, PyAny>]) -> PyResult<Vec<Guard>> {
    let weakref = py.import("weakref")?.getattr("ref")?;
    let named = |part: &KeyPart, value: &Bound<'_, PyAny>| {
        *part == KeyPart::Object(value.as_ptr() as usize)
    };
    Ok(values
        .iter()
        .filter(|value| key.iter().any(|part| named(part, value)))
        .map(|value| match weakref.call1((value,)) {
            Ok(reference) => Guard::Weak(reference.unbind()),
            Err(_) => Guard::Strong(value.clone().unbind()),
        })
        .collect())
}

/// Lowers and compiles a kernel for the given arguments.
pub(crate) fn compile(
    py: Python<'_>,
    kernel: &NativeKernel,
    _settings: &Settings,
    key: &[KeyPart],
    values: &[Bound<'_, PyAny>],
) -> PyResult<Instance> {
    let _ = guards(py, key, values)?;
    Err(error::runtime(
        py,
        format!(
            "kernel `{}` cannot be compiled: there is no compiler",
            kernel.name
        ),
    ))
}

/// What `kernel.inspect()` answers.
pub(crate) fn inspect<'py>(py: Python<'py>, _instance: &Instance) -> PyResult<Bound<'py, PyAny>> {
    Err(error::runtime(py, "there is no compiler"))
}
