//! The host's side of Python code that runs while a kernel is compiled: its calls, requests and outcomes.

use std::rc::Rc;

use aerogel_base::Diagnostic;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::error;
use super::host::PyHost;
use super::traced::{Exchange, Expr, PyCall};
use crate::host::{HostResult, Known};
use crate::traced::{Call, Operation, Outcome, Request};

impl<'py> PyHost<'py> {
    /// The value of this kernel that an object stands for.
    pub(super) fn traced(&self, expr: &Expr) -> PyResult<Known> {
        if expr.lowering != self.lowering {
            let message = "a value of a kernel is used in another one";
            return Err(error::runtime(self.py, message));
        }
        Ok(Known::Traced(expr.at))
    }

    /// The object that stands for a value of this kernel.
    pub(super) fn expr(&self, at: u32) -> PyResult<Bound<'py, PyAny>> {
        let lowering = self.lowering;
        Ok(Bound::new(self.py, Expr { lowering, at })?.into_any())
    }

    pub(super) fn begin_call(
        &mut self,
        callee: &Known,
        args: &[Known],
        keywords: &[(String, Known)],
        guarded: bool,
    ) -> PyResult<Box<dyn Call>> {
        let py = self.py;
        let callee = self.object_of(callee)?.unbind();
        let args: PyResult<Vec<_>> = args.iter().map(|arg| self.object_of(arg)).collect();
        let named = PyDict::new(py);
        for (name, value) in keywords {
            named.set_item(name, self.object_of(value)?)?;
        }
        let exchange = Rc::<Exchange>::default();
        self.calls.push(exchange.clone());
        Ok(Box::new(PyCall {
            callee,
            args: PyTuple::new(py, args?)?.unbind(),
            keywords: named.unbind(),
            guarded,
            exchange,
        }))
    }

    /// What passes between the code that runs now and this.
    fn exchange(&self) -> Rc<Exchange> {
        let last = self.calls.last();
        last.expect("a call has begun").clone()
    }

    pub(super) fn requested(&mut self) -> HostResult<Request> {
        let asked = self.exchange().request.take();
        let asked = asked.expect("there is a request");
        let known = (|| {
            let operands = asked.operands.iter();
            let operands: PyResult<_> = operands.map(|o| self.known(o.bind(self.py))).collect();
            let mut keywords = Vec::new();
            for (name, value) in asked.keywords {
                keywords.push((name, self.known(value.bind(self.py))?));
            }
            Ok(Request {
                operation: asked.operation.clone(),
                operands: operands?,
                keywords,
            })
        })();
        let exchange = self.exchange();
        exchange.operation.replace(Some(asked.operation));
        known.map_err(|error| self.error(&error))
    }

    pub(super) fn answered(&mut self, answer: Result<Known, Diagnostic>) {
        let py = self.py;
        let exchange = self.exchange();
        let is_attribute = matches!(exchange.operation.take(), Some(Operation::Attribute(_)));
        let answer = match answer {
            Ok(known) => self.object_of(&known).map(Bound::unbind),
            Err(mistake) => {
                let message = mistake.message.clone();
                let error = match is_attribute {
                    // So that `hasattr` and `getattr` with a default work.
                    true => PyAttributeError::new_err(message),
                    false => error::exception(py, mistake.kind.class_name(), message),
                };
                let refused = (error.clone_ref(py), mistake);
                exchange.refused.replace(Some(refused));
                Err(error)
            }
        };
        exchange.answer.replace(Some(answer));
    }

    pub(super) fn ended(&mut self) -> Outcome {
        let py = self.py;
        let exchange = self.calls.pop().expect("a call has begun");
        let result = exchange.outcome.take().expect("the call has run");
        if let Some(why) = exchange.needs.take() {
            // Ctrl-C and the like end everything all the same.
            if let Err(error) = &result {
                self.error(error);
            }
            return Outcome::Needs(why);
        }
        let error = match result.and_then(|object| self.known(object.bind(py))) {
            Ok(known) => return Outcome::Returned(known),
            Err(error) => error,
        };
        match exchange.refused.take() {
            Some((refused, mistake)) if refused.value(py).is(error.value(py)) => {
                Outcome::Refused(mistake)
            }
            _ => {
                let mut told = self.error(&error);
                if let Some(line) = raised_at(py, &error) {
                    told.message = format!("{}, raised at {line}", told.message);
                }
                Outcome::Raised(told)
            }
        }
    }
}

/// File and line of the code that raised an exception.
fn raised_at(py: Python<'_>, error: &PyErr) -> Option<String> {
    let mut at = error.traceback(py)?.into_any();
    while let Ok(Some(next)) = at.getattr_opt("tb_next") {
        if next.is_none() {
            break;
        }
        at = next;
    }
    let line: usize = at.getattr("tb_lineno").ok()?.extract().ok()?;
    let code = at.getattr("tb_frame").ok()?.getattr("f_code").ok()?;
    let path: String = code.getattr("co_filename").ok()?.extract().ok()?;
    Some(format!("{path}:{line}"))
}
