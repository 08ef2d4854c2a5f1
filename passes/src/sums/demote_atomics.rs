//! Atomics that need not be atomic become load, arithmetic and store.
//!
//! ```text
//! parallel [..], [..] (i: i32) {            v1 = field_at @x, [i]
//!     v1 = field_at @x, [i]                 v2 = load v1
//!     v2 = atomic_add v1, v0       ==>      v3 = add v2, v0
//! }                                         store v1, v3
//! ```
//! That holds for storage of the iteration's own: locals made inside the loop, serial code, and elements of a field that
//! no other iteration writes. An element belongs to its iteration if each index of the loop (or an injective linear
//! function of it) stands at a position where all writes to the field have the same: `x[i, j] = 0` and
//! `x[i, k] += 1` in a parallel loop over `i` touch rows of their own.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::access::{Change, Class, calls, change, classes, defined_in};
use aerogel_ir::analysis::affine::{Linear, before_widening, differ, linear};
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

/// The same for those whose old value is used.
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
        let (attrs, body, spans) = match func[inst] {
            Op::Parallel {
                attrs,
                body,
                ref lo,
                ref hi,
            } => {
                let ends = lo.iter().zip(hi);
                let spans = ends.map(|(&lo, &hi)| span(func, lo, hi)).collect();
                (attrs, body, spans)
            }
            // Indices of cells are not negative.
            Op::ParallelCells { attrs, body, .. } => {
                (attrs, body, vec![1 << 31; func.regions[body].params.len()])
            }
            _ => continue,
        };
        if !attrs.serial {
            shared_in(func, cx, body, &spans, &mut shared);
        }
    }
    shared
}

/// An upper bound for the differences between values of a counter.
fn span(func: &Function, lo: Value, hi: Value) -> i128 {
    let end = |v| func.as_const(v).map(|c| c.as_i128());
    let bits = func.elem(lo).bits();
    match (end(lo), end(hi)) {
        (Some(lo), Some(hi)) => hi.saturating_sub(lo),
        (Some(0..), None) => 1 << (bits - 1),
        _ => 1 << bits,
    }
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
    spans: &[i128],
    shared: &mut SecondaryMap<Value, bool>,
) {
    let mut inside = SecondaryMap::new();
    defined_in(func, body, &mut inside);
    let counters = func.regions[body].params.iter().zip(spans);
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
                let own = |class: &Class| {
                    // Arrays may be the same array under two names.
                    *class != Class::Arrays && {
                        let all = written.get(class).into_iter().flatten();
                        let others: Vec<_> = all
                            .filter(|w| !w.is_apart(&naming, func, &inside))
                            .collect();
                        counters.clone().all(|(&counter, &span)| {
                            naming.tells(counter, span, func, &inside, &others)
                        })
                    }
                };
                calls || !classes(func, cx.env, base).iter().all(own)
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

    /// Whether elements of this naming and the others are different where a counter has different values: an index is one
    /// function of the counter in all namings, and that function has no value twice.
    fn tells(
        &self,
        counter: Value,
        span: i128,
        func: &Function,
        inside: &SecondaryMap<Value, bool>,
        others: &[&Self],
    ) -> bool {
        let mut args = Vec::new();
        (0..self.indices.len()).any(|at| {
            let mut index = |naming: &Self| naming.linear(at, func, &mut args);
            let own = index(self);
            let is_fixed = |v: Value| !inside[v] || is_of_launch(func, v);
            let fixed = own.terms.iter().all(|&(v, _)| v == counter || is_fixed(v));
            // A factor is lost modulo the size of an index as far as it is a power of two.
            let lost = own.factor(counter).trailing_zeros();
            let bits = func.elem(counter).bits();
            let is_injective = lost < bits && span <= 1 << (bits - lost);
            let offset = |naming: &Self| naming.offset.get(at).copied().unwrap_or(0);
            fixed
                && is_injective
                && others
                    .iter()
                    .all(|w| at < w.indices.len() && offset(w) == offset(self) && index(w) == own)
        })
    }

    /// An index as a linear function; one value stands for all of the same argument, which is added to `args`.
    fn linear(&self, at: usize, func: &Function, args: &mut Vec<Value>) -> Linear {
        linear(func, self.indices[at], &mut |leaf| {
            if !is_of_launch(func, leaf) {
                return leaf;
            }
            let same = args.iter().find(|&&v| func.def_op(v) == func.def_op(leaf));
            same.copied().unwrap_or_else(|| {
                args.push(leaf);
                leaf
            })
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

/// Whether a value is the same throughout a launch.
fn is_of_launch(func: &Function, value: Value) -> bool {
    matches!(
        func.def_op(value),
        Some(Op::Arg { .. } | Op::ArrayShape { .. })
    )
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
                v12: f32 = load v11
                v13: f32 = add v12, v0
                store v11, v13
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

    /// A kernel whose iterations run over the rows of a field, clear them and add to them.
    fn rows(first: &str, second: &str) -> String {
        let text = format!(
            "tree0 {{ dense i:8 {{ dense j:8 {{ place x: f32 }} }} }}
            field @x: f32 = tree0 [S3]
            field @y: f32 = tree0 [S3] offset [1, 0]
            kernel @k(n: i32) {{
                f0: f32 = const 0.0
                f1: f32 = const 1.0
                k0: i32 = const 0
                k1: i32 = const 1
                k2: i32 = const 2
                k4: i32 = const 4
                parallel [k1], [k4] (i: i32) {{
                    n: i32 = arg a0
                    for k0, k4, k1, [] (j: i32) {{
                        {first}
                        store p, f0
                        yield []
                    }}
                    for k0, k4, k1, [] (k: i32) {{
                        m: i32 = arg a0
                        {second}
                        old: f32 = atomic_add q, f1
                        yield []
                    }}
                    yield []
                }}
                yield []
            }}"
        );
        crate::testing::after(&["demote_atomics"], &text, aerogel_ir::FastMath::Off)
    }

    #[test]
    fn rows_of_iterations() {
        let own = [
            (
                "p: ref<f32> = field_at @x, [i, j]",
                "q: ref<f32> = field_at @x, [i, k]",
            ),
            (
                "p: ref<f32> = field_at @x, [j, i]",
                "q: ref<f32> = field_at @x, [k, i]",
            ),
            // Linear functions of the index, however they are written.
            (
                "a: i32 = mul i, k2  b: i32 = sub a, k1  p: ref<f32> = field_at @x, [b, j]",
                "a: i32 = add i, i  b: i32 = sub k1, k2  c: i32 = add b, a
                q: ref<f32> = field_at @x, [c, k]",
            ),
            (
                "a: i32 = sub n, i  p: ref<f32> = field_at @x, [a, j]",
                "a: i64 = cast i  b: i64 = cast m  c: i64 = sub b, a  q: ref<f32> = field_at @x, [c, k]",
            ),
        ];
        for (first, second) in own {
            let text = rows(first, second);
            assert!(!text.contains("atomic_add"), "{text}");
        }
        let shared = [
            // Another row, the same row by another index, and an index that an iteration chooses.
            (
                "a: i32 = add i, k1  p: ref<f32> = field_at @x, [a, j]",
                "q: ref<f32> = field_at @x, [i, k]",
            ),
            (
                "p: ref<f32> = field_at @x, [j, i]",
                "q: ref<f32> = field_at @x, [i, k]",
            ),
            (
                "p: ref<f32> = field_at @x, [j, j]",
                "q: ref<f32> = field_at @x, [i, k]",
            ),
            (
                "a: i32 = add i, j  p: ref<f32> = field_at @x, [a, j]",
                "a: i32 = add i, k  q: ref<f32> = field_at @x, [a, k]",
            ),
            // One iteration after the other, but not all.
            (
                "a: i32 = shr i, k1  p: ref<f32> = field_at @x, [a, j]",
                "a: i32 = shr i, k1  q: ref<f32> = field_at @x, [a, k]",
            ),
            (
                "a: i32 = sub i, i  p: ref<f32> = field_at @x, [a, j]",
                "a: i32 = sub i, i  q: ref<f32> = field_at @x, [a, k]",
            ),
            // The same place under another name.
            (
                "p: ref<f32> = field_at @y, [i, j]",
                "q: ref<f32> = field_at @x, [i, k]",
            ),
        ];
        for (first, second) in shared {
            let text = rows(first, second);
            assert!(text.contains("atomic_add"), "{text}");
        }
    }

    #[test]
    fn all_counters_tell_elements_apart() {
        check_pass!("demote_atomics", "
            tree0 { dense i:4 j:4 k:4 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            kernel @k() {
                v0: f32 = const 1.0
                v1: i32 = const 0
                v2: i32 = const 3
                v3: i32 = const 1
                parallel [v1, v1], [v2, v2] (v4: i32, v5: i32) {
                    v6: ref<f32> = field_at @x, [v5, v3, v4]
                    store v6, v0
                    for v1, v2, v3, [] (v7: i32) {
                        v8: ref<f32> = field_at @x, [v5, v7, v4]
                        v9: f32 = atomic_add v8, v0
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
        kernel @k() {
            v0: f32 = const 1.0
            v1: i32 = const 0
            v2: i32 = const 3
            v3: i32 = const 1
            parallel [v1, v1], [v2, v2] (v4: i32, v5: i32) {
                v6: ref<f32> = field_at @x, [v5, v3, v4]
                store v6, v0
                for v1, v2, v3, [] (v7: i32) {
                    v8: ref<f32> = field_at @x, [v5, v7, v4]
                    v9: f32 = load v8
                    v10: f32 = add v9, v0
                    store v8, v10
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
    }

    #[test]
    fn factors_may_wrap() {
        // 2^31 twice is 0: two iterations may have one row.
        let text = |lo: &str| {
            let text = format!(
                "tree0 {{ dense i:4 j:4 {{ place x: f32 }} }}
                field @x: f32 = tree0 [S2]
                kernel @k(n: i32) {{
                    v0: f32 = const 1.0
                    v1: i32 = const {lo}
                    v2: i32 = arg a0
                    v3: i32 = const 2
                    v4: i32 = const 1
                    parallel [v1], [v2] (v5: i32) {{
                        v6: i32 = mul v5, v3
                        v7: ref<f32> = field_at @x, [v6, v4]
                        v8: f32 = atomic_add v7, v0
                        yield []
                    }}
                    yield []
                }}"
            );
            let (before, _) = text.split_once("parallel").expect("a loop");
            assert!(before.contains("const"));
            let mut module = aerogel_ir::parse_module(&text).expect("it parses");
            let func = module.funcs.keys().next().expect("a kernel");
            let env = module.env.clone();
            let funcs = Default::default();
            let cx = crate::PassCx {
                env: &env,
                funcs: &funcs,
                lengths: &Default::default(),
                exchanged: &Default::default(),
                options: Default::default(),
            };
            super::run(&mut module.funcs[func], &cx)
        };
        assert!(text("0"));
        assert!(!text("-1"));
    }
}
