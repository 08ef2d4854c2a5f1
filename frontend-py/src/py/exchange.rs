//! Arrays of the program's own whose memory is on a GPU, to other packages: DLPack, and `__cuda_array_interface__`.
#![expect(unsafe_code, reason = "structures of C that packages hand each other")]

use std::ffi::c_void;
use std::sync::Arc;

use aerogel_base::ScalarType;
use aerogel_compiler::{Arch, GpuDevice};
use aerogel_runtime::Buffer;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::error;
use super::foreign::device::opened;
use super::foreign::dlpack::{CUDA, DlManaged, DlTensor, DlType, NAME};
use super::ndarray::{NativeNdarray, interface};
use super::program::settings;

/// The data that an exported tensor keeps alive.
struct Exported {
    _shape: Vec<i64>,
    _buffer: Arc<Buffer>,
}

unsafe extern "C" fn give_back(managed: *mut DlManaged) {
    // SAFETY: both were made by `export`, and are given back once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Exported>()));
    }
}

unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a capsule that is being destroyed; a consumed capsule has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            let found = ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr());
            give_back(found.cast());
        }
    }
}

impl NativeNdarray {
    /// The address of the elements on the GPU, for others from now on.
    fn lend_there(&self, py: Python<'_>) -> PyResult<(u64, u32, GpuDevice)> {
        let Arch::Cuda(number) = settings(py)?.arch else {
            return Err(PyAttributeError::new_err(
                "the array is in host memory: kernels run on the CPU",
            ));
        };
        let device = opened(py)?;
        let address = py
            .detach(|| device.lend(&self.buffer))
            .map_err(error::memory)?;
        Ok((address, number, device))
    }

    fn whole_shape(&self) -> Vec<usize> {
        [self.shape.as_slice(), &self.element.extents()].concat()
    }
}

/// The value of `__cuda_array_interface__` for an array.
pub(super) fn cuda_interface<'py>(
    py: Python<'py>,
    array: &NativeNdarray,
) -> PyResult<Bound<'py, PyDict>> {
    let (address, _, device) = array.lend_there(py)?;
    let shape = array.whole_shape();
    let interface = interface(
        py,
        array.ty,
        &shape,
        address as usize,
        array.read_only.is_none(),
    )?;
    interface.set_item("strides", py.None())?;
    let stream = device
        .stream()
        .map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    interface.set_item("stream", stream)?;
    Ok(interface)
}

/// DLPack's name for where an array's memory is: `(1, 0)` for the host.
pub(super) fn dlpack_device(py: Python<'_>, array: &NativeNdarray) -> PyResult<(i32, u32)> {
    Ok(match settings(py)?.arch {
        Arch::Cuda(number) if !array.buffer.is_borrowed() => (CUDA, number),
        _ => (1, 0),
    })
}

/// A capsule of DLPack's, over the memory of an array on the GPU.
pub(super) fn export<'py>(py: Python<'py>, array: &NativeNdarray) -> PyResult<Bound<'py, PyAny>> {
    if array.read_only.is_some() {
        return Err(PyBufferError::new_err(
            "the array is read-only, which DLPack cannot express",
        ));
    }
    let (address, number, _) = array.lend_there(py)?;
    let shape: Vec<i64> = array.whole_shape().into_iter().map(|e| e as i64).collect();
    let (ndim, start) = (shape.len() as i32, shape.as_ptr());
    let code = match array.ty {
        ScalarType::U1 => 6,
        ScalarType::BF16 => 4,
        ty if ty.is_float() => 2,
        ty => u8::from(!ty.is_signed()),
    };
    let context = Box::new(Exported {
        _shape: shape,
        _buffer: array.buffer.clone(),
    });
    let managed = Box::new(DlManaged {
        tensor: DlTensor {
            data: address as *mut c_void,
            device: CUDA,
            device_number: number as i32,
            ndim,
            dtype: DlType {
                code,
                bits: 8 * array.ty.bytes() as u8,
                lanes: 1,
            },
            shape: start,
            strides: std::ptr::null(),
            byte_offset: 0,
        },
        context: Box::into_raw(context).cast(),
        deleter: Some(give_back),
    });
    let managed = Box::into_raw(managed);
    // SAFETY: Python's own function; the capsule gives the tensor back unless somebody takes it.
    unsafe {
        let capsule = ffi::PyCapsule_New(managed.cast(), NAME.as_ptr(), Some(drop_capsule));
        if capsule.is_null() {
            give_back(managed);
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr(py, capsule))
    }
}
