//! Which operations of small functions may be regrouped and fused.

use super::accumulations;
use crate::{Op, parse_module, walk};

/// What the sums and products of a function may do, in their order: r for regroup, f for fuse, - for neither. The
/// body has the parameters `x`, `y`, `n` and yields one number.
fn freedom(body: &str) -> String {
    let text = format!(
        "func @f(x: f32, y: f32, n: i32) -> f32 {{
                lo: i32 = const 0
                one: i32 = const 1
                zero: f32 = const 0.0
                {body}
            }}"
    );
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let func = module.funcs.values().next().expect("a function");
    let found = accumulations(func, &module.env, true);
    let mut all = Vec::new();
    walk(func, func.body, &mut |func, inst| {
        if let Op::Binary { op, .. } = func[inst] {
            let mut word = op.name().to_owned();
            for (is, letter) in [(found.regroup[inst], " r"), (found.fuse[inst], " f")] {
                if is {
                    word.push_str(letter);
                }
            }
            all.push(word);
        }
    });
    all.join(", ")
}

/// A loop with one carried variable `s`; what follows it, and the end, is `after`.
fn carried(body: &str, after: &str) -> String {
    freedom(&format!(
        "v9: f32 = for lo, n, one, [zero] (i: i32, s: f32) {{
                k: f32 = cast i
                {body}
            }}
            {after}"
    ))
}

#[test]
fn sums_of_products() {
    let body = "p: f32 = mul k, y  t: f32 = add s, p  yield [t]";
    assert_eq!(carried(body, "yield [x]"), "mul f, add r f");
    let body = "p: f32 = mul k, y  t: f32 = sub s, p  yield [t]";
    assert_eq!(carried(body, "yield [x]"), "mul f, sub r f");
    // The result is scaled, and then the function's.
    let body = "p: f32 = mul k, y  t: f32 = add p, s  yield [t]";
    let after = "z: f32 = mul v9, x  yield [zero]";
    assert_eq!(carried(body, after), "mul f, add r f, mul");
}

#[test]
fn what_depends_on_the_last_digit() {
    let body = "p: f32 = mul k, y  t: f32 = add s, p  yield [t]";
    for after in [
        "m: f32 = mul x, x  d: f32 = sub v9, m  yield [zero]",
        "d: f32 = sqrt v9  yield [zero]",
        "d: u1 = lt v9, x  yield [zero]",
        "d: f32 = div x, v9  yield [zero]",
        "d: i32 = cast v9  yield [zero]",
        "m: f32 = add v9, x  d: f32 = floor m  yield [zero]",
        // What a caller does is not known.
        "yield [v9]",
    ] {
        let found = carried(body, after);
        assert!(found.starts_with("mul, add r"), "{after}: {found}");
        assert!(!found.contains('f'), "{after}: {found}");
    }
}

#[test]
fn squares() {
    let body = "p: f32 = mul k, k  t: f32 = add s, p  yield [t]";
    assert_eq!(carried(body, "yield [x]"), "mul, add r");
}

#[test]
fn what_the_loop_reads() {
    // Partial sums are observed.
    let body = "t: f32 = add s, k  d: u1 = lt t, x  w: f32 = select d, t, x  yield [w]";
    assert_eq!(carried(body, "yield [x]"), "add");
    // A recurrence.
    let body = "p: f32 = mul s, y  t: f32 = add p, x  yield [t]";
    assert_eq!(carried(body, "yield [x]"), "mul, add");
    let body = "p: f32 = mul s, k  t: f32 = add s, p  yield [t]";
    assert_eq!(carried(body, "yield [x]"), "mul, add");
}

#[test]
fn products_and_extrema() {
    // In another order products overflow elsewhere.
    assert_eq!(carried("t: f32 = mul s, k  yield [t]", "yield [x]"), "mul");
    assert_eq!(
        carried("t: f32 = min k, s  yield [t]", "yield [x]"),
        "min r"
    );
    let mixed = "t: f32 = add s, k  u: f32 = max t, x  yield [u]";
    assert_eq!(carried(mixed, "yield [x]"), "add, max");
}

#[test]
fn exits_hand_values_on() {
    // The root of what a loop was left with.
    let sum = "
            v8: f32 = for lo, n, one, [zero] (j: i32, s: f32) {
                k: f32 = cast j
                p: f32 = mul k, y
                t: f32 = add s, p
                yield [t]
            }";
    for leaves in ["break [v8]", "continue [v8]"] {
        let body = format!(
            "{sum}
                v9: f32 = for lo, n, one, [zero] (i: i32, r: f32) {{
                    c: u1 = eq i, n
                    if c {{
                        {leaves}
                    }} {{
                        yield []
                    }}
                    yield [r]
                }}
                v10: f32 = sqrt v9
                yield [zero]"
        );
        assert_eq!(freedom(&body), "mul, add r", "{leaves}");
    }
}

#[test]
fn sums_that_do_not_begin_at_zero() {
    let body = "
            v9: f32 = for lo, n, one, [x] (i: i32, s: f32) {
                k: f32 = cast i
                p: f32 = mul k, y
                t: f32 = add s, p
                yield [t]
            }
            yield [zero]";
    assert_eq!(freedom(body), "mul, add r");
}

#[test]
fn sums_that_are_written_out() {
    let sums = |body: &str| {
        let text = format!(
            "kernel @k(a: f32, b: f32) -> f32 {{
                    x: f32 = arg a0
                    y: f32 = arg a1
                    zero: f32 = const 0.0
                    {body}
                }}"
        );
        let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let func = module.kernel().expect("a kernel");
        let found = accumulations(func, &module.env, true);
        let mut all = Vec::new();
        walk(func, func.body, &mut |func, inst| {
            if let Op::MulAdd { .. } = func[inst] {
                all.push(found.fuse[inst]);
            }
        });
        all
    };
    let chain = "s: f32 = muladd x, y, zero  t: f32 = muladd y, x, s  ";
    assert_eq!(sums(&format!("{chain} return [t]")), [true, true]);
    let product = "s: f32 = mul x, y  t: f32 = muladd y, x, s  return [t]";
    assert_eq!(sums(product), [true]);
    // A partial sum is read, a decision follows, and another number than zero comes first.
    assert_eq!(
        sums(&format!("{chain} u: f32 = add s, t  return [u]")),
        [true, false]
    );
    assert_eq!(
        sums(&format!("{chain} u: f32 = sqrt t  return [u]")),
        [false, false]
    );
    assert_eq!(sums("t: f32 = muladd y, x, x  return [t]"), [false]);
}

#[test]
fn memory_hands_values_on() {
    let kernel = |reads: &str| {
        let text = format!(
            "arrays_apart
                kernel @k(a: array<f32, 1>, b: array<f32, 1>) {{
                    lo: i32 = const 0
                    one: i32 = const 1
                    n: i32 = const 9
                    zero: f32 = const 0.0
                    two: f32 = const 2.0
                    v9: f32 = for lo, n, one, [zero] (i: i32, s: f32) {{
                        k: f32 = cast i
                        p: f32 = mul k, two
                        t: f32 = add s, p
                        yield [t]
                    }}
                    place: ref<f32> = array_at a0, [lo]
                    store place, v9
                    other: ref<f32> = array_at {reads}, [one]
                    value: f32 = load other
                    root: f32 = sqrt value
                    last: ref<f32> = array_at a1, [n]
                    store last, root
                    yield []
                }}"
        );
        let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let func = module.kernel().expect("a kernel");
        let found = accumulations(func, &module.env, true);
        let mut fused = false;
        walk(func, func.body, &mut |_, inst| fused |= found.fuse[inst]);
        fused
    };
    assert!(kernel("a1"));
    assert!(!kernel("a0"));
}

#[test]
fn branches_and_loops_inside() {
    let body = "
            c: u1 = lt k, x
            t: f32 = if c {
                p: f32 = mul k, y
                u: f32 = add s, p
                yield [u]
            } {
                yield [s]
            }
            yield [t]";
    assert_eq!(carried(body, "yield [x]"), "mul f, add r f");
    let body = "
            t: f32 = for lo, n, one, [s] (j: i32, v: f32) {
                q: f32 = cast j
                p: f32 = mul k, q
                u: f32 = add v, p
                yield [u]
            }
            yield [t]";
    assert_eq!(carried(body, "yield [x]"), "mul f, add r f");
    let body = "
            c: u1 = lt k, x
            if c {
                continue [s]
            } {
                yield []
            }
            t: f32 = add s, k
            yield [t]";
    assert_eq!(carried(body, "yield [x]"), "add r");
}
