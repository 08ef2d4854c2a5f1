//! Tasks that add to shared places, as a second function: each thread that runs it adds to memory of its own.
//!
//! ```text
//! task:      x = address of the sum           atomicrmw fadd x, v
//! task_own:  x = address of the sum + apart   store (fadd (load x), v), x
//! ```
//! The launcher chooses. `apart` is the distance, in the context, from an image (the bytes in which places that are
//! added to lie together) to a thread's copy of it: nothing for the thread that adds to the places themselves.

use aerogel_base::Scalar;
use aerogel_ir::analysis::sums::class_of;
use aerogel_ir::{AtomicOp, BinaryOp, Value};

use crate::builder::{Opcode, Val, undef, zero};
use crate::context::FuncCx;
use crate::math::SUM;
use crate::task_state::Version;
use crate::types::{bits, scalar};

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Adds to a thread's own storages, which lie side by side, where this function adds to such; whether it does.
    pub(crate) fn own_sums(&mut self, op: AtomicOp, places: &[Value], values: &[Value]) -> bool {
        let Some(class) = class_of(self.func, &self.module.env, places[0]) else {
            return false;
        };
        let task = self
            .task
            .as_ref()
            .filter(|task| task.version == Version::Own);
        let image = task.and_then(|task| self.cx.images[task.number].of.get(&class));
        let Some(&image) = image else { return false };
        let apart = self.image_distance(image);
        let place = self.b.elsewhere(self.value(places[0]), apart);
        let ty = self.func.elem(values[0]);
        let (mut all, mut operand) = (scalar(self.b.ctx, ty), self.value(values[0]));
        if values.len() > 1 {
            all = self.b.vector_type(all, values.len() as u32);
            operand = undef(all);
            for (k, &value) in values.iter().enumerate() {
                operand = self.b.insert(operand, self.value(value), k as u32);
            }
        }
        let zero_stands_for = match op {
            AtomicOp::Min | AtomicOp::Max | AtomicOp::And => op.identity(ty),
            _ => None,
        };
        let nothing = zero_stands_for.map(|scalar| self.in_copies(image, scalar));
        let word = nothing.map_or(all, |_| bits(self.b.ctx, ty));
        let (word, load) = self.b.load(word, place);
        let old = nothing.map_or(word, |n| {
            self.b.cast(Opcode::BitCast, self.b.xor(word, n), all)
        });
        let op = op.binary().expect("sums are arithmetic");
        // Iterations that add to one place one after the other, such as those of a row, become a sum of vectors.
        let mut arith = self.arith(ty);
        if matches!(op, BinaryOp::Add | BinaryOp::Sub) && self.regroups_sums() {
            arith.flags |= SUM;
        }
        let new = arith.binary(op, old, operand);
        let new = nothing.map_or(new, |n| {
            self.b
                .xor(self.b.cast(Opcode::BitCast, new, n.get_type()), n)
        });
        let store = self.b.store(place, new);
        let tag = self.tag("own");
        for inst in [load, store] {
            inst.set_alignment(ty.bytes())
                .expect("the alignment of a number is a power of two");
            self.b.mark(inst, "tbaa", tag);
        }
        true
    }

    /// Whether the order of sums that parallel iterations make is free: how many are made at once depends on the processor.
    pub(crate) fn regroups_sums(&self) -> bool {
        self.reassociates || !self.module.env.deterministic
    }

    /// The bits of a number in the copies of an image, and none in the places themselves.
    fn in_copies(&mut self, image: usize, number: Scalar) -> Val<'ctx> {
        let word = bits(self.b.ctx, number.ty());
        let number = self.b.cast(Opcode::BitCast, self.b.constant(number), word);
        let apart = self.image_distance(image);
        let is_place = self.b.is_zero(apart);
        self.b.select(is_place, zero(word), number)
    }
}
