//! Whole kernels from IR text, by the interpreter and by LLVM with and without optimisation.

use aerogel_compiler::{Arch, Compiler, Config};
use aerogel_ir::parse_module;
use aerogel_tests::run::Inputs;

/// Runs a kernel on every target and compares; returns what it printed.
fn agree(text: &str) -> String {
    let module = parse_module(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut outcomes = Vec::new();
    for (arch, opt_level) in [(Arch::Interp, 0), (Arch::Cpu, 0), (Arch::Cpu, 3)] {
        let compiler = Compiler::new(Config {
            arch,
            opt_level,
            max_threads: Some(2),
            ..Config::default()
        });
        let kernel = compiler
            .compile(module.clone())
            .unwrap_or_else(|e| panic!("{e}"));
        outcomes
            .push(Inputs::new(&module, 1).launch_by(&module, 7, |launch| kernel.launch(launch)));
    }
    assert_eq!(outcomes[0], outcomes[1], "interpreter and LLVM -O0");
    assert_eq!(outcomes[0], outcomes[2], "interpreter and LLVM -O3");
    outcomes.swap_remove(0).printed
}

#[test]
fn sum_printed_afterwards() {
    let printed = agree(
        r#"
        kernel @bar() {
            v0: i32 = const 0
            v1: ref<i32> = local
            v2: i32 = const 10
            parallel [v0], [v2] (v3: i32) {
                v4: i32 = atomic_add v1, v3
                yield []
            }
            v5: i32 = load v1
            print "{}\n", [v5]
            yield []
        }"#,
    );
    assert_eq!(printed, "45\n");
}

#[test]
fn laplace_on_blocks() {
    agree(
        "
        tree0 { dense i:4 j:2 { dense i:4 j:8 { place x: i32 } } dense j:16 { dense i:16 { place y: i32 } } }
        field @x: i32 = tree0 [S3]
        field @y: i32 = tree0 [S6]
        kernel @laplace() {
            v0: i32 = const 1
            v1: i32 = const 15
            parallel [v0, v0], [v1, v1] (i: i32, j: i32) {
            }
            yield []
        }"
        .replace("(i: i32, j: i32) {\n", "(va: i32, vb: i32) {
                v2: i32 = sub va, v0
                v3: i32 = add va, v0
                v4: i32 = add vb, v0
                v5: ref<i32> = field_at @x, [v2, vb]
                v6: ref<i32> = field_at @x, [v3, vb]
                v7: ref<i32> = field_at @x, [va, v4]
                v8: i32 = load v5
                v9: i32 = load v6
                v10: i32 = load v7
                v11: i32 = add v8, v9
                v12: i32 = add v11, v10
                v13: ref<i32> = field_at @y, [va, vb]
                store v13, v12
                yield []
")
        .as_str(),
    );
}

#[test]
fn functions_that_leave_early_or_end() {
    let printed = agree(
        r#"
        func @clamped(v0: i32, v1: i32) -> i32, i32 {
            v2: u1 = gt v0, v1
            if v2 {
                return [v1, v0]
            } {
                yield []
            }
            yield [v0, v1]
        }
        kernel @k() {
            v0: i32 = const 3
            v1: i32 = const 5
            v2: i32, v3: i32 = call @clamped, [v0, v1]
            v4: i32, v5: i32 = call @clamped, [v1, v0]
            print "{} {} {} {}\n", [v2, v3, v4, v5]
            yield []
        }"#,
    );
    assert_eq!(printed, "3 5 3 5\n");
}

#[test]
fn random_numbers_do_not_depend_on_how_a_kernel_is_divided() {
    agree(
        r#"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 3
            parallel [v0], [v1] (v2: i32) {
                yield []
            }
            parallel [v0], [v1] serial (v2: i32) {
                v3: i32 = random
                print "{}\n", [v3]
                yield []
            }
            v4: f32 = random
            print "{}\n", [v4]
            yield []
        }"#,
    );
}

/// Integers wrap, also where they are indices: `3 * i` times the inverse of 3 is `i`.
#[test]
fn products_that_wrap_are_indices() {
    agree(
        "
        tree0 { dense i:12 { place x: i32 } dense i:12 { place y: i32 } }
        field @x: i32 = tree0 [S2]
        field @y: i32 = tree0 [S4]
        kernel @inverse(n: i32, a: array<i32, 2>) {
            v0: i32 = const 0
            v1: i32 = const 12
            v2: i32 = const 3
            v3: i32 = const -1431655765
            v4: i32 = const 30
            v5: i32 = const 4
            parallel [v0], [v1] (v6: i32) {
                v7: i32 = mul v6, v2
                v8: i32 = mul v7, v3
                v9: ref<i32> = field_at @x, [v8]
                v10: i32 = mul v6, v5
                v11: i32 = shl v10, v4
                v12: ref<i32> = array_at a1, [v11, v0]
                v13: i32 = load v12
                v14: i32 = add v13, v6
                store v9, v14
                yield []
            }
            yield []
        }",
    );
}

/// One rounding, also of halves: the square of 1025 / 1024 is not a half.
#[test]
fn sums_of_products_of_halves() {
    let printed = agree(
        r#"
        kernel @fused(n: i32) {
            v0: f16 = const 1.0009765625
            v1: f16 = const -1.001953125
            v2: ref<f16> = local
            store v2, v0
            v3: f16 = load v2
            v4: f16 = fma v3, v3, v1
            v5: vec<2, f16> = tensor [v3, v1]
            v6: vec<2, f16> = tensor [v1, v3]
            v7: vec<2, f16> = fma v5, v5, v6
            v8: i32 = const 0
            v9: f16 = tensor_get v7, [v8]
            v10: f64 = cast v4
            v11: f64 = cast v9
            print "{} {}\n", [v10, v11]
            return []
        }"#,
    );
    assert_eq!(printed, "0.000000953674 0.000000953674\n");
}
