//! Neighbouring blocks that a loop over sparse cells reads are looked up once for each block.
//!
//! ```text
//! for i in 0..8 { for j in 0..8 {           for the blocks around that are reached {
//!     .. load x[i0 + i + 1, j0 + j] ..          look it up; outside it is the ambient one }
//!     .. load x[i0 + i, j0 + j - 1] ..  ==> for i in 0..8 { for j in 0..8 {
//! } }                                           .. load (i + 1 >= 8 ? after : own)[(i + 1) % 8, j] ..
//!                                               .. j < 1 ? load before[i, j + 7] : load own[i, j - 1] ..
//!                                           } }
//! ```
//! A block is one cell of the list: dense cells along axes of known sizes. Along all axes but the last,
//! a neighbour's row belongs to a single block, so that the innermost loop reads contiguous memory and
//! vectorises. Along the last axis both rows are read, and each lane selects one of them
//! (`in_place.rs`).
//!
//! Fields of other trees are read so too where their blocks divide the indices alike; what is written there is
//! the topic of `written.rs`.
//!
//! Which bitmasked cells around are active is the topic of `activity.rs`.
//!
//! Where a field's cells do not lie side by side, or many neighbours along the last axis are read, the block and what
//! is reached of those around it are copied to a local box first, which the loop reads instead. It pays
//! from three different neighbours on: then a cell's look-ups cost more than copying it.
//!
//! Elements around a cell that are added to are the topic of `scattered.rs`.

use aerogel_ir::analysis::access::writes;
use aerogel_ir::analysis::access::{Class, is_quantised};
use aerogel_ir::{Builder, Function, NodeRef, Op, Region, Type, Value, walk};
use aerogel_snode::{NodeId, NodeKind, Tree};

use crate::PassCx;

mod activity;
mod copied;
mod in_place;
pub(crate) mod look_around;
mod neighbours;
mod scattered;
mod shared;
mod shared_sums;
mod written;

use activity::Activity;
use neighbours::{Field, block_around, block_extents, neighbour, own_coords, own_index, parts};
pub(crate) use shared::Shared;
pub(crate) use shared_sums::SharedSums;
pub(crate) use written::Written;

/// From so many different elements on a field is copied.
const WORTH: usize = 3;
/// The most different elements beside a cell along the last axis that are read in place.
const MOST_BESIDE: usize = 8;
/// How far beyond a container one may read: the memory around an arena is a tree's.
const MOST_BEYOND: u64 = 4096;
/// The most bytes of boxes for a loop: they lie on the stack, and should stay in the cache.
const MOST_BYTES: i64 = 128 << 10;

/// The look-ups around a block for the loops over it.
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

    fn kind(&self) -> aerogel_ir::Around {
        match self {
            Self::Elements(_) => aerogel_ir::Around::Elements,
            Self::Activity(_) => aerogel_ir::Around::Activity,
        }
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

    /// Emits the queries that run once for the cells of the mask's word number `word`, whose bits are `mask`.
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

/// The shape of the blocks `block` of a loop over the dense cells of `node`, and the fields whose elements it reads, if
/// all of them are at known distances.
fn read_around(
    func: &Function,
    cx: &PassCx<'_>,
    node: NodeRef,
    block: NodeId,
    body: Region,
    params: &[Value],
) -> Option<(Vec<i64>, Vec<Field>)> {
    let tree = &cx.env.trees[node.tree];
    let extents = block_extents(tree, block, node.node, NodeKind::Dense)?;
    let written = writes(func, cx.env, body);
    if written.anything {
        return None;
    }
    let mut found: Vec<Field> = Vec::new();
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
        match found.iter_mut().find(|f| f.place == place) {
            Some(field) => field.accesses.push((inst, off)),
            None => found.extend(Field::find(cx, place, (node, block), (inst, off))),
        }
    });
    Some((extents, found))
}

/// The look-ups for the loops over one block of dense cells.
pub(crate) struct Gathered {
    /// The shape of a block.
    extents: Vec<i64>,
    fields: Vec<(Field, Way)>,
}

/// How a field's neighbours are read.
enum Way {
    /// Where they lie: the containers of the blocks that are reached.
    InPlace(Vec<(Vec<i64>, Value)>),
    /// From a copy: its storage, once there is one.
    Copied(Option<Value>),
}

impl Way {
    /// How to read the neighbours of a field best, whose reach it measures; none if that does not pay. What lies
    /// `elsewhere` than in the loop's own blocks would be looked up for each cell.
    fn find(
        field: &mut Field,
        tree: &Tree,
        extents: &[i64],
        most: i64,
        elsewhere: bool,
    ) -> Option<Self> {
        if !field.measure(extents) {
            return None;
        }
        let last = extents.len() - 1;
        let different = field.distances();
        let n_beside = different.iter().filter(|off| off[last] != 0).count();
        if field.is_beside() {
            return elsewhere.then_some(Self::InPlace(Vec::new()));
        }
        let cell = tree[field.leaf].cell_size;
        let side_by_side = cell == u64::from(field.elem.bytes());
        if side_by_side && cell * extents[last] as u64 <= MOST_BEYOND && n_beside <= MOST_BESIDE {
            return Some(Self::InPlace(Vec::new()));
        }
        let size: i64 = field.box_extents(extents).iter().product();
        (different.len() >= WORTH && size <= most).then_some(Self::Copied(None))
    }
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
        let (extents, found) = read_around(func, cx, node, block, body, params)?;
        let most = cx.options.thresholds.most_gathered as i64;
        let mut fields = Vec::new();
        let mut bytes = 0;
        for mut field in found {
            let elsewhere = field.block.tree != node.tree || field.block.node != block;
            let tree = &cx.env.trees[field.place.tree];
            let Some(way) = Way::find(&mut field, tree, &extents, most, elsewhere) else {
                continue;
            };
            if let Way::Copied(_) = way {
                let size = field.box_bytes(&extents);
                if bytes + size > MOST_BYTES {
                    continue;
                }
                bytes += size;
            }
            fields.push((field, way));
        }
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
        for (field, way) in &mut self.fields {
            let n = field.box_extents(&self.extents).iter().product::<i64>();
            if let Way::Copied(storage) = way {
                *storage = Some(b.local(Type::Vec(n as u32, field.elem)));
            }
        }
        let shape = tree.shape(block.node);
        for part in self.parts() {
            let mut around: Vec<(NodeRef, Value)> = Vec::new();
            for (field, way) in &mut self.fields {
                if field.reaches(&part) {
                    let there = around.iter().find(|a| a.0 == field.block);
                    let around = there.map(|a| a.1).unwrap_or_else(|| {
                        let own = (field.block == block).then_some(cell);
                        let found = block_around(b, &shape, field.block, own, indices, &part);
                        around.push((field.block, found));
                        found
                    });
                    let container = field.container_in(b, around);
                    match way {
                        Way::InPlace(containers) => {
                            containers.push((part.clone(), container));
                            // Those along the last axis are the blocks that the loop comes from and goes to.
                            if part[..part.len() - 1].iter().any(|&p| p != 0) {
                                in_place::prefetch(b, field, container, &self.extents, &part);
                            }
                        }
                        Way::Copied(storage) => {
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
        for (field, way) in &self.fields {
            match way {
                Way::InPlace(containers) if field.is_beside() => {
                    in_place::redirect_beside(b, field, containers[0].1, index);
                }
                Way::InPlace(containers) => {
                    let coords = own_coords(b.func, index);
                    in_place::redirect(b, field, containers, &self.extents, &coords);
                }
                Way::Copied(storage) => {
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
        parts.retain(|part| self.fields.iter().any(|f| f.0.reaches(part)));
        // What lies far off first, so that it is on its way while the block itself is copied.
        parts.reverse();
        parts
    }
}

#[cfg(test)]
mod tests;
