//! The derivatives of a kernel's operations, by the table that kernels and tensors share (`aerogel_ir::derivatives`).

use aerogel_base::Scalar;
use aerogel_ir::derivatives::{
    Arithmetic, OF_X, factor, of_binary, of_unary, through_binary, through_unary, zero_where_none,
};
use aerogel_ir::{BinaryOp, Builder, CompareOp, Function, Op, Type, UnaryOp, Value};

pub(crate) use aerogel_ir::derivatives::{Partial, Values};

/// Instructions of a kernel.
struct Instructions<'b, 'f>(&'b mut Builder<'f>);

impl Arithmetic for Instructions<'_, '_> {
    type Value = Value;

    fn unary(&mut self, op: UnaryOp, x: Value) -> Value {
        self.0.unary(op, x)
    }

    fn binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Value {
        self.0.binary(op, x, y)
    }

    fn compare(&mut self, op: CompareOp, x: Value, y: Value) -> Value {
        self.0.compare(op, x, y)
    }

    fn select(&mut self, cond: Value, yes: Value, no: Value) -> Value {
        self.0.select(cond, yes, no)
    }

    fn number(&mut self, like: Value, value: f64) -> Value {
        let ty = self.0.func.elem(like);
        self.0.constant(Scalar::float(ty, value))
    }
}

/// The derivative of `op` by its operand number `k`. Operations on anything but floats have none.
pub(crate) fn partial(func: &Function, op: &Op, k: usize) -> Partial {
    let is_float = |v: Value| func.ty(v).elem().is_some_and(|e| e.is_float());
    match op {
        Op::Unary { op, x } if is_float(*x) => of_unary(*op),
        Op::Binary { op, lhs, .. } if is_float(*lhs) => of_binary(*op, k),
        Op::Select { .. } => match k {
            0 => Partial::Zero,
            _ => Partial::Chosen(k == 1),
        },
        Op::Fma { .. } | Op::MulAdd { .. } => match k {
            0 => factor([false, true, false], false, false),
            1 => OF_X,
            _ => Partial::One,
        },
        Op::Cast { x } => match is_float(*x) {
            // Where the result is an integer, it has no derivative to pass on.
            true => Partial::Convert,
            false => Partial::Zero,
        },
        Op::Bitcast { x } if is_float(*x) => Partial::None("the bits of a number"),
        Op::Unary { .. }
        | Op::Binary { .. }
        | Op::Compare { .. }
        | Op::StopGradient { .. }
        | Op::Bitcast { .. } => Partial::Zero,
        op => unreachable!("{op:?} is no operation on scalars"),
    }
}

/// The product of a change `d` with the derivative of `op` by its operand number `k`; nothing if that is zero. The
/// values of the operands, and of the result if the row needs it, are at hand; a conversion ends in `converted`.
pub(crate) fn apply(
    b: &mut Builder<'_>,
    op: &Op,
    k: usize,
    partial: Partial,
    values: Values<'_, Value>,
    converted: Type,
    d: Value,
) -> Option<Value> {
    match partial {
        Partial::Zero | Partial::None(_) => None,
        Partial::One => Some(d),
        Partial::MinusOne => Some(b.unary(UnaryOp::Neg, d)),
        Partial::Convert => Some(b.cast(d, converted)),
        Partial::Chosen(when) => {
            let zero = Instructions(b).number(d, 0.0);
            let (yes, no) = if when { (d, zero) } else { (zero, d) };
            Some(b.select(values.operand(0), yes, no))
        }
        Partial::Factor { strong, .. } => {
            let b = &mut Instructions(b);
            let product = match op {
                Op::Unary { op, .. } => through_unary(b, *op, values, d),
                Op::Binary { op, .. } => through_binary(b, *op, k, values, d),
                Op::Fma { .. } | Op::MulAdd { .. } => {
                    b.binary(BinaryOp::Mul, d, values.operand(1 - k))
                }
                op => unreachable!("{op:?} has no factor"),
            };
            Some(if strong {
                zero_where_none(b, d, product)
            } else {
                product
            })
        }
    }
}

/// Whether a value is a float.
pub(crate) fn is_float(func: &Function, value: Value) -> bool {
    func.ty(value).scalar().is_some_and(|ty| ty.is_float())
}

/// Whether an instruction makes a float of its operands alone.
pub(crate) fn is_scalar_op(func: &Function, op: &Op, results: &[Value]) -> bool {
    let computes = matches!(
        op,
        Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Select { .. }
            | Op::Fma { .. }
            | Op::MulAdd { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::StopGradient { .. }
            | Op::Compare { .. }
    );
    computes && is_float(func, results[0])
}
