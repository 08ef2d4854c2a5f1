//! Blocks of a program: loops, branches and functions under `vmap`.
//!
//! A scalar condition becomes a branch on the host. A condition with axes becomes a mask on what the block sets and stores. A
//! loop that points leave one by one has a mask in memory, and ends when no point remains.

use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};

use crate::ir::{Buffer, Dim, Expr, Place, Stmt, Var};
use crate::record::Mapped;

use super::super::{RecordError, Recorded};
use super::constraints::{Placement, Subject};
use super::{FieldDef, State, Value};

/// The number of a block; 0 is the function itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockId(u32);

impl BlockId {
    pub(super) const FUNCTION: Self = Self(0);
}

/// The points that have left a loop, or an iteration of it.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// True where a point has left.
    memory: Buffer,
    /// True at the active cells of a field, if the points are these cells.
    cells: Option<Buffer>,
}

#[derive(Clone, Debug)]
enum Kind {
    Loop {
        var: Var,
        bounds: [Expr; 2],
        step: i32,
        counter: Value,
        left: Option<Left>,
        skipped: Option<Left>,
    },
    /// A branch on the host if there is a condition, a mask otherwise.
    Branch(Option<Expr>),
    /// A function under `vmap`, and the number of buffers before it.
    Map(usize),
}

/// A block that is open.
#[derive(Clone, Debug)]
pub(super) struct Block {
    id: BlockId,
    kind: Kind,
    /// The masks of the block.
    conditions: Vec<Buffer>,
}

impl State {
    /// The innermost block.
    pub(super) fn block(&self) -> BlockId {
        self.open.last().map_or(BlockId::FUNCTION, |block| block.id)
    }

    /// Checks that a block has not ended.
    pub(super) fn expect_open(&self, block: BlockId) -> Recorded<()> {
        let is_open = block == BlockId::FUNCTION || self.open.iter().any(|open| open.id == block);
        match is_open {
            true => Ok(()),
            false => Err(RecordError::Ended(self.begun[block.0 as usize - 1])),
        }
    }

    /// Whether a value was made in another block than the current one, which may run any number of times.
    pub(super) fn is_elsewhere(&self, value: Value) -> bool {
        self.values[value.0 as usize].block != self.block()
    }

    /// Whether a function under `vmap` has begun inside a block.
    pub(super) fn is_outside_of_vmap(&self, block: BlockId) -> bool {
        let inside = self.open.iter().rev().take_while(|open| open.id != block);
        inside
            .into_iter()
            .any(|open| matches!(open.kind, Kind::Map(_)))
    }

    /// The open blocks inside the innermost function under `vmap`, or all.
    fn in_function(&self) -> &[Block] {
        let map = |block: &Block| matches!(block.kind, Kind::Map(_));
        let first = self.open.iter().rposition(map).unwrap_or(0);
        &self.open[first..]
    }

    /// Whether a loop is open in this function.
    pub fn is_in_loop(&self) -> bool {
        let mut blocks = self.in_function().iter();
        blocks.any(|block| matches!(block.kind, Kind::Loop { .. }))
    }

    /// Whether a function under `vmap` is open.
    pub fn is_in_vmap(&self) -> bool {
        self.open
            .iter()
            .any(|block| matches!(block.kind, Kind::Map(_)))
    }

    /// Whether any block is open.
    pub fn is_in_block(&self) -> bool {
        !self.open.is_empty()
    }

    /// The counters of the open loops, outermost first.
    pub fn counters(&self) -> Vec<Value> {
        let counters = self.open.iter().filter_map(|block| match block.kind {
            Kind::Loop { counter, .. } => Some(counter),
            _ => None,
        });
        counters.collect()
    }

    /// The mask of the current block; `None` if all points take part.
    ///
    /// # Errors
    /// If masks are on cells that stores have changed since.
    pub fn mask(&mut self) -> Recorded<Option<Buffer>> {
        let blocks = self.in_function().to_vec();
        self.mask_of(blocks)
    }

    /// The conjunction of the masks of some blocks.
    fn mask_of(&mut self, blocks: Vec<Block>) -> Recorded<Option<Buffer>> {
        let mut out: Option<Buffer> = None;
        for block in blocks {
            let mut parts = Vec::new();
            if let Kind::Loop { left, skipped, .. } = block.kind {
                for left in [left, skipped].into_iter().flatten() {
                    parts.push(self.remaining(left)?);
                }
            }
            parts.extend(block.conditions);
            for part in parts {
                out = Some(match out {
                    Some(all) => self.r.binary("logical_and", all, part)?,
                    None => part,
                });
            }
        }
        Ok(out)
    }

    /// Where points remain in a loop.
    fn remaining(&mut self, left: Left) -> Recorded {
        match left.cells {
            Some(cells) => self.r.binary("ne", cells, left.memory),
            None => self.r.unary("logical_not", left.memory),
        }
    }

    fn begin(&mut self) {
        self.r.forget();
        self.r.begin_block();
        let body = std::mem::take(&mut self.r.program.body);
        self.around.push(body);
    }

    /// Ends the innermost list of statements, and continues the one around it.
    fn end(&mut self, is_loop: bool) -> Recorded<Vec<Stmt>> {
        self.r.forget();
        let outer = self.around.pop().unwrap_or_default();
        let body = std::mem::replace(&mut self.r.program.body, outer);
        self.r.end_block(is_loop)?;
        Ok(body)
    }

    /// The statements of the innermost block, and of those around it up to one that is not a function under `vmap`, from
    /// the outermost on; and the statements around these.
    pub(crate) fn visible(&self) -> (Vec<Stmt>, Vec<Stmt>) {
        let map = |block: &Block| matches!(block.kind, Kind::Map(_));
        let n_maps = self.open.iter().rev().take_while(|b| map(b)).count();
        let (outer, own) = self.around.split_at(self.around.len() - n_maps);
        (
            [&own.concat()[..], &self.r.program.body].concat(),
            outer.concat(),
        )
    }

    /// Puts other statements in the place of each of the visible ones from one on; `n_own` of the innermost block are visible.
    pub(crate) fn edit_visible(&mut self, from: usize, edited: Vec<Vec<Stmt>>, n_own: usize) {
        let map = |block: &Block| matches!(block.kind, Kind::Map(_));
        let n_maps = self.open.iter().rev().take_while(|b| map(b)).count();
        let n_outer = self.around.len() - n_maps;
        let own = self.around[n_outer..].iter_mut().map(|body| {
            let n = body.len();
            (body, n)
        });
        let mut edited = edited.into_iter();
        let mut before = 0;
        for (body, n) in own.chain([(&mut self.r.program.body, n_own)]) {
            let first = from.saturating_sub(before).min(n);
            let new: Vec<Stmt> = edited.by_ref().take(n - first).flatten().collect();
            body.splice(first..n, new);
            before += n;
        }
    }

    fn next_block(&mut self, place: Place) -> BlockId {
        self.begun.push(place);
        BlockId(self.begun.len() as u32)
    }

    fn number_of(&mut self, x: Buffer) -> Recorded<Expr> {
        self.r.expect_everywhere(&[x])?;
        match self.r.rank(x) {
            0 => Ok(self.r.element(x, Vec::new())),
            _ => Err(RecordError::Value(
                "the bounds of a loop are scalars, and a block adds axes to this one: create it with its final shape, as in \
                 `const(full(shape, 0))`"
                    .to_owned(),
            )),
        }
    }

    /// Begins a loop from `first` to before `last`; returns its counter.
    ///
    /// # Errors
    /// If the bounds are not scalars.
    pub fn begin_loop(
        &mut self,
        first: Value,
        last: Value,
        step: i32,
        place: Place,
    ) -> Recorded<Value> {
        let bounds = self.buffers(&[first, last])?;
        let bounds = [self.number_of(bounds[0])?, self.number_of(bounds[1])?];
        let id = self.next_block(place);
        let left = self.no_point_left(Subject::Left(id))?;
        self.begin();
        let var = self.r.program.var(ScalarType::I32);
        let count = self.r.program.get(var);
        let count = self.r.map(&[], count);
        let skipped = self.no_point_left(Subject::Skipped(id))?;
        let counter = Value(self.values.len() as u32);
        self.open.push(Block {
            id,
            kind: Kind::Loop {
                var,
                bounds,
                step,
                counter,
                left,
                skipped,
            },
            conditions: Vec::new(),
        });
        Ok(self.value(count))
    }

    /// Adds a mask to the innermost block.
    ///
    /// # Errors
    /// If the mask was made in a block that has ended.
    pub fn add_mask(&mut self, condition: Value) -> Recorded<()> {
        let condition = self.buffer(condition)?;
        let held = self.snapshot(condition)?;
        let block = self.open.last_mut().expect("a block is open");
        block.conditions.push(held);
        Ok(())
    }

    /// Begins a branch that runs where a condition is true.
    ///
    /// # Errors
    /// If the condition was made in a block that has ended.
    pub fn begin_branch(&mut self, condition: Value, place: Place) -> Recorded<()> {
        // The block may change the memory of its own condition.
        let condition = self.buffer(condition)?;
        let held = self.snapshot(condition)?;
        let is_host = self.r.rank(held) == 0 && self.mask()?.is_none();
        let id = self.next_block(place);
        let (kind, conditions) = match is_host {
            true => (Kind::Branch(Some(self.number_of(held)?)), Vec::new()),
            false => (Kind::Branch(None), vec![held]),
        };
        if is_host {
            self.begin();
        }
        self.open.push(Block {
            id,
            kind,
            conditions,
        });
        Ok(())
    }

    /// Ends the innermost loop or branch.
    ///
    /// # Errors
    /// If a loop activates cells and iterates over those that were active before it.
    pub fn end_block(&mut self) -> Recorded<()> {
        let kind = self.open.last().expect("a block is open").kind.clone();
        match kind {
            Kind::Loop {
                var,
                bounds: [lo, hi],
                step,
                left,
                ..
            } => {
                if left.is_some() {
                    self.leave_if_done()?;
                }
                self.open.pop();
                let body = self.end(true)?;
                self.r.program.body.push(Stmt::Loop {
                    var,
                    lo,
                    hi,
                    step,
                    body,
                });
            }
            Kind::Branch(condition) => {
                self.open.pop();
                if let Some(condition) = condition {
                    let body = self.end(false)?;
                    let branch = Stmt::If(condition, body, Vec::new());
                    self.r.program.body.push(branch);
                }
            }
            Kind::Map(_) => unreachable!("`vmap` ends its functions itself"),
        }
        Ok(())
    }

    /// Ends a loop once no point remains of those that entered it.
    fn leave_if_done(&mut self) -> Recorded<()> {
        let mut blocks = self.in_function().to_vec();
        if let Some(Block {
            kind: Kind::Loop { skipped, .. },
            ..
        }) = blocks.last_mut()
        {
            // A point that leaves an iteration stays in the loop.
            *skipped = None;
        }
        let remaining = self.mask_of(blocks)?;
        let remaining = remaining.expect("points have left the loop");
        let any = self.r.reduce("any", remaining, None, false)?;
        let none = self.r.unary("logical_not", any)?;
        self.begin();
        self.r.program.body.push(Stmt::Break);
        let body = self.end(false)?;
        let none = self.number_of(none)?;
        let leave = Stmt::If(none, body, Vec::new());
        self.r.program.body.push(leave);
        Ok(())
    }

    /// The mask of points that have left a loop or an iteration, all false; `None` if none leave one by one.
    fn no_point_left(&mut self, subject: Subject) -> Recorded<Option<Left>> {
        let Some((shape, at)) = self.known(subject)? else {
            return Ok(None);
        };
        let memory = self.r.program.temporary(ScalarType::U1, &shape);
        self.r.note_memory(memory);
        let cells = match at.field().cloned() {
            Some(field) => Some(self.truth_at(&field, shape.len())?),
            None => None,
        };
        let no = self.r.full(&[], Scalar::zero(ScalarType::U1));
        self.r.set_all(memory, no, None)?;
        Ok(Some(Left { memory, cells }))
    }

    /// True at the active cells of a field, with trailing axes up to a rank.
    fn truth_at(&mut self, field: &Arc<FieldDef>, rank: usize) -> Recorded {
        let first = self.cell_indices(field)?[0];
        let truth = self.r.binary("eq", first, first)?;
        let behind: Vec<i64> = (self.r.rank(first)..rank).map(|axis| axis as i64).collect();
        match behind.is_empty() {
            true => Ok(truth),
            false => self.r.unsqueeze(truth, &behind),
        }
    }

    /// Leaves the innermost loop, or its iteration, at the points of the current mask.
    ///
    /// # Errors
    /// As `mask`.
    pub fn leave_loop(&mut self, is_iteration: bool) -> Recorded<()> {
        let is_loop = |block: &Block| matches!(block.kind, Kind::Loop { .. });
        let at = self.open.iter().rposition(is_loop);
        let at = at.expect("the caller checks that a loop is open");
        let Some(mask) = self.mask()? else {
            let leave = match is_iteration {
                true => Stmt::Continue,
                false => Stmt::Break,
            };
            self.r.program.body.push(leave);
            return Ok(());
        };
        let Kind::Loop { left, skipped, .. } = self.open[at].kind else {
            unreachable!("it is a loop");
        };
        let id = self.open[at].id;
        let (left, subject) = match is_iteration {
            true => (skipped, Subject::Skipped(id)),
            false => (left, Subject::Left(id)),
        };
        let shape: Vec<Dim> = match left {
            Some(left) => self.broadcast_shape(&[mask, left.memory]),
            None => self.r.shape(mask),
        };
        let at = self.field_of(mask).map_or(Placement::All, Placement::Cells);
        match left {
            Some(left) if self.knows(subject, &shape, &at) => {
                let yes = self.r.full(&[], Scalar::bool(true));
                self.r.set_all(left.memory, yes, Some(mask))
            }
            _ => {
                self.infer(subject, &shape, at);
                Ok(())
            }
        }
    }

    /// Memory with the shape of a value, or for `many` of them along a new first axis, that outlives the innermost block. It
    /// is zero where the block does not set it.
    ///
    /// # Errors
    /// If the value was made in a block that has ended.
    pub fn block_output(&mut self, like: Value, many: Option<Dim>) -> Recorded<Value> {
        let like = self.buffer(like)?;
        let mut shape = self.r.shape(like);
        shape.splice(..0, many);
        let around = self.open.iter().rev().nth(1);
        let around = around.map_or(BlockId::FUNCTION, |block| block.id);
        let value = self.hold(like, around, false);
        if let Some((known, at)) = self.known(Subject::Changed(value))? {
            // A later block enlarges it.
            shape = self.broadcast_shapes(&[shape, known]);
            self.keep_inferred(value, &shape, at);
        }
        let memory = self.r.program.temporary(self.r.ty(like), &shape);
        self.r.note_memory(memory);
        self.becomes(value, memory);
        Ok(value)
    }

    /// Begins a function under `vmap`.
    pub fn begin_vmap(&mut self, place: Place) {
        let id = self.next_block(place);
        self.begin();
        let n_before = self.r.program.buffers.len();
        self.open.push(Block {
            id,
            kind: Kind::Map(n_before),
            conditions: Vec::new(),
        });
    }

    /// Discards the statements of the innermost function under `vmap`, which raised an error.
    pub fn drop_vmap(&mut self) {
        while let Some(block) = self.open.pop() {
            if let Kind::Map(n_before) = block.kind {
                // The error of the function has been raised already.
                let _ = self.end(false);
                self.r.drop_since(n_before);
                return;
            }
            if !matches!(block.kind, Kind::Branch(None)) {
                let _ = self.end(false);
            }
        }
    }

    /// A value that stands for one element along an axis, and that axis counted from the front.
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn one_of(&mut self, all: Value, axis: i64) -> Recorded<(Value, usize)> {
        let all = self.buffer(all)?;
        let (one, axis) = self.r.one_of(all, axis)?;
        Ok((self.value(one), axis))
    }

    /// Vectorises the function under `vmap`: returns each result and its batch axis, `None` if it does not vary. Each of
    /// `mapped` is an element, the tensor of all elements, and the batch axis.
    ///
    /// # Errors
    /// As `Recording::vmap`.
    pub fn end_vmap(
        &mut self,
        mapped: &[(Value, Value, usize)],
        names: &[String],
        results: &[Value],
    ) -> Recorded<Vec<(Value, Option<usize>)>> {
        let results = self.buffers(results)?;
        let mut pairs = Vec::new();
        for &(one, all, axis) in mapped {
            pairs.push(Mapped {
                one: self.buffer(one)?,
                all: self.buffer(all)?,
                axis,
            });
        }
        let block = self.open.pop().expect("a function under `vmap` is open");
        let Kind::Map(n_before) = block.kind else {
            unreachable!("blocks inside have ended");
        };
        let body = self.end(false)?;
        let is_own = |b: Buffer| b.as_u32() as usize >= n_before;
        let n = self.r.how_many(&pairs, names)?;
        let made = self.r.vmap(&body, &pairs, n, &results, &is_own)?;
        let made = made.into_iter().zip(results);
        Ok(made
            .map(|(place, same)| match place {
                Some((buffer, axis)) => (self.value(buffer), Some(axis)),
                None => (self.value(same), None),
            })
            .collect())
    }
}
