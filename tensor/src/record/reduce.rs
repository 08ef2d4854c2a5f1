//! Reductions along axes.

use aerogel_base::ScalarType;
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};

use crate::ir::Outside;
use crate::ir::{Accum, Buffer, Dim, Expr, ExprDef, Function, Stmt, Store};

use super::functions::bits_of;
use super::{Made, RecordError, Recorded, Recording};

/// Where the axes of an operand are in the domain of a reduction: those that stay first.
pub(crate) struct Axes {
    /// The domain.
    pub(crate) domain: Vec<Dim>,
    /// How many stay.
    pub(crate) n_kept: usize,
    /// The operand's index in the domain.
    pub(crate) index: Vec<Expr>,
    /// The result's shape.
    pub(crate) shape: Vec<Dim>,
    /// The result's index in the domain.
    pub(crate) at: Vec<Expr>,
}

impl Recording {
    /// The domain of a reduction; no axes are all.
    pub(crate) fn reduced(
        &mut self,
        op: &str,
        x: Buffer,
        axes: Option<&[i64]>,
        keepdims: bool,
    ) -> Recorded<Axes> {
        let shape = self.shape(x);
        let axes = match axes {
            Some(axes) => self.axes_of(op, axes, shape.len())?,
            None => (0..shape.len()).collect(),
        };
        let is_kept = |k: &usize| !axes.contains(k);
        let kept: Vec<usize> = (0..shape.len()).filter(is_kept).collect();
        let order: Vec<usize> = kept
            .iter()
            .copied()
            .chain((0..shape.len()).filter(|k| axes.contains(k)))
            .collect();
        let mut index = vec![self.program.exprs.i32(0); shape.len()];
        for (at, &axis) in order.iter().enumerate() {
            index[axis] = self.program.exprs.axis(at as u32);
        }
        let one = self.program.size(1);
        let zero = self.program.exprs.i32(0);
        let (mut out, mut at) = (Vec::new(), Vec::new());
        for (axis, &dim) in shape.iter().enumerate() {
            if is_kept(&axis) {
                out.push(dim);
                at.push(index[axis]);
            } else if keepdims {
                out.push(one);
                at.push(zero);
            }
        }
        let domain = order.iter().map(|&axis| shape[axis]).collect();
        Ok(Axes {
            domain,
            n_kept: kept.len(),
            index,
            shape: out,
            at,
        })
    }

    fn reduce_with(&mut self, axes: &Axes, accum: Accum, value: Expr) -> Buffer {
        self.gather_into(
            &axes.domain,
            axes.shape.clone(),
            axes.at.clone(),
            accum,
            value,
        )
    }

    /// Sum, product, smallest, largest (`sum`, `prod`, `min`, `max`), or whether any or all are true (`any`, `all`), along
    /// some axes. NaN among the numbers makes the smallest and the largest one; half-precision sums are made in single.
    ///
    /// # Errors
    /// If there is no such axis, or nothing among which to find the smallest or the largest.
    pub fn reduce(
        &mut self,
        name: &str,
        x: Buffer,
        axes: Option<&[i64]>,
        keepdims: bool,
    ) -> Recorded {
        let at = self.reduced(name, x, axes, keepdims)?;
        let element = self.element(x, at.index.clone());
        let ty = self.ty(x);
        match name {
            "any" | "all" => {
                let truth = self.truth(element);
                let accum = if name == "any" { Accum::Or } else { Accum::And };
                Ok(self.reduce_with(&at, accum, truth))
            }
            "sum" | "prod" => {
                let accum = if name == "sum" {
                    Accum::Add
                } else {
                    Accum::Mul
                };
                let wide = ty.accumulator();
                let element = self.program.exprs.cast(element, wide);
                let out = self.reduce_with(&at, accum, element);
                Ok(self.cast(out, ty))
            }
            "min" | "max" => self.reduce_extreme(name, x, &at, element),
            _ => Err(RecordError::Value(format!(
                "there is no reduction `{name}`"
            ))),
        }
    }

    fn reduce_extreme(&mut self, name: &str, x: Buffer, at: &Axes, element: Expr) -> Recorded {
        self.not_empty(name, x, &at.domain[at.n_kept..])?;
        let accum = if name == "min" {
            Accum::Min
        } else {
            Accum::Max
        };
        let out = self.reduce_with(at, accum, element);
        if self.ty(x).is_int() {
            return Ok(out);
        }
        let nan = self.isnan(element);
        let nans = self.reduce_with(at, Accum::Or, nan);
        let rank = at.shape.len();
        let (any, best) = (self.at_point(nans, rank), self.at_point(out, rank));
        let not_a_number = self.number(self.ty(x), f64::NAN);
        let exprs = &mut self.program.exprs;
        let value = exprs.select(any, not_a_number, best);
        exprs.note_function(value, Function::Extreme, vec![any, best]);
        Ok(self.map(&at.shape, value))
    }

    fn not_empty(&self, name: &str, x: Buffer, reduced: &[Dim]) -> Recorded<()> {
        let empty = |&d: &Dim| self.program.const_dim(d) == Some(0);
        if reduced.iter().any(empty) {
            let shape = self.shape_text(&self.shape(x));
            return Err(RecordError::Value(format!(
                "`{name}` of no elements: the shape is {shape}"
            )));
        }
        Ok(())
    }

    /// How many numbers one is made of, as a float.
    fn count(&mut self, at: &Axes, ty: ScalarType) -> Expr {
        let dims = &at.domain[at.n_kept..];
        let n = self.product(dims);
        let known = self.program.const_dim(n);
        if known.is_some_and(|n| i32::try_from(n).is_ok()) {
            let n = self.program.extent(n);
            return self.program.exprs.cast(n, ty);
        }
        // Several axes may have more elements than an index counts.
        let one = self.number(ScalarType::F64, 1.0);
        let n = dims.iter().fold(one, |n, &dim| {
            let extent = self.program.extent(dim);
            let extent = self.program.exprs.cast(extent, ScalarType::F64);
            self.mul(n, extent)
        });
        self.program.exprs.cast(n, ty)
    }

    /// The same of a tensor whose values may be at cells, of which those that are active count.
    fn count_of(&mut self, x: Buffer, at: &Axes, ty: ScalarType) -> Expr {
        let element = self.element(x, at.index.clone());
        let Some(over) = self.over(&[element]) else {
            return self.count(at, ty);
        };
        let one = self.number(ty, 1.0);
        let made = Made {
            domain: at.domain.clone(),
            cells: None,
            shape: at.shape.clone(),
            index: at.at.clone(),
            value: one,
            accum: Some(Accum::Add),
        };
        let n = self.make_over(made, Some(over));
        self.at_point(n, at.shape.len())
    }

    /// The mean along some axes.
    ///
    /// # Errors
    /// If there is no such axis, or the numbers are not floats.
    pub fn mean(&mut self, x: Buffer, axes: Option<&[i64]>, keepdims: bool) -> Recorded {
        let ty = self.ty(x);
        if ty.is_int() {
            return self.types_error("mean", &[x], "floats");
        }
        let at = self.reduced("mean", x, axes, keepdims)?;
        let wide = ty.accumulator();
        let element = self.element(x, at.index.clone());
        let element = self.program.exprs.cast(element, wide);
        let sum = self.reduce_with(&at, Accum::Add, element);
        let n = self.count_of(x, &at, wide);
        let sum = self.at_point(sum, at.shape.len());
        let mean = self.program.exprs.binary(BinaryOp::Div, sum, n);
        let mean = self.program.exprs.cast(mean, ty);
        Ok(self.map(&at.shape, mean))
    }

    /// The variance along some axes, divided by the count less `correction`; its root if `root`.
    ///
    /// # Errors
    /// As `mean`.
    pub fn variance(
        &mut self,
        x: Buffer,
        axes: Option<&[i64]>,
        correction: f64,
        root: bool,
        keepdims: bool,
    ) -> Recorded {
        let ty = self.ty(x);
        if ty.is_int() {
            return self.types_error(if root { "std" } else { "var" }, &[x], "floats");
        }
        let mean = self.mean(x, axes, true)?;
        let at = self.reduced("var", x, axes, keepdims)?;
        let wide = ty.accumulator();
        let [element, mean] = [x, mean].map(|b| {
            let value = self.at(b, &at.index);
            self.program.exprs.cast(value, wide)
        });
        let off = self.sub(element, mean);
        let square = self.mul(off, off);
        let sum = self.reduce_with(&at, Accum::Add, square);
        let n = self.count(&at, wide);
        let correction = self.number(wide, correction);
        let n = self.sub(n, correction);
        let zero = self.number(wide, 0.0);
        let n = self.program.exprs.binary(BinaryOp::Max, n, zero);
        let sum = self.at_point(sum, at.shape.len());
        let mut value = self.program.exprs.binary(BinaryOp::Div, sum, n);
        if root {
            value = self.program.exprs.unary(UnaryOp::Sqrt, value);
        }
        let value = self.program.exprs.cast(value, ty);
        Ok(self.map(&at.shape, value))
    }

    /// How many numbers are not zero along some axes, as `i32`.
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn count_nonzero(&mut self, x: Buffer, axes: Option<&[i64]>, keepdims: bool) -> Recorded {
        let at = self.reduced("count_nonzero", x, axes, keepdims)?;
        let n = self.product(&at.domain[at.n_kept..]);
        if self
            .program
            .const_dim(n)
            .is_some_and(|n| i32::try_from(n).is_err())
        {
            return Err(RecordError::Value(format!(
                "`count_nonzero`: there may be more than {}, the largest count of its dtype: take the sum of `x != 0` in \
                 a wider dtype",
                i32::MAX
            )));
        }
        let element = self.element(x, at.index.clone());
        let truth = self.truth(element);
        let one = self.program.exprs.cast(truth, ScalarType::I32);
        Ok(self.reduce_with(&at, Accum::Add, one))
    }

    /// The `order`-norm along some axes: 2 is the root of the sum of squares; infinite ones are extremes, 0 counts.
    ///
    /// # Errors
    /// As `mean`.
    pub fn norm(
        &mut self,
        x: Buffer,
        order: f64,
        axes: Option<&[i64]>,
        keepdims: bool,
    ) -> Recorded {
        let ty = self.ty(x);
        if ty.is_int() {
            return self.types_error("norm", &[x], "floats");
        }
        if order == 0.0 {
            let count = self.count_nonzero(x, axes, keepdims)?;
            return Ok(self.cast(count, ty));
        }
        let sizes = self.unary("abs", x)?;
        if order.is_infinite() {
            return self.reduce(
                if order > 0.0 { "max" } else { "min" },
                sizes,
                axes,
                keepdims,
            );
        }
        if order == 1.0 {
            return self.reduce("sum", sizes, axes, keepdims);
        }
        let at = self.reduced("norm", x, axes, keepdims)?;
        // Powers of half precision overflow where their root does not.
        let wide = ty.accumulator();
        let element = self.element(sizes, at.index.clone());
        let element = self.program.exprs.cast(element, wide);
        let exponent = self.number(wide, order);
        let power = self.power(element, exponent);
        let sum = self.reduce_with(&at, Accum::Add, power);
        let sum = self.at_point(sum, at.shape.len());
        let value = if order == 2.0 {
            self.program.exprs.unary(UnaryOp::Sqrt, sum)
        } else {
            let root = self.number(wide, 1.0 / order);
            self.program.exprs.binary(BinaryOp::Pow, sum, root)
        };
        let value = self.program.exprs.cast(value, ty);
        Ok(self.map(&at.shape, value))
    }

    /// The index of the first of the smallest (`argmin`) or largest numbers along an axis, or of all; a NaN comes before all.
    ///
    /// # Errors
    /// If there is no such axis, or no numbers.
    pub fn arg_reduce(
        &mut self,
        name: &str,
        x: Buffer,
        axis: Option<i64>,
        keepdims: bool,
    ) -> Recorded {
        let Some(axis) = axis else {
            let rank = self.rank(x);
            let n = self.product(&self.shape(x));
            self.expect_counted(&format!("`{name}`"), &[n])?;
            let flat = self.reshape(x, &[n])?;
            let place = self.arg_reduce(name, flat, Some(0), false)?;
            return if keepdims {
                self.unsqueeze(place, &(0..rank as i64).collect::<Vec<_>>())
            } else {
                Ok(place)
            };
        };
        let at = self.reduced(name, x, Some(&[axis]), keepdims)?;
        self.not_empty(name, x, &at.domain[at.n_kept..])?;
        if self.ty(x).bits() > 32 {
            return Ok(self.arg_by_loop(name, x, &at));
        }
        // The number in the upper half of a word, its index in the lower one: the largest word has both.
        let element = self.element(x, at.index.clone());
        let key = self.ordered_bits(element, name == "argmin");
        let place = self.program.exprs.axis(at.n_kept as u32);
        let [all, half] =
            [i128::from(u32::MAX), 32].map(|n| self.program.exprs.int(ScalarType::U64, n));
        let place = self.program.exprs.cast(place, ScalarType::U64);
        let place = self.sub(all, place);
        let key = self.program.exprs.cast(key, ScalarType::U64);
        let key = self.program.exprs.binary(BinaryOp::Shl, key, half);
        let word = self.program.exprs.binary(BinaryOp::Or, key, place);
        let best = self.reduce_with(&at, Accum::Max, word);
        let best = self.at_point(best, at.shape.len());
        let place = self.program.exprs.binary(BinaryOp::And, best, all);
        let place = self.sub(all, place);
        let place = self.program.exprs.cast(place, ScalarType::I32);
        Ok(self.map(&at.shape, place))
    }

    /// An unsigned integer that is larger for a larger number (or a smaller one, if `down`), largest for NaN; the same for
    /// both zeros.
    pub(crate) fn ordered_bits(&mut self, x: Expr, down: bool) -> Expr {
        let ty = self.program.exprs.ty(x);
        let (bits, wide) = (bits_of(ty), ScalarType::U32);
        let to = if ty.bits() > 32 {
            ScalarType::U64
        } else {
            wide
        };
        let word = if ty.is_float() {
            let zero = self.number(ty, 0.0);
            // Both zeros are one number.
            let is_zero = self.program.exprs.compare(CompareOp::Eq, x, zero);
            let x0 = self.program.exprs.select(is_zero, zero, x);
            let word = self.program.exprs.add(ExprDef::Bitcast(x0, bits));
            let top = self.program.exprs.int(bits, 1 << (ty.bits() - 1));
            let sign = self.program.exprs.binary(BinaryOp::And, word, top);
            let negative = self.truth(sign);
            let flipped = self.program.exprs.unary(UnaryOp::Not, word);
            let raised = self.program.exprs.binary(BinaryOp::Or, word, top);
            self.program.exprs.select(negative, flipped, raised)
        } else {
            let as_bits = self.program.exprs.cast(x, bits);
            match ty.is_signed() {
                true => {
                    let top = self.program.exprs.int(bits, 1 << (ty.bits() - 1));
                    self.program.exprs.binary(BinaryOp::Xor, as_bits, top)
                }
                false => as_bits,
            }
        };
        let word = if down {
            self.program.exprs.unary(UnaryOp::Not, word)
        } else {
            word
        };
        let word = if ty.is_float() {
            let most = self.program.exprs.int(bits, -1);
            let nan = self.isnan(x);
            self.program.exprs.select(nan, most, word)
        } else {
            word
        };
        self.program.exprs.cast(word, to)
    }

    /// The same where no word holds both: a loop at each point.
    fn arg_by_loop(&mut self, name: &str, x: Buffer, at: &Axes) -> Buffer {
        let ty = self.ty(x);
        let p = &mut self.program;
        let target = p.temporary(ScalarType::I32, &at.shape);
        let (best, place, k) = (p.var(ty), p.var(ScalarType::I32), p.var(ScalarType::I32));
        let counter = p.get(k);
        let reduced = p.exprs.axis(at.n_kept as u32);
        let at_index = |e: Expr| -> Vec<Expr> {
            at.index
                .iter()
                .map(|&i| if i == reduced { e } else { i })
                .collect()
        };
        let [zero, one] = [0, 1].map(|n| p.exprs.i32(n));
        let index = at_index(zero);
        let first = p.load(x, index, Outside::Never);
        let index = at_index(counter);
        let next = p.load(x, index, Outside::Never);
        let so_far = p.get(best);
        let op = if name == "argmin" {
            CompareOp::Lt
        } else {
            CompareOp::Gt
        };
        let mut better = p.exprs.compare(op, next, so_far);
        if ty.is_float() {
            let nan = p.exprs.compare(CompareOp::Ne, next, next);
            let fine = p.exprs.compare(CompareOp::Eq, so_far, so_far);
            better = p.exprs.binary(BinaryOp::Or, better, nan);
            better = p.exprs.binary(BinaryOp::And, better, fine);
        }
        let hi = p.extent(at.domain[at.n_kept]);
        let value = p.get(place);
        let store = Store {
            target,
            index: at.at.clone(),
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        let body = vec![
            Stmt::Set(best, first),
            Stmt::Set(place, zero),
            Stmt::Loop {
                var: k,
                lo: one,
                hi,
                step: 1,
                body: vec![Stmt::If(
                    better,
                    vec![Stmt::Set(best, next), Stmt::Set(place, counter)],
                    vec![],
                )],
            },
            Stmt::Store(store),
        ];
        self.for_all(at.domain[..at.n_kept].to_vec(), body);
        target
    }
}
