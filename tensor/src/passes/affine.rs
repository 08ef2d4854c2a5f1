//! Indices that are sums of axes with constant factors.

use aerogel_ir::BinaryOp;

use crate::ir::{Expr, ExprDef, Exprs};

/// A sum of axes with factors, and a constant.
#[derive(Clone, Default)]
pub(super) struct Affine {
    pub(super) terms: Vec<(u32, i64)>,
    pub(super) offset: i64,
}

impl Affine {
    /// The sum that an expression is, if it is one.
    pub(super) fn of(exprs: &Exprs, e: Expr) -> Option<Self> {
        /// An index has few operations, but shared ones, each twice in the next, are read exponentially often.
        const MOST: u32 = 256;
        Self::within(exprs, e, &mut { MOST })
    }

    /// The same if it has no more than so many operations.
    fn within(exprs: &Exprs, e: Expr, left: &mut u32) -> Option<Self> {
        *left = left.checked_sub(1)?;
        let scaled = |a: &Self, by: i64| -> Option<Self> {
            let terms = a.terms.iter().map(|&(k, c)| Some((k, c.checked_mul(by)?)));
            Some(Self {
                terms: terms.collect::<Option<_>>()?,
                offset: a.offset.checked_mul(by)?,
            })
        };
        Some(match exprs[e] {
            ExprDef::Axis(k) => Self {
                terms: vec![(k, 1)],
                offset: 0,
            },
            ExprDef::Const(c) => Self {
                terms: Vec::new(),
                offset: i64::try_from(c.as_i128()).ok()?,
            },
            ExprDef::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
                let mut sum = Self::within(exprs, a, left)?;
                let sign = if op == BinaryOp::Add { 1 } else { -1 };
                let other = scaled(&Self::within(exprs, b, left)?, sign)?;
                for (k, c) in other.terms {
                    match sum.terms.iter_mut().find(|t| t.0 == k) {
                        Some(term) => term.1 = term.1.checked_add(c)?,
                        None => sum.terms.push((k, c)),
                    }
                }
                sum.offset = sum.offset.checked_add(other.offset)?;
                sum.terms.retain(|t| t.1 != 0);
                sum
            }
            ExprDef::Binary(BinaryOp::Mul, a, b) => {
                let [a, b] = [Self::within(exprs, a, left)?, Self::within(exprs, b, left)?];
                match (&a.terms[..], &b.terms[..]) {
                    ([], _) => scaled(&b, a.offset)?,
                    (_, []) => scaled(&a, b.offset)?,
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// The factor of an axis.
    pub(super) fn factor(&self, axis: u32) -> i64 {
        let term = self.terms.iter().find(|t| t.0 == axis);
        term.map_or(0, |t| t.1)
    }
}
