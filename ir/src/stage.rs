//! The stages of the IR and the effects of instructions.

/// How far a kernel has been lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Nested regions, parallel loops at the outermost scope, field accesses end to end.
    Structured,
    /// The same, with what the compiler adds to walk over cells and to collect them: steps through
    /// trees stand beside accesses end to end.
    Scheduled,
    /// A list of isolated tasks.
    Offloaded,
    /// Tasks whose accesses are SNode micro-operations and whose tensors are gone.
    Lowered,
}

/// The side effects of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: may be merged, moved, dropped.
    Pure,
    /// Makes a storage: may be dropped, not merged.
    Allocates,
    /// Reads memory: may be dropped, moved where nothing writes.
    Reads,
    /// Writes memory or the outside world, or draws from the random state: stays.
    Writes,
    /// Owns regions: its effects are theirs.
    Control,
    /// Ends a region.
    Terminator,
}
