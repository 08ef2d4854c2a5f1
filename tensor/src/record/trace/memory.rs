//! Mutation: setting values, and storing to their elements.

use std::sync::Arc;

use crate::ir::{Accum, Buffer, Dim};

use super::super::{Item, Key, Mode, RecordError, Recorded};
use super::constraints::{Placement, Subject};
use super::{FieldDef, State, Value};

/// How a key of a store names elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// By slices of axes, to which the values are broadcast.
    Parts,
    /// By an index for each axis, at the points of all of them; single ones below zero count from the end, or do not.
    Indices {
        /// Whether they do.
        from_end: bool,
    },
}

impl State {
    /// A buffer with the current elements of another one, which later stores do not change.
    ///
    /// # Errors
    /// If the elements are on cells that stores have changed since.
    pub fn snapshot(&mut self, x: Buffer) -> Recorded {
        if !self.r.is_memory(x) && self.r.program.holder(x).is_none() {
            return Ok(x);
        }
        self.own(x)
    }

    /// A copy of a buffer.
    ///
    /// # Errors
    /// As `snapshot`.
    pub fn own(&mut self, x: Buffer) -> Recorded {
        self.r.cells_of("a value", &[x])?;
        let shape = self.r.shape(x);
        let element = self.r.at_point(x, shape.len());
        Ok(self.r.map(&shape, element))
    }

    /// A new value with the current elements of another one. It is memory if a block is known to change it.
    ///
    /// # Errors
    /// If the other value was made in a block that has ended.
    pub fn made(&mut self, of: Value) -> Recorded<Value> {
        let buffer = self.buffer(of)?;
        let buffer = self.snapshot(buffer)?;
        let value = self.value(buffer);
        self.resized_with(value, &[of]);
        if let Some((known, at)) = self.known(Subject::Changed(value))? {
            // The initial value may be larger than in the last replay.
            let shape = self.broadcast_with(buffer, &known);
            self.keep_inferred(value, &shape, at.clone());
            let field = at.field().cloned();
            self.become_memory(value, &shape, field.as_ref())?;
        }
        Ok(value)
    }

    /// Gives a value memory of its own.
    ///
    /// # Errors
    /// If the value was made in a block that has ended.
    pub fn keep(&mut self, value: Value) -> Recorded<()> {
        if self.values[value.0 as usize].is_memory {
            return Ok(());
        }
        let own = self.buffer(value)?;
        let shape = self.r.shape(own);
        self.become_memory(value, &shape, None)
    }

    /// Moves a value to memory; at the active cells of a field, if there is one.
    fn become_memory(
        &mut self,
        value: Value,
        shape: &[Dim],
        field: Option<&Arc<FieldDef>>,
    ) -> Recorded<()> {
        let own = self.seen(value);
        let memory = self.r.program.temporary(self.r.ty(own), shape);
        self.r.note_memory(memory);
        let from = match field {
            Some(field) => {
                let field = self.field(field)?;
                self.r.note_at_cells(memory, field);
                own
            }
            None => self.r.dense(own)?,
        };
        self.r.set_all(memory, from, None)?;
        self.becomes(value, memory);
        Ok(())
    }

    /// Checks that the function may set a value: it may change it, and it is not from outside of `vmap`.
    fn expect_own(&self, target: Value) -> Recorded<()> {
        self.expect_memory(target)?;
        match self.is_outside_of_vmap(self.values[target.0 as usize].block) {
            true => Err(RecordError::Value(
                "`vmap`: the function sets a value that was made outside of it: store to its elements".to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Checks that the function may store to elements of a value: it is not a constant.
    fn expect_memory(&self, target: Value) -> Recorded<()> {
        let held = &self.values[target.0 as usize];
        self.expect_open(held.block)?;
        if held.is_constant {
            return Err(RecordError::Value(
                "a tensor from outside is a constant of the program: copy it there, as by `x = outside + 0`, make it an \
                 `input`, or pass the module that it belongs to as an argument"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Sets a value at the points of the current mask.
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the value must not be changed.
    pub fn set(&mut self, target: Value, new: Value) -> Recorded<()> {
        self.expect_own(target)?;
        self.resized_with(target, &[new]);
        let new = self.buffer(new)?;
        let new = self.snapshot(new)?;
        let mut mask = self.mask()?;
        let own = self.seen(target);
        if let Some(of_cells) = mask
            && self.field_of(of_cells).is_some()
        {
            let rank = self.r.rank(of_cells);
            let whole = [own, new].into_iter().max_by_key(|&x| self.r.rank(x));
            let whole = self.r.shape(whole.expect("there are two"));
            if whole.len() > rank && whole[..rank] == self.r.shape(of_cells) {
                // The mask of a cell holds for all its components.
                let behind: Vec<i64> = (rank as i64..whole.len() as i64).collect();
                mask = Some(self.r.unsqueeze(of_cells, &behind)?);
            }
        }
        let mut all = vec![own, new];
        all.extend(mask);
        let shape = self.broadcast_shape(&all);
        if !self.values[target.0 as usize].is_memory || shape != self.r.shape(own) {
            let mut field = None;
            if self.is_elsewhere(target) {
                let fields = [mask.and_then(|m| self.field_of(m)), self.field_of(new)];
                field = self.infer_changed(target, &shape, fields);
            } else if mask.is_none() {
                field = self.field_of(own).filter(|_| self.field_of(new).is_none());
                if field.is_none() {
                    // In its own block the value becomes another one; a smaller one is broadcast to its shape.
                    let from = self.r.shape(new);
                    let is_smaller = from != shape && self.fits(&from, &shape);
                    let stretched = match is_smaller {
                        true => self.stored(|r| r.broadcast_to(new, &shape))?,
                        false => new,
                    };
                    self.values[target.0 as usize].buffer = stretched;
                    return Ok(());
                }
            }
            self.become_memory(target, &shape, field.as_ref())?;
        }
        let own = self.seen(target);
        self.r.set_all(own, new, mask)
    }

    fn stored<R>(&mut self, f: impl FnOnce(&mut super::super::Recording) -> R) -> R {
        self.r.called = Some("x[key] = value");
        let out = f(&mut self.r);
        self.r.called = None;
        out
    }

    /// Whether a shape is known to broadcast to another one.
    fn fits(&self, shape: &[Dim], whole: &[Dim]) -> bool {
        let mut both = shape.iter().rev().zip(whole.iter().rev());
        shape.len() <= whole.len()
            && both.all(|(n, m)| n == m || self.r.program.const_dim(*n) == Some(1))
    }

    /// The shape that several buffers broadcast to.
    pub(super) fn broadcast_shape(&mut self, buffers: &[Buffer]) -> Vec<Dim> {
        let shapes: Vec<Vec<Dim>> = buffers.iter().map(|&x| self.r.shape(x)).collect();
        self.broadcast_shapes(&shapes)
    }

    /// The shape that a buffer and another shape broadcast to.
    fn broadcast_with(&mut self, x: Buffer, shape: &[Dim]) -> Vec<Dim> {
        let shapes = [self.r.shape(x), shape.to_vec()];
        self.broadcast_shapes(&shapes)
    }

    pub(super) fn broadcast_shapes(&mut self, shapes: &[Vec<Dim>]) -> Vec<Dim> {
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let one = self.r.program.size(1);
        let extents = (0..rank).map(|axis| {
            let behind = rank - axis;
            let own = shapes.iter().filter(|shape| shape.len() >= behind);
            let mut own = own.map(|shape| shape[shape.len() - behind]);
            own.find(|&dim| dim != one).unwrap_or(one)
        });
        extents.collect()
    }

    /// Infers that a value is memory from the start; at the active cells of a field, if it is broadcast to these. Returns that
    /// field.
    fn infer_changed(
        &mut self,
        target: Value,
        shape: &[Dim],
        fields: [Option<Arc<FieldDef>>; 2],
    ) -> Option<Arc<FieldDef>> {
        let own = self.seen(target);
        let field = match self.field_of(own) {
            Some(own) => Some(own),
            None if self.r.rank(own) < shape.len() => fields.into_iter().flatten().next(),
            None => None,
        };
        let at = field.map_or(Placement::All, Placement::Cells);
        if self.is_known_elsewhere(Subject::Changed(target), &at) {
            self.infer_everywhere(target, shape);
            return None;
        }
        self.infer_value(target, shape, at.clone());
        at.field().cloned()
    }

    /// Prepares a value for stores to its elements. Returns whether it is ready: memory from outside of `vmap` cannot be made
    /// inside, and is there at the next replay.
    fn let_change(&mut self, target: Value) -> Recorded<bool> {
        self.expect_memory(target)?;
        let own = self.seen(target);
        let shape = self.r.shape(own);
        if !self.values[target.0 as usize].is_memory {
            if self.is_elsewhere(target) {
                self.infer_changed(target, &shape, [None, None]);
            }
        } else if self.field_of(own).is_some() {
            // The indices of the store are not those of the cells.
            self.infer_everywhere(target, &shape);
        } else {
            return Ok(true);
        }
        if self.is_outside_of_vmap(self.values[target.0 as usize].block) {
            return Ok(false);
        }
        self.become_memory(target, &shape, None)?;
        Ok(true)
    }

    /// Stores values where a key names elements, at the points of the current mask.
    ///
    /// # Errors
    /// If the number of indices, the shapes or the dtypes do not fit.
    pub fn store(
        &mut self,
        target: Value,
        key: &Key<Value>,
        value: Value,
        accum: Option<Accum>,
        mode: Mode,
        naming: Naming,
    ) -> Recorded<()> {
        let (own, mut value) = (self.seen(target), self.buffer(value)?);
        let mut key = self.key(key)?;
        let mut behind = 0;
        let index = if naming == Naming::Parts {
            // Along an axis whose size is known at run time, it is checked when the program runs, as computed indices are.
            let mut axis = 0;
            for item in &mut key.items {
                let known = self.r.shape(own).get(axis).copied();
                let known = known.and_then(|dim| self.r.program.const_dim(dim));
                if matches!(item, Item::Places(..))
                    || matches!(item, Item::Index(_)) && known.is_none()
                {
                    let at = self.r.index_along(own, axis, item, mode, true)?;
                    *item = Item::Places(at, false);
                }
                axis += usize::from(!matches!(item, Item::New));
            }
            let (index, values, n) = self.stored(|r| r.places(own, &key, value))?;
            (value, behind) = (values, n);
            index
        } else {
            let from_end = naming == Naming::Indices { from_end: true };
            self.indices(own, &key, mode, from_end)?
        };
        let rank = self.r.rank(own);
        if index.is_empty() || index.len() != rank {
            let n = index.len();
            return Err(RecordError::Index(format!(
                "{n} indices for memory with {rank} axes"
            )));
        }
        if !self.let_change(target)? {
            return Ok(());
        }
        let mut mask = self.mask()?;
        let whole = index.iter().map(|&i| self.r.rank(i)).max().unwrap_or(0);
        if let Some(own) = mask
            && behind > 0
            && self.r.rank(own) + behind == whole
        {
            // A mask with the axes of the computed index holds for whole rows, any other one for the elements of a row.
            let rank = self.r.rank(own);
            let axes: Vec<i64> = (rank..rank + behind).map(|axis| axis as i64).collect();
            mask = Some(self.r.unsqueeze(own, &axes)?);
        }
        let target = self.seen(target);
        self.r.store_at(target, &index, value, accum, mode, mask)
    }

    /// A key of buffers.
    ///
    /// # Errors
    /// If a value was made in a block that has ended.
    fn key(&self, key: &Key<Value>) -> Recorded<Key> {
        let mut failed = Ok(());
        let out = key.map(|&value| match self.buffer(value) {
            Ok(buffer) => buffer,
            Err(e) => {
                failed = Err(e);
                self.seen(value)
            }
        });
        failed.map(|()| out)
    }

    /// The indices that a key has for the first axes.
    fn indices(
        &mut self,
        x: Buffer,
        key: &Key,
        mode: Mode,
        from_end: bool,
    ) -> Recorded<Vec<Buffer>> {
        let items = key.items.iter().enumerate();
        items
            .map(|(axis, item)| self.r.index_along(x, axis, item, mode, from_end))
            .collect()
    }

    /// Accumulates values into elements in the order of the points; returns the element before each update.
    ///
    /// # Errors
    /// As `store`.
    pub fn store_with_previous(
        &mut self,
        target: Value,
        key: &Key<Value>,
        value: Value,
        accum: Accum,
        mode: Mode,
        from_end: bool,
    ) -> Recorded {
        let (key, value) = (self.key(key)?, self.buffer(value)?);
        let index = self.indices(self.seen(target), &key, mode, from_end)?;
        self.expect_own(target)?;
        self.let_change(target)?;
        let mask = self.mask()?;
        let target = self.seen(target);
        let r = &mut self.r;
        r.store_with_previous(target, &index, value, accum, mode, mask)
    }

    /// Prepares a value for a kernel that writes to it.
    ///
    /// # Errors
    /// If the value must not be changed.
    pub fn written(&mut self, target: Value) -> Recorded<()> {
        self.expect_own(target)?;
        self.let_change(target).map(|_| ())
    }

    /// The elements at computed indices, at the points of the current mask.
    ///
    /// # Errors
    /// As `Recording::gather`.
    pub fn gather(&mut self, x: Value, key: &Key<Value>, mode: Mode, from_end: bool) -> Recorded {
        let (x, key) = (self.buffer(x)?, self.key(key)?);
        let index = self.indices(x, &key, mode, from_end)?;
        let mask = self.mask()?;
        let parts = self.r.parts_of(x);
        let cells = parts.first().map(|&part| self.r.rank(part));
        if cells != Some(index.len()) {
            let all = self.r.dense(x)?;
            return self.gathered(all, &index, mode, mask);
        }
        // Each component has memory of its own, for active cells only.
        let mut taken = Vec::new();
        for part in parts {
            let part = self.r.dense(part)?;
            taken.push(self.gathered(part, &index, mode, mask)?);
        }
        let shape = self.r.shape(x);
        let last = shape[index.len()..].iter();
        let last: Option<Vec<u64>> = last.map(|&dim| self.r.program.const_dim(dim)).collect();
        self.joined(&taken, &last.expect("few numbers are at a cell"))
    }

    fn gathered(
        &mut self,
        x: Buffer,
        index: &[Buffer],
        mode: Mode,
        mask: Option<Buffer>,
    ) -> Recorded {
        self.r.expect_everywhere(&[x])?;
        self.r.cells_of("x[key]", index)?;
        self.r.called = Some("x[key]");
        let out = self.r.gather(x, 0, index, mode, false, mask);
        self.r.called = None;
        out
    }
}
