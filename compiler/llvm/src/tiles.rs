//! Parts of a parallel loop over several axes are walked in tiles where one access goes along rows and another across.
//!
//! ```text
//! for i, j: b[i, j] = a[j, i]     ==>     for tile of j:  for i:  for j in tile:  b[i, j] = a[j, i]
//! ```
//! Along a row of `b` each element of `a` lies on a cache line of its own, which is needed again in the next row, and is gone
//! by then if the row is long. A tile is as wide as the lines that stay.
//! (Wolf and Lam, *A data locality optimizing algorithm*, PLDI 1991.)

use aerogel_ir::{BinaryOp, Function, NodeOp, Op, Region, Value, walk};

/// Columns of a tile: those of one cache line of `f32`. A power of two. Rows whose length in bytes is a power of two share few
/// sets of a cache, so more lines would not stay.
pub(crate) const WIDTH: i64 = 16;

/// Whether iterations of a loop over several axes access memory along rows and across, and may run in any order.
pub(crate) fn are_worth_it(func: &Function, body: Region) -> bool {
    let Some((&counter, outer)) = func.regions[body].params.split_last() else {
        return false;
    };
    let mut across = false;
    let mut any_order = true;
    walk(func, body, &mut |func, inst| {
        let indices = match &func[inst] {
            Op::Node(NodeOp::Linearize { coords, .. }) => coords,
            Op::ArrayAt { indices, .. } => indices,
            // The order of sums is that of the loop, as long as it is.
            Op::Atomic { .. } => return any_order = false,
            &Op::Store { place, .. } => return any_order &= !is_local(func, place),
            _ => return,
        };
        if let Some((&last, others)) = indices.split_last() {
            across |= outer.contains(&base(func, last))
                && others.iter().any(|&other| base(func, other) == counter);
        }
    });
    across && any_order
}

/// The value to which an index adds a constant.
fn base(func: &Function, index: Value) -> Value {
    match func.def_op(index) {
        Some(&Op::Cast { x }) => base(func, x),
        Some(&Op::Binary {
            op: BinaryOp::Add | BinaryOp::Sub,
            lhs,
            rhs,
        }) if func.as_const(rhs).is_some() => base(func, lhs),
        Some(&Op::Binary {
            op: BinaryOp::Add,
            lhs,
            rhs,
        }) if func.as_const(lhs).is_some() => base(func, rhs),
        _ => index,
    }
}

fn is_local(func: &Function, place: Value) -> bool {
    match func.def_op(place) {
        Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => is_local(func, base),
        Some(Op::Local {}) => true,
        _ => false,
    }
}
