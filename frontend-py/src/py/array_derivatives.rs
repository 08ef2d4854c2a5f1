//! The arrays of an array's derivatives: what `needs_grad=True` made, and the `grad` of a PyTorch tensor.

use std::ops::Range;
use std::sync::Arc;

use aerogel_ir::Derivative;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::argument::{KeyPart, Packed};
use super::array_argument::Wanted;
use super::array_argument::split_field;
use super::error;
use super::foreign::array::addresses;
use super::foreign::torch;
use super::ndarray::NativeNdarray;
use super::signature::{ParamKind, Signature};
use crate::derived::Derived;

impl Signature {
    /// Adds the arrays of an array's derivatives, if it has them.
    pub(crate) fn add_derivatives(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        derived: Derived,
        packed: &mut Packed,
        part: &mut KeyPart,
    ) -> PyResult<()> {
        let (
            Packed::Array {
                name,
                shape,
                derivatives,
                ..
            },
            KeyPart::Array {
                elem,
                element,
                derivative: has_derivative,
                ..
            },
        ) = (packed, part)
        else {
            return Ok(());
        };
        if !elem.is_float() {
            return Ok(());
        }
        let extents = element.extents();
        let mut all = vec![(name.clone(), value.clone())];
        for &kind in derived.steps() {
            for k in 0..all.len() {
                let (of, value) = &all[k];
                let name: Arc<str> = format!("{of}.{}", kind.name()).into();
                let Some(found) = derivative_of(&name, value, kind)? else {
                    if derivatives.is_empty() {
                        return Ok(());
                    }
                    let what = "it has a gradient and no tangents: second derivatives need an array with needs_grad=True \
                                and needs_dual=True";
                    return Err(self.invalid(of, what.to_owned()));
                };
                let wanted = Wanted {
                    elem: Some(*elem),
                    ndim: Some(shape.len()),
                    element: Some(&extents),
                    element_dim: None,
                };
                let (other, _) = self.array(py, &name, &found, wanted)?;
                if let Packed::Array { shape: other, .. } = &other
                    && other != shape
                {
                    let what = format!("its shape is {other:?}, not that of the array, {shape:?}");
                    return Err(self.invalid(&name, what));
                }
                derivatives.push(other);
                all.push((name, found));
            }
        }
        *has_derivative = true;
        Ok(())
    }

    /// The exception for arguments that could not be read because a transformation of another package traces them.
    pub(crate) fn traced(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Option<PyErr> {
        let values = self.bind(py, args, kwargs).ok()?;
        let mut params = self.params.iter().zip(&values);
        params.find_map(|(param, value)| {
            let (what, remedy) = if is_transformed(value) {
                ("inside a transformation of torch.func", "torch_function")
            } else if value.hasattr("aval").ok()? && value.hasattr("_trace").ok()? {
                ("traced by JAX", "jax_function")
            } else {
                return None;
            };
            let text = format!(
                "argument `{}` of kernel `{1}` is {what}, and has no values: call the function that `ti.ad.{remedy}({1})` returns",
                param.name, self.name
            );
            Some(error::exception(py, "AerogelRuntimeTypeError", text))
        })
    }

    /// Checks that no gradient is set where it would be ignored: PyTorch tensors that do not require one are constant.
    pub(crate) fn expect_required(
        &self,
        primal_writes: &[bool],
        values: &[Bound<'_, PyAny>],
    ) -> PyResult<()> {
        let mut at = 0;
        for (param, value) in self.params.iter().zip(values) {
            match &param.kind {
                // It is passed as a field.
                ParamKind::Array { .. } if split_field(value)?.is_some() => {}
                ParamKind::Array { .. } => {
                    let is_written = primal_writes.get(at) == Some(&true);
                    if is_written && is_tensor(value)? && !requires_grad(value)? {
                        let grad = value.getattr_opt("grad")?;
                        if grad.is_some_and(|grad| !grad.is_none()) {
                            return Err(PyValueError::new_err(format!(
                                "the tensor for argument `{0}` of kernel `{1}` has a `grad`, which is not used since it does \
                                 not require one: call `{0}.requires_grad_()`, or set `{0}.grad = None`",
                                param.name, self.name
                            )));
                        }
                    }
                    at += 1;
                }
                ParamKind::Texture { .. } => at += 1,
                // Members are arrays as well, in an order of their own.
                ParamKind::Pack(..) => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    /// That no array shares memory with one that the kernel writes to, and no gradient with anything but the gradient of the
    /// same array: derivatives take them to be apart.
    pub(crate) fn expect_apart<'p>(
        &self,
        py: Python<'_>,
        primal_writes: &[bool],
        packed: impl Iterator<Item = &'p Packed>,
    ) -> PyResult<()> {
        let mut seen: Vec<Seen<'_>> = Vec::new();
        let mut at = 0;
        for packed in packed {
            let Packed::Array { derivatives, .. } = packed else {
                continue;
            };
            let written = primal_writes.get(at) != Some(&false);
            at += 1;
            let own = Seen::new(packed, None, written)?;
            let of = own.range.clone();
            let own = std::iter::once(Ok(own));
            let others = derivatives
                .iter()
                .map(|derivative| Seen::new(derivative, Some(of.clone()), true));
            for this in own.chain(others) {
                let this = this?;
                if let Some(other) = seen.iter().find(|other| this.must_not_meet(other)) {
                    return Err(error::runtime(py, this.mistake(other, &self.name)));
                }
                seen.push(this);
            }
        }
        Ok(())
    }
}

/// An array of a launch, and where the user's lies.
struct Seen<'p> {
    name: &'p str,
    range: Range<usize>,
    /// Whether the kernel gets a copy: `shared_memory` proves copies disjoint from all but the same array.
    is_copy: bool,
    /// Of a derivative, where the array lies whose derivative it is.
    of: Option<Range<usize>>,
    written: bool,
}

impl<'p> Seen<'p> {
    fn new(packed: &'p Packed, of: Option<Range<usize>>, written: bool) -> PyResult<Self> {
        let Packed::Array {
            name,
            array,
            copied,
            ..
        } = packed
        else {
            unreachable!("derivatives of arrays are arrays")
        };
        let range = match copied {
            Some(copied) => copied.array.footprint().range(),
            None => addresses(array.buffer()?),
        };
        Ok(Self {
            name,
            range,
            is_copy: copied.is_some(),
            of,
            written,
        })
    }

    fn must_not_meet(&self, other: &Self) -> bool {
        let (x, y) = (&self.range, &other.range);
        // What two arguments add to the gradient of one array is a sum.
        let is_same = x == y && self.of.is_some() && self.of == other.of;
        let meets = match self.is_copy || other.is_copy {
            true => x == y && !x.is_empty(),
            false => x.start.max(y.start) < x.end.min(y.end),
        };
        (self.written || other.written) && !is_same && meets
    }

    fn mistake(&self, other: &Self, kernel: &str) -> String {
        let (x, y) = (other.name, self.name);
        match self.of.is_some() || other.of.is_some() {
            true => format!(
                "`{x}` and `{y}` of kernel `{kernel}` share memory: each array needs a gradient of its own"
            ),
            false => format!(
                "the arrays for arguments `{x}` and `{y}` of kernel `{kernel}` share memory, and the kernel writes to one: \
                 its derivative needs arrays that do not overlap"
            ),
        }
    }
}

/// The array of an array's derivatives: what `needs_grad=True` made, or the `grad` of a PyTorch tensor that requires
/// one, which is made if there is none.
fn derivative_of<'py>(
    name: &str,
    value: &Bound<'py, PyAny>,
    kind: Derivative,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    if value.cast::<NativeNdarray>().is_ok() {
        let found = value.getattr_opt(kind.name())?;
        return Ok(found.filter(|found| !found.is_none()));
    }
    if kind != Derivative::Grad || !is_tensor(value)? || !requires_grad(value)? {
        return Ok(None);
    }
    let gradients = py.import("aerogel.ad._gradients")?;
    let grad = gradients.call_method1("gradient_of", (value,))?;
    let layout = grad.getattr_opt("layout")?;
    if layout.is_some_and(|layout| layout.str().is_ok_and(|text| text != "torch.strided")) {
        return Err(PyTypeError::new_err(format!(
            "the gradient `{name}` is sparse, and kernels add to dense ones: set `{name} = {name}.to_dense()`, or None"
        )));
    }
    Ok(Some(grad))
}

/// Whether a value is a tensor of PyTorch.
fn is_tensor(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.hasattr(pyo3::intern!(value.py(), "detach"))
}

/// Whether a value is a tensor of PyTorch inside of `torch.func.grad`, `vmap` and others.
fn is_transformed(value: &Bound<'_, PyAny>) -> bool {
    let asked = || {
        if !torch::is_tensor(value)? {
            return Ok::<_, PyErr>(false);
        }
        let torch = value.py().import("torch")?.getattr("_C")?;
        let functorch = torch.getattr("_functorch")?;
        functorch
            .call_method1("is_functorch_wrapped_tensor", (value,))?
            .is_truthy()
    };
    asked().unwrap_or(false)
}

fn requires_grad(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let found = value.getattr_opt(pyo3::intern!(value.py(), "requires_grad"))?;
    found.map_or(Ok(false), |found| found.is_truthy())
}
