//! A program: sizes, buffers, variables and statements.

use std::sync::Arc;

use aerogel_base::entity::PrimaryMap;
use aerogel_base::hash::FastHash;
use aerogel_base::{Scalar, ScalarType, Span};
use aerogel_ir::{AtomicOp, BinaryOp, TreeId};
use aerogel_snode::{NodeId, Tree};
use indexmap::{IndexMap, IndexSet};

use super::expr::{Expr, ExprDef, Exprs, Outside};
use super::ids::{Buffer, Dim, Region, Site, Var};
use super::kept::{Kept, Product};
use super::library::Call;
use super::region::{RegionDef, Run};
use super::site::SiteDef;
use super::size::Size;

/// The definition of a size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DimDef {
    /// A number.
    Const(u64),
    /// The size of an input along an axis, known when the program runs.
    Input(Buffer, u32),
    /// The value of an expression of constants and sizes, `i32`, whose integers are computed exactly.
    Value(Expr),
    /// The same as a number of the program: it may be negative, and is not the size of an axis.
    Number(Expr),
}

impl DimDef {
    /// The expression that computes it, if there is one.
    pub fn expr(&self) -> Option<Expr> {
        match *self {
            Self::Value(e) | Self::Number(e) => Some(e),
            Self::Const(_) | Self::Input(..) => None,
        }
    }
}

/// The role of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It comes from outside, and its number there; statements may change it, which is seen outside.
    Input(u32),
    /// A place of a tree: its cells may be inactive, and are zero then. Statements may change it, which makes cells active
    /// and is seen outside.
    Field(TreeId, NodeId),
    /// It is made here, as the one place of a tree of the program's own: what has not been stored is zero.
    Scratch(TreeId, NodeId),
    /// It is made here, its contents are undefined at first, and nobody outside sees it.
    Temporary,
}

/// A row-major array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferDef {
    /// Its name in messages and in the text.
    pub name: String,
    /// The type of its elements.
    pub ty: ScalarType,
    /// Its shape.
    pub shape: Vec<Dim>,
    /// Its role.
    pub role: Role,
}

aerogel_base::kinds! {
    /// How a value is put to what is there.
    Accum {
        /// The sum.
        Add = "add",
        /// The product.
        Mul = "mul",
        /// The smaller one; of a NaN and a number the number.
        Min = "min",
        /// The larger one; of a NaN and a number the number.
        Max = "max",
        /// The bits of both.
        And = "and",
        /// The bits of either.
        Or = "or",
        /// The bits of one.
        Xor = "xor",
    }
}

impl Accum {
    /// The arithmetic.
    pub fn binary(self) -> BinaryOp {
        match self {
            Self::Add => BinaryOp::Add,
            Self::Mul => BinaryOp::Mul,
            Self::Min => BinaryOp::Min,
            Self::Max => BinaryOp::Max,
            Self::And => BinaryOp::And,
            Self::Or => BinaryOp::Or,
            Self::Xor => BinaryOp::Xor,
        }
    }

    /// The same for numbers of a type: booleans are added by `or` and multiplied by `and`.
    pub fn of(self, ty: ScalarType) -> Self {
        match (self, ty) {
            (Self::Add, ScalarType::U1) => Self::Or,
            (Self::Mul, ScalarType::U1) => Self::And,
            (other, _) => other,
        }
    }

    /// The same in one step.
    pub fn atomic(self) -> AtomicOp {
        match self {
            Self::Add => AtomicOp::Add,
            Self::Mul => AtomicOp::Mul,
            Self::Min => AtomicOp::Min,
            Self::Max => AtomicOp::Max,
            Self::And => AtomicOp::And,
            Self::Or => AtomicOp::Or,
            Self::Xor => AtomicOp::Xor,
        }
    }

    /// The identity element.
    pub fn neutral(self, ty: ScalarType) -> Scalar {
        match self {
            Self::Mul => Scalar::one(ty),
            // A sum of nothing is no negative zero, though that changes no sum.
            Self::Add => Scalar::zero(ty),
            _ => self.atomic().identity(ty).unwrap_or(Scalar::zero(ty)),
        }
    }
}

/// `target[index] = value`, or `target[index] accum= value`, in one step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    /// The buffer.
    pub target: Buffer,
    /// One index (`i32`) for each of its axes.
    pub index: Vec<Expr>,
    /// The stored value, of the buffer's type.
    pub value: Expr,
    /// How, if not in place of what is there.
    pub accum: Option<Accum>,
    /// Before the enclosing `for` begins, the whole target becomes the identity element. Only with `accum`; such a `for` has
    /// stores only, and nothing else in it touches the target.
    pub init: bool,
    /// The meaning of out-of-bounds indices.
    pub outside: Outside,
}

/// `for i0 < n, i1 < m: body`: all points of a space, in any order and at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct For {
    /// The size of each axis.
    pub domain: Vec<Dim>,
    /// A field of this shape: only the points where its cell is active when the `for` begins. The body does not activate
    /// cells of its tree: it stores only to fields in the same cells, each point at its own indices.
    pub cells: Option<Buffer>,
    /// The statements at each point: no `For` and no `Call`.
    pub body: Vec<Stmt>,
    /// Where it was written.
    pub span: Span,
}

/// A statement. At the outermost level it is the host's; inside a `For` it is done at each point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stmt {
    /// All points of a space.
    For(For),
    /// A store, inside a `For`.
    Store(Store),
    /// Gives a variable a value. One that is first set inside a `For` is each point's own.
    Set(Var, Expr),
    /// Counts `var` from `lo` towards `hi` (exclusive) by `step` (not zero, a constant).
    Loop {
        /// The counter, `i32`.
        var: Var,
        /// Its first value.
        lo: Expr,
        /// Its end.
        hi: Expr,
        /// From one value to the next.
        step: i32,
        /// The statements.
        body: Vec<Stmt>,
    },
    /// One branch or the other, by a `u1`.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Leaves the innermost loop.
    Break,
    /// Continues with the innermost loop's next iteration.
    Continue,
    /// A library's.
    Call(Call),
    /// A kernel of the user's.
    Run(Run),
    /// All of a temporary in a tree becomes zero, and its cells inactive.
    Clear(Buffer),
}

/// Two sizes that must be equal, which is checked when the program runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agreement {
    /// One size.
    pub left: Dim,
    /// The other one.
    pub right: Dim,
    /// The message if they differ; `{}` stands for the first and for the second.
    pub message: String,
    /// Its source location.
    pub span: Span,
}

/// Statements and what they name.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Sizes; equal ones have equal ids.
    pub dims: IndexSet<DimDef, FastHash>,
    /// The trees of fields.
    pub trees: PrimaryMap<TreeId, Arc<Tree>>,
    /// Kernels of the user's.
    pub regions: PrimaryMap<Region, RegionDef>,
    /// Buffers.
    pub buffers: PrimaryMap<Buffer, BufferDef>,
    /// The types of variables.
    pub vars: PrimaryMap<Var, ScalarType>,
    /// Accesses whose indices are checked. What runs knows their numbers only: equal programs may have other sites.
    pub sites: PrimaryMap<Site, SiteDef>,
    /// Variables that the caller sets before the program runs.
    pub given: Vec<Var>,
    /// The classes of sizes that are not constants, as far as they are known.
    pub sizes: IndexMap<Dim, Size>,
    /// Expressions.
    pub exprs: Exprs,
    /// Sizes that must be equal, checked before anything runs.
    pub agreements: Vec<Agreement>,
    /// The statements.
    pub body: Vec<Stmt>,
    /// The result buffers, in order. Statements that none of them depends on, and that change no input,
    /// need not run.
    pub results: Vec<Buffer>,
    /// Why temporaries are materialised, as far as the passes have decided it.
    pub kept: IndexMap<Buffer, Kept>,
    /// How products of matrices are made, by what they would be stored to.
    pub products: IndexMap<Buffer, Product>,
}

impl Program {
    /// The id of a size with this definition.
    pub fn dim(&mut self, def: DimDef) -> Dim {
        let def = match def {
            DimDef::Value(e) => match (self.exprs.as_const(e), &self.exprs[e]) {
                (Some(n), _) if n.as_i128() >= 0 => DimDef::Const(n.as_i128() as u64),
                (None, &ExprDef::Extent(dim)) => match *self.dim_def(dim) {
                    DimDef::Number(e) => DimDef::Value(e),
                    _ => return dim,
                },
                _ => DimDef::Value(e),
            },
            other => other,
        };
        Dim::from_u32(self.dims.insert_full(def).0 as u32)
    }

    /// A constant size.
    pub fn size(&mut self, n: u64) -> Dim {
        self.dim(DimDef::Const(n))
    }

    /// The definition of a size.
    pub fn dim_def(&self, dim: Dim) -> &DimDef {
        &self.dims[dim.as_u32() as usize]
    }

    /// The value of a size, if it is constant.
    pub fn const_dim(&self, dim: Dim) -> Option<u64> {
        match *self.dim_def(dim) {
            DimDef::Const(n) => Some(n),
            _ => None,
        }
    }

    /// The size class of a size, if it is known before the program runs.
    pub fn size_of(&self, dim: Dim) -> Option<Size> {
        match *self.dim_def(dim) {
            DimDef::Const(n) => Some(Size::of(n)),
            _ => self.sizes.get(&dim).copied(),
        }
    }

    /// The size class of the number of points of this shape, if it is known before the program runs.
    pub fn size_of_all(&self, dims: impl IntoIterator<Item = Dim>) -> Option<Size> {
        let mut sizes = dims.into_iter().map(|dim| self.size_of(dim));
        sizes.try_fold(Size::of(1), |all, size| Some(all.times(size?)))
    }

    /// Whether an index is proved to be in bounds.
    pub(crate) fn surely_has(&self, dim: Dim, index: i128) -> bool {
        let least = self.size_of(dim).map_or(0, |size| size.least);
        (0..i128::from(self.const_dim(dim).unwrap_or(least))).contains(&index)
    }

    /// A size as an expression.
    pub fn extent(&mut self, dim: Dim) -> Expr {
        match self.const_dim(dim).and_then(|n| i32::try_from(n).ok()) {
            Some(n) => self.exprs.i32(n),
            None => self.exprs.extent(dim),
        }
    }

    /// An input buffer; sizes that are `None` are known when the program runs.
    pub fn input(&mut self, name: &str, ty: ScalarType, shape: &[Option<u64>]) -> Buffer {
        // Inputs are numbered in their order, so the last one tells how many there are.
        let last = self.buffers.values().rev().find_map(|def| match def.role {
            Role::Input(number) => Some(number),
            _ => None,
        });
        let number = last.map_or(0, |last| last + 1);
        let buffer = self.buffers.push(BufferDef {
            name: name.to_owned(),
            ty,
            shape: Vec::new(),
            role: Role::Input(number),
        });
        let known = shape.iter().enumerate();
        self.buffers[buffer].shape = known
            .map(|(axis, n)| n.map_or(DimDef::Input(buffer, axis as u32), DimDef::Const))
            .map(|def| Dim::from_u32(self.dims.insert_full(def).0 as u32))
            .collect();
        buffer
    }

    /// A buffer of the program's own.
    pub fn temporary(&mut self, ty: ScalarType, shape: &[Dim]) -> Buffer {
        let name = format!("t{}", self.buffers.len());
        self.buffers.push(BufferDef {
            name,
            ty,
            shape: shape.to_vec(),
            role: Role::Temporary,
        })
    }

    /// The buffer with a name.
    pub fn named(&self, name: &str) -> Option<Buffer> {
        let mut all = self.buffers.iter();
        all.find(|(_, def)| def.name == name).map(|(b, _)| b)
    }

    /// The buffers that come from outside, in their order.
    pub fn inputs(&self) -> impl Iterator<Item = Buffer> {
        let all = self.buffers.iter();
        all.filter(|(_, def)| matches!(def.role, Role::Input(_)))
            .map(|(b, _)| b)
    }

    /// A tree of fields.
    pub fn tree(&mut self, tree: Arc<Tree>) -> TreeId {
        self.trees.push(tree)
    }

    /// The buffer that is a place of a tree.
    ///
    /// # Panics
    /// If the node is no place.
    pub fn field(&mut self, name: &str, tree: TreeId, place: NodeId) -> Buffer {
        let role = Role::Field(tree, place);
        if let Some((buffer, _)) = self.buffers.iter().find(|(_, def)| def.role == role) {
            return buffer;
        }
        let (extents, kind) = (self.trees[tree].shape(place), self.trees[tree][place].kind);
        let ty = kind.scalar().expect("a field is a place");
        let shape = extents.into_iter().map(|n| self.size(n)).collect();
        self.buffers.push(BufferDef {
            name: name.to_owned(),
            ty,
            shape,
            role,
        })
    }

    /// The fields, in the order in which they were named.
    pub fn fields(&self) -> impl Iterator<Item = Buffer> {
        let all = self.buffers.iter();
        all.filter(|(_, def)| matches!(def.role, Role::Field(..)))
            .map(|(b, _)| b)
    }

    /// The tree and the place that a buffer is, if it lies in one.
    pub fn place(&self, buffer: Buffer) -> Option<(TreeId, NodeId)> {
        match self.buffers[buffer].role {
            Role::Field(tree, place) | Role::Scratch(tree, place) => Some((tree, place)),
            Role::Input(_) | Role::Temporary => None,
        }
    }

    /// The tree and the node whose cells hold a buffer, if it lies in one.
    pub fn holder(&self, buffer: Buffer) -> Option<(TreeId, NodeId)> {
        let (tree, place) = self.place(buffer)?;
        Some((tree, self.trees[tree].holder(place)))
    }

    /// The temporary that a tree of the program's own is for; none for trees of fields.
    pub fn scratch(&self, tree: TreeId) -> Option<Buffer> {
        let mut all = self.buffers.iter();
        let own = all.find(|(_, def)| matches!(def.role, Role::Scratch(own, _) if own == tree));
        own.map(|(buffer, _)| buffer)
    }

    /// How many trees are those of fields: those of the program's own come after them.
    pub fn n_given_trees(&self) -> usize {
        let mut trees = self.trees.keys();
        let first = trees.position(|tree| self.scratch(tree).is_some());
        first.unwrap_or(self.trees.len())
    }

    /// Whether a buffer is made here.
    pub fn is_made_here(&self, buffer: Buffer) -> bool {
        matches!(
            self.buffers[buffer].role,
            Role::Temporary | Role::Scratch(..)
        )
    }

    /// The sparse nodes whose active cells those of a field's are.
    pub fn sparse_nodes(&self, field: Buffer) -> Vec<(TreeId, NodeId)> {
        let Some((tree, holder)) = self.holder(field) else {
            return Vec::new();
        };
        let chain = self.trees[tree].sparse_chain(holder).into_iter();
        chain.map(|node| (tree, node)).collect()
    }

    /// The sparse nodes of which a store may make cells active. One at each point of some cells makes none so if it is to the
    /// same cells, at the point's own indices.
    pub fn activates(&self, cells: Option<Buffer>, store: &Store) -> Vec<(TreeId, NodeId)> {
        let mut axes = store.index.iter().enumerate();
        let same = cells.is_some_and(|c| self.holder(c) == self.holder(store.target));
        let stays = same
            && store.outside == Outside::Never
            && axes.all(|(k, &e)| self.exprs[e] == ExprDef::Axis(k as u32));
        if stays {
            return Vec::new();
        }
        self.sparse_nodes(store.target)
    }

    /// An element of a buffer.
    pub fn load(&mut self, buffer: Buffer, index: Vec<Expr>, outside: Outside) -> Expr {
        let ty = self.buffers[buffer].ty;
        self.exprs.add(ExprDef::Load {
            buffer,
            ty,
            index,
            outside,
        })
    }

    /// A variable.
    pub fn var(&mut self, ty: ScalarType) -> Var {
        self.vars.push(ty)
    }

    /// The value of a variable.
    pub fn get(&mut self, var: Var) -> Expr {
        let ty = self.vars[var];
        self.exprs.add(ExprDef::Var(var, ty))
    }

    /// The indices of a domain with so many axes.
    pub fn axes(&mut self, n: usize) -> Vec<Expr> {
        (0..n as u32).map(|k| self.exprs.axis(k)).collect()
    }

    /// Appends `for domain: target[index] accum= value`, and `init` if it accumulates.
    pub fn assign(&mut self, domain: &[Dim], store: Store, span: Span) {
        self.body.push(Stmt::For(For {
            domain: domain.to_vec(),
            cells: None,
            body: vec![Stmt::Store(store)],
            span,
        }));
    }

    /// A new temporary with an element for each point of `domain`, its value.
    pub fn map(&mut self, domain: &[Dim], value: Expr, span: Span) -> Buffer {
        let target = self.temporary(self.exprs.ty(value), domain);
        let index = self.axes(domain.len());
        let store = Store {
            target,
            index,
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        self.assign(domain, store, span);
        target
    }

    /// A new temporary with an element for each point of the first `n_kept` axes of `domain`: what `accum` makes of the
    /// values along the others.
    pub fn reduce(
        &mut self,
        domain: &[Dim],
        n_kept: usize,
        accum: Accum,
        value: Expr,
        span: Span,
    ) -> Buffer {
        let target = self.temporary(self.exprs.ty(value), &domain[..n_kept]);
        let index = self.axes(n_kept);
        let store = Store {
            target,
            index,
            value,
            accum: Some(accum),
            init: true,
            outside: Outside::Never,
        };
        self.assign(domain, store, span);
        target
    }
}

impl Stmt {
    /// Calls `f` for every expression that the statement names itself: not for those in statements inside.
    pub fn exprs(&self, mut f: impl FnMut(Expr)) {
        match self {
            Self::Store(store) => {
                store.index.iter().for_each(|&e| f(e));
                f(store.value);
            }
            Self::Set(_, e) => f(*e),
            Self::Loop { lo, hi, .. } => [*lo, *hi].into_iter().for_each(f),
            Self::If(cond, ..) => f(*cond),
            Self::For(_)
            | Self::Break
            | Self::Continue
            | Self::Call(_)
            | Self::Run(_)
            | Self::Clear(_) => {}
        }
    }

    /// The statements inside.
    pub fn inside(&self) -> [&[Stmt]; 2] {
        match self {
            Self::For(all) => [&all.body, &[]],
            Self::Loop { body, .. } => [body, &[]],
            Self::If(_, then, otherwise) => [then, otherwise],
            Self::Store(_)
            | Self::Set(..)
            | Self::Break
            | Self::Continue
            | Self::Call(_)
            | Self::Run(_)
            | Self::Clear(_) => [&[], &[]],
        }
    }
}
