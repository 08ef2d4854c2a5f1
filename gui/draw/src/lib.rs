//! Pictures painted by the processor: what `ti.GUI` draws, and what windows draw where there is no Vulkan.
//!
//! A [`Picture`] is painted into shape by shape (`shapes`, `text`); files are written and read by `files`. It needs neither a
//! display nor a driver, so that the core package has it while windows are in one of their own.

mod files;
mod font;
mod picture;
mod shapes;
mod text;

pub use files::{File, encode, lzw};
pub use picture::{Picture, Refusal};
