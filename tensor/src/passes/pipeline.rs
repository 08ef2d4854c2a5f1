//! The order of the passes, to be read from top to bottom.

use super::{
    Options, components, dead, fuse, gathers, inline, interchange, invariant_axes, inverse,
    known_values, planes, products, reductions, registers, scratch, zeros,
};
use crate::ir::Stage::{self, Placed, Recorded, Reduced};
use crate::ir::{Program, verify_at};

type Run = fn(&mut Program, Options) -> bool;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// Changes a program; returns whether its text differs.
    pub run: Run,
    /// The stage before it.
    pub from: Stage,
    /// The stage after it.
    pub to: Stage,
}

impl Pass {
    /// Its name in `AEROGEL_PRINT`, where kernels have passes too.
    pub fn full_name(&self) -> String {
        format!("tensor.{}", self.name)
    }
}

const fn pass(name: &'static str, run: Run, from: Stage, to: Stage) -> Pass {
    Pass {
        name,
        run,
        from,
        to,
    }
}

/// All passes, in their order.
pub const PASSES: &[Pass] = &[
    // More values become functions of their indices, which `inline` then inlines.
    pass("inverse", inverse::run, Recorded, Recorded),
    pass("components", components::run, Recorded, Recorded),
    pass("known_values", known_values::run, Recorded, Recorded),
    pass("inline", inline::run, Recorded, Recorded),
    pass("dead", dead::run, Recorded, Recorded),
    pass("zeros", zeros::run, Recorded, Recorded),
    // Where conditions have been inlined into the sums that they choose from.
    pass("gathers", gathers::run, Recorded, Recorded),
    // Where a sum is still one store.
    pass("invariant_axes", invariant_axes::run, Recorded, Recorded),
    pass("products", products::run, Recorded, Recorded),
    pass("planes", planes::run, Recorded, Recorded),
    pass("fuse_sums", fuse::run_on_sums, Recorded, Recorded),
    pass("reductions", reductions::run, Recorded, Reduced),
    pass("fuse", fuse::run_on_points, Reduced, Reduced),
    // Where a loop's statements share one `for`; the result may share that of its neighbours.
    pass("interchange", interchange::run, Reduced, Reduced),
    pass("fuse_loops", fuse::run_on_points, Reduced, Reduced),
    // What variables hold is no longer read from memory, which nobody needs to store then.
    pass("registers", registers::run, Reduced, Reduced),
    pass("dead_stores", dead::run, Reduced, Reduced),
    pass("scratch", scratch::run, Reduced, Placed),
];

/// The names of all passes in `AEROGEL_PRINT`.
pub fn full_names() -> Vec<String> {
    PASSES.iter().map(Pass::full_name).collect()
}

/// Runs all passes. `after` gets each with whether it changed the program, and the program.
///
/// # Panics
/// If a pass leaves what is not legal at its stage: with debug assertions only.
pub fn run(program: &mut Program, options: Options, after: &mut dyn FnMut(&Pass, bool, &Program)) {
    for pass in PASSES {
        let changed = (pass.run)(program, options);
        if cfg!(debug_assertions)
            && let Err(e) = verify_at(program, pass.to)
        {
            panic!("`{}` broke the program: {e}\n{program}", pass.name);
        }
        after(pass, changed, program);
    }
}
