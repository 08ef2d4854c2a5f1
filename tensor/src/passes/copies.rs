//! Copy elimination: a copied buffer that is not read again is modified in place.
//!
//! ```text
//! for [n, m] { t[i0, i1] = x[i0, i1] + 1 }        for [n, m] { u[i0, i1] = x[i0, i1] + 1 }
//! for [n, m] { u[i0, i1] = t[i0, i1] }            for [m] { u[0, i0] = v[i0] }
//! for [m] { u[0, i0] = v[i0] }
//! ```
//! A store to some elements makes a tensor of its own: a copy, and a store to that.

use aerogel_base::hash::LookupMap;
use indexmap::{IndexMap, IndexSet};

use crate::ir::{
    Buffer, ExprDef, For, Outside, Program, Role, Stmt, Touched, is_whole, map_exprs, only_store,
    visit_mut,
};

/// Where a buffer is touched: the first and the last statement.
type Spans = IndexMap<Buffer, [usize; 2]>;

/// Leaves out copies of temporaries among the outermost statements: what was the copied one is the copy from the beginning.
pub(super) fn run(program: &mut Program) -> bool {
    let (spans, fixed) = touched(program);
    let mut copies: IndexMap<usize, [Buffer; 2]> = IndexMap::new();
    for (at, stmt) in program.body.iter().enumerate() {
        if let Stmt::For(all) = stmt
            && let Some([from, to]) = copied(program, all)
            && !fixed.contains(&from)
            && spans[&from][1] == at
            && spans[&to][0] == at
        {
            copies.insert(at, [from, to]);
        }
    }
    if copies.is_empty() {
        return false;
    }
    let mut names: IndexMap<Buffer, Buffer> = IndexMap::new();
    // What is copied to is named for certain when its own copy is looked at.
    for &[from, to] in copies.values().rev() {
        let last = names.get(&to).copied().unwrap_or(to);
        names.insert(from, last);
    }
    let body = std::mem::take(&mut program.body).into_iter().enumerate();
    let body = body.filter(|(at, _)| !copies.contains_key(at));
    let mut body: Vec<Stmt> = body.map(|(_, stmt)| stmt).collect();
    visit_mut(&mut body, &mut |stmt| {
        if let Stmt::Store(store) = stmt
            && let Some(&to) = names.get(&store.target)
        {
            store.target = to;
        }
    });
    let mut done = LookupMap::default();
    map_exprs(&mut body, &mut |e| {
        let exprs = &mut program.exprs;
        exprs.replace(e, &mut done, &mut |exprs, def| match def {
            ExprDef::Load {
                buffer,
                ty,
                index,
                outside,
            } => {
                let load = ExprDef::Load {
                    buffer: *names.get(buffer)?,
                    ty: *ty,
                    index: index.clone(),
                    outside: *outside,
                };
                Some(exprs.add(load))
            }
            _ => None,
        })
    });
    program.body = body;
    true
}

/// Where each buffer is touched, and those that others than statements over points and the host name.
fn touched(program: &Program) -> (Spans, IndexSet<Buffer>) {
    let mut spans = Spans::new();
    let mut fixed: IndexSet<Buffer> = program.results.iter().copied().collect();
    let mut of_extents = Touched::default();
    let dims = program.dims.iter().filter_map(|def| def.expr());
    of_extents.exprs(&program.exprs, dims);
    fixed.extend(of_extents.reads);
    for (at, stmt) in program.body.iter().enumerate() {
        let touched = Touched::by(program, std::slice::from_ref(stmt));
        let is_plain = matches!(stmt, Stmt::For(all) if all.cells.is_none());
        for buffer in touched.reads.into_iter().chain(touched.writes) {
            spans.entry(buffer).or_insert([at; 2])[1] = at;
            if !is_plain {
                fixed.insert(buffer);
            }
        }
    }
    (spans, fixed)
}

/// A temporary and another one, if a `for` copies all of the one to the other.
fn copied(program: &Program, all: &For) -> Option<[Buffer; 2]> {
    let store = only_store(all).filter(|s| s.accum.is_none() && s.outside == Outside::Never)?;
    let ExprDef::Load {
        buffer,
        ref index,
        outside: Outside::Never,
        ..
    } = program.exprs[store.value]
    else {
        return None;
    };
    let [from, to] = [buffer, store.target].map(|b| &program.buffers[b]);
    let are_alike = from.shape == to.shape && from.ty == to.ty;
    let own = [from, to].iter().all(|def| def.role == Role::Temporary);
    let is_copy = *index == store.index && is_whole(program, all, store);
    (are_alike && own && is_copy).then_some([buffer, store.target])
}
