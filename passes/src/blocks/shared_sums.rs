//! On GPUs, the threads of a block accumulate sums to elements around a block of cells in shared memory first.
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
//! One block of threads processes the list of one block of cells, so most of its sums go to elements near that block. Other
//! sums go to the field itself, so particles may be anywhere. An element that no thread has added to is not written: its
//! block may be inactive. Floats begin as -0, their identity element for addition.

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

/// From so many sums of an iteration on into a place they are worth a tile.
const WORTH: usize = 2;
/// The most bytes of tiles: every GPU gives a block 48 KiB of shared memory, of which other sums use a part.
const MOST_BYTES: i128 = 32 << 10;

/// The sums that the threads of a block accumulate in shared memory.
pub(crate) struct SharedSums {
    tiles: Vec<Tile>,
}

/// The elements of some places of one node around a block.
struct Tile {
    leaf: NodeId,
    /// The shape of a block.
    block: Vec<i64>,
    /// The first index of the node's fields.
    offset: Vec<i64>,
    /// How far the tile reaches beyond the block, on both sides of each axis.
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

/// The tiles of a block of threads.
pub(crate) struct Made(Vec<MadeTile>);

struct MadeTile {
    /// The indices of the first element.
    first: Vec<Value>,
    touched: Value,
    storages: Vec<Value>,
}

impl SharedSums {
    /// How many threads walk a list together, where nobody says how many.
    pub(crate) const THREADS: u32 = 128;

    /// The sums worth accumulating in a loop over the cells of `node`, which are in lists of the cells of `block`.
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
        let (mut tiles, mut others): (Vec<Tile>, Vec<Class>) = (Vec::new(), Vec::new());
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
            if !sum.is_some_and(|place| add_sum(func, cx, node, block, place, inst, &mut tiles)) {
                let places = touched(&func[inst]).iter();
                others.extend(places.flat_map(|&p| classes(func, cx.env, p)));
            }
        });
        let mut bytes = 0;
        for one in &mut tiles {
            one.sums
                .retain(|sum| sum.atomics.len() >= WORTH && !others.contains(&sum.class));
            one.measure(func);
        }
        tiles.retain(|one| {
            let size = one.bytes();
            let pays = !one.sums.is_empty() && bytes + size <= MOST_BYTES;
            bytes += i128::from(pays) * size;
            pays
        });
        (stays && !tiles.is_empty()).then_some(Self { tiles })
    }

    /// Makes tiles that hold nothing for the block at `indices`.
    pub(crate) fn prologue(&self, b: &mut Builder<'_>, indices: &[Value]) -> Made {
        let made = self.tiles.iter().map(|one| one.make(b, indices)).collect();
        wait(b);
        Made(made)
    }

    /// Makes `body` add to the tiles.
    pub(crate) fn redirect(&self, func: &mut Function, body: Region, made: &Made) {
        let place = |inst: Inst| {
            let mut tiles = self.tiles.iter().zip(&made.0);
            tiles.find_map(|(one, made)| {
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
        for (one, made) in self.tiles.iter().zip(&made.0) {
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
    tiles: &mut Vec<Tile>,
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
    let own = tiles
        .iter()
        .position(|one| one.leaf == leaf && one.offset == offset);
    let own = own.unwrap_or_else(|| {
        tiles.push(Tile {
            leaf,
            block: extents,
            offset,
            reach: Vec::new(),
            sums: Vec::new(),
        });
        tiles.len() - 1
    });
    let sums = &mut tiles[own].sums;
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

impl Tile {
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

    fn make(&self, b: &mut Builder<'_>, indices: &[Value]) -> MadeTile {
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
        MadeTile {
            first: first.collect(),
            touched,
            storages,
        }
    }

    /// Adds to the tile what it reaches, and the rest where it was added.
    fn add(&self, b: &mut Builder<'_>, inst: Inst, made: &MadeTile, storage: Value) {
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

    fn flush(&self, b: &mut Builder<'_>, made: &MadeTile) {
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
    /// Adds an element of its tile to the field.
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

/// Where a sum goes: the tile, what was made of it, and the storage in that.
type Place<'a> = (&'a Tile, &'a MadeTile, Value);

/// Makes sums of a region, with those inside, go to tiles.
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

#[cfg(test)]
mod tests {
    use crate::testing::{after_on_gpu, without_lists};

    const PASSES: &[&str] = &["list_struct_for", "fold", "identities", "cse", "dce"];

    /// Particles in the lists of blocks of four cells, which add to two cells beside each other, the second of which
    /// is read where `more` says so.
    fn particles(more: &str) -> String {
        format!(
            "tree0 {{ pointer i:4 {{ dense i:4 {{ place m: f32 }} dynamic j:256 {{ place p: i32 }} }} }}
            field @m: f32 = tree0 [S3]
            field @p: i32 = tree0 [S5]
            kernel @k() {{
                v0: i32 = const 1
                v1: f32 = const 2.0
                parallel_cells tree0.S4 (v2: i32, v3: i32) {{
                    v4: ref<i32> = field_at @p, [v2, v3]
                    v5: i32 = load v4
                    v6: i32 = add v5, v0
                    v7: ref<f32> = field_at @m, [v5]
                    v8: ref<f32> = field_at @m, [v6]
                    v9: f32 = atomic_add v7, v1
                    {more}
                    v11: f32 = atomic_sub v8, v1
                    yield []
                }}
                yield []
            }}"
        )
    }

    #[test]
    fn sums_of_particles_in_blocks() {
        let after = without_lists(&after_on_gpu(PASSES, &particles("")));
        insta::assert_snapshot!(after, @"
            kernel @k() {
                v0: i32 = const 1
                v1: f32 = const 2.0
                v2: u1 = list_stale tree0.S1
                v3: i64 = const 0
                v4: i64 = const 1
                v5: i64 = select v2, v4, v3
                v44: i64 = list_len tree0.S1
                v45: i64 = const 128
                parallel [v3, v3], [v44, v45] block=128 (v46: i64, v47: i64) {
                    v48: cell<tree0.S1>, v49: i32 = list_entry tree0.S1, v46
                    v50: i32 = cast v47
                    v51: ref<vec<6, u8>> = shared
                    v52: ref<vec<6, f32>> = shared
                    v53: i32 = thread_in_block []
                    v54: i64 = cast v53
                    v55: i32 = block_size []
                    v56: i64 = cast v55
                    v57: i64 = const 6
                    for v54, v57, v56, [] (v58: i64) {
                        v59: f32 = const -0.0
                        v60: ref<f32> = elem_ref v52, [v58]
                        store v60, v59
                        v61: u8 = const 0
                        v62: ref<u8> = elem_ref v51, [v58]
                        store v62, v61
                        yield []
                    }
                    v63: i32 = const 4
                    v64: i32 = mul v49, v63
                    v65: i32 = const -1
                    v66: i32 = add v64, v65
                    block_sync []
                    v67: container<tree0.S4> = child tree0.S4, v48
                    v68: i64 = container_length tree0.S4, v67
                    v69: i32 = cast v68
                    v70: i32 = const 128
                    for v50, v69, v70, [] (v71: i32) {
                        v72: cell<tree0.S4> = find tree0.S4, v67, v71
                        cell_at tree0.S4, [v49, v71], v72
                        v73: ref<i32> = field_at @p, [v49, v71]
                        v74: i32 = load v73
                        v75: i32 = add v0, v74
                        v76: ref<f32> = field_at @m, [v74]
                        v77: ref<f32> = field_at @m, [v75]
                        v78: i32 = sub v74, v66
                        v79: i32 = const 0
                        v80: u1 = ge v78, v79
                        v81: i32 = const 6
                        v82: u1 = lt v78, v81
                        v83: u1 = and v80, v82
                        if v83 {
                            v84: ref<f32> = elem_ref v52, [v78]
                            v85: f32 = atomic_add v84, v1
                            v86: u8 = const 1
                            v87: ref<u8> = elem_ref v51, [v78]
                            store v87, v86
                            yield []
                        } {
                            v88: f32 = atomic_add v76, v1
                            yield []
                        }
                        v89: i32 = sub v75, v66
                        v90: u1 = ge v89, v79
                        v91: u1 = lt v89, v81
                        v92: u1 = and v90, v91
                        if v92 {
                            v93: ref<f32> = elem_ref v52, [v89]
                            v94: f32 = atomic_sub v93, v1
                            v95: u8 = const 1
                            v96: ref<u8> = elem_ref v51, [v89]
                            store v96, v95
                            yield []
                        } {
                            v97: f32 = atomic_sub v77, v1
                            yield []
                        }
                        yield []
                    }
                    block_sync []
                    v98: i32 = thread_in_block []
                    v99: i64 = cast v98
                    v100: i32 = block_size []
                    v101: i64 = cast v100
                    for v99, v57, v101, [] (v102: i64) {
                        v103: ref<u8> = elem_ref v51, [v102]
                        v104: u8 = load v103
                        v105: u8 = const 0
                        v106: u1 = ne v104, v105
                        if v106 {
                            v107: i32 = cast v102
                            v108: i32 = add v66, v107
                            v109: ref<f32> = elem_ref v52, [v102]
                            v110: f32 = load v109
                            v111: ref<f32> = field_at @m, [v108]
                            v112: f32 = atomic_add v111, v110
                            yield []
                        } {
                            yield []
                        }
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn what_is_used_in_another_way_stays() {
        for more in ["v10: f32 = load v8", "v10: f32 = atomic_max v7, v1"] {
            let after = after_on_gpu(PASSES, &particles(more));
            assert!(!after.contains("shared"), "{after}");
        }
    }
}
