//! A row gives the same run in parts, where comparisons of the index are known, as it does by what the comparisons say.

mod by_rows;

use aerogel_llvm::Compiled;
use by_rows::{OF_THE_ARRAY, Third, element, run};

/// Rows and columns: rows of nothing, of few indices, of some vectors and a rest.
const SHAPES: [[usize; 2]; 8] = [
    [1, 1],
    [3, 2],
    [4, 31],
    [2, 32],
    [3, 33],
    [2, 64],
    [2, 101],
    [1, 1000],
];

const BEFORE: &str = "cols: i32 = array_shape a1, 1
    m2: i32 = array_shape a0, 1
    last: i32 = sub m2, one
    c: i32 = arg a2
    back: i32 = mod c, cols
    turn: i32 = sub cols, back
    less: i32 = sub zero, c
    more: i32 = add c, one";

/// The code for a body that defines `r` from `i`, `j` and the argument `c`. With `known`, the bounds are these constants.
fn code(body: &str, known: Option<[usize; 2]>) -> Compiled {
    let known = known.map(|[n, m]| format!("n: i32 = const {n}  m: i32 = const {m}"));
    by_rows::code(
        "i32",
        known.as_deref().unwrap_or(OF_THE_ARRAY),
        BEFORE,
        body,
        2,
    )
}

/// That a body gives what a function of the column, the number of columns and the argument says: the column that is read.
fn expect(body: &str, arguments: &[i32], column: impl Fn(i32, i32, i32) -> Option<i32>) {
    let unknown = code(body, None);
    for shape in SHAPES {
        let known = code(body, Some(shape));
        for &c in arguments {
            let [n, m] = shape;
            let wanted = (0..n * m).map(|k| {
                let (row, j) = (k / m, (k % m) as i32);
                let at = column(j, m as i32, c);
                at.map_or(0, |at| element(row * m + at as usize))
            });
            let wanted: Vec<i32> = wanted.collect();
            for compiled in [&unknown, &known] {
                let found = run(compiled, shape, Third::Number(c));
                assert_eq!(found, wanted, "{shape:?}, {c}: {body}");
            }
        }
    }
    let text = unknown.llvm_ir.unwrap();
    assert!(text.contains("\nedge"), "{text}");
}

const READ: &str = "p0: ref<i32> = array_at a1, [i, at]  r: i32 = load p0";

const ENDS: [i32; 11] = [
    i32::MIN,
    i32::MIN + 1,
    -101,
    -2,
    -1,
    0,
    1,
    31,
    500,
    i32::MAX - 1,
    i32::MAX,
];

#[test]
fn indices_that_are_clamped() {
    for (moved, by) in [("add j, one", 1), ("sub j, two", -2), ("sub j, zero", 0)] {
        let body = format!("x: i32 = {moved}  y: i32 = min last, x  at: i32 = max y, zero {READ}");
        expect(&body, &[0], |j, n, _| Some((j + by).clamp(0, n - 1)));
    }
}

#[test]
fn indices_that_are_moved_by_numbers_of_the_run() {
    let body = format!("x: i32 = add j, c  y: i32 = min x, last  at: i32 = max y, zero {READ}");
    expect(&body, &ENDS, |j, n, c| {
        Some(j.wrapping_add(c).clamp(0, n - 1))
    });
    let body = format!("x: i32 = sub j, c  y: i32 = max x, zero  at: i32 = min y, last {READ}");
    expect(&body, &ENDS, |j, n, c| {
        Some(j.wrapping_sub(c).clamp(0, n - 1))
    });
    let body = format!(
        "x: i32 = add j, c  w: i32 = sub x, c  v: i32 = add w, one  y: i32 = max v, zero  at: i32 = min y, last {READ}"
    );
    expect(&body, &ENDS, |j, n, _| Some((j + 1).clamp(0, n - 1)));
}

#[test]
fn indices_that_turn_round() {
    let body = format!(
        "is: u1 = lt j, turn  x: i32 = add j, back  y: i32 = sub j, turn  at: i32 = select is, x, y {READ}"
    );
    expect(&body, &[-1, 0, 1, 17, 500, -333], |j, n, c| {
        Some((j + c).rem_euclid(n))
    });
    let body = format!(
        "is: u1 = gt back, j  x: i32 = add j, turn  y: i32 = sub j, back  at: i32 = select is, x, y {READ}"
    );
    expect(&body, &[0, 1, 2, 17, 500], |j, n, c| {
        Some((j - c).rem_euclid(n))
    });
}

#[test]
fn remainders_of_indices() {
    let body = format!("x: i32 = add j, c  at: i32 = mod x, cols {READ}");
    expect(&body, &ENDS, |j, n, c| {
        Some(j.wrapping_add(c).rem_euclid(n))
    });
    let body = format!("x: i32 = sub j, c  at: i32 = mod x, cols {READ}");
    expect(&body, &ENDS, |j, n, c| {
        Some(j.wrapping_sub(c).rem_euclid(n))
    });
    // Moved by the divisor first.
    for (moved, by) in [
        ("x: i32 = add j, last", -1),
        ("x: i32 = add one, j", 1),
        ("w: i32 = add j, cols  x: i32 = sub w, one", -1),
    ] {
        let body = format!("{moved}  at: i32 = mod x, cols {READ}");
        expect(&body, &[0], |j, n, _| Some((j + by).rem_euclid(n)));
    }
    // By a number of the run, which may be zero or negative.
    let body = format!(
        "x: i32 = add j, one  y: i32 = mod x, c  z: i32 = max y, zero  at: i32 = min z, last {READ}"
    );
    expect(&body, &[-7, -1, 0, 1, 2, 40, 2000], |j, n, c| {
        let rest = match c {
            0 => 0,
            c if c < 0 => (j + 1).rem_euclid(-c) + if (j + 1) % c == 0 { 0 } else { c },
            c => (j + 1).rem_euclid(c),
        };
        Some(rest.clamp(0, n - 1))
    });
}

#[test]
fn masks_of_indices() {
    for (moved, by) in [
        ("add j, one", 1),
        ("sub j, one", -1),
        ("add j, mask", 31),
        ("add j, c", 0),
    ] {
        let body = format!(
            "mask: i32 = const 31  x: i32 = {moved}  y: i32 = and x, mask  at: i32 = min y, last {READ}"
        );
        let arguments = if by == 0 { &ENDS[..] } else { &[0] };
        expect(&body, arguments, |j, n, c| {
            Some((j.wrapping_add(c).wrapping_add(by) & 31).min(n - 1))
        });
    }
}

#[test]
fn elements_that_are_zero_outside() {
    let body =
        "x: i32 = add j, one  low: u1 = ge x, zero  high: u1 = lt x, cols  both: u1 = and low, high
        y: i32 = min x, last  at: i32 = max y, zero
        p0: ref<i32> = array_at a1, [i, at]  r0: i32 = load p0  r: i32 = select both, r0, zero";
    expect(body, &[0], |j, n, _| (j + 1 < n).then_some(j + 1));
}

#[test]
fn branches_at_an_edge() {
    for (op, is_edge) in [
        ("eq j, zero", (|j, _| j == 0) as fn(i32, i32) -> bool),
        ("ne j, last", |j, n| j != n - 1),
        ("le j, one", |j, _| j <= 1),
        ("gt last, j", |j, n| j < n - 1),
        ("ge last, j", |_, _| true),
        ("lt one, j", |j, _| j > 1),
    ] {
        let body = format!(
            "is: u1 = {op}
            r: i32 = if is {{
                yield [zero]
            }} {{
                q: ref<i32> = array_at a1, [i, j]  v: i32 = load q
                yield [v]
            }}"
        );
        expect(&body, &[0], |j, n, _| (!is_edge(j, n)).then_some(j));
    }
}

/// What holds nowhere, or everywhere, and parts that do not meet.
#[test]
fn insides_of_nothing() {
    let body = format!("x: i32 = min j, zero  y: i32 = max x, c  at: i32 = min y, last {READ}");
    expect(&body, &[0, 5, 2000], |j, n, c| {
        Some(j.min(0).max(c).min(n - 1))
    });
    let body = format!(
        "ten: i32 = const 10  x: i32 = max j, ten  y: i32 = min x, c  z: i32 = min y, last  at: i32 = max z, zero {READ}"
    );
    expect(&body, &ENDS, |j, n, c| {
        Some(j.max(10).min(c).min(n - 1).max(0))
    });
}

/// Neighbours lie side by side in the inside, and are read as vectors.
#[test]
fn neighbours_are_read_side_by_side() {
    let body = "x: i32 = add j, one  right: i32 = min x, last  y: i32 = sub j, one  left: i32 = max y, zero
        p0: ref<i32> = array_at a1, [i, left]  r0: i32 = load p0
        p1: ref<i32> = array_at a1, [i, right]  r1: i32 = load p1
        r: i32 = add r0, r1";
    side_by_side(body);
}

/// That no element is read by itself for each lane of a vector, whether the bounds are known or not.
fn side_by_side(body: &str) {
    for known in [None, Some([10, 1000])] {
        let text = code(body, known).llvm_ir.unwrap();
        let mut vectors = text.split("vector.body").skip(1);
        assert!(vectors.any(|code| code.contains("load <")), "{text}");
    }
}

#[test]
fn neighbours_around_the_ends_are_read_side_by_side() {
    side_by_side(
        "x: i32 = add j, one  right: i32 = mod x, cols  z: i32 = add j, cols  y: i32 = sub z, one  left: i32 = mod y, cols
        p0: ref<i32> = array_at a1, [i, left]  r0: i32 = load p0
        p1: ref<i32> = array_at a1, [i, right]  r1: i32 = load p1
        r: i32 = add r0, r1",
    );
}

/// That a body gives what a function of the row, the column, the numbers of rows and columns and the argument says, with the
/// bounds known and not.
fn expect_sums(body: &str, arguments: &[i32], sum: impl Fn([usize; 2], [i32; 2], i32) -> i32) {
    let unknown = code(body, None);
    for shape in SHAPES {
        let known = code(body, Some(shape));
        for &c in arguments {
            let [n, m] = shape;
            let wanted = (0..n * m).map(|k| sum(shape, [(k / m) as i32, (k % m) as i32], c));
            let wanted: Vec<i32> = wanted.collect();
            for compiled in [&unknown, &known] {
                let found = run(compiled, shape, Third::Number(c));
                assert_eq!(found, wanted, "{shape:?}, {c}: {body}");
            }
        }
    }
    let text = unknown.llvm_ir.unwrap();
    assert!(text.contains("\nedge"), "{text}");
}

/// The element of a row and a column.
fn at([_, m]: [usize; 2], row: i32, column: i32) -> i32 {
    element(row as usize * m + column as usize)
}

#[test]
fn loops_that_move_indices_around_the_ends() {
    for (radius, weighs) in [(1, false), (9, false), (9, true)] {
        // What the loop weighs is the same for all iterations, as is whether it does.
        let (weight, value) = match weighs {
            true => (
                "few: i32 = const 30  kk: i32 = mul k, k  near: u1 = lt kk, few",
                "mul kk, x",
            ),
            false => ("near: u1 = le lo, k", "add x, zero"),
        };
        let body = format!(
            "lo: i32 = const -{radius}  hi: i32 = const {}
            r: i32 = for lo, hi, one, [zero] (k: i32, s: i32) {{
                {weight}
                t: i32 = if near {{
                    moved: i32 = add j, k  at: i32 = mod moved, cols
                    p0: ref<i32> = array_at a1, [i, at]  x: i32 = load p0  y: i32 = {value}
                    yield [y]
                }} {{
                    yield [zero]
                }}
                u: i32 = add s, t
                yield [u]
            }}",
            radius + 1
        );
        expect_sums(&body, &[0], |shape, [i, j], _| {
            let cols = shape[1] as i32;
            let of = |k: i32| match (weighs, k * k < 30) {
                (true, false) => 0,
                (true, true) => k * k * at(shape, i, (j + k).rem_euclid(cols)),
                (false, _) => at(shape, i, (j + k).rem_euclid(cols)),
            };
            (-radius..=radius).map(of).sum()
        });
        if radius > 1 {
            let text = code(&body, Some([10, 1000])).llvm_ir.unwrap();
            assert!(text.contains("load <"), "{text}");
        }
    }
}

#[test]
fn loops_of_a_length_of_the_run() {
    let body = "r: i32 = for less, more, one, [zero] (k: i32, s: i32) {
            moved: i32 = add j, k  y: i32 = max moved, zero  at: i32 = min y, last
            p0: ref<i32> = array_at a1, [i, at]  x: i32 = load p0
            u: i32 = add s, x
            yield [u]
        }";
    expect_sums(body, &[-1, 0, 1, 7, 40], |shape, [i, j], c| {
        let last = shape[1] as i32 - 1;
        (-c..=c).map(|k| at(shape, i, (j + k).clamp(0, last))).sum()
    });
}

#[test]
fn loops_whose_neighbours_may_be_missing() {
    // Of each condition the next is asked only if it holds.
    let body = "lo: i32 = const -5  hi: i32 = const 6  rows: i32 = array_shape a1, 0
        r: i32 = for lo, hi, one, [zero] (h: i32, s: i32) {
            row: i32 = add i, h  above: u1 = le zero, row
            w: i32 = for lo, hi, one, [s] (k: i32, t: i32) {
                column: i32 = add j, k
                is: u1 = if above {
                    below: u1 = lt row, rows
                    is2: u1 = if below {
                        left: u1 = ge column, zero  right: u1 = gt cols, column  both: u1 = and left, right
                        yield [both]
                    } {
                        yield [below]
                    }
                    yield [is2]
                } {
                    yield [above]
                }
                x: i32 = if is {
                    p0: ref<i32> = array_at a1, [row, column]  v: i32 = load p0
                    yield [v]
                } {
                    yield [one]
                }
                u: i32 = add t, x
                yield [u]
            }
            yield [w]
        }";
    expect_sums(body, &[0], |shape, [i, j], _| {
        let [n, m] = shape.map(|n| n as i32);
        let of = |row: i32, column: i32| match (0..n).contains(&row) && (0..m).contains(&column) {
            true => at(shape, row, column),
            false => 1,
        };
        let row = |h| (-5..6).map(move |k| of(i + h, j + k));
        (-5..6).flat_map(row).sum()
    });
}

#[test]
fn loops_inside_loops_that_move_far() {
    // The second loop's bounds depend on the first one's counter, and the index is moved by both.
    let body = "lo: i32 = const -20  hi: i32 = const 21  far: i32 = const 40
        r: i32 = for lo, hi, two, [zero] (h: i32, s: i32) {
            end: i32 = add h, one
            w: i32 = for lo, end, one, [s] (k: i32, t: i32) {
                x0: i32 = sub k, far  x1: i32 = add j, x0  x2: i32 = add x1, h
                y: i32 = min x2, last  at: i32 = max y, zero
                p0: ref<i32> = array_at a1, [i, at]  x: i32 = load p0
                u: i32 = add t, x
                yield [u]
            }
            yield [w]
        }";
    let known = code(body, Some([3, 101]));
    let found = run(&known, [3, 101], Third::Number(0));
    let wanted = (0..3 * 101).map(|at_| {
        let (i, j) = (at_ / 101, at_ % 101);
        let of = |h: i32| {
            let sums = (-20..=h).map(move |k| at([3, 101], i, (j + k - 40 + h).clamp(0, 100)));
            sums.sum::<i32>()
        };
        (-20..21).step_by(2).map(of).sum::<i32>()
    });
    assert_eq!(found, wanted.collect::<Vec<_>>());
}

#[test]
fn branches_that_only_the_inside_decides() {
    // In the inside the index decides alone; elsewhere what was read does, too, which differs between iterations.
    for (is_out, op) in [("lt moved, zero", "and"), ("ge moved, zero", "or")] {
        let body = format!(
            "lo: i32 = const -5  hi: i32 = const 6
            r: i32 = for lo, hi, one, [zero] (k: i32, s: i32) {{
                q0: ref<i32> = array_at a1, [i, j]  v: i32 = load q0
                bit: i32 = and v, one  odd: u1 = gt bit, zero
                moved: i32 = add j, k  out: u1 = {is_out}  both: u1 = {op} out, odd
                f: i32 = if both {{
                    kk: i32 = mul k, k  kkk: i32 = mul kk, k  of: i32 = sub kkk, kk
                    yield [of]
                }} {{
                    yield [two]
                }}
                at: i32 = mod moved, cols
                p0: ref<i32> = array_at a1, [i, at]  x: i32 = load p0
                y: i32 = mul f, x  u: i32 = add s, y
                yield [u]
            }}"
        );
        expect_sums(&body, &[0], |shape, [i, j], _| {
            let odd = at(shape, i, j) & 1 > 0;
            let term = |k: i32| {
                let taken = match op {
                    "and" => j + k < 0 && odd,
                    _ => j + k >= 0 || odd,
                };
                let f = if taken { k * k * k - k * k } else { 2 };
                let x = at(shape, i, (j + k).rem_euclid(shape[1] as i32));
                f.wrapping_mul(x)
            };
            (-5..6).map(term).fold(0, i32::wrapping_add)
        });
    }
}
