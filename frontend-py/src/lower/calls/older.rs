//! Calls that Taichi no longer has: they keep their meaning, with a warning that names the replacement.

use crate::ast::{Expr, ExprKind};
use crate::lower::calls::Args;
use crate::lower::values::Val;
use crate::lower::{Lower, Res};

impl<'a> Lower<'a, '_> {
    /// `x.shape()` and `A.T()`; nothing if `func` is another.
    pub(crate) fn older_method(&mut self, func: &Expr<'a>) -> Res<Option<Val>> {
        let ExprKind::Attribute {
            value,
            attr: attr @ ("shape" | "T"),
        } = func.kind
        else {
            return Ok(None);
        };
        let of = self.expr(value)?;
        if attr == "T" && self.numeric_type(&of).is_some_and(|ty| ty.is_tensor()) {
            self.warn(
                "`A.T()` is a name of older versions of Taichi: write `A.transpose()`".to_owned(),
            );
            return self
                .tensor_method(&of, "transpose", &Args::default())
                .map(Some);
        }
        let found = self.attribute(of, attr, Some(value))?;
        if attr == "shape" && found.items().is_some() {
            self.warn(
                "`x.shape()` is a form of older versions of Taichi: write `x.shape`".to_owned(),
            );
            return Ok(Some(found));
        }
        self.call_value(&found, Args::default()).map(Some)
    }

    /// `v(i)` and `A(i, j)`: elements; nothing if `callee` is no vector or matrix.
    pub(crate) fn older_element(&mut self, callee: &Val, args: &Args) -> Res<Option<Val>> {
        let is_tensor = self.numeric_type(callee).is_some_and(|ty| ty.is_tensor());
        if !is_tensor || args.positional.is_empty() || !args.keywords.is_empty() {
            return Ok(None);
        }
        self.warn("`v(i)` is a form of older versions of Taichi: write `v[i]`".to_owned());
        let indices = args.positional.clone();
        let is_tuple = indices.len() > 1;
        self.index(callee.clone(), indices, is_tuple).map(Some)
    }
}
