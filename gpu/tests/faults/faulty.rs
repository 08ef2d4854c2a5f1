//! The machine as a driver that fails when it is told to, and kernels for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aerogel_gpu::{Card, Driver, DriverError, GpuDevice, Grid, KernelLaunch, MachineDriver};
use aerogel_ptx::Options;
use aerogel_runtime::launch::{Args, End, KernelFailure, Later, Launch};
use aerogel_runtime::{
    ArgSlot, Bounds, Buffer, KernelCode, LoadedKernel, MemoryError, Order, TaskCode, TreeMemory,
};

/// A kernel that adds one to the first number of an array, and returns what is there then.
pub(crate) const COUNT: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .entry count(.param .u64 ctx, .param .u64 lo, .param .u64 hi) {
        .reg .b64 %rd<8>;
        ld.param.b64 %rd1, [ctx];
        ld.global.b64 %rd2, [%rd1];
        ld.global.b64 %rd3, [%rd2];
        ld.global.b64 %rd4, [%rd3];
        add.s64 %rd4, %rd4, 1;
        st.global.b64 [%rd3], %rd4;
        ld.global.b64 %rd5, [%rd1+24];
        st.global.b64 [%rd5], %rd4;
        ret;
    }
    .visible .entry tick(.param .u64 ctx, .param .u64 lo, .param .u64 hi) {
        .reg .b64 %rd<8>;
        ld.param.b64 %rd1, [ctx];
        ld.global.b64 %rd2, [%rd1];
        ld.global.b64 %rd3, [%rd2];
        ld.global.b64 %rd4, [%rd3];
        add.s64 %rd4, %rd4, 1;
        st.global.b64 [%rd3], %rd4;
        ret;
    }
    .visible .entry stray(.param .u64 ctx, .param .u64 lo, .param .u64 hi) {
        .reg .b64 %rd<8>;
        ld.global.b64 %rd1, [64];
        ret;
    }
    // The first number is counted up to 42, and beyond that is an error, as generated code has it.
    .visible .entry upto(.param .u64 ctx, .param .u64 lo, .param .u64 hi) {
        .reg .b64 %rd<8>;
        .reg .b32 %r<4>;
        .reg .pred %p<4>;
        ld.param.b64 %rd1, [ctx];
        ld.global.b64 %rd6, [%rd1+56];
        ld.global.b32 %r1, [%rd6];
        setp.ne.s32 %p1, %r1, 0;
        @%p1 bra $end;
        ld.global.b64 %rd2, [%rd1];
        ld.global.b64 %rd3, [%rd2];
        ld.global.b64 %rd4, [%rd3];
        setp.lt.s64 %p2, %rd4, 42;
        @%p2 bra $good;
        ld.global.b64 %rd5, [%rd1+32];
        mov.b32 %r2, 2;
        st.global.b32 [%rd5], %r2;
        mov.b32 %r2, 7;
        st.global.b32 [%rd5+4], %r2;
        mov.b32 %r2, 1;
        st.global.b32 [%rd6], %r2;
        bra.uni $end;
    $good:
        add.s64 %rd4, %rd4, 1;
        st.global.b64 [%rd3], %rd4;
    $end:
        ret;
    }
    .visible .entry forever(.param .u64 ctx, .param .u64 lo, .param .u64 hi) {
    $again:
        bra.uni $again;
    }";

pub(crate) fn code(symbol: &str, text: &str) -> KernelCode {
    KernelCode {
        objects: vec![text.as_bytes().to_vec()],
        tasks: vec![TaskCode {
            symbol: symbol.to_owned(),
            bounds: Bounds::Serial,
            batch: 1,
            cost: 1.0,
            max_threads: None,
            block: None,
            in_blocks: false,
            sums: None,
            exchange: None,
            order: Order::Any,
        }],
        args: vec![ArgSlot::Pointer, ArgSlot::Extent],
        written: vec![true],
        n_results: usize::from(symbol == "count"),
        ..KernelCode::default()
    }
}

/// The call that shall fail, counted from 1, and how; of allocations alone, if so.
#[derive(Default)]
pub(crate) struct Plan {
    calls: usize,
    fail: Option<(usize, bool, DriverError)>,
    asked: Vec<&'static str>,
    /// What happens at the next launch.
    at_launch: Option<Box<dyn FnOnce() + Send>>,
}

#[derive(Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<Plan>>);

impl Faults {
    pub(crate) fn plan(&self, fail: Option<(usize, bool, DriverError)>) {
        *self.0.lock().unwrap() = Plan {
            fail,
            ..Plan::default()
        };
    }

    pub(crate) fn at_launch(&self, work: impl FnOnce() + Send + 'static) {
        self.0.lock().unwrap().at_launch = Some(Box::new(work));
    }

    /// Whether what was planned has not come yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.0.lock().unwrap().fail.is_some()
    }

    /// What the driver was asked for since this was asked last.
    pub(crate) fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }

    fn step(&self, what: &'static str) -> Result<(), DriverError> {
        let mut plan = self.0.lock().unwrap();
        plan.asked.push(what);
        let allocates = ["allocate", "reserve", "commit"].contains(&what);
        let Some((at, only, _)) = plan.fail.as_ref() else {
            return Ok(());
        };
        if *only && !allocates {
            return Ok(());
        }
        let is_it = plan.calls + 1 == *at;
        plan.calls += 1;
        match is_it {
            true => Err(plan.fail.take().expect("it was there").2),
            false => Ok(()),
        }
    }
}

struct Faulty {
    machine: MachineDriver,
    faults: Faults,
}

impl Driver for Faulty {
    fn card(&self) -> &Card {
        self.machine.card()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DriverError> {
        self.faults.step("allocate")?;
        self.machine.allocate(bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<u64, DriverError> {
        self.faults.step("reserve")?;
        self.machine.reserve(bytes)
    }

    fn commit(&self, address: u64, bytes: u64) -> Result<(), DriverError> {
        self.faults.step("commit")?;
        self.machine.commit(address, bytes)
    }

    fn free(&self, address: u64) {
        self.machine.free(address);
    }

    fn write(&self, to: u64, from: &[u8]) -> Result<(), DriverError> {
        self.faults.step("write")?;
        self.machine.write(to, from)
    }

    fn read(&self, from: u64, to: &mut [u8]) -> Result<(), DriverError> {
        self.faults.step("read")?;
        self.machine.read(from, to)
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), DriverError> {
        self.faults.step("copy")?;
        self.machine.copy(to, from, bytes)
    }

    fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), DriverError> {
        self.faults.step("fill")?;
        self.machine.fill(address, bytes, value)
    }

    fn assemble(&self, ptx: &str) -> Result<Vec<u8>, DriverError> {
        self.faults.step("assemble")?;
        self.machine.assemble(ptx)
    }

    fn load(&self, code: &[u8]) -> Result<u64, DriverError> {
        self.faults.step("load")?;
        self.machine.load(code)
    }

    fn set_stack(&self, bytes: u64) -> Result<(), DriverError> {
        self.faults.step("set_stack")?;
        self.machine.set_stack(bytes)
    }

    fn unload(&self, module: u64) {
        self.machine.unload(module);
    }

    fn function(&self, module: u64, name: &str) -> Result<u64, DriverError> {
        self.faults.step("function")?;
        self.machine.function(module, name)
    }

    fn launch(&self, function: u64, grid: Grid, params: &[u64]) -> Result<(), DriverError> {
        self.faults.step("launch")?;
        let work = self.faults.0.lock().unwrap().at_launch.take();
        work.into_iter().for_each(|work| work());
        self.machine.launch(function, grid, params)
    }

    fn graph(&self, launches: &[KernelLaunch]) -> Result<u64, DriverError> {
        self.faults.step("graph")?;
        self.machine.graph(launches)
    }

    fn launch_graph(&self, graph: u64) -> Result<(), DriverError> {
        self.faults.step("launch_graph")?;
        self.machine.launch_graph(graph)
    }

    fn drop_graph(&self, graph: u64) {
        self.machine.drop_graph(graph);
    }

    fn mark(&self) -> Result<u64, DriverError> {
        self.faults.step("mark")?;
        self.machine.mark()
    }

    fn between(&self, first: u64, last: u64) -> Result<Duration, DriverError> {
        self.faults.step("between")?;
        self.machine.between(first, last)
    }

    fn stream(&self) -> u64 {
        self.machine.stream()
    }

    fn adopt(&self, address: u64, bytes: u64, stream: Option<u64>) -> Result<(), DriverError> {
        self.faults.step("adopt")?;
        self.machine.adopt(address, bytes, stream)
    }

    fn stop_word(&self) -> u64 {
        self.machine.stop_word()
    }

    fn wait(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError> {
        self.faults.step("wait")?;
        self.machine.wait(stop)
    }
}

pub(crate) fn open() -> (GpuDevice, Faults) {
    with_memory(1 << 20)
}

pub(crate) fn with_memory(bytes: u64) -> (GpuDevice, Faults) {
    let faults = Faults::default();
    let options = Options {
        memory: bytes,
        instructions: 1 << 16,
        ..Options::default()
    };
    let driver = Faulty {
        machine: MachineDriver::new(options),
        faults: faults.clone(),
    };
    (GpuDevice::new(Box::new(driver)), faults)
}

/// A buffer whose first number is 40.
pub(crate) fn array() -> Buffer {
    let array = Buffer::zeroed(64).unwrap();
    array.write(0, &40_u64.to_le_bytes()).unwrap();
    array
}

pub(crate) fn launch(kernel: &dyn LoadedKernel, array: &Buffer) -> Result<u64, KernelFailure> {
    launch_on(kernel, array, &[])
}

pub(crate) fn launch_on(
    kernel: &dyn LoadedKernel,
    array: &Buffer,
    roots: &[&TreeMemory],
) -> Result<u64, KernelFailure> {
    let mut args = Args::new();
    args.array(array, &[array.len() / 8], 8).unwrap();
    let (mut results, sink) = ([0], Mutex::new(String::new()));
    let outcome = kernel.launch(Launch {
        args: &args,
        roots,
        results: &mut results,
        sink: &sink,
        seed: 0,
        most_reserved: 0,
        trace: None,
        later: None,
    });
    outcome.map(|()| results[0])
}

pub(crate) fn first(array: &Buffer) -> Result<u64, MemoryError> {
    let mut bytes = [0; 8];
    array.read(0, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Receives how launches end that have returned.
#[derive(Default)]
pub(crate) struct Ends(pub(crate) Mutex<Vec<Result<(), KernelFailure>>>);

impl Later for Ends {
    fn over(&self, end: End) {
        self.0.lock().unwrap().push(end.outcome);
    }
}

/// Launches without waiting.
pub(crate) fn launch_later(
    kernel: &dyn LoadedKernel,
    array: &Buffer,
    ends: &Arc<Ends>,
) -> Result<(), KernelFailure> {
    let mut args = Args::new();
    args.array(array, &[array.len() / 8], 8).unwrap();
    let later: Arc<dyn Later> = ends.clone();
    kernel.launch(Launch {
        args: &args,
        roots: &[],
        results: &mut [],
        sink: &Mutex::new(String::new()),
        seed: 0,
        most_reserved: 0,
        trace: None,
        later: Some(&later),
    })
}
