//! Slices of tensors that are read and written immediately, on the host.
//!
//! A loop of Python's that stores number by number would record a copy and a store for each, and no two turns make the same
//! program. Where the numbers are there, a part is a handful of bytes: they are copied, and where nobody else holds the old
//! numbers they are overwritten where they lie.

use aerogel_base::Scalar;
use aerogel_runtime::buffer::MemoryError;

use super::policy::{LARGE, MAX_READ, MAX_STORES, MAX_WRITTEN};
use super::slots::bytes_of;
use super::{Session, Slot};
use crate::ir::{Buffer, Operand, Role};
use crate::record::KnownPart;

/// The elements of a part: the first one's number in the whole, and for each axis how many there are, how far apart, and
/// whether the axis goes.
struct Places {
    first: usize,
    axes: Vec<(usize, isize, bool)>,
}

impl Places {
    /// Nothing if the part is not inside. The axes behind those of the parts are whole.
    fn of(shape: &[usize], parts: &[KnownPart]) -> Option<Self> {
        if parts.len() > shape.len() {
            return None;
        }
        let (mut first, mut axes, mut stride) = (0, Vec::new(), 1);
        for (axis, &n) in shape.iter().enumerate().rev() {
            let whole = KnownPart::span(0, n as u64);
            let &KnownPart {
                start,
                step,
                len,
                drops,
                ..
            } = parts.get(axis).unwrap_or(&whole);
            let len = usize::try_from(len).ok()?;
            if len > 0 {
                let last = start + step * (len as i64 - 1);
                let inside = 0..n as i64;
                if !inside.contains(&start) || !inside.contains(&last) {
                    return None;
                }
                first += start as usize * stride;
            }
            axes.push((len, step as isize * stride as isize, drops));
            stride *= n;
        }
        axes.reverse();
        Some(Self { first, axes })
    }

    fn count(&self) -> usize {
        self.axes.iter().map(|a| a.0).product()
    }

    /// Writes the bytes of elements that stand in the order of the part: side by side where the whole has them so.
    fn write(mut self, target: &Operand, bytes: &[u8]) -> Result<(), MemoryError> {
        let size = target.ty.bytes() as usize;
        let row = match self.axes.last() {
            Some(&(n, 1, _)) if n > 0 => {
                self.axes.pop();
                n * size
            }
            _ => size,
        };
        self.each(|k, place| {
            let row = &bytes[k * row..(k + 1) * row];
            target.buffer.write(place * size, row)
        })
    }

    /// The shape of the slice.
    fn shape(&self) -> Vec<usize> {
        let kept = self.axes.iter().filter(|a| !a.2);
        kept.map(|a| a.0).collect()
    }

    /// Calls `f` with the number of each element in the part, row by row, and in the whole.
    fn each<E>(&self, mut f: impl FnMut(usize, usize) -> Result<(), E>) -> Result<(), E> {
        let mut at = vec![0; self.axes.len()];
        let mut place = self.first as isize;
        for k in 0..self.count() {
            f(k, place as usize)?;
            for (axis, &(n, stride, _)) in self.axes.iter().enumerate().rev() {
                at[axis] += 1;
                place += stride;
                if at[axis] < n {
                    break;
                }
                place -= stride * n as isize;
                at[axis] = 0;
            }
        }
        Ok(())
    }
}

/// The index of the source element at each position when a shape is broadcast to another one; nothing if it does not fit.
fn stretched(from: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    let more = to.len().checked_sub(from.len())?;
    let mut strides = vec![0; to.len()];
    let mut stride = 1;
    for (axis, &n) in from.iter().enumerate().rev() {
        if n != 1 && n != to[more + axis] {
            return None;
        }
        strides[more + axis] = if n == 1 { 0 } else { stride };
        stride *= n;
    }
    let axes = to.iter().zip(&strides);
    let axes = axes.map(|(&n, &s)| (n, s as isize, false)).collect();
    let mut out = Vec::new();
    let all = Places { first: 0, axes };
    let done: Result<(), std::convert::Infallible> = all.each(|_, place| {
        out.push(place);
        Ok(())
    });
    done.ok().map(|()| out)
}

impl Session {
    /// Notes that `new` is `old` with something stored to it.
    pub fn stored(&mut self, old: Slot, new: Slot) {
        let (old, new) = (self.buffer(old), self.buffer(new));
        self.stores[new] = self.stores[old] + 1;
        self.pending_stores += 1;
    }

    /// Whether a loop seems to fill a tensor part by part, so that it is better computed now.
    pub fn is_filled(&self, slot: Slot) -> bool {
        self.n_ones == 0 && (self.stores[self.buffer(slot)] >= MAX_STORES || self.is_full())
    }

    /// Whether so many stores are deferred that they should run: statements of symbolic tensors cannot.
    pub fn is_full(&self) -> bool {
        self.n_ones == 0 && self.pending_stores >= MAX_STORES
    }

    /// Notes that somebody outside looks at the memory of a tensor, which stays as it is from now on.
    pub fn expose(&mut self, slot: Slot) {
        let buffer = self.buffer(slot);
        self.exposed[buffer] = true;
    }

    /// A tensor's values for somebody outside who may write to them, whatever was agreed: in memory that no other tensor
    /// has, also none that the same statement makes. They must be there.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn hand_out(&mut self, slot: Slot) -> Result<Option<Operand>, MemoryError> {
        let has_history = self.has_history(slot);
        let buffer = self.buffer(slot);
        let Some(value) = self.values[buffer].clone() else {
            return Ok(None);
        };
        // What gradients are taken through nobody else may write to.
        if has_history {
            return value.copied().map(Some);
        }
        let is_own = self.holds[buffer] == 1;
        if is_own && self.handed_out[buffer] {
            return Ok(Some(value));
        }
        let is_leaf = self.recording.program.buffers[buffer].role != Role::Temporary;
        self.makers.update(&self.recording.program);
        // The session's reference and this one.
        let is_alone = is_own
            && std::sync::Arc::strong_count(&value.buffer) <= 2
            && (is_leaf || !self.makers.is_read(buffer));
        let own = match (is_alone, is_leaf) {
            (true, true) => {
                self.changes_on_host(buffer);
                (self.exposed[buffer], self.handed_out[buffer]) = (true, true);
                return Ok(Some(value));
            }
            (true, false) => {
                self.changes_on_host(buffer);
                self.values[buffer] = None;
                value
            }
            (false, _) => value.copied()?,
        };
        let new = self.input(&own);
        self.recording.lines.set(new, self.place(buffer));
        self.values[new] = Some(own.clone());
        self.backends.of[new] = self.backends.of[buffer];
        self.stores[new] = self.stores[buffer];
        (self.exposed[new], self.handed_out[new]) = (true, true);
        self.holds[new] += 1;
        self.slots[slot as usize] = Some(new);
        self.let_go(buffer);
        Ok(Some(own))
    }

    /// A slice of a tensor as a copy, if its values are cached, not shared, and few.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn read_part(
        &mut self,
        slot: Slot,
        parts: &[KnownPart],
    ) -> Result<Option<Slot>, MemoryError> {
        if self.has_history(slot) {
            return Ok(None);
        }
        let Some(from) = &self.values[self.buffer(slot)] else {
            return Ok(None);
        };
        let Some(places) = Places::of(&from.shape, parts).filter(|p| p.count() <= MAX_READ) else {
            return Ok(None);
        };
        if std::sync::Arc::strong_count(&from.buffer) > 1 {
            return Ok(None);
        }
        let out = Operand::zeros(from.ty, &places.shape())?;
        let size = from.ty.bytes() as usize;
        places.each(|k, place| {
            let value = from.buffer.read_scalar(from.ty, place * size)?;
            out.buffer.write_scalar(k * size, value)
        })?;
        let buffer = self.buffer(slot);
        Ok(Some(self.leaf_like(out, buffer)))
    }

    /// Whether a tensor is one number that needs no computing.
    pub fn is_constant(&self, slot: Slot) -> bool {
        self.recording.constant(self.buffer(slot)).is_some()
    }

    /// The values of a tensor, if they are cached or all equal.
    fn known(&self, slot: Slot) -> Option<(Vec<usize>, Result<Operand, Scalar>)> {
        let buffer = self.buffer(slot);
        if let Some(value) = &self.values[buffer] {
            return Some((value.shape.clone(), Ok(value.clone())));
        }
        let number = self.recording.constant(buffer)?;
        Some((Vec::new(), Err(number)))
    }

    /// A tensor with a slice replaced by values that are broadcast to it, if both are evaluated. The memory is reused if
    /// nothing else refers to the old values.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn write_part(
        &mut self,
        slot: Slot,
        parts: &[KnownPart],
        values: Slot,
    ) -> Result<Option<Slot>, MemoryError> {
        if self.has_history(slot) || self.has_history(values) {
            return Ok(None);
        }
        let buffer = self.buffer(slot);
        let Some(target) = self.values[buffer].clone() else {
            return Ok(None);
        };
        let Some((shape, values)) = self.known(values) else {
            return Ok(None);
        };
        let places = Places::of(&target.shape, parts).filter(|p| p.count() <= MAX_WRITTEN);
        let Some(places) = places else {
            return Ok(None);
        };
        let part = places.shape();
        // Read before anything is written: the values may lie in the same memory.
        let values = match values {
            Err(number) if number.ty() == target.ty => {
                let slot = number.slot().to_le_bytes();
                slot[..target.ty.bytes() as usize].repeat(places.count())
            }
            Ok(all) if all.ty == target.ty && shape == part => all.read()?,
            Ok(all) if all.ty == target.ty => match stretched(&shape, &part) {
                Some(from) => all.read_at(&from)?,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let stores = self.stores[buffer].saturating_add(1);
        let (target, new) = match self.alone(slot, 2) {
            Some(buffer) => (target.clone(), self.changed(buffer, target)),
            None => {
                let copy = target.copied()?;
                (copy.clone(), self.leaf_like(copy, buffer))
            }
        };
        places.write(&target, &values)?;
        let new_buffer = self.buffer(new);
        self.stores[new_buffer] = stores;
        Ok(Some(new))
    }

    /// Memory that outside code may write to, initialised with the values of an evaluated tensor; the caller knows of
    /// `n_known` references to them, including the session's. Also the tensor with the written values, and whether that is a
    /// copy: it is not if nothing else refers to the old values, which are overwritten then.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn written_outside(
        &mut self,
        slot: Slot,
        n_known: usize,
    ) -> Result<(Operand, Slot, bool), MemoryError> {
        let buffer = self.buffer(slot);
        let value = self.values[buffer].clone().expect("it is evaluated");
        if let Some(buffer) = self.alone(slot, n_known + 1) {
            return Ok((value.clone(), self.changed(buffer, value), false));
        }
        let copy = value.copied()?;
        Ok((copy.clone(), self.leaf_like(copy, buffer), true))
    }

    /// Makes an evaluated tensor an empty one, if only the session and the caller refer to its memory, and no other package owns
    /// that.
    pub fn donate(&mut self, slot: Slot) {
        let Some(buffer) = self.alone(slot, 2) else {
            return;
        };
        let value = self.values[buffer].as_ref().expect("it is evaluated");
        let Ok(empty) = Operand::zeros(value.ty, &[0]) else {
            return;
        };
        if !value.buffer.is_borrowed() {
            self.values[buffer] = None;
            let other = self.leaf(empty);
            self.slots.swap(slot as usize, other as usize);
            self.release(other);
        }
    }

    /// A slot for numbers of a buffer that are about to be changed, which nobody else holds. What is made by a statement
    /// has them no longer: the same statement means the same as before.
    fn changed(&mut self, buffer: Buffer, value: Operand) -> Slot {
        if self.recording.program.buffers[buffer].role != Role::Temporary {
            return self.hold(buffer);
        }
        self.values[buffer] = None;
        self.leaf_like(value, buffer)
    }

    /// A tensor with these values, of the back end of another.
    fn leaf_like(&mut self, value: Operand, other: Buffer) -> Slot {
        let slot = self.leaf(value);
        if self.backends.is_watched {
            let buffer = self.buffer(slot);
            self.backends.of[buffer] = self.backends.of[other];
        }
        slot
    }

    fn alone_on_host(&mut self, buffer: Buffer) -> Buffer {
        self.changes_on_host(buffer);
        buffer
    }

    /// The buffer of a tensor, if no other tensor holds its values or will read them; but for so many references that the
    /// caller knows of, the session's among them.
    fn alone(&mut self, slot: Slot, n_known: usize) -> Option<Buffer> {
        let buffer = self.buffer(slot);
        let value = self.values[buffer].as_ref()?;
        let is_large = bytes_of(value.ty, &value.shape) >= LARGE;
        let own = std::sync::Arc::strong_count(&value.buffer) <= n_known;
        if !own || self.holds[buffer] > 1 || self.exposed[buffer] {
            return None;
        }
        self.makers.update(&self.recording.program);
        if !self.makers.is_read(buffer) {
            return Some(self.alone_on_host(buffer));
        }
        if !is_large {
            return None;
        }
        // What has been computed reads it no more.
        self.tidy();
        self.makers.update(&self.recording.program);
        let buffer = self.buffer(slot);
        let is_free = !self.makers.is_read(buffer);
        is_free.then(|| self.alone_on_host(buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_parts() {
        let all = |shape: &[usize], parts: &[KnownPart]| {
            Places::of(shape, parts).map(|places| {
                let mut out = Vec::new();
                let done: Result<(), ()> = places.each(|_, place| {
                    out.push(place);
                    Ok(())
                });
                assert_eq!(done, Ok(()));
                (places.shape(), out)
            })
        };
        let part = |start, step, len| KnownPart {
            step,
            ..KnownPart::span(start, len)
        };
        let row = all(&[3, 4], &[KnownPart::one(1)]);
        assert_eq!(row, Some((vec![4], vec![4, 5, 6, 7])));
        let turned = all(&[3, 4], &[part(2, -2, 2), part(3, -3, 2)]);
        assert_eq!(turned, Some((vec![2, 2], vec![11, 8, 3, 0])));
        assert_eq!(all(&[3], &[KnownPart::one(3)]), None);
        assert_eq!(all(&[3], &[part(0, 2, 3)]), None);
        assert_eq!(all(&[0, 2], &[]), Some((vec![0, 2], vec![])));
        assert_eq!(all(&[], &[]), Some((vec![], vec![0])));
        assert_eq!(
            stretched(&[2, 1], &[3, 2, 2]),
            Some(vec![0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1])
        );
        assert_eq!(stretched(&[3], &[2]), None);
    }
}
