//! Which cells of a node are active, as a list that the host can keep and compare.

use aerogel_snode::{NodeId, Tree, control};

use super::TreeMemory;
use crate::buffer::MemoryError;
use crate::cpu::Pool;

impl TreeMemory {
    /// A number that changes when cells of a node, or cells that these lie in, become active or inactive. No launch may run
    /// meanwhile; it waits.
    pub fn topology(&self, node: NodeId) -> u32 {
        let _turn = self.alone();
        self.count_changes(node)
    }

    /// The same for a caller with exclusive access to the memory.
    pub(super) fn count_changes(&self, node: NodeId) -> u32 {
        let mut stamp = 1_u32;
        for above in self.tree.sparse_chain(node) {
            let control = self.tree[above].first_control;
            let mut epoch = self.get(control, control::EPOCH);
            if self.get(control, control::CHANGED) != 0 {
                self.set(control, control::CHANGED, 0);
                epoch = epoch.wrapping_add(1);
                self.set(control, control::EPOCH, epoch);
            }
            stamp = stamp.wrapping_add(epoch);
        }
        stamp
    }

    /// The active cells of a node: the number of each in its index space, row-major, ascending.
    pub fn active(&self, node: NodeId) -> Result<Vec<u64>, MemoryError> {
        let _share = self.share();
        self.come_home()?;
        let shape = self.tree.shape(node);
        let mut cells = Vec::new();
        self.visit_active(node, &mut |_, indices| {
            let along = indices.iter().zip(&shape);
            cells.push(along.fold(0, |at, (&index, extent)| at * extent + index as u64));
            Ok::<_, MemoryError>(())
        })?;
        cells.sort_unstable();
        Ok(cells)
    }

    /// Makes exactly these cells of some nodes active, and what they lie in; all else of the tree becomes inactive.
    pub fn set_active(&self, nodes: &[(NodeId, &[u64])], pool: &Pool) -> Result<(), MemoryError> {
        self.deactivate_all(Tree::ROOT, pool)?;
        let _share = self.share();
        self.come_home()?;
        for &(node, cells) in nodes {
            let shape = self.tree.shape(node);
            let mut indices = vec![0; shape.len()];
            for &cell in cells {
                let mut rest = cell;
                for (index, extent) in indices.iter_mut().zip(&shape).rev() {
                    (*index, rest) = ((rest % extent) as i64, rest / extent);
                }
                self.obtain_element(node, &indices)?;
            }
        }
        Ok(())
    }
}
