//! The order of the passes, to be read from top to bottom.

use aerogel_ir::{Function, Stage, Stage::*};

use crate::blocks::look_around;
use crate::cells::{collect, demote_struct_for, list_struct_for, own_words};
use crate::loops::{
    axis_order, carried_elements, carried_powers, chosen_elements, flat_index, matrix_products,
    partners, short_axis, skipped_iteration,
};
use crate::simplify::{
    branches, counted_whiles, cse, dce, fold, forward_loads, identities, if_convert, licm,
    promote_locals,
};
use crate::sums::{
    demote_atomics, guarded_steps, merge_atomics, privatize, scan_counters, split_branches,
    thread_local,
};
use crate::tasks::{offload, order};
use crate::tensors::{loop_tensors, scalarize, unroll};
use crate::{Pass, PassCx, Step, When};
use crate::{
    bounds_check, clamp_indices, inline, lower_access, note_accesses, proved_checks, single_exit,
};

type Run = fn(&mut Function, &PassCx<'_>) -> bool;

const fn pass(name: &'static str, run: Run, from: Stage, to: Stage, when: When) -> Step {
    Step::Pass(Pass {
        name,
        run,
        from,
        to,
        when,
        kernels_only: false,
    })
}

const fn kernel(name: &'static str, run: Run, from: Stage, to: Stage, when: When) -> Step {
    Step::Pass(Pass {
        name,
        run,
        from,
        to,
        when,
        kernels_only: true,
    })
}

const fn member(name: &'static str, run: Run, stage: Stage) -> Pass {
    Pass {
        name,
        run,
        from: stage,
        to: stage,
        when: When::Optimize,
        kernels_only: false,
    }
}

const fn member_step(name: &'static str, run: Run, stage: Stage) -> Step {
    Step::Pass(member(name, run, stage))
}

const fn simplify(stage: Stage) -> [Pass; 7] {
    [
        member("fold", fold::run, stage),
        member("identities", identities::run, stage),
        member("cse", cse::run, stage),
        member("licm", licm::run, stage),
        member("forward_loads", forward_loads::run, stage),
        member("branches", branches::run, stage),
        member("dce", dce::run, stage),
    ]
}

const SIMPLIFY_STRUCTURED: &[Pass] = &[
    member("fold", fold::run, Structured),
    member("identities", identities::run, Structured),
    member("cse", cse::run, Structured),
    member("licm", licm::run, Structured),
    member("forward_loads", forward_loads::run, Structured),
    member("branches", branches::run, Structured),
    member("dce", dce::run, Structured),
    // Each check that goes lets the others see more.
    member("proved_checks", proved_checks::run, Structured),
];
const SIMPLIFY_OFFLOADED: &[Pass] = &simplify(Offloaded);
// Addresses are all that is new here: their look-ups merge and move out of loops.
const SIMPLIFY_LOWERED: &[Pass] = &[
    member("fold", fold::run, Lowered),
    member("identities", identities::run, Lowered),
    member("cse", cse::run, Lowered),
    member("dce", dce::run, Lowered),
];

/// The pipeline.
pub const PIPELINE: &[Step] = &[
    // Only what has one exit can be inlined.
    pass(
        "single_exit",
        single_exit::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    Step::Meet,
    pass("inline", inline::run, Structured, Structured, When::Always),
    // What is copied into a function is at the same stage as the function.
    Step::Meet,
    // Before tensors fall apart: one check for an access, not one for each component.
    pass(
        "bounds_check",
        bounds_check::run,
        Structured,
        Structured,
        When::Debug,
    ),
    // Before tensors fall apart: by constants, if it may be.
    pass(
        "unroll",
        unroll::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    // What is too large to fall apart.
    pass(
        "loop_tensors",
        loop_tensors::run,
        Structured,
        Structured,
        When::Always,
    ),
    pass(
        "scalarize",
        scalarize::run,
        Structured,
        Structured,
        When::Always,
    ),
    // Where each access is one of a scalar, and all of them are still the user's.
    pass(
        "note_accesses",
        note_accesses::run,
        Structured,
        Structured,
        When::Races,
    ),
    // What is not shared between threads need not be atomic, and can then be promoted.
    pass(
        "demote_atomics",
        demote_atomics::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    pass(
        "promote_locals",
        promote_locals::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    Step::Group {
        name: "simplify",
        passes: SIMPLIFY_STRUCTURED,
        rounds: 4,
    },
    // Where no other check is to be proved; before loops are recognised by what they hold.
    kernel(
        "hoisted_checks",
        proved_checks::hoisted_checks::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    // Where variables are values, and bounds have left their loops.
    pass(
        "counted_whiles",
        counted_whiles::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    pass(
        "carried_elements",
        carried_elements::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    pass(
        "chosen_elements",
        chosen_elements::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    // Where elements are carried, which a loop in parts would read and write several times.
    pass(
        "skipped_iteration",
        skipped_iteration::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    kernel(
        "flat_index",
        flat_index::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    // Before axes change places: whatever their order.
    kernel(
        "matrix_products",
        matrix_products::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    kernel(
        "partners",
        partners::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    kernel(
        "axis_order",
        axis_order::run,
        Structured,
        Structured,
        When::Optimize,
    ),
    // Where loops still say over what they go.
    kernel(
        "own_words",
        own_words::run,
        Structured,
        Scheduled,
        When::Always,
    ),
    kernel(
        "demote_struct_for",
        demote_struct_for::run,
        Scheduled,
        Scheduled,
        When::Always,
    ),
    // Where loops over dense fields are nests, too.
    kernel(
        "scan_counters",
        scan_counters::run,
        Scheduled,
        Scheduled,
        When::PrivateCells,
    ),
    kernel(
        "look_around",
        look_around::run,
        Scheduled,
        Scheduled,
        When::Optimize,
    ),
    kernel(
        "list_struct_for",
        list_struct_for::run,
        Scheduled,
        Scheduled,
        When::Always,
    ),
    kernel("collect", collect::run, Scheduled, Scheduled, When::Always),
    // Where nothing else looks for axes.
    kernel(
        "short_axis",
        short_axis::run,
        Scheduled,
        Scheduled,
        When::Optimize,
    ),
    kernel("offload", offload::run, Scheduled, Offloaded, When::Always),
    // Before sums become more than an instruction.
    kernel(
        "split_branches",
        split_branches::run,
        Offloaded,
        Offloaded,
        When::Optimize,
    ),
    kernel(
        "thread_local",
        thread_local::run,
        Offloaded,
        Offloaded,
        When::ThreadLocal,
    ),
    // What is left of atomics after that is scattered.
    kernel(
        "privatize",
        privatize::run,
        Offloaded,
        Offloaded,
        When::PrivateCells,
    ),
    // Where accumulators are locals, and before branches are looked at.
    pass(
        "guarded_steps",
        guarded_steps::run,
        Offloaded,
        Offloaded,
        When::Optimize,
    ),
    // Where the bounds of loops are known; what then stands side by side simplifies.
    pass(
        "if_convert",
        if_convert::run,
        Offloaded,
        Offloaded,
        When::Optimize,
    ),
    Step::Group {
        name: "simplify",
        passes: SIMPLIFY_OFFLOADED,
        rounds: 2,
    },
    // Where what is the same in all iterations has left its loop.
    pass(
        "carried_powers",
        carried_powers::run,
        Offloaded,
        Offloaded,
        When::Optimize,
    ),
    // Where everything is said about accesses, so that nothing else is hindered by it.
    pass(
        "clamp_indices",
        clamp_indices::run,
        Offloaded,
        Offloaded,
        When::Always,
    ),
    pass(
        "lower_access",
        lower_access::run,
        Offloaded,
        Lowered,
        When::Always,
    ),
    Step::Group {
        name: "simplify",
        passes: SIMPLIFY_LOWERED,
        rounds: 2,
    },
    member_step("merge_atomics", merge_atomics::run, Lowered),
    // When nothing changes any more which memory tasks add to.
    kernel("order", order::run, Lowered, Lowered, When::Deterministic),
];

/// The names of all passes, in the order in which they first run.
pub fn names() -> Vec<&'static str> {
    let mut names = Vec::new();
    for pass in PIPELINE.iter().flat_map(Step::passes) {
        if !names.contains(&pass.name) {
            names.push(pass.name);
        }
    }
    names
}

/// The pass with a name; where it runs several times, as it runs first.
pub fn find(name: &str) -> Option<Pass> {
    let mut passes = PIPELINE.iter().flat_map(Step::passes);
    let found = passes.find(|pass| pass.name == name).copied();
    found.or_else(|| crate::autodiff::find_pass(name))
}
