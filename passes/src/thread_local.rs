//! Reductions get thread-local accumulators.
//!
//! ```text
//! each (i: i32) {                       v1 = local      store v1, 0
//!     v2 = atomic_add (temp_at 0), x    each (i: i32) { v3 = load v1  v4 = add v3, x  store v1, v4 }
//! }                              ==>    v5 = load v1    atomic_add (temp_at 0), v5
//! ```
//! That holds if the loop touches the target in no other way, does not use the old value, and the
//! target does not depend on the iteration. Each part of a task then ends in one atomic; the
//! accumulator of a part is a register, and a loop over it vectorises.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType, Span};
use aerogel_ir::{AtomicOp, BinaryOp, Function, Inst, Op, Region, Type, Value, walk};

use crate::PassCx;
use crate::access::{Class, classes, defined_in};

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut changed = false;
    for task in func.regions[func.body].insts.clone() {
        let Op::Task { body, attrs, .. } = func[task] else {
            continue;
        };
        let each = func.regions[body]
            .insts
            .iter()
            .position(|&i| matches!(func[i], Op::Each { .. }));
        if let (Some(at), false) = (each, attrs.serial) {
            changed |= reduce(func, cx, body, at);
        }
    }
    changed
}

/// A target of atomics, with everything the loop does to its class of memory.
struct Target {
    class: Class,
    /// The operation, sums and differences counting as sums; none if the class is not only reduced.
    op: Option<AtomicOp>,
    /// A place of the target that is computed the same way for all atomics.
    place: Value,
    atomics: Vec<Inst>,
}

fn reduce(func: &mut Function, cx: &PassCx<'_>, body: Region, at: usize) -> bool {
    let each = func.regions[body].insts[at];
    let Op::Each { body: inner } = func[each] else {
        unreachable!("the caller looked")
    };
    let mut inside = SecondaryMap::new();
    defined_in(func, inner, &mut inside);
    let uses = func.use_counts();

    let mut targets: Vec<Target> = Vec::new();
    walk(func, inner, &mut |func, inst| {
        let (place, op) = match func[inst] {
            Op::Load { place } | Op::Store { place, .. } | Op::Cas { place, .. } => (place, None),
            Op::Atomic { op, place, .. } => {
                let unused = func.insts[inst].results.iter().all(|&r| uses[r] == 0);
                let op = if op == AtomicOp::Sub {
                    AtomicOp::Add
                } else {
                    op
                };
                (
                    place,
                    Some(op).filter(|&op| {
                        unused
                            && identity(op, func.elem(func.insts[inst].results[0])).is_some()
                            && is_fixed(func, &inside, place)
                    }),
                )
            }
            _ => return,
        };
        for class in classes(func, cx.env, place) {
            match targets.iter_mut().find(|t| t.class == class) {
                None => targets.push(Target {
                    class,
                    op,
                    place,
                    atomics: vec![inst],
                }),
                Some(t) => {
                    if t.op != op || !same_place(func, t.place, place) {
                        t.op = None;
                    }
                    t.atomics.push(inst);
                }
            }
        }
    });
    targets.retain(|t| t.op.is_some());
    for target in &targets {
        accumulate(func, body, each, target);
    }
    !targets.is_empty()
}

/// Whether a place is the same in every iteration.
fn is_fixed(func: &Function, inside: &SecondaryMap<Value, bool>, place: Value) -> bool {
    let fixed = |v: &Value| !inside[*v] || func.as_const(*v).is_some();
    match func.def_op(place) {
        Some(Op::TempAt { .. }) => true,
        Some(Op::FieldAt { indices, .. } | Op::ArrayAt { indices, .. }) => {
            indices.iter().all(fixed)
        }
        Some(Op::ElemRef { base, index }) => {
            is_fixed(func, inside, *base) && index.iter().all(fixed)
        }
        _ => false,
    }
}

/// Whether two fixed places are computed alike.
fn same_place(func: &Function, a: Value, b: Value) -> bool {
    let same = |x: Value, y: Value| {
        x == y || func.as_const(x).is_some() && func.as_const(x) == func.as_const(y)
    };
    let all = |x: &[Value], y: &[Value]| x.iter().zip(y).all(|(&x, &y)| same(x, y));
    match (func.def_op(a), func.def_op(b)) {
        _ if a == b => true,
        (Some(Op::TempAt { offset: x }), Some(Op::TempAt { offset: y })) => x == y,
        (
            Some(Op::FieldAt {
                field: f,
                indices: x,
            }),
            Some(Op::FieldAt {
                field: g,
                indices: y,
            }),
        ) => f == g && all(x, y),
        (
            Some(Op::ArrayAt {
                array: f,
                indices: x,
            }),
            Some(Op::ArrayAt {
                array: g,
                indices: y,
            }),
        ) => f == g && all(x, y),
        (Some(Op::ElemRef { base: f, index: x }), Some(Op::ElemRef { base: g, index: y })) => {
            same_place(func, *f, *g) && all(x, y)
        }
        _ => false,
    }
}

/// The value that changes nothing.
fn identity(op: AtomicOp, ty: ScalarType) -> Option<Scalar> {
    let extreme = |lowest: bool| match ty {
        _ if ty.is_float() => Scalar::float(
            ty,
            if lowest {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            },
        ),
        _ if ty.is_signed() => Scalar::int(
            ty,
            if lowest {
                -(1i128 << (ty.bits() - 1))
            } else {
                (1i128 << (ty.bits() - 1)) - 1
            },
        ),
        _ => Scalar::int(ty, if lowest { 0 } else { -1 }),
    };
    match op {
        // -0.0 + x is x for every x.
        AtomicOp::Add if ty.is_float() => Some(Scalar::float(ty, -0.0)),
        AtomicOp::Add | AtomicOp::Or | AtomicOp::Xor => Some(Scalar::zero(ty)),
        AtomicOp::Mul => Some(Scalar::one(ty)),
        AtomicOp::Min => Some(extreme(false)),
        AtomicOp::Max => Some(extreme(true)),
        AtomicOp::And => Some(Scalar::int(ty, -1)),
        AtomicOp::Sub | AtomicOp::Exchange => None,
    }
}

fn accumulate(func: &mut Function, body: Region, each: Inst, target: &Target) {
    let op = target.op.expect("kept");
    let elem = func.elem(func.insts[target.atomics[0]].results[0]);
    let ty = Type::Scalar(elem);
    let span = func.insts[target.atomics[0]].span;
    let new = |func: &mut Function, op: Op, types: &[Type]| func.new_inst(op, types, span);

    let local = new(
        func,
        Op::Local {},
        &[ty.to_ref().expect("a scalar has a storage")],
    );
    let accumulator = func.insts[local].results[0];
    let zero = new(
        func,
        Op::Const {
            value: identity(op, elem).expect("kept"),
        },
        &[ty],
    );
    let value = func.insts[zero].results[0];
    let clear = new(
        func,
        Op::Store {
            place: accumulator,
            value,
        },
        &[],
    );

    for &inst in &target.atomics {
        let Op::Atomic { op: own, value, .. } = func[inst] else {
            unreachable!("only atomics are kept")
        };
        let load = new(func, Op::Load { place: accumulator }, &[ty]);
        let lhs = func.insts[load].results[0];
        let binary = if own == AtomicOp::Sub {
            BinaryOp::Sub
        } else {
            op.binary().expect("a reduction computes")
        };
        let sum = new(
            func,
            Op::Binary {
                op: binary,
                lhs,
                rhs: value,
            },
            &[ty],
        );
        let value = func.insts[sum].results[0];
        // The atomic itself becomes the store, where it stands.
        func.insts[inst].op = Op::Store {
            place: accumulator,
            value,
        };
        func.insts[inst].results.clear();
        insert_before(func, body, inst, &[load, sum]);
    }

    let copies = copy_place(func, target.place, span);
    let place = func.insts[*copies.last().expect("a place is made by an instruction")].results[0];
    let load = new(func, Op::Load { place: accumulator }, &[ty]);
    let value = func.insts[load].results[0];
    let flush = new(func, Op::Atomic { op, place, value }, &[ty]);
    let at = func.regions[body]
        .insts
        .iter()
        .position(|&i| i == each)
        .expect("the loop is in the task");
    let insts = &mut func.regions[body].insts;
    let tail = insts.split_off(at + 1);
    insts.splice(at..at, [local, zero, clear]);
    insts.extend(copies);
    insts.extend([load, flush]);
    insts.extend(tail);
}

/// Copies of the instructions that compute a fixed place, the place last.
fn copy_place(func: &mut Function, place: Value, span: Span) -> Vec<Inst> {
    let mut op = func
        .def_op(place)
        .expect("a place is made by an instruction")
        .clone();
    let mut copies = Vec::new();
    op.map_operands(|v| {
        let again = func.as_const(v).is_some() || func.ty(v).pointee().is_some();
        if !again {
            return v;
        }
        let mut inner = copy_place(func, v, span);
        let value = func.insts[*inner.last().expect("not empty")].results[0];
        copies.append(&mut inner);
        value
    });
    let ty = func.ty(place);
    copies.push(func.new_inst(op, &[ty], span));
    copies
}

fn insert_before(func: &mut Function, region: Region, before: Inst, new: &[Inst]) -> bool {
    if let Some(at) = func.regions[region].insts.iter().position(|&i| i == before) {
        func.regions[region]
            .insts
            .splice(at..at, new.iter().copied());
        return true;
    }
    func.regions[region].insts.clone().into_iter().any(|i| {
        func.owned(i)
            .into_iter()
            .any(|r| insert_before(func, r, before, new))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn sum() {
        check_pass!("thread_local", "
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 10
                    yield [v0, v1]
                } {
                    v2: ref<i32> = temp_at 0
                    each (v3: i32) {
                        v4: i32 = atomic_add v2, v3
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 10
                    yield [v0, v1]
                } {
                    v2: ref<i32> = temp_at 0
                    v3: ref<i32> = local
                    v4: i32 = const 0
                    store v3, v4
                    each (v5: i32) {
                        v6: i32 = load v3
                        v7: i32 = add v6, v5
                        store v3, v7
                        yield []
                    }
                    v8: ref<i32> = temp_at 0
                    v9: i32 = load v3
                    v10: i32 = atomic_add v8, v9
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn used_old_values_stay_atomic() {
        check_pass!("thread_local", "
            tree0 { place n: i32, dense i:16 { place x: i32 } }
            field @n: i32 = tree0 [S1]
            field @x: i32 = tree0 [S3]
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 10
                    yield [v0, v1]
                } {
                    v2: ref<i32> = field_at @n, []
                    v5: i32 = const 1
                    each (v3: i32) {
                        v4: i32 = atomic_add v2, v5
                        v6: ref<i32> = field_at @x, [v4]
                        store v6, v5
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task range {
                    v0: i32 = const 0
                    v1: i32 = const 10
                    yield [v0, v1]
                } {
                    v2: ref<i32> = field_at @n, []
                    v3: i32 = const 1
                    each (v4: i32) {
                        v5: i32 = atomic_add v2, v3
                        v6: ref<i32> = field_at @x, [v5]
                        store v6, v3
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }
}
