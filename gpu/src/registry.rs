//! The devices of this process: each card is opened once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use aerogel_ptx::Options;

use crate::device::GpuDevice;
use crate::driver::DriverError;
use crate::machine::MachineDriver;
use crate::nvidia::NvidiaDriver;

static DEVICES: Mutex<BTreeMap<(bool, u32), GpuDevice>> = Mutex::new(BTreeMap::new());

/// Whether `AEROGEL_CUDA=machine` asks for the machine that runs PTX in place of cards.
fn machine_wanted() -> Result<bool, DriverError> {
    match std::env::var("AEROGEL_CUDA").ok().as_deref() {
        None | Some("" | "driver") => Ok(false),
        Some("machine") => Ok(true),
        Some(other) => Err(DriverError::Other(format!(
            "AEROGEL_CUDA is `driver` or `machine`, not `{other}`"
        ))),
    }
}

/// The card of a number, opened now if it was not before.
pub fn device(number: u32) -> Result<GpuDevice, DriverError> {
    let machine = machine_wanted()?;
    let options = Options {
        counts: false,
        ..Options::default()
    };
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = devices.get(&(machine, number)) {
        if found.is_usable() {
            return Ok(found.clone());
        }
        if found.is_forked() {
            return Err(DriverError::Forked);
        }
    }
    let opened = match machine {
        true if number > 0 => return Err(DriverError::NoCard(number, 1)),
        true => GpuDevice::new(Box::new(MachineDriver::new(options))),
        false => GpuDevice::new(Box::new(NvidiaDriver::open(number)?)),
    };
    devices.insert((machine, number), opened.clone());
    Ok(opened)
}
