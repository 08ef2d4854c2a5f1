//! Loops of the host whose number of iterations varies over the batch.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{CompareOp, UnaryOp};
use indexmap::IndexSet;

use super::{At, InLoop, Mapping};
use crate::ir::{Accum, Expr, Stmt};
use crate::record::varying::leaving;
use crate::record::{RecordError, Recorded};

impl Mapping<'_> {
    pub(super) fn turns(&mut self, stmt: &Stmt, at: At, out: &mut Vec<Stmt>) -> Recorded<()> {
        let &Stmt::Loop {
            var,
            lo,
            hi,
            step,
            ref body,
        } = stmt
        else {
            unreachable!("a loop is given");
        };
        if self.varies(lo) && step.abs() != 1 {
            let what = "`vmap`: the start of a loop with a step varies over the batch: start at 0, and add to the \
                        counter";
            return Err(RecordError::Value(what.to_owned()));
        }
        let (mut ends, mut mask) = ([lo, hi], at.mask);
        let (first, last) = match step > 0 {
            true => ((Accum::Min, CompareOp::Ge), (Accum::Max, CompareOp::Lt)),
            false => ((Accum::Max, CompareOp::Le), (Accum::Min, CompareOp::Gt)),
        };
        for (end, (accum, compare)) in ends.iter_mut().zip([first, last]) {
            if !self.varies(*end) {
                continue;
            }
            let all = self.snapshot(*end, out);
            let each = self.each(all);
            *end = self.number(each, accum, out);
            let count = self.program().get(var);
            let inside = self.program().exprs.compare(compare, count, each);
            mask = Some(self.both(mask, inside));
        }
        let [lo, hi] = ends;
        let mut leaves = false;
        leaving(&self.r.program, body, &IndexSet::new(), &mut |on| {
            leaves |= on.iter().any(|b| self.places.contains_key(b));
        });
        let body = match leaves {
            false => {
                let in_loop = None;
                self.block(body, At { mask, in_loop })?
            }
            true => {
                let inside = self.begin(at, out);
                // The counter's end is checked in each iteration.
                let own = (mask != at.mask).then_some(mask).flatten();
                self.turn(inside, own, body)?
            }
        };
        out.push(Stmt::Loop {
            var,
            lo,
            hi,
            step,
            body,
        });
        Ok(())
    }

    /// Everyone for whom a loop is done is in it at first.
    fn begin(&mut self, at: At, out: &mut Vec<Stmt>) -> InLoop {
        let n = self.n;
        let [alive, going] = [(); 2].map(|()| self.program().temporary(ScalarType::U1, &[n]));
        let all = self.program().exprs.constant(Scalar::bool(true));
        let first = at.mask.unwrap_or(all);
        out.push(self.fill(alive, first));
        InLoop { alive, going }
    }

    /// One turn of a loop that some leave before others.
    fn turn(&mut self, inside: InLoop, mask: Option<Expr>, body: &[Stmt]) -> Recorded<Vec<Stmt>> {
        let alive = self.each(inside.alive);
        let first = self.both(mask, alive);
        let mut out = vec![self.fill(inside.going, first)];
        let at = At {
            mask: Some(self.each(inside.going)),
            in_loop: Some(inside),
        };
        out.extend(self.block(body, at)?);
        let any = self.number(alive, Accum::Or, &mut out);
        let none = self.program().exprs.unary(UnaryOp::Not, any);
        out.push(Stmt::If(none, vec![Stmt::Break], Vec::new()));
        Ok(out)
    }

    /// The active batch elements leave a loop, or its iteration.
    pub(super) fn leave(&mut self, inside: InLoop, for_ever: bool, at: At, out: &mut Vec<Stmt>) {
        // Which elements leave is computed before any has left.
        let who = at.mask.expect("a loop that some leave has a mask");
        let n = self.n;
        let leavers = self.program().temporary(ScalarType::U1, &[n]);
        out.push(self.fill(leavers, who));
        let leavers = self.each(leavers);
        let stays = self.program().exprs.unary(UnaryOp::Not, leavers);
        let both = [inside.going, inside.alive];
        for target in both.into_iter().take(1 + usize::from(for_ever)) {
            let old = self.each(target);
            let new = self.both(Some(old), stays);
            out.push(self.fill(target, new));
        }
    }
}
