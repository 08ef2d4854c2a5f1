//! Adjoints through functions that recording writes as several operations.

use aerogel_ir::derivatives::Arithmetic;
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};

use super::Reverse;
use super::expressions::Expressions;
use crate::ir::{Expr, Function};
use crate::record::Recorded;

/// `2 / sqrt(pi)`.
const TWO_OVER_ROOT_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI;

impl Reverse<'_> {
    /// The contribution of the adjoint `d` of a function's result to that of its operand `k`; nothing if it does not matter
    /// smoothly.
    pub(super) fn through_function(
        &mut self,
        function: Function,
        k: usize,
        operands: &[Expr],
        result: Expr,
        d: Expr,
    ) -> Recorded<Option<Expr>> {
        use BinaryOp::{Add, Div, Mul, Sub};
        let x = operands[0];
        let signs = match function {
            Function::CopySign => operands
                .iter()
                .map(|&e| self.recording.signbit(e))
                .collect(),
            _ => Vec::new(),
        };
        let length = match function {
            // `sqrt(x^2 + 1)` without overflow.
            Function::Asinh => {
                let one = Expressions(&mut self.recording.program.exprs).number(x, 1.0);
                Some(self.recording.hypot(x, one))
            }
            _ => None,
        };
        // `1 / (1 + exp(y - x))`: the part that each of two exponentials has in their sum.
        let share = match function {
            Function::LogAddExp => {
                let off = self.recording.sub(operands[k], operands[1 - k]);
                let share = self.recording.sigmoid(off);
                let operands = vec![off];
                let exprs = &mut self.recording.program.exprs;
                exprs.note_function(share, Function::Sigmoid, operands);
                Some(share)
            }
            _ => None,
        };
        let a = &mut Expressions(&mut self.recording.program.exprs);
        let one = a.number(d, 1.0);
        let zero = a.number(d, 0.0);
        Ok(Some(match function {
            Function::Strong => {
                let other = operands[1 - k];
                let product = a.binary(Mul, d, other);
                a.strong(d, other, product)
            }
            Function::Extreme => {
                let nan = a.number(d, f64::NAN);
                let is_zero = a.compare(CompareOp::Eq, d, zero);
                let unknown = a.select(is_zero, zero, nan);
                a.select(operands[0], unknown, d)
            }
            Function::Rint | Function::FloorDivide | Function::Sign => return Ok(None),
            Function::CopySign if k == 1 => return Ok(None),
            Function::CopySign => {
                let minus = a.unary(UnaryOp::Neg, d);
                let same = a.compare(CompareOp::Eq, signs[0], signs[1]);
                a.select(same, d, minus)
            }
            Function::Log1p => {
                let sum = a.binary(Add, one, x);
                let (part, factor) = (a.binary(Div, d, sum), a.binary(Div, one, sum));
                a.strong(d, factor, part)
            }
            Function::Expm1 => {
                let slope = a.binary(Add, result, one);
                a.binary(Mul, d, slope)
            }
            Function::Asinh => a.binary(Div, d, length.expect("it is made above")),
            Function::Acosh => {
                let (less, more) = (a.binary(Sub, x, one), a.binary(Add, x, one));
                let (less, more) = (a.unary(UnaryOp::Sqrt, less), a.unary(UnaryOp::Sqrt, more));
                let root = a.binary(Mul, less, more);
                let (part, factor) = (a.binary(Div, d, root), a.binary(Div, one, root));
                a.strong(d, factor, part)
            }
            Function::Atanh => {
                let (less, more) = (a.binary(Sub, one, x), a.binary(Add, one, x));
                let product = a.binary(Mul, less, more);
                let (part, factor) = (a.binary(Div, d, product), a.binary(Div, one, product));
                a.strong(d, factor, part)
            }
            Function::Cbrt => {
                let three = a.number(d, 3.0);
                let square = a.binary(Mul, result, result);
                let below = a.binary(Mul, three, square);
                let (part, factor) = (a.binary(Div, d, below), a.binary(Div, one, below));
                a.strong(d, factor, part)
            }
            Function::Sigmoid => {
                let rest = a.binary(Sub, one, result);
                let slope = a.binary(Mul, result, rest);
                a.binary(Mul, d, slope)
            }
            Function::Erf => {
                let square = a.binary(Mul, x, x);
                let minus = a.unary(UnaryOp::Neg, square);
                let exp = a.unary(UnaryOp::Exp, minus);
                let factor = a.number(d, TWO_OVER_ROOT_PI);
                let slope = a.binary(Mul, factor, exp);
                a.binary(Mul, d, slope)
            }
            Function::Relu => {
                let is_off = a.compare(CompareOp::Le, x, zero);
                a.select(is_off, zero, d)
            }
            Function::Hypot => {
                let product = a.binary(Mul, d, operands[k]);
                let part = a.binary(Div, product, result);
                // The length of nothing pulls nowhere.
                let nothing = a.compare(CompareOp::Eq, result, zero);
                a.select(nothing, zero, part)
            }
            Function::LogAddExp => a.binary(Mul, d, share.expect("it is made above")),
            Function::Minimum | Function::Maximum => {
                let op = match function {
                    Function::Maximum => CompareOp::Gt,
                    _ => CompareOp::Lt,
                };
                let (own, other) = (operands[k], operands[1 - k]);
                let half = a.number(d, 0.5);
                let halved = a.binary(Mul, d, half);
                let wins = a.compare(op, own, other);
                let tie = a.compare(CompareOp::Eq, own, other);
                let no_number = a.compare(CompareOp::Ne, own, own);
                let wins = a.binary(BinaryOp::Or, wins, no_number);
                let shared = a.select(tie, halved, zero);
                a.select(wins, d, shared)
            }
        }))
    }
}
