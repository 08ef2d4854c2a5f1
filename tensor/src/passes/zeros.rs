//! What a block makes is zero where the block has not run.
//!
//! ```text
//! if c { for [n] { t[i0] = a } }                  for [n] { t[i0] = 0 }; if c { for [n] { t[i0] = a } }
//! for [n] { y[i0] = t[i0] }                       for [n] { y[i0] = t[i0] }
//! ```
//! It is done for temporaries that are read where no statement has stored to them for certain: behind a branch or a loop, in
//! another branch, or in a later turn.

use aerogel_base::{Scalar, Span};
use indexmap::{IndexMap, IndexSet};

use super::uses::{Touched, is_at_own_place};
use crate::expr::Outside;
use crate::program::{Buffer, For, Program, Role, Stmt, Store};

/// Makes zeros before the statements of the host in which such temporaries are stored to first.
pub(super) fn run(program: &mut Program) {
    let mut unsure = IndexSet::new();
    let mut stored = IndexSet::new();
    block(program, &program.body, &mut stored, &mut unsure);
    let unstored = program.results.iter().filter(|b| !stored.contains(*b));
    unsure.extend(unstored.copied());
    unsure.retain(|&b| program.buffers[b].role == Role::Temporary);
    if unsure.is_empty() {
        return;
    }
    let mut at_cells = IndexMap::new();
    stored_at_cells(program, &program.body, &mut at_cells);
    let mut first: IndexMap<usize, Vec<Buffer>> = IndexMap::new();
    for (k, stmt) in program.body.iter().enumerate() {
        for buffer in Touched::by(program, std::slice::from_ref(stmt)).writes {
            if unsure.shift_remove(&buffer) {
                first.entry(k).or_default().push(buffer);
            }
        }
    }
    let body = std::mem::take(&mut program.body);
    for (k, stmt) in body.into_iter().enumerate() {
        for &buffer in first.get(&k).into_iter().flatten() {
            let cells = at_cells.get(&buffer).copied();
            let zeros = zeros(program, buffer, cells);
            program.body.push(zeros);
        }
        program.body.push(stmt);
    }
}

/// What is stored to at the active cells of a field, which are those where it is read.
fn stored_at_cells(program: &Program, body: &[Stmt], found: &mut IndexMap<Buffer, Buffer>) {
    for stmt in body {
        if let Stmt::For(all) = stmt {
            let own = all.body.iter().filter_map(|s| match s {
                Stmt::Store(store) if is_at_own_place(program, all, store) => Some(store.target),
                _ => None,
            });
            found.extend(
                all.cells
                    .into_iter()
                    .flat_map(|field| own.clone().map(move |b| (b, field))),
            );
        } else {
            for inside in stmt.inside() {
                stored_at_cells(program, inside, found);
            }
        }
    }
}

fn zeros(program: &mut Program, buffer: Buffer, cells: Option<Buffer>) -> Stmt {
    let def = &program.buffers[buffer];
    let (zero, domain) = (Scalar::zero(def.ty), def.shape.clone());
    let store = Store {
        target: buffer,
        index: program.axes(domain.len()),
        value: program.exprs.constant(zero),
        accum: None,
        init: false,
        outside: Outside::Never,
    };
    Stmt::For(For {
        domain,
        cells,
        body: vec![Stmt::Store(store)],
        span: Span::NONE,
    })
}

/// Goes through statements: `stored` is what has been stored to when they run, and `unsure` what they read else.
fn block(
    program: &Program,
    body: &[Stmt],
    stored: &mut IndexSet<Buffer>,
    unsure: &mut IndexSet<Buffer>,
) {
    for stmt in body {
        match stmt {
            Stmt::Loop { body, .. } => {
                let mut roots = Vec::new();
                stmt.exprs(|e| roots.push(e));
                read(program, roots, stored, unsure);
                let before = stored.len();
                block(program, body, stored, unsure);
                stored.truncate(before);
            }
            Stmt::If(cond, then, otherwise) => {
                read(program, vec![*cond], stored, unsure);
                let before = stored.len();
                let [then, otherwise] = [then, otherwise].map(|body| {
                    block(program, body, stored, unsure);
                    stored.split_off(before)
                });
                stored.extend(then.into_iter().filter(|b| otherwise.contains(b)));
            }
            _ => {
                let touched = Touched::by(program, std::slice::from_ref(stmt));
                // What a point stores it may read.
                let own = |b: &Buffer| {
                    matches!(stmt, Stmt::For(_) | Stmt::Run(_)) && touched.writes.contains(b)
                };
                let reads = touched.reads.iter();
                unsure.extend(reads.copied().filter(|b| !stored.contains(b) && !own(b)));
                stored.extend(touched.writes);
            }
        }
    }
}

fn read(
    program: &Program,
    roots: Vec<crate::expr::Expr>,
    stored: &IndexSet<Buffer>,
    unsure: &mut IndexSet<Buffer>,
) {
    let mut touched = Touched::default();
    touched.exprs(&program.exprs, roots);
    unsure.extend(touched.reads.into_iter().filter(|b| !stored.contains(b)));
}
