//! Buffers that statements change in place: reverse mode reads them as they were when the statement ran.

use aerogel_base::Span;
use aerogel_base::hash::LookupMap;
use indexmap::IndexMap;

use crate::ir::{Buffer, Expr, ExprDef, Exprs, For, Outside, Program, Stmt, Store, targets};
use crate::record::Recording;

use super::Reverse;

/// Which statements change each buffer, and the copies that reverse mode reads instead.
#[derive(Default)]
pub(super) struct Versions {
    writers: IndexMap<Buffer, Vec<usize>>,
    /// The copy of a buffer from before a statement.
    copied: IndexMap<(Buffer, usize), Buffer>,
    /// Of which buffer each copy is.
    originals: LookupMap<Buffer, Buffer>,
    /// The statement that is visited.
    at: usize,
}

impl Versions {
    pub(super) fn of(_program: &Program, body: &[Stmt]) -> Self {
        let mut writers: IndexMap<Buffer, Vec<usize>> = IndexMap::new();
        for (at, stmt) in body.iter().enumerate() {
            targets(stmt, &mut |b| {
                let all = writers.entry(b).or_default();
                if all.last() != Some(&at) {
                    all.push(at);
                }
            });
        }
        Self {
            writers,
            ..Self::default()
        }
    }

    pub(super) fn visit(&mut self, at: usize) {
        self.at = at;
    }

    /// The first statement from `from` on that changes a buffer.
    fn changed_by(&self, buffer: Buffer, from: usize) -> Option<usize> {
        let all = self.writers.get(&buffer)?;
        all.iter().copied().find(|&w| w >= from)
    }

    /// The buffer that has the elements which `buffer` has before statement `from`.
    fn before(&mut self, recording: &mut Recording, buffer: Buffer, from: usize) -> Buffer {
        let Some(changed) = self.changed_by(buffer, from) else {
            return buffer;
        };
        if let Some(&copy) = self.copied.get(&(buffer, changed)) {
            return copy;
        }
        let (ty, shape) = (recording.ty(buffer), recording.shape(buffer));
        let copy = recording.program.temporary(ty, &shape);
        recording.lines.follow(copy, buffer);
        self.copied.insert((buffer, changed), copy);
        self.originals.insert(copy, buffer);
        copy
    }

    /// The buffer that a copy is of, or the buffer itself.
    pub(super) fn original(&self, buffer: Buffer) -> Buffer {
        self.originals.get(&buffer).copied().unwrap_or(buffer)
    }

    /// The statements that make the copies, and before which statement each belongs.
    pub(super) fn copies(self, recording: &mut Recording) -> Vec<(usize, Stmt)> {
        let mut out = Vec::new();
        for ((buffer, at), copy) in self.copied {
            out.push((at, copied(recording, buffer, copy)));
        }
        out
    }
}

/// `copy[i0, ..] = buffer[i0, ..]`.
pub(super) fn copied(recording: &mut Recording, buffer: Buffer, copy: Buffer) -> Stmt {
    let domain = recording.shape(copy);
    let index = recording.program.axes(domain.len());
    let value = recording
        .program
        .load(buffer, index.clone(), Outside::Never);
    Stmt::For(For {
        domain,
        cells: None,
        body: vec![Stmt::Store(Store {
            target: copy,
            index,
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        })],
        span: Span::default(),
    })
}

impl Reverse<'_> {
    /// Expressions of the visited statement, as they were when it ran.
    pub(super) fn now(&mut self, of: &[Expr]) -> Vec<Expr> {
        let (recording, versions) = (&mut *self.recording, &mut self.versions);
        let mut loads = Vec::new();
        let exprs = &recording.program.exprs;
        exprs.visit(of.iter().copied(), &mut |e| {
            if let ExprDef::Load { buffer, .. } = exprs[e] {
                loads.push(buffer);
            }
        });
        let at = versions.at;
        loads.retain(|&b| versions.changed_by(b, at).is_some());
        if loads.is_empty() {
            return of.to_vec();
        }
        let mut new: LookupMap<Buffer, Buffer> = LookupMap::default();
        for buffer in loads {
            new.insert(buffer, versions.before(recording, buffer, at));
        }
        let mut done: LookupMap<Expr, Expr> = LookupMap::default();
        let exprs = &mut recording.program.exprs;
        let mut copy = |exprs: &mut Exprs, def: &ExprDef| match def {
            ExprDef::Load {
                buffer,
                ty,
                index,
                outside,
            } => Some(exprs.add(ExprDef::Load {
                buffer: *new.get(buffer)?,
                ty: *ty,
                index: index.clone(),
                outside: *outside,
            })),
            _ => None,
        };
        let out = of.iter().map(|&e| exprs.replace(e, &mut done, &mut copy));
        let out: Vec<Expr> = out.collect();
        // What is a function of its own stays one.
        let mut all = Vec::new();
        exprs.visit(of.iter().copied(), &mut |e| all.push(e));
        for e in all {
            if let Some((function, operands)) = exprs.function(e).cloned() {
                let operands = operands.iter();
                let operands = operands.map(|&x| exprs.replace(x, &mut done, &mut copy));
                let operands = operands.collect();
                let new = exprs.replace(e, &mut done, &mut copy);
                exprs.note_function(new, function, operands);
            }
        }
        out
    }

    /// The buffer with the elements that a target has after the visited statement.
    pub(super) fn after(&mut self, buffer: Buffer) -> Buffer {
        let from = self.versions.at + 1;
        self.versions.before(self.recording, buffer, from)
    }
}
