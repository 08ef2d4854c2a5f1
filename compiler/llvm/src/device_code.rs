//! The functions of `runtime/device/`: IR text that is compiled into kernels that use them.

use std::sync::OnceLock;

use aerogel_ir::{Module, parse_module};

const TEXT: &str = concat!(
    include_str!("../../../runtime/device/math.air"),
    include_str!("../../../runtime/device/remainders.air"),
    include_str!("../../../runtime/device/sparse.air"),
    include_str!("../../../runtime/device/tables.air"),
);

/// The parsed functions.
pub(crate) fn module() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| parse_module(TEXT).expect("the device code's text is valid"))
}

#[cfg(test)]
mod tests {
    use aerogel_ir::{Stage, verify};

    use super::*;

    #[test]
    fn functions_are_valid() {
        let module = module();
        for func in module.funcs.values() {
            verify(func, &module.env, Stage::Lowered)
                .unwrap_or_else(|e| panic!("{}: {e}", func.name));
        }
    }
}
