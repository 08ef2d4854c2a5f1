//! Memory that only one point uses while it runs becomes variables.
//!
//! ```text
//! for [n] { t[i0] = a; loop k { t[i0] = add(t[i0], b) } }      for [n] { x = a; loop k { x = add(x, b) }; t[i0] = x }
//! ```
//! It is done for buffers that the statements of a `for` store to and touch at one place only, which is the point's own.

use aerogel_base::hash::LookupMap;
use indexmap::IndexSet;

use super::Options;
use super::fuse::{is_own, touches};
use crate::ir::{
    Buffer, Dim, Expr, ExprDef, Exprs, For, Outside, Program, Stmt, Store, Touched, map_exprs,
    rewrite_fors, visit, visit_mut,
};

/// Moves places into variables.
pub(super) fn run(program: &mut Program, _: Options) -> bool {
    rewrite_fors(program, &mut |program, all, _| places(program, all))
}

fn places(program: &mut Program, all: &mut For) -> bool {
    if all.body.len() < 2 {
        return false;
    }
    let mut changed = false;
    for buffer in Touched::at_points(program, all).writes {
        // A store to a field makes its cell active, which none at another place of the body does.
        if program.holder(buffer).is_some() {
            continue;
        }
        let mut places = IndexSet::new();
        let mut plain = true;
        touches(program, &all.body, buffer, &mut places, &mut plain);
        let Some(index) = places.pop().filter(|_| places.is_empty()) else {
            continue;
        };
        let fixed = is_fixed(&program.exprs, &index) && is_own(program, &index, &all.domain);
        // Where it is touched in branches alone, these may be what keeps it inside.
        let is_stored = |stmt: &Stmt| matches!(stmt, Stmt::Store(s) if s.target == buffer);
        let is_inside =
            all.body.iter().any(is_stored) || is_within(program, &index, buffer, &all.domain);
        if plain
            && fixed
            && is_inside
            && plain_stores(&all.body, buffer)
            && n_accesses(program, &all.body, buffer) > 1
        {
            keep(program, all, buffer, index);
            changed = true;
        }
    }
    changed
}

/// Whether indices are axes as long as a buffer's.
fn is_within(program: &Program, index: &[Expr], buffer: Buffer, domain: &[Dim]) -> bool {
    let mut axes = index.iter().zip(&program.buffers[buffer].shape);
    axes.all(|(&e, &dim)| match program.exprs[e] {
        ExprDef::Axis(k) => domain[k as usize] == dim,
        _ => false,
    })
}

/// Whether indices are the same as long as a point runs.
fn is_fixed(exprs: &Exprs, index: &[Expr]) -> bool {
    let mut fixed = true;
    exprs.visit(index.iter().copied(), &mut |e| {
        fixed &= !matches!(exprs[e], ExprDef::Load { .. } | ExprDef::Var(..));
    });
    fixed
}

/// Whether nothing accumulates to a buffer.
fn plain_stores(body: &[Stmt], buffer: Buffer) -> bool {
    let mut plain = true;
    visit(body, &mut |stmt| {
        plain &= !matches!(stmt, Stmt::Store(s) if s.target == buffer && s.accum.is_some());
    });
    plain
}

/// How many statements touch a buffer.
fn n_accesses(program: &Program, body: &[Stmt], buffer: Buffer) -> usize {
    let mut n = 0;
    visit(body, &mut |stmt| {
        let reads = |e: Expr| reads(program, e, buffer);
        n += usize::from(stmt.roots().into_iter().any(reads));
        n += usize::from(matches!(stmt, Stmt::Store(store) if store.target == buffer));
    });
    n
}

/// Reads the element first, if its old value may be needed, and stores to it last.
fn keep(program: &mut Program, all: &mut For, buffer: Buffer, index: Vec<Expr>) {
    let var = program.var(program.buffers[buffer].ty);
    let value = program.get(var);
    let old = program.load(buffer, index.clone(), Outside::Never);
    let touching = all.body.iter().find(|stmt| {
        let touched = Touched::by(program, std::slice::from_ref(stmt));
        touched.reads.contains(&buffer) || touched.writes.contains(&buffer)
    });
    let is_stored_first = matches!(touching, Some(Stmt::Store(store))
        if store.target == buffer && !reads(program, store.value, buffer));
    let mut done = LookupMap::default();
    let exprs = &mut program.exprs;
    map_exprs(&mut all.body, &mut |e| {
        exprs.replace(e, &mut done, &mut |_, def| match def {
            ExprDef::Load { buffer: read, .. } if *read == buffer => Some(value),
            _ => None,
        })
    });
    visit_mut(&mut all.body, &mut |stmt| match stmt {
        Stmt::Store(store) if store.target == buffer => *stmt = Stmt::Set(var, store.value),
        _ => {}
    });
    if !is_stored_first {
        all.body.insert(0, Stmt::Set(var, old));
    }
    all.body.push(Stmt::Store(Store {
        target: buffer,
        index,
        value,
        accum: None,
        init: false,
        outside: Outside::Never,
    }));
}

fn reads(program: &Program, e: Expr, buffer: Buffer) -> bool {
    let mut touched = Touched::default();
    touched.exprs(&program.exprs, [e]);
    touched.reads.contains(&buffer)
}
