//! Memory that is allocated once for a device: a word that stops launches, slots for small copies, and the
//! pool.
#![expect(unsafe_code, reason = "calls the driver, which is C")]

use cudarc::driver::result::{self, DriverError as Failure};
use cudarc::driver::sys;

use super::failed::of;
use crate::driver::DriverError;

/// Slots for copies of few bytes, and the bytes of each.
const SLOTS: usize = 256;
pub(super) const SLOT: usize = 8 << 10;
/// The pool caches freed memory up to this fraction of the device's memory, for later allocations.
const KEPT_PART: u64 = 16;

/// A word of device memory, which kernels poll often.
pub(super) struct StopWord {
    pub(super) device: u64,
    /// A one, in memory of the host that is copied without the processor.
    pub(super) one: *const u8,
    /// Copies there, while kernels run on the other stream.
    pub(super) aside: sys::CUstream,
}
#[derive(Clone, Copy)]
pub(super) struct Pool(pub(super) sys::CUmemoryPool);
/// Memory of the host's that is copied without the processor, for copies of few bytes: a copy from elsewhere is waited for. Its
/// slots are taken one after the other.
pub(super) struct Staging {
    bytes: *mut u8,
    /// When the copy from a slot is over, if there was one.
    copied: Vec<Option<sys::CUevent>>,
    next: usize,
}

// SAFETY: a handle of the driver's, which any thread may use.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}
// SAFETY: the memory belongs to it alone, and lives as long as the process; any thread may use an event.
unsafe impl Send for Staging {}
// SAFETY: the one is never written to, and lives as long as the process; any thread may use a stream.
unsafe impl Send for StopWord {}
// SAFETY: as above.
unsafe impl Sync for StopWord {}

impl Staging {
    pub(super) fn new() -> Result<Self, DriverError> {
        // SAFETY: the context is current; the memory is never given back.
        let bytes = unsafe { result::malloc_host(SLOTS * SLOT, 0) }.map_err(of)?;
        Ok(Self {
            bytes: bytes.cast(),
            copied: vec![None; SLOTS],
            next: 0,
        })
    }

    /// Copies bytes to the device asynchronously.
    pub(super) fn write(
        &mut self,
        to: u64,
        from: &[u8],
        stream: sys::CUstream,
    ) -> Result<(), Failure> {
        let number = self.next;
        self.next = (number + 1) % SLOTS;
        let event = match self.copied[number] {
            Some(event) => {
                // SAFETY: the event is one of this context's.
                unsafe { result::event::synchronize(event) }?;
                event
            }
            None => {
                let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
                *self.copied[number].insert(event)
            }
        };
        // SAFETY: a slot is at least as long as the copied bytes, and the copy from it before is over; the caller has
        // allocated the bytes on the device.
        unsafe {
            let slot = self.bytes.add(number * SLOT);
            slot.copy_from_nonoverlapping(from.as_ptr(), from.len());
            sys::cuMemcpyHtoDAsync_v2(to, slot.cast(), from.len(), stream).result()?;
            result::event::record(event, stream)
        }
    }
}

/// The memory pool of a device, which caches some freed memory; none if the device has no pools.
pub(super) fn pool(device: sys::CUdevice, memory: u64) -> Result<Option<Pool>, DriverError> {
    let supported = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    // SAFETY: the device is one.
    if unsafe { result::device::get_attribute(device, supported) }.map_err(of)? == 0 {
        return Ok(None);
    }
    let mut pool = std::ptr::null_mut();
    let mut kept = memory / KEPT_PART;
    // SAFETY: writes one handle, and reads one number of eight bytes, as the attribute has.
    unsafe {
        sys::cuDeviceGetDefaultMemPool(&raw mut pool, device)
            .result()
            .and_then(|()| {
                let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
                sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut kept).cast()).result()
            })
    }
    .map_err(of)?;
    Ok(Some(Pool(pool)))
}

/// A word that is zero.
pub(super) fn stop_word(
    stream: sys::CUstream,
    aside: sys::CUstream,
) -> Result<StopWord, DriverError> {
    // SAFETY: the context is current; the memory is never given back.
    let one = unsafe { result::malloc_host(8, 0) }.map_err(of)?;
    // SAFETY: it has eight bytes.
    unsafe { one.cast::<u64>().write(1) };
    // SAFETY: the context is current.
    let device = unsafe { result::malloc_sync(8) }.map_err(of)?;
    // SAFETY: it has eight bytes.
    unsafe { result::memset_d8_async(device, 0, 8, stream) }.map_err(of)?;
    Ok(StopWord {
        device,
        one: one.cast(),
        aside,
    })
}
