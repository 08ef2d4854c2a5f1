//! Operators on lists and tuples: what Python has, `[x, y] * 2` and `(x, y) < (z, w)`.
//!
//! Beside a vector, or a number that is computed, a list stands for a vector of its items. Everything else that Python
//! has no meaning for is a mistake.

use aerogel_base::ErrorKind;

use crate::ast::{BinaryOp, CompareOp};
use crate::fold;
use crate::host::Known;
use crate::lower::core::limits::MAX_ITEMS;
use crate::lower::values::number::elem;
use crate::lower::values::{SeqKind, Val};
use crate::lower::{Lower, Res};

impl Val {
    /// Whether it is a tuple or a list, and which.
    pub(crate) fn kind(&self) -> Option<SeqKind> {
        match self {
            Val::Seq(_, kind) => Some(*kind),
            Val::Known(Known::Tuple(_)) => Some(SeqKind::Tuple),
            Val::Known(Known::List(_)) => Some(SeqKind::List),
            _ => None,
        }
    }
}

impl Lower<'_, '_> {
    /// `lhs op rhs` where one is a list or a tuple; nothing if it stands for a vector.
    pub(crate) fn sequence_binary(
        &mut self,
        op: BinaryOp,
        lhs: &Val,
        rhs: &Val,
    ) -> Res<Option<Val>> {
        match (lhs.kind(), rhs.kind()) {
            (None, None) => Ok(None),
            (Some(a), Some(b)) if op == BinaryOp::Add && a == b => {
                let items = lhs.items().into_iter().chain(rhs.items()).flatten();
                Ok(Some(Val::seq(items.collect(), a)))
            }
            (Some(_), Some(_)) => self.no_operator(op.symbol(), lhs, Some(rhs)),
            (Some(_), None) => self.sequence_with(op, lhs, rhs, (lhs, rhs)),
            (None, Some(_)) => self.sequence_with(op, rhs, lhs, (lhs, rhs)),
        }
    }

    /// A list or tuple, and what is not one; `written` is both in order.
    fn sequence_with(
        &mut self,
        op: BinaryOp,
        seq: &Val,
        other: &Val,
        written: (&Val, &Val),
    ) -> Res<Option<Val>> {
        let number = match other {
            Val::Known(known) => self.host.number(known).or(Some(known.clone())),
            _ => None,
        };
        let times = number.as_ref().and_then(Known::as_int);
        if let (BinaryOp::Mul, Some(times)) = (op, times) {
            let items = seq.items().unwrap_or_default();
            let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
            if items.len().saturating_mul(times) > MAX_ITEMS {
                let message = format!("a list in a kernel has at most {MAX_ITEMS} items");
                return self.fail(ErrorKind::Compilation, "E0129", message);
            }
            let kind = seq.kind().unwrap_or(SeqKind::List);
            let repeated = (0..times).flat_map(|_| items.iter().cloned()).collect();
            return Ok(Some(Val::seq(repeated, kind)));
        }
        if let Val::Poison(reported) = other {
            return Err(*reported);
        }
        match self.numeric_type(other) {
            Some(ty) if ty.is_tensor() => Ok(None),
            Some(ty) if op == BinaryOp::Mul && elem(ty).is_int() => self.fail_noted(
                ErrorKind::Type,
                "E0210",
                "how often a list is repeated must be known while compiling",
                "to multiply each element write `ti.Vector([...]) * x`",
            ),
            Some(_) if other.known().is_none() => Ok(None),
            _ => self.no_operator(op.symbol(), written.0, Some(written.1)),
        }
    }

    /// That Python has no such operator for a list or a tuple.
    pub(crate) fn no_operator<T>(&mut self, op: &str, lhs: &Val, rhs: Option<&Val>) -> Res<T> {
        for val in [Some(lhs), rhs].into_iter().flatten() {
            if let Val::Poison(reported) = val {
                return Err(*reported);
            }
        }
        let of = match rhs {
            Some(rhs) => format!("{} and {}", self.describe(lhs), self.describe(rhs)),
            None => self.describe(lhs),
        };
        let message = format!("`{op}` is not defined for {of} in Python");
        let note = "for element-wise arithmetic write `ti.Vector([...])`";
        self.fail_noted(ErrorKind::Type, "E0206", message, note)
    }

    /// `lhs op rhs` where a list or a tuple is compared or searched for an item; nothing if it stands for a vector.
    pub(crate) fn sequence_compare(
        &mut self,
        op: CompareOp,
        lhs: &Val,
        rhs: &Val,
    ) -> Res<Option<Val>> {
        if let Val::Poison(reported) = lhs {
            return Err(*reported);
        }
        let truth = |truth| Ok(Some(Val::Known(Known::Bool(truth))));
        if matches!(op, CompareOp::In | CompareOp::NotIn) {
            let Some(items) = rhs.items() else {
                return Ok(None);
            };
            let mut found = Val::Known(Known::Bool(false));
            for item in &items {
                let same = self.same(lhs, item)?;
                found = self.either(&found, &same)?;
            }
            return match op {
                CompareOp::In => Ok(Some(found)),
                _ => self.opposite(&found).map(Some),
            };
        }
        let (Some(a), Some(b)) = (lhs.kind(), rhs.kind()) else {
            return Ok(None);
        };
        let (lhs, rhs) = (
            lhs.items().unwrap_or_default(),
            rhs.items().unwrap_or_default(),
        );
        match op {
            CompareOp::Eq | CompareOp::Ne if a != b || lhs.len() != rhs.len() => {
                truth(op == CompareOp::Ne)
            }
            CompareOp::Eq | CompareOp::Ne => {
                let mut all = Val::Known(Known::Bool(true));
                for (a, b) in lhs.iter().zip(&rhs) {
                    let same = self.same(a, b)?;
                    all = self.both(&all, &same)?;
                }
                match op {
                    CompareOp::Eq => Ok(Some(all)),
                    _ => self.opposite(&all).map(Some),
                }
            }
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge if a == b => {
                // From the end: the first items that differ decide, and if there are none the lengths.
                let is_strict = matches!(op, CompareOp::Lt | CompareOp::Gt);
                let less = matches!(op, CompareOp::Lt | CompareOp::Le);
                let lengths = match less {
                    true => lhs.len().cmp(&rhs.len()),
                    false => rhs.len().cmp(&lhs.len()),
                };
                let holds = lengths.is_lt() || lengths.is_eq() && !is_strict;
                let mut result = Val::Known(Known::Bool(holds));
                let strict = if less { CompareOp::Lt } else { CompareOp::Gt };
                let pairs: Vec<_> = lhs.iter().zip(&rhs).collect();
                for (a, b) in pairs.into_iter().rev() {
                    let (before, same) = (self.compare(strict, a, b)?, self.same(a, b)?);
                    let rest = self.both(&same, &result)?;
                    result = self.either(&before, &rest)?;
                }
                Ok(Some(result))
            }
            CompareOp::Is | CompareOp::IsNot => Ok(None),
            _ => {
                let (lhs, rhs) = (Val::seq(lhs, a), Val::seq(rhs, b));
                self.no_operator(op.symbol(), &lhs, Some(&rhs))
            }
        }
    }

    /// Whether two items are equal, as one boolean.
    fn same(&mut self, a: &Val, b: &Val) -> Res<Val> {
        let numbers =
            |lower: &Self, val: &Val| lower.numeric_type(val).is_some() && val.items().is_none();
        if !(a.known().is_some() && b.known().is_some())
            && numbers(self, a) != numbers(self, b)
            && !matches!((a, b), (Val::Poison(_), _) | (_, Val::Poison(_)))
            && [a, b].iter().any(|val| {
                val.items().is_some() || matches!(val, Val::Known(Known::None | Known::Str(_)))
            })
        {
            // A number is no list, no string and not `None`.
            return Ok(Val::Known(Known::Bool(false)));
        }
        let same = self.compare(CompareOp::Eq, a, b)?;
        match self.numeric_type(&same) {
            Some(ty) if ty.is_tensor() => {
                let message = format!("`==` of these is `{ty}`, not one boolean");
                let note = "combine the elements: `(a == b).all()`";
                self.fail_noted(ErrorKind::Type, "E0208", message, note)
            }
            _ => Ok(same),
        }
    }

    fn both(&mut self, a: &Val, b: &Val) -> Res<Val> {
        match (self.decided(a)?, self.decided(b)?) {
            (Some(true), _) => Ok(b.clone()),
            (_, Some(true)) => Ok(a.clone()),
            (Some(false), _) | (_, Some(false)) => Ok(Val::Known(Known::Bool(false))),
            (None, None) => self.arith(BinaryOp::BitAnd, a, b),
        }
    }

    fn either(&mut self, a: &Val, b: &Val) -> Res<Val> {
        match (self.decided(a)?, self.decided(b)?) {
            (Some(false), _) => Ok(b.clone()),
            (_, Some(false)) => Ok(a.clone()),
            (Some(true), _) | (_, Some(true)) => Ok(Val::Known(Known::Bool(true))),
            (None, None) => self.arith(BinaryOp::BitOr, a, b),
        }
    }

    fn opposite(&mut self, val: &Val) -> Res<Val> {
        self.unary(crate::ast::UnaryOp::Not, val.clone())
    }

    /// Whether something that is known holds.
    fn decided(&mut self, val: &Val) -> Res<Option<bool>> {
        match val {
            Val::Known(known) => {
                let truth = fold::truth(self.host, known);
                self.hosted(truth).map(Some)
            }
            _ => Ok(None),
        }
    }
}
