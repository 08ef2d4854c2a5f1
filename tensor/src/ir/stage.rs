//! How far the passes have taken a program.

/// The stage of a program: which statements it may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// As it is recorded: nothing is cleared, and no temporary lies in a tree.
    Recorded,
    /// No store has `init`: sums are loops at points, or stores that accumulate in one step.
    Reduced,
    /// Temporaries may lie in trees of their own, which the host clears.
    Placed,
}
