//! What elements of fields and arrays held, kept to be put back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aerogel_base::ScalarType;
use aerogel_runtime::{Buffer, MemoryError, TreeMemory};
use aerogel_snode::NodeId;
use pyo3::prelude::*;

use super::argument::ArrayArg;
use super::buffer::{self, Dim};
use super::error;
use super::placement::Placement;
use super::snode::TreeStore;

/// Indices along each axis: the first, and the one after the last. Offsets of fields are no part of them.
pub(crate) type IndexBox = Vec<(u64, u64)>;

/// A box of elements of one field or array.
pub(crate) enum Boxed {
    /// Of a field: where it lies, and the type of its numbers.
    Field(Arc<TreeStore>, Vec<NodeId>, ScalarType, IndexBox),
    /// Of an array of cells of so many bytes: its shape, and the numbers' bytes.
    Array(ArrayArg, Vec<usize>, usize, usize, IndexBox),
}

impl Boxed {
    /// The indices along each axis.
    pub(crate) fn ranges(&self) -> IndexBox {
        match self {
            Self::Field(.., ranges) | Self::Array(.., ranges) => ranges.clone(),
        }
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

/// Evenly spaced numbers: the address of the first, how many there are along each dimension, and how far apart.
pub(crate) struct Piece {
    pub(crate) base: usize,
    pub(crate) dims: Vec<(usize, usize)>,
}

impl Piece {
    fn n_numbers(&self) -> usize {
        self.dims.iter().map(|&(extent, _)| extent).product()
    }

    /// The dimensions of a copy to a packed array, or from it.
    fn copied(&self, item: usize, out: bool) -> Vec<Dim> {
        let mut stride = item;
        let mut dims = Vec::with_capacity(self.dims.len());
        for &(extent, here) in self.dims.iter().rev() {
            let (dst, src) = if out { (stride, here) } else { (here, stride) };
            dims.push(Dim { extent, dst, src });
            stride *= extent;
        }
        dims
    }
}

enum Where {
    Dense {
        of: Dense,
        pieces: Vec<Piece>,
        item: usize,
    },
    /// Elements that may be inactive, or share words: all of them.
    Elements(Box<Placement>, ScalarType),
}

enum Dense {
    Field(Arc<TreeStore>),
    Array(ArrayArg),
}

/// What elements held when it was made; or, while that is put back, what they held before.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeSnapshot {
    of: Where,
    kept: Mutex<Kept>,
}

struct Kept {
    numbers: Arc<Buffer>,
    is_back: bool,
}

#[pymethods]
impl NativeSnapshot {
    /// How many bytes are kept.
    #[getter]
    fn nbytes(&self) -> usize {
        self.kept().numbers.len()
    }

    /// Puts back what the elements held, if it is not back already.
    fn back(&self, py: Python<'_>) -> PyResult<()> {
        self.exchange(py, true)
    }

    /// Undoes `back`.
    fn forth(&self, py: Python<'_>) -> PyResult<()> {
        self.exchange(py, false)
    }

    /// Writes to the elements what is kept, and keeps it. Cells that have become inactive since become active if something
    /// is to be written to them.
    pub(crate) fn restore(&self, py: Python<'_>) -> PyResult<()> {
        let numbers = self.kept().numbers.clone();
        self.of.write(py, &numbers)?;
        let Where::Elements(placement, ty) = &self.of else {
            return Ok(());
        };
        let memory = placement.store.memory(py)?;
        py.detach(|| placement.obtain_others(&memory, &numbers, *ty))
            .map_err(error::memory)
    }
}

impl NativeSnapshot {
    /// Keeps what the elements of a box hold.
    pub(crate) fn new(py: Python<'_>, boxed: Boxed) -> PyResult<Self> {
        let of = Where::of(boxed);
        let kept = Mutex::new(Kept {
            numbers: Arc::new(of.read(py)?),
            is_back: false,
        });
        Ok(Self { of, kept })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exchange(&self, py: Python<'_>, back: bool) -> PyResult<()> {
        if self.kept().is_back == back {
            return Ok(());
        }
        // What is kept is not held while this thread gives up Python: another one would wait with it for ever.
        let now = Arc::new(self.of.read(py)?);
        let numbers = self.kept().numbers.clone();
        self.of.write(py, &numbers)?;
        *self.kept() = Kept {
            numbers: now,
            is_back: back,
        };
        if let Some(numbers) = Arc::into_inner(numbers) {
            give_spare(numbers);
        }
        Ok(())
    }
}

/// Memory of snapshots that are gone, by its length, for those that come: fresh memory costs more than the copy into it.
static SPARES: Mutex<BTreeMap<usize, Vec<Buffer>>> = Mutex::new(BTreeMap::new());
/// Of what is smaller nothing is kept, and of all together not more.
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
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Some(numbers), Ok(empty)) = (Arc::get_mut(&mut kept.numbers), Buffer::zeroed(0)) {
            give_spare(std::mem::replace(numbers, empty));
        }
    }
}

impl Where {
    fn of(boxed: Boxed) -> Self {
        match boxed {
            Boxed::Field(store, places, ty, ranges) => {
                let placement = Placement::new(store.clone(), places, Vec::new());
                if placement.one_by_one() {
                    return Self::Elements(Box::new(placement), ty);
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
            Self::Elements(placement, ty) => {
                let memory = placement.store.memory(py)?;
                let n = placement.shape.iter().product::<u64>() as usize * placement.places.len();
                let kept = || {
                    let kept = Buffer::zeroed(n * ty.bytes() as usize)?;
                    placement.copy_active(&memory, &kept, *ty, true)?;
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
            Self::Elements(placement, ty) => {
                let memory: Arc<TreeMemory> = placement.store.memory(py)?;
                py.detach(|| placement.copy_active(&memory, kept, *ty, false))
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
