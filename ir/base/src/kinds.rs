//! Enumerations with names, and those that the compiler and the runtime share.

use serde::{Deserialize, Serialize};

/// An enumeration whose variants have names in IR text.
#[macro_export]
macro_rules! kinds {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every variant.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The name in IR text.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The variant with a name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

kinds! {
    /// The meaning of a failed assertion.
    #[derive(Serialize, Deserialize)]
    AssertKind {
        /// The user's `assert`.
        Assertion = "assertion",
        /// An out-of-bounds index.
        Bounds = "bounds",
        /// An index outside an axis of a tensor. The values are the number of the access, the axis, the index, and the size
        /// of the axis.
        TensorBounds = "tensor_bounds",
        /// Integer division by zero.
        DivisionByZero = "division_by_zero",
        /// Integer modulo by zero.
        ModuloByZero = "modulo_by_zero",
        /// A negative exponent of an integer power.
        NegativePower = "negative_power",
        /// No memory for a cell.
        Memory = "memory",
        /// Functions that call themselves have gone deeper than the stack holds.
        Recursion = "recursion",
    }
}

kinds! {
    /// The kinds of records for finding data races.
    #[derive(Serialize, Deserialize)]
    NoteKind {
        /// A parallel loop begins. The values are the first index and the size of each axis.
        Loop = "loop",
        /// An iteration reads a scalar.
        Read = "read",
        /// An iteration writes a scalar.
        Write = "write",
        /// An iteration changes a scalar by an atomic operation.
        Atomic = "atomic",
    }
}

impl NoteKind {
    /// How many values a note has before those of its message. Those of an access are the number of the object, the index of the
    /// scalar in it, the number of the iteration (negative for none), and what is written.
    pub fn n_fixed(self) -> usize {
        match self {
            Self::Loop => 0,
            Self::Read | Self::Atomic => 3,
            Self::Write => 4,
        }
    }
}
