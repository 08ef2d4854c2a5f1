//! A kernel's signature from its annotations: the kinds of its parameters and the types of its results.

use std::sync::Arc;

use aerogel_base::ScalarType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::program::Settings;
use crate::host::TensorShape;

/// A scalar type, or what `ti.init` says that `float` or `int` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarSpec {
    Fixed(ScalarType),
    Fp,
    Ip,
}

impl ScalarSpec {
    pub(crate) fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name: String = match value.getattr("_aerogel_dtype") {
            Ok(name) => name.extract()?,
            Err(_) => match value.getattr("__name__") {
                Ok(name) => name.extract()?,
                Err(_) => value.extract()?,
            },
        };
        Ok(match name.as_str() {
            "float" => Self::Fp,
            "int" => Self::Ip,
            "bool" => Self::Fixed(ScalarType::U1),
            name => Self::Fixed(
                ScalarType::from_name(name)
                    .ok_or_else(|| PyTypeError::new_err(format!("{name} is not a type")))?,
            ),
        })
    }

    pub(crate) fn resolve(self, settings: &Settings) -> ScalarType {
        match self {
            Self::Fixed(ty) => ty,
            Self::Fp => settings.default_fp,
            Self::Ip => settings.default_ip,
        }
    }
}

/// The type of a value that is passed or returned: a scalar, or a vector or matrix of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueType {
    pub(crate) elem: ScalarSpec,
    pub(crate) shape: TensorShape,
}

impl ValueType {
    /// Reads a scalar type, `float`, `int`, `bool`, or a `ti.types.vector` or `matrix`.
    pub(crate) fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if value.hasattr("_aerogel_tensor_type")? {
            let (n, m, ndim) = (
                value.getattr("n")?.extract()?,
                value.getattr("m")?.extract()?,
                value.getattr("ndim")?.extract()?,
            );
            let spec = value.getattr("_spec")?;
            let elem = if spec.is_none() {
                ScalarSpec::Fp
            } else {
                ScalarSpec::read(&spec)?
            };
            return Ok(Self {
                elem,
                shape: TensorShape::from_axes(n, m, ndim),
            });
        }
        Ok(Self {
            elem: ScalarSpec::read(value)?,
            shape: TensorShape::Scalar,
        })
    }

    pub(crate) fn n_components(self) -> usize {
        self.shape.len() as usize
    }
}

/// The type of a value that is passed or returned by its members.
#[derive(Debug)]
pub(crate) struct StructSpec {
    /// The `ti.types.struct`.
    pub(crate) ty: Py<PyAny>,
    pub(crate) members: Vec<(String, ValueSpec)>,
}

/// The type of any value that is passed or returned.
#[derive(Clone, Debug)]
pub(crate) enum ValueSpec {
    Tensor(ValueType),
    Struct(Arc<StructSpec>),
}

impl ValueSpec {
    /// The types of its numbers.
    pub(crate) fn scalars(&self, settings: &Settings) -> Vec<ScalarType> {
        match self {
            Self::Tensor(ty) => vec![ty.elem.resolve(settings); ty.n_components()],
            Self::Struct(spec) => {
                let members = spec.members.iter();
                members.flat_map(|(_, m)| m.scalars(settings)).collect()
            }
        }
    }

    /// Reads what `ValueType::read` reads, or a `ti.types.struct`.
    pub(crate) fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !value.hasattr("_aerogel_struct_type")? {
            return Ok(Self::Tensor(ValueType::read(value)?));
        }
        let mut members = Vec::new();
        for (name, ty) in value.getattr("members")?.cast::<PyDict>()?.iter() {
            members.push((name.extract()?, Self::read(&ty)?));
        }
        let ty = value.clone().unbind();
        Ok(Self::Struct(Arc::new(StructSpec { ty, members })))
    }

    pub(crate) fn n_components(&self) -> usize {
        match self {
            Self::Tensor(ty) => ty.n_components(),
            Self::Struct(spec) => spec.members.iter().map(|(_, m)| m.n_components()).sum(),
        }
    }
}

/// The requirements of a parameter's annotation.
#[derive(Clone, Debug)]
pub(crate) enum ParamKind {
    Value(ValueSpec),
    Template,
    /// The instance that a method belongs to.
    Receiver,
    Array {
        elem: Option<ScalarSpec>,
        ndim: Option<usize>,
        element: Option<Vec<usize>>,
        /// How many axes an element has, if its shape is not known.
        element_dim: Option<usize>,
        needs_grad: Option<bool>,
        /// Whether an index outside means the element at the edge.
        clamp: bool,
    },
    /// A texture, and the functions that are its methods.
    Texture {
        ndim: u32,
        /// The number of the format that it must have, to be written to.
        format: Option<i64>,
        methods: Vec<(String, Arc<Py<PyAny>>)>,
    },
    /// Arguments that travel together, and functions that take them as `self`.
    Pack(Vec<Param>, Vec<(String, Arc<Py<PyAny>>)>),
}

impl ParamKind {
    /// What it takes when the kernel runs: an `array`, a `value`, or something `other`, known when it is compiled.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Array { .. } => "array",
            Self::Value(_) => "value",
            _ => "other",
        }
    }

    /// The types of the numbers that are passed by value.
    pub(crate) fn scalars(&self, settings: &Settings) -> Vec<ScalarType> {
        match self {
            Self::Value(spec) => spec.scalars(settings),
            Self::Pack(members, _) => {
                let members = members.iter();
                members.flat_map(|m| m.kind.scalars(settings)).collect()
            }
            Self::Template | Self::Receiver | Self::Array { .. } | Self::Texture { .. } => {
                Vec::new()
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) name: Arc<str>,
    pub(crate) kind: ParamKind,
}

impl Param {
    /// Reads a name with what `kernel.py` makes of its annotation.
    pub(crate) fn read((name, spec): (String, Bound<'_, PyTuple>)) -> PyResult<Self> {
        let kind = param_kind(&spec)?;
        let name = name.into();
        Ok(Self { name, kind })
    }
}

/// Reads what `kernel.py` makes of an annotation.
fn param_kind(spec: &Bound<'_, PyTuple>) -> PyResult<ParamKind> {
    let kind: String = spec.get_item(0)?.extract()?;
    Ok(match kind.as_str() {
        "self" => ParamKind::Receiver,
        "template" => ParamKind::Template,
        "pack" => {
            let members: Vec<(String, Bound<'_, PyTuple>)> = spec.get_item(1)?.extract()?;
            let members = members.into_iter().map(Param::read);
            let methods: Vec<(String, Py<PyAny>)> = spec.get_item(2)?.extract()?;
            let methods = methods.into_iter().map(|(name, f)| (name, Arc::new(f)));
            ParamKind::Pack(members.collect::<PyResult<_>>()?, methods.collect())
        }
        "texture" => {
            let annotation = spec.get_item(1)?;
            let format = annotation.getattr("fmt")?;
            let methods = annotation.getattr("methods")?.cast_into::<PyDict>()?;
            let methods = methods.iter().map(|(name, f)| {
                let name: String = name.extract()?;
                Ok((name, Arc::new(f.unbind())))
            });
            ParamKind::Texture {
                ndim: annotation.getattr("num_dimensions")?.extract()?,
                format: match format.is_none() {
                    true => None,
                    false => Some(format.getattr("value")?.extract()?),
                },
                methods: methods.collect::<PyResult<_>>()?,
            }
        }
        "ndarray" => {
            let annotation = spec.get_item(1)?;
            let dtype = annotation.getattr("dtype")?;
            let (elem, mut element) = if dtype.is_none() {
                (None, None)
            } else {
                let ty = ValueType::read(&dtype)?;
                (Some(ty.elem), Some(ty.shape.extents()))
            };
            let shape: Option<Vec<usize>> = annotation.getattr("element_shape")?.extract()?;
            let element_dim: Option<usize> = annotation.getattr("element_dim")?.extract()?;
            if shape.is_some() {
                element = shape;
            } else if element_dim.is_some_and(|d| d > 0) {
                element = None;
            }
            ParamKind::Array {
                elem,
                ndim: annotation.getattr("ndim")?.extract()?,
                element,
                element_dim,
                needs_grad: annotation.getattr("needs_grad")?.extract()?,
                clamp: annotation.getattr("boundary")?.extract::<String>()? == "clamp",
            }
        }
        _ => ParamKind::Value(ValueSpec::read(&spec.get_item(1)?)?),
    })
}

/// A member of what is passed for a pack: a dictionary, or an object with attributes.
pub(crate) fn member<'py>(
    value: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match value.cast::<PyDict>() {
        Ok(dict) => dict.get_item(name),
        Err(_) => value.getattr_opt(name),
    }
}

/// The name of a kernel, its parameters and its result types.
pub(crate) struct Signature {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    /// The default values of the last parameters.
    pub(crate) defaults: Vec<Py<PyAny>>,
    pub(crate) results: Option<Vec<ValueSpec>>,
    /// Whether a list is returned.
    pub(crate) many: bool,
}

impl Signature {
    /// Reads that of a function, with what Python has found of its annotations.
    pub(crate) fn read(
        function: &Bound<'_, PyAny>,
        params: Vec<(String, Bound<'_, PyTuple>)>,
        results: Option<Vec<Bound<'_, PyAny>>>,
        many: bool,
    ) -> PyResult<Self> {
        let mut defaults = Vec::new();
        if let Ok(values) = function.getattr("__defaults__")?.cast::<PyTuple>() {
            defaults.extend(values.iter().map(Bound::unbind));
        }
        let results = results.map(|types| types.iter().map(ValueSpec::read).collect());
        Ok(Self {
            name: function.getattr("__name__")?.extract()?,
            params: params
                .into_iter()
                .map(Param::read)
                .collect::<PyResult<_>>()?,
            defaults,
            results: results.transpose()?,
            many,
        })
    }

    /// As it is called.
    pub(crate) fn text(&self) -> String {
        let names: Vec<&str> = self.params.iter().map(|p| &*p.name).collect();
        format!("{}({})", self.name, names.join(", "))
    }
}
