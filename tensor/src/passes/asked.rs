//! Which elements are needed: an out-of-bounds index in a statement is an error, even if its element is not needed.

use indexmap::IndexSet;

use crate::ir::{Buffer, Dim, Expr, ExprDef, Exprs, Program, Stmt};

/// Whether statements read every element of a buffer for certain: at points that are all there, and by no choice.
pub(super) fn is_all_read(
    program: &Program,
    domain: &[Dim],
    body: &[Stmt],
    buffer: Buffer,
) -> bool {
    let shape = &program.buffers[buffer].shape;
    let mut left: Vec<Expr> = Vec::new();
    for stmt in body {
        stmt.exprs(|e| left.push(e));
    }
    let mut seen = IndexSet::new();
    while let Some(e) = left.pop() {
        if !seen.insert(e) {
            continue;
        }
        match &program.exprs[e] {
            ExprDef::Select(cond, ..) => left.push(*cond),
            ExprDef::Load {
                buffer: read,
                index,
                ..
            } if *read == buffer => {
                let mut axes = IndexSet::new();
                for (&i, &n) in index.iter().zip(shape) {
                    if let ExprDef::Axis(k) = program.exprs[i]
                        && domain[k as usize] == n
                    {
                        axes.insert(k as usize);
                    }
                }
                let mut others = (0..domain.len()).filter(|k| !axes.contains(k));
                let is_there = |k: usize| program.surely_has(domain[k], 0);
                if axes.len() == shape.len() && others.all(is_there) {
                    return true;
                }
            }
            def => def.operands(|x| left.push(x)),
        }
    }
    false
}

/// Whether an index in it that is outside is an error.
pub(super) fn may_fail(exprs: &Exprs, e: Expr) -> bool {
    let mut found = false;
    exprs.visit([e], &mut |x| {
        found |= matches!(exprs[x], ExprDef::Load { outside, .. } if outside.is_checked());
    });
    found
}
