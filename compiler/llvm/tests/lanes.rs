//! Iterations with loops inside give the same in the lanes of vectors as one after the other.

mod by_rows;

use aerogel_runtime::Buffer;
use by_rows::{OF_THE_ARRAY, Third, code, numbers};

/// Numbers of rows and columns, with rows shorter than a vector, as long, and longer.
const SHAPES: [[usize; 2]; 5] = [[1, 1], [3, 5], [4, 16], [2, 37], [1, 1000]];

/// What a loop over an array writes into it, and adds to the elements of another one, and the LLVM IR of its code.
fn run(body: &str, level: u8, [n, m]: [usize; 2]) -> (Vec<i32>, String) {
    let before = "three: i32 = const 3  gathered: ref<i32> = local";
    let compiled = code("array<i32, 1>", OF_THE_ARRAY, before, body, level);
    let sums = Buffer::zeroed(m * 4).unwrap();
    let mut found = by_rows::run(&compiled, [n, m], Third::Array(&sums, m));
    if body.contains("array_at a2") {
        found.extend(numbers(&sums, m));
    }
    (found, compiled.llvm_ir.unwrap())
}

/// Checks that a body runs in lanes, and gives what it gives without.
fn agrees(body: &str) {
    for shape in SHAPES {
        let (expected, _) = run(body, 0, shape);
        let (found, llvm_ir) = run(body, 3, shape);
        assert_eq!(found, expected, "{shape:?}\n{body}");
        assert!(llvm_ir.contains("batch"), "{llvm_ir}");
    }
}

/// How many steps from `n` to 1 there are in Collatz's problem.
const COLLATZ: &str = "
    from: i32 = mul i, three
    k: i32 = add from, j
    n: i32 = add k, one
    x: i32, r: i32 = while [n, zero] (x: i32, c: i32) {
        more: u1 = ne x, one
        yield [more]
    } (x: i32, c: i32) {
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
    }";

#[test]
fn each_lane_leaves_when_it_is_done() {
    agrees(COLLATZ);
    let steps = |mut x: i32| {
        let mut n = 0;
        while x != 1 {
            x = if x % 2 == 0 { x / 2 } else { 3 * x + 1 };
            n += 1;
        }
        n
    };
    let (found, _) = run(COLLATZ, 3, [2, 37]);
    let expected: Vec<i32> = (0..2 * 37)
        .map(|k| steps(k / 37 * 3 + k % 37 + 1))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn break_and_continue() {
    agrees(
        "five: i32 = const 5
        hundred: i32 = const 100
        r: i32 = for zero, hundred, one, [zero] (k: i32, s: i32) {
            odd: i32 = and k, one
            skip: u1 = ne odd, zero
            if skip { u: i32 = add s, one  continue [u] } { yield [] }
            t: i32 = add s, k
            far: i32 = mul j, five
            stop: u1 = gt t, far
            if stop { v: i32 = add t, i  break [v] } { yield [] }
            yield [t]
        }",
    );
    // A lane that broke off is not wanted again, whatever the condition says.
    agrees(
        "r: i32 = while [zero] (c: i32) {
            hundred: i32 = const 100
            more: u1 = lt c, hundred
            yield [more]
        } (c: i32) {
            e: i32 = add c, one
            stop: u1 = gt e, j
            if stop { break [c] } { yield [] }
            yield [e]
        }",
    );
}

#[test]
fn loops_inside_loops() {
    agrees(
        "w: i32, r: i32 = while [j, zero] (w: i32, s: i32) {
            more: u1 = gt w, zero
            yield [more]
        } (w: i32, s: i32) {
            t: i32 = for zero, w, one, [s] (k: i32, s: i32) {
                x: i32 = xor k, s
                big: u1 = gt x, w
                y: i32 = if big { z: i32 = sub x, w  yield [z] } { yield [x] }
                u: i32 = add y, one
                yield [u]
            }
            v: i32 = shr w, one
            yield [v, t]
        }",
    );
}

#[test]
fn several_loops_and_what_stands_between() {
    agrees(&format!(
        "{}
        q: ref<i32> = array_at a1, [i, j]
        old: i32 = load q
        mid: i32 = add old, steps
        r: i32 = for zero, mid, one, [mid] (k: i32, s: i32) {{
            t: i32 = xor s, k
            yield [t]
        }}
        twice: i32 = add r, steps
        store q, twice",
        COLLATZ.replace("r: i32", "steps: i32")
    ));
}

#[test]
fn each_lane_draws_its_own_numbers() {
    agrees(
        "start: f32 = const 1.0
        before: i32 = random
        u: f32, last: i32 = while [start, before] (u: f32, c: i32) {
            least: f32 = const 0.125
            more: u1 = gt u, least
            yield [more]
        } (u: f32, c: i32) {
            v: f32 = random
            half: f32 = const 0.5
            low: u1 = lt v, half
            w: i32 = if low { x: i32 = random  yield [x] } { yield [c] }
            yield [v, w]
        }
        after: i32 = random
        r: i32 = xor last, after",
    );
}

#[test]
fn functions_of_floats() {
    agrees(
        "x: f32 = cast j
        start: f32 = const 1.0
        y: f32, n: i32 = while [start, zero] (y: f32, n: i32) {
            more: u1 = lt y, x
            yield [more]
        } (y: f32, n: i32) {
            e: f32 = exp y
            s: f32 = sqrt e
            q: f32 = div e, s
            t: f32 = cast n
            u: f32 = add q, t
            m: i32 = add n, one
            yield [u, m]
        }
        bits: i32 = bitcast y
        r: i32 = xor bits, n",
    );
}

/// Up to the loop, lanes behind the end of a row do what the last one does, so a body that writes
/// before runs one after the other.
#[test]
fn writes_come_once() {
    let body = format!(
        "q: ref<i32> = array_at a1, [zero, zero]
        before: i32 = atomic_add q, one
        {}
        after: i32 = atomic_add q, zero
        enough: u1 = gt after, i
        r: i32 = select enough, steps, after",
        COLLATZ.replace("r: i32", "steps: i32")
    );
    let (found, llvm_ir) = run(&body, 3, [1, 5]);
    assert_eq!(found, [0, 1, 7, 2, 5]);
    assert!(!llvm_ir.contains("batch"), "{llvm_ir}");
}

/// Nor may what an iteration leaves to the next be read for many at once.
#[test]
fn sums_go_from_one_iteration_to_the_next() {
    let body = format!(
        "sum: i32 = load gathered
        {}
        r: i32 = add sum, steps
        store gathered, r",
        COLLATZ.replace("r: i32", "steps: i32")
    );
    let (found, llvm_ir) = run(&body, 3, [1, 5]);
    assert_eq!(found, [0, 1, 8, 10, 15]);
    assert!(!llvm_ir.contains("batch"), "{llvm_ir}");
}

/// `sum of b[k, j] * b[i, 0]` for `k`: the first factor lies side by side, the second is the same.
const COLUMN: &str = "
    rows: i32 = array_shape a1, 0
    r: i32 = for zero, rows, one, [zero] (k: i32, s: i32) {
        p: ref<i32> = array_at a1, [k, j]
        x: i32 = load p
        q: ref<i32> = array_at a1, [i, zero]
        y: i32 = load q
        z: i32 = mul x, y
        t: i32 = add s, z
        yield [t]
    }";

#[test]
fn what_lies_side_by_side_or_is_the_same() {
    agrees(COLUMN);
}

/// Numbers that go along with the lanes, nested loops, branches, and what was read before.
#[test]
fn loops_in_loops_that_iterations_share() {
    agrees(
        "rows: i32 = array_shape a1, 0
        columns: i32 = array_shape a1, 1
        here: ref<i32> = array_at a1, [i, j]
        own: i32 = load here
        same: ref<i32> = array_at a1, [i, zero]
        first: i32 = load same
        twice: i32 = mul j, two
        r: i32 = for zero, rows, one, [own] (k: i32, s: i32) {
            t: i32 = for zero, columns, one, [s] (l: i32, s: i32) {
                p: ref<i32> = array_at a1, [k, l]
                x: i32 = load p
                less: u1 = lt x, own
                y: i32 = if less { d: i32 = sub twice, l  yield [d] } { yield [first] }
                z: i32 = mul x, y
                u: i32 = add s, z
                yield [u]
            }
            p: ref<i32> = array_at a1, [k, j]
            x: i32 = load p
            v: i32 = xor t, x
            yield [v]
        }",
    );
}

/// Loops that diverge may stand beside those that iterations share.
#[test]
fn shared_loops_and_others() {
    agrees(&format!(
        "{}
        {}
        r: i32 = add column, steps",
        COLUMN.replace("r: i32", "column: i32"),
        COLLATZ.replace("r: i32", "steps: i32")
    ));
}

/// What lies elsewhere for each lane is read one by one, as are loops that write or that some leave.
#[test]
fn loops_that_are_not_shared() {
    let mirrored = "
        columns: i32 = array_shape a1, 1
        last: i32 = sub columns, one
        at: i32 = sub last, j
        "
    .to_owned()
        + &COLUMN.replace("[k, j]", "[k, at]");
    let writing = COLUMN.replace(
        "t: i32 = add s, z",
        "w: ref<i32> = array_at a0, [i, j]
        store w, z
        t: i32 = add s, z",
    );
    let left = COLUMN.replace(
        "t: i32 = add s, z",
        "t: i32 = add s, z
        enough: u1 = gt t, j
        if enough { break [t] } { yield [] }",
    );
    for body in [mirrored, writing, left] {
        for shape in SHAPES {
            let (expected, _) = run(&body, 0, shape);
            let (found, llvm_ir) = run(&body, 3, shape);
            assert_eq!(found, expected, "{shape:?}\n{body}");
            assert!(!llvm_ir.contains("batch"), "{llvm_ir}");
        }
    }
}

/// The way back through Collatz's problem: what a loop saved, taken from the last turn to the first.
fn there_and_back(between: &str) -> String {
    format!(
        "from: i32 = mul i, three
        k: i32 = add from, j
        n: i32 = add k, one
        no: i64 = const 0
        next: i64 = const 1
        back: i64 = const -1
        saved: buffer<i32> = buffer
        x: i32, turns: i64 = while [n, no] (x: i32, c: i64) {{
            more: u1 = ne x, one
            yield [more]
        }} (x: i32, c: i64) {{
            d: i64 = add c, next
            room: room<i32>, granted: u1 = reserve saved, d
            assert granted, memory, \"no room for {{}}\", [d]
            place: ref<i32> = room_at room, c
            store place, x
            odd: i32 = and x, one
            is: u1 = ne odd, zero
            y: i32 = if is {{
                t: i32 = mul x, three
                u: i32 = add t, one
                yield [u]
            }} {{
                h: i32 = floordiv x, two
                yield [h]
            }}
            yield [y, d]
        }}
        room: room<i32>, granted: u1 = reserve saved, turns
        assert granted, memory, \"no room for {{}}\", [turns]
        q: ref<i32> = array_at a1, [i, j]
        {between}
        last: i64 = add turns, back
        r: i32 = for last, back, back, [old] (t: i64, s: i32) {{
            place: ref<i32> = room_at room, t
            x: i32 = load place
            many: i32 = mul s, three
            more: i32 = xor many, x
            at: i32 = cast t
            all: i32 = add more, at
            yield [all]
        }}"
    )
}

#[test]
fn what_loops_save_lies_side_by_side() {
    agrees(&there_and_back("old: i32 = load q"));
    let (_, llvm_ir) = run(&there_and_back("old: i32 = load q"), 3, [1, 1000]);
    assert!(llvm_ir.contains("reduce.smax"), "{llvm_ir}");
}

/// What stands between may write, once for each iteration there is.
#[test]
fn writes_between_loops_that_save_come_once() {
    agrees(&there_and_back(
        "old: i32 = load q
        store q, zero",
    ));
    let sums = "sum: ref<i32> = array_at a1, [zero, zero]
        before: i32 = atomic_add sum, one
        old: i32 = add zero, two";
    let body = there_and_back(sums).replace("r: i32 = for", "s: i32 = for") + "\nr: i32 = load sum";
    let (found, llvm_ir) = run(&body, 3, [1, 5]);
    assert!(llvm_ir.contains("reduce.smax"), "{llvm_ir}");
    assert_eq!(found, [5; 5]);
}

/// Loops inside loops save and take for each turn of the outer one; in some turns nothing at all.
#[test]
fn loops_inside_loops_save() {
    agrees(
        "no: i64 = const 0
        next: i64 = const 1
        back: i64 = const -1
        outer: buffer<i32> = buffer
        many: i32 = and j, three
        x: i32, turns: i64 = while [many, no] (x: i32, c: i64) {
            more: u1 = gt x, zero
            yield [more]
        } (x: i32, c: i64) {
            d: i64 = add c, next
            room: room<i32>, granted: u1 = reserve outer, d
            assert granted, memory, \"no room for {}\", [d]
            place: ref<i32> = room_at room, c
            store place, x
            y: i32 = sub x, one
            yield [y, d]
        }
        room: room<i32>, granted: u1 = reserve outer, turns
        assert granted, memory, \"no room for {}\", [turns]
        last: i64 = add turns, back
        r: i32 = for last, back, back, [j] (t: i64, s: i32) {
            place: ref<i32> = room_at room, t
            x: i32 = load place
            inner: buffer<i32> = buffer
            odd: i32 = xor x, i
            bound: i32 = and odd, three
            c: i64 = for zero, bound, one, [no] (k: i32, c: i64) {
                d: i64 = add c, next
                room: room<i32>, granted: u1 = reserve inner, d
                assert granted, memory, \"no room for {}\", [d]
                place: ref<i32> = room_at room, c
                w: i32 = mul k, x
                store place, w
                yield [d]
            }
            room: room<i32>, granted: u1 = reserve inner, c
            assert granted, memory, \"no room for {}\", [c]
            late: i64 = add c, back
            u: i32 = for late, back, back, [s] (t: i64, s: i32) {
                place: ref<i32> = room_at room, t
                w: i32 = load place
                v: i32 = mul s, three
                z: i32 = add v, w
                yield [z]
            }
            yield [u]
        }",
    );
}

/// Where few turns are known beforehand they save in locals.
#[test]
fn turns_save_in_locals() {
    let body = "no: i64 = const 0
        next: i64 = const 1
        back: i64 = const -1
        last: i64 = const 29
        many: i32 = const 30
        n: i32 = add j, i
        second: i64 = const 2
        saved: ref<vec<30, i32>> = local
        x: i32, c: i64 = for zero, many, one, [n, no] (k: i32, x: i32, c: i64) {
            place: ref<i32> = elem_ref saved, [c]
            store place, x
            y: i32 = while [x] (y: i32) {
                more: u1 = gt y, k
                yield [more]
            } (y: i32) {
                h: i32 = floordiv y, two
                yield [h]
            }
            w: i32 = mul x, three
            z: i32 = add w, y
            d: i64 = add next, c
            yield [z, d]
        }
        q: ref<i32> = array_at a1, [i, j]
        old: i32 = load q
        store q, zero
        s: i32 = for last, back, back, [old] (t: i64, s: i32) {
            place: ref<i32> = elem_ref saved, [t]
            x: i32 = load place
            inner: ref<vec<3, i32>> = local
            odd: i32 = and x, one
            for zero, odd, one, [] (k: i32) {
                place: ref<i32> = elem_ref inner, [k]
                store place, x
                yield []
            }
            u: i32 = for second, back, back, [s] (k: i64, s: i32) {
                place: ref<i32> = elem_ref inner, [k]
                w: i32 = load place
                m: i32 = mul s, three
                z: i32 = xor m, w
                yield [z]
            }
            v: i32 = xor u, x
            yield [v]
        }
        both: ref<vec<2, i32>> = local
        first: ref<i32> = elem_ref both, [zero]
        store first, s
        again: i32 = load first
        r: i32 = add again, i";
    agrees(body);
    let straight = "no: i64 = const 0
        next: i64 = const 1
        back: i64 = const -1
        last: i64 = const 63
        many: i32 = const 64
        saved: ref<vec<64, i32>> = local
        x: i32, c: i64 = for zero, many, one, [j, no] (k: i32, x: i32, c: i64) {
            place: ref<i32> = elem_ref saved, [c]
            store place, x
            w: i32 = mul x, three
            z: i32 = xor w, k
            d: i64 = add c, next
            yield [z, d]
        }
        r: i32 = for last, back, back, [x] (t: i64, s: i32) {
            place: ref<i32> = elem_ref saved, [t]
            x: i32 = load place
            m: i32 = mul s, three
            z: i32 = xor m, x
            yield [z]
        }";
    agrees(straight);
}

/// What computes much, and reads in a branch where there may be nothing to read, before it adds to what neighbours add to.
const SCATTERS: &str = "
    from: i32 = mul i, three
    k: i32 = add from, j
    f: f32 = cast k
    g: f32 = mul f, f
    h: f32 = add g, f
    root: f32 = sqrt h
    u: f32 = mul root, h
    v: f32 = add u, g
    w: f32 = mul v, root
    x: f32 = sub w, f
    y: f32 = mul x, x
    here: ref<i32> = array_at a1, [i, j]
    there: i32 = load here
    hundred: i32 = const 100
    at: i32 = mul there, hundred
    first: u1 = eq there, zero
    z: f32 = if first {
        place: ref<i32> = array_at a1, [at, at]
        read: i32 = load place
        some: f32 = cast read
        t: f32 = mul some, y
        yield [t]
    } {
        yield [root]
    }
    r: i32 = cast z
    last: i32 = array_shape a1, 1
    most: i32 = sub last, one
    left: i32 = sub j, two
    inside: i32 = max left, zero
    to: i32 = min inside, most
    sum: ref<i32> = array_at a2, [to]
    before: i32 = atomic_add sum, r
    all: ref<i32> = array_at a2, [zero]
    many: i32 = atomic_add all, one
";

#[test]
fn what_is_added_comes_last() {
    agrees(SCATTERS);
}

#[test]
fn some_iterations_add() {
    agrees(&format!(
        "{}
        if first {{
            q: i32 = atomic_max sum, k
            yield []
        }} {{
            mine: i32 = load gathered
            more: i32 = add mine, one
            store gathered, more
            yield []
        }}",
        SCATTERS
    ));
}

/// An iteration that reads what others add to, or wants to know what was there, waits for its turn.
#[test]
fn additions_that_are_seen() {
    let others = [
        (
            "here: ref<i32> = array_at a1, [i, j]",
            "here: ref<i32> = array_at a2, [j]",
        ),
        (
            "atomic_add all, one",
            "atomic_add all, one\nseen: ref<i32> = array_at a1, [i, j]\nstore seen, many",
        ),
    ];
    for (of, by) in others {
        assert!(SCATTERS.contains(of));
        let (_, llvm_ir) = run(&SCATTERS.replace(of, by), 3, [2, 37]);
        assert!(!llvm_ir.contains("batch"), "{llvm_ir}");
    }
}
