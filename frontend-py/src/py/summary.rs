//! The reads and writes of a kernel, and their memory in a launch.

use std::collections::BTreeSet;
use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::{Asked, Differentiated, Moment, Untracked, asked_by};
use aerogel_ir::analysis::Interval;
use aerogel_ir::analysis::access::{Change, change};
use aerogel_ir::analysis::boxes::{
    Access, Launched, Limit, Storage, accessed_anywhere, accesses, boxes_of, written,
};
use aerogel_ir::analysis::cleared::cleared;
use aerogel_ir::{
    Arg, CellOp, Derivative, FieldId, Function, Module, Op, ParamType, Type, Value, walk,
};
use aerogel_snode::NodeId;
use pyo3::prelude::*;

use super::argument::{ArrayArg, Packed};
use super::foreign::copies::Copied;
use super::snapshot::{Boxed, IndexBox, Memory};
use super::snode::TreeStore;

/// What a kernel accesses, and what is needed to say where that lies.
pub(crate) struct Summary {
    pub(super) accesses: Vec<Access>,
    /// The storages that it overwrites as a whole before reading any element.
    pub(super) cleared: Vec<Storage>,
    pub(super) untracked: Untracked,
    /// The nodes whose activity it queries, each with the number of its tree.
    pub(super) asked: Vec<(usize, NodeId, Moment)>,
    /// The fields to which it stores, and does not only empty their cells.
    pub(super) stored: BTreeSet<FieldId>,
    /// The nodes whose cells it makes inactive, each with the number of its tree.
    pub(super) deactivated: Vec<(usize, NodeId)>,
    pub(super) fields: Vec<FieldSummary>,
    pub(super) params: Vec<ParamType>,
    /// Whether it draws random numbers.
    pub(super) is_random: bool,
}

pub(super) struct FieldSummary {
    pub(super) name: String,
    pub(super) has_gradient: bool,
    pub(super) tree: usize,
    pub(super) places: Vec<NodeId>,
    pub(super) offset: Vec<i32>,
    pub(super) ty: Option<ScalarType>,
}

impl Summary {
    /// What the kernel of a module writes, and what its gradient reads: early, if it must find that as it was before.
    pub(crate) fn of_gradient(done: &Differentiated) -> Self {
        let env = &done.module.env;
        let mut accesses = written(env, &done.primal);
        let places = done.needed.iter().map(|needed| needed.place);
        let boxes = boxes_of(env, &done.primal, places);
        for (access, needed) in boxes.into_iter().zip(&done.needed) {
            accesses.extend(access.map(|access| Access {
                is_early: needed.at == Moment::Start,
                ..access
            }));
        }
        for func in &done.called {
            accesses.extend(accessed_anywhere(env, func).map(|access| Access {
                is_early: false,
                ..access
            }));
        }
        Self {
            accesses,
            untracked: done.untracked.clone(),
            asked: done.asked.iter().map(numbered).collect(),
            stored: stored(std::iter::once(&done.primal).chain(&done.called)),
            deactivated: std::iter::once(&done.primal)
                .chain(&done.called)
                .flat_map(deactivated_in)
                .collect(),
            ..Self::new(&done.module)
        }
    }

    /// Counts what holds derivatives of what is accessed as accessed as well.
    pub(crate) fn add_derivatives(&mut self, module: &Module, kind: Derivative) {
        let params = module.kernel().map_or(&[][..], |kernel| &kernel.params);
        let beside = |storage| match storage {
            Storage::Field(id) => module.env.fields[id].derivative(kind).map(Storage::Field),
            Storage::Array(arg) => {
                let at = params.iter().position(|p| p.of == Some((kind, arg)));
                at.map(|k| Storage::Array(Arg::from_u32(k as u32)))
            }
        };
        let own = self.accesses.iter();
        let more: Vec<Access> = own
            .filter_map(|access| {
                let storage = beside(access.storage)?;
                Some(Access {
                    storage,
                    ..access.clone()
                })
            })
            .collect();
        self.accesses.extend(more);
    }

    /// The accesses of the kernel of a module.
    pub(crate) fn new(module: &Module) -> Self {
        let fields = module.env.fields.values().map(|field| FieldSummary {
            name: field.name.clone(),
            has_gradient: field.grad.is_some(),
            tree: field.tree.as_u32() as usize,
            places: field.places.clone(),
            offset: field.offset.clone(),
            ty: field.elem.elem(),
        });
        let params = module.kernel().map_or(&[][..], |kernel| &kernel.params);
        Self {
            accesses: accesses(module),
            cleared: cleared(module),
            untracked: Untracked::default(),
            asked: asked(module),
            stored: stored(module.funcs.values()),
            deactivated: deactivated(module),
            fields: fields.collect(),
            params: params.iter().map(|param| param.ty).collect(),
            is_random: module.funcs.values().any(draws),
        }
    }
}

/// Whether a function draws random numbers.
fn draws(func: &Function) -> bool {
    let mut found = false;
    walk(func, func.body, &mut |func, inst| {
        found |= matches!(func[inst], Op::Random {} | Op::RandomState { .. });
    });
    found
}

fn stored<'f>(funcs: impl Iterator<Item = &'f Function>) -> BTreeSet<FieldId> {
    let mut fields = BTreeSet::new();
    for func in funcs {
        walk(func, func.body, &mut |func, inst| {
            if let Change::Storages(places) = change(&func[inst]) {
                fields.extend(places.iter().filter_map(|&place| field_of(func, place)));
            }
        });
    }
    fields
}

fn field_of(func: &Function, place: Value) -> Option<FieldId> {
    match func.def_op(place)? {
        &Op::FieldAt { field, .. } => Some(field),
        &Op::ElemRef { base, .. } | &Op::MemberRef { base, .. } => field_of(func, base),
        _ => None,
    }
}

fn numbered(asked: &Asked) -> (usize, NodeId, Moment) {
    (asked.node.tree.as_u32() as usize, asked.node.node, asked.at)
}

fn asked(module: &Module) -> Vec<(usize, NodeId, Moment)> {
    let funcs = module.funcs.values();
    let all = funcs.flat_map(|func| asked_by(func, &module.env));
    all.map(|asked| numbered(&asked)).collect()
}

fn deactivated(module: &Module) -> Vec<(usize, NodeId)> {
    let funcs = module.funcs.values();
    funcs.flat_map(deactivated_in).collect()
}

fn deactivated_in(func: &Function) -> Vec<(usize, NodeId)> {
    let mut found = Vec::new();
    walk(func, func.body, &mut |func, inst| {
        if let Op::Cell(CellOp::Deactivate { node, .. }) = &func[inst] {
            found.push((node.tree.as_u32() as usize, node.node));
        }
    });
    found
}

/// The arguments of a launch, by the numbers of the parameters.
pub(super) struct Given<'p> {
    params: Vec<Param<'p>>,
}

enum Param<'p> {
    Number(Option<i64>),
    Array(Passed<'p>, Option<ScalarType>),
}

/// An array argument.
#[derive(Clone, Copy)]
pub(super) struct Passed<'p> {
    pub(super) name: &'p str,
    array: &'p ArrayArg,
    shape: &'p [usize],
    cell_bytes: usize,
    /// The user's array, if `array` is a copy of it.
    copied: Option<&'p Copied>,
}

impl Passed<'_> {
    /// Where the user's array lies.
    pub(super) fn memory(&self) -> PyResult<Memory> {
        Ok(Memory::Array(match self.copied {
            Some(copied) => copied.array.footprint().range().start,
            None => self.array.buffer()?.addresses().start,
        }))
    }

    /// Whether kernels get a copy.
    pub(super) fn is_copy(&self) -> bool {
        self.copied.is_some()
    }
}

impl<'p> Given<'p> {
    pub(super) fn new(types: &[ParamType], packed: impl Iterator<Item = &'p Packed>) -> Self {
        let mut slots = Vec::new();
        let mut arrays = Vec::new();
        for packed in packed {
            match packed {
                Packed::Slots(own) => slots.extend_from_slice(own),
                Packed::Array {
                    name,
                    array,
                    shape,
                    cell_bytes,
                    copied,
                    ..
                } => arrays.push(Passed {
                    name,
                    array,
                    shape,
                    cell_bytes: *cell_bytes,
                    copied: copied.as_deref(),
                }),
            }
        }
        let (mut slots, mut arrays) = (slots.into_iter(), arrays.into_iter());
        let mut params = Vec::new();
        for ty in types {
            match ty {
                ParamType::Value(Type::Scalar(ty)) => {
                    let slot = slots.next().filter(|_| ty.is_int());
                    let number = slot.map(|slot| Scalar::from_slot(*ty, slot).as_i128());
                    params.push(Param::Number(number.and_then(|n| i64::try_from(n).ok())));
                }
                ParamType::Value(ty) => {
                    for _ in 0..ty.n_elems() {
                        slots.next();
                    }
                    params.push(Param::Number(None));
                }
                ParamType::Array { elem, .. } => {
                    if let Some(passed) = arrays.next() {
                        params.push(Param::Array(passed, elem.elem()));
                    }
                }
            }
        }
        Self { params }
    }

    fn param(&self, arg: Arg) -> Option<&Param<'p>> {
        self.params.get(arg.as_u32() as usize)
    }

    /// The array that an argument is.
    pub(super) fn array(&self, arg: Arg) -> Option<Passed<'p>> {
        match self.param(arg)? {
            Param::Array(passed, _) => Some(*passed),
            Param::Number(_) => None,
        }
    }
}

impl Launched for Given<'_> {
    fn arg(&self, arg: Arg) -> Option<i64> {
        match self.param(arg)? {
            Param::Number(number) => *number,
            Param::Array(..) => None,
        }
    }

    fn extent(&self, array: Arg, axis: u32) -> Option<i64> {
        match self.param(array)? {
            Param::Array(passed, _) => passed.shape.get(axis as usize).map(|&n| n as i64),
            Param::Number(_) => None,
        }
    }
}

/// A box of a launch, where it lies.
pub(super) struct Placed {
    pub(super) memories: Vec<Memory>,
    pub(super) ranges: IndexBox,
    /// All indices of the field or array.
    pub(super) whole: IndexBox,
    pub(super) is_early: bool,
    pub(super) at: At,
}

#[derive(Clone, Copy)]
pub(super) enum At {
    Field(usize),
    Array(Arg),
}

impl Summary {
    /// Where the box of an access lies in a launch; nowhere if it is empty.
    pub(super) fn place(
        &self,
        access: &Access,
        given: &Given<'_>,
        stores: &[Option<Arc<TreeStore>>],
    ) -> PyResult<Option<Placed>> {
        let (memories, shape, offset, at) = match access.storage {
            Storage::Field(id) => {
                let at = id.as_u32() as usize;
                let field = &self.fields[at];
                let Some(store) = &stores[field.tree] else {
                    return Ok(None);
                };
                let places = field.places.iter();
                let memories = places.map(|&p| Memory::Place(store.key, p)).collect();
                let shape = store.tree.shape(field.places[0]);
                (memories, shape, &field.offset[..], At::Field(at))
            }
            Storage::Array(arg) => {
                let Some(passed) = given.array(arg) else {
                    return Ok(None);
                };
                let shape = passed.shape.iter().map(|&n| n as u64).collect();
                (vec![passed.memory()?], shape, &[][..], At::Array(arg))
            }
        };
        let mut ranges = IndexBox::new();
        for (axis, &extent) in shape.iter().enumerate() {
            let interval = access.indices.get(axis).and_then(Option::as_ref);
            let first = offset.get(axis).copied().map_or(0, i64::from);
            let (lo, hi) = clipped(interval, given, first, extent);
            if lo >= hi {
                return Ok(None);
            }
            ranges.push((lo, hi));
        }
        Ok(Some(Placed {
            memories,
            ranges,
            whole: shape.iter().map(|&n| (0, n)).collect(),
            is_early: access.is_early,
            at,
        }))
    }

    /// A box of a launch, to be saved.
    pub(super) fn boxed(
        &self,
        at: At,
        given: &Given<'_>,
        stores: &[Option<Arc<TreeStore>>],
        ranges: IndexBox,
        py: Python<'_>,
    ) -> Option<Boxed> {
        match at {
            At::Field(at) => {
                let field = &self.fields[at];
                let store = stores[field.tree].clone();
                store
                    .zip(field.ty)
                    .map(|(store, ty)| Boxed::Field(store, field.places.clone(), ty, ranges))
            }
            At::Array(arg) => match given.param(arg) {
                Some(Param::Array(passed, Some(ty))) => {
                    let item = ty.bytes() as usize;
                    let (array, shape) = (passed.array.held(py), passed.shape.to_vec());
                    Some(Boxed::Array(array, shape, passed.cell_bytes, item, ranges))
                }
                _ => None,
            },
        }
    }
}

/// The in-bounds indices along an axis, counted from zero.
fn clipped(
    interval: Option<&Interval<Limit>>,
    given: &Given<'_>,
    first: i64,
    extent: u64,
) -> (u64, u64) {
    let Some((lo, hi)) = interval.and_then(|interval| interval.evaluate(given)) else {
        return (0, extent);
    };
    let inside = |at: i64| (at - first).clamp(0, extent as i64) as u64;
    (inside(lo), inside(hi))
}
