//! Adjoints through libraries: sorting, transforms and linear algebra.
//!
//! The rules are those of M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
//! differentiation" (2008), and of P. Liao et al., "Differentiable programming tensor networks" (2019) for `qr`. The gradient
//! by a complex number is `dL/d(re) + i dL/d(im)`, so that transposes become conjugate transposes.

use aerogel_base::ScalarType;
use aerogel_ir::{BinaryOp, CompareOp};

use super::matrices::{Matrices, Matrix};
use super::{Reverse, refused};
use crate::ir::{Accum, Algebra, Buffer, Call, Dim, Expr, Library, Outside, Transform};
use crate::record::{Recorded, Recording};

impl Reverse<'_> {
    pub(super) fn call(&mut self, call: &Call) -> Recorded<()> {
        if !call.inputs.iter().any(|b| self.active.contains(b)) {
            return Ok(());
        }
        let span = std::mem::replace(&mut self.recording.span, call.span);
        let mut adjoints = Vec::new();
        if call.library == Library::Push {
            self.through_push(call)?;
            self.recording.span = span;
            return Ok(());
        }
        let of_history = usize::from(call.library == Library::Pop);
        for &output in &call.outputs[..call.outputs.len() - of_history] {
            let adjoint = match self.recording.ty(output).is_float() {
                true => self.adjoint(output)?,
                false => None,
            };
            if let (true, Some(adjoint)) = (self.wanted.contains(&output), adjoint) {
                self.found.entry(output).or_insert(adjoint);
            }
            self.adjoints.shift_remove(&output);
            adjoints.push(adjoint);
        }
        if adjoints.iter().any(Option::is_some) {
            match call.library {
                Library::Sort { .. } => self.through_sort(call, adjoints[0]),
                Library::Transform(op) => self.through_transform(op, call, &adjoints)?,
                Library::Algebra(op) => self.through_algebra(op, call, &adjoints)?,
                Library::Pop => {
                    self.through_pop(call, adjoints[0].expect("it has one"))?;
                }
                Library::MatMul | Library::MatMulRows | Library::Push => {
                    return refused("a call that only passes make");
                }
            }
        }
        self.recording.span = span;
        Ok(())
    }

    /// The adjoint of an output, zeros if nothing depends on it.
    fn or_zeros(&mut self, adjoint: Option<Buffer>, like: Buffer) -> Buffer {
        adjoint.unwrap_or_else(|| {
            let (ty, shape) = (self.recording.ty(like), self.recording.shape(like));
            let zero = self.recording.number(ty, 0.0);
            self.recording.map(&shape, zero)
        })
    }

    fn through_sort(&mut self, call: &Call, adjoint: Option<Buffer>) {
        let (Some(adjoint), x) = (adjoint, call.inputs[0]) else {
            return;
        };
        let [values, order] = [call.outputs[0], self.after(call.outputs[1])];
        let domain = self.recording.shape(values);
        let shape = self.recording.shape(x);
        let program = &mut self.recording.program;
        let axes = program.axes(domain.len());
        let place = program.load(order, axes.clone(), Outside::Never);
        let value = program.load(adjoint, axes.clone(), Outside::Never);
        let mut index = axes;
        *index.last_mut().expect("sorted along an axis") = place;
        let part = self
            .recording
            .gather_into(&domain, shape, index, Accum::Add, value);
        self.contribute(x, part);
    }

    fn through_transform(
        &mut self,
        op: Transform,
        call: &Call,
        adjoints: &[Option<Buffer>],
    ) -> Recorded<()> {
        let outputs = call.outputs.iter().zip(adjoints);
        let given: Vec<Buffer> = outputs
            .map(|(&like, &adjoint)| self.or_zeros(adjoint, like))
            .collect();
        let n = |r: &Recording, b: Buffer| *r.shape(b).last().expect("rows have an axis");
        let r = &mut *self.recording;
        let made = match op {
            Transform::Forwards | Transform::Backwards => {
                let back = match op {
                    Transform::Forwards => Transform::Backwards,
                    _ => Transform::Forwards,
                };
                let n = n(r, given[0]);
                r.transform(back, &given, n)?
            }
            Transform::OfReal => {
                let full = r.shape(call.inputs[0]);
                let n = n(r, call.inputs[0]);
                let mut padded = Vec::new();
                for plane in given {
                    let axes = r.program.axes(full.len());
                    let value = r.program.load(plane, axes, Outside::Zero);
                    padded.push(r.map(&full, value));
                }
                vec![r.transform(Transform::Backwards, &padded, n)?[0]]
            }
            Transform::ToReal => {
                let n = n(r, given[0]);
                let planes = r.transform(Transform::OfReal, &given, n)?;
                let shape = r.shape(planes[0]);
                let ty = r.ty(planes[0]);
                let weight = self.twice_inside(&shape, n, ty);
                let r = &mut *self.recording;
                let mut out = Vec::new();
                for plane in planes {
                    let element = r.at_point(plane, shape.len());
                    let value = r.mul(element, weight);
                    out.push(r.map(&shape, value));
                }
                out
            }
        };
        for (&input, part) in call.inputs.iter().zip(made) {
            self.contribute(input, part);
        }
        Ok(())
    }

    /// How often a coefficient stands for one of the whole transform of `n` real numbers: the first once, so the last of an
    /// even number, others twice.
    fn twice_inside(&mut self, shape: &[Dim], n: Dim, ty: ScalarType) -> Expr {
        let p = &mut self.recording.program;
        let place = p.exprs.axis(shape.len() as u32 - 1);
        let n = p.extent(n);
        let [zero, two] = [0, 2].map(|k| p.exprs.i32(k));
        let is_first = p.exprs.compare(CompareOp::Eq, place, zero);
        let twice = p.exprs.binary(BinaryOp::Mul, place, two);
        let is_last = p.exprs.compare(CompareOp::Eq, twice, n);
        let is_single = p.exprs.binary(BinaryOp::Or, is_first, is_last);
        let [one, two] = [1.0, 2.0].map(|v| self.recording.number(ty, v));
        self.recording.program.exprs.select(is_single, one, two)
    }

    fn through_algebra(
        &mut self,
        op: Algebra,
        call: &Call,
        adjoints: &[Option<Buffer>],
    ) -> Recorded<()> {
        let is_complex = op.is_complex(call.inputs.len()) == Some(true);
        let n_planes = 1 + usize::from(is_complex);
        let inputs: Vec<Matrix> = call.inputs.chunks(n_planes).map(Matrix::of).collect();
        // Both may be changed in place behind the call.
        let read: Vec<Buffer> = call.inputs.iter().map(|&b| self.before(b)).collect();
        let read: Vec<Matrix> = read.chunks(n_planes).map(Matrix::of).collect();
        let made: Vec<Buffer> = call.outputs.iter().map(|&b| self.after(b)).collect();
        let mut outputs = Vec::new();
        let mut given = Vec::new();
        let mut at = 0;
        for (_, n) in op.gives(is_complex) {
            let planes = &made[at..at + n];
            outputs.push(Matrix::of(planes));
            let own = &adjoints[at..at + n];
            given.push(match own.iter().any(Option::is_some) {
                true => {
                    let both = planes.iter().zip(own);
                    let both: Vec<Buffer> =
                        both.map(|(&like, &d)| self.or_zeros(d, like)).collect();
                    Some(Matrix::of(&both))
                }
                false => None,
            });
            at += n;
        }
        let m = &mut Matrices(self.recording);
        let made = m.through(op, is_complex, &read, &outputs, &given)?;
        for (input, part) in inputs.iter().zip(made) {
            let Some(part) = part else { continue };
            self.contribute(input.re, part.re);
            if let (Some(im), Some(part)) = (input.im, part.im) {
                self.contribute(im, part);
            }
        }
        Ok(())
    }
}

impl Matrices<'_> {
    /// The adjoints of the inputs of a function of matrices.
    fn through(
        &mut self,
        op: Algebra,
        is_complex: bool,
        inputs: &[Matrix],
        outputs: &[Matrix],
        given: &[Option<Matrix>],
    ) -> Recorded<Vec<Option<Matrix>>> {
        let a = inputs[0];
        let one = |m: Recorded<Matrix>| Ok(vec![Some(m?)]);
        match op {
            Algebra::Inv => {
                let Some(d) = given[0] else {
                    return Ok(Vec::new());
                };
                let turned = self.adjoint(outputs[0])?;
                let made = self.products(&[turned, d, turned])?;
                one(self.minus(made))
            }
            Algebra::Solve => {
                let Some(d) = given[0] else {
                    return Ok(Vec::new());
                };
                let turned = self.adjoint(a)?;
                let right = Matrix::of(&self.library(Algebra::Solve, &[turned, d])?);
                let x = self.adjoint(outputs[0])?;
                let made = self.product(right, x)?;
                Ok(vec![Some(self.minus(made)?), Some(right)])
            }
            Algebra::Det => one(self.through_det(a, given[0])),
            Algebra::Adjugate => one(self.through_adjugate(a, outputs[0], given[0])),
            Algebra::SlogDet => {
                if is_complex && given[0].is_some() {
                    return refused("the sign of a complex determinant");
                }
                let Some(d) = given[1] else {
                    return Ok(vec![None]);
                };
                let inverse = self.inverse(a)?;
                let turned = self.adjoint(inverse)?;
                let d = self.column(d.re)?;
                let d = self.column(d)?;
                one(self.scaled(turned, d))
            }
            Algebra::Cholesky => one(self.through_cholesky(outputs[0], given[0])),
            Algebra::Qr if !is_complex => one(self.through_qr(outputs, given)),
            Algebra::Eigh | Algebra::EigValsh => {
                let (values, vectors) = match op {
                    Algebra::Eigh => (outputs[0].re, outputs[1]),
                    _ => {
                        let made = self.library(Algebra::Eigh, &[a])?;
                        (made[0], Matrix::of(&made[1..]))
                    }
                };
                let d_vectors = given.get(1).copied().flatten();
                one(self.through_eigh(values, vectors, given[0], d_vectors))
            }
            Algebra::Svd => one(self.through_svd(outputs, given)),
            Algebra::SvdVals => {
                let Some(d) = given[0] else {
                    return Ok(Vec::new());
                };
                let made = self.library(Algebra::Svd, &[a])?;
                let n_planes = 1 + usize::from(is_complex);
                let u = Matrix::of(&made[..n_planes]);
                let vh = Matrix::of(&made[n_planes + 1..]);
                let d = self.row(d.re)?;
                let scaled = self.scaled(u, d)?;
                one(self.product(scaled, vh))
            }
            other => refused(&format!(
                "`{}`{}",
                other.name(),
                if is_complex {
                    " of complex matrices"
                } else {
                    ""
                }
            )),
        }
    }

    fn through_det(&mut self, a: Matrix, d: Option<Matrix>) -> Recorded<Matrix> {
        let d = d.expect("the one result has an adjoint");
        // As a matrix of one row and column.
        let factor = self.of_planes(d, |r, x| r.unsqueeze(x, &[-1, -2]))?;
        let minors = Matrix::of(&self.library(Algebra::Adjugate, &[a])?);
        let turned = self.adjoint(minors)?;
        self.times(turned, factor)
    }

    /// `adj(a)` changes by `tr(a^-1 da) adj(a) - a^-1 da adj(a)`.
    fn through_adjugate(
        &mut self,
        a: Matrix,
        minors: Matrix,
        d: Option<Matrix>,
    ) -> Recorded<Matrix> {
        let d = d.expect("the one result has an adjoint");
        let inverse = self.inverse(a)?;
        let inverse = self.adjoint(inverse)?;
        let turned = self.adjoint(minors)?;
        let behind = self.products(&[inverse, d, turned])?;
        let im = minors.im.map(|im| self.0.unary("neg", im)).transpose()?;
        let product = self.times(d, Matrix { im, ..minors })?;
        let sum = self.of_planes(product, |r, x| r.reduce("sum", x, Some(&[-2, -1]), true))?;
        let along = self.times(inverse, sum)?;
        self.each("sub", along, behind)
    }

    /// The product of each two elements.
    fn times(&mut self, a: Matrix, b: Matrix) -> Recorded<Matrix> {
        let r = &mut *self.0;
        let (Some(a_im), Some(b_im)) = (a.im, b.im) else {
            return self.scaled(a, b.re);
        };
        let [rr, ii] = [r.binary("mul", a.re, b.re)?, r.binary("mul", a_im, b_im)?];
        let [ri, ir] = [r.binary("mul", a.re, b_im)?, r.binary("mul", a_im, b.re)?];
        Ok(Matrix {
            re: r.binary("sub", rr, ii)?,
            im: Some(r.binary("add", ri, ir)?),
        })
    }

    fn through_cholesky(&mut self, l: Matrix, d: Option<Matrix>) -> Recorded<Matrix> {
        let d = d.expect("the one result has an adjoint");
        let turned = self.adjoint(l)?;
        let inner = self.product(turned, d)?;
        // The lower triangle with half of the diagonal.
        let lower = self.triangle(inner, -1, true)?;
        let upper = self.triangle(inner, 0, true)?;
        let sum = self.each("add", lower, upper)?;
        let half = self.halved(sum)?;
        let inverse = self.inverse(l)?;
        let turned = self.adjoint(inverse)?;
        let made = self.products(&[turned, half, inverse])?;
        self.symmetric(made)
    }

    fn through_qr(&mut self, outputs: &[Matrix], given: &[Option<Matrix>]) -> Recorded<Matrix> {
        let (q, r) = (outputs[0], outputs[1]);
        let [rows, columns] = {
            let (rows, columns) = (self.0.shape(q.re), self.0.shape(r.re));
            [rows[rows.len() - 1], columns[columns.len() - 1]]
        };
        if rows != columns {
            return refused("`qr` of a matrix with more columns than rows");
        }
        let zeros = |m: &mut Self, like: Matrix| {
            let none = m.each("sub", like, like)?;
            Ok(none)
        };
        let d_q = match given[0] {
            Some(d) => d,
            None => zeros(self, q)?,
        };
        let d_r = match given[1] {
            Some(d) => d,
            None => zeros(self, r)?,
        };
        let d_r = self.triangle(d_r, 0, false)?;
        let turned = self.adjoint(d_r)?;
        let first = self.product(r, turned)?;
        let turned = self.adjoint(d_q)?;
        let second = self.product(turned, q)?;
        let inner = self.each("sub", first, second)?;
        let lower = self.triangle(inner, 0, true)?;
        let below = self.triangle(inner, -1, true)?;
        let above = self.adjoint(below)?;
        let symmetric = self.each("add", lower, above)?;
        let along = self.product(q, symmetric)?;
        let sum = self.each("add", d_q, along)?;
        // `sum r^-T`: the solution of `r x = sum^T`, turned.
        let right = self.adjoint(sum)?;
        let solved = Matrix::of(&self.library(Algebra::Solve, &[r, right])?);
        self.adjoint(solved)
    }

    fn through_eigh(
        &mut self,
        values: Buffer,
        v: Matrix,
        d_values: Option<Matrix>,
        d_vectors: Option<Matrix>,
    ) -> Recorded<Matrix> {
        let turned = self.adjoint(v)?;
        let mut inner = None;
        if let Some(d) = d_vectors {
            let product = self.product(turned, d)?;
            let couplings = self.couplings(values)?;
            inner = Some(self.scaled(product, couplings)?);
        }
        if let Some(d) = d_values {
            let re = self.on_diagonal(d.re, v.re)?;
            let diagonal = Matrix { re, im: None };
            inner = Some(match inner {
                Some(inner) => self.each("add", inner, diagonal)?,
                None => diagonal,
            });
        }
        let made = self.products(&[v, inner.expect("a result has an adjoint"), turned])?;
        self.symmetric(made)
    }

    fn through_svd(&mut self, outputs: &[Matrix], given: &[Option<Matrix>]) -> Recorded<Matrix> {
        let (u, s, vh) = (outputs[0], outputs[1].re, outputs[2]);
        let v = self.adjoint(vh)?;
        let uh = self.adjoint(u)?;
        let (row, column) = (self.row(s)?, self.column(s)?);
        let square = self.0.binary("mul", s, s)?;
        let couplings = self.couplings(square)?;
        let mut inner: Option<Matrix> = None;
        let mut rest: Option<Matrix> = None;
        let sum = |m: &mut Self, to: Option<Matrix>, more: Matrix| match to {
            Some(to) => m.each("add", to, more).map(Some),
            None => Ok(Some(more)),
        };
        if let Some(d) = given[1] {
            let like = self.product(uh, u)?;
            let re = self.on_diagonal(d.re, like.re)?;
            inner = sum(self, inner, Matrix { re, im: None })?;
        }
        let inverse = self.inverse_or_zero(s)?;
        let (inverse_row, inverse_column) = (self.row(inverse)?, self.column(inverse)?);
        if let Some(d) = given[0] {
            let own = self.product(uh, d)?;
            let turned = self.adjoint(own)?;
            let off = self.each("sub", own, turned)?;
            let coupled = self.scaled(off, couplings)?;
            let scaled = self.scaled(coupled, row)?;
            inner = sum(self, inner, scaled)?;
            if off.im.is_some() && given[2].is_some() {
                // The phases of both vectors of a pair change together.
                let diagonal = self.on_diagonal(inverse, off.re)?;
                let phases = self.scaled(off, diagonal)?;
                let phases = self.halved(phases)?;
                inner = sum(self, inner, phases)?;
            }
            // What of it is not in the space of the vectors.
            let along = self.product(u, own)?;
            let outer = self.each("sub", d, along)?;
            let scaled = self.scaled(outer, inverse_row)?;
            let more = self.product(scaled, vh)?;
            rest = sum(self, rest, more)?;
        }
        if let Some(d) = given[2] {
            let d = self.adjoint(d)?;
            let own = self.product(vh, d)?;
            let turned = self.adjoint(own)?;
            let off = self.each("sub", own, turned)?;
            let coupled = self.scaled(off, couplings)?;
            let scaled = self.scaled(coupled, column)?;
            inner = sum(self, inner, scaled)?;
            let along = self.product(v, own)?;
            let outer = self.each("sub", d, along)?;
            let outer = self.adjoint(outer)?;
            let scaled = self.scaled(outer, inverse_column)?;
            let more = self.product(u, scaled)?;
            rest = sum(self, rest, more)?;
        }
        let inner = inner.expect("a result has an adjoint");
        let made = self.products(&[u, inner, vh])?;
        Ok(sum(self, rest, made)?.expect("there is one"))
    }
}
