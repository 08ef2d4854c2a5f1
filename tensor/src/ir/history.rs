//! Histories: stacks onto which a program pushes values, and from which it pops them.

use aerogel_runtime::buffer::MemoryError;

use super::array::{Array, Operand};
use super::library::LibraryError;

/// The values on a pile. Where a mask says who takes part, each lane has a pile of its own: value `k` has the `k`th of each.
#[derive(Debug)]
pub(crate) struct History<T> {
    values: Vec<T>,
    /// How many values each lane has, if lanes put theirs by themselves.
    depths: Vec<usize>,
}

/// Numbers of which equal parts, one behind the other, are the lanes'.
pub(crate) trait Lanes: Sized {
    /// Whether both have one type and one shape.
    fn is_like(&self, other: &Self) -> bool;
    fn zeros_like(&self) -> Result<Self, MemoryError>;
    /// Copies the part of a lane.
    fn copy_lane(&mut self, from: &Self, lane: usize, n_lanes: usize) -> Result<(), MemoryError>;
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            depths: Vec::new(),
        }
    }
}

impl<T: Lanes> History<T> {
    /// How many values there are, at the most of a lane.
    pub(crate) fn n_values(&self) -> usize {
        self.values.len()
    }

    /// Puts a value on top.
    pub(crate) fn push(&mut self, value: T) {
        self.values.push(value);
    }

    /// Takes the value on top. `like` has the type and the shape.
    ///
    /// # Errors
    /// If there is none, or another one.
    pub(crate) fn pop(&mut self, like: &T) -> Result<T, LibraryError> {
        let top = self.values.pop().filter(|top| top.is_like(like));
        top.ok_or(LibraryError::History)
    }

    /// Puts the parts of some lanes on top of theirs.
    pub(crate) fn push_lanes(&mut self, value: &T, mask: &[bool]) -> Result<(), LibraryError> {
        self.expect_lanes(value, mask)?;
        for lane in taking_part(mask) {
            let depth = &mut self.depths[lane];
            if *depth == self.values.len() {
                self.values.push(value.zeros_like()?);
            }
            let top = self.values.get_mut(*depth);
            let top = top.ok_or(LibraryError::History)?;
            top.copy_lane(value, lane, mask.len())?;
            *depth += 1;
        }
        Ok(())
    }

    /// Takes the parts of some lanes from the top of theirs; zeros for the others. `like` has the type and the shape.
    pub(crate) fn pop_lanes(&mut self, like: &T, mask: &[bool]) -> Result<T, LibraryError> {
        let mut taken = like.zeros_like()?;
        self.expect_lanes(like, mask)?;
        for lane in taking_part(mask) {
            let depth = &mut self.depths[lane];
            *depth = depth.checked_sub(1).ok_or(LibraryError::History)?;
            let top = self.values.get(*depth).ok_or(LibraryError::History)?;
            taken.copy_lane(top, lane, mask.len())?;
        }
        let deepest = self.depths.iter().max().copied().unwrap_or(0);
        self.values.truncate(deepest);
        Ok(taken)
    }

    /// Refuses other lanes than those that put values here before, and values of another shape.
    fn expect_lanes(&mut self, like: &T, mask: &[bool]) -> Result<(), LibraryError> {
        if self.values.is_empty() {
            self.depths = vec![0; mask.len()];
        }
        let same = self.values.iter().all(|value| value.is_like(like));
        match same && self.depths.len() == mask.len() {
            true => Ok(()),
            false => Err(LibraryError::History),
        }
    }
}

/// The lanes at which a mask is true.
fn taking_part(mask: &[bool]) -> impl Iterator<Item = usize> {
    (0..mask.len()).filter(|&lane| mask[lane])
}

impl Lanes for Operand {
    fn is_like(&self, other: &Self) -> bool {
        (self.ty, &self.shape) == (other.ty, &other.shape)
    }

    fn zeros_like(&self) -> Result<Self, MemoryError> {
        Self::zeros(self.ty, &self.shape)
    }

    fn copy_lane(&mut self, from: &Self, lane: usize, n_lanes: usize) -> Result<(), MemoryError> {
        let n = Self::bytes(self.ty, &self.shape)? / n_lanes;
        let mut part = vec![0; n];
        from.buffer.read(lane * n, &mut part)?;
        self.buffer.write(lane * n, &part)
    }
}

impl Lanes for Array {
    fn is_like(&self, other: &Self) -> bool {
        (self.ty, &self.shape) == (other.ty, &other.shape)
    }

    fn zeros_like(&self) -> Result<Self, MemoryError> {
        Ok(Self::zeros(self.ty, &self.shape))
    }

    fn copy_lane(&mut self, from: &Self, lane: usize, n_lanes: usize) -> Result<(), MemoryError> {
        let n = self.data.len() / n_lanes;
        let part = lane * n..(lane + 1) * n;
        self.data[part.clone()].clone_from_slice(&from.data[part]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerogel_base::{Scalar, ScalarType};

    #[test]
    fn each_lane_has_a_pile_of_its_own() {
        let array = |numbers: [i32; 4]| Array {
            ty: ScalarType::I32,
            shape: vec![2, 2],
            data: numbers.map(Scalar::i32).to_vec(),
        };
        let mut history = History::default();
        history
            .push_lanes(&array([1, 2, 3, 4]), &[true, true])
            .unwrap();
        history
            .push_lanes(&array([5, 6, 7, 8]), &[false, true])
            .unwrap();
        let mut take = |mask| history.pop_lanes(&array([9; 4]), mask).unwrap().data;
        assert_eq!(take(&[true, true]), array([1, 2, 7, 8]).data);
        assert_eq!(take(&[false, true]), array([0, 0, 3, 4]).data);
        assert!(history.values.is_empty());
    }
}
