//! Arrays of other packages whose memory is on a GPU.

use std::any::Any;
use std::sync::Arc;

use aerogel_base::ScalarType;
use aerogel_compiler::{Arch, GpuDevice};
use aerogel_runtime::Buffer;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::dlpack::Held;
use super::layout::{Layout, READ_ONLY, ReadOnly, scalar_of};
use super::packages::Refused;
use crate::py::program::settings;

/// An array of another package's on a GPU.
pub(crate) struct DeviceArray {
    pub(crate) ty: ScalarType,
    pub(crate) shape: Vec<usize>,
    pub(crate) read_only: ReadOnly,
    /// The memory, which keeps its owner.
    pub(crate) buffer: Arc<Buffer>,
    address: usize,
}

impl DeviceArray {
    /// The array that a value's `__cuda_array_interface__` describes, if it has one.
    pub(crate) fn by_interface(value: &Bound<'_, PyAny>) -> Result<Option<Self>, Refused> {
        let py = value.py();
        // What requires a gradient shows its memory when it is detached.
        let requires = value.getattr_opt(pyo3::intern!(py, "requires_grad"))?;
        let detached = match requires.map_or(Ok(false), |requires| requires.is_truthy())? {
            true => value.call_method0("detach")?,
            false => value.clone(),
        };
        let value = &detached;
        let Some(found) = value.getattr_opt(pyo3::intern!(py, "__cuda_array_interface__"))? else {
            return Ok(None);
        };
        let Ok(found) = found.cast_into::<PyDict>() else {
            return Ok(None);
        };
        let item = |name: &str| {
            let missing =
                || PyValueError::new_err(format!("`__cuda_array_interface__` has no {name:?}"));
            found.get_item(name)?.ok_or_else(missing)
        };
        let shape: Vec<usize> = item("shape")?.extract()?;
        let typestr: String = item("typestr")?.extract()?;
        let (address, read_only): (usize, bool) = item("data")?.extract()?;
        let mut letters = typestr.chars();
        let (order, kind) = (letters.next(), letters.next());
        let itemsize: usize = letters.as_str().parse().unwrap_or(0);
        let kind = kind
            .filter(|_| order != Some('>'))
            .map_or(0, |kind| kind as u8);
        let ty = scalar_of(kind, itemsize).ok_or_else(|| {
            PyTypeError::new_err(format!("kernels have no type for elements of {typestr:?}"))
        })?;
        let strides: Option<Vec<isize>> = match found.get_item("strides")? {
            Some(strides) if !strides.is_none() => Some(strides.extract()?),
            _ => None,
        };
        let stream: Option<u64> = match found.get_item("stream")? {
            Some(stream) if !stream.is_none() => Some(stream.extract()?),
            _ => None,
        };
        let layout = Layout {
            ty: Some(ty),
            itemsize,
            shape,
            strides,
            address,
            read_only: read_only.then_some(READ_ONLY),
        };
        let owner = Box::new(value.clone().unbind());
        Ok(Some(Self::adopt(py, layout, None, stream, owner)?))
    }

    /// The array that a value's `__dlpack__` describes.
    pub(crate) fn by_dlpack(value: &Bound<'_, PyAny>, number: i32) -> Result<Self, Refused> {
        let py = value.py();
        let device = opened(py)?;
        expect_ours(py, number)?;
        // The producer lets our stream wait for the work in its own stream.
        let stream = device
            .stream()
            .map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
        let held = Held::ask(value, Some(stream))?;
        let layout = held.layout()?;
        Ok(Self::adopt(py, layout, None, None, Box::new(held))?)
    }

    /// An array of the memory that is described, on the GPU on which kernels run.
    pub(crate) fn adopt(
        py: Python<'_>,
        layout: Layout,
        number: Option<i32>,
        stream: Option<u64>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> PyResult<Self> {
        let device = opened(py)?;
        number.map_or(Ok(()), |number| expect_ours(py, number))?;
        layout.expect_plain()?;
        let Layout {
            ty,
            shape,
            address,
            read_only,
            ..
        } = layout;
        let ty = ty.ok_or_else(|| PyTypeError::new_err("kernels have no type for the elements"))?;
        let bytes = shape
            .iter()
            .try_fold(ty.bytes() as usize, |b, &e| b.checked_mul(e));
        let bytes = bytes.ok_or_else(|| PyValueError::new_err("the array is too large"))?;
        if !address.is_multiple_of(ty.bytes() as usize) {
            return Err(PyValueError::new_err(format!(
                "the array begins at {address:#x}, which is not aligned for {ty}"
            )));
        }
        let buffer = device
            .adopt(address as u64, bytes, stream, owner)
            .map_err(|e| {
                PyValueError::new_err(format!("the array cannot be used on the device: {e}"))
            })?;
        Ok(Self {
            ty,
            shape,
            read_only,
            buffer: Arc::new(buffer),
            address,
        })
    }

    /// Where the first element lies.
    pub(crate) fn address(&self) -> usize {
        self.address
    }
}

fn expect_ours(py: Python<'_>, number: i32) -> PyResult<()> {
    match settings(py)?.arch {
        Arch::Cuda(ours) if ours as i32 != number => Err(PyValueError::new_err(format!(
            "the array lies on cuda:{number}, and kernels run on cuda:{ours}"
        ))),
        _ => Ok(()),
    }
}

/// The GPU on which kernels run.
pub(crate) fn opened(py: Python<'_>) -> PyResult<GpuDevice> {
    match settings(py)?.arch {
        Arch::Cuda(number) => {
            aerogel_compiler::cuda(number).map_err(|e| PyRuntimeError::new_err(e.to_string()))
        }
        _ => Err(PyValueError::new_err(
            "the array lies on a CUDA device, and kernels run on the CPU: call ti.init(arch=ti.cuda), or copy the array to the host",
        )),
    }
}
