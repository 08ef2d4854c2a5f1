//! Keys with an item for each axis of a tensor: `...` is whole axes, masks are the indices where they are true.

use std::sync::{Arc, Mutex};

use aerogel_tensor::record::trace::{Naming, Trace, Value};
use aerogel_tensor::record::{Item, Key, KnownPart, Mode};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::super::arguments::handles;
use super::super::native::{Extent, Home, NativeTensor};
use super::super::recorded::value_in;
use super::{Keys, Named, Written, expect_inside, no_index};
use crate::py::error;

impl<'py> Keys<'py> {
    /// The indices as they stand.
    pub(super) fn as_it_is(&self) -> Named {
        let items = self.items.iter().filter_map(|item| match *item {
            Written::Plain(item) => Some(item),
            Written::Indices { at, is_array, .. } => Some(Item::Places(at, is_array)),
            _ => None,
        });
        Key {
            items: items.collect(),
            together: true,
        }
    }

    /// Whether computed indices and numbers stand side by side, as NumPy has it: even `...` for no axis parts them.
    fn is_together(&self) -> bool {
        let first = self.items.iter().position(|item| !item.is_apart());
        let last = self.items.iter().rposition(|item| !item.is_apart());
        match first.zip(last) {
            Some((first, last)) => !self.items[first..=last].iter().any(Written::is_apart),
            None => true,
        }
    }

    /// An item for each axis of a tensor, and those for new ones; masks are the indices where they are true.
    pub(super) fn expanded(
        &mut self,
        py: Python<'py>,
        sizes: &[Extent],
        mode: Mode,
    ) -> PyResult<Named> {
        let together = self.is_together();
        let mut used = 0;
        let mut dots = None;
        let mut n_dots = 0;
        for (k, item) in self.items.iter().enumerate() {
            match item {
                Written::Dots => (dots, n_dots) = (Some(k), n_dots + 1),
                Written::Plain(Item::New) => {}
                Written::Mask { rank, .. } => used += rank,
                _ => used += 1,
            }
        }
        let Some(rest) = sizes.len().checked_sub(used) else {
            let rank = sizes.len();
            return Err(PyIndexError::new_err(format!(
                "{used} indices for a tensor with {rank} axes"
            )));
        };
        if n_dots > 1 {
            return Err(PyIndexError::new_err("an index has one `...` at most"));
        }
        let mut items = Vec::new();
        let mut axis = 0;
        for item in std::mem::take(&mut self.items) {
            match item {
                Written::Dots => {
                    items.extend(std::iter::repeat_n(Item::WHOLE, rest));
                    axis += rest;
                }
                Written::Plain(item) => {
                    axis += usize::from(!matches!(item, Item::New));
                    items.push(item);
                }
                Written::Indices { at, ends, is_array } => {
                    if mode == Mode::Error {
                        expect_inside(ends, sizes.get(axis), axis)?;
                    }
                    let ty = self.tensors[at].get().described().0;
                    if ty.is_float() {
                        return Err(no_index(ty.name()));
                    }
                    items.push(Item::Places(at, is_array));
                    axis += 1;
                }
                Written::Mask { at: None, .. } => return Err(no_index("bool")),
                Written::Mask {
                    at: Some(at), rank, ..
                } => {
                    for index in trues(&self.tensors[at], &sizes[axis..axis + rank])? {
                        items.push(Item::Places(self.tensors.len(), false));
                        self.tensors.push(Bound::new(py, index)?);
                    }
                    axis += rank;
                }
            }
        }
        if dots.is_none() {
            items.extend(std::iter::repeat_n(Item::WHOLE, rest));
        }
        Ok(Key { items, together })
    }

    pub(super) fn handles(&self) -> Vec<&NativeTensor> {
        handles(&self.tensors)
    }

    pub(super) fn values(&self, trace: &Arc<Mutex<Trace>>) -> PyResult<Vec<Value>> {
        self.handles().iter().map(|t| value_in(trace, t)).collect()
    }

    /// What a program stores to where the key names elements: its items as values.
    pub(in crate::py::tensor) fn of_store(
        mut self,
        py: Python<'py>,
        trace: &Arc<Mutex<Trace>>,
        target: &NativeTensor,
        mode: Mode,
        is_c: bool,
    ) -> PyResult<(Key<Value>, Naming)> {
        if let Some((_, _, is_array)) = self.masks().next() {
            return Err(PyIndexError::new_err(match is_array {
                true => {
                    "an index is an integer, not `bool`: a mask is a tensor, as in `x[asarray(mask)] = 0`"
                }
                false => {
                    "a mask is the only index of a store, as in `x[mask] = 0`; choose by `where` elsewhere"
                }
            }));
        }
        let sizes = target.sizes()?;
        // In words of C there are no rows at computed indices.
        let has_rows = !(is_c && self.has_tensors()) && self.items.len() < sizes.len();
        let (key, naming) = match has_rows || self.has_parts() {
            true => (self.expanded(py, &sizes, mode)?, Naming::Parts),
            false => {
                self.expect_inside(&sizes, mode)?;
                (self.as_it_is(), Naming::Indices { from_end: !is_c })
            }
        };
        let values = self.values(trace)?;
        Ok((key.map(|&k| values[k]), naming))
    }
}

/// Refuses a mask of another shape. One without elements names none; its other axes have to agree.
pub(super) fn expect_mask(py: Python<'_>, mask: &NativeTensor, shape: &[Extent]) -> PyResult<()> {
    let own = mask.sizes()?;
    let fits = |(n, m): (&Extent, &Extent)| match (n, m) {
        (Extent::Number(n), Extent::Number(m)) => *n == 0 || n == m,
        _ => true,
    };
    if own.len() == shape.len() && own.iter().zip(shape).all(fits) {
        return Ok(());
    }
    let [own, shape] = [&own[..], shape].map(|s| PyTuple::new(py, s.to_vec()));
    Err(PyIndexError::new_err(format!(
        "a mask of shape {} for axes of shape {}",
        own?, shape?
    )))
}

/// The indices where a mask is true, axis by axis: known when they have been computed.
fn trues(mask: &Bound<'_, NativeTensor>, shape: &[Extent]) -> PyResult<Vec<NativeTensor>> {
    let (py, mask) = (mask.py(), mask.get());
    if matches!(mask.home, Home::Program(..)) {
        return Err(PyValueError::new_err(
            "`x[mask]` cannot be part of a program: its shape would depend on values; choose by `where`",
        ));
    }
    expect_mask(py, mask, shape)?;
    let mut made = mask.nonzero()?.into_iter();
    let count = made.next().expect("the count is first").computed(py)?;
    let n = count.buffer.read_scalar(count.ty, 0);
    let n = n.map_err(error::memory)?.as_i128() as u64;
    made.map(|index| index.with_parts(vec![KnownPart::span(0, n)]))
        .collect()
}
