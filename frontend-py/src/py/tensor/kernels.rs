//! Kernels of the user's in programs of tensors: what a call of one is while a program is traced, and how it is run.

use std::sync::{Arc, Mutex, Weak};

use aerogel_base::{Scalar, ScalarType};
use aerogel_tensor::record::RecordError;
use aerogel_tensor::{Buffer, Operand, Raised, RegionDef, RunError, Runner};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::native::{CLASS, Held, NativeTensor, NativeTrace, lock, native_of, number};
use super::values::leaf;
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
            let value = trace.value(tensor.get())?;
            // Two arguments that are one tensor are one memory.
            let known = arrays.iter().position(|&v| v == value);
            let k = known.unwrap_or(arrays.len());
            if known.is_none() {
                arrays.push(value);
                written.push(false);
            }
            written[k] |= writes;
            places.push((key, is_array, k));
        }
        let mut trees = Vec::new();
        for tree in &instance.trees {
            tree.memory(py)?;
            if let Some(store) = tree.store() {
                trace.uses(&store);
                trees.push(store.tree.clone());
            }
        }
        let runner = Arc::new_cyclic(|myself| KernelRunner {
            myself: myself.clone(),
            call: Mutex::new(Some(Call {
                kernel: self.kernel.clone().unbind(),
                args: self.args.clone().unbind(),
                kwargs: self.kwargs.clone().unbind(),
            })),
            places,
            returned: returned.clone(),
            unique: unique(&instance),
        });
        lock(&trace.runners).push(runner.clone());
        let name = kernel.signature.name.clone();
        let numbers = numbers_of(&runner.places);
        let made = trace.step(move |s| {
            if s.mask()?.is_some() {
                return Err(RecordError::AtPoints(format!(
                    "kernel `{name}` is called in a block that runs for some points only: call it outside of `if_cond` with a \
                     condition for each point, and of loops that points leave one by one"
                )));
            }
            if numbers.iter().any(|&k| s.rank(arrays[k]) != 0) {
                return Err(RecordError::Value(format!(
                    "kernel `{name}` takes one number, and gets a tensor to which a block adds axes"
                )));
            }
            for (&array, _) in arrays.iter().zip(&written).filter(|(_, written)| **written) {
                s.written(array)?;
            }
            let mut buffers = Vec::new();
            for array in s.buffers(&arrays)? {
                buffers.push(s.r.dense(array)?);
            }
            let def = RegionDef {
                name: name.clone(),
                writes: written.clone(),
                trees: trees.iter().map(|tree| s.r.tree(tree)).collect(),
                runner: Some(runner.clone()),
            };
            let types = returned.iter();
            let types =
                types.flat_map(|(ty, shape)| vec![*ty; shape.iter().product::<u64>() as usize]);
            let types: Vec<ScalarType> = types.collect();
            let mut results = s.r.run(def, buffers, &types).into_iter();
            let mut made = Vec::new();
            for (_, shape) in &returned {
                let n = shape.iter().product::<u64>() as usize;
                let parts: Vec<Buffer> = results.by_ref().take(n).collect();
                let buffer = match shape.is_empty() {
                    true => parts[0],
                    false => s.r.vector(&parts, shape)?,
                };
                made.push(s.value(buffer));
            }
            Ok(made)
        })?;
        Ok(made.into_iter().map(|value| trace.tensor(value)).collect())
    }

    /// The types of the kernel's results, each with its shape.
    fn returned(&self, py: Python<'_>) -> PyResult<Vec<(ScalarType, Vec<u64>)>> {
        let kernel = self.kernel.get();
        let settings = program::settings_or_begin(py)?;
        let all = kernel.signature.results.as_deref().unwrap_or(&[]).iter();
        all.map(|spec| match spec {
            ValueSpec::Tensor(ty) => {
                let shape = match ty.shape {
                    TensorShape::Scalar => Vec::new(),
                    TensorShape::Vector(n) => vec![n.into()],
                    TensorShape::Matrix(n, m) => vec![n.into(), m.into()],
                };
                Ok((ty.elem.resolve(&settings), shape))
            }
            ValueSpec::Struct(_) => Err(PyTypeError::new_err(format!(
                "kernel `{}` returns a struct: a program of tensors takes numbers, vectors and matrices",
                kernel.signature.name
            ))),
        })
        .collect()
    }
}

/// Which arrays of a statement stand for single numbers.
fn numbers_of(places: &[(Key, bool, usize)]) -> Vec<usize> {
    let numbers = places.iter().filter(|(_, is_array, _)| !is_array);
    numbers.map(|&(_, _, k)| k).collect()
}

/// Tensors with these numbers.
fn tensors<'py>(py: Python<'py>, arrays: Vec<Operand>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let class = CLASS.get(py).expect("a tensor of the class was recorded");
    let all = arrays.into_iter();
    all.map(|operand| class.bind(py).call1((Bound::new(py, leaf(operand))?,)))
        .collect()
}

/// The tensors of a call, and its arguments.
type Given<'py> = (
    Vec<Bound<'py, PyAny>>,
    Bound<'py, PyTuple>,
    Bound<'py, PyDict>,
);

/// Appends the numbers of what a kernel returns: one, or those of a vector or matrix, row by row.
fn all_numbers(
    value: &Bound<'_, PyAny>,
    ty: ScalarType,
    rank: usize,
    out: &mut Vec<Scalar>,
) -> PyResult<()> {
    if rank == 0 {
        out.push(number(value, ty)?);
        return Ok(());
    }
    for row in value.try_iter()? {
        all_numbers(&row?, ty, rank - 1, out)?;
    }
    Ok(())
}

/// Runs a kernel as a statement of a program.
pub(super) struct KernelRunner {
    myself: Weak<KernelRunner>,
    /// The call, until the garbage collector clears it.
    call: Mutex<Option<Call>>,
    /// Which arguments are arrays of the statement, or numbers in them.
    places: Vec<(Key, bool, usize)>,
    returned: Vec<(ScalarType, Vec<u64>)>,
    /// Why another run would not do the same, if it would not.
    unique: Option<&'static str>,
}

/// Why another run of a kernel with the same arguments would have other results, if it would.
fn unique(instance: &Instance) -> Option<&'static str> {
    if instance.summary.is_random {
        return Some(
            "it draws random numbers, and the gradient would draw others: pass an array of random numbers",
        );
    }
    let uses_more = !instance.trees.is_empty() || !instance.captured.is_empty();
    uses_more.then_some(
        "it uses fields or arrays that are not arguments: pass them as tensors, or call it outside of the program",
    )
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
            let ended = self.launch(py, arrays);
            ended.map_err(|e| RunError::Region(Raised(Arc::new(e))))
        })
    }

    fn gradient(&self) -> Result<Arc<dyn Runner>, String> {
        match self.unique {
            Some(why) => Err(why.to_owned()),
            None => Ok(Arc::new(GradientRunner(
                self.myself.upgrade().expect("it is called"),
            ))),
        }
    }

    fn is_repeatable(&self) -> bool {
        self.unique.is_none()
    }
}

/// Runs the gradient of a kernel as a statement of a program.
struct GradientRunner(Arc<KernelRunner>);

impl Runner for GradientRunner {
    fn run(&self, arrays: Vec<Operand>) -> Result<(Vec<Operand>, Vec<Scalar>), RunError> {
        Python::attach(|py| {
            let ended = self.0.pull_back(py, arrays);
            ended.map_err(|e| RunError::Region(Raised(Arc::new(e))))
        })
    }

    fn gradient(&self) -> Result<Arc<dyn Runner>, String> {
        Ok(Arc::new(SecondRunner(self.0.clone())))
    }

    fn is_repeatable(&self) -> bool {
        true
    }
}

/// Runs the gradient of a kernel's gradient as a statement of a program.
struct SecondRunner(Arc<KernelRunner>);

impl Runner for SecondRunner {
    fn run(&self, arrays: Vec<Operand>) -> Result<(Vec<Operand>, Vec<Scalar>), RunError> {
        Python::attach(|py| {
            let ended = self.0.pull_back_twice(py, arrays);
            ended.map_err(|e| RunError::Region(Raised(Arc::new(e))))
        })
    }

    fn gradient(&self) -> Result<Arc<dyn Runner>, String> {
        Err("kernels have first and second derivatives only".to_owned())
    }

    fn is_repeatable(&self) -> bool {
        true
    }
}

/// The positions of arrays of floats.
fn floats_of(arrays: &[Operand]) -> Vec<usize> {
    let all = arrays.iter().enumerate();
    all.filter_map(|(k, array)| array.ty.is_float().then_some(k))
        .collect()
}

/// What tensors hold, computed.
fn computed(py: Python<'_>, tensors: &[Bound<'_, PyAny>]) -> PyResult<Vec<Operand>> {
    let all = tensors.iter().map(|tensor| {
        let native = native_of(tensor)?.expect("a rule returns tensors");
        native.get().computed(py)
    });
    all.collect()
}

impl KernelRunner {
    /// The call, referenced for as long as it runs.
    fn called<'py>(&self, py: Python<'py>) -> PyResult<KernelCall<'py>> {
        let call = lock(&self.call);
        let Some(call) = &*call else {
            return Err(error::runtime(
                py,
                "the kernel of this program no longer exists",
            ));
        };
        Ok(KernelCall {
            kernel: call.kernel.bind(py).clone(),
            args: call.args.bind(py).clone(),
            kwargs: call.kwargs.bind(py).clone(),
        })
    }

    /// The arrays as tensors, and the arguments with them in their places.
    fn arguments<'py>(
        &self,
        py: Python<'py>,
        call: &KernelCall<'py>,
        arrays: Vec<Operand>,
    ) -> PyResult<Given<'py>> {
        let mut args: Vec<Bound<'_, PyAny>> = call.args.iter().collect();
        let kwargs = call.kwargs.copy()?;
        let mut numbers = Vec::new();
        for operand in &arrays {
            let number = operand.shape.is_empty().then(|| {
                let scalar = operand.buffer.read_scalar(operand.ty, 0);
                scalar.map_err(error::memory)
            });
            numbers.push(number.transpose()?);
        }
        let all = tensors(py, arrays)?;
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
        Ok((all, PyTuple::new(py, args)?, kwargs))
    }

    /// How many arrays the call takes.
    fn n_arrays(&self) -> usize {
        let after = self.places.iter().map(|place| place.2 + 1);
        after.max().unwrap_or(0)
    }

    /// Calls a function of `aerogel.tensor._kernels` with the call, of which some arrays are the arguments, and more.
    fn rule<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        arrays: Vec<Operand>,
        more: (Bound<'py, PyAny>, Bound<'py, PyAny>),
    ) -> PyResult<Vec<Operand>> {
        let call = self.called(py)?;
        let floats = floats_of(&arrays);
        let (_, args, kwargs) = self.arguments(py, &call, arrays)?;
        let at = self.places.iter().map(|(key, _, k)| {
            Ok(match key {
                Key::Position(at) => (at.into_pyobject(py)?.into_any(), *k),
                Key::Name(name) => (name.into_pyobject(py)?.into_any(), *k),
            })
        });
        let at: Vec<_> = at.collect::<PyResult<_>>()?;
        let rules = py.import("aerogel.tensor._kernels")?;
        let call = (&call.kernel, &args, &kwargs, at, floats);
        let found: Vec<_> = rules
            .call_method1(name, (call, more.0, more.1))?
            .extract()?;
        computed(py, &found)
    }

    /// Runs the gradient: of the arrays and their adjoints, with the adjoints of what the kernel returns.
    fn pull_back(
        &self,
        py: Python<'_>,
        mut arrays: Vec<Operand>,
    ) -> PyResult<(Vec<Operand>, Vec<Scalar>)> {
        let rest = arrays.split_off(self.n_arrays());
        let mut all = arrays.clone();
        let given = tensors(py, rest)?;
        let (adjoints, seeds) = given.split_at(floats_of(&arrays).len());
        let more = (adjoints.into_pyobject(py)?, seeds.into_pyobject(py)?);
        all.extend(self.rule(py, "pulled_back", arrays, more)?);
        all.extend(computed(py, seeds)?);
        Ok((all, Vec::new()))
    }

    /// Runs the gradient of `pull_back`: of what it takes, and the adjoints of all of that after it.
    fn pull_back_twice(
        &self,
        py: Python<'_>,
        mut arrays: Vec<Operand>,
    ) -> PyResult<(Vec<Operand>, Vec<Scalar>)> {
        let all = arrays.len();
        let rest = arrays.split_off(self.n_arrays());
        let mut kept = arrays.clone();
        let given = tensors(py, rest)?;
        let n_floats = floats_of(&arrays).len();
        let n_seeds = (all - arrays.len() - 3 * n_floats) / 2;
        let (taken, along) = given.split_at(n_floats + n_seeds);
        let (adjoints, seeds) = taken.split_at(n_floats);
        let (of_arrays, rest) = along.split_at(n_floats);
        let (of_results, of_seeds) = rest.split_at(n_floats);
        let ends = (adjoints, seeds).into_pyobject(py)?.into_any();
        let along = (of_arrays, of_results, of_seeds).into_pyobject(py)?;
        kept.extend(computed(py, taken)?);
        kept.extend(self.rule(py, "pulled_back_twice", arrays, (ends, along.into_any()))?);
        Ok((kept, Vec::new()))
    }

    fn launch(
        &self,
        py: Python<'_>,
        arrays: Vec<Operand>,
    ) -> PyResult<(Vec<Operand>, Vec<Scalar>)> {
        let call = self.called(py)?;
        let (all, args, kwargs) = self.arguments(py, &call, arrays)?;
        let kernel = call.kernel.get();
        let returned = kernel.call(py, &args, Some(&kwargs), Mode::default())?;
        drop(args);
        kwargs.clear();
        let returned: Vec<Bound<'_, PyAny>> = match returned.cast::<PyList>() {
            Ok(many) if self.returned.len() != 1 => many.iter().collect(),
            _ => vec![returned],
        };
        let mut results = Vec::new();
        for ((ty, shape), value) in self.returned.iter().zip(&returned) {
            let lists = match shape.is_empty() {
                true => value.clone(),
                false => value.call_method0(pyo3::intern!(py, "to_list"))?,
            };
            all_numbers(&lists, *ty, shape.len(), &mut results)?;
        }
        let operands = all.iter().map(|tensor| {
            let native = native_of(tensor)?.expect("made above");
            native.get().expect_no_history("a kernel", "")?;
            native.get().computed(py)
        });
        Ok((operands.collect::<PyResult<Vec<Operand>>>()?, results))
    }
}

impl Held for KernelRunner {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The holder of the lock is alive.
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

    fn clear(&self) {
        let held = lock(&self.call).take();
        drop(held);
    }
}

/// Calls a function of Python's as a statement of a program, with tensors that it reads.
pub(super) struct Watcher {
    function: Mutex<Option<Py<PyAny>>>,
    least: Option<(i32, String)>,
}

impl Watcher {
    pub(super) fn new(function: Py<PyAny>, least: Option<(i32, String)>) -> Self {
        Self {
            function: Mutex::new(Some(function)),
            least,
        }
    }

    fn look(&self, py: Python<'_>, arrays: &[Operand]) -> PyResult<()> {
        let class = CLASS.get(py).expect("a tensor of the class was recorded");
        let mut args = Vec::new();
        for operand in arrays {
            // What it keeps is not changed by what comes afterwards.
            let kept = leaf(operand.copied().map_err(error::memory)?);
            args.push(class.bind(py).call1((Bound::new(py, kept)?,))?);
        }
        let function = lock(&self.function).as_ref().map(|f| f.clone_ref(py));
        let Some(function) = function else {
            return Err(error::runtime(py, "the program no longer exists"));
        };
        function.call1(py, PyTuple::new(py, args)?)?;
        Ok(())
    }
}

impl Runner for Watcher {
    fn run(&self, arrays: Vec<Operand>) -> Result<(Vec<Operand>, Vec<Scalar>), RunError> {
        Python::attach(|py| {
            let done = self.look(py, &arrays);
            done.map_err(|e| RunError::Region(Raised(Arc::new(e))))
        })?;
        Ok((arrays, Vec::new()))
    }

    fn least(&self) -> Option<(i32, &str)> {
        let (least, message) = self.least.as_ref()?;
        Some((*least, message))
    }
}

impl Held for Watcher {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.function.try_lock() {
            Ok(function) => function.as_ref().map_or(Ok(()), |f| visit.call(f)),
            Err(_) => Ok(()),
        }
    }

    fn clear(&self) {
        let held = lock(&self.function).take();
        drop(held);
    }
}
