//! Builtins that create or read sequences: the iterables of loops, and Python's functions of lists.

use std::rc::Rc;

use aerogel_base::ErrorKind;
use aerogel_ir::{self as ir, AssertKind, Op};

use crate::ast::{BinaryOp, CompareOp};
use crate::fold;
use crate::host::Known;
use crate::lower::calls::Args;
use crate::lower::values::{Iter, SeqKind, Val};
use crate::lower::{Lower, Res};

impl Lower<'_, '_> {
    /// `range(...)`: what a loop counts.
    pub(super) fn range(&mut self, args: &Args) -> Res<Val> {
        let (zero, one) = (Val::int(0), Val::int(1));
        let (lo, hi, step) = match &args.positional[..] {
            [hi] => (zero, hi.clone(), one),
            [lo, hi] => (lo.clone(), hi.clone(), one),
            [lo, hi, step] => (lo.clone(), hi.clone(), step.clone()),
            all => {
                let n = all.len();
                return self.fail(
                    ErrorKind::Syntax,
                    "E0222",
                    format!("`range` takes 1 to 3 arguments, not {n}"),
                );
            }
        };
        if matches!(&step, Val::Known(Known::Int(0))) {
            return self.fail(
                ErrorKind::Compilation,
                "E0123",
                "the step of a range is zero",
            );
        }
        let (lo, hi, step) = (self.settle(lo)?, self.settle(hi)?, self.settle(step)?);
        if self.config.debug && !matches!(step, Val::Known(_)) {
            let nonzero = self.compare(CompareOp::Ne, &step, &Val::int(0))?;
            let cond = self.condition(&nonzero)?;
            self.effect(Op::Assert {
                cond,
                kind: AssertKind::Assertion,
                template: "the step of a range is zero".into(),
                args: Vec::new(),
            });
        }
        Ok(Val::Iter(Rc::new(Iter::Range { lo, hi, step })))
    }

    /// `ti.ndrange(...)`: an index for each axis.
    pub(super) fn ndrange(&mut self, args: &Args) -> Res<Val> {
        let mut axes = Vec::new();
        for val in &args.positional {
            let pair = match val.items() {
                None => (Val::int(0), self.settle(val.clone())?),
                Some(pair) if pair.len() == 2 => {
                    (self.settle(pair[0].clone())?, self.settle(pair[1].clone())?)
                }
                Some(_) => {
                    return self.fail_noted(
                        ErrorKind::Syntax,
                        "E0222",
                        "an axis of `ti.ndrange` is an integer or a pair (begin, end)",
                        "the axes of a shape are several arguments: `ti.ndrange(*x.shape)`",
                    );
                }
            };
            for bound in [&pair.0, &pair.1] {
                let ty = self.expect_numeric(bound)?;
                if ty.scalar().is_none_or(|scalar| scalar.is_float()) {
                    return self.fail(
                        ErrorKind::Type,
                        "E0218",
                        format!("a bound of `ti.ndrange` must be an integer, not `{ty}`"),
                    );
                }
            }
            axes.push(pair);
        }
        let order = match args.keyword("axes").filter(|order| !order.is_none()) {
            Some(order) => self.axes_order(&order.clone(), axes.len())?,
            None => Rc::default(),
        };
        let axes = match order.is_empty() {
            true => axes,
            false => order.iter().map(|&axis| axes[axis].clone()).collect(),
        };
        Ok(Val::Iter(Rc::new(Iter::NdRange(axes, order))))
    }

    /// The order of axes that a tuple names, the outermost first: each of `n` once.
    fn axes_order(&mut self, order: &Val, n: usize) -> Res<Rc<[usize]>> {
        let mut out = Vec::new();
        let given = self.iterate_static(order)?;
        let fits = given.len() == n;
        for axis in given {
            let axis = self.static_int(&axis, "an axis of `axes=`")?;
            let at = usize::try_from(axis).ok();
            out.extend(at.filter(|at| *at < n && !out.contains(at)));
        }
        if fits && out.len() == n {
            return Ok(out.into());
        }
        let message = format!(
            "`axes=` of `ti.ndrange` names each of its {n} axes once, from 0, the outermost loop first"
        );
        self.fail(ErrorKind::Syntax, "E0222", message)
    }

    /// `zip(...)` of sequences.
    pub(super) fn zip(&mut self, args: &Args) -> Res<Val> {
        let columns = args
            .positional
            .iter()
            .map(|val| self.iterate_static(val))
            .collect::<Res<Vec<_>>>()?;
        let n = columns.iter().map(Vec::len).min().unwrap_or(0);
        let row = |k: usize| {
            Val::seq(
                columns.iter().map(|column| column[k].clone()).collect(),
                SeqKind::Tuple,
            )
        };
        Ok(Self::list((0..n).map(row).collect()))
    }

    /// `enumerate(...)` of a sequence.
    pub(super) fn enumerate(&mut self, args: &Args) -> Res<Val> {
        let items = self.iterate_static(args.get(0, "x").unwrap_or(&Val::none()))?;
        let start = match args.get(1, "start").cloned() {
            Some(start) => self.static_int(&start, "the start of `enumerate`")?,
            None => 0,
        };
        let pair = |(k, item)| Val::seq(vec![Val::int(start + k as i128), item], SeqKind::Tuple);
        Ok(Self::list(
            items.into_iter().enumerate().map(pair).collect(),
        ))
    }

    /// `len(...)`.
    pub(super) fn length(&mut self, name: &str, args: &Args) -> Res<Val> {
        let x = self.arg(name, args, 0, "x")?.clone();
        if let Val::Dict(entries) = &x {
            return Ok(Val::int(entries.len() as i128));
        }
        if let Val::Neighbours(relation, at) = &x {
            return self.n_neighbours(relation, *at);
        }
        if let Val::Struct(ty, _) = &x {
            return Ok(Val::int(ty.members.len() as i128));
        }
        match (x.items(), self.numeric_type(&x)) {
            (Some(items), _) => Ok(Val::int(items.len() as i128)),
            (None, Some(ty)) if ty.is_tensor() => Ok(Val::int(i128::from(ty.shape()[0]))),
            _ => self.call_python(&Known::Builtin("len".into()), args),
        }
    }

    /// `sum(...)`: the items of a sequence by an operator.
    pub(super) fn reduced_by(&mut self, name: &str, op: BinaryOp, args: &Args) -> Res<Val> {
        let x = self.arg(name, args, 0, "x")?.clone();
        let items = self.iterate_static(&x)?;
        let start = args.get(1, "start").cloned().unwrap_or(Val::int(0));
        items
            .iter()
            .try_fold(start, |so_far, item| self.binary(op, &so_far, item))
    }

    /// `any(...)` or `all(...)`, of a tensor or a sequence.
    pub(super) fn any_or_all(&mut self, name: &str, any: bool, args: &Args) -> Res<Val> {
        match args.get(0, "x") {
            Some(val) if self.numeric_type(val).is_some_and(ir::Type::is_tensor) => {
                let none = Args {
                    positional: Vec::new(),
                    keywords: Vec::new(),
                };
                self.tensor_method(&val.clone(), name, &none)
            }
            _ => {
                let x = self.arg(name, args, 0, "x")?.clone();
                let items = self.iterate_static(&x)?;
                let mut truth = None;
                for item in &items {
                    if let Val::Known(known) = item {
                        let holds = fold::truth(self.host, known);
                        if self.hosted(holds)? == any {
                            return Ok(Val::Known(Known::Bool(any)));
                        }
                        continue;
                    }
                    let holds = self.condition(item)?;
                    let op = if any {
                        ir::BinaryOp::Or
                    } else {
                        ir::BinaryOp::And
                    };
                    truth = Some(match truth {
                        None => holds,
                        Some(truth) => self.builder().binary(op, truth, holds),
                    });
                }
                Ok(truth.map_or(Val::Known(Known::Bool(!any)), Val::Value))
            }
        }
    }
}
