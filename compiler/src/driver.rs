//! The driver: passes, code generation, loading.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use aerogel_base::render::Sources;
use aerogel_base::{Diagnostic, SpanTable};
use aerogel_gpu::DriverError;
use aerogel_interp::InterpKernel;
use aerogel_ir::{Module, Stage, print_module, verify, verify_calls};
use aerogel_llvm::{Jit, OptLevel, Target, Texts, target};
use aerogel_passes::autodiff::{DerivativeError, Differentiated, Wanted, differentiate};
use aerogel_passes::split::{SplitError, SplitGrid, SplitKernel, split};
use aerogel_passes::{BrokenPass, Options};
use aerogel_runtime::KernelCode;
use aerogel_runtime::code::Site;
use aerogel_runtime::cpu::{CpuDevice, Pool};
use aerogel_runtime::device::{Device, LoadError, LoadedKernel};
use aerogel_runtime::launch::{KernelFailure, Launch};

use crate::cache::{Cache, Key};
use crate::caught::caught;
use crate::config::{Arch, Config};
use crate::dump::{Request, Watcher};
use crate::ptx_files;
use crate::quick::Better;
use crate::room::Room;
use crate::worker::{given_up, interruptible};

/// Why there is no kernel. None of these is the user's mistake in the kernel: those are found
/// before there is a module.
#[derive(Debug)]
pub enum CompileError {
    /// `AEROGEL_PRINT` or `AEROGEL_STOP` names a pass that does not exist.
    BadRequest(String),
    /// `AEROGEL_STOP` ended the pipeline: the pass, and the IR after it.
    Stopped(String, String),
    /// A bug of the compiler: what happened, and the text that repeats it.
    Internal(String),
    /// Ctrl-C came first.
    Interrupted,
    /// The code cannot be loaded.
    Load(LoadError),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadRequest(what) => f.write_str(what),
            Self::Stopped(pass, text) => {
                write!(f, "stopped after `{pass}`, as set by AEROGEL_STOP:\n{text}")
            }
            Self::Internal(what) => {
                write!(f, "a bug in the compiler, not in your program:\n{what}")
            }
            Self::Interrupted => f.write_str("interrupted"),
            Self::Load(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for CompileError {}

impl From<BrokenPass> for CompileError {
    fn from(e: BrokenPass) -> Self {
        Self::Internal(e.to_string())
    }
}

/// What kernels are compiled for, how, and what runs them.
#[derive(Clone)]
struct Backend {
    target: Target,
    device: Arc<dyn Device>,
    /// The options of the passes, which depend on the machine.
    options: Options,
}

impl Backend {
    /// The processors of this machine that `config` names.
    fn cpu(config: &Config, pool: Arc<Pool>) -> Self {
        Self {
            target: config.cpu.target(),
            device: Arc::new(CpuDevice::new(pool, Box::new(Jit))),
            options: config.pass_options(),
        }
    }

    /// A GPU of NVIDIA's.
    fn cuda(config: &Config, number: u32) -> Result<Self, DriverError> {
        let device = aerogel_gpu::device(number)?;
        Ok(Self {
            target: target::nvptx(device.card().sm),
            device: Arc::new(device),
            options: config.pass_options(),
        })
    }
}

/// Opens a GPU of NVIDIA's, if it is not open: its name.
///
/// # Errors
/// Why it cannot be opened.
pub fn open_cuda(number: u32) -> Result<String, DriverError> {
    Ok(aerogel_gpu::device(number)?.card().name.clone())
}

/// The GPU of a number, opened if it is not open.
pub fn cuda(number: u32) -> Result<aerogel_gpu::GpuDevice, DriverError> {
    aerogel_gpu::device(number)
}

/// Compiles kernels for one configuration.
#[derive(Clone)]
pub struct Compiler {
    config: Config,
    /// How much LLVM does.
    level: OptLevel,
    backend: Backend,
    pool: Arc<Pool>,
    cache: Option<Arc<Cache>>,
    cache_refused: Option<String>,
}

impl Compiler {
    /// A compiler with a thread pool of its own.
    ///
    /// # Panics
    /// If the configuration wants a GPU that cannot be opened.
    pub fn new(config: Config) -> Self {
        Self::open(config).unwrap_or_else(|e| panic!("{e}"))
    }

    /// As `new`.
    ///
    /// # Errors
    /// Why the GPU that the configuration wants cannot be opened.
    pub fn open(config: Config) -> Result<Self, DriverError> {
        let opened = config
            .cache
            .clone()
            .filter(|_| config.arch != Arch::Interp)
            .map(Cache::open);
        let (cache, cache_refused) = match opened {
            Some(Ok(cache)) => (Some(Arc::new(cache)), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let pool = Arc::new(Pool::new(config.n_threads()));
        let backend = match config.arch {
            Arch::Cpu | Arch::Interp => Backend::cpu(&config, pool.clone()),
            Arch::Cuda(number) => Backend::cuda(&config, number)?,
        };
        Ok(Self {
            backend,
            level: OptLevel(config.opt_level),
            config,
            pool,
            cache,
            cache_refused,
        })
    }

    /// Whether its device can still be used: a GPU may be lost.
    pub fn is_usable(&self) -> bool {
        self.backend.device.is_usable()
    }

    /// Why compiled kernels are not cached on disk though the configuration enables it.
    pub fn cache_refused(&self) -> Option<&str> {
        self.cache_refused.as_deref()
    }

    /// What makes the code and what it is made for, as names and values.
    pub fn machine(&self) -> [(&'static str, String); 4] {
        [
            ("compiler", aerogel_llvm::version()),
            ("target", self.backend.target.triple.clone()),
            ("processor", self.backend.target.cpu.clone()),
            ("features", self.backend.target.features.clone()),
        ]
    }

    /// What a tuner has chosen on this machine for a text, if it is cached.
    pub fn choice(&self, text: &str) -> Option<String> {
        self.cache.as_ref()?.choice(self.choice_key(text))
    }

    /// Caches what a tuner has chosen on this machine for a text.
    pub fn store_choice(&self, text: &str, choice: &str) {
        if let Some(cache) = &self.cache {
            cache.store_choice(self.choice_key(text), choice);
        }
    }

    fn choice_key(&self, text: &str) -> Key {
        Key::of_choice(text, &self.backend.target, self.pool.n_threads())
    }

    /// The threads that kernels run on.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// How many threads a library may use that divides its work by their number.
    pub fn library_threads(&self) -> usize {
        match self.config.deterministic {
            true => 1,
            false => self.pool.n_threads(),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Compiles a module at stage `Structured` and loads its kernel.
    pub fn compile(&self, module: Module) -> Result<CompiledKernel, CompileError> {
        let request = Request::from_env().map_err(CompileError::BadRequest)?;
        let mut module = module;
        // The launcher checks it, and falls back on code that does without: see `Overlapping`.
        module.env.arrays_apart = self.config.arch != Arch::Interp;
        module.env.deterministic = self.config.deterministic;
        let compiler = self.clone();
        let (kernel, source) = apart(module, move |module| {
            compiler.compile_checked(module, &request)
        })?;
        Ok(CompiledKernel { source, ..kernel })
    }

    /// The same of which LLVM makes other code.
    pub(crate) fn at_level(&self, level: u8) -> Self {
        Self {
            level: OptLevel(level),
            ..self.clone()
        }
    }

    /// The code of a module that has been compiled before, loaded.
    pub(crate) fn loaded(&self, module: Module) -> Result<Box<dyn LoadedKernel>, CompileError> {
        let compiler = self.clone();
        let made = apart(module, move |module| {
            let code = compiler.code(module.clone(), &Request::default(), &mut Vec::new())?;
            let device = &compiler.backend.device;
            device.load(&code).map_err(CompileError::Load)
        });
        made.map(|(kernel, _)| kernel)
    }

    fn compile_checked(
        &self,
        module: &Module,
        request: &Request,
    ) -> Result<CompiledKernel, CompileError> {
        for func in module.funcs.values() {
            verify(func, &module.env, Stage::Structured)
                .map_err(|e| CompileError::Internal(format!("the frontend broke the IR: {e}")))?;
        }
        verify_calls(module)
            .map_err(|e| CompileError::Internal(format!("the frontend broke the IR: {e}")))?;
        if self.config.print_ir {
            eprintln!("; as the frontend made it\n{}", print_module(module));
        }
        let module = module.clone();
        let mut times = Vec::new();
        let mut overlapping = None;
        let loaded: Box<dyn LoadedKernel> = match self.config.arch {
            Arch::Interp => {
                let lowered = self.run_passes(module, request, false)?.module;
                Box::new(InterpKernel::new(lowered).ok_or_else(no_kernel)?)
            }
            Arch::Cpu | Arch::Cuda(_) => {
                let code = self.code(module, request, &mut times)?;
                if code.apart.len() > 1 && code.apart.contains(&true) {
                    overlapping = Some(Overlapping {
                        compiler: self.clone(),
                        kernel: OnceLock::new(),
                    });
                }
                let start = Instant::now();
                let loaded = self
                    .backend
                    .device
                    .load(&code)
                    .map_err(CompileError::Load)?;
                times.push(("load".to_owned(), start.elapsed()));
                loaded
            }
        };
        Ok(CompiledKernel {
            loaded,
            better: None,
            overlapping,
            source: Module::default(),
            times,
        })
    }

    /// The code of a module at stage `Structured`, from the cache if it is there.
    fn code(
        &self,
        module: Module,
        request: &Request,
        times: &mut Vec<(String, Duration)>,
    ) -> Result<KernelCode, CompileError> {
        let start = Instant::now();
        let watched = *request != Request::default() || self.config.print_ir;
        let cache = self.cache.as_deref().filter(|_| !watched);
        let device = &self.backend.device;
        let key = || {
            Key::new(
                &module,
                (&self.config, self.level),
                &self.backend.target,
                &device.identity(),
            )
        };
        let keyed = cache.map(|cache| (cache, key()));
        if let Some((cache, key)) = keyed
            && let Some(code) = cache.load(key)
        {
            times.push(("cache".to_owned(), start.elapsed()));
            return Ok(code);
        }
        let done = self.run_passes(module, request, false)?;
        times.extend(done.times);
        if self.config.print_ir {
            eprintln!(
                "; as the code generator gets it\n{}",
                print_module(&done.module)
            );
        }
        let start = Instant::now();
        let mut compiled = aerogel_llvm::compile(
            &done.module,
            &self.backend.target,
            self.level,
            Texts::Nothing,
        );
        times.push(("llvm".to_owned(), start.elapsed()));
        if let Arch::Cuda(_) = self.config.arch {
            ptx_files::keep(&done.module, &compiled.code, self.level);
        }
        if let Some((cache, key)) = keyed {
            device.assemble(&mut compiled.code);
            cache.store(key, &compiled.code, &device.identity());
        }
        Ok(compiled.code)
    }

    fn run_passes(
        &self,
        mut module: Module,
        request: &Request,
        keep_texts: bool,
    ) -> Result<Passed, CompileError> {
        let mut watcher = Watcher::new(request, keep_texts);
        let mut options = self.backend.options;
        // The interpreter is the oracle: it sees what the optimising passes have not touched.
        options.optimize &= self.config.arch != Arch::Interp;
        aerogel_passes::run(&mut module, options, &mut watcher)?;
        if given_up() {
            return Err(CompileError::Interrupted);
        }
        if let Some((pass, text)) = watcher.stopped {
            return Err(CompileError::Stopped(pass, text));
        }
        Ok(Passed {
            module,
            times: watcher.times,
            texts: watcher.texts.unwrap_or_default(),
        })
    }

    /// The derivative of a module at stage `Structured`; compiling it is another step.
    ///
    /// # Errors
    /// The outer one as `compile`; the inner one is a mistake of the user's: the kernel has no derivative, or none that
    /// can be computed backwards.
    pub fn differentiate(
        &self,
        module: Module,
        wanted: impl Into<Wanted>,
    ) -> Result<Result<Differentiated, Box<Diagnostic>>, CompileError> {
        let (options, wanted) = (self.backend.options, wanted.into());
        let (outcome, _) = apart(module, move |module| {
            match differentiate(module.clone(), wanted, options) {
                Ok(done) => Ok(Ok(done)),
                Err(DerivativeError::Mistake(mistake)) => Ok(Err(mistake)),
                Err(DerivativeError::Broken(broken)) => Err(broken.into()),
            }
        })?;
        Ok(outcome)
    }

    /// The module of one of the processes that share fields, of one at stage `Structured`; `grids` has the part of each tree
    /// that is split, and `is_derivative` says that it computes derivatives.
    ///
    /// # Errors
    /// The outer one as `compile`; the inner one is a mistake of the user's.
    pub fn split(
        &self,
        module: Module,
        grids: Vec<Option<Arc<SplitGrid>>>,
        is_derivative: bool,
    ) -> Result<Result<SplitKernel, Box<Diagnostic>>, CompileError> {
        let options = self.backend.options;
        let (outcome, _) = apart(module, move |module| {
            match split(module.clone(), &grids, options, is_derivative) {
                Ok(done) => Ok(Ok(done)),
                Err(SplitError::Mistake(mistake)) => Ok(Err(mistake)),
                Err(SplitError::Broken(broken)) => Err(broken.into()),
            }
        })?;
        Ok(outcome)
    }

    /// The assembly of a module at stage `Structured`, also for processors that this one is not among.
    ///
    /// # Errors
    /// As `compile`.
    pub fn assembly(&self, module: Module) -> Result<String, CompileError> {
        let lowered = self.run_passes(module, &Request::default(), false)?.module;
        let level = OptLevel(self.config.opt_level);
        let compiled = aerogel_llvm::compile(&lowered, &self.backend.target, level, Texts::Code);
        Ok(compiled.assembly.unwrap_or_default())
    }

    /// The code of a module at stage `Structured` for other programs: its symbols are identifiers of C, and its LLVM IR comes with
    /// it, one module after the other.
    ///
    /// # Errors
    /// As `compile`.
    pub fn linkable(&self, mut module: Module) -> Result<(KernelCode, String), CompileError> {
        module.env.arrays_apart = true;
        // Nobody there runs a task on more than one thread.
        module.env.deterministic = false;
        let compiler = self.clone();
        let (made, _) = apart(module, move |module| {
            let done = compiler.run_passes(module.clone(), &Request::default(), false)?;
            let target = Target {
                separator: "_",
                ..compiler.backend.target.clone()
            };
            let level = compiler.level;
            Ok(aerogel_llvm::compile(
                &done.module,
                &target,
                level,
                Texts::Code,
            ))
        })?;
        Ok((made.code, made.llvm_ir.unwrap_or_default()))
    }

    /// An object file of named bytes, for other programs.
    pub fn data<'d>(&self, named: impl Iterator<Item = (&'d str, &'d [u8])>) -> Vec<u8> {
        aerogel_llvm::data(&self.backend.target, named)
    }

    /// Compiles a kernel once more, keeping the text of every step. With `located`, the LLVM IR has debug locations whose lines
    /// are numbers of spans.
    pub fn inspect(
        &self,
        kernel: &CompiledKernel,
        located: bool,
    ) -> Result<Inspection, CompileError> {
        let texts = match located {
            true => Texts::Located,
            false => Texts::Code,
        };
        let compiler = self.clone();
        let ((stages, code, spans), _) = apart(kernel.source.clone(), move |module| {
            let done = compiler.run_passes(module.clone(), &Request::default(), true)?;
            let level = OptLevel(compiler.config.opt_level);
            let code = aerogel_llvm::compile(&done.module, &compiler.backend.target, level, texts);
            let mut stages = vec![("frontend".to_owned(), print_module(module))];
            stages.extend(done.texts);
            Ok((stages, code, done.module.env.spans))
        })?;
        Ok(Inspection {
            stages,
            llvm: code.llvm_ir.unwrap_or_default(),
            assembly: code.assembly.unwrap_or_default(),
            times: kernel.times.clone(),
            spans,
        })
    }
}

/// Does something with a module where it can be interrupted, and where a panic, which is a bug of ours, ends nothing
/// else: the error then holds the module's text.
fn apart<T: Send + 'static>(
    module: Module,
    work: impl FnOnce(&Module) -> Result<T, CompileError> + Send + 'static,
) -> Result<(T, Module), CompileError> {
    let room = Room::make();
    let work = move || {
        let _room = room;
        match caught(|| work(&module)) {
            Ok(done) => done.map(|done| (done, module)),
            Err(panic) => {
                let text = caught(|| print_module(&module)).unwrap_or_default();
                Err(CompileError::Internal(format!("{panic}\n\n{text}")))
            }
        }
    };
    interruptible(work).unwrap_or(Err(CompileError::Interrupted))
}

fn no_kernel() -> CompileError {
    CompileError::Internal("the module has no kernel".to_owned())
}

struct Passed {
    module: Module,
    times: Vec<(String, Duration)>,
    texts: Vec<(String, String)>,
}

/// A kernel's way through the compiler, as text.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The IR as the frontend made it, then after every pass that changed it: name and text.
    pub stages: Vec<(String, String)>,
    /// LLVM IR after optimisation.
    pub llvm: String,
    /// Assembly.
    pub assembly: String,
    /// How long each step took.
    pub times: Vec<(String, Duration)>,
    /// The source ranges of all instructions.
    pub spans: SpanTable,
}

/// A kernel that can be launched.
pub struct CompiledKernel {
    loaded: Box<dyn LoadedKernel>,
    /// Where that has been made quickly.
    pub(crate) better: Option<Better>,
    /// Where there are array arguments that could be one array.
    overlapping: Option<Overlapping>,
    source: Module,
    times: Vec<(String, Duration)>,
}

/// Code that does not take arrays to be apart, made when arrays overlap for the first time.
struct Overlapping {
    compiler: Compiler,
    kernel: OnceLock<Box<dyn LoadedKernel>>,
}

impl Overlapping {
    fn launch(&self, source: &Module, launch: Launch<'_>) -> Result<(), KernelFailure> {
        if let Some(kernel) = self.kernel.get() {
            return kernel.launch(launch);
        }
        let mut module = source.clone();
        module.env.arrays_apart = false;
        match self.compiler.loaded(module) {
            // Another thread may have been faster.
            Ok(kernel) => self.kernel.get_or_init(|| kernel).launch(launch),
            Err(CompileError::Interrupted) => Err(KernelFailure::Interrupted),
            // The next launch tries again: there may be memory then.
            Err(CompileError::Load(e)) => Err(KernelFailure::Device(e.to_string())),
            Err(_) => Err(KernelFailure::Mismatch(
                "the code for arrays that share memory cannot be made",
            )),
        }
    }
}

impl CompiledKernel {
    /// Runs the kernel, and waits for it unless `Launch::later` allows to return before.
    pub fn launch(&self, launch: Launch<'_>) -> Result<(), KernelFailure> {
        let again = Launch {
            results: &mut *launch.results,
            ..launch
        };
        let outcome = match &self.better {
            Some(better) => better.launch(&*self.loaded, &self.source, again),
            None => self.loaded.launch(again),
        };
        match (outcome, &self.overlapping) {
            (Err(KernelFailure::Overlap), Some(overlapping)) => {
                overlapping.launch(&self.source, launch)
            }
            (outcome, _) => outcome,
        }
    }

    /// The IR as the frontend made it.
    pub fn text(&self) -> String {
        print_module(&self.source)
    }

    /// The module that it was made of, at stage `Structured`.
    pub fn source(&self) -> &Module {
        &self.source
    }

    /// Its messages, for rendering a failure.
    pub fn sites(&self) -> &[Site] {
        self.loaded.sites()
    }

    /// The source ranges that its messages point to.
    pub fn spans(&self) -> &SpanTable {
        &self.source.env.spans
    }

    /// The source texts.
    pub fn sources(&self) -> &Sources {
        &self.source.env.sources
    }

    /// How long each step of its compilation took.
    pub fn times(&self) -> &[(String, Duration)] {
        &self.times
    }
}
