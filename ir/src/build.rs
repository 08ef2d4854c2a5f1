//! Building functions instruction by instruction: the only way to create instructions.

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

    /// Appends an instruction that is in no region yet.
    pub fn append(&mut self, inst: Inst) {
        self.func.regions[self.region].insts.push(inst);
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

    /// A region of its own with what `write` builds of its parameters. It ends with `yield []` if
    /// nothing else ends it.
    pub fn region(&mut self, params: &[Type], write: impl FnOnce(&mut Self, &[Value])) -> Region {
        let region = self.func.new_region(params);
        let params = self.func.regions[region].params.clone();
        self.within(region, |b| {
            write(b, &params);
            b.terminate();
        });
        region
    }

    /// Builds at the end of another region meanwhile.
    pub fn within<T>(&mut self, region: Region, write: impl FnOnce(&mut Self) -> T) -> T {
        let (outer, span) = (std::mem::replace(&mut self.region, region), self.span);
        let result = write(self);
        (self.region, self.span) = (outer, span);
        result
    }

    /// Ends the region with `yield []`, if nothing has ended it.
    pub fn terminate(&mut self) {
        let last = self.func.regions[self.region].insts.last();
        if last.is_none_or(|&inst| !self.func[inst].is_terminator()) {
            self.yields(Vec::new());
        }
    }

    /// One branch or the other; gives what they yield, of the given types.
    pub fn if_(
        &mut self,
        cond: Value,
        types: &[Type],
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) -> Vec<Value> {
        let then = self.region(&[], |b, _| then(b));
        let otherwise = self.region(&[], |b, _| otherwise(b));
        let op = Op::If {
            cond,
            then,
            otherwise,
        };
        let inst = self.inst(op, types);
        self.func.insts[inst].results.clone()
    }

    /// A loop from `lo` to `hi`, exclusive, by one.
    pub fn for_(&mut self, lo: Value, hi: Value, body: impl FnOnce(&mut Self, Value)) {
        let ty = self.func.ty(lo);
        let step = self.constant(Scalar::int(self.func.elem(lo), 1));
        let body = self.region(&[ty], |b, params| body(b, params[0]));
        let init = Vec::new();
        self.effect(Op::For {
            lo,
            hi,
            step,
            init,
            body,
        });
    }

    /// A loop that carries values while `cond` yields true of them; gives the last ones.
    pub fn while_(
        &mut self,
        init: Vec<Value>,
        cond: impl FnOnce(&mut Self, &[Value]),
        body: impl FnOnce(&mut Self, &[Value]),
    ) -> Vec<Value> {
        let types: Vec<Type> = init.iter().map(|&v| self.func.ty(v)).collect();
        let cond = self.region(&types, cond);
        let body = self.region(&types, body);
        let inst = self.inst(Op::While { init, cond, body }, &types);
        self.func.insts[inst].results.clone()
    }
}
