//! The arrays among a launch's arguments: those that live on the device, and copies of memory that other owners
//! access.

use std::ops::Range;
use std::sync::Arc;

use aerogel_runtime::launch::KernelFailure;
use aerogel_runtime::{Buffer, OnDevice};

use crate::memory::{DeviceMemory, GpuMirror};
use crate::opened::Opened;
use crate::plan::Failure;

/// The arrays of a launch, on the device.
pub(crate) struct Arrays<'a> {
    buffers: &'a [&'a Buffer],
    pub(crate) addresses: Vec<u64>,
    /// Those that live on the device.
    there: Vec<Option<OnDevice<'a>>>,
    /// Where arrays lie that somebody else accesses: they are copied for each launch.
    copies: Vec<Option<u64>>,
    device: &'a Arc<Opened>,
    _held: Vec<DeviceMemory>,
}

/// Whether another owner accesses some arrays without waiting for launches.
pub(crate) fn are_anothers(buffers: &[&Buffer]) -> bool {
    let mut all = buffers.iter();
    all.any(|buffer| buffer.is_borrowed() || buffer.is_fixed())
}

impl<'a> Arrays<'a> {
    pub(crate) fn prepare(
        device: &'a Arc<Opened>,
        buffers: &'a [&'a Buffer],
    ) -> Result<Self, Failure> {
        let mut all = Self {
            buffers,
            addresses: vec![0; buffers.len()],
            there: buffers.iter().map(|_| None).collect(),
            copies: vec![None; buffers.len()],
            device,
            _held: Vec::new(),
        };
        for (k, buffer) in buffers.iter().enumerate() {
            if buffer.is_borrowed() {
                continue;
            }
            let there = buffer.on_device(device.number(), || {
                let made = GpuMirror::zeroed(device, buffer.len(), 0);
                Ok(Box::new(made.map_err(|e| device.memory_error(e))?))
            });
            let there = there.map_err(KernelFailure::Memory)?;
            all.addresses[k] = there.address();
            all.there[k] = Some(there);
        }
        all.copy_in()?;
        Ok(all)
    }

    /// Copies what is borrowed; what overlaps there overlaps on the device.
    fn copy_in(&mut self) -> Result<(), Failure> {
        let mut borrowed: Vec<usize> = (0..self.buffers.len())
            .filter(|&k| self.buffers[k].is_borrowed())
            .collect();
        borrowed.sort_by_key(|&k| self.buffers[k].addresses().start);
        let mut groups: Vec<(Range<usize>, Vec<usize>)> = Vec::new();
        for k in borrowed {
            let range = self.buffers[k].addresses();
            match groups.last_mut().filter(|(all, _)| range.start < all.end) {
                Some((all, members)) => {
                    all.end = all.end.max(range.end);
                    members.push(k);
                }
                None => groups.push((range, vec![k])),
            }
        }
        for (range, members) in groups {
            // An element lies on the device at an address as round as here.
            let skip = (range.start % 256) as u64;
            let memory = DeviceMemory::zeroed(self.device, skip + range.len() as u64)?;
            let driver = self.device.driver()?;
            for k in members {
                let own = self.buffers[k].addresses();
                let address = memory.address + skip + (own.start - range.start) as u64;
                let mut bytes = vec![0; own.len()];
                self.buffers[k]
                    .read(0, &mut bytes)
                    .map_err(KernelFailure::Memory)?;
                driver.write(address, &bytes)?;
                self.addresses[k] = address;
                self.copies[k] = Some(address);
            }
            self._held.push(memory);
        }
        Ok(())
    }

    /// Says what code of the device changes.
    pub(crate) fn changed(&self, written: &[bool]) {
        let there = self.there.iter().enumerate();
        for (_, there) in there.filter(|(k, _)| written.get(*k) != Some(&false)) {
            there.iter().for_each(OnDevice::changed);
        }
    }

    /// Copies back what is borrowed.
    pub(crate) fn take_back(&self, written: &[bool]) -> Result<(), Failure> {
        let driver = self.device.driver()?;
        for (k, buffer) in self.buffers.iter().enumerate() {
            if written.get(k) == Some(&false) {
                continue;
            }
            let Some(copy) = self.copies[k] else {
                continue;
            };
            let mut bytes = vec![0; buffer.len()];
            driver.read(copy, &mut bytes)?;
            buffer.write(0, &bytes).map_err(KernelFailure::Memory)?;
        }
        Ok(())
    }
}
