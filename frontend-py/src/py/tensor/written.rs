//! Tensors that kernels write to.
//!
//! A tensor's numbers do not change while somebody else holds them: such a launch writes to a copy, which the tensor becomes
//! when the launch has ended well. Where nobody does, it writes to them as to an array.

use std::collections::BTreeMap;

use aerogel_tensor::Operand;
use pyo3::prelude::*;

use super::native::{NativeTensor, native_of};
use crate::py::argument::Packed;

/// A tensor that a launch writes to.
pub(crate) struct WrittenTensor {
    tensor: Py<PyAny>,
    pub(crate) memory: Operand,
    /// What the tensor becomes, if it is that not yet.
    after: Option<NativeTensor>,
}

impl WrittenTensor {
    /// Of a tensor that is given so many times.
    fn new(py: Python<'_>, tensor: &Py<PyAny>, n_given: usize) -> PyResult<Self> {
        let native = native_of(tensor.bind(py))?.expect("it has been packed as one");
        let (memory, after, is_copy) = native.get().written_outside(n_given)?;
        let mut written = Self {
            tensor: tensor.clone_ref(py),
            memory,
            after: Some(after),
        };
        if !is_copy {
            written.end(py)?;
        }
        Ok(written)
    }

    /// Lets the tensor be what was written.
    pub(crate) fn end(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(after) = self.after.take() else {
            return Ok(());
        };
        self.tensor.setattr(py, "_native", Bound::new(py, after)?)?;
        // A leaf of gradients stays one.
        if self.tensor.bind(py).hasattr("_leaf")? {
            self.tensor.call_method0(py, "_stored")?;
        }
        Ok(())
    }
}

/// The tensors that a launch writes to, by the number of the array: also where it reads what it writes by another argument,
/// as two arguments that are one array are the same memory.
pub(crate) fn tensors(
    py: Python<'_>,
    packed: &[Packed],
    is_written: impl Fn(usize) -> bool,
) -> PyResult<BTreeMap<usize, WrittenTensor>> {
    let mut all: BTreeMap<usize, WrittenTensor> = BTreeMap::new();
    let arrays = packed.iter().filter_map(Packed::tensor).enumerate();
    let given: Vec<(usize, &Py<PyAny>)> = arrays.filter_map(|(k, t)| Some((k, t?))).collect();
    for &(k, tensor) in given.iter().filter(|(k, _)| is_written(*k)) {
        if all.contains_key(&k) {
            continue;
        }
        let same = || given.iter().filter(|(_, other)| other.is(tensor));
        let written = WrittenTensor::new(py, tensor, same().count())?;
        for &(other, _) in same().filter(|(other, _)| *other != k) {
            let again = WrittenTensor {
                tensor: tensor.clone_ref(py),
                memory: written.memory.clone(),
                after: None,
            };
            all.insert(other, again);
        }
        all.insert(k, written);
    }
    Ok(all)
}
