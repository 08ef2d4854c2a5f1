//! Statements that nobody asks for.

use indexmap::IndexSet;

use crate::ir::{Buffer, Library, Program, Stmt, Touched};

/// Leaves out what stores only to temporaries that nothing reads, and the places of what is sorted if nothing reads those.
pub(super) fn run(program: &mut Program) {
    let mut wanted: IndexSet<Buffer> = program.results.iter().copied().collect();
    wanted.extend(program.inputs());
    wanted.extend(program.fields());
    let mut in_extents = Touched::default();
    for def in &program.dims {
        if let Some(e) = def.expr() {
            in_extents.exprs(&program.exprs, [e]);
        }
    }
    wanted.extend(in_extents.reads);
    let mut body = std::mem::take(&mut program.body);
    block(program, &mut body, &mut wanted);
    program.body = body;
}

/// Goes backwards: what a statement that stays reads is wanted before it.
fn block(program: &Program, body: &mut Vec<Stmt>, wanted: &mut IndexSet<Buffer>) {
    for k in (0..body.len()).rev() {
        let touched = Touched::by(program, &body[k..=k]);
        let stores = matches!(body[k], Stmt::For(_) | Stmt::Call(_));
        if stores && !touched.writes.iter().any(|b| wanted.contains(b)) {
            body.remove(k);
            continue;
        }
        wanted.extend(touched.reads.iter().copied());
        if let Stmt::For(all) = &mut body[k] {
            only_wanted(&mut all.body, wanted);
        }
        match &mut body[k] {
            // Numbers are sorted faster without the places from which they come.
            Stmt::Call(call) if matches!(call.library, Library::Sort { .. }) => {
                call.outputs.truncate(match call.outputs.get(1) {
                    Some(order) if wanted.contains(order) => 2,
                    _ => 1,
                });
            }
            // What a turn reads, the one before may have stored.
            Stmt::Loop { body, .. } => block(program, body, wanted),
            Stmt::If(_, then, otherwise) => {
                block(program, then, wanted);
                block(program, otherwise, wanted);
            }
            _ => {}
        }
    }
}

/// Leaves out single stores: what their point reads of them, it reads from variables.
fn only_wanted(body: &mut Vec<Stmt>, wanted: &IndexSet<Buffer>) {
    let read = |store: &crate::ir::Store| wanted.contains(&store.target);
    body.retain(|stmt| !matches!(stmt, Stmt::Store(store) if !read(store)));
    for stmt in body {
        match stmt {
            Stmt::Loop { body, .. } => only_wanted(body, wanted),
            Stmt::If(_, then, otherwise) => {
                only_wanted(then, wanted);
                only_wanted(otherwise, wanted);
            }
            _ => {}
        }
    }
}

/// How many temporaries are kept in memory.
pub(super) fn n_materialised(program: &Program) -> usize {
    let touched = Touched::by(program, &program.body);
    let temporary = |b: &&Buffer| program.is_made_here(**b);
    touched.writes.iter().filter(temporary).count()
}
