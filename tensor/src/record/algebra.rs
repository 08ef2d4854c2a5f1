//! Linear algebra and Fourier transforms by libraries.

use aerogel_base::ScalarType;
use aerogel_ir::BinaryOp;

use crate::ir::{Algebra, Buffer, Dim, DimDef, Library, Transform};

use super::{RecordError, Recorded, Recording};

impl Recording {
    fn floats(&self, op: &str, all: &[Buffer]) -> Recorded<()> {
        let fine = |&x: &Buffer| matches!(self.ty(x), ScalarType::F32 | ScalarType::F64);
        if all.iter().all(fine) && all.iter().all(|&x| self.ty(x) == self.ty(all[0])) {
            return Ok(());
        }
        self.types_error(op, all, "matrices of `f32` or `f64`")
    }

    fn smaller(&mut self, a: Dim, b: Dim) -> Dim {
        if let (Some(n), Some(m)) = (self.program.const_dim(a), self.program.const_dim(b)) {
            return self.program.size(n.min(m));
        }
        let [a, b] = [a, b].map(|d| self.program.extent(d));
        let least = self.program.exprs.binary(BinaryOp::Min, a, b);
        self.program.dim(DimDef::Value(least))
    }

    /// What a library computes of the matrices on the last two axes, each of them one buffer, or each two: real and imaginary
    /// parts. Leading axes of `solve`'s operands are broadcast.
    ///
    /// # Errors
    /// If there are fewer axes, matrices are not square where they must be, or types or shapes do not fit.
    pub fn algebra(&mut self, op: Algebra, inputs: &[Buffer]) -> Recorded<Vec<Buffer>> {
        let name = op.common_name();
        let Some(is_complex) = op.is_complex(inputs.len()) else {
            let (n, m) = (op.takes(), inputs.len());
            return Err(RecordError::Value(format!(
                "`{name}` takes {n} tensors, not {m}"
            )));
        };
        self.floats(name, inputs)?;
        let mut inputs = inputs.to_vec();
        for &x in &inputs {
            if self.rank(x) < 2 {
                let shape = self.shape_text(&self.shape(x));
                return Err(RecordError::Value(format!(
                    "`{name}` takes matrices, on the last two axes: the shape is {shape}"
                )));
            }
        }
        let n_planes = 1 + usize::from(is_complex);
        for planes in inputs.chunks(n_planes) {
            let [first, last] = [planes[0], planes[n_planes - 1]].map(|x| self.shape(x));
            let message = format!(
                "`{name}`: the real part has {{}} elements along an axis, the imaginary part {{}}"
            );
            let mut both = first.iter().zip(&last);
            let fine = both.all(|(&a, &b)| self.agree(a, b, &message));
            if first.len() != last.len() || !fine {
                let [a, b] = [&first, &last].map(|s| self.shape_text(s));
                return Err(RecordError::Value(format!(
                    "`{name}`: real parts of shape {a}, imaginary ones of shape {b}"
                )));
            }
        }
        let shape = self.shape(inputs[0]);
        let (batch, own) = shape.split_at(shape.len() - 2);
        let (n, m) = (own[0], own[1]);
        let message = format!("`{name}` takes square matrices, not {{}} rows and {{}} columns");
        if op.is_of_squares() && !self.agree(n, m, &message) {
            let shape = self.shape_text(&shape);
            return Err(RecordError::Value(format!(
                "`{name}` takes square matrices: the shape is {shape}"
            )));
        }
        let mut batch = batch.to_vec();
        let mut columns = m;
        if op == Algebra::Solve {
            let right = self.shape(inputs[n_planes]);
            let (right_batch, right_own) = right.split_at(right.len() - 2);
            let message = "`solve`: {} equations, {} right sides";
            if !self.agree(n, right_own[0], message) {
                let both = [&shape, &right].map(|s| self.shape_text(s));
                let [a, b] = &both;
                return Err(RecordError::Value(format!(
                    "`solve`: matrices of shape {a} for right sides of shape {b}"
                )));
            }
            columns = right_own[1];
            batch = self.broadcast(name, &[batch, right_batch.to_vec()])?;
            let all = inputs.chunks_mut(n_planes);
            for (planes, own) in all.zip([[n, m], [right_own[0], columns]]) {
                let to = [&batch[..], &own].concat();
                for x in planes {
                    *x = self.broadcast_to(*x, &to)?;
                }
            }
        }
        let k = self.smaller(n, m);
        let own: Vec<Vec<Dim>> = match op {
            Algebra::Qr => vec![vec![n, k], vec![k, m]],
            Algebra::QrComplete => vec![vec![n, n], vec![n, m]],
            Algebra::Svd => vec![vec![n, k], vec![k], vec![k, m]],
            Algebra::SvdFull => vec![vec![n, n], vec![k], vec![m, m]],
            Algebra::SvdVals => vec![vec![k]],
            Algebra::Cholesky | Algebra::Inv | Algebra::Adjugate => vec![vec![n, n]],
            Algebra::Lu => vec![vec![n, k], vec![k, m], vec![n]],
            Algebra::Solve => vec![vec![n, columns]],
            Algebra::Det => vec![vec![]],
            Algebra::SlogDet => vec![vec![], vec![]],
            Algebra::Eigh => vec![vec![n], vec![n, n]],
            Algebra::EigValsh => vec![vec![n]],
            Algebra::Eig => vec![vec![n], vec![n, n]],
            Algebra::EigVals => vec![vec![n]],
        };
        let ty = self.ty(inputs[0]);
        let mut outputs = Vec::new();
        for (own, (_, n_planes)) in own.into_iter().zip(op.gives(is_complex)) {
            let shape = [&batch[..], &own].concat();
            outputs.extend((0..n_planes).map(|_| self.program.temporary(ty, &shape)));
        }
        self.call(Library::Algebra(op), inputs, outputs.clone());
        Ok(outputs)
    }

    /// What a library computes of the rows along the last axis: of `n` numbers each, which `to_real` gives and the others
    /// take.
    ///
    /// # Errors
    /// If there are no axes, or types do not fit.
    pub fn transform(&mut self, op: Transform, inputs: &[Buffer], n: Dim) -> Recorded<Vec<Buffer>> {
        let (n_in, n_out) = op.operands();
        let same = inputs
            .iter()
            .all(|&x| self.shape(x) == self.shape(inputs[0]));
        if inputs.len() != n_in || !same || self.rank(inputs[0]) == 0 {
            let text = "a transform takes at least one axis, and real and imaginary parts of the same shape";
            return Err(RecordError::Value(text.to_owned()));
        }
        self.floats("fft", inputs)?;
        let mut shape = self.shape(inputs[0]);
        let last = shape.len() - 1;
        shape[last] = match op {
            Transform::Forwards | Transform::Backwards => shape[last],
            Transform::OfReal => self.half(shape[last]),
            Transform::ToReal => {
                let half = self.half(n);
                let text = format!(
                    "{{}} frequencies, where the transform of {} real numbers has {{}}",
                    self.dim_text(n)
                );
                if !self.agree(shape[last], half, &text) {
                    let (n, m) = (self.dim_text(n), self.dim_text(shape[last]));
                    return Err(RecordError::Value(format!(
                        "{m} frequencies do not belong to {n} real numbers"
                    )));
                }
                n
            }
        };
        let ty = self.ty(inputs[0]);
        let outputs: Vec<Buffer> = (0..n_out)
            .map(|_| self.program.temporary(ty, &shape))
            .collect();
        self.call(Library::Transform(op), inputs.to_vec(), outputs.clone());
        Ok(outputs)
    }

    /// How many of so many transforms of real numbers are different.
    fn half(&mut self, n: Dim) -> Dim {
        if let Some(n) = self.program.const_dim(n) {
            return self.program.size(n / 2 + 1);
        }
        let n = self.program.extent(n);
        let [one, two] = [1, 2].map(|k| self.program.exprs.i32(k));
        let half = self.program.exprs.binary(BinaryOp::Div, n, two);
        let value = self.add(half, one);
        self.program.dim(DimDef::Value(value))
    }
}
