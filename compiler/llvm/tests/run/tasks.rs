//! Tasks over ranges.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::eval;
use aerogel_runtime::{Args, Buffer};

use crate::{Kernel, buffer_of, f32_at, is_wide};

const SAXPY: &str = "
    fast_math
    tree0 { dense i:10000 { place x: f32 } dense i:10000 { place y: f32 } }
    kernel @saxpy(a: f32) {
        task range { lo: i32 = const 0  hi: i32 = const 10000  yield [lo, hi] } {
            each (i: i32) {
                a: f32 = arg a0
                r: cell<tree0.S0> = root tree0
                cx: container<tree0.S1> = child tree0.S1, r
                l: i64 = linearize tree0.S1, [i]
                c: cell<tree0.S1> = lookup tree0.S1, cx, l
                px: ref<f32> = child tree0.S2, c
                cy: container<tree0.S3> = child tree0.S3, r
                m: i64 = linearize tree0.S3, [i]
                d: cell<tree0.S3> = lookup tree0.S3, cy, m
                py: ref<f32> = child tree0.S4, d
                x: f32 = load px
                y: f32 = load py
                p: f32 = mul a, x
                s: f32 = add p, y
                one: f32 = const 1.0
                t: f32 = add s, one
                store py, t
                store px, s
                yield []
            }
            yield []
        }
        yield []
    }";

#[test]
fn fields_in_a_parallel_loop() {
    for level in [0, 3] {
        let k = Kernel::at(SAXPY, level);
        k.call(&[Scalar::f32(2.0)]);
        k.call(&[Scalar::f32(2.0)]);
        // After one launch x = 0, y = 1; after two x = 1, y = 2.
        assert_eq!(f32_at(k.roots[0].bytes(), 9999), 1.0);
    }
    let k = Kernel::new(SAXPY);
    assert!(is_wide(k.assembly()), "{}", k.assembly());
}

#[test]
fn arrays_over_rows() {
    let k = Kernel::new(
        "kernel @k(a: array<f32, 2>, b: array<f32, 2, read>) {
            task range {
                lo: i32 = const 1
                n: i32 = array_shape a0, 0
                m: i32 = array_shape a0, 1
                zero: i32 = const 0
                hi: i32 = sub n, lo
                yield [lo, hi, zero, m]
            } {
                each (i: i32, j: i32) {
                    one: i32 = const 1
                    up: i32 = sub i, one
                    down: i32 = add i, one
                    pu: ref<f32> = array_at a1, [up, j]
                    pd: ref<f32> = array_at a1, [down, j]
                    u: f32 = load pu
                    d: f32 = load pd
                    s: f32 = add u, d
                    p: ref<f32> = array_at a0, [i, j]
                    store p, s
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    let (n, m) = (101, 37);
    let input: Vec<f32> = (0..n * m).map(|i| i as f32).collect();
    let (a, b) = (buffer_of(&vec![-1.0; n * m]), buffer_of(&input));
    let mut args = Args::new();
    args.array(&a, &[n, m], 4).unwrap();
    args.array(&b, &[n, m], 4).unwrap();
    k.launch(&args).unwrap();
    for i in 0..n {
        for j in 0..m {
            let expected = if i == 0 || i == n - 1 {
                -1.0
            } else {
                input[(i - 1) * m + j] + input[(i + 1) * m + j]
            };
            assert_eq!(f32_at(&a, i * m + j), expected, "{i} {j}");
        }
    }
    assert!(is_wide(k.assembly()));
    // Nothing is divided but once at the start of a part.
    assert!(k.assembly().matches("div").count() <= 4, "{}", k.assembly());
}

#[test]
fn three_axes_cover_everything_once() {
    let k = Kernel::new(
        "tree0 { dense i:7 j:5 k:11 { place x: i32 } }
        kernel @k() {
            task range {
                z: i32 = const 0
                a: i32 = const 7
                b: i32 = const 5
                c: i32 = const 11
                yield [z, a, z, b, z, c]
            } {
                each (i: i32, j: i32, k: i32) {
                    r: cell<tree0.S0> = root tree0
                    cs: container<tree0.S1> = child tree0.S1, r
                    l: i64 = linearize tree0.S1, [i, j, k]
                    c: cell<tree0.S1> = lookup tree0.S1, cs, l
                    p: ref<i32> = child tree0.S2, c
                    one: i32 = const 1
                    old: i32 = atomic_add p, one
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    for n in 1..4 {
        k.call(&[]);
        for i in 0..7 * 5 * 11 {
            let v = k.roots[0].read_scalar(ScalarType::I32, i * 4).unwrap();
            assert_eq!(v.as_i128(), n);
        }
    }
}

#[test]
fn random_numbers_do_not_depend_on_threads() {
    let k = Kernel::new(
        "kernel @k(a: array<f32, 2>) {
            task range {
                z: i32 = const 0
                n: i32 = array_shape a0, 0
                m: i32 = array_shape a0, 1
                yield [z, n, z, m]
            } {
                each (i: i32, j: i32) {
                    u: f32 = random
                    v: f32 = random
                    p: ref<f32> = array_at a0, [i, j]
                    store p, v
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    let (n, m) = (200, 300);
    let a = Buffer::zeroed(n * m * 4).unwrap();
    let mut args = Args::new();
    args.array(&a, &[n, m], 4).unwrap();
    k.launch(&args).unwrap();
    for linear in [0, 1, 299, 300, 59_999] {
        let state = eval::random_state(7, 1, linear);
        let (state, _) = eval::random_step(state);
        let (_, bits) = eval::random_step(state);
        let expected = eval::random_value(bits, ScalarType::F32);
        let found = a.read_scalar(ScalarType::F32, linear as usize * 4).unwrap();
        assert_eq!(found, expected);
    }
}
