//! Element-wise operations, with operands broadcast to one domain.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};

use crate::ir::{Buffer, Dim, Expr, Function};

use super::{Recorded, Recording};

/// How a scalar function is written.
#[derive(Clone, Copy)]
enum One {
    /// An operation.
    Op(UnaryOp),
    /// Of floats, in several operations.
    Float(fn(&mut Recording, Expr) -> Expr),
    /// A question about a number.
    Any(fn(&mut Recording, Expr) -> Expr),
}

/// The operations on one operand, by name.
pub const UNARY: &[&str] = &[
    "neg",
    "not",
    "abs",
    "sign",
    "sqrt",
    "rsqrt",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "exp",
    "exp2",
    "log",
    "log2",
    "popcnt",
    "clz",
    "rint",
    "log10",
    "log1p",
    "expm1",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "erf",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "logical_not",
    "square",
    "reciprocal",
    "fract",
    "cbrt",
    "relu",
    "degrees",
    "radians",
];

/// The operations on two operands of one type, by name.
pub const BINARY: &[&str] = &[
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "floordiv",
    "mod",
    "pow",
    "atan2",
    "min",
    "max",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "ushr",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "minimum",
    "maximum",
    "logical_and",
    "logical_or",
    "logical_xor",
    "hypot",
    "logaddexp",
    "copysign",
    "step",
    "remainder",
    "floor_divide",
    "left_shift",
    "right_shift",
    "nextafter",
    "power",
];

fn one(name: &str) -> Option<One> {
    if let Some(op) = UnaryOp::from_name(name) {
        return Some(One::Op(op));
    }
    Some(match name {
        "rint" => One::Any(Recording::rint),
        "log10" => One::Float(Recording::log10),
        "log1p" => One::Float(Recording::log1p),
        "expm1" => One::Float(Recording::expm1),
        "asinh" => One::Float(Recording::asinh),
        "acosh" => One::Float(Recording::acosh),
        "atanh" => One::Float(Recording::atanh),
        "sigmoid" => One::Float(Recording::sigmoid),
        "erf" => One::Float(Recording::erf),
        "cbrt" => One::Float(Recording::cbrt),
        "fract" => One::Float(Recording::fract),
        "degrees" => One::Float(Recording::degrees),
        "radians" => One::Float(Recording::radians),
        "isnan" => One::Any(Recording::isnan),
        "isinf" => One::Any(Recording::isinf),
        "isfinite" => One::Any(Recording::isfinite),
        "signbit" => One::Any(Recording::signbit),
        "logical_not" => One::Any(Recording::logical_not),
        "square" => One::Any(|r, x| r.mul(x, x)),
        "relu" => One::Any(Recording::relu),
        "reciprocal" => One::Float(Recording::reciprocal),
        _ => return None,
    })
}

/// Functions that take any number, and are the identity on integers.
const WHOLE: [&str; 5] = ["floor", "ceil", "round", "trunc", "rint"];

impl Recording {
    /// A function of one number.
    ///
    /// # Errors
    /// If it does not take the type.
    pub fn unary_expr(&mut self, name: &str, x: Expr) -> Recorded<Expr> {
        let ty = self.program.exprs.ty(x);
        let takes = |r: &Self, what: &str| r.scalar_types_error(name, &[ty], what);
        if ty.is_int() && WHOLE.contains(&name) {
            return Ok(x);
        }
        match one(name) {
            Some(One::Op(UnaryOp::Sign)) if ty.is_float() => {
                let made = self.sign(x);
                self.note_function(name, made, &[x]);
                Ok(made)
            }
            Some(One::Op(op)) if op.takes(ty) => Ok(self.program.exprs.unary(op, x)),
            Some(One::Op(op)) => takes(
                self,
                if op.takes(ScalarType::F32) {
                    "floats"
                } else {
                    "integers"
                },
            ),
            Some(One::Float(_)) if ty.is_int() => takes(self, "floats"),
            Some(One::Float(f) | One::Any(f)) => {
                let made = f(self, x);
                self.note_function(name, made, &[x]);
                Ok(made)
            }
            None => Err(super::RecordError::Value(format!(
                "there is no function `{name}`"
            ))),
        }
    }

    fn scalar_types_error<T>(&self, op: &str, types: &[ScalarType], takes: &str) -> Recorded<T> {
        Err(super::RecordError::Types {
            op: op.to_owned(),
            types: types.to_vec(),
            takes: takes.to_owned(),
        })
    }

    /// A function of two numbers of one type.
    ///
    /// # Errors
    /// If it does not take the types.
    pub fn binary_expr(&mut self, name: &str, a: Expr, b: Expr) -> Recorded<Expr> {
        let types = [a, b].map(|e| self.program.exprs.ty(e));
        let ty = types[0];
        if types[0] != types[1] {
            return self.scalar_types_error(name, &types, "operands of one type");
        }
        if let Some(op) = BinaryOp::from_name(name) {
            if op.takes(ty) {
                return Ok(self.program.exprs.binary(op, a, b));
            }
            let takes = if op.takes(ScalarType::F32) {
                "floats"
            } else {
                "integers"
            };
            return self.scalar_types_error(name, &types, takes);
        }
        if let Some(op) = CompareOp::from_name(name) {
            return Ok(self.program.exprs.compare(op, a, b));
        }
        let needs_floats = ["hypot", "logaddexp", "copysign", "nextafter"];
        if needs_floats.contains(&name) && ty.is_int() {
            return self.scalar_types_error(name, &types, "floats");
        }
        if ["left_shift", "right_shift"].contains(&name) && !ty.is_int() {
            return self.scalar_types_error(name, &types, "integers");
        }
        let made = match name {
            "minimum" => self.extreme(CompareOp::Lt, a, b),
            "maximum" => self.extreme(CompareOp::Gt, a, b),
            "logical_and" | "logical_or" | "logical_xor" => {
                let [a, b] = [a, b].map(|e| self.truth(e));
                let op = match name {
                    "logical_and" => BinaryOp::And,
                    "logical_or" => BinaryOp::Or,
                    _ => BinaryOp::Xor,
                };
                self.program.exprs.binary(op, a, b)
            }
            "hypot" => self.hypot(a, b),
            "logaddexp" => self.logaddexp(a, b),
            "copysign" => self.copysign(a, b),
            "nextafter" => self.nextafter(a, b),
            "step" => {
                let below = self.lt(b, a);
                let [zero, one] = [0.0, 1.0].map(|v| self.number(ty, v));
                self.program.exprs.select(below, zero, one)
            }
            "remainder" => self.remainder(a, b),
            "floor_divide" => self.floor_divide(a, b),
            "left_shift" => self.shift(BinaryOp::Shl, a, b),
            "right_shift" => self.shift(BinaryOp::Shr, a, b),
            "power" => self.power(a, b),
            _ => {
                return Err(super::RecordError::Value(format!(
                    "there is no function `{name}`"
                )));
            }
        };
        self.note_function(name, made, &[a, b]);
        Ok(made)
    }

    fn note_function(&mut self, name: &str, made: Expr, operands: &[Expr]) {
        if let Some(function) = Function::from_name(name)
            && operands
                .iter()
                .all(|&x| self.program.exprs.ty(x).is_float())
        {
            let exprs = &mut self.program.exprs;
            exprs.note_function(made, function, operands.to_vec());
        }
    }

    /// A function of each element.
    ///
    /// # Errors
    /// If it does not take the type.
    pub fn unary(&mut self, name: &str, x: Buffer) -> Recorded {
        let domain = self.shape(x);
        let element = self.at_point(x, domain.len());
        let value = self.unary_expr(name, element)?;
        if value == element {
            return Ok(x);
        }
        Ok(self.map(&domain, value))
    }

    /// A function of the elements of two tensors, which are broadcast to one shape.
    ///
    /// # Errors
    /// If it does not support the types, or shapes do not agree.
    pub fn binary(&mut self, name: &str, a: Buffer, b: Buffer) -> Recorded {
        let (domain, e) = self.stretched(name, &[a, b])?;
        let value = self.binary_expr(name, e[0], e[1])?;
        self.map_of(name, &[a, b], &domain, value)
    }

    /// The elements of one tensor where `cond` is true, else those of another one.
    ///
    /// # Errors
    /// If `cond` is not boolean, the others are of two types, or shapes do not agree.
    pub fn select(&mut self, cond: Buffer, a: Buffer, b: Buffer) -> Recorded {
        if self.ty(cond) != ScalarType::U1 {
            return self.types_error("where", &[cond], "a condition of `u1`");
        }
        if self.ty(a) != self.ty(b) {
            return self.types_error("where", &[a, b], "operands of one type");
        }
        let (domain, e) = self.stretched("where", &[cond, a, b])?;
        let value = self.program.exprs.select(e[0], e[1], e[2]);
        self.map_of("where", &[cond, a, b], &domain, value)
    }

    /// Each element converted: floats to integers towards zero, anything to a boolean by comparing with zero.
    pub fn cast(&mut self, x: Buffer, ty: ScalarType) -> Buffer {
        if self.ty(x) == ty {
            return x;
        }
        let domain = self.shape(x);
        let element = self.at_point(x, domain.len());
        let value = self.cast_expr(element, ty);
        self.map(&domain, value)
    }

    /// A conversion; to `u1` by being other than zero.
    pub fn cast_expr(&mut self, x: Expr, ty: ScalarType) -> Expr {
        match ty {
            ScalarType::U1 => self.truth(x),
            _ => self.program.exprs.cast(x, ty),
        }
    }

    /// Each element's bits as another type of the same width.
    ///
    /// # Errors
    /// If the widths differ.
    pub fn bitcast(&mut self, x: Buffer, ty: ScalarType) -> Recorded {
        if self.ty(x).bits() != ty.bits() {
            return self.types_error(
                "bitcast",
                &[x],
                &format!("what has the {} bits of `{ty}`", ty.bits()),
            );
        }
        let domain = self.shape(x);
        let element = self.at_point(x, domain.len());
        let value = self
            .program
            .exprs
            .add(crate::ir::ExprDef::Bitcast(element, ty));
        Ok(self.map(&domain, value))
    }

    /// Whether elements differ by at most `atol` plus `rtol` times the second; two NaNs are close only if `equal_nan` is set.
    ///
    /// # Errors
    /// If types differ, or shapes do not agree.
    pub fn is_close(
        &mut self,
        [a, b]: [Buffer; 2],
        rtol: Buffer,
        atol: Buffer,
        equal_nan: bool,
    ) -> Recorded {
        let equal = self.binary("eq", a, b)?;
        let finite = self.unary("isfinite", b)?;
        let difference = self.binary("sub", a, b)?;
        let difference = self.unary("abs", difference)?;
        let size = self.unary("abs", b)?;
        let part = self.binary("mul", size, rtol)?;
        let most = self.binary("add", part, atol)?;
        let within = self.binary("le", difference, most)?;
        let near = self.binary("and", finite, within)?;
        let close = self.binary("or", equal, near)?;
        if !equal_nan {
            return Ok(close);
        }
        let [a, b] = [self.unary("isnan", a)?, self.unary("isnan", b)?];
        let both = self.binary("and", a, b)?;
        self.binary("or", close, both)
    }

    /// A tensor with one value everywhere.
    pub fn full(&mut self, shape: &[Dim], value: Scalar) -> Buffer {
        let value = self.program.exprs.constant(value);
        self.map(shape, value)
    }

    /// The index along an axis, at every point.
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn iota(&mut self, shape: &[Dim], axis: i64, ty: ScalarType) -> Recorded {
        let axis = self.axis_of("iota", axis, shape.len())?;
        let index = self.program.exprs.axis(axis as u32);
        let value = self.cast_expr(index, ty);
        Ok(self.map(shape, value))
    }
}
