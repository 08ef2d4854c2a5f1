//! Structs: values whose members are values, places or structs themselves.
//!
//! ```text
//! p = P(pos, 2.0)      p.pos is a variable, p.mass another
//! f[i].mass += 1       f.mass[i] += 1: a field of structs is a set of fields
//! ```
//! Nothing below the frontend knows of them: a struct is taken apart where it is made.

use std::rc::Rc;

use aerogel_base::ErrorKind;
use aerogel_ir::{Region, Type, Value};

use crate::ast::CompareOp;
use crate::fold;
use crate::host::{Known, StructFieldRef, StructType};
use crate::lower::calls::Args;
use crate::lower::core::methods::DICT_METHODS;
use crate::lower::core::suggestions::closest;
use crate::lower::values::{Val, tensor_type};
use crate::lower::{Lower, Res, ReturnType};

const CHECKED: &str = "the value is a struct with these members, which was checked before";

impl ReturnType {
    /// The types of the values by which it is passed.
    pub(crate) fn types(&self) -> Vec<Type> {
        match self {
            ReturnType::One(ty) => vec![*ty],
            ReturnType::Struct(ty) => {
                let mut leaves = Vec::new();
                leaf_types(ty, "", &mut leaves);
                leaves.into_iter().map(|(_, ty)| ty).collect()
            }
            ReturnType::Tuple(types) => types.iter().flat_map(ReturnType::types).collect(),
        }
    }
}

impl<'a> Lower<'a, '_> {
    /// The type and the members of a struct; the members of a field's element are its places.
    pub(crate) fn struct_parts(&mut self, val: &Val) -> Res<Option<(Rc<StructType>, Vec<Val>)>> {
        Ok(match val {
            Val::Struct(ty, members) => Some((ty.clone(), members.to_vec())),
            Val::Known(Known::Struct(value)) => {
                let members = value.members.iter().cloned().map(Val::Known);
                Some((value.ty.clone(), members.collect()))
            }
            Val::Cell(field, indices) => {
                let members = (0..field.members.len())
                    .map(|k| self.cell_member(field, indices, k))
                    .collect::<Res<Vec<_>>>()?;
                Some((field.ty.clone(), members))
            }
            _ => None,
        })
    }

    fn cell_member(&mut self, field: &StructFieldRef, indices: &[Val], k: usize) -> Res<Val> {
        let member = field.member(k);
        self.index(Val::Known(member), indices.to_vec(), true)
    }

    /// An element of a field of structs, whose members are looked up when they are used.
    pub(crate) fn index_struct_field(
        &mut self,
        field: &Rc<StructFieldRef>,
        indices: &[Val],
    ) -> Res<Val> {
        let what = Known::StructField(field.clone()).describe();
        let ndim = field.leaves().first().map_or(0, |leaf| leaf.ndim);
        let indices = self.cell_indices(indices, ndim, &what)?;
        let indices = indices.into_iter().map(Val::Value).collect();
        Ok(Val::Cell(field.clone(), indices))
    }

    /// A member of a struct, or of a field of structs; nothing if `val` is neither.
    pub(crate) fn struct_attribute(&mut self, val: &Val, attr: &str) -> Res<Option<Val>> {
        if let Val::Known(Known::StructField(field)) = val {
            // What else it has is an object's: its shape, its keys.
            return Ok(match field.ty.position(attr) {
                Some(k) => Some(Val::Known(field.member(k))),
                None if matches!(attr, "fill" | "copy_from") => {
                    Some(Val::Method(val.clone().into(), attr.into()))
                }
                None => None,
            });
        }
        let Some(ty) = struct_type(val) else {
            return Ok(None);
        };
        let Some(k) = ty.position(attr) else {
            if ty.method(attr).is_some() {
                return Ok(Some(Val::Method(val.clone().into(), attr.into())));
            }
            if let Some(func) = ty.property(attr) {
                return self
                    .invoke(&func, Some(val.clone()), Args::default())
                    .map(Some);
            }
            if let Some(found) = self.class_attribute(&ty, attr)? {
                return Ok(Some(found));
            }
            if ty.is_dict() && DICT_METHODS.contains(&attr) {
                return Ok(Some(Val::Method(val.clone().into(), attr.into())));
            }
            let names: Vec<String> = ty.members.iter().map(|m| format!("`{}`", m.name)).collect();
            let members = ty.members.iter().map(|m| m.name.as_str());
            let note = match closest(attr, members) {
                Some(meant) => format!(
                    "its members are {}; did you mean `{meant}`?",
                    names.join(", ")
                ),
                None => format!("its members are {}", names.join(", ")),
            };
            return self.fail_noted(
                ErrorKind::Compilation,
                "E0302",
                format!("{} has no member `{attr}`", ty.describe()),
                note,
            );
        };
        Ok(Some(match val {
            Val::Cell(field, indices) => self.cell_member(field, indices, k)?,
            Val::Struct(_, members) => members[k].clone(),
            Val::Known(Known::Struct(value)) => Val::Known(value.members[k].clone()),
            _ => unreachable!("only these have the type of a struct"),
        }))
    }

    /// `P(pos, mass=2)`: what is not given is zero.
    pub(crate) fn construct_struct(&mut self, ty: &Rc<StructType>, args: &Args) -> Res<Val> {
        if let ([whole], []) = (&args.positional[..], &args.keywords[..])
            && struct_type(whole).is_some_and(|from| ty.is_alike(&from))
        {
            return self.coerce(whole, Some(&Known::StructType(ty.clone())));
        }
        let n = args.positional.len();
        if n > ty.members.len() {
            let message = format!(
                "{} has {} members, but {n} values are given",
                ty.describe(),
                ty.members.len()
            );
            return self.fail(ErrorKind::Type, "E0222", message);
        }
        for (name, _) in &args.keywords {
            let message = match ty.position(name) {
                None => format!("{} has no member `{name}`", ty.describe()),
                Some(k) if k < n => format!("the member `{name}` is given twice"),
                Some(_) => continue,
            };
            return self.fail(ErrorKind::Type, "E0222", message);
        }
        let mut members = Vec::new();
        for (k, member) in ty.members.iter().enumerate() {
            let given = args.get(k, &member.name).cloned().unwrap_or(Val::int(0));
            members.push(match &member.ty {
                // One value for a struct is that of its first member.
                Some(Known::StructType(inner)) if struct_type(&given).is_none() => {
                    let args = Args {
                        positional: vec![given],
                        keywords: Vec::new(),
                    };
                    self.construct_struct(inner, &args)?
                }
                ty => self.coerce(&given, ty.as_ref())?,
            });
        }
        Ok(Val::Struct(ty.clone(), members.into()))
    }

    /// `ti.Struct(a=1, b=v)`: a struct of members as they are.
    pub(crate) fn struct_call(&mut self, args: &Args) -> Res<Val> {
        if let ([whole], []) = (&args.positional[..], &args.keywords[..])
            && struct_type(whole).is_some()
        {
            return self.settle(whole.clone());
        }
        if !args.positional.is_empty() || args.keywords.is_empty() {
            return self.fail_noted(
                ErrorKind::Type,
                "E0222",
                "`ti.Struct` takes its members by name",
                "write `ti.Struct(pos=p, mass=1.0)`",
            );
        }
        let names = args.keywords.iter().map(|(name, _)| name.as_str());
        let ty = Rc::new(StructType::untyped(names));
        let members = args
            .keywords
            .iter()
            .map(|(_, val)| self.settle(val.clone()))
            .collect::<Res<Vec<_>>>()?;
        Ok(Val::Struct(ty, members.into()))
    }

    /// `f.fill(val)` and `f.copy_from(other)` of a field of structs, member by member.
    pub(crate) fn struct_field_method(
        &mut self,
        field: &StructFieldRef,
        name: &str,
        args: &Args,
    ) -> Res<Val> {
        let given = self.arg(name, args, 0, "val")?.clone();
        for (k, member) in field.ty.members.iter().enumerate() {
            if let Some(from) = struct_type(&given) {
                self.check_members(&field.ty, &from)?;
            }
            // A struct or a field of structs gives each member its own.
            let part = self.struct_attribute(&given, &member.name)?;
            let args = Args {
                positional: vec![part.unwrap_or(given.clone())],
                keywords: Vec::new(),
            };
            match field.member(k) {
                Known::StructField(inner) => self.struct_field_method(&inner, name, &args)?,
                leaf => self.storage_method(&Val::Known(leaf), name, &args)?,
            };
        }
        Ok(Val::none())
    }

    /// `val` as a member of a type; of its own type if there is none.
    pub(crate) fn coerce(&mut self, val: &Val, ty: Option<&Known>) -> Res<Val> {
        match ty {
            Some(Known::DType(elem)) => Ok(Val::Value(self.convert(val, Type::Scalar(*elem))?)),
            Some(Known::TensorType { shape, elem }) => {
                Ok(Val::Value(self.convert(val, tensor_type(*shape, *elem))?))
            }
            Some(Known::StructType(ty)) => {
                let val = self.ordered(ty, val)?;
                let (_, parts) = self.struct_parts(&val)?.expect(CHECKED);
                let members = ty
                    .members
                    .iter()
                    .zip(&parts)
                    .map(|(member, part)| self.coerce(part, member.ty.as_ref()))
                    .collect::<Res<Vec<_>>>()?;
                Ok(Val::Struct(ty.clone(), members.into()))
            }
            _ => self.settle(val.clone()),
        }
    }

    fn no_struct<T>(&mut self, ty: &StructType, val: &Val) -> Res<T> {
        if let Val::Poison(reported) = val {
            return Err(*reported);
        }
        let what = self.describe(val);
        let message = format!("{} is needed here, not {what}", ty.describe());
        self.fail(ErrorKind::Type, "E0203", message)
    }

    /// That `val` is a struct with the members of a type.
    pub(crate) fn check_struct(&mut self, to: &StructType, val: &Val) -> Res<()> {
        match struct_type(val) {
            Some(from) => self.check_members(to, &from),
            None => self.no_struct(to, val),
        }
    }

    /// A struct with its members in the order of a type.
    fn ordered(&mut self, to: &Rc<StructType>, val: &Val) -> Res<Val> {
        self.check_struct(to, val)?;
        let (from, parts) = self.struct_parts(val)?.expect(CHECKED);
        let mut members = Vec::new();
        for member in &to.members {
            let part = &parts[from.position(&member.name).expect(CHECKED)];
            members.push(match &member.ty {
                Some(Known::StructType(inner)) => self.ordered(inner, part)?,
                _ => part.clone(),
            });
        }
        Ok(Val::Struct(to.clone(), members.into()))
    }

    fn check_members(&mut self, to: &StructType, from: &StructType) -> Res<()> {
        if to.is_alike(from) {
            return Ok(());
        }
        let differ = match to.class == from.class {
            true => "the members differ",
            false => "their classes differ",
        };
        let message = format!(
            "cannot use {} as {}: {differ}",
            from.describe(),
            to.describe()
        );
        self.fail(ErrorKind::Type, "E0203", message)
    }

    /// Stores a struct member by member.
    pub(crate) fn store_struct(&mut self, target: &Val, val: &Val) -> Res<()> {
        let to = struct_type(target).expect("only structs are stored member by member");
        let val = self.ordered(&to, val)?;
        let mut places = Vec::new();
        self.leaves(target, &mut places)?;
        self.store_leaves(&places, &val)
    }

    /// Stores the numbers and tensors of a struct, in order, to places of their own.
    pub(crate) fn store_leaves(&mut self, places: &[Val], val: &Val) -> Res<()> {
        let mut leaves = Vec::new();
        self.leaves(val, &mut leaves)?;
        if leaves.len() != places.len() {
            let what = self.describe(val);
            let (wanted, given) = (places.len(), leaves.len());
            let message = format!("{wanted} values are needed here, but {what} has {given}");
            return self.fail(ErrorKind::Type, "E0203", message);
        }
        for (place, leaf) in places.iter().zip(&leaves) {
            // A member that holds what Python knows, such as `None`, keeps it.
            let kept = match (place, leaf) {
                (Val::Known(place), Val::Known(leaf)) => {
                    let same = fold::compare(self.host, CompareOp::Is, place, leaf);
                    self.hosted(same)?
                }
                _ => false,
            };
            if !kept {
                self.store_val(place, leaf)?;
            }
        }
        Ok(())
    }

    /// The members of a struct that are no structs, in order; anything else is one by itself.
    fn leaves(&mut self, val: &Val, leaves: &mut Vec<Val>) -> Res<()> {
        match self.struct_parts(val)? {
            Some((_, members)) => members.iter().try_for_each(|m| self.leaves(m, leaves)),
            None => {
                leaves.push(val.clone());
                Ok(())
            }
        }
    }

    /// One of two values that may be structs or tuples, by a condition; each region still needs its end.
    pub(crate) fn join(
        &mut self,
        cond: Value,
        (then, a): (Region, &Val),
        (otherwise, b): (Region, &Val),
    ) -> Res<Val> {
        let b = match struct_type(a) {
            Some(ty) => &self.within(otherwise, |lower| lower.ordered(&ty, b))?,
            None => b,
        };
        let mut values = Vec::new();
        self.within(then, |lower| lower.flatten(a, &mut values))?;
        let types: Vec<Type> = values.iter().map(|&value| self.ty(value)).collect();
        let mut others = Vec::new();
        self.within(otherwise, |lower| lower.flatten_as(b, &types, &mut others))?;
        let mut results = self
            .finish_if(cond, (then, values), (otherwise, others))
            .into_iter();
        Ok(unflatten(a, &mut results))
    }

    /// The numbers and tensors in nested tuples and structs, in order.
    pub(crate) fn flatten(&mut self, val: &Val, values: &mut Vec<Value>) -> Res<()> {
        for part in self.nested(val)? {
            self.flatten(&part, values)?;
        }
        if self.is_leaf(val) {
            values.push(self.load(val)?);
        }
        Ok(())
    }

    fn flatten_as(&mut self, val: &Val, types: &[Type], values: &mut Vec<Value>) -> Res<()> {
        for part in self.nested(val)? {
            self.flatten_as(&part, types, values)?;
        }
        if self.is_leaf(val) {
            match types.get(values.len()) {
                Some(&ty) => {
                    self.warn_of_loss("the value of the second arm", ty, val);
                    values.push(self.convert(val, ty)?);
                }
                None => {
                    return self.fail(
                        ErrorKind::Type,
                        "E0216",
                        "the arms of this `if` return different numbers of values",
                    );
                }
            }
        }
        Ok(())
    }

    fn is_leaf(&self, val: &Val) -> bool {
        struct_type(val).is_none() && val.items().is_none()
    }

    fn nested(&mut self, val: &Val) -> Res<Vec<Val>> {
        Ok(match self.struct_parts(val)? {
            Some((_, members)) => members,
            None => val.items().unwrap_or_default(),
        })
    }

    /// The values of a struct of a type, as a kernel's result passes them.
    pub(crate) fn results(
        &mut self,
        ty: &ReturnType,
        val: &Val,
        values: &mut Vec<Value>,
    ) -> Res<()> {
        match ty {
            ReturnType::One(ty) => values.push(self.convert(val, *ty)?),
            ReturnType::Struct(ty) => {
                let val = self.coerce(val, Some(&Known::StructType(ty.clone())))?;
                self.flatten(&val, values)?;
            }
            ReturnType::Tuple(types) => {
                let items = val.items().unwrap_or_else(|| vec![val.clone()]);
                if items.len() != types.len() {
                    let message =
                        format!("{} values are returned, not {}", items.len(), types.len());
                    return self.fail(ErrorKind::Type, "E0216", message);
                }
                for (item, ty) in items.iter().zip(types) {
                    self.results(ty, item, values)?;
                }
            }
        }
        Ok(())
    }
}

/// The type of a struct.
pub(crate) fn struct_type(val: &Val) -> Option<Rc<StructType>> {
    match val {
        Val::Struct(ty, _) => Some(ty.clone()),
        Val::Cell(field, _) => Some(field.ty.clone()),
        Val::Known(Known::Struct(value)) => Some(value.ty.clone()),
        _ => None,
    }
}

/// Whether names for a value may be assigned to: it is storage.
pub(crate) fn is_storage(val: &Val) -> bool {
    match val {
        Val::Place(_) | Val::Cell(..) => true,
        Val::Struct(_, members) => members.iter().all(is_storage),
        _ => false,
    }
}

/// A value shaped like `shape` from the values that `flatten` gave.
fn unflatten(shape: &Val, values: &mut dyn Iterator<Item = Val>) -> Val {
    let rebuild = |parts: &[Val], values: &mut dyn Iterator<Item = Val>| -> Vec<Val> {
        parts.iter().map(|part| unflatten(part, values)).collect()
    };
    match shape {
        Val::Struct(ty, members) => Val::Struct(ty.clone(), rebuild(members, values).into()),
        Val::Known(Known::Struct(value)) => {
            let members: Vec<Val> = value.members.iter().cloned().map(Val::Known).collect();
            Val::Struct(value.ty.clone(), rebuild(&members, values).into())
        }
        _ => match shape.items() {
            Some(items) => {
                let kind = match shape {
                    Val::Seq(_, kind) => *kind,
                    _ => crate::lower::SeqKind::Tuple,
                };
                Val::seq(rebuild(&items, values), kind)
            }
            None => values.next().expect("as many values as there are leaves"),
        },
    }
}

/// The types of the scalars and tensors that make up a struct, with the names by which they are reached.
pub(crate) fn leaf_types(ty: &StructType, name: &str, out: &mut Vec<(String, Type)>) {
    for member in &ty.members {
        let name = format!("{name}.{}", member.name);
        match &member.ty {
            Some(Known::StructType(inner)) => leaf_types(inner, &name, out),
            Some(Known::DType(elem)) => out.push((name, Type::Scalar(*elem))),
            Some(Known::TensorType { shape, elem }) => out.push((name, tensor_type(*shape, *elem))),
            _ => {}
        }
    }
}

/// The struct that values for its leaves make.
pub(crate) fn from_leaves(ty: &Rc<StructType>, values: &mut dyn Iterator<Item = Val>) -> Val {
    let members = ty.members.iter().map(|member| match &member.ty {
        Some(Known::StructType(inner)) => from_leaves(inner, values),
        _ => values.next().expect("as many values as there are leaves"),
    });
    Val::Struct(ty.clone(), members.collect())
}
