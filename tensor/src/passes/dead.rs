//! Dead statements and redundant copies.

use indexmap::IndexSet;

use super::{Options, copies};
use crate::ir::{Buffer, Library, Program, Stmt, Touched};

/// Leaves out what stores only to temporaries that nothing reads, and the places of what is sorted if nothing reads those.
pub(super) fn run(program: &mut Program, _: Options) -> bool {
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
    let changed = block(program, &mut body, &mut wanted);
    program.body = body;
    copies::run(program) || changed
}

/// Goes backwards: what a statement that stays reads is wanted before it.
fn block(program: &Program, body: &mut Vec<Stmt>, wanted: &mut IndexSet<Buffer>) -> bool {
    let mut changed = false;
    for k in (0..body.len()).rev() {
        let touched = Touched::by(program, &body[k..=k]);
        let stores = matches!(body[k], Stmt::For(_) | Stmt::Call(_));
        if stores && !touched.writes.iter().any(|b| wanted.contains(b)) {
            body.remove(k);
            changed = true;
            continue;
        }
        wanted.extend(touched.reads.iter().copied());
        match &mut body[k] {
            Stmt::For(all) => changed |= only_wanted(&mut all.body, wanted),
            // Numbers are sorted faster without the places from which they come.
            Stmt::Call(call) if matches!(call.library, Library::Sort { .. }) => {
                let order = call.outputs.get(1);
                if order.is_some_and(|order| !wanted.contains(order)) {
                    call.outputs.truncate(1);
                    changed = true;
                }
            }
            // What a turn reads, the one before may have stored.
            other => {
                for inside in other.blocks_mut() {
                    changed |= block(program, inside, wanted);
                }
            }
        }
    }
    changed
}

/// Leaves out single stores: what their point reads of them, it reads from variables.
fn only_wanted(body: &mut Vec<Stmt>, wanted: &IndexSet<Buffer>) -> bool {
    let n = body.len();
    body.retain(|stmt| !matches!(stmt, Stmt::Store(store) if !wanted.contains(&store.target)));
    let mut changed = body.len() < n;
    for inside in body.iter_mut().flat_map(Stmt::blocks_mut) {
        changed |= only_wanted(inside, wanted);
    }
    changed
}

/// How many temporaries are materialised.
pub(super) fn n_materialised(program: &Program) -> usize {
    let touched = Touched::by(program, &program.body);
    let temporary = |b: &&Buffer| program.is_made_here(**b);
    touched.writes.iter().filter(temporary).count()
}
