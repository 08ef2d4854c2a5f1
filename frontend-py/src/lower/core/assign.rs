//! Assignment: names, elements, tuples, and the augmented forms.

use aerogel_base::{ErrorKind, Scalar, ScalarType};
use aerogel_ir::{ParamType, Type};

use crate::ast::{Expr, ExprKind, TextRange, mentions};
use crate::host::Known;
use crate::infer::int_range;
use crate::lower::values::structs::{is_storage, struct_type};
use crate::lower::values::{Origin, Place, SeqKind, Val};
use crate::lower::{Lower, Res};
use crate::scope::BindingKind;

fn cannot_use(given: Type, wanted: Type) -> String {
    format!("cannot use `{given}` as `{wanted}`: the shapes differ")
}

impl<'a> Lower<'a, '_> {
    pub(crate) fn assign(&mut self, targets: &[Expr<'a>], value: &Expr<'a>) -> Res<()> {
        let is_static = self.is_static_call(value);
        let val = match self.object_made_again(targets, value)? {
            Some(object) => object,
            None => self.expr(value)?,
        };
        // The right side is complete before anything is stored, so `a, b = b, a` swaps.
        let val = if is_static { val } else { self.settle(val)? };
        for target in targets {
            self.range = target.range;
            if is_static {
                self.bind_target(target, &val, BindingKind::Alias)?
            } else {
                self.assign_to(target, &val, value)?
            }
        }
        Ok(())
    }

    /// `value` is the right side, where a value that does not fit is shown.
    fn assign_to(&mut self, target: &Expr<'a>, val: &Val, value: &Expr<'a>) -> Res<()> {
        let from = value.range;
        match target.kind {
            ExprKind::Name(name) => match self.scopes().get(name).cloned() {
                Some(binding) if binding.kind == BindingKind::Variable => {
                    self.check_shape(&binding.val, val, from, cannot_use)?;
                    self.put(&binding.val, val, from)
                }
                Some(_) => self.assign_name(name, val),
                None => {
                    self.warn_of_namesake(name, value)?;
                    self.range = value.range;
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
                    done = self.assign_to(target, &item, value).and(done);
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
    pub(crate) fn target(&mut self, target: &Expr<'a>) -> Res<Val> {
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
                let place = self.attribute(object, attr, Some(value))?;
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
    pub(crate) fn changed_item(&mut self, of: Val, value: &Expr<'a>, index: &Expr<'a>) -> Res<Val> {
        if let Val::Seq(_, SeqKind::Tuple) | Val::Known(Known::Tuple(_)) = of {
            let message = "the items of a tuple cannot be assigned to";
            let note = "make a list or a vector instead: `[x, y]`, `ti.Vector([x, y])`";
            return self.fail_noted(ErrorKind::Syntax, "E0215", message, note);
        }
        if let Val::Known(Known::List(_)) = of {
            let message = "a kernel cannot modify a Python list";
            let note = "store values that a kernel modifies in a field";
            return self.fail_noted(ErrorKind::Syntax, "E0215", message, note);
        }
        self.expect_elements_to_change(&of, value)?;
        self.item(of, value, index)
    }

    /// Warns where a name that means something outside becomes a variable of the kernel: perhaps what it stands for
    /// outside was to be changed.
    fn warn_of_namesake(&mut self, name: &str, value: &Expr<'a>) -> Res<()> {
        let scope = self.frame().scope;
        let found = self.host.lookup(scope, name);
        let remedy = match self.hosted(found)? {
            Some(Known::Field(field)) if field.ndim == 0 => {
                format!("the field is changed by `{name}[None] = ...`")
            }
            Some(known) if known.is_number() && mentions(value, name) => format!(
                "a number that kernels change is a field, `{name} = ti.field(int, shape=())`"
            ),
            _ => return Ok(()),
        };
        self.warn(format!(
            "`{name}` is a new variable of the kernel, and the one outside does not change; {remedy}"
        ));
        Ok(())
    }

    /// Stores: errors of the value are shown at the value, errors of the storage at the target.
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
    pub(crate) fn check_shape(
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
            _ => self.fail(
                ErrorKind::Syntax,
                "E0105",
                "only names can be assigned to here",
            ),
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
            Val::Known(_) | Val::Array(_) | Val::Texture(_) | Val::Shared(_) => Ok(val.clone()),
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
                    format!("{what} cannot be stored in a variable"),
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
                &mut self.state.func.params[arg.as_u32() as usize].ty
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
            ExprKind::Attribute { attr, .. } if !self.state.making.is_empty() => attr,
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
            return self.assign_to(target, &val, value);
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
        // A boolean depends only on whether the value is zero.
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
