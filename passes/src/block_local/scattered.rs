//! Elements around a cell that are added to are summed in a local box first.
//!
//! ```text
//! for i in 0..8 { for j in 0..8 {            v0 = local                  ; a box: the block and what is reached around
//!     atomic_add y[i0 + i - 1, j0 + j], a    for i in 0..8 { for j in 0..8 {
//!     atomic_add y[i0 + i, j0 + j + 1], b        v0[i - 1, j] += a
//! } }                                   ==>      v0[i, j + 1] += b
//!                                            } }
//!                                            for the blocks around that are reached {
//!                                                for what is reached { if v0[..] != 0 { atomic_add y[..], v0[..] } }
//!                                            }
//!                                            for the block itself {
//!                                                what its neighbours reach as well, in the same way
//!                                                y[i0 + i, j0 + j] += v0[i, j]              ; the rest
//!                                            }
//! ```
//! Nothing but this block's iterations reaches the middle of the block, so it needs no atomics.
//!
//! There is one such box for each distance along the last axis: in one of them consecutive cells add to different
//! elements, so that the innermost loop has no iteration that waits for the one before, and vectorises. A branch
//! that holds sums and little else becomes a straight line for that: it adds zeros where it is not taken.
//!
//! All of the blocks have to be there, since a block may become active only where the program writes to
//! it: that is the topic of `written.rs`.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    AtomicOp, BinaryOp, Builder, CompareOp, Function, Inst, NodeRef, Op, Region, Type, Value, walk,
};
use aerogel_snode::{NodeId, NodeKind};

use super::MOST_BYTES;
use super::copied::{each_element, element, row_major};
use super::neighbours::{Field, block_extents, neighbour, own_coords, own_index, parts};
use crate::PassCx;
use crate::access::{Class, classes, is_quantised};
use crate::cells::{self, at_end};
use crate::if_convert::is_cheap;

/// From so many different elements on their sums are worth a box.
const WORTH: usize = 2;

/// So many instructions for each sum of a branch run although it is not taken.
const MOST_FOR_A_SUM: usize = 4;

/// What the loops over one block of dense cells add to elements around.
pub(super) struct Scattered {
    /// The extents of a block.
    extents: Vec<i64>,
    sums: Vec<Sum>,
}

/// One place whose elements are added to.
struct Sum {
    field: Field,
    /// The different distances along the last axis: each has a box.
    beside: Vec<i64>,
    /// The boxes, once there are any.
    storage: Option<Value>,
}

impl Scattered {
    /// What is worth a box in a loop over the cells of `node`, in blocks that are cells of `block`.
    pub(super) fn find(
        func: &Function,
        cx: &PassCx<'_>,
        node: NodeRef,
        block: NodeId,
        body: Region,
        params: &[Value],
    ) -> Option<Self> {
        let tree = &cx.env.trees[node.tree];
        let extents = block_extents(tree, block, node.node, NodeKind::Dense)?;
        let mut used: SecondaryMap<Value, bool> = SecondaryMap::new();
        walk(func, body, &mut |func, inst| {
            func[inst].operands(|v| used[v] = true);
        });
        let mut fields: Vec<Field> = Vec::new();
        let mut others: Vec<Class> = Vec::new();
        let mut stays = true;
        walk(func, body, &mut |func, inst| {
            let place = match func[inst] {
                // Who leaves here leaves the sums behind.
                Op::Return { .. } | Op::Assert { .. } => {
                    stays = false;
                    return;
                }
                Op::Load { place }
                | Op::Store { place, .. }
                | Op::Atomic { place, .. }
                | Op::Cas { place, .. } => place,
                _ => return,
            };
            let unused = func.insts[inst].results.iter().all(|&r| !used[r]);
            let sum = match func[inst] {
                Op::Atomic { op, .. } => unused && matches!(op, AtomicOp::Add | AtomicOp::Sub),
                _ => false,
            };
            let at = neighbour(func, cx, params, place);
            let at = at.filter(|_| sum && !is_quantised(func, cx.env, place));
            let Some((at, off)) = at else {
                others.extend(classes(func, cx.env, place));
                return;
            };
            match fields.iter_mut().find(|f| f.place == at) {
                Some(field) => field.accesses.push((inst, off)),
                None => match Field::find(cx, at, (node, block), (inst, off)) {
                    Some(field) => fields.push(field),
                    None => others.push(Class::Place(at)),
                },
            }
        });
        let most = cx.options.thresholds.most_gathered as i64;
        let mut bytes = 0;
        let mut sums = Vec::new();
        for mut field in fields {
            if others.contains(&Class::Place(field.place))
                || field.elem == ScalarType::U1
                || !field.measure(&extents)
                || field.distances().len() < WORTH
            {
                continue;
            }
            let last = extents.len() - 1;
            let mut beside: Vec<i64> = field.accesses.iter().map(|a| a.1[last]).collect();
            beside.sort_unstable();
            beside.dedup();
            let size = field.box_bytes(&extents) * beside.len() as i64;
            let n: i64 = field.box_extents(&extents).iter().product();
            if n <= most && bytes + size <= MOST_BYTES {
                bytes += size;
                sums.push(Sum {
                    field,
                    beside,
                    storage: None,
                });
            }
        }
        (stays && !sums.is_empty()).then_some(Self { extents, sums })
    }

    /// The blocks that are added to, and where they are.
    pub(super) fn blocks(&self) -> Vec<(NodeRef, Vec<i64>)> {
        let mut blocks = Vec::new();
        for part in parts(self.extents.len()) {
            for Sum { field, .. } in &self.sums {
                let block = (field.block, part.clone());
                if field.reaches(&part) && !blocks.contains(&block) {
                    blocks.push(block);
                }
            }
        }
        blocks
    }

    /// Makes the boxes.
    pub(super) fn prologue(&mut self, b: &mut Builder<'_>) {
        for sum in &mut self.sums {
            let n = sum.box_size(&self.extents) * sum.beside.len() as i64;
            sum.storage = Some(b.local(Type::Vec(n as u32, sum.field.elem)));
        }
    }

    /// Makes `body` add to the boxes; `cell` is the iteration's own.
    pub(super) fn redirect(&self, b: &mut Builder<'_>, body: Region, cell: Value) {
        let index = own_index(b.func, cell);
        let coords = own_coords(b.func, index);
        let mut places = LookupMap::default();
        for sum in &self.sums {
            let field = &sum.field;
            let sizes = field.box_extents(&self.extents);
            let own = row_major(b, &coords, &sizes);
            for (inst, off) in &field.accesses {
                let last = off.last().expect("a node has an axis");
                let k = sum.beside.binary_search(last);
                let k = k.expect("all distances are listed") as i64;
                let shifted = off.iter().zip(&field.lo).map(|(d, lo)| d + lo);
                let constant = shifted.zip(&sizes).fold(k, |sum, (d, n)| sum * n + d);
                let place = element(b, field, sum.storage(), own, constant);
                places.insert(*inst, place);
            }
        }
        add(b.func, body, &places);
    }

    /// Adds the boxes to the blocks; `found` are those that `blocks` names.
    pub(super) fn epilogue(
        &self,
        b: &mut Builder<'_>,
        found: &dyn Fn(&(NodeRef, Vec<i64>)) -> Value,
    ) {
        for sum in &self.sums {
            for part in parts(self.extents.len()) {
                if sum.field.reaches(&part) {
                    let block = found(&(sum.field.block, part.clone()));
                    let container = sum.field.container_in(b, block);
                    let ranges = sum.field.reached(&self.extents, &part);
                    let into = Into {
                        sum,
                        extents: &self.extents,
                        container,
                        part: &part,
                    };
                    if part.iter().all(|&p| p == 0) {
                        into.own(b, &[]);
                    } else {
                        into.all(b, &ranges, &[]);
                    }
                }
            }
        }
    }
}

impl Sum {
    /// The elements of one box.
    fn box_size(&self, extents: &[i64]) -> i64 {
        self.field.box_extents(extents).iter().product()
    }

    fn storage(&self) -> Value {
        self.storage.expect("the prologue comes first")
    }
}

/// Makes additions to those places of the atomics that `places` names.
fn add(func: &mut Function, region: Region, places: &LookupMap<Inst, Value>) {
    for inst in std::mem::take(&mut func.regions[region].insts) {
        match func[inst] {
            Op::If {
                cond,
                then,
                otherwise,
            } if is_straight(func, then, places) && is_nothing(func, otherwise) => {
                add_if(func, region, cond, then, places);
            }
            _ => {
                for owned in func.owned(inst) {
                    add(func, owned, places);
                }
                if !add_one(func, region, inst, None, places) {
                    func.regions[region].insts.push(inst);
                }
            }
        }
    }
}

/// Makes an addition of an atomic, of zero where not `cond`; whether it is one that `places` names.
fn add_one(
    func: &mut Function,
    region: Region,
    inst: Inst,
    cond: Option<Value>,
    places: &LookupMap<Inst, Value>,
) -> bool {
    let (Some(&place), Op::Atomic { op, mut value, .. }) = (places.get(&inst), func[inst].clone())
    else {
        return false;
    };
    let span = func.insts[inst].span;
    let mut b = at_end(func, region, span);
    if let Some(cond) = cond {
        let zero = b.constant(Scalar::zero(b.func.elem(value)));
        value = b.select(cond, value, zero);
    }
    let old = b.load(place);
    let op = op.binary().expect("sums are arithmetic");
    let new = b.binary(op, old, value);
    b.store(place, new);
    true
}

/// Moves what a branch that is straight holds to `region`.
fn add_if(
    func: &mut Function,
    region: Region,
    cond: Value,
    branch: Region,
    places: &LookupMap<Inst, Value>,
) {
    for inst in std::mem::take(&mut func.regions[branch].insts) {
        match func[inst] {
            Op::If {
                cond: inner, then, ..
            } => {
                let span = func.insts[inst].span;
                let both = at_end(func, region, span).binary(BinaryOp::And, cond, inner);
                add_if(func, region, both, then, places);
            }
            Op::Yield { .. } => {}
            _ => {
                if !add_one(func, region, inst, Some(cond), places) {
                    func.regions[region].insts.push(inst);
                }
            }
        }
    }
}

/// Whether a branch holds sums and the little that is computed for them.
fn is_straight(func: &Function, branch: Region, places: &LookupMap<Inst, Value>) -> bool {
    let (mut n_sums, mut n_others) = (0, 0);
    let straight = n_in_branch(func, branch, places, &mut n_sums, &mut n_others);
    straight && n_sums > 0 && n_others <= MOST_FOR_A_SUM * n_sums
}

fn n_in_branch(
    func: &Function,
    branch: Region,
    places: &LookupMap<Inst, Value>,
    n_sums: &mut usize,
    n_others: &mut usize,
) -> bool {
    func.regions[branch].insts.iter().all(|&inst| {
        match func[inst] {
            Op::Const { .. } | Op::FieldAt { .. } | Op::ElemRef { .. } => {}
            Op::Yield { ref values } => return values.is_empty(),
            Op::If {
                then, otherwise, ..
            } => {
                return n_in_branch(func, then, places, n_sums, n_others)
                    && is_nothing(func, otherwise);
            }
            Op::Atomic { .. } if places.contains_key(&inst) => *n_sums += 1,
            ref op if is_cheap(op) => *n_others += 1,
            _ => return false,
        }
        true
    })
}

/// Whether a branch does nothing.
fn is_nothing(func: &Function, branch: Region) -> bool {
    let insts = &func.regions[branch].insts;
    insts
        .iter()
        .all(|&i| matches!(&func[i], Op::Yield { values } if values.is_empty()))
}

/// A block that boxes are added to.
struct Into<'a> {
    sum: &'a Sum,
    extents: &'a [i64],
    container: Value,
    part: &'a [i64],
}

impl Into<'_> {
    /// Adds to the elements in `ranges` along the axes behind `coords`, which others may add to as well.
    fn all(&self, b: &mut Builder<'_>, ranges: &[(i64, i64)], coords: &[Value]) {
        each_element(b, ranges, coords.to_vec(), &mut |b, coords| {
            let (value, place) = self.sum(b, coords);
            let ty = Type::Scalar(self.sum.field.elem);
            let zero = b.constant(Scalar::zero(self.sum.field.elem));
            let cond = b.compare(CompareOp::Ne, value, zero);
            let then = cells::region(b, &[], |b, _| {
                let op = AtomicOp::Add;
                b.value(Op::Atomic { op, place, value }, ty);
            });
            let otherwise = cells::region(b, &[], |_, _| {});
            b.effect(Op::If {
                cond,
                then,
                otherwise,
            });
        });
    }

    /// Adds to the elements of the block itself that begin with `coords`, of which none is within the reach of
    /// the blocks around along its axis.
    fn own(&self, b: &mut Builder<'_>, coords: &[Value]) {
        let axis = coords.len();
        let field = &self.sum.field;
        let extent = self.extents[axis];
        // What the neighbours reach, and what they do not.
        let first = field.hi[axis].min(extent);
        let end = (extent - field.lo[axis]).max(first);
        let rest: Vec<(i64, i64)> = self.extents[axis + 1..].iter().map(|&e| (0, e)).collect();
        for rim in [(0, first), (end, extent)] {
            if rim.0 < rim.1 {
                self.all(b, &[&[rim], &rest[..]].concat(), coords);
            }
        }
        if first == end {
            return;
        }
        let (lo, hi) = (b.i32(first as i32), b.i32(end as i32));
        cells::for_loop(b, lo, hi, &mut |b, coord| {
            let coords = [coords, &[coord]].concat();
            if coords.len() < self.extents.len() {
                return self.own(b, &coords);
            }
            let (value, place) = self.sum(b, coords);
            let old = b.load(place);
            let new = b.binary(BinaryOp::Add, old, value);
            b.store(place, new);
        });
    }

    /// What is to be added to the element at `coords`, and its storage.
    fn sum(&self, b: &mut Builder<'_>, coords: Vec<Value>) -> (Value, Value) {
        let field = &self.sum.field;
        let sizes = field.box_extents(self.extents);
        let own = row_major(b, &coords, &sizes);
        let mut first = 0;
        for (axis, (&p, &e)) in self.part.iter().zip(self.extents).enumerate() {
            first = first * sizes[axis] + field.lo[axis] + p * e;
        }
        let size = self.sum.box_size(self.extents);
        let mut value: Option<Value> = None;
        for k in 0..self.sum.beside.len() as i64 {
            let place = element(b, field, self.sum.storage(), own, first + k * size);
            let part = b.load(place);
            value = Some(value.map_or(part, |sum| b.binary(BinaryOp::Add, sum, part)));
        }
        let place = field.storage_in(b, self.container, coords);
        (value.expect("something is added"), place)
    }
}
