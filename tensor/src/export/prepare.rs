//! Expressions of the host become kernels, so that the generated C computes nothing.
//!
//! ```text
//! if and(lt(b0[], x0), b1[]) { .. }
//! =>
//! for [] { b2[] = and(lt(b0[], x0), b1[]) }
//! if b2[] { .. }
//! ```

use aerogel_base::Span;

use crate::ir::{Expr, ExprDef, For, Outside, Program, Stmt, Store, rewrite};

pub(super) fn run(program: &mut Program) {
    rewrite(program, &mut |program, mut stmt, out| {
        if !matches!(stmt, Stmt::For(_)) {
            stmt.exprs_mut(&mut |e| *e = computed(program, *e, out));
        }
        out.push(stmt);
        true
    });
}

/// A constant, a variable, a size or a single number in memory that has the value of an expression.
fn computed(program: &mut Program, e: Expr, out: &mut Vec<Stmt>) -> Expr {
    let is_plain = match &program.exprs[e] {
        ExprDef::Const(_) | ExprDef::Var(..) | ExprDef::Extent(_) => true,
        ExprDef::Load { index, .. } => index.is_empty(),
        _ => false,
    };
    if is_plain {
        return e;
    }
    let target = program.temporary(program.exprs.ty(e), &[]);
    let store = Store {
        target,
        index: Vec::new(),
        value: e,
        accum: None,
        init: false,
        outside: Outside::Never,
    };
    out.push(Stmt::For(For {
        domain: Vec::new(),
        cells: None,
        body: vec![Stmt::Store(store)],
        span: Span::NONE,
    }));
    program.load(target, Vec::new(), Outside::Never)
}
