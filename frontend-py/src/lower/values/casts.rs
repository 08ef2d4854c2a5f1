//! Conversions to a scalar type: `ti.f32(x)`, `int(x)`, `ti.cast(x, ti.i8)`.

use aerogel_base::{ErrorKind, Scalar, ScalarType};

use crate::fold;
use crate::host::Known;
use crate::infer::int_range;
use crate::lower::calls::Args;
use crate::lower::values::Val;
use crate::lower::{Lower, Res};

impl Lower<'_, '_> {
    /// `ti.f32(x)`.
    pub(crate) fn cast_call(&mut self, ty: ScalarType, args: &Args) -> Res<Val> {
        match &args.positional[..] {
            [x] => {
                if let Val::Known(Known::Int(value)) = x
                    && ty.is_int()
                    && ty != ScalarType::U1
                    && !(int_range(ty).0..=int_range(ty).1).contains(value)
                {
                    return self.fail_noted(
                        ErrorKind::Type,
                        "E0204",
                        format!("the integer {value} is out of the range of `{ty}`"),
                        format!("to keep its low bits write `ti.cast({value}, ti.{ty})`"),
                    );
                }
                self.cast(x, ty)
            }
            all => {
                let n = all.len();
                self.fail(
                    ErrorKind::Type,
                    "E0222",
                    format!("`{ty}` takes one argument, not {n}"),
                )
            }
        }
    }

    /// `int(x)`: of a constant now, as Python does it; of a value a cast.
    pub(crate) fn python_cast(&mut self, ty: ScalarType, args: &Args) -> Res<Val> {
        let of_text = matches!(args.positional.first(), Some(Val::Known(Known::Str(_))));
        let all_known = args.positional.iter().all(|val| val.known().is_some());
        if of_text && all_known && ty != ScalarType::U1 {
            // `float("inf")` and `int("ff", 16)` are Python's, which says what is wrong with a text.
            let name = if ty.is_float() { "float" } else { "int" };
            return self.call_python(&Known::Builtin(name.into()), args);
        }
        let [x] = &args.positional[..] else {
            return self.fail(
                ErrorKind::Type,
                "E0222",
                format!("a conversion to `{ty}` takes one argument"),
            );
        };
        match x {
            Val::Known(known)
                if ty == ScalarType::U1
                    && (known.items().is_some()
                        || matches!(known, Known::None | Known::Str(_) | Known::Object(_))) =>
            {
                let truth = fold::truth(self.host, known);
                Ok(Val::Known(Known::Bool(self.hosted(truth)?)))
            }
            Val::Known(known) if known.is_number() => Ok(Val::Known(match (ty, known) {
                (ScalarType::U1, _) => Known::Bool(known.as_float() != Some(0.0)),
                (_, Known::Float(value))
                    if ty.is_int() && value.is_finite() && value.abs() < 1e30 =>
                {
                    Known::Int(value.trunc() as i128)
                }
                (_, Known::Float(_)) if ty.is_int() => {
                    return self.fail(ErrorKind::Type, "E0204", "the float has no integer value");
                }
                _ if ty.is_int() => Known::Int(known.as_int().unwrap_or_default()),
                _ => Known::Float(known.as_float().unwrap_or_default()),
            })),
            _ => self.cast(x, ty),
        }
    }

    /// `x` with elements of type `ty`. A literal goes there directly.
    pub(crate) fn cast(&mut self, x: &Val, ty: ScalarType) -> Res<Val> {
        if let (Val::Known(Known::Float(value)), true) = (x, ty.is_float()) {
            let scalar = Scalar::float(ty, *value);
            return Ok(Val::Value(self.builder().constant(scalar)));
        }
        let from = self.expect_numeric(x)?;
        Ok(Val::Value(self.operand(x, ty, from)?))
    }
}
