//! Tensors of a program that outlive its trace: what is made of known numbers alone means the same anywhere.

use aerogel_base::Scalar;
use aerogel_base::hash::LookupMap;

use super::{Session, Slot};
use crate::expr::{Expr, ExprDef};
use crate::passes::Touched;
use crate::program::{Buffer, Dim, Program, Stmt};
use crate::record::Recording;
use crate::slice::{Copier, Makers, collect, order, targets};

impl Session {
    /// Tensors of a program as tensors of the session: those that are made of `known` alone, buffers of the program whose
    /// numbers are tensors here. What is made of anything else that comes to the program, of memory, fields or counters
    /// of loops, is nothing here. `around` has the statements before each block that is open, outermost first.
    pub fn take(
        &mut self,
        from: &Recording,
        around: &[Vec<Stmt>],
        known: &[(Buffer, Slot)],
        wanted: &[Buffer],
    ) -> Vec<Option<Slot>> {
        let mut here: LookupMap<Buffer, Buffer> = LookupMap::default();
        for &(there, slot) in known {
            here.insert(there, self.buffer(slot));
        }
        let mut program = from.program.clone();
        let mut body = Vec::new();
        for outer in around {
            host_statements(&program, outer, &mut body);
        }
        host_statements(&program, &program.body, &mut body);
        program.body = body;
        let free = made_of(&program, from, known);
        let is_free = |b: &Buffer| free.get(b) == Some(&true);
        let roots: Vec<Buffer> = wanted.iter().copied().filter(is_free).collect();
        let mut makers = Makers::default();
        makers.update(&program);
        let needed = order(&program, &makers, &|b| here.contains_key(&b), &roots);
        let own = std::mem::take(&mut self.recording.program);
        let mut copier = Copier::new(&program, own, |_| false);
        copier.buffers = here;
        for at in needed {
            let stmt = copier.stmt(&program.body[at as usize]);
            copier.to.body.push(stmt);
        }
        let buffers: Vec<Option<Buffer>> = wanted
            .iter()
            .map(|b| copier.buffers.get(b).copied().filter(|_| is_free(b)))
            .collect();
        let made = std::mem::take(&mut copier.made);
        self.recording.program = copier.to;
        for (old, new) in made {
            self.recording.lines.set(new, from.lines.get(old));
        }
        let slots = buffers.into_iter().map(|b| b.map(|b| self.hold(b)));
        slots.collect()
    }
}

/// The statements of the host's loops and branches, without these, but for loops of one turn of one statement: these put parts
/// to their places.
fn host_statements(program: &Program, body: &[Stmt], out: &mut Vec<Stmt>) {
    for stmt in body {
        match stmt {
            Stmt::Loop { lo, hi, body, .. }
                if matches!(body[..], [Stmt::For(_)]) && turns(program, *lo, *hi) == Some(1) =>
            {
                out.push(stmt.clone());
            }
            Stmt::Loop { .. } | Stmt::If(..) => {
                for inside in stmt.inside() {
                    host_statements(program, inside, out);
                }
            }
            other => out.push(other.clone()),
        }
    }
}

/// How many turns a loop has, if that is known.
fn turns(program: &Program, lo: Expr, hi: Expr) -> Option<i128> {
    let [lo, hi] = [lo, hi].map(|e| program.exprs.as_const(e).map(Scalar::as_i128));
    Some(hi? - lo?)
}

/// Whether each buffer that is known or made is made of `known` alone, whenever its statements run.
fn made_of(
    program: &Program,
    from: &Recording,
    known: &[(Buffer, Slot)],
) -> LookupMap<Buffer, bool> {
    let mut free: LookupMap<Buffer, bool> = LookupMap::default();
    for &(buffer, _) in known {
        free.insert(buffer, true);
    }
    for stmt in &program.body {
        let is_free = is_made_of(program, stmt, &free);
        targets(stmt, &mut |b| {
            let is_value = program.is_made_here(b) && !from.is_memory(b);
            let all = is_free && is_value && free.get(&b) != Some(&false);
            free.insert(b, all);
        });
    }
    free
}

/// Whether a statement of the host reads nothing but these buffers, and what it sets itself: the counters of the host's loops
/// are set outside.
fn is_made_of(program: &Program, stmt: &Stmt, free: &LookupMap<Buffer, bool>) -> bool {
    let all = match stmt {
        Stmt::For(all) => Some(all),
        Stmt::Loop { body, .. } => match &body[..] {
            [Stmt::For(all)] => Some(all),
            _ => return false,
        },
        Stmt::Call(_) => None,
        _ => return false,
    };
    let touched = Touched::by(program, std::slice::from_ref(stmt));
    let is_known = |dim: Dim| program.const_dim(dim).is_some();
    let mut holds = all
        .is_none_or(|all| all.cells.is_none() && all.domain.iter().all(|&dim| is_known(dim)))
        && touched.reads.iter().all(|b| free.get(b) == Some(&true))
        && touched.gets.is_subset(&touched.sets);
    let mut roots = Vec::new();
    collect(stmt, &mut roots);
    program.exprs.visit(roots, &mut |e| {
        if let ExprDef::Extent(dim) = program.exprs[e] {
            holds &= is_known(dim);
        }
    });
    holds
}
