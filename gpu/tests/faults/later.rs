//! Launches that return before they have ended.

use std::sync::Arc;

use aerogel_gpu::DriverError;
use aerogel_runtime::launch::KernelFailure;
use aerogel_runtime::{Device, MemoryError};

use super::faulty::{COUNT, Ends, array, code, first, launch_later, open};

#[test]
fn launches_come_one_after_the_other() {
    let (device, _) = open();
    let kernel = device.load(&code("tick", COUNT)).unwrap();
    let (array, ends) = (array(), Arc::new(Ends::default()));
    for _ in 0..700 {
        launch_later(&*kernel, &array, &ends).unwrap();
    }
    // Those beyond what is kept were waited for.
    assert_eq!(ends.0.lock().unwrap().len(), 512);
    assert_eq!(first(&array), Ok(740));
    assert!(ends.0.lock().unwrap().iter().all(Result::is_ok));
    assert_eq!(ends.0.lock().unwrap().len(), 700);
}

#[test]
fn each_is_told_once_when_the_device_is_lost() {
    let lost = || DriverError::Lost("it fell off the bus".to_owned());
    let mut told = 0;
    for k in 1..100 {
        let (device, faults) = open();
        let kernel = device.load(&code("tick", COUNT)).unwrap();
        let (array, ends) = (array(), Arc::new(Ends::default()));
        faults.plan(Some((k, false, lost())));
        let returned: Vec<_> = (0..2)
            .map(|_| launch_later(&*kernel, &array, &ends))
            .collect();
        let waited = device.wait();
        let read = first(&array);
        let ends = std::mem::take(&mut *ends.0.lock().unwrap());
        if faults.is_pending() {
            assert!(told > 1 && waited.is_ok() && read == Ok(42));
            return;
        }
        // Who was not told at once was told then.
        let n_returned = returned.iter().filter(|r| r.is_ok()).count();
        assert_eq!(ends.len(), n_returned, "call {k}");
        for end in ends {
            match end {
                Ok(()) => assert_eq!(read, Err(MemoryError::DeviceLost), "call {k}"),
                Err(KernelFailure::Device(what)) => {
                    told += 1;
                    assert!(what.contains("it fell off the bus"), "{what}");
                    assert_eq!(waited, Err(DriverError::Earlier), "call {k}");
                }
                Err(other) => panic!("call {k}: {other:?}"),
            }
        }
    }
    panic!("two launches have no hundred calls");
}

#[test]
fn who_reads_is_told_of_a_fault() {
    let (device, _) = open();
    let [tick, stray] = ["tick", "stray"].map(|name| device.load(&code(name, COUNT)).unwrap());
    let (array, ends) = (array(), Arc::new(Ends::default()));
    launch_later(&*tick, &array, &ends).unwrap();
    launch_later(&*stray, &array, &ends).unwrap();
    assert_eq!(first(&array), Err(MemoryError::LaunchFailed));
    let all = std::mem::take(&mut *ends.0.lock().unwrap());
    let place = "stray, line 29: ld.global.b64 %rd1, [64];";
    assert!(
        matches!(&all[..], [.., Err(KernelFailure::Device(what))] if what.contains(place)),
        "{all:?}"
    );
    // The machine, unlike a card, goes on.
    assert_eq!(first(&array), Ok(41));
}
