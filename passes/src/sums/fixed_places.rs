//! Targets of atomics that are the same element in every iteration of a loop.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::access::constant_element;
use aerogel_ir::{Builder, Effect, Env, Function, Inst, Op, Region, Value};

/// Whether a place is the same in every iteration.
pub(super) fn is_fixed(func: &Function, inside: &SecondaryMap<Value, bool>, place: Value) -> bool {
    let fixed = |v: &Value| !inside[*v] || func.as_const(*v).is_some();
    match func.def_op(place) {
        Some(Op::TempAt { .. }) => true,
        Some(Op::Local {}) => !inside[place],
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
pub(super) fn same_place(func: &Function, a: Value, b: Value) -> bool {
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

/// Whether a fixed place exists whatever the program checked beforehand.
pub(super) fn is_in_bounds(func: &Function, env: &Env, place: Value) -> bool {
    match func.def_op(place) {
        Some(Op::TempAt { .. } | Op::Local {}) => true,
        Some(Op::FieldAt { field, indices }) => {
            let offset = |k: usize| env.fields[*field].offset.get(k).copied().unwrap_or(0);
            let shape = env.shape(*field).into_iter().enumerate();
            indices.iter().zip(shape).all(|(&i, (k, extent))| {
                let lo = i128::from(offset(k));
                func.as_const(i)
                    .is_some_and(|i| (lo..lo + i128::from(extent)).contains(&i.as_i128()))
            })
        }
        Some(Op::ElemRef { base, index }) => {
            is_in_bounds(func, env, *base) && constant_element(func, *base, index).is_some()
        }
        _ => false,
    }
}

/// Whether each iteration runs one of the instructions: nothing before it may leave or be skipped.
pub(super) fn runs_always(func: &Function, body: Region, insts: &[Inst]) -> bool {
    func.regions[body]
        .insts
        .iter()
        .take_while(|&&i| !func[i].may_exit() && func[i].effect() != Effect::Control)
        .any(|i| insts.contains(i))
}

/// A copy of the instructions that compute a fixed place.
pub(super) fn copy_place(b: &mut Builder<'_>, place: Value) -> Value {
    let made = b.func.def_op(place);
    let mut op = made.expect("a place is made by an instruction").clone();
    // A copy would be another local.
    if let Op::Local {} = op {
        return place;
    }
    op.map_operands(|v| {
        if b.func.as_const(v).is_some() || b.func.ty(v).pointee().is_some() {
            copy_place(b, v)
        } else {
            v
        }
    });
    let ty = b.func.ty(place);
    b.value(op, ty)
}

/// Whether constant indices tell two places apart.
pub(super) fn are_apart(func: &Function, a: Value, b: Value) -> bool {
    let differ = |x: &[Value], y: &[Value]| {
        let mut pairs = x.iter().zip(y);
        pairs.any(|(&x, &y)| {
            let both = func.as_const(x).zip(func.as_const(y));
            both.is_some_and(|(x, y)| x.as_i128() != y.as_i128())
        })
    };
    match (func.def_op(a), func.def_op(b)) {
        (
            Some(Op::FieldAt {
                field: f,
                indices: x,
            }),
            Some(Op::FieldAt {
                field: g,
                indices: y,
            }),
        ) => f == g && differ(x, y),
        (
            Some(Op::ArrayAt {
                array: f,
                indices: x,
            }),
            Some(Op::ArrayAt {
                array: g,
                indices: y,
            }),
        ) => f == g && differ(x, y),
        (Some(Op::ElemRef { base: f, index: x }), Some(Op::ElemRef { base: g, index: y })) => {
            are_apart(func, *f, *g) || same_place(func, *f, *g) && differ(x, y)
        }
        _ => false,
    }
}
