//! Code that was assembled for a device before it is loaded.

use aerogel_runtime::{Device, KernelCode};

use super::faulty::{COUNT, array, code, launch, open};

#[test]
fn what_was_assembled_is_loaded() {
    let (device, faults) = open();
    let mut code = code("count", COUNT);
    device.assemble(&mut code);
    assert_eq!(code.binaries.len(), 1);
    assert_eq!(faults.asked(), ["assemble"]);
    // It alone: the text is not looked at.
    let alone = KernelCode {
        objects: vec![b"no code".to_vec()],
        ..code.clone()
    };
    let kernel = device.load(&alone).unwrap();
    assert_eq!(launch(&*kernel, &array()), Ok(41));
    assert_eq!(
        faults
            .asked()
            .iter()
            .filter(|&&what| what == "load")
            .count(),
        1
    );
}

#[test]
fn what_a_device_does_not_take_is_made_of_the_text() {
    let (device, faults) = open();
    let broken = KernelCode {
        binaries: vec![b"\x7fbroken".to_vec()],
        ..code("count", COUNT)
    };
    let kernel = device.load(&broken).unwrap();
    assert_eq!(launch(&*kernel, &array()), Ok(41));
    assert_eq!(
        faults
            .asked()
            .iter()
            .filter(|&&what| what == "load")
            .count(),
        2
    );
}

#[test]
fn devices_are_told_apart_by_card_and_driver() {
    assert_eq!(open().0.identity(), "the PTX machine sm_80 CUDA [12, 0]");
}
