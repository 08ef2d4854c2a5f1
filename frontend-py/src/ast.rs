//! The syntax tree of a kernel: the part of Python that the language has, in an arena.
//!
//! Built once by `parse`, read by `lower`. Whatever has no meaning in a kernel is `Unsupported` with the name
//! Python gives it, so that the error comes from one place and carries a position.

/// Bytes `lo..hi` of the function's source text, as the user wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TextRange {
    pub lo: u32,
    pub hi: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct FuncDef<'a> {
    pub name: &'a str,
    pub params: &'a [Param<'a>],
    /// `*args`, `**kwargs` or keyword-only parameters, which kernels do not have.
    pub has_variadic: bool,
    pub is_async: bool,
    pub body: &'a [Stmt<'a>],
    pub range: TextRange,
}

#[derive(Clone, Copy, Debug)]
pub struct Param<'a> {
    pub name: &'a str,
    pub annotation: Option<&'a Expr<'a>>,
    pub has_default: bool,
    /// Whether it can be given by its name only.
    pub by_name: bool,
    pub range: TextRange,
}

#[derive(Clone, Copy, Debug)]
pub struct Stmt<'a> {
    pub range: TextRange,
    pub kind: StmtKind<'a>,
    pub returns: Returns,
}

/// Whether a statement returns from its function; known of each, so that nobody looks through long chains of `elif`
/// again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    Never,
    /// There is a `return` in it.
    Perhaps,
    /// All paths come to a `return`.
    Always,
}

impl<'a> Stmt<'a> {
    pub fn new(range: TextRange, kind: StmtKind<'a>) -> Self {
        let returns = match kind {
            StmtKind::Return(_) => Returns::Always,
            StmtKind::If { body, orelse, .. } => match (Returns::of(body), Returns::of(orelse)) {
                (Returns::Always, Returns::Always) => Returns::Always,
                (Returns::Never, Returns::Never) => Returns::Never,
                _ => Returns::Perhaps,
            },
            StmtKind::For { body, .. } | StmtKind::While { body, .. } => match Returns::of(body) {
                Returns::Never => Returns::Never,
                _ => Returns::Perhaps,
            },
            _ => Returns::Never,
        };
        Self {
            range,
            kind,
            returns,
        }
    }
}

/// How often a name is assigned to as a whole.
pub fn n_assignments(stmts: &[Stmt<'_>], name: &str) -> usize {
    let named = |target: &Expr<'_>| matches!(target.kind, ExprKind::Name(n) if n == name);
    let of = |stmt: &Stmt<'_>| match stmt.kind {
        StmtKind::Assign { targets, .. } => targets.iter().filter(|&t| named(t)).count(),
        StmtKind::AnnAssign { target, .. } => usize::from(named(target)),
        StmtKind::For { body, .. } | StmtKind::While { body, .. } => n_assignments(body, name),
        StmtKind::If { body, orelse, .. } => {
            n_assignments(body, name) + n_assignments(orelse, name)
        }
        _ => 0,
    };
    stmts.iter().map(of).sum()
}

/// Whether a name stands in an expression of operators.
pub fn mentions(expr: &Expr<'_>, name: &str) -> bool {
    match expr.kind {
        ExprKind::Name(n) => n == name,
        ExprKind::Unary { operand, .. } => mentions(operand, name),
        ExprKind::Binary { lhs, rhs, .. } => mentions(lhs, name) || mentions(rhs, name),
        _ => false,
    }
}

impl Returns {
    /// Whether statements one after the other return.
    pub fn of(stmts: &[Stmt<'_>]) -> Self {
        let any = |wanted| stmts.iter().any(|stmt| stmt.returns == wanted);
        if any(Returns::Always) {
            Returns::Always
        } else if any(Returns::Perhaps) {
            Returns::Perhaps
        } else {
            Returns::Never
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum StmtKind<'a> {
    Assign {
        targets: &'a [Expr<'a>],
        value: &'a Expr<'a>,
    },
    AugAssign {
        target: &'a Expr<'a>,
        op: BinaryOp,
        value: &'a Expr<'a>,
    },
    AnnAssign {
        target: &'a Expr<'a>,
        annotation: &'a Expr<'a>,
        value: Option<&'a Expr<'a>>,
    },
    For {
        target: &'a Expr<'a>,
        iter: &'a Expr<'a>,
        body: &'a [Stmt<'a>],
        has_else: bool,
    },
    While {
        test: &'a Expr<'a>,
        body: &'a [Stmt<'a>],
        has_else: bool,
    },
    If {
        test: &'a Expr<'a>,
        body: &'a [Stmt<'a>],
        orelse: &'a [Stmt<'a>],
    },
    Return(Option<&'a Expr<'a>>),
    Assert {
        test: &'a Expr<'a>,
        message: Option<&'a Expr<'a>>,
    },
    Expr(&'a Expr<'a>),
    Pass,
    Break,
    Continue,
    Unsupported(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct Expr<'a> {
    pub range: TextRange,
    pub kind: ExprKind<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum ExprKind<'a> {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(&'a str),
    FString(&'a [FPart<'a>]),
    Name(&'a str),
    Attribute {
        value: &'a Expr<'a>,
        attr: &'a str,
    },
    Subscript {
        value: &'a Expr<'a>,
        index: &'a Expr<'a>,
    },
    Slice {
        lo: Option<&'a Expr<'a>>,
        hi: Option<&'a Expr<'a>>,
        step: Option<&'a Expr<'a>>,
    },
    Starred(&'a Expr<'a>),
    Tuple(&'a [Expr<'a>]),
    List(&'a [Expr<'a>]),
    /// Keys and values; the key of `**x` is a `Starred`.
    Dict(&'a [(Expr<'a>, Expr<'a>)]),
    /// The element is a tuple of key and value.
    DictComprehension {
        pair: &'a Expr<'a>,
        generators: &'a [Generator<'a>],
    },
    Unary {
        op: UnaryOp,
        operand: &'a Expr<'a>,
    },
    Binary {
        op: BinaryOp,
        lhs: &'a Expr<'a>,
        rhs: &'a Expr<'a>,
    },
    Bool2 {
        op: BoolOp,
        values: &'a [Expr<'a>],
    },
    Compare {
        first: &'a Expr<'a>,
        rest: &'a [(CompareOp, Expr<'a>)],
    },
    IfElse {
        test: &'a Expr<'a>,
        on_true: &'a Expr<'a>,
        on_false: &'a Expr<'a>,
    },
    Call {
        func: &'a Expr<'a>,
        args: &'a [Expr<'a>],
        keywords: &'a [Keyword<'a>],
    },
    /// A list comprehension or a generator expression.
    Comprehension {
        element: &'a Expr<'a>,
        generators: &'a [Generator<'a>],
    },
    Walrus {
        name: &'a str,
        value: &'a Expr<'a>,
    },
    Unsupported(&'static str),
}

impl<'a> Expr<'a> {
    /// Whether it, or an expression in it, is one that is looked for.
    pub fn any(&self, is_it: &mut dyn FnMut(&Expr<'a>) -> bool) -> bool {
        if is_it(self) {
            return true;
        }
        let all = |exprs: &[Expr<'a>], is_it: &mut dyn FnMut(&Expr<'a>) -> bool| {
            exprs.iter().any(|e| e.any(is_it))
        };
        let generated = |generators: &[Generator<'a>], is_it: &mut dyn FnMut(&Expr<'a>) -> bool| {
            generators
                .iter()
                .any(|g| g.iter.any(is_it) || g.ifs.iter().any(|e| e.any(is_it)))
        };
        match self.kind {
            ExprKind::None
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Name(_)
            | ExprKind::Unsupported(_) => false,
            ExprKind::FString(parts) => parts.iter().any(|part| match part {
                FPart::Text(_) => false,
                FPart::Value { expr, .. } => expr.any(is_it),
            }),
            ExprKind::Attribute { value, .. } | ExprKind::Walrus { value, .. } => value.any(is_it),
            ExprKind::Subscript { value, index } => value.any(is_it) || index.any(is_it),
            ExprKind::Slice { lo, hi, step } => {
                [lo, hi, step].into_iter().flatten().any(|e| e.any(is_it))
            }
            ExprKind::Starred(inner) => inner.any(is_it),
            ExprKind::Tuple(items) | ExprKind::List(items) => all(items, is_it),
            ExprKind::Dict(items) => items.iter().any(|(k, v)| k.any(is_it) || v.any(is_it)),
            ExprKind::DictComprehension { pair, generators } => {
                pair.any(is_it) || generated(generators, is_it)
            }
            ExprKind::Unary { operand, .. } => operand.any(is_it),
            ExprKind::Binary { lhs, rhs, .. } => lhs.any(is_it) || rhs.any(is_it),
            ExprKind::Bool2 { values, .. } => all(values, is_it),
            ExprKind::Compare { first, rest } => {
                first.any(is_it) || rest.iter().any(|(_, e)| e.any(is_it))
            }
            ExprKind::IfElse {
                test,
                on_true,
                on_false,
            } => [test, on_true, on_false].into_iter().any(|e| e.any(is_it)),
            ExprKind::Call {
                func,
                args,
                keywords,
            } => {
                func.any(is_it)
                    || all(args, is_it)
                    || keywords.iter().any(|keyword| keyword.value.any(is_it))
            }
            ExprKind::Comprehension {
                element,
                generators,
            } => element.any(is_it) || generated(generators, is_it),
        }
    }
}

/// One piece of an f-string.
#[derive(Clone, Copy, Debug)]
pub enum FPart<'a> {
    Text(&'a str),
    Value {
        expr: &'a Expr<'a>,
        spec: Option<&'a str>,
        debug: Option<&'a str>,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Keyword<'a> {
    /// `None` for `**kwargs`.
    pub name: Option<&'a str>,
    pub value: Expr<'a>,
}

#[derive(Clone, Copy, Debug)]
pub struct Generator<'a> {
    pub target: Expr<'a>,
    pub iter: Expr<'a>,
    pub ifs: &'a [Expr<'a>],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Invert,
    Not,
    Plus,
    Minus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    MatMul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    Shl,
    Shr,
    BitAnd,
    BitOr,
    BitXor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoolOp {
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Is,
    IsNot,
    In,
    NotIn,
}

impl UnaryOp {
    /// How the user writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Invert => "~",
            UnaryOp::Not => "not",
            UnaryOp::Plus => "+",
            UnaryOp::Minus => "-",
        }
    }
}

impl BinaryOp {
    /// How the user writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::MatMul => "@",
            BinaryOp::Div => "/",
            BinaryOp::FloorDiv => "//",
            BinaryOp::Mod => "%",
            BinaryOp::Pow => "**",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
        }
    }
}

impl CompareOp {
    /// How the user writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
            CompareOp::Is => "is",
            CompareOp::IsNot => "is not",
            CompareOp::In => "in",
            CompareOp::NotIn => "not in",
        }
    }
}
