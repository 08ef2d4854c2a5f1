//! What a kernel goes through before it is differentiated: one function, scalars in SSA, one way out of each region.

use aerogel_ir::{Function, Module, Stage};

use super::{draws, exits, serial};
use crate::pipeline::{Pass, When};
use crate::simplify::{cse, dce, fold, identities, licm, promote_locals};
use crate::sums::demote_atomics;
use crate::tensors::{loop_tensors, scalarize};
use crate::{BrokenPass, Options, driver, inline};

type Run = fn(&mut Function, &crate::PassCx<'_>) -> bool;

const fn pass(name: &'static str, run: Run) -> Pass {
    Pass {
        name,
        run,
        from: Stage::Structured,
        to: Stage::Structured,
        when: When::Always,
        kernels_only: false,
    }
}

/// For every function: a function that is called may then be copied to where it is.
const CALLED: &[Pass] = &[pass("exits", exits::run)];

/// For the kernel, in order.
const KERNEL: &[Pass] = &[
    pass("inline", inline::all),
    pass("draws", draws::run),
    pass("serial", serial::run),
    pass("loop_tensors", loop_tensors::run),
    pass("scalarize", scalarize::run),
    pass("demote_atomics", demote_atomics::locals),
    pass("promote_locals", promote_locals::run),
    pass("fold", fold::run),
    pass("identities", identities::run),
    pass("cse", cse::run),
    pass("licm", licm::run),
    pass("dce", dce::run),
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
    // A function that calls others takes their place first; those that call themselves stay.
    for _ in 0..ids.len() {
        for &id in &ids {
            driver::run_list(&KERNEL[..1], module, id, options)?;
        }
    }
    let kernel = module.funcs.iter().find(|(_, f)| f.is_kernel);
    let id = kernel.expect("a module has a kernel").0;
    driver::run_list(&KERNEL[1..], module, id, options)
}
