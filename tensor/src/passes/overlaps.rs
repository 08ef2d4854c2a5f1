//! A sum to overlapping windows becomes a sum over windows at each element.
//!
//! ```text
//! for [n, k] { t[i0 + i1] add init = v(i0, i1) }
//! for [n, k] { u[i0 * 2 + i1] add init = w(i0, i1) }
//! ```
//! becomes
//! ```text
//! for [n + k - 1, k] { t[i0] add init = select(0 <= i0 - i1 < n, v(i0 - i1, i1), 0) }
//! for [.., k / 2, 2] { p[i2, i0] add init = select(0 <= i0 - i1 < n and .., w(i0 - i1, i1 * 2 + i2), 0) }
//! for [..] { u[i0] = p[i0 % 2, i0 / 2] }
//! ```
//! No two points meet then. Where windows lie `s` apart, elements have `s` phases, each with every `s`-th element of a window.

use aerogel_base::hash::LookupMap;
use aerogel_ir::{BinaryOp, CompareOp};
use indexmap::IndexMap;

use super::affine::Affine;
use super::asked::may_fail;
use crate::ir::{Dim, Expr, ExprDef, For, Outside, Program, Stmt, Store};

/// An index of a store.
enum Index {
    /// An axis as long as the target's.
    Axis(u32),
    Window(Window),
}

/// An index `stride * first + step * tap + offset`.
struct Window {
    first: u32,
    stride: i64,
    tap: u32,
    step: i64,
    offset: i64,
}

/// The statements that are the same as a `for` with nothing but a store, if windows of it overlap.
pub(super) fn gathered(program: &mut Program, all: &For, store: &Store) -> Option<Vec<For>> {
    if may_fail(&program.exprs, store.value) {
        return None;
    }
    let shape = program.buffers[store.target].shape.clone();
    let mut indices = Vec::new();
    let mut seen = Vec::new();
    for (&e, &dim) in store.index.iter().zip(&shape) {
        let index = Index::of(program, all, e, dim)?;
        seen.extend(index.axes());
        indices.push(index);
    }
    let n_seen = seen.len();
    seen.sort_unstable();
    seen.dedup();
    let some = indices.iter().any(|i| matches!(i, Index::Window(_)));
    if seen.len() < n_seen || !some {
        return None;
    }
    Some(Gathered::of(program, all, &shape, &indices)?.statements(program, all, store))
}

impl Index {
    fn of(program: &Program, all: &For, e: Expr, dim: Dim) -> Option<Self> {
        if let ExprDef::Axis(k) = program.exprs[e]
            && all.domain[k as usize] == dim
        {
            return Some(Self::Axis(k));
        }
        let map = Affine::of(&program.exprs, e)?;
        let &[a, b] = &map.terms[..] else {
            return None;
        };
        // What is not known is long.
        let length = |t: (u32, i64)| program.const_dim(all.domain[t.0 as usize]);
        let of = |t| length(t).unwrap_or(u64::MAX);
        let (first, tap) = if of(a) >= of(b) { (a, b) } else { (b, a) };
        length(tap)?;
        let window = Window {
            first: first.0,
            stride: first.1,
            tap: tap.0,
            step: tap.1,
            offset: map.offset,
        };
        let is_apart = window.stride > 1 && window.step == 1 && window.offset == 0;
        (window.stride == 1 || is_apart && program.const_dim(dim).is_some())
            .then_some(Self::Window(window))
    }

    fn axes(&self) -> Vec<u32> {
        match self {
            Self::Axis(k) => vec![*k],
            Self::Window(window) => vec![window.first, window.tap],
        }
    }
}

/// The sum over windows.
struct Gathered {
    domain: Vec<Dim>,
    /// The replacement of an axis.
    axes: IndexMap<u32, Expr>,
    conditions: Vec<Expr>,
    /// The axes of phases, and those of the target's elements.
    phases: Vec<Expr>,
    elements: Vec<Expr>,
    /// Where an element of the target is: its phases, and which of each it is.
    at: [Vec<Expr>; 2],
}

impl Gathered {
    fn of(program: &mut Program, all: &For, shape: &[Dim], indices: &[Index]) -> Option<Self> {
        let mut gathered = Self {
            domain: all.domain.clone(),
            axes: IndexMap::new(),
            conditions: Vec::new(),
            phases: Vec::new(),
            elements: Vec::new(),
            at: Default::default(),
        };
        for (j, (index, &dim)) in indices.iter().zip(shape).enumerate() {
            let here = program.exprs.axis(j as u32);
            match index {
                Index::Axis(k) => {
                    gathered.elements.push(program.exprs.axis(*k));
                    gathered.at[1].push(here);
                }
                Index::Window(window) if window.stride == 1 => {
                    gathered.near(program, window, dim)?;
                    gathered.at[1].push(here);
                }
                Index::Window(window) => gathered.apart(program, window, dim, here)?,
            }
        }
        Some(gathered)
    }

    /// Windows next to each other.
    fn near(&mut self, program: &mut Program, window: &Window, dim: Dim) -> Option<()> {
        let extent = self.domain[window.first as usize];
        let n = program.extent(extent);
        self.domain[window.first as usize] = dim;
        let exprs = &mut program.exprs;
        let [here, tap] = [window.first, window.tap].map(|k| exprs.axis(k));
        let step = exprs.i32(i32::try_from(window.step).ok()?);
        let offset = exprs.i32(i32::try_from(window.offset).ok()?);
        let before = exprs.binary(BinaryOp::Mul, tap, step);
        let first = exprs.binary(BinaryOp::Sub, here, before);
        let first = exprs.binary(BinaryOp::Sub, first, offset);
        self.is_there(program, first, n);
        self.axes.insert(window.first, first);
        self.elements.push(here);
        Some(())
    }

    /// Windows some way apart.
    fn apart(
        &mut self,
        program: &mut Program,
        window: &Window,
        dim: Dim,
        here: Expr,
    ) -> Option<()> {
        let stride = u64::try_from(window.stride).ok()?;
        let [n, n_taps] = [window.first, window.tap].map(|k| self.domain[k as usize]);
        let known = program.const_dim(n_taps)?;
        let n_elements = program.const_dim(dim)?.div_ceil(stride);
        let [n, end] = [n, n_taps].map(|d| program.extent(d));
        self.domain[window.first as usize] = program.size(n_elements);
        self.domain[window.tap as usize] = program.size(known.div_ceil(stride));
        let exprs = &mut program.exprs;
        let phase = exprs.axis(self.domain.len() as u32);
        let [element, turn] = [window.first, window.tap].map(|k| exprs.axis(k));
        let factor = exprs.i32(i32::try_from(stride).ok()?);
        let first = exprs.binary(BinaryOp::Sub, element, turn);
        let tap = exprs.binary(BinaryOp::Mul, turn, factor);
        let tap = exprs.binary(BinaryOp::Add, tap, phase);
        if !known.is_multiple_of(stride) {
            let inside = exprs.compare(CompareOp::Lt, tap, end);
            self.conditions.push(inside);
        }
        self.at[0].push(exprs.binary(BinaryOp::Rem, here, factor));
        self.at[1].push(exprs.binary(BinaryOp::Div, here, factor));
        self.is_there(program, first, n);
        self.domain.push(program.size(stride));
        self.axes.insert(window.first, first);
        self.axes.insert(window.tap, tap);
        self.phases.push(phase);
        self.elements.push(element);
        Some(())
    }

    fn is_there(&mut self, program: &mut Program, first: Expr, n: Expr) {
        let zero = program.exprs.i32(0);
        let low = program.exprs.compare(CompareOp::Ge, first, zero);
        let high = program.exprs.compare(CompareOp::Lt, first, n);
        self.conditions.extend([low, high]);
    }

    fn statements(self, program: &mut Program, all: &For, store: &Store) -> Vec<For> {
        let accum = store.accum.expect("it adds up");
        let ty = program.exprs.ty(store.value);
        let mut done = LookupMap::default();
        let value = program
            .exprs
            .replace(store.value, &mut done, &mut |_, def| match def {
                ExprDef::Axis(k) => self.axes.get(k).copied(),
                _ => None,
            });
        let exprs = &mut program.exprs;
        let conditions = self.conditions.into_iter();
        let inside = conditions.reduce(|a, b| exprs.binary(BinaryOp::And, a, b));
        let neutral = exprs.constant(accum.neutral(ty));
        let value = exprs.select(inside.expect("of each window one"), value, neutral);
        let index = [&self.phases[..], &self.elements].concat();
        let mut target = store.target;
        if !self.phases.is_empty() {
            let extent = |e: &Expr| match program.exprs[*e] {
                ExprDef::Axis(k) => self.domain[k as usize],
                _ => unreachable!("it is an axis"),
            };
            let shape: Vec<Dim> = index.iter().map(extent).collect();
            target = program.temporary(ty, &shape);
        }
        let over = |domain: Vec<Dim>, store: Store| For {
            domain,
            cells: None,
            body: vec![Stmt::Store(store)],
            span: all.span,
        };
        let sums = Store {
            target,
            index,
            value,
            outside: Outside::Never,
            ..store.clone()
        };
        let mut out = vec![over(self.domain, sums)];
        if target != store.target {
            let shape = program.buffers[store.target].shape.clone();
            let value = program.load(target, self.at.concat(), Outside::Never);
            let whole = Store {
                index: program.axes(shape.len()),
                value,
                accum: None,
                init: false,
                outside: Outside::Never,
                ..store.clone()
            };
            out.push(over(shape, whole));
        }
        out
    }
}
