//! A program as Python's back ends see it: tuples with numbers for names, and numbers for all sizes.
//!
//! `for [n] { b1[i0] = exp(b0[i0]) }` becomes the expressions `("axis", 0)`, `("load", 0, (0,), "never", None)` and
//! `("unary", "exp", 1)`, and the statement `("for", (n,), (("store", 1, (0,), 2, None, False, "never", None),))`.

use aerogel_tensor::{Buffer, Call, Dim, Expr, ExprDef, Outside, Program, Role, Stmt, Store};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::py::{buffer, error};

/// The program as an object of `aerogel.backends.Program`, whose axes have these sizes.
pub(super) fn view(py: Python<'_>, program: &Program, sizes: &[i64]) -> PyResult<Py<PyAny>> {
    let view = View { py, program, sizes };
    let exprs = (0..program.exprs.len() as u32).map(|k| view.expr(Expr::from_u32(k)));
    let exprs = PyTuple::new(py, exprs.collect::<PyResult<Vec<_>>>()?)?;
    let types = (0..program.exprs.len() as u32).map(|k| program.exprs.ty(Expr::from_u32(k)).name());
    let buffers = program.buffers.iter().map(|(_, def)| {
        let is_input = matches!(def.role, Role::Input(_));
        let shape = def.shape.iter().map(|&dim| view.size(dim));
        let shape = PyTuple::new(py, shape)?;
        (def.name.as_str(), def.ty.name(), shape, is_input).into_py_any(py)
    });
    let buffers = PyTuple::new(py, buffers.collect::<PyResult<Vec<_>>>()?)?;
    let vars = program.vars.values().map(|ty| ty.name());
    let inputs = program.inputs().map(Buffer::as_u32);
    let results = program.results.iter().map(|b| b.as_u32());
    let made = py.import("aerogel.backends._program")?.call_method1(
        "Program",
        (
            buffers,
            exprs,
            PyTuple::new(py, types)?,
            PyTuple::new(py, vars)?,
            view.block(&program.body)?,
            PyTuple::new(py, inputs.collect::<Vec<_>>())?,
            PyTuple::new(py, results.collect::<Vec<_>>())?,
            program.to_string(),
        ),
    )?;
    Ok(made.unbind())
}

struct View<'p, 'py> {
    py: Python<'py>,
    program: &'p Program,
    sizes: &'p [i64],
}

impl<'py> View<'_, 'py> {
    fn size(&self, dim: Dim) -> i64 {
        self.sizes[dim.as_u32() as usize]
    }

    fn tuple<'a>(&self, items: impl IntoIterator<Item = &'a Expr>) -> PyResult<Py<PyAny>> {
        let items: Vec<u32> = items.into_iter().map(|e| e.as_u32()).collect();
        PyTuple::new(self.py, items)?.into_py_any(self.py)
    }

    fn expr(&self, e: Expr) -> PyResult<Py<PyAny>> {
        let py = self.py;
        let n = |e: &Expr| e.as_u32();
        match &self.program.exprs[e] {
            ExprDef::Const(value) => ("const", buffer::to_python(py, *value)?).into_py_any(py),
            ExprDef::Axis(k) => ("axis", *k).into_py_any(py),
            ExprDef::Var(var, _) => ("var", var.as_u32()).into_py_any(py),
            ExprDef::Extent(dim) => ("const", self.size(*dim)).into_py_any(py),
            ExprDef::Load {
                buffer,
                index,
                outside,
                ..
            } => {
                let (mode, site) = outside_of(*outside);
                ("load", buffer.as_u32(), self.tuple(index)?, mode, site).into_py_any(py)
            }
            ExprDef::Unary(op, x) => ("unary", op.name(), n(x)).into_py_any(py),
            ExprDef::Binary(op, a, b) => ("binary", op.name(), n(a), n(b)).into_py_any(py),
            ExprDef::Compare(op, a, b) => ("compare", op.name(), n(a), n(b)).into_py_any(py),
            ExprDef::Select(c, a, b) => ("select", n(c), n(a), n(b)).into_py_any(py),
            ExprDef::Cast(x, ty) => ("cast", n(x), ty.name()).into_py_any(py),
            ExprDef::Bitcast(x, ty) => ("bitcast", n(x), ty.name()).into_py_any(py),
        }
    }

    fn block(&self, body: &[Stmt]) -> PyResult<Py<PyAny>> {
        let all = body.iter().map(|stmt| self.stmt(stmt));
        let all = all.collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(self.py, all)?.into_py_any(self.py)
    }

    fn stmt(&self, stmt: &Stmt) -> PyResult<Py<PyAny>> {
        let py = self.py;
        match stmt {
            Stmt::For(all) if all.cells.is_none() => {
                let domain = all.domain.iter().map(|&dim| self.size(dim));
                ("for", PyTuple::new(py, domain)?, self.block(&all.body)?).into_py_any(py)
            }
            Stmt::Store(store) => self.store(store),
            Stmt::Set(var, e) => ("set", var.as_u32(), e.as_u32()).into_py_any(py),
            Stmt::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let counter = (var.as_u32(), lo.as_u32(), hi.as_u32(), *step);
                ("loop", counter, self.block(body)?).into_py_any(py)
            }
            Stmt::If(cond, then, otherwise) => {
                let (then, otherwise) = (self.block(then)?, self.block(otherwise)?);
                ("if", cond.as_u32(), then, otherwise).into_py_any(py)
            }
            Stmt::Break => ("break",).into_py_any(py),
            Stmt::Continue => ("continue",).into_py_any(py),
            Stmt::Call(call) => self.call(call),
            Stmt::Run(_) | Stmt::For(_) | Stmt::Clear(_) => Err(error::runtime(
                py,
                "fields and kernels run on the back end `native` only",
            )),
        }
    }

    fn store(&self, store: &Store) -> PyResult<Py<PyAny>> {
        let (mode, site) = outside_of(store.outside);
        (
            "store",
            store.target.as_u32(),
            self.tuple(&store.index)?,
            store.value.as_u32(),
            store.accum.map(|accum| accum.name()),
            store.init,
            mode,
            site,
        )
            .into_py_any(self.py)
    }

    fn call(&self, call: &Call) -> PyResult<Py<PyAny>> {
        let numbers = |all: &[Buffer]| {
            PyTuple::new(self.py, all.iter().map(|b| b.as_u32()).collect::<Vec<_>>())
        };
        let (inputs, outputs) = (numbers(&call.inputs)?, numbers(&call.outputs)?);
        ("call", call.library.name(), inputs, outputs).into_py_any(self.py)
    }
}

fn outside_of(outside: Outside) -> (&'static str, Option<u32>) {
    match outside {
        Outside::Never => ("never", None),
        Outside::Clamp => ("clamp", None),
        Outside::Wrap => ("wrap", None),
        Outside::Zero => ("zero", None),
        Outside::Error(site) => ("error", Some(site.as_u32())),
    }
}
