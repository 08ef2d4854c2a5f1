//! What the threads of a GPU add around a block of cells, they add up in memory that they share first.
//!
//! ```text
//! parallel over blocks, particles of the list {       parallel over blocks, threads block=128 {
//!     atomic_add m[base], a                               v0, v1 = shared       ; the block and what is around, touched
//!     atomic_add m[base + 1], b                           for each so-manieth element { v0[k] = -0; v1[k] = 0 }
//! }                                                       barrier
//!                                               ==>       for each so-manieth particle of the list {
//!                                                             k = base - first of the block
//!                                                             if 0 <= k < 12 { atomic_add v0[k], a; v1[k] = 1 }
//!                                                             else { atomic_add m[base], a } ..
//!                                                         }
//!                                                         barrier
//!                                                         for each so-manieth element {
//!                                                             if v1[k] != 0 { atomic_add m[first of the block + k], v0[k] }
//!                                                         }
//!                                                     }
//! ```
//! One block of threads walks the list of one block of cells, so what it adds mostly lies there. Where it does not, it goes
//! to the field itself, so nothing need be known of where particles are. An element that nobody has added to stays as it is: its
//! block may not be active. Floats begin as -0, which added to any number leaves it.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::access::{Class, calls, classes, is_quantised, touched};
use aerogel_ir::analysis::affine::distance;
use aerogel_ir::{
    AtomicOp, BinaryOp, Builder, CompareOp, FieldId, Function, Inst, NodeRef, Op, Region, Type,
    Value, walk,
};
use aerogel_snode::{NodeId, NodeKind};

use super::copied::row_major;
use super::neighbours::block_extents;
use crate::PassCx;
use crate::cells::nest::{at_end, scaled_sum};
use crate::sums::privatize::{coords_of, field_of};
use crate::sums::share::{each_of_thread, uses_threads, wait};

/// From so many sums of an iteration on into a place they are worth a box.
const WORTH: usize = 2;
/// The most bytes of boxes: what every card's blocks may share is 48 KiB, of which other sums have a part.
const MOST_BYTES: i128 = 32 << 10;

/// What the threads of a block add up of what they add around it.
pub(crate) struct SharedSums {
    boxes: Vec<Box>,
}

/// The elements of some places of one node around a block.
struct Box {
    leaf: NodeId,
    /// The extents of a block.
    block: Vec<i64>,
    /// The first index of the node's fields.
    offset: Vec<i64>,
    /// How far the box reaches beyond the block, on both sides of each axis.
    reach: Vec<i64>,
    sums: Vec<Sum>,
}

/// A place that is added to.
struct Sum {
    class: Class,
    field: FieldId,
    /// The component of a tensor field.
    component: Option<Vec<Scalar>>,
    elem: ScalarType,
    /// The storage of the field's whole element.
    whole: Type,
    atomics: Vec<Inst>,
}

/// The boxes of a block of threads.
pub(crate) struct Made(Vec<MadeBox>);

struct MadeBox {
    /// The indices of the first element.
    first: Vec<Value>,
    touched: Value,
    storages: Vec<Value>,
}

impl SharedSums {
    /// How many threads walk a list together, where nobody says how many.
    pub(crate) const THREADS: u32 = 128;

    /// What is worth adding up in a loop over the cells of `node`, which are those of lists in the cells of `block`.
    pub(crate) fn find(
        func: &Function,
        cx: &PassCx<'_>,
        node: NodeRef,
        block: NodeId,
        body: Region,
    ) -> Option<Self> {
        if !cx.options.shared_memory || uses_threads(func, body) || calls(func, body) {
            return None;
        }
        let uses = func.use_counts();
        let (mut boxes, mut others): (Vec<Box>, Vec<Class>) = (Vec::new(), Vec::new());
        let mut stays = true;
        walk(func, body, &mut |func, inst| {
            // Who leaves here leaves the sums behind.
            stays &= !matches!(func[inst], Op::Return { .. } | Op::Assert { .. });
            let sum = match func[inst] {
                Op::Atomic { op, place, .. } => {
                    let unused = func.insts[inst].results.iter().all(|&r| uses[r] == 0);
                    let sum = matches!(op, AtomicOp::Add | AtomicOp::Sub);
                    (unused && sum).then_some(place)
                }
                _ => None,
            };
            if !sum.is_some_and(|place| add_sum(func, cx, node, block, place, inst, &mut boxes)) {
                let places = touched(&func[inst]).iter();
                others.extend(places.flat_map(|&p| classes(func, cx.env, p)));
            }
        });
        let mut bytes = 0;
        for one in &mut boxes {
            one.sums
                .retain(|sum| sum.atomics.len() >= WORTH && !others.contains(&sum.class));
            one.measure(func);
        }
        boxes.retain(|one| {
            let size = one.bytes();
            let pays = !one.sums.is_empty() && bytes + size <= MOST_BYTES;
            bytes += i128::from(pays) * size;
            pays
        });
        (stays && !boxes.is_empty()).then_some(Self { boxes })
    }

    /// Makes boxes that hold nothing for the block at `indices`.
    pub(crate) fn prologue(&self, b: &mut Builder<'_>, indices: &[Value]) -> Made {
        let made = self.boxes.iter().map(|one| one.make(b, indices)).collect();
        wait(b);
        Made(made)
    }

    /// Makes `body` add to the boxes.
    pub(crate) fn redirect(&self, func: &mut Function, body: Region, made: &Made) {
        let place = |inst: Inst| {
            let mut boxes = self.boxes.iter().zip(&made.0);
            boxes.find_map(|(one, made)| {
                let k = one
                    .sums
                    .iter()
                    .position(|sum| sum.atomics.contains(&inst))?;
                Some((one, made, made.storages[k]))
            })
        };
        add(func, body, &place);
    }

    /// Adds what was touched to the fields.
    pub(crate) fn epilogue(&self, b: &mut Builder<'_>, made: &Made) {
        wait(b);
        for (one, made) in self.boxes.iter().zip(&made.0) {
            one.flush(b, made);
        }
    }
}

/// Notes a sum, if it goes to elements of blocks like the loop's own; whether it does.
fn add_sum(
    func: &Function,
    cx: &PassCx<'_>,
    node: NodeRef,
    block: NodeId,
    place: Value,
    inst: Inst,
    boxes: &mut Vec<Box>,
) -> bool {
    let (Some(field), component) = field_of(func, place) else {
        return false;
    };
    let data = &cx.env.fields[field];
    let Some(elem) = func.ty(place).pointee().and_then(Type::scalar) else {
        return false;
    };
    let all = classes(func, cx.env, place);
    // Others have no such atomics.
    let is_word = matches!(elem.bytes(), 4 | 8);
    let (&[class], true, true) = (&all[..], is_word, data.tree == node.tree) else {
        return false;
    };
    if is_quantised(func, cx.env, place) {
        return false;
    }
    let tree = &cx.env.trees[data.tree];
    let Some(leaf) = tree[data.places[0]].parent else {
        return false;
    };
    let Some(extents) = block_extents(tree, block, leaf, NodeKind::Dense) else {
        return false;
    };
    let offset: Vec<i64> = (0..extents.len())
        .map(|axis| i64::from(data.offset.get(axis).copied().unwrap_or(0)))
        .collect();
    let Some(whole) = data.elem.to_ref() else {
        return false;
    };
    let own = boxes
        .iter()
        .position(|one| one.leaf == leaf && one.offset == offset);
    let own = own.unwrap_or_else(|| {
        boxes.push(Box {
            leaf,
            block: extents,
            offset,
            reach: Vec::new(),
            sums: Vec::new(),
        });
        boxes.len() - 1
    });
    let sums = &mut boxes[own].sums;
    match sums.iter_mut().find(|sum| sum.class == class) {
        Some(sum) => sum.atomics.push(inst),
        None => sums.push(Sum {
            class,
            field,
            component: component.map(|all| {
                let known = |&k: &Value| func.as_const(k).expect("a component is constant");
                all.iter().map(known).collect()
            }),
            elem,
            whole,
            atomics: vec![inst],
        }),
    }
    true
}

/// The indices of the element that an atomic adds to.
fn indices_of(func: &Function, inst: Inst) -> &[Value] {
    let Op::Atomic { place, .. } = func[inst] else {
        unreachable!("sums are atomics")
    };
    let base = match func.def_op(place) {
        Some(&Op::ElemRef { base, .. }) => base,
        _ => place,
    };
    match func.def_op(base) {
        Some(Op::FieldAt { indices, .. }) => indices,
        _ => unreachable!("sums go to fields"),
    }
}

impl Box {
    /// Chooses how far it reaches: as far as the sums of an iteration are apart, which may lie before the block and behind it.
    fn measure(&mut self, func: &Function) {
        for axis in 0..self.block.len() {
            let mut apart = 1;
            for sum in &self.sums {
                let at = |&inst: &Inst| indices_of(func, inst)[axis];
                let first = at(&sum.atomics[0]);
                let far = sum
                    .atomics
                    .iter()
                    .filter_map(|i| distance(func, first, at(i)));
                let (lo, hi) = far.fold((0, 0), |(lo, hi), d| (d.min(lo), d.max(hi)));
                apart = apart.max(hi - lo);
            }
            self.reach.push(apart.min(self.block[axis]));
        }
    }

    fn extents(&self) -> Vec<i64> {
        let axes = self.block.iter().zip(&self.reach);
        axes.map(|(extent, reach)| extent + 2 * reach).collect()
    }

    fn elements(&self) -> i128 {
        self.extents().iter().map(|&e| i128::from(e)).product()
    }

    fn bytes(&self) -> i128 {
        let sums = self.sums.iter().map(|sum| i128::from(sum.elem.bytes()));
        self.elements() * (sums.sum::<i128>() + 1)
    }

    fn make(&self, b: &mut Builder<'_>, indices: &[Value]) -> MadeBox {
        let n = self.elements() as u32;
        let mut shared = |elem| {
            let ty = Type::Vec(n, elem).to_ref().expect("a vector's storage");
            b.value(Op::Shared {}, ty)
        };
        let touched = shared(ScalarType::U8);
        let storages: Vec<Value> = self.sums.iter().map(|sum| shared(sum.elem)).collect();
        each_of_thread(b, self.elements(), |b, number| {
            for (sum, &storage) in self.sums.iter().zip(&storages) {
                let nothing = match sum.elem.is_float() {
                    true => Scalar::float(sum.elem, -0.0),
                    false => Scalar::zero(sum.elem),
                };
                let nothing = b.constant(nothing);
                let at = element(b, storage, sum.elem, number);
                b.store(at, nothing);
            }
            let none = b.constant(Scalar::zero(ScalarType::U8));
            let at = element(b, touched, ScalarType::U8, number);
            b.store(at, none);
        });
        let axes = indices.iter().zip(&self.block).enumerate();
        let first = axes.map(|(axis, (&index, &extent))| {
            let index = b.cast(index, Type::I32);
            let begin = scaled_sum(b, None, index, extent as u64);
            let before = b.i32((self.offset[axis] - self.reach[axis]) as i32);
            b.binary(BinaryOp::Add, begin, before)
        });
        MadeBox {
            first: first.collect(),
            touched,
            storages,
        }
    }

    /// Adds to the box what it reaches, and the rest where it was added.
    fn add(&self, b: &mut Builder<'_>, inst: Inst, made: &MadeBox, storage: Value) {
        let Op::Atomic { op, place, value } = b.func[inst] else {
            unreachable!("sums are atomics")
        };
        let indices = indices_of(b.func, inst).to_vec();
        let extents = self.extents();
        let (mut inside, mut at): (Option<Value>, Vec<Value>) = (None, Vec::new());
        for ((&index, &first), &extent) in indices.iter().zip(&made.first).zip(&extents) {
            let first = b.cast(first, b.func.ty(index));
            let coord = b.binary(BinaryOp::Sub, index, first);
            let elem = b.func.elem(index);
            for (op, end) in [(CompareOp::Ge, 0), (CompareOp::Lt, extent)] {
                let end = b.constant(Scalar::int(elem, i128::from(end)));
                let ok = b.compare(op, coord, end);
                inside = Some(inside.map_or(ok, |all| b.binary(BinaryOp::And, all, ok)));
            }
            at.push(coord);
        }
        let ty = b.func.ty(b.func.insts[inst].results[0]);
        let elem = b.func.elem(value);
        let to_box = |b: &mut Builder<'_>| {
            let at: Vec<Value> = at.iter().map(|&c| b.cast(c, Type::I32)).collect();
            let number = row_major(b, &at, &extents);
            let place = element(b, storage, elem, number);
            b.value(Op::Atomic { op, place, value }, ty);
            let one = b.constant(Scalar::int(ScalarType::U8, 1));
            let mark = element(b, made.touched, ScalarType::U8, number);
            b.store(mark, one);
        };
        let inside = inside.expect("a block has an axis");
        b.if_(inside, &[], to_box, |b| {
            b.value(Op::Atomic { op, place, value }, ty);
        });
    }

    fn flush(&self, b: &mut Builder<'_>, made: &MadeBox) {
        let extents: Vec<i128> = self.extents().iter().map(|&e| i128::from(e)).collect();
        each_of_thread(b, self.elements(), |b, number| {
            let mark = element(b, made.touched, ScalarType::U8, number);
            let mark = b.load(mark);
            let none = b.constant(Scalar::zero(ScalarType::U8));
            let is_touched = b.compare(CompareOp::Ne, mark, none);
            let to_field = |b: &mut Builder<'_>| {
                let coords = coords_of(b, &extents, number);
                let axes = coords.into_iter().zip(&made.first);
                let indices: Vec<Value> = axes
                    .map(|(coord, &first)| {
                        let coord = b.cast(coord, Type::I32);
                        b.binary(BinaryOp::Add, coord, first)
                    })
                    .collect();
                for (sum, &storage) in self.sums.iter().zip(&made.storages) {
                    sum.flush(b, storage, number, indices.clone());
                }
            };
            b.if_(is_touched, &[], to_field, |_| ());
        });
    }
}

impl Sum {
    /// Adds an element of its box to the field.
    fn flush(&self, b: &mut Builder<'_>, storage: Value, number: Value, indices: Vec<Value>) {
        let own = element(b, storage, self.elem, number);
        let value = b.load(own);
        let field = self.field;
        let mut place = b.value(Op::FieldAt { field, indices }, self.whole);
        if let Some(component) = &self.component {
            let index = component.iter().map(|&k| b.constant(k)).collect();
            let op = Op::ElemRef { base: place, index };
            place = b.value(op, Type::RefScalar(self.elem));
        }
        let op = AtomicOp::Add;
        b.value(Op::Atomic { op, place, value }, self.elem.into());
    }
}

fn element(b: &mut Builder<'_>, base: Value, elem: ScalarType, number: Value) -> Value {
    let index = vec![number];
    b.value(Op::ElemRef { base, index }, Type::RefScalar(elem))
}

/// Where a sum goes: the box, what was made of it, and the storage in that.
type Place<'a> = (&'a Box, &'a MadeBox, Value);

/// Makes sums of a region, with those inside, go to boxes.
fn add<'a>(func: &mut Function, region: Region, place: &impl Fn(Inst) -> Option<Place<'a>>) {
    for inst in std::mem::take(&mut func.regions[region].insts) {
        if let Some((one, made, storage)) = place(inst) {
            let span = func.insts[inst].span;
            let mut b = at_end(func, region, span);
            one.add(&mut b, inst, made, storage);
            continue;
        }
        for owned in func.owned(inst) {
            add(func, owned, place);
        }
        func.regions[region].insts.push(inst);
    }
}
