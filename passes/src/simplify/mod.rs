//! Passes that simplify: they enable each other, and may run at every stage.

pub(crate) mod branches;
pub(crate) mod counted_whiles;
pub(crate) mod cse;
pub(crate) mod dce;
pub(crate) mod existing;
pub(crate) mod fold;
pub(crate) mod forward_loads;
pub(crate) mod identities;
pub(crate) mod if_convert;
pub(crate) mod licm;
pub(crate) mod powers;
pub(crate) mod promote_locals;
mod roots;
