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
use aerogel_ir::analysis::access::{Change, Class, calls, change, classes, defined_in};
use aerogel_ir::analysis::affine::{before_widening, differ};
use aerogel_ir::{AtomicOp, Function, Inst, Op, Region, Rewrite, Value, rewrite, walk};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    demote(func, cx, &|_, _| true)
}

/// The same for locals only.
pub(crate) fn locals(func: &mut Function, cx: &PassCx<'_>) -> bool {
    demote(func, cx, &|func, inst| {
        let base = place_of(func, inst).map(|place| base_of(func, place).1);
        matches!(base, Some(Some(Op::Local {})))
    })
}

/// The same for those of which the old value matters, or is asked for.
pub(crate) fn looking_back(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut used = SecondaryMap::<Value, bool>::new();
    walk(func, func.body, &mut |func, inst| {
        func[inst].operands(|v| used[v] = true);
    });
    demote(func, cx, &|func, inst| match func[inst] {
        Op::Atomic {
            op: AtomicOp::Mul | AtomicOp::Exchange | AtomicOp::Min | AtomicOp::Max,
            ..
        } => true,
        _ => func.insts[inst].results.iter().any(|&old| used[old]),
    })
}

/// The storage that an atomic operation changes.
pub(crate) fn place_of(func: &Function, inst: Inst) -> Option<Value> {
    match func[inst] {
        Op::Atomic { place, .. } => Some(place),
        _ => None,
    }
}

/// The same for those that are wanted.
pub(crate) fn demote(
    func: &mut Function,
    cx: &PassCx<'_>,
    wanted: &dyn Fn(&Function, Inst) -> bool,
) -> bool {
    let shared = shared_places(func, cx);
    rewrite(func, |cursor, inst| {
        let Op::Atomic { op, place, value } = cursor.func[inst] else {
            return Rewrite::Keep;
        };
        if shared[place] || !wanted(cursor.func, inst) {
            return Rewrite::Keep;
        }
        let ty = cursor.func.ty(value);
        let old = cursor.value(Op::Load { place }, ty);
        let new = op.binary().map_or(value, |op| {
            cursor.value(
                Op::Binary {
                    op,
                    lhs: old,
                    rhs: value,
                },
                ty,
            )
        });
        cursor.inst(Op::Store { place, value: new }, &[]);
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
    // The ways in which each class of memory is named to be written.
    let mut written: LookupMap<Class, Vec<Naming<'_>>> = LookupMap::default();
    let mut atomics = Vec::new();
    let calls = calls(func, body);
    walk(func, body, &mut |func, inst| {
        if let Op::Atomic { place, .. } = func[inst] {
            atomics.push(place);
        }
        let Change::Storages(places) = change(&func[inst]) else {
            return;
        };
        for &place in places {
            if let Some(naming) = Naming::of(func, cx, place) {
                for class in classes(func, cx.env, base_of(func, place).0) {
                    match written.get_mut(&class) {
                        Some(namings) if namings.contains(&naming) => {}
                        Some(namings) => namings.push(naming.clone()),
                        None => drop(written.insert(class, vec![naming.clone()])),
                    }
                }
            }
        }
    });
    for place in atomics {
        let (base, op) = base_of(func, place);
        shared[place] = match Naming::of(func, cx, place) {
            Some(naming) => {
                let unique = counters.iter().all(|c| naming.indices.contains(c));
                let alone = |class: &Class| {
                    let mut others = written.get(class).into_iter().flatten();
                    // Arrays may be the same array under two names.
                    *class != Class::Arrays
                        && others.all(|w| *w == naming || w.is_apart(&naming, func, &inside))
                };
                calls || !unique || !classes(func, cx.env, base).iter().all(alone)
            }
            None => !matches!(op, Some(Op::Local {})) || !inside[base],
        };
    }
}

/// How an element of a field or an array is named: equal namings name one element, and so do
/// different ones at most if one of their indices differs.
#[derive(Clone, PartialEq)]
struct Naming<'a> {
    indices: Vec<Value>,
    /// Fields that share their places may count from different indices.
    offset: &'a [i32],
}

impl<'a> Naming<'a> {
    fn of(func: &Function, cx: &PassCx<'a>, place: Value) -> Option<Self> {
        let (indices, offset) = match base_of(func, place).1? {
            Op::FieldAt { field, indices } => (indices, &cx.env.fields[*field].offset[..]),
            Op::ArrayAt { indices, .. } => (indices, &[][..]),
            _ => return None,
        };
        Some(Self {
            indices: indices.iter().map(|&i| before_widening(func, i)).collect(),
            offset,
        })
    }

    /// Whether no element has both namings, in whatever iterations: along an axis they count differently from what
    /// is the same for all.
    fn is_apart(&self, other: &Self, func: &Function, inside: &SecondaryMap<Value, bool>) -> bool {
        self.offset == other.offset
            && self
                .indices
                .iter()
                .zip(&other.indices)
                .any(|(&a, &b)| differ(func, a, b, |v| !inside[v]))
    }
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
                parallel_cells tree0.S1 (v1: i32) {{
                    v2: ref<f32> = field_at @x, [v1]
                    v3: f32 = atomic_add v2, v0
                    yield []
                }}
                yield []
            }}"), @"
            kernel @k() {
                v0: f32 = const 1.0
                parallel_cells tree0.S1 (v1: i32) {
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
    fn steps_of_one_field_are_apart() {
        check_pass!("demote_atomics", "tree0 { dense i:4 j:4 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            kernel @k(t: i32) {
                v0: f32 = const 1.0
                v1: i32 = const 0
                v2: i32 = const 3
                v3: i32 = arg a0
                v4: i32 = const 1
                v5: i32 = sub v3, v4
                parallel [v1], [v2] (v6: i32) {
                    v7: ref<f32> = field_at @x, [v5, v6]
                    v8: f32 = atomic_add v7, v0
                    v9: i32 = add v6, v4
                    v10: ref<f32> = field_at @x, [v3, v9]
                    v11: f32 = atomic_add v10, v0
                    yield []
                }
                yield []
            }", @"
            kernel @k(t: i32) {
                v0: f32 = const 1.0
                v1: i32 = const 0
                v2: i32 = const 3
                v3: i32 = arg a0
                v4: i32 = const 1
                v5: i32 = sub v3, v4
                parallel [v1], [v2] (v6: i32) {
                    v7: ref<f32> = field_at @x, [v5, v6]
                    v8: f32 = load v7
                    v9: f32 = add v8, v0
                    store v7, v9
                    v10: i32 = add v6, v4
                    v11: ref<f32> = field_at @x, [v3, v10]
                    v12: f32 = atomic_add v11, v0
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

    #[test]
    fn one_element_under_two_names() {
        check_pass!("demote_atomics", "
            tree0 { dense i:4 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            field @y: i32 = tree0 [S2] offset [1]
            kernel @k() {
                v0: i32 = const 1
                v1: i32 = const 4
                parallel [v0], [v1] (v2: i32) {
                    v3: ref<i32> = field_at @x, [v2]
                    v4: i32 = atomic_add v3, v0
                    v5: ref<i32> = field_at @y, [v2]
                    v6: i32 = atomic_add v5, v0
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 1
                v1: i32 = const 4
                parallel [v0], [v1] (v2: i32) {
                    v3: ref<i32> = field_at @x, [v2]
                    v4: i32 = atomic_add v3, v0
                    v5: ref<i32> = field_at @y, [v2]
                    v6: i32 = atomic_add v5, v0
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn checked_indices_name_the_same() {
        check_pass!("demote_atomics", &format!("{HEAD}
            kernel @k() {{
                v0: f32 = const 1.0
                parallel_cells tree0.S1 (v1: i32) {{
                    v2: i64 = cast v1
                    v3: ref<f32> = field_at @x, [v2]
                    v4: f32 = atomic_add v3, v0
                    v5: i64 = cast v1
                    v6: ref<f32> = field_at @x, [v5]
                    v7: f32 = atomic_add v6, v0
                    yield []
                }}
                yield []
            }}"), @"
            kernel @k() {
                v0: f32 = const 1.0
                parallel_cells tree0.S1 (v1: i32) {
                    v2: i64 = cast v1
                    v3: ref<f32> = field_at @x, [v2]
                    v4: f32 = load v3
                    v5: f32 = add v4, v0
                    store v3, v5
                    v6: i64 = cast v1
                    v7: ref<f32> = field_at @x, [v6]
                    v8: f32 = load v7
                    v9: f32 = add v8, v0
                    store v7, v9
                    yield []
                }
                yield []
            }
            ");
    }
}
