//! Scattered sums into small fields get private copies.
//!
//! ```text
//! each (i: i32) {                             v1 = local of 64 elements
//!     v2 = field_at @bins, [v0]               each (i: i32) { v1[v0] += x }
//!     v3 = atomic_add v2, x            ==>    for k in 0..64 { if v1[k] != 0 { bins[k] += v1[k] } }
//! }
//! ```
//! Threads that change a few cells again and again wait for each other's cache lines; a copy for
//! each part of the task is theirs alone. Copies are worth their clearing and adding only while
//! they are small. That holds if the loop touches the place in no other way and does not use the
//! old values. An index outside the field goes to the field itself, as without the pass.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::access::{Class, calls, classes, is_quantised};
use aerogel_ir::{
    AtomicOp, BinaryOp, Builder, CompareOp, FieldId, Function, Inst, Op, Region, Rewrite, Type,
    Value, rewrite, walk,
};

use crate::PassCx;

/// Fields of more cells stay shared.
const MAX_CELLS: u64 = 256;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut changed = false;
    for task in func.regions[func.body].insts.clone() {
        let Op::Task { body, attrs, .. } = func[task] else {
            continue;
        };
        if !attrs.serial {
            changed |= privatize(func, cx, body);
        }
    }
    changed
}

/// A place of a small field that a loop only adds to.
struct Target {
    class: Class,
    field: FieldId,
    /// The component of a tensor field.
    component: Option<Vec<Value>>,
    elem: ScalarType,
    /// The storage of the field's whole element.
    whole: Type,
    /// First index and extent of each axis.
    axes: Vec<(i128, i128)>,
    atomics: Vec<Inst>,
    only_sums: bool,
    copy: Option<Value>,
}

fn privatize(func: &mut Function, cx: &PassCx<'_>, body: Region) -> bool {
    let Some(at) = func.regions[body]
        .insts
        .iter()
        .position(|&i| matches!(func[i], Op::Each { .. }))
    else {
        return false;
    };
    let Op::Each { body: inner } = func[func.regions[body].insts[at]] else {
        unreachable!("just found")
    };
    if calls(func, inner) {
        return false;
    }
    let mut targets = find_targets(func, cx, inner);
    if targets.is_empty() {
        return false;
    }
    let tail = func.regions[body].insts.split_off(at);
    let mut target_of: SecondaryMap<Inst, Option<usize>> = SecondaryMap::new();
    for (k, target) in targets.iter_mut().enumerate() {
        let n: i128 = target.axes.iter().map(|a| a.1).product();
        let mut b = Builder::new(func, body);
        target.copy = Some(b.local(Type::Vec(n as u32, target.elem)));
        target.atomics.iter().for_each(|&i| target_of[i] = Some(k));
    }
    let (each, after) = tail.split_first().expect("the loop is there");
    func.regions[body].insts.push(*each);
    for target in &targets {
        let mut b = Builder::new(func, body);
        b.span = b.func.insts[target.atomics[0]].span;
        flush(&mut b, target, &mut Vec::new());
    }
    func.regions[body].insts.extend(after);
    rewrite(func, |cursor, inst| match target_of[inst] {
        Some(k) => add(cursor, inst, &targets[k]),
        None => Rewrite::Keep,
    });
    true
}

fn find_targets(func: &Function, cx: &PassCx<'_>, inner: Region) -> Vec<Target> {
    let uses = func.use_counts();
    let mut targets: Vec<Target> = Vec::new();
    walk(func, inner, &mut |func, inst| {
        let (place, sum) = match func[inst] {
            Op::Load { place } | Op::Store { place, .. } | Op::Cas { place, .. } => (place, false),
            Op::Atomic { op, place, .. } => {
                let unused = func.insts[inst].results.iter().all(|&r| uses[r] == 0);
                let sum = matches!(op, AtomicOp::Add | AtomicOp::Sub);
                (place, unused && sum && !is_quantised(func, cx.env, place))
            }
            _ => return,
        };
        for class in classes(func, cx.env, place) {
            let known = targets.iter().position(|t| t.class == class);
            let k = known.unwrap_or_else(|| {
                targets.push(target(func, cx, class, place));
                targets.len() - 1
            });
            let t = &mut targets[k];
            let (field, component) = field_of(func, place);
            t.only_sums &=
                sum && field == Some(t.field) && component.is_some() == t.component.is_some();
            t.atomics.push(inst);
        }
    });
    targets.retain(|t| t.only_sums);
    targets
}

/// The field of a place, and its component's constant indices.
fn field_of(func: &Function, place: Value) -> (Option<FieldId>, Option<Vec<Value>>) {
    match func.def_op(place) {
        Some(Op::FieldAt { field, .. }) => (Some(*field), None),
        Some(Op::ElemRef { base, index }) => match func.def_op(*base) {
            Some(Op::FieldAt { field, .. })
                if index.iter().all(|&i| func.as_const(i).is_some()) =>
            {
                (Some(*field), Some(index.clone()))
            }
            _ => (None, None),
        },
        _ => (None, None),
    }
}

fn target(func: &Function, cx: &PassCx<'_>, class: Class, place: Value) -> Target {
    let (field, component) = field_of(func, place);
    let ty = func.ty(place).pointee().and_then(Type::scalar);
    let shape = field.map_or_else(Vec::new, |f| cx.env.shape(f));
    let cells: Option<u64> = shape.iter().try_fold(1, |n: u64, &e| n.checked_mul(e));
    // Adding a copy of all cells would activate those of a sparse node.
    let sparse = field.is_some_and(|f| {
        let data = &cx.env.fields[f];
        cx.env.trees[data.tree].is_below_sparse(data.places[0])
    });
    let small = !sparse && !shape.is_empty() && cells.is_some_and(|n| n <= MAX_CELLS);
    let offset = |k: usize| {
        field
            .and_then(|f| cx.env.fields[f].offset.get(k).copied())
            .unwrap_or(0)
    };
    Target {
        class,
        field: field.unwrap_or(FieldId::from_u32(0)),
        component,
        elem: ty.unwrap_or(ScalarType::I32),
        whole: field
            .and_then(|f| cx.env.fields[f].elem.to_ref())
            .unwrap_or(func.ty(place)),
        axes: shape
            .iter()
            .enumerate()
            .map(|(k, &e)| (i128::from(offset(k)), i128::from(e)))
            .collect(),
        atomics: Vec::new(),
        only_sums: small && ty.is_some(),
        copy: None,
    }
}

/// Replaces an atomic by an addition to the copy.
fn add(cursor: &mut Builder<'_>, inst: Inst, target: &Target) -> Rewrite {
    let Op::Atomic { op, place, value } = cursor.func[inst] else {
        unreachable!("targets are atomics")
    };
    let base = match cursor.func.def_op(place) {
        Some(&Op::ElemRef { base, .. }) => base,
        _ => place,
    };
    let Some(Op::FieldAt { indices, .. }) = cursor.func.def_op(base).cloned() else {
        unreachable!("targets are fields")
    };
    // The number of the cell, and whether there is one.
    let (mut inside, mut linear): (Option<Value>, Option<Value>) = (None, None);
    for (&index, &(first, extent)) in indices.iter().zip(&target.axes) {
        let wide = cursor.value(Op::Cast { x: index }, Type::I64);
        let first = cursor.constant(Scalar::int(ScalarType::I64, first));
        let extent = cursor.constant(Scalar::int(ScalarType::I64, extent));
        let zero = cursor.constant(Scalar::int(ScalarType::I64, 0));
        let binary = |cursor: &mut Builder<'_>, op, lhs, rhs, ty| {
            cursor.value(Op::Binary { op, lhs, rhs }, ty)
        };
        let at = binary(cursor, BinaryOp::Sub, wide, first, Type::I64);
        for (op, rhs) in [(CompareOp::Ge, zero), (CompareOp::Lt, extent)] {
            let ok = cursor.value(Op::Compare { op, lhs: at, rhs }, Type::BOOL);
            inside =
                Some(inside.map_or(ok, |all| binary(cursor, BinaryOp::And, all, ok, Type::BOOL)));
        }
        linear = Some(match linear {
            None => at,
            Some(outer) => {
                let outer = binary(cursor, BinaryOp::Mul, outer, extent, Type::I64);
                binary(cursor, BinaryOp::Add, outer, at, Type::I64)
            }
        });
    }
    let (cond, linear) = inside.zip(linear).expect("a target has an axis");
    let ty = Type::Scalar(target.elem);
    let (then, otherwise) = (cursor.func.new_region(&[]), cursor.func.new_region(&[]));
    let span = cursor.func.insts[inst].span;
    let mut b = Builder::new(cursor.func, then);
    b.span = span;
    let own = element(&mut b, target, linear);
    let old = b.load(own);
    let op = op.binary().expect("targets are sums");
    let new = b.binary(
        if op == BinaryOp::Sub {
            op
        } else {
            BinaryOp::Add
        },
        old,
        value,
    );
    b.store(own, new);
    b.yields(Vec::new());
    let mut b = Builder::new(cursor.func, otherwise);
    b.span = span;
    let Op::Atomic { op, .. } = b.func[inst] else {
        unreachable!("still there")
    };
    b.value(Op::Atomic { op, place, value }, ty);
    b.yields(Vec::new());
    cursor.inst(
        Op::If {
            cond,
            then,
            otherwise,
        },
        &[],
    );
    // The old value has no use; the result still needs a name.
    let unused = cursor.value(Op::Undef {}, ty);
    Rewrite::Replace(vec![unused])
}

/// The storage of a copy's element.
fn element(b: &mut Builder<'_>, target: &Target, linear: Value) -> Value {
    let base = target.copy.expect("made before");
    let place = Type::Scalar(target.elem)
        .to_ref()
        .expect("a scalar has a storage");
    b.value(
        Op::ElemRef {
            base,
            index: vec![linear],
        },
        place,
    )
}

/// Adds a copy to its field: a loop for each axis, then the cell at `indices`.
fn flush(b: &mut Builder<'_>, target: &Target, coords: &mut Vec<Value>) {
    let index_ty = ScalarType::I64;
    if let Some(&(_, extent)) = target.axes.get(coords.len()) {
        let lo = b.constant(Scalar::int(index_ty, 0));
        let hi = b.constant(Scalar::int(index_ty, extent));
        let step = b.constant(Scalar::int(index_ty, 1));
        let body = b.func.new_region(&[Type::I64]);
        b.effect(Op::For {
            lo,
            hi,
            step,
            init: Vec::new(),
            body,
        });
        coords.push(b.func.regions[body].params[0]);
        let span = b.span;
        let mut inner = Builder::new(b.func, body);
        inner.span = span;
        flush(&mut inner, target, coords);
        inner.yields(Vec::new());
        coords.pop();
        return;
    }
    let mut linear: Option<Value> = None;
    let mut indices = Vec::new();
    for (&coord, &(first, extent)) in coords.iter().zip(&target.axes) {
        let offset = b.constant(Scalar::int(index_ty, first));
        indices.push(b.binary(BinaryOp::Add, coord, offset));
        linear = Some(match linear {
            None => coord,
            Some(outer) => {
                let extent = b.constant(Scalar::int(index_ty, extent));
                let outer = b.binary(BinaryOp::Mul, outer, extent);
                b.binary(BinaryOp::Add, outer, coord)
            }
        });
    }
    let own = element(b, target, linear.expect("a target has an axis"));
    let value = b.load(own);
    let zero = b.constant(Scalar::zero(target.elem));
    let cond = b.compare(CompareOp::Ne, value, zero);
    let (then, otherwise) = (b.func.new_region(&[]), b.func.new_region(&[]));
    b.effect(Op::If {
        cond,
        then,
        otherwise,
    });
    Builder::new(b.func, otherwise).yields(Vec::new());
    let span = b.span;
    let mut b = Builder::new(b.func, then);
    b.span = span;
    let ty = Type::Scalar(target.elem);
    let place_ty = ty.to_ref().expect("a scalar has a storage");
    let place = match &target.component {
        None => b.value(
            Op::FieldAt {
                field: target.field,
                indices,
            },
            place_ty,
        ),
        Some(component) => {
            let constants: Vec<Scalar> = component
                .iter()
                .map(|&c| b.func.as_const(c).expect("a component is constant"))
                .collect();
            let index: Vec<Value> = constants.into_iter().map(|c| b.constant(c)).collect();
            let base = b.value(
                Op::FieldAt {
                    field: target.field,
                    indices,
                },
                target.whole,
            );
            b.value(Op::ElemRef { base, index }, place_ty)
        }
    };
    b.value(
        Op::Atomic {
            op: AtomicOp::Add,
            place,
            value,
        },
        ty,
    );
    b.yields(Vec::new());
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn histogram() {
        check_pass!("privatize", "
            tree0 { dense i:4 { place x: i32 }, dense i:3 { place b: i32 } }
            field @x: i32 = tree0 [S2]
            field @bins: i32 = tree0 [S4] offset [-1]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 4
                    yield [v0, v1]
                } {
                    v2: i32 = const 1
                    each (v3: i32) {
                        v4: ref<i32> = field_at @x, [v3]
                        v5: i32 = load v4
                        v6: ref<i32> = field_at @bins, [v5]
                        v7: i32 = atomic_add v6, v2
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 4
                    yield [v0, v1]
                } {
                    v2: i32 = const 1
                    v3: ref<vec<3, i32>> = local
                    each (v4: i32) {
                        v5: ref<i32> = field_at @x, [v4]
                        v6: i32 = load v5
                        v7: ref<i32> = field_at @bins, [v6]
                        v8: i64 = cast v6
                        v9: i64 = const -1
                        v10: i64 = const 3
                        v11: i64 = const 0
                        v12: i64 = sub v8, v9
                        v13: u1 = ge v12, v11
                        v14: u1 = lt v12, v10
                        v15: u1 = and v13, v14
                        if v15 {
                            v16: ref<i32> = elem_ref v3, [v12]
                            v17: i32 = load v16
                            v18: i32 = add v17, v2
                            store v16, v18
                            yield []
                        } {
                            v19: i32 = atomic_add v7, v2
                            yield []
                        }
                        v20: i32 = undef
                        yield []
                    }
                    v21: i64 = const 0
                    v22: i64 = const 3
                    v23: i64 = const 1
                    for v21, v22, v23, [] (v24: i64) {
                        v25: i64 = const -1
                        v26: i64 = add v24, v25
                        v27: ref<i32> = elem_ref v3, [v24]
                        v28: i32 = load v27
                        v29: i32 = const 0
                        v30: u1 = ne v28, v29
                        if v30 {
                            v31: ref<i32> = field_at @bins, [v26]
                            v32: i32 = atomic_add v31, v28
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
    fn what_is_read_stays_shared() {
        check_pass!("privatize", "
            tree0 { dense i:3 { place b: i32 } }
            field @bins: i32 = tree0 [S2]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 3
                    yield [v0, v1]
                } {
                    each (v3: i32) {
                        v4: ref<i32> = field_at @bins, [v3]
                        v5: i32 = load v4
                        v6: ref<i32> = field_at @bins, [v5]
                        v7: i32 = atomic_add v6, v5
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 3
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: ref<i32> = field_at @bins, [v2]
                        v4: i32 = load v3
                        v5: ref<i32> = field_at @bins, [v4]
                        v6: i32 = atomic_add v5, v4
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn a_call_may_read_the_field() {
        let text = "
            tree0 { dense i:4 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 10
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: i32 = call @first, []
                        v4: ref<i32> = field_at @x, [v3]
                        v5: i32 = atomic_add v4, v2
                        yield []
                    }
                    yield []
                }
                yield []
            }
            func @first() -> i32 {
                v0: i32 = const 0
                v1: ref<i32> = field_at @x, [v0]
                v2: i32 = load v1
                v3: i32 = const 3
                v4: i32 = and v2, v3
                yield [v4]
            }";
        let after = crate::testing::after(&["privatize"], text, false);
        assert!(!after.contains("local"), "{after}");
    }
}
