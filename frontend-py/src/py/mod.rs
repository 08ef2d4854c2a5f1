//! The `_native` module: everything that touches the Python runtime.

pub(crate) mod argument;
pub(crate) mod buffer;
mod copied;
pub(crate) mod error;
pub(crate) mod field;
pub(crate) mod font;
mod foreign;
mod functions;
pub(crate) mod gui;
pub(crate) mod host;
pub(crate) mod kernel;
pub(crate) mod linalg;
mod lists;
mod mesh;
pub(crate) mod module;
mod operator;
pub(crate) mod placement;
pub(crate) mod prepare;
pub(crate) mod profile;
pub(crate) mod signature;
pub(crate) mod snode;
mod structs;
