//! Arrays as arguments: `ti.ndarray`s, and those of other packages.

use aerogel_base::ScalarType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::argument::{ArrayArg, KeyPart, Packed};
use super::error;
use super::exchange::DeviceArray;
use super::kernel::NativeKernel;
use super::ndarray::NativeNdarray;
use super::numpy_arrays::ForeignArray;
use super::numpy_copies::Copied;
use super::tensor;
use crate::derived::Derived;
use crate::host::TensorShape;

impl NativeKernel {
    /// The exception for an array of a type that kernels do not have.
    fn no_such_dtype(&self, name: &str, array: &Bound<'_, PyAny>) -> PyErr {
        let dtype = array.getattr("dtype");
        let shown = dtype.as_ref().ok().and_then(|dtype| dtype.str().ok());
        let shown = shown.map_or_else(|| "?".to_owned(), |text| text.to_string());
        let members = dtype
            .and_then(|dtype| dtype.getattr("names"))
            .and_then(|names| names.extract::<Vec<String>>());
        let remedy = match members.as_deref() {
            Ok([first, ..]) => format!("; pass its members, such as array['{first}']"),
            _ => String::new(),
        };
        PyTypeError::new_err(format!(
            "the array for argument `{name}` of kernel `{}` has the dtype {shown}, which kernels do not have{remedy}",
            self.name
        ))
    }

    pub(crate) fn check_grad(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let of_own = value.cast::<NativeNdarray>().is_ok();
        if of_own && value.getattr("grad")?.is_none() {
            let what =
                "an array with a gradient is required; make it with needs_grad=True".to_owned();
            return Err(self.invalid(name, what));
        }
        Ok(())
    }

    /// An array that is no argument, as it is passed.
    pub(crate) fn captured(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        derivative: Option<Derived>,
    ) -> PyResult<Packed> {
        let anything = Wanted {
            elem: None,
            ndim: None,
            element: None,
            element_dim: None,
        };
        let (mut packed, mut part) = self.array(py, "ndarray", value, anything)?;
        if let Some(derived) = derivative {
            self.add_derivatives(py, value, derived, &mut packed, &mut part)?;
        }
        Ok(packed)
    }

    pub(crate) fn array(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
        wanted: Wanted<'_>,
    ) -> PyResult<(Packed, KeyPart)> {
        let Wanted {
            elem,
            ndim,
            element,
            element_dim,
        } = wanted;
        let invalid = |what: String| self.invalid(name, what);
        let mut copied = None;
        let tensor = tensor::native_of(value)?;
        let (array, ty, whole, own_element, mut writeable) = if let Ok(own) =
            value.cast::<NativeNdarray>()
        {
            let own = own.get();
            (
                ArrayArg::Own(own.buffer.clone()),
                own.ty,
                own.shape.clone(),
                Some(own.element.extents()),
                own.writeable,
            )
        } else if let Some(tensor) = &tensor {
            let operand = tensor.get().computed(py)?;
            let buffer = ArrayArg::Own(operand.buffer);
            (buffer, operand.ty, operand.shape, None, true)
        } else if let Some(there) = DeviceArray::of(value)? {
            (
                ArrayArg::Own(there.buffer),
                there.ty,
                there.shape,
                None,
                there.writeable,
            )
        } else {
            let mut value = as_numpy(value)?;
            if let Ok(array) = ForeignArray::new(&value)
                && !array.plain
                && array.ty.is_some()
            {
                let (copy, original) = Copied::new(py, array)?;
                copied = Some(Box::new(original));
                value = copy;
            }
            let value = &value;
            let array = ForeignArray::new(value).map_err(|_| {
                let provided = value.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
                let remedy = match value.hasattr("_aerogel_field") {
                    Ok(true) => "; annotate the parameter `ti.template()` to pass a field",
                    _ => "",
                };
                error::exception(
                    py,
                    "AerogelRuntimeTypeError",
                    format!(
                        "argument `{name}` of kernel `{}` takes a NumPy array or a ti.ndarray, not a {provided}{remedy}",
                        self.name
                    ),
                )
            })?;
            let ty = array.ty.ok_or_else(|| self.no_such_dtype(name, value))?;
            let (shape, writeable) = (array.shape.clone(), array.writeable);
            (ArrayArg::Foreign(array), ty, shape, None, writeable)
        };
        if let Some(wanted) = elem.filter(|&e| e != ty) {
            let what = format!(
                "an array of {wanted} is required, this one has {ty}: pass `{name}.astype(\"{}\")`, or annotate the parameter \
                 `ti.types.ndarray(dtype=ti.{ty})`",
                numpy_name(wanted)
            );
            // As Taichi has it: one error for the arrays of others, another for its own.
            return Err(match array {
                ArrayArg::Foreign(_) => invalid(what),
                ArrayArg::Own(..) => PyTypeError::new_err(format!(
                    "invalid value for argument `{name}` of kernel `{}`: {what}",
                    self.name
                )),
            });
        }
        // A NumPy array's last axes are those of an element, where the annotation says that elements have any.
        let (shape, element) = match own_element {
            Some(own) => {
                if let Some(element) = element.filter(|&e| e != own) {
                    return Err(invalid(format!(
                        "elements of shape {element:?} are required, these have {own:?}"
                    )));
                }
                if let Some(axes) = element_dim.filter(|&axes| axes != own.len()) {
                    return Err(invalid(format!(
                        "elements with {axes} axes are required, these have {}",
                        own.len()
                    )));
                }
                (whole, own)
            }
            None => {
                let n_axes = element.map_or(element_dim.unwrap_or(0), <[usize]>::len);
                let (outer, inner) = whole.split_at(whole.len().saturating_sub(n_axes));
                if inner.len() != n_axes || element.is_some_and(|wanted| wanted != inner) {
                    let what = match element {
                        Some(wanted) => {
                            format!("the last axes must be those of an element, {wanted:?}")
                        }
                        None => format!("the last {n_axes} axes must be those of an element"),
                    };
                    return Err(invalid(format!("{what}; the shape is {whole:?}")));
                }
                (outer.to_vec(), inner.to_vec())
            }
        };
        if ndim.is_some_and(|n| n != shape.len()) {
            return Err(invalid(format!(
                "{} axes are required, the array has {}",
                ndim.unwrap_or(0),
                shape.len()
            )));
        }
        if let Some(extent) = shape.iter().find(|&&n| i32::try_from(n).is_err()) {
            return Err(invalid(format!(
                "an axis has {extent} elements, more than an `i32` counts; give the array more axes"
            )));
        }
        if let Some(copied) = &copied {
            writeable = copied.writeable();
        }
        let element = TensorShape::from_extents(&element)
            .ok_or_else(|| invalid("an element has two axes at most".into()))?;
        let part = KeyPart::Array {
            elem: ty,
            ndim: shape.len(),
            element,
            derivative: false,
        };
        let cell_bytes = ty.bytes() as usize * element.len() as usize;
        let packed = Packed::Array {
            name: name.to_owned(),
            array: Box::new(array),
            shape,
            cell_bytes,
            writeable,
            tensor: tensor.map(|_| value.clone().unbind()),
            copied,
            derivatives: Vec::new(),
        };
        Ok((packed, part))
    }
}

/// What an annotation asks of an array.
pub(crate) struct Wanted<'a> {
    pub(crate) elem: Option<ScalarType>,
    pub(crate) ndim: Option<usize>,
    pub(crate) element: Option<&'a [usize]>,
    pub(crate) element_dim: Option<usize>,
}

/// A PyTorch tensor on the CPU, or an array of another package that speaks DLPack, as a NumPy array over the
/// same memory; anything else as it is.
fn as_numpy<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if value.hasattr(pyo3::intern!(py, "__array_struct__"))? {
        return Ok(value.clone());
    }
    if value.hasattr(pyo3::intern!(py, "detach"))? {
        return tensor_as_numpy(&value.call_method0("detach")?);
    }
    // What a field gives by DLPack is a copy.
    if value.hasattr(pyo3::intern!(py, "_aerogel_field"))? {
        return Ok(value.clone());
    }
    if value.hasattr(pyo3::intern!(py, "__dlpack__"))? {
        return py.import("numpy")?.call_method1("from_dlpack", (value,));
    }
    Ok(value.clone())
}

/// NumPy's view of a PyTorch tensor on the CPU. PyTorch gives none of a type that NumPy has not by itself, but for its bytes.
fn tensor_as_numpy<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let is_bfloat =
        |dtype: Bound<'_, PyAny>| dtype.str().is_ok_and(|name| name == "torch.bfloat16");
    if !tensor.getattr_opt("dtype")?.is_some_and(is_bfloat) {
        return tensor.call_method0("numpy");
    }
    let words = py.import("torch")?.getattr("int16")?;
    let words = tensor
        .call_method1("view", (words,))?
        .call_method0("numpy")?;
    let bfloat = py.import("ml_dtypes")?.getattr("bfloat16")?;
    words.call_method1("view", (bfloat,))
}

/// What NumPy calls a scalar type.
fn numpy_name(ty: ScalarType) -> String {
    let kind = match ty {
        ScalarType::U1 => return "bool".to_owned(),
        ScalarType::BF16 => return "bfloat16".to_owned(),
        ty if ty.is_float() => "float",
        ty if ty.is_signed() => "int",
        _ => "uint",
    };
    format!("{kind}{}", ty.bits())
}
