//! Adjoints through running sums, products and extremes, and through linear recurrences.
//!
//! Each is a linear recurrence for small changes, `dr[k] = a[k] * dr[k - 1] + slope[k] * dx[k]`: the adjoint is the
//! recurrence the other way round, `L[k] = R[k] + a[k + 1] * L[k + 1]` and `X[k] = slope[k] * L[k]`.

use super::{Reverse, refused};
use crate::ir::{Accum, Buffer};
use crate::record::{Recorded, Recurrence, Running};

impl Reverse<'_> {
    pub(super) fn through_running(&mut self, target: Buffer, running: Running) -> Recorded<()> {
        let Some(adjoint) = self.adjoint(target)? else {
            return Ok(());
        };
        if self.wanted.contains(&target) {
            self.found.entry(target).or_insert(adjoint);
        }
        self.adjoints.shift_remove(&target);
        match running {
            Running::Scan {
                accum,
                x,
                axis,
                exclusive,
            } => {
                // The exclusive results are the inclusive ones, one place to the back.
                let adjoint = match exclusive {
                    true => self.recording.shifted(adjoint, axis, false),
                    false => adjoint,
                };
                let part = self.through_scan(accum, x, target, axis, exclusive, adjoint)?;
                self.contribute(x, part);
            }
            Running::Recurrence(of) => self.through_recurrence(of, target, adjoint)?,
        }
        Ok(())
    }

    fn through_scan(
        &mut self,
        accum: Accum,
        x: Buffer,
        made: Buffer,
        axis: usize,
        exclusive: bool,
        adjoint: Buffer,
    ) -> Recorded {
        let backwards = |a, b| Recurrence {
            a,
            b,
            axis,
            is_backwards: true,
        };
        let r = &mut *self.recording;
        if accum == Accum::Add {
            return Ok(r.recurrence(backwards(None, adjoint)));
        }
        // What has been accumulated before each number.
        let before = match exclusive {
            true => made,
            false => r.shifted(made, axis, true),
        };
        let is_first = r.is_end(x, axis, true)?;
        let ty = r.ty(x);
        let [zero, one] = [0.0, 1.0].map(|n| r.number(ty, n));
        let [zero, one] = [zero, one].map(|n| r.map(&[], n));
        let (a, slope) = match accum {
            Accum::Mul => {
                let before = r.select(is_first, one, before)?;
                (x, before)
            }
            Accum::Min | Accum::Max => {
                let op = if accum == Accum::Max { "gt" } else { "lt" };
                let stays = r.binary(op, before, x)?;
                let nan = r.unary("isnan", before)?;
                let stays = r.binary("or", stays, nan)?;
                let wins = r.unary("logical_not", stays)?;
                let wins = r.binary("or", wins, is_first)?;
                (r.select(wins, zero, one)?, r.select(wins, one, zero)?)
            }
            _ => return refused("a running operation on bits"),
        };
        let next = r.shifted(a, axis, false);
        let along = r.recurrence(backwards(Some(next), adjoint));
        r.binary("mul", slope, along)
    }

    fn through_recurrence(
        &mut self,
        of: Recurrence,
        made: Buffer,
        adjoint: Buffer,
    ) -> Recorded<()> {
        let r = &mut *self.recording;
        // The place before each is the one that it follows.
        let a = of.a.map(|a| r.shifted(a, of.axis, of.is_backwards));
        let along = r.recurrence(Recurrence {
            a,
            b: adjoint,
            axis: of.axis,
            is_backwards: !of.is_backwards,
        });
        if let Some(a) = of.a.filter(|a| self.active.contains(a)) {
            let r = &mut *self.recording;
            let before = r.shifted(made, of.axis, !of.is_backwards);
            let part = r.binary("mul", along, before)?;
            self.contribute(a, part);
        }
        if self.active.contains(&of.b) {
            self.contribute(of.b, along);
        }
        Ok(())
    }
}
