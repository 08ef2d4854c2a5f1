//! Policies: the limits of a session in one place.
//!
//! The limit of temporary memory that is cached between runs is in `run/free.rs`.

/// A session is tidied when it has this many buffers more than twice the live ones of the last time: tidying copies live
/// buffers, so its cost per recorded statement stays bounded.
pub(super) const SLACK: usize = 4096;
/// It is also tidied when values of this many bytes have no holder: the bound on memory that a loop over small tensors leaves.
pub(super) const SLACK_BYTES: usize = 32 << 20;

/// The number of cached plans. When there are more, all are dropped: programs that differ each time would fill memory.
pub(super) const MAX_PLANS: usize = 2048;
/// The number of statements in all cached plans, except those in loops and branches. Measured, a plan takes 1.1 KB for each, so
/// this is about 140 MB.
pub(super) const MAX_PLANNED: usize = 1 << 17;
/// The number of programs with constants for which the generalised program is cached.
pub(super) const MAX_KNOWN: usize = 512;
/// This many programs that differ only in where they read are compiled for their places, which makes faster code: the elements
/// of a stencil are known to be neighbours. The next one is compiled for any places.
pub(super) const MAX_ALIKE: u32 = 2;

/// A program with more statements materialises every tensor with a handle, whatever its size: otherwise the next program
/// would contain the same statements again, and grow without end.
pub(super) const MAX_PENDING: usize = 64;
/// A tensor that waits for this many statements is evaluated. Measured on 1000 elements, 280 statements take 135 ms to compile
/// and 14 us each to record and run, as short chains do: a longer chain only delays the first result. 288 is divisible by
/// 2, 3, 4, 6, 8, 9, 12 and 16, so loops with that many statements end their programs at the same iteration each time.
pub(super) const MAX_CHAIN: usize = 288;
/// Counting what a tensor waits for walks those statements. After this many counts below `MAX_CHAIN` there is none for the next
/// `MAX_CHAIN` statements, so a loop that evaluates its tensors elsewhere does not pay for the counts.
pub(super) const MAX_LOOKS: u32 = 16;
/// This many deferred stores are evaluated, and a tensor that is stored to more often is filled by a loop: from then on its
/// values are there, and each store writes to memory at once. It bounds what the first iterations record and compile.
pub(super) const MAX_STORES: u32 = 8;

/// A slice of no more elements is read on the host: measured, 12 us for up to 64 elements; it needs no plan.
pub(super) const MAX_READ: usize = 64;
/// A slice of no more elements is written on the host: measured, 13 us for 16384 elements and 0.2 ms for 2^20. Larger ones are
/// worth a kernel on several threads.
pub(super) const MAX_WRITTEN: usize = 1 << 20;
/// Before a tensor of at least this many bytes is copied because recorded statements read it, the session is tidied, which may
/// show that none of them is needed. Measured, copying takes 1.5 us for this much and 90 us for 4 MiB.
pub(super) const LARGE: usize = 1 << 16;

/// A program with a `for` over more than two axes and this many points keeps all its sizes constant: it may be a matrix
/// product, whose tiles are faster if they divide the sizes. Measured, products of 256 rows take a fifth longer otherwise.
pub(super) const LARGE_PRODUCT: u64 = 1 << 25;
/// Above this many points, code is specialised for round sizes, and for sizes that divide indices. Measured, sums over axes
/// of ten elements take twice as long otherwise, and so do reshaping copies and convolutions.
pub(super) const MANY: u64 = 1 << 16;

/// For how long nothing has been computed.
pub(super) struct Waiting {
    /// How many statements have been recorded.
    pub(super) recorded: usize,
    /// With how many it is looked for how many of them what was made last waits.
    pub(super) next: usize,
    /// How many looks have found too few.
    pub(super) looks: u32,
    /// How many may wait.
    pub(super) patience: usize,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            recorded: 0,
            next: MAX_CHAIN,
            looks: 0,
            patience: MAX_CHAIN,
        }
    }
}

impl Waiting {
    /// Counts computed statements: if they are most of the recorded ones, counting restarts, so that the same loop is cut at
    /// the same iterations each time.
    pub(super) fn done(&mut self, n: usize) {
        if 2 * n >= self.recorded {
            *self = Self::default();
        }
    }
}
