//! Programs while they are traced.

use std::sync::Arc;

use aerogel_tensor::record::Mode;
use aerogel_tensor::record::trace::FieldDef;
use aerogel_tensor::{Accum, Outside, RegionDef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::compiled::NativeProgram;
use super::ended::Traced;
use super::kernels::{KernelCall, Key, Watcher};
use super::keys::Keys;
use super::native::{
    Extent, NativeDim, NativeTensor, NativeTrace, dims, lock, outside, scalar_type,
};
use super::places;
use super::raised::raised_in;
use crate::py::field::NativeField;
use crate::py::snode::TreeStore;

impl NativeTrace {
    /// Notes a tree that the program uses.
    pub(super) fn uses(&self, store: &Arc<TreeStore>) {
        let mut trees = lock(&self.trees);
        if !trees.iter().any(|own| Arc::ptr_eq(own, store)) {
            trees.push(store.clone());
        }
    }

    /// The places of a field, one for each component.
    fn places_of(&self, py: Python<'_>, field: &NativeField) -> PyResult<Vec<Arc<FieldDef>>> {
        let placement = field.placement(py)?;
        let store = &placement.store;
        let shown = match field.name() {
            "" => "field",
            name => name,
        };
        if store.grid.get().is_some() {
            let what = format!(
                "`{shown}` is split over ranks, and tensors take fields that every rank has: take `to_numpy()` of it outside of the \
                 program"
            );
            return Err(crate::py::error::exception(
                py,
                "AerogelNotSupportedError",
                what,
            ));
        }
        store.memory(py)?;
        self.uses(store);
        let n = placement.places.len();
        let places = placement.places.iter().enumerate().map(|(k, &place)| {
            Arc::new(FieldDef {
                name: match n {
                    1 => shown.to_owned(),
                    _ => format!("{shown}_{k}"),
                },
                tree: store.tree.clone(),
                place,
                offset: placement.offset.clone(),
            })
        });
        Ok(places.collect())
    }

    fn dim_handle(&self, size: aerogel_tensor::record::Size) -> NativeDim {
        let dim = lock(&self.trace).state.r.dim(size);
        NativeDim { size, dim }
    }
}

fn accumulation(how: &str) -> PyResult<Accum> {
    Accum::from_name(how)
        .ok_or_else(|| PyValueError::new_err(format!("there is no accumulation {how:?}")))
}

#[pymethods]
impl NativeTrace {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Whether a tensor is one of this program.
    fn owns(&self, tensor: &NativeTensor) -> bool {
        self.value(tensor).is_ok()
    }

    /// A tensor of its own with the numbers that one has now. It is memory if a block changes it.
    fn made(&self, tensor: &NativeTensor) -> PyResult<NativeTensor> {
        let value = self.value(tensor)?;
        Ok(self.tensor(self.step(move |s| s.made(value))?))
    }

    /// The numbers that a tensor has now: of memory that changes.
    fn snapshot(&self, tensor: &NativeTensor) -> PyResult<NativeTensor> {
        let value = self.value(tensor)?;
        self.made_from(vec![value], move |s| {
            let buffer = s.buffer(value)?;
            s.snapshot(buffer)
        })
    }

    /// Makes memory of a tensor, which then stays where it is.
    fn keep(&self, tensor: &NativeTensor) -> PyResult<()> {
        let value = self.value(tensor)?;
        self.step(move |s| s.keep(value))
    }

    /// Checks, once all is known, that a tensor still has its current shape.
    fn expect_shape(&self, tensor: &NativeTensor) -> PyResult<()> {
        self.value(tensor)?;
        tensor.expect_shape()
    }

    /// Refuses, once all is known, that a tensor has another number of axes than it has now.
    fn expect_rank(&self, tensor: &NativeTensor) -> PyResult<()> {
        self.value(tensor)?;
        tensor.expect_rank()
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

    /// Calls a function with a tensor, and with the current mask, when the program reaches this statement. `least` is the smallest
    /// number that it accepts, with its message, if it does nothing else than compare.
    #[pyo3(signature = (function, name, tensor, least = None))]
    fn watch(
        &self,
        function: Py<PyAny>,
        name: &str,
        tensor: &NativeTensor,
        least: Option<(i32, String)>,
    ) -> PyResult<()> {
        let value = self.value(tensor)?;
        let watcher = Arc::new(Watcher::new(function, least));
        lock(&self.runners).push(watcher.clone());
        let name = name.to_owned();
        self.step(move |s| {
            let mut arrays = vec![s.buffer(value)?];
            arrays.extend(s.mask()?);
            for array in &mut arrays {
                *array = s.r.dense(*array)?;
            }
            let def = RegionDef {
                name: name.clone(),
                writes: vec![false; arrays.len()],
                trees: Vec::new(),
                runner: Some(watcher.clone()),
            };
            s.r.run(def, arrays, &[]);
            Ok(())
        })
    }

    /// Sets a tensor at the points of the current mask.
    fn set(&self, target: &NativeTensor, value: &NativeTensor) -> PyResult<()> {
        let (target, value) = (self.value(target)?, self.value(value)?);
        self.step(move |s| s.set(target, value))
    }

    /// Stores values where a key names elements, at the points of the current mask.
    #[expect(clippy::too_many_arguments, reason = "what a store has")]
    fn store(
        &self,
        py: Python<'_>,
        target: &NativeTensor,
        key: &Bound<'_, PyAny>,
        value: &NativeTensor,
        how: &str,
        mode: &str,
        is_c: bool,
    ) -> PyResult<()> {
        let (accum, mode) = (Accum::from_name(how), outside(mode)?);
        let (key, naming) = Keys::of(key, target)?.of_store(py, &self.trace, target, mode, is_c)?;
        let (target, value) = (self.value(target)?, self.value(value)?);
        self.step(move |s| s.store(target, &key, value, accum, mode, naming))
    }

    /// Puts values to elements at computed indices, one after the other: what was there before each.
    #[expect(clippy::too_many_arguments, reason = "what a store has")]
    fn store_with_previous(
        &self,
        py: Python<'_>,
        target: &NativeTensor,
        key: &Bound<'_, PyAny>,
        value: &NativeTensor,
        how: &str,
        mode: &str,
        is_c: bool,
    ) -> PyResult<NativeTensor> {
        let (accum, mode): (Accum, Mode) = (accumulation(how)?, outside(mode)?);
        let (key, _) = Keys::of(key, target)?.of_store(py, &self.trace, target, mode, is_c)?;
        let (target, value) = (self.value(target)?, self.value(value)?);
        let mut of = vec![target, value];
        key.map(|&value| of.push(value));
        self.made_from(of, move |s| {
            s.store_with_previous(target, &key, value, accum, mode, !is_c)
        })
    }

    /// The index of each active cell of a field along each of its axes.
    fn cell_indices(&self, py: Python<'_>, field: &NativeField) -> PyResult<Vec<NativeTensor>> {
        let field = self.places_of(py, field)?.swap_remove(0);
        let all = self.step(move |s| {
            let all = s.cell_indices(&field)?.into_iter();
            Ok(all.map(|b| s.value(b)).collect::<Vec<_>>())
        })?;
        Ok(all.into_iter().map(|value| self.tensor(value)).collect())
    }

    /// The elements of a field at computed indices; the components of vectors and matrices are the `last` axes.
    fn load_field(
        &self,
        py: Python<'_>,
        field: &NativeField,
        index: Vec<Bound<'_, NativeTensor>>,
        last: Vec<u64>,
    ) -> PyResult<NativeTensor> {
        let (fields, index) = (self.places_of(py, field)?, self.values(&index)?);
        self.made_from(index.clone(), move |s| {
            s.load_fields(&fields, &index, &last)
        })
    }

    /// All elements of a field, zeros where no cell is active.
    fn all_of_field(
        &self,
        py: Python<'_>,
        field: &NativeField,
        last: Vec<u64>,
    ) -> PyResult<NativeTensor> {
        let fields = self.places_of(py, field)?;
        self.made_by(move |s| s.all_of_fields(&fields, &last))
    }

    /// Stores a value to each component of a field at computed indices, at the points of the current mask.
    fn store_field(
        &self,
        py: Python<'_>,
        field: &NativeField,
        index: Vec<Bound<'_, NativeTensor>>,
        values: Vec<Bound<'_, NativeTensor>>,
        how: &str,
    ) -> PyResult<()> {
        let fields = self.places_of(py, field)?;
        let (index, values) = (self.values(&index)?, self.values(&values)?);
        let accum = Accum::from_name(how);
        self.step(move |s| s.store_fields(&fields, &index, &values, accum))
    }

    /// The type of a field's numbers.
    fn field_dtype(&self, py: Python<'_>, field: &NativeField) -> PyResult<&'static str> {
        let fields = self.places_of(py, field)?;
        let kind = fields[0].tree[fields[0].place].kind;
        Ok(kind.scalar().expect("a field is a place").name())
    }

    /// Memory as long as a tensor, or as `many` of them side by side, that is there when the innermost block has ended.
    #[pyo3(signature = (like, many = None))]
    fn block_output(&self, like: &NativeTensor, many: Option<Extent>) -> PyResult<NativeTensor> {
        let like = self.value(like)?;
        let value = self.step(move |s| {
            let many = many.map(|n| dims(&mut s.r, &[n])[0]);
            s.block_output(like, many)
        })?;
        Ok(self.tensor(value))
    }

    /// Sparse values as the components of one with these last axes.
    fn at_cells(
        &self,
        parts: Vec<Bound<'_, NativeTensor>>,
        last: Vec<u64>,
    ) -> PyResult<NativeTensor> {
        let parts = self.values(&parts)?;
        self.made_from(parts.clone(), move |s| {
            let parts = s.buffers(&parts)?;
            let last: Vec<_> = last.iter().map(|&n| s.r.program.size(n)).collect();
            s.r.at_cells(&parts, &last)
        })
    }

    /// A sparse value with zeros elsewhere; any other value unchanged.
    fn dense(&self, x: &NativeTensor) -> PyResult<NativeTensor> {
        let x = self.value(x)?;
        self.made_from(vec![x], move |s| {
            let x = s.buffer(x)?;
            s.r.dense(x)
        })
    }

    /// Whether both are sparse values on the same cells.
    fn are_at_cells_of(&self, x: &NativeTensor, other: &NativeTensor) -> PyResult<bool> {
        let [x, other] = [self.value(x)?, self.value(other)?];
        let trace = lock(&self.trace);
        let (r, seen) = (&trace.state.r, |v| trace.state.seen(v));
        Ok(r.are_at_same_cells(seen(x), seen(other)))
    }

    /// How many of the first axes of a value are those of the cells at which it is.
    fn cell_axes(&self, x: &NativeTensor) -> PyResult<Option<usize>> {
        let x = self.value(x)?;
        let trace = lock(&self.trace);
        let r = &trace.state.r;
        Ok(r.field_at(trace.state.seen(x)).map(|field| r.rank(field)))
    }

    /// Whether a value is one at cells of which some may be inactive.
    fn is_sparse(&self, x: &NativeTensor) -> PyResult<bool> {
        let x = self.value(x)?;
        let trace = lock(&self.trace);
        Ok(trace.state.r.is_sparse(trace.state.seen(x)))
    }

    /// An input; `None` is a size that is known when the program runs, and a size of the program must be equal. A constant
    /// is not set by the caller.
    #[pyo3(signature = (name, dtype, shape, is_constant = false))]
    fn input(
        &self,
        name: &str,
        dtype: &str,
        shape: Vec<Option<Extent>>,
        is_constant: bool,
    ) -> PyResult<NativeTensor> {
        let (name, ty) = (name.to_owned(), scalar_type(dtype)?);
        let value = self.step(move |s| {
            let known = shape.iter().map(|extent| match extent {
                Some(Extent::Number(n)) => Some(*n),
                _ => None,
            });
            let known: Vec<Option<u64>> = known.collect();
            let r = &mut s.r;
            let buffer = r.program.input(&name, ty, &known);
            for (axis, extent) in shape.iter().enumerate() {
                if let Some(Extent::Of(dim)) = extent {
                    let (own, wanted) = (r.shape(buffer)[axis], r.dim(dim.size));
                    let message = format!("`{name}`: axis {axis} has {{}} elements, not {{}}");
                    r.ask_equal(own, wanted, &message);
                    r.program.buffers[buffer].shape[axis] = wanted;
                }
            }
            Ok(match is_constant {
                true => s.constant(buffer),
                false => s.value(buffer),
            })
        })?;
        Ok(self.tensor(value))
    }

    /// A tensor whose sizes are these, which is required of it; nothing if they are others.
    fn assert_shape(
        &self,
        tensor: &NativeTensor,
        shape: Vec<Option<Extent>>,
        message: &str,
    ) -> PyResult<Option<NativeTensor>> {
        let (value, message) = (self.value(tensor)?, message.to_owned());
        let made = self.step(move |s| {
            let buffer = s.buffer(value)?;
            let own = s.r.shape(buffer);
            if own.len() != shape.len() {
                return Ok(None);
            }
            let mut stated = own.clone();
            for (dim, size) in stated.iter_mut().zip(&shape) {
                if let Some(size) = size {
                    let wanted = dims(&mut s.r, std::slice::from_ref(size))[0];
                    if !s.r.ask_equal(*dim, wanted, &message) {
                        return Ok(None);
                    }
                    *dim = wanted;
                }
            }
            if stated == own {
                return Ok(Some(value));
            }
            let axes = s.r.program.axes(own.len());
            let element = s.r.program.load(buffer, axes, Outside::Never);
            let made = s.r.map(&stated, element);
            Ok(Some(s.value(made)))
        })?;
        Ok(made.map(|value| self.tensor(value)))
    }

    /// Requires a size to be at least `count`, with this message if it is smaller; `{}` stands for the size.
    fn ask_at_least(&self, dim: NativeDim, n: u32, message: &str) -> PyResult<()> {
        let message = message.to_owned();
        self.step(move |s| {
            let dim = s.r.dim(dim.size);
            s.r.ask_at_least(dim, n, &message);
            Ok(())
        })
    }

    /// A size as a number of the program.
    fn number_of_dim(&self, dim: NativeDim) -> PyResult<NativeTensor> {
        self.made_by(move |s| {
            let dim = s.r.dim(dim.size);
            let value = s.r.program.extent(dim);
            Ok(s.r.map(&[], value))
        })
    }

    /// A number of the program as a size.
    fn dim_of_number(&self, tensor: &NativeTensor) -> PyResult<NativeDim> {
        let value = self.value(tensor)?;
        let size = self.step(move |s| {
            let buffer = s.buffer(value)?;
            let dim = s.r.extent_of(buffer)?;
            Ok(s.r.size_handle(dim))
        })?;
        Ok(self.dim_handle(size))
    }

    // Blocks.

    /// Whether any block is open.
    #[getter]
    fn is_in_block(&self) -> bool {
        lock(&self.trace).state.is_in_block()
    }

    /// Whether a loop is open in this function.
    #[getter]
    fn is_in_loop(&self) -> bool {
        lock(&self.trace).state.is_in_loop()
    }

    /// Whether a function under `vmap` is open.
    #[getter]
    fn is_in_vmap(&self) -> bool {
        lock(&self.trace).state.is_in_vmap()
    }

    /// The counters of the enclosing loops, outermost first.
    fn counters(&self) -> Vec<NativeTensor> {
        let counters = lock(&self.trace).state.counters().into_iter();
        counters.map(|value| self.tensor(value)).collect()
    }

    /// Begins a loop of the host: what it counts.
    fn begin_loop(
        &self,
        py: Python<'_>,
        first: &NativeTensor,
        last: &NativeTensor,
        step: i32,
    ) -> PyResult<NativeTensor> {
        let (first, last, place) = (self.value(first)?, self.value(last)?, places::here(py));
        let counter = self.step(move |s| s.begin_loop(first, last, step, place))?;
        Ok(self.tensor(counter))
    }

    /// Adds a condition to the points of the innermost block.
    fn add_mask(&self, condition: &NativeTensor) -> PyResult<()> {
        let condition = self.value(condition)?;
        self.step(move |s| s.add_mask(condition))
    }

    /// Begins what is done where a condition is true.
    fn begin_branch(&self, py: Python<'_>, condition: &NativeTensor) -> PyResult<()> {
        let (condition, place) = (self.value(condition)?, places::here(py));
        self.step(move |s| s.begin_branch(condition, place))
    }

    /// Ends the innermost loop or branch.
    fn end_block(&self) -> PyResult<()> {
        self.step(|s| s.end_block())
    }

    /// Leaves the innermost loop, or this iteration of it, at the points of the current mask.
    fn leave_loop(&self, is_iteration: bool) -> PyResult<()> {
        self.step(move |s| s.leave_loop(is_iteration))
    }

    /// Begins a function under `vmap`.
    fn begin_vmap(&self, py: Python<'_>) -> PyResult<()> {
        let place = places::here(py);
        self.step(move |s| {
            s.begin_vmap(place);
            Ok(())
        })
    }

    /// Discards the function under `vmap`, which raised an error.
    fn drop_vmap(&self) -> PyResult<()> {
        self.step(|s| {
            s.drop_vmap();
            Ok(())
        })
    }

    /// The program, ready to run, with these results.
    fn finish(
        &self,
        py: Python<'_>,
        results: Vec<Bound<'_, NativeTensor>>,
    ) -> PyResult<NativeProgram> {
        let results = self.values(&results)?;
        let results = self.step(move |s| {
            let mut out = Vec::new();
            for buffer in s.buffers(&results)? {
                let all = s.r.dense(buffer)?;
                let kept = s.own(all)?;
                // The copy belongs to the line of what it copies.
                let made = s.r.lines.get(all);
                s.r.lines.set(kept, made);
                out.push(s.value(kept));
            }
            Ok(out)
        })?;
        let mut trace = lock(&self.trace);
        if let Err(e) = trace.settle() {
            drop(trace);
            return Err(raised_in(py, e));
        }
        let state = &mut trace.state;
        let mut program = state.r.program.clone();
        program.results = results.iter().map(|&value| state.seen(value)).collect();
        let traced = Traced {
            program: program.clone(),
            lines: state.r.lines.clone(),
        };
        drop(trace);
        let text = traced.text();
        aerogel_tensor::verify(&program)
            .map_err(|e| crate::py::error::runtime(py, format!("{e}\n{text}")))?;
        let known = lock(&self.trees);
        let trees = program.trees.iter().map(|(_, tree)| {
            let mut known = known.iter();
            let own = known.find(|store| Arc::ptr_eq(&store.tree, tree));
            own.expect("each tree is used by a step").clone()
        });
        let trees: Vec<Arc<TreeStore>> = trees.collect();
        let runners = lock(&self.runners).clone();
        Ok(NativeProgram::new(py, text, traced)?.with(trees, runners))
    }
}
