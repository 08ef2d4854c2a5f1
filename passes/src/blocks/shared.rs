//! On GPUs, the threads of a block first copy the elements that they read around it to shared memory.
//!
//! ```text
//! parallel over blocks, i in 0..16, j in 0..16 {     parallel over blocks, i in 0..16, j in 0..16 block=256 {
//!     .. load x[i0 + i - 1, j0 + j] ..                   v0 = shared                    ; 18 x 18 values
//!     .. load x[i0 + i + 1, j0 + j] ..          ==>      for each second element of it, from the thread's number on {
//! }                                                          v0[k] = x at that place, or zero beyond the field
//!                                                        }
//!                                                        barrier
//!                                                        .. load v0[18 i + j + 1] ..
//!                                                    }
//! ```
//! Each block of cells is a block of threads, one for each cell, so one box serves all of them, and each element around is
//! looked up once. It pays from three different neighbours on.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, FieldId, Function, NodeRef, Op, Region, ThreadOp, Type, Value,
};
use aerogel_snode::NodeId;

use super::copied::{redirect, row_major};
use super::neighbours::{Field, own_coords, own_index};
use super::{WORTH, read_around};
use crate::PassCx;
use crate::sums::share::uses_threads;

/// The most bytes of boxes: every GPU gives a block 48 KiB of shared memory, of which sums use a part.
const MOST_BYTES: i64 = 32 << 10;
/// How many threads a block of cells has at least, and at most.
const THREADS: std::ops::RangeInclusive<i64> = 32..=1024;

/// The surrounding elements that the threads of a block share.
pub(crate) struct Shared {
    extents: Vec<i64>,
    fields: Vec<Field>,
}

impl Shared {
    /// The reads worth sharing in a loop over the dense cells of `node`, in blocks that are cells of `block`.
    pub(crate) fn find(
        func: &Function,
        cx: &PassCx<'_>,
        node: NodeRef,
        block: NodeId,
        body: Region,
        params: &[Value],
    ) -> Option<Self> {
        if !cx.options.shared_memory || uses_threads(func, body) {
            return None;
        }
        let (extents, found) = read_around(func, cx, node, block, body, params)?;
        let threads: i64 = extents.iter().product();
        if !THREADS.contains(&threads) || threads.count_ones() != 1 {
            return None;
        }
        let (mut fields, mut bytes) = (Vec::new(), 0);
        for mut field in found {
            if !field.measure(&extents) || field.distances().len() < WORTH {
                continue;
            }
            let size = field.box_bytes(&extents);
            if bytes + size <= MOST_BYTES {
                bytes += size;
                fields.push(field);
            }
        }
        (!fields.is_empty()).then_some(Self { extents, fields })
    }

    /// How many threads a block has.
    pub(crate) fn threads(&self) -> u32 {
        self.extents.iter().product::<i64>() as u32
    }

    /// Writes the copies, and makes the body read them; `cell` is the iteration's own, at `indices`.
    pub(crate) fn redirect(
        &self,
        b: &mut Builder<'_>,
        cx: &PassCx<'_>,
        cell: Value,
        indices: &[Value],
    ) {
        let coords = own_coords(b.func, own_index(b.func, cell));
        let coords: Vec<Value> = coords.iter().map(|&c| as_i32(b, c)).collect();
        let thread = row_major(b, &coords, &self.extents);
        let first: Vec<Value> = indices
            .iter()
            .zip(&coords)
            .map(|(&index, &coord)| {
                let index = as_i32(b, index);
                b.binary(BinaryOp::Sub, index, coord)
            })
            .collect();
        let at = Spot {
            indices: indices.to_vec(),
            coords,
            first,
            thread,
        };
        let mut boxes = Vec::new();
        for field in &self.fields {
            let size: i64 = field.box_extents(&self.extents).iter().product();
            let ty = Type::Vec(size as u32, field.elem).to_ref();
            let storage = b.value(Op::Shared {}, ty.expect("a vector's storage"));
            self.copy(b, cx, field, storage, &at);
            boxes.push(storage);
        }
        b.effect(Op::Threads {
            op: ThreadOp::BlockSync,
            args: Vec::new(),
        });
        for (field, storage) in self.fields.iter().zip(boxes) {
            redirect(b, field, storage, &self.extents, &at.coords);
        }
    }

    /// Copies the thread's own element, and a strided part of the surrounding ones, starting at the thread's index.
    fn copy(&self, b: &mut Builder<'_>, cx: &PassCx<'_>, field: &Field, storage: Value, at: &Spot) {
        let lo: Vec<Value> = field.lo.iter().map(|&lo| b.i32(lo as i32)).collect();
        let coords = at.coords.iter().zip(&lo);
        let own: Vec<Value> = coords
            .map(|(&coord, &lo)| b.binary(BinaryOp::Add, coord, lo))
            .collect();
        // Just at the indices whose cell is known.
        let number = row_major(b, &own, &field.box_extents(&self.extents));
        let source = Source::of(b, field);
        let value = source.load(b, cx, field, at.indices.clone());
        source.store(b, field, storage, number, value);
        for side in self.sides(field) {
            let size: i64 = side.iter().map(|axis| axis.n).product();
            let threads = i64::from(self.threads());
            for round in 0..(size + threads - 1) / threads {
                let before = b.i32((round * threads) as i32);
                let number = b.binary(BinaryOp::Add, at.thread, before);
                let one = |b: &mut Builder<'_>| {
                    let coords = in_box(b, number, &side);
                    self.copy_one(b, cx, field, storage, &coords, &at.first);
                };
                if (round + 1) * threads <= size {
                    one(b);
                } else {
                    let end = b.i32(size as i32);
                    let some = b.compare(CompareOp::Lt, number, end);
                    b.if_(some, &[], one, |_| ());
                }
            }
        }
    }

    /// What lies around the block, in parts of a box: for each axis what is before and behind it, with all that is
    /// reached along later axes and nothing else along earlier ones.
    fn sides(&self, field: &Field) -> Vec<Vec<Along>> {
        let all = |off: &[i64]| off.iter().filter(|&&d| d != 0).count() > 1;
        let has_corners = field.accesses.iter().any(|(_, off)| all(off));
        let n = self.extents.len();
        let side = |axis: usize| {
            let along = (0..n).map(|k| {
                let (lo, hi, extent) = (field.lo[k], field.hi[k], self.extents[k]);
                match k {
                    _ if k == axis => Along {
                        n: lo + hi,
                        first: 0,
                        gap: Some((lo, extent)),
                    },
                    _ if k > axis && has_corners => Along {
                        n: lo + extent + hi,
                        first: 0,
                        gap: None,
                    },
                    _ => Along {
                        n: extent,
                        first: lo,
                        gap: None,
                    },
                }
            });
            along.collect::<Vec<Along>>()
        };
        let sides = (0..n).map(side);
        sides
            .filter(|side| side.iter().all(|axis| axis.n > 0))
            .collect()
    }

    /// Copies the element at some coordinates of the box.
    fn copy_one(
        &self,
        b: &mut Builder<'_>,
        cx: &PassCx<'_>,
        field: &Field,
        storage: Value,
        coords: &[Value],
        first: &[Value],
    ) {
        let number = row_major(b, coords, &field.box_extents(&self.extents));
        let source = Source::of(b, field);
        let shape = cx.env.shape(source.field);
        let mut inside: Option<Value> = None;
        let mut indices = Vec::new();
        for (axis, &coord) in coords.iter().enumerate() {
            let lo = b.i32(field.lo[axis] as i32);
            let index = b.binary(BinaryOp::Sub, coord, lo);
            let index = b.binary(BinaryOp::Add, index, first[axis]);
            let (none, end) = (b.i32(0), b.i32(shape[axis] as i32));
            for (op, bound) in [(CompareOp::Ge, none), (CompareOp::Lt, end)] {
                let ok = b.compare(op, index, bound);
                inside = Some(inside.map_or(ok, |all| b.binary(BinaryOp::And, all, ok)));
            }
            indices.push(index);
        }
        let load = |b: &mut Builder<'_>| {
            let value = source.load(b, cx, field, indices);
            source.store(b, field, storage, number, value);
        };
        let beyond = |b: &mut Builder<'_>| {
            let zero = b.constant(Scalar::zero(field.elem));
            source.store(b, field, storage, number, zero);
        };
        let inside = inside.expect("a block has an axis");
        b.if_(inside, &[], load, beyond);
    }
}

/// The source elements of a box.
struct Source {
    field: FieldId,
    /// The storage of an element, and of its component that is read, if it is no number.
    ty: Type,
    component: Option<Vec<Scalar>>,
}

impl Source {
    fn of(b: &Builder<'_>, field: &Field) -> Self {
        let Op::Load { place } = b.func[field.accesses[0].0] else {
            unreachable!("what is read is loaded")
        };
        let (at, component) = match b.func.def_op(place) {
            Some(Op::ElemRef { base, index }) => (*base, Some(index)),
            _ => (place, None),
        };
        let Some(&Op::FieldAt { field, .. }) = b.func.def_op(at) else {
            unreachable!("it is an element of a field")
        };
        let known = |&k: &Value| b.func.as_const(k).expect("a component is known");
        Self {
            field,
            ty: b.func.ty(at),
            component: component.map(|index| index.iter().map(known).collect()),
        }
    }

    /// The number at some indices of the layout.
    fn load(
        &self,
        b: &mut Builder<'_>,
        cx: &PassCx<'_>,
        field: &Field,
        mut indices: Vec<Value>,
    ) -> Value {
        let offsets = &cx.env.fields[self.field].offset;
        for (index, &offset) in indices.iter_mut().zip(offsets) {
            if offset != 0 {
                let offset = b.i32(offset);
                *index = b.binary(BinaryOp::Add, *index, offset);
            }
        }
        let op = Op::FieldAt {
            field: self.field,
            indices,
        };
        let mut place = b.value(op, self.ty);
        if let Some(component) = &self.component {
            let index = component.iter().map(|&k| b.constant(k)).collect();
            place = b.value(Op::ElemRef { base: place, index }, field.storage_type());
        }
        b.load(place)
    }

    fn store(
        &self,
        b: &mut Builder<'_>,
        field: &Field,
        storage: Value,
        number: Value,
        value: Value,
    ) {
        let op = Op::ElemRef {
            base: storage,
            index: vec![number],
        };
        let to = b.value(op, field.storage_type());
        b.store(to, value);
    }
}

/// The iteration's cell: its indices, its coordinates in the block, the indices of the block's first cell, and the number of the thread.
struct Spot {
    indices: Vec<Value>,
    coords: Vec<Value>,
    first: Vec<Value>,
    thread: Value,
}

/// What part of a box lies along an axis: so many coordinates from the first on, but for those of a gap: where it begins,
/// and how long it is.
struct Along {
    n: i64,
    first: i64,
    gap: Option<(i64, i64)>,
}

/// The coordinates in the box of an element of a part of it, whose last coordinate runs fastest.
fn in_box(b: &mut Builder<'_>, number: Value, part: &[Along]) -> Vec<Value> {
    let mut rest = number;
    let mut coords = Vec::new();
    for (axis, along) in part.iter().enumerate().rev() {
        let coord = match axis {
            0 => rest,
            _ => {
                // No number is negative, and so this is the remainder.
                let extent = b.i32(along.n as i32);
                let times = b.binary(BinaryOp::FloorDiv, rest, extent);
                let whole = b.binary(BinaryOp::Mul, times, extent);
                let coord = b.binary(BinaryOp::Sub, rest, whole);
                rest = times;
                coord
            }
        };
        coords.push(match along.gap {
            Some((begin, length)) => {
                let [begin, length] = [begin, length].map(|n| b.i32(n as i32));
                let behind = b.binary(BinaryOp::Add, coord, length);
                let is_before = b.compare(CompareOp::Lt, coord, begin);
                b.select(is_before, coord, behind)
            }
            None => {
                let first = b.i32(along.first as i32);
                b.binary(BinaryOp::Add, coord, first)
            }
        });
    }
    coords.reverse();
    coords
}

fn as_i32(b: &mut Builder<'_>, value: Value) -> Value {
    match b.func.elem(value) {
        ScalarType::I32 => value,
        _ => b.value(Op::Cast { x: value }, Type::I32),
    }
}
