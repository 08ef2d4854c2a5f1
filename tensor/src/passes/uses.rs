//! Who reads and writes what.

use indexmap::IndexSet;

use crate::expr::{Expr, ExprDef, Exprs};
use crate::program::{Buffer, DimDef, For, Program, Stmt, Store, Var};

/// What statements touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// Buffers with loads, extents not counted.
    pub(crate) reads: IndexSet<Buffer>,
    /// Buffers with stores.
    pub(crate) writes: IndexSet<Buffer>,
    /// Variables that are read.
    pub(crate) gets: IndexSet<Var>,
    /// Variables that are set.
    pub(crate) sets: IndexSet<Var>,
}

impl Touched {
    /// What some statements touch.
    pub(crate) fn by(program: &Program, body: &[Stmt]) -> Self {
        let mut touched = Self::default();
        touched.block(program, body);
        touched
    }

    fn block(&mut self, program: &Program, body: &[Stmt]) {
        for stmt in body {
            let mut roots = Vec::new();
            stmt.exprs(|e| roots.push(e));
            if let Stmt::For(all) = stmt {
                for &dim in &all.domain {
                    if let DimDef::Value(e) = program.dim_def(dim) {
                        roots.push(*e);
                    }
                }
            }
            self.exprs(&program.exprs, roots);
            match stmt {
                Stmt::Store(store) => {
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
                _ => {}
            }
            for inside in stmt.inside() {
                self.block(program, inside);
            }
        }
    }

    /// Adds what expressions read.
    pub(super) fn exprs(&mut self, exprs: &Exprs, roots: impl IntoIterator<Item = Expr>) {
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

/// The store of a `for` that has nothing else.
pub(super) fn only_store(all: &For) -> Option<&Store> {
    match &all.body[..] {
        [Stmt::Store(store)] => Some(store),
        _ => None,
    }
}

/// Whether a store's indices are the axes in their order, and its target's extents the domain's.
pub(super) fn is_whole(program: &Program, all: &For, store: &Store) -> bool {
    let def = &program.buffers[store.target];
    let mut axes = store.index.iter().enumerate();
    def.shape == all.domain && axes.all(|(k, &e)| program.exprs[e] == ExprDef::Axis(k as u32))
}

/// Replaces every expression in statements.
pub(crate) fn map_exprs(body: &mut [Stmt], f: &mut dyn FnMut(Expr) -> Expr) {
    for stmt in body {
        match stmt {
            Stmt::Store(store) => {
                store.index.iter_mut().for_each(|e| *e = f(*e));
                store.value = f(store.value);
            }
            Stmt::Set(_, e) => *e = f(*e),
            Stmt::Loop { lo, hi, body, .. } => {
                *lo = f(*lo);
                *hi = f(*hi);
                map_exprs(body, f);
            }
            Stmt::If(cond, then, otherwise) => {
                *cond = f(*cond);
                map_exprs(then, f);
                map_exprs(otherwise, f);
            }
            Stmt::For(all) => map_exprs(&mut all.body, f),
            Stmt::Break | Stmt::Continue | Stmt::Call(_) => {}
        }
    }
}
