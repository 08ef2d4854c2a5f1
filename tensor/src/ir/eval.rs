//! Evaluation of expressions in a scope, which maps names to values.

use super::scope::Scope;
use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::eval;

use super::error::Failure;
use super::expr::{Expr, ExprDef, Outside};
use super::extents::{extent, number};
use super::ids::{Buffer, Dim};
use super::program::{DimDef, Program};
use super::site::OutOfBounds;

/// The value of an expression.
pub(crate) fn eval_in<S: Scope>(
    program: &Program,
    scope: &mut S,
    e: Expr,
) -> Result<Scalar, S::Error> {
    Evaluation {
        program,
        scope,
        done: LookupMap::default(),
    }
    .get(e)
}

/// The values computed at a point: shared subexpressions are evaluated once.
struct Evaluation<'s, S> {
    program: &'s Program,
    scope: &'s mut S,
    done: LookupMap<Expr, Scalar>,
}

impl<S: Scope> Evaluation<'_, S> {
    fn get(&mut self, e: Expr) -> Result<Scalar, S::Error> {
        if let Some(&done) = self.done.get(&e) {
            return Ok(done);
        }
        let value = match &self.program.exprs[e] {
            ExprDef::Const(value) => return Ok(*value),
            ExprDef::Axis(k) => return Ok(self.scope.axis(*k)),
            ExprDef::Var(var, ty) => self.scope.var(*var).unwrap_or(Scalar::zero(*ty)),
            ExprDef::Extent(dim) => Scalar::i32(number(self.program, self.scope, *dim)?),
            ExprDef::Load {
                buffer,
                ty,
                index,
                outside,
            } => {
                let index = index.iter().map(|&e| Ok(self.get(e)?.as_i128() as i64));
                let index = index.collect::<Result<Vec<_>, S::Error>>()?;
                match place(*buffer, &index, self.scope.shape(*buffer)?, *outside)? {
                    Some(at) => self.scope.element(*buffer, at)?,
                    None => Scalar::zero(*ty),
                }
            }
            ExprDef::Unary(op, x) => eval::unary(*op, self.get(*x)?),
            ExprDef::Binary(op, a, b) => eval::binary(*op, self.get(*a)?, self.get(*b)?),
            ExprDef::Compare(op, a, b) => {
                Scalar::bool(eval::compare(*op, self.get(*a)?, self.get(*b)?))
            }
            ExprDef::Select(c, a, b) => {
                let chosen = if self.get(*c)?.as_bool() { a } else { b };
                self.get(*chosen)?
            }
            ExprDef::Cast(x, ty) => eval::cast(self.get(*x)?, *ty),
            ExprDef::Bitcast(x, ty) => eval::bitcast(self.get(*x)?, *ty),
        };
        self.done.insert(e, value);
        Ok(value)
    }
}

/// Checks that all sizes that must be equal are.
pub(crate) fn agreements<S: Scope>(program: &Program, scope: &mut S) -> Result<(), S::Error> {
    for (number, agreement) in program.agreements.iter().enumerate() {
        let left = extent(program, scope, agreement.left)?;
        let right = extent(program, scope, agreement.right)?;
        if left != right {
            return Err(Failure::Disagreement(number, [left, right]).into());
        }
    }
    // An input's size may be written as another one, on which statements rely.
    for (number, input) in program.inputs().enumerate() {
        for (axis, &dim) in program.buffers[input].shape.iter().enumerate() {
            let own = DimDef::Input(input, axis as u32);
            if program.const_dim(dim).is_some() || *program.dim_def(dim) == own {
                continue;
            }
            let (own, said) = (scope.shape(input)?[axis], extent(program, scope, dim)?);
            if own as u64 != said {
                let what = format!("axis {axis} has {own} elements, not {said}");
                return Err(Failure::Input(number, what).into());
            }
        }
    }
    Ok(())
}

/// Where an element lies, counted from the first; nothing if it is left out.
pub(crate) fn place(
    buffer: Buffer,
    index: &[i64],
    shape: &[usize],
    outside: Outside,
) -> Result<Option<usize>, Failure> {
    let mut linear = 0;
    for (axis, (&i, &extent)) in index.iter().zip(shape).enumerate() {
        let inside = i >= 0 && i < extent as i64;
        let i = match outside {
            _ if inside => i,
            Outside::Zero => return Ok(None),
            Outside::Clamp if extent > 0 => i.clamp(0, extent as i64 - 1),
            Outside::Wrap if extent > 0 => i.rem_euclid(extent as i64),
            Outside::Clamp | Outside::Wrap => return Ok(None),
            Outside::Error(site) => {
                return Err(Failure::Index(OutOfBounds {
                    site,
                    axis,
                    index: i,
                    size: extent as u64,
                }));
            }
            Outside::Never => return Err(Failure::Unproved(buffer, axis, i, extent as u64)),
        };
        linear = linear * extent + i as usize;
    }
    Ok(Some(linear))
}

/// Whether inputs are as a program says: types and shapes.
pub(crate) fn check_inputs(
    program: &Program,
    given: &[(ScalarType, &[usize])],
) -> Result<(), Failure> {
    let n = program.inputs().count();
    if n != given.len() {
        return Err(Failure::Input(given.len(), format!("{n} are needed")));
    }
    for (number, (buffer, (ty, shape))) in program.inputs().zip(given).enumerate() {
        let def = &program.buffers[buffer];
        let fits = def.ty == *ty && def.shape.len() == shape.len();
        if let Some(&long) = shape.iter().find(|&&n| i32::try_from(n).is_err()) {
            return Err(Failure::Extent(None, long as i128));
        }
        let mut extents = def.shape.iter().zip(*shape);
        let agrees =
            |(&dim, &n): (&Dim, &usize)| program.const_dim(dim).is_none_or(|d| d == n as u64);
        if !fits || !extents.all(agrees) {
            return Err(Failure::Input(number, "another type or shape".to_owned()));
        }
    }
    Ok(())
}

/// The indices of a point that is counted row by row.
pub(crate) fn point(linear: u64, extents: &[u64]) -> Vec<i32> {
    let mut rest = linear;
    let mut point = vec![0; extents.len()];
    for (at, &extent) in point.iter_mut().zip(extents).rev() {
        *at = (rest % extent) as i32;
        rest /= extent;
    }
    point
}

/// The values of a loop's counter.
pub(crate) fn counted(lo: i128, hi: i128, step: i32) -> impl Iterator<Item = Scalar> {
    let step = i128::from(step);
    let values = std::iter::successors(Some(lo), move |at| Some(at + step));
    let is_before_end = move |at: &i128| if step > 0 { *at < hi } else { *at > hi };
    let values = values.take_while(is_before_end);
    values.map(|at| Scalar::i32(at as i32))
}
