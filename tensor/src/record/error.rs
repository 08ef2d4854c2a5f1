//! Why an operation cannot be recorded, in the words of whoever asked for it.

use std::fmt;

use aerogel_base::ScalarType;

/// Why an operation cannot be recorded. Nothing was recorded then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// Extents that have to agree.
    Extents {
        /// The operation.
        op: String,
        /// The operands' shapes, as text.
        shapes: Vec<String>,
        /// Which axis, of which operand (counted from 0), and its extent; twice.
        sides: Box<[(usize, usize, String); 2]>,
    },
    /// An axis that there is not.
    Axis {
        /// The operation.
        op: String,
        /// What was asked for.
        axis: i64,
        /// How many there are.
        rank: usize,
    },
    /// Types that the operation does not take.
    Types {
        /// The operation.
        op: String,
        /// The operands' types.
        types: Vec<ScalarType>,
        /// What it takes.
        takes: String,
    },
    /// An index outside.
    Index(String),
    /// Something else that is asked for and cannot be.
    Value(String),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extents { op, shapes, sides } => {
                let [(axis, operand, extent), (axis2, operand2, extent2)] = &**sides;
                write!(
                    f,
                    "`{op}`: axis {axis} of operand {operand} has {extent} elements, axis {axis2} of operand {operand2} \
                     has {extent2}; the shapes are {}",
                    shapes.join(" and ")
                )
            }
            Self::Axis { op, axis, rank: 0 } => {
                write!(
                    f,
                    "`{op}`: there is no axis {axis}: the tensor is a single number"
                )
            }
            Self::Axis { op, axis, rank } => {
                write!(
                    f,
                    "`{op}`: there is no axis {axis}: the tensor has axes 0 to {}",
                    rank - 1
                )
            }
            Self::Types { op, types, takes } => {
                let types = types.iter().map(|ty| format!("`{ty}`"));
                let types = types.collect::<Vec<_>>().join(" and ");
                write!(f, "`{op}` takes {takes}, not {types}")
            }
            Self::Index(what) | Self::Value(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RecordError {}
