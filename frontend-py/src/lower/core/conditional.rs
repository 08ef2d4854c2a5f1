//! `a if c else b`, `and` and `or`. The result has the common type of both arms, even if the condition is known.
//!
//! ```text
//! v = 0 if FLAG else x        ; FLAG is true: v is 0 in the type of `x`
//! ```
//! The other arm is lowered into a discarded region, for its type only. If it cannot be lowered (`x.y` of a `None` that
//! the condition guards against), the selected value keeps its own type.

use aerogel_base::ErrorKind;
use aerogel_ir::Type;

use crate::ast::{BinaryOp, BoolOp, CompareOp, Expr};
use crate::fold;
use crate::host::Known;
use crate::lower::values::number::elem;
use crate::lower::values::structs::struct_type;
use crate::lower::values::{SeqKind, Val};
use crate::lower::{Control, Lower, Res};

impl<'a> Lower<'a, '_> {
    /// `a and b and c`: known operands decide now; others are evaluated only if those before leave it open.
    pub(crate) fn bool_op(&mut self, op: BoolOp, values: &[Expr<'a>]) -> Res<Val> {
        let (first, rest) = values.split_first().expect("`and` and `or` have operands");
        let lhs = self.expr(first)?;
        if rest.is_empty() {
            return Ok(lhs);
        }
        if let Val::Known(known) = &lhs {
            let truth = fold::truth(self.host, known);
            let goes_on = self.hosted(truth)? == (op == BoolOp::And);
            if goes_on {
                let rest = self.bool_op(op, rest)?;
                return self.with_type_of(rest, &lhs);
            }
            let other = self.type_only(&lhs, |lower| lower.bool_op(op, rest));
            return self.as_either(lhs, other);
        }
        self.range = first.range;
        let lhs = self.settle(lhs)?;
        let lt = self.expect_numeric(&lhs)?;
        if elem(lt).is_float() {
            let word = if op == BoolOp::And { "and" } else { "or" };
            let message = format!("`{word}` needs integers or booleans, not `{lt}`");
            return self.fail(ErrorKind::Type, "E0207", message);
        }
        if lt.is_tensor() {
            // Element by element, and by truth: 4 and 2 have no bit in common.
            let rhs = self.bool_op(op, rest)?;
            let zero = Val::int(0);
            let lhs = self.compare_values(CompareOp::Ne, &lhs, &zero)?;
            let rhs = self.compare_values(CompareOp::Ne, &rhs, &zero)?;
            let op = if op == BoolOp::And {
                BinaryOp::BitAnd
            } else {
                BinaryOp::BitOr
            };
            return self.arith(op, &lhs, &rhs);
        }
        if !self.config.short_circuit {
            let rhs = self.bool_op(op, rest)?;
            let op = if op == BoolOp::And {
                BinaryOp::BitAnd
            } else {
                BinaryOp::BitOr
            };
            return self.arith(op, &lhs, &rhs);
        }
        let cond = self.condition(&lhs)?;
        let (region, rhs) = self.arm(|lower| {
            let rhs = lower.bool_op(op, rest)?;
            lower.condition(&rhs)?;
            lower.settle(rhs)
        })?;
        let rt = self.expect_numeric(&rhs)?;
        let ty = Type::Scalar(elem(lt).promote(elem(rt)));
        let evaluated = self.within(region, |lower| lower.convert(&rhs, ty))?;
        let (other, kept) = self.arm(|lower| lower.convert(&lhs, ty))?;
        Ok(if op == BoolOp::And {
            self.finish_if(cond, (region, vec![evaluated]), (other, vec![kept]))
        } else {
            self.finish_if(cond, (other, vec![kept]), (region, vec![evaluated]))
        }
        .remove(0))
    }

    pub(crate) fn if_else(
        &mut self,
        test: &Expr<'a>,
        on_true: &Expr<'a>,
        on_false: &Expr<'a>,
    ) -> Res<Val> {
        let is_static = self.is_static_call(test);
        let cond = self.expr(test)?;
        if let Val::Known(known) = &cond
            && (is_static || !matches!(known, Known::Tensor(_)))
        {
            let truth = fold::truth(self.host, known);
            let (chosen, other) = match self.hosted(truth)? {
                true => (on_true, on_false),
                false => (on_false, on_true),
            };
            let chosen = self.expr(chosen)?;
            if is_static {
                return Ok(chosen);
            }
            let other = self.type_only(&chosen, |lower| lower.expr(other));
            return self.as_either(chosen, other);
        }
        let ct = self.expect_numeric(&cond)?;
        if ct.is_tensor() {
            let (on_true, on_false) = (self.expr(on_true)?, self.expr(on_false)?);
            return self.select(&cond, &on_true, &on_false);
        }
        let cond = self.condition(&cond)?;
        let then = self.arm(|lower| lower.expr(on_true).and_then(|val| lower.settle(val)));
        let otherwise = self.arm(|lower| lower.expr(on_false).and_then(|val| lower.settle(val)));
        let ((then, a), (otherwise, b)) = (then?, otherwise?);
        if struct_type(&a).is_some() && struct_type(&b).is_some() {
            return self.join(cond, (then, &a), (otherwise, &b));
        }
        let (at, bt) = (self.expect_numeric(&a)?, self.expect_numeric(&b)?);
        let elem = elem(at).promote(elem(bt));
        let shape = match (at.is_tensor(), bt.is_tensor()) {
            (false, true) => bt,
            _ => at,
        };
        let a = self.within(then, |lower| lower.operand(&a, elem, shape))?;
        let b = self.within(otherwise, |lower| lower.operand(&b, elem, shape))?;
        Ok(self
            .finish_if(cond, (then, vec![a]), (otherwise, vec![b]))
            .remove(0))
    }

    /// The value of an operand that is not chosen, for its type; nothing if its type does not influence that of
    /// `chosen`.
    fn type_only(&mut self, chosen: &Val, ask: impl FnOnce(&mut Self) -> Res<Val>) -> Option<Val> {
        if self.state.in_static || self.numeric_type(chosen).is_none() && chosen.items().is_none() {
            return None;
        }
        let region = self.state.func.new_region(&[]);
        let before = self.before(region);
        self.probing += 1;
        self.state.control.push(Control::If);
        self.scopes().enter();
        let here = self.state.statement;
        let depth = self.scopes().depth();
        self.state.statement = (region, 0, depth);
        let found = self.silently(|lower| lower.within(region, ask));
        self.state.statement = here;
        self.scopes().leave();
        self.state.control.pop();
        self.probing -= 1;
        self.take_back(before);
        found
    }

    fn as_either(&mut self, chosen: Val, other: Option<Val>) -> Res<Val> {
        match other {
            Some(other) => self.with_type_of(chosen, &other),
            None => Ok(chosen),
        }
    }

    /// `chosen` in a type that has the values of `other` too. Where both are known it stays what Python makes of it,
    /// and where they are of different shapes there is no such type.
    fn with_type_of(&mut self, chosen: Val, other: &Val) -> Res<Val> {
        if self.state.in_static || chosen.known().is_some() && other.known().is_some() {
            return Ok(chosen);
        }
        match (chosen.items(), other.items()) {
            (Some(items), Some(others)) if items.len() == others.len() => {
                let kind = chosen.kind().unwrap_or(SeqKind::List);
                let items = items.into_iter().zip(&others);
                let items = items
                    .map(|(item, other)| self.with_type_of(item, other))
                    .collect::<Res<Vec<_>>>()?;
                return Ok(Val::seq(items, kind));
            }
            (None, None) => {}
            _ => return Ok(chosen),
        }
        let (Some(ct), Some(ot)) = (self.numeric_type(&chosen), self.numeric_type(other)) else {
            return Ok(chosen);
        };
        let shape = match (ct.is_tensor(), ot.is_tensor()) {
            (true, true) if ct.shape() != ot.shape() => return Ok(chosen),
            (false, true) => ot,
            _ => ct,
        };
        let wanted = shape.with_elem(elem(ct).promote(elem(ot)));
        if wanted == ct {
            return Ok(chosen);
        }
        Ok(Val::Value(self.convert(&chosen, wanted)?))
    }
}
