//! SNode trees of the running program: building them from Python, and their memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use aerogel_runtime::TreeMemory;
use aerogel_snode::{NodeId, Tree, TreeBuilder};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::field::{NativeField, Placement};
use super::{error, module};

/// A tree that has been laid out, and its memory.
pub(crate) struct TreeStore {
    /// Unique in the process.
    pub(crate) key: u64,
    pub(crate) tree: Arc<Tree>,
    /// None once the tree is destroyed or the program reset.
    memory: RwLock<Option<Arc<TreeMemory>>>,
}

/// The most memory around a tree that catches indices which are off by a little. It takes no physical memory.
const MARGIN: u64 = 64 << 20;

static TREES: Mutex<(u64, BTreeMap<u64, Weak<TreeStore>>)> = Mutex::new((0, BTreeMap::new()));

fn trees() -> MutexGuard<'static, (u64, BTreeMap<u64, Weak<TreeStore>>)> {
    TREES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TreeStore {
    fn new(tree: Tree) -> PyResult<Arc<Self>> {
        let tree = Arc::new(tree);
        let margin = tree.byte_size().min(MARGIN) as usize;
        let memory = TreeMemory::new(tree.clone(), margin).map_err(error::memory)?;
        let mut trees = trees();
        trees.0 += 1;
        let store = Arc::new(Self {
            key: trees.0,
            tree,
            memory: RwLock::new(Some(Arc::new(memory))),
        });
        let key = store.key;
        trees.1.insert(key, Arc::downgrade(&store));
        Ok(store)
    }

    /// The tree's memory, or an error when it is gone.
    pub(crate) fn memory(&self, py: Python<'_>) -> PyResult<Arc<TreeMemory>> {
        let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        memory.clone().ok_or_else(|| {
            error::runtime(
                py,
                "the field is gone: its layout was destroyed, or the program reset by ti.init() or ti.reset()",
            )
        })
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

/// Frees the memory of every tree.
pub(crate) fn destroy_all() {
    let all: Vec<Arc<TreeStore>> = trees().1.values().filter_map(Weak::upgrade).collect();
    for store in all {
        store.destroy();
    }
}

enum Stage {
    Open(TreeBuilder, Vec<PendingField>),
    Laid(Arc<TreeStore>),
    Failed,
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
    ) -> PyResult<()> {
        let this = field.get();
        this.claim()?;
        self.build(|builder, fields| {
            let (n, m, _) = this.tensor_shape();
            let count = (n * m) as usize;
            let places = (0..count)
                .map(|k| {
                    let name = if count == 1 {
                        this.name().to_owned()
                    } else {
                        format!("{}_{k}", this.name())
                    };
                    let parent = parents[if parents.len() == 1 { 0 } else { k }];
                    builder.place(parent, this.elem(), &name)
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
        self.place_under(field, &parents, offset)
    }

    /// Lays the tree out and gives the fields their places.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let mut stage = self.stage();
        match std::mem::replace(&mut *stage, Stage::Failed) {
            Stage::Open(builder, fields) => {
                let tree = builder
                    .finish()
                    .map_err(|e| PyValueError::new_err(e.to_string()))?;
                let store = TreeStore::new(tree)?;
                for pending in fields {
                    let field = pending.field.bind(py).get();
                    let n_axes = store.tree.shape(pending.places[0]).len();
                    if !pending.offset.is_empty() && pending.offset.len() != n_axes {
                        return Err(PyValueError::new_err(format!(
                            "the offset has {} numbers, the field {n_axes} axes",
                            pending.offset.len()
                        )));
                    }
                    field.put(Placement::new(
                        store.clone(),
                        pending.places,
                        pending.offset,
                    ));
                }
                *stage = Stage::Laid(store);
            }
            other => *stage = other,
        }
        Ok(())
    }

    /// Frees the memory.
    fn destroy(&self) {
        if let Stage::Laid(store) = &*self.stage() {
            store.destroy();
        }
    }
}

/// A node of a tree.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeSNode {
    tree: Py<NativeTree>,
    node: NodeId,
}

impl NativeSNode {
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

    /// The tree's key and the node, once laid out.
    pub(crate) fn placed(&self, py: Python<'_>) -> PyResult<(u64, NodeId)> {
        module::materialize(py)?;
        match &*self.tree.get().stage() {
            Stage::Laid(store) => {
                store.memory(py)?;
                Ok((store.key, self.node))
            }
            Stage::Open(..) | Stage::Failed => {
                Err(error::runtime(py, "the layout could not be made"))
            }
        }
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
    /// Adds a dense node.
    fn dense(&self, axes: Vec<(u8, u32)>) -> PyResult<Self> {
        Python::attach(|py| {
            let node = self.tree.get().build(|builder, _| {
                builder
                    .dense(self.node, &axes)
                    .map_err(|e| PyValueError::new_err(e.to_string()))
            })?;
            Ok(Self {
                tree: self.tree.clone_ref(py),
                node,
            })
        })
    }

    /// Places all components of a field side by side.
    fn place(&self, field: &Bound<'_, NativeField>, offset: Option<Vec<i32>>) -> PyResult<()> {
        self.tree.get().place_under(field, &[self.node], offset)
    }
}
