//! Why an operation cannot be recorded, in terms of the recorded function.

use std::fmt;

use aerogel_base::ScalarType;

use crate::ir::Place;

const BLOCK: &str = "the condition of the block";

/// Why an operation cannot be recorded. Nothing was recorded then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// Sizes that must be equal.
    Extents {
        /// The operation.
        op: String,
        /// The operands' shapes, as text.
        shapes: Vec<String>,
        /// Which axis, of which operand (counted from 0), and its size; twice.
        sides: Box<[(usize, usize, String); 2]>,
        /// The name of each operand in messages, if not its number.
        roles: Vec<String>,
    },
    /// An axis that there is not.
    Axis {
        /// The operation.
        op: String,
        /// The requested axis.
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
        /// The operands that it accepts.
        takes: String,
    },
    /// A value that was made in a block which has ended, and where that begins.
    Ended(Place),
    /// An operation without a derivative on which a result depends, and where it is, if that is known yet.
    NoGradient(String, Place),
    /// Something that cannot be done at some points only.
    AtPoints(String),
    /// An index outside.
    Index(String),
    /// Another invalid request.
    Value(String),
}

impl RecordError {
    /// The name of an operand in messages.
    pub fn role(&self, operand: usize) -> String {
        match self {
            Self::Extents { roles, .. } if operand < roles.len() => roles[operand].clone(),
            _ => format!("operand {operand}"),
        }
    }

    /// The same of a store: its operands are indices, the value, and where it is done.
    pub(super) fn of_store(self, n_indices: usize) -> Self {
        let indices = (0..n_indices).map(|k| format!("index {k}"));
        self.with_roles(indices.chain(["the value", BLOCK].map(str::to_owned)))
    }

    /// The same of `x.val = value`: its operands are the memory, the value, and where it is done.
    pub(super) fn of_setting(self) -> Self {
        self.with_roles(["the memory", "the value", BLOCK].map(str::to_owned))
    }

    fn with_roles(mut self, named: impl IntoIterator<Item = String>) -> Self {
        if let Self::Extents { roles, .. } = &mut self {
            roles.extend(named);
        }
        self
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extents {
                op, shapes, sides, ..
            } => {
                let [(axis, operand, extent), (axis2, operand2, extent2)] = &**sides;
                let [role, role2] = [*operand, *operand2].map(|operand| self.role(operand));
                write!(
                    f,
                    "`{op}`: axis {axis} of {role} has {extent} elements, axis {axis2} of {role2} has {extent2}; the \
                     shapes are {}",
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
            Self::Ended(_) => f.write_str(
                "this tensor was made in a block that has ended: to use a value after its block, create it before the \
                 block, as by `x = const(0.0)`, and set it inside, by `x.val = ...`",
            ),
            Self::NoGradient(what, _) => write!(
                f,
                "there is no gradient: {what}; if no gradient should pass here, apply `stop_gradient` to the operand"
            ),
            Self::AtPoints(what) | Self::Index(what) | Self::Value(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RecordError {}
