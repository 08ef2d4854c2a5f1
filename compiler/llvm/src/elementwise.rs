//! Instructions that compute element by element: the same code for one value and for the lanes of vectors.

use aerogel_base::ScalarType;
use aerogel_ir::{BinaryOp, Function, Inst, Op, Value};
use inkwell::types::BasicTypeEnum;
use inkwell::values::FastMathFlags;

use crate::builder::{Builder, Opcode, Val};
use crate::math::Arith;

/// A code generator for elementwise operations: of a function, with scalar values, or of the lanes of its loops.
pub(crate) trait Elementwise<'a, 'ctx: 'a> {
    fn func(&self) -> &'a Function;

    fn builder(&self) -> &Builder<'a, 'ctx>;

    /// An operand.
    fn operand(&self, value: Value) -> Val<'ctx>;

    /// The LLVM type of a result.
    fn type_of(&self, value: Value) -> BasicTypeEnum<'ctx>;

    fn arith(&self, ty: ScalarType) -> Arith<'_, 'a, 'ctx>;

    /// A function of `runtime/device/`, if there is one for this operation.
    fn device_math(&mut self, name: &str, ty: ScalarType, args: &[Val<'ctx>]) -> Option<Val<'ctx>>;

    fn binary(&mut self, op: BinaryOp, lhs: Value, rhs: Value) -> Val<'ctx>;

    /// The result of an elementwise instruction.
    fn elementwise(&mut self, inst: Inst) -> Val<'ctx> {
        let func = self.func();
        let data = &func.insts[inst];
        let result = data.results[0];
        match &data.op {
            Op::Unary { op, x } => {
                let (ty, value) = (func.elem(*x), self.operand(*x));
                match self.device_math(op.name(), ty, &[value]) {
                    Some(made) => made,
                    None => self.arith(ty).unary(*op, value),
                }
            }
            Op::Binary { op, lhs, rhs } => self.binary(*op, *lhs, *rhs),
            Op::Compare { op, lhs, rhs } => {
                let (x, y) = (self.operand(*lhs), self.operand(*rhs));
                self.arith(func.elem(*lhs)).compare(*op, x, y)
            }
            Op::Select {
                cond,
                on_true,
                on_false,
            } => {
                let [cond, x, y] = [cond, on_true, on_false].map(|&v| self.operand(v));
                self.builder().select(cond, x, y)
            }
            Op::Fma { a, b, c } => {
                let [x, y, z] = [a, b, c].map(|&v| self.operand(v));
                self.arith(func.elem(*a)).fma(x, y, z)
            }
            Op::MulAdd { a, b, c } => {
                let [x, y, z] = [a, b, c].map(|&v| self.operand(v));
                let sum = self.arith(func.elem(*a));
                // Of a sum whose terms may be regrouped the factors of a term may not.
                let mut product = self.arith(func.elem(*a));
                if !product.flags.contains(FastMathFlags::ApproxFunc) {
                    product.flags &= FastMathFlags::AllowContract;
                }
                sum.binary(BinaryOp::Add, product.binary(BinaryOp::Mul, x, y), z)
            }
            Op::Cast { x } => {
                let arith = self.arith(func.elem(*x));
                arith.cast(self.operand(*x), func.elem(result))
            }
            Op::Bitcast { x } => {
                let (x, to) = (self.operand(*x), self.type_of(result));
                self.builder().cast(Opcode::BitCast, x, to)
            }
            op => unreachable!("`{}` does not compute element by element", op.row().name),
        }
    }
}
