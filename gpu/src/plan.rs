//! A kernel on a GPU: a plan that is made once, and launches of it.
//!
//! What a launch hands to its tasks lies in one block of the device's memory (`block.rs`). Tasks follow each other without the host: the bounds of one that only the device knows are found by a kernel before it,
//! and a task does nothing if an earlier one has failed. So do launches: what becomes of those that have returned stands in
//! `queue.rs`.

use std::sync::Arc;

use aerogel_runtime::abi::offset;
use aerogel_runtime::code::{ArgSlot, Site};
use aerogel_runtime::interrupt;
use aerogel_runtime::launch::{KernelFailure, Launch};
use aerogel_runtime::residence;
use aerogel_runtime::tree::Turn;
use aerogel_runtime::{KernelCode, LoadedKernel, OnDevice};

use crate::arrays::{self, Arrays};
use crate::block::{Back, Parts, SERVICES, words};
use crate::driver::{DriverError, KernelLaunch};
use crate::kernel::Kernel;
use crate::memory::{DeviceMemory, GpuMirror};
use crate::opened::{Opened, Shared};
use crate::printed::{LOG_BYTES, NOTES_BYTES};
use crate::waiting::{Block, Queued, Times};

/// A launch that needs growing storages may use this fraction of the device's memory for them.
const HEAP_PART: u64 = 8;
/// With less than this it does not begin.
const LEAST_HEAP: u64 = 1 << 20;
/// A tree in which a launch may activate cells gets space for this fraction of the device's memory more,
const ROOM_PART: u64 = 16;
/// or of what is left of it, so that any number of trees have some.
const ROOM_PART_OF_REST: u64 = 8;

/// A kernel that is ready to launch; launches that have not been waited for keep it alive.
pub(crate) struct GpuKernel(Arc<Kernel>);

impl Kernel {
    fn run(self: &Arc<Self>, launch: &mut Launch<'_>) -> Result<(), Failure> {
        // From here on Ctrl-C ends it, also while it waits or copies.
        let _active = interrupt::Active::begin();
        let turn = Turn::take(launch.roots);
        let mut shared = self.device.turn();
        let place = self.device.place(self, self.fits_graph(launch));
        if place.is_none() {
            self.device.driver()?;
            if self.waits_for(&self.device.queue()) {
                self.device.settle()?;
            }
        }
        let gathering = residence::gathering();
        let arrays = Arrays::prepare(&self.device, launch.args.arrays())?;
        let trees = self.trees(launch)?;
        drop(gathering);
        if let (Some(place), Some(later)) = (place, launch.later) {
            let given = self.given(launch, place.at, &place.parts, (&arrays, &trees), [0; 7]);
            self.note_changes(&arrays, &trees);
            return Ok(self.device.wait_in_graph(place, given, later)?);
        }
        let block = match self.idle().pop() {
            Some(block) => block,
            None => DeviceMemory::zeroed(&self.device, self.parts.bytes)?,
        };
        let services = self.services(&mut shared, launch.most_reserved)?;
        let given = (&arrays, &*trees);
        let given = self.given(launch, block.address, &self.parts, given, services);
        self.device.driver()?.write(block.address, &given)?;
        let mut times = launch.trace.map(|_| Times::new());
        let ran = self.tasks(block.address, times.as_mut());
        self.note_changes(&arrays, &trees);
        let log = shared.log.filter(|_| self.prints);
        let log = log.map(|(address, _)| (address, self.log_bytes()));
        if let (Some(later), true, true) = (launch.later, ran.is_ok(), self.may_return(launch)) {
            let kernel = self.clone();
            let queued = Queued {
                kernel,
                block: Block::Own(block),
                log,
                times,
                later: later.clone(),
            };
            return Ok(self.device.enqueue(queued)?);
        }
        // Tasks that were queued before one was refused still run.
        let over = self.device.settle();
        let interrupted = interrupt::requested();
        let finished = over
            .map_err(Failure::from)
            .and_then(|()| self.finish(launch, log, &arrays, block.address, times));
        let outcome = match (ran, finished) {
            (Err(e), _) => Err(e.into()),
            (_, Err(e)) => Err(e),
            (_, Ok(_)) if interrupted => Err(KernelFailure::Interrupted.into()),
            (_, Ok(outcome)) => outcome.map_err(Failure::from),
        };
        match &outcome {
            Err(Failure::Driver(e)) if *e != DriverError::Earlier => self.device.note(e),
            _ => self.idle().push(block),
        }
        // Nothing is on the device any more for this launch, and the host can put the trees in order.
        drop((arrays, trees));
        if outcome.is_err() {
            turn.settle();
        }
        outcome
    }

    /// Says what a launch may have changed; also what one that failed has done is seen.
    fn note_changes(&self, arrays: &Arrays<'_>, trees: &[OnDevice<'_>]) {
        for (tree, _) in trees.iter().zip(&self.changes).filter(|(_, c)| **c) {
            tree.changed();
        }
        arrays.changed(&self.written);
    }

    /// Whether a launch must know first how those before it have ended.
    fn waits_for(&self, queued: &[Queued]) -> bool {
        // All share one log.
        self.prints && queued.iter().any(|other| other.log.is_some())
            || !queued.is_empty() && self.reads_bounds()
    }

    /// Whether the host must know how many iterations a task has.
    fn reads_bounds(&self) -> bool {
        let mut tasks = self.tasks.iter();
        tasks.any(|task| task.in_blocks && task.bounds.is_some())
    }

    /// Whether nobody misses anything if a launch returns before it has ended.
    fn may_return(&self, launch: &Launch<'_>) -> bool {
        self.n_results == 0
            && !self.notes_accesses
            && !arrays::are_anothers(launch.args.arrays())
            && !interrupt::counts_tasks()
    }

    /// Whether the host has nothing to do for a launch but to say what it is given.
    fn fits_graph(&self, launch: &Launch<'_>) -> bool {
        let wants_nothing = launch.later.is_some() && launch.trace.is_none();
        let asks_nothing = !self.prints && !self.grows && !self.reads_bounds();
        wants_nothing && asks_nothing && self.may_return(launch)
    }

    /// Takes what a launch has left: results, messages, and arrays that are somebody else's.
    fn finish(
        &self,
        launch: &mut Launch<'_>,
        log: Option<(u64, u64)>,
        arrays: &Arrays<'_>,
        block: u64,
        times: Option<Times>,
    ) -> Result<Result<(), KernelFailure>, Failure> {
        let driver = self.device.driver()?;
        let back = Back::fetch(driver, block, &self.parts)?;
        if back.failure(&self.parts).is_err() {
            driver.fill(driver.stop_word(), 8, 0)?;
        }
        let mut told = Ok(());
        if let Some(log) = log {
            let of = (&*self.sites, launch.args.arrays());
            told = back.print(driver, log, of, launch.sink)?;
        }
        arrays.take_back(&self.written)?;
        for (result, word) in launch
            .results
            .iter_mut()
            .zip(back.words(self.parts.results..self.parts.args))
        {
            *result = word;
        }
        if let (Some(times), Some(trace)) = (times, launch.trace) {
            times.note(driver, trace)?;
        }
        Ok(back.failure(&self.parts).and(told))
    }

    /// Queues all tasks.
    fn tasks(&self, block: u64, mut times: Option<&mut Times>) -> Result<(), DriverError> {
        let driver = self.device.driver()?;
        let launch =
            |asked: &KernelLaunch| driver.launch(asked.function, asked.grid, &asked.params);
        for (k, task) in self.tasks.iter().enumerate() {
            if interrupt::requested() {
                break;
            }
            let mut total = task.total;
            if let Some(finds) = task.finds_bounds(block, &self.parts) {
                launch(&finds)?;
                if task.in_blocks {
                    total = Some(self.extent(finds.params[1], task.n_axes)?);
                }
            }
            let blocks = driver.card().blocks;
            let Some(asked) = task.launch(block, &self.parts, total, blocks)? else {
                continue;
            };
            if self.grows {
                // What an earlier task has taken is free again.
                driver.fill(block + SERVICES + offset::HEAP_TAKEN, 8, 0)?;
            }
            let before = times.as_ref().map(|_| driver.mark()).transpose()?;
            launch(&asked)?;
            if let (Some(times), Some(before)) = (&mut times, before) {
                times.marks.push((k, before, driver.mark()?));
            }
            if interrupt::counts_tasks() {
                driver.wait(&interrupt::requested)?;
                interrupt::task_ended();
            }
        }
        Ok(())
    }

    /// How many iterations a task has whose bounds a kernel has found.
    fn extent(&self, bounds: u64, n_axes: usize) -> Result<i64, DriverError> {
        let mut bytes = vec![0; 16 * n_axes];
        self.device.driver()?.read(bounds, &mut bytes)?;
        let ends: Vec<i64> = words(&bytes).map(|word| word as i64).collect();
        let extents = ends
            .chunks_exact(2)
            .map(|b| b[1].saturating_sub(b[0]).max(0));
        Ok(extents.fold(1, i64::saturating_mul))
    }

    /// The addresses of trees on the device.
    fn trees<'a>(&self, launch: &Launch<'a>) -> Result<Vec<OnDevice<'a>>, Failure> {
        let all = launch.roots.iter().enumerate();
        let there = all.map(|(k, tree)| {
            let failed = |error| Failure::Kernel(KernelFailure::Tree { root: k, error });
            let bytes = tree.bytes();
            let there = bytes.on_device(self.device.number(), || {
                let made = match tree.is_sparse() {
                    true => GpuMirror::reserved(&self.device, bytes.len(), bytes.margin()),
                    false => GpuMirror::zeroed(&self.device, bytes.len(), bytes.margin()),
                };
                Ok(Box::new(made.map_err(|e| self.device.memory_error(e))?))
            });
            let there = there.map_err(failed)?;
            if self.activates.get(k) == Some(&true) {
                let whole = self.device.memory() / ROOM_PART;
                let rest = self.device.unused_memory() / ROOM_PART_OF_REST;
                bytes.make_room(whole.min(rest)).map_err(failed)?;
            }
            Ok(there)
        });
        there.collect()
    }

    /// How large the log of a launch is.
    fn log_bytes(&self) -> u64 {
        match self.notes_accesses {
            true => NOTES_BYTES,
            false => LOG_BYTES,
        }
    }

    /// What threads find instead of a host.
    fn services(&self, shared: &mut Shared, most: u64) -> Result<[u64; 7], DriverError> {
        let mut words = [0; 7];
        if self.prints {
            let driver = self.device.driver()?;
            let wanted = self.log_bytes();
            if let Some((address, bytes)) = shared.log.take_if(|(_, bytes)| *bytes < wanted) {
                self.device.give_back(bytes);
                driver.free(address);
            }
            if shared.log.is_none() {
                let address = self.device.allocate(wanted)?;
                shared.log = Some((address, wanted));
                driver.fill(address, wanted, 0)?;
            }
            let (address, _) = shared.log.unwrap_or_default();
            words[offset::LOG_WORDS as usize / 8] = wanted / 8;
            words[offset::LOG as usize / 8] = address;
        }
        if self.grows {
            if shared.heap.is_none() {
                let mut bytes = self.device.memory() / HEAP_PART;
                let address = loop {
                    match self.device.allocate(bytes) {
                        // What there is may do.
                        Err(DriverError::OutOfMemory(_)) if bytes > LEAST_HEAP => bytes /= 2,
                        outcome => break outcome?,
                    }
                };
                shared.heap = Some((address, bytes));
                let driver = self.device.driver()?;
                driver.fill(address, bytes, 0)?;
            }
            let (address, bytes) = shared.heap.unwrap_or_default();
            words[offset::HEAP_BYTES as usize / 8] = bytes.min(most);
            words[offset::HEAP as usize / 8] = address;
        }
        Ok(words)
    }

    /// What a launch is given: the first bytes of its block, which begins at `at`.
    fn given(
        &self,
        launch: &Launch<'_>,
        at: u64,
        parts: &Parts,
        (arrays, trees): (&Arrays<'_>, &[OnDevice<'_>]),
        services: [u64; 7],
    ) -> Vec<u8> {
        let mut words = vec![0_u64; (parts.given / 8) as usize];
        let mut set = |at: u64, value: u64| words[(at / 8) as usize] = value;
        for (field, value) in [
            (offset::ARGS, at + parts.args),
            (offset::ROOTS, at + parts.roots),
            (offset::TEMPS, at + parts.temps),
            (offset::RESULTS, at + parts.results),
            (offset::ERRORS, at + parts.errors),
            (offset::HOST, at + SERVICES),
            (offset::SEED, launch.seed),
            (offset::STOP, self.device.stop_word()),
        ] {
            set(field, value);
        }
        for (k, word) in services.into_iter().enumerate() {
            set(SERVICES + 8 * k as u64, word);
        }
        let mut arrays = arrays.addresses.iter();
        let slots = launch.args.slots().iter().zip(&self.args);
        for (k, (&slot, kind)) in slots.enumerate() {
            let value = match kind {
                ArgSlot::Pointer => arrays.next().copied().unwrap_or_default(),
                ArgSlot::Value | ArgSlot::Extent => slot,
            };
            set(parts.args + 8 * k as u64, value);
        }
        for (k, tree) in trees.iter().enumerate().take(self.n_roots) {
            set(parts.roots + 8 * k as u64, tree.address());
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Why a launch did not succeed.
pub(crate) enum Failure {
    Kernel(KernelFailure),
    Driver(DriverError),
}

impl From<DriverError> for Failure {
    fn from(e: DriverError) -> Self {
        Self::Driver(e)
    }
}

impl From<KernelFailure> for Failure {
    fn from(e: KernelFailure) -> Self {
        Self::Kernel(e)
    }
}

impl GpuKernel {
    pub(crate) fn new(device: &Arc<Opened>, code: &KernelCode) -> Result<Self, DriverError> {
        Ok(Self(Arc::new(Kernel::new(device, code)?)))
    }
}

impl LoadedKernel for GpuKernel {
    fn launch(&self, mut launch: Launch<'_>) -> Result<(), KernelFailure> {
        let Self(kernel) = self;
        kernel.signature.check(&launch)?;
        debug_assert_eq!(kernel.modules.numbers.is_empty(), kernel.tasks.is_empty());
        kernel.run(&mut launch).map_err(|failure| match failure {
            Failure::Kernel(failure) => failure,
            Failure::Driver(e @ (DriverError::OutOfMemory(_) | DriverError::Earlier)) => {
                KernelFailure::Memory(kernel.device.memory_error(e))
            }
            Failure::Driver(e) => {
                kernel.device.note(&e);
                KernelFailure::Device(e.to_string())
            }
        })
    }

    fn sites(&self) -> &[Site] {
        &self.0.sites
    }
}
