//! The same elements under other indices.

use aerogel_base::ScalarType;
use aerogel_ir::BinaryOp;

use crate::ir::{Buffer, Dim, DimDef, Expr};

use super::{KnownPart, Mode, Part, RecordError, Recorded, Recording};

impl Recording {
    /// The elements with the axes in another order: axis `k` of the result is axis `order[k]`.
    ///
    /// # Errors
    /// If `order` does not name every axis once.
    pub fn permute(&mut self, x: Buffer, order: &[i64]) -> Recorded {
        let shape = self.shape(x);
        let order = self.axes_of("permute_dims", order, shape.len())?;
        if order.len() != shape.len() {
            let (given, rank) = (order.len(), shape.len());
            return Err(RecordError::Value(format!(
                "`permute_dims`: {given} axes are named, the tensor has {rank}"
            )));
        }
        if order.iter().enumerate().all(|(k, &axis)| k == axis) {
            return Ok(x);
        }
        let domain: Vec<Dim> = order.iter().map(|&axis| shape[axis]).collect();
        let mut index = vec![None; shape.len()];
        for (k, &axis) in order.iter().enumerate() {
            index[axis] = Some(self.program.exprs.axis(k as u32));
        }
        self.view(x, &domain, index.into_iter().flatten().collect())
    }

    /// The elements row by row in another shape.
    ///
    /// # Errors
    /// If it has another number of elements.
    pub fn reshape(&mut self, x: Buffer, to: &[Dim]) -> Recorded {
        let from = self.shape(x);
        if from == to {
            return Ok(x);
        }
        let (left, right) = (self.product(&from), self.product(to));
        if !self.agree(left, right, "`reshape`: {} and {} elements") {
            let [n, m] = [left, right].map(|d| self.dim_text(d));
            let [from, to] = [&from[..], to].map(|s| self.shape_text(s));
            return Err(RecordError::Value(format!(
                "`reshape`: {from} has {n} elements, {to} has {m}"
            )));
        }
        self.expect_counted("`reshape`", to)?;
        let axes = self.program.axes(to.len());
        let index = self.index_of_reshaped(&from, to, &axes);
        self.view(x, to, index)
    }

    /// The indices in `from` of the element that has these in `to`. Axes that stay are found, so that only those that
    /// are split or joined cost arithmetic.
    fn index_of_reshaped(&mut self, from: &[Dim], to: &[Dim], point: &[Expr]) -> Vec<Expr> {
        let mut index = Vec::new();
        let (mut i, mut j) = (0, 0);
        while i < from.len() || j < to.len() {
            let (i0, j0) = (i, j);
            let is_one = |r: &Self, dims: &[Dim], k: usize| {
                dims.get(k)
                    .is_some_and(|&d| r.program.const_dim(d) == Some(1))
            };
            if i < from.len() && j < to.len() && from[i] == to[j] {
                index.push(point[j]);
                (i, j) = (i + 1, j + 1);
                continue;
            }
            if is_one(self, to, j) {
                j += 1;
                continue;
            }
            if is_one(self, from, i) {
                index.push(self.program.exprs.i32(0));
                i += 1;
                continue;
            }
            // The shortest groups with equal products; without one, all the rest.
            (i, j) = self
                .group(from, to, i0, j0)
                .unwrap_or((from.len(), to.len()));
            let (to, point, from) = (&to[j0..j], &point[j0..j], &from[i0..i]);
            let n = self.product(to);
            let is_wide = self
                .program
                .const_dim(n)
                .is_some_and(|n| n > i32::MAX as u64);
            let ty = match is_wide {
                true => ScalarType::I64,
                false => ScalarType::I32,
            };
            let linear = self.linear_in(ty, to, point);
            let parts = self.unravel(linear, from);
            let parts = parts.into_iter();
            index.extend(parts.map(|e| self.program.exprs.cast(e, ScalarType::I32)));
        }
        index
    }

    fn group(&self, from: &[Dim], to: &[Dim], i: usize, j: usize) -> Option<(usize, usize)> {
        let known = |d: Option<&Dim>| d.and_then(|&d| self.program.const_dim(d));
        let (mut n, mut m) = (known(from.get(i))?, known(to.get(j))?);
        let (mut i, mut j) = (i + 1, j + 1);
        while n != m {
            if n < m {
                n *= known(from.get(i))?;
                i += 1;
            } else {
                m *= known(to.get(j))?;
                j += 1;
            }
        }
        (n != 0).then_some((i, j))
    }

    /// The number of an element, row by row.
    pub(crate) fn linear(&mut self, dims: &[Dim], index: &[Expr]) -> Expr {
        self.linear_in(ScalarType::I32, dims, index)
    }

    /// The same in a type that holds it.
    pub(crate) fn linear_in(&mut self, ty: ScalarType, dims: &[Dim], index: &[Expr]) -> Expr {
        let zero = self.program.exprs.i32(0);
        let zero = self.program.exprs.cast(zero, ty);
        dims.iter().zip(index).fold(zero, |sum, (&dim, &e)| {
            let extent = self.program.extent(dim);
            let [extent, e] = [extent, e].map(|e| self.program.exprs.cast(e, ty));
            let rows = self.mul(sum, extent);
            self.add(rows, e)
        })
    }

    /// The indices of an element by its number.
    pub(crate) fn unravel(&mut self, linear: Expr, dims: &[Dim]) -> Vec<Expr> {
        let mut rest = linear;
        let mut index = Vec::new();
        for (k, &dim) in dims.iter().enumerate().rev() {
            let extent = self.program.extent(dim);
            let extent = self.program.exprs.cast(extent, self.program.exprs.ty(rest));
            if k == 0 {
                index.push(rest);
                break;
            }
            index.push(self.program.exprs.binary(BinaryOp::Rem, rest, extent));
            rest = self.program.exprs.binary(BinaryOp::Div, rest, extent);
        }
        index.reverse();
        index
    }

    /// A new axis of size 1 at each of these positions of the result.
    ///
    /// # Errors
    /// If there is no such place.
    pub fn unsqueeze(&mut self, x: Buffer, axes: &[i64]) -> Recorded {
        let shape = self.shape(x);
        let rank = shape.len() + axes.len();
        let axes = self.axes_of("expand_dims", axes, rank)?;
        let one = self.program.size(1);
        let mut rest = shape.into_iter();
        let to = (0..rank).map(|k| {
            if axes.contains(&k) {
                one
            } else {
                rest.next().unwrap_or(one)
            }
        });
        let to: Vec<Dim> = to.collect();
        self.reshape(x, &to)
    }

    /// Without these axes, whose sizes are 1.
    ///
    /// # Errors
    /// If one has another size.
    pub fn squeeze(&mut self, x: Buffer, axes: &[i64]) -> Recorded {
        let shape = self.shape(x);
        let axes = self.axes_of("squeeze", axes, shape.len())?;
        let one = self.program.size(1);
        for &axis in &axes {
            if !self.agree(
                shape[axis],
                one,
                "`squeeze`: the size of an axis is {}, not {}",
            ) {
                let (extent, shape) = (self.dim_text(shape[axis]), self.shape_text(&shape));
                return Err(RecordError::Value(format!(
                    "`squeeze`: axis {axis} has {extent} elements, not 1; the shape is {shape}"
                )));
            }
        }
        let kept = shape.iter().enumerate().filter(|(k, _)| !axes.contains(k));
        let to: Vec<Dim> = kept.map(|(_, &d)| d).collect();
        self.reshape(x, &to)
    }

    /// The elements in the opposite order along some axes.
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn flip(&mut self, x: Buffer, axes: &[i64]) -> Recorded {
        let shape = self.shape(x);
        let axes = self.axes_of("flip", axes, shape.len())?;
        let mut index = self.program.axes(shape.len());
        for axis in axes {
            let last = self.last(shape[axis]);
            index[axis] = self.sub(last, index[axis]);
        }
        self.view(x, &shape, index)
    }

    /// The last index along an axis.
    pub(crate) fn last(&mut self, dim: Dim) -> Expr {
        let extent = self.program.extent(dim);
        let one = self.program.exprs.i32(1);
        self.sub(extent, one)
    }

    /// Parts of the first axes.
    ///
    /// # Errors
    /// If there are more parts than axes.
    pub fn slice(&mut self, x: Buffer, parts: &[Part]) -> Recorded {
        let (domain, index) = self.index_of_parts(x, parts)?;
        if parts.iter().any(|part| part.is_checked) {
            self.expect_everywhere(&[x])?;
            let value = self.load_where(&domain, x, index, Mode::Error, None);
            return Ok(self.map(&domain, value));
        }
        let shape = self.shape(x);
        if domain == shape && index == self.program.axes(shape.len()) {
            return Ok(x);
        }
        self.view(x, &domain, index)
    }

    /// The shape of some parts of a tensor, and the index of its elements there.
    pub(super) fn index_of_parts(
        &mut self,
        x: Buffer,
        parts: &[Part],
    ) -> Recorded<(Vec<Dim>, Vec<Expr>)> {
        let shape = self.shape(x);
        if parts.len() > shape.len() {
            return Err(RecordError::Index(format!(
                "{} indices for a tensor with {} axes",
                parts.len(),
                shape.len()
            )));
        }
        let mut domain = Vec::new();
        let mut index = Vec::new();
        for (axis, &dim) in shape.iter().enumerate() {
            let at = self.program.exprs.axis(domain.len() as u32);
            let Some(part) = parts.get(axis) else {
                index.push(at);
                domain.push(dim);
                continue;
            };
            if part.drops {
                index.push(part.start);
                continue;
            }
            domain.push(part.len);
            let step = self.program.exprs.i32(part.step as i32);
            let steps = self.mul(at, step);
            index.push(self.add(steps, part.start));
        }
        Ok((domain, index))
    }

    /// A part whose numbers are known.
    pub fn part(&mut self, known: KnownPart) -> Part {
        Part {
            start: self.program.exprs.i32(known.start as i32),
            step: known.step,
            len: self.program.size(known.len),
            drops: known.drops,
            is_checked: known.is_checked,
        }
    }

    /// The whole of an axis.
    pub(super) fn whole_axis(&mut self, dim: Dim) -> Part {
        Part {
            start: self.program.exprs.i32(0),
            step: 1,
            len: dim,
            drops: false,
            is_checked: false,
        }
    }

    /// The element that is `shift` before, around the end, along each of some axes.
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn roll(&mut self, x: Buffer, shifts: &[i64], axes: &[i64]) -> Recorded {
        let shape = self.shape(x);
        let mut index = self.program.axes(shape.len());
        for (&shift, &axis) in shifts.iter().zip(axes) {
            let axis = self.axis_of("roll", axis, shape.len())?;
            let extent = self.program.extent(shape[axis]);
            let shift = match self.program.const_dim(shape[axis]) {
                Some(0) => continue,
                Some(n) => (-shift).rem_euclid(n as i64),
                None => -shift,
            };
            let shift = self.program.exprs.i32(shift as i32);
            let moved = self.add(index[axis], shift);
            index[axis] = self.program.exprs.binary(BinaryOp::Mod, moved, extent);
        }
        let value = self.element(x, index);
        Ok(self.map(&shape, value))
    }

    /// The tensor so many times along each axis.
    ///
    /// # Errors
    /// If a count is below zero.
    pub fn tile(&mut self, x: Buffer, counts: &[i64]) -> Recorded {
        let shape = self.shape(x);
        let rank = shape.len().max(counts.len());
        let one = self.program.size(1);
        let mut from = vec![one; rank - shape.len()];
        from.extend(&shape);
        let mut times = vec![1; rank - counts.len()];
        times.extend(counts);
        let mut domain = Vec::new();
        let mut index = Vec::new();
        for (axis, (&dim, &n)) in from.iter().zip(&times).enumerate() {
            domain.push(self.times("tile", dim, n)?);
            let at = self.program.exprs.axis(axis as u32);
            let extent = self.program.extent(dim);
            let around = self.program.exprs.binary(BinaryOp::Rem, at, extent);
            index.push(if n == 1 { at } else { around });
        }
        let index = index.split_off(rank - shape.len());
        let value = self.element(x, index);
        Ok(self.map(&domain, value))
    }

    fn times(&mut self, op: &str, dim: Dim, n: i64) -> Recorded<Dim> {
        let n = u64::try_from(n).map_err(|_| RecordError::Value(format!("`{op}`: {n} times")))?;
        let known = self.program.const_dim(dim);
        if let Some(extent) = known.and_then(|extent| extent.checked_mul(n)) {
            return Ok(self.program.size(extent));
        }
        let n = i32::try_from(n).map_err(|_| RecordError::Value(format!("`{op}`: {n} times")))?;
        let (extent, n) = (self.program.extent(dim), self.program.exprs.i32(n));
        let value = self.mul(extent, n);
        Ok(self.program.dim(DimDef::Value(value)))
    }

    /// Each element so many times in a row along an axis.
    ///
    /// # Errors
    /// If there is no such axis, or the count is below zero.
    pub fn repeat(&mut self, x: Buffer, n: i64, axis: i64) -> Recorded {
        let shape = self.shape(x);
        let axis = self.axis_of("repeat", axis, shape.len())?;
        let mut domain = shape.clone();
        domain[axis] = self.times("repeat", shape[axis], n)?;
        let mut index = self.program.axes(shape.len());
        let n = self.program.exprs.i32(n as i32);
        index[axis] = self.program.exprs.binary(BinaryOp::Div, index[axis], n);
        let value = self.element(x, index);
        Ok(self.map(&domain, value))
    }

    /// The elements on a diagonal of the last two axes and below it (`lower`), or above; zero elsewhere.
    ///
    /// # Errors
    /// If there are no two axes.
    pub fn triangle(&mut self, x: Buffer, k: i64, lower: bool) -> Recorded {
        let op = if lower { "tril" } else { "triu" };
        let shape = self.shape(x);
        let Some(row) = shape.len().checked_sub(2) else {
            let text = self.shape_text(&shape);
            return Err(RecordError::Value(format!(
                "`{op}` takes at least two axes, the shape is {text}"
            )));
        };
        let element = self.at_point(x, shape.len());
        let [i, j] = [row, row + 1].map(|axis| self.program.exprs.axis(axis as u32));
        let k = self.program.exprs.i32(k.clamp(-(1 << 30), 1 << 30) as i32);
        let bound = self.add(i, k);
        let above = self.lt(bound, j);
        let at = self
            .program
            .exprs
            .compare(aerogel_ir::CompareOp::Eq, bound, j);
        let zero = self.number(self.ty(x), 0.0);
        let value = if lower {
            self.program.exprs.select(above, zero, element)
        } else {
            let kept = self.program.exprs.binary(BinaryOp::Or, above, at);
            self.program.exprs.select(kept, element, zero)
        };
        Ok(self.map(&shape, value))
    }

    /// The elements whose indices along two axes are equal, as the last axis.
    ///
    /// # Errors
    /// If there are no such axes.
    pub fn diagonal(&mut self, x: Buffer, offset: i64, axes: [i64; 2]) -> Recorded {
        let shape = self.shape(x);
        let axes = self.axes_of("diagonal", &axes, shape.len())?;
        let known = |r: &Self, axis: usize| r.program.const_dim(shape[axis]).map(|n| n as i64);
        let (Some(n), Some(m)) = (known(self, axes[0]), known(self, axes[1])) else {
            return Err(RecordError::Value(
                "`diagonal` takes axes of known size".to_owned(),
            ));
        };
        let [skip, skip2] = [(-offset).max(0), offset.max(0)];
        let len = (n - skip).min(m - skip2).max(0);
        let mut domain: Vec<Dim> = shape.clone();
        domain.remove(axes[0].max(axes[1]));
        domain.remove(axes[0].min(axes[1]));
        let last = self.program.exprs.axis(domain.len() as u32);
        domain.push(self.program.size(len as u64));
        let mut rest = 0..domain.len() as u32;
        let mut index = Vec::new();
        for axis in 0..shape.len() {
            let skip = if axis == axes[0] { skip } else { skip2 };
            index.push(if axes.contains(&axis) {
                let skip = self.program.exprs.i32(skip as i32);
                self.add(last, skip)
            } else {
                self.program.exprs.axis(rest.next().unwrap_or(0))
            });
        }
        let value = self.element(x, index);
        Ok(self.map(&domain, value))
    }
}
