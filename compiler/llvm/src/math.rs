//! Arithmetic, comparisons and conversions, with the meaning that `aerogel_ir::eval` states.

use aerogel_base::ScalarType;
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};
use inkwell::types::BasicTypeEnum;
use inkwell::values::FastMathFlags;
use inkwell::{FloatPredicate, IntPredicate};

use crate::builder::{Builder, Opcode, Val};
use crate::types::{bits, scalar};

/// What `fast_math` allows: everything but the assumption that NaN and infinity do not occur.
pub(crate) const FAST: FastMathFlags = FastMathFlags::AllowReassoc
    .union(FastMathFlags::NoSignedZeros)
    .union(FastMathFlags::AllowReciprocal)
    .union(FastMathFlags::AllowContract)
    .union(FastMathFlags::ApproxFunc);

/// What a sum whose order nobody sees allows, with or without `fast_math`.
pub(crate) const SUM: FastMathFlags =
    FastMathFlags::AllowReassoc.union(FastMathFlags::NoSignedZeros);

/// Arithmetic on scalars of type `ty`, or on vectors of them, under `flags`.
pub(crate) struct Arith<'b, 'a, 'ctx> {
    pub(crate) b: &'b Builder<'a, 'ctx>,
    pub(crate) ty: ScalarType,
    /// How many lanes the vectors have.
    pub(crate) lanes: Option<u32>,
    pub(crate) flags: FastMathFlags,
}

impl<'ctx> Arith<'_, '_, 'ctx> {
    fn llvm_ty(&self) -> BasicTypeEnum<'ctx> {
        self.scalar(self.ty)
    }

    pub(crate) fn scalar(&self, ty: ScalarType) -> BasicTypeEnum<'ctx> {
        self.shaped(scalar(self.b.ctx, ty))
    }

    fn shaped(&self, ty: BasicTypeEnum<'ctx>) -> BasicTypeEnum<'ctx> {
        match self.lanes {
            Some(lanes) => self.b.vector_type(ty, lanes),
            None => ty,
        }
    }

    fn int(&self, value: i64) -> Val<'ctx> {
        self.b.int(self.llvm_ty(), value)
    }

    pub(crate) fn float(&self, value: f64) -> Val<'ctx> {
        self.b.float(self.llvm_ty(), value)
    }

    fn fintrinsic(&self, name: &str, args: &[Val<'ctx>]) -> Val<'ctx> {
        self.b.intrinsic(name, &[self.llvm_ty()], args, self.flags)
    }

    fn iintrinsic(&self, name: &str, args: &[Val<'ctx>]) -> Val<'ctx> {
        let none = FastMathFlags::empty();
        self.b.intrinsic(name, &[self.llvm_ty()], args, none)
    }

    /// `op x`.
    pub(crate) fn unary(&self, op: UnaryOp, x: Val<'ctx>) -> Val<'ctx> {
        if self.ty == ScalarType::BF16 {
            self.unary_bf16(op, x)
        } else if self.ty.is_float() {
            self.unary_float(op, x)
        } else {
            self.unary_int(op, x)
        }
    }

    fn unary_int(&self, op: UnaryOp, x: Val<'ctx>) -> Val<'ctx> {
        use UnaryOp::*;
        let b = self.b;
        match op {
            // A boolean is its own negation and its own absolute value.
            Neg | Abs | Sign if self.ty == ScalarType::U1 => x,
            Neg => b.op(Opcode::Sub, self.int(0), x),
            Not => b.not(x),
            Abs if self.ty.is_signed() => self.iintrinsic("llvm.abs", &[x, b.bool(false)]),
            Abs => x,
            Sign => {
                let positive = b.icmp(IntPredicate::NE, x, self.int(0));
                let positive = b.cast(Opcode::ZExt, positive, self.llvm_ty());
                if !self.ty.is_signed() {
                    return positive;
                }
                let shift = self.int(i64::from(self.ty.bits() - 1));
                let sign = b.op(Opcode::AShr, x, shift);
                b.or(sign, positive)
            }
            Popcnt => self.iintrinsic("llvm.ctpop", &[x]),
            Clz => self.iintrinsic("llvm.ctlz", &[x, b.bool(false)]),
            Sqrt | Rsqrt | Floor | Ceil | Round | Trunc | Sin | Cos | Tan | Asin | Acos | Atan
            | Sinh | Cosh | Tanh | Exp | Exp2 | Log | Log2 => unreachable!("`{op}` takes floats"),
        }
    }

    fn unary_float(&self, op: UnaryOp, x: Val<'ctx>) -> Val<'ctx> {
        use UnaryOp::*;
        let b = self.b;
        match op {
            Neg => b.fneg(x, self.flags),
            Abs => self.fintrinsic("llvm.fabs", &[x]),
            Sign => {
                let (zero, one, minus) = (self.float(0.0), self.float(1.0), self.float(-1.0));
                let below = b.select(b.fcmp(FloatPredicate::OLT, x, zero), minus, x);
                b.select(b.fcmp(FloatPredicate::OGT, x, zero), one, below)
            }
            Sqrt => self.fintrinsic("llvm.sqrt", &[x]),
            Rsqrt => self.rsqrt(x),
            Floor => self.fintrinsic("llvm.floor", &[x]),
            Ceil => self.fintrinsic("llvm.ceil", &[x]),
            Round => self.fintrinsic("llvm.round", &[x]),
            Trunc => self.fintrinsic("llvm.trunc", &[x]),
            Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Tanh | Exp | Exp2 | Log | Log2 => {
                self.fintrinsic(&format!("llvm.{}", op.name()), &[x])
            }
            Not | Popcnt | Clz => unreachable!("`{op}` takes integers"),
        }
    }

    /// `1 / sqrt(x)`. No estimate of the processor's: its bits would differ between processors.
    fn rsqrt(&self, x: Val<'ctx>) -> Val<'ctx> {
        let root = self.fintrinsic("llvm.sqrt", &[x]);
        self.b.fop(Opcode::FDiv, self.float(1.0), root, self.flags)
    }

    /// `x op y`; integer powers are a function of their own, see `power`.
    pub(crate) fn binary(&self, op: BinaryOp, x: Val<'ctx>, y: Val<'ctx>) -> Val<'ctx> {
        if self.ty == ScalarType::BF16 {
            self.binary_bf16(op, x, y)
        } else if self.ty.is_float() {
            self.binary_float(op, x, y)
        } else {
            self.binary_int(op, x, y)
        }
    }

    fn binary_int(&self, op: BinaryOp, x: Val<'ctx>, y: Val<'ctx>) -> Val<'ctx> {
        use BinaryOp::*;
        let b = self.b;
        let signed = self.ty.is_signed();
        match op {
            Add => b.op(Opcode::Add, x, y),
            Sub => b.op(Opcode::Sub, x, y),
            Mul => b.op(Opcode::Mul, x, y),
            Div | Rem | FloorDiv | Mod => self.division(op, x, y),
            Min if signed => self.iintrinsic("llvm.smin", &[x, y]),
            Max if signed => self.iintrinsic("llvm.smax", &[x, y]),
            Min => self.iintrinsic("llvm.umin", &[x, y]),
            Max => self.iintrinsic("llvm.umax", &[x, y]),
            And => b.and(x, y),
            Or => b.or(x, y),
            Xor => b.op(Opcode::Xor, x, y),
            Shl => b.op(Opcode::Shl, x, self.shift_count(y)),
            Shr if signed => b.op(Opcode::AShr, x, self.shift_count(y)),
            Shr | UShr => b.op(Opcode::LShr, x, self.shift_count(y)),
            Pow => unreachable!("integer powers are calls"),
            Atan2 => unreachable!("`{op}` takes floats"),
        }
    }

    fn shift_count(&self, y: Val<'ctx>) -> Val<'ctx> {
        self.b.and(y, self.int(i64::from(self.ty.bits() - 1)))
    }

    /// Division without traps: by zero gives 0, the smallest number by -1 gives itself.
    fn division(&self, op: BinaryOp, x: Val<'ctx>, y: Val<'ctx>) -> Val<'ctx> {
        use BinaryOp::*;
        let b = self.b;
        let zero = self.int(0);
        if let Some(shift) = self.power_of_two(y)
            && matches!(op, FloorDiv | Mod)
        {
            // Rounding towards negative infinity is what a shift does.
            let right = if self.ty.is_signed() {
                Opcode::AShr
            } else {
                Opcode::LShr
            };
            return match op {
                FloorDiv => b.op(right, x, self.int(i64::from(shift))),
                _ => b.and(x, self.int(((1_u64 << shift) - 1) as i64)),
            };
        }
        let by_zero = b.icmp(IntPredicate::EQ, y, zero);
        if !self.ty.is_signed() {
            let divisor = b.select(by_zero, self.int(1), y);
            return match op {
                Div | FloorDiv => {
                    let quotient = b.op(Opcode::UDiv, x, divisor);
                    b.select(by_zero, zero, quotient)
                }
                // A remainder modulo 1 is 0.
                _ => b.op(Opcode::URem, x, divisor),
            };
        }
        let smallest = self.int(i64::MIN >> (64 - self.ty.bits()));
        let overflows = b.and(
            b.icmp(IntPredicate::EQ, x, smallest),
            b.icmp(IntPredicate::EQ, y, self.int(-1)),
        );
        // Dividing by 1 gives the wrapped quotient and the remainder of both special cases, but
        // for the quotient by zero.
        let divisor = b.select(b.or(by_zero, overflows), self.int(1), y);
        let remainder = b.op(Opcode::SRem, x, divisor);
        if op == Rem {
            return remainder;
        }
        // Whether the exact quotient is negative and no integer, so that floor is one less.
        let signs_differ = b.icmp(
            IntPredicate::SLT,
            b.op(Opcode::Xor, remainder, divisor),
            zero,
        );
        let below = b.and(b.icmp(IntPredicate::NE, remainder, zero), signs_differ);
        if op == Mod {
            let above = b.op(Opcode::Add, remainder, divisor);
            return b.select(below, above, remainder);
        }
        let mut quotient = b.op(Opcode::SDiv, x, divisor);
        if op == FloorDiv {
            let correction = b.cast(Opcode::SExt, below, self.llvm_ty());
            quotient = b.op(Opcode::Add, quotient, correction);
        }
        b.select(by_zero, zero, quotient)
    }

    /// The exponent if `y` is a constant power of two (and positive).
    fn power_of_two(&self, y: Val<'ctx>) -> Option<u32> {
        let Val::IntValue(value) = y else { return None };
        let value = value.get_zero_extended_constant()?;
        let top = self.ty.is_signed() && value >> (self.ty.bits() - 1) != 0;
        (value.is_power_of_two() && !top).then(|| value.trailing_zeros())
    }

    /// An exact remainder on a GPU, for which LLVM has none: that of halves is one of wider floats.
    fn remainder(&self, x: Val<'ctx>, y: Val<'ctx>) -> Val<'ctx> {
        let (name, wide) = match self.ty {
            ScalarType::F64 => ("aerogel_fmod_f64", ScalarType::F64),
            _ => ("aerogel_fmod_f32", ScalarType::F32),
        };
        let func = self.b.module.get_function(name);
        let func = func.expect("modules for GPUs have it");
        let args = [x, y].map(|v| self.cast(v, wide));
        let rest = self.b.call(func, &args).expect("it has a result");
        let back = Arith { ty: wide, ..*self };
        back.cast(rest, self.ty)
    }

    fn binary_float(&self, op: BinaryOp, x: Val<'ctx>, y: Val<'ctx>) -> Val<'ctx> {
        use BinaryOp::*;
        let (b, flags) = (self.b, self.flags);
        match op {
            Add => b.fop(Opcode::FAdd, x, y, flags),
            Sub => b.fop(Opcode::FSub, x, y, flags),
            Mul => b.fop(Opcode::FMul, x, y, flags),
            Div => b.fop(Opcode::FDiv, x, y, flags),
            Rem if b.target.grid => self.remainder(x, y),
            Rem => b.fop(Opcode::FRem, x, y, flags),
            FloorDiv | Mod => unreachable!("`{op}` of floats is a function of remainders.air"),
            Min => self.extremum("llvm.minimumnum", FloatPredicate::OLT, x, y),
            Max => self.extremum("llvm.maximumnum", FloatPredicate::OGT, x, y),
            Pow | Atan2 => self.fintrinsic(&format!("llvm.{}", op.name()), &[x, y]),
            And | Or | Xor | Shl | Shr | UShr => unreachable!("`{op}` takes integers"),
        }
    }

    /// Of a NaN and a number the number. Where the sign of zero does not matter an intrinsic says
    /// so, which may be regrouped, so that reductions vectorise. (Where it matters, LLVM 22's
    /// intrinsic gives the NaN on x86 if it knows that the other operand is none.)
    fn extremum(
        &self,
        name: &str,
        better: FloatPredicate,
        x: Val<'ctx>,
        y: Val<'ctx>,
    ) -> Val<'ctx> {
        let b = self.b;
        if self.ty == ScalarType::F16 {
            // Processors without instructions for halves would call a function for it.
            let wide = Arith {
                ty: ScalarType::F32,
                ..*self
            };
            let [x, y] = [x, y].map(|v| self.cast(v, ScalarType::F32));
            return wide.cast(wide.extremum(name, better, x, y), self.ty);
        }
        if self.flags.contains(FastMathFlags::NoSignedZeros) {
            return self.fintrinsic(name, &[x, y]);
        }
        let chosen = b.select(b.fcmp(better, x, y), x, y);
        b.select(b.fcmp(FloatPredicate::UNO, y, y), x, chosen)
    }

    pub(crate) fn fma(&self, x: Val<'ctx>, y: Val<'ctx>, z: Val<'ctx>) -> Val<'ctx> {
        if self.ty.is_half() {
            // LLVM would call a function for it. In `f64` product and sum are exact, or so close to
            // the one of a half that rounding gives that.
            let [x, y, z] = [x, y, z].map(|v| self.cast(v, ScalarType::F64));
            let none = FastMathFlags::empty();
            let product = self.b.fop(Opcode::FMul, x, y, none);
            let sum = self.b.fop(Opcode::FAdd, product, z, none);
            let wide = Arith {
                ty: ScalarType::F64,
                ..*self
            };
            return wide.cast(sum, self.ty);
        }
        if self.b.target.fused || self.ty != ScalarType::F32 {
            return self.fintrinsic("llvm.fma", &[x, y, z]);
        }
        self.fma_by_f64(x, y, z)
    }

    /// `x * y + z` rounded once, for processors that would call a function for it: in `f64` the
    /// product is exact, and the sum is rounded to odd (S. Boldo and G. Melquiond, "Emulation of a
    /// FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008), so that
    /// rounding it again gives what rounding once gives.
    fn fma_by_f64(&self, x: Val<'ctx>, y: Val<'ctx>, z: Val<'ctx>) -> Val<'ctx> {
        let b = self.b;
        let none = FastMathFlags::empty();
        let wide = self.scalar(ScalarType::F64);
        let extend = |v| b.cast(Opcode::FPExt, v, wide);
        let op = |opcode, x, y| b.fop(opcode, x, y, none);
        let (product, z) = (op(Opcode::FMul, extend(x), extend(y)), extend(z));
        let sum = op(Opcode::FAdd, product, z);
        // What the sum lost (D. Knuth's exact sum of two numbers).
        let of_z = op(Opcode::FSub, sum, product);
        let of_product = op(Opcode::FSub, sum, of_z);
        let lost = op(
            Opcode::FAdd,
            op(Opcode::FSub, product, of_product),
            op(Opcode::FSub, z, of_z),
        );
        let word = self.scalar(ScalarType::I64);
        let to_word = |v| b.cast(Opcode::BitCast, v, word);
        // NaN compares unequal, but only infinities lose NaN, and they stay.
        let inexact = b.fcmp(FloatPredicate::ONE, lost, b.float(wide, 0.0));
        let even = b.icmp(
            IntPredicate::EQ,
            b.and(to_word(sum), b.int(word, 1)),
            b.int(word, 0),
        );
        // One more in the bits is one step away from zero, for either sign.
        let inwards = b.icmp(
            IntPredicate::SLT,
            b.op(Opcode::Xor, to_word(sum), to_word(lost)),
            b.int(word, 0),
        );
        let step = b.select(inwards, b.int(word, -1), b.int(word, 1));
        let step = b.select(b.and(inexact, even), step, b.int(word, 0));
        let odd = b.cast(Opcode::BitCast, b.op(Opcode::Add, to_word(sum), step), wide);
        b.cast(Opcode::FPTrunc, odd, self.llvm_ty())
    }

    pub(crate) fn compare(&self, op: CompareOp, x: Val<'ctx>, y: Val<'ctx>) -> Val<'ctx> {
        if self.ty == ScalarType::BF16 {
            return self.compare_bf16(op, x, y);
        }
        if self.ty.is_float() {
            let predicate = match op {
                CompareOp::Eq => FloatPredicate::OEQ,
                CompareOp::Ne => FloatPredicate::UNE,
                CompareOp::Lt => FloatPredicate::OLT,
                CompareOp::Le => FloatPredicate::OLE,
                CompareOp::Gt => FloatPredicate::OGT,
                CompareOp::Ge => FloatPredicate::OGE,
            };
            return self.b.fcmp(predicate, x, y);
        }
        let predicate = match (op, self.ty.is_signed()) {
            (CompareOp::Eq, _) => IntPredicate::EQ,
            (CompareOp::Ne, _) => IntPredicate::NE,
            (CompareOp::Lt, true) => IntPredicate::SLT,
            (CompareOp::Le, true) => IntPredicate::SLE,
            (CompareOp::Gt, true) => IntPredicate::SGT,
            (CompareOp::Ge, true) => IntPredicate::SGE,
            (CompareOp::Lt, false) => IntPredicate::ULT,
            (CompareOp::Le, false) => IntPredicate::ULE,
            (CompareOp::Gt, false) => IntPredicate::UGT,
            (CompareOp::Ge, false) => IntPredicate::UGE,
        };
        self.b.icmp(predicate, x, y)
    }

    /// `x` as `to`.
    pub(crate) fn cast(&self, x: Val<'ctx>, to: ScalarType) -> Val<'ctx> {
        let b = self.b;
        let target = self.scalar(to);
        if self.ty == to {
            return x;
        }
        if [self.ty, to].contains(&ScalarType::BF16) {
            return self.cast_bf16(x, to);
        }
        match (self.ty.is_float(), to.is_float()) {
            (false, _) if to == ScalarType::U1 => b.icmp(IntPredicate::NE, x, self.int(0)),
            (false, false) => b.extend(self.ty, x, to.bits()),
            (false, true) => self.int_to_float(x, to),
            (true, true) => self.float_to_float(x, to),
            (true, false) if to == ScalarType::U1 => {
                b.fcmp(FloatPredicate::UNE, x, self.float(0.0))
            }
            (true, false) => match to.bits() {
                8 | 16 => {
                    let wide = self.truncate(x, 32);
                    b.cast(Opcode::Trunc, wide, target)
                }
                32 if to.is_signed() => self.truncate(x, 32),
                32 => {
                    let wide = self.truncate(x, 64);
                    b.cast(Opcode::Trunc, wide, target)
                }
                _ if to.is_signed() => self.truncate(x, 64),
                _ => self.float_to_u64(x),
            },
        }
    }

    fn int_to_float(&self, x: Val<'ctx>, to: ScalarType) -> Val<'ctx> {
        let b = self.b;
        let convert = if self.ty.is_signed() {
            Opcode::SIToFP
        } else {
            Opcode::UIToFP
        };
        if to == ScalarType::F16 {
            let single = b.cast(convert, x, self.scalar(ScalarType::F32));
            return b.cast(Opcode::FPTrunc, single, self.scalar(to));
        }
        b.cast(convert, x, self.scalar(to))
    }

    fn float_to_float(&self, x: Val<'ctx>, to: ScalarType) -> Val<'ctx> {
        let b = self.b;
        let target = self.scalar(to);
        match (self.ty, to) {
            (ScalarType::F64, ScalarType::F16) => {
                let single = self.to_odd_f32(x);
                b.cast(Opcode::FPTrunc, single, target)
            }
            (ScalarType::F16, ScalarType::F64) => {
                let single = b.cast(Opcode::FPExt, x, self.scalar(ScalarType::F32));
                b.cast(Opcode::FPExt, single, target)
            }
            _ if to.bits() < self.ty.bits() => b.cast(Opcode::FPTrunc, x, target),
            _ => b.cast(Opcode::FPExt, x, target),
        }
    }

    /// An `f64` as an `f32`, rounded to odd: an inexact result gets an odd last bit, so that
    /// rounding it once more, to a half, gives what rounding once would have given.
    pub(crate) fn to_odd_f32(&self, x: Val<'ctx>) -> Val<'ctx> {
        let b = self.b;
        let single = self.scalar(ScalarType::F32);
        let word = self.shaped(bits(b.ctx, ScalarType::F32));
        let near = b.cast(Opcode::FPTrunc, x, single);
        let back = b.cast(Opcode::FPExt, near, self.llvm_ty());
        let size = |v| {
            self.b
                .intrinsic("llvm.fabs", &[self.llvm_ty()], &[v], FastMathFlags::empty())
        };
        let too_large = b.fcmp(FloatPredicate::OGT, size(back), size(x));
        let inexact = b.fcmp(FloatPredicate::ONE, back, x);
        let near = b.cast(Opcode::BitCast, near, word);
        let step = b.cast(Opcode::SExt, too_large, word);
        // One less in the bits is one step towards zero, for either sign.
        let towards_zero = b.op(Opcode::Add, near, step);
        let odd = b.or(towards_zero, b.cast(Opcode::ZExt, inexact, word));
        b.cast(Opcode::BitCast, odd, single)
    }

    /// Truncates a float to a signed integer of `width` bits; NaN and what is out of range give
    /// the smallest integer, as x86's own conversion does.
    fn truncate(&self, x: Val<'ctx>, width: u32) -> Val<'ctx> {
        let b = self.b;
        let to = if width == 32 {
            self.scalar(ScalarType::I32)
        } else {
            self.scalar(ScalarType::I64)
        };
        let limit = (f64::from(width - 1)).exp2();
        if self.ty == ScalarType::F16 {
            // No finite f16 is out of range.
            let single = b.cast(Opcode::FPExt, x, self.scalar(ScalarType::F32));
            let arith = Arith {
                b,
                ty: ScalarType::F32,
                lanes: self.lanes,
                flags: self.flags,
            };
            return arith.truncate(single, width);
        }
        // The smallest integer itself is "out of range" here, with the same result.
        let none = FastMathFlags::empty();
        let size = b.intrinsic("llvm.fabs", &[self.llvm_ty()], &[x], none);
        let fits = b.fcmp(FloatPredicate::OLT, size, self.float(limit));
        let converted = b.cast(Opcode::FPToSI, x, to);
        let smallest = b.int(to, i64::MIN >> (64 - width));
        b.select(fits, converted, smallest)
    }

    fn float_to_u64(&self, x: Val<'ctx>) -> Val<'ctx> {
        let b = self.b;
        if self.ty == ScalarType::F16 {
            let single = b.cast(Opcode::FPExt, x, self.scalar(ScalarType::F32));
            let arith = Arith {
                b,
                ty: ScalarType::F32,
                lanes: self.lanes,
                flags: self.flags,
            };
            return arith.float_to_u64(single);
        }
        let middle = self.float(63_f64.exp2());
        let none = FastMathFlags::empty();
        let above = b.fcmp(FloatPredicate::OGE, x, middle);
        let shifted = b.fop(Opcode::FSub, x, middle, none);
        let high = self.truncate(shifted, 64);
        let top = b.int(high.get_type(), i64::MIN);
        let high = b.op(Opcode::Xor, high, top);
        b.select(above, high, self.truncate(x, 64))
    }
}
