//! What is said when a device does not do what it is asked for, and that nothing is lost by it.

use std::sync::{Arc, Mutex};

use aerogel_gpu::{Card, Driver, DriverError, GpuDevice, Grid, MachineDriver};
use aerogel_ptx::Options;
use aerogel_runtime::launch::{Args, KernelFailure, Launch};
use aerogel_runtime::{
    ArgSlot, Bounds, Buffer, Device, KernelCode, LoadedKernel, MemoryError, TaskCode,
};

/// A kernel that adds one to the first number of an array, and returns what is there then.
const COUNT: &str = "
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
    .visible .entry stray(.param .u64 ctx, .param .u64 lo, .param .u64 hi) {
        .reg .b64 %rd<8>;
        ld.global.b64 %rd1, [64];
        ret;
    }
    .visible .entry forever(.param .u64 ctx, .param .u64 lo, .param .u64 hi) {
    $again:
        bra.uni $again;
    }";

fn code(symbol: &str, text: &str) -> KernelCode {
    KernelCode {
        objects: vec![text.as_bytes().to_vec()],
        tasks: vec![TaskCode {
            symbol: symbol.to_owned(),
            bounds: Bounds::Serial,
            step: 1,
            cost: 1.0,
            max_threads: None,
            sums: None,
        }],
        args: vec![ArgSlot::Pointer, ArgSlot::Extent],
        written: vec![true],
        n_results: 1,
        ..KernelCode::default()
    }
}

/// The call that shall fail, counted from 1, and how; of allocations alone, if so.
#[derive(Default)]
struct Plan {
    calls: usize,
    fail: Option<(usize, bool, DriverError)>,
}

#[derive(Clone, Default)]
struct Faults(Arc<Mutex<Plan>>);

impl Faults {
    fn plan(&self, fail: Option<(usize, bool, DriverError)>) {
        *self.0.lock().unwrap() = Plan { calls: 0, fail };
    }

    /// Whether what was planned has not come yet.
    fn is_pending(&self) -> bool {
        self.0.lock().unwrap().fail.is_some()
    }

    fn step(&self, allocates: bool) -> Result<(), DriverError> {
        let mut plan = self.0.lock().unwrap();
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
        self.faults.step(true)?;
        self.machine.allocate(bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<u64, DriverError> {
        self.faults.step(true)?;
        self.machine.reserve(bytes)
    }

    fn commit(&self, address: u64, bytes: u64) -> Result<(), DriverError> {
        self.faults.step(true)?;
        self.machine.commit(address, bytes)
    }

    fn free(&self, address: u64) {
        self.machine.free(address);
    }

    fn write(&self, to: u64, from: &[u8]) -> Result<(), DriverError> {
        self.faults.step(false)?;
        self.machine.write(to, from)
    }

    fn read(&self, from: u64, to: &mut [u8]) -> Result<(), DriverError> {
        self.faults.step(false)?;
        self.machine.read(from, to)
    }

    fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), DriverError> {
        self.faults.step(false)?;
        self.machine.fill(address, bytes, value)
    }

    fn load(&self, ptx: &str) -> Result<u64, DriverError> {
        self.faults.step(false)?;
        self.machine.load(ptx)
    }

    fn unload(&self, module: u64) {
        self.machine.unload(module);
    }

    fn function(&self, module: u64, name: &str) -> Result<u64, DriverError> {
        self.faults.step(false)?;
        self.machine.function(module, name)
    }

    fn launch(&self, function: u64, grid: Grid, params: &[u64]) -> Result<(), DriverError> {
        self.faults.step(false)?;
        self.machine.launch(function, grid, params)
    }

    fn stop_word(&self) -> u64 {
        self.machine.stop_word()
    }

    fn wait(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError> {
        self.faults.step(false)?;
        self.machine.wait(stop)
    }
}

fn open() -> (GpuDevice, Faults) {
    let faults = Faults::default();
    let options = Options {
        memory: 1 << 20,
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
fn array() -> Buffer {
    let array = Buffer::zeroed(64).unwrap();
    array.write(0, &40_u64.to_le_bytes()).unwrap();
    array
}

fn launch(kernel: &dyn LoadedKernel, array: &Buffer) -> Result<u64, KernelFailure> {
    let mut args = Args::new();
    args.array(array, &[8], 8).unwrap();
    let (mut results, sink) = ([0], Mutex::new(String::new()));
    let outcome = kernel.launch(Launch {
        args: &args,
        roots: &[],
        results: &mut results,
        sink: &sink,
        seed: 0,
        most_reserved: 0,
        trace: None,
    });
    outcome.map(|()| results[0])
}

fn first(array: &Buffer) -> Result<u64, MemoryError> {
    let mut bytes = [0; 8];
    array.read(0, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

#[test]
fn every_allocation_may_fail() {
    let mut failed = 0;
    for k in 1.. {
        let (device, faults) = open();
        faults.plan(Some((k, true, DriverError::OutOfMemory(123))));
        let kernel = device.load(&code("count", COUNT)).unwrap();
        let array = array();
        match launch(&*kernel, &array) {
            Err(failure) => {
                let full = MemoryError::DeviceFull { bytes: 123 };
                assert_eq!(failure, KernelFailure::Memory(full), "allocation {k}");
                failed += 1;
            }
            Ok(sum) => {
                assert_eq!(sum, 41);
                break;
            }
        }
        assert!(!faults.is_pending() && device.is_usable());
        // Nothing was done, and the next launch does it.
        assert_eq!(first(&array), Ok(40));
        assert_eq!(launch(&*kernel, &array), Ok(41));
        assert_eq!(first(&array), Ok(41));
    }
    // The array's mirror, and the block of the launch.
    assert_eq!(failed, 2);
}

#[test]
fn a_device_may_be_lost_at_any_call() {
    let lost = || DriverError::Lost("it fell off the bus".to_owned());
    for k in 1..100 {
        let (device, faults) = open();
        let array = array();
        faults.plan(Some((k, false, lost())));
        let kernel = match device.load(&code("count", COUNT)) {
            Ok(kernel) => kernel,
            Err(e) => {
                assert!(
                    e.to_string()
                        .contains("the device is gone: it fell off the bus"),
                    "{e}"
                );
                assert!(!device.is_usable());
                continue;
            }
        };
        match launch(&*kernel, &array) {
            Ok(sum) => {
                assert!(faults.is_pending() && sum == 41);
                return;
            }
            Err(KernelFailure::Device(what)) => {
                assert!(
                    what.contains("the device is gone: it fell off the bus"),
                    "{what}"
                );
                assert!(!device.is_usable(), "call {k}");
            }
            Err(KernelFailure::Memory(e)) => assert_eq!(e, MemoryError::DeviceLost, "call {k}"),
            Err(other) => panic!("call {k}: {other:?}"),
        }
        // Another device takes over what the host has.
        let (other, _) = open();
        let kernel = other.load(&code("count", COUNT)).unwrap();
        let sum = launch(&*kernel, &array).unwrap();
        assert!(sum == 41 || sum == 42, "call {k}: {sum}");
    }
    panic!("a launch has no hundred calls");
}

#[test]
fn code_that_a_device_does_not_take() {
    let (device, _) = open();
    let refused = |symbol: &str, text: &str| match device.load(&code(symbol, text)) {
        Ok(_) => panic!("`{symbol}` is loaded"),
        Err(e) => e.to_string(),
    };
    let missing = refused("absent", COUNT);
    assert_eq!(
        missing,
        "cannot load a kernel: the code has no kernel `absent`"
    );
    let bad = refused("count", &COUNT.replace("add.s64", "addle.s64"));
    assert!(
        bad.contains("the driver does not take the code: line 11: `addle` is not known"),
        "{bad}"
    );
}

#[test]
fn kernels_that_do_what_they_must_not() {
    let (device, _) = open();
    let array = array();
    let failure = |symbol| match launch(&*device.load(&code(symbol, COUNT)).unwrap(), &array) {
        Err(KernelFailure::Device(what)) => what,
        other => panic!("{symbol}: {other:?}"),
    };
    let stray = failure("stray");
    let place = "stray, line 19: ld.global.b64 %rd1, [64];";
    assert!(
        stray.contains("belong to no allocation") && stray.contains(place),
        "{stray}"
    );
    let endless = failure("forever");
    assert!(endless.contains("has no end"), "{endless}");
    // The machine, unlike a card, goes on.
    let kernel = device.load(&code("count", COUNT)).unwrap();
    assert_eq!(launch(&*kernel, &array), Ok(41));
}

#[test]
fn what_is_wrong_with_a_driver_is_said() {
    let said = |e: DriverError| e.to_string();
    let old = said(DriverError::TooOld([11, 4], [12, 0]));
    assert_eq!(
        old,
        "the NVIDIA driver is for CUDA 11.4, and at least 12.0 is needed: install a newer one"
    );
    let none = said(DriverError::NoCard(0, 0));
    assert_eq!(none, "there is no device cuda:0: the driver sees none");
    let old = said(DriverError::OldCard("GTX 1080".to_owned(), 61));
    assert_eq!(
        old,
        "GTX 1080 has compute capability 6.1, and 7.0 is needed"
    );
}
