//! Sums that are the same along an axis are computed once.
//!
//! ```text
//! for [n, m, k] { t[i0, i1] add init = x[i1, i2] }     for [m, k] { s[i0] add init = x[i0, i1] }
//!                                                      for [n, m] { t[i0, i1] = s[i1] }
//! ```
//! Gradients of what has the same weight everywhere are such sums: those of a convolution by its kernel, for each output.

use aerogel_base::hash::LookupMap;
use indexmap::IndexSet;

use super::Options;
use super::reductions::covers;
use crate::ir::{Expr, ExprDef, For, Outside, Program, Stmt, Store, rewrite_fors};

/// Takes axes on which no value depends out of what accumulates.
pub(super) fn run(program: &mut Program, _: Options) -> bool {
    rewrite_fors(program, &mut share)
}

fn share(program: &mut Program, all: &mut For, before: &mut Vec<Stmt>) -> bool {
    let [Stmt::Store(store)] = &all.body[..] else {
        return false;
    };
    let Some(own) = own_axes(program, all, store) else {
        return false;
    };
    let used = axes_of(program, store.value);
    let (alike, left): (Vec<u32>, Vec<u32>) = own.iter().partition(|k| !used.contains(*k));
    if alike.is_empty() || own.len() == all.domain.len() {
        return false;
    }
    let shape: Vec<_> = left.iter().map(|&k| all.domain[k as usize]).collect();
    let sums = program.temporary(program.buffers[store.target].ty, &shape);
    let axes: Vec<u32> = (0..all.domain.len() as u32)
        .filter(|k| !alike.contains(k))
        .collect();
    let mut done = LookupMap::default();
    let value = program
        .exprs
        .replace(store.value, &mut done, &mut |exprs, def| match *def {
            ExprDef::Axis(k) => {
                let new = axes
                    .iter()
                    .position(|&axis| axis == k)
                    .expect("it is not alike");
                Some(exprs.axis(new as u32))
            }
            _ => None,
        });
    let index = |program: &mut Program, among: &[u32]| -> Vec<Expr> {
        let place = |k: &u32| {
            among
                .iter()
                .position(|axis| axis == k)
                .expect("one of them")
        };
        left.iter()
            .map(|k| program.exprs.axis(place(k) as u32))
            .collect()
    };
    let at = index(program, &axes);
    before.push(Stmt::For(For {
        domain: axes.iter().map(|&k| all.domain[k as usize]).collect(),
        cells: None,
        body: vec![Stmt::Store(Store {
            target: sums,
            index: at,
            value,
            ..store.clone()
        })],
        span: all.span,
    }));
    let at = index(program, &own);
    let domain = program.buffers[store.target].shape.clone();
    let index = program.axes(domain.len());
    let value = program.load(sums, at, Outside::Never);
    *all = For {
        domain,
        cells: None,
        body: vec![Stmt::Store(Store {
            target: store.target,
            index,
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        })],
        span: all.span,
    };
    true
}

/// The axes that the indices of a store are, one each, if it makes all of its target.
fn own_axes(program: &Program, all: &For, store: &Store) -> Option<Vec<u32>> {
    let makes_all = store.init && all.cells.is_none() && store.outside == Outside::Never;
    if !makes_all || !covers(program, &all.domain, store) {
        return None;
    }
    let axes = store.index.iter().map(|&e| match program.exprs[e] {
        ExprDef::Axis(k) => Some(k),
        _ => None,
    });
    let axes: Vec<u32> = axes.collect::<Option<_>>()?;
    let distinct: IndexSet<u32> = axes.iter().copied().collect();
    (distinct.len() == axes.len()).then_some(axes)
}

/// The axes on which an expression depends.
fn axes_of(program: &Program, e: Expr) -> IndexSet<u32> {
    let mut found = IndexSet::new();
    program.exprs.visit([e], &mut |x| {
        if let ExprDef::Axis(k) = program.exprs[x] {
            found.insert(k);
        }
    });
    found
}
