//! What a launch reads as constant: `ld.global.nc` uses a cache that is not invalidated by writes, so no thread may
//! write there during the whole launch.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{Allocation, Bad, Visit};
use crate::error::FaultKind;

/// Of a word the launch that wrote or read some of its bytes last, and which.
#[derive(Default)]
pub(super) struct Stamps {
    written: AtomicU32,
    constant: AtomicU32,
}

/// Behind the launch's number there is a bit for each byte.
const BYTES: u32 = 8;

/// The bytes that a stamp of this launch names.
fn of_launch(stamp: &AtomicU32, launch: u32) -> u32 {
    let stamp = stamp.load(Relaxed);
    match stamp >> BYTES == launch {
        true => stamp & 0xff,
        false => 0,
    }
}

fn set(stamp: &AtomicU32, launch: u32, bytes: u32) {
    let before = of_launch(stamp, launch);
    if before & bytes != bytes {
        stamp.store(launch << BYTES | before | bytes, Relaxed);
    }
}

impl Allocation {
    /// Notes a read, which may be one of a constant.
    pub(super) fn read_in(&self, address: u64, bytes: u64, visit: Visit) -> Result<(), Bad> {
        if !visit.constant {
            return Ok(());
        }
        let (page, word, shift) = self.page(address);
        let (stamps, launch) = (&page.stamps[word], launch(visit));
        let mask = u32::from(Self::byte_mask(bytes, shift));
        set(&stamps.constant, launch, mask);
        match of_launch(&stamps.written, launch) & mask {
            0 => Ok(()),
            _ => Err(no_constant(address)),
        }
    }

    /// The stored value, or zero if uninitialised.
    pub(super) fn bits(&self, address: u64, bytes: u64) -> u64 {
        self.load(address, bytes).unwrap_or(0)
    }

    /// Notes a write, which changes these bits: numbers of few bytes are changed together with their neighbours, which stay
    /// as they are.
    pub(super) fn written_in(&self, address: u64, changed: u64, visit: Visit) -> Result<(), Bad> {
        if changed == 0 {
            return Ok(());
        }
        let (page, word, shift) = self.page(address);
        let (stamps, launch) = (&page.stamps[word], launch(visit));
        let changed = (changed << shift).to_le_bytes();
        let mask = (0..8).map(|k| u32::from(changed[k] != 0) << k).sum();
        set(&stamps.written, launch, mask);
        match of_launch(&stamps.constant, launch) & mask {
            0 => Ok(()),
            _ => Err(no_constant(address)),
        }
    }
}

/// The number of a launch, as much of it as a stamp holds; the first is 1.
fn launch(visit: Visit) -> u32 {
    visit.epoch as u32 & (u32::MAX >> BYTES)
}

fn no_constant(address: u64) -> Bad {
    Bad::new(
        FaultKind::Race,
        format!("{address:#x} is read as a constant, and written by the same launch"),
    )
}
