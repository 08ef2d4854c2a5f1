//! Which float operations accumulate: sums, minima and maxima that a loop carries or that parallel iterations make.
//!
//! ```text
//! v4 = for lo, hi, step, [v0] (v5: i32, v6: f32) {
//!     v7 = load (child S1, v5)
//!     v8 = mul v7, v1         fuse
//!     v9 = add v6, v8         regroup, fuse
//!     yield [v9]
//! }
//! ```
//! A variable accumulates if a loop only adds to it (or only takes minima, or maxima) and reads it nowhere else. The order
//! of its terms is unobservable then, other than in the last digits of the result, so that the terms may be regrouped.
//! Products keep their order: partial products overflow in another order where the program's do not.
//!
//! A product may be fused into a sum that begins at zero, which rounds once instead of twice, unless the result reaches an
//! operation that could turn those digits into another sign, an infinity or a NaN: a comparison, a conversion to an
//! integer, a difference, a divisor, a square root (`exact::sensitive`). The variance `q / n - m * m` is an example: of equal
//! numbers it is 0 if all is rounded as written, and may be negative if the sum of squares `q` is fused. Squares are never
//! fused, since the difference may be taken by another kernel.

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupSet;

use super::exact::{exits_of, local, sensitive};
use crate::{AtomicOp, BinaryOp, Env, Function, Inst, Op, Region, Value, walk};

/// The freedoms of float operations of a region: regrouping and fusing.
#[derive(Clone, Debug, Default)]
pub struct Accumulations {
    /// Steps of accumulations whose order is free.
    pub regroup: SecondaryMap<Inst, bool>,
    /// Products that may be fused into the sums that use them, and those sums.
    pub fuse: SecondaryMap<Inst, bool>,
}

/// The accumulations of a function: those of parallel iterations, whose order is not fixed unless results shall repeat, and
/// with `of_loops` those that loops carry.
pub fn accumulations(func: &Function, env: &Env, of_loops: bool) -> Accumulations {
    let mut search = Search {
        func,
        users: SecondaryMap::new(),
        found: Accumulations::default(),
        sums: Vec::new(),
        free: SecondaryMap::new(),
    };
    let (mut loops, mut tasks) = (Vec::new(), Vec::new());
    let mut is_float = false;
    walk(func, func.body, &mut |func, inst| {
        func[inst].operands(|v| search.users[v].push(inst));
        match func[inst] {
            Op::For { .. } | Op::While { .. } => loops.push(inst),
            Op::Task { attrs, body, .. } if !attrs.serial => tasks.push(body),
            Op::Binary { lhs, .. } => is_float |= is_float_scalar(func, lhs),
            Op::MulAdd { .. } => is_float = true,
            _ => {}
        }
    });
    if !is_float {
        return search.found;
    }
    // How many terms are added at once depends on the processor.
    if of_loops || !env.deterministic {
        tasks.into_iter().for_each(|task| search.parallel(task));
    }
    if of_loops {
        for inst in loops {
            search.carried(inst);
        }
        walk(func, func.body, &mut |_, inst| search.written_out(inst));
        search.fuse(env);
    }
    search.found
}

fn is_float_scalar(func: &Function, value: Value) -> bool {
    func.ty(value).scalar().is_some_and(ScalarType::is_float)
}

/// The kind of an accumulation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sum,
    Min,
    Max,
}

impl Kind {
    fn of(op: BinaryOp) -> Option<Self> {
        match op {
            BinaryOp::Add | BinaryOp::Sub => Some(Self::Sum),
            BinaryOp::Min => Some(Self::Min),
            BinaryOp::Max => Some(Self::Max),
            _ => None,
        }
    }
}

struct Search<'a> {
    func: &'a Function,
    users: SecondaryMap<Value, Vec<Inst>>,
    found: Accumulations,
    /// Steps of sums that begin at zero, with the term that each adds; of a `muladd` the term is its result.
    sums: Vec<(Inst, Value)>,
    /// Which `muladd`s are steps of such sums.
    free: SecondaryMap<Inst, bool>,
}

/// One variable that a loop carries, followed from what the loop yields back to its parameters.
#[derive(Default)]
struct Chain {
    kind: Option<Kind>,
    /// Steps, with their terms.
    steps: Vec<(Inst, Value)>,
    /// The values that the variable has.
    values: Vec<Value>,
    /// Where instructions hand the variable on: which of their operands it is.
    hands_on: Vec<(Inst, usize)>,
    seen: LookupSet<Value>,
}

impl Chain {
    /// Runs `follow`; forgets what it noted if it fails.
    fn attempt(&mut self, follow: impl FnOnce(&mut Self) -> bool) -> bool {
        let kind = self.kind;
        let lengths = [self.steps.len(), self.values.len(), self.hands_on.len()];
        let holds = follow(self);
        if !holds {
            self.kind = kind;
            self.steps.truncate(lengths[0]);
            self.values.truncate(lengths[1]);
            self.hands_on.truncate(lengths[2]);
        }
        holds
    }
}

impl Search<'_> {
    /// Finds which variables of a loop accumulate.
    fn carried(&mut self, inst: Inst) {
        let func = self.func;
        let n = func.insts[inst].results.len();
        for k in 0..n {
            if !is_float_scalar(func, func.insts[inst].results[k]) {
                continue;
            }
            let mut chain = Chain::default();
            if self.through_loop(inst, k, &mut chain) && self.is_private(&chain) {
                self.accept(inst, k, chain);
            }
        }
    }

    fn accept(&mut self, inst: Inst, k: usize, chain: Chain) {
        for &(step, _) in &chain.steps {
            self.found.regroup[step] = true;
        }
        let init = match &self.func[inst] {
            Op::For { init, .. } | Op::While { init, .. } => init[k],
            _ => return,
        };
        if chain.kind == Some(Kind::Sum) && self.is_zero(init) {
            self.sums.extend(chain.steps);
        }
    }

    fn is_zero(&self, value: Value) -> bool {
        self.func.as_const(value).is_some_and(|c| c.is_zero())
    }

    /// Follows the `k`th variable of a loop; whether it accumulates, if nothing else reads it.
    fn through_loop(&self, inst: Inst, k: usize, chain: &mut Chain) -> bool {
        let func = self.func;
        let (body, params) = match func[inst] {
            Op::For { body, .. } => (body, &func.regions[body].params[1..]),
            Op::While { body, .. } => (body, &func.regions[body].params[..]),
            _ => return false,
        };
        let param = params[k];
        chain.values.push(param);
        let mut exits = Vec::new();
        exits_of(func, body, &mut exits);
        for exit in exits {
            let values = match &func[exit] {
                Op::Yield { values } | Op::Break { values } | Op::Continue { values } => values,
                _ => return false,
            };
            let Some(&value) = values.get(k) else {
                return false;
            };
            chain.hands_on.push((exit, k));
            if !self.follow(value, param, chain) {
                return false;
            }
        }
        // A condition that reads the variable observes its order.
        match func[inst] {
            Op::While { cond, .. } => {
                let tested = func.regions[cond].params[k];
                self.users[tested].is_empty()
            }
            _ => true,
        }
    }

    /// Whether a value is `param` after steps of the chain.
    fn follow(&self, value: Value, param: Value, chain: &mut Chain) -> bool {
        let func = self.func;
        if value == param || chain.values.contains(&value) {
            return true;
        }
        if !chain.seen.insert(value) {
            return false;
        }
        let Some(inst) = func.def(value) else {
            return false;
        };
        let made = match func[inst] {
            // The product is fused with this instruction itself.
            Op::MulAdd { c, .. } => chain.attempt(|chain| {
                chain.hands_on.push((inst, 2));
                chain.steps.push((inst, value));
                chain.kind.is_none_or(|kind| kind == Kind::Sum) && {
                    chain.kind = Some(Kind::Sum);
                    self.follow(c, param, chain)
                }
            }),
            Op::Binary { op, lhs, rhs } => self.step(inst, op, [lhs, rhs], param, chain),
            Op::Select {
                on_true, on_false, ..
            } => {
                chain.hands_on.extend([(inst, 1), (inst, 2)]);
                self.follow(on_true, param, chain) && self.follow(on_false, param, chain)
            }
            Op::If {
                then, otherwise, ..
            } => self.through_branch(inst, value, [then, otherwise], param, chain),
            Op::For { ref init, .. } | Op::While { ref init, .. } => {
                let mut results = func.insts[inst].results.iter();
                let k = results.position(|&r| r == value).expect("it is a result");
                let before = match func[inst] {
                    Op::For { .. } => 3,
                    _ => 0,
                };
                chain.hands_on.push((inst, before + k));
                self.follow(init[k], param, chain) && self.through_loop(inst, k, chain)
            }
            _ => false,
        };
        if made {
            chain.values.push(value);
        }
        made
    }

    fn step(
        &self,
        inst: Inst,
        op: BinaryOp,
        [lhs, rhs]: [Value; 2],
        param: Value,
        chain: &mut Chain,
    ) -> bool {
        let Some(kind) = Kind::of(op) else {
            return false;
        };
        if chain.kind.is_some_and(|of| of != kind) {
            return false;
        }
        let sides = match op {
            BinaryOp::Sub => vec![(0, lhs, rhs)],
            _ => vec![(0, lhs, rhs), (1, rhs, lhs)],
        };
        sides.into_iter().any(|(at, value, term)| {
            chain.attempt(|chain| {
                chain.kind = Some(kind);
                chain.hands_on.push((inst, at));
                chain.steps.push((inst, term));
                self.follow(value, param, chain)
            })
        })
    }

    fn through_branch(
        &self,
        inst: Inst,
        value: Value,
        branches: [Region; 2],
        param: Value,
        chain: &mut Chain,
    ) -> bool {
        let func = self.func;
        let mut results = func.insts[inst].results.iter();
        let k = results.position(|&r| r == value).expect("it is a result");
        branches.into_iter().all(|branch| {
            // A branch without a `yield` leaves the iteration: that is an exit of the loop.
            let Some(values) = func.yielded(branch) else {
                return true;
            };
            chain.hands_on.push((func.terminator(branch), k));
            self.follow(values[k], param, chain)
        })
    }

    /// Whether nothing but the chain reads its values.
    fn is_private(&self, chain: &Chain) -> bool {
        chain.kind.is_some()
            && chain.values.iter().all(|&value| {
                self.users[value].iter().all(|&user| {
                    let mut at = 0;
                    let mut is_handed_on = true;
                    self.func[user].operands(|v| {
                        is_handed_on &= v != value || chain.hands_on.contains(&(user, at));
                        at += 1;
                    });
                    is_handed_on
                })
            })
    }

    /// Finds what the iterations of a task add to storage that outlives them.
    fn parallel(&mut self, task: Region) {
        let func = self.func;
        // That storage is made outside of the iterations.
        let mut outside = SecondaryMap::new();
        let mut iterations = Vec::new();
        for &inst in &func.regions[task].insts {
            outside[inst] = true;
            if let Op::Each { body } = func[inst] {
                iterations.push(body);
            }
        }
        for body in iterations {
            walk(func, body, &mut |_, inst| self.stored(inst, &outside));
        }
    }

    /// Notes what an instruction adds to storage made by one of the instructions `outside`.
    fn stored(&mut self, inst: Inst, outside: &SecondaryMap<Inst, bool>) {
        let func = self.func;
        let outlives = |place: Value| {
            let of = local(func, place).and_then(|local| func.def(local));
            of.is_some_and(|local| outside[local])
        };
        match func[inst] {
            Op::Atomic {
                op: AtomicOp::Add | AtomicOp::Sub,
                place,
                value,
            } if outlives(place) => self.sums.push((inst, value)),
            Op::Binary { op, lhs, rhs } if Kind::of(op).is_some() => {
                let result = func.insts[inst].results[0];
                if !is_float_scalar(func, result) {
                    return;
                }
                let &[user] = self.users[result].as_slice() else {
                    return;
                };
                let Op::Store { place, .. } = func[user] else {
                    return;
                };
                // Nothing else reads the sum before it is stored back to where it came from.
                let is_old = |v: Value| {
                    let from = match func.def_op(v) {
                        Some(&Op::Load { place }) => Some(place),
                        _ => None,
                    };
                    from == Some(place) && outlives(place) && self.users[v].as_slice() == [inst]
                };
                let term = match (is_old(lhs), is_old(rhs)) {
                    (true, _) => rhs,
                    (_, true) if op != BinaryOp::Sub => lhs,
                    _ => return,
                };
                self.found.regroup[inst] = true;
                if Kind::of(op) == Some(Kind::Sum) {
                    self.sums.push((inst, term));
                }
            }
            _ => {}
        }
    }

    /// Notes a step of a sum that is written out: one that begins at zero or with a product, and whose partial sums only
    /// the next step reads.
    fn written_out(&mut self, inst: Inst) {
        let func = self.func;
        let Op::MulAdd { c, .. } = func[inst] else {
            return;
        };
        let begins = match func.def(c).map(|def| (def, &func[def])) {
            Some((_, Op::Const { value })) => value.is_zero(),
            Some((
                _,
                Op::Binary {
                    op: BinaryOp::Mul, ..
                },
            )) => true,
            Some((before, Op::MulAdd { .. })) => self.free[before],
            _ => false,
        };
        // Several sums may begin alike.
        let only_steps = self.users[c].iter().all(
            |&user| matches!(func[user], Op::MulAdd { a, b, c: sum } if sum == c && a != c && b != c),
        );
        let begins = begins && (only_steps || func.as_const(c).is_some());
        if begins {
            self.free[inst] = true;
            self.sums.push((inst, func.insts[inst].results[0]));
        }
    }

    /// Finds which products may be fused into the sums that were found.
    fn fuse(&mut self, env: &Env) {
        let func = self.func;
        let products: Vec<(Inst, Inst)> = self
            .sums
            .iter()
            .filter_map(|&(step, term)| {
                let product = func.def(term)?;
                let (x, y) = match func[product] {
                    Op::Binary {
                        op: BinaryOp::Mul,
                        lhs,
                        rhs,
                    } => (lhs, rhs),
                    Op::MulAdd { a, b, .. } => (a, b),
                    _ => return None,
                };
                // A sum of squares may meet the square of a sum in another kernel.
                (x != y).then_some((step, product))
            })
            .collect();
        if products.is_empty() {
            return;
        }
        let mut steps = SecondaryMap::new();
        self.sums.iter().for_each(|&(step, _)| steps[step] = true);
        let sensitive = sensitive(func, env, &steps);
        for (step, product) in products {
            // What is added to storage is read from there.
            let result = func.insts[step].results.first();
            let of_storage = match func[step] {
                Op::Atomic { place, .. } => local(func, place).and_then(|local| func.def(local)),
                _ => None,
            };
            let is_sensitive = sensitive[step] || of_storage.is_some_and(|l| sensitive[l]);
            if !is_sensitive && result.is_some() {
                self.found.fuse[step] = true;
                self.found.fuse[product] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests;
