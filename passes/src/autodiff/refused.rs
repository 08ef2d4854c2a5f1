//! Errors for operations that have no derivative, or would have a wrong one.

use aerogel_base::{Diagnostic, ErrorKind};
use aerogel_ir::{AtomicOp, Derivative, Function, Inst, Module, Op, Region, Value, walk};

use super::demand::Cx;
use super::rules::is_float;
use super::storage::Memory;

/// The first thing in a kernel whose derivative would be wrong.
pub(super) fn find(cx: &Cx<'_>) -> Option<Box<Diagnostic>> {
    let mut found = None;
    for &region in &cx.nesting.regions {
        for &inst in &cx.func.regions[region].insts {
            if found.is_none() {
                found = of_inst(cx, cx.func, inst)
                    .or_else(|| raced(cx, region, inst))
                    .or_else(|| of_called(cx, inst));
            }
        }
    }
    found
}

/// A variable that all iterations of a parallel loop write, each in its own time.
fn raced(cx: &Cx<'_>, region: Region, inst: Inst) -> Option<Box<Diagnostic>> {
    let Op::Store { place, .. } = cx.func[inst] else {
        return None;
    };
    let Memory::Local(local) = cx.memory(place) else {
        return None;
    };
    let home = cx.nesting.region_of(local);
    let is_shared = cx.nesting.parallel(home) < cx.nesting.parallel(region);
    (is_shared && cx.activity.is_active(local)).then_some(())?;
    let message = "all iterations of a parallel loop write this variable, and the last one is not known: it has no gradient";
    let note = "let the loop run in order, `ti.loop_config(serialize=True)`, or use `+=`, ti.atomic_max and the like";
    mistake(cx, inst, "E0601", message, note)
}

/// A float made of bits, where other floats become bits: what the one has of the other has no derivative.
fn of_bits(cx: &Cx<'_>, inst: Inst, x: Value) -> Option<Box<Diagnostic>> {
    let result = cx.func.insts[inst].results[0];
    let is_made =
        is_float(cx.func, result) && !is_float(cx.func, x) && cx.activity.is_useful(result);
    is_made.then_some(())?;
    let mut is_taken = false;
    walk(cx.func, cx.func.body, &mut |func, inst| {
        is_taken |= matches!(func[inst], Op::Bitcast { x } if is_float(func, x) && cx.activity.is_varied(x));
    });
    let message = "the bits of a float that has a derivative are converted back to a float, and the derivative of that is not known";
    let note =
        "write `ti.stop_grad(x)` for the float whose bits are read if no derivative is intended";
    is_taken
        .then(|| mistake(cx, inst, "E0601", message, note))
        .flatten()
}

/// What a function that is called does, and whose order among all calls the backward pass would have to know.
fn of_called(cx: &Cx<'_>, inst: Inst) -> Option<Box<Diagnostic>> {
    if cx.func.is_kernel || cx.kind == Derivative::Dual {
        return None;
    }
    let what = match cx.func[inst] {
        Op::Random {} => "`random`".to_owned(),
        Op::Atomic { op, place, .. }
            if !matches!(op, AtomicOp::Add | AtomicOp::Sub) && cx.has_adjoint(place) =>
        {
            format!("`atomic_{}`", op.name())
        }
        _ => return None,
    };
    let message = format!("{what} in a function that calls itself has no gradient");
    let note = "pass the number as an argument, or write the function as a loop";
    mistake(cx, inst, "E0601", &message, note)
}

/// Memory that the threads of a block share, which no rule knows.
pub(super) fn shared(module: &Module) -> Option<Box<Diagnostic>> {
    let mut found = None;
    for func in module.funcs.values() {
        walk(func, func.body, &mut |func, inst| {
            if found.is_none() && matches!(func[inst], Op::Shared {}) {
                found = Some(func.insts[inst].span);
            }
        });
    }
    let message = "memory that the threads of a block share has no derivative";
    let mistake = Diagnostic::new(ErrorKind::Compilation, "E0601", found?, message);
    Some(Box::new(mistake.note(
        "write the kernel without `ti.simt.block.SharedArray`, or leave it out of the tape",
    )))
}

fn of_inst(cx: &Cx<'_>, func: &Function, inst: Inst) -> Option<Box<Diagnostic>> {
    let result = func.insts[inst].results.first().copied();
    let wanted = |value: Value| is_float(func, value) && cx.activity.is_useful(value);
    match &func[inst] {
        Op::Atomic { place, .. } | Op::Cas { place, .. }
            if cx.kind == Derivative::Grad
                && result.is_some_and(wanted)
                && cx.has_adjoint(*place) =>
        {
            let message = "the old value of an atomic operation has no derivative";
            mistake(
                cx,
                inst,
                "E0601",
                message,
                "read the element before, in a loop of its own",
            )
        }
        &Op::Bitcast { x } => of_bits(cx, inst, x),
        Op::Threads { args, .. }
            if result.is_some_and(wanted)
                && args
                    .iter()
                    .any(|&x| is_float(func, x) && cx.activity.is_varied(x)) =>
        {
            let message = "values that the threads of a block exchange have no derivative";
            let note = "sum in a loop, or write `ti.stop_grad(x)` for the exchanged values if no derivative is intended";
            mistake(cx, inst, "E0601", message, note)
        }
        Op::ParallelCells { attrs, .. } if attrs.serial && cx.kind == Derivative::Grad => {
            let message = "a loop over the cells of a field that runs in order has no gradient";
            mistake(cx, inst, "E0601", message, "loop over a range")
        }
        _ => None,
    }
}

fn mistake(
    cx: &Cx<'_>,
    inst: Inst,
    code: &'static str,
    message: &str,
    note: &str,
) -> Option<Box<Diagnostic>> {
    let span = cx.func.insts[inst].span;
    let mistake = Diagnostic::new(ErrorKind::Compilation, code, span, message);
    Some(Box::new(mistake.note(note)))
}
