//! DLPack's structures, and capsules of them that other packages return.
//!
//! A capsule is of the first kind (`dltensor`) or versioned (`dltensor_versioned`), which says whether the memory may be
//! written and whether it is a copy.
#![expect(unsafe_code, reason = "structures of C that packages hand each other")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use aerogel_base::ScalarType;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::layout::{Layout, READ_ONLY, ReadOnly, scalar_of};
use super::packages::Refused;

/// DLPack's number for memory of CUDA devices, and for such as moves between them and the host.
pub(crate) const CUDA: i32 = 2;
pub(crate) const MANAGED: i32 = 13;
/// And for memory of the host: its own, and such as devices see too.
pub(crate) const HOST: [i32; 3] = [1, 3, 11];

#[repr(C)]
pub(crate) struct DlTensor {
    pub(crate) data: *mut c_void,
    pub(crate) device: i32,
    pub(crate) device_number: i32,
    pub(crate) ndim: i32,
    pub(crate) dtype: DlType,
    pub(crate) shape: *const i64,
    pub(crate) strides: *const i64,
    pub(crate) byte_offset: u64,
}
#[repr(C)]
pub(crate) struct DlType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}
#[repr(C)]
pub(crate) struct DlManaged {
    pub(crate) tensor: DlTensor,
    pub(crate) context: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut Self)>,
}
#[repr(C)]
struct DlVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

/// The version whose structures these are.
const VERSION: (u32, u32) = (1, 0);
const FLAG_READ_ONLY: u64 = 1;
const FLAG_COPIED: u64 = 2;

/// Why an array that a producer has copied must not be written.
pub(super) const A_COPY: &str = "is a copy that its `__dlpack__` made";

pub(crate) const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

/// A tensor that was taken out of its capsule, given back when it is dropped.
enum Managed {
    First(NonNull<DlManaged>),
    Versioned(NonNull<DlVersioned>),
}

pub(crate) struct Held(Managed);

// SAFETY: DLPack lets any thread give a tensor back.
unsafe impl Send for Held {}
// SAFETY: nothing is changed through a reference.
unsafe impl Sync for Held {}

/// The pointer in a capsule of a name, which gets another name: whoever renames it gives the tensor back.
fn take(capsule: &Bound<'_, PyAny>, name: &CStr, used: &CStr) -> PyResult<NonNull<c_void>> {
    // SAFETY: Python's own function, which looks whether it is a capsule of this name.
    let found = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) };
    let Some(found) = NonNull::new(found) else {
        return Err(PyErr::fetch(capsule.py()));
    };
    // SAFETY: as above; a capsule of this name gives nothing back by itself.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    Ok(found)
}

impl Held {
    /// What an object's `__dlpack__` returns.
    pub(crate) fn ask(value: &Bound<'_, PyAny>, stream: Option<u64>) -> Result<Self, Refused> {
        let py = value.py();
        let name = pyo3::intern!(py, "__dlpack__");
        let options = PyDict::new(py);
        if let Some(stream) = stream {
            options.set_item("stream", stream)?;
        }
        let first = options.copy()?;
        options.set_item("max_version", VERSION)?;
        let capsule = match value.call_method(name, (), Some(&options)) {
            // Those who know no versions know no such argument either.
            Err(e) if e.is_instance_of::<PyTypeError>(py) => {
                value.call_method(name, (), Some(&first))
            }
            found => found,
        };
        let capsule = capsule.map_err(|e| Refused::raised(py, "its `__dlpack__`", &e))?;
        // SAFETY: Python's own function, which takes any object.
        let versioned =
            unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), VERSIONED.as_ptr()) } == 1;
        if !versioned {
            let found = take(&capsule, NAME, USED)
                .map_err(|e| Refused::raised(py, "its `__dlpack__` returns no capsule:", &e))?;
            return Ok(Self(Managed::First(found.cast())));
        }
        let held = Self(Managed::Versioned(
            take(&capsule, VERSIONED, USED_VERSIONED)?.cast(),
        ));
        match held.version() {
            major if major == VERSION.0 => Ok(held),
            major => Err(Refused::value(format!(
                "its `__dlpack__` returns version {major} of DLPack's structures, which is not known here"
            ))),
        }
    }

    /// Whether the producer says by flags whether the memory may be written.
    pub(super) fn is_versioned(&self) -> bool {
        matches!(self.0, Managed::Versioned(_))
    }

    fn version(&self) -> u32 {
        match &self.0 {
            Managed::First(_) => 0,
            // SAFETY: the structure lives until `self` is dropped, and begins with the version in all versions.
            Managed::Versioned(found) => unsafe { found.as_ref() }.major,
        }
    }

    fn tensor(&self) -> &DlTensor {
        // SAFETY: the structure lives until `self` is dropped.
        unsafe {
            match &self.0 {
                Managed::First(found) => &found.as_ref().tensor,
                Managed::Versioned(found) => &found.as_ref().tensor,
            }
        }
    }

    /// Why the memory must not be written, where the producer says so.
    fn read_only(&self) -> ReadOnly {
        let Managed::Versioned(found) = &self.0 else {
            return None;
        };
        // SAFETY: the structure lives until `self` is dropped.
        let flags = unsafe { found.as_ref() }.flags;
        match flags {
            _ if flags & FLAG_COPIED != 0 => Some(A_COPY),
            _ if flags & FLAG_READ_ONLY != 0 => Some(READ_ONLY),
            _ => None,
        }
    }

    /// What it describes.
    pub(crate) fn layout(&self) -> Result<Layout, Refused> {
        let tensor = self.tensor();
        let n = usize::try_from(tensor.ndim).unwrap_or(0);
        let of_axes = |start: *const i64| -> Option<Vec<i64>> {
            if n == 0 || start.is_null() {
                return None;
            }
            // SAFETY: DLPack has as many numbers there as there are axes, or no numbers at all.
            Some(unsafe { std::slice::from_raw_parts(start, n) }.to_vec())
        };
        let kind = match tensor.dtype.code {
            0 => b'i',
            1 => b'u',
            2 => b'f',
            4 => b'V',
            6 => b'b',
            _ => 0,
        };
        let (code, bits) = (tensor.dtype.code, tensor.dtype.bits);
        let itemsize = usize::from(bits) / 8;
        let ty: Option<ScalarType> = scalar_of(kind, itemsize);
        let ty = ty.filter(|_| tensor.dtype.lanes == 1 && bits.is_multiple_of(8));
        if ty.is_none() {
            let name = match code {
                0 => "integers",
                1 => "unsigned integers",
                2 => "floats",
                4 => "bfloats",
                5 => "complex numbers",
                _ => "values of another kind",
            };
            return Err(Refused::kind(format!(
                "kernels have no type for elements of \"{name} of {bits} bits\""
            )));
        }
        let shape = of_axes(tensor.shape).unwrap_or_default();
        let strides = of_axes(tensor.strides);
        let strides = strides.map(|all| {
            let all = all.into_iter();
            all.map(|s| s as isize * itemsize as isize).collect()
        });
        Ok(Layout {
            ty,
            itemsize,
            shape: shape.into_iter().map(|extent| extent as usize).collect(),
            strides,
            address: tensor.data as usize + tensor.byte_offset as usize,
            read_only: self.read_only(),
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: it is this one's, which nobody uses any more.
        unsafe {
            match self.0 {
                Managed::First(found) => {
                    if let Some(deleter) = found.as_ref().deleter {
                        deleter(found.as_ptr());
                    }
                }
                Managed::Versioned(found) => {
                    if let Some(deleter) = found.as_ref().deleter {
                        deleter(found.as_ptr());
                    }
                }
            }
        }
    }
}
