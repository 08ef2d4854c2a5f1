//! Python numbers as elements and indices, and copies between layouts.
#![expect(
    unsafe_code,
    reason = "memory that NumPy owns, and instances that a base class makes"
)]

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use aerogel_base::{Scalar, ScalarType};
use aerogel_runtime::{Access, Buffer, MemoryError, residence};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PySlice, PyTuple, PyType, PyTypeMethods};
use pyo3::{PyTypeInfo, ffi};

use super::element::NativeElement;
use super::{error, program};
use crate::host::TensorShape;

/// Creates instances of a class `T`, and of classes derived from it, without running Python code.
pub(crate) struct Maker<T>(ffi::newfunc, PhantomData<T>);

/// That of a class.
pub(crate) fn maker_of<T: PyTypeInfo>(py: Python<'_>) -> Option<Maker<T>> {
    // SAFETY: the slot of a class that is alive, which has the type that its number says.
    let new = unsafe {
        let slot = ffi::PyType_GetSlot(T::type_object_raw(py), ffi::Py_tp_new);
        std::mem::transmute::<*mut std::ffi::c_void, Option<ffi::newfunc>>(slot)
    };
    Some(Maker(new?, PhantomData))
}

impl<T: PyTypeInfo> Maker<T> {
    /// An instance of a class that is `T` or derived from it.
    pub(crate) fn make<'py>(
        &self,
        class: &Bound<'py, PyType>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        assert!(class.is_subclass_of::<T>()?, "`T` is the base class");
        // SAFETY: `T` makes instances of classes derived from it, and the arguments are a tuple.
        unsafe {
            let made = (self.0)(class.as_type_ptr(), args.as_ptr(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(class.py(), made)
        }
    }
}

/// The number that a scalar is in Python.
pub(crate) fn to_python(py: Python<'_>, value: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(if value.ty().is_float() {
        PyFloat::new(py, value.as_f64()).into_any()
    } else if value.ty() == ScalarType::U64 {
        value.slot().into_pyobject(py)?.into_any()
    } else {
        (value.slot() as i64).into_pyobject(py)?.into_any()
    })
}

/// A Python number as what is written to one element. A float of Python's is no integer: it is refused and not cut
/// off. NumPy's numbers are converted, as those of an array are.
pub(crate) fn to_element(value: &Bound<'_, PyAny>, ty: ScalarType) -> PyResult<Scalar> {
    if ty.is_float() {
        return to_scalar(value, ty);
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Err(PyTypeError::new_err(format!(
            "an element of type {ty} takes an integer, not {:?}: write `int(...)` around it",
            number.value()
        )));
    }
    to_scalar(value, ty)
}

/// Checks that an integer fits a type.
fn fitting(py: Python<'_>, whole: i128, ty: ScalarType) -> PyResult<Scalar> {
    let scalar = match ty {
        ScalarType::U1 if i64::try_from(whole).is_ok() => return Ok(Scalar::bool(whole != 0)),
        _ => Scalar::int(ty, whole),
    };
    if scalar.as_i128() == whole {
        return Ok(scalar);
    }
    Err(too_large(py, &whole.to_string(), ty))
}

fn too_large(py: Python<'_>, number: &str, ty: ScalarType) -> PyErr {
    let (lo, hi) = crate::infer::int_range(ty);
    let message =
        format!("{number} does not fit an element of type {ty}: its values are {lo} to {hi}");
    error::exception(py, "AerogelRuntimeTypeError", message)
}

/// A Python number as a scalar: an integer as it is, a float for an integer cut off.
pub(crate) fn to_scalar(value: &Bound<'_, PyAny>, ty: ScalarType) -> PyResult<Scalar> {
    if ty.is_float() {
        return Ok(Scalar::float(ty, value.extract::<f64>()?));
    }
    let py = value.py();
    // `__index__` is what integers have, NumPy's too, and floats have not.
    if let Ok(whole) = value.extract::<i128>() {
        return fitting(py, whole, ty);
    }
    if value.is_instance_of::<PyInt>() {
        return Err(too_large(py, "an integer of more than 128 bits", ty));
    }
    let number: f64 = value.extract()?;
    let cut = number.trunc();
    // The conversion is exact where the number is within, and else gives what is outside of every type.
    match ty {
        ScalarType::U1 => Ok(Scalar::bool(number != 0.0)),
        _ if number.is_nan() => Err(too_large(py, "nan", ty)),
        _ => fitting(py, cut as i128, ty),
    }
}

/// More lists inside each other than a matrix has.
const MAX_NESTING: usize = 16;
/// More parts than an element has.
const MAX_PARTS: usize = 1 << 20;

/// The numbers of a matrix, a (nested) list or an array, row by row.
pub(crate) fn flatten<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut numbers = Vec::new();
    flatten_into(value, 0, &mut 0, &mut numbers)?;
    Ok(numbers)
}

fn flatten_into<'py>(
    value: &Bound<'py, PyAny>,
    depth: usize,
    n_parts: &mut usize,
    out: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let py = value.py();
    *n_parts += 1;
    if depth > MAX_NESTING || *n_parts > MAX_PARTS {
        let wrong = match depth > MAX_NESTING {
            true => format!("that is nested more than {MAX_NESTING} deep, or contains itself"),
            false => format!("of more than {MAX_PARTS} parts"),
        };
        return Err(PyValueError::new_err(format!(
            "an element takes a number or a list of numbers, not a list {wrong}"
        )));
    }
    let depth = depth + 1;
    if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
        out.push(value.clone());
    } else if let Ok(list) = value.cast::<PyList>() {
        for item in list {
            flatten_into(&item, depth, n_parts, out)?;
        }
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        for item in tuple {
            flatten_into(&item, depth, n_parts, out)?;
        }
    } else if let Ok(element) = value.cast::<NativeElement>() {
        let numbers = element.borrow().numbers(py);
        flatten_into(&numbers, depth, n_parts, out)?;
    } else if value.hasattr(pyo3::intern!(py, "tolist"))? && !is_numpy_scalar(value)? {
        flatten_into(
            &value.call_method0(pyo3::intern!(py, "tolist"))?,
            depth,
            n_parts,
            out,
        )?;
    } else {
        out.push(value.clone());
    }
    Ok(())
}

/// Whether this is one number of NumPy's, which keeps its type: an element takes 2.0 of `float32`, but not of Python.
fn is_numpy_scalar(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let ndim = value.getattr_opt(pyo3::intern!(value.py(), "ndim"))?;
    Ok(ndim.is_some_and(|ndim| ndim.extract::<usize>().is_ok_and(|ndim| ndim == 0)))
}

/// The numbers for an element of a shape, row by row; or, for a message, what is wrong with
/// them. A flat list of the right length serves for a matrix.
pub(crate) fn components<'py>(
    value: &Bound<'py, PyAny>,
    shape: TensorShape,
) -> PyResult<Result<Vec<Bound<'py, PyAny>>, String>> {
    let (n, m) = shape.rows_and_columns();
    let wanted = (n as usize, m as usize);
    let numbers = flatten(value)?;
    let count = wanted.0 * wanted.1;
    if numbers.len() != count {
        return Ok(Err(format!(
            "has {count} components, got {}",
            numbers.len()
        )));
    }
    match extents(value)? {
        Some(given) if given != wanted && given.0 * given.1 == count => {
            let what = match shape {
                TensorShape::Matrix(n, m) => format!("is a matrix of {n}x{m}"),
                _ => format!("is a vector of {n}"),
            };
            Ok(Err(format!(
                "{what}, got a matrix of {}x{}",
                given.0, given.1
            )))
        }
        _ => Ok(Ok(numbers)),
    }
}

/// The numbers that fill an element of `n` rows, `m` columns and `ndim` axes: those of a matrix, or one for all.
///
/// Raises `ValueError` for an element of another shape.
#[pyfunction]
pub(crate) fn components_to_fill<'py>(
    value: &Bound<'py, PyAny>,
    n: u32,
    m: u32,
    ndim: u32,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let numbers = flatten(value)?;
    if let [number] = &numbers[..] {
        return Ok(vec![number.clone(); (n * m) as usize]);
    }
    components(value, TensorShape::from_axes(n, m, ndim))?
        .map_err(|wrong| PyValueError::new_err(format!("an element {wrong}")))
}

/// Rows and columns of a matrix, an array with two axes, or a list of lists.
fn extents(value: &Bound<'_, PyAny>) -> PyResult<Option<(usize, usize)>> {
    let py = value.py();
    let is_list =
        |v: &Bound<'_, PyAny>| v.is_instance_of::<PyList>() || v.is_instance_of::<PyTuple>();
    if is_list(value) {
        let n = value.len()?;
        if n == 0 {
            return Ok(None);
        }
        let mut extents: Option<Option<(usize, usize)>> = None;
        for row in value.try_iter()? {
            let row = row?;
            let is_number = row.is_instance_of::<PyFloat>() || row.is_instance_of::<PyInt>();
            let is_row = is_list(&row)
                || is_matrix(&row)
                || !is_number
                    && row.hasattr(pyo3::intern!(py, "tolist"))?
                    && !is_numpy_scalar(&row)?;
            let here = if is_row { Some((n, row.len()?)) } else { None };
            if *extents.get_or_insert(here) != here {
                return Err(PyValueError::new_err(
                    "the rows of a matrix must have one length",
                ));
            }
        }
        return Ok(extents.flatten());
    }
    if let Ok(element) = value.cast::<NativeElement>() {
        return Ok(element.borrow().rows_and_columns());
    }
    match value.getattr_opt(pyo3::intern!(py, "shape"))? {
        Some(shape) => Ok(shape.extract().ok()),
        None => Ok(None),
    }
}

/// Whether this is a `ti.Matrix` or `ti.Vector`.
pub(crate) fn is_matrix(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<NativeElement>()
}

/// The indices in a subscript: `x[None]`, `x[i]`, `x[i, j]`, `x[ti.Vector([i, j])]`.
pub(crate) fn parse_index(key: &Bound<'_, PyAny>, out: &mut [i64; 12]) -> PyResult<usize> {
    if key.is_none() {
        return Ok(0);
    }
    let is_several =
        key.is_instance_of::<PyTuple>() || key.is_instance_of::<PyList>() || is_matrix(key);
    if !is_several {
        out[0] = one_index(key)?;
        return Ok(1);
    }
    let mut n = 0;
    let mut push = |item: &Bound<'_, PyAny>| -> PyResult<()> {
        if n == out.len() {
            return Err(PyTypeError::new_err("more than 12 indices"));
        }
        out[n] = one_index(item)?;
        n += 1;
        Ok(())
    };
    if let Ok(tuple) = key.cast::<PyTuple>() {
        for item in tuple {
            if item.is_none() {
                continue;
            }
            push(&item)?;
        }
    } else {
        for item in key.try_iter()? {
            push(&item?)?;
        }
    }
    Ok(n)
}

fn one_index(item: &Bound<'_, PyAny>) -> PyResult<i64> {
    item.extract::<i64>().map_err(|_| bad_index(item))
}

fn bad_index(item: &Bound<'_, PyAny>) -> PyErr {
    if item.is_instance_of::<PyInt>() {
        let message = format!("index {item} is out of range: it has more than 64 bits");
        return error::exception(item.py(), "AerogelIndexError", message);
    }
    let remedy = match item.is_instance_of::<PySlice>() {
        true => ": slicing is for tensors and NumPy, `x.to_numpy()[1:3]` copies",
        false => "",
    };
    PyTypeError::new_err(format!(
        "an index must be an integer, not {}{remedy}",
        item.get_type()
            .name()
            .map_or_else(|_| "that".into(), |n| n.to_string())
    ))
}

/// One dimension of a copy: how many, and the bytes from one to the next on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dim {
    pub(crate) extent: usize,
    pub(crate) dst: usize,
    pub(crate) src: usize,
}

/// Joins dimensions that are contiguous on both sides; the result's last dimension is the innermost.
fn collapse(mut dims: Vec<Dim>) -> Vec<Dim> {
    dims.retain(|d| d.extent != 1);
    dims.sort_by_key(|d| std::cmp::Reverse((d.dst, d.src)));
    let mut out: Vec<Dim> = Vec::new();
    for dim in dims.into_iter().rev() {
        match out.last_mut() {
            Some(inner)
                if dim.dst == inner.dst.wrapping_mul(inner.extent)
                    && dim.src == inner.src.wrapping_mul(inner.extent) =>
            {
                inner.extent *= dim.extent;
            }
            _ => out.push(dim),
        }
    }
    out.reverse();
    out
}

/// Copies elements of `item` bytes between two buffers that arrange them differently. A source stride of 0 repeats.
pub(crate) fn copy(
    dst: (&Buffer, usize),
    src: (&Buffer, usize),
    dims: Vec<Dim>,
    item: usize,
) -> Result<(), MemoryError> {
    if dims.iter().any(|d| d.extent == 0) {
        return Ok(());
    }
    let check = |(buffer, base): (&Buffer, usize), stride: fn(&Dim) -> usize| {
        let last: usize = base
            + dims
                .iter()
                .map(|d| (d.extent - 1) * stride(d))
                .sum::<usize>();
        if last + item > buffer.len() {
            return Err(MemoryError::OutOfRange {
                offset: last,
                bytes: item,
                len: buffer.len(),
            });
        }
        Ok(last + item)
    };
    let to_end = check(dst, |d| d.dst)?;
    let from_end = check(src, |d| d.src)?;
    // Of a buffer that is on a device, a small part is copied alone.
    let is_part = |buffer: &Buffer, bytes: usize, access| {
        buffer.is_away(access) && bytes < buffer.len() / PART
    };
    let is_block = block(&dims, item).is_some();
    let (mut home_from, mut home_to) = (None, None);
    let both = (!src.0.is_borrowed() && !dst.0.is_borrowed()).then(residence::gathering);
    let (mut part_from, mut part_to) = (Vec::new(), Vec::new());
    let from = if is_part(src.0, from_end - src.1, Access::Read) {
        part_from.resize(from_end - src.1, 0);
        src.0.read(src.1, &mut part_from)?;
        part_from.as_ptr()
    } else {
        let home = home_from.insert(src.0.at_home(Access::Read)?);
        home.address().wrapping_add(src.1)
    };
    let to = if is_block && is_part(dst.0, to_end - dst.1, Access::Change) {
        part_to.resize(to_end - dst.1, 0);
        part_to.as_mut_ptr()
    } else {
        let all = is_block && to_end - dst.1 == dst.0.len();
        let access = if all { Access::Replace } else { Access::Change };
        let home = home_to.insert(dst.0.at_home(access)?);
        home.address().wrapping_add(dst.1)
    };
    drop(both);
    let dims = collapse(dims);
    // SAFETY: `check` compared the last byte of either side with its buffer, and parts are as long; distinct buffers do
    // not overlap.
    unsafe { copy_shared(to, from, &dims, item) };
    match part_to.is_empty() {
        true => Ok(()),
        false => dst.0.write(dst.1, &part_to),
    }
}

/// A range smaller than this fraction of a buffer is copied without the rest.
const PART: usize = 4;

/// If the destination is one block of cells of `cell` bytes without gaps: how many.
pub(crate) fn block(dims: &[Dim], cell: usize) -> Option<usize> {
    let same_on_both_sides = dims.iter().map(|d| Dim { src: d.dst, ..*d }).collect();
    match collapse(same_on_both_sides)[..] {
        [] => Some(1),
        [dim] if dim.dst == cell => Some(dim.extent),
        _ => None,
    }
}

/// Accesses the bytes of a buffer: without the GIL where they are on a device, on which a launch of another thread may have to
/// end before.
pub(crate) fn patiently<T: Send>(
    py: Python<'_>,
    buffer: &Buffer,
    access: impl FnOnce() -> T + Send,
) -> T {
    match buffer.is_away(Access::Change) {
        true => py.detach(access),
        false => access(),
    }
}

/// Repeats a pattern over `n` times its length, on the threads of the program where that is long.
pub(crate) fn repeat(
    (buffer, base): (&Buffer, usize),
    pattern: &[u8],
    n: usize,
) -> Result<(), MemoryError> {
    let bytes = n * pattern.len();
    let is_shared = bytes >= SHARED && !buffer.is_away(Access::Change);
    let Some(compiler) = is_shared.then(program::present_compiler).flatten() else {
        return buffer.fill(base, bytes, pattern);
    };
    let turns = (SHARED / pattern.len()).max(1);
    let failed = Mutex::new(Ok(()));
    let pool = compiler.pool();
    pool.run(n.div_ceil(turns), pool.n_threads(), &|k| {
        let first = k * turns;
        let part = turns.min(n - first) * pattern.len();
        if let Err(e) = buffer.fill_part(base + first * pattern.len(), part, pattern, bytes) {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Err(e);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// From so many bytes on, threads share a copy.
const SHARED: usize = 128 << 10;
/// How many bytes one thread copies before it takes the next chunk.
const CHUNK: usize = 32 << 10;

/// An address whose bytes several threads use, each its own.
#[derive(Clone, Copy)]
struct Side(*mut u8);

// SAFETY: `copy_shared` gives each thread elements that no other reads or writes.
unsafe impl Sync for Side {}

impl Side {
    fn at(&self, offset: usize) -> *mut u8 {
        self.0.wrapping_add(offset)
    }
}

/// Copies elements of 1, 2, 4 or 8 bytes between two places; a stride backwards is a number that wraps around.
///
/// # Safety
/// As for `copy_shared`.
pub(crate) unsafe fn copy_strided(to: *mut u8, from: *const u8, dims: Vec<Dim>, item: usize) {
    if dims.iter().all(|d| d.extent != 0) {
        // SAFETY: the caller's promise.
        unsafe { copy_shared(to, from, &collapse(dims), item) };
    }
}

/// `copy_dims` on the threads of the program, where there is much to copy.
///
/// # Safety
/// As for `copy_dims`; distinct indices must lead to distinct elements of the destination.
unsafe fn copy_shared(to: *mut u8, from: *const u8, dims: &[Dim], item: usize) {
    let bytes = dims.iter().map(|d| d.extent).product::<usize>() * item;
    let longest = (0..dims.len()).max_by_key(|&k| dims[k].extent);
    let compiler = (bytes >= SHARED).then(program::present_compiler).flatten();
    let (Some(split), Some(compiler)) = (longest, compiler) else {
        // SAFETY: the caller's promise.
        return unsafe { copy_dims(to, from, dims, item) };
    };
    let whole = dims[split];
    let turns = whole.extent.div_ceil(bytes.div_ceil(CHUNK));
    let (to, from) = (Side(to), Side(from.cast_mut()));
    let chunk = |k: usize| {
        let first = k * turns;
        let mut part = dims.to_vec();
        part[split].extent = turns.min(whole.extent - first);
        let (to, from) = (
            to.at(first.wrapping_mul(whole.dst)),
            from.at(first.wrapping_mul(whole.src)),
        );
        // SAFETY: the caller's promise, for some of the indices along one dimension.
        unsafe { copy_dims(to, from, &part, item) };
    };
    let pool = compiler.pool();
    pool.run(whole.extent.div_ceil(turns), pool.n_threads(), &chunk);
}

/// # Safety
/// All elements that the dimensions reach must lie in live memory on either side, and the sides must not overlap.
unsafe fn copy_dims(to: *mut u8, from: *const u8, dims: &[Dim], item: usize) {
    let Some((dim, inner)) = dims.split_first() else {
        // SAFETY: the caller's promise.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, item) };
    };
    if inner.is_empty() {
        if dim.dst == item && dim.src == item {
            // SAFETY: the caller's promise.
            return unsafe { std::ptr::copy_nonoverlapping(from, to, item * dim.extent) };
        }
        // SAFETY: the caller's promise.
        return unsafe {
            match item {
                1 => copy_row::<1>(to, from, *dim),
                2 => copy_row::<2>(to, from, *dim),
                4 => copy_row::<4>(to, from, *dim),
                _ => copy_row::<8>(to, from, *dim),
            }
        };
    }
    for k in 0..dim.extent {
        // SAFETY: the caller's promise.
        unsafe {
            copy_dims(
                to.wrapping_add(k.wrapping_mul(dim.dst)),
                from.wrapping_add(k.wrapping_mul(dim.src)),
                inner,
                item,
            )
        };
    }
}

/// # Safety
/// As for `copy_dims`.
unsafe fn copy_row<const ITEM: usize>(to: *mut u8, from: *const u8, dim: Dim) {
    for k in 0..dim.extent {
        let src = from
            .wrapping_add(k.wrapping_mul(dim.src))
            .cast::<[u8; ITEM]>();
        let dst = to
            .wrapping_add(k.wrapping_mul(dim.dst))
            .cast::<[u8; ITEM]>();
        // SAFETY: the caller's promise.
        unsafe { dst.write(src.read()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_dimensions_join() {
        let dim = |extent, dst, src| Dim { extent, dst, src };
        assert_eq!(
            collapse(vec![
                dim(2, 24, 24),
                dim(3, 8, 8),
                dim(1, 99, 7),
                dim(2, 4, 4)
            ]),
            [dim(12, 4, 4)]
        );
        assert_eq!(
            collapse(vec![dim(2, 4, 12), dim(3, 8, 4)]),
            [dim(3, 8, 4), dim(2, 4, 12)]
        );
    }

    #[test]
    fn copies_transpose() {
        let src = Buffer::zeroed(6).unwrap();
        src.write(0, &[0, 1, 2, 3, 4, 5]).unwrap();
        let dst = Buffer::zeroed(6).unwrap();
        // A 2 by 3 matrix into its transpose.
        let dims = vec![
            Dim {
                extent: 2,
                dst: 1,
                src: 3,
            },
            Dim {
                extent: 3,
                dst: 2,
                src: 1,
            },
        ];
        copy((&dst, 0), (&src, 0), dims.clone(), 1).unwrap();
        let mut out = [0; 6];
        dst.read(0, &mut out).unwrap();
        assert_eq!(out, [0, 3, 1, 4, 2, 5]);
        assert!(copy((&dst, 1), (&src, 0), dims, 1).is_err());
    }
}
