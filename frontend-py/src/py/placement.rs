//! Where a field lies: from indices to bytes, and copies of whole fields.

use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::box_set::IndexBox;
use aerogel_runtime::tree::{ActiveCells, Elements, Visit};
use aerogel_runtime::{Buffer, MemoryError, TreeMemory};
use aerogel_snode::{MAX_AXES, NodeId, NodeKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::foreign::ForeignArray;
use super::snode::TreeStore;
use super::{buffer, error, program};

/// The indices in an array of shape (n, axes), copied: whoever checks them must see them unchanged.
pub(crate) fn coordinate_rows(array: &ForeignArray, n_axes: usize) -> PyResult<Vec<i32>> {
    if array.ty != Some(ScalarType::I32) || array.shape.len() != 2 || array.shape[1] != n_axes {
        return Err(PyValueError::new_err(format!(
            "the indices are an int32 array of shape (n, {n_axes})"
        )));
    }
    let buffer = array.contents()?;
    let mut bytes = vec![0; buffer.len()];
    buffer.read(0, &mut bytes).map_err(error::memory)?;
    let words = bytes.as_chunks::<4>().0.iter();
    Ok(words.map(|&word| i32::from_ne_bytes(word)).collect())
}

/// One part of all pieces, as the bytes of an array.
pub(crate) fn joined<'py>(
    py: Python<'py>,
    pieces: &[ActiveCells],
    part: impl Fn(&ActiveCells) -> &Vec<u8>,
) -> PyResult<Bound<'py, PyByteArray>> {
    let len = pieces.iter().map(|piece| part(piece).len()).sum();
    PyByteArray::new_with(py, len, |mut all| {
        for piece in pieces {
            let (here, rest) = all.split_at_mut(part(piece).len());
            here.copy_from_slice(part(piece));
            all = rest;
        }
        Ok(())
    })
}

/// Evenly spaced numbers: the address of the first, how many there are along each dimension, and how far apart.
pub(crate) struct Piece {
    pub(crate) base: usize,
    pub(crate) dims: Vec<(usize, usize)>,
}

impl Piece {
    pub(super) fn n_numbers(&self) -> usize {
        self.dims.iter().map(|&(extent, _)| extent).product()
    }

    /// The dimensions of a copy to a packed array, or from it.
    pub(super) fn copied(&self, item: usize, out: bool) -> Vec<buffer::Dim> {
        let mut stride = item;
        let mut dims = Vec::with_capacity(self.dims.len());
        for &(extent, here) in self.dims.iter().rev() {
            let (dst, src) = if out { (stride, here) } else { (here, stride) };
            dims.push(buffer::Dim { extent, dst, src });
            stride *= extent;
        }
        dims
    }
}

/// An index along each axis of a field; those beyond its axes are zero.
pub(crate) type Index = [i64; MAX_AXES];

/// The bytes from one index to the next along each axis of a row-major array of a box.
fn row_major(ranges: &[(u64, u64)], element: u64) -> Vec<u64> {
    let mut strides = vec![0; ranges.len()];
    let mut stride = element;
    for (axis, (lo, hi)) in ranges.iter().enumerate().rev() {
        strides[axis] = stride;
        // No array is so large that it does not fit.
        stride = stride.wrapping_mul(hi - lo);
    }
    strides
}

/// How an index becomes part of an address: `(index / divisor) % extent * stride`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digit {
    index: usize,
    divisor: u64,
    extent: u64,
    wraps: bool,
    stride: u64,
}

/// Where a field lies.
pub(crate) struct Placement {
    pub(crate) store: Arc<TreeStore>,
    /// One for each component, row by row.
    pub(crate) places: Vec<NodeId>,
    /// The first index of each axis; empty for zeros.
    pub(crate) offset: Vec<i32>,
    pub(crate) shape: Vec<u64>,
    /// Whether elements may be inactive; where each lies is then looked up in the tree.
    pub(crate) sparse: bool,
    /// Whether components are some bits of a word.
    pub(crate) quantised: bool,
    /// One list for all components where they are placed under alike nodes, else one for each.
    digits: Vec<Vec<Digit>>,
    /// The address of each component of the first element, if the field is not sparse.
    pub(crate) bases: Vec<u64>,
}

impl Placement {
    pub(crate) fn new(store: Arc<TreeStore>, places: Vec<NodeId>, offset: Vec<i32>) -> Self {
        let tree = &store.tree;
        let digits_of = |place: &NodeId| {
            let mut digits = Vec::new();
            for level in tree.path(*place).levels {
                let mut stride = tree[level.node].cell_size;
                for axis in level.axes.iter().rev() {
                    digits.push(Digit {
                        index: axis.index,
                        divisor: axis.divisor,
                        extent: axis.extent,
                        wraps: axis.wraps,
                        stride,
                    });
                    stride *= axis.extent;
                }
            }
            digits
        };
        let mut digits: Vec<_> = places.iter().map(digits_of).collect();
        if digits.windows(2).all(|pair| pair[0] == pair[1]) {
            digits.truncate(1);
        }
        let zero = vec![0; tree.shape(places[0]).len()];
        let sparse = places.iter().any(|&p| tree.is_below_sparse(p));
        let quantised = places
            .iter()
            .any(|&p| matches!(tree[p].kind, NodeKind::Bits(_)));
        let first = |&p: &NodeId| {
            if sparse {
                0
            } else {
                tree.byte_offset(p, &zero)
            }
        };
        let bases = places.iter().map(first).collect();
        Self {
            shape: tree.shape(places[0]),
            sparse,
            quantised,
            bases,
            digits,
            places,
            offset,
            store,
        }
    }

    /// The indices that a key means, without the field's offset.
    pub(crate) fn index(
        &self,
        py: Python<'_>,
        label: impl Fn() -> String,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Index> {
        let mut index = [0i64; MAX_AXES];
        let n = buffer::parse_index(key, &mut index)?;
        let n_axes = self.shape.len();
        // `x[0]` stands for the only element of a field without axes.
        if n != n_axes && !(n_axes == 0 && n == 1 && index[0] == 0) {
            return Err(error::exception(
                py,
                "AerogelIndexError",
                format!(
                    "{n} {} for {}, which has {n_axes} {}: slicing is for NumPy, `x.to_numpy()[0]` copies",
                    if n == 1 { "index" } else { "indices" },
                    label(),
                    if n_axes == 1 { "axis" } else { "axes" },
                ),
            ));
        }
        for (axis, &extent) in self.shape.iter().enumerate() {
            let first = self.offset.get(axis).copied().map_or(0, i64::from);
            let at = index[axis].checked_sub(first).filter(|&at| at >= 0);
            let Some(at) = at.filter(|&at| (at as u64) < extent) else {
                return Err(self.outside(py, label, &index[..n]));
            };
            index[axis] = at;
        }
        Ok(index)
    }

    /// The exception for indices outside the field.
    fn outside(&self, py: Python<'_>, label: impl Fn() -> String, index: &[i64]) -> PyErr {
        let ranges: Vec<String> = self
            .shape
            .iter()
            .enumerate()
            .map(|(k, &e)| {
                let lo = self.offset.get(k).copied().map_or(0, i64::from);
                match e {
                    0 => "none".into(),
                    _ => format!("{lo} to {}", lo + e as i64 - 1),
                }
            })
            .collect();
        let index = match index {
            [one] => one.to_string(),
            all => {
                let all: Vec<String> = all.iter().map(i64::to_string).collect();
                format!("({})", all.join(", "))
            }
        };
        error::exception(
            py,
            "AerogelIndexError",
            format!(
                "index {index} is out of range: the indices of {} are {}",
                label(),
                ranges.join(", ")
            ),
        )
    }

    /// The components of an element, for the runtime.
    pub(crate) fn elements(&self, item: usize) -> Elements<'_> {
        Elements {
            places: &self.places,
            item,
            offset: &self.offset,
        }
    }

    /// Indices and values of all active elements, as bytes.
    pub(crate) fn active_cells<'py>(
        &self,
        py: Python<'py>,
        memory: &TreeMemory,
        item: usize,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let compiler = program::compiler(py, &program::settings(py)?)?;
        let pieces = py
            .detach(|| memory.active_cells(self.elements(item), compiler.pool()))
            .map_err(error::memory)?;
        Ok((
            joined(py, &pieces, |piece| &piece.coordinates)?,
            joined(py, &pieces, |piece| &piece.values)?,
        ))
    }

    /// Makes the elements at rows of indices active, and writes to them.
    pub(crate) fn set_cells(
        &self,
        py: Python<'_>,
        memory: &TreeMemory,
        label: impl Fn() -> String,
        coordinates: &ForeignArray,
        values: &ForeignArray,
        item: usize,
    ) -> PyResult<()> {
        let n_axes = self.shape.len();
        let mut rows = coordinate_rows(coordinates, n_axes)?;
        for row in rows.chunks_exact_mut(n_axes.max(1)) {
            for (index, &first) in row.iter_mut().zip(&self.offset) {
                // What is outside stays outside: indices are no less than `i32::MIN`.
                *index = index.checked_sub(first).unwrap_or(-1);
            }
        }
        let n = coordinates.shape[0];
        let values = &*values.contents()?;
        if values.len() != n * self.places.len() * item {
            return Err(PyValueError::new_err(
                "the values are not as many as the cells",
            ));
        }
        if let Some(row) = memory.first_outside(self.places[0], &rows) {
            let given = coordinate_rows(coordinates, n_axes)?;
            let index: Vec<i64> = given[row * n_axes..][..n_axes]
                .iter()
                .map(|&i| i64::from(i))
                .collect();
            return Err(self.outside(py, label, &index));
        }
        let compiler = program::compiler(py, &program::settings(py)?)?;
        py.detach(|| memory.set_cells(self.elements(item), n, &rows, Some(values), compiler.pool()))
            .map_err(error::memory)
    }

    /// Where a component of an element lies; nowhere if it is inactive.
    pub(crate) fn find(
        &self,
        memory: &TreeMemory,
        component: usize,
        index: &Index,
    ) -> Result<Option<u64>, MemoryError> {
        if self.sparse {
            return memory.find_element(self.places[component], index);
        }
        Ok(Some(self.at(component, index)))
    }

    /// The address of each component of an element, if they are plain scalars whose places are known without a search.
    pub(crate) fn plain(&self, index: &Index) -> Option<impl Fn(usize) -> usize + use<'_>> {
        if self.one_by_one() {
            return None;
        }
        let distance = self.distance(0, index);
        Some(move |component: usize| (self.bases[component] + distance) as usize)
    }

    /// Where a component of an element of a dense field lies.
    fn at(&self, component: usize, index: &Index) -> u64 {
        self.bases[component] + self.distance(component, index)
    }

    /// How far a component of an element of a dense field lies from that of the first.
    fn distance(&self, component: usize, index: &Index) -> u64 {
        let digits = self.digits.get(component).unwrap_or(&self.digits[0]);
        digits.iter().fold(0, |at, d| {
            let quotient = index[d.index] as u64 / d.divisor;
            let digit = if d.wraps {
                quotient % d.extent
            } else {
                quotient
            };
            at + digit * d.stride
        })
    }

    /// Where a component of an element lies, made active if it was not.
    pub(crate) fn obtain(
        &self,
        py: Python<'_>,
        memory: &TreeMemory,
        component: usize,
        index: &Index,
    ) -> PyResult<u64> {
        if !self.sparse {
            return Ok(self.at(component, index));
        }
        loop {
            if let Some(_share) = memory.try_share() {
                let place = self.places[component];
                let at =
                    buffer::patiently(py, memory.bytes(), || memory.obtain_element(place, index));
                return at.map_err(error::memory);
            }
            // A kernel is running, which may want to print and so needs what this thread holds.
            py.detach(|| drop(memory.share()));
        }
    }

    /// Whether several levels divide an axis, so that the elements of a box need not be a box of each level.
    pub(crate) fn is_blocked(&self) -> bool {
        self.digits.iter().flatten().any(|digit| digit.divisor > 1)
    }

    /// Whether elements are copied one by one.
    pub(crate) fn one_by_one(&self) -> bool {
        self.sparse || self.quantised || self.digits.len() > 1
    }

    /// All indices.
    pub(crate) fn whole(&self) -> IndexBox {
        self.shape.iter().map(|&n| (0, n)).collect()
    }

    /// Copies between the active elements of a box of a field and a row-major array of it, one by one.
    pub(crate) fn copy_active(
        &self,
        memory: &TreeMemory,
        (array, ranges): (&Buffer, &[(u64, u64)]),
        ty: ScalarType,
        out: bool,
    ) -> Result<(), MemoryError> {
        let item = ty.bytes() as usize;
        let strides = row_major(ranges, (item * self.places.len()) as u64);
        let _share = memory.share();
        for (k, &place) in self.places.iter().enumerate() {
            let component = memory.component(place);
            self.visit(memory, k, ranges, &mut |cell, index| {
                let axes = index.iter().zip(ranges).zip(&strides);
                let there: u64 = axes.map(|((&i, (lo, _)), s)| (i as u64 - lo) * s).sum();
                let there = there as usize + k * item;
                if out {
                    array.write_scalar(there, component.read(cell, index)?)
                } else {
                    component.write(cell, index, array.read_scalar(ty, there)?)
                }
            })?;
        }
        Ok(())
    }

    /// Whether all active elements of a sparse or quantised field are zero.
    pub(crate) fn is_zero(&self, memory: &TreeMemory) -> Result<bool, MemoryError> {
        let _share = memory.share();
        let mut is_zero = true;
        for (k, &place) in self.places.iter().enumerate().filter(|_| self.sparse) {
            let component = memory.component(place);
            self.visit(memory, k, &self.whole(), &mut |cell, index| {
                let value = component.read(cell, index)?;
                is_zero &= value == Scalar::zero(value.ty());
                Ok(())
            })?;
        }
        Ok(is_zero)
    }

    /// Makes the elements of a box active that are not zero in a row-major array of it, and writes them.
    pub(crate) fn obtain_others(
        &self,
        memory: &TreeMemory,
        (array, ranges): (&Buffer, &[(u64, u64)]),
        ty: ScalarType,
    ) -> Result<(), MemoryError> {
        if !self.sparse {
            return Ok(());
        }
        let item = ty.bytes() as usize;
        let _share = memory.share();
        let per_element = self.places.len();
        let mut index = vec![0; self.shape.len()];
        for number in 0..array.len() / item {
            let value = array.read_scalar(ty, number * item)?;
            if value == Scalar::zero(ty) {
                continue;
            }
            let mut rest = (number / per_element) as u64;
            for (index, (lo, hi)) in index.iter_mut().zip(ranges).rev() {
                (*index, rest) = ((lo + rest % (hi - lo)) as i64, rest / (hi - lo));
            }
            let place = self.places[number % per_element];
            if memory.find_element(place, &index)?.is_none() {
                memory.write_component(place, &index, value)?;
            }
        }
        Ok(())
    }

    /// Copies all elements of a row-major array to a sparse field, which becomes active as a whole.
    pub(crate) fn obtain_all(
        &self,
        memory: &TreeMemory,
        array: &Buffer,
        ty: ScalarType,
    ) -> Result<(), MemoryError> {
        let item = ty.bytes() as usize;
        if !self.sparse {
            // It takes the share itself: a thread that holds one and waits for another would deadlock with a launch.
            return self.copy_active(memory, (array, &self.whole()), ty, false);
        }
        let _share = memory.share();
        for (k, &place) in self.places.iter().enumerate() {
            let (mut n, mut outcome) = (0, Ok(()));
            memory.visit_elements(place, &mut |index, _| {
                let there = (n * self.places.len() + k) * item;
                n += 1;
                if outcome.is_ok() {
                    let value = array.read_scalar(ty, there);
                    outcome = value.and_then(|value| memory.write_component(place, index, value));
                }
            })?;
            outcome?;
        }
        Ok(())
    }

    /// Calls `visit` with where the `k`-th component of each active element of a box lies, and its indices.
    fn visit(
        &self,
        memory: &TreeMemory,
        k: usize,
        ranges: &[(u64, u64)],
        visit: &mut Visit<'_, MemoryError>,
    ) -> Result<(), MemoryError> {
        if self.sparse {
            memory.come_home()?;
            return memory.visit_active_in(self.places[k], ranges, visit);
        }
        let mut index = [0; MAX_AXES];
        let n_axes = ranges.len();
        for (index, &(lo, _)) in index.iter_mut().zip(ranges) {
            *index = lo as i64;
        }
        for _ in 0..ranges.iter().map(|(lo, hi)| hi - lo).product() {
            let at = self.bases[k] + self.distance(k, &index);
            visit(at, &index[..n_axes])?;
            // The odometer: the last axis first, with a carry.
            for axis in (0..n_axes).rev() {
                index[axis] += 1;
                if (index[axis] as u64) < ranges[axis].1 {
                    break;
                }
                index[axis] = ranges[axis].0 as i64;
            }
        }
        Ok(())
    }

    /// Sets all active elements of a sparse or quantised field; `pattern` is an element.
    pub(crate) fn fill_active(
        &self,
        memory: &TreeMemory,
        pattern: &[u8],
        ty: ScalarType,
    ) -> Result<(), MemoryError> {
        let _share = memory.share();
        let values = pattern.chunks(ty.bytes() as usize).enumerate();
        for (k, value) in values {
            let value = Scalar::from_bytes(ty, value);
            let component = memory.component(self.places[k]);
            self.visit(memory, k, &self.whole(), &mut |cell, index| {
                component.write(cell, index, value)
            })?;
        }
        Ok(())
    }

    /// The dimensions of a copy between the field and a row-major array with `per_element` numbers in an element.
    pub(crate) fn dims(&self, item: u64, per_element: u64) -> Vec<(usize, u64, u64)> {
        let row_major = row_major(&self.whole(), item * per_element);
        self.digits[0]
            .iter()
            .map(|d| (d.extent as usize, d.stride, row_major[d.index] * d.divisor))
            .collect()
    }

    /// Where the elements of a box lie, and perhaps some around it that share blocks with them; not of fields whose
    /// elements are copied one by one.
    pub(crate) fn pieces(&self, ranges: &[(u64, u64)], item: usize) -> Vec<Piece> {
        let digits = &self.digits[0];
        // The first digit of an axis says which of the largest blocks along it an index is in.
        let is_first = |at: usize| {
            let mut others = digits.iter().enumerate();
            let outer = |(k, d): (usize, &Digit)| {
                let of_axis = k != at && d.index == digits[at].index;
                of_axis && (d.divisor, at) > (digits[at].divisor, k)
            };
            !others.any(outer)
        };
        let mut skipped = 0;
        let mut dims = Vec::new();
        for (k, digit) in digits.iter().enumerate() {
            let (lo, hi) = match ranges.get(digit.index).filter(|_| is_first(k)) {
                Some(&(lo, hi)) => (lo / digit.divisor, hi.div_ceil(digit.divisor)),
                None => (0, digit.extent),
            };
            skipped += lo * digit.stride;
            dims.push(((hi - lo) as usize, digit.stride as usize));
        }
        // Packed in the order of memory, so that what has no gaps is copied as a block.
        dims.sort_by_key(|&(_, stride)| std::cmp::Reverse(stride));
        let piece = |(first, count, spacing): (usize, usize, u64)| {
            let mut dims = dims.clone();
            dims.push((count, if count == 1 { item } else { spacing as usize }));
            let base = (self.bases[first] + skipped) as usize;
            Piece { base, dims }
        };
        self.runs().into_iter().map(piece).collect()
    }

    /// The distance between components, if it is always the same.
    fn spacing(&self) -> Option<u64> {
        let first = self.bases.get(1)?.checked_sub(self.bases[0])?;
        self.bases
            .windows(2)
            .all(|w| w[1].checked_sub(w[0]) == Some(first))
            .then_some(first)
    }

    /// Calls `f(component, n_components, component_stride_here, array_offset)` for runs of evenly spaced components.
    pub(crate) fn runs(&self) -> Vec<(usize, usize, u64)> {
        match self.spacing() {
            Some(spacing) => vec![(0, self.bases.len(), spacing)],
            None => (0..self.bases.len()).map(|k| (k, 1, 0)).collect(),
        }
    }
}
