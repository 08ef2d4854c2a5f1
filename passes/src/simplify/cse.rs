//! Common subexpressions.
//!
//! ```text
//! v2: i32 = add v0, v1
//! v3: i32 = add v1, v0    ==>    uses of v3 become v2
//! ```
//! One scoped walk: a pure instruction is replaced by an equal one that is still visible. Operands
//! of commutative arithmetic are put in order first. Look-ups of neighbouring accesses that go
//! through the same levels merge here.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{Effect, Function, Inst, Op, Region, ScopedMap, Type, Value};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    let mut pass = Cse {
        seen: ScopedMap::default(),
        subst: SecondaryMap::new(),
        changed: false,
    };
    let body = func.body;
    pass.region(func, body);
    pass.changed
}

struct Cse {
    seen: ScopedMap<(Op, Vec<Type>), Inst>,
    subst: SecondaryMap<Value, Option<Value>>,
    changed: bool,
}

impl Cse {
    fn region(&mut self, func: &mut Function, region: Region) {
        self.seen.enter();
        let mut kept = Vec::new();
        for inst in std::mem::take(&mut func.regions[region].insts) {
            let op = &mut func.insts[inst].op;
            op.map_operands(|v| self.subst[v].unwrap_or(v));
            if let Op::Binary { op, lhs, rhs } = func[inst]
                && rhs < lhs
                && op.is_commutative(func.elem(lhs))
            {
                let (lhs, rhs) = (rhs, lhs);
                func.insts[inst].op = Op::Binary { op, lhs, rhs };
                self.changed = true;
            }
            if func[inst].effect() == Effect::Pure {
                let types = func.insts[inst]
                    .results
                    .iter()
                    .map(|&r| func.ty(r))
                    .collect();
                let key = (func[inst].clone(), types);
                if let Some(&same) = self.seen.get(&key) {
                    for (&old, &new) in func.insts[inst]
                        .results
                        .iter()
                        .zip(&func.insts[same].results)
                    {
                        self.subst[old] = Some(new);
                    }
                    self.changed = true;
                    continue;
                }
                self.seen.insert(key, inst);
            }
            kept.push(inst);
            for owned in func.owned(inst) {
                self.region(func, owned);
            }
        }
        func.regions[region].insts = kept;
        self.seen.leave();
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn equal_and_exchanged() {
        check_pass!("cse", "
            func @f(v0: i32, v1: i32) -> i32 {
                v2: i32 = add v0, v1
                v3: i32 = add v1, v0
                v4: i32 = sub v2, v3
                yield [v4]
            }", @"
            func @f(v0: i32, v1: i32) -> i32 {
                v2: i32 = add v0, v1
                v3: i32 = sub v2, v2
                yield [v3]
            }
            ");
    }

    #[test]
    fn zeros_of_a_minimum_keep_their_sides() {
        check_pass!("cse", "
            func @f(v0: f32, v1: f32) -> f32, f32 {
                v2: f32 = min v0, v1
                v3: f32 = min v1, v0
                yield [v2, v3]
            }", @"
            func @f(v0: f32, v1: f32) -> f32, f32 {
                v2: f32 = min v0, v1
                v3: f32 = min v1, v0
                yield [v2, v3]
            }
            ");
    }

    #[test]
    fn branches_do_not_see_each_other() {
        check_pass!("cse", "
            func @f(v0: i32, c: u1) -> i32 {
                v1: i32 = if c {
                    v2: i32 = mul v0, v0
                    yield [v2]
                } {
                    v3: i32 = mul v0, v0
                    yield [v3]
                }
                v4: i32 = mul v0, v0
                v5: i32 = add v4, v1
                yield [v5]
            }", @"
            func @f(v0: i32, v1: u1) -> i32 {
                v2: i32 = if v1 {
                    v3: i32 = mul v0, v0
                    yield [v3]
                } {
                    v4: i32 = mul v0, v0
                    yield [v4]
                }
                v5: i32 = mul v0, v0
                v6: i32 = add v2, v5
                yield [v6]
            }
            ");
    }
}
