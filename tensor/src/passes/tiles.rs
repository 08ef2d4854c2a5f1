//! A product of matrices in tiles.
//!
//! ```text
//! for [n / 12, k] { loop r in 0, 12 { p[i0, i1, r] = a[i0 * 12 + r, i1] } }
//! for [m / 16, k] { loop r in 0, 16 { q[i0, i1, r] = b[i1, i0 * 16 + r] } }
//! for [n / 12 / 8, m / 16, 8, 16] {
//!     x0 = 0; ..; x11 = 0
//!     loop k { y = q[i1, k, i3]; x0 += p[i, k, 0] * y; ..; x11 += p[i, k, 11] * y }
//!     if inside { c[i * 12, i1 * 16 + i3] = x0; ..; c[i * 12 + 11, i1 * 16 + i3] = x11 }
//! }
//! ```
//! Each factor is copied into the order in which it is read. The sums of a tile stay in registers: points that are neighbours
//! along the last axis run in the lanes of a vector, and each has a row of tiles' sums. What a few rows of tiles
//! read of the left factor stays in the cache while all columns pass by.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp};
use indexmap::IndexMap;

use super::Caps;
use super::factors::{Epilogue, Factors, at, element_stores, product, unravelled};
use super::reductions::CHAIN;
use crate::ir::{Buffer, Dim, DimDef, Expr, ExprDef, For, Outside, Program, Stmt, Store, Var};

/// The cost of reading the right factor for a tile, in rows of the tile: it is in a slower cache than the left one.
const READING: u64 = 3;
/// Columns of a tile: as many as the widest vector has lanes.
const COLUMNS: u64 = 16;

/// An inner axis as long as this is added up in chains.
pub(super) const LONG: u64 = 4096;

/// The statements that make a product, and what a `for` makes of it, whose axes are those of the target in the order given.
pub(super) fn run(
    program: &mut Program,
    mut factors: Factors,
    epilogue: Option<Epilogue<'_>>,
    caps: Caps,
) -> Vec<Stmt> {
    if stores_along_rows(program, &factors, epilogue) {
        factors.transpose();
    }
    let mut out = Vec::new();
    let [rows, columns, inner] = [&factors.rows, &factors.columns, &factors.inner]
        .map(|axes| factors.dims(axes))
        .map(|dims| product(program, &dims));
    let n_rows = tile_rows(program, rows, caps.tile_rows);
    let [left, right] = [0, 1].map(|side| factors.operand(program, side));
    let left = Copied::of(
        program,
        &factors,
        left,
        &factors.rows,
        [rows, inner],
        n_rows,
        &mut out,
    );
    let right = Copied::of(
        program,
        &factors,
        right,
        &factors.columns,
        [columns, inner],
        COLUMNS,
        &mut out,
    );
    let tiles = Tiles {
        block: caps.tile_block,
        n_batch: factors.batch.len(),
        rows,
        columns,
        n_rows,
        left,
        right,
    };
    out.push(tiles.all(program, &factors, inner, epilogue));
    out
}

/// Whether elements that are neighbours in memory are in the same column: lanes of a vector would store far apart. Few rows
/// are not worth lanes of their own.
fn stores_along_rows(program: &Program, factors: &Factors, epilogue: Option<Epilogue<'_>>) -> bool {
    let last = |store: &Store| {
        let index = store
            .index
            .iter()
            .zip(&program.buffers[store.target].shape)
            .rev();
        let mut long = index.filter(|&(_, &dim)| program.const_dim(dim) != Some(1));
        match program.exprs[*long.next()?.0] {
            ExprDef::Axis(k) => Some(k),
            _ => None,
        }
    };
    let is_row = |k: u32| factors.rows.contains(&k);
    let along_rows = match epilogue {
        None => last(&factors.store).is_some_and(is_row),
        Some((all, axes)) => all.body.iter().all(|stmt| {
            let Stmt::Store(store) = stmt else {
                return false;
            };
            let at = last(store).and_then(|k| axes.iter().position(|&axis| axis == k));
            at.is_some_and(|at| match program.exprs[factors.store.index[at]] {
                ExprDef::Axis(k) => is_row(k),
                _ => false,
            })
        }),
    };
    let n = program.size_of_all(factors.dims(&factors.rows));
    along_rows && n.is_none_or(|n| n.about >= COLUMNS)
}

/// The rows of a tile that cost least, of numbers around the best one. Rows of the last tile that do not exist cost as much as others.
fn tile_rows(program: &Program, rows: Dim, best: u64) -> u64 {
    let n = program.const_dim(rows);
    let cost = |own: u64| n.map_or(0, |n| n.div_ceil(own).saturating_mul(own + READING));
    let all = [
        best,
        best + 2,
        best + 1,
        best - 1,
        best - 2,
        best - 3,
        best - 4,
    ];
    let least = all.into_iter().min_by_key(|&own| cost(own));
    least.unwrap_or(best)
}

/// The number of rows of tiles that reuse cached values, the best first; fewer or more if that divides the number of rows.
fn blocks(best: u64) -> [u64; 7] {
    [
        best,
        best - 1,
        best + 1,
        best - 2,
        best + 2,
        best - 3,
        best / 2,
    ]
}

/// The first number that divides a size, if the size is known.
fn divisor(program: &Program, dim: Dim, of: [u64; 7]) -> Option<u64> {
    let n = program.const_dim(dim)?;
    of.into_iter().find(|&d| n.is_multiple_of(d))
}

/// The quotient, rounded up.
fn parts(program: &mut Program, n: Expr, length: u64) -> Expr {
    let [length, more] = [length, length - 1].map(|n| program.exprs.i32(n as i32));
    let n = program.exprs.binary(BinaryOp::Add, n, more);
    program.exprs.binary(BinaryOp::Div, n, length)
}

/// A factor, copied into the order in which tiles read it: `[batch.., tiles, inner, elements of a tile]`.
struct Copied {
    buffer: Buffer,
    tiles: Dim,
}

impl Copied {
    fn of(
        program: &mut Program,
        factors: &Factors,
        value: Expr,
        own: &[u32],
        [extent, inner]: [Dim; 2],
        length: u64,
        out: &mut Vec<Stmt>,
    ) -> Self {
        let n = program.extent(extent);
        let tiles = parts(program, n, length);
        let tiles = program.dim(DimDef::Value(tiles));
        let mut domain = factors.dims(&factors.batch);
        let n_batch = domain.len();
        domain.extend([tiles, inner]);
        let mut shape = domain.clone();
        shape.push(program.size(length));
        let ty = program.exprs.ty(value);
        let buffer = program.temporary(ty, &shape);
        let axes = program.axes(domain.len());
        let mut places: IndexMap<u32, Expr> = IndexMap::new();
        places.extend(factors.batch.iter().copied().zip(axes.iter().copied()));
        let indices = unravelled(program, axes[n_batch + 1], &factors.dims(&factors.inner));
        places.extend(factors.inner.iter().copied().zip(indices));
        let counter = program.var(ScalarType::I32);
        let within = program.get(counter);
        let i = element_of(program, axes[n_batch], length, within);
        // What is behind the last one is computed, and read by nobody.
        let is_whole = program
            .const_dim(extent)
            .is_some_and(|n| n.is_multiple_of(length));
        let i = if is_whole { i } else { nearest(program, i, n) };
        let indices = unravelled(program, i, &factors.dims(own));
        places.extend(own.iter().copied().zip(indices));
        let store = Store {
            target: buffer,
            index: [&axes[..], &[within]].concat(),
            value: at(program, value, &places),
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        let body = vec![Stmt::Loop {
            var: counter,
            lo: program.exprs.i32(0),
            hi: program.exprs.i32(length as i32),
            step: 1,
            body: vec![Stmt::Store(store)],
        }];
        out.push(Stmt::For(For {
            domain,
            cells: None,
            body,
            span: factors.span,
        }));
        Self { buffer, tiles }
    }
}

/// The number of an element of a tile in the whole.
fn element(program: &mut Program, tile: Expr, length: u64, at: u64) -> Expr {
    let at = program.exprs.i32(at as i32);
    element_of(program, tile, length, at)
}

pub(super) fn element_of(program: &mut Program, tile: Expr, length: u64, at: Expr) -> Expr {
    let length = program.exprs.i32(length as i32);
    let first = program.exprs.binary(BinaryOp::Mul, tile, length);
    program.exprs.binary(BinaryOp::Add, first, at)
}

/// The index, or the last one.
pub(super) fn nearest(program: &mut Program, i: Expr, n: Expr) -> Expr {
    let one = program.exprs.i32(1);
    let last = program.exprs.binary(BinaryOp::Sub, n, one);
    program.exprs.binary(BinaryOp::Min, i, last)
}

struct Tiles {
    /// The tiles below each other that reuse cached values.
    block: u64,
    n_batch: usize,
    rows: Dim,
    columns: Dim,
    n_rows: u64,
    left: Copied,
    right: Copied,
}

impl Tiles {
    /// The kernel over all tiles.
    fn all(
        &self,
        program: &mut Program,
        factors: &Factors,
        inner: Dim,
        epilogue: Option<Epilogue<'_>>,
    ) -> Stmt {
        let tiles = program.extent(self.left.tiles);
        let length = divisor(program, self.left.tiles, blocks(self.block)).unwrap_or(self.block);
        let blocks = parts(program, tiles, length);
        // As even as may be.
        let one = program.exprs.i32(1);
        let some = program.exprs.binary(BinaryOp::Max, blocks, one);
        let less = program.exprs.binary(BinaryOp::Sub, some, one);
        let length = program.exprs.binary(BinaryOp::Add, tiles, less);
        let length = program.exprs.binary(BinaryOp::Div, length, some);
        let mut domain = factors.dims(&factors.batch);
        domain.push(program.dim(DimDef::Value(blocks)));
        domain.push(self.right.tiles);
        domain.push(program.dim(DimDef::Value(length)));
        domain.push(program.size(COLUMNS));
        let axes = program.axes(domain.len());
        let &[block, column, within, lane] = &axes[self.n_batch..] else {
            unreachable!("four were pushed");
        };
        let row = program.exprs.binary(BinaryOp::Mul, block, length);
        let row = program.exprs.binary(BinaryOp::Add, row, within);
        let batch = &axes[..self.n_batch];
        let ty = program.buffers[factors.store.target].ty;
        let sums: Vec<Var> = (0..self.n_rows).map(|_| program.var(ty)).collect();
        let zero = program.exprs.constant(Scalar::zero(ty));
        let mut body: Vec<Stmt> = sums.iter().map(|&x| Stmt::Set(x, zero)).collect();
        let place = [row, column, lane];
        if program.size_of(inner).is_some_and(|n| n.about >= LONG) {
            body.push(self.chains(program, batch, place, &sums, inner));
        } else {
            let all = [program.exprs.i32(0), program.extent(inner)];
            body.push(self.turns(program, batch, place, &sums, all));
        }
        let j = element_of(program, column, COLUMNS, lane);
        let rows: Vec<Expr> = (0..self.n_rows)
            .map(|r| element(program, row, self.n_rows, r))
            .collect();
        let mut stores = Vec::new();
        for (&i, &sum) in rows.iter().zip(&sums) {
            let value = program.get(sum);
            stores.push(element_stores(
                program,
                factors,
                batch,
                [i, j],
                value,
                epilogue,
            ));
        }
        let whole = [
            (row, self.n_rows, self.rows, self.blocks_are_whole(program)),
            (
                column,
                COLUMNS,
                self.columns,
                self.columns_are_whole(program),
            ),
        ];
        let mut cond: Option<Expr> = None;
        for (tile, length, extent, _) in whole.iter().filter(|w| !w.3) {
            let last = element(program, *tile, *length, length - 1);
            let inside = is_below(program, last, *extent);
            cond = Some(match cond {
                Some(before) => program.exprs.binary(BinaryOp::And, before, inside),
                None => inside,
            });
        }
        match cond {
            None => body.extend(stores.into_iter().flatten()),
            Some(cond) => {
                // A tile that is whole stores vectors.
                let all = stores.iter().flatten().cloned().collect();
                let mut some = Vec::new();
                for (&i, stores) in rows.iter().zip(stores) {
                    let [a, b] = [(i, self.rows), (j, self.columns)]
                        .map(|(i, extent)| is_below(program, i, extent));
                    let inside = program.exprs.binary(BinaryOp::And, a, b);
                    some.push(Stmt::If(inside, stores, Vec::new()));
                }
                body.push(Stmt::If(cond, all, some));
            }
        }
        Stmt::For(For {
            domain,
            cells: None,
            body,
            span: factors.span,
        })
    }

    /// Whether all rows of all blocks of tiles are there.
    fn blocks_are_whole(&self, program: &Program) -> bool {
        let n = program.const_dim(self.rows);
        let even = |n: u64| n.is_multiple_of(n.div_ceil(self.block).max(1));
        n.is_some_and(|n| n.is_multiple_of(self.n_rows))
            && (divisor(program, self.left.tiles, blocks(self.block)).is_some()
                || program.const_dim(self.left.tiles).is_some_and(even))
    }

    fn columns_are_whole(&self, program: &Program) -> bool {
        let m = program.const_dim(self.columns);
        m.is_some_and(|m| m.is_multiple_of(COLUMNS))
    }

    /// The loop over a long inner axis: what is added up of some of it is added to the rest, since a sum that is much larger
    /// than a product loses it.
    fn chains(
        &self,
        program: &mut Program,
        batch: &[Expr],
        place: [Expr; 3],
        sums: &[Var],
        inner: Dim,
    ) -> Stmt {
        let counter = program.var(ScalarType::I32);
        let part = program.get(counter);
        let length = program.exprs.i32(CHAIN as i32);
        let first = program.exprs.binary(BinaryOp::Mul, part, length);
        let behind = program.exprs.binary(BinaryOp::Add, first, length);
        let n = program.extent(inner);
        let n_parts = parts(program, n, CHAIN);
        let behind = program.exprs.binary(BinaryOp::Min, behind, n);
        let zero = program.exprs.constant(Scalar::zero(program.vars[sums[0]]));
        let own: Vec<Var> = sums.iter().map(|&x| program.var(program.vars[x])).collect();
        let mut body: Vec<Stmt> = own.iter().map(|&x| Stmt::Set(x, zero)).collect();
        body.push(self.turns(program, batch, place, &own, [first, behind]));
        for (&sum, &part) in sums.iter().zip(&own) {
            let [so_far, more] = [sum, part].map(|x| program.get(x));
            let value = program.exprs.binary(BinaryOp::Add, so_far, more);
            body.push(Stmt::Set(sum, value));
        }
        Stmt::Loop {
            var: counter,
            lo: program.exprs.i32(0),
            hi: n_parts,
            step: 1,
            body,
        }
    }

    /// The loop over a part of the inner axis.
    fn turns(
        &self,
        program: &mut Program,
        batch: &[Expr],
        [row, column, lane]: [Expr; 3],
        sums: &[Var],
        [first, behind]: [Expr; 2],
    ) -> Stmt {
        let counter = program.var(ScalarType::I32);
        let k = program.get(counter);
        let row = match self.blocks_are_whole(program) {
            true => row,
            false => {
                let tiles = program.extent(self.left.tiles);
                nearest(program, row, tiles)
            }
        };
        let index = [batch, &[column, k, lane]].concat();
        let right = program.load(self.right.buffer, index, Outside::Never);
        let mut body = Vec::new();
        for (r, &sum) in sums.iter().enumerate() {
            let r = program.exprs.i32(r as i32);
            let index = [batch, &[row, k, r]].concat();
            let left = program.load(self.left.buffer, index, Outside::Never);
            let term = program.exprs.binary(BinaryOp::Mul, left, right);
            let so_far = program.get(sum);
            let value = program.exprs.binary(BinaryOp::Add, so_far, term);
            body.push(Stmt::Set(sum, value));
        }
        Stmt::Loop {
            var: counter,
            lo: first,
            hi: behind,
            step: 1,
            body,
        }
    }
}

/// Whether an index is in bounds.
pub(super) fn is_below(program: &mut Program, i: Expr, extent: Dim) -> Expr {
    let n = program.extent(extent);
    program.exprs.compare(CompareOp::Lt, i, n)
}
