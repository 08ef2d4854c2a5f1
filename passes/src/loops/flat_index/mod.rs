//! A parallel loop that takes its counter apart becomes one over several axes.
//!
//! ```text
//! parallel [0], [12] (t) { i = t // 4  j = t % 4  body }
//!     ==>    parallel [0, 0], [3, 4] (i, j) { body }
//! ```
//! Along the last axis everything is then as regular as in a nest of loops: one division for a part of the loop instead of two for
//! each iteration, and neighbours in vectors. The order of iterations stays the same.

mod sizes;

use aerogel_base::Scalar;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{
    BinaryOp, Builder, Function, Inst, Op, Region, Rewrite, Type, Value, replace_value, rewrite,
    walk,
};

use crate::PassCx;

/// At most this many axes.
const MOST_AXES: usize = 8;
/// A row of fewer iterations costs more than the divisions.
const SHORTEST: i128 = 8;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut changed = false;
    // Threads of a GPU have no rows: a second loop would be launched for nothing.
    let has_rows = !cx.options.shared_memory;
    for inst in func.regions[func.body].insts.clone() {
        // What an axis is taken apart into may be taken apart, too.
        while split(func, inst) || has_rows && sizes::split(func, inst) {
            changed = true;
        }
    }
    changed
}

/// Takes apart one axis of a loop; whether there was one.
fn split(func: &mut Function, inst: Inst) -> bool {
    let Op::Parallel {
        mut lo,
        mut hi,
        attrs,
        body,
    } = func[inst].clone()
    else {
        return false;
    };
    if lo.len() >= MOST_AXES {
        return false;
    }
    let ends = lo.iter().zip(&hi).map(|(&lo, &hi)| {
        let [lo, hi] = [lo, hi].map(|end| func.as_const(end).map(Scalar::as_i128));
        hi.filter(|_| lo == Some(0))
    });
    let ends: Vec<Option<i128>> = ends.collect();
    let found = ends.iter().enumerate().find_map(|(k, &end)| {
        let axis = func.regions[body].params[k];
        Some((k, divisor(func, body, axis, end?)?))
    });
    let Some((k, (by, rows))) = found else {
        return false;
    };
    let [by_value, rows] = [by, rows].map(|x| before(func, inst, x as i32));
    let zero = lo[k];
    hi[k] = rows;
    lo.insert(k + 1, zero);
    hi.insert(k + 1, by_value);

    let old = func.regions[body].params[k];
    let [row, column] = [(); 2].map(|()| func.add_param(body, Type::I32));
    let mut params = func.regions[body].params.clone();
    params.truncate(params.len() - 2);
    params.splice(k..=k, [row, column]);
    func.set_params(body, params);
    func.insts[inst].op = Op::Parallel {
        lo,
        hi,
        attrs,
        body,
    };
    // The counter itself, where it is used otherwise.
    let mut b = Builder::new(func, body);
    let whole = b.i32(by as i32);
    let start = b.binary(BinaryOp::Mul, row, whole);
    let whole = b.binary(BinaryOp::Add, start, column);
    func.regions[body].insts.rotate_right(3);
    // Not in what was just written, which uses the new axes only.
    replace_value(func, body, old, whole);
    apart(func, whole, by, [row, column]);
    true
}

/// Puts the axes in the place of quotients and remainders of the counter.
fn apart(func: &mut Function, whole: Value, by: i128, [row, column]: [Value; 2]) {
    let mut columns: SecondaryMap<Value, i128> = SecondaryMap::new();
    rewrite(func, |b, inst| {
        let Some((x, part, of)) = part_of(b.func, inst) else {
            return Rewrite::Keep;
        };
        let value = match part {
            Part::Remainder if x == whole && by % of == 0 && of < by => {
                binary(b, BinaryOp::Mod, column, of)
            }
            _ if of % by != 0 => return Rewrite::Keep,
            // `t % (k * by) // by` is `t // by % k`.
            Part::Quotient if columns[x] > 0 => {
                let rows = binary(b, BinaryOp::Mod, row, columns[x] / by);
                binary(b, BinaryOp::FloorDiv, rows, of / by)
            }
            _ if x != whole => return Rewrite::Keep,
            Part::Quotient => binary(b, BinaryOp::FloorDiv, row, of / by),
            Part::Remainder if of == by => column,
            Part::Remainder => {
                let rows = binary(b, BinaryOp::Mod, row, of / by);
                let start = binary(b, BinaryOp::Mul, rows, by);
                let value = b.binary(BinaryOp::Add, start, column);
                columns[value] = of;
                value
            }
        };
        Rewrite::Replace(vec![value])
    });
}

/// An operation with a constant; nothing is divided by one.
fn binary(b: &mut Builder<'_>, op: BinaryOp, lhs: Value, rhs: i128) -> Value {
    if rhs == 1 && op == BinaryOp::FloorDiv {
        return lhs;
    }
    let rhs = b.i32(rhs as i32);
    b.binary(op, lhs, rhs)
}

/// What a counter is taken apart into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Quotient,
    Remainder,
}

/// A quotient or a remainder of a value that is not negative, by a constant, however it is written.
fn part_of(func: &Function, inst: Inst) -> Option<(Value, Part, i128)> {
    let Op::Binary { op, lhs, rhs } = func[inst] else {
        return None;
    };
    if func.ty(lhs) != Type::I32 {
        return None;
    }
    let mask = |value| func.as_const(value).map(Scalar::as_i128);
    let (x, by) = match (mask(lhs), mask(rhs)) {
        (None, Some(by)) => (lhs, by),
        (Some(by), None) if op == BinaryOp::And => (rhs, by),
        _ => return None,
    };
    let (part, by) = match op {
        BinaryOp::FloorDiv | BinaryOp::Div => (Part::Quotient, by),
        BinaryOp::Mod | BinaryOp::Rem => (Part::Remainder, by),
        BinaryOp::Shr if (0..31).contains(&by) => (Part::Quotient, 1 << by),
        BinaryOp::And if by > 0 && (by + 1) & by == 0 => (Part::Remainder, by + 1),
        _ => return None,
    };
    (by > 1).then_some((x, part, by))
}

/// By what an axis of `end` iterations is taken apart, and how many rows that makes.
fn divisor(func: &Function, body: Region, axis: Value, end: i128) -> Option<(i128, i128)> {
    let (mut quotients, mut remainders) = (Vec::new(), Vec::new());
    walk(func, body, &mut |func, inst| {
        if let Some((x, part, by)) = part_of(func, inst)
            && x == axis
            && end % by == 0
            && by < end
        {
            match part {
                Part::Quotient => quotients.push(by),
                Part::Remainder => remainders.push(by),
            }
        }
    });
    // The innermost axis is the one that the counter's remainder runs along.
    let by = remainders
        .into_iter()
        .filter(|by| quotients.contains(by))
        .min()?;
    (by >= SHORTEST).then_some((by, end / by))
}

/// A constant before a loop.
fn before(func: &mut Function, at: Inst, value: i32) -> Value {
    let span = func.insts[at].span;
    let value = Scalar::i32(value);
    let inst = func.new_inst(Op::Const { value }, &[Type::I32], span);
    let insts = &mut func.regions[func.body].insts;
    let place = insts.iter().position(|&i| i == at);
    insts.insert(place.expect("the loop is in the body"), inst);
    func.insts[inst].results[0]
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn two_axes() {
        check_pass!("flat_index", "
            tree0 { dense i:4 j:24 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 96
                v2: i32 = const 24
                parallel [v0], [v1] (v3: i32) {
                    v4: i32 = floordiv v3, v2
                    v5: i32 = mod v3, v2
                    v6: ref<i32> = field_at @x, [v4, v5]
                    store v6, v3
                    yield []
                }
                return []
            }", @"
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 96
                v2: i32 = const 24
                v3: i32 = const 24
                v4: i32 = const 4
                parallel [v0, v0], [v4, v3] (v5: i32, v6: i32) {
                    v7: i32 = const 24
                    v8: i32 = mul v5, v7
                    v9: i32 = add v8, v6
                    v10: ref<i32> = field_at @x, [v5, v6]
                    store v10, v9
                    yield []
                }
                return []
            }
            ");
    }

    #[test]
    fn three_axes() {
        check_pass!("flat_index", "
            tree0 { dense i:4 j:8 k:16 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 512
                v2: i32 = const 128
                v3: i32 = const 16
                v4: i32 = const 15
                v5: i32 = const 4
                parallel [v0], [v1] (v6: i32) {
                    v7: i32 = floordiv v6, v2
                    v8: i32 = mod v6, v2
                    v9: i32 = shr v8, v5
                    v10: i32 = and v6, v4
                    v11: ref<i32> = field_at @x, [v7, v9, v10]
                    store v11, v10
                    yield []
                }
                return []
            }", @"
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 512
                v2: i32 = const 128
                v3: i32 = const 16
                v4: i32 = const 15
                v5: i32 = const 4
                v6: i32 = const 128
                v7: i32 = const 4
                v8: i32 = const 16
                v9: i32 = const 8
                parallel [v0, v0, v0], [v7, v9, v8] (v10: i32, v11: i32, v12: i32) {
                    v13: i32 = const 16
                    v14: i32 = mul v11, v13
                    v15: i32 = add v14, v12
                    v16: i32 = const 128
                    v17: i32 = mul v10, v16
                    v18: i32 = add v17, v15
                    v19: i32 = const 16
                    v20: ref<i32> = field_at @x, [v10, v11, v12]
                    store v20, v12
                    yield []
                }
                return []
            }
            ");
    }

    #[test]
    fn rows_that_are_not_whole_stay() {
        check_pass!("flat_index", "
            tree0 { dense i:4 j:24 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 95
                v2: i32 = const 24
                parallel [v0], [v1] (v3: i32) {
                    v4: i32 = floordiv v3, v2
                    v5: i32 = mod v3, v2
                    v6: ref<i32> = field_at @x, [v4, v5]
                    store v6, v3
                    yield []
                }
                return []
            }", @"
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 95
                v2: i32 = const 24
                parallel [v0], [v1] (v3: i32) {
                    v4: i32 = floordiv v3, v2
                    v5: i32 = mod v3, v2
                    v6: ref<i32> = field_at @x, [v4, v5]
                    store v6, v3
                    yield []
                }
                return []
            }
            ");
    }
}
