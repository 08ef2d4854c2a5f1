//! Short loops over the components of small tensors are written out.
//!
//! ```text
//! for 0, 3, 1, [] (k) {                      v2 = elem_ref acc, [0]
//!     v2 = elem_ref acc, [k]         ==>     ..
//!     ..                                     v3 = elem_ref acc, [1]
//! }                                          ..
//! ```
//! A tensor with a component that nobody knows while compiling stays in memory, and with it every loop around; with
//! constants for indices it becomes scalars (`scalarize`), which live in registers.

use aerogel_base::Scalar;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{Builder, Function, Inst, Op, Region, Value, copy_region, replace_value, walk};

use crate::PassCx;
use crate::simplify::fold;

/// Longer loops stay.
const MAX_TURNS: usize = 16;

/// Loops stay that would have more instructions, written out.
const MAX_INSTS: usize = 300;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let body = func.body;
    let mut changed = false;
    while region(func, body) {
        changed = true;
        // What is computed from counters becomes constants: indices, and bounds of loops inside.
        fold::run(func, cx);
    }
    changed
}

/// Inner loops first.
fn region(func: &mut Function, at: Region) -> bool {
    let mut changed = false;
    let insts = std::mem::take(&mut func.regions[at].insts);
    let mut out = Vec::with_capacity(insts.len());
    for inst in insts {
        for owned in func.owned(inst) {
            changed |= region(func, owned);
        }
        match turns(func, inst) {
            Some(counters) => {
                changed = true;
                write_out(func, inst, &counters, &mut out);
            }
            None => out.push(inst),
        }
    }
    func.regions[at].insts = out;
    changed
}

/// The values of the counter of a loop that is to be written out.
fn turns(func: &Function, inst: Inst) -> Option<Vec<Scalar>> {
    let Op::For {
        lo,
        hi,
        step,
        ref init,
        body,
    } = func[inst]
    else {
        return None;
    };
    let [from, to, step] = [lo, hi, step].map(|v| func.as_const(v));
    let (from, to, step) = (from?.as_i128(), to?.as_i128(), step?.as_i128());
    if !init.is_empty() || step == 0 {
        return None;
    }
    let counter = func.regions[body].params[0];
    let ty = func.elem(counter);
    let mut values = Vec::new();
    let mut at = from;
    while if step > 0 { at < to } else { at > to } {
        if values.len() == MAX_TURNS {
            return None;
        }
        values.push(Scalar::int(ty, at));
        at += step;
    }
    let mut n_insts = 0;
    walk(func, body, &mut |_, _| n_insts += 1);
    let fits = n_insts * values.len() <= MAX_INSTS;
    (fits && !is_left(func, body) && picks_components(func, body, counter)).then_some(values)
}

/// Whether an instruction in a loop's body ends the loop or its iteration.
fn is_left(func: &Function, body: Region) -> bool {
    func.regions[body]
        .insts
        .iter()
        .any(|&inst| match func[inst] {
            Op::Break { .. } | Op::Continue { .. } | Op::Return { .. } => true,
            Op::If {
                then, otherwise, ..
            } => is_left(func, then) || is_left(func, otherwise),
            // What leaves the function leaves this loop.
            _ => {
                let mut returns = false;
                func[inst].regions(|inner| {
                    walk(func, inner, &mut |func, inst| {
                        returns |= matches!(func[inst], Op::Return { .. });
                    });
                });
                returns
            }
        })
}

/// Whether a component of a tensor that is no memory of others is found by a counter, constants, and nothing else.
fn picks_components(func: &Function, body: Region, counter: Value) -> bool {
    // Nothing: depends on what is not known. Otherwise whether the counter has a part in it.
    let mut known: SecondaryMap<Value, Option<bool>> = SecondaryMap::new();
    known[counter] = Some(true);
    let of = |known: &SecondaryMap<Value, Option<bool>>, v: Value| {
        known[v].or_else(|| func.as_const(v).map(|_| false))
    };
    let mut found = false;
    walk(func, body, &mut |func, inst| {
        let op = &func[inst];
        let all = |values: &[Value]| {
            values
                .iter()
                .map(|&v| of(&known, v))
                .collect::<Option<Vec<bool>>>()
        };
        let index = match op {
            Op::For {
                lo, hi, step, body, ..
            } => {
                let all = all(&[*lo, *hi, *step]).map(|all| all.contains(&true));
                known[func.regions[*body].params[0]] = all;
                return;
            }
            Op::ElemRef { base, index } if matches!(func.def_op(*base), Some(Op::Local {})) => {
                index
            }
            Op::TensorGet { index, .. } | Op::TensorSet { index, .. } => index,
            _ => {
                if let ([result], true) = (&func.insts[inst].results[..], op.is_elementwise()) {
                    let mut operands = Vec::new();
                    op.operands(|v| operands.push(v));
                    known[*result] = all(&operands).map(|all| all.contains(&true));
                }
                return;
            }
        };
        found |= all(index).is_some_and(|all| all.contains(&true));
    });
    found
}

fn write_out(func: &mut Function, inst: Inst, counters: &[Scalar], out: &mut Vec<Inst>) {
    let Op::For { body, .. } = func[inst] else {
        unreachable!("the caller looked")
    };
    let span = func.insts[inst].span;
    for &counter in counters {
        let copy = copy_region(func, body);
        let old = func.regions[copy].params[0];
        let mut b = Builder::new(func, copy);
        b.span = span;
        // Written to the end; it belongs before the rest.
        let new = b.constant(counter);
        let mut insts = std::mem::take(&mut func.regions[copy].insts);
        out.extend(insts.pop());
        insts.pop();
        func.regions[copy].insts = insts;
        replace_value(func, copy, old, new);
        out.append(&mut func.regions[copy].insts);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_passes;

    #[test]
    fn components_are_picked_by_counters() {
        check_passes!(&["unroll", "scalarize", "promote_locals"], "
            func @f(v0: f32) -> f32 {
                v1: i32 = const 0
                v2: i32 = const 3
                v3: i32 = const 1
                v4: ref<vec<3, f32>> = local
                for v1, v2, v3, [] (v5: i32) {
                    for v5, v2, v3, [] (v6: i32) {
                        v7: i32 = sub v6, v5
                        v8: ref<f32> = elem_ref v4, [v7]
                        v9: f32 = load v8
                        v10: f32 = add v9, v0
                        store v8, v10
                        yield []
                    }
                    yield []
                }
                v11: ref<f32> = elem_ref v4, [v1]
                v12: f32 = load v11
                yield [v12]
            }", @"
        func @f(v0: f32) -> f32 {
            v1: i32 = const 0
            v2: i32 = const 3
            v3: i32 = const 1
            v4: f32 = const 0.0
            v5: f32 = const 0.0
            v6: f32 = const 0.0
            v7: i32 = const 0
            v8: i32 = const 0
            v9: i32 = const 0
            v10: f32 = add v4, v0
            v11: i32 = const 1
            v12: i32 = const 1
            v13: f32 = add v5, v0
            v14: i32 = const 2
            v15: i32 = const 2
            v16: f32 = add v6, v0
            v17: i32 = const 1
            v18: i32 = const 1
            v19: i32 = const 0
            v20: f32 = add v10, v0
            v21: i32 = const 2
            v22: i32 = const 1
            v23: f32 = add v13, v0
            v24: i32 = const 2
            v25: i32 = const 2
            v26: i32 = const 0
            v27: f32 = add v20, v0
            yield [v27]
        }
        ");
    }

    #[test]
    fn loops_that_are_left_stay() {
        check_passes!(&["unroll"], "
            func @f(v0: f32) -> f32 {
                v1: i32 = const 0
                v2: i32 = const 3
                v3: i32 = const 1
                v4: ref<vec<3, f32>> = local
                for v1, v2, v3, [] (v5: i32) {
                    v6: ref<f32> = elem_ref v4, [v5]
                    v7: f32 = load v6
                    v8: u1 = lt v7, v0
                    if v8 { break [] } { yield [] }
                    store v6, v0
                    yield []
                }
                v9: ref<f32> = elem_ref v4, [v2]
                yield [v0]
            }", @"
        func @f(v0: f32) -> f32 {
            v1: i32 = const 0
            v2: i32 = const 3
            v3: i32 = const 1
            v4: ref<vec<3, f32>> = local
            for v1, v2, v3, [] (v5: i32) {
                v6: ref<f32> = elem_ref v4, [v5]
                v7: f32 = load v6
                v8: u1 = lt v7, v0
                if v8 {
                    break []
                } {
                    yield []
                }
                store v6, v0
                yield []
            }
            v9: ref<f32> = elem_ref v4, [v2]
            yield [v0]
        }
        ");
    }
}
