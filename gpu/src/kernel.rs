//! A kernel on a GPU, as all launches of it have it: loaded modules, planned tasks, and blocks of memory.

use std::sync::{Arc, Mutex, PoisonError};

use aerogel_runtime::KernelCode;
use aerogel_runtime::abi::GPU_STACK;
use aerogel_runtime::code::{ArgSlot, Bounds, Site, SiteKind};
use aerogel_runtime::launch::Signature;

use crate::block::{Parts, Words};
use crate::memory::DeviceMemory;
use crate::opened::Opened;
use crate::{DriverError, Grid, KernelLaunch};

/// Threads that run together.
const WARP: u64 = 32;

/// Blocks that a launch may have.
const MOST_BLOCKS: u64 = i32::MAX as u64;

/// Threads of a block, where nobody says how many.
const THREADS: u32 = 128;

/// What a thread's stack has, where functions call themselves: what these may take, and the kernel around them.
const STACK: u64 = GPU_STACK as u64 / 2 + (4 << 10);

/// What launches of a kernel share.
pub(crate) struct Kernel {
    pub(crate) device: Arc<Opened>,
    pub(crate) modules: Modules,
    pub(crate) tasks: Vec<PlannedTask>,
    pub(crate) signature: Signature,
    pub(crate) args: Vec<ArgSlot>,
    pub(crate) activates: Vec<bool>,
    pub(crate) changes: Vec<bool>,
    pub(crate) written: Vec<bool>,
    pub(crate) sites: Vec<Site>,
    pub(crate) n_results: usize,
    pub(crate) n_roots: usize,
    pub(crate) words: Words,
    /// Of a block of its own.
    pub(crate) parts: Parts,
    /// Whether it leaves records in the log.
    pub(crate) prints: bool,
    pub(crate) notes_accesses: bool,
    pub(crate) grows: bool,
    /// Blocks of launches that are over.
    pub(crate) idle: Mutex<Vec<DeviceMemory>>,
}

pub(crate) struct PlannedTask {
    pub(crate) function: u64,
    /// The kernel that finds the bounds of all axes, if they are not known before.
    pub(crate) bounds: Option<u64>,
    /// How many iterations there are, if that is known.
    pub(crate) total: Option<i64>,
    pub(crate) threads: u32,
    /// Whether each iteration has a thread of its own.
    pub(crate) in_blocks: bool,
    pub(crate) n_axes: usize,
}

impl PlannedTask {
    /// The threads for a number of iterations, on a device that runs `n_blocks` blocks of the usual size at once.
    pub(crate) fn grid(&self, total: u64, blocks: u32) -> Result<Grid, DriverError> {
        let grid = |blocks: u64, threads| Grid {
            blocks: blocks as u32,
            threads,
            shared: 0,
        };
        let threads = u64::from(self.threads);
        if threads == 1 {
            return Ok(grid(1, 1));
        }
        if self.in_blocks {
            let wanted = total.div_ceil(threads);
            return match wanted > MOST_BLOCKS {
                false => Ok(grid(wanted, self.threads)),
                true => Err(DriverError::Refused(format!(
                    "{wanted} blocks, where {MOST_BLOCKS} are possible"
                ))),
            };
        }
        // Whole warps, and no more of them than have something to do.
        let threads = total.div_ceil(WARP).saturating_mul(WARP).min(threads);
        let most = u64::from(blocks) * u64::from(THREADS) / threads;
        Ok(grid(
            total.div_ceil(threads).min(most.max(1)),
            threads as u32,
        ))
    }
}

impl PlannedTask {
    /// The launch that finds the bounds of its axes, if they are not known before.
    pub(crate) fn finds_bounds(&self, block: u64, parts: &Parts) -> Option<KernelLaunch> {
        Some(KernelLaunch {
            function: self.bounds?,
            grid: Grid {
                blocks: 1,
                threads: 1,
                shared: 0,
            },
            params: vec![block, block + parts.bounds],
        })
    }

    /// The launch of so many iterations, or of as many as threads find in the block; none if there are none.
    pub(crate) fn launch(
        &self,
        block: u64,
        parts: &Parts,
        total: Option<i64>,
        blocks: u32,
    ) -> Result<Option<KernelLaunch>, DriverError> {
        let total = total.unwrap_or(i64::MAX);
        if total == 0 {
            return Ok(None);
        }
        let bounds = self.bounds.map_or(0, |_| block + parts.bounds);
        Ok(Some(KernelLaunch {
            function: self.function,
            grid: self.grid(total as u64, blocks)?,
            params: vec![block, bounds, total as u64],
        }))
    }
}

/// Loaded modules, given back when they are dropped.
pub(crate) struct Modules {
    pub(crate) device: Arc<Opened>,
    pub(crate) numbers: Vec<u64>,
}

impl Drop for Modules {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.driver() {
            self.numbers.iter().for_each(|&m| driver.unload(m));
        }
    }
}

impl Kernel {
    pub(crate) fn new(device: &Arc<Opened>, code: &KernelCode) -> Result<Self, DriverError> {
        let driver = device.driver()?;
        let mut modules = Modules {
            device: device.clone(),
            numbers: Vec::new(),
        };
        if code.is_recursive() {
            driver.set_stack(STACK)?;
        }
        for (k, object) in code.objects.iter().enumerate() {
            let assembled = code.binaries.get(k).map(|binary| driver.load(binary));
            modules.numbers.push(match assembled {
                Some(Ok(module)) => module,
                // Native code that the device rejects is compiled again.
                Some(Err(DriverError::BadCode(_))) | None => driver.load(object)?,
                Some(Err(e)) => return Err(e),
            });
        }
        let function = |symbol: &str| {
            let all = modules.numbers.iter();
            let mut found = all.map(|&module| driver.function(module, symbol));
            found
                .find(|f| !matches!(f, Err(DriverError::NoFunction(_))))
                .unwrap_or_else(|| Err(DriverError::NoFunction(symbol.to_owned())))
        };
        let (mut tasks, mut most_axes) = (Vec::new(), 0);
        for task in &code.tasks {
            let (mut bounds, mut n_axes) = (None, 0);
            let usual = task.block.unwrap_or(THREADS);
            let (total, threads) = match &task.bounds {
                Bounds::Serial => (Some(1), 1),
                Bounds::Constant(axes) => {
                    let extents = axes.iter().map(|[lo, hi]| hi.saturating_sub(*lo).max(0));
                    (Some(extents.fold(1, i64::saturating_mul)), usual)
                }
                Bounds::Computed { symbol, n_axes: n } => {
                    (bounds, n_axes) = (Some(function(symbol)?), *n);
                    (None, usual)
                }
            };
            most_axes = most_axes.max(n_axes);
            tasks.push(PlannedTask {
                function: function(&task.symbol)?,
                bounds,
                total,
                threads,
                in_blocks: task.in_blocks,
                n_axes,
            });
        }
        let words = Words {
            results: code.n_results,
            args: code.args.len(),
            roots: code.root_bytes.len(),
            bounds: 2 * most_axes,
            temp_bytes: code.temp_bytes as u64,
        };
        let prints = |site: &Site| {
            matches!(
                site.kind,
                SiteKind::Print | SiteKind::Warning | SiteKind::Note(_)
            )
        };
        Ok(Self {
            device: device.clone(),
            modules,
            tasks,
            signature: Signature::of(code),
            args: code.args.clone(),
            activates: code.activates.clone(),
            changes: code.changes.clone(),
            written: code.written.clone(),
            sites: code.sites.clone(),
            n_results: code.n_results,
            n_roots: code.root_bytes.len(),
            parts: words.alone(),
            words,
            prints: code.sites.iter().any(prints),
            notes_accesses: code.notes_accesses(),
            grows: code.grows,
            idle: Mutex::default(),
        })
    }

    pub(crate) fn idle(&self) -> std::sync::MutexGuard<'_, Vec<DeviceMemory>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the block of a launch that is over for another.
    pub(crate) fn keep(&self, block: DeviceMemory) {
        self.idle().push(block);
    }

    /// What is launched for a block of a graph.
    ///
    /// # Errors
    /// If there are too many threads.
    pub(crate) fn launches(
        &self,
        block: u64,
        parts: &Parts,
        blocks: u32,
    ) -> Result<Vec<KernelLaunch>, DriverError> {
        let mut all = Vec::new();
        for task in &self.tasks {
            all.extend(task.finds_bounds(block, parts));
            all.extend(task.launch(block, parts, task.total, blocks)?);
        }
        Ok(all)
    }
}
