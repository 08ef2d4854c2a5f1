//! Products of matrices and sums over shared indices.

use crate::ir::{Accum, Buffer, Dim, Expr};

use super::{RecordError, Recorded, Recording};

impl Recording {
    /// `out[.., i, j] = sum over k of a[.., i, k] * b[.., k, j]`; leading axes are broadcast, and an operand with one axis is
    /// a row on the left, a column on the right.
    ///
    /// # Errors
    /// If an operand is a scalar, or sizes do not agree.
    pub fn matmul(&mut self, a: Buffer, b: Buffer) -> Recorded {
        let (n_a, n_b) = (self.rank(a), self.rank(b));
        if n_a == 0 || n_b == 0 {
            return Err(RecordError::Value(
                "`matmul` takes operands with axes; `*` scales by a number".to_owned(),
            ));
        }
        if self.ty(a) != self.ty(b) {
            return self.types_error("matmul", &[a, b], "operands of one type");
        }
        let left = if n_a == 1 {
            self.unsqueeze(a, &[0])?
        } else {
            a
        };
        let right = if n_b == 1 {
            self.unsqueeze(b, &[1])?
        } else {
            b
        };
        let (s, t) = (self.shape(left), self.shape(right));
        let [k, k2] = [s[s.len() - 1], t[t.len() - 2]];
        if !self.agree(
            k,
            k2,
            "`matmul`: the rows of the first have {} elements, the columns of the second {}",
        ) {
            return Err(RecordError::Extents {
                op: "matmul".to_owned(),
                shapes: [a, b].map(|x| self.shape_text(&self.shape(x))).to_vec(),
                sides: Box::new([
                    (n_a - 1, 0, self.dim_text(k)),
                    (n_b.saturating_sub(2), 1, self.dim_text(k2)),
                ]),
                roles: Vec::new(),
            });
        }
        let batch = self.broadcast(
            "matmul",
            &[s[..s.len() - 2].to_vec(), t[..t.len() - 2].to_vec()],
        )?;
        if let Some(field) = self.cells_of("matmul", &[left, right])? {
            let own = self.shape(field);
            let mut at_cells = [left, right].into_iter().filter(|&x| self.is_at_cells(x));
            let last = [&batch, &s[s.len() - 2..], &t[t.len() - 1..]].concat();
            let stay = at_cells.all(|x| self.rank(x) == batch.len() + 2);
            if !stay || !batch.starts_with(&own) || !self.are_few(&last[own.len()..]) {
                self.expect_everywhere(&[left, right])?;
            }
        }
        let rows = s[s.len() - 2];
        let columns = t[t.len() - 1];
        let mut shape = batch.clone();
        shape.extend([rows, columns]);
        let ty = self.ty(a);
        let n = batch.len();
        let mut domain = shape.clone();
        domain.push(k);
        let axes = self.program.axes(n + 3);
        let at = |mid: [usize; 2]| [&axes[..n], &mid.map(|m| axes[n + m])[..]].concat();
        let wide = ty.accumulator();
        let (x, y) = (self.at(left, &at([0, 2])), self.at(right, &at([2, 1])));
        let [x, y] = [x, y].map(|e| self.program.exprs.cast(e, wide));
        let product = self.mul(x, y);
        let out = self.gather_into(
            &domain,
            shape.clone(),
            axes[..n + 2].to_vec(),
            Accum::Add,
            product,
        );
        let out = self.cast(out, ty);
        self.without_rows(out, (n_a, rows), (n_b, columns), batch)
    }

    /// A product of matrices without the row or the column that an operand with one axis was made.
    fn without_rows(
        &mut self,
        out: Buffer,
        (n_a, rows): (usize, Dim),
        (n_b, columns): (usize, Dim),
        batch: Vec<Dim>,
    ) -> Recorded {
        if n_a > 1 && n_b > 1 {
            return Ok(out);
        }
        let mut kept = batch;
        kept.extend((n_a > 1).then_some(rows));
        kept.extend((n_b > 1).then_some(columns));
        self.reshape(out, &kept)
    }

    /// The sum of products over the labels that the result does not have: each operand has a label for each of its axes.
    ///
    /// # Errors
    /// If an operand has another number of axes than labels, one label has different sizes, or the result has one that no
    /// operand has.
    pub fn einsum(&mut self, operands: &[(Buffer, Vec<u32>)], result: &[u32]) -> Recorded {
        let mut extents: Vec<(u32, Dim)> = Vec::new();
        for (operand, (x, labels)) in operands.iter().enumerate() {
            let shape = self.shape(*x);
            if shape.len() != labels.len() {
                return Err(RecordError::Value(format!(
                    "`einsum`: operand {operand} has {} axes, {} are named",
                    shape.len(),
                    labels.len()
                )));
            }
            if self.ty(*x) != self.ty(operands[0].0) {
                let all: Vec<Buffer> = operands.iter().map(|o| o.0).collect();
                return self.types_error("einsum", &all, "operands of one type");
            }
            for (axis, (&label, &dim)) in labels.iter().zip(&shape).enumerate() {
                self.same_extent(&mut extents, label, dim, operand, axis)?;
            }
        }
        let mut order: Vec<u32> = result.to_vec();
        order.extend(extents.iter().map(|e| e.0).filter(|l| !result.contains(l)));
        let place = |label: u32| order.iter().position(|&l| l == label);
        let mut domain = Vec::new();
        for &label in &order {
            let Some(&(_, dim)) = extents.iter().find(|e| e.0 == label) else {
                return Err(RecordError::Value(
                    "`einsum`: the result names an axis that no operand has".to_owned(),
                ));
            };
            domain.push(dim);
        }
        let axes = self.program.axes(domain.len());
        let mut product: Option<Expr> = None;
        for (x, labels) in operands {
            let index = labels.iter().map(|&l| axes[place(l).unwrap_or(0)]);
            let element = self.at(*x, &index.collect::<Vec<_>>());
            product = Some(match product {
                None => element,
                Some(so_far) => self.mul(so_far, element),
            });
        }
        let Some(product) = product else {
            return Err(RecordError::Value(
                "`einsum` takes at least one operand".to_owned(),
            ));
        };
        if domain.len() == result.len() {
            return Ok(self.map(&domain, product));
        }
        let shape = domain[..result.len()].to_vec();
        let index = axes[..result.len()].to_vec();
        // Few digits are soon too few for a sum.
        let ty = self.program.exprs.ty(product);
        let wide = ty.accumulator();
        let product = self.program.exprs.cast(product, wide);
        let out = self.gather_into(&domain, shape, index, Accum::Add, product);
        Ok(self.cast(out, ty))
    }

    fn same_extent(
        &mut self,
        extents: &mut Vec<(u32, Dim)>,
        label: u32,
        dim: Dim,
        operand: usize,
        axis: usize,
    ) -> Recorded<()> {
        let Some(at) = extents.iter().position(|e| e.0 == label) else {
            extents.push((label, dim));
            return Ok(());
        };
        let known = extents[at].1;
        if self.program.const_dim(known) == Some(1) {
            extents[at].1 = dim;
            return Ok(());
        }
        if self.program.const_dim(dim) == Some(1)
            || self.agree(known, dim, "`einsum`: sizes {} and {} of one label")
        {
            return Ok(());
        }
        let [n, m] = [known, dim].map(|d| self.dim_text(d));
        Err(RecordError::Value(format!(
            "`einsum`: axis {axis} of operand {operand} has {m} elements, the same label elsewhere {n}"
        )))
    }
}
