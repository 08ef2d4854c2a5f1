//! Adjoints through branches and loops of the host.
//!
//! ```text
//! loop i in 0..n { s = f(s) }      n' = 0                          loop k in n'-1, .., 0 {
//!                                  loop i in 0..n {                    s' = pop(history)
//!                                    push(history, s)                  t' = f(s')
//!                                    n' = n' + 1                       S = adjoint of f at s', of S
//!                                    s = f(s)                        }
//!                                  }
//! ```
//! Adjoints that enter and leave a block are memory. The backward pass repeats a branch by its saved condition. A loop saves
//! its loop-carried values in a history, at the start of each iteration, and reruns each iteration before its adjoint: the
//! number of iterations need not be known, and nothing but loop-carried values is saved. Values that no adjoint needs are
//! neither saved nor recomputed.

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, UnaryOp};
use indexmap::{IndexMap, IndexSet};

use super::histories::{Histories, kept};
use super::points::note_indices;
use super::uses::add_uses;
use super::versions::{filled, loaded};
use super::{Reverse, refused};
use crate::ir::{
    Buffer, Call, Expr, ExprDef, Library, Outside, Program, Stmt, Touched, Var, live_in, makes,
    visit_mut,
};
use crate::record::Recorded;

/// A loop of the host.
#[derive(Clone, Copy)]
struct Turns<'l> {
    var: Var,
    lo: Expr,
    hi: Expr,
    step: i32,
    body: &'l [Stmt],
}

impl Reverse<'_> {
    /// Goes through the statements of a block; what each of them becomes, with the copies that the adjoints read.
    pub(super) fn block(&mut self, body: &[Stmt]) -> Recorded<Vec<Vec<Stmt>>> {
        self.versions.begin(&self.recording.program, body);
        let around = std::mem::take(&mut self.edits);
        for (at, stmt) in body.iter().enumerate().rev() {
            self.versions.visit(at);
            self.stmt(at, stmt)?;
        }
        let mut edits = std::mem::replace(&mut self.edits, around);
        let copies = self.versions.end(self.recording);
        let mut out = Vec::new();
        for (at, stmt) in body.iter().enumerate() {
            let own = copies.iter().filter(|c| c.0 == at);
            let mut becomes: Vec<Stmt> = own.map(|c| c.1.clone()).collect();
            match edits.shift_remove(&at) {
                Some(edited) => becomes.extend(edited),
                None => becomes.push(stmt.clone()),
            }
            out.push(becomes);
        }
        Ok(out)
    }

    /// The statements that `f` records.
    fn recorded<R>(
        &mut self,
        f: impl FnOnce(&mut Self) -> Recorded<R>,
    ) -> Recorded<(R, Vec<Stmt>)> {
        // Values from before the block may be others in it.
        self.recording.forget();
        let around = std::mem::take(&mut self.recording.program.body);
        let out = f(self);
        let body = std::mem::replace(&mut self.recording.program.body, around);
        self.recording.forget();
        Ok((out?, body))
    }

    /// The buffers whose adjoints go in and out of a statement, as memory with these adjoints.
    fn memory(&mut self, stmt: &Stmt) -> Recorded<IndexMap<Buffer, Buffer>> {
        let touched = Touched::by(&self.recording.program, std::slice::from_ref(stmt));
        let all = touched.writes.iter().chain(&touched.reads);
        let all: IndexSet<Buffer> = all.map(|&b| self.versions.original(b)).collect();
        let mut own = LookupMap::default();
        add_uses(
            &self.recording.program,
            std::slice::from_ref(stmt),
            &mut own,
        );
        let histories = Histories::of(std::slice::from_ref(stmt));
        let mut out = IndexMap::new();
        for buffer in all {
            let is_outside =
                self.adjoints.contains_key(&buffer) || self.uses.get(&buffer) > own.get(&buffer);
            if !self.active.contains(&buffer) || !is_outside || histories.contains(buffer) {
                continue;
            }
            let r = &mut *self.recording;
            let memory = r.program.temporary(r.ty(buffer), &r.shape(buffer));
            r.note_memory(memory);
            let set = self.set_to_adjoint(memory, buffer)?;
            self.recording.program.body.push(set);
            out.insert(buffer, memory);
        }
        Ok(out)
    }

    /// Memory becomes the adjoint of a buffer, zeros if it has none.
    fn set_to_adjoint(&mut self, memory: Buffer, buffer: Buffer) -> Recorded<Stmt> {
        let value = match self.adjoint(buffer)? {
            Some(adjoint) => {
                let rank = self.recording.rank(adjoint);
                self.recording.at_point(adjoint, rank)
            }
            None => self.recording.number(self.recording.ty(buffer), 0.0),
        };
        Ok(filled(self.recording, memory, value))
    }

    /// Sets memory to the adjoints at the beginning of a block.
    fn write_back(&mut self, memory: &IndexMap<Buffer, Buffer>) -> Recorded<()> {
        let mut sets = Vec::new();
        for (&buffer, &memory) in memory {
            if self.adjoint(buffer)? != Some(memory) {
                sets.push(self.set_to_adjoint(memory, buffer)?);
            }
        }
        self.recording.program.body.extend(sets);
        Ok(())
    }

    fn begin_with(&mut self, memory: &IndexMap<Buffer, Buffer>) {
        for (&buffer, &memory) in memory {
            self.adjoints.insert(buffer, vec![memory]);
        }
    }

    pub(super) fn branch(&mut self, at: usize, stmt: &Stmt) -> Recorded<()> {
        let Stmt::If(cond, then, otherwise) = stmt else {
            unreachable!("a branch is given");
        };
        let taken = self.recording.program.temporary(ScalarType::U1, &[]);
        let keep = filled(self.recording, taken, *cond);
        let memory = self.memory(stmt)?;
        let mut forward = Vec::new();
        let mut back = Vec::new();
        for body in [then, otherwise] {
            self.begin_with(&memory);
            let (edited, adjoint) = self.recorded(|s| {
                let edited = s.block(body)?.concat();
                s.write_back(&memory)?;
                Ok(edited)
            })?;
            forward.push(edited);
            back.push(adjoint);
        }
        self.begin_with(&memory);
        let taken = self
            .recording
            .program
            .load(taken, Vec::new(), Outside::Never);
        let [then, otherwise] = [0, 1].map(|k| std::mem::take(&mut back[k]));
        let branch = Stmt::If(taken, then, otherwise);
        self.recording.program.body.push(branch);
        let [then, otherwise] = [0, 1].map(|k| std::mem::take(&mut forward[k]));
        self.edits
            .insert(at, vec![keep, Stmt::If(*cond, then, otherwise)]);
        Ok(())
    }

    pub(super) fn turns(&mut self, at: usize, stmt: &Stmt) -> Recorded<()> {
        let &Stmt::Loop {
            var,
            lo,
            hi,
            step,
            ref body,
        } = stmt
        else {
            unreachable!("a loop is given");
        };
        let turns = Turns {
            var,
            lo,
            hi,
            step,
            body,
        };
        let memory = self.memory(stmt)?;
        let r = &mut *self.recording;
        let [first, count] = [(); 2].map(|()| r.program.temporary(ScalarType::I32, &[]));
        r.note_memory(count);
        let zero = r.program.exprs.i32(0);
        let begin = vec![filled(r, first, lo), filled(r, count, zero)];
        let one = r.program.exprs.i32(1);
        let [first, n] = [first, count].map(|b| r.program.load(b, Vec::new(), Outside::Never));
        let more = r.program.exprs.binary(BinaryOp::Add, n, one);
        let counted = filled(r, count, more);

        // The turn, from the last to the first.
        let back = r.program.var(ScalarType::I32);
        let back_at = r.program.get(back);
        let exprs = &mut r.program.exprs;
        let last = exprs.binary(BinaryOp::Sub, n, one);
        let by = exprs.i32(step);
        let steps = exprs.binary(BinaryOp::Mul, back_at, by);
        let index = exprs.binary(BinaryOp::Add, first, steps);
        let (again, carried) = self.again(&turns, index)?;
        for (&own, &new) in &carried.renamed {
            if let Some(&memory) = memory.get(&own) {
                self.adjoints.insert(new, vec![memory]);
            }
        }
        let own: IndexMap<Buffer, Buffer> = memory
            .iter()
            .map(|(b, &m)| (carried.renamed.get(b).copied().unwrap_or(*b), m))
            .collect();
        self.begin_with(&own);
        let (edited, adjoint) = self.recorded(|s| {
            let edited = s.block(&again)?.concat();
            s.write_back(&own)?;
            Ok(edited)
        })?;
        let mut asked: IndexSet<Buffer> = own.values().copied().collect();
        asked.extend(Histories::of(&adjoint).filled());
        let (mut turn, taken) = self.taken_again(edited, &Histories::of(body));
        turn.extend(adjoint);
        let asked = self.keep_asked(&mut turn, &asked);

        let (mut keeps, mut takes) = (vec![counted], Vec::new());
        for &buffer in &carried.begins {
            let new = carried.renamed[&buffer];
            if asked.contains(&new) {
                let (history, span) = (self.history(buffer), self.recording.span);
                let keep = Call::push(buffer, None, history, span);
                keeps.insert(0, Stmt::Call(keep));
                takes.push(Stmt::Call(Call::pop(history, None, new, span)));
            }
        }
        for stmt in body {
            keeps.push(stmt.clone());
            let again = kept(stmt).and_then(|(_, value, h)| Some((value, *taken.get(&h)?)));
            if let Some((value, again)) = again.filter(|(_, again)| asked.contains(again)) {
                let keep = Call::push(value, None, again, self.recording.span);
                keeps.push(Stmt::Call(keep));
            }
        }
        let end = self.recording.program.exprs.i32(-1);
        self.begin_with(&memory);
        self.recording.program.body.push(Stmt::Loop {
            var: back,
            lo: last,
            hi: end,
            step: -1,
            body: [takes, turn].concat(),
        });
        let mut forward = begin;
        forward.push(Stmt::Loop {
            var: turns.var,
            lo: turns.lo,
            hi: turns.hi,
            step: turns.step,
            body: keeps,
        });
        self.edits.insert(at, forward);
        Ok(())
    }

    /// The statements of an iteration that reruns; and for each history filled by others, the history in which the popped
    /// values are saved again.
    fn taken_again(
        &mut self,
        edited: Vec<Stmt>,
        histories: &Histories,
    ) -> (Vec<Stmt>, IndexMap<Buffer, Buffer>) {
        let mut taken = IndexMap::new();
        let mut turn = Vec::new();
        for stmt in edited {
            match kept(&stmt) {
                // It has been saved.
                Some((Library::Push, _, h)) if histories.is_shared(h) => {}
                Some((Library::Pop, value, h)) if histories.is_shared(h) => {
                    let again = self.history(value);
                    taken.insert(h, again);
                    let take = Call::pop(again, None, value, self.recording.span);
                    turn.push(Stmt::Call(take));
                }
                _ => turn.push(stmt),
            }
        }
        (turn, taken)
    }

    /// The statements of a turn, to be run again: what it writes goes to buffers of their own, nobody leaves it early, and the
    /// counter is an expression.
    fn again(&mut self, turns: &Turns<'_>, index: Expr) -> Recorded<(Vec<Stmt>, Carried)> {
        let touched = Touched::by(&self.recording.program, turns.body);
        let written: IndexSet<Buffer> = touched.writes.iter().copied().collect();
        let begins = self.carried(turns.body, &written);
        let mut renamed: IndexMap<Buffer, Buffer> = IndexMap::new();
        let histories = Histories::of(turns.body);
        for &buffer in written.iter().filter(|&&b| !histories.is_shared(b)) {
            let r = &mut *self.recording;
            let new = r.program.temporary(r.ty(buffer), &r.shape(buffer));
            if r.is_memory(buffer) {
                r.note_memory(new);
            }
            r.lines.follow(new, buffer);
            if self.active.contains(&buffer) {
                self.active.insert(new);
            }
            if self.wanted.contains(&buffer) {
                return refused("a variable is changed in a loop");
            }
            renamed.insert(buffer, new);
        }
        for &buffer in renamed.keys() {
            let running = self.recording.running(buffer);
            let to = |b: Buffer| Some(renamed.get(&b).copied().unwrap_or(b));
            if let Some(running) = running.and_then(|r| r.moved(to)) {
                self.recording.note_running(renamed[&buffer], running);
            }
        }
        // What others change after the loop is read as it was.
        let mut new = renamed.clone();
        for &buffer in touched.reads.iter().filter(|b| !written.contains(*b)) {
            let kept = self.after(buffer);
            if kept != buffer {
                new.insert(buffer, kept);
            }
        }
        let mut body = without_looks(&self.recording.program, turns.body)?;
        let mut vars: LookupMap<Var, Expr> = LookupMap::default();
        vars.insert(turns.var, index);
        let mut done = LookupMap::default();
        let recording = &mut *self.recording;
        visit_mut(&mut body, &mut |stmt| {
            if let Stmt::Set(var, _) | Stmt::Loop { var, .. } = stmt {
                let own = recording.program.var(recording.program.vars[*var]);
                vars.insert(*var, recording.program.get(own));
                *var = own;
            }
        });
        visit_mut(&mut body, &mut |stmt| {
            let exprs = &mut recording.program.exprs;
            stmt.exprs_mut(&mut |e| {
                *e = exprs.replace(*e, &mut done, &mut |exprs, def| match def {
                    ExprDef::Var(var, _) => vars.get(var).copied(),
                    _ => loaded(exprs, def, |b| new.get(&b).copied()),
                });
            });
            let to = |b: &mut Buffer| *b = new.get(b).copied().unwrap_or(*b);
            match stmt {
                Stmt::Store(store) => to(&mut store.target),
                Stmt::Call(call) => call.inputs.iter_mut().chain(&mut call.outputs).for_each(to),
                Stmt::Run(run) => run.arrays.iter_mut().chain(&mut run.results).for_each(to),
                _ => {}
            }
        });
        let body = self.without_leaving(body);
        if let Some(indices) = &mut self.indices {
            note_indices(&self.recording.program, &body, indices);
        }
        add_uses(&self.recording.program, &body, &mut self.uses);
        Ok((body, Carried { renamed, begins }))
    }

    /// The buffers that a turn finds as the turn before has left them.
    fn carried(&self, body: &[Stmt], written: &IndexSet<Buffer>) -> Vec<Buffer> {
        let histories = Histories::of(body);
        let mut live = self.live_in(body);
        live.retain(|b| written.contains(b) && !histories.contains(*b));
        live.into_iter().collect()
    }

    fn live_in(&self, body: &[Stmt]) -> IndexSet<Buffer> {
        let is_made = |b: Buffer| self.recording.running(b).is_some();
        live_in(&self.recording.program, body, &is_made)
    }

    /// The same statements, where what follows a place at which a turn is left is done if it was not.
    fn without_leaving(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        if !leaves(&body) {
            return body;
        }
        let left = self.recording.program.temporary(ScalarType::U1, &[]);
        self.recording.note_memory(left);
        let no = self.recording.program.exprs.constant(Scalar::bool(false));
        let mut out = vec![filled(self.recording, left, no)];
        out.extend(self.guarded(body, left));
        out
    }

    fn guarded(&mut self, body: Vec<Stmt>, left: Buffer) -> Vec<Stmt> {
        let mut out = Vec::new();
        let mut rest = body.into_iter();
        while let Some(stmt) = rest.next() {
            match stmt {
                Stmt::Break | Stmt::Continue => {
                    let yes = self.recording.program.exprs.constant(Scalar::bool(true));
                    out.push(filled(self.recording, left, yes));
                    return out;
                }
                Stmt::If(cond, then, otherwise) if leaves(&then) || leaves(&otherwise) => {
                    let then = self.guarded(then, left);
                    let otherwise = self.guarded(otherwise, left);
                    out.push(Stmt::If(cond, then, otherwise));
                    let rest = self.guarded(rest.collect(), left);
                    if !rest.is_empty() {
                        let program = &mut self.recording.program;
                        let has_left = program.load(left, Vec::new(), Outside::Never);
                        let stays = program.exprs.unary(UnaryOp::Not, has_left);
                        out.push(Stmt::If(stays, rest, Vec::new()));
                    }
                    return out;
                }
                other => out.push(other),
            }
        }
        out
    }

    /// Drops statements of an iteration on which no value depends that is `asked` after it. Returns what the rest finds.
    fn keep_asked(&self, body: &mut Vec<Stmt>, asked: &IndexSet<Buffer>) -> IndexSet<Buffer> {
        let program = &self.recording.program;
        let is_made = |b: Buffer| self.recording.running(b).is_some();
        let all: Vec<(IndexSet<Buffer>, IndexSet<Buffer>)> = body
            .iter()
            .map(std::slice::from_ref)
            .map(|stmt| (Touched::by(program, stmt).writes, self.live_in(stmt)))
            .collect();
        let mut live = asked.clone();
        let mut keeps = vec![false; body.len()];
        for (k, (writes, reads)) in all.iter().enumerate().rev() {
            keeps[k] = writes.iter().any(|b| live.contains(b));
            if keeps[k] {
                live.retain(|&b| !writes.contains(&b) || !makes(program, &body[k], b, &is_made));
                live.extend(reads);
            }
        }
        let mut keeps = keeps.into_iter();
        body.retain(|_| keeps.next() == Some(true));
        live
    }
}

/// The buffers of a rerun iteration.
struct Carried {
    /// What the buffers that it writes are.
    renamed: IndexMap<Buffer, Buffer>,
    /// Those that it finds as the turn before has left them.
    begins: Vec<Buffer>,
}

/// Statements but for kernels that only look at values, as to print them: that has been done.
fn without_looks(program: &Program, body: &[Stmt]) -> Recorded<Vec<Stmt>> {
    let mut out = Vec::new();
    for stmt in body {
        let mut stmt = stmt.clone();
        match &stmt {
            Stmt::Run(run) => {
                let touched = Touched::by(program, std::slice::from_ref(&stmt));
                if touched.writes.is_empty() {
                    continue;
                }
                let def = &program.regions[run.region];
                if !def
                    .runner
                    .as_ref()
                    .is_some_and(|runner| runner.is_repeatable())
                {
                    return refused(&format!(
                        "it goes through a loop that calls kernel `{}`, which cannot be replayed with the same result: it \
                         draws random numbers, or changes fields",
                        def.name
                    ));
                }
            }
            Stmt::For(_) => {}
            _ => {
                for block in stmt.blocks_mut() {
                    *block = without_looks(program, block)?;
                }
            }
        }
        out.push(stmt);
    }
    Ok(out)
}

/// Whether a turn of the loop around is left.
fn leaves(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Break | Stmt::Continue => true,
        Stmt::If(_, then, otherwise) => leaves(then) || leaves(otherwise),
        _ => false,
    })
}
