//! Sizes of axes and numbers computed from them: integers are computed exactly, with any number of bits, and floats in
//! their own type.

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp, eval};

use super::error::Failure;
use super::eval::{agreements, check_inputs};
use super::expr::{Expr, ExprDef, Exprs, deep};
use super::ids::{Buffer, Dim, Var};
use super::program::{DimDef, Program};
use super::scope::Scope;

/// The value of a size, an `i32`.
pub(crate) fn extent<S: Scope>(
    program: &Program,
    scope: &mut S,
    dim: Dim,
) -> Result<u64, S::Error> {
    let n = whole(program, scope, dim)?;
    match i32::try_from(n) {
        Ok(0..) => Ok(n as u64),
        _ => Err(Failure::Extent(Some(dim), n).into()),
    }
}

/// A size as a number of the program.
pub(crate) fn number<S: Scope>(
    program: &Program,
    scope: &mut S,
    dim: Dim,
) -> Result<i32, S::Error> {
    if !matches!(program.dim_def(dim), DimDef::Number(_)) {
        return Ok(extent(program, scope, dim)? as i32);
    }
    let n = whole(program, scope, dim)?;
    i32::try_from(n).map_err(|_| Failure::Number(dim, n).into())
}

/// The sizes of all axes of a program whose inputs are of these types and shapes, and whether those that have to agree do.
///
/// # Errors
/// If inputs are others, sizes do not agree, or one is below zero.
pub fn resolved(program: &Program, inputs: &[(ScalarType, &[usize])]) -> Result<Vec<i64>, Failure> {
    expect_agreement(program, inputs)?;
    let mut shapes = Shapes { program, inputs };
    let dims = (0..program.dims.len() as u32).map(Dim::from_u32);
    let sizes = dims.map(|dim| match program.dim_def(dim) {
        DimDef::Number(_) => number(program, &mut shapes, dim).map(i64::from),
        _ => extent(program, &mut shapes, dim).map(|n| n as i64),
    });
    sizes.collect()
}

/// Refuses inputs of other types or shapes than the program's, and those whose sizes do not agree.
pub(crate) fn expect_agreement(
    program: &Program,
    inputs: &[(ScalarType, &[usize])],
) -> Result<(), Failure> {
    check_inputs(program, inputs)?;
    agreements(program, &mut Shapes { program, inputs })
}

/// The sizes that follow from these inputs; those that are below zero or too large are unknown.
pub(crate) fn known_sizes(
    program: &Program,
    inputs: &[(ScalarType, &[usize])],
) -> Vec<Option<i64>> {
    let mut shapes = Shapes { program, inputs };
    let dims = (0..program.dims.len() as u32).map(Dim::from_u32);
    let sizes = dims.map(|dim| match program.dim_def(dim) {
        DimDef::Number(_) => number(program, &mut shapes, dim).ok().map(i64::from),
        _ => extent(program, &mut shapes, dim).ok().map(|n| n as i64),
    });
    sizes.collect()
}

/// What sizes depend on: the shapes of inputs.
struct Shapes<'p> {
    program: &'p Program,
    inputs: &'p [(ScalarType, &'p [usize])],
}

impl Scope for Shapes<'_> {
    type Error = Failure;

    fn axis(&self, _: u32) -> Scalar {
        unreachable!("no size depends on a point")
    }

    fn var(&self, _: Var) -> Option<Scalar> {
        None
    }

    fn shape(&mut self, buffer: Buffer) -> Result<&[usize], Failure> {
        let number = self.program.inputs().position(|b| b == buffer);
        Ok(self.inputs[number.expect("sizes are those of inputs")].1)
    }

    fn element(&mut self, _: Buffer, _: usize) -> Result<Scalar, Failure> {
        unreachable!("no size depends on an element")
    }
}

fn whole<S: Scope>(program: &Program, scope: &mut S, dim: Dim) -> Result<i128, S::Error> {
    // Most are, and each launch needs them.
    if let Some(e) = program.dim_def(dim).expr()
        && let ExprDef::Var(var, ty) = program.exprs[e]
    {
        return Ok(scope.var(var).unwrap_or(Scalar::zero(ty)).as_i128());
    }
    let mut exact = Exact {
        program,
        scope,
        dim,
        done: LookupMap::default(),
    };
    exact.extent(dim)
}

/// Whether a type's arithmetic is that of exact integers: it is not meant to wrap.
fn is_whole(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::I32 | ScalarType::I64)
}

/// Whether a value is an integer computed from at least one size.
pub(crate) fn follows(exprs: &Exprs, e: Expr) -> bool {
    if exprs.ty(e) != ScalarType::I32 {
        return false;
    }
    let (mut fixed, mut of_extents) = (true, false);
    exprs.visit([e], &mut |x| match exprs[x] {
        ExprDef::Load { .. } | ExprDef::Var(..) | ExprDef::Axis(_) => fixed = false,
        ExprDef::Extent(_) => of_extents = true,
        _ => {}
    });
    fixed && of_extents
}

#[derive(Clone, Copy)]
enum Value {
    Whole(i128),
    Other(Scalar),
}

impl Value {
    fn whole(self) -> i128 {
        match self {
            Self::Whole(n) => n,
            Self::Other(x) => x.as_i128(),
        }
    }
}

/// The expressions of a size that have been evaluated.
struct Exact<'s, S> {
    program: &'s Program,
    scope: &'s mut S,
    dim: Dim,
    done: LookupMap<Expr, Value>,
}

impl<S: Scope> Exact<'_, S> {
    fn extent(&mut self, dim: Dim) -> Result<i128, S::Error> {
        match *self.program.dim_def(dim) {
            DimDef::Const(n) => Ok(n.into()),
            DimDef::Input(buffer, axis) => Ok(self.scope.shape(buffer)?[axis as usize] as i128),
            DimDef::Value(e) | DimDef::Number(e) => {
                let outer = std::mem::replace(&mut self.dim, dim);
                let n = self.get(e)?.whole();
                self.dim = outer;
                Ok(n)
            }
        }
    }

    fn get(&mut self, e: Expr) -> Result<Value, S::Error> {
        if let Some(&done) = self.done.get(&e) {
            return Ok(done);
        }
        let value = deep(|| self.computed(e))?;
        self.done.insert(e, value);
        Ok(value)
    }

    /// The value as one of its type.
    fn scalar(&mut self, e: Expr) -> Result<Scalar, S::Error> {
        let ty = self.program.exprs.ty(e);
        match self.get(e)? {
            Value::Other(x) => Ok(x),
            Value::Whole(n) if Scalar::int(ty, n).as_i128() == n => Ok(Scalar::int(ty, n)),
            Value::Whole(n) => Err(Failure::Number(self.dim, n).into()),
        }
    }

    fn computed(&mut self, e: Expr) -> Result<Value, S::Error> {
        let exprs = &self.program.exprs;
        let whole = is_whole(exprs.ty(e));
        let other = match exprs[e] {
            ExprDef::Const(x) => x,
            ExprDef::Extent(dim) => return Ok(Value::Whole(self.extent(dim)?)),
            ExprDef::Var(var, ty) => self.scope.var(var).unwrap_or(Scalar::zero(ty)),
            ExprDef::Axis(_) | ExprDef::Load { .. } => {
                unreachable!("the verifier accepts sizes and given numbers only")
            }
            ExprDef::Unary(UnaryOp::Neg, x) if whole => {
                return Ok(Value::Whole(-self.get(x)?.whole()));
            }
            ExprDef::Unary(UnaryOp::Abs, x) if whole => {
                return Ok(Value::Whole(self.get(x)?.whole().abs()));
            }
            ExprDef::Unary(op, x) => eval::unary(op, self.scalar(x)?),
            ExprDef::Binary(op, a, b) => {
                if whole {
                    let (x, y) = (self.get(a)?.whole(), self.get(b)?.whole());
                    match arithmetic(op, x, y) {
                        Some(Some(n)) => return Ok(Value::Whole(n)),
                        Some(None) => return Err(Failure::Number(self.dim, i128::MAX).into()),
                        None => {}
                    }
                }
                eval::binary(op, self.scalar(a)?, self.scalar(b)?)
            }
            ExprDef::Compare(op, a, b) => {
                let is_true = match (self.get(a)?, self.get(b)?) {
                    (Value::Whole(x), Value::Whole(y)) => compare(op, x, y),
                    _ => eval::compare(op, self.scalar(a)?, self.scalar(b)?),
                };
                Scalar::bool(is_true)
            }
            ExprDef::Select(c, a, b) => {
                let chosen = if self.scalar(c)?.as_bool() { a } else { b };
                return self.get(chosen);
            }
            ExprDef::Cast(x, to) => return self.cast(x, to),
            ExprDef::Bitcast(x, ty) => eval::bitcast(self.scalar(x)?, ty),
        };
        Ok(match whole {
            true => Value::Whole(other.as_i128()),
            false => Value::Other(other),
        })
    }

    fn cast(&mut self, x: Expr, to: ScalarType) -> Result<Value, S::Error> {
        let from = self.get(x)?;
        if !is_whole(to) {
            return Ok(Value::Other(match from {
                Value::Whole(n) if to.is_float() => Scalar::float(to, n as f64),
                _ => eval::cast(self.scalar(x)?, to),
            }));
        }
        Ok(Value::Whole(match from {
            // NaN and infinity are not sizes.
            Value::Other(f) if f.ty().is_float() && f.as_f64().is_nan() => i128::MIN,
            Value::Other(f) if f.ty().is_float() => f.as_f64() as i128,
            other => other.whole(),
        }))
    }
}

/// The result of an operation on two integers: `None` if it is not arithmetic, and `Some(None)` if the result is larger
/// than the supported range.
fn arithmetic(op: BinaryOp, x: i128, y: i128) -> Option<Option<i128>> {
    Some(match op {
        BinaryOp::Add => x.checked_add(y),
        BinaryOp::Sub => x.checked_sub(y),
        BinaryOp::Mul => x.checked_mul(y),
        BinaryOp::Min => Some(x.min(y)),
        BinaryOp::Max => Some(x.max(y)),
        BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Rem | BinaryOp::Mod if y == 0 => {
            return None;
        }
        BinaryOp::Div => Some(x / y),
        BinaryOp::Rem => Some(x % y),
        BinaryOp::FloorDiv => Some(floor_div(x, y)),
        BinaryOp::Mod => Some(x - y * floor_div(x, y)),
        _ => return None,
    })
}

fn floor_div(x: i128, y: i128) -> i128 {
    x / y - i128::from(x % y != 0 && (x < 0) != (y < 0))
}

fn compare(op: CompareOp, x: i128, y: i128) -> bool {
    match op {
        CompareOp::Eq => x == y,
        CompareOp::Ne => x != y,
        CompareOp::Lt => x < y,
        CompareOp::Le => x <= y,
        CompareOp::Gt => x > y,
        CompareOp::Ge => x >= y,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_divide_as_python_divides_them() {
        // Python's `//` and `%`.
        for (x, y, quotient, rest) in [
            (7, 2, 3, 1),
            (-7, 2, -4, 1),
            (7, -2, -4, -1),
            (-7, -2, 3, -1),
            (-6, -2, 3, 0),
            (6, -3, -2, 0),
        ] {
            assert_eq!(arithmetic(BinaryOp::FloorDiv, x, y), Some(Some(quotient)));
            assert_eq!(arithmetic(BinaryOp::Mod, x, y), Some(Some(rest)));
        }
        assert_eq!(arithmetic(BinaryOp::Mul, i128::MAX, 2), Some(None));
        assert_eq!(arithmetic(BinaryOp::Div, 1, 0), None);
    }
}
