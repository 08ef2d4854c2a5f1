//! A product of matrices by a library.
//!
//! ```text
//! loop x0 in 0, n, 512 {
//!     for [] { first[] = x0 }
//!     call matmul_rows(t) = (a, b, first)
//!     for [512, m] { if x0 + i0 < n { y[x0 + i0, i1] = max(t[i0, i1] + c[i1], 0) } }
//! }
//! ```
//! Consumers of a matrix product run on blocks of rows, so that the product need not be in memory all at once. Where
//! nothing is, or there are few rows, the library makes all of them.

use aerogel_base::ScalarType;
use aerogel_ir::BinaryOp;
use indexmap::IndexMap;

use super::factors::{Epilogue, Factors, at, element_stores, product, unravelled};
use super::tiles::is_below;
use crate::ir::{Buffer, Call, Dim, Expr, ExprDef, For, Library, Outside, Program, Stmt, Store};

/// So many rows at a time: the right factor, which the library puts into an order of its own each time, is read by many.
pub(super) const ROWS: u64 = 512;

/// The statements that make a product, and whether they also make what a `for` makes of it.
pub(super) fn run(
    program: &mut Program,
    factors: Factors,
    epilogue: Option<Epilogue<'_>>,
) -> (Vec<Stmt>, bool) {
    let mut out = Vec::new();
    let [left, right] = factors.operands;
    let (rows, columns, inner) = (&factors.rows, &factors.columns, &factors.inner);
    let left = matrix(program, &factors, left, [rows, inner], &mut out);
    let right = matrix(program, &factors, right, [inner, columns], &mut out);
    let [n, m] = [rows, columns].map(|axes| {
        let dims = factors.dims(axes);
        match dims[..] {
            [dim] => dim,
            _ => product(program, &dims),
        }
    });
    let is_long = program.size_of(n).is_none_or(|n| n.about > ROWS);
    match epilogue.filter(|_| is_long) {
        Some(epilogue) => {
            let all = by_rows(program, &factors, [left, right], [n, m], epilogue);
            out.push(all);
            (out, true)
        }
        None => {
            whole(program, &factors, vec![left, right], [n, m], &mut out);
            (out, false)
        }
    }
}

/// All of a product at once.
fn whole(
    program: &mut Program,
    factors: &Factors,
    inputs: Vec<Buffer>,
    [n, m]: [Dim; 2],
    out: &mut Vec<Stmt>,
) {
    let call = |output: Buffer| {
        Stmt::Call(Call {
            library: Library::MatMul,
            inputs,
            outputs: vec![output],
            span: factors.span,
        })
    };
    let order = [&factors.batch[..], &factors.rows, &factors.columns].concat();
    let is_own = |(&e, &k): (&Expr, &u32)| program.exprs[e] == ExprDef::Axis(k);
    let is_plain = factors.rows.len() == 1
        && factors.columns.len() == 1
        && factors.store.index.iter().zip(&order).all(is_own);
    if is_plain {
        out.push(call(factors.store.target));
        return;
    }
    // The target's elements lie otherwise.
    let mut shape = factors.dims(&factors.batch);
    shape.extend([n, m]);
    let made = program.temporary(program.buffers[factors.store.target].ty, &shape);
    out.push(call(made));
    let axes = program.axes(shape.len());
    let value = program.load(made, axes.clone(), Outside::Never);
    let (batch, place) = axes.split_at(factors.batch.len());
    let body = element_stores(program, factors, batch, [place[0], place[1]], value, None);
    out.push(Stmt::For(For {
        domain: shape,
        cells: None,
        body,
        span: factors.span,
    }));
}

/// Some rows after the others, and what becomes of them.
fn by_rows(
    program: &mut Program,
    factors: &Factors,
    [left, right]: [Buffer; 2],
    [n, m]: [Dim; 2],
    epilogue: Epilogue<'_>,
) -> Stmt {
    let span = factors.span;
    let var = program.var(ScalarType::I32);
    let at_row = program.get(var);
    let first = program.temporary(ScalarType::I32, &[]);
    let tell = Stmt::For(For {
        domain: Vec::new(),
        cells: None,
        body: vec![Stmt::Store(Store {
            target: first,
            index: Vec::new(),
            value: at_row,
            accum: None,
            init: false,
            outside: Outside::Never,
        })],
        span,
    });
    let mut shape = factors.dims(&factors.batch);
    shape.extend([program.size(ROWS), m]);
    let made = program.temporary(program.buffers[factors.store.target].ty, &shape);
    let call = Stmt::Call(Call {
        library: Library::MatMulRows,
        inputs: vec![left, right, first],
        outputs: vec![made],
        span,
    });
    let axes = program.axes(shape.len());
    let value = program.load(made, axes.clone(), Outside::Never);
    let (batch, place) = axes.split_at(factors.batch.len());
    let row = program.exprs.binary(BinaryOp::Add, at_row, place[0]);
    let stores = element_stores(
        program,
        factors,
        batch,
        [row, place[1]],
        value,
        Some(epilogue),
    );
    let inside = is_below(program, row, n);
    let all = Stmt::For(For {
        domain: shape,
        cells: None,
        body: vec![Stmt::If(inside, stores, Vec::new())],
        span,
    });
    Stmt::Loop {
        var,
        lo: program.exprs.i32(0),
        hi: program.extent(n),
        step: ROWS as i32,
        body: vec![tell, call, all],
    }
}

/// A factor as a buffer `[batch.., n, m]` for a library: the one that it reads, if that is so.
fn matrix(
    program: &mut Program,
    factors: &Factors,
    value: Expr,
    groups: [&[u32]; 2],
    out: &mut Vec<Stmt>,
) -> Buffer {
    let [first, second] = groups;
    let axes = [&factors.batch, first, second].concat();
    if let ExprDef::Load { buffer, index, .. } = &program.exprs[value]
        && first.len() == 1
        && second.len() == 1
        && program.buffers[*buffer].shape == factors.dims(&axes)
        && index
            .iter()
            .zip(&axes)
            .all(|(&e, &k)| program.exprs[e] == ExprDef::Axis(k))
    {
        return *buffer;
    }
    let batch = factors.dims(&factors.batch);
    let own = groups.map(|axes| factors.dims(axes));
    let mut domain = batch.clone();
    domain.extend(own.each_ref().map(|dims| product(program, dims)));
    let mut places: IndexMap<u32, Expr> = IndexMap::new();
    let counted = program.axes(domain.len());
    places.extend(factors.batch.iter().copied().zip(counted.iter().copied()));
    for ((axes, dims), &index) in groups.iter().zip(&own).zip(&counted[batch.len()..]) {
        let indices = unravelled(program, index, dims);
        places.extend(axes.iter().copied().zip(indices));
    }
    let value = at(program, value, &places);
    let before = std::mem::take(&mut program.body);
    let made = program.map(&domain, value, factors.span);
    out.extend(std::mem::replace(&mut program.body, before));
    made
}
