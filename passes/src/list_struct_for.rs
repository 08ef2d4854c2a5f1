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
use aerogel_snode::{NodeId, NodeKind, Tree};

use crate::PassCx;
use crate::block_local::Gathered;
use crate::cells::{self, Nest, Walk, at_end};
use crate::demote_struct_for::replace;

/// An iteration of a task walks about so many cells.
const CELLS_PER_ITERATION: u64 = 4096;
/// Cells of a container that one part of a list counts.
const PART: u64 = 1024;

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
        if rest <= CELLS_PER_ITERATION && (driven || n > 0) {
            break;
        }
        rest /= nest.extent(looped);
        n += 1;
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
    let n_parts = n_cells.div_ceil(PART);
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
                let size = i64_of(b, PART);
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
            attrs: LoopAttrs::default(),
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
fn stop_flag(func: &mut Function, body: Region, span: aerogel_base::Span) -> Option<Value> {
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
fn leave_if(b: &mut Builder<'_>, flag: Value) {
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
            }", @"");
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
            }", @"");
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
            }", @"");
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
            }", @"");
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
            }", @"");
    }
}
