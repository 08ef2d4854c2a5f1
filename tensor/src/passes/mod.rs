//! What is done to a program before it becomes kernels: a file for each pass.

mod reductions;

use crate::program::Program;

/// A pass.
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&mut Program),
}

/// All passes, in their order.
pub const PASSES: &[Pass] = &[Pass {
    name: "reductions",
    run: reductions::run,
}];

/// Runs all passes; `after` sees the program after each.
pub fn run(program: &mut Program, after: &mut dyn FnMut(&'static str, &Program)) {
    for pass in PASSES {
        (pass.run)(program);
        after(pass.name, program);
    }
}
