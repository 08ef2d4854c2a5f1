//! Neighbours of a cell, read from a copy of its block and of the cells around it that are reached.
//!
//! ```text
//! v0 = local                                 ; 10 x 10 values
//! for each block around { copy what is reached to v0 }
//! for i in 0..8 { for j in 0..8 {
//!     .. load v0[10 i + j + 1] ..            ; x[i - 1, j]
//!     .. load v0[10 (i + 2) + j + 1] ..      ; x[i + 1, j]
//! } }
//! ```

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, Builder, Op, Value};

use super::neighbours::Field;

/// Makes the loads of a field read the copy; `coords` are the iteration's own in its block.
pub(super) fn redirect(
    b: &mut Builder<'_>,
    field: &Field,
    storage: Value,
    extents: &[i64],
    coords: &[Value],
) {
    let sizes = field.box_extents(extents);
    let own = row_major(b, coords, &sizes);
    for (inst, off) in &field.accesses {
        let shifted = off.iter().zip(&field.lo).map(|(d, lo)| d + lo);
        let constant = shifted.zip(&sizes).fold(0, |sum, (d, n)| sum * n + d);
        let place = element(b, field, storage, own, constant);
        b.func.insts[*inst].op = Op::Load { place };
    }
}

/// Copies what is reached of the block at `part`, which holds `container`.
pub(super) fn copy(
    b: &mut Builder<'_>,
    field: &Field,
    storage: Value,
    container: Value,
    extents: &[i64],
    part: &[i64],
) {
    let sizes = field.box_extents(extents);
    let ranges = field.reached(extents, part);
    let mut first = 0;
    for (axis, (&p, &e)) in part.iter().zip(extents).enumerate() {
        first = first * sizes[axis] + field.lo[axis] + p * e;
    }
    copy_axes(b, &ranges, Vec::new(), &mut |b, coords| {
        let own = row_major(b, &coords, &sizes);
        let to = element(b, field, storage, own, first);
        let place = field.storage_in(b, container, coords);
        let value = b.load(place);
        b.store(to, value);
    });
}

fn copy_axes(
    b: &mut Builder<'_>,
    ranges: &[(i64, i64)],
    coords: Vec<Value>,
    one: &mut dyn FnMut(&mut Builder<'_>, Vec<Value>),
) {
    let Some((&(lo, hi), rest)) = ranges.split_first() else {
        return one(b, coords);
    };
    let (lo, hi) = (b.i32(lo as i32), b.i32(hi as i32));
    b.for_(lo, hi, |b, coord| {
        let coords = [coords.clone(), vec![coord]].concat();
        copy_axes(b, rest, coords, one);
    });
}

/// The storage of the copy's element that is `constant` behind `own`.
pub(super) fn element(
    b: &mut Builder<'_>,
    field: &Field,
    storage: Value,
    own: Value,
    constant: i64,
) -> Value {
    let constant = b.i32(constant as i32);
    let index = vec![b.binary(BinaryOp::Add, own, constant)];
    let op = Op::ElemRef {
        base: storage,
        index,
    };
    b.value(op, field.storage_type())
}

/// The number of an element of a box, without its first coordinates.
pub(super) fn row_major(b: &mut Builder<'_>, coords: &[Value], sizes: &[i64]) -> Value {
    let mut number: Option<Value> = None;
    for (&coord, &size) in coords.iter().zip(sizes) {
        number = Some(match number {
            None => coord,
            Some(before) => {
                let size = b.i32(size as i32);
                let scaled = b.binary(BinaryOp::Mul, before, size);
                b.binary(BinaryOp::Add, scaled, coord)
            }
        });
    }
    number.unwrap_or_else(|| b.constant(Scalar::i32(0)))
}
