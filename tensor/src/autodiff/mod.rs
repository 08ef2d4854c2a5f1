//! Reverse mode: statements that make results of tensors become statements that make the adjoints of those tensors.
//!
//! ```text
//! for [n, m] { t[i0] add init = mul(a[i0, i1], x[i1]) }      for [m, n] { X[i0] add init = mul(T[i1], a[i1, i0]) }
//! ```
//! The adjoint of a buffer has the derivative of the results, each times its seed, by every element of the buffer. The
//! statements are visited from the last to the first. Where `t` is stored, the adjoint of the value is `T` at the same
//! index, and what the value loads gets its part of that by the partial derivatives of the operations between
//! ([`aerogel_ir::derivatives`]). Such parts are sums at other indices, which the passes turn into reductions and reads
//! where the index is one to one (`passes/inverse.rs`).
//!
//! Everything is recorded as ordinary statements, so that adjoints have adjoints.

mod accumulations;
mod expressions;
mod functions;
mod traced;
mod versions;

use aerogel_base::ScalarType;
use aerogel_ir::CompareOp;
use indexmap::{IndexMap, IndexSet};

use crate::ir::{
    Accum, Buffer, Call, Expr, ExprDef, For, Program, Stmt, Store, is_whole, targets,
};
use crate::record::{RecordError, Recorded, Recording, varying};
use versions::Versions;

/// The adjoints of some buffers.
#[derive(Debug)]
pub struct Adjoints {
    /// Each with its buffer's type and shape; none for what no result depends on smoothly.
    pub wanted: Vec<Option<Buffer>>,
    /// Copies of buffers that later statements change, and before which statement of the body each belongs.
    pub copies: Vec<(usize, Stmt)>,
}

/// The adjoints of `wanted`. `body` has the statements that make the results, in their order, and `seeds` has each result
/// with its adjoint. Statements are appended to the recording.
///
/// # Errors
/// If a result depends on what is wanted by an operation that has no derivative.
pub fn reverse(
    recording: &mut Recording,
    body: &[Stmt],
    seeds: &[(Buffer, Buffer)],
    wanted: &[Buffer],
) -> Recorded<Adjoints> {
    let is_detached = |stmt: &Stmt| {
        let mut is_detached = false;
        targets(stmt, &mut |b| is_detached |= recording.is_detached(b));
        is_detached
    };
    let through: Vec<Stmt> = body.iter().filter(|s| !is_detached(s)).cloned().collect();
    let mut active = varying(&recording.program, &through, wanted);
    active.retain(|&b| recording.ty(b).is_float());
    let versions = Versions::of(&recording.program, body);
    let mut reverse = Reverse {
        recording,
        active,
        adjoints: IndexMap::new(),
        wanted: wanted.iter().copied().collect(),
        found: IndexMap::new(),
        versions,
    };
    for &(result, seed) in seeds {
        reverse.contribute(result, seed);
    }
    for (at, stmt) in body.iter().enumerate().rev() {
        reverse.versions.visit(at);
        reverse.stmt(stmt)?;
    }
    let adjoints = wanted.iter().map(|&b| match reverse.found.get(&b) {
        Some(&found) => Ok(Some(found)),
        None => reverse.adjoint(b),
    });
    let wanted = adjoints.collect::<Recorded<_>>()?;
    let copies = reverse.versions.copies(reverse.recording);
    Ok(Adjoints { wanted, copies })
}

/// The state of a reversal.
struct Reverse<'r> {
    recording: &'r mut Recording,
    /// The float buffers that depend on what is wanted.
    active: IndexSet<Buffer>,
    /// Parts of the adjoints of buffers, as of before the statements that have been visited.
    adjoints: IndexMap<Buffer, Vec<Buffer>>,
    wanted: IndexSet<Buffer>,
    /// The adjoints of what is wanted that a statement makes.
    found: IndexMap<Buffer, Buffer>,
    versions: Versions,
}

fn refused<T>(what: &str) -> Recorded<T> {
    Err(RecordError::Value(format!("there is no gradient: {what}")))
}

impl Reverse<'_> {
    fn program(&self) -> &Program {
        &self.recording.program
    }

    /// Adds a part to the adjoint of a buffer.
    fn contribute(&mut self, buffer: Buffer, part: Buffer) {
        self.adjoints.entry(buffer).or_default().push(part);
    }

    /// The sum of the parts of the adjoint of a buffer, if there are any.
    fn adjoint(&mut self, buffer: Buffer) -> Recorded<Option<Buffer>> {
        let parts = self.adjoints.get(&buffer).cloned().unwrap_or_default();
        let Some((&first, rest)) = parts.split_first() else {
            return Ok(None);
        };
        let mut sum = first;
        for &part in rest {
            sum = self.recording.binary("add", sum, part)?;
        }
        self.adjoints.insert(buffer, vec![sum]);
        Ok(Some(sum))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Recorded<()> {
        let mut matters = false;
        targets(stmt, &mut |b| {
            matters |= self.adjoints.contains_key(&b) && self.active.contains(&b);
        });
        if !matters {
            return Ok(());
        }
        match stmt {
            Stmt::For(all) => self.points(all),
            Stmt::Call(call) => self.call(call),
            Stmt::Run(_) => refused("a kernel is called inside of a program"),
            _ => refused("a loop or branch changes a value that the gradient is taken through"),
        }
    }

    fn points(&mut self, all: &For) -> Recorded<()> {
        if all.cells.is_some() {
            return refused("a value is computed at the active cells of a field only");
        }
        let span = std::mem::replace(&mut self.recording.span, all.span);
        let mut stores = Vec::new();
        for stmt in &all.body {
            match stmt {
                Stmt::Store(store) => stores.push(store),
                _ => return refused("an operation whose points have loops or branches"),
            }
        }
        for store in stores.into_iter().rev() {
            self.store(all, store)?;
        }
        self.recording.span = span;
        Ok(())
    }

    fn store(&mut self, all: &For, store: &Store) -> Recorded<()> {
        let Some(adjoint) = self.adjoint(store.target)? else {
            return Ok(());
        };
        if self.wanted.contains(&store.target) {
            self.found.entry(store.target).or_insert(adjoint);
        }
        let (at, outside) = (store.index.clone(), store.outside);
        let stored = self.recording.program.load(adjoint, at, outside);
        let value = match store.accum {
            None => Some(stored),
            Some(accum) => self.through_accumulation(all, store, accum, stored)?,
        };
        if store.accum.is_none() || store.init {
            match store.init || is_whole(self.program(), all, store) {
                true => {
                    self.adjoints.shift_remove(&store.target);
                }
                false => self.overwritten(all, store, adjoint)?,
            }
        }
        match value {
            Some(value) => self.through(&all.domain, store.value, value),
            None => Ok(()),
        }
    }

    /// The elements that a statement stores to do not depend on their old values: their adjoint is zero before it.
    fn overwritten(&mut self, all: &For, store: &Store, adjoint: Buffer) -> Recorded<()> {
        let is_axis = |e| matches!(self.program().exprs[e], ExprDef::Axis(_));
        let mut axes = IndexSet::new();
        let apart = store.index.iter().filter(|&&e| is_axis(e));
        axes.extend(apart.map(|&e| self.program().exprs[e].clone()));
        if axes.len() < all.domain.len() && !self.is_injective(all, store) {
            return refused("several points may store to one element, and the last one counts");
        }
        let ty = self.recording.ty(store.target);
        let zero = self.recording.number(ScalarType::I32, 0.0);
        let one = self.recording.number(ScalarType::I32, 1.0);
        let shape = self.recording.shape(store.target);
        let index = self.now(&store.index);
        let (index, inside) = self.brought_inside(store.target, &index, store.outside);
        let exprs = &mut self.recording.program.exprs;
        let one = inside.map_or(one, |inside| exprs.select(inside, one, zero));
        let stored =
            self.recording
                .gather_into(&all.domain, shape.clone(), index, Accum::Max, one);
        let [was_stored, old] =
            [stored, adjoint].map(|b| self.recording.at_point(b, shape.len()));
        let none = self.recording.number(ty, 0.0);
        let exprs = &mut self.recording.program.exprs;
        let is_stored = exprs.compare(CompareOp::Gt, was_stored, zero);
        let left = exprs.select(is_stored, none, old);
        let left = self.recording.map(&shape, left);
        self.adjoints.insert(store.target, vec![left]);
        Ok(())
    }

    /// Whether no two points store to one element: each axis of the domain is one index times a number that is not zero,
    /// plus a constant.
    fn is_injective(&self, all: &For, store: &Store) -> bool {
        let exprs = &self.program().exprs;
        let axis = |mut e: Expr| loop {
            match exprs[e] {
                ExprDef::Axis(k) => return Some(k),
                ExprDef::Binary(aerogel_ir::BinaryOp::Add | aerogel_ir::BinaryOp::Sub, a, b) => {
                    match (exprs.as_const(a), exprs.as_const(b)) {
                        (None, Some(_)) => e = a,
                        (Some(_), None) => e = b,
                        _ => return None,
                    }
                }
                ExprDef::Binary(aerogel_ir::BinaryOp::Mul, a, b) => {
                    let is_factor =
                        |c: Expr| exprs.as_const(c).is_some_and(|c| c.as_i128() != 0);
                    match (is_factor(a), is_factor(b)) {
                        (false, true) => e = a,
                        (true, false) => e = b,
                        _ => return None,
                    }
                }
                _ => return None,
            }
        };
        let own: IndexSet<u32> = store.index.iter().filter_map(|&e| axis(e)).collect();
        let clamps = store.outside == crate::ir::Outside::Clamp
            || store.outside == crate::ir::Outside::Wrap;
        !clamps && own.len() == all.domain.len()
    }

    fn call(&mut self, call: &Call) -> Recorded<()> {
        let is_active = |b: &Buffer| self.active.contains(b);
        match call.inputs.iter().any(is_active) {
            true => refused("a function of a library has no derivative yet"),
            false => Ok(()),
        }
    }
}
