//! Snapshots of activity: which cells of sparse fields were active when launches on a tape queried them.
//!
//! In the backward pass a loop over cells would visit more cells if later launches have activated some. So the result of a
//! launch's query is stored, as a list of the active cells of a node, shared by all launches between two changes. If the
//! list has changed since, the gradient queries a second tree of the same layout, in which just these cells are active.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aerogel_compiler::Moment;
use aerogel_runtime::TreeMemory;
use aerogel_snode::NodeId;
use pyo3::prelude::*;

use super::snode::TreeStore;
use super::{error, program};

/// The active cells of a node, each by its number.
type Cells = Arc<Vec<u64>>;

/// Nodes with those of their cells that were active.
type Nodes = Vec<(NodeId, Cells)>;

/// A node whose activity launches query: the key of its tree, and its number there.
type Key = (u64, NodeId);

/// The state of the nodes whose activity launches on a tape have queried.
#[derive(Default)]
pub(super) struct Activity {
    /// The active cells at the last query, and a number that changes with them.
    last: Mutex<BTreeMap<Key, (u32, Cells)>>,
    /// The trees that say which cells were active, each with what that is now.
    past: Mutex<BTreeMap<u64, Shown>>,
}

/// A tree in which those cells are active that once were in another one.
#[derive(Clone)]
struct Shown {
    memory: Arc<TreeMemory>,
    nodes: Nodes,
}

/// The active cells that a launch has queried.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeAsked {
    kernel: String,
    nodes: Mutex<Vec<Node>>,
}

struct Node {
    store: Arc<TreeStore>,
    node: NodeId,
    /// None until the launch is over, if that is what counts.
    cells: Option<Cells>,
    /// Bytes that no earlier launch has stored.
    fresh: usize,
}

#[pymethods]
impl NativeAsked {
    /// A number that depends on all of it.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for node in self.nodes().iter() {
            (node.node.as_u32(), &node.cells).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// How many bytes are stored that no earlier launch stores.
    #[getter]
    fn nbytes(&self) -> usize {
        self.nodes().iter().map(|node| node.fresh).sum()
    }
}

impl NativeAsked {
    fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The trees that tell one launch which cells were active.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativePast {
    trees: Vec<(u64, Arc<TreeMemory>)>,
}

impl NativePast {
    /// The memory that stands for that of a tree.
    pub(super) fn memory(&self, of: u64) -> Option<Arc<TreeMemory>> {
        let mut all = self.trees.iter();
        all.find(|(key, _)| *key == of)
            .map(|(_, memory)| memory.clone())
    }
}

impl Activity {
    /// The queries of a launch that is about to run, of trees by their numbers; nothing if it has none.
    pub(super) fn before_launch(
        &self,
        py: Python<'_>,
        kernel: &str,
        asked: &[(usize, NodeId, Moment)],
        stores: &[Option<Arc<TreeStore>>],
    ) -> PyResult<Option<NativeAsked>> {
        let mut nodes = Vec::new();
        for &(tree, node, at) in asked {
            let Some(store) = &stores[tree] else {
                continue;
            };
            let mut node = Node {
                store: store.clone(),
                node,
                cells: None,
                fresh: 0,
            };
            if at == Moment::Start {
                self.look(py, &mut node)?;
            }
            nodes.push(node);
        }
        Ok((!nodes.is_empty()).then(|| NativeAsked {
            kernel: kernel.to_owned(),
            nodes: Mutex::new(nodes),
        }))
    }

    /// The rest of it, when the launch is over.
    pub(super) fn after_launch(&self, py: Python<'_>, asked: &NativeAsked) -> PyResult<()> {
        let mut nodes = asked.nodes();
        let mut open = nodes.iter_mut().filter(|node| node.cells.is_none());
        open.try_for_each(|node| self.look(py, node))
    }

    /// What tells the gradient of a launch which cells were active; nothing if they are the same now.
    pub(super) fn past(&self, py: Python<'_>, asked: &NativeAsked) -> PyResult<Option<NativePast>> {
        if self.first_changed(py, asked)?.is_none() {
            return Ok(None);
        }
        let mut trees: BTreeMap<u64, (Arc<TreeStore>, Nodes)> = BTreeMap::new();
        for node in asked.nodes().iter() {
            let of = trees.entry(node.store.key);
            let (_, nodes) = of.or_insert_with(|| (node.store.clone(), Vec::new()));
            nodes.extend(node.cells.clone().map(|cells| (node.node, cells)));
        }
        let shown = trees.into_values().map(|(store, nodes)| {
            let memory = self.shown(py, &store, nodes)?;
            Ok((store.key, memory))
        });
        let trees = shown.collect::<PyResult<_>>()?;
        Ok(Some(NativePast { trees }))
    }

    /// Checks that the active cells are those that a launch has seen.
    pub(super) fn expect_same(&self, py: Python<'_>, asked: &NativeAsked) -> PyResult<()> {
        let Some((store, node)) = self.first_changed(py, asked)? else {
            return Ok(());
        };
        let (kernel, of_fields) = (&asked.kernel, store.tree.of_fields(node));
        let what = format!(
            "kernel `{kernel}` has queried which cells{of_fields} are active, and that has changed since: its custom gradient \
             would query the new state; activate cells before the tape"
        );
        Err(error::runtime(py, what))
    }

    /// Whether a launch has queried a node's cells, or those of a node above it.
    pub(super) fn is_asked(&self, tree: u64, node: NodeId) -> bool {
        self.last().contains_key(&(tree, node))
    }

    fn last(&self) -> MutexGuard<'_, BTreeMap<Key, (u32, Cells)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first_changed(
        &self,
        py: Python<'_>,
        asked: &NativeAsked,
    ) -> PyResult<Option<(Arc<TreeStore>, NodeId)>> {
        for node in asked.nodes().iter() {
            let mut now = Node {
                store: node.store.clone(),
                cells: None,
                ..*node
            };
            self.look(py, &mut now)?;
            if now.cells != node.cells {
                return Ok(Some((now.store, now.node)));
            }
        }
        Ok(None)
    }

    /// Fills in which cells of a node are active now.
    fn look(&self, py: Python<'_>, node: &mut Node) -> PyResult<()> {
        let memory = node.store.memory(py)?;
        let topology = py
            .detach(|| memory.come_home().map(|()| memory.topology(node.node)))
            .map_err(error::memory)?;
        let key = (node.store.key, node.node);
        let known = self.last().get(&key).cloned();
        if let Some((_, cells)) = known.clone().filter(|(at, _)| *at == topology) {
            node.cells = Some(cells);
            return Ok(());
        }
        let found = py
            .detach(|| memory.active(node.node))
            .map_err(error::memory)?;
        let cells = match known {
            Some((_, cells)) if *cells == found => cells,
            _ => {
                node.fresh = found.len() * size_of::<u64>();
                Arc::new(found)
            }
        };
        self.last().insert(key, (topology, cells.clone()));
        node.cells = Some(cells);
        Ok(())
    }

    /// A tree like another one in which just some cells are active.
    fn shown(&self, py: Python<'_>, store: &TreeStore, nodes: Nodes) -> PyResult<Arc<TreeMemory>> {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let known = past.get(&store.key);
        if let Some(shown) = known.filter(|shown| shown.nodes == nodes) {
            return Ok(shown.memory.clone());
        }
        let memory = match known {
            Some(shown) => shown.memory.clone(),
            None => {
                let memory = TreeMemory::new(store.tree.clone(), 0);
                Arc::new(memory.map_err(|e| error::tree_memory(e, &store.tree))?)
            }
        };
        let compiler = program::compiler(py, &program::settings(py)?)?;
        let wanted: Vec<(NodeId, &[u64])> = nodes
            .iter()
            .map(|(node, cells)| (*node, &cells[..]))
            .collect();
        py.detach(|| memory.set_active(&wanted, compiler.pool()))
            .map_err(error::memory)?;
        let shown = Shown {
            memory: memory.clone(),
            nodes,
        };
        past.insert(store.key, shown);
        Ok(memory)
    }
}
