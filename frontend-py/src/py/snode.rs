//! SNode trees of the running program: building them from Python, and their memory.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use aerogel_compiler::{Arch, SplitGrid};
use aerogel_runtime::TreeMemory;
use aerogel_runtime::tree::{Elements, NodeStats};
use aerogel_snode::{BuildError, NodeId, NodeKind, Tree, TreeBuilder};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::field::NativeField;
use super::foreign;
use super::placement::{self, Placement};
use super::{error, later, program, recorder, split_grid};

/// A kind of derivatives, as one bit.
#[derive(Clone, Copy)]
pub(crate) enum Cleared {
    Gradients = 1,
    Tangents = 2,
}

/// Sets derivatives to zero: all gradients, or all tangents, that trees have. A tree is skipped if its memory has not been
/// accessed since its derivatives were cleared.
#[pyfunction]
pub(crate) fn clear_derivatives(
    py: Python<'_>,
    fields: Vec<Bound<'_, NativeField>>,
    are_tangents: bool,
) -> PyResult<()> {
    let kind = match are_tangents {
        true => Cleared::Tangents,
        false => Cleared::Gradients,
    };
    let mut used = Vec::new();
    for field in &fields {
        let store = &field.get().placement(py)?.store;
        if !store.is_cleared(kind) {
            used.push((field, store));
        }
    }
    for (_, store) in &used {
        store.begin_clearing();
    }
    let zero = 0i32.into_pyobject(py)?;
    IS_CLEARING.set(true);
    let filled = used.iter().try_for_each(|(field, _)| {
        let zeros = vec![zero.clone().into_any(); field.get().n_components()];
        NativeField::fill(field, &zeros)
    });
    IS_CLEARING.set(false);
    for (_, store) in used {
        store.end_clearing(filled.is_ok().then_some(kind));
    }
    filled
}

thread_local! {
    /// Whether this thread sets derivatives to zero.
    static IS_CLEARING: Cell<bool> = const { Cell::new(false) };
}

/// Set in `TreeStore::cleared` while derivatives are set to zero, until another thread takes the memory.
const CLEARING: u8 = 1 << 7;

/// A tree that has been laid out, and its memory.
pub(crate) struct TreeStore {
    /// Unique in the process.
    pub(crate) key: u64,
    pub(crate) tree: Arc<Tree>,
    /// None once the tree is destroyed or the program reset.
    memory: RwLock<Option<Arc<TreeMemory>>>,
    /// The part of a grid that processes share, if it is that.
    pub(crate) grid: OnceLock<Arc<SplitGrid>>,
    /// Which kinds of derivatives are zero, `Cleared` or'ed together: cleared, and the memory was not accessed since.
    cleared: AtomicU8,
}

/// The most memory around a tree that catches indices which are off by a little. It takes no physical memory.
const MARGIN: u64 = 64 << 20;

static TREES: Mutex<(u64, BTreeMap<u64, Weak<TreeStore>>)> = Mutex::new((0, BTreeMap::new()));

fn trees() -> MutexGuard<'static, (u64, BTreeMap<u64, Weak<TreeStore>>)> {
    TREES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TreeStore {
    fn new(tree: Tree) -> PyResult<Arc<Self>> {
        Self::of_shared(Arc::new(tree))
    }

    /// A tree with memory of its own.
    pub(crate) fn of_shared(tree: Arc<Tree>) -> PyResult<Arc<Self>> {
        let margin = tree.byte_size().min(MARGIN) as usize;
        let memory =
            TreeMemory::new(tree.clone(), margin).map_err(|e| error::tree_memory(e, &tree))?;
        let mut trees = trees();
        trees.0 += 1;
        let store = Arc::new(Self {
            key: trees.0,
            tree,
            memory: RwLock::new(Some(Arc::new(memory))),
            grid: OnceLock::new(),
            cleared: AtomicU8::new(0),
        });
        let key = store.key;
        trees.1.insert(key, Arc::downgrade(&store));
        Ok(store)
    }

    /// The tree's memory, or an error when it is gone.
    pub(crate) fn memory(&self, py: Python<'_>) -> PyResult<Arc<TreeMemory>> {
        let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        let memory = memory.clone();
        // After the memory has been taken: `begin_clearing` looks for holders after it has set its bit.
        let cleared = self.cleared.load(Ordering::SeqCst);
        let takes_to_clear = cleared & CLEARING != 0 && IS_CLEARING.get();
        if cleared != 0 && !takes_to_clear {
            self.cleared.store(0, Ordering::SeqCst);
        }
        memory.ok_or_else(|| {
            let of_fields = self.tree.of_fields(Tree::ROOT);
            error::runtime(
                py,
                format!(
                    "the layout{of_fields} no longer exists: it was destroyed, or ti.init() or ti.reset() was called"
                ),
            )
        })
    }

    /// Whether the derivatives of a kind are known to be zero.
    pub(crate) fn is_cleared(&self, kind: Cleared) -> bool {
        self.cleared.load(Ordering::SeqCst) & kind as u8 != 0
    }

    /// Notes that this thread is about to set derivatives to zero.
    fn begin_clearing(&self) {
        self.cleared.fetch_or(CLEARING, Ordering::SeqCst);
        let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        // Another thread, or whoever shares the memory, may write at any time.
        if memory
            .as_ref()
            .is_none_or(|memory| Arc::strong_count(memory) > 1)
        {
            self.cleared.store(0, Ordering::SeqCst);
        }
    }

    /// Notes that all derivatives of a kind are zero, unless another thread may have written in the meantime.
    fn end_clearing(&self, kind: Option<Cleared>) {
        let noted = |cleared: u8| {
            let is_alone = cleared & CLEARING != 0;
            is_alone.then_some(cleared & !CLEARING | kind.map_or(0, |kind| kind as u8))
        };
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        // An error says that another thread has taken the memory: nothing is known then.
        let _ = self.cleared.fetch_update(set, fetch, noted);
    }

    fn destroy(&self) {
        *self.memory.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for TreeStore {
    fn drop(&mut self) {
        trees().1.remove(&self.key);
    }
}

/// The tree with a key, while it is alive.
pub(crate) fn find(key: u64) -> Option<Arc<TreeStore>> {
    trees().1.get(&key).and_then(Weak::upgrade)
}

/// The layout of the tree with a key.
pub(crate) fn tree_definition(key: u64) -> Option<Arc<Tree>> {
    find(key).map(|store| store.tree.clone())
}

fn all_trees() -> Vec<Arc<TreeStore>> {
    trees().1.values().filter_map(Weak::upgrade).collect()
}

/// Frees the memory of every tree.
pub(crate) fn destroy_all() {
    for store in all_trees() {
        store.destroy();
    }
}

/// Deactivates all cells of all sparse nodes.
#[pyfunction]
pub(crate) fn deactivate_all_snodes(py: Python<'_>) -> PyResult<()> {
    program::materialize(py)?;
    for store in all_trees() {
        // A tree that is gone has no cells.
        if let Ok(memory) = store.memory(py) {
            let root = NativeSNode::of_store(py, store, Tree::ROOT)?;
            recorder::before_deactivate(&Bound::new(py, root)?)?;
            deactivate_all(py, &memory, Tree::ROOT)?;
        }
    }
    Ok(())
}

fn deactivate_all(py: Python<'_>, memory: &TreeMemory, node: NodeId) -> PyResult<()> {
    if !memory.is_sparse() {
        return Ok(());
    }
    let compiler = program::compiler(py, &program::settings(py)?)?;
    py.detach(|| memory.deactivate_all(node, compiler.pool()))
        .map_err(error::memory)
}

enum Stage {
    Open(TreeBuilder, Vec<PendingField>),
    Laid(Arc<TreeStore>),
    Failed,
}

/// Which components of a field share the exponent of the component before them.
#[derive(Clone, Copy, Default)]
struct Shares {
    first: bool,
    others: bool,
}

struct PendingField {
    field: Py<NativeField>,
    places: Vec<NodeId>,
    offset: Vec<i32>,
}

/// A tree under construction, later the tree.
#[pyclass(name = "TreeBuilder", module = "aerogel._native", frozen)]
pub(crate) struct NativeTree {
    stage: Mutex<Stage>,
}

impl NativeTree {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build<T>(
        &self,
        f: impl FnOnce(&mut TreeBuilder, &mut Vec<PendingField>) -> PyResult<T>,
    ) -> PyResult<T> {
        match &mut *self.stage() {
            Stage::Open(builder, fields) => f(builder, fields),
            Stage::Laid(_) | Stage::Failed => {
                Err(PyRuntimeError::new_err("the layout is finished"))
            }
        }
    }

    fn place_under(
        &self,
        field: &Bound<'_, NativeField>,
        parents: &[NodeId],
        offset: Option<Vec<i32>>,
        shares: Shares,
    ) -> PyResult<()> {
        let this = field.get();
        this.claim(field.py())?;
        self.build(|builder, fields| {
            let (n, m) = this.tensor_shape().rows_and_columns();
            let count = (n * m) as usize;
            let places = (0..count)
                .map(|k| {
                    let name = if count == 1 {
                        this.name().to_owned()
                    } else {
                        format!("{}_{k}", this.name())
                    };
                    let parent = parents[if parents.len() == 1 { 0 } else { k }];
                    match this.quant(k) {
                        Some(quant) => {
                            let joins = shares.first || shares.others && k > 0;
                            builder.place_bits(parent, quant, joins, &name)
                        }
                        None => builder.place(parent, this.elem(), &name),
                    }
                })
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| PyValueError::new_err(e.to_string()))?;
            fields.push(PendingField {
                field: field.clone().unbind(),
                places,
                offset: offset.unwrap_or_default(),
            });
            Ok(())
        })
    }
}

#[pymethods]
impl NativeTree {
    #[new]
    fn new() -> Self {
        Self {
            stage: Mutex::new(Stage::Open(TreeBuilder::default(), Vec::new())),
        }
    }

    /// The root node.
    fn root(slf: &Bound<'_, Self>) -> NativeSNode {
        NativeSNode {
            tree: slf.clone().unbind(),
            node: Tree::ROOT,
        }
    }

    /// Places each component of a field under a node of its own.
    fn place_split(
        &self,
        field: &Bound<'_, NativeField>,
        nodes: Vec<PyRef<'_, NativeSNode>>,
        offset: Option<Vec<i32>>,
    ) -> PyResult<()> {
        let parents: Vec<NodeId> = nodes.iter().map(|n| n.node).collect();
        self.place_under(field, &parents, offset, Shares::default())
    }

    /// Lays the tree out and gives the fields their places.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let mut stage = self.stage();
        match std::mem::replace(&mut *stage, Stage::Failed) {
            Stage::Open(builder, fields) => match laid_out(py, builder, &fields) {
                Ok(store) => *stage = Stage::Laid(store),
                Err(e) => {
                    let fields = fields.iter();
                    fields.for_each(|pending| pending.field.get().fail(py, &e));
                    return Err(e);
                }
            },
            other => *stage = other,
        }
        Ok(())
    }

    /// The key of a finished layout.
    fn key(&self) -> PyResult<u64> {
        match &*self.stage() {
            Stage::Laid(store) => Ok(store.key),
            _ => Err(PyRuntimeError::new_err("the layout is not finished")),
        }
    }

    /// Makes a finished layout the part of a grid that processes share; returns its key.
    fn split(
        &self,
        axes: Vec<split_grid::AxisArgs>,
        is_trusted: bool,
        is_sparse: bool,
    ) -> PyResult<u64> {
        let Stage::Laid(store) = &*self.stage() else {
            return Err(PyRuntimeError::new_err("the layout is not finished"));
        };
        let grid = split_grid::grid(axes, is_trusted, is_sparse);
        let _ = store.grid.set(Arc::new(grid));
        Ok(store.key)
    }

    /// Frees the memory.
    fn destroy(&self) {
        if let Stage::Laid(store) = &*self.stage() {
            store.destroy();
        }
    }
}

/// Lays a tree out and gives fields their places.
fn laid_out(
    py: Python<'_>,
    mut builder: TreeBuilder,
    fields: &[PendingField],
) -> PyResult<Arc<TreeStore>> {
    // GPUs keep blocks: the threads of a block share the cells of one.
    if !matches!(program::settings(py)?.arch, Arch::Cuda(_)) {
        builder.merge_blocks();
    }
    let tree = builder
        .finish()
        .map_err(|e| PyValueError::new_err(e.to_string()))?;
    let store = TreeStore::new(tree)?;
    for pending in fields {
        let shape = store.tree.shape(pending.places[0]);
        let n_axes = shape.len();
        let differs = |&p: &NodeId| store.tree.shape(p) != shape;
        if pending.places.iter().any(differs) {
            return Err(PyValueError::new_err(
                "the components of a field are placed with different shapes",
            ));
        }
        if !pending.offset.is_empty() && pending.offset.len() != n_axes {
            return Err(PyValueError::new_err(format!(
                "the offset has {} numbers, the field {n_axes} axes",
                pending.offset.len()
            )));
        }
        let (places, offset) = (pending.places.clone(), pending.offset.clone());
        let placement = Placement::new(store.clone(), places, offset);
        pending.field.bind(py).get().put(placement);
    }
    Ok(store)
}

/// What Python hears of a sparse node: kind, shape, active cells, elements of arenas in use, bytes of
/// these, and bytes held.
type StatsRow = (String, Vec<u64>, u64, u64, u64, u64);

/// A node of a tree.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeSNode {
    tree: Py<NativeTree>,
    node: NodeId,
}

impl NativeSNode {
    /// The layout that it is part of, and its number there.
    pub(super) fn in_store(&self, py: Python<'_>) -> PyResult<(Arc<TreeStore>, NodeId)> {
        Ok((self.store(py)?, self.node))
    }

    /// A node of a tree that has been laid out.
    pub(crate) fn of_store(py: Python<'_>, store: Arc<TreeStore>, node: NodeId) -> PyResult<Self> {
        let tree = NativeTree {
            stage: Mutex::new(Stage::Laid(store)),
        };
        Ok(Self {
            tree: Py::new(py, tree)?,
            node,
        })
    }

    fn below(
        &self,
        py: Python<'_>,
        add: impl FnOnce(&mut TreeBuilder) -> Result<NodeId, BuildError>,
    ) -> PyResult<Self> {
        let node = self
            .tree
            .get()
            .build(|builder, _| add(builder).map_err(|e| PyValueError::new_err(e.to_string())))?;
        Ok(Self {
            tree: self.tree.clone_ref(py),
            node,
        })
    }

    fn store(&self, py: Python<'_>) -> PyResult<Arc<TreeStore>> {
        program::materialize(py)?;
        match &*self.tree.get().stage() {
            Stage::Laid(store) => Ok(store.clone()),
            Stage::Open(..) | Stage::Failed => {
                Err(error::runtime(py, "the layout could not be made"))
            }
        }
    }

    fn memory(&self, py: Python<'_>) -> PyResult<Arc<TreeMemory>> {
        later::settle(py)?;
        self.store(py)?.memory(py)
    }

    fn cells(&self) -> Elements<'_> {
        Elements {
            places: std::slice::from_ref(&self.node),
            item: 0,
            offset: &[],
        }
    }

    /// The tree's key and the node, once laid out.
    pub(crate) fn placed(&self, py: Python<'_>) -> PyResult<(u64, NodeId)> {
        let store = self.store(py)?;
        store.memory(py)?;
        Ok((store.key, self.node))
    }

    /// How many index axes the node's cells have; 0 before the tree is laid out.
    pub(crate) fn ndim(&self) -> u32 {
        match &*self.tree.get().stage() {
            Stage::Laid(store) => store.tree.shape_axes(self.node).len() as u32,
            Stage::Open(..) | Stage::Failed => 0,
        }
    }
}

#[pymethods]
impl NativeSNode {
    /// Adds a node of a kind; dynamic ones have a chunk size, those of words a number of bits.
    #[pyo3(signature = (kind, axes, number = 0))]
    fn node(
        &self,
        py: Python<'_>,
        kind: &str,
        axes: Vec<(u8, u32)>,
        number: u32,
    ) -> PyResult<Self> {
        let kind = match kind {
            "dense" => NodeKind::Dense,
            "bitmasked" => NodeKind::Bitmasked,
            "pointer" => NodeKind::Pointer,
            "hash" => NodeKind::Hash,
            "dynamic" => NodeKind::Dynamic { chunk: number },
            "quant_array" => {
                return self.below(py, |builder| builder.quant_array(self.node, &axes, number));
            }
            _ => return Err(PyValueError::new_err(format!("there are no {kind} nodes"))),
        };
        self.below(py, |builder| builder.node(self.node, kind, &axes))
    }

    /// Adds a word of so many bits.
    fn bit_struct(&self, py: Python<'_>, bits: u32) -> PyResult<Self> {
        self.below(py, |builder| builder.bit_struct(self.node, bits))
    }

    /// Places the components of fields in this word, but leaves the fields unplaced.
    fn try_bits(&self, fields: Vec<Bound<'_, NativeField>>, shared: bool) -> PyResult<()> {
        self.tree.get().build(|builder, _| {
            let mut trial = builder.clone();
            let mut joins = false;
            for field in &fields {
                let this = field.get();
                for k in 0..this.n_components() {
                    let placed = match this.quant(k) {
                        Some(quant) => trial.place_bits(self.node, quant, joins, this.name()),
                        None => trial.place(self.node, this.elem(), this.name()),
                    };
                    placed.map_err(|e| PyValueError::new_err(e.to_string()))?;
                    joins = shared;
                }
            }
            *builder = trial;
            Ok(())
        })
    }

    /// Makes all cells inactive, of this node and of those below.
    fn deactivate_all(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let memory = this.memory(py)?;
        recorder::before_deactivate(slf)?;
        deactivate_all(py, &memory, this.node)
    }

    /// Statistics of this node and those below, if they are sparse.
    fn stats(&self, py: Python<'_>) -> PyResult<Vec<StatsRow>> {
        let memory = self.memory(py)?;
        let tree = memory.tree();
        let below = tree.subtree(self.node);
        let stats = py.detach(|| memory.come_home().map(|()| memory.stats()));
        let stats = stats.map_err(error::memory)?.into_iter();
        let describe = |s: NodeStats| {
            let kind = tree[s.node].kind.name().unwrap_or_default().to_owned();
            (
                kind,
                tree.shape(s.node),
                s.cells,
                s.elements,
                s.used_bytes,
                s.held_bytes,
            )
        };
        Ok(stats
            .filter(|s| below.contains(&s.node))
            .map(describe)
            .collect())
    }

    /// Indices of the active cells: int32, as bytes.
    fn active_cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        let memory = self.memory(py)?;
        let compiler = program::compiler(py, &program::settings(py)?)?;
        let pieces = py
            .detach(|| memory.active_cells(self.cells(), compiler.pool()))
            .map_err(error::memory)?;
        placement::joined(py, &pieces, |piece| &piece.coordinates)
    }

    /// Makes the cells at some indices active.
    fn activate_cells(&self, py: Python<'_>, coordinates: &Bound<'_, PyAny>) -> PyResult<()> {
        let memory = self.memory(py)?;
        let coordinates = foreign::on_host(coordinates)?;
        let shape = memory.tree().shape(self.node);
        let rows = placement::coordinate_rows(&coordinates, shape.len())?;
        if let Some(row) = memory.first_outside(self.node, &rows) {
            return Err(error::exception(
                py,
                "AerogelIndexError",
                format!(
                    "index {:?} is out of range for a node of shape {shape:?}",
                    &rows[row * shape.len()..][..shape.len()]
                ),
            ));
        }
        let n = coordinates.shape[0];
        let compiler = program::compiler(py, &program::settings(py)?)?;
        py.detach(|| memory.set_cells(self.cells(), n, &rows, None, compiler.pool()))
            .map_err(error::memory)
    }

    /// The tree in the notation of the IR's text.
    fn tree_text(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.store(py)?.tree.to_string())
    }

    /// Bytes of a cell, and where the node begins in its parent's cell.
    fn layout(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let memory = self.memory(py)?;
        let tree = memory.tree();
        let node = &tree[self.node];
        // A cell of a merged node has the size of a block, although its bytes are apart.
        let merged = |id: &NodeId| tree[*id].merged;
        let above = tree.chain(self.node).into_iter().rev();
        let n_cells = above.take_while(merged).flat_map(|id| &tree[id].divides);
        let n_cells: u64 = n_cells.map(|a| u64::from(a.extent)).product();
        Ok((node.cell_size / n_cells, node.offset_in_cell))
    }

    /// Places all components of a field side by side. If they are `shared`, they have one exponent, which
    /// is that of what was placed before if the field `joins` it.
    #[pyo3(signature = (field, offset, shared = false, joins = false))]
    fn place(
        &self,
        field: &Bound<'_, NativeField>,
        offset: Option<Vec<i32>>,
        shared: bool,
        joins: bool,
    ) -> PyResult<()> {
        let shares = Shares {
            first: joins,
            others: shared,
        };
        self.tree
            .get()
            .place_under(field, &[self.node], offset, shares)
    }
}
