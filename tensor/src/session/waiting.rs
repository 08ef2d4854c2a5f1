//! When a session evaluates a tensor early, and which values it keeps.

use aerogel_base::hash::LookupSet;

use super::plans::Needed;
use super::policy::{MAX_CHAIN, MAX_LOOKS, MAX_PENDING, Waiting};
use super::{Session, Slot};
use crate::ir::{Buffer, Signature, Stmt, order, targets};

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
    pub(super) fn kept(&self, needed: &Needed, roots: &[Buffer]) -> Vec<Buffer> {
        let program = &self.recording.program;
        let bytes = |b: Buffer| {
            let def = &program.buffers[b];
            let extents = def.shape.iter();
            let extents = extents.map(|&d| program.const_dim(d).unwrap_or(0) as usize);
            extents.product::<usize>() * def.ty.bytes() as usize
        };
        let Signature { inputs, made, .. } = &needed.signature;
        let most: usize = inputs.iter().chain(roots).map(|&b| bytes(b)).sum();
        let all = needed.statements.len() > MAX_PENDING;
        let awaited = self.awaited(needed);
        // In the order of the program, so that it is the same for the same statements.
        let is_kept = |b: &Buffer| self.holds[*b] > 0 || awaited.contains(b);
        let made = made.iter().copied();
        made.filter(|b| is_kept(b) && !roots.contains(b) && (all || bytes(*b) <= most))
            .collect()
    }

    /// Intermediate results that deferred statements of live tensors read. If they were not materialised, a Python loop whose
    /// tensors depend on those of the iteration before would recompute all iterations in each.
    fn awaited(&self, needed: &Needed) -> LookupSet<Buffer> {
        let program = &self.recording.program;
        // What costs little is as well made again.
        let mut costly: LookupSet<Buffer> = LookupSet::default();
        for &at in &needed.statements {
            let stmt = &program.body[at as usize];
            let mut reads = self.makers.reads(at).iter();
            if accumulates(std::slice::from_ref(stmt)) || reads.any(|b| costly.contains(b)) {
                targets(stmt, &mut |b| {
                    costly.insert(b);
                });
            }
        }
        let mut out = LookupSet::default();
        if costly.is_empty() {
            return out;
        }
        let is_there = |b: Buffer| self.is_there(b) || costly.contains(&b);
        let held = self.all_held().map(|h| h.1);
        let waiting: Vec<Buffer> = held.filter(|&b| !is_there(b)).collect();
        for at in order(program, &self.makers, &is_there, &waiting) {
            let reads = self.makers.reads(at).iter().copied();
            reads.filter(|b| costly.contains(b)).for_each(|b| {
                out.insert(b);
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
