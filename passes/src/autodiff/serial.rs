//! Serial loops at the outermost scope, and those of one iteration, are marked as serial: in the backward pass they
//! run in reverse order.
//!
//! `parallel serial [a], [b] (i: i32) { .. }` becomes `for a, b, 1, [] (i: i32) { .. }`, a nest of axes a nest of loops.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    BinaryOp, Builder, CellOp, Function, Inst, NodeRef, Op, Region, Type, Value, replace_value,
    walk,
};

use crate::PassCx;
use crate::cells::demote_struct_for;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    in_order(func, cx, false)
}

/// The same for parallel loops too.
pub(super) fn all(func: &mut Function, cx: &PassCx<'_>) -> bool {
    in_order(func, cx, true)
}

fn in_order(func: &mut Function, cx: &PassCx<'_>, all: bool) -> bool {
    for inst in func.regions[func.body].insts.clone() {
        if let Op::ParallelCells { node, attrs, body } = func[inst]
            && (all || attrs.serial)
            && cx.env.trees[node.tree].is_below_sparse(node.node)
            && n_cells(cx, node) <= MOST_ASKED
        {
            ask_each(func, body, node);
            demote_struct_for::one(func, cx, inst);
        }
    }
    demote_struct_for::those(func, cx, &|attrs| all || attrs.serial);
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
            } if (all || attrs.serial || is_one_turn(func, &lo, &hi)) => {
                nest(func, body, inst, &lo, &hi, inner);
                changed = true;
            }
            _ => func.regions[body].insts.push(inst),
        }
    }
    changed
}

/// The activity of sparse fields with up to so many cells each is queried cell by cell.
const MOST_ASKED: u64 = 1 << 24;

fn n_cells(cx: &PassCx<'_>, node: NodeRef) -> u64 {
    let levels = &cx.env.trees[node.tree].path(node.node).levels;
    let axes = levels.iter().flat_map(|level| &level.axes);
    axes.map(|axis| axis.extent).fold(1, u64::saturating_mul)
}

/// Puts the body of a loop over cells behind the question whether a cell is active.
pub(super) fn ask_each(func: &mut Function, body: Region, node: NodeRef) {
    let then = func.new_region(&[]);
    func.regions[then].insts = std::mem::take(&mut func.regions[body].insts);
    let indices = func.regions[body].params.clone();
    let mut b = Builder::new(func, body);
    let cond = b.value(Op::Cell(CellOp::IsActive { node, indices }), Type::BOOL);
    let otherwise = b.region(&[], |_, _| ());
    b.effect(Op::If {
        cond,
        then,
        otherwise,
    });
    b.terminate();
}

/// Whether a loop is known to have no second iteration.
fn is_one_turn(func: &Function, lo: &[Value], hi: &[Value]) -> bool {
    lo.iter().zip(hi).all(|(&lo, &hi)| {
        let bounds = [lo, hi].map(|v| func.as_const(v).map(|c| c.as_i128()));
        matches!(bounds, [Some(lo), Some(hi)] if hi - lo <= 1)
    })
}

/// Writes a nest of loops, the last axis innermost.
fn nest(func: &mut Function, at: Region, inst: Inst, lo: &[Value], hi: &[Value], inner: Region) {
    let span = func.insts[inst].span;
    let counters = func.regions[inner].params.clone();
    let mut region = at;
    let mut axes = Vec::new();
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
        replace_value(func, inner, counter, made);
        axes.push((made, lo[k], hi[k]));
        if last {
            number_draws(func, body, inner, &axes);
            let insts = std::mem::take(&mut func.regions[inner].insts);
            func.regions[body].insts.extend(insts);
        }
        region = body;
    }
}

/// Says to what is drawn in a body which iteration it is, row by row, as a loop that is no parallel one has no number.
fn number_draws(func: &mut Function, body: Region, inner: Region, axes: &[(Value, Value, Value)]) {
    let mut draws = Vec::new();
    walk(func, inner, &mut |func, inst| {
        if let Op::RandomState { .. } = func[inst] {
            draws.push(inst);
        }
    });
    if draws.is_empty() {
        return;
    }
    let mut b = Builder::new(func, body);
    let mut number = b.constant(Scalar::zero(ScalarType::I64));
    for &(counter, lo, hi) in axes {
        let [counter, lo, hi] = [counter, lo, hi].map(|v| b.cast(v, Type::I64));
        let extent = b.binary(BinaryOp::Sub, hi, lo);
        let before = b.binary(BinaryOp::Mul, number, extent);
        let along = b.binary(BinaryOp::Sub, counter, lo);
        number = b.binary(BinaryOp::Add, before, along);
    }
    for inst in draws {
        if let Op::RandomState { iteration, .. } = &mut func.insts[inst].op {
            *iteration = vec![number];
        }
    }
}
