//! Adjoints through a `for`: through each store that its points do.

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};
use indexmap::IndexSet;

use super::{Reverse, refused};
use crate::ir::{
    Accum, Buffer, Dim, DimDef, Expr, ExprDef, Exprs, For, Outside, Program, Stmt, Store, Touched,
    is_whole, targets, visit_host,
};
use crate::record::Recorded;

/// A store, and the points that do it.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) domain: Vec<Dim>,
    /// Which of the points do it, if not all.
    pub(super) cond: Option<Expr>,
    /// Whether the points along the first axis come one after the other.
    is_ordered: bool,
    pub(super) store: Store,
}

impl Reverse<'_> {
    pub(super) fn points(&mut self, all: &For) -> Recorded<()> {
        if all.cells.is_some() {
            return refused("a value is computed at the active cells of a field only");
        }
        let span = std::mem::replace(&mut self.recording.span, all.span);
        let mut points = Vec::new();
        self.flatten(&all.domain, None, false, &all.body, &mut points)?;
        for (k, point) in points.iter().enumerate() {
            let before = points[..k].iter().map(|p| p.store.target);
            let touched = Touched::by(&self.recording.program, &[Stmt::Store(point.store.clone())]);
            if before.into_iter().any(|b| touched.reads.contains(&b)) {
                return refused("one statement reads what it has stored before");
            }
        }
        for mut point in points.into_iter().rev() {
            let mut all = point.store.index.clone();
            all.push(point.store.value);
            all.extend(point.cond);
            let mut all = self.now(&all);
            point.cond = point.cond.and_then(|_| all.pop());
            point.store.value = all.pop().expect("there is a value");
            point.store.index = all;
            self.point(&point)?;
        }
        self.recording.span = span;
        Ok(())
    }

    /// The stores of statements at points, with the domain and the condition of each.
    fn flatten(
        &mut self,
        domain: &[Dim],
        cond: Option<Expr>,
        is_ordered: bool,
        body: &[Stmt],
        out: &mut Vec<Point>,
    ) -> Recorded<()> {
        for stmt in body {
            match stmt {
                Stmt::Store(store) => out.push(Point {
                    domain: domain.to_vec(),
                    cond,
                    is_ordered,
                    store: store.clone(),
                }),
                Stmt::If(own, then, otherwise) => {
                    let exprs = &mut self.recording.program.exprs;
                    let not = exprs.unary(UnaryOp::Not, *own);
                    for (own, body) in [(*own, then), (not, otherwise)] {
                        let exprs = &mut self.recording.program.exprs;
                        let both = cond.map_or(own, |c| exprs.binary(BinaryOp::And, c, own));
                        self.flatten(domain, Some(both), is_ordered, body, out)?;
                    }
                }
                &Stmt::Loop {
                    var,
                    lo,
                    hi,
                    step: 1,
                    ref body,
                } if !is_ordered && out.is_empty() && cond.is_none() => {
                    let program = &mut self.recording.program;
                    if program
                        .exprs
                        .as_const(lo)
                        .is_none_or(|lo| lo.as_i128() != 0)
                    {
                        return refused("an operation whose points have loops");
                    }
                    let mut is_known = true;
                    program.exprs.visit([hi], &mut |e| {
                        is_known &= !matches!(
                            program.exprs[e],
                            ExprDef::Load { .. } | ExprDef::Var(..) | ExprDef::Axis(_)
                        );
                    });
                    if !is_known {
                        return refused("an operation whose points have loops");
                    }
                    let extent = program.dim(DimDef::Value(hi));
                    let domain = [&[extent][..], domain].concat();
                    // The loop's counter is the first axis.
                    let mut done = LookupMap::default();
                    let mut moved = |exprs: &mut Exprs, e: Expr| {
                        exprs.replace(e, &mut done, &mut |exprs, def| match *def {
                            ExprDef::Axis(k) => Some(exprs.axis(k + 1)),
                            ExprDef::Var(v, _) if v == var => Some(exprs.axis(0)),
                            _ => None,
                        })
                    };
                    let exprs = &mut self.recording.program.exprs;
                    let body = moved_body(exprs, body, &mut moved);
                    self.flatten(&domain, None, true, &body, out)?;
                }
                _ => return refused("an operation whose points have loops"),
            }
        }
        Ok(())
    }

    fn point(&mut self, point: &Point) -> Recorded<()> {
        let store = &point.store;
        let Some(adjoint) = self.adjoint(store.target)? else {
            return Ok(());
        };
        if self.wanted.contains(&store.target) {
            self.found.entry(store.target).or_insert(adjoint);
        }
        let (at, outside) = (store.index.clone(), store.outside);
        let stored = self.recording.program.load(adjoint, at, outside);
        let mut value = match store.accum {
            None => Some(stored),
            Some(accum) => self.through_accumulation(point, accum, stored)?,
        };
        if store.init {
            self.adjoints.shift_remove(&store.target);
        } else if store.accum.is_none() {
            let for_all = For {
                domain: point.domain.clone(),
                cells: None,
                body: Vec::new(),
                span: self.recording.span,
            };
            let is_whole = point.cond.is_none()
                && !point.is_ordered
                && is_whole(&self.recording.program, &for_all, store);
            if is_whole {
                self.adjoints.shift_remove(&store.target);
            } else {
                let wins = self.overwritten(point, adjoint)?;
                value = self.masked(value, wins);
            }
        }
        value = self.masked(value, point.cond);
        match value {
            Some(value) => self.through(&point.domain, store.value, value),
            None => Ok(()),
        }
    }

    fn masked(&mut self, value: Option<Expr>, cond: Option<Expr>) -> Option<Expr> {
        let (Some(value), Some(cond)) = (value, cond) else {
            return value;
        };
        let zero = self
            .recording
            .number(self.recording.program.exprs.ty(value), 0.0);
        Some(self.recording.program.exprs.select(cond, value, zero))
    }

    /// The elements that a statement stores to do not depend on their old values: their adjoint is zero before it. Where
    /// points that come one after the other may store to one element: whether a point is the last one that does.
    fn overwritten(&mut self, point: &Point, adjoint: Buffer) -> Recorded<Option<Expr>> {
        let store = &point.store;
        if !point.is_ordered && !self.is_injective(&point.domain, store) {
            return refused(
                "several points may store to one element, and which of them stores last is not determined",
            );
        }
        let ty = self.recording.ty(store.target);
        let shape = self.recording.shape(store.target);
        let [none, zero] = [-1.0, 0.0].map(|n| self.recording.number(ScalarType::I32, n));
        let cond = point.cond;
        let (index, inside) = self.brought_inside(store.target, &store.index, store.outside);
        let exprs = &mut self.recording.program.exprs;
        let mut turn = match point.is_ordered {
            true => exprs.axis(0),
            false => zero,
        };
        for cond in [cond, inside].into_iter().flatten() {
            turn = exprs.select(cond, turn, none);
        }
        let last =
            self.recording
                .gather_into(&point.domain, shape.clone(), index, Accum::Max, turn);
        let [last_here, old] = [last, adjoint].map(|b| self.recording.at_point(b, shape.len()));
        let no_part = self.recording.number(ty, 0.0);
        let exprs = &mut self.recording.program.exprs;
        let is_stored = exprs.compare(CompareOp::Ge, last_here, zero);
        let left = exprs.select(is_stored, no_part, old);
        let left = self.recording.map(&shape, left);
        self.adjoints.insert(store.target, vec![left]);
        if !point.is_ordered {
            return Ok(None);
        }
        let program = &mut self.recording.program;
        let outside = match store.outside {
            // The index has been looked at when it was stored to.
            Outside::Error(_) => Outside::Clamp,
            other => other,
        };
        let winner = program.load(last, store.index.clone(), outside);
        let own = program.exprs.axis(0);
        Ok(Some(program.exprs.compare(CompareOp::Eq, winner, own)))
    }

    /// Whether no two points store to one element: each axis of the domain is in one index, which is a factor times it plus
    /// what is the same for all points.
    pub(super) fn is_injective(&mut self, domain: &[Dim], store: &Store) -> bool {
        if self.indices.is_none() {
            let mut indices = LookupMap::default();
            note_indices(self.program(), &self.program().body, &mut indices);
            for body in self.versions.bodies() {
                note_indices(self.program(), body, &mut indices);
            }
            self.indices = Some(indices);
        }
        let own = store.index.iter().filter_map(|&e| self.axis_of(e));
        let own: IndexSet<u32> = own.collect();
        let repeats = matches!(store.outside, Outside::Clamp | Outside::Wrap);
        let single = |k: &u32| self.program().const_dim(domain[*k as usize]) == Some(1);
        let rest = (0..domain.len() as u32).filter(|k| !own.contains(k));
        !repeats && rest.into_iter().all(|k| single(&k))
    }

    /// The one axis by which an index differs from point to point, if it is other at each place along it.
    fn axis_of(&self, mut e: Expr) -> Option<u32> {
        let exprs = &self.program().exprs;
        let is_fixed = |e: Expr| {
            let mut is_fixed = true;
            exprs.visit([e], &mut |x| {
                is_fixed &= !matches!(exprs[x], ExprDef::Axis(_))
            });
            is_fixed
        };
        loop {
            e = match &exprs[e] {
                ExprDef::Axis(k) => return Some(*k),
                &ExprDef::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
                    match (is_fixed(a), is_fixed(b)) {
                        (false, true) => a,
                        (true, false) => b,
                        _ => return None,
                    }
                }
                &ExprDef::Binary(BinaryOp::Mul, a, b) => {
                    let is_factor = |c| exprs.as_const(c).is_some_and(|c| c.as_i128() != 0);
                    match (is_factor(a), is_factor(b)) {
                        (false, true) => a,
                        (true, false) => b,
                        _ => return None,
                    }
                }
                ExprDef::Load { buffer, index, .. } => {
                    // What is loaded is other at each place if it was made so.
                    let value = self.indices.as_ref()?.get(buffer)?;
                    let made = self.axis_of((*value)?)?;
                    index[made as usize]
                }
                _ => return None,
            };
        }
    }
}

/// Notes the values of buffers of indices that are made at their own points, once.
pub(super) fn note_indices(
    program: &Program,
    body: &[Stmt],
    indices: &mut LookupMap<Buffer, Option<Expr>>,
) {
    visit_host(body, &mut |stmt| {
        let mut note = |b: Buffer, value: Option<Expr>| {
            if program.buffers[b].ty == ScalarType::I32 {
                let is_same = indices.get(&b).is_none_or(|known| *known == value);
                indices.insert(b, value.filter(|_| is_same));
            }
        };
        match stmt {
            Stmt::For(all) => match &all.body[..] {
                [Stmt::Store(store)] if store.accum.is_none() && is_whole(program, all, store) => {
                    note(store.target, Some(store.value));
                }
                _ => targets(stmt, &mut |b| note(b, None)),
            },
            Stmt::Call(call) => call.outputs.iter().for_each(|&b| note(b, None)),
            _ => {}
        }
    });
}

/// Stores and branches with other expressions.
fn moved_body(
    exprs: &mut Exprs,
    body: &[Stmt],
    moved: &mut dyn FnMut(&mut Exprs, Expr) -> Expr,
) -> Vec<Stmt> {
    let mut out = Vec::new();
    for stmt in body {
        out.push(match stmt {
            Stmt::Store(store) => Stmt::Store(Store {
                index: store.index.iter().map(|&e| moved(exprs, e)).collect(),
                value: moved(exprs, store.value),
                ..store.clone()
            }),
            Stmt::If(cond, then, otherwise) => {
                let cond = moved(exprs, *cond);
                let then = moved_body(exprs, then, moved);
                Stmt::If(cond, then, moved_body(exprs, otherwise, moved))
            }
            // What is refused.
            other => other.clone(),
        });
    }
    out
}
