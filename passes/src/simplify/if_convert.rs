//! If-conversion: branches that only load and compute a little become straight lines.
//!
//! ```text
//! v1 = if c { v2 = load x[i]  v3 = eq v2, 1  yield [v3] } { yield [c] }
//!     ==>    v2 = load x[i]   v3 = eq v2, 1   v1 = and c, v3
//! ```
//! This is for loops that become straight lines as a whole, and can then be vectorised. Branches
//! without loads are left to the code generator, which converts them itself. It cannot know which
//! loads may run speculatively: here these are loads of elements that are proved to exist (no sparse
//! node above, indices that are counters with known bounds, plus constants), and that are adjacent to
//! others which the same iteration accesses in any case, so that no more memory is read than
//! before.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::Ranges;
use aerogel_ir::analysis::affine::counted_from_narrow;
use aerogel_ir::analysis::cost::is_cheap;
use aerogel_ir::{Effect, FieldId, Function, Inst, Op, Region, Value, rewrite};

use super::existing::{field_at, is_inside};
use crate::PassCx;

/// At most this many instructions of a branch run although it is not taken.
const MAX_INSTS: usize = 8;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut pass = IfConvert {
        cx,
        ranges: Ranges::within(func, func.body),
        touched: Vec::new(),
        converted: SecondaryMap::new(),
        changed: false,
    };
    let body = func.body;
    pass.region(func, body);
    if pass.changed {
        // Results of what was converted have other names.
        rewrite(func, |_, inst| match pass.converted[inst].take() {
            Some(values) => aerogel_ir::Rewrite::Replace(values),
            None => aerogel_ir::Rewrite::Keep,
        });
    }
    pass.changed
}

/// An element of a field: what its indices count from.
type Element = (FieldId, Vec<Option<Value>>);

struct IfConvert<'a> {
    cx: &'a PassCx<'a>,
    ranges: Ranges,
    /// What every iteration of the loop that is looked at touches.
    touched: Vec<Element>,
    /// What stands for the results of an `if` that has become a straight line before it.
    converted: SecondaryMap<Inst, Option<Vec<Value>>>,
    changed: bool,
}

impl IfConvert<'_> {
    fn region(&mut self, func: &mut Function, region: Region) {
        for inst in func.regions[region].insts.clone() {
            let is_loop = matches!(func[inst], Op::For { .. } | Op::Each { .. });
            for owned in func.owned(inst) {
                self.region(func, owned);
                if is_loop {
                    self.loop_body(func, owned);
                }
            }
        }
    }

    /// Makes a straight line of a loop's body, if nothing in it must stay a branch.
    fn loop_body(&mut self, func: &mut Function, body: Region) {
        self.touched.clear();
        for &inst in &func.regions[body].insts {
            if let Op::Load { place } | Op::Store { place, .. } = func[inst] {
                self.touched.extend(element(func, place));
            }
        }
        let mut branches = Vec::new();
        for &inst in &func.regions[body].insts {
            if func[inst].effect() == Effect::Control {
                match self.n_loads(func, inst, &mut { MAX_INSTS }) {
                    Some(0) => {}
                    Some(_) => branches.push(inst),
                    None => return,
                }
            }
        }
        if branches.is_empty() {
            return;
        }
        let mut out = Vec::new();
        for inst in std::mem::take(&mut func.regions[body].insts) {
            if branches.contains(&inst) {
                self.convert(func, inst, &mut out);
            }
            out.push(inst);
        }
        func.regions[body].insts = out;
    }

    /// How many loads an `if` holds; nothing if it must stay a branch, or holds more than `budget`
    /// instructions.
    fn n_loads(&self, func: &Function, inst: Inst, budget: &mut usize) -> Option<usize> {
        let Op::If {
            then, otherwise, ..
        } = func[inst]
        else {
            return None;
        };
        let mut n_loads = 0;
        for branch in [then, otherwise] {
            func.yielded(branch)?;
            for &inst in &func.regions[branch].insts {
                match func[inst] {
                    Op::Yield { .. }
                    | Op::Const { .. }
                    | Op::FieldAt { .. }
                    | Op::ElemRef { .. } => {
                        continue;
                    }
                    Op::Load { place } if self.is_there(func, place) => n_loads += 1,
                    Op::If { .. } => n_loads += self.n_loads(func, inst, budget)?,
                    ref op if is_cheap(op) => {}
                    _ => return None,
                }
                *budget = budget.checked_sub(1)?;
            }
        }
        Some(n_loads)
    }

    /// Whether an element certainly exists and lies beside what is touched in any case.
    fn is_there(&self, func: &Function, place: Value) -> bool {
        let Some(element) = element(func, place) else {
            return false;
        };
        is_inside(func, self.cx, &self.ranges, place) && self.touched.contains(&element)
    }

    /// Moves what the branches of an `if` hold before it, and chooses between what they yield.
    fn convert(&mut self, func: &mut Function, inst: Inst, out: &mut Vec<Inst>) {
        let Op::If {
            cond,
            then,
            otherwise,
        } = func[inst]
        else {
            unreachable!("only an `if` is converted")
        };
        let [on_true, on_false] = [then, otherwise].map(|branch| {
            let values = func.yielded(branch).expect("it yields").to_vec();
            let insts = std::mem::take(&mut func.regions[branch].insts);
            for &inner in &insts[..insts.len() - 1] {
                if matches!(func[inner], Op::If { .. }) {
                    self.convert(func, inner, out);
                }
                out.push(inner);
            }
            values
        });
        let span = func.insts[inst].span;
        let chosen = on_true
            .into_iter()
            .zip(on_false)
            .map(|(on_true, on_false)| {
                let select = Op::Select {
                    cond,
                    on_true,
                    on_false,
                };
                let ty = func.ty(on_true);
                let select = func.new_inst(select, &[ty], span);
                out.push(select);
                func.insts[select].results[0]
            });
        self.converted[inst] = Some(chosen.collect());
        self.changed = true;
    }
}

/// What is accessed, but for constants that are added to indices.
fn element(func: &Function, place: Value) -> Option<Element> {
    let (field, indices) = field_at(func, place)?;
    Some((field, indices.iter().map(|&i| base(func, i)).collect()))
}

/// What constants are added to; none for a constant itself.
fn base(func: &Function, index: Value) -> Option<Value> {
    let (base, _) = counted_from_narrow(func, index);
    func.as_const(base).is_none().then_some(base)
}

#[cfg(test)]
mod tests {
    use crate::testing::{check_pass, check_passes};

    #[test]
    fn and_or_with_a_load() {
        check_passes!(&["if_convert", "identities", "dce"], "
            tree0 { dense i:8 { place x: i32 } }
            tree1 { dense i:8 { place y: u1 } }
            field @x: i32 = tree0 [S2]
            field @y: u1 = tree1 [S2]
            kernel @k() {
                task range {
                    v0: i32 = const 1
                    v1: i32 = const 7
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: i32 = const 1
                        v4: i32 = add v2, v3
                        v5: ref<i32> = field_at @x, [v4]
                        v6: i32 = load v5
                        v7: u1 = eq v6, v3
                        v8: u1 = if v7 {
                            yield [v7]
                        } {
                            v9: i32 = const 2
                            v10: u1 = eq v6, v9
                            v11: u1 = if v10 {
                                v12: i32 = sub v2, v3
                                v13: ref<i32> = field_at @x, [v12]
                                v14: i32 = load v13
                                v15: u1 = eq v14, v3
                                yield [v15]
                            } {
                                yield [v10]
                            }
                            yield [v11]
                        }
                        v16: ref<u1> = field_at @y, [v2]
                        store v16, v8
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task range {
                    v0: i32 = const 1
                    v1: i32 = const 7
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: i32 = const 1
                        v4: i32 = add v2, v3
                        v5: ref<i32> = field_at @x, [v4]
                        v6: i32 = load v5
                        v7: u1 = eq v6, v3
                        v8: i32 = const 2
                        v9: u1 = eq v6, v8
                        v10: i32 = sub v2, v3
                        v11: ref<i32> = field_at @x, [v10]
                        v12: i32 = load v11
                        v13: u1 = eq v12, v3
                        v14: u1 = and v9, v13
                        v15: u1 = or v7, v14
                        v16: ref<u1> = field_at @y, [v2]
                        store v16, v15
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn a_loop_with_another_branch_stays() {
        check_pass!("if_convert", "
            tree0 { dense i:8 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: i32 = const 0
                        v4: ref<i32> = field_at @x, [v2]
                        v5: i32 = load v4
                        v6: u1 = gt v5, v3
                        v7: i32 = if v6 {
                            v8: i32 = load v4
                            yield [v8]
                        } {
                            yield [v3]
                        }
                        if v6 {
                            store v4, v7
                            yield []
                        } {
                            yield []
                        }
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: i32 = const 0
                        v4: ref<i32> = field_at @x, [v2]
                        v5: i32 = load v4
                        v6: u1 = gt v5, v3
                        v7: i32 = if v6 {
                            v8: i32 = load v4
                            yield [v8]
                        } {
                            yield [v3]
                        }
                        if v6 {
                            store v4, v7
                            yield []
                        } {
                            yield []
                        }
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn what_may_not_be_there_stays() {
        check_pass!("if_convert", "
            tree0 { dense i:8 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: i32 = const 0
                        v4: i32 = const 1
                        v5: ref<i32> = field_at @x, [v2]
                        v6: i32 = load v5
                        v7: u1 = gt v2, v3
                        v8: i32 = if v7 {
                            v9: i32 = sub v2, v4
                            v10: ref<i32> = field_at @x, [v9]
                            v11: i32 = load v10
                            yield [v11]
                        } {
                            yield [v3]
                        }
                        v12: i32 = add v6, v8
                        store v5, v12
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: i32 = const 0
                        v4: i32 = const 1
                        v5: ref<i32> = field_at @x, [v2]
                        v6: i32 = load v5
                        v7: u1 = gt v2, v3
                        v8: i32 = if v7 {
                            v9: i32 = sub v2, v4
                            v10: ref<i32> = field_at @x, [v9]
                            v11: i32 = load v10
                            yield [v11]
                        } {
                            yield [v3]
                        }
                        v12: i32 = add v6, v8
                        store v5, v12
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn memory_apart_stays() {
        check_pass!("if_convert", "
            tree0 { dense i:8 { place x: i32 } }
            tree1 { dense i:8 { place y: i32 } }
            field @x: i32 = tree0 [S2]
            field @y: i32 = tree1 [S2]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: ref<i32> = field_at @x, [v2]
                        v4: i32 = load v3
                        v5: i32 = const 0
                        v6: u1 = eq v4, v5
                        v7: i32 = if v6 {
                            v8: ref<i32> = field_at @y, [v2]
                            v9: i32 = load v8
                            yield [v9]
                        } {
                            yield [v5]
                        }
                        store v3, v7
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: ref<i32> = field_at @x, [v2]
                        v4: i32 = load v3
                        v5: i32 = const 0
                        v6: u1 = eq v4, v5
                        v7: i32 = if v6 {
                            v8: ref<i32> = field_at @y, [v2]
                            v9: i32 = load v8
                            yield [v9]
                        } {
                            yield [v5]
                        }
                        store v3, v7
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn division_stays() {
        check_pass!("if_convert", "
            tree0 { dense i:8 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: ref<i32> = field_at @x, [v2]
                        v4: i32 = load v3
                        v5: i32 = const 0
                        v6: u1 = eq v4, v5
                        v10: i32 = if v6 {
                            v11: i32 = load v3
                            v12: i32 = div v11, v4
                            yield [v12]
                        } {
                            yield [v5]
                        }
                        store v3, v10
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 8
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: ref<i32> = field_at @x, [v2]
                        v4: i32 = load v3
                        v5: i32 = const 0
                        v6: u1 = eq v4, v5
                        v7: i32 = if v6 {
                            v8: i32 = load v3
                            v9: i32 = div v8, v4
                            yield [v9]
                        } {
                            yield [v5]
                        }
                        store v3, v7
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }
}
