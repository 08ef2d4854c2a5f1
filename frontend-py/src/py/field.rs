//! Fields in Python: their places, elements read and written without a kernel, copies to and from NumPy.

use std::sync::{Arc, OnceLock};

use aerogel_base::{Scalar, ScalarType};
use aerogel_runtime::{Buffer, TreeMemory};
use aerogel_snode::{NodeId, QuantType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyTuple, PyType};

use super::buffer::{self, Dim};
use super::foreign;
use super::foreign::array::Contents;
use super::placement::Placement;
use super::snode::NativeSNode;
use super::{element, error, later, program, recorder};
use crate::host::TensorShape;

/// How a copy between a field and an array treats inactive elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transfer {
    /// To the array, as zeros.
    Out,
    /// To the field, which leaves them inactive.
    ToActive,
    /// To the field, which makes them active.
    ToAll,
}

/// The placement of a field, as kernels need it.
pub(crate) struct FieldPlace {
    pub(crate) tree: u64,
    pub(crate) places: Vec<NodeId>,
    pub(crate) offset: Vec<i32>,
    pub(crate) ndim: u32,
}

/// A field: what its elements are and, once placed, where they lie.
#[pyclass(module = "aerogel._native", subclass, frozen)]
pub(crate) struct NativeField {
    ty: ScalarType,
    /// One for all components, or one for each; none for scalars.
    quants: Vec<QuantType>,
    shape: TensorShape,
    name: String,
    claimed: OnceLock<()>,
    /// The remedy in the message if the field is used before it is placed.
    remedy: OnceLock<String>,
    /// Why its layout has no memory, or is none: the class and the message.
    failed: OnceLock<(Py<PyType>, String)>,
    placement: OnceLock<Placement>,
}

impl NativeField {
    pub(crate) fn elem(&self) -> ScalarType {
        self.ty
    }

    /// How a component is stored, if not as a plain scalar.
    pub(crate) fn quant(&self, component: usize) -> Option<QuantType> {
        self.quants.get(component).or(self.quants.first()).copied()
    }

    /// The shape of an element.
    pub(crate) fn tensor_shape(&self) -> TensorShape {
        self.shape
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How messages call the field.
    pub(crate) fn label(&self) -> String {
        if self.name.is_empty() {
            "the field".to_owned()
        } else {
            format!("the field `{}`", self.name)
        }
    }

    /// Notes that the field has been given to a node, which happens once.
    pub(crate) fn claim(&self, py: Python<'_>) -> PyResult<()> {
        self.claimed
            .set(())
            .map_err(|()| error::runtime(py, "the field is placed already"))
    }

    pub(crate) fn put(&self, placement: Placement) {
        let _ = self.placement.set(placement);
    }

    /// Notes why the layout that it was placed in was not made: who uses the field is told again.
    pub(crate) fn fail(&self, py: Python<'_>, why: &PyErr) {
        let class = why.get_type(py).unbind();
        let _ = self.failed.set((class, why.value(py).to_string()));
    }

    /// Whether the field has been given to a node.
    pub(crate) fn is_placed(&self) -> bool {
        self.claimed.get().is_some()
    }

    /// Where the field lies; an error if it is nowhere.
    pub(crate) fn placement(&self, py: Python<'_>) -> PyResult<&Placement> {
        if self.placement.get().is_none() {
            program::materialize(py)?;
        }
        self.placement.get().ok_or_else(|| {
            if let Some((class, message)) = self.failed.get() {
                return PyErr::from_type(class.bind(py).clone(), message.clone());
            }
            let remedy = self.remedy.get().map_or(
                "give it a shape, as in ti.field(float, shape=(2, 3)), or place it with ti.root",
                String::as_str,
            );
            error::runtime(py, format!("{} is not placed: {remedy}", self.label()))
        })
    }

    /// Where the field lies, as the frontend wants it.
    pub(crate) fn placed(&self, py: Python<'_>) -> PyResult<FieldPlace> {
        let placement = self.placement(py)?;
        placement.store.memory(py)?;
        Ok(FieldPlace {
            tree: placement.store.key,
            places: placement.places.clone(),
            offset: placement.offset.clone(),
            ndim: placement.shape.len() as u32,
        })
    }

    fn memory(&self, py: Python<'_>) -> PyResult<(&Placement, Arc<TreeMemory>)> {
        let placement = self.placement(py)?;
        let memory = placement.store.memory(py)?;
        Ok((placement, memory))
    }

    pub(crate) fn n_components(&self) -> usize {
        self.shape.len() as usize
    }

    /// Copies between the field and an array of the same shape.
    fn transfer(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        transfer: Transfer,
    ) -> PyResult<()> {
        let out = transfer == Transfer::Out;
        if out {
            later::settle(py)?;
        }
        let (placement, memory) = self.memory(py)?;
        let array = foreign::on_host(array)?;
        if array.ty != Some(self.ty) {
            return Err(PyTypeError::new_err(format!(
                "the array's type is not {}",
                self.ty
            )));
        }
        if out {
            array.expect_writeable()?;
        }
        let there = match out {
            true => Contents::Own(array.buffer()?),
            false => array.contents()?,
        };
        let there = &*there;
        let (item, per_element) = (u64::from(self.ty.bytes()), self.n_components() as u64);
        let mut extents = placement.shape.iter();
        let bytes = extents.try_fold(per_element * item, |n, &e| n.checked_mul(e));
        if Some(there.len() as u64) != bytes {
            return Err(PyValueError::new_err(
                "the array has another size than the field",
            ));
        }
        py.detach(|| {
            if placement.one_by_one() {
                let all = (there, &placement.whole()[..]);
                return match transfer {
                    Transfer::Out => {
                        there.fill(0, there.len(), &[0])?;
                        placement.copy_active(&memory, all, self.ty, true)
                    }
                    Transfer::ToActive => placement.copy_active(&memory, all, self.ty, false),
                    Transfer::ToAll => placement.obtain_all(&memory, there, self.ty),
                };
            }
            for (first, count, spacing) in placement.runs() {
                let mut dims = placement.dims(item, per_element);
                dims.push((count, spacing, item));
                let here = (memory.bytes(), placement.bases[first] as usize);
                let array = (there, first * item as usize);
                let dim = |(extent, here, there): (usize, u64, u64)| {
                    let (dst, src) = if out { (there, here) } else { (here, there) };
                    Dim {
                        extent,
                        dst: dst as usize,
                        src: src as usize,
                    }
                };
                let dims = dims.into_iter().map(dim).collect();
                let (dst, src) = if out { (array, here) } else { (here, array) };
                buffer::copy(dst, src, dims, item as usize)?;
            }
            Ok(())
        })
        .map_err(error::memory)
    }

    /// Sets every active element; one number for each component.
    pub(crate) fn fill(slf: &Bound<'_, Self>, values: &[Bound<'_, PyAny>]) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let (placement, memory) = this.memory(py)?;
        let item = this.ty.bytes() as usize;
        let pattern = Buffer::zeroed(item * values.len()).map_err(error::memory)?;
        for (k, value) in values.iter().enumerate() {
            pattern
                .write_scalar(k * item, buffer::to_scalar(value, this.ty)?)
                .map_err(error::memory)?;
        }
        let mut bytes = vec![0; pattern.len()];
        pattern.read(0, &mut bytes).map_err(error::memory)?;
        recorder::before_write(slf, None, None)?;
        py.detach(|| {
            if placement.one_by_one() {
                return placement.fill_active(&memory, &bytes, this.ty);
            }
            for (first, count, spacing) in placement.runs() {
                let mut dims: Vec<Dim> = placement
                    .dims(item as u64, 1)
                    .into_iter()
                    .map(|(extent, here, _)| Dim {
                        extent,
                        dst: here as usize,
                        src: 0,
                    })
                    .collect();
                let here = (memory.bytes(), placement.bases[first] as usize);
                let side_by_side = count == 1 || spacing as usize == item;
                if let Some(n) = buffer::block(&dims, count * item).filter(|_| side_by_side) {
                    buffer::repeat(here, &bytes[first * item..][..count * item], n)?;
                    continue;
                }
                dims.push(Dim {
                    extent: count,
                    dst: spacing as usize,
                    src: item,
                });
                buffer::copy(here, (&pattern, first * item), dims, item)?;
            }
            Ok(())
        })
        .map_err(error::memory)
    }
}

fn parse_quant(text: &str) -> PyResult<QuantType> {
    QuantType::parse(text).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Whether there is a quantised type with a name; if not, an exception says why.
#[pyfunction]
pub(crate) fn check_quant(text: &str) -> PyResult<()> {
    parse_quant(text).map(drop)
}

#[pymethods]
impl NativeField {
    /// Sets what a message says to do if the field is used before it is placed.
    fn _set_remedy(&self, remedy: String) {
        let _ = self.remedy.set(remedy);
    }

    #[new]
    #[pyo3(signature = (dtype, n, m, ndim, name, quants = Vec::new()))]
    fn new(
        dtype: &str,
        n: u32,
        m: u32,
        ndim: u32,
        name: String,
        quants: Vec<String>,
    ) -> PyResult<Self> {
        let ty = ScalarType::from_name(dtype)
            .ok_or_else(|| PyValueError::new_err(format!("there is no scalar type {dtype:?}")))?;
        if n == 0 || m == 0 || ndim > 2 {
            return Err(PyValueError::new_err(
                "an element has at least one component",
            ));
        }
        Ok(Self {
            ty,
            quants: quants
                .iter()
                .map(|text| parse_quant(text))
                .collect::<PyResult<_>>()?,
            shape: TensorShape::from_axes(n, m, ndim),
            name,
            claimed: OnceLock::new(),
            remedy: OnceLock::new(),
            failed: OnceLock::new(),
            placement: OnceLock::new(),
        })
    }

    /// How many numbers an element has.
    #[getter]
    fn _n_components(&self) -> usize {
        self.n_components()
    }

    #[getter]
    fn _name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.placement(py)?.shape)
    }

    /// The key of its tree, and the place of each component.
    fn _places(&self, py: Python<'_>) -> PyResult<(u64, Vec<u32>)> {
        let placement = self.placement(py)?;
        let places = placement.places.iter().map(|place| place.as_u32());
        Ok((placement.store.key, places.collect()))
    }

    /// The first index of each axis; empty for zeros.
    #[getter]
    fn _offset(&self, py: Python<'_>) -> PyResult<Vec<i32>> {
        Ok(self.placement(py)?.offset.clone())
    }

    fn _is_placed(&self) -> bool {
        self.is_placed()
    }

    /// Whether its layout is there: not destroyed, and of the program since the last reset.
    fn _is_alive(&self, py: Python<'_>) -> bool {
        self.memory(py).is_ok()
    }

    fn _place_node(&self, py: Python<'_>) -> PyResult<NativeSNode> {
        let placement = self.placement(py)?;
        NativeSNode::of_store(py, placement.store.clone(), placement.places[0])
    }

    /// Gives `other`, a scalar field, the place of one component.
    fn _share_component(&self, py: Python<'_>, at: usize, other: &Bound<'_, Self>) -> PyResult<()> {
        let placement = self.placement(py)?;
        let place = *placement
            .places
            .get(at)
            .ok_or_else(|| PyValueError::new_err("there is no such component"))?;
        other.get().claim(other.py())?;
        other.get().put(Placement::new(
            placement.store.clone(),
            vec![place],
            placement.offset.clone(),
        ));
        Ok(())
    }

    /// Raises what `self[key]` would for a key that names no element.
    fn _check_index(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let (placement, _) = self.memory(py)?;
        placement.index(py, || self.label(), key).map(drop)
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(trace) = recorder::traced(py)? {
            return trace.call_method1("load_field", (slf, key));
        }
        let (placement, memory) = this.memory(py)?;
        let index = placement.index(py, || this.label(), key)?;
        later::settle(py)?;
        let plain = placement.plain(&index);
        let read = |component| {
            let value = buffer::patiently(py, memory.bytes(), || {
                if let Some(at) = &plain {
                    return memory.bytes().read_scalar(this.ty, at(component));
                }
                match placement.find(&memory, component, &index)? {
                    Some(at) => memory.component_at(placement.places[component], at, &index),
                    None => Ok(Scalar::zero(this.ty)),
                }
            });
            buffer::to_python(py, value.map_err(error::memory)?)
        };
        if this.shape == TensorShape::Scalar {
            return read(0);
        }
        let components = 0..this.n_components();
        let data = components.map(read).collect::<PyResult<Vec<_>>>()?;
        element::make_element(
            py,
            PyList::new(py, data)?,
            this.shape,
            Some((slf.as_any(), key)),
        )
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(trace) = recorder::traced(py)? {
            trace.call_method1("store_field", (slf, key, value))?;
            return Ok(());
        }
        let (placement, memory) = this.memory(py)?;
        let index = placement.index(py, || this.label(), key)?;
        let plain = placement.plain(&index);
        let write = |component, value: Scalar| {
            if let Some(at) = &plain {
                let bytes = memory.bytes();
                let write = || bytes.write_scalar(at(component), value);
                return buffer::patiently(py, bytes, write).map_err(error::memory);
            }
            let at = placement.obtain(py, &memory, component, &index)?;
            buffer::patiently(py, memory.bytes(), || {
                memory.set_component_at(placement.places[component], at, &index, value)
            })
            .map_err(error::memory)
        };
        if this.shape == TensorShape::Scalar {
            let value = buffer::to_element(value, this.ty)?;
            recorder::before_write(slf, Some(key), None)?;
            return write(0, value);
        }
        let values = buffer::components(value, this.shape)?.map_err(|wrong| {
            PyValueError::new_err(format!("an element of {} {wrong}", this.label()))
        })?;
        // All are looked at before any is written.
        let values = values
            .iter()
            .map(|value| buffer::to_element(value, this.ty))
            .collect::<PyResult<Vec<_>>>()?;
        recorder::before_write(slf, Some(key), None)?;
        for (component, value) in values.into_iter().enumerate() {
            write(component, value)?;
        }
        Ok(())
    }

    fn _set_component(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        at: usize,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let (placement, memory) = this.memory(py)?;
        let index = placement.index(py, || this.label(), key)?;
        if at >= this.n_components() {
            return Err(PyValueError::new_err("there is no such component"));
        }
        let value = buffer::to_element(value, this.ty)?;
        recorder::before_write(slf, Some(key), Some(at))?;
        let place = placement.places[at];
        let at = placement.obtain(py, &memory, at, &index)?;
        buffer::patiently(py, memory.bytes(), || {
            memory.set_component_at(place, at, &index, value)
        })
        .map_err(error::memory)
    }

    /// Indices and values of the active elements: int32 and the field's type, as bytes.
    fn _active_cells<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        later::settle(py)?;
        let (placement, memory) = self.memory(py)?;
        placement.active_cells(py, &memory, self.ty.bytes() as usize)
    }

    /// Makes the elements at some indices active and writes to them.
    fn _set_cells(
        slf: &Bound<'_, Self>,
        coordinates: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let (placement, memory) = this.memory(py)?;
        let coordinates = foreign::on_host(coordinates)?;
        let values = foreign::on_host(values)?;
        if values.ty != Some(this.ty) {
            return Err(PyTypeError::new_err(format!(
                "the array's type is not {}",
                this.ty
            )));
        }
        recorder::before_write(slf, None, None)?;
        let item = this.ty.bytes() as usize;
        placement.set_cells(py, &memory, || this.label(), &coordinates, &values, item)
    }

    /// Writes all elements to an array; zeros where one is inactive.
    fn _copy_to(&self, py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        self.transfer(py, array, Transfer::Out)
    }

    /// Sets all active elements from an array.
    fn _copy_from(slf: &Bound<'_, Self>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        recorder::before_write(slf, None, None)?;
        slf.get().transfer(slf.py(), array, Transfer::ToActive)
    }

    /// Sets all elements from an array, and makes all active.
    fn _assign(slf: &Bound<'_, Self>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        recorder::before_write(slf, None, None)?;
        slf.get().transfer(slf.py(), array, Transfer::ToAll)
    }

    /// Sets every active element; one number for each component.
    fn _fill(slf: &Bound<'_, Self>, values: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        Self::fill(slf, &values)
    }
}
