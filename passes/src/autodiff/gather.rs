//! Scattered adjoints as gathers.
//!
//! What a stencil reads at constant distances, its reversal adds to at the same distances: threads would meet. Turned
//! around, each element fetches what the iterations that read it have for it:
//!
//! ```text
//! parallel [lo], [hi] (i) {                       parallel [lo - 1], [hi + 1] (j) {
//!     d = y.grad[i]                                   if lo <= j + 1 < hi { sum += y.grad[j + 1] }
//!     atomic_add x.grad[i - 1], d         ==>         if lo <= j - 1 < hi { sum += y.grad[j - 1] }
//!     atomic_add x.grad[i + 1], d                     x.grad[j] += sum
//!     y.grad[i] = 0                               }
//! }                                               parallel [lo], [hi] (i) { y.grad[i] = 0 }
//! ```
//! (Hückelheim et al., PerforAD, ICPP 2019.) The reversal of an iteration is computed once for each distance, so this is
//! done where it is short; and only where nothing that it reads is written meanwhile.

use aerogel_base::Scalar;
use aerogel_ir::analysis::access::classes;
use aerogel_ir::analysis::affine::{counted_from_narrow, differ};
use aerogel_ir::{
    AtomicOp, BinaryOp, CompareOp, Function, Inst, LoopAttrs, Op, Region, Type, UnaryOp, Value,
    walk,
};

use super::reverse::Reverse;
use super::rules::is_scalar_op;
use super::storage::Memory;

/// The longest reversal that is computed for each distance, in additions: about what an atomic one takes.
const LONGEST: u32 = 40;

/// Loads of one field or array that differ by constant distances.
pub(super) struct Group {
    /// A place of it, without a component.
    base: Value,
    /// What each axis counts from.
    axes: Vec<Axis>,
    /// Which loads read at each distance.
    distances: Vec<Distance>,
}

/// What an index counts from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    /// A counter of the loop.
    Counter(usize),
    /// What is the same in all iterations, and how far from there.
    Fixed(Value, i64),
}

struct Distance {
    /// By counter.
    by: Vec<i64>,
    loads: Vec<Inst>,
}

/// Something that an iteration does with memory.
struct Touch {
    inst: Inst,
    place: Value,
    /// The branches it stands in, outermost first.
    path: Vec<(Inst, Region)>,
}

impl Group {
    /// Whether an instruction is one of its loads.
    pub(super) fn holds(&self, inst: Inst) -> bool {
        self.distances.iter().any(|d| d.loads.contains(&inst))
    }
}

impl Reverse<'_, '_> {
    /// The groups of loads in a parallel loop whose adjoints are gathered.
    pub(super) fn gathers(&self, inst: Inst) -> Vec<Group> {
        let func = self.cx.func;
        let Op::Parallel { body, attrs, .. } = &func[inst] else {
            return Vec::new();
        };
        if attrs.serial
            || !self.cx.replayed.is_empty()
            || self.length(*body) > LONGEST
            || self.must_run_once(*body)
            || self.passes_on(*body)
        {
            return Vec::new();
        }
        let mut groups: Vec<Group> = Vec::new();
        for &load in &func.regions[*body].insts {
            let Op::Load { place } = func[load] else {
                continue;
            };
            let active = self.cx.activity.is_active(func.insts[load].results[0]);
            if !active || !self.cx.memory(place).has_derivatives() {
                continue;
            }
            self.note(&mut groups, *body, load, place);
        }
        groups.retain(|group| group.distances.len() > 1 && self.is_free(*body, group));
        groups
    }

    /// Whether an iteration must be reversed once and no more: adjoints depend on what other iterations have, or what is
    /// called writes.
    fn must_run_once(&self, body: Region) -> bool {
        let mut found = false;
        walk(self.cx.func, body, &mut |func, inst| {
            found |= matches!(func[inst], Op::Call { .. });
            if let Op::Atomic { op, place, .. } = func[inst] {
                found |= !matches!(op, AtomicOp::Add | AtomicOp::Sub) && self.cx.has_adjoint(place);
            }
        });
        found
    }

    /// Whether an iteration writes an element and then overwrites or reads it: what it wrote first has another adjoint
    /// than the element when the loop's reversal begins.
    fn passes_on(&self, body: Region) -> bool {
        let mut touches = Vec::new();
        self.touches(body, &mut Vec::new(), &mut touches);
        touches.iter().enumerate().any(|(k, later)| {
            let replaces = !matches!(self.cx.func[later.inst], Op::Atomic { .. });
            replaces
                && touches[..k]
                    .iter()
                    .any(|first| self.is_write(first.inst) && self.may_meet(first, later))
        })
    }

    fn is_write(&self, inst: Inst) -> bool {
        !matches!(self.cx.func[inst], Op::Load { .. })
    }

    /// What an iteration does with memory that has adjoints, in order.
    fn touches(&self, region: Region, path: &mut Vec<(Inst, Region)>, found: &mut Vec<Touch>) {
        let func = self.cx.func;
        for &inst in &func.regions[region].insts {
            if let Op::Load { place } | Op::Store { place, .. } | Op::Atomic { place, .. } =
                func[inst]
                && self.cx.memory(place).has_derivatives()
                && self.demand.works(inst)
            {
                found.push(Touch {
                    inst,
                    place,
                    path: path.clone(),
                });
            }
            for owned in func.owned(inst) {
                path.push((inst, owned));
                self.touches(owned, path, found);
                path.pop();
            }
        }
    }

    /// Whether two touches of one iteration may be of the same element.
    fn may_meet(&self, a: &Touch, b: &Touch) -> bool {
        let (func, env) = (self.cx.func, self.cx.env);
        let is_either_or = a
            .path
            .iter()
            .zip(&b.path)
            .any(|((owner, branch), (other, sibling))| owner == other && branch != sibling);
        let own = classes(func, env, a.place);
        let is_shared = classes(func, env, b.place).iter().any(|c| own.contains(c));
        let pairs = indices(func, whole(func, a.place))
            .iter()
            .zip(indices(func, whole(func, b.place)))
            .chain(
                component(func, a.place)
                    .iter()
                    .zip(component(func, b.place)),
            );
        let is_apart = pairs
            .into_iter()
            .any(|(&a, &b)| differ(func, a, b, |_| true));
        is_shared && !is_either_or && !is_apart
    }

    /// What the reversal of an iteration costs, in additions.
    fn length(&self, body: Region) -> u32 {
        let mut sum = 0_u32;
        walk(self.cx.func, body, &mut |func, inst| {
            let results = &func.insts[inst].results;
            let needed = results.iter().any(|&r| self.demand.value(r).any());
            if !needed && !self.demand.works(inst) {
                return;
            }
            sum += match &func[inst] {
                Op::For { .. } | Op::While { .. } => LONGEST + 1,
                Op::Binary {
                    op: BinaryOp::Div | BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Mod,
                    ..
                } => 8,
                Op::Unary {
                    op: UnaryOp::Neg | UnaryOp::Abs,
                    ..
                } => 1,
                Op::Unary { .. } => 12,
                op if is_scalar_op(func, op, results) => 1,
                Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => 2,
                _ => 0,
            };
        });
        sum
    }

    /// Adds a load to the group it belongs to, if its indices are counters at constant distances.
    fn note(&self, groups: &mut Vec<Group>, body: Region, load: Inst, place: Value) {
        let func = self.cx.func;
        let base = whole(func, place);
        if matches!(self.cx.memory(place), Memory::Field(_, Some(field)) if self.is_sparse(field)) {
            return;
        }
        let counters = &func.regions[body].params;
        let mut axes = Vec::new();
        let mut by = vec![None; counters.len()];
        for &index in indices(func, base) {
            let (from, distance) = counted_from_narrow(func, index);
            if func.ty(index) != func.ty(from) {
                return;
            }
            match counters.iter().position(|&c| c == from) {
                Some(k) if by[k].is_none() => {
                    by[k] = Some(distance);
                    axes.push(Axis::Counter(k));
                }
                None if self.is_outside(from, body) => axes.push(Axis::Fixed(from, distance)),
                _ => return,
            }
        }
        let Some(by) = by.into_iter().collect::<Option<Vec<i64>>>() else {
            return;
        };
        let same = |group: &&mut Group| {
            let of = |v: Value| match func.def_op(v) {
                Some(&Op::FieldAt { field, .. }) => Some((Some(field), None)),
                Some(&Op::ArrayAt { array, .. }) => Some((None, Some(array))),
                _ => None,
            };
            of(group.base) == of(base) && group.axes == axes
        };
        let group = match groups.iter_mut().find(same) {
            Some(group) => group,
            None => {
                groups.push(Group {
                    base,
                    axes,
                    distances: Vec::new(),
                });
                groups.last_mut().expect("it was just made")
            }
        };
        match group.distances.iter_mut().find(|d| d.by == by) {
            Some(distance) => distance.loads.push(load),
            None => group.distances.push(Distance {
                by,
                loads: vec![load],
            }),
        }
    }

    fn is_sparse(&self, field: aerogel_ir::FieldId) -> bool {
        self.cx.env.is_sparse(field)
    }

    fn is_outside(&self, value: Value, body: Region) -> bool {
        let home = self.cx.nesting.region_of(value);
        home == self.cx.func.body && home != body
    }

    /// Whether the adjoints that a loop's reversal reads are apart from those of the group.
    fn is_free(&self, body: Region, group: &Group) -> bool {
        let (func, env) = (self.cx.func, self.cx.env);
        let own = classes(func, env, group.base);
        let mut free = true;
        walk(func, body, &mut |func, inst| {
            let (Op::Store { place, .. } | Op::Atomic { place, .. }) = &func[inst] else {
                return;
            };
            if !self.cx.memory(*place).has_derivatives() {
                return;
            }
            let base = whole(func, *place);
            if !classes(func, env, base).iter().any(|c| own.contains(c)) {
                return;
            }
            let pairs = indices(func, base).iter().zip(indices(func, group.base));
            free &= pairs
                .into_iter()
                .any(|(&a, &b)| differ(func, a, b, |v| self.is_outside(v, body)));
        });
        free
    }

    /// Writes the loop in which each element of a group fetches its adjoint.
    pub(super) fn gather(&mut self, inst: Inst, group: &Group) {
        let func = self.cx.func;
        let Op::Parallel {
            lo,
            hi,
            attrs,
            body,
        } = func[inst].clone()
        else {
            unreachable!("groups are found in parallel loops")
        };
        let counters = func.regions[body].params.clone();
        let types: Vec<Type> = counters.iter().map(|&c| func.ty(c)).collect();
        let lo: Vec<Value> = lo.iter().map(|&v| self.now(v)).collect();
        let hi: Vec<Value> = hi.iter().map(|&v| self.now(v)).collect();
        let reach = |k: usize| {
            let by = group.distances.iter().map(|d| d.by[k]);
            (by.clone().min().unwrap_or(0), by.max().unwrap_or(0))
        };
        let mut wide_lo = Vec::new();
        let mut wide_hi = Vec::new();
        for k in 0..counters.len() {
            let (least, most) = reach(k);
            let (first, end) = (self.moved(lo[k], least), self.moved(hi[k], most));
            // Without iterations there are no elements either.
            let any = self.b.compare(CompareOp::Lt, lo[k], hi[k]);
            wide_lo.push(first);
            wide_hi.push(self.b.select(any, end, first));
        }
        self.parallel += 1;
        let gathering = self.inside(&types, |pass, at| {
            let mut sums: Vec<(Value, Value)> = Vec::new();
            for distance in &group.distances {
                let mut cond = None;
                let mut then = Vec::new();
                for (k, &j) in at.iter().enumerate() {
                    let i = pass.moved(j, -distance.by[k]);
                    if reach(k) != (0, 0) {
                        let above = pass.b.compare(CompareOp::Ge, i, lo[k]);
                        let below = pass.b.compare(CompareOp::Lt, i, hi[k]);
                        let inside = pass.b.binary(BinaryOp::And, above, below);
                        cond = Some(match cond {
                            None => inside,
                            Some(so_far) => pass.b.binary(BinaryOp::And, so_far, inside),
                        });
                    }
                    then.push(i);
                }
                for &load in &distance.loads {
                    let Op::Load { place } = func[load] else {
                        unreachable!("it is a load")
                    };
                    if pass.sum_of(&sums, place).is_none() {
                        let ty = func.ty(place).pointee().expect("a storage");
                        sums.push((place, pass.b.local(ty)));
                    }
                }
                let fetched = pass.inside(&[], |pass, _| {
                    pass.set(&counters, &then);
                    let wanted = distance.loads.iter().map(|&load| {
                        let Op::Load { place } = func[load] else {
                            unreachable!("it is a load")
                        };
                        (load, pass.sum_of(&sums, place).expect("each has a sum"))
                    });
                    pass.fetching = Some(wanted.collect());
                    pass.reversed(body, &[]);
                    pass.fetching = None;
                });
                let cond = match cond {
                    Some(cond) => cond,
                    None => pass.b.constant(Scalar::bool(true)),
                };
                let otherwise = pass.b.region(&[], |_, _| ());
                pass.b.effect(Op::If {
                    cond,
                    then: fetched,
                    otherwise,
                });
            }
            // As if the element were read by the iteration of its own number.
            for (place, sum) in sums {
                let at_place = pass.element(group, place, at);
                let sum = pass.b.load(sum);
                pass.atomic_add(at_place, sum);
            }
        });
        self.parallel -= 1;
        self.b.effect(Op::Parallel {
            lo: wide_lo,
            hi: wide_hi,
            attrs: LoopAttrs {
                fast_math: attrs.fast_math,
                ..LoopAttrs::default()
            },
            body: gathering,
        });
    }

    /// The sum for the component that a place names.
    fn sum_of(&self, sums: &[(Value, Value)], place: Value) -> Option<Value> {
        let component = |v: Value| match self.cx.func.def_op(v) {
            Some(Op::ElemRef { index, .. }) => {
                let all = index.iter().map(|&i| self.cx.func.as_const(i));
                Some(all.collect::<Vec<_>>())
            }
            _ => None,
        };
        let mut all = sums.iter();
        all.find(|(of, _)| component(*of) == component(place))
            .map(|(_, sum)| *sum)
    }

    /// The place of the adjoints of the element with these counters.
    fn element(&mut self, group: &Group, place: Value, at: &[Value]) -> Value {
        let func = self.cx.func;
        let mut index = Vec::new();
        for &axis in &group.axes {
            index.push(match axis {
                Axis::Counter(k) => at[k],
                Axis::Fixed(from, by) => {
                    let from = self.now(from);
                    self.moved(from, by)
                }
            });
        }
        let ty = func.ty(group.base);
        let base = match (func.def_op(group.base), self.cx.memory(group.base)) {
            (Some(Op::FieldAt { .. }), Memory::Field(_, Some(field))) => self.b.value(
                Op::FieldAt {
                    field,
                    indices: index,
                },
                ty,
            ),
            (Some(Op::ArrayAt { .. }), Memory::Array(_, Some(array))) => self.b.value(
                Op::ArrayAt {
                    array,
                    indices: index,
                },
                ty,
            ),
            _ => unreachable!("groups are of memory with adjoints"),
        };
        match func.def_op(place) {
            Some(Op::ElemRef { index, .. }) => {
                let constants: Vec<Scalar> = index
                    .iter()
                    .map(|&i| {
                        func.as_const(i)
                            .expect("components of fields are constants")
                    })
                    .collect();
                let index = constants.into_iter().map(|c| self.b.constant(c)).collect();
                let ty = func.ty(place);
                self.b.value(Op::ElemRef { base, index }, ty)
            }
            _ => base,
        }
    }

    /// A counter so much further on.
    fn moved(&mut self, counter: Value, by: i64) -> Value {
        if by == 0 {
            return counter;
        }
        let ty = self.b.func.elem(counter);
        let by = self.b.constant(Scalar::int(ty, i128::from(by)));
        self.b.binary(BinaryOp::Add, counter, by)
    }
}

/// The place without a component.
fn whole(func: &Function, place: Value) -> Value {
    match func.def_op(place) {
        Some(&Op::ElemRef { base, .. }) => whole(func, base),
        _ => place,
    }
}

fn indices(func: &Function, place: Value) -> &[Value] {
    match func.def_op(place) {
        Some(Op::FieldAt { indices, .. } | Op::ArrayAt { indices, .. }) => indices,
        _ => &[],
    }
}

fn component(func: &Function, place: Value) -> &[Value] {
    match func.def_op(place) {
        Some(Op::ElemRef { index, .. }) => index,
        _ => &[],
    }
}
