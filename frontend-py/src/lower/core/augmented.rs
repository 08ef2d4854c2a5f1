//! Augmented assignments, such as `x += v`, and atomic operations.

use aerogel_base::ErrorKind;
use aerogel_ir::{AtomicOp, Op, Type, Value};

use crate::ast::{BinaryOp, Expr, ExprKind};
use crate::host::Known;
use crate::lower::calls::Args;
use crate::lower::values::number::elem;
use crate::lower::values::structs::{is_storage, struct_type};
use crate::lower::values::{Origin, Place, Val};
use crate::lower::{Lower, Res};
use crate::scope::BindingKind;

/// The methods that `x[i, j] += v` and `x[i, j] -= v` call, of a struct that has them. They take the struct, the
/// indices and the value. No struct of the user's has a method of that name.
pub(crate) const ADD_AT: &str = "_aerogel_add_at";
const SUB_AT: &str = "_aerogel_sub_at";

impl<'a> Lower<'a, '_> {
    pub(crate) fn assign_augmented(
        &mut self,
        target: &Expr<'a>,
        op: BinaryOp,
        value: &Expr<'a>,
    ) -> Res<()> {
        let place = match target.kind {
            ExprKind::Name(name) => {
                let found = self.scopes().get(name).cloned();
                if let Some(binding) = &found
                    && (matches!(
                        binding.kind,
                        BindingKind::LoopIndex | BindingKind::Parameter
                    ) || (binding.kind == BindingKind::Alias && !is_storage(&binding.val)))
                {
                    return self.assign_name(name, &Val::none());
                }
                self.expr(target)?
            }
            ExprKind::Subscript {
                value: written,
                index,
            } => {
                let of = self.expr(written)?;
                if struct_type(&of).is_some_and(|ty| ty.method(ADD_AT).is_some()) {
                    return self.change_at(of, index, op, value);
                }
                let outer = std::mem::replace(&mut self.range, target.range);
                let place = self.changed_item(of.clone(), written, index)?;
                self.range = outer;
                if self.operator_of(&of, "__setitem__")?.is_some() {
                    let val = self.expr(value)?;
                    let changed = match self.changed_object(&place, op, &val)? {
                        Some(changed) => changed,
                        None => {
                            let place = self.settle(place)?;
                            self.binary(op, &place, &val)?
                        }
                    };
                    self.set_item(&of, index, &changed)?;
                    return Ok(());
                }
                place
            }
            ExprKind::Attribute { .. } => self.target(target)?,
            _ => return self.fail(ErrorKind::Syntax, "E0105", "this cannot be assigned to"),
        };
        let val = self.expr(value)?;
        if let Some(changed) = self.changed_object(&place, op, &val)? {
            return self.store_val(&place, &changed);
        }
        if op != BinaryOp::MatMul && struct_type(&place).is_none() {
            self.check_shape(&place, &val, value.range, |given, wanted| match op {
                BinaryOp::Add => format!("cannot add `{given}` to `{wanted}`"),
                BinaryOp::Sub => format!("cannot subtract `{given}` from `{wanted}`"),
                _ => format!(
                    "cannot apply `{}=` to `{wanted}` and `{given}`: the shapes differ",
                    op.symbol()
                ),
            })?;
        }
        let Val::Place(place) = place else {
            self.range = target.range;
            if let Val::Method(..) = place {
                return self.no_storage(&place);
            }
            let what = self.describe(&place);
            let message = format!("{what} cannot be changed by `{}=`", op.symbol());
            let note = match (&place, &target.kind) {
                (Val::Known(Known::Field(field)), _) if field.ndim == 0 => {
                    format!("index it: `{}[None]`", field.name)
                }
                (Val::Known(Known::Field(field)), _) => {
                    format!("index it: `{}[i]`", field.name)
                }
                (Val::Known(known), ExprKind::Name(name)) if known.is_number() => format!(
                    "`{name}` is a Python value, a constant of the kernel: store values that a kernel modifies in a field, \
                     for instance `ti.field(int, shape=())`"
                ),
                _ => return self.fail(ErrorKind::Syntax, "E0215", message),
            };
            return self.fail_noted(ErrorKind::Syntax, "E0215", message, note);
        };
        let atomic = match op {
            BinaryOp::Add => Some(AtomicOp::Add),
            BinaryOp::Sub => Some(AtomicOp::Sub),
            BinaryOp::BitAnd => Some(AtomicOp::And),
            BinaryOp::BitOr => Some(AtomicOp::Or),
            BinaryOp::BitXor => Some(AtomicOp::Xor),
            _ => None,
        };
        let shared = match place.origin() {
            Origin::Local { in_parallel } => self.in_parallel() && !in_parallel,
            Origin::Field | Origin::Array(_) => true,
        };
        match atomic {
            Some(atomic) if shared => {
                if let Some(ty) = self.numeric_type(&Val::Place(place.clone())) {
                    self.warn_of_loss("augmented assignment", ty, &val);
                }
                self.atomic(atomic, &place, &val)?;
            }
            Some(_) => {
                // Like the atomic form, in the place's type: `a += 2.7` adds 2 to an integer.
                let old = self.load(&Val::Place(place.clone()))?;
                let ty = self.ty(old);
                self.warn_of_loss("augmented assignment", ty, &val);
                let value = self.convert(&val, ty)?;
                if matches!(op, BinaryOp::Add | BinaryOp::Sub) {
                    self.report_loss(&val, value);
                }
                let sum = match (op, &target.kind) {
                    (BinaryOp::Add, ExprKind::Name(name)) if self.scopes().is_carried(name) => {
                        self.accumulated(old, value)?
                    }
                    _ => self.arith(op, &Val::Value(old), &Val::Value(value))?,
                };
                self.store(&place, &sum)?;
            }
            None => {
                let old = self.load(&Val::Place(place.clone()))?;
                let new = self.binary(op, &Val::Value(old), &val)?;
                let ty = self.ty(old);
                self.warn_of_loss("augmented assignment", ty, &new);
                let stored = self.convert(&new, ty)?;
                self.report_loss(&new, stored);
                self.store(&place, &Val::Value(stored))?;
            }
        }
        Ok(())
    }

    /// `sum + term` as a step of an accumulation that an unrolled loop carries: a product may be fused into the sum, as
    /// in a loop that is not unrolled.
    fn accumulated(&mut self, sum: Value, term: Value) -> Res<Val> {
        let func = &self.state.func;
        if let Some(&Op::Binary {
            op: aerogel_ir::BinaryOp::Mul,
            lhs: a,
            rhs: b,
        }) = func.def_op(term)
            && func.elem(term).is_float()
            && func.ty(term) == func.ty(sum)
        {
            let (op, ty) = (Op::MulAdd { a, b, c: sum }, func.ty(sum));
            return Ok(Val::Value(self.builder().value(op, ty)));
        }
        self.arith(BinaryOp::Add, &Val::Value(sum), &Val::Value(term))
    }

    /// `of[index] += value` where `of`, a sparse matrix builder, has a method for it.
    fn change_at(&mut self, of: Val, index: &Expr<'a>, op: BinaryOp, value: &Expr<'a>) -> Res<()> {
        let method = match op {
            BinaryOp::Add => Some(ADD_AT),
            BinaryOp::Sub => Some(SUB_AT),
            _ => None,
        };
        let ty = struct_type(&of);
        let Some(method) = method.and_then(|name| ty?.method(name)) else {
            let message = format!(
                "an entry of a sparse matrix builder is changed by `+=` and `-=`, not by `{}=`",
                op.symbol()
            );
            return self.fail(ErrorKind::Syntax, "E0215", message);
        };
        let mut positional = match self.expr(index)? {
            Val::Seq(items, _) => items.to_vec(),
            Val::Known(Known::Tuple(items)) => items.iter().cloned().map(Val::Known).collect(),
            one => vec![one],
        };
        if positional.len() != 2 {
            self.range = index.range;
            let message = format!(
                "an entry of a sparse matrix builder takes 2 indices, got {}",
                positional.len()
            );
            return self.fail(ErrorKind::Type, "E0212", message);
        }
        positional.push(self.expr(value)?);
        let args = Args {
            positional,
            keywords: Vec::new(),
        };
        self.invoke(&method, Some(of), args)?;
        Ok(())
    }

    /// An atomic change of storage; the result is what it held before.
    pub(crate) fn atomic(&mut self, op: AtomicOp, place: &Place, val: &Val) -> Res<Value> {
        self.note_write(place);
        let ty = self.expect_numeric(&Val::Place(place.clone()))?;
        if matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor) && elem(ty).is_float() {
            return self.fail(
                ErrorKind::Type,
                "E0206",
                format!("a bitwise change needs an integer, not `{ty}`"),
            );
        }
        let value = self.convert(val, ty)?;
        if !matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor) {
            self.report_loss(val, value);
        }
        match place {
            Place::Ref { place, .. } => {
                let place = *place;
                let before = self.value(Op::Atomic { op, place, value }, ty);
                self.report_overflow_of_change(op, before, value);
                Ok(before)
            }
            Place::Elements { refs, .. } => {
                let elem = Type::Scalar(elem(ty));
                let values = self.split(value);
                let elems = refs
                    .iter()
                    .zip(values)
                    .map(|(&place, value)| {
                        let before = self.value(Op::Atomic { op, place, value }, elem);
                        self.report_overflow_of_change(op, before, value);
                        before
                    })
                    .collect();
                Ok(self.value(Op::TensorMake { elems }, ty))
            }
        }
    }

    /// A store that happens if the storage holds `expected`; the result is what it held before.
    pub(crate) fn compare_and_swap(
        &mut self,
        place: &Place,
        expected: &Val,
        val: &Val,
    ) -> Res<Value> {
        self.note_write(place);
        let ty = self.expect_numeric(&Val::Place(place.clone()))?;
        let &Place::Ref { place, .. } = place else {
            return self.no_swap(ty);
        };
        if ty.is_tensor() {
            return self.no_swap(ty);
        }
        let expected = self.convert(expected, ty)?;
        let value = self.convert(val, ty)?;
        let op = Op::Cas {
            place,
            expected,
            value,
        };
        Ok(self.value(op, ty))
    }

    fn no_swap(&mut self, ty: Type) -> Res<Value> {
        self.fail_noted(
            ErrorKind::Type,
            "E0206",
            format!("`atomic_cas` changes a number in one step, not a `{ty}`"),
            "choose a component, such as `x[i][0]`",
        )
    }
}
