//! From the compiler's and the runtime's failures to the exceptions of `aerogel.errors`.

use std::fmt::Write;

use aerogel_base::render::{Sources, render_all, render_place};
use aerogel_base::{AssertKind, Diagnostic, ErrorKind, NoteKind, SpanTable};
use aerogel_compiler::CompileError;
use aerogel_runtime::races::Race;
use aerogel_runtime::{KernelFailure, MemoryError, Site, SiteKind};
use aerogel_snode::{NodeKind, Tree};
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::later;

/// An exception of the package's class with this name.
pub(crate) fn exception(py: Python<'_>, class: &str, message: impl Into<String>) -> PyErr {
    let message = message.into();
    let made = py
        .import("aerogel.errors")
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| Ok(class.cast_into::<PyType>()?));
    match made {
        Ok(class) => PyErr::from_type(class, message),
        Err(_) => PyRuntimeError::new_err(message),
    }
}

/// An `AerogelRuntimeError`.
pub(crate) fn runtime(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "AerogelRuntimeError", message)
}

/// All mistakes of a kernel as one exception, of the class of the first.
pub(crate) fn raise(
    py: Python<'_>,
    diagnostics: &[Diagnostic],
    spans: &SpanTable,
    sources: &Sources,
) -> PyErr {
    let class = diagnostics
        .first()
        .map_or(ErrorKind::Compilation, |d| d.kind)
        .class_name();
    // The exception's own class name comes first in a traceback, so the text starts on a new line.
    let mut text = format!("\n{}", render_all(diagnostics, spans, sources));
    if let Some(first) = diagnostics.first() {
        let _ = write!(
            text,
            "\n   = help: python -m aerogel explain {}",
            first.code
        );
    }
    exception(py, class, text)
}

/// The text of a warning.
pub(crate) fn warning(what: &Diagnostic, spans: &SpanTable, sources: &Sources) -> String {
    let mut text = format!("warning: {}", what.message);
    render_place(&mut text, what.span, None, spans, sources);
    for note in &what.notes {
        let _ = write!(text, "\n   = note: {note}");
    }
    text
}

/// Ctrl-C, while this ran.
pub(crate) fn interrupted(py: Python<'_>, what: &str) -> PyErr {
    // The signal's own handler raises; where it does not (another thread, a handler of the user's that returns), what ran
    // has ended all the same.
    let own = || PyKeyboardInterrupt::new_err(format!("{what} was interrupted"));
    py.check_signals().err().unwrap_or_else(own)
}

/// An exception that says below its message where the kernel is whose arguments are wrong; from Python 3.11 on.
pub(crate) fn noted(error: PyErr, kernel: &Bound<'_, PyAny>, signature: &str) -> PyErr {
    let place = kernel.getattr("__code__").and_then(|code| {
        let path: String = code.getattr("co_filename")?.extract()?;
        let line: u32 = code.getattr("co_firstlineno")?.extract()?;
        Ok(format!("{path}:{line}"))
    });
    if let Ok(place) = place {
        let note = format!("the kernel is `{signature}`, at {place}");
        // Python 3.10 has no notes.
        let _ = error.value(kernel.py()).call_method1("add_note", (note,));
    }
    error
}

/// The exception for a kernel that there is not, which is not the user's mistake.
pub(crate) fn not_compiled(py: Python<'_>, kernel: &str, e: CompileError) -> PyErr {
    match e {
        CompileError::Interrupted => interrupted(py, &format!("kernel `{kernel}`")),
        other => runtime(py, format!("kernel `{kernel}`: {other}")),
    }
}

/// The class of the exception for a check that does not hold.
pub(crate) fn of_check(kind: AssertKind) -> &'static str {
    use AssertKind::{
        Assertion, Bounds, DivisionByZero, Memory, ModuloByZero, NegativePower, Recursion,
        TensorBounds,
    };
    match kind {
        DivisionByZero | ModuloByZero => "AerogelZeroDivisionError",
        NegativePower => "AerogelArithmeticError",
        Memory => "AerogelMemoryError",
        Recursion => "AerogelRecursionError",
        Assertion | Bounds | TensorBounds => "AerogelAssertionError",
    }
}

/// A launch that failed.
pub(crate) fn failure(
    py: Python<'_>,
    failure: KernelFailure,
    kernel: &str,
    sites: &[Site],
    spans: &SpanTable,
    sources: &Sources,
) -> PyErr {
    match failure {
        KernelFailure::Check { site, args } => {
            let Some(site) = sites.get(site) else {
                return runtime(py, format!("a check in kernel `{kernel}` failed"));
            };
            let class = match site.kind {
                SiteKind::Check(kind) => of_check(kind),
                SiteKind::NoCell { .. } => of_check(AssertKind::Memory),
                SiteKind::Print | SiteKind::Warning | SiteKind::Note(_) => "AerogelAssertionError",
            };
            let mut text = site.render(&args);
            if text.is_empty() {
                text.push_str("the assertion does not hold");
            }
            render_place(&mut text, site.span, None, spans, sources);
            text.push_str(&format!("\n   = note: in kernel `{kernel}`"));
            exception(py, class, text)
        }
        KernelFailure::Race(race) => {
            let text = race_text(&race, kernel, sites, spans, sources);
            exception(py, "AerogelRaceError", text)
        }
        KernelFailure::Interrupted => interrupted(py, &format!("kernel `{kernel}`")),
        KernelFailure::Memory(e) | KernelFailure::Tree { error: e, .. } => memory(e),
        KernelFailure::Overlap => {
            let what = "arrays share memory";
            runtime(py, format!("kernel `{kernel}` cannot be launched: {what}"))
        }
        KernelFailure::Mismatch(what) => {
            runtime(py, format!("kernel `{kernel}` cannot be launched: {what}"))
        }
        KernelFailure::Device(what) => runtime(py, format!("kernel `{kernel}`: {what}")),
        KernelFailure::Exchange => {
            let what = "an exchange between processes failed";
            runtime(py, format!("kernel `{kernel}`: {what}"))
        }
    }
}

/// The message of a data race, with the lines of both accesses.
fn race_text(
    race: &Race,
    kernel: &str,
    sites: &[Site],
    spans: &SpanTable,
    sources: &Sources,
) -> String {
    let (site, values) = &race.name;
    let name = sites.get(*site).map(|site| site.render(values));
    let name = name.unwrap_or_default();
    let [one, another] = race.accesses.each_ref().map(|access| {
        let indices: Vec<String> = access.iteration.iter().map(i64::to_string).collect();
        let iteration = match &indices[..] {
            [index] => index.clone(),
            _ => format!("({})", indices.join(", ")),
        };
        let (does, how) = match access.kind {
            NoteKind::Write => ("writes", ""),
            NoteKind::Atomic => ("changes", " atomically"),
            NoteKind::Read | NoteKind::Loop => ("reads", ""),
        };
        (iteration, does, how)
    });
    let mut text = format!("data race on `{name}`: ");
    let _ = match one.1 == another.1 {
        true => write!(text, "iterations {} and {} both write it", one.0, another.0),
        false => write!(
            text,
            "iteration {} {} it{}, and iteration {} {} it{}",
            one.0, one.1, one.2, another.0, another.1, another.2
        ),
    };
    for (access, (iteration, does, _)) in race.accesses.iter().zip([&one, &another]) {
        let label = format!("iteration {iteration} {does}");
        if let Some(site) = sites.get(access.site) {
            render_place(&mut text, site.span, Some(&label), spans, sources);
        }
    }
    let _ = write!(text, "\n   = note: in kernel `{kernel}`");
    text.push_str(
        "\n   = help: use atomic operations (`+=`, `ti.atomic_max`), or write to another field than is read",
    );
    text
}

/// Checks that about this many bytes can be allocated at once; for libraries that end the process otherwise.
pub(crate) fn room(bytes: usize) -> PyResult<()> {
    let mut probe: Vec<u8> = Vec::new();
    probe
        .try_reserve_exact(bytes)
        .map_err(|_| memory(MemoryError::OutOfMemory { bytes }))
}

/// A `MemoryError`; of our own class where a sparse node has no memory for a cell.
pub(crate) fn memory(e: MemoryError) -> PyErr {
    if let MemoryError::NoCell { .. } = e {
        return Python::attach(|py| exception(py, "AerogelMemoryError", e.to_string()));
    }
    if e == MemoryError::LaunchFailed {
        // Unless another thread has raised it.
        return Python::attach(|py| {
            let told = later::tell(py).err();
            told.unwrap_or_else(|| runtime(py, e.to_string()))
        });
    }
    if matches!(
        e,
        MemoryError::DeviceLost
            | MemoryError::DeviceForked
            | MemoryError::DeviceFailed
            | MemoryError::DeviceOnly
            | MemoryError::HostOnly
    ) {
        return Python::attach(|py| runtime(py, e.to_string()));
    }
    PyMemoryError::new_err(e.to_string())
}

/// The same for a layout that has no memory, of the host or of a device: which of its nodes wants most of it.
pub(crate) fn tree_memory(e: MemoryError, tree: &Tree) -> PyErr {
    let named = tree.nodes().filter(|(_, node)| node.kind.name().is_some());
    let largest = named.max_by_key(|(_, node)| node.container_size());
    let is_full = matches!(
        e,
        MemoryError::OutOfMemory { .. } | MemoryError::DeviceFull { .. }
    );
    let Some((id, node)) = largest.filter(|_| is_full) else {
        return memory(e);
    };
    let shape: Vec<String> = tree.shape(id).iter().map(u64::to_string).collect();
    let kind = node.kind.name().unwrap_or_default();
    let hint = match node.kind {
        NodeKind::Pointer => "; `hash` needs memory only for cells that exist",
        NodeKind::Dense => {
            "; a `pointer` or `hash` node above needs memory only for cells that are written"
        }
        _ => "",
    };
    let message = format!(
        "{e}: most of it for `{kind}` over {}{hint}",
        shape.join(" x ")
    );
    Python::attach(|py| exception(py, "AerogelMemoryError", message))
}
