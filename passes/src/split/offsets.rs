//! How far an index lies from a loop's counter.
//!
//! `i + 1` and `(i - 1) mod n` are one above `i` and one below it, and `max(i - 1, 0)` lies between `i - 1` and `i`, as `i` is the
//! number of a cell.

use aerogel_ir::analysis::Interval;
use aerogel_ir::analysis::Ranges;
use aerogel_ir::analysis::affine::before_widening;
use aerogel_ir::{BinaryOp, Function, Op, Value};

/// How far back operands are followed.
const DEEPEST: u32 = 12;

/// An index that is a counter plus something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// The counter.
    pub(super) counter: Value,
    /// The least that is added to it, and the most.
    pub(super) by: [i64; 2],
    /// If it is taken modulo the size of the axis: of which value, and what to subtract from that instead.
    pub(super) wrapped: Option<(Value, i64)>,
    /// By what the counter is multiplied before.
    pub(super) scale: i64,
}

impl Offset {
    fn plus(self, [lo, hi]: [i64; 2]) -> Option<Self> {
        // What has been wrapped and is added to lies beyond the other edge of the grid.
        let by = [self.by[0].checked_add(lo)?, self.by[1].checked_add(hi)?];
        self.wrapped.is_none().then_some(Self { by, ..self })
    }

    fn and(self, other: Self) -> Option<Self> {
        let is_same = (self.counter, self.scale) == (other.counter, other.scale);
        let alike = is_same && self.wrapped.or(other.wrapped).is_none();
        let by = [self.by[0].min(other.by[0]), self.by[1].max(other.by[1])];
        alike.then_some(Self { by, ..self })
    }

    fn times(self, scale: i64) -> Option<Self> {
        let by = [
            self.by[0].checked_mul(scale)?,
            self.by[1].checked_mul(scale)?,
        ];
        let is_plain = self.wrapped.is_none() && self.scale == 1 && scale > 0;
        is_plain.then_some(Self { by, scale, ..self })
    }

    /// The number that is added; none if it may be several, or if the index is wrapped.
    pub(super) fn exact(&self) -> Option<i64> {
        (self.by[0] == self.by[1] && self.wrapped.is_none()).then_some(self.by[0])
    }
}

/// The indices along an axis of a grid.
pub(super) struct Along<'a> {
    pub(super) func: &'a Function,
    pub(super) ranges: &'a Ranges,
    /// The counters of the parallel loop.
    pub(super) counters: &'a [Value],
    /// The number of cells.
    pub(super) size: i64,
    /// The cell of an iteration is its counter plus this.
    pub(super) base: i64,
}

impl Along<'_> {
    /// How far an index lies from a counter; none if that is not known.
    pub(super) fn offset(&self, index: Value) -> Option<Offset> {
        self.follow(index, DEEPEST).filter(|it| it.scale == 1)
    }

    /// How far an index lies from a counter times a scale, which is not 1; none if that is not known.
    pub(super) fn scaled_offset(&self, index: Value, scale: i64) -> Option<Offset> {
        self.follow(index, DEEPEST).filter(|it| it.scale == scale)
    }

    /// How far `x` in `x // divisor` lies from a counter; none if the index is something else.
    pub(super) fn divided_offset(&self, index: Value, divisor: i64) -> Option<Offset> {
        let index = before_widening(self.func, index);
        match *self.func.def_op(index)? {
            Op::Binary {
                op: BinaryOp::FloorDiv,
                lhs,
                rhs,
            } if self.constant(rhs) == Some(divisor) => self.offset(lhs),
            Op::Binary {
                op: BinaryOp::Shr,
                lhs,
                rhs,
            } if divisor.count_ones() == 1
                && self.constant(rhs) == Some(divisor.trailing_zeros().into()) =>
            {
                self.offset(lhs)
            }
            _ => None,
        }
    }

    fn follow(&self, index: Value, depth: u32) -> Option<Offset> {
        let index = before_widening(self.func, index);
        if self.counters.contains(&index) {
            return Some(Offset {
                counter: index,
                by: [0, 0],
                wrapped: None,
                scale: 1,
            });
        }
        let depth = depth.checked_sub(1)?;
        let of = |value| self.follow(value, depth);
        match *self.func.def_op(index)? {
            Op::Select {
                on_true, on_false, ..
            } => of(on_true)?.and(of(on_false)?),
            Op::Binary { op, lhs, rhs } => match op {
                BinaryOp::Add => match (of(lhs), of(rhs)) {
                    (Some(sum), None) => sum.plus(self.range(rhs)?),
                    (None, Some(sum)) => sum.plus(self.range(lhs)?),
                    (Some(sum), Some(other)) if sum.scale != 1 && other.scale == 1 => {
                        other.plus(self.range(lhs)?)
                    }
                    (Some(sum), Some(_)) => sum.plus(self.range(rhs)?),
                    (None, None) => None,
                },
                BinaryOp::Sub => {
                    let [lo, hi] = self.range(rhs)?;
                    of(lhs)?.plus([-hi, -lo])
                }
                BinaryOp::Mul => match (self.constant(lhs), self.constant(rhs)) {
                    (None, Some(scale)) => of(lhs)?.times(scale),
                    (Some(scale), None) => of(rhs)?.times(scale),
                    _ => None,
                },
                // A constant lies this far from a counter of the first cell, and of the last one.
                BinaryOp::Max => {
                    let first = self.base;
                    self.clamped(lhs, rhs, depth, |by, k| [by[0], by[1].max(k + first)])
                }
                BinaryOp::Min => {
                    let last = self.size - 1 - self.base;
                    self.clamped(lhs, rhs, depth, |by, k| [by[0].min(k - last), by[1]])
                }
                BinaryOp::Mod if self.constant(rhs) == Some(self.size) => self.wrapped(lhs, depth),
                BinaryOp::And if self.size.count_ones() == 1 => {
                    let is_mask = |value| self.constant(value) == Some(self.size - 1);
                    match (is_mask(lhs), is_mask(rhs)) {
                        (_, true) => self.wrapped(lhs, depth),
                        (true, _) => self.wrapped(rhs, depth),
                        _ => None,
                    }
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn clamped(
        &self,
        lhs: Value,
        rhs: Value,
        depth: u32,
        clamp: impl Fn([i64; 2], i64) -> [i64; 2],
    ) -> Option<Offset> {
        let (index, limit) = match (self.constant(lhs), self.constant(rhs)) {
            (None, Some(limit)) => (lhs, limit),
            (Some(limit), None) => (rhs, limit),
            _ => return None,
        };
        let inner = self.follow(index, depth)?;
        let is_plain = inner.wrapped.is_none() && inner.scale == 1;
        is_plain.then(|| Offset {
            by: clamp(inner.by, limit),
            ..inner
        })
    }

    fn wrapped(&self, of: Value, depth: u32) -> Option<Offset> {
        let inner = self.follow(of, depth).filter(|it| it.scale == 1)?;
        let [lo, hi] = inner.by;
        // The multiple of the size that is nearest to the middle, seen from the iteration's cell.
        let middle = lo + hi - 2 * self.base;
        let turns = (middle + self.size).div_euclid(2 * self.size) * self.size;
        let is_wrapped_already = inner.wrapped.is_some();
        (!is_wrapped_already && hi - lo < self.size).then_some(Offset {
            by: [lo - turns, hi - turns],
            wrapped: Some((of, turns)),
            ..inner
        })
    }

    fn constant(&self, value: Value) -> Option<i64> {
        let value = before_widening(self.func, value);
        let value = self.func.as_const(value).filter(|c| c.ty().is_int())?;
        i64::try_from(value.as_i128()).ok()
    }

    /// Whether the cell of each iteration, a counter plus `shift`, is known to be one of the grid.
    pub(super) fn is_inside(&self, counter: Value, shift: i64) -> bool {
        self.range(counter).is_some_and(|[lo, hi]| {
            let (lo, hi) = (lo.checked_add(shift), hi.checked_add(shift));
            lo.is_some_and(|lo| lo >= 0) && hi.is_some_and(|hi| hi < self.size)
        })
    }

    /// Between which numbers a value lies.
    pub(super) fn range(&self, value: Value) -> Option<[i64; 2]> {
        let Interval { lo, hi } = self.ranges.of(self.func, value)?;
        Some([lo.try_into().ok()?, hi.try_into().ok()?])
    }
}
