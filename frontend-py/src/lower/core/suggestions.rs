//! Messages about missing attributes: which object lacks it, and which name was probably intended.

use aerogel_base::ErrorKind;

use crate::ast::{Expr, ExprKind};
use crate::host::Known;
use crate::intrinsics;
use crate::lower::calls::textures;
use crate::lower::core::methods::methods_of;
use crate::lower::values::Val;
use crate::lower::{Lower, Res};

/// What is said where a list should grow.
pub(crate) const LISTS: &str = "a list in a kernel has a fixed length: write it whole, as in \
    `[f(i) for i in range(3)]`; for data that grows at run time use a `dynamic` node, or a field with a counter";

/// Functions of NumPy's, and what kernels have instead.
const OF_NUMPY: &[(&str, &str)] = &[
    ("array", "ti.Vector([x, y])"),
    ("cross", "a.cross(b)"),
    ("det", "a.determinant()"),
    ("dot", "a @ b"),
    ("eig", "ti.eig(a)"),
    ("empty", "ti.Vector([0.0, 0.0, 0.0])"),
    ("eye", "ti.Matrix.identity(ti.f32, 3)"),
    ("full", "ti.Vector([x, x, x])"),
    ("inv", "a.inverse()"),
    ("matmul", "a @ b"),
    ("norm", "a.norm()"),
    ("ones", "ti.Vector([1.0, 1.0, 1.0])"),
    ("outer", "a.outer_product(b)"),
    ("solve", "ti.solve(a, b)"),
    ("sum", "a.sum()"),
    ("svd", "ti.svd(a)"),
    ("trace", "a.trace()"),
    ("transpose", "a.transpose()"),
    ("zeros", "ti.Vector([0.0, 0.0, 0.0])"),
];

/// What changes a list of Python's.
pub(crate) const GROWING: [&str; 8] = [
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
];

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
            Val::Texture(_) => textures::names(),
            _ => match self.numeric_type(of) {
                Some(ty) => methods_of(ty).iter().map(|&n| n.into()).collect(),
                None => Vec::new(),
            },
        };
        let message = format!("{what} has no attribute `{attr}`");
        if of.items().is_some() && GROWING.contains(&attr) {
            return self.fail_noted(ErrorKind::Compilation, "E0302", message, LISTS);
        }
        if let Val::Known(known @ Known::Object(_)) = of
            && textures::is_method(attr)
            && let Ok(Some(_)) = self.host.attr(known, "_aerogel_texture")
        {
            let note = "textures are passed as arguments: annotate a parameter \
                `ti.types.texture(num_dimensions=2)`";
            return self.fail_noted(ErrorKind::Compilation, "E0302", message, note);
        }
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

    /// That `object.attr` can be assigned to: what Python has keeps what it holds while kernels run.
    pub(crate) fn expect_storage(&mut self, object: &Val, from: &Expr<'a>, attr: &str) -> Res<()> {
        let Val::Known(known @ Known::Object(_)) = object else {
            return Ok(());
        };
        let found = self.host.attr(known, attr);
        if let Some(found) = self.hosted(found)?
            && !found.is_number()
        {
            return Ok(());
        }
        let name = dotted(from).map_or_else(|| attr.to_owned(), |text| format!("{text}.{attr}"));
        let message = format!("`{name}` is a Python object: a kernel cannot assign to it");
        let note = format!(
            "store values that a kernel changes in a field: make `{name} = ti.field(int, shape=())` outside, and assign to \
             `{name}[None]`"
        );
        self.fail_noted(ErrorKind::Syntax, "E0215", message, note)
    }

    /// That elements of `container` can be assigned to: not those of what only Python has.
    pub(crate) fn expect_elements_to_change(
        &mut self,
        container: &Val,
        from: &Expr<'a>,
    ) -> Res<()> {
        let Val::Known(known @ (Known::Object(_) | Known::Tensor(_))) = container else {
            return Ok(());
        };
        if self.host.array(known).is_some() {
            return Ok(());
        }
        let name = dotted(from).unwrap_or_else(|| "this".to_owned());
        let note = match matches!(known, Known::Object(_)) && self.is_array(known) {
            true => format!(
                "for a few numbers write `{name} = ti.Vector([0.0, 0.0, 0.0])`; pass an array as a parameter \
                 annotated `ti.types.ndarray()`, or use a field"
            ),
            false => {
                "copy it into a variable first, or store values that a kernel modifies in a field"
                    .to_owned()
            }
        };
        let message =
            format!("`{name}` is a Python object: a kernel cannot assign to its elements");
        self.fail_noted(ErrorKind::Syntax, "E0215", message, note)
    }

    /// Whether an object is an array, of NumPy's or of others.
    fn is_array(&mut self, known: &Known) -> bool {
        let mut has = |name| matches!(self.host.attr(known, name), Ok(Some(_)));
        has("__array_interface__") || has("__dlpack__")
    }

    /// What to do with an object that is used as an array.
    pub(crate) fn array_note(&mut self, known: &Known) -> Option<&'static str> {
        let is_array = matches!(known, Known::Object(_)) && self.is_array(known);
        is_array
            .then_some("pass the array to the kernel: annotate a parameter `ti.types.ndarray()`")
    }

    /// What there is in kernels instead of a function of Python's.
    pub(crate) fn instead_of(&mut self, callee: &Known, name: &str) -> String {
        if GROWING.contains(&name) {
            return LISTS.to_owned();
        }
        let module = self.host.attr(callee, "__module__");
        let of_numpy =
            matches!(&module, Ok(Some(Known::Str(module))) if module.starts_with("numpy"));
        let ours = OF_NUMPY.iter().find(|(theirs, _)| *theirs == name);
        if let (true, Some((_, ours))) = (of_numpy, ours) {
            let many = match name {
                "empty" | "full" | "ones" | "zeros" => {
                    " for small arrays, and a field for large ones"
                }
                _ => "",
            };
            return format!("in kernels this is `{ours}`{many}");
        }
        match (intrinsics::is_function(name), of_numpy) {
            (true, _) => format!("did you mean `ti.{name}`?"),
            (_, true) => "functions for kernels are in `ti` and `ti.math`".to_owned(),
            _ => "decorate it with `@ti.func`".to_owned(),
        }
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
