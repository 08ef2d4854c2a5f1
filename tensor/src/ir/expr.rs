//! Scalar expressions, each written once: equal expressions have equal ids.

use aerogel_base::hash::{FastHash, LookupMap, LookupSet};
use aerogel_base::{Scalar, ScalarType, entity};
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp, eval};
use indexmap::IndexSet;
use smallvec::SmallVec;

use super::function::Function;
use super::ids::{Buffer, Dim, Site, Var};

entity! {
    /// An expression of a program.
    pub struct Expr, "e"
}

/// What an out-of-bounds index means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outside {
    /// Indices are inside, which the writer has proved.
    Never,
    /// The nearest one inside.
    Clamp,
    /// The remainder modulo the size of the axis.
    Wrap,
    /// A read gives zero, a write does nothing.
    Zero,
    /// An error, which names the access.
    Error(Site),
}

impl Outside {
    /// Whether an index outside is an error.
    pub fn is_checked(self) -> bool {
        matches!(self, Self::Error(_))
    }
}

/// What an expression does. Axes are counted in the domain of the `for` around, so that the same expression over another
/// domain is the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExprDef {
    /// A constant.
    Const(Scalar),
    /// The index along an axis of the domain, `i32`.
    Axis(u32),
    /// The value of a variable.
    Var(Var, ScalarType),
    /// The size of an axis, `i32`.
    Extent(Dim),
    /// An element of a buffer, as it is when the statement runs.
    Load {
        /// Which buffer.
        buffer: Buffer,
        /// The type of its elements.
        ty: ScalarType,
        /// One index (`i32`) for each of its axes.
        index: Vec<Expr>,
        /// The meaning of out-of-bounds indices.
        outside: Outside,
    },
    /// Arithmetic on one operand.
    Unary(UnaryOp, Expr),
    /// Arithmetic on two operands of one type.
    Binary(BinaryOp, Expr, Expr),
    /// A comparison of two operands of one type.
    Compare(CompareOp, Expr, Expr),
    /// One of two values of one type, by a `u1`.
    Select(Expr, Expr, Expr),
    /// A conversion.
    Cast(Expr, ScalarType),
    /// The same bits as another type of the same width.
    Bitcast(Expr, ScalarType),
}

/// Goes into an operand. An expression is as deep as its program writes it, and a stack is not.
pub(crate) fn deep<T>(go: impl FnOnce() -> T) -> T {
    const LEAST: usize = 64 << 10;
    const MORE: usize = 4 << 20;
    stacker::maybe_grow(LEAST, MORE, go)
}

impl ExprDef {
    /// Calls `f` for every operand.
    pub fn operands(&self, mut f: impl FnMut(Expr)) {
        match self {
            Self::Const(_) | Self::Axis(_) | Self::Var(..) | Self::Extent(_) => {}
            Self::Load { index, .. } => index.iter().for_each(|&e| f(e)),
            Self::Unary(_, x) | Self::Cast(x, _) | Self::Bitcast(x, _) => f(*x),
            Self::Binary(_, a, b) | Self::Compare(_, a, b) => [*a, *b].into_iter().for_each(f),
            Self::Select(c, a, b) => [*c, *a, *b].into_iter().for_each(f),
        }
    }

    /// The same with other operands.
    #[must_use]
    pub fn map_operands(&self, mut f: impl FnMut(Expr) -> Expr) -> Self {
        match self {
            Self::Const(_) | Self::Axis(_) | Self::Var(..) | Self::Extent(_) => self.clone(),
            Self::Load {
                buffer,
                ty,
                index,
                outside,
            } => Self::Load {
                buffer: *buffer,
                ty: *ty,
                index: index.iter().map(|&e| f(e)).collect(),
                outside: *outside,
            },
            Self::Unary(op, x) => Self::Unary(*op, f(*x)),
            Self::Cast(x, ty) => Self::Cast(f(*x), *ty),
            Self::Bitcast(x, ty) => Self::Bitcast(f(*x), *ty),
            Self::Binary(op, a, b) => Self::Binary(*op, f(*a), f(*b)),
            Self::Compare(op, a, b) => Self::Compare(*op, f(*a), f(*b)),
            Self::Select(c, a, b) => Self::Select(f(*c), f(*a), f(*b)),
        }
    }
}

/// Whether a sum, difference or product of two integers overflows.
fn wraps(op: BinaryOp, x: Scalar, y: Scalar, made: Scalar) -> bool {
    let (x, y) = (x.as_i128(), y.as_i128());
    let exact = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        _ => return false,
    };
    exact != made.as_i128()
}

/// Visited expressions, which are few as a rule.
#[derive(Default)]
struct Seen {
    first: SmallVec<[Expr; 12]>,
    others: LookupSet<Expr>,
}

impl Seen {
    /// Whether this is the first visit.
    fn insert(&mut self, e: Expr) -> bool {
        if self.first.contains(&e) {
            return false;
        }
        if self.first.len() < self.first.inline_size() {
            self.first.push(e);
            return true;
        }
        self.others.insert(e)
    }
}

/// All expressions of a program. An operand is always older than what uses it.
#[derive(Clone, Debug, Default)]
pub struct Exprs {
    defs: IndexSet<ExprDef, FastHash>,
    types: Vec<ScalarType>,
    functions: LookupMap<Expr, (Function, Vec<Expr>)>,
}

impl std::ops::Index<Expr> for Exprs {
    type Output = ExprDef;

    fn index(&self, e: Expr) -> &ExprDef {
        &self.defs[e.as_u32() as usize]
    }
}

impl Exprs {
    /// The expression that does this, simplified where that loses nothing.
    pub fn add(&mut self, def: ExprDef) -> Expr {
        if let Some(simpler) = self.simplified(&def) {
            return simpler;
        }
        self.add_as_is(def)
    }

    /// The expression that does this, as it stands.
    pub fn add_as_is(&mut self, def: ExprDef) -> Expr {
        let ty = self.type_of(&def);
        let (at, new) = self.defs.insert_full(def);
        if new {
            self.types.push(ty);
        }
        Expr::from_u32(at as u32)
    }

    fn type_of(&self, def: &ExprDef) -> ScalarType {
        match def {
            ExprDef::Const(value) => value.ty(),
            ExprDef::Axis(_) | ExprDef::Extent(_) => ScalarType::I32,
            ExprDef::Compare(..) => ScalarType::U1,
            ExprDef::Var(_, ty)
            | ExprDef::Load { ty, .. }
            | ExprDef::Cast(_, ty)
            | ExprDef::Bitcast(_, ty) => *ty,
            ExprDef::Unary(_, x) | ExprDef::Binary(_, x, _) | ExprDef::Select(_, x, _) => {
                self.ty(*x)
            }
        }
    }

    /// The type of an expression's value.
    pub fn ty(&self, e: Expr) -> ScalarType {
        self.types[e.as_u32() as usize]
    }

    /// Notes that an expression is a function of others.
    pub fn note_function(&mut self, e: Expr, function: Function, operands: Vec<Expr>) {
        if !operands.contains(&e) {
            self.functions.insert(e, (function, operands));
        }
    }

    /// Forgets which expressions are functions: their derivatives will not be needed.
    pub fn forget_functions(&mut self) {
        self.functions.clear();
    }

    /// The function that an expression is, if its derivative is not that of its operations, and its operands.
    pub fn function(&self, e: Expr) -> Option<&(Function, Vec<Expr>)> {
        self.functions.get(&e)
    }

    /// All of them, operands first.
    pub fn all(&self) -> impl Iterator<Item = &ExprDef> {
        self.defs.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.defs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.defs.is_empty()
    }

    /// The value, if it is a constant.
    pub fn as_const(&self, e: Expr) -> Option<Scalar> {
        match self[e] {
            ExprDef::Const(value) => Some(value),
            _ => None,
        }
    }

    fn as_int(&self, e: Expr) -> Option<i128> {
        let value = self.as_const(e)?;
        value.ty().is_int().then(|| value.as_i128())
    }

    fn is_minus_zero(&self, e: Expr) -> bool {
        let value = self
            .as_const(e)
            .filter(|v| v.ty().is_float())
            .map(Scalar::as_f64);
        value.is_some_and(|v| v == 0.0 && v.is_sign_negative())
    }

    /// Folds constants, and drops identity elements. Sums of floats and -0 stay.
    fn simplified(&mut self, def: &ExprDef) -> Option<Expr> {
        use BinaryOp::{Add, Div, FloorDiv, Mod, Mul, Sub};
        let exact = |s: &Self, e| s.as_const(e);
        let value = match *def {
            ExprDef::Unary(op, x) if op.is_exact() => Some(eval::unary(op, exact(self, x)?)),
            ExprDef::Binary(op, a, b) => {
                let (x, y) = (exact(self, a), exact(self, b));
                if let (Some(x), Some(y)) = (x, y)
                    && op.is_exact(x.ty())
                {
                    let made = eval::binary(op, x, y);
                    // Wrapping operations stay: as sizes they do not wrap.
                    if x.ty() == ScalarType::I32 && wraps(op, x, y, made) {
                        return None;
                    }
                    Some(made)
                } else {
                    let (x, y) = (self.as_int(a), self.as_int(b));
                    return match (op, x, y) {
                        // The one number that changes no sum of floats.
                        (Add, None, None) if self.is_minus_zero(a) => Some(b),
                        (Add, None, None) if self.is_minus_zero(b) => Some(a),
                        (Add, Some(0), _) | (Mul, Some(1), _) => Some(b),
                        (Add | Sub, _, Some(0)) => Some(a),
                        (Mul | Div | FloorDiv, _, Some(1)) => Some(a),
                        (Mul, Some(0), _) => Some(a),
                        (Mul, _, Some(0)) => Some(b),
                        (Mod, _, Some(1)) => Some(self.int(self.ty(a), 0)),
                        // Constants come together at the end: (e + 1) + 2.
                        (Add, _, Some(y)) => match self[a] {
                            ExprDef::Binary(Add, inner, c) if self.as_int(c).is_some() => {
                                let sum = self.as_int(c)? + y;
                                if self.ty(a) == ScalarType::I32 && i32::try_from(sum).is_err() {
                                    return None;
                                }
                                let c = self.int(self.ty(a), sum);
                                Some(self.add(ExprDef::Binary(Add, inner, c)))
                            }
                            _ => None,
                        },
                        (Add, Some(_), None) => Some(self.add(ExprDef::Binary(Add, b, a))),
                        (Sub, None, Some(y)) if y != i32::MIN.into() => {
                            let c = self.int(self.ty(a), -y);
                            Some(self.add(ExprDef::Binary(Add, a, c)))
                        }
                        _ => None,
                    };
                }
            }
            ExprDef::Compare(op, a, b) => Some(Scalar::bool(eval::compare(
                op,
                exact(self, a)?,
                exact(self, b)?,
            ))),
            ExprDef::Select(c, a, b) => {
                if a == b {
                    return Some(a);
                }
                return exact(self, c).map(|c| if c.as_bool() { a } else { b });
            }
            ExprDef::Cast(x, to) => {
                if self.ty(x) == to {
                    return Some(x);
                }
                Some(eval::cast(exact(self, x)?, to))
            }
            ExprDef::Bitcast(x, to) if self.ty(x) == to => return Some(x),
            _ => None,
        };
        value.map(|value| self.constant(value))
    }

    /// A constant.
    pub fn constant(&mut self, value: Scalar) -> Expr {
        self.add_as_is(ExprDef::Const(value))
    }

    /// An integer constant.
    pub fn int(&mut self, ty: ScalarType, value: i128) -> Expr {
        self.constant(Scalar::int(ty, value))
    }

    /// An `i32` constant.
    pub fn i32(&mut self, value: i32) -> Expr {
        self.constant(Scalar::i32(value))
    }

    /// The index along an axis.
    pub fn axis(&mut self, k: u32) -> Expr {
        self.add_as_is(ExprDef::Axis(k))
    }

    /// The size of an axis.
    pub fn extent(&mut self, dim: Dim) -> Expr {
        self.add_as_is(ExprDef::Extent(dim))
    }

    /// Arithmetic on one operand.
    pub fn unary(&mut self, op: UnaryOp, x: Expr) -> Expr {
        self.add(ExprDef::Unary(op, x))
    }

    /// Arithmetic on two operands of one type.
    pub fn binary(&mut self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        debug_assert_eq!(self.ty(a), self.ty(b), "{op}");
        self.add(ExprDef::Binary(op, a, b))
    }

    /// A comparison.
    pub fn compare(&mut self, op: CompareOp, a: Expr, b: Expr) -> Expr {
        debug_assert_eq!(self.ty(a), self.ty(b), "{op}");
        self.add(ExprDef::Compare(op, a, b))
    }

    /// One of two values.
    pub fn select(&mut self, cond: Expr, on_true: Expr, on_false: Expr) -> Expr {
        self.add(ExprDef::Select(cond, on_true, on_false))
    }

    /// A conversion.
    pub fn cast(&mut self, x: Expr, to: ScalarType) -> Expr {
        self.add(ExprDef::Cast(x, to))
    }

    /// An expression with operands replaced, from the innermost on: `new` says what stands for an expression whose operands
    /// are replaced already, or nothing where it stays as it is. `done` keeps what was replaced, so that what is shared is
    /// done once.
    pub fn replace(
        &mut self,
        e: Expr,
        done: &mut LookupMap<Expr, Expr>,
        new: &mut dyn FnMut(&mut Self, &ExprDef) -> Option<Expr>,
    ) -> Expr {
        if let Some(&done) = done.get(&e) {
            return done;
        }
        let old = self[e].clone();
        let def = old.map_operands(|x| deep(|| self.replace(x, done, new)));
        let replaced = match new(self, &def) {
            Some(replaced) => replaced,
            None if def == old => e,
            None => self.add(def),
        };
        done.insert(e, replaced);
        if let Some((function, operands)) = self.functions.get(&e).cloned() {
            let operands = operands.into_iter();
            let operands = operands.map(|x| deep(|| self.replace(x, done, new)));
            let operands = operands.collect();
            self.note_function(replaced, function, operands);
        }
        replaced
    }

    /// Calls `f` once for every expression that some of `roots` are made of, operands first.
    pub fn visit(&self, roots: impl IntoIterator<Item = Expr>, f: &mut dyn FnMut(Expr)) {
        let mut seen = Seen::default();
        let mut stack: SmallVec<[(Expr, bool); 16]> =
            roots.into_iter().map(|e| (e, false)).collect();
        stack.reverse();
        while let Some((e, ready)) = stack.pop() {
            if ready {
                f(e);
            } else if seen.insert(e) {
                stack.push((e, true));
                let first = stack.len();
                self[e].operands(|x| stack.push((x, false)));
                stack[first..].reverse();
            }
        }
    }
}
