//! Copies of the factor that a product reads in lanes, laid out contiguously and without out-of-bounds indices.
//!
//! ```text
//! a[i0, i1 - i2, i3 * 2 + i4], which counts where 0 <= i1 - i2 < 16
//! ```
//! reads a copy, in which rows of zeros stand at the ends, and columns in the order of their remainders:
//! ```text
//! for [n, 18, 2, 8] { s[i0, i1, i2, i3] = a[i0, i1 - 2, i3 * 2 + i2] zero }
//! s[i0, i1 - i2 + 2, i4 % 2, i3 + i4 / 2]
//! ```
//! Where that is not needed, the buffer itself is read.

use aerogel_base::hash::LookupMap;
use aerogel_ir::{BinaryOp, CompareOp};
use indexmap::IndexSet;

use super::affine::Affine;
use super::conjuncts;
use super::factors::Factors;
use crate::ir::{Dim, Expr, ExprDef, For, Outside, Program, Stmt, Store};

/// How the right factor of a product is read.
pub(super) struct Staged {
    /// Whether one index has several axes.
    pub(super) is_window: bool,
    /// The copied values, if the factor cannot be read in place.
    copied: Option<Copied>,
}

struct Copied {
    load: Expr,
    lane: u32,
    /// How far apart neighbours lie.
    stride: i64,
    reaches: Vec<Reach>,
}

/// The indices along an axis of a buffer that are read.
struct Reach {
    dim: Dim,
    map: Affine,
    /// The first and the last one; nothing if they are those of the buffer.
    ends: Option<[i64; 2]>,
    is_inside: bool,
}

impl Staged {
    /// How the right factor is read in the lanes of an axis, if it can be.
    pub(super) fn of(
        program: &Program,
        factors: &Factors,
        lane: u32,
        n_lanes: u64,
    ) -> Option<Self> {
        let idle = idle(program, factors, lane, n_lanes);
        let exprs = &program.exprs;
        let value = factors.operands[1];
        let mut loads = Vec::new();
        exprs.visit([value], &mut |e| {
            if matches!(exprs[e], ExprDef::Load { .. }) {
                loads.push(e);
            }
        });
        let (mut is_window, mut is_plain, mut reads) = (false, factors.masks[1].is_none(), false);
        for &load in &loads {
            let ExprDef::Load { index, outside, .. } = &exprs[load] else {
                continue;
            };
            let maps = index.iter().map(|&i| Affine::of(exprs, i));
            let maps: Vec<Affine> = maps.collect::<Option<_>>()?;
            is_window |= maps.iter().any(|map| map.terms.len() > 1);
            let mut along = maps.iter().rev().map(|map| map.factor(lane));
            let last = along.next().unwrap_or(0);
            if along.any(|c| c != 0) || last < 0 {
                return None;
            }
            reads |= last > 0;
            is_plain &= *outside == Outside::Never && last <= 1 && idle == 0;
        }
        let copied = match (is_plain, &loads[..]) {
            (true, _) => None,
            (false, &[load]) => Copied::of(program, factors, [lane, idle], load)?,
            _ => return None,
        };
        reads.then_some(Self { is_window, copied })
    }

    /// The factor as it is read, after the statement that copies it.
    pub(super) fn value(
        self,
        program: &mut Program,
        factors: &Factors,
        out: &mut Vec<Stmt>,
    ) -> Expr {
        let value = factors.operands[1];
        let Some(copied) = self.copied else {
            return value;
        };
        let old = program.exprs[copied.load].clone();
        let new = copied.make(program, factors, out);
        let mut done = LookupMap::default();
        program
            .exprs
            .replace(value, &mut done, &mut |_, def| (*def == old).then_some(new))
    }
}

impl Copied {
    /// How a load is copied; nothing where the buffer is as good.
    fn of(
        program: &Program,
        factors: &Factors,
        [lane, idle]: [u32; 2],
        load: Expr,
    ) -> Option<Option<Self>> {
        let ExprDef::Load {
            buffer,
            index,
            outside,
            ..
        } = &program.exprs[load]
        else {
            return None;
        };
        let masks = factors.masks[1];
        let mut conditions = masks.map_or_else(IndexSet::new, |m| conjuncts(&program.exprs, m));
        let mut reaches = Vec::new();
        for (&e, &dim) in index.iter().zip(&program.buffers[*buffer].shape) {
            let reach = Reach::of(program, factors, e, dim)?;
            // Otherwise indices are inside for a reason that cannot be seen.
            if !reach.is_met(program, e, &mut conditions) && *outside != Outside::Zero {
                return None;
            }
            reaches.push(reach);
        }
        let last = reaches.last_mut()?;
        let stride = last.map.factor(lane);
        last.lengthen(program, stride * i64::from(idle));
        if !conditions.is_empty() || !matches!(outside, Outside::Never | Outside::Zero) {
            return None;
        }
        let is_plain = stride == 1
            && *outside == Outside::Never
            && reaches.iter().all(|reach| reach.is_inside);
        Some((!is_plain).then_some(Self {
            load,
            lane,
            stride,
            reaches,
        }))
    }

    fn make(self, program: &mut Program, factors: &Factors, out: &mut Vec<Stmt>) -> Expr {
        let ExprDef::Load {
            buffer, ref index, ..
        } = program.exprs[self.load]
        else {
            unreachable!("it is a load");
        };
        let index = index.clone();
        let n_before = self.reaches.len() - 1;
        let mut domain = Vec::new();
        for reach in &self.reaches {
            let length = reach.ends.map(|[first, last]| (last - first + 1) as u64);
            domain.push(length.map_or(reach.dim, |n| program.size(n)));
        }
        if self.stride > 1 {
            let [first, last] = self.reaches[n_before].ends.expect("it is known");
            let length = (last - first) / self.stride + 1;
            domain[n_before] = program.size(self.stride as u64);
            domain.push(program.size(length as u64));
        }
        // Where an element comes from.
        let axes = program.axes(domain.len());
        let mut from = axes[..n_before].to_vec();
        from.push(match self.stride {
            1 => axes[n_before],
            stride => {
                let stride = program.exprs.i32(stride as i32);
                let exprs = &mut program.exprs;
                let far = exprs.binary(BinaryOp::Mul, axes[n_before + 1], stride);
                exprs.binary(BinaryOp::Add, far, axes[n_before])
            }
        });
        for (e, reach) in from.iter_mut().zip(&self.reaches) {
            let first = program.exprs.i32(reach.first() as i32);
            *e = program.exprs.binary(BinaryOp::Add, *e, first);
        }
        let target = program.temporary(program.buffers[buffer].ty, &domain);
        let value = program.load(buffer, from, Outside::Zero);
        out.push(Stmt::For(For {
            domain,
            cells: None,
            body: vec![Stmt::Store(Store {
                target,
                index: axes,
                value,
                accum: None,
                init: false,
                outside: Outside::Never,
            })],
            span: factors.span,
        }));
        // Where a tile reads it.
        let mut at = Vec::new();
        for (&e, reach) in index.iter().zip(&self.reaches) {
            let first = program.exprs.i32(reach.first() as i32);
            at.push(program.exprs.binary(BinaryOp::Sub, e, first));
        }
        if self.stride > 1 {
            at.pop();
            let reach = &self.reaches[n_before];
            let mut rest = program.exprs.i32((reach.map.offset - reach.first()) as i32);
            let exprs = &mut program.exprs;
            for &(k, c) in reach.map.terms.iter().filter(|t| t.0 != self.lane) {
                let [axis, c] = [exprs.axis(k), exprs.i32(c as i32)];
                let term = exprs.binary(BinaryOp::Mul, axis, c);
                rest = exprs.binary(BinaryOp::Add, term, rest);
            }
            let stride = exprs.i32(self.stride as i32);
            at.push(exprs.binary(BinaryOp::Rem, rest, stride));
            let far = exprs.binary(BinaryOp::Div, rest, stride);
            let lane = exprs.axis(self.lane);
            at.push(exprs.binary(BinaryOp::Add, lane, far));
        }
        program.load(target, at, Outside::Never)
    }
}

/// How many of the lanes are beyond the last index along an axis.
fn idle(program: &Program, factors: &Factors, lane: u32, n_lanes: u64) -> u32 {
    let n = program.const_dim(factors.domain[lane as usize]);
    n.map_or(0, |n| n_lanes.saturating_sub(n) as u32)
}

impl Reach {
    fn of(program: &Program, factors: &Factors, e: Expr, dim: Dim) -> Option<Self> {
        let map = Affine::of(&program.exprs, e)?;
        if let ExprDef::Axis(k) = program.exprs[e]
            && factors.domain[k as usize] == dim
            && program.const_dim(dim).is_none()
        {
            return Some(Self {
                dim,
                map,
                ends: None,
                is_inside: true,
            });
        }
        let (mut first, mut last) = (map.offset, map.offset);
        for &(k, c) in &map.terms {
            let n = program.const_dim(factors.domain[k as usize])?;
            let far = c.checked_mul(i64::try_from(n).ok()?.checked_sub(1)?)?;
            first = first.checked_add(far.min(0))?;
            last = last.checked_add(far.max(0))?;
        }
        let n = i64::try_from(program.const_dim(dim)?).ok()?;
        let bound = i64::from(i32::MAX) / 2;
        (-bound < first && first <= last && last < bound).then_some(Self {
            dim,
            map,
            ends: Some([first, last]),
            is_inside: first >= 0 && last < n,
        })
    }

    /// More of the indices are read, by lanes that store nothing.
    fn lengthen(&mut self, program: &Program, by: i64) {
        if let Some(ends) = &mut self.ends {
            ends[1] += by;
            let n = program.const_dim(self.dim);
            self.is_inside &= n.is_some_and(|n| ends[1] < n as i64);
        }
    }

    fn first(&self) -> i64 {
        self.ends.map_or(0, |ends| ends[0])
    }

    /// Whether conditions say that the index is inside, if it may be outside. Those are met by zeros.
    fn is_met(&self, program: &Program, e: Expr, conditions: &mut IndexSet<Expr>) -> bool {
        let exprs = &program.exprs;
        let n = program.const_dim(self.dim);
        let is = |b: Expr, n: Option<u64>| match exprs[b] {
            ExprDef::Const(c) => Some(c.as_i128()) == n.map(i128::from),
            ExprDef::Extent(dim) => n.is_none() && dim == self.dim,
            _ => false,
        };
        let mut ends = [false; 2];
        conditions.retain(|&cond| {
            let end = match exprs[cond] {
                ExprDef::Compare(CompareOp::Ge, a, b) if a == e && is(b, Some(0)) => 0,
                ExprDef::Compare(CompareOp::Lt, a, b) if a == e && is(b, n) => 1,
                _ => return true,
            };
            ends[end] = true;
            false
        });
        let [low, high] = self.ends.map_or([true; 2], |[first, last]| {
            [first >= 0, n.is_some_and(|n| last < n as i64)]
        });
        (low || ends[0]) && (high || ends[1])
    }
}
