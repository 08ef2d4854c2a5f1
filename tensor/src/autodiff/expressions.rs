//! Adjoints through the value of a statement: from what is stored to what is loaded.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::derivatives::{
    Arithmetic, Partial, Values, of_binary, of_unary, through_binary, through_unary,
    zero_where_none,
};
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};
use indexmap::{IndexMap, IndexSet};

use super::{Reverse, refused};
use crate::ir::{Accum, Buffer, Dim, Expr, ExprDef, Exprs, Outside};
use crate::record::Recorded;

/// Expressions of a program.
struct Expressions<'e>(&'e mut Exprs);

impl Arithmetic for Expressions<'_> {
    type Value = Expr;

    fn unary(&mut self, op: UnaryOp, x: Expr) -> Expr {
        self.0.unary(op, x)
    }

    fn binary(&mut self, op: BinaryOp, x: Expr, y: Expr) -> Expr {
        self.0.binary(op, x, y)
    }

    fn compare(&mut self, op: CompareOp, x: Expr, y: Expr) -> Expr {
        self.0.compare(op, x, y)
    }

    fn select(&mut self, cond: Expr, yes: Expr, no: Expr) -> Expr {
        self.0.select(cond, yes, no)
    }

    fn number(&mut self, like: Expr, value: f64) -> Expr {
        let ty = self.0.ty(like);
        self.0.constant(Scalar::float(ty, value))
    }
}

/// A load: of what, where, and what indices outside mean.
type Place = (Buffer, Vec<Expr>, Outside);

impl Reverse<'_> {
    /// Adds to the adjoints of what a value loads, at all points of a domain, whose own adjoint is `adjoint`.
    pub(super) fn through(&mut self, domain: &[Dim], value: Expr, adjoint: Expr) -> Recorded<()> {
        let mut order = Vec::new();
        let mut live: IndexSet<Expr> = IndexSet::new();
        let program = &self.recording.program;
        program.exprs.visit([value], &mut |e| {
            order.push(e);
            let def = &program.exprs[e];
            let mut depends =
                matches!(def, ExprDef::Load { buffer, .. } if self.active.contains(buffer));
            if !matches!(def, ExprDef::Load { .. }) {
                def.operands(|x| depends |= live.contains(&x));
            }
            if depends {
                live.insert(e);
            }
        });
        let mut adjoints: IndexMap<Expr, Expr> = IndexMap::from([(value, adjoint)]);
        let mut places: IndexMap<Place, Expr> = IndexMap::new();
        for &e in order.iter().rev().filter(|e| live.contains(*e)) {
            let Some(&d) = adjoints.get(&e) else {
                continue;
            };
            let def = self.recording.program.exprs[e].clone();
            if let ExprDef::Load {
                buffer,
                index,
                outside,
                ..
            } = def
            {
                places.insert((buffer, index, outside), d);
                continue;
            }
            let mut operands = Vec::new();
            def.operands(|x| operands.push(x));
            for (k, &x) in operands.iter().enumerate() {
                if !live.contains(&x) || !self.recording.program.exprs.ty(x).is_float() {
                    continue;
                }
                let Some(part) = self.part(&def, k, &operands, e, d)? else {
                    continue;
                };
                let exprs = &mut self.recording.program.exprs;
                let sum = match adjoints.get(&x) {
                    Some(&before) => exprs.binary(BinaryOp::Add, before, part),
                    None => part,
                };
                adjoints.insert(x, sum);
            }
        }
        for ((buffer, index, outside), d) in places {
            let part = self.scattered(domain, buffer, &index, outside, d);
            self.contribute(buffer, part);
        }
        Ok(())
    }

    /// What the adjoint `d` of an expression adds to that of its operand `k`, if anything.
    fn part(
        &mut self,
        def: &ExprDef,
        k: usize,
        operands: &[Expr],
        result: Expr,
        d: Expr,
    ) -> Recorded<Option<Expr>> {
        let exprs = &mut self.recording.program.exprs;
        let partial = match *def {
            ExprDef::Unary(op, _) => of_unary(op),
            ExprDef::Binary(op, ..) => of_binary(op, k),
            ExprDef::Select(..) => Partial::Chosen(k == 1),
            ExprDef::Cast(x, _) => {
                let ty = exprs.ty(x);
                return Ok(Some(exprs.cast(d, ty)));
            }
            ExprDef::Bitcast(..) => return refused("the bits of a number"),
            _ => return Ok(None),
        };
        let known: Vec<Option<Expr>> = operands.iter().map(|&x| Some(x)).collect();
        let values = Values {
            operands: &known,
            result: Some(result),
        };
        let a = &mut Expressions(exprs);
        Ok(match partial {
            Partial::Zero => None,
            Partial::None(what) => return refused(what),
            Partial::One => Some(d),
            Partial::MinusOne => Some(a.unary(UnaryOp::Neg, d)),
            Partial::Convert => unreachable!("casts are apart"),
            Partial::Chosen(when) => {
                let zero = a.number(d, 0.0);
                let (yes, no) = if when { (d, zero) } else { (zero, d) };
                Some(a.select(operands[0], yes, no))
            }
            Partial::Factor { strong, .. } => {
                let product = match *def {
                    ExprDef::Unary(op, _) => through_unary(a, op, values, d),
                    ExprDef::Binary(op, ..) => through_binary(a, op, k, values, d),
                    _ => unreachable!("no other has a factor"),
                };
                Some(match strong {
                    true => zero_where_none(a, d, product),
                    false => product,
                })
            }
        })
    }

    /// The sums of values at all points of a domain that read one element of a buffer, for each element.
    fn scattered(
        &mut self,
        domain: &[Dim],
        buffer: Buffer,
        index: &[Expr],
        outside: Outside,
        value: Expr,
    ) -> Buffer {
        let shape = self.recording.shape(buffer);
        let axes: Option<IndexSet<usize>> = index
            .iter()
            .zip(&shape)
            .map(|(&i, &n)| match self.recording.program.exprs[i] {
                ExprDef::Axis(k) if domain[k as usize] == n => Some(k as usize),
                _ => None,
            })
            .collect();
        let is_same = |axes: &IndexSet<usize>| {
            axes.len() == index.len()
                && axes.len() == domain.len()
                && axes.iter().copied().eq(0..domain.len())
        };
        if axes.as_ref().is_some_and(is_same) {
            return self.recording.map(domain, value);
        }
        let (index, inside) = self.brought_inside(buffer, index, outside);
        let exprs = &mut self.recording.program.exprs;
        let value = match inside {
            Some(inside) => {
                let zero = Expressions(exprs).number(value, 0.0);
                exprs.select(inside, value, zero)
            }
            None => value,
        };
        self.recording
            .gather_into(domain, shape, index, Accum::Add, value)
    }

    /// Indices inside the shape of a buffer, and whether the element is meant at all.
    pub(super) fn brought_inside(
        &mut self,
        buffer: Buffer,
        index: &[Expr],
        outside: Outside,
    ) -> (Vec<Expr>, Option<Expr>) {
        let shape = self.recording.shape(buffer);
        let mut all: Option<Expr> = None;
        let mut out = Vec::new();
        for (&i, &n) in index.iter().zip(&shape) {
            let n = self.recording.program.extent(n);
            let exprs = &mut self.recording.program.exprs;
            let (zero, minus_one) = (exprs.i32(0), exprs.i32(-1));
            let clamped = |exprs: &mut Exprs| {
                let last = exprs.binary(BinaryOp::Add, n, minus_one);
                let low = exprs.binary(BinaryOp::Min, i, last);
                exprs.binary(BinaryOp::Max, low, zero)
            };
            out.push(match outside {
                Outside::Never => i,
                Outside::Clamp => clamped(exprs),
                Outside::Wrap => exprs.binary(BinaryOp::Mod, i, n),
                // An index that is an error has stopped the run, unless nobody asked for the value.
                Outside::Zero | Outside::Error(_) => {
                    let low = exprs.compare(CompareOp::Ge, i, zero);
                    let high = exprs.compare(CompareOp::Lt, i, n);
                    let both = exprs.binary(BinaryOp::And, low, high);
                    all = Some(match all {
                        Some(before) => exprs.binary(BinaryOp::And, before, both),
                        None => both,
                    });
                    clamped(exprs)
                }
            });
        }
        debug_assert!(
            out.iter()
                .all(|&e| self.recording.program.exprs.ty(e) == ScalarType::I32)
        );
        (out, all)
    }
}
