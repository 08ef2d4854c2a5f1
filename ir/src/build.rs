//! Building functions instruction by instruction.

use aerogel_base::{Scalar, Span};

use crate::func::Function;
use crate::op::Op;
use crate::op_kinds::{BinaryOp, CompareOp, UnaryOp};
use crate::types::{Inst, Region, Type, Value};

/// Appends instructions at the end of a region.
pub struct Builder<'a> {
    /// The function.
    pub func: &'a mut Function,
    /// The region that grows.
    pub region: Region,
    /// The span that new instructions get.
    pub span: Span,
}

impl<'a> Builder<'a> {
    /// A builder at the end of `region`.
    pub fn new(func: &'a mut Function, region: Region) -> Self {
        Self {
            func,
            region,
            span: Span::NONE,
        }
    }

    /// Appends an instruction with results of the given types.
    pub fn inst(&mut self, op: impl Into<Op>, types: &[Type]) -> Inst {
        let inst = self.func.new_inst(op.into(), types, self.span);
        self.func.regions[self.region].insts.push(inst);
        inst
    }

    /// Appends an instruction with one result.
    pub fn value(&mut self, op: impl Into<Op>, ty: Type) -> Value {
        let inst = self.inst(op, &[ty]);
        self.func.insts[inst].results[0]
    }

    /// Appends an instruction without result.
    pub fn effect(&mut self, op: impl Into<Op>) -> Inst {
        self.inst(op, &[])
    }

    /// A constant.
    pub fn constant(&mut self, value: Scalar) -> Value {
        self.value(Op::Const { value }, value.ty().into())
    }

    /// An `i32` constant.
    pub fn i32(&mut self, value: i32) -> Value {
        self.constant(Scalar::i32(value))
    }

    /// A tensor with the same scalar in every element; the scalar itself if `shape` is a scalar type.
    pub fn splat(&mut self, scalar: Value, shape: Type) -> Value {
        let elem = self.func.elem(scalar);
        if !shape.is_tensor() {
            return scalar;
        }
        let elems = vec![scalar; shape.n_elems() as usize];
        self.value(Op::TensorMake { elems }, shape.with_elem(elem))
    }

    /// Arithmetic on one operand.
    pub fn unary(&mut self, op: UnaryOp, x: Value) -> Value {
        let ty = self.func.ty(x);
        self.value(Op::Unary { op, x }, ty)
    }

    /// Arithmetic on two operands of one type.
    pub fn binary(&mut self, op: BinaryOp, lhs: Value, rhs: Value) -> Value {
        let ty = self.func.ty(lhs);
        self.value(Op::Binary { op, lhs, rhs }, ty)
    }

    /// Comparison of two operands of one type.
    pub fn compare(&mut self, op: CompareOp, lhs: Value, rhs: Value) -> Value {
        let ty = self.func.ty(lhs).with_elem(aerogel_base::ScalarType::U1);
        self.value(Op::Compare { op, lhs, rhs }, ty)
    }

    /// `on_true` if the scalar `cond` holds, and else `on_false`.
    pub fn select(&mut self, cond: Value, on_true: Value, on_false: Value) -> Value {
        let ty = self.func.ty(on_true);
        let op = Op::Select {
            cond,
            on_true,
            on_false,
        };
        self.value(op, ty)
    }

    /// Conversion to another type; the value itself if it has it already.
    pub fn cast(&mut self, x: Value, ty: Type) -> Value {
        if self.func.ty(x) == ty {
            x
        } else {
            self.value(Op::Cast { x }, ty)
        }
    }

    /// Fresh zeroed storage for a value of type `ty`.
    ///
    /// # Panics
    /// If `ty` is not a value's type.
    pub fn local(&mut self, ty: Type) -> Value {
        self.value(Op::Local {}, ty.to_ref().expect("a value's type"))
    }

    /// Reads a storage.
    ///
    /// # Panics
    /// If `place` is not a storage.
    pub fn load(&mut self, place: Value) -> Value {
        let ty = self.func.ty(place).pointee().expect("a storage");
        self.value(Op::Load { place }, ty)
    }

    /// Writes a storage.
    pub fn store(&mut self, place: Value, value: Value) {
        self.effect(Op::Store { place, value });
    }

    /// Ends the region with its values.
    pub fn yields(&mut self, values: Vec<Value>) {
        self.effect(Op::Yield { values });
    }
}
