//! The functions of `runtime/device/`: IR text that is compiled into kernels that use them.

use std::sync::OnceLock;

use aerogel_ir::{Module, parse_module};

const TEXT: &str = include_str!("../../../runtime/device/math.air");

/// The parsed functions.
pub(crate) fn module() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| parse_module(TEXT).expect("the device code's text is valid"))
}
