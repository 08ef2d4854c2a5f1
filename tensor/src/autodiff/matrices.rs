//! Arithmetic of matrices, real and complex, by which adjoints through linear algebra are written.

use aerogel_ir::CompareOp;

use crate::ir::{Algebra, Buffer, Outside};
use crate::record::{Recorded, Recording};

/// Matrices on the last two axes: real ones, or the real and the imaginary parts.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) re: Buffer,
    pub(super) im: Option<Buffer>,
}

impl Matrix {
    pub(super) fn of(planes: &[Buffer]) -> Self {
        Self {
            re: planes[0],
            im: planes.get(1).copied(),
        }
    }

    pub(super) fn planes(self) -> Vec<Buffer> {
        [Some(self.re), self.im].into_iter().flatten().collect()
    }
}

/// Arithmetic of matrices.
pub(super) struct Matrices<'r>(pub(super) &'r mut Recording);

impl Matrices<'_> {
    pub(super) fn of_planes(
        &mut self,
        a: Matrix,
        f: impl Fn(&mut Recording, Buffer) -> Recorded,
    ) -> Recorded<Matrix> {
        let re = f(self.0, a.re)?;
        let im = a.im.map(|im| f(self.0, im)).transpose()?;
        Ok(Matrix { re, im })
    }

    /// The conjugate transpose.
    pub(super) fn adjoint(&mut self, a: Matrix) -> Recorded<Matrix> {
        let rank = self.0.rank(a.re) as i64;
        let mut order: Vec<i64> = (0..rank).collect();
        order.swap(rank as usize - 2, rank as usize - 1);
        let turned = self.of_planes(a, |r, x| r.permute(x, &order))?;
        let im = turned.im.map(|im| self.0.unary("neg", im)).transpose()?;
        Ok(Matrix { im, ..turned })
    }

    pub(super) fn product(&mut self, a: Matrix, b: Matrix) -> Recorded<Matrix> {
        let r = &mut *self.0;
        let (Some(a_im), Some(b_im)) = (a.im, b.im) else {
            let re = r.matmul(a.re, b.re)?;
            let im = match (a.im, b.im) {
                (Some(im), None) => Some(r.matmul(im, b.re)?),
                (None, Some(im)) => Some(r.matmul(a.re, im)?),
                _ => None,
            };
            return Ok(Matrix { re, im });
        };
        let [rr, ii] = [r.matmul(a.re, b.re)?, r.matmul(a_im, b_im)?];
        let [ri, ir] = [r.matmul(a.re, b_im)?, r.matmul(a_im, b.re)?];
        Ok(Matrix {
            re: r.binary("sub", rr, ii)?,
            im: Some(r.binary("add", ri, ir)?),
        })
    }

    pub(super) fn products(&mut self, all: &[Matrix]) -> Recorded<Matrix> {
        let mut made = all[0];
        for &next in &all[1..] {
            made = self.product(made, next)?;
        }
        Ok(made)
    }

    pub(super) fn each(&mut self, op: &str, a: Matrix, b: Matrix) -> Recorded<Matrix> {
        let re = self.0.binary(op, a.re, b.re)?;
        let im = match (a.im, b.im) {
            (Some(a), Some(b)) => Some(self.0.binary(op, a, b)?),
            (Some(a), None) => Some(a),
            (None, Some(b)) if op == "sub" => Some(self.0.unary("neg", b)?),
            (None, b) => b,
        };
        Ok(Matrix { re, im })
    }

    pub(super) fn minus(&mut self, a: Matrix) -> Recorded<Matrix> {
        self.of_planes(a, |r, x| r.unary("neg", x))
    }

    /// Each element times that of a real matrix.
    pub(super) fn scaled(&mut self, a: Matrix, by: Buffer) -> Recorded<Matrix> {
        self.of_planes(a, |r, x| r.binary("mul", x, by))
    }

    pub(super) fn halved(&mut self, a: Matrix) -> Recorded<Matrix> {
        let ty = self.0.ty(a.re);
        let half = self.0.number(ty, 0.5);
        let half = self.0.map(&[], half);
        self.scaled(a, half)
    }

    /// The mean of a matrix and its conjugate transpose.
    pub(super) fn symmetric(&mut self, a: Matrix) -> Recorded<Matrix> {
        let turned = self.adjoint(a)?;
        let sum = self.each("add", a, turned)?;
        self.halved(sum)
    }

    pub(super) fn triangle(&mut self, a: Matrix, k: i64, is_lower: bool) -> Recorded<Matrix> {
        self.of_planes(a, |r, x| r.triangle(x, k, is_lower))
    }

    pub(super) fn library(&mut self, op: Algebra, all: &[Matrix]) -> Recorded<Vec<Buffer>> {
        let planes: Vec<Buffer> = all.iter().flat_map(|m| m.planes()).collect();
        self.0.algebra(op, &planes)
    }

    pub(super) fn inverse(&mut self, a: Matrix) -> Recorded<Matrix> {
        Ok(Matrix::of(&self.library(Algebra::Inv, &[a])?))
    }

    /// Real numbers `x[.., n]` as `x[.., 1, n]` or `x[.., n, 1]`.
    pub(super) fn row(&mut self, x: Buffer) -> Recorded {
        self.0.unsqueeze(x, &[-2])
    }

    pub(super) fn column(&mut self, x: Buffer) -> Recorded {
        self.0.unsqueeze(x, &[-1])
    }

    /// `1 / (x[j] - x[i])` at row `i` and column `j`, zero for equal ones.
    pub(super) fn couplings(&mut self, x: Buffer) -> Recorded {
        let (row, column) = (self.row(x)?, self.column(x)?);
        let off = self.0.binary("sub", row, column)?;
        self.inverse_or_zero(off)
    }

    /// `1 / x`, zero of zero.
    pub(super) fn inverse_or_zero(&mut self, x: Buffer) -> Recorded {
        let r = &mut *self.0;
        let ty = r.ty(x);
        let [zero, one] = [0.0, 1.0].map(|n| r.number(ty, n));
        let [zero, one] = [zero, one].map(|n| r.map(&[], n));
        let is_zero = r.binary("eq", x, zero)?;
        let safe = r.select(is_zero, one, x)?;
        let inverse = r.binary("div", one, safe)?;
        r.select(is_zero, zero, inverse)
    }

    /// The numbers of vectors on the diagonals of matrices like `like`, of which the first rows and columns count.
    pub(super) fn on_diagonal(&mut self, x: Buffer, like: Buffer) -> Recorded {
        let shape = self.0.shape(like);
        let rank = shape.len();
        let p = &mut self.0.program;
        let axes = p.axes(rank);
        let element = p.load(x, axes[..rank - 1].to_vec(), Outside::Zero);
        let here = p
            .exprs
            .compare(CompareOp::Eq, axes[rank - 2], axes[rank - 1]);
        let zero = self.0.number(self.0.ty(x), 0.0);
        let value = self.0.program.exprs.select(here, element, zero);
        Ok(self.0.map(&shape, value))
    }
}
