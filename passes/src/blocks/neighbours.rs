//! Neighbours of a cell: their distances, and the blocks that contain them.

use aerogel_base::ScalarType;
use aerogel_ir::analysis::access::constant_element;
use aerogel_ir::analysis::affine::distance;
use aerogel_ir::{
    BinaryOp, Builder, CellOp, CompareOp, Function, Inst, NodeOp, NodeRef, Op, Type, Value,
};
use aerogel_snode::{NodeId, NodeKind, Tree};

use crate::PassCx;

/// A block: its node, and where it lies from the loop's own.
pub(super) type Block = (NodeRef, Vec<i64>);

/// One place whose neighbours are accessed.
pub(super) struct Field {
    pub(super) place: NodeRef,
    /// The node of the blocks.
    pub(super) block: NodeRef,
    /// The node of the block's cells.
    pub(super) leaf: NodeId,
    pub(super) elem: ScalarType,
    /// The accesses, and how far off the iteration's own cell each one is.
    pub(super) accesses: Vec<(Inst, Vec<i64>)>,
    /// How far the accesses reach below and beyond the block along each axis.
    pub(super) lo: Vec<i64>,
    pub(super) hi: Vec<i64>,
}

impl Field {
    /// The first access to a place: one that is `off` from the iteration's own cell. None if it does not lie in
    /// blocks that divide the indices as `block`, those of a loop over `node`, do.
    pub(super) fn find(
        cx: &PassCx<'_>,
        place: NodeRef,
        (node, block): (NodeRef, NodeId),
        access: (Inst, Vec<i64>),
    ) -> Option<Self> {
        let (block, leaf) = blocks_alike(cx, place, node, block)?;
        let NodeKind::Place(elem) = cx.env.trees[place.tree][place.node].kind else {
            unreachable!("a field's places are places")
        };
        Some(Self {
            place,
            block,
            leaf,
            elem,
            accesses: vec![access],
            lo: Vec::new(),
            hi: Vec::new(),
        })
    }

    /// Finds out how far the accesses reach; whether that is no further than the next blocks.
    pub(super) fn measure(&mut self, extents: &[i64]) -> bool {
        for axis in 0..extents.len() {
            let reach = |sign: i64| self.accesses.iter().map(|a| sign * a.1[axis]).max();
            self.lo.push(reach(-1).unwrap_or(0).max(0));
            self.hi.push(reach(1).unwrap_or(0).max(0));
        }
        let near = |reach: &[i64]| reach.iter().zip(extents).all(|(r, e)| r <= e);
        near(&self.lo) && near(&self.hi)
    }

    /// The different distances, in order.
    pub(super) fn distances(&self) -> Vec<&Vec<i64>> {
        let mut different: Vec<&Vec<i64>> = self.accesses.iter().map(|a| &a.1).collect();
        different.sort();
        different.dedup();
        different
    }

    /// Whether nothing but the element at the iteration's own indices is read.
    pub(super) fn is_beside(&self) -> bool {
        self.lo.iter().chain(&self.hi).all(|&reach| reach == 0)
    }

    pub(super) fn box_extents(&self, extents: &[i64]) -> Vec<i64> {
        let reach = self.lo.iter().zip(&self.hi);
        extents
            .iter()
            .zip(reach)
            .map(|(e, (l, h))| e + l + h)
            .collect()
    }

    pub(super) fn box_bytes(&self, extents: &[i64]) -> i64 {
        let n: i64 = self.box_extents(extents).iter().product();
        n * i64::from(self.elem.bytes())
    }

    /// Whether some access may lie in the block at `part`.
    pub(super) fn reaches(&self, part: &[i64]) -> bool {
        self.accesses.iter().any(|(_, off)| reaches(off, part))
    }

    /// The range of the block at `part` that accesses may reach, along each axis.
    pub(super) fn reached(&self, extents: &[i64], part: &[i64]) -> Vec<(i64, i64)> {
        let axes = part.iter().zip(extents).enumerate();
        axes.map(|(axis, (&p, &e))| match p {
            -1 => (e - self.lo[axis], e),
            0 => (0, e),
            _ => (0, self.hi[axis]),
        })
        .collect()
    }

    /// The storage of the field's own component in a cell of the leaf.
    pub(super) fn storage_in(
        &self,
        b: &mut Builder<'_>,
        container: Value,
        coords: Vec<Value>,
    ) -> Value {
        let leaf = self.leaf();
        let index = b.value(NodeOp::Linearize { node: leaf, coords }, Type::I64);
        self.storage_at(b, container, index)
    }

    /// The same in the cell of that number.
    pub(super) fn storage_at(&self, b: &mut Builder<'_>, container: Value, index: Value) -> Value {
        let leaf = self.leaf();
        let op = NodeOp::Lookup {
            node: leaf,
            container,
            index,
        };
        let cell = b.value(op, Type::Cell(leaf.tree, leaf.node));
        let place = NodeOp::Child {
            node: self.place,
            cell,
        };
        b.value(place, self.storage_type())
    }

    /// The field's container in a block.
    pub(super) fn container_in(&self, b: &mut Builder<'_>, block: Value) -> Value {
        let node = self.leaf();
        let ty = Type::Container(node.tree, node.node);
        b.value(NodeOp::Child { node, cell: block }, ty)
    }

    pub(super) fn leaf(&self) -> NodeRef {
        NodeRef {
            tree: self.place.tree,
            node: self.leaf,
        }
    }

    pub(super) fn storage_type(&self) -> Type {
        let scalar = Type::Scalar(self.elem);
        scalar.to_ref().expect("a scalar's storage")
    }
}

/// The blocks around one, and itself: for each axis the one before, the own, or the next.
pub(super) fn parts(n_axes: usize) -> Vec<Vec<i64>> {
    let mut parts: Vec<Vec<i64>> = vec![vec![]];
    for _ in 0..n_axes {
        let longer = |p: &Vec<i64>| [0, -1, 1].map(|k| [p.clone(), vec![k]].concat());
        parts = parts.iter().flat_map(longer).collect();
    }
    parts
}

/// Whether what is `off` from some cell may lie in the block at `part`.
pub(super) fn reaches(off: &[i64], part: &[i64]) -> bool {
    let mut axes = off.iter().zip(part);
    axes.all(|(&d, &p)| p == 0 || d.signum() == p)
}

/// The block at `part` of that at `indices`, which is `own` if it is the loop's; the ambient one if there is none.
pub(super) fn block_around(
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
        b.value(CellOp::FindCell { node, indices }, ty)
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
    let ambient = b.value(NodeOp::Ambient { node: block }, ty);
    b.select(cond, found, ambient)
}

/// The indices of the block at `part` of that at `indices`.
pub(super) fn moved(b: &mut Builder<'_>, indices: &[Value], part: &[i64]) -> Vec<Value> {
    let axes = indices.iter().zip(part);
    axes.map(|(&index, &p)| match p {
        0 => index,
        _ => {
            let step = b.i32(p as i32);
            b.binary(BinaryOp::Add, index, step)
        }
    })
    .collect()
}

/// The blocks in which a place lies, and the node of their cells, if they divide the same indices as the blocks
/// `block` of a loop over `node` do.
pub(super) fn blocks_alike(
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

/// The shape of the only level, of that kind, between `block` and the cells of `node`.
pub(super) fn block_extents(
    tree: &Tree,
    block: NodeId,
    node: NodeId,
    kind: NodeKind,
) -> Option<Vec<i64>> {
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
pub(super) fn neighbour(
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
        off.push(distance(func, param, index)? - i64::from(first));
    }
    let place = NodeRef {
        tree: data.tree,
        node: data.places[k],
    };
    Some((place, off))
}

/// The number in its block of a cell that the loops have looked up.
pub(super) fn own_index(func: &Function, cell: Value) -> Value {
    let Some(&Op::Node(NodeOp::Lookup { index, .. })) = func.def_op(cell) else {
        unreachable!("dense and bitmasked cells are looked up")
    };
    index
}

/// The coordinates of a cell of that number.
pub(super) fn own_coords(func: &Function, index: Value) -> Vec<Value> {
    let Some(Op::Node(NodeOp::Linearize { coords, .. })) = func.def_op(index) else {
        unreachable!("the loops go along the axes")
    };
    coords.clone()
}
