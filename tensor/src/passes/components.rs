//! Axes with few elements become components: one temporary for each, held in registers later.
//!
//! ```text
//! for [n, m, 3] { d[i0, i1, i2] = sub(x[i1, i2], x[i0, i2]) }        for [n, m] { d0[i0, i1] = sub(x[i1, 0], x[i0, 0]) } ..
//! for [n, m, 3] { r[i0, i1] add init = mul(d[..], d[..]) }           for [n, m] { r[i0, i1] = add(mul(d0[..], d0[..]), ..) }
//! ```
//! It is done for temporaries of which every access names the component: by a constant, or by an axis of the `for` around,
//! which is then written out. So vectors and matrices of small size lie in planes, and what is computed for all components
//! is shared among them.

use aerogel_base::hash::LookupMap;
use indexmap::{IndexMap, IndexSet};

use super::reductions::fill;
use super::{Options, products};
use crate::ir::{
    Buffer, Dim, Expr, ExprDef, Exprs, For, LONGEST_SHORT, Outside, Program, Role, Stmt, Store,
    Touched, is_whole, map_exprs, only_store, rewrite_fors, visit, visit_host, visit_mut,
};

/// One statement becomes at most so many, or adds up so many values.
const MOST_COPIES: u64 = 16;

/// Takes components apart.
pub(super) fn run(program: &mut Program, options: Options) -> bool {
    let in_products = in_products(program, options);
    let split = splittable(program, &in_products);
    if split.is_empty() {
        return false;
    }
    let unrolled = rewrite_fors(program, &mut |program, all, before| {
        unroll(program, all, &split, before)
    });
    let separated = separate(program, &split);
    rewrite_fors(program, &mut |program, all, _| settle(program, all)) || separated || unrolled
}

/// An accumulation of a single value for each element becomes a store.
fn settle(program: &mut Program, all: &mut For) -> bool {
    let mut changed = false;
    for k in 0..all.body.len() {
        let Stmt::Store(mut store) = all.body[k].clone() else {
            continue;
        };
        if store.init && is_whole(program, all, &store) {
            let Some(accum) = store.accum.take() else {
                continue;
            };
            let neutral = accum.neutral(program.exprs.ty(store.value));
            let neutral = program.exprs.constant(neutral);
            store.value = program.exprs.binary(accum.binary(), neutral, store.value);
            store.init = false;
            all.body[k] = Stmt::Store(store);
            changed = true;
        }
    }
    changed
}

/// The axes of temporaries that can be taken apart.
type Split = IndexMap<Buffer, Vec<usize>>;

fn is_short(program: &Program, dim: Dim) -> bool {
    program
        .const_dim(dim)
        .is_some_and(|n| (1..=LONGEST_SHORT).contains(&n))
}

/// What sums of products read and store that tiles are made of, of axes of any length.
fn in_products(program: &mut Program, options: Options) -> IndexSet<Buffer> {
    let body = std::mem::take(&mut program.body);
    let mut found = IndexSet::new();
    visit_host(&body, &mut |stmt| {
        if let Stmt::For(all) = stmt
            && products::is_worth_it(program, all, options)
        {
            found.extend(accesses(program, &all.body).into_iter().map(|a| a.0));
        }
    });
    program.body = body;
    found
}

/// All candidates, less those that some access speaks against, until none does.
fn splittable(program: &Program, in_products: &IndexSet<Buffer>) -> Split {
    let mut split = Split::new();
    for (buffer, def) in program.buffers.iter() {
        let axes = (0..def.shape.len()).filter(|&k| is_short(program, def.shape[k]));
        let axes: Vec<usize> = axes.collect();
        let some_long = axes.len() < def.shape.len();
        if def.role == Role::Temporary && !axes.is_empty() && some_long {
            split.insert(buffer, axes);
        }
    }
    for whole in program.results.iter().chain(in_products) {
        split.shift_remove(whole);
    }
    loop {
        let before = split.len();
        visit_host(&program.body, &mut |stmt| refuse(program, stmt, &mut split));
        if split.len() == before {
            return split;
        }
    }
}

fn refuse(program: &Program, stmt: &Stmt, split: &mut Split) {
    match stmt {
        Stmt::For(all) => refuse_in(program, all, split),
        host => {
            let touched = Touched::of_itself(program, host);
            for buffer in touched.reads.iter().chain(&touched.writes) {
                split.shift_remove(buffer);
            }
        }
    }
}

/// The accesses of statements: buffer, indices, and what indices outside mean.
fn accesses(program: &Program, body: &[Stmt]) -> Vec<(Buffer, Vec<Expr>, Outside)> {
    let mut all = Vec::new();
    visit(body, &mut |stmt| {
        if let Stmt::Store(store) = stmt {
            all.push((store.target, store.index.clone(), store.outside));
        }
        program.exprs.visit(stmt.roots(), &mut |e| {
            if let ExprDef::Load {
                buffer,
                index,
                outside,
                ..
            } = &program.exprs[e]
            {
                all.push((*buffer, index.clone(), *outside));
            }
        });
    });
    all
}

fn refuse_in(program: &Program, all: &For, split: &mut Split) {
    let accesses = accesses(program, &all.body);
    let single = only_store(all).is_some();
    for stmt in &all.body {
        // What `init` fills are all components.
        if let Stmt::Store(store) = stmt
            && store.init
            && let Some(axes) = split.get(&store.target)
        {
            let named = axes
                .iter()
                .filter_map(|&k| match program.exprs[store.index[k]] {
                    ExprDef::Axis(axis) => Some(axis),
                    _ => None,
                });
            let named: IndexSet<u32> = named.collect();
            if named.len() < axes.len() {
                split.shift_remove(&store.target);
            }
        }
    }
    for (buffer, index, outside) in &accesses {
        let Some(axes) = split.get(buffer) else {
            continue;
        };
        let named = axes.iter().all(|&k| {
            let extent = program.buffers[*buffer].shape[k];
            match program.exprs[index[k]] {
                ExprDef::Const(c) => program
                    .const_dim(extent)
                    .is_some_and(|n| (0..i128::from(n)).contains(&c.as_i128())),
                ExprDef::Axis(axis) => single && all.domain[axis as usize] == extent,
                _ => false,
            }
        });
        if !named || outside.is_checked() {
            split.shift_remove(buffer);
        }
    }
    let copies: u64 = written_out(program, all, split)
        .iter()
        .map(|&k| program.const_dim(all.domain[k as usize]).unwrap_or(1))
        .product();
    if copies > MOST_COPIES {
        for (buffer, ..) in &accesses {
            split.shift_remove(buffer);
        }
    }
}

/// The axes of a `for` that name components.
fn written_out(program: &Program, all: &For, split: &Split) -> Vec<u32> {
    let mut out = IndexSet::new();
    for (buffer, index, _) in accesses(program, &all.body) {
        for &k in split.get(&buffer).into_iter().flatten() {
            if let ExprDef::Axis(axis) = program.exprs[index[k]] {
                out.insert(axis);
            }
        }
    }
    let mut out: Vec<u32> = out.into_iter().collect();
    out.sort_unstable();
    out
}

/// One store for each component that a store names, with the values along the other axes put together.
fn unroll(program: &mut Program, all: &mut For, split: &Split, before: &mut Vec<Stmt>) -> bool {
    let axes = &written_out(program, all, split)[..];
    let Some(store) = only_store(all).filter(|_| !axes.is_empty()).cloned() else {
        return false;
    };
    let mut stored = IndexSet::new();
    program.exprs.visit(store.index.iter().copied(), &mut |e| {
        if let ExprDef::Axis(k) = program.exprs[e] {
            stored.insert(k);
        }
    });
    let extent = |program: &Program, k: u32| program.const_dim(all.domain[k as usize]).unwrap_or(1);
    let (kept, summed): (Vec<u32>, Vec<u32>) = axes.iter().partition(|k| stored.contains(*k));
    let points = |program: &Program, axes: &[u32]| {
        let mut points: Vec<Vec<i32>> = vec![Vec::new()];
        for &k in axes {
            let n = extent(program, k) as i32;
            let longer = |p: Vec<i32>| (0..n).map(move |c| [&p[..], &[c]].concat());
            points = points.into_iter().flat_map(longer).collect();
        }
        points
    };
    let domain: Vec<Dim> = (0..all.domain.len() as u32)
        .filter(|k| !axes.contains(k))
        .map(|k| all.domain[k as usize])
        .collect();
    // A target that stays whole is filled once, not before each component.
    let fills = store.init && !kept.is_empty() && !split.contains_key(&store.target);
    if fills {
        before.push(fill(program, &store, all.span));
    }
    let mut body = Vec::new();
    for point in points(program, &kept) {
        let mut values = Vec::new();
        let mut index = Vec::new();
        for others in points(program, &summed) {
            let at = |k: u32| {
                let of = |axes: &[u32], point: &[i32]| {
                    axes.iter().position(|&a| a == k).map(|p| point[p])
                };
                of(&kept, &point).or_else(|| of(&summed, &others))
            };
            let mut done = LookupMap::default();
            let mut moved = |exprs: &mut Exprs, e: Expr| {
                exprs.replace(e, &mut done, &mut |exprs, def| match *def {
                    ExprDef::Axis(k) => Some(match at(k) {
                        Some(c) => exprs.i32(c),
                        None => {
                            let before = axes.iter().filter(|&&a| a < k).count() as u32;
                            exprs.axis(k - before)
                        }
                    }),
                    _ => None,
                })
            };
            index = store
                .index
                .iter()
                .map(|&e| moved(&mut program.exprs, e))
                .collect();
            values.push(moved(&mut program.exprs, store.value));
        }
        let value = match store.accum {
            None => values[values.len() - 1],
            Some(accum) => {
                let first = values[0];
                let rest = values.into_iter().skip(1);
                rest.fold(first, |sum, v| program.exprs.binary(accum.binary(), sum, v))
            }
        };
        body.push(Stmt::Store(Store {
            index,
            value,
            init: store.init && !fills,
            ..store.clone()
        }));
    }
    (all.domain, all.body) = (domain, body);
    true
}

/// Gives each component a temporary of its own.
fn separate(program: &mut Program, split: &Split) -> bool {
    let mut planes: IndexMap<(Buffer, Vec<i32>), Buffer> = IndexMap::new();
    let mut body = std::mem::take(&mut program.body);
    let mut wanted: IndexSet<(Buffer, Vec<i32>)> = IndexSet::new();
    for (buffer, index, _) in accesses(program, &body) {
        if let Some(axes) = split.get(&buffer) {
            wanted.insert((buffer, component(program, axes, &index)));
        }
    }
    for (buffer, component) in wanted {
        let axes = &split[&buffer];
        let def = program.buffers[buffer].clone();
        let shape: Vec<Dim> = rest(axes, &def.shape);
        let plane = program.temporary(def.ty, &shape);
        let places: Vec<String> = component.iter().map(i32::to_string).collect();
        program.buffers[plane].name = format!("{}.{}", def.name, places.join("."));
        planes.insert((buffer, component), plane);
    }
    visit_mut(&mut body, &mut |stmt| {
        if let Stmt::Store(store) = stmt
            && let Some(axes) = split.get(&store.target)
        {
            let component = component(program, axes, &store.index);
            store.index = rest(axes, &store.index);
            store.target = planes[&(store.target, component)];
        }
    });
    let mut done = LookupMap::default();
    map_exprs(&mut body, &mut |e| {
        let exprs = &mut program.exprs;
        exprs.replace(e, &mut done, &mut |exprs, def| {
            to_plane(exprs, def, split, &planes)
        })
    });
    program.body = body;
    !planes.is_empty()
}

type Planes = IndexMap<(Buffer, Vec<i32>), Buffer>;

/// The load of a component from its plane.
fn to_plane(exprs: &mut Exprs, load: &ExprDef, split: &Split, planes: &Planes) -> Option<Expr> {
    let ExprDef::Load {
        buffer,
        ty,
        index,
        outside,
    } = load
    else {
        return None;
    };
    let axes = split.get(buffer)?;
    let number = |&k: &usize| exprs.as_const(index[k]).map_or(0, |c| c.as_i128() as i32);
    let component: Vec<i32> = axes.iter().map(number).collect();
    let plane = planes[&(*buffer, component)];
    Some(exprs.add(ExprDef::Load {
        buffer: plane,
        ty: *ty,
        index: rest(axes, index),
        outside: *outside,
    }))
}

fn component(program: &Program, axes: &[usize], index: &[Expr]) -> Vec<i32> {
    let number = |&k: &usize| {
        program
            .exprs
            .as_const(index[k])
            .map_or(0, |c| c.as_i128() as i32)
    };
    axes.iter().map(number).collect()
}

/// The rest without some axes.
fn rest<T: Copy>(axes: &[usize], all: &[T]) -> Vec<T> {
    let left = all.iter().enumerate().filter(|(k, _)| !axes.contains(k));
    left.map(|(_, &x)| x).collect()
}
