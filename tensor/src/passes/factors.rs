//! Code shared by the methods for matrix products: their factors, and the statements that store their elements.

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, Span};
use aerogel_ir::BinaryOp;
use indexmap::IndexMap;

use crate::ir::{Dim, DimDef, Expr, ExprDef, For, Program, Stmt, Store, map_exprs};

/// A `for` that is done with each element of a product, and its axis for each of the product's.
pub(super) type Epilogue<'f> = (&'f For, &'f [u32]);

/// Axes of a `for` that makes a product, and its factors.
#[derive(Clone)]
pub(super) struct Factors {
    /// The sizes of all axes.
    pub(super) domain: Vec<Dim>,
    /// Axes of both factors and of the result.
    pub(super) batch: Vec<u32>,
    /// Axes of the left factor and of the result.
    pub(super) rows: Vec<u32>,
    /// Axes of the right factor and of the result.
    pub(super) columns: Vec<u32>,
    /// Axes of both factors.
    pub(super) inner: Vec<u32>,
    /// The factors, and where they count: elsewhere the product of the two is zero.
    pub(super) operands: [Expr; 2],
    pub(super) masks: [Option<Expr>; 2],
    /// The store of the sum.
    pub(super) store: Store,
    /// Where it was written.
    pub(super) span: Span,
}

/// The indices along axes of these sizes that one flat index stands for, the last axis fastest.
pub(super) fn unravelled(program: &mut Program, index: Expr, dims: &[Dim]) -> Vec<Expr> {
    let mut rest = index;
    let mut out = Vec::new();
    for (k, &dim) in dims.iter().enumerate().rev() {
        if k == 0 {
            out.push(rest);
        } else {
            let extent = program.extent(dim);
            out.push(program.exprs.binary(BinaryOp::Mod, rest, extent));
            rest = program.exprs.binary(BinaryOp::Div, rest, extent);
        }
    }
    out.reverse();
    out
}

/// The number of indices along axes of these sizes.
pub(super) fn product(program: &mut Program, dims: &[Dim]) -> Dim {
    let one = program.exprs.i32(1);
    let value = dims.iter().fold(one, |n, &dim| {
        let extent = program.extent(dim);
        program.exprs.binary(BinaryOp::Mul, n, extent)
    });
    program.dim(DimDef::Value(value))
}

impl Factors {
    /// A factor, zero where it does not count.
    pub(super) fn operand(&self, program: &mut Program, side: usize) -> Expr {
        let value = self.operands[side];
        match self.masks[side] {
            Some(mask) => {
                let zero = Scalar::zero(program.exprs.ty(value));
                let zero = program.exprs.constant(zero);
                program.exprs.select(mask, value, zero)
            }
            None => value,
        }
    }

    /// Exchanges the factors, and with them rows and columns.
    pub(super) fn transpose(&mut self) {
        self.operands.reverse();
        self.masks.reverse();
        std::mem::swap(&mut self.rows, &mut self.columns);
    }

    /// The sizes of axes.
    pub(super) fn dims(&self, axes: &[u32]) -> Vec<Dim> {
        axes.iter().map(|&k| self.domain[k as usize]).collect()
    }
}

/// An expression with other indices for axes.
pub(super) fn at(program: &mut Program, e: Expr, axes: &IndexMap<u32, Expr>) -> Expr {
    let mut done = LookupMap::default();
    program
        .exprs
        .replace(e, &mut done, &mut |_, def| match def {
            ExprDef::Axis(k) => axes.get(k).copied(),
            _ => None,
        })
}

/// The statements that consume an element of a product, in the row `i` and the column `j`.
pub(super) fn element_stores(
    program: &mut Program,
    factors: &Factors,
    batch: &[Expr],
    [i, j]: [Expr; 2],
    value: Expr,
    epilogue: Option<Epilogue<'_>>,
) -> Vec<Stmt> {
    let mut places: IndexMap<u32, Expr> = IndexMap::new();
    places.extend(factors.batch.iter().copied().zip(batch.iter().copied()));
    for (axes, e) in [(&factors.rows, i), (&factors.columns, j)] {
        let indices = unravelled(program, e, &factors.dims(axes));
        places.extend(axes.iter().copied().zip(indices));
    }
    stores_at(program, factors, &places, value, epilogue)
}

/// The statements that consume an element of a product, at these indices for its axes.
pub(super) fn stores_at(
    program: &mut Program,
    factors: &Factors,
    places: &IndexMap<u32, Expr>,
    value: Expr,
    epilogue: Option<Epilogue<'_>>,
) -> Vec<Stmt> {
    let index: Vec<Expr> = factors
        .store
        .index
        .iter()
        .map(|&e| at(program, e, places))
        .collect();
    let Some((all, axes)) = epilogue else {
        return vec![Stmt::Store(Store {
            index,
            value,
            accum: None,
            init: false,
            ..factors.store.clone()
        })];
    };
    let places: IndexMap<u32, Expr> = axes.iter().copied().zip(index).collect();
    let mut body = all.body.clone();
    let (mut done, exprs) = (LookupMap::default(), &mut program.exprs);
    map_exprs(&mut body, &mut |e| {
        exprs.replace(e, &mut done, &mut |_, def| match def {
            ExprDef::Axis(k) => places.get(k).copied(),
            ExprDef::Load { buffer, .. } if *buffer == factors.store.target => Some(value),
            _ => None,
        })
    });
    body
}
