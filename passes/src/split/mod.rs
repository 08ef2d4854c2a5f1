//! Kernels over fields that many processes share: from a module to the module of one process.
//!
//! A split field holds a box of the grid's cells and a halo of its neighbours' cells around it; its offset makes global indices
//! right. A parallel loop that accesses such fields runs over the process' own cells, and its attribute `exchange` is the number of
//! an exchange: the halo cells to receive before the loop, and the sums to combine after it.
//!
//! ```text
//! parallel_cells tree0.S1 (i, j) {                   parallel [4, 0], [8, 8] exchange=0 (i, j) {
//!     store g[i, j], f[(i + 1) mod 8, j]       ==>       store g[i, j], f[i + 1, j]
//! }                                                  }
//! exchange 0: reads f, of axis 0 one cell above; writes g
//! ```
//! The process that owns the cell that an iteration stores to runs the iteration. What an iteration adds to neighbours' cells
//! stays in the halo until the loop ends, and is then added to the cells: derivatives do so. What is added to data that all processes
//! have is combined after the loop; a variable of the kernel becomes a field for that.

mod accesses;
mod grid;
mod offsets;
mod owners;
mod sparse;
mod sums;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aerogel_base::Diagnostic;
use aerogel_ir::analysis::Ranges;
use aerogel_ir::{
    BinaryOp, Env, FuncId, Function, Inst, LoopAttrs, Module, NodeRef, Op, Region, TreeId, Type,
    replace_value, walk,
};
use aerogel_snode::Tree;

use self::accesses::Accesses;
pub use self::grid::{Exchange, SparseTree, SplitAxis, SplitGrid, Sum};
use self::grid::{Outcome, Split, mistake};
use self::owners::Owners;
use crate::pass::Pass;
use crate::simplify::{cse, dce, fold, promote_locals};
use crate::sums::demote_atomics;
use crate::tensors::{loop_tensors, scalarize};
use crate::{BrokenPass, Options, driver, inline, single_exit};

/// A kernel of one process.
#[derive(Debug)]
pub struct SplitKernel {
    /// The module, at stage `Structured`.
    pub module: Module,
    /// What the attribute `exchange` of loops refers to.
    pub exchanges: Vec<Exchange>,
    /// Trees that were added to the module: one for each variable of the kernel that is summed over processes.
    pub hidden: Vec<Arc<Tree>>,
}

/// Why there is none.
#[derive(Debug)]
pub enum SplitError {
    /// The user's mistake.
    Mistake(Box<Diagnostic>),
    /// A bug of ours.
    Broken(BrokenPass),
}

const CALLED: &[Pass] = &[Pass::structured("single_exit", single_exit::all)];

/// Indices become values of one function, whatever variables and vectors they went through.
const KERNEL: &[Pass] = &[
    Pass::structured("inline", inline::all),
    Pass::structured("loop_tensors", loop_tensors::run),
    Pass::structured("scalarize", scalarize::run),
    // A sum over the iterations stays atomic: what is added to a neighbour's cell must be told from a store.
    Pass::structured("demote_atomics", demote_atomics::locals),
    Pass::structured("looking_back", demote_atomics::looking_back),
    Pass::structured("promote_locals", promote_locals::run),
    Pass::structured("fold", fold::run),
    Pass::structured("cse", cse::run),
    Pass::structured("dce", dce::run),
];

/// Whether the module's functions access a field in a tree, or loop over one, that `is_split` accepts.
pub fn accesses_split(module: &Module, is_split: &dyn Fn(TreeId) -> bool) -> bool {
    let mut found = false;
    for func in module.funcs.values() {
        walk(func, func.body, &mut |func, inst| {
            found |= tree_of(&module.env, &func[inst]).is_some_and(is_split);
        });
    }
    found
}

/// The tree that an instruction names a cell of, or loops over.
fn tree_of(env: &Env, op: &Op) -> Option<TreeId> {
    match op {
        Op::FieldAt { field, .. } => Some(env.fields[*field].tree),
        Op::ParallelCells { node, .. } => Some(node.tree),
        Op::Cell(op) => accesses::node_of(op).map(|node| node.tree),
        _ => None,
    }
}

/// Makes loops over the cells of split trees loops over the numbers of all cells of their grids, so that the iterations of a
/// derivative have the same numbers on all processes.
pub fn number_cells(module: &mut Module, grids: &[Option<Arc<SplitGrid>>]) {
    for func in module.funcs.values_mut().filter(|func| func.is_kernel) {
        for inst in func.regions[func.body].insts.clone() {
            let Op::ParallelCells { node, attrs, body } = func[inst] else {
                continue;
            };
            let grid = grids.get(node.tree.as_u32() as usize);
            if let Some(Some(grid)) = grid
                && !grid.is_sparse
            {
                over_grid(func, grid, inst, (attrs, body));
            }
        }
    }
}

/// Makes a loop over cells one over the numbers of a grid. What its body takes for counters are places in memory.
fn over_grid(
    func: &mut Function,
    grid: &SplitGrid,
    inst: Inst,
    (attrs, body): (LoopAttrs, Region),
) {
    let span = func.insts[inst].span;
    let mut before = Vec::new();
    let constant = |func: &mut Function, value: i64, list: &mut Vec<Inst>| {
        let value = aerogel_base::Scalar::i32(value as i32);
        let inst = func.new_inst(Op::Const { value }, &[Type::I32], span);
        list.push(inst);
        func.insts[inst].results[0]
    };
    let axes = grid.axes.iter();
    let lo = axes
        .clone()
        .map(|_| constant(func, 0, &mut before))
        .collect();
    let hi = axes
        .map(|axis| constant(func, axis.size, &mut before))
        .collect();
    let places = std::mem::take(&mut func.regions[body].params);
    let types: Vec<Type> = places.iter().map(|&place| func.ty(place)).collect();
    let numbered = func.new_region(&types);
    let numbers = func.regions[numbered].params.clone();
    let mut insts = Vec::new();
    for ((&place, &number), axis) in places.iter().zip(&numbers).zip(&grid.axes) {
        let first = constant(func, axis.first(), &mut insts);
        let sub = func.new_inst(
            Op::Binary {
                op: BinaryOp::Sub,
                lhs: number,
                rhs: first,
            },
            &[Type::I32],
            span,
        );
        insts.push(sub);
        replace_value(func, body, place, func.insts[sub].results[0]);
    }
    insts.append(&mut func.regions[body].insts);
    func.regions[numbered].insts = insts;
    func.insts[inst].op = Op::Parallel {
        lo,
        hi,
        attrs,
        body: numbered,
    };
    let kernel = func.body;
    let list = &mut func.regions[kernel].insts;
    let at = list.iter().position(|&i| i == inst).expect("it is there");
    list.splice(at..at, before);
}

/// The kernel of one process. `grids` has the grid of each tree of the module, if it is split; `is_derivative` says that the kernel
/// computes derivatives: the kernel that was differentiated has been split without an error.
///
/// # Errors
/// If the kernel accesses split fields in a way that other processes would have to know.
pub fn split(
    mut module: Module,
    grids: &[Option<Arc<SplitGrid>>],
    options: Options,
    is_derivative: bool,
) -> Result<SplitKernel, SplitError> {
    prepare(&mut module, options).map_err(SplitError::Broken)?;
    let kernel = module.funcs.iter().find(|(_, func)| func.is_kernel);
    let id = kernel.expect("a kernel's module has one").0;
    let mut func = std::mem::replace(&mut module.funcs[id], Function::new("", false));
    let calls = calls_accesses(&module, &func, grids);
    let mut split = Split {
        env: &mut module.env,
        grids,
        exchanges: Vec::new(),
        hidden: Vec::new(),
        is_derivative,
    };
    let outcome = match calls {
        Some(wrong) => Err(wrong),
        None => split.kernel(&mut func),
    };
    let Split {
        exchanges, hidden, ..
    } = split;
    module.funcs[id] = func;
    outcome.map_err(|mistake| {
        SplitError::Mistake(match is_derivative {
            true => Box::new(
                mistake.note("this is about the derivative of the kernel, which runs on all ranks"),
            ),
            false => mistake,
        })
    })?;
    Ok(SplitKernel {
        module,
        exchanges,
        hidden,
    })
}

/// The mistake that a kernel calls a function which accesses split fields.
fn calls_accesses(
    module: &Module,
    kernel: &Function,
    grids: &[Option<Arc<SplitGrid>>],
) -> Option<Box<Diagnostic>> {
    let is_split = |tree: TreeId| matches!(grids.get(tree.as_u32() as usize), Some(Some(_)));
    // The kernel is not in the table meanwhile.
    if !accesses_split(module, &is_split) {
        return None;
    }
    let mut found = None;
    walk(kernel, kernel.body, &mut |func, inst| {
        if let Op::Call { .. } = func[inst] {
            found.get_or_insert(func.insts[inst].span);
        }
    });
    let message = "a real function accesses split fields, and which cells it accesses is not known";
    let note = "make it a `ti.func`, which is compiled into the kernel";
    found.map(|span| mistake(span, message, note))
}

fn prepare(module: &mut Module, options: Options) -> Result<(), BrokenPass> {
    let ids: Vec<FuncId> = module.funcs.keys().collect();
    for &id in &ids {
        driver::run_list(CALLED, module, id, options)?;
    }
    for id in ids {
        if module.funcs[id].is_kernel {
            driver::run_list(KERNEL, module, id, options)?;
        }
    }
    Ok(())
}

impl Split<'_> {
    fn is_split(&self, func: &Function, inst: Inst) -> bool {
        tree_of(self.env, &func[inst]).is_some_and(|tree| self.grid(tree).is_some())
    }

    fn kernel(&mut self, func: &mut Function) -> Outcome<()> {
        let body = func.body;
        for inst in func.regions[body].insts.clone() {
            let mut is_split = self.is_split(func, inst);
            let mut at = func.insts[inst].span;
            func[inst].regions(|region| {
                walk(func, region, &mut |func, inner| {
                    if self.is_split(func, inner) {
                        (is_split, at) = (true, func.insts[inner].span);
                    }
                });
            });
            if !is_split {
                continue;
            }
            if !matches!(func[inst], Op::Parallel { .. } | Op::ParallelCells { .. }) {
                let message = "an element of a split field is accessed outside of a parallel loop: one process has it";
                let note = "loop over the field, `for i, j in f`, or access the element from Python, `f[i, j]`";
                return Err(mistake(at, message, note));
            }
            let is_sparse =
                |grid: &Option<Arc<SplitGrid>>| grid.as_ref().is_some_and(|g| g.is_sparse);
            if self.is_derivative && self.grids.iter().any(is_sparse) {
                let message = "a loop with a derivative accesses a sparse tree on a grid";
                let note = "use a field whose shape is the grid, `ti.field(ti.f32, shape=grid, needs_grad=True)`";
                return Err(mistake(at, message, note));
            }
            self.parallel(func, inst)?;
        }
        Ok(())
    }

    /// Makes a loop that of the process' own cells.
    fn parallel(&mut self, func: &mut Function, inst: Inst) -> Outcome<()> {
        let span = func.insts[inst].span;
        let (Op::Parallel { attrs, .. } | Op::ParallelCells { attrs, .. }) = func[inst] else {
            unreachable!("the caller looked")
        };
        if attrs.serial {
            let message =
                "a loop over split fields cannot run in order: each process runs a part of it";
            return Err(mistake(span, message, "leave out `serialize=True`"));
        }
        let mut before = Vec::new();
        let over = self.over_numbers(func, inst, &mut before)?;
        let accesses = Accesses::of(self, func, inst)?;
        let (sums, locals) = sums::find(self, func, inst)?;
        let ranges = {
            self.insert(func, inst, before);
            Ranges::within(func, func.body)
        };
        let owners = Owners::find(self, (func, &ranges), (inst, over.as_ref()), &accesses)?;
        let mut exchange = owners.exchange;
        if let Op::ParallelCells { body, .. } = func[inst] {
            sparse::guard(func, body, &owners.narrowed);
        } else {
            let mut before = Vec::new();
            owners::narrow(func, inst, &owners.narrowed, &mut before);
            self.insert(func, inst, before);
        }
        owners::unwrap(func, owners.unwrapped);
        exchange.sums = sums;
        for sum in locals {
            let target = self.hide(func, sum.target);
            exchange.sums.push(Sum {
                target,
                component: sum.component,
                op: sum.op,
            });
        }
        let number = self.exchanges.len() as u32;
        self.exchanges.push(exchange);
        if let Op::Parallel { attrs, .. } | Op::ParallelCells { attrs, .. } =
            &mut func.insts[inst].op
        {
            attrs.exchange = Some(number);
        }
        Ok(())
    }

    /// Puts instructions before one of the kernel's outermost scope.
    fn insert(&self, func: &mut Function, inst: Inst, before: Vec<Inst>) {
        let body = func.body;
        let list = &mut func.regions[body].insts;
        let at = list.iter().position(|&i| i == inst).expect("it is there");
        list.splice(at..at, before);
    }

    /// Makes a loop over cells one over numbers, all of the grid, unless it is over the active cells of a sparse tree; the grid of
    /// its cells, if it is split.
    fn over_numbers(
        &self,
        func: &mut Function,
        inst: Inst,
        before: &mut Vec<Inst>,
    ) -> Outcome<Option<Arc<SplitGrid>>> {
        let Op::ParallelCells { node, attrs, body } = func[inst] else {
            return Ok(None);
        };
        let span = func.insts[inst].span;
        let grid = self.grid_of_node(node);
        if grid.as_ref().is_some_and(|grid| grid.is_sparse) {
            return Ok(grid);
        }
        let NodeRef { tree, node } = node;
        if self.env.trees[tree].is_below_sparse(node) {
            let message = "a loop over a sparse layout accesses a split field";
            return Err(mistake(span, message, "loop over the split field"));
        }
        let shape = self.env.trees[tree].shape(node);
        let ends: Vec<[i64; 2]> = match &grid {
            Some(grid) => {
                let of = |axis: &SplitAxis| [-axis.first(), axis.size - axis.first()];
                grid.axes.iter().map(of).collect()
            }
            None => shape.iter().map(|&n| [0, n as i64]).collect(),
        };
        let mut constant = |func: &mut Function, value: i64| {
            let value = aerogel_base::Scalar::i32(value as i32);
            let inst = func.new_inst(Op::Const { value }, &[Type::I32], span);
            before.push(inst);
            func.insts[inst].results[0]
        };
        let lo = ends.iter().map(|e| constant(func, e[0])).collect();
        let hi = ends.iter().map(|e| constant(func, e[1])).collect();
        func.insts[inst].op = Op::Parallel {
            lo,
            hi,
            attrs,
            body,
        };
        Ok(grid)
    }
}
