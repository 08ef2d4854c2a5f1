//! Outstanding launches: sent ones until their results are read (`queue.rs`), and deferred ones until their graph is sent
//! (`graph.rs`).

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

use aerogel_runtime::TaskTrace;
use aerogel_runtime::launch::Later;

use crate::block::Parts;
use crate::kernel::Kernel;
use crate::memory::DeviceMemory;
use crate::opened::Opened;
use crate::{Driver, DriverError};

/// A launch that has returned.
pub(crate) struct Queued {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) block: Block,
    /// Where its prints are, if it may have some: address and bytes.
    pub(crate) log: Option<(u64, u64)>,
    pub(crate) times: Option<Times>,
    /// Who is told how it ended.
    pub(crate) later: Arc<dyn Later>,
}

/// Where it was told what to do, and what it leaves.
pub(crate) enum Block {
    /// A block of its own.
    Own(DeviceMemory),
    /// A part of a graph's memory: where the record of its errors is. Runs of the graph that follow have the same.
    Graph {
        errors: u64,
        _memory: Arc<DeviceMemory>,
    },
}

/// When the tasks of a launch begin and end.
pub(crate) struct Times {
    begin: Instant,
    /// Numbers of tasks, and the driver's notes before and behind them.
    pub(crate) marks: Vec<(usize, u64, u64)>,
}

impl Times {
    pub(crate) fn new() -> Self {
        Self {
            begin: Instant::now(),
            marks: Vec::new(),
        }
    }

    /// Says how long each task took.
    pub(crate) fn note(self, driver: &dyn Driver, trace: &TaskTrace) -> Result<(), DriverError> {
        // They ran one behind the other.
        let mut at = self.begin;
        for (task, before, after) in self.marks {
            let end = at + driver.between(before, after)?;
            trace.note(task, at, end);
            at = end;
        }
        trace.took(at - self.begin);
        Ok(())
    }
}

/// Where blocks begin is a multiple of this.
const ALIGNMENT: u64 = 64;

/// A graph on a device.
pub(crate) struct Made {
    pub(crate) device: Arc<Opened>,
    pub(crate) memory: Arc<DeviceMemory>,
    pub(crate) calls: Vec<Call>,
    /// How much all launches are given.
    pub(crate) given: u64,
    /// The graph, as the driver numbers it.
    pub(crate) number: u64,
}

/// A launch of a graph: where its block begins in the graph's memory, and what is where in it.
pub(crate) struct Call {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) at: u64,
    pub(crate) parts: Parts,
}

/// The graph that runs on a device.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) run: Mutex<Option<Run>>,
    /// Whether launches of it wait to be sent.
    pub(crate) waits: AtomicBool,
}

pub(crate) struct Run {
    /// Who runs it: launches of others are none of its.
    pub(crate) thread: ThreadId,
    pub(crate) made: Option<Made>,
    /// The kernels that were called, and whether all can be in a graph.
    pub(crate) called: Vec<Arc<Kernel>>,
    pub(crate) fits: bool,
    pub(crate) waiting: Vec<Waiting>,
}

pub(crate) struct Waiting {
    pub(crate) call: usize,
    pub(crate) given: Vec<u8>,
    pub(crate) queued: Queued,
}

impl Made {
    pub(crate) fn new(
        device: &Arc<Opened>,
        kernels: Vec<Arc<Kernel>>,
    ) -> Result<Self, DriverError> {
        let mut at = 0;
        let mut starts = Vec::new();
        for kernel in &kernels {
            starts.push(at);
            at = (at + kernel.words.given()).next_multiple_of(ALIGNMENT);
        }
        let (given, mut behind) = (at, at);
        let mut calls = Vec::new();
        for (kernel, at) in kernels.into_iter().zip(starts) {
            let parts = kernel.words.in_graph(at, behind);
            behind = (at + parts.bytes).next_multiple_of(ALIGNMENT);
            calls.push(Call { kernel, at, parts });
        }
        let memory = Arc::new(DeviceMemory::zeroed(device, behind)?);
        let driver = device.driver()?;
        let mut launches = Vec::new();
        for Call { kernel, at, parts } in &calls {
            let block = memory.address + at;
            launches.extend(kernel.launches(block, parts, driver.card().blocks)?);
        }
        let number = driver.graph(&launches)?;
        Ok(Self {
            device: device.clone(),
            memory,
            calls,
            given,
            number,
        })
    }

    pub(crate) fn is_of(&self, kernels: &[Arc<Kernel>]) -> bool {
        let calls = self.calls.iter().map(|call| &call.kernel);
        self.calls.len() == kernels.len() && calls.zip(kernels).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Launches all as one.
    pub(crate) fn launch(
        &self,
        driver: &dyn Driver,
        waiting: &[Waiting],
    ) -> Result<(), DriverError> {
        let mut given = vec![0; self.given as usize];
        for (call, waiting) in self.calls.iter().zip(waiting) {
            let at = call.at as usize;
            given[at..at + waiting.given.len()].copy_from_slice(&waiting.given);
        }
        driver.write(self.memory.address, &given)?;
        driver.launch_graph(self.number)
    }

    /// Launches one of them.
    pub(crate) fn launch_one(
        &self,
        driver: &dyn Driver,
        waiting: &Waiting,
    ) -> Result<(), DriverError> {
        let Call { kernel, at, parts } = &self.calls[waiting.call];
        let block = self.memory.address + at;
        driver.write(block, &waiting.given)?;
        let launches = kernel.launches(block, parts, driver.card().blocks)?;
        launches
            .iter()
            .try_for_each(|asked| driver.launch(asked.function, asked.grid, &asked.params))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.driver() {
            driver.drop_graph(self.number);
        }
    }
}

impl Running {
    pub(crate) fn run(&self) -> MutexGuard<'_, Option<Run>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
