//! Fields that processes share: their grids, their memory for NumPy, and what is called around the loops of a launch.

use std::sync::{Arc, Mutex, PoisonError};

use aerogel_compiler::{
    Arch, Compiler, Exchange, SparseTree, SplitGrid, SplitKernel, Sum, accesses_split, number_cells,
};
use aerogel_ir::{FieldId, Module, TreeId};
use aerogel_runtime::TreeMemory;
use aerogel_runtime::launch::{Exchanges, Moment, Refused};
use aerogel_snode::NodeId;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::snode::{self, TreeStore};
use super::{error, program};

/// A module for one process, and what its launches call.
pub(crate) struct OfProcess {
    pub(crate) module: Module,
    /// The trees behind those that there were.
    pub(crate) hidden: Vec<Arc<TreeStore>>,
    /// Python's plan of the exchanges; none if the kernel accesses no split field.
    pub(crate) plan: Option<Py<PyAny>>,
}

fn grids_of(stores: &[Option<Arc<TreeStore>>]) -> Vec<Option<Arc<SplitGrid>>> {
    let split = |store: &Option<Arc<TreeStore>>| store.as_ref()?.grid.get().cloned();
    stores.iter().map(split).collect()
}

/// Whether a module accesses split fields.
pub(crate) fn is_split(module: &Module, stores: &[Option<Arc<TreeStore>>]) -> bool {
    let grids = grids_of(stores);
    accesses_split(module, &|tree: TreeId| {
        let grid = grids.get(tree.as_u32() as usize);
        grid.is_some_and(Option::is_some)
    })
}

/// Makes a module that accesses split fields ready to be differentiated.
///
/// # Errors
/// What the kernel does cannot be done by several processes.
pub(crate) fn before_derivative(
    at: (Python<'_>, &str, &Compiler),
    module: &mut Module,
    stores: &[Option<Arc<TreeStore>>],
) -> PyResult<()> {
    let grids = grids_of(stores);
    split(at, module.clone(), grids.clone(), false)?;
    number_cells(module, &grids);
    Ok(())
}

fn split(
    (py, kernel, compiler): (Python<'_>, &str, &Compiler),
    module: Module,
    grids: Vec<Option<Arc<SplitGrid>>>,
    is_derivative: bool,
) -> PyResult<SplitKernel> {
    let (spans, sources) = (module.env.spans.clone(), module.env.sources.clone());
    let done = py
        .detach(|| compiler.split(module, grids, is_derivative))
        .map_err(|e| error::not_compiled(py, kernel, e))?;
    done.map_err(|mistake| error::raise(py, &[*mistake], &spans, &sources))
}

/// The module of one process.
///
/// # Errors
/// What the kernel does with split fields cannot be done by several processes.
pub(crate) fn of_process(
    (py, kernel, compiler): (Python<'_>, &str, &Compiler),
    module: Module,
    stores: &[Option<Arc<TreeStore>>],
    is_derivative: bool,
) -> PyResult<OfProcess> {
    if !is_split(&module, stores) {
        return Ok(OfProcess {
            module,
            hidden: Vec::new(),
            plan: None,
        });
    }
    if !matches!(compiler.config().arch, Arch::Cpu) {
        let what =
            format!("kernel `{kernel}` accesses split fields, which need ti.init(arch=ti.cpu)");
        return Err(error::exception(py, "AerogelNotSupportedError", what));
    }
    let SplitKernel {
        module,
        exchanges,
        hidden,
    } = split(
        (py, kernel, compiler),
        module,
        grids_of(stores),
        is_derivative,
    )?;
    let hidden = hidden.into_iter().map(TreeStore::of_shared);
    let hidden: Vec<Arc<TreeStore>> = hidden.collect::<PyResult<_>>()?;
    let keys: Vec<u64> = stores
        .iter()
        .map(|store| store.as_ref().map_or(0, |store| store.key))
        .chain(hidden.iter().map(|store| store.key))
        .collect();
    let plan = py.import("aerogel.mpi._exchange")?.call_method1(
        "Plan",
        (kernel, is_derivative, rows(&module, &exchanges, &keys)),
    )?;
    Ok(OfProcess {
        module,
        hidden,
        plan: Some(plan.unbind()),
    })
}

/// The components of a field: the key of its tree, and the place of each.
type Places = (u64, Vec<u32>);
/// How far beyond the own cells of each component of a field a loop reads, or adds.
type Reach = (Places, Vec<[i64; 2]>);
/// A sparse tree: its key, whether the loop depends on which cells of neighbours are active, and whether it changes that.
type Tree = (u64, bool, bool);
/// An exchange as Python takes it: reads, additions, writes, sums with their operations, and sparse trees.
type Row = (
    Vec<Reach>,
    Vec<Reach>,
    Vec<Places>,
    Vec<(Places, &'static str)>,
    Vec<Tree>,
);

/// Exchanges as Python takes them; `keys` are those of the module's trees.
fn rows(module: &Module, exchanges: &[Exchange], keys: &[u64]) -> Vec<Row> {
    let places = |field: FieldId| {
        let data = &module.env.fields[field];
        let nodes: Vec<u32> = data.places.iter().map(|place| place.as_u32()).collect();
        (keys[data.tree.as_u32() as usize], nodes)
    };
    let sum = |sum: &Sum<FieldId>| {
        let (key, all) = places(sum.target);
        let of = sum.component.map(|at| vec![all[at]]);
        ((key, of.unwrap_or(all)), sum.op.name())
    };
    let row = |row: &Exchange| {
        let reach = |list: &[(FieldId, Vec<[i64; 2]>)]| -> Vec<Reach> {
            let list = list.iter();
            list.map(|(field, widths)| (places(*field), widths.clone()))
                .collect()
        };
        let writes = row.writes.iter().map(|&field| places(field));
        let tree = |it: &SparseTree| (keys[it.tree.as_u32() as usize], it.reads, it.changes);
        (
            reach(&row.reads),
            reach(&row.adds),
            writes.collect(),
            row.sums.iter().map(sum).collect(),
            row.trees.iter().map(tree).collect(),
        )
    };
    exchanges.iter().map(row).collect()
}

/// The exchanges of a launch that runs.
pub(crate) struct Running {
    launch: Py<PyAny>,
    failed: Mutex<Option<PyErr>>,
}

impl Running {
    /// Those of a plan.
    pub(crate) fn begin(py: Python<'_>, plan: &Py<PyAny>) -> PyResult<Self> {
        Ok(Self {
            launch: plan.call_method0(py, "begin")?,
            failed: Mutex::new(None),
        })
    }

    /// After a launch: the exception that an exchange has ended with, if it has.
    pub(crate) fn end(self, py: Python<'_>, is_done: bool) -> PyResult<()> {
        let failed = self.failed.into_inner();
        let failed = failed.unwrap_or_else(PoisonError::into_inner);
        if is_done && failed.is_none() {
            return self.launch.call_method0(py, "end").map(drop);
        }
        self.launch.call_method0(py, "failed")?;
        failed.map_or(Ok(()), Err)
    }
}

impl Exchanges for Running {
    fn run(&self, number: u32, moment: Moment) -> Result<(), Refused> {
        let method = match moment {
            Moment::Before => "before",
            Moment::After => "after",
        };
        let done = Python::attach(|py| self.launch.call_method1(py, method, (number,)).map(drop));
        done.map_err(|why| {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            *failed = Some(why);
            Refused
        })
    }
}

/// The memory of one component of a field, halo included, as NumPy takes it.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct PlaceMemory {
    memory: Arc<TreeMemory>,
    place: NodeId,
}

#[pymethods]
impl PlaceMemory {
    /// Unsigned integers of the size of the field's numbers, which are these numbers' bits.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tree = self.memory.tree();
        let ty = tree[self.place].kind.scalar();
        let (Some(ty), Some((base, strides))) = (ty, tree.strides(self.place)) else {
            return Err(PyValueError::new_err("the memory is no dense array"));
        };
        let address = self.memory.address().map_err(error::memory)? as usize + base as usize;
        let out = PyDict::new(py);
        out.set_item("version", 3)?;
        out.set_item("data", (address, false))?;
        out.set_item("shape", PyTuple::new(py, tree.shape(self.place))?)?;
        out.set_item("strides", PyTuple::new(py, strides)?)?;
        out.set_item("typestr", format!("<u{}", ty.bytes()))?;
        Ok(out)
    }

    /// The name of the numbers' type.
    #[getter]
    fn dtype_name(&self) -> String {
        let ty = self.memory.tree()[self.place].kind.scalar();
        ty.map_or_else(String::new, |ty| ty.to_string())
    }
}

/// The memory of a place of a tree, by the tree's key.
#[pyfunction]
pub(crate) fn place_memory(py: Python<'_>, key: u64, place: u32) -> PyResult<PlaceMemory> {
    program::materialize(py)?;
    let store = snode::find(key).ok_or_else(|| error::runtime(py, "a field no longer exists"))?;
    Ok(PlaceMemory {
        memory: store.memory(py)?,
        place: NodeId::from_u32(place),
    })
}
