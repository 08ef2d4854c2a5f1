//! The kernels of a program's statements, compiled several at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use aerogel_base::hash::LookupMap;
use aerogel_compiler::{CompileError, CompiledKernel, Compiler};
use aerogel_ir::{FastMath, Module, TreeId, print_module};
use indexmap::IndexMap;

use super::watch::{Profiler, computed_by};
use crate::ir::{Buffer, For, Program, Site, Stmt, visit, visit_host};
use crate::library::Gemm;
use crate::lower::{Parameter, lower};
use crate::passes;

/// A kernel, and what it takes.
pub(super) struct Compiled {
    pub(super) kernel: Arc<CompiledKernel>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) scalars: Vec<Parameter>,
    pub(super) trees: Vec<TreeId>,
    pub(super) sites: Vec<Site>,
    /// A buffer of the recorded program that it helps to compute.
    pub(super) computes: Option<Buffer>,
}

/// Kernels that have been compiled, by their text: what plans share.
#[derive(Default)]
pub struct Codes {
    of: Mutex<Compilations>,
}

#[derive(Default)]
struct Compilations {
    /// The settings that they were compiled for.
    stamp: u64,
    kernels: LookupMap<String, Arc<CompiledKernel>>,
}

/// The maximum number of cached kernels.
const MAX_CODES: usize = 4096;

impl Codes {
    fn of(&self) -> MutexGuard<'_, Compilations> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, stamp: u64, text: &str) -> Option<Arc<CompiledKernel>> {
        let of = self.of();
        let kernels = (of.stamp == stamp).then_some(&of.kernels);
        kernels?.get(text).cloned()
    }

    fn put(&self, stamp: u64, text: String, kernel: Arc<CompiledKernel>) {
        let mut of = self.of();
        // What was made for something else is gone.
        if of.stamp != stamp || of.kernels.len() >= MAX_CODES {
            of.stamp = stamp;
            of.kernels.clear();
        }
        of.kernels.insert(text, kernel);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.of().kernels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Settings for the compilation of programs.
#[derive(Clone, Copy)]
pub struct Settings<'c> {
    /// Makes the kernels.
    pub compiler: &'c Compiler,
    /// How far float arithmetic may differ from what is written, as in kernels.
    pub fast_math: FastMath,
    /// The choices of the passes.
    pub options: passes::Options,
    /// Kernels that are there already.
    pub codes: &'c Codes,
    /// The most bytes that a run saves of loop iterations, for gradients.
    pub most_kept: u64,
    /// Another number for each compiler and `fast_math`.
    pub stamp: u64,
    /// The number of the back end whose plans these are.
    pub backend: u16,
    /// Multiplies matrices that are given to a library.
    pub gemm: Option<&'static dyn Gemm>,
    /// Is told of each kernel that runs.
    pub profiler: Option<&'static dyn Profiler>,
}

/// With fewer points a kernel is done soon, however its code is made.
const FEW: u64 = 1 << 16;

/// The kernels of a program.
pub(super) struct Kernels {
    pub(super) all: Vec<Compiled>,
    /// Equal statements have one kernel.
    of: IndexMap<For, usize>,
}

/// A kernel to compile.
struct Job {
    module: Module,
    /// Whether it is done soon.
    is_short: bool,
}

impl Kernels {
    /// Compiles the kernels of all statements of a program, the first buffers of which are the recorded ones.
    pub(super) fn of(
        program: &Program,
        n_recorded: usize,
        settings: Settings<'_>,
    ) -> Result<Self, CompileError> {
        let mut of: IndexMap<For, usize> = IndexMap::new();
        visit_host(&program.body, &mut |stmt| {
            if let Stmt::For(all) = stmt {
                let number = of.len();
                of.entry(all.clone()).or_insert(number);
            }
        });
        let (mut lowered, mut texts) = (Vec::new(), Vec::new());
        let mut jobs: IndexMap<String, Job> = IndexMap::new();
        let mut there: LookupMap<String, Arc<CompiledKernel>> = LookupMap::default();
        for all in of.keys() {
            let mut kernel = lower(program, all, "tensors", settings.fast_math);
            let module = std::mem::take(&mut kernel.module);
            let text = print_module(&module);
            match settings.codes.get(settings.stamp, &text) {
                Some(kernel) => {
                    there.insert(text.clone(), kernel);
                }
                None => {
                    let job = Job {
                        module,
                        is_short: is_short(program, all),
                    };
                    jobs.entry(text.clone()).or_insert(job);
                }
            }
            texts.push(text);
            lowered.push(kernel);
        }
        for (text, kernel) in compiled(jobs, settings.compiler)? {
            let codes = settings.codes;
            codes.put(settings.stamp, text.clone(), kernel.clone());
            there.insert(text, kernel);
        }
        let computed = computed_by(of.keys(), n_recorded);
        let all = lowered.into_iter().zip(texts).zip(computed);
        let all = all.map(|((lowered, text), computes)| Compiled {
            kernel: there.get(&text).expect("it was compiled").clone(),
            buffers: lowered.buffers,
            scalars: lowered.scalars,
            trees: lowered.trees,
            sites: lowered.sites,
            computes,
        });
        Ok(Self {
            all: all.collect(),
            of,
        })
    }

    /// The number of the kernel of a statement.
    pub(super) fn number(&self, all: &For) -> usize {
        self.of[all]
    }
}

/// Whether a statement has few points, and no loop at them.
fn is_short(program: &Program, all: &For) -> bool {
    let points = program.size_of_all(all.domain.iter().copied());
    let mut loops = false;
    visit(&all.body, &mut |stmt| {
        loops |= matches!(stmt, Stmt::Loop { .. });
    });
    !loops && points.is_some_and(|n| n.about <= FEW)
}

/// Compiles modules, as many at a time as there are threads.
fn compiled(
    jobs: IndexMap<String, Job>,
    compiler: &Compiler,
) -> Result<Vec<(String, Arc<CompiledKernel>)>, CompileError> {
    type Made = Mutex<Option<Result<CompiledKernel, CompileError>>>;
    let (texts, jobs): (Vec<String>, Vec<Job>) = jobs.into_iter().unzip();
    let made: Vec<Made> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((at, job)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(at).map(|job| (at, job))
        } {
            let module = job.module.clone();
            let kernel = match job.is_short {
                true => compiler.compile_quickly(module),
                false => compiler.compile(module),
            };
            *made[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(kernel);
        }
    };
    let n_threads = compiler.pool().n_threads().min(jobs.len());
    thread::scope(|scope| {
        for _ in 1..n_threads {
            // Without memory for a thread, there are fewer.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let made = made.into_iter().zip(texts).map(|(made, text)| {
        let kernel = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((text, Arc::new(kernel.expect("all have been compiled")?)))
    });
    made.collect()
}
