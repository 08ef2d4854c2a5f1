//! Inlining: values that are recomputed where they are read, instead of being materialised.
//!
//! ```text
//! for [n] { t[i0] = mul(x[i0], x[i0]) }
//! for [n] { y[i0] = add(t[i0], 1) }          for [n] { y[i0] = add(mul(x[i0], x[i0]), 1) }
//! ```
//! A temporary that one `for` stores as a whole, each element at the point with its indices, is a function of its
//! indices. Reads of it become that function, where nothing that it reads has changed since, and where that costs no more:
//! see `pays`. One that is stored at the active cells of a field is such a function at the same points of what goes over the
//! same cells. Each materialised temporary has a [`Kept`], which `explain` prints.

use aerogel_base::Scalar;
use aerogel_base::hash::{FastHash, LookupMap};
use aerogel_ir::{BinaryOp, CompareOp, TreeId, UnaryOp};
use aerogel_snode::NodeId;
use indexmap::{IndexMap, IndexSet};

use super::Options;
use super::asked::{is_all_read, may_fail};
use super::readers::{Order, Readers};
use crate::ir::{
    Buffer, Dim, Expr, ExprDef, Exprs, For, Kept, Outside, Program, Role, Stmt, Touched, Var,
    exprs_of, is_at_own_place, map_exprs, visit,
};

/// The cost of a load of what is in a cache, in operations.
const LOAD: u32 = 2;
/// The cost up to which recomputing is as cheap as reading.
const TRIVIAL: u32 = 3;
/// As often as an index counts that not all axes of a domain are in.
const AGAIN: u32 = 8;

/// What materialising an array costs for each element, in operations.
#[derive(Clone, Copy)]
struct Traffic {
    store: u32,
    load: u32,
}

/// In a cache.
const NEAR: Traffic = Traffic {
    store: 4,
    load: LOAD,
};
/// In memory. Measured in lanes of sixteen numbers: the gradient of 4096 bodies takes 56 ms if values of pairs are computed where they are
/// read, 111 ms with two materialised arrays of pairs, and 175 ms with six.
const FAR: Traffic = Traffic {
    store: 60,
    load: 24,
};
/// An array of so many elements does not fit into a cache.
const MANY: u64 = 1 << 20;

/// What materialising a buffer would cost. Where sizes are not known, an array of all pairs of elements is taken to be large, unless
/// one goes in or comes out: then the program's own arrays would be, too.
fn traffic(program: &Program, buffer: Buffer) -> Traffic {
    let unknown = |buffer: Buffer| -> Vec<Dim> {
        let shape = program.buffers[buffer].shape.iter().copied();
        shape
            .filter(|&dim| program.const_dim(dim).is_none())
            .collect()
    };
    let shape = &program.buffers[buffer].shape;
    let is_large = match program.size_of_all(shape.iter().copied()) {
        Some(size) => size.about >= MANY,
        None => {
            let axes = unknown(buffer);
            let mut others = program.buffers.iter();
            let is_pair = axes.len() == 2 && axes[0] == axes[1];
            is_pair
                && !others.any(|(b, def)| {
                    let is_kept = def.role != Role::Temporary || program.results.contains(&b);
                    is_kept && unknown(b) == axes
                })
        }
    };
    if is_large { FAR } else { NEAR }
}

/// Inlines all that pays.
pub(super) fn run(program: &mut Program, options: Options) -> bool {
    let mut inline = Inline::new(program, options.caps.inline_cost);
    let mut body = std::mem::take(&mut program.body);
    let changed = inline.block(program, &mut body);
    program.body = body;
    program.kept = inline.kept;
    changed
}

/// Cells: those of a node of a tree.
type Cells = (TreeId, NodeId);

/// A value as a function of its indices.
struct Function {
    value: Expr,
    cost: u32,
    /// The cells at which it has a value, if not everywhere.
    cells: Option<Cells>,
    /// When it was computed.
    at: usize,
    reads: Touched,
    /// Whether an index in it that is outside is an error: of each of its elements, whether they count or not.
    may_fail: bool,
}

struct Inline {
    /// The candidates for inlining, so far.
    functions: IndexMap<Buffer, Function>,
    kept: IndexMap<Buffer, Kept>,
    /// How often each buffer is read, by different indices or with axes left over.
    visits: IndexMap<Buffer, u32>,
    /// When buffers and variables were changed last.
    changed: IndexMap<Buffer, usize>,
    set: IndexMap<Var, usize>,
    /// When cells of sparse nodes may have become active last.
    activated: IndexMap<(TreeId, NodeId), usize>,
    now: usize,
    /// The most that the expressions of a kernel cost.
    max_cost: u64,
}

impl Inline {
    fn new(program: &Program, max_cost: u64) -> Self {
        let mut inline = Self {
            functions: IndexMap::new(),
            kept: IndexMap::new(),
            visits: IndexMap::new(),
            changed: IndexMap::new(),
            set: IndexMap::new(),
            activated: IndexMap::new(),
            now: 0,
            max_cost,
        };
        let mut stores = IndexMap::new();
        let mut readers = Readers::default();
        inline.look(program, &program.body, &mut stores, &mut readers);
        for (buffer, n) in readers.counted(program, &stores) {
            *inline.visits.entry(buffer).or_default() += n;
        }
        for (buffer, def) in program.buffers.iter() {
            if def.role == Role::Temporary && stores.get(&buffer).is_some_and(|&n| n > 1) {
                inline.kept.insert(buffer, Kept::StoredAgain);
            }
        }
        for &result in &program.results {
            inline.kept.insert(result, Kept::Result);
        }
        inline
    }

    /// Counts stores and reads.
    fn look(
        &mut self,
        program: &Program,
        body: &[Stmt],
        stores: &mut IndexMap<Buffer, u32>,
        readers: &mut Readers,
    ) {
        for stmt in body {
            match stmt {
                Stmt::For(all) => {
                    let mut own = IndexSet::new();
                    self.visits_of(program, &all.body, &all.domain, false, &mut own);
                    readers.add(program, all, own);
                    count_stores(&all.body, stores);
                }
                Stmt::Call(call) => {
                    for &buffer in call.inputs.iter().chain(&call.outputs) {
                        self.kept.insert(buffer, Kept::Library);
                    }
                    readers.wrote(call.outputs.iter().copied());
                }
                Stmt::Run(run) => {
                    for &buffer in run.arrays.iter().chain(&run.results) {
                        self.kept.insert(buffer, Kept::Kernel);
                    }
                    let touched = Touched::by(program, std::slice::from_ref(stmt));
                    readers.wrote(touched.writes);
                }
                host => {
                    for buffer in Touched::of_itself(program, host).reads {
                        self.kept.insert(buffer, Kept::HostReads);
                    }
                    for inside in host.inside() {
                        readers.enter();
                        self.look(program, inside, stores, readers);
                    }
                    readers.enter();
                }
            }
        }
    }

    /// Counts reads, those in loops at a point several times.
    fn visits_of(
        &mut self,
        program: &Program,
        body: &[Stmt],
        domain: &[Dim],
        in_loop: bool,
        own: &mut IndexSet<(Buffer, Order)>,
    ) {
        let roots = body.iter().flat_map(Stmt::roots).collect();
        self.count_visits(program, roots, domain, in_loop, own);
        for stmt in body {
            let in_loop = in_loop || matches!(stmt, Stmt::Loop { .. });
            for inside in stmt.inside() {
                self.visits_of(program, inside, domain, in_loop, own);
            }
        }
    }

    /// Counts reads; those at the points with the elements' indices are put to `own`.
    fn count_visits(
        &mut self,
        program: &Program,
        roots: Vec<Expr>,
        domain: &[Dim],
        in_loop: bool,
        own: &mut IndexSet<(Buffer, Order)>,
    ) {
        let exprs = &program.exprs;
        exprs.visit(roots, &mut |e| {
            let ExprDef::Load {
                buffer,
                index,
                outside,
                ..
            } = &exprs[e]
            else {
                return;
            };
            if outside.is_checked() {
                self.kept.insert(*buffer, Kept::Checked);
            }
            let mut axes = IndexSet::new();
            exprs.visit(index.iter().copied(), &mut |x| {
                if let ExprDef::Axis(k) = exprs[x] {
                    axes.insert(k);
                }
            });
            let again = in_loop || axes.len() < domain.len();
            let order = index.iter().map(|&e| match exprs[e] {
                ExprDef::Axis(k) => Some(k),
                _ => None,
            });
            let order = order.collect::<Option<Order>>();
            if let Some(order) = order.filter(|o| !again && o.len() == domain.len()) {
                own.insert((*buffer, order));
                return;
            }
            let n = if again { AGAIN } else { 1 };
            *self.visits.entry(*buffer).or_default() += n;
        });
    }

    fn block(&mut self, program: &mut Program, body: &mut [Stmt]) -> bool {
        let mut changed = false;
        for stmt in body {
            self.now += 1;
            match stmt {
                Stmt::For(all) => {
                    let touched = Touched::at_points(program, all);
                    changed |= self.inline_into(program, all, &touched.writes);
                    self.change(&touched);
                    let writes = touched.writes;
                    let plain = all.body.iter().all(|s| matches!(s, Stmt::Store(_)));
                    for stmt in &all.body {
                        match stmt {
                            Stmt::Store(store) if plain => self.define(program, all, store),
                            _ => {}
                        }
                    }
                    if !plain {
                        for buffer in writes {
                            self.keep(program, buffer, Kept::InKernel);
                        }
                    }
                }
                Stmt::Loop { .. } | Stmt::If(..) => {
                    let touched = Touched::by(program, std::slice::from_ref(stmt));
                    // What a later turn changes, an earlier one has not seen.
                    self.change(&touched);
                    self.keep_failing(program, &touched);
                    if matches!(stmt, Stmt::Loop { .. }) {
                        self.keep_dear(program, &touched);
                    }
                    let entered = self.now;
                    for inside in stmt.blocks_mut() {
                        changed |= self.block(program, inside);
                        // What a branch or a turn has made, it may not have made.
                        self.functions.retain(|_, f| f.at <= entered);
                    }
                    self.now += 1;
                    self.change(&touched);
                }
                Stmt::Set(var, _) => {
                    self.set.insert(*var, self.now);
                }
                Stmt::Call(call) => {
                    for &buffer in &call.outputs {
                        self.changed.insert(buffer, self.now);
                    }
                }
                Stmt::Run(_) | Stmt::Clear(_) => {
                    let touched = Touched::by(program, std::slice::from_ref(stmt));
                    self.change(&touched);
                }
                Stmt::Store(_) | Stmt::Break | Stmt::Continue => {}
            }
        }
        changed
    }

    /// A possible error must be raised even if the block that reads the value does not run.
    fn keep_failing(&mut self, program: &Program, touched: &Touched) {
        for &buffer in &touched.reads {
            if self.functions.get(&buffer).is_some_and(|f| f.may_fail) {
                self.functions.shift_remove(&buffer);
                self.keep(program, buffer, Kept::MayFail);
            }
        }
    }

    /// A value that costs more than reading it is not recomputed in each iteration of a loop.
    fn keep_dear(&mut self, program: &Program, touched: &Touched) {
        for &buffer in &touched.reads {
            let Some(function) = self.functions.get(&buffer) else {
                continue;
            };
            if function.cost > TRIVIAL {
                let why = Kept::Costly(function.cost, AGAIN);
                self.functions.shift_remove(&buffer);
                self.keep(program, buffer, why);
            }
        }
    }

    fn change(&mut self, touched: &Touched) {
        for &buffer in &touched.writes {
            self.changed.insert(buffer, self.now);
        }
        for &var in &touched.sets {
            self.set.insert(var, self.now);
        }
        for &node in &touched.activates {
            self.activated.insert(node, self.now);
        }
    }

    fn keep(&mut self, program: &Program, buffer: Buffer, why: Kept) {
        if program.buffers[buffer].role == Role::Temporary {
            self.kept.entry(buffer).or_insert(why);
        }
    }

    /// Takes a note of a value that may be inlined.
    fn define(&mut self, program: &Program, all: &For, store: &crate::ir::Store) {
        let target = store.target;
        if program.buffers[target].role != Role::Temporary || self.kept.contains_key(&target) {
            return;
        }
        if store.accum.is_some() {
            return self.keep(program, target, Kept::Accumulates);
        }
        if !is_at_own_place(program, all, store) {
            return self.keep(program, target, Kept::OtherIndices);
        }
        let mut reads = Touched::default();
        reads.exprs(&program.exprs, [store.value]);
        reads.walks.extend(
            all.cells
                .map(|c| program.sparse_nodes(c))
                .into_iter()
                .flatten(),
        );
        let stored = |s: &Stmt| matches!(s, Stmt::Store(s) if reads.reads.contains(&s.target));
        if all.body.iter().any(stored) {
            return self.keep(program, target, Kept::InKernel);
        }
        let cost = cost(&program.exprs, store.value);
        let visits = self.visits.get(&target).copied().unwrap_or(0);
        if !pays(cost, visits, traffic(program, target)) {
            return self.keep(program, target, Kept::Costly(cost, visits));
        }
        let function = Function {
            value: store.value,
            cost,
            cells: cells_of(program, all),
            at: self.now,
            reads,
            may_fail: may_fail(&program.exprs, store.value),
        };
        self.functions.insert(target, function);
    }

    /// Whether a function gives now what it gave when it was computed.
    fn holds(&self, function: &Function, writes: &IndexSet<Buffer>) -> bool {
        let since = |at: Option<&usize>| at.is_some_and(|&at| at > function.at);
        let mut reads = function.reads.reads.iter();
        let mut gets = function.reads.gets.iter();
        let mut walked = function.reads.walks.iter();
        let same_cells = !walked.any(|node| since(self.activated.get(node)));
        same_cells
            && !reads.any(|b| since(self.changed.get(b)) || writes.contains(b))
            && !gets.any(|v| since(self.set.get(v)))
    }

    /// Replaces reads in the statements of a `for`.
    fn inline_into(
        &mut self,
        program: &mut Program,
        all: &mut For,
        writes: &IndexSet<Buffer>,
    ) -> bool {
        let cells = cells_of(program, all);
        let (domain, body) = (&all.domain, &mut all.body);
        let roots = exprs_of(body);
        let mut read = Touched::default();
        read.exprs(&program.exprs, roots.iter().copied());
        let mut size = Grown::new(&program.exprs, &roots);
        let mut usable = IndexSet::new();
        for buffer in read.reads {
            let Some(function) = self.functions.get(&buffer) else {
                continue;
            };
            if function.cells.is_some()
                && (function.cells != cells || !at_own_points(program, &roots, buffer))
            {
                self.functions.shift_remove(&buffer);
                self.keep(program, buffer, Kept::OtherCells);
            } else if function.may_fail
                && (function.cells != cells || !is_all_read(program, domain, body, buffer))
            {
                self.functions.shift_remove(&buffer);
                self.keep(program, buffer, Kept::MayFail);
            } else if !self.holds(function, writes) {
                self.functions.shift_remove(&buffer);
                self.keep(program, buffer, Kept::OperandsChange);
            } else if size.takes(&program.exprs, (buffer, function), self.max_cost) {
                usable.insert(buffer);
            } else {
                let why = Kept::Costly(function.cost, self.visits[&buffer]);
                self.functions.shift_remove(&buffer);
                self.keep(program, buffer, why);
            }
        }
        if usable.is_empty() {
            return false;
        }
        let mut functions = IndexMap::new();
        for buffer in usable {
            let mut axes = Vec::new();
            for dim in program.buffers[buffer].shape.clone() {
                axes.push(Extent {
                    dim,
                    number: program.extent(dim),
                    not_empty: program.surely_has(dim, 0),
                });
            }
            functions.insert(buffer, (self.functions[&buffer].value, axes));
        }
        let here = Here { functions, domain };
        let mut done = LookupMap::default();
        let exprs = &mut program.exprs;
        map_exprs(body, &mut |e| {
            exprs.replace(e, &mut done, &mut |exprs, def| here.applied(exprs, def))
        })
    }
}

/// How large the expressions of a statement become.
struct Grown<'r> {
    roots: &'r [Expr],
    /// The expressions of which it consists, and will.
    parts: IndexSet<Expr, FastHash>,
    cost: u32,
}

impl<'r> Grown<'r> {
    fn new(exprs: &Exprs, roots: &'r [Expr]) -> Self {
        let mut grown = Self {
            roots,
            parts: IndexSet::default(),
            cost: 0,
        };
        grown.cost = grown.added(exprs, roots);
        grown
    }

    /// What expressions cost besides the parts that are there already, which they share. They are parts from now on.
    fn added(&mut self, exprs: &Exprs, roots: &[Expr]) -> u32 {
        let mut cost = 0;
        exprs.visit(roots.iter().copied(), &mut |e| {
            if self.parts.insert(e) {
                cost += own_cost(exprs, e);
            }
        });
        cost
    }

    /// Inlines a function, unless that would be too much: what it shares with others counts once, if all are read at one place.
    fn takes(
        &mut self,
        exprs: &Exprs,
        (buffer, function): (Buffer, &Function),
        max_cost: u64,
    ) -> bool {
        let mut places = IndexSet::new();
        exprs.visit(self.roots.iter().copied(), &mut |e| {
            if let ExprDef::Load {
                buffer: read,
                index,
                ..
            } = &exprs[e]
                && *read == buffer
            {
                places.insert(index.clone());
            }
        });
        let again = function.cost * (places.len() as u32).saturating_sub(1);
        let n = self.parts.len();
        let cost = self.cost + self.added(exprs, &[function.value]) + again;
        let takes = u64::from(cost) <= max_cost || function.cost <= TRIVIAL;
        match takes {
            true => self.cost = cost,
            false => self.parts.truncate(n),
        }
        takes
    }
}

/// The cells that a `for` goes over, if it goes over some.
fn cells_of(program: &Program, all: &For) -> Option<Cells> {
    all.cells.and_then(|field| program.holder(field))
}

/// Whether expressions read a buffer at their points' own indices alone.
fn at_own_points(program: &Program, roots: &[Expr], buffer: Buffer) -> bool {
    let exprs = &program.exprs;
    let mut own = true;
    exprs.visit(roots.iter().copied(), &mut |e| {
        if let ExprDef::Load {
            buffer: read,
            index,
            ..
        } = &exprs[e]
            && *read == buffer
        {
            let mut axes = index.iter().enumerate();
            own &= axes.all(|(k, &i)| exprs[i] == ExprDef::Axis(k as u32));
        }
    });
    own
}

/// A size in the inlined function.
struct Extent {
    dim: Dim,
    number: Expr,
    not_empty: bool,
}

/// The candidates for inlining into a `for`.
struct Here<'d> {
    functions: IndexMap<Buffer, (Expr, Vec<Extent>)>,
    domain: &'d [Dim],
}

impl Here<'_> {
    /// The value of a function, if `load` reads one.
    fn applied(&self, exprs: &mut Exprs, load: &ExprDef) -> Option<Expr> {
        let ExprDef::Load {
            buffer,
            index,
            outside,
            ty,
        } = load
        else {
            return None;
        };
        let (value, extents) = self.functions.get(buffer)?;
        let mut inside: Option<Expr> = None;
        let mut at = Vec::new();
        for (&i, extent) in index.iter().zip(extents) {
            let is_inside = match exprs[i] {
                ExprDef::Axis(k) => self.domain[k as usize] == extent.dim,
                _ => false,
            };
            at.push(match *outside {
                Outside::Never | Outside::Error(_) => i,
                _ if is_inside => i,
                other => {
                    if let Some(cond) = is_meant(exprs, i, extent, other) {
                        inside = Some(match inside {
                            Some(before) => exprs.binary(BinaryOp::And, before, cond),
                            None => cond,
                        });
                    }
                    match other {
                        Outside::Wrap => exprs.binary(BinaryOp::Mod, i, extent.number),
                        _ => clamped(exprs, i, extent.number),
                    }
                }
            });
        }
        let mut done = LookupMap::default();
        let value = exprs.replace(*value, &mut done, &mut |_, def| match *def {
            ExprDef::Axis(k) => Some(at[k as usize]),
            _ => None,
        });
        Some(match inside {
            None => value,
            Some(inside) => {
                let zero = exprs.constant(Scalar::zero(*ty));
                exprs.select(inside, value, zero)
            }
        })
    }
}

/// Whether there is an element that an index means, if that is not known.
fn is_meant(exprs: &mut Exprs, i: Expr, extent: &Extent, outside: Outside) -> Option<Expr> {
    let zero = exprs.i32(0);
    if outside == Outside::Zero {
        let low = exprs.compare(CompareOp::Ge, i, zero);
        let high = exprs.compare(CompareOp::Lt, i, extent.number);
        Some(exprs.binary(BinaryOp::And, low, high))
    } else if extent.not_empty {
        None
    } else {
        Some(exprs.compare(CompareOp::Gt, extent.number, zero))
    }
}

fn clamped(exprs: &mut Exprs, i: Expr, extent: Expr) -> Expr {
    let [zero, one] = [0, 1].map(|n| exprs.i32(n));
    let last = exprs.binary(BinaryOp::Sub, extent, one);
    let low = exprs.binary(BinaryOp::Min, i, last);
    exprs.binary(BinaryOp::Max, low, zero)
}

/// How many statements store to each buffer.
pub(super) fn count_stores(body: &[Stmt], stores: &mut IndexMap<Buffer, u32>) {
    visit(body, &mut |stmt| {
        if let Stmt::Store(store) = stmt {
            *stores.entry(store.target).or_default() += 1;
        }
    });
}

/// Whether computing a value at each visit costs no more than storing it once and reading it.
fn pays(cost: u32, visits: u32, traffic: Traffic) -> bool {
    let stored = cost + traffic.store + visits * traffic.load;
    cost <= TRIVIAL || visits <= 1 || cost * visits <= stored
}

/// Operations that a value takes, what is shared counted once.
pub(super) fn cost(exprs: &Exprs, e: Expr) -> u32 {
    let mut sum = 0;
    exprs.visit([e], &mut |x| sum += own_cost(exprs, x));
    sum
}

/// Operations that an expression takes besides its operands'.
fn own_cost(exprs: &Exprs, e: Expr) -> u32 {
    match exprs[e] {
        ExprDef::Const(_) | ExprDef::Axis(_) | ExprDef::Var(..) | ExprDef::Extent(_) => 0,
        ExprDef::Load { .. } => LOAD,
        ExprDef::Unary(op, _) => match op {
            UnaryOp::Neg | UnaryOp::Not | UnaryOp::Abs | UnaryOp::Sign => 1,
            _ if op.is_exact() => 4,
            _ => 12,
        },
        ExprDef::Binary(op, ..) => match op {
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::FloorDiv | BinaryOp::Mod => 4,
            BinaryOp::Pow | BinaryOp::Atan2 => 20,
            _ => 1,
        },
        ExprDef::Compare(..) | ExprDef::Select(..) | ExprDef::Cast(..) | ExprDef::Bitcast(..) => 1,
    }
}
