//! Scattered stores whose index map is invertible become gathers: each target element reads the point that stores to
//! it.
//!
//! ```text
//! for [n] { t[i0, i0] add init = v }      for [n] { u[i0] = v }
//!                                         for [n, n] { t[i0, i1] = select(eq(i0, i1), u[i0], 0) }
//! ```
//! Indices are sums of axes with constant factors. Where they say from which point they are, the whole target is a function
//! of its own indices, which need not lie in memory. Axes in no index are summed over first.

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, CompareOp};

use super::affine::Affine;
use super::gathers::is_asked_for;
use super::{Options, conjuncts, overlaps};
use crate::ir::{
    Buffer, Dim, Expr, ExprDef, For, Outside, Program, Role, Stmt, Store, only_store, rewrite_fors,
};

/// Rewrites all stores whose indices are one to one.
pub(super) fn run(program: &mut Program, _: Options) -> bool {
    rewrite_fors(program, &mut |program, all, before| {
        let Some(mut made) = placed(program, all) else {
            return false;
        };
        *all = made.pop().expect("a target");
        before.extend(made.into_iter().map(Stmt::For));
        true
    })
}

/// The values at their points, and what the target has where, if a `for` does nothing else.
fn placed(program: &mut Program, all: &For) -> Option<Vec<For>> {
    let store = only_store(all)?.clone();
    let accum = store.accum.filter(|_| store.init)?;
    let store = unclamped(program, &all.domain, &store).unwrap_or(store);
    let def = &program.buffers[store.target];
    if def.role != Role::Temporary
        || !matches!(store.outside, Outside::Never | Outside::Zero)
        || is_plain(program, all, &store)
    {
        return None;
    }
    let (ty, shape) = (def.ty, def.shape.clone());
    let Some(inverse) = Inverse::of(program, &all.domain, &store.index, &shape) else {
        return overlaps::gathered(program, all, &store);
    };
    let kept: Vec<u32> = (0..all.domain.len() as u32)
        .filter(|&k| inverse.axes[k as usize].is_some())
        .collect();
    let dims: Vec<Dim> = kept.iter().map(|&k| all.domain[k as usize]).collect();
    let values = program.temporary(ty, &dims);
    let neutral = program.exprs.constant(accum.neutral(ty));
    let sums = kept.len() < all.domain.len();
    let value = match sums {
        true => store.value,
        // Nothing is zero and the value: the sign of a zero is that of a sum.
        false => program.exprs.binary(accum.binary(), neutral, store.value),
    };
    let first = Store {
        target: values,
        index: kept.iter().map(|&k| program.exprs.axis(k)).collect(),
        value,
        accum: store.accum.filter(|_| sums),
        init: sums,
        outside: Outside::Never,
    };
    let value = inverse.read(program, values, &kept, neutral);
    let second = Store {
        target: store.target,
        index: program.axes(shape.len()),
        value,
        accum: None,
        init: false,
        outside: Outside::Never,
    };
    let over = |domain: Vec<Dim>, store: Store| For {
        domain,
        cells: None,
        body: vec![Stmt::Store(store)],
        span: all.span,
    };
    Some(vec![over(all.domain.clone(), first), over(shape, second)])
}

/// A store that is skipped where an index is out of bounds, instead of storing the identity element at the nearest index.
fn unclamped(program: &mut Program, domain: &[Dim], store: &Store) -> Option<Store> {
    let accum = store.accum?;
    let ExprDef::Select(cond, value, other) = program.exprs[store.value] else {
        return None;
    };
    let neutral = accum.neutral(program.exprs.ty(other));
    let changes = program.exprs.as_const(other) != Some(neutral);
    // A value that is there for some points only stays behind the condition.
    if changes || store.outside != Outside::Never || is_asked_for(program, domain, value) {
        return None;
    }
    let mut conditions = conjuncts(&program.exprs, cond);
    let mut index = Vec::new();
    let mut met = Vec::new();
    let shape = program.buffers[store.target].shape.clone();
    for (&e, dim) in store.index.iter().zip(shape) {
        match inside_of(program, e, dim) {
            Some((inside, ends)) => {
                if !ends.iter().all(|end| conditions.contains(end)) {
                    return None;
                }
                met.extend(ends);
                index.push(inside);
            }
            None => index.push(e),
        }
    }
    conditions.retain(|c| !met.contains(c));
    let exprs = &mut program.exprs;
    let left = conditions.into_iter();
    let value = match left.reduce(|a, b| exprs.binary(BinaryOp::And, a, b)) {
        Some(cond) => exprs.select(cond, value, other),
        None => value,
    };
    Some(Store {
        index,
        value,
        outside: Outside::Zero,
        ..store.clone()
    })
}

/// The index of which an index is the nearest one inside, and what holds if it is inside itself.
fn inside_of(program: &mut Program, e: Expr, dim: Dim) -> Option<(Expr, [Expr; 2])> {
    let ExprDef::Binary(BinaryOp::Max, low, _) = program.exprs[e] else {
        return None;
    };
    let ExprDef::Binary(BinaryOp::Min, inside, _) = program.exprs[low] else {
        return None;
    };
    let n = program.extent(dim);
    let exprs = &mut program.exprs;
    let [zero, minus_one] = [0, -1].map(|n| exprs.i32(n));
    let last = exprs.binary(BinaryOp::Add, n, minus_one);
    let low = exprs.binary(BinaryOp::Min, inside, last);
    let nearest = exprs.binary(BinaryOp::Max, low, zero);
    let ends = [
        exprs.compare(CompareOp::Ge, inside, zero),
        exprs.compare(CompareOp::Lt, inside, n),
    ];
    (nearest == e).then_some((inside, ends))
}

/// Whether indices are different axes as long as the target: a sum like any other.
fn is_plain(program: &Program, all: &For, store: &Store) -> bool {
    let shape = &program.buffers[store.target].shape;
    let mut seen = Vec::new();
    store.index.iter().zip(shape).all(|(&e, &dim)| {
        let ExprDef::Axis(k) = program.exprs[e] else {
            return false;
        };
        let new = !seen.contains(&k);
        seen.push(k);
        new && all.domain[k as usize] == dim
    })
}

/// Whether the one axis in an index has a point for each of so many elements.
fn is_inside(
    terms: &[(u32, i64)],
    known: &[(u32, i64)],
    offset: i64,
    n_elements: Option<i64>,
    n_points: Option<i64>,
) -> bool {
    let (&[(_, 1)], [], Some(n), Some(points)) = (terms, known, n_elements, n_points) else {
        return false;
    };
    offset <= 0 && n.checked_sub(offset).is_some_and(|end| end <= points)
}

/// From which point an element is: the index along each axis that is in its indices, and what holds if there is one.
struct Inverse {
    axes: Vec<Option<Expr>>,
    /// Axes whose index may be outside, if there is no point.
    open: Vec<u32>,
    conditions: Vec<Expr>,
    domain: Vec<Dim>,
}

impl Inverse {
    fn of(program: &mut Program, domain: &[Dim], index: &[Expr], shape: &[Dim]) -> Option<Self> {
        let maps = index.iter().map(|&e| Affine::of(&program.exprs, e));
        let maps: Vec<Affine> = maps.collect::<Option<_>>()?;
        let mut inverse = Self {
            axes: vec![None; domain.len()],
            open: Vec::new(),
            conditions: Vec::new(),
            domain: domain.to_vec(),
        };
        let mut left: Vec<usize> = (0..maps.len()).collect();
        while !left.is_empty() {
            // What follows from fewer comes first.
            let unknown = |j: usize| {
                maps[j]
                    .terms
                    .iter()
                    .filter(|t| inverse.axes[t.0 as usize].is_none())
                    .count()
            };
            let next = (0..left.len()).min_by_key(|&at| unknown(left[at]))?;
            let j = left.remove(next);
            inverse.solve(program, j, &maps[j], shape[j])?;
        }
        Some(inverse)
    }

    /// The axes that an index has and that are not known yet, from the largest factor on.
    fn solve(&mut self, program: &mut Program, j: usize, map: &Affine, extent: Dim) -> Option<()> {
        let is_known = |t: &&(u32, i64)| self.axes[t.0 as usize].is_some();
        let known: Vec<(u32, i64)> = map.terms.iter().filter(is_known).copied().collect();
        let mut terms: Vec<(u32, i64)> =
            map.terms.iter().filter(|t| !is_known(t)).copied().collect();
        let mut there = program.exprs.i32(i32::try_from(map.offset).ok()?);
        for (k, c) in known.iter().copied() {
            let axis = self.axes[k as usize]?;
            let factor = program.exprs.i32(i32::try_from(c).ok()?);
            let term = program.exprs.binary(BinaryOp::Mul, axis, factor);
            there = program.exprs.binary(BinaryOp::Add, term, there);
        }
        let here = program.exprs.axis(j as u32);
        if terms.is_empty() {
            let same = program.exprs.compare(CompareOp::Eq, here, there);
            self.conditions.push(same);
            return Some(());
        }
        let mut rest = program.exprs.binary(BinaryOp::Sub, here, there);
        let mut backwards = false;
        if let [(_, c)] = &mut terms[..]
            && *c < 0
        {
            backwards = true;
            *c = -*c;
            let zero = program.exprs.i32(0);
            rest = program.exprs.binary(BinaryOp::Sub, zero, rest);
        }
        terms.sort_unstable_by_key(|t| t.1);
        if terms[0].1 <= 0 {
            return None;
        }
        let sizes: Vec<Option<i64>> = terms
            .iter()
            .map(|t| program.const_dim(self.domain[t.0 as usize]))
            .map(|n| n.and_then(|n| i64::try_from(n).ok()))
            .collect();
        let mut reach = 0_i64;
        let mut gapless = true;
        for (at, &(_, c)) in terms.iter().enumerate() {
            if c <= reach {
                return None;
            }
            gapless &= c == reach + 1;
            let last = at + 1 == terms.len();
            // What lies beside it ends the last one.
            match sizes[at] {
                Some(n) => reach = reach.checked_add(c.checked_mul((n - 1).max(0))?)?,
                None if !last => return None,
                None => reach = i64::MAX,
            }
        }
        let n_elements = program
            .const_dim(extent)
            .and_then(|n| i64::try_from(n).ok());
        let first = if backwards { reach } else { 0 };
        // Without any point nothing is filled.
        let some = !sizes.contains(&Some(0));
        let is_filled =
            some && gapless && n_elements.is_some() && n_elements == reach.checked_add(1);
        let is_own =
            terms.len() == 1 && !backwards && gapless && self.domain[terms[0].0 as usize] == extent;
        let whole = known.is_empty() && map.offset == first && (is_filled || is_own);
        let [over, remainder] = match whole {
            true => [BinaryOp::Div, BinaryOp::Rem],
            // It may be below zero, where there is no point.
            false => [BinaryOp::FloorDiv, BinaryOp::Mod],
        };
        let is_inside = is_inside(&terms, &known, map.offset, n_elements, sizes[0]);
        for (at, &(k, c)) in terms.iter().enumerate().rev() {
            let factor = program.exprs.i32(i32::try_from(c).ok()?);
            let axis = program.exprs.binary(over, rest, factor);
            rest = program.exprs.binary(remainder, rest, factor);
            self.axes[k as usize] = Some(axis);
            // A remainder by an integer is in bounds.
            let next_is_multiple = terms.get(at + 1).is_some_and(|&(_, next)| {
                sizes[at].is_some_and(|n| c.checked_mul(n) == Some(next))
            });
            let is_last = at + 1 == terms.len();
            if !(if is_last {
                whole || is_inside
            } else {
                next_is_multiple
            }) {
                self.open.push(k);
            }
        }
        if terms[0].1 > 1 {
            let zero = program.exprs.i32(0);
            let divides = program.exprs.compare(CompareOp::Eq, rest, zero);
            self.conditions.push(divides);
        }
        Some(())
    }

    /// The target's value at its indices: an element of `values`, whose axes are these, or the identity element.
    fn read(mut self, program: &mut Program, values: Buffer, kept: &[u32], neutral: Expr) -> Expr {
        let at: Vec<Expr> = kept.iter().filter_map(|&k| self.axes[k as usize]).collect();
        let outside = match self.open.is_empty() {
            true => Outside::Never,
            false => Outside::Zero,
        };
        let is_zero = program.exprs.as_const(neutral).is_some_and(Scalar::is_zero);
        if !is_zero {
            for k in std::mem::take(&mut self.open) {
                let Some(i) = self.axes[k as usize] else {
                    continue;
                };
                let zero = program.exprs.i32(0);
                let n = program.extent(self.domain[k as usize]);
                self.conditions
                    .push(program.exprs.compare(CompareOp::Ge, i, zero));
                self.conditions
                    .push(program.exprs.compare(CompareOp::Lt, i, n));
            }
        }
        let value = program.load(values, at, outside);
        let conditions = self.conditions.into_iter();
        let all = conditions.reduce(|a, b| program.exprs.binary(BinaryOp::And, a, b));
        match all {
            Some(all) => program.exprs.select(all, value, neutral),
            None => value,
        }
    }
}
