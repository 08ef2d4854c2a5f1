//! Calls become the bodies of what they call.
//!
//! `v1 = call @f, [v0]` with `func @f(v2) { v3 = add v2, v2  yield [v3] }` becomes
//! `v1 = add v0, v0`. Functions that call themselves, return early or are long stay functions.

use aerogel_base::entity::{PrimaryMap, SecondaryMap};
use aerogel_ir::{FuncId, Function, Op, Rewrite, import_inst, rewrite, walk};

use crate::PassCx;

/// Longer functions are called. The length is counted with the functions that they call in turn.
const MAX_INSTS: usize = 200;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    calls_up_to(MAX_INSTS, func, cx)
}

/// The same for functions of any length.
pub(crate) fn all(func: &mut Function, cx: &PassCx<'_>) -> bool {
    calls_up_to(usize::MAX, func, cx)
}

fn calls_up_to(most: usize, func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut sizes = Sizes {
        funcs: cx.funcs,
        known: SecondaryMap::new(),
    };
    let mut changed = false;
    // A round for each level of calls.
    while inline_once(most, func, &mut sizes) {
        changed = true;
    }
    changed
}

fn inline_once(most: usize, func: &mut Function, sizes: &mut Sizes<'_>) -> bool {
    rewrite(func, |cursor, inst| {
        let Op::Call { func: callee, args } = cursor.func[inst].clone() else {
            return Rewrite::Keep;
        };
        if sizes.of(callee).is_none_or(|size| size > most) {
            return Rewrite::Keep;
        }
        let callee = &sizes.funcs[callee];
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
            unreachable!("checked by `Sizes::of`")
        };
        Rewrite::Replace(
            values
                .iter()
                .map(|&v| map[v].expect("every value is mapped"))
                .collect(),
        )
    })
}

/// How long functions are that can be inlined.
struct Sizes<'a> {
    funcs: &'a PrimaryMap<FuncId, Function>,
    known: SecondaryMap<FuncId, Option<Option<usize>>>,
}

impl Sizes<'_> {
    /// The number of instructions, with those of the functions that it calls; nothing if it must stay a function.
    fn of(&mut self, id: FuncId) -> Option<usize> {
        if let Some(known) = self.known[id] {
            return known;
        }
        let callee = &self.funcs[id];
        let mut plain = !callee.is_kernel
            && !callee.regions[callee.body].insts.is_empty()
            && callee.yielded(callee.body).is_some();
        let mut calls = false;
        walk(callee, callee.body, &mut |func, inst| {
            calls |= matches!(func[inst], Op::Call { .. });
        });
        // Most functions call no others, and then no search is needed.
        plain &= !calls || !self.is_recursive(id);
        let mut size = 0usize;
        walk(callee, callee.body, &mut |func, inst| {
            plain &= !matches!(func[inst], Op::Return { .. });
            size = size.saturating_add(match func[inst] {
                Op::Call { func, .. } if plain => self.of(func).unwrap_or(1),
                _ => 1,
            });
        });
        let size = plain.then_some(size);
        self.known[id] = Some(size);
        size
    }

    /// Whether a function that is called here calls itself, or the function that is being changed.
    fn is_recursive(&self, id: FuncId) -> bool {
        let is_changing = |id| {
            let func: &Function = &self.funcs[id];
            func.regions[func.body].insts.is_empty()
        };
        let mut reached: SecondaryMap<FuncId, bool> = SecondaryMap::new();
        let mut open = vec![id];
        while let Some(from) = open.pop() {
            let func = &self.funcs[from];
            walk(func, func.body, &mut |func, inst| {
                if let Op::Call { func: to, .. } = func[inst]
                    && !std::mem::replace(&mut reached[to], true)
                {
                    open.push(to);
                }
            });
        }
        reached[id] || self.funcs.keys().any(|id| reached[id] && is_changing(id))
    }
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
