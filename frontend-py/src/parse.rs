//! Python source text to our syntax tree; the only file that names the parser crates.
//!
//! A method's source is indented. It is parsed under an `if 1:` put before it, so that nothing inside has to move:
//! every position is the parser's minus the length of that prefix.

use bumpalo::Bump;
use ruff_python_ast as py;
use ruff_text_size::{Ranged, TextRange as PyRange};

use crate::ast::*;

/// What is wrong with a source text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub message: String,
    pub range: TextRange,
}

const PREFIX: &str = "if 1:\n";

/// Parses the text of one function, as `inspect.getsource` gives it.
pub fn parse_function<'a>(arena: &'a Bump, source: &str) -> Result<FuncDef<'a>, ParseError> {
    let indented = source
        .lines()
        .find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let indented = indented.is_some_and(|line| line.starts_with([' ', '\t']));
    let (text, shift) = if indented {
        (format!("{PREFIX}{source}"), PREFIX.len() as u32)
    } else {
        (source.to_string(), 0)
    };
    let cx = Convert {
        arena,
        shift,
        text: &text,
    };
    let module = ruff_python_parser::parse_module(&text)
        .map_err(|error| ParseError {
            message: error.error.to_string(),
            range: cx.range(error.location),
        })?
        .into_syntax();
    let body = match (&module.body[..], indented) {
        ([py::Stmt::If(wrapper)], true) => &wrapper.body,
        _ => &module.body,
    };
    let def = body.iter().find_map(|stmt| match stmt {
        py::Stmt::FunctionDef(def) => Some(def),
        _ => None,
    });
    match def {
        Some(def) => Ok(cx.func(def)),
        None => Err(ParseError {
            message: "the source of the function contains no `def`".into(),
            range: TextRange {
                lo: 0,
                hi: source.lines().next().map_or(0, str::len) as u32,
            },
        }),
    }
}

struct Convert<'a, 's> {
    arena: &'a Bump,
    shift: u32,
    text: &'s str,
}

impl<'a> Convert<'a, '_> {
    fn range(&self, range: PyRange) -> TextRange {
        let at = |offset: u32| offset.saturating_sub(self.shift);
        TextRange {
            lo: at(range.start().into()),
            hi: at(range.end().into()),
        }
    }

    fn str(&self, text: &str) -> &'a str {
        self.arena.alloc_str(text)
    }

    fn slice<T: Copy>(&self, items: impl IntoIterator<Item = T>) -> &'a [T] {
        let items: Vec<T> = items.into_iter().collect();
        self.arena.alloc_slice_copy(&items)
    }

    fn func(&self, def: &py::StmtFunctionDef) -> FuncDef<'a> {
        let params = &def.parameters;
        FuncDef {
            name: self.str(&def.name),
            params: self.slice(
                params
                    .posonlyargs
                    .iter()
                    .chain(&params.args)
                    .map(|param| (param, false))
                    .chain(params.kwonlyargs.iter().map(|param| (param, true)))
                    .map(|(param, by_name)| Param {
                        by_name,
                        name: self.str(&param.parameter.name),
                        annotation: param
                            .parameter
                            .annotation
                            .as_deref()
                            .map(|expr| self.expr(expr)),
                        has_default: param.default.is_some(),
                        range: self.range(param.parameter.range),
                    }),
            ),
            has_variadic: params.vararg.is_some() || params.kwarg.is_some(),
            is_async: def.is_async,
            body: self.stmts(&def.body),
            range: self.range(def.name.range()),
        }
    }

    fn stmts(&self, stmts: &[py::Stmt]) -> &'a [Stmt<'a>] {
        self.slice(
            stmts
                .iter()
                .map(|stmt| Stmt::new(self.range(stmt.range()), self.stmt(stmt))),
        )
    }

    fn stmt(&self, stmt: &py::Stmt) -> StmtKind<'a> {
        use StmtKind::Unsupported;
        match stmt {
            py::Stmt::Assign(s) => StmtKind::Assign {
                targets: self.exprs(&s.targets),
                value: self.expr(&s.value),
            },
            py::Stmt::AugAssign(s) => StmtKind::AugAssign {
                target: self.expr(&s.target),
                op: binary_op(s.op),
                value: self.expr(&s.value),
            },
            py::Stmt::AnnAssign(s) => StmtKind::AnnAssign {
                target: self.expr(&s.target),
                annotation: self.expr(&s.annotation),
                value: s.value.as_deref().map(|value| self.expr(value)),
            },
            py::Stmt::For(s) if s.is_async => Unsupported("AsyncFor"),
            py::Stmt::For(s) => StmtKind::For {
                target: self.expr(&s.target),
                iter: self.expr(&s.iter),
                body: self.stmts(&s.body),
                has_else: !s.orelse.is_empty(),
            },
            py::Stmt::While(s) => StmtKind::While {
                test: self.expr(&s.test),
                body: self.stmts(&s.body),
                has_else: !s.orelse.is_empty(),
            },
            py::Stmt::If(s) => StmtKind::If {
                test: self.expr(&s.test),
                body: self.stmts(&s.body),
                orelse: self.elif(&s.elif_else_clauses),
            },
            py::Stmt::Return(s) => {
                StmtKind::Return(s.value.as_deref().map(|value| self.expr(value)))
            }
            py::Stmt::Assert(s) => StmtKind::Assert {
                test: self.expr(&s.test),
                message: s.msg.as_deref().map(|message| self.expr(message)),
            },
            py::Stmt::Pass(_) => StmtKind::Pass,
            py::Stmt::Expr(s) if s.value.is_ellipsis_literal_expr() => StmtKind::Pass,
            py::Stmt::Expr(s) => StmtKind::Expr(self.expr(&s.value)),
            py::Stmt::Break(_) => StmtKind::Break,
            py::Stmt::Continue(_) => StmtKind::Continue,
            py::Stmt::FunctionDef(_) => Unsupported("FunctionDef"),
            py::Stmt::ClassDef(_) => Unsupported("ClassDef"),
            py::Stmt::Delete(_) => Unsupported("Delete"),
            py::Stmt::TypeAlias(_) => Unsupported("TypeAlias"),
            py::Stmt::With(_) => Unsupported("With"),
            py::Stmt::Match(_) => Unsupported("Match"),
            py::Stmt::Raise(_) => Unsupported("Raise"),
            py::Stmt::Try(_) => Unsupported("Try"),
            py::Stmt::Import(_) => Unsupported("Import"),
            py::Stmt::ImportFrom(_) => Unsupported("ImportFrom"),
            py::Stmt::Global(_) => Unsupported("Global"),
            py::Stmt::Nonlocal(_) => Unsupported("Nonlocal"),
            py::Stmt::IpyEscapeCommand(_) => Unsupported("IpyEscapeCommand"),
        }
    }

    /// `elif` is an `if` in the `else` of the one before.
    fn elif(&self, clauses: &[py::ElifElseClause]) -> &'a [Stmt<'a>] {
        let mut orelse: &[Stmt<'a>] = &[];
        for clause in clauses.iter().rev() {
            let body = self.stmts(&clause.body);
            orelse = match &clause.test {
                None => body,
                Some(test) => {
                    let test = self.expr(test);
                    let kind = StmtKind::If { test, body, orelse };
                    self.slice([Stmt::new(self.range(clause.range), kind)])
                }
            };
        }
        orelse
    }

    fn exprs(&self, exprs: &[py::Expr]) -> &'a [Expr<'a>] {
        self.slice(exprs.iter().map(|expr| self.expr_value(expr)))
    }

    fn expr(&self, expr: &py::Expr) -> &'a Expr<'a> {
        self.arena.alloc(self.expr_value(expr))
    }

    fn option(&self, expr: &Option<Box<py::Expr>>) -> Option<&'a Expr<'a>> {
        expr.as_deref().map(|expr| self.expr(expr))
    }

    fn expr_value(&self, expr: &py::Expr) -> Expr<'a> {
        Expr {
            range: self.range(expr.range()),
            kind: self.expr_kind(expr),
        }
    }

    fn expr_kind(&self, expr: &py::Expr) -> ExprKind<'a> {
        use ExprKind::Unsupported;
        match expr {
            py::Expr::NoneLiteral(_) => ExprKind::None,
            py::Expr::BooleanLiteral(e) => ExprKind::Bool(e.value),
            py::Expr::NumberLiteral(e) => match &e.value {
                py::Number::Int(value) => match value.as_u64() {
                    Some(value) => ExprKind::Int(i128::from(value)),
                    None => Unsupported("integer literal of more than 64 bits"),
                },
                py::Number::Float(value) => ExprKind::Float(*value),
                py::Number::Complex { .. } => Unsupported("complex number"),
            },
            py::Expr::StringLiteral(e) => ExprKind::Str(self.str(e.value.to_str())),
            py::Expr::FString(e) => self.fstring(e),
            py::Expr::Name(e) => ExprKind::Name(self.str(&e.id)),
            py::Expr::Attribute(e) => ExprKind::Attribute {
                value: self.expr(&e.value),
                attr: self.str(&e.attr),
            },
            py::Expr::Subscript(e) => ExprKind::Subscript {
                value: self.expr(&e.value),
                index: self.expr(&e.slice),
            },
            py::Expr::Slice(e) => ExprKind::Slice {
                lo: self.option(&e.lower),
                hi: self.option(&e.upper),
                step: self.option(&e.step),
            },
            py::Expr::Starred(e) => ExprKind::Starred(self.expr(&e.value)),
            py::Expr::Tuple(e) => ExprKind::Tuple(self.exprs(&e.elts)),
            py::Expr::List(e) => ExprKind::List(self.exprs(&e.elts)),
            py::Expr::Dict(e) => {
                let mut items = Vec::new();
                for item in &e.items {
                    let value = self.expr_value(&item.value);
                    let key = match &item.key {
                        Some(key) => self.expr_value(key),
                        None => Expr {
                            range: value.range,
                            kind: ExprKind::Starred(self.arena.alloc(value)),
                        },
                    };
                    items.push((key, value));
                }
                ExprKind::Dict(self.slice(items))
            }
            py::Expr::UnaryOp(e) => ExprKind::Unary {
                op: match e.op {
                    py::UnaryOp::Invert => UnaryOp::Invert,
                    py::UnaryOp::Not => UnaryOp::Not,
                    py::UnaryOp::UAdd => UnaryOp::Plus,
                    py::UnaryOp::USub => UnaryOp::Minus,
                },
                operand: self.expr(&e.operand),
            },
            py::Expr::BinOp(e) => ExprKind::Binary {
                op: binary_op(e.op),
                lhs: self.expr(&e.left),
                rhs: self.expr(&e.right),
            },
            py::Expr::BoolOp(e) => ExprKind::Bool2 {
                op: match e.op {
                    py::BoolOp::And => BoolOp::And,
                    py::BoolOp::Or => BoolOp::Or,
                },
                values: self.exprs(&e.values),
            },
            py::Expr::Compare(e) => ExprKind::Compare {
                first: self.expr(&e.left),
                rest: self.slice(
                    e.ops
                        .iter()
                        .zip(&e.comparators)
                        .map(|(op, rhs)| (compare_op(*op), self.expr_value(rhs))),
                ),
            },
            py::Expr::If(e) => ExprKind::IfElse {
                test: self.expr(&e.test),
                on_true: self.expr(&e.body),
                on_false: self.expr(&e.orelse),
            },
            py::Expr::Call(e) => ExprKind::Call {
                func: self.expr(&e.func),
                args: self.exprs(&e.arguments.args),
                keywords: self.slice(e.arguments.keywords.iter().map(|keyword| Keyword {
                    name: keyword.arg.as_ref().map(|name| self.str(name)),
                    value: self.expr_value(&keyword.value),
                })),
            },
            py::Expr::ListComp(e) => self.comprehension(&e.elt, &e.generators),
            py::Expr::Generator(e) => self.comprehension(&e.elt, &e.generators),
            py::Expr::Named(e) => match &*e.target {
                py::Expr::Name(name) => ExprKind::Walrus {
                    name: self.str(&name.id),
                    value: self.expr(&e.value),
                },
                _ => Unsupported("NamedExpr"),
            },
            py::Expr::Lambda(_) => Unsupported("Lambda"),
            py::Expr::Set(_) => Unsupported("Set"),
            py::Expr::SetComp(_) => Unsupported("SetComp"),
            py::Expr::DictComp(e) => {
                let pair = [&e.key, &e.value].map(|part| self.expr_value(part));
                let pair = Expr {
                    range: self.range(e.range()),
                    kind: ExprKind::Tuple(self.slice(pair)),
                };
                match self.generators(&e.generators) {
                    Some(generators) => ExprKind::DictComprehension {
                        pair: self.arena.alloc(pair),
                        generators,
                    },
                    None => Unsupported("async comprehension"),
                }
            }
            py::Expr::Await(_) => Unsupported("Await"),
            py::Expr::Yield(_) => Unsupported("Yield"),
            py::Expr::YieldFrom(_) => Unsupported("YieldFrom"),
            py::Expr::TString(_) => Unsupported("TemplateStr"),
            py::Expr::BytesLiteral(_) => Unsupported("bytes literal"),
            py::Expr::EllipsisLiteral(_) => Unsupported("Ellipsis"),
            py::Expr::IpyEscapeCommand(_) => Unsupported("IpyEscapeCommand"),
        }
    }

    fn comprehension(&self, element: &py::Expr, generators: &[py::Comprehension]) -> ExprKind<'a> {
        match self.generators(generators) {
            Some(generators) => ExprKind::Comprehension {
                element: self.expr(element),
                generators,
            },
            None => ExprKind::Unsupported("async comprehension"),
        }
    }

    fn generators(&self, generators: &[py::Comprehension]) -> Option<&'a [Generator<'a>]> {
        if generators.iter().any(|generator| generator.is_async) {
            return None;
        }
        Some(self.slice(generators.iter().map(|generator| Generator {
            target: self.expr_value(&generator.target),
            iter: self.expr_value(&generator.iter),
            ifs: self.exprs(&generator.ifs),
        })))
    }

    fn fstring(&self, fstring: &py::ExprFString) -> ExprKind<'a> {
        let mut parts = Vec::new();
        for part in fstring.value.iter() {
            let elements = match part {
                py::FStringPart::Literal(text) => {
                    parts.push(FPart::Text(self.str(&text.value)));
                    continue;
                }
                py::FStringPart::FString(inner) => &inner.elements,
            };
            for element in elements.iter() {
                match element {
                    py::InterpolatedStringElement::Literal(text) => {
                        parts.push(FPart::Text(self.str(&text.value)))
                    }
                    py::InterpolatedStringElement::Interpolation(value) => {
                        // Numbers read the same by `!r` and `!s`, and text stands as it is, as after `{x=}`.
                        let debug = value.debug_text.as_ref().map(|debug| {
                            let source = &self.text[value.expression.range()];
                            self.str(&format!("{}{}{}", debug.leading, source, debug.trailing))
                        });
                        let spec = match &value.format_spec {
                            None => None,
                            Some(spec) => match &spec.elements[..] {
                                [] => None,
                                [py::InterpolatedStringElement::Literal(text)] => {
                                    Some(self.str(&text.value))
                                }
                                _ => return ExprKind::Unsupported("computed format specification"),
                            },
                        };
                        parts.push(FPart::Value {
                            expr: self.expr(&value.expression),
                            spec,
                            debug,
                        });
                    }
                }
            }
        }
        ExprKind::FString(self.slice(parts))
    }
}

fn binary_op(op: py::Operator) -> BinaryOp {
    match op {
        py::Operator::Add => BinaryOp::Add,
        py::Operator::Sub => BinaryOp::Sub,
        py::Operator::Mult => BinaryOp::Mul,
        py::Operator::MatMult => BinaryOp::MatMul,
        py::Operator::Div => BinaryOp::Div,
        py::Operator::Mod => BinaryOp::Mod,
        py::Operator::Pow => BinaryOp::Pow,
        py::Operator::LShift => BinaryOp::Shl,
        py::Operator::RShift => BinaryOp::Shr,
        py::Operator::BitOr => BinaryOp::BitOr,
        py::Operator::BitXor => BinaryOp::BitXor,
        py::Operator::BitAnd => BinaryOp::BitAnd,
        py::Operator::FloorDiv => BinaryOp::FloorDiv,
    }
}

fn compare_op(op: py::CmpOp) -> CompareOp {
    match op {
        py::CmpOp::Eq => CompareOp::Eq,
        py::CmpOp::NotEq => CompareOp::Ne,
        py::CmpOp::Lt => CompareOp::Lt,
        py::CmpOp::LtE => CompareOp::Le,
        py::CmpOp::Gt => CompareOp::Gt,
        py::CmpOp::GtE => CompareOp::Ge,
        py::CmpOp::Is => CompareOp::Is,
        py::CmpOp::IsNot => CompareOp::IsNot,
        py::CmpOp::In => CompareOp::In,
        py::CmpOp::NotIn => CompareOp::NotIn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_an_indented_method_are_the_users() {
        let source = "    @ti.kernel\n    def step(self):\n        x = self.n + 1\n";
        let arena = Bump::new();
        let def = parse_function(&arena, source).expect("the source is valid");
        let StmtKind::Assign { value, .. } = def.body[0].kind else {
            panic!("an assignment")
        };
        assert_eq!(
            &source[value.range.lo as usize..value.range.hi as usize],
            "self.n + 1"
        );
    }

    #[test]
    fn elif_nests() {
        let arena = Bump::new();
        let def = parse_function(
            &arena,
            "def f(a):\n  if a: pass\n  elif b: pass\n  else: x = 1\n",
        )
        .expect("valid");
        let StmtKind::If { orelse, .. } = def.body[0].kind else {
            panic!("an if")
        };
        let StmtKind::If { orelse, .. } = orelse[0].kind else {
            panic!("an elif")
        };
        assert!(matches!(orelse[0].kind, StmtKind::Assign { .. }));
    }

    #[test]
    fn a_syntax_error_has_a_position() {
        let arena = Bump::new();
        let error = parse_function(&arena, "def f():\n  x = = 1\n").expect_err("invalid");
        assert!(error.range.lo >= 9, "{error:?}");
    }
}
