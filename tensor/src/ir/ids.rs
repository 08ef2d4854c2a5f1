//! The ids of the parts of a program.

use aerogel_base::entity;

entity! {
    /// The size of an axis.
    pub struct Dim, "d"
}
entity! {
    /// A buffer.
    pub struct Buffer, "b"
}
entity! {
    /// A variable: a scalar that statements set and read.
    pub struct Var, "x"
}
entity! {
    /// An access whose indices are checked.
    pub struct Site, "s"
}
entity! {
    /// A kernel of the user's.
    pub struct Region, "r"
}
