//! 64-bit ARM under Linux, for cross compilation.

use super::Target;

/// Any ARMv8 processor.
pub fn aarch64() -> Target {
    Target {
        triple: "aarch64-unknown-linux-gnu".to_owned(),
        cpu: "generic".to_owned(),
        features: "+neon".to_owned(),
        vector_width: None,
        lanes: Some(4),
        fused: true,
        halves: true,
        widest_swap: 16,
        task_convention: 0,
        grid: false,
        intrinsics: &[],
        position_independent: true,
        separator: ".",
    }
}
