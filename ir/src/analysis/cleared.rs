//! Fields and arrays that a kernel overwrites as a whole before it reads any of them, as a grid that is emptied first.

use super::access::{Change, Class, change, classes, constant_element, touched};
use super::affine::counted_from_narrow;
use super::boxes::Storage;
use crate::{Env, FieldId, Function, Inst, Module, NodeRef, Op, Region, Value, walk};

/// The storages that the kernel of a module overwrites as a whole before it reads any element.
pub fn cleared(module: &Module) -> Vec<Storage> {
    let Some(func) = module.kernel() else {
        return Vec::new();
    };
    let env = &module.env;
    let (mut found, mut seen) = (Vec::new(), Vec::new());
    for &inst in &func.regions[func.body].insts {
        let read = read_in(func, env, inst);
        let Some(read) = read else {
            // A function may read anything.
            break;
        };
        seen.extend(read);
        if let Op::Parallel { body, .. } | Op::ParallelCells { body, .. } = &func[inst] {
            let all = overwritten(func, env, inst, *body).into_iter();
            let new = all.filter(|(_, classes)| !classes.iter().any(|class| seen.contains(class)));
            found.extend(new.map(|(storage, _)| storage));
        }
    }
    found
}

/// The reads of an instruction and of nested ones; `None` for calls, whose reads are unknown.
fn read_in(func: &Function, env: &Env, inst: Inst) -> Option<Vec<Class>> {
    let (mut read, mut is_known) = (Vec::new(), true);
    let mut look = |func: &Function, inst: Inst| {
        let op = &func[inst];
        is_known &= !matches!(change(op), Change::Anything);
        if !matches!(op, Op::Store { .. }) {
            read.extend(
                touched(op)
                    .iter()
                    .flat_map(|&place| classes(func, env, place)),
            );
        }
    };
    look(func, inst);
    for owned in func.owned(inst) {
        walk(func, owned, &mut look);
    }
    is_known.then_some(read)
}

/// The fields and arrays of which a loop overwrites every element, with their classes.
fn overwritten(func: &Function, env: &Env, inst: Inst, body: Region) -> Vec<(Storage, Vec<Class>)> {
    let mut all: Vec<(Storage, Vec<Option<usize>>)> = Vec::new();
    for &inner in &func.regions[body].insts {
        let Op::Store { place, .. } = func[inner] else {
            continue;
        };
        let (whole, component) = match func.def_op(place) {
            Some(Op::ElemRef { base, index }) => (*base, constant_element(func, *base, index)),
            _ => (place, None),
        };
        let is_component = whole != place;
        let Some(storage) = named(func, env, inst, whole) else {
            continue;
        };
        if is_component && component.is_none() {
            continue;
        }
        match all.iter_mut().find(|(other, _)| *other == storage) {
            Some((_, components)) => components.push(component),
            None => all.push((storage, vec![component])),
        }
    }
    all.retain(|(storage, components)| {
        let n = match *storage {
            Storage::Field(field) => env.fields[field].places.len(),
            Storage::Array(_) => usize::MAX,
        };
        components.contains(&None) || (0..n.min(1 << 10)).all(|k| components.contains(&Some(k)))
    });
    let classes = |(storage, _)| {
        let classes = match storage {
            Storage::Field(field) => {
                let data = &env.fields[field];
                let nodes = data.places.iter();
                let class = |&node| {
                    Class::Place(NodeRef {
                        tree: data.tree,
                        node,
                    })
                };
                nodes.map(class).collect()
            }
            Storage::Array(array) => vec![Class::Array(array), Class::Arrays],
        };
        (storage, classes)
    };
    all.into_iter().map(classes).collect()
}

/// What a place belongs to, if the iterations of a loop name all of its elements.
fn named(func: &Function, env: &Env, inst: Inst, place: Value) -> Option<Storage> {
    match func.def_op(place)? {
        Op::FieldAt { field, indices } => {
            is_whole_field(func, env, inst, *field, indices).then_some(Storage::Field(*field))
        }
        Op::ArrayAt { array, indices } => {
            let Op::Parallel { lo, hi, body, .. } = &func[inst] else {
                return None;
            };
            let counters = &func.regions[*body].params;
            let is_whole = |(axis, &index): (usize, &Value)| {
                let Some(k) = counters.iter().position(|&counter| counter == index) else {
                    return false;
                };
                let begins = func.as_const(lo[k]).is_some_and(|c| c.as_i128() == 0);
                let extent = Op::ArrayShape {
                    array: *array,
                    axis: axis as u32,
                };
                begins && func.def_op(hi[k]) == Some(&extent)
            };
            let all = indices.iter().enumerate().all(is_whole);
            (all && are_apart(indices)).then_some(Storage::Array(*array))
        }
        _ => None,
    }
}

fn are_apart(indices: &[Value]) -> bool {
    let mut rest = indices;
    while let [first, others @ ..] = rest {
        if others.contains(first) {
            return false;
        }
        rest = others;
    }
    true
}

fn is_whole_field(
    func: &Function,
    env: &Env,
    inst: Inst,
    field: FieldId,
    indices: &[Value],
) -> bool {
    let data = &env.fields[field];
    let tree = &env.trees[data.tree];
    if data.places.iter().any(|&place| tree.is_below_sparse(place)) {
        return false;
    }
    let shape = tree.shape(data.places[0]);
    let counted: Vec<(Value, i64)> = indices
        .iter()
        .map(|&index| counted_from_narrow(func, index))
        .collect();
    let bases: Vec<Value> = counted.iter().map(|(base, _)| *base).collect();
    let offset = |axis: usize| data.offset.get(axis).copied().map_or(0, i64::from);
    let mut axes = shape.iter().zip(&counted).enumerate();
    let is_whole = match &func[inst] {
        Op::Parallel { lo, hi, body, .. } => {
            let counters = &func.regions[*body].params;
            axes.all(|(axis, (&extent, &(base, by)))| {
                let Some(k) = counters.iter().position(|&counter| counter == base) else {
                    return false;
                };
                let limit = |v: Value| func.as_const(v).map(|c| c.as_i128() + i128::from(by));
                let first = i128::from(offset(axis));
                limit(lo[k]).is_some_and(|lo| lo <= first)
                    && limit(hi[k]).is_some_and(|hi| hi >= first + i128::from(extent))
            })
        }
        Op::ParallelCells { node, body, .. } => {
            let other = &env.trees[node.tree];
            let counters = &func.regions[*body].params;
            !other.is_below_sparse(node.node)
                && other.shape(node.node) == shape
                && axes.all(|(axis, (_, &(base, by)))| {
                    counters.contains(&base) && by == offset(axis)
                })
                && counters.len() == bases.len()
                // Exchanged axes may have different sizes.
                && counters.iter().zip(&bases).all(|(counter, base)| counter == base)
        }
        _ => false,
    };
    is_whole && are_apart(&bases)
}
