//! Address space that is reserved for compiling.
//!
//! LLVM ends the process where it gets no memory, and so does the C library where a new thread gets none for its own
//! data. A limit on addresses (`ulimit -v`) that fields have all but reached would so end a program that compiles one more
//! kernel. Therefore a range of addresses, which costs no memory, is set aside, and given back while something is compiled.

use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::{MmapMut, MmapOptions};

use crate::worker::STACK;

/// The compiling thread's stack, and what LLVM takes for all but huge kernels.
const BYTES: usize = STACK + (128 << 20);

struct Reserve {
    held: Option<MmapMut>,
    compiling: usize,
}

static RESERVE: Mutex<Reserve> = Mutex::new(Reserve {
    held: None,
    compiling: 0,
});

fn reserve() -> MutexGuard<'static, Reserve> {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set_aside() -> Option<MmapMut> {
    let mut options = MmapOptions::new();
    options.len(BYTES).no_reserve_swap();
    options.map_anon().ok()
}

/// Sets addresses aside, if there are any: the earlier, the more surely there are when a kernel is compiled.
pub fn prepare() {
    let mut reserve = reserve();
    if reserve.held.is_none() && reserve.compiling == 0 {
        reserve.held = set_aside();
    }
}

/// While this lives, the addresses are free.
pub struct Room(());

impl Room {
    /// Frees the addresses that were set aside. Where there were none to set aside, there may still be memory for LLVM in
    /// what the process has.
    pub fn make() -> Self {
        let mut reserve = reserve();
        reserve.held = None;
        reserve.compiling += 1;
        Self(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut reserve = reserve();
        reserve.compiling -= 1;
        if reserve.compiling == 0 {
            reserve.held = set_aside();
        }
    }
}
