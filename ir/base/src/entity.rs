//! Typed `u32` ids and the tables they index.
//!
//! ```
//! aerogel_base::entity! { /// A thing.
//!     pub struct Thing, "t" }
//! let mut things = aerogel_base::entity::PrimaryMap::<Thing, &str>::new();
//! let first = things.push("hello");
//! assert_eq!(things[first], "hello");
//! assert_eq!(first.to_string(), "t0");
//! ```

pub use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, entity_impl};

/// Declares an entity: a `Copy` id of four bytes that prints with a prefix.
#[macro_export]
macro_rules! entity {
    ($(#[$doc:meta])* pub struct $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        $crate::entity::entity_impl!($name, $prefix);
    };
}
