//! Cells at rows of indices, for processes that exchange them around the loops of a launch.
//!
//! Nothing here waits for launches: the caller has exclusive access to the memory, or is what a launch calls between its tasks.

use aerogel_snode::NodeId;

use super::TreeMemory;
use crate::buffer::MemoryError;

impl TreeMemory {
    /// The indices of the active cells of a node, or of the active elements of a place, in boxes: box after box, row after row. Of
    /// a box: along each axis the first index, and the one after the last.
    pub fn cells_in(
        &self,
        node: NodeId,
        boxes: &[Vec<(u64, u64)>],
    ) -> Result<Vec<i32>, MemoryError> {
        let mut rows = Vec::new();
        for ranges in boxes {
            self.visit_active_in(node, ranges, &mut |_, indices| {
                rows.extend(indices.iter().map(|&index| index as i32));
                Ok::<_, MemoryError>(())
            })?;
        }
        Ok(rows)
    }

    /// Makes cells of a node active, and those that they lie in.
    pub fn activate_rows(&self, node: NodeId, rows: &[i32]) -> Result<(), MemoryError> {
        self.each_row(node, rows, |indices| {
            self.obtain_element(node, indices).map(drop)
        })
    }

    /// Makes cells of a node inactive, with all below them, which becomes zero.
    pub fn deactivate_rows(&self, node: NodeId, rows: &[i32]) -> Result<(), MemoryError> {
        self.each_row(node, rows, |indices| self.deactivate(node, indices))?;
        self.collect_all()
    }

    /// The bytes of elements of a place; zeros of inactive ones.
    pub fn read_rows(&self, place: NodeId, rows: &[i32]) -> Result<Vec<u8>, MemoryError> {
        let item = self.item(place);
        let mut bytes = Vec::new();
        self.each_row(place, rows, |indices| {
            let at = bytes.len();
            bytes.resize(at + item, 0);
            match self.find_element(place, indices)? {
                Some(element) => self.read_bytes(place, element, indices, &mut bytes[at..]),
                None => Ok(()),
            }
        })?;
        Ok(bytes)
    }

    /// Writes elements of a place, which become active.
    pub fn write_rows(
        &self,
        place: NodeId,
        rows: &[i32],
        values: &[u8],
    ) -> Result<(), MemoryError> {
        let mut values = values.chunks_exact(self.item(place));
        self.each_row(place, rows, |indices| {
            let element = self.obtain_element(place, indices)?;
            match values.next() {
                Some(value) => self.write_bytes(place, element, indices, value),
                None => Ok(()),
            }
        })
    }

    fn item(&self, place: NodeId) -> usize {
        let ty = self.tree()[place].kind.scalar();
        ty.map_or(1, |ty| ty.bytes() as usize)
    }

    fn each_row(
        &self,
        node: NodeId,
        rows: &[i32],
        mut call: impl FnMut(&[i64]) -> Result<(), MemoryError>,
    ) -> Result<(), MemoryError> {
        let n_axes = self.tree().shape(node).len().max(1);
        let mut indices = vec![0_i64; n_axes];
        rows.chunks_exact(n_axes).try_for_each(|row| {
            for (index, &given) in indices.iter_mut().zip(row) {
                *index = i64::from(given);
            }
            call(&indices)
        })
    }
}
