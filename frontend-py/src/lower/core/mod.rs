//! Statements, expressions and assignments.

pub(crate) mod assign;
pub(crate) mod augmented;
pub(crate) mod conditional;
pub(crate) mod expr;
pub(crate) mod limits;
pub(crate) mod methods;
mod mistakes;
pub(crate) mod naming;
pub(crate) mod reports;
pub(crate) mod returns;
pub(crate) mod stmt;
pub(crate) mod suggestions;
mod trial;
pub(crate) mod walrus;
