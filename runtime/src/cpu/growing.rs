//! Memory for the growing storages of tasks, up to what a launch may take.
#![expect(unsafe_code, reason = "manages memory for generated code")]

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::sync::atomic::Ordering;

use super::plan::Host;
use crate::abi::{BufferHandle, LaunchContext};

/// A growing storage begins with this many bytes.
const LEAST_RESERVED: u64 = 256;

/// `HostCalls::reserve`.
pub(super) unsafe extern "C" fn reserve(
    ctx: *const LaunchContext,
    handle: *mut BufferHandle,
    bytes: u64,
) -> *mut u8 {
    // SAFETY: generated code passes on the context it was given, and a handle of its own frame.
    let (ctx, handle) = unsafe { (&*ctx, &mut *handle) };
    // SAFETY: as in `print`.
    let host = unsafe { &*ctx.host.cast::<Host<'_>>() };
    if bytes <= handle.bytes {
        return handle.address;
    }
    // Twice as much as before, so that the cost of copying stays proportional; only as much as requested if that
    // is too much.
    let generous = bytes
        .max(handle.bytes.saturating_mul(2))
        .max(LEAST_RESERVED);
    for size in [generous, bytes] {
        let more = size - handle.bytes;
        let before = host.reserved.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) <= host.most_reserved && resize(handle, size) {
            return handle.address;
        }
        host.reserved.fetch_sub(more, Ordering::Relaxed);
    }
    std::ptr::null_mut()
}

/// `HostCalls::release`.
pub(super) unsafe extern "C" fn release(ctx: *const LaunchContext, handle: *mut BufferHandle) {
    // SAFETY: as in `reserve`.
    let (ctx, handle) = unsafe { (&*ctx, &mut *handle) };
    // SAFETY: as in `print`.
    let host = unsafe { &*ctx.host.cast::<Host<'_>>() };
    host.reserved.fetch_sub(handle.bytes, Ordering::Relaxed);
    let freed = resize(handle, 0);
    debug_assert!(freed, "memory is always taken back");
}

/// Gives a growing storage another size, keeping what it holds; whether there is memory for it.
fn resize(handle: &mut BufferHandle, bytes: u64) -> bool {
    let layout = |bytes: u64| {
        let bytes = usize::try_from(bytes).ok()?;
        Layout::from_size_align(bytes, 64).ok()
    };
    let Some((old, new)) = layout(handle.bytes).zip(layout(bytes)) else {
        return false;
    };
    // SAFETY: what a handle names was allocated here with the layout of its size, and neither layout is empty
    // where it is used.
    let address = unsafe {
        match (old.size(), new.size()) {
            (0, 0) => std::ptr::null_mut(),
            (0, _) => alloc(new),
            (_, 0) => {
                dealloc(handle.address, old);
                std::ptr::null_mut()
            }
            _ => realloc(handle.address, old, new.size()),
        }
    };
    if address.is_null() && new.size() > 0 {
        return false;
    }
    *handle = BufferHandle { address, bytes };
    true
}
