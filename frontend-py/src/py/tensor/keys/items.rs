//! Reading the elements that a key selects, and replacing them.

use std::sync::{Arc, Mutex};

use aerogel_tensor::record::trace::Trace;
use aerogel_tensor::record::{Item, KnownPart, Mode, Recording};
use aerogel_tensor::{Accum, Buffer};
use pyo3::prelude::*;

use super::super::native::{Extent, Home, NativeTensor, lock, outside};
use super::super::raised::raised;
use super::super::recorded::{step_of, value_in};
use super::expanded::expect_mask;
use super::{Keys, Named};
use crate::py::error;

/// The smallest and the largest of indices whose numbers are there.
fn ends(indices: &NativeTensor) -> PyResult<Option<(i128, i128)>> {
    let Some(value) = indices.value_there() else {
        return Ok(None);
    };
    let (size, n) = (value.ty.bytes() as usize, value.shape.iter().product());
    let mut ends = None;
    for k in 0..n {
        let number = value.buffer.read_scalar(value.ty, k * size);
        let number = number.map_err(error::memory)?.as_i128();
        let (low, high) = ends.unwrap_or((number, number));
        ends = Some((number.min(low), number.max(high)));
    }
    Ok(ends)
}

/// Where the new axes of a key without computed indices are.
fn new_axes(key: &Named) -> Vec<i64> {
    let axes = key.items.iter().filter(|i| !matches!(i, Item::Index(_)));
    let new = axes.enumerate().filter(|(_, i)| matches!(i, Item::New));
    new.map(|(at, _)| at as i64).collect()
}

/// The slices of axes of known sizes; nothing if sizes are known only at run time.
fn known(key: &Named, sizes: &[Extent]) -> PyResult<Option<Vec<KnownPart>>> {
    let items = key.items.iter().filter(|i| !matches!(i, Item::New));
    let mut out = Vec::new();
    for (axis, (item, size)) in items.zip(sizes).enumerate() {
        let &Extent::Number(n) = size else {
            return Ok(None);
        };
        match item.known(axis, n).map_err(raised)? {
            Some(part) => out.push(part),
            None => return Ok(None),
        }
    }
    Ok(Some(out))
}

impl NativeTensor {
    /// The elements that a key selects; nothing if it contains a boolean. With C semantics (`is_c`) no index counts from the
    /// end.
    pub(in crate::py::tensor) fn item_of(
        &self,
        key: &Bound<'_, PyAny>,
        mode: &str,
        is_c: bool,
    ) -> PyResult<Option<Self>> {
        let (py, mode) = (key.py(), outside(mode)?);
        let mut keys = Keys::of(key, self)?;
        if keys.has_truths() {
            return Ok(None);
        }
        if let Home::Program(trace, _) = &self.home {
            if keys.is_gather(is_c) {
                let mode = match mode {
                    Mode::Error if is_c => Mode::Clamp,
                    mode => mode,
                };
                return self.gathered(trace, &keys, mode, is_c).map(Some);
            }
            self.expect_rank()?;
            self.expect_shape()?;
        }
        let sizes = self.sizes()?;
        let mut key = keys.expanded(py, &sizes, mode)?;
        if let Home::Program(trace, _) = &self.home
            && lock(trace).state.is_in_block()
        {
            // A block may not be entered, so that the index is looked at in it.
            let axes = key.items.iter_mut().filter(|i| !matches!(i, Item::New));
            for (item, size) in axes.zip(&sizes) {
                if let (&mut Item::Index(i), Extent::Of(_)) = (&mut *item, size) {
                    *item = Item::Inside(i);
                }
            }
        }
        if !key.is_computed()
            && let Some(parts) = known(&key, &sizes)?
            && let Some(out) = self.read_at_once(&parts)?
        {
            return match &new_axes(&key)[..] {
                [] => Ok(Some(out)),
                new => out.unsqueeze(new.to_vec()).map(Some),
            };
        }
        let n = keys.tensors.len();
        let (is_computed, others) = (key.is_computed(), keys.handles());
        let operation = move |r: &mut Recording, x, o: &[Buffer]| {
            let (own, mask) = o.split_at(n);
            r.item(x, &key.map(|&k| own[k]), mode, mask.first().copied())
        };
        match is_computed {
            true => self.masked_op(&others, operation),
            false => self.made_of(&others, operation),
        }
        .map(Some)
    }

    /// In a program: the elements at computed indices.
    fn gathered(
        &self,
        trace: &Arc<Mutex<Trace>>,
        keys: &Keys<'_>,
        mode: Mode,
        is_c: bool,
    ) -> PyResult<Self> {
        if mode == Mode::Error {
            keys.expect_inside(&self.sizes()?, mode)?;
        }
        let (x, values) = (value_in(trace, self)?, keys.values(trace)?);
        let key = keys.as_it_is().map(|&k| values[k]);
        let of = [&[x], &values[..]].concat();
        let value = step_of(trace, move |s| {
            let buffer = s.gather(x, &key, mode, !is_c)?;
            let made = s.value(buffer);
            s.resized_with(made, &of);
            Ok(made)
        });
        let home = Home::Program(trace.clone(), value.map_err(raised)?);
        Ok(Self { home })
    }

    /// Parts of the first axes.
    pub(super) fn with_parts(&self, parts: Vec<KnownPart>) -> PyResult<Self> {
        if let Some(out) = self.read_at_once(&parts)? {
            return Ok(out);
        }
        self.point_op("x[key]", &[], move |r, x, _| {
            let parts: Vec<_> = parts.iter().map(|&p| r.part(p)).collect();
            r.slice(x, &parts)
        })
    }

    /// Outside of programs: the tensor with values in place of the elements that a key names, or accumulated into them.
    pub(in crate::py::tensor) fn with_item_of(
        &self,
        key: &Bound<'_, PyAny>,
        values: &Self,
        mode: &str,
        accum: Option<Accum>,
    ) -> PyResult<Self> {
        let (py, mode) = (key.py(), outside(mode)?);
        let mut keys = Keys::of(key, self)?;
        let sizes = self.sizes()?;
        if let Some(mask) = keys.mask()
            && values.described().1 == 0
        {
            return self.with_masked(py, mask.get(), values, accum, &sizes);
        }
        let mut key = keys.expanded(py, &sizes, mode)?;
        if !key.is_computed() {
            let parts = known(&key, &sizes)?.expect("sizes are constants");
            let values = fitting(&mut key, values)?;
            if accum.is_none()
                && let Some(out) = self.stored_at_once(py, &parts, &values)?
            {
                return Ok(out);
            }
            let out = self.op(&[&values], move |r, x, o| {
                let parts: Vec<_> = parts.iter().map(|&p| r.part(p)).collect();
                r.with_part(x, &parts, o[0], accum)
            })?;
            self.note_store(&out);
            return Ok(out);
        }
        // What is known to be outside fails where it is written, and nothing is changed.
        let fails = mode == Mode::Error && is_outside(&key, &keys.tensors, &sizes)?;
        self.run_if_full(py)?;
        let mut others = keys.handles();
        others.push(values);
        let out = self.op(&others, move |r, x, o| {
            let (values, index) = o.split_last().expect("the values are last");
            r.with_item(x, &key.map(|&k| index[k]), *values, accum, mode)
        })?;
        if fails && !out.is_one_of_many() {
            out.computed(py)?;
        }
        self.note_store(&out);
        Ok(out)
    }

    /// One number where a mask is true, in place of the elements or accumulated into them.
    fn with_masked(
        &self,
        py: Python<'_>,
        mask: &Self,
        value: &Self,
        accum: Option<Accum>,
        sizes: &[Extent],
    ) -> PyResult<Self> {
        let rank = mask.described().1;
        expect_mask(py, mask, &sizes[..rank.min(sizes.len())])?;
        let is_none = |n: &Extent| matches!(n, Extent::Number(0));
        if mask.sizes()?.iter().any(is_none) {
            return Ok(self.again());
        }
        let behind: Vec<i64> = (rank..sizes.len()).map(|axis| axis as i64).collect();
        let mask = mask.unsqueeze(behind)?;
        match accum.map(|accum| accum.of(self.described().0)) {
            Some(accum) => mask.select(&self.binary(accum.name(), value)?, self),
            None => mask.select(value, self),
        }
    }
}

/// Whether an index whose numbers are there is outside; others are looked at when they have been computed.
fn is_outside(
    key: &Named,
    tensors: &[Bound<'_, NativeTensor>],
    sizes: &[Extent],
) -> PyResult<bool> {
    let axes = key.items.iter().filter(|i| !matches!(i, Item::New));
    for (item, size) in axes.zip(sizes) {
        if let (&Item::Places(at, _), &Extent::Number(n)) = (item, size)
            && let Some((low, high)) = ends(tensors[at].get())?
            && (low < -i128::from(n) || high >= i128::from(n))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Values without the axes of size 1 that a key adds by `None`, and without leading axes that the slice does not have.
fn fitting(key: &mut Named, values: &NativeTensor) -> PyResult<NativeTensor> {
    let is_kept = |item: &Item<usize>| !matches!(item, Item::Index(_));
    let (new, whole) = (
        new_axes(key),
        key.items.iter().filter(|i| is_kept(i)).count(),
    );
    let own = values.described().1 as i64;
    let new = new.into_iter().map(|at| at - whole as i64);
    let new: Vec<i64> = new.filter(|&at| own >= -at).collect();
    let mut out = match new[..] {
        [] => values.again(),
        _ => values.squeeze(new)?,
    };
    key.items.retain(|item| !matches!(item, Item::New));
    let rank = key.items.iter().filter(|i| is_kept(i)).count();
    while out.described().1 > rank && matches!(out.sizes()?[0], Extent::Number(1)) {
        out = out.squeeze(vec![0])?;
    }
    Ok(out)
}
