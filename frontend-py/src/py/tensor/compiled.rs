//! Programs that are ready to run.

use std::sync::{Arc, Mutex, OnceLock};

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;
use aerogel_compiler::{CompileError, caught};
use aerogel_tensor::ir::{Promises, Sizes, checked, for_sizes};
use aerogel_tensor::record::Lines;
use aerogel_tensor::{Given, Operand, Plan, Program};
use indexmap::IndexMap;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use smallvec::SmallVec;

use super::backends;
use super::ended::Traced;
use super::exported::Shaped;
use super::native::{Held, NativeTensor, SESSION, lock};
use super::values::{leaf, not_compiled, settings_now};
use crate::py::exported::Files;
use crate::py::snode::TreeStore;
use crate::py::{error, later, program, recorder, signals};

#[pymethods]
impl NativeProgram {
    /// A program from its text, which is not trusted.
    #[staticmethod]
    fn read(py: Python<'_>, text: &str) -> PyResult<Self> {
        let read = caught(|| aerogel_tensor::ir::read(text)).map_err(|said| {
            let what = format!("the program could not be read: {said}; this is a bug");
            error::runtime(py, what)
        })?;
        let (program, promises) = read.map_err(|e| PyValueError::new_err(e.shown(text)))?;
        // Other back ends do not look at the promises: their program checks every index.
        let traced = Traced {
            program: checked(program.clone()),
            lines: Lines::default(),
        };
        let guard = Guard {
            program: program.clone(),
            promises,
            checked: OnceLock::new(),
        };
        let plans = Plans::default();
        plans.keep(Sizes::default(), plan_of(py, program)?);
        Ok(Self {
            guard: Some(guard),
            plans,
            ..Self::new(py, text.to_owned(), traced)?
        })
    }

    /// What it is given: the name, the dtype and the shape of each input; sizes of the call are `None`.
    #[getter]
    fn inputs(&self) -> Vec<(&str, &'static str, Vec<Option<u64>>)> {
        let program = &self.traced.program;
        let inputs = program.inputs().map(|b| &program.buffers[b]);
        let inputs = inputs.map(|def| {
            let shape = def.shape.iter().map(|&dim| program.const_dim(dim));
            (def.name.as_str(), def.ty.name(), shape.collect())
        });
        inputs.collect()
    }

    /// How many results it has.
    #[getter]
    fn n_results(&self) -> usize {
        self.traced.program.results.len()
    }

    /// The kernels that it calls, and the fields that it reads or stores to, by name.
    #[getter]
    fn outside(&self) -> (Vec<&str>, Vec<&str>) {
        let program = &self.traced.program;
        let kernels = program.regions.values().map(|def| def.name.as_str());
        let fields = program.fields().map(|b| program.buffers[b].name.as_str());
        (kernels.collect(), fields.collect())
    }

    /// Runs the program. The inputs with the numbers in `donated`, in ascending order, have no values
    /// afterwards: results may take their memory.
    #[pyo3(signature = (inputs, donated=Vec::new()))]
    fn run(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, NativeTensor>>,
        donated: Vec<usize>,
    ) -> PyResult<Vec<NativeTensor>> {
        for tensor in &inputs {
            let instead = "take `ti.grad` of the program, or of a function that calls it; ";
            tensor.get().expect_no_history("a program", instead)?;
        }
        if lock(&SESSION).is_watched()
            && let Some(made) = backends::run_program(py, &self.traced, &self.views, &inputs)?
        {
            return Ok(made);
        }
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
        let values =
            inputs
                .iter()
                .enumerate()
                .map(|(k, input)| match donated.binary_search(&k).is_ok() {
                    true => input.get().computed(py),
                    false => input.get().operand(py),
                });
        let slots: Vec<_> = donated
            .iter()
            .filter_map(|&k| inputs[k].get().slot())
            .collect();
        let inputs = values.collect::<PyResult<Vec<_>>>()?;
        let begin = || slots.iter().for_each(|&slot| lock(&SESSION).donate(slot));
        let plan = self.plan_for(py, &inputs)?;
        let given = Given {
            trees: &trees,
            place_of: Some(&|buffer| self.traced.lines.of_buffer(buffer)),
            donated: &donated,
            begin: Some(&begin),
            ..Given::default()
        };
        let results = py.detach(|| plan.run_with(inputs, given));
        let results = results.map_err(|e| self.traced.ended(py, &e))?;
        Ok(results.into_iter().map(leaf).collect())
    }

    /// Chooses sizes of tiles and limits of fusion by measurement, for inputs of these sizes.
    fn tune(&self, py: Python<'_>, inputs: Vec<Bound<'_, NativeTensor>>) -> PyResult<String> {
        self.tuned(py, &inputs)
    }

    /// It as code of C, for calls with inputs of these shapes.
    fn export_c<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        inputs: Vec<Shaped<'py>>,
        outputs: Vec<String>,
    ) -> PyResult<Files<'py>> {
        self.exported(py, name, inputs, outputs)
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

    /// Compiles it for inputs of these shapes, or, without them, for any.
    #[pyo3(signature = (shapes=None))]
    fn prepare(&self, py: Python<'_>, shapes: Option<Vec<Vec<usize>>>) -> PyResult<()> {
        let Some(shapes) = shapes else {
            self.plan_of_any(py)?;
            return Ok(());
        };
        let program = &self.traced.program;
        let types = program.inputs().map(|b| program.buffers[b].ty);
        let inputs: Vec<_> = types.zip(shapes.iter().map(|shape| &shape[..])).collect();
        self.plan_of_shapes(py, &inputs)?;
        Ok(())
    }

    /// The compiled statements as text, of what ran or was compiled last: which share a kernel, which temporaries are
    /// materialised, and why.
    #[getter]
    fn explained(&self, py: Python<'_>) -> PyResult<String> {
        let plan = match self.plans.last() {
            Some(plan) => plan,
            None => self.plan_of_any(py)?,
        };
        let explained = aerogel_tensor::run::explain::of_plan(&self.traced.program, &plan);
        Ok(format!("{explained}{}{}", plan.chosen(), plan.note()))
    }

    /// The statements as they were traced.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }
}

/// A traced program, ready to run.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct NativeProgram {
    plans: Plans,
    /// The trees of its fields.
    trees: Vec<Arc<TreeStore>>,
    stores_to_fields: bool,
    /// The kernels of the user's that it calls.
    runners: Vec<Arc<dyn Held>>,
    /// The generation of `ti.init` that compiled it.
    generation: u64,
    text: String,
    /// The traced program, for messages and other back ends.
    pub(super) traced: Traced,
    views: backends::Views,
    /// What protects the plan of a program that was read.
    guard: Option<Guard>,
}

/// The accesses of a program that was read, and what runs if not all of them are in bounds.
struct Guard {
    program: Program,
    promises: Promises,
    /// The plan that checks every index, made when it is first needed.
    checked: OnceLock<Arc<Plan>>,
}

/// The plans of a program.
#[derive(Default)]
struct Plans(Mutex<Cached>);

#[derive(Default)]
struct Cached {
    /// By what they were told about sizes; the most recently used one is the last.
    of: IndexMap<Sizes, Arc<Plan>>,
    /// The sizes of calls that came before, by the axes of their inputs one after the other.
    sizes: LookupMap<Axes, Sizes>,
}

/// The axes of all inputs of a program, whose ranks are known.
type Axes = SmallVec<[usize; 32]>;

/// The number of cached plans: when there are more, the one that was used longest ago is dropped.
const MOST_PLANS: usize = 64;
/// The number of shapes for which the sizes are cached: when there are more, all are dropped.
const MOST_SHAPES: usize = 1024;

impl Plans {
    /// Looks up the plan for these sizes and marks it as most recently used.
    fn get(&self, sizes: &Sizes) -> Option<Arc<Plan>> {
        let all = &mut lock(&self.0).of;
        let (last, own) = (all.len().checked_sub(1)?, all.get_index_of(sizes)?);
        all.move_index(own, last);
        Some(all[last].clone())
    }

    fn keep(&self, sizes: Sizes, plan: Plan) -> Arc<Plan> {
        let all = &mut lock(&self.0).of;
        if all.len() == MOST_PLANS {
            all.shift_remove_index(0);
        }
        let plan = Arc::new(plan);
        all.insert(sizes, plan.clone());
        plan
    }

    fn last(&self) -> Option<Arc<Plan>> {
        lock(&self.0).of.last().map(|(_, plan)| plan.clone())
    }

    /// What a plan for inputs of these types and shapes is told.
    fn sizes(&self, program: &Program, inputs: &[(ScalarType, &[usize])]) -> Sizes {
        let axes: Axes = inputs
            .iter()
            .flat_map(|(_, shape)| *shape)
            .copied()
            .collect();
        if let Some(sizes) = lock(&self.0).sizes.get(&axes) {
            return sizes.clone();
        }
        let sizes = Sizes::of(program, inputs);
        let known = &mut lock(&self.0).sizes;
        if known.len() == MOST_SHAPES {
            known.clear();
        }
        known.insert(axes, sizes.clone());
        sizes
    }
}

/// Compiles a program with the current settings.
pub(super) fn plan_of(py: Python<'_>, program: Program) -> PyResult<Plan> {
    settings_now(py, |settings| {
        let made = caught(|| Plan::new(program, settings));
        let made = made.unwrap_or_else(|said| Err(CompileError::Internal(said)));
        made.map_err(|e| not_compiled(py, &e))
    })
}

impl NativeProgram {
    /// A program without fields and kernels.
    pub(super) fn new(py: Python<'_>, text: String, traced: Traced) -> PyResult<Self> {
        // Without `ti.init` before, the first program starts what the generation is of.
        program::settings_or_begin(py)?;
        Ok(Self {
            stores_to_fields: aerogel_tensor::passes::stores_to_fields(&traced.program),
            runners: Vec::new(),
            generation: program::generation(),
            trees: Vec::new(),
            plans: Plans::default(),
            text,
            traced,
            views: backends::Views::default(),
            guard: None,
        })
    }

    /// The same with the trees of fields and the kernels that it uses.
    pub(super) fn with(self, trees: Vec<Arc<TreeStore>>, runners: Vec<Arc<dyn Held>>) -> Self {
        Self {
            trees,
            runners,
            ..self
        }
    }

    /// What it does that a tuner must not repeat, or does not know, if anything.
    pub(super) fn not_tunable(&self) -> Option<&'static str> {
        if self.guard.is_some() {
            Some("was read from a file or a text")
        } else if !self.trees.is_empty() {
            Some("uses fields")
        } else if !self.runners.is_empty() {
            Some("calls kernels or functions of Python")
        } else {
            None
        }
    }

    /// What a plan for inputs of these types and shapes is told.
    pub(super) fn sizes_of(&self, inputs: &[(ScalarType, &[usize])]) -> Sizes {
        self.plans.sizes(&self.traced.program, inputs)
    }

    /// Takes a plan for all calls with these sizes.
    pub(super) fn keep_plan(&self, sizes: Sizes, plan: Plan) {
        self.plans.keep(sizes, plan);
    }

    /// The plan for these inputs.
    fn plan_for(&self, py: Python<'_>, inputs: &[Operand]) -> PyResult<Arc<Plan>> {
        let shapes: SmallVec<[_; 16]> = inputs.iter().map(|i| (i.ty, &i.shape[..])).collect();
        if let Some(guard) = &self.guard
            && !guard.promises.hold(&guard.program, &shapes)
        {
            return self.checked(py, guard);
        }
        self.plan_of_shapes(py, &shapes)
    }

    /// The plan that checks every index.
    fn checked(&self, py: Python<'_>, guard: &Guard) -> PyResult<Arc<Plan>> {
        if guard.checked.get().is_none() {
            let plan = plan_of(py, self.traced.program.clone())?;
            // Another thread may have made it meanwhile.
            let _ = guard.checked.set(Arc::new(plan));
        }
        Ok(guard.checked.get().expect("made above").clone())
    }

    /// The plan for inputs of these types and shapes.
    pub(super) fn plan_of_shapes(
        &self,
        py: Python<'_>,
        inputs: &[(ScalarType, &[usize])],
    ) -> PyResult<Arc<Plan>> {
        // What was promised of a program that was read holds for the program as it is.
        let sizes = match self.guard {
            Some(_) => Sizes::default(),
            None => self.plans.sizes(&self.traced.program, inputs),
        };
        self.plan_of_sizes(py, sizes)
    }

    /// The plan for inputs of any shapes.
    fn plan_of_any(&self, py: Python<'_>) -> PyResult<Arc<Plan>> {
        self.plan_of_sizes(py, Sizes::default())
    }

    fn plan_of_sizes(&self, py: Python<'_>, sizes: Sizes) -> PyResult<Arc<Plan>> {
        if let Some(plan) = self.plans.get(&sizes) {
            return Ok(plan);
        }
        let program = for_sizes(self.traced.program.clone(), &sizes);
        Ok(self.plans.keep(sizes, plan_of(py, program)?))
    }
}
