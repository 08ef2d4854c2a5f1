//! Runs of `ti.graph`, which a GPU launches as one where it can.

use std::sync::Arc;

use aerogel_compiler::{Arch, Graph};
use pyo3::prelude::*;

use super::{error, program};

/// The state that is stored between the runs of a graph.
#[pyclass(frozen)]
pub(crate) struct NativeGraph {
    graph: Arc<Graph>,
}

#[pymethods]
impl NativeGraph {
    #[new]
    fn new() -> Self {
        Self {
            graph: Arc::default(),
        }
    }

    /// Calls a function, whose launches are a run of the graph.
    fn run(&self, py: Python<'_>, launches: &Bound<'_, PyAny>) -> PyResult<()> {
        let Arch::Cuda(number) = program::settings(py)?.arch else {
            return launches.call0().map(drop);
        };
        let failed = |e: aerogel_compiler::DriverError| error::runtime(py, e.to_string());
        let device = aerogel_compiler::cuda(number).map_err(failed)?;
        let begun = py.detach(|| device.begin(&self.graph));
        let called = launches.call0();
        let ended = match begun {
            true => py.detach(|| device.end(&self.graph)),
            false => Ok(()),
        };
        called?;
        match ended {
            // Whoever comes by next is told which launch it was.
            Err(aerogel_compiler::DriverError::Earlier) | Ok(()) => Ok(()),
            Err(e) => Err(failed(e)),
        }
    }
}
