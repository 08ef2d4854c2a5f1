//! Maxima and minima that are written as comparisons.
//!
//! ```text
//! for .. [v0] (v1: i32, v2: f32) {                  for .. [v0] (v1: i32, v2: f32) {
//!     v4 = gt v3, v2                                    v5 = max v2, v3
//!     v5 = if v4 { yield [v3] } { yield [v2] }  ==>     yield [v5]
//!     yield [v5]                                    }
//! }
//! ```
//! LLVM knows the second as a reduction. A comparison with NaN is false: an accumulator that is NaN before the loop stays so,
//! which is seen to after the loop, and a NaN that it is compared with is left out, as `max` does. Of two zeros of
//! different sign either may be the result, as for all maxima that loops carry, so that floats are left as they are
//! where accumulations must not be regrouped.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp, FastMath, Function, Inst, Op, Region, Value, walk};

/// Makes maxima and minima of the loops inside a region that `is_wanted` selects. `uses` counts the uses of values.
pub(super) fn run(
    func: &mut Function,
    region: Region,
    level: FastMath,
    uses: &SecondaryMap<Value, u32>,
    is_wanted: &dyn Fn(&Function, Region) -> bool,
) -> bool {
    let mut pass = Extrema {
        uses,
        level,
        by: SecondaryMap::new(),
        changed: false,
    };
    pass.region(func, region, is_wanted);
    if pass.changed {
        rename(func, region, &pass.by);
    }
    pass.changed
}

struct Extrema<'a> {
    uses: &'a SecondaryMap<Value, u32>,
    level: FastMath,
    /// What values after loops become, and the choice that makes it.
    by: SecondaryMap<Value, Option<(Value, Inst)>>,
    changed: bool,
}

/// Where a variable is compared and chosen.
#[derive(Default)]
struct Found {
    op: Option<BinaryOp>,
    /// Choices, with what the variable is compared with.
    choices: Vec<(Inst, Value)>,
    /// How often the variable is used by that.
    uses: u32,
}

impl Extrema<'_> {
    fn region(
        &mut self,
        func: &mut Function,
        region: Region,
        is_wanted: &dyn Fn(&Function, Region) -> bool,
    ) {
        let mut out = Vec::new();
        for inst in std::mem::take(&mut func.regions[region].insts) {
            for owned in func.owned(inst) {
                self.region(func, owned, is_wanted);
            }
            out.push(inst);
            if let Op::For { body, .. } = func[inst]
                && is_wanted(func, body)
            {
                self.looped(func, inst, body, &mut out);
            }
        }
        func.regions[region].insts = out;
    }

    fn looped(&mut self, func: &mut Function, inst: Inst, body: Region, out: &mut Vec<Inst>) {
        for k in 0..func.insts[inst].results.len() {
            let param = func.regions[body].params[k + 1];
            let Some(ty) = func.ty(param).scalar().filter(|ty| !ty.is_half()) else {
                continue;
            };
            let exact = ty.is_float() && self.level == FastMath::Off;
            let Some(&end) = func.yielded(body).and_then(|values| values.get(k)) else {
                continue;
            };
            let mut found = Found::default();
            if ty == ScalarType::U1
                || exact
                || !self.follow(func, end, param, &mut found)
                || found.uses != self.uses[param]
            {
                continue;
            }
            let Some(op) = found.op else {
                continue;
            };
            for (choice, value) in found.choices {
                let (lhs, rhs) = (param, value);
                func.insts[choice].op = Op::Binary { op, lhs, rhs };
            }
            self.changed = true;
            let Op::For { ref init, .. } = func[inst] else {
                unreachable!("it is a loop")
            };
            let init = init[k];
            let is_number = |c: Scalar| !c.as_f64().is_nan();
            if ty.is_float() && !func.as_const(init).is_some_and(is_number) {
                self.keep_nan(func, inst, k, init, out);
            }
        }
    }

    /// A variable that is NaN before the loop is NaN after it.
    fn keep_nan(
        &mut self,
        func: &mut Function,
        inst: Inst,
        k: usize,
        init: Value,
        out: &mut Vec<Inst>,
    ) {
        let (result, span) = (func.insts[inst].results[k], func.insts[inst].span);
        let compare = Op::Compare {
            op: CompareOp::Eq,
            lhs: init,
            rhs: init,
        };
        let compare = func.new_inst(compare, &[ScalarType::U1.into()], span);
        let select = Op::Select {
            cond: func.insts[compare].results[0],
            on_true: result,
            on_false: init,
        };
        let select = func.new_inst(select, &[func.ty(result)], span);
        out.extend([compare, select]);
        self.by[result] = Some((func.insts[select].results[0], select));
    }

    /// Whether a value is the variable or what it is compared with.
    fn follow(&self, func: &Function, value: Value, param: Value, found: &mut Found) -> bool {
        if value == param {
            found.uses += 1;
            return true;
        }
        let Some(inst) = func.def(value).filter(|_| self.uses[value] == 1) else {
            return false;
        };
        let (cond, ends, is_alone) = match func[inst] {
            Op::Select {
                cond,
                on_true,
                on_false,
            } => (cond, [on_true, on_false], true),
            Op::If {
                cond,
                then,
                otherwise,
            } => {
                let mut results = func.insts[inst].results.iter();
                let k = results.position(|&r| r == value).expect("it is a result");
                let (Some(x), Some(y)) = (func.yielded(then), func.yielded(otherwise)) else {
                    return false;
                };
                let empty = |side: Region| func.regions[side].insts.len() == 1;
                let is_alone = x.len() == 1 && empty(then) && empty(otherwise);
                (cond, [x[k], y[k]], is_alone)
            }
            _ => return false,
        };
        if is_alone
            && self.uses[cond] == 1
            && let Some((op, value)) = compared(func, cond, ends, param)
        {
            found.uses += 2;
            found.choices.push((inst, value));
            return *found.op.get_or_insert(op) == op;
        }
        ends.into_iter()
            .all(|end| self.follow(func, end, param, found))
    }
}

/// The operation that chooses between a variable and what it is compared with, and the latter.
fn compared(
    func: &Function,
    cond: Value,
    [on_true, on_false]: [Value; 2],
    param: Value,
) -> Option<(BinaryOp, Value)> {
    let &Op::Compare { op, lhs, rhs } = func.def_op(cond)? else {
        return None;
    };
    let value = match (lhs == param, rhs == param) {
        (true, false) => rhs,
        (false, true) => lhs,
        _ => return None,
    };
    let takes = match (on_true == value, on_false == value) {
        (true, false) if on_false == param => true,
        // A comparison with NaN is false as well.
        (false, true) if on_true == param && !func.elem(param).is_float() => false,
        _ => return None,
    };
    let is_greater = match op {
        CompareOp::Gt | CompareOp::Ge => true,
        CompareOp::Lt | CompareOp::Le => false,
        CompareOp::Eq | CompareOp::Ne => return None,
    };
    // Whether the greater one of both is chosen.
    let greatest = is_greater ^ (lhs == param) ^ !takes;
    Some(match greatest {
        true => (BinaryOp::Max, value),
        false => (BinaryOp::Min, value),
    })
}

fn rename(func: &mut Function, region: Region, by: &SecondaryMap<Value, Option<(Value, Inst)>>) {
    let mut insts = Vec::new();
    walk(func, region, &mut |_, inst| insts.push(inst));
    for inst in insts {
        func.insts[inst].op.map_operands(|v| match by[v] {
            Some((value, choice)) if choice != inst => value,
            _ => v,
        });
    }
}

#[cfg(test)]
mod tests {
    use aerogel_ir::FastMath;

    use crate::testing::after;

    /// A loop that carries `m`, with what is done to it.
    fn looped(ty: &str, init: &str, body: &str) -> String {
        let text = format!(
            "tree0 {{ dense i:8 {{ place x: {ty} }} }}
            tree1 {{ dense i:8 {{ place y: {ty} }} }}
            field @x: {ty} = tree0 [S2]
            field @y: {ty} = tree1 [S2]
            kernel @k() {{
                task range {{
                    lo: i32 = const 0
                    hi: i32 = const 8
                    yield [lo, hi]
                }} {{
                    each (i: i32) {{
                        k0: i32 = const 0
                        k8: i32 = const 8
                        k1: i32 = const 1
                        p: ref<{ty}> = field_at @y, [i]
                        init: {ty} = {init}
                        best: {ty} = for k0, k8, k1, [init] (j: i32, m: {ty}) {{
                            q: ref<{ty}> = field_at @x, [j]
                            v: {ty} = load q
                            {body}
                            yield [w]
                        }}
                        store p, best
                        yield []
                    }}
                    yield []
                }}
                yield []
            }}"
        );
        after(&["guarded_steps", "dce"], &text, FastMath::Accumulations)
    }

    #[test]
    fn a_maximum() {
        let body = "c: u1 = gt v, m  w: f32 = if c { yield [v] } { yield [m] }";
        insta::assert_snapshot!(looped("f32", "load p", body), @"
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 8
                yield [v0, v1]
            } {
                each (v2: i32) {
                    v3: i32 = const 0
                    v4: i32 = const 8
                    v5: i32 = const 1
                    v6: ref<f32> = field_at @y, [v2]
                    v7: f32 = load v6
                    v8: f32 = for v3, v4, v5, [v7] (v9: i32, v10: f32) {
                        v11: ref<f32> = field_at @x, [v9]
                        v12: f32 = load v11
                        v13: f32 = max v10, v12
                        yield [v13]
                    }
                    v14: u1 = eq v7, v7
                    v15: f32 = select v14, v8, v7
                    store v6, v15
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
    }

    #[test]
    fn spellings() {
        let maxima = [
            ("f64", "c: u1 = lt m, v  w: f64 = select c, v, m"),
            (
                "f32",
                "c: u1 = ge v, m  w: f32 = if c { yield [v] } { yield [m] }",
            ),
            (
                "i32",
                "c: u1 = le v, m  w: i32 = if c { yield [m] } { yield [v] }",
            ),
            (
                "f32",
                "d: u1 = gt v, init  w: f32 = if d { c: u1 = gt v, m  u: f32 = select c, v, m  yield [u] } { yield [m] }",
            ),
        ];
        for (ty, body) in maxima {
            for init in ["const 1", "load p"] {
                let init = match ty {
                    "i32" => init.to_owned(),
                    _ => init.replace("const 1", "const 1.0"),
                };
                let text = looped(ty, &init, body);
                assert!(text.contains("= max"), "{text}");
            }
        }
        let text = looped("i32", "load p", "c: u1 = gt v, m  w: i32 = select c, m, v");
        assert!(text.contains("= min"), "{text}");
    }

    #[test]
    fn other_choices_stay() {
        let others = [
            // NaN takes its place; the variable is used; equality; another value is taken.
            ("f32", "c: u1 = le v, m  w: f32 = select c, m, v"),
            (
                "i32",
                "c: u1 = gt v, m  u: i32 = select c, v, m  w: i32 = add u, m",
            ),
            ("i32", "c: u1 = ne v, m  w: i32 = select c, v, m"),
            (
                "i32",
                "c: u1 = gt v, m  u: i32 = add v, k1  w: i32 = select c, u, m",
            ),
        ];
        for (ty, body) in others {
            let text = looped(ty, "load p", body);
            assert!(!text.contains("= max") && !text.contains("= min"), "{text}");
        }
    }
}
