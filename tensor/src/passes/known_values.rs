//! Values that an array holds already.
//!
//! ```text
//! for [n] { y[i0] = tanh(x[i0]) }                       for [n] { y[i0] = tanh(x[i0]) }
//! for [n] { d[i0] = mul(g[i0], tanh(x[i0])) }     =>    for [n] { d[i0] = mul(g[i0], y[i0]) }
//! ```
//! Derivatives of functions contain the function's value. `inline` decides later whether the value is computed once or by
//! each reader.

use aerogel_base::hash::LookupMap;
use indexmap::IndexMap;

use super::Options;
use super::asked::may_fail;
use super::inline::cost;
use crate::ir::{
    Buffer, Dim, Expr, ExprDef, For, Outside, Program, Role, Stmt, Touched, is_whole, map_exprs,
    only_store, rewrite_blocks,
};

/// Recomputing a cheaper value costs no more than reading it.
const LEAST_COST: u32 = 12;

/// An array that holds a value.
struct Known {
    array: Buffer,
    shape: Vec<Dim>,
    /// The array's element at the axes.
    element: Expr,
    /// What the value reads.
    of: Touched,
}

pub(super) fn run(program: &mut Program, _: Options) -> bool {
    rewrite_blocks(program, &mut block)
}

fn block(program: &mut Program, body: &mut Vec<Stmt>) -> bool {
    let mut known: IndexMap<ExprDef, Known> = IndexMap::new();
    let mut changed = false;
    for stmt in body {
        let touched = Touched::by(program, std::slice::from_ref(stmt));
        if touched.outside {
            known.clear();
        }
        known.retain(|_, known| {
            let is_changed = |b: &Buffer| *b == known.array || known.of.reads.contains(b);
            !touched.writes.iter().any(is_changed)
                && !touched.sets.iter().any(|v| known.of.gets.contains(v))
        });
        // At its points a `for` may read what it has stored at others.
        if let Stmt::For(all) = stmt {
            changed |= read(program, all, &known);
            known.extend(stored(program, all));
        }
    }
    changed
}

/// The value that a `for` stores to a whole temporary, if it is worth reading.
fn stored(program: &mut Program, all: &For) -> Option<(ExprDef, Known)> {
    let store = only_store(all)?;
    let is_worth_it = store.accum.is_none()
        && is_whole(program, all, store)
        && program.buffers[store.target].role == Role::Temporary
        && !may_fail(&program.exprs, store.value)
        && cost(&program.exprs, store.value) >= LEAST_COST;
    let mut of = Touched::default();
    of.exprs(&program.exprs, [store.value]);
    // An array that is computed from itself holds another value afterwards.
    if !is_worth_it || of.reads.contains(&store.target) {
        return None;
    }
    let index = program.axes(all.domain.len());
    let known = Known {
        array: store.target,
        shape: all.domain.clone(),
        element: program.load(store.target, index, Outside::Never),
        of,
    };
    Some((program.exprs[store.value].clone(), known))
}

/// Reads known values instead of computing them.
fn read(program: &mut Program, all: &mut For, known: &IndexMap<ExprDef, Known>) -> bool {
    if known.is_empty() || all.cells.is_some() {
        return false;
    }
    let (domain, mut done) = (&all.domain, LookupMap::default());
    map_exprs(&mut all.body, &mut |e| {
        program.exprs.replace(e, &mut done, &mut |_, def| {
            let known = known.get(def)?;
            // A value depends on no other axes than those of its array.
            let is_there = domain.starts_with(&known.shape);
            is_there.then_some(known.element)
        })
    })
}
