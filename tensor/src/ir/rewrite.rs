//! The walks through statements: passes go through loops, branches and `for`s by these alone.
//!
//! | to change | call |
//! |---|---|
//! | each `for` | [`rewrite_fors`] |
//! | each statement of the host | [`rewrite`] |
//! | each block of the host as a whole | [`rewrite_blocks`] |
//! | every statement, those at points too, in place | [`visit_mut`] |
//! | every expression | [`map_exprs`] |
//!
//! The first three take the body out of the program meanwhile, so that they can hand the program out. All but `visit_mut`
//! return whether something has changed. To read, call [`visit`] for every statement, or [`visit_host`] for those outside of
//! `for`s. A walk whose state depends on the order of blocks recurses itself, by `Stmt::blocks_mut`.

use super::expr::Expr;
use super::program::{For, Program, Stmt};

/// Rewrites each statement of the host after those inside it: `visit` appends what replaces it to the last argument, and
/// returns whether it differs.
pub(crate) fn rewrite(
    program: &mut Program,
    visit: &mut dyn FnMut(&mut Program, Stmt, &mut Vec<Stmt>) -> bool,
) -> bool {
    with_body(program, &mut |program, body| {
        rewrite_block(program, body, visit)
    })
}

fn with_body(
    program: &mut Program,
    f: &mut dyn FnMut(&mut Program, &mut Vec<Stmt>) -> bool,
) -> bool {
    let mut body = std::mem::take(&mut program.body);
    let changed = f(program, &mut body);
    program.body = body;
    changed
}

fn rewrite_block(
    program: &mut Program,
    body: &mut Vec<Stmt>,
    visit: &mut dyn FnMut(&mut Program, Stmt, &mut Vec<Stmt>) -> bool,
) -> bool {
    let mut changed = false;
    for mut stmt in std::mem::take(body) {
        for inside in stmt.blocks_mut() {
            changed |= rewrite_block(program, inside, visit);
        }
        changed |= visit(program, stmt, body);
    }
    changed
}

/// Rewrites each `for` in place. `visit` appends what has to run before it to the last argument.
pub(crate) fn rewrite_fors(
    program: &mut Program,
    visit: &mut dyn FnMut(&mut Program, &mut For, &mut Vec<Stmt>) -> bool,
) -> bool {
    rewrite(program, &mut |program, mut stmt, out| {
        let changed = match &mut stmt {
            Stmt::For(all) => visit(program, all, out),
            _ => false,
        };
        out.push(stmt);
        changed
    })
}

/// Rewrites each block of the host after the blocks inside it.
pub(crate) fn rewrite_blocks(
    program: &mut Program,
    visit: &mut dyn FnMut(&mut Program, &mut Vec<Stmt>) -> bool,
) -> bool {
    let inner = rewrite(program, &mut |program, mut stmt, out| {
        let mut changed = false;
        for inside in stmt.blocks_mut() {
            changed |= visit(program, inside);
        }
        out.push(stmt);
        changed
    });
    with_body(program, visit) | inner
}

/// Calls `f` for every statement, each before those inside it.
pub(crate) fn visit_mut(body: &mut [Stmt], f: &mut dyn FnMut(&mut Stmt)) {
    for stmt in body {
        f(stmt);
        match stmt {
            Stmt::For(all) => visit_mut(&mut all.body, f),
            other => other.blocks_mut().for_each(|inside| visit_mut(inside, f)),
        }
    }
}

/// Replaces every expression.
pub(crate) fn map_exprs(body: &mut [Stmt], f: &mut dyn FnMut(Expr) -> Expr) -> bool {
    let mut changed = false;
    visit_mut(body, &mut |stmt| {
        stmt.exprs_mut(&mut |e| {
            let new = f(*e);
            changed |= new != *e;
            *e = new;
        });
    });
    changed
}

/// Calls `f` for every statement, each before those inside it.
pub(crate) fn visit<'s>(body: &'s [Stmt], f: &mut dyn FnMut(&'s Stmt)) {
    for stmt in body {
        f(stmt);
        stmt.inside()
            .into_iter()
            .for_each(|inside| visit(inside, f));
    }
}

/// The same of the statements outside of `for`s.
pub(crate) fn visit_host<'s>(body: &'s [Stmt], f: &mut dyn FnMut(&'s Stmt)) {
    for stmt in body {
        f(stmt);
        if !matches!(stmt, Stmt::For(_)) {
            let blocks = stmt.inside().into_iter();
            blocks.for_each(|inside| visit_host(inside, f));
        }
    }
}

/// Every expression that statements, and those inside them, name.
pub(crate) fn exprs_of(body: &[Stmt]) -> Vec<Expr> {
    let mut all = Vec::new();
    visit(body, &mut |stmt| stmt.exprs(|e| all.push(e)));
    all
}

impl Stmt {
    /// The expressions that the statement names itself.
    pub(crate) fn roots(&self) -> Vec<Expr> {
        let mut roots = Vec::new();
        self.exprs(|e| roots.push(e));
        roots
    }

    pub(crate) fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            Self::Store(store) => {
                store.index.iter_mut().for_each(&mut *f);
                f(&mut store.value);
            }
            Self::Loop { lo, hi, .. } => [lo, hi].into_iter().for_each(f),
            Self::Set(_, e) | Self::If(e, ..) => f(e),
            Self::For(_)
            | Self::Break
            | Self::Continue
            | Self::Call(_)
            | Self::Run(_)
            | Self::Clear(_) => {}
        }
    }

    /// The blocks of a loop or a branch.
    pub(crate) fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Vec<Stmt>> {
        let blocks = match self {
            Self::Loop { body, .. } => [Some(body), None],
            Self::If(_, then, otherwise) => [Some(then), Some(otherwise)],
            _ => [None, None],
        };
        blocks.into_iter().flatten()
    }
}
