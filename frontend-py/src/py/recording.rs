//! The memory that launches on a tape have read, so that values which later launches overwrite are saved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aerogel_ir::analysis::box_set::{BoxSet, holds};
use aerogel_ir::analysis::boxes::{AccessKind, Storage};
use aerogel_snode::NodeId;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::activity::{Activity, NativeAsked, NativePast};
use super::argument::Packed;
use super::error;
use super::kernel::NativeKernel;
use super::prepared::Prepared;
use super::snapshot::{Boxed, IndexBox, Memory, NativeSnapshot, memories_of};
use super::snode::{NativeSNode, TreeStore};
use super::steps::NativeSteps;
use super::views::{View, Views};
use crate::derived::Derived;

/// What is overwritten, as it was before; each with whether the launch itself, or its gradient, needs that.
type Kept = Vec<(NativeSnapshot, bool)>;

/// The memory that the launches on one tape have read so far.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeRecording {
    is_strict: bool,
    read: Mutex<BTreeMap<Memory, BoxSet>>,
    /// Memory without gradients that was written from what has some, and by what.
    ended: Mutex<BTreeMap<Memory, String>>,
    /// Memory that launches have written, or whose values or gradients the backward pass reads; and whether it does.
    used: Mutex<BTreeMap<Memory, bool>>,
    /// The arrays that launches have used.
    views: Mutex<Views>,
    /// The active cells of the nodes that launches query.
    activity: Activity,
}

/// Where users have heard that gradients end.
static TOLD: Mutex<BTreeSet<Told>> = Mutex::new(BTreeSet::new());

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    /// In some memory.
    Of(Memory),
    /// In an array between the kernel that reads it and what has written it; the array's name in the former.
    Between(String, String, String),
}

#[pymethods]
impl NativeRecording {
    /// Where gradients end is said, or if the tape is strict an error.
    #[new]
    #[pyo3(signature = (is_strict = false))]
    fn new(is_strict: bool) -> Self {
        Self {
            is_strict,
            read: Mutex::default(),
            ended: Mutex::default(),
            used: Mutex::default(),
            views: Mutex::default(),
            activity: Activity::default(),
        }
    }

    /// Counts all that the launches of some steps have read, and not written, as read.
    fn add_steps(&self, steps: &Bound<'_, NativeSteps>) {
        let mut read = self.read();
        for (memory, ranges) in steps.get().only_read() {
            read.entry(memory).or_default().add(&ranges);
        }
    }

    /// What a launch overwrites of what has been read, by launches before it or by itself, as it is before; each with
    /// whether the launch itself, or its gradient, needs that. Its reads count from then on: those of its
    /// derivative if that is what it counts as, all if it is `"function"`, none if it is `"constant"`.
    fn before_launch(
        &self,
        py: Python<'_>,
        kernel: &Bound<'_, NativeKernel>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        counts_as: &str,
    ) -> PyResult<(Kept, Option<NativeAsked>)> {
        let reads = counts_as != "constant";
        let derivative = Derived::from_name(counts_as);
        let launch = Prepared::new(py, kernel.get(), args, kwargs, derivative)?;
        self.note_ends(py, &kernel.get().signature.name, &launch)?;
        if derivative.is_some() {
            self.note_views(py, &kernel.get().signature.name, &launch)?;
        }
        self.expect_active(py, &kernel.get().signature.name, &launch)?;
        let asked = match reads {
            true => launch.asked(py, kernel, &self.activity)?,
            false => None,
        };
        // Its reads: those of what it finds, and all others.
        let mut early: BTreeMap<Memory, BoxSet> = BTreeMap::new();
        let mut late: BTreeMap<Memory, BoxSet> = BTreeMap::new();
        for placed in launch.placed(AccessKind::Read)? {
            let of = if placed.is_early {
                &mut early
            } else {
                &mut late
            };
            for &memory in &placed.memories {
                of.entry(memory).or_default().add(&placed.ranges);
            }
        }
        let mut kept = Vec::new();
        let mut own_kept = Vec::new();
        let mut read = self.read();
        let mut used = self.used();
        for &memory in early.keys().chain(late.keys()) {
            used.insert(memory, true);
        }
        for placed in launch.placed(AccessKind::Write)? {
            for &memory in &placed.memories {
                *used.entry(memory).or_default() |= launch.has_gradient(placed.at);
            }
            let mut needed: Vec<(IndexBox, bool)> = Vec::new();
            for memory in &placed.memories {
                let before = read
                    .get(memory)
                    .map_or(Vec::new(), |r| r.common(&placed.ranges));
                let mine = early.get(memory).filter(|_| derivative.is_some());
                let mine = mine.map_or(Vec::new(), |r| r.common(&placed.ranges));
                let all = mine.into_iter().map(|b| (b, true));
                for one in all.chain(before.into_iter().map(|b| (b, false))) {
                    if !needed.iter().any(|(other, _)| holds(other, &one.0)) {
                        needed.push(one);
                    }
                }
            }
            for (ranges, is_own) in needed {
                if let Some(boxed) = launch.boxed(py, placed.at, ranges.clone())? {
                    kept.push((NativeSnapshot::new(py, boxed)?, is_own));
                    for memory in &placed.memories {
                        read.entry(*memory).and_modify(|read| read.remove(&ranges));
                        if is_own {
                            own_kept.push((*memory, ranges.clone()));
                        }
                    }
                }
            }
        }
        // Its gradient finds its saved values, even if they change later.
        for (memory, ranges) in own_kept {
            early.entry(memory).and_modify(|read| read.remove(&ranges));
        }
        for (memory, boxes) in early.into_iter().chain(late).filter(|_| reads) {
            let all = read.entry(memory).or_default();
            boxes.iter().for_each(|ranges| _ = all.add(ranges));
        }
        Ok((kept, asked))
    }

    /// Adds the activity that a finished launch has queried.
    fn after_launch(&self, py: Python<'_>, asked: &NativeAsked) -> PyResult<()> {
        self.activity.after_launch(py, asked)
    }

    /// What tells the gradient of a launch which cells were active; nothing if they are the same now.
    fn past(&self, py: Python<'_>, asked: &NativeAsked) -> PyResult<Option<NativePast>> {
        self.activity.past(py, asked)
    }

    /// Checks that the active cells are those that a launch has seen.
    fn expect_same_cells(&self, py: Python<'_>, asked: &NativeAsked) -> PyResult<()> {
        self.activity.expect_same(py, asked)
    }

    /// Checks that no gradients need cells of a node, which are about to be deactivated.
    fn before_deactivate(&self, py: Python<'_>, node: &Bound<'_, NativeSNode>) -> PyResult<()> {
        let (store, node) = node.get().in_store(py)?;
        self.expect_unneeded(py, "Python", &store, node)
    }

    /// Notes that `writer` copies what has a gradient to a field or an array that has none.
    fn note_end(&self, py: Python<'_>, target: &Bound<'_, PyAny>, writer: &str) -> PyResult<()> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        for memory in memories_of(py, target)? {
            ended.insert(memory, writer.to_owned());
        }
        Ok(())
    }

    /// The boxes that a launch may write of some fields and arrays, each with the number of its field.
    #[staticmethod]
    fn writes(
        py: Python<'_>,
        kernel: &Bound<'_, NativeKernel>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        targets: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<(usize, IndexBox)>> {
        let launch = Prepared::new(py, kernel.get(), args, kwargs, None)?;
        let own: Vec<Vec<Memory>> = targets
            .iter()
            .map(|target| memories_of(py, target))
            .collect::<PyResult<_>>()?;
        let mut found = Vec::new();
        for placed in launch.placed(AccessKind::Write)? {
            let is_own =
                |memories: &&Vec<Memory>| memories.iter().any(|m| placed.memories.contains(m));
            let at = own.iter().enumerate().filter(|(_, m)| is_own(m));
            found.extend(at.map(|(k, _)| (k, placed.ranges.clone())));
        }
        Ok(found)
    }

    /// Saves read values that Python is about to overwrite: the element at `key`, or all.
    fn before_write(
        &self,
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<NativeSnapshot>> {
        let mut read = self.read();
        let mut kept = Vec::new();
        let mut common = |memories: &[Memory], ranges: &[(u64, u64)]| {
            let mut all: Vec<IndexBox> = Vec::new();
            for memory in memories {
                let found = read.get(memory).map_or(Vec::new(), |r| r.common(ranges));
                for ranges in found {
                    if !all.contains(&ranges) {
                        all.push(ranges);
                    }
                }
            }
            for memory in memories {
                for ranges in &all {
                    read.entry(*memory).and_modify(|read| read.remove(ranges));
                }
            }
            all
        };
        if key.is_none() {
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            for memory in memories_of(py, object)? {
                ended.remove(&memory);
            }
        }
        if let Some(boxed) = Boxed::of(py, object, key)? {
            for ranges in common(&boxed.memories()?, &boxed.ranges()) {
                let boxed = boxed.held(py).with(ranges);
                kept.push(NativeSnapshot::new(py, boxed)?);
            }
        }
        Ok(kept)
    }
}

impl NativeRecording {
    /// Says where gradients end between kernels: in a field without one, which another kernel has written from what
    /// has one.
    fn note_ends(&self, py: Python<'_>, kernel: &str, launch: &Prepared) -> PyResult<()> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = launch
            .instance
            .of_derivative
            .ends
            .as_ref()
            .filter(|_| self.is_strict)
        {
            return Err(error::runtime(py, text.trim_start_matches("warning: ")));
        }
        let untracked = &launch.instance.summary.untracked;
        for &storage in &untracked.read {
            let (name, memories) = launch.memories_of(storage)?;
            let found = memories.iter().find_map(|m| Some((*m, ended.get(m)?)));
            let Some((memory, writer)) = found else {
                continue;
            };
            // What it reads back in the same launch its own warning tells of.
            if *writer == format!("kernel `{kernel}`")
                && launch.instance.of_derivative.ends.is_some()
            {
                continue;
            }
            let (remedy, told) = match storage {
                Storage::Field(_) => ("make it with needs_grad=True", Told::Of(memory)),
                // Other arrays will lie at the same address.
                Storage::Array(_) => (
                    "pass a ti.ndarray with needs_grad=True, or a PyTorch tensor with requires_grad=True",
                    Told::Between(kernel.to_owned(), writer.clone(), name.clone()),
                ),
            };
            let mut all = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
            if all.insert(told) || self.is_strict {
                let text = format!(
                    "kernel `{kernel}` reads `{name}`, which {writer} has computed from data with a gradient; `{name}` has \
                     no gradient, so it counts as a constant: {remedy}, or read it as ti.stop_grad({name}[i]) if no \
                     gradient should pass"
                );
                if self.is_strict {
                    return Err(error::runtime(py, text));
                }
                let text = format!("warning: {text}");
                py.import("aerogel._log")?.call_method1("warn", (text,))?;
            }
        }
        // What has no gradient passes on what another kernel has written there.
        let mut written = untracked.written.clone();
        for &[from, to] in &untracked.passed {
            let memories = launch.memories_of(from)?.1;
            written.extend(Some(to).filter(|_| memories.iter().any(|m| ended.contains_key(m))));
        }
        for storage in written {
            for memory in launch.memories_of(storage)?.1 {
                let writer = || format!("kernel `{kernel}`");
                ended.entry(memory).or_insert_with(writer);
            }
        }
        Ok(())
    }

    /// Notes the arrays of a launch: none may share memory with another one that has a gradient of its own, if one is written.
    fn note_views(&self, py: Python<'_>, kernel: &str, launch: &Prepared) -> PyResult<()> {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        let writes = &launch.instance.primal_writes;
        let arrays = launch.packed.iter();
        let arrays = arrays.filter(|packed| matches!(packed, Packed::Array { .. }));
        for (at, packed) in arrays.enumerate() {
            let written = writes.get(at) != Some(&false);
            let Some(view) = View::new(packed, written, kernel)? else {
                continue;
            };
            self.expect_not_ended(py, &view)?;
            if let Err((this, other)) = views.add(view) {
                let text = format!(
                    "the array `{}` of kernel `{}` shares memory with `{}` of kernel `{}`, which was launched before, and each has its \
                     own gradient, so that gradients between them would be lost: pass the same array to both",
                    this.name, this.kernel, other.name, other.kernel
                );
                return Err(error::runtime(py, text));
            }
        }
        Ok(())
    }

    /// Reports if the memory of an array with a gradient was written through an array without one.
    fn expect_not_ended(&self, py: Python<'_>, view: &View) -> PyResult<()> {
        let range = view.range();
        if !view.has_gradient() || range.is_empty() {
            return Ok(());
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = Memory::Array(range.start)..Memory::Array(range.end);
        let Some((_, writer)) = ended.range(inside).next() else {
            return Ok(());
        };
        let text = format!(
            "kernel `{}` reads `{2}`, whose memory {1} has written, from data with a gradient, through an array without one: the \
             gradient ends there; pass `{2}` itself to both",
            view.kernel, writer, view.name
        );
        if self.is_strict {
            return Err(error::runtime(py, text));
        }
        let told = Told::Between(view.kernel.clone(), writer.clone(), view.name.clone());
        let mut all = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        if all.insert(told) {
            let text = format!("warning: {text}");
            py.import("aerogel._log")?.call_method1("warn", (text,))?;
        }
        Ok(())
    }

    /// Whether launches of the tape have used some memory.
    pub(super) fn has_used(&self, memory: Memory) -> bool {
        self.used().contains_key(&memory)
    }

    fn used(&self) -> MutexGuard<'_, BTreeMap<Memory, bool>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that a launch deactivates no cells that gradients of earlier launches need.
    fn expect_active(&self, py: Python<'_>, name: &str, launch: &Prepared) -> PyResult<()> {
        for &(tree, node) in &launch.instance.summary.deactivated {
            if let Some(store) = &launch.stores[tree] {
                let who = format!("kernel `{name}`");
                self.expect_unneeded(py, &who, store, node)?;
            }
        }
        Ok(())
    }

    fn expect_unneeded(
        &self,
        py: Python<'_>,
        who: &str,
        store: &TreeStore,
        node: NodeId,
    ) -> PyResult<()> {
        let used = self.used();
        let mut below = store.tree.subtree(node).into_iter();
        let is_needed = |&id: &NodeId| {
            let is_read = used.get(&Memory::Place(store.key, id)) == Some(&true);
            is_read && store.tree.is_below_sparse(id) || self.activity.is_asked(store.key, id)
        };
        if below.any(|id| is_needed(&id)) {
            let what = format!(
                "{who} deactivates cells{} that gradients of earlier kernels need: do that before or after the tape, or \
                 start a step of ti.ad.checkpoint with it",
                store.tree.of_fields(node)
            );
            return Err(error::runtime(py, what));
        }
        Ok(())
    }

    fn read(&self) -> MutexGuard<'_, BTreeMap<Memory, BoxSet>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
