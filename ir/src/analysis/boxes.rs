//! Which elements of fields and arrays a kernel reads and writes, as boxes of indices.
//!
//! `x[t + 1, i] = x[t, i] * 2` in a loop over `i` from 0 to `n` reads `[t, t + 1) x [0, n)` and writes
//! `[t + 1, t + 2) x [0, n)`. The limits are expressions in the kernel's scalar arguments and the shapes of its arrays,
//! which a launch evaluates. An index of which nothing is known stands for its whole axis.

use std::rc::Rc;
use std::sync::Arc;

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;

use crate::analysis::access::{Change, change};
use crate::analysis::interval::{End, Interval, combine};
use crate::{Arg, BinaryOp, Env, FieldId, Function, Inst, Module, Op, Region, Type, Value, walk};

/// A storage of elements: a field or an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// A field.
    Field(FieldId),
    /// An array argument.
    Array(Arg),
}

/// The kind of access to elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// They are read.
    Read,
    /// They are overwritten, or changed by something that does not read them.
    Write,
}

/// A number that is known when a kernel is launched.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A constant.
    Const(i64),
    /// A scalar argument.
    Arg(Arg),
    /// The size of an array argument along an axis.
    Extent(Arg, u32),
    /// The result of an operation on two others.
    Binary(BinaryOp, Arc<Limit>, Arc<Limit>),
}

/// The numbers of a launch: arguments and shapes.
pub trait Launched {
    /// The value of a scalar argument.
    fn arg(&self, arg: Arg) -> Option<i64>;
    /// The size of an axis of an array argument.
    fn extent(&self, array: Arg, axis: u32) -> Option<i64>;
}

impl Limit {
    /// The number in a launch; none if it does not fit.
    pub fn evaluate(&self, launch: &dyn Launched) -> Option<i64> {
        match self {
            Self::Const(value) => Some(*value),
            Self::Arg(arg) => launch.arg(*arg),
            Self::Extent(array, axis) => launch.extent(*array, *axis),
            Self::Binary(op, a, b) => in_launch(*op, a.evaluate(launch)?, b.evaluate(launch)?),
        }
    }

    fn plus(&self, by: i64) -> Option<Limit> {
        match (self, by) {
            (_, 0) => Some(self.clone()),
            _ => Self::binary(BinaryOp::Add, self, &Self::Const(by)),
        }
    }
}

impl End for Limit {
    fn number(value: i128) -> Option<Self> {
        i64::try_from(value).ok().map(Self::Const)
    }

    fn known(&self) -> Option<i128> {
        match self {
            Self::Const(value) => Some((*value).into()),
            _ => None,
        }
    }

    fn binary(op: BinaryOp, a: &Self, b: &Self) -> Option<Self> {
        Some(match (a, b) {
            (Self::Const(a), Self::Const(b)) => Self::Const(in_launch(op, *a, *b)?),
            _ if a == b && matches!(op, BinaryOp::Min | BinaryOp::Max) => a.clone(),
            _ => Self::Binary(op, Arc::new(a.clone()), Arc::new(b.clone())),
        })
    }
}

/// Arithmetic of numbers of a launch.
fn in_launch(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    i64::try_from(combine(op, a.into(), b.into())?).ok()
}

impl Interval<Limit> {
    /// The numbers in a launch: the first, and the one after the last. None if nothing is known of them.
    pub fn evaluate(&self, launch: &dyn Launched) -> Option<(i64, i64)> {
        let (lo, hi) = (self.lo.evaluate(launch)?, self.hi.evaluate(launch)?);
        // An index beyond its type has wrapped in the kernel.
        let fits = |n: i64| i32::try_from(n).is_ok();
        (fits(lo) && fits(hi)).then_some((lo, hi + 1))
    }
}

/// The operation with a constant on the right that does the same without bits, if there is one.
fn plain(op: BinaryOp, ty: ScalarType, constant: i64) -> (BinaryOp, Interval<Limit>) {
    let power = |count: i64| 1i64.checked_shl(u32::try_from(count).ok()?);
    let (op, constant) = match op {
        BinaryOp::Shl => power(constant).map_or((op, constant), |p| (BinaryOp::Mul, p)),
        BinaryOp::Shr if ty.is_signed() => {
            power(constant).map_or((op, constant), |p| (BinaryOp::FloorDiv, p))
        }
        // The low bits of an integer are its remainder.
        BinaryOp::And if (1..i64::MAX).contains(&constant) && (constant & (constant + 1)) == 0 => {
            (BinaryOp::Mod, constant + 1)
        }
        _ => (op, constant),
    };
    (op, Interval::point(Limit::Const(constant)))
}

/// A box of elements that a kernel reads or writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The storage of the elements.
    pub storage: Storage,
    /// The kind of access.
    pub kind: AccessKind,
    /// The indices along each axis, with the field's offset; none stands for all.
    pub indices: Vec<Option<Interval<Limit>>>,
    /// Of a read: whether nothing has overwritten the storage where it stands, so that it may see what was there before
    /// the kernel began.
    pub is_early: bool,
}

/// How many separate boxes of one storage are stored; more are merged.
const MOST_BOXES: usize = 16;

/// All elements that a module's kernel reads and writes, with the functions that it calls.
pub fn accesses(module: &Module) -> Vec<Access> {
    let mut all = Vec::new();
    let Some(kernel) = module.kernel() else {
        return all;
    };
    let mut walker = Walker::new(&module.env, kernel);
    walker.region(kernel.body);
    all.append(&mut walker.found);
    if walker.calls {
        let functions = module.funcs.values().filter(|func| !func.is_kernel);
        functions.for_each(|func| all.extend(accessed_anywhere(&module.env, func)));
    }
    joined(all)
}

/// The elements that each of some places of a kernel names, as if it were read; none for what is no element.
pub fn boxes_of(
    env: &Env,
    kernel: &Function,
    places: impl Iterator<Item = Value>,
) -> Vec<Option<Access>> {
    let mut walker = Walker::new(env, kernel);
    walker.region(kernel.body);
    let named = places.map(|place| {
        walker.found.clear();
        walker.access(place, AccessKind::Read);
        walker.found.pop()
    });
    named.collect()
}

/// The elements that a kernel writes, not counting the functions that it calls.
pub fn written(env: &Env, kernel: &Function) -> Vec<Access> {
    let mut walker = Walker::new(env, kernel);
    walker.region(kernel.body);
    walker
        .found
        .retain(|access| access.kind == AccessKind::Write);
    joined(walker.found)
}

/// The accesses of a function that a kernel calls: any elements, where a read may come before any write.
pub fn accessed_anywhere(env: &Env, func: &Function) -> impl Iterator<Item = Access> {
    let mut walker = Walker::new(env, func);
    walker.region(func.body);
    walker.found.into_iter().map(|access| Access {
        indices: access.indices.iter().map(|_| None).collect(),
        is_early: true,
        ..access
    })
}

/// The same boxes, each once, and not too many of one storage.
fn joined(all: Vec<Access>) -> Vec<Access> {
    let mut out: Vec<Access> = Vec::new();
    let mut count: LookupMap<(Storage, AccessKind), usize> = LookupMap::default();
    for access in all {
        let same = |other: &&mut Access| {
            other.storage == access.storage
                && other.kind == access.kind
                && other.indices == access.indices
        };
        if let Some(other) = out.iter_mut().find(same) {
            other.is_early |= access.is_early;
            continue;
        }
        let key = (access.storage, access.kind);
        let n = count.get(&key).copied().unwrap_or(0);
        if n < MOST_BOXES {
            count.insert(key, n + 1);
            out.push(access);
            continue;
        }
        let last = out
            .iter_mut()
            .rfind(|other| (other.storage, other.kind) == key);
        let last = last.expect("some have been counted");
        last.is_early |= access.is_early;
        for (mine, other) in last.indices.iter_mut().zip(&access.indices) {
            *mine = mine
                .as_ref()
                .zip(other.as_ref())
                .and_then(|(a, b)| a.joined(b));
        }
    }
    out
}

/// A walk through a function in the order of its text.
struct Walker<'a> {
    env: &'a Env,
    func: &'a Function,
    /// The known intervals of integers.
    known: LookupMap<Value, Rc<Interval<Limit>>>,
    /// The storages that have one store, and what that stored, where it has been seen in this region or one around it.
    stored_once: LookupMap<Value, Option<Rc<Interval<Limit>>>>,
    written: Vec<Storage>,
    found: Vec<Access>,
    calls: bool,
}

impl<'a> Walker<'a> {
    fn new(env: &'a Env, func: &'a Function) -> Self {
        Self {
            env,
            func,
            known: LookupMap::default(),
            stored_once: stored_once(func),
            written: Vec::new(),
            found: Vec::new(),
            calls: false,
        }
    }

    fn region(&mut self, region: Region) {
        let mut stored = Vec::new();
        for &inst in &self.func.regions[region].insts {
            self.inst(inst, &mut stored);
        }
        // What was stored in here need not have been stored for those behind.
        for place in stored {
            self.stored_once.insert(place, None);
        }
    }

    fn inst(&mut self, inst: Inst, stored: &mut Vec<Value>) {
        let op = &self.func[inst];
        if let Some(interval) = self.interval_of(inst, op) {
            let result = self.func.insts[inst].results[0];
            self.known.insert(result, Rc::new(interval));
        }
        self.accesses_of(inst, op);
        if let Op::Store { place, value } = op
            && self.stored_once.get(place).is_some()
        {
            let interval = self.known.get(value).cloned();
            self.stored_once.insert(*place, interval);
            stored.push(*place);
        }
        self.count(op);
        op.regions(|region| self.region(region));
    }

    /// Notes the limits of the counters of a loop.
    fn count(&mut self, op: &Op) {
        match op {
            Op::Parallel { lo, hi, body, .. } => {
                let params = self.func.regions[*body].params.clone();
                for ((lo, hi), counter) in lo.iter().zip(hi).zip(params) {
                    self.counter(counter, *lo, *hi, 1);
                }
            }
            Op::For {
                lo, hi, step, body, ..
            } => {
                let counter = self.func.regions[*body].params[0];
                if let Some(step) = self.func.as_const(*step) {
                    self.counter(counter, *lo, *hi, step.as_i128().signum() as i64);
                }
            }
            Op::ParallelCells { node, body, .. } => {
                let shape = self.env.trees[node.tree].shape(node.node);
                let params = self.func.regions[*body].params.clone();
                for (counter, extent) in params.into_iter().zip(shape) {
                    if let Some(interval) = Interval::below(extent.into()) {
                        self.known.insert(counter, Rc::new(interval));
                    }
                }
            }
            _ => {}
        }
    }

    fn counter(&mut self, counter: Value, lo: Value, hi: Value, direction: i64) {
        let (Some(from), Some(to)) = (self.known.get(&lo), self.known.get(&hi)) else {
            return;
        };
        let interval = match direction {
            1 => to.hi.plus(-1).map(|hi| Interval {
                lo: from.lo.clone(),
                hi,
            }),
            -1 => to.lo.plus(1).map(|lo| Interval {
                lo,
                hi: from.hi.clone(),
            }),
            _ => None,
        };
        if let Some(interval) = interval {
            self.known.insert(counter, Rc::new(interval));
        }
    }

    /// The interval of an integer that an instruction computes.
    fn interval_of(&self, inst: Inst, op: &Op) -> Option<Interval<Limit>> {
        let &[result] = &self.func.insts[inst].results[..] else {
            return None;
        };
        let Type::Scalar(ty) = self.func.ty(result) else {
            return None;
        };
        if !ty.is_int() || ty == ScalarType::U1 {
            return None;
        }
        let known = |value: &Value| self.known.get(value).map(|interval| (**interval).clone());
        match op {
            Op::Const { value } => {
                let value = i64::try_from(value.as_i128()).ok()?;
                Some(Interval::point(Limit::Const(value)))
            }
            Op::Arg { arg } if self.func.is_kernel => Some(Interval::point(Limit::Arg(*arg))),
            Op::ArrayShape { array, axis } => Some(Interval::point(Limit::Extent(*array, *axis))),
            Op::Cast { x } => known(x).filter(|_| ty.is_signed() || self.func.elem(*x) == ty),
            Op::Binary { op, lhs, rhs } => {
                let (op, rhs) = match self.func.as_const(*rhs) {
                    Some(constant) => plain(*op, ty, i64::try_from(constant.as_i128()).ok()?),
                    None => (*op, known(rhs)?),
                };
                Interval::binary(op, &known(lhs)?, &rhs)
            }
            Op::Select {
                on_true, on_false, ..
            } => known(on_true)?.joined(&known(on_false)?),
            Op::Load { place } => {
                let stored = self.stored_once.get(place)?.as_ref()?;
                Some((**stored).clone())
            }
            _ => None,
        }
    }

    /// Notes which elements an instruction reads and writes.
    fn accesses_of(&mut self, inst: Inst, op: &Op) {
        match op {
            Op::Load { place } | Op::Prefetch { place } => self.access(*place, AccessKind::Read),
            Op::Store { place, .. } => self.access(*place, AccessKind::Write),
            Op::Atomic { op, place, .. } => {
                let adds = matches!(op, crate::AtomicOp::Add | crate::AtomicOp::Sub);
                if !adds || self.is_used(inst) {
                    self.access(*place, AccessKind::Read);
                }
                self.access(*place, AccessKind::Write);
            }
            Op::Call { .. } => self.calls = true,
            op => match change(op) {
                Change::Nothing | Change::Anything => {}
                Change::Storages(places) => {
                    for &place in places {
                        self.access(place, AccessKind::Read);
                        self.access(place, AccessKind::Write);
                    }
                }
                Change::Below(node) => {
                    let tree = &self.env.trees[node.tree];
                    let below = tree.subtree(node.node);
                    for (id, field) in self.env.fields.iter() {
                        let is_below = field.tree == node.tree
                            && field.places.iter().any(|place| below.contains(place));
                        if is_below {
                            let n = tree.shape(field.places[0]).len();
                            self.note(Storage::Field(id), AccessKind::Write, vec![None; n]);
                        }
                    }
                }
            },
        }
    }

    fn is_used(&self, inst: Inst) -> bool {
        let results = &self.func.insts[inst].results;
        let mut used = false;
        walk(self.func, self.func.body, &mut |func, other| {
            func[other].operands(|value| used |= results.contains(&value));
        });
        used
    }

    fn access(&mut self, place: Value, kind: AccessKind) {
        let (storage, indices) = match self.func.def_op(place) {
            Some(Op::FieldAt { field, indices }) => (Storage::Field(*field), indices),
            Some(Op::ArrayAt { array, indices }) => (Storage::Array(*array), indices),
            Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => {
                return self.access(base, kind);
            }
            _ => return,
        };
        let known = |value: &Value| self.known.get(value).map(|interval| (**interval).clone());
        let indices = indices.iter().map(known).collect();
        self.note(storage, kind, indices);
    }

    fn note(&mut self, storage: Storage, kind: AccessKind, indices: Vec<Option<Interval<Limit>>>) {
        let is_early = kind == AccessKind::Read && !self.written.contains(&storage);
        if kind == AccessKind::Write && !self.written.contains(&storage) {
            self.written.push(storage);
        }
        self.found.push(Access {
            storage,
            kind,
            indices,
            is_early,
        });
    }
}

/// The locals that one instruction stores to, and no other changes.
fn stored_once(func: &Function) -> LookupMap<Value, Option<Rc<Interval<Limit>>>> {
    let mut stores: LookupMap<Value, usize> = LookupMap::default();
    walk(func, func.body, &mut |func, inst| {
        let op = &func[inst];
        let plain = |value: Value| matches!(op, Op::Store { place, .. } | Op::Load { place } if *place == value);
        op.operands(|value| {
            if let Some(Op::Local {}) = func.def_op(value) {
                let n = match op {
                    Op::Load { .. } => 0,
                    Op::Store { value: stored, .. } if plain(value) && *stored != value => 1,
                    _ => 2,
                };
                let before = stores.get(&value).copied().unwrap_or(0);
                stores.insert(value, before + n);
            }
        });
    });
    let mut once = LookupMap::default();
    for (value, _) in func.values.iter() {
        if stores.get(&value) == Some(&1) {
            once.insert(value, None);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_module;

    /// A launch whose scalar arguments are 3 and 10, and whose arrays have 8 elements along each axis.
    struct Example;

    impl Launched for Example {
        fn arg(&self, arg: Arg) -> Option<i64> {
            [3, 10].get(arg.as_u32() as usize).copied()
        }

        fn extent(&self, _: Arg, _: u32) -> Option<i64> {
            Some(8)
        }
    }

    /// The boxes of a kernel that begins with `v0 = t`, `v1 = n` and `v2 = 1`.
    fn boxes(body: &str) -> Vec<String> {
        let text = format!(
            "tree0 {{ dense i:64 j:64 {{ place x: f32 }} }}
            field @x: f32 = tree0 [S2]
            kernel @k(t: i32, n: i32, a: array<f32, 1>) {{
                v0: i32 = arg a0
                v1: i32 = arg a1
                v2: i32 = const 1
                {body}
                return []
            }}"
        );
        let module = parse_module(&text).expect("the text is right");
        let mut out = Vec::new();
        for access in accesses(&module) {
            let axes = access.indices.iter().map(|axis| {
                let found = axis.as_ref().and_then(|axis| axis.evaluate(&Example));
                found.map_or("all".to_owned(), |(lo, hi)| format!("{lo}..{hi}"))
            });
            let axes: Vec<String> = axes.collect();
            let early = if access.is_early { " early" } else { "" };
            let axes = axes.join(" ");
            out.push(format!(
                "{:?} {:?} {axes}{early}",
                access.storage, access.kind
            ));
        }
        out
    }

    #[test]
    fn one_step_from_another() {
        let found = boxes(
            "
            v3: i32 = add v0, v2
            v4: i32 = const 0
            parallel [v4], [v1] (v5: i32) {
                v6: ref<f32> = field_at @x, [v0, v5]
                v7: f32 = load v6
                v8: ref<f32> = field_at @x, [v3, v5]
                store v8, v7
                yield []
            }",
        );
        assert_eq!(
            found,
            [
                "Field(field0) Read 3..4 0..10 early",
                "Field(field0) Write 4..5 0..10",
            ]
        );
    }

    #[test]
    fn arithmetic_of_counters() {
        let found = boxes(
            "
            v3: i32 = const 0
            v4: i32 = const -2
            v5: i32 = const 4
            parallel [v3], [v1] (v6: i32) {
                v7: i32 = mul v4, v6
                v8: i32 = floordiv v6, v5
                v9: ref<f32> = field_at @x, [v7, v8]
                v10: f32 = load v9
                v20: i32 = const 3
                v11: i32 = and v7, v20
                v12: i32 = min v6, v5
                v13: ref<f32> = field_at @x, [v11, v12]
                store v13, v10
                v14: i32 = array_shape a2, 0
                v15: i32 = sub v14, v2
                v16: i32 = sub v15, v6
                v17: ref<f32> = array_at a2, [v16]
                v18: f32 = load v17
                v19: f32 = atomic_add v17, v18
                yield []
            }",
        );
        assert_eq!(
            found,
            [
                "Field(field0) Read -18..1 0..3 early",
                "Field(field0) Write 0..4 0..5",
                "Array(a2) Read -2..8 early",
                "Array(a2) Write -2..8",
            ]
        );
    }

    #[test]
    fn variables() {
        let found = boxes(
            "
            v3: ref<i32> = local
            v4: ref<i32> = local
            v5: i32 = const 0
            for v5, v1, v2, [] (v6: i32) {
                store v3, v6
                v7: i32 = load v3
                store v4, v7
                v8: i32 = load v4
                v9: ref<f32> = field_at @x, [v7, v8]
                store v4, v0
                v10: f32 = const 1.0
                v14: f32 = atomic_add v9, v10
                yield []
            }
            v11: i32 = load v3
            v12: ref<f32> = field_at @x, [v0, v11]
            v13: f32 = load v12",
        );
        assert_eq!(
            found,
            [
                "Field(field0) Write 0..10 all",
                "Field(field0) Read 3..4 all",
            ]
        );
    }
}
