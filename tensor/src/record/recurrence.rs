//! Linear recurrences along an axis, and notes of which statement is which running operation.
//!
//! Statements with a loop at each point have no derivative by their operations: reverse mode takes that of the running
//! operation which is noted for their target.

use aerogel_base::ScalarType;
use aerogel_ir::BinaryOp;
use indexmap::IndexMap;

use crate::ir::{Accum, Buffer, Expr, Outside, Stmt, Store};

use super::{Recorded, Recording};

/// Which running operation makes a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    /// `Recording::scan`.
    Scan {
        /// What is accumulated.
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
    /// What is added, of the result's shape.
    pub(crate) b: Buffer,
    /// The axis.
    pub(crate) axis: usize,
    /// Whether it begins at the end: `r[k]` follows `r[k + 1]`.
    pub(crate) is_backwards: bool,
}

impl Running {
    /// The same of other buffers.
    pub(crate) fn moved(self, to: impl Fn(Buffer) -> Option<Buffer>) -> Option<Self> {
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

impl Recording {
    /// Which running operation makes a buffer, if one does.
    pub(crate) fn running(&self, target: Buffer) -> Option<Running> {
        self.running.get(&target).copied()
    }

    /// The solution of a linear recurrence.
    pub(crate) fn recurrence(&mut self, of: Recurrence) -> Buffer {
        let Recurrence {
            a,
            b,
            axis,
            is_backwards,
        } = of;
        let shape = self.shape(b);
        let ty = self.ty(b);
        let wide = ty.accumulator();
        let mut domain = shape.clone();
        let extent = domain.remove(axis);
        let p = &mut self.program;
        let target = p.temporary(ty, &shape);
        let (sum, k) = (p.var(wide), p.var(ScalarType::I32));
        let (so_far, counter) = (p.get(sum), p.get(k));
        let hi = p.extent(extent);
        let [zero, last] = [0, -1].map(|n| p.exprs.i32(n));
        let at = match is_backwards {
            true => {
                let last = p.exprs.binary(BinaryOp::Add, hi, last);
                p.exprs.binary(BinaryOp::Sub, last, counter)
            }
            false => counter,
        };
        let mut index: Vec<Expr> = p.axes(domain.len());
        index.insert(axis, at);
        let mut next = so_far;
        if let Some(a) = a {
            let factor = p.load(a, index.clone(), Outside::Never);
            let factor = p.exprs.cast(factor, wide);
            next = p.exprs.binary(BinaryOp::Mul, factor, next);
        }
        let added = p.load(b, index.clone(), Outside::Never);
        let added = p.exprs.cast(added, wide);
        let next = p.exprs.binary(BinaryOp::Add, next, added);
        let value = p.exprs.cast(so_far, ty);
        let start = self.number(wide, 0.0);
        let store = Store {
            target,
            index,
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        let body = vec![
            Stmt::Set(sum, start),
            Stmt::Loop {
                var: k,
                lo: zero,
                hi,
                step: 1,
                body: vec![Stmt::Set(sum, next), Stmt::Store(store)],
            },
        ];
        self.for_all(domain, body);
        self.running.insert(target, Running::Recurrence(of));
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

    /// Notes the running operations of many, whose buffers have one axis more at the front.
    pub(super) fn note_running_of_all(&mut self, places: &IndexMap<Buffer, (Buffer, usize)>) {
        let to = |b: Buffer| match places.get(&b) {
            Some(&(all, 0)) => Some(all),
            _ => None,
        };
        for (&one, &(all, _)) in places {
            let moved = self.running(one).and_then(|running| running.moved(to));
            if let Some(mut running) = moved {
                let (Running::Scan { axis, .. } | Running::Recurrence(Recurrence { axis, .. })) =
                    &mut running;
                *axis += 1;
                self.running.insert(all, running);
            }
        }
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
