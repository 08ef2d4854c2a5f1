//! Which derivative is needed.

use aerogel_ir::Derivative;

/// The derivative that is needed.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Adjoints, or tangents.
    pub kind: Derivative,
    /// Of the adjoints, those of arguments as well, which the derivative returns, float by float, and those of results,
    /// which it takes as further arguments, number by number.
    pub ends: bool,
    /// Whether the derivative will itself be differentiated: what is constant for this one is for the next.
    pub again: bool,
    /// Whether snapshots of other trees hold the activity that the kernel queried.
    pub past: bool,
    /// Whether the adjoints' kernel returns how often each of `Differentiated::kinks` was met. Not together with `ends`.
    pub counts_kinks: bool,
    /// Whether adjoints of neighbours may be fetched by loops that run beyond the kernel's own iterations.
    pub gathers: bool,
}

impl From<Derivative> for Wanted {
    fn from(kind: Derivative) -> Self {
        Self {
            kind,
            ends: false,
            again: false,
            past: false,
            counts_kinks: false,
            gathers: true,
        }
    }
}
