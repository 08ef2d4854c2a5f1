//! Early exits of loops and iterations become flags, since reversed code needs one entry and one exit.
//!
//! ```text
//! for lo, hi, one, [] (i: i32) {         while [] { at < hi and not left } {
//!     if done {                              if done {
//!         break []                               left = true, skip = true
//!     } {                        ==>         } {
//!         yield []                               yield []
//!     }                                      }
//!     rest                                   if skip { yield [] } { rest  yield [] }
//!     yield []                               at = at + one
//! }                                      }
//! ```
//! The flags are locals, and so becomes what loops carry that are left early: `promote_locals` comes later.

use aerogel_base::Scalar;
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Function, Inst, Op, Region, Type, UnaryOp, Value, replace_value,
};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    let body = func.body;
    let had_carried = carry_nothing(func, body);
    let insts = std::mem::take(&mut func.regions[body].insts);
    let before = func.regions.len();
    Exits { loops: Vec::new() }.line(func, body, insts);
    had_carried || func.regions.len() > before
}

/// How instructions may be left before their end.
#[derive(Clone, Copy, Default)]
struct Ways {
    /// By the end of the turn.
    skips: bool,
    /// By the end of the loop as well.
    leaves: bool,
}

fn ways(func: &Function, insts: &[Inst]) -> Ways {
    let mut all = Ways::default();
    for &inst in insts {
        match func[inst] {
            // A loop's own exits end with it.
            Op::If {
                then, otherwise, ..
            } => {
                for arm in [then, otherwise] {
                    let inner = ways(func, &func.regions[arm].insts);
                    all.skips |= inner.skips;
                    all.leaves |= inner.leaves;
                }
            }
            Op::Break { .. } => (all.skips, all.leaves) = (true, true),
            Op::Continue { .. } => all.skips = true,
            _ => {}
        }
    }
    all
}

/// The flags of a loop.
#[derive(Clone, Copy)]
struct Flags {
    /// The rest of the turn is left out.
    skip: Value,
    /// There is no further turn.
    leave: Option<Value>,
}

struct Exits {
    /// Innermost last.
    loops: Vec<Flags>,
}

impl Exits {
    /// Writes instructions to the end of a region, what follows an exit behind a question.
    fn line(&mut self, func: &mut Function, region: Region, insts: Vec<Inst>) {
        let mut rest = insts.into_iter();
        while let Some(inst) = rest.next() {
            let skips = !func[inst].is_terminator() && ways(func, &[inst]).skips;
            self.inst(func, region, inst);
            if skips {
                let following = func.new_region(&[]);
                self.line(func, following, rest.collect());
                let skip = self.loops.last().expect("exits have flags").skip;
                let mut b = Builder::new(func, region);
                b.within(following, Builder::terminate);
                let cond = b.load(skip);
                let then = b.region(&[], |_, _| ());
                b.effect(Op::If {
                    cond,
                    then,
                    otherwise: following,
                });
                break;
            }
        }
        if region != func.body {
            Builder::new(func, region).terminate();
        }
    }

    fn inst(&mut self, func: &mut Function, region: Region, inst: Inst) {
        match func[inst].clone() {
            Op::Break { .. } => self.exit(func, region, true),
            Op::Continue { .. } => self.exit(func, region, false),
            Op::If {
                then, otherwise, ..
            } => {
                for branch in [then, otherwise] {
                    let insts = std::mem::take(&mut func.regions[branch].insts);
                    self.line(func, branch, insts);
                }
                func.regions[region].insts.push(inst);
            }
            Op::For { body, .. } => match self.loop_body(func, region, body) {
                Some(leave) => counted(func, region, inst, leave),
                None => func.regions[region].insts.push(inst),
            },
            Op::While { cond, body, .. } => {
                if let Some(leave) = self.loop_body(func, region, body) {
                    guard_test(func, cond, leave);
                }
                func.regions[region].insts.push(inst);
            }
            Op::Parallel { body, .. } | Op::ParallelCells { body, .. } => {
                self.loop_body(func, region, body);
                func.regions[region].insts.push(inst);
            }
            _ => func.regions[region].insts.push(inst),
        }
    }

    /// Notes an exit of the innermost loop.
    fn exit(&self, func: &mut Function, region: Region, leaves: bool) {
        let Flags { skip, leave } = *self.loops.last().expect("exits have flags");
        let mut b = Builder::new(func, region);
        let yes = b.constant(Scalar::bool(true));
        b.store(skip, yes);
        if let Some(leave) = leave.filter(|_| leaves) {
            b.store(leave, yes);
        }
    }

    /// Rewrites a loop's body; the flag that ends the loop, if there is one.
    fn loop_body(&mut self, func: &mut Function, region: Region, body: Region) -> Option<Value> {
        let insts = std::mem::take(&mut func.regions[body].insts);
        let ways = ways(func, &insts);
        let leave = ways
            .leaves
            .then(|| Builder::new(func, region).local(Type::BOOL));
        if ways.skips {
            let skip = Builder::new(func, body).local(Type::BOOL);
            self.loops.push(Flags { skip, leave });
        }
        self.line(func, body, insts);
        if ways.skips {
            self.loops.pop();
        }
        leave
    }
}

/// Makes a counted loop one that tests before each iteration whether it was left.
fn counted(func: &mut Function, region: Region, inst: Inst, leave: Value) {
    let Op::For {
        lo, hi, step, body, ..
    } = func[inst].clone()
    else {
        unreachable!("the caller looked")
    };
    let mut b = Builder::new(func, region);
    b.span = b.func.insts[inst].span;
    let narrow = b.func.ty(lo);
    // Wide enough to pass the end.
    let [lo, hi, step] = [lo, hi, step].map(|v| b.cast(v, Type::I64));
    let at = b.local(Type::I64);
    b.store(at, lo);
    let zero = b.constant(Scalar::zero(aerogel_base::ScalarType::I64));
    let upwards = b.compare(CompareOp::Gt, step, zero);
    let cond = b.region(&[], |b, _| {
        let here = b.load(at);
        let below = b.compare(CompareOp::Lt, here, hi);
        let above = b.compare(CompareOp::Gt, here, hi);
        let inside = b.select(upwards, below, above);
        let left = b.load(leave);
        let stays = b.unary(UnaryOp::Not, left);
        let goes_on = b.binary(BinaryOp::And, inside, stays);
        b.yields(vec![goes_on]);
    });
    // The counter becomes a value of the body.
    let counter = b.func.regions[body].params[0];
    let insts = std::mem::take(&mut b.func.regions[body].insts);
    b.func.retain_params(body, &[false]);
    let end = b.within(body, |b| {
        let here = b.load(at);
        let first = b.cast(here, narrow);
        let next = b.binary(BinaryOp::Add, here, step);
        b.store(at, next);
        first
    });
    b.func.regions[body].insts.extend(insts);
    replace_value(b.func, body, counter, end);
    b.effect(Op::While {
        init: Vec::new(),
        cond,
        body,
    });
}

/// Lets the test of a loop check first whether the loop was left.
fn guard_test(func: &mut Function, cond: Region, leave: Value) {
    let insts = std::mem::take(&mut func.regions[cond].insts);
    let test = func.new_region(&[]);
    func.regions[test].insts = insts;
    let mut b = Builder::new(func, cond);
    let left = b.load(leave);
    let then = b.region(&[], |b, _| {
        let no = b.constant(Scalar::bool(false));
        b.yields(vec![no]);
    });
    let op = Op::If {
        cond: left,
        then,
        otherwise: test,
    };
    let goes_on = b.value(op, Type::BOOL);
    b.yields(vec![goes_on]);
}

/// Puts into locals what loops carry that are left early; whether there were any.
fn carry_nothing(func: &mut Function, region: Region) -> bool {
    let mut changed = false;
    for inst in std::mem::take(&mut func.regions[region].insts) {
        for owned in func.owned(inst) {
            changed |= carry_nothing(func, owned);
        }
        let (Op::For { init, body, .. } | Op::While { init, body, .. }) = func[inst].clone() else {
            func.regions[region].insts.push(inst);
            continue;
        };
        if init.is_empty() || !ways(func, &func.regions[body].insts).skips {
            func.regions[region].insts.push(inst);
            continue;
        }
        changed = true;
        in_locals(func, region, inst, &init);
    }
    changed
}

/// Writes a loop to the end of a region that carries its values in locals.
fn in_locals(func: &mut Function, region: Region, inst: Inst, init: &[Value]) {
    let mut b = Builder::new(func, region);
    b.span = b.func.insts[inst].span;
    let span = b.span;
    let places: Vec<Value> = init.iter().map(|&v| b.local(b.func.ty(v))).collect();
    for (&place, &value) in places.iter().zip(init) {
        b.store(place, value);
    }
    let looks = match func[inst].clone() {
        Op::For { body, .. } => vec![(body, 1)],
        Op::While { cond, body, .. } => vec![(cond, 0), (body, 0)],
        _ => unreachable!("the caller looked"),
    };
    for &(inner, first) in &looks {
        let params = func.regions[inner].params[first..].to_vec();
        let insts = std::mem::take(&mut func.regions[inner].insts);
        let mut b = Builder::new(func, inner);
        b.span = span;
        let values: Vec<Value> = places.iter().map(|&place| b.load(place)).collect();
        func.regions[inner].insts.extend(insts);
        for (&param, value) in params.iter().zip(values) {
            replace_value(func, inner, param, value);
        }
        let keeps: Vec<bool> = (0..first + params.len()).map(|k| k < first).collect();
        func.retain_params(inner, &keeps);
    }
    let &(body, _) = looks.last().expect("a loop has a body");
    exits_store(func, body, &places, true);
    let results = func.insts[inst].results.clone();
    func.retain_results(inst, &vec![false; results.len()]);
    match &mut func.insts[inst].op {
        Op::For { init, .. } | Op::While { init, .. } => init.clear(),
        _ => unreachable!("the caller looked"),
    }
    func.regions[region].insts.push(inst);
    for (place, result) in places.into_iter().zip(results) {
        let load = func.new_inst(Op::Load { place }, &[], span);
        // The same value, made by something else.
        func.insts[load].results.push(result);
        func.retain_results(load, &[true]);
        func.regions[region].insts.push(load);
    }
}

/// Lets the ends of iterations store the values that they pass on.
fn exits_store(func: &mut Function, region: Region, places: &[Value], is_body: bool) {
    for inst in std::mem::take(&mut func.regions[region].insts) {
        let values = match &mut func.insts[inst].op {
            Op::Break { values } | Op::Continue { values } => std::mem::take(values),
            Op::Yield { values } if is_body => std::mem::take(values),
            _ => Vec::new(),
        };
        let mut b = Builder::new(func, region);
        for (&place, value) in places.iter().zip(values) {
            b.store(place, value);
        }
        if let Op::If {
            then, otherwise, ..
        } = func[inst]
        {
            exits_store(func, then, places, false);
            exits_store(func, otherwise, places, false);
        }
        func.regions[region].insts.push(inst);
    }
}
