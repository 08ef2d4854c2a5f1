//! Other targets than this machine's make code of the same kernels.

use aerogel_ir::parse_module;
use aerogel_llvm::{OptLevel, compile, target};

/// A kernel with a parallel loop, atomics, maths functions and an assertion, at stage Lowered.
const KERNEL: &str = r#"
    fast_math
    tree0 { place s: f32, dense i:64 { place x: f32 } }
    field @s: f32 = tree0 [S1]
    field @x: f32 = tree0 [S3]
    kernel @k(n: i32, a: array<f32, 1>) {
        task range {
            v0: i32 = const 0
            v1: i32 = arg a0
            yield [v0, v1]
        } {
            v2: cell<tree0.S0> = root tree0
            v3: ref<f32> = child tree0.S1, v2
            v4: container<tree0.S2> = child tree0.S2, v2
            v5: i32 = const 64
            each (v6: i32) {
                v7: u1 = lt v6, v5
                assert v7, bounds, "index {} is out of bounds", [v6]
                v8: i64 = linearize tree0.S2, [v6]
                v9: cell<tree0.S2> = lookup tree0.S2, v4, v8
                v10: ref<f32> = child tree0.S3, v9
                v11: ref<f32> = array_at a1, [v6]
                v12: f32 = load v11
                v13: f32 = sin v12
                v14: f32 = exp v13
                v15: f32 = sqrt v14
                store v10, v15
                v16: f32 = atomic_add v3, v15
                v17: f32 = atomic_max v3, v15
                yield []
            }
            yield []
        }
        yield []
    }
"#;

#[test]
fn aarch64_objects() {
    let module = parse_module(KERNEL).unwrap_or_else(|e| panic!("{e}"));
    for level in [0, 3] {
        let code = compile(&module, &target::aarch64(), OptLevel(level), true);
        let object = &code.code.objects[0];
        assert_eq!(&object[..4], b"\x7fELF");
        // `e_machine` of an ELF header: 183 is AArch64.
        assert_eq!(u16::from_le_bytes([object[18], object[19]]), 183);
        let assembly = code.assembly.expect("asked for");
        assert!(
            !assembly.contains("bl\tsinf"),
            "maths functions are our own"
        );
    }
}

#[test]
fn aarch64_loops_are_vectorised() {
    let plain: Vec<&str> = KERNEL
        .lines()
        .filter(|l| !l.contains("atomic_") && !l.contains("assert"))
        .collect();
    let module = parse_module(&plain.join("\n")).unwrap_or_else(|e| panic!("{e}"));
    let code = compile(&module, &target::aarch64(), OptLevel(3), true);
    assert!(code.assembly.expect("asked for").contains(".4s"));
}
