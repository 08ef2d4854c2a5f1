//! Policies: the limits of a session in one place, when it evaluates early, and which values it keeps.
//!
//! How much memory of temporaries is kept between runs is said in `run/free.rs`.

use indexmap::IndexSet;

use super::slots::bytes_of;
use super::{Session, Slot};
use crate::ir::{Buffer, Slice, Stmt, order, reads, targets};

/// A session is tidied when it has this many buffers more than twice those that were held last time: tidying copies what is
/// held, so its cost per recorded statement stays bounded.
pub(super) const SLACK: usize = 4096;
/// It is also tidied when values of this many bytes have no holder: the bound on memory that a loop over small tensors leaves.
pub(super) const SLACK_BYTES: usize = 32 << 20;

/// The number of plans that are kept. When there are more, all go: programs that differ each time would fill memory.
pub(super) const MAX_PLANS: usize = 2048;
/// The number of statements in all kept plans, those in loops and branches aside. Measured, a plan takes 1.1 KB for each, so
/// this is about 140 MB.
pub(super) const MAX_PLANNED: usize = 1 << 17;
/// The number of programs with numbers of which it is kept what to run for them.
pub(super) const MAX_KNOWN: usize = 512;
/// This many programs that differ only in where they read are compiled for their places, which makes faster code: the elements
/// of a stencil are known to be neighbours. The next one is compiled for any places.
pub(super) const MAX_ALIKE: u32 = 2;

/// A program with more statements keeps the values of every tensor that is held, whatever their size: otherwise the next one
/// would contain the same statements again, and grow without end.
pub(super) const MAX_PENDING: usize = 64;
/// A tensor that waits for this many statements is evaluated. Measured on 1000 elements, 280 statements take 135 ms to compile
/// and 14 us each to record and run, as short chains do: a longer chain only delays the first result. 288 is divisible by
/// 2, 3, 4, 6, 8, 9, 12 and 16, so loops with that many statements end their programs at the same iteration each time.
pub(super) const MAX_CHAIN: usize = 288;
/// Counting what a tensor waits for walks those statements. After this many counts below `MAX_CHAIN` there is none for the next
/// `MAX_CHAIN` statements, so a loop that evaluates its tensors elsewhere does not pay for the counts.
pub(super) const MAX_LOOKS: u32 = 16;
/// This many pending stores are evaluated, and a tensor that is stored to more often is filled by a loop: from then on its
/// values are there, and each store writes to memory at once. It bounds what the first iterations record and compile.
pub(super) const MAX_STORES: u32 = 8;

/// A slice of no more elements is read on the host: measured, 12 us for up to 64 elements; it needs no plan.
pub(super) const MAX_READ: usize = 64;
/// A slice of no more elements is written on the host: measured, 13 us for 16384 elements and 0.2 ms for 2^20. Larger ones are
/// worth a kernel on several threads.
pub(super) const MAX_WRITTEN: usize = 1 << 20;
/// Before a tensor of at least this many bytes is copied because recorded statements read it, the session is tidied, which may
/// show that none of them is needed. Measured, copying takes 1.5 us for this much and 90 us for 4 MiB.
pub(super) const LARGE: usize = 1 << 16;

/// A program with a `for` over more than two axes and this many points keeps all its extents numbers: it may be a product of
/// matrices, whose tiles are faster where they divide them. Measured, products of 256 rows take a fifth longer otherwise.
pub(super) const LARGE_PRODUCT: u64 = 1 << 25;
/// Over this many points, code is made for short extents, and for those by which indices are divided. Measured, sums over axes
/// of ten elements take twice as long otherwise, and so do copies into other shapes.
pub(super) const MANY: u64 = 1 << 16;
/// Such an extent is short.
pub(super) const WRITTEN_OUT: u64 = 16;

/// For how long nothing has been computed.
pub(super) struct Waiting {
    /// How many statements have been recorded.
    pub(super) recorded: usize,
    /// With how many it is looked for how many of them what was made last waits.
    next: usize,
    /// How many looks have found too few.
    looks: u32,
    /// How many may wait.
    patience: usize,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            recorded: 0,
            next: MAX_CHAIN,
            looks: 0,
            patience: MAX_CHAIN,
        }
    }
}

impl Waiting {
    /// So many statements have been computed: if they are most of what has come, it begins anew, and so the same loop is looked
    /// at at the same turns each time.
    pub(super) fn done(&mut self, n: usize) {
        if 2 * n >= self.recorded {
            *self = Self::default();
        }
    }
}

impl Session {
    /// Whether a tensor, the last one that was made, waits for so many statements that it is better computed now: a loop
    /// of Python's that asks for nothing would make a program as long as it runs.
    pub fn waits_long(&mut self, slot: Slot) -> bool {
        if self.waiting.recorded < self.waiting.next || self.n_ones > 0 {
            return false;
        }
        let buffer = self.buffer(slot);
        self.makers.update(&self.recording.program);
        let is_there = |b: Buffer| self.values[b].is_some();
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

    /// Of what is made on the way, that whose numbers are kept since tensors are held, or wait for it: together with what is
    /// asked for, what takes no more memory than that and what it is made of.
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

    /// What is made on the way and read by statements that tensors wait for which are held. If nothing kept it, a loop of
    /// Python's whose tensors depend on those of the turn before would compute all turns anew in each.
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
        let is_there = |b: Buffer| self.values[b].is_some() || made.contains(&b);
        let held = self.held().map(|h| h.1);
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
