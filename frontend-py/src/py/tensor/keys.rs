//! Keys of `x[key]` and `x[key] = value`, as Python writes them.

use std::sync::{Arc, Mutex};

use aerogel_base::ScalarType;
use aerogel_tensor::record::trace::{Trace, Value};
use aerogel_tensor::record::{Bound as End, Item, Key, KnownPart, Mode};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};

use super::recorded::{step_of, value_in};
use super::{CLASS, Extent, Home, NativeTensor, lock, outside, raised};
use crate::py::error;

/// One item of a key. Tensors are named by their number among those of the key.
enum Written {
    Dots,
    /// What needs no looking at the tensor.
    Plain(Item<usize>),
    /// Indices of a list or an array, with the smallest and the largest if they are known, or of a tensor.
    Indices {
        at: usize,
        ends: Option<(i128, i128)>,
        is_array: bool,
    },
    /// Truth values along so many axes; one of a tensor, or of Python, without axes takes all or nothing.
    Mask {
        at: Option<usize>,
        rank: usize,
        is_array: bool,
    },
}

/// A key, and the tensors in it.
pub(super) struct Keys<'py> {
    items: Vec<Written>,
    tensors: Vec<Bound<'py, NativeTensor>>,
    is_tuple: bool,
}

/// A key of a tensor, item by item.
type Named = Key<usize>;

fn no_index(what: &str) -> PyErr {
    PyIndexError::new_err(format!("an index is an integer, not `{what}`"))
}

fn index_error(i: i128, axis: usize, n: u64) -> PyErr {
    PyIndexError::new_err(format!(
        "index {i} is outside axis {axis} with {n} elements"
    ))
}

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

impl<'py> Keys<'py> {
    /// Reads a key of a tensor.
    pub(super) fn of(key: &Bound<'py, PyAny>, x: &NativeTensor) -> PyResult<Self> {
        let mut out = Self {
            items: Vec::new(),
            tensors: Vec::new(),
            is_tuple: false,
        };
        match key.cast::<PyTuple>() {
            Ok(keys) => {
                out.is_tuple = true;
                for key in keys {
                    out.read(&key, x)?;
                }
            }
            Err(_) => out.read(key, x)?,
        }
        Ok(out)
    }

    fn read(&mut self, key: &Bound<'py, PyAny>, x: &NativeTensor) -> PyResult<()> {
        let py = key.py();
        let item = if key.cast_exact::<PyInt>().is_ok() {
            Written::Plain(Item::Index(whole(key)?))
        } else if key.is_none() {
            Written::Plain(Item::New)
        } else if let Ok(slice) = key.cast::<PySlice>() {
            Written::Plain(self.range(slice, x)?)
        } else if key.is_instance_of::<PyEllipsis>() {
            Written::Dots
        } else if key.is_instance_of::<PyBool>() {
            Written::Mask {
                at: None,
                rank: 0,
                is_array: false,
            }
        } else if let Some(tensor) = tensor_of(key)? {
            let is_here =
                matches!(tensor.get().home, Home::Lazy(_)) == matches!(x.home, Home::Lazy(_));
            match is_here {
                true => self.tensor(tensor, None, false)?,
                false => self.tensor(converted(key)?.0, None, false)?,
            }
        } else if key.is_instance_of::<PyList>() || key.hasattr(intern!(py, "__array__"))? {
            let (tensor, ends) = converted(key)?;
            self.tensor(tensor, ends, true)?
        } else if key.hasattr(intern!(py, "__index__"))? {
            Written::Plain(Item::Index(whole(key)?))
        } else {
            return Err(PyIndexError::new_err(format!(
                "an index is an integer, a part, or a tensor of integers, not {}",
                key.get_type().name()?
            )));
        };
        self.items.push(item);
        Ok(())
    }

    fn tensor(
        &mut self,
        tensor: Bound<'py, NativeTensor>,
        ends: Option<(i128, i128)>,
        is_array: bool,
    ) -> PyResult<Written> {
        let at = self.tensors.len();
        let (ty, rank) = tensor.get().described();
        if is_array && ty.is_float() {
            return Err(no_index(ty.name()));
        }
        self.tensors.push(tensor);
        Ok(match ty {
            ScalarType::U1 => Written::Mask {
                at: Some(at),
                rank,
                is_array,
            },
            _ => Written::Indices { at, ends, is_array },
        })
    }

    fn range(&mut self, slice: &Bound<'py, PySlice>, x: &NativeTensor) -> PyResult<Item<usize>> {
        let py = slice.py();
        let is_traced = matches!(x.home, Home::Program(..));
        let mut bound = |name| -> PyResult<Option<End<usize>>> {
            let bound = slice.getattr(name)?;
            if bound.is_none() {
                return Ok(None);
            }
            if is_traced && let Some(tensor) = tensor_of(&bound)? {
                self.tensors.push(tensor);
                return Ok(Some(End::Of(self.tensors.len() - 1)));
            }
            Ok(Some(End::Known(bound_of(&bound)?)))
        };
        let (start, stop) = (bound(intern!(py, "start"))?, bound(intern!(py, "stop"))?);
        let step = slice.getattr(intern!(py, "step"))?;
        if is_traced && tensor_of(&step)?.is_some() {
            return Err(PyTypeError::new_err(
                "the step of a part is a number that is known when the program is traced",
            ));
        }
        let step = if step.is_none() { 1 } else { bound_of(&step)? };
        if step == 0 {
            return Err(PyValueError::new_err("slice step cannot be zero"));
        }
        Ok(Item::Range(start, stop, step))
    }

    fn masks(&self) -> impl Iterator<Item = (Option<usize>, usize, bool)> {
        self.items.iter().filter_map(|item| match *item {
            Written::Mask { at, rank, is_array } => Some((at, rank, is_array)),
            _ => None,
        })
    }

    /// Whether it takes all or nothing by a truth value.
    pub(super) fn has_truths(&self) -> bool {
        self.masks().any(|(_, rank, _)| rank == 0)
    }

    /// The mask that it is alone.
    fn mask(&self) -> Option<&Bound<'py, NativeTensor>> {
        match self.items[..] {
            [Written::Mask { at: Some(at), .. }] if !self.is_tuple => Some(&self.tensors[at]),
            _ => None,
        }
    }

    fn has_parts(&self) -> bool {
        let mut items = self.items.iter();
        items.any(|item| {
            matches!(
                item,
                Written::Dots | Written::Plain(Item::New | Item::Range(..))
            )
        })
    }

    fn has_tensors(&self) -> bool {
        let is_tensor = |item: &Written| {
            matches!(
                item,
                Written::Indices {
                    is_array: false,
                    ..
                }
            )
        };
        self.items.iter().any(is_tensor)
    }

    /// In a program: whether it is of computed indices alone. Where indices outside are the nearest ones, as in C, known
    /// ones are as others.
    fn is_gather(&self, is_c: bool) -> bool {
        let is_index = |item: &Written| matches!(item, Written::Plain(Item::Index(_)));
        !self.has_parts()
            && self.masks().next().is_none()
            && (self.has_tensors() || is_c && self.items.iter().all(is_index))
    }

    /// Refuses indices of lists and arrays that are known to be outside.
    fn expect_inside(&self, sizes: &[Extent]) -> PyResult<()> {
        let mut axis = 0;
        for item in &self.items {
            match item {
                Written::Dots => return Ok(()),
                Written::Plain(Item::New) => {}
                Written::Mask { rank, .. } => axis += rank,
                Written::Indices {
                    ends: Some((low, high)),
                    ..
                } => {
                    if let Some(&Extent::Number(n)) = sizes.get(axis) {
                        let size = i128::from(n);
                        let mut both = [*low, *high].into_iter();
                        if let Some(i) = both.find(|i| !(-size..size).contains(i)) {
                            return Err(index_error(i, axis, n));
                        }
                    }
                    axis += 1;
                }
                _ => axis += 1,
            }
        }
        Ok(())
    }

    /// The indices as they stand.
    fn as_it_is(&self) -> Named {
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
        let is_apart = |item: &Written| {
            matches!(
                item,
                Written::Dots | Written::Plain(Item::New | Item::Range(..))
            )
        };
        let first = self.items.iter().position(|item| !is_apart(item));
        let last = self.items.iter().rposition(|item| !is_apart(item));
        match first.zip(last) {
            Some((first, last)) => !self.items[first..=last].iter().any(is_apart),
            None => true,
        }
    }

    /// An item for each axis of a tensor, and those for new ones; masks are the indices where they are true.
    fn expanded(&mut self, py: Python<'py>, sizes: &[Extent]) -> PyResult<Named> {
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
                Written::Indices { at, is_array, .. } => {
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

    fn handles(&self) -> Vec<&NativeTensor> {
        super::arguments::handles(&self.tensors)
    }

    fn values(&self, trace: &Arc<Mutex<Trace>>) -> PyResult<Vec<Value>> {
        self.handles().iter().map(|t| value_in(trace, t)).collect()
    }

    /// What a program stores to where the key names elements: its items as values.
    pub(super) fn of_store(
        mut self,
        py: Python<'py>,
        trace: &Arc<Mutex<Trace>>,
        target: &NativeTensor,
        mode: Mode,
        is_c: bool,
    ) -> PyResult<Key<Value>> {
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
        if mode == Mode::Error {
            self.expect_inside(&sizes)?;
        }
        // In words of C there are no rows at computed indices.
        let has_rows = !(is_c && self.has_tensors()) && self.items.len() < sizes.len();
        let key = match has_rows || self.has_parts() {
            true => self.expanded(py, &sizes)?,
            false => self.as_it_is(),
        };
        let values = self.values(trace)?;
        Ok(key.map(|&k| values[k]))
    }
}

/// What a tensor of the package is made by, a number of the program among them.
fn tensor_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, NativeTensor>>> {
    let py = value.py();
    let Some(class) = CLASS.get(py) else {
        return Ok(None);
    };
    if !value.is_instance(class.bind(py))? {
        return Ok(None);
    }
    let native = value.getattr(intern!(py, "_native"))?;
    Ok(Some(native.cast_into()?))
}

/// A list, an array or a tensor from outside of the program as a tensor, and the smallest and the largest index in it.
#[expect(
    clippy::type_complexity,
    reason = "what one function of Python's gives"
)]
fn converted<'py>(
    key: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, NativeTensor>, Option<(i128, i128)>)> {
    let module = key.py().import("aerogel.tensor._items")?;
    module
        .call_method1(intern!(key.py(), "indices"), (key,))?
        .extract()
}

/// An index that is an integer.
fn whole(key: &Bound<'_, PyAny>) -> PyResult<i64> {
    let index = key.call_method0(intern!(key.py(), "__index__"))?;
    index
        .extract()
        .map_err(|_| PyIndexError::new_err(format!("index {index} is outside of every axis")))
}

/// Where a part begins or ends: what is beyond every axis is as far as that.
fn bound_of(bound: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = bound.py();
    if !bound.hasattr(intern!(py, "__index__"))? {
        return Err(PyTypeError::new_err(
            "slice indices must be integers or None or have an __index__ method",
        ));
    }
    let n = bound.call_method0(intern!(py, "__index__"))?;
    match n.extract() {
        Ok(n) => Ok(n),
        Err(_) if n.lt(0)? => Ok(i64::MIN),
        Err(_) => Ok(i64::MAX),
    }
}

/// Refuses a mask of another shape. One without elements names none; its other axes have to agree.
fn expect_mask(py: Python<'_>, mask: &NativeTensor, shape: &[Extent]) -> PyResult<()> {
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
            "`x[mask]` cannot be part of a program: how many elements it has is its shape; choose by `where`",
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

/// Where the new axes of a key without computed indices are.
fn new_axes(key: &Named) -> Vec<i64> {
    let axes = key.items.iter().filter(|i| !matches!(i, Item::Index(_)));
    let new = axes.enumerate().filter(|(_, i)| matches!(i, Item::New));
    new.map(|(at, _)| at as i64).collect()
}

/// The parts of axes of known extents; nothing if the run knows them.
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
    /// What a key names; nothing if it takes all or nothing by a truth value. In words of C (`is_c`) no index counts from the
    /// end.
    pub(super) fn item_of(
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
        if mode == Mode::Error {
            keys.expect_inside(&sizes)?;
        }
        let mut key = keys.expanded(py, &sizes)?;
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
        let operation =
            move |r: &mut aerogel_tensor::record::Recording, x, o: &[aerogel_tensor::Buffer]| {
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
            keys.expect_inside(&self.sizes()?)?;
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
    fn with_parts(&self, parts: Vec<KnownPart>) -> PyResult<Self> {
        if let Some(out) = self.read_at_once(&parts)? {
            return Ok(out);
        }
        self.point_op("x[key]", &[], move |r, x, _| {
            let parts: Vec<_> = parts.iter().map(|&p| r.part(p)).collect();
            r.slice(x, &parts)
        })
    }

    /// Outside of programs: the tensor with other values where a key names elements.
    pub(super) fn with_item_of(
        &self,
        key: &Bound<'_, PyAny>,
        values: &Self,
        mode: &str,
    ) -> PyResult<Self> {
        let (py, mode) = (key.py(), outside(mode)?);
        let mut keys = Keys::of(key, self)?;
        let sizes = self.sizes()?;
        if let Some(mask) = keys.mask()
            && values.described().1 == 0
        {
            return self.with_masked(py, mask.get(), values, &sizes);
        }
        if mode == Mode::Error {
            keys.expect_inside(&sizes)?;
        }
        let mut key = keys.expanded(py, &sizes)?;
        if !key.is_computed() {
            let values = fitting(&mut key, values)?;
            let parts = known(&key, &sizes)?.expect("extents are numbers");
            if let Some(out) = self.stored_at_once(py, &parts, &values)? {
                return Ok(out);
            }
            let out = self.op(&[&values], move |r, x, o| {
                let parts: Vec<_> = parts.iter().map(|&p| r.part(p)).collect();
                r.with_part(x, &parts, o[0])
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
            r.with_item(x, &key.map(|&k| index[k]), *values, mode)
        })?;
        if fails && !out.is_one_of_many() {
            out.computed(py)?;
        }
        self.note_store(&out);
        Ok(out)
    }

    /// One number where a mask is true.
    fn with_masked(
        &self,
        py: Python<'_>,
        mask: &Self,
        value: &Self,
        sizes: &[Extent],
    ) -> PyResult<Self> {
        let rank = mask.described().1;
        expect_mask(py, mask, &sizes[..rank.min(sizes.len())])?;
        let is_none = |n: &Extent| matches!(n, Extent::Number(0));
        if mask.sizes()?.iter().any(is_none) {
            return Ok(self.again());
        }
        let behind: Vec<i64> = (rank..sizes.len()).map(|axis| axis as i64).collect();
        mask.unsqueeze(behind)?.select(value, self)
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

/// Values without the axes of extent 1 that a key has by `None`, and without leading ones that the part does not have.
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
