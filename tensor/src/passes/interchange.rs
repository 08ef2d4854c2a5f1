//! A loop of the host whose turns no point's neighbours see becomes a loop at each point.
//!
//! ```text
//! loop k in 0, m { for [n] { t[i0] = add(t[i0], x[k]) } }      for [n] { loop k in 0, m { t[i0] = add(t[i0], x[k]) } }
//! ```
//! It is done where all statements in the loop are over one domain, and what they store to is touched at one place only,
//! which is the point's own. What the loop's bounds and conditions read is the same at all points, since nothing in it
//! stores to what has other indices. Loops inside come first.

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;
use indexmap::{IndexMap, IndexSet};

use super::fuse::{is_own, touches};
use crate::ir::{Dim, ExprDef, For, Program, Stmt, Touched, Var, map_exprs};

/// Exchanges loops of the host with spaces, where that changes nothing.
pub(super) fn run(program: &mut Program) {
    let body = std::mem::take(&mut program.body);
    let mut reads = IndexMap::new();
    count_reads(program, &body, &mut reads);
    program.body = block(program, body, &reads);
}

/// How many statements read each variable.
fn count_reads(program: &Program, body: &[Stmt], reads: &mut IndexMap<Var, usize>) {
    for stmt in body {
        let mut read = Touched::default();
        let mut roots = Vec::new();
        stmt.exprs(|e| roots.push(e));
        read.exprs(&program.exprs, roots);
        for var in read.gets {
            *reads.entry(var).or_default() += 1;
        }
        for inside in stmt.inside() {
            count_reads(program, inside, reads);
        }
    }
}

fn block(program: &mut Program, body: Vec<Stmt>, reads: &IndexMap<Var, usize>) -> Vec<Stmt> {
    let each = body.into_iter().map(|stmt| match stmt {
        Stmt::Loop {
            var,
            lo,
            hi,
            step,
            body,
        } => {
            let body = block(program, body, reads);
            exchanged(
                program,
                Stmt::Loop {
                    var,
                    lo,
                    hi,
                    step,
                    body,
                },
                reads,
            )
        }
        Stmt::If(cond, then, otherwise) => {
            let [then, otherwise] = [then, otherwise].map(|b| block(program, b, reads));
            Stmt::If(cond, then, otherwise)
        }
        other => other,
    });
    each.collect()
}

fn exchanged(program: &mut Program, stmt: Stmt, reads: &IndexMap<Var, usize>) -> Stmt {
    let Some(domain) = domain(program, &stmt) else {
        return stmt;
    };
    let mut counters = Vec::new();
    counted(std::slice::from_ref(&stmt), &mut counters);
    let mut inside = IndexMap::new();
    count_reads(program, std::slice::from_ref(&stmt), &mut inside);
    if counters.iter().any(|var| inside.get(var) != reads.get(var)) {
        // Somebody else wants to know how far it has come.
        return stmt;
    }
    let mut span = aerogel_base::Span::NONE;
    let mut body = vec![without_fors(stmt, &mut span)];
    // The points' counters are no other loop's.
    let own: IndexMap<Var, Var> = counters
        .into_iter()
        .map(|var| (var, program.var(ScalarType::I32)))
        .collect();
    rename(&mut body, &own);
    let mut done = LookupMap::default();
    let exprs = &mut program.exprs;
    map_exprs(&mut body, &mut |e| {
        exprs.replace(e, &mut done, &mut |exprs, def| match def {
            ExprDef::Var(var, ty) => own.get(var).map(|&own| exprs.add(ExprDef::Var(own, *ty))),
            _ => None,
        })
    });
    Stmt::For(For {
        domain,
        cells: None,
        body,
        span,
    })
}

/// The counters of the host's loops.
fn counted(body: &[Stmt], counters: &mut Vec<Var>) {
    for stmt in body {
        if let Stmt::Loop { var, .. } = stmt {
            counters.push(*var);
        }
        if !matches!(stmt, Stmt::For(_)) {
            for inside in stmt.inside() {
                counted(inside, counters);
            }
        }
    }
}

fn rename(body: &mut [Stmt], own: &IndexMap<Var, Var>) {
    for stmt in body {
        match stmt {
            Stmt::Loop { var, body, .. } => {
                *var = own.get(var).copied().unwrap_or(*var);
                rename(body, own);
            }
            Stmt::If(_, then, otherwise) => {
                rename(then, own);
                rename(otherwise, own);
            }
            _ => {}
        }
    }
}

/// The domain of all that a loop of the host does, if its turns can be each point's own.
fn domain(program: &Program, stmt: &Stmt) -> Option<Vec<Dim>> {
    let mut domains = IndexSet::new();
    look(std::slice::from_ref(stmt), &mut domains)?;
    let domain = domains.pop().filter(|_| domains.is_empty())?;
    // One point does not wait for others, and a launch is little beside a loop of the host without work.
    if domain.is_empty() {
        return None;
    }
    let touched = Touched::by(program, std::slice::from_ref(stmt));
    let own = touched.writes.iter().all(|&buffer| {
        let mut places = IndexSet::new();
        let mut plain = true;
        touches(
            program,
            std::slice::from_ref(stmt),
            buffer,
            &mut places,
            &mut plain,
        );
        plain && places.len() == 1 && places.iter().all(|index| is_own(program, index, &domain))
    });
    own.then(|| domain.clone())
}

/// Collects the domains in a loop; nothing where something in it is not for points.
fn look(body: &[Stmt], domains: &mut IndexSet<Vec<Dim>>) -> Option<()> {
    for stmt in body {
        match stmt {
            Stmt::For(all) => {
                let inits = all
                    .body
                    .iter()
                    .any(|s| matches!(s, Stmt::Store(s) if s.init));
                if inits || all.cells.is_some() {
                    return None;
                }
                domains.insert(all.domain.clone());
            }
            Stmt::Loop { body, .. } => look(body, domains)?,
            Stmt::If(_, then, otherwise) => {
                look(then, domains)?;
                look(otherwise, domains)?;
            }
            Stmt::Break | Stmt::Continue => {}
            Stmt::Set(..) | Stmt::Store(_) | Stmt::Call(_) | Stmt::Run(_) | Stmt::Clear(_) => {
                return None;
            }
        }
    }
    Some(())
}

/// The statements of each `for` in its place.
fn without_fors(stmt: Stmt, span: &mut aerogel_base::Span) -> Stmt {
    let mut flat = |body: Vec<Stmt>| {
        let mut out = Vec::new();
        for stmt in body {
            match stmt {
                Stmt::For(all) => {
                    *span = all.span;
                    out.extend(all.body);
                }
                other => out.push(without_fors(other, span)),
            }
        }
        out
    };
    match stmt {
        Stmt::Loop {
            var,
            lo,
            hi,
            step,
            body,
        } => Stmt::Loop {
            var,
            lo,
            hi,
            step,
            body: flat(body),
        },
        Stmt::If(cond, then, otherwise) => {
            let then = flat(then);
            Stmt::If(cond, then, flat(otherwise))
        }
        other => other,
    }
}
