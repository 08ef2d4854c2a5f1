//! Accumulations become loops at each point if no two points share a target, and atomic stores otherwise.
//!
//! ```text
//! for [n, m] { s[i0] add init = v }      for [n] { x = 0; loop k in 0, m { x = add(x, v) }; s[i0] = x }
//! for [n] { s[f(i0)] add init = v }      for [size] { s[i0] = 0 }; for [n] { s[f(i0)] add = v }
//! ```
//! A reduction to few elements first reduces chunks of an axis, at least `PARTS` for each element, whatever the machine: the
//! order of a sum depends on sizes alone. And a floating-point sum adds at most `CHAIN` values in sequence: a small number
//! that is added to a much larger one is lost. (As in Higham, "The accuracy of floating point summation", 1993.)

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, Span};
use aerogel_ir::BinaryOp;
use indexmap::IndexSet;

use super::Options;
use crate::ir::{
    Accum, Dim, DimDef, Expr, ExprDef, For, Outside, Program, Stmt, Store, Var, rewrite_fors,
};

/// Minimum number of chunks that a reduced axis is split into: for a known size so many that no chunk is much longer.
const PARTS: u64 = 64;
const LONG_PART: u64 = 4096;
const MOST_PARTS: u64 = 1 << 14;
/// The number of values that are summed before their sum is added to another one.
pub(super) const CHAIN: u64 = 512;
/// With at least so many elements, each is a point of its own, and there is enough to do at once.
const ENOUGH: u64 = 64;
/// With fewer values for each element, one loop is done sooner.
const MANY: u64 = 4096;

/// Takes apart all stores with `init`, and those that accumulate where no two points meet.
pub(super) fn run(program: &mut Program, _: Options) -> bool {
    rewrite_fors(program, &mut reduce)
}

/// The stores of a `for` that has nothing else, all accumulating to elements of which each is the points' with the same
/// indices along `kept`.
pub(super) struct Sums {
    domain: Vec<Dim>,
    stores: Vec<Store>,
    /// The axes that elements have.
    pub(super) kept: Vec<u32>,
}

fn reduce(program: &mut Program, all: &mut For, before: &mut Vec<Stmt>) -> bool {
    let span = all.span;
    let Some(sums) = sums(program, all) else {
        let n = before.len();
        for stmt in &mut all.body {
            if let Stmt::Store(store) = stmt
                && store.init
            {
                before.push(fill(program, store, span));
                store.init = false;
            }
        }
        return before.len() > n;
    };
    let mut first = Vec::new();
    for store in &sums.stores {
        let covers = covers(program, &sums.domain, store);
        if store.init && !covers {
            before.push(fill(program, store, span));
        }
        first.push(match store.init && covers {
            true => First::Neutral,
            false => First::Target,
        });
    }
    *all = match cut(program, &sums) {
        Some(cut) => in_parts(program, &sums, &first, &cut, span, before),
        None => loops(program, &sums, None, &first, &sums.stores, span),
    };
    true
}

/// The stores of a `for`, if no two points with different indices along some axes meet.
pub(super) fn sums(program: &Program, all: &For) -> Option<Sums> {
    if all.cells.is_some() {
        // Points that are left out do not make a loop.
        return None;
    }
    let mut stores = Vec::new();
    for stmt in &all.body {
        let Stmt::Store(store) = stmt else {
            return None;
        };
        store.accum?;
        stores.push(store.clone());
    }
    let kept = kept(program, stores.first()?)?;
    let same = stores
        .iter()
        .all(|s| self::kept(program, s).as_ref() == Some(&kept));
    // An index outside is an error where there is a value for it, which each point knows.
    let is_told = |s: &Store| {
        !s.outside.is_checked()
            || is_inside(program, &all.domain, s)
            || has_values(program, &all.domain, &kept)
    };
    if !stores.iter().all(is_told) {
        return None;
    }
    let targets: IndexSet<_> = stores.iter().map(|s| s.target).collect();
    let reads = |e: Expr| {
        let mut found = false;
        program.exprs.visit([e], &mut |x| {
            if let ExprDef::Load { buffer, .. } = &program.exprs[x] {
                found |= targets.contains(buffer);
            }
        });
        found
    };
    let both = |a: &Store, b: &Store| a.target == b.target && !differ(program, a, b);
    let mut pairs = (0..stores.len()).flat_map(|k| (0..k).map(move |j| (j, k)));
    let apart =
        !pairs.any(|(j, k)| both(&stores[j], &stores[k])) && !stores.iter().any(|s| reads(s.value));
    (same && apart).then(|| Sums {
        domain: all.domain.clone(),
        stores,
        kept,
    })
}

/// Whether two stores' indices have different constants somewhere: they never meet.
fn differ(program: &Program, a: &Store, b: &Store) -> bool {
    let mut both = a.index.iter().zip(&b.index);
    both.any(
        |(&a, &b)| match (program.exprs.as_const(a), program.exprs.as_const(b)) {
            (Some(a), Some(b)) => a != b,
            _ => false,
        },
    ) && a.outside == Outside::Never
        && b.outside == Outside::Never
}

/// The axes that a store's indices are, in rising order: each index an axis (or some steps from it), or the same at all points.
fn kept(program: &Program, store: &Store) -> Option<Vec<u32>> {
    if !matches!(
        store.outside,
        Outside::Never | Outside::Error(_) | Outside::Zero
    ) {
        return None;
    }
    let mut kept = Vec::new();
    for &e in &store.index {
        match &program.exprs[e] {
            ExprDef::Axis(k) => kept.push(*k),
            ExprDef::Binary(BinaryOp::Add, a, c)
                if program.exprs.as_const(*c).is_some()
                    && matches!(program.exprs[*a], ExprDef::Axis(_)) =>
            {
                if let ExprDef::Axis(k) = program.exprs[*a] {
                    kept.push(k);
                }
            }
            _ => {
                let mut varies = false;
                program.exprs.visit([e], &mut |x| {
                    varies |= matches!(program.exprs[x], ExprDef::Axis(_) | ExprDef::Load { .. });
                });
                if varies {
                    return None;
                }
            }
        }
    }
    kept.sort_unstable();
    let n = kept.len();
    kept.dedup();
    (kept.len() == n).then_some(kept)
}

/// Whether the points of a domain meet every element of the store's target.
pub(super) fn covers(program: &Program, domain: &[Dim], store: &Store) -> bool {
    let shape = &program.buffers[store.target].shape;
    let mut both = store.index.iter().zip(shape);
    both.all(|(&e, &dim)| match program.exprs[e] {
        ExprDef::Axis(k) => domain[k as usize] == dim,
        // The only element, wherever an index that is inside points.
        _ => {
            program.const_dim(dim) == Some(1)
                && (store.outside == Outside::Never
                    || program.exprs.as_const(e).is_some_and(Scalar::is_zero))
        }
    })
}

/// Whether a store's indices are inside wherever the others are: axes as long as the target's, or constants.
fn is_inside(program: &Program, domain: &[Dim], store: &Store) -> bool {
    let shape = &program.buffers[store.target].shape;
    let mut both = store.index.iter().zip(shape);
    both.all(|(&e, &dim)| match program.exprs[e] {
        ExprDef::Axis(k) => domain[k as usize] == dim,
        ExprDef::Const(c) => program.surely_has(dim, c.as_i128()),
        _ => false,
    })
}

/// Whether it is proved that every index along the remaining axes has points.
fn has_values(program: &Program, domain: &[Dim], kept: &[u32]) -> bool {
    let mut reduced = (0..domain.len() as u32).filter(|k| !kept.contains(k));
    reduced.all(|k| program.surely_has(domain[k as usize], 0))
}

/// Fills a store's target with the identity element.
pub(super) fn fill(program: &mut Program, store: &Store, span: Span) -> Stmt {
    let def = &program.buffers[store.target];
    let (ty, domain) = (def.ty, def.shape.clone());
    let accum = store.accum.expect("the verifier wants it beside `init`");
    let value = program.exprs.constant(accum.neutral(ty));
    let index = program.axes(domain.len());
    Stmt::For(For {
        domain,
        cells: None,
        body: vec![Stmt::Store(Store {
            target: store.target,
            index,
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        })],
        span,
    })
}

/// How an axis is cut into parts.
struct Cut {
    axis: u32,
    n_parts: Dim,
    /// No part is longer, if that is known.
    most: Option<u64>,
    /// All parts have this length, and one more has what is left.
    length: Option<Expr>,
}

/// The axis to split: if elements are few and values many, the longest, or the first whose size is not known; if
/// neighbours along it lie far apart, it is read a few rows at a time.
fn cut(program: &mut Program, sums: &Sums) -> Option<Cut> {
    let dim = |k: u32| sums.domain[k as usize];
    let n_elements = program.size_of_all(sums.kept.iter().map(|&k| dim(k)))?;
    let others = (0..sums.domain.len() as u32).filter(|k| !sums.kept.contains(k));
    let n_values = program.size_of_all(others.clone().map(dim));
    if n_elements.about >= ENOUGH {
        return by_rows(program, sums, n_elements.about);
    }
    if n_values.is_some_and(|n| n.about < MANY) {
        return None;
    }
    let about = |k: u32| program.size_of(dim(k)).map(|n| n.about);
    let unknown = others.clone().find(|&k| about(k).is_none());
    let axis = unknown.or_else(|| others.max_by_key(|&k| (about(k), std::cmp::Reverse(k))))?;
    let size = program.size_of(dim(axis));
    let n_parts = size.map_or(PARTS, |n| {
        (n.about / LONG_PART)
            .next_power_of_two()
            .clamp(PARTS, MOST_PARTS)
    });
    Some(Cut {
        axis,
        n_parts: program.size(n_parts),
        most: size.map(|n| n.most.div_ceil(n_parts)),
        length: None,
    })
}

/// Of a sum over the rows of what lies row by row: the axis of rows, and how many parts have `ROWS` of them.
fn by_rows(program: &mut Program, sums: &Sums, n_elements: u64) -> Option<Cut> {
    let mut others = (0..sums.domain.len() as u32).filter(|k| !sums.kept.contains(k));
    let (axis, None) = (others.next()?, others.next()) else {
        return None;
    };
    let rows = sums.domain[axis as usize];
    let n_rows = program.size_of(rows)?.about;
    let mut far = false;
    let roots = sums.stores.iter().map(|s| s.value);
    program.exprs.visit(roots, &mut |e| {
        if let ExprDef::Load { index, .. } = &program.exprs[e]
            && let Some((&last, before)) = index.split_last()
        {
            let is = |e: Expr, k: u32| program.exprs[e] == ExprDef::Axis(k);
            let across = before.iter().any(|&e| is(e, axis));
            far |= across && sums.kept.iter().any(|&k| is(last, k));
        }
    });
    // In lanes of one width.
    let mut types = sums
        .stores
        .iter()
        .map(|s| program.buffers[s.target].ty.bytes());
    let first = types.next();
    let alike = types.all(|bytes| Some(bytes) == first);
    let worth = far && alike && n_elements >= LONG_ROW && (MANY_ROWS..1 << 30).contains(&n_rows);
    if !worth {
        return None;
    }
    let n = program.extent(rows);
    let length = program.exprs.i32(ROWS as i32);
    let n_parts = program.exprs.binary(BinaryOp::Div, n, length);
    Some(Cut {
        axis,
        n_parts: program.dim(DimDef::Value(n_parts)),
        most: Some(ROWS),
        length: Some(length),
    })
}

/// Rows of so many elements lie in pages of their own.
const LONG_ROW: u64 = 1024;
/// How many of them are read together.
const ROWS: u64 = 16;
/// With fewer of them, sums of parts do not pay.
const MANY_ROWS: u64 = 2048;

/// With what a sum begins.
#[derive(Clone, Copy, PartialEq)]
enum First {
    Neutral,
    Target,
}

/// A part of an axis: the axis, and the axis of the new domain that counts parts.
#[derive(Clone, Copy)]
struct Part {
    axis: u32,
    length: Expr,
    number: Expr,
    n_parts: Dim,
    /// No part is longer, if that is known.
    most: Option<u64>,
    /// All parts are of this length.
    is_exact: bool,
}

/// Loops over the reduced axes, at each point of the remaining ones.
fn loops(
    program: &mut Program,
    sums: &Sums,
    part: Option<Part>,
    first: &[First],
    targets: &[Store],
    span: Span,
) -> For {
    // Parts come first: elements that are neighbours are read together.
    let mut domain: Vec<Dim> = part.iter().map(|part| part.n_parts).collect();
    let n_before = domain.len();
    domain.extend(sums.kept.iter().map(|&k| sums.domain[k as usize]));
    let mut axes: Vec<Option<Expr>> = vec![None; sums.domain.len()];
    for (new, &k) in sums.kept.iter().enumerate() {
        axes[k as usize] = Some(program.exprs.axis((n_before + new) as u32));
    }
    let mut counters: Vec<(Var, u32)> = Vec::new();
    for k in 0..sums.domain.len() as u32 {
        if axes[k as usize].is_none() {
            let var = program.var(aerogel_base::ScalarType::I32);
            let mut at = program.get(var);
            if let Some(part) = part.as_ref().filter(|p| p.is_exact && p.axis == k) {
                let exprs = &mut program.exprs;
                let before = exprs.binary(BinaryOp::Mul, part.number, part.length);
                at = exprs.binary(BinaryOp::Add, before, at);
            }
            axes[k as usize] = Some(at);
            counters.push((var, k));
        }
    }
    let mut done = LookupMap::default();
    let mut moved = |program: &mut Program, e: Expr| {
        program
            .exprs
            .replace(e, &mut done, &mut |_, def| match *def {
                ExprDef::Axis(k) => axes[k as usize],
                _ => None,
            })
    };
    let nest = nest(program, sums, &counters, part.as_ref());
    let (mut body, mut turns, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    // Of each loop that has sums of its own, how they begin and where they go.
    let n_sums = nest.iter().filter(|counted| counted.has_sums).count();
    let mut nested: Vec<[Vec<Stmt>; 2]> = vec![Default::default(); n_sums];
    for ((store, first), target) in sums.stores.iter().zip(first).zip(targets) {
        let accum = store.accum.expect("all accumulate");
        let ty = program.buffers[store.target].ty;
        let var = program.var(ty);
        // A target of parts is indexed in the new domain already.
        let index: Vec<Expr> = match part.is_some() {
            true => target.index.clone(),
            false => target.index.iter().map(|&e| moved(program, e)).collect(),
        };
        // Where there is no value, an index may be anywhere.
        let is_kept = is_inside(program, &sums.domain, store)
            || has_values(program, &sums.domain, &sums.kept);
        let outside = match is_kept {
            true => target.outside,
            false => Outside::Zero,
        };
        let before = match first {
            First::Neutral => program.exprs.constant(accum.neutral(ty)),
            First::Target => {
                // It is the store that tells.
                let read = match outside {
                    Outside::Error(_) => Outside::Zero,
                    other => other,
                };
                program.load(target.target, index.clone(), read)
            }
        };
        body.push(Stmt::Set(var, before));
        let value = moved(program, store.value);
        let add = |program: &mut Program, to: Var, value: Expr| {
            let sum = program.get(to);
            Stmt::Set(to, program.exprs.binary(accum.binary(), sum, value))
        };
        let mut innermost = var;
        for [begin, end] in &mut nested {
            let own = program.var(ty);
            begin.push(Stmt::Set(own, program.exprs.constant(accum.neutral(ty))));
            let sum = program.get(own);
            end.push(add(program, innermost, sum));
            innermost = own;
        }
        turns.push(add(program, innermost, value));
        let sum = program.get(var);
        ends.push(Stmt::Store(Store {
            target: target.target,
            index,
            value: sum,
            accum: None,
            init: false,
            outside,
        }));
    }
    for counted in nest.into_iter().rev() {
        if counted.has_sums {
            let [begin, end] = nested.pop().expect("one for each such loop");
            turns = [begin, turns, end].concat();
        }
        turns = vec![Stmt::Loop {
            var: counted.var,
            lo: counted.lo,
            hi: counted.hi,
            step: 1,
            body: turns,
        }];
    }
    body.extend(turns);
    body.extend(ends);
    For {
        domain,
        cells: None,
        body,
        span,
    }
}

/// A loop over an axis that is summed over, or over blocks of one.
struct Counted {
    var: Var,
    lo: Expr,
    hi: Expr,
    /// The statements inside add to separate sums for each iteration.
    has_sums: bool,
}

/// The loops over axes, outermost first, with blocks of those that would be too long a chain.
fn nest(
    program: &mut Program,
    sums: &Sums,
    counters: &[(Var, u32)],
    part: Option<&Part>,
) -> Vec<Counted> {
    let is_rounded = sums.stores.iter().any(|s| {
        program.buffers[s.target].ty.is_float() && matches!(s.accum, Some(Accum::Add | Accum::Mul))
    });
    let mut nest = Vec::new();
    // How many values a sum takes inside of the loops so far.
    let mut chain = 1_u64;
    for &(var, k) in counters.iter().rev() {
        let part = part.filter(|part| part.axis == k);
        let [lo, length] = bounds(program, sums.domain[k as usize], part);
        let n = match part {
            Some(part) => part.most,
            None => program.size_of(sums.domain[k as usize]).map(|n| n.most),
        };
        let mut counted = Counted {
            var,
            lo,
            hi: program.exprs.binary(BinaryOp::Add, lo, length),
            has_sums: false,
        };
        if !is_rounded || n.is_some_and(|n| n.saturating_mul(chain) <= CHAIN) {
            chain = chain.saturating_mul(n.unwrap_or(1));
            nest.push(counted);
            continue;
        }
        let block_length = CHAIN / chain;
        if block_length <= 1 {
            counted.has_sums = true;
            nest.push(counted);
            chain = n.unwrap_or(CHAIN);
            continue;
        }
        let block = program.var(aerogel_base::ScalarType::I32);
        let number = program.get(block);
        let exprs = &mut program.exprs;
        let [zero, one, most] = [0, 1, block_length as i32].map(|n| exprs.i32(n));
        // Without sums or products beyond the largest number; the last block may be empty.
        let before = exprs.binary(BinaryOp::Mul, number, most);
        let first = exprs.binary(BinaryOp::Add, lo, before);
        let full = exprs.binary(BinaryOp::Div, length, most);
        let rest = exprs.binary(BinaryOp::Sub, length, before);
        // Not a constant where all are equal: LLVM would unroll all iterations, which is slower.
        let inside = exprs.binary(BinaryOp::Min, rest, most);
        nest.push(Counted {
            hi: exprs.binary(BinaryOp::Add, first, inside),
            lo: first,
            ..counted
        });
        nest.push(Counted {
            var: block,
            lo: zero,
            hi: exprs.binary(BinaryOp::Add, full, one),
            has_sums: true,
        });
        chain = n.map_or(CHAIN, |n| n.div_ceil(block_length));
    }
    nest.reverse();
    nest
}

/// Where an axis begins, or a part of it, and how many values it has.
fn bounds(program: &mut Program, dim: Dim, part: Option<&Part>) -> [Expr; 2] {
    let extent = program.extent(dim);
    let Some(part) = part else {
        return [program.exprs.i32(0), extent];
    };
    let exprs = &mut program.exprs;
    if part.is_exact {
        return [exprs.i32(0), part.length];
    }
    // Without sums or products beyond the largest number.
    let lo = exprs.binary(BinaryOp::Mul, part.number, part.length);
    let lo = exprs.binary(BinaryOp::Min, lo, extent);
    let rest = exprs.binary(BinaryOp::Sub, extent, lo);
    [lo, exprs.binary(BinaryOp::Min, part.length, rest)]
}

/// The parts of an axis, and how many there are: points of one domain, and what is left over of those of a stated length.
fn parts(program: &mut Program, sums: &Sums, cut: &Cut) -> (Vec<Part>, Dim) {
    let &Cut {
        axis,
        n_parts,
        most,
        ..
    } = cut;
    let dim = sums.domain[axis as usize];
    let [n, number] = [dim, n_parts].map(|dim| program.extent(dim));
    let consts = program.const_dim(dim).zip(program.const_dim(n_parts));
    let exprs = &mut program.exprs;
    let one = exprs.i32(1);
    let all = Part {
        axis,
        number: exprs.axis(0),
        // The quotient rounded up, without sums beyond the largest number; of nothing, parts of one number that is not there.
        length: cut.length.unwrap_or_else(|| {
            let less = exprs.binary(BinaryOp::Sub, n, one);
            let length = exprs.binary(BinaryOp::Div, less, number);
            exprs.binary(BinaryOp::Add, length, one)
        }),
        n_parts,
        most,
        is_exact: cut.length.is_some() || consts.is_some_and(|(n, parts)| n > 0 && n % parts == 0),
    };
    if cut.length.is_none() || consts.is_some_and(|(n, parts)| n == ROWS * parts) {
        return (vec![all], n_parts);
    }
    let more = exprs.binary(BinaryOp::Add, number, one);
    let rest = Part {
        number,
        n_parts: program.size(1),
        is_exact: false,
        ..all
    };
    (vec![all, rest], program.dim(DimDef::Value(more)))
}

/// Sums of parts of an axis first, then their sums.
fn in_parts(
    program: &mut Program,
    sums: &Sums,
    first: &[First],
    cut: &Cut,
    span: Span,
    before: &mut Vec<Stmt>,
) -> For {
    let n_kept = sums.kept.len();
    let (parts, n_parts) = parts(program, sums, cut);
    let mut shape = vec![n_parts];
    shape.extend(sums.kept.iter().map(|&k| sums.domain[k as usize]));
    let targets = sums.stores.iter();
    let targets = targets.map(|s| program.temporary(program.buffers[s.target].ty, &shape));
    let targets: Vec<_> = targets.collect();
    for part in parts {
        let mut partial = sums.stores.clone();
        for (store, &target) in partial.iter_mut().zip(&targets) {
            store.target = target;
            store.index = program.axes(n_kept + 1);
            store.index[0] = part.number;
        }
        let neutral = vec![First::Neutral; partial.len()];
        let all = loops(program, sums, Some(part), &neutral, &partial, span);
        before.push(Stmt::For(all));
    }
    // The parts' sums, by one loop for each element.
    let domain: Vec<Dim> = shape.clone();
    let mut stores = Vec::new();
    for (store, target) in sums.stores.iter().zip(targets) {
        let index = program.axes(n_kept + 1);
        let value = program.load(target, index, Outside::Never);
        let mut done = LookupMap::default();
        let places = sums.kept.clone();
        let index = store.index.iter().map(|&e| {
            program
                .exprs
                .replace(e, &mut done, &mut |exprs, def| match *def {
                    ExprDef::Axis(k) => {
                        let new = places
                            .iter()
                            .position(|&p| p == k)
                            .expect("the axis remains");
                        Some(exprs.axis(1 + new as u32))
                    }
                    _ => None,
                })
        });
        let index = index.collect();
        stores.push(Store {
            value,
            index,
            ..store.clone()
        });
    }
    let second = Sums {
        domain,
        stores: stores.clone(),
        kept: (1..=n_kept as u32).collect(),
    };
    loops(program, &second, None, first, &stores, span)
}
