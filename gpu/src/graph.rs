//! Launches that are described once and run again and again: `ti.graph`.
//!
//! Where the host has nothing to do between them, a run is two calls of the driver: one copy of what all launches are given,
//! and one launch of a graph. What arguments change is in the copy alone, so the driver's graph stays as it is until other
//! kernels are called. The first run shows which these are.
//!
//! During a run, its launches are deferred and sent together (`Opened::wait_in_graph`). If any thread needs the driver
//! meanwhile, it first sends the deferred launches (`Opened::driver`), and the run continues as single launches.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self};

use aerogel_runtime::launch::Later;

use crate::block::Parts;
use crate::device::GpuDevice;
use crate::driver::{Driver, DriverError};
use crate::kernel::Kernel;
use crate::memory::DeviceMemory;
use crate::opened::Opened;
use crate::waiting::{Block, Made, Queued, Run, Waiting};

/// The state that is stored between the runs of a graph.
#[derive(Default)]
pub struct Graph(Mutex<Option<Made>>);

/// The block of a launch in the graph that runs.
pub(crate) struct Place {
    call: usize,
    kernel: Arc<Kernel>,
    memory: Arc<DeviceMemory>,
    pub(crate) at: u64,
    pub(crate) parts: Parts,
}

impl Opened {
    /// The place of a launch, if it is one of the graph that this thread runs, and of those that it was made of.
    pub(crate) fn place(&self, kernel: &Arc<Kernel>, fits: bool) -> Option<Place> {
        let mut run = self.running.run();
        let run = run
            .as_mut()
            .filter(|run| run.thread == thread::current().id())?;
        let number = run.called.len();
        run.called.push(kernel.clone());
        run.fits &= fits;
        let made = run.made.as_ref().filter(|_| fits)?;
        let call = made.calls.get(number)?;
        Arc::ptr_eq(&call.kernel, kernel).then(|| Place {
            call: number,
            kernel: kernel.clone(),
            memory: made.memory.clone(),
            at: made.memory.address + call.at,
            parts: call.parts,
        })
    }

    /// Takes a launch that is sent with the others of its graph.
    pub(crate) fn wait_in_graph(
        &self,
        place: Place,
        given: Vec<u8>,
        later: &Arc<dyn Later>,
    ) -> Result<(), DriverError> {
        let mut run = self.running.run();
        let gone = || DriverError::Other("the run of a graph is over".to_owned());
        let run = run.as_mut().ok_or_else(gone)?;
        run.waiting.push(Waiting {
            call: place.call,
            given,
            queued: Queued {
                kernel: place.kernel,
                block: Block::Graph {
                    errors: place.at + place.parts.errors,
                    _memory: place.memory,
                },
                log: None,
                times: None,
                later: later.clone(),
            },
        });
        self.running.waits.store(true, Ordering::Release);
        Ok(())
    }

    /// Sends what waits, one by one.
    pub(crate) fn send_waiting(&self, driver: &dyn Driver) -> Result<(), DriverError> {
        if !self.running.waits.load(Ordering::Acquire) {
            return Ok(());
        }
        // What is dropped is dropped when nothing is locked: it speaks to the driver.
        let mut unsent = Vec::new();
        let mut run = self.running.run();
        self.running.waits.store(false, Ordering::Release);
        let Some(run) = run.as_mut() else {
            return Ok(());
        };
        let sent = self.send(driver, run, &mut unsent);
        sent.inspect_err(|e| self.note(e))
    }

    fn send(
        &self,
        driver: &dyn Driver,
        run: &mut Run,
        unsent: &mut Vec<Waiting>,
    ) -> Result<(), DriverError> {
        *unsent = std::mem::take(&mut run.waiting);
        let Some(made) = &run.made else {
            return Ok(());
        };
        while !unsent.is_empty() {
            made.launch_one(driver, &unsent[0])?;
            self.queue().push(unsent.remove(0).queued);
        }
        Ok(())
    }

    /// Sends what waits, as one if it is all that the graph has.
    fn send_graph(&self, run: &mut Run, unsent: &mut Vec<Waiting>) -> Result<(), DriverError> {
        let driver = self.idle_driver()?;
        match &run.made {
            Some(made) if run.waiting.len() == made.calls.len() && made.is_of(&run.called) => {
                *unsent = std::mem::take(&mut run.waiting);
                made.launch(driver, unsent)?;
                self.queue().extend(unsent.drain(..).map(|one| one.queued));
                Ok(())
            }
            _ => self.send(driver, run, unsent),
        }
    }
}

impl GpuDevice {
    /// Begins a run of a graph: launches of this thread are parts of it until `end`. Whether it does: not while another
    /// thread runs one.
    pub fn begin(&self, graph: &Graph) -> bool {
        let made = graph
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // A graph of a lost device, for example, is useless.
        let made = made.filter(|made| Arc::ptr_eq(&made.device, &self.opened));
        let mut run = self.opened.running.run();
        if run.is_some() {
            drop(run);
            *graph.0.lock().unwrap_or_else(PoisonError::into_inner) = made;
            return false;
        }
        *run = Some(Run {
            thread: thread::current().id(),
            made,
            called: Vec::new(),
            fits: true,
            waiting: Vec::new(),
        });
        true
    }

    /// Ends a run: deferred launches are sent now, unless they were sent before.
    ///
    /// # Errors
    /// If the driver refuses it, or a launch of before has failed.
    pub fn end(&self, graph: &Graph) -> Result<(), DriverError> {
        let opened = &self.opened;
        let mut unsent = Vec::new();
        let mut running = opened.running.run();
        opened.running.waits.store(false, Ordering::Release);
        let Some(mut run) = running.take() else {
            return Ok(());
        };
        let sent = opened.send_graph(&mut run, &mut unsent);
        drop(running);
        drop(unsent);
        sent.inspect_err(|e| opened.note(e))?;
        let is_another = |made: &Made| !made.is_of(&run.called);
        if run.fits && !run.called.is_empty() && run.made.as_ref().is_none_or(is_another) {
            run.made = None;
            match Made::new(opened, run.called) {
                Ok(made) => run.made = Some(made),
                Err(e) => tracing::debug!("launches are not made a graph: {e}"),
            }
        }
        *graph.0.lock().unwrap_or_else(PoisonError::into_inner) = run.made;
        opened.bound_queue()
    }
}
