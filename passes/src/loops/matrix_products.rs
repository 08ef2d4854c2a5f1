//! Sums of products become products of matrices in tiles.
//!
//! ```text
//! parallel [0, 0], [n, m] (i, j) {
//!     s = for k in 0..l [0] (s) { yield [s + a[i, k] * b[k, j]] }
//!     c[i, j] = s
//! }
//! ```
//! becomes
//! ```text
//! parallel [0, 0], [n / 96, m / 256] (block i, block j) {
//!     sums = 0
//!     for 256 of k at a time {
//!         left = a[i, k]    right = b[k, j]            ; copies in the order in which they are read
//!         for each tile { tile_product left, right, sums }
//!     }
//!     for i, j in the block { c[i, j] = sums[i, j] }
//! }
//! ```
//! The sums of a tile stay in registers, and what a block reads stays in the cache, whatever the order of the loops. They
//! may stand in any order, and add to memory instead: `c[i, j] += a[i, k] * b[k, j]`, to what is cleared before or not. A factor is
//! any expression of its two counters. Each sum takes its terms in the order of `k`, so that nothing but the fusing of products
//! (`analysis::accumulations`) changes a result.
//!
//! A loop of few or unknown iterations stays as it is; where the numbers are known at run time only, one of the two runs.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::access::{Class, classes, defined_in, has_classes, is_quantised};
use aerogel_ir::analysis::affine::counted_from;
use aerogel_ir::analysis::sensitive;
use aerogel_ir::{
    AtomicOp, BinaryOp, Effect, FastMath, Function, Inst, LoopAttrs, Op, Region, Type, Value,
};

use super::elements::{element, indices, is_fixed};
use crate::PassCx;

mod blocks;
mod clearing;
#[cfg(test)]
mod tests;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    if !cx.options.private_cells {
        return false;
    }
    let mut changed = false;
    for inst in func.regions[func.body].insts.clone() {
        let Some(found) = Search::new(func, cx, inst).and_then(Search::product) else {
            continue;
        };
        let Some(all_of_it) = blocks::write(func, inst, &found, cx.options.n_threads) else {
            continue;
        };
        changed = true;
        // What clears all sums before is not needed if they always begin in blocks.
        if let Some(clearing) = found.clearing.filter(|_| all_of_it) {
            let body = func.body;
            func.regions[body].insts.retain(|&i| i != clearing);
        }
    }
    changed
}

/// A counter of a nest of loops.
#[derive(Clone, Copy)]
struct Axis {
    counter: Value,
    ends: [End; 2],
}

/// Where a loop begins or ends.
#[derive(Clone, Copy)]
enum End {
    Value(Value),
    Const(i32),
}

impl End {
    fn constant(self, func: &Function) -> Option<i128> {
        match self {
            Self::Value(value) => Some(func.as_const(value)?.as_i128()),
            Self::Const(number) => Some(i128::from(number)),
        }
    }

    fn is(self, func: &Function, other: Self) -> bool {
        match (self, other) {
            (Self::Value(a), Self::Value(b)) if a == b => true,
            _ => {
                let number = self.constant(func);
                number.is_some() && number == other.constant(func)
            }
        }
    }
}

/// A nest of loops that makes sums of products.
struct Product {
    axes: Vec<Axis>,
    /// The axes of the left factor and the sums, of the right one and the sums, and of both factors.
    row: usize,
    column: usize,
    inner: usize,
    factors: [Value; 2],
    /// The axis along which each factor lies in memory.
    along: [usize; 2],
    ty: ScalarType,
    fused: bool,
    attrs: LoopAttrs,
    sums: Sums,
    /// The loop before that clears all sums.
    clearing: Option<Inst>,
    /// What is made in the nest.
    inside: SecondaryMap<Value, bool>,
}

/// Where the sums begin, and what becomes of them.
enum Sums {
    /// A loop carries each of them, in a region.
    Carried { region: Region, at: Inst },
    /// They are added to memory, which holds a constant before if it was cleared.
    Memory {
        place: Value,
        cleared: Option<Scalar>,
    },
}

/// A search for a product in a loop.
struct Search<'a> {
    func: &'a Function,
    cx: &'a PassCx<'a>,
    inst: Inst,
    axes: Vec<Axis>,
    attrs: LoopAttrs,
    body: Region,
    inside: SecondaryMap<Value, bool>,
    /// Writing instructions before the remaining loop; and the number of axes around them.
    writes: Vec<(Inst, usize)>,
    /// How often values are used in the nest.
    uses: SecondaryMap<Value, u32>,
}

/// A sum that was found at the inside of a nest.
struct Leaf {
    product: Inst,
    factors: [Value; 2],
    sums: Sums,
}

impl<'a> Search<'a> {
    fn new(func: &'a Function, cx: &'a PassCx<'a>, inst: Inst) -> Option<Self> {
        let (ends, attrs, body): (Vec<[End; 2]>, _, _) = match &func[inst] {
            Op::Parallel {
                lo,
                hi,
                attrs,
                body,
            } => {
                let ends = lo.iter().zip(hi);
                let ends = ends.map(|(&lo, &hi)| [lo, hi].map(End::Value));
                (ends.collect(), *attrs, *body)
            }
            &Op::ParallelCells { node, attrs, body } => {
                let tree = &cx.env.trees[node.tree];
                if tree.is_below_sparse(node.node) {
                    return None;
                }
                let n = func.regions[body].params.len();
                let mut ends = vec![None; n];
                for axis in tree.loop_axes(node.node, attrs.serial) {
                    if axis.divisor != 1 || ends[axis.index].is_some() {
                        return None;
                    }
                    let extent = i32::try_from(axis.extent).ok()?;
                    ends[axis.index] = Some([End::Const(0), End::Const(extent)]);
                }
                (ends.into_iter().collect::<Option<Vec<_>>>()?, attrs, body)
            }
            _ => return None,
        };
        let mut search = Self {
            func,
            cx,
            inst,
            axes: Vec::new(),
            attrs,
            body,
            inside: SecondaryMap::new(),
            writes: Vec::new(),
            uses: SecondaryMap::new(),
        };
        for (&counter, ends) in func.regions[body].params.iter().zip(ends) {
            search.axes.push(Axis { counter, ends });
        }
        Some(search)
    }

    /// The product that the loop is, if it is one.
    fn product(mut self) -> Option<Product> {
        let leaf = self.leaf()?;
        let func = self.func;
        let fits = |axis: &Axis| {
            let known = |end: End| match end {
                End::Value(value) => !self.inside[value] || self.is_fixed(value),
                End::Const(_) => true,
            };
            func.ty(axis.counter) == Type::I32 && axis.ends.into_iter().all(known)
        };
        let ty = func.elem(leaf.factors[0]);
        let is_float = matches!(ty, ScalarType::F32 | ScalarType::F64);
        if !is_float || self.axes.len() < 3 || !self.axes.iter().all(fits) {
            return None;
        }
        let written = self.written(&leaf)?;
        let mut bits = leaf.factors.iter().map(|&f| self.axes_of(f, &written));
        let [x, y] = [bits.next()??, bits.next()??];
        let all = (1_u32 << self.axes.len()) - 1;
        let (kept, fastest) = match &leaf.sums {
            Sums::Carried { .. } => (all >> 1, self.fastest_of_stores()),
            &Sums::Memory { place, .. } => (self.own(place)?, self.fastest(place)),
        };
        let inner = all & !kept;
        let [left, right] = [x & !y, y & !x];
        let single = |bits: u32| (bits.count_ones() == 1).then(|| bits.trailing_zeros() as usize);
        let inner = single(inner).filter(|_| x & y & inner == inner)?;
        let (left, right) = (single(left)?, single(right)?);
        let batch = kept & !(1 << left | 1 << right);
        if batch & x & y != batch || x | y != all {
            return None;
        }
        // Columns lie side by side.
        let is_swapped = fastest == Some(left);
        let (row, column, mut factors) = (left, right, leaf.factors);
        let (row, column) = match is_swapped {
            true => {
                factors.reverse();
                (column, row)
            }
            false => (row, column),
        };
        let (sums, clearing) = self.cleared_before(self.cleared(leaf.sums, kept)?);
        let along = [(0, row), (1, column)].map(|(k, axis)| match self.runs_along(factors[k]) {
            Some(found) if found == inner => inner,
            _ => axis,
        });
        let level = self.attrs.fast_math.unwrap_or(self.cx.env.fast_math);
        let first = match &sums {
            Sums::Carried { at, .. } => match &func[*at] {
                Op::For { init, .. } => func.as_const(init[0]),
                _ => None,
            },
            Sums::Memory { cleared, .. } => *cleared,
        };
        let from_zero = first.is_some_and(Scalar::is_zero);
        let fused = match level {
            FastMath::Off => false,
            FastMath::Full => true,
            FastMath::Accumulations => {
                from_zero
                    && factors[0] != factors[1]
                    && !sensitive(func, self.cx.env, &SecondaryMap::new())[leaf.product]
            }
        };
        Some(Product {
            row,
            column,
            inner,
            factors,
            along,
            ty,
            fused,
            attrs: self.attrs,
            sums,
            clearing,
            axes: self.axes,
            inside: self.inside,
        })
    }

    /// Goes into the nest.
    fn leaf(&mut self) -> Option<Leaf> {
        let func = self.func;
        defined_in(func, self.body, &mut self.inside);
        aerogel_ir::walk(func, self.body, &mut |func, inst| {
            func[inst].operands(|v| self.uses[v] += 1);
        });
        let mut region = self.body;
        loop {
            let (&end, insts) = func.regions[region].insts.split_last()?;
            match &func[end] {
                Op::Yield { values } if values.is_empty() => {}
                _ => return None,
            }
            let is_loop = |inst: &Inst| matches!(func[*inst], Op::For { .. });
            let Some(at) = insts.iter().rposition(is_loop) else {
                return self.memory_leaf(insts);
            };
            let Op::For {
                lo,
                hi,
                step,
                ref init,
                body,
            } = func[insts[at]]
            else {
                unreachable!("it was found as one")
            };
            if !func.as_const(step)?.is_one() {
                return None;
            }
            let depth = self.axes.len();
            let carries = init.len() == 1;
            for (k, &inst) in insts.iter().enumerate() {
                match func[inst] {
                    _ if k == at || is_plain(&func[inst]) => {}
                    Op::Store { .. } if carries => {}
                    Op::Store { .. } | Op::For { .. } if k < at && !carries => {
                        self.writes.push((inst, depth));
                    }
                    _ => return None,
                }
            }
            self.axes.push(Axis {
                counter: func.regions[body].params[0],
                ends: [lo, hi].map(End::Value),
            });
            match init.len() {
                0 => region = body,
                1 => return self.carried_leaf(region, insts[at], body),
                _ => return None,
            }
        }
    }

    /// A loop that carries a sum of products.
    fn carried_leaf(&self, region: Region, at: Inst, body: Region) -> Option<Leaf> {
        let func = self.func;
        let insts = &func.regions[body].insts;
        let (_, insts) = insts.split_last()?;
        let (&[value], &[_, sum]) = (func.yielded(body)?, &func.regions[body].params[..]) else {
            return None;
        };
        if !self.writes.is_empty() || !insts.iter().all(|&inst| is_plain(&func[inst])) {
            return None;
        }
        let (product, factors) = self.step(value, |v| v == sum)?;
        (self.uses[sum] == 1 && self.uses[value] == 1).then_some(Leaf {
            product,
            factors,
            sums: Sums::Carried { region, at },
        })
    }

    /// A product that is added to memory.
    fn memory_leaf(&self, insts: &[Inst]) -> Option<Leaf> {
        let func = self.func;
        let (&last, before) = insts.split_last()?;
        if !before.iter().all(|&inst| is_plain(&func[inst])) {
            return None;
        }
        let (place, (product, factors)) = match func[last] {
            Op::Atomic {
                op: AtomicOp::Add,
                place,
                value,
            } if self.uses[func.insts[last].results[0]] == 0 => (place, self.factors(value)?),
            Op::Store { place, value } => {
                let is_old = |v: Value| {
                    matches!(func.def_op(v), Some(&Op::Load { place: from }) if from == place)
                        && self.uses[v] == 1
                };
                let found = self.step(value, is_old)?;
                (place, (self.uses[value] == 1).then_some(found)?)
            }
            _ => return None,
        };
        let is_element = matches!(
            func.def_op(place),
            Some(Op::FieldAt { .. } | Op::ArrayAt { .. })
        );
        (is_element && !is_quantised(func, self.cx.env, place)).then_some(Leaf {
            product,
            factors,
            sums: Sums::Memory {
                place,
                cleared: None,
            },
        })
    }

    /// The product that a step adds to a sum.
    fn step(&self, value: Value, is_sum: impl Fn(Value) -> bool) -> Option<(Inst, [Value; 2])> {
        let &Op::Binary {
            op: BinaryOp::Add,
            lhs,
            rhs,
        } = self.func.def_op(value)?
        else {
            return None;
        };
        match (is_sum(lhs), is_sum(rhs)) {
            (true, false) => self.factors(rhs),
            (false, true) => self.factors(lhs),
            _ => None,
        }
    }

    fn factors(&self, value: Value) -> Option<(Inst, [Value; 2])> {
        let inst = self.func.def(value)?;
        match self.func[inst] {
            Op::Binary {
                op: BinaryOp::Mul,
                lhs,
                rhs,
            } if self.uses[value] == 1 && self.inside[value] => Some((inst, [lhs, rhs])),
            _ => None,
        }
    }

    /// The classes that the nest writes; nothing if iterations affect each other.
    fn written(&self, leaf: &Leaf) -> Option<Vec<Class>> {
        let (func, env) = (self.func, self.cx.env);
        let mut written: Vec<(Class, Vec<Value>)> = Vec::new();
        match leaf.sums {
            Sums::Memory { place, .. } => {
                if !has_classes(func, place) {
                    return None;
                }
                return Some(classes(func, env, place));
            }
            Sums::Carried { region, .. } => {
                let insts = &func.regions[region].insts;
                for &inst in insts {
                    let Op::Store { place, .. } = func[inst] else {
                        continue;
                    };
                    let indices = indices(func, element(func, place)?)?;
                    let counted: Vec<Value> = indices
                        .iter()
                        .map(|&index| counted_from(func, index).0)
                        .collect();
                    let (_, outer) = self.axes.split_last()?;
                    if !outer.iter().all(|axis| counted.contains(&axis.counter))
                        || !has_classes(func, place)
                    {
                        return None;
                    }
                    for class in classes(func, env, place) {
                        written.push((class, indices.to_vec()));
                    }
                }
                // Another element of what is written may be that of another iteration.
                let is_apart = |place: Value| {
                    let at = element(func, place).and_then(|e| indices(func, e));
                    let all = classes(func, env, place);
                    written
                        .iter()
                        .all(|(class, own)| !all.contains(class) || at == Some(&own[..]))
                };
                for &inst in insts {
                    let place = match func[inst] {
                        Op::Load { place } | Op::Store { place, .. } => place,
                        _ => continue,
                    };
                    if !has_classes(func, place) || !is_apart(place) {
                        return None;
                    }
                }
            }
        }
        Some(written.into_iter().map(|(class, _)| class).collect())
    }

    /// The axes that a value depends on, a bit for each; nothing if it depends on what the nest writes, or on a sum.
    fn axes_of(&self, value: Value, written: &[Class]) -> Option<u32> {
        if !self.inside[value] {
            return Some(0);
        }
        if let Some(k) = self.axes.iter().position(|axis| axis.counter == value) {
            return Some(1 << k);
        }
        let func = self.func;
        let op = func.def_op(value)?;
        if let Op::Load { place } = *op {
            let is_written = |place: Value| {
                classes(func, self.cx.env, place)
                    .iter()
                    .any(|c| written.contains(c))
            };
            if !has_classes(func, place) || is_written(place) {
                return None;
            }
        }
        if !is_plain(op) {
            return None;
        }
        let mut bits = Some(0);
        op.operands(|v| {
            let of = self.axes_of(v, written);
            bits = bits.zip(of).map(|(a, b)| a | b);
        });
        bits
    }

    fn is_fixed(&self, value: Value) -> bool {
        is_fixed(self.func, &self.inside, value)
    }

    /// The axes that count the indices of an element, each one of them, if all others are fixed.
    fn own(&self, place: Value) -> Option<u32> {
        let mut own = 0;
        for &index in indices(self.func, place)? {
            let (from, _) = counted_from(self.func, index);
            match self.axes.iter().position(|axis| axis.counter == from) {
                Some(k) if own & 1 << k != 0 => return None,
                Some(k) => own |= 1 << k,
                None if self.is_fixed(index) => {}
                None => return None,
            }
        }
        Some(own)
    }

    /// The axis whose neighbours lie side by side in memory.
    fn fastest(&self, place: Value) -> Option<usize> {
        let at = indices(self.func, place)?;
        let index = match self.func.def_op(place)? {
            Op::ArrayAt { .. } => *at.last()?,
            Op::FieldAt { field, .. } => {
                let field = &self.cx.env.fields[*field];
                let path = self.cx.env.trees[field.tree].path(*field.places.first()?);
                let mut axes = path.levels.iter().flat_map(|level| &level.axes);
                at[axes.rfind(|axis| axis.extent > 1)?.index]
            }
            _ => return None,
        };
        let (from, _) = counted_from(self.func, index);
        self.axes.iter().position(|axis| axis.counter == from)
    }

    /// The same for what is stored where the sums are carried.
    fn fastest_of_stores(&self) -> Option<usize> {
        let mut found = None;
        aerogel_ir::walk(self.func, self.body, &mut |func, inst| {
            if let Op::Store { place, .. } = func[inst]
                && let Some(element) = element(func, place)
            {
                found = found.or(self.fastest(element));
            }
        });
        found
    }

    /// The axis along which what a factor reads lies in memory.
    fn runs_along(&self, value: Value) -> Option<usize> {
        let func = self.func;
        match func.def_op(value)? {
            _ if !self.inside[value] => None,
            &Op::Load { place } => self.fastest(element(func, place)?),
            op => {
                let mut found = None;
                op.operands(|v| found = found.or_else(|| self.runs_along(v)));
                found
            }
        }
    }
}

/// Whether an instruction only computes or reads.
fn is_plain(op: &Op) -> bool {
    op.effect() == Effect::Pure || matches!(op, Op::Load { .. })
}
