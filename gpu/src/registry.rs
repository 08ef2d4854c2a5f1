//! The devices of this process: each is opened once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use aerogel_runtime::Device;

use crate::device::GpuDevice;
use crate::driver::{Driver, DriverError};
use crate::nvidia::NvidiaDriver;

static DEVICES: Mutex<BTreeMap<(Option<u64>, u32), GpuDevice>> = Mutex::new(BTreeMap::new());

/// Mebibytes that the machine has, where nobody says how many. What nobody writes to takes none of the host's.
const MACHINE: u64 = 64 << 10;

/// The PTX simulator, if `AEROGEL_CUDA=machine` selects it instead of GPUs: its memory in mebibytes.
fn machine_wanted() -> Result<Option<u64>, DriverError> {
    let wanted = std::env::var("AEROGEL_CUDA").unwrap_or_default();
    let bad = || {
        DriverError::Other(format!(
            "AEROGEL_CUDA is `driver`, `machine`, or `machine:64` for one of 64 MiB, not `{wanted}`"
        ))
    };
    match wanted.split_once(':') {
        None if wanted.is_empty() || wanted == "driver" => Ok(None),
        None if wanted == "machine" => Ok(Some(MACHINE)),
        Some(("machine", n)) => {
            let n = n.parse().ok().filter(|n| (1..=1 << 20).contains(n));
            n.map(Some).ok_or_else(bad)
        }
        _ => Err(bad()),
    }
}

/// The machine with so many mebibytes of memory.
#[cfg(feature = "machine")]
fn machine_driver(mebibytes: u64) -> Result<Box<dyn Driver>, DriverError> {
    let log = std::env::var_os("AEROGEL_COUNT");
    let options = aerogel_ptx::Options {
        memory: mebibytes << 20,
        counts: log.is_some(),
        shared_races: true,
        ..aerogel_ptx::Options::default()
    };
    let driver = crate::machine::MachineDriver::new(options);
    if let Some(path) = log {
        let failed = |e| DriverError::Other(format!("AEROGEL_COUNT: {e}"));
        driver.log_counts(path.as_ref()).map_err(failed)?;
    }
    Ok(Box::new(driver))
}

/// What a build without the machine says in its place.
#[cfg(not(feature = "machine"))]
fn machine_driver(_: u64) -> Result<Box<dyn Driver>, DriverError> {
    let what = "AEROGEL_CUDA=machine needs a build with the PTX simulator: `make build`, or `make wheel MACHINE=1`";
    Err(DriverError::Other(what.to_owned()))
}

/// The device with a number, opened now if it was not before.
pub fn device(number: u32) -> Result<GpuDevice, DriverError> {
    let machine = machine_wanted()?;
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_lost = devices.contains_key(&(machine, number));
    if let Some(found) = devices.get(&(machine, number)) {
        if found.is_usable() {
            return Ok(found.clone());
        }
        if found.is_forked() {
            return Err(DriverError::Forked);
        }
    }
    // What was opened before and is not usable is lost.
    let opened = match machine {
        Some(_) if number > 0 => return Err(DriverError::NoCard(number, 1)),
        Some(mebibytes) => GpuDevice::new(machine_driver(mebibytes)?),
        None => GpuDevice::new(Box::new(NvidiaDriver::open(number, is_lost)?)),
    };
    devices.insert((machine, number), opened.clone());
    Ok(opened)
}
