//! Neighbours of a cell, read in place.
//!
//! ```text
//! .. load x[i0 + i + 1, j0 + j - 1] ..   ==>   below = i + 1 >= 8
//!                                              row = below ? after : own     i1 = below ? i - 7 : i + 1
//!                                              beside = below ? after, before : own, before
//!                                              j < 1 ? load beside[i1, j + 7] : load row[i1, j - 1]
//! ```
//! Both loads of the last line are made for every cell, so that the loop over `j` has no branches: that of
//! the one not taken lies less than a row outside its container, where memory of the tree is.

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, Builder, CompareOp, Op, Type, Value};

use super::neighbours::Field;

/// Bytes that come to a processor together.
const CACHE_LINE: i64 = 64;

/// Makes the loads of a field read from the containers of the blocks around; `coords` are the
/// iteration's own in its block.
pub(super) fn redirect(
    b: &mut Builder<'_>,
    field: &Field,
    containers: &[(Vec<i64>, Value)],
    extents: &[i64],
    coords: &[Value],
) {
    let last = extents.len() - 1;
    for (inst, off) in &field.accesses {
        let moved: Vec<Moved> = (0..=last)
            .map(|axis| Moved::new(b, coords[axis], off[axis], extents[axis]))
            .collect();
        let load = |b: &mut Builder<'_>, part: i64, at: Value| {
            let container = container(b, containers, &moved[..last], vec![], &[part]);
            let mut coords: Vec<Value> = Vec::new();
            for axis in &moved[..last] {
                coords.push(axis.wrapped(b));
            }
            coords.push(at);
            Op::Load {
                place: field.storage_in(b, container, coords),
            }
        };
        let own = load(b, 0, moved[last].coord);
        b.func.insts[*inst].op = match moved[last].beyond {
            None => own,
            Some((cond, part, coord)) => {
                let ty = Type::Scalar(field.elem);
                let on_false = b.value(own, ty);
                let other = load(b, part, coord);
                let on_true = b.value(other, ty);
                Op::Select {
                    cond,
                    on_true,
                    on_false,
                }
            }
        };
    }
}

/// Makes the loads of a field that is read at the iteration's own indices only, in blocks that are not the
/// loop's, read from the container of such a block; `index` is the number of the iteration's own cell.
pub(super) fn redirect_beside(b: &mut Builder<'_>, field: &Field, container: Value, index: Value) {
    for (inst, _) in &field.accesses {
        let place = field.storage_at(b, container, index);
        b.func.insts[*inst].op = Op::Load { place };
    }
}

/// Prefetches the elements of the neighbouring block `part` that the loop reads, all at once: otherwise
/// the loop would wait for them row by row.
pub(super) fn prefetch(
    b: &mut Builder<'_>,
    field: &Field,
    container: Value,
    extents: &[i64],
    part: &[i64],
) {
    let ranges = field.reached(extents, part);
    // Along each axis how many cells further another cache line begins.
    let mut pitch = i64::from(field.elem.bytes());
    let mut steps = Vec::new();
    for &extent in extents.iter().rev() {
        steps.push((CACHE_LINE / pitch).max(1));
        pitch *= extent;
    }
    steps.reverse();
    lines(b, &ranges, &steps, Vec::new(), &mut |b, coords| {
        let place = field.storage_in(b, container, coords);
        b.effect(Op::Prefetch { place });
    });
}

fn lines(
    b: &mut Builder<'_>,
    ranges: &[(i64, i64)],
    steps: &[i64],
    coords: Vec<Value>,
    one: &mut dyn FnMut(&mut Builder<'_>, Vec<Value>),
) {
    let (Some((&(lo, hi), ranges)), Some((&step, steps))) =
        (ranges.split_first(), steps.split_first())
    else {
        return one(b, coords);
    };
    let mut at = |b: &mut Builder<'_>, coord: Value| {
        let coords = [coords.clone(), vec![coord]].concat();
        lines(b, ranges, steps, coords, one);
    };
    let first = b.i32(lo as i32);
    if hi - lo <= step {
        return at(b, first);
    }
    let [begin, end] = [0, (hi - lo + step - 1) / step].map(|k| b.i32(k as i32));
    b.for_(begin, end, |b, k| {
        let scale = b.i32(step as i32);
        let scaled = b.binary(BinaryOp::Mul, k, scale);
        let coord = b.binary(BinaryOp::Add, scaled, first);
        at(b, coord);
    });
}

/// A coordinate of a neighbour.
pub(super) struct Moved {
    /// As the own block counts; outside it if the neighbour lies in another.
    coord: Value,
    /// Whether it does, where that block is, and the coordinate there; none if it never does.
    beyond: Option<(Value, i64, Value)>,
}

impl Moved {
    pub(super) fn new(b: &mut Builder<'_>, own: Value, off: i64, extent: i64) -> Self {
        if off == 0 {
            return Self {
                coord: own,
                beyond: None,
            };
        }
        let rhs = b.constant(Scalar::int(b.func.elem(own), off.into()));
        let coord = b.binary(BinaryOp::Add, own, rhs);
        let (op, bound) = if off < 0 {
            (CompareOp::Lt, 0)
        } else {
            (CompareOp::Ge, extent)
        };
        let bound = b.constant(Scalar::int(b.func.elem(own), bound.into()));
        let cond = b.compare(op, coord, bound);
        let back = b.constant(Scalar::int(
            b.func.elem(own),
            (off.signum() * extent).into(),
        ));
        let there = b.binary(BinaryOp::Sub, coord, back);
        Self {
            coord,
            beyond: Some((cond, off.signum(), there)),
        }
    }

    /// The coordinate in the block that the neighbour lies in.
    pub(super) fn wrapped(&self, b: &mut Builder<'_>) -> Value {
        let Some((cond, _, there)) = self.beyond else {
            return self.coord;
        };
        b.select(cond, there, self.coord)
    }
}

/// The container that a neighbour lies in, moved along the first `axes`, in the blocks at `last` along the
/// others.
pub(super) fn container(
    b: &mut Builder<'_>,
    containers: &[(Vec<i64>, Value)],
    axes: &[Moved],
    parts: Vec<i64>,
    last: &[i64],
) -> Value {
    let Some((axis, rest)) = axes.split_first() else {
        let parts = [&parts, last].concat();
        let found = containers.iter().find(|c| c.0 == parts);
        return found.expect("what loads reach was looked up").1;
    };
    let at = |b: &mut Builder<'_>, p: i64| {
        let parts = [parts.clone(), vec![p]].concat();
        container(b, containers, rest, parts, last)
    };
    let own = at(b, 0);
    match axis.beyond {
        None => own,
        Some((cond, p, _)) => {
            let other = at(b, p);
            b.select(cond, other, own)
        }
    }
}
