//! Programs as they are traced: scopes, memory, and what runs at the end.

use std::sync::{Arc, Mutex};

use aerogel_base::ScalarType;
use aerogel_tensor::record::Recording;
use aerogel_tensor::{Accum, Buffer, Dim, DimDef, Expr, Outside, Plan, Stmt, Var};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::values::{leaf, not_compiled, stopped};
use super::{
    Extent, Home, NativeDim, NativeProgram, NativeTensor, NativeTrace, dims, lock, made_for,
    outside, raised, scalar_type,
};
use crate::py::program;

/// An extent in Python: a number, or what is known when the program runs.
pub(super) fn extent<'py>(py: Python<'py>, r: &Recording, dim: Dim) -> PyResult<Bound<'py, PyAny>> {
    match *r.program.dim_def(dim) {
        DimDef::Const(n) => Ok(n.into_pyobject(py)?.into_any()),
        _ => Ok(NativeDim { dim }.into_pyobject(py)?.into_any()),
    }
}

/// The extents of a tensor in Python.
pub(super) fn extents<'py>(
    py: Python<'py>,
    r: &mut Recording,
    buffer: Buffer,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let shape = r.shape(buffer);
    shape.into_iter().map(|dim| extent(py, r, dim)).collect()
}

impl NativeTrace {
    pub(super) fn recording(&self) -> &Arc<Mutex<Recording>> {
        self.recording.as_ref().expect("a trace has a recording")
    }

    pub(super) fn tensor(&self, buffer: Buffer) -> NativeTensor {
        NativeTensor {
            home: Home::Program(self.recording().clone(), buffer),
        }
    }

    pub(super) fn buffer(&self, tensor: &NativeTensor) -> PyResult<Buffer> {
        match &tensor.home {
            Home::Program(recording, buffer) if Arc::ptr_eq(recording, self.recording()) => {
                Ok(*buffer)
            }
            _ => Err(PyValueError::new_err(
                "a tensor of another program, or of none, is no part of this one: make it an `input`",
            )),
        }
    }

    /// What comes since now is another block.
    pub(super) fn begin(&self) {
        let mut r = lock(self.recording());
        r.forget();
        let body = std::mem::take(&mut r.program.body);
        lock(&self.blocks).push(body);
    }

    /// The block that was begun last; what came before goes on.
    pub(super) fn end(&self) -> Vec<Stmt> {
        let mut r = lock(self.recording());
        r.forget();
        let outer = lock(&self.blocks).pop().unwrap_or_default();
        std::mem::replace(&mut r.program.body, outer)
    }

    fn number_of(&self, tensor: &NativeTensor) -> PyResult<Expr> {
        let buffer = self.buffer(tensor)?;
        let mut r = lock(self.recording());
        if r.rank(buffer) != 0 {
            return Err(PyValueError::new_err(
                "the bounds of a loop and the condition of a branch of the host are single numbers",
            ));
        }
        Ok(r.element(buffer, Vec::new()))
    }
}

#[pymethods]
impl NativeTrace {
    #[new]
    fn new() -> Self {
        Self {
            recording: Some(Arc::default()),
            blocks: Mutex::default(),
        }
    }

    /// What comes from outside; an extent of -1 is known when the program runs, one of the program is asked to be equal.
    fn input(
        &self,
        name: &str,
        dtype: &str,
        shape: Vec<Option<Extent<'_>>>,
    ) -> PyResult<NativeTensor> {
        let ty = scalar_type(dtype)?;
        let mut r = lock(self.recording());
        let known = shape.iter().map(|extent| match extent {
            Some(Extent::Number(n)) => Some(*n),
            _ => None,
        });
        let known: Vec<Option<u64>> = known.collect();
        let buffer = r.program.input(name, ty, &known);
        for (axis, extent) in shape.iter().enumerate() {
            if let Some(Extent::Of(dim)) = extent {
                let own = r.shape(buffer)[axis];
                let message = format!("`{name}`: axis {axis} has {{}} elements, not {{}}");
                r.ask_equal(own, dim.get().dim, &message);
                r.program.buffers[buffer].shape[axis] = dim.get().dim;
            }
        }
        drop(r);
        Ok(self.tensor(buffer))
    }

    /// Asks a tensor for a shape.
    fn assert_shape(
        &self,
        tensor: &NativeTensor,
        shape: Vec<Option<Extent<'_>>>,
        message: &str,
    ) -> PyResult<bool> {
        let buffer = self.buffer(tensor)?;
        let mut r = lock(self.recording());
        let own = r.shape(buffer);
        if own.len() != shape.len() {
            return Ok(false);
        }
        for (dim, extent) in own.into_iter().zip(&shape) {
            if let Some(extent) = extent {
                let wanted = dims(&mut r, std::slice::from_ref(extent))[0];
                if !r.ask_equal(dim, wanted, message) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// An extent as a number of the program.
    fn number_of_dim(&self, dim: &NativeDim) -> NativeTensor {
        let mut r = lock(self.recording());
        let value = r.program.extent(dim.dim);
        let buffer = r.map(&[], value);
        drop(r);
        self.tensor(buffer)
    }

    /// A number of the program as an extent.
    fn dim_of_number(&self, tensor: &NativeTensor) -> PyResult<NativeDim> {
        let buffer = self.buffer(tensor)?;
        let mut r = lock(self.recording());
        if r.rank(buffer) != 0 {
            return Err(PyValueError::new_err("an extent is a single number"));
        }
        let dim = r.extent_of(buffer).map_err(raised)?;
        Ok(NativeDim { dim })
    }

    /// Memory of the program's own.
    fn memory(&self, dtype: &str, shape: Vec<Extent<'_>>) -> PyResult<NativeTensor> {
        let ty = scalar_type(dtype)?;
        let mut r = lock(self.recording());
        let shape = dims(&mut r, &shape);
        let buffer = r.program.temporary(ty, &shape);
        drop(r);
        Ok(self.tensor(buffer))
    }

    /// Gives all of memory other contents, where `mask` is true.
    #[pyo3(signature = (target, value, mask = None))]
    fn set(
        &self,
        target: &NativeTensor,
        value: &NativeTensor,
        mask: Option<&NativeTensor>,
    ) -> PyResult<()> {
        let (target, value) = (self.buffer(target)?, self.buffer(value)?);
        let mask = mask.map(|m| self.buffer(m)).transpose()?;
        let mut r = lock(self.recording());
        r.set_all(target, value, mask).map_err(raised)
    }

    /// Stores values at computed indices of memory, where `mask` is true.
    #[pyo3(signature = (target, index, value, how, mode, mask = None))]
    fn store(
        &self,
        target: &NativeTensor,
        index: Vec<Bound<'_, NativeTensor>>,
        value: &NativeTensor,
        how: &str,
        mode: &str,
        mask: Option<&NativeTensor>,
    ) -> PyResult<()> {
        let (target, value) = (self.buffer(target)?, self.buffer(value)?);
        let index = index.iter().map(|i| self.buffer(i.get()));
        let index = index.collect::<PyResult<Vec<Buffer>>>()?;
        let mask = mask.map(|m| self.buffer(m)).transpose()?;
        let accum = Accum::from_name(how);
        let mode: Outside = outside(mode)?;
        let mut r = lock(self.recording());
        r.store_at(target, &index, value, accum, mode, mask)
            .map_err(raised)
    }

    /// A tensor's value as it is now: for memory that changes later.
    fn read(&self, tensor: &NativeTensor) -> PyResult<NativeTensor> {
        let buffer = self.buffer(tensor)?;
        let mut r = lock(self.recording());
        let shape = r.shape(buffer);
        let element = r.at_point(buffer, shape.len());
        let out = r.map(&shape, element);
        drop(r);
        Ok(self.tensor(out))
    }

    fn begin_block(&self) {
        self.begin();
    }

    /// Begins what is said of one of many: how many buffers there are.
    fn begin_vmap(&self) -> usize {
        self.begin();
        lock(self.recording()).program.buffers.len()
    }

    /// Drops what was said since a block began.
    fn drop_block(&self) {
        self.end();
    }

    /// Begins a loop of the host: its counter.
    fn begin_loop(&self) -> (u32, NativeTensor) {
        self.begin();
        let mut r = lock(self.recording());
        let var = r.program.var(ScalarType::I32);
        let count = r.program.get(var);
        let buffer = r.map(&[], count);
        drop(r);
        (var.as_u32(), self.tensor(buffer))
    }

    fn end_loop(&self, var: u32, lo: &NativeTensor, hi: &NativeTensor, step: i32) -> PyResult<()> {
        let body = self.end();
        let (lo, hi) = (self.number_of(lo)?, self.number_of(hi)?);
        let var = Var::from_u32(var);
        lock(self.recording()).program.body.push(Stmt::Loop {
            var,
            lo,
            hi,
            step,
            body,
        });
        Ok(())
    }

    fn end_if(&self, cond: &NativeTensor) -> PyResult<()> {
        let body = self.end();
        let cond = self.number_of(cond)?;
        lock(self.recording())
            .program
            .body
            .push(Stmt::If(cond, body, Vec::new()));
        Ok(())
    }

    fn break_(&self) {
        lock(self.recording()).program.body.push(Stmt::Break);
    }

    fn continue_(&self) {
        lock(self.recording()).program.body.push(Stmt::Continue);
    }

    /// The program as text.
    fn text(&self) -> String {
        lock(self.recording()).program.to_string()
    }

    /// The program, ready to run, with these results.
    fn finish(
        &self,
        py: Python<'_>,
        results: Vec<Bound<'_, NativeTensor>>,
    ) -> PyResult<NativeProgram> {
        let results = results.iter().map(|t| self.buffer(t.get()));
        let results = results.collect::<PyResult<Vec<Buffer>>>()?;
        let mut program = lock(self.recording()).program.clone();
        program.results = results;
        let text = program.to_string();
        aerogel_tensor::verify(&program)
            .map_err(|e| crate::py::error::runtime(py, format!("{e}\n{text}")))?;
        let settings = program::settings(py)?;
        let compiler = program::compiler(py, &settings)?;
        let made_for = made_for(&settings, &compiler);
        let agreements = program
            .agreements
            .iter()
            .map(|a| a.message.clone())
            .collect();
        let before = program.clone();
        let plan = Plan::new(program, made_for).map_err(|e| not_compiled(py, &e))?;
        let explained = aerogel_tensor::explain::of_plan(&before, &plan);
        Ok(NativeProgram {
            plan,
            text,
            explained,
            agreements,
        })
    }
}

#[pymethods]
impl NativeProgram {
    /// Runs the program.
    fn run(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, NativeTensor>>,
    ) -> PyResult<Vec<NativeTensor>> {
        let inputs = inputs.iter().map(|t| t.get().operand(py));
        let inputs = inputs.collect::<PyResult<Vec<_>>>()?;
        let results = py.detach(|| self.plan.run(&inputs));
        let results = results.map_err(|e| self.disagreement(&e).unwrap_or_else(|| stopped(&e)))?;
        Ok(results.into_iter().map(leaf).collect())
    }

    /// What became of the statements: which share a kernel, and what is kept in memory and why.
    #[getter]
    fn explained(&self) -> &str {
        &self.explained
    }

    /// The statements as they were traced.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }
}

impl NativeProgram {
    fn disagreement(&self, e: &aerogel_tensor::RunError) -> Option<PyErr> {
        use aerogel_tensor::interp::Failure;
        let aerogel_tensor::RunError::Failure(Failure::Disagreement(number, [a, b])) = e else {
            return None;
        };
        let message = self.agreements.get(*number)?;
        let text = message
            .replacen("{}", &a.to_string(), 1)
            .replacen("{}", &b.to_string(), 1);
        Some(PyValueError::new_err(text))
    }
}
