//! The derivatives that can be compiled from a kernel.

use aerogel_base::kinds;
use aerogel_ir::Derivative;

kinds! {
    /// A derivative of a kernel.
    Derived {
        /// The adjoints of what it reads.
        Grad = "grad",
        /// The tangents of what it writes, beside its own work.
        Dual = "dual",
        /// Those adjoints, and their tangents.
        GradDual = "grad_dual",
    }
}

impl Derived {
    /// The derivatives that are taken one of the other, the first of the kernel itself.
    pub fn steps(self) -> &'static [Derivative] {
        match self {
            Self::Grad => &[Derivative::Grad],
            Self::Dual => &[Derivative::Dual],
            Self::GradDual => &[Derivative::Grad, Derivative::Dual],
        }
    }
}
