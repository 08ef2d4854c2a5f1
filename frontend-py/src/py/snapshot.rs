//! Snapshots: saved values of elements of fields and arrays, to be restored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aerogel_base::ScalarType;
use aerogel_ir::analysis::box_set::BoxSet;
pub(crate) use aerogel_ir::analysis::box_set::IndexBox;
use aerogel_runtime::{Buffer, MemoryError, TreeMemory};
use aerogel_snode::NodeId;
use pyo3::prelude::*;

use super::argument::ArrayArg;
use super::buffer;
use super::error;
use super::field::NativeField;
use super::ndarray::NativeNdarray;
use super::placement::{Piece, Placement};
use super::snode::TreeStore;

/// Memory whose elements are distinguished by their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Memory {
    /// One component of a field: the tree and the place in it.
    Place(u64, NodeId),
    /// An array, by its address.
    Array(usize),
}

/// Where a field or an array lies.
pub(super) fn memories_of(py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<Vec<Memory>> {
    if let Ok(field) = target.cast::<NativeField>() {
        let placement = field.get().placement(py)?;
        let places = placement.places.iter();
        return Ok(places
            .map(|&p| Memory::Place(placement.store.key, p))
            .collect());
    }
    let array = target.cast::<NativeNdarray>()?.get();
    Ok(vec![Memory::Array(array.buffer.addresses().start)])
}

/// A box of elements of one field or array.
pub(crate) enum Boxed {
    /// Of a field: where it lies, and the type of its numbers.
    Field(Arc<TreeStore>, Vec<NodeId>, ScalarType, IndexBox),
    /// Of an array of cells of so many bytes: its shape, and the numbers' bytes.
    Array(ArrayArg, Vec<usize>, usize, usize, IndexBox),
}

impl Boxed {
    /// Of a field or an array: the element at `key`, or all. Nothing of anything else.
    pub(super) fn of(
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Self>> {
        if let Ok(field) = object.cast::<NativeField>() {
            let field = field.get();
            let placement = field.placement(py)?;
            let mut ranges = placement.whole();
            if let Some(key) = key {
                let index = placement.index(py, || field.name().to_owned(), key)?;
                for (range, at) in ranges.iter_mut().zip(index) {
                    *range = (at as u64, at as u64 + 1);
                }
            }
            let (store, places) = (placement.store.clone(), placement.places.clone());
            return Ok(Some(Self::Field(store, places, field.elem(), ranges)));
        }
        let Ok(array) = object.cast::<NativeNdarray>() else {
            return Ok(None);
        };
        let array = array.get();
        let mut ranges: IndexBox = array.shape.iter().map(|&n| (0, n as u64)).collect();
        if let Some(key) = key {
            for (range, at) in ranges.iter_mut().zip(array.index(py, key)?) {
                *range = (at as u64, at as u64 + 1);
            }
        }
        let item = array.ty.bytes() as usize;
        let own = ArrayArg::Own(array.buffer.clone());
        let cell = item * array.n_components();
        let shape = array.shape.clone();
        Ok(Some(Self::Array(own, shape, cell, item, ranges)))
    }

    /// The same with other indices.
    pub(super) fn with(mut self, new: IndexBox) -> Self {
        match &mut self {
            Self::Field(.., ranges) | Self::Array(.., ranges) => *ranges = new,
        }
        self
    }

    /// Where its components lie.
    pub(super) fn memories(&self) -> PyResult<Vec<Memory>> {
        Ok(self.key()?.0)
    }

    /// The indices along each axis.
    pub(crate) fn ranges(&self) -> IndexBox {
        match self {
            Self::Field(.., ranges) | Self::Array(.., ranges) => ranges.clone(),
        }
    }

    /// How many bytes its numbers take.
    pub(super) fn nbytes(&self) -> usize {
        let extents = |ranges: &IndexBox| {
            ranges
                .iter()
                .map(|(lo, hi)| (hi - lo) as usize)
                .product::<usize>()
        };
        match self {
            Self::Field(_, places, ty, ranges) => {
                extents(ranges) * places.len() * ty.bytes() as usize
            }
            Self::Array(_, _, cell, _, ranges) => extents(ranges) * cell,
        }
    }

    fn key(&self) -> PyResult<Key> {
        Ok(match self {
            Self::Field(store, places, ..) => {
                let places = places.iter().map(|&place| Memory::Place(store.key, place));
                (places.collect(), Vec::new())
            }
            Self::Array(array, shape, ..) => {
                let address = array.buffer()?.addresses().start;
                (vec![Memory::Array(address)], shape.clone())
            }
        })
    }

    /// The same box once more.
    pub(crate) fn held(&self, py: Python<'_>) -> Self {
        match self {
            Self::Field(store, places, ty, ranges) => {
                Self::Field(store.clone(), places.clone(), *ty, ranges.clone())
            }
            Self::Array(array, shape, cell, item, ranges) => {
                let array = array.held(py);
                Self::Array(array, shape.clone(), *cell, *item, ranges.clone())
            }
        }
    }
}

enum Where {
    Dense {
        of: Dense,
        pieces: Vec<Piece>,
        item: usize,
    },
    /// Elements that are copied one by one, since they may be inactive, share words, or lie in parts of blocks.
    Elements(Box<Placement>, ScalarType, IndexBox),
}

enum Dense {
    Field(Arc<TreeStore>),
    Array(ArrayArg),
}

/// The values of elements when the snapshot was made.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeSnapshot {
    of: Arc<Where>,
    key: Key,
    ranges: IndexBox,
    numbers: Buffer,
}

/// A key that distinguishes memory with unrelated boxes; for an array it includes the shape.
type Key = (Vec<Memory>, Vec<usize>);

#[pymethods]
impl NativeSnapshot {
    /// How many bytes are saved.
    #[getter]
    fn nbytes(&self) -> usize {
        self.numbers.len()
    }

    /// Restores the saved values. The current values are noted in `present`, if that is given.
    #[pyo3(signature = (present = None))]
    fn back(&self, py: Python<'_>, present: Option<&NativePresent>) -> PyResult<()> {
        if let Some(present) = present {
            present.note(py, self)?;
        }
        self.of.write(py, &self.numbers)
    }

    /// Whether the elements have the saved values: after `back` they do not where cells have become inactive since.
    fn is_there(&self, py: Python<'_>) -> PyResult<bool> {
        if matches!(*self.of, Where::Dense { .. }) {
            return Ok(true);
        }
        let read = |buffer: &Buffer| {
            let mut bytes = vec![0; buffer.len()];
            buffer.read(0, &mut bytes).map_err(error::memory)?;
            Ok::<_, PyErr>(bytes)
        };
        Ok(read(&self.numbers)? == read(&self.anew(py)?.numbers)?)
    }

    /// Restores the saved values. Cells that have become inactive since are activated if a value is written to
    /// them.
    pub(crate) fn restore(&self, py: Python<'_>) -> PyResult<()> {
        self.of.write(py, &self.numbers)?;
        let Where::Elements(placement, ty, ranges) = &*self.of else {
            return Ok(());
        };
        let memory = placement.store.memory(py)?;
        py.detach(|| placement.obtain_others(&memory, (&self.numbers, ranges), *ty))
            .map_err(error::memory)
    }
}

impl NativeSnapshot {
    /// Keeps what the elements of a box hold, and perhaps some that share blocks with them.
    pub(crate) fn new(py: Python<'_>, boxed: Boxed) -> PyResult<Self> {
        Self::kept(py, boxed, false)
    }

    /// Keeps what the elements of a box hold, and of no others if it is exact.
    fn kept(py: Python<'_>, boxed: Boxed, is_exact: bool) -> PyResult<Self> {
        let (key, ranges) = (boxed.key()?, boxed.ranges());
        let of = Arc::new(Where::of(boxed, is_exact));
        let numbers = of.read(py)?;
        Ok(Self {
            of,
            key,
            ranges,
            numbers,
        })
    }

    /// What the elements of a box have held, from elsewhere.
    pub(super) fn of(boxed: Boxed, numbers: Buffer) -> PyResult<Self> {
        Ok(Self {
            key: boxed.key()?,
            ranges: boxed.ranges(),
            of: Arc::new(Where::of(boxed, false)),
            numbers,
        })
    }

    pub(super) fn numbers(&self) -> &Buffer {
        &self.numbers
    }

    /// A snapshot of the current values of the same elements.
    fn anew(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self {
            of: self.of.clone(),
            key: self.key.clone(),
            ranges: self.ranges.clone(),
            numbers: self.of.read(py)?,
        })
    }
}

/// A whole field or array.
#[pyclass(module = "aerogel._native", frozen)]
#[derive(Clone)]
pub(crate) struct NativeWhole(pub(super) Arc<Boxed>);

#[pymethods]
impl NativeWhole {
    /// A snapshot of the current values.
    fn keep(&self, py: Python<'_>) -> PyResult<NativeSnapshot> {
        NativeSnapshot::new(py, self.boxed(py))
    }
}

impl NativeWhole {
    /// The box of all its elements.
    fn boxed(&self, py: Python<'_>) -> Boxed {
        self.0.held(py)
    }
}

/// What memory held before older numbers were put back: once for each box, however often that happens.
#[pyclass(module = "aerogel._native", frozen)]
#[derive(Default)]
pub(crate) struct NativePresent {
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    boxes: BTreeMap<Key, BoxSet>,
    kept: Vec<NativeSnapshot>,
}

#[pymethods]
impl NativePresent {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Notes what a whole field or array holds.
    fn note_whole(&self, py: Python<'_>, whole: &NativeWhole) -> PyResult<()> {
        self.note_box(py, whole.boxed(py))
    }

    /// Notes what the elements of a box of a field or an array hold, or all, and of no others.
    fn note_elements(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        ranges: Option<IndexBox>,
    ) -> PyResult<()> {
        let Some(mut boxed) = Boxed::of(py, target, None)? else {
            return Ok(());
        };
        if let Some(ranges) = ranges {
            boxed = boxed.with(ranges);
        }
        if self.is_new(&boxed.key()?, &boxed.ranges()) {
            let now = NativeSnapshot::kept(py, boxed, true)?;
            self.noted().kept.push(now);
        }
        Ok(())
    }

    /// Puts all of it back.
    pub(super) fn restore(&self, py: Python<'_>) -> PyResult<()> {
        let noted = std::mem::take(&mut *self.noted());
        // What was noted first of an element is the present.
        noted
            .kept
            .iter()
            .rev()
            .try_for_each(|kept| kept.restore(py))
    }
}

impl NativePresent {
    fn note(&self, py: Python<'_>, snapshot: &NativeSnapshot) -> PyResult<()> {
        if self.is_new(&snapshot.key, &snapshot.ranges) {
            let now = snapshot.anew(py)?;
            self.noted().kept.push(now);
        }
        Ok(())
    }

    /// Notes what a box holds.
    pub(super) fn note_box(&self, py: Python<'_>, boxed: Boxed) -> PyResult<()> {
        if self.is_new(&boxed.key()?, &boxed.ranges()) {
            let now = NativeSnapshot::new(py, boxed)?;
            self.noted().kept.push(now);
        }
        Ok(())
    }

    fn is_new(&self, key: &Key, ranges: &IndexBox) -> bool {
        let mut noted = self.noted();
        noted.boxes.entry(key.clone()).or_default().add(ranges)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory of snapshots that are gone, by its length, for those that come: fresh memory costs more than the copy into it.
static SPARES: Mutex<BTreeMap<usize, Vec<Buffer>>> = Mutex::new(BTreeMap::new());
/// The cache stores nothing smaller than this, and not more in total.
const LEAST_SPARE: usize = 64 << 10;
const MOST_SPARE: usize = 64 << 20;

fn spares() -> MutexGuard<'static, BTreeMap<usize, Vec<Buffer>>> {
    SPARES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory of so many bytes, which holds anything.
fn take_spare(bytes: usize) -> Option<Buffer> {
    spares().get_mut(&bytes)?.pop()
}

fn give_spare(buffer: Buffer) {
    let mut spares = spares();
    let held: usize = spares.iter().map(|(bytes, all)| bytes * all.len()).sum();
    if (LEAST_SPARE..=MOST_SPARE - held).contains(&buffer.len()) {
        spares.entry(buffer.len()).or_default().push(buffer);
    }
}

/// Gives spare memory back.
#[pyfunction]
pub(crate) fn drop_spares() {
    let spares = std::mem::take(&mut *spares());
    drop(spares);
}

impl Drop for NativeSnapshot {
    fn drop(&mut self) {
        if let Ok(empty) = Buffer::zeroed(0) {
            give_spare(std::mem::replace(&mut self.numbers, empty));
        }
    }
}

impl Where {
    fn of(boxed: Boxed, is_exact: bool) -> Self {
        match boxed {
            Boxed::Field(store, places, ty, ranges) => {
                let placement = Placement::new(store.clone(), places, Vec::new());
                if placement.one_by_one() || is_exact && placement.is_blocked() {
                    return Self::Elements(Box::new(placement), ty, ranges);
                }
                let item = ty.bytes() as usize;
                Self::Dense {
                    of: Dense::Field(store),
                    pieces: placement.pieces(&ranges, item),
                    item,
                }
            }
            Boxed::Array(array, shape, cell, item, ranges) => {
                let mut stride = cell;
                let mut piece = Piece {
                    base: 0,
                    dims: vec![(cell / item, item)],
                };
                for (&extent, &(lo, hi)) in shape.iter().zip(&ranges).rev() {
                    piece.base += lo as usize * stride;
                    piece.dims.insert(0, ((hi - lo) as usize, stride));
                    stride *= extent;
                }
                Self::Dense {
                    of: Dense::Array(array),
                    pieces: vec![piece],
                    item,
                }
            }
        }
    }

    fn read(&self, py: Python<'_>) -> PyResult<Buffer> {
        match self {
            Self::Dense { of, pieces, item } => of.with(py, |memory| {
                let n: usize = pieces.iter().map(Piece::n_numbers).sum();
                let kept = match take_spare(n * item) {
                    Some(spare) => spare,
                    None => Buffer::zeroed(n * item)?,
                };
                let mut at = 0;
                for piece in pieces {
                    let dims = piece.copied(*item, true);
                    buffer::copy((&kept, at), (memory, piece.base), dims, *item)?;
                    at += piece.n_numbers() * item;
                }
                Ok(kept)
            }),
            Self::Elements(placement, ty, ranges) => {
                let memory = placement.store.memory(py)?;
                let extents = ranges.iter().map(|(lo, hi)| hi - lo);
                let n = extents.product::<u64>() as usize * placement.places.len();
                let kept = || {
                    let kept = Buffer::zeroed(n * ty.bytes() as usize)?;
                    placement.copy_active(&memory, (&kept, ranges), *ty, true)?;
                    Ok(kept)
                };
                py.detach(kept).map_err(error::memory)
            }
        }
    }

    fn write(&self, py: Python<'_>, kept: &Buffer) -> PyResult<()> {
        match self {
            Self::Dense { of, pieces, item } => of.with(py, |memory| {
                let mut at = 0;
                for piece in pieces {
                    let dims = piece.copied(*item, false);
                    buffer::copy((memory, piece.base), (kept, at), dims, *item)?;
                    at += piece.n_numbers() * item;
                }
                Ok(())
            }),
            Self::Elements(placement, ty, ranges) => {
                let memory: Arc<TreeMemory> = placement.store.memory(py)?;
                py.detach(|| placement.copy_active(&memory, (kept, ranges), *ty, false))
                    .map_err(error::memory)
            }
        }
    }
}

impl Dense {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Buffer) -> Result<T, MemoryError> + Send,
    ) -> PyResult<T> {
        match self {
            Self::Field(store) => {
                let memory = store.memory(py)?;
                py.detach(|| work(memory.bytes())).map_err(error::memory)
            }
            Self::Array(array) => work(array.buffer()?).map_err(error::memory),
        }
    }
}
