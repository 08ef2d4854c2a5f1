//! Adjoints through the value of a statement: from what is stored to what is loaded.

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::derivatives::{
    Arithmetic, Partial, Values, of_binary, of_unary, through_binary, through_unary,
    zero_where_none,
};
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};
use indexmap::{IndexMap, IndexSet};

use super::{Reverse, refused};
use crate::ir::{Accum, Buffer, Dim, Expr, ExprDef, Exprs, Function, Outside};
use crate::record::Recorded;

/// Expressions of a program.
pub(super) struct Expressions<'e>(pub(super) &'e mut Exprs);

impl Expressions<'_> {
    /// A product of `d` with a factor that counts nothing where `d` is zero, also if it is infinite: a function of both.
    pub(super) fn strong(&mut self, d: Expr, factor: Expr, product: Expr) -> Expr {
        let made = zero_where_none(self, d, product);
        self.0
            .note_function(made, Function::Strong, vec![d, factor]);
        made
    }
}

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
        let order = self.live(value);
        let mut adjoints: IndexMap<Expr, Expr> = IndexMap::from([(value, adjoint)]);
        let mut places: IndexMap<Place, Expr> = IndexMap::new();
        for &e in order.iter().rev() {
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
            let (operands, function) = self.parts_of(e, &def);
            if let (ExprDef::Bitcast(x, _), None) = (&def, function) {
                // The bits of a float that something depends on.
                self.expect_no_bits(*x)?;
            }
            for (k, &x) in operands.iter().enumerate() {
                if !order.contains(&x) || !self.recording.program.exprs.ty(x).is_float() {
                    continue;
                }
                let part = match function {
                    Some(function) => self.through_function(function, k, &operands, e, d)?,
                    None => self.part(&def, k, &operands, e, d)?,
                };
                let Some(part) = part else {
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
            let buffer = self.versions.original(buffer);
            let part = self.scattered(domain, buffer, &index, outside, d);
            self.contribute(buffer, part);
        }
        Ok(())
    }

    /// Refuses a float made of the bits of what depends on something wanted.
    fn expect_no_bits(&self, x: Expr) -> Recorded<()> {
        let exprs = &self.recording.program.exprs;
        let mut depends = false;
        exprs.visit([x], &mut |e| {
            if let ExprDef::Load { buffer, .. } = exprs[e] {
                depends |= self.depends(buffer);
            }
        });
        match depends {
            true => refused("the bits of a number"),
            false => Ok(()),
        }
    }

    /// Whether a buffer depends on what is wanted.
    fn depends(&self, buffer: Buffer) -> bool {
        let buffer = self.versions.original(buffer);
        self.active.contains(&buffer) || self.others.contains(&buffer)
    }

    /// What an expression is made of: the operands of a function that has a derivative of its own, or of its operation.
    fn parts_of(&self, e: Expr, def: &ExprDef) -> (Vec<Expr>, Option<Function>) {
        if let Some((function, operands)) = self.recording.program.exprs.function(e) {
            return (operands.clone(), Some(*function));
        }
        let mut operands = Vec::new();
        if !matches!(def, ExprDef::Load { .. }) {
            def.operands(|x| operands.push(x));
        }
        (operands, None)
    }

    /// The parts of a value that depend on what is wanted, operands first.
    fn live(&self, value: Expr) -> IndexSet<Expr> {
        let exprs = &self.recording.program.exprs;
        let mut live: IndexSet<Expr> = IndexSet::new();
        let mut seen: IndexSet<Expr> = IndexSet::new();
        let mut stack = vec![(value, false)];
        while let Some((e, ready)) = stack.pop() {
            let def = &exprs[e];
            if !ready && !seen.insert(e) {
                continue;
            }
            let (operands, _) = self.parts_of(e, def);
            if !ready {
                stack.push((e, true));
                stack.extend(operands.into_iter().rev().map(|x| (x, false)));
                continue;
            }
            let is_active = matches!(def, ExprDef::Load { buffer, .. } if self.depends(*buffer));
            if is_active || operands.iter().any(|x| live.contains(x)) {
                live.insert(e);
            }
        }
        live
    }

    /// The contribution of the adjoint `d` of an expression to that of its operand `k`, if any.
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
                let one = a.number(d, 1.0);
                let [product, factor] = [d, one].map(|d| match *def {
                    ExprDef::Unary(op, _) => through_unary(a, op, values, d),
                    ExprDef::Binary(op, ..) => through_binary(a, op, k, values, d),
                    _ => unreachable!("no other has a factor"),
                });
                Some(match strong {
                    true => a.strong(d, factor, product),
                    false => product,
                })
            }
        })
    }

    /// For each element of a buffer the sum of a value at all points of a domain that read it.
    fn scattered(
        &mut self,
        domain: &[Dim],
        buffer: Buffer,
        index: &[Expr],
        outside: Outside,
        value: Expr,
    ) -> Buffer {
        let shape = self.recording.shape(buffer);
        let ty = self.recording.program.exprs.ty(value);
        if let Some(order) = self.own_axes(domain, &shape, index) {
            return self.summed(domain, shape, index, &order, value);
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
        let value = exprs.cast(value, ty.accumulator());
        let sum = self
            .recording
            .gather_into(domain, shape, index, Accum::Add, value);
        self.recording.cast(sum, ty)
    }

    /// The axes of a domain that a buffer is read by, if its index is these, each once, and zeros.
    pub(super) fn own_axes(
        &self,
        domain: &[Dim],
        shape: &[Dim],
        index: &[Expr],
    ) -> Option<IndexSet<u32>> {
        let program = &self.recording.program;
        let mut own = IndexSet::new();
        for (&e, &n) in index.iter().zip(shape) {
            match program.exprs[e] {
                ExprDef::Axis(k)
                    if self.recording.are_equal(domain[k as usize], n) && own.insert(k) => {}
                ExprDef::Const(zero) if zero.as_i128() == 0 && program.const_dim(n) == Some(1) => {}
                _ => return None,
            }
        }
        Some(own)
    }

    /// The sum of a value over the axes of a domain that are not in the index.
    fn summed(
        &mut self,
        domain: &[Dim],
        shape: Vec<Dim>,
        index: &[Expr],
        own: &IndexSet<u32>,
        value: Expr,
    ) -> Buffer {
        // The axes that stay come first, in the order of the buffer's.
        let rest = (0..domain.len() as u32).filter(|k| !own.contains(k));
        let order: Vec<u32> = own.iter().copied().chain(rest).collect();
        let place = |k: u32| order.iter().position(|&o| o == k).expect("all are there") as u32;
        let exprs = &mut self.recording.program.exprs;
        let mut done = LookupMap::default();
        let mut moved = |exprs: &mut Exprs, e: Expr| {
            exprs.replace(e, &mut done, &mut |exprs, def| match def {
                ExprDef::Axis(k) => Some(exprs.axis(place(*k))),
                _ => None,
            })
        };
        let value = moved(exprs, value);
        let index: Vec<Expr> = index.iter().map(|&e| moved(exprs, e)).collect();
        let mut domain: Vec<Dim> = order.iter().map(|&k| domain[k as usize]).collect();
        // Sizes that were checked to be equal are those of the buffer.
        for (e, &n) in index.iter().zip(&shape) {
            if let ExprDef::Axis(k) = exprs[*e] {
                domain[k as usize] = n;
            }
        }
        if own.len() == domain.len() && own.len() == shape.len() {
            return self.recording.map(&domain, value);
        }
        let ty = exprs.ty(value);
        let value = exprs.cast(value, ty.accumulator());
        let sum = self
            .recording
            .gather_into(&domain, shape, index, Accum::Add, value);
        self.recording.cast(sum, ty)
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
                // An index out of bounds has stopped the run, unless the value was not needed.
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
