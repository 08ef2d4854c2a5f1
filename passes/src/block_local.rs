//! Blocks around that a loop over sparse cells reads are looked up once for each block.
//!
//! ```text
//! for i in 0..8 { for j in 0..8 {           for the blocks around that are reached {
//!     .. load x[i0 + i + 1, j0 + j] ..          look it up; outside it is the ambient one }
//!     .. load x[i0 + i, j0 + j - 1] ..  ==> for i in 0..8 { for j in 0..8 {
//! } }                                           .. load (i + 1 >= 8 ? after : own)[(i + 1) % 8, j] ..
//!                                               .. j < 1 ? load before[i, j + 7] : load own[i, j - 1] ..
//!                                           } }
//! ```
//! A block is what lies in one cell of the list: dense cells along axes of known extents. Along all
//! axes but the last a neighbour's row is that of one block or another, so that the innermost loop
//! reads contiguous memory and vectorises. Along the last axis both rows are read and lane by lane
//! one is taken (`in_place.rs`).
//!
//! Fields of other trees are read so too where their blocks divide the indices alike; what is written there is
//! the topic of `written.rs`.
//!
//! Which bitmasked cells around are active is the topic of `activity.rs`.
//!
//! Where a field's cells do not lie side by side, or many neighbours along the last axis are read, the block and what
//! is reached of those around it are copied to a local box first, which the loop reads instead. It pays
//! from three different neighbours on: then a cell's look-ups cost more than copying it.

use aerogel_base::ScalarType;
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Function, Inst, NodeRef, Op, Region, Type, Value, walk,
};
use aerogel_snode::{NodeId, NodeKind, Tree};

use crate::PassCx;
use crate::access::writes;
use crate::access::{Class, constant_element, is_quantised};

mod activity;
mod copied;
mod in_place;
pub(crate) mod written;

use activity::Activity;
pub(crate) use written::Written;

/// From so many different elements on a field is copied.
const WORTH: usize = 3;
/// The most different elements beside a cell along the last axis that are read in place.
const MOST_BESIDE: usize = 8;
/// How far beyond a container one may read: the memory around an arena is a tree's.
const MOST_BEYOND: u64 = 4096;
/// The most bytes copied for a loop: they lie on the stack, and should stay in the cache.
const MOST_BYTES: i64 = 128 << 10;

/// What is looked up around a block for the loops over it.
pub(crate) enum Around {
    /// Elements of fields, for dense cells.
    Elements(Gathered),
    /// Which cells are active, for bitmasked ones.
    Activity(Activity),
}

impl Around {
    /// What is worth looking up for a loop over the cells of `node`, in blocks that are cells of
    /// `block`.
    pub(crate) fn find(
        func: &Function,
        cx: &PassCx<'_>,
        node: NodeRef,
        block: NodeId,
        body: Region,
        params: &[Value],
    ) -> Option<Self> {
        let elements = Gathered::find(func, cx, node, block, body, params).map(Self::Elements);
        elements.or_else(|| Activity::find(func, cx, node, block, body, params).map(Self::Activity))
    }

    /// Writes the look-ups for the block `cell` at `indices`.
    pub(crate) fn prologue(
        &mut self,
        b: &mut Builder<'_>,
        tree: &Tree,
        block: NodeRef,
        cell: Value,
        indices: &[Value],
    ) {
        match self {
            Self::Elements(gathered) => gathered.prologue(b, tree, block, cell, indices),
            Self::Activity(activity) => activity.prologue(b, tree, block, cell, indices),
        }
    }

    /// Writes what is asked once for the cells of a mask's word of number `word`, which is `mask`.
    pub(crate) fn word(&mut self, b: &mut Builder<'_>, word: Value, mask: Value) {
        if let Self::Activity(activity) = self {
            activity.word(b, word, mask);
        }
    }

    /// Makes the body read what was looked up; `cell` is the iteration's own.
    pub(crate) fn redirect(&self, b: &mut Builder<'_>, cell: Value) {
        match self {
            Self::Elements(gathered) => gathered.redirect(b, cell),
            Self::Activity(activity) => activity.redirect(b, cell),
        }
    }
}

/// What is looked up for the loops over one block of dense cells.
pub(crate) struct Gathered {
    /// The extents of a block.
    extents: Vec<i64>,
    fields: Vec<Field>,
}

/// One place whose neighbours are read.
struct Field {
    place: NodeRef,
    /// The node of the blocks.
    block: NodeRef,
    /// The node of the block's cells.
    leaf: NodeId,
    elem: ScalarType,
    /// The loads, and how far off the iteration's own cell each one is.
    loads: Vec<(Inst, Vec<i64>)>,
    /// How far the loads reach below and beyond the block along each axis.
    lo: Vec<i64>,
    hi: Vec<i64>,
    way: Way,
}

/// How a field's neighbours are read.
enum Way {
    /// Where they lie: the containers of the blocks that are reached.
    InPlace(Vec<(Vec<i64>, Value)>),
    /// From a copy: its storage, once there is one.
    Copied(Option<Value>),
}

impl Gathered {
    /// What is worth looking up for a loop over the cells of `node`, in blocks that are cells of
    /// `block`.
    fn find(
        func: &Function,
        cx: &PassCx<'_>,
        node: NodeRef,
        block: NodeId,
        body: Region,
        params: &[Value],
    ) -> Option<Self> {
        let tree = &cx.env.trees[node.tree];
        let extents = block_extents(tree, block, node.node, NodeKind::Dense)?;
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
            let Some((place, off)) = neighbour(func, cx, params, place) else {
                return;
            };
            if written.classes.contains(&Class::Place(place)) {
                return;
            }
            match fields.iter_mut().find(|f| f.place == place) {
                Some(field) => field.loads.push((inst, off)),
                None => {
                    let NodeKind::Place(elem) = cx.env.trees[place.tree][place.node].kind else {
                        unreachable!("a field's places are places")
                    };
                    if let Some((block, leaf)) = blocks_alike(cx, place, node, block) {
                        fields.push(Field {
                            place,
                            block,
                            leaf,
                            elem,
                            loads: vec![(inst, off)],
                            lo: Vec::new(),
                            hi: Vec::new(),
                            way: Way::Copied(None),
                        });
                    }
                }
            }
        });
        fields.retain_mut(|field| {
            let elsewhere = field.block.tree != node.tree || field.block.node != block;
            let tree = &cx.env.trees[field.place.tree];
            field.measure(tree, &extents, most, elsewhere)
        });
        let mut bytes = 0;
        fields.retain(|field| {
            if let Way::InPlace(_) = field.way {
                return true;
            }
            let n: i64 = field.box_extents(&extents).iter().product();
            bytes += n * i64::from(field.elem.bytes());
            bytes <= MOST_BYTES
        });
        (!fields.is_empty()).then_some(Self { extents, fields })
    }

    /// Writes the look-ups for the block `cell` at `indices`.
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
            if let Way::Copied(storage) = &mut field.way {
                *storage = Some(b.local(Type::Vec(n as u32, field.elem)));
            }
        }
        let shape = tree.shape(block.node);
        for part in self.parts() {
            let mut around: Vec<(NodeRef, Value)> = Vec::new();
            for field in &mut self.fields {
                if field.reaches(&part) {
                    let there = around.iter().find(|a| a.0 == field.block);
                    let around = there.map(|a| a.1).unwrap_or_else(|| {
                        let own = (field.block == block).then_some(cell);
                        let found = block_around(b, &shape, field.block, own, indices, &part);
                        around.push((field.block, found));
                        found
                    });
                    let container = field.container_in(b, around);
                    match &mut field.way {
                        Way::InPlace(containers) => {
                            containers.push((part.clone(), container));
                            // Those along the last axis are the blocks that the loop comes from and goes to.
                            if part[..part.len() - 1].iter().any(|&p| p != 0) {
                                in_place::prefetch(b, field, container, &self.extents, &part);
                            }
                        }
                        &mut Way::Copied(storage) => {
                            let storage = storage.expect("it was just made");
                            copied::copy(b, field, storage, container, &self.extents, &part);
                        }
                    }
                }
            }
        }
    }

    /// Makes the body read from there; `cell` is the iteration's own.
    pub(crate) fn redirect(&self, b: &mut Builder<'_>, cell: Value) {
        let index = own_index(b.func, cell);
        for field in &self.fields {
            match &field.way {
                Way::InPlace(containers) if field.is_beside() => {
                    in_place::redirect_beside(b, field, containers[0].1, index);
                }
                Way::InPlace(containers) => {
                    let coords = own_coords(b.func, index);
                    in_place::redirect(b, field, containers, &self.extents, &coords);
                }
                &Way::Copied(storage) => {
                    let storage = storage.expect("the prologue comes first");
                    let coords = own_coords(b.func, index);
                    copied::redirect(b, field, storage, &self.extents, &coords);
                }
            }
        }
    }

    /// The blocks that some load reaches: for each axis the one before, the own, or the next.
    fn parts(&self) -> Vec<Vec<i64>> {
        let mut parts = parts(self.extents.len());
        parts.retain(|part| self.fields.iter().any(|f| f.reaches(part)));
        // What lies far off first, so that it is on its way while the block itself is copied.
        parts.reverse();
        parts
    }
}

impl Field {
    /// Finds out how far the loads reach and how to read them best; whether that pays. What lies
    /// `elsewhere` than in the loop's own blocks would be looked up for each cell.
    fn measure(&mut self, tree: &Tree, extents: &[i64], most: i64, elsewhere: bool) -> bool {
        let mut different: Vec<&Vec<i64>> = self.loads.iter().map(|l| &l.1).collect();
        different.sort();
        different.dedup();
        let n = different.len();
        let last = extents.len() - 1;
        let n_beside = different.iter().filter(|off| off[last] != 0).count();
        for axis in 0..extents.len() {
            let reach = |sign: i64| self.loads.iter().map(|l| sign * l.1[axis]).max();
            self.lo.push(reach(-1).unwrap_or(0).max(0));
            self.hi.push(reach(1).unwrap_or(0).max(0));
        }
        let near = |reach: &[i64]| reach.iter().zip(extents).all(|(r, e)| r <= e);
        if !(near(&self.lo) && near(&self.hi)) {
            return false;
        }
        if self.is_beside() {
            self.way = Way::InPlace(Vec::new());
            return elsewhere;
        }
        let cell = tree[self.leaf].cell_size;
        let side_by_side = cell == u64::from(self.elem.bytes());
        if side_by_side && cell * extents[last] as u64 <= MOST_BEYOND && n_beside <= MOST_BESIDE {
            self.way = Way::InPlace(Vec::new());
            return true;
        }
        let size: i64 = self.box_extents(extents).iter().product();
        n >= WORTH && size <= most
    }

    /// Whether nothing but the element at the iteration's own indices is read.
    fn is_beside(&self) -> bool {
        self.lo.iter().chain(&self.hi).all(|&reach| reach == 0)
    }

    fn box_extents(&self, extents: &[i64]) -> Vec<i64> {
        let reach = self.lo.iter().zip(&self.hi);
        extents
            .iter()
            .zip(reach)
            .map(|(e, (l, h))| e + l + h)
            .collect()
    }

    /// Whether some load may lie in the block at `part`.
    fn reaches(&self, part: &[i64]) -> bool {
        self.loads.iter().any(|(_, off)| reaches(off, part))
    }

    /// What some load may reach of the block at `part`, along each axis.
    fn reached(&self, extents: &[i64], part: &[i64]) -> Vec<(i64, i64)> {
        let axes = part.iter().zip(extents).enumerate();
        axes.map(|(axis, (&p, &e))| match p {
            -1 => (e - self.lo[axis], e),
            0 => (0, e),
            _ => (0, self.hi[axis]),
        })
        .collect()
    }

    /// The storage of the field's own component in a cell of the leaf.
    fn storage_in(&self, b: &mut Builder<'_>, container: Value, coords: Vec<Value>) -> Value {
        let leaf = self.leaf();
        let index = b.value(Op::Linearize { node: leaf, coords }, Type::I64);
        self.storage_at(b, container, index)
    }

    /// The same in the cell of that number.
    fn storage_at(&self, b: &mut Builder<'_>, container: Value, index: Value) -> Value {
        let leaf = self.leaf();
        let op = Op::Lookup {
            node: leaf,
            container,
            index,
        };
        let cell = b.value(op, Type::Cell(leaf.tree, leaf.node));
        let place = Op::Child {
            node: self.place,
            cell,
        };
        b.value(place, self.storage_type())
    }

    /// The field's container in a block.
    fn container_in(&self, b: &mut Builder<'_>, block: Value) -> Value {
        let node = self.leaf();
        let ty = Type::Container(node.tree, node.node);
        b.value(Op::Child { node, cell: block }, ty)
    }

    fn leaf(&self) -> NodeRef {
        NodeRef {
            tree: self.place.tree,
            node: self.leaf,
        }
    }

    fn storage_type(&self) -> Type {
        let scalar = Type::Scalar(self.elem);
        scalar.to_ref().expect("a scalar's storage")
    }
}

/// The blocks around one, and itself: for each axis the one before, the own, or the next.
fn parts(n_axes: usize) -> Vec<Vec<i64>> {
    let mut parts: Vec<Vec<i64>> = vec![vec![]];
    for _ in 0..n_axes {
        let longer = |p: &Vec<i64>| [0, -1, 1].map(|k| [p.clone(), vec![k]].concat());
        parts = parts.iter().flat_map(longer).collect();
    }
    parts
}

/// Whether what is `off` from some cell may lie in the block at `part`.
fn reaches(off: &[i64], part: &[i64]) -> bool {
    let mut axes = off.iter().zip(part);
    axes.all(|(&d, &p)| p == 0 || d.signum() == p)
}

/// The block at `part` of that at `indices`, which is `own` if it is the loop's; the ambient one if there is none.
fn block_around(
    b: &mut Builder<'_>,
    shape: &[u64],
    block: NodeRef,
    own: Option<Value>,
    indices: &[Value],
    part: &[i64],
) -> Value {
    let ty = Type::Cell(block.tree, block.node);
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
    let find = |b: &mut Builder<'_>, indices: Vec<Value>| {
        let node = block;
        b.value(Op::FindCell { node, indices }, ty)
    };
    let Some(cond) = inside else {
        return own.unwrap_or_else(|| find(b, indices.to_vec()));
    };
    // The look-up itself stays inside.
    for (axis, &p) in part.iter().enumerate() {
        if p != 0 {
            around[axis] = b.select(cond, around[axis], indices[axis]);
        }
    }
    let found = find(b, around);
    let ambient = b.value(Op::Ambient { node: block }, ty);
    b.select(cond, found, ambient)
}

/// The blocks in which a place lies, and the node of their cells, if they divide the same indices as the blocks
/// `block` of a loop over `node` do.
fn blocks_alike(
    cx: &PassCx<'_>,
    place: NodeRef,
    node: NodeRef,
    block: NodeId,
) -> Option<(NodeRef, NodeId)> {
    let [own, tree] = [node.tree, place.tree].map(|id| &cx.env.trees[id]);
    let leaf = tree[place.node].parent?;
    let above = tree[leaf].parent?;
    let alike = tree[above].kind.has_list()
        && block_extents(tree, above, leaf, NodeKind::Dense)
            == block_extents(own, block, node.node, NodeKind::Dense)
        && tree.shape_axes(above) == own.shape_axes(block)
        && tree[leaf].axes == own[node.node].axes;
    let block = NodeRef {
        tree: place.tree,
        node: above,
    };
    alike.then_some((block, leaf))
}

/// The extents of the one level, of that kind, between `block` and the cells of `node`.
fn block_extents(tree: &Tree, block: NodeId, node: NodeId, kind: NodeKind) -> Option<Vec<i64>> {
    let data = &tree[node];
    if data.kind != kind || data.parent != Some(block) {
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
    if indices.len() != params.len() {
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

/// The number in its block of a cell that the loops have looked up.
fn own_index(func: &Function, cell: Value) -> Value {
    let Some(&Op::Lookup { index, .. }) = func.def_op(cell) else {
        unreachable!("dense and bitmasked cells are looked up")
    };
    index
}

/// The coordinates of a cell of that number.
fn own_coords(func: &Function, index: Value) -> Vec<Value> {
    let Some(Op::Linearize { coords, .. }) = func.def_op(index) else {
        unreachable!("the loops go along the axes")
    };
    coords.clone()
}

#[cfg(test)]
mod tests;
