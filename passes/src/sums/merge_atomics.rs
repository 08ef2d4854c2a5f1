//! Sums into neighbouring components are made together.
//!
//! ```text
//! atomic_add (child S3, v0), x        ; at bytes 0, 4, 8 and 12 of a cell
//! atomic_add (child S4, v0), y
//! atomic_add (child S5, v0), z   ==>  atomic_adds [child S3, v0; ..], [x, y, z, m]
//! atomic_add (child S6, v0), m
//! ```
//! A processor has no atomic addition of floats: it compares and swaps, which takes as long for 16
//! bytes as for 4. Where three floats lie one behind the other without a gap, as in a field of vectors,
//! every other vector begins in the middle of a word of 8 bytes; then the last two are one, else the
//! first two, so such sums are made together as well. A difference is a sum with the negated value, which rounds to the same.
//! Sums of integers are left alone, since there is an instruction for them. A sum may
//! wait for those behind it as long as nothing reads what it changes, and nothing may leave.

use aerogel_base::Span;
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::{LookupMap, LookupSet};
use aerogel_ir::analysis::access::{Class, classes, has_classes};
use aerogel_ir::{
    AtomicOp, Effect, Function, Inst, NodeOp, NodeRef, Op, Region, Type, UnaryOp, Value,
};
use aerogel_snode::NodeKind;

use crate::PassCx;

/// The most bytes that a machine changes in one step.
const WIDEST: u64 = 16;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut pass = Merge {
        cx,
        uses: func.use_counts(),
        changed: false,
    };
    let body = func.body;
    pass.region(func, body);
    pass.changed
}

struct Merge<'a> {
    cx: &'a PassCx<'a>,
    uses: SecondaryMap<Value, u32>,
    changed: bool,
}

/// A sum that waits for its neighbours.
struct Sum {
    inst: Inst,
    cell: Value,
    node: NodeRef,
    /// The component's place, and its bytes.
    at: u64,
    bytes: u64,
}

/// The deferred sums, and properties of all of them.
#[derive(Default)]
struct Waiting {
    sums: Vec<Sum>,
    places: LookupSet<(Value, u64)>,
    nodes: LookupSet<NodeRef>,
}

impl Waiting {
    fn push(&mut self, sum: Sum) {
        self.places.insert((sum.cell, sum.at));
        self.nodes.insert(sum.node);
        self.sums.push(sum);
    }
}

impl Merge<'_> {
    fn region(&mut self, func: &mut Function, region: Region) {
        let mut out = Vec::new();
        let mut waiting = Waiting::default();
        let before = std::mem::take(&mut func.regions[region].insts);
        for &inst in &before {
            if let Some(sum) = self.sum(func, inst) {
                if waiting.places.contains(&(sum.cell, sum.at)) {
                    self.flush(func, &mut waiting, &mut out);
                }
                waiting.push(sum);
                continue;
            }
            if !self.may_pass(func, inst, &waiting) {
                self.flush(func, &mut waiting, &mut out);
            }
            for owned in func.owned(inst) {
                self.region(func, owned);
            }
            out.push(inst);
        }
        self.changed |= out != before;
        func.regions[region].insts = out;
    }

    /// A sum of floats into a component of a cell, or a difference, of which nobody wants the old value.
    fn sum(&self, func: &Function, inst: Inst) -> Option<Sum> {
        let Op::Atomic {
            op: AtomicOp::Add | AtomicOp::Sub,
            place,
            ..
        } = func[inst]
        else {
            return None;
        };
        let &Op::Node(NodeOp::Child { node, cell }) = func.def_op(place)? else {
            return None;
        };
        let data = &self.cx.env.trees[node.tree][node.node];
        let NodeKind::Place(ty) = data.kind else {
            return None;
        };
        let unused = func.insts[inst].results.iter().all(|&r| self.uses[r] == 0);
        (unused && ty.is_float() && ty.bytes() >= 4).then_some(Sum {
            inst,
            cell,
            node,
            at: data.offset_in_cell,
            bytes: u64::from(ty.bytes()),
        })
    }

    /// Whether an instruction may come before the sums that wait.
    fn may_pass(&self, func: &Function, inst: Inst, waiting: &Waiting) -> bool {
        if waiting.sums.is_empty() {
            return true;
        }
        let op = &func[inst];
        let place = match *op {
            Op::Load { place } | Op::Store { place, .. } | Op::Atomic { place, .. } => place,
            _ => return matches!(op.effect(), Effect::Pure | Effect::Allocates),
        };
        has_classes(func, place)
            && classes(func, self.cx.env, place)
                .iter()
                .all(|class| !matches!(class, Class::Place(node) if waiting.nodes.contains(node)))
    }

    fn flush(&mut self, func: &mut Function, waiting: &mut Waiting, out: &mut Vec<Inst>) {
        // Those of one cell together, the cells in the order of their first sums.
        let mut cells: Vec<Vec<Sum>> = Vec::new();
        let mut numbers: LookupMap<Value, usize> = LookupMap::default();
        for sum in std::mem::take(waiting).sums {
            match numbers.get(&sum.cell) {
                Some(&number) => cells[number].push(sum),
                None => {
                    numbers.insert(sum.cell, cells.len());
                    cells.push(vec![sum]);
                }
            }
        }
        for mut same in cells {
            same.sort_by_key(|s| s.at);
            let mut rest = &same[..];
            while !rest.is_empty() {
                let n = self.run_of(func, rest);
                if n == 1 {
                    out.push(rest[0].inst);
                } else {
                    self.merge(func, &rest[..n], out);
                }
                rest = &rest[n..];
            }
        }
    }

    /// How many sums, from the first on, are made together: those that fill an aligned word, or an
    /// odd number where words begin at the first or at the second.
    fn run_of(&self, func: &Function, sums: &[Sum]) -> usize {
        let first = &sums[0];
        let Type::Cell(tree, node) = func.ty(first.cell) else {
            return 1;
        };
        let align = self.cx.env.trees[tree].cell_align(node);
        let in_a_row = sums
            .iter()
            .enumerate()
            .take_while(|&(k, s)| {
                s.bytes == first.bytes && s.at == first.at + k as u64 * first.bytes
            })
            .count();
        let mut width = WIDEST;
        while width > first.bytes {
            let n = (width / first.bytes) as usize;
            if align >= width && first.at.is_multiple_of(width) && in_a_row >= n {
                return n;
            }
            width /= 2;
        }
        let odd = in_a_row - (in_a_row + 1) % 2;
        if first.bytes == 4 && align == 4 && odd >= 3 {
            odd
        } else {
            1
        }
    }

    fn merge(&mut self, func: &mut Function, sums: &[Sum], out: &mut Vec<Inst>) {
        self.changed = true;
        let (mut places, mut values) = (Vec::new(), Vec::new());
        for sum in sums {
            let Op::Atomic { op, place, value } = func[sum.inst] else {
                unreachable!("sums are atomic")
            };
            places.push(place);
            values.push(match op {
                AtomicOp::Sub => negated(func, value, func.insts[sum.inst].span, out),
                _ => value,
            });
        }
        let span = func.insts[sums[0].inst].span;
        out.push(func.new_inst(Op::AtomicAdds { places, values }, &[], span));
    }
}

/// The negated value, computed by a new instruction at the end of `out`.
fn negated(func: &mut Function, x: Value, span: Span, out: &mut Vec<Inst>) -> Value {
    let (op, ty) = (UnaryOp::Neg, func.ty(x));
    let inst = func.new_inst(Op::Unary { op, x }, &[ty], span);
    out.push(inst);
    func.insts[inst].results[0]
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn differences_are_sums_of_negated_values() {
        check_pass!("merge_atomics", "
            tree0 { dense i:8 { place a: f32, place b: f32 } }
            func @f(v0: i64, v1: f32, v2: f32) {
                v3: cell<tree0.S0> = root tree0
                v4: container<tree0.S1> = child tree0.S1, v3
                v5: cell<tree0.S1> = lookup tree0.S1, v4, v0
                v6: ref<f32> = child tree0.S2, v5
                v7: ref<f32> = child tree0.S3, v5
                v8: f32 = atomic_sub v6, v1
                v9: f32 = atomic_add v7, v2
                yield []
            }", @"
        func @f(v0: i64, v1: f32, v2: f32) {
            v3: cell<tree0.S0> = root tree0
            v4: container<tree0.S1> = child tree0.S1, v3
            v5: cell<tree0.S1> = lookup tree0.S1, v4, v0
            v6: ref<f32> = child tree0.S2, v5
            v7: ref<f32> = child tree0.S3, v5
            v8: f32 = neg v1
            atomic_adds [v6, v7], [v8, v2]
            yield []
        }
        ");
    }

    #[test]
    fn a_cell_of_sixteen_bytes() {
        check_pass!("merge_atomics", "
            tree0 { dense i:8 { place a: f32, place b: f32, place c: f32, place m: f32 } }
            func @f(v0: i64) {
                v1: cell<tree0.S0> = root tree0
                v2: container<tree0.S1> = child tree0.S1, v1
                v3: cell<tree0.S1> = lookup tree0.S1, v2, v0
                v4: f32 = const 2.0
                v5: ref<f32> = child tree0.S2, v3
                v6: ref<f32> = child tree0.S3, v3
                v7: ref<f32> = child tree0.S4, v3
                v8: ref<f32> = child tree0.S5, v3
                v9: f32 = atomic_add v8, v4
                v10: f32 = atomic_add v5, v4
                v11: f32 = atomic_add v6, v4
                v12: f32 = mul v4, v4
                v13: f32 = atomic_add v7, v12
                yield []
            }", @"
            func @f(v0: i64) {
                v1: cell<tree0.S0> = root tree0
                v2: container<tree0.S1> = child tree0.S1, v1
                v3: cell<tree0.S1> = lookup tree0.S1, v2, v0
                v4: f32 = const 2.0
                v5: ref<f32> = child tree0.S2, v3
                v6: ref<f32> = child tree0.S3, v3
                v7: ref<f32> = child tree0.S4, v3
                v8: ref<f32> = child tree0.S5, v3
                v9: f32 = mul v4, v4
                atomic_adds [v5, v6, v7, v8], [v4, v4, v9, v4]
                yield []
            }
            ");
    }

    #[test]
    fn vectors_of_three() {
        check_pass!("merge_atomics", "
            tree0 { dense i:8 { place a: f32, place b: f32, place c: f32 } }
            func @f(v0: i64) {
                v1: cell<tree0.S0> = root tree0
                v2: container<tree0.S1> = child tree0.S1, v1
                v3: cell<tree0.S1> = lookup tree0.S1, v2, v0
                v4: f32 = const 2.0
                v5: ref<f32> = child tree0.S2, v3
                v6: ref<f32> = child tree0.S3, v3
                v7: ref<f32> = child tree0.S4, v3
                v8: f32 = atomic_add v5, v4
                v9: f32 = atomic_add v6, v4
                v10: f32 = atomic_add v7, v4
                yield []
            }", @"
            func @f(v0: i64) {
                v1: cell<tree0.S0> = root tree0
                v2: container<tree0.S1> = child tree0.S1, v1
                v3: cell<tree0.S1> = lookup tree0.S1, v2, v0
                v4: f32 = const 2.0
                v5: ref<f32> = child tree0.S2, v3
                v6: ref<f32> = child tree0.S3, v3
                v7: ref<f32> = child tree0.S4, v3
                atomic_adds [v5, v6, v7], [v4, v4, v4]
                yield []
            }
            ");
    }

    #[test]
    fn what_is_read_in_between_and_what_is_not_aligned() {
        check_pass!("merge_atomics", "
            tree0 { place a: f32, place b: f32, place c: f32, place d: f64 }
            func @f() {
                v1: cell<tree0.S0> = root tree0
                v4: f32 = const 2.0
                v5: ref<f32> = child tree0.S1, v1
                v6: ref<f32> = child tree0.S2, v1
                v7: ref<f32> = child tree0.S3, v1
                v10: f32 = atomic_add v5, v4
                v11: f32 = load v5
                v12: f32 = atomic_add v6, v11
                v13: f32 = atomic_add v7, v4
                v14: f32 = atomic_add v5, v4
                v15: f32 = atomic_add v6, v4
                yield []
            }", @"
            func @f() {
                v0: cell<tree0.S0> = root tree0
                v1: f32 = const 2.0
                v2: ref<f32> = child tree0.S1, v0
                v3: ref<f32> = child tree0.S2, v0
                v4: ref<f32> = child tree0.S3, v0
                v5: f32 = atomic_add v2, v1
                v6: f32 = load v2
                atomic_adds [v2, v3], [v1, v6]
                v7: f32 = atomic_add v4, v1
                v8: f32 = atomic_add v3, v1
                yield []
            }
            ");
    }
}
