//! Loops over sparse cells after `list_struct_for`, by how the blocks around are read.

mod copied;
mod in_place;
mod scattered;
mod written;
