//! Arrays of other packages: what kind of array a value is, where its elements lie, and whether they may be written.
//!
//! `of` decides it for kernels' arguments, conversions and `ti.from_dlpack`. NumPy's and PyTorch's classes are read by
//! what the base class says of its own memory. Other objects describe theirs by a protocol, and may return a copy with
//! each call: what a kernel writes there would be lost, so that `expect_shared` compares two answers before it runs.

pub(crate) mod array;
pub(crate) mod copies;
pub(crate) mod device;
pub(crate) mod dlpack;
pub(crate) mod layout;
mod numpy;
pub(crate) mod overlap;
mod packages;
pub(crate) mod torch;

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

pub(crate) use self::array::{ForeignArray, Kind};

use self::device::DeviceArray;
use self::dlpack::{A_COPY, CUDA, HOST, Held, MANAGED};
use self::packages::{Refused, loaded};
use super::buffer::{Dim, copy};
use super::error;

/// An array of another package.
pub(crate) enum Foreign {
    Host(ForeignArray),
    Device(DeviceArray),
}

/// The owner of an array's memory: queried before a kernel writes to it, or notified afterwards.
pub(crate) enum Giver {
    /// A tensor of PyTorch's, whose autograd must know of writes.
    Torch(Py<PyAny>),
    /// An object whose protocol returned the memory at an address, and may return another copy.
    Protocol { object: Py<PyAny>, address: usize },
}

impl Giver {
    pub(crate) fn of_host(py: Python<'_>, array: &ForeignArray) -> Option<Self> {
        let object = array.object();
        match array.kind {
            Kind::Numpy => None,
            Kind::Torch => Some(Self::Torch(object.clone_ref(py))),
            Kind::Protocol => Some(Self::Protocol {
                object: object.clone_ref(py),
                address: array.address(),
            }),
        }
    }

    pub(crate) fn of_device(value: &Bound<'_, PyAny>, array: &DeviceArray) -> PyResult<Self> {
        let object = value.clone().unbind();
        Ok(match torch::is_tensor(value)? {
            true => Self::Torch(object),
            false => Self::Protocol {
                object,
                address: array.address(),
            },
        })
    }

    /// Whether writes are visible to the array's owner. The array must still be alive: another copy could have the address
    /// of a dropped one.
    pub(crate) fn is_shared(&self, py: Python<'_>) -> PyResult<bool> {
        match self {
            Self::Torch(_) => Ok(true),
            Self::Protocol { object, address } => returns_again(object.bind(py), *address),
        }
    }

    /// Tells of a write.
    pub(crate) fn tell(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Self::Torch(tensor) => torch::tell(tensor.bind(py)),
            Self::Protocol { .. } => Ok(()),
        }
    }
}

/// The array of another package that a value is; nothing if it is none.
pub(crate) fn of(value: &Bound<'_, PyAny>) -> Result<Option<Foreign>, Refused> {
    if let Some(array) = numpy::of(value)? {
        return Ok(Some(Foreign::Host(array)));
    }
    if let Some(found) = torch::of(value)? {
        return Ok(Some(found));
    }
    let py = value.py();
    let is_jax = expect_jax_values(value)?;
    // What a field gives by DLPack is a copy.
    if value.hasattr(pyo3::intern!(py, "_aerogel_field"))? {
        return Ok(None);
    }
    if let Some(found) = value.getattr_opt(pyo3::intern!(py, "__array_struct__"))?
        && found.is_instance_of::<PyCapsule>()
    {
        let array = numpy::read(&found, value, Kind::Protocol)?;
        return Ok(Some(Foreign::Host(array)));
    }
    if let Some(mut found) = DeviceArray::by_interface(value)? {
        found.read_only = found.read_only.or(is_jax.then_some(layout::READ_ONLY));
        return Ok(Some(Foreign::Device(found)));
    }
    if let Some(device) = value.getattr_opt(pyo3::intern!(py, "__dlpack_device__"))? {
        return by_dlpack(value, &device, is_jax).map(Some);
    }
    // NumPy knows all forms of the interface.
    if value.hasattr(pyo3::intern!(py, "__array_interface__"))? {
        return by_numpy(value, value).map(Some);
    }
    // Packages that are like PyTorch.
    if let (Some(detach), true) = (
        value.getattr_opt(pyo3::intern!(py, "detach"))?,
        value.hasattr(pyo3::intern!(py, "numpy"))?,
    ) {
        let seen = detach.call0()?.call_method0(pyo3::intern!(py, "numpy"))?;
        return by_numpy(&seen, value).map(Some);
    }
    Ok(None)
}

/// The array that NumPy makes of what an object returns.
fn by_numpy(given: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Result<Foreign, Refused> {
    let py = value.py();
    let array = py
        .import("numpy")?
        .call_method1(pyo3::intern!(py, "asarray"), (given,))
        .map_err(|e| Refused::raised(py, "NumPy, converting the array,", &e))?;
    let found = array.getattr(pyo3::intern!(py, "__array_struct__"))?;
    let found = numpy::read(&found, &array, Kind::Protocol)?;
    Ok(Foreign::Host(found.of_object(value)))
}

fn by_dlpack(
    value: &Bound<'_, PyAny>,
    device: &Bound<'_, PyAny>,
    is_jax: bool,
) -> Result<Foreign, Refused> {
    let py = value.py();
    let asked = device.call0();
    let asked = asked.and_then(|found| found.extract::<(i32, i32)>());
    let (kind, number) = asked.map_err(|e| Refused::raised(py, "its `__dlpack_device__`", &e))?;
    if kind == CUDA || kind == MANAGED {
        let mut found = DeviceArray::by_dlpack(value, number)?;
        found.read_only = found.read_only.or(is_jax.then_some(layout::READ_ONLY));
        return Ok(Foreign::Device(found));
    }
    if !HOST.contains(&kind) {
        return Err(Refused::value(format!(
            "the array lies on a device of DLPack's kind {kind}, where no kernels run: copy it to the CPU"
        )));
    }
    let held = Held::ask(value, None)?;
    let mut layout = held.layout()?;
    // The first version of DLPack has no way to say that an array must not be written.
    if is_jax || !value.hasattr(pyo3::intern!(py, "__setitem__"))? && !held.is_versioned() {
        layout.read_only = layout.read_only.or(Some(layout::READ_ONLY));
    }
    Ok(Foreign::Host(ForeignArray::new(
        layout,
        Kind::Protocol,
        value.clone().unbind(),
        Some(Arc::new(held)),
    )))
}

/// Whether a value is an array of JAX's, whose values must be there.
fn expect_jax_values(value: &Bound<'_, PyAny>) -> Result<bool, Refused> {
    let py = value.py();
    let Some(jax) = loaded(py, "jax")? else {
        return Ok(false);
    };
    let is_one_of = |class: Option<Bound<'_, PyAny>>| match class {
        Some(class) => value.is_instance(&class),
        None => Ok(false),
    };
    if !is_one_of(jax.getattr_opt("Array")?)? {
        return Ok(false);
    }
    let core = jax.getattr_opt("core")?;
    let tracer = core.map_or(Ok(None), |core| core.getattr_opt("Tracer"))?;
    if is_one_of(tracer)? {
        return Err(Refused::kind(
            "it is a tracer of JAX, which has no values while `jit`, `grad` or `vmap` traces a function: call the kernel \
             outside of it, or through `jax.pure_callback`",
        ));
    }
    let deleted = value.getattr_opt(pyo3::intern!(py, "is_deleted"))?;
    if deleted.map_or(Ok(false), |deleted| deleted.call0()?.is_truthy())? {
        return Err(Refused::value(
            "the JAX array was deleted, as by donating it to a function: pass a copy that was made before, or what that \
             function returned",
        ));
    }
    Ok(true)
}

/// The array on the host that a value is.
pub(crate) fn on_host(value: &Bound<'_, PyAny>) -> PyResult<ForeignArray> {
    match of(value)? {
        Some(Foreign::Host(array)) => Ok(array),
        Some(Foreign::Device(_)) => Err(PyValueError::new_err(
            "the array lies on a CUDA device: copy it to the host, as by `tensor.cpu()`",
        )),
        None => Err(PyTypeError::new_err("not a NumPy array")),
    }
}

/// Whether an object returns memory at the same address on a second access.
fn returns_again(value: &Bound<'_, PyAny>, address: usize) -> PyResult<bool> {
    Ok(match of(value)? {
        Some(Foreign::Host(array)) => array.address() == address && array.read_only != Some(A_COPY),
        Some(Foreign::Device(array)) => array.address() == address,
        None => false,
    })
}

/// Type and shape of another package's array; nothing if a value is none. If it is to be shared, its protocol must return
/// the same memory each time.
#[pyfunction]
#[pyo3(signature = (value, shared = false))]
pub(crate) fn foreign_array<'py>(
    value: &Bound<'py, PyAny>,
    shared: bool,
) -> PyResult<Option<(&'static str, Bound<'py, PyTuple>)>> {
    let py = value.py();
    let Some(found) = of(value)? else {
        return Ok(None);
    };
    let (giver, ty, shape) = match &found {
        Foreign::Device(array) => (
            Some(Giver::of_device(value, array)?),
            Some(array.ty),
            &array.shape,
        ),
        Foreign::Host(array) => (Giver::of_host(py, array), array.ty, &array.shape),
    };
    let ty = ty.ok_or_else(|| {
        PyTypeError::new_err("kernels have no type for the elements of the array")
    })?;
    let giver = giver.filter(|_| shared);
    if !giver.map_or(Ok(true), |giver| giver.is_shared(py))? {
        return Err(PyValueError::new_err(format!(
            "the {} returns a new copy on each access to its memory, so there is no memory to share: copy it, as by \
             `x.from_numpy(array)`",
            value.get_type().name()?
        )));
    }
    Ok(Some((ty.name(), PyTuple::new(py, shape)?)))
}

/// Copies the elements of another package's array to one of NumPy's, of the same type and shape.
#[pyfunction]
pub(crate) fn copy_array(value: &Bound<'_, PyAny>, out: &Bound<'_, PyAny>) -> PyResult<()> {
    let (from, to) = (on_host(value)?, on_host(out)?);
    to.expect_writeable()?;
    let (all, there) = (from.contents()?, to.buffer()?);
    if from.ty != to.ty || from.shape != to.shape {
        return Err(PyValueError::new_err("the array is another one"));
    }
    let item = from.ty.map_or(1, |ty| ty.bytes() as usize);
    let dim = Dim {
        extent: there.len() / item,
        dst: item,
        src: item,
    };
    let copied = value
        .py()
        .detach(|| copy((there, 0), (&all, 0), vec![dim], item));
    copied.map_err(error::memory)
}

/// Whether a value is a tensor of PyTorch's.
#[pyfunction]
pub(crate) fn is_torch_tensor(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    torch::is_tensor(value)
}
