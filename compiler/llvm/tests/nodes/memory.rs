//! What lies in a sparse tree's memory, read by its format.

use aerogel_base::ScalarType;
use aerogel_runtime::TreeMemory;
use aerogel_snode::{NodeId, NodeKind, control};

pub(crate) fn word(memory: &TreeMemory, at: u64) -> u32 {
    memory.read_scalar(ScalarType::U32, at).unwrap().as_i128() as u32
}

pub(crate) fn offset(memory: &TreeMemory, at: u64) -> u64 {
    memory.read_scalar(ScalarType::U64, at).unwrap().as_i128() as u64
}

/// The offset of a control block.
pub(crate) fn control(memory: &TreeMemory, node: NodeId, k: u64) -> u64 {
    let number = u64::from(memory.tree()[node].first_control) + k;
    memory.tree().control_offset(number)
}

/// The offset of the container of a child of the root.
pub(crate) fn container(memory: &TreeMemory, node: NodeId) -> u64 {
    memory.tree()[node].offset_in_cell
}

/// The offset of an element.
pub(crate) fn element(memory: &TreeMemory, node: NodeId, k: u64, number: u32) -> u64 {
    let elements = offset(memory, control(memory, node, k) + control::ELEMENTS);
    elements + u64::from(number) * memory.tree()[node].element_size(k)
}

/// How many elements of an arena cells use.
pub(crate) fn active(memory: &TreeMemory, block: u64) -> u32 {
    let word = |at: u64| word(memory, block + at);
    let (taken, n_free) = (word(control::TAKEN), word(control::N_FREE));
    let used = taken.min(n_free);
    let end = (word(control::BUMP) + taken - used).min(word(control::LIMIT));
    end - 1 - (n_free - used) - word(control::N_RECYCLED)
}

/// The `i32` in each cell of a dynamic container that lies in a dense node below the root.
pub(crate) fn dynamic_values(memory: &TreeMemory, node: NodeId, which: u64) -> Vec<u32> {
    let tree = memory.tree();
    let data = &tree[node];
    let NodeKind::Dynamic { chunk } = data.kind else {
        panic!("the node is dynamic")
    };
    let dense = data.parent.unwrap();
    let at = container(memory, dense) + which * tree[dense].cell_size;
    (0..word(memory, at))
        .map(|i| {
            let k = u64::from((i / chunk + 1).ilog2());
            let first = chunk * ((1 << k) - 1);
            let number = word(memory, at + 4 * (1 + k));
            let element = element(memory, node, k, number);
            word(memory, element + u64::from(i - first) * data.cell_size)
        })
        .collect()
}
