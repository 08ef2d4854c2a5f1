//! Broadcasting operands of different shapes to one domain: axes are aligned at the end, and axes of size 1 are repeated.

use crate::ir::{Buffer, Dim, Expr};

use super::{RecordError, Recorded, Recording};

impl Recording {
    /// The shape that several shapes broadcast to.
    ///
    /// # Errors
    /// If sizes differ and none is 1.
    pub fn broadcast(&mut self, op: &str, shapes: &[Vec<Dim>]) -> Recorded<Vec<Dim>> {
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let mut out = Vec::new();
        for axis in 0..rank {
            // The size, the operand that has it, and its axis there.
            let mut found: Option<(Dim, usize, usize)> = None;
            for (operand, shape) in shapes.iter().enumerate() {
                let Some(at) = (axis + shape.len()).checked_sub(rank) else {
                    continue;
                };
                let dim = shape[at];
                match found {
                    _ if self.program.const_dim(dim) == Some(1) => {}
                    None => found = Some((dim, operand, at)),
                    Some((first, operand0, at0)) => {
                        let op = self.name_of(op);
                        let message = format!("`{op}`: sizes {{}} and {{}} along one axis");
                        if !self.agree(first, dim, &message) {
                            let sides = [(at0, operand0, first), (at, operand, dim)]
                                .map(|(at, operand, dim)| (at, operand, self.dim_text(dim)));
                            return Err(RecordError::Extents {
                                op,
                                shapes: shapes.iter().map(|s| self.shape_text(s)).collect(),
                                sides: Box::new(sides),
                                roles: Vec::new(),
                            });
                        }
                    }
                }
            }
            let one = self.program.size(1);
            out.push(found.map_or(one, |(dim, ..)| dim));
        }
        Ok(out)
    }

    /// A tensor's element at the point of a domain that it is broadcast to.
    pub fn at_point(&mut self, x: Buffer, rank: usize) -> Expr {
        let axes = self.program.axes(rank);
        self.at(x, &axes)
    }

    /// A tensor's element where a domain that it is broadcast to has these indices.
    pub fn at(&mut self, x: Buffer, point: &[Expr]) -> Expr {
        let mut index = point[point.len() - self.rank(x)..].to_vec();
        // A sparse value is read at the cell, along each axis of the field.
        let field = self.cells.at.get(&x).map(|(field, _)| *field);
        let n = field.map_or(0, |field| self.rank(field));
        for (k, e) in index.iter_mut().enumerate().skip(n) {
            let dim = self.program.buffers[x].shape[k];
            if self.program.const_dim(dim) == Some(1) {
                *e = self.program.exprs.i32(0);
            }
        }
        self.element(x, index)
    }

    /// The elements of several tensors at the points of the domain that all are broadcast to, and that domain.
    pub(crate) fn stretched(
        &mut self,
        op: &str,
        operands: &[Buffer],
    ) -> Recorded<(Vec<Dim>, Vec<Expr>)> {
        let mut shapes = operands.iter().map(|&x| &self.program.buffers[x].shape);
        let first = shapes
            .next()
            .filter(|first| shapes.all(|shape| shape == *first));
        let domain = match first {
            Some(first) => first.clone(),
            None => {
                let shapes: Vec<_> = operands.iter().map(|&x| self.shape(x)).collect();
                self.broadcast(op, &shapes)?
            }
        };
        self.stays_at_cells(op, operands, &domain)?;
        let axes = self.program.axes(domain.len());
        let elements = operands.iter().map(|&x| self.at(x, &axes));
        let elements = elements.collect();
        Ok((domain, elements))
    }

    /// Whether tensors broadcast with a shape to this same shape.
    pub(crate) fn stretches_to(&self, together: &[Dim], shape: &[Dim]) -> bool {
        // Sizes other than 1 have been checked to be equal.
        let mut both = together.iter().zip(shape);
        together.len() == shape.len()
            && both.all(|(a, b)| a == b || self.program.const_dim(*b) != Some(1))
    }

    /// A tensor broadcast to a shape.
    ///
    /// # Errors
    /// If it does not broadcast to it.
    pub fn broadcast_to(&mut self, x: Buffer, shape: &[Dim]) -> Recorded {
        let from = self.shape(x);
        let to = self.broadcast("broadcast_to", &[from.clone(), shape.to_vec()])?;
        if !self.stretches_to(&to, shape) {
            let (from, to) = (self.shape_text(&from), self.shape_text(shape));
            return Err(RecordError::Value(format!(
                "a tensor of shape {from} does not broadcast to {to}"
            )));
        }
        if from == shape {
            return Ok(x);
        }
        self.stays_at_cells("broadcast_to", &[x], shape)?;
        let value = self.at_point(x, shape.len());
        Ok(self.map(shape, value))
    }
}
