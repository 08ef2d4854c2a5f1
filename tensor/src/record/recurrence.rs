//! Linear recurrences along an axis, and notes of which statement is which running operation.
//!
//! Statements with a loop at each point have no derivative by their operations: reverse mode takes that of the running
//! operation which is noted for their target.

use aerogel_base::ScalarType;
use aerogel_ir::BinaryOp;

use crate::ir::{Accum, Buffer, Expr, Outside, Stmt, Store};

use super::{Recorded, Recording};

/// Which running operation makes a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    /// `Recording::scan`.
    Scan {
        /// The accumulation.
        accum: Accum,
        /// The numbers.
        x: Buffer,
        /// Along which axis.
        axis: usize,
        /// Whether each result leaves out its own number.
        exclusive: bool,
    },
    /// `Recording::recurrence`.
    Recurrence(Recurrence),
}

/// `r[k] = a[k] * r[k - 1] + b[k]` along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recurrence {
    /// The factors; 1 without.
    pub(crate) a: Option<Buffer>,
    /// The added values, of the result's shape.
    pub(crate) b: Buffer,
    /// The axis.
    pub(crate) axis: usize,
    /// Whether it begins at the end: `r[k]` follows `r[k + 1]`.
    pub(crate) is_backwards: bool,
}

/// How numbers are gone through along an axis.
#[derive(Clone, Copy)]
pub(super) struct Along {
    pub(super) axis: usize,
    /// Whether from the end.
    pub(super) is_backwards: bool,
    /// Whether each result leaves out its own number.
    pub(super) exclusive: bool,
}

impl Running {
    /// The same of other buffers.
    pub(crate) fn moved(self, mut to: impl FnMut(Buffer) -> Option<Buffer>) -> Option<Self> {
        Some(match self {
            Self::Scan {
                accum,
                x,
                axis,
                exclusive,
            } => Self::Scan {
                accum,
                x: to(x)?,
                axis,
                exclusive,
            },
            Self::Recurrence(of) => Self::Recurrence(Recurrence {
                a: match of.a {
                    Some(a) => Some(to(a)?),
                    None => None,
                },
                b: to(of.b)?,
                ..of
            }),
        })
    }
}

impl Running {
    /// The same with one axis more at the front of all buffers.
    pub(super) fn of_all(mut self) -> Self {
        let (Self::Scan { axis, .. } | Self::Recurrence(Recurrence { axis, .. })) = &mut self;
        *axis += 1;
        self
    }
}

impl Recording {
    /// Which running operation makes a buffer, if one does.
    pub(crate) fn running(&self, target: Buffer) -> Option<Running> {
        self.running.get(&target).copied()
    }

    /// Numbers like those of `x`, each made of what comes before it along an axis: `next` has the result so far and the index
    /// at hand.
    pub(super) fn run_along(
        &mut self,
        x: Buffer,
        along: Along,
        start: Expr,
        next: impl FnOnce(&mut Self, Expr, &[Expr]) -> Expr,
    ) -> Buffer {
        let shape = self.shape(x);
        let mut domain = shape.clone();
        let extent = domain.remove(along.axis);
        let p = &mut self.program;
        let target = p.temporary(p.buffers[x].ty, &shape);
        let (result, k) = (p.var(p.exprs.ty(start)), p.var(ScalarType::I32));
        let (so_far, counter) = (p.get(result), p.get(k));
        let hi = p.extent(extent);
        let [zero, last] = [0, -1].map(|n| p.exprs.i32(n));
        let at = match along.is_backwards {
            true => {
                let last = p.exprs.binary(BinaryOp::Add, hi, last);
                p.exprs.binary(BinaryOp::Sub, last, counter)
            }
            false => counter,
        };
        let mut index: Vec<Expr> = p.axes(domain.len());
        index.insert(along.axis, at);
        let next = next(self, so_far, &index);
        let ty = self.ty(x);
        let store = Store {
            target,
            index,
            value: self.program.exprs.cast(so_far, ty),
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        let mut body = vec![Stmt::Set(result, next), Stmt::Store(store)];
        if along.exclusive {
            body.reverse();
        }
        let turns = Stmt::Loop {
            var: k,
            lo: zero,
            hi,
            step: 1,
            body,
        };
        self.for_all(domain, vec![Stmt::Set(result, start), turns]);
        target
    }

    /// The solution of a linear recurrence.
    pub(crate) fn recurrence(&mut self, of: Recurrence) -> Buffer {
        let wide = self.ty(of.b).accumulator();
        let start = self.number(wide, 0.0);
        let along = Along {
            axis: of.axis,
            is_backwards: of.is_backwards,
            exclusive: false,
        };
        let target = self.run_along(of.b, along, start, |r, so_far, index| {
            let mut loaded = |buffer| {
                let element = r.program.load(buffer, index.to_vec(), Outside::Never);
                r.program.exprs.cast(element, wide)
            };
            let (factor, added) = (of.a.map(&mut loaded), loaded(of.b));
            let before = match factor {
                Some(factor) => r.mul(factor, so_far),
                None => so_far,
            };
            r.add(before, added)
        });
        self.note_running(target, Running::Recurrence(of));
        target
    }

    /// `x` moved along an axis by one place, to the back or to the front; zero where nothing comes from.
    pub(crate) fn shifted(&mut self, x: Buffer, axis: usize, to_back: bool) -> Buffer {
        let shape = self.shape(x);
        let mut index = self.program.axes(shape.len());
        let by = self.program.exprs.i32(if to_back { -1 } else { 1 });
        index[axis] = self.add(index[axis], by);
        let value = self.program.load(x, index, Outside::Zero);
        self.map(&shape, value)
    }

    /// Notes which running operation makes a buffer.
    pub(crate) fn note_running(&mut self, target: Buffer, running: Running) {
        self.running.insert(target, running);
    }

    /// Whether the first, or the last, place along an axis is at hand, at the points of a tensor's shape.
    pub(crate) fn is_end(&mut self, x: Buffer, axis: usize, is_first: bool) -> Recorded {
        let shape = self.shape(x);
        let place = self.program.exprs.axis(axis as u32);
        let end = match is_first {
            true => self.program.exprs.i32(0),
            false => {
                let n = self.program.extent(shape[axis]);
                let one = self.program.exprs.i32(-1);
                self.add(n, one)
            }
        };
        let is_end = self
            .program
            .exprs
            .compare(aerogel_ir::CompareOp::Eq, place, end);
        Ok(self.map(&shape, is_end))
    }
}
