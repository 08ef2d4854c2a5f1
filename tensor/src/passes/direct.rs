//! A product whose right factor is read in place.
//!
//! ```text
//! for [n, m, y, x, c, k] { t[i0, i1, i2, i3] add init = mul(w[i1, i4, i5], a[i0, i4, i2, i3 + i5]) }
//! ```
//! becomes
//! ```text
//! for [m / 8, c, k] { loop r in 0, 8 { p[i0, i1, i2, r] = w[i0 * 8 + r, i1, i2] } }
//! for [n, y, x / 16, m / 8, 16] {
//!     j = min(i2 * 16, x - 16) + i4
//!     x0 = 0; ..; x7 = 0
//!     loop c { loop k { v = a[i0, c, i1, j + k]; x0 += p[i3, c, k, 0] * v; ..; x7 += p[i3, c, k, 7] * v } }
//!     t[i0, i3 * 8, i1, j] = x0; ..; t[i0, i3 * 8 + 7, i1, j] = x7
//! }
//! ```
//! The windows of a convolution overlap: as a matrix they are many times as large as the image. Where neighbours along the
//! last axis of the result read neighbours of the image, they are the lanes of a vector, and no such matrix is made.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::BinaryOp;
use indexmap::IndexMap;

use super::factors::{Epilogue, Factors, at, stores_at, unravelled};
use super::reductions::CHAIN;
use super::staged::Staged;
use super::tiles::{element_of, is_below, nearest};
use crate::ir::{Buffer, Expr, ExprDef, For, Outside, Program, Stmt, Store, Touched, Var};

/// Rows of a tile: so many sums are not waited for, and so many fit into registers.
const ROWS: std::ops::RangeInclusive<u64> = 8..=14;
/// Lanes of a tile: as many as the widest vector has, and twice as many where few rows would wait for their sums.
const LANES: u64 = 16;
const FEW_SUMS: u64 = 6;
/// With fewer neighbours, most lanes are idle.
const FEWEST_LANES: u64 = 6;
/// A factor that more than this many rows read is copied in the order of its reads, unless it consists of windows.
const FEW_ROWS: u64 = 64;

/// With fewer rows, what is read in lanes is used too seldom.
const FEWEST_ROWS: u64 = 3;
/// With fewer inner indices, a tile's stores cost more than its sums.
const FEWEST_INNER: u64 = 8;

/// Whether this is faster than loops are, with so many products of elements or more.
pub(super) fn pays(program: &Program, factors: &Factors, many: u64) -> bool {
    let extents = factors.inner.iter();
    let extents = extents.map(|&k| {
        program
            .const_dim(factors.domain[k as usize])
            .unwrap_or(many)
    });
    let inner = extents.fold(1, u64::saturating_mul);
    let others = [&factors.batch, &factors.rows, &factors.columns].into_iter();
    let others = others
        .flatten()
        .map(|&k| program.const_dim(factors.domain[k as usize]).unwrap_or(1));
    let all = others.fold(inner, u64::saturating_mul);
    let Some((_, direct, _)) = Direct::of(program, factors) else {
        return false;
    };
    let copy = direct.all_rows.saturating_mul(inner);
    let enough = direct.all_rows >= FEWEST_ROWS && inner >= FEWEST_INNER.min(many);
    enough && all >= many && copy < 1 << 28
}

/// The statements that make a product, and what a `for` makes of it, if one of its factors can be read in lanes.
pub(super) fn run(
    program: &mut Program,
    factors: &Factors,
    epilogue: Option<Epilogue<'_>>,
) -> Option<Vec<Stmt>> {
    let (mut factors, direct, staged) = Direct::of(program, factors)?;
    if direct.stores_twice() && epilogue.is_some_and(|(all, _)| changes_itself(program, all)) {
        return None;
    }
    let mut out = Vec::new();
    factors.operands[1] = staged.value(program, &factors, &mut out);
    factors.masks[1] = None;
    let left = direct.copied(program, &factors, &mut out);
    out.push(direct.all(program, &factors, left, epilogue));
    Some(out)
}

/// How a product is made.
struct Direct {
    /// The axis whose neighbours are lanes, and its size.
    lane: u32,
    n_lanes: u64,
    /// Lanes of a tile.
    length: u64,
    /// The axes of columns besides.
    others: Vec<u32>,
    /// All rows, and those of a tile.
    all_rows: u64,
    n_rows: u64,
    /// Loops over so many of the inner axes add up sums of their own.
    n_outer: usize,
}

impl Direct {
    /// The factors, the one that is read in lanes the right one.
    fn of(program: &Program, factors: &Factors) -> Option<(Factors, Self, Staged)> {
        let ExprDef::Axis(lane) = program.exprs[*factors.store.index.last()?] else {
            return None;
        };
        let mut factors = factors.clone();
        if factors.rows.contains(&lane) {
            std::mem::swap(&mut factors.rows, &mut factors.columns);
            factors.operands.swap(0, 1);
            factors.masks.swap(0, 1);
        }
        if !factors.columns.contains(&lane) {
            return None;
        }
        let n_lanes = program.const_dim(factors.domain[lane as usize])?;
        let mut rows = factors.rows.iter();
        let all_rows = rows.try_fold(1_u64, |n, &k| {
            Some(n * program.const_dim(factors.domain[k as usize])?)
        })?;
        if n_lanes < FEWEST_LANES {
            return None;
        }
        let n_rows = rows_of_a_tile(all_rows);
        let length = if n_rows > FEW_SUMS { LANES } else { 2 * LANES };
        let staged = Staged::of(program, &factors, lane, length)?;
        if !staged.is_window && all_rows > FEW_ROWS {
            return None;
        }
        let others = factors.columns.iter().copied().filter(|&k| k != lane);
        let direct = Self {
            lane,
            n_lanes,
            others: others.collect(),
            all_rows,
            n_rows,
            length,
            n_outer: outer_loops(program, &factors)?,
        };
        Some((factors, direct, staged))
    }

    /// The left factor, copied into the order in which tiles read it: `[batch.., tiles, inner.., rows of a tile]`.
    fn copied(&self, program: &mut Program, factors: &Factors, out: &mut Vec<Stmt>) -> Buffer {
        let value = factors.operand(program, 0);
        let n_batch = factors.batch.len();
        let mut domain = factors.dims(&factors.batch);
        domain.push(program.size(self.all_rows.div_ceil(self.n_rows)));
        domain.extend(factors.dims(&factors.inner));
        let mut shape = domain.clone();
        shape.push(program.size(self.n_rows));
        let buffer = program.temporary(program.exprs.ty(value), &shape);
        let axes = program.axes(domain.len());
        let counter = program.var(ScalarType::I32);
        let within = program.get(counter);
        let row = element_of(program, axes[n_batch], self.n_rows, within);
        // What is behind the last row is computed, and read by nobody.
        let row = match self.rows_are_whole() {
            true => row,
            false => {
                let n = program.exprs.i32(self.all_rows as i32);
                nearest(program, row, n)
            }
        };
        let mut places = self.rows_at(program, factors, row);
        places.extend(factors.batch.iter().copied().zip(axes.iter().copied()));
        let inner = axes[n_batch + 1..].iter().copied();
        places.extend(factors.inner.iter().copied().zip(inner));
        let store = Store {
            target: buffer,
            index: [&axes[..], &[within]].concat(),
            value: at(program, value, &places),
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        let body = vec![Stmt::Store(store)];
        let all = [0, self.n_rows as i32].map(|n| program.exprs.i32(n));
        out.push(Stmt::For(For {
            domain,
            cells: None,
            body: vec![counted(counter, all, body)],
            span: factors.span,
        }));
        buffer
    }

    /// Whether lanes of two tiles store to one element.
    fn stores_twice(&self) -> bool {
        self.n_lanes > self.length && !self.n_lanes.is_multiple_of(self.length)
    }

    fn rows_are_whole(&self) -> bool {
        self.all_rows.is_multiple_of(self.n_rows)
    }

    /// The indices along the axes of rows that a row counts.
    fn rows_at(&self, program: &mut Program, factors: &Factors, row: Expr) -> IndexMap<u32, Expr> {
        let indices = unravelled(program, row, &factors.dims(&factors.rows));
        factors.rows.iter().copied().zip(indices).collect()
    }

    /// The kernel over all tiles.
    fn all(
        &self,
        program: &mut Program,
        factors: &Factors,
        left: Buffer,
        epilogue: Option<Epilogue<'_>>,
    ) -> Stmt {
        let outer = [&factors.batch[..], &self.others].concat();
        let mut domain = factors.dims(&outer);
        domain.push(program.size(self.n_lanes.div_ceil(self.length)));
        domain.push(program.size(self.all_rows.div_ceil(self.n_rows)));
        domain.push(program.size(self.length));
        let axes = program.axes(domain.len());
        let &[part, tile, lane] = &axes[outer.len()..] else {
            unreachable!("three were pushed");
        };
        let zero = program.exprs.i32(0);
        let start = element_of(program, part, self.length, zero);
        // The lanes of the last part end at the last index: some elements are computed twice.
        let last = program
            .exprs
            .i32(self.n_lanes.saturating_sub(self.length) as i32);
        let first = match self.n_lanes.is_multiple_of(self.length) {
            true => start,
            false => program.exprs.binary(BinaryOp::Min, start, last),
        };
        let column = program.exprs.binary(BinaryOp::Add, first, lane);
        let mut places: IndexMap<u32, Expr> = IndexMap::new();
        places.extend(outer.iter().copied().zip(axes.iter().copied()));
        places.insert(self.lane, column);
        let ty = program.buffers[factors.store.target].ty;
        let sums: Vec<Var> = (0..self.n_rows).map(|_| program.var(ty)).collect();
        let zero = program.exprs.constant(Scalar::zero(ty));
        let mut body: Vec<Stmt> = sums.iter().map(|&x| Stmt::Set(x, zero)).collect();
        let tile_at = [&axes[..factors.batch.len()], &[tile]].concat();
        let mut point = Point {
            factors,
            left,
            places: places.clone(),
            at: tile_at,
        };
        body.push(point.loops(program, &factors.inner, self.n_outer, &sums));
        let mut stores = Vec::new();
        for (r, &sum) in sums.iter().enumerate() {
            let r = program.exprs.i32(r as i32);
            let row = element_of(program, tile, self.n_rows, r);
            let mut places = places.clone();
            places.extend(self.rows_at(program, factors, row));
            let value = program.get(sum);
            let own = stores_at(program, factors, &places, value, epilogue);
            match self.rows_are_whole() {
                true => stores.extend(own),
                false => {
                    let n = program.size(self.all_rows);
                    let inside = is_below(program, row, n);
                    stores.push(Stmt::If(inside, own, Vec::new()));
                }
            }
        }
        if self.n_lanes < self.length {
            let end = program.size(self.n_lanes);
            let inside = is_below(program, column, end);
            body.push(Stmt::If(inside, stores, Vec::new()));
        } else {
            body.extend(stores);
        }
        Stmt::For(For {
            domain,
            cells: None,
            body,
            span: factors.span,
        })
    }
}

/// The reads of a tile.
struct Point<'f> {
    factors: &'f Factors,
    left: Buffer,
    /// The index along each axis of the product so far.
    places: IndexMap<u32, Expr>,
    /// Those of the copy of the left factor so far.
    at: Vec<Expr>,
}

impl Point<'_> {
    /// The loops over inner axes, of which so many have sums of their own inside.
    fn loops(&mut self, program: &mut Program, axes: &[u32], n_outer: usize, sums: &[Var]) -> Stmt {
        let Some((&axis, rest)) = axes.split_first() else {
            unreachable!("a product has inner axes");
        };
        let counter = program.var(ScalarType::I32);
        let k = program.get(counter);
        self.places.insert(axis, k);
        self.at.push(k);
        let body = match (rest, n_outer) {
            ([], _) => self.terms(program, sums),
            (_, 1) => {
                let ty = program.vars[sums[0]];
                let zero = program.exprs.constant(Scalar::zero(ty));
                let own: Vec<Var> = sums.iter().map(|_| program.var(ty)).collect();
                let mut body: Vec<Stmt> = own.iter().map(|&x| Stmt::Set(x, zero)).collect();
                body.push(self.loops(program, rest, 0, &own));
                for (&sum, &more) in sums.iter().zip(&own) {
                    let more = program.get(more);
                    body.push(added(program, sum, more));
                }
                body
            }
            _ => vec![self.loops(program, rest, n_outer.saturating_sub(1), sums)],
        };
        self.at.pop();
        let all = [
            program.exprs.i32(0),
            program.extent(self.factors.domain[axis as usize]),
        ];
        counted(counter, all, body)
    }

    fn terms(&self, program: &mut Program, sums: &[Var]) -> Vec<Stmt> {
        let right = at(program, self.factors.operands[1], &self.places);
        let mut body = Vec::new();
        for (r, &sum) in sums.iter().enumerate() {
            let index = [&self.at[..], &[program.exprs.i32(r as i32)]].concat();
            let left = program.load(self.left, index, Outside::Never);
            let term = program.exprs.binary(BinaryOp::Mul, left, right);
            body.push(added(program, sum, term));
        }
        body
    }
}

/// Whether a `for` reads what it stores to: doing it twice is not the same then.
fn changes_itself(program: &Program, all: &For) -> bool {
    let touched = Touched::at_points(program, all);
    touched.writes.iter().any(|b| touched.reads.contains(b))
}

fn added(program: &mut Program, sum: Var, more: Expr) -> Stmt {
    let so_far = program.get(sum);
    Stmt::Set(sum, program.exprs.binary(BinaryOp::Add, so_far, more))
}

fn counted(var: Var, [lo, hi]: [Expr; 2], body: Vec<Stmt>) -> Stmt {
    Stmt::Loop {
        var,
        lo,
        hi,
        step: 1,
        body,
    }
}

fn rows_of_a_tile(n: u64) -> u64 {
    let fitting = ROWS.rev();
    fitting
        .min_by_key(|&r| n.div_ceil(r) * r)
        .map_or(n, |r| r.min(n))
}

/// Over how many of the inner axes sums of the others are added up, so that no chain is too long.
fn outer_loops(program: &Program, factors: &Factors) -> Option<usize> {
    let extents = factors.inner.iter();
    let extents = extents.map(|&k| {
        let size = program.size_of(factors.domain[k as usize]);
        size.map(|n| n.about)
    });
    let Some(extents) = extents.collect::<Option<Vec<u64>>>() else {
        return Some(0);
    };
    let n = |of: &[u64]| of.iter().copied().fold(1, u64::saturating_mul);
    if n(&extents) < super::tiles::LONG {
        return Some(0);
    }
    (1..extents.len()).find(|&k| n(&extents[k..]) <= CHAIN && n(&extents[..k]) <= CHAIN)
}
