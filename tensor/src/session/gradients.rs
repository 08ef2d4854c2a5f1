//! Gradients of tensors: which tensors are variables, and which tensors' histories are stored.
//!
//! A variable is a copy of a tensor, a statement of its own that nothing shares. Tensors computed from variables are
//! *tracked*: their statements are stored, even after evaluation, as long as a handle to a dependent tensor exists. The
//! variables of a differentiated function end with it; those of `requires_grad` are leaves: how they were computed does
//! not matter, and a number identifies each.

use std::cell::Cell;

use indexmap::IndexSet;

use super::{Session, Slot};
use crate::autodiff::{Adjoints, reverse};
use crate::ir::{Buffer, ExprDef, Place, Stmt, Touched, exprs_of, order, targets};
use crate::record::{RecordError, Recorded};

/// The number of a leaf.
pub type Leaf = u32;

/// A buffer without a number: a copy or result through which no gradient passes.
const CONSTANT: Leaf = 0;

/// The gradients by leaves, each with its number, and by other tensors.
pub type ByLeaves = (Vec<(Leaf, Slot)>, Vec<Option<Slot>>);

thread_local! {
    /// Whether gradients are not to depend on what the thread makes.
    static OFF: Cell<bool> = const { Cell::new(false) };
}

/// Whether gradients are not to depend on what this thread makes from now on; gives what it was before.
pub fn set_gradients_off(is_off: bool) -> bool {
    OFF.replace(is_off)
}

/// Whether gradients do not depend on what this thread makes.
pub fn are_gradients_off() -> bool {
    OFF.get()
}

impl Session {
    /// A variable with the values of a tensor. The gradients of a leaf carry its number, which is `again` for a leaf whose
    /// values were replaced; other variables end by [`Self::end_variable`].
    ///
    /// # Errors
    /// If the tensor is a sparse value.
    pub fn variable(
        &mut self,
        slot: Slot,
        is_leaf: bool,
        again: Option<Leaf>,
    ) -> Recorded<(Slot, Option<Leaf>)> {
        self.track();
        let source = self.buffer(slot);
        let copy = self.record(|r| r.distinct(source))?;
        if let Some(value) = &self.values[source] {
            self.values[copy] = Some(value.clone());
        }
        if let Some(storage) = self.storage(slot) {
            self.backends.storages[copy] = Some(storage);
        }
        self.stores[copy] = self.stores[source];
        self.track();
        self.roots[copy] = true;
        self.n_roots += 1;
        let leaf = is_leaf.then(|| {
            self.tracked[copy] = false;
            again.unwrap_or_else(|| {
                self.n_leaves += 1;
                self.n_leaves
            })
        });
        self.leaves[copy] = leaf;
        Ok((self.hold(copy), leaf))
    }

    /// A copy of a tensor on which no gradient depends.
    ///
    /// # Errors
    /// If the tensor is a sparse value.
    pub fn detached(&mut self, slot: Slot) -> Recorded<Slot> {
        if !self.has_history(slot) {
            let buffer = self.buffer(slot);
            return Ok(self.hold(buffer));
        }
        let source = self.buffer(slot);
        if let Some(copy) = self.detached[source] {
            return Ok(self.hold(copy));
        }
        let (slot, _) = self.variable(slot, true, Some(CONSTANT))?;
        let copy = self.buffer(slot);
        self.roots[copy] = false;
        self.n_roots -= 1;
        self.detached[source] = Some(copy);
        Ok(slot)
    }

    /// Notes whether gradients are to depend on what this thread records next.
    pub(super) fn follow_thread(&mut self) {
        let is_off = are_gradients_off();
        if self.is_off != is_off {
            self.track();
            // The same statement means another value from now on.
            self.recording.forget();
            self.is_off = is_off;
        }
    }

    /// Whether a gradient may depend on a tensor.
    pub fn has_history(&mut self, slot: Slot) -> bool {
        if self.n_roots == 0 {
            return false;
        }
        self.track();
        let buffer = self.buffer(slot);
        let is_known = self.tracked[buffer] || self.roots[buffer];
        // What has no floats has no gradient.
        is_known && self.recording.ty(buffer).is_float()
    }

    /// Ends a variable: what is made of it has a history only because of others.
    pub fn end_variable(&mut self, slot: Slot) {
        let buffer = self.buffer(slot);
        self.end_roots(&[buffer]);
    }

    fn end_roots(&mut self, buffers: &[Buffer]) {
        let mut ended: Vec<Buffer> = buffers.to_vec();
        ended.retain(|&b| std::mem::take(&mut self.roots[b]));
        if ended.is_empty() {
            return;
        }
        self.track();
        self.n_roots -= ended.len();
        self.makers.update(&self.recording.program);
        // Only what comes behind them may depend on them.
        let firsts = ended
            .iter()
            .map(|&b| self.makers.first(b).map_or(0, |at| at + 1));
        let from = firsts.min().unwrap_or(0);
        let n = self.recording.program.body.len();
        for at in from..n {
            targets(&self.recording.program.body[at], &mut |b| {
                self.tracked[b] &= self.makers.first(b).is_some_and(|first| first < from);
            });
        }
        for at in from..n {
            if self.depends(at) {
                targets(&self.recording.program.body[at], &mut |b| {
                    self.tracked[b] = self.leaves[b].is_none();
                });
            }
        }
    }

    /// Whether a statement reads what has a history.
    fn depends(&self, at: usize) -> bool {
        let program = &self.recording.program;
        let is_known = |b: Buffer| self.tracked[b] || self.roots[b];
        let stmt = &program.body[at];
        let mut depends = false;
        program
            .exprs
            .visit(exprs_of(std::slice::from_ref(stmt)), &mut |e| {
                if let ExprDef::Load { buffer, .. } = program.exprs[e] {
                    depends |= is_known(buffer);
                }
            });
        if let Stmt::Call(call) = stmt {
            depends |= call.inputs.iter().any(|&b| is_known(b));
        }
        depends
    }

    /// Looks at the statements that are new: what depends on a variable is tracked.
    pub(super) fn track(&mut self) {
        let n = self.recording.program.body.len();
        if self.n_roots > 0 {
            for at in self.n_tracked..n {
                if self.depends(at) {
                    targets(&self.recording.program.body[at], &mut |b| {
                        if self.is_off {
                            self.leaves[b].get_or_insert(CONSTANT);
                        }
                        // A leaf's own statement is no history.
                        self.tracked[b] = self.leaves[b].is_none();
                    });
                }
            }
        }
        self.n_tracked = n;
    }

    /// Whether the statements that make a buffer do not matter for a gradient.
    pub(super) fn is_given(&self, b: Buffer) -> bool {
        self.leaves[b].is_some() || (self.is_there(b) && !self.tracked[b])
    }

    /// The gradients of results, each times its seed, by variables; nothing for those on which no result depends.
    ///
    /// # Errors
    /// If a result depends on a variable by an operation that has no derivative.
    pub fn gradients(
        &mut self,
        seeds: &[(Slot, Slot)],
        wanted: &[Slot],
    ) -> Recorded<Vec<Option<Slot>>> {
        let wanted: Vec<Buffer> = wanted.iter().map(|&slot| self.buffer(slot)).collect();
        let made = self.adjoints(seeds, &wanted)?;
        let made = made.into_iter();
        Ok(made.map(|b| b.map(|b| self.hold(b))).collect())
    }

    /// The gradients of results, each times its seed, by all leaves on which they depend, and by some other tensors. What
    /// variables among these are made of does not matter, nor do leaves that are not `among` those given.
    ///
    /// # Errors
    /// As `gradients`.
    pub fn gradients_by_leaves(
        &mut self,
        seeds: &[(Slot, Slot)],
        others: &[Slot],
        among: Option<&[Leaf]>,
    ) -> Recorded<ByLeaves> {
        self.track();
        let results: Vec<Buffer> = seeds.iter().map(|s| self.buffer(s.0)).collect();
        let others: Vec<Buffer> = others.iter().map(|&slot| self.buffer(slot)).collect();
        let mut found: IndexSet<(Leaf, Buffer)> = IndexSet::new();
        let mut note = |session: &Self, b: Buffer| {
            if let Some(leaf) = session.leaves[b].filter(|_| session.roots[b])
                && among.is_none_or(|among| among.contains(&leaf))
            {
                found.insert((leaf, b));
            }
        };
        results.iter().for_each(|&b| note(self, b));
        for stmt in self.history(&results, &others) {
            let program = &self.recording.program;
            program
                .exprs
                .visit(exprs_of(std::slice::from_ref(&stmt)), &mut |e| {
                    if let ExprDef::Load { buffer, .. } = program.exprs[e] {
                        note(self, buffer);
                    }
                });
            if let Stmt::Call(call) = &stmt {
                call.inputs.iter().for_each(|&b| note(self, b));
            }
        }
        let mut wanted: Vec<Buffer> = found.iter().map(|f| f.1).collect();
        wanted.extend(&others);
        let made = self.adjoints(seeds, &wanted)?;
        let held: Vec<Option<Slot>> = made.into_iter().map(|b| b.map(|b| self.hold(b))).collect();
        let (by_leaf, by_other) = held.split_at(found.len());
        let by_leaf = found.iter().zip(by_leaf);
        let by_leaf = by_leaf.filter_map(|((leaf, _), slot)| Some((*leaf, (*slot)?)));
        Ok((by_leaf.collect(), by_other.to_vec()))
    }

    /// The variables that some tensors depend on otherwise than through others, with the numbers of those that are leaves.
    pub fn roots_behind(
        &mut self,
        results: &[Slot],
        through: &[Slot],
    ) -> Vec<(Option<Leaf>, Slot)> {
        self.track();
        let results: Vec<Buffer> = results.iter().map(|&slot| self.buffer(slot)).collect();
        let stops: Vec<Buffer> = through.iter().map(|&slot| self.buffer(slot)).collect();
        self.makers.update(&self.recording.program);
        let program = &self.recording.program;
        let is_there = |b: Buffer| self.is_given(b) || self.roots[b] || stops.contains(&b);
        let needed = order(program, &self.makers, &is_there, &results);
        let mut found: IndexSet<Buffer> = results.into_iter().collect();
        for at in needed {
            let stmt = std::slice::from_ref(&program.body[at as usize]);
            found.extend(Touched::by(program, stmt).reads);
        }
        found.retain(|b| self.roots[*b] && !stops.contains(b));
        let found = found.into_iter();
        found.map(|b| (self.leaves[b], self.hold(b))).collect()
    }

    /// Ends variables that are leaves.
    pub fn end_leaves(&mut self, leaves: &[Leaf]) {
        let all = self.leaves.iter();
        let all = all.filter(|(_, leaf)| leaf.is_some_and(|leaf| leaves.contains(&leaf)));
        let buffers: Vec<Buffer> = all.map(|(b, _)| b).collect();
        self.end_roots(&buffers);
    }

    /// The floats that a tensor is made of, in the order in which they are computed, each with where it was made.
    pub fn computed_from(&mut self, slot: Slot) -> Vec<(Slot, Place)> {
        self.track();
        let result = self.buffer(slot);
        let mut buffers: IndexSet<Buffer> = IndexSet::new();
        for stmt in self.history(&[result], &[]) {
            let touched = Touched::by(&self.recording.program, std::slice::from_ref(&stmt));
            buffers.extend(touched.reads);
            buffers.extend(touched.writes);
        }
        buffers.retain(|&b| self.recording.ty(b).is_float());
        let buffers = buffers.into_iter();
        buffers.map(|b| (self.hold(b), self.place(b))).collect()
    }

    /// The numbers of the leaves that a tensor with a handle may depend on.
    pub fn leaves_in_use(&self) -> Vec<Leaf> {
        self.leaves.values().filter_map(|&leaf| leaf).collect()
    }

    /// How often unreferenced tensors have been dropped.
    pub fn n_tidied(&self) -> u64 {
        self.n_tidied
    }

    /// The statements that make results, up to what is given.
    fn history(&mut self, results: &[Buffer], wanted: &[Buffer]) -> Vec<Stmt> {
        self.makers.update(&self.recording.program);
        let program = &self.recording.program;
        let is_there = |b: Buffer| self.is_given(b) || (wanted.contains(&b) && self.roots[b]);
        let needed = order(program, &self.makers, &is_there, results);
        let body = needed.iter().map(|&at| program.body[at as usize].clone());
        body.collect()
    }

    fn adjoints(
        &mut self,
        seeds: &[(Slot, Slot)],
        wanted: &[Buffer],
    ) -> Recorded<Vec<Option<Buffer>>> {
        self.track();
        let pairs = seeds.iter();
        let pairs: Vec<(Buffer, Buffer)> = pairs
            .map(|&(result, seed)| (self.buffer(result), self.buffer(seed)))
            .collect();
        let results: Vec<Buffer> = pairs.iter().map(|p| p.0).collect();
        let body = self.history(&results, wanted);
        let made = self.record(|r| reverse(r, &[], &body, &pairs, wanted))?;
        let Adjoints { wanted, body: kept } = made;
        match kept.concat() == body {
            true => Ok(wanted),
            false => Err(RecordError::Value(
                "there is no gradient: a value is overwritten after it was used".to_owned(),
            )),
        }
    }
}
