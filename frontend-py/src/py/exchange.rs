//! Arrays whose memory is on a GPU, to and from other packages: DLPack, and `__cuda_array_interface__`.
#![expect(unsafe_code, reason = "structures of C that packages hand each other")]

use std::any::Any;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use aerogel_base::ScalarType;
use aerogel_compiler::{Arch, GpuDevice};
use aerogel_runtime::Buffer;
use pyo3::exceptions::{
    PyAttributeError, PyBufferError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::error;
use super::ndarray::{NativeNdarray, interface};
use super::numpy_arrays::scalar_of;
use super::program::settings;

/// DLPack's number for memory of CUDA devices, and for such as moves between them and the host.
const CUDA: i32 = 2;
const MANAGED: i32 = 13;

/// An array of another package's on a GPU.
pub(crate) struct DeviceArray {
    pub(crate) ty: ScalarType,
    pub(crate) shape: Vec<usize>,
    pub(crate) writeable: bool,
    /// The memory, which keeps its owner.
    pub(crate) buffer: Arc<Buffer>,
}

impl DeviceArray {
    /// The array that a value is; nothing if its memory is the host's, or it is none.
    pub(crate) fn of(value: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = value.py();
        // NumPy's own, and all who speak to it.
        if value.hasattr(pyo3::intern!(py, "__array_struct__"))? {
            return Ok(None);
        }
        // A tensor that requires a gradient shows its memory when it is detached.
        let requires = value.getattr_opt(pyo3::intern!(py, "requires_grad"))?;
        let detached = match requires.map_or(Ok(false), |requires| requires.is_truthy())? {
            true => value.call_method0("detach")?,
            false => value.clone(),
        };
        let value = &detached;
        if let Some(found) = value.getattr_opt(pyo3::intern!(py, "__cuda_array_interface__"))? {
            return Self::by_interface(value, &found.cast_into::<PyDict>()?).map(Some);
        }
        let Some(kind) = value.getattr_opt(pyo3::intern!(py, "__dlpack_device__"))? else {
            return Ok(None);
        };
        if value.hasattr(pyo3::intern!(py, "_aerogel_field"))? {
            return Ok(None);
        }
        let (kind, number): (i32, i32) = kind.call0()?.extract()?;
        match kind {
            CUDA | MANAGED => Self::by_dlpack(value, number).map(Some),
            _ => Ok(None),
        }
    }

    fn by_interface(value: &Bound<'_, PyAny>, found: &Bound<'_, PyDict>) -> PyResult<Self> {
        let item = |name: &str| {
            let missing =
                || PyValueError::new_err(format!("`__cuda_array_interface__` has no {name:?}"));
            found.get_item(name)?.ok_or_else(missing)
        };
        let shape: Vec<usize> = item("shape")?.extract()?;
        let typestr: String = item("typestr")?.extract()?;
        let (address, read_only): (u64, bool) = item("data")?.extract()?;
        let mut letters = typestr.chars();
        let (order, kind) = (letters.next(), letters.next());
        let size: usize = letters.as_str().parse().unwrap_or(0);
        let kind = kind
            .filter(|_| order != Some('>'))
            .map_or(0, |kind| kind as u8);
        let ty = scalar_of(kind, size).ok_or_else(|| no_such_type(&typestr))?;
        let strides: Option<Vec<isize>> = match found.get_item("strides")? {
            Some(strides) if !strides.is_none() => Some(strides.extract()?),
            _ => None,
        };
        let size = size as isize;
        let strides = strides.map(|all| all.iter().map(|s| s / size).collect::<Vec<_>>());
        expect_plain(&shape, strides.as_deref())?;
        let stream: Option<u64> = match found.get_item("stream")? {
            Some(stream) if !stream.is_none() => Some(stream.extract()?),
            _ => None,
        };
        let device = opened(value.py())?;
        let owner = Box::new(value.clone().unbind());
        Self::adopt(&device, (ty, shape, !read_only), address, stream, owner)
    }

    fn by_dlpack(value: &Bound<'_, PyAny>, number: i32) -> PyResult<Self> {
        let py = value.py();
        let device = opened(py)?;
        if let Arch::Cuda(ours) = settings(py)?.arch
            && ours as i32 != number
        {
            return Err(PyValueError::new_err(format!(
                "the array lies on cuda:{number}, and kernels run on cuda:{ours}"
            )));
        }
        // The producer lets our stream wait for what he has asked of his.
        let options = PyDict::new(py);
        let stream = device
            .stream()
            .map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
        options.set_item("stream", stream)?;
        let capsule = value.call_method("__dlpack__", (), Some(&options))?;
        let held = Held::new(&capsule)?;
        // SAFETY: the structure lives until `held` is dropped.
        let tensor = unsafe { &held.0.as_ref().tensor };
        let n = usize::try_from(tensor.ndim).unwrap_or(0);
        let of_axes = |start: *const i64| -> Option<Vec<i64>> {
            // SAFETY: DLPack has as many numbers there as there are axes, or no numbers at all.
            (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, n) }.to_vec())
        };
        let shape = of_axes(tensor.shape).unwrap_or_default();
        let shape: Vec<usize> = shape.into_iter().map(|extent| extent as usize).collect();
        let strides = of_axes(tensor.strides);
        let strides = strides.map(|all| all.into_iter().map(|s| s as isize).collect::<Vec<_>>());
        expect_plain(&shape, strides.as_deref())?;
        let kind = match tensor.dtype.code {
            0 => b'i',
            1 => b'u',
            2 => b'f',
            4 => b'V',
            6 => b'b',
            _ => 0,
        };
        let bytes = usize::from(tensor.dtype.bits) / 8;
        let ty = scalar_of(kind, bytes).filter(|_| tensor.dtype.lanes == 1);
        let ty = ty.ok_or_else(|| {
            no_such_type(&format!(
                "{} of {} bits",
                tensor.dtype.code, tensor.dtype.bits
            ))
        })?;
        let address = tensor.data as u64 + tensor.byte_offset;
        // The first version of DLPack has no way to say that an array must not be written.
        Self::adopt(&device, (ty, shape, true), address, None, Box::new(held))
    }

    fn adopt(
        device: &GpuDevice,
        (ty, shape, writeable): (ScalarType, Vec<usize>, bool),
        address: u64,
        stream: Option<u64>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> PyResult<Self> {
        let bytes = shape
            .iter()
            .try_fold(ty.bytes() as usize, |b, &e| b.checked_mul(e));
        let bytes = bytes.ok_or_else(|| PyValueError::new_err("the array is too large"))?;
        if !address.is_multiple_of(u64::from(ty.bytes())) {
            return Err(PyValueError::new_err(format!(
                "the array begins at {address:#x}, where no {ty} may lie"
            )));
        }
        let buffer = device.adopt(address, bytes, stream, owner).map_err(|e| {
            PyValueError::new_err(format!("the array cannot be used on the device: {e}"))
        })?;
        Ok(Self {
            ty,
            shape,
            writeable,
            buffer: Arc::new(buffer),
        })
    }
}

fn no_such_type(name: &str) -> PyErr {
    PyTypeError::new_err(format!("kernels have no type for elements of {name:?}"))
}

/// That elements lie in row-major order without gaps; strides count elements.
fn expect_plain(shape: &[usize], strides: Option<&[isize]>) -> PyResult<()> {
    let Some(strides) = strides.filter(|_| !shape.contains(&0)) else {
        return Ok(());
    };
    let mut next = 1;
    for (&extent, &stride) in shape.iter().zip(strides).rev() {
        if extent > 1 && stride != next {
            return Err(PyValueError::new_err(
                "the array is not C-contiguous: pass a contiguous copy of it",
            ));
        }
        next *= extent as isize;
    }
    Ok(())
}

/// The GPU on which kernels run.
fn opened(py: Python<'_>) -> PyResult<GpuDevice> {
    match settings(py)?.arch {
        Arch::Cuda(number) => {
            aerogel_compiler::cuda(number).map_err(|e| PyRuntimeError::new_err(e.to_string()))
        }
        _ => Err(PyValueError::new_err(
            "the array lies on a CUDA device, and kernels run on the CPU: call ti.init(arch=ti.cuda), or copy the array to the host",
        )),
    }
}

/// DLPack's structures.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: i32,
    device_number: i32,
    ndim: i32,
    dtype: DlType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}
#[repr(C)]
struct DlType {
    code: u8,
    bits: u8,
    lanes: u16,
}
#[repr(C)]
struct DlManaged {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";

/// A tensor that was taken out of its capsule, given back when it is dropped.
struct Held(NonNull<DlManaged>);

// SAFETY: DLPack lets any thread give a tensor back.
unsafe impl Send for Held {}
// SAFETY: nothing is changed through a reference.
unsafe impl Sync for Held {}

impl Held {
    fn new(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        // SAFETY: Python's own function, which looks whether it is a capsule of this name.
        let found = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()) };
        let Some(found) = NonNull::new(found.cast::<DlManaged>()) else {
            return Err(PyErr::fetch(capsule.py()));
        };
        // SAFETY: as above; a capsule of this name gives nothing back by itself.
        if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr()) } != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok(Self(found))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: it is this one's, which nobody uses any more.
        unsafe {
            if let Some(deleter) = self.0.as_ref().deleter {
                deleter(self.0.as_ptr());
            }
        }
    }
}

/// What an exported tensor keeps.
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
    // SAFETY: Python calls this with the capsule that is about to go; what somebody has taken has another name.
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
                "the memory of the array is the host's: kernels run on the CPU",
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

/// What `__cuda_array_interface__` says of an array.
pub(super) fn cuda_interface<'py>(
    py: Python<'py>,
    array: &NativeNdarray,
) -> PyResult<Bound<'py, PyDict>> {
    let (address, _, device) = array.lend_there(py)?;
    let shape = array.whole_shape();
    let interface = interface(py, array.ty, &shape, address as usize, array.writeable)?;
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
    if !array.writeable {
        return Err(PyBufferError::new_err(
            "the array is read-only, which DLPack cannot say",
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

/// The type and the shape of an array on a GPU; nothing if the value is none.
#[pyfunction]
pub(crate) fn on_device<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<(&'static str, Bound<'py, PyTuple>)>> {
    let found = DeviceArray::of(value)?;
    let described = found.map(|found| {
        let shape = PyTuple::new(value.py(), &found.shape)?;
        Ok((found.ty.name(), shape))
    });
    described.transpose()
}
