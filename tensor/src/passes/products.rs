//! Sums of products become products of matrices.
//!
//! ```text
//! for [n, m, k] { t[i0, i1] add init = mul(a[i0, i2], b[i1, i2]) }
//! for [n, m] { y[i0, i1] = max(add(t[i0, i1], c[i1]), 0) }
//! ```
//! The axes of such a `for` are those of both factors and of the result (a batch), of one factor and of the result (rows and
//! columns), and of both factors alone (the inner ones), whatever their number and their order. What is then computed
//! of the product, each element at a point of its own, is computed where the product is made.
//!
//! `tiles` makes statements of a product; or it is a library's, see [`Products`].

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};
use indexmap::{IndexMap, IndexSet};

use super::factors::Factors;
use super::{Options, Products, by_library, direct, narrow, tiles};
use crate::ir::{
    Accum, Buffer, Dim, Expr, ExprDef, For, Outside, Product, Program, Role, Size, Stmt, Store,
    Touched, only_store, rewrite_blocks, visit_host,
};

/// Rows, columns or inner axes with fewer indices are as well done by loops.
const LEAST: u64 = 8;
/// The largest cost of operations on each element of the product, since they are unrolled for each row of a tile.
const MAX_EPILOGUE: u32 = 40;

/// Makes products of all sums that are worth it.
pub(super) fn run(program: &mut Program, options: Options) -> bool {
    let narrowed = narrow::run(program);
    let mut readers = IndexMap::new();
    visit_host(&program.body, &mut |stmt| {
        for buffer in Touched::by(program, std::slice::from_ref(stmt)).reads {
            *readers.entry(buffer).or_default() += 1;
        }
    });
    rewrite_blocks(program, &mut |program, body| {
        block(program, body, &readers, options)
    }) || narrowed
}

fn block(
    program: &mut Program,
    body: &mut Vec<Stmt>,
    readers: &IndexMap<Buffer, usize>,
    options: Options,
) -> bool {
    let mut found: Vec<(usize, Factors)> = Vec::new();
    for (at, stmt) in body.iter().enumerate() {
        if let Stmt::For(all) = stmt {
            found.extend(factors(program, all).map(|f| (at, f)));
        }
    }
    // What stands at a place afterwards, if something else.
    let mut new: IndexMap<usize, Vec<Stmt>> = IndexMap::new();
    for (at, factors) in found {
        let target = factors.store.target;
        let small =
            is_small(program, &factors, options) && !direct::pays(program, &factors, options.many);
        let is_masked = factors.masks.iter().any(Option::is_some);
        let unsure = must_be_finite(program, &factors);
        let small = small || unsure.into_iter().any(|v| whole(program, v).is_none());
        let by_library = options.products == Products::Library
            && !is_masked
            && matches!(
                program.buffers[target].ty,
                ScalarType::F32 | ScalarType::F64
            );
        if small {
            program.products.insert(target, Product::Small);
            continue;
        }
        let follower = follower(program, body, at, &factors, readers)
            .filter(|(follower, _)| !new.contains_key(follower));
        let epilogue = follower.as_ref().and_then(|(k, axes)| match &body[*k] {
            Stmt::For(all) => Some((all, &axes[..])),
            _ => None,
        });
        let (made, fused) = if by_library {
            by_library::run(program, factors, epilogue)
        } else {
            let mut first = Vec::new();
            let finite = finite(program, &factors, &mut first);
            let mut made = match direct::run(program, &factors, epilogue) {
                Some(made) => made,
                None => tiles::run(program, factors, epilogue, options.caps),
            };
            if let Some(cond) = finite {
                let mut otherwise = vec![body[at].clone()];
                otherwise.extend(epilogue.map(|(all, _)| Stmt::For(all.clone())));
                first.push(Stmt::If(cond, made, otherwise));
                made = first;
            }
            (made, epilogue.is_some())
        };
        match follower.filter(|_| fused) {
            Some((follower, _)) => {
                new.insert(at, Vec::new());
                new.insert(follower, made);
            }
            None => {
                new.insert(at, made);
            }
        }
        let how = match by_library {
            true => Product::Library(fused),
            false => Product::Tiles(fused),
        };
        program.products.insert(target, how);
    }
    if new.is_empty() {
        return false;
    }
    let old = std::mem::take(body);
    for (at, stmt) in old.into_iter().enumerate() {
        match new.shift_remove(&at) {
            Some(stmts) => body.extend(stmts),
            None => body.push(stmt),
        }
    }
    true
}

/// Whether each factor is finite where the other one may not count, and the statements that find out: zero times infinity
/// is no zero. Nothing where it counts everywhere, and of integers.
fn finite(program: &mut Program, factors: &Factors, out: &mut Vec<Stmt>) -> Option<Expr> {
    let mut all: Option<Expr> = None;
    for value in must_be_finite(program, factors) {
        let (value, domain) = whole(program, value).expect("it has been looked at");
        let flag = program.temporary(ScalarType::I32, &[]);
        let exprs = &mut program.exprs;
        let infinity = exprs.constant(Scalar::float(exprs.ty(value), f64::INFINITY));
        let size = exprs.unary(UnaryOp::Abs, value);
        let is_finite = exprs.compare(CompareOp::Lt, size, infinity);
        let value = exprs.cast(is_finite, ScalarType::I32);
        out.push(Stmt::For(For {
            domain,
            cells: None,
            body: vec![Stmt::Store(Store {
                target: flag,
                index: Vec::new(),
                value,
                accum: Some(Accum::Min),
                init: true,
                outside: Outside::Never,
            })],
            span: factors.span,
        }));
        let found = program.load(flag, Vec::new(), Outside::Never);
        let exprs = &mut program.exprs;
        let zero = exprs.i32(0);
        let cond = exprs.compare(CompareOp::Gt, found, zero);
        all = Some(match all {
            Some(before) => exprs.binary(BinaryOp::And, before, cond),
            None => cond,
        });
    }
    all
}

/// The factors beside which the other one may not count.
fn must_be_finite(program: &Program, factors: &Factors) -> Vec<Expr> {
    let sides = factors.masks.iter().zip(factors.operands.iter().rev());
    let masked = sides.filter(|(mask, _)| mask.is_some());
    let values = masked.map(|(_, &value)| value);
    values.filter(|&v| program.exprs.ty(v).is_float()).collect()
}

/// All elements of a buffer, if a value is one of them.
fn whole(program: &mut Program, value: Expr) -> Option<(Expr, Vec<Dim>)> {
    let ExprDef::Load { buffer, .. } = program.exprs[value] else {
        return None;
    };
    let domain = program.buffers[buffer].shape.clone();
    let index = program.axes(domain.len());
    Some((program.load(buffer, index, Outside::Never), domain))
}

/// The axes in an expression; nothing if it may not be computed once for several points, or where none of them are.
fn axes_of(program: &Program, e: Expr) -> Option<IndexSet<u32>> {
    let mut axes = IndexSet::new();
    let mut plain = true;
    let mut loads = false;
    program.exprs.visit([e], &mut |x| match &program.exprs[x] {
        ExprDef::Axis(k) => {
            axes.insert(*k);
        }
        ExprDef::Load { outside, .. } => {
            plain &= !outside.is_checked();
            loads = true;
        }
        _ => {}
    });
    (plain && loads).then_some(axes)
}

/// The factors of a sum of products, if a `for` is one.
fn factors(program: &mut Program, all: &For) -> Option<Factors> {
    let store = only_store(all)?;
    let is_sum = store.accum == Some(Accum::Add) && store.init && store.outside == Outside::Never;
    let ty = program.buffers[store.target].ty;
    if !is_sum || ty == ScalarType::U1 {
        return None;
    }
    let mut kept = Vec::new();
    for (&e, &dim) in store.index.iter().zip(&program.buffers[store.target].shape) {
        match program.exprs[e] {
            ExprDef::Axis(k) if all.domain[k as usize] == dim && !kept.contains(&k) => kept.push(k),
            _ => return None,
        }
    }
    let (value, conditions) = masked(program, store.value);
    let ExprDef::Binary(BinaryOp::Mul, left, right) = program.exprs[value] else {
        return None;
    };
    let [left, right] = [left, right].map(|e| without_one(program, e));
    let (x, y) = (axes_of(program, left)?, axes_of(program, right)?);
    let masks = masks(program, conditions, [&x, &y])?;
    let mut factors = Factors {
        domain: all.domain.clone(),
        batch: Vec::new(),
        rows: Vec::new(),
        columns: Vec::new(),
        inner: Vec::new(),
        operands: [left, right],
        masks,
        store: store.clone(),
        span: all.span,
    };
    let others = (0..all.domain.len() as u32).filter(|k| !kept.contains(k));
    let order: Vec<u32> = kept.iter().copied().chain(others).collect();
    for k in order {
        let axes = match (x.contains(&k), y.contains(&k), kept.contains(&k)) {
            (true, true, true) => &mut factors.batch,
            (true, false, true) => &mut factors.rows,
            (false, true, true) => &mut factors.columns,
            (true, true, false) => &mut factors.inner,
            _ => return None,
        };
        axes.push(k);
    }
    let all_there = [&factors.rows, &factors.columns, &factors.inner]
        .iter()
        .all(|axes| !axes.is_empty());
    all_there.then_some(factors)
}

/// A value that may be multiplied by one: the derivative of a sum is.
fn without_one(program: &Program, value: Expr) -> Expr {
    match program.exprs[value] {
        ExprDef::Binary(BinaryOp::Mul, a, b)
            if program.exprs.as_const(a).is_some_and(Scalar::is_one) =>
        {
            b
        }
        _ => value,
    }
}

/// A value that is zero unless conditions hold.
fn masked(program: &Program, value: Expr) -> (Expr, IndexSet<Expr>) {
    match program.exprs[value] {
        ExprDef::Select(cond, inside, zero)
            if program.exprs.as_const(zero).is_some_and(Scalar::is_zero) =>
        {
            (inside, super::conjuncts(&program.exprs, cond))
        }
        _ => (value, IndexSet::new()),
    }
}

/// Conditions as those of one factor or the other, by their axes.
fn masks(
    program: &mut Program,
    conditions: IndexSet<Expr>,
    axes: [&IndexSet<u32>; 2],
) -> Option<[Option<Expr>; 2]> {
    let mut masks = [None; 2];
    for cond in conditions {
        let mut of = IndexSet::new();
        let mut plain = true;
        program
            .exprs
            .visit([cond], &mut |x| match program.exprs[x] {
                ExprDef::Axis(k) => {
                    of.insert(k);
                }
                ExprDef::Load { .. } => plain = false,
                _ => {}
            });
        let side = axes.iter().position(|own| plain && of.is_subset(own))?;
        masks[side] = Some(match masks[side] {
            Some(before) => program.exprs.binary(BinaryOp::And, before, cond),
            None => cond,
        });
    }
    Some(masks)
}

/// The product of the sizes of some axes, if they are known.
fn known(program: &Program, factors: &Factors, axes: &[u32]) -> Option<Size> {
    program.size_of_all(factors.dims(axes))
}

/// An upper bound of the product of the sizes of some axes, as far as they are known.
fn bound(program: &Program, factors: &Factors, axes: &[u32]) -> u64 {
    let dims = factors.dims(axes).into_iter();
    let most = |dim: Dim| program.size_of(dim).map_or(1, |n| n.most);
    dims.map(|dim| program.const_dim(dim).unwrap_or(most(dim)))
        .fold(1, u64::saturating_mul)
}

/// Copies of factors up to so many bytes are made whatever they are copies of.
const SMALL_COPIES: u64 = 64 << 20;

/// Whether a tile's copies of factors are much larger than all that the product reads and writes: those of windows are.
fn copies_too_much(program: &Program, factors: &Factors, copies: [u64; 2], elements: u64) -> bool {
    let size = |b: Buffer| u64::from(program.buffers[b].ty.bytes());
    let bytes: u64 = factors.operands.iter().zip(copies).fold(0, |sum, (&e, n)| {
        sum.saturating_add(n.saturating_mul(u64::from(program.exprs.ty(e).bytes())))
    });
    let mut read = Touched::default();
    read.exprs(&program.exprs, factors.operands);
    let of = |b: Buffer| {
        let extents = program.buffers[b].shape.iter();
        let n = extents.map(|&d| program.size_of(d).map_or(1, |n| n.about));
        n.fold(size(b), u64::saturating_mul)
    };
    let known = read.reads.iter().map(|&b| of(b));
    let known = known.fold(
        elements.saturating_mul(size(factors.store.target)),
        u64::saturating_add,
    );
    bytes > SMALL_COPIES && bytes > known.saturating_mul(4)
}

/// Whether loops do a product as well.
fn is_small(program: &Program, factors: &Factors, options: Options) -> bool {
    let extents =
        [&factors.rows, &factors.columns, &factors.inner].map(|axes| known(program, factors, axes));
    // Numbers of rows beyond the last one stay below the largest index.
    let most = i32::MAX as u64 - by_library::ROWS;
    let groups = [&factors.rows, &factors.columns, &factors.inner];
    if groups
        .iter()
        .any(|axes| bound(program, factors, axes) > most)
    {
        return true;
    }
    let [Some(n), Some(m), Some(k)] = extents else {
        return extents
            .iter()
            .flatten()
            .any(|n| n.about < LEAST.min(options.many));
    };
    let batch = known(program, factors, &factors.batch).unwrap_or(Size::of(1));
    let elements = n.times(m).times(batch);
    let copies = [n, m].map(|own| own.times(k).times(batch));
    let [rows, columns, inner] = groups.map(|axes| bound(program, factors, axes));
    let all_inner = inner.saturating_mul(bound(program, factors, &factors.batch));
    if rows.max(columns).saturating_mul(all_inner) > most
        || copies_too_much(program, factors, copies.map(|n| n.about), elements.about)
    {
        return true;
    }
    let least = n.about.min(m.about).min(k.about);
    least < LEAST.min(options.many) || elements.times(k).about < options.many
}

/// The `for` that alone reads a product, each element at one point of its own, and for each axis of the product's target the
/// axis there; if the product may as well be made there.
fn follower(
    program: &Program,
    body: &[Stmt],
    at: usize,
    factors: &Factors,
    readers: &IndexMap<Buffer, usize>,
) -> Option<(usize, Vec<u32>)> {
    let target = factors.store.target;
    let is_own = program.buffers[target].role == Role::Temporary
        && !program.results.contains(&target)
        && readers.get(&target) == Some(&1);
    if !is_own {
        return None;
    }
    let mut of_product = Touched::default();
    of_product.exprs(&program.exprs, factors.operands);
    let changes = |touched: &Touched| {
        let mut writes = touched.writes.iter();
        writes.any(|b| of_product.reads.contains(b) || *b == target)
            || touched.sets.iter().any(|v| of_product.gets.contains(v))
    };
    for (k, stmt) in body.iter().enumerate().skip(at + 1) {
        let touched = Touched::by(program, std::slice::from_ref(stmt));
        if changes(&touched) {
            return None;
        }
        if touched.reads.contains(&target) {
            let Stmt::For(all) = stmt else {
                return None;
            };
            if all.cells.is_some() {
                // Not every element is needed.
                return None;
            }
            return read_at(program, all, target).map(|axes| (k, axes));
        }
        if matches!(stmt, Stmt::Break | Stmt::Continue | Stmt::If(..)) {
            // What comes behind may not be reached.
            return None;
        }
    }
    None
}

/// The axes at which a `for` of plain stores reads a buffer, if each element is read at one point.
fn read_at(program: &Program, all: &For, target: Buffer) -> Option<Vec<u32>> {
    let mut roots = Vec::new();
    for stmt in &all.body {
        match stmt {
            Stmt::Store(store) if store.accum.is_none() => stmt.exprs(|e| roots.push(e)),
            _ => return None,
        }
    }
    let sum = |e: &Expr| super::inline::cost(&program.exprs, *e);
    if roots.iter().map(sum).sum::<u32>() > MAX_EPILOGUE {
        return None;
    }
    let mut places = IndexSet::new();
    program.exprs.visit(roots, &mut |e| {
        if let ExprDef::Load { buffer, index, .. } = &program.exprs[e]
            && *buffer == target
        {
            places.insert(index.clone());
        }
    });
    let index = places.pop().filter(|_| places.is_empty())?;
    let mut axes = Vec::new();
    for (&e, &dim) in index.iter().zip(&program.buffers[target].shape) {
        match program.exprs[e] {
            ExprDef::Axis(k) if all.domain[k as usize] == dim && !axes.contains(&k) => axes.push(k),
            _ => return None,
        }
    }
    (axes.len() == all.domain.len()).then_some(axes)
}

/// Whether a `for` is a sum of products that is worth more than loops.
pub(super) fn is_worth_it(program: &mut Program, all: &For, options: Options) -> bool {
    factors(program, all).is_some_and(|factors| {
        direct::pays(program, &factors, options.many) || !is_small(program, &factors, options)
    })
}
