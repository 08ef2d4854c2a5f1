//! A loop on the host whose iterations exchange no values between points becomes a loop at each point.
//!
//! ```text
//! loop k in 0, m { for [n] { t[i0] = add(t[i0], x[k]) } }      for [n] { loop k in 0, m { t[i0] = add(t[i0], x[k]) } }
//! ```
//! It is done where all statements in the loop are over one domain, and what they store to is touched at one place only,
//! which is the point's own. What the loop's bounds and conditions read is the same at all points, since nothing in it
//! stores to what has other indices. Loops inside come first.

use aerogel_base::hash::LookupMap;
use aerogel_base::{ScalarType, Span};
use indexmap::{IndexMap, IndexSet};

use super::Options;
use super::fuse::{is_own, touches};
use crate::ir::{
    Dim, ExprDef, For, Program, Stmt, Touched, Var, map_exprs, rewrite, visit, visit_host,
    visit_mut,
};

/// Interchanges loops of the host with index spaces, where the result stays the same.
pub(super) fn run(program: &mut Program, _: Options) -> bool {
    let reads = count_reads(program, &program.body);
    rewrite(program, &mut |program, stmt, out| {
        let new = match &stmt {
            Stmt::Loop { .. } => exchanged(program, &stmt, &reads),
            _ => None,
        };
        let changed = new.is_some();
        out.push(new.map_or(stmt, Stmt::For));
        changed
    })
}

/// How many statements read each variable.
fn count_reads(program: &Program, body: &[Stmt]) -> IndexMap<Var, usize> {
    let mut reads = IndexMap::new();
    visit(body, &mut |stmt| {
        let mut read = Touched::default();
        read.exprs(&program.exprs, stmt.roots());
        for var in read.gets {
            *reads.entry(var).or_default() += 1;
        }
    });
    reads
}

/// A loop as what is done at each point, if it may be.
fn exchanged(program: &mut Program, stmt: &Stmt, reads: &IndexMap<Var, usize>) -> Option<For> {
    let whole = std::slice::from_ref(stmt);
    let domain = domain(program, whole)?;
    let mut counters = Vec::new();
    let mut span = Span::NONE;
    visit_host(whole, &mut |stmt| match stmt {
        Stmt::Loop { var, .. } => counters.push(*var),
        Stmt::For(all) => span = all.span,
        _ => {}
    });
    let inside = count_reads(program, whole);
    if counters.iter().any(|var| inside.get(var) != reads.get(var)) {
        // Somebody else wants to know how far it has come.
        return None;
    }
    let mut body = whole.to_vec();
    without_fors(&mut body);
    // The points' counters are no other loop's.
    let own: IndexMap<Var, Var> = counters
        .into_iter()
        .map(|var| (var, program.var(ScalarType::I32)))
        .collect();
    visit_mut(&mut body, &mut |stmt| {
        if let Stmt::Loop { var, .. } = stmt {
            *var = own.get(var).copied().unwrap_or(*var);
        }
    });
    let mut done = LookupMap::default();
    let exprs = &mut program.exprs;
    map_exprs(&mut body, &mut |e| {
        exprs.replace(e, &mut done, &mut |exprs, def| match def {
            ExprDef::Var(var, ty) => own.get(var).map(|&own| exprs.add(ExprDef::Var(own, *ty))),
            _ => None,
        })
    });
    Some(For {
        domain,
        cells: None,
        body,
        span,
    })
}

/// The common domain of the statements of a host loop, if each point can run the iterations by itself.
fn domain(program: &Program, whole: &[Stmt]) -> Option<Vec<Dim>> {
    let mut domains = IndexSet::new();
    let mut at_points = true;
    visit_host(whole, &mut |stmt| match stmt {
        Stmt::For(all) => {
            at_points &= all.cells.is_none();
            domains.insert(all.domain.clone());
        }
        Stmt::Loop { .. } | Stmt::If(..) | Stmt::Break | Stmt::Continue => {}
        Stmt::Set(..) | Stmt::Store(_) | Stmt::Call(_) | Stmt::Run(_) | Stmt::Clear(_) => {
            at_points = false;
        }
    });
    // One point does not wait for others, and a launch is little beside a loop of the host without work.
    let domain = domains.pop().filter(|domain| !domain.is_empty())?;
    if !at_points || !domains.is_empty() {
        return None;
    }
    let touched = Touched::by(program, whole);
    let own = touched.writes.iter().all(|&buffer| {
        let mut places = IndexSet::new();
        let mut plain = true;
        touches(program, whole, buffer, &mut places, &mut plain);
        plain && places.len() == 1 && places.iter().all(|index| is_own(program, index, &domain))
    });
    own.then_some(domain)
}

/// Puts the statements of each `for` in its place.
fn without_fors(body: &mut Vec<Stmt>) {
    for mut stmt in std::mem::take(body) {
        stmt.blocks_mut().for_each(without_fors);
        match stmt {
            Stmt::For(all) => body.extend(all.body),
            other => body.push(other),
        }
    }
}
