//! The derivative of each scalar operation: one row for each, which reverse and forward mode share.
//!
//! A row says what the result changes by when an operand does. Where a function has a kink, the table of
//! `docs/gradients.md` says which derivative is taken.

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, Builder, CompareOp, Function, Op, UnaryOp, Value};

/// The derivative of an operation by one of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partial {
    /// The operand does not matter, or not smoothly.
    Zero,
    /// The operand's change is the result's.
    One,
    /// The result changes the other way.
    MinusOne,
    /// The change is converted to the other type.
    Convert,
    /// The change counts where the condition, operand 0, holds; or where it does not.
    Chosen(bool),
    /// The product with a factor made of operands and of the result; `strong` if the factor may be infinite or no
    /// number where the change is zero, and the product is zero then.
    Factor {
        /// Which operands the factor is made of.
        operands: [bool; 3],
        /// Whether it is made of the result.
        result: bool,
        strong: bool,
    },
    /// There is none that makes sense: the message says why.
    None(&'static str),
}

const fn factor(operands: [bool; 3], result: bool, strong: bool) -> Partial {
    Partial::Factor {
        operands,
        result,
        strong,
    }
}

const OF_X: Partial = factor([true, false, false], false, false);
const OF_X_STRONG: Partial = factor([true, false, false], false, true);
const OF_R: Partial = factor([false; 3], true, false);
const OF_R_STRONG: Partial = factor([false; 3], true, true);
const OF_BOTH: Partial = factor([true, true, false], false, false);
const OF_BOTH_STRONG: Partial = factor([true, true, false], false, true);

/// The derivative of `op` by its operand number `k`. Operations on anything but floats have none.
pub(crate) fn partial(func: &Function, op: &Op, k: usize) -> Partial {
    let is_float = |v: Value| func.ty(v).elem().is_some_and(|e| e.is_float());
    match op {
        Op::Unary { op, x } if is_float(*x) => unary(*op),
        Op::Binary { op, lhs, .. } if is_float(*lhs) => binary(*op, k),
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

fn unary(op: UnaryOp) -> Partial {
    use UnaryOp::*;
    match op {
        Neg => Partial::MinusOne,
        Abs => OF_X,
        Sign | Floor | Ceil | Round | Trunc | Not | Popcnt | Clz => Partial::Zero,
        Sqrt => OF_R,
        Rsqrt => OF_R_STRONG,
        Sin | Cos | Sinh | Cosh => OF_X,
        Tan | Tanh => OF_R,
        Asin | Acos | Log | Log2 => OF_X_STRONG,
        Atan => OF_X,
        Exp | Exp2 => OF_R,
    }
}

fn binary(op: BinaryOp, k: usize) -> Partial {
    use BinaryOp::*;
    match op {
        Add => Partial::One,
        Sub => match k {
            0 => Partial::One,
            _ => Partial::MinusOne,
        },
        Mul => match k {
            0 => factor([false, true, false], false, false),
            _ => OF_X,
        },
        Div => match k {
            0 => factor([false, true, false], false, true),
            _ => factor([false, true, false], true, true),
        },
        Rem | Mod => match k {
            0 => Partial::One,
            _ => OF_BOTH_STRONG,
        },
        Pow => match k {
            0 => OF_BOTH_STRONG,
            _ => factor([true, false, false], true, true),
        },
        Atan2 => OF_BOTH_STRONG,
        Min | Max => OF_BOTH,
        FloorDiv | And | Or | Xor | Shl | Shr | UShr => Partial::Zero,
    }
}

/// The product of a change `d` with the derivative of `op` by its operand number `k`; nothing if that is zero. The
/// values of the operands, and of the result if the row asks for it, are at hand.
pub(crate) fn apply(
    b: &mut Builder<'_>,
    op: &Op,
    k: usize,
    partial: Partial,
    values: Values<'_>,
    d: Value,
) -> Option<Value> {
    let ty = b.func.ty(d);
    match partial {
        Partial::Zero | Partial::None(_) => None,
        Partial::One => Some(d),
        Partial::MinusOne => Some(b.unary(UnaryOp::Neg, d)),
        Partial::Convert => Some(b.cast(d, values.converted)),
        Partial::Chosen(when) => {
            let zero = number(b, d, 0.0);
            let (yes, no) = if when { (d, zero) } else { (zero, d) };
            Some(b.select(values.operand(0), yes, no))
        }
        Partial::Factor { strong, .. } => {
            let product = match op {
                Op::Unary { op, .. } => of_unary(b, *op, values, d),
                Op::Binary { op, .. } => of_binary(b, *op, k, values, d),
                Op::Fma { .. } | Op::MulAdd { .. } => {
                    b.binary(BinaryOp::Mul, d, values.operand(1 - k))
                }
                op => unreachable!("{op:?} has no factor"),
            };
            if !strong {
                return Some(product);
            }
            let zero = b.constant(Scalar::float(ty.scalar().expect("a scalar"), 0.0));
            let none = b.compare(CompareOp::Eq, d, zero);
            Some(b.select(none, zero, product))
        }
    }
}

/// The values that a factor is made of.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    /// The operands; those that the row does not ask for may be missing.
    pub(crate) operands: &'a [Option<Value>],
    /// The result.
    pub(crate) result: Option<Value>,
    /// The type that a conversion of the change ends in.
    pub(crate) converted: aerogel_ir::Type,
}

impl Values<'_> {
    fn operand(self, k: usize) -> Value {
        self.operands[k].expect("the row asks for the operand")
    }

    fn result(self) -> Value {
        self.result.expect("the row asks for the result")
    }
}

/// A constant of the type of `like`.
fn number(b: &mut Builder<'_>, like: Value, value: f64) -> Value {
    let ty = b.func.elem(like);
    b.constant(Scalar::float(ty, value))
}

fn of_unary(b: &mut Builder<'_>, op: UnaryOp, values: Values<'_>, d: Value) -> Value {
    use BinaryOp::{Add, Div, Mul, Sub};
    let x = || values.operand(0);
    let r = || values.result();
    match op {
        UnaryOp::Abs => {
            let sign = b.unary(UnaryOp::Sign, x());
            b.binary(Mul, d, sign)
        }
        UnaryOp::Sqrt => {
            // At zero the slope is infinite: zero is taken, so that the length of nothing pulls nowhere.
            let half = number(b, d, 0.5);
            let zero = number(b, d, 0.0);
            let halved = b.binary(Mul, d, half);
            let quotient = b.binary(Div, halved, r());
            let has_slope = b.compare(CompareOp::Gt, r(), zero);
            b.select(has_slope, quotient, zero)
        }
        UnaryOp::Rsqrt => {
            let minus_half = number(b, d, -0.5);
            let square = b.binary(Mul, r(), r());
            let cube = b.binary(Mul, square, r());
            let scaled = b.binary(Mul, d, minus_half);
            b.binary(Mul, scaled, cube)
        }
        UnaryOp::Sin => {
            let slope = b.unary(UnaryOp::Cos, x());
            b.binary(Mul, d, slope)
        }
        UnaryOp::Cos => {
            let sine = b.unary(UnaryOp::Sin, x());
            let product = b.binary(Mul, d, sine);
            b.unary(UnaryOp::Neg, product)
        }
        UnaryOp::Tan => {
            let one = number(b, d, 1.0);
            let square = b.binary(Mul, r(), r());
            let slope = b.binary(Add, one, square);
            b.binary(Mul, d, slope)
        }
        UnaryOp::Tanh => {
            let one = number(b, d, 1.0);
            let square = b.binary(Mul, r(), r());
            let slope = b.binary(Sub, one, square);
            b.binary(Mul, d, slope)
        }
        UnaryOp::Asin | UnaryOp::Acos => {
            let one = number(b, d, 1.0);
            let square = b.binary(Mul, x(), x());
            let rest = b.binary(Sub, one, square);
            let root = b.unary(UnaryOp::Sqrt, rest);
            let quotient = b.binary(Div, d, root);
            match op {
                UnaryOp::Asin => quotient,
                _ => b.unary(UnaryOp::Neg, quotient),
            }
        }
        UnaryOp::Atan => {
            let one = number(b, d, 1.0);
            let square = b.binary(Mul, x(), x());
            let sum = b.binary(Add, one, square);
            b.binary(Div, d, sum)
        }
        UnaryOp::Sinh => {
            let slope = b.unary(UnaryOp::Cosh, x());
            b.binary(Mul, d, slope)
        }
        UnaryOp::Cosh => {
            let slope = b.unary(UnaryOp::Sinh, x());
            b.binary(Mul, d, slope)
        }
        UnaryOp::Exp => b.binary(Mul, d, r()),
        UnaryOp::Exp2 => {
            let ln_2 = number(b, d, std::f64::consts::LN_2);
            let slope = b.binary(Mul, r(), ln_2);
            b.binary(Mul, d, slope)
        }
        UnaryOp::Log => b.binary(Div, d, x()),
        UnaryOp::Log2 => {
            let scaled = number(b, d, std::f64::consts::LOG2_E);
            let scaled = b.binary(Mul, d, scaled);
            b.binary(Div, scaled, x())
        }
        UnaryOp::Neg
        | UnaryOp::Sign
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::Trunc
        | UnaryOp::Not
        | UnaryOp::Popcnt
        | UnaryOp::Clz => unreachable!("{op} has no factor"),
    }
}

fn of_binary(b: &mut Builder<'_>, op: BinaryOp, k: usize, values: Values<'_>, d: Value) -> Value {
    use BinaryOp::{Add, Div, Mul, Or, Sub};
    let x = || values.operand(0);
    let y = || values.operand(1);
    let r = || values.result();
    match (op, k) {
        (BinaryOp::Mul, 0) => b.binary(Mul, d, y()),
        (BinaryOp::Mul, _) => b.binary(Mul, d, x()),
        (BinaryOp::Div, 0) => b.binary(Div, d, y()),
        (BinaryOp::Div, _) => {
            let slope = b.binary(Div, r(), y());
            let product = b.binary(Mul, d, slope);
            b.unary(UnaryOp::Neg, product)
        }
        (BinaryOp::Rem | BinaryOp::Mod, _) => {
            let quotient = b.binary(Div, x(), y());
            let whole = match op {
                BinaryOp::Rem => UnaryOp::Trunc,
                _ => UnaryOp::Floor,
            };
            let turns = b.unary(whole, quotient);
            let product = b.binary(Mul, d, turns);
            b.unary(UnaryOp::Neg, product)
        }
        (BinaryOp::Pow, 0) => {
            // Constant for an exponent of zero, at zero as well.
            let (zero, one) = (number(b, d, 0.0), number(b, d, 1.0));
            let less = b.binary(Sub, y(), one);
            let power = b.binary(BinaryOp::Pow, x(), less);
            let slope = b.binary(Mul, y(), power);
            let flat = b.compare(CompareOp::Eq, y(), zero);
            let slope = b.select(flat, zero, slope);
            b.binary(Mul, d, slope)
        }
        (BinaryOp::Pow, _) => {
            // A power of a number below zero is one only for whole exponents.
            let zero = number(b, d, 0.0);
            let log = b.unary(UnaryOp::Log, x());
            let slope = b.binary(Mul, r(), log);
            let positive = b.compare(CompareOp::Gt, x(), zero);
            let slope = b.select(positive, slope, zero);
            b.binary(Mul, d, slope)
        }
        (BinaryOp::Atan2, _) => {
            let zero = number(b, d, 0.0);
            let (xx, yy) = (b.binary(Mul, x(), x()), b.binary(Mul, y(), y()));
            let square = b.binary(Add, xx, yy);
            let other = if k == 0 { y() } else { x() };
            let product = b.binary(Mul, d, other);
            let quotient = b.binary(Div, product, square);
            let quotient = match k {
                0 => quotient,
                _ => b.unary(UnaryOp::Neg, quotient),
            };
            let origin = b.compare(CompareOp::Eq, square, zero);
            b.select(origin, zero, quotient)
        }
        (BinaryOp::Min | BinaryOp::Max, _) => {
            // Of two equal numbers the second counts; of a number and what is none, the number.
            let further = match op {
                BinaryOp::Max => CompareOp::Gt,
                _ => CompareOp::Lt,
            };
            let beyond = b.compare(further, x(), y());
            let alone = b.compare(CompareOp::Ne, y(), y());
            let first = b.binary(Or, beyond, alone);
            let zero = number(b, d, 0.0);
            let (yes, no) = if k == 0 { (d, zero) } else { (zero, d) };
            b.select(first, yes, no)
        }
        _ => unreachable!("{op} has no factor by operand {k}"),
    }
}
