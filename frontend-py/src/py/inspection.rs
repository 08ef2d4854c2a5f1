//! What `kernel.inspect()` returns.

use aerogel_base::{Span, SpanData, SpanTable};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::error;
use super::prepare::Instance;

/// The result of `kernel.inspect()`; with `located`, also where the instructions of the LLVM IR come from.
pub(super) fn inspect<'py>(
    py: Python<'py>,
    kernel: &str,
    instance: &Instance,
    located: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let inspection = py
        .detach(|| instance.compiler().inspect(&instance.compiled, located))
        .map_err(|e| error::not_compiled(py, kernel, e))?;
    // A pass may run several times; its last text is the one under its name alone.
    let stages = PyDict::new(py);
    for (name, text) in &inspection.stages {
        stages.set_item(name, text)?;
    }
    let times = PyDict::new(py);
    for (name, time) in &inspection.times {
        let so_far: f64 = match times.get_item(name)? {
            Some(seconds) => seconds.extract()?,
            None => 0.0,
        };
        times.set_item(name, so_far + time.as_secs_f64())?;
    }
    let source = instance.compiled.sources().iter().next();
    let out = PyDict::new(py);
    out.set_item("source", source.map(|(_, file)| file.text.as_str()))?;
    out.set_item("stages", stages)?;
    out.set_item("llvm", inspection.llvm)?;
    out.set_item("asm", inspection.assembly)?;
    out.set_item("times", times)?;
    if located {
        out.set_item("files", files(instance))?;
        out.set_item("places", places(instance, &inspection.spans))?;
    }
    Ok(out.into_any())
}

/// Path, first line and text of each source.
fn files(instance: &Instance) -> Vec<(String, u32, String)> {
    let files = instance.compiled.sources().iter();
    files
        .map(|(_, file)| (file.path.clone(), file.first_line, file.text.clone()))
        .collect()
}

/// For the number of each span from one on, the number of its source and its line there; then those of the calls around.
fn places(instance: &Instance, spans: &SpanTable) -> Vec<Vec<(usize, u32)>> {
    let files: Vec<_> = instance.compiled.sources().iter().collect();
    let place = |data: &SpanData| {
        let at = files.iter().position(|(id, _)| *id == data.source)?;
        Some((at, files[at].1.position(data.start).0))
    };
    let chain = |index: u32| {
        let first = spans.get(Span::from_index(index));
        let around = std::iter::successors(first, |data| spans.get(data.inlined_at));
        around.filter_map(place).collect()
    };
    (1..)
        .take_while(|&k| spans.get(Span::from_index(k)).is_some())
        .map(chain)
        .collect()
}
