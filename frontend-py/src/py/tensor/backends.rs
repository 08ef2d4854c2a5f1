//! Back ends: compiled plans, the interpreter, and objects of Python that evaluate programs.

use std::any::Any;
use std::sync::{Arc, LazyLock, Mutex};

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;
use aerogel_tensor::ir::{Failure, Site, resolved};
use aerogel_tensor::passes::Products;
use aerogel_tensor::session::{
    Backend, Ended, Held, LazyError, Order, Storage, Structure, choose, deliver, order, realise,
};
use aerogel_tensor::{Gemm, Operand, OutOfBounds, Program, Role, RunError, Settings};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::blas;
use super::dropped::{Dropped, drop_objects};
use super::ended::Traced;
use super::native::{Home, NativeTensor, SESSION, lock, scalar_type};
use super::program_view::view;
use super::values::{NativeMemory, failed, settings_now};
use crate::py::{error, foreign};

/// What evaluates the statements of a back end.
#[derive(Clone)]
enum Evaluator {
    /// Compiled plans, with products of matrices by a library.
    Plans(Option<&'static dyn Gemm>),
    Interpreter,
    /// An object with `from_host`, `to_host` and `run`, which checks what these return.
    Python(Arc<Py<PyAny>>),
}

/// The evaluators of back ends from the first on that is no plans.
static EVALUATORS: Mutex<Vec<Evaluator>> = Mutex::new(Vec::new());

fn evaluator(backend: Backend) -> Evaluator {
    match backend {
        Backend::NATIVE => Evaluator::Plans(None),
        Backend(number) => lock(&EVALUATORS)[usize::from(number) - 1].clone(),
    }
}

fn register(name: &str, evaluator: Evaluator) -> u16 {
    let mut all = lock(&EVALUATORS);
    all.push(evaluator);
    Backend::register(name).0
}

/// Registers a back end that an object of Python is: its number.
#[pyfunction]
pub(crate) fn add_backend(name: &str, evaluator: Py<PyAny>) -> u16 {
    register(name, Evaluator::Python(Arc::new(evaluator)))
}

/// Registers the interpreter under a name.
#[pyfunction]
pub(crate) fn add_interpreter(name: &str) -> u16 {
    register(name, Evaluator::Interpreter)
}

/// Registers plans whose products of matrices are made by `cblas_sgemm` and `cblas_dgemm` at these addresses, which stay valid.
#[pyfunction]
pub(crate) fn add_blas(name: &str, single: usize, double: usize, is_long: bool) -> PyResult<u16> {
    if single == 0 || double == 0 {
        return Err(PyValueError::new_err("a BLAS has functions at addresses"));
    }
    let gemm = Evaluator::Plans(Some(blas::loaded(single, double, is_long)));
    Ok(register(name, gemm))
}

/// Sets the back end of what is made from now on, and whether each statement is evaluated at once.
#[pyfunction]
pub(crate) fn set_default_backend(number: u16, is_eager: bool) {
    lock(&SESSION).set_backend(Backend(number), is_eager);
}

/// Chooses the back end of what this thread makes; nothing leaves it to the program. Returns the choice before.
#[pyfunction]
pub(crate) fn choose_backend(number: Option<u16>) -> Option<u16> {
    if let Some(number) = number {
        lock(&SESSION).watch_from(Backend(number));
    }
    choose(number.map(Backend)).map(|backend| backend.0)
}

/// Has this thread make native tensors, as what an evaluator in Python computes with may be.
struct Natively(Option<Backend>);

impl Natively {
    fn begin() -> Self {
        Self(choose(Some(Backend::NATIVE)))
    }
}

impl Drop for Natively {
    fn drop(&mut self) {
        choose(self.0);
    }
}

fn stored(of: Backend, object: Py<PyAny>) -> Storage {
    let object: Arc<dyn Any + Send + Sync> = Arc::new(Dropped::of(object));
    Storage { of, object }
}

fn object_of<'py>(py: Python<'py>, storage: &Storage) -> Bound<'py, PyAny> {
    let object = storage.object.downcast_ref::<Dropped>();
    let object = object.and_then(Dropped::object);
    object.expect("an object of Python's").bind(py).clone()
}

/// Settings for the plans of a back end.
pub(super) fn planned<'c>(
    settings: Settings<'c>,
    backend: Backend,
    gemm: Option<&'static dyn Gemm>,
) -> Settings<'c> {
    let mut settings = settings;
    settings.backend = backend.0;
    settings.gemm = gemm;
    if gemm.is_some() {
        settings.options.products = Products::Library;
    }
    settings
}

/// Computes tensors of which some belong to other back ends than plans.
pub(super) fn realise_by_backends(py: Python<'_>, slots: &[u32]) -> PyResult<()> {
    let all = lock(&SESSION).by_backend(slots);
    let all = all.map_err(|e| PyValueError::new_err(e.to_string()))?;
    for (backend, slots) in all {
        if let Evaluator::Plans(gemm) = evaluator(backend) {
            settings_now(py, |settings| {
                let settings = planned(settings, backend, gemm);
                py.detach(|| realise(&SESSION, &slots, settings))
                    .map_err(|e| failed(py, e))
            })?;
            continue;
        }
        let ordered = order(&SESSION, &slots, backend).map_err(|e| failed(py, e))?;
        if let Some(order) = ordered {
            let made = made_of(py, &order, backend);
            let (made, outcome) = match made {
                Ok(made) => (Some(made), Ok(())),
                Err(e) => (None, Err(e)),
            };
            deliver(&SESSION, order, made);
            outcome?;
        }
    }
    drop_objects();
    Ok(())
}

fn made_of(py: Python<'_>, order: &Order, backend: Backend) -> PyResult<Vec<Held>> {
    let traced = || Traced {
        program: Program::clone(&order.program),
        lines: order.lines.clone(),
    };
    match evaluator(backend) {
        Evaluator::Interpreter => {
            let held = order.inputs.iter().map(|(_, held)| held);
            let done = interpreted(py, &order.program, held)?;
            let ended = |error| {
                LazyError::Run(Box::new(Ended {
                    error,
                    program: Program::clone(&order.program),
                    lines: order.lines.clone(),
                }))
            };
            done.map_err(|e| failed(py, ended(e)))
        }
        Evaluator::Python(object) => {
            let sizes = sizes_of(&order.program, &order.inputs, |(_, held)| held);
            let sizes = sizes.map_err(|e| traced().ended(py, &e.into()))?;
            let seen = seen_program(py, &order.program, &sizes)?;
            let inputs = sent(py, &object, backend, &order.program, &order.inputs)?;
            by_python(py, &object, backend, seen, inputs).map_err(|e| located(py, e, traced))
        }
        Evaluator::Plans(_) => unreachable!("plans are made by `realise`"),
    }
}

/// Runs a program by the interpreter.
fn interpreted<'h>(
    py: Python<'_>,
    program: &Program,
    inputs: impl Iterator<Item = &'h Held>,
) -> PyResult<Result<Vec<Held>, RunError>> {
    expect_no_fields(py, program)?;
    let mut arrays = Vec::new();
    for held in inputs {
        let Held::Host(operand) = held else {
            unreachable!("the interpreter's values are the host's")
        };
        arrays.push(operand.to_array().map_err(error::memory)?);
    }
    let made = py.detach(|| {
        let made = aerogel_tensor::interp::run(program, &mut arrays)?;
        let operands = made.iter().map(|array| Ok(Held::Host(Operand::of(array)?)));
        operands.collect::<Result<Vec<_>, RunError>>()
    });
    Ok(made)
}

fn expect_no_fields(py: Python<'_>, program: &Program) -> PyResult<()> {
    match program.trees.is_empty() {
        true => Ok(()),
        false => Err(error::runtime(
            py,
            "programs with fields run on the back end `native` only",
        )),
    }
}

fn description(held: &Held, program: &Program, number: usize) -> (ScalarType, Vec<usize>) {
    match held {
        Held::Host(operand) => (operand.ty, operand.shape.clone()),
        Held::Stored(_) => {
            let mut inputs = program.inputs();
            let def = &program.buffers[inputs.nth(number).expect("an input")];
            let sizes = def.shape.iter().map(|&dim| program.const_dim(dim));
            (def.ty, sizes.map(|n| n.unwrap_or(0) as usize).collect())
        }
    }
}

fn sizes_of<T>(
    program: &Program,
    inputs: &[T],
    held: impl Fn(&T) -> &Held,
) -> Result<Vec<i64>, Failure> {
    let all = inputs.iter().enumerate();
    let all: Vec<_> = all
        .map(|(k, input)| description(held(input), program, k))
        .collect();
    let all: Vec<_> = all.iter().map(|(ty, shape)| (*ty, &shape[..])).collect();
    resolved(program, &all)
}

/// Programs that Python has seen, by what they do.
static SEEN: LazyLock<Mutex<LookupMap<Structure, Py<PyAny>>>> = LazyLock::new(Mutex::default);
const MAX_SEEN: usize = 512;

fn seen_program(py: Python<'_>, program: &Arc<Program>, sizes: &[i64]) -> PyResult<Py<PyAny>> {
    let structure = Structure::of(program.clone());
    if let Some(seen) = lock(&SEEN).get(&structure) {
        return Ok(seen.clone_ref(py));
    }
    let made = view(py, program, sizes)?;
    let gone = {
        let mut all = lock(&SEEN);
        let gone = (all.len() >= MAX_SEEN).then(|| std::mem::take(&mut *all));
        all.insert(structure, made.clone_ref(py));
        gone
    };
    drop(gone);
    Ok(made)
}

/// The inputs in the form of the back end; tensors keep that form.
fn sent(
    py: Python<'_>,
    object: &Py<PyAny>,
    backend: Backend,
    program: &Program,
    inputs: &[(u32, Held)],
) -> PyResult<Vec<Py<PyAny>>> {
    let mut out = Vec::new();
    for ((slot, held), buffer) in inputs.iter().zip(program.inputs()) {
        debug_assert!(matches!(program.buffers[buffer].role, Role::Input(_)));
        let storage = match held {
            Held::Stored(storage) => storage.clone(),
            Held::Host(operand) => {
                let storage = send(py, object, backend, operand)?;
                lock(&SESSION).sent(*slot, storage.clone());
                storage
            }
        };
        out.push(object_of(py, &storage).unbind());
    }
    Ok(out)
}

fn send(
    py: Python<'_>,
    object: &Py<PyAny>,
    backend: Backend,
    operand: &Operand,
) -> PyResult<Storage> {
    let _natively = Natively::begin();
    let memory = Bound::new(py, NativeMemory::of(operand.clone()))?;
    let made = object.call_method1(py, "from_host", (memory, operand.ty.name()))?;
    Ok(stored(backend, made))
}

fn by_python(
    py: Python<'_>,
    object: &Py<PyAny>,
    backend: Backend,
    program: Py<PyAny>,
    inputs: Vec<Py<PyAny>>,
) -> PyResult<Vec<Held>> {
    let _natively = Natively::begin();
    let made = object.call_method1(py, "run", (program, PyList::new(py, inputs)?))?;
    let made: Vec<Py<PyAny>> = made.extract(py)?;
    let made = made.into_iter().map(|object| stored(backend, object));
    Ok(made.map(Held::Stored).collect())
}

/// An index outside that an evaluator has found, in the words of whoever wrote the access.
fn located(py: Python<'_>, e: PyErr, traced: impl Fn() -> Traced) -> PyErr {
    let found = e.value(py).getattr("_aerogel_out_of_bounds");
    let Ok((site, axis, index, size)) =
        found.and_then(|found| found.extract::<(u32, usize, i64, u64)>())
    else {
        return e;
    };
    let found = OutOfBounds {
        site: Site::from_u32(site),
        axis,
        index,
        size,
    };
    traced().ended(py, &RunError::Failure(Failure::Index(found)))
}

/// The values of a tensor on the host, if a back end alone holds them.
pub(super) fn fetched(py: Python<'_>, slot: u32) -> PyResult<Option<Operand>> {
    let (storage, (ty, shape)) = {
        let session = lock(&SESSION);
        let Some(storage) = session.storage(slot) else {
            return Ok(None);
        };
        (storage, session.description(slot))
    };
    let Evaluator::Python(object) = evaluator(storage.of) else {
        unreachable!("only Python's back ends hold values")
    };
    let _natively = Natively::begin();
    let sizes = PyTuple::new(py, &shape)?;
    let array = object.call_method1(py, "to_host", (object_of(py, &storage), ty.name(), sizes))?;
    let array = foreign::on_host(array.bind(py))?;
    let from = array.contents()?;
    let copy = Operand::of_bytes(&from, ty, &shape);
    let operand = copy.map_err(error::memory)?;
    lock(&SESSION).fetched(slot, operand.clone());
    Ok(Some(operand))
}

fn slot_of(tensor: &NativeTensor) -> PyResult<u32> {
    match tensor.home {
        Home::Lazy(slot) => Ok(slot),
        Home::Program(..) => Err(PyTypeError::new_err(
            "a tensor of a program that is traced belongs to no back end: the inputs decide when it runs",
        )),
    }
}

/// The number of the back end of a tensor.
#[pyfunction]
pub(crate) fn backend_of_tensor(tensor: &NativeTensor) -> PyResult<u16> {
    let found = lock(&SESSION).backend(slot_of(tensor)?);
    let found = found.map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(found.0)
}

/// A tensor with the values of another, which belongs to a back end.
#[pyfunction]
pub(crate) fn tensor_on_backend(
    py: Python<'_>,
    tensor: &NativeTensor,
    number: u16,
) -> PyResult<NativeTensor> {
    let operand = tensor.computed(py)?.copied().map_err(error::memory)?;
    let (ty, shape) = (operand.ty, operand.shape.clone());
    let held = match evaluator(Backend(number)) {
        Evaluator::Python(object) => Held::Stored(send(py, &object, Backend(number), &operand)?),
        _ => Held::Host(operand),
    };
    Ok(leaf_at(held, ty, &shape, Backend(number)))
}

fn leaf_at(held: Held, ty: ScalarType, shape: &[usize], backend: Backend) -> NativeTensor {
    NativeTensor {
        home: Home::Lazy(lock(&SESSION).leaf_at(held, ty, shape, backend)),
    }
}

/// A tensor of a storage of a back end, with this type and shape.
#[pyfunction]
pub(crate) fn tensor_of_storage(
    storage: Py<PyAny>,
    dtype: &str,
    shape: Vec<usize>,
    number: u16,
) -> PyResult<NativeTensor> {
    let held = Held::Stored(stored(Backend(number), storage));
    Ok(leaf_at(held, scalar_type(dtype)?, &shape, Backend(number)))
}

/// The storage of a tensor in the form of its back end; nothing for those whose values are memory of the host.
#[pyfunction]
pub(crate) fn storage_of_tensor(
    py: Python<'_>,
    tensor: &NativeTensor,
) -> PyResult<Option<Py<PyAny>>> {
    let slot = slot_of(tensor)?;
    let backend = Backend(backend_of_tensor(tensor)?);
    let Evaluator::Python(object) = evaluator(backend) else {
        return Ok(None);
    };
    if lock(&SESSION).storage(slot).is_none() {
        let there = lock(&SESSION).value(slot);
        match there {
            Some(value) => {
                let storage = send(py, &object, backend, &value)?;
                lock(&SESSION).sent(slot, storage.clone());
                return Ok(Some(object_of(py, &storage).unbind()));
            }
            None => realise_by_backends(py, &[slot])?,
        }
    }
    let storage = lock(&SESSION).storage(slot);
    Ok(storage.map(|storage| object_of(py, &storage).unbind()))
}

/// Programs that are traced, as back ends see them for each shape of their inputs.
#[derive(Default)]
pub(super) struct Views(Mutex<LookupMap<Vec<Vec<usize>>, Py<PyAny>>>);

/// Runs a traced program by the back end of its inputs; nothing if that is made of plans.
pub(super) fn run_program(
    py: Python<'_>,
    traced: &Traced,
    views: &Views,
    inputs: &[Bound<'_, NativeTensor>],
) -> PyResult<Option<Vec<NativeTensor>>> {
    let slots = inputs.iter().map(|t| slot_of(t.get()));
    let slots = slots.collect::<PyResult<Vec<u32>>>()?;
    let backend = lock(&SESSION).backend_for(&slots);
    let backend = backend.map_err(|e| PyValueError::new_err(e.to_string()))?;
    let chosen = evaluator(backend);
    if let Evaluator::Plans(None) = chosen {
        return Ok(None);
    }
    let program = &traced.program;
    expect_no_fields(py, program)?;
    let described: Vec<(ScalarType, Vec<usize>)> = {
        let session = lock(&SESSION);
        slots
            .iter()
            .map(|&slot| session.description(slot))
            .collect()
    };
    let given: Vec<_> = described
        .iter()
        .map(|(ty, shape)| (*ty, &shape[..]))
        .collect();
    let sizes = resolved(program, &given).map_err(|e| traced.ended(py, &e.into()))?;
    let made = match chosen {
        Evaluator::Python(object) => {
            let key: Vec<Vec<usize>> = described.iter().map(|d| d.1.clone()).collect();
            let known = lock(&views.0).get(&key).map(|seen| seen.clone_ref(py));
            let seen = match known {
                Some(seen) => seen,
                None => {
                    let made = view(py, program, &sizes)?;
                    lock(&views.0).insert(key, made.clone_ref(py));
                    made
                }
            };
            let mut storages = Vec::new();
            for input in inputs {
                let own = Backend(backend_of_tensor(input.get())?);
                let storage = match own == backend {
                    true => storage_of_tensor(py, input.get())?,
                    false => None,
                };
                storages.push(match storage {
                    Some(storage) => storage,
                    None => {
                        let value = input.get().computed(py)?;
                        object_of(py, &send(py, &object, backend, &value)?).unbind()
                    }
                });
            }
            let copy = || Traced {
                program: program.clone(),
                lines: traced.lines.clone(),
            };
            by_python(py, &object, backend, seen, storages).map_err(|e| located(py, e, copy))?
        }
        Evaluator::Interpreter => {
            let values = inputs.iter().map(|t| t.get().computed(py).map(Held::Host));
            let values = values.collect::<PyResult<Vec<_>>>()?;
            let made = interpreted(py, program, values.iter())?;
            made.map_err(|e| traced.ended(py, &e))?
        }
        Evaluator::Plans(gemm) => {
            let values = inputs.iter().map(|t| t.get().computed(py));
            let values = values.collect::<PyResult<Vec<_>>>()?;
            let made = settings_now(py, |settings| {
                let settings = planned(settings, backend, gemm);
                let plan = aerogel_tensor::Plan::new(program.clone(), settings)
                    .map_err(|e| super::values::not_compiled(py, &e))?;
                let made = py.detach(|| plan.run(&values));
                made.map_err(|e| traced.ended(py, &e))
            })?;
            made.into_iter().map(Held::Host).collect()
        }
    };
    let results = program.results.iter().zip(made);
    let results = results.map(|(&buffer, held)| {
        let def = &program.buffers[buffer];
        let shape = def
            .shape
            .iter()
            .map(|&dim| sizes[dim.as_u32() as usize] as usize);
        leaf_at(held, def.ty, &shape.collect::<Vec<_>>(), backend)
    });
    Ok(Some(results.collect()))
}

/// Calls a function of linear algebra or a Fourier transform with arrays of NumPy's, as back ends do that have none: its
/// results, of these types and shapes.
#[pyfunction]
pub(crate) fn call_library<'py>(
    py: Python<'py>,
    name: &str,
    inputs: Vec<Bound<'py, PyAny>>,
    outputs: Vec<(String, Vec<usize>)>,
) -> PyResult<Vec<NativeMemory>> {
    let operand = |array: &Bound<'_, PyAny>| {
        let array = foreign::on_host(array)?;
        let ty = array
            .ty
            .ok_or_else(|| PyTypeError::new_err("an array of numbers"))?;
        let from = array.contents()?;
        Operand::of_bytes(&from, ty, &array.shape).map_err(error::memory)
    };
    let inputs = inputs.iter().map(operand).collect::<PyResult<Vec<_>>>()?;
    let outputs = outputs
        .iter()
        .map(|(dtype, shape)| Operand::zeros(scalar_type(dtype)?, shape).map_err(error::memory));
    let outputs = outputs.collect::<PyResult<Vec<_>>>()?;
    let done = py.detach(|| aerogel_tensor::call_library(name, &inputs, &outputs));
    done.map_err(PyValueError::new_err)?;
    Ok(outputs.into_iter().map(NativeMemory::of).collect())
}
