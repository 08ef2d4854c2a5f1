//! `ti.ndarray`: an array of the program's own.

use std::sync::Arc;

use aerogel_base::ScalarType;
use aerogel_runtime::{Buffer, MemoryError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::buffer::{
    Dim, components, copy, parse_index, patiently, repeat, to_element, to_python, to_scalar,
};
use super::element::make_element;
use super::exchange;
use super::foreign::array::{Contents, Owner};
use super::foreign::layout::{READ_ONLY, ReadOnly};
use super::foreign::{self, Foreign, ForeignArray, Giver};
use super::tensor::NativeTensor;
use super::{error, later, recorder, traced};
use crate::host::TensorShape;

/// The object that `ti.ndarray` returns: a dense array of scalars, vectors or matrices.
#[pyclass(module = "aerogel._native", subclass, frozen)]
pub(crate) struct NativeNdarray {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) ty: ScalarType,
    pub(crate) shape: Vec<usize>,
    pub(crate) element: TensorShape,
    /// Why it may not be changed: if it is another's who does not allow it.
    pub(crate) read_only: ReadOnly,
    /// The owner of the memory, if it is another object.
    owner: Option<Owner>,
    /// The tensor of PyTorch's whose memory it is.
    torch: Option<Py<PyAny>>,
}

impl NativeNdarray {
    /// Components of an element.
    pub(crate) fn n_components(&self) -> usize {
        self.element.len() as usize
    }

    /// Whether the memory lives only as long as somebody else does, whom this array keeps.
    pub(crate) fn is_anothers(&self) -> bool {
        self.owner.is_some()
    }

    /// The object that is notified of writes.
    pub(crate) fn giver(&self, py: Python<'_>) -> Option<Giver> {
        let tensor = self.torch.as_ref()?;
        Some(Giver::Torch(tensor.clone_ref(py)))
    }

    /// Tells whose memory it is of a write of Python's.
    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        self.giver(py).map_or(Ok(()), |giver| giver.tell(py))
    }

    fn expect_writeable(&self) -> PyResult<()> {
        match self.read_only {
            None => Ok(()),
            Some(why) => Err(PyValueError::new_err(format!("the array {why}"))),
        }
    }

    /// Copies between this array and one of the same type and as many bytes.
    fn transfer(&self, py: Python<'_>, array: &ForeignArray, out: bool) -> PyResult<()> {
        if out {
            later::settle(py)?;
        }
        if array.ty != Some(self.ty) {
            return Err(PyValueError::new_err("the array is another than this one"));
        }
        let there = match out {
            true => Contents::Own(array.buffer()?),
            false => array.contents()?,
        };
        if there.len() != self.buffer.len() {
            return Err(PyValueError::new_err("the array is another than this one"));
        }
        let (to, from) = match out {
            true => (&*there, &*self.buffer),
            false => (&*self.buffer, &*there),
        };
        py.detach(|| self.copy(to, from)).map_err(error::memory)?;
        if out { Ok(()) } else { self.tell(py) }
    }

    /// Copies all of a buffer that has elements of this array's type.
    fn copy(&self, to: &Buffer, from: &Buffer) -> Result<(), MemoryError> {
        let item = self.ty.bytes() as usize;
        let (a, b) = (to.addresses(), from.addresses());
        if a.start < b.end && b.start < a.end {
            // A view of this array, or two arrays over one memory.
            let mut all = vec![0; from.len()];
            from.read(0, &mut all)?;
            return to.write(0, &all);
        }
        let dim = Dim {
            extent: to.len() / item,
            dst: item,
            src: item,
        };
        copy((to, 0), (from, 0), vec![dim], item)
    }

    fn offset(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        let axes = self.index(py, key)?.into_iter().zip(&self.shape);
        let linear = axes.fold(0, |linear, (i, size)| linear * size + i);
        Ok(linear * self.n_components() * self.ty.bytes() as usize)
    }

    /// The indices that a key means.
    pub(super) fn index(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let mut index = [0; 12];
        let n = parse_index(key, &mut index)?;
        if n != self.shape.len() {
            return Err(error::exception(
                py,
                "AerogelIndexError",
                format!("{n} indices for an array with {} axes", self.shape.len()),
            ));
        }
        for (&i, &extent) in index.iter().zip(&self.shape) {
            if i < 0 || i as usize >= extent {
                return Err(error::exception(
                    py,
                    "AerogelIndexError",
                    format!(
                        "index {:?} is out of range for the shape {:?}",
                        &index[..n],
                        self.shape
                    ),
                ));
            }
        }
        Ok(index[..n].iter().map(|&i| i as usize).collect())
    }
}

/// The array interface for NumPy.
pub(crate) fn interface<'py>(
    py: Python<'py>,
    ty: ScalarType,
    shape: &[usize],
    address: usize,
    writeable: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let kind = match ty {
        ScalarType::U1 => 'b',
        // NumPy has no such numbers, only packages on top of it: those are bytes.
        ScalarType::BF16 => 'V',
        ty if ty.is_float() => 'f',
        ty if ty.is_signed() => 'i',
        _ => 'u',
    };
    let bytes = ty.bytes();
    let order = if bytes == 1 { '|' } else { '<' };
    let interface = PyDict::new(py);
    interface.set_item("version", 3)?;
    interface.set_item("typestr", format!("{order}{kind}{bytes}"))?;
    interface.set_item("shape", PyTuple::new(py, shape)?)?;
    interface.set_item("data", (address, !writeable))?;
    Ok(interface)
}

#[pymethods]
impl NativeNdarray {
    /// An array of zeros, or one over the memory of a NumPy array.
    #[new]
    #[pyo3(signature = (dtype, shape, extents, over = None))]
    fn new(
        dtype: &str,
        shape: Vec<usize>,
        extents: Vec<usize>,
        over: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let ty = ScalarType::from_name(dtype)
            .ok_or_else(|| PyValueError::new_err(format!("there is no scalar type {dtype:?}")))?;
        let bytes = shape
            .iter()
            .chain(&extents)
            .try_fold(ty.bytes() as usize, |b, &e| b.checked_mul(e))
            .ok_or_else(|| PyValueError::new_err("the array is too large"))?;
        let element = TensorShape::from_extents(&extents)
            .ok_or_else(|| PyValueError::new_err("an element has two axes at most"))?;
        if let Some(Ok(tensor)) = over.map(|array| array.cast::<NativeTensor>()) {
            let operand = tensor.get().handed_out(tensor.py())?;
            if operand.ty != ty || operand.buffer.len() != bytes {
                return Err(PyValueError::new_err(
                    "the tensor is another than described",
                ));
            }
            return Ok(Self {
                buffer: operand.buffer,
                ty,
                shape,
                element,
                read_only: Some(READ_ONLY),
                owner: None,
                torch: None,
            });
        }
        let another = || PyValueError::new_err("the array is another than described");
        let Some(over) = over else {
            return Ok(Self {
                buffer: Arc::new(Buffer::zeroed(bytes).map_err(error::memory)?),
                ty,
                shape,
                element,
                read_only: None,
                owner: None,
                torch: None,
            });
        };
        let object = || over.clone().unbind();
        let (buffer, read_only, owner) = match foreign::of(over)? {
            Some(Foreign::Device(there)) => {
                if there.ty != ty {
                    return Err(another());
                }
                (there.buffer, there.read_only, Owner::of(object()))
            }
            Some(Foreign::Host(there)) => {
                if there.ty != Some(ty) {
                    return Err(another());
                }
                there.buffer()?;
                let read_only = there.read_only;
                let (buffer, owner) = there.into_parts(over.py());
                (Arc::new(buffer), read_only, owner)
            }
            None => return Err(another()),
        };
        if buffer.len() != bytes {
            return Err(another());
        }
        let torch = foreign::torch::is_tensor(over)?.then(object);
        Ok(Self {
            buffer,
            ty,
            shape,
            element,
            read_only,
            owner: Some(owner),
            torch,
        })
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    #[getter]
    fn element_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.element.extents())
    }

    #[getter]
    fn _dtype_name(&self) -> &'static str {
        self.ty.name()
    }

    /// NumPy's view of the memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        later::settle(py)?;
        let shape = [self.shape.as_slice(), &self.element.extents()].concat();
        let address = self.buffer.lend().map_err(error::memory)? as usize;
        interface(py, self.ty, &shape, address, self.read_only.is_none())
    }

    /// The array interface for GPU packages; it does not exist where kernels run on the CPU.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        exchange::cuda_interface(py, self)
    }

    /// Where the memory is, as DLPack names it: `(1, 0)` for the host, `(2, 0)` for the first GPU.
    fn __dlpack_device__(&self, py: Python<'_>) -> PyResult<(i32, u32)> {
        exchange::dlpack_device(py, self)
    }

    /// A capsule of DLPack's, over the memory on the GPU.
    fn _dlpack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        exchange::export(py, self)
    }

    fn __len__(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        traced::expect_readable(py)?;
        let offset = this.offset(py, key)?;
        later::settle(py)?;
        let read = |k: usize| {
            let at = offset + k * this.ty.bytes() as usize;
            patiently(py, &this.buffer, || this.buffer.read_scalar(this.ty, at))
                .map_err(error::memory)
                .and_then(|v| to_python(py, v))
        };
        if this.element == TensorShape::Scalar {
            return read(0);
        }
        let data = (0..this.n_components())
            .map(read)
            .collect::<PyResult<Vec<_>>>()?;
        make_element(
            py,
            PyList::new(py, data)?,
            this.element,
            Some((slf.as_any(), key)),
        )
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        this.expect_writeable()?;
        let offset = this.offset(py, key)?;
        let write = |at: usize, value| {
            patiently(py, &this.buffer, || this.buffer.write_scalar(at, value))
                .map_err(error::memory)
        };
        if this.element == TensorShape::Scalar {
            let value = to_element(value, this.ty)?;
            recorder::before_write(slf, Some(key), None)?;
            write(offset, value)?;
            return this.tell(py);
        }
        let values = components(value, this.element)?
            .map_err(|wrong| PyValueError::new_err(format!("an element {wrong}")))?;
        // All are looked at before any is written.
        let values = values
            .iter()
            .map(|value| to_element(value, this.ty))
            .collect::<PyResult<Vec<_>>>()?;
        recorder::before_write(slf, Some(key), None)?;
        for (k, value) in values.into_iter().enumerate() {
            write(offset + k * this.ty.bytes() as usize, value)?;
        }
        this.tell(py)
    }

    /// Copies all elements to an array. Unlike NumPy's view it leaves the memory where it is, perhaps on a device.
    fn _copy_to(&self, py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = foreign::on_host(array)?;
        array.expect_writeable()?;
        self.transfer(py, &array, true)
    }

    /// Sets all elements from an array.
    fn _copy_from(slf: &Bound<'_, Self>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let this = slf.get();
        this.expect_writeable()?;
        let array = foreign::on_host(array)?;
        recorder::before_write(slf, None, None)?;
        this.transfer(slf.py(), &array, false)
    }

    /// Sets all elements from another array of as many bytes.
    fn _copy_array(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        let (this, other) = (slf.get(), other.get());
        this.expect_writeable()?;
        recorder::before_write(slf, None, None)?;
        if Arc::ptr_eq(&this.buffer, &other.buffer) {
            return Ok(());
        }
        slf.py()
            .detach(|| this.copy(&this.buffer, &other.buffer))
            .map_err(error::memory)?;
        this.tell(slf.py())
    }

    /// Sets every element; one number for each component.
    fn _fill(slf: &Bound<'_, Self>, values: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let this = slf.get();
        this.expect_writeable()?;
        let item = this.ty.bytes() as usize;
        let pattern = Buffer::zeroed(item * values.len()).map_err(error::memory)?;
        for (k, value) in values.iter().enumerate() {
            let write = pattern.write_scalar(k * item, to_scalar(value, this.ty)?);
            write.map_err(error::memory)?;
        }
        let mut bytes = vec![0; pattern.len()];
        pattern.read(0, &mut bytes).map_err(error::memory)?;
        recorder::before_write(slf, None, None)?;
        let n = this.shape.iter().product();
        slf.py()
            .detach(|| repeat((&this.buffer, 0), &bytes, n))
            .map_err(error::memory)?;
        this.tell(slf.py())
    }

    fn _set_component(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        at: usize,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let this = slf.get();
        this.expect_writeable()?;
        let offset = this.offset(slf.py(), key)? + at * this.ty.bytes() as usize;
        let value = to_element(value, this.ty)?;
        recorder::before_write(slf, Some(key), Some(at))?;
        patiently(slf.py(), &this.buffer, || {
            this.buffer.write_scalar(offset, value)
        })
        .map_err(error::memory)?;
        this.tell(slf.py())
    }
}
