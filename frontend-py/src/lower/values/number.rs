//! Arithmetic on IR values: promotion, broadcasting, and the operators of the language.

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::{self as ir, Op, Type, Value};

use crate::ast::{BinaryOp, CompareOp, UnaryOp};
use crate::host::Known;
use crate::infer;
use crate::lower::values::Val;
use crate::lower::{Lower, Res};

impl Lower<'_, '_> {
    /// Tensors of one shape, or a scalar with either.
    fn broadcast(&mut self, lhs: Type, rhs: Type, what: &str) -> Res<Type> {
        match (lhs.is_tensor(), rhs.is_tensor()) {
            (true, true) if lhs.shape() != rhs.shape() => {
                let message =
                    format!("cannot apply `{what}` to `{lhs}` and `{rhs}`: the shapes differ");
                self.fail(ErrorKind::Type, "E0205", message)
            }
            (_, true) => Ok(rhs),
            _ => Ok(lhs),
        }
    }

    /// `val` with elements of type `elem`, repeated to the shape of `shape`.
    pub(crate) fn operand(&mut self, val: &Val, elem: ScalarType, shape: Type) -> Res<Value> {
        self.convert(val, shape.with_elem(elem))
    }

    /// Both operands in one promoted type and shape.
    pub(crate) fn promoted(&mut self, lhs: &Val, rhs: &Val, what: &str) -> Res<(Value, Value)> {
        let (lt, rt) = (self.expect_numeric(lhs)?, self.expect_numeric(rhs)?);
        let shape = self.broadcast(lt, rt, what)?;
        let elem = elem(lt).promote(elem(rt));
        Ok((
            self.operand(lhs, elem, shape)?,
            self.operand(rhs, elem, shape)?,
        ))
    }

    pub(crate) fn arith(&mut self, op: BinaryOp, lhs: &Val, rhs: &Val) -> Res<Val> {
        let (lt, rt) = (self.expect_numeric(lhs)?, self.expect_numeric(rhs)?);
        if op == BinaryOp::MatMul {
            return self.matmul(lhs, rhs);
        }
        let shape = self.broadcast(lt, rt, op.symbol())?;
        let typing = match infer::binary(op, elem(lt), elem(rt), self.defaults()) {
            Ok(typing) => typing,
            Err(message) => return self.fail(ErrorKind::Type, "E0206", message),
        };
        if let (BinaryOp::Pow, Val::Known(Known::Int(exponent))) = (op, rhs) {
            let n = exponent.unsigned_abs();
            if n <= 16 && (*exponent >= 0 || typing.result.is_float()) {
                let base = self.operand(lhs, typing.result, shape)?;
                let power = Val::Value(self.small_power(base, n as u32));
                if *exponent >= 0 {
                    return Ok(power);
                }
                let one = Val::Known(Known::Float(1.0));
                let inverse = self.arith(BinaryOp::Div, &one, &power)?;
                return self.cast(&inverse, typing.result);
            }
        }
        let lhs = self.operand(lhs, typing.lhs, shape)?;
        let rhs = self.operand(rhs, typing.rhs, shape)?;
        let op = match op {
            BinaryOp::Add => ir::BinaryOp::Add,
            BinaryOp::Sub => ir::BinaryOp::Sub,
            BinaryOp::Mul | BinaryOp::MatMul => ir::BinaryOp::Mul,
            BinaryOp::Div => ir::BinaryOp::Div,
            BinaryOp::FloorDiv => ir::BinaryOp::FloorDiv,
            BinaryOp::Mod => ir::BinaryOp::Mod,
            BinaryOp::Pow => ir::BinaryOp::Pow,
            BinaryOp::Shl => ir::BinaryOp::Shl,
            BinaryOp::Shr => ir::BinaryOp::Shr,
            BinaryOp::BitAnd => ir::BinaryOp::And,
            BinaryOp::BitOr => ir::BinaryOp::Or,
            BinaryOp::BitXor => ir::BinaryOp::Xor,
        };
        let result = self.builder().binary(op, lhs, rhs);
        self.report_overflow(op, lhs, rhs, result);
        Ok(Val::Value(result))
    }

    /// `base ** n` by squaring.
    fn small_power(&mut self, base: Value, n: u32) -> Value {
        let mut result: Option<Value> = None;
        let mut square = base;
        let mut rest = n;
        while rest > 0 {
            if rest & 1 == 1 {
                result = Some(match result {
                    None => square,
                    Some(so_far) => self.builder().binary(ir::BinaryOp::Mul, so_far, square),
                });
            }
            rest >>= 1;
            if rest > 0 {
                square = self.builder().binary(ir::BinaryOp::Mul, square, square);
            }
        }
        match result {
            Some(result) => result,
            None => {
                let ty = self.ty(base);
                let one = self.builder().constant(aerogel_base::Scalar::one(elem(ty)));
                self.builder().splat(one, ty)
            }
        }
    }

    pub(crate) fn compare_values(&mut self, op: CompareOp, lhs: &Val, rhs: &Val) -> Res<Val> {
        let op = match op {
            CompareOp::Eq => ir::CompareOp::Eq,
            CompareOp::Ne => ir::CompareOp::Ne,
            CompareOp::Lt => ir::CompareOp::Lt,
            CompareOp::Le => ir::CompareOp::Le,
            CompareOp::Gt => ir::CompareOp::Gt,
            CompareOp::Ge => ir::CompareOp::Ge,
            CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn => {
                let message = format!(
                    "`{}` needs operands that are known while compiling",
                    op.symbol()
                );
                return self.fail(ErrorKind::Syntax, "E0103", message);
            }
        };
        let (lhs, rhs) = self.promoted(lhs, rhs, op.name())?;
        Ok(Val::Value(self.builder().compare(op, lhs, rhs)))
    }

    pub(crate) fn unary_value(&mut self, op: UnaryOp, operand: &Val) -> Res<Val> {
        if op == UnaryOp::Not {
            let ty = self.expect_numeric(operand)?;
            if elem(ty).is_float() {
                return self.fail(
                    ErrorKind::Type,
                    "E0207",
                    format!("`not` needs an integer or a boolean, not `{ty}`"),
                );
            }
            let truth = self.operand(operand, ScalarType::U1, ty)?;
            return Ok(Val::Value(self.builder().unary(ir::UnaryOp::Not, truth)));
        }
        let value = self.load(operand)?;
        let ty = self.ty(value);
        Ok(Val::Value(match op {
            UnaryOp::Plus | UnaryOp::Not => value,
            UnaryOp::Minus => self.builder().unary(ir::UnaryOp::Neg, value),
            UnaryOp::Invert if elem(ty).is_float() => {
                return self.fail(
                    ErrorKind::Type,
                    "E0206",
                    format!("`~` needs an integer, not `{ty}`"),
                );
            }
            UnaryOp::Invert => self.builder().unary(ir::UnaryOp::Not, value),
        }))
    }

    /// A condition as `u1`.
    pub(crate) fn condition(&mut self, val: &Val) -> Res<Value> {
        if let Val::Known(known) = val
            && !matches!(known, Known::Tensor(_) | Known::Field(_) | Known::Float(_))
        {
            let truth = crate::fold::truth(self.host, known);
            let truth = self.hosted(truth)?;
            return Ok(self.builder().constant(aerogel_base::Scalar::bool(truth)));
        }
        let ty = self.expect_numeric(val)?;
        match ty.scalar() {
            Some(scalar) if scalar.is_int() => self.convert(val, Type::BOOL),
            _ => {
                let message = format!("a condition must be an integer or a boolean, not `{ty}`");
                let note = if ty.is_tensor() {
                    "combine the elements: `.all()` or `.any()`"
                } else {
                    "compare it: `x != 0`"
                };
                self.fail_noted(ErrorKind::Type, "E0208", message, note)
            }
        }
    }

    pub(crate) fn select(&mut self, cond: &Val, on_true: &Val, on_false: &Val) -> Res<Val> {
        let (tt, ft) = (
            self.expect_numeric(on_true)?,
            self.expect_numeric(on_false)?,
        );
        let ct = self.expect_numeric(cond)?;
        let shape = self.broadcast(tt, ft, "select")?;
        let shape = self.broadcast(shape, ct, "select")?;
        if elem(ct).is_float() {
            return self.fail(
                ErrorKind::Type,
                "E0208",
                format!("a condition must be an integer or a boolean, not `{ct}`"),
            );
        }
        let ty = elem(tt).promote(elem(ft));
        let on_true = self.operand(on_true, ty, shape)?;
        let on_false = self.operand(on_false, ty, shape)?;
        let cond = self.operand(
            cond,
            ScalarType::U1,
            if ct.is_tensor() { shape } else { ct },
        )?;
        let result = self.ty(on_true);
        Ok(Val::Value(self.value(
            Op::Select {
                cond,
                on_true,
                on_false,
            },
            result,
        )))
    }
}

/// The scalar type of a number or tensor.
pub(crate) fn elem(ty: Type) -> ScalarType {
    ty.elem().expect("a number or tensor has elements")
}
