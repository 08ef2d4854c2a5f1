//! Symbolic tensors of `vmap`, and their batched results.

use super::{Backend, Session, Slot};
use crate::ir::{Buffer, Stmt, order, targets};
use crate::record::{Mapped, Recorded, varying};

impl Session {
    /// A tensor that stands for one of those along an axis of another, and the axis counted from the front.
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn one_of(&mut self, slot: Slot, axis: i64) -> Recorded<(Slot, usize)> {
        let all = self.buffer(slot);
        let (one, axis) = self.recording.one_of(all, axis)?;
        self.ones[one] = true;
        self.follow_backend(one, all);
        self.n_ones += 1;
        Ok((self.hold(one), axis))
    }

    /// Whether a tensor is symbolic, or computed from one that is.
    pub fn is_one_of_many(&mut self, slot: Slot) -> bool {
        if self.n_ones == 0 {
            return false;
        }
        let buffer = self.buffer(slot);
        let sliced = self.slice(&[buffer], Backend::NATIVE);
        sliced.made.iter().any(|&(old, _)| self.ones[old])
    }

    /// The batched results of symbolic tensors: each with its batch axis, or nothing if it does not vary. `mapped` has the
    /// symbolic tensor, the batched one, and the axis; `names` are for messages.
    ///
    /// # Errors
    /// If batch sizes differ.
    pub fn vmap(
        &mut self,
        mapped: &[(Slot, Slot, usize)],
        names: &[String],
        results: &[Slot],
    ) -> Recorded<Vec<Option<(Slot, usize)>>> {
        let mapped: Vec<Mapped> = mapped
            .iter()
            .map(|&(one, all, axis)| Mapped {
                one: self.buffer(one),
                all: self.buffer(all),
                axis,
            })
            .collect();
        let results: Vec<Buffer> = results.iter().map(|&slot| self.buffer(slot)).collect();
        let n = self.recording.how_many(&mapped, names)?;
        let body = self.made_of(&mapped, &results);
        let all = self
            .recording
            .vmap(&body, &mapped, n, &results, &|_| true)?;
        let all = all.into_iter();
        Ok(all
            .map(|place| place.map(|(buffer, axis)| (self.hold(buffer), axis)))
            .collect())
    }

    /// The statements by which results are made of what stands for one; what is the same for all stays where it is.
    fn made_of(&mut self, mapped: &[Mapped], results: &[Buffer]) -> Vec<Stmt> {
        self.makers.update(&self.recording.program);
        let program = &self.recording.program;
        let is_there = |b: Buffer| self.is_there(b);
        let needed = order(program, &self.makers, &is_there, results);
        let body = needed.iter().map(|&at| program.body[at as usize].clone());
        let mut body: Vec<Stmt> = body.collect();
        let ones: Vec<Buffer> = mapped.iter().map(|m| m.one).collect();
        let varying = varying(program, &body, &ones);
        body.retain(|stmt| {
            let mut varies = false;
            targets(stmt, &mut |b| varies |= varying.contains(&b));
            varies
        });
        body
    }
}
