//! Loops over the active cells of a sparse node go over lists.
//!
//! ```text
//! parallel_cells tree0.S3 (i, j) { body }     ; pointer S1, in whose cells lies dense S2 over 8 x 8
//!     ==>   tasks that make the list of S1, if it is out of date
//!           parallel over the list (e) {
//!               cell, i0, j0 = list_entry S1, e
//!               for c in 0..64 { ...  cell_at S2, [i0 + c / 8, j0 + c % 8]  body }
//!           }
//! ```
//! There is a list for each pointer or hash node on the way (`lists.rs`). Below the last one, dense cells are
//! loops, the bits of a mask are taken one by one, and the cells of a dynamic container are counted off. The
//! outermost of these loops are axes of the task where a cell of the list holds many, so that the
//! work of a few large cells is divided too.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    Builder, CellOp, Function, Inst, NodeOp, NodeRef, Op, Region, Type, Value, copy_region,
    replace_values, walk,
};
use aerogel_snode::{NodeId, Tree};

use crate::PassCx;
use crate::blocks::{Around, Shared, SharedSums, Written};
use crate::cells::lists::{begin, enter, lists};
use crate::cells::nest::{self, Loop, Nest, Spot, Walk, at_end};

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

/// How a loop over the cells of a node goes.
pub(crate) struct Plan<'a> {
    /// The node whose list the task goes over.
    pub(crate) driver: NodeId,
    /// The loops below its cells.
    nest: Nest<'a>,
    /// How many of them become axes of the task.
    n_axes: usize,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(
        func: &Function,
        cx: &'a PassCx<'_>,
        node: NodeRef,
        body: Region,
        params: &[Value],
    ) -> Self {
        let driver = nest::driver(&cx.env.trees[node.tree], node.node);
        let walk = if visits_itself(func, body, params) {
            Walk::Flat
        } else {
            Walk::Axes
        };
        let nest = Nest::new(cx, node, driver, walk);
        let driven = driver != Tree::ROOT;
        let n_axes = n_task_axes(&nest, cx.options.thresholds.cells_per_iteration, driven);
        Self {
            driver,
            nest,
            n_axes,
        }
    }

    fn is_driven(&self) -> bool {
        self.driver != Tree::ROOT
    }

    /// Whether an iteration of the task is a block: a cell of the list, with all below it.
    pub(crate) fn in_blocks(&self) -> bool {
        self.is_driven() && self.n_axes == 0
    }
}

/// Writes the tasks for one loop at the end of the kernel's body.
fn sweep(func: &mut Function, cx: &PassCx<'_>, inst: Inst) {
    let Op::ParallelCells {
        node,
        mut attrs,
        body,
    } = func[inst]
    else {
        unreachable!("the caller looked")
    };
    let tree = &cx.env.trees[node.tree];
    let params = std::mem::take(&mut func.regions[body].params);
    let plan = Plan::new(func, cx, node, body, &params);
    let driven = plan.is_driven();
    let Plan {
        driver,
        mut nest,
        n_axes,
    } = plan;
    let (top, span) = (func.body, func.insts[inst].span);
    let stop = attrs.serial.then(|| stop_flag(func, body, span)).flatten();
    let written = match attrs.writes_around {
        true => Written::find(func, cx, node, driver, body, &params),
        false => None,
    };
    let look_around = |func: &Function, body| {
        let found = |_| Around::find(func, cx, node, driver, body, &params);
        attrs.around.and_then(found)
    };
    let mut around = look_around(func, body);
    let mut written = written.map(|written| {
        let otherwise = copy_region(func, body);
        (written, otherwise, look_around(func, otherwise))
    });

    // One cell for each thread, so that a block of threads is a block of cells.
    let is_whole = driven && n_axes == nest.loops.len() && !attrs.serial;
    let shared = Some(())
        .filter(|()| is_whole && around.is_none() && written.is_none())
        .and_then(|()| Shared::find(func, cx, node, driver, body, &params))
        .filter(|shared| attrs.block.is_none_or(|n| n == shared.threads()));
    let mut is_shared = false;
    let sums = match nest.loops[..] {
        [Loop::Pieces { .. }] if is_whole => SharedSums::find(func, cx, node, driver, body),
        _ => None,
    };
    if sums.is_some() {
        let threads = attrs.block.unwrap_or(SharedSums::THREADS);
        attrs.block = Some(threads);
        nest.together = Some(u64::from(threads));
    }

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
        hi.push(b.value(NodeOp::ListLen { node: driver }, Type::I64));
    }
    for &looped in &nest.loops[..n_axes] {
        lo.push(zero);
        let extent = i128::from(nest.extent(looped));
        hi.push(b.constant(Scalar::int(ScalarType::I64, extent)));
    }
    let types = vec![Type::I64; lo.len()];
    let over = b.region(&types, |b, axes| {
        let whole = b.region;
        let (cell, indices, given) = enter(b, tree, driver, axes, &nest);
        let mut write = |b: &mut Builder<'_>,
                         body: Region,
                         around: &mut Option<Around>,
                         written: Option<&Written>| {
            if let Some(around) = around {
                around.prologue(b, tree, driver, cell, &indices);
            }
            let origin = begin(b, tree, driver.node, node.node, &indices);
            let boxes = sums.as_ref().map(|sums| sums.prologue(b, &indices));
            nest.write(b, cell, origin, &given, &mut |b, spot| {
                let (cell, index) = match spot {
                    Spot::Word(word, mask) => {
                        if let Some(around) = around {
                            around.word(b, word, mask);
                        }
                        return;
                    }
                    Spot::Cell(cell, index) => (cell, index),
                };
                if let Some(stop) = stop {
                    leave_if(b, stop);
                }
                if let Some(around) = around {
                    around.redirect(b, cell);
                }
                b.effect(CellOp::CellAt {
                    node,
                    indices: index.to_vec(),
                    cell,
                });
                // The cell is known now; and all threads have to come to the barrier.
                if let Some(shared) = shared.as_ref().filter(|_| b.region == whole) {
                    shared.redirect(b, cx, cell, index);
                    is_shared = true;
                }
                if let Some(written) = written {
                    written.redirect(b, body, cell, index);
                }
                if let (Some(sums), Some(boxes)) = (&sums, &boxes) {
                    sums.redirect(b.func, body, boxes);
                }
                let pairs = params.iter().copied().zip(index.iter().copied());
                replace_values(b.func, body, &pairs.collect::<Vec<_>>());
                let mut insts = std::mem::take(&mut b.func.regions[body].insts);
                b.func.regions[b.region].insts.append(&mut insts);
            });
            if let Some(written) = written {
                written.epilogue(b, cell);
            }
            if let (Some(sums), Some(boxes)) = (&sums, &boxes) {
                sums.epilogue(b, boxes);
            }
        };
        let Some((written, otherwise, around_otherwise)) = &mut written else {
            return write(b, body, &mut around, None);
        };
        let cond = written.condition(b, &indices);
        let then = b.region(&[], |b, _| {
            written.prologue(b, &indices);
            write(b, body, &mut around, Some(written));
        });
        let otherwise = b.region(&[], |b, _| {
            write(b, *otherwise, around_otherwise, None);
        });
        b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    });
    if let Some(shared) = shared.filter(|_| is_shared) {
        attrs.block = Some(shared.threads());
    }
    b.effect(Op::Parallel {
        lo,
        hi,
        attrs,
        body: over,
    });
}

/// How many loops of a nest become axes of the task, so that an iteration walks `most` cells or less.
fn n_task_axes(nest: &Nest<'_>, most: u64, driven: bool) -> usize {
    let mut rest: u64 = nest
        .loops
        .iter()
        .map(|&l| nest.extent(l).saturating_mul(nest.weight(l)))
        .fold(1, u64::saturating_mul);
    let mut n = 0;
    for &looped in &nest.loops {
        if rest <= most && (driven || n > 0) || n == MOST_AXES {
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

/// Whether the loop whose body `region` is may be left by `break`.
pub(crate) fn is_left(func: &Function, region: Region) -> bool {
    let mut breaks = Vec::new();
    find_breaks(func, region, &mut breaks);
    !breaks.is_empty()
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
    let then = b.region(&[], |b, _| {
        b.effect(Op::Continue { values: Vec::new() });
    });
    let otherwise = b.region(&[], |_, _| {});
    b.effect(Op::If {
        cond,
        then,
        otherwise,
    });
}

#[cfg(test)]
mod tests;
