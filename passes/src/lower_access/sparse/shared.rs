//! Accesses around one base share the look-ups of the cells that they lie in.
//!
//! ```text
//! x[b], x[b + 1], x[b + 2]    ==>   first = find S1, b / 8
//!                                   last = find S1, (b + 2) / 8
//!                                   b % 8 + 1 >= 8 ? last : first        ; holds x[b + 1]
//! ```
//! Along an axis, elements that are at most a cell's size apart lie in two cells, so in three dimensions
//! a box of 27 elements lies in the cells of its 8 corners. If the box's corners are accessed themselves,
//! in the same region and for the same purpose, looking up these cells adds no look-up, and activates
//! nothing else.

use aerogel_base::Scalar;
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::affine::counted_from;
use aerogel_ir::{
    BinaryOp, Builder, CellOp, CompareOp, Function, Inst, NodeRef, Op, Region, Type, Value, walk,
};

use super::{Access, Target, field_of};
use crate::PassCx;

/// For an access that shares look-ups: along each axis the least and the greatest offset of the box.
pub(in super::super) type Boxes = SecondaryMap<Inst, Option<Vec<(i64, i64)>>>;

/// The accesses of one purpose around one base: to cells of a node, from certain indices on.
type Around = (NodeRef, Access, Vec<Value>);

/// They, with their offsets from the base.
type Group = Vec<(Inst, Vec<i64>)>;

/// Finds the boxes that accesses of a function make.
pub(in super::super) fn boxes(func: &Function, cx: &PassCx<'_>) -> Boxes {
    let mut boxes = SecondaryMap::new();
    in_region(func, cx, func.body, &mut boxes);
    boxes
}

fn in_region(func: &Function, cx: &PassCx<'_>, region: Region, boxes: &mut Boxes) {
    let mut groups: Vec<Group> = Vec::new();
    let mut numbers: LookupMap<Around, usize> = LookupMap::default();
    for &inst in &func.regions[region].insts {
        if let Some((around, offsets)) = access(func, cx, inst) {
            let new = groups.len();
            let number = numbers.get(&around).copied().unwrap_or(new);
            if number == new {
                numbers.insert(around, new);
                groups.push(Vec::new());
            }
            groups[number].push((inst, offsets));
        }
        let mut parts = separates(&func[inst]);
        for owned in func.owned(inst) {
            in_region(func, cx, owned, boxes);
            walk(func, owned, &mut |func, inst| {
                parts |= separates(&func[inst])
            });
        }
        if parts {
            numbers = LookupMap::default();
        }
    }
    for group in groups {
        let n_axes = group[0].1.len();
        let bounds: Vec<(i64, i64)> = (0..n_axes)
            .map(|axis| {
                let along = || group.iter().map(|(_, offsets)| offsets[axis]);
                let (lo, hi) = (along().min(), along().max());
                (lo.expect("a group has accesses"), hi.expect("as above"))
            })
            .collect();
        if has_corners(&group, &bounds) {
            for (inst, _) in &group {
                boxes[*inst] = Some(bounds.clone());
            }
        }
    }
}

/// Whether later accesses must not activate their cells earlier: activity queries would see the other order,
/// and an early exit would skip them.
fn separates(op: &Op) -> bool {
    op.may_exit()
        || matches!(
            op,
            Op::Cell(
                CellOp::Activate { .. }
                    | CellOp::Deactivate { .. }
                    | CellOp::IsActive { .. }
                    | CellOp::Append { .. }
                    | CellOp::Length { .. }
            ) | Op::Call { .. }
        )
}

/// Whether all corners of a box are among a group's accesses, and more than these.
fn has_corners(group: &Group, bounds: &[(i64, i64)]) -> bool {
    let mut offsets: Vec<&Vec<i64>> = group.iter().map(|(_, offsets)| offsets).collect();
    offsets.sort();
    offsets.dedup();
    let is_corner = |o: &&&Vec<i64>| o.iter().zip(bounds).all(|(&d, b)| d == b.0 || d == b.1);
    let n_there = offsets.iter().filter(is_corner).count();
    let n_axes = bounds.iter().filter(|(lo, hi)| lo != hi).count() as u32;
    n_there == 1 << n_axes && offsets.len() > n_there
}

/// What an instruction accesses, if that lies in cells of a sparse node.
fn access(func: &Function, cx: &PassCx<'_>, inst: Inst) -> Option<(Around, Vec<i64>)> {
    let (place, access) = match func[inst] {
        Op::Load { place } => (place, Access::Read),
        Op::Store { place, .. } | Op::Atomic { place, .. } | Op::Cas { place, .. } => {
            (place, Access::Write)
        }
        _ => return None,
    };
    let data = &cx.env.fields[field_of(func, place)?];
    let tree = &cx.env.trees[data.tree];
    let chain = tree.chain(data.places[0]);
    let node = chain.into_iter().rev().find(|&n| tree[n].kind.has_list())?;
    let node = NodeRef {
        tree: data.tree,
        node,
    };
    let mut from = place;
    while let Some(&Op::ElemRef { base, .. }) = func.def_op(from) {
        from = base;
    }
    let Some(Op::FieldAt { indices, .. }) = func.def_op(from) else {
        return None;
    };
    let mut bases = Vec::new();
    let mut offsets = Vec::new();
    for (axis, &index) in indices.iter().enumerate() {
        let (base, offset) = counted_from(func, index);
        let first = data.offset.get(axis).copied().unwrap_or(0);
        bases.push(base);
        offsets.push(offset - i64::from(first));
    }
    Some(((node, access, bases), offsets))
}

/// An axis along which an access lies between the corners of its box.
pub(super) struct Between {
    /// Which of the target's indices it is.
    pub(super) index: usize,
    /// The indices of the corners.
    pub(super) corners: [Value; 2],
    /// Whether the access lies in the further corner's cell.
    pub(super) in_last: Value,
}

/// The first axis along which the cell at a depth may be that of one corner or another. None if along
/// some axis it may be neither's: then the box's corners do not name its cell.
pub(super) fn between(
    cursor: &mut Builder<'_>,
    target: &Target<'_>,
    depth: usize,
    bounds: &[(i64, i64)],
) -> Option<Between> {
    let levels = &target.path.levels[..=depth];
    let mut first_axis = None;
    for (index, &(lo, hi)) in bounds.iter().enumerate() {
        // The size of a cell at that depth along the axis: the last divisor of the path.
        let axes = levels.iter().flat_map(|l| &l.axes);
        let Some(axis) = axes.rev().find(|a| a.index == index) else {
            continue;
        };
        let extent = axis.divisor as i64;
        let (base, offset) = counted_from(cursor.func, target.indices[index]);
        if offset <= lo || hi <= offset {
            continue;
        }
        if !axis.divisor.is_power_of_two() || hi - lo > extent {
            return None;
        }
        first_axis = first_axis.or(Some((index, extent, base, offset)));
    }
    let (index, extent, base, offset) = first_axis?;
    let (lo, hi) = bounds[index];
    let elem = cursor.func.elem(base);
    let corners = [lo, hi].map(|d| match d {
        0 => base,
        _ => offset_by(cursor, base, d),
    });
    let mask = cursor.constant(Scalar::int(elem, (extent - 1).into()));
    let op = Op::Binary {
        op: BinaryOp::And,
        lhs: corners[0],
        rhs: mask,
    };
    let first = cursor.value(op, elem.into());
    let bound = Scalar::int(elem, (extent - (offset - lo)).into());
    let op = Op::Compare {
        op: CompareOp::Ge,
        lhs: first,
        rhs: cursor.constant(bound),
    };
    let in_last = cursor.value(op, Type::BOOL);
    Some(Between {
        index,
        corners,
        in_last,
    })
}

fn offset_by(cursor: &mut Builder<'_>, base: Value, by: i64) -> Value {
    let elem = cursor.func.elem(base);
    let rhs = cursor.constant(Scalar::int(elem, by.into()));
    let op = Op::Binary {
        op: BinaryOp::Add,
        lhs: base,
        rhs,
    };
    cursor.value(op, elem.into())
}
