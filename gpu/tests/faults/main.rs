//! What is said when a device does not do what it is asked for, and that nothing is lost by it.

mod assembled;
mod faulty;
mod graph;
mod later;
mod residence;

use aerogel_gpu::DriverError;
use aerogel_runtime::launch::KernelFailure;
use aerogel_runtime::{Device, MemoryError};

use self::faulty::{COUNT, array, code, first, launch, open};

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
    let mut gone = 0;
    for k in 1..100 {
        let (device, faults) = open();
        let array = array();
        faults.plan(Some((k, false, lost())));
        let kernel = match device.load(&code("count", COUNT)) {
            Ok(kernel) => kernel,
            Err(e) => {
                assert!(
                    e.to_string()
                        .contains("the device was lost: it fell off the bus"),
                    "{e}"
                );
                assert!(!device.is_usable());
                continue;
            }
        };
        match launch(&*kernel, &array) {
            Ok(sum) => {
                assert!(faults.is_pending() && sum == 41 && gone > 0);
                return;
            }
            Err(KernelFailure::Device(what)) => {
                assert!(
                    what.contains("the device was lost: it fell off the bus"),
                    "{what}"
                );
                assert!(!device.is_usable(), "call {k}");
            }
            Err(KernelFailure::Memory(e)) => assert_eq!(e, MemoryError::DeviceLost, "call {k}"),
            Err(other) => panic!("call {k}: {other:?}"),
        }
        // Another device takes over what the host has. What only the lost one had is gone, and everybody who asks is told,
        // until it is written anew.
        let (other, _) = open();
        let other = other.load(&code("count", COUNT)).unwrap();
        match launch(&*other, &array) {
            Ok(sum) => assert_eq!(sum, 41, "call {k}"),
            Err(e) => {
                gone += 1;
                let lost = MemoryError::DeviceLost;
                assert_eq!(e, KernelFailure::Memory(lost), "call {k}");
                assert_eq!(first(&array), Err(lost), "call {k}");
                array.write(0, &[40, 0, 0, 0]).unwrap_err();
                assert!(array.address().is_err() && array.lend().is_err());
                let mut all = [0; 64];
                all[0] = 40;
                array.write(0, &all).unwrap();
                assert_eq!(launch(&*other, &array), Ok(41), "call {k}");
            }
        }
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
        bad.contains("the driver rejects the code: line 11: `addle` is not known"),
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
    let place = "stray, line 29: ld.global.b64 %rd1, [64];";
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
    assert_eq!(
        said(DriverError::OutOfMemory(7)),
        "out of memory on the device: cannot allocate 7 bytes"
    );
    // What the driver needs for itself, say for the stacks of a launch.
    let unknown = MemoryError::DeviceFull { bytes: 0 };
    for text in [said(DriverError::OutOfMemory(0)), unknown.to_string()] {
        assert_eq!(text, "out of memory on the device");
    }
    let none = said(DriverError::NoCard(0, 0));
    assert_eq!(
        none,
        "there is no device cuda:0: the driver lists no devices"
    );
    let old = said(DriverError::OldCard("GTX 1080".to_owned(), 61));
    assert_eq!(
        old,
        "GTX 1080 has compute capability 6.1, and 7.0 is needed"
    );
}
