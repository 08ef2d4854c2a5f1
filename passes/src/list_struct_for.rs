//! Loops over the active cells of a sparse node go over lists.
//!
//! ```text
//! parallel_cells tree0.S3 (i, j) { body }     ; pointer S1, in whose cells lies dense S2 over 8 x 8
//!     ==>   v0 = list_stale S1                                          ; tasks that make the list,
//!           parallel over parts { count active cells  list_count }      ; of no iterations if it
//!           list_scan                                                   ; is up to date
//!           parallel over parts { list_put for each active cell }
//!           parallel over the list (e) {
//!               cell, i0, j0 = list_entry S1, e
//!               for c in 0..64 { ...  cell_at S2, [i0 + c / 8, j0 + c % 8]  body }
//!           }
//! ```
//! There is a list for each pointer node on the way. Below the last one, dense cells are loops,
//! the bits of a mask are taken one by one, and the cells of a dynamic container are counted off. The
//! outermost of these loops are axes of the task where a cell of the list holds many, so that the
//! work of a few large cells is divided too.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Function, Inst, LoopAttrs, NodeRef, Op, Region, Type, Value, walk,
};
use aerogel_snode::control::LIST_PART;
use aerogel_snode::{NodeId, NodeKind, Tree};

use crate::PassCx;
use crate::block_local::Gathered;
use crate::cells::{self, Loop, Nest, Walk, at_end};
use crate::demote_struct_for::replace;

/// An iteration of a task walks about so many cells.
const CELLS_PER_ITERATION: u64 = 4096;
/// A task has at most so many axes, besides that of the list.
const MOST_AXES: usize = 12;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut changed = false;
    let body = func.body;
    for inst in std::mem::take(&mut func.regions[body].insts) {
        match func[inst] {
            Op::ParallelCells { node, .. }
                if cx.env.trees[node.tree].is_below_sparse(node.node) =>
            {
                sweep(func, cx, inst);
                changed = true;
            }
            _ => func.regions[body].insts.push(inst),
        }
    }
    changed
}

/// Writes the tasks for one loop at the end of the kernel's body.
fn sweep(func: &mut Function, cx: &PassCx<'_>, inst: Inst) {
    let Op::ParallelCells { node, attrs, body } = func[inst] else {
        unreachable!("the caller looked")
    };
    let tree = &cx.env.trees[node.tree];
    let driver = cells::driver(tree, node.node);
    let params = std::mem::take(&mut func.regions[body].params);
    let walk = if visits_itself(func, body, &params) {
        Walk::Flat
    } else {
        Walk::Axes
    };
    let nest = Nest::new(cx.env, node, driver, walk);
    let driven = driver != Tree::ROOT;
    let n_axes = n_task_axes(&nest, driven);
    let mut gathered = if driven && n_axes == 0 && cx.options.optimize {
        Gathered::find(func, cx, node, driver, body, &params)
    } else {
        None
    };
    let (top, span) = (func.body, func.insts[inst].span);
    let stop = attrs.serial.then(|| stop_flag(func, body, span)).flatten();

    let mut b = at_end(func, top, span);
    lists(&mut b, cx, node.tree, tree, driver);
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    let zero = b.constant(Scalar::int(ScalarType::I64, 0));
    let driver = NodeRef {
        tree: node.tree,
        node: driver,
    };
    if driven {
        lo.push(zero);
        hi.push(b.value(Op::ListLen { node: driver }, Type::I64));
    }
    for &looped in &nest.loops[..n_axes] {
        lo.push(zero);
        let extent = i128::from(nest.extent(looped));
        hi.push(b.constant(Scalar::int(ScalarType::I64, extent)));
    }
    let types = vec![Type::I64; lo.len()];
    let over = cells::region(&mut b, &types, |b, axes| {
        let (cell, indices, given) = enter(b, tree, driver, axes);
        if let Some(gathered) = &mut gathered {
            gathered.prologue(b, tree, driver, cell, &indices);
        }
        let origin = begin(b, tree, driver.node, node.node, &indices);
        nest.write(b, cell, origin, &given, &mut |b, cell, index| {
            if let Some(stop) = stop {
                leave_if(b, stop);
            }
            if let Some(gathered) = &gathered {
                gathered.redirect(b, cell);
            }
            b.effect(Op::CellAt {
                node,
                indices: index.to_vec(),
                cell,
            });
            let index: Vec<_> = index.iter().map(|&i| Some(i)).collect();
            replace(b.func, body, &params, &index);
            let mut insts = std::mem::take(&mut b.func.regions[body].insts);
            b.func.regions[b.region].insts.append(&mut insts);
        });
    });
    b.effect(Op::Parallel {
        lo,
        hi,
        attrs,
        body: over,
    });
}

/// How many loops of a nest become axes of the task.
fn n_task_axes(nest: &Nest<'_>, driven: bool) -> usize {
    let mut rest: u64 = nest
        .loops
        .iter()
        .map(|&l| nest.extent(l).saturating_mul(nest.weight(l)))
        .fold(1, u64::saturating_mul);
    let mut n = 0;
    for &looped in &nest.loops {
        if rest <= CELLS_PER_ITERATION && (driven || n > 0) || n == MOST_AXES {
            break;
        }
        rest /= nest.extent(looped);
        n += 1;
        // What lies below depends on the bit or the cell that is taken.
        if let Loop::Words { .. } | Loop::Pieces { .. } = looped {
            break;
        }
    }
    n
}

/// The driving cell of a task's iteration, its indices, and the counters that are left, as `i32`.
fn enter(
    b: &mut Builder<'_>,
    tree: &Tree,
    driver: NodeRef,
    axes: &[Value],
) -> (Value, Vec<Value>, Vec<Value>) {
    let (cell, origin, rest) = if driver.node == Tree::ROOT {
        let op = Op::Root { tree: driver.tree };
        let cell = b.value(op, Type::Cell(driver.tree, Tree::ROOT));
        (cell, Vec::new(), axes)
    } else {
        let (&at, rest) = axes.split_first().expect("the list is an axis");
        let mut types = vec![Type::Cell(driver.tree, driver.node)];
        types.resize(1 + tree.shape(driver.node).len(), Type::I32);
        let entry = b.inst(Op::ListEntry { node: driver, at }, &types);
        let results = b.func.insts[entry].results.clone();
        (results[0], results[1..].to_vec(), rest)
    };
    let given = rest.iter().map(|&v| b.cast(v, Type::I32)).collect();
    (cell, origin, given)
}

/// Where a cell of `driver` at `indices` begins along the axes of `node`, which are the same,
/// divided further, and more.
fn begin(
    b: &mut Builder<'_>,
    tree: &Tree,
    driver: NodeId,
    node: NodeId,
    indices: &[Value],
) -> Vec<Option<Value>> {
    let coarse = tree.shape_axes(driver);
    tree.shape_axes(node)
        .iter()
        .map(|&(axis, extent)| {
            let k = coarse.iter().position(|a| a.0 == axis)?;
            Some(cells::scaled_sum(b, None, indices[k], extent / coarse[k].1))
        })
        .collect()
}

/// Brings the lists of the pointer nodes from the root down to `driver` up to date.
fn lists(
    b: &mut Builder<'_>,
    cx: &PassCx<'_>,
    id: aerogel_ir::TreeId,
    tree: &Tree,
    driver: NodeId,
) {
    let mut parent = Tree::ROOT;
    for node in tree.chain(driver) {
        if tree[node].kind == NodeKind::Pointer {
            list(b, cx, NodeRef { tree: id, node }, parent);
            parent = node;
        }
    }
}

/// Writes the tasks that make the list of a pointer node, given that of the one above.
fn list(b: &mut Builder<'_>, cx: &PassCx<'_>, node: NodeRef, parent: NodeId) {
    let tree = &cx.env.trees[node.tree];
    let above = NodeRef {
        tree: node.tree,
        node: parent,
    };
    // The walk ends at the node's containers: its own slots are counted in parts.
    let holder = NodeRef {
        tree: node.tree,
        node: tree[node.node].parent.expect("a pointer node has a parent"),
    };
    let nest = Nest::new(cx.env, holder, parent, Walk::All);
    let n_cells = tree[node.node].n_cells;
    let n_parts = n_cells.div_ceil(LIST_PART);
    let i64_of =
        |b: &mut Builder<'_>, x: u64| b.constant(Scalar::int(ScalarType::I64, i128::from(x)));

    let stale = b.value(Op::ListStale { node }, Type::BOOL);
    let zero = i64_of(b, 0);
    let n_above = if parent == Tree::ROOT {
        i64_of(b, 1)
    } else {
        b.value(Op::ListLen { node: above }, Type::I64)
    };
    let n_above = b.value(
        Op::Select {
            cond: stale,
            on_true: n_above,
            on_false: zero,
        },
        Type::I64,
    );
    // Every loop of the nest is an axis: parts are numbered row by row.
    let mut extents: Vec<u64> = nest.loops.iter().map(|&l| nest.extent(l)).collect();
    extents.push(n_parts);
    let mut hi = vec![n_above];
    hi.extend(extents.iter().map(|&e| i64_of(b, e)));
    let lo = vec![zero; hi.len()];
    let types = vec![Type::I64; hi.len()];

    let task = |b: &mut Builder<'_>, fill: bool| {
        let over = cells::region(b, &types, |b, axes| {
            let mut part = axes[0];
            for (&axis, &extent) in axes[1..].iter().zip(&extents) {
                let extent = i64_of(b, extent);
                let scaled = b.binary(BinaryOp::Mul, part, extent);
                part = b.binary(BinaryOp::Add, scaled, axis);
            }
            let (&segment, walked) = axes.split_last().expect("parts are an axis");
            let walked = if parent == Tree::ROOT {
                &walked[1..]
            } else {
                walked
            };
            let (cell, origin, given) = enter(b, tree, above, walked);
            let origin = begin(b, tree, parent, holder.node, &origin);
            let mut written = false;
            nest.write(b, cell, origin, &given, &mut |b, cell, index| {
                written = true;
                let size = i64_of(b, LIST_PART);
                let first = b.binary(BinaryOp::Mul, segment, size);
                let end = b.binary(BinaryOp::Add, first, size);
                let n = i64_of(b, n_cells);
                let end = b.binary(BinaryOp::Min, end, n);
                let op = Op::Child { node, cell };
                let container = b.value(op, Type::Container(node.tree, node.node));
                let slots = Slots {
                    node,
                    container,
                    first,
                    end,
                    part,
                };
                if fill {
                    slots.fill(b, cx, holder.node, index);
                } else {
                    slots.count(b);
                }
            });
            assert!(written, "the nest reaches the containers");
        });
        b.effect(Op::Parallel {
            lo: lo.clone(),
            hi: hi.clone(),
            attrs: LoopAttrs {
                aside: true,
                ..LoopAttrs::default()
            },
            body: over,
        });
    };
    task(b, false);
    let n_all = extents.iter().fold(n_above, |n, &extent| {
        let extent = i64_of(b, extent);
        b.binary(BinaryOp::Mul, n, extent)
    });
    let scan = cells::region(b, &[], |b, _| {
        b.effect(Op::ListScan {
            node,
            n_parts: n_all,
        });
    });
    let otherwise = cells::region(b, &[], |_, _| {});
    b.effect(Op::If {
        cond: stale,
        then: scan,
        otherwise,
    });
    task(b, true);
}

/// The slots of a container that one part of a list is about.
struct Slots {
    node: NodeRef,
    container: Value,
    first: Value,
    end: Value,
    part: Value,
}

impl Slots {
    fn active(&self, b: &mut Builder<'_>, index: Value) -> Value {
        let op = Op::CellIsActive {
            node: self.node,
            container: self.container,
            index,
        };
        b.value(op, Type::BOOL)
    }

    /// Counts the active ones.
    fn count(&self, b: &mut Builder<'_>) {
        let zero = b.constant(Scalar::int(ScalarType::I64, 0));
        let one = b.constant(Scalar::int(ScalarType::I64, 1));
        let body = cells::region(b, &[Type::I64, Type::I64], |b, params| {
            let active = self.active(b, params[0]);
            let active = b.cast(active, Type::I64);
            let count = b.binary(BinaryOp::Add, params[1], active);
            b.yields(vec![count]);
        });
        let looped = Op::For {
            lo: self.first,
            hi: self.end,
            step: one,
            init: vec![zero],
            body,
        };
        let count = b.value(looped, Type::I64);
        let (node, part) = (self.node, self.part);
        b.effect(Op::ListCount { node, part, count });
    }

    /// Writes an entry for each active one.
    fn fill(&self, b: &mut Builder<'_>, cx: &PassCx<'_>, holder: NodeId, index: &[Value]) {
        let node = self.node;
        let one = b.constant(Scalar::int(ScalarType::I64, 1));
        let first = Op::ListOffset {
            node,
            part: self.part,
        };
        let first = b.value(first, Type::I64);
        let next = b.binary(BinaryOp::Add, self.part, one);
        let end = b.value(Op::ListOffset { node, part: next }, Type::I64);
        let cond = b.compare(CompareOp::Lt, first, end);
        let then = cells::region(b, &[], |b, _| {
            let body = cells::region(b, &[Type::I64, Type::I64], |b, params| {
                let cond = self.active(b, params[0]);
                let then = cells::region(b, &[], |b, _| {
                    self.put(b, cx, holder, index, params[0], params[1]);
                    let next = b.binary(BinaryOp::Add, params[1], one);
                    b.yields(vec![next]);
                });
                let otherwise = cells::region(b, &[], |b, _| b.yields(vec![params[1]]));
                let at = Op::If {
                    cond,
                    then,
                    otherwise,
                };
                let at = b.value(at, Type::I64);
                b.yields(vec![at]);
            });
            let looped = Op::For {
                lo: self.first,
                hi: self.end,
                step: one,
                init: vec![first],
                body,
            };
            b.value(looped, Type::I64);
        });
        let otherwise = cells::region(b, &[], |_, _| {});
        b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }

    fn put(
        &self,
        b: &mut Builder<'_>,
        cx: &PassCx<'_>,
        holder: NodeId,
        index: &[Value],
        number: Value,
        at: Value,
    ) {
        let node = self.node;
        let tree = &cx.env.trees[node.tree];
        let find = Op::Find {
            node,
            container: self.container,
            index: number,
        };
        let cell = b.value(find, Type::Cell(node.tree, node.node));
        let number = b.cast(number, Type::I32);
        let above = begin(b, tree, holder, node.node, index);
        let levels = tree.path(node.node).levels;
        let own = levels.last().expect("a path ends in its node");
        let indices = cells::add_number(b, own, number, above);
        let indices = indices
            .into_iter()
            .map(|i| i.expect("every axis is divided"));
        let indices = indices.collect();
        b.effect(Op::ListPut {
            node,
            at,
            cell,
            indices,
        });
    }
}

/// Whether the body uses the indices for nothing but fields' elements at just these indices, so
/// that their order along the axes does not matter to it.
fn visits_itself(func: &Function, body: Region, params: &[Value]) -> bool {
    let mut itself = true;
    walk(func, body, &mut |func, inst| match &func[inst] {
        Op::FieldAt { indices, .. } if indices == params => {}
        op => op.operands(|v| itself &= !params.contains(&v)),
    });
    itself
}

/// A loop that runs in order may be left: where it is, what is left of it does nothing. The flag, if
/// it is needed.
pub(crate) fn stop_flag(
    func: &mut Function,
    body: Region,
    span: aerogel_base::Span,
) -> Option<Value> {
    let mut breaks = Vec::new();
    find_breaks(func, body, &mut breaks);
    if breaks.is_empty() {
        return None;
    }
    let top = func.body;
    let mut b = at_end(func, top, span);
    let flag = b.local(Type::BOOL);
    let r#false = b.constant(Scalar::bool(false));
    b.store(flag, r#false);
    for (region, inst) in breaks {
        let insts = &mut func.regions[region].insts;
        insts.retain(|&i| i != inst);
        let mut b = at_end(func, region, span);
        let r#true = b.constant(Scalar::bool(true));
        b.store(flag, r#true);
        b.effect(Op::Continue { values: Vec::new() });
    }
    Some(flag)
}

/// The `break`s that leave the loop whose body `region` is.
fn find_breaks(func: &Function, region: Region, found: &mut Vec<(Region, Inst)>) {
    for &inst in &func.regions[region].insts {
        match func[inst] {
            Op::Break { .. } => found.push((region, inst)),
            Op::If {
                then, otherwise, ..
            } => {
                find_breaks(func, then, found);
                find_breaks(func, otherwise, found);
            }
            _ => {}
        }
    }
}

/// `if (load flag) { continue }`
pub(crate) fn leave_if(b: &mut Builder<'_>, flag: Value) {
    let cond = b.load(flag);
    let then = cells::region(b, &[], |b, _| {
        b.effect(Op::Continue { values: Vec::new() });
    });
    let otherwise = cells::region(b, &[], |_, _| {});
    b.effect(Op::If {
        cond,
        then,
        otherwise,
    });
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn pointer_over_dense() {
        check_pass!("list_struct_for", "
            tree0 { pointer i:4 { dense i:8 { place x: f32 } } }
            field @x: f32 = tree0 [S3]
            kernel @k() {
                v0: f32 = const 2.0
                v1: i32 = const 9
                v2: ref<f32> = field_at @x, [v1]
                store v2, v0
                parallel_cells tree0.S2 (v3: i32) {
                    v4: ref<f32> = field_at @x, [v3]
                    v5: f32 = cast v3
                    store v4, v5
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: f32 = const 2.0
                v1: i32 = const 9
                v2: ref<f32> = field_at @x, [v1]
                store v2, v0
                v3: u1 = list_stale tree0.S1
                v4: i64 = const 0
                v5: i64 = const 1
                v6: i64 = select v3, v5, v4
                v7: i64 = const 1
                parallel [v4, v4], [v6, v7] aside (v8: i64, v9: i64) {
                    v10: i64 = const 1
                    v11: i64 = mul v8, v10
                    v12: i64 = add v11, v9
                    v13: cell<tree0.S0> = root tree0
                    v14: i64 = const 1024
                    v15: i64 = mul v9, v14
                    v16: i64 = add v15, v14
                    v17: i64 = const 4
                    v18: i64 = min v16, v17
                    v19: container<tree0.S1> = child tree0.S1, v13
                    v20: i64 = const 0
                    v21: i64 = const 1
                    v22: i64 = for v15, v18, v21, [v20] (v23: i64, v24: i64) {
                        v25: u1 = cell_is_active tree0.S1, v19, v23
                        v26: i64 = cast v25
                        v27: i64 = add v24, v26
                        yield [v27]
                    }
                    list_count tree0.S1, v12, v22
                    yield []
                }
                v28: i64 = const 1
                v29: i64 = mul v6, v28
                if v3 {
                    list_scan tree0.S1, v29
                    yield []
                } {
                    yield []
                }
                parallel [v4, v4], [v6, v7] aside (v30: i64, v31: i64) {
                    v32: i64 = const 1
                    v33: i64 = mul v30, v32
                    v34: i64 = add v33, v31
                    v35: cell<tree0.S0> = root tree0
                    v36: i64 = const 1024
                    v37: i64 = mul v31, v36
                    v38: i64 = add v37, v36
                    v39: i64 = const 4
                    v40: i64 = min v38, v39
                    v41: container<tree0.S1> = child tree0.S1, v35
                    v42: i64 = const 1
                    v43: i64 = list_offset tree0.S1, v34
                    v44: i64 = add v34, v42
                    v45: i64 = list_offset tree0.S1, v44
                    v46: u1 = lt v43, v45
                    if v46 {
                        v47: i64 = for v37, v40, v42, [v43] (v48: i64, v49: i64) {
                            v50: u1 = cell_is_active tree0.S1, v41, v48
                            v51: i64 = if v50 {
                                v52: cell<tree0.S1> = find tree0.S1, v41, v48
                                v53: i32 = cast v48
                                list_put tree0.S1, v49, v52, [v53]
                                v54: i64 = add v49, v42
                                yield [v54]
                            } {
                                yield [v49]
                            }
                            yield [v51]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v55: i64 = const 0
                v56: i64 = list_len tree0.S1
                parallel [v55], [v56] (v57: i64) {
                    v58: cell<tree0.S1>, v59: i32 = list_entry tree0.S1, v57
                    v60: i32 = const 8
                    v61: i32 = mul v59, v60
                    v62: container<tree0.S2> = child tree0.S2, v58
                    v63: i32 = const 0
                    v64: i32 = const 8
                    v65: i32 = const 1
                    for v63, v64, v65, [] (v66: i32) {
                        v67: i32 = add v61, v66
                        v68: i64 = linearize tree0.S2, [v66]
                        v69: cell<tree0.S2> = lookup tree0.S2, v62, v68
                        cell_at tree0.S2, [v67], v69
                        v70: ref<f32> = field_at @x, [v67]
                        v71: f32 = cast v67
                        store v70, v71
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn masks_are_walked_bit_by_bit() {
        check_pass!("list_struct_for", "
            tree0 { bitmasked i:8 j:10 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k() {
                v0: i32 = const 3
                v1: ref<i32> = field_at @x, [v0, v0]
                store v1, v0
                parallel_cells tree0.S1 (v2: i32, v3: i32) {
                    v4: ref<i32> = field_at @x, [v2, v3]
                    v5: u1 = eq v2, v3
                    if v5 {
                        continue []
                    } {
                        yield []
                    }
                    store v4, v2
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 3
                v1: ref<i32> = field_at @x, [v0, v0]
                store v1, v0
                v2: i64 = const 0
                v3: i64 = const 3
                parallel [v2], [v3] (v4: i64) {
                    v5: cell<tree0.S0> = root tree0
                    v6: i32 = cast v4
                    v7: container<tree0.S1> = child tree0.S1, v5
                    v8: u32 = mask_word tree0.S1, v7, v6
                    v9: u32 = while [v8] (v10: u32) {
                        v11: u32 = const 0
                        v12: u1 = ne v10, v11
                        yield [v12]
                    } (v13: u32) {
                        v14: u32 = neg v13
                        v15: u32 = and v13, v14
                        v16: u32 = xor v13, v15
                        v17: u32 = clz v15
                        v18: i32 = cast v17
                        v19: i32 = const 31
                        v20: i32 = sub v19, v18
                        v21: i32 = const 32
                        v22: i32 = mul v6, v21
                        v23: i32 = add v22, v20
                        v24: cell<tree0.S1> = lookup tree0.S1, v7, v23
                        v25: i32 = const 10
                        v26: i32 = div v23, v25
                        v27: i32 = const 10
                        v28: i32 = rem v23, v27
                        cell_at tree0.S1, [v26, v28], v24
                        v29: ref<i32> = field_at @x, [v26, v28]
                        v30: u1 = eq v26, v28
                        if v30 {
                            continue [v16]
                        } {
                            yield []
                        }
                        store v29, v26
                        yield [v16]
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn lists_of_dynamic_nodes() {
        check_pass!("list_struct_for", "
            tree0 { dense i:4 { dynamic j:5000 chunk=16 { place x: i32 } } }
            field @x: i32 = tree0 [S3]
            kernel @k() {
                v0: i32 = const 3
                v1: i32 = append tree0.S2, [v0]
                parallel_cells tree0.S2 (v2: i32, v3: i32) {
                    v4: ref<i32> = field_at @x, [v2, v3]
                    store v4, v2
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 3
                v1: i32 = append tree0.S2, [v0]
                v2: i64 = const 0
                v3: i64 = const 4
                v4: i64 = const 2
                parallel [v2, v2], [v3, v4] (v5: i64, v6: i64) {
                    v7: cell<tree0.S0> = root tree0
                    v8: i32 = cast v5
                    v9: i32 = cast v6
                    v10: container<tree0.S1> = child tree0.S1, v7
                    v11: i64 = linearize tree0.S1, [v8]
                    v12: cell<tree0.S1> = lookup tree0.S1, v10, v11
                    v13: container<tree0.S2> = child tree0.S2, v12
                    v14: i64 = container_length tree0.S2, v13
                    v15: i32 = cast v14
                    v16: i32 = const 4096
                    v17: i32 = mul v9, v16
                    v18: i32 = add v17, v16
                    v19: i32 = min v18, v15
                    v20: i32 = const 1
                    for v17, v19, v20, [] (v21: i32) {
                        v22: cell<tree0.S2> = find tree0.S2, v13, v21
                        cell_at tree0.S2, [v8, v21], v22
                        v23: ref<i32> = field_at @x, [v8, v21]
                        store v23, v8
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn a_serial_loop_that_is_left() {
        check_pass!("list_struct_for", "
            tree0 { pointer i:8 { place x: i32 }, place n: i32 }
            field @x: i32 = tree0 [S2]
            field @n: i32 = tree0 [S3]
            kernel @k() {
                v0: i32 = const 3
                v1: ref<i32> = field_at @x, [v0]
                store v1, v0
                v2: i32 = const 5
                v3: ref<i32> = field_at @x, [v2]
                store v3, v2
                parallel_cells tree0.S1 serial (v4: i32) {
                    v5: ref<i32> = field_at @n, []
                    v6: i32 = atomic_add v5, v4
                    v7: u1 = eq v4, v0
                    if v7 {
                        break []
                    } {
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 3
                v1: ref<i32> = field_at @x, [v0]
                store v1, v0
                v2: i32 = const 5
                v3: ref<i32> = field_at @x, [v2]
                store v3, v2
                v4: ref<u1> = local
                v5: u1 = const 0
                store v4, v5
                v6: u1 = list_stale tree0.S1
                v7: i64 = const 0
                v8: i64 = const 1
                v9: i64 = select v6, v8, v7
                v10: i64 = const 1
                parallel [v7, v7], [v9, v10] aside (v11: i64, v12: i64) {
                    v13: i64 = const 1
                    v14: i64 = mul v11, v13
                    v15: i64 = add v14, v12
                    v16: cell<tree0.S0> = root tree0
                    v17: i64 = const 1024
                    v18: i64 = mul v12, v17
                    v19: i64 = add v18, v17
                    v20: i64 = const 8
                    v21: i64 = min v19, v20
                    v22: container<tree0.S1> = child tree0.S1, v16
                    v23: i64 = const 0
                    v24: i64 = const 1
                    v25: i64 = for v18, v21, v24, [v23] (v26: i64, v27: i64) {
                        v28: u1 = cell_is_active tree0.S1, v22, v26
                        v29: i64 = cast v28
                        v30: i64 = add v27, v29
                        yield [v30]
                    }
                    list_count tree0.S1, v15, v25
                    yield []
                }
                v31: i64 = const 1
                v32: i64 = mul v9, v31
                if v6 {
                    list_scan tree0.S1, v32
                    yield []
                } {
                    yield []
                }
                parallel [v7, v7], [v9, v10] aside (v33: i64, v34: i64) {
                    v35: i64 = const 1
                    v36: i64 = mul v33, v35
                    v37: i64 = add v36, v34
                    v38: cell<tree0.S0> = root tree0
                    v39: i64 = const 1024
                    v40: i64 = mul v34, v39
                    v41: i64 = add v40, v39
                    v42: i64 = const 8
                    v43: i64 = min v41, v42
                    v44: container<tree0.S1> = child tree0.S1, v38
                    v45: i64 = const 1
                    v46: i64 = list_offset tree0.S1, v37
                    v47: i64 = add v37, v45
                    v48: i64 = list_offset tree0.S1, v47
                    v49: u1 = lt v46, v48
                    if v49 {
                        v50: i64 = for v40, v43, v45, [v46] (v51: i64, v52: i64) {
                            v53: u1 = cell_is_active tree0.S1, v44, v51
                            v54: i64 = if v53 {
                                v55: cell<tree0.S1> = find tree0.S1, v44, v51
                                v56: i32 = cast v51
                                list_put tree0.S1, v52, v55, [v56]
                                v57: i64 = add v52, v45
                                yield [v57]
                            } {
                                yield [v52]
                            }
                            yield [v54]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v58: i64 = const 0
                v59: i64 = list_len tree0.S1
                parallel [v58], [v59] serial (v60: i64) {
                    v61: cell<tree0.S1>, v62: i32 = list_entry tree0.S1, v60
                    v63: u1 = load v4
                    if v63 {
                        continue []
                    } {
                        yield []
                    }
                    cell_at tree0.S1, [v62], v61
                    v64: ref<i32> = field_at @n, []
                    v65: i32 = atomic_add v64, v62
                    v66: u1 = eq v62, v0
                    if v66 {
                        v67: u1 = const 1
                        store v4, v67
                        continue []
                    } {
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn nested_pointers_begin_where_their_cells_do() {
        check_pass!("list_struct_for", "
            tree0 { pointer i:2 j:2 { dense j:2 { pointer i:4 { dense i:2 { place x: i32 } } } } }
            field @x: i32 = tree0 [S5]
            kernel @k() {
                v0: i32 = const 11
                v1: i32 = const 3
                v2: ref<i32> = field_at @x, [v0, v1]
                store v2, v0
                parallel_cells tree0.S4 (v3: i32, v4: i32) {
                    v5: ref<i32> = field_at @x, [v3, v4]
                    v6: i32 = add v3, v4
                    store v5, v6
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 11
                v1: i32 = const 3
                v2: ref<i32> = field_at @x, [v0, v1]
                store v2, v0
                v3: u1 = list_stale tree0.S1
                v4: i64 = const 0
                v5: i64 = const 1
                v6: i64 = select v3, v5, v4
                v7: i64 = const 1
                parallel [v4, v4], [v6, v7] aside (v8: i64, v9: i64) {
                    v10: i64 = const 1
                    v11: i64 = mul v8, v10
                    v12: i64 = add v11, v9
                    v13: cell<tree0.S0> = root tree0
                    v14: i64 = const 1024
                    v15: i64 = mul v9, v14
                    v16: i64 = add v15, v14
                    v17: i64 = const 4
                    v18: i64 = min v16, v17
                    v19: container<tree0.S1> = child tree0.S1, v13
                    v20: i64 = const 0
                    v21: i64 = const 1
                    v22: i64 = for v15, v18, v21, [v20] (v23: i64, v24: i64) {
                        v25: u1 = cell_is_active tree0.S1, v19, v23
                        v26: i64 = cast v25
                        v27: i64 = add v24, v26
                        yield [v27]
                    }
                    list_count tree0.S1, v12, v22
                    yield []
                }
                v28: i64 = const 1
                v29: i64 = mul v6, v28
                if v3 {
                    list_scan tree0.S1, v29
                    yield []
                } {
                    yield []
                }
                parallel [v4, v4], [v6, v7] aside (v30: i64, v31: i64) {
                    v32: i64 = const 1
                    v33: i64 = mul v30, v32
                    v34: i64 = add v33, v31
                    v35: cell<tree0.S0> = root tree0
                    v36: i64 = const 1024
                    v37: i64 = mul v31, v36
                    v38: i64 = add v37, v36
                    v39: i64 = const 4
                    v40: i64 = min v38, v39
                    v41: container<tree0.S1> = child tree0.S1, v35
                    v42: i64 = const 1
                    v43: i64 = list_offset tree0.S1, v34
                    v44: i64 = add v34, v42
                    v45: i64 = list_offset tree0.S1, v44
                    v46: u1 = lt v43, v45
                    if v46 {
                        v47: i64 = for v37, v40, v42, [v43] (v48: i64, v49: i64) {
                            v50: u1 = cell_is_active tree0.S1, v41, v48
                            v51: i64 = if v50 {
                                v52: cell<tree0.S1> = find tree0.S1, v41, v48
                                v53: i32 = cast v48
                                v54: i32 = const 1
                                v55: i32 = shr v53, v54
                                v56: i32 = const 1
                                v57: i32 = and v53, v56
                                list_put tree0.S1, v49, v52, [v55, v57]
                                v58: i64 = add v49, v42
                                yield [v58]
                            } {
                                yield [v49]
                            }
                            yield [v51]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v59: u1 = list_stale tree0.S3
                v60: i64 = const 0
                v61: i64 = list_len tree0.S1
                v62: i64 = select v59, v61, v60
                v63: i64 = const 2
                v64: i64 = const 1
                parallel [v60, v60, v60], [v62, v63, v64] aside (v65: i64, v66: i64, v67: i64) {
                    v68: i64 = const 2
                    v69: i64 = mul v65, v68
                    v70: i64 = add v69, v66
                    v71: i64 = const 1
                    v72: i64 = mul v70, v71
                    v73: i64 = add v72, v67
                    v74: cell<tree0.S1>, v75: i32, v76: i32 = list_entry tree0.S1, v65
                    v77: i32 = cast v66
                    v78: i32 = const 2
                    v79: i32 = mul v76, v78
                    v80: container<tree0.S2> = child tree0.S2, v74
                    v81: cell<tree0.S2> = lookup tree0.S2, v80, v77
                    v82: i32 = add v79, v77
                    v83: i64 = const 1024
                    v84: i64 = mul v67, v83
                    v85: i64 = add v84, v83
                    v86: i64 = const 4
                    v87: i64 = min v85, v86
                    v88: container<tree0.S3> = child tree0.S3, v81
                    v89: i64 = const 0
                    v90: i64 = const 1
                    v91: i64 = for v84, v87, v90, [v89] (v92: i64, v93: i64) {
                        v94: u1 = cell_is_active tree0.S3, v88, v92
                        v95: i64 = cast v94
                        v96: i64 = add v93, v95
                        yield [v96]
                    }
                    list_count tree0.S3, v73, v91
                    yield []
                }
                v97: i64 = const 2
                v98: i64 = mul v62, v97
                v99: i64 = const 1
                v100: i64 = mul v98, v99
                if v59 {
                    list_scan tree0.S3, v100
                    yield []
                } {
                    yield []
                }
                parallel [v60, v60, v60], [v62, v63, v64] aside (v101: i64, v102: i64, v103: i64) {
                    v104: i64 = const 2
                    v105: i64 = mul v101, v104
                    v106: i64 = add v105, v102
                    v107: i64 = const 1
                    v108: i64 = mul v106, v107
                    v109: i64 = add v108, v103
                    v110: cell<tree0.S1>, v111: i32, v112: i32 = list_entry tree0.S1, v101
                    v113: i32 = cast v102
                    v114: i32 = const 2
                    v115: i32 = mul v112, v114
                    v116: container<tree0.S2> = child tree0.S2, v110
                    v117: cell<tree0.S2> = lookup tree0.S2, v116, v113
                    v118: i32 = add v115, v113
                    v119: i64 = const 1024
                    v120: i64 = mul v103, v119
                    v121: i64 = add v120, v119
                    v122: i64 = const 4
                    v123: i64 = min v121, v122
                    v124: container<tree0.S3> = child tree0.S3, v117
                    v125: i64 = const 1
                    v126: i64 = list_offset tree0.S3, v109
                    v127: i64 = add v109, v125
                    v128: i64 = list_offset tree0.S3, v127
                    v129: u1 = lt v126, v128
                    if v129 {
                        v130: i64 = for v120, v123, v125, [v126] (v131: i64, v132: i64) {
                            v133: u1 = cell_is_active tree0.S3, v124, v131
                            v134: i64 = if v133 {
                                v135: cell<tree0.S3> = find tree0.S3, v124, v131
                                v136: i32 = cast v131
                                v137: i32 = const 4
                                v138: i32 = mul v111, v137
                                v139: i32 = add v138, v136
                                list_put tree0.S3, v132, v135, [v139, v118]
                                v140: i64 = add v132, v125
                                yield [v140]
                            } {
                                yield [v132]
                            }
                            yield [v134]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v141: i64 = const 0
                v142: i64 = list_len tree0.S3
                parallel [v141], [v142] (v143: i64) {
                    v144: cell<tree0.S3>, v145: i32, v146: i32 = list_entry tree0.S3, v143
                    v147: i32 = const 2
                    v148: i32 = mul v145, v147
                    v149: container<tree0.S4> = child tree0.S4, v144
                    v150: i32 = const 0
                    v151: i32 = const 2
                    v152: i32 = const 1
                    for v150, v151, v152, [] (v153: i32) {
                        v154: i32 = add v148, v153
                        v155: i64 = linearize tree0.S4, [v153]
                        v156: cell<tree0.S4> = lookup tree0.S4, v149, v155
                        cell_at tree0.S4, [v154, v146], v156
                        v157: ref<i32> = field_at @x, [v154, v146]
                        v158: i32 = add v154, v146
                        store v157, v158
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }
}
