//! The memory that the steps of a checkpointed sequence read and write: memory that is both must be saved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aerogel_ir::analysis::boxes::AccessKind;
use aerogel_snode::{NodeId, Tree};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::activity::{Activity, NativeAsked};
use super::error;
use super::field::NativeField;
use super::kernel::NativeKernel;
use super::prepared::Prepared;
use super::snapshot::{Boxed, IndexBox, Memory, NativeSnapshot, NativeWhole, memories_of};
use super::snode::NativeSNode;

/// The reads and writes of the launches of one or several steps.
#[pyclass(module = "aerogel._native", frozen)]
#[derive(Default)]
pub(crate) struct NativeSteps {
    steps: Mutex<Steps>,
    activity: Activity,
}

#[derive(Default)]
struct Steps {
    read: BTreeMap<Memory, IndexBox>,
    /// Each with the number of its savable part.
    written: BTreeMap<Memory, usize>,
    /// Whole fields and arrays that are written.
    whole: Vec<NativeWhole>,
    /// The memory that the current step has overwritten as a whole, without reading it before.
    cleared: BTreeSet<Memory>,
    /// Whether something makes cells inactive.
    deactivates: bool,
}

impl Steps {
    /// Adds what is written; the result is its number if it is the first.
    fn add_written(&mut self, memories: &[Memory], boxed: Boxed) -> usize {
        let number = self.whole.len();
        self.whole.push(NativeWhole(Arc::new(boxed)));
        for &memory in memories {
            self.written.insert(memory, number);
        }
        number
    }

    fn is_written(&self, memories: &[Memory]) -> bool {
        memories.iter().all(|m| self.written.contains_key(m))
    }
}

#[pymethods]
impl NativeSteps {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds a launch to come. The results are the numbers of what it is the first to write, and of what was only
    /// written so far and is read.
    fn note(
        &self,
        py: Python<'_>,
        kernel: &Bound<'_, NativeKernel>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Vec<usize>, Vec<usize>)> {
        let launch = Prepared::new(py, kernel.get(), args, kwargs, None)?;
        let mut steps = self.steps();
        steps.deactivates |= launch.deactivates();
        let (mut first_written, mut first_read) = (Vec::new(), Vec::new());
        let cleared = launch.cleared()?;
        steps.cleared.extend(cleared);
        for placed in launch.placed(AccessKind::Read)? {
            for &memory in &placed.memories {
                if steps.cleared.contains(&memory) {
                    continue;
                }
                if steps.read.insert(memory, placed.whole.clone()).is_none() {
                    first_read.extend(steps.written.get(&memory).copied());
                }
            }
        }
        for placed in launch.placed(AccessKind::Write)? {
            if steps.is_written(&placed.memories) {
                continue;
            }
            if let Some(boxed) = launch.boxed(py, placed.at, placed.whole.clone())? {
                first_written.push(steps.add_written(&placed.memories, boxed));
            }
        }
        Ok((first_written, first_read))
    }

    /// Begins a step.
    fn begin(&self) {
        self.steps().cleared.clear();
    }

    /// Adds a write of Python's to come, which may depend on what is there. The result is its number if it is the first.
    fn note_write(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let memories = memories_of(py, target)?;
        let boxed = whole(py, target)?;
        let mut steps = self.steps();
        for &memory in memories.iter() {
            if !steps.cleared.contains(&memory) {
                steps.read.insert(memory, boxed.ranges());
            }
        }
        let is_new = !steps.is_written(&memories);
        Ok(is_new.then(|| steps.add_written(&memories, boxed)))
    }

    /// Adds that cells of a node become inactive; but for gradients, which are no state. The results are the numbers of what
    /// is the first to be written.
    fn note_deactivated(
        &self,
        py: Python<'_>,
        node: &Bound<'_, NativeSNode>,
        apart: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<usize>> {
        let (store, node) = node.get().in_store(py)?;
        let mut gradients = BTreeSet::new();
        for target in &apart {
            gradients.extend(memories_of(py, target)?);
        }
        let mut steps = self.steps();
        steps.deactivates = true;
        let tree = &store.tree;
        let mut first_written = Vec::new();
        for place in tree.subtree(node) {
            let (memory, ty) = (Memory::Place(store.key, place), tree[place].kind.scalar());
            let Some(ty) = ty.filter(|_| vanishes(tree, node, place)) else {
                continue;
            };
            if gradients.contains(&memory) {
                continue;
            }
            steps.cleared.insert(memory);
            if !steps.is_written(&[memory]) {
                let ranges = tree.shape(place).into_iter().map(|n| (0, n)).collect();
                let boxed = Boxed::Field(store.clone(), vec![place], ty, ranges);
                first_written.push(steps.add_written(&[memory], boxed));
            }
        }
        Ok(first_written)
    }

    /// Whether launches may have made cells inactive.
    #[getter]
    fn deactivates(&self) -> bool {
        self.steps().deactivates
    }

    /// The activity that a launch about to run queries, if any.
    fn asked(
        &self,
        py: Python<'_>,
        kernel: &Bound<'_, NativeKernel>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<NativeAsked>> {
        let launch = Prepared::new(py, kernel.get(), args, kwargs, None)?;
        launch.asked(py, kernel, &self.activity)
    }

    /// A hash of the active cells that a finished launch has queried.
    fn digest(&self, py: Python<'_>, asked: &NativeAsked) -> PyResult<u64> {
        self.activity.after_launch(py, asked)?;
        Ok(asked.digest())
    }

    /// All that is written; and the numbers of what is read as well.
    fn written(&self) -> (Vec<NativeWhole>, Vec<usize>) {
        let steps = self.steps();
        let both = steps
            .written
            .iter()
            .filter(|(m, _)| steps.read.contains_key(m));
        let mut numbers: Vec<usize> = both.map(|(_, &number)| number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        (steps.whole.clone(), numbers)
    }
}

/// Those of some fields whose elements become zero when a node is deactivated as a whole.
#[pyfunction]
pub(crate) fn fields_in_cells<'py>(
    py: Python<'py>,
    node: &Bound<'py, NativeSNode>,
    fields: Vec<Bound<'py, NativeField>>,
) -> PyResult<Vec<Bound<'py, NativeField>>> {
    let (store, node) = node.get().in_store(py)?;
    let mut found = Vec::new();
    for field in fields {
        let placement = field.get().placement(py)?;
        let mut places = placement.places.iter();
        if placement.store.key == store.key && places.all(|&p| vanishes(&store.tree, node, p)) {
            found.push(field);
        }
    }
    Ok(found)
}

/// Whether a place becomes zero when a node is deactivated as a whole.
fn vanishes(tree: &Tree, node: NodeId, place: NodeId) -> bool {
    let below = tree.subtree(node);
    let mut chain = tree.sparse_chain(place).into_iter();
    chain.any(|sparse| below.contains(&sparse))
}

/// What the active cells of a sparse field hold; nothing if that is zero, or the field is dense.
#[pyfunction]
pub(crate) fn keep_cells(
    py: Python<'_>,
    field: &Bound<'_, NativeField>,
) -> PyResult<Option<NativeSnapshot>> {
    let placement = field.get().placement(py)?;
    let memory = placement.store.memory(py)?;
    let is_zero = py.detach(|| placement.is_zero(&memory));
    match placement.sparse && !is_zero.map_err(error::memory)? {
        true => keep(py, field.as_any()).map(Some),
        false => Ok(None),
    }
}

/// A snapshot of a whole field or array.
#[pyfunction]
pub(crate) fn keep(py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<NativeSnapshot> {
    NativeSnapshot::new(py, whole(py, target)?)
}

fn whole(py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<Boxed> {
    let boxed = Boxed::of(py, target, None)?;
    boxed.ok_or_else(|| PyTypeError::new_err("only fields and arrays can be saved"))
}

impl NativeSteps {
    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Boxes that are read and not written.
    pub(super) fn only_read(&self) -> Vec<(Memory, IndexBox)> {
        let steps = self.steps();
        let read = steps.read.iter();
        read.filter(|(memory, _)| !steps.written.contains_key(memory))
            .map(|(memory, ranges)| (*memory, ranges.clone()))
            .collect()
    }
}
