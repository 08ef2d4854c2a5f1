//! Kernels in Python: one instance for each specialisation, arguments checked and packed, launches.
//!
//! What a call does when the instance exists: read the arguments into 8-byte slots, look the instance up by the
//! key that templates and array types make, and call it without the GIL.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_runtime::{Buffer, launch};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::buffer::{self, ForeignArray, NativeNdarray};
use super::error;
use super::field::NativeField;
use super::module::{self, Settings};
use super::prepare::{self, Instance, TreeRef};
use super::snode::{self, TreeStore};

/// A scalar type, or what `ti.init` says that `float` or `int` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarSpec {
    Fixed(ScalarType),
    Fp,
    Ip,
}

impl ScalarSpec {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
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
    /// Rows, columns, number of axes.
    pub(crate) shape: (u32, u32, u32),
}

impl ValueType {
    /// Reads a scalar type, `float`, `int`, `bool`, or a `ti.types.vector` or `matrix`.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
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
                shape: (n, m, ndim),
            });
        }
        Ok(Self {
            elem: ScalarSpec::read(value)?,
            shape: (1, 1, 0),
        })
    }

    pub(crate) fn n_components(self) -> usize {
        (self.shape.0 * self.shape.1) as usize
    }
}

/// What a parameter's annotation asks for.
#[derive(Clone, Debug)]
pub(crate) enum ParamKind {
    Value(ValueType),
    Template,
    /// The instance that a method belongs to.
    Receiver,
    Array {
        elem: Option<ScalarSpec>,
        ndim: Option<usize>,
        element: Option<Vec<usize>>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) kind: ParamKind,
}

/// What an instance is specialised for, besides the kernel itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeyPart {
    None,
    Bool(bool),
    Int(i128),
    /// An integer of more than 128 bits, or any other value by its text.
    Text(String),
    Float(u64),
    Tuple(Vec<KeyPart>),
    Field {
        tree: u64,
        place: u32,
        shape: (u32, u32, u32),
    },
    Array {
        elem: ScalarType,
        ndim: usize,
        element: Vec<usize>,
    },
    /// By identity; the instance holds a reference.
    Object(usize),
}

impl KeyPart {
    /// Whether the key names an object by identity.
    pub(crate) fn names(&self, object: &Bound<'_, PyAny>) -> bool {
        match self {
            Self::Object(address) => *address == object.as_ptr() as usize,
            Self::Tuple(parts) => parts.iter().any(|part| part.names(object)),
            _ => false,
        }
    }
}

/// One array argument.
enum ArrayArg {
    Foreign(ForeignArray),
    Own(Arc<Buffer>),
}

impl ArrayArg {
    fn buffer(&self) -> PyResult<&Buffer> {
        match self {
            Self::Foreign(array) => array.buffer(),
            Self::Own(buffer) => Ok(buffer),
        }
    }
}

/// The arguments of one call, in the order of the parameters.
enum Packed {
    Slots(Vec<u64>),
    Array {
        array: ArrayArg,
        /// Extents of the index space.
        shape: Vec<usize>,
        cell_bytes: usize,
        writeable: bool,
    },
    Nothing,
}

#[derive(Default)]
struct State {
    generation: u64,
    instances: LookupMap<Vec<KeyPart>, Arc<Instance>>,
    last: Option<Arc<Instance>>,
}

/// What `@ti.kernel` makes.
#[pyclass(module = "aerogel._native", subclass, frozen)]
pub(crate) struct NativeKernel {
    function: Py<PyAny>,
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    pub(crate) results: Option<Vec<ValueType>>,
    /// Whether a list is returned.
    pub(crate) many: bool,
    state: Mutex<State>,
}

#[pymethods]
impl NativeKernel {
    #[new]
    fn new(
        function: &Bound<'_, PyAny>,
        params: Vec<(String, Bound<'_, PyTuple>)>,
        results: Option<Vec<Bound<'_, PyAny>>>,
        many: bool,
    ) -> PyResult<Self> {
        let params = params
            .into_iter()
            .map(|(name, spec)| {
                Ok(Param {
                    name,
                    kind: param_kind(&spec)?,
                })
            })
            .collect::<PyResult<Vec<_>>>()?;
        let results = match results {
            Some(types) => Some(
                types
                    .iter()
                    .map(ValueType::read)
                    .collect::<PyResult<Vec<_>>>()?,
            ),
            None => None,
        };
        Ok(Self {
            name: function.getattr("__name__")?.extract()?,
            function: function.clone().unbind(),
            params,
            results,
            many,
            state: Mutex::new(State::default()),
        })
    }

    #[getter]
    fn __aerogel_kernel__(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let settings = module::settings(py)?;
        module::materialize(py)?;
        let values = self.bind(py, args, kwargs)?;
        let (packed, key) = self.pack(py, &settings, &values)?;
        let instance = self.instance(py, &settings, key, &values)?;
        self.launch(py, &settings, &instance, &packed)
    }

    /// What the compiler made: the instance for these arguments, or the latest one.
    fn _inspect<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let settings = module::settings(py)?;
        module::materialize(py)?;
        let latest = if args.is_empty() && kwargs.is_none_or(|k| k.is_empty()) {
            self.state().last.clone()
        } else {
            None
        };
        let instance = match latest {
            Some(instance) => instance,
            None => {
                let values = self.bind(py, args, kwargs)?;
                let (_, key) = self.pack(py, &settings, &values)?;
                self.instance(py, &settings, key, &values)?
            }
        };
        prepare::inspect(py, &instance)
    }
}

fn param_kind(spec: &Bound<'_, PyTuple>) -> PyResult<ParamKind> {
    let kind: String = spec.get_item(0)?.extract()?;
    Ok(match kind.as_str() {
        "self" => ParamKind::Receiver,
        "template" => ParamKind::Template,
        "ndarray" => {
            let annotation = spec.get_item(1)?;
            let dtype = annotation.getattr("dtype")?;
            let (elem, mut element) = if dtype.is_none() {
                (None, None)
            } else {
                let ty = ValueType::read(&dtype)?;
                let element = match ty.shape {
                    (_, _, 0) => Vec::new(),
                    (n, _, 1) => vec![n as usize],
                    (n, m, _) => vec![n as usize, m as usize],
                };
                (Some(ty.elem), Some(element))
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
            }
        }
        _ => ParamKind::Value(ValueType::read(&spec.get_item(1)?)?),
    })
}

impl NativeKernel {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Python function under the decorator.
    pub(crate) fn function<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.function.bind(py)
    }

    fn signature(&self) -> String {
        let names: Vec<&str> = self.params.iter().map(|p| p.name.as_str()).collect();
        format!("{}({})", self.name, names.join(", "))
    }

    /// The arguments by position.
    fn bind<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let wrong = |what: String| error::exception(py, "AerogelSyntaxError", what);
        let n = self.params.len();
        if args.len() > n {
            return Err(wrong(format!(
                "too many arguments: kernel `{}` takes {n}, got {}",
                self.signature(),
                args.len()
            )));
        }
        let mut values: Vec<Option<Bound<'py, PyAny>>> = args.iter().map(Some).collect();
        values.resize_with(n, || None);
        for (name, value) in kwargs.into_iter().flatten() {
            let name: String = name.extract()?;
            let Some(at) = self.params.iter().position(|p| p.name == name) else {
                return Err(wrong(format!(
                    "unexpected argument `{name}`: kernel `{}` has no such parameter",
                    self.signature()
                )));
            };
            if values[at].replace(value).is_some() {
                return Err(wrong(format!(
                    "the argument `{name}` of kernel `{}` is given twice",
                    self.name
                )));
            }
        }
        values
            .into_iter()
            .zip(&self.params)
            .map(|(value, param)| {
                value.ok_or_else(|| {
                    wrong(format!(
                        "missing argument: the parameter `{}` of kernel `{}` has no value",
                        param.name,
                        self.signature()
                    ))
                })
            })
            .collect()
    }

    /// The arguments' values, and what the instance is specialised for.
    fn pack(
        &self,
        py: Python<'_>,
        settings: &Settings,
        values: &[Bound<'_, PyAny>],
    ) -> PyResult<(Vec<Packed>, Vec<KeyPart>)> {
        let mut packed = Vec::with_capacity(values.len());
        let mut key = Vec::new();
        for (at, (param, value)) in self.params.iter().zip(values).enumerate() {
            packed.push(match &param.kind {
                ParamKind::Value(ty) => {
                    Packed::Slots(self.value_slots(py, settings, at, *ty, value)?)
                }
                ParamKind::Template => {
                    key.push(template_key(py, value)?);
                    Packed::Nothing
                }
                ParamKind::Receiver => {
                    self.check_receiver(py, value)?;
                    key.push(KeyPart::Object(value.as_ptr() as usize));
                    Packed::Nothing
                }
                ParamKind::Array {
                    elem,
                    ndim,
                    element,
                } => {
                    let elem = elem.map(|e| e.resolve(settings));
                    let (array, part) =
                        self.array(py, &param.name, value, elem, *ndim, element.as_deref())?;
                    key.push(part);
                    array
                }
            });
        }
        Ok((packed, key))
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

    /// The slots of a scalar, vector or matrix.
    fn value_slots(
        &self,
        py: Python<'_>,
        settings: &Settings,
        at: usize,
        ty: ValueType,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<u64>> {
        let elem = ty.elem.resolve(settings);
        if ty.shape.2 == 0 {
            return Ok(vec![self.scalar_slot(py, at, elem, value)?]);
        }
        let mut components = Vec::new();
        buffer::flatten(value, &mut components)?;
        if components.len() != ty.n_components() {
            return Err(error::exception(
                py,
                "AerogelRuntimeTypeError",
                format!(
                    "argument {at} (`{}`) of kernel `{}` has {} components, got {}",
                    self.params[at].name,
                    self.name,
                    ty.n_components(),
                    components.len()
                ),
            ));
        }
        components
            .iter()
            .map(|c| self.scalar_slot(py, at, elem, c))
            .collect()
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

    fn array(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
        elem: Option<ScalarType>,
        ndim: Option<usize>,
        element: Option<&[usize]>,
    ) -> PyResult<(Packed, KeyPart)> {
        let invalid = |what: String| {
            PyValueError::new_err(format!(
                "invalid value for argument `{name}` of kernel `{}`: {what}",
                self.name
            ))
        };
        let (array, ty, whole, own_element, writeable) = if let Ok(own) =
            value.cast::<NativeNdarray>()
        {
            let own = own.get();
            (
                ArrayArg::Own(own.buffer.clone()),
                own.ty,
                own.shape.clone(),
                Some(own.element.clone()),
                true,
            )
        } else {
            let value = &torch_as_numpy(value)?;
            let array = ForeignArray::new(value).map_err(|_| {
                let provided = value.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
                error::exception(
                    py,
                    "AerogelRuntimeTypeError",
                    format!(
                        "argument `{name}` of kernel `{}` takes a NumPy array or a ti.ndarray, not a {provided}",
                        self.name
                    ),
                )
            })?;
            let ty = array
                .ty
                .ok_or_else(|| PyTypeError::new_err(format!("the array for argument `{name}` of kernel `{}` has a dtype that kernels do not have", self.name)))?;
            array.buffer().map_err(|_| {
                invalid("the array is not C-contiguous and aligned; pass numpy.ascontiguousarray(array)".into())
            })?;
            let (shape, writeable) = (array.shape.clone(), array.writeable);
            (ArrayArg::Foreign(array), ty, shape, None, writeable)
        };
        if let Some(wanted) = elem.filter(|&e| e != ty) {
            let what = format!("an array of {wanted} is required, this one has {ty}");
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
                if element.is_some_and(|e| e != own) {
                    return Err(invalid(format!(
                        "elements of shape {element:?} are required, these have {own:?}"
                    )));
                }
                (whole, own)
            }
            None => {
                let wanted = element.unwrap_or(&[]);
                let (outer, inner) = whole.split_at(whole.len().saturating_sub(wanted.len()));
                if inner != wanted {
                    return Err(invalid(format!(
                        "the last axes must be those of an element, {wanted:?}; the shape is {whole:?}"
                    )));
                }
                (outer.to_vec(), wanted.to_vec())
            }
        };
        if ndim.is_some_and(|n| n != shape.len()) {
            return Err(invalid(format!(
                "{} axes are required, the array has {}",
                ndim.unwrap_or(0),
                shape.len()
            )));
        }
        let part = KeyPart::Array {
            elem: ty,
            ndim: shape.len(),
            element: element.clone(),
        };
        let cell_bytes = ty.bytes() as usize * element.iter().product::<usize>();
        let packed = Packed::Array {
            array,
            shape,
            cell_bytes,
            writeable,
        };
        Ok((packed, part))
    }

    /// The instance for a key, compiled if there is none.
    fn instance(
        &self,
        py: Python<'_>,
        settings: &Settings,
        key: Vec<KeyPart>,
        values: &[Bound<'_, PyAny>],
    ) -> PyResult<Arc<Instance>> {
        let generation = module::generation();
        {
            let mut state = self.state();
            if state.generation != generation {
                *state = State {
                    generation,
                    ..State::default()
                };
            }
            if let Some(instance) = state.instances.get(&key)
                && instance.is_current(py)
            {
                return Ok(instance.clone());
            }
        }
        let instance = Arc::new(prepare::compile(py, self, settings, &key, values)?);
        let mut state = self.state();
        if state.generation == generation {
            state.instances.insert(key, instance.clone());
            state.last = Some(instance.clone());
        }
        Ok(instance)
    }

    fn launch<'py>(
        &self,
        py: Python<'py>,
        settings: &Settings,
        instance: &Instance,
        packed: &[Packed],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut args = launch::Args::new();
        let mut n_arrays = 0;
        for (param, packed) in self.params.iter().zip(packed) {
            match packed {
                Packed::Slots(slots) => slots.iter().for_each(|&slot| args.scalar(slot)),
                Packed::Array {
                    array,
                    shape,
                    cell_bytes,
                    writeable,
                } => {
                    if !writeable && instance.writes.get(n_arrays).copied().unwrap_or(true) {
                        return Err(PyValueError::new_err(format!(
                            "the array for argument `{}` is read-only, and kernel `{}` writes to it",
                            param.name, self.name
                        )));
                    }
                    n_arrays += 1;
                    args.array(array.buffer()?, shape, *cell_bytes)
                        .map_err(error::memory)?;
                }
                Packed::Nothing => {}
            }
        }
        let memories = instance
            .trees
            .iter()
            .map(|tree| tree.memory(py))
            .collect::<PyResult<Vec<Arc<Buffer>>>>()?;
        let roots: Vec<&Buffer> = memories.iter().map(|m| &**m).collect();
        let types = self.results.as_deref().unwrap_or(&[]);
        let mut results = vec![0u64; types.iter().map(|t| t.n_components()).sum()];
        let sink = Mutex::new(String::new());
        let seed = module::launch_seed(settings);
        let begin = module::profiling().then(Instant::now);
        let outcome = py.detach(|| {
            instance.launch(launch::Launch {
                args: &args,
                roots: &roots,
                results: &mut results,
                sink: &sink,
                seed,
            })
        });
        if let Some(begin) = begin {
            module::record(&self.name, begin.elapsed().as_secs_f64());
        }
        let printed = sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !printed.is_empty() {
            py.import("sys")?
                .getattr("stdout")?
                .call_method1("write", (printed,))?;
        }
        outcome.map_err(|failure| instance.failure(py, failure, &self.name))?;
        self.returned(py, settings, types, &results)
    }

    fn returned<'py>(
        &self,
        py: Python<'py>,
        settings: &Settings,
        types: &[ValueType],
        mut slots: &[u64],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut values = Vec::with_capacity(types.len());
        for ty in types {
            let elem = ty.elem.resolve(settings);
            let (mine, rest) = slots.split_at(ty.n_components());
            slots = rest;
            let mut components = Vec::with_capacity(mine.len());
            for &slot in mine {
                components.push(buffer::to_python(py, Scalar::from_slot(elem, slot))?);
            }
            values.push(match ty.shape.2 {
                0 => components.swap_remove(0),
                _ => buffer::make_element(py, PyList::new(py, components)?, ty.shape, None)?,
            });
        }
        if self.many {
            return Ok(PyList::new(py, values)?.into_any());
        }
        Ok(values.pop().unwrap_or_else(|| py.None().into_bound(py)))
    }
}

/// A PyTorch tensor on the CPU as a NumPy array over the same memory; anything else as it is.
fn torch_as_numpy<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if value.hasattr(pyo3::intern!(py, "__array_struct__"))?
        || !value.hasattr(pyo3::intern!(py, "detach"))?
    {
        return Ok(value.clone());
    }
    value.call_method0("detach")?.call_method0("numpy")
}

/// What a template argument is specialised for: values by value, fields by their place, others by identity.
fn template_key(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<KeyPart> {
    if let Ok(field) = value.cast::<NativeField>() {
        let field = field.get();
        let placement = field.placement(py)?;
        placement.store.memory(py)?;
        return Ok(KeyPart::Field {
            tree: placement.store.key,
            place: placement.places[0].as_u32(),
            shape: field.tensor_shape(),
        });
    }
    if value.is_none() {
        return Ok(KeyPart::None);
    }
    if let Ok(b) = value.cast_exact::<PyBool>() {
        return Ok(KeyPart::Bool(b.is_true()));
    }
    if value.is_exact_instance_of::<PyInt>() {
        return Ok(value
            .extract()
            .map_or_else(|_| KeyPart::Text(value.to_string()), KeyPart::Int));
    }
    if let Ok(f) = value.cast_exact::<PyFloat>() {
        return Ok(KeyPart::Float(f.value().to_bits()));
    }
    if let Ok(s) = value.cast_exact::<PyString>() {
        return Ok(KeyPart::Text(s.to_string()));
    }
    if value.is_exact_instance_of::<PyTuple>()
        || value.is_exact_instance_of::<PyList>()
        || buffer::is_matrix(value)?
    {
        let parts = value
            .try_iter()?
            .map(|item| template_key(py, &item?))
            .collect::<PyResult<_>>()?;
        return Ok(KeyPart::Tuple(parts));
    }
    Ok(KeyPart::Object(value.as_ptr() as usize))
}

/// The trees that the arguments bring along: the instance need not keep them alive.
pub(crate) fn argument_trees(py: Python<'_>, values: &[Bound<'_, PyAny>]) -> Vec<u64> {
    values
        .iter()
        .filter_map(|value| {
            let field = value.cast::<NativeField>().ok()?;
            Some(field.get().placement(py).ok()?.store.key)
        })
        .collect()
}

/// How an instance refers to a tree.
pub(crate) fn tree_ref(py: Python<'_>, key: u64, from_argument: bool) -> PyResult<TreeRef> {
    let store: Arc<TreeStore> =
        snode::find(key).ok_or_else(|| error::runtime(py, "a field is gone"))?;
    let weak: Weak<TreeStore> = Arc::downgrade(&store);
    Ok(if from_argument {
        TreeRef::Weak(weak)
    } else {
        TreeRef::Strong(store)
    })
}
