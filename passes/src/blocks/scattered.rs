//! Sums to neighbours of a cell are accumulated in a local box first.
//!
//! ```text
//! for i in 0..8 { for j in 0..8 {            v0 = local                  ; a box: the block and what is reached around
//!     atomic_add y[i0 + i - 1, j0 + j], a    for i in 0..8 { for j in 0..8 {
//!     atomic_add y[i0 + i, j0 + j + 1], b        v0[i - 1, j] += a
//! } }                                   ==>      v0[i, j + 1] += b
//!                                            } }
//!                                            for i in -1..8 {
//!                                                row, i1 = i < 0 ? above, i + 8 : own, i
//!                                                for j in 8..9 { atomic_add after of row[i1, j - 8], v0[i, j] }
//!                                                for j in 0..8 { row[i1, j] += v0[i, j] }       ; atomic at the rim
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
use aerogel_ir::analysis::access::{Class, classes, is_quantised};
use aerogel_ir::analysis::cost::is_cheap;
use aerogel_ir::{
    AtomicOp, BinaryOp, Builder, CompareOp, Function, Inst, NodeRef, Op, Region, Type, Value, walk,
};
use aerogel_snode::{NodeId, NodeKind};

use super::MOST_BYTES;
use super::copied::{element, row_major};
use super::neighbours::{Block, Field, block_extents, neighbour, own_coords, own_index, parts};
use crate::PassCx;
use crate::cells::nest::at_end;

/// From so many different elements on their sums are worth a box (decision 0019 has the times).
const WORTH: usize = 2;

/// How many instructions for each sum of a branch may run although the branch is not taken.
const MOST_FOR_A_SUM: usize = 4;

/// The sums of the loops over one block of dense cells to elements around it.
pub(super) struct Scattered {
    /// The shape of a block.
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
    /// The sums that are worth a box in a loop over the cells of `node`, in blocks that are cells of `block`.
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
    pub(super) fn blocks(&self) -> Vec<Block> {
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
    pub(super) fn epilogue(&self, b: &mut Builder<'_>, found: &dyn Fn(&Block) -> Value) {
        for sum in &self.sums {
            let mut containers = Vec::new();
            for part in parts(self.extents.len()) {
                if sum.field.reaches(&part) {
                    let block = found(&(sum.field.block, part.clone()));
                    containers.push((part, sum.field.container_in(b, block)));
                }
            }
            let rows = Rows {
                at: Vec::new(),
                coords: Vec::new(),
                middle: None,
                containers,
            };
            sum.rows(b, &self.extents, &rows);
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

    /// Adds rows of the boxes to the blocks.
    fn rows(&self, b: &mut Builder<'_>, extents: &[i64], rows: &Rows) {
        let axis = rows.at.len();
        if axis + 1 == extents.len() {
            return self.row(b, extents, rows);
        }
        let (extent, lo, hi) = (extents[axis], self.field.lo[axis], self.field.hi[axis]);
        let ends = [0, lo + extent + hi].map(|end| b.i32(end as i32));
        b.for_(ends[0], ends[1], |b, at| {
            let back = b.i32(lo as i32);
            let mut coord = b.binary(BinaryOp::Sub, at, back);
            let mut containers = rows.beyond(0);
            for (part, reach, op, bound) in [
                (-1, lo, CompareOp::Lt, lo),
                (1, hi, CompareOp::Ge, lo + extent),
            ] {
                if reach == 0 {
                    continue;
                }
                let bound = b.i32(bound as i32);
                let cond = b.compare(op, at, bound);
                let back = b.i32((part * extent) as i32);
                let there = b.binary(BinaryOp::Sub, coord, back);
                coord = b.select(cond, there, coord);
                for (part, container) in rows.beyond(part) {
                    let own = containers.iter_mut().find(|own| own.0 == part);
                    let own = &mut own.expect("who reaches a corner reaches beside it").1;
                    *own = b.select(cond, container, *own);
                }
            }
            let mut middle = rows.middle;
            for (op, bound) in [(CompareOp::Ge, lo + hi), (CompareOp::Lt, extent)] {
                let bound = b.i32(bound as i32);
                let ok = b.compare(op, at, bound);
                middle = Some(middle.map_or(ok, |all| b.binary(BinaryOp::And, all, ok)));
            }
            let rows = Rows {
                at: [&rows.at[..], &[at]].concat(),
                coords: [&rows.coords[..], &[coord]].concat(),
                middle,
                containers,
            };
            self.rows(b, extents, &rows);
        });
    }

    /// Adds one row.
    fn row(&self, b: &mut Builder<'_>, extents: &[i64], row: &Rows) {
        let last = extents.len() - 1;
        let (extent, lo, hi) = (extents[last], self.field.lo[last], self.field.hi[last]);
        for (part, container) in &row.containers {
            let part = part[0];
            let at = |b: &mut Builder<'_>, coord| {
                let own = row_major(
                    b,
                    &[&row.at[..], &[coord]].concat(),
                    &self.field.box_extents(extents),
                );
                let coords = [&row.coords[..], &[coord]].concat();
                let place = self.field.storage_in(b, *container, coords);
                (self.sum(b, extents, own, lo + part * extent), place)
            };
            let shared = |b: &mut Builder<'_>, first: i64, end: i64| {
                along(b, first, end, &mut |b, coord| {
                    let (value, place) = at(b, coord);
                    add_atomically(b, place, value);
                });
            };
            match part {
                -1 => shared(b, extent - lo, extent),
                1 => shared(b, 0, hi),
                _ if lo + hi >= extent => shared(b, 0, extent),
                _ => {
                    // Of a row in the middle the neighbours reach both ends only.
                    let middle = |b: &mut Builder<'_>| {
                        shared(b, 0, hi);
                        along(b, hi, extent - lo, &mut |b, coord| {
                            let (value, place) = at(b, coord);
                            let old = b.load(place);
                            let new = b.binary(BinaryOp::Add, old, value);
                            b.store(place, new);
                        });
                        shared(b, extent - lo, extent);
                    };
                    let Some(cond) = row.middle else {
                        middle(b);
                        continue;
                    };
                    let then = b.region(&[], |b, _| middle(b));
                    let otherwise = b.region(&[], |b, _| shared(b, 0, extent));
                    b.effect(Op::If {
                        cond,
                        then,
                        otherwise,
                    });
                }
            }
        }
    }

    /// The sum of all boxes' elements that are `first` behind `own`.
    fn sum(&self, b: &mut Builder<'_>, extents: &[i64], own: Value, first: i64) -> Value {
        let size = self.box_size(extents);
        let mut sum: Option<Value> = None;
        for k in 0..self.beside.len() as i64 {
            let place = element(b, &self.field, self.storage(), own, first + k * size);
            let part = b.load(place);
            sum = Some(sum.map_or(part, |sum| b.binary(BinaryOp::Add, sum, part)));
        }
        sum.expect("there is a box")
    }
}

/// Writes a loop from `first` to `end`, if that is any further.
fn along(b: &mut Builder<'_>, first: i64, end: i64, body: &mut dyn FnMut(&mut Builder<'_>, Value)) {
    if first < end {
        let ends = [first, end].map(|end| b.i32(end as i32));
        b.for_(ends[0], ends[1], body);
    }
}

/// Adds what is not zero to what others may add to as well. What nothing in the program reaches, where a box
/// has corners, stays as it is.
fn add_atomically(b: &mut Builder<'_>, place: Value, value: Value) {
    let ty = b.func.ty(value);
    let zero = b.constant(Scalar::zero(b.func.elem(value)));
    let cond = b.compare(CompareOp::Ne, value, zero);
    let then = b.region(&[], |b, _| {
        let op = AtomicOp::Add;
        b.value(Op::Atomic { op, place, value }, ty);
    });
    let otherwise = b.region(&[], |_, _| {});
    b.effect(Op::If {
        cond,
        then,
        otherwise,
    });
}

/// Rows of a box, along some axes of which it is known where they are.
struct Rows {
    /// The coordinates in the box along those axes.
    at: Vec<Value>,
    /// The coordinates in the block that they lie in.
    coords: Vec<Value>,
    /// Whether the blocks around reach nothing there, which needs an axis to be known.
    middle: Option<Value>,
    /// The blocks' containers, by where they are along the other axes.
    containers: Vec<(Vec<i64>, Value)>,
}

impl Rows {
    /// The containers of blocks at `part` along the next axis.
    fn beyond(&self, part: i64) -> Vec<(Vec<i64>, Value)> {
        let containers = self.containers.iter().filter(|c| c.0[0] == part);
        containers.map(|c| (c.0[1..].to_vec(), c.1)).collect()
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
