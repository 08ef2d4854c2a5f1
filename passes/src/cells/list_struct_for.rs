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
//! There is a list for each pointer or hash node on the path (`lists.rs`). Below the last one, dense cells
//! become loops, the bits of a mask are visited one by one, and so are the cells of a dynamic container. The
//! outermost of these loops become axes of the task if a cell of the list contains many cells, so that the
//! work of a few large cells is divided too.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    Builder, CellOp, Function, Inst, LoopAttrs, NodeOp, NodeRef, Op, Region, Type, Value,
    copy_region, replace_values, walk,
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
    let (top, span) = (func.body, func.insts[inst].span);
    let stop = attrs.serial.then(|| stop_flag(func, body, span)).flatten();
    let mut variants = Variants::find(func, (cx, node, plan.driver), body, (&attrs, &params));
    let mut on_gpu = OnGpu::find(
        func,
        (cx, node, &plan),
        (body, &params),
        (&attrs, &variants),
    );
    let Plan {
        driver,
        mut nest,
        n_axes,
    } = plan;
    if on_gpu.sums.is_some() {
        let threads = attrs.block.unwrap_or(SharedSums::THREADS);
        attrs.block = Some(threads);
        nest.together = Some(u64::from(threads));
    }

    let mut b = at_end(func, top, span);
    lists(&mut b, cx, (node.tree, tree), driver, attrs.exchange);
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    let zero = b.constant(Scalar::int(ScalarType::I64, 0));
    let driver = NodeRef {
        tree: node.tree,
        node: driver,
    };
    if driver.node != Tree::ROOT {
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
        let (cell, indices, given) = enter(b, tree, driver, axes, &nest);
        let mut block = Block {
            cx,
            node,
            driver,
            nest: &nest,
            params: &params,
            stop,
            whole: b.region,
            at: (cell, &indices, &given),
            on_gpu: &mut on_gpu,
        };
        let Variants { first, second } = &mut variants;
        let Some((written, otherwise)) = second else {
            return block.write(b, first, None);
        };
        let cond = written.condition(b, &indices);
        let then = b.region(&[], |b, _| {
            written.prologue(b, &indices);
            block.write(b, first, Some(written));
        });
        let otherwise = b.region(&[], |b, _| block.write(b, otherwise, None));
        b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    });
    if let Some(shared) = on_gpu.shared.filter(|_| on_gpu.is_shared) {
        attrs.block = Some(shared.threads());
    }
    b.effect(Op::Parallel {
        lo,
        hi,
        attrs,
        body: over,
    });
}

/// The body of a loop, with the neighbours that it reads from a copy.
struct Variant {
    body: Region,
    around: Option<Around>,
}

/// The body, once or twice: where a block writes to its neighbours, the first is for blocks whose neighbours are there, the
/// second for all others.
struct Variants {
    first: Variant,
    second: Option<(Written, Variant)>,
}

impl Variants {
    fn find(
        func: &mut Function,
        (cx, node, driver): (&PassCx<'_>, NodeRef, NodeId),
        body: Region,
        (attrs, params): (&LoopAttrs, &[Value]),
    ) -> Self {
        let written = match attrs.writes_around {
            true => Written::find(func, cx, node, driver, body, params),
            false => None,
        };
        let variant = |func: &Function, body| {
            let found = |_| Around::find(func, cx, node, driver, body, params);
            let around = attrs.around.and_then(found);
            Variant { body, around }
        };
        let first = variant(func, body);
        let second = written.map(|written| {
            let copy = copy_region(func, body);
            (written, variant(func, copy))
        });
        Self { first, second }
    }
}

/// What the threads of a block do together on a GPU.
struct OnGpu {
    shared: Option<Shared>,
    is_shared: bool,
    sums: Option<SharedSums>,
}

impl OnGpu {
    fn find(
        func: &Function,
        (cx, node, plan): (&PassCx<'_>, NodeRef, &Plan<'_>),
        (body, params): (Region, &[Value]),
        (attrs, variants): (&LoopAttrs, &Variants),
    ) -> Self {
        let loops = &plan.nest.loops[..];
        // One cell for each thread, so that a block of threads is a block of cells.
        let is_whole = plan.is_driven() && plan.n_axes == loops.len() && !attrs.serial;
        let is_plain = variants.first.around.is_none() && variants.second.is_none();
        let shared = (is_whole && is_plain)
            .then(|| Shared::find(func, cx, node, plan.driver, body, params))
            .flatten();
        let sums = match loops {
            [Loop::Pieces { .. }] if is_whole => {
                SharedSums::find(func, cx, node, plan.driver, body)
            }
            _ => None,
        };
        Self {
            shared: shared.filter(|shared| attrs.block.is_none_or(|n| n == shared.threads())),
            is_shared: false,
            sums,
        }
    }

    /// The cell is known now; and all threads have to come to the barrier.
    fn share(&mut self, b: &mut Builder<'_>, cx: &PassCx<'_>, cell: Value, index: &[Value]) {
        if let Some(shared) = &self.shared {
            shared.redirect(b, cx, cell, index);
            self.is_shared = true;
        }
    }
}

/// A cell of the list, with all below it.
struct Block<'a> {
    cx: &'a PassCx<'a>,
    node: NodeRef,
    driver: NodeRef,
    nest: &'a Nest<'a>,
    params: &'a [Value],
    stop: Option<Value>,
    /// The body of the task.
    whole: Region,
    /// The cell, its indices, and the counters of loops that are axes of the task.
    at: (Value, &'a [Value], &'a [Value]),
    on_gpu: &'a mut OnGpu,
}

impl Block<'_> {
    /// Writes the loops over the cells, with a body in them.
    fn write(&mut self, b: &mut Builder<'_>, variant: &mut Variant, written: Option<&Written>) {
        let (cell, indices, given) = self.at;
        let tree = &self.cx.env.trees[self.node.tree];
        if let Some(around) = &mut variant.around {
            around.prologue(b, tree, self.driver, cell, indices);
        }
        let origin = begin(b, tree, self.driver.node, self.node.node, indices);
        let sums = self.on_gpu.sums.as_ref();
        let boxes = sums.map(|sums| sums.prologue(b, indices));
        self.nest
            .write(b, cell, origin, given, &mut |b, spot| match spot {
                Spot::Word(word, mask) => {
                    if let Some(around) = &mut variant.around {
                        around.word(b, word, mask);
                    }
                }
                Spot::Cell(cell, index) => {
                    if let Some(stop) = self.stop {
                        leave_if(b, stop);
                    }
                    if let Some(around) = &variant.around {
                        around.redirect(b, cell);
                    }
                    b.effect(CellOp::CellAt {
                        node: self.node,
                        indices: index.to_vec(),
                        cell,
                    });
                    if b.region == self.whole {
                        self.on_gpu.share(b, self.cx, cell, index);
                    }
                    if let Some(written) = written {
                        written.redirect(b, variant.body, cell, index);
                    }
                    if let (Some(sums), Some(boxes)) = (&self.on_gpu.sums, &boxes) {
                        sums.redirect(b.func, variant.body, boxes);
                    }
                    self.append(b, variant.body, index);
                }
            });
        if let Some(written) = written {
            written.epilogue(b, cell);
        }
        if let (Some(sums), Some(boxes)) = (&self.on_gpu.sums, &boxes) {
            sums.epilogue(b, boxes);
        }
    }

    /// The instructions of a body, for the cell at some indices.
    fn append(&self, b: &mut Builder<'_>, body: Region, index: &[Value]) {
        let pairs = self.params.iter().copied().zip(index.iter().copied());
        replace_values(b.func, body, &pairs.collect::<Vec<_>>());
        let mut insts = std::mem::take(&mut b.func.regions[body].insts);
        b.func.regions[b.region].insts.append(&mut insts);
    }
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
