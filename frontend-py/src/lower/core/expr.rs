//! Expressions.

use std::rc::Rc;

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::{Op, Type};

use crate::ast::{BinaryOp, CompareOp, Expr, ExprKind, FPart, Generator, UnaryOp};
use crate::fold;
use crate::host::{FieldRef, Known, StructFieldRef};
use crate::lower::values::{SeqKind, Val};
use crate::lower::{Control, Lower, Res};
use crate::scope::BindingKind;

impl<'a> Lower<'a, '_> {
    pub(crate) fn expr(&mut self, expr: &Expr<'a>) -> Res<Val> {
        let outer = std::mem::replace(&mut self.range, expr.range);
        let result = self.deeper(|lower| lower.expr_kind(expr));
        self.range = outer;
        result
    }

    /// Several expressions, all of whose mistakes are reported; `*x` is spread.
    pub(crate) fn exprs(&mut self, exprs: &[Expr<'a>]) -> Res<Vec<Val>> {
        let mut vals = Vec::new();
        let mut failed = Ok(());
        for expr in exprs {
            if let ExprKind::Starred(inner) = expr.kind {
                match self.expr(inner).and_then(|val| self.iterate_static(&val)) {
                    Ok(items) => vals.extend(items),
                    Err(reported) => failed = Err(reported),
                }
            } else {
                match self.expr(expr) {
                    Ok(val) => vals.push(val),
                    Err(reported) => failed = Err(reported),
                }
            }
        }
        failed.map(|()| vals)
    }

    fn expr_kind(&mut self, expr: &Expr<'a>) -> Res<Val> {
        Ok(match expr.kind {
            ExprKind::None => Val::none(),
            ExprKind::Bool(value) => Val::Known(Known::Bool(value)),
            ExprKind::Int(value) => Val::int(value),
            ExprKind::Float(value) => Val::Known(Known::Float(value)),
            ExprKind::Str(text) => Val::Known(Known::str(text)),
            ExprKind::Name(name) => self.name(name)?,
            ExprKind::Attribute { value, attr } => {
                let val = self.expr(value)?;
                match self.attribute(val, attr, Some(value))? {
                    Val::Known(known) => Val::Known(named(known, attr)),
                    val => val,
                }
            }
            ExprKind::Subscript { value, index } => {
                let val = self.expr(value)?;
                self.item(val, value, index)?
            }
            ExprKind::Tuple(items) => Val::seq(self.exprs(items)?, SeqKind::Tuple),
            ExprKind::List(items) => Val::seq(self.exprs(items)?, SeqKind::List),
            ExprKind::Unary { op, operand } => {
                let operand = self.expr(operand)?;
                self.unary(op, operand)?
            }
            ExprKind::Binary { .. } => self.operators(expr)?,
            ExprKind::Bool2 { op, values } => self.bool_op(op, values)?,
            ExprKind::Compare { first, rest } => self.compare_chain(first, rest)?,
            ExprKind::IfElse {
                test,
                on_true,
                on_false,
            } => self.if_else(test, on_true, on_false)?,
            ExprKind::Call {
                func,
                args,
                keywords,
            } => self.call(func, args, keywords)?,
            ExprKind::Comprehension {
                element,
                generators,
            } => Val::seq(self.comprehended(element, generators)?, SeqKind::List),
            ExprKind::DictComprehension { pair, generators } => {
                self.dict_comprehension(pair, generators)?
            }
            ExprKind::FString(parts) => self.fstring(parts)?,
            ExprKind::Walrus { name, value } => {
                let val = self.expr(value)?;
                self.name_inside(name, val)?
            }
            ExprKind::Slice { .. } => {
                return self.fail(
                    ErrorKind::Syntax,
                    "E0102",
                    "a slice can only stand in an index",
                );
            }
            ExprKind::Starred(_) => {
                return self.fail(
                    ErrorKind::Syntax,
                    "E0102",
                    "`*` can only stand in a call or a list",
                );
            }
            ExprKind::Dict(items) => self.dict(items)?,
            ExprKind::Unsupported(what) => return self.unsupported(what),
        })
    }

    /// `of[index]`; `value` is the expression of `of`.
    pub(crate) fn item(&mut self, of: Val, value: &Expr<'a>, index: &Expr<'a>) -> Res<Val> {
        if let ExprKind::Attribute { attr, .. } = value.kind
            && matches!(attr, "grad" | "dual")
            && of.is_none()
        {
            return self.no_gradient(attr);
        }
        self.subscript(of, index)
    }

    /// A chain of operators such as `a + b + c`, from its left end, without recursion.
    fn operators(&mut self, expr: &Expr<'a>) -> Res<Val> {
        let mut chain = Vec::new();
        let mut at = *expr;
        while let ExprKind::Binary { op, lhs, rhs } = at.kind {
            chain.push((at.range, op, rhs));
            at = *lhs;
        }
        let mut so_far = self.expr(&at);
        for (range, op, rhs) in chain.into_iter().rev() {
            self.range = range;
            let lhs = so_far.and_then(|lhs| self.settle(lhs));
            let rhs = self.expr(rhs);
            so_far = match (lhs, rhs) {
                (Ok(lhs), Ok(rhs)) => self.binary(op, &lhs, &rhs),
                (Err(reported), _) | (_, Err(reported)) => Err(reported),
            };
        }
        so_far
    }

    pub(crate) fn unsupported<T>(&mut self, what: &str) -> Res<T> {
        let note = match what {
            "Global" | "Nonlocal" => {
                "a kernel cannot change Python variables: store values that it changes in a field, such as \
                 `ti.field(int, shape=())`"
            }
            _ => "kernels understand a part of Python; compute this outside and pass it in",
        };
        let message = format!("unsupported node \"{what}\"");
        self.fail_noted(ErrorKind::Syntax, "E0102", message, note)
    }

    pub(crate) fn name(&mut self, name: &str) -> Res<Val> {
        if let Some(binding) = self.scopes().get(name) {
            return match binding.val.clone() {
                Val::Poison(reported) => Err(reported),
                val => Ok(val),
            };
        }
        let scope = self.frame().scope;
        let found = self.host.lookup(scope, name);
        match self.hosted(found)? {
            Some(known) => Ok(Val::Known(named(known, name))),
            None => {
                let was_bound = self.scopes().was_bound(name);
                let message = format!("name `{name}` is not defined");
                if !was_bound {
                    return self.fail(ErrorKind::Name, "E0301", message);
                }
                let note = format!(
                    "`{name}` exists only in the block that first assigns it: assign it before the `if` or loop"
                );
                self.fail_noted(ErrorKind::Name, "E0301", message, note)
            }
        }
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, operand: Val) -> Res<Val> {
        if let Some(result) = self.unary_method(op, &operand)? {
            return Ok(result);
        }
        match &operand {
            Val::Known(known) if !matches!(known, Known::Tensor(_)) => {
                let result = fold::unary(self.host, op, known);
                Ok(Val::Known(self.hosted(result)?))
            }
            Val::Seq(..) if op != UnaryOp::Not => self.no_operator(op.symbol(), &operand, None),
            _ => self.unary_value(op, &operand),
        }
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, lhs: &Val, rhs: &Val) -> Res<Val> {
        if let Some(result) = self.binary_method(op, lhs, rhs)? {
            return Ok(result);
        }
        if let (Val::Known(l), Val::Known(r)) = (lhs, rhs)
            && !matches!(l, Known::Tensor(_) | Known::Field(_))
            && !matches!(r, Known::Tensor(_) | Known::Field(_))
        {
            let result = fold::binary(self.host, op, l, r);
            return Ok(Val::Known(self.hosted(result)?));
        }
        match self.sequence_binary(op, lhs, rhs)? {
            Some(result) => Ok(result),
            None => self.arith(op, lhs, rhs),
        }
    }

    fn compare_chain(&mut self, first: &Expr<'a>, rest: &[(CompareOp, Expr<'a>)]) -> Res<Val> {
        let lhs = self.expr(first)?;
        let mut lhs = self.settle(lhs)?;
        let mut result: Option<Val> = None;
        for (op, rhs) in rest {
            // As in Python, what is false already is not looked at further.
            if let Some(Val::Known(Known::Bool(false))) = result {
                break;
            }
            let rhs = self.expr(rhs)?;
            let rhs = self.settle(rhs)?;
            let one = self.compare(*op, &lhs, &rhs)?;
            result = Some(match result {
                None => one,
                Some(Val::Known(Known::Bool(true))) => one,
                Some(so_far) => self.arith(BinaryOp::BitAnd, &so_far, &one)?,
            });
            lhs = rhs;
        }
        Ok(result.expect("a comparison has two sides"))
    }

    pub(crate) fn compare(&mut self, op: CompareOp, lhs: &Val, rhs: &Val) -> Res<Val> {
        if let Some(result) = self.compare_method(op, lhs, rhs)? {
            return Ok(result);
        }
        match (lhs, rhs) {
            (Val::Known(l), Val::Known(r))
                if !matches!((l, r), (Known::Tensor(_), _) | (_, Known::Tensor(_))) =>
            {
                let result = fold::compare(self.host, op, l, r);
                Ok(Val::Known(Known::Bool(self.hosted(result)?)))
            }
            (_, Val::Dict(entries)) if matches!(op, CompareOp::In | CompareOp::NotIn) => {
                let found = self.dict_get(entries, lhs)?.is_some();
                Ok(Val::Known(Known::Bool(found == (op == CompareOp::In))))
            }
            // A value computed at run time is never `None`: under `ti.static` the comparison is folded,
            // elsewhere the running kernel computes it.
            (_, Val::Known(Known::None)) | (Val::Known(Known::None), _)
                if self.state.in_static
                    && matches!(
                        op,
                        CompareOp::Is | CompareOp::IsNot | CompareOp::Eq | CompareOp::Ne
                    ) =>
            {
                Ok(Val::Known(Known::Bool(matches!(
                    op,
                    CompareOp::IsNot | CompareOp::Ne
                ))))
            }
            _ => match self.sequence_compare(op, lhs, rhs)? {
                Some(result) => Ok(result),
                None => self.compare_values(op, lhs, rhs),
            },
        }
    }

    /// Lowers into a new region, as an arm of an `if`; the region still needs its terminator.
    pub(crate) fn arm<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Res<T>,
    ) -> Res<(aerogel_ir::Region, T)> {
        let region = self.state.func.new_region(&[]);
        self.state.control.push(Control::If);
        self.scopes().enter();
        let result = self.within(region, body);
        self.scopes().leave();
        self.state.control.pop();
        Ok((region, result?))
    }

    /// Ends both arms with their values and makes the `if`.
    pub(crate) fn finish_if(
        &mut self,
        cond: aerogel_ir::Value,
        then: (aerogel_ir::Region, Vec<aerogel_ir::Value>),
        otherwise: (aerogel_ir::Region, Vec<aerogel_ir::Value>),
    ) -> Vec<Val> {
        let types: Vec<Type> = then.1.iter().map(|&value| self.ty(value)).collect();
        let ((then, then_values), (otherwise, otherwise_values)) = (then, otherwise);
        self.within(then, |lower| lower.builder().yields(then_values));
        self.within(otherwise, |lower| lower.builder().yields(otherwise_values));
        let inst = self.builder().inst(
            Op::If {
                cond,
                then,
                otherwise,
            },
            &types,
        );
        self.state.func.insts[inst]
            .results
            .iter()
            .map(|&value| Val::Value(value))
            .collect()
    }

    /// What a comprehension makes, in order.
    pub(crate) fn comprehended(
        &mut self,
        element: &Expr<'a>,
        generators: &[Generator<'a>],
    ) -> Res<Vec<Val>> {
        let mut items = Vec::new();
        self.scopes().enter();
        let done = self.comprehension(element, generators, &mut items);
        self.scopes().leave();
        done.map(|()| items)
    }

    fn comprehension(
        &mut self,
        element: &Expr<'a>,
        generators: &[Generator<'a>],
        items: &mut Vec<Val>,
    ) -> Res<()> {
        let Some((generator, rest)) = generators.split_first() else {
            self.turn()?;
            let item = self.expr(element)?;
            items.push(self.settle(item)?);
            return Ok(());
        };
        let iter = self.expr(&generator.iter)?;
        for item in self.iterate_static(&iter)? {
            self.bind_target(&generator.target, &item, BindingKind::Alias)?;
            let mut keep = true;
            for test in generator.ifs {
                let test_val = self.expr(test)?;
                let Val::Known(known) = &test_val else {
                    self.range = test.range;
                    return self.fail(
                        ErrorKind::Syntax,
                        "E0104",
                        "the condition of a comprehension must be known while compiling",
                    );
                };
                let truth = fold::truth(self.host, known);
                keep = keep && self.hosted(truth)?;
            }
            if keep {
                self.comprehension(element, rest, items)?;
            }
        }
        Ok(())
    }

    /// An f-string whose values are all known is a string.
    fn fstring(&mut self, parts: &[FPart<'a>]) -> Res<Val> {
        let mut text = String::new();
        for part in parts {
            match part {
                FPart::Text(literal) => text.push_str(literal),
                FPart::Value { expr, spec, debug } => {
                    text.push_str(debug.unwrap_or_default());
                    let val = self.expr(expr)?;
                    let Val::Known(known) = &val else {
                        self.range = expr.range;
                        return self.fail_noted(
                            ErrorKind::Type,
                            "E0209",
                            "a string cannot hold a value that is computed when the kernel runs",
                            "only `print` and `assert` take such f-strings",
                        );
                    };
                    let formatted = fold::format(self.host, known, spec.unwrap_or_default());
                    text.push_str(&self.hosted(formatted)?);
                }
            }
        }
        Ok(Val::Known(Known::str(&text)))
    }

    /// An integer known while compiling.
    pub(crate) fn static_int(&mut self, val: &Val, what: &str) -> Res<i128> {
        match val {
            Val::Known(known) if known.as_int().is_some() => Ok(known.as_int().unwrap_or_default()),
            Val::Poison(reported) => Err(*reported),
            _ => {
                let found = self.describe(val);
                self.fail(
                    ErrorKind::Type,
                    "E0210",
                    format!("{what} must be an integer known while compiling, not {found}"),
                )
            }
        }
    }

    /// The scalar type that a value names: `ti.f32`, `int`, `float`, `bool`.
    pub(crate) fn dtype(&mut self, val: &Val) -> Res<ScalarType> {
        match self.as_dtype(val) {
            Some(ty) => Ok(ty),
            None => {
                let what = self.describe(val);
                self.fail(
                    ErrorKind::Type,
                    "E0211",
                    format!("a type such as `ti.f32` is needed here, not {what}"),
                )
            }
        }
    }

    pub(crate) fn as_dtype(&self, val: &Val) -> Option<ScalarType> {
        match val {
            Val::Known(Known::DType(ty)) => Some(*ty),
            Val::Known(Known::Builtin(name)) => match &**name {
                "int" => Some(self.config.default_ip),
                "float" => Some(self.config.default_fp),
                "bool" => Some(ScalarType::U1),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A field that has no name of its own is called what the kernel calls it.
fn named(known: Known, name: &str) -> Known {
    match known {
        Known::Field(field) if field.name.is_empty() => Known::Field(Rc::new(FieldRef {
            name: name.to_owned(),
            ..(*field).clone()
        })),
        Known::StructField(field) if field.name.is_empty() => {
            Known::StructField(Rc::new(StructFieldRef {
                name: name.to_owned(),
                ..(*field).clone()
            }))
        }
        other => other,
    }
}
