//! What gives values other numbers: setting them, and stores to their elements.

use std::sync::Arc;

use crate::expr::Outside;
use crate::program::{Accum, Buffer, Dim};

use super::super::{RecordError, Recorded};
use super::facts::{At, Subject};
use super::{FieldDef, State, Value};

impl State {
    /// A buffer that stays as it is: of memory that changes its value now.
    ///
    /// # Errors
    /// If it is at cells that may not be the active ones any more.
    pub fn snapshot(&mut self, x: Buffer) -> Recorded {
        if !self.r.is_memory(x) && self.r.program.holder(x).is_none() {
            return Ok(x);
        }
        self.own(x)
    }

    /// A buffer of its own with the numbers that one has now.
    ///
    /// # Errors
    /// If it is at cells that may not be the active ones any more.
    pub fn own(&mut self, x: Buffer) -> Recorded {
        self.r.cells_of("a value", &[x])?;
        let shape = self.r.shape(x);
        let element = self.r.at_point(x, shape.len());
        Ok(self.r.map(&shape, element))
    }

    /// A value of its own with the numbers that one has now. It is memory if a block changes it.
    ///
    /// # Errors
    /// If what it is made of is not there any more.
    pub fn made(&mut self, of: Value) -> Recorded<Value> {
        let buffer = self.buffer(of)?;
        let buffer = self.snapshot(buffer)?;
        let value = self.value(buffer);
        self.grows_with(value, &[of]);
        if let Some((known, at)) = self.known(Subject::Changed(value))? {
            // What it is made of may have become larger, too.
            let shape = self.together_with(buffer, &known);
            self.keep_known(value, &shape, at.clone());
            let field = at.field().cloned();
            self.become_memory(value, &shape, field.as_ref())?;
        }
        Ok(value)
    }

    /// Makes memory of a value, which then stays where it is.
    ///
    /// # Errors
    /// If what it is made of is not there any more.
    pub fn keep(&mut self, value: Value) -> Recorded<()> {
        if self.values[value.0 as usize].is_memory {
            return Ok(());
        }
        let own = self.buffer(value)?;
        let shape = self.r.shape(own);
        self.become_memory(value, &shape, None)
    }

    /// Makes memory of a value: at the active cells of a field, if it is set there alone.
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
        self.is_now(value, memory);
        Ok(())
    }

    /// Refuses what is not the function's, and memory that was made outside of a function that `vmap` calls.
    fn expect_own(&self, target: Value) -> Recorded<()> {
        let held = &self.values[target.0 as usize];
        self.expect_open(held.block)?;
        if held.is_constant {
            return Err(RecordError::Value(
                "a tensor from outside is a constant of the program: copy it there, as by `x = outside + 0`, or make it an \
                 `input`"
                    .to_owned(),
            ));
        }
        match self.is_outside_of_map(held.block) {
            true => Err(RecordError::Value(
                "`vmap`: the function stores to memory that was made outside of it".to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Gives a value other numbers, at the points at hand.
    ///
    /// # Errors
    /// If it does not hold them.
    pub fn set(&mut self, target: Value, new: Value) -> Recorded<()> {
        self.expect_own(target)?;
        self.grows_with(target, &[new]);
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
                // What is asked of a cell is asked of all its numbers.
                let behind: Vec<i64> = (rank as i64..whole.len() as i64).collect();
                mask = Some(self.r.unsqueeze(of_cells, &behind)?);
            }
        }
        let mut all = vec![own, new];
        all.extend(mask);
        let shape = self.together(&all);
        if !self.values[target.0 as usize].is_memory || shape != self.r.shape(own) {
            let mut field = None;
            if self.is_elsewhere(target) {
                let fields = [mask.and_then(|m| self.field_of(m)), self.field_of(new)];
                field = self.learn_changed(target, &shape, fields);
            } else if mask.is_none() {
                field = self.field_of(own).filter(|_| self.field_of(new).is_none());
                if field.is_none() {
                    // Other numbers at the same place of the function; those that fit a larger tensor stand everywhere in it.
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

    /// Whether a shape is known to be stretched to another one.
    fn fits(&self, shape: &[Dim], whole: &[Dim]) -> bool {
        let mut both = shape.iter().rev().zip(whole.iter().rev());
        shape.len() <= whole.len()
            && both.all(|(n, m)| n == m || self.r.program.const_dim(*n) == Some(1))
    }

    /// The shape that holds several buffers.
    pub(super) fn together(&mut self, buffers: &[Buffer]) -> Vec<Dim> {
        let shapes: Vec<Vec<Dim>> = buffers.iter().map(|&x| self.r.shape(x)).collect();
        self.stretched(&shapes)
    }

    /// The shape that holds a buffer and is no smaller than another shape.
    fn together_with(&mut self, x: Buffer, shape: &[Dim]) -> Vec<Dim> {
        let shapes = [self.r.shape(x), shape.to_vec()];
        self.stretched(&shapes)
    }

    pub(super) fn stretched(&mut self, shapes: &[Vec<Dim>]) -> Vec<Dim> {
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

    /// Notes that a value is memory from the first on: at the cells where it is set, if it is stretched to them. The field
    /// whose cells these are, if it is at some.
    fn learn_changed(
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
        let at = field.map_or(At::All, At::Cells);
        if self.is_known_elsewhere(Subject::Changed(target), &at) {
            self.learn_everywhere(target, shape);
            return None;
        }
        self.learn_value(target, shape, at.clone());
        at.field().cloned()
    }

    /// Makes memory of a value whose elements are stored to.
    fn let_change(&mut self, target: Value) -> Recorded<()> {
        self.expect_own(target)?;
        let own = self.seen(target);
        let shape = self.r.shape(own);
        if !self.values[target.0 as usize].is_memory {
            if self.is_elsewhere(target) {
                self.learn_changed(target, &shape, [None, None]);
            }
            self.become_memory(target, &shape, None)
        } else if self.field_of(own).is_some() {
            // It is stored to at other indices than those of cells.
            self.learn_everywhere(target, &shape);
            self.become_memory(target, &shape, None)
        } else {
            Ok(())
        }
    }

    /// Stores values to computed indices, at the points at hand; the last `behind` axes of what is stored are whole rows.
    ///
    /// # Errors
    /// If there is not an index for each axis, extents do not agree, or types differ.
    pub fn store(
        &mut self,
        target: Value,
        index: &[Value],
        value: Value,
        accum: Option<Accum>,
        outside: Outside,
        behind: usize,
    ) -> Recorded<()> {
        let (index, value) = (self.buffers(index)?, self.buffer(value)?);
        self.let_change(target)?;
        let mut mask = self.mask()?;
        let whole = index.iter().map(|&i| self.r.rank(i)).max().unwrap_or(0);
        if let Some(own) = mask
            && behind > 0
            && self.r.rank(own) + behind == whole
        {
            // What is asked of each computed index is asked of its whole row; other conditions are of the row's elements.
            let rank = self.r.rank(own);
            let axes: Vec<i64> = (rank..rank + behind).map(|axis| axis as i64).collect();
            mask = Some(self.r.unsqueeze(own, &axes)?);
        }
        let target = self.seen(target);
        self.r.store_at(target, &index, value, accum, outside, mask)
    }

    /// Puts values to what is there, one point after the other: what was there before each.
    ///
    /// # Errors
    /// As `store`.
    pub fn store_with_previous(
        &mut self,
        target: Value,
        index: &[Value],
        value: Value,
        accum: Accum,
        outside: Outside,
    ) -> Recorded {
        let (index, value) = (self.buffers(index)?, self.buffer(value)?);
        self.let_change(target)?;
        let mask = self.mask()?;
        let target = self.seen(target);
        let r = &mut self.r;
        r.store_with_previous(target, &index, value, accum, outside, mask)
    }

    /// Makes memory of a value that a kernel writes to.
    ///
    /// # Errors
    /// If it comes from outside.
    pub fn written(&mut self, target: Value) -> Recorded<()> {
        self.let_change(target)
    }

    /// The elements at computed indices, at the points at hand.
    ///
    /// # Errors
    /// As `Recording::gather`.
    pub fn gather(&mut self, x: Value, index: &[Value], outside: Outside) -> Recorded {
        let (x, index) = (self.buffer(x)?, self.buffers(index)?);
        let mask = self.mask()?;
        let parts = self.r.parts_of(x);
        let cells = parts.first().map(|&part| self.r.rank(part));
        if cells != Some(index.len()) {
            let all = self.r.dense(x)?;
            return self.gathered(all, &index, outside, mask);
        }
        // Each number apart, in memory for active cells alone.
        let mut taken = Vec::new();
        for part in parts {
            let part = self.r.dense(part)?;
            taken.push(self.gathered(part, &index, outside, mask)?);
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
        outside: Outside,
        mask: Option<Buffer>,
    ) -> Recorded {
        self.r.expect_everywhere(&[x])?;
        self.r.cells_of("x[key]", index)?;
        self.r.called = Some("x[key]");
        let out = self.r.gather(x, 0, index, outside, false, mask);
        self.r.called = None;
        out
    }
}
