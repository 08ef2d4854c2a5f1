//! Options of the passes.

/// Options of the passes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Check indices, divisors and the user's assertions while running.
    pub debug: bool,
    /// Turn reductions into thread-local accumulators.
    pub thread_local: bool,
    /// Let threads scatter into copies of small fields that are their own.
    pub private_cells: bool,
    /// Let the threads of a block share what they read around it, and copies of small fields that they scatter into.
    pub shared_memory: bool,
    /// Run the optimising passes.
    pub optimize: bool,
    /// Verify after every pass; on in debug builds.
    pub verify: bool,
    /// How loops over sparse nodes are divided.
    pub thresholds: Thresholds,
    /// How many threads the code is made for: the sizes of blocks depend on it, and no result does.
    pub n_threads: u32,
}

/// From which sizes on loops over sparse nodes are divided. They matter to speed only; tests make them
/// small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// An iteration of a task walks about so many cells.
    pub cells_per_iteration: u64,
    /// Cells of a pointer container that one part of a list spans; at least
    /// `aerogel_snode::control::LEAST_LIST_PART`.
    pub list_part: u64,
    /// Cells of a dynamic container that one iteration walks at most.
    pub piece: u64,
    /// The most values that are gathered from around a block for a field.
    pub most_gathered: u64,
}

impl Thresholds {
    /// For devices with more threads than there are cells in most blocks: neighbouring threads take neighbouring cells.
    pub fn of_threads() -> Self {
        Self {
            cells_per_iteration: 1,
            piece: 64,
            ..Self::default()
        }
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            cells_per_iteration: 4096,
            list_part: 1024,
            piece: 4096,
            most_gathered: 8192,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            debug: false,
            thread_local: true,
            private_cells: true,
            shared_memory: false,
            optimize: true,
            verify: cfg!(debug_assertions),
            thresholds: Thresholds::default(),
            n_threads: 1,
        }
    }
}
