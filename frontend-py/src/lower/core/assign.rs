//! Assignment: names, elements, tuples, and the augmented forms.

use aerogel_base::{ErrorKind, Scalar, ScalarType};
use aerogel_ir::{AtomicOp, Op, ParamType, Type, Value};

use crate::ast::{BinaryOp, Expr, ExprKind, TextRange};
use crate::host::Known;
use crate::infer::int_range;
use crate::lower::calls::Args;
use crate::lower::values::number::elem;
use crate::lower::values::structs::{is_storage, struct_type};
use crate::lower::values::{Origin, Place, SeqKind, Val};
use crate::lower::{Lower, Res};
use crate::scope::BindingKind;

/// The methods that `x[i, j] += v` and `x[i, j] -= v` call, of a struct that has them. They take the struct, the
/// indices and the value. No struct of the user's has a method of that name.
pub(crate) const ADD_AT: &str = "_aerogel_add_at";
const SUB_AT: &str = "_aerogel_sub_at";

fn cannot_use(given: Type, wanted: Type) -> String {
    format!("cannot use `{given}` as `{wanted}`: the shapes differ")
}

impl<'a> Lower<'a, '_> {
    pub(crate) fn assign(&mut self, targets: &[Expr<'a>], value: &Expr<'a>) -> Res<()> {
        let is_static = self.is_static_call(value);
        let val = self.expr(value)?;
        // The right side is complete before anything is stored, so `a, b = b, a` swaps.
        let val = if is_static { val } else { self.settle(val)? };
        for target in targets {
            self.range = target.range;
            if is_static {
                self.bind_target(target, &val, BindingKind::Alias)?
            } else {
                self.assign_to(target, &val, value.range)?
            }
        }
        Ok(())
    }

    /// `from` is the right side, where a value that does not fit is shown.
    fn assign_to(&mut self, target: &Expr<'a>, val: &Val, from: TextRange) -> Res<()> {
        match target.kind {
            ExprKind::Name(name) => match self.scopes().get(name).cloned() {
                Some(binding) if binding.kind == BindingKind::Variable => {
                    self.check_shape(&binding.val, val, from, cannot_use)?;
                    self.put(&binding.val, val, from)
                }
                Some(_) => self.assign_name(name, val),
                None => {
                    self.range = from;
                    self.assign_name(name, val)
                }
            },
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                if let Some(starred) = targets
                    .iter()
                    .find(|e| matches!(e.kind, ExprKind::Starred(_)))
                {
                    self.range = starred.range;
                    let message = "`*` cannot stand on the left of an assignment in kernels";
                    return self.fail(ErrorKind::Syntax, "E0105", message);
                }
                let items = self.unpack(val, targets.len())?;
                let mut done = Ok(());
                for (target, item) in targets.iter().zip(items) {
                    self.range = target.range;
                    done = self.assign_to(target, &item, from).and(done);
                }
                done
            }
            ExprKind::Subscript { .. } | ExprKind::Attribute { .. } => {
                if self.new_member(target, val)? {
                    return Ok(());
                }
                let place = match target.kind {
                    ExprKind::Subscript { value: of, index } => {
                        let outer = self.range;
                        self.range = of.range;
                        let container = self.expr(of)?;
                        self.range = outer;
                        if self.set_item(&container, index, val)? {
                            return Ok(());
                        }
                        self.changed_item(container, of, index)?
                    }
                    _ => self.target(target)?,
                };
                self.check_shape(&place, val, from, cannot_use)?;
                self.put(&place, val, from)
            }
            _ => self.fail(ErrorKind::Syntax, "E0105", "this cannot be assigned to"),
        }
    }

    /// What an expression on the left of an assignment stands for, where Python would let it be changed.
    fn target(&mut self, target: &Expr<'a>) -> Res<Val> {
        match target.kind {
            ExprKind::Subscript { value, index } => {
                let of = self.expr(value)?;
                self.range = target.range;
                self.changed_item(of, value, index)
            }
            ExprKind::Attribute { value, attr } => {
                let object = self.expr(value)?;
                self.range = target.range;
                self.expect_storage(&object, value, attr)?;
                let place = self.attribute(object, attr, value)?;
                if matches!(place, Val::Place(Place::Elements { .. })) && chooses_twice(attr) {
                    self.range = target.range;
                    let message =
                        format!("`{attr}` chooses a component twice: it cannot be assigned to");
                    return self.fail(ErrorKind::Syntax, "E0215", message);
                }
                Ok(place)
            }
            _ => self.expr(target),
        }
    }

    /// `of[index]`, which is to be changed; `value` is the expression of `of`.
    fn changed_item(&mut self, of: Val, value: &Expr<'a>, index: &Expr<'a>) -> Res<Val> {
        if let Val::Seq(_, SeqKind::Tuple) | Val::Known(Known::Tuple(_)) = of {
            let message = "the items of a tuple cannot be assigned to";
            let note = "make a list or a vector instead: `[x, y]`, `ti.Vector([x, y])`";
            return self.fail_noted(ErrorKind::Syntax, "E0215", message, note);
        }
        self.expect_elements_to_change(&of, value)?;
        self.item(of, value, index)
    }

    /// Stores: what is wrong with the value is shown where that is written, what is wrong with the place at the
    /// target.
    fn put(&mut self, to: &Val, val: &Val, from: TextRange) -> Res<()> {
        let target = self.range;
        if !is_storage(to) {
            return self.store_val(to, val);
        }
        self.range = from;
        let Val::Place(place) = to else {
            return self.store_val(to, val);
        };
        let ty = self.expect_numeric(to)?;
        self.warn_of_loss("assignment", ty, val);
        let value = self.convert(val, ty)?;
        self.report_loss(val, value);
        self.range = target;
        self.store(place, &Val::Value(value))
    }

    /// Warns where a place has not all the values of what goes there. A constant takes the place's type: it is lost
    /// where it is out of its range, and a float where the place is an integer.
    pub(crate) fn warn_of_loss(&mut self, what: &str, to: Type, val: &Val) {
        let given = self.numeric_type(val).and_then(Type::elem);
        let (Some(to), Some(from)) = (to.elem(), given) else {
            return;
        };
        let out_of_range = val.known().and_then(|known| out_of_range(known, to));
        let cause = match out_of_range {
            Some(number) => format!("{number} is out of the range of `{to}`"),
            None if to.is_int() && from.is_float() => format!("{to} <- {from}"),
            None if val.known().is_none() && to.promote(from) != to => format!("{to} <- {from}"),
            None => return,
        };
        self.warn(format!("{what} may lose precision: {cause}"));
    }

    /// That a tensor has the shape of the place it goes to; if not, it is shown where it is made.
    fn check_shape(
        &mut self,
        to: &Val,
        val: &Val,
        from: TextRange,
        message: impl FnOnce(Type, Type) -> String,
    ) -> Res<()> {
        if let Some(wanted) = struct_type(to) {
            self.range = from;
            return self.check_struct(&wanted, val);
        }
        if let (Val::Place(_), Some(wanted), Some(given)) =
            (to, self.numeric_type(to), self.numeric_type(val))
            && given.is_tensor()
            && given.shape() != wanted.shape()
        {
            self.range = from;
            let label = format!("this is `{given}`");
            let mistake = self.mistake(ErrorKind::Type, "E0203", message(given, wanted));
            return Err(self.report(mistake.label(label)));
        }
        Ok(())
    }

    /// Makes the names in `target` stand for parts of `val`, without storage of their own.
    pub(crate) fn bind_target(
        &mut self,
        target: &Expr<'a>,
        val: &Val,
        kind: BindingKind,
    ) -> Res<()> {
        match target.kind {
            ExprKind::Name(name) => {
                self.scopes().bind(name, kind, val.clone());
                Ok(())
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let items = self.unpack(val, targets.len())?;
                for (target, item) in targets.iter().zip(items) {
                    self.bind_target(target, &item, kind)?;
                }
                Ok(())
            }
            _ => self.fail(ErrorKind::Syntax, "E0105", "only names can be bound here"),
        }
    }

    /// The `n` parts of a tuple, list or vector.
    fn unpack(&mut self, val: &Val, n: usize) -> Res<Vec<Val>> {
        let items = match val.items() {
            Some(items) => items,
            None => self.iterate_static(val)?,
        };
        if items.len() != n {
            let message = format!("{} values cannot be unpacked into {n} names", items.len());
            return self.fail(ErrorKind::Syntax, "E0213", message);
        }
        Ok(items)
    }

    pub(crate) fn assign_name(&mut self, name: &str, val: &Val) -> Res<()> {
        let Some(binding) = self.scopes().get(name).cloned() else {
            let variable = match self.variable(val) {
                Ok(variable) => variable,
                Err(reported) => {
                    self.scopes()
                        .bind(name, BindingKind::Variable, Val::Poison(reported));
                    return Err(reported);
                }
            };
            self.scopes().bind(name, BindingKind::Variable, variable);
            return Ok(());
        };
        let (message, note) = match binding.kind {
            BindingKind::Variable => return self.store_val(&binding.val, val),
            BindingKind::Alias if !is_storage(&binding.val) => (
                format!("`{name}` is known while compiling and cannot be assigned to"),
                "use another name",
            ),
            BindingKind::Alias => return self.store_val(&binding.val, val),
            BindingKind::LoopIndex => (
                format!("the loop index `{name}` cannot be assigned to"),
                "copy it into a variable first",
            ),
            BindingKind::Parameter => (
                format!("the parameter `{name}` cannot be assigned to"),
                "copy it into a variable first",
            ),
        };
        self.fail_noted(ErrorKind::Syntax, "E0106", message, note)
    }

    /// Fresh storage that holds `val`; what is not a number stays what it is.
    pub(crate) fn variable(&mut self, val: &Val) -> Res<Val> {
        match val {
            Val::Seq(items, kind) => {
                let items = items
                    .iter()
                    .map(|item| self.variable(item))
                    .collect::<Res<Vec<_>>>()?;
                Ok(Val::Seq(items.into(), *kind))
            }
            Val::Known(Known::Tuple(items)) if items.iter().any(Known::is_number) => {
                let items = items
                    .iter()
                    .map(|item| self.variable(&Val::Known(item.clone())))
                    .collect::<Res<Vec<_>>>()?;
                Ok(Val::Seq(items.into(), SeqKind::Tuple))
            }
            Val::Known(Known::List(items)) if items.iter().any(Known::is_number) => {
                let items = items
                    .iter()
                    .map(|item| self.variable(&Val::Known(item.clone())))
                    .collect::<Res<Vec<_>>>()?;
                Ok(Val::Seq(items.into(), SeqKind::List))
            }
            Val::Struct(..) | Val::Cell(..) | Val::Known(Known::Struct(_)) => {
                let (ty, members) = self.struct_parts(val)?.expect("it is a struct");
                let mut variables = Vec::new();
                for (member, val) in ty.members.iter().zip(&members) {
                    let val = self.coerce(val, member.ty.as_ref())?;
                    variables.push(self.variable(&val)?);
                }
                Ok(Val::Struct(ty, variables.into()))
            }
            Val::Value(_) | Val::Place(_) => self.local(val),
            Val::Known(Known::Tensor(_)) => self.local(val),
            Val::Known(Known::Object(_)) if self.numeric_type(val).is_some() => self.local(val),
            Val::Known(known) if known.is_number() => self.local(val),
            Val::Known(_) | Val::Array(_) => Ok(val.clone()),
            Val::Dict(entries) => {
                let mut variables = Vec::new();
                for (key, val) in entries.iter() {
                    variables.push((key.clone(), self.variable(val)?));
                }
                Ok(Val::Dict(variables.into()))
            }
            Val::Element(of, at) => Ok(Val::Element(of.clone(), self.variable(at)?.into())),
            Val::Neighbours(..) => Ok(val.clone()),
            Val::Iter(_) | Val::List(_) | Val::Method(..) => {
                let what = self.describe(val);
                self.fail(
                    ErrorKind::Type,
                    "E0214",
                    format!("{what} cannot be kept in a variable"),
                )
            }
            Val::Poison(reported) => Err(*reported),
        }
    }

    fn local(&mut self, val: &Val) -> Res<Val> {
        let ty = self.expect_numeric(val)?;
        let value = self.convert(val, ty)?;
        let place = self.builder().local(ty);
        self.builder().store(place, value);
        let in_parallel = self.in_parallel();
        Ok(Val::Place(Place::Ref {
            place,
            origin: Origin::Local { in_parallel },
        }))
    }

    pub(crate) fn store_val(&mut self, target: &Val, val: &Val) -> Res<()> {
        match target {
            Val::Place(place) => {
                let place = place.clone();
                self.store(&place, val)
            }
            Val::Seq(targets, _) => {
                let items = self.unpack(val, targets.len())?;
                for (target, item) in targets.iter().zip(&items) {
                    self.store_val(target, item)?;
                }
                Ok(())
            }
            Val::Struct(..) | Val::Cell(..) => self.store_struct(target, val),
            Val::Element(of, at) => self.store_element(of, at, val),
            Val::Poison(reported) => Err(*reported),
            _ => self.no_storage(target),
        }
    }

    pub(crate) fn store(&mut self, place: &Place, val: &Val) -> Res<()> {
        self.note_write(place);
        match place {
            Place::Ref { place, .. } => {
                let ty = self.ty(*place).pointee().expect("a place is storage");
                let value = self.convert(val, ty)?;
                self.builder().store(*place, value);
            }
            Place::Elements { refs, ty, .. } => {
                let value = self.convert(val, *ty)?;
                for (&place, value) in refs.iter().zip(self.split(value)) {
                    self.builder().store(place, value);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn note_write(&mut self, place: &Place) {
        if let Origin::Array(arg) = place.origin()
            && let ParamType::Array { read_only, .. } =
                &mut self.func.params[arg.as_u32() as usize].ty
        {
            *read_only = false;
        }
    }

    pub(crate) fn assign_annotated(
        &mut self,
        target: &Expr<'a>,
        annotation: &Expr<'a>,
        value: Option<&Expr<'a>>,
    ) -> Res<()> {
        let wanted = match self.expr(annotation)? {
            Val::Known(ty @ (Known::TensorType { .. } | Known::StructType(_))) => ty,
            other => Known::DType(self.dtype(&other)?),
        };
        let name = match target.kind {
            ExprKind::Name(name) => name,
            ExprKind::Attribute { attr, .. } if !self.making.is_empty() => attr,
            _ => {
                return self.fail(
                    ErrorKind::Syntax,
                    "E0105",
                    "only a name can be declared with a type",
                );
            }
        };
        let Some(value) = value else {
            return self.fail(
                ErrorKind::Syntax,
                "E0107",
                format!("`{name}` is declared without a value"),
            );
        };
        let val = self.expr(value)?;
        // A scalar type is that of the elements.
        let val = match (&wanted, self.numeric_type(&val)) {
            (Known::DType(elem), Some(ty)) if ty.is_tensor() => {
                Val::Value(self.convert(&val, ty.with_elem(*elem))?)
            }
            _ => self.coerce(&val, Some(&wanted))?,
        };
        if !matches!(target.kind, ExprKind::Name(_)) {
            return self.assign_to(target, &val, value.range);
        }
        if self.scopes().get(name).is_some() {
            return self.fail(
                ErrorKind::Syntax,
                "E0108",
                format!("`{name}` has a type already"),
            );
        }
        self.assign_name(name, &val)
    }

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
                    "`{name}` is a value of Python, known while compiling: keep what a kernel changes in a field, \
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
                let sum = self.arith(op, &Val::Value(old), &Val::Value(value))?;
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

/// Whether a swizzle such as `xyx` has a letter twice.
fn chooses_twice(attr: &str) -> bool {
    attr.char_indices().any(|(at, c)| attr[..at].contains(c))
}

/// The number, or one of the elements, that a type has no value near.
fn out_of_range(known: &Known, ty: ScalarType) -> Option<String> {
    let overflows =
        |value: f64| value.is_finite() && !Scalar::float(ty, value).as_f64().is_finite();
    match known {
        Known::Int(value) if ty.is_float() => overflows(*value as f64).then(|| value.to_string()),
        // Of a truth value it is asked only whether it is zero.
        Known::Int(value) if ty != ScalarType::U1 => {
            let (lo, hi) = int_range(ty);
            (!(lo..=hi).contains(value)).then(|| value.to_string())
        }
        Known::Float(value) if ty.is_float() => overflows(*value).then(|| format!("{value:?}")),
        Known::Tuple(items) | Known::List(items) => {
            items.iter().find_map(|item| out_of_range(item, ty))
        }
        Known::Tensor(tensor) => tensor
            .elements
            .iter()
            .find_map(|element| out_of_range(element, ty)),
        _ => None,
    }
}
