//! Loops and branches, calls, and what a kernel says to its host.

use aerogel_base::Scalar;
use aerogel_runtime::{Args, Buffer, KernelFailure};

use crate::{Kernel, expression};

#[test]
fn loops_carry_values_and_leave_early() {
    let k = Kernel::new(&expression(
        "n: i32",
        "i32",
        "n: i32 = arg a0
        zero: i32 = const 0
        one: i32 = const 1
        seven: i32 = const 7
        r: i32 = for zero, n, one, [zero] (i: i32, s: i32) {
            skip: u1 = eq i, one
            if skip { continue [s] } { yield [] }
            stop: u1 = gt i, seven
            if stop { break [s] } { yield [] }
            t: i32 = add s, i
            yield [t]
        }",
    ));
    let run = |n| k.call(&[Scalar::i32(n)])[0] as i64;
    assert_eq!(
        [run(0), run(1), run(4), run(8), run(100)],
        [0, 0, 5, 27, 27]
    );
}

#[test]
fn loops_by_other_steps() {
    let k = Kernel::new(&expression(
        "lo: i32, hi: i32, step: i32",
        "i32",
        "lo: i32 = arg a0
        hi: i32 = arg a1
        step: i32 = arg a2
        zero: i32 = const 0
        r: i32 = for lo, hi, step, [zero] (i: i32, s: i32) {
            ten: i32 = const 10
            m: i32 = mul s, ten
            t: i32 = add m, i
            yield [t]
        }",
    ));
    let run = |lo, hi, step| k.call(&[lo, hi, step].map(Scalar::i32))[0] as i64;
    assert_eq!(run(1, 8, 3), 147);
    assert_eq!(run(3, 0, -1), 321);
    assert_eq!(run(9, 0, -4), 951);
    assert_eq!(run(5, 5, 2), 0);
    assert_eq!(run(5, 1, 2), 0);
    assert_eq!(run(i32::MAX - 1, i32::MAX, 2), i64::from(i32::MAX - 1));
}

#[test]
fn while_loops() {
    let k = Kernel::new(&expression(
        "n: i32",
        "i32",
        "n: i32 = arg a0
        zero: i32 = const 0
        one: i32 = const 1
        x: i32, r: i32 = while [n, zero] (x: i32, c: i32) {
            more: u1 = ne x, one
            yield [more]
        } (x: i32, c: i32) {
            two: i32 = const 2
            three: i32 = const 3
            odd: i32 = and x, one
            is: u1 = ne odd, zero
            y: i32 = if is {
                t: i32 = mul x, three
                u: i32 = add t, one
                yield [u]
            } {
                h: i32 = floordiv x, two
                yield [h]
            }
            d: i32 = add c, one
            yield [y, d]
        }",
    ));
    assert_eq!(k.call(&[Scalar::i32(27)])[0], 111);
}

#[test]
fn long_loops_in_order() {
    // More than one piece, and a `break` in the third.
    let k = Kernel::new(
        "kernel @k(n: i32) -> i64 {
            task range serial { lo: i32 = const 5  hi: i32 = arg a0  yield [lo, hi] } {
                sum: ref<i64> = temp_at 0
                zero: i64 = const 0
                store sum, zero
                each (i: i32) {
                    w: i64 = cast i
                    old: i64 = atomic_add sum, w
                    limit: i32 = const 10000000
                    stop: u1 = eq i, limit
                    if stop { break [] } { yield [] }
                    yield []
                }
                yield []
            }
            task serial { yield [] } {
                sum: ref<i64> = temp_at 0
                r: i64 = load sum
                return [r]
            }
            yield []
        }",
    );
    let sum = |n: u64| n * (n + 1) / 2 - 10;
    assert_eq!(k.call(&[Scalar::i32(9_000_001)])[0], sum(9_000_000));
    assert_eq!(k.call(&[Scalar::i32(i32::MAX)])[0], sum(10_000_000));
    assert_eq!(k.call(&[Scalar::i32(3)])[0], 0);
}

#[test]
fn asserts_end_the_launch() {
    let k = Kernel::new(
        "kernel @k(a: array<i32, 1>) {
            task range { lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] } {
                each (i: i32) {
                    p: ref<i32> = array_at a0, [i]
                    v: i32 = load p
                    five: i32 = const 5
                    ok: u1 = ne v, five
                    assert ok, assertion, \"bad {} at {:03d}\", [v, i]
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    let a = Buffer::zeroed(4000).unwrap();
    let mut args = Args::new();
    args.array(&a, &[1000], 4).unwrap();
    k.launch(&args).unwrap();
    a.write_scalar(4 * 42, Scalar::i32(5)).unwrap();
    let Err(KernelFailure::Check { site, args: values }) = k.launch(&args) else {
        panic!("the assertion holds")
    };
    assert_eq!(k.loaded.sites()[site].render(&values), "bad 5 at 042");
    a.write_scalar(4 * 42, Scalar::i32(0)).unwrap();
    k.launch(&args).unwrap();
}

#[test]
fn prints_and_functions() {
    let k = Kernel::new(
        "func @twice(x: f32) -> f32 {
            zero: f32 = const 0.0
            neg: u1 = lt x, zero
            if neg { return [zero] } { yield [] }
            y: f32 = add x, x
            return [y]
        }
        kernel @k(x: f32) {
            task serial { yield [] } {
                x: f32 = arg a0
                y: f32 = call @twice, [x]
                t: u1 = const 1
                print \"twice {} is {} {}\\n\", [x, y, t]
                yield []
            }
            yield []
        }",
    );
    k.call(&[Scalar::f32(1.25)]);
    k.call(&[Scalar::f32(-1.0)]);
    assert_eq!(
        *k.printed.lock().unwrap(),
        "twice 1.250000 is 2.500000 1\ntwice -1.000000 is 0.000000 1\n"
    );
}
