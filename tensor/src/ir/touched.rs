//! Read and write sets of statements.

use aerogel_ir::TreeId;
use aerogel_snode::NodeId;
use indexmap::IndexSet;

use super::expr::{Expr, ExprDef, Exprs};
use super::ids::{Buffer, Var};
use super::program::{For, Program, Stmt, Store};
use super::region::Run;

/// The read and write sets of statements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// Buffers that are loaded from; reads of their sizes do not count.
    pub(crate) reads: IndexSet<Buffer>,
    /// Buffers with stores.
    pub(crate) writes: IndexSet<Buffer>,
    /// Variables that are read.
    pub(crate) gets: IndexSet<Var>,
    /// Variables that are set.
    pub(crate) sets: IndexSet<Var>,
    /// Sparse nodes whose active cells are gone over.
    pub(crate) walks: IndexSet<(TreeId, NodeId)>,
    /// Sparse nodes of which cells may become active.
    pub(crate) activates: IndexSet<(TreeId, NodeId)>,
    /// Whether something outside of the program may be touched: what does so stays in its order.
    pub(crate) outside: bool,
}

impl Touched {
    /// The read and write sets of some host statements.
    pub(crate) fn by(program: &Program, body: &[Stmt]) -> Self {
        Self::over(program, body, None)
    }

    /// The read and write sets of the statements of a `for`.
    pub(crate) fn at_points(program: &Program, all: &For) -> Self {
        Self::over(program, &all.body, all.cells)
    }

    /// Whether both touch some buffer.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        let touches = |b: &Buffer| other.reads.contains(b) || other.writes.contains(b);
        self.reads.iter().chain(&self.writes).any(touches)
    }

    fn over(program: &Program, body: &[Stmt], cells: Option<Buffer>) -> Self {
        let mut touched = Self::default();
        touched.block(program, body, cells);
        touched
    }

    /// The read and write sets of a host statement itself, without those of nested statements.
    pub(crate) fn of_itself(program: &Program, stmt: &Stmt) -> Self {
        let mut touched = Self::default();
        touched.stmt(program, stmt, None);
        touched
    }

    fn block(&mut self, program: &Program, body: &[Stmt], cells: Option<Buffer>) {
        for stmt in body {
            self.stmt(program, stmt, cells);
            let cells = match stmt {
                Stmt::For(all) => all.cells,
                _ => cells,
            };
            for inside in stmt.inside() {
                self.block(program, inside, cells);
            }
        }
    }

    fn stmt(&mut self, program: &Program, stmt: &Stmt, cells: Option<Buffer>) {
        self.exprs(&program.exprs, stmt.roots());
        match stmt {
            Stmt::For(all) => {
                let walked = all.cells.map(|field| program.sparse_nodes(field));
                self.walks.extend(walked.into_iter().flatten());
                let extents = all.domain.iter().map(|&dim| program.dim_def(dim).expr());
                self.exprs(&program.exprs, extents.flatten());
            }
            Stmt::Store(store) => {
                self.activates.extend(program.activates(cells, store));
                self.writes.insert(store.target);
                if store.accum.is_some() && !store.init {
                    self.reads.insert(store.target);
                }
            }
            Stmt::Set(var, _) | Stmt::Loop { var, .. } => {
                self.sets.insert(*var);
            }
            Stmt::Call(call) => {
                self.reads.extend(call.inputs.iter().copied());
                self.writes.extend(call.outputs.iter().copied());
            }
            Stmt::Run(run) => self.run(program, run),
            Stmt::Clear(buffer) => {
                self.writes.insert(*buffer);
            }
            Stmt::If(..) | Stmt::Break | Stmt::Continue => {}
        }
    }

    /// A kernel of the user's may read all of its arrays, and do anything in its trees.
    fn run(&mut self, program: &Program, run: &Run) {
        let region = &program.regions[run.region];
        self.outside = true;
        self.reads.extend(run.arrays.iter().copied());
        let arrays = run.arrays.iter().zip(&region.writes);
        let written = arrays.filter(|(_, written)| **written).map(|(b, _)| *b);
        self.writes.extend(written);
        self.writes.extend(run.results.iter().copied());
        for buffer in program.fields() {
            let in_one = |(tree, _)| region.trees.contains(&tree);
            if program.holder(buffer).is_some_and(in_one) {
                self.reads.insert(buffer);
                self.writes.insert(buffer);
            }
        }
        for &tree in &region.trees {
            let nodes = program.trees[tree].nodes();
            let sparse = nodes.filter(|(_, node)| node.kind.is_sparse());
            let sparse: Vec<_> = sparse.map(|(node, _)| (tree, node)).collect();
            self.walks.extend(&sparse);
            self.activates.extend(&sparse);
        }
    }

    /// Adds what expressions read.
    pub(crate) fn exprs(&mut self, exprs: &Exprs, roots: impl IntoIterator<Item = Expr>) {
        exprs.visit(roots, &mut |e| match &exprs[e] {
            ExprDef::Load { buffer, .. } => {
                self.reads.insert(*buffer);
            }
            ExprDef::Var(var, _) => {
                self.gets.insert(*var);
            }
            _ => {}
        });
    }
}

/// The store of a `for` over all of its space that has nothing else.
pub(crate) fn only_store(all: &For) -> Option<&Store> {
    match &all.body[..] {
        [Stmt::Store(store)] if all.cells.is_none() => Some(store),
        _ => None,
    }
}

/// Whether a store writes every element of its target: its indices are the axes in order, and the target has the
/// domain's shape.
pub(crate) fn is_whole(program: &Program, all: &For, store: &Store) -> bool {
    all.cells.is_none() && is_at_own_place(program, all, store)
}

/// The same of the points that a `for` goes over.
pub(crate) fn is_at_own_place(program: &Program, all: &For, store: &Store) -> bool {
    let def = &program.buffers[store.target];
    let mut axes = store.index.iter().enumerate();
    def.shape == all.domain && axes.all(|(k, &e)| program.exprs[e] == ExprDef::Axis(k as u32))
}
