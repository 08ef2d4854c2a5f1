//! Calls become the bodies of what they call.
//!
//! `v1 = call @f, [v0]` with `func @f(v2) { v3 = add v2, v2  yield [v3] }` becomes
//! `v1 = add v0, v0`. Functions that call themselves, return early or are long stay functions.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{Function, Op, Rewrite, import_inst, rewrite};

use crate::PassCx;
use crate::lengths::MAX_INSTS;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    calls_up_to(MAX_INSTS, func, cx)
}

/// The same for functions of any length.
pub(crate) fn all(func: &mut Function, cx: &PassCx<'_>) -> bool {
    calls_up_to(usize::MAX, func, cx)
}

fn calls_up_to(most: usize, func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut changed = false;
    // A round for each level of calls.
    while inline_once(most, func, cx) {
        changed = true;
    }
    changed
}

fn inline_once(most: usize, func: &mut Function, cx: &PassCx<'_>) -> bool {
    rewrite(func, |cursor, inst| {
        let Op::Call { func: callee, args } = cursor.func[inst].clone() else {
            return Rewrite::Keep;
        };
        if cx.lengths.of(callee).is_none_or(|length| length > most) {
            return Rewrite::Keep;
        }
        let callee = &cx.funcs[callee];
        let span = cursor.func.insts[inst].span;
        let mut map = SecondaryMap::new();
        for (&param, arg) in callee.regions[callee.body].params.iter().zip(args) {
            map[param] = Some(arg);
        }
        let (end, insts) = callee.regions[callee.body]
            .insts
            .split_last()
            .expect("a region ends in a terminator");
        for &inst in insts {
            let copy = import_inst(cursor.func, callee, inst, &mut map, span);
            cursor.append(copy);
        }
        let Op::Yield { values } = &callee[*end] else {
            unreachable!("`Lengths` are of such functions")
        };
        Rewrite::Replace(
            values
                .iter()
                .map(|&v| map[v].expect("every value is mapped"))
                .collect(),
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn small_functions() {
        check_pass!("inline", "
            func @f(v0: i32) -> i32 {
                v1: i32 = call @twice, [v0]
                v2: i32 = call @twice, [v1]
                yield [v2]
            }
            func @twice(v0: i32) -> i32 {
                v1: i32 = add v0, v0
                yield [v1]
            }", @"
            func @f(v0: i32) -> i32 {
                v1: i32 = add v0, v0
                v2: i32 = add v1, v1
                yield [v2]
            }
            ");
    }

    #[test]
    fn functions_that_call_functions() {
        check_pass!("inline", "
            func @f(v0: i32) -> i32 {
                v1: i32 = call @four_times, [v0]
                yield [v1]
            }
            func @twice(v0: i32) -> i32 {
                v1: i32 = add v0, v0
                yield [v1]
            }
            func @four_times(v0: i32) -> i32 {
                v1: i32 = call @twice, [v0]
                v2: i32 = call @twice, [v1]
                yield [v2]
            }", @"
        func @f(v0: i32) -> i32 {
            v1: i32 = add v0, v0
            v2: i32 = add v1, v1
            yield [v2]
        }
        ");
    }

    #[test]
    fn functions_that_call_each_other_stay() {
        check_pass!("inline", "
            func @f(v0: i32) -> i32 {
                v1: i32 = call @even, [v0]
                yield [v1]
            }
            func @even(v0: i32) -> i32 {
                v1: i32 = const 2
                v2: u1 = lt v0, v1
                v3: i32 = if v2 { yield [v0] } { v4: i32 = sub v0, v1 v5: i32 = call @odd, [v4] yield [v5] }
                yield [v3]
            }
            func @odd(v0: i32) -> i32 {
                v1: i32 = call @even, [v0]
                yield [v1]
            }", @"
        func @f(v0: i32) -> i32 {
            v1: i32 = call @even, [v0]
            yield [v1]
        }
        ");
    }
}
