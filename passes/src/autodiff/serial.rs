//! Loops at the outermost scope that run in order become loops that say so: backwards, they run the other way round.
//!
//! `parallel serial [a], [b] (i: i32) { .. }` becomes `for a, b, 1, [] (i: i32) { .. }`, a nest of axes a nest of loops.

use aerogel_base::Scalar;
use aerogel_ir::{Builder, Function, Inst, Op, Region, Value, walk};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    let body = func.body;
    let mut changed = false;
    let insts = std::mem::take(&mut func.regions[body].insts);
    for inst in insts {
        match func[inst].clone() {
            Op::Parallel {
                lo,
                hi,
                attrs,
                body: inner,
            } if attrs.serial && !keeps(func, inner) => {
                nest(func, body, inst, &lo, &hi, inner);
                changed = true;
            }
            _ => func.regions[body].insts.push(inst),
        }
    }
    changed
}

/// Whether a body asks for the number of its iteration, which a nest of loops has not.
fn keeps(func: &Function, body: Region) -> bool {
    let mut found = false;
    walk(func, body, &mut |func, inst| {
        found |= matches!(func[inst], Op::RandomState { .. });
    });
    found
}

/// Writes a nest of loops, the last axis innermost.
fn nest(func: &mut Function, at: Region, inst: Inst, lo: &[Value], hi: &[Value], inner: Region) {
    let span = func.insts[inst].span;
    let counters = func.regions[inner].params.clone();
    let mut region = at;
    for (k, &counter) in counters.iter().enumerate() {
        let ty = func.ty(counter);
        let last = k + 1 == counters.len();
        let body = func.new_region(&[ty]);
        let mut b = Builder::new(func, region);
        b.span = span;
        let step = b.constant(Scalar::int(ty.scalar().expect("counters are integers"), 1));
        b.effect(Op::For {
            lo: lo[k],
            hi: hi[k],
            step,
            init: Vec::new(),
            body,
        });
        if region != at {
            b.terminate();
        }
        let made = func.regions[body].params[0];
        replace(func, inner, counter, made);
        if last {
            func.regions[body].insts = std::mem::take(&mut func.regions[inner].insts);
        }
        region = body;
    }
}

/// Puts a value in the place of another one.
pub(super) fn replace(func: &mut Function, region: Region, old: Value, new: Value) {
    for inst in func.regions[region].insts.clone() {
        func.insts[inst]
            .op
            .map_operands(|v| if v == old { new } else { v });
        for owned in func.owned(inst) {
            replace(func, owned, old, new);
        }
    }
}
