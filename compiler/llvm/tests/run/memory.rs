//! Atomics and reductions, and what need not be loaded again.

use aerogel_base::ScalarType;
use aerogel_runtime::{Args, Buffer, KernelFailure};

use crate::{Kernel, buffer_of, f32_at, is_wide};

const SUM: &str = "
    kernel @k(a: array<f32, 1, read>) -> f32 {
        task serial { yield [] } {
            z: f32 = const 0.0
            t: ref<f32> = temp_at 0
            store t, z
            yield []
        }
        task range { lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] } {
            acc: ref<f32> = local
            each (i: i32) {
                p: ref<f32> = array_at a0, [i]
                v: f32 = load p
                old: f32 = atomic_add acc, v
                yield []
            }
            s: f32 = load acc
            t: ref<f32> = temp_at 0
            old: f32 = atomic_add t, s
            yield []
        }
        task serial { yield [] } {
            t: ref<f32> = temp_at 0
            r: f32 = load t
            return [r]
        }
        yield []
    }";

#[test]
fn sums_are_vectors() {
    sums(&Kernel::new(SUM));
    let spelled_out = "w: f32 = load acc  u: f32 = add w, v  store acc, u";
    sums(&Kernel::new(
        &SUM.replace("old: f32 = atomic_add acc, v", spelled_out),
    ));
}

fn sums(k: &Kernel) {
    let n = 100_000;
    let a = buffer_of(&vec![1.0; n]);
    let mut args = Args::new();
    args.array(&a, &[n], 4).unwrap();
    for _ in 0..3 {
        let results = k.launch(&args).unwrap();
        assert_eq!(f32::from_bits(results[0] as u32), n as f32);
    }
    assert!(is_wide(k.assembly()), "{}", k.assembly());
}

#[test]
fn maxima_are_vectors_and_skip_nan() {
    let k = Kernel::new(
        &SUM.replace("atomic_add", "atomic_max")
            .replace("const 0.0", "const -inf"),
    );
    let mut values: Vec<f32> = (0..10_000).map(|i| (i % 777) as f32 + 0.5).collect();
    values[123] = f32::NAN;
    let a = buffer_of(&values);
    let mut args = Args::new();
    args.array(&a, &[values.len()], 4).unwrap();
    let results = k.launch(&args).unwrap();
    assert_eq!(f32::from_bits(results[0] as u32), 776.5);
    assert!(is_wide(k.assembly()), "{}", k.assembly());
}

#[test]
fn atomics_of_every_kind() {
    for (op, ty, expected) in [
        ("atomic_add", "i32", 1000.0),
        ("atomic_add", "f32", 1000.0),
        ("atomic_add", "f64", 1000.0),
        ("atomic_sub", "u64", (u64::MAX - 999) as f64),
        ("atomic_max", "f32", 1.0),
        ("atomic_min", "i8", 0.0),
        ("atomic_mul", "f32", 0.0),
        ("atomic_or", "u8", 1.0),
        ("atomic_exchange", "f32", 1.0),
        ("atomic_or", "u1", 1.0),
        ("atomic_add", "f16", 1000.0),
        // 257 has one bit more than there are.
        ("atomic_add", "bf16", 256.0),
        ("atomic_sub", "bf16", -256.0),
        ("atomic_max", "bf16", 1.0),
        ("atomic_exchange", "bf16", 1.0),
    ] {
        let k = Kernel::new(&format!(
            "kernel @k(a: array<{ty}, 1>) {{
                task range {{ lo: i32 = const 0  hi: i32 = const 1000  yield [lo, hi] }} {{
                    each (i: i32) {{
                        zero: i32 = const 0
                        p: ref<{ty}> = array_at a0, [zero]
                        one: i32 = const 1
                        v: {ty} = cast one
                        old: {ty} = {op} p, v
                        yield []
                    }}
                    yield []
                }}
                yield []
            }}"
        ));
        let ty = ScalarType::from_name(ty).unwrap();
        let a = Buffer::zeroed(8).unwrap();
        let mut args = Args::new();
        args.array(&a, &[1], ty.bytes() as usize).unwrap();
        k.launch(&args).unwrap();
        assert_eq!(
            a.read_scalar(ty, 0).unwrap().to_f64(),
            expected,
            "{op} {ty}"
        );
    }
}

#[test]
fn updates_are_made_in_one_step() {
    for ty in ["u8", "u16", "u32", "u64", "f32"] {
        let k = Kernel::new(&format!(
            "kernel @k(a: array<{ty}, 1>) {{
                task range {{ lo: i32 = const 0  hi: i32 = const 100  yield [lo, hi] }} {{
                    each (i: i32) {{
                        zero: i32 = const 0
                        p: ref<{ty}> = array_at a0, [zero]
                        one: i32 = const 1
                        v: {ty} = cast one
                        old: {ty} = update p (was: {ty}) {{
                            sum: {ty} = add was, v
                            yield [sum]
                        }}
                        yield []
                    }}
                    yield []
                }}
                yield []
            }}"
        ));
        let ty = ScalarType::from_name(ty).unwrap();
        let a = Buffer::zeroed(8).unwrap();
        let mut args = Args::new();
        args.array(&a, &[1], ty.bytes() as usize).unwrap();
        k.launch(&args).unwrap();
        assert_eq!(a.read_scalar(ty, 0).unwrap().to_f64(), 100.0, "{ty}");
    }
}

#[test]
fn fields_do_not_alias() {
    let k = Kernel::new(
        "tree0 { dense i:64 { place x: f32 } place s: f32 }
        kernel @k() {
            task serial { yield [] } {
                zero: i32 = const 0
                one: i32 = const 1
                n: i32 = const 64
                for zero, n, one, [] (i: i32) {
                    r: cell<tree0.S0> = root tree0
                    cs: container<tree0.S1> = child tree0.S1, r
                    l: i64 = linearize tree0.S1, [i]
                    c: cell<tree0.S1> = lookup tree0.S1, cs, l
                    p: ref<f32> = child tree0.S2, c
                    s: ref<f32> = child tree0.S3, r
                    v: f32 = load s
                    store p, v
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    k.call(&[]);
    let loads = k.llvm_ir().matches("load float").count();
    assert_eq!(loads, 1, "{}", k.llvm_ir());
}

#[test]
fn sums_into_an_array_stay_in_registers() {
    // The inner loop adds to one element: with arrays apart there is nothing to read it again for.
    let k = Kernel::new(
        "fast_math arrays_apart
        kernel @k(c: array<f32, 1>, a: array<f32, 2, read>) {
            task range { lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] } {
                each (i: i32) {
                    zero: i32 = const 0
                    one: i32 = const 1
                    n: i32 = array_shape a1, 1
                    pc: ref<f32> = array_at a0, [i]
                    for zero, n, one, [] (j: i32) {
                        pa: ref<f32> = array_at a1, [i, j]
                        v: f32 = load pa
                        s: f32 = load pc
                        t: f32 = add s, v
                        store pc, t
                        yield []
                    }
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    let a = buffer_of(&[1.0; 1000]);
    let c = buffer_of(&[0.5; 10]);
    let mut args = Args::new();
    args.array(&c, &[10], 4).unwrap();
    args.array(&a, &[10, 100], 4).unwrap();
    k.launch(&args).unwrap();
    assert_eq!(f32_at(&c, 9), 100.5);
    assert!(is_wide(k.assembly()), "{}", k.assembly());
    let mut same = Args::new();
    same.array(&a, &[10], 4).unwrap();
    same.array(&a, &[10, 100], 4).unwrap();
    assert_eq!(k.launch(&same), Err(KernelFailure::Overlap));
}
