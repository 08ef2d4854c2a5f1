//! The inputs and the outcome of a launch.

/// What a machine has, and what it looks at.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of shared memory that a block may have.
    pub shared: u64,
    /// Threads that a block may have.
    pub threads: u64,
    /// Instructions that all threads of a launch may run together; more is a fault.
    pub instructions: u64,
    /// Whether accesses that nothing orders are faults. It takes sixteen bytes for each byte of memory.
    pub races: bool,
    /// The same for shared memory alone.
    pub shared_races: bool,
    /// Whether bytes, sectors and conflicts are counted, which takes time.
    pub counts: bool,
    /// How many blocks run at once.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory: 4 << 30,
            shared: 48 << 10,
            threads: 1024,
            instructions: 1 << 36,
            races: false,
            shared_races: false,
            counts: true,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// How many instructions, and bytes, a launch took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions of warps: one for all lanes that run it together.
    pub instructions: u64,
    /// The same, for each lane that ran it.
    pub lanes: u64,
    /// Branches after which a warp went two ways.
    pub divergent: u64,
    /// Bytes that lanes read from global memory, and that they wrote there.
    pub read: u64,
    /// See `read`.
    pub written: u64,
    /// Atomic operations of lanes on global memory.
    pub atomics: u64,
    /// Sectors of 32 bytes that warps touched for it.
    pub sectors: u64,
    /// Accesses of shared memory that had to wait for others of the same warp, as their banks are the same.
    pub conflicts: u64,
}

/// What a launch has left behind besides memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launched {
    /// What threads have printed, block by block.
    pub printed: String,
    /// What it took.
    pub counts: Counts,
}

/// How the host ends a launch that is under way: when `asked` says so, the word at an address becomes 1.
#[derive(Clone, Copy)]
pub struct Stop<'a> {
    /// The address of the word, of 32 bits.
    pub word: u64,
    /// Whether the launch is to end; polled repeatedly.
    pub asked: &'a (dyn Fn() -> bool + Sync),
}

impl Counts {
    /// Counts what another launch took too.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.lanes += other.lanes;
        self.divergent += other.divergent;
        self.read += other.read;
        self.written += other.written;
        self.sectors += other.sectors;
        self.conflicts += other.conflicts;
        self.atomics += other.atomics;
    }
}
