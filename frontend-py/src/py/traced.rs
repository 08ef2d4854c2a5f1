//! Values of a kernel as objects of Python code that runs while the kernel is compiled.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use aerogel_base::Diagnostic;
use pyo3::basic::CompareOp as RichCompare;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::{error, recorder, tracer};
use crate::ast::{BinaryOp, CompareOp, UnaryOp};
use crate::traced::{Call, Operation, Tracer};

/// Numbers a lowering, so that a value of one kernel is refused in another.
pub(super) fn next_lowering() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The data that Python code and the tracer exchange: Python objects on this side, known values on the other.
#[derive(Default)]
pub(super) struct Exchange {
    pub(super) request: RefCell<Option<PyRequest>>,
    /// The operation of the last request.
    pub(super) operation: RefCell<Option<Operation>>,
    pub(super) answer: RefCell<Option<PyResult<Py<PyAny>>>>,
    pub(super) outcome: RefCell<Option<PyResult<Py<PyAny>>>>,
    /// The last exception for an operation that kernels do not support, and its diagnostic.
    pub(super) refused: RefCell<Option<(PyErr, Diagnostic)>>,
    /// The code that needed a number which is not known, reported even if the code caught the exception.
    pub(super) needs: RefCell<Option<String>>,
    n_requests: Cell<u32>,
}

/// After so many requests, a function is compiled from its source: a loop over constants would be unrolled without end.
/// 10,000 of them take 0.6 s, 100,000 a minute.
const MOST_REQUESTS: u32 = 10_000;

pub(super) struct PyRequest {
    pub(super) operation: Operation,
    pub(super) operands: Vec<Py<PyAny>>,
    pub(super) keywords: Vec<(String, Py<PyAny>)>,
}

/// A Python function and its arguments.
pub(super) struct PyCall {
    pub(super) callee: Py<PyAny>,
    pub(super) args: Py<PyTuple>,
    pub(super) keywords: Py<PyDict>,
    pub(super) guarded: bool,
    pub(super) exchange: Rc<Exchange>,
}

impl Call for PyCall {
    fn run(self: Box<Self>, tracer: &mut dyn Tracer) {
        let result = Python::attach(|py| {
            let guard = match self.guarded {
                true => Some(Guarded::begin(py)?),
                false => None,
            };
            let call = || {
                self.callee
                    .call(py, self.args.bind(py), Some(self.keywords.bind(py)))
            };
            let result = tracer::with(tracer, &self.exchange, call);
            drop(guard);
            result
        });
        self.exchange.outcome.replace(Some(result));
    }
}

/// Installs a recorder that refuses access to fields and arrays while Python code runs.
struct Guarded(Option<Py<PyAny>>);

impl Guarded {
    fn begin(py: Python<'_>) -> PyResult<Self> {
        let guard = Py::new(py, Guard)?.into_any();
        Ok(Self(recorder::set_recorder(Some(guard))))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        recorder::set_recorder(self.0.take());
    }
}

/// A recorder that refuses every access: the values of fields and arrays are those of the kernel's run.
#[pyclass(module = "aerogel._native", frozen)]
pub(super) struct Guard;

#[pymethods]
impl Guard {
    #[pyo3(signature = (*_args))]
    fn launch(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        Err(needs(py, "a launch of a kernel"))
    }

    #[pyo3(signature = (*_args))]
    fn gradient(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        Err(needs(py, "a launch of a kernel"))
    }

    #[pyo3(signature = (*_args))]
    fn write(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        Err(needs(py, "a change of a field or an array"))
    }

    #[pyo3(signature = (*_args))]
    fn deactivate(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        Err(needs(py, "a change of a field or an array"))
    }

    #[pyo3(signature = (*_args))]
    fn load_field(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        Err(needs(py, "an element of a field or an array"))
    }

    #[pyo3(signature = (*_args))]
    fn store_field(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        Err(needs(py, "a change of a field or an array"))
    }
}

/// The exception for Python code that needs a number which is not known yet; it is noted for the tracer.
fn needs(py: Python<'_>, what: &str) -> PyErr {
    let message = format!("{what} is known only when the kernel runs");
    if let Some(exchange) = tracer::exchange() {
        exchange.needs.replace(Some(message.clone()));
    }
    error::exception(py, "AerogelTypeError", message)
}

/// Refuses to read an array while Python code runs that may not.
pub(super) fn expect_readable(py: Python<'_>) -> PyResult<()> {
    match recorder::current(py) {
        Some(recorder) if recorder.bind(py).is_instance_of::<Guard>() => {
            Err(needs(py, "an element of a field or an array"))
        }
        _ => Ok(()),
    }
}

/// Sends a request to the tracer and returns its answer.
fn ask(
    py: Python<'_>,
    operation: Operation,
    operands: Vec<Py<PyAny>>,
    keywords: Vec<(String, Py<PyAny>)>,
) -> PyResult<Py<PyAny>> {
    let Some(exchange) = tracer::exchange() else {
        let message = "a value of a kernel is used after that kernel was compiled";
        return Err(error::runtime(py, message));
    };
    exchange.n_requests.set(exchange.n_requests.get() + 1);
    if exchange.n_requests.get() > MOST_REQUESTS {
        return Err(needs(py, "the result of more than 10,000 operations"));
    }
    exchange.request.replace(Some(PyRequest {
        operation,
        operands,
        keywords,
    }));
    tracer::serve();
    let answer = exchange.answer.take();
    answer.unwrap_or_else(|| Err(error::runtime(py, "the kernel gave no answer")))
}

/// A value that a kernel computes when it runs, while Python code works with it.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct Expr {
    pub(super) lowering: u64,
    pub(super) at: u32,
}

/// The other operand of an operator.
type Other<'a, 'py> = &'a Bound<'py, PyAny>;

fn unary(of: &Bound<'_, Expr>, op: UnaryOp) -> PyResult<Py<PyAny>> {
    let operands = vec![of.clone().into_any().unbind()];
    ask(of.py(), Operation::Unary(op), operands, Vec::new())
}

fn binary(op: BinaryOp, lhs: &Bound<'_, PyAny>, rhs: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operands = vec![lhs.clone().unbind(), rhs.clone().unbind()];
    ask(lhs.py(), Operation::Binary(op), operands, Vec::new())
}

/// Calls a Python builtin that kernels support.
fn builtin(name: &str, of: &Bound<'_, Expr>) -> PyResult<Py<PyAny>> {
    let py = of.py();
    let function = py.import("builtins")?.getattr(name)?.unbind();
    let operands = vec![function, of.clone().into_any().unbind()];
    ask(py, Operation::Call, operands, Vec::new())
}

#[pymethods]
impl Expr {
    /// NumPy leaves operators with its arrays to this class.
    #[classattr]
    fn __array_ufunc__() -> Option<bool> {
        None
    }

    fn __add__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Add, slf, other)
    }

    fn __radd__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Add, other, slf)
    }

    fn __sub__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Sub, slf, other)
    }

    fn __rsub__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Sub, other, slf)
    }

    fn __mul__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Mul, slf, other)
    }

    fn __rmul__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Mul, other, slf)
    }

    fn __matmul__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::MatMul, slf, other)
    }

    fn __rmatmul__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::MatMul, other, slf)
    }

    fn __truediv__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Div, slf, other)
    }

    fn __rtruediv__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Div, other, slf)
    }

    fn __floordiv__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::FloorDiv, slf, other)
    }

    fn __rfloordiv__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::FloorDiv, other, slf)
    }

    fn __mod__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Mod, slf, other)
    }

    fn __rmod__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Mod, other, slf)
    }

    fn __pow__(
        slf: &Bound<'_, Self>,
        other: Other<'_, '_>,
        modulo: Other<'_, '_>,
    ) -> PyResult<Py<PyAny>> {
        expect_no_modulo(modulo)?;
        binary(BinaryOp::Pow, slf, other)
    }

    fn __rpow__(
        slf: &Bound<'_, Self>,
        other: Other<'_, '_>,
        modulo: Other<'_, '_>,
    ) -> PyResult<Py<PyAny>> {
        expect_no_modulo(modulo)?;
        binary(BinaryOp::Pow, other, slf)
    }

    fn __lshift__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Shl, slf, other)
    }

    fn __rlshift__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Shl, other, slf)
    }

    fn __rshift__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Shr, slf, other)
    }

    fn __rrshift__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::Shr, other, slf)
    }

    fn __and__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::BitAnd, slf, other)
    }

    fn __rand__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::BitAnd, other, slf)
    }

    fn __or__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::BitOr, slf, other)
    }

    fn __ror__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::BitOr, other, slf)
    }

    fn __xor__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::BitXor, slf, other)
    }

    fn __rxor__(slf: &Bound<'_, Self>, other: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        binary(BinaryOp::BitXor, other, slf)
    }

    fn __richcmp__(
        slf: &Bound<'_, Self>,
        other: Other<'_, '_>,
        op: RichCompare,
    ) -> PyResult<Py<PyAny>> {
        let op = match op {
            RichCompare::Lt => CompareOp::Lt,
            RichCompare::Le => CompareOp::Le,
            RichCompare::Eq => CompareOp::Eq,
            RichCompare::Ne => CompareOp::Ne,
            RichCompare::Gt => CompareOp::Gt,
            RichCompare::Ge => CompareOp::Ge,
        };
        let operands = vec![slf.clone().into_any().unbind(), other.clone().unbind()];
        ask(slf.py(), Operation::Compare(op), operands, Vec::new())
    }

    fn __hash__(slf: &Bound<'_, Self>) -> PyResult<u64> {
        Err(needs(
            slf.py(),
            "a value that is the key of a dictionary or a cache",
        ))
    }

    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, UnaryOp::Minus)
    }

    fn __pos__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, UnaryOp::Plus)
    }

    fn __invert__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, UnaryOp::Invert)
    }

    fn __abs__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        builtin("abs", slf)
    }

    fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        builtin("len", slf)?.extract(slf.py())
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        if name.starts_with("__") {
            // Protocols of Python's and of other packages that no value of a kernel has.
            return Err(PyAttributeError::new_err(name.to_owned()));
        }
        let operands = vec![slf.clone().into_any().unbind()];
        ask(
            slf.py(),
            Operation::Attribute(name.to_owned()),
            operands,
            Vec::new(),
        )
    }

    fn __setattr__(slf: &Bound<'_, Self>, _name: &str, _value: Other<'_, '_>) -> PyResult<()> {
        Err(needs(slf.py(), "a value that is assigned to an attribute"))
    }

    fn __getitem__(slf: &Bound<'_, Self>, key: Other<'_, '_>) -> PyResult<Py<PyAny>> {
        let operands = vec![slf.clone().into_any().unbind(), key.clone().unbind()];
        ask(slf.py(), Operation::Index, operands, Vec::new())
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        _key: Other<'_, '_>,
        _value: Other<'_, '_>,
    ) -> PyResult<()> {
        Err(needs(slf.py(), "a value that is assigned to an element"))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let operands = vec![slf.clone().into_any().unbind()];
        let items = ask(slf.py(), Operation::Items, operands, Vec::new())?;
        Ok(items.into_bound(slf.py()).try_iter()?.into_any())
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        called(slf.as_any(), args, kwargs)
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Err(needs(slf.py(), "whether a value is true"))
    }

    fn __index__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Err(needs(
            slf.py(),
            "a number that is used as an integer of Python's",
        ))
    }

    fn __int__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Err(needs(slf.py(), "a number that is converted by `int()`"))
    }

    fn __float__(slf: &Bound<'_, Self>) -> PyResult<f64> {
        Err(needs(slf.py(), "a number that is converted by `float()`"))
    }

    #[pyo3(signature = (_digits = None))]
    fn __round__(slf: &Bound<'_, Self>, _digits: Option<i64>) -> PyResult<f64> {
        Err(needs(slf.py(), "a number that is rounded by `round()`"))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Err(needs(slf.py(), "a value that is printed"))
    }
}

fn expect_no_modulo(modulo: &Bound<'_, PyAny>) -> PyResult<()> {
    match modulo.is_none() {
        true => Ok(()),
        false => Err(PyTypeError::new_err(
            "`pow` of values of a kernel takes two arguments",
        )),
    }
}

/// Has the tracer call something.
fn called(
    callee: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let mut operands = vec![callee.clone().unbind()];
    operands.extend(args.iter().map(Bound::unbind));
    let mut keywords = Vec::new();
    for (name, value) in kwargs.into_iter().flatten() {
        keywords.push((name.extract()?, value.unbind()));
    }
    ask(callee.py(), Operation::Call, operands, keywords)
}

/// Whether this is a value of a kernel, or a list or tuple with one in it.
fn holds_expr(object: &Bound<'_, PyAny>) -> bool {
    if let Ok(items) = object.cast_exact::<PyList>() {
        return items.iter().any(|item| holds_expr(&item));
    }
    if let Ok(items) = object.cast_exact::<PyTuple>() {
        return items.iter().any(|item| holds_expr(&item));
    }
    object.is_instance_of::<Expr>()
}

/// What the kernel that is being compiled makes of a call of a function of the language, if Python code makes the call
/// with a value of the kernel, or in any case if `always`; `NotImplemented` for other calls.
#[pyfunction]
#[pyo3(signature = (callee, args, kwargs, always = false))]
pub(crate) fn traced_call(
    callee: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
    always: bool,
) -> PyResult<Py<PyAny>> {
    let py = callee.py();
    let holds = || holds_expr(args) || kwargs.values().iter().any(|value| holds_expr(&value));
    if tracer::exchange().is_some() && (always || holds()) {
        return called(callee, args, Some(kwargs));
    }
    Ok(py.NotImplemented())
}
