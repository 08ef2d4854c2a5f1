//! Which iteration of a parallel loop takes the adjoint of an extremum that all of them share: the last of those whose value
//! is the extremum, as if they had run in order.
//!
//! ```text
//!                                               parallel i { if x[i] == m { atomic_max winner, i } }
//! parallel i { atomic_max m, x[i] }     ==>     parallel i {
//!                                                   if x[i] == m and i == winner { atomic_add x.grad[i], m.grad .. }
//!                                               }
//! ```

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{AtomicOp, BinaryOp, CompareOp, Inst, Op, Region, Type, UnaryOp, Value, walk};

use super::reverse::Reverse;

impl Reverse<'_, '_> {
    /// Writes the loop that finds the winners of a parallel loop's extrema.
    pub(super) fn find_winners(&mut self, op: &Op, body: Region, types: &[Type]) {
        let mut found = Vec::new();
        for &region in &self.cx.nesting.regions {
            for &inst in &self.cx.func.regions[region].insts {
                if let Op::Atomic {
                    op: AtomicOp::Min | AtomicOp::Max,
                    place,
                    ..
                } = self.cx.func[inst]
                    && self.demand.works(inst)
                    && self.cx.is_won(region, place)
                {
                    found.push(inst);
                }
            }
        }
        let mut inside = Vec::new();
        walk(self.cx.func, body, &mut |_, inst| {
            if found.contains(&inst) {
                inside.push(inst);
            }
        });
        if inside.is_empty() {
            return;
        }
        let nobody = Scalar::int(ScalarType::I64, i128::from(i64::MIN));
        let nobody = self.b.constant(nobody);
        for inst in inside {
            let winner = self.b.local(Type::I64);
            self.b.store(winner, nobody);
            self.winners.insert(inst, winner);
        }
        let params = self.cx.func.regions[body].params.clone();
        let finding = self.inside(types, |pass, counters| {
            pass.set(&params, counters);
            pass.number = Some(pass.number_of(op, counters));
            pass.finds = true;
            pass.forwards(body, false);
            pass.finds = false;
        });
        let finding = self.parallel_over(op.clone(), finding);
        self.b.effect(finding);
    }

    /// Notes the iteration, if its value is the result.
    pub(super) fn find(&mut self, inst: Inst) {
        let (Some(&winner), Some(number)) = (self.winners.get(&inst), self.number) else {
            return;
        };
        let Op::Atomic { place, value, .. } = self.cx.func[inst] else {
            unreachable!("winners are of extrema")
        };
        let (place, value) = (self.now(place), self.now(value));
        let there = self.b.load(place);
        let (is_near, rank) = self.rank(value, there, number);
        let then = self.inside(&[], |pass, _| {
            let op = Op::Atomic {
                op: AtomicOp::Max,
                place: winner,
                value: rank,
            };
            pass.b.value(op, Type::I64);
        });
        let otherwise = self.b.region(&[], |_, _| ());
        self.b.effect(Op::If {
            cond: is_near,
            then,
            otherwise,
        });
    }

    /// Whether the iteration that is reversed has the adjoint of an extremum.
    pub(super) fn has_won(&mut self, inst: Inst, mine: Value, there: Value) -> Value {
        let winner = self.winners.get(&inst).copied();
        let winner = winner.expect("extrema that are not won are replayed");
        let number = self.number.expect("loops with winners have numbers");
        let (is_near, rank) = self.rank(mine, there, number);
        let winner = self.b.load(winner);
        let is_last = self.b.compare(CompareOp::Eq, winner, rank);
        self.b.binary(BinaryOp::And, is_near, is_last)
    }

    /// Whether the value of an iteration, which is computed once more, is the extremum but for rounding; and its rank among
    /// those of which that holds: the last one wins, and those that are exactly equal come before all others.
    fn rank(&mut self, mine: Value, there: Value, number: Value) -> (Value, Value) {
        let ty = self.b.func.elem(mine);
        let ulps = match ty {
            ScalarType::F64 => (-46_f64).exp2(),
            ScalarType::F32 => (-20_f64).exp2(),
            _ => (-9_f64).exp2(),
        };
        let b = &mut self.b;
        let is_equal = b.compare(CompareOp::Eq, mine, there);
        let distance = b.binary(BinaryOp::Sub, mine, there);
        let distance = b.unary(UnaryOp::Abs, distance);
        let size = b.unary(UnaryOp::Abs, there);
        let ulps = b.constant(Scalar::float(ty, ulps));
        let most = b.binary(BinaryOp::Mul, size, ulps);
        let is_close = b.compare(CompareOp::Le, distance, most);
        let is_near = b.binary(BinaryOp::Or, is_equal, is_close);
        let first = b.constant(Scalar::int(ScalarType::I64, 1 << 62));
        let before = b.binary(BinaryOp::Add, number, first);
        (is_near, b.select(is_equal, before, number))
    }

    /// The number of an iteration, row by row; of a cell as if all were there.
    pub(super) fn number_of(&mut self, op: &Op, counters: &[Value]) -> Value {
        let shape = match op {
            Op::ParallelCells { node, .. } => self.cx.env.trees[node.tree].shape(node.node),
            _ => Vec::new(),
        };
        let mut number = self.b.constant(Scalar::zero(ScalarType::I64));
        for (k, &counter) in counters.iter().enumerate() {
            let counter = self.b.cast(counter, Type::I64);
            let extent = match op {
                Op::Parallel { lo, hi, .. } => {
                    let [lo, hi] = [lo[k], hi[k]].map(|v| {
                        let v = self.now(v);
                        self.b.cast(v, Type::I64)
                    });
                    self.b.binary(BinaryOp::Sub, hi, lo)
                }
                _ => {
                    let extent = Scalar::int(ScalarType::I64, i128::from(shape[k]));
                    self.b.constant(extent)
                }
            };
            let before = self.b.binary(BinaryOp::Mul, number, extent);
            number = self.b.binary(BinaryOp::Add, before, counter);
        }
        number
    }
}
