//! PyTorch's tensors, read by the methods of the base class, whatever a subclass overrides.
//!
//! Nothing here imports PyTorch: a value is a tensor only where a program has imported it. `tensor.numpy()` would forbid
//! PyTorch to resize the tensor from then on, so that it is not called.

use aerogel_base::ScalarType;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use super::Foreign;
use super::array::{ForeignArray, Kind};
use super::device::DeviceArray;
use super::layout::Layout;
use super::packages::{Refused, loaded};

/// The functions of PyTorch that are used.
struct Torch {
    tensor: Py<PyType>,
    parameter: Py<PyType>,
    /// A block in which no override of a subclass or a mode is called.
    unchanged: Py<PyAny>,
    data_ptr: Py<PyAny>,
    stride: Py<PyAny>,
    is_neg: Py<PyAny>,
    storage: Py<PyAny>,
    /// The layout of tensors that are not sparse.
    strided: Py<PyAny>,
    dtypes: Vec<(Py<PyAny>, ScalarType)>,
    /// Tells autograd that a tensor has changed; older versions have none.
    increment_version: Option<Py<PyAny>>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

/// The types that PyTorch and kernels have; older versions have fewer.
const DTYPES: [(&str, ScalarType); 13] = [
    ("float32", ScalarType::F32),
    ("float64", ScalarType::F64),
    ("float16", ScalarType::F16),
    ("bfloat16", ScalarType::BF16),
    ("int32", ScalarType::I32),
    ("int64", ScalarType::I64),
    ("bool", ScalarType::U1),
    ("uint8", ScalarType::U8),
    ("int8", ScalarType::I8),
    ("int16", ScalarType::I16),
    ("uint16", ScalarType::U16),
    ("uint32", ScalarType::U32),
    ("uint64", ScalarType::U64),
];

const NO_VALUES: &str = "the tensor has no memory of its own (a wrapper, or a tensor inside a `torch.func` transform or \
                         `FakeTensorMode`): pass a plain tensor, and call the kernel outside of these";

impl Torch {
    fn new(torch: &Bound<'_, PyAny>) -> PyResult<Self> {
        let tensor = torch.getattr("Tensor")?;
        let own = |name: &str| Ok::<_, PyErr>(tensor.getattr(name)?.unbind());
        let mut dtypes = Vec::new();
        for (name, ty) in DTYPES {
            dtypes.extend(torch.getattr_opt(name)?.map(|dtype| (dtype.unbind(), ty)));
        }
        let parameter = torch.getattr("nn")?.getattr("Parameter")?;
        let graph = torch.getattr("autograd")?.getattr("graph")?;
        Ok(Self {
            parameter: parameter.cast_into()?.unbind(),
            unchanged: torch
                .getattr("_C")?
                .getattr("DisableTorchFunction")?
                .unbind(),
            data_ptr: own("data_ptr")?,
            stride: own("stride")?,
            is_neg: own("is_neg")?,
            storage: own("untyped_storage")?,
            strided: torch.getattr("strided")?.unbind(),
            dtypes,
            increment_version: graph.getattr_opt("increment_version")?.map(Bound::unbind),
            tensor: tensor.cast_into()?.unbind(),
        })
    }

    /// PyTorch, if a value is one of its tensors.
    fn of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<&'py Self>> {
        let py = value.py();
        if let Some(torch) = TORCH.get(py) {
            return Ok(torch.has(value)?.then_some(torch));
        }
        let Some(module) = loaded(py, "torch")? else {
            return Ok(None);
        };
        // It may be in the midst of being imported.
        let class = module.getattr_opt("Tensor")?;
        match class {
            Some(class) if value.get_type().is_subclass(&class)? => {
                TORCH.get_or_try_init(py, || Self::new(&module)).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn is_exact(&self, value: &Bound<'_, PyAny>) -> bool {
        let (py, class) = (value.py(), value.get_type());
        class.is(self.tensor.bind(py)) || class.is(self.parameter.bind(py))
    }

    fn has(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let class = value.get_type();
        Ok(self.is_exact(value) || class.is_subclass(self.tensor.bind(value.py()))?)
    }

    /// Calls `f` where no override is called.
    fn unchanged<R>(
        &self,
        py: Python<'_>,
        f: impl FnOnce() -> Result<R, Refused>,
    ) -> Result<R, Refused> {
        let block = self.unchanged.bind(py).call0()?;
        block.call_method0(pyo3::intern!(py, "__enter__"))?;
        let found = f();
        let none = (py.None(), py.None(), py.None());
        block.call_method1(pyo3::intern!(py, "__exit__"), none)?;
        found
    }

    /// An attribute that the base class computes.
    fn attribute<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.is_exact(value) {
            return value.getattr(name);
        }
        let own = self.tensor.bind(value.py()).getattr(name)?;
        own.call_method1(pyo3::intern!(value.py(), "__get__"), (value,))
    }

    fn read(&self, value: &Bound<'_, PyAny>) -> Result<Foreign, Refused> {
        let py = value.py();
        let layout = self.attribute(value, pyo3::intern!(py, "layout"))?;
        if !layout.is(&self.strided) {
            let remedy = match layout.to_string().as_str() {
                "torch.jagged" => "to_padded_tensor(0)` or `tensor.values()",
                _ => "to_dense()",
            };
            let what = format!("the tensor's layout is {layout}: pass `tensor.{remedy}`");
            return Err(Refused::kind(what));
        }
        let on_cpu = self.attribute(value, pyo3::intern!(py, "is_cpu"))?;
        let on_cuda = match on_cpu.is_truthy()? {
            true => false,
            false => self
                .attribute(value, pyo3::intern!(py, "is_cuda"))?
                .is_truthy()?,
        };
        if !on_cpu.is_truthy()? && !on_cuda {
            let device = self.attribute(value, pyo3::intern!(py, "device"))?;
            return Err(match device.getattr("type")?.to_string().as_str() {
                "meta" => Refused::kind(
                    "the tensor is on the device `meta`, which has no values: make it on the CPU, as by \
                     `torch.empty_like(tensor, device=\"cpu\")`",
                ),
                _ => Refused::value(format!(
                    "the tensor is on the device `{device}`, where no kernels run: pass `tensor.cpu()`, and copy back \
                     what the kernel writes"
                )),
            });
        }
        let dtype = self.attribute(value, pyo3::intern!(py, "dtype"))?;
        let ty = self.dtypes.iter().find(|(own, _)| dtype.is(own));
        let ty = ty.map(|&(_, ty)| ty).ok_or_else(|| no_such(&dtype))?;
        // Of nested tensors PyTorch has neither.
        let no_shape = |e: PyErr| {
            Refused::raised(
                py,
                "the tensor has no shape of its own: pass a plain tensor, such as `tensor.to_padded_tensor(0)`;",
                &e,
            )
        };
        let shape = self.attribute(value, pyo3::intern!(py, "shape"));
        let shape: Vec<usize> = shape.and_then(|shape| shape.extract()).map_err(no_shape)?;
        let strides = self.stride.bind(py).call1((value,));
        let strides: Vec<isize> = strides
            .and_then(|strides| strides.extract())
            .map_err(no_shape)?;
        if self.is_neg.bind(py).call1((value,))?.is_truthy()? {
            return Err(Refused::value(
                "the tensor's negative bit is set, so its memory has the negated values: pass `tensor.resolve_neg()`",
            ));
        }
        let address = self.data_ptr.bind(py).call1((value,));
        let address = address.and_then(|address| address.extract::<usize>());
        let address = address.map_err(|e| Refused::raised(py, NO_VALUES, &e))?;
        if address == 0 && !shape.contains(&0) {
            return Err(Refused::kind(NO_VALUES));
        }
        let itemsize = ty.bytes() as usize;
        let layout = Layout {
            ty: Some(ty),
            itemsize,
            shape,
            strides: Some(strides.iter().map(|s| s * itemsize as isize).collect()),
            address,
            read_only: None,
        };
        let owner = value.clone().unbind();
        if on_cuda {
            let device = self.attribute(value, pyo3::intern!(py, "device"))?;
            let number = device.getattr("index")?.extract().unwrap_or(0);
            let storage = self.storage.bind(py).call1((value,))?.unbind();
            let owner = Box::new((owner, storage));
            let array = DeviceArray::adopt(py, layout, Some(number), None, owner)?;
            return Ok(Foreign::Device(array));
        }
        Ok(Foreign::Host(ForeignArray::new(
            layout,
            Kind::Torch,
            owner,
            None,
        )))
    }

    fn tell(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = tensor.py();
        if let Some(increment) = &self.increment_version {
            return increment.call1(py, (tensor,)).map(|_| ());
        }
        // A write to no elements of a view is a write to the tensor's version counter, which the view shares.
        let class = self.tensor.bind(py);
        if class.call_method1("is_inference", (tensor,))?.is_truthy()? {
            return Ok(());
        }
        let view = class.call_method1("detach", (tensor,))?;
        let empty = class.call_method1("as_strided", (view, (0,), (1,)))?;
        class.call_method1("zero_", (empty,)).map(|_| ())
    }
}

/// The error for a dtype that kernels do not support.
fn no_such(dtype: &Bound<'_, PyAny>) -> Refused {
    let name = dtype.to_string();
    let remedy = match name.as_str() {
        "torch.complex32" | "torch.complex64" | "torch.complex128" => {
            ": pass `torch.view_as_real(tensor)`, after `tensor.resolve_conj()` if `tensor.is_conj()`"
        }
        _ if name.starts_with("torch.q") => ": pass `tensor.int_repr()`, or `tensor.dequantize()`",
        _ => ": convert it, as by `tensor.float()`",
    };
    Refused::kind(format!(
        "the tensor's dtype is {name}, which kernels do not support{remedy}"
    ))
}

/// The array that a value is, if it is a tensor of PyTorch's.
pub(super) fn of(value: &Bound<'_, PyAny>) -> Result<Option<Foreign>, Refused> {
    let Some(torch) = Torch::of(value)? else {
        return Ok(None);
    };
    torch.unchanged(value.py(), || torch.read(value)).map(Some)
}

/// Whether a value is a tensor of PyTorch's.
pub(crate) fn is_tensor(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Torch::of(value).map(|torch| torch.is_some())
}

/// The memory of a tensor, which stays that of this object whatever the tensor is given later.
pub(super) fn storage(tensor: &Bound<'_, PyAny>) -> Option<Py<PyAny>> {
    let torch = Torch::of(tensor).ok()??;
    let py = tensor.py();
    let found = torch.unchanged(py, || Ok(torch.storage.bind(py).call1((tensor,))?));
    found.ok().map(Bound::unbind)
}

/// Lets autograd know that a tensor has changed: it raises where it has saved the old values.
pub(crate) fn tell(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    match Torch::of(tensor)? {
        Some(torch) => torch
            .unchanged(tensor.py(), || Ok(torch.tell(tensor)?))
            .map_err(PyErr::from),
        None => Ok(()),
    }
}
