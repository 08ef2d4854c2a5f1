//! When a session evaluates a tensor early, and which values it keeps.

use indexmap::IndexSet;

use super::policy::{MAX_CHAIN, MAX_LOOKS, MAX_PENDING, Waiting};
use super::slots::bytes_of;
use super::{Session, Slot};
use crate::ir::{Buffer, Slice, Stmt, order, reads, targets};

impl Session {
    /// Whether the last recorded tensor depends on so many deferred statements that it should be evaluated now: a Python
    /// loop that never evaluates anything would otherwise record one endless program.
    pub fn waits_long(&mut self, slot: Slot) -> bool {
        if self.waiting.recorded < self.waiting.next && !self.backends.is_eager || self.n_ones > 0 {
            return false;
        }
        let buffer = self.buffer(slot);
        if self.backends.is_eager {
            return !self.is_there(buffer);
        }
        self.makers.update(&self.recording.program);
        let is_there = |b: Buffer| self.is_there(b);
        let n = order(&self.recording.program, &self.makers, &is_there, &[buffer]).len();
        let waiting = &mut self.waiting;
        if n >= MAX_CHAIN {
            // Should it not be done, the next time comes later by as much again.
            *waiting = Waiting {
                next: waiting.patience,
                patience: 2 * waiting.patience,
                ..Waiting::default()
            };
            return true;
        }
        // It waits for one more with each statement at most.
        waiting.looks += 1;
        waiting.next = waiting.recorded + MAX_CHAIN - n;
        if waiting.looks == MAX_LOOKS {
            (waiting.looks, waiting.next) = (0, waiting.recorded + MAX_CHAIN);
        }
        false
    }

    /// The intermediate results to materialise, since they have handles or deferred tensors need them: those that need no more
    /// memory than the inputs and the results.
    pub(super) fn kept(&self, sliced: &Slice, roots: &[Buffer]) -> Vec<Buffer> {
        let program = &self.recording.program;
        let bytes = |b: Buffer| {
            let def = &program.buffers[b];
            let extents = def
                .shape
                .iter()
                .map(|&d| program.const_dim(d).unwrap_or(0) as usize);
            bytes_of(def.ty, &extents.collect::<Vec<_>>())
        };
        let most: usize = sliced.inputs.iter().chain(roots).map(|&b| bytes(b)).sum();
        let all = sliced.program.body.len() > MAX_PENDING;
        let awaited = self.awaited(sliced);
        // In the order of the program, so that it is the same for the same statements.
        let made = sliced.made.iter().map(|m| m.0);
        let is_kept = |b: &Buffer| self.holds[*b] > 0 || awaited.contains(b);
        made.filter(|b| is_kept(b) && !roots.contains(b) && (all || bytes(*b) <= most))
            .collect()
    }

    /// Intermediate results that deferred statements of live tensors read. If they were not materialised, a Python loop whose
    /// tensors depend on those of the iteration before would recompute all iterations in each.
    fn awaited(&self, sliced: &Slice) -> IndexSet<Buffer> {
        let program = &self.recording.program;
        // What costs little is as well made again.
        let mut costly: IndexSet<Buffer> = IndexSet::new();
        for stmt in &sliced.program.body {
            let mut costs = accumulates(std::slice::from_ref(stmt));
            reads(&sliced.program, stmt, &mut |b| costs |= costly.contains(&b));
            if costs {
                targets(stmt, &mut |b| {
                    costly.insert(b);
                });
            }
        }
        let all = sliced.made.iter().filter(|m| costly.contains(&m.1));
        let made: IndexSet<Buffer> = all.map(|m| m.0).collect();
        if made.is_empty() {
            return made;
        }
        let is_there = |b: Buffer| self.is_there(b) || made.contains(&b);
        let held = self.all_held().map(|h| h.1);
        let waiting: Vec<Buffer> = held.filter(|&b| !is_there(b)).collect();
        let mut out = IndexSet::new();
        for at in order(program, &self.makers, &is_there, &waiting) {
            reads(program, &program.body[at as usize], &mut |b| {
                if made.contains(&b) {
                    out.insert(b);
                }
            });
        }
        out
    }
}

/// Whether statements do more than one operation for each element of what they make.
fn accumulates(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Store(store) => store.accum.is_some(),
        Stmt::For(all) => accumulates(&all.body),
        _ => true,
    })
}
