//! Sparse fields: where their gradients are, and which cells were active.

use aerogel_ir::{Derivative, parse_module};

use super::{HEAD, derivative, printed, whole};
use crate::Options;
use crate::autodiff::{Moment, Wanted, differentiate};

#[test]
fn sparse_fields_become_no_larger() {
    insta::assert_snapshot!(
        derivative(
            Derivative::Grad,
            "v1: ref<f64> = field_at @a, [v0]
            v2: f64 = load v1
            v10: ref<f64> = field_at @y, [v0]
            store v10, v2"
        ),
        @"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: f64 = const 0.0
                v4: ref<f64> = field_at @gy, [v2]
                v5: f64 = load v4
                store v4, v3
                v6: u1 = is_active tree1.S1, [v2]
                if v6 {
                    v7: ref<f64> = field_at @ga, [v2]
                    v8: f64 = atomic_add v7, v5
                    yield []
                } {
                    yield []
                }
                yield []
            }
            return []
        }
        "
    );
}

/// A loop over the cells of `a`, and what comes before and after it.
fn over_cells(before: &str, inside: &str, after: &str) -> String {
    format!(
        "v8: i32 = const 3
        v9: f64 = const 1.0
        {before}
        parallel_cells tree1.S1 (v0: i32) {{
            v1: ref<f64> = field_at @x, [v0]
            v2: f64 = load v1
            v3: ref<f64> = field_at @y, [v0]
            v4: f64 = atomic_add v3, v2
            {inside}
            yield []
        }}
        {after}
        return []"
    )
}

const ACTIVATES: &str = "vp: ref<f64> = field_at @a, [v8] store vp, v9";

#[test]
fn a_loop_over_cells_asks_which_were_active() {
    let wanted = Wanted {
        past: true,
        ..Derivative::Grad.into()
    };
    let text = format!("{HEAD} kernel @k() {{ {} }}", over_cells("", "", ""));
    insta::assert_snapshot!(printed(wanted, &text, &|name| name == "k_grad"), @"
    kernel @k_grad() {
        parallel_cells tree1.S1 (v0: i32) {
            v1: u1 = is_active tree2.S1, [v0]
            if v1 {
                v2: ref<f64> = field_at @gy, [v0]
                v3: f64 = load v2
                v4: ref<f64> = field_at @gx, [v0]
                v5: f64 = atomic_add v4, v3
                yield []
            } {
                yield []
            }
            yield []
        }
        return []
    }
    ");
}

#[test]
fn what_a_cell_held_has_no_adjoint_before_it_becomes_inactive() {
    insta::assert_snapshot!(
        whole(
            Derivative::Grad,
            "v0: i32 = const 3
            v1: ref<f64> = field_at @a, [v0]
            v2: f64 = load v1
            v3: ref<f64> = field_at @t, []
            v4: f64 = atomic_add v3, v2
            deactivate tree1.S1, [v0]
            return []"
        ),
        @"
        kernel @k_grad() {
            v0: i32 = const 3
            v1: u1 = is_active tree1.S1, [v0]
            if v1 {
                v2: ref<f64> = field_at @ga, [v0]
                v3: f64 = const 0.0
                store v2, v3
                yield []
            } {
                yield []
            }
            return []
        }
        "
    );
}

#[test]
fn tangents_that_stay_where_a_cell_was_become_zero() {
    let tangents = |place: &str| {
        let head = HEAD.replace("grad @ga", &format!("grad @ga dual @{place}"));
        let text = format!(
            "{head} kernel @k() {{ v0: i32 = const 3 deactivate tree1.S1, [v0] return [] }}"
        );
        printed(Derivative::Dual.into(), &text, &|name| {
            name.starts_with('k')
        })
    };
    insta::assert_snapshot!(tangents("gx"), @"
    kernel @k_dual() {
        v0: i32 = const 3
        deactivate tree1.S1, [v0]
        v1: ref<f64> = field_at @gx, [v0]
        v2: f64 = const 0.0
        store v1, v2
        return []
    }
    ");
    // What lies in the cell vanishes with it.
    insta::assert_snapshot!(tangents("ga"), @"
    kernel @k_dual() {
        v0: i32 = const 3
        deactivate tree1.S1, [v0]
        return []
    }
    ");
}

/// Which cells a gradient asks for, or why there is none.
fn asked(body: &str) -> String {
    let text = format!("{HEAD} kernel @k() {{ {body} }}");
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
    let done = match differentiate(module, Derivative::Grad, Options::default()) {
        Ok(done) => done,
        Err(mistake) => return format!("{mistake:?}"),
    };
    let asked = done.asked.iter().map(|asked| {
        let at = match asked.at {
            Moment::Start => "start",
            Moment::End => "end",
        };
        format!("{} at the {at}", asked.node.node)
    });
    let by_hand = if done.of_start.is_some() {
        ", under a tape"
    } else {
        ""
    };
    format!("{}{by_hand}", asked.collect::<Vec<_>>().join(", "))
}

#[test]
fn which_cells_are_asked_for() {
    insta::assert_snapshot!(asked(&over_cells("", "", "")), @"S1 at the start");
    insta::assert_snapshot!(asked(&over_cells(ACTIVATES, "", "")), @"S1 at the end");
    insta::assert_snapshot!(asked(&over_cells("", "", ACTIVATES)), @"S1 at the start, under a tape");
    insta::assert_snapshot!(asked(&over_cells("", ACTIVATES, "")), @"S1 at the start, under a tape");
    // Its own cell is active.
    let own = "vp: ref<f64> = field_at @a, [v0] store vp, v9";
    insta::assert_snapshot!(asked(&over_cells("", own, "")), @"S1 at the start");
    let guarded = "vc: u1 = is_active tree1.S1, [v8]
        if vc { vp: ref<f64> = field_at @a, [v8] store vp, v9 yield [] } { yield [] }";
    insta::assert_snapshot!(asked(&over_cells("", "", guarded)), @"S1 at the start");
}

#[test]
fn cells_that_nobody_can_ask_for() {
    let refused = |body: &str| whole(Derivative::Grad, body);
    insta::assert_snapshot!(refused(&over_cells(ACTIVATES, "", &ACTIVATES.replace("vp", "vq"))), @"E0603: the gradient needs to know which cells are active here, and the kernel changes that");
    insta::assert_snapshot!(refused(&over_cells("", "", "deactivate tree1.S1, [v8]")), @"E0603: the gradient needs to know which cells are active here, and the kernel changes that");
    // Iterations that ask for what others make active.
    insta::assert_snapshot!(
        derivative(
            Derivative::Grad,
            "v1: u1 = is_active tree1.S1, [v0]
            v2: ref<f64> = field_at @x, [v0]
            if v1 {
                v3: f64 = load v2
                v4: ref<f64> = field_at @y, [v0]
                v5: f64 = atomic_add v4, v3
                yield []
            } {
                yield []
            }
            v6: ref<f64> = field_at @a, [v0]
            v7: f64 = const 1.0
            store v6, v7"
        ),
        @"E0603: the gradient needs to know which cells are active here, and the kernel changes that"
    );
}
