//! Kernels of the user's in programs of tensors: what a call of one is while a program is traced, and how it is run.

use std::sync::{Arc, Mutex};

use aerogel_base::{Scalar, ScalarType};
use aerogel_tensor::{Operand, RegionDef, RunError, Runner};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::values::leaf;
use super::{CLASS, NativeTensor, NativeTrace, lock, native_of, number};
use crate::host::TensorShape;
use crate::py::argument::Packed;
use crate::py::kernel::{Mode, NativeKernel};
use crate::py::prepare::Instance;
use crate::py::signature::ValueSpec;
use crate::py::{buffer, error, program};

/// Which argument of a call: by position, or by name.
#[derive(FromPyObject)]
pub(super) enum Key {
    Position(usize),
    Name(String),
}

/// A call of a kernel, with tensors of a program among its arguments.
#[derive(FromPyObject)]
pub(super) struct KernelCall<'py> {
    #[pyo3(item)]
    kernel: Bound<'py, NativeKernel>,
    #[pyo3(item)]
    args: Bound<'py, PyTuple>,
    #[pyo3(item)]
    kwargs: Bound<'py, PyDict>,
}

impl KernelCall<'_> {
    fn prepared(&self, py: Python<'_>) -> PyResult<(Arc<Instance>, Vec<Packed>)> {
        let kernel = self.kernel.get();
        kernel.prepared(py, &self.args, Some(&self.kwargs), None)
    }

    /// Whether the kernel writes to each of some of its arguments, which are tensors.
    pub(super) fn writes(
        &self,
        py: Python<'_>,
        tensors: &[Bound<'_, PyAny>],
    ) -> PyResult<Vec<bool>> {
        let (instance, packed) = self.prepared(py)?;
        let arrays: Vec<_> = packed.iter().filter_map(Packed::tensor).collect();
        let writes = |wanted: &Bound<'_, PyAny>| {
            let mut all = arrays.iter().enumerate();
            all.any(|(k, tensor)| {
                let same = tensor.is_some_and(|t| t.bind(py).is(wanted));
                same && instance.writes.get(k).copied().unwrap_or(true)
            })
        };
        Ok(tensors.iter().map(writes).collect())
    }

    /// The call as a statement, with the tensors (or single numbers) that stand at some of its arguments.
    pub(super) fn record(
        &self,
        py: Python<'_>,
        trace: &NativeTrace,
        at: Vec<(Key, bool)>,
        tensors: &[Bound<'_, NativeTensor>],
        writes: &[bool],
    ) -> PyResult<Vec<NativeTensor>> {
        let kernel = self.kernel.get();
        let (instance, _) = self.prepared(py)?;
        let returned = self.returned(py)?;
        let mut arrays = Vec::new();
        let mut written: Vec<bool> = Vec::new();
        let mut places = Vec::new();
        for (((key, is_array), tensor), &writes) in at.into_iter().zip(tensors).zip(writes) {
            let buffer = trace.buffer(tensor.get())?;
            // Two arguments that are one tensor are one memory.
            let known = arrays.iter().position(|&b| b == buffer);
            let k = known.unwrap_or(arrays.len());
            if known.is_none() {
                arrays.push(buffer);
                written.push(false);
            }
            written[k] |= writes;
            places.push((key, is_array, k));
        }
        let mut trees = Vec::new();
        for tree in &instance.trees {
            tree.memory(py)?;
            trees.extend(tree.store().map(|store| trace.tree(&store)));
        }
        let runner = Arc::new(KernelRunner {
            call: Mutex::new(Some(Call {
                kernel: self.kernel.clone().unbind(),
                args: self.args.clone().unbind(),
                kwargs: self.kwargs.clone().unbind(),
            })),
            places,
            returned: returned.clone(),
            failed: Mutex::default(),
        });
        lock(&trace.runners).push(runner.clone());
        let def = RegionDef {
            name: kernel.name.clone(),
            writes: written,
            trees,
            runner: Some(runner),
        };
        let results = lock(trace.recording()).run(def, arrays, &returned);
        Ok(results.into_iter().map(|b| trace.tensor(b)).collect())
    }

    /// The types of what the kernel returns.
    fn returned(&self, py: Python<'_>) -> PyResult<Vec<ScalarType>> {
        let kernel = self.kernel.get();
        let settings = program::settings(py)?;
        let all = kernel.results.as_deref().unwrap_or(&[]).iter();
        all.map(|spec| match spec {
            ValueSpec::Tensor(ty) if ty.shape == TensorShape::Scalar => {
                Ok(ty.elem.resolve(&settings))
            }
            _ => Err(PyTypeError::new_err(format!(
                "kernel `{}` returns a vector, a matrix or a struct: a program of tensors takes numbers, or an array that \
                 the kernel writes",
                kernel.name
            ))),
        })
        .collect()
    }
}

/// Runs a kernel as a statement of a program.
pub(super) struct KernelRunner {
    /// What is called, until the collector of garbage takes it.
    call: Mutex<Option<Call>>,
    /// Which arguments are arrays of the statement, or numbers in them.
    places: Vec<(Key, bool, usize)>,
    returned: Vec<ScalarType>,
    /// What the kernel raised.
    failed: Mutex<Option<PyErr>>,
}

/// A kernel, and what it is called with.
struct Call {
    kernel: Py<NativeKernel>,
    args: Py<PyTuple>,
    kwargs: Py<PyDict>,
}

impl Runner for KernelRunner {
    fn run(&self, arrays: Vec<Operand>) -> Result<(Vec<Operand>, Vec<Scalar>), RunError> {
        Python::attach(|py| {
            self.launch(py, arrays).map_err(|e| {
                let what = e.to_string();
                *lock(&self.failed) = Some(e);
                RunError::Region(what)
            })
        })
    }
}

impl KernelRunner {
    /// What the kernel raised, if it did.
    pub(super) fn raised(&self) -> Option<PyErr> {
        lock(&self.failed).take()
    }

    /// Tells the collector of garbage what is held: the arguments may hold the program.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Who holds the lock is alive.
        let Ok(call) = self.call.try_lock() else {
            return Ok(());
        };
        let Some(call) = &*call else {
            return Ok(());
        };
        visit.call(&call.kernel)?;
        visit.call(&call.args)?;
        visit.call(&call.kwargs)
    }

    pub(super) fn clear(&self) {
        let held = lock(&self.call).take();
        drop(held);
    }

    /// What is called, for as long as it runs.
    fn called<'py>(&self, py: Python<'py>) -> PyResult<KernelCall<'py>> {
        let call = lock(&self.call);
        let Some(call) = &*call else {
            return Err(error::runtime(py, "the kernel of this program is gone"));
        };
        Ok(KernelCall {
            kernel: call.kernel.bind(py).clone(),
            args: call.args.bind(py).clone(),
            kwargs: call.kwargs.bind(py).clone(),
        })
    }

    fn launch(
        &self,
        py: Python<'_>,
        arrays: Vec<Operand>,
    ) -> PyResult<(Vec<Operand>, Vec<Scalar>)> {
        let class = CLASS.get(py).expect("a tensor of the class was recorded");
        let call = self.called(py)?;
        let mut args: Vec<Bound<'_, PyAny>> = call.args.iter().collect();
        let kwargs = call.kwargs.copy()?;
        let mut all = Vec::new();
        let mut numbers = Vec::new();
        for operand in arrays {
            let number = operand.shape.is_empty().then(|| {
                let scalar = operand.buffer.read_scalar(operand.ty, 0);
                scalar.map_err(error::memory)
            });
            numbers.push(number.transpose()?);
            all.push(class.bind(py).call1((Bound::new(py, leaf(operand))?,))?);
        }
        for (key, is_array, k) in &self.places {
            let value = match numbers[*k] {
                Some(scalar) if !is_array => buffer::to_python(py, scalar)?,
                _ => all[*k].clone(),
            };
            match key {
                Key::Position(at) => args[*at] = value,
                Key::Name(name) => kwargs.set_item(name, value)?,
            }
        }
        let args = PyTuple::new(py, args)?;
        let kernel = call.kernel.get();
        let returned = kernel.call(py, &args, Some(&kwargs), Mode::default())?;
        drop(args);
        kwargs.clear();
        let returned: Vec<Bound<'_, PyAny>> = match returned.cast::<PyList>() {
            Ok(many) => many.iter().collect(),
            Err(_) => vec![returned],
        };
        let results = self.returned.iter().zip(&returned);
        let results = results.map(|(&ty, value)| number(value, ty));
        let results = results.collect::<PyResult<Vec<Scalar>>>()?;
        let operands = all.iter().map(|tensor| {
            let native = native_of(tensor)?.expect("made above");
            native.get().computed(py)
        });
        Ok((operands.collect::<PyResult<Vec<Operand>>>()?, results))
    }
}
