//! Which float operations accumulate: sums, products, minima and maxima that a loop carries.
//!
//! ```text
//! v4 = for lo, hi, step, [v0] (v5: i32, v6: f32) {
//!     v7 = load (child S1, v5)
//!     v8 = mul v7, v1         fuse
//!     v9 = add v6, v8         regroup, fuse
//!     yield [v9]
//! }
//! ```
//! A variable accumulates if a loop only adds to it (or only multiplies it, ...) and reads it nowhere else. The order of
//! its terms cannot be observed then, other than in the last digits of the result, so that the terms may be regrouped. A
//! product may be fused into the sum, which rounds once instead of twice, unless the result reaches an operation that
//! could turn those digits into another sign, an infinity or a NaN: a comparison, a conversion to an integer, a
//! difference, a divisor, a square root (`exact::sensitive`). The variance `q / n - m * m` is an example: of equal numbers
//! it is 0 if all is rounded as written, and may be negative if the sum of squares `q` is fused.

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupSet;

use super::exact::{local, sensitive};
use crate::{AtomicOp, BinaryOp, Function, Inst, Op, Region, Value, walk};

/// What float operations of a region may do other than what is written.
#[derive(Clone, Debug, Default)]
pub struct Accumulations {
    /// Steps of accumulations whose order is free.
    pub regroup: SecondaryMap<Inst, bool>,
    /// Products that may be fused into the sums that use them, and those sums.
    pub fuse: SecondaryMap<Inst, bool>,
}

/// The accumulations of a function's region: of a task's, or of a function's body.
pub fn accumulations(func: &Function, region: Region) -> Accumulations {
    let mut search = Search {
        func,
        users: SecondaryMap::new(),
        found: Accumulations::default(),
        sums: Vec::new(),
    };
    let mut loops = Vec::new();
    let mut is_float = false;
    walk(func, region, &mut |func, inst| {
        func[inst].operands(|v| search.users[v].push(inst));
        if matches!(func[inst], Op::For { .. } | Op::While { .. }) {
            loops.push(inst);
        }
        match func[inst] {
            Op::Binary { lhs, .. } => is_float |= is_float_scalar(func, lhs),
            // Its own product, with itself for a term.
            Op::MulAdd { .. } => {
                is_float = true;
                search.sums.push((inst, func.insts[inst].results[0]));
            }
            _ => {}
        }
    });
    if !is_float {
        return search.found;
    }
    for inst in loops {
        search.carried(inst);
    }
    // Storage in which the iterations of a task accumulate is made outside of them.
    let mut outside = SecondaryMap::new();
    for &inst in &func.regions[region].insts {
        outside[inst] = true;
    }
    walk(func, region, &mut |_, inst| {
        if !outside[inst] {
            search.stored(inst, &outside);
        }
    });
    search.fuse(region);
    search.found
}

fn is_float_scalar(func: &Function, value: Value) -> bool {
    func.ty(value).scalar().is_some_and(ScalarType::is_float)
}

/// What one accumulation does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sum,
    Product,
    Min,
    Max,
}

impl Kind {
    fn of(op: BinaryOp) -> Option<Self> {
        match op {
            BinaryOp::Add | BinaryOp::Sub => Some(Self::Sum),
            BinaryOp::Mul => Some(Self::Product),
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
    /// Steps of sums, with the term that each adds.
    sums: Vec<(Inst, Value)>,
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
                self.accept(inst, chain);
            }
        }
    }

    fn accept(&mut self, inst: Inst, chain: Chain) {
        let func = self.func;
        if chain.kind == Some(Kind::Product) {
            // Powers of one number overflow in another order where the program does not.
            let mut inside: SecondaryMap<Inst, bool> = SecondaryMap::new();
            for region in func.owned(inst) {
                walk(func, region, &mut |_, inst| inside[inst] = true);
            }
            let varies = |term: Value| func.def(term).is_some_and(|def| inside[def]);
            if !chain.steps.iter().all(|&(_, term)| varies(term)) {
                return;
            }
        }
        for &(step, _) in &chain.steps {
            self.found.regroup[step] = true;
        }
        if chain.kind == Some(Kind::Sum) {
            self.sums.extend(chain.steps);
        }
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

    /// Notes what an instruction adds to storage that outlives the iteration.
    fn stored(&mut self, inst: Inst, outside: &SecondaryMap<Inst, bool>) {
        let func = self.func;
        let accumulates = |place: Value| {
            let of = local(func, place).and_then(|local| func.def(local));
            of.is_some_and(|local| outside[local])
        };
        match func[inst] {
            Op::Atomic {
                op: AtomicOp::Add | AtomicOp::Sub,
                place,
                value,
            } if accumulates(place) => self.sums.push((inst, value)),
            Op::Binary {
                op: op @ (BinaryOp::Add | BinaryOp::Sub),
                lhs,
                rhs,
            } => {
                let is_load = |v: Value| matches!(func.def_op(v), Some(&Op::Load { place }) if accumulates(place));
                if is_load(lhs) {
                    self.sums.push((inst, rhs));
                } else if op == BinaryOp::Add && is_load(rhs) {
                    self.sums.push((inst, lhs));
                }
            }
            _ => {}
        }
    }

    /// Finds which products may be fused into the sums that were found.
    fn fuse(&mut self, region: Region) {
        let func = self.func;
        let products: Vec<(Inst, Inst)> = self
            .sums
            .iter()
            .filter_map(|&(step, term)| match (func.def(term), func.def_op(term)) {
                (
                    Some(product),
                    Some(
                        Op::Binary {
                            op: BinaryOp::Mul, ..
                        }
                        | Op::MulAdd { .. },
                    ),
                ) => Some((step, product)),
                _ => None,
            })
            .collect();
        if products.is_empty() {
            return;
        }
        let mut steps = SecondaryMap::new();
        self.sums.iter().for_each(|&(step, _)| steps[step] = true);
        let sensitive = sensitive(func, region, &steps);
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

/// The terminators with which iterations of a loop's body end.
fn exits_of(func: &Function, body: Region, exits: &mut Vec<Inst>) {
    fn inside(func: &Function, region: Region, exits: &mut Vec<Inst>) {
        for &inst in &func.regions[region].insts {
            match func[inst] {
                Op::Break { .. } | Op::Continue { .. } => exits.push(inst),
                Op::If {
                    then, otherwise, ..
                } => {
                    inside(func, then, exits);
                    inside(func, otherwise, exits);
                }
                _ => {}
            }
        }
    }
    inside(func, body, exits);
    let last = func.terminator(body);
    if matches!(func[last], Op::Yield { .. }) {
        exits.push(last);
    }
}

#[cfg(test)]
mod tests {
    use super::accumulations;
    use crate::{Op, parse_module, walk};

    /// What the sums and products of a function may do, in their order: r for regroup, f for fuse, - for neither. The
    /// body has the parameters `x`, `y`, `n` and yields one number.
    fn freedom(body: &str) -> String {
        let text = format!(
            "func @f(x: f32, y: f32, n: i32) -> f32 {{
                lo: i32 = const 0
                one: i32 = const 1
                zero: f32 = const 0.0
                {body}
            }}"
        );
        let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let func = module.funcs.values().next().expect("a function");
        let found = accumulations(func, func.body);
        let mut all = Vec::new();
        walk(func, func.body, &mut |func, inst| {
            if let Op::Binary { op, .. } = func[inst] {
                let mut word = op.name().to_owned();
                for (is, letter) in [(found.regroup[inst], " r"), (found.fuse[inst], " f")] {
                    if is {
                        word.push_str(letter);
                    }
                }
                all.push(word);
            }
        });
        all.join(", ")
    }

    /// A loop with one carried variable `s`; what follows it, and the end, is `after`.
    fn carried(body: &str, after: &str) -> String {
        freedom(&format!(
            "v9: f32 = for lo, n, one, [zero] (i: i32, s: f32) {{
                k: f32 = cast i
                {body}
            }}
            {after}"
        ))
    }

    #[test]
    fn sums_of_products() {
        let body = "p: f32 = mul k, y  t: f32 = add s, p  yield [t]";
        assert_eq!(carried(body, "yield [x]"), "mul f, add r f");
        let body = "p: f32 = mul k, y  t: f32 = sub s, p  yield [t]";
        assert_eq!(carried(body, "yield [x]"), "mul f, sub r f");
        // The result is scaled, and then the function's.
        let body = "p: f32 = mul k, y  t: f32 = add p, s  yield [t]";
        let after = "z: f32 = mul v9, x  yield [zero]";
        assert_eq!(carried(body, after), "mul f, add r f, mul");
    }

    #[test]
    fn what_depends_on_the_last_digit() {
        let body = "p: f32 = mul k, k  t: f32 = add s, p  yield [t]";
        for after in [
            "m: f32 = mul x, x  d: f32 = sub v9, m  yield [zero]",
            "d: f32 = sqrt v9  yield [zero]",
            "d: u1 = lt v9, x  yield [zero]",
            "d: f32 = div x, v9  yield [zero]",
            "d: i32 = cast v9  yield [zero]",
            "m: f32 = add v9, x  d: f32 = floor m  yield [zero]",
            // What a caller does is not known.
            "yield [v9]",
        ] {
            let found = carried(body, after);
            assert!(found.starts_with("mul, add r"), "{after}: {found}");
            assert!(!found.contains('f'), "{after}: {found}");
        }
    }

    #[test]
    fn what_the_loop_reads() {
        // Partial sums are observed.
        let body = "t: f32 = add s, k  d: u1 = lt t, x  w: f32 = select d, t, x  yield [w]";
        assert_eq!(carried(body, "yield [x]"), "add");
        // A recurrence.
        let body = "p: f32 = mul s, y  t: f32 = add p, x  yield [t]";
        assert_eq!(carried(body, "yield [x]"), "mul, add");
        let body = "p: f32 = mul s, k  t: f32 = add s, p  yield [t]";
        assert_eq!(carried(body, "yield [x]"), "mul, add");
    }

    #[test]
    fn products_and_extrema() {
        assert_eq!(
            carried("t: f32 = mul s, k  yield [t]", "yield [x]"),
            "mul r"
        );
        // A power: in another order it overflows elsewhere.
        assert_eq!(carried("t: f32 = mul s, x  yield [t]", "yield [x]"), "mul");
        assert_eq!(
            carried("t: f32 = min k, s  yield [t]", "yield [x]"),
            "min r"
        );
        let mixed = "t: f32 = add s, k  u: f32 = max t, x  yield [u]";
        assert_eq!(carried(mixed, "yield [x]"), "add, max");
    }

    #[test]
    fn branches_and_loops_inside() {
        let body = "
            c: u1 = lt k, x
            t: f32 = if c {
                p: f32 = mul k, k
                u: f32 = add s, p
                yield [u]
            } {
                yield [s]
            }
            yield [t]";
        assert_eq!(carried(body, "yield [x]"), "mul f, add r f");
        let body = "
            t: f32 = for lo, n, one, [s] (j: i32, v: f32) {
                q: f32 = cast j
                p: f32 = mul k, q
                u: f32 = add v, p
                yield [u]
            }
            yield [t]";
        assert_eq!(carried(body, "yield [x]"), "mul f, add r f");
        let body = "
            c: u1 = lt k, x
            if c {
                continue [s]
            } {
                yield []
            }
            t: f32 = add s, k
            yield [t]";
        assert_eq!(carried(body, "yield [x]"), "add r");
    }
}
