//! The program: the settings of `ti.init`, its compiler, and the numbers that identify kernels and launches.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aerogel_base::ScalarType;
use aerogel_compiler::{Arch, CacheSettings, Cleaning, Compiler, Config, Cpu, runnable};
use aerogel_ir::FastMath;
use aerogel_tensor::passes::{Options, Products};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::error;
use super::profile;
use super::signals;

/// The settings of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) arch: Arch,
    pub(crate) cpu: Cpu,
    pub(crate) debug: bool,
    pub(crate) debug_races: bool,
    pub(crate) deterministic: bool,
    pub(crate) fast_math: FastMath,
    pub(crate) check_bounds: bool,
    pub(crate) opt_level: u8,
    pub(crate) max_threads: usize,
    pub(crate) print_ir: bool,
    pub(crate) thread_local: bool,
    pub(crate) products: Products,
    pub(crate) default_fp: ScalarType,
    pub(crate) default_ip: ScalarType,
    pub(crate) short_circuit: bool,
    pub(crate) random_seed: u64,
    /// The most bytes that a launch takes for what it computes backwards.
    pub(crate) ad_memory: u64,
}

impl Settings {
    /// The options of the compilation of tensors.
    pub(crate) fn tensor_options(&self) -> Options {
        Options {
            products: self.products,
            ..Options::default()
        }
    }
}

static COMPILER: Mutex<Option<Arc<Compiler>>> = Mutex::new(None);
static SETTINGS: Mutex<Option<Settings>> = Mutex::new(None);
static CACHE: Mutex<Option<CacheSettings>> = Mutex::new(None);
/// Changes whenever the program starts over; kernels compare it.
static GENERATION: AtomicU64 = AtomicU64::new(0);
static LAUNCHES: AtomicU64 = AtomicU64::new(0);
static PENDING: AtomicBool = AtomicBool::new(false);
static MATERIALIZE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The settings, or the error that `ti.init` has not been called. A child process begins with those of its parent.
pub(crate) fn settings(py: Python<'_>) -> PyResult<Settings> {
    if let Some(settings) = *lock(&SETTINGS) {
        return Ok(settings);
    }
    py.import("aerogel._config")?
        .call_method0("begin_as_parent")?;
    lock(&SETTINGS).ok_or_else(|| error::runtime(py, "call ti.init() first: there is no program"))
}

/// The settings for what works without `ti.init`, as tensors do: a program that has not begun begins with default settings.
pub(crate) fn settings_or_begin(py: Python<'_>) -> PyResult<Settings> {
    settings(py).or_else(|_| {
        py.import("aerogel._config")?
            .call_method0("begin_by_default")?;
        settings(py)
    })
}

/// The number of the program.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// The compiler for the program's settings; programs with the same settings share it and its threads.
pub(crate) fn compiler(py: Python<'_>, settings: &Settings) -> PyResult<Arc<Compiler>> {
    let config = Config {
        arch: settings.arch,
        cpu: settings.cpu,
        debug: settings.debug,
        check_bounds: settings.check_bounds,
        opt_level: settings.opt_level.min(3),
        max_threads: (settings.max_threads > 0).then_some(settings.max_threads),
        print_ir: settings.print_ir,
        thread_local: settings.thread_local,
        deterministic: settings.deterministic,
        cache: lock(&CACHE).clone(),
        ..Config::default()
    };
    let made = {
        let mut compiler = lock(&COMPILER);
        if let Some(old) = &*compiler
            && *old.config() == config
            && old.is_usable()
        {
            return Ok(old.clone());
        }
        let opened = Compiler::open(config).map_err(|e| error::runtime(py, e.to_string()))?;
        compiler.insert(Arc::new(opened)).clone()
    };
    if let Some(why) = made.cache_refused() {
        let message = format!("compiled kernels are not cached on disk: {why}");
        py.import("aerogel._log")?
            .call_method1("warn", (message,))?;
    }
    Ok(made)
}

/// The compiler that the program has used last, if it still matches the settings. Work that threads may share uses it;
/// without one, it runs on a single thread.
pub(crate) fn present_compiler() -> Option<Arc<Compiler>> {
    let wanted = (*lock(&SETTINGS))?.max_threads;
    let compiler = lock(&COMPILER).clone()?;
    let threads = compiler.config().max_threads.unwrap_or(0);
    (threads == wanted).then_some(compiler)
}

/// Where compiled kernels are cached: the folder, the cleaning policy (with Taichi's names), the size that triggers
/// it, and the fraction that is removed.
type CacheArgs = (PathBuf, String, u64, f64);

fn cache_settings((folder, policy, max_bytes, factor): CacheArgs) -> PyResult<CacheSettings> {
    let cleaning = match policy.as_str() {
        "never" => Cleaning::Never,
        "version" => Cleaning::Version,
        "lru" => Cleaning::LeastRecentlyUsed,
        "fifo" => Cleaning::FirstInFirstOut,
        _ => {
            return Err(PyValueError::new_err(format!(
                "offline_cache_cleaning_policy is never, version, lru or fifo, not {policy:?}"
            )));
        }
    };
    Ok(CacheSettings {
        folder,
        cleaning,
        max_bytes,
        cleaning_factor: factor,
    })
}

/// A new seed for each launch of the program.
pub(crate) fn launch_seed(settings: &Settings) -> u64 {
    let launch = LAUNCHES.fetch_add(1, Ordering::Relaxed);
    (settings.random_seed ^ 0x9e37_79b9_7f4a_7c15)
        .wrapping_add(launch.wrapping_mul(0xbf58_476d_1ce4_e5b9))
}

/// The seed of a launch to come, for those who launch it more than once.
#[pyfunction]
pub(crate) fn next_seed(py: Python<'_>) -> PyResult<u64> {
    Ok(launch_seed(&settings(py)?))
}

/// What the seeds of later launches depend on: the program's seed, and how many launches there were.
#[pyfunction]
pub(crate) fn random_state(py: Python<'_>) -> PyResult<(u64, u64)> {
    let seed = settings(py)?.random_seed;
    Ok((seed, LAUNCHES.load(Ordering::Relaxed)))
}

/// Continues the random numbers of another program.
#[pyfunction]
pub(crate) fn set_random_state(py: Python<'_>, seed: u64, launches: u64) -> PyResult<()> {
    settings(py)?;
    if let Some(settings) = lock(&SETTINGS).as_mut() {
        settings.random_seed = seed;
    }
    LAUNCHES.store(launches, Ordering::Relaxed);
    Ok(())
}

/// Lays out the trees that Python has described and not yet finished.
pub(crate) fn materialize(py: Python<'_>) -> PyResult<()> {
    if PENDING.load(Ordering::Acquire)
        && let Some(callback) = MATERIALIZE.get(py)
    {
        callback.call0(py)?;
    }
    Ok(())
}

fn scalar_type(name: &str) -> PyResult<ScalarType> {
    ScalarType::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no scalar type {name:?}")))
}

/// The processors that code shall be made for; this one must be among them.
fn cpu_named(name: &str) -> PyResult<Cpu> {
    let here: Vec<_> = runnable().into_iter().map(Cpu::name).collect();
    match Cpu::from_name(name) {
        Some(cpu) if cpu.runs_here() => Ok(cpu),
        _ => Err(PyValueError::new_err(format!(
            "this processor runs code for {}, not for {name:?}",
            here.join(", ")
        ))),
    }
}

fn arch_named(name: &str) -> PyResult<Arch> {
    match name {
        "cpu" => Ok(Arch::Cpu),
        "interp" => Ok(Arch::Interp),
        _ => {
            let number = name.strip_prefix("cuda:").and_then(|n| n.parse().ok());
            number.map(Arch::Cuda).ok_or_else(|| {
                PyValueError::new_err(format!("arch is cpu, interp or cuda:0, not {name:?}"))
            })
        }
    }
}

/// Opens a GPU, if it is not open: its name, or why there is none.
#[pyfunction]
pub(crate) fn open_cuda(py: Python<'_>, number: u32) -> (Option<String>, Option<String>) {
    match py.detach(|| aerogel_compiler::open_cuda(number)) {
        Ok(name) => (Some(name), None),
        Err(e) => (None, Some(e.to_string())),
    }
}

fn fast_math_named(name: &str) -> PyResult<FastMath> {
    FastMath::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("unknown level of `fast_math`: {name:?}")))
}

fn products_named(name: &str) -> PyResult<Products> {
    match name {
        "tiles" => Ok(Products::Tiles),
        "library" => Ok(Products::Library),
        _ => Err(PyValueError::new_err(format!(
            "tensor_products is 'tiles' or 'library', not '{name}'"
        ))),
    }
}

#[pyfunction]
#[pyo3(signature = (*, arch, cpu, debug, debug_races, deterministic, fast_math, check_bounds, opt_level, max_threads, random_seed, print_ir,
    thread_local, products, default_fp, default_ip, short_circuit, profile, cache, ad_memory, device_memory))]
#[expect(
    clippy::too_many_arguments,
    reason = "keywords of one call from Python"
)]
pub(crate) fn init(
    py: Python<'_>,
    arch: &str,
    cpu: &str,
    debug: bool,
    debug_races: bool,
    deterministic: bool,
    fast_math: &str,
    check_bounds: bool,
    opt_level: u8,
    max_threads: usize,
    random_seed: u64,
    print_ir: bool,
    thread_local: bool,
    products: &str,
    default_fp: &str,
    default_ip: &str,
    short_circuit: bool,
    profile: bool,
    cache: Option<CacheArgs>,
    ad_memory: u64,
    device_memory: Option<f64>,
) -> PyResult<()> {
    let cache = cache.map(cache_settings).transpose()?;
    let cpu = cpu_named(cpu)?;
    if let Arch::Cuda(number) = arch_named(arch)?
        && let Ok(device) = aerogel_compiler::cuda(number)
    {
        device.limit(device_memory);
    }
    aerogel_compiler::set_room_aside();
    signals::watch(py)?;
    aerogel_runtime::status::watch();
    *lock(&CACHE) = cache;
    *lock(&SETTINGS) = Some(Settings {
        arch: arch_named(arch)?,
        cpu,
        debug,
        debug_races,
        deterministic,
        fast_math: fast_math_named(fast_math)?,
        check_bounds,
        opt_level,
        max_threads,
        print_ir,
        thread_local,
        products: products_named(products)?,
        default_fp: scalar_type(default_fp)?,
        default_ip: scalar_type(default_ip)?,
        short_circuit,
        random_seed,
        ad_memory,
    });
    LAUNCHES.store(0, Ordering::Relaxed);
    profile::enable(profile);
    GENERATION.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// Ends the program.
pub(crate) fn end() {
    *lock(&SETTINGS) = None;
    GENERATION.fetch_add(1, Ordering::AcqRel);
}

#[pyfunction]
pub(crate) fn check_initialized(py: Python<'_>) -> PyResult<()> {
    settings(py).map(|_| ())
}

#[pyfunction]
pub(crate) fn set_pending(pending: bool) {
    PENDING.store(pending, Ordering::Release);
}

#[pyfunction]
pub(crate) fn set_materialize(py: Python<'_>, callback: Py<PyAny>) {
    let _ = MATERIALIZE.set(py, callback);
}

/// What makes the code of kernels and what it is made for, and the number of threads.
#[pyfunction]
pub(crate) fn machine(py: Python<'_>) -> PyResult<(Vec<(&'static str, String)>, usize)> {
    let compiler = compiler(py, &settings(py)?)?;
    Ok((compiler.machine().to_vec(), compiler.pool().n_threads()))
}
