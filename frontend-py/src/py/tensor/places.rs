//! Where in the user's program a tensor is made: noted for every one, shown when something is wrong with it.
//!
//! ```text
//!   --> sph.py:41:9
//!    |
//! 41 |     near = density[at]
//!    |            ^^^^^^^^^^^
//! ```
//!
//! What is noted is a function's code and how far it has come; which line and which column that is, and what stands there, is
//! looked up when it is shown.

use std::sync::{LazyLock, Mutex};

use aerogel_base::hash::{LookupMap, LookupSet};
use aerogel_base::render::{Sources, render_place};
use aerogel_base::{SourceFile, SpanData, SpanTable};
use aerogel_tensor::ir::Place;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::native::lock;
use crate::py::regions::{self, Region};

/// The source locations of a process: each a function's code, a strong reference, the offset of the instruction, and the
/// region.
#[derive(Default)]
struct Places {
    of: LookupMap<(usize, i32, Region), Place>,
    all: Vec<(Py<PyAny>, i32, Region)>,
    /// Functions of this package, strong references too.
    own: LookupSet<usize>,
    held: Vec<Py<PyAny>>,
}

static PLACES: LazyLock<Mutex<Places>> = LazyLock::new(Mutex::default);
static GET_FRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Whoever makes functions without end is told of the first so many places only.
const MOST: usize = 1 << 18;

/// Packages whose functions are not the user's: `contextlib` stands between `with` and a block's function.
const NOT_THE_USERS: [&str; 3] = ["aerogel", "contextlib", "functools"];

/// Where the user's program is.
pub(super) fn here(py: Python<'_>) -> Place {
    find(py).unwrap_or(Place::NONE)
}

fn find(py: Python<'_>) -> PyResult<Place> {
    let get_frame = GET_FRAME.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("sys")?.getattr("_getframe")?.unbind())
    })?;
    // Who calls this is a function of the package.
    let mut frame = get_frame.bind(py).call1((1,))?;
    // Nothing of Python's runs while the places are locked: it might come here again.
    while !frame.is_none() {
        let code = frame.getattr(intern!(py, "f_code"))?;
        let id = code.as_ptr() as usize;
        if !lock(&PLACES).own.contains(&id) {
            let at: i32 = frame.getattr(intern!(py, "f_lasti"))?.extract()?;
            let region = regions::current();
            if let Some(&place) = lock(&PLACES).of.get(&(id, at, region)) {
                return Ok(place);
            }
            let is_own = is_own(&frame)?;
            let mut places = lock(&PLACES);
            if !is_own {
                if places.all.len() >= MOST {
                    return Ok(Place::NONE);
                }
                let place = Place::new(places.all.len() as u32);
                places.all.push((code.unbind(), at, region));
                places.of.insert((id, at, region), place);
                return Ok(place);
            }
            if places.own.insert(id) {
                places.held.push(code.unbind());
            }
        }
        frame = frame.getattr(intern!(py, "f_back"))?;
    }
    Ok(Place::NONE)
}

/// Whether a function is this package's.
fn is_own(frame: &Bound<'_, PyAny>) -> PyResult<bool> {
    let globals = frame.getattr(intern!(frame.py(), "f_globals"))?;
    let Ok(name) = globals.get_item("__name__") else {
        return Ok(false);
    };
    let name: String = name.extract()?;
    let package = name.split('.').next().unwrap_or_default();
    Ok(NOT_THE_USERS.contains(&package))
}

/// A place's function, and how far it has come.
fn noted(py: Python<'_>, place: Place) -> Option<(Bound<'_, PyAny>, i32)> {
    let places = lock(&PLACES);
    let (code, at, _) = places.all.get(place.number()? as usize)?;
    Some((code.bind(py).clone(), *at))
}

/// A line, from 1, and from which byte of it to which, as far as Python knows.
struct Position {
    path: String,
    line: u32,
    bytes: Option<(usize, usize)>,
}

fn position(py: Python<'_>, place: Place) -> Option<Position> {
    let (code, at) = noted(py, place)?;
    let path = code.getattr("co_filename").ok()?.extract().ok()?;
    if let Ok(positions) = code.call_method0("co_positions") {
        type Of = (Option<u32>, Option<u32>, Option<usize>, Option<usize>);
        let of = positions.try_iter().ok()?.nth(at as usize / 2)?.ok()?;
        let (line, last, from, to): Of = of.extract().ok()?;
        let line = line?;
        let bytes = from.zip(to);
        // Of what goes over several lines the first is shown, to its end.
        let bytes =
            bytes.map(|(from, to)| (from, if last == Some(line) { to } else { usize::MAX }));
        return Some(Position { path, line, bytes });
    }
    // Before Python 3.11.
    let mut found = None;
    for of in code.call_method0("co_lines").ok()?.try_iter().ok()? {
        let (from, to, line): (i32, i32, Option<u32>) = of.ok()?.extract().ok()?;
        if (from..to).contains(&at) {
            found = line;
        }
    }
    Some(Position {
        path,
        line: found?,
        bytes: None,
    })
}

/// `file:line`.
pub(super) fn named(py: Python<'_>, place: Place) -> Option<String> {
    let Position { path, line, .. } = position(py, place)?;
    Some(format!("{path}:{line}"))
}

/// What a profiler calls a kernel that computes what was written at a place: its region, file and line.
pub(super) fn label_of(place: Place) -> String {
    let line = Python::attach(|py| {
        let Position { path, line, .. } = position(py, place)?;
        let file = path.rsplit(['/', '\\']).next().unwrap_or(&path);
        Some(format!("{file}:{line}"))
    });
    let line = line.unwrap_or_else(|| "tensors".to_owned());
    regions::labelled(region(place), &line)
}

/// The region in which a place is.
pub(super) fn region(place: Place) -> Region {
    let places = lock(&PLACES);
    let number = place.number().map(|n| n as usize);
    let known = number.and_then(|n| places.all.get(n));
    known.map_or(Region::NONE, |(_, _, region)| *region)
}

/// Puts file, line and what stands there below a message, as kernels do.
pub(super) fn show(py: Python<'_>, out: &mut String, place: Place) {
    let Some(Position { path, line, bytes }) = position(py, place) else {
        return;
    };
    let text = py
        .import("linecache")
        .and_then(|module| module.call_method1("getline", (&path, line)))
        .and_then(|text| text.extract::<String>())
        .unwrap_or_default();
    let text = text.trim_end();
    if text.is_empty() {
        *out += &format!("\n  --> {path}:{line}");
        return;
    }
    let whole = (text.len() - text.trim_start().len(), text.len());
    let (from, to) = bytes
        .map(|(from, to)| (from, to.min(text.len())))
        .filter(|&(from, to)| from < to && text.is_char_boundary(from))
        .unwrap_or(whole);
    let mut sources = Sources::new();
    let source = sources.push(SourceFile {
        path,
        first_line: line,
        indent: 0,
        text: text.to_owned(),
    });
    let mut spans = SpanTable::default();
    let span = spans.intern(SpanData {
        source,
        start: from as u32,
        end: to as u32,
        inlined_at: aerogel_base::Span::NONE,
    });
    render_place(out, span, None, &spans, &sources);
}
