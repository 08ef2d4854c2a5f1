//! Numbers of type `bf16`, the high halves of `f32`s.
//!
//! Few processors compute with them, and LLVM calls functions to round them where they do not. So they are words of 16 bits
//! here, in registers as in memory: what computes is done in `f32`, which has more than twice their bits, and rounded.

use aerogel_base::ScalarType;
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};
use inkwell::FloatPredicate;

use crate::builder::{Opcode, Val};
use crate::math::Arith;

impl<'ctx> Arith<'_, '_, 'ctx> {
    fn single(&self) -> Self {
        Arith {
            ty: ScalarType::F32,
            ..*self
        }
    }

    /// A `bf16` as an `f32`.
    pub(crate) fn bf16_to_f32(&self, x: Val<'ctx>) -> Val<'ctx> {
        let b = self.b;
        let word = b.cast(Opcode::ZExt, x, self.scalar(ScalarType::U32));
        let word = b.op(Opcode::Shl, word, b.int(word.get_type(), 16));
        b.cast(Opcode::BitCast, word, self.scalar(ScalarType::F32))
    }

    /// An `f32` as a `bf16`: the nearest, of two the even one; a NaN stays one, and becomes quiet.
    pub(crate) fn f32_to_bf16(&self, x: Val<'ctx>) -> Val<'ctx> {
        let b = self.b;
        let is_nan = b.fcmp(FloatPredicate::UNO, x, x);
        let word = b.cast(Opcode::BitCast, x, self.scalar(ScalarType::U32));
        let int = |value| b.int(word.get_type(), value);
        let high = b.op(Opcode::LShr, word, int(16));
        let nearly_half = b.op(Opcode::Add, b.and(high, int(1)), int(0x7fff));
        let rounded = b.op(Opcode::Add, word, nearly_half);
        let rounded = b.op(Opcode::LShr, rounded, int(16));
        let kept = b.select(is_nan, b.or(high, int(0x40)), rounded);
        b.cast(Opcode::Trunc, kept, self.scalar(ScalarType::BF16))
    }

    pub(crate) fn unary_bf16(&self, op: UnaryOp, x: Val<'ctx>) -> Val<'ctx> {
        if op == UnaryOp::Rsqrt {
            let root = self.unary_bf16(UnaryOp::Sqrt, x);
            let one = self.f32_to_bf16(self.single().float(1.0));
            return self.binary_bf16(BinaryOp::Div, one, root);
        }
        self.f32_to_bf16(self.single().unary(op, self.bf16_to_f32(x)))
    }

    pub(crate) fn binary_bf16(&self, op: BinaryOp, x: Val<'ctx>, y: Val<'ctx>) -> Val<'ctx> {
        let [x, y] = [x, y].map(|v| self.bf16_to_f32(v));
        self.f32_to_bf16(self.single().binary(op, x, y))
    }

    pub(crate) fn compare_bf16(&self, op: CompareOp, x: Val<'ctx>, y: Val<'ctx>) -> Val<'ctx> {
        let [x, y] = [x, y].map(|v| self.bf16_to_f32(v));
        self.single().compare(op, x, y)
    }

    /// A conversion from or to `bf16`, and not both.
    pub(crate) fn cast_bf16(&self, x: Val<'ctx>, to: ScalarType) -> Val<'ctx> {
        if to != ScalarType::BF16 {
            return self.single().cast(self.bf16_to_f32(x), to);
        }
        let single = match self.ty {
            // Rounded twice only where that gives the same.
            ScalarType::F64 => self.to_odd_f32(x),
            _ => self.cast(x, ScalarType::F32),
        };
        self.f32_to_bf16(single)
    }
}
