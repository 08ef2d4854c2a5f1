//! Buffers that statements change in place: reverse mode reads them as they were when the statement ran.

use aerogel_base::Span;
use aerogel_base::hash::LookupMap;
use indexmap::IndexMap;

use crate::ir::{
    Buffer, Expr, ExprDef, Exprs, For, Outside, Program, Stmt, Store, Touched, is_whole,
};
use crate::record::Recording;

use super::Reverse;

/// Which statements change each buffer, and the copies that reverse mode reads instead.
#[derive(Default)]
pub(super) struct Versions {
    /// The blocks that are visited, the innermost last.
    blocks: Vec<Block>,
    /// The same of outermost statements, made again instead of copied.
    again: LookupMap<(Buffer, usize), Buffer>,
    /// Of which buffer each copy is.
    originals: LookupMap<Buffer, Buffer>,
}

#[derive(Default)]
struct Block {
    writers: IndexMap<Buffer, Vec<usize>>,
    /// The copy of a buffer from before a statement.
    copied: IndexMap<(Buffer, usize), Buffer>,
    /// The statement that is visited.
    at: usize,
    body: Vec<Stmt>,
}

impl Block {
    /// The value that the one statement before another has given a whole buffer, if it has the same value now.
    fn value_before(&self, program: &Program, buffer: Buffer, at: usize) -> Option<&For> {
        let mut before = self.writers[&buffer].iter().filter(|&&w| w < at);
        let (&made, None) = (before.next()?, before.next()) else {
            return None;
        };
        let Stmt::For(all) = &self.body[made] else {
            return None;
        };
        let [Stmt::Store(store)] = &all.body[..] else {
            return None;
        };
        if store.accum.is_some() || !is_whole(program, all, store) {
            return None;
        }
        let mut stays = true;
        program.exprs.visit([store.value], &mut |e| {
            if let ExprDef::Load { buffer, .. } = program.exprs[e] {
                stays &= self.changed_by(buffer, made).is_none();
            }
        });
        stays.then_some(all)
    }

    /// The first statement from `from` on that changes a buffer.
    fn changed_by(&self, buffer: Buffer, from: usize) -> Option<usize> {
        let all = self.writers.get(&buffer)?;
        all.iter().copied().find(|&w| w >= from)
    }
}

impl Versions {
    /// Begins with the statements of a block.
    pub(super) fn begin(&mut self, program: &Program, body: &[Stmt]) {
        let mut block = Block {
            body: body.to_vec(),
            ..Block::default()
        };
        for (at, stmt) in body.iter().enumerate() {
            for b in Touched::by(program, std::slice::from_ref(stmt)).writes {
                block.writers.entry(b).or_default().push(at);
            }
        }
        self.blocks.push(block);
    }

    /// The statements of the blocks that are visited.
    pub(super) fn bodies(&self) -> impl Iterator<Item = &[Stmt]> {
        self.blocks.iter().map(|block| &block.body[..])
    }

    pub(super) fn visit(&mut self, at: usize) {
        self.blocks.last_mut().expect("a block has begun").at = at;
    }

    /// Where a buffer is changed next, behind the visited statement, or by it: in which block, and by which of its
    /// statements.
    fn changed(&self, buffer: Buffer, is_after: bool) -> Option<(usize, usize)> {
        let n = self.blocks.len();
        (0..n).rev().find_map(|k| {
            // What is around is over.
            let from = self.blocks[k].at + usize::from(is_after || k + 1 < n);
            Some((k, self.blocks[k].changed_by(buffer, from)?))
        })
    }

    /// The buffer with the elements that `buffer` has before, or after, the visited statement.
    pub(super) fn at(&mut self, r: &mut Recording, buffer: Buffer, is_after: bool) -> Buffer {
        let Some((k, changed)) = self.changed(buffer, is_after) else {
            return buffer;
        };
        let known = self.blocks[k].copied.get(&(buffer, changed));
        let known = known.or_else(|| self.again.get(&(buffer, changed)).filter(|_| k == 0));
        if let Some(&copy) = known {
            return copy;
        }
        let copy = r.program.temporary(r.ty(buffer), &r.shape(buffer));
        r.lines.follow(copy, buffer);
        if self.blocks.len() == 1
            && let Some(all) = self.blocks[k].value_before(&r.program, buffer, changed)
            && let Stmt::Store(store) = &all.body[0]
        {
            // Nothing has to be saved before the change.
            let again = filled(r, copy, store.value);
            r.program.body.push(again);
            self.again.insert((buffer, changed), copy);
            self.originals.insert(copy, self.original(buffer));
            return copy;
        }
        self.blocks[k].copied.insert((buffer, changed), copy);
        self.originals.insert(copy, self.original(buffer));
        copy
    }

    /// The buffer that a copy is of, or the buffer itself.
    pub(super) fn original(&self, buffer: Buffer) -> Buffer {
        self.originals.get(&buffer).copied().unwrap_or(buffer)
    }

    /// Ends the innermost block: the statements that make its copies, and before which of its statements each belongs.
    pub(super) fn end(&mut self, recording: &mut Recording) -> Vec<(usize, Stmt)> {
        let block = self.blocks.pop().expect("a block has begun");
        let copied = block.copied.into_iter();
        copied
            .map(|((buffer, at), copy)| (at, assigned(recording, copy, buffer)))
            .collect()
    }
}

/// `target[i0, ..] = source[i0, ..]`.
pub(super) fn assigned(recording: &mut Recording, target: Buffer, source: Buffer) -> Stmt {
    let rank = recording.rank(target);
    let index = recording.program.axes(rank);
    let value = recording.program.load(source, index, Outside::Never);
    filled(recording, target, value)
}

/// `target[i0, ..] = value`, at all elements.
pub(super) fn filled(recording: &mut Recording, target: Buffer, value: Expr) -> Stmt {
    let domain = recording.shape(target);
    let index = recording.program.axes(domain.len());
    Stmt::For(For {
        domain,
        cells: None,
        body: vec![Stmt::Store(Store {
            target,
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
        loads.retain(|&b| versions.changed(b, false).is_some());
        if loads.is_empty() {
            return of.to_vec();
        }
        let mut new: LookupMap<Buffer, Buffer> = LookupMap::default();
        for buffer in loads {
            new.insert(buffer, versions.at(recording, buffer, false));
        }
        let exprs = &mut recording.program.exprs;
        let mut done = LookupMap::default();
        let mut leaf =
            |exprs: &mut Exprs, def: &ExprDef| loaded(exprs, def, |b| new.get(&b).copied());
        of.iter()
            .map(|&e| exprs.replace(e, &mut done, &mut leaf))
            .collect()
    }

    /// The buffer with the elements that a target has before the visited statement.
    pub(super) fn before(&mut self, buffer: Buffer) -> Buffer {
        self.versions.at(self.recording, buffer, false)
    }

    /// The buffer with the elements that a target has after the visited statement.
    pub(super) fn after(&mut self, buffer: Buffer) -> Buffer {
        self.versions.at(self.recording, buffer, true)
    }
}

/// A load from another buffer, if there is one for it.
pub(super) fn loaded(
    exprs: &mut Exprs,
    def: &ExprDef,
    new: impl Fn(Buffer) -> Option<Buffer>,
) -> Option<Expr> {
    let ExprDef::Load {
        buffer,
        ty,
        index,
        outside,
    } = def
    else {
        return None;
    };
    Some(exprs.add(ExprDef::Load {
        buffer: new(*buffer)?,
        ty: *ty,
        index: index.clone(),
        outside: *outside,
    }))
}
