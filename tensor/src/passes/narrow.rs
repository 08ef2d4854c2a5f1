//! Sums of which only a part is read are computed for that part only.
//!
//! ```text
//! for [34, 3] { t[i0] add init = v(i0, i1) }      for [32, 3] { u[i0] add init = v(i0 + 1, i1) }
//! for [32] { y[i0] = f(t[i0 + 1]) }               for [32] { y[i0] = f(u[i0]) }
//! ```
//! The derivative of a convolution is one of an image with margins, which is cropped.

use aerogel_base::hash::LookupMap;
use aerogel_ir::BinaryOp;
use indexmap::{IndexMap, IndexSet};

use super::affine::Affine;
use super::asked::may_fail;
use crate::ir::{
    Buffer, Dim, ExprDef, For, Outside, Program, Role, Stmt, Store, Touched, exprs_of, map_exprs,
    only_store, rewrite_fors, visit, visit_host,
};

/// The first and the last index along an axis that is read; nothing if it is all of them.
type Ends = Option<[i64; 2]>;

/// The facts about all buffers so far.
#[derive(Default)]
struct Found {
    /// How far each is read.
    read: IndexMap<Buffer, Vec<Ends>>,
    sums: IndexSet<Buffer>,
    refused: IndexSet<Buffer>,
}

/// A buffer of which a part is read, as one of that part, and where that begins and ends.
type Narrow = IndexMap<Buffer, (Buffer, Vec<Ends>)>;

/// Narrows all sums that are read at points' own indices or a constant further on, or at constants.
pub(super) fn run(program: &mut Program) -> bool {
    let mut found = Found::default();
    found.refused.extend(program.results.iter().copied());
    let mut of_extents = Touched::default();
    let dims = program.dims.iter().filter_map(|def| def.expr());
    of_extents.exprs(&program.exprs, dims);
    found.refused.extend(of_extents.reads);
    visit_host(&program.body, &mut |stmt| match stmt {
        Stmt::For(all) => found.look(program, all),
        host => {
            let touched = Touched::of_itself(program, host);
            let both = touched.reads.into_iter().chain(touched.writes);
            found.refused.extend(both);
        }
    });
    let mut narrow = Narrow::new();
    for buffer in found.sums {
        let Some(ends) = found.read.swap_remove(&buffer) else {
            continue;
        };
        let def = program.buffers[buffer].clone();
        let own = def.role == Role::Temporary && !found.refused.contains(&buffer);
        let axes = def.shape.iter().zip(&ends);
        let shape: Vec<Dim> = axes
            .map(|(&dim, ends)| ends.map_or(dim, |[lo, hi]| program.size((hi - lo + 1) as u64)))
            .collect();
        if own && shape != def.shape {
            let part = program.temporary(def.ty, &shape);
            if let Some(&kept) = program.kept.get(&buffer) {
                program.kept.insert(part, kept);
            }
            narrow.insert(buffer, (part, ends));
        }
    }
    rewrite_fors(program, &mut |program, all, _| {
        narrowed(program, all, &narrow)
    })
}

/// A sum of values that are there for any index, to all elements of its target.
fn sum<'f>(program: &Program, all: &'f For) -> Option<&'f Store> {
    let store = only_store(all).filter(|s| s.init && s.outside == Outside::Never)?;
    let mut seen = IndexSet::new();
    let mut axes = store.index.iter().zip(&program.buffers[store.target].shape);
    let is_plain = axes.all(|(&e, &dim)| match program.exprs[e] {
        ExprDef::Axis(k) => all.domain[k as usize] == dim && seen.insert(k),
        _ => false,
    });
    (is_plain && !may_fail(&program.exprs, store.value)).then_some(store)
}

impl Found {
    fn look(&mut self, program: &Program, all: &For) {
        let sum = sum(program, all).map(|store| store.target);
        visit(&all.body, &mut |stmt| {
            if let Stmt::Store(store) = stmt
                && (Some(store.target) != sum || !self.sums.insert(store.target))
            {
                self.refused.insert(store.target);
            }
        });
        program.exprs.visit(exprs_of(&all.body), &mut |e| {
            let ExprDef::Load { buffer, .. } = program.exprs[e] else {
                return;
            };
            match ends(program, all, &program.exprs[e]) {
                Some(ends) => self.reads(buffer, ends),
                None => {
                    self.refused.insert(buffer);
                }
            }
        });
    }

    fn reads(&mut self, buffer: Buffer, ends: Vec<Ends>) {
        let before = self.read.entry(buffer).or_insert_with(|| ends.clone());
        for (before, new) in before.iter_mut().zip(ends) {
            *before = match (*before, new) {
                (Some([a, b]), Some([c, d])) => Some([a.min(c), b.max(d)]),
                _ => None,
            };
        }
    }
}

/// How far a load reads along each axis, where each index is an axis and a constant, or one of them.
fn ends(program: &Program, all: &For, load: &ExprDef) -> Option<Vec<Ends>> {
    let ExprDef::Load {
        buffer,
        index,
        outside: Outside::Never,
        ..
    } = load
    else {
        return None;
    };
    let mut out = Vec::new();
    for (&e, &dim) in index.iter().zip(&program.buffers[*buffer].shape) {
        let map = Affine::of(&program.exprs, e)?;
        let length = match map.terms[..] {
            [(k, 1)] if all.domain[k as usize] == dim && map.offset == 0 => {
                out.push(None);
                continue;
            }
            [(k, 1)] => program.const_dim(all.domain[k as usize]),
            [] => Some(1),
            _ => None,
        };
        let n = program.const_dim(dim).map(|n| n as i64);
        let last = map.offset + length? as i64 - 1;
        if map.offset < 0 || last < map.offset || last >= n? {
            return None;
        }
        out.push(Some([map.offset, last]));
    }
    Some(out)
}

/// A `for` with parts in place of the whole.
fn narrowed(program: &mut Program, all: &mut For, narrow: &Narrow) -> bool {
    let parts: Vec<Buffer> = narrow.values().map(|n| n.0).collect();
    let mut done = LookupMap::default();
    let mut changed = map_exprs(&mut all.body, &mut |e| {
        program
            .exprs
            .replace(e, &mut done, &mut |exprs, def| match def {
                ExprDef::Load {
                    buffer, ty, index, ..
                } if !parts.contains(buffer) => {
                    let (part, ends) = narrow.get(buffer)?;
                    let from = index.iter().zip(ends);
                    let index = from.map(|(&e, ends)| {
                        let first = exprs.i32(ends.map_or(0, |[lo, _]| lo as i32));
                        exprs.binary(BinaryOp::Sub, e, first)
                    });
                    let index = index.collect();
                    Some(exprs.add(ExprDef::Load {
                        buffer: *part,
                        ty: *ty,
                        index,
                        outside: Outside::Never,
                    }))
                }
                _ => None,
            })
    });
    let Some((part, ends)) = only_store(all).and_then(|store| narrow.get(&store.target)) else {
        return changed;
    };
    let Some(Stmt::Store(store)) = all.body.first_mut() else {
        unreachable!("it has one store");
    };
    changed = true;
    store.target = *part;
    let shape = program.buffers[*part].shape.clone();
    let mut firsts: IndexMap<u32, i32> = IndexMap::new();
    for ((&e, ends), dim) in store.index.iter().zip(ends).zip(shape) {
        if let (ExprDef::Axis(k), Some([lo, _])) = (&program.exprs[e], ends) {
            all.domain[*k as usize] = dim;
            firsts.insert(*k, *lo as i32);
        }
    }
    let mut done = LookupMap::default();
    store.value = program
        .exprs
        .replace(store.value, &mut done, &mut |exprs, def| match *def {
            ExprDef::Axis(k) => firsts.get(&k).map(|&first| {
                let [axis, first] = [exprs.axis(k), exprs.i32(first)];
                exprs.binary(BinaryOp::Add, axis, first)
            }),
            _ => None,
        });
    changed
}
