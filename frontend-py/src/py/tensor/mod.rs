//! Tensors for `aerogel.tensor`: what is recorded of each operation, and numbers where they are asked for.

mod ended;
mod kernels;
mod mapped;
mod operations;
mod parts;
mod places;
mod trace;
mod values;
pub(crate) mod written;

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::Compiler;
use aerogel_tensor::lazy::{Session, Slot};
use aerogel_tensor::record::{Place, RecordError, Recorded, Recording};
use aerogel_tensor::{Buffer, Codes, Dim, Outside, Plan, Settings, Stmt};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::program;
use super::snode::TreeStore;

pub(crate) use mapped::{one_of_tensor, vmap_tensors};
pub(crate) use parts::NativePart;
pub(crate) use values::{NativeMemory, realise_tensors, tensor_counts};

/// The class of tensors.
static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

#[pyfunction]
pub(crate) fn set_tensor_class(class: Bound<'_, PyType>) {
    let _ = CLASS.set(class.py(), class.unbind());
}

/// What a `ti.tensor` is made by; nothing if this is none.
pub(crate) fn native_of<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, NativeTensor>>> {
    let py = value.py();
    let class = CLASS.get(py);
    if !class.is_some_and(|class| value.get_type().is(class)) {
        return Ok(None);
    }
    let native = value.getattr(pyo3::intern!(py, "_native"))?;
    Ok(Some(native.cast_into()?))
}

/// What tensors outside of programs are recorded in.
static SESSION: LazyLock<Mutex<Session>> = LazyLock::new(Mutex::default);
static CODES: LazyLock<Codes> = LazyLock::new(Codes::default);

/// What programs of tensors are compiled for.
fn made_for<'c>(settings: &program::Settings, compiler: &'c Compiler) -> Settings<'c> {
    Settings {
        compiler,
        fast_math: settings.fast_math,
        options: settings.tensor_options(),
        codes: &CODES,
        stamp: program::generation(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a tensor is recorded.
enum Home {
    /// Outside of programs.
    Lazy(Slot),
    /// In a program.
    Program(Arc<Mutex<Recording>>, Buffer),
}

/// A tensor: what it is made by, and its numbers once they have been asked for.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeTensor {
    home: Home,
}

impl Drop for NativeTensor {
    fn drop(&mut self) {
        if let Home::Lazy(slot) = self.home {
            lock(&SESSION).release(slot);
        }
    }
}

/// What is being recorded.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeTrace {
    recording: Option<Arc<Mutex<Recording>>>,
    /// The trees of fields, in the program's order.
    trees: Mutex<Vec<Arc<TreeStore>>>,
    /// The kernels of the user's that are called.
    runners: Mutex<Vec<Arc<dyn kernels::Held>>>,
    /// The statements around the block that is recorded.
    blocks: Mutex<Vec<Vec<Stmt>>>,
}

/// A traced program, ready to run.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeProgram {
    plan: Plan,
    /// The trees of its fields.
    trees: Vec<Arc<TreeStore>>,
    stores_to_fields: bool,
    /// The kernels of the user's that it calls.
    runners: Vec<Arc<dyn kernels::Held>>,
    /// By which `ti.init` it was made.
    generation: u64,
    text: String,
    /// What became of its statements.
    explained: String,
    /// What was traced, for messages.
    traced: ended::Traced,
}

/// An extent: a number, or one of a program.
#[derive(FromPyObject)]
enum Extent<'py> {
    Number(u64),
    Of(Bound<'py, NativeDim>),
}

/// An extent that is known when a program runs.
#[pyclass(module = "aerogel._native", frozen, eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NativeDim {
    dim: Dim,
}

/// Notes where the user's program is, if something has been recorded outside of programs since the last time.
fn note() {
    if lock(&SESSION).is_noted() {
        return;
    }
    let place = Python::attach(places::here);
    lock(&SESSION).note(place);
}

fn raised(e: RecordError) -> PyErr {
    let message = e.to_string();
    match e {
        RecordError::Types { .. } => PyTypeError::new_err(message),
        RecordError::Axis { .. } | RecordError::Index(_) => PyIndexError::new_err(message),
        RecordError::Extents { .. } | RecordError::Value(_) => PyValueError::new_err(message),
    }
}

/// Refuses what was made of one of many, once it is over.
fn expect_there(r: &Recording, buffer: Buffer) -> PyResult<()> {
    if !r.is_gone(buffer) {
        return Ok(());
    }
    let place = r.lines.get(buffer);
    let made = Python::attach(|py| places::named(py, place));
    let made = made.map_or_else(String::new, |made| format!(", made in {made},"));
    Err(PyValueError::new_err(format!(
        "a tensor{made} stands for one of many in the function that `vmap` has called, and is used outside of it: let the \
         function return it"
    )))
}

/// The same with the lines where the operands were made that do not agree.
fn raised_at(e: RecordError, places: &[Place]) -> PyErr {
    let RecordError::Extents { shapes, sides, .. } = &e else {
        return raised(e);
    };
    let mut text = e.to_string();
    if shapes.len() == places.len() {
        for (_, operand, _) in &**sides {
            let place = Python::attach(|py| places::named(py, places[*operand]));
            if let Some(place) = place {
                text += &format!("; {} is made in {place}", e.role(*operand));
            }
        }
    }
    PyValueError::new_err(text)
}

fn scalar_type(name: &str) -> PyResult<ScalarType> {
    ScalarType::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no scalar type {name:?}")))
}

fn outside(name: &str) -> PyResult<Outside> {
    Outside::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "outside is clamp, wrap, zero or error, not {name:?}"
        ))
    })
}

fn dims(r: &mut Recording, shape: &[Extent<'_>]) -> Vec<Dim> {
    let extents = shape.iter();
    extents
        .map(|extent| match extent {
            Extent::Number(n) => r.program.size(*n),
            Extent::Of(dim) => dim.get().dim,
        })
        .collect()
}

/// Records where a program is traced, or outside of programs.
fn record_at<R>(
    trace: Option<&Arc<Mutex<Recording>>>,
    f: impl FnOnce(&mut Recording) -> Recorded<R>,
) -> PyResult<R> {
    match trace {
        Some(recording) => f(&mut lock(recording)),
        None => lock(&SESSION).record(f),
    }
    .map_err(raised)
}

impl NativeTensor {
    fn program(&self) -> Option<&Arc<Mutex<Recording>>> {
        match &self.home {
            Home::Lazy(_) => None,
            Home::Program(recording, _) => Some(recording),
        }
    }

    fn buffer_in(&self, session: &Session) -> Buffer {
        match self.home {
            Home::Lazy(slot) => session.buffer(slot),
            Home::Program(_, buffer) => buffer,
        }
    }

    /// Records an operation on this and other tensors.
    fn record<R>(
        &self,
        others: &[&Self],
        f: impl FnOnce(&mut Recording, Buffer, &[Buffer]) -> Recorded<R>,
    ) -> PyResult<(R, Option<MutexGuard<'static, Session>>)> {
        let program = self.program();
        let at_home = |other: &&Self| match (program, other.program()) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        if !others.iter().all(at_home) {
            return Err(PyValueError::new_err(
                "a tensor of a program and one of another, or of none, do not mix: return it from the one and make it an \
                 `input` of the other; what Python keeps of its inputs, as in a list, has no numbers once it is traced",
            ));
        }
        let places = |of: &dyn Fn(Buffer) -> Place, this, others: &[Buffer]| -> Vec<Place> {
            let all = std::iter::once(this).chain(others.iter().copied());
            all.map(of).collect()
        };
        match program {
            Some(recording) => {
                let home = |t: &Self| match t.home {
                    Home::Program(_, buffer) => buffer,
                    Home::Lazy(_) => unreachable!("looked at above"),
                };
                let others: Vec<Buffer> = others.iter().map(|t| home(t)).collect();
                let mut r = lock(recording);
                for buffer in std::iter::once(home(self)).chain(others.iter().copied()) {
                    expect_there(&r, buffer)?;
                }
                let out = f(&mut r, home(self), &others);
                let out = out.map_err(|e| (e, places(&|b| r.lines.get(b), home(self), &others)));
                drop(r);
                out.map(|out| (out, None))
                    .map_err(|(e, places)| raised_at(e, &places))
            }
            None => {
                let mut session = lock(&SESSION);
                let this = self.buffer_in(&session);
                let others: Vec<Buffer> = others.iter().map(|t| t.buffer_in(&session)).collect();
                let out = session.record(|r| f(r, this, &others));
                let out = out.map_err(|e| (e, places(&|b| session.place(b), this, &others)));
                match out {
                    Ok(out) => Ok((out, Some(session))),
                    Err((e, places)) => {
                        drop(session);
                        Err(raised_at(e, &places))
                    }
                }
            }
        }
    }

    fn made(&self, buffer: Buffer, session: &mut Option<MutexGuard<'static, Session>>) -> Self {
        let home = match (&self.home, session) {
            (Home::Program(recording, _), _) => Home::Program(recording.clone(), buffer),
            (Home::Lazy(_), Some(session)) => Home::Lazy(session.hold(buffer)),
            (Home::Lazy(_), None) => Home::Lazy(lock(&SESSION).hold(buffer)),
        };
        Self { home }
    }

    /// Notes where an operation on this is written: in programs whoever traces them does.
    fn noted(&self) {
        if let Home::Lazy(_) = self.home {
            note();
        }
    }

    /// An operation with one result, on all elements of tensors.
    fn op(
        &self,
        others: &[&Self],
        f: impl FnOnce(&mut Recording, Buffer, &[Buffer]) -> Recorded,
    ) -> PyResult<Self> {
        self.made_of(others, |r, x, o| {
            r.expect_everywhere(&[&[x], o].concat())?;
            f(r, x, o)
        })
    }

    /// An operation with one result, which looks itself where its operands have values.
    fn made_of(
        &self,
        others: &[&Self],
        f: impl FnOnce(&mut Recording, Buffer, &[Buffer]) -> Recorded,
    ) -> PyResult<Self> {
        let (buffer, mut session) = self.record(others, |r, x, o| {
            let out = f(r, x, o)?;
            r.expect_counted("a tensor", &r.shape(out))?;
            Ok(out)
        })?;
        let out = self.made(buffer, &mut session);
        drop(session);
        self.noted();
        out.run_if_long()?;
        Ok(out)
    }

    /// An operation with one result that is done point by point: at the active cells of a field, if operands are.
    fn point_op(
        &self,
        name: &str,
        others: &[&Self],
        f: impl FnOnce(&mut Recording, Buffer, &[Buffer]) -> Recorded,
    ) -> PyResult<Self> {
        self.made_of(others, |r, x, o| {
            r.cells_of(name, &[&[x], o].concat())?;
            f(r, x, o)
        })
    }

    /// An operation with several results.
    fn ops(
        &self,
        others: &[&Self],
        f: impl FnOnce(&mut Recording, Buffer, &[Buffer]) -> Recorded<Vec<Buffer>>,
    ) -> PyResult<Vec<Self>> {
        let (buffers, mut session) = self.record(others, |r, x, o| {
            r.expect_everywhere(&[&[x], o].concat())?;
            f(r, x, o)
        })?;
        let out = buffers.into_iter().map(|b| self.made(b, &mut session));
        let out: Vec<Self> = out.collect();
        drop(session);
        self.noted();
        if let Some(first) = out.first() {
            first.run_if_long()?;
        }
        Ok(out)
    }
}

/// What an operation without operands gives.
fn of_nothing(
    trace: Option<&NativeTrace>,
    f: impl FnOnce(&mut Recording) -> Recorded,
) -> PyResult<NativeTensor> {
    let recording = trace.and_then(|t| t.recording.as_ref());
    match recording {
        Some(recording) => {
            let buffer = record_at(Some(recording), f)?;
            Ok(NativeTensor {
                home: Home::Program(recording.clone(), buffer),
            })
        }
        None => {
            let mut session = lock(&SESSION);
            let buffer = session.record(f).map_err(raised)?;
            let home = Home::Lazy(session.hold(buffer));
            Ok(NativeTensor { home })
        }
    }
}

/// A number of Python's as a scalar.
fn number(value: &Bound<'_, PyAny>, ty: ScalarType) -> PyResult<Scalar> {
    super::buffer::to_scalar(value, ty)
}
