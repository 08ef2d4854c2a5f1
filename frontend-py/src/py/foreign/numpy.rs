//! NumPy's arrays, and others that return NumPy's structure.
//!
//! They are read through `__array_struct__`, which is part of no ABI but NumPy's array interface and so works for
//! every version of Python and NumPy. Of a subclass it is the base class's.
#![expect(unsafe_code, reason = "a structure of NumPy's")]

use std::ffi::{c_char, c_int, c_void};

use aerogel_base::ScalarType;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyType};

use super::array::{ForeignArray, Kind};
use super::layout::{Layout, READ_ONLY, scalar_of};
use super::packages::{Refused, loaded};

/// NumPy's `PyArrayInterface`.
#[repr(C)]
struct ArrayInterface {
    two: c_int,
    nd: c_int,
    typekind: c_char,
    itemsize: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *mut c_void,
    descr: *mut c_void,
}

const NOT_SWAPPED: c_int = 0x200;
const WRITEABLE: c_int = 0x400;

/// NumPy's classes.
struct Classes {
    array: Py<PyType>,
    number: Py<PyType>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<Option<&Classes>> {
    if let Some(classes) = CLASSES.get(py) {
        return Ok(Some(classes));
    }
    let Some(numpy) = loaded(py, "numpy")? else {
        return Ok(None);
    };
    // NumPy may be in the midst of being imported.
    let (Some(array), Some(number)) =
        (numpy.getattr_opt("ndarray")?, numpy.getattr_opt("generic")?)
    else {
        return Ok(None);
    };
    let classes = Classes {
        array: array.cast_into()?.unbind(),
        number: number.cast_into()?.unbind(),
    };
    Ok(Some(CLASSES.get_or_init(py, || classes)))
}

/// The array that a value is, if it is one of NumPy's, or one of its numbers.
pub(super) fn of(value: &Bound<'_, PyAny>) -> Result<Option<ForeignArray>, Refused> {
    let py = value.py();
    let Some(classes) = classes(py)? else {
        return Ok(None);
    };
    let class = value.get_type();
    let (array, number) = (classes.array.bind(py), classes.number.bind(py));
    let name = pyo3::intern!(py, "__array_struct__");
    if class.is(array) {
        return read(&value.getattr(name)?, value, Kind::Numpy).map(Some);
    }
    if class.is_subclass(array)? {
        expect_no_mask(value)?;
        let own = array.getattr(name)?.call_method1("__get__", (value,))?;
        return read(&own, value, Kind::Numpy).map(Some);
    }
    if class.is_subclass(number)? {
        let own = value.getattr(name)?;
        let mut found = read(&own, value, Kind::Numpy)?;
        found.read_only =
            Some("is a NumPy number, a copy of an element (pass `x[i, ...]` instead of `x[i]`)");
        return Ok(Some(found));
    }
    Ok(None)
}

/// Refuses a masked array that has a mask: kernels would compute with the elements that it hides.
fn expect_no_mask(value: &Bound<'_, PyAny>) -> Result<(), Refused> {
    let Some(masked) = loaded(value.py(), "numpy.ma")? else {
        return Ok(());
    };
    let Some(class) = masked.getattr_opt("MaskedArray")? else {
        return Ok(());
    };
    let no_mask = masked.getattr("nomask")?;
    if value.is_instance(&class)? && !masked.call_method1("getmask", (value,))?.is(&no_mask) {
        return Err(Refused::kind(
            "it is a masked array, and kernels do not support masks: pass `array.filled(value)`, or `array.data`",
        ));
    }
    Ok(())
}

/// The array that a capsule of `__array_struct__` describes.
pub(super) fn read(
    capsule: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    kind: Kind,
) -> Result<ForeignArray, Refused> {
    let capsule = capsule.cast::<PyCapsule>().map_err(PyErr::from)?;
    let raw = capsule.pointer_checked(None)?;
    // SAFETY: by NumPy's array interface the capsule's pointer is to this struct, alive while the capsule is.
    let interface = unsafe { raw.cast::<ArrayInterface>().as_ref() };
    let nd = usize::try_from(interface.nd).unwrap_or(0);
    let of_axes = |start: *const isize| -> Option<&[isize]> {
        if nd == 0 || start.is_null() {
            return None;
        }
        // SAFETY: `shape` points to `nd` sizes, `strides` to as many strides if it is not null.
        Some(unsafe { std::slice::from_raw_parts(start, nd) })
    };
    let shape = of_axes(interface.shape).unwrap_or(&[]);
    let itemsize = usize::try_from(interface.itemsize).unwrap_or(0);
    let flag = |f: c_int| interface.flags & f != 0;
    let layout = Layout {
        ty: scalar_of(interface.typekind as u8, itemsize)
            .filter(|&ty| ty != ScalarType::BF16 || is_bfloat(value))
            .filter(|_| flag(NOT_SWAPPED) || itemsize == 1),
        itemsize,
        shape: shape.iter().map(|&e| e as usize).collect(),
        strides: of_axes(interface.strides).map(<[isize]>::to_vec),
        address: interface.data as usize,
        read_only: (!flag(WRITEABLE)).then_some(READ_ONLY),
    };
    // The capsule may be what keeps the memory.
    let held = || std::sync::Arc::new(capsule.clone().unbind()) as _;
    let held = (kind == Kind::Protocol).then(held);
    Ok(ForeignArray::new(
        layout,
        kind,
        value.clone().unbind(),
        held,
    ))
}

/// Whether the elements of an array are those of the package `ml_dtypes`, and not two bytes of something else.
fn is_bfloat(array: &Bound<'_, PyAny>) -> bool {
    let name = array
        .getattr("dtype")
        .and_then(|dtype| dtype.getattr("name"));
    name.is_ok_and(|name| name.eq("bfloat16").unwrap_or(false))
}
