//! What is done to a program before it becomes kernels: a file for each pass.

mod components;
mod dead;
mod fuse;
mod inline;
mod interchange;
mod reductions;
mod registers;
mod uses;

pub use inline::Kept;
pub(crate) use uses::Touched;

use indexmap::IndexSet;

use crate::program::{Buffer, DimDef, Program};

/// A pass.
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&mut Program),
}

/// All passes, in their order.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "components",
        run: components::run,
    },
    Pass {
        name: "inline",
        run: inline::run,
    },
    Pass {
        name: "dead",
        run: dead::run,
    },
    Pass {
        name: "fuse_sums",
        run: fuse::run_on_sums,
    },
    Pass {
        name: "reductions",
        run: reductions::run,
    },
    Pass {
        name: "fuse",
        run: fuse::run_on_points,
    },
    Pass {
        name: "interchange",
        run: interchange::run,
    },
    Pass {
        name: "fuse_loops",
        run: fuse::run_on_points,
    },
    Pass {
        name: "registers",
        run: registers::run,
    },
    Pass {
        name: "dead_stores",
        run: dead::run,
    },
];

/// The temporaries that each of the outermost statements is the last to use. Results, and what extents are made of, stay.
pub fn last_uses(program: &Program) -> Vec<Vec<Buffer>> {
    let mut last: Vec<Vec<Buffer>> = vec![Vec::new(); program.body.len()];
    let mut seen: IndexSet<Buffer> = program.results.iter().copied().collect();
    seen.extend(program.inputs());
    let mut of_extents = uses::Touched::default();
    for def in &program.dims {
        if let DimDef::Value(e) = def {
            of_extents.exprs(&program.exprs, [*e]);
        }
    }
    seen.extend(of_extents.reads);
    for (k, stmt) in program.body.iter().enumerate().rev() {
        let touched = uses::Touched::by(program, std::slice::from_ref(stmt));
        for &buffer in touched.reads.iter().chain(&touched.writes) {
            if seen.insert(buffer) {
                last[k].push(buffer);
            }
        }
    }
    last
}

/// How many temporaries a program keeps in memory.
pub fn n_materialised(program: &Program) -> usize {
    dead::n_materialised(program)
}

/// Runs all passes; `after` sees the program after each.
pub fn run(program: &mut Program, after: &mut dyn FnMut(&'static str, &Program)) {
    for pass in PASSES {
        (pass.run)(program);
        after(pass.name, program);
    }
}
