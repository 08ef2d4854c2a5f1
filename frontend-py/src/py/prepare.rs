//! One instance of a kernel: lowered, compiled, and tied to the trees whose fields it uses.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use aerogel_base::Diagnostic;
use aerogel_compiler::{
    Arch, CompileError, CompiledKernel, Compiler, Differentiated, Room, Wanted, caught,
};
use aerogel_ir::analysis::access;
use aerogel_ir::analysis::boxes::{Launched, written};
use aerogel_ir::{Arg, Function, Module, Type};
use aerogel_runtime::{KernelFailure, TreeMemory, faults, interrupt, launch};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::argument::{KeyPart, Packed};
use super::buffer;
use super::error;
use super::field::NativeField;
use super::host::{PyHost, Watched};
use super::later::Explain;
use super::profile;
use super::program::{self, Settings};
use super::signals;
use super::signature::{self, Param, ParamKind, Signature, StructSpec, ValueSpec};
use super::snode::{self, TreeStore};
use super::split::{self, OfProcess, Running};
use super::summary::{Given, Summary};
use crate::derived::Derived;
use crate::host::{Known, StructType};
use crate::lower::{
    FrontendConfig, Lowered, ParamBinding, ReturnType, TextureAccess, lower_kernel, tensor_type,
};

/// A tree of an instance. The reference to one that came as an argument is weak.
pub(crate) enum TreeRef {
    Strong(Arc<TreeStore>),
    Weak(Weak<TreeStore>),
}

impl TreeRef {
    /// The tree, if it is still there.
    pub(crate) fn store(&self) -> Option<Arc<TreeStore>> {
        match self {
            Self::Strong(store) => Some(store.clone()),
            Self::Weak(store) => store.upgrade(),
        }
    }

    /// The tree's memory.
    pub(crate) fn memory(&self, py: Python<'_>) -> PyResult<Arc<TreeMemory>> {
        match self {
            Self::Strong(store) => store.memory(py),
            Self::Weak(store) => store
                .upgrade()
                .ok_or_else(|| error::runtime(py, "a field of the kernel no longer exists"))?
                .memory(py),
        }
    }
}

/// A compiled kernel.
pub(crate) struct Instance {
    pub(crate) trees: Vec<TreeRef>,
    /// Which derivative of the kernel it computes, if any.
    pub(crate) derivative: Option<Derived>,
    pub(crate) of_derivative: OfDerivative,
    /// Whether it is a derivative that writes nothing, which users have not heard of.
    is_idle: AtomicBool,
    /// What it accesses.
    pub(crate) summary: Summary,
    /// The arrays that the kernel takes besides its arguments.
    pub(crate) captured: Vec<Py<PyAny>>,
    /// Whether the kernel writes to each of its array arguments.
    pub(crate) writes: Vec<bool>,
    /// Whether the kernel of which this is perhaps a derivative does.
    pub(crate) primal_writes: Vec<bool>,
    guards: Vec<Guard>,
    /// What is called around its loops, if it accesses fields that processes share.
    exchanges: Option<Py<PyAny>>,
    compiler: Arc<Compiler>,
    pub(super) compiled: CompiledKernel,
    /// Its name in the report of a fault.
    in_faults: OnceLock<&'static faults::Kernel>,
}

/// What a launch has to know of the derivative that an instance computes.
#[derive(Default)]
pub(crate) struct OfDerivative {
    /// The trees of which others, behind all of them, say which cells were active.
    pub(crate) past: Vec<usize>,
    /// Why memory must be as it was before the kernel itself ran, if it must.
    of_start: Option<Diagnostic>,
    /// The arguments that must differ, each with what is added to it, and the error if they do not.
    told_apart: Vec<([(Arg, i64); 2], Diagnostic)>,
    /// The warning about a value whose derivative ends inside the kernel, if there is one.
    pub(crate) ends: Option<String>,
    /// The warnings about the kinks whose counts it returns.
    pub(crate) kinks: Vec<String>,
}

/// What must be as it was when the instance was compiled.
enum Guard {
    /// A strong reference, so that its address stays unique.
    Strong(Py<PyAny>),
    /// A weak reference to an object that the key names by identity.
    Weak(Py<PyAny>),
    /// The function that a name of a notebook referred to, which another cell may redefine.
    Name(Watched),
}

impl Instance {
    /// Whether the kernel may write to an array argument, by its number among them.
    pub(crate) fn is_written(&self, array: usize) -> bool {
        self.writes.get(array).copied().unwrap_or(true)
    }

    /// Reports the objects it references to Python's garbage collector.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut held = self.captured.iter().chain(&self.exchanges);
        held.try_for_each(|c| visit.call(c))?;
        self.guards.iter().try_for_each(|guard| match guard {
            Guard::Strong(held) | Guard::Weak(held) => visit.call(held),
            Guard::Name(watched) => watched.visit(visit),
        })
    }

    /// Whether all that the key names by identity, and every tree, is still there.
    pub(crate) fn is_current(&self, py: Python<'_>) -> bool {
        let alive = |guard: &Guard| match guard {
            Guard::Strong(_) => true,
            Guard::Weak(reference) => reference.call0(py).is_ok_and(|object| !object.is_none(py)),
            Guard::Name(watched) => watched.is_same(py),
        };
        let kept = |tree: &TreeRef| match tree {
            TreeRef::Strong(_) => true,
            TreeRef::Weak(store) => store.strong_count() > 0,
        };
        self.guards.iter().all(alive) && self.trees.iter().all(kept)
    }

    /// Checks that memory need not be restored first, for callers that cannot do so.
    pub(crate) fn expect_nothing_overwritten(&self, py: Python<'_>) -> PyResult<()> {
        match &self.of_derivative.of_start {
            Some(mistake) => Err(self.raised(py, mistake)),
            None => Ok(()),
        }
    }

    /// Warns once that a gradient which is launched by hand computes nothing.
    pub(crate) fn warn_if_idle(&self, py: Python<'_>, kernel: &str) -> PyResult<()> {
        if !self.is_idle.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let text = format!(
            "warning: `{kernel}.grad` computes nothing: the kernel must read and write data with gradients \
             (fields and arrays with needs_grad=True, tensors with requires_grad=True)"
        );
        py.import("aerogel._log")?.call_method1("warn", (text,))?;
        Ok(())
    }

    /// Checks that the arguments of a launch keep the memory that the kernel reads disjoint from what it writes.
    pub(crate) fn expect_told_apart<'p>(
        &self,
        py: Python<'_>,
        packed: impl Iterator<Item = &'p Packed>,
    ) -> PyResult<()> {
        if self.of_derivative.told_apart.is_empty() {
            return Ok(());
        }
        let given = Given::new(&self.summary.params, packed);
        let number = |(arg, by): (Arg, i64)| given.arg(arg).map(|number| number + by);
        let mut all = self.of_derivative.told_apart.iter();
        let same = all.find(|([read, written], _)| number(*read) == number(*written));
        match same {
            Some((_, mistake)) => Err(self.raised(py, mistake)),
            None => Ok(()),
        }
    }

    /// The exchanges of a launch to come.
    pub(crate) fn exchanges(&self, py: Python<'_>) -> PyResult<Option<Running>> {
        let plan = self.exchanges.as_ref();
        plan.map(|plan| Running::begin(py, plan)).transpose()
    }

    /// The module that it was compiled from.
    pub(crate) fn source(&self) -> &Module {
        self.compiled.source()
    }

    /// The compiler that made it.
    pub(crate) fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    fn raised(&self, py: Python<'_>, mistake: &Diagnostic) -> PyErr {
        let (spans, sources) = (self.compiled.spans(), self.compiled.sources());
        error::raise(py, std::slice::from_ref(mistake), spans, sources)
    }

    /// Runs it; the error is what a panic said, which is a bug of ours.
    pub(crate) fn launch(
        &self,
        launch: launch::Launch<'_>,
    ) -> Result<Result<(), KernelFailure>, String> {
        caught(|| self.compiled.launch(launch))
    }

    /// What the report of a fault says of it.
    pub(crate) fn in_faults(&self, kernel: &str) -> &'static faults::Kernel {
        self.in_faults.get_or_init(|| {
            let source = self.compiled.sources().iter().next();
            let location = source.map_or_else(String::new, |(_, source)| {
                let mut lines = source.text.lines();
                let def = lines.position(|line| line.starts_with("def ")).unwrap_or(0);
                format!("{}:{}", source.path, source.first_line + def as u32)
            });
            faults::Kernel::named(kernel, &location)
        })
    }

    /// The exception for a launch that ended in a panic.
    pub(crate) fn broken(&self, py: Python<'_>, panic: String, kernel: &str) -> PyErr {
        let text = caught(|| self.compiled.text()).unwrap_or_default();
        broken(py, kernel, format!("{panic}\n\n{text}"))
    }
}

impl Explain for Instance {
    fn failure(&self, py: Python<'_>, failure: KernelFailure, kernel: &str) -> PyErr {
        let (sites, spans) = (self.compiled.sites(), self.compiled.spans());
        error::failure(py, failure, kernel, sites, spans, self.compiled.sources())
    }
}

/// Weak references to what the key names by identity, strong ones where there are no weak ones.
fn guards(py: Python<'_>, key: &[KeyPart], values: &[Bound<'_, PyAny>]) -> PyResult<Vec<Guard>> {
    let weakref = py.import("weakref")?.getattr("ref")?;
    let mut guards = Vec::new();
    let mut open: Vec<Bound<'_, PyAny>> = values.to_vec();
    while let Some(object) = open.pop() {
        // A container is part of the key by its items, any of which may be named by identity.
        let is_container = object.is_exact_instance_of::<PyTuple>()
            || object.is_exact_instance_of::<PyList>()
            || buffer::is_matrix(&object);
        if is_container {
            if key.iter().any(|part| matches!(part, KeyPart::Tuple(_))) {
                open.extend(object.try_iter()?.collect::<PyResult<Vec<_>>>()?);
            }
        } else if key.iter().any(|part| part.names(&object)) {
            guards.push(match weakref.call1((&object,)) {
                Ok(reference) => Guard::Weak(reference.unbind()),
                Err(_) => Guard::Strong(object.clone().unbind()),
            });
        }
    }
    Ok(guards)
}

/// The bindings of the parameters in this instance.
fn bindings<'py>(
    kernel: &Signature,
    settings: &Settings,
    key: &[KeyPart],
    values: &[Bound<'py, PyAny>],
    host: &mut PyHost<'py>,
) -> PyResult<Vec<(String, ParamBinding)>> {
    let mut key = key.iter();
    let params = kernel.params.iter().zip(values);
    params
        .map(|(param, value)| binding(param, Some(value), settings, &mut key, host))
        .collect()
}

/// The binding of a parameter.
fn binding<'py>(
    param: &Param,
    value: Option<&Bound<'py, PyAny>>,
    settings: &Settings,
    key: &mut std::slice::Iter<'_, KeyPart>,
    host: &mut PyHost<'py>,
) -> PyResult<(String, ParamBinding)> {
    let binding = match &param.kind {
        ParamKind::Value(ValueSpec::Struct(spec)) => ParamBinding::Struct(struct_type(spec, host)?),
        ParamKind::Value(ValueSpec::Tensor(ty)) => {
            let elem = ty.elem.resolve(settings);
            match tensor_type(ty.shape, elem) {
                Type::Scalar(elem) => ParamBinding::Scalar(elem),
                ty => ParamBinding::Tensor(ty),
            }
        }
        ParamKind::Template | ParamKind::Receiver => {
            key.next();
            let value = value.map_or(Ok(Known::None), |value| host.known(value));
            ParamBinding::Template(value?)
        }
        ParamKind::Array { clamp, .. } => match (key.next(), value) {
            (
                Some(KeyPart::Array {
                    elem,
                    ndim,
                    element,
                    derivative,
                }),
                _,
            ) => ParamBinding::Array {
                elem: tensor_type(*element, *elem),
                ndim: *ndim as u32,
                clamp: *clamp,
                derivative: *derivative,
            },
            // One that processes share.
            (Some(KeyPart::Field { .. }), Some(value)) => {
                ParamBinding::Template(host.known(value)?)
            }
            _ => unreachable!("the key says what each array is"),
        },
        ParamKind::Texture {
            ndim,
            format,
            methods,
        } => {
            let (Some(KeyPart::Int(_)), Some(KeyPart::Array { elem, element, .. })) =
                (key.next(), key.next())
            else {
                unreachable!("the key says what each texture is")
            };
            let value = value.expect("a texture is an argument by itself");
            let methods = methods
                .iter()
                .map(|(name, function)| host.method(name, function))
                .collect::<PyResult<_>>()?;
            ParamBinding::Texture {
                texel: tensor_type(*element, *elem),
                access: TextureAccess {
                    ndim: *ndim,
                    writable: format.is_some(),
                    format: host.known(&value.getattr("fmt")?)?,
                    methods,
                },
            }
        }
        ParamKind::Pack(members, methods) => {
            let methods = methods
                .iter()
                .map(|(name, function)| host.method(name, function))
                .collect::<PyResult<_>>()?;
            let members = members
                .iter()
                .map(|member| {
                    let own = value.map(|value| signature::member(value, &member.name));
                    let own = own.transpose()?.flatten();
                    binding(member, own.as_ref(), settings, key, host)
                })
                .collect::<PyResult<_>>()?;
            ParamBinding::Pack(members, methods)
        }
    };
    Ok((param.name.to_string(), binding))
}

/// Lowers and compiles a kernel for the given arguments.
pub(crate) fn compile<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    kernel: &Signature,
    settings: &Settings,
    key: &[KeyPart],
    values: &[Bound<'py, PyAny>],
) -> PyResult<Instance> {
    let begin = Instant::now();
    // Lowering takes memory, too.
    let _room = Room::make();
    let mut guards = guards(py, key, values)?;
    let derivative = key.iter().find_map(KeyPart::derivative);
    let mut host = PyHost::new(py, derivative)?;
    let lowered = lower(&mut host, function, (kernel, settings), (key, values))?;
    if derivative.is_none() {
        warn(py, &lowered)?;
    }
    let Lowered {
        module,
        trees,
        captured,
        ..
    } = lowered;
    let captured = captured.into_iter().map(|handle| host.held(handle));
    let captured = captured.collect();
    let arguments = argument_trees(py, values);
    let mut trees = trees
        .iter()
        .map(|tree| tree_ref(py, tree.0, arguments.contains(&tree.0)))
        .collect::<PyResult<Vec<_>>>()?;
    let primal_writes = written_arrays(&module);
    let compiler = program::compiler(py, settings)?;
    let frontend = begin.elapsed();
    // A signal that comes from here on is heard by the compiler, one that came before by Python.
    signals::heed(py)?;
    let _active = interrupt::Active::begin();
    py.check_signals()?;
    let at = (py, &*kernel.name, &*compiler);
    let stores: Vec<_> = trees.iter().map(TreeRef::store).collect();
    let (of_process, summary, of_derivative, writes) = match derivative {
        Some(derived) => differentiate(at, module, (derived, key), &stores)?,
        None => {
            let summary = Summary::new(&module);
            let done = split::of_process(at, module, &stores, false)?;
            (
                done,
                summary,
                OfDerivative::default(),
                primal_writes.clone(),
            )
        }
    };
    let OfProcess {
        module,
        hidden,
        plan: exchanges,
    } = of_process;
    // Functions that are called may write what the kernel does not.
    let is_alone = module.funcs.len() == 1;
    let kernel_of = module.kernel().filter(|_| is_alone);
    let does_nothing = kernel_of.is_some_and(|kernel| written(&module.env, kernel).is_empty());
    trees.extend(hidden.into_iter().map(TreeRef::Strong));
    let compiled = py
        .detach(|| compiler.compile(module))
        .map_err(|e| error::not_compiled(py, &kernel.name, e))?;
    let steps = compiled.times().iter().map(|(name, time)| (&**name, *time));
    let steps = std::iter::once(("frontend", frontend)).chain(steps);
    profile::compiled(&kernel.name, begin, steps);
    guards.extend(host.watched().map(Guard::Name));
    Ok(Instance {
        trees,
        derivative,
        of_derivative,
        is_idle: AtomicBool::new(derivative == Some(Derived::Grad) && does_nothing),
        summary,
        captured,
        writes,
        primal_writes,
        guards,
        exchanges,
        compiler,
        compiled,
        in_faults: OnceLock::new(),
    })
}

/// Lowers a kernel for the given arguments.
fn lower<'py>(
    host: &mut PyHost<'py>,
    function: &Bound<'py, PyAny>,
    (kernel, settings): (&Signature, &Settings),
    (key, values): (&[KeyPart], &[Bound<'py, PyAny>]),
) -> PyResult<Lowered> {
    let source = host.func_source(function)?;
    let params = bindings(kernel, settings, key, values, host)?;
    let result = match &kernel.results {
        Some(specs) => {
            let mut results = specs
                .iter()
                .map(|spec| return_type(settings, spec, host))
                .collect::<PyResult<Vec<_>>>()?;
            Some(match kernel.many {
                true => ReturnType::Tuple(results),
                false => results.remove(0),
            })
        }
        None => None,
    };
    let config = FrontendConfig {
        default_ip: settings.default_ip,
        default_fp: settings.default_fp,
        short_circuit: settings.short_circuit,
        debug: settings.debug,
        debug_races: settings.debug_races,
        fast_math: settings.fast_math,
        gpu: matches!(settings.arch, Arch::Cuda(_)),
        derivative: key.iter().find_map(KeyPart::derivative),
    };
    let lowered = lower_kernel(&source, &params, result.as_ref(), host, &config);
    if let Some(raised) = host.take_raised() {
        return Err(raised);
    }
    let py = function.py();
    lowered.map_err(|e| error::raise(py, &e.diagnostics, &e.spans, &e.sources))
}

/// What computes a derivative: the module of one process, what it accesses, what a launch has to know, and to which arrays it
/// writes.
fn differentiate(
    at: (Python<'_>, &str, &Compiler),
    mut module: Module,
    (derived, key): (Derived, &[KeyPart]),
    stores: &[Option<Arc<TreeStore>>],
) -> PyResult<(OfProcess, Summary, OfDerivative, Vec<bool>)> {
    let is_split = split::is_split(&module, stores);
    if is_split {
        split::before_derivative(at, &mut module, stores)?;
    }
    let attempt = |module: Module, gathers: bool| {
        let (module, summary, out) = OfDerivative::find(at, module, derived, key, gathers)?;
        // A derivative reads most arrays to which the kernel writes.
        let kernel = module.kernel();
        let writes = kernel.map_or_else(Vec::new, |kernel| {
            access::written_arrays(kernel, &module.env)
        });
        Ok((
            split::of_process(at, module, stores, true)?,
            summary,
            out,
            writes,
        ))
    };
    if !is_split {
        return attempt(module, true);
    }
    // Loops that fetch adjoints run beyond the cells of the grid, which may be a mistake where they wrap around.
    attempt(module.clone(), true).or_else(|_| attempt(module, false))
}

impl OfDerivative {
    /// Differentiates a kernel: the module that computes the derivative, what it accesses, and what a launch has to know.
    fn find(
        at: (Python<'_>, &str, &Compiler),
        module: Module,
        derived: Derived,
        key: &[KeyPart],
        gathers: bool,
    ) -> PyResult<(Module, Summary, Self)> {
        let py = at.0;
        let (&kind, again) = derived.steps().split_first().expect("there is one");
        let wanted = Wanted {
            kind,
            ends: key.contains(&KeyPart::Ends),
            again: !again.is_empty(),
            past: key.contains(&KeyPart::Past),
            counts_kinks: key.contains(&KeyPart::Kinks),
            gathers,
        };
        let mut done = differentiated(at, module, wanted)?;
        let env = &done.module.env;
        let text = |found: &Diagnostic| error::warning(found, &env.spans, &env.sources);
        let ends = done.ends.as_deref().map(text);
        if let Some(text) = &ends {
            py.import("aerogel._log")?.call_method1("warn", (text,))?;
        }
        let told_apart = done.told_apart.iter();
        let told_apart = told_apart.map(|it| (it.indices, it.what.mistake_of_launch(env)));
        let mut summary = Summary::of_gradient(&done);
        let out = Self {
            past: done.past.iter().map(|it| it.as_u32() as usize).collect(),
            of_start: done.of_start.map(|it| it.mistake(env)),
            told_apart: told_apart.collect(),
            ends,
            kinks: done.warnings_of_kinks().map(|it| text(&it)).collect(),
        };
        for &kind in again {
            summary.add_derivatives(&done.module, kind);
            done = differentiated(at, done.module, Wanted::from(kind))?;
        }
        Ok((done.module, summary, out))
    }
}

/// Says what is probably not meant.
fn warn(py: Python<'_>, lowered: &Lowered) -> PyResult<()> {
    let log = py.import("aerogel._log")?;
    let path: PathBuf = log.getattr("__file__")?.extract()?;
    let library = path.parent().expect("a module lies in its package");
    for warning in lowered.render_warnings(library) {
        log.call_method1("warn", (format!("warning: {warning}"),))?;
    }
    Ok(())
}

/// The module that computes derivatives of what this one does.
fn differentiated(
    (py, kernel, compiler): (Python<'_>, &str, &Compiler),
    mut module: Module,
    wanted: Wanted,
) -> PyResult<Differentiated> {
    // Every launch checks it.
    module.env.arrays_apart = true;
    // What a mistake is shown with.
    let (spans, sources) = (module.env.spans.clone(), module.env.sources.clone());
    let done = py
        .detach(|| compiler.differentiate(module, wanted))
        .map_err(|e| error::not_compiled(py, kernel, e))?;
    match done {
        Ok(done) => Ok(done),
        Err(mistake) => Err(error::raise(py, &[*mistake], &spans, &sources)),
    }
}

/// Whether the module's kernel writes to each of its array arguments.
fn written_arrays(module: &Module) -> Vec<bool> {
    let kernel = module.kernel();
    kernel.map_or_else(Vec::new, Function::written_arrays)
}

fn return_type<'py>(
    settings: &Settings,
    spec: &ValueSpec,
    host: &mut PyHost<'py>,
) -> PyResult<ReturnType> {
    Ok(match spec {
        ValueSpec::Tensor(ty) => ReturnType::One(tensor_type(ty.shape, ty.elem.resolve(settings))),
        ValueSpec::Struct(spec) => ReturnType::Struct(struct_type(spec, host)?),
    })
}

fn struct_type<'py>(spec: &StructSpec, host: &mut PyHost<'py>) -> PyResult<Rc<StructType>> {
    let ty = spec.ty.bind(host.python()).clone();
    match host.known(&ty)? {
        Known::StructType(ty) => Ok(ty),
        other => unreachable!("{} was a struct type when it was read", other.describe()),
    }
}

/// The exception for a panic, which is a bug of ours.
pub(crate) fn broken(py: Python<'_>, kernel: &str, panic: String) -> PyErr {
    error::not_compiled(py, kernel, CompileError::Internal(panic))
}

/// The trees that the arguments bring along: the instance need not keep them alive.
fn argument_trees(py: Python<'_>, values: &[Bound<'_, PyAny>]) -> Vec<u64> {
    values
        .iter()
        .filter_map(|value| {
            let field = value.cast::<NativeField>().ok()?;
            Some(field.get().placement(py).ok()?.store.key)
        })
        .collect()
}

/// How an instance refers to a tree.
fn tree_ref(py: Python<'_>, key: u64, from_argument: bool) -> PyResult<TreeRef> {
    let store: Arc<TreeStore> =
        snode::find(key).ok_or_else(|| error::runtime(py, "a field no longer exists"))?;
    let weak: Weak<TreeStore> = Arc::downgrade(&store);
    Ok(if from_argument {
        TreeRef::Weak(weak)
    } else {
        TreeRef::Strong(store)
    })
}
