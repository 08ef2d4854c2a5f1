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
//!
//! The threads of a GPU have no memory that would be near, but those of a block share some: there is one copy for each
//! block, to which they add atomically (`share.rs`).

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::access::{Class, calls, classes, is_quantised, touched};
use aerogel_ir::{
    AtomicOp, BinaryOp, Builder, CompareOp, FieldId, Function, Inst, Op, Region, Rewrite, Type,
    Value, rewrite, walk,
};

use super::share;
use crate::PassCx;

/// Fields of more cells stay shared between the parts of a thread. Clearing and adding 32 cells for each part, of some 1,000
/// iterations, takes no time that can be measured; with 256 cells a sum took twice as long as with the copies of
/// threads. Long chains of additions, which lose digits, come with few cells.
const MAX_CELLS: u64 = 32;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut changed = false;
    for task in func.regions[func.body].insts.clone() {
        let Op::Task { body, attrs, .. } = func[task] else {
            continue;
        };
        if !attrs.serial {
            changed |= privatize(func, cx, task, body);
        }
    }
    changed
}

/// A place of a small field that a loop only adds to.
pub(super) struct Target {
    field: FieldId,
    /// The component of a tensor field.
    component: Option<Vec<Value>>,
    pub(super) elem: ScalarType,
    /// The storage of the field's whole element.
    whole: Type,
    /// First index and size of each axis.
    axes: Vec<(i128, i128)>,
    atomics: Vec<Inst>,
}

impl Target {
    /// How many numbers a copy has.
    pub(super) fn cells(&self) -> i128 {
        self.axes.iter().map(|a| a.1).product()
    }
}

fn privatize(func: &mut Function, cx: &PassCx<'_>, task: Inst, body: Region) -> bool {
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
    let is_shared = cx.options.shared_memory;
    let mut targets = find_targets(func, cx, inner);
    if is_shared {
        share::keep_what_pays(func, task, inner, &mut targets);
    }
    if targets.is_empty() {
        return false;
    }
    let tail = func.regions[body].insts.split_off(at);
    let mut b = Builder::new(func, body);
    let mut copies = Vec::new();
    let mut copy_of: SecondaryMap<Inst, Option<(usize, Value)>> = SecondaryMap::new();
    for (k, target) in targets.iter().enumerate() {
        let ty = Type::Vec(target.cells() as u32, target.elem);
        let copy = match is_shared {
            true => b.value(Op::Shared {}, ty.to_ref().expect("a vector's storage")),
            false => b.local(ty),
        };
        copies.push(copy);
        for &atomic in &target.atomics {
            copy_of[atomic] = Some((k, copy));
        }
    }
    let (&each, after) = tail.split_first().expect("the loop is there");
    if is_shared {
        share::clear(&mut b, &targets, &copies);
    }
    b.append(each);
    if is_shared {
        share::wait(&mut b);
    }
    for (target, &copy) in targets.iter().zip(&copies) {
        b.span = b.func.insts[target.atomics[0]].span;
        match is_shared {
            true => share::each_of_thread(&mut b, target.cells(), |b, linear| {
                let extents: Vec<i128> = target.axes.iter().map(|a| a.1).collect();
                let coords = coords_of(b, &extents, linear);
                flush_one(b, target, copy, &coords, linear);
            }),
            false => flush(&mut b, target, copy, &mut Vec::new()),
        }
    }
    func.regions[body].insts.extend(after);
    rewrite(func, |before, inst| match copy_of[inst] {
        Some((k, copy)) => add(before, inst, &targets[k], (copy, is_shared)),
        None => Rewrite::Keep,
    });
    true
}

fn find_targets(func: &Function, cx: &PassCx<'_>, inner: Region) -> Vec<Target> {
    let uses = func.use_counts();
    // For each class of memory what can have a copy; none if it is touched in another way.
    let mut found: Vec<(Class, Option<Target>)> = Vec::new();
    walk(func, inner, &mut |func, inst| {
        let sum = match func[inst] {
            Op::Atomic { op, place, .. } => {
                let unused = func.insts[inst].results.iter().all(|&r| uses[r] == 0);
                let sum = matches!(op, AtomicOp::Add | AtomicOp::Sub);
                unused && sum && !is_quantised(func, cx.env, place)
            }
            _ => false,
        };
        let places = touched(&func[inst]).iter();
        let classes =
            places.flat_map(|&p| classes(func, cx.env, p).into_iter().map(move |c| (p, c)));
        for (place, class) in classes {
            let known = found.iter().position(|(c, _)| *c == class);
            let k = known.unwrap_or_else(|| {
                found.push((class, target(func, cx, place)));
                found.len() - 1
            });
            let (_, candidate) = &mut found[k];
            let (field, component) = field_of(func, place);
            *candidate = candidate.take().filter(|t| {
                let whole = component.is_some() == t.component.is_some();
                sum && field == Some(t.field) && whole
            });
            if let Some(target) = candidate {
                target.atomics.push(inst);
            }
        }
    });
    found.into_iter().filter_map(|(_, target)| target).collect()
}

/// The field of a place, and its component's constant indices.
pub(crate) fn field_of(func: &Function, place: Value) -> (Option<FieldId>, Option<Vec<Value>>) {
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

/// The target that a place is part of, if it is a number of a small field.
fn target(func: &Function, cx: &PassCx<'_>, place: Value) -> Option<Target> {
    let (field, component) = field_of(func, place);
    let field = field?;
    let data = &cx.env.fields[field];
    let elem = func.ty(place).pointee().and_then(Type::scalar)?;
    let shape = cx.env.shape(field);
    let cells = shape
        .iter()
        .try_fold(1, |n: u64, &extent| n.checked_mul(extent))?;
    let most = match cx.options.shared_memory {
        true => share::MOST_CELLS,
        false => MAX_CELLS,
    };
    // Sums of integers are exact in any order: the copies of threads do (decision 24), which are cleared once.
    if !cx.options.shared_memory && !elem.is_float() {
        return None;
    }
    // Adding a copy of all cells would activate those of a sparse node.
    if cx.env.is_sparse(field) || shape.is_empty() || cells > most {
        return None;
    }
    let first = |axis: usize| data.offset.get(axis).copied().unwrap_or(0);
    let axes = shape.iter().enumerate();
    Some(Target {
        field,
        component,
        elem,
        whole: data.elem.to_ref()?,
        axes: axes
            .map(|(axis, &extent)| (i128::from(first(axis)), i128::from(extent)))
            .collect(),
        atomics: Vec::new(),
    })
}

/// Replaces an atomic by an addition to the copy, which is atomic too if threads share it.
fn add(
    b: &mut Builder<'_>,
    inst: Inst,
    target: &Target,
    (copy, is_shared): (Value, bool),
) -> Rewrite {
    let Op::Atomic { op, place, value } = b.func[inst] else {
        unreachable!("targets are atomics")
    };
    let base = match b.func.def_op(place) {
        Some(&Op::ElemRef { base, .. }) => base,
        _ => place,
    };
    let Some(Op::FieldAt { indices, .. }) = b.func.def_op(base).cloned() else {
        unreachable!("targets are fields")
    };
    // The number of the cell, and whether there is one.
    let (mut inside, mut linear): (Option<Value>, Option<Value>) = (None, None);
    for (&index, &(first, extent)) in indices.iter().zip(&target.axes) {
        let wide = b.value(Op::Cast { x: index }, Type::I64);
        let [first, extent, zero] =
            [first, extent, 0].map(|n| b.constant(Scalar::int(ScalarType::I64, n)));
        let at = b.binary(BinaryOp::Sub, wide, first);
        for (op, end) in [(CompareOp::Ge, zero), (CompareOp::Lt, extent)] {
            let ok = b.compare(op, at, end);
            inside = Some(inside.map_or(ok, |all| b.binary(BinaryOp::And, all, ok)));
        }
        linear = Some(match linear {
            None => at,
            Some(outer) => {
                let outer = b.binary(BinaryOp::Mul, outer, extent);
                b.binary(BinaryOp::Add, outer, at)
            }
        });
    }
    let (cond, linear) = inside.zip(linear).expect("a target has an axis");
    let ty = Type::Scalar(target.elem);
    let to_copy = |b: &mut Builder<'_>| {
        let own = element(b, target, copy, linear);
        if is_shared {
            b.value(
                Op::Atomic {
                    op,
                    place: own,
                    value,
                },
                ty,
            );
            return;
        }
        let old = b.load(own);
        let new = b.binary(op.binary().expect("targets are sums"), old, value);
        b.store(own, new);
    };
    b.if_(cond, &[], to_copy, |b| {
        b.value(Op::Atomic { op, place, value }, ty);
    });
    // The old value has no use; the result still needs a name.
    Rewrite::Replace(vec![b.value(Op::Undef {}, ty)])
}

/// The storage of a copy's element.
pub(super) fn element(b: &mut Builder<'_>, target: &Target, copy: Value, linear: Value) -> Value {
    let op = Op::ElemRef {
        base: copy,
        index: vec![linear],
    };
    b.value(op, Type::RefScalar(target.elem))
}

/// Adds a copy to its field: a loop for each axis, then the cell at `coords`.
fn flush(b: &mut Builder<'_>, target: &Target, copy: Value, coords: &mut Vec<Value>) {
    let index_ty = ScalarType::I64;
    if let Some(&(_, extent)) = target.axes.get(coords.len()) {
        let [lo, hi] = [0, extent].map(|n| b.constant(Scalar::int(index_ty, n)));
        return b.for_(lo, hi, |b, coord| {
            coords.push(coord);
            flush(b, target, copy, coords);
            coords.pop();
        });
    }
    let mut linear: Option<Value> = None;
    for (&coord, &(_, extent)) in coords.iter().zip(&target.axes) {
        linear = Some(match linear {
            None => coord,
            Some(outer) => {
                let extent = b.constant(Scalar::int(index_ty, extent));
                let outer = b.binary(BinaryOp::Mul, outer, extent);
                b.binary(BinaryOp::Add, outer, coord)
            }
        });
    }
    flush_one(
        b,
        target,
        copy,
        coords,
        linear.expect("a target has an axis"),
    );
}

/// The coordinates of the element with a given number in a copy of that shape.
pub(crate) fn coords_of(b: &mut Builder<'_>, extents: &[i128], number: Value) -> Vec<Value> {
    let mut rest = number;
    let mut coords = Vec::new();
    for &extent in extents[1..].iter().rev() {
        // No number is negative, and so this is the remainder.
        let extent = b.constant(Scalar::int(ScalarType::I64, extent));
        let times = b.binary(BinaryOp::FloorDiv, rest, extent);
        let whole = b.binary(BinaryOp::Mul, times, extent);
        coords.push(b.binary(BinaryOp::Sub, rest, whole));
        rest = times;
    }
    coords.push(rest);
    coords.reverse();
    coords
}

/// Adds an element of a copy to its field, if there is something to add.
fn flush_one(b: &mut Builder<'_>, target: &Target, copy: Value, coords: &[Value], linear: Value) {
    let mut indices = Vec::new();
    for (&coord, &(first, _)) in coords.iter().zip(&target.axes) {
        let offset = b.constant(Scalar::int(ScalarType::I64, first));
        indices.push(b.binary(BinaryOp::Add, coord, offset));
    }
    let own = element(b, target, copy, linear);
    let value = b.load(own);
    let zero = b.constant(Scalar::zero(target.elem));
    let cond = b.compare(CompareOp::Ne, value, zero);
    let to_field = |b: &mut Builder<'_>| {
        let place = Type::RefScalar(target.elem);
        let field = target.field;
        let at = Op::FieldAt { field, indices };
        let place = match &target.component {
            None => b.value(at, place),
            Some(component) => {
                let index = component.iter().map(|&c| {
                    let constant = b.func.as_const(c).expect("a component is constant");
                    b.constant(constant)
                });
                let index = index.collect();
                let base = b.value(at, target.whole);
                b.value(Op::ElemRef { base, index }, place)
            }
        };
        let op = AtomicOp::Add;
        b.value(Op::Atomic { op, place, value }, target.elem.into());
    };
    b.if_(cond, &[], to_field, |_| ());
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn histogram() {
        check_pass!("privatize", "
            tree0 { dense i:4 { place x: i32 }, dense i:3 { place b: f32 } }
            field @x: i32 = tree0 [S2]
            field @bins: f32 = tree0 [S4] offset [-1]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 4
                    yield [v0, v1]
                } {
                    v2: f32 = const 1.5
                    each (v3: i32) {
                        v4: ref<i32> = field_at @x, [v3]
                        v5: i32 = load v4
                        v6: ref<f32> = field_at @bins, [v5]
                        v7: f32 = atomic_add v6, v2
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
                v2: f32 = const 1.5
                v3: ref<vec<3, f32>> = local
                each (v4: i32) {
                    v5: ref<i32> = field_at @x, [v4]
                    v6: i32 = load v5
                    v7: ref<f32> = field_at @bins, [v6]
                    v8: i64 = cast v6
                    v9: i64 = const -1
                    v10: i64 = const 3
                    v11: i64 = const 0
                    v12: i64 = sub v8, v9
                    v13: u1 = ge v12, v11
                    v14: u1 = lt v12, v10
                    v15: u1 = and v13, v14
                    if v15 {
                        v16: ref<f32> = elem_ref v3, [v12]
                        v17: f32 = load v16
                        v18: f32 = add v17, v2
                        store v16, v18
                        yield []
                    } {
                        v19: f32 = atomic_add v7, v2
                        yield []
                    }
                    v20: f32 = undef
                    yield []
                }
                v21: i64 = const 0
                v22: i64 = const 3
                v23: i64 = const 1
                for v21, v22, v23, [] (v24: i64) {
                    v25: i64 = const -1
                    v26: i64 = add v24, v25
                    v27: ref<f32> = elem_ref v3, [v24]
                    v28: f32 = load v27
                    v29: f32 = const 0.0
                    v30: u1 = ne v28, v29
                    if v30 {
                        v31: ref<f32> = field_at @bins, [v26]
                        v32: f32 = atomic_add v31, v28
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
            tree0 { dense i:3 { place b: f32 } }
            field @bins: f32 = tree0 [S2]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 3
                    yield [v0, v1]
                } {
                    each (v3: i32) {
                        v4: ref<f32> = field_at @bins, [v3]
                        v5: f32 = load v4
                        v8: i32 = cast v5
                        v6: ref<f32> = field_at @bins, [v8]
                        v7: f32 = atomic_add v6, v5
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
                    v3: ref<f32> = field_at @bins, [v2]
                    v4: f32 = load v3
                    v5: i32 = cast v4
                    v6: ref<f32> = field_at @bins, [v5]
                    v7: f32 = atomic_add v6, v4
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
            tree0 { dense i:4 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 10
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: i32 = call @first, []
                        v4: ref<f32> = field_at @x, [v3]
                        v6: f32 = cast v2
                        v5: f32 = atomic_add v4, v6
                        yield []
                    }
                    yield []
                }
                yield []
            }
            func @first() -> i32 {
                v0: i32 = const 0
                v1: ref<f32> = field_at @x, [v0]
                v4: f32 = load v1
                v2: i32 = cast v4
                v3: i32 = const 3
                v4: i32 = and v2, v3
                yield [v4]
            }";
        let after = crate::testing::after(&["privatize"], text, aerogel_ir::FastMath::Off);
        assert!(!after.contains("local"), "{after}");
    }

    #[test]
    fn integers_are_left_to_the_copies_of_threads() {
        let text = "
            tree0 { dense i:3 { place b: i32 } }
            field @bins: i32 = tree0 [S2]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 3
                    yield [v0, v1]
                } {
                    each (v2: i32) {
                        v3: ref<i32> = field_at @bins, [v2]
                        v4: i32 = atomic_add v3, v2
                        yield []
                    }
                    yield []
                }
                yield []
            }";
        let after = crate::testing::after(&["privatize"], text, aerogel_ir::FastMath::Off);
        assert!(!after.contains("local"), "{after}");
    }
}
