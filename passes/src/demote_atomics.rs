//! Atomics that need not be atomic become load, arithmetic and store.
//!
//! ```text
//! parallel [..], [..] (i: i32) {            v1 = field_at @x, [i]
//!     v1 = field_at @x, [i]                 v2 = load v1
//!     v2 = atomic_add v1, v0       ==>      v3 = add v2, v0
//! }                                         store v1, v3
//! ```
//! That holds for storage of the iteration's own: locals made inside the loop, serial code, and
//! elements of a field named by all of the loop's indices, if no other index names elements of the
//! same field to be written in the loop.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::{Arg, Function, Op, Region, Rewrite, Value, rewrite, walk};

use crate::PassCx;
use crate::access::{defined_in, is_apart};

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let shared = shared_places(func, cx);
    rewrite(func, |cursor, inst| {
        let Op::Atomic { op, place, value } = cursor.func[inst] else {
            return Rewrite::Keep;
        };
        if shared[place] {
            return Rewrite::Keep;
        }
        let ty = cursor.func.ty(value);
        let old = cursor.insert(Op::Load { place }, ty);
        let new = op.binary().map_or(value, |op| {
            cursor.insert(
                Op::Binary {
                    op,
                    lhs: old,
                    rhs: value,
                },
                ty,
            )
        });
        cursor.insert_inst(Op::Store { place, value: new }, &[]);
        Rewrite::Replace(vec![old])
    })
}

/// Places that several threads may change at the same time.
fn shared_places(func: &Function, cx: &PassCx<'_>) -> SecondaryMap<Value, bool> {
    let mut shared = SecondaryMap::new();
    if !func.is_kernel {
        // A function may be called from anywhere; only its locals are its own.
        walk(func, func.body, &mut |func, inst| {
            if let Op::Atomic { place, .. } = func[inst] {
                shared[place] = !matches!(base_of(func, place).1, Some(Op::Local {}));
            }
        });
        return shared;
    }
    for &inst in &func.regions[func.body].insts {
        let (attrs, body) = match func[inst] {
            Op::Parallel { attrs, body, .. } | Op::ParallelCells { attrs, body, .. } => {
                (attrs, body)
            }
            _ => continue,
        };
        if !attrs.serial {
            shared_in(func, cx, body, &mut shared);
        }
    }
    shared
}

/// The storage that elements and members belong to, and what makes it.
fn base_of(func: &Function, place: Value) -> (Value, Option<&Op>) {
    match func.def_op(place) {
        Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => base_of(func, base),
        op => (place, op),
    }
}

fn shared_in(
    func: &Function,
    cx: &PassCx<'_>,
    body: Region,
    shared: &mut SecondaryMap<Value, bool>,
) {
    let mut inside = SecondaryMap::new();
    defined_in(func, body, &mut inside);
    let counters = &func.regions[body].params;
    // The one list of indices through which each place of a tree is written; none if there are several.
    let mut written: LookupMap<(u32, u32), Option<Vec<Value>>> = LookupMap::default();
    let mut atomics = Vec::new();
    walk(func, body, &mut |func, inst| {
        let place = match func[inst] {
            Op::Store { place, .. } | Op::Cas { place, .. } => place,
            Op::Atomic { place, .. } => {
                atomics.push(place);
                place
            }
            _ => return,
        };
        if let (_, Some(Op::FieldAt { field, indices })) = base_of(func, place) {
            let data = &cx.env.fields[*field];
            for node in &data.places {
                let key = (data.tree.as_u32(), node.as_u32());
                let same = written
                    .get(&key)
                    .is_none_or(|w| w.as_ref() == Some(indices));
                written.insert(key, same.then(|| indices.clone()));
            }
        }
        if let (_, Some(Op::ArrayAt { array, indices })) = base_of(func, place) {
            let key = array_key(*array);
            let same = written
                .get(&key)
                .is_none_or(|w| w.as_ref() == Some(indices));
            written.insert(key, same.then(|| indices.clone()));
        }
    });
    for place in atomics {
        shared[place] = match base_of(func, place) {
            (base, Some(Op::Local {})) => !inside[base],
            (_, Some(Op::FieldAt { field, indices })) => {
                let data = &cx.env.fields[*field];
                let unique = counters.iter().all(|c| indices.contains(c));
                let alone = data.places.iter().all(|n| {
                    matches!(
                        written.get(&(data.tree.as_u32(), n.as_u32())),
                        Some(Some(_))
                    )
                });
                !(unique && alone)
            }
            (_, Some(Op::ArrayAt { array, indices })) => {
                let unique = counters.iter().all(|c| indices.contains(c));
                let alone = matches!(written.get(&array_key(*array)), Some(Some(_)));
                // Arrays may be the same array under two names.
                !(unique && alone && is_apart(func, cx.env, *array))
            }
            _ => true,
        };
    }
}

/// An array among the places of trees.
fn array_key(array: Arg) -> (u32, u32) {
    (u32::MAX, array.as_u32())
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    const HEAD: &str = "tree0 { dense i:4 { place x: f32 } }\nfield @x: f32 = tree0 [S2]\n";

    #[test]
    fn own_element() {
        check_pass!("demote_atomics", &format!("{HEAD}
            kernel @k() {{
                v0: f32 = const 1.0
                parallel_cells @x (v1: i32) {{
                    v2: ref<f32> = field_at @x, [v1]
                    v3: f32 = atomic_add v2, v0
                    yield []
                }}
                yield []
            }}"), @"
            kernel @k() {
                v0: f32 = const 1.0
                parallel_cells @x (v1: i32) {
                    v2: ref<f32> = field_at @x, [v1]
                    v3: f32 = load v2
                    v4: f32 = add v3, v0
                    store v2, v4
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn neighbour_is_shared() {
        check_pass!("demote_atomics", &format!("{HEAD}
            kernel @k() {{
                v0: f32 = const 1.0
                v1: i32 = const 0
                v2: i32 = const 3
                v3: i32 = const 1
                parallel [v1], [v2] (v4: i32) {{
                    v5: ref<f32> = field_at @x, [v4]
                    v6: f32 = atomic_add v5, v0
                    v7: i32 = add v4, v3
                    v8: ref<f32> = field_at @x, [v7]
                    v9: f32 = atomic_add v8, v0
                    yield []
                }}
                yield []
            }}"), @"
            kernel @k() {
                v0: f32 = const 1.0
                v1: i32 = const 0
                v2: i32 = const 3
                v3: i32 = const 1
                parallel [v1], [v2] (v4: i32) {
                    v5: ref<f32> = field_at @x, [v4]
                    v6: f32 = atomic_add v5, v0
                    v7: i32 = add v4, v3
                    v8: ref<f32> = field_at @x, [v7]
                    v9: f32 = atomic_add v8, v0
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn locals_inside_and_outside() {
        check_pass!("demote_atomics", "
            kernel @k() {
                v0: i32 = const 1
                v1: ref<i32> = local
                v2: i32 = atomic_max v1, v0
                parallel [v0], [v0] (v3: i32) {
                    v4: ref<i32> = local
                    v5: i32 = atomic_add v4, v3
                    v6: i32 = atomic_add v1, v5
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 1
                v1: ref<i32> = local
                v2: i32 = atomic_max v1, v0
                parallel [v0], [v0] (v3: i32) {
                    v4: ref<i32> = local
                    v5: i32 = load v4
                    v6: i32 = add v5, v3
                    store v4, v6
                    v7: i32 = atomic_add v1, v5
                    yield []
                }
                yield []
            }
            ");
    }
}
