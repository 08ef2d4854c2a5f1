//! Preparation of a kernel before it is differentiated: one function, scalars in SSA form, one exit of each region.

use aerogel_ir::analysis::access::{Class, classes};
use aerogel_ir::{AtomicOp, FuncId, Function, Inst, Module, Op, Type, walk};

use super::{draws, exits, serial};
use crate::lengths::Lengths;
use crate::pass::Pass;
use crate::simplify::{cse, dce, fold, identities, licm, promote_locals};
use crate::sums::demote_atomics;
use crate::tensors::{loop_tensors, scalarize};
use crate::{BrokenPass, Options, PassCx, driver, inline, single_exit};

/// For every function: a function that is called may then be copied to where it is.
const CALLED: &[Pass] = &[
    Pass::structured("single_exit", single_exit::all),
    Pass::structured("exits", exits::run),
];

/// For the kernel, in order.
const KERNEL: &[Pass] = &[
    Pass::structured("inline", inline::all),
    Pass::structured("draws", draws::run),
    Pass::structured("serial", serial::run),
    Pass::structured("loop_tensors", loop_tensors::run),
    Pass::structured("scalarize", scalarize::run),
    Pass::structured("demote_atomics", demote_atomics::locals),
    Pass::structured("looking_back", demote_atomics::looking_back),
    Pass::structured("promote_locals", promote_locals::run),
    Pass::structured("fold", fold::run),
    Pass::structured("identities", identities::run),
    Pass::structured("cse", cse::run),
    Pass::structured("licm", licm::run),
    Pass::structured("dce", dce::run),
];

/// The pass of these lists with a name.
pub(crate) fn find(name: &str) -> Option<Pass> {
    let mut all = CALLED.iter().chain(KERNEL);
    all.find(|pass| pass.name == name).copied()
}

pub(super) fn run(module: &mut Module, options: Options) -> Result<(), BrokenPass> {
    let ids: Vec<_> = module.funcs.keys().collect();
    for &id in &ids {
        driver::run_list(CALLED, module, id, options)?;
    }
    let (inline, rest) = KERNEL.split_at(1);
    for passes in [inline, rest] {
        for &id in &ids {
            driver::run_list(passes, module, id, options)?;
        }
    }
    Ok(())
}

/// Atomic changes of some memory become plain ones, where no other iteration makes them too.
pub(super) fn plainly(
    module: &mut Module,
    id: FuncId,
    options: Options,
    wanted: &[Class],
) -> Result<(), BrokenPass> {
    demoted(module, id, options, &|cx, func, inst| {
        let place = demote_atomics::place_of(func, inst);
        let own = place.map_or(Vec::new(), |place| classes(func, cx.env, place));
        own.iter().any(|class| wanted.contains(class))
    })
}

/// All of them, as forward mode wants them: the loops run in order if other iterations make products or extrema too.
pub(super) fn all_plainly(
    module: &mut Module,
    id: FuncId,
    options: Options,
) -> Result<(), BrokenPass> {
    demoted(module, id, options, &|_, _, _| true)?;
    let func = &module.funcs[id];
    let mut is_shared = false;
    walk(func, func.body, &mut |func, inst| {
        if let Op::Atomic { op, place, .. } = func[inst] {
            let elem = func.ty(place).pointee().and_then(Type::elem);
            let adds = matches!(op, AtomicOp::Add | AtomicOp::Sub | AtomicOp::Exchange);
            is_shared |= !adds && elem.is_some_and(|elem| elem.is_float());
        }
    });
    if is_shared {
        with(module, id, options, |func, cx| {
            serial::all(func, cx);
        });
        demoted(module, id, options, &|_, _, _| true)?;
    }
    Ok(())
}

/// Parallel loops become loops in order: whether there were any.
pub(super) fn in_order(
    module: &mut Module,
    id: FuncId,
    options: Options,
    classes: &[Class],
) -> Result<bool, BrokenPass> {
    let mut changed = false;
    with(module, id, options, |func, cx| {
        changed = serial::all(func, cx);
    });
    plainly(module, id, options, classes)?;
    Ok(changed)
}

fn demoted(
    module: &mut Module,
    id: FuncId,
    options: Options,
    wanted: &dyn Fn(&PassCx<'_>, &Function, Inst) -> bool,
) -> Result<(), BrokenPass> {
    with(module, id, options, |func, cx| {
        demote_atomics::demote(func, cx, &|func, inst| wanted(cx, func, inst));
    });
    let first = KERNEL.iter().position(|pass| pass.name == "demote_atomics");
    driver::run_list(&KERNEL[first.unwrap_or(0)..], module, id, options)
}

/// Changes a function as a pass does.
fn with(
    module: &mut Module,
    id: FuncId,
    options: Options,
    change: impl FnOnce(&mut Function, &PassCx<'_>),
) {
    let lengths = Lengths::new(&module.funcs);
    let mut func = std::mem::replace(&mut module.funcs[id], Function::new("", false));
    let cx = PassCx {
        env: &module.env,
        funcs: &module.funcs,
        lengths: &lengths,
        exchanged: &Default::default(),
        options,
    };
    change(&mut func, &cx);
    module.funcs[id] = func;
}
