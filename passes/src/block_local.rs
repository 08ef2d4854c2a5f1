//! Neighbours that a loop over sparse cells reads are gathered once for each block.
//!
//! ```text
//! for i in 0..8 { for j in 0..8 {           v0 = local                      ; 10 x 10 values
//!     .. load x[i0 + i - 1, j0 + j] ..      for the block and those around it that are reached {
//!     .. load x[i0 + i + 1, j0 + j] ..          if it is inside { copy what is reached to v0 } }
//! } }                                 ==>   for i in 0..8 { for j in 0..8 {
//!                                               .. load v0[10 i + j + 1] ..
//!                                               .. load v0[10 (i + 2) + j + 1] ..  } }
//! ```
//! A block is what lies in one cell of the list: dense cells along axes of known extents. One look-up
//! finds a whole block around it, and the loop itself reads contiguous memory, so that it vectorises.
//! It pays from three different neighbours on: then a cell's look-ups cost more than copying it.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Function, Inst, NodeRef, Op, Region, Type, Value, walk,
};
use aerogel_snode::{NodeId, NodeKind, Tree};

use crate::PassCx;
use crate::access::writes;
use crate::access::{Class, constant_element, is_quantised};
use crate::cells;

/// From so many different elements on a field is gathered.
const WORTH: usize = 3;
/// The most bytes gathered for a loop: they lie on the stack, and should stay in the cache.
const MOST_BYTES: i64 = 128 << 10;

/// What is gathered for the loops over one block.
pub(crate) struct Gathered {
    /// The extents of a block.
    extents: Vec<i64>,
    fields: Vec<Field>,
}

/// One place whose neighbours are read.
struct Field {
    place: NodeRef,
    /// The node of the block's cells.
    leaf: NodeId,
    elem: ScalarType,
    /// The loads, and how far off the iteration's own cell each one is.
    loads: Vec<(Inst, Vec<i64>)>,
    /// How far the loads reach below and beyond the block along each axis.
    lo: Vec<i64>,
    hi: Vec<i64>,
    /// Where the values are.
    storage: Option<Value>,
}

impl Gathered {
    /// What is worth gathering for a loop over the cells of `node`, in blocks that are cells of
    /// `block`.
    pub(crate) fn find(
        func: &Function,
        cx: &PassCx<'_>,
        node: NodeRef,
        block: NodeId,
        body: Region,
        params: &[Value],
    ) -> Option<Self> {
        let tree = &cx.env.trees[node.tree];
        let extents = block_extents(tree, block, node.node)?;
        let written = writes(func, cx.env, body);
        if written.anything {
            return None;
        }
        let mut fields: Vec<Field> = Vec::new();
        let most = cx.options.thresholds.most_gathered as i64;
        walk(func, body, &mut |func, inst| {
            let Op::Load { place } = func[inst] else {
                return;
            };
            if is_quantised(func, cx.env, place) {
                return;
            }
            let Some((place, off)) = neighbour(func, cx, node, params, place) else {
                return;
            };
            if written.classes.contains(&Class::Place(place)) {
                return;
            }
            match fields.iter_mut().find(|f| f.place == place) {
                Some(field) => field.loads.push((inst, off)),
                None => {
                    let NodeKind::Place(elem) = tree[place.node].kind else {
                        unreachable!("a field's places are places")
                    };
                    let leaf = tree[place.node].parent.expect("a place has a parent");
                    if block_extents(tree, block, leaf).as_ref() == Some(&extents) {
                        fields.push(Field {
                            place,
                            leaf,
                            elem,
                            loads: vec![(inst, off)],
                            lo: Vec::new(),
                            hi: Vec::new(),
                            storage: None,
                        });
                    }
                }
            }
        });
        fields.retain_mut(|field| field.measure(&extents, most));
        let mut bytes = 0;
        fields.retain(|field| {
            let n: i64 = field.box_extents(&extents).iter().product();
            bytes += n * i64::from(field.elem.bytes());
            bytes <= MOST_BYTES
        });
        (!fields.is_empty()).then_some(Self { extents, fields })
    }

    /// Writes the gathering for the block `cell` at `indices`.
    pub(crate) fn prologue(
        &mut self,
        b: &mut Builder<'_>,
        tree: &Tree,
        block: NodeRef,
        cell: Value,
        indices: &[Value],
    ) {
        for field in &mut self.fields {
            let n = field.box_extents(&self.extents).iter().product::<i64>();
            field.storage = Some(b.local(Type::Vec(n as u32, field.elem)));
        }
        for part in self.parts() {
            if part.iter().all(|&p| p == 0) {
                self.copy(b, block, cell, &part);
                continue;
            }
            let shape = tree.shape(block.node);
            let mut inside: Option<Value> = None;
            let mut around = indices.to_vec();
            for (axis, &p) in part.iter().enumerate().filter(|(_, p)| **p != 0) {
                let step = b.i32(p as i32);
                around[axis] = b.binary(BinaryOp::Add, indices[axis], step);
                let (op, bound) = if p < 0 {
                    (CompareOp::Ge, 0)
                } else {
                    (CompareOp::Lt, shape[axis] as i32)
                };
                let bound = b.i32(bound);
                let ok = b.compare(op, around[axis], bound);
                inside = Some(inside.map_or(ok, |all| b.binary(BinaryOp::And, all, ok)));
            }
            let then = cells::region(b, &[], |b, _| {
                let op = Op::FindCell {
                    node: block,
                    indices: around,
                };
                let cell = b.value(op, Type::Cell(block.tree, block.node));
                self.copy(b, block, cell, &part);
            });
            let otherwise = cells::region(b, &[], |_, _| {});
            b.effect(Op::If {
                cond: inside.expect("some axis leads away"),
                then,
                otherwise,
            });
        }
    }

    /// Makes the body read what was gathered; `cell` is the iteration's own.
    pub(crate) fn redirect(&self, b: &mut Builder<'_>, cell: Value) {
        let coords = own_coords(b.func, cell);
        for field in &self.fields {
            let sizes = field.box_extents(&self.extents);
            let own = row_major(b, &coords, &sizes);
            for (inst, off) in &field.loads {
                let shifted = off.iter().zip(&field.lo).map(|(d, lo)| d + lo);
                let constant = shifted.zip(&sizes).fold(0, |sum, (d, n)| sum * n + d);
                let constant = b.i32(constant as i32);
                let at = b.binary(BinaryOp::Add, own, constant);
                let place = field.element(b, at);
                b.func.insts[*inst].op = Op::Load { place };
            }
        }
    }

    /// The blocks that some load reaches: for each axis the one before, the own, or the next.
    fn parts(&self) -> Vec<Vec<i64>> {
        let mut parts: Vec<Vec<i64>> = vec![vec![]];
        for _ in &self.extents {
            let longer = |p: &Vec<i64>| [0, -1, 1].map(|k| [p.clone(), vec![k]].concat());
            parts = parts.iter().flat_map(longer).collect();
        }
        let reaches = |off: &[i64], part: &[i64]| {
            off.iter()
                .zip(part)
                .all(|(&d, &p)| p == 0 || d.signum() == p)
        };
        parts.retain(|part| self.fields.iter().any(|f| f.reaches(part, &reaches)));
        // What lies far off first, so that it is on its way while the block itself is copied.
        parts.reverse();
        parts
    }

    /// Copies what is reached of a block.
    fn copy(&self, b: &mut Builder<'_>, block: NodeRef, cell: Value, part: &[i64]) {
        for field in &self.fields {
            let ranges: Vec<(i64, i64)> = part
                .iter()
                .enumerate()
                .map(|(axis, p)| match p {
                    -1 => (self.extents[axis] - field.lo[axis], self.extents[axis]),
                    0 => (0, self.extents[axis]),
                    _ => (0, field.hi[axis]),
                })
                .collect();
            if ranges.iter().any(|(lo, hi)| lo >= hi) {
                continue;
            }
            let leaf = NodeRef {
                tree: block.tree,
                node: field.leaf,
            };
            let op = Op::Child { node: leaf, cell };
            let container = b.value(op, Type::Container(leaf.tree, leaf.node));
            self.copy_axes(b, field, (leaf, container), part, &ranges, Vec::new());
        }
    }

    fn copy_axes(
        &self,
        b: &mut Builder<'_>,
        field: &Field,
        from: (NodeRef, Value),
        part: &[i64],
        ranges: &[(i64, i64)],
        coords: Vec<Value>,
    ) {
        let Some(&(lo, hi)) = ranges.get(coords.len()) else {
            let sizes = field.box_extents(&self.extents);
            let first = part.iter().zip(&field.lo).zip(&self.extents);
            let constant = first
                .map(|((p, lo), e)| lo + p * e)
                .zip(&sizes)
                .fold(0, |sum, (d, n)| sum * n + d);
            let own = row_major(b, &coords, &sizes);
            let constant = b.i32(constant as i32);
            let at = b.binary(BinaryOp::Add, own, constant);
            let to = field.element(b, at);
            let (node, container) = from;
            let index = b.value(Op::Linearize { node, coords }, Type::I64);
            let op = Op::Lookup {
                node,
                container,
                index,
            };
            let cell = b.value(op, Type::Cell(node.tree, node.node));
            let ty = Type::Scalar(field.elem)
                .to_ref()
                .expect("a scalar's storage");
            let place = Op::Child {
                node: field.place,
                cell,
            };
            let place = b.value(place, ty);
            let value = b.load(place);
            b.store(to, value);
            return;
        };
        let (lo, hi) = (b.i32(lo as i32), b.i32(hi as i32));
        cells::for_loop(b, lo, hi, &mut |b, coord| {
            let coords = [coords.clone(), vec![coord]].concat();
            self.copy_axes(b, field, from, part, ranges, coords);
        });
    }
}

impl Field {
    /// Finds out how far the loads reach; whether gathering pays.
    fn measure(&mut self, extents: &[i64], most: i64) -> bool {
        let mut different: Vec<&Vec<i64>> = self.loads.iter().map(|l| &l.1).collect();
        different.sort();
        different.dedup();
        let n = different.len();
        for axis in 0..extents.len() {
            let reach = |sign: i64| self.loads.iter().map(|l| sign * l.1[axis]).max();
            self.lo.push(reach(-1).unwrap_or(0).max(0));
            self.hi.push(reach(1).unwrap_or(0).max(0));
        }
        let near = |reach: &[i64]| reach.iter().zip(extents).all(|(r, e)| r <= e);
        let size: i64 = self.box_extents(extents).iter().product();
        n >= WORTH && near(&self.lo) && near(&self.hi) && size <= most
    }

    fn box_extents(&self, extents: &[i64]) -> Vec<i64> {
        let reach = self.lo.iter().zip(&self.hi);
        extents
            .iter()
            .zip(reach)
            .map(|(e, (l, h))| e + l + h)
            .collect()
    }

    fn reaches(&self, part: &[i64], reaches: &dyn Fn(&[i64], &[i64]) -> bool) -> bool {
        self.loads.iter().any(|(_, off)| reaches(off, part))
    }

    fn element(&self, b: &mut Builder<'_>, at: Value) -> Value {
        let base = self.storage.expect("the prologue comes first");
        let ty = Type::Scalar(self.elem)
            .to_ref()
            .expect("a scalar's storage");
        let index = vec![at];
        b.value(Op::ElemRef { base, index }, ty)
    }
}

/// The extents of the one dense level between `block` and the cells of `node`.
fn block_extents(tree: &Tree, block: NodeId, node: NodeId) -> Option<Vec<i64>> {
    let data = &tree[node];
    if data.kind != NodeKind::Dense || data.parent != Some(block) {
        return None;
    }
    // Along every axis there is a block before and one after.
    let all = tree.shape_axes(node).len() == data.axes.len();
    let same = tree.shape_axes(block).len() == data.axes.len();
    let extents = data.axes.iter().map(|a| i64::from(a.extent));
    (all && same).then(|| extents.collect())
}

/// The place that a storage lies in and how far from the iteration's own cell it is, if that is known.
fn neighbour(
    func: &Function,
    cx: &PassCx<'_>,
    node: NodeRef,
    params: &[Value],
    storage: Value,
) -> Option<(NodeRef, Vec<i64>)> {
    let (field, indices, k) = match func.def_op(storage)? {
        Op::FieldAt { field, indices } => (*field, indices, 0),
        Op::ElemRef { base, index } => {
            let Op::FieldAt { field, indices } = func.def_op(*base)? else {
                return None;
            };
            (*field, indices, constant_element(func, *base, index)?)
        }
        _ => return None,
    };
    let data = &cx.env.fields[field];
    if data.tree != node.tree || indices.len() != params.len() {
        return None;
    }
    let mut off = Vec::new();
    for (axis, (&index, &param)) in indices.iter().zip(params).enumerate() {
        let first = data.offset.get(axis).copied().unwrap_or(0);
        off.push(distance(func, index, param)? - i64::from(first));
    }
    let place = NodeRef {
        tree: data.tree,
        node: data.places[k],
    };
    Some((place, off))
}

/// The constant `c` for which `index = param + c`.
fn distance(func: &Function, index: Value, param: Value) -> Option<i64> {
    if index == param {
        return Some(0);
    }
    let constant = |v: Value| func.as_const(v).map(|c| c.as_i128() as i64);
    match *func.def_op(index)? {
        Op::Binary { op, lhs, rhs } => match (op, constant(lhs), constant(rhs)) {
            (BinaryOp::Add, Some(c), None) => Some(distance(func, rhs, param)? + c),
            (BinaryOp::Add, None, Some(c)) => Some(distance(func, lhs, param)? + c),
            (BinaryOp::Sub, None, Some(c)) => Some(distance(func, lhs, param)? - c),
            _ => None,
        },
        _ => None,
    }
}

/// The coordinates in its block of a cell that the loops have looked up.
fn own_coords(func: &Function, cell: Value) -> Vec<Value> {
    let Some(&Op::Lookup { index, .. }) = func.def_op(cell) else {
        unreachable!("a dense cell is looked up")
    };
    let Some(Op::Linearize { coords, .. }) = func.def_op(index) else {
        unreachable!("the loops go along the axes")
    };
    coords.clone()
}

/// The number of an element of a box, without its first coordinates.
fn row_major(b: &mut Builder<'_>, coords: &[Value], sizes: &[i64]) -> Value {
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

#[cfg(test)]
mod tests;
