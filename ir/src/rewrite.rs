//! Rewriting functions.

use aerogel_base::Span;
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;

use crate::build::Builder;
use crate::func::Function;
use crate::op::Op;
use crate::types::{Inst, Region, Type, Value};

/// A rewriter's decision about an instruction.
pub enum Rewrite {
    /// It stays; its regions are visited next.
    Keep,
    /// It goes; its results are replaced by these values.
    Replace(Vec<Value>),
    /// It goes; one of its regions, without parameters and ending in `yield`, takes its place.
    Splice(Region),
}

/// Decides about instructions, one after the other.
pub trait Rewriter {
    /// Decides about an instruction. Instructions built with `before` are inserted before it.
    fn visit(&mut self, before: &mut Builder<'_>, inst: Inst) -> Rewrite;

    /// Called before each region of an instruction is walked.
    fn enter(&mut self, _func: &Function, _inst: Inst) {}

    /// Called after it.
    fn leave(&mut self) {}
}

/// A rewriter that does not care for regions.
struct Visit<F>(F);

impl<F: FnMut(&mut Builder<'_>, Inst) -> Rewrite> Rewriter for Visit<F> {
    fn visit(&mut self, before: &mut Builder<'_>, inst: Inst) -> Rewrite {
        (self.0)(before, inst)
    }
}

/// Walks `func` in order and calls `visit` for every instruction, whose operands are already
/// replaced by what earlier instructions became. Returns whether anything was replaced or inserted.
pub fn rewrite(func: &mut Function, visit: impl FnMut(&mut Builder<'_>, Inst) -> Rewrite) -> bool {
    rewrite_with(func, &mut Visit(visit))
}

/// As [`rewrite`], for a rewriter that is told where regions begin and end.
pub fn rewrite_with(func: &mut Function, rewriter: &mut dyn Rewriter) -> bool {
    let mut subst: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
    let body = func.body;
    rewrite_region(func, body, &mut subst, rewriter)
}

fn rewrite_region(
    func: &mut Function,
    region: Region,
    subst: &mut SecondaryMap<Value, Option<Value>>,
    rewriter: &mut dyn Rewriter,
) -> bool {
    // Remaining instructions are appended to the region again, one after the other.
    let insts = std::mem::take(&mut func.regions[region].insts);
    let mut changed = false;
    for inst in insts {
        func.insts[inst].op.map_operands(|v| subst[v].unwrap_or(v));
        let written = func.regions[region].insts.len();
        let mut before = Builder::new(func, region);
        before.span = before.func.insts[inst].span;
        let answer = rewriter.visit(&mut before, inst);
        changed |= func.regions[region].insts.len() != written;
        match answer {
            Rewrite::Keep => {
                func.regions[region].insts.push(inst);
                for owned in func.owned(inst) {
                    rewriter.enter(func, inst);
                    changed |= rewrite_region(func, owned, subst, rewriter);
                    rewriter.leave();
                }
            }
            Rewrite::Splice(owned) => {
                changed = true;
                rewrite_region(func, owned, subst, rewriter);
                let mut insts = std::mem::take(&mut func.regions[owned].insts);
                let end = insts.pop().expect("a region ends in a terminator");
                func.regions[region].insts.append(&mut insts);
                let Op::Yield { values } = func[end].clone() else {
                    unreachable!("a spliced region yields")
                };
                for (&old, new) in func.insts[inst].results.clone().iter().zip(values) {
                    subst[old] = Some(new);
                }
            }
            Rewrite::Replace(values) => {
                changed = true;
                let results = func.insts[inst].results.clone();
                assert_eq!(results.len(), values.len(), "one value for each result");
                for (old, new) in results.into_iter().zip(values) {
                    subst[old] = Some(subst[new].unwrap_or(new));
                }
            }
        }
    }
    changed
}

/// Copies the instructions of `region` of `source` to the end of `target`'s region `into`, its
/// terminator excepted, and returns what it yields. `map` holds the values that stand for those
/// defined outside `region` (its parameters too) and receives those defined inside.
///
/// # Panics
/// If `region` does not end in `yield`, or uses a value that `map` lacks.
pub fn import_region(
    target: &mut Function,
    into: Region,
    source: &Function,
    region: Region,
    map: &mut SecondaryMap<Value, Option<Value>>,
    span: Span,
) -> Vec<Value> {
    let insts = &source.regions[region].insts;
    let (&end, insts) = insts.split_last().expect("a region ends in a terminator");
    for &inst in insts {
        let copy = import_inst(target, source, inst, map, span);
        target.regions[into].insts.push(copy);
    }
    let Op::Yield { values } = &source[end] else {
        unreachable!("an imported region yields")
    };
    values
        .iter()
        .map(|&v| map[v].expect("the value is mapped"))
        .collect()
}

/// A copy of a region in the same function. Values from outside are the same there.
pub fn copy_region(func: &mut Function, region: Region) -> Region {
    copy_region_with(func, region, &mut LookupMap::default())
}

fn copy_region_with(
    func: &mut Function,
    region: Region,
    copies: &mut LookupMap<Value, Value>,
) -> Region {
    let copy = func.new_region(&[]);
    for old in func.regions[region].params.clone() {
        let new = func.add_param(copy, func.ty(old));
        copies.insert(old, new);
    }
    for inst in func.regions[region].insts.clone() {
        let data = &func.insts[inst];
        let (mut op, results, span) = (data.op.clone(), data.results.clone(), data.span);
        op.map_operands(|v| copies.get(&v).copied().unwrap_or(v));
        op.map_regions(|r| copy_region_with(func, r, copies));
        let types: Vec<Type> = results.iter().map(|&r| func.ty(r)).collect();
        let inst = func.new_inst(op, &types, span);
        for (old, &new) in results.into_iter().zip(&func.insts[inst].results) {
            copies.insert(old, new);
        }
        func.regions[copy].insts.push(inst);
    }
    copy
}

/// Puts a value in the place of another one, in a region and those inside.
pub fn replace_value(func: &mut Function, region: Region, old: Value, new: Value) {
    map_values(func, region, &|v| if v == old { new } else { v });
}

/// The same for several values at once: the first one of each pair is replaced by the second one.
pub fn replace_values(func: &mut Function, region: Region, pairs: &[(Value, Value)]) {
    let mut by: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
    for &(old, new) in pairs {
        by[old] = Some(new);
    }
    map_values(func, region, &|v| by[v].unwrap_or(v));
}

fn map_values(func: &mut Function, region: Region, by: &dyn Fn(Value) -> Value) {
    for inst in func.regions[region].insts.clone() {
        func.insts[inst].op.map_operands(by);
        for owned in func.owned(inst) {
            map_values(func, owned, by);
        }
    }
}

/// Copies one instruction with its regions; the copy is in no region yet. What comes from no source
/// gets `span`.
pub fn import_inst(
    target: &mut Function,
    source: &Function,
    inst: Inst,
    map: &mut SecondaryMap<Value, Option<Value>>,
    span: Span,
) -> Inst {
    let data = &source.insts[inst];
    let mut op = data.op.clone();
    op.map_operands(|v| map[v].expect("the value is mapped"));
    op.map_regions(|r| {
        let copy = target.new_region(&[]);
        for &p in &source.regions[r].params {
            map[p] = Some(target.add_param(copy, source.ty(p)));
        }
        for &i in &source.regions[r].insts {
            let i = import_inst(target, source, i, map, span);
            target.regions[copy].insts.push(i);
        }
        copy
    });
    let types: Vec<Type> = data.results.iter().map(|&r| source.ty(r)).collect();
    let copy = target.new_inst(
        op,
        &types,
        if data.span == Span::NONE {
            span
        } else {
            data.span
        },
    );
    for (&old, &new) in data.results.iter().zip(&target.insts[copy].results) {
        map[old] = Some(new);
    }
    copy
}
