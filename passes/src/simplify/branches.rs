//! Reuse in a branch of values that an earlier branch of the same condition has computed.
//!
//! ```text
//! v1 = if c { v2 = sin v0  yield [v2] } ..       v1, v9 = if c { v2 = sin v0  yield [v2, v2] } ..
//! ..                                        ==>  ..
//! if c { v3 = sin v0  v4 = load a ..             if c { v4 = load a .. use v9
//! ```
//! The backward pass enters each branch a second time, and recomputes the values that its rules need. Costly ones become
//! one more result of the first branch. Cheap instructions stay duplicated: keeping a value in a register, or on the stack,
//! costs as much.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::access::{Writes, classes, writes};
use aerogel_ir::analysis::cost::is_cheap;
use aerogel_ir::{
    Effect, Function, Inst, Op, Region, ScopedMap, Type, Value, replace_values, walk,
};

use crate::PassCx;
use crate::yields::result_of_branch;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut pass = Branches {
        cx,
        writes: None,
        earlier: ScopedMap::default(),
        constants: LookupMap::default(),
        changed: false,
    };
    let body = func.body;
    pass.region(func, body);
    pass.changed
}

struct Branches<'a> {
    cx: &'a PassCx<'a>,
    /// The function's writes, computed when first needed.
    writes: Option<Writes>,
    /// The last `if` of a condition that is over and visible.
    earlier: ScopedMap<Value, Inst>,
    /// One value for each constant: branches may have their own.
    constants: LookupMap<Key, Value>,
    changed: bool,
}

/// An instruction as far as it says what is computed.
type Key = (Op, Vec<Type>);

impl Branches<'_> {
    fn region(&mut self, func: &mut Function, region: Region) {
        self.earlier.enter();
        for inst in func.regions[region].insts.clone() {
            let branch = match func[inst] {
                Op::If {
                    cond,
                    then,
                    otherwise,
                } => Some((cond, [then, otherwise])),
                _ => None,
            };
            if let Some((cond, later)) = branch
                && let Some(&first) = self.earlier.get(&cond)
                && let Op::If {
                    then, otherwise, ..
                } = func[first]
            {
                for (k, at) in later.into_iter().enumerate() {
                    let from = [then, otherwise];
                    self.share(func, first, [from[k], from[1 - k]], at);
                }
            }
            for owned in func.owned(inst) {
                self.region(func, owned);
            }
            if let Some((cond, _)) = branch {
                self.earlier.insert(cond, inst);
            }
        }
        self.earlier.leave();
    }

    /// Lets a branch use what the first of two, `from`, has computed when it ran.
    fn share(&mut self, func: &mut Function, first: Inst, from: [Region; 2], at: Region) {
        if func.yielded(from[0]).is_none() {
            return;
        }
        let mut made: LookupMap<Key, Value> = LookupMap::default();
        for &inst in &func.regions[from[0]].insts {
            if let Some(key) = self.key(func, inst, &SecondaryMap::new()) {
                made.insert(key, func.insts[inst].results[0]);
            }
        }
        // What of the later branch is what in the first, and whether something costly leads to it.
        let mut same: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
        let mut costly: SecondaryMap<Value, bool> = SecondaryMap::new();
        let mut is_same: SecondaryMap<Inst, bool> = SecondaryMap::new();
        let mut any = false;
        for &inst in &func.regions[at].insts {
            if matches!(func[inst], Op::Const { .. }) {
                is_same[inst] = true;
                continue;
            }
            let found = self.key(func, inst, &same);
            let Some(&value) = found.and_then(|key| made.get(&key)) else {
                continue;
            };
            let result = func.insts[inst].results[0];
            let op = &func[inst];
            let mut is_costly = op.effect() == Effect::Pure && !is_cheap(op);
            op.operands(|v| is_costly |= costly[v]);
            (same[result], costly[result], is_same[inst]) = (Some(value), is_costly, true);
            any |= is_costly;
        }
        if !any {
            return;
        }
        let mut wanted: Vec<Value> = Vec::new();
        walk(func, at, &mut |func, inst| {
            if !is_same[inst] {
                func[inst].operands(|v| {
                    let is_there = costly[v] && func.ty(v).scalar().is_some();
                    if is_there && !wanted.contains(&v) {
                        wanted.push(v);
                    }
                });
            }
        });
        let mut results = Vec::new();
        for &value in &wanted {
            let there = same[value].expect("what is costly is the same");
            results.push((value, result_of_branch(func, first, from, there)));
        }
        replace_values(func, at, &results);
        self.changed |= !wanted.is_empty();
    }

    /// What tells what an instruction computes, with operands as those of the first branch; nothing if it may compute
    /// something else there.
    fn key(
        &mut self,
        func: &Function,
        inst: Inst,
        same: &SecondaryMap<Value, Option<Value>>,
    ) -> Option<Key> {
        let op = &func[inst];
        let [result] = func.insts[inst].results[..] else {
            return None;
        };
        let repeats = match *op {
            Op::Load { place } => !self.is_written(func, place),
            ref op => op.effect() == Effect::Pure && func.owned(inst).is_empty(),
        };
        let mut op = op.clone();
        op.map_operands(|v| same[v].unwrap_or_else(|| self.constant(func, v)));
        repeats.then(|| (op, vec![func.ty(result)]))
    }

    /// The one that stands for a constant; other values themselves.
    fn constant(&mut self, func: &Function, value: Value) -> Value {
        match func.def_op(value) {
            Some(op @ Op::Const { .. }) => {
                let key = (op.clone(), vec![func.ty(value)]);
                let first = self.constants.get(&key).copied();
                if first.is_none() {
                    self.constants.insert(key, value);
                }
                first.unwrap_or(value)
            }
            _ => value,
        }
    }

    /// Whether the function writes what a place is in.
    fn is_written(&mut self, func: &Function, place: Value) -> bool {
        let env = self.cx.env;
        let all = self
            .writes
            .get_or_insert_with(|| writes(func, env, func.body));
        let of_place = classes(func, env, place);
        all.anything || of_place.iter().any(|class| all.classes.contains(class))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_passes;

    #[test]
    fn what_is_costly_is_computed_once() {
        check_passes!(&["branches", "dce"], "
            func @f(c: u1, x: f32) -> f32 {
                v0: f32 = const 2.0
                v1: f32 = if c {
                    v2: f32 = mul x, v0
                    v3: f32 = sin v2
                    v4: f32 = mul v3, v0
                    yield [v4]
                } {
                    yield [x]
                }
                v5: f32 = mul v1, v1
                v6: f32 = if c {
                    own: f32 = const 2.0
                    v7: f32 = mul x, own
                    v8: f32 = sin v7
                    v9: f32 = add v8, v7
                    yield [v9]
                } {
                    yield [v5]
                }
                yield [v6]
            }", @"
        func @f(v0: u1, v1: f32) -> f32 {
            v2: f32 = const 2.0
            v3: f32, v4: f32 = if v0 {
                v5: f32 = mul v1, v2
                v6: f32 = sin v5
                v7: f32 = mul v6, v2
                yield [v7, v6]
            } {
                v8: f32 = const 0.0
                yield [v1, v8]
            }
            v9: f32 = mul v3, v3
            v10: f32 = if v0 {
                v11: f32 = const 2.0
                v12: f32 = mul v1, v11
                v13: f32 = add v4, v12
                yield [v13]
            } {
                yield [v9]
            }
            yield [v10]
        }
        ");
    }

    #[test]
    fn both_branches_and_what_is_inside_of_loops() {
        check_passes!(&["branches", "dce"], "
            func @f(c: u1, x: f32, n: i32) -> f32 {
                v0: f32 = if c {
                    v1: f32 = exp x
                    yield [v1]
                } {
                    v2: f32 = log x
                    v3: f32 = neg v2
                    yield [v3]
                }
                k0: i32 = const 0
                k1: i32 = const 1
                v4: f32 = for k0, n, k1, [v0] (i: i32, s: f32) {
                    v5: f32 = if c {
                        v6: f32 = exp x
                        v7: f32 = mul s, v6
                        yield [v7]
                    } {
                        v8: f32 = log x
                        v9: f32 = add s, v8
                        yield [v9]
                    }
                    yield [v5]
                }
                yield [v4]
            }", @"
        func @f(v0: u1, v1: f32, v2: i32) -> f32 {
            v3: f32, v4: f32 = if v0 {
                v5: f32 = exp v1
                v6: f32 = const 0.0
                yield [v5, v6]
            } {
                v7: f32 = log v1
                v8: f32 = neg v7
                yield [v8, v7]
            }
            v9: i32 = const 0
            v10: i32 = const 1
            v11: f32 = for v9, v2, v10, [v3] (v12: i32, v13: f32) {
                v14: f32 = if v0 {
                    v15: f32 = mul v13, v3
                    yield [v15]
                } {
                    v16: f32 = add v13, v4
                    yield [v16]
                }
                yield [v14]
            }
            yield [v11]
        }
        ");
    }

    #[test]
    fn what_is_read_may_be_written_in_between() {
        let text = |after: &str| {
            format!(
                "tree0 {{ dense i:8 {{ place x: f32, place y: f32 }} }}
                field @x: f32 = tree0 [S2]
                field @y: f32 = tree0 [S3]
                func @f(c: u1, i: i32) -> f32 {{
                    p: ref<f32> = field_at @x, [i]
                    v0: f32 = if c {{
                        v1: f32 = load p
                        v2: f32 = exp v1
                        yield [v2]
                    }} {{
                        v3: f32 = const 1.0
                        yield [v3]
                    }}
                    q: ref<f32> = field_at @{after}, [i]
                    store q, v0
                    v4: f32 = if c {{
                        v5: f32 = load p
                        v6: f32 = exp v5
                        v7: f32 = neg v6
                        yield [v7]
                    }} {{
                        yield [v0]
                    }}
                    yield [v4]
                }}"
            )
        };
        let n_exp = |text: &str| {
            let after =
                crate::testing::after(&["branches", "dce"], text, aerogel_ir::FastMath::Off);
            after.matches("= exp").count()
        };
        assert_eq!(n_exp(&text("y")), 1);
        assert_eq!(n_exp(&text("x")), 2);
    }

    #[test]
    fn other_conditions_and_cheap_values_stay() {
        check_passes!(&["branches", "dce"], "
            func @f(c: u1, d: u1, x: f32) -> f32 {
                v0: f32 = if c {
                    v1: f32 = exp x
                    v2: f32 = mul x, x
                    v3: f32 = add v1, v2
                    yield [v3]
                } {
                    yield [x]
                }
                v4: f32 = if d {
                    v5: f32 = exp x
                    yield [v5]
                } {
                    yield [v0]
                }
                v6: f32 = if c {
                    v7: f32 = mul x, x
                    yield [v7]
                } {
                    yield [v4]
                }
                yield [v6]
            }", @"
        func @f(v0: u1, v1: u1, v2: f32) -> f32 {
            v3: f32 = if v0 {
                v4: f32 = exp v2
                v5: f32 = mul v2, v2
                v6: f32 = add v4, v5
                yield [v6]
            } {
                yield [v2]
            }
            v7: f32 = if v1 {
                v8: f32 = exp v2
                yield [v8]
            } {
                yield [v3]
            }
            v9: f32 = if v0 {
                v10: f32 = mul v2, v2
                yield [v10]
            } {
                yield [v7]
            }
            yield [v9]
        }
        ");
    }
}
