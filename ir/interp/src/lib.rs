//! The reference interpreter: every instruction's meaning at every stage, no attention to speed.
//!
//! It is the oracle of every differential test, and a target of its own: parallel loops run in
//! order on one thread. Accesses outside a field or an array read zero and write nothing.
#![warn(missing_docs)]

mod memory;
mod step;
mod value;

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread;

use aerogel_ir::{FuncId, Function, Module, Region};
use aerogel_runtime::code::Site;
use aerogel_runtime::device::LoadedKernel;
use aerogel_runtime::interrupt::Active;
use aerogel_runtime::launch::{Args, KernelFailure, Launch};
use aerogel_runtime::tree::Turn;

use crate::memory::{Memory, Sites};
use crate::step::{Flow, Machine};
pub use crate::value::Val;

/// A kernel that the interpreter runs.
pub struct InterpKernel {
    module: Module,
    kernel: FuncId,
    sites: Sites,
    /// The value slots of the results, for the length check of a launch.
    n_results: usize,
    /// Whether it needs more stack than a thread is sure to have.
    is_deep: bool,
}

impl InterpKernel {
    /// A kernel from its module, at any stage; nothing if the module has no kernel.
    pub fn new(module: Module) -> Option<Self> {
        let (kernel, func) = module.funcs.iter().find(|(_, f)| f.is_kernel)?;
        let n_results = func
            .results
            .iter()
            .map(|&t| module.env.scalars(t).len())
            .sum();
        let sites = Sites::collect(&module);
        let is_deep = module.funcs.len() > 1 || nesting(func, func.body) > MAX_NESTING;
        Some(Self {
            kernel,
            n_results,
            sites,
            is_deep,
            module,
        })
    }
}

impl LoadedKernel for InterpKernel {
    fn launch(&self, launch: Launch<'_>) -> Result<(), KernelFailure> {
        if !self.is_deep {
            return self.run(launch);
        }
        // Each call of a function, and each region in another, takes many calls of ours.
        thread::scope(|scope| {
            let thread = thread::Builder::new().stack_size(STACK);
            match thread.spawn_scoped(scope, || self.run(launch)) {
                Ok(running) => running.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => Err(KernelFailure::Mismatch("no memory for its functions")),
            }
        })
    }

    fn sites(&self) -> &[Site] {
        &self.sites.list
    }
}

/// Address space for the deepest recursion that functions allow themselves.
const STACK: usize = 1 << 30;
/// How deep branches and loops nest in kernels that run on the thread that launches them.
const MAX_NESTING: usize = 100;

/// How many regions are inside each other.
fn nesting(func: &Function, region: Region) -> usize {
    let mut deepest = 0;
    for &inst in &func.regions[region].insts {
        func[inst].regions(|inner| deepest = deepest.max(nesting(func, inner)));
    }
    1 + deepest
}

impl InterpKernel {
    fn run(&self, launch: Launch<'_>) -> Result<(), KernelFailure> {
        if launch.results.len() < self.n_results {
            return Err(KernelFailure::Mismatch("too few result slots"));
        }
        if launch.roots.len() < self.module.env.trees.len() {
            return Err(KernelFailure::Mismatch("other trees than the kernel's"));
        }
        let func = &self.module.funcs[self.kernel];
        let memory = Memory::new(
            &self.module,
            func,
            launch.args,
            launch.roots,
            launch.most_reserved,
        )?;
        let mut machine = Machine::new(
            &self.module,
            self.kernel,
            memory,
            &self.sites,
            launch.sink,
            launch.seed,
        );
        let turn = Turn::take(launch.roots);
        let _active = Active::begin();
        let flow = machine.kernel();
        if matches!(flow, Flow::Fail(..) | Flow::Race(_) | Flow::Interrupted) {
            turn.settle();
        }
        launch.sink.flush();
        match flow {
            Flow::Fail(site, args) => Err(KernelFailure::Check { site, args }),
            Flow::Race(race) => Err(KernelFailure::Race(race)),
            Flow::Interrupted => Err(KernelFailure::Interrupted),
            Flow::Return(values) => {
                let slots = values.iter().flat_map(|v| v.scalars()).map(|s| s.slot());
                launch
                    .results
                    .iter_mut()
                    .zip(slots)
                    .for_each(|(out, slot)| *out = slot);
                Ok(())
            }
            Flow::Yield(_) | Flow::Break(_) | Flow::Continue(_) => Ok(()),
        }
    }
}

/// The results of a function (not a kernel) for some arguments, given as the scalars of each
/// parameter; `Err` is the text of a failed assertion. Used by the passes' tests.
pub fn call(module: &Module, func: FuncId, args: Vec<Val>) -> Result<Vec<Val>, String> {
    let sites = Sites::collect(module);
    let none = Args::new();
    let memory = Memory::new(module, &module.funcs[func], &none, &[], u64::MAX)
        .map_err(|e| format!("{e:?}"))?;
    let sink = Mutex::new(String::new());
    let mut machine = Machine::new(module, func, memory, &sites, &sink, 0);
    match machine.function(func, args) {
        Flow::Fail(site, args) => Err(sites.list[site].render(&args)),
        Flow::Race(_) => Err("a data race".to_owned()),
        Flow::Interrupted => Err("interrupted".to_owned()),
        Flow::Yield(v) | Flow::Return(v) | Flow::Break(v) | Flow::Continue(v) => Ok(v),
    }
}
