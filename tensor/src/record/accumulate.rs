//! One statement over named axes: `for labels { result[map] accum= op(operands[maps]) }`.
//!
//! ```text
//! i, k; k, j => i, j     for [i, j, k] { r[i0, i1] add init = mul(a[i0, i2], b[i2, i1]) }
//! 2 * o + k; k => o      for [o, k] { r[i0] add init = mul(x[2 * i0 + i1], w[i1]) }
//! ```

use crate::ir::{Accum, Buffer, Dim, Expr, ExprDef};

use super::{Mode, RecordError, Recorded, Recording};

/// An index that is a sum: how often each label counts, and what is added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affine {
    /// Labels and their factors.
    pub terms: Vec<(u32, i32)>,
    /// The constant term.
    pub offset: i32,
}

impl Affine {
    /// The label that this index is, if it is one.
    fn label(&self) -> Option<u32> {
        match (&self.terms[..], self.offset) {
            (&[(label, 1)], 0) => Some(label),
            _ => None,
        }
    }
}

impl Recording {
    /// The reduction by `accum` of the operands' elements (combined by `op`) over all points with the same index in the result.
    /// `extents` are the sizes of the labels, in order; if the result has every label once, and no other index, there is
    /// nothing to accumulate. Elements of the result without a point are the identity element.
    ///
    /// # Errors
    /// If types differ, or an operand or the result has another number of axes than indices.
    pub fn accumulate(
        &mut self,
        operands: &[(Buffer, Vec<Affine>)],
        extents: &[Dim],
        result: (&[Affine], &[Dim]),
        op: &str,
        accum: Accum,
        mode: Mode,
    ) -> Recorded {
        let (map, shape) = result;
        // The result's own labels first, in its order.
        let mut order: Vec<u32> = Vec::new();
        let named = map.iter().flat_map(|a| a.terms.iter().map(|t| t.0));
        for label in named.chain(0..extents.len() as u32) {
            if !order.contains(&label) {
                order.push(label);
            }
        }
        let mut axes = vec![self.program.exprs.i32(0); extents.len()];
        for (at, &label) in order.iter().enumerate() {
            axes[label as usize] = self.program.exprs.axis(at as u32);
        }
        let domain: Vec<Dim> = order.iter().map(|&l| extents[l as usize]).collect();
        let mut value: Option<Expr> = None;
        for (x, index) in operands {
            if index.len() != self.rank(*x) {
                return Err(RecordError::Value(format!(
                    "`accum`: {} indices for a tensor with {} axes",
                    index.len(),
                    self.rank(*x)
                )));
            }
            let at: Vec<Expr> = index.iter().map(|a| self.affine(a, &axes)).collect();
            let element = self.stretched_element(*x, at, mode);
            value = Some(match value {
                None => element,
                Some(so_far) => self.binary_expr(op, so_far, element)?,
            });
        }
        let Some(value) = value else {
            return Err(RecordError::Value(
                "`accum` takes at least one tensor".to_owned(),
            ));
        };
        let labels: Option<Vec<u32>> = map.iter().map(Affine::label).collect();
        if labels.is_some_and(|l| l == order) && shape == domain {
            return Ok(self.map(&domain, value));
        }
        let ty = self.program.exprs.ty(value);
        let wide = if matches!(accum, Accum::Add | Accum::Mul) {
            ty.accumulator()
        } else {
            ty
        };
        let value = self.program.exprs.cast(value, wide);
        let index = map.iter().map(|a| self.affine(a, &axes)).collect();
        let out = self.gather_into(&domain, shape.to_vec(), index, accum, value);
        Ok(self.cast(out, ty))
    }

    fn affine(&mut self, index: &Affine, axes: &[Expr]) -> Expr {
        let mut sum: Option<Expr> = None;
        for &(label, factor) in &index.terms {
            let mut term = axes[label as usize];
            if factor != 1 {
                let factor = self.program.exprs.i32(factor);
                term = self.mul(term, factor);
            }
            sum = Some(match sum {
                None => term,
                Some(so_far) => self.add(so_far, term),
            });
        }
        let offset = self.program.exprs.i32(index.offset);
        match sum {
            None => offset,
            Some(sum) if index.offset == 0 => sum,
            Some(sum) => self.add(sum, offset),
        }
    }

    /// An element, with axes of size 1 broadcast. Indices that are labels are in bounds.
    fn stretched_element(&mut self, x: Buffer, mut at: Vec<Expr>, mode: Mode) -> Expr {
        let shape = self.shape(x);
        let mut inside = true;
        for (e, dim) in at.iter_mut().zip(shape) {
            inside &= matches!(self.program.exprs[*e], ExprDef::Axis(_) | ExprDef::Const(_));
            let is_axis = matches!(self.program.exprs[*e], ExprDef::Axis(_));
            if is_axis && self.program.const_dim(dim) == Some(1) {
                *e = self.program.exprs.i32(0);
            }
        }
        if inside {
            return self.element(x, at);
        }
        match mode.unchecked() {
            Some(outside) => self.program.load(x, at, outside),
            None => self.program.checked_load(x, at),
        }
    }
}
