//! Scopes: the values of names in expressions while a program runs.

use aerogel_base::Scalar;

use super::error::Failure;
use super::ids::{Buffer, Var};

/// The values of names in expressions.
pub(crate) trait Scope {
    /// Why an expression has no value.
    type Error: From<Failure>;

    /// The index along an axis of the domain.
    fn axis(&self, k: u32) -> Scalar;
    /// A variable that has been set.
    fn var(&self, var: Var) -> Option<Scalar>;
    /// The shape of a buffer.
    fn shape(&mut self, buffer: Buffer) -> Result<&[usize], Self::Error>;
    /// An element of a buffer, which is there.
    fn element(&mut self, buffer: Buffer, at: usize) -> Result<Scalar, Self::Error>;
}
