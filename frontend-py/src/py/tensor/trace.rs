//! Programs as they are traced: scopes, memory, and what runs at the end.

use std::sync::{Arc, Mutex};

use aerogel_base::ScalarType;
use aerogel_ir::TreeId;
use aerogel_tensor::lazy::Slot;
use aerogel_tensor::record::Recording;
use aerogel_tensor::{Accum, Buffer, Dim, DimDef, Expr, Outside, Plan, RegionDef, Stmt, Var};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use super::ended::Traced;
use super::kernels::{KernelCall, Key, Watcher};
use super::values::{leaf, not_compiled};
use super::{
    Extent, Home, NativeDim, NativeProgram, NativeTensor, NativeTrace, SESSION, dims, lock,
    made_for, outside, raised, scalar_type,
};
use crate::py::field::NativeField;
use crate::py::snode::TreeStore;
use crate::py::{later, program, recorder, signals};

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
                super::expect_there(&lock(recording), *buffer)?;
                Ok(*buffer)
            }
            _ => Err(PyValueError::new_err(
                "a tensor of another program, or of none, is no part of this one: make it an `input`",
            )),
        }
    }

    /// The number of a tree in the program.
    pub(super) fn tree(&self, store: &Arc<TreeStore>) -> TreeId {
        let tree = lock(self.recording()).tree(&store.tree);
        let mut trees = lock(&self.trees);
        if trees.len() <= tree.as_u32() as usize {
            trees.push(store.clone());
        }
        tree
    }

    /// What comes since now is another block.
    pub(super) fn begin(&self) {
        let mut r = lock(self.recording());
        r.forget();
        r.begin_block();
        let body = std::mem::take(&mut r.program.body);
        lock(&self.blocks).push(body);
    }

    /// The block that was begun last; what came before goes on.
    pub(super) fn end(&self, is_loop: bool) -> PyResult<Vec<Stmt>> {
        let mut r = lock(self.recording());
        r.forget();
        let outer = lock(&self.blocks).pop().unwrap_or_default();
        let body = std::mem::replace(&mut r.program.body, outer);
        r.end_block(is_loop).map_err(raised)?;
        Ok(body)
    }

    fn number_of(&self, tensor: &NativeTensor) -> PyResult<Expr> {
        let buffer = self.buffer(tensor)?;
        let mut r = lock(self.recording());
        r.expect_everywhere(&[buffer]).map_err(raised)?;
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
            trees: Mutex::default(),
            runners: Mutex::default(),
        }
    }

    /// A field of scalars as a tensor, whose elements lie in its tree.
    fn field(&self, py: Python<'_>, field: &NativeField) -> PyResult<NativeTensor> {
        let placement = field.placement(py)?;
        placement.store.memory(py)?;
        let [place] = placement.places[..] else {
            return Err(PyValueError::new_err(format!(
                "{} has {} components: take one, as in `x.get_scalar_field(0)[i]`",
                field.label(),
                placement.places.len()
            )));
        };
        let store = &placement.store;
        self.tree(store);
        let shown = if field.name().is_empty() {
            "field"
        } else {
            field.name()
        };
        let mut r = lock(self.recording());
        let buffer = r
            .field(shown, &store.tree, place, &placement.offset)
            .map_err(raised)?;
        drop(r);
        Ok(self.tensor(buffer))
    }

    /// Whether a tensor is one of this program.
    fn owns(&self, tensor: &NativeTensor) -> bool {
        self.buffer(tensor).is_ok()
    }

    /// Whether a kernel writes to each of some of its arguments.
    fn kernel_writes(
        &self,
        py: Python<'_>,
        call: KernelCall<'_>,
        tensors: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<bool>> {
        call.writes(py, &tensors)
    }

    /// Runs a kernel with tensors at some of its arguments, as arrays or as single numbers: what it returns.
    fn run_kernel(
        &self,
        py: Python<'_>,
        call: KernelCall<'_>,
        at: Vec<(Key, bool)>,
        tensors: Vec<Bound<'_, NativeTensor>>,
        writes: Vec<bool>,
    ) -> PyResult<Vec<NativeTensor>> {
        call.record(py, self, at, &tensors, &writes)
    }

    /// Calls a function with tensors when the program gets there, for what it does or raises.
    fn watch(
        &self,
        function: Py<PyAny>,
        name: &str,
        tensors: Vec<Bound<'_, NativeTensor>>,
    ) -> PyResult<()> {
        let arrays = tensors.iter().map(|t| self.buffer(t.get()));
        let arrays = arrays.collect::<PyResult<Vec<Buffer>>>()?;
        let watcher = Arc::new(Watcher::new(function));
        lock(&self.runners).push(watcher.clone());
        let def = RegionDef {
            name: name.to_owned(),
            writes: vec![false; arrays.len()],
            trees: Vec::new(),
            runner: Some(watcher),
        };
        let mut r = lock(self.recording());
        r.expect_everywhere(&arrays).map_err(raised)?;
        r.run(def, arrays, &[]);
        Ok(())
    }

    /// The shape that tensors are stretched to together.
    fn broadcast<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        tensors: Vec<Bound<'_, NativeTensor>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let all = tensors.iter().map(|t| self.buffer(t.get()));
        let all = all.collect::<PyResult<Vec<Buffer>>>()?;
        let mut r = lock(self.recording());
        let shapes: Vec<Vec<Dim>> = all.iter().map(|&b| r.shape(b)).collect();
        let shape = r.broadcast(name, &shapes).map_err(raised)?;
        shape.into_iter().map(|dim| extent(py, &r, dim)).collect()
    }

    /// Puts values to elements at computed indices, one after the other: what was there before each.
    #[pyo3(signature = (target, index, value, how, mode, mask = None))]
    fn store_with_previous(
        &self,
        target: &NativeTensor,
        index: Vec<Bound<'_, NativeTensor>>,
        value: &NativeTensor,
        how: &str,
        mode: &str,
        mask: Option<&NativeTensor>,
    ) -> PyResult<NativeTensor> {
        let (target, value) = (self.buffer(target)?, self.buffer(value)?);
        let index = index.iter().map(|i| self.buffer(i.get()));
        let index = index.collect::<PyResult<Vec<Buffer>>>()?;
        let mask = mask.map(|m| self.buffer(m)).transpose()?;
        let accum = Accum::from_name(how).ok_or_else(|| {
            PyValueError::new_err(format!("values are not put to others by {how:?}"))
        })?;
        let mode: Outside = outside(mode)?;
        let mut r = lock(self.recording());
        let before = r.store_with_previous(target, &index, value, accum, mode, mask);
        drop(r);
        Ok(self.tensor(before.map_err(raised)?))
    }

    /// The index of each active cell of a field along each of its axes.
    fn cell_indices(&self, field: &NativeTensor) -> PyResult<Vec<NativeTensor>> {
        let field = self.buffer(field)?;
        let all = lock(self.recording()).cell_indices(field).map_err(raised)?;
        Ok(all.into_iter().map(|b| self.tensor(b)).collect())
    }

    /// The elements of a field at computed indices.
    fn load_field(
        &self,
        field: &NativeTensor,
        index: Vec<Bound<'_, NativeTensor>>,
    ) -> PyResult<NativeTensor> {
        let field = self.buffer(field)?;
        let index = index.iter().map(|i| self.buffer(i.get()));
        let index = index.collect::<PyResult<Vec<Buffer>>>()?;
        let made = lock(self.recording()).load_field(field, &index);
        Ok(self.tensor(made.map_err(raised)?))
    }

    /// Values at cells as the numbers of one with these last extents.
    fn at_cells(
        &self,
        parts: Vec<Bound<'_, NativeTensor>>,
        last: Vec<u64>,
    ) -> PyResult<NativeTensor> {
        let parts = parts.iter().map(|part| self.buffer(part.get()));
        let parts = parts.collect::<PyResult<Vec<Buffer>>>()?;
        let mut r = lock(self.recording());
        let last: Vec<Dim> = last.into_iter().map(|n| r.program.size(n)).collect();
        let made = r.at_cells(&parts, &last);
        drop(r);
        Ok(self.tensor(made.map_err(raised)?))
    }

    /// The values at cells that one with several numbers at each is made of; none of any other.
    fn parts(&self, x: &NativeTensor) -> PyResult<Vec<NativeTensor>> {
        let x = self.buffer(x)?;
        let parts = lock(self.recording()).parts_of(x);
        Ok(parts.into_iter().map(|part| self.tensor(part)).collect())
    }

    /// Stores a value to each of several fields at computed indices, where `mask` is true.
    #[pyo3(signature = (fields, index, values, how, mask = None))]
    fn store_fields(
        &self,
        fields: Vec<Bound<'_, NativeTensor>>,
        index: Vec<Bound<'_, NativeTensor>>,
        values: Vec<Bound<'_, NativeTensor>>,
        how: &str,
        mask: Option<&NativeTensor>,
    ) -> PyResult<()> {
        let all = [fields, index, values].map(|all| {
            let all = all.iter().map(|x| self.buffer(x.get()));
            all.collect::<PyResult<Vec<Buffer>>>()
        });
        let [fields, index, values] = all;
        let (fields, index, values) = (fields?, index?, values?);
        let mask = mask.map(|m| self.buffer(m)).transpose()?;
        let mut r = lock(self.recording());
        r.store_fields(&fields, &index, &values, Accum::from_name(how), mask)
            .map_err(raised)
    }

    /// A value at cells with zeros elsewhere; any other as it is.
    fn dense(&self, x: &NativeTensor) -> PyResult<NativeTensor> {
        let x = self.buffer(x)?;
        let made = lock(self.recording()).dense(x).map_err(raised)?;
        Ok(self.tensor(made))
    }

    /// Whether both are values at cells, and at the same.
    fn are_at_cells_of(&self, x: &NativeTensor, other: &NativeTensor) -> PyResult<bool> {
        let [x, other] = [self.buffer(x)?, self.buffer(other)?];
        Ok(lock(self.recording()).are_at_same_cells(x, other))
    }

    /// Whether a value is one at cells of which some may be inactive.
    fn is_sparse(&self, x: &NativeTensor) -> PyResult<bool> {
        let x = self.buffer(x)?;
        Ok(lock(self.recording()).is_sparse(x))
    }

    /// How often stores may have made cells active so far.
    fn activations(&self) -> Vec<u32> {
        lock(self.recording()).activations()
    }

    /// Whether they may have made cells of a field active since then.
    fn has_activated(&self, field: &NativeTensor, before: Vec<u32>) -> PyResult<bool> {
        let field = self.buffer(field)?;
        Ok(lock(self.recording()).has_activated(field, &before))
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

    /// An extent in words that are the same in each trace in which it is.
    fn dim_key(&self, dim: &NativeDim) -> String {
        lock(self.recording()).program.dim_key(dim.dim)
    }

    /// The extent of this trace that is the same as one of another trace of the same function.
    fn dim_like(&self, other: &Self, dim: &NativeDim) -> PyResult<NativeDim> {
        if Arc::ptr_eq(self.recording(), other.recording()) {
            return Ok(NativeDim { dim: dim.dim });
        }
        let theirs = lock(other.recording());
        let made = lock(self.recording()).dim_like(&theirs.program, dim.dim);
        let dim = made.ok_or_else(|| {
            PyValueError::new_err(
                "memory that is set in a block has the extents of an input that is made after it",
            )
        })?;
        Ok(NativeDim { dim })
    }

    /// Asks an extent for a number of elements, with these words if it has fewer; `{}` stands for how many it has.
    fn ask_at_least(&self, dim: &NativeDim, n: u32, message: &str) {
        let mut r = lock(self.recording());
        r.ask_at_least(dim.dim, n, message);
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

    /// Notes where in the user's program all was made that has come since the last note.
    fn note(&self, py: Python<'_>) {
        if !lock(self.recording()).is_noted() {
            let place = super::places::here(py);
            lock(self.recording()).note(place);
        }
    }

    /// Memory of the program's own.
    #[pyo3(signature = (dtype, shape, field = None))]
    fn memory(
        &self,
        dtype: &str,
        shape: Vec<Extent<'_>>,
        field: Option<&NativeTensor>,
    ) -> PyResult<NativeTensor> {
        let ty = scalar_type(dtype)?;
        let field = field.map(|field| self.buffer(field)).transpose()?;
        let mut r = lock(self.recording());
        let shape = dims(&mut r, &shape);
        let buffer = r.program.temporary(ty, &shape);
        r.note_memory(buffer);
        if let Some(field) = field {
            r.note_at_cells(buffer, field);
        }
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

    /// A tensor that stays as it is: of memory its value.
    fn value(&self, tensor: &Bound<'_, NativeTensor>) -> PyResult<Py<NativeTensor>> {
        let native = tensor.get();
        let changes = match &native.home {
            Home::Program(recording, buffer) if Arc::ptr_eq(recording, self.recording()) => {
                lock(recording).is_memory(*buffer)
            }
            _ => false,
        };
        match changes {
            true => Py::new(tensor.py(), self.read(native)?),
            false => Ok(tensor.clone().unbind()),
        }
    }

    /// A tensor's value as it is now: for memory that changes later.
    fn read(&self, tensor: &NativeTensor) -> PyResult<NativeTensor> {
        let buffer = self.buffer(tensor)?;
        let mut r = lock(self.recording());
        r.cells_of("a value", &[buffer]).map_err(raised)?;
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
    fn drop_block(&self, n_before: usize) {
        // What was wrong in it has been said.
        let _ = self.end(false);
        lock(self.recording()).drop_since(n_before);
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
        let body = self.end(true)?;
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
        let body = self.end(false)?;
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

    /// Tensors that outlive the trace as tensors outside of programs, of which nothing is computed yet: those that are made
    /// of constants alone. `constants` has what each of `outside` is in the program.
    fn let_go(
        &self,
        tensors: Vec<Bound<'_, NativeTensor>>,
        constants: Vec<Bound<'_, NativeTensor>>,
        outside: Vec<Bound<'_, NativeTensor>>,
    ) -> Vec<Option<NativeTensor>> {
        let buffer = |t: &Bound<'_, NativeTensor>| self.buffer(t.get()).ok();
        let buffers: Vec<Option<Buffer>> = tensors.iter().map(buffer).collect();
        let wanted: Vec<Buffer> = buffers.iter().flatten().copied().collect();
        let pairs = constants.iter().zip(&outside);
        let known = pairs.filter_map(|(own, outside)| match outside.get().home {
            Home::Lazy(slot) => Some((buffer(own)?, slot)),
            Home::Program(..) => None,
        });
        let known: Vec<(Buffer, Slot)> = known.collect();
        let around = lock(&self.blocks);
        let taken = lock(&SESSION).take(&lock(self.recording()), &around, &known, &wanted);
        let mut taken = taken.into_iter();
        let slots = buffers.iter().map(|own| own.and_then(|_| taken.next()?));
        let home = |slot| NativeTensor {
            home: Home::Lazy(slot),
        };
        slots.map(|slot| slot.map(home)).collect()
    }

    /// The program, ready to run, with these results.
    fn finish(
        &self,
        py: Python<'_>,
        results: Vec<Bound<'_, NativeTensor>>,
    ) -> PyResult<NativeProgram> {
        let results = results.iter().map(|t| self.buffer(t.get()));
        let results = results.collect::<PyResult<Vec<Buffer>>>()?;
        let r = lock(self.recording());
        r.expect_everywhere(&results).map_err(raised)?;
        let mut program = r.program.clone();
        drop(r);
        program.results = results;
        let text = program.to_string();
        aerogel_tensor::verify(&program)
            .map_err(|e| crate::py::error::runtime(py, format!("{e}\n{text}")))?;
        let settings = program::settings(py)?;
        let compiler = program::compiler(py, &settings)?;
        let made_for = made_for(&settings, &compiler);
        let traced = Traced {
            program: program.clone(),
            lines: lock(self.recording()).lines.clone(),
        };
        let plan = Plan::new(program, made_for).map_err(|e| not_compiled(py, &e))?;
        let explained = aerogel_tensor::explain::of_plan(&traced.program, &plan);
        Ok(NativeProgram {
            stores_to_fields: aerogel_tensor::passes::stores_to_fields(plan.program()),
            runners: lock(&self.runners).clone(),
            generation: program::generation(),
            trees: lock(&self.trees).clone(),
            plan,
            text,
            explained,
            traced,
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
        let changes = self.stores_to_fields || !self.runners.is_empty();
        if changes && recorder::current(py).is_some() {
            let what = "a program of tensors that stores to fields or calls kernels is not recorded: run it outside of the \
                        tape";
            return Err(crate::py::error::runtime(py, what));
        }
        later::tell(py)?;
        let trees = self.trees.iter().map(|store| store.memory(py));
        let trees = trees.collect::<PyResult<Vec<_>>>()?;
        signals::heed(py)?;
        let results = py.detach(|| self.plan.run_over(&inputs, &[], &trees));
        let results = results.map_err(|e| self.traced.ended(py, &e, None))?;
        Ok(results.into_iter().map(leaf).collect())
    }

    /// Whether it is what the settings make of it: `ti.init` may have made others, and of kernels too.
    #[getter]
    fn is_current(&self) -> bool {
        self.generation == program::generation()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.runners.iter().try_for_each(|r| r.traverse(&visit))
    }

    fn __clear__(&self) {
        self.runners.iter().for_each(|r| r.clear());
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
