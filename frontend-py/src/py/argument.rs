//! Arguments of a call: checked, packed into 8-byte slots, and the key by which instances are specialised.

use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};
use aerogel_runtime::Buffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::array_argument::Wanted;
use super::buffer;
use super::error;
use super::field::NativeField;
use super::foreign::copies::Copied;
use super::foreign::layout::ReadOnly;
use super::foreign::{ForeignArray, Giver};
use super::program::Settings;
use super::signature::{self, Param, ParamKind, Signature, ValueSpec, ValueType};
use crate::derived::Derived;
use crate::host::TensorShape;

/// A part of the specialisation key of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeyPart {
    None,
    Bool(bool),
    Int(i128),
    /// An integer of more than 128 bits.
    Digits(String),
    Text(String),
    Float(u64),
    Tuple(Vec<KeyPart>),
    Field {
        tree: u64,
        place: u32,
        shape: TensorShape,
    },
    Array {
        elem: ScalarType,
        ndim: usize,
        element: TensorShape,
        /// Whether there is an array of its derivatives.
        derivative: bool,
    },
    /// The derivative that is computed instead of the kernel itself.
    Derivative(Derived),
    /// That this is so for arguments and results as well.
    Ends,
    /// Activity is read from snapshots.
    Past,
    /// It returns how often it met each kink.
    Kinks,
    /// By identity; the instance holds a reference.
    Object(usize),
}

impl KeyPart {
    /// Which derivative the instance is, if it is one.
    pub(crate) fn derivative(&self) -> Option<Derived> {
        match self {
            Self::Derivative(kind) => Some(*kind),
            _ => None,
        }
    }

    /// Whether the key names an object by identity.
    pub(crate) fn names(&self, object: &Bound<'_, PyAny>) -> bool {
        match self {
            Self::Object(address) => *address == object.as_ptr() as usize,
            Self::Tuple(parts) => parts.iter().any(|part| part.names(object)),
            _ => false,
        }
    }
}

/// The specialisation key of an instance: a part for each parameter that influences it.
pub(crate) type Key = SmallVec<[KeyPart; 2]>;

/// The arguments of a call, by position.
pub(crate) type Values<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;

/// One array argument.
pub(crate) enum ArrayArg {
    Foreign(Box<ForeignArray>),
    Own(Arc<Buffer>),
}

impl ArrayArg {
    pub(crate) fn buffer(&self) -> PyResult<&Buffer> {
        match self {
            Self::Foreign(array) => array.buffer(),
            Self::Own(buffer) => Ok(buffer),
        }
    }

    /// The same array, held once more.
    pub(crate) fn held(&self, py: Python<'_>) -> Self {
        match self {
            Self::Foreign(array) => Self::Foreign(Box::new(array.held(py))),
            Self::Own(buffer) => Self::Own(buffer.clone()),
        }
    }
}

/// The arguments of one call, in the order of the parameters.
pub(crate) enum Packed {
    Slots(SmallVec<[u64; 2]>),
    Array {
        /// The user's name for it.
        name: Arc<str>,
        array: ArrayArg,
        /// The shape of the index space.
        shape: SmallVec<[usize; 4]>,
        cell_bytes: usize,
        /// Why a kernel must not write to it.
        read_only: ReadOnly,
        /// The object that owns the memory: queried before a kernel writes to it, and notified afterwards.
        giver: Option<Giver>,
        /// The `ti.tensor` whose numbers they are: what is written becomes those of another one.
        tensor: Option<Py<PyAny>>,
        /// The user's array, if its elements lie in another way and `array` is a copy of it.
        copied: Option<Box<Copied>>,
        /// The arrays of its derivatives, if those are passed too.
        derivatives: Vec<Packed>,
    },
}

impl Packed {
    /// Of an array, the `ti.tensor` that it is, if it is one.
    pub(crate) fn tensor(&self) -> Option<Option<&Py<PyAny>>> {
        match self {
            Self::Slots(_) => None,
            Self::Array { tensor, .. } => Some(tensor.as_ref()),
        }
    }

    /// Of an array, its name.
    pub(crate) fn array_name(&self) -> Option<&str> {
        match self {
            Self::Slots(_) => None,
            Self::Array { name, .. } => Some(name),
        }
    }

    /// The arrays of an array's derivatives.
    pub(crate) fn derivatives(&self) -> &[Packed] {
        match self {
            Self::Slots(_) => &[],
            Self::Array { derivatives, .. } => derivatives,
        }
    }
}

impl Signature {
    /// The arguments by position.
    pub(crate) fn bind<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Values<'py>> {
        if args.len() == self.params.len() && kwargs.is_none_or(|kwargs| kwargs.is_empty()) {
            return Ok(args.iter().collect());
        }
        let wrong = |what: String| error::exception(py, "AerogelSyntaxError", what);
        let n = self.params.len();
        if args.len() > n {
            return Err(wrong(format!(
                "too many arguments: kernel `{}` takes {n}, got {}",
                self.text(),
                args.len()
            )));
        }
        let mut values: Vec<Option<Bound<'py, PyAny>>> = args.iter().map(Some).collect();
        values.resize_with(n, || None);
        for (name, value) in kwargs.into_iter().flatten() {
            let name: String = name.extract()?;
            let Some(at) = self.params.iter().position(|p| *p.name == *name) else {
                return Err(wrong(format!(
                    "unexpected argument `{name}`: kernel `{}` has no such parameter",
                    self.text()
                )));
            };
            if values[at].replace(value).is_some() {
                return Err(wrong(format!(
                    "the argument `{name}` of kernel `{}` is given twice",
                    self.name
                )));
            }
        }
        let n_needed = n - self.defaults.len();
        values
            .into_iter()
            .zip(&self.params)
            .enumerate()
            .map(|(at, (value, param))| {
                let default = at.checked_sub(n_needed).map(|k| &self.defaults[k]);
                let default = || default.map(|value| value.bind(py).clone());
                value.or_else(default).ok_or_else(|| {
                    wrong(format!(
                        "missing argument: the parameter `{}` of kernel `{}` has no value",
                        param.name,
                        self.text()
                    ))
                })
            })
            .collect()
    }

    /// The arguments' values, and what the instance is specialised for.
    pub(crate) fn pack(
        &self,
        py: Python<'_>,
        settings: &Settings,
        values: &[Bound<'_, PyAny>],
        derivative: Option<Derived>,
    ) -> PyResult<(Vec<Packed>, Key)> {
        let mut packed = Vec::with_capacity(values.len());
        let mut key = Key::new();
        let by = By {
            settings,
            derivative,
        };
        for (at, (param, value)) in self.params.iter().zip(values).enumerate() {
            self.pack_one(py, by, (at, param), value, &mut packed, &mut key)?;
        }
        key.extend(derivative.map(KeyPart::Derivative));
        Ok((packed, key))
    }

    fn pack_one(
        &self,
        py: Python<'_>,
        by: By<'_>,
        (at, param): (usize, &Param),
        value: &Bound<'_, PyAny>,
        packed: &mut Vec<Packed>,
        key: &mut Key,
    ) -> PyResult<()> {
        let settings = by.settings;
        match &param.kind {
            ParamKind::Value(ty) => {
                let mut slots = SmallVec::new();
                self.value_slots(py, settings, at, ty, value, &mut slots)?;
                packed.push(Packed::Slots(slots));
            }
            ParamKind::Template => key.push(self.template_key(py, &param.name, value)?),
            ParamKind::Receiver => {
                self.check_receiver(py, value)?;
                key.push(KeyPart::Object(value.as_ptr() as usize));
            }
            ParamKind::Array {
                elem,
                ndim,
                element,
                element_dim,
                needs_grad,
                clamp,
            } => {
                let wanted = Wanted {
                    elem: elem.map(|e| e.resolve(settings)),
                    ndim: *ndim,
                    element: element.as_deref(),
                    element_dim: *element_dim,
                };
                if *needs_grad == Some(true) {
                    self.check_grad(&param.name, value)?;
                }
                if let Some(part) = self.split_array(py, &param.name, value, (&wanted, *clamp))? {
                    key.push(part);
                    return Ok(());
                }
                let (mut array, mut part) = self.array(py, &param.name, value, wanted)?;
                if let Some(derived) = by.derivative.filter(|_| *needs_grad != Some(false)) {
                    self.add_derivatives(py, value, derived, &mut array, &mut part)?;
                }
                key.push(part);
                packed.push(array);
            }
            ParamKind::Texture { ndim, format, .. } => {
                let texels = self.texels(py, &param.name, value, *ndim, *format)?;
                key.extend(texels.key);
                packed.push(texels.packed);
            }
            ParamKind::Pack(members, _) => {
                let dict = value.cast::<PyDict>().ok();
                if let Some(dict) = dict {
                    self.check_keys(py, (at, param), members, dict)?;
                }
                for member in members {
                    let Some(found) = signature::member(value, &member.name)? else {
                        let what = format!(
                            "argument {at} (`{}`) of kernel `{}` is a {} without the member `{}`",
                            param.name,
                            self.name,
                            value.get_type().name()?,
                            member.name
                        );
                        return Err(error::exception(py, "AerogelRuntimeTypeError", what));
                    };
                    self.pack_one(py, by, (at, member), &found, packed, key)?;
                }
            }
        }
        Ok(())
    }

    /// Checks that a dictionary passed for a pack has no key that the pack lacks.
    fn check_keys(
        &self,
        py: Python<'_>,
        (at, param): (usize, &Param),
        members: &[Param],
        dict: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        for key in dict.keys() {
            let known = key
                .extract::<String>()
                .is_ok_and(|key| members.iter().any(|member| *member.name == *key));
            if known {
                continue;
            }
            let names: Vec<String> = members.iter().map(|m| format!("`{}`", m.name)).collect();
            let what = format!(
                "argument {at} (`{}`) of kernel `{}` has no member {}; its members are {}",
                param.name,
                self.name,
                key.repr()?,
                names.join(", ")
            );
            return Err(error::exception(py, "AerogelRuntimeTypeError", what));
        }
        Ok(())
    }

    fn check_receiver(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if value.hasattr(pyo3::intern!(py, "_aerogel_data_oriented"))? {
            return Ok(());
        }
        Err(error::exception(
            py,
            "AerogelSyntaxError",
            format!(
                "kernel `{}` is a method: decorate class {} with @ti.data_oriented",
                self.name,
                value.get_type().name()?
            ),
        ))
    }

    /// The slots of a scalar, vector, matrix or struct.
    fn value_slots(
        &self,
        py: Python<'_>,
        settings: &Settings,
        at: usize,
        ty: &ValueSpec,
        value: &Bound<'_, PyAny>,
        slots: &mut SmallVec<[u64; 2]>,
    ) -> PyResult<()> {
        let spec = match ty {
            ValueSpec::Tensor(ty) => {
                return self.tensor_slots(py, settings, at, *ty, value, slots);
            }
            ValueSpec::Struct(spec) => spec,
        };
        let dict = value.cast::<PyDict>().ok();
        for (name, ty) in &spec.members {
            let member = match dict {
                Some(dict) => dict.get_item(name)?,
                None if value.hasattr("_aerogel_struct")? => value.getattr_opt(name.as_str())?,
                None => None,
            };
            let Some(member) = member else {
                let ty = spec.ty.bind(py).repr()?;
                let provided = value.get_type().name()?;
                return Err(error::exception(
                    py,
                    "AerogelRuntimeTypeError",
                    format!(
                        "argument {at} (`{}`) of kernel `{}` is a {provided} without the member `{name}` of the required {ty}",
                        self.params[at].name, self.name
                    ),
                ));
            };
            self.value_slots(py, settings, at, ty, &member, slots)?;
        }
        Ok(())
    }

    fn tensor_slots(
        &self,
        py: Python<'_>,
        settings: &Settings,
        at: usize,
        ty: ValueType,
        value: &Bound<'_, PyAny>,
        slots: &mut SmallVec<[u64; 2]>,
    ) -> PyResult<()> {
        let elem = ty.elem.resolve(settings);
        if ty.shape == TensorShape::Scalar {
            slots.push(self.scalar_slot(py, at, elem, value)?);
            return Ok(());
        }
        let components = buffer::components(value, ty.shape)?.map_err(|wrong| {
            let param = &self.params[at].name;
            let what = format!(
                "argument {at} (`{param}`) of kernel `{}` {wrong}",
                self.name
            );
            error::exception(py, "AerogelRuntimeTypeError", what)
        })?;
        for component in &components {
            slots.push(self.scalar_slot(py, at, elem, component)?);
        }
        Ok(())
    }

    fn scalar_slot(
        &self,
        py: Python<'_>,
        at: usize,
        ty: ScalarType,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let wrong_type = || {
            let provided = value
                .get_type()
                .name()
                .map_or_else(|_| "?".into(), |n| n.to_string());
            error::exception(
                py,
                "AerogelRuntimeTypeError",
                format!(
                    "argument {at} (`{}`) of kernel `{}` is a {provided}, which cannot be converted to the required {ty}",
                    self.params[at].name, self.name
                ),
            )
        };
        if value.is_instance_of::<PyString>() {
            return Err(wrong_type());
        }
        if ty.is_float() {
            let number: f64 = value.extract().map_err(|_| wrong_type())?;
            return Ok(Scalar::float(ty, number).slot());
        }
        if value.is_instance_of::<PyFloat>() {
            return Err(wrong_type());
        }
        // `__index__` is what NumPy's integers have and its floats have not.
        let fits = |whole: i128| Scalar::int(ty, whole).as_i128() == whole;
        match value.extract::<i64>() {
            Ok(whole) if ty == ScalarType::U1 => Ok(u64::from(whole != 0)),
            Ok(whole) if fits(i128::from(whole)) => Ok(Scalar::int(ty, i128::from(whole)).slot()),
            result => {
                if result.is_err() && !value.hasattr("__index__")? {
                    if value.get_type().name()? == "bool" || value.get_type().name()? == "bool_" {
                        return Ok(u64::from(value.is_truthy()?));
                    }
                    return Err(wrong_type());
                }
                if let Ok(whole) = value.extract::<i128>()
                    && fits(whole)
                {
                    return Ok(Scalar::int(ty, whole).slot());
                }
                Err(error::exception(
                    py,
                    "AerogelRuntimeTypeError",
                    format!(
                        "argument {at} (`{}`) of kernel `{}` is {value}, which does not fit {ty}",
                        self.params[at].name, self.name
                    ),
                ))
            }
        }
    }

    fn template_key(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<KeyPart> {
        template_key(py, value, 0, &mut 0)?.ok_or_else(|| {
            self.invalid(
                name,
                "it is nested too deeply, or contains itself, or has too many items".into(),
            )
        })
    }

    pub(crate) fn invalid(&self, name: &str, what: String) -> PyErr {
        PyValueError::new_err(format!(
            "invalid value for argument `{name}` of kernel `{}`: {what}",
            self.name
        ))
    }
}

/// What arguments are packed by.
#[derive(Clone, Copy)]
struct By<'a> {
    settings: &'a Settings,
    derivative: Option<Derived>,
}

/// How deep the lists of a template argument are nested at most, and how many items there are in all.
const MAX_NESTING: usize = 32;
const MAX_ITEMS: usize = 1 << 20;

/// What an argument is specialised for that is a field.
pub(crate) fn field_key(py: Python<'_>, field: &NativeField) -> PyResult<KeyPart> {
    let placement = field.placement(py)?;
    placement.store.memory(py)?;
    Ok(KeyPart::Field {
        tree: placement.store.key,
        place: placement.places[0].as_u32(),
        shape: field.tensor_shape(),
    })
}

/// What a template argument is specialised for: values by value, fields by their place, others by identity; nothing
/// if it is too large.
fn template_key(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    depth: usize,
    n_items: &mut usize,
) -> PyResult<Option<KeyPart>> {
    *n_items += 1;
    if depth > MAX_NESTING || *n_items > MAX_ITEMS {
        return Ok(None);
    }
    if let Ok(field) = value.cast::<NativeField>() {
        return field_key(py, field.get()).map(Some);
    }
    if value.is_none() {
        return Ok(Some(KeyPart::None));
    }
    if let Ok(b) = value.cast_exact::<PyBool>() {
        return Ok(Some(KeyPart::Bool(b.is_true())));
    }
    if value.is_exact_instance_of::<PyInt>() {
        let key = value.extract().map(KeyPart::Int);
        // In digits, of which Python writes thousands only.
        let digits = |_| value.call_method1("__format__", ("x",))?.extract();
        return key.or_else(|e| digits(e).map(KeyPart::Digits)).map(Some);
    }
    if let Ok(f) = value.cast_exact::<PyFloat>() {
        return Ok(Some(KeyPart::Float(f.value().to_bits())));
    }
    if let Ok(s) = value.cast_exact::<PyString>() {
        return Ok(Some(KeyPart::Text(s.to_string())));
    }
    if value.is_exact_instance_of::<PyTuple>()
        || value.is_exact_instance_of::<PyList>()
        || buffer::is_matrix(value)
    {
        let items = value.try_iter()?;
        let parts = items.map(|item| template_key(py, &item?, depth + 1, n_items));
        let parts: Option<Vec<KeyPart>> = parts.collect::<PyResult<_>>()?;
        return Ok(parts.map(KeyPart::Tuple));
    }
    Ok(Some(KeyPart::Object(value.as_ptr() as usize)))
}
