//! Conversions from one form of a value to another.

mod attribute;
mod casts;
pub(crate) mod construct;
mod dicts;
mod elements;
pub(crate) mod index;
mod mesh;
pub(crate) mod number;
mod objects;
mod overflow;
mod sequences;
pub(crate) mod structs;
mod tensor;
mod val;

use aerogel_base::{ErrorKind, Scalar, ScalarType};
use aerogel_ir::{Arg, Op, ParamType, Type, Value};

use crate::host::*;
use crate::infer::int_range;
use crate::lower::core::limits::MAX_ITEMS;
use crate::lower::values::number::elem;
use crate::lower::{Lower, Res};

pub use self::val::TextureAccess;
pub(crate) use self::val::{Iter, List, Origin, Place, SeqKind, Shared, Texture, Val, tensor_type};

impl Lower<'_, '_> {
    /// What the user would call this.
    pub(crate) fn describe(&self, val: &Val) -> String {
        match val {
            Val::Known(known) => known.describe(),
            Val::Value(_) | Val::Place(_) => match self.numeric_type(val) {
                Some(ty) => format!("`{ty}`"),
                None => "a value".into(),
            },
            Val::Seq(_, SeqKind::Tuple) => "a tuple".into(),
            Val::Seq(_, SeqKind::List) => "a list".into(),
            Val::Struct(ty, _) => ty.describe(),
            Val::Cell(field, _) => field.ty.describe(),
            Val::Dict(_) => "a dictionary".into(),
            Val::Array(_) => "an array".into(),
            Val::Texture(_) => "a texture".into(),
            Val::Shared(_) => "a shared array".into(),
            Val::Element(of, _) => format!("an element of the `{}` of a mesh", of.name),
            Val::Neighbours(relation, _) => Known::Relation(relation.clone()).describe(),
            Val::Iter(_) => "a range".into(),
            Val::List(_) => "a list of a dynamic node".into(),
            Val::Method(_, name) => format!("the method `{name}`"),
            Val::Poison(_) => "an error".into(),
        }
    }

    /// The type of a number or tensor, without evaluating anything.
    pub(crate) fn numeric_type(&self, val: &Val) -> Option<Type> {
        match val {
            Val::Value(value) => Some(self.ty(*value)),
            Val::Place(Place::Ref { place, .. }) => self.ty(*place).pointee(),
            Val::Place(Place::Elements { ty, .. }) => Some(*ty),
            Val::Known(known) => self.known_type(known),
            Val::Seq(items, _) => {
                self.type_of_items(items.iter().map(|item| self.numeric_type(item)))
            }
            Val::Struct(..)
            | Val::Cell(..)
            | Val::Dict(_)
            | Val::Array(_)
            | Val::Texture(_)
            | Val::Shared(_)
            | Val::Element(..)
            | Val::Neighbours(..)
            | Val::Iter(_)
            | Val::List(_)
            | Val::Method(..)
            | Val::Poison(_) => None,
        }
    }

    fn known_type(&self, known: &Known) -> Option<Type> {
        match known {
            Known::Bool(_) => Some(Type::BOOL),
            Known::Int(_) => Some(Type::Scalar(self.config.default_ip)),
            Known::Float(_) => Some(Type::Scalar(self.config.default_fp)),
            Known::Tuple(items) | Known::List(items) => {
                self.type_of_items(items.iter().map(|item| self.known_type(item)))
            }
            Known::Tensor(tensor) => {
                let elem = match tensor.elem {
                    Some(elem) => elem,
                    None => tensor
                        .elements
                        .iter()
                        .filter_map(|e| self.known_type(e)?.scalar())
                        .reduce(ScalarType::promote)?,
                };
                Some(tensor_type(tensor.shape, elem))
            }
            Known::Object(_) => self.known_type(&self.host.number(known)?),
            _ => None,
        }
    }

    /// A sequence of numbers is a vector, one of vectors a matrix.
    fn type_of_items(&self, items: impl ExactSizeIterator<Item = Option<Type>>) -> Option<Type> {
        let n = items.len() as u32;
        let mut all: Option<Type> = None;
        for item in items {
            let item = item?;
            all = Some(match all {
                None => item,
                Some(ty) if ty.shape() == item.shape() => {
                    ty.with_elem(ty.elem()?.promote(item.elem()?))
                }
                Some(_) => return None,
            });
        }
        match all? {
            Type::Scalar(elem) => Some(Type::Vec(n, elem)),
            Type::Vec(m, elem) => Some(Type::Mat(n, m, elem)),
            _ => None,
        }
    }

    /// The type of something that must be a number or tensor.
    pub(crate) fn expect_numeric(&mut self, val: &Val) -> Res<Type> {
        if let Some(ty) = self.numeric_type(val) {
            return Ok(ty);
        }
        if let Val::Poison(reported) = val {
            return Err(*reported);
        }
        let what = self.describe(val);
        let note = match val {
            Val::Known(Known::Field(_) | Known::StructField(_)) => {
                Some("index it: `x[i]`, or `x[None]` for a field without axes")
            }
            Val::Array(_) | Val::Shared(_) => Some("index it: `x[i]`"),
            Val::Texture(_) => Some("read its texels: `fetch`, `sample_lod`, `load`"),
            Val::Method(..) | Val::Known(Known::Func(_) | Known::Builtin(_)) => {
                Some("call it: add `()`")
            }
            _ => None,
        };
        let message = format!("a number, vector or matrix is needed here, not {what}");
        let mut mistake = self.mistake(ErrorKind::Type, "E0201", message);
        mistake.notes.extend(note.map(String::from));
        Err(self.report(mistake))
    }

    /// The value of a number or tensor, read if it lies in storage.
    pub(crate) fn load(&mut self, val: &Val) -> Res<Value> {
        match val {
            Val::Value(value) => Ok(*value),
            Val::Place(Place::Ref { place, .. }) => Ok(self.load_place(*place)),
            Val::Place(Place::Elements { refs, ty, .. }) => {
                let elems = refs.iter().map(|&place| self.load_place(place)).collect();
                Ok(self.value(Op::TensorMake { elems }, *ty))
            }
            Val::Known(_) | Val::Seq(..) => {
                let ty = self.expect_numeric(val)?;
                self.convert(val, ty)
            }
            Val::Struct(..)
            | Val::Cell(..)
            | Val::Dict(_)
            | Val::Array(_)
            | Val::Texture(_)
            | Val::Shared(_)
            | Val::Element(..)
            | Val::Neighbours(..)
            | Val::Iter(_)
            | Val::List(_)
            | Val::Method(..)
            | Val::Poison(_) => {
                self.expect_numeric(val)?;
                unreachable!("none of these is a number or tensor")
            }
        }
    }

    /// The value itself for numbers and tensors, so that later assignments to its storage do not change it.
    pub(crate) fn settle(&mut self, val: Val) -> Res<Val> {
        Ok(match val {
            Val::Place(_) => Val::Value(self.load(&val)?),
            Val::Seq(items, kind) => {
                let items = items
                    .iter()
                    .map(|item| self.settle(item.clone()))
                    .collect::<Res<Vec<_>>>()?;
                Val::Seq(items.into(), kind)
            }
            Val::Struct(..) | Val::Cell(..) => {
                let (ty, members) = self.struct_parts(&val)?.expect("it is a struct");
                let members = members
                    .into_iter()
                    .map(|member| self.settle(member))
                    .collect::<Res<Vec<_>>>()?;
                Val::Struct(ty, members.into())
            }
            Val::Element(of, at) => Val::Element(of, self.settle((*at).clone())?.into()),
            Val::Known(_)
            | Val::Value(_)
            | Val::Dict(_)
            | Val::Array(_)
            | Val::Texture(_)
            | Val::Shared(_)
            | Val::Neighbours(..)
            | Val::Iter(_)
            | Val::List(_)
            | Val::Method(..)
            | Val::Poison(_) => val,
        })
    }

    /// `val` as a value of type `ty`: elements cast, a scalar repeated in every element.
    pub(crate) fn convert(&mut self, val: &Val, ty: Type) -> Res<Value> {
        let from = self.expect_numeric(val)?;
        let Some(elem) = ty.elem() else {
            return self.fail(ErrorKind::Type, "E0201", format!("cannot make `{ty}` here"));
        };
        if from.is_tensor() && from.shape() != ty.shape() {
            let message = format!("cannot use `{from}` as `{ty}`: the shapes differ");
            return self.fail(ErrorKind::Type, "E0203", message);
        }
        match val {
            Val::Known(known @ Known::Object(_)) => {
                let number = self
                    .host
                    .number(known)
                    .expect("it has the type of a number");
                self.convert(&Val::Known(number), ty)
            }
            Val::Known(known) if known.is_number() => {
                let scalar = self.known_scalar(known, elem)?;
                let value = self.builder().constant(scalar);
                Ok(self.builder().splat(value, ty))
            }
            Val::Known(Known::Tensor(tensor)) => {
                let elems: Vec<Val> = tensor.elements.iter().cloned().map(Val::Known).collect();
                self.make(&elems, ty)
            }
            Val::Known(Known::Tuple(_) | Known::List(_)) | Val::Seq(..) => {
                let mut elems = Vec::new();
                for item in val.items().unwrap_or_default() {
                    match self.numeric_type(&item) {
                        Some(Type::Scalar(_)) | None => elems.push(item),
                        Some(_) => elems.extend(self.elements(&item)?),
                    }
                }
                self.make(&elems, ty)
            }
            _ => {
                let value = self.load(val)?;
                let cast = self.builder().cast(value, from.with_elem(elem));
                Ok(if from.is_tensor() {
                    cast
                } else {
                    self.builder().splat(cast, ty)
                })
            }
        }
    }

    /// A tensor of type `ty` from its elements, row by row.
    pub(crate) fn make(&mut self, elems: &[Val], ty: Type) -> Res<Value> {
        if elems.len() > MAX_ITEMS {
            let message = format!(
                "a tensor of {} elements is too large for a kernel",
                elems.len()
            );
            let note = "store the numbers in a field or an array, and loop over them";
            return self.fail_noted(ErrorKind::Type, "E0203", message, note);
        }
        let elem = Type::Scalar(elem(ty));
        let elems = elems
            .iter()
            .map(|val| self.convert(val, elem))
            .collect::<Res<Vec<_>>>()?;
        Ok(self.value(Op::TensorMake { elems }, ty))
    }

    /// The scalars of a number or tensor, row by row; known ones stay known.
    pub(crate) fn elements(&mut self, val: &Val) -> Res<Vec<Val>> {
        match val {
            Val::Known(Known::Tensor(tensor)) => {
                Ok(tensor.elements.iter().cloned().map(Val::Known).collect())
            }
            Val::Known(known) if known.is_number() => Ok(vec![val.clone()]),
            Val::Known(Known::Tuple(_) | Known::List(_)) | Val::Seq(..) => {
                let mut all = Vec::new();
                for item in val.items().unwrap_or_default() {
                    all.extend(self.elements(&item)?);
                }
                Ok(all)
            }
            _ => {
                let value = self.load(val)?;
                Ok(self.split(value).into_iter().map(Val::Value).collect())
            }
        }
    }

    /// The scalars of a value, row by row.
    pub(crate) fn split(&mut self, value: Value) -> Vec<Value> {
        let ty = self.ty(value);
        if let Some(Op::TensorMake { elems }) = self.state.func.def_op(value) {
            return elems.clone();
        }
        let Some(elem) = ty.elem().filter(|_| ty.is_tensor()) else {
            return vec![value];
        };
        (0..ty.n_elems())
            .map(|k| {
                let index = self.element_index(ty, k);
                self.value(
                    Op::TensorGet {
                        tensor: value,
                        index,
                    },
                    elem.into(),
                )
            })
            .collect()
    }

    /// The constant indices of the `k`-th element of a tensor, row by row.
    pub(crate) fn element_index(&mut self, ty: Type, k: u32) -> Vec<Value> {
        let index = match ty {
            Type::Mat(_, m, _) => vec![k / m, k % m],
            _ => vec![k],
        };
        index
            .into_iter()
            .map(|k| self.builder().i32(k as i32))
            .collect()
    }

    /// A Python number as a constant of a type. It is first converted to the default type, as a literal is.
    pub(crate) fn known_scalar(&mut self, known: &Known, ty: ScalarType) -> Res<Scalar> {
        match known {
            Known::Int(value) => {
                let (lo, hi) = int_range(self.config.default_ip);
                let (own_lo, own_hi) = if ty.is_int() { int_range(ty) } else { (lo, hi) };
                if (*value < lo || *value > hi) && (*value < own_lo || *value > own_hi) {
                    let message = format!(
                        "the integer {value} is out of the range of `{}`",
                        self.config.default_ip
                    );
                    return self.fail_noted(
                        ErrorKind::Type,
                        "E0204",
                        message,
                        "write `ti.i64(...)` or `ti.u64(...)`, or set `default_ip=ti.i64` in `ti.init`",
                    );
                }
                Ok(if ty == ScalarType::U1 {
                    Scalar::bool(*value != 0)
                } else if ty.is_int() {
                    Scalar::int(ty, *value)
                } else {
                    Scalar::float(ty, *value as f64)
                })
            }
            Known::Bool(value) if ty.is_int() => Ok(Scalar::int(ty, i128::from(*value))),
            Known::Bool(value) => Ok(Scalar::float(ty, f64::from(u8::from(*value)))),
            Known::Float(value) => {
                let rounded = Scalar::float(self.config.default_fp, *value).as_f64();
                Ok(if ty == ScalarType::U1 {
                    Scalar::bool(rounded != 0.0)
                } else if ty.is_int() {
                    Scalar::int(ty, float_to_int(rounded, ty))
                } else {
                    // If the wider type is named explicitly, the literal keeps its digits.
                    Scalar::float(ty, rounded)
                })
            }
            _ => {
                let what = known.describe();
                self.fail(
                    ErrorKind::Type,
                    "E0201",
                    format!("a number is needed here, not {what}"),
                )
            }
        }
    }

    /// The element type and number of dimensions of an array parameter.
    pub(crate) fn array_type(&self, arg: Arg) -> (Type, u32) {
        match self.state.func.params[arg.as_u32() as usize].ty {
            ParamType::Array { elem, ndim, .. } => (elem, ndim),
            ParamType::Value(ty) => (ty, 0),
        }
    }
}

/// Conversion of a constant, as the machine does it: out of range gives the smallest integer.
fn float_to_int(value: f64, ty: ScalarType) -> i128 {
    let wide = ty.bits() == 64 || ty == ScalarType::U32;
    let (lo, hi) = if wide {
        int_range(ScalarType::I64)
    } else {
        int_range(ScalarType::I32)
    };
    let truncated = value.trunc();
    if truncated >= lo as f64 && truncated <= hi as f64 {
        truncated as i128
    } else {
        lo
    }
}
