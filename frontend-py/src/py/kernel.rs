//! Kernels in Python: one instance for each specialisation, and launches.
//!
//! A kernel call with an existing instance: pack the arguments into 8-byte slots, look the instance up by the key of
//! template arguments and array types, and call it without the GIL.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::caught;
use aerogel_runtime::{TaskTrace, TreeMemory, faults, launch};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use smallvec::SmallVec;

use super::activity::NativePast;
use super::argument::{Key, KeyPart, Packed};
use super::exported::Files;
use super::foreign::Giver;
use super::foreign::copies::Copied;
use super::instances::Instances;
use super::later::Explain;
use super::prepare::{self, Instance};
use super::profile;
use super::program::{self, Settings};
use super::signature::{ParamKind, Signature};
use super::tensor::written;
use super::{
    error, exported, inspection, later, recorder, regions, shared_memory, signals, tensor,
};
use crate::derived::Derived;

/// The object that `@ti.kernel` returns.
#[pyclass(module = "aerogel._native", subclass, frozen)]
pub(crate) struct NativeKernel {
    function: Py<PyAny>,
    pub(crate) signature: Signature,
    instances: Instances,
}

#[pymethods]
impl NativeKernel {
    #[new]
    fn new(
        function: &Bound<'_, PyAny>,
        params: Vec<(String, Bound<'_, PyTuple>)>,
        results: Option<Vec<Bound<'_, PyAny>>>,
        many: bool,
    ) -> PyResult<Self> {
        Ok(Self {
            function: function.clone().unbind(),
            signature: Signature::read(function, params, results, many)?,
            instances: Instances::default(),
        })
    }

    /// What it holds, so that a program's module can go when it ends: files that it has left open are written then.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        self.signature
            .defaults
            .iter()
            .try_for_each(|d| visit.call(d))?;
        self.instances.traverse(&visit)
    }

    /// Name and kind of each parameter: `array`, `value`, or `other` for what is known when the kernel is compiled.
    fn _parameters(&self) -> Vec<(&str, &'static str)> {
        let params = self.signature.params.iter();
        params.map(|p| (&*p.name, p.kind.name())).collect()
    }

    /// The shape of an array's elements by its annotation: empty for scalars, `None` if it is not specified.
    fn _element_of(&self, name: &str) -> Option<Vec<usize>> {
        let param = self.signature.params.iter().find(|p| *p.name == *name)?;
        match &param.kind {
            ParamKind::Array { element, .. } => element.clone(),
            _ => None,
        }
    }

    #[getter]
    fn __aerogel_kernel__(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(recorder) = recorder::current(py) {
            let result =
                recorder.call_method1(py, pyo3::intern!(py, "launch"), (slf, args, kwargs))?;
            return Ok(result.into_bound(py));
        }
        let result = this.call(py, args, kwargs, Mode::default());
        if result.is_err() && tensor::has_history_in(args, kwargs) {
            // Refused above: the call is one with a gradient.
            let rules = py.import("aerogel.tensor._kernels")?;
            return rules.call_method1("call", (slf, args, kwargs));
        }
        result
    }

    /// The call itself, whether somebody records calls or not: of the kernel or of its derivative, which draws the
    /// random numbers of the launch with the same seed. A gradient may read values that the kernel overwrites, if memory has
    /// been restored, and query which cells were active then, if `past` is given.
    #[pyo3(signature = (args, kwargs, derivative = None, seed = None, is_restored = false, past = None))]
    #[expect(clippy::too_many_arguments, reason = "Python's signature")]
    fn _launch<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        derivative: Option<&str>,
        seed: Option<u64>,
        is_restored: bool,
        past: Option<&Bound<'py, NativePast>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mode = Mode {
            derivative: derivative_named(derivative)?,
            seed,
            is_restored,
            past: past.map(Bound::get),
        };
        self.call(py, args, kwargs, mode)
    }

    /// The gradient of what the kernel returns, each number times its seed, by the floats among its arguments: a list
    /// for each parameter that has any. Gradients of fields and arrays grow as by a tape. `derivative` is the gradient, or
    /// that with its tangents.
    #[pyo3(signature = (args, kwargs, seeds, seed = None, is_restored = false, derivative = "grad"))]
    #[expect(clippy::too_many_arguments, reason = "Python's signature")]
    fn _pull_back(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        seeds: Vec<f64>,
        seed: Option<u64>,
        is_restored: bool,
        derivative: &str,
    ) -> PyResult<Vec<Option<Vec<f64>>>> {
        let mode = Mode {
            derivative: derivative_named(Some(derivative))?,
            seed,
            is_restored,
            ..Mode::default()
        };
        caught(|| self.pull_back(py, args, kwargs, &seeds, mode))
            .unwrap_or_else(|panic| Err(prepare::broken(py, &self.signature.name, panic)))
    }

    /// The gradient, as a tape launches it, and the kinks that it met: a text for each, and how often. What `seed` and
    /// `past` are `_launch` says.
    #[pyo3(signature = (args, kwargs, seed, past = None))]
    fn _launch_counting_kinks(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        seed: u64,
        past: Option<&Bound<'_, NativePast>>,
    ) -> PyResult<Vec<(String, u64)>> {
        let mode = Mode {
            derivative: Some(Derived::Grad),
            seed: Some(seed),
            is_restored: true,
            past: past.map(Bound::get),
        };
        caught(|| self.count_kinks(py, args, kwargs, mode))
            .unwrap_or_else(|panic| Err(prepare::broken(py, &self.signature.name, panic)))
    }

    /// The names of the array parameters that a launch with these arguments may write.
    #[pyo3(signature = (args, kwargs = None))]
    fn _written(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<String>> {
        let (instance, packed) = self.prepared(py, args, kwargs, None)?;
        let arrays = packed.iter().filter_map(Packed::array_name);
        let written = arrays.zip(&instance.primal_writes).filter(|(_, w)| **w);
        Ok(written.map(|(name, _)| name.to_owned()).collect())
    }

    /// Whether a launch with these arguments reads and writes nothing but them: no fields, and no arrays by other names.
    fn _is_pure(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let (instance, _) = self.prepared(py, args, None, None)?;
        Ok(instance.trees.is_empty() && instance.captured.is_empty())
    }

    /// What the compiler made: the instance for these arguments, or the latest one.
    fn _inspect<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        located: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let instance = self.chosen(py, args, kwargs, "inspect")?;
        inspection::inspect(py, &self.signature.name, &instance, located)
    }

    /// C code of the instance for these arguments, or the latest one: see `exported.rs`.
    fn _export_c<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        name: &str,
        identify: &Bound<'py, PyAny>,
    ) -> PyResult<Files<'py>> {
        exported::expect_cpu(py, "a kernel")?;
        let instance = self.chosen(py, args, None, "export_c")?;
        self.exported(py, &instance, name, identify)
    }
}

/// Which of a kernel's launches one is.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mode<'p> {
    derivative: Option<Derived>,
    /// Of the random numbers; a new one if there is none.
    seed: Option<u64>,
    /// Whether memory is as it was before the kernel itself ran.
    is_restored: bool,
    /// Which cells were active, where that has changed.
    past: Option<&'p NativePast>,
}

pub(super) fn derivative_named(name: Option<&str>) -> PyResult<Option<Derived>> {
    let Some(name) = name else {
        return Ok(None);
    };
    Derived::from_name(name)
        .map(Some)
        .ok_or_else(|| PyValueError::new_err(format!("there is no derivative {name:?}")))
}

/// The arguments of a launch, and what is to be done with them after it.
#[derive(Default)]
struct Passed<'a> {
    args: launch::Args<'a>,
    copied_back: Vec<&'a Copied>,
    told: Vec<&'a Giver>,
}

impl NativeKernel {
    /// The instance for some arguments, or without any the latest one, for a method that compiles and does not launch.
    fn chosen<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        method: &str,
    ) -> PyResult<Arc<Instance>> {
        let settings = tensor::settings_for(py, args, kwargs)?;
        program::materialize(py)?;
        let latest = if args.is_empty() && kwargs.is_none_or(|k| k.is_empty()) {
            self.instances.last()
        } else {
            None
        };
        match latest {
            Some(instance) => Ok(instance),
            None => {
                let values = self.signature.bind(py, args, kwargs).map_err(|e| {
                    if !args.is_empty() || kwargs.is_some_and(|k| !k.is_empty()) {
                        return e;
                    }
                    let remedy = format!("call it first, or pass its arguments to `{method}`");
                    error::runtime(
                        py,
                        format!(
                            "kernel `{}` is not compiled yet: {remedy}",
                            self.signature.name
                        ),
                    )
                })?;
                let (_, key) = self.signature.pack(py, &settings, &values, None)?;
                self.instance(py, &settings, key, &values)
            }
        }
    }

    /// The call itself, whether somebody records calls or not.
    pub(crate) fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        mode: Mode<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        caught(|| self.call_caught(py, args, kwargs, mode))
            .unwrap_or_else(|panic| Err(prepare::broken(py, &self.signature.name, panic)))
    }

    /// The instance for some arguments, and how they are passed.
    pub(crate) fn prepared(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        derivative: Option<Derived>,
    ) -> PyResult<(Arc<Instance>, Vec<Packed>)> {
        let settings = tensor::settings_for(py, args, kwargs)?;
        program::materialize(py)?;
        let values = self.signature.bind(py, args, kwargs)?;
        let (packed, key) = self.signature.pack(py, &settings, &values, derivative)?;
        let instance = self.instance(py, &settings, key, &values)?;
        Ok((instance, packed))
    }

    /// The arrays that an instance takes besides the arguments.
    pub(crate) fn captured_arrays(
        &self,
        py: Python<'_>,
        instance: &Instance,
    ) -> PyResult<Vec<Packed>> {
        let arrays = instance.captured.iter();
        arrays
            .map(|array| {
                self.signature
                    .captured(py, array.bind(py), instance.derivative)
            })
            .collect()
    }

    fn call_caught<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        mode: Mode<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let settings = tensor::settings_for(py, args, kwargs)?;
        program::materialize(py)?;
        let given = self.signature.bind(py, args, kwargs).and_then(|values| {
            let (packed, mut key) = self
                .signature
                .pack(py, &settings, &values, mode.derivative)?;
            key.extend(mode.past.map(|_| KeyPart::Past));
            Ok((values, packed, key))
        });
        let (values, packed, key) = given.map_err(|e| {
            let e = self.signature.traced(py, args, kwargs).unwrap_or(e);
            error::noted(e, self.function(py), &self.signature.text())
        })?;
        let instance = self.instance(py, &settings, key, &values)?;
        if !mode.is_restored {
            instance.expect_nothing_overwritten(py)?;
        }
        if mode.derivative == Some(Derived::Grad) {
            self.signature
                .expect_required(&instance.primal_writes, &values)?;
            if !mode.is_restored {
                instance.warn_if_idle(py, &self.signature.name)?;
            }
        }
        let types = self.signature.results.as_deref().unwrap_or(&[]);
        let mut results = vec![0u64; types.iter().map(|t| t.n_components()).sum()];
        self.launch(py, &settings, &instance, &packed, mode, (&[], &mut results))?;
        self.signature.returned(py, &settings, types, &results)
    }

    fn count_kinks(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        mode: Mode<'_>,
    ) -> PyResult<Vec<(String, u64)>> {
        let settings = tensor::settings_for(py, args, kwargs)?;
        program::materialize(py)?;
        let values = self.signature.bind(py, args, kwargs)?;
        let (packed, mut key) = self
            .signature
            .pack(py, &settings, &values, mode.derivative)?;
        key.push(KeyPart::Kinks);
        key.extend(mode.past.map(|_| KeyPart::Past));
        let instance = self.instance(py, &settings, key, &values)?;
        let mut counts = vec![0u64; instance.of_derivative.kinks.len()];
        self.launch(py, &settings, &instance, &packed, mode, (&[], &mut counts))?;
        let all = instance.of_derivative.kinks.iter().cloned().zip(counts);
        Ok(all.filter(|(_, n)| *n > 0).collect())
    }

    fn pull_back(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        seeds: &[f64],
        mode: Mode<'_>,
    ) -> PyResult<Vec<Option<Vec<f64>>>> {
        let settings = tensor::settings_for(py, args, kwargs)?;
        program::materialize(py)?;
        let types = self.signature.results.as_deref().unwrap_or(&[]);
        let types: Vec<ScalarType> = types.iter().flat_map(|t| t.scalars(&settings)).collect();
        if types.len() != seeds.len() {
            let (n, name) = (types.len(), &self.signature.name);
            let what = format!("kernel `{name}` returns {n} numbers and needs as many seeds");
            return Err(PyValueError::new_err(what));
        }
        let slot = |(&ty, &seed): (&ScalarType, &f64)| match ty.is_float() {
            true => Scalar::float(ty, seed).slot(),
            false => 0,
        };
        let extra: Vec<u64> = types.iter().zip(seeds).map(slot).collect();
        let values = self.signature.bind(py, args, kwargs)?;
        let (packed, mut key) = self
            .signature
            .pack(py, &settings, &values, mode.derivative)?;
        key.push(KeyPart::Ends);
        let instance = self.instance(py, &settings, key, &values)?;
        if !mode.is_restored {
            instance.expect_nothing_overwritten(py)?;
        }
        let floats: Vec<Vec<ScalarType>> = self
            .signature
            .params
            .iter()
            .map(|param| {
                let mut all = param.kind.scalars(&settings);
                all.retain(|ty| ty.is_float());
                all
            })
            .collect();
        let mut results = vec![0u64; floats.iter().map(Vec::len).sum()];
        self.launch(
            py,
            &settings,
            &instance,
            &packed,
            mode,
            (&extra, &mut results),
        )?;
        let mut results = results.into_iter();
        let number = |ty: ScalarType, slot| Scalar::from_slot(ty, slot).as_f64();
        let of_param = |types: Vec<ScalarType>| {
            let numbers: Vec<f64> = types
                .into_iter()
                .zip(results.by_ref())
                .map(|(ty, slot)| number(ty, slot))
                .collect();
            (!numbers.is_empty()).then_some(numbers)
        };
        Ok(floats.into_iter().map(of_param).collect())
    }

    /// The Python function under the decorator.
    pub(crate) fn function<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.function.bind(py)
    }

    /// The instance for a key, compiled if there is none.
    fn instance(
        &self,
        py: Python<'_>,
        settings: &Settings,
        key: Key,
        values: &[Bound<'_, PyAny>],
    ) -> PyResult<Arc<Instance>> {
        let compile = |key: &Key| {
            prepare::compile(
                py,
                self.function(py),
                &self.signature,
                settings,
                key,
                values,
            )
        };
        self.instances.get(py, key, &compile)
    }

    /// Refuses an array that the kernel writes to, and in which nobody would find what it writes.
    fn expect_writable(&self, py: Python<'_>, array: &Packed) -> PyResult<()> {
        let Packed::Array {
            name,
            read_only,
            giver,
            copied,
            ..
        } = array
        else {
            return Ok(());
        };
        let kernel = &self.signature.name;
        if let Some(why) = read_only {
            return Err(PyValueError::new_err(format!(
                "the array for argument `{name}` {why}, and kernel `{kernel}` writes to it"
            )));
        }
        if let Some(giver) = giver
            && !giver.is_shared(py)?
        {
            return Err(PyValueError::new_err(format!(
                "the object for argument `{name}` returns a new copy on each access to its memory, and the writes of \
                 kernel `{kernel}` would be lost: pass an array of your own, and copy it back"
            )));
        }
        if copied.as_ref().is_some_and(|copied| copied.may_repeat()) {
            return Err(PyValueError::new_err(format!(
                "elements of the array for argument `{name}` share memory, and kernel `{kernel}` writes to them; pass a \
                 copy"
            )));
        }
        Ok(())
    }

    /// The arguments of a launch. `sources` says which array stands for each, where several are one memory.
    fn passed<'a>(
        &self,
        py: Python<'_>,
        all: impl Iterator<Item = &'a Packed>,
        sources: &[usize],
        (instance, tensors): (&Instance, &'a BTreeMap<usize, written::WrittenTensor>),
    ) -> PyResult<Passed<'a>> {
        let mut out = Passed::default();
        let mut arrays: SmallVec<[_; 4]> = SmallVec::new();
        for packed in all {
            let (array, shape, cell_bytes, giver, copied) = match packed {
                Packed::Slots(slots) => {
                    slots.iter().for_each(|&slot| out.args.scalar(slot));
                    continue;
                }
                Packed::Array {
                    array,
                    shape,
                    cell_bytes,
                    giver,
                    copied,
                    ..
                } => (array, shape, *cell_bytes, giver, copied),
            };
            let k = arrays.len();
            let written = instance.is_written(k);
            if written {
                self.expect_writable(py, packed)?;
                out.told.extend(giver);
            }
            arrays.push((array, copied.as_deref()));
            let (array, copied) = arrays[sources.get(k).copied().unwrap_or(k)];
            if written {
                out.copied_back.extend(copied);
            }
            let buffer = match tensors.get(&k) {
                Some(written) => &written.memory.buffer,
                None => array.buffer()?,
            };
            let passed = out.args.array(buffer, shape, cell_bytes);
            passed.map_err(error::memory)?;
        }
        Ok(out)
    }

    /// Launches an instance; `extra` are the slots of arguments behind all others.
    fn launch(
        &self,
        py: Python<'_>,
        settings: &Settings,
        instance: &Arc<Instance>,
        packed: &[Packed],
        mode: Mode<'_>,
        (extra, results): (&[u64], &mut [u64]),
    ) -> PyResult<()> {
        later::tell(py)?;
        let is_written = |k| instance.is_written(k);
        let captured = self.captured_arrays(py, instance)?;
        let own = || packed.iter().chain(&captured);
        // The arrays of derivatives come behind all others, in the order of those they belong to.
        let all = || own().chain(own().flat_map(Packed::derivatives));
        let sources = shared_memory::sources(all(), is_written)?.map_err(|pair| {
            shared_memory::refused(&self.signature.name, all(), packed.len(), pair)
        })?;
        if mode.derivative.is_some() {
            self.signature
                .expect_apart(py, &instance.primal_writes, own())?;
            instance.expect_told_apart(py, packed.iter())?;
        }
        let mut tensors = written::tensors(py, packed, is_written)?;
        let Passed {
            mut args,
            copied_back,
            told,
        } = self.passed(py, all(), &sources, (instance, &tensors))?;
        let past = instance.of_derivative.past.iter().map(|&tree| {
            let store = instance.trees[tree].store();
            let of = store.and_then(|store| mode.past?.memory(store.key));
            Ok(of.expect("a tape has said which cells were active"))
        });
        let memories = instance
            .trees
            .iter()
            .map(|tree| tree.memory(py))
            .chain(past)
            .collect::<PyResult<SmallVec<[Arc<TreeMemory>; 4]>>>()?;
        let writes = mode.derivative.is_some() || !instance.summary.stored.is_empty();
        shared_memory::expect_no_fields(
            all(),
            (&instance.summary.fields, &memories),
            &self.signature.name,
            |k| writes || is_written(k),
        )?;
        let roots: SmallVec<[&TreeMemory; 4]> = memories.iter().map(|m| &**m).collect();
        extra.iter().for_each(|&slot| args.scalar(slot));
        let sink = Mutex::new(String::new());
        let seed = mode.seed.unwrap_or_else(|| program::launch_seed(settings));
        let begin = profile::begin();
        let trace = begin.map(|_| TaskTrace::default());
        let later = match results.is_empty() {
            true => later::waiting(settings, instance, &self.signature.name, begin, &memories),
            false => None,
        };
        let exchanges = instance.exchanges(py)?;
        if let Some(exchanges) = &exchanges {
            args.set_exchanges(exchanges);
        }
        signals::heed(py)?;
        let named = instance.in_faults(&self.signature.name);
        let outcome = py.detach(|| {
            let _running = faults::running(named);
            instance.launch(launch::Launch {
                args: &args,
                roots: &roots,
                results,
                sink: &sink,
                seed,
                most_reserved: settings.ad_memory,
                trace: trace.as_ref(),
                later: later.as_ref(),
            })
        });
        let exchanged = exchanges.map_or(Ok(()), |exchanges| {
            exchanges.end(py, matches!(outcome, Ok(Ok(()))))
        });
        // What was launched before has printed before.
        let mut earlier = later::tell(py);
        if !copied_back.is_empty() {
            earlier = earlier.and(later::settle(py));
        }
        // All of it is done, whatever fails; the failure of the kernel comes first.
        let mut after = Ok(());
        for copied in copied_back {
            after = after.and(copied.copy_back());
        }
        for giver in told {
            after = after.and(giver.tell(py));
        }
        let has_ended = later.is_none() || trace.as_ref().is_some_and(|t| t.time().is_some());
        if let (Some(begin), Some(trace), true) = (begin, &trace, has_ended) {
            let name = regions::labelled(regions::current(), &self.signature.name);
            profile::launched(&name, begin, trace.time(), &trace.runs());
        }
        let printed = sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        after = after.and(later::print(py, &printed));
        earlier?;
        exchanged?;
        outcome
            .map_err(|panic| instance.broken(py, panic, &self.signature.name))?
            .map_err(|failure| match failure {
                launch::KernelFailure::Tree { root, error } => {
                    error::tree_memory(error, memories[root].tree())
                }
                other => instance.failure(py, other, &self.signature.name),
            })?;
        after?;
        tensors.values_mut().try_for_each(|written| written.end(py))
    }
}
