//! Cells of sparse trees that processes share, as Python exchanges them around the loops of a launch.

use std::sync::Arc;

use aerogel_runtime::TreeMemory;
use aerogel_snode::NodeId;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::snode;
use super::{error, program};

/// The memory of a sparse tree, for the thread that launches a kernel: nothing waits for a launch.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct SplitCells {
    memory: Arc<TreeMemory>,
}

fn rows(bytes: &[u8]) -> Vec<i32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|&word| i32::from_ne_bytes(word)).collect()
}

#[pymethods]
impl SplitCells {
    /// The sparse nodes from the outside in: the number of each, and its shape.
    fn sparse_nodes(&self) -> Vec<(u32, Vec<u64>)> {
        let tree = self.memory.tree();
        let sparse = tree.nodes().filter(|(_, data)| data.kind.is_sparse());
        let described = sparse.map(|(node, _)| (node.as_u32(), tree.shape(node)));
        described.collect()
    }

    /// The shape of a node or place, and the name of its numbers' type.
    fn describe(&self, node: u32) -> (Vec<u64>, String) {
        let (tree, node) = (self.memory.tree(), NodeId::from_u32(node));
        let ty = tree[node].kind.scalar();
        (
            tree.shape(node),
            ty.map_or_else(String::new, |ty| ty.to_string()),
        )
    }

    /// Rows of int32 indices, as bytes: those of active cells in boxes.
    fn cells<'py>(
        &self,
        py: Python<'py>,
        node: u32,
        boxes: Vec<Vec<(u64, u64)>>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let found = self.memory.cells_in(NodeId::from_u32(node), &boxes);
        let found = found.map_err(error::memory)?;
        let bytes: Vec<u8> = found.iter().flat_map(|index| index.to_ne_bytes()).collect();
        Ok(PyByteArray::new(py, &bytes))
    }

    /// Makes cells active.
    fn activate(&self, node: u32, indices: &[u8]) -> PyResult<()> {
        let done = self
            .memory
            .activate_rows(NodeId::from_u32(node), &rows(indices));
        done.map_err(error::memory)
    }

    /// Makes cells inactive.
    fn deactivate(&self, node: u32, indices: &[u8]) -> PyResult<()> {
        let done = self
            .memory
            .deactivate_rows(NodeId::from_u32(node), &rows(indices));
        done.map_err(error::memory)
    }

    /// The bytes of elements.
    fn read<'py>(
        &self,
        py: Python<'py>,
        place: u32,
        indices: &[u8],
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let values = self
            .memory
            .read_rows(NodeId::from_u32(place), &rows(indices));
        Ok(PyByteArray::new(py, &values.map_err(error::memory)?))
    }

    /// Writes elements.
    fn write(&self, place: u32, indices: &[u8], values: &[u8]) -> PyResult<()> {
        let done = self
            .memory
            .write_rows(NodeId::from_u32(place), &rows(indices), values);
        done.map_err(error::memory)
    }
}

/// The cells of a tree, by the tree's key.
#[pyfunction]
pub(crate) fn split_cells(py: Python<'_>, key: u64) -> PyResult<SplitCells> {
    program::materialize(py)?;
    let store = snode::find(key).ok_or_else(|| error::runtime(py, "a layout no longer exists"))?;
    Ok(SplitCells {
        memory: store.memory(py)?,
    })
}
