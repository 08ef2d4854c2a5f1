//! The derivative of each scalar operation: one row for each, which kernels and tensors, reverse and forward mode share.
//!
//! A row says what the result changes by when an operand does. Where a function has a kink, the table of
//! `docs/gradients.md` says which derivative is taken.

use crate::{BinaryOp, CompareOp, UnaryOp};

/// A builder for the arithmetic of a derivative: instructions of a kernel, or expressions of a tensor program.
pub trait Arithmetic {
    /// A computed number.
    type Value: Copy;

    /// Arithmetic on one number.
    fn unary(&mut self, op: UnaryOp, x: Self::Value) -> Self::Value;
    /// Arithmetic on two numbers of one type.
    fn binary(&mut self, op: BinaryOp, x: Self::Value, y: Self::Value) -> Self::Value;
    /// A comparison of two numbers of one type.
    fn compare(&mut self, op: CompareOp, x: Self::Value, y: Self::Value) -> Self::Value;
    /// One of two numbers.
    fn select(&mut self, cond: Self::Value, yes: Self::Value, no: Self::Value) -> Self::Value;
    /// A constant of the type of `like`.
    fn number(&mut self, like: Self::Value, value: f64) -> Self::Value;
}

/// The derivative of an operation by one of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partial {
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
        /// Whether the factor may be infinite or no number where the change is zero.
        strong: bool,
    },
    /// There is none that makes sense: the message says why.
    None(&'static str),
}

/// A product with a factor.
pub const fn factor(operands: [bool; 3], result: bool, strong: bool) -> Partial {
    Partial::Factor {
        operands,
        result,
        strong,
    }
}

/// A factor that is made of the first operand.
pub const OF_X: Partial = factor([true, false, false], false, false);
const OF_X_STRONG: Partial = factor([true, false, false], false, true);
const OF_R: Partial = factor([false; 3], true, false);
const OF_R_STRONG: Partial = factor([false; 3], true, true);
const OF_BOTH: Partial = factor([true, true, false], false, false);
const OF_BOTH_STRONG: Partial = factor([true, true, false], false, true);

/// The derivative of an operation on one float.
pub fn of_unary(op: UnaryOp) -> Partial {
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

/// The derivative of an operation on two floats by operand number `k`.
pub fn of_binary(op: BinaryOp, k: usize) -> Partial {
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
            _ => factor([true, true, false], true, true),
        },
        Atan2 => OF_BOTH_STRONG,
        Min | Max => OF_BOTH,
        FloorDiv | And | Or | Xor | Shl | Shr | UShr => Partial::Zero,
    }
}

/// The values that a factor is made of.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a, V> {
    /// The operands; those that the row does not use may be missing.
    pub operands: &'a [Option<V>],
    /// The result, if the row uses it.
    pub result: Option<V>,
}

impl<V: Copy> Values<'_, V> {
    /// An operand that the row uses.
    ///
    /// # Panics
    /// If it is missing.
    pub fn operand(self, k: usize) -> V {
        self.operands[k].expect("the row uses the operand")
    }

    fn result(self) -> V {
        self.result.expect("the row uses the result")
    }
}

/// A product of a change `d` with a factor that may be infinite or NaN: zero where `d` is zero.
///
/// Only a product that is NaN is replaced. Where the factor is finite, the result stays the product, so that its own
/// derivative by `d` is the factor also where `d` is zero.
pub fn zero_where_none<A: Arithmetic>(b: &mut A, d: A::Value, product: A::Value) -> A::Value {
    let zero = b.number(d, 0.0);
    let is_zero = b.compare(CompareOp::Eq, d, zero);
    let is_nan = b.compare(CompareOp::Ne, product, product);
    let none = b.binary(BinaryOp::And, is_zero, is_nan);
    b.select(none, zero, product)
}

/// The product of a tangent `d` with the derivative of an operation on one number, whose row has a factor.
///
/// # Panics
/// If the row has no factor.
pub fn through_unary<A: Arithmetic>(
    b: &mut A,
    op: UnaryOp,
    values: Values<'_, A::Value>,
    d: A::Value,
) -> A::Value {
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
            let half = b.number(d, 0.5);
            let zero = b.number(d, 0.0);
            let halved = b.binary(Mul, d, half);
            let quotient = b.binary(Div, halved, r());
            let has_slope = b.compare(CompareOp::Gt, r(), zero);
            b.select(has_slope, quotient, zero)
        }
        UnaryOp::Rsqrt => {
            let minus_half = b.number(d, -0.5);
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
            let one = b.number(d, 1.0);
            let square = b.binary(Mul, r(), r());
            let slope = b.binary(Add, one, square);
            b.binary(Mul, d, slope)
        }
        UnaryOp::Tanh => {
            let one = b.number(d, 1.0);
            let square = b.binary(Mul, r(), r());
            let slope = b.binary(Sub, one, square);
            b.binary(Mul, d, slope)
        }
        UnaryOp::Asin | UnaryOp::Acos => {
            let one = b.number(d, 1.0);
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
            let one = b.number(d, 1.0);
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
            let ln_2 = b.number(d, std::f64::consts::LN_2);
            let slope = b.binary(Mul, r(), ln_2);
            b.binary(Mul, d, slope)
        }
        UnaryOp::Log => b.binary(Div, d, x()),
        UnaryOp::Log2 => {
            let scaled = b.number(d, std::f64::consts::LOG2_E);
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

/// The same of an operation on two numbers, by operand number `k`.
///
/// # Panics
/// If the row has no factor.
pub fn through_binary<A: Arithmetic>(
    b: &mut A,
    op: BinaryOp,
    k: usize,
    values: Values<'_, A::Value>,
    d: A::Value,
) -> A::Value {
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
            let (zero, one) = (b.number(d, 0.0), b.number(d, 1.0));
            let less = b.binary(Sub, y(), one);
            let power = b.binary(BinaryOp::Pow, x(), less);
            let slope = b.binary(Mul, y(), power);
            let flat = b.compare(CompareOp::Eq, y(), zero);
            let slope = b.select(flat, zero, slope);
            b.binary(Mul, d, slope)
        }
        (BinaryOp::Pow, _) => {
            // NaN below zero, where a power is a number only for whole exponents.
            let zero = b.number(d, 0.0);
            let log = b.unary(UnaryOp::Log, x());
            let slope = b.binary(Mul, r(), log);
            let is_zero = b.compare(CompareOp::Eq, x(), zero);
            let is_flat = b.compare(CompareOp::Ge, y(), zero);
            let is_flat = b.binary(BinaryOp::And, is_zero, is_flat);
            let slope = b.select(is_flat, zero, slope);
            b.binary(Mul, d, slope)
        }
        (BinaryOp::Atan2, _) => {
            let zero = b.number(d, 0.0);
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
            let zero = b.number(d, 0.0);
            let (yes, no) = if k == 0 { (d, zero) } else { (zero, d) };
            b.select(first, yes, no)
        }
        _ => unreachable!("{op} has no factor by operand {k}"),
    }
}
