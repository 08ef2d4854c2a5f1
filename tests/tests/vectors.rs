//! Access patterns that become vector code, through the whole pipeline, for a processor with vectors of 32 bytes
//! whatever this one has.

use aerogel_ir::{FastMath, Module, parse_module};
use aerogel_llvm::target::{Cpu, Level};
use aerogel_llvm::{OptLevel, Texts, compile};
use aerogel_passes::Options;

/// How many additions of eight floats the code of a kernel has.
fn vector_sums(text: &str) -> usize {
    let mut module: Module = parse_module(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    module.env.fast_math = FastMath::Full;
    module.env.arrays_apart = true;
    aerogel_passes::run(&mut module, Options::default(), &mut ()).unwrap_or_else(|e| panic!("{e}"));
    let target = Cpu::X86_64(Level::V3).target();
    let code = compile(&module, &target, OptLevel(3), Texts::Code);
    let llvm = code.llvm_ir.expect("asked for");
    let of_eight = |line: &&str| line.contains("= fadd ") && line.contains("<8 x float>");
    llvm.lines().filter(of_eight).count()
}

/// `b[i] = a[4 * i] + a[4 * i + 1]` where `scaled` makes `v4` of the counter `v3`, in fields and in arrays.
fn of_pairs(scaled: &str) -> [usize; 2] {
    let fields = "
        tree0 { dense i:4096 { place x: f32 } dense i:1024 { place y: f32 } }
        field @a: f32 = tree0 [S2]
        field @b: f32 = tree0 [S4]";
    let body = |bounds: &str, a: &str, b: &str, params: &str| {
        format!(
            "
            kernel @pairs({params}) {{
                v0: i32 = const 0
                v2: i32 = const 1
                {bounds}
                parallel [v0], [v1] (v3: i32) {{
                    {scaled}
                    v5: i32 = add v4, v2
                    v6: ref<f32> = {a}, [v4]
                    v7: ref<f32> = {a}, [v5]
                    v8: f32 = load v6
                    v9: f32 = load v7
                    v10: f32 = add v8, v9
                    v11: ref<f32> = {b}, [v3]
                    store v11, v10
                    yield []
                }}
                yield []
            }}"
        )
    };
    let in_fields = body("v1: i32 = const 1024", "field_at @a", "field_at @b", "");
    let in_arrays = body(
        "v1: i32 = array_shape a1, 0",
        "array_at a0",
        "array_at a1",
        "a: array<f32, 1>, b: array<f32, 1>",
    );
    [
        vector_sums(&format!("{fields}{in_fields}")),
        vector_sums(&in_arrays),
    ]
}

#[test]
fn pairs_named_by_products_and_by_shifts() {
    let by_product = of_pairs("v12: i32 = const 4 v4: i32 = mul v3, v12");
    let by_shift = of_pairs("v12: i32 = const 2 v4: i32 = shl v3, v12");
    assert!(by_product.iter().all(|&n| n > 0), "{by_product:?}");
    assert_eq!(by_shift, by_product);
}
