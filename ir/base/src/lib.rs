//! Shared by all crates of the compiler: entity tables, scalar types, spans, diagnostics.
#![warn(missing_docs)]

pub mod diagnostic;
pub mod entity;
pub mod hash;
pub mod kinds;
pub mod render;
pub mod scalar;
pub mod span;

pub use diagnostic::{Diagnostic, Diagnostics, ErrorKind};
pub use kinds::{AssertKind, NoteKind};
pub use scalar::{Scalar, ScalarType};
pub use span::{SourceFile, SourceId, Span, SpanData, SpanTable};
