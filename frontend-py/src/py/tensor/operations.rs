//! The operations, each by the name that `aerogel_tensor::record` has for it.

use aerogel_base::{Scalar, ScalarType};
use aerogel_tensor::Operand;
use aerogel_tensor::ir::{Algebra, Transform};
use aerogel_tensor::record::Margin;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::NativeMemory;
use super::native::{
    Extent, Home, NativeTensor, NativeTrace, SESSION, dims, lock, number, outside, scalar_type,
};
use super::values::leaf;
use crate::py::buffer::{Dim, copy};
use crate::py::ndarray::NativeNdarray;
use crate::py::{error, foreign, program};

use super::arguments::{NumberOr, STORED, accum, called, handles};
use super::notation::CallArgs;
use super::recorded::{of_nothing, sizes};

/// One number, as an operand: a constant of the code if it is one of few, or else an input of it, so that the same code
/// serves for others.
fn one_number(number: Scalar, trace: Option<&NativeTrace>) -> PyResult<NativeTensor> {
    let x = number.to_f64();
    let is_one_of_few = x.is_nan() || x.abs() <= 64.0 && (2.0 * x).fract() == 0.0;
    if trace.is_some() || is_one_of_few {
        return of_nothing(trace, move |r| Ok(r.full(&[], number)));
    }
    input_of(number)
}

/// One number as an input.
fn input_of(number: Scalar) -> PyResult<NativeTensor> {
    let operand = Operand::zeros(number.ty(), &[]).map_err(error::memory)?;
    let written = operand.buffer.write_scalar(0, number);
    written.map_err(error::memory)?;
    Ok(leaf(operand))
}

#[pymethods]
impl NativeTensor {
    /// The numbers of a NumPy array, copied.
    #[staticmethod]
    fn of_numpy(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let foreign = foreign::on_host(array)?;
        let ty = foreign
            .ty
            .ok_or_else(|| PyValueError::new_err("tensors do not support this dtype"))?;
        let from = foreign.contents()?;
        let copy = Operand::of_bytes(&from, ty, &foreign.shape);
        Ok(leaf(copy.map_err(error::memory)?))
    }

    /// The numbers of an array of the program's own, where they lie.
    #[staticmethod]
    fn of_ndarray(array: &Bound<'_, NativeNdarray>) -> PyResult<Self> {
        let array = array.get();
        let shape = [array.shape.as_slice(), &array.element.extents()].concat();
        if array.is_anothers() {
            // A tensor may outlive the array, which alone keeps the memory.
            let copy = Operand::of_bytes(&array.buffer, array.ty, &shape);
            return Ok(leaf(copy.map_err(error::memory)?));
        }
        Ok(leaf(Operand {
            buffer: array.buffer.clone(),
            ty: array.ty,
            shape,
        }))
    }

    /// Zeros of the same type, outside of programs.
    fn zeros_outside(&self, shape: Vec<usize>) -> PyResult<Self> {
        let ty = scalar_type(self.dtype())?;
        Ok(leaf(Operand::zeros(ty, &shape).map_err(error::memory)?))
    }

    /// One number as an input of what is computed with it.
    #[staticmethod]
    fn of_number(dtype: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        input_of(number(value, scalar_type(dtype)?)?)
    }

    /// One number, as an operand: a constant or an input.
    #[staticmethod]
    #[pyo3(signature = (dtype, value, trace = None))]
    fn constant(
        dtype: &str,
        value: &Bound<'_, PyAny>,
        trace: Option<&NativeTrace>,
    ) -> PyResult<Self> {
        one_number(number(value, scalar_type(dtype)?)?, trace)
    }

    /// Computes it, if that has not been done.
    fn realise(&self, py: Python<'_>) -> PyResult<()> {
        self.computed(py).map(|_| ())
    }

    /// Whether it is evaluated.
    fn is_realised(&self) -> bool {
        match self.home {
            Home::Lazy(slot) => lock(&SESSION).value(slot).is_some(),
            Home::Program(..) => false,
        }
    }

    /// Whether it is recorded outside of programs.
    #[getter]
    fn is_outside(&self) -> bool {
        matches!(self.home, Home::Lazy(_))
    }

    /// Whether it is a symbolic tensor of `vmap`, or computed from one.
    pub(super) fn is_one_of_many(&self) -> bool {
        match self.home {
            Home::Lazy(slot) => lock(&SESSION).is_one_of_many(slot),
            Home::Program(..) => false,
        }
    }

    /// Its number, if it is a single one, in Python.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.computed(py)?;
        if value.shape.iter().product::<usize>() != 1 {
            return Err(PyValueError::new_err(format!(
                "a tensor of shape {:?} is not one number",
                value.shape
            )));
        }
        let number = value
            .buffer
            .read_scalar(value.ty, 0)
            .map_err(error::memory)?;
        if value.ty == aerogel_base::ScalarType::U1 {
            return Ok(number.as_bool().into_pyobject(py)?.to_owned().into_any());
        }
        crate::py::buffer::to_python(py, number)
    }

    /// The memory of the values, for other packages.
    fn memory(&self, py: Python<'_>) -> PyResult<NativeMemory> {
        self.handed_out(py).map(NativeMemory::of)
    }

    /// Copies the values to an array.
    fn copy_to(&self, py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = self.computed(py)?;
        let array = foreign::on_host(array)?;
        array.expect_writeable()?;
        let there = array.buffer()?;
        if array.ty != Some(value.ty) || there.len() != value.buffer.len() {
            return Err(PyValueError::new_err(
                "the array is another than the tensor",
            ));
        }
        let item = value.ty.bytes() as usize;
        let dim = Dim {
            extent: there.len() / item,
            dst: item,
            src: item,
        };
        let copied = py.detach(|| copy((there, 0), (&value.buffer, 0), vec![dim], item));
        copied.map_err(error::memory)
    }

    #[getter]
    pub(super) fn dtype(&self) -> &'static str {
        match &self.home {
            Home::Lazy(slot) => lock(&SESSION).ty(*slot).name(),
            Home::Program(trace, value) => {
                let trace = lock(trace);
                trace.state.r.ty(trace.state.seen(*value)).name()
            }
        }
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match &self.home {
            Home::Lazy(slot) => {
                let shape = lock(&SESSION).description(*slot).1;
                PyTuple::new(py, shape)
            }
            Home::Program(trace, value) => PyTuple::new(py, sizes(trace, *value)?),
        }
    }

    /// The type, the number of axes, and which of them have one element, as one number: what a program is made for. 0 where there are too many axes for that.
    #[getter]
    fn kind(&self) -> u64 {
        let of = |ty: ScalarType, shape: &mut dyn Iterator<Item = bool>| {
            let (ones, rank) = shape.fold((0u64, 0u32), |(ones, rank), is_one| {
                (
                    ones | u64::from(is_one).checked_shl(rank).unwrap_or(0),
                    rank + 1,
                )
            });
            match rank {
                ..=40 => (ones << 16) | (u64::from(rank) << 8) | (1 << 7) | ty as u64,
                _ => 0,
            }
        };
        match &self.home {
            Home::Lazy(slot) => {
                let (ty, shape) = lock(&SESSION).description(*slot);
                of(ty, &mut shape.iter().map(|&n| n == 1))
            }
            Home::Program(trace, value) => {
                let trace = lock(trace);
                let r = &trace.state.r;
                let buffer = trace.state.seen(*value);
                let shape = r.shape(buffer);
                let mut ones = shape.iter().map(|&dim| r.program.const_dim(dim) == Some(1));
                of(r.ty(buffer), &mut ones)
            }
        }
    }

    /// The shape, for messages.
    fn shape_text(&self, py: Python<'_>) -> PyResult<String> {
        let Home::Program(trace, value) = &self.home else {
            return Ok(self.shape(py)?.repr()?.to_string());
        };
        let trace = lock(trace);
        let (r, buffer) = (&trace.state.r, trace.state.seen(*value));
        Ok(r.shape_text(&r.shape(buffer)))
    }

    fn unary(&self, name: &str) -> PyResult<Self> {
        let op = name.to_owned();
        self.element_op(name, &[], move |r, x, _| r.unary(&op, x))
    }

    pub(super) fn binary(&self, name: &str, other: &Self) -> PyResult<Self> {
        let op = name.to_owned();
        self.element_op(name, &[other], move |r, x, o| r.binary(&op, x, o[0]))
    }

    /// The same outside of programs, if both are of one type that is no boolean, and with `to_float` one of floats.
    fn binary_of_same(&self, name: &str, other: &Self, to_float: bool) -> PyResult<Option<Self>> {
        let (&Home::Lazy(a), &Home::Lazy(b)) = (&self.home, &other.home) else {
            return Ok(None);
        };
        let [ty, other_ty] = {
            let session = lock(&SESSION);
            [a, b].map(|slot| session.ty(slot))
        };
        match ty == other_ty && ty != ScalarType::U1 && (ty.is_float() || !to_float) {
            true => self.binary(name, other).map(Some),
            false => Ok(None),
        }
    }

    /// The same with a float beside a tensor of floats, if it is a constant: it is the first operand if `is_first`.
    fn binary_with_float(&self, name: &str, x: f64, is_first: bool) -> PyResult<Option<Self>> {
        let Home::Lazy(slot) = self.home else {
            return Ok(None);
        };
        let ty = lock(&SESSION).ty(slot);
        if !ty.is_float() {
            return Ok(None);
        }
        let number = one_number(Scalar::float(ty, x), None)?;
        let made = match is_first {
            true => number.binary(name, self),
            false => self.binary(name, &number),
        };
        made.map(Some)
    }

    /// `a` where this is true, else `b`.
    pub(super) fn select(&self, a: &Self, b: &Self) -> PyResult<Self> {
        self.element_op("where", &[a, b], move |r, x, o| r.select(x, o[0], o[1]))
    }

    fn cast(&self, dtype: &str) -> PyResult<Self> {
        let ty = scalar_type(dtype)?;
        self.element_op("astype", &[], move |r, x, _| Ok(r.cast(x, ty)))
    }

    fn bitcast(&self, dtype: &str) -> PyResult<Self> {
        let ty = scalar_type(dtype)?;
        self.element_op("bitcast", &[], move |r, x, _| r.bitcast(x, ty))
    }

    #[pyo3(signature = (name, axes, keepdims))]
    fn reduce(&self, name: &str, axes: Option<Vec<i64>>, keepdims: bool) -> PyResult<Self> {
        let op = name.to_owned();
        self.point_op(name, &[], move |r, x, _| {
            let axes = axes.as_deref();
            match &*op {
                "mean" => r.mean(x, axes, keepdims),
                "count_nonzero" => r.count_nonzero(x, axes, keepdims),
                _ => r.reduce(&op, x, axes, keepdims),
            }
        })
    }

    #[pyo3(signature = (axes, correction, root, keepdims))]
    fn variance(
        &self,
        axes: Option<Vec<i64>>,
        correction: f64,
        root: bool,
        keepdims: bool,
    ) -> PyResult<Self> {
        self.op(&[], move |r, x, _| {
            r.variance(x, axes.as_deref(), correction, root, keepdims)
        })
    }

    #[pyo3(signature = (order, axes, keepdims))]
    fn norm(&self, order: f64, axes: Option<Vec<i64>>, keepdims: bool) -> PyResult<Self> {
        self.point_op("norm", &[], move |r, x, _| {
            r.norm(x, order, axes.as_deref(), keepdims)
        })
    }

    #[pyo3(signature = (name, axis, keepdims))]
    fn arg_reduce(&self, name: &str, axis: Option<i64>, keepdims: bool) -> PyResult<Self> {
        let op = name.to_owned();
        self.op(&[], move |r, x, _| r.arg_reduce(&op, x, axis, keepdims))
    }

    fn scan(&self, name: &str, axis: i64, exclusive: bool) -> PyResult<Self> {
        let accum = accum(name)?.ok_or_else(|| PyValueError::new_err("a scan accumulates"))?;
        self.op(&[], move |r, x, _| r.scan(accum, x, axis, exclusive))
    }

    #[pyo3(signature = (axis, descending, n = None))]
    fn sort(&self, axis: i64, descending: bool, n: Option<u64>) -> PyResult<Vec<Self>> {
        self.ops(&[], move |r, x, _| {
            r.sort(x, axis, descending, n).map(|both| both.to_vec())
        })
    }

    /// Where each of other numbers belongs among these sorted ones.
    fn search_sorted(&self, numbers: &Self, right: bool) -> PyResult<Self> {
        self.made_of(&[numbers], move |r, x, o| r.search_sorted(x, o[0], right))
    }

    /// How many numbers are not zero, and their indices, axis by axis.
    pub(super) fn nonzero(&self) -> PyResult<Vec<Self>> {
        self.ops(&[], move |r, x, _| {
            let (count, mut indices) = r.nonzero(x)?;
            indices.insert(0, count);
            Ok(indices)
        })
    }

    fn permute(&self, order: Vec<i64>) -> PyResult<Self> {
        self.point_op("permute_dims", &[], move |r, x, _| r.permute(x, &order))
    }

    fn reshape(&self, shape: Vec<Extent>) -> PyResult<Self> {
        self.point_op("reshape", &[], move |r, x, _| {
            let to = dims(r, &shape);
            r.reshape(x, &to)
        })
    }

    #[pyo3(signature = (shape, is_stored = false))]
    fn broadcast_to(&self, shape: Vec<Extent>, is_stored: bool) -> PyResult<Self> {
        self.point_op("broadcast_to", &[], move |r, x, _| {
            let to = dims(r, &shape);
            called(r, is_stored.then_some(STORED), |r| r.broadcast_to(x, &to))
        })
    }

    pub(super) fn unsqueeze(&self, axes: Vec<i64>) -> PyResult<Self> {
        self.point_op("expand_dims", &[], move |r, x, _| r.unsqueeze(x, &axes))
    }

    pub(super) fn squeeze(&self, axes: Vec<i64>) -> PyResult<Self> {
        self.point_op("squeeze", &[], move |r, x, _| r.squeeze(x, &axes))
    }

    fn flip(&self, axes: Vec<i64>) -> PyResult<Self> {
        self.point_op("flip", &[], move |r, x, _| r.flip(x, &axes))
    }

    fn roll(&self, shifts: Vec<i64>, axes: Vec<i64>) -> PyResult<Self> {
        self.op(&[], move |r, x, _| r.roll(x, &shifts, &axes))
    }

    fn tile(&self, counts: Vec<i64>) -> PyResult<Self> {
        self.op(&[], move |r, x, _| r.tile(x, &counts))
    }

    fn repeat(&self, n: i64, axis: i64) -> PyResult<Self> {
        self.op(&[], move |r, x, _| r.repeat(x, n, axis))
    }

    fn triangle(&self, k: i64, lower: bool) -> PyResult<Self> {
        self.op(&[], move |r, x, _| r.triangle(x, k, lower))
    }

    fn diagonal(&self, offset: i64, axes: [i64; 2]) -> PyResult<Self> {
        self.op(&[], move |r, x, _| r.diagonal(x, offset, axes))
    }

    /// The elements that a key selects; nothing if it contains a single boolean.
    fn get(&self, key: &Bound<'_, PyAny>, mode: &str, is_c: bool) -> PyResult<Option<Self>> {
        self.item_of(key, mode, is_c)
    }

    /// The tensor with values in place of the elements that a key names, or accumulated into them, outside of programs.
    #[pyo3(signature = (key, values, mode, how = "set"))]
    fn with_item(
        &self,
        key: &Bound<'_, PyAny>,
        values: &Self,
        mode: &str,
        how: &str,
    ) -> PyResult<Self> {
        self.with_item_of(key, values, mode, accum(how)?)
    }

    /// Another handle of the same tensor.
    pub(super) fn again(&self) -> Self {
        match &self.home {
            Home::Lazy(slot) => {
                let mut session = lock(&SESSION);
                let buffer = session.buffer(*slot);
                Self {
                    home: Home::Lazy(session.hold(buffer)),
                }
            }
            Home::Program(trace, value) => Self {
                home: Home::Program(trace.clone(), *value),
            },
        }
    }

    #[pyo3(signature = (first, index, mode, from_end, name = "x[key]"))]
    fn gather(
        &self,
        first: usize,
        index: Vec<Bound<'_, Self>>,
        mode: &str,
        from_end: bool,
        name: &str,
    ) -> PyResult<Self> {
        let mode = outside(mode)?;
        let name = match name {
            "take" => "take",
            "gather" => "gather",
            _ => "x[key]",
        };
        let n = index.len();
        self.masked_op(&handles(&index), move |r, x, o| {
            let (index, mask) = o.split_at(n);
            r.expect_everywhere(&[x])?;
            r.cells_of(name, index)?;
            let mask = mask.first().copied();
            called(r, Some(name), |r| {
                r.gather(x, first, index, mode, from_end, mask)
            })
        })
    }

    /// The elements at computed indices along one axis, at the points of the current mask.
    fn take_along_axis(&self, index: &Self, axis: i64, mode: &str) -> PyResult<Self> {
        let mode = outside(mode)?;
        self.masked_op(&[index], move |r, x, o| {
            r.expect_everywhere(&[x, o[0]])?;
            r.take_along_axis(x, o[0], axis, mode, o.get(1).copied())
        })
    }

    #[pyo3(signature = (index, values, how, mode, is_stored = false))]
    fn scatter(
        &self,
        py: Python<'_>,
        index: Vec<Bound<'_, Self>>,
        values: &Self,
        how: &str,
        mode: &str,
        is_stored: bool,
    ) -> PyResult<Self> {
        let (how, mode) = (accum(how)?, outside(mode)?);
        self.run_if_full(py)?;
        let mut others = handles(&index);
        others.push(values);
        let out = self.op(&others, move |r, x, o| {
            let (values, index) = o.split_last().expect("the values are last");
            called(r, is_stored.then_some(STORED), |r| {
                r.scatter(x, index, *values, how, mode)
            })
        })?;
        self.note_store(&out);
        Ok(out)
    }

    #[pyo3(signature = (widths, margin, value = None))]
    fn pad(
        &self,
        widths: Vec<(Extent, Extent)>,
        margin: &str,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let margin = match (margin, value) {
            ("constant", Some(value)) => {
                Margin::Constant(number(value, scalar_type(self.dtype())?)?)
            }
            ("edge", _) => Margin::Edge,
            ("wrap", _) => Margin::Wrap,
            ("reflect", _) => Margin::Reflect,
            ("symmetric", _) => Margin::Symmetric,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "the mode is constant, edge, wrap, reflect or symmetric, not {margin:?}"
                )));
            }
        };
        self.op(&[], move |r, x, _| {
            let widths = widths.iter().map(|&(before, behind)| {
                let both = dims(r, &[before, behind]);
                (both[0], both[1])
            });
            let widths: Vec<_> = widths.collect();
            r.pad(x, &widths, margin)
        })
    }

    /// This and others one after the other.
    fn concat(&self, others: Vec<Bound<'_, Self>>, axis: i64) -> PyResult<Self> {
        self.op(&handles(&others), move |r, x, o| {
            let mut parts = vec![x];
            parts.extend(o);
            r.concat(&parts, axis)
        })
    }

    /// Linear algebra of this and other matrices, by name: real and imaginary parts of all operands, and of each result.
    fn algebra(&self, name: &str, others: Vec<Bound<'_, Self>>) -> PyResult<Vec<Vec<Self>>> {
        let op = Algebra::from_name(name)
            .ok_or_else(|| PyValueError::new_err(format!("there is no `{name}` of matrices")))?;
        let made = self.ops(&handles(&others), move |r, x, o| {
            let all: Vec<_> = std::iter::once(x).chain(o.iter().copied()).collect();
            r.algebra(op, &all)
        })?;
        let mut made = made.into_iter();
        let results = op.gives(others.len() >= op.takes());
        Ok(results
            .map(|(_, n)| made.by_ref().take(n).collect())
            .collect())
    }

    /// A Fourier transform of the rows of this and perhaps an imaginary part, of `n` numbers each.
    fn transform(
        &self,
        name: &str,
        others: Vec<Bound<'_, Self>>,
        n: Extent,
    ) -> PyResult<Vec<Self>> {
        let op = Transform::from_name(name)
            .ok_or_else(|| PyValueError::new_err(format!("there is no transform `{name}`")))?;
        self.ops(&handles(&others), move |r, x, o| {
            let all: Vec<_> = std::iter::once(x).chain(o.iter().copied()).collect();
            let n = dims(r, std::slice::from_ref(&n))[0];
            r.transform(op, &all, n)
        })
    }

    fn matmul(&self, other: &Self) -> PyResult<Self> {
        self.point_op("matmul", &[other], move |r, x, o| r.matmul(x, o[0]))
    }

    /// The sum of products of this and others: the labels of each one's axes, and of the result's.
    fn einsum(
        &self,
        others: Vec<Bound<'_, Self>>,
        labels: Vec<Vec<u32>>,
        result: Vec<u32>,
    ) -> PyResult<Self> {
        if labels.len() != others.len() + 1 {
            return Err(PyValueError::new_err(format!(
                "the equation names {} operands, but {} are passed",
                labels.len(),
                others.len() + 1
            )));
        }
        self.op(&handles(&others), move |r, x, o| {
            let all = std::iter::once(x).chain(o.iter().copied());
            let operands: Vec<_> = all.zip(labels.iter().cloned()).collect();
            r.einsum(&operands, &result)
        })
    }

    /// Accumulates this tensor and others over named axes, as a text specifies.
    fn accum(
        &self,
        py: Python<'_>,
        spec: &str,
        others: Vec<Bound<'_, Self>>,
        call: CallArgs,
    ) -> PyResult<Self> {
        self.of_notation(py, spec, &others, call)
    }

    /// Whether elements differ by no more than `atol` and the part `rtol` of the other's.
    fn is_close(
        &self,
        other: &Self,
        rtol: NumberOr<'_>,
        atol: NumberOr<'_>,
        equal_nan: bool,
    ) -> PyResult<Self> {
        let [rtol, atol] = [rtol, atol].map(|n| n.like(self));
        let (rtol, atol) = (rtol?, atol?);
        self.element_op("isclose", &[other, &rtol, &atol], move |r, x, o| {
            r.is_close([x, o[0]], o[1], o[2], equal_nan)
        })
    }

    /// Explains how the statements of this and other tensors are compiled.
    fn explain(&self, py: Python<'_>, others: Vec<Bound<'_, Self>>) -> PyResult<String> {
        let mut slots = Vec::new();
        for tensor in std::iter::once(self).chain(handles(&others)) {
            match tensor.home {
                Home::Lazy(slot) => slots.push(slot),
                Home::Program(..) => {
                    return Err(PyValueError::new_err(
                        "a tensor of a program is explained with it: `program.explain()`",
                    ));
                }
            }
        }
        let options = program::settings_or_begin(py)?.tensor_options();
        Ok(lock(&SESSION).explain(&slots, options))
    }

    /// Random bits from this seed.
    fn random_bits(&self, shape: Vec<Extent>) -> PyResult<Self> {
        self.op(&[], move |r, x, _| {
            let shape = dims(r, &shape);
            r.random_bits(x, &shape)
        })
    }

    fn uniform(&self, dtype: &str) -> PyResult<Self> {
        let ty = scalar_type(dtype)?;
        self.op(&[], move |r, x, _| r.uniform(x, ty))
    }

    /// One number everywhere.
    #[staticmethod]
    #[pyo3(signature = (shape, dtype, value, trace = None))]
    fn full(
        shape: Vec<Extent>,
        dtype: &str,
        value: &Bound<'_, PyAny>,
        trace: Option<&NativeTrace>,
    ) -> PyResult<Self> {
        let value = number(value, scalar_type(dtype)?)?;
        let has_axes = !shape.is_empty();
        let out = of_nothing(trace, move |r| {
            let shape = dims(r, &shape);
            Ok(r.full(&shape, value))
        })?;
        // One number is an operand of something, where it stands.
        if has_axes {
            out.noted();
        }
        Ok(out)
    }

    /// The index along an axis.
    #[staticmethod]
    #[pyo3(signature = (shape, axis, dtype, trace = None))]
    fn iota(
        shape: Vec<Extent>,
        axis: i64,
        dtype: &str,
        trace: Option<&NativeTrace>,
    ) -> PyResult<Self> {
        let ty = scalar_type(dtype)?;
        let out = of_nothing(trace, move |r| {
            let shape = dims(r, &shape);
            r.iota(&shape, axis, ty)
        })?;
        out.noted();
        Ok(out)
    }
}
