//! The PTX simulator as a driver: launches wait in a queue, as on a GPU, until their results are needed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aerogel_ptx::{Counts, Fault, FaultKind, Machine, Module, Options, Stop};

use crate::driver::{Card, Driver, DriverError, Grid, KernelLaunch};

/// How what it has assembled begins, which is the text otherwise.
const ASSEMBLED: &[u8] = b"\x7fPTX machine\n";

/// A simulator that behaves like a GPU.
pub struct MachineDriver {
    card: Card,
    stop: u64,
    state: Mutex<State>,
}

struct State {
    machine: Machine,
    modules: BTreeMap<u64, Module>,
    functions: Vec<(u64, String)>,
    next_module: u64,
    graphs: BTreeMap<u64, Vec<KernelLaunch>>,
    next_graph: u64,
    queue: Vec<Work>,
    marks: BTreeMap<u64, Instant>,
    next_mark: u64,
    counts: Counts,
    /// Where it is written what each launch took.
    log: Option<File>,
    /// A fault that was found when nobody could be told.
    fault: Option<DriverError>,
}

enum Work {
    Launch(KernelLaunch),
    Mark(u64),
    Write(u64, Vec<u8>),
    Copy(u64, u64, u64),
    Fill(u64, u64, u8),
    Free(u64),
}

impl State {
    fn free(&mut self, address: u64) {
        if let Err(fault) = self.machine.free(address) {
            tracing::error!("memory of the PTX simulator is freed twice: {fault}");
        }
    }
}

impl MachineDriver {
    /// A machine of its own.
    ///
    /// # Panics
    /// If the machine has less than a few bytes of memory.
    pub fn new(options: Options) -> Self {
        let mut machine = Machine::new(options.clone());
        let stop = machine.allocate(8).expect("a machine has memory");
        machine.write(stop, &[0; 8]).expect("it was allocated");
        Self {
            card: Card {
                name: "the PTX machine".to_owned(),
                sm: 80,
                blocks: 4,
                threads: options.threads as u32,
                memory: options.memory,
                driver: [12, 0],
            },
            stop,
            state: Mutex::new(State {
                machine,
                modules: BTreeMap::new(),
                functions: Vec::new(),
                next_module: 1,
                graphs: BTreeMap::new(),
                next_graph: 1,
                queue: Vec::new(),
                marks: BTreeMap::new(),
                next_mark: 1,
                counts: Counts::default(),
                log: None,
                fault: None,
            }),
        }
    }

    /// Writes what each launch takes to a file, a line of JSON for each.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn log_counts(&self, path: &Path) -> io::Result<()> {
        let file = File::options().create(true).append(true).open(path)?;
        self.lock().log = Some(file);
        Ok(())
    }

    /// What all launches so far took.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect_possible(&self, launch: &KernelLaunch) -> Result<(), DriverError> {
        let (threads, most) = (launch.grid.threads, self.card.threads);
        match threads == 0 || threads > most {
            true => Err(DriverError::Refused(format!(
                "a block of {threads} threads, where 1 to {most} are possible"
            ))),
            false => Ok(()),
        }
    }

    /// Runs what waits, up to a fault.
    fn drain(
        &self,
        state: &mut State,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), DriverError> {
        if let Some(fault) = state.fault.take() {
            return Err(fault);
        }
        let mut works = std::mem::take(&mut state.queue).into_iter();
        let outcome = works.try_for_each(|work| self.work(state, work, stop));
        // Kernels behind a fault are not run; but what the host has done stays done.
        for work in works.filter(|work| !matches!(work, Work::Launch(_))) {
            let _ = self.work(state, work, stop);
        }
        outcome
    }

    fn work(
        &self,
        state: &mut State,
        work: Work,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), DriverError> {
        match work {
            Work::Launch(asked) => self.run(state, &asked, stop)?,
            Work::Mark(number) => {
                state.marks.insert(number, Instant::now());
            }
            Work::Write(to, bytes) => state.machine.write(to, &bytes).map_err(of)?,
            Work::Copy(to, from, bytes) => {
                let mut all = vec![0; bytes as usize];
                state.machine.read(from, &mut all).map_err(of)?;
                state.machine.write(to, &all).map_err(of)?;
            }
            Work::Fill(at, bytes, value) => state.machine.fill(at, bytes, value).map_err(of)?,
            Work::Free(address) => state.free(address),
        }
        Ok(())
    }

    fn run(
        &self,
        state: &mut State,
        asked: &KernelLaunch,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), DriverError> {
        let (module, name) = &state.functions[asked.function as usize];
        let module = &state.modules[module];
        let Grid {
            blocks,
            threads,
            shared,
        } = asked.grid;
        let params: Vec<_> = asked
            .params
            .iter()
            .map(|p| p.to_le_bytes().to_vec())
            .collect();
        let stop = Stop {
            word: self.stop,
            asked: stop,
        };
        let ran = state.machine.launch_until(
            (module, name),
            [blocks, 1, 1],
            [threads, 1, 1],
            u64::from(shared),
            &params,
            Some(stop),
        );
        let ran = ran.map_err(of)?;
        state.counts.add(&ran.counts);
        if let Some(log) = &mut state.log {
            let line = line(name, asked.grid, &ran.counts);
            writeln!(log, "{line}")
                .map_err(|e| DriverError::Other(format!("counts cannot be written: {e}")))?;
        }
        Ok(())
    }

    /// Memory, if there is some; perhaps only when what was given back is.
    fn had(
        &self,
        ask: impl Fn(&mut Machine) -> Option<u64>,
        bytes: u64,
    ) -> Result<u64, DriverError> {
        let mut state = self.lock();
        if let Some(address) = ask(&mut state.machine) {
            return Ok(address);
        }
        self.drain(&mut state, &|| false)?;
        ask(&mut state.machine).ok_or(DriverError::OutOfMemory(bytes))
    }
}

/// What a launch took, as JSON.
fn line(kernel: &str, grid: Grid, counts: &Counts) -> String {
    let Counts {
        instructions,
        lanes,
        divergent,
        read,
        written,
        atomics,
        sectors,
        conflicts,
    } = counts;
    let Grid {
        blocks, threads, ..
    } = grid;
    format!(
        "{{\"kernel\": \"{kernel}\", \"blocks\": {blocks}, \"threads\": {threads}, \"instructions\": {instructions}, \
         \"lanes\": {lanes}, \"divergent\": {divergent}, \"read\": {read}, \"written\": {written}, \
         \"atomics\": {atomics}, \"sectors\": {sectors}, \"conflicts\": {conflicts}}}"
    )
}

fn of(fault: Fault) -> DriverError {
    match fault.kind {
        FaultKind::Launch => DriverError::Refused(fault.message),
        _ => DriverError::Fault(fault.to_string()),
    }
}

impl Driver for MachineDriver {
    fn card(&self) -> &Card {
        &self.card
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DriverError> {
        self.had(|machine| machine.allocate(bytes), bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<u64, DriverError> {
        self.had(|machine| machine.reserve(bytes), bytes)
    }

    fn commit(&self, address: u64, bytes: u64) -> Result<(), DriverError> {
        let mut state = self.lock();
        if state.machine.commit(address, bytes).map_err(of)? {
            return Ok(());
        }
        // What was given back may still wait.
        self.drain(&mut state, &|| false)?;
        match state.machine.commit(address, bytes).map_err(of)? {
            true => Ok(()),
            false => Err(DriverError::OutOfMemory(bytes)),
        }
    }

    fn free(&self, address: u64) {
        self.lock().queue.push(Work::Free(address));
    }

    fn write(&self, to: u64, from: &[u8]) -> Result<(), DriverError> {
        self.lock().queue.push(Work::Write(to, from.to_vec()));
        Ok(())
    }

    fn read(&self, from: u64, to: &mut [u8]) -> Result<(), DriverError> {
        let mut state = self.lock();
        self.drain(&mut state, &|| false)?;
        state.machine.read(from, to).map_err(of)
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), DriverError> {
        self.lock().queue.push(Work::Copy(to, from, bytes));
        Ok(())
    }

    fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), DriverError> {
        self.lock().queue.push(Work::Fill(address, bytes, value));
        Ok(())
    }

    fn assemble(&self, ptx: &str) -> Result<Vec<u8>, DriverError> {
        Ok([ASSEMBLED, ptx.as_bytes()].concat())
    }

    fn load(&self, code: &[u8]) -> Result<u64, DriverError> {
        let text = std::str::from_utf8(code.strip_prefix(ASSEMBLED).unwrap_or(code));
        let text = text.map_err(|_| DriverError::BadCode("it is no text".to_owned()))?;
        let mut state = self.lock();
        let module = state.machine.load(text);
        let module = module.map_err(|e| DriverError::BadCode(e.to_string()))?;
        let number = state.next_module;
        state.next_module += 1;
        state.modules.insert(number, module);
        Ok(number)
    }

    fn set_stack(&self, _: u64) -> Result<(), DriverError> {
        Ok(())
    }

    fn unload(&self, module: u64) {
        let mut state = self.lock();
        if let Err(fault) = self.drain(&mut state, &|| false) {
            state.fault = Some(fault);
        }
        if let Some(module) = state.modules.remove(&module) {
            state.machine.unload(&module);
        }
    }

    fn function(&self, module: u64, name: &str) -> Result<u64, DriverError> {
        let mut state = self.lock();
        let found = state.modules.get(&module);
        if !found.is_some_and(|module| module.has_kernel(name)) {
            return Err(DriverError::NoFunction(name.to_owned()));
        }
        state.functions.push((module, name.to_owned()));
        Ok(state.functions.len() as u64 - 1)
    }

    fn launch(&self, function: u64, grid: Grid, params: &[u64]) -> Result<(), DriverError> {
        let launch = KernelLaunch {
            function,
            grid,
            params: params.to_vec(),
        };
        self.expect_possible(&launch)?;
        self.lock().queue.push(Work::Launch(launch));
        Ok(())
    }

    fn graph(&self, launches: &[KernelLaunch]) -> Result<u64, DriverError> {
        launches
            .iter()
            .try_for_each(|launch| self.expect_possible(launch))?;
        let mut state = self.lock();
        let number = state.next_graph;
        state.next_graph += 1;
        state.graphs.insert(number, launches.to_vec());
        Ok(number)
    }

    fn launch_graph(&self, graph: u64) -> Result<(), DriverError> {
        let mut state = self.lock();
        let launches = state.graphs.get(&graph).cloned();
        let launches = launches.ok_or_else(|| DriverError::Other("no such graph".to_owned()))?;
        state.queue.extend(launches.into_iter().map(Work::Launch));
        Ok(())
    }

    fn drop_graph(&self, graph: u64) {
        self.lock().graphs.remove(&graph);
    }

    fn mark(&self) -> Result<u64, DriverError> {
        let mut state = self.lock();
        let number = state.next_mark;
        state.next_mark += 1;
        state.queue.push(Work::Mark(number));
        Ok(number)
    }

    fn between(&self, first: u64, last: u64) -> Result<Duration, DriverError> {
        let mut state = self.lock();
        self.drain(&mut state, &|| false)?;
        let [first, last] = [first, last].map(|number| state.marks.remove(&number));
        let both = first.zip(last);
        let (first, last) = both.ok_or_else(|| DriverError::Other("no such mark".to_owned()))?;
        Ok(last.saturating_duration_since(first))
    }

    fn stream(&self) -> u64 {
        1
    }

    fn adopt(&self, address: u64, bytes: u64, _: Option<u64>) -> Result<(), DriverError> {
        let state = self.lock();
        match state.machine.holds(address, bytes) {
            true => Ok(()),
            false => Err(DriverError::Refused(format!(
                "{bytes} bytes at {address:#x} are not in its memory"
            ))),
        }
    }

    fn stop_word(&self) -> u64 {
        self.stop
    }

    fn wait(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError> {
        let mut state = self.lock();
        self.drain(&mut state, stop)
    }
}
