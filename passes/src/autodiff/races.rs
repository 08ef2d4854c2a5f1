//! Iterations that read what other iterations of the same parallel loop store.
//!
//! ```text
//! parallel [0], [n] (i) { store x[i], 0.5 * (load x[i + 1]) }
//! ```
//! What is read depends on which iteration comes first, so that no gradient is right. Only what is sure is found: both
//! happen in every iteration, at a constant distance from each other.

use aerogel_ir::analysis::affine::counted_from_narrow;
use aerogel_ir::{Derivative, Inst, Op, Region, Value};

use super::demand::Cx;
use super::needs::{Of, Overwritten};
use super::storage::indices;

/// The first read of a value with a derivative that another iteration stores.
pub(super) fn find(cx: &Cx<'_>) -> Option<Overwritten> {
    if cx.kind != Derivative::Grad {
        return None;
    }
    cx.nesting.regions.iter().find_map(|&region| {
        let insts = cx.func.regions[region].insts.iter();
        insts.copied().find_map(|inst| of_loop(cx, inst))
    })
}

fn of_loop(cx: &Cx<'_>, inst: Inst) -> Option<Overwritten> {
    let (body, counts) = match &cx.func[inst] {
        Op::Parallel {
            lo,
            hi,
            attrs,
            body,
        } if !attrs.serial => {
            let count = |(&lo, &hi)| {
                let [lo, hi] = [lo, hi].map(|v: Value| cx.func.as_const(v).map(|c| c.as_i128()));
                Some(hi? - lo?)
            };
            (*body, lo.iter().zip(hi).map(count).collect())
        }
        Op::ParallelCells { attrs, body, .. } if !attrs.serial => {
            (*body, vec![None; cx.func.regions[*body].params.len()])
        }
        _ => return None,
    };
    let insts = &cx.func.regions[body].insts;
    let loads = insts.iter().filter_map(|&inst| match cx.func[inst] {
        Op::Load { place } if cx.activity.is_active(cx.func.insts[inst].results[0]) => {
            Some((inst, place))
        }
        _ => None,
    });
    for (load, read) in loads {
        let stores = insts.iter().filter_map(|&inst| match cx.func[inst] {
            Op::Store { place, .. } if cx.has_adjoint(place) => Some((inst, place)),
            _ => None,
        });
        for (store, written) in stores {
            if is_raced(cx, body, &counts, read, written) {
                return Some(Overwritten {
                    read: cx.func.insts[load].span,
                    written: cx.func.insts[store].span,
                    of: Of::Values,
                });
            }
        }
    }
    None
}

/// Whether one iteration surely reads what another one writes; `counts` are the iterations along each axis, where known.
fn is_raced(
    cx: &Cx<'_>,
    body: Region,
    counts: &[Option<i128>],
    read: Value,
    written: Value,
) -> bool {
    let counters = &cx.func.regions[body].params;
    if cx.memory(read) != cx.memory(written) || !same_component(cx, read, written) {
        return false;
    }
    let mut apart = false;
    let pairs = indices(cx.func, read).iter().zip(indices(cx.func, written));
    for (&r, &w) in pairs {
        let ((r, a), (w, b)) = (
            counted_from_narrow(cx.func, r),
            counted_from_narrow(cx.func, w),
        );
        if r != w {
            return false;
        }
        match counters.iter().position(|&counter| counter == r) {
            Some(axis) => {
                let by = i128::from(a - b).abs();
                if counts[axis].is_some_and(|count| by >= count) {
                    return false;
                }
                apart |= by != 0;
            }
            None if a != b => return false,
            None => {}
        }
    }
    apart
}

/// Whether two places are the same component of their elements.
fn same_component(cx: &Cx<'_>, a: Value, b: Value) -> bool {
    match (cx.func.def_op(a), cx.func.def_op(b)) {
        (Some(Op::ElemRef { index: a, .. }), Some(Op::ElemRef { index: b, .. })) => {
            let known = |v: &Value| cx.func.as_const(*v).map(|c| c.as_i128());
            a.iter().map(known).eq(b.iter().map(known)) && a.iter().all(|v| known(v).is_some())
        }
        (Some(Op::ElemRef { .. }), _) | (_, Some(Op::ElemRef { .. })) => false,
        _ => true,
    }
}
