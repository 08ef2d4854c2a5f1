//! Slots: which buffer each tensor holds, and how many tensors hold each buffer.

use aerogel_base::ScalarType;

use super::policy::{SLACK, SLACK_BYTES};
use super::{Session, Slot};
use crate::ir::{Buffer, Operand};

/// The bytes of an array.
pub(super) fn bytes_of(ty: ScalarType, shape: &[usize]) -> usize {
    shape.iter().product::<usize>() * ty.bytes() as usize
}

impl Session {
    /// A tensor with these numbers.
    pub fn leaf(&mut self, operand: Operand) -> Slot {
        let buffer = self.input(&operand);
        self.values[buffer] = Some(operand);
        self.backends.made_leaf(buffer);
        self.hold(buffer)
    }

    pub(super) fn input(&mut self, operand: &Operand) -> Buffer {
        self.input_of(operand.ty, &operand.shape)
    }

    pub(super) fn input_of(&mut self, ty: ScalarType, shape: &[usize]) -> Buffer {
        let shape: Vec<Option<u64>> = shape.iter().map(|&n| Some(n as u64)).collect();
        // The number of an input counts in programs of their own only.
        self.recording.program.input("", ty, &shape)
    }

    /// A slot for a buffer, to be released.
    pub fn hold(&mut self, buffer: Buffer) -> Slot {
        self.holds[buffer] += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as Slot - 1
        });
        self.slots[slot as usize] = Some(buffer);
        slot
    }

    /// The buffer that a slot holds.
    pub fn buffer(&self, slot: Slot) -> Buffer {
        self.slots[slot as usize].expect("a held slot")
    }

    /// Gives a slot back.
    pub fn release(&mut self, slot: Slot) {
        let Some(buffer) = self.slots[slot as usize].take() else {
            return;
        };
        self.free.push(slot);
        self.let_go(buffer);
        if self.recording.program.buffers.len() > self.limit.max(SLACK)
            || self.dropped > SLACK_BYTES
        {
            self.tidy();
        }
    }

    /// Notes that one slot fewer holds a buffer.
    pub(super) fn let_go(&mut self, buffer: Buffer) {
        self.holds[buffer] -= 1;
        if self.ones[buffer] && self.holds[buffer] == 0 {
            self.n_ones -= 1;
        }
        if self.holds[buffer] == 0 && self.is_there(buffer) {
            let (ty, shape) = self.described(buffer);
            self.dropped += bytes_of(ty, &shape);
        }
    }

    /// The dtype of a tensor.
    pub fn ty(&self, slot: Slot) -> ScalarType {
        self.recording.ty(self.buffer(slot))
    }

    /// The dtype and the shape of a tensor.
    pub fn description(&self, slot: Slot) -> (ScalarType, Vec<usize>) {
        self.described(self.buffer(slot))
    }

    pub(super) fn described(&self, buffer: Buffer) -> (ScalarType, Vec<usize>) {
        let program = &self.recording.program;
        let def = &program.buffers[buffer];
        let extents = def
            .shape
            .iter()
            .map(|&d| program.const_dim(d).unwrap_or(0) as usize);
        (def.ty, extents.collect())
    }

    /// A tensor's numbers, if they are there.
    pub fn value(&self, slot: Slot) -> Option<Operand> {
        self.values[self.buffer(slot)].clone()
    }

    /// The numbers of recorded buffers and statements, of live tensors, and of plans made: for tests.
    pub fn counts(&self) -> [usize; 4] {
        let program = &self.recording.program;
        let held = self.slots.iter().flatten().count();
        [
            program.buffers.len(),
            program.body.len(),
            held,
            self.plans.n_made,
        ]
    }

    pub(super) fn all_held(&self) -> impl Iterator<Item = (Slot, Buffer)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, &b)| b.map(|b| (slot as Slot, b)))
    }
}
