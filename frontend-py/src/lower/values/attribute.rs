//! `x.attr`: members, components, and what fields, arrays, tensors and Python's own objects have.

use aerogel_base::ErrorKind;
use aerogel_ir::{Op, Type};

use crate::ast::Expr;
use crate::host::Known;
use crate::intrinsics;
use crate::lower::calls::unbound_method;
use crate::lower::core::methods::methods_of;
use crate::lower::core::suggestions::GROWING;
use crate::lower::values::number::elem;
use crate::lower::values::{SeqKind, Val};
use crate::lower::{Lower, Res};

const SWIZZLES: [&str; 3] = ["xyzw", "rgba", "stpq"];

impl<'a> Lower<'a, '_> {
    /// `val.attr`; `from` is where `val` is written, if that is in a kernel.
    pub(crate) fn attribute(&mut self, val: Val, attr: &str, from: Option<&Expr<'a>>) -> Res<Val> {
        if let Some(found) = self.struct_attribute(&val, attr)? {
            return Ok(found);
        }
        match &val {
            Val::Element(of, at) => return self.element_attribute(of, at, attr),
            Val::Neighbours(relation, at) if attr == "size" => {
                return self.n_neighbours(relation, *at);
            }
            _ => {}
        }
        if matches!(attr, "append" | "length" | "deactivate") {
            // A field with no axis but a list's is that list.
            let fields = match &val {
                Val::Known(Known::Field(field)) => vec![field.clone()],
                Val::Known(Known::StructField(field)) => field.leaves(),
                _ => Vec::new(),
            };
            if let Some(list) = self.list_at(&fields, &[])? {
                return Ok(Val::Method(Val::List(list.into()).into(), attr.into()));
            }
        }
        match &val {
            Val::Poison(reported) => return Err(*reported),
            Val::Array(arg) => match attr {
                "shape" => {
                    let ndim = self.array_type(*arg).1;
                    let array = *arg;
                    let extents = (0..ndim).map(|axis| {
                        Val::Value(self.value(Op::ArrayShape { array, axis }, Type::I32))
                    });
                    return Ok(Val::seq(extents.collect(), SeqKind::Tuple));
                }
                "dtype" => {
                    let elem = elem(self.array_type(*arg).0);
                    return Ok(Val::Known(Known::DType(elem)));
                }
                "fill" | "element_shape" => {
                    return Ok(Val::Method(val.clone().into(), attr.into()));
                }
                _ => return self.no_attribute(&val, attr, from),
            },
            Val::Texture(texture) => {
                return match self.texture_attribute(texture, attr) {
                    Some(found) => Ok(found),
                    None => self.no_attribute(&val, attr, from),
                };
            }
            Val::List(_) | Val::Dict(_) => return Ok(Val::Method(val.clone().into(), attr.into())),
            Val::Known(Known::Field(_)) if matches!(attr, "fill" | "copy_from") => {
                return Ok(Val::Method(val.clone().into(), attr.into()));
            }
            Val::Known(Known::Builtin(name)) => {
                let method = format!("{name}.{attr}");
                if intrinsics::find(&method).is_some() || unbound_method(&method).is_some() {
                    return Ok(Val::Known(Known::Builtin(method.into())));
                }
            }
            Val::Known(Known::Str(_)) => return Ok(Val::Method(val.clone().into(), attr.into())),
            // A list that is known while compiling is a copy: changing it would change nothing.
            Val::Known(Known::List(_)) if GROWING.contains(&attr) => {
                return self.no_attribute(&val, attr, from);
            }
            _ => {}
        }
        if let Some(ty) = self.numeric_type(&val)
            && !matches!(&val, Val::Known(known) if known.is_number() || matches!(known, Known::Object(_)))
        {
            return self.tensor_attribute(val, ty, attr, from);
        }
        if let Val::Known(known) = &val {
            let found = self.host.attr(known, attr);
            return match self.hosted(found)? {
                Some(known) => self.val(known),
                None => self.no_attribute(&val, attr, from),
            };
        }
        self.no_attribute(&val, attr, from)
    }

    fn tensor_attribute(
        &mut self,
        val: Val,
        ty: Type,
        attr: &str,
        from: Option<&Expr<'a>>,
    ) -> Res<Val> {
        let shape = ty.shape();
        match (attr, &shape[..]) {
            ("n", [n, ..]) => return Ok(Val::int(i128::from(*n))),
            ("m", [_]) => return Ok(Val::int(1)),
            ("m", [_, m]) => return Ok(Val::int(i128::from(*m))),
            ("shape", _) => return Ok(shape_of(ty)),
            ("dtype", _) => return Ok(Val::Known(Known::DType(elem(ty)))),
            ("T", [_, _]) => {
                let message = format!("`{ty}` has no attribute `T`");
                let note = "write `A.transpose()`";
                return self.fail_noted(ErrorKind::Compilation, "E0302", message, note);
            }
            _ => {}
        }
        match (swizzle(attr), ty) {
            (Some(at), Type::Vec(n, elem)) => {
                if at.iter().any(|&k| k >= n) {
                    return self.fail(
                        ErrorKind::Syntax,
                        "E0403",
                        format!("`{ty}` has no component `{attr}`"),
                    );
                }
                let result = if at.len() == 1 {
                    Type::Scalar(elem)
                } else {
                    Type::Vec(at.len() as u32, elem)
                };
                let tuples: Vec<Vec<Val>> =
                    at.iter().map(|&k| vec![Val::int(i128::from(k))]).collect();
                self.pick(&val, ty, &tuples, result)
            }
            _ if methods_of(ty).contains(&attr) => Ok(Val::Method(val.into(), attr.into())),
            _ => self.no_attribute(&val, attr, from),
        }
    }
}

/// The components that a name such as `xy` or `rgb` chooses.
fn swizzle(attr: &str) -> Option<Vec<u32>> {
    if attr.is_empty() || attr.len() > 4 {
        return None;
    }
    SWIZZLES.iter().find_map(|letters| {
        attr.chars()
            .map(|c| letters.find(c).map(|k| k as u32))
            .collect()
    })
}

/// The shape of a vector or matrix as a tuple.
pub(crate) fn shape_of(ty: Type) -> Val {
    let extents = ty.shape();
    Val::Known(Known::tuple(
        extents.iter().map(|&n| Known::Int(i128::from(n))),
    ))
}
