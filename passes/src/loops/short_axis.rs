//! A last axis of few indices becomes a loop of each iteration.
//!
//! ```text
//! parallel [0, 0], [n, 3] (i, c) { b[i, c] = a[i, c] }
//!     ==>    parallel [0], [n] (i) { for 0, 3, 1 (c) { b[i, c] = a[i, c] } }
//! ```
//! Channels of pictures and components of vectors are often an axis of their own. Rows of three iterations make no vectors, and
//! their beginnings and ends take longer than what they compute. LLVM unrolls the loop instead, and makes vectors along the axis
//! before. The order in which one thread computes stays the same.
//!
//! Bodies that add something up stay as they are, so that sums do not depend on how threads share the rows.

use aerogel_base::Scalar;
use aerogel_ir::{Function, Inst, Op, Type, walk};

use super::axis_order::is_long;
use crate::PassCx;

/// An axis of more indices stays: what lies so far apart in memory is not read together.
const MOST: i128 = 4;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    // Neighbouring threads of a GPU take neighbouring elements as it is.
    if cx.options.shared_memory {
        return false;
    }
    let mut changed = false;
    for inst in func.regions[func.body].insts.clone() {
        changed |= shorten(func, inst);
    }
    changed
}

/// Takes the last axis from a loop, if it is short and the one before is not.
fn shorten(func: &mut Function, inst: Inst) -> bool {
    let Op::Parallel {
        mut lo,
        mut hi,
        attrs,
        body,
    } = func[inst].clone()
    else {
        return false;
    };
    let n_axes = lo.len();
    if attrs.serial || n_axes < 2 || !is_long(func, [lo[n_axes - 2], hi[n_axes - 2]]) {
        return false;
    }
    let (first, end) = (lo[n_axes - 1], hi[n_axes - 1]);
    let (Some(from), Some(to)) = (func.as_const(first), func.as_const(end)) else {
        return false;
    };
    if !(1..=MOST).contains(&(to.as_i128() - from.as_i128())) || stays(func, inst) {
        return false;
    }
    lo.pop();
    hi.pop();
    func.insts[inst].op = Op::Parallel {
        lo,
        hi,
        attrs,
        body,
    };
    let span = func.insts[inst].span;
    let mut axes = std::mem::take(&mut func.regions[body].params);
    let counter = axes.pop().expect("one for each axis");
    let ty = func.ty(counter);
    let of_axis = func.new_region(&[]);
    func.regions[of_axis].insts = std::mem::take(&mut func.regions[body].insts);
    func.set_params(of_axis, vec![counter]);
    func.set_params(body, axes);
    let one = Op::Const {
        value: Scalar::one(func.elem(counter)),
    };
    let one = func.new_inst(one, &[ty], span);
    let looped = Op::For {
        lo: first,
        hi: end,
        step: func.insts[one].results[0],
        init: Vec::new(),
        body: of_axis,
    };
    let looped = func.new_inst(looped, &[] as &[Type], span);
    let done = func.new_inst(Op::Yield { values: Vec::new() }, &[] as &[Type], span);
    func.regions[body].insts = vec![one, looped, done];
    true
}

/// Whether iterations add something up, or their numbers matter: for the random numbers that they draw, or for what is noted of
/// them.
fn stays(func: &Function, inst: Inst) -> bool {
    let mut stays = false;
    for region in func.owned(inst) {
        walk(func, region, &mut |func, inst| {
            stays |= matches!(
                func[inst],
                Op::For { .. }
                    | Op::While { .. }
                    | Op::Atomic { .. }
                    | Op::Random {}
                    | Op::RandomState { .. }
                    | Op::Call { .. }
                    | Op::Note { .. }
                    | Op::AwaitTurn {}
                    | Op::Return { .. }
            );
        });
    }
    stays
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn channels() {
        check_pass!("short_axis", "
            kernel @k(a: array<f32, 2>) {
                zero: i32 = const 0
                three: i32 = const 3
                n: i32 = array_shape a0, 0
                parallel [zero, zero], [n, three] (i: i32, c: i32) {
                    p: ref<f32> = array_at a0, [i, c]
                    x: f32 = load p
                    y: f32 = add x, x
                    store p, y
                    yield []
                }
                yield []
            }", @"
        kernel @k(a: array<f32, 2>) {
            v0: i32 = const 0
            v1: i32 = const 3
            v2: i32 = array_shape a0, 0
            parallel [v0], [v2] (v3: i32) {
                v4: i32 = const 1
                for v0, v1, v4, [] (v5: i32) {
                    v6: ref<f32> = array_at a0, [v3, v5]
                    v7: f32 = load v6
                    v8: f32 = add v7, v7
                    store v6, v8
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
    }

    #[test]
    fn an_iteration_that_ends_early() {
        check_pass!("short_axis", "
            kernel @k(a: array<i32, 2>) {
                zero: i32 = const 0
                two: i32 = const 2
                n: i32 = const 16
                parallel [zero, zero], [n, two] (i: i32, c: i32) {
                    is: u1 = lt i, c
                    if is {
                        continue []
                    } {
                        yield []
                    }
                    p: ref<i32> = array_at a0, [i, c]
                    store p, c
                    yield []
                }
                yield []
            }", @"
        kernel @k(a: array<i32, 2>) {
            v0: i32 = const 0
            v1: i32 = const 2
            v2: i32 = const 16
            parallel [v0], [v2] (v3: i32) {
                v4: i32 = const 1
                for v0, v1, v4, [] (v5: i32) {
                    v6: u1 = lt v3, v5
                    if v6 {
                        continue []
                    } {
                        yield []
                    }
                    v7: ref<i32> = array_at a0, [v3, v5]
                    store v7, v5
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
    }

    #[test]
    fn what_stays() {
        // An axis of five, a short one before, an axis whose length is not known; random numbers, loops and sums.
        for (bounds, draw) in [
            ("[n, five]", ""),
            ("[two, two]", ""),
            ("[n, m]", ""),
            ("[n, two]", "r: f32 = random"),
            ("[n, two]", "for zero, two, one, [] (k: i32) { yield [] }"),
            (
                "[n, two]",
                "q: ref<i32> = array_at a0, [i, c] s: i32 = atomic_add q, c",
            ),
        ] {
            let text = format!(
                "kernel @k(a: array<i32, 2>) {{
                    zero: i32 = const 0
                    one: i32 = const 1
                    two: i32 = const 2
                    five: i32 = const 5
                    n: i32 = array_shape a0, 0
                    m: i32 = array_shape a0, 1
                    parallel [zero, zero], {bounds} (i: i32, c: i32) {{
                        {draw}
                        p: ref<i32> = array_at a0, [i, c]
                        store p, c
                        yield []
                    }}
                    yield []
                }}"
            );
            let after = crate::testing::after(&["short_axis"], &text, aerogel_ir::FastMath::Off);
            assert!(after.contains("parallel [v0, v0]"), "{after}");
        }
    }
}
