//! Arrays whose elements do not lie in row-major order without gaps, of which kernels get copies that do.
//!
//! What a kernel writes into a copy is in the user's array only afterwards. So where two arguments share
//! memory and one of them is a copy, the kernel would see old values, and copying back would undo what it
//! wrote through the other: the same array given twice is copied once, and all else is refused.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::argument::Packed;
use super::numpy_arrays::{ForeignArray, addresses};

/// An array of the user's and its copy.
pub(crate) struct Copied {
    array: ForeignArray,
    copy: Py<PyAny>,
}

impl Copied {
    /// Copies an array.
    pub(crate) fn new<'py>(
        py: Python<'py>,
        array: ForeignArray,
    ) -> PyResult<(Bound<'py, PyAny>, Self)> {
        let keywords = PyDict::new(py);
        keywords.set_item("order", "C")?;
        keywords.set_item("copy", true)?;
        let numpy = py.import("numpy")?;
        let copy = numpy.call_method("array", (array.object(),), Some(&keywords))?;
        let original = Self {
            array,
            copy: copy.clone().unbind(),
        };
        Ok((copy, original))
    }

    /// The user's array.
    pub(crate) fn original(&self) -> &ForeignArray {
        &self.array
    }

    pub(crate) fn writeable(&self) -> bool {
        self.array.writeable
    }

    /// Whether several of the array's elements may lie at one place, which a copy has apart.
    pub(crate) fn may_repeat(&self) -> bool {
        self.array.may_repeat()
    }

    pub(crate) fn copy_back(&self, py: Python<'_>) -> PyResult<()> {
        let numpy = py.import("numpy")?;
        numpy.call_method1("copyto", (self.array.object(), &self.copy))?;
        Ok(())
    }
}

/// How many steps may be spent on finding out whether two arrays share memory, which is hard for some.
const MAX_WORK: u32 = 100_000;

/// An argument among the others.
struct Seen<'p> {
    name: &'p str,
    range: Range<usize>,
    copied: Option<&'p Copied>,
    /// The user's array; none for a `ti.ndarray`.
    object: Option<&'p Py<PyAny>>,
}

impl Seen<'_> {
    fn shares_memory(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        let (x, y) = (&self.range, &other.range);
        if x.start.max(y.start) >= x.end.min(y.end) {
            return Ok(false);
        }
        let (Some(x), Some(y)) = (self.object, other.object) else {
            return Ok(true);
        };
        let keywords = PyDict::new(py);
        keywords.set_item("max_work", MAX_WORK)?;
        let numpy = py.import("numpy")?;
        match numpy.call_method("shares_memory", (x, y), Some(&keywords)) {
            Ok(answer) => answer.extract(),
            // Too hard to find out.
            Err(_) => Ok(true),
        }
    }
}

/// For each of the arrays among the arguments which one's memory the kernel gets: an earlier one's if
/// that is a copy of the same array. Nothing if none is a copy: each gets its own.
///
/// # Errors
/// The names of two that a kernel must not get together.
pub(crate) fn sources<'p>(
    py: Python<'_>,
    packed: impl Iterator<Item = &'p Packed> + Clone,
    is_written: impl Fn(usize) -> bool,
) -> PyResult<Result<Vec<usize>, [&'p str; 2]>> {
    let is_copy = |packed: &Packed| {
        matches!(
            packed,
            Packed::Array {
                copied: Some(_),
                ..
            }
        )
    };
    if !packed.clone().any(is_copy) {
        return Ok(Ok(Vec::new()));
    }
    let mut seen: Vec<Seen<'_>> = Vec::new();
    let mut sources = Vec::new();
    for packed in packed {
        let Packed::Array {
            name,
            array,
            copied,
            ..
        } = packed
        else {
            continue;
        };
        let copied = copied.as_deref();
        let this = Seen {
            name,
            range: match copied {
                Some(copied) => copied.array.addresses(),
                None => addresses(array.buffer()?),
            },
            copied,
            object: match copied {
                Some(copied) => Some(copied.array.object()),
                None => array.object(),
            },
        };
        let at = seen.len();
        let mut source = at;
        for (k, other) in seen.iter().enumerate() {
            if this.copied.is_none() && other.copied.is_none() {
                continue;
            }
            match (this.copied, other.copied) {
                (Some(x), Some(y)) if x.array.is_same(&y.array) => source = source.min(k),
                _ if !is_written(at) && !is_written(k) => {}
                _ if this.shares_memory(py, other)? => return Ok(Err([other.name, name])),
                _ => {}
            }
        }
        sources.push(source);
        seen.push(this);
    }
    Ok(Ok(sources))
}
