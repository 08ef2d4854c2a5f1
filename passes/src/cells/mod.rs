//! Loops over the cells of nodes become loops over numbers, and deactivated cells are collected.

pub(crate) mod collect;
pub(crate) mod demote_struct_for;
pub(crate) mod list_struct_for;
pub(crate) mod lists;
pub(crate) mod nest;
pub(crate) mod own_words;
