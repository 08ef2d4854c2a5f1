//! Data layouts: trees of structural nodes (SNodes), and where each cell lies in memory.
//!
//! A tree is built node by node, laid out once by [`TreeBuilder::finish`], and only read afterwards.
#![warn(missing_docs)]

pub mod address;
mod build;
pub mod control;
mod layout;
mod merge;
pub mod quant;
mod text;
pub mod tree;

pub use address::{Level, LevelAxis, Path};
pub use build::{BuildError, TreeBuilder};
pub use quant::{Form, QuantError, QuantType};
pub use text::{ParseError, parse_nodes};
pub use tree::{
    MASK_BITS, MAX_AXES, Node, NodeAxis, NodeId, NodeKind, TABLE_BITS, TABLE_SIZE, TABLE_SLOTS,
    Tree, WORD,
};
