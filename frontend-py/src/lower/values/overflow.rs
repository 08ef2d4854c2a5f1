//! Integer overflow under `debug=True`: a warning with the source location and the values, once a launch for each
//! location. The program continues with the wrapped result, since hashes and random numbers rely on it.

use aerogel_base::render::render_place;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{AtomicOp, BinaryOp, CompareOp, Op, Type, Value};

use crate::lower::Lower;
use crate::lower::values::Val;
use crate::lower::values::number::elem;

impl Lower<'_, '_> {
    /// Warns where `result`, which is `lhs op rhs`, is not the exact sum, difference, product or shifted number.
    pub(crate) fn report_overflow(&mut self, op: BinaryOp, lhs: Value, rhs: Value, result: Value) {
        let (what, sign) = match op {
            BinaryOp::Add => ("Addition", "+"),
            BinaryOp::Sub => ("Subtraction", "-"),
            BinaryOp::Mul => ("Multiplication", "*"),
            BinaryOp::Shl => ("Shift left", "<<"),
            _ => return,
        };
        let ty = elem(self.ty(result));
        if !self.config.debug || !ty.is_int() || ty == ScalarType::U1 {
            return;
        }
        let all = [lhs, rhs, result].map(|value| self.split(value));
        let [lhs, rhs, result] = all;
        for ((&x, &y), &z) in lhs.iter().zip(&rhs).zip(&result) {
            let wrapped = self.wrapped(op, x, y, z);
            let message = format!(
                "{what} overflow detected: {{}} {sign} {{}} does not fit `{ty}`, it becomes {{}}"
            );
            self.warn_if(wrapped, &message, vec![x, y, z]);
        }
    }

    /// As `report_overflow`, of an atomic change: from what was there before and what it was changed by.
    pub(crate) fn report_overflow_of_change(&mut self, op: AtomicOp, before: Value, by: Value) {
        let op = match op {
            AtomicOp::Add => BinaryOp::Add,
            AtomicOp::Sub => BinaryOp::Sub,
            AtomicOp::Mul => BinaryOp::Mul,
            _ => return,
        };
        if self.config.debug && elem(self.ty(before)).is_int() {
            let after = self.builder().binary(op, before, by);
            self.report_overflow(op, before, by, after);
        }
    }

    /// Warns where an integer that is stored does not fit its place; `stored` is what `val` was converted to.
    pub(crate) fn report_loss(&mut self, val: &Val, stored: Value) {
        let &Val::Value(given) = val else { return };
        let (from, to) = (elem(self.ty(given)), elem(self.ty(stored)));
        let integers = from.is_int() && to.is_int() && to != ScalarType::U1;
        if !self.config.debug || !integers || from == to {
            return;
        }
        let (given, stored) = (self.split(given), self.split(stored));
        for (&x, &y) in given.iter().zip(&stored) {
            let mut b = self.builder();
            let back = b.cast(y, from.into());
            let differs = b.compare(CompareOp::Ne, back, x);
            let [x_below, y_below] = [(x, from), (y, to)].map(|(value, ty)| {
                let zero = b.constant(Scalar::zero(ty));
                b.compare(CompareOp::Lt, value, zero)
            });
            let flips = b.compare(CompareOp::Ne, x_below, y_below);
            let lost = b.binary(BinaryOp::Or, differs, flips);
            let message =
                format!("Store overflow detected: {{}} does not fit `{to}`, it becomes {{}}");
            self.warn_if(lost, &message, vec![x, y]);
        }
    }

    /// Whether `z`, the wrapped result of `x op y`, is not the exact one.
    fn wrapped(&mut self, op: BinaryOp, x: Value, y: Value, z: Value) -> Value {
        let ty = elem(self.ty(z));
        let signed = ty.is_signed();
        let mut b = self.builder();
        let zero = b.constant(Scalar::zero(ty));
        match op {
            BinaryOp::Add if signed => {
                // The result has the sign of neither.
                let of_x = b.binary(BinaryOp::Xor, x, z);
                let of_y = b.binary(BinaryOp::Xor, y, z);
                let both = b.binary(BinaryOp::And, of_x, of_y);
                b.compare(CompareOp::Lt, both, zero)
            }
            BinaryOp::Add => b.compare(CompareOp::Lt, z, x),
            BinaryOp::Sub if signed => {
                let apart = b.binary(BinaryOp::Xor, x, y);
                let of_x = b.binary(BinaryOp::Xor, x, z);
                let both = b.binary(BinaryOp::And, apart, of_x);
                b.compare(CompareOp::Lt, both, zero)
            }
            BinaryOp::Sub => b.compare(CompareOp::Lt, x, y),
            BinaryOp::Shl => {
                let bits = b.constant(Scalar::int(ty, ty.bits().into()));
                let too_far = b.compare(CompareOp::Ge, y, bits);
                let backwards = b.compare(CompareOp::Lt, y, zero);
                let back = b.binary(BinaryOp::Shr, z, y);
                let lost = b.compare(CompareOp::Ne, back, x);
                let outside = b.binary(BinaryOp::Or, too_far, backwards);
                let something = b.compare(CompareOp::Ne, x, zero);
                let any = b.binary(BinaryOp::Or, outside, lost);
                b.binary(BinaryOp::And, any, something)
            }
            _ if ty.bits() <= 32 => {
                let wide: Type = if signed {
                    ScalarType::I64.into()
                } else {
                    ScalarType::U64.into()
                };
                let [x, y, z] = [x, y, z].map(|value| b.cast(value, wide));
                let exact = b.binary(BinaryOp::Mul, x, y);
                b.compare(CompareOp::Ne, exact, z)
            }
            _ => {
                // Dividing gives the other factor back, but for -1 times the smallest number.
                let one = b.constant(Scalar::one(ty));
                let is_zero = b.compare(CompareOp::Eq, y, zero);
                let divisor = b.select(is_zero, one, y);
                let quotient = b.binary(BinaryOp::Div, z, divisor);
                let differs = b.compare(CompareOp::Ne, quotient, x);
                let is_nonzero = b.compare(CompareOp::Ne, y, zero);
                let mut wrapped = b.binary(BinaryOp::And, differs, is_nonzero);
                if signed {
                    let minus = b.constant(Scalar::int(ty, -1));
                    let smallest = b.constant(Scalar::int(ty, i64::MIN.into()));
                    let negates = b.compare(CompareOp::Eq, y, minus);
                    let is_smallest = b.compare(CompareOp::Eq, x, smallest);
                    let special = b.binary(BinaryOp::And, negates, is_smallest);
                    wrapped = b.binary(BinaryOp::Or, wrapped, special);
                }
                wrapped
            }
        }
    }

    /// Prints a message about the current place, once a launch, if `cond` holds. `args` stand for its `{}`.
    fn warn_if(&mut self, cond: Value, message: &str, args: Vec<Value>) {
        let span = self.span();
        let mut place = String::new();
        let env = &self.module.env;
        render_place(&mut place, span, None, &env.spans, &env.sources);
        let place = place.replace('{', "{{").replace('}', "}}");
        let template = format!("{message}{place}\n");
        let [then, otherwise] = [(); 2].map(|()| self.state.func.new_region(&[]));
        self.within(then, |lower| {
            lower.effect(Op::Warn { template, args });
            lower.builder().yields(vec![]);
        });
        self.within(otherwise, |lower| lower.builder().yields(vec![]));
        self.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }
}
