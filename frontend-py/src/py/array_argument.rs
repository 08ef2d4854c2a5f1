//! Arrays as arguments: `ti.ndarray`s, and those of other packages.

use std::sync::{Arc, LazyLock};

use aerogel_base::ScalarType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::argument::{ArrayArg, KeyPart, Packed, field_key};
use super::error;
use super::field::NativeField;
use super::foreign::copies::Copied;
use super::foreign::{self, Foreign, Giver};
use super::ndarray::NativeNdarray;
use super::signature::Signature;
use super::tensor;
use crate::derived::Derived;
use crate::host::TensorShape;

/// How messages call an array that is no argument.
static CAPTURED: LazyLock<Arc<str>> = LazyLock::new(|| "ndarray".into());

/// An array of the program's own, with as many elements along each axis as an `i32` counts.
fn packed_own(py: Python<'_>, name: &Arc<str>, own: &NativeNdarray) -> (Packed, KeyPart) {
    let part = KeyPart::Array {
        elem: own.ty,
        ndim: own.shape.len(),
        element: own.element,
        derivative: false,
    };
    let packed = Packed::Array {
        name: name.clone(),
        array: ArrayArg::Own(own.buffer.clone()),
        shape: SmallVec::from_slice(&own.shape),
        cell_bytes: own.ty.bytes() as usize * own.n_components(),
        read_only: own.read_only,
        giver: own.giver(py),
        tensor: None,
        copied: None,
        derivatives: Vec::new(),
    };
    (packed, part)
}

impl Signature {
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
            "the array for argument `{name}` of kernel `{}` has the dtype {shown}, which kernels do not support{remedy}",
            self.name
        ))
    }

    /// The exception for what is no array.
    fn no_array(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyErr {
        let provided = value.get_type().name();
        let provided = provided.map_or_else(|_| "?".into(), |n| n.to_string());
        let has = |name: &str| value.hasattr(name).unwrap_or(false);
        let remedy = match () {
            () if has("_aerogel_field") => {
                "; annotate the parameter `ti.template()` to pass a field"
            }
            () if has("__array__") => "; pass `numpy.asarray(x)`, which may be a copy",
            () => "",
        };
        error::exception(
            py,
            "AerogelRuntimeTypeError",
            format!(
                "argument `{name}` of kernel `{}` takes a NumPy array or a ti.ndarray, not a {provided}{remedy}",
                self.name
            ),
        )
    }

    pub(crate) fn check_grad(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let of_own = value.cast::<NativeNdarray>().is_ok() || split_field(value)?.is_some();
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
        let (mut packed, mut part) = self.array(py, &CAPTURED, value, Wanted::default())?;
        if let Some(derived) = derivative {
            self.add_derivatives(py, value, derived, &mut packed, &mut part)?;
        }
        Ok(packed)
    }

    /// Of an array that processes share, what the instance is specialised for: it is passed as a field is.
    ///
    /// # Errors
    /// It does not satisfy the annotation.
    pub(crate) fn split_array(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
        (wanted, clamp): (&Wanted<'_>, bool),
    ) -> PyResult<Option<KeyPart>> {
        let Some(field) = split_field(value)? else {
            return Ok(None);
        };
        let field = field.get();
        let (ty, element) = (field.elem(), field.tensor_shape());
        let ndim: usize = value.getattr("shape")?.len()?;
        if clamp {
            let what = "the array is split over ranks, which `boundary=\"clamp\"` does not support; limit the index by \
                        ti.max and ti.min";
            return Err(self.invalid(name, what.into()));
        }
        if !wanted.is_met(ty, ndim, element) {
            let what = format!(
                "the annotation requires another dtype, number of axes or element than this array has: {ty}, {ndim} \
                 axes, an element of shape {:?}",
                element.extents()
            );
            return Err(self.invalid(name, what));
        }
        field_key(py, field).map(Some)
    }

    pub(crate) fn array(
        &self,
        py: Python<'_>,
        name: &Arc<str>,
        value: &Bound<'_, PyAny>,
        wanted: Wanted<'_>,
    ) -> PyResult<(Packed, KeyPart)> {
        let Wanted {
            elem,
            ndim,
            element,
            element_dim,
        } = wanted;
        if let Ok(own) = value.cast::<NativeNdarray>()
            && wanted.is_met_by(own.get())
        {
            return Ok(packed_own(py, name, own.get()));
        }
        let invalid = |what: String| self.invalid(name, what);
        let mut copied = None;
        let tensor = tensor::native_of(value)?;
        let mut giver = None;
        let (array, ty, whole, own_element, read_only) =
            if let Ok(own) = value.cast::<NativeNdarray>() {
                let own = own.get();
                giver = own.giver(py);
                (
                    ArrayArg::Own(own.buffer.clone()),
                    own.ty,
                    SmallVec::<[usize; 4]>::from_slice(&own.shape),
                    Some(own.element.extents()),
                    own.read_only,
                )
            } else if let Some(tensor) = &tensor {
                tensor.get().expect_no_history("a kernel", "")?;
                let operand = tensor.get().computed(py)?;
                let buffer = ArrayArg::Own(operand.buffer);
                (buffer, operand.ty, operand.shape.into(), None, None)
            } else {
                let whom = || {
                    format!(
                        "invalid value for argument `{name}` of kernel `{}`: ",
                        self.name
                    )
                };
                match foreign::of(value).map_err(|refused| refused.of(py, &whom()))? {
                    None => return Err(self.no_array(py, name, value)),
                    Some(Foreign::Device(there)) => {
                        giver = Some(Giver::of_device(value, &there)?);
                        let buffer = ArrayArg::Own(there.buffer);
                        (buffer, there.ty, there.shape.into(), None, there.read_only)
                    }
                    Some(Foreign::Host(array)) => {
                        let ty = array.ty.ok_or_else(|| self.no_such_dtype(name, value))?;
                        let (shape, read_only) = (array.shape[..].into(), array.read_only);
                        giver = Giver::of_host(py, &array);
                        let array = match array.plain {
                            true => ArrayArg::Foreign(Box::new(array)),
                            false => {
                                let (copy, original) = Copied::new(array)?;
                                copied = Some(Box::new(original));
                                ArrayArg::Own(copy)
                            }
                        };
                        (array, ty, shape, None, read_only)
                    }
                }
            };
        // As Taichi has it: of elements with axes, the arrays of others need the shape and keep their type.
        let keeps_type =
            own_element.is_none() && element.is_some_and(|extents| !extents.is_empty());
        if let Some(wanted) = elem.filter(|&e| e != ty && !keeps_type) {
            let dtype = numpy_name(wanted);
            let converted = match foreign::is_torch_tensor(value)? {
                true => format!("{name}.to(torch.{dtype})"),
                false => format!("{name}.astype(\"{dtype}\")"),
            };
            let what = format!(
                "an array of {wanted} is required, this one has {ty}: pass `{converted}`, or annotate the parameter \
                 `ti.types.ndarray(dtype=ti.{ty})`"
            );
            // As Taichi has it: one error for the arrays of others, another for its own.
            return Err(match array {
                _ if copied.is_some() => invalid(what),
                ArrayArg::Foreign(_) => invalid(what),
                ArrayArg::Own(..) => PyTypeError::new_err(format!(
                    "invalid value for argument `{name}` of kernel `{}`: {what}",
                    self.name
                )),
            });
        }
        let (shape, element) = self.divided(name, whole, own_element, (element, element_dim))?;
        if ndim.is_some_and(|n| n != shape.len()) {
            return Err(invalid(format!(
                "{} axes are required, the array has {}",
                ndim.unwrap_or(0),
                shape.len()
            )));
        }
        if let Some(extent) = shape.iter().find(|&&n| i32::try_from(n).is_err()) {
            return Err(invalid(format!(
                "an axis has {extent} elements, more than an `i32` can index; reshape the array to more axes"
            )));
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
            name: name.clone(),
            array,
            shape,
            cell_bytes,
            read_only,
            giver,
            tensor: tensor.map(|_| value.clone().unbind()),
            copied,
            derivatives: Vec::new(),
        };
        Ok((packed, part))
    }

    /// The axes of an array and those of its elements. A NumPy array's last axes are those of an element, where the
    /// annotation states that elements have axes: their sizes, or their number.
    fn divided(
        &self,
        name: &str,
        whole: SmallVec<[usize; 4]>,
        own_element: Option<Vec<usize>>,
        (element, element_dim): (Option<&[usize]>, Option<usize>),
    ) -> PyResult<(SmallVec<[usize; 4]>, Vec<usize>)> {
        Ok(match own_element {
            Some(own) => {
                if let Some(element) = element.filter(|&e| e != own) {
                    return Err(self.invalid(
                        name,
                        format!("elements of shape {element:?} are required, these have {own:?}"),
                    ));
                }
                if let Some(axes) = element_dim.filter(|&axes| axes != own.len()) {
                    return Err(self.invalid(
                        name,
                        format!(
                            "elements with {axes} axes are required, these have {}",
                            own.len()
                        ),
                    ));
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
                    return Err(self.invalid(name, format!("{what}; the shape is {whole:?}")));
                }
                (outer.into(), inner.to_vec())
            }
        })
    }
}

/// The requirements of an annotation on an array.
#[derive(Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) elem: Option<ScalarType>,
    pub(crate) ndim: Option<usize>,
    pub(crate) element: Option<&'a [usize]>,
    pub(crate) element_dim: Option<usize>,
}

impl Wanted<'_> {
    /// Whether an array of the program satisfies the annotation; if not, messages state why.
    fn is_met_by(&self, own: &NativeNdarray) -> bool {
        self.is_met(own.ty, own.shape.len(), own.element)
            && own.shape.iter().all(|&n| i32::try_from(n).is_ok())
    }

    /// Whether an array of such elements satisfies it.
    fn is_met(&self, ty: ScalarType, ndim: usize, element: TensorShape) -> bool {
        self.elem.is_none_or(|elem| elem == ty)
            && self.ndim.is_none_or(|wanted| wanted == ndim)
            && self
                .element
                .is_none_or(|wanted| TensorShape::from_extents(wanted) == Some(element))
            && self
                .element_dim
                .is_none_or(|axes| axes == element.n_axes() as usize)
    }
}

/// The field that holds an array which processes share, if the value is one.
pub(crate) fn split_field<'a, 'py>(
    value: &'a Bound<'py, PyAny>,
) -> PyResult<Option<&'a Bound<'py, NativeField>>> {
    let Ok(field) = value.cast::<NativeField>() else {
        return Ok(None);
    };
    let is_array = value.hasattr(pyo3::intern!(value.py(), "_aerogel_split_array"))?;
    Ok(is_array.then_some(field))
}

/// NumPy's name of a scalar type.
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
