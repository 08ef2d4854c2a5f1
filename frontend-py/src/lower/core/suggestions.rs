//! What is said of attributes that are not there: of what, and which name was probably meant.

use aerogel_base::ErrorKind;
use aerogel_ir::Type;

use crate::ast::{Expr, ExprKind};
use crate::host::Known;
use crate::lower::values::Val;
use crate::lower::{Lower, Res};

/// The methods of a number.
const SCALAR_METHODS: &[&str] = &[
    "cast", "norm", "sum", "max", "min", "any", "all", "norm_sqr", "fill",
];

/// Those of a vector or a matrix.
const TENSOR_METHODS: &[&str] = &[
    "cast",
    "norm",
    "norm_sqr",
    "norm_inv",
    "normalized",
    "sum",
    "max",
    "min",
    "any",
    "all",
    "fill",
    "dot",
    "cross",
    "outer_product",
    "transpose",
    "trace",
    "determinant",
    "inverse",
    "diag",
    "get_shape",
    "to_list",
    "to_numpy",
];

/// Whether vectors and matrices have a method of this name.
pub(crate) fn is_tensor_method(name: &str) -> bool {
    TENSOR_METHODS.contains(&name)
}

/// The methods of values of a type.
pub(crate) fn methods_of(ty: Type) -> &'static [&'static str] {
    if ty.is_tensor() {
        TENSOR_METHODS
    } else {
        SCALAR_METHODS
    }
}

/// The names most like `name`, if one is like it enough to be a slip of the pen.
pub(crate) fn closest<'n>(
    name: &str,
    candidates: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let n = name.chars().count();
    let most = (n / 3).max(usize::from(n > 2));
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|&(d, _)| d <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The text of a name, or of a chain of attributes.
fn dotted(expr: &Expr<'_>) -> Option<String> {
    match expr.kind {
        ExprKind::Name(name) => Some(name.to_owned()),
        ExprKind::Attribute { value, attr } => Some(format!("{}.{attr}", dotted(value)?)),
        _ => None,
    }
}

impl<'a> Lower<'a, '_> {
    /// `of.attr`, which is not there; `from` is the expression of `of`, where it is written.
    pub(crate) fn no_attribute<T>(
        &mut self,
        of: &Val,
        attr: &str,
        from: Option<&Expr<'a>>,
    ) -> Res<T> {
        let what = match (of, from.and_then(dotted)) {
            (Val::Known(Known::Object(_)), Some(text)) => format!("`{text}`"),
            _ => self.describe(of),
        };
        let names: Vec<String> = match of {
            Val::Known(known) if !known.is_number() => self.host.names(known),
            Val::Array(_) => ["shape", "dtype", "element_shape", "fill"]
                .map(String::from)
                .to_vec(),
            _ => match self.numeric_type(of) {
                Some(ty) => methods_of(ty).iter().map(|&n| n.into()).collect(),
                None => Vec::new(),
            },
        };
        let message = format!("{what} has no attribute `{attr}`");
        let meant = closest(
            attr,
            names.iter().map(String::as_str).filter(|n| *n != attr),
        );
        match meant {
            Some(meant) => {
                let note = format!("did you mean `{meant}`?");
                self.fail_noted(ErrorKind::Compilation, "E0302", message, note)
            }
            None => self.fail(ErrorKind::Compilation, "E0302", message),
        }
    }

    /// `x.grad[i]` where `x` was made without.
    pub(crate) fn no_gradient<T>(&mut self, attr: &str) -> Res<T> {
        let (what, keyword) = match attr {
            "grad" => ("gradient", "needs_grad"),
            _ => ("tangent", "needs_dual"),
        };
        self.fail_noted(
            ErrorKind::Compilation,
            "E0302",
            format!("the field has no {what}"),
            format!("make it with `{keyword}=True`"),
        )
    }

    /// Something on the left of an assignment that is no storage.
    pub(crate) fn no_storage<T>(&mut self, target: &Val) -> Res<T> {
        let message = match target {
            Val::Method(object, name) => {
                let what = self.describe(object);
                format!("`{name}` of {what} is a method: it is called, not assigned to")
            }
            _ => format!("{} cannot be assigned to", self.describe(target)),
        };
        self.fail(ErrorKind::Syntax, "E0215", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_seen() {
        let names = ["sin", "sinh", "sqrt", "normalized", "atan2", "cos"];
        for (typed, meant) in [
            ("sinn", Some("sin")),
            ("sni", Some("sin")),
            ("sqr", Some("sqrt")),
            ("normalised", Some("normalized")),
            ("frobnicate", None),
            ("si", None),
        ] {
            assert_eq!(closest(typed, names), meant, "{typed}");
        }
    }
}
