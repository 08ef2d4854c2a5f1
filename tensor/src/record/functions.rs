//! Scalar functions that are several operations.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};

use crate::ir::{Expr, ExprDef};

use super::Recording;
use super::erf::{ERF_NEAR, ERF_NEAR_SINGLE, ERFC_FAR, ERFC_FAR_SINGLE};

/// The unsigned integer of a float's width.
pub(crate) fn bits_of(ty: ScalarType) -> ScalarType {
    match ty.bits() {
        8 => ScalarType::U8,
        16 => ScalarType::U16,
        32 => ScalarType::U32,
        _ => ScalarType::U64,
    }
}

impl Recording {
    fn ty_of(&self, x: Expr) -> ScalarType {
        self.program.exprs.ty(x)
    }

    fn unary_op(&mut self, op: UnaryOp, x: Expr) -> Expr {
        self.program.exprs.unary(op, x)
    }

    fn binary_op(&mut self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        self.program.exprs.binary(op, a, b)
    }

    fn compare(&mut self, op: CompareOp, a: Expr, b: Expr) -> Expr {
        self.program.exprs.compare(op, a, b)
    }

    fn choose(&mut self, cond: Expr, a: Expr, b: Expr) -> Expr {
        self.program.exprs.select(cond, a, b)
    }

    fn div(&mut self, a: Expr, b: Expr) -> Expr {
        self.binary_op(BinaryOp::Div, a, b)
    }

    /// A constant of the type that `x` has.
    fn like(&mut self, x: Expr, value: f64) -> Expr {
        let ty = self.ty_of(x);
        self.number(ty, value)
    }

    fn scaled(&mut self, x: Expr, factor: f64) -> Expr {
        let factor = self.like(x, factor);
        self.mul(x, factor)
    }

    /// Whether a number is other than zero.
    pub(crate) fn truth(&mut self, x: Expr) -> Expr {
        let ty = self.ty_of(x);
        if ty == ScalarType::U1 {
            return x;
        }
        let zero = self.program.exprs.constant(Scalar::zero(ty));
        self.compare(CompareOp::Ne, x, zero)
    }

    pub(crate) fn logical_not(&mut self, x: Expr) -> Expr {
        let x = self.truth(x);
        self.unary_op(UnaryOp::Not, x)
    }

    fn truth_value(&mut self, value: bool) -> Expr {
        self.program.exprs.constant(Scalar::bool(value))
    }

    pub(crate) fn isnan(&mut self, x: Expr) -> Expr {
        if self.ty_of(x).is_int() {
            return self.truth_value(false);
        }
        self.compare(CompareOp::Ne, x, x)
    }

    pub(crate) fn isinf(&mut self, x: Expr) -> Expr {
        if self.ty_of(x).is_int() {
            return self.truth_value(false);
        }
        let size = self.unary_op(UnaryOp::Abs, x);
        let infinity = self.like(x, f64::INFINITY);
        self.compare(CompareOp::Eq, size, infinity)
    }

    pub(crate) fn isfinite(&mut self, x: Expr) -> Expr {
        if self.ty_of(x).is_int() {
            return self.truth_value(true);
        }
        let size = self.unary_op(UnaryOp::Abs, x);
        let infinity = self.like(x, f64::INFINITY);
        self.lt(size, infinity)
    }

    pub(crate) fn signbit(&mut self, x: Expr) -> Expr {
        let ty = self.ty_of(x);
        if ty.is_int() {
            let zero = self.program.exprs.constant(Scalar::zero(ty));
            return self.lt(x, zero);
        }
        let bits = bits_of(ty);
        let word = self.program.exprs.add(ExprDef::Bitcast(x, bits));
        let shift = self.program.exprs.int(bits, i128::from(ty.bits() - 1));
        let sign = self.binary_op(BinaryOp::UShr, word, shift);
        self.truth(sign)
    }

    pub(crate) fn copysign(&mut self, x: Expr, sign: Expr) -> Expr {
        let ty = self.ty_of(x);
        let bits = bits_of(ty);
        let [x, sign] = [x, sign].map(|e| self.program.exprs.add(ExprDef::Bitcast(e, bits)));
        let top = 1_i128 << (ty.bits() - 1);
        let [mask, rest] = [top, top - 1].map(|m| self.program.exprs.int(bits, m));
        let size = self.binary_op(BinaryOp::And, x, rest);
        let sign = self.binary_op(BinaryOp::And, sign, mask);
        let word = self.binary_op(BinaryOp::Or, size, sign);
        self.program.exprs.add(ExprDef::Bitcast(word, ty))
    }

    /// The next number from `x` towards `to`.
    pub(crate) fn nextafter(&mut self, x: Expr, to: Expr) -> Expr {
        let ty = self.ty_of(x);
        let bits = bits_of(ty);
        let word = self.program.exprs.add(ExprDef::Bitcast(x, bits));
        let one = self.program.exprs.int(bits, 1);
        let [up, down] = [BinaryOp::Add, BinaryOp::Sub].map(|op| {
            let next = self.binary_op(op, word, one);
            self.program.exprs.add(ExprDef::Bitcast(next, ty))
        });
        let zero = self.number(ty, 0.0);
        let rises = self.lt(x, to);
        let positive = self.compare(CompareOp::Gt, x, zero);
        let outwards = self.compare(CompareOp::Eq, rises, positive);
        let next = self.choose(outwards, up, down);
        // From zero the smallest number with the sign of the other.
        let least = self.program.exprs.add(ExprDef::Bitcast(one, ty));
        let least = self.copysign(least, to);
        let at_zero = self.compare(CompareOp::Eq, x, zero);
        let next = self.choose(at_zero, least, next);
        let same = self.compare(CompareOp::Eq, x, to);
        let next = self.choose(same, to, next);
        // A NaN on either side is one.
        let both = self.add(x, to);
        let nan = self.isnan(both);
        let (x_nan, to_nan) = (self.isnan(x), self.isnan(to));
        let any = self.binary_op(BinaryOp::Or, x_nan, to_nan);
        let any = self.binary_op(BinaryOp::And, any, nan);
        self.choose(any, both, next)
    }

    /// The smaller or the larger of two numbers, a NaN if either is one.
    pub(crate) fn extreme(&mut self, op: CompareOp, a: Expr, b: Expr) -> Expr {
        if self.ty_of(a).is_int() {
            let op = if op == CompareOp::Lt {
                BinaryOp::Min
            } else {
                BinaryOp::Max
            };
            return self.binary_op(op, a, b);
        }
        let wins = self.compare(op, a, b);
        let nan = self.isnan(a);
        let first = self.binary_op(BinaryOp::Or, wins, nan);
        self.choose(first, a, b)
    }

    /// Not the expression of `maximum(x, 0)`, which has another derivative at 0.
    pub(crate) fn relu(&mut self, x: Expr) -> Expr {
        let zero = self.like(x, 0.0);
        let is_off = self.compare(CompareOp::Le, x, zero);
        self.choose(is_off, zero, x)
    }

    /// To the nearest integer, halves to the even one.
    pub(crate) fn rint(&mut self, x: Expr) -> Expr {
        let whole = self.unary_op(UnaryOp::Trunc, x);
        let rest = self.sub(x, whole);
        let rest = self.unary_op(UnaryOp::Abs, rest);
        let half = self.like(x, 0.5);
        let halfway = self.compare(CompareOp::Eq, rest, half);
        let halved = self.scaled(x, 0.5);
        let even = self.unary_op(UnaryOp::Round, halved);
        let even = self.scaled(even, 2.0);
        let nearest = self.unary_op(UnaryOp::Round, x);
        let rounded = self.choose(halfway, even, nearest);
        self.copysign(rounded, x)
    }

    pub(crate) fn fract(&mut self, x: Expr) -> Expr {
        let whole = self.unary_op(UnaryOp::Floor, x);
        self.sub(x, whole)
    }

    pub(crate) fn degrees(&mut self, x: Expr) -> Expr {
        self.scaled(x, 180.0 / std::f64::consts::PI)
    }

    pub(crate) fn radians(&mut self, x: Expr) -> Expr {
        self.scaled(x, std::f64::consts::PI / 180.0)
    }

    pub(crate) fn reciprocal(&mut self, x: Expr) -> Expr {
        let one = self.like(x, 1.0);
        self.div(one, x)
    }

    pub(crate) fn log10(&mut self, x: Expr) -> Expr {
        let log = self.unary_op(UnaryOp::Log, x);
        self.scaled(log, std::f64::consts::LOG10_E)
    }

    /// `log(1 + x)` with all digits for small ones, which are the series of `2 atanh(x / (2 + x))`.
    pub(crate) fn log1p(&mut self, x: Expr) -> Expr {
        let (one, two) = (self.like(x, 1.0), self.like(x, 2.0));
        let below = self.add(two, x);
        let s = self.div(x, below);
        let square = self.mul(s, s);
        let series: Vec<f64> = (0..13).map(|n| 2.0 / f64::from(2 * n + 1)).collect();
        let sum = self.polynomial(square, self.terms(x, &series, 6));
        let near = self.mul(s, sum);
        let sum = self.add(one, x);
        let far = self.unary_op(UnaryOp::Log, sum);
        let is_near = self.is_within(x, 0.4);
        self.choose(is_near, near, far)
    }

    /// `exp(x) - 1` with all digits for small ones, which are a series.
    pub(crate) fn expm1(&mut self, x: Expr) -> Expr {
        let mut factor = 1.0;
        let series: Vec<f64> = (1..16)
            .map(|n| {
                factor /= f64::from(n);
                factor
            })
            .collect();
        let sum = self.polynomial(x, self.terms(x, &series, 9));
        let near = self.mul(x, sum);
        let one = self.like(x, 1.0);
        let exp = self.unary_op(UnaryOp::Exp, x);
        let far = self.sub(exp, one);
        let is_near = self.is_within(x, 0.5);
        self.choose(is_near, near, far)
    }

    /// All terms of a series in double precision, the first `n_single` in others.
    fn terms<'s>(&self, x: Expr, series: &'s [f64], n_single: usize) -> &'s [f64] {
        match self.ty_of(x) {
            ScalarType::F64 => series,
            _ => &series[..n_single],
        }
    }

    fn is_within(&mut self, x: Expr, bound: f64) -> Expr {
        let size = self.unary_op(UnaryOp::Abs, x);
        let bound = self.like(x, bound);
        self.lt(size, bound)
    }

    /// By the size of the number, with its sign.
    fn odd(&mut self, x: Expr, f: impl FnOnce(&mut Self, Expr) -> Expr) -> Expr {
        let size = self.unary_op(UnaryOp::Abs, x);
        let value = f(self, size);
        self.copysign(value, x)
    }

    /// `near`, for large numbers `log(a) + log(2)`, since their squares overflow.
    fn or_far(&mut self, a: Expr, near: Expr) -> Expr {
        let large = match self.ty_of(a) {
            ScalarType::F16 => 100.0,
            _ => 1e9,
        };
        let log = self.unary_op(UnaryOp::Log, a);
        let log2 = self.like(a, std::f64::consts::LN_2);
        let far = self.add(log, log2);
        let bound = self.like(a, large);
        let is_far = self.compare(CompareOp::Gt, a, bound);
        self.choose(is_far, far, near)
    }

    /// `log1p(a + a^2 / (1 + sqrt(a^2 + 1)))`, for large numbers `log(a) + log(2)`.
    pub(crate) fn asinh(&mut self, x: Expr) -> Expr {
        self.odd(x, |r, a| {
            let one = r.like(a, 1.0);
            let square = r.mul(a, a);
            let sum = r.add(square, one);
            let root = r.unary_op(UnaryOp::Sqrt, sum);
            let below = r.add(root, one);
            let part = r.div(square, below);
            let sum = r.add(a, part);
            let near = r.log1p(sum);
            r.or_far(a, near)
        })
    }

    /// `log1p(t + sqrt(2 t + t^2))` with `t = x - 1`.
    pub(crate) fn acosh(&mut self, x: Expr) -> Expr {
        let one = self.like(x, 1.0);
        let t = self.sub(x, one);
        let two = self.like(x, 2.0);
        let sum = self.add(t, two);
        let square = self.mul(t, sum);
        let root = self.unary_op(UnaryOp::Sqrt, square);
        let sum = self.add(t, root);
        let near = self.log1p(sum);
        let all = self.or_far(x, near);
        let nan = self.like(x, f64::NAN);
        let is_below = self.compare(CompareOp::Lt, x, one);
        self.choose(is_below, nan, all)
    }

    /// `log1p(2 a / (1 - a)) / 2`.
    pub(crate) fn atanh(&mut self, x: Expr) -> Expr {
        self.odd(x, |r, a| {
            let one = r.like(a, 1.0);
            let below = r.sub(one, a);
            let twice = r.add(a, a);
            let ratio = r.div(twice, below);
            let log = r.log1p(ratio);
            r.scaled(log, 0.5)
        })
    }

    pub(crate) fn cbrt(&mut self, x: Expr) -> Expr {
        self.odd(x, |r, a| {
            let third = r.like(a, 1.0 / 3.0);
            let root = r.binary_op(BinaryOp::Pow, a, third);
            // One step of Newton's method, which the rounding of a third makes worth it.
            let square = r.mul(root, root);
            let ratio = r.div(a, square);
            let off = r.sub(ratio, root);
            let step = r.scaled(off, 1.0 / 3.0);
            let better = r.add(root, step);
            let zero = r.like(a, 0.0);
            let infinity = r.like(a, f64::INFINITY);
            let inner = r.compare(CompareOp::Gt, square, zero);
            let finite = r.lt(square, infinity);
            let steps = r.binary_op(BinaryOp::And, inner, finite);
            r.choose(steps, better, root)
        })
    }

    pub(crate) fn sigmoid(&mut self, x: Expr) -> Expr {
        let minus = self.unary_op(UnaryOp::Neg, x);
        let exp = self.unary_op(UnaryOp::Exp, minus);
        let one = self.like(x, 1.0);
        let sum = self.add(one, exp);
        self.div(one, sum)
    }

    fn polynomial(&mut self, x: Expr, coefficients: &[f64]) -> Expr {
        let zero = self.like(x, 0.0);
        coefficients.iter().rev().fold(zero, |sum, &c| {
            let c = self.like(x, c);
            let product = self.mul(sum, x);
            self.add(product, c)
        })
    }

    /// Near zero an odd polynomial; further out `1 - exp(-x^2) p((x - 2) / (x + 2))`.
    pub(crate) fn erf(&mut self, x: Expr) -> Expr {
        let double = self.ty_of(x) == ScalarType::F64;
        let (near, far) = match double {
            true => (ERF_NEAR, ERFC_FAR),
            false => (ERF_NEAR_SINGLE, ERFC_FAR_SINGLE),
        };
        self.odd(x, |r, a| {
            let square = r.mul(a, a);
            let inner = r.polynomial(square, near);
            let inner = r.mul(a, inner);
            let two = r.like(a, 2.0);
            let (below, above) = (r.sub(a, two), r.add(a, two));
            let t = r.div(below, above);
            let outer = r.polynomial(t, far);
            let minus = r.unary_op(UnaryOp::Neg, square);
            let exp = r.unary_op(UnaryOp::Exp, minus);
            let outer = r.mul(exp, outer);
            let one = r.like(a, 1.0);
            let outer = r.sub(one, outer);
            let is_near = r.lt(a, one);
            let value = r.choose(is_near, inner, outer);
            let bound = r.like(a, 6.0);
            let ends = r.compare(CompareOp::Gt, a, bound);
            r.choose(ends, one, value)
        })
    }

    /// Scaled by the larger one, so that nothing overflows.
    pub(crate) fn hypot(&mut self, a: Expr, b: Expr) -> Expr {
        let [a, b] = [a, b].map(|e| self.unary_op(UnaryOp::Abs, e));
        let large = self.binary_op(BinaryOp::Max, a, b);
        let small = self.binary_op(BinaryOp::Min, a, b);
        let ratio = self.div(small, large);
        let square = self.mul(ratio, ratio);
        let one = self.like(a, 1.0);
        let sum = self.add(square, one);
        let root = self.unary_op(UnaryOp::Sqrt, sum);
        let size = self.mul(large, root);
        let [zero, infinity] = [0.0, f64::INFINITY].map(|v| self.like(a, v));
        let nothing = self.compare(CompareOp::Eq, large, zero);
        let size = self.choose(nothing, zero, size);
        let endless = self.compare(CompareOp::Eq, large, infinity);
        let size = self.choose(endless, infinity, size);
        // The larger one of a NaN and a number is the number.
        let sum = self.add(a, b);
        let nan = self.isnan(sum);
        let is_nan = self.compare(CompareOp::Ne, large, infinity);
        let is_nan = self.binary_op(BinaryOp::And, nan, is_nan);
        self.choose(is_nan, sum, size)
    }

    pub(crate) fn logaddexp(&mut self, a: Expr, b: Expr) -> Expr {
        let large = self.extreme(CompareOp::Gt, a, b);
        let off = self.sub(a, b);
        let off = self.unary_op(UnaryOp::Abs, off);
        let off = self.unary_op(UnaryOp::Neg, off);
        let exp = self.unary_op(UnaryOp::Exp, off);
        let log = self.log1p(exp);
        let sum = self.add(large, log);
        // Two equal infinities have no difference.
        let same = self.compare(CompareOp::Eq, a, b);
        let log2 = self.like(a, std::f64::consts::LN_2);
        let twice = self.add(a, log2);
        self.choose(same, twice, sum)
    }

    /// The remainder with the divisor's sign, as Python's `%`.
    pub(crate) fn remainder(&mut self, a: Expr, b: Expr) -> Expr {
        self.binary_op(BinaryOp::Mod, a, b)
    }

    /// The quotient rounded down, as Python's `//`; of or by infinity the quotient itself, as in the Array API standard.
    pub(crate) fn floor_divide(&mut self, a: Expr, b: Expr) -> Expr {
        let rounded = self.binary_op(BinaryOp::FloorDiv, a, b);
        if self.ty_of(a).is_int() {
            return rounded;
        }
        let [of, by] = [a, b].map(|x| self.isinf(x));
        let endless = self.binary_op(BinaryOp::Or, of, by);
        let quotient = self.div(a, b);
        self.choose(endless, quotient, rounded)
    }

    /// -1, 0 or 1 by the sign of a float, which no zero has; NaN of NaN.
    pub(crate) fn sign(&mut self, x: Expr) -> Expr {
        let sign = self.unary_op(UnaryOp::Sign, x);
        let zero = self.number(self.ty_of(x), 0.0);
        let nothing = self.compare(CompareOp::Eq, x, zero);
        self.choose(nothing, zero, sign)
    }

    /// A shift whose count may be as large as the width, and larger.
    pub(crate) fn shift(&mut self, op: BinaryOp, a: Expr, count: Expr) -> Expr {
        let ty = self.ty_of(a);
        let width = i128::from(ty.bits());
        let [most, width, zero] = [width - 1, width, 0].map(|n| self.program.exprs.int(ty, n));
        let mut fits = self.lt(count, width);
        if ty.is_signed() {
            let counts = self.program.exprs.compare(CompareOp::Ge, count, zero);
            fits = self.binary_op(BinaryOp::And, counts, fits);
        }
        // What is left of a number below zero is its sign.
        if op == BinaryOp::Shr && ty.is_signed() {
            let count = self.choose(fits, count, most);
            return self.binary_op(op, a, count);
        }
        let shifted = self.binary_op(op, a, count);
        self.choose(fits, shifted, zero)
    }

    /// A power; small whole exponents of floats become products.
    pub(crate) fn power(&mut self, a: Expr, b: Expr) -> Expr {
        let exponent = self.program.exprs.as_const(b).map(Scalar::to_f64);
        match exponent {
            Some(n) if self.ty_of(a).is_float() => {
                if n == 2.0 {
                    return self.mul(a, a);
                }
                if n == 1.0 {
                    return a;
                }
                if n == 3.0 {
                    let square = self.mul(a, a);
                    return self.mul(square, a);
                }
                if n == 0.5 {
                    return self.unary_op(UnaryOp::Sqrt, a);
                }
            }
            _ => {}
        }
        self.binary_op(BinaryOp::Pow, a, b)
    }
}
