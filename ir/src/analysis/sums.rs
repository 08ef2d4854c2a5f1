//! Memory that the iterations of a task only accumulate to, by sums or another operation whose order does not matter.
//!
//! ```text
//! each (v0: i32) {
//!     v1: i32 = load (child S1, ..)
//!     atomic_add (child S3, ..), 1          ; S3 is only added to, one sum in each iteration
//!     v2 = atomic_add (child S4, ..), v1    ; not S4, if v2 is used
//! }
//! ```
//! A thread may gather what it adds in memory of its own, to be added later: nobody can tell. The same is true of the
//! least, the greatest, and operations on bits. "Sum" stands for all of them here.

use aerogel_base::ScalarType;
use aerogel_base::hash::{LookupMap, LookupSet};
use aerogel_snode::NodeKind;

use super::access::{Change, Class, change, classes, is_apart, touched};
use super::cost;
use crate::{AtomicOp, Env, Function, Inst, NodeOp, NodeRef, Op, Region, Type, Value, walk};

/// The memory that the iterations of a task only add to.
#[derive(Debug, Default, PartialEq)]
pub struct Sums {
    /// Places in dense nodes, and arrays that share no memory with others, in the order in which the program names
    /// them; a difference counts as a sum.
    pub classes: Vec<(Class, AtomicOp)>,
    /// How many instructions of an iteration add to them, roughly.
    pub per_iteration: f32,
}

/// The memory that the iterations of a task at stage Lowered only add to.
pub fn sums(func: &Function, env: &Env, task: Inst) -> Sums {
    let Op::Task {
        attrs,
        bounds,
        body,
        ..
    } = func[task]
    else {
        return Sums::default();
    };
    if attrs.serial {
        return Sums::default();
    }
    let mut insts = func.regions[body].insts.iter();
    let each = insts.find_map(|&inst| match func[inst] {
        Op::Each { body } => Some(body),
        _ => None,
    });
    let Some(each) = each else {
        return Sums::default();
    };
    let Some(found) = classes_of_sums(func, env, [bounds, body], each) else {
        return Sums::default();
    };
    let is_sum = |place: &Value| {
        let class = class_of(func, env, *place);
        found.iter().any(|&(of, _)| Some(of) == class)
    };
    let per_iteration = cost::expected(func, each, &|op| match op {
        Op::Atomic { place, .. } if is_sum(place) => 1.0,
        Op::AtomicAdds { places, .. } if is_sum(&places[0]) => 1.0,
        _ => 0.0,
    });
    Sums {
        classes: found,
        per_iteration,
    }
}

/// What is added to in `each`, and touched in no other way in `regions`, and how; none if that is unknown.
fn classes_of_sums(
    func: &Function,
    env: &Env,
    regions: [Region; 2],
    each: Region,
) -> Option<Vec<(Class, AtomicOp)>> {
    let uses = func.use_counts();
    let mut inside: LookupSet<Inst> = LookupSet::default();
    walk(func, each, &mut |_, inst| {
        inside.insert(inst);
    });
    let mut found = Vec::new();
    // The one operation by which a class is changed; none if it is touched in another way.
    let mut ways: LookupMap<Class, Option<AtomicOp>> = LookupMap::default();
    let mut is_known = true;
    for region in regions {
        walk(func, region, &mut |func, inst| {
            is_known &= !matches!(change(&func[inst]), Change::Anything);
            let unused = func.insts[inst].results.iter().all(|&r| uses[r] == 0);
            let sum = sum(&func[inst]).filter(|_| unused && inside.contains(&inst));
            for &place in touched(&func[inst]) {
                if matches!(func.def_op(place), Some(Op::PlaceAt { .. })) {
                    is_known = false;
                    continue;
                }
                for class in classes(func, env, place) {
                    let sum = sum.filter(|_| class_of(func, env, place) == Some(class));
                    match ways.get(&class) {
                        Some(way) if *way == sum => {}
                        Some(_) => {
                            ways.insert(class, None);
                        }
                        None => {
                            ways.insert(class, sum.filter(|_| may_sum(func, env, place, class)));
                            found.push(class);
                        }
                    }
                }
            }
        });
    }
    let sums = found.into_iter();
    let sums = sums.filter_map(|class| Some((class, (*ways.get(&class)?)?)));
    is_known.then(|| sums.collect())
}

/// How an instruction adds, if its result is not used.
fn sum(op: &Op) -> Option<AtomicOp> {
    match op {
        Op::Atomic { op, .. } => match op {
            AtomicOp::Add | AtomicOp::Sub => Some(AtomicOp::Add),
            AtomicOp::Min | AtomicOp::Max => Some(*op),
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => Some(*op),
            AtomicOp::Mul | AtomicOp::Exchange => None,
        },
        Op::AtomicAdds { .. } => Some(AtomicOp::Add),
        _ => None,
    }
}

/// The one place of a tree, or the one array, that a storage is of.
pub fn class_of(func: &Function, env: &Env, place: Value) -> Option<Class> {
    match func.def_op(place)? {
        Op::Node(NodeOp::Child { node, .. }) => Some(Class::Place(*node)),
        Op::ArrayAt { array, .. } if is_apart(func, env, *array) => Some(Class::Array(*array)),
        Op::ElemRef { base, .. } => class_of(func, env, *base),
        _ => None,
    }
}

/// Whether sums may wait: numbers that are always there and add up in their own type.
fn may_sum(func: &Function, env: &Env, place: Value, class: Class) -> bool {
    let elem = func.ty(place).pointee().and_then(Type::scalar);
    let adds_up = elem.is_some_and(|ty| ty != ScalarType::U1 && !ty.is_half());
    let is_there = match class {
        Class::Place(NodeRef { tree, node }) => {
            let tree = &env.trees[tree];
            matches!(tree[node].kind, NodeKind::Place(_)) && !tree.is_below_sparse(node)
        }
        Class::Array(_) => true,
        _ => false,
    };
    adds_up && is_there
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_module;

    /// What the task whose iterations run `body` adds to: place `S2` (i32), `S3` (f32), `S4` (f32), `S6` below a
    /// bitmasked node; `p2` and so on are their storages of an iteration,
    /// `q0` and `q1` those of arrays, `whole` a vector of one.
    fn found(body: &str) -> (String, f32) {
        let text = format!(
            "arrays_apart
            tree0 {{
                dense i:4096 {{ place a: i32, place b: f32, place c: f32 }}
                bitmasked i:4096 {{ place d: f32 }}
            }}
            kernel @k(a: array<f32, 1>, b: array<f32, 1, read>, v: array<vec<3, i16>, 2>) {{
                task range {{ lo: i32 = const 0  hi: i32 = const 99  yield [lo, hi] }} {{
                    each (i: i32) {{
                        r: cell<tree0.S0> = root tree0
                        dense: container<tree0.S1> = child tree0.S1, r
                        n: i64 = cast i
                        cell: cell<tree0.S1> = lookup tree0.S1, dense, n
                        p2: ref<i32> = child tree0.S2, cell
                        p3: ref<f32> = child tree0.S3, cell
                        p4: ref<f32> = child tree0.S4, cell
                        masked: container<tree0.S5> = child tree0.S5, r
                        maybe: cell<tree0.S5> = lookup tree0.S5, masked, n
                        p6: ref<f32> = child tree0.S6, maybe
                        q0: ref<f32> = array_at a0, [i]
                        q1: ref<f32> = array_at a1, [i]
                        whole: ref<vec<3, i16>> = array_at a2, [i, i]
                        one: i32 = const 1
                        x: f32 = const 2.0
                        {body}
                        yield []
                    }}
                    yield []
                }}
                yield []
            }}"
        );
        let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
        let kernel = module.kernel().unwrap();
        let task = kernel.regions[kernel.body].insts[0];
        let sums = sums(kernel, &module.env, task);
        let name = |class| match class {
            Class::Place(node) => node.node.to_string(),
            Class::Array(array) => array.to_string(),
            _ => unreachable!("others are not gathered in"),
        };
        let classes = sums.classes.iter();
        let classes = classes.map(|&(class, op)| format!("{} {op}", name(class)));
        (classes.collect::<Vec<_>>().join(", "), sums.per_iteration)
    }

    #[test]
    fn places_that_are_only_added_to() {
        let all =
            "o: i32 = atomic_add p2, one  s: f32 = atomic_sub p3, x  t: f32 = atomic_add p3, x";
        let all = found(all);
        assert_eq!(all, ("S2 atomic_add, S3 atomic_add".to_owned(), 3.0));
        let merged = found("atomic_adds [p3, p4], [x, x]");
        assert_eq!(merged, ("S3 atomic_add, S4 atomic_add".to_owned(), 1.0));
        let least = found("o: f32 = atomic_min p3, x  m: f32 = atomic_max p4, x");
        assert_eq!(least.0, "S3 atomic_min, S4 atomic_max");
    }

    #[test]
    fn sums_in_loops_and_branches() {
        let nested = "
            lo: i32 = const 0  hi: i32 = const 10
            for lo, hi, one, [] (j: i32) {
                c: u1 = lt j, i
                if c {
                    o: f32 = atomic_add p3, x
                    yield []
                } {
                    yield []
                }
                yield []
            }";
        assert_eq!(found(nested), ("S3 atomic_add".to_owned(), 10.0));
    }

    #[test]
    fn arrays() {
        let vector = "
            one16: i16 = cast one
            q2: ref<i16> = elem_ref whole, [one]
            y: f32 = load q1
            o: f32 = atomic_add q0, y
            z: i16 = atomic_add q2, one16";
        let all = found(vector);
        assert_eq!(all, ("a0 atomic_add, a2 atomic_add".to_owned(), 2.0));
        let read = "o: f32 = atomic_add q0, x  y: f32 = load q0";
        assert_eq!(found(read), (String::new(), 0.0));
    }

    #[test]
    fn places_that_are_touched_otherwise() {
        for body in [
            "o: f32 = atomic_add p3, x  y: f32 = load p3",
            "store p3, x  o: f32 = atomic_add p3, x",
            "o: f32 = atomic_add p3, x  y: f32 = atomic_min p3, x",
            "o: f32 = atomic_add p3, x  store p4, o",
            "o: f32 = atomic_mul p3, x",
            "o: f32 = atomic_exchange p3, x",
            "o: f32 = atomic_add p6, x",
        ] {
            assert_eq!(found(body), (String::new(), 0.0), "{body}");
        }
        let other = "o: f32 = atomic_add p3, x  y: f32 = load p4  u: f32 = atomic_add p4, y";
        assert_eq!(found(other), ("S3 atomic_add".to_owned(), 1.0));
    }
}
