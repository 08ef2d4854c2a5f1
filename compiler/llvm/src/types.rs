//! LLVM's types of the IR's values, in registers and in memory.
//!
//! A boolean is one bit in a register and one byte in memory, a `bf16` a word of 16 bits in both; everything else is the same in
//! both. Storages, cells and containers are addresses.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::Type;
use inkwell::context::Context;
use inkwell::types::BasicTypeEnum;

use crate::builder::{Builder, Opcode, Val, basic};

/// The type of a scalar in a register.
pub(crate) fn scalar<'ctx>(ctx: &'ctx Context, ty: ScalarType) -> BasicTypeEnum<'ctx> {
    match ty {
        ScalarType::U1 => basic(ctx.bool_type()),
        ScalarType::I8 | ScalarType::U8 => basic(ctx.i8_type()),
        ScalarType::I16 | ScalarType::U16 | ScalarType::BF16 => basic(ctx.i16_type()),
        ScalarType::I32 | ScalarType::U32 => basic(ctx.i32_type()),
        ScalarType::I64 | ScalarType::U64 => basic(ctx.i64_type()),
        ScalarType::F16 => basic(ctx.f16_type()),
        ScalarType::F32 => basic(ctx.f32_type()),
        ScalarType::F64 => basic(ctx.f64_type()),
    }
}

/// The type of a scalar in memory.
pub(crate) fn stored<'ctx>(ctx: &'ctx Context, ty: ScalarType) -> BasicTypeEnum<'ctx> {
    if ty == ScalarType::U1 {
        basic(ctx.i8_type())
    } else {
        scalar(ctx, ty)
    }
}

/// The integer type of a scalar's width in memory.
pub(crate) fn bits<'ctx>(ctx: &'ctx Context, ty: ScalarType) -> BasicTypeEnum<'ctx> {
    match ty.bytes() {
        1 => basic(ctx.i8_type()),
        2 => basic(ctx.i16_type()),
        4 => basic(ctx.i32_type()),
        _ => basic(ctx.i64_type()),
    }
}

impl<'ctx> Builder<'_, 'ctx> {
    /// The type of a value; tensors and structs are gone when code is generated.
    pub(crate) fn ty(&self, ty: Type) -> BasicTypeEnum<'ctx> {
        match ty {
            Type::Scalar(s) => scalar(self.ctx, s),
            Type::RefScalar(_)
            | Type::RefVec(..)
            | Type::RefMat(..)
            | Type::RefStruct(_)
            | Type::Buffer(_)
            | Type::Room(_)
            | Type::Cell(..)
            | Type::Container(..) => basic(self.ptr_type()),
            Type::Vec(..) | Type::Mat(..) | Type::Struct(_) => {
                unreachable!("a value of type {ty} reached code generation")
            }
        }
    }

    pub(crate) fn constant(&self, value: Scalar) -> Val<'ctx> {
        let ty = value.ty();
        let bits = bits(self.ctx, ty).into_int_type();
        if ty == ScalarType::U1 {
            return self.bool(value.as_bool());
        }
        let bits = bits.const_int(value.slot(), false);
        if ty.is_int() {
            return bits.into();
        }
        // From the bits, so that a NaN keeps its payload.
        self.cast(Opcode::BitCast, bits.into(), scalar(self.ctx, ty))
    }

    /// A value as it lies in memory.
    pub(crate) fn to_stored(&self, ty: ScalarType, value: Val<'ctx>) -> Val<'ctx> {
        if ty == ScalarType::U1 {
            let byte = self.shaped(value.get_type(), basic(self.ctx.i8_type()));
            self.cast(Opcode::ZExt, value, byte)
        } else {
            value
        }
    }

    /// A value from memory in a register. Any byte but zero is true.
    pub(crate) fn of_stored(&self, ty: ScalarType, value: Val<'ctx>) -> Val<'ctx> {
        if ty == ScalarType::U1 {
            let zero = self.int(value.get_type(), 0);
            self.icmp(inkwell::IntPredicate::NE, value, zero)
        } else {
            value
        }
    }

    /// A value as an 8-byte slot.
    pub(crate) fn to_slot(&self, ty: ScalarType, value: Val<'ctx>) -> Val<'ctx> {
        let value = if ty.is_float() {
            self.cast(Opcode::BitCast, value, bits(self.ctx, ty))
        } else {
            value
        };
        self.extend(ty, value, 64)
    }

    /// An integer (or a float's bits) of type `ty`, extended by its sign to `width` bits or cut.
    pub(crate) fn extend(&self, ty: ScalarType, value: Val<'ctx>, width: u32) -> Val<'ctx> {
        let to = match width {
            8 => basic(self.ctx.i8_type()),
            16 => basic(self.ctx.i16_type()),
            32 => basic(self.ctx.i32_type()),
            _ => basic(self.ctx.i64_type()),
        };
        let shape = value.get_type();
        let from = match shape {
            BasicTypeEnum::VectorType(vector) => vector.get_element_type(),
            ty => ty,
        };
        let from = from.into_int_type().get_bit_width();
        let to = self.shaped(shape, to);
        if from == width {
            value
        } else if from > width {
            self.cast(Opcode::Trunc, value, to)
        } else if ty.is_signed() {
            self.cast(Opcode::SExt, value, to)
        } else {
            self.cast(Opcode::ZExt, value, to)
        }
    }
}
