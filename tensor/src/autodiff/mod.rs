//! Reverse mode: statements that make results of tensors become statements that make the adjoints of those tensors.
//!
//! ```text
//! for [n, m] { t[i0] add init = mul(a[i0, i1], x[i1]) }      for [n, m] { X[i1] add init = mul(T[i0], a[i0, i1]) }
//! ```
//! An adjoint is the derivative of the results, each times its seed, by every element of a buffer. The statements are gone
//! through from the last to the first. Where `t` is stored, the adjoint of the value is `T` at the same index, and what
//! the value loads takes its part of that by the partial derivatives of the operations between
//! ([`aerogel_ir::derivatives`]). Such parts are sums at other indices, which the passes turn into reductions and reads
//! where the index is one to one (`passes/inverse.rs`).
//!
//! Everything is recorded as ordinary statements, so that adjoints have adjoints.

mod accumulations;
mod expressions;

use aerogel_base::ScalarType;
use indexmap::{IndexMap, IndexSet};

use crate::ir::{Buffer, Call, ExprDef, For, Program, Stmt, Store, is_whole, targets};
use crate::record::{RecordError, Recorded, Recording, varying};

/// The adjoints of `wanted`, each with its buffer's type and shape; none for what no result depends on smoothly.
///
/// `body` has the statements by which the seeds' results are made, in their order, and `seeds` each result with its
/// adjoint. Statements are appended to the recording.
///
/// # Errors
/// If a result depends on what is wanted by something that has no derivative.
pub fn reverse(
    recording: &mut Recording,
    body: &[Stmt],
    seeds: &[(Buffer, Buffer)],
    wanted: &[Buffer],
) -> Recorded<Vec<Option<Buffer>>> {
    let is_float = |r: &Recording, b: Buffer| r.ty(b).is_float();
    let mut active = varying(&recording.program, body, wanted);
    active.retain(|&b| is_float(recording, b));
    let mut reverse = Reverse {
        recording,
        active,
        adjoints: IndexMap::new(),
    };
    for &(result, seed) in seeds {
        reverse.contribute(result, seed);
    }
    for at in (0..body.len()).rev() {
        reverse.stmt(&body[..at], &body[at])?;
    }
    wanted.iter().map(|&b| reverse.adjoint(b)).collect()
}

/// What has been gone through.
struct Reverse<'r> {
    recording: &'r mut Recording,
    /// The float buffers that depend on what is wanted.
    active: IndexSet<Buffer>,
    /// Parts of the adjoints of buffers, as they are before the statements that have been gone through.
    adjoints: IndexMap<Buffer, Vec<Buffer>>,
}

fn refused<T>(what: &str) -> Recorded<T> {
    Err(RecordError::Value(format!("no derivative: {what}")))
}

impl Reverse<'_> {
    fn program(&self) -> &Program {
        &self.recording.program
    }

    /// Adds a part to the adjoint of a buffer.
    fn contribute(&mut self, buffer: Buffer, part: Buffer) {
        self.adjoints.entry(buffer).or_default().push(part);
    }

    /// The sum of what has been added to the adjoint of a buffer, if anything has.
    fn adjoint(&mut self, buffer: Buffer) -> Recorded<Option<Buffer>> {
        let parts = self.adjoints.get(&buffer).cloned().unwrap_or_default();
        let Some((&first, rest)) = parts.split_first() else {
            return Ok(None);
        };
        let mut sum = first;
        for &part in rest {
            sum = self.recording.binary("add", sum, part)?;
        }
        self.adjoints.insert(buffer, vec![sum]);
        Ok(Some(sum))
    }

    fn stmt(&mut self, before: &[Stmt], stmt: &Stmt) -> Recorded<()> {
        let mut matters = false;
        targets(stmt, &mut |b| matters |= self.adjoints.contains_key(&b));
        if !matters {
            return Ok(());
        }
        match stmt {
            Stmt::For(all) => self.points(before, all),
            Stmt::Call(call) => self.call(call),
            Stmt::Run(_) => refused("a kernel inside of a program"),
            _ => refused("a loop or branch on the host"),
        }
    }

    fn points(&mut self, before: &[Stmt], all: &For) -> Recorded<()> {
        if all.cells.is_some() {
            return refused("a loop over the active cells of a field");
        }
        let mut plain = Vec::new();
        for stmt in &all.body {
            match stmt {
                Stmt::Store(store) => plain.push(store),
                _ => return refused("a statement with loops or branches at its points"),
            }
        }
        for store in plain.into_iter().rev() {
            self.store(before, all, store)?;
        }
        Ok(())
    }

    fn store(&mut self, before: &[Stmt], all: &For, store: &Store) -> Recorded<()> {
        let Some(adjoint) = self.adjoint(store.target)? else {
            return Ok(());
        };
        let (at, outside) = (store.index.clone(), store.outside);
        let stored = self.recording.program.load(adjoint, at, outside);
        let value = match store.accum {
            None => Some(stored),
            Some(accum) => self.through_accumulation(all, store, accum, stored)?,
        };
        let leaves_nothing = store.init || is_whole(self.program(), all, store);
        match store.accum {
            Some(_) if !store.init => {}
            _ if leaves_nothing => {
                self.adjoints.shift_remove(&store.target);
            }
            _ if before.iter().any(|s| is_target(s, store.target)) => {
                self.overwritten(all, store, adjoint)?;
            }
            _ => {
                self.adjoints.shift_remove(&store.target);
            }
        }
        match value {
            Some(value) => self.through(&all.domain, store.value, value),
            None => Ok(()),
        }
    }

    /// What was at the elements that a statement stores to does not matter before it.
    fn overwritten(&mut self, all: &For, store: &Store, adjoint: Buffer) -> Recorded<()> {
        let is_axis = |e| matches!(self.program().exprs[e], ExprDef::Axis(_));
        let mut axes = IndexSet::new();
        let apart = store.index.iter().filter(|&&e| is_axis(e));
        axes.extend(apart.map(|&e| self.program().exprs[e].clone()));
        if axes.len() < all.domain.len() {
            return refused("several points that store to one element");
        }
        let ty = self.recording.ty(store.target);
        let one = self.recording.number(ScalarType::I32, 1.0);
        let shape = self.recording.shape(store.target);
        let (index, inside) = self.brought_inside(store.target, &store.index, store.outside);
        let zero = self.recording.number(ScalarType::I32, 0.0);
        let exprs = &mut self.recording.program.exprs;
        let one = inside.map_or(one, |inside| exprs.select(inside, one, zero));
        let domain = &all.domain;
        let accum = crate::ir::Accum::Max;
        let stored = self
            .recording
            .gather_into(domain, shape.clone(), index, accum, one);
        let at = self.recording.program.axes(shape.len());
        let [was_stored, old] = [stored, adjoint].map(|b| self.recording.at_point(b, at.len()));
        let none = self.recording.number(ty, 0.0);
        let exprs = &mut self.recording.program.exprs;
        let is_stored = exprs.compare(aerogel_ir::CompareOp::Gt, was_stored, zero);
        let left = exprs.select(is_stored, none, old);
        let left = self.recording.map(&shape, left);
        self.adjoints.insert(store.target, vec![left]);
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Recorded<()> {
        let is_active = |b: &Buffer| self.active.contains(b);
        match call.inputs.iter().any(is_active) {
            true => refused("what a library computes"),
            false => Ok(()),
        }
    }
}

fn is_target(stmt: &Stmt, buffer: Buffer) -> bool {
    let mut found = false;
    targets(stmt, &mut |b| found |= b == buffer);
    found
}
