//! The memory layout that generated code and the host agree on.
//!
//! Generated code reaches these structs by the byte offsets in `offset`; the test below holds them
//! equal to what rustc lays out.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// A task: walks `[lo, hi)` of its linearised index space (row-major, the last axis fastest).
/// A serial task is called once with `(0, 1)`.
pub type TaskFn = unsafe extern "C" fn(ctx: *const LaunchContext, lo: i64, hi: i64);

/// Writes `lo0, hi0, lo1, hi1, ..` of a task's axes.
pub type BoundsFn = unsafe extern "C" fn(ctx: *const LaunchContext, out: *mut i64);

/// How many arguments an error record holds; generated code drops the rest.
pub const MAX_ERROR_ARGS: usize = 8;

/// Bytes of stack that functions which call themselves may take in a thread of the processor, by the bound on frames that
/// the compiler has.
pub const STACK: i32 = 4 << 20;
/// The same in a thread of a GPU, where each that can run at once has as much. By far not all of it is taken: the bound
/// gives each value twice the bytes that it has.
pub const GPU_STACK: i32 = 32 << 10;

/// How many images (`code::Image`) a task adds to at most.
pub const MAX_IMAGES: usize = 16;

/// Everything a task may reach.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LaunchContext {
    /// One 8-byte slot per scalar component; an array takes its data pointer, then its shape.
    pub args: *const u64,
    /// The storage of each SNode tree of the kernel's module.
    pub roots: *const *mut u8,
    /// Values that cross tasks.
    pub temps: *mut u8,
    /// One 8-byte slot per component of the return value.
    pub results: *mut u64,
    /// Where the first failure is recorded.
    pub errors: *const ErrorRecord,
    /// Calls back into the host.
    pub host: *const HostCalls,
    /// Seeds the counter-based random numbers of this launch.
    pub seed: u64,
    /// Not zero when the launch shall end early.
    pub stop: *const AtomicU32,
    /// For each image of the task how many bytes from it the thread's own copy lies.
    pub apart: *const i64,
    /// The number of this part of the task, where parts wait for their turn.
    pub part: u64,
}

/// The first failure of a launch. Generated code claims it by `state` 0 -> 1, fills it, and
/// publishes it with `state` = 2.
#[repr(C)]
#[derive(Default)]
pub struct ErrorRecord {
    /// 0 free, 1 being written, 2 ready.
    pub state: AtomicU32,
    /// Index into `KernelCode::sites`.
    pub site: AtomicU32,
    /// How many of `args` were written.
    pub n_args: AtomicU32,
    _pad: u32,
    /// The values to format, as slots.
    pub args: [AtomicU64; MAX_ERROR_ARGS],
}

/// Host functions that generated code may call.
#[repr(C)]
pub struct HostCalls {
    /// Prints a site's template with these argument slots.
    pub print: unsafe extern "C" fn(ctx: *const LaunchContext, site: u32, args: *const u64),
    /// Makes an element of a tree's arena usable: 1 if it is now, 0 if there is no memory for it.
    /// `tree` counts as `LaunchContext::roots` do, `control` the tree's control blocks.
    pub grow: unsafe extern "C" fn(
        ctx: *const LaunchContext,
        tree: u32,
        control: u32,
        element: u32,
    ) -> u32,
    /// Zeroes bytes of a tree from an address on; large ranges take no physical memory then.
    pub clear: unsafe extern "C" fn(ctx: *const LaunchContext, tree: u32, address: u64, bytes: u64),
    /// Makes a growing storage at least `bytes` long: its address, or null if there is no memory for it, and then
    /// it is as before.
    pub reserve: unsafe extern "C" fn(
        ctx: *const LaunchContext,
        handle: *mut BufferHandle,
        bytes: u64,
    ) -> *mut u8,
    /// Gives the memory of a growing storage back.
    pub release: unsafe extern "C" fn(ctx: *const LaunchContext, handle: *mut BufferHandle),
    /// Takes the note of a site with these argument slots.
    pub note: unsafe extern "C" fn(ctx: *const LaunchContext, site: u32, args: *const u64),
    /// Returns when all earlier parts of the task have ended.
    pub turn: unsafe extern "C" fn(ctx: *const LaunchContext),
}

/// The target of `LaunchContext::host` if a task cannot call the host: memory for the services of the host.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Services {
    /// How many words of the log are taken, also beyond its end.
    pub log_taken: AtomicU64,
    /// How many words it has.
    pub log_words: u64,
    /// Where it begins. A record is the number of a site, plus one, and the values of its message.
    pub log: u64,
    /// How many records found no place in it.
    pub log_lost: AtomicU64,
    /// How many bytes of the heap for growing storages are taken, also beyond its end.
    pub heap_taken: AtomicU64,
    /// How many bytes it has.
    pub heap_bytes: u64,
    /// Where it begins.
    pub heap: u64,
}

/// A growing storage of a task; all zero at first.
#[repr(C)]
pub struct BufferHandle {
    /// Where it begins; null for none.
    pub address: *mut u8,
    /// How many bytes it has.
    pub bytes: u64,
}

/// Byte offsets of the fields, for code generators.
pub mod offset {
    /// `LaunchContext::args`
    pub const ARGS: u64 = 0;
    /// `LaunchContext::roots`
    pub const ROOTS: u64 = 8;
    /// `LaunchContext::temps`
    pub const TEMPS: u64 = 16;
    /// `LaunchContext::results`
    pub const RESULTS: u64 = 24;
    /// `LaunchContext::errors`
    pub const ERRORS: u64 = 32;
    /// `LaunchContext::host`
    pub const HOST: u64 = 40;
    /// `LaunchContext::seed`
    pub const SEED: u64 = 48;
    /// `LaunchContext::stop`
    pub const STOP: u64 = 56;
    /// `LaunchContext::apart`
    pub const APART: u64 = 64;
    /// `ErrorRecord::state`
    pub const ERROR_STATE: u64 = 0;
    /// `ErrorRecord::site`
    pub const ERROR_SITE: u64 = 4;
    /// `ErrorRecord::n_args`
    pub const ERROR_N_ARGS: u64 = 8;
    /// `ErrorRecord::args`
    pub const ERROR_ARGS: u64 = 16;
    /// `HostCalls::print`
    pub const HOST_PRINT: u64 = 0;
    /// `HostCalls::grow`
    pub const HOST_GROW: u64 = 8;
    /// `HostCalls::clear`
    pub const HOST_CLEAR: u64 = 16;
    /// `HostCalls::reserve`
    pub const HOST_RESERVE: u64 = 24;
    /// `HostCalls::release`
    pub const HOST_RELEASE: u64 = 32;
    /// `HostCalls::note`
    pub const HOST_NOTE: u64 = 40;
    /// `HostCalls::turn`
    pub const HOST_TURN: u64 = 48;
    /// `Services::log_taken`
    pub const LOG_TAKEN: u64 = 0;
    /// `Services::log_words`
    pub const LOG_WORDS: u64 = 8;
    /// `Services::log`
    pub const LOG: u64 = 16;
    /// `Services::log_lost`
    pub const LOG_LOST: u64 = 24;
    /// `Services::heap_taken`
    pub const HEAP_TAKEN: u64 = 32;
    /// `Services::heap_bytes`
    pub const HEAP_BYTES: u64 = 40;
    /// `Services::heap`
    pub const HEAP: u64 = 48;
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn sizes_and_offsets() {
        assert_eq!(size_of::<LaunchContext>(), 80);
        assert_eq!(size_of::<ErrorRecord>(), 80);
        assert_eq!(size_of::<HostCalls>(), 56);
        let expected = [
            (offset_of!(LaunchContext, args), offset::ARGS),
            (offset_of!(LaunchContext, roots), offset::ROOTS),
            (offset_of!(LaunchContext, temps), offset::TEMPS),
            (offset_of!(LaunchContext, results), offset::RESULTS),
            (offset_of!(LaunchContext, errors), offset::ERRORS),
            (offset_of!(LaunchContext, host), offset::HOST),
            (offset_of!(LaunchContext, seed), offset::SEED),
            (offset_of!(LaunchContext, stop), offset::STOP),
            (offset_of!(LaunchContext, apart), offset::APART),
            (offset_of!(ErrorRecord, state), offset::ERROR_STATE),
            (offset_of!(ErrorRecord, site), offset::ERROR_SITE),
            (offset_of!(ErrorRecord, n_args), offset::ERROR_N_ARGS),
            (offset_of!(ErrorRecord, args), offset::ERROR_ARGS),
            (offset_of!(HostCalls, print), offset::HOST_PRINT),
            (offset_of!(HostCalls, grow), offset::HOST_GROW),
            (offset_of!(HostCalls, clear), offset::HOST_CLEAR),
            (offset_of!(HostCalls, reserve), offset::HOST_RESERVE),
            (offset_of!(HostCalls, release), offset::HOST_RELEASE),
            (offset_of!(HostCalls, note), offset::HOST_NOTE),
            (offset_of!(HostCalls, turn), offset::HOST_TURN),
            (offset_of!(Services, log_taken), offset::LOG_TAKEN),
            (offset_of!(Services, log_words), offset::LOG_WORDS),
            (offset_of!(Services, log), offset::LOG),
            (offset_of!(Services, log_lost), offset::LOG_LOST),
            (offset_of!(Services, heap_taken), offset::HEAP_TAKEN),
            (offset_of!(Services, heap_bytes), offset::HEAP_BYTES),
            (offset_of!(Services, heap), offset::HEAP),
        ];
        for (actual, stated) in expected {
            assert_eq!(actual as u64, stated);
        }
    }
}
