//! Functions that recording writes as several operations, and whose derivative is a rule of their own.
//!
//! The error function is a polynomial and operations on bits: the derivative of that expression would be inexact, or none.
//! [`Exprs`](super::Exprs) keeps which expression is which function of what, for reverse mode. What an expression computes
//! does not depend on it.

aerogel_base::kinds! {
    /// A function with a derivative of its own.
    Function {
        /// `|x|` with the sign of `y`.
        CopySign = "copysign",
        /// The nearest integer.
        Rint = "rint",
        /// `log(1 + x)`.
        Log1p = "log1p",
        /// `exp(x) - 1`.
        Expm1 = "expm1",
        /// The inverse of `sinh`.
        Asinh = "asinh",
        /// The inverse of `cosh`.
        Acosh = "acosh",
        /// The inverse of `tanh`.
        Atanh = "atanh",
        /// The real cube root.
        Cbrt = "cbrt",
        /// `1 / (1 + exp(-x))`.
        Sigmoid = "sigmoid",
        /// The error function.
        Erf = "erf",
        /// `x` where it is positive, else 0.
        Relu = "relu",
        /// `sqrt(x^2 + y^2)`.
        Hypot = "hypot",
        /// `log(exp(x) + exp(y))`.
        LogAddExp = "logaddexp",
        /// The smaller number, NaN if either is.
        Minimum = "minimum",
        /// The larger number, NaN if either is.
        Maximum = "maximum",
        /// The quotient rounded down.
        FloorDivide = "floor_divide",
        /// The product `x * y`, zero where `x` is zero, whatever `y` is.
        Strong = "strong",
        /// The smallest or largest number of many (`y`); NaN if one of them is (`x`).
        Extreme = "extreme",
        /// The sign of a number.
        Sign = "sign",
    }
}
