//! Launches that are run again and again as one.

use std::sync::Arc;

use aerogel_gpu::{DriverError, GpuDevice, Graph};
use aerogel_runtime::launch::KernelFailure;
use aerogel_runtime::{Buffer, Device, LoadedKernel, MemoryError};

use super::faulty::{COUNT, Ends, array, code, first, launch, launch_later, open};

fn load(device: &GpuDevice, symbol: &str) -> Box<dyn LoadedKernel> {
    device.load(&code(symbol, COUNT)).unwrap()
}

/// Runs a graph of launches.
fn run(
    device: &GpuDevice,
    graph: &Graph,
    calls: &[(&dyn LoadedKernel, &Buffer)],
    ends: &Arc<Ends>,
) -> Result<(), DriverError> {
    assert!(device.begin(graph));
    for (kernel, array) in calls {
        launch_later(*kernel, array, ends).unwrap();
    }
    device.end(graph)
}

#[test]
fn a_run_is_one_copy_and_one_launch() {
    let (device, faults) = open();
    let [tick, upto] = ["tick", "upto"].map(|symbol| load(&device, symbol));
    let (graph, ends) = (Graph::default(), Arc::new(Ends::default()));
    let (x, y) = (array(), array());
    run(&device, &graph, &[(&*tick, &x), (&*upto, &x)], &ends).unwrap();
    assert!(
        faults.asked().ends_with(&["fill", "graph"]),
        "it is made once"
    );
    assert_eq!(first(&x), Ok(42));
    // `y` goes there by the first launch that has it, and what was launched before is sent before.
    run(&device, &graph, &[(&*tick, &x), (&*upto, &y)], &ends).unwrap();
    assert!(!faults.asked().contains(&"launch_graph"));
    for _ in 0..3 {
        run(&device, &graph, &[(&*tick, &x), (&*tick, &y)], &ends).unwrap();
    }
    // Another kernel makes another graph, after a run of launches one by one.
    assert_eq!(
        faults.asked(),
        [
            &["write", "launch", "write", "launch"][..],
            &["allocate", "fill", "graph"],
            &["write", "launch_graph"],
            &["write", "launch_graph"],
        ]
        .concat()
    );
    // Other arrays do not.
    run(&device, &graph, &[(&*tick, &y), (&*tick, &x)], &ends).unwrap();
    assert_eq!(faults.asked(), ["write", "launch_graph"]);
    assert_eq!([first(&x), first(&y)], [Ok(47), Ok(45)]);
    assert_eq!(ends.0.lock().unwrap().len(), 12);
    assert!(ends.0.lock().unwrap().iter().all(Result::is_ok));
}

#[test]
fn who_reads_meanwhile_reads_what_was_launched() {
    let (device, faults) = open();
    let [tick, count] = ["tick", "count"].map(|symbol| load(&device, symbol));
    let (graph, ends, x) = (Graph::default(), Arc::new(Ends::default()), array());
    for turn in 0..3 {
        run(&device, &graph, &[(&*tick, &x), (&*tick, &x)], &ends).unwrap();
        assert_eq!(first(&x), Ok(42 + 2 * turn));
    }
    faults.asked();
    assert!(device.begin(&graph));
    launch_later(&*tick, &x, &ends).unwrap();
    assert_eq!(faults.asked(), [""; 0]);
    assert_eq!(first(&x), Ok(47));
    launch_later(&*tick, &x, &ends).unwrap();
    // A launch with a result is none of the graph's, nor is what another thread launches.
    assert_eq!(launch(&*count, &x), Ok(49));
    let other = std::thread::scope(|scope| {
        let other = scope.spawn(|| launch(&*count, &x));
        other.join().unwrap()
    });
    assert_eq!(other, Ok(50));
    assert!(!device.begin(&Graph::default()), "one graph at a time");
    device.end(&graph).unwrap();
    assert!(!faults.asked().contains(&"launch_graph"));
    assert_eq!(first(&x), Ok(50));
}

#[test]
fn a_check_that_fails_is_told_once() {
    let (device, _) = open();
    let [tick, upto] = ["tick", "upto"].map(|symbol| load(&device, symbol));
    let (graph, ends, x) = (Graph::default(), Arc::new(Ends::default()), array());
    let calls: [(&dyn LoadedKernel, _); 2] = [(&*upto, &x), (&*upto, &x)];
    // The second run fails in its first launch, and the third does nothing and overwrites nothing.
    for _ in 0..3 {
        run(&device, &graph, &calls, &ends).unwrap();
    }
    assert_eq!(device.wait(), Err(DriverError::Earlier));
    let told = std::mem::take(&mut *ends.0.lock().unwrap());
    let failed: Vec<_> = told.iter().filter_map(|end| end.as_ref().err()).collect();
    assert!(
        matches!(failed[..], [KernelFailure::Check { site: 7, .. }]),
        "{told:?}"
    );
    assert_eq!(first(&x), Ok(42));
    // Afterwards all is as it was.
    x.write(0, &40_u64.to_le_bytes()).unwrap();
    run(&device, &graph, &calls, &ends).unwrap();
    assert_eq!(first(&x), Ok(42));
    run(&device, &graph, &[(&*tick, &x)], &ends).unwrap();
    assert_eq!(first(&x), Ok(43));
    assert!(ends.0.lock().unwrap().iter().all(Result::is_ok));
}

#[test]
fn a_device_that_is_lost_is_told_of() {
    let lost = || DriverError::Lost("it fell off the bus".to_owned());
    for k in 1.. {
        let (device, faults) = open();
        let tick = load(&device, "tick");
        let (graph, ends, x) = (Graph::default(), Arc::new(Ends::default()), array());
        let calls: [(&dyn LoadedKernel, _); 2] = [(&*tick, &x), (&*tick, &x)];
        run(&device, &graph, &calls, &ends).unwrap();
        device.wait().unwrap();
        faults.plan(Some((k, false, lost())));
        let ran = run(&device, &graph, &calls, &ends);
        let read = first(&x);
        if faults.is_pending() {
            assert!(k > 3 && ran.is_ok() && read == Ok(44));
            return;
        }
        let told = [MemoryError::DeviceLost, MemoryError::LaunchFailed];
        assert!(read.is_err_and(|e| told.contains(&e)), "call {k}");
        assert!(!device.is_usable());
        // A device that takes its place makes the graph anew.
        let (other, _) = open();
        let tick = load(&other, "tick");
        let y = array();
        for _ in 0..2 {
            run(&other, &graph, &[(&*tick, &y), (&*tick, &y)], &ends).unwrap();
        }
        assert_eq!(first(&y), Ok(44));
    }
}
