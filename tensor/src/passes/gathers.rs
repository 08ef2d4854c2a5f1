//! Sums in which one index alone counts read the element with that index.
//!
//! ```text
//! for [n, m] { t[i0] add init = select(eq(i1, k[i0]), x[i1], 0) }
//! for [n] { t[i0] = add(0, select(and(ge(k[i0], 0), lt(k[i0], m)), x[k[i0]], 0)) }
//! ```
//! All other terms are the identity element, and all are where the index is out of bounds. A product with zero is handled
//! alike for integers; for floats only if the other factor is proved finite, since NaN and infinity times zero are NaN.
//!
//! The former sum is then a function of its indices, and is inlined.

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};
use indexmap::IndexSet;

use super::asked::may_fail;
use super::{Options, conjuncts, inline};
use crate::ir::{
    Accum, Dim, Expr, ExprDef, Exprs, For, Outside, Program, Stmt, Store, is_whole, only_store,
    rewrite_fors,
};

/// Rewrites all sums over one index.
pub(super) fn run(program: &mut Program, options: Options) -> bool {
    let found = rewrite_fors(program, &mut |program, all, _| {
        let mut found = false;
        while let Some(less) = without_an_axis(program, all) {
            *all = less;
            found = true;
        }
        found
    });
    if found {
        inline::run(program, options);
    }
    found
}

/// The same `for` without an axis of which one index alone counts.
fn without_an_axis(program: &mut Program, all: &For) -> Option<For> {
    let store = only_store(all)?.clone();
    let accum = store.accum.filter(|_| store.init)?;
    let ty = program.exprs.ty(store.value);
    let neutral = accum.neutral(ty);
    let choice = Choice::of(
        &mut program.exprs,
        store.value,
        neutral,
        accum == Accum::Add,
    )?;
    let reduced = |k: &u32| {
        let varies = |&e: &Expr| depends(&program.exprs, e, *k);
        !store.index.iter().any(varies)
    };
    let axes: Vec<u32> = (0..all.domain.len() as u32).filter(reduced).collect();
    let (axis, one) = axes.into_iter().find_map(|k| {
        let one = the_one(program, &all.domain, k, &choice.levels)?;
        Some((k, one))
    })?;
    let at = one.at;
    let neutral = program.exprs.constant(neutral);
    let mut value = choice.value;
    for conditions in one.levels.into_iter().rev() {
        let exprs = &mut program.exprs;
        let all_of = conditions.into_iter();
        let all_of = all_of.reduce(|a, b| exprs.binary(BinaryOp::And, a, b));
        if let Some(cond) = all_of {
            value = exprs.select(cond, value, neutral);
        }
    }
    let mut done = LookupMap::default();
    let value = program
        .exprs
        .replace(value, &mut done, &mut |_, def| match *def {
            ExprDef::Axis(k) if k == axis => Some(at),
            _ => None,
        });
    // The axes behind it move up.
    let mut done = LookupMap::default();
    let mut moved = |program: &mut Program, e: Expr| {
        program
            .exprs
            .replace(e, &mut done, &mut |exprs, def| match *def {
                ExprDef::Axis(k) if k > axis => Some(exprs.axis(k - 1)),
                _ => None,
            })
    };
    let mut less = Store {
        value: moved(program, value),
        index: store.index.iter().map(|&e| moved(program, e)).collect(),
        ..store
    };
    let mut domain = all.domain.clone();
    domain.remove(axis as usize);
    let mut out = For {
        domain,
        cells: None,
        body: Vec::new(),
        span: all.span,
    };
    if less.outside == Outside::Never && is_whole(program, &out, &less) {
        less.value = program.exprs.binary(accum.binary(), neutral, less.value);
        (less.accum, less.init) = (None, false);
    }
    out.body.push(Stmt::Store(less));
    Some(out)
}

/// A value that is the identity element unless conditions hold.
struct Choice {
    /// The conditions by level; those of a level are evaluated only where those of the levels before hold.
    levels: Vec<Vec<Expr>>,
    value: Expr,
}

impl Choice {
    fn of(exprs: &mut Exprs, e: Expr, neutral: Scalar, is_sum: bool) -> Option<Self> {
        Self::unseen(exprs, e, neutral, is_sum, &mut IndexSet::new())
    }

    /// The same of an expression that was not looked at before: factors may share exponentially many.
    fn unseen(
        exprs: &mut Exprs,
        e: Expr,
        neutral: Scalar,
        is_sum: bool,
        seen: &mut IndexSet<Expr>,
    ) -> Option<Self> {
        if !seen.insert(e) {
            return None;
        }
        let ty = exprs.ty(e);
        let is_zero = neutral.is_zero();
        let is_neutral = |exprs: &Exprs, e: Expr| {
            let number = exprs.as_const(e);
            number.is_some_and(|c| c == neutral || is_sum && c.is_zero())
        };
        match exprs[e].clone() {
            ExprDef::Select(cond, value, other) if is_neutral(exprs, other) => {
                let mut choice = Self::when(exprs, cond, value);
                while let ExprDef::Select(cond, value, other) = exprs[choice.value]
                    && is_neutral(exprs, other)
                {
                    let inner = Self::when(exprs, cond, value);
                    choice.levels.extend(inner.levels);
                    choice.value = inner.value;
                }
                Some(choice)
            }
            ExprDef::Select(cond, other, value) if is_neutral(exprs, other) => {
                let ExprDef::Compare(CompareOp::Ne, a, b) = exprs[cond] else {
                    return None;
                };
                let cond = exprs.compare(CompareOp::Eq, a, b);
                Some(Self::when(exprs, cond, value))
            }
            ExprDef::Compare(..) | ExprDef::Binary(BinaryOp::And, ..)
                if ty == ScalarType::U1 && is_zero =>
            {
                let value = exprs.constant(Scalar::bool(true));
                Some(Self::when(exprs, e, value))
            }
            ExprDef::Cast(x, _) if is_zero => {
                let zero = Scalar::zero(exprs.ty(x));
                let mut choice = Self::unseen(exprs, x, zero, is_sum, seen)?;
                choice.value = exprs.cast(choice.value, ty);
                Some(choice)
            }
            ExprDef::Binary(BinaryOp::Mul, a, b) if is_zero => {
                [(a, b), (b, a)].into_iter().find_map(|(one, other)| {
                    if !ty.is_int() && !is_finite(exprs, other) {
                        return None;
                    }
                    let mut choice = Self::unseen(exprs, one, neutral, is_sum, seen)?;
                    choice.value = exprs.binary(BinaryOp::Mul, choice.value, other);
                    Some(choice)
                })
            }
            _ => None,
        }
    }

    fn when(exprs: &Exprs, cond: Expr, value: Expr) -> Self {
        Self {
            levels: vec![conjuncts(exprs, cond).into_iter().collect()],
            value,
        }
    }
}

/// Whether a float is neither infinite nor NaN, whatever is in memory.
fn is_finite(exprs: &Exprs, e: Expr) -> bool {
    let (mut left, mut seen) = (vec![e], IndexSet::new());
    while let Some(e) = left.pop() {
        if !seen.insert(e) {
            continue;
        }
        let is_finite = match exprs[e] {
            ExprDef::Const(c) => c.as_f64().is_finite(),
            ExprDef::Cast(x, to) => match exprs.ty(x) {
                ScalarType::U1 => true,
                from if from.is_int() => to.bits() >= 32,
                _ => false,
            },
            ExprDef::Select(_, a, b) => {
                left.extend([a, b]);
                true
            }
            ExprDef::Unary(UnaryOp::Neg | UnaryOp::Abs, x) => {
                left.push(x);
                true
            }
            _ => false,
        };
        if !is_finite {
            return false;
        }
    }
    true
}

/// Whether an element in it may not be there when an axis has no indices, though it is wherever there are.
pub(super) fn is_asked_for(program: &Program, domain: &[Dim], e: Expr) -> bool {
    let exprs = &program.exprs;
    let mut found = false;
    exprs.visit([e], &mut |x| {
        let ExprDef::Load {
            buffer,
            ref index,
            outside,
            ..
        } = exprs[x]
        else {
            return;
        };
        // Elements at the points themselves are there.
        let mut axes = index.iter().zip(&program.buffers[buffer].shape);
        let at_points = axes.all(
            |(&i, n)| matches!(exprs[i], ExprDef::Axis(k) if domain.get(k as usize) == Some(n)),
        );
        found |= outside.is_checked() || outside == Outside::Never && !at_points;
    });
    found
}

fn depends(exprs: &Exprs, e: Expr, axis: u32) -> bool {
    let mut found = false;
    exprs.visit([e], &mut |x| found |= exprs[x] == ExprDef::Axis(axis));
    found
}

/// The one index along an axis that counts.
struct TheOne {
    /// It, and somewhere inside if there is none.
    at: Expr,
    /// Whether it is inside, and what else has to hold there.
    levels: Vec<Vec<Expr>>,
}

/// The one index along an axis for which a condition holds.
fn the_one(
    program: &mut Program,
    domain: &[Dim],
    axis: u32,
    levels: &[Vec<Expr>],
) -> Option<TheOne> {
    let extent = domain[axis as usize];
    let all = levels.iter().enumerate();
    let mut all = all.flat_map(|(level, all)| all.iter().map(move |&cond| (level, cond)));
    let (level, which, other) = all.find_map(|(level, cond)| {
        let ExprDef::Compare(CompareOp::Eq, a, b) = program.exprs[cond] else {
            return None;
        };
        let both = [(a, b), (b, a)].into_iter();
        let mut solved = both.filter_map(|(of_axis, other)| {
            let apart = !depends(&program.exprs, other, axis);
            apart.then(|| solved_for(program, extent, axis, of_axis, other))?
        });
        Some((level, cond, solved.next()?))
    })?;
    // Loads that were needed at every index are not needed at a single one.
    let mut asked = levels[..=level].iter().flatten();
    if asked.any(|&cond| cond != which && may_fail(&program.exprs, cond)) {
        return None;
    }
    let mut levels = levels.to_vec();
    levels[level].retain(|&cond| cond != which);
    if let ExprDef::Axis(k) = program.exprs[other]
        && domain[k as usize] == extent
    {
        return Some(TheOne { at: other, levels });
    }
    let is_asked = is_asked_for(program, domain, other);
    let n = program.extent(extent);
    let [zero, unit] = [0, 1].map(|n| program.exprs.i32(n));
    let exprs = &mut program.exprs;
    let last = exprs.binary(BinaryOp::Sub, n, unit);
    let clamped = |exprs: &mut Exprs, e: Expr| {
        let low = exprs.binary(BinaryOp::Min, e, last);
        exprs.binary(BinaryOp::Max, low, zero)
    };
    if is_asked && level > 0 {
        return None;
    }
    let mut outer = Vec::new();
    if is_asked {
        // Without indices no element is needed.
        outer.push(vec![exprs.compare(CompareOp::Gt, n, zero)]);
    }
    let ty = exprs.ty(other);
    let (at, inside) = if ty == ScalarType::I32 {
        let from = exprs.compare(CompareOp::Ge, other, zero);
        let to = exprs.compare(CompareOp::Lt, other, n);
        (clamped(exprs, other), vec![from, to])
    } else {
        // The nearest index inside, as far as the type tells: there is one if it is that.
        let [low, high] = [zero, last].map(|e| exprs.cast(e, ty));
        let near = exprs.binary(BinaryOp::Min, other, high);
        let near = exprs.binary(BinaryOp::Max, near, low);
        let near = exprs.cast(near, ScalarType::I32);
        let near = clamped(exprs, near);
        let again = exprs.cast(near, ty);
        let same = exprs.compare(CompareOp::Eq, again, other);
        (near, vec![same, exprs.compare(CompareOp::Gt, n, zero)])
    };
    outer.push(inside);
    outer.extend(levels);
    Some(TheOne { at, levels: outer })
}

/// What an axis, as the type of that, has to be for `of_axis` to be `other`.
fn solved_for(
    program: &mut Program,
    extent: Dim,
    axis: u32,
    of_axis: Expr,
    other: Expr,
) -> Option<Expr> {
    match program.exprs[of_axis] {
        ExprDef::Axis(k) => (k == axis).then_some(other),
        ExprDef::Cast(x, ty) => {
            let told_apart = match ty {
                ScalarType::I32
                | ScalarType::I64
                | ScalarType::U32
                | ScalarType::U64
                | ScalarType::F64 => true,
                other => {
                    let most = most_told_apart(other)?;
                    program.size_of(extent).is_some_and(|n| n.most <= most)
                }
            };
            (told_apart && program.exprs[x] == ExprDef::Axis(axis)).then_some(other)
        }
        ExprDef::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b)
            if program.exprs.ty(of_axis).is_int() =>
        {
            // Sums of integers wrap, and so does what is taken away again.
            let exprs = &mut program.exprs;
            let in_first = depends(exprs, a, axis);
            if in_first == depends(exprs, b, axis) {
                return None;
            }
            let (of_axis, other) = match (op, in_first) {
                (BinaryOp::Add, true) => (a, exprs.binary(BinaryOp::Sub, other, b)),
                (BinaryOp::Add, false) => (b, exprs.binary(BinaryOp::Sub, other, a)),
                (_, true) => (a, exprs.binary(BinaryOp::Add, other, b)),
                (_, false) => (b, exprs.binary(BinaryOp::Sub, a, other)),
            };
            solved_for(program, extent, axis, of_axis, other)
        }
        _ => None,
    }
}

/// Of so many indices from zero on no two are one number of a type.
fn most_told_apart(ty: ScalarType) -> Option<u64> {
    Some(match ty {
        ScalarType::F32 => 1 << 24,
        ScalarType::F16 => 1 << 11,
        ScalarType::I16 => 1 << 15,
        ScalarType::U16 => 1 << 16,
        ScalarType::I8 => 1 << 7,
        ScalarType::U8 => 1 << 8,
        _ => return None,
    })
}
