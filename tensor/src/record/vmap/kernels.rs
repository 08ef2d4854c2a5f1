//! Kernels of the user's in a function that is vectorised over a batch: one launch for each element of the batch.
//!
//! ```text
//! kernel(a, b)        loop k in 0..n { a'[..] = A[k, ..]; b'[..] = B[k, ..]; kernel(a', b'); B[k, ..] = b'[..] }
//! ```

use aerogel_base::ScalarType;
use indexmap::IndexMap;

use super::{At, Mapping};
use crate::ir::{Buffer, Expr, Outside, Run, Stmt};
use crate::record::{RecordError, Recorded};

impl Mapping<'_> {
    pub(super) fn run(&mut self, run: &Run, at: At, out: &mut Vec<Stmt>) -> Recorded<()> {
        let def = self.r.program.regions[run.region].clone();
        let mut all = run.arrays.iter().chain(&run.results);
        if at.mask.is_none() && !all.any(|b| self.places.contains_key(b)) {
            out.push(Stmt::Run(run.clone()));
            return Ok(());
        }
        if !def.runner.as_ref().is_some_and(|r| r.is_repeatable()) {
            return Err(RecordError::Value(format!(
                "`vmap`: kernel `{}` draws random numbers or uses more than its arguments, so it cannot be launched for each \
                 element of the batch",
                def.name
            )));
        }
        let var = self.program().var(ScalarType::I32);
        let (k, lo) = (self.program().get(var), self.program().exprs.i32(0));
        let n = self.n;
        let hi = self.program().extent(n);
        let mut body = Vec::new();
        let mut own: IndexMap<Buffer, Buffer> = IndexMap::new();
        for &one in run.arrays.iter().chain(&run.results) {
            if self.places.contains_key(&one) && !own.contains_key(&one) {
                let (ty, shape) = (self.r.ty(one), self.r.shape(one));
                own.insert(one, self.program().temporary(ty, &shape));
            }
        }
        for &one in &run.arrays {
            if let Some(&own) = own.get(&one) {
                let value = self.one_at(one, k);
                body.push(self.fill(own, value));
            }
        }
        let moved = |b: &Buffer| own.get(b).copied().unwrap_or(*b);
        body.push(Stmt::Run(Run {
            region: run.region,
            arrays: run.arrays.iter().map(moved).collect(),
            results: run.results.iter().map(moved).collect(),
            span: run.span,
        }));
        let written = run.arrays.iter().zip(&def.writes);
        let written = written.filter_map(|(b, &writes)| writes.then_some(b));
        for one in written.chain(&run.results) {
            if let Some(&own) = own.get(one) {
                body.push(self.put_back(*one, own, k));
            }
        }
        if let Some(mask) = at.mask {
            body = self.if_taken(mask, k, body, out);
        }
        out.push(Stmt::Loop {
            var,
            lo,
            hi,
            step: 1,
            body,
        });
        Ok(())
    }

    /// The element of a buffer of one, at a point of its shape, for the element `k` of the batch.
    fn one_at(&mut self, one: Buffer, k: Expr) -> Expr {
        let index = self.index_at(one, k);
        let (all, _) = self.places[&one];
        self.program().load(all, index, Outside::Never)
    }

    fn index_at(&mut self, one: Buffer, k: Expr) -> Vec<Expr> {
        let rank = self.r.rank(one);
        let (_, axis) = self.places[&one];
        let mut index = self.program().axes(rank);
        index.insert(axis, k);
        index
    }

    /// `all[k, ..] = own[..]`
    fn put_back(&mut self, one: Buffer, own: Buffer, k: Expr) -> Stmt {
        let rank = self.r.rank(own);
        let value = self.r.at_point(own, rank);
        let mut store = self.whole(own, value);
        store.target = self.places[&one].0;
        store.index = self.index_at(one, k);
        let domain = self.r.shape(own);
        self.over(domain, vec![Stmt::Store(store)])
    }

    /// Statements for the elements of the batch where a mask holds.
    fn if_taken(&mut self, mask: Expr, k: Expr, body: Vec<Stmt>, out: &mut Vec<Stmt>) -> Vec<Stmt> {
        let n = self.n;
        let [of_all, taken] = [&[n][..], &[]].map(|s| self.program().temporary(ScalarType::U1, s));
        out.push(self.fill(of_all, mask));
        let value = self.program().load(of_all, vec![k], Outside::Never);
        let taken_now = self.fill(taken, value);
        let cond = self.program().load(taken, Vec::new(), Outside::Never);
        vec![taken_now, Stmt::If(cond, body, Vec::new())]
    }
}
