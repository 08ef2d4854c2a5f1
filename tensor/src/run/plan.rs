//! A program ready to run.

use std::sync::{Arc, Mutex};

use aerogel_base::entity::SecondaryMap;

use aerogel_base::{AssertKind, Scalar, ScalarType};
use aerogel_compiler::{CompileError, Print};
use aerogel_ir::TreeId;
use aerogel_runtime::buffer::{Buffer as Bytes, MemoryError};
use aerogel_runtime::launch::{Args, KernelFailure, Launch};
use aerogel_runtime::{SiteKind, TreeMemory, interrupt};
use aerogel_snode::NodeId;
use indexmap::{IndexMap, IndexSet};

use super::free::Free;
use super::kernels::{Compiled, Kernels, Settings};
use super::replay::{Chosen, Segments};
use super::segments::{self, Saving};
use super::watch::{Given, PlaceOf, Profiler, Watch, recorded};
use crate::ir::{
    Buffer, Call, Dim, DimDef, Expr, Failure, History, LibraryError, Operand, OutOfBounds, Program,
    Role, Run, RunError, Scope, Stage, Stmt, Touched, Var, agreements, check_inputs, counted,
    eval_in, extent, number, verify_at,
};
use crate::library::{self, Workers};
use crate::lower::Parameter;
use crate::passes;

/// A program ready to run: what the host does, with a kernel for each `for`.
pub struct Plan {
    pub(super) program: Program,
    kernels: Vec<Compiled>,
    steps: Vec<Step>,
    /// The temporaries and inputs that each of the outermost steps is the last to use.
    last: Vec<Vec<Buffer>>,
    /// Computed sizes of statements that run unconditionally.
    extents: Vec<Dim>,
    /// The settings that it was made for.
    pub(super) stamp: u64,
    /// The numbers of the inputs that it stores to.
    changed: Vec<usize>,
    /// How many of its trees are fields'.
    n_given_trees: usize,
    /// How many threads libraries may use.
    workers: Workers,
    /// How many of its buffers, the first, are those of the recorded program.
    n_recorded: usize,
    profiler: Option<&'static dyn Profiler>,
    /// The most bytes that a run keeps on histories.
    pub(super) most_kept: u64,
    /// The loops that may save few of their states, by their counters.
    pub(super) savings: IndexMap<Var, Saving>,
    /// What was chosen when it was made, for a report.
    note: String,
    /// What the last run has chosen for them.
    pub(super) chosen: Mutex<IndexMap<Var, Chosen>>,
}

/// The steps of the host.
pub(super) enum Step {
    /// Launches a kernel.
    Kernel(usize),
    Set(Var, Expr),
    Loop {
        var: Var,
        lo: Expr,
        hi: Expr,
        step: i32,
        body: Vec<Step>,
    },
    If(Expr, Vec<Step>, Vec<Step>),
    Break,
    Continue,
    Call(Call),
    Run(Run),
    Clear(Buffer),
}

impl Kernels {
    fn steps(&self, body: &[Stmt]) -> Vec<Step> {
        body.iter().map(|stmt| self.step(stmt)).collect()
    }

    fn step(&self, stmt: &Stmt) -> Step {
        match stmt {
            Stmt::For(all) => Step::Kernel(self.number(all)),
            Stmt::Set(var, e) => Step::Set(*var, *e),
            Stmt::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => Step::Loop {
                var: *var,
                lo: *lo,
                hi: *hi,
                step: *step,
                body: self.steps(body),
            },
            Stmt::If(cond, then, otherwise) => {
                Step::If(*cond, self.steps(then), self.steps(otherwise))
            }
            Stmt::Break => Step::Break,
            Stmt::Continue => Step::Continue,
            Stmt::Call(call) => Step::Call(call.clone()),
            Stmt::Run(run) => Step::Run(run.clone()),
            Stmt::Clear(buffer) => Step::Clear(*buffer),
            Stmt::Store(_) => unreachable!("the verifier wants a `for` around"),
        }
    }
}

impl Plan {
    /// Makes a program ready.
    ///
    /// # Errors
    /// As `Compiler::compile`.
    pub fn new(mut program: Program, settings: Settings<'_>) -> Result<Self, CompileError> {
        let print = Print::of_tensors(&passes::full_names()).map_err(CompileError::BadRequest)?;
        program.exprs.forget_functions();
        let n_recorded = program.buffers.len();
        passes::run(
            &mut program,
            settings.options,
            &mut |pass, changed, program| {
                print.state(&pass.full_name(), changed, || program.to_string());
            },
        );
        verify_at(&program, Stage::Placed).map_err(CompileError::Internal)?;
        let kernels = Kernels::of(&program, n_recorded, settings)?;
        let steps = kernels.steps(&program.body);
        let savings = segments::of(&program);
        let mut last = passes::last_uses(&program);
        segments::extend(&mut last, &savings);
        let extents = computed_extents(&program);
        let written = Touched::by(&program, &program.body).writes;
        let inputs = program.inputs().enumerate();
        let changed = inputs
            .filter(|(_, b)| written.contains(b))
            .map(|(k, _)| k)
            .collect();
        Ok(Self {
            n_given_trees: program.n_given_trees(),
            program,
            kernels: kernels.all,
            steps,
            last,
            extents,
            changed,
            stamp: settings.stamp,
            workers: Workers {
                n_threads: settings.compiler.library_threads(),
                gemm: settings.gemm,
            },
            most_kept: settings.most_kept,
            n_recorded,
            profiler: settings.profiler,
            savings,
            note: String::new(),
            chosen: Mutex::default(),
        })
    }

    /// The same with a line for reports.
    #[must_use]
    pub fn noted(self, note: String) -> Self {
        Self { note, ..self }
    }

    /// The line for reports; empty if there is none.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// The program as the passes left it.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs the program: its results. `inputs` are in the program's order, and changed by what it stores to them.
    ///
    /// # Errors
    /// Why it ended early.
    pub fn run(&self, inputs: &[Operand]) -> Result<Vec<Operand>, RunError> {
        self.run_with(inputs.to_vec(), Given::default())
    }

    /// The same with what else the program needs.
    ///
    /// # Errors
    /// Why it ended early.
    ///
    /// # Panics
    /// If there is not a memory for each tree of fields, laid out as the program says.
    pub fn run_with(
        &self,
        inputs: Vec<Operand>,
        given: Given<'_>,
    ) -> Result<Vec<Operand>, RunError> {
        // Between two kernels too somebody may want it to end.
        let _active = interrupt::Active::begin();
        let own = self.program.trees.values();
        let same = own
            .zip(given.trees)
            .all(|(own, m)| Arc::ptr_eq(own, m.tree()));
        assert!(same && self.n_given_trees == given.trees.len());
        let shapes: Vec<_> = inputs.iter().map(|i| (i.ty, &i.shape[..])).collect();
        check_inputs(&self.program, &shapes)?;
        for &changed in &self.changed {
            let same = |k: usize| Arc::ptr_eq(&inputs[k].buffer, &inputs[changed].buffer);
            if let Some(other) = (0..inputs.len()).find(|&k| k != changed && same(k)) {
                let what = format!("it is the memory of input {other}, and the program changes it");
                return Err(Failure::Input(changed, what).into());
            }
        }
        let mut run = Running {
            plan: self,
            place_of: given.place_of,
            trees: SecondaryMap::new(),
            memory: SecondaryMap::new(),
            vars: SecondaryMap::new(),
            histories: IndexMap::new(),
            segments: IndexMap::new(),
            chosen: IndexMap::new(),
            kept: 0,
            is_again: false,
            donated: given.donated,
            unused: Vec::new(),
        };
        for (tree, memory) in self.program.trees.keys().zip(given.trees) {
            run.trees[tree] = Some(memory.clone());
        }
        for (buffer, input) in self.program.inputs().zip(inputs) {
            run.memory[buffer] = Some(input);
        }
        for (&var, &value) in self.program.given.iter().zip(given.vars) {
            run.vars[var] = Some(value);
        }
        agreements(&self.program, &mut run)?;
        // Checked first, so that an invalid size does not leave the run half done.
        for &dim in &self.extents {
            extent(&self.program, &mut run, dim)?;
        }
        given.begin.inspect(|begin| begin());
        for (step, last) in self.steps.iter().zip(&self.last) {
            if run.step(step)? != Flow::On {
                break;
            }
            run.end(last);
        }
        run.note_chosen();
        let results = self.program.results.iter();
        results.map(|&b| Ok(run.operand(b)?.clone())).collect()
    }
}

/// The computed sizes of statements that run unconditionally.
fn computed_extents(program: &Program) -> Vec<Dim> {
    let mut dims = IndexSet::new();
    let always = program.body.iter();
    for stmt in always.filter(|s| !matches!(s, Stmt::Loop { .. } | Stmt::If(..))) {
        let touched = Touched::by(program, std::slice::from_ref(stmt));
        for &buffer in touched.reads.iter().chain(&touched.writes) {
            dims.extend(&program.buffers[buffer].shape);
        }
        if let Stmt::For(all) = stmt {
            dims.extend(&all.domain);
        }
    }
    dims.retain(|&dim| matches!(program.dim_def(dim), DimDef::Value(_)));
    dims.into_iter().collect()
}

/// How a list of steps ended.
#[derive(PartialEq)]
pub(super) enum Flow {
    On,
    Break,
    Continue,
}

/// A plan while it runs.
pub(super) struct Running<'p> {
    pub(super) plan: &'p Plan,
    place_of: Option<PlaceOf<'p>>,
    /// Those given, and those of the program's own that are not empty.
    trees: SecondaryMap<TreeId, Option<Arc<TreeMemory>>>,
    pub(super) memory: SecondaryMap<Buffer, Option<Operand>>,
    pub(super) vars: SecondaryMap<Var, Option<Scalar>>,
    /// The contents of the histories.
    pub(super) histories: IndexMap<Buffer, History<Operand>>,
    /// The loops that save few of their states.
    pub(super) segments: IndexMap<Var, Segments<'p>>,
    /// What has been chosen for such loops.
    pub(super) chosen: IndexMap<Var, Chosen>,
    /// The bytes of histories and states.
    pub(super) kept: u64,
    /// Whether iterations run again.
    pub(super) is_again: bool,
    /// The numbers of the inputs whose memory results may take.
    donated: &'p [usize],
    /// The memory of such inputs that no result has taken yet.
    unused: Vec<Arc<Bytes>>,
}

impl Scope for Running<'_> {
    type Error = RunError;

    fn axis(&self, _: u32) -> Scalar {
        unreachable!("the verifier wants a `for` around")
    }

    fn var(&self, var: Var) -> Option<Scalar> {
        self.vars[var]
    }

    fn shape(&mut self, buffer: Buffer) -> Result<&[usize], RunError> {
        Ok(&self.operand(buffer)?.shape)
    }

    fn element(&mut self, buffer: Buffer, at: usize) -> Result<Scalar, RunError> {
        let operand = self.operand(buffer)?;
        let offset = at * operand.ty.bytes() as usize;
        Ok(operand.buffer.read_scalar(operand.ty, offset)?)
    }
}

impl<'p> Running<'p> {
    /// A buffer's memory, made if it is not there yet.
    pub(super) fn operand(&mut self, buffer: Buffer) -> Result<&Operand, RunError> {
        if self.memory[buffer].is_none() {
            let program = &self.plan.program;
            let def = &program.buffers[buffer];
            let shape = self.extents(buffer)?;
            let no_room = |error| RunError::NoRoom {
                buffer,
                shape: shape.clone(),
                error,
            };
            let bytes = Operand::bytes(def.ty, &shape).map_err(no_room)?;
            // Results belong to the caller afterwards.
            let is_result = program.results.contains(&buffer);
            let reused = match def.role {
                Role::Temporary if is_result => self.donated_memory(bytes),
                Role::Temporary => self.reused(bytes),
                _ => None,
            };
            self.memory[buffer] = Some(match reused {
                Some(buffer) => Operand {
                    buffer,
                    ty: def.ty,
                    shape,
                },
                None => Operand::zeros(def.ty, &shape).map_err(no_room)?,
            });
        }
        Ok(self.memory[buffer].as_ref().expect("made above"))
    }

    /// The current shape of a buffer of the program.
    fn extents(&mut self, buffer: Buffer) -> Result<Vec<usize>, RunError> {
        let program = &self.plan.program;
        let shape = program.buffers[buffer].shape.iter();
        shape
            .map(|&d| Ok(extent(program, self, d)? as usize))
            .collect()
    }

    /// Releases temporaries and donated inputs after their last use, so that others can take their memory.
    fn end(&mut self, buffers: &[Buffer]) {
        let mut free = Free::lock();
        for &buffer in buffers {
            self.clear(buffer);
            match self.plan.program.buffers[buffer].role {
                Role::Input(number) if self.donated.binary_search(&(number as usize)).is_ok() => {
                    self.end_donated(buffer);
                }
                Role::Input(_) => {}
                _ => {
                    let memory = self.memory[buffer].take().map(|operand| operand.buffer);
                    free.give(self.plan.stamp, memory.into_iter());
                }
            }
        }
    }

    /// Releases a donated input. Later statements still read its shape.
    fn end_donated(&mut self, buffer: Buffer) {
        if let (Some(operand), Ok(nothing)) = (&mut self.memory[buffer], Bytes::zeroed(0)) {
            let memory = std::mem::replace(&mut operand.buffer, Arc::new(nothing));
            if Arc::strong_count(&memory) == 1 {
                self.unused.push(memory);
            }
        }
    }

    /// The memory of a donated input, if one of this size is released.
    fn donated_memory(&mut self, bytes: usize) -> Option<Arc<Bytes>> {
        let at = self.unused.iter().position(|b| b.len() == bytes)?;
        Some(self.unused.swap_remove(at))
    }

    /// Memory that a temporary has left, if there is some of this size.
    fn reused(&self, bytes: usize) -> Option<Arc<Bytes>> {
        let mut free = Free::lock();
        free.take(self.plan.stamp, bytes)
    }

    fn eval(&mut self, e: Expr) -> Result<Scalar, RunError> {
        eval_in(&self.plan.program, self, e)
    }

    pub(super) fn block(&mut self, steps: &'p [Step]) -> Result<Flow, RunError> {
        for step in steps {
            let flow = self.step(step)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn step(&mut self, step: &'p Step) -> Result<Flow, RunError> {
        match step {
            Step::Kernel(number) => self.launch(&self.plan.kernels[*number])?,
            Step::Set(var, e) => self.vars[*var] = Some(self.eval(*e)?),
            Step::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let [lo, hi] = [self.eval(*lo)?, self.eval(*hi)?].map(Scalar::as_i128);
                let in_segments = self.begin_segments(*var, [lo, hi], *step, body)?;
                for at in counted(lo, hi, *step) {
                    if interrupt::requested() {
                        return Err(RunError::Interrupted);
                    }
                    self.vars[*var] = Some(at);
                    if in_segments {
                        self.begin_iteration(*var)?;
                    }
                    if self.block(body)? == Flow::Break {
                        break;
                    }
                }
            }
            Step::If(cond, then, otherwise) => {
                let taken = if self.eval(*cond)?.as_bool() {
                    then
                } else {
                    otherwise
                };
                return self.block(taken);
            }
            Step::Break => return Ok(Flow::Break),
            Step::Continue => return Ok(Flow::Continue),
            Step::Call(call) => self.call(call)?,
            Step::Run(run) => self.region(run)?,
            Step::Clear(buffer) => self.clear(*buffer),
        }
        Ok(Flow::On)
    }

    fn launch(&mut self, compiled: &Compiled) -> Result<(), RunError> {
        let mut operands = Vec::new();
        for &buffer in &compiled.buffers {
            let operand = self.operand(buffer)?;
            operands.push(match operand.shape.contains(&0) {
                // A kernel may look at the nearest element of none before it sees that there is none.
                true => {
                    let shape: Vec<usize> = operand.shape.iter().map(|&n| n.max(1)).collect();
                    let shown = operand.shape.clone();
                    let memory = Operand::zeros(operand.ty, &shape)?;
                    Operand {
                        shape: shown,
                        ..memory
                    }
                }
                false => operand.clone(),
            });
        }
        let mut args = Args::new();
        for operand in &operands {
            let one = [1];
            let shape: &[usize] = if operand.shape.is_empty() {
                &one
            } else {
                &operand.shape
            };
            args.array(&operand.buffer, shape, operand.ty.bytes() as usize)?;
        }
        for &scalar in &compiled.scalars {
            args.scalar(match scalar {
                Parameter::Extent(dim) => {
                    Scalar::i32(number(&self.plan.program, self, dim)?).slot()
                }
                Parameter::Var(var) => {
                    let ty = self.plan.program.vars[var];
                    self.vars[var].unwrap_or(Scalar::zero(ty)).slot()
                }
            });
        }
        let trees = compiled.trees.iter().map(|&tree| self.tree(tree));
        let trees = trees.collect::<Result<Vec<_>, RunError>>()?;
        let roots: Vec<&TreeMemory> = trees.iter().map(|tree| &**tree).collect();
        let watch = Watch::begin(self.plan.profiler, self.place_of, compiled.computes);
        let outcome = compiled.kernel.launch(Launch {
            args: &args,
            roots: &roots,
            results: &mut [],
            sink: &Mutex::new(String::new()),
            seed: 0,
            most_reserved: 0,
            trace: watch.as_ref().map(|w| &w.trace),
            later: None,
        });
        drop(watch);
        outcome.map_err(|failure| match failure {
            KernelFailure::Check { site, args } => self.failed(compiled, site, &args),
            KernelFailure::Memory(e) | KernelFailure::Tree { error: e, .. } => RunError::Memory(e),
            KernelFailure::Race(_) => RunError::Mismatch("accesses that it does not note"),
            KernelFailure::Interrupted => RunError::Interrupted,
            KernelFailure::Device(e) => RunError::Device(e),
            KernelFailure::Overlap => RunError::Overlap,
            KernelFailure::Mismatch(what) => RunError::Mismatch(what),
            KernelFailure::Exchange => RunError::Mismatch("no exchanges between processes"),
        })
    }

    /// A check of a kernel does not hold.
    fn failed(&self, compiled: &Compiled, site: usize, args: &[u64]) -> RunError {
        let Some(site) = compiled.kernel.sites().get(site) else {
            return RunError::Mismatch("a check that the kernel does not have");
        };
        let text = || site.render(args);
        match (site.kind, args) {
            (SiteKind::Check(AssertKind::TensorBounds), &[number, axis, index, extent]) => {
                let [number, axis, index, extent] = [number, axis, index, extent]
                    .map(|slot| Scalar::from_slot(ScalarType::I32, slot).as_i128());
                Failure::Index(OutOfBounds {
                    site: compiled.sites[number as usize],
                    axis: axis as usize,
                    index: index as i64,
                    size: extent as u64,
                })
                .into()
            }
            (SiteKind::NoCell { tree, node }, _) => {
                let tree = compiled.trees[tree as usize];
                match self.plan.program.scratch(tree) {
                    Some(buffer) => self.no_room(buffer),
                    None => RunError::NoCell {
                        tree,
                        node: NodeId::from_u32(node),
                        text: text(),
                    },
                }
            }
            (SiteKind::Check(kind), _) => RunError::Check { kind, text: text() },
            (SiteKind::Print | SiteKind::Warning | SiteKind::Note(_), _) => {
                RunError::Mismatch("a check that only prints")
            }
        }
    }

    /// There is no memory for the cells of a temporary that lies in a tree.
    fn no_room(&self, buffer: Buffer) -> RunError {
        let program = &self.plan.program;
        let extents = program.buffers[buffer].shape.iter();
        let shape = extents.map(|&d| program.const_dim(d).unwrap_or(0) as usize);
        let (_, node) = program.holder(buffer).expect("it lies in a tree");
        RunError::NoRoom {
            buffer,
            shape: shape.collect(),
            error: MemoryError::NoCell { node },
        }
    }

    /// A tree's memory, made if it is the program's own and empty.
    fn tree(&mut self, tree: TreeId) -> Result<Arc<TreeMemory>, RunError> {
        if let Some(memory) = &self.trees[tree] {
            return Ok(memory.clone());
        }
        let memory = TreeMemory::new(self.plan.program.trees[tree].clone(), 0);
        let memory = memory.map_err(|e| match self.plan.program.scratch(tree) {
            Some(buffer) => self.no_room(buffer),
            None => RunError::Memory(e),
        });
        let memory = Arc::new(memory?);
        self.trees[tree] = Some(memory.clone());
        Ok(memory)
    }

    /// Gives back the tree of a temporary that lies in one.
    fn clear(&mut self, buffer: Buffer) {
        if let Role::Scratch(tree, _) = self.plan.program.buffers[buffer].role {
            self.trees[tree] = None;
        }
    }

    fn region(&mut self, run: &Run) -> Result<(), RunError> {
        let region = &self.plan.program.regions[run.region];
        if self.is_again && run.results.is_empty() && !region.writes.contains(&true) {
            // It only shows something, as a kernel that prints.
            return Ok(());
        }
        for &buffer in &run.arrays {
            self.operand(buffer)?;
        }
        // What is written is the kernel's alone meanwhile, or it would write to a copy.
        let arrays = run.arrays.iter().map(|&b| self.memory[b].take());
        let mut arrays: Vec<Option<Operand>> = arrays.collect();
        for k in 0..arrays.len() {
            if arrays[k].is_none() {
                let first = run.arrays.iter().position(|b| *b == run.arrays[k]);
                arrays[k] = first.and_then(|first| arrays[first].clone());
            }
        }
        let before = arrays.iter().flatten().cloned().collect();
        drop(arrays);
        let (arrays, results) = region.run(before)?;
        for (&buffer, operand) in run.arrays.iter().zip(arrays) {
            self.memory[buffer] = Some(operand);
        }
        for (&buffer, value) in run.results.iter().zip(results) {
            self.operand(buffer)?.buffer.write_scalar(0, value)?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<(), RunError> {
        if let Some(kept) = call.kept() {
            return self.history(call, kept);
        }
        let mut operands = [Vec::new(), Vec::new()];
        for (buffers, operands) in [&call.inputs, &call.outputs].into_iter().zip(&mut operands) {
            for &buffer in buffers {
                operands.push(self.operand(buffer)?.clone());
            }
        }
        let [inputs, outputs] = operands;
        let computes = recorded(call.outputs.iter().copied(), self.plan.n_recorded);
        let watch = Watch::begin(self.plan.profiler, self.place_of, computes);
        let done = library::call(call.library, &inputs, &outputs, self.plan.workers);
        drop(watch);
        done.map_err(|e| match e {
            LibraryError::Memory(e) => RunError::Memory(e),
            other => Failure::Library(call.outputs[0], other).into(),
        })
    }
}
