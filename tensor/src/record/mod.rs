//! Recording: each operation checks its operands and appends a statement.
//!
//! ```text
//! sum of x[n, m] over its second axis    for [n, m] { t[i0] add init = x[i0, i1] }
//! ```
//!
//! Every operation stores to temporaries of its own. Operations that come to the same statement over values that have not
//! changed give the same buffer.

mod accumulate;
mod algebra;
mod broadcast;
mod cells;
mod elementwise;
mod erf;
mod error;
mod functions;
mod index;
mod join;
mod keys;
mod linear;
mod lines;
mod memory;
pub mod notation;
mod numbers;
mod parts;
mod random;
mod recurrence;
mod reduce;
mod scan;
mod single;
pub mod trace;
mod varying;
mod views;
mod vmap;

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType, Span};
use aerogel_ir::{BinaryOp, CompareOp};

pub use accumulate::Affine;
pub use elementwise::{BINARY, UNARY};
pub use error::RecordError;
pub use index::Mode;
pub use join::Margin;
pub use keys::{Bound, Item, Key, KnownPart, Part};
pub use lines::Lines;
pub(crate) use recurrence::{Recurrence, Running};
pub(crate) use varying::varying;
pub use vmap::Mapped;

use crate::ir::{
    Accum, Agreement, Buffer, Dim, DimDef, Expr, For, Outside, Program, Site, Stmt, Store,
};

/// The result of recording an operation.
pub type Recorded<T = Buffer> = Result<T, RecordError>;

/// A statement but for where it stores: equal ones make equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Made {
    domain: Vec<Dim>,
    cells: Option<Buffer>,
    shape: Vec<Dim>,
    index: Vec<Expr>,
    value: Expr,
    accum: Option<Accum>,
}

impl Made {
    /// A value for each point of a domain, which has these axes.
    fn map(domain: Vec<Dim>, axes: Vec<Expr>, value: Expr) -> Self {
        Self {
            shape: domain.clone(),
            domain,
            cells: None,
            index: axes,
            value,
            accum: None,
        }
    }
}

/// A value that is loaded at checked indices, at all points of a domain or under a mask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CheckedLoad {
    domain: Vec<Dim>,
    buffer: Buffer,
    index: Vec<Expr>,
    asked: Option<Expr>,
}

/// A program to which operations are appended.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The program so far.
    pub program: Program,
    /// Where new statements were written.
    pub span: Span,
    /// The user's name of the recorded operation, if it differs from its own.
    pub called: Option<&'static str>,
    /// Where things were made, as far as whoever records has noted it.
    pub lines: Lines,
    /// Symbolic tensors of a finished `vmap`, or of a function that raised an error: no statement computes them any more.
    gone: SecondaryMap<Buffer, bool>,
    /// Copies on which no gradient depends.
    detached: SecondaryMap<Buffer, bool>,
    has_detached: bool,
    /// Which running operation makes a buffer.
    running: LookupMap<Buffer, Running>,
    /// The buffers that later statements may store to.
    memory: SecondaryMap<Buffer, bool>,
    made: LookupMap<Made, Buffer>,
    /// The sites of loads: the same load of the same memory has one site, and so makes the same value.
    checked: LookupMap<CheckedLoad, Site>,
    /// The definitions of scalars, until something else is stored to them.
    numbers: LookupMap<Buffer, Expr>,
    /// What single values were computed of, until memory changes that they may have been read from.
    singles: LookupMap<Buffer, Expr>,
    /// The same of those that are computed of inputs alone, which do not change.
    of_inputs: LookupMap<Buffer, Expr>,
    /// Which of these depend on sizes of axes.
    of_extents: SecondaryMap<Buffer, bool>,
    cells: cells::Cells,
    /// The sizes to which the caller has handles.
    sizes: Vec<Dim>,
}

/// A handle to a size, which stays the same when the steps that lead to it are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size(u32);

impl Recording {
    /// A handle to a size.
    pub fn size_handle(&mut self, dim: Dim) -> Size {
        self.sizes.push(dim);
        Size(self.sizes.len() as u32 - 1)
    }

    /// The size of a handle.
    pub fn dim(&self, size: Size) -> Dim {
        self.sizes[size.0 as usize]
    }

    /// Forgets which values there are: memory that they were read from changes, or they may not be there afterwards.
    pub fn forget(&mut self) {
        self.made.clear();
        self.checked.clear();
        self.singles.clear();
    }

    /// Takes over the known values of a recording of which this one is a part: those computed from its buffers, so that later
    /// operations are recorded as they would have been there. All sizes are constants.
    ///
    /// The buffers are those that the part's statements make and read: what is read is not changed in place, and so a value
    /// that is taken over stays what it is.
    pub(crate) fn take_known(
        &mut self,
        old: &mut Self,
        exprs: &LookupMap<Expr, Expr>,
        buffers: &LookupMap<Buffer, Buffer>,
        sites: &LookupMap<Site, Site>,
    ) {
        std::mem::take(&mut old.made).consume(|made, buffer| {
            let index = made.index.iter().map(|e| exprs.get(e).copied()).collect();
            let own = (buffers.get(&buffer), index, exprs.get(&made.value));
            let (Some(&buffer), Some(index), Some(&value)) = own else {
                return;
            };
            if made.cells.is_some() {
                return;
            }
            let mut dims = |of: &[Dim]| {
                let extents = of.iter().map(|&d| old.program.const_dim(d));
                let known = extents.map(|n| self.program.size(n.expect("a number")));
                known.collect()
            };
            let (domain, shape) = (dims(&made.domain), dims(&made.shape));
            let made = Made {
                domain,
                shape,
                index,
                value,
                ..made
            };
            self.made.insert(made, buffer);
        });
        std::mem::take(&mut old.checked).consume(|at, site| {
            let index = at.index.iter().map(|e| exprs.get(e).copied()).collect();
            let asked = at.asked.map(|e| exprs.get(&e).copied());
            let own = (buffers.get(&at.buffer), index, sites.get(&site));
            if let (Some(&buffer), Some(index), Some(&site)) = own
                && asked != Some(None)
            {
                let extents = at.domain.iter().map(|&d| old.program.const_dim(d));
                let known = extents.map(|n| self.program.size(n.expect("a number")));
                let at = CheckedLoad {
                    domain: known.collect(),
                    buffer,
                    index,
                    asked: asked.flatten(),
                };
                self.checked.insert(at, site);
            }
        });
        std::mem::take(&mut old.running).consume(|target, running| {
            let to = |b: Buffer| buffers.get(&b).copied();
            if let (Some(target), Some(running)) = (to(target), running.moved(to)) {
                self.running.insert(target, running);
            }
        });
        std::mem::take(&mut old.numbers).consume(|buffer, value| {
            if let (Some(&buffer), Some(&value)) = (buffers.get(&buffer), exprs.get(&value)) {
                self.numbers.insert(buffer, value);
            }
        });
    }

    /// Notes that statements that come may store to a buffer.
    pub fn note_memory(&mut self, buffer: Buffer) {
        self.memory[buffer] = true;
    }

    /// Whether statements that come may store to a buffer.
    pub fn is_memory(&self, buffer: Buffer) -> bool {
        self.memory[buffer]
    }

    /// The shape of a tensor.
    pub fn shape(&self, x: Buffer) -> Vec<Dim> {
        self.program.buffers[x].shape.clone()
    }

    /// The type of a tensor's elements.
    pub fn ty(&self, x: Buffer) -> ScalarType {
        self.program.buffers[x].ty
    }

    /// How many axes a tensor has.
    pub fn rank(&self, x: Buffer) -> usize {
        self.program.buffers[x].shape.len()
    }

    /// A size for messages.
    pub fn dim_text(&self, dim: Dim) -> String {
        self.program.dim_text(dim)
    }

    /// A shape for messages.
    pub fn shape_text(&self, shape: &[Dim]) -> String {
        let extents = shape.iter().map(|&d| self.dim_text(d));
        match shape.len() {
            1 => format!("({},)", self.dim_text(shape[0])),
            _ => format!("({})", extents.collect::<Vec<_>>().join(", ")),
        }
    }

    /// The name of an operation in messages.
    fn name_of(&self, op: &str) -> String {
        self.called.unwrap_or(op).to_owned()
    }

    /// An axis counted from the end if it is negative.
    pub(crate) fn axis_of(&self, op: &str, axis: i64, rank: usize) -> Recorded<usize> {
        let at = if axis < 0 { axis + rank as i64 } else { axis };
        if (0..rank as i64).contains(&at) {
            return Ok(at as usize);
        }
        let op = self.name_of(op);
        Err(RecordError::Axis { op, axis, rank })
    }

    /// Several axes, each named once.
    pub(crate) fn axes_of(&self, op: &str, axes: &[i64], rank: usize) -> Recorded<Vec<usize>> {
        let mut out = Vec::new();
        for &axis in axes {
            let at = self.axis_of(op, axis, rank)?;
            if out.contains(&at) {
                return Err(RecordError::Value(format!(
                    "`{op}`: axis {axis} is named twice"
                )));
            }
            out.push(at);
        }
        Ok(out)
    }

    pub(crate) fn types_error<T>(&self, op: &str, operands: &[Buffer], takes: &str) -> Recorded<T> {
        Err(RecordError::Types {
            op: self.name_of(op),
            types: operands.iter().map(|&x| self.ty(x)).collect(),
            takes: takes.to_owned(),
        })
    }

    /// Requires two sizes to be equal: checked at once if both are known, else when the program runs.
    pub(crate) fn agree(&mut self, left: Dim, right: Dim, message: &str) -> bool {
        if left == right {
            return true;
        }
        if self.program.const_dim(left).is_some() && self.program.const_dim(right).is_some() {
            return false;
        }
        let message = message.to_owned();
        let span = self.span;
        let agreement = Agreement {
            left,
            right,
            message,
            span,
        };
        if !self.program.agreements.contains(&agreement) {
            self.program.agreements.push(agreement);
        }
        true
    }

    /// Refuses sizes that indices cannot represent; sizes known only at run time are checked there.
    ///
    /// # Errors
    /// If there is one.
    pub fn expect_counted(&self, op: &str, shape: &[Dim]) -> Recorded<()> {
        let is_long = |&d: &Dim| {
            let n = self.program.const_dim(d);
            n.is_some_and(|n| i32::try_from(n).is_err())
        };
        if !shape.iter().any(is_long) {
            return Ok(());
        }
        let (op, shape) = (self.name_of(op), self.shape_text(shape));
        let most = i32::MAX;
        Err(RecordError::Value(format!(
            "{op}: the shape is {shape}, and indices go up to {most}"
        )))
    }

    /// Whether two sizes are the same, or have been required to be equal.
    pub(crate) fn are_equal(&self, left: Dim, right: Dim) -> bool {
        let mut asked = self.program.agreements.iter();
        left == right
            || asked
                .any(|a| (a.left, a.right) == (left, right) || (a.left, a.right) == (right, left))
    }

    /// A value for each point of `domain`.
    pub fn map(&mut self, domain: &[Dim], value: Expr) -> Buffer {
        let axes = self.program.axes(domain.len());
        self.make(Made::map(domain.to_vec(), axes, value))
    }

    /// What is made of operands at each point of `domain`: at the cells that they are at, also if it depends on none of them.
    ///
    /// # Errors
    /// As `cells_of`.
    fn map_of(&mut self, op: &str, operands: &[Buffer], domain: &[Dim], value: Expr) -> Recorded {
        let axes = self.program.axes(domain.len());
        let field = self.cells_of(op, operands)?;
        let over = field.map(|field| (field, axes[..self.rank(field)].to_vec()));
        Ok(self.make_over(Made::map(domain.to_vec(), axes, value), over))
    }

    /// A copy of a tensor that no other operation shares.
    ///
    /// # Errors
    /// If its values are at active cells only.
    pub fn distinct(&mut self, x: Buffer) -> Recorded {
        self.expect_everywhere(&[x])?;
        let domain = self.shape(x);
        let target = self.program.temporary(self.ty(x), &domain);
        let index = self.program.axes(domain.len());
        let value = self.program.load(x, index.clone(), Outside::Never);
        let store = Store {
            target,
            index,
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        self.for_all(domain, vec![Stmt::Store(store)]);
        Ok(target)
    }

    /// A copy of a tensor on which no gradient depends.
    ///
    /// # Errors
    /// If its values are at active cells only.
    pub fn detach(&mut self, x: Buffer) -> Recorded {
        let copy = self.distinct(x)?;
        self.detached[copy] = true;
        self.has_detached = true;
        Ok(copy)
    }

    /// Whether there are copies on which no gradient depends.
    pub(crate) fn has_detached(&self) -> bool {
        self.has_detached
    }

    /// Whether no gradient depends on a buffer.
    pub(crate) fn is_detached(&self, buffer: Buffer) -> bool {
        self.detached[buffer]
    }

    /// The reduction by `accum` of the values at all points with the same index.
    pub fn gather_into(
        &mut self,
        domain: &[Dim],
        shape: Vec<Dim>,
        index: Vec<Expr>,
        accum: Accum,
        value: Expr,
    ) -> Buffer {
        let accum = accum.of(self.program.exprs.ty(value));
        self.make(Made {
            domain: domain.to_vec(),
            cells: None,
            shape,
            index,
            value,
            accum: Some(accum),
        })
    }

    fn make(&mut self, made: Made) -> Buffer {
        let mut roots = made.index.clone();
        roots.push(made.value);
        let over = self.over(&roots);
        self.make_over(made, over)
    }

    /// The same at the cells of a field, which has this index in the axes of the domain.
    fn make_over(&mut self, mut made: Made, over: Option<cells::Over>) -> Buffer {
        if let Some(over) = over {
            return self.make_at_cells(made, over);
        }
        if made.domain.is_empty() && made.shape.is_empty() && made.accum.is_none() {
            made.value = self.counted(made.value);
        }
        self.make_one(made)
    }

    /// The same as one statement.
    fn make_one(&mut self, made: Made) -> Buffer {
        if let Some(&buffer) = self.made.get(&made) {
            return buffer;
        }
        let ty = self.program.exprs.ty(made.value);
        let target = self.program.temporary(ty, &made.shape);
        let store = Store {
            target,
            index: made.index.clone(),
            value: made.value,
            accum: made.accum,
            init: made.accum.is_some(),
            outside: Outside::Never,
        };
        self.for_cells(made.domain.clone(), made.cells, vec![Stmt::Store(store)]);
        if let Some(field) = made.cells.filter(|_| made.accum.is_none()) {
            self.note_at_cells(target, field);
        }
        if made.shape.is_empty() && made.domain.is_empty() {
            self.singles.insert(target, made.value);
            if self.is_of_inputs(made.value) {
                self.of_inputs.insert(target, made.value);
            }
            if self.is_of_numbers(made.value) {
                if self.is_of_extents(made.value) {
                    self.of_extents[target] = true;
                }
                self.numbers.insert(target, made.value);
            }
        }
        self.made.insert(made, target);
        target
    }

    /// `for domain: body`, whatever it does.
    pub fn for_all(&mut self, domain: Vec<Dim>, body: Vec<Stmt>) {
        let span = self.span;
        self.program.body.push(Stmt::For(For {
            domain,
            cells: None,
            body,
            span,
        }));
    }

    /// `target[index] = value` at every point of `domain`.
    pub fn store(&mut self, domain: &[Dim], store: Store) {
        self.store_over(domain, None, store);
    }

    /// The same at the active cells of a field.
    fn store_over(&mut self, domain: &[Dim], cells: Option<Buffer>, store: Store) {
        self.numbers.remove(&store.target);
        self.forget();
        self.for_cells(domain.to_vec(), cells, vec![Stmt::Store(store)]);
    }

    /// An element at an index that is inside.
    pub fn element(&mut self, x: Buffer, index: Vec<Expr>) -> Expr {
        self.program.load(x, index, Outside::Never)
    }

    pub(crate) fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.program.exprs.binary(BinaryOp::Add, a, b)
    }

    pub(crate) fn sub(&mut self, a: Expr, b: Expr) -> Expr {
        self.program.exprs.binary(BinaryOp::Sub, a, b)
    }

    pub(crate) fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        self.program.exprs.binary(BinaryOp::Mul, a, b)
    }

    pub(crate) fn lt(&mut self, a: Expr, b: Expr) -> Expr {
        self.program.exprs.compare(CompareOp::Lt, a, b)
    }

    /// A constant of a type, rounded to it.
    pub fn number(&mut self, ty: ScalarType, value: f64) -> Expr {
        let scalar = match ty.is_float() {
            true => Scalar::float(ty, value),
            false => Scalar::int(ty, value as i128),
        };
        self.program.exprs.constant(scalar)
    }

    /// The product of sizes.
    pub(crate) fn product(&mut self, dims: &[Dim]) -> Dim {
        let mut known = dims.iter().map(|&d| self.program.const_dim(d));
        if let Some(n) = known.try_fold(1u64, |n, d| n.checked_mul(d?)) {
            return self.program.size(n);
        }
        let one = self.program.exprs.i32(1);
        let value = dims.iter().fold(one, |n, &d| {
            let extent = self.program.extent(d);
            self.mul(n, extent)
        });
        self.program.dim(DimDef::Value(value))
    }
}
