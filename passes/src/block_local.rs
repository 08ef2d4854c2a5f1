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
mod tests {
    use crate::testing::check_passes;

    #[test]
    fn a_line_of_three() {
        check_passes!(&["list_struct_for", "fold", "identities", "cse", "licm", "dce"], "
            tree0 { pointer i:4 { dense i:8 { place x: f32, place y: f32 } } }
            field @x: f32 = tree0 [S3]
            field @y: f32 = tree0 [S4]
            kernel @k() {
                v0: f32 = const 2.0
                v1: i32 = const 1
                v2: i32 = const 8
                v3: ref<f32> = field_at @x, [v2]
                store v3, v0
                v4: i32 = const 31
                v5: ref<f32> = field_at @x, [v4]
                store v5, v0
                parallel_cells tree0.S2 (v6: i32) {
                    v7: i32 = sub v6, v1
                    v8: i32 = add v6, v1
                    v9: ref<f32> = field_at @x, [v6]
                    v10: ref<f32> = field_at @x, [v7]
                    v11: ref<f32> = field_at @x, [v8]
                    v12: f32 = load v9
                    v13: f32 = load v10
                    v14: f32 = load v11
                    v15: f32 = add v12, v13
                    v16: f32 = sub v15, v14
                    v17: ref<f32> = field_at @y, [v6]
                    store v17, v16
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: f32 = const 2.0
                v1: i32 = const 1
                v2: i32 = const 8
                v3: ref<f32> = field_at @x, [v2]
                store v3, v0
                v4: i32 = const 31
                v5: ref<f32> = field_at @x, [v4]
                store v5, v0
                v6: u1 = list_stale tree0.S1
                v7: i64 = const 0
                v8: i64 = const 1
                v9: i64 = select v6, v8, v7
                parallel [v7, v7], [v9, v8] aside (v10: i64, v11: i64) {
                    v12: i64 = add v10, v11
                    v13: cell<tree0.S0> = root tree0
                    v14: container<tree0.S1> = child tree0.S1, v13
                    v15: i64 = const 1024
                    v16: i64 = const 4
                    v17: i64 = mul v11, v15
                    v18: i64 = add v15, v17
                    v19: i64 = min v16, v18
                    v20: i64 = for v17, v19, v8, [v7] (v21: i64, v22: i64) {
                        v23: u1 = cell_is_active tree0.S1, v14, v21
                        v24: i64 = cast v23
                        v25: i64 = add v22, v24
                        yield [v25]
                    }
                    list_count tree0.S1, v12, v20
                    yield []
                }
                if v6 {
                    list_scan tree0.S1, v9
                    yield []
                } {
                    yield []
                }
                parallel [v7, v7], [v9, v8] aside (v26: i64, v27: i64) {
                    v28: i64 = add v26, v27
                    v29: cell<tree0.S0> = root tree0
                    v30: container<tree0.S1> = child tree0.S1, v29
                    v31: i64 = const 1024
                    v32: i64 = const 4
                    v33: i64 = mul v27, v31
                    v34: i64 = add v31, v33
                    v35: i64 = min v32, v34
                    v36: i64 = list_offset tree0.S1, v28
                    v37: i64 = add v8, v28
                    v38: i64 = list_offset tree0.S1, v37
                    v39: u1 = lt v36, v38
                    if v39 {
                        v40: i64 = for v33, v35, v8, [v36] (v41: i64, v42: i64) {
                            v43: u1 = cell_is_active tree0.S1, v30, v41
                            v44: i64 = if v43 {
                                v45: cell<tree0.S1> = find tree0.S1, v30, v41
                                v46: i32 = cast v41
                                list_put tree0.S1, v42, v45, [v46]
                                v47: i64 = add v8, v42
                                yield [v47]
                            } {
                                yield [v42]
                            }
                            yield [v44]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v48: i64 = list_len tree0.S1
                parallel [v7], [v48] (v49: i64) {
                    v50: cell<tree0.S1>, v51: i32 = list_entry tree0.S1, v49
                    v52: ref<vec<10, f32>> = local
                    v53: container<tree0.S2> = child tree0.S2, v50
                    v54: i32 = const 0
                    for v54, v2, v1, [] (v55: i32) {
                        v56: i32 = add v1, v55
                        v57: ref<f32> = elem_ref v52, [v56]
                        v58: i64 = linearize tree0.S2, [v55]
                        v59: cell<tree0.S2> = lookup tree0.S2, v53, v58
                        v60: ref<f32> = child tree0.S3, v59
                        v61: f32 = load v60
                        store v57, v61
                        yield []
                    }
                    v62: i32 = const -1
                    v63: i32 = add v51, v62
                    v64: u1 = ge v63, v54
                    if v64 {
                        v65: cell<tree0.S1> = find_cell tree0.S1, [v63]
                        v66: container<tree0.S2> = child tree0.S2, v65
                        v67: i32 = const 7
                        v68: i32 = const -7
                        for v67, v2, v1, [] (v69: i32) {
                            v70: i32 = add v69, v68
                            v71: ref<f32> = elem_ref v52, [v70]
                            v72: i64 = linearize tree0.S2, [v69]
                            v73: cell<tree0.S2> = lookup tree0.S2, v66, v72
                            v74: ref<f32> = child tree0.S3, v73
                            v75: f32 = load v74
                            store v71, v75
                            yield []
                        }
                        yield []
                    } {
                        yield []
                    }
                    v76: i32 = add v1, v51
                    v77: i32 = const 4
                    v78: u1 = lt v76, v77
                    if v78 {
                        v79: cell<tree0.S1> = find_cell tree0.S1, [v76]
                        v80: container<tree0.S2> = child tree0.S2, v79
                        v81: i32 = const 9
                        for v54, v1, v1, [] (v82: i32) {
                            v83: i32 = add v82, v81
                            v84: ref<f32> = elem_ref v52, [v83]
                            v85: i64 = linearize tree0.S2, [v82]
                            v86: cell<tree0.S2> = lookup tree0.S2, v80, v85
                            v87: ref<f32> = child tree0.S3, v86
                            v88: f32 = load v87
                            store v84, v88
                            yield []
                        }
                        yield []
                    } {
                        yield []
                    }
                    v89: i32 = mul v2, v51
                    v90: i32 = const 2
                    for v54, v2, v1, [] (v91: i32) {
                        v92: i32 = add v89, v91
                        v93: i64 = linearize tree0.S2, [v91]
                        v94: cell<tree0.S2> = lookup tree0.S2, v53, v93
                        v95: i32 = add v1, v91
                        v96: ref<f32> = elem_ref v52, [v95]
                        v97: ref<f32> = elem_ref v52, [v91]
                        v98: i32 = add v91, v90
                        v99: ref<f32> = elem_ref v52, [v98]
                        cell_at tree0.S2, [v92], v94
                        v100: f32 = load v96
                        v101: f32 = load v97
                        v102: f32 = load v99
                        v103: f32 = add v100, v101
                        v104: f32 = sub v103, v102
                        v105: ref<f32> = field_at @y, [v92]
                        store v105, v104
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn what_is_written_is_not_gathered() {
        check_passes!(&["list_struct_for", "dce"], "
            tree0 { pointer i:4 { dense i:8 { place x: f32 } } }
            field @x: f32 = tree0 [S3]
            kernel @k() {
                v1: i32 = const 1
                parallel_cells tree0.S2 serial (v6: i32) {
                    v7: i32 = sub v6, v1
                    v8: i32 = add v6, v1
                    v9: ref<f32> = field_at @x, [v6]
                    v10: ref<f32> = field_at @x, [v7]
                    v11: ref<f32> = field_at @x, [v8]
                    v12: f32 = load v9
                    v13: f32 = load v10
                    v14: f32 = load v11
                    v15: f32 = add v12, v13
                    v16: f32 = sub v15, v14
                    store v9, v16
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 1
                v1: u1 = list_stale tree0.S1
                v2: i64 = const 0
                v3: i64 = const 1
                v4: i64 = select v1, v3, v2
                v5: i64 = const 1
                parallel [v2, v2], [v4, v5] aside (v6: i64, v7: i64) {
                    v8: i64 = const 1
                    v9: i64 = mul v6, v8
                    v10: i64 = add v9, v7
                    v11: cell<tree0.S0> = root tree0
                    v12: container<tree0.S1> = child tree0.S1, v11
                    v13: i64 = const 1024
                    v14: i64 = const 4
                    v15: i64 = mul v7, v13
                    v16: i64 = add v15, v13
                    v17: i64 = min v16, v14
                    v18: i64 = const 0
                    v19: i64 = const 1
                    v20: i64 = for v15, v17, v19, [v18] (v21: i64, v22: i64) {
                        v23: u1 = cell_is_active tree0.S1, v12, v21
                        v24: i64 = cast v23
                        v25: i64 = add v22, v24
                        yield [v25]
                    }
                    list_count tree0.S1, v10, v20
                    yield []
                }
                v26: i64 = const 1
                v27: i64 = mul v4, v26
                if v1 {
                    list_scan tree0.S1, v27
                    yield []
                } {
                    yield []
                }
                parallel [v2, v2], [v4, v5] aside (v28: i64, v29: i64) {
                    v30: i64 = const 1
                    v31: i64 = mul v28, v30
                    v32: i64 = add v31, v29
                    v33: cell<tree0.S0> = root tree0
                    v34: container<tree0.S1> = child tree0.S1, v33
                    v35: i64 = const 1024
                    v36: i64 = const 4
                    v37: i64 = mul v29, v35
                    v38: i64 = add v37, v35
                    v39: i64 = min v38, v36
                    v40: i64 = const 1
                    v41: i64 = list_offset tree0.S1, v32
                    v42: i64 = add v32, v40
                    v43: i64 = list_offset tree0.S1, v42
                    v44: u1 = lt v41, v43
                    if v44 {
                        v45: i64 = const 1
                        v46: i64 = for v37, v39, v45, [v41] (v47: i64, v48: i64) {
                            v49: u1 = cell_is_active tree0.S1, v34, v47
                            v50: i64 = if v49 {
                                v51: cell<tree0.S1> = find tree0.S1, v34, v47
                                v52: i32 = cast v47
                                list_put tree0.S1, v48, v51, [v52]
                                v53: i64 = add v48, v40
                                yield [v53]
                            } {
                                yield [v48]
                            }
                            yield [v50]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v54: i64 = const 0
                v55: i64 = list_len tree0.S1
                parallel [v54], [v55] serial (v56: i64) {
                    v57: cell<tree0.S1>, v58: i32 = list_entry tree0.S1, v56
                    v59: i32 = const 8
                    v60: i32 = mul v58, v59
                    v61: container<tree0.S2> = child tree0.S2, v57
                    v62: i32 = const 0
                    v63: i32 = const 8
                    v64: i32 = const 1
                    for v62, v63, v64, [] (v65: i32) {
                        v66: i32 = add v60, v65
                        v67: i64 = linearize tree0.S2, [v65]
                        v68: cell<tree0.S2> = lookup tree0.S2, v61, v67
                        cell_at tree0.S2, [v66], v68
                        v69: i32 = sub v66, v0
                        v70: i32 = add v66, v0
                        v71: ref<f32> = field_at @x, [v66]
                        v72: ref<f32> = field_at @x, [v69]
                        v73: ref<f32> = field_at @x, [v70]
                        v74: f32 = load v71
                        v75: f32 = load v72
                        v76: f32 = load v73
                        v77: f32 = add v74, v75
                        v78: f32 = sub v77, v76
                        store v71, v78
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }
}
