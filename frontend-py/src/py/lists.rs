//! Python's lists, as the frontend knows them.
//!
//! A list that kernels choose from, `fields[j]`, is looked at wherever its name stands. It may change in between,
//! by Python code that the kernel calls while it is compiled. So the result is cached with the items it was
//! computed for, and reused while they are the same objects, which need no check while no such code has run.

use std::cell::Cell;
use std::rc::Rc;

use aerogel_base::hash::LookupMap;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::host::Known;

/// The lists that a lowering has met, by their addresses. A reference keeps each list alive, so its address stays unique.
#[derive(Default)]
pub(crate) struct Lists<'py>(LookupMap<usize, Seen<'py>>);

struct Seen<'py> {
    /// The count of calls into Python when the items were last compared.
    at: Cell<u64>,
    _list: Bound<'py, PyList>,
    items: Vec<Bound<'py, PyAny>>,
    known: Rc<[Known]>,
}

impl<'py> Lists<'py> {
    /// The cached result for a list, if its items are still the same; `now` counts calls into Python.
    pub(crate) fn find(&self, list: &Bound<'py, PyList>, now: u64) -> Option<Known> {
        let seen = self.0.get(&(list.as_ptr() as usize))?;
        let same = || {
            seen.items.len() == list.len()
                && seen.items.iter().zip(list).all(|(old, new)| old.is(&new))
        };
        (seen.at.get() == now || same()).then(|| {
            seen.at.set(now);
            Known::List(seen.known.clone())
        })
    }

    /// Keeps what was found, unless an item may itself become another.
    pub(crate) fn keep(&mut self, list: &Bound<'py, PyList>, known: &Rc<[Known]>, now: u64) {
        if known.iter().all(is_fixed) {
            let seen = Seen {
                at: Cell::new(now),
                _list: list.clone(),
                items: list.iter().collect(),
                known: known.clone(),
            };
            self.0.insert(list.as_ptr() as usize, seen);
        }
    }
}

/// Whether an object always means the same to the frontend.
fn is_fixed(known: &Known) -> bool {
    match known {
        Known::None
        | Known::Bool(_)
        | Known::Int(_)
        | Known::Float(_)
        | Known::Str(_)
        | Known::DType(_)
        | Known::TensorType { .. }
        | Known::Field(_)
        | Known::SNode(_)
        | Known::Elements(_)
        | Known::Relation(_)
        | Known::Kernel(_)
        | Known::Builtin(_)
        | Known::Object(_)
        | Known::Traced(_) => true,
        Known::Tuple(_)
        | Known::List(_)
        | Known::Slice(_)
        | Known::Tensor(_)
        | Known::StructType(_)
        | Known::Struct(_)
        | Known::StructField(_)
        | Known::Func(_) => false,
    }
}
