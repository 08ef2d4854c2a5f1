//! `print`, and the templates that it shares with `assert`.
//!
//! `print("p =", p)` with a vector `p` is the template `p = [{}, {}]` and two arguments.

use aerogel_base::ErrorKind;
use aerogel_ir::{Op, Type, Value};

use crate::ast::{BinaryOp, Expr, ExprKind, FPart, Keyword};
use crate::fold;
use crate::host::Known;
use crate::lower::calls::Args;
use crate::lower::values::Val;
use crate::lower::values::number::elem;
use crate::lower::{Lower, Res};

impl<'a> Lower<'a, '_> {
    pub(crate) fn print(&mut self, args: &[Expr<'a>], keywords: &[Keyword<'a>]) -> Res<Val> {
        let (mut sep, mut end) = (" ".to_string(), "\n".to_string());
        for keyword in keywords {
            self.range = keyword.value.range;
            let val = self.expr(&keyword.value)?;
            let target = match keyword.name {
                Some("sep") => &mut sep,
                Some("end") => &mut end,
                Some("flush") => continue,
                _ => {
                    return self.fail(
                        ErrorKind::Type,
                        "E0222",
                        "`print` takes the keywords `sep` and `end`",
                    );
                }
            };
            match val {
                Val::Known(Known::Str(text)) => *target = text.to_string(),
                Val::Known(Known::None) => {}
                _ => {
                    return self.fail(
                        ErrorKind::Type,
                        "E0224",
                        "this keyword of `print` needs a constant string",
                    );
                }
            }
        }
        let range = self.range;
        let (mut template, mut values) = (String::new(), Vec::new());
        for (k, arg) in args.iter().enumerate() {
            if k > 0 {
                literal(&sep, &mut template);
            }
            self.template(arg, &mut template, &mut values)?;
        }
        literal(&end, &mut template);
        self.range = range;
        self.effect(Op::Print {
            template,
            args: values,
        });
        Ok(Val::none())
    }

    /// Appends what `expr` prints as.
    pub(crate) fn template(
        &mut self,
        expr: &Expr<'a>,
        template: &mut String,
        values: &mut Vec<Value>,
    ) -> Res<()> {
        match expr.kind {
            ExprKind::FString(parts) => {
                for part in parts {
                    match part {
                        FPart::Text(text) => literal(text, template),
                        FPart::Value { expr, spec, debug } => {
                            literal(debug.unwrap_or_default(), template);
                            let val = self.expr(expr)?;
                            self.range = expr.range;
                            self.holes(&val, spec.unwrap_or_default(), template, values)?;
                        }
                    }
                }
                Ok(())
            }
            // `"...".format(x)` and `"..." % x`.
            ExprKind::Call {
                func,
                args,
                keywords,
            } if let Some(text) = formatted_text(func) => {
                let positional = self.exprs(args)?;
                let mut named = Vec::new();
                for keyword in keywords {
                    let Some(name) = keyword.name else {
                        return self.unsupported("**");
                    };
                    named.push((name.to_owned(), self.expr(&keyword.value)?));
                }
                let args = Args {
                    positional,
                    keywords: named,
                };
                self.formatted(text, &args, template, values)
            }
            ExprKind::Binary {
                op: BinaryOp::Mod,
                lhs:
                    Expr {
                        kind: ExprKind::Str(text),
                        ..
                    },
                rhs,
            } => {
                let val = self.expr(rhs)?;
                let vals = val.items().unwrap_or_else(|| vec![val.clone()]);
                self.percent(text, &vals, template, values)
            }
            _ => {
                let val = self.expr(expr)?;
                self.range = expr.range;
                self.holes(&val, "", template, values)
            }
        }
    }

    /// `str.format`, with `{}`, `{0}`, `{name}`, format specifications, and conversions, which change nothing here.
    fn formatted(
        &mut self,
        text: &str,
        args: &Args,
        template: &mut String,
        values: &mut Vec<Value>,
    ) -> Res<()> {
        let mut rest = text;
        // Places without a number count for themselves; those with one may stand between them.
        let (mut next, mut last) = (0, 0);
        let (mut some_numbered, mut some_counted) = (false, false);
        while let Some(open) = rest.find(['{', '}']) {
            literal(&rest[..open], template);
            let bracket = &rest[open..];
            if bracket.starts_with("{{") || bracket.starts_with("}}") {
                literal(&bracket[..1], template);
                rest = &bracket[2..];
                continue;
            }
            let Some(close) = bracket.find('}').filter(|_| bracket.starts_with('{')) else {
                return self.fail(
                    ErrorKind::Syntax,
                    "E0225",
                    "a brace of the format string is not closed",
                );
            };
            let (name, spec) = bracket[1..close]
                .split_once(':')
                .unwrap_or((&bracket[1..close], ""));
            let (name, conversion) = name.split_once('!').unwrap_or((name, "r"));
            if !matches!(conversion, "r" | "s" | "a") {
                let message = format!("`!{conversion}` is not a conversion of format strings");
                let note = "supported are `!r`, `!s` and `!a`";
                return self.fail_noted(ErrorKind::Syntax, "E0225", message, note);
            }
            let val = match name.parse::<usize>() {
                Ok(at) => {
                    some_numbered = true;
                    last = last.max(at + 1);
                    args.positional.get(at)
                }
                Err(_) if name.is_empty() => {
                    some_counted = true;
                    next += 1;
                    args.positional.get(next - 1)
                }
                Err(_) => args.keyword(name),
            };
            let Some(val) = val else {
                let message = if name.is_empty() {
                    "the format string has more placeholders than there are arguments".to_owned()
                } else {
                    format!("the format string names `{name}`, which is not an argument")
                };
                return self.fail(ErrorKind::Index, "E0225", message);
            };
            self.holes(val, spec, template, values)?;
            rest = &bracket[close + 1..];
        }
        literal(rest, template);
        let (places, given) = (last.max(next), args.positional.len());
        if some_numbered && some_counted && given > places {
            let message = format!(
                "the format string has placeholders for {places} values, but {given} are given"
            );
            return self.fail(ErrorKind::Index, "E0225", message);
        }
        Ok(())
    }

    /// `%` formatting with plain directives.
    fn percent(
        &mut self,
        text: &str,
        vals: &[Val],
        template: &mut String,
        values: &mut Vec<Value>,
    ) -> Res<()> {
        let mut vals = vals.iter();
        let mut pieces = text.split('%');
        literal(pieces.next().unwrap_or_default(), template);
        while let Some(piece) = pieces.next() {
            if piece.is_empty() {
                literal("%", template);
                literal(pieces.next().unwrap_or_default(), template);
                continue;
            }
            let Some(end) = piece.find(|c: char| c.is_ascii_alphabetic()) else {
                let message =
                    format!("a placeholder of the format string is not complete: `%{piece}`");
                return self.fail(ErrorKind::Syntax, "E0225", message);
            };
            let spec = match &piece[end..=end] {
                "s" | "r" | "a" if end == 0 => String::new(),
                "s" | "r" | "a" => aligned(&piece[..end], ">"),
                "i" | "u" => format!("{}d", aligned(&piece[..end], "")),
                _ => aligned(&piece[..=end], ""),
            };
            let Some(val) = vals.next() else {
                return self.fail(
                    ErrorKind::Type,
                    "E0225",
                    "the format string has more placeholders than there are arguments",
                );
            };
            self.holes(val, &spec, template, values)?;
            literal(&piece[end + 1..], template);
        }
        if vals.len() > 0 {
            let message = "the format string has fewer placeholders than there are arguments";
            return self.fail(ErrorKind::Type, "E0225", message);
        }
        Ok(())
    }

    /// Appends a place for each scalar of `val`, in brackets as its shape has it; known text is written out.
    fn holes(
        &mut self,
        val: &Val,
        spec: &str,
        template: &mut String,
        values: &mut Vec<Value>,
    ) -> Res<()> {
        if let Some((ty, members)) = self.struct_parts(val)? {
            for (k, (member, part)) in ty.members.iter().zip(&members).enumerate() {
                literal(if k > 0 { ", " } else { "{" }, template);
                literal(&format!("'{}': ", member.name), template);
                self.holes(part, spec, template, values)?;
            }
            literal("}", template);
            return Ok(());
        }
        if let Val::Known(known) = val
            && !matches!(known, Known::Tensor(_) | Known::Field(_))
            && (!known.is_number() || !spec.is_empty() || matches!(known, Known::Int(_)))
        {
            let text = fold::format(self.host, known, spec);
            let text = text.or_else(|error| self.fail(ErrorKind::Type, "E0225", error.message))?;
            literal(&text, template);
            return Ok(());
        }
        if let Some(items) = val.items() {
            template.push('[');
            for (k, item) in items.iter().enumerate() {
                template.push_str(if k > 0 { ", " } else { "" });
                self.holes(item, spec, template, values)?;
            }
            template.push(']');
            return Ok(());
        }
        let value = self.load(val)?;
        let elem = elem(self.ty(value));
        let whole = spec.ends_with(['d', 'i', 'u', 'x', 'X', 'o', 'b', 'c']);
        if !is_format(spec) {
            let message = format!("the format `{spec}` is not supported in kernels");
            let note = "supported are flags (`-`, `<`, `>`, `0`, `+`, space, `#`), a width, a precision, and `d`, `x`, `o`, `b`, \
                 `c`, `f`, `e` or `g`";
            return self.fail_noted(ErrorKind::Type, "E0225", message, note);
        }
        let fits = fold::expect_width(spec);
        fits.or_else(|error| self.fail(ErrorKind::Type, "E0225", error.message))?;
        if elem.is_float() && whole {
            let message = format!("the format `{spec}` is for integers, not `{elem}`");
            return self.fail(ErrorKind::Type, "E0225", message);
        }
        let hole = if spec.is_empty() {
            "{}".to_string()
        } else {
            format!("{{:{spec}}}")
        };
        let row = |n: u32| format!("[{}]", vec![hole.clone(); n as usize].join(", "));
        template.push_str(&match self.ty(value) {
            Type::Vec(n, _) => row(n),
            Type::Mat(n, m, _) => format!("[{}]", vec![row(m); n as usize].join(", ")),
            _ => hole.clone(),
        });
        values.extend(self.split(value));
        Ok(())
    }
}

/// Appends text that stands for itself.
fn literal(text: &str, template: &mut String) {
    template.push_str(&text.replace('{', "{{").replace('}', "}}"));
}

/// A C specification as one of Python's, where `-` is a sign and `<` says that what is short stands on the left.
fn aligned(spec: &str, otherwise: &str) -> String {
    let rest = spec.trim_start_matches(['-', '+', ' ', '#', '0']);
    let flags = &spec[..spec.len() - rest.len()];
    if flags.contains('-') {
        let kept: String = flags.chars().filter(|c| !matches!(c, '-' | '0')).collect();
        return format!("<{kept}{rest}");
    }
    format!("{otherwise}{spec}")
}

/// Whether a specification is one that the runtime writes values by: `-8.3f`, `05d`, `x`.
fn is_format(spec: &str) -> bool {
    let digits = |text: &'_ str| text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = spec.trim_start_matches(['-', '<', '>', '0', '+', ' ', '#']);
    let rest = &rest[rest.len() - digits(rest)..];
    let rest = match rest.strip_prefix('.') {
        Some(precision) => &precision[precision.len() - digits(precision)..],
        None => rest,
    };
    let conversion = rest.trim_start_matches(['l', 'h', 'z', 'j']);
    rest.is_empty() || conversion.len() == 1 && "diuxXobcfFeEgG".contains(conversion)
}

/// The string of `"...".format`.
fn formatted_text<'a>(func: &Expr<'a>) -> Option<&'a str> {
    match func.kind {
        ExprKind::Attribute {
            value:
                Expr {
                    kind: ExprKind::Str(text),
                    ..
                },
            attr: "format",
        } => Some(text),
        _ => None,
    }
}
