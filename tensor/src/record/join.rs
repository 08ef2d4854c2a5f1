//! Concatenation and padding of tensors.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp};

use crate::ir::{Buffer, Dim, DimDef, Expr, Outside, Stmt, Store};

use super::{RecordError, Recorded, Recording};

/// The values in the margin of a padded tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    /// A number.
    Constant(Scalar),
    /// The nearest element.
    Edge,
    /// The elements again from the other end.
    Wrap,
    /// The elements mirrored at the outermost ones.
    Reflect,
    /// The elements mirrored at the ends: the outermost ones stand twice.
    Symmetric,
}

/// Up to so many parts, joining is one statement that chooses between them.
const MAX_CHOSEN: usize = 4;
/// Of more parts each is put to its place by a loop of one turn, which counts where that begins: kernels that differ in a
/// number would be compiled one by one.
const MANY_PARTS: usize = 32;

impl Recording {
    /// Single numbers, or values at the points of one shape, as the elements of a small last axis, or of two.
    ///
    /// # Errors
    /// If their shapes or types differ.
    pub fn vector(&mut self, parts: &[Buffer], shape: &[u64]) -> Recorded {
        let mut rows = Vec::new();
        for &part in parts {
            rows.push(self.unsqueeze(part, &[-1])?);
        }
        let all = self.concat(&rows, -1)?;
        let own: Vec<Dim> = shape.iter().map(|&n| self.program.size(n)).collect();
        let mut to = self.shape(parts[0]);
        to.extend(own);
        self.reshape(all, &to)
    }

    /// Tensors one after the other along an axis.
    ///
    /// # Errors
    /// If the other sizes or the types differ.
    pub fn concat(&mut self, parts: &[Buffer], axis: i64) -> Recorded {
        let Some(&first) = parts.first() else {
            return Err(RecordError::Value(
                "`concat` takes at least one tensor".to_owned(),
            ));
        };
        let shape = self.shape(first);
        let axis = self.axis_of("concat", axis, shape.len())?;
        for (operand, &part) in parts.iter().enumerate() {
            self.fits("concat", &shape, axis, operand, part)?;
            if self.ty(part) != self.ty(first) {
                return self.types_error("concat", parts, "tensors of one type");
            }
        }
        let extents: Vec<Dim> = parts.iter().map(|&part| self.shape(part)[axis]).collect();
        let whole = self.sum_of_extents("`concat`", &extents)?;
        // Where each part begins, and the end.
        let mut starts = vec![self.program.exprs.i32(0)];
        for (k, &extent) in extents.iter().enumerate() {
            let extent = self.program.extent(extent);
            starts.push(self.add(starts[k], extent));
        }
        let mut domain = shape;
        domain[axis] = whole;
        if parts.len() > MAX_CHOSEN {
            return Ok(self.concat_by_stores(parts, axis, &domain, &starts));
        }
        let at = self.program.exprs.axis(axis as u32);
        let mut value = None;
        for (k, &part) in parts.iter().enumerate().rev() {
            let mut index = self.program.axes(domain.len());
            index[axis] = self.sub(at, starts[k]);
            // A choice may read both of its values.
            let outside = if parts.len() == 1 {
                Outside::Never
            } else {
                Outside::Zero
            };
            let element = self.program.load(part, index, outside);
            value = Some(match value {
                None => element,
                Some(rest) => {
                    let before = self.lt(at, starts[k + 1]);
                    self.program.exprs.select(before, element, rest)
                }
            });
        }
        let value = value.expect("there is a part");
        Ok(self.map(&domain, value))
    }

    /// The sum of sizes.
    fn sum_of_extents(&mut self, op: &str, extents: &[Dim]) -> Recorded<Dim> {
        let known = extents.iter().map(|&dim| self.program.const_dim(dim));
        if let Some(n) = known.sum::<Option<u64>>() {
            let whole = self.program.size(n);
            self.expect_counted(op, &[whole])?;
            return Ok(whole);
        }
        let mut sum = self.program.exprs.i32(0);
        for &dim in extents {
            let extent = self.program.extent(dim);
            sum = self.add(sum, extent);
        }
        Ok(self.program.dim(DimDef::Value(sum)))
    }

    fn fits(
        &mut self,
        op: &str,
        shape: &[Dim],
        axis: usize,
        operand: usize,
        part: Buffer,
    ) -> Recorded<()> {
        let other = self.shape(part);
        let failure = |r: &Self, at: usize| {
            let text = |s: &[Dim]| s.get(at).map_or("no".to_owned(), |&d| r.dim_text(d));
            RecordError::Extents {
                op: op.to_owned(),
                shapes: vec![r.shape_text(shape), r.shape_text(&other)],
                sides: Box::new([(at, 0, text(shape)), (at, operand, text(&other))]),
                roles: Vec::new(),
            }
        };
        if other.len() != shape.len() {
            let (n, m) = (shape.len(), other.len());
            let both = [shape, &other[..]].map(|s| self.shape_text(s));
            return Err(RecordError::Value(format!(
                "`{op}`: operand {operand} has {m} axes, the first one {n}; the shapes are {} and {}",
                both[0], both[1]
            )));
        }
        for k in (0..shape.len()).filter(|&k| k != axis) {
            let message = format!("`{op}`: sizes {{}} and {{}} along axis {k}");
            if !self.agree(shape[k], other[k], &message) {
                return Err(failure(self, k));
            }
        }
        Ok(())
    }

    fn concat_by_stores(
        &mut self,
        parts: &[Buffer],
        axis: usize,
        domain: &[Dim],
        starts: &[Expr],
    ) -> Buffer {
        let target = self.program.temporary(self.ty(parts[0]), domain);
        for (k, &part) in parts.iter().enumerate() {
            let shape = self.shape(part);
            let value = self.at_point(part, shape.len());
            let mut index = self.program.axes(shape.len());
            let turn = (parts.len() > MANY_PARTS).then(|| self.program.var(ScalarType::I32));
            let start = match turn {
                Some(var) => self.program.get(var),
                None => starts[k],
            };
            index[axis] = self.add(index[axis], start);
            let store = Store {
                target,
                index,
                value,
                accum: None,
                init: false,
                outside: Outside::Never,
            };
            self.program.assign(&shape, store, self.span);
            if let Some(var) = turn {
                let body = self.program.body.pop().into_iter().collect();
                let one = self.program.exprs.i32(1);
                let (lo, hi) = (starts[k], self.add(starts[k], one));
                self.program.body.push(Stmt::Loop {
                    var,
                    lo,
                    hi,
                    step: 1,
                    body,
                });
            }
        }
        target
    }

    /// A tensor with so many more elements before and behind along each axis.
    ///
    /// # Errors
    /// If there is not a pair for each axis, or a mirror has nothing to show.
    pub fn pad(&mut self, x: Buffer, widths: &[(Dim, Dim)], margin: Margin) -> Recorded {
        let shape = self.shape(x);
        if widths.len() != shape.len() {
            return Err(RecordError::Value(format!(
                "`pad` takes two numbers for each of {} axes",
                shape.len()
            )));
        }
        for (&dim, &(before, behind)) in shape.iter().zip(widths) {
            let from_elements = !matches!(margin, Margin::Constant(_));
            let is_one = [before, behind].map(|n| self.program.const_dim(n).is_some_and(|n| n > 0));
            if from_elements && is_one.contains(&true) && self.program.const_dim(dim) == Some(0) {
                let shape = self.shape_text(&shape);
                return Err(RecordError::Value(format!(
                    "`pad`: this mode copies elements of an axis that has none: the shape is {shape}"
                )));
            }
        }
        let mut domain = Vec::new();
        let mut index = Vec::new();
        let mut inside = self.program.exprs.constant(Scalar::bool(true));
        for (axis, (&dim, &(before, behind))) in shape.iter().zip(widths).enumerate() {
            let first = self.program.extent(before);
            domain.push(self.sum_of_extents("`pad`", &[before, dim, behind])?);
            let at = self.program.exprs.axis(axis as u32);
            let at = self.sub(at, first);
            let known = [before, behind].map(|n| self.program.const_dim(n));
            if known != [Some(0); 2] {
                let zero = self.program.exprs.i32(0);
                let extent = self.program.extent(dim);
                let from = self.program.exprs.compare(CompareOp::Ge, at, zero);
                let to = self.lt(at, extent);
                let both = self.program.exprs.binary(BinaryOp::And, from, to);
                inside = match self.program.exprs.as_const(inside) {
                    Some(_) => both,
                    None => self.program.exprs.binary(BinaryOp::And, inside, both),
                };
            }
            let most = known[0].zip(known[1]).map(|(a, b)| a.max(b));
            index.push(match margin {
                Margin::Reflect => self.mirrored(at, dim, most, true),
                Margin::Symmetric => self.mirrored(at, dim, most, false),
                _ => at,
            });
        }
        let outside = match margin {
            Margin::Constant(_) => Outside::Zero,
            Margin::Wrap => Outside::Wrap,
            // Mirrored indices are inside, unless an axis that only the run knows has no elements.
            Margin::Edge | Margin::Reflect | Margin::Symmetric => Outside::Clamp,
        };
        let element = self.program.load(x, index, outside);
        let value = match margin {
            Margin::Constant(number) if number != Scalar::zero(number.ty()) => {
                let number = self.program.exprs.constant(number);
                self.program.exprs.select(inside, element, number)
            }
            _ => element,
        };
        Ok(self.map(&domain, value))
    }

    /// An index in the image of an axis mirrored at both ends, again and again: at the middle of the outermost elements, or
    /// half an element beyond it. The index is no farther outside than `most`, if that is known.
    fn mirrored(&mut self, at: Expr, dim: Dim, most: Option<u64>, at_middle: bool) -> Expr {
        let shared = i32::from(at_middle);
        let both = self.program.const_dim(dim).zip(most);
        let once = both.is_some_and(|(n, most)| most + u64::from(at_middle) <= n);
        let [before, shared] = [shared - 1, shared].map(|n| self.program.exprs.i32(n));
        let last = self.last(dim);
        let extent = self.program.extent(dim);
        let exprs = &mut self.program.exprs;
        let at = if once {
            let image = exprs.binary(BinaryOp::Sub, before, at);
            exprs.binary(BinaryOp::Max, at, image)
        } else {
            let [one, two] = [1, 2].map(|n| exprs.i32(n));
            let different = exprs.binary(BinaryOp::Sub, extent, shared);
            let period = exprs.binary(BinaryOp::Mul, different, two);
            let period = exprs.binary(BinaryOp::Max, period, one);
            exprs.binary(BinaryOp::Mod, at, period)
        };
        let both = exprs.binary(BinaryOp::Add, last, extent);
        let both = exprs.binary(BinaryOp::Sub, both, shared);
        let image = exprs.binary(BinaryOp::Sub, both, at);
        exprs.binary(BinaryOp::Min, at, image)
    }
}
