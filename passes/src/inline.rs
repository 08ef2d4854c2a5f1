//! Calls become the bodies of what they call.
//!
//! `v1 = call @f, [v0]` with `func @f(v2) { v3 = add v2, v2  yield [v3] }` becomes
//! `v1 = add v0, v0`. Functions that call others, return early or are long stay functions.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{Function, Op, Rewrite, import_inst, rewrite, walk};

use crate::PassCx;

/// Longer functions are called.
const MAX_INSTS: usize = 200;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    calls_up_to(MAX_INSTS, func, cx)
}

/// The same for functions of any length.
pub(crate) fn all(func: &mut Function, cx: &PassCx<'_>) -> bool {
    calls_up_to(usize::MAX, func, cx)
}

fn calls_up_to(most: usize, func: &mut Function, cx: &PassCx<'_>) -> bool {
    rewrite(func, |cursor, inst| {
        let Op::Call { func: callee, args } = cursor.func[inst].clone() else {
            return Rewrite::Keep;
        };
        let callee = &cx.funcs[callee];
        if !can_inline(callee, most) {
            return Rewrite::Keep;
        }
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
            unreachable!("checked by `can_inline`")
        };
        Rewrite::Replace(
            values
                .iter()
                .map(|&v| map[v].expect("every value is mapped"))
                .collect(),
        )
    })
}

fn can_inline(callee: &Function, most: usize) -> bool {
    let mut n_insts = 0;
    let mut plain = !callee.is_kernel
        && !callee.regions[callee.body].insts.is_empty()
        && callee.yielded(callee.body).is_some();
    walk(callee, callee.body, &mut |func, inst| {
        n_insts += 1;
        plain &= !matches!(func[inst], Op::Return { .. } | Op::Call { .. });
    });
    plain && n_insts <= most
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
}
