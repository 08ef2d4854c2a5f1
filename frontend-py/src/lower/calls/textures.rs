//! Textures: an array of texels and a format, with methods that are functions of the library's.
//!
//! ```text
//! tex.fetch(index, lod)     fetch(texels, format, index, lod), inlined
//! ```
//! Here it is seen that the method goes with the parameter's annotation, and the arguments with the texture.

use std::rc::Rc;

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::{Op, Type};

use crate::lower::calls::Args;
use crate::lower::values::{SeqKind, Texture, Val};
use crate::lower::{Lower, Res};

/// The methods of textures, and whether they are those of an `rw_texture`.
const METHODS: [(&str, bool); 4] = [
    ("sample_lod", false),
    ("fetch", false),
    ("load", true),
    ("store", true),
];

/// Whether a name is that of a method.
pub(crate) fn is_method(name: &str) -> bool {
    METHODS.iter().any(|(method, _)| *method == name)
}

/// What the methods of a texture are called, and its shape.
pub(crate) fn names() -> Vec<String> {
    let methods = METHODS.iter().map(|(name, _)| (*name).to_owned());
    methods.chain(["shape".to_owned()]).collect()
}

impl Lower<'_, '_> {
    /// `tex.shape`, `tex.fetch`; nothing if there is no such attribute.
    pub(crate) fn texture_attribute(&mut self, texture: &Rc<Texture>, attr: &str) -> Option<Val> {
        if attr == "shape" {
            let array = texture.texels;
            let extents = (0..texture.access.ndim)
                .map(|axis| Val::Value(self.value(Op::ArrayShape { array, axis }, Type::I32)));
            return Some(Val::seq(extents.collect(), SeqKind::Tuple));
        }
        is_method(attr).then(|| Val::Method(Val::Texture(texture.clone()).into(), attr.into()))
    }

    /// A call of a texture's method.
    pub(crate) fn texture_method(
        &mut self,
        texture: &Rc<Texture>,
        name: &str,
        args: &Args,
    ) -> Res<Val> {
        let of_writable = METHODS.iter().find(|(method, _)| *method == name);
        let of_writable = of_writable.is_some_and(|(_, writable)| *writable);
        if of_writable != texture.access.writable {
            return self.other_annotation(texture, name);
        }
        let takes: &[&str] = match name {
            "sample_lod" => &["uv", "lod"],
            "fetch" => &["index", "lod"],
            "load" => &["index"],
            _ => &["index", "value"],
        };
        self.expect_arguments(name, Some((takes.len(), takes)), args)?;
        let first = takes[0];
        let at = self.arg(name, args, 0, first)?.clone();
        let at = if first == "uv" {
            self.coordinates(texture, &at)?
        } else {
            self.texel_index(texture, &at)?
        };
        let mut given = vec![
            Val::Array(texture.texels),
            Val::Known(texture.access.format.clone()),
            at,
        ];
        if let Some(&second) = takes.get(1) {
            let val = self.arg(name, args, 1, second)?.clone();
            let wanted = if second == "value" { &[4][..] } else { &[] };
            let ty = self.expect_numeric(&val)?;
            if ty.shape() != wanted {
                let message = match second {
                    "value" => {
                        format!("a texel is stored as a vector of 4 components, not `{ty}`")
                    }
                    _ => format!("`lod` of `{name}` is a number, not `{ty}`"),
                };
                return match second {
                    "value" => self.fail_noted(
                        ErrorKind::Type,
                        "E0203",
                        message,
                        "components that the format does not have are ignored: `tex.store(index, ti.Vector([r, 0.0, 0.0, 0.0]))`",
                    ),
                    _ => self.fail(ErrorKind::Type, "E0203", message),
                };
            }
            given.push(val);
        }
        let func = texture.access.methods.iter().find(|f| f.name == name);
        let func = func.expect("the library has each method").clone();
        self.invoke(&func, None, Args::positional(given))
    }

    /// `tex.store` of a texture that is annotated to be sampled, and the like.
    fn other_annotation(&mut self, texture: &Texture, name: &str) -> Res<Val> {
        let (ndim, of) = (texture.access.ndim, &texture.name);
        let (has, wanted) = if texture.access.writable {
            (
                "`load` and `store`",
                format!("ti.types.texture(num_dimensions={ndim})"),
            )
        } else {
            (
                "`sample_lod` and `fetch`",
                format!("ti.types.rw_texture(num_dimensions={ndim}, fmt=...)"),
            )
        };
        let message = format!("the texture `{of}` is annotated for {has}, not for `{name}`");
        let note = format!("annotate the parameter `{wanted}`");
        self.fail_noted(ErrorKind::Type, "E0302", message, note)
    }

    /// Where a texture is sampled, as f32.
    fn coordinates(&mut self, texture: &Texture, at: &Val) -> Res<Val> {
        let ty = self.expect_components(texture, at, "uv")?;
        if ty.elem().is_some_and(ScalarType::is_int) {
            return self.fail_noted(
                ErrorKind::Type,
                "E0203",
                format!("`uv` of `sample_lod` consists of floats, not `{ty}`"),
                "the texture goes from 0.0 to 1.0; `fetch` takes integers",
            );
        }
        let wanted = Type::Vec(texture.access.ndim, ScalarType::F32);
        Ok(Val::Value(self.convert(at, wanted)?))
    }

    /// The index of a texel, of integers that hold it.
    fn texel_index(&mut self, texture: &Texture, at: &Val) -> Res<Val> {
        let ty = self.expect_components(texture, at, "index")?;
        let Some(elem) = ty.elem().filter(|elem| elem.is_int()) else {
            let message = format!("an index must be an integer, not `{ty}`");
            let note = "convert it: `ti.cast(index, ti.i32)`";
            return self.fail_noted(ErrorKind::Type, "E0402", message, note);
        };
        let elem = match elem {
            ScalarType::I64 | ScalarType::U64 | ScalarType::U32 => ScalarType::I64,
            _ => ScalarType::I32,
        };
        let wanted = Type::Vec(texture.access.ndim, elem);
        Ok(Val::Value(self.convert(at, wanted)?))
    }

    /// That there are as many coordinates as axes.
    fn expect_components(&mut self, texture: &Texture, at: &Val, what: &str) -> Res<Type> {
        let ty = self.expect_numeric(at)?;
        let ndim = texture.access.ndim;
        let shape = ty.shape();
        if shape == [ndim] || (ndim == 1 && shape.is_empty()) {
            return Ok(ty);
        }
        let axes = if ndim == 1 { "axis" } else { "axes" };
        let message = format!(
            "the texture `{}` has {ndim} {axes}, but `{what}` is `{ty}`",
            texture.name
        );
        let letters = ["x", "y", "z"][..ndim as usize].join(", ");
        let note = format!("write `ti.Vector([{letters}])`");
        self.fail_noted(ErrorKind::Index, "E0401", message, note)
    }
}
